"""Idempotency keys: a request that is sent again is the same request.

The ledger already answers an identical question for free; what it cannot know
is that a question asked again after the data have changed was meant as a retry.
So the first use of a key is written down before anything is charged: which
question, on which data.  A retry finds its charge again and never pays twice.

The file outlives a killed process (not a power cut: then the ledger's own rule
still holds, and only a retry across a change of the data would be a new question).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import AccessRefusal

KEPT = 100_000
"""Keys that are remembered of one analyst, or a few more; the oldest of their own go first."""

_TABLES = """
CREATE TABLE IF NOT EXISTS used (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    analyst TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, data_version TEXT NOT NULL,
    answer INTEGER, UNIQUE (analyst, key)
);
CREATE TABLE IF NOT EXISTS shown (
    analyst TEXT NOT NULL, answer INTEGER NOT NULL, asked BLOB, PRIMARY KEY (analyst, answer)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS used_by_analyst ON used (analyst, number);
"""
_FORGET = """
DELETE FROM used WHERE analyst = :analyst AND number <= (
    SELECT number FROM used WHERE analyst = :analyst ORDER BY number DESC LIMIT 1 OFFSET :kept
)
"""


@dataclass(frozen=True, slots=True)
class Use:
    """The first request that came with a key."""

    request: str
    data_version: str
    answer: int | None


class IdempotencyKeys:
    """The keys that were used, and which stored answers were replayed to whom."""

    def __init__(self, file: Path | None) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:" if file is None else file, check_same_thread=False, isolation_level=None
        )
        if file is not None:
            file.chmod(0o600)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_TABLES)
        with suppress(sqlite3.OperationalError):  # it is there; earlier versions had none
            self._connection.execute("ALTER TABLE shown ADD COLUMN asked BLOB")

    def remember(self, analyst: str, key: str, request: str, data_version: str) -> Use:
        """The first use of ``key`` by ``analyst``: this one, unless there was one before."""
        with self._lock:
            added = self._connection.execute(
                "INSERT OR IGNORE INTO used (analyst, key, request, data_version) "
                "VALUES (?, ?, ?, ?)",
                (analyst, key, request, data_version),
            )
            if added.rowcount:
                if (added.lastrowid or 0) % max(1, KEPT // 100) == 0:  # finding them takes steps
                    self._connection.execute(_FORGET, {"analyst": analyst, "kept": KEPT})
                return Use(request, data_version, None)
            found = self._connection.execute(
                "SELECT request, data_version, answer FROM used WHERE analyst = ? AND key = ?",
                (analyst, key),
            ).fetchone()
        return Use(*found)

    def link_charge(self, analyst: str, key: str, answer: int) -> None:
        """The request with that key was charged under that number."""
        with self._lock:
            self._connection.execute(
                "UPDATE used SET answer = ? WHERE analyst = ? AND key = ?", (answer, analyst, key)
            )

    def mark_shown(self, analyst: str, answer: int, asked: bytes = b"") -> None:
        """A stored answer was replayed to somebody who had not paid for it; what they ``asked``."""
        self.mark_all_shown([(analyst, answer, asked)])

    def mark_all_shown(self, shown: Sequence[tuple[str, int, bytes]]) -> None:
        """Several were: to whom, which, and what they asked; written together."""
        with self._lock, self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT OR IGNORE INTO shown (analyst, answer, asked) VALUES (?, ?, ?)", shown
            )

    def find_asked(self, analyst: str, answer: int) -> bytes:
        """What an answer was to, for somebody who had not paid for it; empty if nobody knows."""
        with self._lock:
            found = self._connection.execute(
                "SELECT asked FROM shown WHERE analyst = ? AND answer = ?", (analyst, answer)
            ).fetchone()
        return b"" if found is None else found[0] or b""

    def was_shown(self, analyst: str, answer: int) -> bool:
        """Whether that answer was ever replayed to ``analyst``."""
        with self._lock:
            found = self._connection.execute(
                "SELECT 1 FROM shown WHERE analyst = ? AND answer = ?", (analyst, answer)
            ).fetchone()
        return found is not None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()


def fingerprint(request: Mapping[str, Any]) -> str:
    """What makes two requests the same: the question and the spend."""
    text = json.dumps(request, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def check(use: Use, request: str, data_version: str) -> None:
    """Refuse a key that stands for another question, or that can no longer be finished."""
    if use.request != request:
        raise _reused_refusal("this idempotency key came with another question before.")
    if use.answer is None and use.data_version != data_version:
        raise _reused_refusal("the data have changed since this request was first made.")


def _reused_refusal(what: str) -> AccessRefusal:
    return AccessRefusal(
        "A16",
        what,
        why="a retry must not be charged again, nor answered with something else. "
        "Nothing was charged.",
        fix="send the question with a new Idempotency-Key.",
    )
