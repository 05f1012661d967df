"""Staircase draws: flat steps as wide as one unit can move a number, each e**-epsilon lower.

P(z) is proportional to exp(-epsilon * level(|z|)), where the distances 0 ... width - 1 have
level 0, the next ``sensitivity`` distances level 1, the next as many level 2, and so on.  A
distance is m = k * sensitivity + u with u below the sensitivity, and
level(m) = k + [u >= width]: so k is geometric, and independent of u, which is uniform below
``width`` or, with weight exp(-epsilon), uniform from there on.  A sign is drawn last, and a
negative zero, of which there would be two, is drawn again.  Proof: ``docs/proofs/noise.md``,
Lemma 12.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.balls import ball
from discreet.exact.numbers import Exact, positive, whole
from discreet.noise.entropy import random_bits, random_words
from discreet.noise.laplace import GREATEST_SCALE, geometric
from discreet.noise.selection import uniform_below
from discreet.noise.table import SMALL, Integers, Table, check_size, draw_array

_MOST = 2**63 - 1


@overload
def staircase(sensitivity: int, epsilon: Exact, width: int, size: None = None) -> int: ...
@overload
def staircase(sensitivity: int, epsilon: Exact, width: int, size: int) -> Integers: ...
def staircase(
    sensitivity: int, epsilon: Exact, width: int, size: int | None = None
) -> int | Integers:
    """Integers z with P(z) exactly proportional to exp(-epsilon * level(abs(z))).

    The first step is ``width`` wide, the others ``sensitivity``; the noise of a mechanism that
    loses ``epsilon``. With ``size`` an array of so many; without, one.

    >>> draws = staircase(40, 5, 3, 100_000)
    >>> bool((abs(draws) < 3).mean() > 0.88)  # 0.902 in the long run
    True
    """
    step = whole(sensitivity, name="sensitivity", least=1)
    inner = whole(width, name="width", least=1)
    price = positive(epsilon, name="epsilon")
    if inner > step:
        raise InvalidParameter(
            "P2",
            f"width must be from 1 to the sensitivity {step}, got {inner}.",
            why="a wider first step would make one person's change pass unnoticed, or cost double.",
            fix="pass a width of at most the sensitivity.",
        )
    if step > GREATEST_SCALE or step / price > GREATEST_SCALE:
        raise InvalidParameter(
            "P2",
            "sensitivity / epsilon must be at most 2**56, and so must the sensitivity.",
            why="larger draws would saturate 64-bit integers, and their law with them.",
            fix="measure the value in a coarser unit.",
        )
    if size is None:
        return _draw_one(step, price, inner)
    return draw_array(check_size(size), lambda out: _fill(step, price, inner, out))


def _draw_one(step: int, epsilon: Fraction, width: int) -> int:
    while True:
        # Both offsets are drawn, whichever is used: the time taken does not say which.
        near, far = uniform_below(width), width + uniform_below(max(step - width, 1))
        offset = far if width < step and _part(step, epsilon, width).draw_one() else near
        distance = min(geometric(1 / epsilon) * step + offset, _MOST)
        negative = random_bits(1)
        if distance or not negative:
            return -distance if negative else distance


def _fill(step: int, epsilon: Fraction, width: int, out: NDArray[Any]) -> None:
    if out.size <= SMALL:
        out[:] = [_draw_one(step, epsilon, width) for _ in range(out.size)]
        return
    filled = 0
    while filled < out.size:
        # Few are drawn again; so few at a time would take the slow path of short arrays.
        drawn = _propose(step, epsilon, width, max(out.size - filled, 2 * SMALL))
        taken = min(drawn.size, out.size - filled)
        out[filled : filled + taken] = drawn[:taken]
        filled += taken


def _propose(step: int, epsilon: Fraction, width: int, size: int) -> Integers:
    """So many draws, or a few less: without the negative zeros among them."""
    distances = uniform_below(width, size)
    if width < step:
        outside = np.empty(size, dtype=np.int64)
        _part(step, epsilon, width).fill(outside)
        far = np.flatnonzero(outside)
        distances[far] = width + uniform_below(step - width, far.size)
    blocks = geometric(1 / epsilon, size)
    beyond = blocks > (_MOST - step) // step
    blocks[beyond] = 0
    blocks *= step
    distances += blocks
    distances[beyond] = _MOST
    signs = np.unpackbits(random_words(-(-size // 8), np.uint8))[:size].view(np.bool_)
    kept = (distances != 0) | ~signs
    np.negative(distances, out=distances, where=signs)
    return distances if kept.all() else distances[kept]


@lru_cache(maxsize=256)
def _part(step: int, epsilon: Fraction, width: int) -> Table:
    """0 for an offset below ``width``, 1 for one from there on, which weighs exp(-epsilon)."""

    def cumulatives() -> Iterator[arb]:
        yield width / (width + (step - width) * ball(-epsilon).exp())

    return Table(cumulatives, lambda position: position)
