"""Private multiplicative weights as a run: a public histogram that learns from its mistakes.

    run = clinic.learn(of="visits", columns=["city", "age"], rows=200_000, questions=500, epsilon=1)
    run.ask("SELECT COUNT(*) FROM visits WHERE city = 'Cork'")

All that is private of it is a run of the sparse vector with numbers, which is charged once: a
question is asked of the people only as "is the count further than so much above, or below, what
the histogram says?".  The histogram is a function of what that run told, so it is public, and
after a crash it is made again from the ledger.  Proofs: Lemmas 14 and 20 of
``docs/proofs/publication.md``.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlglot
from sqlglot import exp

from discreet.accounting.loss import Loss
from discreet.curate.runs import Run, Verdict, open_watch, prepare
from discreet.errors import Halted, InvalidParameter
from discreet.exact.numbers import Exact, canonical_json, positive, proportion, whole
from discreet.exact.search import least_integer
from discreet.price.watch import MOST_ABOVE, Watch
from discreet.publication.linear import check_levels, weigh_cells
from discreet.publication.measure import Doubles
from discreet.publication.weights import correct_law
from discreet.question.levels import Levels, list_levels
from discreet.question.ownership import columns as columns_of
from discreet.question.ownership import unit_columns
from discreet.question.sql import parse
from discreet.release.amounts import loss_json

if TYPE_CHECKING:
    from discreet.curate.curator import Curator

MOST_CELLS = 10**6


@dataclass(frozen=True, slots=True)
class Learning:
    """The public settings of such a run: all that decides its price and its margin.

    ``of`` is the table, ``levels`` are the columns of the histogram, ``rows`` is about how many
    there are, ``questions`` how many may be asked, ``beta`` how seldom the ``margin`` may fail;
    ``watch`` what is asked of the people, and ``threshold`` what surprises.
    """

    of: str
    levels: tuple[Levels, ...]
    rows: int
    questions: int
    beta: Fraction
    watch: Watch
    threshold: Fraction
    """A count this far from what the histogram says is a surprise."""
    margin: float
    """No answer is off by more, except with probability ``beta``, if ``rows`` is right."""

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit."""
        return self.watch.loss

    @property
    def shape(self) -> tuple[int, ...]:
        """The levels of each column of the histogram."""
        return tuple(one.size for one in self.levels)

    def weigh(self, question: str) -> Doubles:
        """Which cells of the histogram a ``question`` counts; or a refusal."""
        return weigh_cells(question, self.of, self.levels)

    def to_json(self) -> dict[str, Any]:
        """Price and promise, as they are sent."""
        return {
            "of": self.of,
            "columns": [one.name for one in self.levels],
            "cells": math.prod(self.shape),
            "rows": self.rows,
            "questions": self.questions,
            "surprises": self.watch.at_most,
            "beta": str(self.beta),
            "loss": loss_json(self.loss),
            "margin": self.margin,
        }

    def __str__(self) -> str:
        names = " × ".join(one.name for one in self.levels)
        return (
            f"LEARN {names} OF {self.of}, {self.questions:,} questions, about {self.rows:,} rows\n"
            f"price:  {self.loss}, for the whole run\n"
            f"margin: ±{self.margin:,.6g} for all of them, except with probability "
            f"{float(self.beta):g}"
        )


@dataclass(frozen=True, slots=True)
class Learned:
    """An answer of the run: from the histogram, or, where that was far off, from the people.

    To ``question``: its ``value``, within ``margin``; ``surprised`` if the histogram was far off.
    """

    question: str
    value: int
    margin: float
    surprised: bool
    """Whether the histogram was too far off, and has been corrected."""

    def __str__(self) -> str:
        return f"{self.value:,} ± {math.ceil(self.margin):,}"

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "question": self.question,
            "value": self.value,
            "margin": self.margin,
            "surprised": self.surprised,
        }


def plan_learning(
    curator: Curator,
    *,
    of: str,
    columns: list[str],
    rows: int,
    questions: int,
    epsilon: Exact,
    beta: Exact = "0.05",
) -> Learning:
    """What a run would cost and promise, or a refusal; from the declaration alone.

    The surprises that it allows are the least c with 6 c m(c)**2 >= n**2 ln(cells), m(c) being the
    margin of a sparse vector with so many: there cannot be more (Lemma 14).
    """
    quoted = of.replace('"', '""')
    text = f'SELECT COUNT(*) AS n FROM "{quoted}"'  # noqa: S608 (parsed, not run)
    source = parse(text, curator.engine.catalogue).source
    known = columns_of(source, curator.engine.catalogue.multiplicity)
    levels = list_levels(known, unit_columns(source), wanted=columns)
    check_levels(levels, levels)
    cells = math.prod(one.size for one in levels)
    if not 2 <= cells <= MOST_CELLS:
        raise InvalidParameter(
            "P2",
            f"the histogram would have {cells:,} cells; 2 to {MOST_CELLS:,} are learned.",
            why="every cell has a weight, whether or not anybody is in it.",
            fix="name fewer columns, or coarser ones.",
        )
    total, many = whole(rows, name="rows", least=1), whole(questions, name="questions", least=1)
    price, share = positive(epsilon, name="epsilon"), proportion(beta, name="beta")

    first = Watch.of(epsilon=price, numbers=True)
    both = [prepare(curator, one, first) for one in (text, _negate(text))]
    watched = list({(one.sensitivity, one.grid): one for one in both}.values())

    @lru_cache
    def margin(cutoff: int) -> Fraction:
        watch = Watch.of(epsilon=price, at_most=min(cutoff, MOST_ABOVE), numbers=True)
        each = max(one.margin(watch, share, queries=2 * many) for one in watched)
        return each + 1  # the histogram's own answer and the threshold are whole

    needed = total**2 * math.log(cells) / 6
    if MOST_ABOVE * margin(MOST_ABOVE) ** 2 < needed:
        raise InvalidParameter(
            "P2",
            "at this price the run could be surprised more often than a run may tell.",
            why=f"a run tells at most {MOST_ABOVE:,} numbers, and each one spends of its price.",
            fix="learn fewer columns, or pay less: more noise needs fewer surprises.",
        )
    cutoff = least_integer(lambda most: most * margin(most) ** 2 >= needed, fails_at=0)
    own = Fraction(math.ceil(margin(cutoff)))
    watch = Watch.of(epsilon=price, at_most=cutoff, numbers=True)
    return Learning(of, levels, total, many, share, watch, 3 * own, float(4 * own))


def check_question(curator: Curator, learning: Learning, question: str) -> None:
    """Refuse what the run could not be asked, before anything is paid."""
    learning.weigh(question)
    for text in (question, _negate(question)):
        prepare(curator, text, learning.watch)


class LearningRun:
    """A ``run`` of private multiplicative weights; made by ``curator.learn(...)``.

    ``learning`` is what it was paid for.
    """

    def __init__(self, run: Run, learning: Learning) -> None:
        self.run = run
        self.learning = learning
        self.surprises = 0
        self._law = np.full(learning.shape, 1 / math.prod(learning.shape))
        for verdict in run.transcript:  # what it has learned so far
            self._take(verdict)

    def __repr__(self) -> str:
        return f"<LearningRun {self.run.id}: {self.asked} asked, {self.surprises} surprises>"

    @property
    def id(self) -> int:
        """The number of its charge."""
        return self.run.id

    @property
    def loss(self) -> Loss:
        """What was charged when it began; nothing is charged after."""
        return self.run.loss

    @property
    def margin(self) -> float:
        """No answer is off by more, if the declared rows are right (Lemma 14)."""
        return self.learning.margin

    @property
    def asked(self) -> int:
        """How many comparisons were made: one or two for each question."""
        return self.run.asked

    def to_json(self) -> dict[str, Any]:
        """How it stands, as it is sent."""
        return {
            "id": str(self.id),
            "analyst": self.run.analyst,
            "loss": loss_json(self.loss),
            "margin": self.margin,
            "asked": self.asked,
            "surprises": self.surprises,
            "ended": self.run.ended or None,
        }

    @property
    def histogram(self) -> Doubles:
        """What it has learned: counts of every combination of the columns; public and free."""
        return self._law * self.learning.rows

    def close(self) -> None:
        """End it; what it has learned stays."""
        self.run.close()

    def __enter__(self) -> LearningRun:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()

    def ask(self, question: str) -> Learned:
        """The count that ``question`` asks for: a COUNT(*) under conditions on the columns."""
        weights = self.learning.weigh(question)
        if self.asked + 2 > 2 * self.learning.questions:
            raise Halted(
                "H1",
                f"the run has answered its {self.learning.questions:,} questions.",
                why="its margin was promised for that many.",
                fix="begin another run with more questions; the histogram stays public.",
            )
        guess = self._guess(weights)
        for text, level in ((question, guess), (_negate(question), -guess)):
            verdict = self.run.ask(text, threshold=level + self.learning.threshold)
            if isinstance(verdict, tuple):
                raise TypeError("one number has one verdict")
            if verdict.above:
                value = self._take(verdict)
                return Learned(question, value, self.margin, surprised=True)
        return Learned(question, guess, self.margin, surprised=False)

    def _take(self, verdict: Verdict) -> int:
        """Learn from a surprise: the corrected count of what was asked."""
        if not verdict.above or verdict.value is None:
            return 0
        sign, question = _unsign(verdict.question)
        weights = self.learning.weigh(question)
        value = sign * round(verdict.value)
        self._law = correct_law(
            self._law, weights, value - self._guess(weights), self.learning.rows
        )
        self.surprises += 1
        return value

    def _guess(self, weights: Doubles) -> int:
        return round(float((weights * self._law).sum()) * self.learning.rows)


def open_learning(curator: Curator, learning: Learning, *, analyst: str) -> LearningRun:
    """Pay for a run, durably; or go on with an open one of the same asker in the same words."""
    said = [learning.of, [one.name for one in learning.levels], learning.rows]
    words = canonical_json([*said, learning.questions, str(learning.beta)])
    name = f"learn {hashlib.sha256(words.encode()).hexdigest()[:16]}"
    return LearningRun(open_watch(curator, learning.watch, name=name, analyst=analyst), learning)


def _negate(question: str) -> str:
    """The same count with a minus: SUM(-1) in the place of COUNT(*)."""
    tree = sqlglot.parse_one(question, dialect="duckdb")
    for one in list(tree.find_all(exp.Count)):
        one.replace(exp.Sum(this=exp.Neg(this=exp.Literal.number(1))))
    return tree.sql("duckdb")


def _unsign(question: str) -> tuple[int, str]:
    """Whether a question was asked with a minus, and the count that it asks for."""
    tree = sqlglot.parse_one(question, dialect="duckdb")
    sums: list[Any] = list(tree.find_all(exp.Sum))
    for one in sums:
        one.replace(exp.Count(this=exp.Star()))
    return (-1, tree.sql("duckdb")) if sums else (1, question)


__all__ = [
    "Learned",
    "Learning",
    "LearningRun",
    "check_question",
    "open_learning",
    "plan_learning",
]
