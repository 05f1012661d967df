"""Where records are kept: SQLite or PostgreSQL, one writer at a time, durable when told so.

Two tables, the same in both: records are append-only, answers belong to some of them.

A commit that fails may or may not have reached the disk, and asking again can be answered from a
cache that was never written.  So there is no second try: the store stops until it is opened anew.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from sqlalchemy import (
    BigInteger,
    Column,
    Compiled,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    create_engine,
    func,
    insert,
    inspect,
    literal,
    make_url,
    select,
    union_all,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from discreet.errors import LedgerRefusal
from discreet.ledger import refusals
from discreet.ledger.chain import Record

# --- the two tables ----------------------------------------------------------------------------


metadata = MetaData()

_NUMBER = BigInteger().with_variant(Integer, "sqlite")

records = Table(
    "records",
    metadata,
    Column("sequence", _NUMBER, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
    # The state of a question is its subject's last record: one step in this index.
    Index("records_by_subject", "subject", "sequence"),
)
"""Append-only; each row holds the digest of the one before."""

answers = Table(
    "answers",
    metadata,
    Column(
        "record", _NUMBER, ForeignKey("records.sequence"), primary_key=True, autoincrement=False
    ),
    Column("body", LargeBinary, nullable=False),
)
"""What was published; the digest of each is in its record, and so in the chain."""


# --- what a transaction reads as it begins -----------------------------------------------------
#
# In one statement: each is a journey where the store is a server.


def _newest_query(name: str) -> Any:
    about = select(*records.c).where(records.c.subject == bindparam(name))
    return about.order_by(records.c.sequence.desc()).limit(1)


LAST = _newest_query("one")
"""The newest record of a subject."""
SINCE = (
    select(*records.c)
    .where(records.c.sequence >= bindparam("first"))
    .order_by(records.c.sequence)
    .limit(bindparam("most"))
)
"""The records from some number on, in order."""
LOOKUP = union_all(
    *(
        select(*part.subquery().c, literal(new))
        for part, new in (
            (_newest_query("one"), False),
            (_newest_query("other"), False),
            (SINCE, True),
        )
    )
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
_WAIT_MS = 60_000
_MOST_APPENDED = 500

_BEFORE = select(*records.c).order_by(records.c.sequence)
_ANSWER = select(answers.c.body).where(answers.c.record == bindparam("r"))
_INSERT = insert(records)
_INSERT_ANSWER = insert(answers)


class Store:
    """One connection to the two tables."""

    def __init__(self, address: str | Path, *, create: bool = True) -> None:
        self.path = file_of(address)
        if self.path is not None and not self.path.exists() and not create:
            raise refusals.nowhere(self.path)
        self._engine = _engine(address, self.path)
        self.sqlite = self._engine.dialect.name == "sqlite"
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._broken = False
        self._appended: list[tuple[Insert, dict[str, Any]]] = []
        self._connection = self._connect(create)

    # --- opening and closing ----------------------------------------------------------------

    def _connect(self, create: bool) -> Connection:
        try:
            connection = self._engine.connect()
            if self.sqlite:
                connection.exec_driver_sql(f"PRAGMA busy_timeout = {_WAIT_MS}")
                self._check_length(connection)
            there = inspect(connection).has_table(records.name)
            if not there and not create:  # nothing was written to whatever it is
                raise refusals.nowhere(self.path or "this address")
            _make_sqlite_durable(connection) if self.sqlite else _make_postgres_durable(connection)
            if not there:
                self._create(connection)
            if self.path is not None:
                # SQLite does the same at its first write, and goes on if it fails; then a log that
                # was removed may come back after a loss of power, older than the file it is of.
                sync_folder(self.path.resolve().parent)
        except OSError:
            self._engine.dispose()
            raise _disk_refusal() from None
        except SQLAlchemyError as error:
            self._engine.dispose()
            if _is_damage(error):
                raise refusals.corrupt("the ledger's file is damaged or not a ledger.") from None
            if _is_lock(error):
                raise refusals.busy() from None
            raise refusals.cannot_open(
                "the ledger cannot be opened.",
                "check the address, the permissions and that the server runs.",
            ) from None
        except BaseException:
            self._engine.dispose()
            raise
        return connection

    def _check_length(self, connection: Connection) -> None:
        size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        if self._shorter_than(size * pages):
            raise refusals.corrupt("the ledger's file is shorter than it says.")

    def _shorter_than(self, size: int) -> bool:
        """Whether the file was cut off; pages that are still in the log (WAL) may be missing."""
        if self.path is None:
            return False
        file = self.path.resolve()  # the log is beside the file, not beside a link to it
        log = file.with_name(file.name + "-wal")
        return file.stat().st_size < size and not (log.exists() and log.stat().st_size)

    def _create(self, connection: Connection) -> None:
        self._begin_alone(connection)
        metadata.create_all(connection)
        connection.exec_driver_sql("COMMIT")

    def _begin_alone(self, connection: Connection) -> None:
        """Begin a transaction that no other writer shares."""
        if self.sqlite:
            # IMMEDIATE: the lock is taken before anything is read, or two could pass one check.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("; ".join(_ALONE))

    def compact(self) -> None:
        """Put everything into the one file of a SQLite store, so that it can be moved."""
        with self._reading() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            mode = connection.exec_driver_sql("PRAGMA journal_mode = DELETE").scalar_one()
        if mode != "delete":  # something is still in the log, and would be left behind
            raise refusals.stopped()

    def close(self) -> None:
        """Let go of the connection; a second time does nothing."""
        with self._lock:
            if os.getpid() == self._pid:
                with suppress(SQLAlchemyError):
                    self._connection.close()
                self._engine.dispose()
            self._pid = -1

    # --- one writer at a time ---------------------------------------------------------------

    @contextmanager
    def transaction(self, wanted: Lookup | None = None) -> Iterator[LookupResult]:
        """All or nothing, alone, and on the disk when it ends without an exception."""
        with self._lock:
            self._check_usable()
            if self._in_transaction():  # one is under way in this thread, or was cut short
                self._stop()
            self._appended = []
            try:
                yield LookupResult.of(self._begin(wanted or Lookup()))
            except SQLAlchemyError as error:
                self._stop(error)
            except BaseException:
                self._rollback()
                raise
            try:
                self._commit()
            except self._failures as error:
                self._stop(error)
            except BaseException:
                self._abandon()
                raise

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        """What the database raises; its driver is spoken to directly where that saves a journey."""
        return SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error

    @property
    def _driver(self) -> Any:
        return self._connection.connection.dbapi_connection

    def _commit(self) -> None:
        """Insert what was appended and commit; with a server, in one journey.

        If a statement fails there, those after it are not run, the commit neither.
        """
        with nullcontext() if self.sqlite else self._driver.pipeline():
            self._insert()
            self._connection.exec_driver_sql("COMMIT")

    def _insert(self) -> None:
        for statement, row in self._appended:
            self._connection.execute(statement, row)
        self._appended = []

    def _begin(self, wanted: Lookup) -> Sequence[Any]:
        """Begin alone, and read what is wanted: after the lock was taken, never before."""
        named = asdict(wanted)
        try:
            if not self.sqlite:
                return self._begin_on_server(named)
            self._begin_alone(self._connection)
            return self._connection.execute(LOOKUP, named).all()
        except self._failures as error:
            if _is_lock(error):
                self._rollback()
                raise refusals.busy() from None
            self._stop(error)
        except BaseException:
            self._abandon()
            raise

    def _begin_on_server(self, named: dict[str, Any]) -> Sequence[Any]:
        """With a server, in one journey: each statement sees what the one before waited for."""
        with self._driver.cursor() as cursor:
            with self._driver.pipeline():
                for statement in _ALONE:
                    self._driver.execute(statement)
                cursor.execute(
                    self._compiled_lookup.string, self._compiled_lookup.construct_params(named)
                )
            rows: Sequence[Any] = cursor.fetchall()
        return rows

    @cached_property
    def _compiled_lookup(self) -> Compiled:
        return LOOKUP.compile(dialect=self._engine.dialect)

    def _rollback(self) -> None:
        if self._broken:
            return
        try:
            # The driver's own: psycopg then forgets what it would have prepared in a journey that
            # failed, and otherwise names it in a later one.
            self._driver.rollback()
        except self._failures:
            self._abandon()

    def _in_transaction(self) -> bool:
        raw = self._driver
        return bool(raw.in_transaction) if self.sqlite else int(raw.info.transaction_status) != 0

    def _abandon(self) -> None:
        """Send nothing more; whatever is not committed ends with the connection, and its lock."""
        self._broken = True
        with suppress(SQLAlchemyError):
            self._connection.invalidate()

    def _stop(self, error: Exception | None = None) -> NoReturn:
        """Never retry: what the disk holds is known again only after opening anew."""
        self._abandon()
        if error is not None and _is_damage(error):
            raise refusals.corrupt("the ledger's file is damaged.") from None
        raise refusals.stopped() from None

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise refusals.closed()
        if self._broken:
            raise refusals.stopped()

    # --- reading and writing ----------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._lock:
            self._check_usable()
            try:
                yield self._connection
            except SQLAlchemyError as error:
                self._stop(error)

    def append(self, record: Record, answer: bytes | None = None) -> None:
        """Insert a record (and an answer): when the transaction ends, or when there are many."""
        self._appended.append((_INSERT, _row(record)))
        if answer is not None:
            self._appended.append((_INSERT_ANSWER, {"record": record.sequence, "body": answer}))
        if len(self._appended) > _MOST_APPENDED:
            self._insert()

    def since(self, sequence: int, limit: int | None = None) -> list[Record]:
        """The records from ``sequence`` on, in order."""
        return self._records(SINCE, {"first": sequence, "most": limit or 2**62})

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
        """The record of that number."""
        found = self._records(_BEFORE.where(records.c.sequence == sequence))
        return found[0] if found else None

    def last(self, subject: str) -> Record | None:
        """The newest record about a subject."""
        found = self._records(LAST, {"one": subject})
        return found[0] if found else None

    def head(self) -> Record | None:
        """The newest record."""
        query = select(*records.c).order_by(records.c.sequence.desc()).limit(1)
        found = self._records(query)
        return found[0] if found else None

    def outcome(self, charge: Record) -> Record | None:
        """What became of a charge: the next record of its subject, if there is one."""
        query = _BEFORE.where(
            records.c.subject == charge.subject, records.c.sequence > charge.sequence
        )
        found = self._records(query.limit(1))
        return found[0] if found else None

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
        query = select(*records.c).where(records.c.dataset == dataset, records.c.kind.in_(kinds))
        if analyst is not None:
            query = query.where(records.c.analyst == analyst)
        if before is not None:
            query = query.where(records.c.sequence < before)
        query = query.order_by(records.c.sequence.desc())
        return self._records(query if limit is None else query.limit(limit))

    def answer(self, sequence: int) -> bytes | None:
        """The answer stored with a release."""
        with self._reading() as connection:
            found = connection.execute(_ANSWER, {"r": sequence}).scalar_one_or_none()
        return None if found is None else _bytes(found)

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """All stored answers, by the number of their release."""
        first = 0
        while True:
            query = select(answers.c.record, answers.c.body).where(answers.c.record > first)
            with self._reading() as connection:
                rows = connection.execute(query.order_by(answers.c.record).limit(200)).all()
            if not rows:
                return
            yield from ((int(number), _bytes(body)) for number, body in rows)
            first = int(rows[-1][0])

    def count(self) -> int:
        """How many records there are."""
        with self._reading() as connection:
            return int(connection.execute(select(func.count()).select_from(records)).scalar_one())

    def _records(self, query: Any, parameters: dict[str, Any] | None = None) -> list[Record]:
        with self._reading() as connection:
            rows = connection.execute(query, parameters or {}).all()
        return list(map(record_of, rows))


def file_of(address: str | Path) -> Path | None:
    """The file of a SQLite ledger; None in memory and on a server."""
    if isinstance(address, Path):
        return address
    if "://" not in address:
        return Path(address)
    url = _url(address)
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        return Path(url.database)
    return None


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _url(address: str) -> Any:
    try:
        return make_url(address)
    except ArgumentError:
        raise refusals.cannot_open(
            "the address of the ledger cannot be read.",
            "give a path, or postgresql+psycopg://user@host/database.",
        ) from None


def _engine(address: str | Path, path: Path | None) -> Engine:
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}  # BEGIN and COMMIT are our own
    if path is not None:
        options |= {"poolclass": NullPool, "connect_args": {"check_same_thread": False}}
        return create_engine(f"sqlite:///{path}", **options)
    url = _url(str(address))
    if url.get_backend_name() == "sqlite":
        options |= {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
        return create_engine("sqlite://", **options)
    try:
        return create_engine(url, poolclass=NullPool, **options)
    except (NoSuchModuleError, ImportError):
        raise refusals.cannot_open(
            "the driver for this address is not installed.",
            "pip install 'discreet[postgres]', and write postgresql+psycopg://user@host/database.",
        ) from None


def _make_sqlite_durable(connection: Connection) -> None:
    for pragma in (
        "synchronous = EXTRA",  # FULL and more: every commit waits until the disk has it
        "fullfsync = ON",  # where a plain fsync stops at the drive's cache
        "foreign_keys = ON",
    ):
        connection.exec_driver_sql(f"PRAGMA {pragma}")
    _write_ahead(connection)


def _write_ahead(connection: Connection) -> None:
    """Keep a write-ahead log; another process that opens the same file may be first."""
    until = time.monotonic() + _WAIT_MS / 1000
    while True:
        try:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
            if mode not in ("wal", "memory"):
                mode = connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
            break
        except SQLAlchemyError as error:
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
    if connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
        raise refusals.cannot_open(
            "this PostgreSQL does not write to the disk (fsync is off).",
            "set fsync = on in postgresql.conf.",
        )
    if connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() in ("off", "local"):
        connection.exec_driver_sql("SET synchronous_commit = on")
    connection.exec_driver_sql(f"SET lock_timeout = {_WAIT_MS}")


def _is_damage(error: Exception) -> bool:
    text = str(error.orig if isinstance(error, DBAPIError) else error)
    return any(sign in text for sign in ("malformed", "not a database", "no such table"))


def _is_lock(error: Exception) -> bool:
    text = str(error.orig if isinstance(error, DBAPIError) else error)
    return "database is locked" in text or "lock timeout" in text


def _bytes(found: Any) -> bytes:
    """A stored answer; one that somebody stored as another type is not the one released."""
    return bytes(found) if isinstance(found, bytes | memoryview) else repr(found).encode()


def _row(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in Record.__slots__}
