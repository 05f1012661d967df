"""What is public about a sparse vector: its settings, and the noise they buy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpz

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction, nonnegative, positive, proportion, whole
from discreet.exact.search import least_decimal
from discreet.mechanisms.grid import Grid, to_steps
from discreet.mechanisms.laplace import l1_steps
from discreet.mechanisms.selection.noisy_race import overtaking_probability
from discreet.mechanisms.selection.scores import REACH, check_drawable, too_far


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything public about a run, in whole steps of the grid."""

    threshold: int
    threshold_scale: Fraction
    query_scale: Fraction
    cutoff: int
    renew: bool
    answer_scale: Fraction | None
    grid: Grid | None

    def failure(self, distance: int, queries: int) -> float:
        """A bound on the chance that some answer is wrong by more than ``distance`` steps.

        At most ``cutoff`` of the queries are near or above the threshold.
        False alarms: a query ``distance + 1`` below reaches the lowest of the
        noisy thresholds.  Misses: a query as far above stays below the highest.
        Numbers: one of the answers is off by more (``docs/proofs/sparse-vector.md``,
        Lemma 5).
        """
        leaders = self.cutoff if self.renew else 1
        above = min(self.cutoff, queries)

        def cross(by: int, chasers: int) -> float:
            return overtaking_probability(
                by,
                chasers=chasers,
                chaser_scale=self.query_scale,
                leaders=leaders,
                leader_scale=self.threshold_scale,
            )

        total = cross(distance + 1, queries) + cross(distance + 2, above)
        if self.answer_scale is not None:
            q = np.exp(-1 / float(self.answer_scale))
            one = 2 * np.exp(-(distance + 1) / float(self.answer_scale)) / (1 + q)
            total += float(above * one) * (1 + 2.0**-20)
        return total


@dataclass(frozen=True, slots=True)
class Settings:
    """What the three have in common, checked."""

    threshold: Fraction
    cutoff: int
    sensitivity: Fraction
    epsilon: Fraction
    delta: Fraction
    monotonic: bool
    renew: bool
    grid: Grid | None

    @classmethod
    def check(
        cls,
        threshold: Exact,
        sensitivity: Exact,
        epsilon: Exact,
        *,
        monotonic: bool,
        grid: Grid | None,
        cutoff: int = 1,
        delta: Exact = 0,
        renew: bool = True,
    ) -> Settings:
        """The settings, or a refusal."""
        failure = nonnegative(delta, name="delta")
        if failure and not renew:
            raise InvalidParameter(
                "P4",
                "a kept threshold is priced with delta = 0 only.",
                why="its noise is shared by all rounds, so that they do not compose as separate "
                "mechanisms.",
                fix="leave out delta, or renew the threshold.",
            )
        return cls(
            threshold=fraction(threshold, name="threshold"),
            cutoff=whole(cutoff, name="cutoff", least=1),
            sensitivity=positive(sensitivity, name="sensitivity"),
            epsilon=positive(epsilon, name="epsilon"),
            delta=failure and proportion(failure, name="delta"),
            monotonic=bool(monotonic),
            renew=bool(renew),
            grid=grid,
        )

    @property
    def steps(self) -> int:
        """The sensitivity in whole steps."""
        return l1_steps(self.sensitivity, grid=self.grid, entries_changed=None)

    @property
    def best_share(self) -> Fraction:
        """The threshold's share of epsilon for the least error, 1 : (2c)**(2/3) or 1 : c**(2/3).

        Every share is private, so the cube root is cut after six decimals.
        """
        rounds = 1 if self.renew else self.cutoff
        weight = rounds if self.monotonic else 2 * rounds
        return Fraction(10**6, 10**6 + int(fmpz(weight**2 * 10**18).root(3)))

    def round_price(self, cost: Callable[[Fraction], Loss]) -> Fraction:
        """The greatest price of a round for which ``cutoff`` of them stay within the target."""
        alone = self.epsilon / (self.cutoff * Fraction(cost(Fraction(1)).epsilon))
        if not self.delta:
            return alone  # DR Corollary 3.15
        # Searched as 1 / price, whose six digits are rounded up: never more than was asked for.
        inverse = least_decimal(
            lambda x: (self.cutoff * cost(1 / x)).epsilon_at(self.delta) <= self.epsilon,
            near=float(1 / alone),
        )
        return max(alone, 1 / inverse)

    def plan(
        self, price: Fraction, *, share: Fraction | None = None, answers: Fraction | None = None
    ) -> Plan:
        """``price`` is that of one round; a kept threshold is paid from all rounds at once."""
        part = self.best_share if share is None else share
        shifts = (1 if self.monotonic else 2) * (1 if self.renew else self.cutoff)
        whole_price = price if self.renew else price * self.cutoff
        level = self.threshold
        return Plan(
            threshold=steps_list([int(level) if level.denominator == 1 else level], self.grid)[0],
            threshold_scale=check_drawable(self.steps / (part * whole_price)),
            query_scale=check_drawable(shifts * self.steps / ((1 - part) * whole_price)),
            cutoff=self.cutoff,
            renew=self.renew,
            answer_scale=answers,
            grid=self.grid,
        )

    def give_to(self, mechanism: object, **more: object) -> None:
        """Set the fields that ``mechanism`` has."""
        values = {name: getattr(self, name) for name in self.__slots__} | more
        for name in mechanism.__slots__:  # type: ignore[attr-defined]
            object.__setattr__(mechanism, name, values[name])


def steps_list(values: Any, grid: Grid | None) -> list[int]:
    """Query values in whole steps of the grid, refused if out of reach."""
    steps = to_steps(values if hasattr(values, "dtype") else list(values), grid)
    whole_steps = [steps] if isinstance(steps, int) else steps
    if any(abs(one) > REACH for one in whole_steps):
        raise too_far()
    return whole_steps
