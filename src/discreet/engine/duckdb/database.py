"""One locked-down connection to one version of the sources.

What the connection may do is fixed before it is used: it opens the source files
and no others, loads no extension, and its configuration cannot be changed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from sqlglot import exp

from discreet.engine.duckdb.declared import (
    count_crowded,
    define_rows,
    find_kind,
    name_enum,
    select_owned_rows,
    select_typed_rows,
    source_name,
)
from discreet.engine.duckdb.prepared import CROWD, ROWS, list_files, list_stored
from discreet.engine.duckdb.render import lay_out, list_codes, name_rows
from discreet.engine.duckdb.result import Columns
from discreet.engine.duckdb.sources import DataSource, Part, Version, quote_name
from discreet.engine.protocol import Progress
from discreet.errors import DataRefusal, InvalidParameter, SchemaRefusal, quote_value
from discreet.exact.records import dataclass
from discreet.question.domain import LISTED_MOST, Kind, Value
from discreet.question.functions import nodes, read_column
from discreet.question.functions.nodes import (
    ENGINE,
    add_alias,
    nest_query,
    present,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Column, Schema, Table

WIDE_STEPS = 2**62
"""Steps that 64 bits may not hold are kept in 128 (see ``cast_whole``)."""

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
class Resources:
    """What the engine may use."""

    memory: str
    threads: int | None
    spill: str  # a folder for what does not fit in memory
    copies: str  # a folder for what cannot be read in place


def connect(resources: Resources) -> duckdb.DuckDBPyConnection:
    """A connection with nothing in it, not yet locked."""
    settings = {
        **_CONFIGURATION,
        "memory_limit": resources.memory,
        "temp_directory": resources.spill,
    }
    connection = duckdb.connect(":memory:")
    # For all of it: what is set for one connection is not what its cursors, one a thread, have.
    statements = [f"SET GLOBAL {name} = {constant(value)}" for name, value in settings.items()]
    if resources.threads is not None:
        statements.append(f"SET GLOBAL threads = {int(resources.threads)}")
    started = False
    with suppress(duckdb.Error):
        connection.execute("; ".join(statements))
        started = True
    if not started:
        raise InvalidParameter(
            "P4",
            f"the engine does not start with memory_limit = {quote_value(resources.memory)} and "
            f"threads = {quote_value(resources.threads)}.",
            why="no file was opened: nobody's data is involved.",
            fix="write the memory as '4GB', and as threads a whole number.",
        )
    # So that progress can be told, and never printed.  In a notebook DuckDB asks for a package that
    # draws bars, and without it refuses both settings: then nothing is told, and all else works.
    with suppress(duckdb.Error):
        connection.execute("SET enable_progress_bar_print = false; SET enable_progress_bar = true")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, paths: Iterable[str]) -> None:
    """Leave the connection the files it reads and nothing else."""
    listed = ", ".join(constant(path) for path in paths)
    connection.execute(f"SET GLOBAL allowed_paths = [{listed}]")
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")


def constant(value: str | bool) -> str:
    """A setting as the engine reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'"


def name_given(table: str) -> str:
    """The view in which a table's rows are as its source holds them."""
    return f"given {table}"


def _read_written(table: Table, written: Mapping[str, list[str]]) -> str:
    """The rows of a table that Spark has prepared, under the names and in the types of ours."""
    types = {
        field.identifier: quote_name(name_enum(table, column))
        for column, field in zip(table.columns, lay_out(table).fields.values(), strict=True)
        if field.codes is not None
    }
    steps = [f.steps for f in lay_out(table).fields.values() if f.steps is not None]
    types |= {s.identifier: "HUGEINT" for s in steps if s.span >= WIDE_STEPS}
    stored = list_stored(table)
    types |= {one.identifier: "BIGINT" for one in stored if one.short}
    picked = ", ".join(
        f"{_cast(one.name, types.get(one.identifier))} AS {quote_name(one.identifier)}"
        for one in stored
    )
    listed = ", ".join(map(constant, written[table.name]))
    return f"SELECT {picked} FROM read_parquet([{listed}])"  # noqa: S608


def _cast(name: str, to: str | None) -> str:
    return name if to is None else f"CAST({name} AS {to})"


@dataclass(slots=True)
class Database:
    """The sources in one version, each table behind the view that statements name.

    A private table without a reader is empty here: the same statements bind to it,
    with the same types, and nobody's row is near.
    """

    connection: duckdb.DuckDBPyConnection
    schema: Schema
    readers: Mapping[str, DataSource]
    versions: Mapping[str, Version]
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    held: dict[str, dict[str, str]] = field(default_factory=dict)  # view: columns and types
    prepared: dict[str, str] = field(default_factory=dict)  # table: catalog
    written: dict[str, list[str]] = field(default_factory=dict)  # table: Parquet that is prepared
    kept: Mapping[str, str] = field(default_factory=dict)  # table: where it is prepared
    progress: Progress | None = None  # told how far a statement is
    _cursors: threading.local = field(default_factory=threading.local)
    _multiplicities: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    _listed: dict[tuple[str, str], tuple[Value | None, ...] | None] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        schema: Schema,
        readers: Mapping[str, DataSource],
        resources: Resources,
        kept: Mapping[str, str],
        *,
        locked: bool = True,
    ) -> Database:
        """Attach every source, and what is prepared of it (``kept``: table to file)."""
        versions = {name: source.version for name, source in readers.items()}
        database = cls(connect(resources), schema, readers, versions, kept=kept)
        try:
            database._attach(kept, Path(resources.copies))
            if locked:
                files = [path for source in readers.values() for path in source.paths()]
                copies = [p.copy for parts in database.parts.values() for p in parts if p.copy]
                ready = [path for one in kept.values() for path in list_files(one)]
                lock(database.connection, [*files, *copies, *ready])
        except BaseException:
            database.close()  # or its files would stay attached
            raise
        return database

    @classmethod
    def share_empty(cls, schema: Schema, resources: Resources) -> Database:
        """A database with nobody and no public table in it, for all engines of this process.

        Statements are bound to it: it has the types and empty tables of a schema, reads no file
        and never spills, and what was bound leaves nothing behind.  Whoever takes it does not
        close it.
        """
        declared = _Declared(repr(tuple(schema.tables.values())), schema)
        return _open_empty(declared, replace(resources, spill="", copies=""), os.getpid())

    def _attach(self, kept: Mapping[str, str], copies: Path) -> None:
        for name, source in self.readers.items():
            self.parts[name] = source.attach(self.connection, name_given(name), copies=copies)
            for part in self.parts[name]:
                self.held[part.view] = list_types(self.connection, part.view)
        for number, (name, path) in enumerate(kept.items()):
            catalog = f"prepared {number}"
            if Path(path).is_dir():
                self.written[name] = list_files(path)
                continue
            self.connection.execute(f"ATTACH {constant(path)} AS {quote_name(catalog)} (READ_ONLY)")
            self.prepared[name] = catalog
        for table in self.schema.tables.values():
            if table.columns and (table.name in self.readers or not table.public):
                self._declare(table)

    def _declare(self, table: Table) -> None:
        """Check the columns, create the types, and put the rows under the name of the table."""
        statements = []
        for column in table.columns:
            listed = list_codes(column)
            if listed is not None:
                values = ", ".join(nodes.text(value).sql(ENGINE) for value in listed)
                name = quote_name(name_enum(table, column))
                statements.append(f"CREATE TYPE {name} AS ENUM ({values})")
        view = quote_name(source_name(table.name))
        if table.name in self.readers:
            parts = self.parts[table.name]
            _require_columns(table, [name for part in parts for name in self.held[part.view]])
            typed = (select_typed_rows(table, p, self.held[p.view]).sql(ENGINE) for p in parts)
            statements.append(f"CREATE VIEW {view} AS {' UNION ALL '.join(typed)}")
        else:
            fields = (f"{quote_name(c.name)} {nodes.TYPES[c.kind]}" for c in table.columns)
            statements.append(f"CREATE TABLE {view} ({', '.join(fields)})")
        rows = quote_name(name_rows(table))
        if table.name in self.prepared:
            kept = quote_name(self.prepared[table.name], "main", ROWS)
            statements.append(f"CREATE VIEW {rows} AS FROM {kept}")
        elif table.name in self.written:
            statements.append(f"CREATE VIEW {rows} AS {_read_written(table, self.written)}")
        elif table.public:
            owned = select_owned_rows(lay_out(table), source_name(table.name)).sql(ENGINE)
            statements.append(f"CREATE TABLE {rows} AS {owned}")
        elif table.name in self.readers:  # binds every reading to its type, without running it
            statements.append(f"CREATE VIEW {rows} AS {define_rows(table)}")
        else:  # empty, and yet a table: statements bind faster to it than to its definition
            statements.append(f"CREATE TABLE {rows} AS {define_rows(table)} WITH NO DATA")
        self.connection.execute("; ".join(statements))
        for key in table.unique if table.public else ():
            self._require_unique(table, key)

    @property
    def version(self) -> Hashable:
        """A name for the sources as they were opened."""
        return tuple(self.versions.items())

    def _require_unique(self, table: Table, key: tuple[str, ...]) -> None:
        if self.multiplicity(table, key) > 1:
            raise SchemaRefusal(
                "S9",
                f"public table '{table.name}' has several rows with the same {', '.join(key)}.",
                why="a person joined to it would be counted more often than is accounted for.",
                fix=f"remove the repeated rows, or do not declare {', '.join(key)} unique.",
            )

    # --- what questions need -------------------------------------------------------------------

    def multiplicity(self, table: Table, columns: tuple[str, ...]) -> int:
        """How many rows of a public table share the same values of ``columns``, as read."""
        key = (table.name, columns)
        if key not in self._multiplicities:
            self._multiplicities[key] = self._count(table, columns)
        return self._multiplicities[key]

    def _count(self, table: Table, columns: tuple[str, ...]) -> int:
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be counted here")
        fields = lay_out(table).fields
        keys = [quote_column(fields[name].identifier) for name in columns]
        groups = select(
            [add_alias(exp.Count(this=exp.Star(), big_int=True), "n")],
            quote_table(name_rows(table)),
            where=[present(key.copy()) for key in keys],
            group=keys,
        )
        most = select([nodes.call("MAX", quote_column("n"))], nest_query(groups, "g"))
        found = self._cursor().execute(most.sql(ENGINE)).fetchone()
        return int(found[0] or 0) if found else 0

    def values(self, table: Table, column: Column) -> tuple[Value, ...]:
        """What a column of a public table holds, as read, NULL aside."""
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be listed")
        field = lay_out(table).fields[column.name]
        query = select([field.value()], quote_table(name_rows(table)), group=[field.quote()])
        found = self._cursor().execute(query.sql(ENGINE)).fetchall()
        return tuple(public_value(value) for (value,) in found if value is not None)

    def public_rows(self, table: Table) -> dict[str, list[Any]]:
        """The values of each declared column of a public table."""
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be listed")
        names = [column.name for column in table.columns]
        fields = ", ".join(quote_name(name) for name in names)
        query = f"SELECT {fields} FROM {quote_name(source_name(table.name))}"  # noqa: S608
        rows = self._cursor().execute(query).fetchall()
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def list_values(self, table: Table, name: str) -> tuple[Value | None, ...] | None:
        """What a column of a public table holds, as read, if that is little; NULL is last."""
        if not table.public:
            raise ValueError(f"{table.name} is private: nothing of it may be listed")
        key = (table.name, name)
        if key not in self._listed:
            field = lay_out(table).fields[name]
            query = select([field.value()], quote_table(name_rows(table)), group=[field.quote()])
            query.set("limit", exp.Limit(expression=exp.Literal.number(str(LISTED_MOST + 2))))
            rows = self._cursor().execute(query.sql(ENGINE)).fetchall()
            found = sorted(public_value(value) for (value,) in rows if value is not None)
            listed = (*found, *([None] if len(found) < len(rows) else []))
            self._listed[key] = listed if 1 <= len(found) <= LISTED_MOST else None
        return self._listed[key]

    def describe(self, table: Table) -> Table:
        """A public table declared without columns, with those it has: kinds and bounds too."""
        if not table.public:
            raise ValueError(f"{table.name} is private: it is declared, not described")
        columns = tuple(
            self._describe_column(name_given(table.name), name, kind)
            for name, held in self.held[name_given(table.name)].items()
            if (kind := find_kind(held)) is not None
        )
        return replace(table, columns=columns)

    def _describe_column(self, source: str, name: str, kind: Kind) -> Column:
        column = Column(name, kind)
        if not (kind.is_number or kind.is_time):
            return column
        value = read_column(column, quote_column(name))
        ends = [nodes.call(end, value.copy()) for end in ("MIN", "MAX")]
        query = select(ends, quote_table(source))
        found = self._cursor().execute(query.sql(ENGINE)).fetchone()
        if found is None or None in found:
            return column
        return Column(name, kind, public_value(found[0]), public_value(found[1]))

    def run(self, sql: str | duckdb.Statement) -> Columns:
        """The result of one generated statement; Ctrl-C stops it at once."""
        cursor = self._cursor()

        def fetch() -> Columns:
            return cursor.execute(sql).fetchnumpy()

        return watch(cursor, fetch, "answer", self.progress)

    def find_crowd(self, table: Table) -> str:
        """The statement that says in how many rows people stand; preparing has counted them."""
        if table.name in self.prepared:
            return f"FROM {quote_name(self.prepared[table.name], 'main', CROWD)}"
        return count_crowded(table)

    def bind(self, sql: str) -> duckdb.Statement:
        """The statement, parsed; the engine has resolved its names and types and run nothing."""
        cursor = self._cursor()
        (statement,) = cursor.extract_statements(sql)
        cursor.sql(statement)
        return statement

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """This thread's own: what lives in memory is lent to it once.

        The main thread's is the connection itself, which can tell how far it is: a cursor is
        made without that setting, and nothing can be set any more.
        """
        if threading.current_thread() is threading.main_thread():
            return self.connection
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._cursors, "cursor", None)
        if cursor is None:
            cursor = self.connection.cursor()
            for name, source in self.readers.items():
                source.lend(cursor, name_given(name))
            self._cursors.cursor = cursor
        return cursor

    def close(self) -> None:
        """Let go of the sources."""
        cursor = getattr(self._cursors, "cursor", None)
        if cursor is not None:
            cursor.close()
        self.connection.close()


@dataclass(frozen=True, slots=True)
class _Declared:
    """A schema, told from another by how it is written: Python takes 1 and true for equal."""

    written: str
    schema: Schema = field(compare=False)


@lru_cache(maxsize=16)
def _open_empty(declared: _Declared, resources: Resources, _process: int) -> Database:
    """One for each process: what was opened before a fork is the parent's."""
    return Database.open(declared.schema, {}, resources, {})


atexit.register(_open_empty.cache_clear)  # before DuckDB's own end


T = TypeVar("T")
_POLL_S = 0.1
_STOPPING_S = 5.0
_AGAIN_S = 0.01


def watch(
    cursor: duckdb.DuckDBPyConnection,
    work: Callable[[], T],
    name: str,
    progress: Progress | None = None,
) -> T:
    """Do what may take long on ``cursor``, saying now and then how much of it is done.

    It runs beside the main thread, which alone hears Ctrl-C: DuckDB would make it an error like
    any other, and an error closes a charge for good.
    """
    if threading.current_thread() is not threading.main_thread() and progress is None:
        return work()
    found: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()  # a thread whose join is interrupted says that it is done

    def attempt() -> None:
        try:
            found.append(work())
        except BaseException as failure:
            failures.append(failure)
        ended.set()

    worker = threading.Thread(target=attempt, name=f"discreet {name}", daemon=True)
    done = 0.0
    try:
        if progress is not None:
            progress(name, done)
        worker.start()
        while not ended.wait(_POLL_S):
            if progress is not None:
                done = max(done, min(0.99, cursor.query_progress() / 100))
                progress(name, done)
    except BaseException:
        if worker.ident is not None:  # else there is nothing to wait for
            _interrupt(cursor, ended)
        raise
    if failures:
        raise failures[0]
    if progress is not None:
        progress(name, 1.0)
    return found[0]


def _interrupt(cursor: duckdb.DuckDBPyConnection, ended: threading.Event) -> None:
    """Stop what runs on ``cursor``.

    Again and again: what comes before the statement has begun is forgotten by DuckDB.
    """
    until = time.monotonic() + _STOPPING_S
    while time.monotonic() < until:
        cursor.interrupt()
        if ended.wait(_AGAIN_S):
            return


def public_value(value: Any) -> Value:
    """A value of the engine as a public constant."""
    constant_: Value = Fraction(value) if isinstance(value, float) else value
    return constant_


def list_types(connection: duckdb.DuckDBPyConnection, view: str) -> dict[str, str]:
    """The columns of a source and their types, from its description alone."""
    rows = connection.execute(f"DESCRIBE {quote_name(view)}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def _require_columns(table: Table, held: Iterable[str]) -> None:
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
