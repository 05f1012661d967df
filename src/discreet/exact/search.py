"""The least or the greatest number that will do: doubling, then bisection.

Every search is told where a test holds and where it fails, or finds out by
doubling; it then halves what lies between.  What it returns is always a number
at which the test **was seen to hold** (or was said to): where the test is a
certified inequality, a loss or a margin found by search is on the safe side,
and a test that wavers near its threshold costs tightness, never safety.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from discreet.errors import InvalidParameter

Number = TypeVar("Number", int, float, Fraction)

_DIGITS = 6
_FIRST = 100_000  # the least number of so many digits
_PER_DECADE = 9 * _FIRST
_MOST_INDEX = 300 * _PER_DECADE


# --- integers ------------------------------------------------------------------------------


def least_integer(
    holds: Callable[[int], bool],
    *,
    fails_at: int = -1,
    holds_at: int | None = None,
    bits: int | None = None,
    near: int | None = None,
) -> int:
    """The least integer above ``fails_at`` at which ``holds`` is true, for false and then true.

    ``fails_at`` and ``holds_at`` are believed and not tried; without ``holds_at``
    it is found by doubling the distance.  With ``bits`` the search ends within
    2**-bits of the result, **above** the least: at a number where ``holds`` is true.
    ``near`` is where to begin instead: a bad guess costs time and nothing else.

    >>> least_integer(lambda n: n * n >= 2000)
    45
    >>> least_integer(lambda n: n * n >= 2000, fails_at=0, holds_at=1000, bits=3)
    46
    >>> least_integer(lambda n: n * n >= 2000, near=48)
    45
    """
    if near is not None and near > fails_at + 1:
        if holds(near):
            step = double(lambda step: not holds(near - step), 1, most=near - fails_at)
            fails_at, holds_at = max(fails_at, near - step), near - step // 2
        else:
            fails_at = near
    if holds_at is None:
        distance = double(lambda step: holds(fails_at + step), 1)
        # Half the distance was tried and failed, unless there was only one step.
        fails_at, holds_at = fails_at + distance // 2, fails_at + distance
    return _narrow(holds, holds_at, fails_at, bits)


def greatest_integer(
    holds: Callable[[int], bool],
    *,
    holds_at: int,
    fails_at: int | None = None,
    bits: int | None = None,
) -> int:
    """The greatest integer from ``holds_at`` at which ``holds`` is true, for true and then false.

    As :func:`least_integer`, the other way: with ``bits`` the result is **below**
    the greatest, at a number where ``holds`` is true.

    >>> greatest_integer(lambda n: n * n <= 2000, holds_at=0)
    44
    """
    if fails_at is None:
        distance = double(lambda step: not holds(holds_at + step), 1)
        holds_at, fails_at = holds_at + distance // 2, holds_at + distance
    return _narrow(holds, holds_at, fails_at, bits)


def _narrow(holds: Callable[[int], bool], good: int, bad: int, bits: int | None) -> int:
    """The last number at which ``holds`` is true on the way from ``good`` to ``bad``."""
    while abs(good - bad) > (1 if bits is None else max(1, abs(good) >> bits)):
        between = (good + bad) // 2
        if holds(between):
            good = between
        else:
            bad = between
    return good


# --- fractions and decimals ------------------------------------------------------------------


def least_fraction(
    holds: Callable[[Fraction], bool],
    *,
    least: Fraction,
    most: Fraction,
    tolerance: Fraction,
) -> Fraction | None:
    """About the least positive fraction at which ``holds`` is true, for false and then true.

    Doubles or halves from 1, then bisects until what it returns, where ``holds``
    is true, is at most ``tolerance`` of itself **above** the least one.  Nothing
    much below ``least`` is tried; None if it holds nowhere up to ``most``.

    >>> found = least_fraction(
    ...     lambda x: x * x >= 5, least=Fraction(1, 8), most=Fraction(64), tolerance=Fraction(1, 20)
    ... )
    >>> found, found**2 >= 5 > (found * Fraction(19, 20))**2
    (Fraction(9, 4), True)
    """
    good = double(holds, Fraction(1), most=2 * most)
    if good > most:
        return None
    # Halving is doubling of what it is divided by.
    by = double(lambda divisor: not holds(good / divisor), Fraction(2), most=2 * good / least)
    good, bad = 2 * good / by, good / by
    while good - bad > good * tolerance:
        between = (good + bad) / 2
        if holds(between):
            good = between
        else:
            bad = between
    return good


def least_decimal(holds: Callable[[Fraction], bool], *, near: float) -> Fraction:
    """The least six-digit decimal at which ``holds`` is true, for false and then true.

    A parameter found by search should be a number that can be written down:
    there are 9 * 10**5 decimals of six significant digits in every decade, so
    the one found is within one part in 10**5 above the real optimum.  ``near``
    is where to start: a bad guess costs time and nothing else.

    >>> least_decimal(lambda x: x * x >= 2, near=9.0)
    Fraction(70711, 50000)
    """

    def enough(index: int) -> bool:
        return holds(_decimal(index))

    start = _index(near)
    if enough(start):
        down = double(lambda step: not enough(start - step), 1, most=start + _MOST_INDEX)
        found = least_integer(
            enough, holds_at=start - down // 2, fails_at=max(start - down, -_MOST_INDEX)
        )
    else:
        up = double(lambda step: enough(start + step), 1, most=_MOST_INDEX - start)
        found = least_integer(
            enough, holds_at=min(start + up, _MOST_INDEX), fails_at=start + up // 2
        )
    # At either end the answer is only what was believed there, and was not tried.
    if not -_MOST_INDEX + 1 < found < _MOST_INDEX:
        raise InvalidParameter(
            "P4",
            "no parameter between 1e-300 and 1e300 meets the target.",
            why="the mechanism would need no noise at all, or nothing but noise.",
            fix="ask for a margin, a confidence or a delta that noise can meet.",
        )
    return _decimal(found)


def _decimal(index: int) -> Fraction:
    """The six-digit decimals in order; number 0 is 1.00000."""
    decade, offset = divmod(index, _PER_DECADE)
    power = decade - _DIGITS + 1
    return Fraction((_FIRST + offset) * 10 ** max(power, 0), 10 ** max(-power, 0))


def _index(near: float) -> int:
    if not math.isfinite(near) or near <= 0:
        return 0
    decade = min(max(math.floor(math.log10(near)), -299), 299)
    offset = round(near / math.pow(10, decade) * _FIRST) - _FIRST
    return decade * _PER_DECADE + min(max(offset, 0), _PER_DECADE - 1)


# --- floats, and doubling ----------------------------------------------------------------------


def bracket(
    holds: Callable[[float], bool], *, fails_at: float, holds_at: float, halvings: int
) -> tuple[float, float]:
    """Two doubles around the threshold: the last one seen to fail, the last one seen to hold.

    For accuracies and first guesses: nothing on the path of a loss may rest on it.

    >>> fails, holds = bracket(lambda x: x * x > 2, fails_at=0.0, holds_at=8.0, halvings=60)
    >>> fails * fails <= 2 < holds * holds and holds - fails < 1e-15
    True
    """
    for _ in range(halvings):
        between = (fails_at + holds_at) / 2
        if holds(between):
            holds_at = between
        else:
            fails_at = between
    return fails_at, holds_at


def double(holds: Callable[[Number], bool], start: Number, *, most: Number | None = None) -> Number:
    """The first of ``start``, twice it, four times it, ... at which ``holds`` is true.

    The first that is ``most`` or more is believed and not tried.

    >>> double(lambda n: n > 100, 3)
    192
    """
    while (most is None or start < most) and not holds(start):
        start = 2 * start
    return start
