"""Means of numbers between public bounds, from one randomised number of each respondent."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction, whole
from discreet.local.frequencies import Doubles, Estimate, Integers
from discreet.local.margins import bernstein
from discreet.local.odds import check_epsilon, odds, root_odds
from discreet.noise import bernoulli, uniform_below

STEPS = 2**16
"""How finely the range is divided; a value is off by at most half a step."""

_MOST_EPSILON = 10  # with 2**16 steps, draws stay below 2**63


@dataclass(frozen=True, init=False, repr=False)
class MeanRandomizer(ABC):
    """What the randomizers of a number share: bounds, a grid of steps, an unbiased score.

    The number is between ``lower`` and ``upper``, a range divided into ``steps``; a report costs
    ``epsilon``.
    """

    lower: Fraction
    upper: Fraction
    epsilon: Fraction
    steps: int

    def __init__(self, *, lower: Exact, upper: Exact, epsilon: Exact, steps: int = STEPS) -> None:
        low, high = fraction(lower, name="lower"), fraction(upper, name="upper")
        price = check_epsilon(epsilon)
        if low >= high or price > _MOST_EPSILON or whole(steps, name="steps", least=1) > STEPS:
            raise InvalidParameter(
                "P4",
                "lower must be below upper, epsilon at most 10 and steps at most 2**16.",
                why="the range is divided into steps, and draws are whole numbers of 63 bits.",
                fix="pass the least and the greatest possible value in order.",
            )
        for name, value in (("lower", low), ("upper", high), ("epsilon", price), ("steps", steps)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        bounds = ", ".join(
            f"{name}={int(value) if value.denominator == 1 else repr(str(value))}"
            for name, value in (
                ("lower", self.lower),
                ("upper", self.upper),
                ("epsilon", self.epsilon),
            )
        )
        return f"{type(self).__name__}({bounds})"

    @cached_property
    def odds(self) -> Fraction:
        """How much likelier a report may be under one value than under another."""
        return odds(self.epsilon)

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent, who changes the value into any other."""
        return Loss.pure(self.epsilon)

    @property
    @abstractmethod
    def outcomes(self) -> int:
        """How many different reports there are, numbered from 0."""

    @abstractmethod
    def masses(self, step: int) -> list[Fraction]:
        """The probability of each report of a respondent whose value is ``step`` steps up."""

    @abstractmethod
    def randomize(self, steps: Integers) -> Integers:
        """The reports of respondents whose values are so many ``steps`` above ``lower``."""

    @abstractmethod
    def scores(self, reports: Integers) -> Doubles:
        """For each of ``reports`` a number of steps whose mean is the respondent's."""

    @abstractmethod
    def step_variance(self, step: int) -> float:
        """The variance of a score of a value ``step`` steps up, in steps squared."""

    @property
    def report_bits(self) -> int:
        """One of the outcomes."""
        return max(1, (self.outcomes - 1).bit_length())

    def release(self, value: Any) -> Any:
        """The report of one number, or of each one in a list or array: ``value``, clipped."""
        many = isinstance(value, np.ndarray) or (
            isinstance(value, Sequence) and not isinstance(value, str | bytes)
        )
        reports = self.randomize(self.steps_of(value if many else [value]))
        return reports if many else int(reports[0])

    def steps_of(self, values: Any) -> Integers:
        """The ``values`` as steps above ``lower``: the nearest one, values outside at the ends."""
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "iufb" or numbers.ndim != 1 or np.isnan(numbers).any():
            raise InvalidParameter(
                "P6",
                "a value is not a number.",
                why="only a number between the bounds has a place among them.",
                fix="leave out respondents without a value.",
            )
        low, high = float(self.lower), float(self.upper)
        shares = (np.clip(numbers.astype(np.float64), low, high) - low) / (high - low)
        return np.floor(shares * self.steps + 0.5).astype(np.int64)

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of the report of one respondent with ``value``: rational."""
        if self.outcomes > MOST_OUTCOMES:
            raise InvalidParameter(
                "P2",
                f"there are more than {MOST_OUTCOMES} reports.",
                why="an exact law lists every possible report.",
                fix="look at the law with fewer steps.",
            )
        step = int(self.steps_of([value])[0])
        named: list[tuple[Hashable, Fraction]] = list(enumerate(self.masses(step)))
        return FiniteLaw.exact(named)

    def check(self, reports: Any) -> Integers:
        """The ``reports`` as an array, refused unless each could have been made."""
        found = np.asarray(reports)
        if not found.size:
            return np.zeros(0, dtype=np.int64)
        whole_numbers = found.dtype.kind in "iu" and found.ndim == 1
        if not whole_numbers or found.min() < 0 or found.max() >= self.outcomes:
            raise InvalidParameter(
                "P6",
                f"a report is not one that {self!r} makes.",
                why="what no respondent can have sent would distort the mean of all others.",
                fix="pass reports of this randomizer, as release gave them.",
            )
        return found.astype(np.int64)

    @property
    def _step(self) -> float:
        return float(self.upper - self.lower) / self.steps

    def estimate(self, reports: Any, *, beta: Exact = "0.05") -> Estimate:
        """The mean of the respondents' values, without bias but for half a step, from ``reports``.

        The ends hold for every n and every truth, except with probability ``beta``: Bernstein's
        bound, and half a step.
        """
        found = self.check(reports)
        if not found.size:
            raise InvalidParameter(
                "P5",
                "there are no reports.",
                why="nobody's mean is nothing.",
                fix="collect at least one report.",
            )
        scores = self.scores(found)
        value = float(self.lower) + self._step * float(scores.mean())
        inner = min(max(float(scores.mean()), 0.0), float(self.steps))
        spread = math.sqrt(self.step_variance(round(inner)) / found.size) * self._step
        margin = self.margin(beta, respondents=found.size)
        return Estimate(value, spread, value - margin, value + margin)

    def variance(self, value: Exact) -> float:
        """Of one respondent's contribution to the mean, at ``value``."""
        step = int(self.steps_of([float(fraction(value, name="value"))])[0])
        return self.step_variance(step) * self._step**2

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance over the values: at an end or in the middle, as it is a parabola."""
        places = (0, self.steps // 2, (self.steps + 1) // 2, self.steps)
        return max(self.step_variance(place) for place in places) * self._step**2

    def margin(self, beta: Exact, *, respondents: int) -> float:
        """How far the mean is off, except with probability ``beta``, whatever the values are.

        It is the mean of so many ``respondents``.
        """
        n = whole(respondents, name="respondents", least=1)
        ends = self.scores(np.array([0, 1, self.outcomes - 1]))
        reach = max(float(ends.max()), self.steps - float(ends.min())) * self._step
        bound = bernstein(variance=n * self.worst_variance, largest=reach, beta=beta)
        return bound / n + self._step / 2


@dataclass(frozen=True, init=False, repr=False)
class OneBitMean(MeanRandomizer):
    """Report one bit, 1 more often the larger the value is.

    Values lie between ``lower`` and ``upper``, on a grid of so many ``steps``; a report costs
    ``epsilon``.

    Definition:
        For a value at the share t of the range, M = 1 with probability
        1 / (r + 1) + t (r - 1) / (r + 1), else 0.

    Guarantee:
        Both probabilities lie between 1 / (r + 1) and r / (r + 1), so their ratios
        are at most r <= e**epsilon.  Attained between the two bounds.

    Accuracy:
        One respondent's score has variance at most (range / 2)**2 ((r + 1) / (r - 1))**2.

    Reference:
        Duchi, Jordan and Wainwright (2018); Ding, Kulkarni and Yekhanin (2017).

    Example:
        >>> hours = OneBitMean(lower=0, upper=80, epsilon=2)
        >>> hours.release(35) in (0, 1), hours.report_bits
        (True, 1)
        >>> round(hours.margin("0.05", respondents=10_000), 2)
        1.44
    """

    @property
    def outcomes(self) -> int:
        """One bit."""
        return 2

    def _thresholds(self, steps: Any) -> tuple[Any, int]:
        """P(1) = first / second, in whole numbers."""
        a, b = self.odds.as_integer_ratio()
        return steps * (a - b) + b * self.steps, (a + b) * self.steps

    def masses(self, step: int) -> list[Fraction]:
        """Of 0 and 1, for a value ``step`` steps up."""
        one = Fraction(*self._thresholds(step))
        return [1 - one, one]

    def randomize(self, steps: Integers) -> Integers:
        """One uniform number below a public bound is compared with the value's.

        ``steps`` are the values, counted from ``lower``.
        """
        thresholds, bound = self._thresholds(steps)
        return np.asarray(uniform_below(bound, steps.size) < thresholds).astype(np.int64)

    def scores(self, reports: Integers) -> Doubles:
        """(report (r + 1) - 1) / (r - 1) of the range, for each of ``reports``."""
        r = float(self.odds)
        return np.asarray((reports * (r + 1) - 1) / (r - 1) * self.steps)

    def step_variance(self, step: int) -> float:
        """That of a coin, scaled, for a value ``step`` steps up."""
        one, r = self.masses(step)[1], self.odds
        return float(one * (1 - one) * ((r + 1) / (r - 1) * self.steps) ** 2)


@dataclass(frozen=True, init=False, repr=False)
class PiecewiseMean(MeanRandomizer):
    """Report a number near your value more often than one far from it.

    Values lie between ``lower`` and ``upper``, on a grid of S = ``steps``; a report costs
    ``epsilon``.

    Definition:
        With the value at step i of S, M is one of S + W numbers: each of the W
        numbers i ... i + W - 1 with probability r / (r W + S), each other with
        1 / (r W + S), where W is the whole number nearest S / sqrt(r).

    Guarantee:
        Two values give every number probabilities whose ratio is 1, r or 1 / r, and
        r <= e**epsilon.  Attained.

    Accuracy:
        A score is unbiased; its variance falls like e**(-epsilon / 2), so that it
        beats one bit from epsilon = 1.3 on.

    Reference:
        Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), Algorithm 2, on a grid.

    Example:
        >>> hours = PiecewiseMean(lower=0, upper=80, epsilon=4)
        >>> round(hours.margin("0.05", respondents=10_000), 2)
        0.55
        >>> round(OneBitMean(lower=0, upper=80, epsilon=4).margin("0.05", respondents=10_000), 2)
        1.14
    """

    @cached_property
    def window(self) -> int:
        """W."""
        root = root_odds(self.epsilon)
        return max(1, round(self.steps / root))

    @property
    def outcomes(self) -> int:
        """S + W numbers."""
        return self.steps + self.window

    def masses(self, step: int) -> list[Fraction]:
        """Of each number in turn, for a value ``step`` steps up."""
        low = 1 / (self.odds * self.window + self.steps)
        near = range(step, step + self.window)
        return [low * self.odds if one in near else low for one in range(self.outcomes)]

    def randomize(self, steps: Integers) -> Integers:
        """One uniform number below a public bound: the first part of them are near.

        ``steps`` are the values, counted from ``lower``.
        """
        a, b = self.odds.as_integer_ratio()
        drawn = uniform_below(a * self.window + b * self.steps, steps.size)
        far = np.maximum(drawn - a * self.window, 0) // b
        far += np.where(far >= steps, self.window, 0)
        return np.where(drawn < a * self.window, steps + drawn // a, far)

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The mean report is first + second * step."""
        r, w, s = self.odds, self.window, self.steps
        m = s + w
        total = r * w + s
        base = ((r - 1) * Fraction(w * (w - 1), 2) + Fraction(m * (m - 1), 2)) / total
        return float(base), float((r - 1) * w / total)

    def scores(self, reports: Integers) -> Doubles:
        """Each of ``reports`` on the line that its mean is of the value."""
        base, slope = self._line
        return np.asarray((reports - base) / slope)

    def step_variance(self, step: int) -> float:
        """From the sums of squares inside the window, which begins at ``step``, and of all."""
        r, w, m = self.odds, self.window, self.outcomes
        total = r * w + self.steps

        def sums(past: int) -> tuple[int, int]:
            return past * (past - 1) // 2, (past - 1) * past * (2 * past - 1) // 6

        near = [up - down for up, down in zip(sums(step + w), sums(step), strict=True)]
        first, second = (
            ((r - 1) * inner + whole_) / total for inner, whole_ in zip(near, sums(m), strict=True)
        )
        return float(second - first**2) / self._line[1] ** 2


@dataclass(frozen=True, init=False, repr=False)
class HybridMean(MeanRandomizer):
    """Toss a public coin between :class:`PiecewiseMean` and :class:`OneBitMean`.

    Values lie between ``lower`` and ``upper``, on a grid of so many ``steps``; a report costs
    ``epsilon``.

    Definition:
        With probability 1 - e**(-epsilon / 2) (0 up to epsilon = 0.61) the report is
        the piecewise one, else the one bit; it says which.

    Guarantee:
        The coin does not depend on the value and both are epsilon-differentially
        private.

    Accuracy:
        The variance is the mixture of the two: flatter over the values, and at its
        worst never above that of either.

    Reference:
        Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu (2019), Section III-C.

    Example:
        >>> hours = HybridMean(lower=0, upper=80, epsilon=2)
        >>> round(hours.margin("0.05", respondents=10_000), 2)
        1.13
    """

    @cached_property
    def parts(self) -> tuple[OneBitMean, PiecewiseMean]:
        """The two randomizers between which the coin chooses."""
        low, high, price = self.lower, self.upper, self.epsilon
        return (
            OneBitMean(lower=low, upper=high, epsilon=price, steps=self.steps),
            PiecewiseMean(lower=low, upper=high, epsilon=price, steps=self.steps),
        )

    @cached_property
    def share(self) -> Fraction:
        """The probability of the piecewise report."""
        if self.epsilon <= Fraction(61, 100):
            return Fraction(0)
        return 1 - 1 / Fraction(round(root_odds(self.epsilon) * 2**16), 2**16)

    @property
    def outcomes(self) -> int:
        """Two for the bit, then the numbers."""
        return 2 + self.parts[1].outcomes

    def masses(self, step: int) -> list[Fraction]:
        """Of the bit, then of the numbers, for a value ``step`` steps up."""
        bit, number = self.parts
        return [(1 - self.share) * one for one in bit.masses(step)] + [
            self.share * one for one in number.masses(step)
        ]

    def randomize(self, steps: Integers) -> Integers:
        """Both are drawn, whatever the coin says: how long it takes says nothing.

        ``steps`` are the values, counted from ``lower``.
        """
        bit, number = self.parts
        coin = bernoulli(self.share, steps.size)
        bits, numbers = bit.randomize(steps), number.randomize(steps)
        return np.where(coin, numbers + 2, bits)

    def scores(self, reports: Integers) -> Doubles:
        """Those of the part that was drawn, for each of ``reports``."""
        bit, number = self.parts
        scores = np.where(reports < 2, bit.scores(reports), number.scores(reports - 2))
        return np.asarray(scores, dtype=np.float64)

    def step_variance(self, step: int) -> float:
        """Both are unbiased, so variances mix, of a value ``step`` steps up."""
        share = float(self.share)
        bit, number = (part.step_variance(step) for part in self.parts)
        return (1 - share) * bit + share * number

    def margin(self, beta: Exact, *, respondents: int) -> float:
        """Bernstein's bound with the reach of the farther of the two.

        So far the mean of so many ``respondents`` is off, except with probability ``beta``.
        """
        n = whole(respondents, name="respondents", least=1)
        last = self.outcomes - 1
        ends: NDArray[Any] = self.scores(np.array([0, 1, 2, last] if self.share else [0, 1]))
        reach = max(float(ends.max()), self.steps - float(ends.min())) * self._step
        bound = bernstein(variance=n * self.worst_variance, largest=reach, beta=beta)
        return bound / n + self._step / 2


__all__ = ["HybridMean", "MeanRandomizer", "OneBitMean", "PiecewiseMean"]
