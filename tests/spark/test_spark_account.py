"""One account for three engines: what one was paid for, the others show, free."""

from __future__ import annotations

import json
import shutil

import engine_cases as cases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engine_postgres import COUNTED, MEANT, MIDDLE, ask_elsewhere, served
from test_postgres_source import fill

import discreet
from discreet.curate import session
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.spark.engine import SparkEngine
from discreet.errors import DataRefusal


def write_home(folder, source: str):
    """A session of the clinic whose visits are there."""
    declared = cases.SCHEMA.replace("[tables.visits]\n", f'[tables.visits]\nsource = "{source}"\n')
    session.init(folder, f"[budget]\nepsilon = 3\n{declared}")
    return folder


def ask_here(home, spark, *questions: str) -> dict:
    """Ask in this process, of Spark."""
    with discreet.open(home, kind="spark", spark=spark) as clinic:
        answers = [clinic.ask(text, epsilon="0.25") for text in questions]
        found = {
            "values": [answer.to_json()["rows"] for answer in answers],
            "spent": str(clinic.spent.epsilon),
            "version": clinic.engine.data_version(),
        }
    return json.loads(json.dumps(found))


def test_three_engines_two_processes_and_one_account(postgres, spark, tmp_path):
    """A table of PostgreSQL: pushed down, or copied and read by DuckDB or by Spark."""
    fill(postgres)
    home = write_home(tmp_path / "clinic", served(postgres, "visits")["visits"])
    first = ask_elsewhere(home, "postgres", COUNTED)
    second = ask_here(home, spark, COUNTED, MEANT)
    third = ask_elsewhere(home, "duckdb", MEANT, COUNTED, MIDDLE)
    fourth = ask_here(home, spark, MIDDLE, MEANT, COUNTED)
    last = ask_elsewhere(home, "postgres", MIDDLE, MEANT, COUNTED)
    assert len({one["version"] for one in (first, second, third, fourth, last)}) == 1
    assert [one["spent"] for one in (first, second, third)] == ["1/4", "1/2", "3/4"]
    assert fourth["values"] == last["values"]
    assert fourth["spent"] == last["spent"] == "3/4"
    assert second["values"] == fourth["values"][:0:-1]
    assert third["values"] == [fourth["values"][i] for i in (1, 2, 0)]
    # Other rows in the database: PostgreSQL sees them at once, and whoever reads the copy when
    # another is made.  Nobody is given an answer of one for an answer of the other.
    postgres.execute("DELETE FROM visits WHERE who = 5")
    after = ask_elsewhere(home, "postgres", COUNTED)
    assert after["version"] != first["version"]
    assert after["spent"] == "1"
    still = ask_here(home, spark, COUNTED)
    assert (still["version"], still["values"], still["spent"]) == (
        first["version"],
        first["values"],
        "1",
    )
    with discreet.open(home, kind="spark", spark=spark) as clinic:
        clinic.engine.prepare()
        assert clinic.engine.data_version() == after["version"]
    renewed = ask_here(home, spark, COUNTED)
    assert (renewed["values"], renewed["spent"]) == (after["values"], "1")


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits" / "visits.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pandas(cases.frame(80)), path, coerce_timestamps="us")
    return path


def integers(engine) -> list:
    compiled = engine.compile(cases.plan(engine))
    return cases.integers(engine.run(compiled).open_for_release())


def test_a_table_of_the_catalogue_is_its_files(spark, visits, tmp_path):
    """The same version and the same integers as of its folder; views and strangers are refused."""
    name = f"visits_{tmp_path.name.replace('-', '_')}"
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION 'file://{visits.parent}'")
    spark.range(3).createOrReplaceTempView(f"{name}_seen")
    try:
        with (
            SparkEngine(
                {"visits": f"catalog://default.{name}"}, cases.schema(), spark=spark
            ) as one,
            DuckDBEngine({"visits": visits.parent}, cases.schema()) as other,
        ):
            assert one.data_version() == other.data_version()
            assert integers(one) == integers(other)
            shutil.copy(visits, visits.with_name("more.parquet"))  # noticed as any change is
            assert one.data_version() == other.data_version()
            assert integers(one) == integers(other)
        for wrong in (f"{name}_seen", f"{name}_none", "no.such.place", "a` b"):
            with pytest.raises(DataRefusal) as refused:
                SparkEngine({"visits": f"catalog://{wrong}"}, cases.schema(), spark=spark)
            assert refused.value.code == "D2"
        with pytest.raises(DataRefusal):  # which DuckDB has none of
            DuckDBEngine({"visits": f"catalog://default.{name}"}, cases.schema())
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_delta_table_on_spark_is_what_its_log_says(spark, visits, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    folder = tmp_path / "lake"
    rows = pq.read_table(visits)
    deltalake.write_deltalake(str(folder), rows)
    deltalake.DeltaTable(str(folder)).delete("who = 5")  # whose rows still lie in a file
    with (
        SparkEngine({"visits": folder}, cases.schema(), spark=spark) as engine,
        DuckDBEngine(
            {"visits": rows.filter(pa.compute.field("who") != 5)}, cases.schema()
        ) as other,
        DuckDBEngine({"visits": folder}, cases.schema()) as lake,
    ):
        assert integers(engine) == integers(other)
        assert engine.data_version() == lake.data_version()
