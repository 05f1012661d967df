"""Random worlds: a schema, the rows of a few people, and questions about them.

A :class:`World` is opened once on the real engine; each neighbour is the same
tables seen without one person, in every table that carries the unit.  Values
include NULL, NaN, the infinities and the extremes of their types.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.database import name_given
from discreet.engine.duckdb.sources import quote_name
from discreet.engine.truth import Opened, SparseCounts
from discreet.price.plan import Moves, Plan
from discreet.question.domain import Kind
from discreet.question.schema import ROW, Column, Schema, Table

ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
}
PERSON = "_person"  # which neighbour a row goes with; not declared, so never read
NOBODY, EVERYBODY = -1, -2  # of the first there are rows; hiding the second hides no row

REGIONS = ("north", "south", "west")
POISON: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INTEGER: [0, 1, 2, 3, -4, 7, 10, 2**31 - 1, 2**63 - 1, -(2**63)],
    Kind.DECIMAL: [0.0, -0.0, 0.25, 1.5, 2.75, -3.1, 1e300, -1e18, float("nan"), float("inf")],
    Kind.TEXT: ["north", "south", "west", "east", "", "a\0b", "naïve"],
    Kind.DATE: [date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 31), date(1, 1, 1)],
}

EVERYDAY: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INTEGER: [0, 1, 2, 3, 5],
    Kind.DECIMAL: [0.0, 0.25, 1.5, 2.75, 4.0],
    Kind.TEXT: list(REGIONS),
    Kind.DATE: [date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 31)],
}


# --- schemas -------------------------------------------------------------------------------


@st.composite
def numbers(draw: Any, name: str, kind: Kind) -> Column:
    low = draw(st.integers(-4, 2))
    high = low + draw(st.integers(1, 9))
    ends = (Fraction(low), Fraction(high)) if kind is Kind.DECIMAL else (low, high)
    return Column(name, kind, *ends, nullable=draw(st.booleans()))


@st.composite
def schemas(draw: Any, *, bounding: bool = True) -> Schema:
    """A schema; without ``bounding``, its limits are wider than any unit's rows."""
    rows = st.integers(1, 3) if bounding else st.integers(9, 12)
    unit = draw(st.sampled_from([("pid",), ("pid",), ("code",), ("pid", "day"), ROW, ROW]))
    identity = (
        Column("pid", Kind.INTEGER, *draw(st.sampled_from([(), (1, 3)]))),
        Column("code", Kind.TEXT),
        Column("day", Kind.DATE, date(2024, 1, 1), date(2024, 3, 1)),
    )
    regions = Column("region", Kind.TEXT, values=REGIONS, nullable=draw(st.booleans()))
    visits = Table(
        "visits",
        (
            *identity,
            regions,
            draw(numbers("x", Kind.INTEGER)),
            draw(numbers("y", Kind.DECIMAL)),
            Column("t", Kind.TEXT),
            Column("b", Kind.BOOLEAN),
        ),
        unit=unit,
        max_rows_per_unit=1 if unit == ROW else draw(rows),
        blocks=draw(st.sampled_from([(), (), ("region",)])) if bounding else (),
        entity=None if unit == ROW else "person",
    )
    people = Table(
        "people",
        (*identity, draw(numbers("age", Kind.INTEGER)), regions),
        unit=("pid", "day") if unit == ROW else unit,
        max_rows_per_unit=draw(rows),
        entity="someone else" if unit == ROW else "person",
    )
    cities = Table(
        "cities",
        (Column("name", Kind.TEXT), Column("pop", Kind.INTEGER, 0, 9), Column("n", Kind.INTEGER)),
    )
    return Schema({"visits": visits, "people": people, "cities": cities})


# --- rows ----------------------------------------------------------------------------------


IDENTITY: list[tuple[Any, Any, Any]] = [
    (1, "a", date(2024, 1, 1)),
    (2, "b", date(2024, 1, 1)),
    (3, "c", date(2024, 5, 5)),
    (9, "d", date(2024, 6, 6)),
    (2**62, "e", date(2023, 1, 1)),
    (None, None, None),
]
"""People whose identifiers lie inside and outside the declared bounds, and nobody."""


def cell(chance: random.Random, kind: Kind) -> Any:
    """A value of a kind: three in four are everyday ones, which meet and differ."""
    return chance.choice(EVERYDAY[kind] if chance.randrange(4) else [*POISON[kind], None])


@st.composite
def tables(draw: Any, schema: Schema) -> dict[str, list[dict[str, Any]]]:
    """Rows of each table, with the place of the person they go with."""
    chance = random.Random(draw(st.integers(0, 2**32)))  # drawing each cell would take longer
    found: dict[str, list[dict[str, Any]]] = {}
    for table in schema.tables.values():
        rows = []
        for place, (pid, code, day) in enumerate(IDENTITY):
            for _ in range(2 if table.public else chance.choice([0, 1, 2, 3, 4, 4])):
                row = {c.name: cell(chance, c.kind) for c in table.columns}
                if not table.public:
                    row |= {"pid": pid, "code": code, "day": day}
                    if table.unit == ("pid", "day") and chance.randrange(2):
                        row["day"] = date(2024, 1, 2)
                rows.append(row | {PERSON: place})
        found[table.name] = rows
    numbered: dict[Any, int] = {}
    for table in schema.tables.values():
        if not table.public:
            mark(table, found[table.name], numbered)
    return found


def mark(table: Table, rows: list[dict[str, Any]], numbered: dict[Any, int]) -> None:
    """Number the units: rows with the same number, in all tables, leave together."""
    for place, row in enumerate(rows):
        key = (place,) if table.by_row else tuple(row[name] for name in table.unit or ())
        owned = None not in key
        row[PERSON] = numbered.setdefault((table.entity, key), len(numbered)) if owned else NOBODY


# --- running -------------------------------------------------------------------------------


@dataclass
class World:
    """A schema and its rows, opened on the engine."""

    schema: Schema
    rows: dict[str, list[dict[str, Any]]]
    engine: DuckDBEngine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = DuckDBEngine(
            {name: self.arrow(name) for name in self.schema.tables}, self.schema, threads=1
        )
        self._database = self.engine._current()
        for name in self.schema.tables:
            if not self.schema.tables[name].public:
                everything = pa.table(
                    self.arrow(name).to_pydict() | {PERSON: [r[PERSON] for r in self.rows[name]]},
                    schema=self.arrow(name).schema.append(pa.field(PERSON, pa.int64())),
                )
                cursor = self._database.connection
                cursor.register("everything", everything)
                cursor.execute(f"CREATE TABLE {quote_name(f'all {name}')} AS FROM everything")
                cursor.unregister("everything")
        self._views = [
            f"CREATE OR REPLACE VIEW {quote_name(name_given(name))} AS "
            f"SELECT {', '.join(quote_name(c.name) for c in table.columns)} "
            f"FROM {quote_name(f'all {name}')}"
            for name, table in self.schema.tables.items()
            if not table.public
        ]
        self._hidden = NOBODY
        self.show_everybody()

    def arrow(self, name: str) -> pa.Table:
        columns = self.schema.tables[name].columns
        return pa.table(
            {c.name: pa.array([r[c.name] for r in self.rows[name]], ARROW[c.kind]) for c in columns}
        )

    def people(self) -> list[int]:
        """Everybody who has a row in a private table."""
        return sorted(
            {
                row[PERSON]
                for name, rows in self.rows.items()
                if not self.schema.tables[name].public
                for row in rows
            }
            - {NOBODY}
        )

    def show_without(self, person: int) -> None:
        """Show the tables without one person, in every table."""
        if person != self._hidden:
            for view in self._views:
                self._database.connection.execute(f"{view} WHERE {PERSON} <> {person}")
            self._hidden = person

    def show_everybody(self) -> None:
        self.show_without(EVERYBODY)

    def runner(self, plan: Plan) -> Callable[[], Opened]:
        """The plan's one statement, to be run on the tables as they are shown."""
        compiled = self.engine.compile(plan)
        run = self._database.connection.execute
        return lambda: compiled.columns.read(run(compiled.text).fetchnumpy())

    def run(self, plan: Plan) -> Opened:
        return self.runner(plan)()

    def close(self) -> None:
        self._database.close()
        self.engine.close()


@st.composite
def worlds(draw: Any, *, bounding: bool = True) -> World:
    schema = draw(schemas(bounding=bounding))
    return World(schema, draw(tables(schema)))


# --- vectors -------------------------------------------------------------------------------

Vector = dict[Any, int]


def vectors(result: Opened) -> list[Vector]:
    """Each measurement as a sparse vector of integers, by group and entry."""
    found: list[Vector] = []
    for measured in result.measured:
        if isinstance(measured, SparseCounts):
            entries = zip(measured.group, measured.position, measured.count, strict=True)
            found.append({(result.groups[g], int(u)): int(n) for g, u, n in entries})
        else:
            found.append(
                {
                    (group, j): int(value)
                    for group, row in zip(result.groups, measured, strict=True)
                    for j, value in enumerate(row)
                    if value
                }
            )
    return found


def distance(a: Vector, b: Vector) -> tuple[int, int]:
    """How far two vectors are apart: L1, and L2 squared."""
    gaps = [a.get(key, 0) - b.get(key, 0) for key in a.keys() | b.keys()]
    return sum(map(abs, gaps)), sum(gap * gap for gap in gaps)


def allows(moves: Moves, gaps: list[int]) -> bool:
    """Whether entries that moved by these gaps, none of them 0, moved as the price says."""
    if len(gaps) > moves.entries:
        return False
    if moves.longest is None or sum(gap * gap for gap in gaps) <= moves.shorter:
        return True
    entries, step = moves.longest
    return len(gaps) == entries and set(gaps) == {step}
