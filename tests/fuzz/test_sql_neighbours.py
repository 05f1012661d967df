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
from fuzz.worlds import PERSON, World, allows, distance, vectors, worlds
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.engine.duckdb import render
from discreet.errors import QuestionRefusal
from discreet.mechanisms import KeyRelease, Staircase
from discreet.price import Priced, price
from discreet.price.plan import find_moves
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement
from discreet.question.statement import Statement

QUICK, QUICK_CASES = 10, 170
SEARCHED = 170  # worlds, at most, until a mutant is found
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
    "v.x > (SELECT AVG(pop) FROM cities)",
    "v.region IN (SELECT name FROM cities ORDER BY pop, name LIMIT 1)",
    "v.region = ANY(ARRAY['north', 'west'])",
    "v.region <> ALL(SELECT MIN(name) FROM cities)",
    "(v.region, v.b) IN (('north', TRUE), ('west', FALSE))",
    "v.x > (SELECT AVG(u.x) FROM visits u)",
    "v.x > (SELECT AVG(u.x) FROM visits u WHERE u.region = v.region)",
    "v.region IN (SELECT u.region FROM visits u GROUP BY u.region HAVING COUNT(*) > 3)",
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
    "SKEWNESS({})",
    "GEOMEAN(ABS({}) + 1)",
    "REGR_R2({}, v.y)",
    "MODE(v.region)",
    "SUM({}, contribution_bounds_per_group => (0, 4))",
    "SUM({}, contribution_bounds_per_group => (-3, 4))",
    "AVG({}, contribution_bounds_per_group => (-1, 3))",
    "AVG({}, contribution_bounds_per_group => (0, 2)) FILTER (WHERE v.x > 0)",
    "DISTANCE_TO_SORTED({}, v.x)",
    "DISTANCE_TO_DEPENDENCY({}, v.region)",
    "DISTANCE_TO_CLUSTERS({}, 1, 1.5) FILTER (WHERE v.x > 0)",
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
        *lists(),
    ]
    if not schema.tables["visits"].by_row:
        same = " AND ".join(f"v.{name} = p.{name}" for name in unit)
        own = ", ".join(f"w.{name}" for name in unit)
        found += [
            f"visits v JOIN people p ON {same}",
            f"visits v LEFT JOIN people p ON {same}",
            f"visits v FULL JOIN people p ON {same}",
            f"people p RIGHT JOIN visits v ON {same}",
            f"visits v RIGHT JOIN people p ON {same} AND v.b",
            f"visits v LEFT JOIN people p ON {same} AND p.age > 1",
            f"visits v LEFT JOIN people p ON {same} AND v.x > 1 AND p.age > 1",
            f"visits v SEMI JOIN people p ON {same} AND p.age > 1",
            f"visits v ANTI JOIN people p ON {same}",
            f"visits v ASOF JOIN people p ON {same} AND v.x >= p.age",
            f"visits v ASOF JOIN people p ON {same} AND v.x < p.age",
            f"(SELECT {own}, MIN_BY(w.region, w.day) AS region, ARG_MAX(w.x, w.y) AS x, "
            f"COUNT_IF(w.b) AS y FROM visits w GROUP BY {own}) v",
            f"(SELECT {own}, COUNT(*) FILTER (WHERE w.b) AS x, "
            f"SUM(w.y) FILTER (WHERE w.x > 1) AS y, BOOL_OR(w.x > 2) AS b "
            f"FROM visits w GROUP BY {own}) v",
            f"visits v NATURAL JOIN (SELECT {own}, w.age AS years FROM people w) p",
            f"visits v NATURAL FULL JOIN (SELECT {own}, w.age AS years FROM people w) p",
            f"visits v FULL JOIN people p ON {same} AND v.x = p.age",
            f"visits v JOIN (SELECT {own}, SUM(w.age) AS total FROM people w GROUP BY {own}) p "
            f"ON {same}",
            f"(SELECT {own}, SUM(w.x) AS x, AVG(w.y) AS y, MIN(w.region) AS region, "
            f"COUNT(*) AS pid_rows FROM visits w GROUP BY {own}) v",
            f"(SELECT DISTINCT {own}, w.x, w.y, w.region, w.b, w.t FROM visits w) v",
            f"(SELECT {own}, w.x, w.y FROM visits w UNION SELECT {own}, w.y, w.x FROM visits w) v",
            *windows(own),
        ]
        if len(unit) == 1:
            found += [
                f"(SELECT {own} FROM visits w WHERE w.b {word} SELECT {own} FROM people w "
                f"WHERE w.age > 1) u JOIN visits v ON v.{unit[0]} = u.{unit[0]}"
                for word in ("EXCEPT", "INTERSECT")
            ]
    return found


def lists() -> list[str]:
    """Rows joined to constants, and to what a sub-query of public tables says."""
    most = "(SELECT name, MAX(pop) AS most FROM cities GROUP BY name)"
    return [
        "(VALUES ('north', 1), ('west', 2)) AS k(name, n) LEFT JOIN visits v ON v.region = k.name",
        "visits v RIGHT JOIN (VALUES ('north'), ('west')) AS k(name) ON v.region = k.name",
        "visits v LEFT JOIN (VALUES ('north', 1)) AS k(name, n) ON k.name = v.region",
        "UNNEST(['north', 'west']) AS name LEFT JOIN visits v ON v.region = name",
        "(VALUES ('north', 1), ('west', 2)) AS k(name, n) LEFT JOIN visits v ON v.region = k.name "
        "AND k.n > 1",
        "(SELECT v.* FROM (VALUES ('north'), ('south')) AS k(name) LEFT JOIN visits v ON "
        "v.region = k.name WHERE k.name LIKE 'n%') v",
        "(SELECT v.* FROM cities c LEFT JOIN visits v ON v.region = c.name WHERE c.pop > 1) v",
        "generate_series(0, 3) AS k(n) LEFT JOIN visits v ON v.x = k.n",
        "generate_series(0, 3) AS k(n) LEFT JOIN visits v ON v.x + 1 = k.n",
        "visits v CROSS JOIN (VALUES (1), (2), (3)) AS k(n)",
        "visits v CROSS JOIN UNNEST([1, 2]) AS n",
        f"visits v LEFT JOIN {most} c ON v.region = c.name",
        f"visits v JOIN {most} c ON v.region = c.name AND c.most > 1",
        f"{most} c LEFT JOIN visits v ON v.region = c.name",
        "visits v CROSS JOIN (SELECT AVG(pop) AS mean, COUNT(*) AS n FROM cities) c",
    ]


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
        f"(SELECT DISTINCT ON ({own}) {kept}, w.x, w.y FROM visits w ORDER BY {own}, w.x) v",
        f"(SELECT {kept}, w.x, w.day - LAG(w.day) OVER ({over} w.day) AS y FROM visits w) v",
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


AROUND = [
    *["{}"] * 5,
    "SELECT *, ROW_NUMBER() OVER () AS place FROM ({}) AS s",
    "SELECT COUNT(*) AS groups_seen FROM ({}) AS s",
    "WITH q AS ({}) SELECT * FROM q UNION ALL SELECT * FROM q",
]
"""What is computed after the release: whatever it is, no question in it is measured otherwise."""
PIVOTS = [
    "SELECT * FROM visits PIVOT ({} FOR region IN ('north', 'west') GROUP BY b)",
    "SELECT * FROM (SELECT region, b, x, y FROM visits) PIVOT ({} FOR region IN ('north'))",
    "PIVOT visits ON region USING {} GROUP BY x",
]
PIVOTED = ["COUNT(*)", "SUM(x)", "AVG(y)"]
GROUPINGS = ["{}"] * 6 + ["ROLLUP ({})", "CUBE ({}, v.b)"]


@st.composite
def questions(draw: Any, schema: Schema, part: str = "", within: str = "") -> str:
    def some(values: list[str]) -> str:
        chosen: str = draw(st.sampled_from(values))
        return chosen

    if not part and not within and not draw(st.integers(0, 11)):
        return some(PIVOTS).format(some(PIVOTED))
    key = some(KEYS) if draw(st.booleans()) else ""
    count = draw(st.integers(0 if key else 1, 3))  # none: keys alone
    measured = [f"{some(AGGREGATES).format(some(NUMBERS))} AS a{i}" for i in range(count)]
    if measured and not draw(st.integers(0, 5)):
        measured.append("a0 / 2 AS half")
    options = some(OPTIONS)
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) " if options else ""
    text = f"SELECT {clause}{', '.join([*([f'{key} AS k'] if key else []), *measured])}"
    read_from = [s for s in sources(schema) if part in s] or sources(schema)
    text += f" FROM {some(read_from) if not within else 'visits v'}"
    if within or draw(st.booleans()):
        asked = [c for c in conditions(schema) if within in c] or conditions(schema)
        text += f" WHERE {some(asked)}"
    if key:
        text += f" GROUP BY {key if within else some(GROUPINGS).format(key)}"
    return text if within else some(AROUND).format(text)


def read(text: str, world: World, group: str = "north") -> tuple[Question, ...]:
    """Every question that is asked; what is asked first is given a value that it might have."""
    known = world.engine.catalogue
    asked = parse_statement(text, known).question
    if isinstance(asked, Question):
        return (asked,)
    if asked.first:
        given = [
            [(group, 1)] if first.keys else [group] if first.listed else [1]
            for first in asked.first
        ]
        asked = parse_statement(text, known, given=given).question
    return asked.questions if isinstance(asked, Statement) else (asked,)


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


def fuzz(
    examples: int, *, shard: int = 0, part: str = "", within: str = "", **options: Any
) -> tuple[int, int]:
    """How many cases were compared, and how many questions were refused.

    ``part`` is a word that what the questions read has in it, ``within`` one of their conditions.
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
                text = data.draw(questions(world.schema, part, within))
                spend = data.draw(st.sampled_from(SPENDS))
                try:
                    asked = read(text, world)
                    found = [price(one, spend, world.engine.catalogue) for one in asked]
                except QuestionRefusal:
                    refused += 1
                    continue
                chosen = data.draw(st.permutations(people))[:PEOPLE] if people else []
                for priced in found:
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


WINDOWED = render.Renderer._render_windows


def test_a_window_over_everybody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render.Renderer, "_render_windows", without_unit)
    with pytest.raises((AssertionError, duckdb.Error)):
        fuzz(SEARCHED, part="ROW_NUMBER", phases=(Phase.generate,))


def joined_to_anybody(self: Any, join: Any) -> Any:
    """What is looked up for a person is looked up among everybody's rows."""
    left, right = self.relation(join.left), self.relation(join.right)
    return self._join(join, left, right, [exp.Boolean(this=True)])


@pytest.mark.parametrize(
    "within", ["IN (SELECT p.", pytest.param("EXISTS", marks=pytest.mark.soak)]
)
def test_a_sub_query_about_anybody_is_found(monkeypatch: pytest.MonkeyPatch, within: str) -> None:
    monkeypatch.setattr(render.Renderer, "_unit_join", joined_to_anybody)
    with pytest.raises((AssertionError, duckdb.Error)):
        fuzz(SEARCHED, within=within, phases=(Phase.generate,))


OWNED = Schema.from_text("""
[tables.visits]
unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
person = "integer"
x = { type = "integer", bounds = [0, 9] }
""")
WORDS = [
    "NOT EXISTS (SELECT 1 FROM visits u WHERE u.person = v.person AND u.x > 2)",
    "EXISTS (SELECT 1 FROM visits u WHERE u.person = v.person AND u.x > 2)",
    "v.person IN (SELECT u.person FROM visits u WHERE u.x > 2)",
    "v.x >= (SELECT MAX(u.x) FROM visits u WHERE u.person = v.person)",
]


SHORT = [
    "COUNT(*) AS n FROM visits v SEMI JOIN visits u ON u.person = v.person AND u.x > 2",
    "COUNT(*) AS n FROM visits v ANTI JOIN visits u ON u.person = v.person AND u.x > 2",
    "COUNT(u.x) AS n FROM visits v LEFT JOIN visits u ON u.person = v.person AND v.x < 9",
    "COUNT(*) AS n FROM visits v JOIN (SELECT person, BOOL_OR(x > 2) AS large, COUNT(*) FILTER "
    "(WHERE x > 2) AS many FROM visits GROUP BY person) u ON u.person = v.person "
    "WHERE u.large AND u.many > 0",
]


def compare_small(condition: str) -> None:
    """Four people with one row each, and one who has what the condition asks for."""
    compare_asked(f"COUNT(*) AS n FROM visits v WHERE {condition}")


def compare_asked(asked_of: str) -> None:
    rows = [{"person": i, "x": 9 if i == 4 else 1, PERSON: i} for i in range(5)]
    world = World(OWNED, {"visits": rows})
    try:
        (asked,) = read(f"SELECT {asked_of}", world)
        check(world, price(asked, SPENDS[0], world.engine.catalogue), world.people())
    finally:
        world.close()


@pytest.mark.parametrize("condition", WORDS)
def test_a_sub_query_about_anybody_is_found_at_once(
    monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    compare_small(condition)
    monkeypatch.setattr(render.Renderer, "_unit_join", joined_to_anybody)
    with pytest.raises((AssertionError, duckdb.Error)):
        compare_small(condition)


@pytest.mark.parametrize("asked", SHORT)
def test_a_shorthand_about_anybody_is_found_at_once(
    monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    compare_asked(asked)
    monkeypatch.setattr(render.Renderer, "_unit_join", joined_to_anybody)
    with pytest.raises((AssertionError, duckdb.Error)):
        compare_asked(asked)
