"""The engine against the small reference evaluator, on random worlds and plans.

Where a unit has more than it may keep, which rows go is the engine's choice and
the reference has none; those cases are not compared, so limits are drawn wide.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from fuzz.questions import Focus, plans
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import World, worlds
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference import Reader, Truncated, canonical

from discreet.engine.duckdb import declared, grid
from discreet.engine.truth import Opened, SparseCounts
from discreet.errors import QuestionRefusal
from discreet.price.plan import Plan
from discreet.question.functions import nodes, read_kind

QUICK, QUICK_CASES = 18, 60
SEARCHED = 45  # worlds, at most, until a mutant is found
LONG, LONG_CASES = 3_000, 10_000
PLANS = 5


def plain(result: Opened) -> tuple[list[Any], list[Any]]:
    """A result in the reference's form."""
    measured: list[Any] = []
    for part in result.measured:
        if isinstance(part, SparseCounts):
            entries = zip(part.group, part.position, part.count, strict=True)
            measured.append({(int(g), int(u)): int(n) for g, u, n in entries})
        else:
            measured.append([[int(v) for v in row] for row in np.asarray(part)])
    return [tuple(group) for group in result.groups], measured


def agrees(world: World, plan: Plan) -> bool:
    """Whether the plan was compared; it must agree if it was."""
    try:
        groups, measured = Reader(world.rows).measure(plan)
    except Truncated:
        return False
    found_groups, found = plain(world.run(plan))
    if plan.public_keys:
        assert [canonical(g) for g in found_groups] == [canonical(g) for g in groups]
    else:
        assert found_groups == groups
    assert found == measured, plan
    return True


def compare(examples: int, phases: tuple[Phase, ...] = tuple(Phase)) -> int:
    cases = 0

    @settings(max_examples=examples, phases=phases, **SETTINGS)
    @given(world=worlds(bounding=False), data=st.data())
    def engine_agrees(world: World, data: st.DataObject) -> None:
        nonlocal cases
        try:
            for _ in range(PLANS):
                limits = data.draw(st.sampled_from(["most", "most", "rows"]))
                try:
                    plan = data.draw(
                        plans(
                            world.schema, world.engine.catalogue.multiplicity, Focus(limits=limits)
                        )
                    )
                except QuestionRefusal:
                    continue
                cases += agrees(world, plan)
        finally:
            world.close()

    engine_agrees()
    return cases


def test_agrees_with_the_reference() -> None:
    assert compare(QUICK) >= QUICK_CASES


@pytest.mark.soak
def test_agrees_with_the_reference_for_long() -> None:
    assert compare(LONG) >= LONG_CASES


def lower_bound_used_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grid, "clip", lambda node, low, _: nodes.call("LEAST", node, low))


def column_not_clipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(declared, "read_column", lambda column, raw: read_kind(column.kind, raw))


def null_read_as_low(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grid, "_unless_null", lambda _, result: result)


MUTANTS = [lower_bound_used_twice, column_not_clipped, null_read_as_low]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong, but not unsafe: the enforcement at the aggregate still holds, or the engine fails."""
    mutant(monkeypatch)
    with pytest.raises((AssertionError, duckdb.Error)):
        compare(SEARCHED, (Phase.generate,))
