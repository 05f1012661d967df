"""Copies of a ledger: for an auditor, for a rainy day, and back again.

The log only grows, so a copy of all records up to some number is consistent however long the
copying takes, and needs no lock but for the moment in which the counts of refusals are read.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from discreet.errors import InvalidParameter, LedgerRefusal
from discreet.exact.numbers import canonical_json
from discreet.ledger import checkpoint as checkpoints
from discreet.ledger import refusals
from discreet.ledger.books import Record, next_record, write_time
from discreet.ledger.checkpoint import Checkpoint
from discreet.ledger.connection import find_file
from discreet.ledger.journal import Clock, Journal
from discreet.ledger.store import Store, sync_folder
from discreet.noise.entropy import random_bytes

if TYPE_CHECKING:
    from discreet.ledger.verify import Verification


def export(store: Store, file: Path, *, answers: bool) -> int:
    """Write all records as JSON lines; how many there are."""
    count = 0

    def fill(stream: TextIO) -> None:
        nonlocal count
        head = store.head()
        for batch in store.batches(last=None if head is None else head.sequence):
            for record in batch:
                stream.write(record.to_line() + "\n")
                count += 1
                stored = store.answer(record.sequence) if answers and _is_released(record) else None
                if stored is not None:
                    line = {"answer": base64.b64encode(stored).decode(), "record": record.sequence}
                    stream.write(canonical_json(line) + "\n")

    _write_whole(file, fill)
    return count


def _is_released(record: Record) -> bool:
    return record.kind in ("release", "step")


def _write_whole(file: Path, fill: Callable[[TextIO], None]) -> None:
    """Write a new file: all of it under its name, or nothing."""
    if file.exists():
        lost = "a copy that is overwritten may be the last that shows what was charged."
        raise refusals.exists(file, lost=lost)
    draft = file.with_name(f".{file.name}.{random_bytes(4).hex()}")
    try:
        with draft.open("x", encoding="utf-8") as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        draft.rename(file)
        sync_folder(file.parent)
    except OSError:
        raise refusals.cannot_open(
            f"{file} cannot be written.", "give a place that can be written to."
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def verify_export(
    file: Path, *, checkpoint: Path | None = None, public_key: str | None = None
) -> Verification:
    """Check the exported log ``file``, without the database.

    ``public_key`` is whose signature checkpoints must have. Against a ``checkpoint`` that the
    auditor was given, a log that was cut short or rewritten is found out.
    """
    from discreet.ledger.verify import verify_records  # not when an account is opened

    if not Path(file).is_file():
        raise refusals.no_export(Path(file))
    shown = () if checkpoint is None else checkpoints.read(Path(checkpoint))
    try:
        stored = any("answer" in line for line in _answer_lines(file))
        return verify_records(
            _batches(file),
            answers=_answers(file) if stored else None,
            checkpoints=shown,
            public_key=public_key,
        )
    except (OSError, ValueError, KeyError):
        raise refusals.corrupt(f"{file} cannot be read as an exported ledger.") from None


def _batches(file: Path) -> Iterator[list[Record]]:
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            if line.startswith("["):
                yield [Record.from_line(line)]
            elif not line.startswith('{"answer":'):
                raise ValueError("not a line of an export")


def _answer_lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as stream:
        yield from (json.loads(line) for line in stream if line.startswith('{"answer":'))


def _answers(file: Path) -> Iterator[tuple[int, bytes]]:
    for line in _answer_lines(file):
        yield int(line["record"]), base64.b64decode(line["answer"])


# --- new files -------------------------------------------------------------------------------


@contextmanager
def create_store(path: Path) -> Iterator[Store]:
    """A new SQLite store that appears at ``path`` whole, or not at all; first come, first kept."""
    draft = path.with_name(f".{path.name}.{random_bytes(4).hex()}")
    try:
        with closing(Store(draft)) as store:
            yield store
            store.compact()
        _link_file(draft, path)
        sync_folder(path.parent)
    except FileExistsError:
        raise refusals.exists(path) from None
    except OSError:
        raise refusals.cannot_open(
            f"{path} cannot be written.", "give a place that can be written to."
        ) from None
    finally:
        with suppress(OSError):  # what is left of a draft does no harm
            for left in path.parent.glob(f"{draft.name}*"):
                left.unlink(missing_ok=True)


def _link_file(draft: Path, path: Path) -> None:
    """Give a file its name; a link, unlike a renaming, never replaces what is there."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(path) from None
        draft.rename(path)


def begin(path: Path, *, clock: Clock) -> None:
    """Begin a ledger in a new file."""
    try:
        with create_store(path) as store:
            Journal(store, clock=clock, begin=True)
    except LedgerRefusal:
        if not path.exists():  # otherwise somebody else began it at the same time
            raise


# --- backup and restore ----------------------------------------------------------------------


def back_up(store: Store, file: Path) -> int:
    """Copy everything into a new SQLite file; how many records it has."""
    if file.exists():
        raise refusals.exists(file)
    with create_store(file) as copy, copy.transaction():
        count, _, _ = _copy_all(store, copy)
    return count


def _copy_all(source: Store, target: Store) -> tuple[int, Record, list[Record]]:
    """Copy all records and answers, checking the chain on the way; within one transaction.

    How many there are, the last of them, and the charges that are still open.
    """
    with source.transaction():  # both as of one moment
        head, tallies = source.head(), source.tallies()
    count, last = 0, None
    charges: dict[str, Record] = {}
    for batch in source.batches(last=None if head is None else head.sequence):
        for record in batch:
            if not record.follows(last):
                raise refusals.corrupt(f"record {record.sequence} does not follow the one before.")
            target.append(record, source.answer(record.sequence) if _is_released(record) else None)
            last = record
            if record.kind == "charge":
                charges[record.subject] = record
            elif record.kind in ("release", "burn", "halt"):
                charges.pop(record.subject, None)
        count += len(batch)
    if last is None:
        raise refusals.corrupt("the backup is empty.")
    for tally in tallies:
        target.count_refusals(tally)
    return count, last, list(charges.values())


def restore(
    address: str | Path, backup: Path, *, reason: str, shown: Path | None, clock: Clock
) -> None:
    """Begin a ledger at ``address`` with the records of ``backup``, and count all as spent.

    Copies and owns up in one transaction: a half-restored ledger would be an old copy.
    Charges that were open are burnt: each may have been answered in the time that was lost,
    and to finish it would be a second answer for one charge.
    """
    if not reason.strip():
        raise InvalidParameter(
            "P4",
            "a restoration needs a reason.",
            why="records that are lost were somebody's losses, and they may ask why.",
            fix="restore(..., reason='the disk of 3 May failed').",
        )
    path = find_file(address)
    if path is not None and path.exists():
        raise refusals.exists(path)
    newest = None if shown is None else checkpoints.find_newest(checkpoints.read(shown))
    with closing(Store(backup, create=False)) as source:
        _check_origin(source, newest)
        with closing(Store(address)) if path is None else create_store(path) as target:
            if target.head() is not None:
                raise refusals.exists("a ledger")
            with target.transaction():
                _, last, unfinished = _copy_all(source, target)
                last = _restoration_record(last, newest, reason, clock)
                target.append(last)
                for charge in unfinished:
                    last = _burn_record(charge, last)
                    target.append(last)


def _restoration_record(
    last: Record, newest: Checkpoint | None, reason: str, clock: Clock
) -> Record:
    """The record of a restoration, numbered after all that are known to be lost."""
    lost = last.sequence if newest is None else max(last.sequence, newest.sequence)
    content = {
        "reason": reason,
        "kept": last.sequence,
        "lost": lost,
        "checkpoint": None if newest is None else newest.to_json(),
    }
    at = max(last.at, write_time(clock()))
    return next_record(last, "restore", content, at=at, sequence=lost + 1)


def _burn_record(charge: Record, last: Record) -> Record:
    """The record, after ``last``, that a charge will have no answer."""
    return next_record(
        last,
        "burn",
        {"charge": charge.sequence},
        at=last.at,
        dataset=charge.dataset,
        analyst=charge.analyst,
        subject=charge.subject,
    )


def _check_origin(source: Store, newest: Checkpoint | None) -> None:
    """Refuse a checkpoint of another ledger, and one that the backup contradicts."""
    first, last = source.record(1), source.head()
    if first is None or last is None:
        raise refusals.corrupt("the backup is empty.")
    if newest is None:
        return
    if first.content.get("identity") != newest.ledger:
        raise checkpoints.untrusted_refusal("the checkpoint is of another ledger.")
    if newest.sequence <= last.sequence and not newest.names(source.record(newest.sequence)):
        raise behind_refusal(
            "the backup contradicts the checkpoint: it is of a ledger that was rewritten."
        )


def behind_refusal(what: str) -> LedgerRefusal:
    """The ledger lacks what a checkpoint names."""
    return LedgerRefusal(
        "L4",
        what,
        why="what was charged since would be charged to nobody: an old copy gives the people in "
        "the data away twice.",
        fix="bring back the newest copy; if it is lost, `discreet ledger restore` counts the "
        "unknown time as spent.",
    )
