"""The curator played many times over: its own stages in its own order, on one pair of tables.

A game needs thousands of fresh accounts on the same data.  Parsing, pricing and
the exact integers depend on the question and the tables alone, so they are done
once, by the same functions and the same engine that the curator uses; what a
game is about, the check of the budget (in every block, by the same filter) and
the noise, is done anew each time.  Only the writing down is left out: a session
remembers its answers, and gives them again for free, without a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import numpy as np

from discreet.accounting.budget import Budget, saturate
from discreet.accounting.loss import NOTHING, Loss
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.engine.truth import Truth
from discreet.errors import BudgetRefusal
from discreet.price import Priced, price
from discreet.price.within import find_cheapest
from discreet.question.blocks import Space, reach
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.answer import Answer
from discreet.release.record import replay_key
from discreet.release.release import release


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is the same in every game: the price of a question and its sealed integers."""

    priced: Priced
    truth: Truth
    loss: Loss  # as the account stores it
    blocks: tuple[int, ...]
    key: str


@dataclass(slots=True)
class Stage:
    """One session of a ``rehearsal`` with a fresh account: ``ask`` until the budget is gone."""

    rehearsal: Rehearsal
    _spent: dict[int, Loss] = field(default_factory=dict)
    _answers: dict[str, Answer] = field(default_factory=dict)

    def ask(self, question: str, **spend: Any) -> Answer:
        """Answer ``question`` for ``spend``, or refuse: price, account, noise, in this order."""
        asked = self.rehearsal.prepare(question, spend)
        stored = self._answers.get(asked.key)
        if stored is not None:  # the same question again: the same answer, free
            return replace(stored, priced=asked.priced, replayed=True)
        self.charge(asked)
        released = release(asked.priced, asked.truth)
        answer = self._answers[asked.key] = Answer(asked.priced, *released)
        return answer

    def charge(self, asked: Prepared) -> None:
        """Charge every block that ``asked`` touches, or refuse: the ledger's own filter."""
        budget, spent = self.rehearsal.budget, self._spent
        if budget is None:
            return
        for block in asked.blocks:
            before = np.array(saturate(spent.get(block, NOTHING)), dtype=np.int64)[:, None]
            if not budget.admits_units(before, saturate(asked.loss)).all():
                raise BudgetRefusal(
                    "B1",
                    "the budget does not cover this question.",
                    why="beyond the budget, what is promised to the people in the data would no "
                    "longer hold.",
                    fix="offer less.",
                )
        for block in asked.blocks:
            spent[block] = spent.get(block, NOTHING) + asked.loss

    def list_spent(self) -> tuple[tuple[int, Loss], ...]:
        """What each block has lost so far."""
        return tuple(sorted(self._spent.items(), key=lambda pair: pair[0]))


def find_price(
    engine: DuckDBEngine, question: str, spend: Mapping[str, Any], budget: Budget | None = None
) -> Priced:
    """The price of a question, as the curator of a ``budget`` finds it; reads no private data."""
    asked = parse(question, engine.catalogue)
    wanted = Offer.of(**spend).beside(asked.spend)
    if not wanted.within:
        return price(asked, wanted, engine.catalogue)
    in_rho = budget is not None and budget.epsilon is None
    return find_cheapest(asked, wanted, engine.catalogue, in_rho=in_rho)


class Rehearsal:
    """One world: tables on the real engine, opened once; every question's integers, found once.

    ``tables``, ``schema`` and ``budget`` are those of a curator; without a budget every question is
    admitted.
    """

    def __init__(
        self, tables: Mapping[str, Any], *, schema: Schema, budget: Budget | None = None
    ) -> None:
        self.engine = DuckDBEngine(tables, schema, threads=1, memory_limit="1GB")
        self.schema = self.engine.schema
        self.budget = budget
        self._space = Space.of(self.schema)
        self._known: dict[tuple[str, tuple[tuple[str, Any], ...]], Prepared] = {}

    def open(self) -> Stage:
        """A session with nothing spent."""
        return Stage(self)

    def prepare(self, question: str, spend: Mapping[str, Any]) -> Prepared:
        """The price of ``question`` and its sealed integers, remembered.

        ``spend`` is what is offered, by name: ``{"epsilon": "1/4"}``.
        """
        key = question, tuple(spend.items())
        found = self._known.get(key)
        if found is None:
            priced = self.price(question, spend)
            compiled = self.engine.compile(priced.plan)
            area = reach(priced.question, self.schema, self._space)
            blocks = tuple(block for start, stop in area.ranges for block in range(start, stop))
            found = self._known[key] = Prepared(
                priced,
                self.engine.run(compiled),
                priced.loss.rounded(),
                blocks,
                replay_key(priced),
            )
        return found

    def price(self, question: str, spend: Mapping[str, Any]) -> Priced:
        """The price of ``question`` at what ``spend`` offers, by name; reads no private data."""
        return find_price(self.engine, question, spend, self.budget)

    def __call__(self, question: str, **spend: Any) -> Answer:
        """One question to a fresh session."""
        return self.open().ask(question, **spend)

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.engine.close()


__all__ = ["Prepared", "Rehearsal", "Stage", "find_price"]
