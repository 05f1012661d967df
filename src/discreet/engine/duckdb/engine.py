"""DuckDB behind bars: it reads the sources it was opened with, and nothing else.

An exception of the engine says nothing to anybody: DuckDB's messages quote
cells.  A question runs as one generated statement and comes back as a sealed
:class:`~discreet.engine.truth.Truth`.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import duckdb

from discreet.engine.duckdb import prepared
from discreet.engine.duckdb.measure import Statement, compiled
from discreet.engine.duckdb.prepared import Progress
from discreet.engine.duckdb.result import opened
from discreet.engine.duckdb.session import Limits, Session, constant
from discreet.engine.duckdb.sources import Given, Reader, Version, quoted, reader
from discreet.engine.truth import Truth
from discreet.errors import DataRefusal, InvalidParameter, Refusal
from discreet.price.plan import Plan
from discreet.question.schema import Schema, Table

MEMORY_LIMIT = "4GB"
T = TypeVar("T")


class DuckDBEngine:
    """Runs plans on tables, exactly.

    ``tables`` gives the source of each table of ``schema``: a path to a Parquet,
    CSV or DuckDB file, a folder of Parquet files, or a table in memory (Arrow,
    pandas, Polars); a table that is not mentioned is read from the source that
    the schema names.  ``store`` is a folder in which prepared tables are kept
    between processes; without it they last as long as the engine.  With
    ``opened=False`` private sources are left alone until a plan is run: pricing
    and refusing never need them.
    """

    def __init__(
        self,
        tables: Mapping[str, Given],
        schema: Schema,
        *,
        memory_limit: str = MEMORY_LIMIT,
        threads: int | None = None,
        store: str | Path | None = None,
        opened: bool = True,
    ) -> None:
        self._lock = threading.RLock()
        self._store = _folder(self, store)
        self._limits = Limits(memory_limit, threads, str(self._store / "spill"))
        self._sources = _readers(tables, schema)
        self._careful = False
        self.schema = self._resolved(schema)
        self._prepared: set[str] = set()
        self._session: Session | None = None
        self._public: Session | None = None
        self._planning()
        if opened:
            self._current()

    def _resolved(self, schema: Schema) -> Schema:
        """The schema with what its public tables hold; no private source is opened for it."""
        unknown = any(not t.columns for t in schema.tables.values() if t.public)
        if not unknown and all(
            c.values_from is None for t in schema.tables.values() for c in t.columns
        ):
            return schema
        readers = {n: r for n, r in self._sources.items() if schema.tables[n].public}

        def complete() -> Schema:
            known = {name: schema.tables[name] for name in readers}
            if unknown:
                with closing(Session.open(Schema(known), readers, self._limits, {})) as session:
                    known = {
                        name: table if table.columns else session.described(table)
                        for name, table in known.items()
                    }
            with closing(Session.open(Schema(known), readers, self._limits, {})) as session:
                return schema.resolved(
                    columns=lambda table: known[table.name].columns,
                    values=lambda table, column: session.values(known[table.name], column),
                )

        return _opening(", ".join(readers), complete)

    # --- questions ---------------------------------------------------------------------------

    def run(self, plan: Plan) -> Truth:
        """The exact integers of ``plan``, sealed."""
        session = self._current()
        truth = self._attempt(self._statement(plan, session), session)
        if truth is None:
            session = self._carefully()
            truth = self._attempt(self._statement(plan, session), session)
        if truth is None or self._versions() != session.versions:
            self._forget()
            raise failed()
        return truth

    def check(self, plan: Plan) -> None:
        """Refuse a plan that has no statement; reads no private data."""
        self._statement(plan, self._planning())

    def sql(self, plan: Plan) -> str:
        """The statement that :meth:`run` would send to the engine; reads no private data."""
        return self._statement(plan, self._session or self._planning()).sql(pretty=True)

    def multiplicity(self, table: Table, columns: tuple[str, ...]) -> int:
        """How many rows of a public table share the same values of ``columns``, as read."""
        return self._planning().multiplicity(self._own(table), columns)

    def _statement(self, plan: Plan, session: Session) -> Statement:
        return compiled(
            plan, lambda table: session.catalogue(self._own(table)), session.multiplicity
        )

    def _own(self, table: Table) -> Table:
        """The table of this engine's schema; a plan made for another schema is refused."""
        if self.schema.tables.get(table.name) != table:
            raise InvalidParameter(
                "P4",
                f"table '{table.name}' of the plan is not the one this engine was opened with.",
                why="bounds and units would be enforced by one declaration and priced by another.",
                fix="parse the question with the engine's own schema.",
            )
        return table

    def _attempt(self, statement: Statement, session: Session) -> Truth | None:
        """The result, or None: not even the kind of the failure leaves this function."""
        with suppress(Exception):
            found = session.run(statement.sql())
            return Truth(opened(found, statement.plan, statement.groups, statement.readings))
        return None

    # --- versions ----------------------------------------------------------------------------

    def version(self) -> dict[str, Version]:
        """Which data each source holds now, without reading it."""
        return self._versions()

    def public_version(self) -> tuple[tuple[str, Version], ...]:
        """Which data the public tables hold now: all that pricing depends on beside the schema."""
        return tuple(self._versions(public=True).items())

    def content_hash(self, table: str) -> str:
        """A SHA-256 of all that a source holds; slow, for when a version must be certain."""
        return self._sources[table].content_hash()

    def _versions(self, *, public: bool = False) -> dict[str, Version]:
        return {
            name: _opening(name, source.version)
            for name, source in self._sources.items()
            if self.schema.tables[name].public or not public
        }

    def _planning(self) -> Session:
        """A session on the public tables alone: all that pricing and refusing may look at."""
        with self._lock:
            versions = self._versions(public=True)
            if self._public is None or self._public.versions != versions:
                readers = {name: self._sources[name] for name in versions}
                self._public = _opening(
                    ", ".join(readers),
                    lambda: Session.open(self.schema, readers, self._limits, {}),
                )
            return self._public

    def _current(self) -> Session:
        """A session on the sources as they are now; prepared again if they have changed."""
        with self._lock:
            versions = self._versions()
            if self._session is not None and self._session.versions == versions:
                return self._session
            if self._session is not None:  # new data: perhaps no longer damaged
                self._careful = False
            self._forget()
            self._prepared |= self._kept(versions)
            for name in sorted(self._prepared):
                try:
                    self._prepare(self.schema.tables[name], versions[name], None)
                except DataRefusal:  # then this version is read unprepared
                    self._prepared.discard(name)
            self._session = _opening(", ".join(self._sources), self._open)
            return self._session

    def _kept(self, versions: Mapping[str, Version]) -> set[str]:
        """The tables that another process has prepared in the same store."""
        return {
            name
            for name, table in self.schema.tables.items()
            if (self._store / prepared.file_name(table, versions[name])).exists()
        }

    def _open(self) -> Session:
        kept = {
            name: str(self._store / prepared.file_name(self.schema.tables[name], version))
            for name, version in self._versions().items()
            if name in self._prepared
        }
        if not self._careful:
            with suppress(duckdb.Error):  # even a file's summary can be damaged
                return self._opened(kept)
            self._careful = True
        return self._opened(kept)

    def _opened(self, kept: Mapping[str, str]) -> Session:
        readers = {
            name: (source.careful() if self._careful else None) or source
            for name, source in self._sources.items()
        }
        return Session.open(self.schema, readers, self._limits, kept)

    def _forget(self) -> None:
        with self._lock:
            self._session = None  # closed when the last question that uses it is done

    def _carefully(self) -> Session:
        """A new session that reads every source in its most careful way."""
        with self._lock:
            self._forget()
            self._careful = True
            return self._current()

    # --- preparing ---------------------------------------------------------------------------

    def prepare(
        self, *, progress: Progress | None = None, tables: Iterable[str] | None = None
    ) -> None:
        """Bound the private tables (or those named) once, so that questions run faster.

        ``progress`` is called with a table's name and the part that is done.  A
        source that changes later is noticed, and prepared again, by the next
        question.
        """
        private = [t.name for t in self.schema.tables.values() if not t.public]
        with self._lock:
            versions = self._versions()
            for name in private if tables is None else tables:
                self._prepare(self.schema.tables[name], versions[name], progress)
                self._prepared.add(name)
            self._forget()
            self._current()

    def _prepare(self, table: Table, version: Version, progress: Progress | None) -> None:
        final = self._store / prepared.file_name(table, version)
        if not final.exists():
            partial = final.with_suffix(".partial")
            plain = self._sources[table.name]
            for source in (plain, plain.careful()):
                partial.unlink(missing_ok=True)
                if source and self._written(table, source, partial, progress):
                    break
            else:
                partial.unlink(missing_ok=True)
                raise failed()
            partial.replace(final)
        elif progress is not None:
            progress(table.name, 1.0)
        prepared.discard_others(self._store, table, final.name)

    def _written(self, table: Table, source: Reader, path: Path, progress: Progress | None) -> bool:
        """Whether the table could be prepared in the file ``path``."""
        with suppress(Exception):
            session = Session.open(
                Schema({table.name: table}), {table.name: source}, self._limits, {}, locked=False
            )
            try:
                session.connection.execute(f"ATTACH {constant(str(path))} AS {quoted('target')}")
                statement = session.creation(table, "target")
                prepared.run_with_progress(session.connection, statement, table.name, progress)
                session.connection.execute(f"DETACH {quoted('target')}")
            finally:
                session.close()
            return True
        return False

    # --- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the sources and of what was prepared without a store."""
        with self._lock:
            for session in (self._session, self._public):
                if session is not None:
                    session.close()
            self._public = None
            self._forget()

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def failed() -> DataRefusal:
    """The one thing that is said when a question could not be computed."""
    return DataRefusal(
        "D1",
        "the engine could not answer this question.",
        why="what went wrong may depend on one person's row, so nothing more is said.",
        fix="ask a smaller question, or have the curator check the source and the memory limit.",
    )


def _folder(engine: DuckDBEngine, store: str | Path | None) -> Path:
    """The store, readable by its owner alone; a temporary one goes with the engine."""
    if store is not None:
        folder = Path(store)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    folder = Path(tempfile.mkdtemp(prefix="discreet-"))
    weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
    return folder


def _readers(tables: Mapping[str, Given], schema: Schema) -> dict[str, Reader]:
    unknown = [name for name in tables if name not in schema.tables]
    if unknown:
        raise InvalidParameter(
            "P4",
            f"a source is given for '{unknown[0]}', which the schema does not declare.",
            why="what is not declared has no unit and no bounds, so nobody in it is protected.",
            fix=f"declare it, or give sources for {', '.join(schema.tables)}.",
        )
    found: dict[str, Reader] = {}
    for name, table in schema.tables.items():
        given = tables.get(name, table.source)
        if given is None:
            raise InvalidParameter(
                "P4",
                f"no source is given for table '{name}'.",
                why="a declared table that cannot be read answers nothing.",
                fix=f"pass {{'{name}': 'path.parquet'}}, or name its source in the schema.",
            )
        columns = [column.name for column in table.columns]
        # The types of a public table may be guessed from its rows: they are nobody's.
        found[name] = reader(name, given, columns=columns or None, sniff=not columns)
    return found


def _opening(name: str, step: Callable[[], T]) -> T:
    """``step``, or a refusal that says only which table could not be opened."""
    refused: Refusal = DataRefusal(
        "D2",
        f"the source of table '{name}' cannot be opened.",
        why="without it no question about the people in it can be answered.",
        fix="check that the file exists, may be read, and has the columns that are declared.",
    )
    try:
        return step()
    except Refusal as refusal:
        refused = refusal
    except Exception:  # its text may quote the data  # noqa: S110
        pass
    raise refused  # outside the handler, so that nothing is chained to it
