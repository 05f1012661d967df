"""The exact law of what a sparse vector answers, for a fixed list of queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flint import arb

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.errors import InvalidParameter
from discreet.mechanisms.laplace_table import LaplaceTable, summation_reach
from discreet.mechanisms.sparse.plan import Plan

Answers = tuple[bool, ...]


def transcript_law(plan: Plan, values: Sequence[int]) -> FiniteLaw:
    """The law of the answers to ``values`` (in steps), up to the halt.

    The sum over the noisy threshold is cut where the tail is below the
    precision in force, and what is cut widens the ball.
    """
    if not values:
        raise InvalidParameter(
            "P5",
            "there is no query to answer.",
            why="a law needs at least one outcome.",
            fix="pass at least one value.",
        )
    outcomes = tuple(transcripts(len(values), plan.cutoff))

    def masses() -> list[arb]:
        table = _Table.of(plan, values)
        return [_probability(answers, plan, table) for answers in outcomes]

    return FiniteLaw(outcomes, masses)


def transcripts(queries: int, cutoff: int) -> Iterator[Answers]:
    """Every list of answers: ``queries`` of them, or fewer and ending with the last "above".

    >>> [len(answers) for answers in transcripts(3, 2)]
    [2, 3, 3, 3, 3, 3, 3]
    """
    if 2 ** min(queries, 64) > MOST_OUTCOMES and cutoff > 2:
        raise InvalidParameter(
            "P4",
            f"{queries} queries with {cutoff} answers have too many transcripts to list.",
            why="the exact law names every one of them.",
            fix="look at the law of fewer queries.",
        )
    open_ones: list[Answers] = [()]
    for _ in range(queries):
        following: list[Answers] = []
        for answers in open_ones:
            positive = (*answers, True)
            if sum(positive) == cutoff:
                yield positive
            else:
                following.append(positive)
            following.append((*answers, False))
        open_ones = following
    yield from open_ones


@dataclass(frozen=True, slots=True)
class _Table:
    """For each value t of the threshold's noise: its mass, and P(query < threshold + t)."""

    noise: list[arb]
    below: list[list[arb]]
    left_out: arb

    @classmethod
    def of(cls, plan: Plan, values: Sequence[int]) -> _Table:
        reach, left_out = summation_reach(plan.threshold_scale)
        span = range(-reach, reach + 1)
        level = LaplaceTable.of(plan.threshold_scale, reach)
        furthest = reach + max(abs(plan.threshold - value) for value in values)
        query = LaplaceTable.of(plan.query_scale, furthest)
        return cls(
            [level.mass(t) for t in span],
            [[query.below(plan.threshold + t - value) for t in span] for value in values],
            left_out,
        )

    def round(self, answers: Answers, first: int) -> arb:
        """P(these answers to the queries from ``first`` on), with one threshold for all."""
        weights = self.noise
        for index, above in enumerate(answers, start=first):
            low = self.below[index]
            weights = [
                weight * (1 - mass if above else mass)
                for weight, mass in zip(weights, low, strict=True)
            ]
        return sum(weights, arb(0)) + self.left_out


def _probability(answers: Answers, plan: Plan, table: _Table) -> arb:
    if not plan.renew:
        return table.round(answers, 0)
    product, first = arb(1), 0
    while first < len(answers):
        stop = next((at + 1 for at in range(first, len(answers)) if answers[at]), len(answers))
        product *= table.round(answers[first:stop], first)
        first = stop
    return product
