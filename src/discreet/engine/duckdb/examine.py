"""What only the curator may know of a source: its types, and how its rows fit what is declared.

The figures are exact, so they belong to whoever holds the file.  No question leads here, and
nothing here is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from discreet.engine.duckdb.database import Database, Resources, connect
from discreet.engine.duckdb.declared import read_physical
from discreet.engine.duckdb.scratch import folder_for_now
from discreet.engine.duckdb.sources import Csv, DataSource, Part, quote_name
from discreet.question.domain import Kind, Value
from discreet.question.functions import nodes, read_kind
from discreet.question.functions.nodes import ENGINE
from discreet.question.schema import Column, Owners, Schema, Table

SHARES = (0.5, 0.95, 0.99, 1.0)
"""Of how many units the rows are told: at most so many rows have half of them, 95 %, ..."""


@dataclass(frozen=True, slots=True)
class ColumnFit:
    """How many values of a column are read otherwise than they stand."""

    missing: int
    unreadable: int  # there, and not of the declared type
    below: int
    above: int
    unlisted: int  # none of the allowed values
    read_as: Value | None = field(default=None, kw_only=True)
    """What is read where nothing is there that may be: NULL, or a value of the declaration."""

    @property
    def changed(self) -> int:
        """How many values are read as something else."""
        return self.unreadable + self.below + self.above + self.unlisted


@dataclass(frozen=True, slots=True)
class Fit:
    """How the rows of one source fit what is declared of them."""

    rows: int
    left_out: int  # lines of a CSV file that are no rows of the table
    quoted: int  # lines of a CSV file that stand within the quotation marks of another
    ownerless: int  # rows whose unit is missing or unreadable: not counted
    units: int
    cut: int  # rows beyond max_rows_per_unit
    crowded: int  # units that have such rows
    rows_per_unit: Mapping[float, int]
    """For each of ``SHARES``, how many rows so many units have at most."""
    columns: Mapping[str, ColumnFit]


@dataclass(frozen=True, slots=True)
class Secret:
    """What of a person is a secret: that a column of theirs is ``=``, ``<`` or ``>`` a value."""

    column: str
    sign: str
    value: str | float

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"


def examine(table: Table, source: DataSource, resources: Resources) -> Fit:
    """Read a whole source, and count what its declaration changes."""
    schema = Schema({table.name: table})
    with closing(Database.open(schema, {table.name: source}, resources, {})) as database:
        parts = database.parts[table.name]
        read = " UNION ALL ".join(_read(table, part, database.held[part.view]) for part in parts)
        run = database.connection.execute
        run(f"CREATE TEMP TABLE examined AS {read}")
        counts = ", ".join(["COUNT(*)", *_counts(table)])
        counted = run(f"SELECT {counts} FROM examined").fetchone()  # noqa: S608
        found = [int(count or 0) for count in counted or ()]
        columns = {
            column.name: ColumnFit(
                *found[1 + 5 * place : 6 + 5 * place],
                read_as=None if column.domain.nullable else column.instead_of_null,
            )
            for place, column in enumerate(table.columns)
        }
        owned = _count_owned(table, run)
    left_out, lines = _count_lines(source, resources)
    quoted = max(0, lines - found[0] - left_out)
    return Fit(found[0], left_out, quoted, *owned, columns)


def copy_people(
    table: Table,
    source: DataSource,
    resources: Resources,
    *,
    secret: Secret,
    known: Sequence[str],
    people: int,
) -> list[tuple[int, ...]]:
    """Of some units, in an order that says nothing, whether any row of theirs has the secret.

    Then, of each ``known`` column, a number for what they have there: the same for the same value,
    the least of those who have several.
    """
    schema = Schema({table.name: table})
    places = {column.name: place for place, column in enumerate(table.columns)}
    value = f"read{places[secret.column]}"
    shown = f"CAST({value} AS VARCHAR)" if secret.sign == "=" else f"CAST({value} AS DOUBLE)"
    wanted = "CAST(? AS VARCHAR)" if secret.sign == "=" else "CAST(? AS DOUBLE)"
    unit = [] if table.by_row else [f"read{places[name]}" for name in table.unit or ()]
    texts = [f"CAST(read{places[name]} AS VARCHAR)" for name in known]
    test = f"CAST(COALESCE({shown} {secret.sign} {wanted}, false) AS INTEGER)"
    if unit:
        keys = ", ".join(unit)
        held = "".join(f", MIN({text}) AS known{i}" for i, text in enumerate(texts))
        each = (
            f"SELECT MAX({test}) AS bit, HASH({keys}) AS place{held} "  # noqa: S608
            f"FROM examined WHERE {unit[0]} IS NOT NULL GROUP BY {keys}"
        )
    else:
        held = "".join(f", {text} AS known{i}" for i, text in enumerate(texts))
        each = f"SELECT {test} AS bit, random() AS place{held} FROM examined"  # noqa: S608
    codes = "".join(f", DENSE_RANK() OVER (ORDER BY known{i}) - 1" for i in range(len(known)))
    with closing(Database.open(schema, {table.name: source}, resources, {})) as database:
        parts = database.parts[table.name]
        read = " UNION ALL ".join(_read(table, part, database.held[part.view]) for part in parts)
        run = database.connection.execute
        run(f"CREATE TEMP TABLE examined AS {read}")
        found = run(
            f"SELECT bit{codes} FROM (SELECT * FROM ({each}) AS u ORDER BY place LIMIT {people}) "  # noqa: S608
            "AS chosen ORDER BY place",
            [secret.value],
        ).fetchall()
    return [tuple(int(part) for part in row) for row in found]


def _read(table: Table, part: Part, held: Mapping[str, str]) -> str:
    """Each declared column of a part: whether it is there, and what it is read as."""
    types = {name.casefold(): kind for name, kind in held.items()}

    def both(place: int, column: Column) -> str:
        kind = types.get(column.name.casefold())
        if kind is None:  # another part has it
            value = nodes.make_null(column.kind)
            return f"false AS there{place}, {value.sql('duckdb')} AS read{place}"
        raw = read_physical(column, kind, part=part, table=table.name)
        value = read_kind(column.kind, raw)
        there = nodes.present(nodes.quote_column(column.name))
        return f"{there.sql('duckdb')} AS there{place}, {value.sql('duckdb')} AS read{place}"

    picked = ", ".join(both(place, column) for place, column in enumerate(table.columns))
    return f"SELECT {picked} FROM {quote_name(part.view)}"  # noqa: S608 (names are quoted)


def _counts(table: Table) -> Iterator[str]:
    for place, column in enumerate(table.columns):
        there, value = f"there{place}", f"read{place}"
        yield f"COUNT_IF(NOT {there})"
        yield f"COUNT_IF({there} AND {value} IS NULL)"
        for sign, bound in (("<", column.low), (">", column.high)):
            yield (
                "0"
                if bound is None
                else (f"COUNT_IF({value} {sign} {nodes.literal(bound).sql('duckdb')})")
            )
        if column.values is None:
            yield "0"
        else:
            listed = ", ".join(nodes.literal(v).sql(ENGINE) for v in column.values)
            yield f"COUNT_IF({value} NOT IN ({listed}))"


def _count_owned(
    table: Table, run: Callable[[str], Any]
) -> tuple[int, int, int, int, dict[float, int]]:
    """Rows of nobody, units, rows that are cut, units that have some, and rows by unit."""
    places = [
        place for place, column in enumerate(table.columns) if column.name in (table.unit or ())
    ]
    if table.by_row or not places:
        return 0, 0, 0, 0, {}
    unit = ", ".join(f"read{place}" for place in places)
    known = " AND ".join(f"read{place} IS NOT NULL" for place in places)
    counted = f"SELECT COUNT(*) AS n FROM examined WHERE {known} GROUP BY {unit}"  # noqa: S608
    if table.owners is not Owners.ONE:
        a, b = (f"read{place}" for place in places)
        if table.owners is Owners.PAIR:
            ends = f"LEAST({a}, {b}), GREATEST({a}, {b})"
            counted = f"SELECT COUNT(*) AS n FROM examined WHERE {known} GROUP BY {ends}"  # noqa: S608
        else:  # each row once for every person that it names
            known = f"({a} IS NOT NULL OR {b} IS NOT NULL)"
            counted = (
                f"SELECT COUNT(*) AS n FROM (SELECT {a} AS o FROM examined WHERE {a} IS NOT NULL "  # noqa: S608
                f"UNION ALL SELECT {b} FROM examined WHERE {b} IS NOT NULL AND {b} IS DISTINCT "
                f"FROM {a}) AS ends GROUP BY o"
            )
    most = 2**62 if table.max_rows_per_unit is None else table.max_rows_per_unit
    shares = ", ".join(f"QUANTILE_DISC(n, {share})" for share in SHARES)
    statement = (
        f"WITH u AS ({counted}) "  # noqa: S608
        f"SELECT (SELECT COUNT(*) FROM examined WHERE NOT ({known})), COUNT(*), "
        f"SUM(GREATEST(n - {most}, 0)), COUNT_IF(n > {most}), {shares} FROM u"
    )
    ownerless, units, cut, crowded, *counts = run(statement).fetchone()
    if not units:
        return int(ownerless), 0, 0, 0, {}
    by_share = dict(zip(SHARES, map(int, counts), strict=True))
    return int(ownerless), int(units), int(cut), int(crowded), by_share


def _count_lines(source: DataSource, resources: Resources) -> tuple[int, int]:
    """Lines of a CSV file with more or fewer fields than its header; and all but the header."""
    if not isinstance(source, Csv) or source.columns is None:
        return 0, 0
    with suppress(duckdb.Error), closing(connect(resources)) as connection:
        copy = source.copy_file(Path(resources.copies))
        reading = source.reading(copy, also=", store_rejects=true")
        connection.execute(f"SELECT COUNT(*) FROM {reading}").fetchall()  # noqa: S608
        found = connection.execute("SELECT COUNT(DISTINCT line) FROM reject_errors").fetchone()
        with copy.open("rb") as file:
            written = sum(1 for line in file if line.strip())
        return int(found[0]) if found else 0, written - 1
    return 0, 0


# --- types -----------------------------------------------------------------------------------

_MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?", ".")
"""What stands in a CSV file for nothing; no type is refused for it."""
_WHOLE = "[+-]?(0|[1-9][0-9]{0,17})"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TYPED = (
    (Kind.BOOLEAN, "LOWER(@) IN ('true', 'false')"),
    (Kind.INTEGER, f"REGEXP_FULL_MATCH(@, '{_WHOLE}')"),
    # Zeros in front are digits of a code: a telephone number is no amount.
    (Kind.DECIMAL, "TRY_CAST(@ AS DOUBLE) IS NOT NULL AND NOT REGEXP_MATCHES(@, '^0[0-9]')"),
    (Kind.DATE, f"REGEXP_FULL_MATCH(@, '{_DAY}') AND TRY_CAST(@ AS DATE) IS NOT NULL"),
    (Kind.TIMESTAMP, f"REGEXP_MATCHES(@, '^{_DAY}') AND TRY_CAST(@ AS TIMESTAMP) IS NOT NULL"),
)
"""What every value (@) of a kind passes, the narrower kinds first."""


def find_kinds(source: Csv) -> list[Kind | None]:
    """The kind of each column of a CSV file, from all of its rows; None if nothing is in it.

    A kind is one that every value has which is there: nothing else is told of them.
    """
    with (
        folder_for_now() as folder,
        closing(connect(Resources("1GB", None, str(folder), str(folder)))) as connection,
    ):
        rows = source.reading(source.copy_file(folder))
        names = [row[0] for row in connection.execute(f"DESCRIBE FROM {rows}").fetchall()]
        tests = []
        for name in names:
            value = f"TRIM({quote_name(name)})"
            there = f"LOWER({value}) NOT IN ({', '.join(map(repr, _MISSING))})"
            tests.append(f"COUNT_IF({there})")
            tests += [f"COUNT_IF({there} AND {test.replace('@', value)})" for _, test in _TYPED]
        found = connection.execute(f"SELECT {', '.join(tests)} FROM {rows}").fetchone()  # noqa: S608
    counts = [int(count or 0) for count in found or ()]
    step = 1 + len(_TYPED)
    return [_kind(counts[step * place : step * (place + 1)]) for place in range(len(names))]


def _kind(counts: list[int]) -> Kind | None:
    there, *typed = counts
    if not there:
        return None
    fitting = (kind for (kind, _), count in zip(_TYPED, typed, strict=True) if count == there)
    return next(fitting, Kind.TEXT)


__all__ = ["SHARES", "ColumnFit", "Fit", "Secret", "copy_people", "examine", "find_kinds"]
