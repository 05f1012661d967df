"""Tables made up from a schema alone: what a person could hold, likely or not.

Values lie inside and outside the declared bounds and lists, are missing, not a
number, infinite, or at the ends of their types; people have no rows, some, or
more than the schema allows.  Nothing of the real data is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet.audit.frozen import Dice
from discreet.question.domain import Kind
from discreet.question.schema import Column, Schema, Table

ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}

_POISON: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: (True, False, None),
    Kind.INTEGER: (0, -1, 2**31 - 1, 2**63 - 1, -(2**63), None),
    Kind.DECIMAL: (0.0, -0.0, 5e-324, 1e300, -1e18, float("nan"), float("inf"), None),
    Kind.TEXT: ("", "\0", "naïve", "no such value", "x" * 300, None),
    Kind.DATE: (date(1, 1, 1), date(9999, 12, 31), None),
    Kind.TIMESTAMP: (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), None),
}

_MOST_ROWS = 8
_PUBLIC_ROWS = 6

Cell = Any
Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class World:
    """Rows of every table, with the number of the person that each belongs to."""

    schema: Schema
    rows: Mapping[str, tuple[tuple[int, Mapping[str, Cell]], ...]]
    public: Mapping[str, Any]

    def people(self) -> list[tuple[str, int]]:
        """Everybody who has a row, as (entity, number)."""
        found = {
            (entity_of(table), person)
            for name, table in self.schema.tables.items()
            if not table.public
            for person, _ in self.rows[name]
        }
        return sorted(found)

    def tables(self, *, without: tuple[str, int] | None = None) -> dict[str, Any]:
        """The tables, or all but the rows of one person in every table of their entity."""
        shown: dict[str, Any] = dict(self.public)
        for name, rows in self.rows.items():
            table = self.schema.tables[name]
            kept = [r for person, r in rows if (entity_of(table), person) != without]
            shown[name] = _arrow(table, kept)
        return shown


def make_world(schema: Schema, label: str, *, public: Mapping[str, Any], people: int = 6) -> World:
    """A synthetic world; ``public`` tables are taken as given."""
    dice = Dice(label)
    rows: dict[str, tuple[tuple[int, Mapping[str, Cell]], ...]] = {}
    for name, table in schema.tables.items():
        if table.public:
            continue
        made: list[tuple[int, Mapping[str, Cell]]] = []
        most = min(_MOST_ROWS, (table.max_rows_per_unit or 3) + 2)
        for person in range(people):
            count = dice.choice((0, 1, most, most))
            for _ in range(1 if table.by_row else count):
                cells = {c.name: _cell(c, dice) for c in table.columns}
                cells |= _identity(table, person)
                made.append((len(made) if table.by_row else person, cells))
        rows[name] = tuple(made)
    return World(schema, rows, public)


def make_public_tables(schema: Schema, label: str) -> dict[str, pa.Table]:
    """Public tables for a schema that names no source for them."""
    dice = Dice(f"{label}/public")
    return {
        name: _arrow(
            table,
            [
                {c.name: _pick_listed(c, dice, number) for c in table.columns}
                for number in range(_PUBLIC_ROWS)
            ],
        )
        for name, table in schema.tables.items()
        if table.public and table.columns and table.source is None
    }


def entity_of(table: Table) -> str:
    """Whom a table's rows belong to; rows of their own have an entity of their own."""
    return table.name if table.by_row else table.entity or ", ".join(table.unit or ())


def _identity(table: Table, person: int) -> dict[str, Cell]:
    """The same person is called the same in every table of an entity."""
    if table.by_row:
        return {}
    kinds = {c.name: c for c in table.columns}
    return {name: _name(kinds[name], person) for name in table.unit or () if name in kinds}


def _name(column: Column, person: int) -> Cell:
    if column.values:
        return _plain(column.values[person % len(column.values)], column.kind)
    names: dict[Kind, Cell] = {
        Kind.INTEGER: person + 1,
        Kind.TEXT: f"person {person}",
        Kind.DECIMAL: person + 0.5,
        Kind.BOOLEAN: person % 2 == 0,
        Kind.DATE: date(2024, 1, 1 + person),
        Kind.TIMESTAMP: datetime(2024, 1, 1 + person),
    }
    return names[column.kind]


def _cell(column: Column, dice: Dice) -> Cell:
    if dice.below(4):
        return _pick_listed(column, dice, None)
    if column.kind in (Kind.INTEGER, Kind.DECIMAL) and column.low is not None and dice.below(2):
        low: Any = column.low
        high: Any = column.high
        return _plain(dice.choice((2 * low - high, 2 * high - low)), column.kind)  # just outside
    return dice.choice(_POISON[column.kind])


def _pick_listed(column: Column, dice: Dice, number: int | None) -> Cell:
    """A value that the schema has in mind; the ``number``-th different one if asked for."""
    if column.values:
        index = dice.below(len(column.values)) if number is None else number % len(column.values)
        return _plain(column.values[index], column.kind)
    step = dice.choice((0, 1, 2, 3, 8)) if number is None else number
    low: Any = column.low
    high: Any = column.high
    if low is None or high is None:
        return _anything(column.kind, step)
    if column.kind in (Kind.DATE, Kind.TIMESTAMP):
        return _plain(low + (high - low) * step // 8, column.kind)
    return _plain(low + (high - low) * Fraction(step, 8), column.kind)


def _anything(kind: Kind, step: int) -> Cell:
    everyday: dict[Kind, Cell] = {
        Kind.BOOLEAN: step % 2 == 0,
        Kind.INTEGER: step,
        Kind.DECIMAL: step * 0.75,
        Kind.TEXT: "abcdefghi"[step],
        Kind.DATE: date(2024, 1, 31) + timedelta(days=30 * step),
        Kind.TIMESTAMP: datetime(2024, 1, 31, 6) + timedelta(hours=30 * step),
    }
    return everyday[kind]


def _plain(value: Any, kind: Kind) -> Cell:
    if kind is Kind.INTEGER:
        return max(min(int(value), 2**63 - 1), -(2**63))
    return float(value) if kind is Kind.DECIMAL else value


def _arrow(table: Table, rows: list[Mapping[str, Cell]]) -> pa.Table:
    return pa.table(
        {c.name: pa.array([row[c.name] for row in rows], ARROW[c.kind]) for c in table.columns}
    )


__all__ = ["ARROW", "World", "entity_of", "make_public_tables", "make_world"]
