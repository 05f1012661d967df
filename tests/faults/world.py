"""The small world in which things go wrong: a dataset with blocks, two analysts, some questions.

Losses are pure, and the budgets have no delta, so that a cap is a plain sum of epsilons: what the
account decides can be checked with one line of arithmetic, not with the account's own.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from discreet import Budget, Schema
from discreet.accounting.loss import Loss
from discreet.errors import Refusal
from discreet.ledger import Account, Ledger, Policy, Request, Stored
from discreet.question.blocks import Area, Space

DATASET = "clinic"
CITIES = ("Cork", "Delft", "Faro")
SCHEMA = """
[tables.people]
unit = "id"
max_rows_per_unit = 1
blocks = ["city"]
[tables.people.columns]
id = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"], nullable = false }
age = { type = "integer", bounds = [0, 110], nullable = false }
"""
CAP = Fraction(3)
"""What anybody in the data may lose."""
ANALYST_CAPS = {"ada": Fraction(2), "bob": Fraction(5, 2)}
"""Allocations: together more than the cap, which wins."""
QUESTION_CAP = Fraction(3, 2)
DATA_VERSION = "v7"

Mark = Callable[[str], None]


@cache
def schema() -> Schema:
    """The dataset's schema, whose blocks are three cities."""
    return Schema.from_text(SCHEMA)


@cache
def budget(epsilon: Fraction) -> Budget:
    """A budget; made once, because certifying its ceilings takes milliseconds."""
    return Budget(epsilon=epsilon)


@cache
def space() -> Space:
    """Block 0 is everyone else; the cities follow."""
    return Space.of(schema())


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks: a name, who, the price, and the blocks it can touch."""

    name: str
    analyst: str
    epsilon: Fraction
    blocks: tuple[int, int] = (0, 4)

    @property
    def alias(self) -> str:
        """What the question calls its answer; no other question does."""
        return f"n_{self.name.replace(' ', '_')}"

    @property
    def text(self) -> str:
        """The question in SQL; no two ask for the same number."""
        cities = ", ".join(f"'{city}'" for city in CITIES[self.blocks[0] - 1 : self.blocks[1] - 1])
        where = f" AND city IN ({cities})" if self.blocks[0] else ""
        age = zlib.crc32(self.name.encode()) % 100_000
        return f"SELECT COUNT(*) AS {self.alias} FROM people WHERE age <> {age}{where}"

    def request(self) -> Request:
        """The request that a curator would make of it."""
        return Request(
            analyst=self.analyst,
            question=self.text,
            spend={"epsilon": str(self.epsilon)},
            key=hashlib.sha256(self.text.encode()).hexdigest(),
            data_version=DATA_VERSION,
            loss=Loss.pure(self.epsilon),
            area=Area(space(), (self.blocks,)),
        )


def opened(address: str) -> tuple[Ledger, Account]:
    """The ledger, and the account of the dataset in it."""
    ledger = Ledger.open(address)
    try:
        policy = Policy(question=budget(QUESTION_CAP))
        account = ledger.account(DATASET, schema=schema(), budget=budget(CAP), policy=policy)
        known = {analyst.name for analyst in account.analysts()}
        for name, limit in ANALYST_CAPS.items():
            if name not in known:
                account.add_analyst(name, limit=budget(limit))
    except BaseException:
        ledger.close()
        raise
    return ledger, account


@dataclass(slots=True)
class Desk:
    """Where questions are asked: charge, run, publish, show. Every move is marked."""

    address: str
    mark: Mark
    _open: tuple[Ledger, Account] | None = None

    @property
    def account(self) -> Account:
        """The account; opened when it is first needed, as a new process would."""
        if self._open is None:
            self._open = opened(self.address)
            self.mark("opened")
        return self._open[1]

    @property
    def ledger(self) -> Ledger:
        """The ledger behind the account."""
        _ = self.account
        if self._open is None:
            raise RuntimeError("the ledger is closed")
        return self._open[0]

    def close(self) -> None:
        """Close the ledger; the next question opens it anew."""
        if self._open is not None:
            self._open[0].close()
            self._open = None
        self.mark("closed")

    def ask(self, question: Question) -> bytes:
        """The answer; a different one each time it is computed, as noise is."""
        paid = self.account.charge(question.request())
        if isinstance(paid, Stored):
            answer = paid.answer
        else:
            self.mark(f"run {question.name}")
            answer = self.account.publish(paid, answer_of(question))
        self.mark(f"shown {question.name} {digest(answer)}")
        return answer

    def reserve(self, question: Question) -> None:
        """Pay and vanish: a reservation is left."""
        self.account.charge(question.request())

    def fail(self, question: Question) -> None:
        """A question whose run fails: it is paid for, and never answered."""
        paid = self.account.charge(question.request())
        if not isinstance(paid, Stored):
            self.mark(f"run {question.name}")
            self.account.burn(paid)

    @contextmanager
    def refusing(self, what: str) -> Iterator[None]:
        """Note a refusal and go on; anything but a refusal is a fault of ours."""
        try:
            yield
        except Refusal as refusal:
            self.mark(f"refused {what} {refusal.code}")
        except Exception as error:
            self.mark(f"raised {what} {type(error).__name__}")

    def asks(self, *questions: Question) -> None:
        """Ask one after the other, whatever comes of each."""
        for question in questions:
            with self.refusing(question.name):
                self.ask(question)


def answer_of(question: Question) -> bytes:
    """A released answer: new noise each time."""
    return f'{{"question": "{question.name}", "noise": "{os.urandom(6).hex()}"}}'.encode()


def digest(answer: bytes) -> str:
    """A short name for an answer."""
    return hashlib.sha256(answer).hexdigest()[:16]
