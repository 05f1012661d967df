"""Transcendental numbers between certified bounds.

Exponentials, logarithms and roots are bounded by Arb's ball arithmetic
(``python-flint``): a ball always contains the true value, at any precision, so
a bound read off its end is certified.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from discreet.errors import InvalidParameter, shown
from discreet.exact.numbers import nonnegative, positive

_START_BITS = 64
_MOST_BITS = 1 << 22
_MOST_EXPONENT = 1 << 20

_arb_precision = threading.RLock()


# A child forked while another thread computes must not inherit a lock that nobody will release.
os.register_at_fork(
    before=_arb_precision.acquire,
    after_in_parent=_arb_precision.release,
    after_in_child=_arb_precision.release,
)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute balls with ``bits`` of precision.

    Arb's precision is one setting for the whole process, so the block is
    exclusive.  (A ball computed at the wrong precision would still contain
    the true value; it would only be wider.)
    """
    with _arb_precision:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: Fraction | int) -> arb:
    """A ball that contains ``value``, at the precision in force."""
    number = Fraction(value)
    return arb(fmpq(number.numerator, number.denominator))


def _dyadic(end: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in end.man_exp())
    if abs(exponent) > 2 * _MOST_BITS:
        raise ArithmeticError("a bound too large or too small to be written out")
    return Fraction(mantissa) * Fraction(2) ** exponent


def ends(enclosure: arb) -> tuple[Fraction, Fraction]:
    """The least and the greatest number of a finite ball, exactly."""
    middle, radius = _dyadic(enclosure.mid()), _dyadic(enclosure.rad())
    return middle - radius, middle + radius


def enclose(function: Callable[[], Any], *, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Lower and upper bounds of ``function()``, at most ``2**-bits`` apart relative to it.

    ``function`` computes with balls and is called again with doubled precision
    until its ball is narrow enough, or is exactly zero.

    >>> low, high = enclose(lambda: ball(Fraction(2)).sqrt())
    >>> low ** 2 < 2 < high ** 2 and high - low < Fraction(1, 10 ** 18)
    True
    """
    working = max(_START_BITS, bits + 16)
    while working <= _MOST_BITS:
        with precision(working):
            value = function()
            if value.is_finite():
                low, high = ends(value)
                if (high - low) * 2**bits <= max(abs(low), abs(high)):
                    return low, high
        working *= 2
    raise ArithmeticError("the enclosure does not narrow: the value is not distinguishable from 0")


def floor_scaled(function: Callable[[], Any], bits: int) -> int:
    """``floor(x * 2**bits)`` for the irrational (or dyadic) ``x`` that ``function`` encloses."""
    working = bits + 64
    while working <= _MOST_BITS:
        with precision(working):
            scaled = (function() * arb(2) ** bits).floor()
            whole_part = scaled.unique_fmpz() if scaled.is_finite() else None
        if whole_part is not None:
            return int(whole_part)
        working *= 2
    raise ArithmeticError("the enclosure does not narrow: the value lies on the grid")


def exp_bounds(x: Fraction, *, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Certified bounds of e**x; below e**(-2**20) they are 0 and 2**(-2**20).

    >>> low, high = exp_bounds(Fraction(2))
    >>> float(low), float(high)
    (7.38905609893065, 7.38905609893065)
    """
    if x > _MOST_EXPONENT:
        raise InvalidParameter(
            "P2",
            f"the exponent must be at most 2**20, got {shown(x)}.",
            why="a loss of e to this power protects nobody, and its digits would fill the memory.",
            fix="use a smaller loss.",
        )
    if x < -_MOST_EXPONENT:
        return Fraction(0), Fraction(1, 2**_MOST_EXPONENT)
    return enclose(lambda: ball(x).exp(), bits=bits)


def log_bounds(x: Fraction, *, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Certified bounds of ln x, for x > 0."""
    if x == 1:
        return Fraction(0), Fraction(0)
    return enclose(lambda: ball(positive(x, name="x")).log(), bits=bits)


def sqrt_bounds(x: Fraction, *, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Certified bounds of the square root of x, for x >= 0; equal when it is rational.

    >>> sqrt_bounds(Fraction(9, 4))
    (Fraction(3, 2), Fraction(3, 2))
    """
    number = nonnegative(x, name="x")
    over, under = math.isqrt(number.numerator), math.isqrt(number.denominator)
    if over**2 == number.numerator and under**2 == number.denominator:
        return Fraction(over, under), Fraction(over, under)
    return enclose(lambda: ball(number).sqrt(), bits=bits)


def exp_up(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at least e**x, and at most ``2**-bits`` of it above."""
    return exp_bounds(x, bits=bits)[1]


def exp_down(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at most e**x."""
    return exp_bounds(x, bits=bits)[0]


def log_up(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at least ln x."""
    return log_bounds(x, bits=bits)[1]


def log_down(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at most ln x."""
    return log_bounds(x, bits=bits)[0]


def sqrt_up(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at least the square root of x."""
    return sqrt_bounds(x, bits=bits)[1]


def sqrt_down(x: Fraction, *, bits: int = 64) -> Fraction:
    """A number at most the square root of x."""
    return sqrt_bounds(x, bits=bits)[0]
