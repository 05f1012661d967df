"""A table of PostgreSQL as a source: copied once, as it is in one snapshot, then read like a file.

The declared columns are read by one statement in one read-only transaction, over ADBC, into a
Parquet file of the store.  Every value is asked for in a form that cannot fail on the way: what no
calendar of ours has is NULL, numbers without a width are texts.  PostgreSQL cannot say cheaply
whether a table has changed, so a copy is what the data are until another is made
(``discreet prepare``, or ``Engine.prepare``); its version is a hash of all that was copied, under a
key of the store, so that who sees the ledger cannot try out what a table may hold.  Or the schema
declares a version: then the store remembers what it was first seen to be, and refuses other rows
under the same name.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb

from discreet.engine.duckdb.sources import (
    DataSource,
    Parquet,
    Part,
    Version,
    unreadable_refusal,
)
from discreet.errors import DataRefusal
from discreet.exact.records import dataclass
from discreet.noise.entropy import random_bytes
from discreet.question.domain import Kind
from discreet.question.schema import Column

SCHEMES = ("postgresql", "postgres")
_TOKEN = 32  # characters of a version
_KEPT = 2  # a question may still be reading the copy before

_AS_IT_IS = {"bool", "bytea"}
_WHOLE = {"int2", "int4", "int8"}
_REAL = {"float4", "float8"}
_MOMENTS = {"date", "timestamp", "timestamptz"}
_TEXTS = {"text", "varchar", "bpchar", "name", "citext"}
_AS_TEXT = {"numeric", "uuid", *_TEXTS}

_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL synchronize_seqscans = off",  # the same rows in the same order: the same version
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL client_encoding = 'UTF8'",  # in another, a text without an equivalent would raise
    "SET LOCAL row_security = off",  # a policy that would hide rows is an error, not fewer rows
)

_COLUMNS = """
SELECT a.attname::text AS name, t.typtype::text AS kind,
  CASE WHEN n.nspname = 'pg_catalog' OR t.typname = 'citext' THEN t.typname::text
  ELSE n.nspname::text || '.' || t.typname::text END AS type,
  pg_catalog.getdatabaseencoding()::text AS encoding,
  pg_catalog.quote_ident(s.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS whole_name
FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
WHERE a.attrelid = pg_catalog.to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""


def is_postgres(text: str) -> bool:
    """Whether a source names a table of PostgreSQL.

    >>> is_postgres("postgresql://db.example/clinic#visits"), is_postgres("visits.parquet")
    (True, False)
    """
    return text.partition("://")[0] in SCHEMES and "://" in text


@dataclass(frozen=True, slots=True)
class PostgresTable(DataSource):
    """``postgresql://user@host/database#schema.table``, copied to the folder ``copies``."""

    table: str
    url: str
    columns: tuple[Column, ...]
    copies: Path
    promised: str | None  # its version, as the schema declares it

    @classmethod
    def of(
        cls,
        table: str,
        given: str,
        columns: Sequence[Column] | None,
        copies: Path | None,
        promised: str | None = None,
    ) -> PostgresTable:
        """The table that an address names; refused if it names none, or nothing is declared."""
        url, _, named = given.partition("#")
        if not named:
            raise unreadable_refusal(
                table, "the address names no table: postgresql://host/db#table"
            )
        if not columns or copies is None:
            raise unreadable_refusal(table, "of a table of PostgreSQL, columns must be declared")
        if not urlsplit(url).path.strip("/"):
            raise unreadable_refusal(table, "the address names no database: postgresql://host/db#t")
        return cls(named, url, tuple(columns), copies, promised)

    # --- as a file ------------------------------------------------------------------------------

    @property
    def version(self) -> Version:
        """Of the copy; made now if there is none."""
        copy = self._copy()
        return Version(token=self.find_promised() or copy.stem.rpartition("-")[2])

    def paths(self) -> tuple[str, ...]:
        """The copy."""
        return (str(self._copy()),)

    def attach(
        self, connection: duckdb.DuckDBPyConnection, name: str, *, copies: Path
    ) -> tuple[Part, ...]:
        """Read the copy in place."""
        return self._file().attach(connection, name, copies=copies)

    def lend(self, cursor: duckdb.DuckDBPyConnection, name: str) -> None:
        """What Arrow reads."""
        self._file().lend(cursor, name)

    def renew(self) -> None:
        """Copy the table as it is now."""
        self.refresh()

    def _file(self) -> Parquet:
        return Parquet(str(self._copy()))

    # --- the copy -------------------------------------------------------------------------------

    def _copy(self) -> Path:
        found = self._list_copies()
        return found[-1] if found else self.refresh(unless_there=True)

    def _list_copies(self) -> list[Path]:
        """The copies that there are, the newest last."""
        found = self.copies.glob(f"{self._stem}-*.parquet")
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))

    @property
    def _stem(self) -> str:
        """Copies of this table, of these columns; the address without its password."""
        parts = urlsplit(self.url)
        where = (parts.username, parts.hostname, parts.port, parts.path, parts.query, self.table)
        said = repr((where, [(column.name, column.kind.value) for column in self.columns]))
        said += "" if self.promised is None else repr(self.promised)
        return f"postgres-{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    # --- a version that is declared -------------------------------------------------------------

    def find_promised(self) -> str | None:
        """The version that is declared, if one is: the same for every store and every role."""
        if self.promised is None:
            return None
        parts = urlsplit(self.url)
        host = parse_qs(parts.query).get("host", [parts.hostname])
        said = repr(("declared", host, parts.port, parts.path, self.full_name(), self.promised))
        return hashlib.sha256(said.encode()).hexdigest()[:_TOKEN]

    def keep_promise(self, kind: str, seen: str) -> None:
        """Remember what the declared version was first seen to be; anything else is refused.

        A keyed hash is what is remembered: nothing of the rows can be tried out.
        """
        if self.promised is None:
            return
        kept = hmac.new(self._key(), seen.encode(), hashlib.sha256).hexdigest().encode()
        with _open_privately(self.copies / f"{self._stem}.{kind}") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            found = stream.read()
            if not found:
                stream.write(kept)
                stream.flush()
                os.fsync(stream.fileno())
        if found not in (b"", kept):
            raise DataRefusal(
                "D2",
                f"table '{self.table}' of PostgreSQL has other rows than when its declared version "
                "was first read.",
                why="answers about the people who were in it then would be shown for those who "
                "are in it now.",
                fix="declare another version in the schema: whenever a row changes, or moves "
                "(VACUUM FULL, CLUSTER).",
            )

    def refresh(self, *, unless_there: bool = False) -> Path:
        """Copy the table as it is now; the same content has the same version."""
        with self._alone():
            if unless_there and (found := self._list_copies()):
                return found[-1]
            partial = self.copies / f"{self._stem}-{random_bytes(8).hex()}.partial"
            try:
                self._write(partial)
                with partial.open("rb") as stream:
                    token = hmac.new(self._key(), digestmod=hashlib.sha256)
                    while block := stream.read(1 << 20):
                        token.update(block)
                self.keep_promise("copied", token.hexdigest())
                copy = self.copies / f"{self._stem}-{token.hexdigest()[:_TOKEN]}.parquet"
                partial.replace(copy)
                os.utime(copy)  # the newest is the one that is read
            finally:
                partial.unlink(missing_ok=True)
            for old in self._list_copies()[:-_KEPT]:
                old.unlink(missing_ok=True)
            return copy

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process copies; the others wait, and find what it made."""
        with _open_privately(self.copies / f"{self._stem}.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _key(self) -> bytes:
        """Of this store: with it, and only with it, a version tells what was copied."""
        path = self.copies / "postgres.key"
        with _open_privately(path) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            found = stream.read()
            if not found:
                found = random_bytes(32)
                stream.write(found)
                stream.flush()
                os.fsync(stream.fileno())
        return bytes(found)

    def _write(self, path: Path) -> None:
        with _open_privately(path) as stream:
            self._write_to(stream)

    def _write_to(self, stream: Any, snapshot: str | None = None) -> None:
        """The rows as a Parquet file, as they are now or in a snapshot of somebody else's."""
        import pyarrow.parquet as pq
        from pyarrow import ArrowException

        dbapi = self._import_driver()
        first, *others = _SESSION
        shared = [] if snapshot is None else [f"SET TRANSACTION SNAPSHOT {_quote_string(snapshot)}"]
        with suppress(dbapi.Error, ArrowException, OSError):  # whose texts may quote an address
            with closing(dbapi.connect(self.url)) as connection:
                with closing(connection.cursor()) as cursor:
                    for statement in (first, *shared, *others):
                        cursor.execute(statement)
                    cursor.execute(self.list_columns())
                    found = cursor.fetch_arrow_table().to_pylist()
                    held = self.match_columns(found)
                    # From here on operators and types are PostgreSQL's own, whatever else is there.
                    cursor.execute("SET LOCAL search_path = pg_catalog")
                    cursor.execute(self._select(held, found[0]["whole_name"]))
                    reader = cursor.fetch_record_batch()
                    with pq.ParquetWriter(stream, reader.schema) as writer:
                        for batch in reader:
                            writer.write_batch(batch)
                connection.rollback()
            return
        raise _refuse(self.table, "the server is not there, or does not let us read")

    def find_token(self, snapshot: str) -> str:
        """The version that a copy of a snapshot would have; the rows are read, and none is kept."""
        sink = HashingSink(self._key())
        self._write_to(sink, snapshot)
        return sink.hexdigest()[:_TOKEN]

    def _import_driver(self) -> Any:
        with suppress(ImportError):
            from adbc_driver_postgresql import dbapi

            return dbapi
        raise DataRefusal(
            "D2",
            f"the source of table '{self.table}' is in PostgreSQL, and its driver is missing.",
            why="without it no question about the people in it can be answered.",
            fix='pip install "discreet[postgres]".',
        )

    def list_columns(self) -> str:
        """The question to the server's catalogue that :meth:`match_columns` reads."""
        return _COLUMNS.format(table=_quote_string(self.full_name()))

    def match_columns(self, held: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
        """The name and type of each declared column, as the server has it."""
        if not held:
            raise _refuse(self.table, "the server has no such table")
        if held[0]["encoding"] != "UTF8":
            raise _refuse(self.table, "its database is not in UTF8")
        found: dict[str, tuple[str, str]] = {}
        for column in self.columns:
            same = [one for one in held if one["name"] == column.name] or [
                one for one in held if one["name"].casefold() == column.name.casefold()
            ]
            if len(same) == 1:  # a missing column is refused where every source's are
                kind = "enum" if same[0]["kind"] == "e" else same[0]["type"]
                found[column.name] = same[0]["name"], kind
        if not found:
            raise _refuse(self.table, "it has none of the declared columns")
        return found

    def _select(self, held: dict[str, tuple[str, str]], name: str) -> str:
        picked = []
        for column in self.columns:
            if column.name in held:
                own, kind = held[column.name]
                read = _read(quote_name(own), kind, column.kind, self.table)
                picked.append(f"{read} AS {quote_name(column.name)}")
        return f"SELECT {', '.join(picked)} FROM {name}"  # noqa: S608

    def full_name(self) -> str:
        """The table as it was named: whoever wrote the schema quotes what must be quoted."""
        return ".".join(_quote_part(part) for part in self.table.split("."))


def _read(name: str, held: str, kind: Kind, table: str) -> str:
    """A column in a form that cannot fail on its way; the declaration reads it afterwards."""
    if held in _AS_IT_IS:
        return name
    if held in _WHOLE:
        return f"{name}::int8"
    if held in _REAL:
        return f"{name}::float8"
    if held in _MOMENTS:
        low, high = "0001-01-01", "9999-12-31 23:59:59.999999"
        low, high = (low, "9999-12-31") if held == "date" else (low, high)
        zone = "+00" if held == "timestamptz" else ""
        inside = f"{name} BETWEEN '{low}{zone}'::{held} AND '{high}{zone}'::{held}"
        return f"CASE WHEN {inside} THEN {name} END"
    if held in _AS_TEXT or (kind is Kind.TEXT and held == "enum"):
        return f"{name}::text"
    raise _refuse(table, f"a column of type {held} cannot be read as {kind}")


def _refuse(table: str, what: str) -> DataRefusal:
    return DataRefusal(
        "D2",
        f"table '{table}' of PostgreSQL cannot be copied: {what}.",
        why="without it no question about the people in it can be answered.",
        fix="check the address, that the role may SELECT from the table, and the declared columns.",
    )


class HashingSink:
    """A file that keeps nothing of what is written to it but a keyed hash."""

    def __init__(self, key: bytes) -> None:
        self._hash = hmac.new(key, digestmod=hashlib.sha256)
        self._size = 0
        self.closed = False

    def write(self, content: Any) -> int:
        """Take it in."""
        size = memoryview(content).nbytes
        self._hash.update(content)
        self._size += size
        return size

    def tell(self) -> int:
        """How much was written."""
        return self._size

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True

    def hexdigest(self) -> str:
        """The hash of everything that was written."""
        return self._hash.hexdigest()


def quote_name(name: str) -> str:
    """A name of PostgreSQL, quoted."""
    return '"' + name.replace('"', '""') + '"'


def _quote_part(part: str) -> str:
    """A part of a name that stands in quotation marks already, or is taken as it is written."""
    return part if part.startswith('"') and part.endswith('"') else quote_name(part)


def _quote_string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _open_privately(path: Path) -> Any:
    """A file that its owner alone may read, opened to read and write."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


__all__ = ["PostgresTable", "is_postgres", "quote_name"]
