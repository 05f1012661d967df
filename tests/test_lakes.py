"""Folders whose names are columns, and Delta tables: the same integers as from one table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import engine_cases as cases
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import DataRefusal


def arrow(frame: pd.DataFrame | None = None) -> pa.Table:
    return pa.Table.from_pandas(cases.frame() if frame is None else frame, preserve_index=False)


def integers(engine) -> list:
    return cases.integers(engine.run(engine.compile(cases.plan(engine))).open_for_release())


def read(source) -> list:
    with DuckDBEngine({"visits": source}, cases.schema()) as engine:
        found = integers(engine)
        engine.prepare()
        assert integers(engine) == found
        return found


@pytest.fixture
def wanted() -> list:
    return read(cases.frame())


# --- folders ------------------------------------------------------------------------------------


def write_folders(folder: Path, table: pa.Table, *names: str) -> None:
    pq.write_to_dataset(table, folder, partition_cols=list(names))


@pytest.mark.parametrize("names", [("city",), ("city", "age"), ("day",), ("who",)])
def test_names_of_folders_are_columns(tmp_path, wanted, names):
    """Missing values and values outside the declaration among them."""
    write_folders(tmp_path / "visits", arrow(), *names)
    assert len(list((tmp_path / "visits").rglob("*.parquet"))) > 3
    assert read(tmp_path / "visits") == wanted


def test_arrow_reads_names_of_folders_too(tmp_path, wanted):
    """Times in milliseconds, on which DuckDB would give up."""
    table = arrow()
    at = table.column("at").cast(pa.timestamp("ms"))
    table = table.set_column(table.schema.get_field_index("at"), "at", at)
    write_folders(tmp_path / "visits", table, "city")
    assert read(tmp_path / "visits") == wanted


def test_a_column_of_the_file_is_not_overruled_by_a_folder(tmp_path, wanted):
    folder = tmp_path / "visits" / "city=Oslo" / "age=3"
    folder.mkdir(parents=True)
    pq.write_table(arrow(), folder / "a.parquet")
    assert read(tmp_path / "visits") == wanted


def test_a_new_folder_is_another_version(tmp_path):
    write_folders(tmp_path / "visits", arrow(), "city")
    with DuckDBEngine({"visits": tmp_path / "visits"}, cases.schema()) as engine:
        before = engine.data_version()
        write_folders(tmp_path / "visits", arrow(cases.frame(7, seed=2)), "city")
        assert engine.data_version() != before


# --- Delta ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[], ["city"], ["day", "who"]])
def test_a_delta_table_is_what_its_log_says(tmp_path, wanted, names):
    path = tmp_path / "visits"
    frame = cases.frame()
    deltalake.write_deltalake(path, arrow(frame.iloc[:20]), partition_by=names or None)
    deltalake.write_deltalake(path, arrow(frame.iloc[20:]), mode="append")
    assert read(path) == wanted


def test_deleted_people_are_gone_though_their_files_are_not(tmp_path):
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow())
    deltalake.DeltaTable(path).delete("who = 3")
    left = cases.frame().loc[lambda f: f.who != 3]
    files = list(path.rglob("*.parquet"))
    assert any(3 in pq.read_table(file).column("who").to_pylist() for file in files)
    assert read(path) == read(left) != read(cases.frame())


def test_the_version_is_the_tables_own(tmp_path):
    """Wherever it lies; another commit is another version, and so is another history."""
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow())

    def version(at: Path) -> str:
        with DuckDBEngine({"visits": at}, cases.schema(), opened=False) as engine:
            return engine.data_version()

    first = version(path)
    shutil.copytree(path, tmp_path / "copy")
    assert version(tmp_path / "copy") == first
    deltalake.DeltaTable(path).vacuum(dry_run=True)
    for place, seed in ((path, 1), (tmp_path / "copy", 2)):
        deltalake.write_deltalake(place, arrow(cases.frame(5, seed=seed)), mode="append")
    assert len({first, version(path), version(tmp_path / "copy")}) == 3


def test_a_commit_is_noticed_by_the_next_question(tmp_path):
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow())
    with DuckDBEngine({"visits": path}, cases.schema()) as engine:
        before, version = integers(engine), engine.data_version()
        deltalake.write_deltalake(path, arrow(cases.frame(40, seed=8)), mode="overwrite")
        assert engine.data_version() != version
        assert integers(engine) == cases.answer({"visits": cases.frame(40, seed=8)}) != before


def add_to_log(path: Path, *actions: dict) -> None:
    number = len(list((path / "_delta_log").glob("*.json")))
    text = "\n".join(json.dumps(action) for action in actions)
    (path / "_delta_log" / f"{number:020}.json").write_text(f"{text}\n")


PROTOCOLS = [
    {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
     "writerFeatures": ["deletionVectors"]},
    {"minReaderVersion": 9, "minWriterVersion": 9},
]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_features_that_are_not_read_are_refused(tmp_path, protocol):
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow())
    add_to_log(path, {"protocol": protocol})
    with pytest.raises(DataRefusal) as refused:
        read(path)
    assert refused.value.code == "D2"
    assert "people who were deleted" in refused.value.why


def test_mapped_columns_are_refused(tmp_path):
    path = tmp_path / "visits"
    settings = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2"}
    deltalake.write_deltalake(path, arrow())
    log = sorted((path / "_delta_log").glob("*.json"))[0]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"] = settings
            add_to_log(path, line)
    with pytest.raises(DataRefusal, match="features"):
        read(path)


def test_folders_that_do_not_say_what_the_log_says_are_refused(tmp_path):
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow(), partition_by=["city"])
    log = sorted((path / "_delta_log").glob("*.json"))[0]
    log.write_text(
        log.read_text().replace(
            '"partitionValues":{"city":"Oslo"}', '"partitionValues":{"city":"Cork"}'
        )
    )
    with pytest.raises(DataRefusal, match="names of its folders"):
        read(path)


def test_a_log_that_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "visits"
    deltalake.write_deltalake(path, arrow())
    for log in (path / "_delta_log").glob("*.json"):
        log.write_text("no log")
    with pytest.raises(DataRefusal, match="log cannot be read") as refused:
        read(path)
    assert refused.value.__cause__ is None
