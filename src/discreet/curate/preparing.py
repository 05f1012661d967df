"""A release before anything is paid: what it reads, how it is counted, what each stage costs.

All of it follows from the declaration and from public knowledge, here and wherever the data is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import Loss
from discreet.accounting.neighbours import Neighbours
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.numbers import canonical_json
from discreet.publication.declared import Declared
from discreet.publication.domain import Column
from discreet.publication.folder import Promise
from discreet.publication.geography import read_tree, show_levels
from discreet.publication.outline import Outline, list_columns, outline
from discreet.publication.possible import check_possible
from discreet.publication.spend import Spend
from discreet.publication.typed import read_constraints
from discreet.question.levels import Levels, list_levels
from discreet.question.ownership import (
    Multiplicity,
    columns,
    has_two_owners,
    reads_graph,
    row_bound,
    unit,
    unit_columns,
)
from discreet.question.question import Question
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.amounts import loss_json
from discreet.release.record import to_json


@dataclass(frozen=True, slots=True)
class Prepared:
    """A release that could be made: what is read, how it is counted, what each stage costs."""

    declared: Declared
    question: Question
    levels: tuple[Levels, ...]
    columns: tuple[Column, ...]
    spend: Spend
    stages: tuple[Outline, ...]
    coded: tuple[Levels, ...]
    """The columns that rows have; those of a tree may be looked up from them."""
    compiled: Any
    promise: Promise

    @property
    def loss(self) -> Loss:
        """What all stages cost together."""
        return sum((one.spend.loss.rounded() for one in self.stages), start=_nothing())

    def tell(self) -> PlannedRelease:
        """What of it may be told to whoever asks."""
        promise = self.promise
        return PlannedRelease(
            self.declared, promise.unit, promise.rows_per_unit, self.loss, self.stages
        )

    def key(self, stage: Outline) -> str:
        """What makes two stages the same: all that was declared, and how columns are counted."""
        same = [
            "release",
            self.declared.to_json(),
            [to_json(tuple(_identity(one))) for one in self.levels],
            to_json(self.question.source),
            self.promise.neighbours,
            stage.name,
            str(stage.spend.amount),
        ]
        return hashlib.sha256(canonical_json(same, ascii_only=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """What a release would be and cost, stage by stage; nothing was charged.

    ``declared`` is what it was declared to be, ``loss`` what all ``stages`` cost together; each of
    these has a ``name``, a ``spend`` and says what is expected of it.  Protected is all that one
    ``unit`` has in it, up to ``rows_per_unit`` rows.
    """

    declared: Declared
    unit: str
    rows_per_unit: int
    loss: Loss
    stages: tuple[Outline, ...]

    def shares(self) -> list[float]:
        """Which part of the whole amount each stage has."""
        total = sum((float(one.spend.amount) for one in self.stages), start=0.0)
        return [float(one.spend.amount) / total for one in self.stages]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON: what every door tells."""
        return {
            "release": self.declared.to_json(),
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "loss": loss_json(self.loss),
            "stages": [
                {"name": one.name, "loss": str(one.spend.loss), "says": one.says}
                for one in self.stages
            ],
        }

    def __str__(self) -> str:
        stages = zip(self.stages, self.shares(), strict=True)
        lines = [f"{one.name}: {share:.1%}, {one.says}" for one, share in stages]
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit:,} rows"
        cost = f"cost {self.loss}; up to {rows} of each {self.unit}. Nothing was charged."
        return "\n".join([self.declared.describe(), *lines, cost])


def _identity(levels: Levels) -> list[Any]:
    return [
        levels.column,
        levels.kind.value,
        levels.count,
        levels.nullable,
        levels.values,
        levels.low,
        levels.high,
        levels.step,
    ]


def prepare_release(declared: Declared, engine: Any, schema: Schema, dataset: str) -> Prepared:
    """What a release would count and cost, or a refusal; from the declaration alone."""
    question = parse(_count_all(declared.source), engine.catalogue)
    rows = _bound_rows(question, engine.catalogue.multiplicity)
    if schema.neighbours is Neighbours.CHANGE_ONE:  # a change is a removal and an addition
        rows *= 2
    declared = _read_geography(declared, engine, schema)
    coded = _code_columns(declared, question, engine.catalogue.multiplicity)
    levels = show_levels(declared.tree, declared.by, coded) if declared.tree else coded
    owned = declared.steps_per_unit is not None
    if owned:
        _require_owner(question)
    read_constraints(levels, declared.keep)
    spend = declared.spend(rows_per_unit=rows)
    listed = list_columns(declared, levels)
    check_possible(declared, listed, spend)
    return Prepared(
        declared,
        question,
        levels,
        listed,
        spend,
        tuple(outline(declared, levels, spend)),
        coded,
        engine.compile_codes(question.source, coded, owned=owned),
        Promise(dataset, unit(question.source).name, schema.neighbours.value, rows),
    )


def _bound_rows(question: Question, multiplicity: Multiplicity) -> int:
    """How many rows one unit has at most in what is released; a refusal if nothing says so."""
    if has_two_owners(question.source) or reads_graph(question.source):
        raise QuestionRefusal(
            "Q52",
            "a release is to be made of rows that have two owners.",
            why="what one person leaves and lets in is bounded for questions, and for no "
            "release that is proved here.",
            fix="ask questions with groups, or release a table whose rows have one owner.",
        )
    rows = row_bound(question.source, multiplicity)
    if rows is None:
        raise QuestionRefusal(
            "Q41",
            f"nothing bounds how many rows one {unit(question.source).name} has in this release.",
            why="one person with many rows could be seen in every table.",
            fix="declare max_rows_per_unit, or release a SELECT with one row for each: "
            "of = 'SELECT patient, MAX(age) AS age FROM visits GROUP BY patient'.",
        )
    return rows


def _code_columns(
    declared: Declared, question: Question, multiplicity: Multiplicity
) -> tuple[Levels, ...]:
    """The columns that rows have, and how finely each is counted."""
    there = columns(question.source, multiplicity)
    wanted = declared.columns or declared.by
    if declared.tree:  # what lies above is looked up
        known = {one.rsplit(".", 1)[-1] for one in there}
        wanted = tuple(name for name in declared.by if name in known) or declared.by[-1:]
    return list_levels(
        there, unit_columns(question.source), wanted=wanted, cells=dict(declared.cells)
    )


def _require_owner(question: Question) -> None:
    """Refuse rows of which no column says whose they are."""
    if None in (unit_columns(question.source) or (None,)):
        raise QuestionRefusal(
            "Q23",
            "no column of this release says whose a row is.",
            why="each person is counted in so many steps and in no more, which takes to know "
            "them again.",
            fix="declare a unit, and leave its column in the SELECT; or leave out "
            "steps_per_unit: then every step is measured by itself.",
        )


def _read_geography(declared: Declared, engine: Any, schema: Schema) -> Declared:
    """The places of the public table that was named, as part of what is declared."""
    if not declared.geography or declared.tree:
        return declared
    table = schema.tables.get(declared.geography)
    if table is None or not table.public:
        raise InvalidParameter(
            "P4",
            f"{declared.geography!r} is not a public table of the schema.",
            why="a tree that were read from people's rows would tell who lives alone.",
            fix="declare a table without a unit that lists the places, and name it.",
        )
    rows = engine.public_rows(declared.geography)
    return replace(declared, tree=read_tree(rows, declared.by, declared.geography))


def _count_all(source: str) -> str:
    if source.split(None, 1)[0].upper() in ("SELECT", "WITH"):
        return f"SELECT COUNT(*) AS n FROM ({source}) AS released"  # noqa: S608 (parsed, not run)
    quoted = source.replace('"', '""')
    return f'SELECT COUNT(*) AS n FROM "{quoted}"'  # noqa: S608


def _nothing() -> Loss:
    return Loss(Fraction(0), Fraction(0))


__all__ = ["PlannedRelease", "Prepared", "prepare_release"]
