"""The small reference: what a relation or a plan means, in plain Python on lists of dicts.

Written from the meaning of each node, not from the code that runs it.  The
functions are in ``reference_values``.

Which of a unit's rows survive a bound is the engine's own choice; here
:class:`Truncated` is raised where a choice would have to be made, unless
``choose`` makes it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from reference_values import STRICT, as_double, half_even, value_of, widened

from discreet.price.plan import (
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.question.domain import TEXT_LIMIT, Domain, Kind
from discreet.question.functions import domain_of
from discreet.question.own_rows import unit_grid
from discreet.question.ownership import columns as typing_of
from discreet.question.relation import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
)
from discreet.question.schema import Column, Table

Values = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]


class Truncated(Exception):
    """A unit has more than it may keep, and which rows go is the engine's choice."""


@dataclass(frozen=True)
class Row:
    """One row and the unit it belongs to."""

    unit: tuple[Any, ...]
    values: Values


Choose = Callable[[tuple[Any, ...], list[Row], int], list[Row]]


def refuse_to_choose(unit: tuple[Any, ...], rows: list[Row], most: int) -> list[Row]:
    """The default choice: there is none to make, or the case is not compared."""
    if len(rows) > most:
        raise Truncated
    return rows


# --- reading -------------------------------------------------------------------------------


def typed(kind: Kind, raw: Any) -> Any:
    """A raw value of the kind's own engine type; NULL where it is none."""
    if raw is None or (isinstance(raw, float) and not math.isfinite(raw)):
        return None
    return (
        raw[:TEXT_LIMIT] if kind is Kind.TEXT else as_double(raw) if kind is Kind.DECIMAL else raw
    )


def read(column: Column, raw: Any) -> Any:
    """A raw value seen through its column's declaration."""
    value = typed(column.kind, raw)
    convert = as_double if column.kind is Kind.DECIMAL else lambda v: v
    low, high = convert(column.low), convert(column.high)
    values = None if column.values is None else [convert(v) for v in column.values]
    if value is not None and values is not None:
        value = value if value in values else None
    elif value is not None and low is not None and high is not None:
        value = min(max(value, low), high)
    if value is None and not column.nullable:
        if column.kind is Kind.BOOLEAN:
            return False
        return values[0] if values else low
    return value


def null_last(block: tuple[Any, ...]) -> tuple[Any, ...]:
    """A unit's blocks in their order."""
    return tuple((value is None, value) if value is not None else (True,) for value in block)


def is_declared(table: Table, block: tuple[Any, ...]) -> bool:
    """Whether reading the block's values through their declarations leaves them as they are."""
    columns = [table.column(name) for name in table.blocks]
    return all(
        read(c, value) == value and (value is not None or c.name not in table.unit)
        for c, value in zip(columns, block, strict=True)
    )


# --- relations -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """Reads relations and plans on some tables."""

    tables: Tables
    choose: Choose = refuse_to_choose

    def multiplicity(self, table: Table, key: tuple[str, ...]) -> int | None:
        """How often the most frequent value of ``key`` occurs in a public table."""
        seen: dict[tuple[Any, ...], int] = {}
        for raw in self.tables[table.name]:
            found = tuple(read(table.column(name), raw.get(name)) for name in key)
            if None not in found:
                seen[found] = seen.get(found, 0) + 1
        return max(seen.values(), default=1)

    def columns(self, relation: Relation | PublicSource) -> Mapping[str, Domain]:
        return typing_of(relation, self.multiplicity)

    def rows(self, relation: Relation) -> list[Row]:
        """The rows of a relation, each with its unit."""
        match relation:
            case Source():
                return self._source(relation)
            case Filter(source=source, predicate=predicate):
                known = self.columns(source)
                return [
                    r for r in self.rows(source) if value_of(predicate, r.values, known) is True
                ]
            case Project(source=source, columns=computed):
                known = self.columns(source)
                return [
                    Row(r.unit, {name: value_of(e, r.values, known) for name, e in computed})
                    for r in self.rows(source)
                ]
            case PublicJoin():
                return self._public_join(relation)
            case UnitJoin():
                return self._unit_join(relation)
            case PerUnit():
                return self._per_unit(relation)
            case Union(left=left, right=right):
                kinds = {n: d.kind for n, d in self.columns(relation).items()}
                return [
                    Row(r.unit, {n: widened(v, kinds[n]) for n, v in r.values.items()})
                    for r in self.rows(left) + self.rows(right)
                ]

    def _source(self, source: Source) -> list[Row]:
        table = source.table
        by_unit: dict[tuple[Any, ...], list[Row]] = {}
        for place, raw in enumerate(self.tables[table.name]):
            unit = (
                (table.name, place)
                if table.by_row
                else tuple(typed(table.column(n).kind, raw.get(n)) for n in table.unit)
            )
            if None in unit:
                continue
            values = {name: read(table.column(c), raw.get(c)) for name, c in source.columns}
            block = tuple(typed(table.column(b).kind, raw.get(b)) for b in table.blocks)
            by_unit.setdefault(unit, []).append(Row(unit, {**values, "": block}))
        kept = []
        for unit, everything in by_unit.items():
            block = min((r.values[""] for r in everything), key=null_last)
            if not is_declared(table, block):
                continue
            rows = [r for r in everything if r.values[""] == block]
            most = len(rows) if table.max_rows_per_unit is None else table.max_rows_per_unit
            kept += self.choose(unit, rows, most) if not table.by_row else rows
        return [Row(r.unit, {n: v for n, v in r.values.items() if n != ""}) for r in kept]

    def public(self, source: PublicSource) -> list[Values]:
        return [
            {name: read(source.table.column(c), raw.get(c)) for name, c in source.columns}
            for raw in self.tables[source.table.name]
        ]

    def _public_join(self, join: PublicJoin) -> list[Row]:
        known, public = self.columns(join.left), self.public(join.right)
        result = []
        for row in self.rows(join.left):
            keys = [(value_of(e, row.values, known), name) for e, name in join.on]
            partners = [p for p in public if all(same(k, p[n]) for k, n in keys)]
            if not partners and join.kind is JoinKind.LEFT:
                partners = [{name: None for name, _ in join.right.columns}]
            result += [Row(row.unit, row.values | p) for p in partners]
        return result

    def _unit_join(self, join: UnitJoin) -> list[Row]:
        left, right = self.rows(join.left), self.rows(join.right)
        missing = dict.fromkeys(self.columns(join.right))
        result, met = [], set()
        for row in left:
            partners = [
                number
                for number, r in enumerate(right)
                if r.unit == row.unit and all(same(row.values[a], r.values[b]) for a, b in join.on)
            ]
            met.update(partners)
            result += [Row(row.unit, row.values | right[number].values) for number in partners]
            if not partners and join.kind is not JoinKind.INNER:
                result.append(Row(row.unit, row.values | missing))
        if join.kind is JoinKind.FULL:
            absent = dict.fromkeys(self.columns(join.left))
            alone = [r for number, r in enumerate(right) if number not in met]
            result += [Row(r.unit, absent | r.values) for r in alone]
        return result

    def _per_unit(self, relation: PerUnit) -> list[Row]:
        known = self.columns(relation.source)
        result_domains = self.columns(relation)
        groups: dict[Any, list[Values]] = {}
        for row in self.rows(relation.source):
            key = tuple(value_of(e, row.values, known) for _, e in relation.keys)
            groups.setdefault((row.unit, key), []).append(row.values)
        return [
            Row(
                unit,
                dict(zip((name for name, _ in relation.keys), key, strict=True))
                | {
                    name: aggregate_of(a, rows, known, result_domains[name])
                    for name, a in relation.aggregates
                },
            )
            for (unit, key), rows in groups.items()
        ]

    # --- plans -----------------------------------------------------------------------------

    def measure(self, plan: Plan) -> tuple[list[tuple[Any, ...]], list[Any]]:
        """The groups of a plan, and for each measurement its integers.

        A list of entries for each group, or for a histogram a dict from
        (group, position) to the count.
        """
        known = self.columns(plan.source)
        keyed = []
        for row in self.rows(plan.source):
            key = tuple(value_of(k.expression, row.values, known) for k in plan.keys)
            if all(listed(value, k.values) for value, k in zip(key, plan.keys, strict=True)):
                keyed.append((key, row))
        keyed = self._bounded(plan, keyed)
        if plan.public_keys:
            places = [tuple(map(plain, k.values or ())) for k in plan.keys]
            groups = [tuple(g) for g in itertools.product(*places)]
        else:
            groups = sorted({key for key, _ in keyed}, key=canonical)
        members = [[row for key, row in keyed if key == g] for g in groups]
        measured = [self._measured(m, members, known) for m in plan.measurements]
        return groups, measured

    def _bounded(self, plan: Plan, keyed: list[Any]) -> list[Any]:
        limits = plan.contribution
        by_unit: dict[Any, list[Any]] = {}
        for key, row in keyed:
            by_unit.setdefault(row.unit, []).append((key, row))
        for rows in by_unit.values():
            if limits.rows is not None and len(rows) > limits.rows:
                raise Truncated
            sizes: dict[Any, int] = {}
            for key, _ in rows:
                sizes[key] = sizes.get(key, 0) + 1
            if limits.groups is not None and len(sizes) > limits.groups:
                raise Truncated
            if limits.rows_per_group is not None and max(sizes.values()) > limits.rows_per_group:
                raise Truncated
        return keyed

    def _measured(
        self, measurement: Measurement, members: list[list[Row]], known: Mapping[str, Domain]
    ) -> Any:
        condition = measurement.condition
        kept = [
            [r for r in rows if condition is None or value_of(condition, r.values, known) is True]
            for rows in members
        ]
        match measurement:
            case Moments():
                return [moments(measurement, rows, known) for rows in kept]
            case Units():
                return [[len({r.unit for r in rows})] for rows in kept]
            case DistinctValues(expression=e):
                return [
                    [len({v for r in rows if (v := value_of(e, r.values, known)) is not None})]
                    for rows in kept
                ]
            case ValueCounts(expression=e, values=values):
                found = [[value_of(e, r.values, known) for r in rows] for rows in kept]
                return [[sum(v == plain(w) for v in row) for w in values] for row in found]
            case Histogram(variable=variable):
                counts: dict[tuple[int, int], int] = {}
                for place, rows in enumerate(kept):
                    for r in rows:
                        u = step(variable, r.values, known)
                        if u is not None:
                            counts[place, u] = counts.get((place, u), 0) + 1
                return counts
            case GroupTotal() | GroupMean():
                own = OWN[type(measurement)]
                return [own(measurement, rows, known) for rows in kept]
            case Sum(variable=variable):
                found = [[step(variable, r.values, known) for r in rows] for rows in kept]
                return [[sum(variable.low + u for u in row if u is not None)] for row in found]
            case GroupSum(expression=e, grid=grid, low=low, span=span):
                total = GroupTotal(e, grid, low, span)
                pairs = [group_total(total, rows, known) for rows in kept]
                # (span - u, u) for each unit: both together are a whole span for each of them.
                return [[low * ((a + b) // span) + b] for a, b in pairs]


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def listed(value: Any, values: Sequence[Any] | None) -> bool:
    return values is None or any(
        (value is None and v is None) or (value is not None and v is not None and value == plain(v))
        for v in values
    )


def canonical(key: tuple[Any, ...]) -> list[Any]:
    """NULL last, values in their own order."""
    return [(v is None, 0 if v is None else v) for v in key]


def same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and STRICT["equal"](a, b) is True


def position(value: Any) -> Fraction | None:
    """A value on the number line: dates count days, timestamps microseconds, from 1970."""
    match value:
        case None:
            return None
        case datetime():
            gap = value - datetime(1970, 1, 1)
            return Fraction(gap.days * 86_400_000_000 + gap.seconds * 10**6 + gap.microseconds)
        case date():
            return Fraction(value.toordinal() - date(1970, 1, 1).toordinal())
        case _:
            return Fraction(value)


def step(variable: Scaled, values: Values, known: Mapping[str, Domain]) -> int | None:
    """Where a value falls on its public grid."""
    x = position(value_of(variable.expression, values, known))
    if x is None:
        return None
    return min(max(half_even(x / variable.grid) - variable.low, 0), variable.span)


def moments(measurement: Moments, rows: list[Row], known: Mapping[str, Domain]) -> list[int]:
    shape = [range(d + 1) for d in measurement.degrees]
    totals = dict.fromkeys(itertools.product(*shape), 0)
    nulls = 0
    for row in rows:
        steps = [step(v, row.values, known) for v in measurement.variables]
        if None in steps:
            nulls += measurement.weight
            continue
        for exponents in totals:
            term = 1
            for u, v, d, j in zip(
                steps, measurement.variables, measurement.degrees, exponents, strict=True
            ):
                term *= math.comb(d, j) * u**j * (v.span - u) ** (d - j)
            totals[exponents] += term
    return [*totals.values(), *([nulls] if measurement.counts_null else [])]


def group_total(measurement: GroupTotal, rows: list[Row], known: Mapping[str, Domain]) -> list[int]:
    totals: dict[Any, int] = {}
    for row in rows:
        x = position(value_of(measurement.expression, row.values, known))
        if x is not None:
            totals[row.unit] = totals.get(row.unit, 0) + half_even(x / measurement.grid)
    steps = [min(max(t - measurement.low, 0), measurement.span) for t in totals.values()]
    return [sum(measurement.span - u for u in steps), sum(steps)]


def group_mean(measurement: GroupMean, rows: list[Row], known: Mapping[str, Domain]) -> list[int]:
    own: dict[Any, list[int]] = {}
    for row in rows:
        x = position(value_of(measurement.expression, row.values, known))
        if x is not None:
            own.setdefault(row.unit, []).append(half_even(x / measurement.grid))
    means = [Fraction(sum(steps), len(steps)) - measurement.low for steps in own.values()]
    found = [math.floor(min(max(m, 0), measurement.span) + Fraction(1, 2)) for m in means]
    return [sum(measurement.span - u for u in found), sum(found)]


OWN: dict[type[Any], Any] = {GroupTotal: group_total, GroupMean: group_mean}


def aggregate_of(
    aggregate: UnitAggregate, rows: list[Values], known: Mapping[str, Domain], result: Domain
) -> Any:
    """One unit's own COUNT, COUNT_DISTINCT, SUM, MIN, MAX or AVG."""
    if aggregate.argument is None:
        return len(rows)
    found = [value_of(aggregate.argument, row, known) for row in rows]
    values = [v for v in found if v is not None]
    match aggregate.function:
        case "COUNT":
            return len(values)
        case "COUNT_DISTINCT":
            return len(set(values))
        case "MIN":
            return min(values, default=None)
        case "MAX":
            return max(values, default=None)
    if not values:
        return None
    argument = domain_of(aggregate.argument, known)
    grid = unit_grid(argument)
    total = sum(half_even(Fraction(v) / grid) for v in values) * grid
    if result.kind is Kind.INTEGER:
        return int(total)
    alone = len(set(values)) == 1 and (len(values) == 1 or aggregate.function == "AVG")
    if alone and argument.kind is Kind.DECIMAL:
        total = Fraction(values[0])
    elif aggregate.function == "AVG":
        quotient_ = float(total) / float(len(values))
        total = Fraction(quotient_)
    return float(min(max(total, result.low), result.high))
