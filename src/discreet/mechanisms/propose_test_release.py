"""Propose a bound on the sensitivity, test privately that it holds, and only then release."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from discreet.accounting.law import DiscreteLaplaceLaw, Law
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose
from discreet.exact.numbers import Exact, failure_share, float_up, positive, proportion, whole
from discreet.exact.search import least_integer
from discreet.mechanisms.grid import Grid, add_noise, require_names, to_steps, write_call
from discreet.mechanisms.laplace import l1_steps, margin_steps
from discreet.mechanisms.quantiles.ranks import Domain, RankedCells, count_occupied_cells
from discreet.mechanisms.selection.scores import check_drawable
from discreet.mechanisms.smooth_sensitivity import find_median, median_reach
from discreet.noise import discrete_laplace

_SURE = 51
"""A test fails by noise alone with probability below exp(-51) where the data are farthest."""


@dataclass(frozen=True, slots=True)
class TestedLaw(Law):
    """Either nothing (``None``) or an integer with noise around it, of the law ``answer``.

    Nothing, where the noisy distance, of the law ``distance``, is not above ``threshold``.
    """

    __test__ = False  # not a test, whatever pytest thinks of the name

    distance: DiscreteLaplaceLaw
    threshold: int
    answer: DiscreteLaplaceLaw

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(``outcome``)."""
        if outcome is None:
            return self.distance.below(self.threshold + 1)
        return self.distance.tail(self.threshold + 1) * self.answer.mass(outcome)


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ProposeTestRelease:
    """Release a value with noise for a proposed sensitivity, or say that it did not hold.

    The value is a whole number, or is put on the public ``grid``.

    Definition:
        Let d(x) be how many units must be added or removed before the value's
        local sensitivity exceeds ``bound``.  If d(x) + Z > threshold, for Z
        discrete Laplace of scale 2 / epsilon, answer the value plus discrete
        Laplace noise of scale 2 bound / epsilon; otherwise answer ``None``.
        ``threshold`` is the least whole m with P(Z > m) <= ``delta``.

    Guarantee:
        (``epsilon``, exact_delta)-differentially private, exact_delta = P(Z >
        threshold) = q**(threshold + 1) / (1 + q), q = exp(-epsilon / 2): the
        chance to pass the test where the bound does not hold, and not more.
        ``distance`` must be that d(x), or any lower number that one unit
        changes by at most one and that is 0 where the bound does not hold.

    Accuracy:
        An answer is within ``margin`` of the value except with probability beta;
        data at a distance d get one with probability ``passing(d)``.

    Reference:
        Dwork and Lei (2009).  Proof in docs/proofs/quantiles.md, Lemma 11.

    Example:
        >>> tested = ProposeTestRelease(bound=3, epsilon="3/4", delta="1e-12")
        >>> tested.threshold, float(tested.exact_delta) < 1e-12
        (72, True)
        >>> ages = [30, 31, 35, 38, 44] * 200
        >>> d = median_distance(ages, lower=2, upper=120, bound=3)
        >>> d, tested.passing(d) > 0.999999
        (199, True)
        >>> type(tested.release(35, distance=d)), tested.margin("0.05")
        (<class 'int'>, 24)
        >>> tested.release(35, distance=2) is None
        True
    """

    bound: Fraction
    epsilon: Fraction
    delta: Fraction
    grid: Grid | None
    threshold: int = field(compare=False)
    exact_delta: Fraction = field(compare=False)
    """P(Z > threshold), rounded up in its 64th binary digit."""
    step_scale: Fraction = field(compare=False)
    """The scale of the answer's noise, in steps of the grid."""

    def __init__(
        self, *, bound: Exact, epsilon: Exact, delta: Exact, grid: Grid | None = None
    ) -> None:
        price, failure = positive(epsilon, name="epsilon"), proportion(delta, name="delta")
        limit = positive(bound, name="bound")
        steps = l1_steps(limit, grid=grid, entries_changed=None)
        noise = DiscreteLaplaceLaw(center=0, scale=check_drawable(2 / price))
        threshold, exact = _least_tail(noise, failure)
        values = {
            "bound": limit,
            "epsilon": price,
            "delta": failure,
            "grid": grid,
            "threshold": threshold,
            "exact_delta": exact,
            "step_scale": check_drawable(2 * steps / price),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return write_call(
            self, bound=self.bound, epsilon=self.epsilon, delta=self.delta, grid=self.grid
        )

    @property
    def loss(self) -> Loss:
        """What one try costs one unit, whether it is answered or not."""
        return Loss.approximate(self.epsilon, self.exact_delta)

    def release(self, value: Any, *, distance: int) -> Any:
        """``value`` with noise, or ``None`` if the test does not pass.

        ``distance`` is the d(x) of the definition.
        """
        away = whole(distance, name="distance")
        to_steps(value, self.grid)  # refuse before the test, so that a refusal says nothing of it
        if away + discrete_laplace(2 / self.epsilon) <= self.threshold:
            return None
        return add_noise(value, self.grid, lambda size: discrete_laplace(self.step_scale, size))

    def release_median(self, ranked: RankedCells, *, span: int) -> Any:
        """The median of cells between 0 and ``span`` with noise, or ``None``.

        ``ranked`` are the values as cells, in steps. The cells within ``reach`` ranks of the middle
        must stand alone.
        """
        domain = Domain(0, span, None)
        away = find_distance(ranked, domain, bound=int(self.bound), most=self.most_distance)
        return self.release(find_median(ranked, domain), distance=away)

    def passing(self, distance: int) -> float:
        """The chance that data at this ``distance`` are answered."""
        law = self._distance_law(distance)
        return min(1.0, float_up(enclose(lambda: law.tail(self.threshold + 1))[1]))

    @property
    def most_distance(self) -> int:
        """The least distance at which data pass but once in 10**22 tries; more tells no more.

        A distance that is cut off here is one of the lower numbers that the guarantee allows.
        """
        return self.threshold + math.ceil(2 * _SURE / self.epsilon)

    @property
    def reach(self) -> int:
        """How many ranks on either side of n / 2 tell a median's distance so far (Lemma 14)."""
        return (self.most_distance - 1) // 2 + 1

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None
    ) -> int | Fraction:
        """How far off an answer is, except with probability ``beta``, given that it is answered.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        steps = margin_steps(self.step_scale, failure_share(beta, confidence), 1)
        return steps if self.grid is None else (steps + 1) * self.grid.step

    def law(self, value: Any, *, distance: int) -> TestedLaw:
        """The exact law of the answer to ``value`` at ``distance``: None, or steps of the grid."""
        steps = to_steps(value, self.grid)
        if not isinstance(steps, int):
            raise InvalidParameter(
                "P6",
                "propose, test, release answers a single number.",
                why="the bound is on how far one number moves.",
                fix="pass one number.",
            )
        return TestedLaw(
            self._distance_law(distance),
            self.threshold,
            DiscreteLaplaceLaw(steps, self.step_scale),
        )

    def _distance_law(self, distance: int) -> DiscreteLaplaceLaw:
        return DiscreteLaplaceLaw(whole(distance, name="distance"), 2 / self.epsilon)


def median_distance(
    values: Any, *, lower: Exact, upper: Exact, bound: Exact, grid: Grid | None = None
) -> int:
    """How many values must be added or removed before the median can move by more than ``bound``.

    ``values`` lie between ``lower`` and ``upper``, or are clipped; ``grid`` is the public one that
    values are put on, where they are not whole numbers.

    Exactly: the least k with A(k) > bound, for the A of
    :class:`SmoothMedian`.  It is computed from the data and is not private; one
    value changes it by at most one.

    >>> median_distance([30, 31, 35, 38, 44], lower=2, upper=120, bound=3)
    0
    """
    domain = Domain(lower, upper, grid)
    step = Fraction(1) if grid is None else grid.step
    most = positive(bound, name="bound") / step
    if most >= domain.most - domain.least:
        raise InvalidParameter(
            "P4",
            "the bound is no less than the whole range.",
            why="the median never moves further, so there is nothing to test.",
            fix="propose a smaller bound, or release with Laplace noise for the range.",
        )
    ranked = RankedCells.of(count_occupied_cells(domain.steps(values)))
    return find_distance(ranked, domain, bound=int(most), most=ranked.total)


def find_distance(ranked: RankedCells, domain: Domain, *, bound: int, most: int) -> int:
    """The same of cells and in steps, or ``most`` if it is farther.

    A never falls, and reaches the whole range with the last value gone.
    """

    def exceeds(changes: int) -> bool:
        return int(median_reach(ranked, domain, np.array([changes]))[0]) > bound

    return bisect_left(range(min(ranked.total, most)), True, key=exceeds)


def _least_tail(noise: DiscreteLaplaceLaw, delta: Fraction) -> tuple[int, Fraction]:
    """The least m >= 0 with P(Z > m) <= delta, and that probability rounded up."""

    def beyond(m: int) -> Fraction:
        return enclose(lambda: noise.tail(m + 1))[1]

    least = least_integer(lambda m: beyond(m) <= delta)
    return least, beyond(least)
