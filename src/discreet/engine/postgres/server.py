"""A PostgreSQL server as seen by a role that can only read: one snapshot at a time.

Every look is one transaction, REPEATABLE READ and READ ONLY, in which names mean what PostgreSQL's
own catalogue says.  Which data a snapshot shows is told by a *mark* of each table: how many rows
it has, a sum over where each lies and which transaction wrote it, and which transactions declared
its columns and the labels of their types.  Whoever inserts, changes or deletes a row changes the
mark, and so does whoever gives columns other names or values without touching a row.
Nothing that a server says of an error leaves this module.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.engine.duckdb.postgres import PostgresTable, quote_name
from discreet.engine.postgres.reading import refuse_source
from discreet.errors import InvalidParameter
from discreet.exact.records import dataclass

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_POLL_S = 0.1
_OLDEST = 140_000  # since 14, EXTRACT is exact
_WAIT_S = 10  # for a lock, or for a connection

_SESSION = {
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "row_security": "off",  # a policy that would hide rows is an error, not fewer rows
    "jit": "off",
    "client_min_messages": "error",
    "client_encoding": "UTF8",  # in another, a text without an equivalent there would raise
    "transform_null_equals": "off",
    "lock_timeout": f"{_WAIT_S}s",
}

_ABOUT = """
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text,
  c.relrowsecurity, has_table_privilege(c.oid, 'SELECT'),
  has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
  OR has_any_column_privilege(c.oid, 'INSERT, UPDATE'),
  EXISTS (
    WITH RECURSIVE below AS (
      SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i WHERE i.inhparent = c.oid
      UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i
      JOIN below AS b ON i.inhparent = b.inhrelid
    )
    SELECT 1 FROM below AS b JOIN pg_catalog.pg_class AS p ON p.oid = b.inhrelid
    WHERE p.relkind NOT IN ('r', 'p')
  )
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
_SERVER = """
SELECT current_setting('server_version_num')::int4, getdatabaseencoding()::text,
  (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
  COALESCE(current_setting('auto_explain.log_min_duration', true), '-1')
"""
_DECLARED = """
WITH RECURSIVE tables AS (
  SELECT pg_catalog.to_regclass(%s)::oid AS oid
  UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN tables AS t ON i.inhparent = t.oid
)
SELECT pg_catalog.md5(pg_catalog.string_agg(said, ' ' ORDER BY said COLLATE "C")) FROM (
  SELECT pg_catalog.concat_ws('/', a.attrelid, a.attnum, a.attname, a.atttypid, a.xmin, d.xmin)
  FROM pg_catalog.pg_attribute AS a JOIN tables AS t ON a.attrelid = t.oid
  LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL SELECT pg_catalog.concat_ws('/', e.enumtypid, e.oid, e.enumlabel, e.xmin)
  FROM pg_catalog.pg_enum AS e WHERE e.enumtypid IN (
    SELECT a.atttypid FROM pg_catalog.pg_attribute AS a JOIN tables AS t ON a.attrelid = t.oid
  )
) AS declared (said)
"""
_SNAPSHOT = "SELECT pg_current_snapshot()::text || ' ' || pg_postmaster_start_time()::text"


@dataclass(frozen=True, slots=True)
class Located:
    """A table where it is: its name in full, and the names and types of its declared columns."""

    name: str
    held: Mapping[str, tuple[str, str]]


class Server:
    """One database, and what is known of its tables."""

    def __init__(self, url: str, tables: Mapping[str, PostgresTable], timeout_s: int) -> None:
        self._url = url
        self._tables = tables
        self._timeout_s = timeout_s
        self._lock = threading.RLock()
        self._located: dict[str, Located] | None = None
        self._snapshot = ""
        self._marks: dict[str, str] = {}
        self._tokens: dict[tuple[str, str], str] = {}

    # --- looking --------------------------------------------------------------------------------

    @contextmanager
    def look(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction that sees one snapshot and can change nothing."""
        psycopg = import_driver()
        connection = psycopg.connect(
            self._url, connect_timeout=_WAIT_S, application_name="discreet", autocommit=True
        )
        try:
            settings = {**_SESSION, "statement_timeout": f"{self._timeout_s}s"}
            set_all = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
            connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {set_all}")
            yield connection
        finally:
            with suppress(psycopg.Error):
                connection.close()

    def locate(self) -> dict[str, Located]:
        """Where the tables are; refused unless the role may read them, and nothing more."""
        with self._lock:
            if self._located is None:
                self._located = self._reach(self._locate)
            return self._located

    def _reach(self, read: Callable[[psycopg.Connection[Any]], T]) -> T:
        """What is read in one look; a server that is not there is a refusal without a history."""
        psycopg = import_driver()
        with suppress(psycopg.Error, OSError), self.look() as connection:
            return read(connection)
        first = next(iter(self._tables))
        raise refuse_source(first, "the server is not there, or does not let us read")

    def _locate(self, connection: psycopg.Connection[Any]) -> dict[str, Located]:
        first = next(iter(self._tables))
        about = connection.execute(_SERVER).fetchone()
        version, encoding, is_super, explained = about or (0, "", True, "-1")
        for refused, what in (
            (version < _OLDEST, "the server is older than PostgreSQL 14"),
            (encoding != "UTF8", "its database is not in UTF8"),
            (is_super, "the role is a superuser, and must be one that can only read"),
            (
                explained != "-1",
                "the server logs plans with exact counts of rows (auto_explain.log_min_duration)",
            ),
        ):
            if refused:
                raise refuse_source(first, what)
        return {name: self._find(connection, name, t) for name, t in self._tables.items()}

    def _find(
        self, connection: psycopg.Connection[Any], name: str, table: PostgresTable
    ) -> Located:
        connection.execute("SET LOCAL search_path = DEFAULT")
        found = connection.execute(_ABOUT, [table.full_name()]).fetchone()
        held = {} if found is None else _describe(connection, table)
        connection.execute("SET LOCAL search_path = pg_catalog")
        if found is None:
            raise refuse_source(name, "the server has no such table, or the role may not see it")
        _, schema, relation, kind, hides, readable, writable, scattered = found
        for refused, what in (
            (kind not in ("r", "p"), "it is no table: of a view nothing tells whether it changed"),
            (
                scattered,
                "a part of it is on another server, where nothing tells whether it changed",
            ),
            (hides, "it has row security, by which rows are hidden from some roles"),
            (not readable, "the role may not SELECT from it"),
            (writable, "the role may write to it, and must be one that can only read"),
        ):
            if refused:
                raise refuse_source(name, what)
        return Located(f"{quote_name(schema)}.{quote_name(relation)}", held)

    # --- which data -----------------------------------------------------------------------------

    def find_token(self, name: str) -> str:
        """The version of a table as it is now: the one that a copy of it would have."""
        with self._lock:
            located = self.locate()
            return self._reach(lambda connection: self._find_token(connection, name, located))

    def _find_token(
        self, connection: psycopg.Connection[Any], name: str, located: Mapping[str, Located]
    ) -> str:
        self._read_marks(connection, located)
        key = (name, self._marks[name])
        promised = self._tables[name].find_promised()
        if promised is not None:
            return promised
        if key not in self._tokens:
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            self._tokens[key] = self._tables[name].find_token(str((row or [""])[0]))
        return self._tokens[key]

    def _read_marks(
        self, connection: psycopg.Connection[Any], located: Mapping[str, Located]
    ) -> None:
        """Of the snapshot of this look; the same snapshot shows the same rows.

        Locked before the snapshot is taken: from then on nobody changes what a column is.
        """
        names = ", ".join(one.name for one in located.values())
        connection.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
        snapshot = str((connection.execute(_SNAPSHOT).fetchone() or [""])[0])
        if snapshot == self._snapshot:
            return
        marks = {name: _read_mark(connection, one.name) for name, one in located.items()}
        for name, mark in marks.items():
            self._tables[name].keep_promise("served", mark)
        if marks != self._marks:
            self._located = None  # columns may have other types now
        self._snapshot, self._marks = snapshot, marks

    def check_promises(self) -> None:
        """Refuse tables that have other rows than when their declared version was first read."""
        with self._lock:
            located = self.locate()
            self._reach(lambda connection: self._read_marks(connection, located))

    def forget(self) -> None:
        """Look at everything anew."""
        with self._lock:
            self._located, self._snapshot = None, ""
            self._marks, self._tokens = {}, {}

    # --- questions ------------------------------------------------------------------------------

    def run(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The rows of a statement, on the data whose versions were told last.

        Raises whatever goes wrong: the caller says nothing of it.
        """

        def fetch() -> tuple[list[str], list[tuple[Any, ...]]]:
            with self._lock:
                located, told = self.locate(), dict(self._marks)
                self._read_marks(connection, located)
                if told and told != self._marks:
                    raise LookupError("other data than those that were told")
            return _fetch(connection, text)

        with self.look() as connection:
            return _watch(connection, fetch)


def _describe(
    connection: psycopg.Connection[Any], table: PostgresTable
) -> dict[str, tuple[str, str]]:
    cursor = connection.execute(table.list_columns())
    names = [column.name for column in cursor.description or ()]
    return table.match_columns([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])


def _read_mark(connection: psycopg.Connection[Any], name: str) -> str:
    said = "tableoid::text || ' ' || ctid::text || ' ' || xmin::text"
    row = connection.execute(
        f"SELECT COUNT(*)::text || ' ' || COALESCE(SUM(HASHTEXTEXTENDED({said}, 7)), 0)::text "  # noqa: S608
        f"FROM {name}"
    ).fetchone()
    declared = connection.execute(_DECLARED, [name]).fetchone()
    return f"{(row or [''])[0]} {(declared or [''])[0]}"


def _fetch(
    connection: psycopg.Connection[Any], text: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = connection.execute(text)
    return [column.name for column in cursor.description or ()], cursor.fetchall()


def _watch(connection: psycopg.Connection[Any], work: Callable[[], T]) -> T:
    """Work beside the main thread, which alone hears Ctrl-C, and stop the server's work with it."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def attempt() -> None:
        try:
            found.append(work())
        except BaseException as failure:
            failures.append(failure)
        ended.set()

    threading.Thread(target=attempt, name="discreet answer", daemon=True).start()
    try:
        while not ended.wait(_POLL_S):
            pass
    except BaseException:
        connection.cancel()
        ended.wait(_WAIT_S)
        raise
    if failures:
        raise failures[0]
    return found[0]


def import_driver() -> Any:
    """psycopg, or a refusal that says how to install it."""
    with suppress(ImportError):
        import psycopg

        return psycopg
    raise InvalidParameter(
        "P8",
        "the engine postgres needs psycopg, which is not installed.",
        why="nobody's data is involved: nothing was opened.",
        fix='pip install "discreet[postgres]".',
    )


__all__ = ["Located", "Server", "import_driver"]
