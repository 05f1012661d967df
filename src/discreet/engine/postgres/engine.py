"""PostgreSQL computes: a plan is one statement there, and what comes back are integers.

For data that may not leave their database.  All that is public is held by a DuckDB of our own, in
which no private row ever is; the statement is the one that DuckDB would be given, printed for
PostgreSQL, with the rows of the public tables written into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import duckdb

from discreet.engine.duckdb.declared import source_name
from discreet.engine.duckdb.engine import DuckDBEngine, open_folder
from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.postgres import PostgresTable, is_postgres
from discreet.engine.duckdb.result import ResultColumns
from discreet.engine.duckdb.sources import Given, Part, Version
from discreet.engine.foreign import ForeignEngine, read_columns
from discreet.engine.postgres.printer import PostgresPrinter
from discreet.engine.postgres.reading import refuse_source, write_source
from discreet.engine.postgres.server import Server, import_driver
from discreet.engine.protocol import Progress, describe_failure
from discreet.engine.truth import Truth
from discreet.engine.typed import Type
from discreet.exact.records import dataclass
from discreet.price.plan import Plan
from discreet.question.schema import Schema, Table

TIMEOUT_S = 600


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


class PostgresEngine(ForeignEngine[Compiled]):
    """Runs plans on tables of one PostgreSQL database, exactly, where they are.

    ``tables`` and ``schema`` are those of :class:`DuckDBEngine`; every private table must be an
    address of one and the same database, ``postgresql://role@host/database#schema.table``, of a
    role that can only read.  A statement is stopped after ``timeout_s`` seconds.  ``store`` holds
    the key of versions, as for copies; ``memory_limit`` and ``threads`` are for public tables.
    """

    name: ClassVar[str] = "postgres"

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
        super().__init__(progress)
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
            promised = schema.tables[name].version
            sources[name] = ServedTable(place, url, columns, folder, promised, name, self._server)
        self.hold_public(
            DuckDBEngine({**tables, **sources}, schema, store=folder, opened=False, **settings)
        )
        if opened:
            self._write_sources(self._private())
            if any(table.version is not None for table in self._private()):
                self._server.check_promises()

    # --- questions --------------------------------------------------------------------------------

    def print(self, draft: Draft) -> Compiled:
        """One statement, the rows of public tables written into it."""
        printer = PostgresPrinter(draft.list_codes())
        before = []
        for table in draft.tables:
            name = self._introduce(printer, table)
            if table.public:
                before.append((name, self._write_public(printer, table)))
        text = printer.statement(draft.complete(), before)
        types = {name: column.type for name, column in printer.result.items()}
        private = tuple(table for table in draft.tables if not table.public)
        return Compiled(draft.plan, text, private, types, draft.columns)

    def run(self, compiled: Compiled) -> Truth:
        """The exact integers of what was compiled, sealed."""
        if self._progress is not None:
            self._progress("answer", 0.0)
        truth = None
        with suppress(Exception):  # of which nothing leaves
            sources = self._write_sources(compiled.tables)
            steps = ",\n".join(f"{PostgresPrinter({}).identify(n)} AS ({t})" for n, t in sources)
            found = self._server.run(f"WITH {steps},\n{compiled.text.removeprefix('WITH ')}")
            columns = read_columns(*found, compiled.types)
            truth = Truth(compiled.columns.read(columns, partial(self.run_whole, compiled)))
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

    # --- versions ---------------------------------------------------------------------------------

    def content_hash(self, table: str) -> str:
        """The version of what a table holds, under the key of the store."""
        if self.schema.tables[table].public:
            return self._public.content_hash(table)
        return self._server.find_token(table)

    # --- the rest ---------------------------------------------------------------------------------

    def prepare(
        self, *, progress: Progress | None = None, tables: Iterable[str] | None = None
    ) -> None:
        """Look at the tables anew; a role that can only read prepares nothing."""
        self._server.forget()
        private = self._private()
        self._write_sources(private)
        self._server.check_promises()
        for table in private:
            if progress is not None and (tables is None or table.name in tables):
                progress(table.name, 1.0)


def _read_address(name: str, given: object) -> tuple[str, str]:
    """Where a private table is: its database, and its name there."""
    if not isinstance(given, str) or not is_postgres(given):
        raise refuse_source(name, "its source is no address: postgresql://role@host/db#table")
    url, _, place = given.partition("#")
    if not place:
        raise refuse_source(name, "its address names no table: postgresql://host/db#table")
    return url, place


__all__ = ["Compiled", "PostgresEngine"]
