"""Where records are kept: SQLite or PostgreSQL, one writer at a time, durable when told so.

Two tables, the same in both: records are append-only, answers belong to some of them.  A third,
small one counts refusals until the log is told of them.

A commit that fails may or may not have reached the disk, and asking again can be answered from a
cache that was never written.  So there is no second try: the store stops until it is opened anew.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from discreet.errors import LedgerRefusal
from discreet.exact.numbers import whole
from discreet.exact.records import dataclass
from discreet.ledger import refusals
from discreet.ledger.books import Record
from discreet.ledger.connection import (
    Connection,
    PostgresConnection,
    Rows,
    connect,
    describe_closed,
    find_file,
)
from discreet.ledger.tally import Tally

# --- the two tables ----------------------------------------------------------------------------

COLUMNS = ", ".join(Record.__slots__)
"""Of a record, in order."""

TABLES = (
    # Append-only; each row holds the digest of the one before.
    "CREATE TABLE records (sequence BIGINT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, "
    "at TEXT NOT NULL, dataset TEXT NOT NULL, analyst TEXT NOT NULL, subject TEXT NOT NULL, "
    "body TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL)",
    # The state of a question is its subject's last record: one step in this index.
    "CREATE INDEX records_by_subject ON records (subject, sequence)",
    # What was published; the digest of each is in its record, and so in the chain.
    "CREATE TABLE answers (record BIGINT NOT NULL PRIMARY KEY REFERENCES records (sequence), "
    "body {bytes} NOT NULL)",
)


TALLIES = (
    "CREATE TABLE IF NOT EXISTS refused (dataset TEXT NOT NULL, analyst TEXT NOT NULL, "
    "day TEXT NOT NULL, code TEXT NOT NULL, count BIGINT NOT NULL, told BIGINT NOT NULL, "
    "size BIGINT NOT NULL, PRIMARY KEY (dataset, analyst, day, code))"
)
"""Running counts of refusals, the only rows that change; made when there is first one to count,
so that ledgers from before they were counted are what they were."""


# --- what a transaction reads as it begins -----------------------------------------------------
#
# In one statement: each is a journey where the store is a server.

_RECORDS = f"SELECT {COLUMNS} FROM records"  # noqa: S608 (our own words)
LAST = f"{_RECORDS} WHERE subject = :one ORDER BY sequence DESC LIMIT 1"
"""The newest record of a subject."""
SINCE = f"{_RECORDS} WHERE sequence >= :first ORDER BY sequence LIMIT :most"
"""The records from some number on, in order."""
LOOKUP = " UNION ALL ".join(
    f"SELECT {COLUMNS}, {new} FROM ({query}) AS part{new}"  # noqa: S608
    for query, new in ((LAST, 0), (LAST.replace(":one", ":other"), 0), (SINCE, 1))
)
"""What a ``Lookup`` asks for; the last column tells what is new from what is newest."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a transaction reads as it begins: by default, nothing."""

    one: str = "-"
    """A subject, whose newest record is wanted."""
    other: str = "-"
    """Another one."""
    first: int = 2**62
    """The number from which on records are wanted."""
    most: int = 1
    """As many of them."""

    def name_parts(self) -> dict[str, str | int]:
        """As a statement takes it; every transaction does."""
        return {"one": self.one, "other": self.other, "first": self.first, "most": self.most}


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What a transaction found as it began."""

    newest: list[Record]
    """The newest record of each subject."""
    since: list[Record]
    """Those from some number on, in order."""

    @classmethod
    def of(cls, rows: Sequence[Any]) -> LookupResult:
        """What the rows say that were read."""
        since = [record_of(row[:-1]) for row in rows if row[-1]]
        since.sort(key=lambda record: record.sequence)
        return cls([record_of(row[:-1]) for row in rows if not row[-1]], since)


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row; refused if somebody stored other types."""
    if not all(isinstance(part, str) for part in row[1:]):
        raise refusals.corrupt(f"record {row[0]} was altered.")
    return Record(*row)


_LOCK = 0x6469736372656574  # "discreet": the PostgreSQL advisory lock of the writer
# READ COMMITTED: what is read after waiting for the lock is what its holder wrote.
_ALONE = "BEGIN ISOLATION LEVEL READ COMMITTED", f"SELECT pg_advisory_xact_lock({_LOCK})"
# IMMEDIATE: the lock is taken before anything is read, or two could pass one check.
_IMMEDIATE = "BEGIN IMMEDIATE"
_WAIT_MS = 60_000
_ALL = 2**62
_MOST_APPENDED = 500

_ANSWER = "SELECT body FROM answers WHERE record = :record"
_INSERT = (
    f"INSERT INTO records ({COLUMNS}) "  # noqa: S608
    f"VALUES ({', '.join(':' + name for name in Record.__slots__)})"
)
_INSERT_ANSWER = "INSERT INTO answers (record, body) VALUES (:record, :body)"
_TALLY = ", ".join(Tally.__slots__)
_COUNT = (
    f"INSERT INTO refused ({_TALLY}) "  # noqa: S608
    f"VALUES ({', '.join(':' + name for name in Tally.__slots__)}) "
    "ON CONFLICT (dataset, analyst, day, code) DO UPDATE SET "
    "count = excluded.count, told = excluded.told, size = excluded.size"
)
_FORGET = (
    "DELETE FROM refused WHERE dataset = :dataset AND analyst = :analyst AND day = :day "
    "AND code = :code"
)


class Store:
    """One connection to the two tables."""

    def __init__(self, address: str | Path, *, create: bool = True) -> None:
        self.path = find_file(address)
        if self.path is not None and not self.path.exists() and not create:
            raise refusals.nowhere(self.path)
        if self.path is not None and create:
            _make_private(self.path)
        self._address = address
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._broken = False
        self._appended: list[tuple[str, dict[str, Any]]] = []
        self._connection = self._connect(create)
        self.sqlite = not isinstance(self._connection, PostgresConnection)

    # --- opening and closing ----------------------------------------------------------------

    def _connect(self, create: bool) -> Connection:
        try:
            connection = connect(self._address)
        except sqlite3.Error:
            raise describe_closed() from None
        try:
            self._open(connection, create)
        except OSError:
            connection.close()
            raise _disk_refusal() from None
        except connection.failures as error:
            connection.close()
            if _is_damage(error):
                raise refusals.corrupt("the ledger's file is damaged or not a ledger.") from None
            if _is_lock(error):
                raise refusals.busy() from None
            raise describe_closed() from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, connection: Connection, create: bool) -> None:
        server = isinstance(connection, PostgresConnection)
        if not server:
            connection.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
            self._check_length(connection)
        there = connection.has_table("records")
        if not there and not create:  # nothing was written to whatever it is
            raise refusals.nowhere(self.path or "this address")
        _make_postgres_durable(connection) if server else _make_sqlite_durable(connection)
        if not there:
            _create(connection)
        if self.path is not None:
            # SQLite does the same at its first write, and goes on if it fails; then a log that
            # was removed may come back after a loss of power, older than the file it is of.
            sync_folder(self.path.resolve().parent)

    def _check_length(self, connection: Connection) -> None:
        size = connection.value("PRAGMA page_size")
        pages = connection.value("PRAGMA page_count")
        if self._shorter_than(size * pages):
            raise refusals.corrupt("the ledger's file is shorter than it says.")

    def _shorter_than(self, size: int) -> bool:
        """Whether the file was cut off; pages that are still in the log (WAL) may be missing."""
        if self.path is None:
            return False
        file = self.path.resolve()  # the log is beside the file, not beside a link to it
        log = file.with_name(file.name + "-wal")
        return file.stat().st_size < size and not (log.exists() and log.stat().st_size)

    def compact(self) -> None:
        """Put everything into the one file of a SQLite store, so that it can be moved."""
        with self._open_reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            mode = connection.value("PRAGMA journal_mode = DELETE")
        if mode != "delete":  # something is still in the log, and would be left behind
            raise refusals.stopped_refusal()

    def close(self) -> None:
        """Let go of the connection; a second time does nothing."""
        with self._lock:
            if os.getpid() == self._pid:
                self._connection.close()
            self._pid = -1

    # --- one writer at a time ---------------------------------------------------------------

    @contextmanager
    def transaction(self, wanted: Lookup | None = None) -> Iterator[LookupResult]:
        """All or nothing, alone, and on the disk when it ends without an exception."""
        with self._lock:
            self._check_usable()
            if self._connection.in_transaction:  # one is under way in this thread, or was cut short
                self._stop()
            self._appended = []
            try:
                yield LookupResult.of(self._begin(wanted or Lookup()))
            except self._connection.failures as error:
                self._stop(error)
            except BaseException:
                self._rollback()
                raise
            try:
                self._commit()
            except self._connection.failures as error:
                self._stop(error)
            except BaseException:
                self._abandon()
                raise

    def _commit(self) -> None:
        """Insert what was appended and commit; with a server, in one journey.

        If a statement fails there, those after it are not run, the commit neither.
        """
        with self._connection.journey():
            self._insert()
            self._connection.send("COMMIT")

    def _insert(self) -> None:
        if self._appended and not self._connection.in_transaction:
            self._stop()  # it was undone, by a lack of memory, say: nothing may be written alone
        for statement, row in self._appended:
            self._connection.send(statement, row)
        self._appended = []

    def _begin(self, wanted: Lookup) -> Rows:
        """Begin alone, and read what is wanted: after the lock was taken, never before."""
        try:
            if isinstance(self._connection, PostgresConnection):
                return self._connection.fetch_after(_ALONE, LOOKUP, wanted.name_parts())
            self._connection.execute(_IMMEDIATE)
            return self._connection.execute(LOOKUP, wanted.name_parts())
        except self._connection.failures as error:
            if _is_lock(error):
                self._rollback()
                raise refusals.busy() from None
            self._stop(error)
        except BaseException:
            self._abandon()
            raise

    def _rollback(self) -> None:
        if self._broken:
            return
        try:
            self._connection.rollback()
        except self._connection.failures:
            self._abandon()

    def _abandon(self) -> None:
        """Send nothing more; whatever is not committed ends with the connection, and its lock."""
        self._broken = True
        self._connection.close()

    def _stop(self, error: Exception | None = None) -> NoReturn:
        """Never retry: what the disk holds is known again only after opening anew."""
        self._abandon()
        if error is not None and _is_damage(error):
            raise refusals.corrupt("the ledger's file is damaged.") from None
        raise refusals.stopped_refusal() from None

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise refusals.closed_refusal()
        if self._broken:
            raise refusals.stopped_refusal()

    # --- reading and writing ----------------------------------------------------------------

    @contextmanager
    def _open_reading(self) -> Iterator[Connection]:
        with self._lock:
            self._check_usable()
            try:
                yield self._connection
            except self._connection.failures as error:
                self._stop(error)

    def append(self, record: Record, answer: bytes | None = None) -> None:
        """Insert a record (and an answer): when the transaction ends, or when there are many."""
        self._appended.append((_INSERT, _row(record)))
        if answer is not None:
            self._appended.append((_INSERT_ANSWER, {"record": record.sequence, "body": answer}))
        if len(self._appended) > _MOST_APPENDED:
            self._insert()

    def flush(self) -> None:
        """Insert what was appended now: what is read next in this transaction finds it."""
        with self._open_reading():
            self._insert()

    def since(self, sequence: int, limit: int | None = None) -> list[Record]:
        """The records from ``sequence`` on, in order."""
        return self._records(SINCE, {"first": sequence, "most": limit or _ALL})

    def batches(self, first: int = 1, *, last: int | None = None) -> Iterator[list[Record]]:
        """All records from ``first`` to ``last``, some thousand at a time."""
        while batch := self.since(first, 2000):
            kept = [record for record in batch if last is None or record.sequence <= last]
            if kept:
                yield kept
            if len(kept) < len(batch):
                return
            first = batch[-1].sequence + 1

    def record(self, sequence: int) -> Record | None:
        """The record of that number; None also for what is no number of any record.

        A database that is given something else fails, and a failure stops the ledger.
        """
        if not isinstance(sequence, int) or not 0 < sequence <= _ALL:
            return None
        return self._first(f"{_RECORDS} WHERE sequence = :sequence", {"sequence": sequence})

    def last(self, subject: str) -> Record | None:
        """The newest record about a subject."""
        return self._first(LAST, {"one": subject})

    def of_subject(self, subject: str) -> list[Record]:
        """All records about a subject, in order."""
        return self._records(f"{_RECORDS} WHERE subject = :one ORDER BY sequence", {"one": subject})

    def head(self) -> Record | None:
        """The newest record."""
        return self._first(f"{_RECORDS} ORDER BY sequence DESC LIMIT 1")

    def outcome(self, charge: Record) -> Record | None:
        """What became of a charge: the next record of its subject, if there is one."""
        later = "WHERE subject = :subject AND sequence > :sequence ORDER BY sequence LIMIT 1"
        named = {"subject": charge.subject, "sequence": charge.sequence}
        return self._first(f"{_RECORDS} {later}", named)

    def about(
        self,
        dataset: str,
        kinds: Sequence[str],
        *,
        analyst: str | None,
        before: int | None,
        limit: int | None,
    ) -> list[Record]:
        """The newest records of some kinds about a dataset, newest first."""
        named: dict[str, Any] = {"dataset": dataset}
        named |= {f"kind{i}": kind for i, kind in enumerate(kinds)}
        listed = ", ".join(f":{name}" for name in named if name != "dataset")
        where = f"dataset = :dataset AND kind IN ({listed})"
        if analyst is not None:
            where, named["analyst"] = f"{where} AND analyst = :analyst", str(analyst)
        if before is not None:
            first = min(_ALL, whole(before, name="before"))
            where, named["before"] = f"{where} AND sequence < :before", first
        named["most"] = _ALL if limit is None else min(_ALL, whole(limit, name="limit"))
        return self._records(f"{_RECORDS} WHERE {where} ORDER BY sequence DESC LIMIT :most", named)

    def answer(self, sequence: int) -> bytes | None:
        """The answer stored with a release."""
        with self._open_reading() as connection:
            found = connection.execute(_ANSWER, {"record": sequence})
        return _bytes(found[0][0]) if found else None

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All stored answers, by the number of their release."""
        query = "SELECT record, body FROM answers WHERE record > :first ORDER BY record LIMIT 200"
        first = 0
        while True:
            with self._open_reading() as connection:
                rows = connection.execute(query, {"first": first})
            if not rows:
                return
            yield from ((int(number), _bytes(body)) for number, body in rows)
            first = int(rows[-1][0])

    # --- refusals that are counted ------------------------------------------------------------

    def tallies(self, dataset: str | None = None, analyst: str | None = None) -> list[Tally]:
        """The running counts of refusals: all, or of a dataset, or of an analyst there."""
        wanted = {"dataset": dataset, "analyst": analyst}
        named = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in named) or "1 = 1"
        order = "ORDER BY dataset, analyst, day, code"
        with self._open_reading() as connection:
            if not connection.has_table("refused"):
                return []
            query = f"SELECT {_TALLY} FROM refused WHERE {where} {order}"  # noqa: S608
            return [_tally_of(row) for row in connection.execute(query, named)]

    def count_refusals(self, tally: Tally) -> None:
        """Keep a running count, with what else this transaction writes."""
        self._appended += [(TALLIES, {}), (_COUNT, asdict(tally))]

    def forget_tally(self, tally: Tally) -> None:
        """Keep it no longer: the log tells all of it."""
        named = asdict(tally)
        keys = ("dataset", "analyst", "day", "code")
        self._appended.append((_FORGET, {name: named[name] for name in keys}))

    def count(self) -> int:
        """How many records there are."""
        with self._open_reading() as connection:
            return int(connection.value("SELECT COUNT(*) FROM records"))

    def _first(self, query: str, named: dict[str, Any] | None = None) -> Record | None:
        found = self._records(query, named)
        return found[0] if found else None

    def _records(self, query: str, named: dict[str, Any] | None = None) -> list[Record]:
        with self._open_reading() as connection:
            rows = connection.execute(query, named)
        return list(map(record_of, rows))


def _tally_of(row: Sequence[Any]) -> Tally:
    """The running count of a row; refused if somebody stored other types, or less than nothing."""
    texts, amounts = row[:4], row[4:]
    plain = all(isinstance(part, str) for part in texts)
    if not plain or any(type(part) is not int or part < 0 for part in amounts):
        raise refusals.corrupt("a count of refusals was altered.")
    return Tally(*row)


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_private(file: Path) -> None:
    """A new file is its owner's alone: it says who asked what, and holds the answers.

    SQLite gives the log beside it the same rights.
    """
    with suppress(OSError):  # it is there already, or cannot be: opening it says why
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _create(connection: Connection) -> None:
    """Make the two tables, in a transaction that no other writer shares."""
    server = isinstance(connection, PostgresConnection)
    for statement in _ALONE if server else (_IMMEDIATE,):
        connection.execute(statement)
    for statement in TABLES:  # another process may have been faster
        made = statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
        made = made.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS")
        connection.execute(made.format(bytes="BYTEA" if server else "BLOB"))
    connection.execute("COMMIT")


def _make_sqlite_durable(connection: Connection) -> None:
    for pragma in (
        "synchronous = EXTRA",  # FULL and more: every commit waits until the disk has it
        "fullfsync = ON",  # where a plain fsync stops at the drive's cache
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    _write_ahead(connection)


def _write_ahead(connection: Connection) -> None:
    """Keep a write-ahead log; another process that opens the same file may be first."""
    until = time.monotonic() + _WAIT_MS / 1000
    while True:
        try:
            mode = connection.value("PRAGMA journal_mode")
            if mode not in ("wal", "memory"):
                mode = connection.value("PRAGMA journal_mode = WAL")
            break
        except connection.failures as error:
            if not _is_lock(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
    if mode not in ("wal", "memory"):
        # SQLite keeps the old mode without an error if the switch fails on the disk, and there
        # a commit is undone if the name of its journal outlives a power failure.
        raise _disk_refusal()


def _disk_refusal() -> LedgerRefusal:
    return refusals.cannot_open(
        "the ledger's disk failed while it was opened.", "see to the disk, and open it again."
    )


def _make_postgres_durable(connection: Connection) -> None:
    """Every commit waits for the disk, whatever the server's default is."""
    if connection.value("SHOW fsync") != "on":
        raise refusals.cannot_open(
            "this PostgreSQL does not write to the disk (fsync is off).",
            "set fsync = on in postgresql.conf.",
        )
    if connection.value("SHOW synchronous_commit") in ("off", "local"):
        connection.execute("SET synchronous_commit = on")
    connection.execute(f"SET lock_timeout = {_WAIT_MS}")


def _is_damage(error: Exception) -> bool:
    text = str(error)
    return any(sign in text for sign in ("malformed", "not a database", "no such table"))


def _is_lock(error: Exception) -> bool:
    text = str(error)
    return "database is locked" in text or "lock timeout" in text


def _bytes(found: Any) -> bytes:
    """A stored answer; one that somebody stored as another type is not the one released."""
    return bytes(found) if isinstance(found, bytes | memoryview) else repr(found).encode()


def _row(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__}
