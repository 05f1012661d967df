"""The log and what it adds up to, kept together: read what is new, check, append, commit.

One charge reads the records that are new (normally none but the last), inserts one and commits:
its cost does not grow with the log.

Most of that cost is the wait for the disk.  Threads that have something to write at the same time
share it: whoever may write first does the others' work too, one after the other in one transaction,
and nobody goes on before it is committed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from discreet.errors import LedgerRefusal
from discreet.ledger import refusals
from discreet.ledger.books import FORMAT, Books, Record, next_record, write_time
from discreet.ledger.store import Lookup, Store
from discreet.noise.entropy import random_bytes

T = TypeVar("T")
Clock = Callable[[], datetime]

SLACK = timedelta(minutes=5)
"""How far the clock may be behind the newest record; further, and nothing is written."""

_BATCH = 2000
"""As many records are read at once."""

_MOST_TOGETHER = 64
"""As much of what threads wait to write is written in one transaction."""

SNAPSHOTS = "balances"
"""The subject under which snapshots are found."""


def utc_now() -> datetime:
    """The time of the machine's clock."""
    return datetime.now(UTC)


class Journal:
    """A store and its books."""

    def __init__(self, store: Store, *, clock: Clock = utc_now, begin: bool = False) -> None:
        self.store = store
        self.clock = clock
        self.books = Books()
        self._lock = threading.RLock()
        self._readings = 0  # of the thread that has the lock
        self._waiting: deque[_Errand[Any]] = deque()
        self._torn = False  # whether the books may say what the store does not
        self._open(begin)

    # --- opening ----------------------------------------------------------------------------

    def _open(self, begin: bool) -> None:
        head = self.store.head()  # before the first record: another process may be beginning
        first = self.store.record(1)
        if first is None:
            if head is not None or not begin:
                raise refusals.corrupt("the ledger's first record is missing.")
            with self.writing() as writer:
                if self.books.last is None:  # nobody else was faster
                    identity = random_bytes(16).hex()
                    writer.append("ledger", {"format": FORMAT, "identity": identity})
            return
        _check_format(first)
        self._read_anew()
        if self.books.snapshot_is_due():  # the next opening need not read as much
            with self.writing() as writer:
                writer.snapshot()

    def _read_anew(self) -> None:
        """The books as the store has them: from the newest record of all balances on."""
        newest = self.store.last(SNAPSHOTS)
        if newest is not None and (newest.kind != SNAPSHOTS or not newest.intact):
            raise refusals.corrupt("a record of all balances was altered.")
        books = Books() if newest is None else _understand(partial(Books.from_snapshot, newest))
        self._take_all(self.store.since(_first_of(books), _BATCH), books)
        self.books, self._torn = books, False  # who reads without the lock never sees half of them

    def catch_up(self) -> Books:
        """Take in the records that are new; the last one known must still be there."""
        with self._lock:
            if self._torn:
                self._read_anew()
            self._take_all(self.store.since(_first_of(self.books), _BATCH), self.books)
            return self.books

    def _take_all(self, batch: list[Record], books: Books) -> None:
        if not batch and books.last is not None:
            raise refusals.corrupt("records that were there are gone.")
        self._take(batch, books)
        while len(batch) == _BATCH:
            batch = self.store.since(_first_of(books), _BATCH)
            self._take(batch, books)

    def _take(self, batch: list[Record], books: Books) -> None:
        for record in batch:
            last = books.last
            if last is not None and record.sequence == last.sequence:
                if record != last:
                    raise refusals.corrupt(f"record {record.sequence} was altered.")
                continue
            if not record.follows(last):
                raise refusals.corrupt(f"record {record.sequence} does not follow the one before.")
            with self._enter_books(books):
                _understand(partial(books.apply, record))

    @contextmanager
    def _enter_books(self, books: Books) -> Iterator[None]:
        """Books into which something is entered; half of it, if that is cut short."""
        ours = books is self.books
        if ours:
            self._torn = True
        yield
        if ours:
            self._torn = False

    @contextmanager
    def reading(self) -> Iterator[Books]:
        """The books, up to date, while nobody in this process changes them.

        What is read inside a reading is read from the same books: the store is asked once, so many
        who come together are told how things stand after the last of them came.
        """
        with self._lock:
            if self._readings == 0:
                self.catch_up()
            self._readings += 1
            try:
                yield self.books
            finally:
                self._readings -= 1

    # --- writing ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, one: str = "-", other: str = "-") -> Iterator[Writer]:
        """One transaction: everything known is up to date, and nobody else writes.

        What is appended counts only once it is committed.  Of two subjects, the newest
        records are looked up.
        """
        with self._lock:
            if self._torn:
                self._read_anew()
            first = _first_of(self.books)
            with self.store.transaction(Lookup(one, other, first, _BATCH)) as found:
                self._take_all(found.since, self.books)
                writer = Writer(self.books, self._now(), found.newest)
                yield writer
                writer.hand_over(self.store)
            with self._enter_books(self.books):
                writer.enter(self.books)

    def write(self, work: Callable[[Writer], T], one: str = "-", other: str = "-") -> T:
        """What ``work`` gives, done as in :meth:`writing` and perhaps with others' in one commit.

        What it appends counts for those that come after it in the same transaction; if it fails,
        nothing of it is written, and the others' is.
        """
        errand = _Errand(work, one, other)
        try:
            self._waiting.append(errand)
            with self._lock:  # whoever has it does what all have to do
                if not errand.done:
                    self._write_waiting(errand)
        except BaseException:
            errand.given_up = True
            raise
        return errand.outcome()

    def _write_waiting(self, mine: _Errand[Any]) -> None:
        errands = [mine]
        while self._waiting and len(errands) < _MOST_TOGETHER:
            errand = self._waiting.popleft()
            if errand is not mine and not (errand.done or errand.given_up):
                errands.append(errand)
        if self._torn:
            self._read_anew()
        lookup = Lookup(mine.one, mine.other, _first_of(self.books), _BATCH)
        with self.store.transaction(lookup) as found:
            self._take_all(found.since, self.books)
            writer: Writer | None = None
            for errand in errands:
                if writer is not None:
                    self._torn = True  # until it is committed
                    writer.enter(self.books)
                    self.store.flush()  # so that it is found by who comes after it
                newest = found.newest if errand is mine else self._find_newest(errand)
                writer = errand.run(partial(self._make_writer, newest))
                if writer is not None:
                    writer.hand_over(self.store)
        self._torn = True
        if writer is not None:
            writer.enter(self.books)
        self._torn = False
        for errand in errands:
            errand.done = True

    def _make_writer(self, newest: list[Record]) -> Writer:
        return Writer(self.books, self._now(), newest)

    def _find_newest(self, errand: _Errand[Any]) -> list[Record]:
        found = (self.store.last(name) for name in (errand.one, errand.other) if name != "-")
        return [record for record in found if record is not None]

    def now(self) -> datetime:
        """The time, never before the newest record; refused if the clock is far behind it."""
        return datetime.fromisoformat(self._now())

    def _now(self) -> str:
        read, last = self.clock(), self.books.last
        if last is None or read >= last.time:
            return write_time(read)
        if last.time - read > SLACK:
            raise LedgerRefusal(
                "L7",
                "the clock is behind the newest record of the ledger.",
                why="what has expired could come back, and nobody could say what was lost when.",
                fix=f"set the clock; the newest record is of {last.at}.",
            )
        return last.at


class _Errand(Generic[T]):
    """What a thread has to write, and what came of it."""

    def __init__(self, work: Callable[[Writer], T], one: str, other: str) -> None:
        self.work = work
        self.one, self.other = one, other
        self.done = False  # committed, or failed by itself
        self.given_up = False  # nobody waits for it any more
        self._found: list[T] = []
        self._failure: Exception | None = None

    def run(self, make: Callable[[], Writer]) -> Writer | None:
        """Do it; the writer, unless it fails: then what it appended is forgotten with it."""
        self._found, self._failure = [], None
        try:
            writer = make()
            self._found.append(self.work(writer))
        except MemoryError:  # SQLite may have undone the transaction: the others' with it
            raise
        except Exception as failure:
            self._failure = failure
            return None
        return writer

    def outcome(self) -> T:
        """What came of it, for the thread that waited."""
        if self._failure is not None:
            raise self._failure
        return self._found[0]


class Writer:
    """Appends records within one transaction."""

    def __init__(self, books: Books, now: str, newest: list[Record]) -> None:
        self.newest = newest
        """The newest records about what was asked for, as of the transaction's beginning."""
        self._books = books
        self._last = books.last
        self._now = now
        self._appended: list[tuple[Record, dict[str, Any], bytes | None]] = []

    @property
    def now(self) -> datetime:
        """The time of this transaction."""
        return datetime.fromisoformat(self._now)

    def append(
        self,
        kind: str,
        content: dict[str, Any],
        *,
        dataset: str = "",
        analyst: str = "",
        subject: str = "",
        sequence: int | None = None,
        answer: bytes | None = None,
    ) -> Record:
        """Add one record; durable when the transaction ends."""
        record = next_record(
            self._last,
            kind,
            content,
            at=self._now,
            dataset=dataset,
            analyst=analyst,
            subject=subject,
            sequence=sequence,
        )
        self._last = record
        self._appended.append((record, content, answer))
        return record

    def hand_over(self, store: Store) -> None:
        """Let the store have what was appended, to be committed."""
        for record, _, answer in self._appended:
            store.append(record, answer)

    def enter(self, books: Books) -> None:
        """Let the books say what was appended."""
        for record, content, _ in self._appended:
            books.apply(record, content)

    def snapshot(self) -> None:
        """Add all balances, as they were before this transaction."""
        self.append(SNAPSHOTS, self._books.to_snapshot(), subject=SNAPSHOTS)

    def append_snapshot_if_due(self) -> None:
        """Add all balances if enough was recorded since the last time; first in a transaction."""
        if self._books.snapshot_is_due():
            self.snapshot()


def _first_of(books: Books) -> int:
    """Where what is new begins: at the last record known, which must still be the same."""
    return 1 if books.last is None else books.last.sequence


def _check_format(first: Record) -> None:
    content = _understand(lambda: first.content)
    if first.kind != "ledger" or not first.follows(None):
        raise refusals.corrupt("the ledger's first record was altered.")
    if content.get("format") != FORMAT:
        raise LedgerRefusal(
            "L3",
            "the ledger was written by another version of discreet.",
            why="a record that is misread could forget what somebody has lost.",
            fix="open it with the version that wrote it, or a later one.",
        )


def _understand(read: Callable[[], Any]) -> Any:
    """What a record says; records that say nothing sensible are damage."""
    try:
        return read()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise refusals.corrupt("a record of the ledger cannot be understood.") from None
