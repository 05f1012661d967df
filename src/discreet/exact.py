"""Numbers without rounding, and rounding on purpose.

Every parameter enters as a :class:`fractions.Fraction`.  A float is taken as
its shortest decimal: ``0.1`` means one tenth, as the person who typed it meant,
and not the double 0.1000000000000000055.  Transcendental functions are bounded
by Arb's ball arithmetic (``python-flint``): a ball always contains the true
value, at any precision, so a bound read off its end is certified.

Losses round up, accuracies round down; a function here says which in its name.
"""

from __future__ import annotations

import math
import numbers
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from discreet.errors import InvalidParameter, shown

Exact = int | float | str | Fraction | Decimal
"""What a parameter may be given as."""

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?\d+/0*[1-9]\d*", re.ASCII)
_MOST_DIGITS = 1000

_START_BITS = 64
_MOST_BITS = 1 << 22
_MOST_EXPONENT = 1 << 20


def fraction(value: Exact, *, name: str = "value", secret: bool = False) -> Fraction:
    """The exact number meant by ``value``; a ``secret`` one is not quoted by the refusal.

    >>> fraction(0.1), fraction("1e-3"), fraction("2/3"), fraction(Decimal("0.25"))
    (Fraction(1, 10), Fraction(1, 1000), Fraction(2, 3), Fraction(1, 4))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    text = _decimal_text(value)
    if len(text) <= _MOST_DIGITS and (_DECIMAL.fullmatch(text) or _RATIO.fullmatch(text)):
        return Fraction(text)
    raise InvalidParameter(
        "P1",
        f"{name} must be a finite number" + ("." if secret else f", got {shown(value)}."),
        why="a guarantee is computed from exact numbers, and this is not one.",
        fix=f"pass {name} as an int, a Fraction, a Decimal or a decimal string such as '0.25'.",
    )


def _decimal_text(value: object) -> str:
    """The digits that a string, a Decimal or a float stands for."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Decimal | np.floating):  # a numpy float prints its own shortest decimal
        return str(value)
    return float.__repr__(value) if isinstance(value, float) else ""


def positive(value: Exact, *, name: str) -> Fraction:
    """``value`` exactly, refused unless greater than zero."""
    number = fraction(value, name=name)
    if number <= 0:
        raise InvalidParameter(
            "P2",
            f"{name} must be greater than 0, got {shown(number)}.",
            why="at zero or below, the noise or the guarantee it stands for does not exist.",
            fix=f"pass a positive {name}.",
        )
    return number


def nonnegative(value: Exact, *, name: str, secret: bool = False) -> Fraction:
    """``value`` exactly, refused if less than zero; a ``secret`` one is not quoted."""
    number = fraction(value, name=name, secret=secret)
    if number < 0:
        raise InvalidParameter(
            "P2",
            f"{name} must not be negative" + ("." if secret else f", got {shown(number)}."),
            why="a negative amount would cancel what other releases cost.",
            fix=f"pass 0 or a positive {name}.",
        )
    return number


def proportion(value: Exact, *, name: str, closed: bool = False) -> Fraction:
    """``value`` exactly, refused unless strictly between 0 and 1 (``closed`` admits the ends)."""
    number = fraction(value, name=name)
    inside = 0 <= number <= 1 if closed else 0 < number < 1
    if not inside:
        between = "from 0 to 1" if closed else "strictly between 0 and 1"
        raise InvalidParameter(
            "P2",
            f"{name} must be {between}, got {shown(number)}.",
            why=f"{name} is a probability.",
            fix=f"pass {name} as a probability such as '0.05'.",
        )
    return number


def whole(value: object, *, name: str, least: int = 0) -> int:
    """``value`` as an ``int``, refused unless a whole number of at least ``least``."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise InvalidParameter(
        "P2",
        f"{name} must be a whole number of at least {least}, got {shown(value)}.",
        why="it counts things.",
        fix=f"pass {name} as an int of at least {least}.",
    )


# --- balls ---------------------------------------------------------------------------------

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


# --- rounding on purpose -------------------------------------------------------------------


def up(x: Fraction, unit: Fraction) -> Fraction:
    """The least multiple of ``unit`` > 0 that is at least ``x``.

    >>> up(Fraction(7, 10), Fraction(1, 4))
    Fraction(3, 4)
    """
    return math.ceil(x / positive(unit, name="unit")) * unit


def down(x: Fraction, unit: Fraction) -> Fraction:
    """The greatest multiple of ``unit`` > 0 that is at most ``x``."""
    return -up(-x, unit)


def float_up(x: Fraction) -> float:
    """The least double that is at least ``x``.

    >>> Fraction(float_up(Fraction(1, 10))) >= Fraction(1, 10)
    True
    """
    try:
        nearest = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.nextafter(math.inf, 0)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def float_down(x: Fraction) -> float:
    """The greatest double that is at most ``x``."""
    return 0.0 - float_up(-x)


def decimal_up(x: Fraction, digits: int = 6) -> str:
    """The least decimal of ``digits`` significant digits that is at least ``x``.

    >>> decimal_up(Fraction(1, 3), 4), decimal_up(Fraction(1, 4)), decimal_up(Fraction(0))
    ('0.3334', '0.25', '0')
    """
    if x == 0:
        return "0"
    place = _magnitude(abs(x)) - whole(digits, name="digits", least=1) + 1
    mantissa = math.ceil(x / Fraction(10) ** place)
    while mantissa % 10 == 0:
        mantissa, place = mantissa // 10, place + 1
    # Built from its digits: arithmetic on Decimals would round to the caller's context.
    exact = Decimal((int(x < 0), tuple(map(int, str(abs(mantissa)))), place))
    text = f"{exact:f}"
    return text if len(text) <= digits + 8 else f"{exact:e}"


def _magnitude(x: Fraction) -> int:
    """The m with 10**m <= x < 10**(m + 1)."""
    bits = x.numerator.bit_length() - x.denominator.bit_length()
    m = math.floor(bits * math.log10(2)) - 1
    while Fraction(10) ** (m + 1) <= x:
        m += 1
    return m


__all__ = [
    "Exact",
    "ball",
    "decimal_up",
    "down",
    "enclose",
    "ends",
    "exp_bounds",
    "exp_down",
    "exp_up",
    "float_down",
    "float_up",
    "floor_scaled",
    "fraction",
    "log_bounds",
    "log_down",
    "log_up",
    "nonnegative",
    "positive",
    "precision",
    "proportion",
    "sqrt_bounds",
    "sqrt_down",
    "sqrt_up",
    "up",
    "whole",
]
