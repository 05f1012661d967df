"""The log and what it adds up to, kept together: read what is new, check, append, commit.

One charge reads the records that are new (normally none but the last), inserts one and commits:
its cost does not grow with the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from discreet.errors import LedgerRefusal
from discreet.ledger import refusals
from discreet.ledger.books import FORMAT, Books, Record, next_record, write_time
from discreet.ledger.store import Lookup, Store
from discreet.noise.entropy import random_bytes

Clock = Callable[[], datetime]

SLACK = timedelta(minutes=5)
"""How far the clock may be behind the newest record; further, and nothing is written."""

_BATCH = 2000
"""As many records are read at once."""

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
        newest = self.store.last(SNAPSHOTS)
        if newest is not None:
            if newest.kind != SNAPSHOTS or not newest.intact:
                raise refusals.corrupt("a record of all balances was altered.")
            self.books = _understand(partial(Books.from_snapshot, newest))
        self.catch_up()
        if self.books.snapshot_is_due():  # the next opening need not read as much
            with self.writing() as writer:
                writer.snapshot()

    def catch_up(self) -> Books:
        """Take in the records that are new; the last one known must still be there."""
        with self._lock:
            self._take_all(self.store.since(self._first, _BATCH))
            return self.books

    @property
    def _first(self) -> int:
        """Where what is new begins: at the last record known, which must still be the same."""
        return 1 if self.books.last is None else self.books.last.sequence

    def _take_all(self, batch: list[Record]) -> None:
        if not batch and self.books.last is not None:
            raise refusals.corrupt("records that were there are gone.")
        self._take(batch)
        while len(batch) == _BATCH:
            batch = self.store.since(self._first, _BATCH)
            self._take(batch)

    def _take(self, batch: list[Record]) -> None:
        for record in batch:
            last = self.books.last
            if last is not None and record.sequence == last.sequence:
                if record != last:
                    raise refusals.corrupt(f"record {record.sequence} was altered.")
                continue
            if not record.follows(last):
                raise refusals.corrupt(f"record {record.sequence} does not follow the one before.")
            _understand(partial(self.books.apply, record))

    @contextmanager
    def reading(self) -> Iterator[Books]:
        """The books, up to date, while nobody in this process changes them."""
        with self._lock:
            yield self.catch_up()

    # --- writing ----------------------------------------------------------------------------

    @contextmanager
    def writing(self, one: str = "-", other: str = "-") -> Iterator[Writer]:
        """One transaction: everything known is up to date, and nobody else writes.

        What is appended counts only once it is committed.  Of two subjects, the newest
        records are looked up.
        """
        with self._lock:
            with self.store.transaction(Lookup(one, other, self._first, _BATCH)) as found:
                self._take_all(found.since)
                writer = Writer(self.store, self.books, self._now(), found.newest)
                yield writer
            for record, content in writer.appended:
                self.books.apply(record, content)

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


class Writer:
    """Appends records within one transaction."""

    def __init__(self, store: Store, books: Books, now: str, newest: list[Record]) -> None:
        self.newest = newest
        """The newest records about what was asked for, as of the transaction's beginning."""
        self._store = store
        self._books = books
        self._last = books.last
        self._now = now
        self.appended: list[tuple[Record, dict[str, Any]]] = []

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
        self._store.append(record, answer)
        self._last = record
        self.appended.append((record, content))
        return record

    def snapshot(self) -> None:
        """Add all balances, as they were before this transaction."""
        self.append(SNAPSHOTS, self._books.to_snapshot(), subject=SNAPSHOTS)

    def append_snapshot_if_due(self) -> None:
        """Add all balances if enough was recorded since the last time; first in a transaction."""
        if self._books.snapshot_is_due():
            self.snapshot()


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
