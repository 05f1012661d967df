"""Certified enclosures of exp(-x) in double precision, for whole arrays at once.

Only operations that IEEE 754 rounds correctly are used (+, -, *, comparison),
so the error bound below is a theorem and does not rest on any mathematics
library.  Write x = i + j/256 + f with integers i and 0 <= j < 256 and
0 <= f < 1/256.  The factors exp(-i) and exp(-j/256) come from tables whose
entries ball arithmetic certifies; exp(-f) is a polynomial of degree 5.
Proof: ``docs/proofs/noise.md``, Lemma 5.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.exact.balls import ball, precision

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
