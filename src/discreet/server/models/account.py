"""Balances, spending and the transcript."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from discreet.server.models.base import Budget, Given, Price, Remaining


class Gauge(Given):
    """One account: the dataset's, an analyst's, a block's."""

    name: str
    budget: Budget | None
    spent: Price
    remaining: Remaining | None
    share: float = Field(description="the part that is used, from 0 to 1; for pictures")


class LostIn(Given):
    """What people who are in several datasets have lost in one of them."""

    name: str
    spent: Price


class EntityGauge(Gauge):
    """What people who are in several datasets have lost in all of them."""

    datasets: list[LostIn]


class Balance(Given):
    """What is left."""

    dataset: Gauge
    analyst: Gauge | None
    group: Gauge | None
    blocks: list[Gauge]
    entities: list[EntityGauge]
    text: str


class Entry(Given):
    """One line of the transcript."""

    id: str
    at: datetime
    analyst: str
    question: str
    spend: dict[str, Any]
    price: Price | None
    state: Literal["answered", "open", "burnt", "refused", "closed"]
    code: str | None
    count: int = Field(description="refusals that it stands for; their questions were not kept")
    answer: str | None
    shown: bool


class Transcript(Given):
    """A page of the transcript, newest first."""

    entries: list[Entry]
    next: str | None


class Point(Given):
    """What was spent by the end of a day or an hour."""

    at: datetime
    spent: Price
    share: float
    questions: int


class Spending(Given):
    """Spend over time, of a dataset or of an analyst."""

    points: list[Point]
    since: datetime | None = Field(description="when nothing was spent yet")
    budget: Budget
