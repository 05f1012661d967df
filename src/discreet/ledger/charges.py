"""What passes between the curator and the account when a question is asked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from discreet.exact.records import dataclass

if TYPE_CHECKING:
    from discreet.accounting.loss import Loss
    from discreet.question.blocks import Area


@dataclass(frozen=True, slots=True)
class About:
    """Which rows a question measures, as released answers are looked for that tell the same.

    ``base`` names the tables and joins, ``conditions`` each condition on their rows with the
    columns it looks at; ``keys`` are the columns of the groups, ``measured`` those of the values.
    """

    base: str
    conditions: tuple[tuple[str, frozenset[str]], ...]
    keys: frozenset[str]
    measured: frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A ``question`` of an ``analyst`` that is to be paid for, with the ``spend`` that they offer.

    ``key`` says which question at which spend, and so at which ``loss`` about which area; with
    ``data_version`` it says which answer. ``area`` are the blocks whose people the question can
    touch, and ``about`` says which rows it measures; ``abouts`` are all rows that answers may be
    looked for by, where there are several: of each question that is paid for together with others,
    and of each condition of an aggregate. ``entities`` are those whose rows are read: nobody else's
    can change the answer; None: anybody's may be.

    ``parent`` is the charge of the answer that it refines, whose noise it shares; of each answer
    one may. ``basis`` is what both are computed from, where it is known for certain that nobody has
    changed it. ``former``: its price is one of the past; what was paid for is found, and nothing is
    charged. ``formerly`` is what the same sources were called when rows were chosen otherwise; what
    was paid for then is not paid for again. ``once``: a run that has halted is found as it ended,
    and not paid for anew.
    """

    analyst: str
    question: str
    spend: Mapping[str, Any]
    key: str
    data_version: str
    loss: Loss
    area: Area
    about: About | None = None
    abouts: tuple[About, ...] = ()
    parent: int | None = None
    basis: str | None = None
    entities: frozenset[str] | None = None
    former: bool = False
    formerly: str | None = None
    once: bool = False


HALTED = "halted"
"""Why a run is over that has told all it was paid for."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The proof that a question is paid for; ``id`` is the number of the charge.

    ``analyst`` pays ``loss`` for data of ``data_version``; ``resumed`` if it was paid for before,
    by an asker who never saw an answer. ``parent`` is the charge of the answer that it refines:
    paid was the difference, and no more is due.
    """

    id: int
    analyst: str
    loss: Loss
    data_version: str
    resumed: bool = False
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An answer that was paid for and published; showing it again is free.

    ``answer`` is as it was published, for the charge ``id``.
    """

    id: int
    answer: bytes


class State(StrEnum):
    """What became of a question."""

    OPEN = "open"
    ANSWERED = "answered"
    BURNT = "burnt"
    REFUSED = "refused"
    CLOSED = "closed"
    """A run that is over: what it told is in its steps."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a transcript: a charge and what became of it, or a refusal.

    ``analyst`` asked ``question`` ``at`` that time and offered ``spend``; ``loss`` is what it cost,
    None of a refusal, whose ``code`` is told, and ``state`` what became of it. ``id`` is its
    number. ``count`` is how many refusals it stands for; more than one, and their questions were
    not kept.
    """

    id: int
    at: datetime
    analyst: str
    question: str
    spend: Mapping[str, Any]
    loss: Loss | None
    state: State
    code: str = ""
    count: int = 1
