"""PostgreSQL computes: a plan is one statement there, and what comes back are integers.

For data that may not leave their database.  All that is public is held by a DuckDB of our own, in
which no private row ever is; the statement is the one that DuckDB would be given, printed for
PostgreSQL, with the rows of the public tables written into it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import duckdb
import numpy as np

from discreet.engine.duckdb.declared import source_name
from discreet.engine.duckdb.engine import REMEMBERED, DuckDBEngine, open_folder
from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.postgres import PostgresTable, is_postgres
from discreet.engine.duckdb.result import Columns, ResultColumns
from discreet.engine.duckdb.sources import Given, Part, Version
from discreet.engine.postgres.printer import PostgresPrinter
from discreet.engine.postgres.reading import refuse_source, write_source
from discreet.engine.postgres.server import Server, import_driver
from discreet.engine.printing import OF_KIND, Type, Typed, refuse
from discreet.engine.protocol import Progress, describe_failure
from discreet.engine.truth import Truth
from discreet.exact.records import dataclass
from discreet.price.plan import Plan
from discreet.question.catalogue import Catalogue
from discreet.question.schema import Schema, Table

if TYPE_CHECKING:
    from discreet.question.levels import Levels
    from discreet.question.relation import Relation

TIMEOUT_S = 600
MOST_PUBLIC = 10_000
"""How many rows of a public table are written into a statement."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One statement for PostgreSQL, and how to read its result.

    ``text`` lacks the steps that read the private tables: which types these have is known where
    they are, and a plan is compiled without looking.
    """

    plan: Plan
    text: str
    tables: tuple[Table, ...]  # private ones, whose rows it reads
    types: Mapping[str, Type]  # of the columns of the result
    columns: ResultColumns

    def explain(self) -> str:
        """The statement as it is run, but for the steps that read its private tables."""
        return self.text


@dataclass(frozen=True, slots=True)
class ServedTable(PostgresTable):
    """A table that stays where it is: it has a version, and is never copied."""

    declared: str  # its name in the schema
    server: Server

    @property
    def version(self) -> Version:
        """Of the rows as they are now; the one that a copy would have."""
        return Version(token=self.server.find_token(self.declared))

    def paths(self) -> tuple[str, ...]:
        """None: nothing is copied."""
        raise refuse_source(self.table, "it stays where it is")

    def attach(
        self,
        connection: duckdb.DuckDBPyConnection,  # noqa: ARG002
        name: str,  # noqa: ARG002
        *,
        copies: Path,  # noqa: ARG002
    ) -> tuple[Part, ...]:
        """Never: nothing is copied."""
        raise refuse_source(self.table, "it stays where it is")

    def renew(self) -> None:
        """Look at everything anew."""
        self.server.forget()


class PostgresEngine:
    """Runs plans on tables of one PostgreSQL database, exactly, where they are.

    ``tables`` and ``schema`` are those of :class:`DuckDBEngine`; every private table must be an
    address of one and the same database, ``postgresql://role@host/database#schema.table``, of a
    role that can only read.  A statement is stopped after ``timeout_s`` seconds.  ``store`` holds
    the key of versions, as for copies; ``memory_limit`` and ``threads`` are for public tables.
    """

    def __init__(
        self,
        tables: Mapping[str, Given],
        schema: Schema,
        *,
        store: str | Path | None = None,
        opened: bool = True,
        progress: Progress | None = None,
        timeout_s: int = TIMEOUT_S,
        **settings: Any,
    ) -> None:
        import_driver()
        self._progress = progress
        self._lock = threading.RLock()
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        folder = open_folder(self, store)
        served = {
            name: _read_address(name, tables.get(name, table.source))
            for name, table in schema.tables.items()
            if not table.public
        }
        urls = {url for url, _ in served.values()}
        if len(urls) != 1:
            raise refuse_source(next(iter(served), "?"), "private tables are in several databases")
        sources: dict[str, PostgresTable] = {}
        self._server = Server(urls.pop(), sources, timeout_s)
        for name, (url, place) in served.items():
            columns = tuple(schema.tables[name].columns)
            sources[name] = ServedTable(place, url, columns, folder, name, self._server)
        self._public = DuckDBEngine(
            {**tables, **sources}, schema, store=folder, opened=False, **settings
        )
        self.schema = self._public.schema
        if opened:
            self._write_sources(t for t in self.schema.tables.values() if not t.public)

    # --- questions --------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What is public of the tables now; the server is not asked."""
        return self._public.catalogue

    def compile(self, plan: Plan) -> Compiled:
        """The plan's one statement, or a refusal of what PostgreSQL has no words for."""
        key = (plan, repr(plan), self.catalogue.version)
        with self._lock:
            if key in self._compiled:
                self._compiled.move_to_end(key)
                return self._compiled[key]
        compiled = self._print(self._public.draft(plan))
        with self._lock:
            self._compiled[key] = compiled
            if len(self._compiled) > REMEMBERED:
                self._compiled.popitem(last=False)
        return compiled

    def _print(self, draft: Draft) -> Compiled:
        printer = PostgresPrinter(draft.list_codes())
        before = []
        for table in draft.tables:
            name = source_name(table.name)
            printer.steps[name] = {c.name: Typed("", OF_KIND[c.kind]) for c in table.columns}
            if table.public:
                before.append((name, self._write_public(printer, table)))
        text = printer.statement(draft.complete(), before)
        types = {name: column.type for name, column in printer.result.items()}
        private = tuple(table for table in draft.tables if not table.public)
        return Compiled(draft.plan, text, private, types, draft.columns)

    def _write_public(self, printer: PostgresPrinter, table: Table) -> str:
        """The rows of a public table as they are now."""
        columns = self.public_rows(table.name)
        count = len(next(iter(columns.values()), ()))
        if count > MOST_PUBLIC:
            refuse("postgres", f"joins with public tables of more than {MOST_PUBLIC} rows")
        types = [printer.spell(OF_KIND[c.kind]) for c in table.columns]
        collated = [' COLLATE "C"' if t == "text" else "" for t in types]
        names = ", ".join(
            f"CAST({printer.identify(c.name)} AS {t}){order} AS {printer.identify(c.name)}"
            for c, t, order in zip(table.columns, types, collated, strict=True)
        )
        listed = ", ".join(printer.identify(c.name) for c in table.columns)
        rows = [
            ", ".join(_write_value(printer, value) for value in row)
            for row in zip(*(columns[c.name] for c in table.columns), strict=True)
        ]
        empty = ", ".join("NULL" for _ in table.columns)
        values = ", ".join(f"({row})" for row in rows) or f"({empty})"
        there = "" if rows else " WHERE FALSE"
        return f"SELECT {names} FROM (VALUES {values}) AS public_rows ({listed}){there}"  # noqa: S608

    def run(self, compiled: Compiled) -> Truth:
        """The exact integers of what was compiled, sealed."""
        if self._progress is not None:
            self._progress("answer", 0.0)
        truth = None
        with suppress(Exception):  # of which nothing leaves
            sources = self._write_sources(compiled.tables)
            steps = ",\n".join(f"{PostgresPrinter({}).identify(n)} AS ({t})" for n, t in sources)
            found = self._server.run(f"WITH {steps},\n{compiled.text.removeprefix('WITH ')}")
            truth = Truth(compiled.columns.read(_read_columns(found, compiled.types)))
        if truth is None:
            raise describe_failure()
        if self._progress is not None:
            self._progress("answer", 1.0)
        return truth

    def _write_sources(self, tables: Iterable[Table]) -> list[tuple[str, str]]:
        """The steps that read private tables, where they are."""
        located = self._server.locate()
        return [
            (
                source_name(table.name),
                write_source(table, located[table.name].name, located[table.name].held),
            )
            for table in tables
        ]

    # --- what is computed elsewhere ---------------------------------------------------------------

    def count_crowd(self, name: str) -> Truth:
        """Refused: rows of two people are bounded by steps that are not printed yet."""
        _refuse_rows(f"questions of rows with two owners, as those of '{name}'")

    def compile_codes(
        self,
        relation: Relation,  # noqa: ARG002
        levels: Sequence[Levels],  # noqa: ARG002
        *,
        owned: bool = False,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: a release takes every row, and rows stay where they are."""
        _refuse_rows("releases, which take every row")

    def run_codes(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        _refuse_rows("releases, which take every row")

    def compile_rows(self, table: Table) -> NoReturn:  # noqa: ARG002
        """Refused: rows stay where they are."""
        _refuse_rows("computations that take every row")

    def run_rows(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        _refuse_rows("computations that take every row")

    # --- versions ---------------------------------------------------------------------------------

    def data_version(self) -> str:
        """A name for what the tables hold now: the one that copies of them would have."""
        return self._public.data_version()

    def former_version(self) -> str | None:
        """What ledgers called the same rows before."""
        return self._public.former_version()

    def content_hash(self, table: str) -> str:
        """The version of what a table holds, under the key of the store."""
        if self.schema.tables[table].public:
            return self._public.content_hash(table)
        return self._server.find_token(table)

    def public_rows(self, table: str) -> Mapping[str, Sequence[Any]]:
        """What a public table holds now."""
        return self._public.public_rows(table)

    # --- the rest ---------------------------------------------------------------------------------

    def prepare(
        self, *, progress: Progress | None = None, tables: Iterable[str] | None = None
    ) -> None:
        """Look at the tables anew; a role that can only read prepares nothing."""
        self._server.forget()
        private = [t for t in self.schema.tables.values() if not t.public]
        self._write_sources(private)
        for table in private:
            if progress is not None and (tables is None or table.name in tables):
                progress(table.name, 1.0)

    def close(self) -> None:
        """Let go of the public tables."""
        self._public.close()

    def __enter__(self) -> PostgresEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _read_address(name: str, given: object) -> tuple[str, str]:
    """Where a private table is: its database, and its name there."""
    if not isinstance(given, str) or not is_postgres(given):
        raise refuse_source(name, "its source is no address: postgresql://role@host/db#table")
    url, _, place = given.partition("#")
    if not place:
        raise refuse_source(name, "its address names no table: postgresql://host/db#table")
    return url, place


def _write_value(printer: PostgresPrinter, value: Any) -> str:
    if value is None:
        return "NULL"
    return printer.quote(repr(value) if isinstance(value, float) else str(value))


def _read_columns(
    found: tuple[list[str], list[tuple[Any, ...]]], types: Mapping[str, Type]
) -> Columns:
    """The rows of a result, column by column, as DuckDB gives them."""
    names, rows = found
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {
        name: _read_column(values, types[name]) for name, values in zip(names, columns, strict=True)
    }


_HELD = {
    Type.WHOLE: np.int64,
    Type.SHORT: np.int64,
    Type.DOUBLE: np.float64,
    Type.BOOLEAN: np.bool_,
}


def _read_column(values: Sequence[Any], type_: Type) -> Any:
    if type_ not in _HELD:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    missing = [value is None for value in values]
    held: Any = np.array([0 if value is None else value for value in values], dtype=_HELD[type_])
    return np.ma.array(held, mask=missing) if any(missing) else held


def _refuse_rows(what: str) -> NoReturn:
    refuse("postgres", what)


__all__ = ["Compiled", "PostgresEngine"]
