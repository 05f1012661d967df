"""Quantiles of values on a public domain, by the exponential mechanism: one, or many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import wraps
from itertools import pairwise
from math import ceil
from typing import Any, TypeVar

import numpy as np

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.accounting.loss import Loss, bounded_range_price
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, log_up, sqrt_down
from discreet.exact.numbers import Exact, failure_share, float_up, positive, proportion
from discreet.exact.records import dataclass
from discreet.mechanisms.grid import Grid, find_misfit, require_names, write_call
from discreet.mechanisms.quantiles.ranks import (
    NEAR,
    Cells,
    Domain,
    RankedCells,
    choose_by_rank,
    count_cells,
    score_runs,
)

T = TypeVar("T")

_MOST_PARTS = 2**31

Errors = dict[Fraction, tuple[float, float]]
"""For each choice, named by its quantile: the weight of its error, and the scale of it in ranks."""


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quantile:
    """Publish a value that splits the data into about ``q`` and 1 - ``q``.

    The price is ``epsilon``, or ``rho``: then the epsilon is sqrt(8 rho), rounded down.

    Definition:
        The candidates are all multiples of the ``grid`` from ``lower`` to
        ``upper``.  Values are clipped to that range and put on the grid; what
        is not a number is left out.  A candidate z with ``below`` values less
        than it and ``upto`` values at most it has the score - b * (distance
        from q n to the interval [below, upto]), where q = a / b and n is the
        number of values: zero exactly if z is a q-quantile.  The exponential
        mechanism chooses; equally good neighbours are chosen among at random.

    Guarantee:
        Adding or removing a value changes every score by at most max(a, b - a),
        so the choice is epsilon-differentially private and
        (epsilon**2 / 8)-zCDP.  With ``change_one`` neighbours replace one value
        and n is public; scores then change by at most b.  n is never used
        otherwise, and nothing fails on ties, infinities or no values at all.

    Accuracy:
        Except with probability beta, q n is within ``margin`` ranks of the
        ranks of the answer, whatever the values: 2 max(q, 1 - q) / epsilon *
        ln((N - 1)(1 - beta) / beta) for a domain of N candidates.

    Reference:
        McSherry and Talwar (2007); Smith (2011); DR Theorems 3.10 and 3.11.
        Proofs in docs/proofs/quantiles.md, Lemmas 1 to 3.

    Example:
        >>> median = Quantile("1/2", lower=2, upper=120, epsilon="1/4")
        >>> median
        Quantile('1/2', lower=2, upper=120, epsilon='1/4')
        >>> 20 < median.release([30, 31, 35, 38, 44] * 200) < 60
        True
        >>> median.loss.epsilon, median.loss.rho
        (Fraction(1, 4), Fraction(1, 128))
        >>> round(median.margin("0.05"), 2)
        30.86
    """

    q: Fraction
    lower: Fraction
    upper: Fraction
    epsilon: Fraction
    change_one: bool
    grid: Grid | None
    domain: Domain = field(compare=False)

    def __init__(
        self,
        q: Exact,
        *,
        lower: Exact,
        upper: Exact,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        change_one: bool = False,
        grid: Grid | None = None,
    ) -> None:
        domain = Domain(lower, upper, grid)
        values = {
            "q": _check_quantile(q),
            "lower": domain.lower,
            "upper": domain.upper,
            "epsilon": bounded_range_price(epsilon, rho),
            "change_one": bool(change_one),
            "grid": grid,
            "domain": domain,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = write_call(
            self,
            lower=self.lower,
            upper=self.upper,
            epsilon=self.epsilon,
            change_one=self.change_one or None,
            grid=self.grid,
        )
        return shown.replace("(", f"({str(self.q)!r}, ", 1)

    @property
    def loss(self) -> Loss:
        """What one quantile costs one unit."""
        return Loss.exponential(self.epsilon)

    @property
    def rate(self) -> Fraction:
        """The exponent of one point of score."""
        a, b = self.q.numerator, self.q.denominator
        return self.epsilon / (2 * (b if self.change_one else max(a, b - a)))

    def release(self, values: Any) -> Any:
        """A private quantile of a list or array of numbers, ``values``."""
        cells = RankedCells.of(count_cells(self.domain.steps(values), self.domain))
        chosen = choose_by_rank(cells, self.q, self.rate, self.domain.least, self.domain.most)
        return self.domain.lift(chosen)

    def margin(self, beta: Exact | None = None, *, confidence: Exact | None = None) -> float:
        """How many ranks the answer is off at most, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        beta = failure_share(beta, confidence)
        return _rank_margin(self.domain.size, self.rate * self.q.denominator, beta)

    def law(self, values: Any) -> FiniteLaw:
        """The exact law of the answer for ``values``, over every multiple of the grid in range."""
        if self.domain.size > MOST_OUTCOMES:
            raise InvalidParameter(
                "P4",
                f"the domain has more than {MOST_OUTCOMES} candidates.",
                why="the exact law lists every one of them.",
                fix="look at the law on a coarser grid or between closer bounds.",
            )
        cells = RankedCells.of(count_cells(self.domain.steps(values), self.domain))
        runs = score_runs(cells, self.q, self.domain.least, self.domain.most, floor=None)
        scores = np.repeat(runs.scores, runs.lengths).tolist()
        outcomes = tuple(
            self.domain.lift(step) for step in range(self.domain.least, self.domain.most + 1)
        )
        return FiniteLaw.proportional(
            outcomes, lambda: [ball(self.rate * score).exp() for score in scores]
        )


def _require_names(cls: type[T]) -> type[T]:
    """The same as ``require_names``, written here: every MEDIAN makes one, on its short way."""
    make: Callable[..., None] = vars(cls)["__init__"]

    @wraps(make)
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        try:
            make(self, *args, **named)
        except TypeError:
            refusal = find_misfit(cls, make, self, args, named)
            if refusal is None:
                raise
        else:
            return
        raise refusal

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


@_require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quantiles:
    """Publish several quantiles of the same values.

    ``quantiles`` are the wanted ones, of values between ``lower`` and ``upper`` on ``grid``, as for
    :class:`Quantile`.

    Definition:
        Recursive halving: the middle one of the wanted quantiles is chosen by
        the exponential mechanism, the values up to it go to the left and the
        others to the right, and each side answers its own quantiles, rescaled,
        on its own part of the domain.  Equal values are first spread over the
        positions of their grid cell in a fixed order, the i-th at the bit reversal
        of i, so that a crowd on one value is split in the right proportion; the
        position is dropped from the answer.

    Guarantee:
        A unit is on one side only, so that each of the d = ceil(log2(m + 1))
        levels costs what one choice does: epsilon / d, together ``epsilon``, and
        d (epsilon / d)**2 / 8 in zCDP.  Given ``rho``, a level gets
        epsilon = sqrt(8 rho / d).  Under change-one neighbours the loss is that
        of a group of two (``loss.change_one()``).

    Accuracy:
        Except with probability beta, every answer is within ``margin`` ranks:
        d times one more than the margin of one choice at beta / m, because a
        level adds at most its own error to those of the answers around it.
        That is certified and wide; ``errors`` gives the law of the error where
        values lie evenly.

    Reference:
        Kaplan, Schnapp and Stemmer (2022), ApproximateQuantiles; van der
        Corput's sequence for ties.  Proofs in docs/proofs/quantiles.md,
        Lemmas 4 to 7.

    Example:
        >>> quartiles = Quantiles(["1/4", "1/2", "3/4"], lower=2, upper=120, epsilon="1/2")
        >>> len(quartiles.release([30, 31, 35, 38, 44] * 200)), quartiles.levels
        (3, 2)
        >>> quartiles.loss.epsilon, quartiles.loss.rho
        (Fraction(1, 2), Fraction(1, 64))
    """

    quantiles: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction
    level_epsilon: Fraction
    grid: Grid | None
    domain: Domain = field(compare=False)

    def __init__(
        self,
        quantiles: Sequence[Exact],
        *,
        lower: Exact,
        upper: Exact,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        grid: Grid | None = None,
    ) -> None:
        wanted = _check_order([_check_quantile(q) for q in quantiles])
        levels = len(wanted).bit_length()
        if rho is not None and epsilon is None:
            price = sqrt_down(8 * positive(rho, name="rho") / levels)
        else:
            price = bounded_range_price(epsilon, rho) / levels
        domain = Domain(lower, upper, grid)
        values = {
            "quantiles": wanted,
            "lower": domain.lower,
            "upper": domain.upper,
            "level_epsilon": price,
            "grid": grid,
            "domain": domain,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = write_call(
            self, lower=self.lower, upper=self.upper, epsilon=self.epsilon, grid=self.grid
        )
        return shown.replace("(", f"({[str(q) for q in self.quantiles]}, ", 1)

    @property
    def levels(self) -> int:
        """How many choices one unit takes part in: ceil(log2(m + 1))."""
        return len(self.quantiles).bit_length()

    @property
    def epsilon(self) -> Fraction:
        """The pure price of all quantiles together."""
        return self.level_epsilon * self.levels

    @property
    def loss(self) -> Loss:
        """What all quantiles together cost one unit."""
        return self.levels * Loss.exponential(self.level_epsilon)

    def release(self, values: Any) -> list[Any]:
        """The private quantiles of a list or array of numbers, ``values``, in increasing order."""
        return self.release_cells(count_cells(self.domain.steps(values), self.domain))

    def release_cells(self, cells: Cells) -> list[Any]:
        """The same, of values counted in ``cells``: steps of the domain, in increasing order."""
        return self.release_ranked(RankedCells.of(cells, shift=self.domain.shift))

    def release_ranked(self, ranked: RankedCells) -> list[Any]:
        """The same, of cells ``ranked`` in order, perhaps in lumps, cut as the domain cuts them."""
        shift = self.domain.shift
        least, most = self.domain.least << shift, ((self.domain.most + 1) << shift) - 1
        answers: list[int] = []
        self._halve(ranked, least, most, self.quantiles, (Fraction(0), Fraction(1)), answers)
        return [self.domain.lift(answer >> shift) for answer in answers]

    def margin(self, beta: Exact | None = None, *, confidence: Exact | None = None) -> float:
        """How many ranks any answer is off at most, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        share = failure_share(beta, confidence) / len(self.quantiles)
        # The worst choice of all is the one for the quantile nearest to an end of its part.
        # One rank more for the value itself, which lies on one side of the cut.
        worst = max(max(q, 1 - q) for q in _targets(self.quantiles, Fraction(0), Fraction(1)))
        one = _rank_margin(self.domain.fine_size, self.level_epsilon / (2 * worst), share)
        return self.levels * (one + 1)

    @property
    def errors(self) -> list[tuple[tuple[float, float], ...]]:
        """What each answer's rank is off by, if values lie evenly: pairs of a weight and a scale.

        The sum of independent two-sided geometric errors, one for each choice on
        which it depends, times their weights (Lemma 12 of the proofs).
        """
        found: list[tuple[tuple[float, float], ...]] = []
        self._add_errors(self.quantiles, (Fraction(0), Fraction(1)), ({}, {}), found)
        return found

    @property
    def reach(self) -> list[int]:
        """How many ranks around each quantile its choice looks at, but for once in 10**22 times.

        Besides a share of all values, ``tied_share``; docs/proofs/quantiles.md, Lemma 13.
        """
        found: list[int] = []
        self._add_reach(
            self.quantiles, (Fraction(0), Fraction(1)), (Fraction(0), Fraction(0)), found
        )
        return found

    @property
    def tied_share(self) -> int:
        """Ranks move by one value in so many where very many are equal; 0 if they do not."""
        return 0 if self.levels == 1 else max(1, (1 << self.domain.shift) // (self.levels - 1))

    def _add_reach(
        self,
        wanted: tuple[Fraction, ...],
        between: tuple[Fraction, Fraction],
        around: tuple[Fraction, Fraction],
        found: list[int],
    ) -> None:
        if not wanted:
            return
        middle = len(wanted) // 2
        low, high = between
        q = (wanted[middle] - low) / (high - low)
        inherited = (1 - q) * around[0] + q * around[1]
        own = inherited + (ceil(NEAR / self._rate(q)) / Fraction(q.denominator)) + 2
        cut = wanted[middle]
        self._add_reach(wanted[:middle], (low, cut), (around[0], own), found)
        found.append(ceil(own))
        self._add_reach(wanted[middle + 1 :], (cut, high), (own, around[1]), found)

    def _rate(self, q: Fraction) -> Fraction:
        """The exponent of one point of the score of a choice that aims at ``q`` of its part."""
        return self.level_epsilon / (2 * max(q.numerator, q.denominator - q.numerator))

    def _add_errors(
        self,
        wanted: tuple[Fraction, ...],
        between: tuple[Fraction, Fraction],
        around: tuple[Errors, Errors],
        found: list[tuple[tuple[float, float], ...]],
    ) -> None:
        if not wanted:
            return
        middle = len(wanted) // 2
        low, high = between
        q = (wanted[middle] - low) / (high - low)
        # A target at the share q between two answers is off by that share of what they are off.
        own: Errors = {wanted[middle]: (1.0, float(2 * max(q, 1 - q) / self.level_epsilon))}
        for share, errors in zip((1 - q, q), around, strict=True):
            for choice, (weight, scale) in errors.items():
                own[choice] = own.get(choice, (0.0, scale))[0] + float(share) * weight, scale
        cut = wanted[middle]
        self._add_errors(wanted[:middle], (low, cut), (around[0], own), found)
        found.append(tuple(own.values()))
        self._add_errors(wanted[middle + 1 :], (cut, high), (own, around[1]), found)

    def _halve(
        self,
        ranked: RankedCells,
        least: int,
        most: int,
        wanted: tuple[Fraction, ...],
        between: tuple[Fraction, Fraction],
        answers: list[int],
    ) -> None:
        """Answer ``wanted`` from the values and candidates between two answers, in order."""
        if not wanted:
            return
        middle = len(wanted) // 2
        low, high = between
        q = (wanted[middle] - low) / (high - low)
        chosen = choose_by_rank(ranked, q, self._rate(q), least, most)
        left, right = ranked.split(chosen)
        self._halve(left, least, chosen, wanted[:middle], (low, wanted[middle]), answers)
        answers.append(chosen)
        beyond = min(chosen + 1, most)
        self._halve(right, beyond, most, wanted[middle + 1 :], (wanted[middle], high), answers)


def _targets(wanted: tuple[Fraction, ...], low: Fraction, high: Fraction) -> Iterator[Fraction]:
    """The quantile, within its own part, that each choice of the halving aims at."""
    if wanted:
        middle = len(wanted) // 2
        yield (wanted[middle] - low) / (high - low)
        yield from _targets(wanted[:middle], low, wanted[middle])
        yield from _targets(wanted[middle + 1 :], wanted[middle], high)


def _rank_margin(candidates: int, rate_per_rank: Fraction, beta: Exact) -> float:
    failure = proportion(beta, name="beta")
    odds = (candidates - 1) * (1 - failure) / failure
    return float_up(log_up(odds) / rate_per_rank) if odds > 1 else 0.0


def _check_quantile(q: Exact) -> Fraction:
    exact = proportion(q, name="a quantile")
    if exact.denominator > _MOST_PARTS:
        raise InvalidParameter(
            "P6",
            "a quantile must be a fraction whose denominator is at most 2**31.",
            why="scores are whole numbers of one part of that denominator, in 64 bits.",
            fix="pass the fraction that is meant, such as '1/3' instead of 0.3333333333333333.",
        )
    return exact


def _check_order(quantiles: list[Fraction]) -> tuple[Fraction, ...]:
    if not quantiles:
        raise InvalidParameter(
            "P5",
            "no quantile is asked for.",
            why="there would be nothing to pay for and nothing to answer.",
            fix="pass quantiles such as ['1/4', '1/2', '3/4'].",
        )
    if any(first >= second for first, second in pairwise(quantiles)):
        raise InvalidParameter(
            "P4",
            "quantiles must be given in increasing order, each once.",
            why="answers come in the same order, and asking twice would be paid twice.",
            fix="sort the quantiles and drop repeated ones.",
        )
    return tuple(quantiles)
