"""Spark computes: a plan is one statement there, and what comes back are integers.

For tables that one machine does not hold.  All that is public is held by a DuckDB of our own, in
which no private row ever is; the statement is the one that DuckDB would be given, printed for
Spark.  What Spark has prepared is read by unit, so that no row has to move to find its owner's
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.engine.duckdb.declared import draft_rows, source_name
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.prepared import list_stored
from discreet.engine.duckdb.render import name_rows
from discreet.engine.duckdb.sources import Given, Version
from discreet.engine.foreign import ForeignEngine, read_columns
from discreet.engine.inlining import inline_renamings
from discreet.engine.protocol import Progress, describe_failure
from discreet.engine.spark.prepare import count_buckets
from discreet.engine.spark.printer import SparkPrinter, quote_name, quote_text
from discreet.engine.spark.reading import (
    CATALOGUED,
    describe_files,
    list_files,
    locate_table,
    read_view,
    select_typed,
)
from discreet.engine.spark.session import LOCAL, open_session, watch
from discreet.engine.spark.statement import (
    Compiled,
    Steps,
    count_groups,
    name_view,
    print_prepared,
)
from discreet.engine.truth import Truth
from discreet.engine.typed import refuse
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.question.schema import Schema, Table

_READ_AT_ONCE = 2**27  # bytes that one task reads, unless Spark is told otherwise
_ADDED_UP_AT_ONCE = 2**18  # rows of groups, a tenth of a second


@dataclass(frozen=True, slots=True)
class Shown:
    """A prepared folder: the name under which Spark knows it, and how many bytes it has."""

    name: str
    size: int


class SparkEngine(ForeignEngine[Compiled]):
    """Runs plans on tables of Parquet files or Delta, exactly, by Spark.

    ``tables`` and ``schema`` are those of :class:`DuckDBEngine`, and ``catalog://database.table``
    names a table of Spark's catalogue; ``spark`` is an address
    (``local[*]``, ``spark://host:7077``) or a session, which must have neither an event log nor a
    web interface.  ``store`` is a folder for prepared tables, seen by all machines of Spark's;
    ``memory_limit`` and ``threads`` are for public tables.
    """

    name: ClassVar[str] = "spark"

    def __init__(
        self,
        tables: Mapping[str, Given],
        schema: Schema,
        *,
        spark: Any = LOCAL,
        store: str | Path | None = None,
        opened: bool = True,
        progress: Progress | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(progress)
        self._shown: dict[str, Shown] = {}  # prepared folders
        self._viewed: dict[str, str] = {}  # which of them the view of a table shows
        self._cores = 1
        self._given = LOCAL if spark is None else spark
        self._session: Any = None
        located = self._locate(tables, schema)
        self.hold_public(DuckDBEngine(located, schema, store=store, opened=False, **settings))
        try:
            if opened:
                self._open()
                for table in self._private():
                    self._read_source(table)
        except BaseException:
            self.close()
            raise

    def _locate(self, tables: Mapping[str, Given], schema: Schema) -> dict[str, Given]:
        """Where the rows are of tables that only Spark's catalogue knows, and of the others."""
        found = {name: t.source for name, t in schema.tables.items() if t.source is not None}
        return {
            name: locate_table(self._open(), name, given)
            if isinstance(given, str) and given.startswith(CATALOGUED)
            else given
            for name, given in {**found, **tables}.items()
        }

    def _open(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = open_session(self._given)
                self._cores = int(self._session.sparkContext.defaultParallelism)
            return self._session

    # --- questions --------------------------------------------------------------------------------

    def print(self, draft: Draft) -> Compiled:
        """One statement, the rows of public tables written into it."""
        printer = SparkPrinter(draft.list_codes())
        public: list[tuple[str, str]] = []
        private: dict[str, Steps] = {}
        for table in draft.tables:
            if table.by_row and not table.public:
                refuse("spark", "questions of tables in which every row is a unit")
            source = self._introduce(printer, table)
            steps = printer.print_steps(draft_rows(table))
            if table.public:
                public += [(source, self._write_public(printer, table)), *steps]
            else:
                private[table.name] = tuple(steps)
        query = inline_renamings(draft.query.copy())
        text = printer.statement(query)
        types = {name: column.type for name, column in printer.result.items()}
        tables = tuple(table for table in draft.tables if not table.public)
        prepared = print_prepared(printer, query, tuple(public), tables, text)
        given = (draft.plan, text, tuple(public), private, tables, types, draft.columns, prepared)
        found = Compiled(*given, count_groups(draft))
        self._analyse(printer, found)
        return found

    def _analyse(self, printer: SparkPrinter, compiled: Compiled) -> None:
        """Have Spark read the statement on tables without rows; what it does not take is not run.

        Whoever has not opened Spark (who serves, beside processes that compute) does not do so
        here: the printer's closed list is then all that is checked before the charge.
        """
        if self._session is None:
            return
        steps = [
            step
            for table in compiled.tables
            for step in (
                (source_name(table.name), printer.write_rows(table, ())),
                *compiled.rows[table.name],
            )
        ]
        with suppress(Exception):  # of which nothing leaves
            self._session.sql(compiled.complete(steps))
            self._session.sql(compiled.prepared.without_rows())
            return
        raise describe_failure()

    def run(self, compiled: Compiled) -> Truth:
        """The exact integers of what was compiled, sealed."""
        versions = self._find_versions()
        truth = self._attempt(compiled, versions)
        if truth is None or versions != self._find_versions():
            raise describe_failure()
        return truth

    def _attempt(self, compiled: Compiled, versions: Mapping[str, Version]) -> Truth | None:
        """The result, or None: not even the kind of the failure leaves this function."""
        with suppress(Exception):
            rows = self._ask(compiled, versions)
            found = watch(self._open(), rows.collect, "answer", self._progress)
            names = found[0].__fields__ if found else list(compiled.types)
            columns = dict(read_columns(names, found, compiled.types))
            for name, value in compiled.prepared.same.items():
                columns[name] = np.full(len(found), value, dtype=np.int64)
            return Truth(compiled.columns.read(columns, partial(self.run_whole, compiled)))
        return None

    def explain_plan(self, compiled: Compiled) -> str:
        """What Spark would do to run it, in its own words: how often rows are moved."""
        rows = self._ask(compiled, self._find_versions())
        return str(rows._jdf.queryExecution().executedPlan().toString())

    def _ask(self, compiled: Compiled, versions: Mapping[str, Version]) -> Any:
        """The statement, analysed, on the rows as they are now."""
        session, tables = self._open(), compiled.tables
        folders = [self._public.find_folder(table, versions[table.name]) for table in tables]
        held = [folder for folder in folders if folder is not None]
        if len(held) < len(tables):
            steps = map(partial(self._read_rows, compiled), tables, folders)
            return session.sql(compiled.complete(chain.from_iterable(steps)))
        with self._lock:  # until Spark has read it, views show what they show
            size = sum(map(self._view, tables, held))
            alone = bool(held) and _may_add_up_alone(compiled, self._cores, size)
            return session.sql(compiled.prepared.complete(in_one_task=alone))

    def _read_rows(
        self, compiled: Compiled, table: Table, folder: Path | None
    ) -> Iterator[tuple[str, str]]:
        """The steps that give a table's rows: those that are prepared, or made of the source."""
        if folder is None:
            yield source_name(table.name), self._read_source(table)
            yield from compiled.rows[table.name]
            return
        named = [
            (f"CAST({one.name} AS BIGINT)" if one.short else one.name, quote_name(one.identifier))
            for one in list_stored(table)
        ]
        used = [one for one in named if one[1] in compiled.text] or named[:1]
        picked = ", ".join(f"{stored} AS {name}" for stored, name in used)
        shown = quote_name(self._show(table, folder).name)
        yield name_rows(table), f"SELECT {picked} FROM {shown}"  # noqa: S608

    def _read_source(self, table: Table) -> str:
        """The statement that reads the declared columns of the files as they are now."""
        session = self._open()
        files = list_files(table, self._public.find_source(table.name))
        given = f"given {table.name}"
        described = describe_files(table, files)
        read = select_typed(table, described, given, version=str(session.version))
        read_view(session, files, given)
        return read

    def _view(self, table: Table, folder: Path) -> int:
        """Have the view of a table show a prepared folder; how many bytes that has."""
        shown = self._show(table, folder)
        if self._viewed.get(table.name) != shown.name:
            held = self._open().table(quote_name(shown.name))
            held.createOrReplaceTempView(quote_name(name_view(table)))
            self._viewed[table.name] = shown.name
        return shown.size

    def _show(self, table: Table, folder: Path) -> Shown:
        """Files that are divided by unit, shown to Spark as what they are."""
        with self._lock:
            if str(folder) not in self._shown:
                name, session = f"discreet_{random_bytes(8).hex()}", self._open()
                place = f"file://{folder.resolve()}"
                held = session.read.parquet(place).dtypes
                buckets = count_buckets(folder)
                units = [s.name for s in list_stored(table) if s.name.startswith("u")]
                fields = ", ".join(f"{quote_name(n)} {t}" for n, t in held)
                divided = f" CLUSTERED BY ({', '.join(units)}) INTO {buckets} BUCKETS"
                session.sql(
                    f"CREATE TABLE {name} ({fields}) USING parquet"
                    f"{divided if buckets else ''} LOCATION {quote_text(place)}"
                )
                size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
                self._shown[str(folder)] = Shown(name, size)
            return self._shown[str(folder)]

    def _find_versions(self) -> Mapping[str, Version]:
        return self._public.find_versions()

    # --- the rest ---------------------------------------------------------------------------------

    def prepare(
        self, *, progress: Progress | None = None, tables: Iterable[str] | None = None
    ) -> None:
        """Bound the private tables (or those named) once, by unit; DuckDB reads them too."""
        private = [table.name for table in self._private()]
        session = self._open()
        for name in private if tables is None else tables:
            self._public.write_prepared(name, session, progress)

    def close(self) -> None:
        """Let go of the tables; Spark itself goes on, for it may be somebody's."""
        with self._lock:
            shown, self._shown, self._viewed = self._shown, {}, {}
            for one in shown.values():
                with suppress(Exception):
                    self._session.sql(f"DROP TABLE IF EXISTS {quote_name(one.name)}")
        super().close()


def _may_add_up_alone(compiled: Compiled, cores: int, size: int) -> bool:
    """Whether one task may add up what the tasks that read so many bytes have found.

    Starting a task takes as long as adding up thousands of rows.  The number of groups is
    public; how much there is to read decides how many tasks there are, and the time alone.
    """
    if compiled.groups is None:
        return False
    return compiled.groups * (cores + size // _READ_AT_ONCE) <= _ADDED_UP_AT_ONCE


__all__ = ["SparkEngine"]
