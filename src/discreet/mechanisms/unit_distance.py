"""Distance from a property in units, each of which may have several rows.

The fewest *units* to leave out until the rest has a property are hard to find where units have
several rows: for a dependency or an order they are a vertex cover, for clusters a densest subgraph.
What is found here is never more than that, is the same where each unit has one row, and moves by at
most one with a unit, whatever its rows are:

- a unit whose own rows break the property must go, whoever else is there: it counts one;
- of the others each row weighs one part of its unit, and what is told is the least weight of rows
  to leave out, rounded up.

At most R times as many units are needed, if none of the others has more than R different rows.
Proof: ``docs/proofs/distances.md``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.numbers import Exact, nonnegative, whole

WHOLE = lcm(*range(1, 25))
"""The weight of a unit: the rows of one with up to 24 share it without a rest, others nearly."""

Integers = NDArray[np.int64]


def count_units_to_dependency(units: Any, on: Any, values: Any) -> int:
    """About how many units to leave out until ``values`` are a function of ``on``; at least.

    Of the rows with one value of ``on``, those with the heaviest of ``values`` may stay.

    >>> count_units_to_dependency([1, 1, 2, 3, 3], [7, 8, 7, 7, 8], ["a", "b", "a", "c", "b"])
    1
    """
    unit, one, other = _different_rows(units, on, values)
    _, pairs, many = np.unique(
        np.stack([unit, one]), axis=1, return_inverse=True, return_counts=True
    )
    broken = np.unique(unit[many[pairs.ravel()] > 1])
    kept, weight = _weigh(unit, broken)
    one, other = one[kept], other[kept]
    both = one * (int(other.max(initial=0)) + 1) + other
    names, place = np.unique(both, return_inverse=True)
    heavy = np.zeros(len(names), dtype=np.int64)
    np.add.at(heavy, place, weight)
    most = np.zeros(int(one.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, names // (int(other.max(initial=0)) + 1), heavy)
    return len(broken) + _round_up(int(weight.sum()) - int(most.sum()))


def count_units_to_order(units: Any, by: Any, values: Any) -> int:
    """About how many units to leave out until what is later has no smaller value; at least.

    >>> count_units_to_order([1, 1, 2, 3], [10, 20, 15, 18], [4, 9, 30, 5])
    1
    """
    unit, time, value = _different_rows(units, by, values)
    broken = _find_disordered(unit, time, value)
    kept, weight = _weigh(unit, broken)
    order = np.lexsort((value[kept], time[kept]))
    rest = int(weight.sum()) - _heaviest_chain(value[kept][order], weight[order])
    return len(broken) + _round_up(rest)


def count_units_to_clusters(units: Any, points: Any, *, clusters: int, width: Exact) -> int:
    """About how many units to leave out until so many intervals of ``width`` hold the rest.

    >>> count_units_to_clusters([1, 1, 2, 3], [10, 50, 12, 90], clusters=2, width=5)
    1
    """
    most, reach = whole(clusters, name="clusters", least=1), nonnegative(width, name="width")
    place, where = np.unique(np.nan_to_num(np.asarray(points)), return_inverse=True)
    line = [Fraction(point) for point in place.tolist()]
    starts = _find_starts(line, reach)
    unit, at, _ = _different_rows(units, where, where)
    broken = _find_scattered(unit, at, starts, most)
    kept, weight = _weigh(unit, broken)
    held = np.zeros(len(line), dtype=np.int64)
    np.add.at(held, at[kept], weight)
    total = np.concatenate(([0], np.cumsum(held)))
    covered = np.zeros(len(line) + 1, dtype=np.int64)
    for _ in range(min(most, len(line))):  # with an interval that ends at a point, or without
        here = covered[starts] + total[1:] - total[starts]
        covered = np.concatenate(([0], np.maximum.accumulate(here)))
    return len(broken) + _round_up(int(total[-1]) - int(covered[-1]))


# --- whose rows they are -------------------------------------------------------------------------


def _different_rows(units: Any, one: Any, other: Any) -> tuple[Integers, Integers, Integers]:
    """Whole numbers in the order of the values, each row of a unit once: a second says no more."""
    columns = [np.unique(np.asarray(part), return_inverse=True)[1] for part in (units, one, other)]
    rows = np.unique(np.stack([part.ravel() for part in columns]).astype(np.int64), axis=1)
    unit, first, second = rows
    return unit, first, second


def _weigh(unit: Integers, broken: Integers) -> tuple[NDArray[np.bool_], Integers]:
    """Which rows are of units that may stay, and what each of those rows weighs."""
    kept = ~np.isin(unit, broken)
    _, place, rows = np.unique(unit[kept], return_inverse=True, return_counts=True)
    return kept, (WHOLE // rows)[place]


def _round_up(weight: int) -> int:
    """Weight in units: whoever moves by at most one before moves by at most one after."""
    return -(-weight // WHOLE)


# --- units that break a property by themselves ---------------------------------------------------


def _find_disordered(unit: Integers, time: Integers, value: Integers) -> Integers:
    """Units with a row that is later than another of theirs and smaller."""
    order = np.lexsort((value, time, unit))
    found: set[int] = set()
    of, now, before, here = -1, -1, -1, -1  # the greatest value before, and at the present time
    for one, at, held in zip(
        unit[order].tolist(), time[order].tolist(), value[order].tolist(), strict=True
    ):
        if one != of:
            of, now, before, here = one, at, -1, -1
        elif at != now:
            now, before = at, max(before, here)
        if held < before:
            found.add(one)
        here = max(here, held)
    return np.array(sorted(found), dtype=np.int64)


def _find_scattered(unit: Integers, at: Integers, starts: Integers, most: int) -> Integers:
    """Units whose own points are not within so many intervals: each from its first point on."""
    found: set[int] = set()
    of, first, used = -1, -1, 0
    for one, place in zip(unit.tolist(), at.tolist(), strict=True):  # sorted, unit by unit
        if one != of:
            of, first, used = one, place, 1
        elif starts[place] > first:
            first, used = place, used + 1
        if used > most:
            found.add(one)
    return np.array(sorted(found), dtype=np.int64)


# --- the heaviest rows that have it --------------------------------------------------------------


def _heaviest_chain(values: Integers, weights: Integers) -> int:
    """The greatest weight of a part of a sequence that does not decrease.

    ``ends`` are values at which such a part can end, ``best`` the greatest weights of parts that
    end there or before: both ascend.
    """
    ends: list[int] = []
    best: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        place = bisect_right(ends, value)
        reached = (best[place - 1] if place else 0) + weight
        past = place
        while past < len(best) and best[past] <= reached:
            past += 1
        if place and ends[place - 1] == value:
            place -= 1
        ends[place:past], best[place:past] = [value], [reached]
    return best[-1] if best else 0


def _find_starts(line: list[Fraction], reach: Fraction) -> Integers:
    """Of each point on a line, the first that lies within reach before it."""
    starts, first = np.empty(len(line), dtype=np.int64), 0
    for last, point in enumerate(line):
        while point - line[first] > reach:
            first += 1
        starts[last] = first
    return starts


FIND: dict[str, Callable[..., int]] = {
    "sorted": count_units_to_order,
    "dependency": count_units_to_dependency,
    "clusters": count_units_to_clusters,
}
"""By what the property is called."""

__all__ = [
    "FIND",
    "WHOLE",
    "count_units_to_clusters",
    "count_units_to_dependency",
    "count_units_to_order",
]
