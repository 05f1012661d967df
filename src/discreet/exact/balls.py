"""Transcendental numbers between certified bounds.

Exponentials, logarithms and roots are bounded by Arb's ball arithmetic
(``python-flint``): a ball always contains the true value, at any precision, so
a bound read off its end is certified.

Whole arrays of exp(-x) are enclosed in double precision.  Only operations that IEEE 754
rounds correctly are used (+, -, *, comparison), so the error bound there is a theorem and
does not rest on any mathematics library.  Write x = i + j/256 + f with integers i and
0 <= j < 256 and 0 <= f < 1/256.  The factors exp(-i) and exp(-j/256) come from tables
whose entries ball arithmetic certifies; exp(-f) is a polynomial of degree 5.
Proof: ``docs/proofs/noise.md``, Lemma 5.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, quote_value
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


def multiples(step: Fraction) -> Callable[[int], arb]:
    """Balls around whole multiples of ``step``, as :func:`ball` makes them, for many of them.

    >>> multiples(Fraction(2, 7))(-5).overlaps(ball(Fraction(-10, 7)))
    True
    """
    unit = fmpq(step.numerator, step.denominator)
    return lambda times: arb(unit * times)


def _dyadic(end: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in end.man_exp())
    if abs(exponent) > 2 * _MOST_BITS:
        raise ArithmeticError("a bound too large or too small to be written out")
    return Fraction(mantissa) * Fraction(2) ** exponent


def ends(enclosure: arb) -> tuple[Fraction, Fraction]:
    """The least and the greatest number of a finite ball, exactly."""
    middle, radius = _dyadic(enclosure.mid()), _dyadic(enclosure.rad())
    return middle - radius, middle + radius


def enclose(function: Callable[[], arb], *, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Lower and upper bounds of ``function()``, at most ``2**-bits`` apart relative to it.

    ``function`` computes with balls and is called again with doubled precision
    until its ball is narrow enough, or is exactly zero.

    >>> low, high = enclose(lambda: ball(Fraction(2)).sqrt())
    >>> low ** 2 < 2 < high ** 2 and high - low < Fraction(1, 10 ** 18)
    True
    """
    for working in precisions(bits):
        with precision(working):
            found = narrow_ends(function(), bits)
        if found is not None:
            return found
    raise describe_too_wide()


def precisions(bits: int) -> Iterator[int]:
    """How many bits to compute with, more and more of them, for a relative ``2**-bits``.

    With :func:`narrow_ends` the loop of :func:`enclose`, for whoever writes it out.
    """
    working = max(_START_BITS, bits + 16)
    while working <= _MOST_BITS:
        yield working
        working *= 2


def narrow_ends(enclosure: arb, bits: int) -> tuple[Fraction, Fraction] | None:
    """The ends of a ball that are at most ``2**-bits`` apart relative to it; else None."""
    if not enclosure.is_finite():
        return None
    low, high = ends(enclosure)
    return (low, high) if (high - low) * 2**bits <= max(abs(low), abs(high)) else None


def describe_too_wide() -> ArithmeticError:
    """What is raised when no precision is enough."""
    return ArithmeticError("the enclosure does not narrow: the value is not distinguishable from 0")


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
            f"the exponent must be at most 2**20, got {quote_value(x)}.",
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


# --- arrays of doubles ---------------------------------------------------------------------------

Doubles = NDArray[np.float64]

UNDERFLOW = 700
"""From here on exp(-x) is only bounded: it lies between 0 and 2**-1000."""

RELATIVE = 2.0**-40
"""``exp_negative`` is within this relative distance, if its argument is ``nearest_double`` to x."""

_STEPS = 256
_COEFFICIENTS = (-1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0, 1.0)
_GREATEST = float(np.nextafter(UNDERFLOW, 0))


def nearest_double(x: Fraction) -> float:
    """The double nearest to ``x``, or the greatest one."""
    try:
        return float(x)
    except OverflowError:
        return sys.float_info.max


@cache
def _tables() -> tuple[Doubles, Doubles]:
    wholes = [_nearby(Fraction(i)) for i in range(UNDERFLOW)]
    parts = [_nearby(Fraction(j, _STEPS)) for j in range(_STEPS)]
    return np.array(wholes), np.array(parts)


def _nearby(x: Fraction) -> float:
    """A double certified to be within a relative 2**-52 of exp(-x)."""
    with precision(128):
        true = ball(-x).exp()
        double = float(true.mid())
        if not abs(arb(double) - true) < true * arb(2) ** -52:
            raise ArithmeticError("a table entry of exp could not be certified")
    return double


def exp_negative(x: Doubles) -> Doubles:
    """exp(-x) for doubles x >= 0, within ``RELATIVE``; 0 where x >= 700.

    If each double d stands for a real number x with abs(d - x) at most
    2**-50 * max(x, 1), or both are at least 700, the result is within
    ``RELATIVE`` of exp(-x) as well (and 2**-1000 where it is 0).

    >>> float(exp_negative(np.array([2.5]))[0])
    0.0820849986238988
    """
    wholes, parts = _tables()
    inside: Doubles = np.minimum(x, _GREATEST)
    steps = (inside * _STEPS).astype(np.int64)
    rest = inside - steps * (1 / _STEPS)  # exact: a multiple of the last place of x, below 1/256
    series: Doubles = np.full_like(rest, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        series *= rest
        series += coefficient
    series *= wholes[steps >> 8]
    series *= parts[steps & (_STEPS - 1)]
    series[x >= UNDERFLOW] = 0.0
    return series
