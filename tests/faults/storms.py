"""Sixty-four processes ask at the same moment: not one unit too much, not one too little."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from faults.check import Witness, read
from faults.disk import steps
from faults.stage import Stage
from faults.world import CAP, Desk, Question

ASKERS = 64
PRICE = Fraction(3, 40)
"""Forty of them fill the cap to the last unit."""


def storm(stage: Stage) -> list[str]:
    """What does not hold after a storm of different questions, and one of a single question."""
    many = [Question(f"of {n}", ("ada", "bob")[n % 2], PRICE) for n in range(ASKERS)]
    return [*_different(stage, many), *_same(stage, many[:1] * ASKERS)]


def _different(stage: Stage, questions: Sequence[Question]) -> list[str]:
    address, witnesses = _asked(stage, questions)
    book = read(address)
    spent = sum((charge.epsilon for charge in book.charges), Fraction(0))
    shown = Counter(name for witness in witnesses for name, _ in witness.shown)
    found = [problem for witness in witnesses for problem in witness.raised]
    if spent != CAP or len(book.charges) != CAP / PRICE:
        found.append(f"{len(book.charges)} questions were charged {spent}, and the cap is {CAP}")
    if len(shown) != len(book.charges) or len(book.published) != len(book.charges):
        found.append(f"{len(shown)} shown, {len(book.published)} stored, {len(book.charges)} paid")
    return found


def _same(stage: Stage, questions: Sequence[Question]) -> list[str]:
    address, witnesses = _asked(stage, questions)
    book = read(address)
    shown = Counter(answer for witness in witnesses for _, answer in witness.shown)
    found = [problem for witness in witnesses for problem in witness.raised]
    if len(book.charges) != 1 or list(shown.values()) != [len(questions)]:
        found.append(f"one question: {len(book.charges)} charges, answers {sorted(shown.values())}")
    return found


def _asked(stage: Stage, questions: Sequence[Question]) -> tuple[str, list[Witness]]:
    """Fork an asker for each question, let go of all at once, and wait for them."""
    address, place = stage.places.fresh("storm", lambda at: stage.play(_open, at))
    gate, release = os.pipe()
    askers = [
        stage.fork(lambda n=n, q=q: _ask(stage, address, place / f"{n}", q, (gate, release)))
        for n, q in enumerate(questions)
    ]
    os.close(release)  # the gate opens for everybody
    os.close(gate)
    for asker in askers:
        stage.finish(asker)
    return address, [Witness.of(steps(place / f"{n}")) for n in range(len(questions))]


def _open(desk: Desk) -> None:
    _ = desk.account


def _ask(
    stage: Stage, address: str, trace: Path, question: Question, gate: tuple[int, int]
) -> None:
    os.close(gate[1])
    stage.disk.watch(trace.parent, trace)
    desk = Desk(address, stage.disk.mark)
    with desk.refusing(question.name):
        _ = desk.account
    os.read(gate[0], 1)  # until the last holder of the other end is gone
    desk.asks(question)
    desk.close()
