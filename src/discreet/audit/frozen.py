"""Bytes that look random and are always the same: the noise of a replay, and synthetic data.

Never for a release: whoever knows the label knows the noise.  The bytes reach
``discreet.noise.entropy`` only inside :func:`discreet.audit.observing.observe`, within
its own context.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def freeze_bytes(label: str, count: int) -> bytes:
    """``count`` bytes that depend on ``label`` alone (SHAKE-256).

    >>> freeze_bytes("noise 3", 4) == freeze_bytes("noise 3", 9)[:4]
    True
    """
    return hashlib.shake_256(label.encode()).digest(count)


class Dice:
    """Choices that depend on a label alone, for synthetic tables."""

    __slots__ = ("_label", "_rolls")

    def __init__(self, label: str) -> None:
        self._label, self._rolls = label, 0

    def below(self, sides: int) -> int:
        """One of 0 ... sides - 1."""
        self._rolls += 1
        return int.from_bytes(freeze_bytes(f"{self._label}/{self._rolls}", 8), "big") % sides

    def choice(self, values: Sequence[T]) -> T:
        """One of ``values``."""
        return values[self.below(len(values))]


__all__ = ["Dice", "freeze_bytes"]
