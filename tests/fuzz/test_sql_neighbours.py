"""Neighbour fuzzing from the analyst's side: random SQL, parsed, priced, run, compared.

The vector that the release would add noise to moves at most by the sensitivities
that the price put on the statement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from fuzz.test_neighbours import PEOPLE, SETTINGS
from fuzz.worlds import World, distance, vectors, worlds
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from discreet.errors import QuestionRefusal
from discreet.price import Priced, price
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

QUICK, QUICK_CASES = 26, 500
SHARDS, LONG, LONG_CASES = 6, 100, 2_000  # of the long run: so many worlds and cases in each
QUESTIONS = 6
SPEND = Offer(epsilon=Fraction(3, 4), delta=Fraction(1, 10**6))

CONDITIONS = [
    "v.x > 1",
    "v.y BETWEEN 0 AND 3",
    "v.region IN ('north', 'west')",
    "v.t IS NOT NULL",
    "v.b",
    "NOT (v.x = 2 OR v.y < 1)",
    "v.t LIKE '%th'",
    "v.day >= DATE '2024-02-01'",
    "CASE WHEN v.b THEN v.x ELSE v.x / 2 END > 1",
]
NUMBERS = [
    "v.x",
    "v.y",
    "v.x * v.x - 3",
    "ABS(v.y)",
    "COALESCE(v.x, 1)",
    "CASE WHEN v.region = 'north' THEN v.x ELSE v.y END",
    "GREATEST(LEAST(v.pid, 5), 0)",
    "v.x / v.y",
]
KEYS = ["v.region", "v.b", "v.x", "v.t", "UPPER(v.region)", "v.x > 2"]
AGGREGATES = [
    "COUNT(*)",
    "COUNT({})",
    "SUM({})",
    "AVG({})",
    "VAR_POP({})",
    "STDDEV_SAMP({})",
    "MEDIAN({})",
    "MAX({})",
    "COUNT(DISTINCT v.t)",
    "COUNT(DISTINCT v.x)",
    "COUNT(*) FILTER (WHERE v.x > 0)",
    "SUM({}) FILTER (WHERE v.b)",
    "CORR({}, v.y)",
    "MODE(v.region)",
    "SUM({}, contribution_bounds_per_group => (0, 4))",
]
OPTIONS = ["", "", "max_groups_contributed=1", "max_groups_contributed=2", "max_rows=2"]


def sources(schema: Schema) -> list[str]:
    unit = schema.tables["visits"].unit or ()
    found = [
        "visits v",
        "visits v JOIN cities c ON v.region = c.name",
        "visits v LEFT JOIN cities c ON v.x = c.pop",
        "(SELECT * FROM visits w WHERE w.x > 0 UNION ALL SELECT * FROM visits w WHERE w.b) v",
    ]
    if not schema.tables["visits"].by_row:
        same = " AND ".join(f"v.{name} = p.{name}" for name in unit)
        own = ", ".join(f"w.{name}" for name in unit)
        found += [
            f"visits v JOIN people p ON {same}",
            f"visits v LEFT JOIN people p ON {same}",
            f"visits v JOIN (SELECT {own}, SUM(w.age) AS total FROM people w GROUP BY {own}) p "
            f"ON {same}",
            f"(SELECT {own}, SUM(w.x) AS x, AVG(w.y) AS y, MIN(w.region) AS region, "
            f"COUNT(*) AS pid_rows FROM visits w GROUP BY {own}) v",
        ]
    return found


@st.composite
def questions(draw: Any, schema: Schema) -> str:
    def some(values: list[str]) -> str:
        chosen: str = draw(st.sampled_from(values))
        return chosen

    count = draw(st.integers(1, 3))
    measured = [f"{some(AGGREGATES).format(some(NUMBERS))} AS a{i}" for i in range(count)]
    key = some(KEYS) if draw(st.booleans()) else ""
    options = some(OPTIONS)
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) " if options else ""
    text = f"SELECT {clause}{', '.join([*([f'{key} AS k'] if key else []), *measured])}"
    text += f" FROM {some(sources(schema))}"
    if draw(st.booleans()):
        text += f" WHERE {some(CONDITIONS)}"
    return f"{text} GROUP BY {key}" if key else text


def check(world: World, priced: Priced, people: list[int]) -> int:
    run = world.runner(priced.plan)
    world.show_everybody()
    whole = vectors(run())
    for person in people:
        world.show_without(person)
        for bound, a, b in zip(priced.sensitivities, whole, vectors(run()), strict=True):
            l1, l2_squared = distance(a, b)
            assert l1 <= bound.l1, (priced.question.text, l1, bound)
            assert l2_squared <= bound.l2_squared, (priced.question.text, l2_squared, bound)
    return len(people)


def fuzz(examples: int, *, shard: int = 0) -> tuple[int, int]:
    """How many cases were compared, and how many questions were refused."""
    cases = refused = 0

    @seed(shard)
    @settings(max_examples=examples, **SETTINGS)
    @given(world=worlds(), data=st.data())
    def neighbours_are_close(world: World, data: st.DataObject) -> None:
        nonlocal cases, refused
        try:
            people = world.people()
            for _ in range(QUESTIONS):
                text = data.draw(questions(world.schema))
                try:
                    asked = parse(
                        text, world.schema, multiplicity=world.engine.catalogue.multiplicity
                    )
                    priced = price(
                        asked,
                        SPEND,
                        schema=world.schema,
                        multiplicity=world.engine.catalogue.multiplicity,
                    )
                except QuestionRefusal:
                    refused += 1
                    continue
                chosen = data.draw(st.permutations(people))[:PEOPLE] if people else []
                cases += check(world, priced, chosen)
        finally:
            world.close()

    neighbours_are_close()
    return cases, refused


def test_no_person_moves_an_accepted_question_further_than_its_price() -> None:
    cases, _ = fuzz(QUICK)
    assert cases >= QUICK_CASES


@pytest.mark.soak
@pytest.mark.parametrize("shard", range(1, 1 + SHARDS))
def test_no_person_moves_an_accepted_question_further_than_its_price_for_long(shard: int) -> None:
    cases, _ = fuzz(LONG, shard=shard)
    assert cases >= LONG_CASES
