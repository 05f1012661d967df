"""Questions about a survey's reports: a public table of a known randomizer, so answers are free.

The analyst's SQL is read as any other.  Instead of rows there are all combinations of the
declared answers; what the question does to each of them gives every group a weight for every
combination, and the number of respondents with a combination is estimated without bias from
products of scores, since answers are randomised one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import NOTHING, Loss
from discreet.errors import QuestionRefusal
from discreet.exact.balls import log_up
from discreet.exact.numbers import Exact, proportion
from discreet.local.direct import Direct
from discreet.local.frequencies import Estimate
from discreet.local.mean import MeanRandomizer
from discreet.local.oracle import FrequencyOracle, chunks
from discreet.local.survey import Survey
from discreet.publication.margins import Margin, Promise
from discreet.publication.told import Told
from discreet.question.domain import Kind
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import evaluate, references
from discreet.question.question import Aggregate, Question
from discreet.question.relation import Filter, Project, PublicJoin, Relation, Source
from discreet.question.schema import Column, Schema, Table
from discreet.question.schema.tables import ROW
from discreet.question.sql import parse

Doubles = NDArray[np.float64]
Fields = dict[str, Any]

_MOST_COMBINATIONS = 1 << 14
_CELLS = 1 << 22


def describe_survey(survey: Survey, name: str) -> Table:
    """A survey as a table of that name: its questions are columns of the declared answers."""
    columns = tuple(
        Column(one.name, Kind.TEXT, values=one.options, nullable=False)
        if one.options
        else Column(one.name, Kind.DECIMAL, one.lower, one.upper, nullable=False)
        for one in survey.questions
    )
    return Table(name, columns, unit=ROW)


@dataclass(frozen=True)
class Collected:
    """The reports of a survey, to be asked in SQL under a table's name.

    ``survey`` made the ``reports``, and ``name`` is that of the table.

    ``public`` holds public tables to join with: for each its declaration and its rows.
    """

    survey: Survey
    reports: Sequence[Any]
    name: str = "survey"
    public: Mapping[str, tuple[Table, Sequence[Fields]]] | None = None

    @cached_property
    def schema(self) -> Schema:
        """The declared answers as the domains of a table's columns."""
        tables = {self.name: describe_survey(self.survey, self.name)}
        return Schema({**tables, **{name: one[0] for name, one in (self.public or {}).items()}})

    @cached_property
    def _columns(self) -> dict[str, tuple[FrequencyOracle | MeanRandomizer, Any]]:
        found = self.survey.columns(self.reports)
        return {
            one.name: (randomizer, column)
            for one, randomizer, column in zip(
                self.survey.questions, self.survey.randomizers, found, strict=True
            )
        }

    def ask(self, sql: str, *, confidence: Exact = "0.95") -> Estimates:
        """Estimates for every group of ``sql``, with ends that hold at ``confidence``; free."""
        question = parse(sql, self.schema)
        beta = 1 - proportion(confidence, name="confidence")
        space = self._space(question)
        groups = self._groups(question, space)
        cells = {
            aggregate.name: [
                self._estimate(aggregate, space, weights[aggregate.name], beta)
                for weights in groups.values()
            ]
            for aggregate in question.aggregates
        }
        return Estimates(question, tuple(groups), cells, len(self.reports))

    def tell(self, sql: str, *, confidence: Exact = "0.95") -> Told:
        """The same of ``sql`` as a table that is read, shown and kept as any answer is.

        Ends hold at ``confidence``.
        """
        found = self.ask(sql, confidence=confidence)
        keys = tuple(
            one.name
            for one in found.question.outputs
            if isinstance(one.expression, ColumnRef) and one.expression.name not in found.cells
        )
        margins = {
            name: tuple(
                _margin(value, ends)
                for value, ends in zip(found.column(name), found.intervals(name), strict=True)
            )
            for name in found.columns
            if name not in keys
        }
        people, percent = found.respondents, 100 * float(proportion(confidence, name="confidence"))
        said = [
            f"Estimated from {people:,} reports of the survey {self.name}, each randomised by the "
            "respondent: free.",
            f"± at {percent:g} % confidence, whatever the truth is; estimates may lie below zero.",
        ]
        if any(one.within is None for listed in margins.values() for one in listed):
            said.append("No margin for what is computed from estimates, nor from fewer than two.")
        rows = tuple(found.rows)
        return Told(sql, found.columns, rows, margins, tuple(said), keys, confidence)

    # --- what the question does to each combination of answers -------------------------------

    def _space(self, question: Question) -> Space:
        """The answers that matter for who is counted where, and all their combinations."""
        table, names = _source(question.source)
        used = _list_used(question, names)
        numbers = [name for name in used if isinstance(self._columns[name][0], MeanRandomizer)]
        if table != self.name or numbers:
            raise _not_estimated(
                f"column {numbers[0]!r} was randomised as a number."
                if numbers
                else "the question is not about the survey."
            )
        options = {one.name: one.options for one in self.survey.questions}
        if math.prod(len(options[name]) for name in used) > _MOST_COMBINATIONS:
            raise _not_estimated("there are too many combinations of answers.")
        rows = [dict(zip(used, one, strict=True)) for one in product(*(options[u] for u in used))]
        return Space(tuple(used), tuple(rows), names)

    def _groups(
        self, question: Question, space: Space
    ) -> dict[tuple[Any, ...], dict[str, Doubles]]:
        """For each group and aggregate, how often each combination counts."""
        listed = [key.values for key in question.keys]
        found: dict[tuple[Any, ...], dict[str, Doubles]] = {}

        def weights(group: tuple[Any, ...]) -> dict[str, Doubles]:
            if group not in found:
                found[group] = {a.name: np.zeros(len(space.rows)) for a in question.aggregates}
            return found[group]

        if all(one is not None for one in listed):
            for group in product(*(one or () for one in listed)):
                weights(group)
        for place, row in enumerate(space.rows):
            for fields in self._rows(question.source, row):
                here = weights(tuple(evaluate(key.expression, fields) for key in question.keys))
                for aggregate in question.aggregates:
                    if _counts(aggregate, fields):
                        here[aggregate.name][place] += 1
        return found

    def _rows(self, relation: Relation, row: Fields) -> Iterator[Fields]:
        """The rows that one combination of answers becomes."""
        match relation:
            case Source(columns=columns):
                # Numbers have no place among the combinations: they stand for themselves.
                yield {name: row.get(column, _Unknown(column)) for name, column in columns}
            case Filter(source=source, predicate=predicate):
                yield from (f for f in self._rows(source, row) if evaluate(predicate, f) is True)
            case Project(source=source, columns=columns):
                for fields in self._rows(source, row):
                    yield {name: _carry(expression, fields) for name, expression in columns}
            case PublicJoin(left=left, right=right, on=on, kind=kind):
                rows = (self.public or {})[right.table.name][1]
                for fields in self._rows(left, row):
                    wanted = [evaluate(expression, fields) for expression, _ in on]
                    named = [{n: one[c] for n, c in right.columns} for one in rows]
                    joined = [o for o in named if [o[n] for _, n in on] == wanted]
                    if not joined and kind == "left":
                        joined = [dict.fromkeys(name for name, _ in right.columns)]
                    yield from ({**fields, **one} for one in joined)
            case _:
                raise _not_estimated("each respondent has one row of this table.")

    # --- estimates ---------------------------------------------------------------------------

    def _estimate(
        self, aggregate: Aggregate, space: Space, weights: Doubles, beta: Fraction
    ) -> Estimate | None:
        if aggregate.function == "COUNT":
            return self._total(space, weights, None, beta)
        (argument,) = aggregate.arguments
        name = space.columns.get(argument.name, "") if isinstance(argument, ColumnRef) else ""
        if aggregate.function not in ("SUM", "AVG") or not self._is_number(name):
            raise _not_estimated(f"{aggregate.function} of this cannot be estimated from reports.")
        total = self._total(space, weights, name, beta / 2)
        if aggregate.function == "SUM":
            return self._total(space, weights, name, beta)
        people = self._total(space, weights, None, beta / 2)
        mean = self._columns[name][0]
        if not isinstance(mean, MeanRandomizer):
            raise TypeError(name)
        return _ratio(total, people, float(mean.lower), float(mean.upper))

    def _is_number(self, name: str) -> bool:
        return name in self._columns and isinstance(self._columns[name][0], MeanRandomizer)

    def _total(
        self, space: Space, weights: Doubles, number: str | None, beta: Fraction
    ) -> Estimate:
        """The sum over respondents of a weight of their answers, perhaps times a number."""
        n = len(self.reports)
        if number is None and (not space.names or not np.ptp(weights)):
            known = n * float(weights[0])  # how many reported is no secret
            return Estimate(known, 0.0, known, known)
        if number is None and len(space.names) == 1:
            oracle, column = self._columns[space.names[0]]
            if isinstance(oracle, FrequencyOracle):
                found = oracle.estimate(column)
                chosen = np.flatnonzero(weights)
                if chosen.size == 1 and weights[chosen[0]] == 1:
                    return found.count([int(chosen[0])], beta=beta)
                return found.query(weights, beta=beta)
        return self._product(space, weights, number, beta)

    def _product(
        self, space: Space, weights: Doubles, number: str | None, beta: Fraction
    ) -> Estimate:
        """Scores of one report multiply; the margin is Bernstein's with the variance observed.

        Maurer and Pontil (2009), Theorem 11, for independent numbers in an interval: with the
        sample variance V of n scores that span at most R, their sum is off by more than
        sqrt(2 n V ln(4 / beta)) + 7 R n ln(4 / beta) / (3 (n - 1)) with probability beta.
        """
        n, reach = len(self.reports), self._reach(space, weights, number)
        scores = np.empty(n)
        for part in chunks(n, max(1, _CELLS // max(1, len(space.rows)))):
            scores[part] = self._scores(space, part) @ weights
            if number is not None:
                scores[part] *= self._values(number, self._columns[number][1][part])
        total = float(scores.sum())
        if n < 2:
            return Estimate(total, math.inf, -math.inf, math.inf)
        variance = float(scores.var(ddof=1))
        logarithm = float(log_up(4 / beta))
        margin = math.sqrt(2 * n * variance * logarithm)
        margin += 7 * reach * n * logarithm / (3 * (n - 1))
        return Estimate(total, math.sqrt(n * variance), total - margin, total + margin)

    def _scores(self, space: Space, part: slice) -> Doubles:
        """For each report of a part and each combination, the product of the scores."""
        found = np.ones((part.stop - part.start, 1))
        for name in space.names:
            oracle, column = self._columns[name]
            if not isinstance(oracle, FrequencyOracle):
                raise TypeError(name)
            own = _score(oracle, oracle.indicator(column[part]))
            found = (found[:, :, None] * own[:, None, :]).reshape(len(found), -1)
        return found

    def _values(self, name: str, reports: Any) -> Doubles:
        mean = self._columns[name][0]
        if not isinstance(mean, MeanRandomizer):
            raise TypeError(name)
        width = float(mean.upper - mean.lower) / mean.steps
        return np.asarray(float(mean.lower) + width * mean.scores(reports))

    def _reach(self, space: Space, weights: Doubles, number: str | None) -> float:
        """A bound of the distance between the least and the greatest score of a report."""
        matrices = []
        for name in space.names:
            oracle, _ = self._columns[name]
            if isinstance(oracle, Direct):  # every report there is
                matrices.append(_score(oracle, np.eye(oracle.categories, dtype=np.bool_)))
            elif isinstance(oracle, FrequencyOracle):
                matrices.append(np.full((1, oracle.categories), np.nan))
        if any(np.isnan(one).any() for one in matrices):
            largest = math.prod(
                float(1 / (o.inside - o.outside))
                for name in space.names
                if isinstance(o := self._columns[name][0], FrequencyOracle)
            )
            ends = np.array([-largest, largest]) * float(np.abs(weights).sum())
        else:
            every: Doubles = np.ones((1, 1))
            for one in matrices:
                every = np.asarray(np.kron(every, one), dtype=np.float64)
            ends = every @ weights
        if number is not None:
            mean = self._columns[number][0]
            outcomes = getattr(mean, "outcomes", 2)
            values = self._values(number, np.arange(outcomes))
            ends = np.outer(ends, [values.min(), values.max()])
        return float(ends.max() - ends.min())


@dataclass(frozen=True, slots=True)
class Space:
    """Columns that decide who is counted where, and all combinations of their answers."""

    names: tuple[str, ...]
    rows: tuple[Fields, ...]
    columns: Mapping[str, str]
    """The survey's question behind each name of the relation."""


@dataclass(frozen=True)
class Estimates:
    """What reports say, as a table: values without bias, and ends that hold.

    ``question`` is what was asked; ``cells`` has for each aggregate an estimate for each of
    ``groups``, and so many ``respondents`` reported.
    """

    question: Question
    groups: tuple[tuple[Any, ...], ...]
    cells: Mapping[str, Sequence[Estimate | None]]
    respondents: int

    @property
    def loss(self) -> Loss:
        """Nothing: respondents paid when they reported."""
        return NOTHING

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(output.name for output in self.question.outputs)

    @cached_property
    def _kept(self) -> list[int]:
        kept = list(range(len(self.groups)))
        if self.question.having is not None:
            kept = [p for p in kept if evaluate(self.question.having, self._fields(p)) is True]
        for order in reversed(self.question.order):
            values = {p: evaluate(order.expression, self._fields(p)) for p in kept}
            known = [p for p in kept if values[p] is not None]
            known.sort(key=lambda p, v=values: v[p], reverse=order.descending)  # type: ignore[misc]
            kept = known + [p for p in kept if values[p] is None]
        return kept[: self.question.limit]

    def _fields(self, place: int) -> Fields:
        keys = {
            key.name: value
            for key, value in zip(self.question.keys, self.groups[place], strict=True)
        }
        numbers = {name: _value(cells[place]) for name, cells in self.cells.items()}
        return {**keys, **numbers}

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The values, row by row."""
        return [
            tuple(evaluate(o.expression, self._fields(place)) for o in self.question.outputs)
            for place in self._kept
        ]

    def column(self, name: str) -> list[Any]:
        """The values of the column ``name``, in the order of the rows."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def intervals(self, name: str) -> list[tuple[float, float] | None]:
        """The ends of the column ``name``; None for keys and for arithmetic on estimates."""
        (output,) = [one for one in self.question.outputs if one.name == name]
        expression: Expression = output.expression
        if not isinstance(expression, ColumnRef) or expression.name not in self.cells:
            return [None] * len(self._kept)
        cells = [self.cells[expression.name][place] for place in self._kept]
        return [None if one is None else (one.low, one.high) for one in cells]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "intervals": {name: self.intervals(name) for name in self.columns},
            "respondents": self.respondents,
            "cost": "0",
        }

    def __str__(self) -> str:
        lines = ["  ".join(self.columns)]
        ends = [self.intervals(name) for name in self.columns]
        for place, row in enumerate(self.rows):
            cells = [
                f"{_format(value)} [{_format(one[place][0])}, {_format(one[place][1])}]"  # type: ignore[index]
                if one[place] is not None
                else _format(value)
                for value, one in zip(row, ends, strict=True)
            ]
            lines.append("  ".join(cells))
        return "\n".join([*lines, f"estimated from {self.respondents} reports; free"])


class _Unknown:
    """A number in a row of combinations: it may be summed, and nothing else."""

    __slots__ = ("column",)

    def __init__(self, column: str) -> None:
        self.column = column


def _carry(expression: Expression, fields: Fields) -> Any:
    if isinstance(expression, ColumnRef) and isinstance(fields.get(expression.name), _Unknown):
        return fields[expression.name]
    return evaluate(expression, fields)


def _counts(aggregate: Aggregate, fields: Fields) -> bool:
    """Whether a row counts: its condition holds, and what is counted is not NULL."""
    condition = aggregate.condition
    if condition is not None and evaluate(condition, fields) is not True:
        return False
    if aggregate.function == "COUNT":
        return all(_carry(one, fields) is not None for one in aggregate.arguments)
    return True


def _source(relation: Relation) -> tuple[str, dict[str, str]]:
    """The private table below a relation, and the names its columns have there."""
    match relation:
        case Source(table=table, columns=columns):
            return table.name, dict(columns)
        case Filter(source=below) | Project(source=below) | PublicJoin(left=below):
            return _source(below)
        case _:
            raise _not_estimated("each respondent has one row of this table.")


def _list_used(question: Question, names: dict[str, str]) -> list[str]:
    """The columns of the survey that decide who is counted where."""
    looked: set[str] = set()
    for key in question.keys:
        looked |= references(key.expression)
    for aggregate in question.aggregates:
        if aggregate.condition is not None:
            looked |= references(aggregate.condition)
        if aggregate.function == "COUNT":
            for argument in aggregate.arguments:
                looked |= references(argument)
    _look_below(question.source, looked)
    return [column for name, column in names.items() if name in looked]


def _look_below(relation: Relation, looked: set[str]) -> None:
    match relation:
        case Filter(source=below, predicate=predicate):
            looked |= references(predicate)
            _look_below(below, looked)
        case Project(source=below, columns=columns):
            for name, expression in columns:
                if name in looked:
                    looked |= references(expression)
            _look_below(below, looked)
        case PublicJoin(left=below, on=on):
            for expression, _ in on:
                looked |= references(expression)
            _look_below(below, looked)
        case _:
            return


def _score(oracle: FrequencyOracle, supported: NDArray[np.bool_]) -> Doubles:
    p, q = float(oracle.inside), float(oracle.outside)
    return np.asarray((supported - q) / (p - q), dtype=np.float64)


def _ratio(total: Estimate, people: Estimate, lower: float, upper: float) -> Estimate | None:
    """A mean: the quotient, between the quotients of the ends; None if nobody may be there.

    Every answer lies between the bounds, and so does their mean.
    """
    if people.value <= 0 or people.low <= 0:
        return None
    value = total.value / people.value
    quotients = [
        end / number for end in (total.low, total.high) for number in (people.low, people.high)
    ]
    found, low, high = (
        min(max(end, lower), upper) for end in (value, min(quotients), max(quotients))
    )
    return Estimate(found, total.standard_error / people.value, low, high)


def _margin(value: Any, ends: tuple[float, float] | None) -> Margin:
    if ends is None or value is None or not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
        return Margin(Promise.NONE, None)
    return Margin(Promise.EXACT, max(value - ends[0], ends[1] - value, 0.0), ends)


def _value(cell: Estimate | None) -> float | None:
    return None if cell is None else cell.value


def _format(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _not_estimated(what: str) -> QuestionRefusal:
    return QuestionRefusal(
        "Q35",
        what,
        why="answers were randomised one by one, for counts of options and means of numbers.",
        fix="ask for COUNT(*), SUM or AVG, grouped and filtered by questions with options.",
    )


__all__ = ["Collected", "Estimates"]
