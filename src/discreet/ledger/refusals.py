"""What the ledger says when it cannot go on."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import LedgerRefusal


class Missing(LedgerRefusal, LookupError):
    """Nothing in the ledger has that number or name; also a ``LookupError``."""


def cannot_open(what: str, fix: str) -> LedgerRefusal:
    """There is no ledger at the address, or no way to it."""
    return LedgerRefusal(
        "L1",
        what,
        why="without its account nobody knows what the people in the data have lost already.",
        fix=fix,
    )


def nowhere(address: object) -> LedgerRefusal:
    """There is none, and none is to be made."""
    return cannot_open(
        f"there is no ledger at {address}.",
        "give the address of the ledger, or start one with `discreet init`.",
    )


def corrupt(what: str) -> LedgerRefusal:
    """The file or the chain is damaged."""
    return LedgerRefusal(
        "L2",
        what,
        why="a charge that is missing from the account would be charged to nobody.",
        fix="keep the file as it is, look at `ledger verify`, and restore the newest backup "
        "with the newest checkpoint.",
    )


def stopped_refusal() -> LedgerRefusal:
    """A write failed; whether it reached the disk is not known."""
    return LedgerRefusal(
        "L5",
        "a write to the ledger failed, and it has stopped.",
        why="after a failed write nobody knows what is on the disk; a second try could report "
        "as durable what is not.",
        fix="see to the disk or the server, then open the ledger again: what was durably "
        "charged is still there.",
    )


def busy() -> LedgerRefusal:
    """Somebody else holds the lock for too long."""
    return LedgerRefusal(
        "L6",
        "another process has held the ledger for too long; nothing was charged.",
        why="two charges at once could pass the same check.",
        fix="ask again; if it goes on, look for a process that hangs.",
    )


def closed_refusal() -> LedgerRefusal:
    """The object is no longer usable."""
    return LedgerRefusal(
        "L14",
        "this ledger was closed, or was opened in another process.",
        why="a connection shared by two processes can damage the account.",
        fix="open the ledger again: Ledger.open(address).",
    )


def missing(what: str) -> Missing:
    """Nothing in the ledger has that number or name."""
    return Missing(
        "L12",
        what,
        why="an answer must belong to a question that was paid for.",
        fix="list what there is: account.transcript().",
    )


def no_export(file: Path) -> LedgerRefusal:
    """There is no such export; a directory may be the session whose own ledger is meant."""
    session = file if file.is_dir() else "DIR"
    return cannot_open(
        f"{file} is a directory and not a file." if file.is_dir() else f"there is no file {file}.",
        "give a file of `discreet ledger export`; your own ledger is checked by `discreet ledger "
        f"verify -s {session}`.",
    )


def exists(address: object, *, lost: str = "") -> LedgerRefusal:
    """Something is there already; ``lost`` says what writing over it would do."""
    return LedgerRefusal(
        "L13",
        f"{address} is there already.",
        why=lost or "a ledger that is overwritten forgets what the people in the data have lost.",
        fix="give a path at which there is nothing, or move the old file away.",
    )
