"""How many respondents gave each answer: estimates, their covariance and margins that hold.

Everything here is post-processing of reports: free, and as often as wanted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.margins import bernstein, interval
from discreet.local.shrinking import shrink
from discreet.mechanisms import postprocess

if TYPE_CHECKING:
    from discreet.local.oracle import FrequencyOracle

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


class Estimate(NamedTuple):
    """A number estimated without bias, its standard error, and ends that hold.

    ``value`` is the number, ``standard_error`` how far it is off in the root mean square, and the
    truth lies between ``low`` and ``high`` but for the chance that was asked for.
    """

    value: float
    standard_error: float
    low: float
    high: float

    @property
    def margin(self) -> float:
        """The larger distance from the value to an end."""
        return max(self.value - self.low, self.high - self.value)


@dataclass(frozen=True)
class Frequencies:
    """Estimated numbers of respondents for each answer.

    ``oracle`` made the reports of so many ``respondents``; ``support`` has for each answer how many
    of them support it.

    ``values`` are unbiased and may be negative; ``consistent`` repairs that.

    >>> from discreet.local import Direct
    >>> direct = Direct(4, epsilon=2)
    >>> counts = direct.estimate(direct.release([0] * 500 + [1] * 300 + [3] * 200))
    >>> counts.respondents, len(counts.values), bool(abs(counts.values.sum() - 1000) < 1e-6)
    (1000, 4, True)
    >>> counts.consistent().min() >= 0
    np.True_
    >>> counts.interval(0, beta="1e-9")[0] <= 500 <= counts.interval(0, beta="1e-9")[1]
    True
    """

    oracle: FrequencyOracle
    respondents: int
    support: Integers

    @cached_property
    def values(self) -> Doubles:
        """The unbiased estimates, one for each answer."""
        p, q = float(self.oracle.inside), float(self.oracle.outside)
        return np.asarray((self.support - self.respondents * q) / (p - q), dtype=np.float64)

    @cached_property
    def plausible(self) -> Doubles:
        """The estimates on the simplex: where variances are evaluated."""
        if not self.respondents:
            return np.zeros(self.support.size)
        return postprocess.simplex(self.values, total=float(self.respondents))

    @cached_property
    def standard_errors(self) -> Doubles:
        """Of each value, given the answers."""
        p, q = float(self.oracle.inside), float(self.oracle.outside)
        others = self.respondents - self.plausible
        variance = self.plausible * p * (1 - p) + others * q * (1 - q)
        return np.asarray(np.sqrt(variance) / (p - q), dtype=np.float64)

    def covariance(self) -> Doubles:
        """Of all values, given the answers; at the plausible numbers of each."""
        return self.oracle.covariance(self.plausible)

    def interval(self, category: int, *, beta: Exact = "0.05") -> tuple[int, int]:
        """Ends between which the true number lies, except with probability ``beta``; exact.

        It is the number of respondents whose answer is ``category``.
        """
        place = self._place(category)
        return interval(
            int(self.support[place]),
            respondents=self.respondents,
            inside=self.oracle.inside,
            outside=self.oracle.outside,
            beta=beta,
        )

    def intervals(self, *, beta: Exact = "0.05", together: bool = False) -> list[tuple[int, int]]:
        """One for each answer, except with probability ``beta``; ``together``: all hold at once."""
        chance = proportion(beta, name="beta") / (self.support.size if together else 1)
        return [self.interval(place, beta=chance) for place in range(self.support.size)]

    def count(self, subset: Collection[int], *, beta: Exact = "0.05") -> Estimate:
        """How many respondents have an answer in ``subset``; ends hold except with ``beta``."""
        places = {self._place(one) for one in subset}
        weights = np.zeros(self.support.size)
        weights[list(places)] = 1.0
        if len(places) != 1:
            return self.query(weights, beta=beta)
        (place,) = places
        low, high = self.interval(place, beta=beta)
        value, error = float(self.values[place]), float(self.standard_errors[place])
        return Estimate(value, error, float(low), float(high))

    def query(self, weights: ArrayLike, *, beta: Exact = "0.05") -> Estimate:
        """The sum of ``weights[v]`` over the respondents, v their answers; Bernstein's margin.

        The margin holds for every truth and every n, except with probability ``beta``.
        """
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != self.support.shape or not np.isfinite(w).all():
            raise InvalidParameter(
                "P4",
                f"there must be one finite weight for each of the {self.support.size} answers.",
                why="a linear query says what each answer counts.",
                fix="pass an array with one number for each answer.",
            )
        value = float(w @ self.values)
        variances = self.oracle.query_variances(w)
        error = math.sqrt(max(float(self.plausible @ variances), 0.0))
        margin = bernstein(
            variance=self.respondents * max(float(variances.max()), 0.0),
            largest=self.oracle.query_reach(w),
            beta=beta,
        )
        return Estimate(value, error, value - margin, value + margin)

    def consistent(self, method: str = "shrunk") -> Doubles:
        """Numbers that could be true: ``shrunk``, ``simplex``, ``nonnegative`` or ``norm-sub``.

        ``method`` says which of these.

        ``nonnegative`` replaces negative numbers by 0; ``norm-sub`` subtracts one number from
        all and replaces by 0 until the total is right, which is the projection ``simplex``,
        found another way (Wang et al. 2020, "Locally differentially private frequency
        estimation with consistency").  ``shrunk`` has the least squared error on all laws that
        were tried: the mean of each number given its estimate, under laws of numbers that are
        weighed by how well they explain all estimates; rare answers are drawn together.
        """
        if method == "shrunk":
            return self._shrunk.copy()
        if method == "nonnegative":
            return np.maximum(self.values, 0.0)
        if method == "norm-sub":
            return norm_sub(self.values, total=self.respondents)
        if method == "simplex":
            return self.plausible.copy()
        raise InvalidParameter(
            "P4",
            "method must be 'simplex', 'nonnegative', 'norm-sub' or 'shrunk'.",
            why="each repairs the estimates in its own way.",
            fix="leave method out for the least error, or pass 'simplex' for the nearest numbers.",
        )

    @cached_property
    def _shrunk(self) -> Doubles:
        """Means given the estimates, then the closest numbers that add up to the respondents.

        All are shifted alike: scaled instead, what many rare answers have too much would be taken
        from the frequent ones.
        """
        if not self.respondents:
            return np.zeros(self.support.size)
        means = shrink(
            self.support,
            respondents=self.respondents,
            inside=float(self.oracle.inside),
            outside=float(self.oracle.outside),
        )
        return postprocess.simplex(means, total=float(self.respondents))

    def top(self, count: int, *, beta: Exact = "0.05") -> list[tuple[int, Estimate]]:
        """The ``count`` answers with the largest estimates, all intervals at once.

        All of these hold together except with probability ``beta``.
        """
        k = whole(count, name="count", least=1)
        places = np.argsort(-self.values, kind="stable")[:k].tolist()
        # Which answers these are depends on the reports: every answer pays its share of beta.
        chance = proportion(beta, name="beta") / self.support.size
        return [(place, self.count([place], beta=chance)) for place in places]

    def _place(self, category: int) -> int:
        place = whole(category, name="a category")
        if place >= self.support.size:
            raise InvalidParameter(
                "P2",
                f"there is no answer {place}; the last is {self.support.size - 1}.",
                why="only declared answers are estimated.",
                fix="number the answers from 0.",
            )
        return place


def norm_sub(values: ArrayLike, *, total: float) -> Doubles:
    """Numbers below zero set to 0, and the rest shifted alike, until they add up to ``total``.

    ``values`` are estimates without bias, some of them below zero.

    >>> norm_sub([5, -2, 9], total=8).tolist()
    [2.0, 0.0, 6.0]
    """
    left = np.array(values, dtype=np.float64)
    kept = np.ones(left.size, dtype=np.bool_)
    while kept.any():
        shift = (total - left[kept].sum()) / kept.sum()
        negative = kept & (left + shift < 0)
        if not negative.any():
            return np.where(kept, left + shift, 0.0)
        kept &= ~negative
    return np.zeros(left.size)


def weights_of(subset: Sequence[int], categories: int) -> Doubles:
    """1 for each answer of ``subset``, else 0."""
    weights = np.zeros(categories)
    weights[list(subset)] = 1.0
    return weights


__all__ = ["Estimate", "Frequencies", "norm_sub"]
