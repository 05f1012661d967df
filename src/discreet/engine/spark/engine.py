"""Spark computes: a plan is one statement there, and what comes back are integers.

For tables that one machine does not hold.  All that is public is held by a DuckDB of our own, in
which no private row ever is; the statement is the one that DuckDB would be given, printed for
Spark.  What Spark has prepared is read by unit, so that no row has to move to find its owner's
others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.engine.duckdb.declared import draft_rows, source_name
from discreet.engine.duckdb.engine import REMEMBERED, DuckDBEngine
from discreet.engine.duckdb.measure import Draft
from discreet.engine.duckdb.prepared import list_stored
from discreet.engine.duckdb.render import name_rows
from discreet.engine.duckdb.result import Columns, ResultColumns
from discreet.engine.duckdb.sources import Given, Version
from discreet.engine.printing import OF_KIND, Type, Typed, refuse
from discreet.engine.protocol import Progress, describe_failure
from discreet.engine.spark.prepare import count_buckets
from discreet.engine.spark.printer import SparkPrinter, quote_name, quote_text
from discreet.engine.spark.reading import describe_files, list_files, read_view, select_typed
from discreet.engine.spark.session import LOCAL, open_session, watch
from discreet.engine.truth import Truth
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.price.plan import Plan
from discreet.question.catalogue import Catalogue
from discreet.question.schema import Schema, Table

if TYPE_CHECKING:
    from discreet.question.levels import Levels
    from discreet.question.relation import Relation

MOST_PUBLIC = 10_000
"""How many rows of a public table are written into a statement."""

Steps = tuple[tuple[str, str], ...]
"""Steps of a statement: the name and the text of each."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One statement for Spark, and how to read its result.

    ``text`` lacks the steps that read the private tables: where their rows are, prepared or not,
    is known when it is run.
    """

    plan: Plan
    text: str
    public: Steps
    rows: Mapping[str, Steps]  # of each private table that is not prepared: what makes its rows
    tables: tuple[Table, ...]  # private ones, whose rows it reads
    types: Mapping[str, Type]  # of the columns of the result
    columns: ResultColumns

    def explain(self) -> str:
        """The statement as it is run on tables that are not prepared, but for their sources."""
        return self.complete([step for name in self.rows for step in self.rows[name]])

    def complete(self, steps: Iterable[tuple[str, str]]) -> str:
        """The statement after the steps that give the rows of its private tables."""
        before = ",\n".join(f"{quote_name(n)} AS ({t})" for n, t in (*self.public, *steps))
        main = self.text.removeprefix("WITH ")
        return f"WITH {before},\n{main}" if main != self.text else f"WITH {before}\n{main}"


class SparkEngine:
    """Runs plans on tables of Parquet files or Delta, exactly, by Spark.

    ``tables`` and ``schema`` are those of :class:`DuckDBEngine`; ``spark`` is an address
    (``local[*]``, ``spark://host:7077``) or a session, which must have neither an event log nor a
    web interface.  ``store`` is a folder for prepared tables, seen by all machines of Spark's;
    ``memory_limit`` and ``threads`` are for public tables.
    """

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
        self._progress = progress
        self._lock = threading.RLock()
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._shown: dict[str, str] = {}  # the names under which prepared folders are shown
        self._given = LOCAL if spark is None else spark
        self._session: Any = None
        self._public = DuckDBEngine(tables, schema, store=store, opened=False, **settings)
        self.schema = self._public.schema
        try:
            if opened:
                self._open()
                for table in self._private():
                    self._read_source(table)
        except BaseException:
            self.close()
            raise

    def _open(self) -> Any:
        with self._lock:
            if self._session is None:
                self._session = open_session(self._given)
            return self._session

    def _private(self) -> list[Table]:
        return [table for table in self.schema.tables.values() if not table.public]

    # --- questions --------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What is public of the tables now; Spark is not asked."""
        return self._public.catalogue

    def compile(self, plan: Plan) -> Compiled:
        """The plan's one statement, or a refusal of what Spark has no words for."""
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
        printer = SparkPrinter(draft.list_codes())
        public: list[tuple[str, str]] = []
        private: dict[str, Steps] = {}
        for table in draft.tables:
            if table.by_row and not table.public:
                refuse("spark", "questions of tables in which every row is a unit")
            source = source_name(table.name)
            printer.steps[source] = {c.name: Typed("", OF_KIND[c.kind]) for c in table.columns}
            steps = printer.print_steps(draft_rows(table))
            if table.public:
                public += [(source, self._write_public(printer, table)), *steps]
            else:
                private[table.name] = tuple(steps)
        text = printer.statement(draft.query)
        types = {name: column.type for name, column in printer.result.items()}
        tables = tuple(table for table in draft.tables if not table.public)
        return Compiled(draft.plan, text, tuple(public), private, tables, types, draft.columns)

    def _write_public(self, printer: SparkPrinter, table: Table) -> str:
        """The rows of a public table as they are now."""
        columns = self.public_rows(table.name)
        rows = list(zip(*(columns[c.name] for c in table.columns), strict=True))
        if len(rows) > MOST_PUBLIC:
            refuse("spark", f"joins with public tables of more than {MOST_PUBLIC} rows")
        types = [printer.spell(OF_KIND[column.kind]) for column in table.columns]
        picked = ", ".join(
            f"CAST({quote_name(f'c{i}')} AS {type_}) AS {quote_name(column.name)}"
            for i, (column, type_) in enumerate(zip(table.columns, types, strict=True))
        )
        names = ", ".join(quote_name(f"c{i}") for i in range(len(table.columns)))
        there = rows or [(None,) * len(table.columns)]
        values = ", ".join(f"({', '.join(map(_write_value, row))})" for row in there)
        where = "" if rows else " WHERE FALSE"
        return f"SELECT {picked} FROM VALUES {values} AS public_rows({names}){where}"  # noqa: S608

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
            session = self._open()
            steps = [
                step
                for table in compiled.tables
                for step in self._read_rows(table, versions[table.name], compiled.rows[table.name])
            ]
            rows = session.sql(compiled.complete(steps))
            found = watch(session, rows.collect, "answer", self._progress)
            return Truth(compiled.columns.read(_read_columns(rows.columns, found, compiled.types)))
        return None

    def explain_plan(self, compiled: Compiled) -> str:
        """What Spark would do to run it, in its own words: how often rows are moved."""
        versions = self._find_versions()
        steps = [
            step
            for table in compiled.tables
            for step in self._read_rows(table, versions[table.name], compiled.rows[table.name])
        ]
        rows = self._open().sql(compiled.complete(steps))
        return str(rows._jdf.queryExecution().executedPlan().toString())

    def _read_rows(
        self, table: Table, version: Version, unprepared: Steps
    ) -> Iterator[tuple[str, str]]:
        """The steps that give a table's rows: those that are prepared, or made of the source."""
        folder = self._public.find_folder(table, version)
        if folder is None:
            yield source_name(table.name), self._read_source(table)
            yield from unprepared
            return
        picked = ", ".join(f"{s.name} AS {quote_name(s.identifier)}" for s in list_stored(table))
        yield name_rows(table), f"SELECT {picked} FROM {quote_name(self._show(table, folder))}"  # noqa: S608

    def _read_source(self, table: Table) -> str:
        """The statement that reads the declared columns of the files as they are now."""
        session = self._open()
        files = list_files(table, self._public.find_source(table.name))
        given = f"given {table.name}"
        described = describe_files(table, files)
        read = select_typed(table, described, given, version=str(session.version))
        read_view(session, files, given)
        return read

    def _show(self, table: Table, folder: Path) -> str:
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
                self._shown[str(folder)] = name
            return self._shown[str(folder)]

    def _find_versions(self) -> Mapping[str, Version]:
        return self._public.find_versions()

    # --- what is computed elsewhere ---------------------------------------------------------------

    def count_crowd(self, name: str) -> Truth:
        """Refused: rows of two people are bounded by steps that are not printed."""
        refuse("spark", f"questions of rows with two owners, as those of '{name}'")

    def compile_codes(
        self,
        relation: Relation,  # noqa: ARG002
        levels: Sequence[Levels],  # noqa: ARG002
        *,
        owned: bool = False,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: a release takes every row to one place."""
        refuse("spark", "releases, which take every row")

    def run_codes(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        refuse("spark", "releases, which take every row")

    def compile_rows(self, table: Table) -> NoReturn:  # noqa: ARG002
        """Refused: rows stay where they are."""
        refuse("spark", "computations that take every row")

    def run_rows(self, compiled: Any) -> NoReturn:  # noqa: ARG002
        """Refused."""
        refuse("spark", "computations that take every row")

    # --- versions ---------------------------------------------------------------------------------

    def data_version(self) -> str:
        """A name for what the tables hold now: the one that DuckDB has for them."""
        return self._public.data_version()

    def former_version(self) -> str | None:
        """What ledgers called the same rows before."""
        return self._public.former_version()

    def content_hash(self, table: str) -> str:
        """A SHA-256 of all that a source holds."""
        return self._public.content_hash(table)

    def public_rows(self, table: str) -> Mapping[str, Sequence[Any]]:
        """What a public table holds now."""
        return self._public.public_rows(table)

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
            shown, self._shown = self._shown, {}
            for name in shown.values():
                with suppress(Exception):
                    self._session.sql(f"DROP TABLE IF EXISTS {quote_name(name)}")
        self._public.close()

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _write_value(value: Any) -> str:
    if value is None:
        return "NULL"
    return quote_text(repr(value) if isinstance(value, float) else str(value))


_HELD = {
    Type.WHOLE: np.int64,
    Type.SHORT: np.int64,
    Type.DOUBLE: np.float64,
    Type.BOOLEAN: np.bool_,
}


def _read_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]], types: Mapping[str, Type]
) -> Columns:
    """The rows of a result, column by column, as DuckDB gives them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {n: _read_column(values, types[n]) for n, values in zip(names, columns, strict=True)}


def _read_column(values: Sequence[Any], type_: Type) -> Any:
    if type_ not in _HELD:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    missing = [value is None for value in values]
    held: Any = np.array([0 if value is None else value for value in values], dtype=_HELD[type_])
    return np.ma.array(held, mask=missing) if any(missing) else held


__all__ = ["Compiled", "SparkEngine"]
