"""Blocks: which there are, which a question can touch, and what their people have lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fuzz.questions import conditions, values
from fuzz.test_block_reach import READING
from fuzz.worlds import vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

from discreet.accounting.budget import Budget
from discreet.accounting.loss import NOTHING, Loss
from discreet.curate.curator import Curator
from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import QuestionRefusal, SchemaRefusal
from discreet.price import price
from discreet.price.plan import Plan
from discreet.question.blocks import Area, Space, reach
from discreet.question.blocks.evaluate import Known, evaluate_on_blocks
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.functions import evaluate
from discreet.question.offer import Offer
from discreet.question.relation import Filter, Union
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.answer import Answer

CLINIC = """
[tables.visits]
unit = "patient"
entity = "patient"
max_rows_per_unit = 4
blocks = ["region", "day"]
[tables.visits.columns]
patient = "integer"
region = { type = "text", values = ["north", "south", "west"] }
day = { type = "date", bounds = [2024-01-30, 2024-02-02], nullable = false }
age = { type = "integer", bounds = [0, 120] }

[tables.people]
unit = "id"
entity = "patient"
max_rows_per_unit = 2
[tables.people.columns]
id = "integer"
height = { type = "integer", bounds = [0, 250] }
region = { type = "text", values = ["north", "south", "west"] }

[tables.staff]
unit = "row"
columns.pay = { type = "integer", bounds = [0, 9] }

[tables.cities]
public = true
unique = ["name"]
columns.name = "text"
columns.size = "integer"
"""
SCHEMA = Schema.from_text(CLINIC)
SPACE = Space.of(SCHEMA)
DAYS = [date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 1), date(2024, 2, 2)]
REGIONS = ["north", "south", "west", None]
EVERY = {(r, d) for r in REGIONS for d in DAYS}
OUTSIDE = "outside"
"""Block 0: whoever is in no declared block."""


def cells(area: Area) -> set[Any]:
    """An area as the cells it has."""
    (part,) = SPACE.parts
    found: set[Any] = {part.cell(b - 1) for b in np.flatnonzero(area.mask()).tolist() if b}
    return found | ({OUTSIDE} if 0 in area else set())


def only(*regions: str | None, days: list[date] = DAYS) -> set[Any]:
    return {(r, d) for r in regions for d in days}


def count(where: str) -> str:
    return f"SELECT COUNT(*) FROM visits v WHERE {where}"


ONLY_NORTH = only("north")
KNOWN = only("north", "south", "west")
EVERYBODY = EVERY | {OUTSIDE}
AREAS: dict[str, set[Any]] = {
    "SELECT COUNT(*) FROM visits": EVERY,
    # Comparisons, lists, NULL.
    count("region = 'north'"): ONLY_NORTH,
    count("'north' = region"): ONLY_NORTH,
    count("region <> 'north'"): only("south", "west"),
    count("region IN ('north', 'west')"): only("north", "west"),
    count("region NOT IN ('north', 'west')"): only("south"),
    count("region IS NULL"): only(None),
    count("region IS NOT NULL"): KNOWN,
    count("CASE WHEN CAST(region AS TEXT) = 'nowhere' THEN TRUE ELSE FALSE END"): set(),
    count("region < 'south'"): ONLY_NORTH,
    count("region LIKE '%th'"): only("north", "south"),
    count("NOT region = 'north'"): only("south", "west"),
    # Dates and their functions.
    count("day = DATE '2024-01-31'"): only(*REGIONS, days=DAYS[1:2]),
    count("day BETWEEN DATE '2024-01-31' AND DATE '2024-02-01'"): only(*REGIONS, days=DAYS[1:3]),
    count("day >= DATE '2024-02-01'"): only(*REGIONS, days=DAYS[2:]),
    count("EXTRACT(month FROM day) = 2"): only(*REGIONS, days=DAYS[2:]),
    count("DATE_TRUNC('month', day) = DATE '2024-01-01'"): only(*REGIONS, days=DAYS[:2]),
    count("CASE WHEN region = 'north' THEN 'x' ELSE 'y' END = 'x'"): ONLY_NORTH,
    count("COALESCE(region, 'none') = 'none'"): only(None),
    # What else is asked is not known, and may be so.
    count("region = 'north' AND age > 40"): ONLY_NORTH,
    count("region = 'north' OR age > 40"): EVERY,
    count("NOT (region = 'north' AND age > 40)"): EVERY,
    count("NOT (region = 'north' OR age > 40)"): only("south", "west"),
    count("NOT (region = 'north' AND day < DATE '2024-02-01')"): only("south", "west")
    | only("north", None, days=DAYS[2:]),
    count("(region = 'north' AND age > 40) OR (region = 'south' AND age < 20)"): only(
        "north", "south"
    ),
    count("(region = 'north') IS TRUE OR (region = 'south' AND age = 3)"): only("north", "south"),
    count("(region = 'north' AND age > 3) IS NOT TRUE"): EVERY,
    count("CASE WHEN age > 40 THEN 'north' ELSE region END = 'north'"): EVERY,
    count("age > 40"): EVERY,
    # Groups, and the conditions of aggregates.
    "SELECT UPPER(region) AS r, COUNT(*) FROM visits WHERE region IN ('south') GROUP BY r": only(
        "south"
    ),
    "SELECT COUNT(*) FILTER (WHERE region = 'north') FROM visits": ONLY_NORTH,
    "SELECT COUNT(*) FILTER (WHERE region = 'north'), COUNT(*) FROM visits": EVERY,
    "SELECT SUM(age) FILTER (WHERE region = 'north' AND age > 3), "
    "COUNT(*) FILTER (WHERE region = 'west') FROM visits": only("north", "west"),
    "SELECT age * patient AS k, COUNT(*) FILTER (WHERE region = 'north') FROM visits "
    "GROUP BY k": EVERY,
    # Through sub-queries, renamings, unions and joins.
    "SELECT COUNT(*) FROM (SELECT region AS r, age FROM visits) v WHERE r = 'north'": ONLY_NORTH,
    "SELECT COUNT(*) FROM (SELECT patient, MIN(region) AS r FROM visits GROUP BY patient) v "
    "WHERE r = 'north'": ONLY_NORTH,
    "SELECT COUNT(*) FROM (SELECT patient, region FROM visits GROUP BY patient, region) v "
    "WHERE region = 'north'": ONLY_NORTH,
    "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits WHERE region = 'west' "
    "GROUP BY patient) v WHERE n > 2": only("west"),
    "SELECT COUNT(*) FROM (SELECT region FROM visits WHERE region = 'north' UNION ALL "
    "SELECT region FROM visits WHERE region = 'south') v": only("north", "south"),
    "SELECT COUNT(*) FROM (SELECT region FROM visits WHERE region = 'north' UNION ALL "
    "SELECT region FROM visits WHERE age = 3) v WHERE region <> 'south'": only("north", "west"),
    "SELECT COUNT(*) FROM visits v JOIN cities c ON v.region = c.name WHERE v.region = 'north' "
    "AND c.size > 5": ONLY_NORTH,
    "SELECT COUNT(*) FROM visits v LEFT JOIN cities c ON v.region = c.name "
    "WHERE c.size IS NULL": EVERY,
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.patient = p.id WHERE v.region = 'north'": (
        ONLY_NORTH
    ),
    "SELECT COUNT(*) FROM people p JOIN visits v ON v.patient = p.id WHERE v.region = 'north'": (
        ONLY_NORTH
    ),
    "SELECT COUNT(*) FROM people p JOIN visits v ON v.patient = p.id": EVERY,
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.patient = p.id": EVERYBODY,
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.patient = p.id "
    "WHERE v.region = 'north'": ONLY_NORTH,
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.patient = p.id "
    "WHERE v.region = 'north' OR v.region IS NULL": EVERYBODY,
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.patient = p.id "
    "WHERE v.day IS NULL": EVERYBODY,
    "SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.patient = p.id "
    "WHERE v.region = 'west'": only("west"),
    # People's own region is another column: it does not say where they lie.
    "SELECT COUNT(*) FROM people WHERE region = 'north'": EVERYBODY,
    # No blocks are declared of these.
    "SELECT COUNT(*) FROM staff WHERE pay > 3": EVERYBODY,
}


def area_of(text: str) -> Area:
    return reach(parse(text, Catalogue(SCHEMA, multiplicity=lambda *_: 1)), SCHEMA, SPACE)


@pytest.mark.parametrize("text", AREAS)
def test_reach(text):
    assert cells(area_of(text)) == AREAS[text]


@pytest.mark.parametrize("mutant", READING, ids=lambda mutant: mutant.__name__)
def test_some_area_shows_a_wrong_reading(mutant, monkeypatch):
    """Too small an area is what must not be; each mutant makes one so."""
    mutant(monkeypatch)
    assert any(AREAS[text] - cells(area_of(text)) for text in AREAS)


def test_listed_groups_restrict():
    """Rows of groups that are not listed are dropped before anything is counted."""
    asked = parse("SELECT region, COUNT(*) FROM visits GROUP BY region", SCHEMA)
    (key,) = asked.keys
    for kept in [("north",), ("north", None), (None,)]:
        some = replace(asked, keys=(replace(key, values=kept),))
        assert cells(reach(some, SCHEMA, SPACE)) == only(*kept)
    private = replace(asked, keys=(replace(key, values=None),))
    assert cells(reach(private, SCHEMA, SPACE)) == EVERY


def test_too_many_ways_are_not_followed():
    """Beyond a number of ways nothing more is learnt: rows of anybody who could be there."""
    asked = parse(count("day = DATE '2024-01-31'"), SCHEMA)
    assert isinstance(asked.source, Filter)
    relation = asked.source.source
    for _ in range(3):
        relation = Union(relation, relation)
    few = replace(asked, source=replace(asked.source, source=relation))
    assert cells(reach(few, SCHEMA, SPACE)) == only(*REGIONS, days=DAYS[1:2])
    for _ in range(4):
        relation = Union(relation, relation)
    many = replace(asked, source=replace(asked.source, source=relation))
    assert cells(reach(many, SCHEMA, SPACE)) == EVERY


# --- values on blocks ------------------------------------------------------------------------

BLOCKS = dict(zip(("region", "day"), SPACE.parts[0].columns, strict=True))
DOMAINS = {column.name: column.domain for column in SCHEMA.tables["visits"].columns[1:3]}


@settings(max_examples=80, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_known_values_are_those_of_the_evaluator(data):
    kind = data.draw(st.sampled_from([Kind.TEXT, Kind.DATE, Kind.INTEGER]))
    expression = data.draw(
        st.one_of(conditions(DOMAINS, 3), values(DOMAINS, kind, 3), conditions(DOMAINS, 2))
    )
    try:
        found = evaluate_on_blocks(expression, BLOCKS, 2)
    except QuestionRefusal:
        return
    if found is None:
        return
    everywhere = np.broadcast_to(found.values, (4, 4))
    for i, region in enumerate(REGIONS):
        for j, day in enumerate(DAYS):
            want = evaluate(expression, {"region": region, "day": day}, DOMAINS)
            assert everywhere[i, j] == want
            assert type(everywhere[i, j]) is type(want)


def test_large_numbers_are_not_taken_to_be_known():
    """Whether the engine computes them in doubles depends on conditions not seen here."""
    schema = Schema.from_text(
        """
        [tables.t]
        unit = "row"
        blocks = ["n"]
        columns.n = { type = "integer", bounds = [4000000000, 4000000003], nullable = false }
        """
    )
    asked = parse("SELECT COUNT(*) FROM t WHERE n * n * n > 5", schema)
    assert reach(asked, schema, Space.of(schema)).names() == tuple(
        f"n = {4_000_000_000 + i}" for i in range(4)
    )


@pytest.mark.parametrize("other", ["9000000000000000000 AS n", "n"])
def test_a_union_is_computed_as_the_bounds_of_both_sides_say(other):
    """Beside a huge number the engine writes 7 * 1000 as a double: '7000.0'."""
    schema = Schema.from_text(
        """
        [tables.t]
        unit = "row"
        blocks = ["n"]
        columns.n = { type = "integer", bounds = [6, 8], nullable = false }
        """
    )
    rows = f"(SELECT n FROM t UNION ALL SELECT {other} FROM t) AS u"
    text = f"SELECT COUNT(*) FROM {rows} WHERE n = 7 AND CAST(n * 1000 AS TEXT) <> '7000'"
    if other == "n":
        with pytest.raises(QuestionRefusal, match="no value of 'n' meets the condition"):
            parse(text, schema)
        return
    area = reach(parse(text, schema), schema, Space.of(schema))
    assert area.names() == ("n = 7",)


# --- spaces ----------------------------------------------------------------------------------


def space(columns: str, blocks: str = '["region"]', unit: str = '"patient"') -> Space:
    return Space.of(
        Schema.from_text(
            f"[tables.visits]\nunit = {unit}\nblocks = {blocks}\n[tables.visits.columns]\n"
            f'patient = "integer"\nday = {{ type = "date", bounds = [2024-01-01, 2024-01-03] }}\n'
            + columns
        )
    )


NORTH_SOUTH = 'region = { type = "text", values = ["north", "south"] }'


def test_a_schema_without_blocks_has_one():
    plain = Space.of(Schema.from_text('[tables.t]\nunit = "row"\ncolumns.a = "integer"'))
    assert plain.size == 1
    assert plain.name(0) == "everyone"
    assert plain.identity() == {"parts": []}


def test_names():
    found = space(NORTH_SOUTH)
    assert [found.name(i) for i in range(found.size)] == [
        "everyone else",
        "region = north",
        "region = south",
        "region = NULL",
    ]
    assert SPACE.name(1) == "region = north, day = 2024-01-30"
    with pytest.raises(IndexError):
        found.name(4)


def test_names_of_decimals_are_as_they_were_written():
    share = "share = { type = 'decimal', values = [0.1, 2.5, 3], nullable = false }"
    found = space(share, '["share"]')
    assert [found.name(i) for i in (1, 2, 3)] == ["share = 0.1", "share = 2.5", "share = 3"]


def test_a_whole_number_beyond_the_integers_is_a_double_as_in_the_engine():
    """Compared exactly, it would differ from a double that the engine takes for its equal."""
    doubles = Known(np.array([2.0**63], dtype=object), Domain(Kind.DECIMAL))
    condition = Call("equal", (ColumnRef("d"), Literal(2**63 + 1)))
    found = evaluate_on_blocks(condition, {"d": doubles}, 1)
    assert found is not None
    assert found.values.tolist() == [True]


def test_a_column_of_the_unit_has_no_null_cell():
    found = space(NORTH_SOUTH, '["day"]', '["patient", "day"]')
    assert [found.name(i) for i in range(1, found.size)] == [
        f"day = 2024-01-0{i}" for i in (1, 2, 3)
    ]
    assert found.parts[0].home is None


def test_listed_numbers_and_booleans_are_in_order():
    found = space(
        "code = { type = 'integer', values = [30, 7, 12], nullable = false }\n"
        "share = { type = 'decimal', values = [2.5, 0.25], nullable = false }\nold = 'boolean'",
        '["code", "share", "old"]',
    )
    assert [axis.values for axis in found.parts[0].axes] == [
        (7, 12, 30),
        (Fraction(1, 4), Fraction(5, 2)),
        (False, True, None),
    ]
    assert found.size == 1 + 3 * 2 * 3
    assert Space.from_identity(json.loads(json.dumps(found.identity()))) == found


def test_identity_and_back():
    assert Space.from_identity(json.loads(json.dumps(SPACE.identity()))) == SPACE


def one(*blocks: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(((block, block + 1),) for block in blocks)


def test_origins_of_the_same_blocks_are_themselves():
    assert SPACE.origins(SPACE.identity()) == one(*range(SPACE.size))


def test_origins_of_new_values():
    """Nobody was read into them, so their people are those who were in no block."""
    wider = space('region = { type = "text", values = ["east", "north", "south"] }')
    assert wider.origins(space(NORTH_SOUTH).identity()) == one(0, 0, 1, 2, 3)


def test_origins_when_a_value_goes():
    narrow = space('region = { type = "text", values = ["south"] }')
    everything = ((0, 4),)
    assert narrow.origins(space(NORTH_SOUTH).identity()) == (everything, *one(2, 3))


@pytest.mark.parametrize(
    "later",
    [
        space('region = { type = "text", values = ["north", "south"] }', '["region", "day"]'),
        space('zone = { type = "text", values = ["north", "south"] }', '["zone"]'),
        space(NORTH_SOUTH, unit='["patient", "day"]'),
        Space(),
    ],
)
def test_origins_of_other_columns_are_all(later):
    """Declaring blocks anew forgets nobody's past."""
    earlier = space(NORTH_SOUTH)
    everything = ((0, earlier.size),)
    assert later.origins(earlier.identity()) == (everything,) * later.size


def test_origins_after_no_blocks():
    assert space(NORTH_SOUTH).origins(Space().identity()) == one(0, 0, 0, 0)


def test_two_entities_have_their_own_blocks():
    schema = Schema.from_text(
        """
        [tables.a]
        unit = "id"
        blocks = ["old"]
        columns.id = "integer"
        columns.old = { type = "boolean", nullable = false }
        [tables.b]
        unit = "row"
        blocks = ["old"]
        columns.old = { type = "boolean", nullable = false }
        """
    )
    both = Space.of(schema)
    assert [both.name(i) for i in range(1, 5)] == [
        "id: old = False",
        "id: old = True",
        "rows of b: old = False",
        "rows of b: old = True",
    ]
    assert reach(parse("SELECT COUNT(*) FROM b WHERE old", schema), schema, both).ranges == (
        (4, 5),
    )


def test_areas():
    mask = np.zeros(SPACE.size, dtype=bool)
    mask[[2, 3, 7]] = True
    area = Area.of(SPACE, mask)
    assert area.ranges == ((2, 4), (7, 8))
    assert (area.mask() == mask).all()
    assert area.count == 3
    assert 3 in area
    assert 4 not in area
    assert len(area.names(2)) == 2
    assert Area.everything(SPACE).count == SPACE.size
    assert Area.of(SPACE, ~mask & mask).ranges == ()
    for ranges in [((3, 2),), ((0, SPACE.size + 1),), ((0, 2), (2, 3)), ((4, 5), (1, 2))]:
        with pytest.raises(ValueError, match="not ranges"):
            Area(SPACE, ranges)


# --- what cannot be a block ------------------------------------------------------------------


def declared(columns: str, *, more: str = "", top: str = "") -> Schema:
    return Schema.from_text(
        f'{top}\n[tables.visits]\nunit = "patient"\nblocks = ["x"]\n'
        f'[tables.visits.columns]\npatient = "integer"\n{columns}\n{more}',
        name="clinic.toml",
    )


@pytest.mark.parametrize(
    "column",
    [
        'x = "text"',
        'x = "integer"',
        'x = { type = "decimal", bounds = [0, 3] }',
        'x = { type = "timestamp", bounds = [2024-01-01, 2024-01-02] }',
        'x = { type = "integer", bounds = [1, 1000001] }',
    ],
)
def test_blocks_must_be_few_and_listed(column):
    with pytest.raises(SchemaRefusal) as refused:
        declared(column)
    assert refused.value.code == "S10"
    assert "clinic.toml, line 4" in refused.value.what


def test_blocks_are_counted_over_all_tables():
    column = 'x = { type = "integer", bounds = [1, 600000], nullable = false }'
    other = f'[tables.w]\nunit = "row"\nblocks = ["x"]\n[tables.w.columns]\n{column}'
    declared(column)
    with pytest.raises(SchemaRefusal, match="1200000 blocks") as refused:
        declared(column, more=other)
    assert refused.value.code == "S10"


def test_blocks_need_people_who_come_and_go():
    with pytest.raises(SchemaRefusal) as refused:
        declared('x = "boolean"', top='neighbours = "change-one"')
    assert refused.value.code == "S11"
    assert "clinic.toml, line 4" in refused.value.what


def test_one_table_says_where_a_unit_lies():
    other = (
        '[tables.w]\nunit = "patient"\nblocks = ["x"]\n[tables.w.columns]\npatient = "integer"\n'
        'x = "boolean"'
    )
    with pytest.raises(SchemaRefusal) as refused:
        declared('x = "boolean"', more=other)
    assert refused.value.code == "S11"


DAILY = """
[tables.{name}]
unit = ["id", "day"]
blocks = ["day"]
columns.id = "integer"
columns.day = {{ type = "date", bounds = [2024-01-01, 2024-01-{last}] }}
"""


def test_the_unit_may_say_it_in_several_tables():
    daily = "".join(DAILY.format(name=name, last="03") for name in "ab")
    assert Space.of(Schema.from_text(daily)).size == 4
    with pytest.raises(SchemaRefusal) as refused:
        Schema.from_text(DAILY.format(name="a", last="03") + DAILY.format(name="b", last="04"))
    assert refused.value.code == "S11"


# --- the engine ------------------------------------------------------------------------------


def engine(regions: list[str], rows: list[tuple[int, str | None]], **options: Any) -> DuckDBEngine:
    schema = Schema.from_dict(
        {
            "tables": {
                "visits": {
                    "unit": "patient",
                    "max_rows_per_unit": 3,
                    "blocks": ["region"],
                    "columns": {
                        "patient": {"type": "integer"},
                        "region": {"type": "text", "values": regions, **options},
                    },
                }
            }
        }
    )
    patients, where = zip(*rows, strict=True)
    data = pa.table({"patient": pa.array(patients), "region": pa.array(where, pa.string())})
    return DuckDBEngine({"visits": data}, schema, threads=1)


def counts(of: DuckDBEngine, column: str = "region") -> dict[Any, int]:
    asked = parse(f"SELECT {column} AS k, COUNT(*) FROM visits GROUP BY k", of.schema)
    spend = Offer(epsilon=Fraction(3), delta=Fraction(1, 100))
    plan = price(asked, spend, of.catalogue).plan
    found: dict[Any, int] = {}
    for (group, _), number in measured(of, plan)[0].items():
        found[group[0]] = number
    return found


def measured(of: DuckDBEngine, plan: Plan) -> list[Any]:
    compiled = of.compile(plan)
    return vectors(compiled.columns.read(of._current().run(compiled.text)))


MIXED: list[tuple[int, str | None]] = [
    (1, "south"), (1, "north"), (1, "south"), (1, "south"), (1, "south"),
    (2, "west"), (2, None), (2, None),
    (3, "east"), (3, "south"),
    (4, None),
    (5, "nowhere"),
    (6, "south"), (6, "south"), (6, "south"), (6, "south"),
]  # fmt: skip


def test_a_unit_keeps_the_rows_of_its_least_block():
    with engine(["south", "north", "west"], MIXED) as small:
        # 1 is in the north; 2 in the west; 3 in the east, which is not read; 4 in NULL.
        assert counts(small) == {"north": 1, "west": 1, "south": 3, None: 1}
        small.prepare()
        assert counts(small) == {"north": 1, "west": 1, "south": 3, None: 1}


def test_declaring_a_further_value_moves_nobody():
    with engine(["south", "north", "west"], MIXED) as small:
        before = counts(small)
    with engine(["east", "south", "north", "west"], MIXED) as wide:
        after = counts(wide)
    assert after == {**before, "east": 1}


def test_null_is_a_block_only_where_declared():
    with engine(["south", "north", "west"], MIXED, nullable=False) as strict:
        assert counts(strict) == {"north": 1, "west": 1, "south": 3}


# --- the account -----------------------------------------------------------------------------


def people(number: int) -> pa.Table:
    """Visits of made-up people, some of whom name several regions, or none that is declared."""
    chance = random.Random(20240131)
    rows: dict[str, list[Any]] = {"patient": [], "region": [], "day": [], "age": []}
    for patient in range(number):
        home = (chance.choice([*REGIONS, "abroad"]), chance.choice(DAYS))
        for _ in range(chance.randint(1, 5)):
            moved = chance.random() < 0.2
            rows["patient"].append(patient)
            rows["region"].append(chance.choice(REGIONS) if moved else home[0])
            rows["day"].append(chance.choice(DAYS) if moved else home[1])
            rows["age"].append(chance.randint(-3, 130))
    return pa.table(rows)


GENERATED = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 4
blocks = ["region", "day"]
[tables.visits.columns]
patient = "integer"
region = { type = "text", values = ["north", "south", "west"] }
day = { type = "date", bounds = [2024-01-31, 2024-02-01], nullable = false }
age = { type = "integer", bounds = [0, 120] }
"""

QUESTIONS = [text for text in AREAS if not {"people", "staff", "cities"} & set(text.split())][1::3]


def check_the_account(data: pa.Table, text: str, questions: list[str], cell: str) -> None:
    """What each block's people can have lost is at most the block's balance.

    Each question is asked of the curator, and measured once more on the people of
    each block alone: it has touched them if it measures anything of them.
    ``cell`` is SQL that numbers the blocks, from rows ``w`` of one unit.
    """
    schema = Schema.from_text(text)
    with Curator(
        {"visits": data},
        schema=schema,
        budget=Budget(epsilon=10**6, delta="0.01", accept_large_delta=True),
    ) as curator:
        asked: list[tuple[Plan, Loss]] = []
        for place, question in enumerate(questions):
            # A different price each time, so that a missing charge cannot hide behind another.
            answer = curator.ask(question, epsilon=Fraction(place + 3, 100), delta="1e-9")
            assert isinstance(answer, Answer)
            asked.append((answer.priced.plan, answer.loss))
        balance = curator.account.balance()
        for block, rows in split(data, curator.space, cell).items():
            with DuckDBEngine({"visits": rows}, schema, threads=1) as alone:
                touched = [loss for plan, loss in asked if any(map(bool, measured(alone, plan)))]
            total = sum(touched, start=NOTHING).rounded()
            assert total.epsilon <= balance.block(block).epsilon, curator.space.name(block)
            assert total.rho <= balance.block(block).rho
            assert total.delta <= balance.block(block).delta


def split(data: pa.Table, space: Space, columns: str) -> dict[int, pa.Table]:
    """The rows of each block's people, and under 0 those of people in none."""
    names = columns.split(", ")
    rows = data.to_pylist()
    least: dict[Any, Any] = {}
    for row in rows:
        named = tuple((row[name] is None, row[name]) for name in names)
        unit = row["patient"]
        least[unit] = min(least.get(unit, named), named, key=_order)
    (part,) = space.parts
    numbers = {part.cell(i): part.first + i for i in range(part.size)}
    of_unit = {u: numbers.get(tuple(v for _, v in named), 0) for u, named in least.items()}
    block = np.array([of_unit[row["patient"]] for row in rows])
    return {int(b): data.filter(pa.array(block == b)) for b in np.unique(block)}


def _order(named: Any) -> Any:
    return tuple((missing, None if missing else value) for missing, value in named)


def test_no_block_loses_more_than_its_balance():
    check_the_account(people(400), GENERATED, QUESTIONS, "region, day")


REAL = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
blocks = ["decade", "sex"]
[tables.visits.columns]
patient = "integer"
sex = { type = "integer", bounds = [0, 1], nullable = false }
decade = { type = "integer", bounds = [2, 7], nullable = false }
age = { type = "integer", bounds = [0, 100] }
pressure = { type = "decimal", bounds = [0, 200] }
"""
ABOUT_REAL = [
    "SELECT COUNT(*) FROM visits",
    "SELECT AVG(pressure) FROM visits WHERE decade = 2",
    "SELECT COUNT(*) FROM visits WHERE decade IN (4, 6) AND age > 45",
    "SELECT COUNT(*) FROM visits WHERE NOT (decade = 3 OR age > 60)",
    "SELECT SUM(pressure) FROM visits WHERE sex = 1 AND decade BETWEEN 2 AND 4",
    "SELECT decade, COUNT(*) FROM visits WHERE sex = 0 GROUP BY decade",
    "SELECT age, COUNT(*) FROM visits WHERE decade * 2 + sex > 11 GROUP BY age",
    "SELECT COUNT(*) FILTER (WHERE decade = 4), AVG(age) FILTER (WHERE decade = 5) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE decade = 6 OR (sex = 1 AND pressure > 95)",
]


def test_no_block_of_real_people_loses_more_than_its_balance():
    """On 442 real patients (Efron, Hastie, Johnstone, Tibshirani 2004), as scikit-learn has them.

    Three in a row are taken for one unit, whose rows then name several blocks.
    """
    real = load_diabetes(as_frame=True, scaled=False).data
    data = pa.table(
        {
            "patient": np.arange(len(real)) // 3,
            "sex": real["sex"].astype("int64") - 1,
            "age": real["age"].astype("int64"),
            "decade": real["age"].astype("int64") // 10,
            "pressure": real["bp"],
        }
    )
    check_the_account(data, REAL, ABOUT_REAL, "decade, sex")


def test_a_missing_charge_is_found(monkeypatch: pytest.MonkeyPatch):
    """An area that leaves out one block that is touched fails the account."""
    wrong: Callable[..., Area] = lambda _question, _schema, space: Area(  # noqa: E731
        space, ((0, space.size - 1),)
    )
    monkeypatch.setattr("discreet.question.blocks.reach", wrong)
    with pytest.raises(AssertionError):
        check_the_account(people(100), GENERATED, ["SELECT COUNT(*) FROM visits"], "region, day")
