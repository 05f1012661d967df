"""What a transaction reads as it begins, in one statement: the records that are new, and some more.

Each statement is a journey where the store is a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, literal, select, union_all

from discreet.ledger import refusals
from discreet.ledger.chain import Record
from discreet.ledger.tables import records


def _newest(name: str) -> Any:
    about = select(*records.c).where(records.c.subject == bindparam(name))
    return about.order_by(records.c.sequence.desc()).limit(1)


LAST = _newest("one")
"""The newest record of a subject."""
SINCE = (
    select(*records.c)
    .where(records.c.sequence >= bindparam("first"))
    .order_by(records.c.sequence)
    .limit(bindparam("most"))
)
"""The records from some number on, in order."""
NEWS = union_all(
    *(
        select(*part.subquery().c, literal(new))
        for part, new in ((_newest("one"), False), (_newest("other"), False), (SINCE, True))
    )
)
"""What is ``Wanted``; the last column tells what is new from what is newest."""


@dataclass(frozen=True, slots=True)
class Wanted:
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
class News:
    """What a transaction found as it began."""

    newest: list[Record]
    """The newest record of each subject."""
    since: list[Record]
    """Those from some number on, in order."""

    @classmethod
    def of(cls, rows: Sequence[Any]) -> News:
        """What the rows say that were read."""
        since = [record_of(row[:-1]) for row in rows if row[-1]]
        since.sort(key=lambda record: record.sequence)
        return cls([record_of(row[:-1]) for row in rows if not row[-1]], since)


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row; refused if somebody stored other types."""
    if not all(isinstance(part, str) for part in row[1:]):
        raise refusals.corrupt(f"record {row[0]} was altered.")
    return Record(*row)
