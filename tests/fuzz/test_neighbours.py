"""Neighbour fuzzing: no person moves the exact integers further than the price says.

The most valuable test of the engine.  A case is one random plan on one random
world, with and without one person, on the real DuckDB.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from fuzz.questions import ANYWHERE, Focus, plans
from fuzz.worlds import Vector, World, allows, distance, vectors, worlds
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from discreet.errors import QuestionRefusal
from discreet.price.plan import Plan, Sensitivity
from discreet.question.schema import Neighbours

price = import_module("discreet.price.plan")  # the package has a function of this name

# With those of test_sql_neighbours: 600 and 100,000.
QUICK, QUICK_CASES = 16, 430
SEARCHED = 150  # worlds, at most, until a mutant is found
SHARDS, LONG, LONG_CASES = 36, 100, 2_500  # of the long run: so many worlds and cases in each
PLANS, PEOPLE = 6, 5

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "report_multiple_bugs": False,
    "print_blob": False,
    "suppress_health_check": list(HealthCheck),
}


def priced(plan: Plan, neighbours: Neighbours) -> list[Sensitivity]:
    """What the price says of each measurement of a plan."""
    grouped = bool(plan.keys)
    reach = price.Reach.of(plan.contribution, grouped=grouped)
    return [
        price.compute_sensitivity(m, reach, neighbours, grouped=grouped) for m in plan.measurements
    ]


def compare(plan: Plan, one: list[Vector], other: list[Vector], neighbours: Neighbours) -> None:
    """The vectors of two neighbours are no further apart than the price says."""
    bounds = priced(plan, neighbours)
    for measurement, bound, a, b in zip(plan.measurements, bounds, one, other, strict=True):
        l1, l2_squared = distance(a, b)
        assert l1 <= bound.l1, (neighbours, measurement, l1, bound)
        assert l2_squared <= bound.l2_squared, (neighbours, measurement, l2_squared, bound)
        reach = price.Reach.of(plan.contribution, grouped=bool(plan.keys))
        moves = price.find_moves(measurement, reach, neighbours, grouped=bool(plan.keys))
        gaps = [abs(a.get(key, 0) - b.get(key, 0)) for key in a.keys() | b.keys()]
        assert allows(moves, [gap for gap in gaps if gap]), (neighbours, measurement, gaps, moves)


def check(world: World, plan: Plan, people: list[int]) -> int:
    """Compare the plan's integers with those without each of ``people``; how many cases.

    Without one person, and without another: those two differ in whom they hold,
    so they are neighbours by a change.
    """
    run = world.runner(plan)
    world.show_everybody()
    whole = vectors(run())
    before: list[Vector] | None = None
    for person in people:
        world.show_without(person)
        others = vectors(run())
        compare(plan, whole, others, Neighbours.ADD_REMOVE)
        if before is not None:
            compare(plan, before, others, Neighbours.CHANGE_ONE)
        before = others
    return len(people)


def fuzz(
    examples: int,
    *,
    phases: tuple[Phase, ...] = tuple(Phase),
    focus: Focus = ANYWHERE,
    shard: int = 0,
) -> int:
    """Run ``examples`` worlds with a few plans and people each; how many cases that were."""
    cases = 0

    @seed(shard)
    @settings(max_examples=examples, phases=phases, **SETTINGS)
    @given(world=worlds(), data=st.data())
    def neighbours_are_close(world: World, data: st.DataObject) -> None:
        nonlocal cases
        try:
            people = world.people()
            for _ in range(PLANS):
                try:
                    plan = data.draw(
                        plans(world.schema, world.engine.catalogue.multiplicity, focus)
                    )
                except QuestionRefusal:
                    continue
                chosen = data.draw(st.permutations(people))[:PEOPLE] if people else []
                cases += check(world, plan, chosen)
        finally:
            world.close()

    neighbours_are_close()
    return cases


def test_no_person_moves_the_integers_further_than_the_price() -> None:
    assert fuzz(QUICK) >= QUICK_CASES


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_no_person_moves_the_integers_further_than_the_price_for_long(shard: int) -> None:
    assert fuzz(LONG, shard=shard) >= LONG_CASES
