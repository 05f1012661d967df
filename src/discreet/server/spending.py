"""What was spent by when: the ledger added up again, read off at the end of each hour or day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet.ledger import Balance, Ledger
from discreet.ledger.books import Books
from discreet.question.blocks import Space
from discreet.release.amounts import loss_json

_BATCH = 2000
_DIGITS = {"hour": 13, "day": 10}
"""How much of a record's time (2026-05-03T14:...) names the hour, the day."""
MOST_POINTS = 2000


def spending(ledger: Ledger, dataset: str, by: str, analyst: str | None = None) -> dict[str, Any]:
    """One point for each hour or day in which something was charged, by anybody or by one."""
    books = Books()
    since: str | None = None
    points: dict[str, dict[str, Any]] = {}
    questions = 0
    for record in _records(ledger):
        books.apply(record)
        if record.dataset == dataset and since is None:
            since = record.at
        if record.dataset != dataset or record.kind not in ("charge", "renew"):
            continue
        if analyst is not None and record.kind == "charge" and record.analyst != analyst:
            continue
        questions += record.kind == "charge"
        points[record.at[: _DIGITS[by]]] = {
            "at": record.at,
            **_write_spent(books, dataset, analyst),
            "questions": questions,
        }
    return {"points": list(points.values())[-MOST_POINTS:], "since": since}


def _records(ledger: Ledger) -> Iterator[Any]:
    after = 0
    while batch := ledger.records(after=after, limit=_BATCH):
        yield from batch
        after = batch[-1].sequence


def _write_spent(books: Books, dataset: str, analyst: str | None) -> dict[str, Any]:
    standing = books.datasets[dataset]
    space = Space.from_identity(standing.space)
    spent, budget = standing.spent, standing.budget
    if analyst is not None:
        spent, budget = standing.find_spent_by(analyst), standing.limit(analyst) or budget
    balance = Balance(dataset, analyst, budget, space, spent)
    return {"spent": loss_json(balance.spent), "share": balance.share(balance.fullest())}
