"""A small dataset, and requests about it, for every test of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.errors import BudgetRefusal
from discreet.ledger import Account, Ledger, Policy, Request
from discreet.question.blocks import Area
from discreet.question.schema import Schema

BUDGET = Budget(epsilon=3, delta="1e-6")
REGIONS = ("north", "south", "west")
NORTH, SOUTH, WEST = 1, 2, 3  # block 0 is everyone else


def schema(*regions: str, unit: str = "patient", blocks: bool = True) -> Schema:
    """One table of visits, in blocks by region."""
    listed = ", ".join(f'"{region}"' for region in regions or REGIONS)
    return Schema.from_text(f"""
    [tables.visits]
    unit = "{unit}"
    max_rows_per_unit = {1 if unit == "row" else 7}
    {'blocks = ["region"]' if blocks else ""}
    [tables.visits.columns]
    patient = "integer"
    region = {{ type = "text", values = [{listed}], nullable = false }}
    """)


def opened(ledger: Ledger, *, budget: Budget = BUDGET, policy: Policy | None = None) -> Account:
    return ledger.account("clinic", schema=schema(), budget=budget, policy=policy)


def request(
    account: Account,
    key: str = "a question",
    *,
    loss: Loss | str = "1/2",
    blocks: tuple[int, ...] | None = None,
    analyst: str = "curator",
    version: str = "monday",
) -> Request:
    """A question about some blocks (all, unless they are named), at a pure loss or another."""
    ranges = ((0, account.space.size),)
    if blocks is not None:
        mask = np.isin(np.arange(account.space.size), blocks)
        ranges = Area.of(account.space, mask).ranges
    cost = loss if isinstance(loss, Loss) else Loss.pure(loss)
    area = Area(account.space, ranges)
    return Request(analyst, f"SELECT {key}", {"epsilon": "1/2"}, key, version, cost, area)


def spend_all(path: Path, name: str) -> int:
    """Ask in this process until the account refuses; how often it paid."""
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        for part in range(1000):
            try:
                account.charge(request(account, f"{name} {part}", loss="1/8"))
            except BudgetRefusal:
                return part
    raise AssertionError("the budget has no end")


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.time = datetime(2030, 5, 17, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_(self, **time: float) -> None:
        self.time += timedelta(**time)
