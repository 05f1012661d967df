"""The median with noise to fit the data at hand: smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.accounting.loss import Loss
from discreet.exact.balls import log_up
from discreet.exact.numbers import Exact, failure_share, positive, proportion
from discreet.mechanisms.grid import Grid, Integers, require_names, write_call
from discreet.mechanisms.laplace import margin_steps
from discreet.mechanisms.quantiles.ranks import Domain, RankedCells, count_occupied_cells
from discreet.mechanisms.selection.scores import check_drawable
from discreet.noise import discrete_laplace

_FRACTION_BITS = 20
_MOST_LEVELS = 1 << 20


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class SmoothMedian:
    """Publish the median with noise in proportion to its smooth sensitivity.

    Definition:
        M(x) = median(x) + Z in steps of the ``grid``, the median being the value of
        rank ceil(n / 2) after clipping to [lower, upper], and Z discrete Laplace
        of scale 2 S(x) / epsilon.  S is the smooth sensitivity: with
        A(k) = x[floor((n + k) / 2) + 1] - x[floor((n - k) / 2)], the most that
        the median moves within k changes (ranks below the first count as
        ``lower``, above the last as ``upper``), S(x) is the greatest
        decay**k A(k), rounded up to one of a public list of levels, each at
        least ``decay`` times the one before.

    Guarantee:
        (``epsilon``, ``delta``)-differentially private when one value is added or
        removed.  decay = L / (L + epsilon / 2), L = ln(2 / delta) rounded up.

    Accuracy:
        The noise is not public, because S(x) is not; ``margin`` says how far off
        the answer is for data whose smooth sensitivity is the one given.

    Reference:
        Nissim, Raskhodnikova and Smith (2007), sections 2 and 3.1, for
        change-one neighbours; the formula for A(k) under add/remove, and the
        proof for noise on the integers, in docs/proofs/quantiles.md, Lemmas 8
        to 10; Lemma 14 for the ranks that are looked at.

    Example:
        >>> median = SmoothMedian(lower=2, upper=120, epsilon="3/4", delta="1e-6")
        >>> median
        SmoothMedian(lower=2, upper=120, epsilon='3/4', delta='1/1000000')
        >>> ages = [30, 31, 35, 38, 44] * 400
        >>> median.release(ages)
        35
        >>> median.smooth_sensitivity(ages) < Fraction(1, 2000)     # from the data: not public
        True
        >>> median.margin("0.05", smooth=6)
        48
    """

    lower: Fraction
    upper: Fraction
    epsilon: Fraction
    delta: Fraction
    grid: Grid | None
    domain: Domain = field(compare=False)
    decay: Fraction = field(compare=False)
    """How much of the smooth sensitivity is left one neighbour further, at least."""

    def __init__(
        self,
        *,
        lower: Exact,
        upper: Exact,
        epsilon: Exact,
        delta: Exact,
        grid: Grid | None = None,
    ) -> None:
        price, failure = positive(epsilon, name="epsilon"), proportion(delta, name="delta")
        domain = Domain(lower, upper, grid)
        check_drawable(2 * (domain.most - domain.least) / price)
        # At least 1, so that the change of scale costs less than epsilon / 2 both ways.
        reach = max(Fraction(1), Fraction(math.ceil(log_up(2 / failure) * 2**20), 2**20))
        values = {
            "lower": domain.lower,
            "upper": domain.upper,
            "epsilon": price,
            "delta": failure,
            "grid": grid,
            "domain": domain,
            "decay": reach / (reach + price / 2),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return write_call(
            self,
            lower=self.lower,
            upper=self.upper,
            epsilon=self.epsilon,
            delta=self.delta,
            grid=self.grid,
        )

    @property
    def loss(self) -> Loss:
        """What one median costs one unit."""
        return Loss.approximate(self.epsilon, self.delta)

    def release(self, values: Any) -> Any:
        """A private median of a list or array of numbers, ``values``."""
        return self.release_ranked(self._rank(values))

    def release_ranked(self, ranked: RankedCells) -> Any:
        """The same of cells: those within ``reach`` ranks of the middle must stand alone.

        ``ranked`` are these cells, in order.
        """
        law = self._law(ranked)
        return self.domain.lift(law.center + discrete_laplace(law.scale))

    @property
    def reach(self) -> int:
        """How many ranks on either side of n / 2 are looked at, whatever the data (Lemma 14)."""
        return self._most_changes // 2 + 1

    @property
    def _most_changes(self) -> int:
        """Beyond so many changes no level is below the last one, which is the least there is."""
        return len(_levels(self.domain.most - self.domain.least, self.decay)[1]) - 1

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, smooth: Exact
    ) -> int | Fraction:
        """How far off the answer is, except with probability ``beta``, if S(x) is ``smooth``.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        step = Fraction(1) if self.grid is None else self.grid.step
        scale = 2 * positive(smooth, name="smooth") / step / self.epsilon
        steps = margin_steps(scale, failure_share(beta, confidence), 1)
        return steps if self.grid is None else (steps + 1) * step

    def law(self, values: Any) -> DiscreteLaplaceLaw:
        """The exact law of the answer for these ``values``, counted in steps of the grid."""
        return self._law(self._rank(values))

    def smooth_sensitivity(self, values: Any) -> Fraction:
        """S(x) of these ``values``, in their unit.  Computed from the data, it is not private."""
        step = Fraction(1) if self.grid is None else self.grid.step
        return self._smooth(self._rank(values)) * step

    def _rank(self, values: Any) -> RankedCells:
        return RankedCells.of(count_occupied_cells(self.domain.steps(values)))

    def _law(self, ranked: RankedCells) -> DiscreteLaplaceLaw:
        median = find_median(ranked, self.domain)
        return DiscreteLaplaceLaw(median, 2 * self._smooth(ranked) / self.epsilon)

    def _smooth(self, ranked: RankedCells) -> Fraction:
        """The least level J = k + (the last level that is at least A(k)), over k (Lemma 9)."""
        numerators, floors = _levels(self.domain.most - self.domain.least, self.decay)
        changes = np.arange(min(ranked.total, self._most_changes) + 1)
        reached = median_reach(ranked, self.domain, changes)
        # floors falls; the last point where it is still at least A(k).
        last = np.searchsorted(-floors, -reached, side="right") - 1
        level = min(int((changes + last).min()), len(floors) - 1)
        return Fraction(numerators[level], 1 << _FRACTION_BITS)


def find_median(ranked: RankedCells, domain: Domain) -> int:
    """The value of rank ceil(n / 2), the least of the domain if there are none."""
    return int(_find_values(ranked, domain, np.array([(ranked.total + 1) // 2]))[0])


def median_reach(ranked: RankedCells, domain: Domain, changes: Integers) -> Integers:
    """A(k) for each k: the greatest local sensitivity of the median within k changes (Lemma 8)."""
    n = ranked.total
    high = _find_values(ranked, domain, (n + changes) // 2 + 1)
    return high - _find_values(ranked, domain, (n - changes) // 2)


def _find_values(ranked: RankedCells, domain: Domain, ranks: Integers) -> Integers:
    """The values of some ranks: before the first the least of the domain, past the last the most.

    Only those that are there are looked for: of cells that stand for several, no other need.
    """
    there = (ranks >= 1) & (ranks <= ranked.total)
    found: Integers = np.where(ranks < 1, domain.least, domain.most)
    found[there] = ranked.find_values(ranks[there])
    return found


@lru_cache(maxsize=64)
def _levels(span: int, decay: Fraction) -> tuple[tuple[int, ...], Integers]:
    """The levels of smooth sensitivity, in 2**-20 of a step, and in whole steps rounded down.

    Each is the one before times decay, rounded up.
    The list ends where rounding up leaves the level as it is, or after 2**20.
    """
    numerators, (top, bottom) = [span << _FRACTION_BITS], decay.as_integer_ratio()
    while len(numerators) < _MOST_LEVELS:
        following = -(-numerators[-1] * top // bottom)
        if following == numerators[-1]:
            break
        numerators.append(following)
    floors = np.array([one >> _FRACTION_BITS for one in numerators], dtype=np.int64)
    return tuple(numerators), floors
