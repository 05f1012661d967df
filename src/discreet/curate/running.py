"""What every run shares: one charge, numbered questions, answers durable before they are shown.

A run is an interactive mechanism, opened against the curator: it is charged once, and then asked.
What it tells next is entered in the ledger together with how much was told before, so that of
two processes that go on from one place one is too late; what was told is told again as it was.
Kinds of runs differ in what they may be asked, in what they tell, and in whether they have a
secret (``docs/proofs/runs.md``).
"""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from discreet.accounting.loss import Loss
from discreet.errors import AccessRefusal, InvalidParameter, QuestionRefusal, Refusal, quote_value
from discreet.exact.numbers import canonical_json, whole
from discreet.ledger.charges import HALTED, Receipt, Request
from discreet.ledger.runs import CLOSED, over_refusal
from discreet.question.ownership import has_two_owners

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator
    from discreet.price.plan import Plan

_LONGEST_NAME = 64


class Asked(Protocol):
    """A question that a run may be asked."""

    def is_same(self, told: Mapping[str, Any]) -> bool:
        """Whether it is the question that was told of."""


A = TypeVar("A", bound=Asked)
T = TypeVar("T")


class PaidRun(ABC, Generic[A, T]):
    """A run that is paid for: asked ``A``, it tells ``T``.

    ``id`` is the number of its charge.  Left without an exception, a ``with`` block ends it; with
    one it stays open, and who opens it in the same words goes on with it.
    """

    kind: ClassVar[str]
    """What the ledger calls such a run."""

    def __init__(self, curator: Curator, id: int) -> None:  # noqa: A002
        self._curator = curator
        self._book = curator.account.runs
        self._lock = threading.RLock()
        self.id = id
        state = self._book.state(id)
        self.analyst = state.analyst
        self.name = str(state.spend.get("name", ""))
        self._told: list[Mapping[str, Any]] = []
        self._parts: dict[int, list[Mapping[str, Any]]] = {}  # of each question, by its number
        self._ended = state.ended

    # --- how it stands ------------------------------------------------------------------------

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What was charged when it began; nothing is charged after."""

    @property
    def asked(self) -> int:
        """How many questions were asked."""
        return self._told[-1]["number"] + 1 if self._told else 0

    @property
    def ended(self) -> str:
        """Why it is over: "halted", "closed" or "lost"; empty while it can be asked."""
        return self._ended

    def _take(self, told: Iterable[Mapping[str, Any]]) -> None:
        for part in told:
            self._told.append(part)
            self._parts.setdefault(part["number"], []).append(part)

    def _is_cut_short(self) -> bool:
        """Whether a part of the last question is still to be told."""
        return False

    # --- asking -------------------------------------------------------------------------------

    @abstractmethod
    def _go_on(self, asked: Sequence[A], number: int) -> None:
        """Answer one question after the other, recording before anything is shown."""

    @abstractmethod
    def _read(self, one: A, parts: Sequence[Mapping[str, Any]]) -> T:
        """What was told of a question."""

    def _ask_in_order(self, asked: Sequence[A], number: int | None) -> list[T]:
        with self._lock:
            first = self._find_number(asked, number)
            recorded = self._replay(asked, first)
            if recorded and self._ended == HALTED:
                return recorded  # as it was told when it halted: there is no more of it
            if len(recorded) < len(asked):
                self._book.check(self.id)
                self._go_on(asked[len(recorded) :], first + len(recorded))
                recorded = self._replay(asked, first)
            return recorded

    def _find_number(self, asked: Sequence[A], number: int | None) -> int:
        """Where the questions belong: after all others, or where one was cut short by a crash."""
        if self._ended and number is None:
            raise over_refusal(self._ended)
        if number is None:
            cut = self._is_cut_short() and asked and asked[0].is_same(self._told[-1])
            return self.asked - bool(cut)
        if whole(number, name="number") > self.asked:
            raise InvalidParameter(
                "P2",
                f"number is {quote_value(number)}, and this run was asked {self.asked} questions.",
                why="questions of a run are numbered in order, so that none is told twice.",
                fix=f"pass number={self.asked}, or leave it out.",
            )
        return number

    def _replay(self, asked: Sequence[A], first: int) -> list[T]:
        """What is recorded for these questions, the unfinished last one left out."""
        found: list[T] = []
        for place, one in enumerate(asked, start=first):
            parts = self._parts.get(place)
            if not parts:
                break
            if not one.is_same(parts[0]):
                raise AccessRefusal(
                    "A16",
                    f"question {place} of this run was another one.",
                    why="what was told once is told again, and nothing else in its place.",
                    fix="leave out number, or repeat the question as it was.",
                )
            unfinished = place == self.asked - 1 and self._is_cut_short() and not self._ended
            if unfinished:
                break
            found.append(self._read(one, parts))
        return found

    def _record(self, told: list[dict[str, Any]], *, halts: bool = False) -> None:
        """Make it durable, and only then part of what was told."""
        if not self._book.record(self.id, told, after=len(self._told), halts=halts):
            self._refresh()
            raise InvalidParameter(
                "P4",
                "this run is asked by another process at the same time.",
                why="two answers from one place, of which only one is counted, would be one "
                "too many.",
                fix="ask again: nothing was told.",
            )
        self._take(told)
        if halts:
            self._ended = HALTED

    def _refresh(self) -> None:
        state = self._book.state(self.id)
        self._told, self._parts = [], {}
        self._take(state.told)
        self._ended = state.ended

    # --- its end ------------------------------------------------------------------------------

    def close(self) -> None:
        """End the run: it can be asked no more, and nothing comes back."""
        with self._lock:
            if not self._ended:
                self._end(CLOSED)

    def _end(self, reason: str) -> None:
        self._book.close(self.id, reason)
        self._refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()


def pay_for_run(
    curator: Curator,
    kind: str,
    settings: Mapping[str, Any],
    *,
    loss: Loss,
    text: str,
    name: str,
    analyst: str,
    once: bool = False,
) -> int:
    """Charge a run, durably, or find the open one of the same asker in the same words.

    ``once``: one that has halted is found, too.
    """
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise InvalidParameter(
            "P4",
            "the name of a run is a short text.",
            why="by its name a run is found again.",
            fix="pass name='admissions', or leave it out.",
        )
    layout = curator.account.standing().layout
    spend = {"run": kind, **settings, "name": name, "layout": layout}
    same = canonical_json({**spend, "analyst": analyst}, ascii_only=True)
    request = Request(
        analyst=analyst,
        question=f"{text}{f', {name}' if name else ''}",
        spend=spend,
        key=hashlib.sha256(same.encode()).hexdigest(),
        data_version="",  # a run outlives versions: each question is about the data of its time
        loss=loss,
        area=curator.everyone,
        once=once,
    )
    try:
        receipt = curator.account.charge(request)  # durable from here on
    except Refusal as refusal:
        curator.account.record_refusal(analyst, request.question, refusal)
        raise
    if not isinstance(receipt, Receipt):
        raise TypeError("a run has no stored answer")
    return receipt.id


def write_text(question: Any) -> str:
    """A question as it was written, or as it would be."""
    from discreet.question.sql import write_question_text

    return question.text or write_question_text(question)


def parse_single(curator: Curator, question: Asking) -> Any:
    """One question, or a refusal of what is several."""
    from discreet.question.question import Question

    asked = curator.parse(question)
    if not isinstance(asked, Question):
        raise InvalidParameter(
            "P4",
            "a run is asked one question at a time, and this statement has several.",
            why="each number is told by itself.",
            fix="ask its questions one by one, or with ask_many([...]).",
        )
    return asked


def check_one_owner(plan: Plan) -> None:
    """Refuse rows with two owners."""
    if has_two_owners(plan.source):
        raise QuestionRefusal(
            "Q52",
            "a run is asked about rows with two owners.",
            why="a run goes on as the data change, and such rows are read only of data that "
            "were tested.",
            fix="ask the question itself, or choose(...) among several.",
        )


def plain(number: Fraction) -> int | float:
    """A number to show."""
    return int(number) if number.denominator == 1 else float(number)


__all__ = [
    "Asked",
    "PaidRun",
    "check_one_owner",
    "parse_single",
    "pay_for_run",
    "plain",
    "write_text",
]
