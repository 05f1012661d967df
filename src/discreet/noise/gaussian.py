"""Discrete Gaussian draws, for any variance.

Up to sigma = 1024 the law has its own table (:mod:`discreet.noise.table`).  Beyond,
a draw is proposed as z = 2**k y + r (and as -1 - that, for a fair sign): y >= 0
from a table with P(y) proportional to exp(-(2**k y)**2 / 2 sigma**2), r uniform
below 2**k; it is accepted with probability
exp(-(z**2 - (2**k y)**2) / 2 sigma**2), which is never above one and on average
above 0.999.  Acceptance compares uniform digits with a certified enclosure.
Proof: ``docs/proofs/noise.md``, Lemmas 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball
from discreet.exact.numbers import Exact, positive
from discreet.noise.bernoulli import compare_digits, decide_below
from discreet.noise.entropy import random_bits, random_words
from discreet.noise.table import Integers, Table, check_size, draw_array

GREATEST_SIGMA_SQUARED = 2**112
"""Larger variances are refused: their draws would not fit 64-bit integers."""

_TOP_SIGMA = 1024
_SURE_BITS = 32
_KEPT = 16  # variances; a table with its guide takes up to 4 MB


class _Proposal(NamedTuple):
    """Blocks of 2**shift integers, and the table that proposes a block."""

    sigma_squared: Fraction
    shift: int
    blocks: Table


@overload
def discrete_gaussian(sigma_squared: Exact, size: None = None) -> int: ...
@overload
def discrete_gaussian(sigma_squared: Exact, size: int) -> Integers: ...
def discrete_gaussian(sigma_squared: Exact, size: int | None = None) -> int | Integers:
    """Integers z with P(z) exactly proportional to exp(-z**2 / (2 * sigma_squared)).

    ``sigma_squared`` is above 0 and at most 2**112.  With ``size`` an array of so many; without,
    one.

    Exactness: every decision compares uniform digits with a certified enclosure
    of a probability, and draws more digits when they tie.

    >>> draws = discrete_gaussian(400, 100_000)
    >>> 380 < float(draws.var()) < 420
    True
    """
    exact = positive(sigma_squared, name="sigma_squared")
    if exact > GREATEST_SIGMA_SQUARED:
        raise InvalidParameter(
            "P2",
            f"sigma_squared must be at most 2**112, got {quote_value(exact)}.",
            why="draws of a larger variance would saturate 64-bit integers, "
            "and their law with them.",
            fix="measure the value in a coarser unit.",
        )
    if exact <= _TOP_SIGMA**2:
        table = _two_sided(exact)
        return table.draw_one() if size is None else draw_array(check_size(size), table.fill)
    proposal = _proposal(exact)
    if size is None:
        return _draw_one(proposal)
    return draw_array(check_size(size), lambda out: _fill(proposal, out))


def half_sum(sigma_squared: Fraction) -> arb:
    """A ball around the sum over z >= 1 of exp(-z**2 / (2 sigma_squared)), which is not large.

    The sum stops at the first term below the precision in force; from there on
    each term is at most q = exp(-(2 z + 1) / (2 sigma_squared)) times the one
    before, so the rest is at most term / (1 - q).
    """
    smallest = arb(2) ** (-ctx.prec)
    total = arb(0)
    z = 1
    for term in _bell(sigma_squared):
        if term < smallest:
            break
        total += term
        z += 1
    ratio = ball(Fraction(-(2 * z + 1)) / (2 * sigma_squared)).exp()
    return total + (term / (1 - ratio)).union(arb(0))


def _bell(sigma_squared: Fraction) -> Iterator[arb]:
    """Balls around exp(-z**2 / (2 sigma_squared)) for z = 1, 2, ..., two products each."""
    term = ball(-1 / (2 * sigma_squared)).exp()
    step = term * term
    ratio = term * step
    while True:
        yield term
        term *= ratio
        ratio *= step


@lru_cache(maxsize=_KEPT)
def _two_sided(sigma_squared: Fraction) -> Table:
    """The whole law, in the order 0, -1, 1, -2, 2, ..."""

    def cumulatives() -> Iterator[arb]:
        unit = 1 / (1 + 2 * half_sum(sigma_squared))
        below = unit
        for term in _bell(sigma_squared):
            yield below
            mass = term * unit
            below += mass
            yield below
            below += mass

    def value(position: Any) -> Any:
        return (position + 1 >> 1) * (1 - 2 * (position & 1))

    return Table(cumulatives, value)


@lru_cache(maxsize=_KEPT)
def _proposal(sigma_squared: Fraction) -> _Proposal:
    sigma = math.isqrt(math.ceil(sigma_squared)) + 1
    shift = (sigma // _TOP_SIGMA).bit_length()
    scaled = sigma_squared / 4**shift

    def cumulatives() -> Iterator[arb]:
        unit = 1 / (1 + half_sum(scaled))
        below = unit
        for term in _bell(scaled):
            yield below
            below += term * unit

    return _Proposal(sigma_squared, shift, Table(cumulatives, lambda position: position))


def _draw_one(proposal: _Proposal) -> int:
    while True:
        value = _attempt(proposal, proposal.blocks.draw_one())
        if value is not None:
            return value


def _attempt(proposal: _Proposal, block: int) -> int | None:
    """One proposal within ``block``: its value, or None if it is turned down."""
    base = block << proposal.shift
    m = base + random_bits(proposal.shift)
    negative = random_bits(1)
    size = m + negative
    exponent = (size**2 - base**2) / (2 * proposal.sigma_squared)
    digits = random_bits(_SURE_BITS)
    if digits + 1 <= (1 - exponent) * 2**_SURE_BITS or decide_below(digits, exponent, _SURE_BITS):
        return max(-size, -(2**63)) if negative else min(m, 2**63 - 1)
    return None


def _fill(proposal: _Proposal, out: NDArray[Any]) -> None:
    """Propose for every element, then again for the few that were turned down."""
    open_ = np.flatnonzero(~_propose(proposal, out))
    while open_.size:
        drawn = np.empty(open_.size, dtype=np.int64)
        accepted = _propose(proposal, drawn)
        out[open_[accepted]] = drawn[accepted]
        open_ = open_[~accepted]


def _propose(proposal: _Proposal, out: NDArray[Any]) -> NDArray[np.bool_]:
    """Write one proposal into each element of ``out``; tell which are accepted."""
    proposal.blocks.fill(out)
    # Blocks beyond 2**62, 64 standard deviations away, are decided in Python's integers.
    limit = 1 << (62 - proposal.shift)
    far = np.flatnonzero(out >= limit) if out.max() >= limit else np.empty(0, dtype=np.int64)
    far_blocks = out[far].tolist()
    out[far] = 0
    base = out << proposal.shift
    random = random_words(out.size).view(np.int64)
    sign = random >> 63  # 0 or all ones, from the highest digit; the offset, from the lowest ones
    np.add(base, random & ((1 << proposal.shift) - 1), out=out)
    size = out - sign  # abs(z): m for z = m, m + 1 for z = -1 - m
    out ^= sign
    accepted = _accept(proposal, base, size)
    for index, block in zip(far, far_blocks, strict=True):
        value = _attempt(proposal, block)
        accepted[index] = value is not None
        out[index] = value or 0
    return accepted


def _accept(proposal: _Proposal, base: Integers, size: Integers) -> NDArray[np.bool_]:
    """Coins with probability exp(-x), where x is (size**2 - base**2) / 2 sigma**2."""
    squares = (size - base).astype(np.float64)
    squares *= (size + base).astype(np.float64)
    digits = random_words(base.size, np.uint32)
    # Below 1 - x it is below exp(-x); 2**-20 covers the rounding of x, and nothing else rounds up.
    accepted = (
        squares * float((2**32 + 2**12) / (2 * proposal.sigma_squared)) + digits < 2.0**32 - 1
    )
    unsure = np.flatnonzero(~accepted)
    if unsure.size:
        exponents = squares[unsure] * float(1 / (2 * proposal.sigma_squared))
        longer = digits[unsure].astype(np.uint64) << np.uint64(_SURE_BITS)
        longer |= random_words(unsure.size, np.uint32)
        heads, still_open = compare_digits(longer, exponents)
        accepted[unsure] = heads
        for tie in np.flatnonzero(still_open):
            index = unsure[tie]
            gap = int(size[index]) ** 2 - int(base[index]) ** 2
            accepted[index] = decide_below(int(longer[tie]), gap / (2 * proposal.sigma_squared))
    return accepted
