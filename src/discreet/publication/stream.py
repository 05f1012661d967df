"""Public digits that look random and are the same for everybody: never noise, never secret.

Sampling rows from a released law, and choosing which questions a synopsis is
tried on, need numbers that follow no pattern of the data.  They are read off
the SHAKE-256 stream of a public label, so that whoever has the released
numbers gets the same rows.  Nothing here may hide anybody: noise comes from
:mod:`discreet.noise`.
"""

from __future__ import annotations

import hashlib
from math import prod

import numpy as np
from numpy.typing import NDArray


class PublicStream:
    """The numbers of one label, in order.

    >>> PublicStream("rows").uniform(3).round(4).tolist() == (
    ...     PublicStream("rows").uniform(3).round(4).tolist()
    ... )
    True
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._drawn = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` words of 64 digits."""
        self._drawn += 1
        name = f"discreet publication {self._drawn} {self._label}".encode()
        return np.frombuffer(hashlib.shake_256(name).digest(8 * count), dtype="<u8")

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Numbers spread over 0 ... 1, one excluded."""
        digits = (self.words(prod(shape)) >> np.uint64(11)).astype(np.float64)
        return (digits * 2.0**-53).reshape(shape)

    def integers(self, below: int, *shape: int) -> NDArray[np.int64]:
        """Whole numbers from 0 up to ``below``, excluded."""
        return np.floor(self.uniform(*shape) * below).astype(np.int64)

    def choose(self, size: int, count: int) -> NDArray[np.intp]:
        """``count`` different numbers below ``size``."""
        return np.argsort(self.words(size), kind="stable")[:count]
