"""Interviews: numbers with noise, asked one by one, while their joint sensitivity is within T.

    with clinic.interview(sensitivity=12, epsilon="0.5") as run:
        run.ask("SELECT COUNT(*) FROM visits WHERE city = 'Cork'")

The whole is charged when it begins (DMNS Theorem 3.4).  Whether a question is still admitted
depends on the questions alone, and is said before the data is read; one that is refused leaves the
run as it was.  What a unit can be moved by is added up for each version of the data: who is in one
city today may be in another tomorrow.  Proof: ``docs/proofs/runs.md``, Lemma 6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.accounting.loss import Loss
from discreet.curate.running import (
    PaidRun,
    check_one_owner,
    parse_single,
    pay_for_run,
    plain,
    write_text,
)
from discreet.engine.protocol import Compiled, describe_failure
from discreet.errors import Halted, Refusal
from discreet.exact.numbers import Exact, canonical_json
from discreet.ledger.runs import LOST
from discreet.price.interview import Interview, Posed, add_sensitivities, price_posed
from discreet.release.record import from_json, to_json
from discreet.release.release import release_numbers

if TYPE_CHECKING:
    from discreet.curate.curator import Asking, Curator

KIND = "interview"
"""What the ledger calls such a run."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an interview told of ``question``: one number, or one for each group, its ``values``.

    ``groups`` are those of the question, ``moved`` how far one unit moves all of them together,
    ``margin`` how far off each is at 95 %: all have the same noise.
    """

    question: str
    values: tuple[int | float, ...]
    groups: tuple[tuple[Any, ...], ...]
    """The groups' values, where the question has groups; empty otherwise."""
    moved: float
    """How far one unit moves all of them together."""
    margin: float
    """How far off each of them is, at 95 %."""

    @property
    def value(self) -> int | float:
        """The first of them: the number, where there is one."""
        return self.values[0]

    def to_json(self) -> dict[str, Any]:
        """The same at every door."""
        return {
            "question": self.question,
            "values": list(self.values),
            "groups": [[None if p is None else str(p) for p in group] for group in self.groups],
            "moved": self.moved,
            "margin": self.margin,
        }

    def __str__(self) -> str:
        named = self.groups or ((),) * len(self.values)
        told = (
            f"{', '.join(map(str, group))}: {value:,}" if group else f"{value:,}"
            for group, value in zip(named, self.values, strict=True)
        )
        return f"{'; '.join(told)} ± {self.margin:,.6g}"


@dataclass(frozen=True, slots=True)
class InterviewExplanation:
    """What an ``interview`` would cost, and how far off the numbers of a question would be; free.

    ``posed`` are the questions, ``joint`` is how far one unit moves all of them together.
    """

    interview: Interview
    posed: tuple[Posed, ...]
    joint: Fraction
    """How far one unit moves all of the questions together."""

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit."""
        return self.interview.loss

    @property
    def admitted(self) -> bool:
        """Whether a new interview would answer all of them."""
        return self.joint <= self.interview.sensitivity

    def margin(self, confidence: Exact = "0.95") -> float | None:
        """How far off each number would be, at ``confidence``: the most of the questions."""
        return max((one.margin(self.interview, confidence) for one in self.posed), default=None)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The same at every door; the margin is at ``confidence``."""
        from discreet.release.amounts import loss_json

        return {
            "interview": self.interview.to_json(),
            "loss": loss_json(self.loss),
            "joint": float(self.joint),
            "admitted": self.admitted,
            "margin": self.margin(confidence),
        }

    def __str__(self) -> str:
        lines = [str(self.interview), f"price:  {self.loss}, for the whole run"]
        if self.posed:
            most = plain(self.interview.sensitivity)
            lines.append(f"moved:  one unit moves all by at most {plain(self.joint):,} of {most:,}")
            lines.append(f"margin: ±{self.margin():,.6g} each (95 %)")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that an interview may be asked, ready to be run."""

    posed: Posed
    compiled: Compiled

    @property
    def text(self) -> str:
        """As it was written."""
        return write_text(self.posed.question)

    def is_same(self, told: Mapping[str, Any]) -> bool:
        """Whether it is the question that was told of."""
        return bool(told["question"] == self.text)


Tell = Callable[[Interview, Question, str], Sequence[int]]
"""Reads the data of a version and adds noise; raises a ``DataRefusal`` if it cannot."""


class InterviewRun(PaidRun[Question, Reply]):
    """An interview; made by ``curator.interview(...)``, or ``curator.run(number)``.

    ``id`` is the number of its charge in the account of ``curator``; ``tell`` reads the data and
    adds noise, if that is not done here.
    """

    kind = KIND

    def __init__(self, curator: Curator, id: int, *, tell: Tell | None = None) -> None:  # noqa: A002
        super().__init__(curator, id)
        state = self._book.state(id)
        self._tell = tell or self._tell_here
        spend = state.spend
        self.interview = Interview.of(sensitivity=spend["sensitivity"], epsilon=spend["epsilon"])
        self._known: dict[str, Posed] = {}
        self._take(state.told)

    def __repr__(self) -> str:
        state = f", {self._ended}" if self._ended else ""
        used, most = plain(self.joint), plain(self.interview.sensitivity)
        return (
            f"<Interview {self.id}: {self.asked} asked, joint sensitivity {used} of {most}{state}>"
        )

    # --- how it stands ------------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """What was charged when it began; nothing is charged after."""
        return self.interview.loss

    @property
    def joint(self) -> Fraction:
        """How far one unit can move everything that was told."""
        last = {part["version"]: Fraction(part["joint"]) for part in self._told}
        return sum(last.values(), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """How far it may move what is still to be asked; more, of rows that were not asked of."""
        return self.interview.sensitivity - self.joint

    @property
    def transcript(self) -> tuple[Reply, ...]:
        """Everything it has told, in order; also what a process that died had not shown."""
        return tuple(map(_read_reply, self._told))

    def to_json(self) -> dict[str, Any]:
        """How it stands; the same at every door."""
        from discreet.release.amounts import loss_json

        return {
            "id": self.id,
            "kind": self.kind,
            "analyst": self.analyst,
            "name": self.name,
            "interview": self.interview.to_json(),
            "price": loss_json(self.loss),
            "asked": self.asked,
            "joint": float(self.joint),
            "ended": self._ended or None,
        }

    # --- asking -------------------------------------------------------------------------------

    def ask(self, question: Asking, *, number: int | None = None) -> Reply:
        """The number that ``question`` asks for, with noise; one for each of its public groups.

        Refused, unasked, if one unit could then move all that was told by more than the run
        allows.  ``number`` says the how-manieth question it is, from 0: one that was asked before
        is told again as it was.
        """
        return self.ask_many([question], number=number)[0]

    def ask_many(self, questions: Iterable[Asking], *, number: int | None = None) -> list[Reply]:
        """Ask ``questions`` in order, each as if alone; the first is the ``number``-th, from 0."""
        with self._lock:
            return self._ask_in_order([self._prepare(one) for one in questions], number)

    def admits(self, question: Asking) -> bool:
        """Whether ``question`` would be answered now: public knowledge, and free."""
        with self._lock:
            now = self._name_version(self._curator.engine.data_version())
            return self._add(self._prepare(question), now)[1] <= self.interview.sensitivity

    def _prepare(self, question: Asking) -> Question:
        posed = prepare(self._curator, question)
        return Question(posed, self._curator.engine.compile(posed.plan))

    def _go_on(self, asked: Sequence[Question], number: int) -> None:
        for place, one in enumerate(asked, start=number):
            data = self._curator.engine.data_version()
            version = self._name_version(data)
            here, joint = self._add(one, version)
            if joint > self.interview.sensitivity:
                raise _too_sensitive(joint, self.interview)
            values = None
            with suppress(Exception):  # left behind here: what is raised has no history
                values = self._tell(self.interview, one, data)
            if values is None:
                self._end(LOST)  # a failure may tell of one person's row: it is seen once
                raise describe_failure()
            posed = one.posed
            self._record(
                [
                    {
                        "number": place,
                        "question": one.text,
                        "values": [str(value * posed.grid) for value in values],
                        "named": to_json(posed.groups if posed.plan.keys else ()),
                        "moved": str(posed.moved),
                        "joint": str(here),
                        "margin": posed.margin(self.interview),
                        "version": version,
                    }
                ]
            )
            self._known[one.text] = posed

    def _tell_here(self, interview: Interview, one: Question, version: str) -> Sequence[int]:
        return tell(self._curator.engine, interview, one, version)

    def _name_version(self, data: str) -> str:
        """Which data there are, under which declaration."""
        said = canonical_json([data, to_json(self._curator.schema)], ascii_only=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def _add(self, one: Question, now: str) -> tuple[Fraction, Fraction]:
        """The joint sensitivity with one more question: of this version of the data, and of all.

        What was asked of other versions is added as it stood: there a unit may have been
        anybody.
        """
        before = {p["version"]: Fraction(p["joint"]) for p in self._told if p["version"] != now}
        known, beside = [one.posed], Fraction(0)
        for part in self._told:
            if part["version"] == now:
                posed = self._find_posed(part)
                if posed is None:
                    beside += Fraction(part["moved"])
                else:
                    known.append(posed)
        here = beside + add_sensitivities(known, self._curator.engine.catalogue.multiplicity)
        return here, here + sum(before.values(), Fraction(0))

    def _find_posed(self, part: Mapping[str, Any]) -> Posed | None:
        """A question that was told of, read again; None if it is no longer understood the same."""
        text = part["question"]
        if text not in self._known:
            with suppress(Refusal):
                self._known[text] = prepare(self._curator, text)
        found = self._known.get(text)
        return found if found is not None and str(found.moved) == part["moved"] else None

    def _read(self, _one: Question, parts: Sequence[Mapping[str, Any]]) -> Reply:
        return _read_reply(parts[0])


def tell(engine: Any, interview: Interview, one: Question, version: str) -> Sequence[int]:
    """Read the data and add the noise; where the data is, perhaps in another process.

    Whatever fails may fail because of one person's row, so nothing is said of why.
    """
    with suppress(Exception):
        found = release_numbers(interview, one.posed, engine.run(one.compiled))
        if engine.data_version() == version:
            return found
    raise describe_failure()


def prepare(curator: Curator, question: Asking) -> Posed:
    """What an interview would measure of ``question``, or a refusal; reads nothing."""
    asked = parse_single(curator, question)
    try:
        found = price_posed(
            asked, schema=curator.schema, multiplicity=curator.engine.catalogue.multiplicity
        )
    except Refusal as refusal:
        raise curator.naming(refusal) from None
    check_one_owner(found.plan)
    return found


def explain_interview(
    curator: Curator, questions: Sequence[Asking], interview: Interview
) -> InterviewExplanation:
    """What an interview would cost, and whether it would answer these questions."""
    posed = tuple(prepare(curator, question) for question in questions)
    joint = add_sensitivities(posed, curator.engine.catalogue.multiplicity)
    return InterviewExplanation(interview, posed, joint)


def open_interview(
    curator: Curator, interview: Interview, *, name: str, analyst: str
) -> InterviewRun:
    """Pay for an interview, or go on with an open one of the same asker in the same words."""
    number = pay_for_run(
        curator,
        KIND,
        interview.to_json(),
        loss=interview.loss,
        text=str(interview),
        name=name,
        analyst=analyst,
    )
    return InterviewRun(curator, number)


def _read_reply(part: Mapping[str, Any]) -> Reply:
    return Reply(
        part["question"],
        tuple(plain(Fraction(value)) for value in part["values"]),
        tuple(tuple(group) for group in from_json(part["named"])),
        float(Fraction(part["moved"])),
        part["margin"],
    )


def _too_sensitive(joint: Fraction, interview: Interview) -> Halted:
    return Halted(
        "H2",
        f"this question would bring the joint sensitivity to {plain(joint):,} of "
        f"{plain(interview.sensitivity):,}.",
        why="the noise was made to hide that much of one person in all answers together, and "
        "with this answer more of them would show.",
        fix="ask about rows that were not asked about yet, or pay for a new interview.",
    )


__all__ = [
    "InterviewExplanation",
    "InterviewRun",
    "Reply",
    "explain_interview",
    "open_interview",
    "tell",
]
