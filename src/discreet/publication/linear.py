"""Linear questions in SQL: counts of rows under conditions, planned and answered together.

Each question is read off its own cells: on which levels of its columns a row is counted.  Where
that is a product, column by column, it is a :class:`LinearQuestion`, and all of them are
answered by whichever way errs least (:mod:`discreet.publication.workload`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import QuestionRefusal
from discreet.publication.domain import Column
from discreet.publication.marginals import list_subsets
from discreet.publication.measure import Doubles, Measurement
from discreet.publication.spend import deviation
from discreet.publication.tails import Draws, tail_bound
from discreet.publication.typed import key_array
from discreet.publication.workload import LinearQuestion, WorkloadPlan
from discreet.question.levels import Levels

_MOST_CELLS = 10**6


def read_questions(
    texts: Sequence[str], table: str, levels: Sequence[Levels]
) -> list[tuple[str, LinearQuestion]]:
    """Every number that the questions ask for, in words, as a linear question; or a refusal."""
    from discreet.publication.reading import Reading

    found = []
    for text in texts:
        reading = Reading.of(text, table, [one.name for one in levels])
        if not reading.linear:
            raise _make_refusal(
                text, "it is not one COUNT(*) under a condition, perhaps by columns."
            )
        used = [place for place, one in enumerate(levels) if one.name in reading.columns]
        shape = [levels[place].size for place in used]
        if math.prod(shape) > _MOST_CELLS:
            raise _make_refusal(text, "its columns have too many levels together.")
        for keys, weights in _list_groups(reading, [levels[place] for place in used], shape):
            words = text if not keys else f"{text} -- {', '.join(map(str, keys))}"
            found.append((words, _factor(text, used, weights)))
    return found


def _list_groups(
    reading: Any, levels: Sequence[Levels], shape: Sequence[int]
) -> list[tuple[tuple[Any, ...], Doubles]]:
    import pyarrow as pa

    from discreet.publication.synopsis import run_sql

    count = math.prod(shape)
    codes = np.indices(shape).reshape(len(shape), count)
    columns: dict[str, Any] = {
        one.name: key_array(one).take(pa.array(codes[axis])) for axis, one in enumerate(levels)
    }
    columns["_cell"] = pa.array(np.arange(count))
    table = next(iter(reading.tables))
    _, rows = run_sql(reading.cells_sql("_cell"), {table: pa.table(columns)}, levels)
    groups = []
    for *keys, cells in rows:
        weights = np.zeros(count)
        weights[np.array(cells or [], dtype=np.int64)] = 1.0
        groups.append((tuple(keys), weights.reshape(shape)))
    return groups


def _factor(text: str, columns: Sequence[int], weights: Doubles) -> LinearQuestion:
    """The weights as a product of one line for each column."""
    axes = range(weights.ndim)
    lines = [weights.max(axis=tuple(a for a in axes if a != axis)) for axis in axes]
    product = np.ones(())
    for line in lines:
        product = np.multiply.outer(product, line)
    if not weights.any():
        raise _make_refusal(text, "no value that is declared meets its condition.")
    if not np.array_equal(product, weights):
        raise _make_refusal(text, "its condition mixes columns (OR, or a comparison between two).")
    return LinearQuestion(tuple(columns), tuple(lines))


def question_margins(
    plan: WorkloadPlan,
    released: Sequence[Measurement],
    beta: str = "0.05",
    *,
    sharp: bool = True,
    near: bool = True,
) -> list[float]:
    """Within what each answer is, except with probability ``beta``; ``sharp`` as in tail_bound.

    ``near`` says to bound tails by what the draws are.
    """
    draws = Draws.of(released) if near else None
    gaussian = plan.spend.gaussian
    if plan.tables is not None:
        variances = [
            sum(
                need / plan.tables.precision(part)
                for part in list_subsets(one.columns)
                if (need := one.need(part)) > 0
            )
            for one in plan.questions
        ]
    else:
        variances = _strategy_variances(plan, released)
    return [tail_bound(one, beta, gaussian=gaussian, sharp=sharp, draws=draws) for one in variances]


def _strategy_variances(plan: WorkloadPlan, released: Sequence[Measurement]) -> list[float]:
    from discreet.publication.workload import weigh_joint

    strategy = plan.strategy
    if strategy is None:
        raise TypeError("a plan has tables or a strategy")
    lines = strategy.matrix.astype(np.float64)
    own = np.zeros(strategy.size) if strategy.diagonal is None else strategy.diagonal
    inverse = np.linalg.inv(lines.T @ lines + np.diag(own.astype(np.float64) ** 2))
    one = deviation(released[0].query.noise) ** 2
    asked = [weigh_joint(plan.columns, plan.joint, question) for question in plan.questions]
    return [one * float(weights @ inverse @ weights) for weights in asked]


def weigh_cells(text: str, table: str, levels: Sequence[Levels]) -> Doubles:
    """Which cells of all columns together a question counts; or a refusal if it is not one count.

    In the shape of the columns, with one along those that it does not name.
    """
    from discreet.publication.reading import Reading

    reading = Reading.of(text, table, [one.name for one in levels])
    if not reading.linear or reading.grouped:
        raise _make_refusal(text, "it is not one COUNT(*) under a condition.")
    used = [place for place, one in enumerate(levels) if one.name in reading.columns]
    named = [levels[place] for place in used]
    ((_, weights),) = _list_groups(reading, named, [one.size for one in named])
    shape = [one.size if place in used else 1 for place, one in enumerate(levels)]
    return np.broadcast_to(weights.reshape(shape), [one.size for one in levels])


def check_levels(columns: Sequence[Column | Levels], levels: Sequence[Levels]) -> None:
    """Conditions are decided on single values: cells of several would be split by them."""
    for column, one in zip(columns, levels, strict=True):
        if one.values is None and key_array(one).type == "string":
            raise QuestionRefusal(
                "Q47",
                f"column {column.name!r} is counted in cells of several values.",
                why="a condition could split a cell, and nobody would know how many are where.",
                fix=f"leave {column.name!r} out, or release a SELECT that groups its values.",
            )


def _make_refusal(text: str, what: str) -> QuestionRefusal:
    return QuestionRefusal(
        "Q47",
        f"{text!r} cannot be planned with others: {what}",
        why="planned questions are weighted counts, whose noise is made for all of them at once.",
        fix="ask COUNT(*) under conditions on single columns joined by AND, or ask it by itself.",
    )


__all__ = ["check_levels", "question_margins", "read_questions", "weigh_cells"]
