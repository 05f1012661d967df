"""Neighbour fuzzing for any schema: every aggregate, and bugs on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from sqlglot import exp

from discreet import audit
from discreet.audit import Verdict
from discreet.audit.hiding import HidingEngine
from discreet.audit.synthetic import make_world
from discreet.engine.duckdb import declared, grid, measure
from discreet.errors import InvalidParameter
from discreet.price import priced
from discreet.question.domain import Kind
from discreet.question.question import AGGREGATES
from discreet.question.schema import Schema

CLINIC = """
{neighbours}
[tables.visits]
unit = "pid"
max_rows_per_unit = 3
[tables.visits.columns]
pid = "integer"
region = {{ type = "text", values = ["north", "south", "west"] }}
city = {{ type = "text", values_from = "cities.name" }}
word = "text"
x = {{ type = "integer", bounds = [-4, 9] }}
y = {{ type = "decimal", bounds = [0, 100] }}
day = {{ type = "date", bounds = [2024-01-01, 2024-12-31] }}
at = "timestamp"
b = "boolean"
[tables.people]
unit = "pid"
max_rows_per_unit = 1
[tables.people.columns]
pid = "integer"
age = {{ type = "integer", bounds = [0, 120] }}
[tables.readings]
unit = "row"
[tables.readings.columns]
value = {{ type = "decimal", bounds = [-1, 1] }}
[tables.cities]
public = true
[tables.cities.columns]
name = "text"
size = {{ type = "integer", bounds = [0, 50] }}
"""
SCHEMA = Schema.from_text(CLINIC.format(neighbours=""))
CHANGED = Schema.from_text(CLINIC.format(neighbours='neighbours = "change-one"'))

AGGREGATE = {
    "COUNT": "COUNT(*), COUNT(y)",
    "COUNT_UNITS": "COUNT(DISTINCT pid)",
    "COUNT_DISTINCT": "COUNT(DISTINCT word)",
    "SUM": "SUM(x), SUM(y, contribution_bounds_per_group => (0, 40))",
    "AVG": "AVG(y), AVG(x, bounds => AUTO)",
    "VAR_POP": "VAR_POP(x)",
    "VAR_SAMP": "VARIANCE(y)",
    "STDDEV_POP": "STDDEV_POP(x)",
    "STDDEV_SAMP": "STDDEV(y)",
    "QUANTILE": "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x)",
    "IQR": "IQR(x)",
    "TRIMMED_MEAN": "TRIMMED_MEAN(y, 0.1)",
    "MIN": "MIN(y)",
    "MAX": "MAX(x)",
    "COVAR_POP": "COVAR_POP(x, y)",
    "COVAR_SAMP": "COVAR_SAMP(x, y)",
    "CORR": "CORR(x, y)",
    "REGR_SLOPE": "REGR_SLOPE(x, y)",
    "REGR_INTERCEPT": "REGR_INTERCEPT(x, y)",
    "REGR_COEFFICIENT": "REGR(x, y)",
    "CORR_OF": "CORR_MATRIX(x, y, x * y)",
    "COVAR_OF": "COVAR_MATRIX(x, y, x * y)",
    "MEAN_OF": "MEANS(x, y, x * y)",
    "MODE": "MODE(region)",
    "TOP_K": "APPROX_TOP_COUNT(region, 2)",
    "HISTOGRAM": "HISTOGRAM(x, 0, 3, 9)",
    "DISTANCE_TO_SORTED": "DISTANCE_TO_SORTED(x, y)",
    "DISTANCE_TO_CLUSTERS": "DISTANCE_TO_CLUSTERS(y, 2, 1.5)",
    "DISTANCE_TO_DEPENDENCY": "DISTANCE_TO_DEPENDENCY(x, word, region)",
}
OTHERS = [
    "SELECT region, SUM(y) FROM visits GROUP BY region",
    "SELECT word, COUNT(*), AVG(x) FROM visits GROUP BY word",
    "SELECT city, COUNT(*) FROM visits JOIN cities ON city = name WHERE size > 3 GROUP BY city",
    "SELECT AVG(age), COUNT(*) FROM visits JOIN people ON visits.pid = people.pid WHERE b",
    "SELECT SUM(value), COUNT(*) FROM readings",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1) region, MEDIAN(y) "
    "FROM visits GROUP BY region",
]
QUESTIONS = [f"SELECT {text} FROM visits" for text in AGGREGATE.values()] + OTHERS


def test_every_aggregate_is_asked_for():
    assert AGGREGATE.keys() == AGGREGATES.keys()


@pytest.mark.parametrize(
    ("schema", "asked", "worlds"),
    [
        pytest.param(SCHEMA, QUESTIONS, 1, id="add/remove"),
        pytest.param(CHANGED, QUESTIONS[::2], 1, id="change-one"),
        pytest.param(SCHEMA, QUESTIONS, 6, marks=pytest.mark.soak, id="add/remove for long"),
        pytest.param(CHANGED, QUESTIONS, 6, marks=pytest.mark.soak, id="change-one for long"),
    ],
)
def test_nobody_moves_anything_further_than_the_price(schema, asked, worlds):
    shares: list[float] = []
    found = audit.fuzz(schema, asked, worlds=worlds, people=6, progress=shares.append)
    assert found.verdict is Verdict.CONSISTENT, found.sentence
    assert not found.refused
    assert found.cases >= 3 * worlds * len(asked)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert json.loads(json.dumps(found.to_json()))["findings"] == []


# --- bugs on purpose -----------------------------------------------------------------------------


def dropped_clamp(patch):
    patch.setattr(grid, "clip", lambda node, low, high: grid.nodes.call("GREATEST", node, low))


def unclipped_total(patch):
    patch.setattr(measure, "clip", lambda node, low, high: node)


def forgotten_bound(patch):
    patch.setattr(
        declared,
        "bound_rows",
        lambda shape, source, name, **_: [(name, declared.select_owned_rows(shape, source), True)],
    )


def counted_rows(patch):
    patch.setattr(measure._Parts, "_units", lambda _: exp.Star())


def one_change_for_two(patch):
    original = priced.compute_sensitivity
    patch.setattr(
        priced,
        "compute_sensitivity",
        lambda m, reach, _, **how: original(m, reach, priced.Neighbours.ADD_REMOVE, **how),
    )


def l2_for_l1(patch):
    original = priced.compute_sensitivity

    def wrong(*arguments, **how):
        whole = original(*arguments, **how)
        return replace(whole, l1=max(1, int(whole.l2_squared**0.5) // 2))

    patch.setattr(priced, "compute_sensitivity", wrong)


def short_in_euclidean_length(patch):
    """Seen only by a question that is paid for in rho."""
    original = priced.compute_sensitivity

    def wrong(*arguments, **how):
        whole = original(*arguments, **how)
        return replace(whole, l2_squared=whole.l2_squared // 4)

    patch.setattr(priced, "compute_sensitivity", wrong)


@pytest.mark.parametrize(
    ("mutant", "schema", "question"),
    [
        (
            dropped_clamp,
            SCHEMA,
            "SELECT SUM(y, contribution_bounds_per_row => (0, 20)) FROM visits",
        ),
        (unclipped_total, SCHEMA, f"SELECT {AGGREGATE['SUM']} FROM visits"),
        (forgotten_bound, SCHEMA, "SELECT COUNT(*) FROM visits"),
        (counted_rows, SCHEMA, "SELECT COUNT(DISTINCT pid) FROM visits"),
        (one_change_for_two, CHANGED, "SELECT region, COUNT(*) FROM visits GROUP BY region"),
        (l2_for_l1, SCHEMA, "SELECT COUNT(*) FROM visits"),
        (short_in_euclidean_length, SCHEMA, "SELECT COUNT(*) FROM visits"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_a_bug_is_found(
    mutant: Callable[[pytest.MonkeyPatch], None],
    schema: Schema,
    question: str,
    monkeypatch: pytest.MonkeyPatch,
):
    mutant(monkeypatch)
    # Two of them need people whom the first world does not have.
    worlds = 3 if mutant in (dropped_clamp, one_change_for_two) else 1
    found = audit.fuzz(schema, [question], worlds=worlds, people=6)
    assert found.alarm, found.sentence
    assert found.findings[0].question == question


# --- made-up data ------------------------------------------------------------------------------


def test_refused_questions_are_listed():
    found = audit.fuzz(SCHEMA, ["SELECT pid FROM visits", "SELECT COUNT(*) FROM visits"], worlds=1)
    assert found.refused == {"SELECT pid FROM visits": "Q12"}
    assert found.verdict is Verdict.CONSISTENT
    assert audit.fuzz(SCHEMA, ["SELECT pid FROM visits"], worlds=1).verdict is Verdict.UNDECIDED


def test_an_engine_that_always_fails_is_not_consistent(monkeypatch):
    def failing(*_):
        raise RuntimeError("a cell")

    monkeypatch.setattr(HidingEngine, "run", failing)
    found = audit.fuzz(SCHEMA, ["SELECT COUNT(*) FROM visits"], worlds=1)
    assert (found.verdict, found.cases) == (Verdict.UNDECIDED, 0)
    assert "not all could be checked (nothing to compare)" in found.sentence
    assert "a cell" not in json.dumps(found.to_json())


def test_worlds_are_made_from_the_schema_alone_and_again_the_same():
    cities = {"cities": pa.table({"name": ["Ulm"], "size": [3]})}
    first, second = (make_world(SCHEMA, "w", public=cities) for _ in range(2))
    assert repr(first.rows) == repr(second.rows)  # by text: NaN equals nothing
    assert repr(first.rows) != repr(make_world(SCHEMA, "v", public=cities).rows)
    for name, table in SCHEMA.tables.items():
        if table.public:
            continue
        counts: dict[int, int] = {}
        for person, _ in first.rows[name]:
            counts[person] = counts.get(person, 0) + 1
        if not table.by_row:
            assert max(counts.values()) > (table.max_rows_per_unit or 0)  # the bound is tried
    cells = [row["y"] for _, row in first.rows["visits"]]
    assert any(0 <= y <= 100 for y in cells if y is not None)


def test_without_a_person_all_their_rows_are_gone():
    made = make_world(SCHEMA, "w", public={})
    person = next(one for one in made.people() if one[0] == "pid")
    whole, rest = made.tables(), made.tables(without=person)
    for name in ("visits", "people"):
        gone = set(whole[name]["pid"].to_pylist()) - set(rest[name]["pid"].to_pylist())
        assert gone <= {person[1] + 1}
    audit.neighbouring(
        {n: whole[n] for n in ("visits", "people", "readings")} | {"cities": pa.table({})},
        {n: rest[n] for n in ("visits", "people", "readings")} | {"cities": pa.table({})},
        schema=SCHEMA,
    )


def test_every_kind_is_poisoned():
    seen: dict[Kind, set[object]] = {}
    for number in range(12):
        made = make_world(SCHEMA, f"w{number}", public={})
        for name, table in SCHEMA.tables.items():
            for _, row in made.rows.get(name, ()):
                for column in table.columns:
                    seen.setdefault(column.kind, set()).add(repr(row[column.name]))
    assert seen.keys() == set(Kind)
    assert all("None" in values for kind, values in seen.items())
    assert {"nan", "inf"} <= seen[Kind.DECIMAL]


@pytest.mark.parametrize("wrong", [{"worlds": 0}, {"people": 0}, {"worlds": 2.5}])
def test_bad_numbers_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        audit.fuzz(SCHEMA, ["SELECT COUNT(*) FROM visits"], **wrong)
