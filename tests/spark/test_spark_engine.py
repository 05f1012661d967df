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
from discreet.errors import DataRefusal, QuestionRefusal


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
        curator.ask("SELECT COUNT(*) FROM visits WHERE city LIKE 'C%'", epsilon=1)
        assert curator.spent.epsilon == 1
