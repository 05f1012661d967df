"""Draws that come out the same again: for people who do not exist, and for what an attacker tries.

Never for noise: that is drawn by ``discreet.noise`` from a cryptographic generator, and cannot
be repeated.  Words come from SHAKE-256 of a name, so a chapter of the lab shows the same
town to everybody.

>>> Dice("a town").below(6, 5).tolist() == Dice("a town").below(6, 5).tolist()
True
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


class Dice:
    """A sequence of draws that its ``name`` decides."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rolled = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """So many words of 64 bits."""
        self._rolled += 1
        text = f"{self.name}/{self._rolled}".encode()
        return np.frombuffer(hashlib.shake_256(text).digest(8 * count), dtype=np.uint64)

    def uniform(self, count: int) -> Real:
        """Numbers in [0, 1)."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) / 2.0**53

    def below(self, most: int, count: int) -> Whole:
        """Whole numbers from 0 to ``most`` - 1."""
        return (self.uniform(count) * most).astype(np.int64)

    def flips(self, probability: float, count: int) -> Whole:
        """Ones with ``probability``, else zeros."""
        return (self.uniform(count) < probability).astype(np.int64)

    def choose(self, values: list[Any], weights: list[float], count: int) -> list[Any]:
        """One of ``values`` each time, by ``weights``."""
        ends = np.cumsum(np.array(weights) / sum(weights))
        return [values[min(i, len(values) - 1)] for i in np.searchsorted(ends, self.uniform(count))]

    def order(self, count: int) -> Whole:
        """The numbers below ``count`` in some order."""
        return np.argsort(self.words(count), kind="stable")

    def laplace(self, scale: float, count: int) -> Real:
        """Laplace noise as anybody would write it, in floats: for targets that are not ours."""
        u = self.uniform(count) - 0.5
        noise: Real = -scale * np.sign(u) * np.log1p(-2 * np.abs(u))
        return noise

    def normal(self, count: int) -> Real:
        """Normal numbers, by Box and Muller."""
        radius = np.sqrt(-2 * np.log1p(-self.uniform(count)))
        angles: Real = radius * np.cos(2 * np.pi * self.uniform(count))
        return angles


__all__ = ["Dice"]
