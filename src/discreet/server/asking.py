"""Questions of a door that is not HTTP: described for free, asked under the server's own limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from discreet.errors import Refusal
from discreet.ledger.keys import ANALYST, CURATOR, Grant, recheck
from discreet.publication.reading import drop_conditions
from discreet.publication.told import Told
from discreet.question.domain import Kind
from discreet.question.expressions import ColumnRef
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.question.statement import Column, Statement
from discreet.release.answer import Answer
from discreet.server.balances import describe_balance
from discreet.server.dataset import Dataset
from discreet.server.jobs import Status
from discreet.server.models import Ask
from discreet.server.refusals import Unreadable, not_computed
from discreet.server.state import ServerState

WAIT_S = 24 * 3600.0
"""Such a door waits for its answer; the time limit of the question ends it sooner."""
LOW, HIGH = "low", "high"
_KINDS: dict[Kind, set[type[Any]]] = {
    Kind.BOOLEAN: {bool},
    Kind.INTEGER: {int},
    Kind.DECIMAL: {int, float, Decimal},
    Kind.DATE: {date},
    Kind.TIMESTAMP: {datetime},
}
"""Of which kind the values of a release are; any others are sent as text."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A column that is sent: one of the answer, or an end of what one of them may be."""

    name: str
    column: Column
    end: str | None = None
    free: bool = False
    """Whether it is of a release or a survey, whose values alone say of which kind they are."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, with which key."""

    server: ServerState
    dataset: Dataset
    key_id: str

    @property
    def counted(self) -> str:
        """The key that limits are kept for."""
        return self.server.lineage.first(self.key_id)

    async def admit(self) -> Grant:
        """What the key opens now; counts one request."""
        self.dataset.rate.take(self.counted)
        account, name = self.dataset.account, self.dataset.name
        return await run_in_threadpool(recheck, account, name, self.key_id)

    async def describe(
        self, texts: Iterable[str], *, margins: bool, bound: bool = True
    ) -> tuple[Shown, ...]:
        """The columns of the first text that is accepted, or what is said to the first; free.

        The texts are not ``bound`` if examples stand in the place of parameters: then a release or
        a survey is asked of all its rows, for which of them are wanted is not known yet.
        """
        (await self.admit()).requires(ANALYST, CURATOR)
        curator = self.dataset.curator

        def first() -> tuple[Shown, ...]:
            refused: Refusal | None = None
            for text in texts:
                try:
                    told = None
                    if self.dataset.names_free(text):
                        told = curator.tell(text if bound else drop_conditions(text))
                    if told is not None:
                        return _show_told(told, margins)
                    return _show(curator.columns(text), _list_keys(curator.parse(text)), margins)
                except Refusal as refusal:
                    refused = refused or refusal
            raise refused or Unreadable("there is no question.", "ask one.")

        return await self.dataset.explain(first, self.counted)

    async def tell(self, text: str, confidence: str) -> Told | None:
        """What a release or a survey says; free.  None if the question is about people."""
        if not self.dataset.names_free(text):
            return None
        (await self.admit()).requires(ANALYST, CURATOR)
        return await self.dataset.tell(text, confidence, self.counted)

    async def ask(self, text: str, offer: Offer) -> Answer:
        """The answer, charged or known; the offer in the question goes before ``offer``."""
        grant = await self.admit()
        grant.requires(ANALYST, CURATOR)
        asked = await self._make_ask(text, offer)
        found = await self.dataset.ask(asked, grant, key_id=self.counted, retry=None, wait_s=WAIT_S)
        if isinstance(found, Status):
            raise not_computed("the server stopped before this question was computed.")
        return found

    async def explain(self, text: str, offer: Offer) -> str:
        """The price of a question, the margins that it buys and how it would be answered; free."""
        told = await self.tell(text, "0.95")
        if told is not None:
            return "\n".join(told.notes)
        grant = await self.admit()
        grant.requires(ANALYST, CURATOR)
        asked = await self._make_ask(text, offer)

        def tell() -> str:
            return "\n".join(self.dataset.quote(asked, grant).explain_lines(offer.confidence))

        return await self.dataset.explain(tell, self.counted)

    async def tell_balance(self) -> list[str]:
        """What the holder of the key has spent, may spend and has left, in lines; free."""
        grant = await self.admit()
        return await run_in_threadpool(describe_balance, self.dataset.account, grant)

    async def _make_ask(self, text: str, offer: Offer) -> Ask:
        curator = self.dataset.curator
        asked = await self.dataset.explain(lambda: curator.parse(text), self.counted)
        amounts = offer.to_json()
        written = _list_offers(asked)
        if any(not one.empty for one in written):
            # Of what is offered by the way only a delta that the question has none of itself,
            # and that it is to be measured anew.
            said = any(one.delta is not None for one in written)
            kept = ("fresh",) if said else ("delta", "fresh")
            amounts = {n: a for n, a in amounts.items() if n in kept}
        within = amounts.get("within")
        if isinstance(within, dict) and list(within) == [""]:
            amounts["within"] = within[""]
        try:
            return Ask(question=text, **amounts)
        except ValidationError:
            raise Unreadable(
                "the question or its offer is longer than is taken.", "ask a shorter question."
            ) from None


def _list_offers(asked: Question | Statement) -> list[Offer]:
    """What is offered in the text itself."""
    inside = asked.questions if isinstance(asked, Statement) else ()
    return [one.spend for one in (asked, *inside) if one.spend is not None]


def _list_keys(asked: Question | Statement) -> frozenset[str]:
    """The columns of which each group has one value, exactly known."""
    if isinstance(asked, Statement):
        return frozenset()
    keys = {key.name for key in asked.keys}
    return frozenset(
        output.name
        for output in asked.outputs
        if isinstance(output.expression, ColumnRef) and output.expression.name in keys
    )


def _show(columns: Sequence[Column], keys: frozenset[str], margins: bool) -> tuple[Shown, ...]:
    """The columns; with ``margins``, beside each number both ends of what it may be."""
    found: list[Shown] = []
    taken = {column.name for column in columns}
    for column in columns:
        found.append(Shown(column.name, column))
        if not margins or not column.kind.is_number or column.listed or column.name in keys:
            continue
        for end in (LOW, HIGH):
            title = f"{column.name}_{end}"
            while title in taken:
                title += "_"
            found.append(Shown(title, Column(column.name, Kind.DECIMAL), end))
    return tuple(found)


def _show_told(told: Told, margins: bool) -> tuple[Shown, ...]:
    """The columns of what a release or a survey says, each of the kind that its values have."""
    columns = [_find_column(name, told.column(name)) for name in told.columns]
    shown = _show(columns, frozenset(told.columns) - set(told.margins), margins)
    return tuple(replace(one, free=True) for one in shown)


def _find_column(name: str, values: Sequence[Any]) -> Column:
    found = {type(value) for value in values if value is not None}
    for kind, types in _KINDS.items():
        if found and found <= types:
            wide = kind is Kind.INTEGER and any(abs(v) >= 2**63 for v in values if v is not None)
            return Column(name, kind, total=wide)
    return Column(name, Kind.TEXT)


def read_columns(
    answer: Answer | Told, shown: Sequence[Shown], confidence: str
) -> list[list[Any]] | None:
    """The values of each column that is sent; None if the answer has others than were described."""
    if isinstance(answer, Told):
        return _read_told(answer, shown)
    if list(answer.columns) != [one.name for one in shown if one.end is None]:
        return None
    ends = any(one.end is not None for one in shown)
    intervals = answer.intervals(confidence) if ends else {}
    found: list[list[Any]] = []
    for one in shown:
        if one.end is None:
            found.append(answer.column(one.name))
            continue
        stated = (
            None if interval is None else interval.low if one.end == LOW else interval.high
            for interval in intervals[one.column.name]
        )
        found.append([v if v is not None and math.isfinite(v) else None for v in stated])
    return found


def _read_told(told: Told, shown: Sequence[Shown]) -> list[list[Any]] | None:
    described = [one.column for one in shown if one.end is None]
    if list(told.columns) != [one.name for one in described] or not all(
        _holds(one, told.column(one.name)) for one in described
    ):
        return None  # a counter has stepped, or reports came, since it was described
    stated = told.accuracy()
    found: list[list[Any]] = []
    for one in shown:
        if one.end is not None:
            intervals = (interval for _, interval in stated[one.column.name])
            ends = (None if i is None else i.low if one.end == LOW else i.high for i in intervals)
            found.append([v if v is not None and math.isfinite(v) else None for v in ends])
        elif one.column.kind is Kind.TEXT:
            found.append([None if v is None else str(v) for v in told.column(one.name)])
        else:
            found.append(told.column(one.name))
    return found


def _holds(described: Column, values: Sequence[Any]) -> bool:
    """Whether values can be sent in a column as it was described: of its kind, or of a narrower."""
    found = _find_column(described.name, values)
    if found == described or described.kind is Kind.TEXT or all(v is None for v in values):
        return True
    wide = described.kind is Kind.DECIMAL or (described.kind is Kind.INTEGER and described.total)
    return wide and found.kind is Kind.INTEGER


__all__ = ["Asker", "Shown", "read_columns"]
