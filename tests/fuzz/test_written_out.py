"""Neighbours under every construction that is written out in others, each with a bug on purpose.

Made-up visits of a few people, and each of them left out in turn: no number that would get noise
moves further than the price says.  Then the same with a mistake in the engine, which must be found
by the very same question.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from typing import Any

import duckdb
import pytest
from fuzz.test_mutants import forgotten_bound, lost_unit
from fuzz.test_sql_neighbours import SPENDS, check, read, without_unit
from fuzz.worlds import PERSON, World

from discreet.engine.duckdb import render
from discreet.price import price
from discreet.question.schema import Schema

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
person = "integer"
town = { type = "text", values = ["york", "hull"] }
x = { type = "integer", bounds = [0, 9] }
day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
b = "boolean"
[tables.bills]
unit = "person"
max_rows_per_unit = 2
[tables.bills.columns]
person = "integer"
paid = { type = "date", bounds = [2024-01-01, 2024-12-31] }
sum = { type = "integer", bounds = [0, 20] }
[tables.towns]
public = true
unique = [["town"]]
[tables.towns.columns]
town = "text"
land = "text"
size = { type = "integer", bounds = [0, 9] }
""")


def shared_windows(patch: Patch) -> None:
    """A window looks at everybody's rows."""
    patch.setattr(render.Renderer, "_render_windows", without_unit)


ON = "v.person = p.person"
CONSTRUCTIONS: list[tuple[str, Bug]] = [
    ("SELECT * FROM visits PIVOT (COUNT(*) FOR town IN ('york', 'hull') GROUP BY b)",
     forgotten_bound),
    ("SELECT * FROM (SELECT town, b, x FROM visits) PIVOT (SUM(x) FOR town IN ('york', 'hull'))",
     forgotten_bound),
    ("PIVOT visits ON town USING COUNT(*) GROUP BY b", forgotten_bound),
    (f"SELECT COUNT(*) AS n FROM visits v SEMI JOIN bills p ON {ON} AND p.sum > 9", lost_unit),
    (f"SELECT COUNT(*) AS n FROM visits v ANTI JOIN bills p ON {ON} AND p.sum > 9", lost_unit),
    (f"SELECT SUM(p.sum) AS n FROM visits v ASOF JOIN bills p ON {ON} AND v.day >= p.paid",
     lost_unit),
    (f"SELECT v.town, COUNT(*) AS n FROM visits v ASOF JOIN bills p ON {ON} AND v.day < p.paid "
     "GROUP BY v.town", lost_unit),
    ("SELECT SUM(l.m) AS n FROM visits v, LATERAL (SELECT MAX(p.sum) AS m FROM bills p WHERE "
     f"{ON}) AS l", lost_unit),
    ("SELECT COUNT(*) AS n FROM visits v CROSS JOIN LATERAL (SELECT SUM(p.sum) AS m FROM bills p "
     f"WHERE {ON}) AS l WHERE l.m > 9", lost_unit),
    (f"SELECT SUM(p.sum) AS n FROM visits v LEFT JOIN bills p ON {ON} AND v.x < 9", lost_unit),
    ("SELECT f, COUNT(*) AS n FROM (SELECT person, MIN_BY(town, day) AS f FROM visits "
     "GROUP BY person) AS s GROUP BY f", shared_windows),
    ("SELECT f, COUNT(*) AS n FROM (SELECT person, ARG_MAX(x, day) AS f FROM visits "
     "GROUP BY person) AS s GROUP BY f", shared_windows),
    ("SELECT f, COUNT(*) AS n FROM (SELECT person, LAST(x ORDER BY day) AS f FROM visits "
     "GROUP BY person) AS s GROUP BY f", shared_windows),
    ("SELECT COUNT(*) AS n FROM visits v JOIN (SELECT person, COUNT_IF(x > 8) AS f, BOOL_OR(b) AS "
     f"g FROM visits GROUP BY person) AS p ON {ON} WHERE p.f > 0 AND p.g", lost_unit),
    ("SELECT SKEWNESS(x) AS n, KURTOSIS(x) AS m FROM visits", forgotten_bound),
    ("SELECT town, REGR_R2(x, MONTH(day)) AS n FROM visits GROUP BY town", forgotten_bound),
    ("SELECT k.n, COUNT(v.x) AS m FROM generate_series(0, 9) AS k(n) LEFT JOIN visits v "
     "ON v.x = k.n GROUP BY k.n", forgotten_bound),
    ("SELECT k.n, SUM(v.x) AS m FROM range(1, 13) AS k(n) LEFT JOIN visits v "
     "ON MONTH(v.day) = k.n GROUP BY k.n", forgotten_bound),
    ("SELECT COUNT(*) AS n FROM visits v CROSS JOIN generate_series(1, 3) AS k(n)",
     forgotten_bound),
    ("SELECT t.town, COUNT(v.x) AS n FROM towns t LEFT JOIN visits v ON v.town = t.town "
     "WHERE t.size > 1 GROUP BY t.town", forgotten_bound),
    ("SELECT t.town, t.land, SUM(v.x) AS n FROM visits v JOIN towns t ON t.town = v.town "
     "GROUP BY t.town", forgotten_bound),
    ("SELECT town, SUM(x) AS n, n / 2 AS half FROM visits GROUP BY town", forgotten_bound),
    ("SELECT x + 1 AS more, COUNT(*) AS n FROM visits WHERE more > 2 GROUP BY more",
     forgotten_bound),
    ("SELECT COUNT(*) AS n FROM visits v WHERE v.x > (SELECT AVG(u.x) FROM visits u "
     "WHERE u.town = v.town)", forgotten_bound),
    ("SELECT SUM(v.x) AS n FROM visits v JOIN (SELECT town, AVG(x) AS m FROM visits GROUP BY town) "
     "AS g ON g.town = v.town WHERE v.x >= g.m", forgotten_bound),
    ("SELECT CONCAT(town, '-', x) AS k, COUNT(*) AS n FROM visits GROUP BY k", forgotten_bound),
]  # fmt: skip
SEEDS = 3
ENDS = date(2024, 1, 1), date(2024, 12, 31)


def make_world(seed: int) -> World:
    """Six people, some with more rows than are declared; the last one is first, last and dear."""
    chance = random.Random(seed)
    visits: list[dict[str, Any]] = []
    bills: list[dict[str, Any]] = []
    for person in range(6):
        last = person == 5
        for place in range(6 if last else chance.choice([1, 1, 2, 3, 5])):
            visits.append(
                {
                    "person": person,
                    "town": "york" if last else chance.choice(["york", "hull", None]),
                    "x": 9 if last else chance.randrange(9),
                    "day": ENDS[place % 2] if last else date(2024, chance.randrange(1, 13), 10),
                    "b": last or chance.choice([True, False]),
                    PERSON: person,
                }
            )
        for _ in range(4 if last else chance.choice([0, 1, 2])):
            paid = date(2024, 1 if last else chance.randrange(1, 13), 5)
            bills.append({"person": person, "paid": paid, "sum": 20 if last else 1, PERSON: person})
    towns = [
        {"town": t, "land": t[0], "size": n, PERSON: 0} for n, t in enumerate(("york", "hull"), 2)
    ]
    return World(SCHEMA, {"visits": visits, "bills": bills, "towns": towns})


def compare(text: str) -> int:
    """How many neighbours were compared; an AssertionError, if one is further than it may be."""
    cases = 0
    for seed in range(SEEDS):
        world = make_world(seed)
        try:
            for question in read(text, world, "york"):
                priced = price(question, SPENDS[0], world.engine.catalogue)
                cases += check(world, priced, world.people())
        finally:
            world.close()
    return cases


@pytest.mark.parametrize("text", list(dict.fromkeys(text for text, _ in CONSTRUCTIONS)))
def test_nobody_moves_it_further_than_its_price(text: str) -> None:
    assert compare(text) >= 5 * SEEDS


@pytest.mark.parametrize(("text", "bug"), CONSTRUCTIONS)
def test_a_bug_is_found(monkeypatch: Patch, text: str, bug: Bug) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, duckdb.Error)):
        compare(text)
