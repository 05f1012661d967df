"""Neighbour fuzzing of statements with many conditions: all that a person moves, at its price.

Each aggregate by itself is compared elsewhere; here what one person moves of all of them
together, each in its own noise, is at most what the statement is charged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzz.test_neighbours import PEOPLE, SETTINGS
from fuzz.worlds import World, distance, vectors, worlds
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from discreet.errors import QuestionRefusal, SchemaRefusal
from discreet.mechanisms import Laplace, Staircase
from discreet.price import Priced, changes, joint, price
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Neighbours
from discreet.question.sql import parse

QUICK, QUICK_CASES = 6, 30
SEARCHED = 48  # worlds, at most, until a mutant is found
SHARDS, LONG, LONG_CASES = 4, 100, 800  # of the long run: so many worlds and cases in each
QUESTIONS = 4

CONDITIONS = [
    *("v.x > 1", "v.x <= 1", "NOT v.x > 1", "v.x = 2", "v.x IN (0, 3)", "v.x IS NULL"),
    *("v.y < 1", "v.y >= 1", "v.y = 0.25", "v.y > v.x", "NOT v.y > v.x", "v.b", "NOT v.b"),
    *("v.region = 'north'", "v.region <> 'north'", "v.region = 'south' AND v.b"),
    *("v.t = 'west'", "v.t <> 'west'", "v.t LIKE '%th'", "v.day < DATE '2024-02-01'"),
]
SHAPES = [
    *("COUNT(*) FILTER (WHERE {})", "COUNT(CASE WHEN {} THEN 1 END)", "COUNT(*)"),
    *("SUM(v.x) FILTER (WHERE {})", "SUM(CASE WHEN {} THEN v.y ELSE 0 END)"),
    *("AVG(v.y) FILTER (WHERE {})", "COUNT(DISTINCT v.x) FILTER (WHERE {})"),
    "COUNT(DISTINCT {{}}) FILTER (WHERE {})",
]
DISTANCES = [
    "DISTANCE_TO_SORTED(v.x, v.day) FILTER (WHERE {})",
    "DISTANCE_TO_SORTED(v.y, v.x) FILTER (WHERE {})",
    "DISTANCE_TO_DEPENDENCY(v.region, v.x) FILTER (WHERE {})",
    "DISTANCE_TO_DEPENDENCY(v.x, v.region, v.b) FILTER (WHERE {})",
    "DISTANCE_TO_CLUSTERS(v.y, 1, 0.5) FILTER (WHERE {})",
    "DISTANCE_TO_CLUSTERS(v.x, 2, 0) FILTER (WHERE {})",
    "DISTANCE_TO_MAXIMUM(v.x, 1) FILTER (WHERE {})",
]
"""A person who stays moves them, too, where their values change."""


@st.composite
def statements(draw: Any, world: World, shapes: tuple[str, ...]) -> str:
    table = world.schema.tables["visits"]
    own = "v.x" if table.by_row or len(table.unit or ()) != 1 else f"v.{(table.unit or ())[0]}"

    def write() -> str:
        text = str(draw(st.sampled_from(shapes)))
        return text.format(draw(st.sampled_from(CONDITIONS))).format(own)

    key = draw(st.sampled_from(["", "", "v.region", "v.b"]))
    measured = [f"{write()} AS a{i}" for i in range(draw(st.integers(2, 5)))]
    text = f"SELECT {', '.join([*([f'{key} AS k'] if key else []), *measured])} FROM visits v"
    if draw(st.booleans()):
        text += f" WHERE {draw(st.sampled_from(CONDITIONS))}"
    return f"{text} GROUP BY {key}" if key else text


def check(world: World, priced: Priced, people: list[int], *, changed: bool = False) -> int:
    """What each person moves of all measurements is at most what is charged.

    Of a change: without one person, and without another instead.
    """
    run = world.runner(priced.plan)
    world.show_everybody()
    if changed and people:
        world.show_without(people[0])
    whole = vectors(run())
    people = people[1:] if changed else people
    for person in people:
        world.show_without(person)
        others = vectors(run())
        lost = 0.0
        for bought, a, b in zip(priced.mechanisms, whole, others, strict=True):
            moved = distance(a, b)[0]
            match bought:
                case Laplace(scale=scale):
                    lost += moved / float(scale)
                case Staircase(epsilon=epsilon):
                    lost += float(epsilon) * (moved > 0)
        charged = float(priced.loss.epsilon)
        assert lost <= charged * (1 + 1e-9), (priced.question.text, lost, charged)
    return len(people)


def fuzz(
    examples: int,
    *,
    shard: int = 0,
    shapes: tuple[str, ...] = (),
    changed: bool = False,
    **options: Any,
) -> int:
    """How many cases were compared, of statements that are charged less than their sum."""
    cases = 0

    @seed(shard)
    @settings(**{**SETTINGS, "max_examples": examples, **options})
    @given(world=worlds(), data=st.data())
    def neighbours_are_close(world: World, data: st.DataObject) -> None:
        nonlocal cases
        try:
            people = world.people()
            for _ in range(QUESTIONS):
                text = data.draw(statements(world, shapes or tuple(SHAPES)))
                try:
                    schema = world.schema
                    if changed:
                        schema = replace(schema, neighbours=Neighbours.CHANGE_ONE)
                    found = price(parse(text, schema), Offer.of(epsilon=3), Catalogue(schema))
                except (QuestionRefusal, SchemaRefusal):
                    continue
                if found.together is None or found.threshold is not None:
                    continue
                chosen = data.draw(st.permutations(people))[:PEOPLE] if people else []
                cases += check(world, found, chosen, changed=changed)
        finally:
            world.close()

    neighbours_are_close()
    return cases


def test_no_person_moves_a_statement_further_than_its_joint_price() -> None:
    assert fuzz(QUICK) >= QUICK_CASES


def test_no_change_of_a_person_moves_a_statement_further_than_its_joint_price() -> None:
    assert fuzz(QUICK, changed=True) >= QUICK_CASES // 2


@pytest.mark.parametrize("mutant", ["_find_groups", "_size"])
def test_a_change_that_forgets_groups_or_sizes_is_found(
    mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        "_find_groups": lambda layout, _: np.zeros(math.prod(layout.shape), dtype=np.int64),
        "_size": lambda *_: 1,
    }
    monkeypatch.setattr(changes, mutant, wrong[mutant])
    changes._find_changes.cache_clear()
    with pytest.raises(AssertionError):
        fuzz(SEARCHED, changed=True, phases=(Phase.generate,))
    changes._find_changes.cache_clear()


@pytest.mark.parametrize("changed", [False, True])
def test_no_person_moves_distances_further_than_their_joint_price(changed: bool) -> None:
    shapes = (*DISTANCES, *SHAPES[:2])
    assert fuzz(QUICK, shapes=shapes, changed=changed) >= QUICK_CASES // 2


@pytest.mark.soak
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_no_person_moves_distances_further_for_long(shard: int, changed: bool) -> None:
    shapes = (*DISTANCES, *SHAPES)
    assert fuzz(LONG, shard=shard, shapes=shapes, changed=changed) >= LONG_CASES // 2


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_no_change_of_a_person_moves_a_statement_further_for_long(shard: int) -> None:
    assert fuzz(LONG, shard=shard, changed=True) >= LONG_CASES // 2


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_no_person_moves_a_statement_further_for_long(shard: int) -> None:
    assert fuzz(LONG, shard=shard) >= LONG_CASES


def unknown_is_false(patch: pytest.MonkeyPatch) -> None:
    """What is not understood is taken not to happen."""
    original = joint.Cutter._flag

    def flag(self: Any, condition: Any) -> Any:
        return original(self, condition) if self._is_listed(condition) else joint._FALSE

    patch.setattr(joint.Cutter, "_flag", flag)


def conditions_exclude_each_other(patch: pytest.MonkeyPatch) -> None:
    """Of several conditions a row is taken to meet one."""
    original = joint.find_cells

    def apart(*given: Any) -> Any:
        cells = original(*given)
        single = {1 << i for rows in cells.values() for s in rows for i in range(60) if s >> i & 1}
        return {0: single}

    patch.setattr(joint, "find_cells", apart)


@pytest.mark.parametrize("mutant", [unknown_is_false, conditions_exclude_each_other])
def test_a_price_that_forgets_what_is_met_together_is_found(
    mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        fuzz(SEARCHED, shapes=tuple(SHAPES[:2]), phases=(Phase.generate,))
