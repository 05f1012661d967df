"""Spark as an engine: the integers that DuckDB finds, or a refusal before anything is paid."""

from __future__ import annotations

import engine_cases as cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.spark import engine as spark_engine
from discreet.engine.spark.engine import SparkEngine
from discreet.engine.spark.printer import SparkPrinter
from discreet.engine.spark.statement import Prepared
from discreet.errors import DataRefusal, QuestionRefusal
from discreet.price import price
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement


def integers(engine, plan) -> list:
    return cases.integers(engine.run(engine.compile(plan)).open_for_release())


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    path = tmp_path_factory.mktemp("visits") / "visits.parquet"
    frame = cases.frame(200)
    frame.loc[::9, "cost"] = np.nan
    frame.loc[::13, "cost"] = 1e300
    pq.write_table(pa.Table.from_pandas(frame), path, coerce_timestamps="us")
    return {"visits": path}


def test_the_same_integers_as_duckdb_prepared_or_not(spark, visits, tmp_path):
    with (
        SparkEngine(visits, cases.schema(), spark=spark, store=tmp_path) as engine,
        DuckDBEngine(visits, cases.schema()) as other,
    ):
        assert engine.data_version() == other.data_version()
        simple = cases.plan(engine)  # by the steps that bound rows, for every question anew
        assert integers(engine, simple) == integers(other, simple)
        assert "Cork" in engine.compile(simple).explain()
        engine.prepare()
        for keys in ("none", "declared texts", "days", "two", "found"):
            plan = cases.plan(engine, *cases.MEASURED, keys=cases.KEYS[keys])
            assert integers(engine, plan) == integers(other, plan)


def test_no_unit_has_to_be_found_again(spark, visits, tmp_path):
    """Prepared tables are divided by unit: what counts units exchanges nothing but groups."""
    from discreet.price.plan import Units

    with SparkEngine(visits, cases.schema(), spark=spark, store=tmp_path) as engine:
        engine.prepare()
        compiled = engine.compile(cases.plan(engine, Units(), keys=()))
        plan = engine.explain_plan(compiled)
        assert "Exchange hashpartitioning(u0" not in plan
        assert "Exchange hashpartitioning(_unit0" not in plan


def test_one_task_adds_up_few_groups_and_many_tasks_add_up_many(
    spark, visits, tmp_path, monkeypatch
):
    """By the number of groups, which is public, and how much there is to read."""
    with (
        SparkEngine(visits, cases.schema(), spark=spark, store=tmp_path) as engine,
        DuckDBEngine(visits, cases.schema()) as other,
    ):
        plan = cases.plan(engine)
        compiled = engine.compile(plan)
        assert compiled.groups == len(compiled.columns.groups)
        assert "Coalesce" not in engine.explain_plan(compiled)  # the source is larger than it seems
        engine.prepare()
        assert engine.explain_plan(compiled).startswith("Coalesce 1")
        assert integers(engine, plan) == integers(other, plan)
        (shown,) = engine._shown.values()
        assert shown.size == sum(
            path.stat().st_size for path in tmp_path.glob("*.parquet/*.parquet")
        )
        most = compiled.groups * engine._cores
        monkeypatch.setattr(spark_engine, "_ADDED_UP_AT_ONCE", most)
        assert "Coalesce" in engine.explain_plan(compiled)
        monkeypatch.setattr(spark_engine, "_READ_AT_ONCE", shown.size)
        assert "Coalesce" not in engine.explain_plan(compiled)
        monkeypatch.undo()
        for keys in ("none", "found"):
            assert engine.compile(cases.plan(engine, keys=cases.KEYS[keys])).groups is None
        medians = cases.plan(engine, *cases.MEASURED, keys=cases.KEYS["days"])
        assert engine.compile(medians).groups is None  # several parts, in an order


ODD = """
[tables.visits]
unit = "c1"
max_rows_per_unit = 3
[tables.visits.columns]
c1 = "integer"
c0 = { type = "integer", bounds = [0, 9] }
s1 = { type = "decimal", bounds = [0, 50] }
u0 = { type = "text", values = ["s2", "c2", "it's `c3`"] }
"""
ASKED = (
    "SELECT c0, COUNT(*) AS n, SUM(s1) AS s, AVG(c0) AS a FROM visits GROUP BY c0",
    "SELECT u0, COUNT(DISTINCT c1) AS n, SUM(c0) AS s FROM visits WHERE s1 > c0 GROUP BY u0",
    "SELECT COUNT(*) AS n FROM (SELECT c1, MAX(c0) AS s1 FROM visits GROUP BY c1) t WHERE s1 > 6",
)
"""Columns that are named as others are stored."""


def plan_of(engine, question):
    return price(
        parse_statement(question, engine.catalogue).question, Offer(epsilon=1), engine.catalogue
    ).plan


def test_what_is_prepared_is_read_in_one_step_by_the_names_it_is_stored_under():
    """Nothing that only names columns anew is left for Spark to analyse."""
    schema = Schema.from_text(ODD)
    with SparkEngine({"visits": "visits.parquet"}, schema, opened=False) as engine:
        compiled = engine.compile(plan_of(engine, ASKED[0]))
        assert compiled.prepared.complete(in_one_task=True) == (
            "SELECT /*+ COALESCE(1) */ CAST(`c1` AS BIGINT) AS `_k0`, COUNT(*) AS `_n0`, "
            "COUNT(CAST(`s2` AS BIGINT)) AS `_n1`, SUM(CAST(`s2` AS BIGINT)) AS `_n2`, "
            "COUNT(CAST(`s1` AS BIGINT)) AS `_n3`, SUM(CAST(`s1` AS BIGINT)) AS `_n4`\n"
            "FROM `prepared visits`\nGROUP BY 1"
        )


def test_columns_may_be_named_as_others_are_stored_and_prepared_again(spark, tmp_path):
    """The same integers as DuckDB's, also once other rows are prepared."""
    path, schema, chance = tmp_path / "visits.parquet", Schema.from_text(ODD), np.random
    with (
        SparkEngine({"visits": path}, schema, spark=spark, store=tmp_path, opened=False) as engine,
        DuckDBEngine({"visits": path}, schema, opened=False) as other,
    ):
        found = []
        for rows in (90, 40):
            dice = chance.default_rng(rows)
            texts = np.array(["s2", "c2", "it's `c3`", "s1"])
            held = {
                "c1": dice.integers(0, 20, rows),
                "c0": dice.integers(-3, 14, rows),
                "s1": dice.normal(10, 20, rows),
                "u0": texts[dice.integers(0, 4, rows)],
            }
            pq.write_table(pa.table(held), path)
            engine.prepare()
            plans = [plan_of(engine, question) for question in ASKED]
            found.append([integers(engine, plan) for plan in plans])
            assert found[-1] == [integers(other, plan) for plan in plans]
        assert found[0] != found[1]


def test_data_that_change_fail_the_question(spark, visits, tmp_path):
    path = tmp_path / "visits.parquet"
    path.write_bytes(visits["visits"].read_bytes())
    with SparkEngine({"visits": path}, cases.schema(), spark=spark) as engine:
        compiled = engine.compile(cases.plan(engine))
        path.unlink()
        with pytest.raises(DataRefusal):
            engine.run(compiled)
        assert engine.data_version() == "unreadable"


def test_what_takes_every_row_is_refused(spark, visits):
    with SparkEngine(visits, cases.schema(), spark=spark) as engine:
        for refused in (
            lambda: engine.compile_rows(engine.schema.tables["visits"]),
            lambda: engine.count_crowd("visits"),
            lambda: engine.compile_codes(cases.plan(engine).source, ()),
        ):
            with pytest.raises(QuestionRefusal) as caught:
                refused()
            assert caught.value.code == "Q60"
    with pytest.raises(DataRefusal, match="not made of Parquet files"):
        SparkEngine({"visits": cases.frame()}, cases.schema(), spark=spark)


def test_what_spark_does_not_take_is_not_paid_for(spark, visits, monkeypatch):
    """Spark reads every statement before the charge, on tables without rows."""
    budget = discreet.Budget(epsilon=2)
    with discreet.curator(
        visits, schema=cases.schema(), budget=budget, kind="spark", spark=spark
    ) as curator:
        monkeypatch.setattr(SparkPrinter, "like", lambda *_: "NO_SUCH_FUNCTION(TRUE)")
        with pytest.raises(DataRefusal) as refused:
            curator.ask("SELECT COUNT(*) FROM visits WHERE city LIKE 'C%'", epsilon=1)
        assert refused.value.code == "D1"
        assert curator.spent.epsilon == 0
        monkeypatch.undo()
        with monkeypatch.context() as spoilt:  # what is prepared is read by another statement
            spoilt.setattr(Prepared, "without_rows", lambda _: "SELECT NO_SUCH(1)")
            with pytest.raises(DataRefusal) as refused:
                curator.ask("SELECT COUNT(*) FROM visits WHERE city LIKE 'C%'", epsilon=1)
        assert refused.value.code == "D1"
        assert curator.spent.epsilon == 0
        curator.ask("SELECT COUNT(*) FROM visits WHERE city LIKE 'C%'", epsilon=1)
        assert curator.spent.epsilon == 1
