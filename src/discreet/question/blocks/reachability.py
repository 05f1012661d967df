"""Which blocks a question can touch.

A question touches a block if a unit of that block could have a row that is
counted.  Each relation is read as the ways in which a row of it can come about
(:class:`Way`): on which blocks that is possible, and which of the row's columns
are known from the block.  Most relations have one way; a row of a left join has
found a partner or not, a row of a union comes from the left or from the right.
Whatever is not understood is possible (Lemma 3, case by case).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from discreet.question.blocks.evaluate import Columns, Known, Mask, evaluate_on_blocks
from discreet.question.blocks.outcomes import possible_outcomes
from discreet.question.blocks.space import Area, Part, Space
from discreet.question.domain import Domain
from discreet.question.expressions import Call, ColumnRef, Expression
from discreet.question.functions.declaration import plain, union
from discreet.question.ownership import unit
from discreet.question.question import Key, Question
from discreet.question.relation import (
    Filter,
    GraphRows,
    JoinKind,
    OwnerJoin,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
    Windowed,
)
from discreet.question.schema import Neighbours, Schema

MOST_WAYS = 64
"""Beyond so many ways nothing more is learnt of a relation."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a row can come about.

    ``possible`` says for which blocks, ``outside`` whether for a unit that lies
    in no block; then the way looks the same on every block (Lemma 3).
    """

    possible: Mask
    outside: bool
    columns: Columns

    def where(self, condition: Expression) -> Way:
        """The rows on which ``condition`` is true."""
        return self.only(possible_outcomes(condition, self.columns, self.possible.ndim).true)

    def only(self, blocks: Mask) -> Way:
        """The rows of units in ``blocks``."""
        return replace(
            self, possible=self.possible & blocks, outside=self.outside and bool(blocks.any())
        )


def reach(question: Question, schema: Schema, space: Space) -> Area:
    """The blocks of ``space`` that ``question`` can touch; never fewer than those it does.

    A question about people of whom no blocks are declared touches every block.

    >>> from discreet.question.sql import parse
    >>> schema = Schema.from_text('''
    ... [tables.visits]
    ... unit = "patient"
    ... blocks = ["region"]
    ... max_rows_per_unit = 3
    ... [tables.visits.columns]
    ... patient = "integer"
    ... age = { type = "integer", bounds = [0, 120] }
    ... region = { type = "text", values = ["north", "south", "west"], nullable = false }
    ... ''')
    >>> asked = parse("SELECT COUNT(*) FROM visits WHERE region <> 'south' AND age > 40", schema)
    >>> reach(asked, schema, Space.of(schema)).names()
    ('region = north', 'region = west')
    """
    part = space.part(unit(question.source).entity)
    if part is None or schema.neighbours is not Neighbours.ADD_REMOVE:
        return Area.everything(space)
    found = np.zeros(space.size, dtype=bool)
    cells = np.zeros(part.shape, dtype=bool)
    for way in _ways(question.source, part):
        counted = _find_counted(question, way)
        cells |= counted.possible
        found[0] |= counted.outside
    found[part.first : part.first + part.size] = cells.ravel()
    return Area.of(space, found)


def _find_counted(question: Question, way: Way) -> Way:
    """The rows that are counted: of a listed group, and in a FILTER of an aggregate."""
    for key in question.keys:
        way = _keep_listed(key, way)
    conditions = [a.condition for a in question.aggregates if a.condition is not None]
    every = len(conditions) == len(question.aggregates)
    if conditions and every and all(key.values is not None for key in question.keys):
        # Groups that are not listed are counted by people, whatever the aggregates filter.
        # A condition that is NULL counts no row, and must not make another one NULL.
        way = way.where(Call("or", tuple(Call("is_true", (c,)) for c in conditions)))
    return way


def _keep_listed(key: Key, way: Way) -> Way:
    value = evaluate_on_blocks(key.expression, way.columns, way.possible.ndim)
    if key.values is None or value is None:
        return way
    listed = set(map(plain, key.values))
    kept = [v in listed for v in value.values.ravel().tolist()]
    return way.only(np.array(kept, dtype=bool).reshape(value.values.shape))


# --- relations -----------------------------------------------------------------------------


def _ways(relation: Relation, part: Part) -> list[Way]:
    found = list(_each_way(relation, part))
    if len(found) <= MOST_WAYS:
        return found
    possible = reduce(np.logical_or, (way.possible for way in found))
    return [Way(possible, any(way.outside for way in found), {})]


def _each_way(relation: Relation, part: Part) -> Iterable[Way]:
    match relation:
        case Source():
            return [_source(relation, part)]
        case Filter(source=source, predicate=predicate):
            return [way.where(predicate) for way in _ways(source, part)]
        case Project(source=source, columns=named):
            return [
                replace(way, columns=_compute_columns(named, way)) for way in _ways(source, part)
            ]
        case PublicJoin(left=left):  # public rows look the same from every block
            return _ways(left, part)
        case UnitJoin():
            return _join_ways(relation, part)
        case OwnerJoin() | GraphRows():  # people with blocks have no table of two owners: everybody
            return [Way(np.ones(part.shape, dtype=bool), True, {})]
        case PerUnit():
            return _per_unit(relation, part)
        case Windowed(source=source):  # what other rows say is not known of a block
            return _ways(source, part)
        case Union(left=left, right=right):
            return _union(_ways(left, part), _ways(right, part))


def _source(source: Source, part: Part) -> Way:
    """A table with blocks shows them; one without may have rows of anybody of the entity."""
    blocks = source.table.blocks
    columns = {
        name: part.columns[blocks.index(column)]
        for name, column in source.columns
        if column in blocks
    }
    return Way(np.ones(part.shape, dtype=bool), not blocks, columns)


def _compute_columns(named: Iterable[tuple[str, Expression]], way: Way) -> Columns:
    found = ((name, evaluate_on_blocks(e, way.columns, way.possible.ndim)) for name, e in named)
    return {name: value for name, value in found if value is not None}


def _join_ways(join: UnitJoin, part: Part) -> Iterable[Way]:
    """Both rows belong to one unit, so they lie in the same block."""
    lefts, rights = _ways(join.left, part), _ways(join.right, part)
    for left in lefts:
        for right in rights:
            both = Way(
                left.possible & right.possible,
                left.outside and right.outside,
                {**left.columns, **right.columns},
            )
            for a, b in join.on:
                both = both.where(Call("equal", (ColumnRef(a), ColumnRef(b))))
            yield both
        if join.kind is not JoinKind.INNER:
            # A row without a partner stays, and NULL stands for what the partner would show.
            yield replace(left, columns={**left.columns, **_nulls(rights)})
    if join.kind is JoinKind.FULL:
        for right in rights:
            yield replace(right, columns={**_nulls(lefts), **right.columns})


def _nulls(ways: list[Way]) -> Columns:
    """NULL in the place of everything that a partner could show."""
    shown = {name: value for way in ways for name, value in way.columns.items()}
    return {name: _null(value) for name, value in shown.items()}


def _null(value: Known) -> Known:
    empty = np.empty((1,) * value.values.ndim, dtype=object)
    return Known(empty, value.domain.with_null())


def _per_unit(relation: PerUnit, part: Part) -> Iterable[Way]:
    """A group's keys are those of any of its rows; if all rows come one way, MIN is theirs too."""
    ways = _ways(relation.source, part)
    same = relation.aggregates if len(ways) == 1 else ()
    named = [*relation.keys, *((name, e) for name, a in same if (e := _extreme(a)) is not None)]
    return [replace(way, columns=_compute_columns(named, way)) for way in ways]


def _extreme(aggregate: UnitAggregate) -> Expression | None:
    return aggregate.argument if aggregate.function in ("MIN", "MAX") else None


def _union(left: list[Way], right: list[Way]) -> Iterable[Way]:
    """The rows of both; a column is known if it is on both sides, of the same kind.

    It then has the bounds of both sides, as the engine types it: by the bounds of
    one alone, what the engine computes in doubles could be taken for whole numbers.
    """
    sides = [*left, *right]
    agreed: dict[str, Domain] = {}
    for name in set.intersection(*(set(way.columns) for way in sides)):
        found = [way.columns[name].domain for way in sides]
        if len({domain.kind for domain in found}) == 1:
            agreed[name] = union(found, "UNION")
    for way in sides:
        columns = {name: _within(way.columns[name], domain) for name, domain in agreed.items()}
        yield replace(way, columns=columns)


def _within(value: Known, domain: Domain) -> Known:
    """The same value, of which less is known; the same object, if no less is."""
    return value if value.domain == domain else replace(value, domain=domain)
