"""Saved questions: named, in folders, each with what was offered for it; everybody has their own.

What is saved is text. Showing a folder asks each of its questions without an offer, so that what
is known is told and nothing is ever paid by looking.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import AccessRefusal

MOST_SAVED = 500
"""Questions that one analyst may keep."""

_TABLE = """
CREATE TABLE IF NOT EXISTS saved (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    analyst TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL,
    question TEXT NOT NULL, offer TEXT NOT NULL, UNIQUE (analyst, folder, name)
)
"""


@dataclass(frozen=True, slots=True)
class Saved:
    """A question that somebody keeps."""

    id: int
    folder: str
    name: str
    question: str
    offer: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        told = {"folder": self.folder, "name": self.name, "question": self.question}
        return {"id": str(self.id), **told, "offer": dict(self.offer)}


class SavedQuestions:
    """What everybody keeps; losing the file loses no charge and no answer."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        file.chmod(0o600)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(_TABLE)

    def list(self, analyst: str) -> list[Saved]:
        """What an analyst keeps, by folder and name."""
        with self._lock:
            found = self._connection.execute(
                "SELECT number, folder, name, question, offer FROM saved WHERE analyst = ? "
                "ORDER BY folder, name",
                (analyst,),
            ).fetchall()
        return [
            Saved(number, folder, name, question, json.loads(offer))
            for number, folder, name, question, offer in found
        ]

    def keep(
        self, analyst: str, folder: str, name: str, question: str, offer: Mapping[str, Any]
    ) -> Saved:
        """Keep a question, in the place of one with the same name in the same folder."""
        words = json.dumps(dict(offer), default=str)
        with self._lock:
            (kept,) = self._connection.execute(
                "SELECT COUNT(*) FROM saved WHERE analyst = ? AND NOT (folder = ? AND name = ?)",
                (analyst, folder, name),
            ).fetchone()
            if kept >= MOST_SAVED:
                raise AccessRefusal(
                    "A15",
                    f"{MOST_SAVED} questions are saved already.",
                    why="what is kept for one takes place from all. Nothing was charged.",
                    fix="remove one first.",
                )
            (number,) = self._connection.execute(
                "INSERT INTO saved (analyst, folder, name, question, offer) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT (analyst, folder, name) DO UPDATE "
                "SET question = excluded.question, offer = excluded.offer RETURNING number",
                (analyst, folder, name, question, words),
            ).fetchone()
        return Saved(number, folder, name, question, json.loads(words))

    def remove(self, analyst: str, number: int) -> bool:
        """Whether it was there, and the analyst's own; it is no more."""
        with self._lock:
            gone = self._connection.execute(
                "DELETE FROM saved WHERE analyst = ? AND number = ?", (analyst, number)
            )
        return gone.rowcount > 0

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()
