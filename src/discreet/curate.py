"""The curator: answers questions about private tables, and keeps the account."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from discreet.answer import Answer
from discreet.budget import Budget
from discreet.builder import Asked, Rows, table
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter
from discreet.exact import Exact, positive, proportion
from discreet.explanation import Explanation
from discreet.loss import NOTHING, Loss, failure_mass
from discreet.price import Priced, price
from discreet.price.within import cheapest
from discreet.question import Question, Spend
from discreet.release import release
from discreet.schema import Schema
from discreet.sql import statement

Within = Exact | Mapping[str, Exact]
Asking = str | Question | Asked
"""A question in SQL, built in Python, or already parsed."""


@dataclass(slots=True)
class Account:
    """What has been spent, in memory: checked and charged in one step, never refunded."""

    budget: Budget
    spent: Loss = NOTHING
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def charge(self, loss: Loss) -> None:
        """Charge ``loss`` before data is read, or refuse."""
        exact = loss.rounded()
        with self._lock:
            if not self.budget.admits(self.spent, exact):
                raise BudgetRefusal(
                    "B1",
                    f"the budget does not cover this question, which costs {exact}.",
                    why="beyond the budget, what is promised to the people in the data "
                    "would no longer hold.",
                    fix=f"offer less. {self.budget.remaining(self.spent)}",
                )
            self.spent = self.spent + exact


class Curator:
    """Stands between the analysts and the tables."""

    def __init__(
        self, tables: Mapping[str, Any], *, schema: Schema, budget: Budget, **engine: Any
    ) -> None:
        self._engine = DuckDBEngine(tables, schema, **engine)
        self.schema = self._engine.schema
        self._account = Account(budget)

    def ask(
        self,
        question: Asking,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = "0.95",
    ) -> Answer | Explanation:
        """Answer, or refuse before touching the data."""
        asked, explain = self._parsed(question)
        spend = offered(asked, epsilon, rho, delta, within, confidence)
        priced = self._priced(asked, spend)  # public knowledge only
        if explain:
            return Explanation(priced, self._engine.sql(priced.plan))
        self._engine.check(priced.plan)  # what cannot be run is not paid for
        self._account.charge(priced.loss)
        return self._answered(priced)

    def _answered(self, priced: Priced) -> Answer:
        """The answer; whatever fails may fail because of one person's row, so nothing is said."""
        with suppress(Exception):
            truth = self._engine.run(priced.plan)  # exact integers
            return release(priced, truth)  # the only noise
        raise DataRefusal(
            "D1",
            "the engine could not answer this question.",
            why="what went wrong may depend on one person's row, so nothing more is said.",
            fix="ask a smaller question, or have the curator check the source and the memory "
            "limit.",
        )

    def explain(
        self,
        question: Asking,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = "0.95",
    ) -> Explanation:
        """What the question would cost and how good its answer would be; free."""
        asked, _ = self._parsed(question)
        spend = offered(asked, epsilon, rho, delta, within, confidence)
        priced = self._priced(asked, spend)
        return Explanation(priced, self._engine.sql(priced.plan))

    def table(self, name: str, *, alias: str | None = None) -> Rows:
        """The rows of a table, to build a question in Python; nothing is read before asking."""
        return table(name, self.schema, alias=alias, multiplicity=self._engine.multiplicity)

    @property
    def budget(self) -> Budget:
        """What may be lost in all."""
        return self._account.budget

    @property
    def spent(self) -> Loss:
        """What has been charged so far."""
        return self._account.spent

    def balance(self) -> str:
        """What is left, in words."""
        return str(self.budget.remaining(self.spent))

    def prepare(self, **options: Any) -> None:
        """Bound and index the private tables once, so that later questions run faster."""
        self._engine.prepare(**options)

    def _parsed(self, question: Asking) -> tuple[Question, bool]:
        if isinstance(question, str):
            parsed = statement(question, self.schema, multiplicity=self._engine.multiplicity)
            return parsed.question, parsed.explain
        return question.question() if isinstance(question, Asked) else question, False

    def _priced(self, question: Question, spend: Spend) -> Priced:
        find = cheapest if spend.within else price
        return find(question, spend, schema=self.schema, multiplicity=self._engine.multiplicity)


def offered(
    question: Question,
    epsilon: Exact | None,
    rho: Exact | None,
    delta: Exact | None,
    within: Within | None,
    confidence: Exact,
) -> Spend:
    """The spend of a call, or else the one written in the statement."""
    failing = None if delta is None else failure_mass(delta)
    given = [name for name, x in _named(epsilon, rho, within) if x is not None]
    if len(given) > 1:
        raise InvalidParameter(
            "P4",
            f"both {given[0]} and {given[1]} are given.",
            why="each of them alone decides what the people in the data lose.",
            fix=f"leave out {given[0]} or {given[1]}.",
        )
    if not given and question.spend is not None:
        return question.spend if failing is None else replace(question.spend, delta=failing)
    targets: tuple[tuple[str, Fraction], ...] = ()
    if isinstance(within, Mapping):
        targets = tuple((name, positive(m, name="within")) for name, m in within.items())
    elif within is not None:
        targets = (("", positive(within, name="within")),)
    return Spend(
        epsilon=None if epsilon is None else positive(epsilon, name="epsilon"),
        rho=None if rho is None else positive(rho, name="rho"),
        delta=failing,
        within=targets,
        confidence=proportion(confidence, name="confidence"),
    )


def _named(
    epsilon: Exact | None, rho: Exact | None, within: Within | None
) -> tuple[tuple[str, object], ...]:
    return (("epsilon", epsilon), ("rho", rho), ("within", within))


def curator(tables: Mapping[str, Any], *, schema: Schema, budget: Budget, **engine: Any) -> Curator:
    """A curator for a notebook: tables by name, each a path or an Arrow, pandas or Polars table.

    The account lives as long as the object.
    """
    return Curator(tables, schema=schema, budget=budget, **engine)
