"""Reports of one bit for each answer, eight to a byte, the first answer in the highest bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.local.frequencies import Integers
from discreet.local.oracle import FrequencyOracle, chunks

_ROWS = 255  # as many ones as a byte can count


def width(categories: int) -> int:
    """How many bytes hold so many bits."""
    return (categories + 7) // 8


def check_packed(oracle: FrequencyOracle, reports: Any) -> NDArray[np.uint8]:
    """Rows of bytes, refused unless each has a bit for each answer and no more."""
    found = np.asarray(reports)
    size = width(oracle.categories)
    if not found.size:
        return np.zeros((0, size), dtype=np.uint8)
    spare = 8 * size - oracle.categories
    shaped = found.ndim == 2 and found.shape[1] == size and found.dtype.kind in "iu"
    if not shaped or (found.dtype != np.uint8 and not ((found >= 0) & (found < 256)).all()):
        raise oracle.not_a_report()
    packed = found.astype(np.uint8, copy=False)
    if (packed[:, -1] & ((1 << spare) - 1)).any():
        raise oracle.not_a_report()
    return packed


def unpack(reports: NDArray[np.uint8], categories: int) -> NDArray[np.uint8]:
    """A column for each answer."""
    return np.unpackbits(reports, axis=-1, count=categories)


def count_bits(reports: NDArray[np.uint8], categories: int) -> Integers:
    """How many rows have each bit."""
    total = np.zeros(categories, dtype=np.int64)
    for part in chunks(len(reports), _ROWS * 16):
        bits = unpack(reports[part], categories)
        for few in chunks(len(bits), _ROWS):  # sums of bytes in bytes: many at a time
            total += np.add.reduce(bits[few], axis=0, dtype=np.uint8)
    return total


__all__ = ["check_packed", "count_bits", "unpack", "width"]
