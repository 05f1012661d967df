"""What a specimen of the zoo is: a promise, two neighbours, a bug, and the twin without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from discreet.accounting.law import Law
from discreet.accounting.loss import Loss


class Check(StrEnum):
    """Which audit tells the broken one from its twin."""

    LAW = "exact law"
    """``data -> Law``: the certified divergence of the two laws."""
    REPLAY = "replay"
    """``data -> release``: what enters each mechanism, with the noise frozen."""
    GRID = "grid"
    """``(data, size) -> numbers``: whether the last bits lie on one public grid."""
    GAME = "game"
    """``(data, size) -> outputs``: which world is it, guessed from samples."""
    FIT = "fit"
    """``size -> draws``: samples against the law they are said to have."""
    TIMING = "timing"
    """``data -> release``: how long it takes."""

    @property
    def deterministic(self) -> bool:
        """Whether the verdict is a computation, with no sampling error to allow for."""
        return self in (Check.LAW, Check.REPLAY, Check.GRID)


ADDED = "one person is added"
CHANGED = "one person's row is changed"


@dataclass(frozen=True, slots=True)
class Animal:
    """A broken mechanism beside its correct twin; both make the same promise.

    ``name`` and ``family`` say which it is, ``bug`` what is wrong with it and ``source`` where that
    is known from. ``broken`` and ``twin`` are what ``check`` is given, and ``promise`` what both
    say they lose.

    ``pair`` are two neighbouring inputs on which the bug shows, ``relation`` says
    in words how they differ.  ``law`` is what a sampler claims to draw from
    (:attr:`Check.FIT` only); ``view`` turns outputs of several numbers into the one
    that the adversary looks at (:attr:`Check.GAME` only).
    """

    name: str
    family: str
    bug: str
    source: str
    check: Check
    promise: Loss
    pair: tuple[Any, Any]
    broken: Callable[..., Any]
    twin: Callable[..., Any]
    relation: str = ADDED
    law: Law | None = None
    view: Callable[[Any], Any] | None = None

    def __str__(self) -> str:
        return self.name


__all__ = ["ADDED", "CHANGED", "Animal", "Check"]
