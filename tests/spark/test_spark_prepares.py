"""Spark prepares, DuckDB answers: the same rows are kept, so the same integers are found."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import cli_cases
import engine_cases as cases
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine.duckdb import DuckDBEngine, prepared
from discreet.engine.spark.engine import SparkEngine
from discreet.engine.spark.prepare import Preparing
from discreet.engine.spark.session import open_session, watch
from discreet.errors import DataRefusal, InvalidParameter
from discreet.price import price
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement


def rows_of(engine: DuckDBEngine, name: str) -> list[tuple]:
    """All that a prepared table holds, as DuckDB shows it."""
    database = engine._current()
    held = database.connection.execute(f'SELECT * FROM "rows of {name}"')
    names = [column[0] for column in held.description]
    rows = [dict(zip(names, row, strict=True)) for row in held.fetchall()]
    shown = [
        tuple((n, str(type(v)), str(v)) for n, v in sorted(r.items()) if n != "_row") for r in rows
    ]
    return sorted(shown)


def prepared_both_ways(tmp_path, spark, path, schema, name="visits"):
    with DuckDBEngine({name: path}, schema, store=tmp_path / "own") as own:
        own.prepare()
        wanted = rows_of(own, name)
        version = own.data_version()
    with DuckDBEngine({name: path}, schema, store=tmp_path / "spark") as other:
        other.prepare(spark=spark)
        assert rows_of(other, name) == wanted
        assert other.data_version() == version  # one account, and free replays
    return wanted


def test_the_same_rows_are_kept_and_the_same_integers_found(spark, tmp_path):
    path = tmp_path / "visits.parquet"
    frame = cases.frame(900)
    frame.loc[::9, "cost"] = np.nan
    frame.loc[::13, "cost"] = 1e300
    frame.loc[::17, "note"] = "\ufffd was no text"
    frame.loc[::19, "who"] = pd.NA
    pq.write_table(pa.Table.from_pandas(frame), path, coerce_timestamps="us")
    schema = cases.schema()
    wanted = prepared_both_ways(tmp_path, spark, path, schema)
    assert len(wanted) == 36  # twelve people, three rows each
    # another process finds what was prepared, and answers from it alone
    with DuckDBEngine({"visits": path}, schema, store=tmp_path / "spark") as engine:
        assert engine._current().written.keys() == {"visits"}
        found = cases.integers(engine.run(engine.compile(cases.plan(engine))).open_for_release())
    assert found == cases.answer({"visits": path})


def test_one_exchange_prepares(spark, tmp_path):
    """Read from Spark's own plan: every row moves once, to where all rows of its unit are."""
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.Table.from_pandas(cases.frame()), path, coerce_timestamps="us")
    with DuckDBEngine({"visits": path}, cases.schema()) as engine:
        table, source = engine.schema.tables["visits"], engine._sources["visits"]
        plan = Preparing.of(spark, table, source).explain()
    assert plan.count("Exchange hashpartitioning(_unit0") == 1
    assert plan.count("Exchange") == 1
    assert plan.count("Scan parquet") == 1


BOUNDED = """
[tables.visits]
unit = "who"
max_rows_per_unit = 3
[tables.visits.columns]
who = "integer"
edge = { type = "integer", bounds = [-2147483648, 2147483647] }
past = { type = "integer", bounds = [0, 2147483648] }
any = "integer"
cost = { type = "decimal", bounds = [0, 5000] }
"""


def test_whole_numbers_are_as_short_as_their_bounds_allow(spark, tmp_path):
    """And none is lost: at the bounds, beyond them, missing; what reads them has 64 bits again."""
    path = tmp_path / "visits.parquet"
    far = [-(2**63), -(2**31) - 1, -(2**31), 0, 2**31 - 1, 2**31, 2**63 - 1, None]
    held = {"who": list(range(len(far)))} | dict.fromkeys(("edge", "past", "any"), far)
    pq.write_table(pa.table(held | {"cost": [0.0, 5000.0, 1e300, None] * 2}), path)
    schema = Schema.from_text(BOUNDED)
    prepared_both_ways(tmp_path, spark, path, schema)
    written = next((tmp_path / "spark").glob("*.parquet/*.parquet"))
    types = {f.name: str(f.type) for f in pq.read_schema(written)}
    assert types["u0"] == types["c0"] == types["c3"] == "int64"
    assert (types["c1"], types["c2"]) == ("int32", "int64")
    assert types["s1"] == types["s4"] == "int32"  # steps of their grid
    question = "SELECT SUM(edge * 2 + past) AS s, COUNT(cost) AS n FROM visits WHERE edge + 1 > 0"
    with (
        SparkEngine({"visits": path}, schema, spark=spark, store=tmp_path / "spark") as engine,
        DuckDBEngine({"visits": path}, schema) as other,
    ):
        asked = parse_statement(question, engine.catalogue).question
        plan = price(asked, Offer(epsilon=1), engine.catalogue).plan
        found = [one.run(one.compile(plan)).open_for_release() for one in (engine, other)]
        assert cases.integers(found[0]) == cases.integers(found[1])


def test_what_was_written_in_another_form_is_prepared_anew(spark, tmp_path, monkeypatch):
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.Table.from_pandas(cases.frame()), path, coerce_timestamps="us")
    store = tmp_path / "store"
    with SparkEngine({"visits": path}, cases.schema(), spark=spark, store=store) as engine:
        with monkeypatch.context() as before:
            before.setattr(prepared, "_WRITTEN", "spark")
            prepared._name_version.cache_clear()
            engine.prepare()
        (former,) = store.glob("*.parquet")
        plan = engine.compile(cases.plan(engine))
        assert "discreet_" not in engine.explain_plan(plan)  # the name of a folder that is shown
        engine.prepare()
        (now,) = store.glob("*.parquet")
        assert now.name.split("-")[2] != former.name.split("-")[2]
        assert "discreet_" in engine.explain_plan(plan)


OWN = """
[tables.visits]
unit = ["who", "again"]
max_rows_per_unit = 2
[tables.visits.columns]
who = "text"
again = "integer"
sex = { type = "text", values = ["f", "m"], per_unit = true }
paid = { type = "integer", bounds = [-5, 1000000] }
ok = "boolean"
share = { type = "decimal", bounds = [-1.5, 2.5] }
"""


def test_units_of_two_columns_that_say_different_things(spark, tmp_path):
    chance, n = np.random.default_rng(2), 400
    who = chance.choice(["a", "b", "é", "\U0001f600", "it's \\ here", ""], n)
    rows = {
        "who": pa.array(who),
        "again": pa.array(chance.integers(0, 4, n), pa.int32()),
        "sex": pa.array(chance.choice(np.array(["f", "m", "x", None], dtype=object), n)),
        "paid": pa.array(chance.integers(-10, 2_000_000, n), pa.uint32() if n < 0 else pa.int64()),
        "ok": pa.array(chance.choice(np.array([True, False, None], dtype=object), n)),
        "share": pa.array(chance.normal(0, 2, n), pa.float32()),
    }
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table(rows), path)
    prepared_both_ways(tmp_path, spark, path, Schema.from_text(OWN))


@pytest.mark.parametrize(
    ("type_", "declared", "values"),
    [
        (pa.timestamp("ns"), "timestamp", [0]),
        (pa.timestamp("ms"), "timestamp", [0]),
        (pa.string(), "integer", ["7"]),
        (pa.decimal128(20, 4), "decimal", [7]),
        (pa.binary(), "text", [b"x"]),
    ],
)
def test_what_would_be_read_otherwise_is_refused_and_nothing_is_lost(
    spark, tmp_path, type_, declared, values
):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"who": pa.array([1]), "x": pa.array(values, type_)}), path)
    text = f"""
[tables.t]
unit = "who"
max_rows_per_unit = 1
columns.who = "integer"
columns.x = "{declared}"
"""
    with DuckDBEngine({"t": path}, Schema.from_text(text), store=tmp_path / "s") as engine:
        engine.prepare()
        wanted = rows_of(engine, "t")
        path.touch()
        with pytest.raises(DataRefusal, match="Spark does not read the source of table 't'"):
            engine.prepare(spark=spark)
        assert rows_of(engine, "t") == wanted
        assert not list((tmp_path / "s").glob("*.partial"))


# --- by every door ----------------------------------------------------------------------------


def test_the_command_prepares_with_spark_and_the_session_answers(spark, tmp_path, capsys):
    home, run = cli_cases.make_session(tmp_path / "clinic"), cli_cases.runner(capsys)
    wanted = run("ask", cli_cases.BY_CITY, "--epsilon", "0.1", "--session", home)
    assert wanted[0] == 0
    code, out, _ = run("prepare", "--engine", "spark", "--session", home)
    assert (code, "prepared: patients" in out) == (0, True)
    assert [p.suffix for p in (home / "prepared").glob("prepared-*")].count(".parquet") >= 1
    again = run("ask", cli_cases.BY_CITY, "--epsilon", "0.1", "--session", home)
    assert again[1].splitlines()[:6] == wanted[1].splitlines()[:6]  # the same data: shown again
    assert cli_cases.is_refusal(run("prepare", "--engine", "flink", "--session", home), "P4")


def test_whoever_is_interrupted_stops_the_jobs(spark):
    """And is told how far the work is, never that it is done before it is."""
    seen = []

    def stop(_name, part):
        seen.append(part)
        if spark.sparkContext.statusTracker().getActiveJobsIds():
            raise KeyboardInterrupt

    slow = "SELECT SUM(id % 7) FROM RANGE(100000000000)"
    with pytest.raises(KeyboardInterrupt):
        watch(spark, lambda: spark.sql(slow).collect(), "t", stop)
    assert all(0 <= part < 1 for part in seen)
    assert not [t for t in threading.enumerate() if t.name.startswith("discreet")]
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


class Context:
    """What is looked at of a session that others may watch."""

    def __init__(self, log: str, ui: str | None) -> None:
        self.log, self.uiWebUrl = log, ui

    def getConf(self):  # noqa: N802
        return {"spark.eventLog.enabled": self.log}


@pytest.mark.parametrize(("log", "ui"), [("true", None), ("false", "http://driver:4040")])
def test_a_session_that_shows_exact_counts_is_refused(spark, monkeypatch, log, ui):
    monkeypatch.setattr(type(spark), "sparkContext", property(lambda _: Context(log, ui)))
    with pytest.raises(InvalidParameter, match="keeps the exact number of rows of every step"):
        open_session(spark)


def test_nothing_that_spark_fails_on_is_printed(spark, capfd):
    """Its errors quote the value; neither its log nor its Python tells."""
    with pytest.raises(Exception, match="CANARY"):
        spark.sql("SELECT CAST('CANARY' AS BIGINT) + id FROM RANGE(3)").collect()
    printed = capfd.readouterr()
    assert "CANARY" not in printed.out + printed.err


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidParameter, match="Java is not installed"):
        open_session("local[1]")
    with pytest.raises(InvalidParameter, match="neither an address nor a session"):
        open_session(7)
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    with pytest.raises(InvalidParameter, match="pyspark is not installed"):
        open_session("local[1]")


PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


def test_what_the_page_of_engines_types_runs(spark, tmp_path, monkeypatch):
    """Its cells in turn: Spark answers, and prepares for DuckDB; the command is tried above."""
    blocks = re.findall(
        r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.DOTALL
    )
    cells = [text for kind, text in blocks if kind == "python" and ">>>" not in text]
    assert [text.partition("  ")[0] for kind, text in blocks if kind == "sh"] == [
        "discreet prepare --engine spark"
    ]
    monkeypatch.chdir(tmp_path)
    Path("visits").mkdir()
    table = pa.Table.from_pandas(cases.frame(90))
    pq.write_table(table, "visits/part.parquet", coerce_timestamps="us")
    answers, prepares = cells
    names = {"schema": cases.schema(), "session": spark}
    exec(answers.replace('"local[*]"', "session"), names)  # one session for all tests
    with (
        names["engine"] as answering,
        DuckDBEngine({"visits": "visits/*.parquet"}, cases.schema()) as engine,
    ):
        exec(prepares, {"engine": engine, "session": spark})
        assert len(rows_of(engine, "visits")) == 36  # twelve people, three rows each
        assert engine.data_version() == answering.data_version()
