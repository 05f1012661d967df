"""Interviews: numbers asked one after the other, as long as one unit moves little of all of them.

DMNS Theorem 3.4: every number gets noise of one scale, T / epsilon, whatever is asked; what is
limited is how far one unit can move everything that was asked together.  Two counts of rows that
nobody can be in both of are together moved as far as one of them.  How far, follows from the
questions: by the code that prices a statement of several (``docs/proofs/joint.md``, Lemma 6).

Lemma numbers refer to ``docs/proofs/runs.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive, proportion
from discreet.mechanisms import Laplace
from discreet.price.joint import conjoin, describe_rows, find_cells, is_by_row, join_rows
from discreet.price.plan import BaseRows, Plan, Reach, compute_sensitivity, rename
from discreet.price.priced import Multiplicity
from discreet.price.watch import measure_number
from discreet.question.domain import Value
from discreet.question.expressions import Expression
from discreet.question.ownership import (
    columns,
    constant_columns,
    has_two_owners,
    is_shared,
    reads_graph,
)
from discreet.question.question import Question
from discreet.question.relation import Relation
from discreet.question.schema import Neighbours, Schema

MOST_CONDITIONS = 60
"""So many different conditions are told apart; rows of further ones may be those of all others."""


@dataclass(frozen=True, slots=True)
class Interview:
    """The public settings: all that decides the price, and the noise of every number.

    >>> interview = Interview.of(sensitivity=12, epsilon="0.5")
    >>> interview.loss.epsilon, interview.scale, str(interview)
    (Fraction(1, 2), Fraction(24, 1), 'INTERVIEW joint sensitivity 12')
    """

    sensitivity: Fraction
    """T: how far one unit may move all numbers together."""
    epsilon: Fraction

    @classmethod
    def of(cls, *, sensitivity: Exact, epsilon: Exact | None) -> Interview:
        """The settings, or a refusal."""
        if epsilon is None:
            raise InvalidParameter(
                "P4",
                "a run has no epsilon.",
                why="what a run may tell about the people in the data is paid for when it begins.",
                fix="say what to pay for the whole run, such as epsilon='0.5'.",
            )
        made = cls(positive(sensitivity, name="sensitivity"), positive(epsilon, name="epsilon"))
        _ = Laplace(sensitivity=1, epsilon=1 / made.scale)  # refused now if it cannot be drawn
        return made

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit, however much is asked (Lemma 6)."""
        return Loss.pure(self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise of every number, in the unit of the numbers."""
        return self.sensitivity / self.epsilon

    def to_json(self) -> dict[str, object]:
        """The settings as a ledger records them; :meth:`of` takes them back."""
        return {"sensitivity": str(self.sensitivity), "epsilon": str(self.epsilon)}

    def __str__(self) -> str:
        return f"INTERVIEW joint sensitivity {self.sensitivity}"


@dataclass(frozen=True, slots=True)
class Posed:
    """A question of an interview: one number, or one for each public group."""

    question: Question
    plan: Plan
    reach: Reach
    steps: int
    """How far one unit moves all its numbers together, in steps."""
    grid: Fraction
    """The size of one step."""
    sides: Neighbours

    @property
    def moved(self) -> Fraction:
        """How far one unit moves all its numbers together."""
        return self.steps * self.grid

    @property
    def groups(self) -> tuple[tuple[Value | None, ...], ...]:
        """The groups in order; one without keys."""
        return tuple(product(*(key.values or () for key in self.plan.keys)))

    def noise(self, interview: Interview) -> Laplace:
        """The noise of each number, in steps: of the scale T / epsilon, like that of all others."""
        return Laplace(sensitivity=self.steps, epsilon=self.moved / interview.scale)

    def margin(self, interview: Interview, confidence: Exact = "0.95") -> float:
        """How far off each number is, with this confidence."""
        beta = 1 - proportion(confidence, name="confidence")
        return float(self.noise(interview).margin(beta) * self.grid)


def price_posed(question: Question, *, schema: Schema, multiplicity: Multiplicity) -> Posed:
    """What is measured of ``question``, and how far one unit moves it; or a refusal."""
    number = measure_number(question, schema=schema, multiplicity=multiplicity)
    moved = compute_sensitivity(
        number.plan.measurements[0], number.reach, number.sides, grouped=bool(question.keys)
    )
    return Posed(question, number.plan, number.reach, moved.l1, number.grid, number.sides)


def add_sensitivities(posed: Sequence[Posed], multiplicity: Multiplicity) -> Fraction:
    """How far one unit can move the numbers of all these questions together, at most.

    Questions about one relation, under conditions that no row meets together, are not added up;
    those about other relations, or with limits of their own, are added to everything.
    """
    total = sum((one.moved for one in posed), Fraction(0))
    bases = [_find_base(one) for one in posed]
    base = next((found.base for found in bases if found is not None), None)
    if base is None:
        return total
    apart: dict[tuple[Expression, bool], Fraction] = {}
    most, beside = 1, Fraction(0)
    for one, rows in zip(posed, bases, strict=True):
        if rows is None or rows.base != base:
            beside += one.moved
            continue
        measured = rename(describe_rows(one.plan.measurements[0]), rows.names)
        condition = conjoin((*rows.conditions, measured))
        place = condition, is_by_row(one.plan.measurements[0], one.reach)
        if place not in apart and len(apart) == MOST_CONDITIONS:
            beside += one.moved
            continue
        apart[place] = apart.get(place, Fraction(0)) + one.moved
        most = max(most, one.reach.rows)
    return min(total, beside + _find_most(base, apart, most, multiplicity))


def _find_most(
    base: Relation,
    apart: dict[tuple[Expression, bool], Fraction],
    most: int,
    multiplicity: Multiplicity,
) -> Fraction:
    """The most that is moved under conditions which a unit can meet with so many rows."""
    everything = sum(apart.values(), Fraction(0))
    known = columns(base, multiplicity)
    constant = constant_columns(base, multiplicity)
    cells = find_cells([condition for condition, _ in apart], known, constant)
    by_row = sum(1 << place for place, (_, each) in enumerate(apart) if each)
    sets = None if cells is None else join_rows(cells, by_row, most)
    if sets is None:
        return everything
    amounts = list(apart.values())
    covered = reduce(int.__or__, sets, 0)
    # What no row can move is charged as if one could: a question about nobody is not free.
    sets |= {1 << place for place in range(len(amounts)) if not covered >> place & 1}
    return max(
        sum((amount for place, amount in enumerate(amounts) if some >> place & 1), Fraction(0))
        for some in sets
    )


def _find_base(one: Posed) -> BaseRows | None:
    """The rows of which each is counted where it meets a condition, and bounded by themselves."""
    bound, source = one.plan.contribution, one.plan.source
    whole = bound.rows is not None and bound.enforced
    if not whole or one.sides is Neighbours.CHANGE_ONE:
        return None
    if has_two_owners(source) or is_shared(source) or reads_graph(source):
        return None
    return BaseRows.of(source)


__all__ = ["Interview", "Posed", "add_sensitivities", "price_posed"]
