"""Coins: with a rational probability, and with probability exactly exp(-x).

Proof: ``docs/proofs/noise.md``, Lemmas 1, 5 and 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.balls import RELATIVE, Doubles, ball, exp_negative, nearest_double, precision
from discreet.exact.numbers import Exact, nonnegative, proportion
from discreet.noise.entropy import random_bits, random_words
from discreet.noise.table import CHUNK, Integers, Table, check_size, draw_array

_BITS = 64
_ONE = float(2**_BITS)


@overload
def bernoulli(p: Exact, size: None = None) -> int: ...
@overload
def bernoulli(p: Exact, size: int) -> Integers: ...
def bernoulli(p: Exact, size: int | None = None) -> int | Integers:
    """Ones with probability exactly ``p``, zeros otherwise.

    With ``size`` an array of so many; without, one.

    Exactness: 64 uniform digits are compared with those of ``p``; where they
    agree, what is left of ``p`` is a rational again and a fresh coin is tossed
    with that probability.

    >>> int(bernoulli("2/3", 90_000).sum()) in range(59_000, 61_000)
    True
    """
    exact = proportion(p, name="p", closed=True)
    if size is None:
        return _rational_coin(random_bits(_BITS), exact)
    digits = exact.numerator * 2**_BITS // exact.denominator

    def fill(out: NDArray[Any]) -> None:
        if digits == 2**_BITS:
            out[:] = 1
            return
        drawn = random_words(out.size)
        out[:] = drawn < np.uint64(digits)
        for tie in np.flatnonzero(drawn == np.uint64(digits)):
            out[tie] = _rational_coin(digits, exact)

    return draw_array(check_size(size), fill)


def _rational_coin(drawn: int, p: Fraction) -> int:
    """The coin whose first 64 uniform digits are ``drawn``."""
    while p:  # with nothing left of p, the digits of u are not below it
        scaled = p * 2**_BITS
        digits = scaled.numerator // scaled.denominator
        if drawn != digits:
            return int(drawn < digits)
        p = scaled - digits
        drawn = random_bits(_BITS)
    return 0


@overload
def bernoulli_exp(x: Exact, size: None = None) -> int: ...
@overload
def bernoulli_exp(x: Exact, size: int) -> Integers: ...
@overload
def bernoulli_exp(
    x: list[Exact] | tuple[Exact, ...] | NDArray[Any], size: int | None = None
) -> Integers: ...
def bernoulli_exp(x: Any, size: int | None = None) -> int | Integers:
    """Ones with probability exactly exp(-x), for ``x`` >= 0: one x, or one for each element.

    With ``size`` an array of so many; without, as many as there are x.

    Exactness: 64 uniform digits are compared with a certified enclosure of
    exp(-x); when it contains them, more digits are drawn and the enclosure is
    narrowed.

    >>> [bernoulli_exp(x) for x in (0, 1000)]
    [1, 0]
    >>> bernoulli_exp(["0", "1000", "0/7"]).tolist()
    [1, 0, 1]
    """
    if isinstance(x, np.ndarray | list | tuple):
        return _toss_each(x, size)
    exact = nonnegative(x, name="x")
    if exact == 0:
        return 1 if size is None else np.ones(check_size(size), dtype=np.int64)
    table = _exponential_coin(exact)
    return table.draw_one() if size is None else draw_array(check_size(size), table.fill)


@lru_cache(maxsize=128)
def _exponential_coin(x: Fraction) -> Table:
    def cumulatives() -> Iterator[arb]:
        yield ball(-x).exp()

    return Table(cumulatives, lambda position: 1 - position)


def _toss_each(x: Any, size: int | None) -> Integers:
    numbers: NDArray[Any] = x if isinstance(x, np.ndarray) else np.array(x, dtype=object)
    if numbers.ndim != 1 or (size is not None and check_size(size) != numbers.size):
        raise InvalidParameter(
            "P4",
            "x must be one number, or a flat array with one number for each of the size draws.",
            why="each draw has one probability.",
            fix="leave size out, or make x one-dimensional.",
        )
    if numbers.dtype.kind in "iu":
        if numbers.size and int(numbers.min()) < 0:
            nonnegative(-1, name="every x", secret=True)
        return toss_coins(numbers.astype(np.float64), lambda i: Fraction(int(numbers[i])))
    exact = [nonnegative(number, name="every x", secret=True) for number in numbers.tolist()]
    return toss_coins(np.array([nearest_double(number) for number in exact]), exact.__getitem__)


def toss_coins(x: Doubles, exact: Callable[[int], Fraction]) -> Integers:
    """Ones with probability exp(-exact(i)), where ``x[i]`` is ``exact(i)`` up to rounding.

    How much rounding is said at :func:`discreet.exact.balls.exp_negative`.
    """
    out = np.empty(x.size, dtype=np.int64)
    for start in range(0, x.size, CHUNK):
        part = slice(start, start + CHUNK)
        drawn = random_words(x[part].size)
        heads, open_ = compare_digits(drawn, x[part])
        out[part] = heads
        for tie in np.flatnonzero(open_):
            out[start + tie] = decide_below(int(drawn[tie]), exact(start + int(tie)))
    return out


def compare_digits(drawn: NDArray[Any], x: Doubles) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which u = 0.drawn... are certainly below exp(-x), and which are still open (Lemma 5)."""
    target = exp_negative(x) * _ONE
    digits = drawn.astype(np.float64)  # within 2**-53; the digits not drawn add less than one
    slack = target * (2 * RELATIVE) + 2.0
    heads = digits + slack < target
    return heads, ~heads & (digits <= target + slack)


def decide_below(prefix: int, x: Fraction, bits: int = _BITS) -> int:
    """Whether a uniform u that begins with the digits ``prefix`` is below exp(-x), exactly."""
    while True:
        with precision(bits + _BITS):
            scaled = ball(-x).exp() * arb(2) ** bits
            if scaled <= prefix:
                return 0
            if scaled >= prefix + 1:
                return 1
        prefix = prefix << _BITS | random_bits(_BITS)
        bits += _BITS
