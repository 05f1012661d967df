"""From the columns that the engine returns to the integers of each measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engine.truth import Group, Opened, SparseCounts
from discreet.price.plan import GroupTotal, Histogram, Measurement, Moments, Plan, ValueCounts
from discreet.question.domain import Value
from discreet.question.question import Key

PART, CELL = "_part", "_cell"

LIMB = 62
"""Numbers of more bits than this are summed in two parts, above and below 2**62."""

Powers = tuple[int, ...]


# --- what comes back ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of whole numbers >= 0: its columns, each to be multiplied by a power of two."""

    limbs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sums:
    """Where to find a measurement of Moments: rows counted, and a sum for each tuple of powers."""

    rows: Total
    known: Total
    powers: tuple[tuple[Powers, Total], ...]


@dataclass(frozen=True, slots=True)
class Single:
    """Where to find a measurement of one number per group."""

    total: Total


@dataclass(frozen=True, slots=True)
class Part:
    """Where to find a measurement that has rows of its own in the result."""

    number: int
    units: Total | None = None  # of a GroupTotal: how many units, and the sum of their steps
    steps: Total | None = None


Reading = Sums | Single | Part


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """How a key comes back: as a code for one of ``codes``, or as a value of its kind."""

    identifier: str
    codes: tuple[str, ...] | None


Integers = NDArray[Any]


def opened(
    table: pa.Table, plan: Plan, groups: tuple[GroupColumn, ...], readings: tuple[Reading, ...]
) -> Opened:
    """The integers of every measurement, in the canonical order of the groups."""
    parts = _numbers(table, PART)
    found = _Found(table, parts, plan.keys, groups, public=plan.public_keys)
    measured = tuple(
        _measured(measurement, reading, found)
        for measurement, reading in zip(plan.measurements, readings, strict=True)
    )
    return Opened(found.groups, measured)


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(0)
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return numbers


def _whole_numbers(table: pa.Table, name: str) -> Integers:
    """A column of 64- or 128-bit integers; NULL, the sum of no rows, is zero."""
    column = table.column(name).combine_chunks()
    if not pa.types.is_decimal128(column.type):
        return _numbers(table, name)
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, 2)
    low, high = words[column.offset : column.offset + len(column)].T
    missing = column.is_null().to_numpy(zero_copy_only=False)
    low, high = np.where(missing, 0, low), np.where(missing, 0, high)
    if not high.any() and (low >= 0).all():
        return low
    whole: Integers = high.astype(object) * 2**64 + low.astype(np.uint64).astype(object)
    return whole


# --- groups --------------------------------------------------------------------------------------


class _Found:
    """Rows of the result by part, each with the place of its group."""

    def __init__(
        self,
        table: pa.Table,
        parts: NDArray[np.int64],
        keys: tuple[Key, ...],
        columns: tuple[GroupColumn, ...],
        *,
        public: bool,
    ) -> None:
        self.table = table
        self.parts = parts
        if public:
            lists = [list(key.values or ()) for key in keys]
            self.groups: tuple[Group, ...] = tuple(product(*lists))
            self.place = _public_places(table, lists, columns)
        else:
            self.groups, self.place = _private_places(table, parts, columns)

    def rows(self, part: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Which rows belong to ``part``, and the place of the group of each."""
        chosen = np.flatnonzero((self.parts == part) & (self.place >= 0))
        return self.place[chosen], chosen

    def total(self, total: Total, chosen: NDArray[np.intp]) -> Integers:
        """A sum put together from its limbs; in Python's integers if 64 bits may not do."""
        whole: Integers | None = None
        for name, power in total.limbs:
            limb = _whole_numbers(self.table, name)[chosen]
            limb = limb if power == 0 else limb.astype(object) * 2**power
            whole = limb if whole is None else whole + limb
        if whole is None:
            raise ValueError("a total has at least one limb")
        return whole


def _codes(column: GroupColumn, table: pa.Table) -> list[Any]:
    values: list[Any] = table.column(column.identifier).to_pylist()
    if column.codes is None:
        return values
    return [None if v is None else column.codes[v] for v in values]


def _public_places(
    table: pa.Table, lists: list[list[Value | None]], columns: tuple[GroupColumn, ...]
) -> NDArray[np.int64]:
    """The place of each row's group in the product of the listed values; -1 if not listed."""
    place = np.zeros(table.num_rows, dtype=np.int64)
    listed = np.ones(table.num_rows, dtype=bool)
    for values, column in zip(lists, columns, strict=True):
        found = _listed_places(table, values, column)
        listed &= found >= 0
        place = place * len(values) + found
    return np.where(listed, place, -1)


def _listed_places(
    table: pa.Table, values: list[Value | None], column: GroupColumn
) -> NDArray[np.int64]:
    """The place of each row's value among the listed ones; -1 if it is not listed."""
    if column.codes is not None:  # texts: found by code, without looking at each row
        texts = {value: i for i, value in enumerate(values)}
        places = np.array([texts.get(v, -1) for v in (*column.codes, None)], dtype=np.int64)
        codes = table.column(column.identifier).fill_null(len(column.codes)).to_numpy()
        by_code: NDArray[np.int64] = places[codes.astype(np.int64, copy=False)]
        return by_code
    at = {_comparable(value): i for i, value in enumerate(values)}
    return np.fromiter(
        (at.get(_comparable(v), -1) for v in _codes(column, table)),
        dtype=np.int64,
        count=table.num_rows,
    )


def _comparable(value: object) -> object:
    """A value as the engine has it; true and 1, which Python takes for equal, kept apart."""
    return (isinstance(value, bool), float(value) if isinstance(value, Fraction) else value)


def _private_places(
    table: pa.Table, parts: NDArray[np.int64], columns: tuple[GroupColumn, ...]
) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
    """The groups found, in the order the engine sorted them, and the place of each row's group."""
    rows = list(zip(*(_codes(column, table) for column in columns), strict=True))
    groups = tuple(row for row, part in zip(rows, parts, strict=True) if part == 0)
    at = {group: i for i, group in enumerate(groups)}
    place = np.fromiter((at.get(row, -1) for row in rows), dtype=np.int64, count=len(rows))
    return groups, place


# --- measurements --------------------------------------------------------------------------------


def _measured(measurement: Measurement, reading: Reading, found: _Found) -> Integers | SparseCounts:
    match reading:
        case Sums():
            if not isinstance(measurement, Moments):
                raise TypeError(measurement)
            return _bernstein(measurement, reading, found)
        case Single(total=total):
            place, chosen = found.rows(0)
            return _spread(found.total(total, chosen)[:, None], place, len(found.groups))
        case Part(number=number):
            place, chosen = found.rows(number)
            return _part(measurement, reading, found, place, chosen)


def _part(
    measurement: Measurement,
    reading: Part,
    found: _Found,
    place: NDArray[np.int64],
    chosen: NDArray[np.intp],
) -> Integers | SparseCounts:
    groups = len(found.groups)
    if reading.units is not None and reading.steps is not None:
        if not isinstance(measurement, GroupTotal):
            raise TypeError(measurement)
        units = found.total(reading.units, chosen).astype(object)
        steps = found.total(reading.steps, chosen).astype(object)
        both = np.stack([units * measurement.span - steps, steps], axis=1)
        return _narrowed(_spread(both, place, groups))
    cell = _numbers(found.table, CELL)[chosen]
    count = _numbers(found.table, "_n0")[chosen]
    if isinstance(measurement, Histogram):
        order = np.lexsort((cell, place))
        return SparseCounts(place[order], cell[order], count[order])
    if not isinstance(measurement, ValueCounts):
        raise TypeError(measurement)
    counts = np.zeros((groups, len(measurement.values)), dtype=np.int64)
    np.add.at(counts, (place, cell), count)
    return counts


def _spread(values: Integers, place: NDArray[np.int64], groups: int) -> Integers:
    """Rows of integers at the places of their groups; groups without rows hold zeros."""
    spread = np.zeros((groups, values.shape[1]), dtype=values.dtype)
    np.add.at(spread, place, values)
    return spread


def _bernstein(moments: Moments, sums: Sums, found: _Found) -> Integers:
    """The Bernstein sums of each group, from its power sums, in integers.

    C(d, j) u**j (N - u)**(d - j) is the sum over k >= j of
    C(d, j) C(d - j, k - j) (-1)**(k - j) N**(d - k) u**k.
    """
    place, chosen = found.rows(0)
    known = found.total(sums.known, chosen)
    powers: dict[Powers, Integers] = {(0,) * len(moments.degrees): known}
    powers |= {degrees: found.total(total, chosen) for degrees, total in sums.powers}
    rows = found.total(sums.rows, chosen)
    most = int(rows.max(initial=0)) * moments.weight * prod(4**d for d in moments.degrees)
    if most >= 2**62:
        powers = {degrees: sum_.astype(object) for degrees, sum_ in powers.items()}
    columns = [
        _combined(entry, moments, powers)
        for entry in product(*(range(d + 1) for d in moments.degrees))
    ]
    if moments.counts_null:
        columns.append((rows - known).astype(columns[0].dtype) * moments.weight)
    return _narrowed(_spread(np.stack(columns, axis=1), place, len(found.groups)))


def _combined(entry: Powers, moments: Moments, powers: Mapping[Powers, Integers]) -> Integers:
    total: Integers | None = None
    for degrees, sums in powers.items():
        factor = _coefficient(entry, degrees, moments)
        if factor:
            total = sums * factor if total is None else total + sums * factor
    if total is None:
        raise ArithmeticError("every Bernstein polynomial has a leading coefficient")
    return total


def _coefficient(entry: Powers, degrees: Powers, moments: Moments) -> int:
    spans: Sequence[int] = [variable.span for variable in moments.variables]
    return prod(
        comb(d, j) * comb(d - j, k - j) * (-1) ** (k - j) * n ** (d - k) if k >= j else 0
        for j, k, d, n in zip(entry, degrees, moments.degrees, spans, strict=True)
    )


def _narrowed(values: Integers) -> Integers:
    """The same integers in 64 bits where all of them fit."""
    if values.dtype != object:
        return values
    largest = max((abs(int(v)) for v in values.flat), default=0)
    return values.astype(np.int64) if largest < 2**63 else values
