"""Neighbour fuzzing from the analyst's side: random SQL, parsed, priced, run, compared.

The vector that the release would add noise to moves at most by the sensitivities
that the price put on the statement.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import duckdb
import pytest
from fuzz.test_neighbours import PEOPLE, SETTINGS
from fuzz.worlds import World, allows, distance, vectors, worlds
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.engine.duckdb import render
from discreet.errors import QuestionRefusal
from discreet.mechanisms import KeyRelease, Staircase
from discreet.price import Priced, price
from discreet.price.plan import find_moves
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

QUICK, QUICK_CASES = 28, 500
SHARDS, LONG, LONG_CASES = 6, 100, 2_000  # of the long run: so many worlds and cases in each
QUESTIONS = 6
SPENDS = [
    Offer(epsilon=Fraction(3, 4), delta=Fraction(1, 10**6)),
    Offer(epsilon=Fraction(4), delta=Fraction(1, 10**6)),  # where staircases are bought
]

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
    "LPAD(v.t, 3, 'x') < 'p'",
    "v.t[1] = 'n'",
    "TIME_BUCKET(INTERVAL '1 month', v.day) >= DATE '2024-02-01'",
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
    "WIDTH_BUCKET(v.x, 0, 10, 4)",
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
    "SUM({}, contribution_bounds_per_group => (-3, 4))",
    "AVG({}, contribution_bounds_per_group => (-1, 3))",
    "AVG({}, contribution_bounds_per_group => (0, 2)) FILTER (WHERE v.x > 0)",
]
OPTIONS = ["", "", "max_groups_contributed=1", "max_groups_contributed=2", "max_rows=2"]


def sources(schema: Schema) -> list[str]:
    unit = schema.tables["visits"].unit or ()
    found = [
        "visits v",
        "visits v JOIN cities c ON v.region = c.name",
        "visits v LEFT JOIN cities c ON v.x = c.pop",
        "cities c LEFT JOIN visits v ON v.region = c.name",
        "visits v CROSS JOIN cities c",
        "(SELECT * FROM visits w WHERE w.x > 0 UNION ALL SELECT * FROM visits w WHERE w.b) v",
    ]
    if not schema.tables["visits"].by_row:
        same = " AND ".join(f"v.{name} = p.{name}" for name in unit)
        own = ", ".join(f"w.{name}" for name in unit)
        found += [
            f"visits v JOIN people p ON {same}",
            f"visits v LEFT JOIN people p ON {same}",
            f"visits v FULL JOIN people p ON {same}",
            f"visits v FULL JOIN people p ON {same} AND v.x = p.age",
            f"visits v JOIN (SELECT {own}, SUM(w.age) AS total FROM people w GROUP BY {own}) p "
            f"ON {same}",
            f"(SELECT {own}, SUM(w.x) AS x, AVG(w.y) AS y, MIN(w.region) AS region, "
            f"COUNT(*) AS pid_rows FROM visits w GROUP BY {own}) v",
            f"(SELECT DISTINCT {own}, w.x, w.y, w.region, w.b, w.t FROM visits w) v",
            f"(SELECT {own}, w.x, w.y FROM visits w UNION SELECT {own}, w.y, w.x FROM visits w) v",
            *windows(own),
        ]
    return found


def windows(own: str) -> list[str]:
    """Rows that look at other rows of the same unit."""
    kept = f"{own}, w.region, w.b, w.t, w.day"
    over = f"PARTITION BY {own} ORDER BY"
    return [
        f"(SELECT {kept}, LAG(w.x) OVER ({over} w.day) AS x, w.y FROM visits w) v",
        f"(SELECT {kept}, w.x, LEAD(w.y, 2, 1) OVER ({over} w.x DESC, w.b) AS y FROM visits w) v",
        f"(SELECT {kept}, ROW_NUMBER() OVER ({over} w.region) AS x, w.y FROM visits w) v",
        f"(SELECT {kept}, NTILE(2) OVER ({over} w.region) AS x, w.y FROM visits w) v",
        f"(SELECT {kept}, RANK() OVER (PARTITION BY {own}, w.b ORDER BY w.x) AS x, w.y "
        "FROM visits w) v",
        f"(SELECT {kept}, SUM(w.x) OVER ({over} w.y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x,"
        f" AVG(w.y) OVER ({over} w.day) AS y FROM visits w) v",
        f"(SELECT {kept}, w.x, w.y FROM visits w QUALIFY ROW_NUMBER() OVER ({over} w.x) <= 2) v",
    ]


def conditions(schema: Schema) -> list[str]:
    """Conditions on a row, and on what else the same unit has."""
    table = schema.tables["visits"]
    if table.by_row or len(table.unit or ()) != 1:
        return CONDITIONS
    (own,) = table.unit or ()
    return [
        *CONDITIONS,
        f"v.{own} IN (SELECT p.{own} FROM people p WHERE p.age > 1)",
        f"NOT EXISTS (SELECT 1 FROM visits u WHERE u.{own} = v.{own} AND u.x > 2)",
        f"v.x >= (SELECT MAX(u.x) FROM visits u WHERE u.{own} = v.{own})",
        f"v.y >= (SELECT AVG(u.y) FROM visits u WHERE u.{own} = v.{own})",
        f"v.y = (SELECT SUM(u.y) FROM visits u WHERE u.{own} = v.{own})",
    ]


@st.composite
def questions(draw: Any, schema: Schema, part: str = "") -> str:
    def some(values: list[str]) -> str:
        chosen: str = draw(st.sampled_from(values))
        return chosen

    key = some(KEYS) if draw(st.booleans()) else ""
    count = draw(st.integers(0 if key else 1, 3))  # none: keys alone
    measured = [f"{some(AGGREGATES).format(some(NUMBERS))} AS a{i}" for i in range(count)]
    options = some(OPTIONS)
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) " if options else ""
    text = f"SELECT {clause}{', '.join([*([f'{key} AS k'] if key else []), *measured])}"
    text += f" FROM {some([s for s in sources(schema) if part in s] or sources(schema))}"
    if draw(st.booleans()):
        text += f" WHERE {some(conditions(schema))}"
    return f"{text} GROUP BY {key}" if key else text


def check(world: World, priced: Priced, people: list[int]) -> int:
    run = world.runner(priced.plan)
    world.show_everybody()
    whole = vectors(run())
    for person in people:
        world.show_without(person)
        others = vectors(run())
        parts = zip(priced.sensitivities, priced.plan.measurements, strict=True)
        for index, (bound, measured) in enumerate(parts):
            a, b = whole[index], others[index]
            l1, l2_squared = distance(a, b)
            assert l1 <= bound.l1, (priced.question.text, l1, bound)
            assert l2_squared <= bound.l2_squared, (priced.question.text, l2_squared, bound)
            moved = [abs(a.get(key, 0) - b.get(key, 0)) for key in a.keys() | b.keys()]
            check_entries(priced, index, measured, [gap for gap in moved if gap])
    return len(people)


def check_entries(priced: Priced, index: int, measured: Any, gaps: list[int]) -> None:
    """How many entries a person moves, and how units are counted: by one in each group."""
    text, bought = priced.question.text, priced.mechanisms[index]
    grouped = bool(priced.plan.keys)
    moves = find_moves(measured, priced.reach, priced.neighbours, grouped=grouped)
    assert allows(moves, gaps), (text, gaps, moves)
    if isinstance(bought, Staircase):
        assert len(gaps) <= 1, text
    if priced.threshold is not None and priced.threshold.measurement == index:
        assert max(gaps, default=0) <= 1, text
        assert len(gaps) <= priced.reach.groups, text
        if isinstance(bought, KeyRelease):
            assert bought.keys >= len(gaps), text


def fuzz(examples: int, *, shard: int = 0, part: str = "", **options: Any) -> tuple[int, int]:
    """How many cases were compared, and how many questions were refused.

    ``part`` is a word that what the questions read has in it.
    """
    cases = refused = 0

    @seed(shard)
    @settings(**{**SETTINGS, "max_examples": examples, **options})
    @given(world=worlds(), data=st.data())
    def neighbours_are_close(world: World, data: st.DataObject) -> None:
        nonlocal cases, refused
        try:
            people = world.people()
            for _ in range(QUESTIONS):
                text = data.draw(questions(world.schema, part))
                try:
                    asked = parse(text, world.engine.catalogue)
                    spend = data.draw(st.sampled_from(SPENDS))
                    priced = price(asked, spend, world.engine.catalogue)
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


# --- bugs on purpose -----------------------------------------------------------------------


def without_unit(self: Any, relation: Any) -> Any:
    """A window over everybody's rows."""
    step = WINDOWED(self, relation)
    name, query, once = self.definitions[-1]
    for window in query.find_all(exp.Window):
        rest = window.args["partition_by"][len(step.unit) :]
        window.set("partition_by", rest or None)
    self.definitions[-1] = (name, query, once)
    return step


WINDOWED = render.Renderer._windowed


def test_a_window_over_everybody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.Renderer, "_windowed", without_unit)
    with pytest.raises((AssertionError, duckdb.Error)):
        fuzz(4 * QUICK, part="ROW_NUMBER", phases=(Phase.generate,))
