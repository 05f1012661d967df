"""Whole steps of a grid, and sums of them, against exact arithmetic at the edges of the types."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet.audit.rehearsal import Rehearsal
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.grid import exponent, from_steps, scale_steps, to_steps
from discreet.errors import InvalidParameter
from discreet.price.plan import Contribution, GroupTotal, Moments, Plan, Scaled
from discreet.question.domain import Kind
from discreet.question.expressions import ColumnRef
from discreet.question.functions.nodes import quote_column
from discreet.question.relation import Source
from discreet.question.schema import ROW, Column, Schema, Table

INTEGERS = [0, 1, 2, 3, 5, -1, -2, -3, 6, 7, 1000, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]
DECIMALS = [
    *(i / 4 for i in range(-9, 10)), 0.1, 2.0**52 + 0.5, 1e18, -1e18, 1e300, -1e300, 5e-324,
    1.7976931348623157e308,
]  # fmt: skip
GRIDS = [Fraction(2) ** k for k in (-60, -20, -3, -1, 0, 1, 2, 10, 40, 63, 64, 125)]
BANDS = [(0, 1), (-3, 7), (-(2**40), 2**41), (-(2**62), 2**63), (2**70, 2**71), (-(2**100), 2**101)]


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect(config={"threads": 1}) as opened:
        for kind, values in (("BIGINT", INTEGERS), ("DOUBLE", DECIMALS)):
            rows = pa.table({"x": pa.array([*values, None])})
            opened.register("rows", rows)
            opened.execute(f"CREATE TABLE of_{kind} AS SELECT x::{kind} AS x FROM rows")
        yield opened


def computed(connection, kind, node):
    name = {Kind.INTEGER: "BIGINT", Kind.DECIMAL: "DOUBLE"}[kind]
    return connection.execute(f"SELECT x, {node.sql('duckdb')} FROM of_{name}").fetchall()


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.DECIMAL])
@pytest.mark.parametrize("grid", GRIDS)
def test_steps_are_exact_and_clipped(connection, kind, grid):
    for low, span in BANDS:
        scaled = Scaled(ColumnRef("x"), grid, low, span)
        for x, u in computed(connection, kind, scale_steps(quote_column("x"), kind, scaled)):
            if x is None:
                assert u is None
            else:
                assert u == min(max(round(Fraction(x) / grid) - low, 0), span), (x, grid, low, span)


@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.DECIMAL])
@pytest.mark.parametrize("grid", GRIDS)
def test_steps_without_a_band_saturate(connection, kind, grid):
    for x, u in computed(connection, kind, to_steps(quote_column("x"), kind, grid)):
        if x is None:
            assert u is None
        else:
            assert u == min(max(round(Fraction(x) / grid), -(2**62)), 2**62), (x, grid)


@pytest.mark.parametrize("power", [-1000, -40, 0, 40, 900])
def test_numbers_come_back_from_steps(connection, power):
    for x, y in computed(
        connection, Kind.INTEGER, from_steps(quote_column("x"), Fraction(2) ** power)
    ):
        assert x is None or y == math.ldexp(float(x), power)


def test_dates_timestamps_and_booleans_lie_on_the_number_line(connection):
    for kind, value, number in (
        (Kind.DATE, "DATE '1970-01-11'", 10),
        (Kind.DATE, "DATE '0001-01-01'", -719162),
        (Kind.TIMESTAMP, "TIMESTAMP '1970-01-01 00:00:02'", 2_000_000),
        (Kind.BOOLEAN, "TRUE", 1),
    ):
        scaled = Scaled(ColumnRef("x"), Fraction(1), number - 5, 10)
        node = scale_steps(quote_column("x"), kind, scaled).sql("duckdb")
        assert connection.execute(f"SELECT {node} FROM (SELECT {value} AS x)").fetchone() == (5,)


def test_a_grid_that_is_no_power_of_two_is_refused():
    assert exponent(Fraction(1, 8)) == -3
    for grid in (Fraction(3), Fraction(1, 10), Fraction(0), Fraction(-2)):
        with pytest.raises(InvalidParameter):
            exponent(grid)


def test_a_grid_beyond_every_whole_number_is_refused_before_the_engine_fails():
    for steps in (to_steps, lambda x, kind, g: scale_steps(x, kind, Scaled(x, g, -1, 2))):
        with pytest.raises(InvalidParameter):
            steps(quote_column("x"), Kind.INTEGER, Fraction(2**977))


# --- sums ----------------------------------------------------------------------------------


def summed(values, *measurements):
    table = Table("t", (Column("x", Kind.INTEGER), Column("y", Kind.INTEGER)), unit=ROW)
    frame = pd.DataFrame({"x": values, "y": values[::-1]}, dtype="Int64")
    plan = Plan(Source(table, (("x", "x"), ("y", "y"))), (), Contribution(rows=1), measurements)
    with DuckDBEngine({"t": frame}, Schema({"t": table})) as engine:
        return [m[0].tolist() for m in engine.run(engine.compile(plan)).open_for_release().measured]


@pytest.mark.parametrize("bits", [20, 31, 32, 60, 62])
def test_bernstein_sums_do_not_wrap(bits):
    """Products of up to 124 bits, summed over rows at both ends of the range."""
    span = 2**bits
    values = [0, 1, span, span - 1, span // 2, span, 2**63 - 1, -(2**63), 7] * 5
    x, y = (Scaled(ColumnRef(n), Fraction(1), 0, span) for n in "xy")
    found = summed(values, Moments((x,), (1,)), Moments((x,), (2,)), Moments((x, y), (1, 1)))
    u = [min(max(v, 0), span) for v in values]
    pairs = list(zip(u, u[::-1], strict=True))
    assert found[0] == [sum(span - a for a in u), sum(u)]
    assert found[1] == [
        sum((span - a) ** 2 for a in u), sum(2 * a * (span - a) for a in u), sum(a * a for a in u)
    ]  # fmt: skip
    assert found[2] == [
        sum((a if i else span - a) * (b if j else span - b) for a, b in pairs)
        for i, j in itertools.product((0, 1), repeat=2)
    ]
    for measured, weight in zip(found, (span, span**2, span**2), strict=True):
        assert sum(measured) == len(values) * weight


def test_totals_of_a_unit_do_not_wrap():
    table = Table("t", (Column("who", Kind.INTEGER), Column("x", Kind.INTEGER)), unit=("who",),
                  max_rows_per_unit=10)  # fmt: skip
    frame = pd.DataFrame({"who": [1] * 4 + [2] * 4, "x": [2**63 - 1] * 4 + [-(2**63)] * 4})
    total = GroupTotal(ColumnRef("x"), Fraction(1), -(2**61), 2**61 + 5)
    plan = Plan(Source(table, (("x", "x"),)), (), Contribution(rows=10), (total,))
    with DuckDBEngine({"t": frame}, Schema({"t": table})) as engine:
        found = engine.run(engine.compile(plan)).open_for_release().measured[0][0].tolist()
    assert found == [2**61 + 5, 2**61 + 5]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM t a WHERE x > (SELECT AVG(b.x) FROM t b WHERE b.id = a.id)",
        "SELECT COUNT(*) FROM t a WHERE x = (SELECT SUM(b.x) FROM t b WHERE b.id = a.id)",
        "SELECT COUNT(*) FROM (SELECT x, AVG(x) OVER (PARTITION BY id) AS m FROM t) WHERE x < m",
        "SELECT COUNT(*) FROM (SELECT x, SUM(x) OVER (PARTITION BY id ORDER BY day ROWS BETWEEN "
        "UNBOUNDED PRECEDING AND CURRENT ROW) AS m FROM t) WHERE x = m",
    ],
)
def test_a_decimal_alone_is_its_own_sum_and_mean(question: str) -> None:
    """Bit for bit, though sums of several are added on a grid that is wider than their last bit."""
    random = np.random.default_rng(5)
    t = pd.DataFrame(
        {
            "id": random.integers(0, 250, 400),
            "x": [*random.uniform(0, 1e-6, 50), *random.uniform(0, 5000, 350)],
            "day": pd.date_range("2024-01-01", periods=400).date,
        }
    )
    schema = Schema.from_text("""
        [tables.t]
        unit = "id"
        max_rows_per_unit = 20
        [tables.t.columns]
        id = { type = "integer" }
        x = { type = "decimal", bounds = [0, 5000] }
        day = { type = "date", bounds = ["2024-01-01", "2025-12-31"] }
    """)
    answer = Rehearsal({"t": t}, schema=schema)(question, epsilon=10**6)
    with duckdb.connect() as connection:
        connection.register("t", t)
        assert [(answer.value(),)] == connection.execute(question).fetchall()
