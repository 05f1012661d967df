"""DuckDB behind bars: it reads the sources it was opened with, and nothing else.

An exception of the engine says nothing to anybody: DuckDB's messages quote
cells.  A question runs as one generated statement and comes back as a sealed
:class:`~discreet.engine.truth.Truth`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import duckdb

from discreet.engine.duckdb import prepared
from discreet.engine.duckdb.database import Database, Resources, constant, watch
from discreet.engine.duckdb.measure import Compiled, Draft, compile_plan, draft_plan
from discreet.engine.duckdb.scratch import make_folder
from discreet.engine.duckdb.sources import (
    DataSource,
    Given,
    InMemory,
    Version,
    open_source,
    quote_name,
)
from discreet.engine.protocol import Progress, describe_failure
from discreet.engine.truth import Truth
from discreet.errors import DataRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.exact.records import dataclass
from discreet.price.plan import Lumpings, Plan
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Value
from discreet.question.schema import Schema, Table

if TYPE_CHECKING:
    from discreet.engine.duckdb.encode import CompiledCodes
    from discreet.engine.duckdb.examine import Fit, Secret
    from discreet.engine.duckdb.rows import CompiledRows
    from discreet.question.levels import Levels
    from discreet.question.relation import Relation

MEMORY_LIMIT = "4GB"

REMEMBERED = 256
"""How many plans are kept compiled."""
COMPUTED_S = 1.0
"""How long a sub-query of public tables may take while a question is read."""
MOST_COMPUTED_ROWS = 1_000
"""And how many rows of it are looked at, but for one that says that there are more."""

Said = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""The names and the rows of what was computed."""

CHOICE = "product of reciprocals"
"""The hash that chooses which rows of a unit are kept: other rows are other data."""

T = TypeVar("T")


@cache
def describe_machine() -> tuple[str, ...]:
    """What else decides which integers come out: our code, DuckDB, the C library, the processor."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        code.update(hashlib.sha256(path.read_bytes()).digest())
    processor = platform.processor()
    with suppress(OSError):
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        said = (line for line in about.splitlines() if line.startswith(_PROCESSOR))
        processor = "\n".join(sorted(set(said)))
    versions = (code.hexdigest(), duckdb.__version__, *platform.libc_ver())
    return (*versions, platform.machine(), platform.system(), processor)


_PROCESSOR = ("model name", "flags", "Features", "CPU part")
"""The lines of Linux that say what a processor can do."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What public tables hold, as far as a question needs it."""

    database: Callable[[], Database]
    own: Callable[[Table], Table]

    def __call__(self, table: Table, columns: tuple[str, ...]) -> int:
        return self.database().multiplicity(self.own(table), columns)

    def list_values(self, table: Table, column: str) -> tuple[Value | None, ...] | None:
        return self.database().list_values(self.own(table), column)


class DuckDBEngine:
    """Runs plans on tables, exactly.

    ``tables`` gives the source of each table of ``schema``: a path to a Parquet,
    CSV or DuckDB file, a folder of Parquet files or with a Delta log, an address of
    a table of PostgreSQL, or a table in memory (Arrow, pandas, Polars); a table that
    is not mentioned is read from the source that the schema names.  ``store`` is a
    folder in which prepared tables and copies are kept between processes; without it
    they last as long as the engine.  With ``opened=False`` private sources are left
    alone until a plan is run: pricing and refusing never need them.  ``progress`` is
    called now and then while a question runs, with a name and the part that is done.
    ``spark`` is an address of Spark, or a session of it: then tables are prepared there.
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
        progress: Progress | None = None,
        spark: Any = None,
    ) -> None:
        self._lock = threading.RLock()
        self._progress = progress
        self._spark = spark
        self._store = open_folder(self, store)
        self._resources = Resources(
            memory_limit, threads, str(self._store / "spill"), str(self._store)
        )
        self._sources = _readers(tables, schema, self._store)
        self.schema = self._resolve(schema)
        self._prepared: set[str] = set()
        self._private: Database | None = None
        self._public: Database | None = None
        self._catalogue: Catalogue | None = None
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._checked: OrderedDict[str, duckdb.Statement] = OrderedDict()
        self._said: dict[Hashable, Said | QuestionRefusal] = {}
        self._names: _Names | None = None
        try:
            self._public_database()
            if opened:
                self._current()
        except BaseException:
            self.close()  # or the files that could be opened would stay attached
            raise

    def _resolve(self, schema: Schema) -> Schema:
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
                with closing(
                    Database.open(Schema(known), readers, self._resources, {})
                ) as database:
                    known = {
                        name: table if table.columns else database.describe(table)
                        for name, table in known.items()
                    }
            with closing(Database.open(Schema(known), readers, self._resources, {})) as database:
                return schema.resolve(
                    columns=lambda table: known[table.name].columns,
                    values=lambda table, column: database.values(known[table.name], column),
                )

        return _try_opening(", ".join(readers), complete)

    # --- questions ---------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What is public of the tables now; opens no private source."""
        with self._lock:
            public = self._public_database()
            if self._catalogue is None or self._catalogue.version != public.version:
                held = _Held(self._public_database, self._own)
                self._catalogue = Catalogue(self.schema, public.version, held, self._compute_public)
            return self._catalogue

    def compile(self, plan: Plan, lumpings: Lumpings = (), *, bound: bool = False) -> Compiled:
        """The plan's one statement, which the engine has bound; reads no private data.

        If another process has ``bound`` it before, it is not bound here until it is run.
        Python takes 1, 1.0 and true for equal, and SQL does not: a plan that is remembered is told
        from another by how the two are written.
        """
        public = self._public_database()
        key = (plan, lumpings, public.version)
        with self._lock:
            known = self._compiled.get(key)
            if known is not None:
                self._compiled.move_to_end(key)
        if known is not None and repr(known.plan) == repr(plan):
            return known
        held = _Held(lambda: public, self._own)
        compiled = compile_plan(plan, self._own, held, lumpings)
        if not bound:
            self._check(public, compiled.text)
        with self._lock:
            self._compiled.pop(key, None)  # and with it how the equal plan was written
            self._compiled[key] = compiled
            if len(self._compiled) > REMEMBERED:
                self._compiled.popitem(last=False)
        return compiled

    def draft(self, plan: Plan, lumpings: Lumpings = ()) -> Draft:
        """The plan's statement as a tree, for an engine that has a printer of its own."""
        public = self._public_database()
        return draft_plan(plan, self._own, _Held(lambda: public, self._own), lumpings)

    def compile_codes(
        self, relation: Relation, levels: Sequence[Levels], *, owned: bool = False
    ) -> CompiledCodes:
        """The statement that says in which level of each column every row lies; reads no data.

        If it is to be ``owned``, it says whose each row is, too.
        """
        from discreet.engine.duckdb.encode import compile_codes

        public = self._public_database()
        held = _Held(lambda: public, self._own)
        compiled = compile_codes(relation, levels, self._own, held, owned=owned)
        self._check(public, compiled.text)
        return compiled

    def run_codes(self, compiled: CompiledCodes) -> Truth:
        """The codes of every row, sealed."""
        return self._run(compiled)

    def compile_rows(self, table: Table) -> CompiledRows:
        """The statement that gives the rows of a private table as declared; reads no data."""
        from discreet.engine.duckdb.rows import compile_rows

        public = self._public_database()
        compiled = compile_rows(table, self._own, _Held(lambda: public, self._own))
        self._check(public, compiled.text)
        return compiled

    def run_rows(self, compiled: CompiledRows) -> Truth:
        """The rows, sealed: for one computation that was paid for."""
        return self._run(compiled)

    def count_crowd(self, name: str) -> Truth:
        """How many people stand in many rows of a table with two owners, by level, sealed."""
        from discreet.engine.duckdb.shared import read_crowd

        table, database = self.schema.tables[name], self._current()
        truth = None
        with suppress(Exception):  # of which nothing leaves
            truth = Truth(read_crowd(table, database.run(database.find_crowd(table))))
        if truth is None or self._versions() != database.versions:
            self._forget()
            raise describe_failure()
        return truth

    def run(self, compiled: Compiled) -> Truth:
        """The exact integers of what was compiled, sealed."""
        return self._run(compiled)

    def _run(self, compiled: Compiled | CompiledCodes | CompiledRows) -> Truth:
        database = self._current()
        truth = self._attempt(compiled, database)
        if truth is None or self._versions() != database.versions:
            self._forget()
            raise describe_failure()
        return truth

    def _check(self, public: Database, text: str) -> None:
        """Let the engine bind a statement; the object it has bound is the one that is run.

        What it says of one that it does not accept goes no further.
        """
        statement = None
        with suppress(duckdb.Error):
            statement = public.bind(text)
        if statement is None:
            raise describe_failure()
        with self._lock:
            self._checked[text] = statement
            if len(self._checked) > REMEMBERED:
                self._checked.popitem(last=False)

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

    def _attempt(
        self, compiled: Compiled | CompiledCodes | CompiledRows, database: Database
    ) -> Truth | None:
        """The result, or None: not even the kind of the failure leaves this function."""
        with suppress(Exception):
            found = database.run(self._checked.get(compiled.text, compiled.text))
            if not isinstance(compiled, Compiled):
                return Truth(compiled.columns.read(found))
            return Truth(compiled.columns.read(found, partial(self._run_whole, compiled)))
        return None

    def _run_whole(self, compiled: Compiled) -> Truth:
        """The same with every cell of its histograms; for a choice that looks far off."""
        return self._run(self.compile(compiled.plan))

    # --- versions ----------------------------------------------------------------------------

    def data_version(self) -> str:
        """A name for what the sources hold now; one that cannot be read has a name too.

        Whether to charge must not depend on whether the data is there.
        """
        names = self._name_sources()
        return "unreadable" if names is None else names.now

    def former_version(self) -> str | None:
        """What the sources were called when DuckDB's own hash chose the rows of a unit."""
        names = self._name_sources()
        return None if names is None else names.formerly

    def _name_sources(self) -> _Names | None:
        """What the sources are called as they are now; they are named anew when they change."""
        try:
            digests = {name: version.digest for name, version in self._versions().items()}
        except DataRefusal:
            return None
        known = self._names
        if known is None or known.digests != digests:
            known = self._names = _Names.of(digests)
        return known

    def find_basis(self, compiled: Compiled) -> str | None:
        """A name for all that a plan's truth is computed from, where nobody can change that.

        Tables in memory, and prepared ones, which are written once: by the same statement, the
        same engine and the same machine the same integers come of them (docs/proofs/known.md,
        Lemma 14).  None where a table is read from a file that somebody else may write.
        """
        try:
            versions = self._versions()
        except DataRefusal:
            return None
        tokens = {}
        for table in compiled.tables:
            token = self._find_token(self._own(table), versions[table.name])
            if token is None:
                return None
            tokens[table.name] = token
        made_of = repr((sorted(tokens.items()), compiled.text, CHOICE, describe_machine()))
        return hashlib.sha256(made_of.encode()).hexdigest()

    def _find_token(self, table: Table, version: Version) -> str | None:
        """What tells rows that cannot change from all others."""
        if isinstance(self._sources[table.name], InMemory):
            return version.token
        kept = self._find_prepared(table, version)
        return None if kept is None else prepared.read_token(kept)

    def content_hash(self, table: str) -> str:
        """A SHA-256 of all that a source holds; slow, for when a version must be certain."""
        return self._sources[table].content_hash()

    def public_rows(self, table: str) -> Mapping[str, Sequence[Any]]:
        """What a public table holds now: the values of each declared column."""
        with self._lock:
            return self._public_database().public_rows(self.schema.tables[table])

    def _compute_public(
        self, sql: str, tables: tuple[str, ...]
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """What SQL over public tables says, in a connection that holds nothing else.

        It is computed while a question is read, which costs nothing: briefly, and once for all
        who ask; that it cannot be, too.
        """
        key = (sql, tables, self._public_database().version)
        found = self._said.get(key)
        if found is None:  # without the lock: nobody waits for what another has computed
            try:
                found = self._compute_anew(sql, tables)
            except QuestionRefusal as refusal:
                found = refusal.with_traceback(None)
            with self._lock:
                if len(self._said) >= REMEMBERED:
                    self._said.clear()
                self._said[key] = found
        if isinstance(found, QuestionRefusal):
            raise found.with_traceback(None)
        return found

    def _compute_anew(self, sql: str, tables: tuple[str, ...]) -> Said:
        from discreet.engine.duckdb import afterwards
        from discreet.question.statement import public_name

        held = [
            afterwards.Held(
                public_name(name),
                tuple(
                    afterwards.Shape(c.name, afterwards.type_of(c.kind))
                    for c in self.schema.tables[name].columns
                ),
            )
            for name in tables
        ]
        shapes = afterwards.bind(sql, held)
        filled = [h.fill(self.public_rows(n)) for h, n in zip(held, tables, strict=True)]
        rows = afterwards.run(sql, filled, limit_s=COMPUTED_S, most=MOST_COMPUTED_ROWS)
        return tuple(shape.name for shape in shapes), rows

    def _versions(self, *, public: bool = False) -> dict[str, Version]:
        return {
            name: _try_opening(name, partial(_read_version, source))
            for name, source in self._sources.items()
            if self.schema.tables[name].public or not public
        }

    def _public_database(self) -> Database:
        """The public tables, and empty private ones: all that pricing and refusing may look at."""
        with self._lock:
            versions = self._versions(public=True)
            if self._public is None or self._public.versions != versions:
                readers = {name: self._sources[name] for name in versions}
                self._public = _try_opening(
                    ", ".join(readers or self.schema.tables),
                    lambda: (
                        Database.open(self.schema, readers, self._resources, {})
                        if readers
                        else Database.share_empty(self.schema, self._resources)
                    ),
                )
            return self._public

    def _current(self) -> Database:
        """The sources as they are now; prepared again if they have changed."""
        with self._lock:
            versions = self._versions()
            if (
                self._private is not None
                and self._private.versions == versions
                and self._private.kept == self._list_kept(versions)
            ):
                return self._private
            self._forget()
            self._prepared |= self._list_kept(versions).keys()
            for name in sorted(self._prepared):
                try:
                    self._prepare(self.schema.tables[name], versions[name], None)
                except DataRefusal:  # then this version is read unprepared
                    self._prepared.discard(name)
            self._private = _try_opening(", ".join(self._sources), self._open)
            return self._private

    def _list_kept(self, versions: Mapping[str, Version]) -> dict[str, str]:
        """Where tables are kept prepared, whichever process has prepared them."""
        if not any(self._store.glob("prepared-*")):
            return {}  # and so it is with every question where nothing is
        return {
            name: str(found)
            for name, table in self.schema.tables.items()
            if (found := self._find_prepared(table, versions[name])) is not None
        }

    def _find_prepared(self, table: Table, version: Version) -> Path | None:
        """Where a version of a table is kept prepared, whoever prepared it."""
        return prepared.find_prepared(self._store, table, version)

    def _open(self) -> Database:
        kept = self._list_kept(self._versions())
        database = Database.open(self.schema, self._sources, self._resources, kept)
        database.progress = self._progress
        return database

    def _forget(self) -> None:
        with self._lock:
            self._private = None  # closed when the last question that uses it is done

    # --- preparing ---------------------------------------------------------------------------

    def prepare(
        self,
        *,
        progress: Progress | None = None,
        tables: Iterable[str] | None = None,
        spark: Any = None,
    ) -> None:
        """Bound the private tables (or those named) once, so that questions run faster.

        ``progress`` is called with a table's name and the part that is done.  A
        source that changes later is noticed, and prepared again, by the next
        question; what is on a server is copied again here, and only here.  With ``spark``, an
        address or a session, Spark prepares: the same rows, for the same answers.
        """
        spark = self._spark if spark is None else spark
        private = [t.name for t in self.schema.tables.values() if not t.public]
        wanted = private if tables is None else list(tables)
        with self._lock:
            for name in self._sources if tables is None else wanted:
                _try_opening(name, self._sources[name].renew)
            versions = self._versions()
            session = None if spark is None else _open_spark(spark)
            for name in wanted:
                self._prepare(self.schema.tables[name], versions[name], progress, session)
                self._prepared.add(name)
            self._forget()
            self._current()

    def _prepare(
        self, table: Table, version: Version, progress: Progress | None, spark: Any = None
    ) -> None:
        """Keep one version of a table prepared: as it is found, or by Spark, or here."""
        final = self._find_prepared(table, version)
        if final is None:
            kind = prepared.FILE if spark is None else prepared.FOLDER
            final = self._store / prepared.name_new(table, version, kind)
            partial = final.with_suffix(".partial")
            source = self._sources[table.name]
            if spark is None:
                written = self._try_prepare(table, source, partial, progress)
            else:
                written = _try_prepare_by_spark(spark, table, source, partial, progress)
            if not written:
                prepared.discard(partial)
                raise describe_failure()
            final = self._keep_prepared(partial, final, table, version)
        elif progress is not None:
            progress(table.name, 1.0)
        prepared.discard_others(self._store, table, final.name)

    def _keep_prepared(self, partial: Path, final: Path, table: Table, version: Version) -> Path:
        """Give what was prepared its name; where another process was sooner, take what it has."""
        with suppress(FileNotFoundError):
            return partial.replace(final)
        found = self._find_prepared(table, version)
        if found is None:
            raise describe_failure()
        return found

    def _try_prepare(
        self, table: Table, source: DataSource, path: Path, progress: Progress | None
    ) -> bool:
        """Whether the table could be prepared in the file ``path``."""
        with suppress(Exception):
            alone = Schema({table.name: table})
            readers = {table.name: source}
            with closing(
                Database.open(alone, readers, self._resources, {}, locked=False)
            ) as database:
                connection = database.connection
                connection.execute(f"ATTACH {constant(str(path))} AS {quote_name('target')}")
                statements = prepared.list_statements(table, "target")
                for done, statement in enumerate(statements):
                    told = _tell_part(progress, done, len(statements))
                    watch(connection, partial(connection.execute, statement), table.name, told)
                connection.execute(f"DETACH {quote_name('target')}")
            return True
        return False

    # --- for engines whose public tables are held here -------------------------------------------

    def find_source(self, name: str) -> DataSource:
        """Where the rows of a table are."""
        return self._sources[name]

    def find_versions(self) -> Mapping[str, Version]:
        """What every source looks like now."""
        return self._versions()

    def find_folder(self, table: Table, version: Version) -> Path | None:
        """The folder in which Spark has prepared a version of a table, if it has."""
        return prepared.find_prepared(self._store, table, version, (prepared.FOLDER,))

    def write_prepared(self, name: str, spark: Any, progress: Progress | None) -> None:
        """Let Spark prepare a table; nothing of it is opened here."""
        _try_opening(name, self._sources[name].renew)
        table, version = (
            self.schema.tables[name],
            _try_opening(name, partial(self._version_of, name)),
        )
        ours = prepared.find_prepared(self._store, table, version, (prepared.FILE,))
        if ours is not None and self.find_folder(table, version) is None:
            prepared.discard(ours)
        self._prepare(table, version, progress, spark)

    def _version_of(self, name: str) -> Version:
        return self._sources[name].version

    # --- for the curator alone -----------------------------------------------------------------

    def examine(self, name: str) -> Fit:
        """How the rows of a table fit what is declared: exact figures, for whoever holds the data.

        Nothing of them may be shown to an analyst.
        """
        from discreet.engine.duckdb.examine import examine

        table, source = self.schema.tables[name], self._find_source(name)
        return _try_opening(name, lambda: examine(table, source, self._resources))

    def copy_people(
        self, name: str, secret: Secret, known: Sequence[str], people: int
    ) -> list[tuple[int, ...]]:
        """Of some units whether they have a secret, and codes of what else they have.

        For whoever holds the data, as ``examine``.
        """
        from discreet.engine.duckdb.examine import copy_people

        table, source = self.schema.tables[name], self._find_source(name)
        read = partial(copy_people, secret=secret, known=known, people=people)
        return _try_opening(name, lambda: read(table, source, self._resources))

    def _find_source(self, name: str) -> DataSource:
        source = self._sources[name]
        missing = _find_missing(source)
        if missing is None:
            return source
        raise DataRefusal(
            "D2",
            f"the source of table '{name}' {missing}.",
            why="without it no question about the people in it can be answered.",
            fix="correct its path in the schema (it is read from the directory of that file), "
            "or put the file there.",
        )

    # --- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the sources and of what was prepared without a store."""
        with self._lock:
            for database in (self._private, self._public):
                if database is not None and database.readers:  # else it is shared
                    database.close()
            self._public = None
            self._forget()

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_spark(given: Any) -> Any:
    from discreet.engine.spark.session import open_session

    return open_session(given)


def _try_prepare_by_spark(
    session: Any, table: Table, source: DataSource, folder: Path, progress: Progress | None
) -> bool:
    """Whether Spark could prepare the table in a folder; refused if it would read it otherwise."""
    from discreet.engine.spark.prepare import Preparing

    refused: Refusal | None = None
    try:
        folder.mkdir(mode=0o700)
        Preparing.of(session, table, source).write(folder / "rows", progress)
        prepared.settle(folder)
        return True
    except Refusal as refusal:
        refused = refusal
    except Exception:  # its text may quote the data  # noqa: S110
        pass
    prepared.discard(folder)
    if refused is not None:
        raise refused
    return False


def open_folder(engine: object, store: str | Path | None) -> Path:
    """The store, readable by its owner alone; a temporary one goes with the engine."""
    if store is not None:
        folder = Path(store)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
    return make_folder(engine)


def _readers(tables: Mapping[str, Given], schema: Schema, copies: Path) -> dict[str, DataSource]:
    unknown = [name for name in tables if name not in schema.tables]
    if unknown:
        raise InvalidParameter(
            "P4",
            f"a source is given for '{unknown[0]}', which the schema does not declare.",
            why="what is not declared has no unit and no bounds, so nobody in it is protected.",
            fix=f"declare it, or give sources for {', '.join(schema.tables)}.",
        )
    found: dict[str, DataSource] = {}
    for name, table in schema.tables.items():
        given = tables.get(name, table.source)
        if given is None:
            raise InvalidParameter(
                "P4",
                f"no source is given for table '{name}'.",
                why="a declared table that cannot be read answers nothing.",
                fix=f"pass {{'{name}': 'path.parquet'}}, or name its source in the schema.",
            )
        # The types of a public table may be guessed from its rows: they are nobody's.
        found[name] = open_source(
            name, given, columns=table.columns or None, copies=copies, promised=table.version
        )
    return found


def _find_missing(source: DataSource) -> str | None:
    """What is wrong with the files of a source, as seen from outside."""
    try:
        stamps = source.version.stamps
    except OSError:
        stamps = ()
        if not isinstance(source, InMemory):
            return f"is not there: {getattr(source, 'path', getattr(source, 'pattern', ''))}"
    return "is empty" if stamps and not any(stamp.size for stamp in stamps) else None


class _Names(NamedTuple):
    """What sources of these ``digests`` are called, and were called before."""

    digests: dict[str, str]
    now: str
    formerly: str

    @classmethod
    def of(cls, digests: dict[str, str]) -> _Names:
        # With its spaces: ledgers hold this digest, and replay while it is the same.
        formerly = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
        now = hashlib.sha256(f"{CHOICE}: {formerly}".encode()).hexdigest()
        return cls(digests, now, formerly)


def _read_version(source: DataSource) -> Version:
    return source.version


def _tell_part(progress: Progress | None, done: int, steps: int) -> Progress | None:
    """Tells of one step out of several what it is of the whole."""
    if progress is None:
        return None
    return lambda name, part: progress(name, (done + part) / steps)


def _try_opening(name: str, step: Callable[[], T]) -> T:
    """``step``, or a refusal that says only which table could not be opened."""
    refused: Refusal | None = None
    try:
        return step()
    except Refusal as refusal:
        refused = refusal
    except Exception:  # its text may quote the data  # noqa: S110
        pass
    # Outside the handler, so that nothing is chained to it.
    raise refused or DataRefusal(
        "D2",
        f"the source of table '{name}' cannot be opened.",
        why="without it no question about the people in it can be answered.",
        fix="check that the file exists, may be read, and has the columns that are declared.",
    )
