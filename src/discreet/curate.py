"""The curator: answers questions about private tables, and keeps the account."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.answer import Answer
from discreet.budget import Budget
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import BudgetRefusal
from discreet.exact import Exact, fraction, positive, proportion
from discreet.explanation import Explanation
from discreet.loss import NOTHING, Loss
from discreet.price import Priced, price
from discreet.price.within import cheapest
from discreet.question import Question, Spend
from discreet.release import release
from discreet.schema import Schema
from discreet.sql import statement

Within = Exact | Mapping[str, Exact]


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
                    fix=f"offer less; {self.budget.remaining(self.spent)}",
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
        question: str | Question,
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
        self._account.charge(priced.loss)
        truth = self._engine.run(priced.plan)  # exact integers
        return release(priced, truth)  # the only noise

    def explain(
        self,
        question: str | Question,
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

    def _parsed(self, question: str | Question) -> tuple[Question, bool]:
        if isinstance(question, str):
            parsed = statement(question, self.schema, multiplicity=self._engine.multiplicity)
            return parsed.question, parsed.explain
        return question, False

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
    if epsilon is None and rho is None and within is None and question.spend is not None:
        return question.spend
    targets: tuple[tuple[str, Fraction], ...] = ()
    if isinstance(within, Mapping):
        targets = tuple((name, positive(m, name="within")) for name, m in within.items())
    elif within is not None:
        targets = (("", positive(within, name="within")),)
    return Spend(
        epsilon=None if epsilon is None else positive(epsilon, name="epsilon"),
        rho=None if rho is None else positive(rho, name="rho"),
        delta=None if delta is None else fraction(delta, name="delta"),
        within=targets,
        confidence=proportion(confidence, name="confidence"),
    )


def curator(tables: Mapping[str, Any], *, schema: Schema, budget: Budget, **engine: Any) -> Curator:
    """A curator for a notebook: tables by name, each a path or an Arrow, pandas or Polars table.

    The account lives as long as the object.
    """
    return Curator(tables, schema=schema, budget=budget, **engine)
