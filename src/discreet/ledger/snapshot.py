"""All balances in one record, so that opening need not read the whole log.

A snapshot is part of the chain and claims nothing new: ``verify`` adds up all records again and
compares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.ledger.books import Balances, Books, Standing, budget_of, layout, packed, unpacked
from discreet.ledger.chain import Record
from discreet.ledger.people import Analyst, Key, Policy
from discreet.release.record import canonical, to_json

LEAST_PERIOD = 2048
"""Records between two snapshots, at least; more where balances are many, so that the cost of
writing them stays a small part of every charge."""


def due(books: Books) -> bool:
    """Whether enough was recorded since the last snapshot."""
    cells = sum(3 * s.size * (1 + len(s.shares)) for s in books.datasets.values())
    period = max(LEAST_PERIOD, cells // 32)
    return books.last is not None and books.last.sequence - books.snapshot >= period


def to_content(books: Books) -> dict[str, Any]:
    """What a snapshot records."""
    return {
        "identity": books.identity,
        "restores": [list(pair) for pair in books.restores],
        "datasets": {name: _standing_json(s) for name, s in books.datasets.items()},
    }


def from_record(record: Record) -> Books:
    """The books as a snapshot recorded them."""
    content = record.content
    return Books(
        last=record,
        identity=content["identity"],
        datasets={name: _standing(found) for name, found in content["datasets"].items()},
        restores=[(kept, lost) for kept, lost in content["restores"]],
        snapshot=record.sequence,
    )


def _standing_json(standing: Standing) -> dict[str, Any]:
    return {
        "budget": to_json(standing.budget),
        "policy": standing.policy.to_json(),
        "version": standing.version,
        "people": standing.people,
        "space": standing.space,
        "analysts": [analyst.to_json() for analyst in standing.analysts.values()],
        "keys": [key.to_json() for key in standing.keys.values()],
        "spent": _packed(standing.spent),
        "shares": {name: _packed(share) for name, share in standing.shares.items()},
    }


def _standing(found: dict[str, Any]) -> Standing:
    analysts = [Analyst.from_json(a) for a in found["analysts"]]
    keys = [Key.from_json(k) for k in found["keys"]]
    return Standing(
        budget=budget_of(canonical(found["budget"])),
        policy=Policy.from_json(found["policy"]),
        version=found["version"],
        people=found["people"],
        space=found["space"],
        layout=layout(found["space"]),
        spent=_unpacked(found["spent"]),
        analysts={analyst.name: analyst for analyst in analysts},
        keys={key.key_id: key for key in keys},
        shares={name: _unpacked(share) for name, share in found["shares"].items()},
    )


def _packed(balances: Balances) -> str:
    """Eight bytes, least first, for each unit."""
    return packed(balances.astype("<i8").tobytes())


def _unpacked(text: str) -> Balances:
    return np.frombuffer(unpacked(text), dtype="<i8").astype(np.int64).reshape(3, -1)
