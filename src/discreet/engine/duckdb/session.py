"""One locked-down connection to one version of the sources.

What the connection may do is fixed before it is used: it opens the source files
and no others, loads no extension, and its configuration cannot be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from discreet.engine.duckdb.declared import (
    Layout,
    bounded_rows,
    codes,
    enum_name,
    kind_held,
    layout,
    owned_rows,
    typed_rows,
)
from discreet.engine.duckdb.prepared import creation, prepared_layout, prepared_rows
from discreet.engine.duckdb.query import (
    Definition,
    aliased,
    everything,
    named,
    nested,
    present,
    select,
    table_named,
)
from discreet.engine.duckdb.sources import Reader, Version, quoted
from discreet.errors import DataRefusal, SchemaRefusal
from discreet.question.domain import Kind, Value
from discreet.question.functions import nodes, read
from discreet.question.schema import Column, Schema, Table

_CONFIGURATION: dict[str, str | bool] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_unsigned_extensions": False,
    "python_enable_replacements": False,
    "preserve_insertion_order": False,
    "enable_external_file_cache": False,
    "TimeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine may use."""

    memory: str
    threads: int | None
    spill: str  # a folder for what does not fit in memory


def connect(limits: Limits) -> duckdb.DuckDBPyConnection:
    """A connection with nothing in it, not yet locked."""
    connection = duckdb.connect(":memory:")
    for name, value in _CONFIGURATION.items():
        connection.execute(f"SET {name} = {constant(value)}")
    connection.execute(f"SET memory_limit = {constant(limits.memory)}")
    connection.execute(f"SET temp_directory = {constant(limits.spill)}")
    if limits.threads is not None:
        connection.execute(f"SET threads = {int(limits.threads)}")
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, paths: Iterable[str]) -> None:
    """Leave the connection the files it reads and nothing else."""
    listed = ", ".join(constant(path) for path in paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def constant(value: str | bool) -> str:
    """A setting as the engine reads it."""
    return str(value).lower() if isinstance(value, bool) else nodes.text(value).sql("duckdb")


def given_name(table: str) -> str:
    """The view in which a table's rows are as its source holds them."""
    return f"given {table}"


def source_name(table: str) -> str:
    """The view in which the declared columns have the types of their kinds."""
    return f"source of {table}"


@dataclass(slots=True)
class Session:
    """The sources in one version, and how each table stands in the engine."""

    connection: duckdb.DuckDBPyConnection
    schema: Schema
    readers: Mapping[str, Reader]
    versions: Mapping[str, Version]
    held: dict[str, dict[str, str]] = field(default_factory=dict)
    prepared: dict[str, str] = field(default_factory=dict)  # table: catalog
    _multiplicities: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        schema: Schema,
        readers: Mapping[str, Reader],
        limits: Limits,
        kept: Mapping[str, str],
        *,
        locked: bool = True,
    ) -> Session:
        """Attach every source, and what is prepared of it (``kept``: table to file)."""
        versions = {name: source.version() for name, source in readers.items()}
        connection = connect(limits)
        session = cls(connection, schema, readers, versions)
        for name, source in readers.items():
            source.attach(connection, given_name(name))
            session.held[name] = held_types(connection, given_name(name))
        for name in readers:
            if schema.tables[name].columns:
                session._declare(schema.tables[name])
        for number, (name, path) in enumerate(kept.items()):
            catalog = f"prepared {number}"
            connection.execute(f"ATTACH {constant(path)} AS {quoted(catalog)} (READ_ONLY)")
            session.prepared[name] = catalog
        if locked:
            files = [path for source in readers.values() for path in source.paths()]
            lock(connection, [*files, *kept.values()])
        return session

    def _declare(self, table: Table) -> None:
        """Check the columns, create the types, and copy a public table as it is read."""
        _require_columns(table, self.held[table.name])
        for column in table.columns:
            listed = codes(column)
            if listed is not None:
                values = ", ".join(nodes.text(value).sql("duckdb") for value in listed)
                name = quoted(enum_name(table, column))
                self.connection.execute(f"CREATE TYPE {name} AS ENUM ({values})")
        typed = typed_rows(table, self._held(table), given_name(table.name))
        view = quoted(source_name(table.name))
        self.connection.execute(f"CREATE VIEW {view} AS {typed.sql('duckdb')}")
        rows = owned_rows(layout(table), source_name(table.name))
        # Binds every reading to its type, without running it.
        self.connection.execute(f"EXPLAIN {rows.sql('duckdb')}")
        if table.public:
            target = quoted(_public_name(table))
            self.connection.execute(f"CREATE TABLE {target} AS {rows.sql('duckdb')}")
            for key in table.unique:
                self._require_unique(table, key)

    def _require_unique(self, table: Table, key: tuple[str, ...]) -> None:
        if self.multiplicity(table, key) > 1:
            raise SchemaRefusal(
                "S9",
                f"public table '{table.name}' has several rows with the same {', '.join(key)}.",
                why="a person joined to it would be counted more often than is accounted for.",
                fix=f"remove the repeated rows, or do not declare {', '.join(key)} unique.",
            )

    def _held(self, table: Table) -> Mapping[str, str]:
        types = {name.casefold(): held for name, held in self.held[table.name].items()}
        return {column.name: types[column.name.casefold()] for column in table.columns}

    # --- what questions need -------------------------------------------------------------------

    def catalogue(self, table: Table) -> tuple[Layout, list[Definition]]:
        """How ``table`` stands here, and the definitions that give its rows."""
        name = f"table {table.name}"
        if table.public:
            rows = everything(table_named(_public_name(table)))
            return layout(table), [(name, rows, False)]
        if table.name in self.prepared:
            return prepared_layout(table), prepared_rows(name, self.prepared[table.name])
        shape, source = layout(table), source_name(table.name)
        return shape, bounded_rows(shape, source, name)

    def creation(self, table: Table, catalog: str) -> str:
        """The statement that prepares ``table`` in an attached database."""
        return creation(table, source_name(table.name), catalog)

    def multiplicity(self, table: Table, columns: tuple[str, ...]) -> int:
        """How many rows of a public table share the same values of ``columns``, as read."""
        key = (table.name, columns)
        if key not in self._multiplicities:
            self._multiplicities[key] = self._counted(table, columns)
        return self._multiplicities[key]

    def _counted(self, table: Table, columns: tuple[str, ...]) -> int:
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be counted here")
        fields = layout(table).fields
        keys = [named(fields[name].identifier) for name in columns]
        groups = select(
            [aliased(exp.Count(this=exp.Star(), big_int=True), "n")],
            table_named(_public_name(table)),
            where=[present(key.copy()) for key in keys],
            group=keys,
        )
        most = select([nodes.call("MAX", named("n"))], nested(groups, "g"))
        found = self._cursor().execute(most.sql("duckdb")).fetchone()
        return int(found[0] or 0) if found else 0

    def values(self, table: Table, column: Column) -> tuple[Value, ...]:
        """What a column of a public table holds, as read, NULL aside."""
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be listed")
        field = layout(table).fields[column.name]
        query = select([field.value()], table_named(_public_name(table)), group=[field.held()])
        found = self._cursor().execute(query.sql("duckdb")).fetchall()
        return tuple(public_value(value) for (value,) in found if value is not None)

    def described(self, table: Table) -> Table:
        """A public table declared without columns, with those it has: kinds and bounds too."""
        if not table.public:
            raise ValueError(f"{table.name} is private: it is declared, not described")
        columns = tuple(
            self._described(given_name(table.name), name, kind)
            for name, held in self.held[table.name].items()
            if (kind := kind_held(held)) is not None
        )
        return replace(table, columns=columns)

    def _described(self, source: str, name: str, kind: Kind) -> Column:
        column = Column(name, kind)
        if not (kind.is_number or kind.is_time):
            return column
        value = read(column, named(name))
        ends = [nodes.call(end, value.copy()) for end in ("MIN", "MAX")]
        query = select(ends, table_named(source))
        found = self._cursor().execute(query.sql("duckdb")).fetchone()
        if found is None or None in found:
            return column
        return Column(name, kind, public_value(found[0]), public_value(found[1]))

    def run(self, sql: str) -> pa.Table:
        """The result of one generated statement."""
        return self._cursor().sql(sql).to_arrow_table()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self.connection.cursor()
        for name, source in self.readers.items():
            source.lend(cursor, given_name(name))
        return cursor

    def close(self) -> None:
        """Let go of the sources."""
        self.connection.close()


def public_value(value: Any) -> Value:
    """A value of the engine as a public constant."""
    constant_: Value = Fraction(value) if isinstance(value, float) else value
    return constant_


def _public_name(table: Table) -> str:
    return f"public {table.name}"


def held_types(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    """The columns of a source and their types, from its description alone."""
    rows = connection.execute(f"DESCRIBE {quoted(view)}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def _require_columns(table: Table, held: Mapping[str, str]) -> None:
    there = {name.casefold() for name in held}
    missing = [c.name for c in table.columns if c.name.casefold() not in there]
    if missing:
        raise DataRefusal(
            "D2",
            f"the source of table '{table.name}' has no column '{missing[0]}'.",
            why="a column that is declared but absent cannot be enforced.",
            fix=f"correct the name in the schema, or declare only columns that exist; "
            f"missing: {', '.join(missing)}.",
        )
