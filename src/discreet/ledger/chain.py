"""Records, each bound to all that came before by a digest.

The digest of a record covers its number, its time, everything it says and the digest of the record
before.  Whoever edits, removes or reorders records must recompute every later digest, and then the
last one is not the one that a checkpoint names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from discreet.exact.canonical import canonical_json

FORMAT: Final = 1
"""The version of what records mean; recorded meanings never change."""

BEGINNING: Final = ""
"""What stands for the digest before the first record."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the ledger."""

    sequence: int
    kind: str
    at: str
    dataset: str
    analyst: str
    subject: str
    """What later records are looked up by: for a charge, which question about which data."""
    body: str
    previous: str
    digest: str

    @property
    def content(self) -> dict[str, Any]:
        """What the record says, read from its JSON."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def time(self) -> datetime:
        """When it was written, by the curator's clock."""
        return datetime.fromisoformat(self.at)

    @property
    def intact(self) -> bool:
        """Whether the digest is that of what the record says."""
        return self.digest == _digest(self._said())

    def follows(self, last: Record | None) -> bool:
        """Whether this record comes directly after ``last`` and says what it said when written.

        Numbers have no gaps, but for the one that a restoration leaves: it numbers
        itself after the lost records that a checkpoint proves there were.
        """
        if last is None:
            return self.sequence == 1 and self.previous == BEGINNING and self.intact
        next_number = self.sequence == last.sequence + 1
        gap = self.kind == "restore" and self.sequence > last.sequence
        in_time = self.at >= last.at
        return (next_number or gap) and in_time and self.previous == last.digest and self.intact

    def _said(self) -> list[Any]:
        return [
            *(self.sequence, self.kind, self.at, self.dataset),
            *(self.analyst, self.subject, self.body, self.previous),
        ]

    def to_line(self) -> str:
        """One line of an export."""
        return canonical_json([*self._said(), self.digest])

    @classmethod
    def from_line(cls, line: str) -> Record:
        """The record of one line of an export."""
        parts = json.loads(line)
        if not isinstance(parts, list) or len(parts) != 9 or type(parts[0]) is not int:
            raise ValueError("not a record")
        if not all(isinstance(part, str) for part in parts[1:]):
            raise ValueError("not a record")
        return cls(*parts)


def next_record(
    last: Record | None,
    kind: str,
    content: dict[str, Any],
    *,
    at: str,
    dataset: str = "",
    analyst: str = "",
    subject: str = "",
    sequence: int | None = None,
) -> Record:
    """The record of ``content`` that comes after ``last``."""
    number = sequence or (1 if last is None else last.sequence + 1)
    previous = BEGINNING if last is None else last.digest
    said: list[Any] = [
        number,
        kind,
        at,
        dataset,
        analyst,
        subject,
        canonical_json(content),
        previous,
    ]
    return Record(number, kind, at, dataset, analyst, subject, said[6], previous, _digest(said))


def write_time(time: datetime) -> str:
    """A time as records write it: texts of one length, in the order of the times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def digest_subject(*parts: str) -> str:
    """One name for several texts; no two lists of texts have the same."""
    # Half characters are escaped as JSON would: whoever has such a name is refused later.
    text = canonical_json(list(parts)).encode(errors="backslashreplace")
    return hashlib.sha256(text).hexdigest()


def _digest(said: Sequence[Any]) -> str:
    return hashlib.sha256(canonical_json(list(said)).encode()).hexdigest()
