"""How far one unit can move a measurement: in total, and in Euclidean length.

Lemma numbers refer to ``docs/proofs/price.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.price.plan import (
    Contribution,
    DistinctValues,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Units,
    ValueCounts,
)
from discreet.question.schema import Neighbours


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most one unit changes a vector of integers: L1, and L2 squared."""

    l1: int
    l2_squared: int


@dataclass(frozen=True, slots=True)
class Reach:
    """What one unit holds after bounding: groups it is in, rows in one group, rows in all."""

    groups: int
    rows_per_group: int
    rows: int

    @classmethod
    def of(cls, contribution: Contribution, *, grouped: bool, most: int | None = None) -> Reach:
        """The reach of a contribution; without keys there is one group.

        ``most`` is what the relation itself bounds a unit's rows to, if it does.
        """
        if contribution.rows is not None:
            rows = contribution.rows
            return cls(rows if grouped else 1, rows, rows)
        groups = contribution.groups or 1
        per_group = contribution.rows_per_group or 1
        if not grouped:
            groups = 1
        rows = groups * per_group
        return cls(groups, per_group, rows if most is None else min(rows, most))

    @property
    def length_squared(self) -> int:
        """The greatest sum of squared row counts over groups.

        Lemma 1: with at most ``rows`` rows in all it is largest when they share a
        group; with a bound per group, when every group is full.
        """
        full, rest = divmod(self.rows, self.rows_per_group)
        return full * self.rows_per_group**2 + rest**2


def compute_sensitivity(
    measurement: Measurement, reach: Reach, neighbours: Neighbours
) -> Sensitivity:
    """The sensitivity of one measurement of every group together."""
    l1, l2_squared = _bound_addition(measurement, reach)
    if neighbours is Neighbours.CHANGE_ONE:  # Lemma 5: a change is a removal and an addition
        return Sensitivity(2 * l1, 4 * l2_squared)
    return Sensitivity(l1, l2_squared)


def _bound_addition(measurement: Measurement, reach: Reach) -> tuple[int, int]:
    match measurement:
        case Moments(weight=weight):  # Lemma 2: a row's entries are >= 0 and add up to weight
            return reach.rows * weight, reach.length_squared * weight**2
        case Histogram() | ValueCounts() | DistinctValues():  # Lemma 3: a row moves one count by 1
            return reach.rows, reach.length_squared
        case Units():  # Lemma 4: a unit is counted once in each of its groups
            return reach.groups, reach.groups
        case GroupTotal(span=span):  # Lemma 4, with weight span
            return reach.groups * span, reach.groups * span**2
