"""What auditors see: records, verification, checkpoints."""

from __future__ import annotations

from typing import Any

from discreet.server.models.base import Given


class Record(Given):
    """A record of the ledger."""

    sequence: int
    kind: str
    at: str
    analyst: str
    body: dict[str, Any]
    digest: str


class Records(Given):
    """Records of the ledger, in order."""

    records: list[Record]
    first: int
    last: int


class Verification(Given):
    """Whether the ledger holds together."""

    holds: bool
    records: int
    head: str
    findings: list[str]
    text: str


class Checkpoint(Given):
    """A signed statement of where the ledger stands."""

    sequence: int
    digest: str
    at: str
    signature: str | None
    public_key: str | None


class Checkpoints(Given):
    """The checkpoints the ledger knows."""

    checkpoints: list[Checkpoint]
