"""Any function of the rows, averaged over blocks of units: what it costs, how far noise moves it.

Price and promise hold whatever the function is: one unit is in one block, and moves one block's
outputs, each between public bounds.  Proofs: ``docs/proofs/aggregation.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction, proportion, whole
from discreet.mechanisms import Laplace
from discreet.question.schema import Neighbours

STEPS = 2**20
"""In so many steps between its bounds an output is measured."""
MOST_BLOCKS, MOST_OUTPUTS = 10_000, 100

Bounds = tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The average over ``blocks`` blocks of outputs between ``bounds``, with noise for all."""

    bounds: Bounds
    blocks: int
    noise: Laplace

    @classmethod
    def of(
        cls,
        output_bounds: Sequence[Any],
        *,
        epsilon: Exact,
        blocks: int,
        neighbours: Neighbours,
    ) -> Aggregation:
        """What ``epsilon`` buys; ``output_bounds`` is (low, high), or one such pair an output."""
        bounds = read_bounds(output_bounds)
        count = whole(blocks, name="blocks", least=1)
        if count > MOST_BLOCKS:
            raise InvalidParameter(
                "P2",
                f"blocks is {count:,}, more than {MOST_BLOCKS:,}.",
                why="each block is a process of its own, and they take a fixed time together.",
                fix=f"divide the units into at most {MOST_BLOCKS:,} blocks.",
            )
        # A unit that is changed may go to another block: Lemma 1.
        sides = 2 if neighbours is Neighbours.CHANGE_ONE else 1
        noise = Laplace(sensitivity=sides * len(bounds) * STEPS, epsilon=epsilon)
        return cls(bounds, count, noise)

    @property
    def loss(self) -> Loss:
        """What it costs one unit, whatever the function is."""
        return self.noise.loss

    def margins(self, confidence: Exact = "0.95") -> tuple[float, ...]:
        """How far noise and rounding move each average; nothing is said of the function itself."""
        beta = 1 - proportion(confidence, name="confidence")
        steps = self.noise.margin(beta) / self.blocks + Fraction(1, 2)
        return tuple(float(steps * (high - low) / STEPS) for low, high in self.bounds)

    def count_steps(self, output: Sequence[float] | None) -> tuple[int, ...]:
        """The outputs of one block in steps, clipped; where there are none, the middle of each."""
        if output is None:
            return (STEPS // 2,) * len(self.bounds)
        return tuple(
            STEPS // 2 if math.isnan(value) else min(max(round(_scale(value, low, high)), 0), STEPS)
            for value, (low, high) in zip(output, self.bounds, strict=True)
        )

    def read(self, totals: Sequence[int]) -> tuple[float, ...]:
        """The averages, off noisy sums of steps."""
        return tuple(
            float(low + Fraction(total, self.blocks * STEPS) * (high - low))
            for total, (low, high) in zip(totals, self.bounds, strict=True)
        )


def _scale(value: float, low: Fraction, high: Fraction) -> Fraction:
    """In steps; infinities are as far off as anything needs to be."""
    if value in (float("inf"), float("-inf")):
        return Fraction(STEPS if value > 0 else 0)
    return (Fraction(value) - low) / (high - low) * STEPS


def read_bounds(given: Sequence[Any]) -> Bounds:
    """One pair of bounds for each output."""
    listed = list(given) if isinstance(given, list | tuple) else []
    if len(listed) == 2 and not any(isinstance(one, list | tuple) for one in listed):
        listed = [tuple(listed)]
    pairs = [one for one in listed if isinstance(one, list | tuple) and len(one) == 2]
    if not listed or len(pairs) != len(listed) or len(listed) > MOST_OUTPUTS:
        raise InvalidParameter(
            "P4",
            f"output_bounds is not (low, high), nor a list of 1 to {MOST_OUTPUTS} such pairs.",
            why="what one person can change of an output must be bounded before it can be hidden.",
            fix="pass output_bounds=(0, 100), or [(0, 100), (-1, 1)] for two outputs.",
        )
    bounds = tuple((fraction(low, name="low"), fraction(high, name="high")) for low, high in pairs)
    if any(low >= high for low, high in bounds):
        raise InvalidParameter(
            "P2",
            "a lower bound of output_bounds is not below its upper bound.",
            why="an output that cannot vary has nothing to tell.",
            fix="pass the lower bound first.",
        )
    return bounds


__all__ = ["Aggregation"]
