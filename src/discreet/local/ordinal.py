"""Ordered answers: ranges and quantiles by a hierarchy of intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.choose import best_whole
from discreet.local.frequencies import Doubles, Estimate, Frequencies, Integers
from discreet.local.margins import bernstein
from discreet.local.odds import check_categories, check_epsilon
from discreet.local.oracle import FrequencyOracle, check_whole, divide
from discreet.mechanisms import postprocess
from discreet.noise import uniform_below


@dataclass(frozen=True, init=False, repr=False)
class Ordinal:
    """Report, of a level of a tree drawn at random, the interval that holds your answer.

    There are d = ``categories`` answers in order, and a report costs ``epsilon``.

    Definition:
        The answers 0 ... d - 1 are the leaves of a tree in which every node has B =
        ``branching`` children.  A respondent draws one level below the root uniformly
        and reports the node of that level above the answer with all of epsilon, by
        the best of ``Direct``, ``LocalHashing`` and ``Hadamard``.

    Guarantee:
        The level does not depend on the answer and each oracle is
        epsilon-differentially private.

    Accuracy:
        A range of answers is the sum of at most 2 (B - 1) nodes of each level, so its
        variance grows with log(d)**2 and not with its length; made consistent, all
        ranges agree with each other.

    Reference:
        Cormode, Kulkarni and Srivastava (2019), "Answering range queries under local
        differential privacy": HH with consistency; Hay et al. (2010).

    Example:
        >>> ages = Ordinal(100, epsilon=1)
        >>> ages.levels, [type(one).__name__ for one in ages.oracles]
        (4, ['Direct', 'Direct', 'LocalHashing', 'LocalHashing'])
        >>> found = ages.estimate(ages.release([18] * 2000 + [60] * 2000))
        >>> 0 <= found.quantile("1/4") <= 99
        True
        >>> round(ages.variance(respondents=4000, low=18, high=60) ** 0.5)
        498
    """

    categories: int
    epsilon: Fraction
    branching: int

    def __init__(self, categories: int, *, epsilon: Exact, branching: int = 4) -> None:
        object.__setattr__(self, "categories", check_categories(categories, most=2**16))
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "branching", whole(branching, name="branching", least=2))

    def __repr__(self) -> str:
        return f"Ordinal({self.categories}, epsilon='{self.epsilon}', branching={self.branching})"

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent."""
        return Loss.pure(self.epsilon)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many answers a node holds, level by level from the top."""
        found = [1]
        while found[0] * self.branching < self.categories:
            found.insert(0, found[0] * self.branching)
        return tuple(found)

    @property
    def levels(self) -> int:
        """How many levels there are below the root."""
        return len(self.widths)

    @cached_property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """One for each level."""
        return tuple(
            best_whole(-(-self.categories // width), self.epsilon) for width in self.widths
        )

    @property
    def report_bits(self) -> int:
        """The level, and the longest of the reports."""
        return (self.levels - 1).bit_length() + max(one.report_bits for one in self.oracles)

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of a report on ``value``: (level, report of its oracle), as one number."""
        code = self.oracles[-1].code(value)
        masses: list[tuple[Hashable, Fraction]] = []
        for level, (oracle, width) in enumerate(zip(self.oracles, self.widths, strict=True)):
            law = oracle.law(code // width)
            if not isinstance(law, FiniteLaw) or law.fractions is None:
                raise oracle.not_a_report()
            masses += [
                (int(report) * self.levels + level, chance / self.levels)  # type: ignore[call-overload]
                for report, chance in zip(law.outcomes, law.fractions, strict=True)
            ]
        return FiniteLaw.exact(masses)

    def release(self, value: Any) -> Any:
        """The report of one answer ``value``, or of each one in a list or array."""
        one = isinstance(value, int | np.integer)
        codes = self.oracles[-1].codes([value] if one else value)
        drawn = uniform_below(self.levels, codes.size)
        reports = np.empty(codes.size, dtype=np.int64)
        for level, (oracle, width) in enumerate(zip(self.oracles, self.widths, strict=True)):
            these = drawn == level
            inner = oracle.randomize(codes[these] // width)
            reports[these] = inner * self.levels + level
        return int(reports[0]) if one else reports

    def check(self, reports: Any) -> Integers:
        """The ``reports`` as an array, refused unless each could have been made."""
        found = check_whole(self.oracles[-1], reports, below=2**63 - 1)
        divide(found, self.oracles)
        return found

    def variance(self, *, respondents: int, low: int, high: int) -> float:
        """Of the estimated number of those in a range: the most that it can be, for every truth.

        The range is from ``low`` to ``high``, both included.

        Given that each level was drawn by its equal part of the ``respondents``; an estimate has
        that of the parts that did draw it (docs/proofs/local.md, Lemma 8).
        """
        n = whole(respondents, name="respondents", least=2)
        first, last = self._range(low, high)
        return self.bound_variance(n, [Fraction(n, self.levels)] * self.levels, first, last)

    def bound_variance(
        self, respondents: int, reported: Sequence[Exact], first: int, last: int
    ) -> float:
        """The same, given how many reported on each level (Lemma 8).

        The range is from ``first`` to ``last``; of all ``respondents`` so many ``reported`` on each
        level.
        """
        n, parts = respondents, [float(m) for m in reported]
        if min(parts) <= 0 or n < 2:
            return math.inf
        total = 0.0
        for oracle, weights, m in zip(
            self.oracles, self._read_weights(n, parts, first, last), parts, strict=True
        ):
            noise = float(oracle.query_variances(weights).max())
            drawn = float(np.ptp(weights)) ** 2 / 4 * n / (n - 1)
            total += n**2 / m * (noise + drawn)
        return total

    def _read_weights(
        self, respondents: int, reported: Sequence[float], first: int, last: int
    ) -> list[Doubles]:
        """How much each node of each level counts in the consistent estimate of a range.

        With M the map to consistent numbers and V the variances it is given, M V is symmetric, as
        of every projection that is least squares in V: so its transpose is V^-1 M V.
        """
        variances = np.array(self._node_variances(respondents, reported))
        asked = np.zeros(variances.size)
        leaves = variances.size - self.categories
        asked[leaves + first : leaves + last + 1] = variances[-1]
        found = postprocess.consistent(asked, parents=self.parents, variances=variances)
        weights = found[1:] / variances[1:]
        sizes = np.cumsum([oracle.categories for oracle in self.oracles])[:-1]
        return [np.asarray(one) for one in np.split(weights, sizes)]

    @cached_property
    def parents(self) -> tuple[int | None, ...]:
        """The node above each, the root first, then level by level."""
        found: list[int | None] = [None]
        above = 0  # where the level above begins
        for level, (oracle, width) in enumerate(zip(self.oracles, self.widths, strict=True)):
            here = len(found)
            wide = self.widths[level - 1] if level else 0
            found += [
                above + (node * width // wide if level else 0) for node in range(oracle.categories)
            ]
            above = here
        return tuple(found)

    def _node_variances(self, respondents: int, reported: Sequence[float]) -> list[float]:
        """Of the number in each node, scaled up from those who drew its level; of rare ones."""
        found = [0.0]  # how many there are in all is known
        for oracle, m in zip(self.oracles, reported, strict=True):
            one = oracle.variance(respondents=1)
            found += [one * respondents**2 / m if m else math.inf] * oracle.categories
        return found

    def _range(self, low: int, high: int) -> tuple[int, int]:
        first, last = whole(low, name="low"), whole(high, name="high")
        if not first <= last < self.categories:
            raise InvalidParameter(
                "P2",
                f"a range lies between 0 and {self.categories - 1}, low before high.",
                why="only declared answers are estimated.",
                fix="pass low and high in order.",
            )
        return first, last

    def estimate(self, reports: Any) -> Hierarchy:
        """The numbers of respondents in every node of the tree, from their ``reports``."""
        parts = divide(reports, self.oracles)
        found = tuple(o.estimate(part) for o, part in zip(self.oracles, parts, strict=True))
        return Hierarchy(self, sum(map(len, parts)), found)


@dataclass(frozen=True)
class Hierarchy:
    """Estimates for ordered answers, all ranges in agreement.

    ``ordinal`` made the reports of so many ``respondents``; ``parts`` are the estimates of each
    level by itself.
    """

    ordinal: Ordinal
    respondents: int
    parts: tuple[Frequencies, ...]

    @cached_property
    def counts(self) -> Doubles:
        """The number of respondents with each answer, from all levels together."""
        tree = self.ordinal
        if self.parts[-1].respondents == 0:
            return np.full(tree.categories, self.respondents / tree.categories)
        values = [float(self.respondents)]
        for part in self.parts:
            values += (part.values * (self.respondents / max(part.respondents, 1))).tolist()
        variances = tree._node_variances(self.respondents, self._reported)
        found = postprocess.consistent(values, parents=tree.parents, variances=variances)
        return np.asarray(found[-tree.categories :])

    @property
    def _reported(self) -> list[int]:
        return [part.respondents for part in self.parts]

    @cached_property
    def cumulative(self) -> Doubles:
        """For each answer, how many respondents have at most it: never falling, within 0 and n."""
        rising = postprocess.isotonic(np.cumsum(self.counts))
        return np.clip(rising, 0, self.respondents)

    def count(self, low: int, high: int, *, beta: Exact = "0.05") -> Estimate:
        """How many respondents have an answer from ``low`` to ``high``, both included.

        The value comes from all levels together, and its standard error is at most the one that is
        told; the ends are those of the fewest nodes that make up the range, with Bernstein's bound,
        and hold for every truth, except with probability ``beta``.
        """
        first, last = self.ordinal._range(low, high)
        value = float(self.counts[first : last + 1].sum())
        pieces = self._nodes(first, last + 1)
        centre, variance, reach = 0.0, 0.0, 0.0
        for level, (part, weights) in enumerate(zip(self.parts, pieces, strict=True)):
            if not weights.any():
                continue
            # One respondent in ``levels`` reports here: the score is 0 for the others.
            levels = self.ordinal.levels
            oracle = self.ordinal.oracles[level]
            centre += levels * float(weights @ part.values)
            spread = float(oracle.query_variances(weights).max()) + float(np.abs(weights).max())
            variance += levels * spread
            reach = max(reach, levels * (oracle.query_reach(weights) + 1))
        margin = bernstein(variance=self.respondents * variance, largest=reach, beta=beta)
        error = math.sqrt(
            self.ordinal.bound_variance(self.respondents, self._reported, first, last)
        )
        low_end, high_end = max(0.0, centre - margin), min(self.respondents, centre + margin)
        return Estimate(value, error, min(low_end, value), max(high_end, value))

    def _nodes(self, first: int, past: int) -> list[Doubles]:
        """The fewest nodes that make up a range, as weights on each level."""
        found = [np.zeros(part.support.size) for part in self.parts]
        for level in range(self.ordinal.levels - 1, -1, -1):
            width = self.ordinal.widths[level]
            wide = self.ordinal.widths[level - 1] if level else width * self.ordinal.branching
            while first < past and (first % wide or level == 0):
                found[level][first // width] = 1
                first += width
            while first < past and past % wide and past < self.ordinal.categories:
                past -= width
                found[level][past // width] = 1
        return found

    def quantile(self, q: Exact) -> int:
        """The least answer that at least a share ``q`` of the respondents do not exceed."""
        share = float(proportion(q, name="q"))
        place = int(np.searchsorted(self.cumulative, share * self.respondents))
        return min(place, self.ordinal.categories - 1)


__all__ = ["Hierarchy", "Ordinal"]
