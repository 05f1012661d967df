"""Watching: what a run of the sparse vector costs, and which questions may be asked of it.

A run compares numbers with thresholds and pays for those above alone.  Its noise is bought once,
for queries that one unit moves by at most ``STEPS``; so a question's number, less its threshold,
is put on a scale on which its own sensitivity is ``STEPS``, and rounded down.  How far one unit
moves a question follows from the question, as everywhere; nobody is asked.

Lemma numbers refer to ``docs/proofs/runs.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Required, TypedDict

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.numbers import Exact, fraction, positive, whole
from discreet.mechanisms import AboveThreshold, Laplace, NumericSparse, Sparse
from discreet.price.plan import (
    Distance,
    DistinctValues,
    GroupSum,
    Measurement,
    Moments,
    Plan,
    Reach,
    Sum,
    Units,
    compute_sensitivity,
)
from discreet.price.priced import Multiplicity, bound_contribution
from discreet.price.recipes import Linear, choose_measurements, measure_sums_alone
from discreet.question.domain import Value
from discreet.question.expressions import ColumnRef
from discreet.question.ownership import (
    check_joined_rows,
    columns,
    find_neighbours,
    row_bound,
)
from discreet.question.question import Question, check_size
from discreet.question.relation import (
    Filter,
    PerUnit,
    Project,
    PublicJoin,
    Source,
    Union,
    UnitJoin,
    Windowed,
)
from discreet.question.schema import Neighbours, Schema
from discreet.question.work import check_work

STEPS = 60
"""The sensitivity for which a run's noise is bought: many whole numbers divide it."""

MOST_ABOVE = 1000
"""How often one run may answer "above"."""

SparseVector = AboveThreshold | Sparse | NumericSparse


class WatchSettings(TypedDict, total=False):
    """The keywords with which a run is opened; all but ``epsilon`` have a default."""

    epsilon: Required[Exact | None]
    threshold: Exact | None
    at_most: int
    delta: Exact
    numbers: bool
    monotonic: bool


@dataclass(frozen=True, slots=True)
class Watch:
    """The public settings of a run: all that decides its price.

    >>> watch = Watch.of(threshold=500, epsilon="0.5", at_most=3)
    >>> watch.loss.epsilon, str(watch)
    (Fraction(1, 2), 'WATCH threshold 500, at most 3 above')
    """

    threshold: Fraction | None
    epsilon: Fraction
    at_most: int = 1
    delta: Fraction = Fraction(0)
    numbers: bool = False
    """Whether what is above is answered with its number, noised afresh."""
    monotonic: bool = False
    """Whether only counts are asked, which all grow when a unit is added: half the noise."""

    @classmethod
    def of(
        cls,
        *,
        epsilon: Exact | None,
        threshold: Exact | None = None,
        at_most: int = 1,
        delta: Exact = 0,
        numbers: bool = False,
        monotonic: bool = False,
    ) -> Watch:
        """The settings, or a refusal."""
        if epsilon is None:
            raise InvalidParameter(
                "P4",
                "a run has no epsilon.",
                why="what a run may tell about the people in the data is paid for when it begins.",
                fix="say what to pay for the whole run, such as epsilon='0.5'.",
            )
        above = whole(at_most, name="at_most", least=1)
        if above > MOST_ABOVE:
            raise InvalidParameter(
                "P2",
                f"at_most is above {MOST_ABOVE:,}.",
                why="noise that grows with every answer would drown them all.",
                fix="ask for fewer, or ask the questions themselves.",
            )
        made = cls(
            None if threshold is None else fraction(threshold, name="threshold"),
            positive(epsilon, name="epsilon"),
            above,
            fraction(delta, name="delta"),
            bool(numbers),
            bool(monotonic),
        )
        _ = made.mechanism  # refused now if there is none
        return made

    @property
    def mechanism(self) -> SparseVector:
        """The mechanism of the run, on the scale of ``STEPS``, around zero."""
        return _make_mechanism(self)

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit, however much is asked."""
        return self.mechanism.loss

    @property
    def number_noise(self) -> Laplace | None:
        """The noise of a number that is above, on the scale; None if none is told."""
        scale = self.mechanism.plan.answer_scale
        return None if scale is None else Laplace(sensitivity=STEPS, epsilon=STEPS / scale)

    def to_json(self) -> dict[str, object]:
        """The settings as a ledger records them; :meth:`of` takes them back."""
        return {
            "threshold": None if self.threshold is None else str(self.threshold),
            "epsilon": str(self.epsilon),
            "at_most": self.at_most,
            "delta": str(self.delta),
            "numbers": self.numbers,
            "monotonic": self.monotonic,
        }

    def __str__(self) -> str:
        parts = ["WATCH"]
        if self.threshold is not None:
            parts.append(f"threshold {self.threshold}")
        parts.append(f"at most {self.at_most} above")
        parts += ["with numbers"] * self.numbers + ["counts only"] * self.monotonic
        return ", ".join(parts).replace("WATCH, ", "WATCH ")


@lru_cache(maxsize=64)  # every comparison asks for it
def _make_mechanism(watch: Watch) -> SparseVector:
    if watch.at_most == 1 and not watch.delta and not watch.numbers:
        return AboveThreshold(
            threshold=0, sensitivity=STEPS, epsilon=watch.epsilon, monotonic=watch.monotonic
        )
    make = NumericSparse if watch.numbers else Sparse
    return make(
        threshold=0,
        cutoff=watch.at_most,
        sensitivity=STEPS,
        epsilon=watch.epsilon,
        delta=watch.delta,
        monotonic=watch.monotonic,
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """A question that a run may be asked: one number for each of its public groups."""

    question: Question
    plan: Plan
    sensitivity: int
    """By how many steps one unit moves one number."""
    grid: Fraction
    """The size of one step."""

    @property
    def groups(self) -> tuple[tuple[Value | None, ...], ...]:
        """The groups in order; one without keys."""
        return tuple(product(*(key.values or () for key in self.plan.keys)))

    def scale(self, steps: Sequence[int], threshold: Fraction) -> list[int]:
        """Numbers less a threshold, on the scale of ``STEPS``, rounded down (Lemma 1).

        >>> from types import SimpleNamespace
        >>> count = SimpleNamespace(sensitivity=3, grid=Fraction(1))
        >>> Watched.scale(count, [500, 503], Fraction(500))
        [0, 60]
        """
        level = threshold / self.grid
        return [math.floor((one - level) * STEPS / self.sensitivity) for one in steps]

    def unscale(self, scaled: int, threshold: Fraction) -> Fraction:
        """The number that has this place on the scale, to the nearest step of its own."""
        steps = threshold / self.grid + Fraction(scaled * self.sensitivity, STEPS)
        return round(steps) * self.grid

    def margin(self, watch: Watch, beta: Exact, *, queries: int) -> Fraction:
        """How wrong a verdict can be, except with probability ``beta``, computed from the law."""
        return self._widen(watch.mechanism.margin(beta, queries=queries), watch)

    def theorem_margin(self, watch: Watch, beta: Exact, *, queries: int) -> Fraction:
        """The same by DR Theorems 3.24, 3.26 and (corrected) 3.28."""
        return self._widen(watch.mechanism.theorem_margin(beta, queries=queries), watch)

    def _widen(self, scaled: int | Fraction, watch: Watch) -> Fraction:
        """A margin of the scale as one of the number: what rounding moves is added."""
        level = (watch.threshold or 0) / self.grid
        exact = STEPS % self.sensitivity == 0 and Fraction(level).denominator == 1
        steps = (Fraction(scaled) + (not exact)) * self.sensitivity / STEPS
        return (steps + (Fraction(1, 2) if watch.numbers else 0)) * self.grid


def price_watched(
    question: Question, *, schema: Schema, multiplicity: Multiplicity, monotonic: bool
) -> Watched:
    """What a run is to measure of ``question``, and how far one unit moves it; or a refusal."""
    number = measure_number(question, schema=schema, multiplicity=multiplicity)
    measurement = number.plan.measurements[0]
    if monotonic:
        _check_monotonic(question, measurement, number.sides)
    # Each group's number is a query of its own, so what counts is how far one of them moves.
    reach = number.reach
    one = Reach(1, reach.rows_per_group, reach.rows_per_group)
    # And one number to which a unit adds 0 ... d moves by at most d also where it is changed.
    moved = Neighbours.ADD_REMOVE if _only_adds(measurement) else number.sides
    sensitivity = compute_sensitivity(measurement, one, moved).l1
    return Watched(question, number.plan, sensitivity, number.grid)


@dataclass(frozen=True, slots=True)
class Number:
    """How the one number of a question, or that of each group, is measured."""

    plan: Plan
    grid: Fraction
    """The size of one step."""
    reach: Reach
    sides: Neighbours


def measure_number(question: Question, *, schema: Schema, multiplicity: Multiplicity) -> Number:
    """What is measured of a question of one number, or one for each public group; or a refusal."""
    check_size(question)
    check_joined_rows(question.source, schema.most_joined_rows, multiplicity)
    check_work(question, schema.most_joined_rows, multiplicity)
    _check_shape(question)
    bound = bound_contribution(question, multiplicity)
    known = columns(question.source, multiplicity=multiplicity)
    joint = choose_measurements(question.aggregates, known)
    menu = measure_sums_alone(joint, question.aggregates, known)
    (measurement,), (recipe,) = menu.measurements, menu.recipes
    if not isinstance(recipe, Linear) or len(recipe.coefficients) != 1:
        raise _not_one_number(question)
    most = row_bound(question.source, multiplicity)
    reach = Reach.of(bound, grouped=bool(question.keys), most=most)
    plan = Plan(question.source, question.keys, bound, (measurement,))
    sides = find_neighbours(question.source, schema.neighbours)
    return Number(plan, recipe.coefficients[0], reach, sides)


def _check_shape(question: Question) -> None:
    """One aggregate, as it is; public groups; nothing that only makes sense of an answer."""
    if any(key.values is None for key in question.keys):
        raise QuestionRefusal(
            "Q48",
            "these groups are not listed publicly, so they cannot be compared one by one.",
            why="to name a group that only one person is in would name that person.",
            fix="group by a column with declared values, or ask without GROUP BY.",
        )
    plain = all(isinstance(output.expression, ColumnRef) for output in question.outputs)
    only = question.having is None and question.limit is None and not question.order
    if len(question.aggregates) != 1 or not plain or not only:
        raise _not_one_number(question)


def _not_one_number(question: Question) -> QuestionRefusal:
    functions = ", ".join(dict.fromkeys(a.function for a in question.aggregates))
    return QuestionRefusal(
        "Q48",
        f"one number is to be compared, or one for each group, and this question ({functions}) is "
        "another.",
        why="what one person can change is known for a count or a sum as it is, and for nothing "
        "computed from it.",
        fix="ask one COUNT(*), COUNT(DISTINCT ...) or SUM(...), with WHERE as you like, without "
        "arithmetic, HAVING, ORDER BY or LIMIT.",
    )


_OWNED = (Source, Filter, Project, PublicJoin, UnitJoin, PerUnit, Windowed, Union)
"""Relations in which a row is there because of its own unit alone (ownership.md)."""


def is_monotonic(question: Question, measurement: Measurement, neighbours: Neighbours) -> bool:
    """Whether adding a unit can only raise each number (Lemma 2).

    Under add/remove, where each row has one owner: a unit more is some rows more, and none less.
    Not under change-one, where one unit's rows go as others come; and a sum only if no value is
    negative.  What is not known here is not monotonic.
    """
    owned = _is_owned(question.source)  # of what is not known, nothing else is asked
    known = owned and find_neighbours(question.source, neighbours) is Neighbours.ADD_REMOVE
    return known and _only_adds(measurement)


def _only_adds(measurement: Measurement) -> bool:
    """Whether each unit's share of the number is never negative."""
    match measurement:
        case Moments(variables=()) | Units() | Distance() | DistinctValues():
            return True
        case Sum(variable=variable):
            return variable.low >= 0
        case GroupSum(low=low):
            return low >= 0
    return False


def _is_owned(relation: object) -> bool:
    if type(relation) not in _OWNED:
        return False
    if isinstance(relation, Source):
        return relation.table.unit is not None
    below = [
        getattr(relation, part)
        for part in ("source", "left", "right")
        if hasattr(relation, part) and not (part == "right" and isinstance(relation, PublicJoin))
    ]
    return all(map(_is_owned, below))


def _check_monotonic(question: Question, measurement: Measurement, neighbours: Neighbours) -> None:
    if is_monotonic(question, measurement, neighbours):
        return
    raise QuestionRefusal(
        "Q49",
        "this number does not only grow when a unit is added, and the run was opened for such.",
        why="half the noise hides a person only where all numbers move the same way.",
        fix="open the run without monotonic, or count: under add/remove neighbours, COUNT and "
        "sums of values that are not negative only grow.",
    )


__all__ = [
    "STEPS",
    "Number",
    "Watch",
    "WatchSettings",
    "Watched",
    "is_monotonic",
    "measure_number",
    "price_watched",
]
