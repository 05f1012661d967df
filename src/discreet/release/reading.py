"""From released integers to the rows the analyst asked for; free, because nothing private enters.

Everything here is post-processing: aggregates are read off the released entries,
outputs are computed from aggregates, then HAVING, ORDER BY and LIMIT apply.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.engine.truth import Group
from discreet.price import Counts, Linear, Priced, Ratio, Threshold
from discreet.price.plan import ValueCounts
from discreet.price.recipes import compute_ratios
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import evaluate
from discreet.question.functions.declaration import plain

Entries = NDArray[Any]
_WIDEST = 2**64
"""Whole numbers have steps below this, and stay whole; beyond are decimals with absurd bounds."""
_ROOM = 2**62
"""Sums below this, doubled, fit 64 bits."""
_FURTHEST = 900
"""A 64-bit integer times two to this power, or to its negative, is a normal double."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What the exponential mechanism chose: for each recipe, one result per group."""

    chosen: dict[int, tuple[Any, ...]]

    def only(self, kept: Sequence[int]) -> Selected:
        """The results of some groups."""
        return Selected({i: tuple(r[g] for g in kept) for i, r in self.chosen.items()})


Part = Entries | Selected
"""What was released of one measurement."""


class Released(NamedTuple):
    """What leaves the airlock: the groups, and what was released of each measurement."""

    groups: tuple[Group, ...]
    parts: tuple[Part, ...]

    def above(self, threshold: Threshold) -> Released:
        """The groups whose noisy number of units reaches the threshold."""
        counts = self.parts[threshold.measurement]
        if isinstance(counts, Selected):
            raise TypeError("units are counted, not chosen")
        kept = np.flatnonzero(counts[:, 0] >= threshold.least).tolist()
        return Released(
            tuple(self.groups[i] for i in kept),
            tuple(p.only(kept) if isinstance(p, Selected) else p[kept] for p in self.parts),
        )


def read_aggregates(priced: Priced, parts: Sequence[Part], groups: int) -> list[list[Any]]:
    """For each aggregate, its value in each group; None where it has none."""
    return [_read(priced, index, parts, groups) for index in range(len(priced.recipes))]


def _read(priced: Priced, index: int, parts: Sequence[Part], groups: int) -> list[Any]:
    recipe = priced.recipes[index]
    part = parts[recipe.measurement]
    if isinstance(part, Selected):
        return list(part.chosen[index])
    match recipe:
        case Linear():
            return _read_linear(recipe, part)
        case Ratio():
            values = compute_ratios(recipe, part.astype(np.float64))
            known = np.isfinite(values).tolist()
            return [value if k else None for value, k in zip(values.tolist(), known, strict=True)]
        case Counts(measurement=measurement):
            if not isinstance(priced.plan.measurements[measurement], ValueCounts):
                raise TypeError(measurement)
            counts: list[Any] = _to_integers(part).tolist()
            return counts
    return [None] * groups


def _read_linear(recipe: Linear, part: Entries) -> list[Any]:
    """The combination of each row's entries, exactly, put on the public grid."""
    grid = recipe.grid
    # In whole numbers: each entry times its weight, all over one denominator.
    rates = [coefficient / grid for coefficient in recipe.coefficients]
    below = lcm(*(rate.denominator for rate in rates))
    weights = [int(rate * below) for rate in rates]
    entries = _to_integers(part)
    if entries.dtype != object and not _fits(entries, sum(map(abs, weights)), below):
        entries = entries.astype(object)
    total = entries @ np.array(weights, dtype=entries.dtype)
    steps = _round_quotient(total, below)
    if grid.denominator == 1 and grid < _WIDEST:
        whole: list[Any] = (steps.astype(object) * int(grid)).tolist()
        return whole
    if steps.dtype != object and abs(exponent := _find_exponent(grid)) <= _FURTHEST:
        # The nearest double of a 64-bit integer, and an exact product with a power of two.
        doubles: list[Any] = np.ldexp(steps.astype(np.float64), exponent).tolist()
        return doubles
    return [_to_double(int(step) * grid) for step in steps]


def _to_integers(part: Entries) -> Entries:
    """The same integers in 64 bits, or as Python's where one does not fit; doubles cut to whole."""
    if part.dtype == object:
        try:
            return part.astype(np.int64)
        except OverflowError:
            return part
    if part.dtype.kind == "f":
        if part.size and np.abs(part).max() >= 2.0**62:
            exact = np.empty(part.size, dtype=object)
            exact[:] = [int(entry) for entry in part.reshape(-1).tolist()]
            return exact.reshape(part.shape)
        return part.astype(np.int64)
    return part


def _fits(entries: Entries, weight: int, below: int) -> bool:
    """Whether weights that add up to ``weight`` fit 64 bits, and so do sums and rests with them."""
    largest = max(int(entries.max(initial=1)), -int(entries.min(initial=-1)))
    return largest * weight < _ROOM and below < _ROOM


def _round_quotient(total: Entries, below: int) -> Entries:
    """``total / below`` to the nearest integer, halves to even as Python's ``round``."""
    if below == 1:
        return total
    quotient = total // below
    rest = 2 * (total - quotient * below)
    up = (rest > below) | ((rest == below) & (quotient % 2 == 1))
    rounded: Entries = quotient + up.astype(quotient.dtype)
    return rounded


def _find_exponent(grid: Fraction) -> int:
    """The power of two that ``grid`` is; one that is none has no exponent near zero."""
    exponent = grid.numerator.bit_length() - grid.denominator.bit_length()
    return exponent if Fraction(2) ** exponent == grid else _FURTHEST + 1


def _to_double(number: Fraction) -> float:
    """The nearest double; the greatest of them beyond, for no sum may fail because it is large."""
    largest = Fraction(sys.float_info.max)
    return float(min(max(number, -largest), largest))


class Row(NamedTuple):
    """One row of the result: which group it is, and its outputs."""

    group: int
    values: tuple[Any, ...]


def build_rows(priced: Priced, groups: Sequence[Group], aggregates: list[list[Any]]) -> list[Row]:
    """The outputs of every group, filtered, ordered and cut as the question says."""
    question = priced.question
    columns = _name_columns(priced, groups, aggregates)
    kept = list(range(len(groups)))
    if question.having is not None:
        passing = _evaluate_rows(question.having, columns, kept)
        kept = [row for row, passed in zip(kept, passing, strict=True) if passed is True]
    for order in reversed(question.order):
        values = _evaluate_rows(order.expression, columns, kept)
        keys = [_sort_key(value, descending=order.descending) for value in values]
        ranked = sorted(range(len(kept)), key=keys.__getitem__)
        kept = [kept[position] for position in ranked]
    kept = kept[: question.limit]
    outputs = [_evaluate_rows(output.expression, columns, kept) for output in question.outputs]
    return [
        Row(group, values) for group, values in zip(kept, zip(*outputs, strict=True), strict=True)
    ]


def _name_columns(
    priced: Priced, groups: Sequence[Group], aggregates: list[list[Any]]
) -> dict[str, Sequence[Any]]:
    """The keys and the aggregates of all groups, by name."""
    question = priced.question
    columns: dict[str, Sequence[Any]] = {
        key.name: [group[index] for group in groups] for index, key in enumerate(question.keys)
    }
    for aggregate, values in zip(question.aggregates, aggregates, strict=True):
        columns[aggregate.name] = values
    return columns


def _evaluate_rows(
    expression: Expression, columns: dict[str, Sequence[Any]], rows: Sequence[int]
) -> list[Any]:
    """An expression on some of the rows; a column as it is needs no more than a look."""
    if isinstance(expression, ColumnRef) and expression.name in columns:
        values = [columns[expression.name][row] for row in rows]
        return [plain(value) for value in values] if Fraction in set(map(type, values)) else values
    return [
        evaluate(expression, {name: column[row] for name, column in columns.items()})
        for row in rows
    ]


class _Reversed:
    """Sorts backwards, for text as well as numbers."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _sort_key(value: Any, *, descending: bool) -> tuple[bool, Any]:
    """SQL: NULLs last, whichever way."""
    if value is None:
        return True, 0
    return False, _Reversed(value) if descending else value
