"""Fuzzing of work: at no step has anybody more rows than the ceiling that accepted the question.

The neighbours' fuzzer looks at what is measured in the end, and a bound there hides what was
made on the way.  Here every join and every union of a random relation is run by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fuzz.questions import relations
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import World, worlds
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from discreet.engine.duckdb import database, render
from discreet.errors import QuestionRefusal
from discreet.question import ownership
from discreet.question.functions.nodes import add_definitions, quote_table, select_all
from discreet.question.relation import PublicJoin, Relation, Union, UnitJoin

QUICK, LONG = 8, 500
SHAPES = ("unit join", "unit join", "public join", "union", "per unit", "filter")
Patch = pytest.MonkeyPatch


def multiplying(relation: Any) -> Iterator[Relation]:
    """Every step of a relation that may have more rows of somebody than what it is made of."""
    if isinstance(relation, PublicJoin | UnitJoin | Union):
        yield relation
    for part in ("source", "left", "right"):
        below = getattr(relation, part, None)
        if below is not None and not isinstance(below, ownership.PublicSource):
            yield from multiplying(below)


def most_rows(world: World, relation: Relation) -> int:
    """How many rows the engine makes of one unit, at most."""
    found = world._database
    renderer = render.Renderer(lambda table: table, found.multiplicity)
    step = renderer.relation(relation)
    query = add_definitions(select_all(quote_table(step.name)), renderer.definitions)
    unit = ", ".join(f'"{name}"' for name in step.unit)
    sql = f"SELECT MAX(c) FROM (SELECT COUNT(*) AS c FROM ({query.sql('duckdb')}) GROUP BY {unit})"
    ((most,),) = found.connection.execute(sql).fetchall()
    return most or 0


def fuzz(examples: int, *, phases: tuple[Phase, ...] = tuple(Phase), shard: int = 0) -> int:
    """Compare what is made of people with the ceiling; how many steps were run."""
    steps = 0

    @seed(shard)
    @settings(max_examples=examples, phases=phases, **SETTINGS)
    @given(world=worlds(), data=st.data())
    def nobody_has_more_rows_than_allowed(world: World, data: st.DataObject) -> None:
        nonlocal steps
        known = world.engine.catalogue.multiplicity
        try:
            world.show_everybody()
            for _ in range(6):
                shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
                ceiling = data.draw(st.integers(1, 12))
                try:
                    relation = data.draw(relations(world.schema, known, shapes))
                    ownership.check_joined_rows(relation, ceiling, known)
                except QuestionRefusal:
                    continue
                for step in multiplying(relation):
                    made = most_rows(world, step)  # by name: nobody wants to read the world
                    assert made <= ceiling
                    steps += 1
        finally:
            world.close()

    nobody_has_more_rows_than_allowed()
    return steps


def test_nobody_has_more_rows_at_any_step_than_the_ceiling_allows() -> None:
    assert fuzz(QUICK) >= 2 * QUICK


@pytest.mark.soak
def test_nobody_has_more_rows_at_any_step_than_the_ceiling_allows_for_long() -> None:
    assert fuzz(LONG, shard=1) >= 2 * LONG


# --- bugs on purpose ---------------------------------------------------------------------------


def no_ceiling(patch: Patch) -> None:
    """Only what is counted in the end is bounded."""
    patch.setattr(ownership, "check_joined_rows", lambda *_: None)


def only_the_last_step(patch: Patch) -> None:
    """What a sub-query makes before it leaves one row of everybody is not looked at."""
    patch.setattr(ownership, "_steps", lambda relation: iter([relation]))


def larger_for_product(patch: Patch) -> None:
    """A join is taken to have as many rows as the longer of its sides."""
    patch.setattr(ownership, "_product", lambda a, b: None if None in (a, b) else max(a, b))


def believed_multiplicity(patch: Patch) -> None:
    """A public table is taken to have one partner for everybody."""
    patch.setattr(database.Database, "multiplicity", lambda *_: 1)


MUTANTS = (no_ceiling, only_the_last_step, larger_for_product, believed_multiplicity)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        fuzz(2 * QUICK, phases=(Phase.generate,))
