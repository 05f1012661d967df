"""How many draws: sizes checked, scalars told from arrays, long arrays filled in chunks."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, shown

Integers = NDArray[np.int64]

CHUNK = 1 << 14
"""Draws made at a time: few enough that a chunk's arrays stay in a core's cache."""

SMALL = 256
"""Up to this many draws take the path whose operations do not depend on what is drawn."""


def check_size(size: object, *, name: str = "size") -> int:
    """``size`` as an ``int``, refused unless a whole number of at least zero."""
    if isinstance(size, numbers.Integral) and not isinstance(size, bool) and int(size) >= 0:
        return int(size)
    raise InvalidParameter(
        "P3",
        f"{name} must be a whole number of at least 0, got {shown(size)}.",
        why="it is how many numbers to draw.",
        fix=f"pass {name} as an int, such as 1000.",
    )


def draw_array(size: int, fill: Callable[[NDArray[Any]], None]) -> Integers:
    """An array of ``size`` integers, written chunk by chunk by ``fill``."""
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        fill(out[start : start + CHUNK])
    return out
