"""Unary encodings: one bit for each answer, each bit randomised on its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw, ProductLaw
from discreet.exact.numbers import Exact
from discreet.local.coins import coins
from discreet.local.frequencies import Doubles, Integers
from discreet.local.odds import root_odds
from discreet.local.oracle import FrequencyOracle, chunks
from discreet.local.packed import check_packed, count_bits, unpack, width
from discreet.noise import bernoulli

_CELLS = 1 << 22  # bits made at a time


@dataclass(frozen=True, init=False, repr=False)
class Unary(FrequencyOracle):
    """Report one bit for each answer: whether it is yours, randomised.

    There are bits 0 ... d - 1 for d = ``categories``; all together cost ``epsilon``. The two kinds
    below are ``optimised`` and not.

    Definition:
        The bit of the true answer is 1 with probability p, every other one with
        probability q, independently.  Optimised: p = 1/2 and q = 1 / (r + 1).
        Symmetric: p = s / (s + 1) and q = 1 / (s + 1) with s**2 <= r.

    Guarantee:
        p (1 - q) / (q (1 - p)) <= e**epsilon: changing the answer changes two
        bits, so the report is epsilon-differentially private.

    Accuracy:
        Optimised: variance 4 r n / (r - 1)**2 for a rare answer, however many
        answers there are.  Symmetric: n s / (s - 1)**2.  Bits are independent, so
        estimates are uncorrelated.

    Reference:
        Erlingsson, Pihur and Korolova (2014), RAPPOR; Wang, Blocki, Li and Jha
        (2017), 4.3 and 4.4.

    Example:
        >>> bits = Unary(12, epsilon="3/2")
        >>> bits.release(3).shape, bits.release([3, 7, 11]).shape        # packed in bytes
        ((2,), (3, 2))
        >>> round(bits.variance(respondents=1000)), bits.report_bits
        (1479, 12)
        >>> round(Unary(12, epsilon="3/2", optimised=False).variance(respondents=1000))
        1697
    """

    most_categories: ClassVar[int] = 2**16
    optimised: bool

    def __init__(self, categories: int, *, epsilon: Exact, optimised: bool = True) -> None:
        super().__init__(categories, epsilon=epsilon)
        object.__setattr__(self, "optimised", bool(optimised))

    def __repr__(self) -> str:
        text = super().__repr__()
        return text if self.optimised else f"{text[:-1]}, optimised=False)"

    @cached_property
    def inside(self) -> Fraction:
        """The probability that the bit of the true answer is 1."""
        if self.optimised:
            return Fraction(1, 2)
        root = root_odds(self.epsilon)
        return root / (root + 1)

    @cached_property
    def outside(self) -> Fraction:
        """The probability that another bit is 1."""
        return 1 / (self.odds + 1) if self.optimised else 1 - self.inside

    @property
    def both(self) -> tuple[Fraction, Fraction]:
        """Bits are independent."""
        return self.inside * self.outside, self.outside**2

    @property
    def report_bits(self) -> int:
        """One for each answer."""
        return self.categories

    def law(self, value: Any) -> ProductLaw:
        """The exact law of the bits of one report on ``value``."""
        code = self.code(value)
        own, other = (
            FiniteLaw.exact([(0, 1 - chance), (1, chance)])
            for chance in (self.inside, self.outside)
        )
        return ProductLaw(tuple(own if one == code else other for one in range(self.categories)))

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """The bits of all other answers, then that of the true one in its place.

        ``codes`` are the true answers.
        """
        out = np.empty((codes.size, width(self.categories)), dtype=np.uint8)
        if codes.size == 1:  # in the order in which the page of a survey draws them
            bits = bernoulli(self.outside, self.categories).astype(np.uint8)
            bits[codes[0]] = bernoulli(self.inside)
            out[0] = np.packbits(bits)
            return out
        for part in chunks(codes.size, max(1, _CELLS // self.categories)):
            block = coins(self.outside, (out[part].shape[0], self.categories))
            block[np.arange(len(block)), codes[part]] = bernoulli(self.inside, len(block))
            out[part] = np.packbits(block, axis=1)
        return out

    def check(self, reports: Any) -> NDArray[Any]:
        """The ``reports``, each a row of bytes, its last bits 0."""
        return check_packed(self, reports)

    def support(self, reports: Any) -> Integers:
        """How many of ``reports`` have each bit."""
        return count_bits(reports, self.categories)

    def indicator(self, reports: Any) -> NDArray[np.bool_]:
        """For each of ``reports``, whether it supports each answer."""
        return unpack(reports, self.categories).view(np.bool_)

    def query_reach(self, weights: Doubles) -> float:
        """Bits are independent of each other: each moves a query by its one of ``weights``."""
        return float(np.abs(weights).max()) / float(self.inside - self.outside)


__all__ = ["Unary"]
