"""What is attacked: systems that answer SQL about the same people, protected or not.

An attack sees ``ask`` and nothing else.  The unprotected ones are what offices really run: exact
answers, small numbers suppressed, a little fresh noise each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import duckdb
import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.accounting.loss import NOTHING, Loss
from discreet.audit.rehearsal import Rehearsal
from discreet.errors import BudgetRefusal
from discreet.lab.dice import Dice
from discreet.question.schema import Schema

Rows = list[tuple[Any, ...]]
"""What a target answers: its rows, as Python's values."""


class Denied(Exception):
    """The target does not answer this question."""


class Target(Protocol):
    """Anything with an ``ask``."""

    @property
    def name(self) -> str:
        """What it is, in a few words."""

    def ask(self, question: str) -> Rows:
        """The rows of the answer to ``question``; :class:`Denied` if there is none."""


class Open:
    """Exact answers: a database, with the names taken out.

    ``tables`` are by name.
    """

    name = "exact answers"

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = dict(tables)
        self._database = duckdb.connect(config={"threads": 1})
        for table, rows in self._tables.items():
            self._database.register(table, rows)

    def ask(self, question: str) -> Rows:
        """What DuckDB says to ``question``."""
        rows: Rows = self._database.execute(question).fetchall()
        return rows

    def close(self) -> None:
        """Forget the tables."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Suppressing(Open):
    """Exact answers, but no count below ``least``, nor one that leaves out fewer than that.

    ``tables`` are by name.
    """

    def __init__(self, tables: Mapping[str, pa.Table], *, least: int = 5) -> None:
        super().__init__(tables)
        self.least = least
        self.name = f"counts below {least} suppressed"
        self._everybody = max(table.num_rows for table in tables.values())

    def ask(self, question: str) -> Rows:
        """The rows of ``question`` whose counts are large, and not too large."""
        rows = super().ask(question)
        for row in rows:
            count = row[-1]
            if not self.least <= count <= self._everybody - self.least:
                raise Denied
        return rows


class Jittering(Open):
    """Exact answers with fresh noise in floats each time, and no account of it.

    ``tables`` are by name; the noise is Laplace's of ``scale``, thrown with ``dice``.
    """

    def __init__(self, tables: Mapping[str, pa.Table], *, scale: float, dice: Dice) -> None:
        super().__init__(tables)
        self.name = f"fresh noise of scale {scale:g}, for ever"
        self._scale, self._dice = scale, dice
        self._known: dict[str, Rows] = {}

    def ask(self, question: str) -> Rows:
        """Each number of ``question`` moved a little, another way every time."""
        if question not in self._known:
            self._known[question] = super().ask(question)
        rows = self._known[question]
        return [
            tuple(
                value + self._dice.laplace(self._scale, 1)[0]
                if isinstance(value, int | float)
                else value
                for value in row
            )
            for row in rows
        ]


class Ours:
    """The curator, on a copy that charges nothing real: each question at ``epsilon``.

    ``tables``, ``schema`` and ``budget`` are those of a curator.

    ``spent`` is what it has promised of everybody so far, which bounds any attack.
    """

    def __init__(
        self, tables: Mapping[str, pa.Table], *, schema: Schema, budget: Budget, epsilon: str
    ) -> None:
        self.name = f"discreet, ε = {budget.epsilon}"
        self._rehearsal = Rehearsal(tables, schema=schema, budget=budget)
        self._session = self._rehearsal.open()
        self.budget, self._epsilon = budget, epsilon

    def ask(self, question: str) -> Rows:
        """A released answer to ``question``, or :class:`Denied` when the budget is gone."""
        try:
            answer = self._session.ask(question, epsilon=self._epsilon)
        except BudgetRefusal:
            raise Denied from None
        return [row.values for row in answer.rows]

    def renew(self) -> None:
        """Begin anew, with nothing spent and nothing remembered: another attacker, another day."""
        self._session = self._rehearsal.open()

    @property
    def spent(self) -> Loss:
        """What one unit has lost, at most."""
        losses = [loss for _, loss in self._session.list_spent()]
        return max(losses, key=lambda loss: loss.epsilon) if losses else NOTHING

    def close(self) -> None:
        """Forget the copy."""
        self._rehearsal.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Silent:
    """Answers nothing: whoever attacks it must do with what is known without the data."""

    name = "nothing, without access"

    def ask(self, question: str) -> Rows:
        """Never, whatever the ``question``."""
        del question
        raise Denied

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def make_silent(tables: Mapping[str, pa.Table]) -> Silent:
    """One that has the ``tables``, and says nothing of them."""
    del tables
    return Silent()


def begin_anew(target: Target) -> None:
    """Give ours, if ``target`` is, a whole budget again, for the next person; others keep none."""
    if isinstance(target, Ours):
        target.renew()


__all__ = [
    "Denied",
    "Jittering",
    "Open",
    "Ours",
    "Rows",
    "Silent",
    "Suppressing",
    "Target",
    "begin_anew",
    "make_silent",
]
