"""What every frequency oracle shares: one price, two probabilities, and estimates.

A report *supports* a set of answers.  It supports the respondent's answer with
probability ``inside`` and every other answer with probability ``outside``; a report
says nothing else about the answer (Wang, Blocki, Li and Jha 2017, "Locally
differentially private protocols for frequency estimation": pure protocols).
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import Law
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive, whole
from discreet.local.frequencies import Doubles, Frequencies, Integers
from discreet.local.odds import check_categories, check_epsilon, odds

CHUNK = 1 << 14
"""Reports made or read at a time, so that their bits stay in a core's cache."""


@dataclass(frozen=True, init=False, repr=False)
class FrequencyOracle(ABC):
    """A randomizer of one answer out of ``categories``, numbered from 0, for ``epsilon``."""

    most_categories: ClassVar[int] = 2**20
    categories: int
    epsilon: Fraction

    def __init__(self, categories: int, *, epsilon: Exact) -> None:
        count = check_categories(categories, most=self.most_categories)
        object.__setattr__(self, "categories", count)
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))

    def __repr__(self) -> str:
        price = int(self.epsilon) if self.epsilon.denominator == 1 else repr(str(self.epsilon))
        return f"{type(self).__name__}({self.categories}, epsilon={price})"

    @cached_property
    def odds(self) -> Fraction:
        """How much likelier a report may be under one answer than under another."""
        return odds(self.epsilon)

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent, who changes one answer into any other."""
        return Loss.pure(self.epsilon)

    # --- what each oracle says ----------------------------------------------------------------

    @property
    @abstractmethod
    def inside(self) -> Fraction:
        """The probability that a report supports the true answer."""

    @property
    @abstractmethod
    def outside(self) -> Fraction:
        """The probability that a report supports another answer."""

    @property
    @abstractmethod
    def both(self) -> tuple[Fraction, Fraction]:
        """The chance that a report supports two answers: one of them true, and neither."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How many bits a report needs."""

    @abstractmethod
    def law(self, value: Any) -> Law:
        """The exact law of the report of one respondent whose answer is ``value``."""

    @abstractmethod
    def randomize(self, codes: Integers) -> NDArray[Any]:
        """The reports of respondents with the answers ``codes``, one each."""

    @abstractmethod
    def support(self, reports: Any) -> Integers:
        """For each answer, how many of these ``reports`` support it."""

    @abstractmethod
    def indicator(self, reports: Any) -> NDArray[np.bool_]:
        """For each of ``reports``, whether it supports each answer."""

    @abstractmethod
    def check(self, reports: Any) -> NDArray[Any]:
        """The ``reports`` as an array, refused unless each could have been made."""

    # --- what follows -------------------------------------------------------------------------

    def release(self, value: Any) -> Any:
        """The report of one respondent, or the reports of each one in a list or array.

        ``value`` is one answer, a whole number below ``categories``, or several.
        """
        if isinstance(value, np.ndarray) or (
            isinstance(value, Sequence) and not isinstance(value, str | bytes)
        ):
            return self.randomize(self.codes(value))
        report = self.randomize(self.codes([value]))[0]
        return report if isinstance(report, np.ndarray) else int(report)

    def codes(self, values: Any) -> Integers:
        """The answers ``values`` as whole numbers, refused unless each is one of the declared."""
        answers = np.asarray(values)
        if not answers.size:
            return np.zeros(0, dtype=np.int64)
        kind = answers.dtype.kind
        fitting = kind in "iu" or (kind == "b" and self.categories == 2)
        if not fitting or answers.ndim != 1 or not _within(answers, self.categories):
            raise not_an_answer(self.categories)
        return answers.astype(np.int64)

    def code(self, value: Any) -> int:
        """One answer, ``value``, as a whole number."""
        if isinstance(value, numbers.Integral | np.bool_):
            return int(self.codes([value])[0])
        raise not_an_answer(self.categories)

    def estimate(self, reports: Any) -> Frequencies:
        """How many respondents gave each answer, without bias, from their ``reports``."""
        checked = self.check(reports)
        return Frequencies(self, len(checked), self.support(checked))

    def variance(self, *, respondents: int, count: int = 0) -> float:
        """Of the estimated number of those with an answer that ``count`` of them have.

        ``respondents`` is how many there are in all.
        """
        n, c = check_people(respondents, count)
        p, q = self.inside, self.outside
        return float((c * p * (1 - p) + (n - c) * q * (1 - q)) / (p - q) ** 2)

    def variance_of_part(self, *, respondents: int, reported: Exact, count: int = 0) -> Fraction:
        """Of the same, where a part of the respondents reported, chosen by chance, for all of them.

        Exact, given that ``reported`` of the ``respondents`` did, where ``count`` of all have the
        answer: the noise of their reports, and which of those with the answer are among them (drawn
        without replacement).
        """
        n, c = check_people(respondents, count)
        m = positive(reported, name="reported")
        p, q = self.inside, self.outside
        noise = (c * p * (1 - p) + (n - c) * q * (1 - q)) / (p - q) ** 2 * n / m
        chosen = Fraction(c * (n - c), max(n - 1, 1)) * (n - m) / m
        return noise + chosen

    def total_variance(self) -> Fraction:
        """The squared errors of all answers together, for each respondent, whatever the truth."""
        p, q, d = self.inside, self.outside, self.categories
        return (p * (1 - p) + (d - 1) * q * (1 - q)) / (p - q) ** 2

    def covariance(self, counts: Any) -> Doubles:
        """Of the estimates, given that ``counts[v]`` respondents have answer v."""
        c = np.asarray(counts, dtype=np.float64)
        (p, q), (one, none) = _doubles(self.inside, self.outside), _doubles(*self.both)
        pairs = c[:, None] + c[None, :]
        found = pairs * (one - p * q) + (c.sum() - pairs) * (none - q * q)
        found += self.tie_together(c)
        np.fill_diagonal(found, c * p * (1 - p) + (c.sum() - c) * q * (1 - q))
        return np.asarray(found / (p - q) ** 2)

    def tie_together(self, counts: Doubles) -> Doubles | float:  # noqa: ARG002
        """What to add to the covariance where a third answer ties two together; mostly nothing.

        ``counts`` are the numbers of respondents with each answer.
        """
        return 0.0

    @property
    def tied(self) -> float:
        """How much :meth:`tie_together` can add to the variance of a query with sum(w**2) = 1."""
        return 0.0

    def query_variances(self, weights: Doubles) -> Doubles:
        """For each true answer, (a bound of) the variance of one report's share of a query.

        ``weights`` are the query's, one for each answer.
        """
        w, d = weights, self.categories
        (p, q), (one, none) = _doubles(self.inside, self.outside), _doubles(*self.both)
        total, square = w.sum(), float(w @ w)
        own = p * (1 - p) - q * (1 - q)
        cross = (one - p * q) - (none - q * q)
        base = q * (1 - q) * square + (none - q * q) * (total**2 - square)
        found = base + own * w**2 + 2 * cross * w * (total - w) + self.tied * square
        if d == len(w) and np.ptp(w) == 0 and self.sums_to_all:
            return np.zeros(d)
        return np.asarray(np.maximum(found, 0.0) / (p - q) ** 2)

    @property
    def sums_to_all(self) -> bool:
        """Whether every report supports equally many answers, so that estimates add up to n."""
        return False

    def query_reach(self, weights: Doubles) -> float:
        """A bound of how far one independent part of a report moves a query from its mean.

        ``weights`` are the query's, one for each answer.
        """
        return float(np.abs(weights).sum()) / float(self.inside - self.outside)

    def not_a_report(self) -> InvalidParameter:
        """The refusal of a report that no answer could have made."""
        return InvalidParameter(
            "P6",
            f"a report is not one that {self!r} makes.",
            why="what no respondent can have sent would distort the estimate for all others.",
            fix="pass reports of this randomizer, as release gave them.",
        )


def check_people(respondents: int, count: int) -> tuple[int, int]:
    """How many respondents there are, and how many of them have an answer."""
    n, c = whole(respondents, name="respondents"), whole(count, name="count")
    if c > n:
        raise InvalidParameter(
            "P2",
            f"{c} of {n} respondents cannot have an answer.",
            why="a count is of the respondents.",
            fix="pass a count of at most respondents.",
        )
    return n, c


def chunks(count: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices of ``size`` that cover 0 ... count."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def check_whole(oracle: FrequencyOracle, reports: Any, *, below: int) -> Integers:
    """Reports that are whole numbers below ``below``."""
    found = np.asarray(reports)
    if not found.size:
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind not in "iu" or found.ndim != 1 or not _within(found, below):
        raise oracle.not_a_report()
    return found.astype(np.int64)


def divide(reports: Any, oracles: Sequence[FrequencyOracle]) -> list[Integers]:
    """Each oracle's reports, of whole numbers that say as their rest whose they are."""
    kinds = len(oracles)
    found = check_whole(oracles[0], reports, below=2**63)
    return [o.check(found[found % kinds == place] // kinds) for place, o in enumerate(oracles)]


def _within(numbers: NDArray[Any], bound: int) -> bool:
    return int(numbers.min()) >= 0 and int(numbers.max()) < bound


def _doubles(one: Fraction, other: Fraction) -> tuple[float, float]:
    return float(one), float(other)


def not_an_answer(categories: int) -> InvalidParameter:
    """The refusal of an answer that was not declared."""
    return InvalidParameter(
        "P6",
        f"an answer is not a whole number from 0 to {categories - 1}.",
        why="a report outside the declared answers would say who gave it.",
        fix="number the answers from 0, or pass booleans where there are two.",
    )


__all__ = ["FrequencyOracle"]
