"""Bugs on purpose: each must be found by the very cases that ``make test`` runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt
from typing import Any

import duckdb
import pytest
from fuzz.questions import ANYWHERE, Focus
from fuzz.test_neighbours import SEARCHED, fuzz, price
from hypothesis import Phase
from sqlglot import exp

from discreet.engine.duckdb import database, declared, grid, measure, render
from discreet.price.plan import GroupMean, Sensitivity
from discreet.question.functions.nodes import Node, quote_table, select_all
from discreet.question.schema import Neighbours

Patch = pytest.MonkeyPatch


def found(focus: Focus = ANYWHERE, shard: int = 0) -> bool:
    """Whether some case fails, by its own check or in the engine; most do among the first."""
    try:
        fuzz(SEARCHED, phases=(Phase.generate,), focus=focus, shard=shard)
    except (AssertionError, duckdb.Error):
        return True
    return False


def dropped_clamp(patch: Patch) -> None:
    """The upper end of a value is not enforced."""
    patch.setattr(grid, "clip", lambda node, low, high: grid.nodes.call("GREATEST", node, low))


def unclipped_total(patch: Patch) -> None:
    """A unit's total is summed but not clipped."""
    patch.setattr(measure, "clip", lambda node, low, high: node)


def summed_mean(patch: Patch) -> None:
    """A unit's mean is its total: clipped for every row, and never divided by how many."""

    def total(own: Node, mean: Any) -> Node:
        rows = measure._count_of(exp.Star())
        above = grid.nodes.infix(exp.Sub, own, measure._times(rows, mean.low))
        most = measure._times(rows, mean.span)
        return grid.clip(above, grid.nodes.wide(grid.nodes.whole(0)), most)

    patch.setattr(measure, "_own_mean", total)


def forgotten_bound(patch: Patch) -> None:
    """max_rows_per_unit is believed, not enforced."""

    def unbounded(shape: Any, source: str, name: str, **_: Any) -> list[Any]:
        return [(name, declared.select_owned_rows(shape, source), True)]

    patch.setattr(declared, "bound_rows", unbounded)


def forgotten_truncation(patch: Patch) -> None:
    """The question's own limits are not enforced."""
    patch.setattr(measure, "_choose_rows", lambda *_: None)


def forgotten_groups(patch: Patch) -> None:
    """Rows per group are limited, groups are not."""
    patch.setattr(measure, "choose_values", lambda *_, **__: exp.Boolean(this=True))


def lost_unit(patch: Patch) -> None:
    """A join on the unit pairs everybody with everybody."""

    def joined(self: Any, join: Any) -> Any:
        left, right = self.relation(join.left), self.relation(join.right)
        return self._join(join, left, right, [exp.Boolean(this=True)])

    patch.setattr(render.Renderer, "_unit_join", joined)


def believed_multiplicity(patch: Patch) -> None:
    """A public table is taken to have one partner for everybody."""
    patch.setattr(database.Database, "multiplicity", lambda *_: 1)


def chosen_among_all(patch: Patch) -> None:
    """The first rows of everybody are kept, instead of the first of each."""
    original = declared.choose_rows

    def among_all(_: Any, content: Any, **options: Any) -> Node:
        return original((), content, **options)

    ranked = declared.rank_rows
    patch.setattr(declared, "choose_rows", among_all)
    patch.setattr(measure, "choose_rows", among_all)
    patch.setattr(declared, "rank_rows", lambda function, _, content: ranked(function, (), content))


def merged_people(patch: Patch) -> None:
    """The unit is clipped to its bounds, so that two people become one."""
    original = declared.select_owned_rows

    def merged(shape: Any, source: str) -> exp.Select:
        rows = original(shape, source)
        values = {item.alias: item.this for item in rows.expressions}
        for name, item in zip(shape.table.unit or (), rows.expressions, strict=False):
            if name in shape.fields:
                item.set("this", values[shape.fields[name].identifier].copy())
        return rows

    patch.setattr(declared, "select_owned_rows", merged)


def chosen_by_number(patch: Patch) -> None:
    """Where every row is a unit, its place in the table has a say in which rows are kept."""
    patch.setattr(declared, "pick_own", tuple)


def counted_rows(patch: Patch) -> None:
    """COUNT(DISTINCT unit) counts rows."""
    patch.setattr(measure._Parts, "_units", lambda _: exp.Star())


def limit_below(patch: Patch) -> None:
    """LIMIT is let through below the release."""
    original = render.Renderer.relation

    def limited(self: Any, relation: Any) -> Any:
        step = original(self, relation)
        query = select_all(quote_table(step.name))
        query.set("limit", exp.Limit(expression=exp.Literal.number("3")))
        return replace(step, name=self.define(query))

    patch.setattr(render.Renderer, "relation", limited)


def mixed_people(patch: Patch) -> None:
    """One row for each key, instead of one for each unit and key."""
    original = render.Renderer._per_unit

    def mixed(self: Any, relation: Any) -> Any:
        step = original(self, relation)
        name, query, once = self.definitions[-1]
        group = query.args["group"].expressions[len(step.unit) :]
        query.set("group", exp.Group(expressions=group) if group else None)
        for item in query.expressions[: len(step.unit)]:
            item.set("this", exp.Anonymous(this="MIN", expressions=[item.this]))
        self.definitions[-1] = (name, query, once)
        return step

    patch.setattr(render.Renderer, "_per_unit", mixed)


def per_row_as_total(patch: Patch) -> None:
    """The rows allowed in one group are taken for the rows allowed in all."""
    original = price.Reach.of.__func__

    def reach(cls: Any, contribution: Any, *, grouped: bool) -> Any:
        whole = original(cls, contribution, grouped=grouped)
        return replace(whole, rows=whole.rows_per_group)

    patch.setattr(price.Reach, "of", classmethod(reach))


def _sensitivity(patch: Patch, wrong: Callable[[Sensitivity], Sensitivity]) -> None:
    original = price.compute_sensitivity
    patch.setattr(
        price, "compute_sensitivity", lambda *given, **how: wrong(original(*given, **how))
    )


def l2_for_l1(patch: Patch) -> None:
    """The Euclidean sensitivity is used for both norms."""
    _sensitivity(patch, lambda s: replace(s, l1=isqrt(s.l2_squared)))


def one_change_for_two(patch: Patch) -> None:
    """A change of one unit is priced as an addition."""
    original = price.compute_sensitivity
    patch.setattr(
        price,
        "compute_sensitivity",
        lambda m, reach, _, **how: original(m, reach, Neighbours.ADD_REMOVE, **how),
    )


MUTANTS: dict[Callable[[Patch], None], Focus] = {
    dropped_clamp: Focus("source", "most"),
    unclipped_total: Focus("source"),
    summed_mean: Focus("source", measured=GroupMean),
    forgotten_bound: ANYWHERE,
    forgotten_truncation: ANYWHERE,
    forgotten_groups: Focus("source", "groups"),
    lost_unit: Focus("unit join", "most"),
    believed_multiplicity: Focus("public join", "most"),
    chosen_among_all: Focus("source", "rows"),
    chosen_by_number: Focus("public join", "rows"),
    merged_people: Focus("source", "groups"),
    counted_rows: Focus("source", "groups"),
    limit_below: ANYWHERE,
    mixed_people: Focus("per unit", "most"),
    per_row_as_total: Focus("source", "groups"),
    l2_for_l1: Focus("source", "groups"),
    one_change_for_two: Focus("source", "most"),
}
"""Each mutant, and where to look: everything is covered by both runs, but not as soon."""
SOONER: dict[Callable[[Patch], None], int] = {
    counted_rows: 3,
    forgotten_groups: 6,
    forgotten_truncation: 1,
    limit_below: 2,
    merged_people: 1,
    per_row_as_total: 4,
}
"""Shards in which a mutant is met among the first cases: in the first it takes ten times longer."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    assert found(focus=MUTANTS[mutant], shard=SOONER.get(mutant, 0))


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found_without_a_hint(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    assert found()
