"""Direct encoding: k-ary randomized response as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw
from discreet.local.frequencies import Doubles, Integers
from discreet.local.oracle import FrequencyOracle, check_whole
from discreet.mechanisms import TwoCoinResponse


@dataclass(frozen=True, init=False, repr=False)
class Direct(FrequencyOracle):
    """Report the answer itself, or another one.

    The answers are 0 ... d - 1 for d = ``categories``, and a report costs ``epsilon``.

    Definition:
        M(x) = x with probability r / (r + d - 1), and each other answer with
        probability 1 / (r + d - 1), where r <= e**epsilon are the rational odds.
        Drawn as ``mechanisms.TwoCoinResponse`` with coins of these odds.

    Guarantee:
        epsilon-differentially private for the respondent, who changes one answer
        into any other; nobody is trusted.  At least 99 % of epsilon is attained.

    Accuracy:
        The estimate of a rare answer has variance n (d - 2 + r) / (r - 1)**2; the
        least of all oracles for d < 3 r + 2.

    Reference:
        Warner (1965); Kairouz, Oh and Viswanath (2014); DMNS Example 1; DR 3.2.

    Example:
        >>> direct = Direct(5, epsilon="3/2")
        >>> direct.loss.epsilon, direct.report_bits
        (Fraction(3, 2), 3)
        >>> round(direct.variance(respondents=1000))
        617
        >>> direct.release(3) in range(5)
        True
    """

    @cached_property
    def response(self) -> TwoCoinResponse:
        """The coins that are tossed: a truthful one, else an answer at random."""
        share = (self.odds - 1) / (self.odds - 1 + self.categories)
        return TwoCoinResponse(truth=share, categories=self.categories)

    @property
    def inside(self) -> Fraction:
        """The probability of reporting the truth."""
        return self.odds / (self.odds + self.categories - 1)

    @property
    def outside(self) -> Fraction:
        """The probability of reporting one other answer."""
        return 1 / (self.odds + self.categories - 1)

    @property
    def both(self) -> tuple[Fraction, Fraction]:
        """A report is one answer: it never supports two."""
        return Fraction(0), Fraction(0)

    @property
    def report_bits(self) -> int:
        """One of the answers."""
        return (self.categories - 1).bit_length()

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of the report of one respondent whose answer is ``value``: rational."""
        return self.response.law(self.code(value))

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """Of each of ``codes`` the truth is kept by a coin; another answer is drawn in any case."""
        reports: Integers = self.response.release(codes)
        return reports

    def check(self, reports: Any) -> NDArray[Any]:
        """The ``reports``, each of which is an answer."""
        return check_whole(self, reports, below=self.categories)

    def support(self, reports: Any) -> Integers:
        """How often each answer is among ``reports``."""
        return np.bincount(reports, minlength=self.categories).astype(np.int64)

    def indicator(self, reports: Integers) -> NDArray[np.bool_]:
        """For each of ``reports``, whether it supports each answer."""
        return np.asarray(reports[:, None] == np.arange(self.categories))

    @property
    def sums_to_all(self) -> bool:
        """Every report is one answer."""
        return True

    def query_reach(self, weights: Doubles) -> float:
        """A report moves a query by one of its ``weights`` instead of another."""
        return float(np.ptp(weights)) / float(self.inside - self.outside)


__all__ = ["Direct"]
