"""The account: charges, balances and answers, append-only, durable and tamper-evident.

A charge is on the disk before data is read, an answer is stored before it is shown, and what was
charged stays charged.  The log is the account: every balance is a sum over records, each bound to
all before it by a digest.  How it is kept, checked and restored: ``docs/ledger.md``.

What is named here is imported when first used: a client reads keys and transcripts, and has no
database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.ledger.account import Account
    from discreet.ledger.analysts import AccessKey, Analyst, Group, Policy
    from discreet.ledger.balance import Balance, EntityBalance
    from discreet.ledger.books import Record
    from discreet.ledger.charges import About, Entry, Receipt, Request, State, Stored
    from discreet.ledger.checkpoint import Checkpoint, new_signing_key
    from discreet.ledger.copies import verify_export
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.people import People
    from discreet.ledger.verify import Verification

_HOME = {
    "About": "charges",
    "AccessKey": "analysts",
    "Account": "account",
    "Analyst": "analysts",
    "Balance": "balance",
    "EntityBalance": "balance",
    "Checkpoint": "checkpoint",
    "Entry": "charges",
    "Ledger": "ledger",
    "Group": "analysts",
    "People": "people",
    "Policy": "analysts",
    "Receipt": "charges",
    "Record": "books",
    "Request": "charges",
    "State": "charges",
    "Stored": "charges",
    "Verification": "verify",
    "new_signing_key": "checkpoint",
    "verify_export": "copies",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"discreet.ledger.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.ledger' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "About",
    "AccessKey",
    "Account",
    "Analyst",
    "Balance",
    "Checkpoint",
    "EntityBalance",
    "Entry",
    "Group",
    "Ledger",
    "People",
    "Policy",
    "Receipt",
    "Record",
    "Request",
    "State",
    "Stored",
    "Verification",
    "new_signing_key",
    "verify_export",
]
