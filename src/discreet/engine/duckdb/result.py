"""From the columns that the engine returns to the integers of each measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engine.truth import Group, Opened, SparseCounts, Truth
from discreet.exact.records import dataclass
from discreet.price.plan import (
    Distance,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Products,
    Sum,
    ValueCounts,
    list_products,
)
from discreet.question.domain import Kind, Value, number_of

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
    units: Total | None = None  # of totals: how many units, and the sum of their steps
    steps: Total | None = None
    lumped: bool = False  # of cells: some stand for several, from the one in the second column on
    powers: tuple[Total, ...] = ()  # of such: the sums of powers of their positions


@dataclass(frozen=True, slots=True)
class Listed:
    """Where to find a measurement that is computed from rows: whose each is, and its values."""

    number: int
    point: str | None = None  # the column of numbers, where more than their order counts


Reading = Sums | Single | Part | Listed

Integers = NDArray[Any]

Columns = dict[str, NDArray[Any]]
"""A result, column by column; masked where it is NULL."""


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """How a key comes back: a code for one of ``codes``, or a value of its kind.

    Days and microseconds since 1970 stand for dates and timestamps.
    """

    identifier: str
    kind: Kind
    codes: tuple[str, ...] | None = None

    def decode(self, columns: Columns) -> list[Any]:
        """The keys as values of Python; None for NULL."""
        found, missing = _split(columns[self.identifier])
        if self.codes is not None:
            values = np.array([*self.codes, None], dtype=object)[found.astype(np.int64)]
        elif self.kind in _CALENDAR:
            values = found.astype(np.int64).view(_CALENDAR[self.kind]).astype(object)
        else:
            values = found.astype(object)
        values[missing] = None
        decoded: list[Any] = values.tolist()
        return decoded


_CALENDAR = {Kind.DATE: "datetime64[D]", Kind.TIMESTAMP: "datetime64[us]"}


@dataclass(frozen=True, slots=True)
class Places:
    """Where each value of a public key stands in the list of its groups."""

    column: GroupColumn
    listed: NDArray[Any]  # sorted
    place: NDArray[np.int64]  # of each of them in the order of the groups; then of NULL
    count: int

    @classmethod
    def of(cls, column: GroupColumn, values: Sequence[Value | None]) -> Places:
        """The places of ``values``, in the form in which the engine gives them back."""
        return _find_places(column, tuple(values))

    @classmethod
    def _sort(cls, column: GroupColumn, values: tuple[Value | None, ...]) -> Places:
        null = next((i for i, value in enumerate(values) if value is None), -1)
        at = [(value, i) for i, value in enumerate(values) if value is not None]
        if column.kind is Kind.TEXT and column.codes is None:
            listed = np.array([value for value, _ in at], dtype=object)
            return cls(column, listed, np.array([*(i for _, i in at), null]), len(values))
        if column.codes is not None:
            code = {text: i for i, text in enumerate(column.codes)}
            numbers: list[tuple[float, int]] = [
                (code[str(value)], i) for value, i in at if value in code
            ]
        else:
            numbers = [(_comparable(value), i) for value, i in at]
        numbers.sort()
        kind = np.float64 if column.kind is Kind.DECIMAL else np.int64
        listed = np.array([number for number, _ in numbers], dtype=kind)
        return cls(column, listed, np.array([*(i for _, i in numbers), null]), len(values))

    def find(self, columns: Columns) -> NDArray[np.int64]:
        """The place of each row's value; -1 if it is not listed."""
        found, missing = _split(columns[self.column.identifier])
        if self.listed.dtype == object:
            where = _index_in(found, self.listed)
        else:
            found = found.astype(self.listed.dtype, copy=False)
            where = np.searchsorted(self.listed, found)
            last = len(self.listed) - 1
            there = (
                self.listed[np.minimum(where, last)] == found
                if last >= 0
                else np.zeros(len(found), dtype=bool)
            )
            where = np.where(there, where, -1)
        # The entry after the last is that of NULL.
        place = np.where(where >= 0, self.place[where], -1)
        return np.where(missing, self.place[-1], place)


@lru_cache(maxsize=64)
def _find_places(column: GroupColumn, values: tuple[Value | None, ...]) -> Places:
    """Of values that a schema lists, the same for every question; nobody writes to them."""
    found = Places._sort(column, values)
    found.listed.setflags(write=False)
    found.place.setflags(write=False)
    return found


def _index_in(found: NDArray[Any], listed: NDArray[Any]) -> NDArray[np.int64]:
    """The index of each text among the listed ones; -1 if it is none of them."""
    import pyarrow as pa  # slow to import, and seldom needed
    import pyarrow.compute as pc

    where = pc.index_in(
        pa.array(found, pa.large_string(), from_pandas=True),
        value_set=pa.array(listed, pa.large_string()),
    )
    index: NDArray[np.int64] = where.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return index


def _comparable(value: Value) -> float:
    """A value as the engine gives it back."""
    if isinstance(value, bool):
        return int(value)
    number = number_of(value)
    if number is None:
        raise TypeError(type(value))
    return float(number) if isinstance(value, Fraction) else int(number)


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """How the integers of a plan are read off its result; all that is public is made ready."""

    plan: Plan
    columns: tuple[GroupColumn, ...]
    readings: tuple[Reading, ...]
    groups: tuple[Group, ...] | None  # None: they are private, and found in the result
    places: tuple[Places, ...]

    @classmethod
    def of(
        cls, plan: Plan, columns: tuple[GroupColumn, ...], readings: tuple[Reading, ...]
    ) -> ResultColumns:
        """For a plan whose keys and measurements come back in these columns."""
        if not plan.public_keys:
            return cls(plan, columns, readings, None, ())
        lists = tuple([key.values or () for key in plan.keys])
        places = (Places.of(c, values) for c, values in zip(columns, lists, strict=True))
        kinds = tuple([column.kind for column in columns])
        cross = product if Kind.DECIMAL in kinds else partial(_list_groups, kinds)
        return cls(plan, columns, readings, tuple(cross(*lists)), tuple(places))

    def read(self, columns: Columns, whole: Callable[[], Truth] | None = None) -> Opened:
        """The integers of every measurement, in the canonical order of the groups.

        ``whole`` measures the same without lumps.
        """
        found = self._find(columns)
        measured = tuple(
            _measure(measurement, reading, found)
            for measurement, reading in zip(self.plan.measurements, self.readings, strict=True)
        )
        return Opened(found.groups, measured, whole if self.lumped else None)

    @property
    def lumped(self) -> bool:
        """Whether some cells of a histogram come back together."""
        return any(isinstance(reading, Part) and reading.lumped for reading in self.readings)

    def _find(self, columns: Columns) -> _Found:
        parts = _numbers(columns, PART)
        if self.groups is None:
            return _Found(columns, parts, *self._find_groups(columns, parts))
        place = np.zeros(len(parts), dtype=np.int64)
        listed = np.ones(len(parts), dtype=bool)
        for key in self.places:
            found = key.find(columns)
            listed &= found >= 0
            place = place * key.count + found
        return _Found(columns, parts, self.groups, np.where(listed, place, -1))

    def _find_groups(
        self, columns: Columns, parts: NDArray[np.int64]
    ) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
        """The groups found, in the order the engine sorted them, and the place of each row's."""
        rows = list(zip(*(column.decode(columns) for column in self.columns), strict=True))
        first = int(np.searchsorted(parts, 1))  # sorted by part: the groups come first
        groups = tuple(rows[:first])
        at = dict(zip(groups, range(first), strict=True))
        others = np.array([at.get(row, -1) for row in rows[first:]], dtype=np.int64)
        return groups, np.concatenate([np.arange(first, dtype=np.int64), others])


@lru_cache(maxsize=16)
def _list_groups(_kinds: tuple[Kind, ...], *lists: tuple[Value | None, ...]) -> tuple[Group, ...]:
    """The groups of public keys, in order: the same for every question about the same keys.

    Python takes 1 and true for equal: lists are told apart by their kinds, too; and not of
    decimals, of which 1 and 1.0 are equal and not written alike.
    """
    return tuple(product(*lists))


def _split(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values, something harmless where they are NULL, and where they are NULL."""
    # The first question keeps numpy.ma, which is slow to import, from being loaded for nothing.
    if type(column) is not np.ndarray and isinstance(column, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(column)
        if column.dtype == object:
            values = column.data.copy()
            values[missing] = None
            return values, missing
        return column.filled(0), missing
    if column.dtype == object:
        return column, np.array([value is None for value in column], dtype=bool)
    return column, np.zeros(len(column), dtype=bool)


def _numbers(columns: Columns, name: str) -> NDArray[np.int64]:
    """A column of integers; NULL, the sum of no rows, is zero."""
    return _split(columns[name])[0].astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows of the result by part, each with the place of its group."""

    columns: Columns
    parts: NDArray[np.int64]
    groups: tuple[Group, ...]
    place: NDArray[np.int64]

    def rows(self, part: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Which rows belong to ``part``, and the place of the group of each."""
        chosen = np.flatnonzero((self.parts == part) & (self.place >= 0))
        return self.place[chosen], chosen

    def total(self, total: Total, chosen: NDArray[np.intp]) -> Integers:
        """A sum put together from its limbs; in Python's integers if 64 bits may not do."""
        whole: Integers = np.zeros(len(chosen), dtype=np.int64)
        for name, power in total.limbs:
            limb: Integers = _numbers(self.columns, name)[chosen]
            if power and not limb.any():
                continue
            whole = whole + (limb.astype(object) * 2**power if power else limb)
        return whole


# --- measurements --------------------------------------------------------------------------------


def _measure(measurement: Measurement, reading: Reading, found: _Found) -> Integers | SparseCounts:
    match reading:
        case Sums():
            if isinstance(measurement, Sum):
                return _total_steps(measurement, reading, found)
            if isinstance(measurement, Products):
                return _products(measurement, reading, found)
            if not isinstance(measurement, Moments):
                raise TypeError(measurement)
            return _bernstein(measurement, reading, found)
        case Single(total=total):
            place, chosen = found.rows(0)
            return _spread(found.total(total, chosen)[:, None], place, len(found.groups))
        case Part(number=number):
            place, chosen = found.rows(number)
            return _part(measurement, reading, found, place, chosen)
        case Listed():
            if not isinstance(measurement, Distance):
                raise TypeError(measurement)
            return _find_distances(measurement, reading, found)


def _part(
    measurement: Measurement,
    reading: Part,
    found: _Found,
    place: NDArray[np.int64],
    chosen: NDArray[np.intp],
) -> Integers | SparseCounts:
    groups = len(found.groups)
    if reading.units is not None and reading.steps is not None:
        if not isinstance(measurement, GroupTotal | GroupSum | GroupMean):
            raise TypeError(measurement)
        units = found.total(reading.units, chosen).astype(object)
        steps = found.total(reading.steps, chosen).astype(object)
        if isinstance(measurement, GroupSum):
            alone = (units * measurement.low + steps)[:, None]
            return _narrow(_spread(alone, place, groups))
        both = np.stack([units * measurement.span - steps, steps], axis=1)
        return _narrow(_spread(both, place, groups))
    cell = _numbers(found.columns, CELL)[chosen]
    count = _numbers(found.columns, "_n0")[chosen]
    if isinstance(measurement, Histogram):
        order = np.lexsort((cell, place))
        first = _numbers(found.columns, "_n1")[chosen][order] if reading.lumped else None
        powers = tuple(found.total(total, chosen)[order] for total in reading.powers)
        return SparseCounts(place[order], cell[order], count[order], first, powers)
    if not isinstance(measurement, ValueCounts):
        raise TypeError(measurement)
    counts = np.zeros((groups, len(measurement.values)), dtype=np.int64)
    np.add.at(counts, (place, cell), count)
    return counts


def _find_distances(distance: Distance, reading: Listed, found: _Found) -> Integers:
    """How many units stand in the way, group by group."""
    from discreet.mechanisms.unit_distance import FIND, count_units_to_clusters

    place, chosen = found.rows(reading.number)
    order = np.argsort(place, kind="stable")
    rows = chosen[order]
    groups, starts = np.unique(place[order], return_index=True)
    told = np.zeros((len(found.groups), 1), dtype=np.int64)
    for group, some in zip(groups.tolist(), np.split(rows, starts[1:]), strict=False):
        units = _numbers(found.columns, "_n0")[some]
        if reading.point is not None:
            points = _split(found.columns[reading.point])[0][some]
            told[group, 0] = count_units_to_clusters(
                units, points, clusters=distance.clusters, width=distance.width
            )
        else:
            value, other = (_numbers(found.columns, name)[some] for name in ("_n1", "_n2"))
            told[group, 0] = FIND[distance.property](units, other, value)
    return told


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
        _combine(entry, moments, powers)
        for entry in product(*(range(d + 1) for d in moments.degrees))
    ]
    if moments.counts_null:
        columns.append((rows - known).astype(columns[0].dtype) * moments.weight)
    return _narrow(_spread(np.stack(columns, axis=1), place, len(found.groups)))


def _products(products: Products, sums: Sums, found: _Found) -> Integers:
    """The sums of (2u - N) / N and of their products, in steps, rounded down, from power sums."""
    place, chosen = found.rows(0)
    known = found.total(sums.known, chosen).astype(object)
    powers = {degrees: found.total(total, chosen).astype(object) for degrees, total in sums.powers}
    spans, size = [variable.span for variable in products.variables], len(products.variables)

    def power(*variables: int) -> Integers:
        return powers[tuple(variables.count(place) for place in range(size))]

    columns = []
    for i, j in list_products(size):  # 0 stands for one, k + 1 for variable k
        if j == 0:
            total, most = known, 1
        elif i == 0:
            total, most = 2 * power(j - 1) - spans[j - 1] * known, spans[j - 1]
        else:
            a, b = i - 1, j - 1
            total = 4 * power(a, b) - 2 * spans[a] * power(b) - 2 * spans[b] * power(a)
            total, most = total + spans[a] * spans[b] * known, spans[a] * spans[b]
        columns.append(total * products.unit // most)
    return _narrow(_spread(np.stack(columns, axis=1), place, len(found.groups)))


def _total_steps(measured: Sum, sums: Sums, found: _Found) -> Integers:
    """The sum of low + u in each group, over the rows in which it is known."""
    place, chosen = found.rows(0)
    known = found.total(sums.known, chosen).astype(object)
    ((_, total),) = sums.powers
    steps = known * measured.variable.low + found.total(total, chosen).astype(object)
    return _narrow(_spread(steps[:, None], place, len(found.groups)))


def _combine(entry: Powers, moments: Moments, powers: Mapping[Powers, Integers]) -> Integers:
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


def _narrow(values: Integers) -> Integers:
    """The same integers in 64 bits where all of them fit."""
    if values.dtype != object:
        return values
    largest = max((abs(int(v)) for v in values.flat), default=0)
    return values.astype(np.int64) if largest < 2**63 else values
