"""From released integers to the rows the analyst asked for; free, because nothing private enters.

Everything here is post-processing: aggregates are read off the released entries,
outputs are computed from aggregates, then HAVING, ORDER BY and LIMIT apply.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engine.truth import Group
from discreet.price import Counts, Linear, Priced, Ratio
from discreet.price.plan import ValueCounts
from discreet.price.recipes import ratio_values
from discreet.question.functions import evaluate

Entries = NDArray[Any]
_WIDEST = 2**64
"""Whole numbers have steps below this, and stay whole; beyond are decimals with absurd bounds."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What the exponential mechanism chose: for each recipe, one result per group."""

    chosen: dict[int, tuple[Any, ...]]

    def only(self, shown: Sequence[int]) -> Selected:
        """The results of some groups."""
        return Selected({i: tuple(r[g] for g in shown) for i, r in self.chosen.items()})


Released = Entries | Selected


def aggregate_values(priced: Priced, released: Sequence[Released], groups: int) -> list[list[Any]]:
    """For each aggregate, its value in each group; None where it has none."""
    return [_read(priced, i, released, groups) for i in range(len(priced.recipes))]


def _read(priced: Priced, place: int, released: Sequence[Released], groups: int) -> list[Any]:
    recipe = priced.recipes[place]
    part = released[recipe.measurement]
    if isinstance(part, Selected):
        return list(part.chosen[place])
    match recipe:
        case Linear(coefficients=coefficients, grid=grid):
            # Exact: integers times fractions, then to the public grid.
            steps = [
                round(sum(c * int(e) for c, e in zip(coefficients, row, strict=True) if c) / grid)
                for row in part
            ]
            if grid.denominator == 1 and grid < _WIDEST:
                return [step * int(grid) for step in steps]
            return [_double(step * grid) for step in steps]
        case Ratio():
            values = ratio_values(recipe, part.astype(np.float64))
            return [float(value) if np.isfinite(value) else None for value in values]
        case Counts(measurement=measurement):
            listed = priced.plan.measurements[measurement]
            if not isinstance(listed, ValueCounts):
                raise TypeError(measurement)
            return [[int(count) for count in row] for row in part]
    return [None] * groups


def _double(number: Fraction) -> float:
    """The nearest double; the greatest of them beyond, for no sum may fail because it is large."""
    largest = Fraction(sys.float_info.max)
    return float(min(max(number, -largest), largest))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the result: which group it is, and its outputs."""

    group: int
    values: tuple[Any, ...]


def result_rows(priced: Priced, groups: Sequence[Group], aggregates: list[list[Any]]) -> list[Row]:
    """The outputs of every group, filtered, ordered and cut as the question says."""
    question = priced.question
    rows = []
    for place, group in enumerate(groups):
        names = _named(priced, place, group, aggregates)
        if question.having is not None and evaluate(question.having, names) is not True:
            continue
        outputs = tuple(evaluate(output.expression, names) for output in question.outputs)
        rows.append((Row(place, outputs), names))
    for order in reversed(question.order):
        # SQL: NULLs last, whichever way.
        rows.sort(
            key=lambda pair, order=order: _sort_key(evaluate(order.expression, pair[1]), order),  # type: ignore[misc]
        )
    kept = rows if question.limit is None else rows[: question.limit]
    return [row for row, _ in kept]


def _named(priced: Priced, place: int, group: Group, aggregates: list[list[Any]]) -> dict[str, Any]:
    names = {key.name: value for key, value in zip(priced.question.keys, group, strict=True)}
    for aggregate, values in zip(priced.question.aggregates, aggregates, strict=True):
        names[aggregate.name] = values[place]
    return names


class _Reversed:
    """Sorts backwards, for text as well as numbers."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _sort_key(value: Any, order: Any) -> tuple[bool, Any]:
    if value is None:
        return True, 0
    return False, _Reversed(value) if order.descending else value
