"""Report noisy max: add noise to every score and publish who is highest, not how high."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from flint import arb

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, failure_share, positive, whole
from discreet.mechanisms.grid import Grid, Integers, require_names, saturating_sum, write_call
from discreet.mechanisms.laplace_table import LaplaceTable, summation_reach
from discreet.mechanisms.selection.exponential import ExponentialMechanism, PermuteAndFlip
from discreet.mechanisms.selection.noisy_race import least_distance, overtaking_probability
from discreet.mechanisms.selection.scores import (
    Scores,
    check_drawable,
    rate_per_step,
    read_scores,
    to_score_units,
)
from discreet.noise import discrete_laplace

Noise = Literal["laplace", "exponential", "gumbel"]
NOISES: tuple[Noise, ...] = ("laplace", "exponential", "gumbel")


class Winner(NamedTuple):
    """The ``candidate`` that is highest, and its ``lead``: so many steps less noise would do."""

    candidate: Any
    lead: int | Fraction


class CountedWinner(NamedTuple):
    """The ``candidate`` that is highest, and how high with the noise, its ``score``."""

    candidate: Any
    score: int | Fraction


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ReportNoisyMax:
    """Add noise to every score and report the candidate whose noisy score is highest.

    Definition:
        M(x) = argmax of u(x, r) + Z_r over the candidates r, with independent
        noise of scale 2 sensitivity / epsilon, or sensitivity / epsilon if
        ``monotonic`` or ``disjoint``.  ``noise`` is "laplace" (two-sided
        geometric, in whole steps of the ``grid``; of equal noisy scores the one
        listed first wins), "exponential" (one-sided) or "gumbel".  The last two
        are drawn through the laws they are equal to: :class:`PermuteAndFlip`
        and :class:`ExponentialMechanism`.  Unless it is said, it is the one of
        least error, "exponential"; where counts are ``disjoint``, "laplace",
        with which the winner's count is free.

    Guarantee:
        If every score changes by at most ``sensitivity``, M is
        ``epsilon``-differentially private.  ``monotonic``: besides, adding a unit
        lowers no score (or raises none), under add/remove neighbours.
        ``disjoint``: besides, a unit changes only one score, as in a histogram.
        The lead of the winner (``release_with_lead``) is free with Laplace
        noise; its noisy count (``release_with_count``) is free only if
        ``disjoint``, and not, as DR 3.3 says in passing, for all counts.

    Accuracy:
        ``margin`` bounds how much worse than the best the choice is, except
        with probability beta, for any scores of k candidates.  It is attained,
        up to blocks of 1/64 of the scale, when the others are all equally bad.

    Reference:
        DR Claim 3.9, whose Lap(1 / epsilon) is right for monotonic scores only;
        DR Theorem 3.13 and Remark 3.1; Ding, Wang, Zhang and Kifer (2019) for
        the lead.  Proofs in docs/proofs/selection.md, Lemmas 6 to 9.

    Example:
        >>> best = ReportNoisyMax(sensitivity=3, epsilon="1/2")
        >>> best.noise, round(best.margin("0.05", candidates=40), 1)
        ('exponential', 71.2)
        >>> top = ReportNoisyMax(sensitivity=3, epsilon="1/2", noise="laplace")
        >>> top, top.scale
        (ReportNoisyMax(sensitivity=3, epsilon='1/2', noise='laplace'), Fraction(12, 1))
        >>> top.release({"flu": 2041, "cold": 977, "gout": 12})
        'flu'
        >>> top.margin("0.05", candidates=40)
        82
        >>> top.release_with_lead([12, 977, 2041]).candidate
        2
        >>> names = ReportNoisyMax(sensitivity=3, epsilon="1/2", disjoint=True)
        >>> names.scale, names.release_with_count([12, 977, 2041]).candidate
        (Fraction(6, 1), 2)
    """

    sensitivity: Fraction
    epsilon: Fraction
    noise: Noise
    monotonic: bool
    disjoint: bool
    grid: Grid | None
    step_scale: Fraction = field(compare=False)
    """The scale of the noise, in steps of the grid."""

    def __init__(
        self,
        *,
        sensitivity: Exact,
        epsilon: Exact,
        noise: Noise | None = None,
        monotonic: bool = False,
        disjoint: bool = False,
        grid: Grid | None = None,
    ) -> None:
        price = positive(epsilon, name="epsilon")
        # A unit that changes one score moves two scores against each other by as much.
        halved = bool(monotonic or disjoint)
        scale = check_drawable(1 / rate_per_step(sensitivity, price, monotonic=halved, grid=grid))
        if noise is None:
            noise = "laplace" if disjoint else "exponential"
        if noise not in NOISES:
            raise _unknown_noise(noise)
        values = {
            "sensitivity": positive(sensitivity, name="sensitivity"),
            "epsilon": price,
            "noise": noise,
            "monotonic": bool(monotonic),
            "disjoint": bool(disjoint),
            "grid": grid,
            "step_scale": scale,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return write_call(
            self,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            noise=self.noise,
            monotonic=self.monotonic or None,
            disjoint=self.disjoint or None,
            grid=self.grid,
        )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in the unit of the scores."""
        return self.step_scale if self.grid is None else self.step_scale * self.grid.step

    @property
    def loss(self) -> Loss:
        """What one report costs one unit; only Gumbel noise has bounded range."""
        return Loss.exponential(self.epsilon) if self.noise == "gumbel" else Loss.pure(self.epsilon)

    def release(self, scores: Scores) -> Any:
        """The winner: its index in a list or array, its name in a mapping.

        ``scores`` has one for each candidate.
        """
        if self.noise != "laplace":
            return self._twin().release(scores)
        votes = read_scores(scores, self.grid)
        return votes.name_of(int(np.argmax(self._noisy(votes.steps))))

    def release_with_lead(self, scores: Scores) -> Winner:
        """The winner, and how much less its noise could have been without losing; free.

        ``scores`` has one for each candidate.

        That is its noisy score minus the highest other one, less one step if
        that one is listed before it and would win a tie.
        """
        self._only_laplace("the lead of the winner")
        votes = read_scores(scores, self.grid)
        if len(votes.steps) < 2:
            raise InvalidParameter(
                "P5",
                "a lead needs at least two candidates.",
                why="there is nobody to be ahead of.",
                fix="pass two scores or more.",
            )
        noisy = self._noisy(votes.steps)
        winner = int(np.argmax(noisy))
        others = [int(part.max()) + step for part, step in _around(noisy, winner) if len(part)]
        lead = int(noisy[winner]) - max(others)
        return Winner(votes.name_of(winner), lead if self.grid is None else lead * self.grid.step)

    def release_with_count(self, scores: Scores) -> CountedWinner:
        """The winner and its noisy score, free for disjoint counts and for no others.

        ``scores`` has one for each candidate.
        """
        self._only_laplace("the count of the winner")
        if not self.disjoint:
            raise InvalidParameter(
                "P4",
                "the winner's noisy count is free only for disjoint counts.",
                why="if one person can change every count, the value of the winner says how all "
                "of the others fell, and the loss grows with the number of candidates.",
                fix="state disjoint=True if a unit changes one score at most; otherwise release "
                "the winner's count anew with Laplace noise, or use release_with_lead.",
            )
        votes = read_scores(scores, self.grid)
        noisy = self._noisy(votes.steps)
        winner = int(np.argmax(noisy))
        count = int(noisy[winner])
        return CountedWinner(
            votes.name_of(winner), count if self.grid is None else count * self.grid.step
        )

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, candidates: int
    ) -> int | Fraction | float:
        """How much worse than the best the winner is at most, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``candidates`` is how many there
        are.
        """
        if self.noise != "laplace":
            return self._twin().margin(beta, confidence=confidence, candidates=candidates)
        others = whole(candidates, name="candidates", least=1) - 1
        steps = least_distance(
            lambda m: overtaking_probability(
                m + 1,
                chasers=others,
                chaser_scale=self.step_scale,
                leaders=1,
                leader_scale=self.step_scale,
            ),
            failure_share(beta, confidence),
        )
        return steps if self.grid is None else to_score_units(Fraction(steps), self.grid)

    def law(self, scores: Scores) -> FiniteLaw:
        """The exact law of the choice by these ``scores``."""
        if self.noise != "laplace":
            return self._twin().law(scores)
        votes = read_scores(scores, self.grid)
        steps = votes.steps.tolist()
        orders = [(index,) for index in range(len(steps))]
        return FiniteLaw(votes.outcomes, lambda: ranking_masses(steps, self.step_scale, orders))

    def _noisy(self, steps: Integers) -> Integers:
        return saturating_sum(steps, discrete_laplace(self.step_scale, len(steps)))

    def _twin(self) -> ExponentialMechanism | PermuteAndFlip:
        kind = ExponentialMechanism if self.noise == "gumbel" else PermuteAndFlip
        return kind(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            monotonic=self.monotonic or self.disjoint,
            grid=self.grid,
        )

    def _only_laplace(self, what: str) -> None:
        if self.noise != "laplace":
            raise InvalidParameter(
                "P4",
                f"{what} is released with Laplace noise only.",
                why="with one-sided or Gumbel noise only the winner itself is drawn here.",
                fix="pass noise='laplace'.",
            )


def ranking_masses(
    scores: Sequence[int], scale: Fraction, orders: Sequence[tuple[int, ...]]
) -> list[arb]:
    """P(the highest noisy scores are those of ``order``, in that order), for each order.

    Noise is discrete Laplace and the first listed wins a tie.  The last of the
    order is at v while all outside it are lower; then the one before is above
    it; and so on up, in one pass over the values v for each.  Values further
    out than ``window`` are left out, and what they weigh widens the ball.
    """
    reach, left_out = summation_reach(scale)
    low, high = min(scores), max(scores)
    noise = LaplaceTable.of(scale, reach + high - low)
    values = range(low - reach, high + reach + 1)
    at = [[noise.mass(v - score) for v in values] for score in scores]
    below = [[noise.below(v - score) for v in values] for score in scores]
    return [_one_ranking(order, at, below) + len(scores) * left_out for order in orders]


def _one_ranking(order: tuple[int, ...], at: list[list[arb]], below: list[list[arb]]) -> arb:
    last = order[-1]
    weights = list(at[last])  # weights[v] = P(the ranking holds from here down, this one at v)
    for other in range(len(at)):
        if other not in order:
            # Listed before: it must be lower.  Listed after: it may be equal.
            ties = 0 if other < last else 1
            weights = [
                weight * (below[other][v] + ties * at[other][v]) for v, weight in enumerate(weights)
            ]
    for lower, upper in zip(reversed(order), reversed(order[:-1]), strict=False):
        total, sums = arb(0), []  # sums[v] = the weight of the lower one strictly below v
        for weight in weights:
            sums.append(total)
            total += weight
        if upper < lower:  # listed before: wins a tie
            sums = [partial + weight for partial, weight in zip(sums, weights, strict=True)]
        weights = [mass * partial for mass, partial in zip(at[upper], sums, strict=True)]
    return sum(weights, arb(0))


def _around(noisy: Integers, winner: int) -> tuple[tuple[Integers, int], tuple[Integers, int]]:
    """The others, and the step by which those listed before the winner win a tie."""
    return (noisy[:winner], 1), (noisy[winner + 1 :], 0)


def _unknown_noise(noise: object) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"noise must be one of {', '.join(map(repr, NOISES))}, got {noise!r}.",
        why="each has its own proof and its own loss.",
        fix="pass noise='exponential' for the least error, or noise='laplace' for the lead.",
    )
