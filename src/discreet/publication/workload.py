"""Any list of linear questions, answered together by whichever way errs least.

A question weighs the levels of a few columns; a row counts for the product of its
levels' weights.  Two ways are planned and compared by the error they would have:
tables whose parts are combined (residual planning, with the spend divided for
these very questions), and, if all columns of all questions make one small table,
a strategy for the matrix mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.domain import Column, check_columns
from discreet.publication.gram import Questions
from discreet.publication.marginals import (
    MarginalPlan,
    Subset,
    combine_tables,
    list_subsets,
    plan_parts,
)
from discreet.publication.measure import Doubles, Measurement, Measurer, ask_cells
from discreet.publication.spend import Spend
from discreet.publication.strategy import (
    MOST_DENSE,
    Strategy,
    ask_strategy,
    estimate_cells,
    expected_rmse,
    plan_strategy,
)


@dataclass(frozen=True, slots=True, eq=False)
class LinearQuestion:
    """The sum over rows of the product of their levels' weights, column by column.

    ``columns`` are their places, ``weights`` has for each a number for every level.

    >>> women = LinearQuestion((1, 4), (np.array([1.0, 0, 0]), np.array([0, 1.0])))
    >>> women.columns
    (1, 4)
    """

    columns: Subset
    weights: tuple[Doubles, ...]

    def __post_init__(self) -> None:
        order = sorted(range(len(self.columns)), key=lambda place: self.columns[place])
        columns = tuple(self.columns[place] for place in order)
        weights = tuple(np.asarray(self.weights[place], dtype=np.float64) for place in order)
        if len(set(columns)) != len(columns) or len(weights) != len(self.weights):
            raise _bad_question()
        if any(one.ndim != 1 or not np.isfinite(one).all() for one in weights):
            raise _bad_question()
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "weights", weights)

    def need(self, part: Subset) -> float:
        """How much the variance of a ``part`` adds to the variance of the answer (Lemma 8)."""
        total = 1.0
        for column, one in zip(self.columns, self.weights, strict=True):
            mean = float(one.mean())
            total *= float(np.square(one - mean).sum()) if column in part else mean**2
        return total

    def answer(self, table: Doubles) -> float:
        """The answer from a ``table`` over the question's columns."""
        for one in self.weights:
            table = np.tensordot(one, table, axes=(0, 0))
        return float(table)


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadPlan:
    """The chosen way: a plan of tables, or one strategy over a joint table; and its error.

    ``questions`` about ``columns`` are answered for ``spend``: from ``tables``, or by ``strategy``
    over the table of the columns ``joint``; the other of the two is None. ``rmse`` is the root mean
    squared error of an answer.
    """

    columns: tuple[Column, ...]
    questions: tuple[LinearQuestion, ...]
    tables: MarginalPlan | None
    strategy: Strategy | None
    joint: Subset
    spend: Spend
    rmse: float


def plan_workload(
    columns: Sequence[Column], questions: Sequence[LinearQuestion], spend: Spend
) -> WorkloadPlan:
    """The way of answering all questions with the least root mean squared error.

    ``questions`` are about the cells of ``columns``, and all of them cost ``spend``.
    """
    listed = check_columns(columns)
    asked = tuple(questions)
    _refuse_impossible(listed, asked)
    parts = {part for one in asked for part in list_subsets(one.columns)}
    needs = {
        part: sum(one.need(part) for one in asked if set(part) <= set(one.columns))
        for part in parts
    }
    sets = tuple(dict.fromkeys(one.columns for one in asked))
    tables = plan_parts(listed, sets, needs, spend)
    total = sum(need / tables.precision(part) for part, need in needs.items() if need > 0)
    rmse = math.sqrt(total / len(asked))
    joint = tuple(sorted({column for one in asked for column in one.columns}))
    best = WorkloadPlan(listed, asked, tables, None, joint, spend, rmse)
    if joint and math.prod(float(listed[column].size) for column in joint) <= MOST_DENSE:
        gram = Questions(np.stack([weigh_joint(listed, joint, one) for one in asked]))
        strategy = plan_strategy(gram, spend)
        error = expected_rmse(strategy, gram, spend)
        if error < rmse:
            best = WorkloadPlan(listed, asked, None, strategy, joint, spend, error)
    return best


def answer_workload(measurer: Measurer, plan: WorkloadPlan) -> tuple[Doubles, list[Measurement]]:
    """Measure what the ``plan`` says and answer every question, unbiased.

    ``measurer`` holds the rows and draws the noise.
    """
    sizes = [column.size for column in plan.columns]
    if plan.strategy is not None:
        maps = [np.arange(sizes[column]) for column in plan.joint]
        released = measurer.measure([ask_strategy(plan.strategy, plan.joint, maps, plan.spend)])
        cells = estimate_cells(plan.strategy, released[0])
        lines = [weigh_joint(plan.columns, plan.joint, one) for one in plan.questions]
        return np.stack(lines) @ cells, released
    if plan.tables is None:
        raise _bad_question()
    released = measurer.measure(
        [
            ask_cells(table, [np.arange(sizes[column]) for column in table], spend)
            for table, spend in zip(plan.tables.measured, plan.tables.spends, strict=True)
        ]
    )
    marginals = combine_tables(plan.tables, released)
    answers = [one.answer(marginals[one.columns].values) for one in plan.questions]
    return np.array(answers), released


def weigh_joint(columns: Sequence[Column], joint: Subset, question: LinearQuestion) -> Doubles:
    """The question's weights over the cells of the joint table."""
    own = dict(zip(question.columns, question.weights, strict=True))
    lines = [own.get(column, np.ones(columns[column].size)) for column in joint]
    return np.asarray(reduce(np.multiply.outer, lines)).reshape(-1)


def _refuse_impossible(columns: Sequence[Column], questions: Sequence[LinearQuestion]) -> None:
    for one in questions:
        for column, weights in zip(one.columns, one.weights, strict=True):
            if not 0 <= column < len(columns) or weights.size != columns[column].size:
                raise _bad_question()
    if not questions or all(not weights.any() for q in questions for weights in q.weights):
        raise _bad_question()


def _bad_question() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "a linear question needs one finite weight for every level of each of its columns.",
        why="the answer is a weighted count, and its noise is made for its weights.",
        fix="pass LinearQuestion((0, 3), (weights of column 0, weights of column 3)).",
    )
