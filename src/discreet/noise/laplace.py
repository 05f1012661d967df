"""Geometric and discrete Laplace draws, for any scale.

A geometric variable is a number whose digits are independent: if
P(z) is proportional to exp(-z / s) on 0, 1, 2, ... and z = 2**k y + r, then
exp(-z / s) = exp(-y / (s / 2**k)) * exp(-r / s), so y is geometric with scale
s / 2**k, r has P(r) proportional to exp(-r / s) below 2**k, and the two are
independent; r splits into bytes in the same way.  Each factor is one table
(:mod:`discreet.noise.table`), and none of them is large.

The two-sided law is a sign and a geometric: z = m or z = -1 - m with weights
1 : exp(-1 / s).  The sign shares the table of the leading digits.
Proof: ``docs/proofs/noise.md``, Lemmas 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball, multiples
from discreet.exact.numbers import Exact, positive
from discreet.noise.entropy import random_words
from discreet.noise.table import Integers, Table, check_size, draw_array

GREATEST_SCALE = 2**56
"""Larger scales are refused: their draws would not fit 64-bit integers."""

_TOP_SCALE = 32
_DIGIT_BITS = 8
_KEPT = 32  # scales; a table with its guide takes up to 2.2 MB, one of a digit 0.2 MB
_LEAST, _MOST = -(2**63), 2**63 - 1


class _Digits(NamedTuple):
    """A table for the leading part, then one for each lower digit with its number of bits."""

    top: Table
    lower: tuple[tuple[Table, int], ...]


@overload
def geometric(scale: Exact, size: None = None) -> int: ...
@overload
def geometric(scale: Exact, size: int) -> Integers: ...
def geometric(scale: Exact, size: int | None = None) -> int | Integers:
    """Integers z >= 0 with P(z) exactly proportional to exp(-z / scale).

    ``scale`` is above 0 and at most 2**56.  With ``size`` an array of so many; without, one.

    >>> bool((geometric("2.5", 1000) >= 0).all())
    True
    """
    digits = _one_sided(_check_scale(scale))
    return (
        _draw_one(digits)
        if size is None
        else draw_array(check_size(size), lambda out: _fill(digits, out))
    )


@overload
def discrete_laplace(scale: Exact, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Exact, size: int) -> Integers: ...
def discrete_laplace(scale: Exact, size: int | None = None) -> int | Integers:
    """Integers z with P(z) exactly proportional to exp(-abs(z) / scale).

    ``scale`` is above 0 and at most 2**56.  With ``size`` an array of so many; without, one.

    Exactness: every decision compares uniform digits with a certified enclosure
    of a cumulative probability, and draws more digits when they tie.

    >>> draws = discrete_laplace(20, 100_000)
    >>> abs(float(draws.mean())) < 2
    True
    """
    digits = _two_sided(_check_scale(scale))
    return (
        _draw_one(digits)
        if size is None
        else draw_array(check_size(size), lambda out: _fill(digits, out))
    )


def _check_scale(scale: Exact) -> Fraction:
    exact = positive(scale, name="scale")
    if exact > GREATEST_SCALE:
        raise InvalidParameter(
            "P2",
            f"scale must be at most 2**56, got {quote_value(exact)}.",
            why="draws of a larger scale would saturate 64-bit integers, and their law with them.",
            fix="measure the value in a coarser unit.",
        )
    return exact


def _draw_one(digits: _Digits) -> int:
    if not digits.lower:
        return digits.top.draw_one()
    first, *others = random_words(1 + len(digits.lower))
    value = digits.top.at(first)
    sign = -(value < 0)  # all ones for a negative draw, whose digits are the complement's
    for word, (table, bits) in zip(others, digits.lower, strict=True):
        value = value << bits | (table.at(word) ^ sign & ((1 << bits) - 1))
    return min(max(value, _LEAST), _MOST)


def _fill(digits: _Digits, out: NDArray[Any]) -> None:
    digits.top.fill(out)
    if not digits.lower:
        return
    bound = 1 << (63 - sum(bits for _, bits in digits.lower))
    high, low = out >= bound, out < -bound
    sign = out >> 63
    digit = np.empty_like(out)
    for table, bits in digits.lower:
        table.fill(digit)
        digit ^= sign
        digit &= (1 << bits) - 1
        out <<= bits
        out |= digit
    out[high], out[low] = _MOST, _LEAST


@lru_cache(maxsize=_KEPT)
def _one_sided(scale: Fraction) -> _Digits:
    shift = _shift(scale)
    step = Fraction(2**shift) / scale

    def cumulatives() -> Iterator[arb]:
        at = multiples(-step)
        position = 0
        while True:
            position += 1
            yield -at(position).expm1()

    return _Digits(Table(cumulatives, lambda position: position), _lower(scale, shift))


@lru_cache(maxsize=_KEPT)
def _two_sided(scale: Fraction) -> _Digits:
    """The leading part in the order 0, -1, 1, -2, 2, ...: y for z >= 0, -1 - y for z < 0."""
    shift = _shift(scale)
    step = Fraction(2**shift) / scale

    def cumulatives() -> Iterator[arb]:
        nonnegative = 1 / (1 + ball(-1 / scale).exp())
        inside = -ball(-step).expm1()
        parts = 1 - inside * nonnegative, 1 - inside
        at = multiples(-step)
        position = 0
        while True:
            beyond = at(position).exp()
            yield 1 - beyond * parts[0]
            yield 1 - beyond * parts[1]
            position += 1

    def value(position: Any) -> Any:
        return position >> 1 ^ -(position & 1)

    return _Digits(Table(cumulatives, value), _lower(scale, shift))


def _shift(scale: Fraction) -> int:
    """How many low bits to draw apart, so that the leading part has a scale of at most 32."""
    return max(0, (-(-scale // _TOP_SCALE) - 1).bit_length())


def _lower(scale: Fraction, shift: int) -> tuple[tuple[Table, int], ...]:
    lower = []
    while shift > 0:
        bits = min(_DIGIT_BITS, shift)
        shift -= bits
        lower.append((_digit(Fraction(2**shift) / scale, bits), bits))
    return tuple(lower)


@lru_cache(maxsize=8 * _KEPT)
def _digit(step: Fraction, bits: int) -> Table:
    """Digits d < 2**bits with P(d) proportional to exp(-d * step)."""

    def cumulatives() -> Iterator[arb]:
        at = multiples(-step)
        whole = at(2**bits).expm1()
        for position in range(1, 2**bits):
            yield at(position).expm1() / whole

    return Table(cumulatives, lambda position: position)
