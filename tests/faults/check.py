"""What must hold after anything has gone wrong.

The records are read from the database itself and added up here, without the account's own code:
released ≤ durable charges ≤ caps, block by block; the chain unbroken; nothing paid twice.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
from faults.disk import Step
from faults.scenarios import Scenario
from faults.world import ANALYST_CAPS, CAP, QUESTION_CAP, Desk, Question, digest

from discreet.accounting.conversion import EPSILON_UNITS
from discreet.errors import Refusal


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge as the database holds it."""

    sequence: int
    analyst: str
    text: str
    epsilon: Fraction
    blocks: frozenset[int]


@dataclass(frozen=True, slots=True)
class Book:
    """The durable records, read without the ledger's help."""

    charges: tuple[Charge, ...]
    published: dict[int, str]
    """Digests of the stored answers by the number of their charge."""
    burnt: frozenset[int]

    def charged(self, question: Question) -> list[Charge]:
        """The charges for a question, told by the name that it gives to its answer."""
        return [charge for charge in self.charges if question.alias in charge.text.split()]

    def paid(self, question: Question) -> list[Charge]:
        """The charges for a question that stand for an answer, given or to come."""
        return [charge for charge in self.charged(question) if charge.sequence not in self.burnt]

    def answers(self, question: Question) -> list[str]:
        """The digests of what was published of a question."""
        numbers = [charge.sequence for charge in self.paid(question)]
        return [self.published[number] for number in numbers if number in self.published]


@dataclass(slots=True)
class Witness:
    """What the processes were seen to do, whatever the database says."""

    ran: list[str] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    after_stop: list[str] = field(default_factory=list)
    """What was run or shown although a commit had failed before."""
    stopped: list[str] = field(default_factory=list)
    """Refusals of the ledger, which are right only if something is wrong with the disk."""

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Witness:
        """What one process was seen to do."""
        witness, stopped, committing = cls(), False, False
        for step in steps:
            if step.kind == "s" and step.path.endswith("-wal"):
                # The first sync after COMMIT is the commit's own; later ones copy back.
                stopped |= committing and step.result != 0
                committing = False
            if not step.is_mark:
                continue
            verb, _, rest = step.path.partition(" ")
            if step.path.startswith("before COMMIT"):
                committing = True
            elif verb == "opened":
                stopped = False
            elif verb in ("run", "shown"):
                witness._acted(verb, rest)
                if stopped:
                    witness.after_stop.append(step.path)
            elif verb == "refused" and rest.rpartition(" ")[2].startswith("L"):
                stopped |= rest.endswith(" L5")
                witness.stopped.append(rest)
            elif verb == "raised":
                witness.raised.append(rest)
        return witness

    def _acted(self, verb: str, rest: str) -> None:
        if verb == "run":
            self.ran.append(rest)
        else:
            name, _, shown = rest.rpartition(" ")
            self.shown.append((name, shown))


def violations(
    desk: type[Desk],
    address: str,
    scenario: Scenario,
    witnesses: Sequence[Witness],
    *,
    sound: bool = False,
) -> list[str]:
    """Everything that does not hold: first as things are, then after asking all of it again.

    ``sound`` says that nothing was wrong with the disk, so that nobody need be turned away.
    """
    found = [problem for witness in witnesses for problem in _seen(witness)]
    if sound:
        found += [f"turned away: {what}" for witness in witnesses for what in witness.stopped]
    try:
        before = read(address)
    except sqlite3.DatabaseError as damage:
        return [*found, f"cannot be read: {damage}"]
    found += _durable(before, scenario, witnesses)
    found += _caps(before)
    found += _asked_again(desk(address, lambda _: None), scenario, before)
    found += _caps(read(address))
    return found


def _seen(witness: Witness) -> Iterator[str]:
    yield from (f"not a refusal: {what}" for what in witness.raised)
    yield from (f"went on after a failed commit: {what}" for what in witness.after_stop)


def _durable(book: Book, scenario: Scenario, witnesses: Sequence[Witness]) -> Iterator[str]:
    """What was run is paid, and what was shown is stored."""
    named = {question.name: question for question in scenario.questions}
    for witness in witnesses:
        for name in witness.ran:
            if not book.charged(named[name]):
                yield f"data was read for {name!r}, and there is no charge"
        for name, shown in witness.shown:
            if shown not in book.answers(named[name]):
                yield f"an answer to {name!r} was shown and is not stored"


def _caps(book: Book) -> Iterator[str]:
    standing = [charge.text for charge in book.charges if charge.sequence not in book.burnt]
    for text, times in Counter(standing).items():
        if times > 1:
            yield f"paid {times} times: {text}"
    everybody = frozenset().union(*(charge.blocks for charge in book.charges))
    for block in everybody:
        here = [charge for charge in book.charges if block in charge.blocks]
        if sum(charge.epsilon for charge in here) > CAP:
            yield f"block {block} lost more than the dataset's cap"
        for analyst, cap in ANALYST_CAPS.items():
            if sum(charge.epsilon for charge in here if charge.analyst == analyst) > cap:
                yield f"block {block} lost more to {analyst} than {analyst}'s cap"
    if any(charge.epsilon > QUESTION_CAP for charge in book.charges):
        yield "a question cost more than the cap per question"


def _asked_again(desk: Desk, scenario: Scenario, before: Book) -> Iterator[str]:
    """Ask everything again: what was paid is free, what was shown is the same, the chain holds."""
    try:
        for question in scenario.questions:
            paid, stored = bool(before.paid(question)), before.answers(question)
            try:
                answer = digest(desk.ask(question))
            except Refusal as refusal:
                if paid or not refusal.code.startswith("B"):
                    yield f"{question.name!r}, {'paid' if paid else 'unpaid'}: {refusal.code}"
                continue
            if stored and answer not in stored:
                yield f"{question.name!r} has a second answer"
        verified = desk.ledger.verify()
        if not verified.ok:
            yield f"not verified: {verified}"
    except Refusal as refusal:
        yield f"not verified: {refusal.code}"
    finally:
        desk.close()


# --- the records themselves ---------------------------------------------------------------------


def read(address: str) -> Book:
    """The charges and publications; empty if the ledger was never made."""
    return _book(*_tables(address))


def _tables(address: str) -> tuple[list[Any], list[Any]]:
    records = "SELECT sequence, kind, analyst, subject, body FROM records ORDER BY sequence"
    answers = "SELECT record, body FROM answers"
    if "://" in address:
        connect = psycopg.connect(address.replace("+psycopg", ""))
    elif Path(address).exists():
        connect = sqlite3.connect(address)
    else:  # connecting would make one
        return [], []
    with closing(connect) as connection:
        try:
            return connection.execute(records).fetchall(), connection.execute(answers).fetchall()
        except (sqlite3.OperationalError, psycopg.errors.UndefinedTable):
            return [], []


def _book(records: list[Any], answers: list[Any]) -> Book:
    bodies = {number: hashlib.sha256(bytes(body)).hexdigest()[:16] for number, body in answers}
    charges, published, burnt = [], {}, set()
    for sequence, kind, analyst, _, body in records:
        content = json.loads(body)
        if kind == "charge":
            charges.append(_charge(sequence, analyst, content))
        elif kind == "release":
            published[content["charge"]] = bodies[sequence]
        elif kind == "burn":
            burnt.add(content["charge"])
    return Book(tuple(charges), published, frozenset(burnt))


def _charge(sequence: int, analyst: str, content: dict[str, Any]) -> Charge:
    blocks = frozenset(b for first, last in content["area"] for b in range(first, last))
    epsilon = Fraction(content["loss"][0], EPSILON_UNITS)
    return Charge(sequence, analyst, content["question"], epsilon, blocks)
