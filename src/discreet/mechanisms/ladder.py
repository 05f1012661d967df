"""The cheapest parameter that is good enough, on a ladder of short decimals.

A parameter found by search should be a number that can be written down: the
rungs are the decimals of six significant digits, 9 * 10**5 of them in every
decade, so the rung found is within one part in 10**5 of the real optimum.
Whether a rung is good enough is decided by exact or certified arithmetic; the
starting point is only a guess, and a bad one costs time and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.errors import InvalidParameter

_DIGITS = 6
_LEAST = 100_000  # the least number of so many digits
_PER_DECADE = 9 * _LEAST
_DECADES = 300


def least(fits: Callable[[Fraction], bool], *, near: float) -> Fraction:
    """The least six-digit decimal at which ``fits`` holds, for ``fits`` false and then true.

    >>> least(lambda x: x * x >= 2, near=9.0)
    Fraction(70711, 50000)
    """
    start = _index(near)
    if fits(_rung(start)):
        low, high = _fails_below(fits, start), start
    else:
        low, high = start, _holds_above(fits, start)
    while high - low > 1:  # fails at low, holds at high
        middle = (low + high) // 2
        if fits(_rung(middle)):
            high = middle
        else:
            low = middle
    return _rung(high)


def _rung(index: int) -> Fraction:
    decade, place = divmod(index, _PER_DECADE)
    power = decade - _DIGITS + 1
    return Fraction((_LEAST + place) * 10 ** max(power, 0), 10 ** max(-power, 0))


def _index(near: float) -> int:
    if not math.isfinite(near) or near <= 0:
        return 0
    decade = min(max(math.floor(math.log10(near)), -_DECADES), _DECADES)
    place = round(near / math.pow(10, decade) * _LEAST) - _LEAST
    return decade * _PER_DECADE + min(max(place, 0), _PER_DECADE - 1)


def _fails_below(fits: Callable[[Fraction], bool], index: int) -> int:
    stride = 1
    while fits(_rung(index - stride)):
        index, stride = index - stride, 2 * stride
        _within_reach(index)
    return index - stride


def _holds_above(fits: Callable[[Fraction], bool], index: int) -> int:
    stride = 1
    while not fits(_rung(index + stride)):
        index, stride = index + stride, 2 * stride
        _within_reach(index)
    return index + stride


def _within_reach(index: int) -> None:
    if abs(index) > _DECADES * _PER_DECADE:
        raise InvalidParameter(
            "P4",
            "no parameter between 1e-300 and 1e300 meets the target.",
            why="the mechanism would need no noise at all, or nothing but noise.",
            fix="ask for a margin, a confidence or a delta that noise can meet.",
        )
