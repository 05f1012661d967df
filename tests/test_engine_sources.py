"""Every kind of source gives the same integers, and no bytes in it can stop the engine."""

from __future__ import annotations

import os
from fractions import Fraction

import duckdb
import engine_cases as cases
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.sources import Csv, InMemory, Parquet, open_source
from discreet.errors import DataRefusal
from discreet.price.plan import (
    Contribution,
    DistinctValues,
    Histogram,
    Moments,
    Plan,
    Scaled,
    Units,
)
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.relation import Source
from discreet.question.schema import Column, Schema, Table

FRAME = cases.frame()
MEASURED = (
    Moments((cases.COST,), (1,), counts_null=True),
    Units(),
    DistinctValues(ColumnRef("v.note")),
    Histogram(Scaled(ColumnRef("v.day"), Fraction(1), 19_700, 400)),
    Moments(condition=Call("less", (Call("hour", (ColumnRef("v.at"),)), Literal(12)))),
)


@pytest.fixture(scope="module")
def expected():
    return cases.answer({"visits": FRAME}, *MEASURED)


def parquet(folder):
    FRAME.to_parquet(folder / "v.parquet")
    return folder / "v.parquet"


def folder_of_parquet(folder):
    for i in range(4):
        (folder / f"part{i % 2}").mkdir(exist_ok=True)
        FRAME.iloc[i::4].to_parquet(folder / f"part{i % 2}" / f"{i}.parquet")
    return folder


def pattern(folder):
    for i in range(3):
        FRAME.iloc[i::3].to_parquet(folder / f"v{i}.parquet")
    return str(folder / "v*.parquet")


def comma_separated(folder):
    FRAME.to_csv(folder / "v.csv", index=False)
    return folder / "v.csv"


def tab_separated(folder):
    FRAME.to_csv(folder / "v.tsv", index=False, sep="\t", lineterminator="\r\n")
    return folder / "v.tsv"


def duckdb_file(folder, name="visits"):
    with duckdb.connect(str(folder / "v.duckdb")) as connection:
        connection.register("frame", FRAME)
        connection.execute(f"CREATE TABLE {name} AS FROM frame")
    return folder / "v.duckdb"


def duckdb_table(folder):
    return f"{duckdb_file(folder, 'another')}#another"


def pandas_frame(_):
    return FRAME


def arrow_table(_):
    return pa.Table.from_pandas(FRAME)


def arrow_dictionaries(_):
    table = pa.Table.from_pandas(FRAME)
    return table.set_column(1, "city", table["city"].dictionary_encode())


def polars_frame(_):
    return pl.from_pandas(FRAME)


def polars_lazy(_):
    return pl.from_pandas(FRAME).lazy()


KINDS = [
    parquet,
    folder_of_parquet,
    pattern,
    comma_separated,
    tab_separated,
    duckdb_file,
    duckdb_table,
    pandas_frame,
    arrow_table,
    arrow_dictionaries,
    polars_frame,
    polars_lazy,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_source_gives_the_same_integers(tmp_path, kind, expected):
    """Truncation included: the same rows are kept wherever they come from."""
    assert cases.answer({"visits": kind(tmp_path)}, *MEASURED) == expected


@pytest.mark.parametrize("kind", [parquet, folder_of_parquet, comma_separated, duckdb_table])
def test_a_path_with_quotes_brackets_and_hashes(tmp_path, kind, expected):
    folder = tmp_path / 'it\'s #1 "odd" [1] *'
    folder.mkdir()
    assert cases.answer({"visits": str(kind(folder))}, *MEASURED) == expected


# --- what cannot be read as declared -------------------------------------------------------


def refused(source, text=cases.SCHEMA) -> str:
    with pytest.raises(DataRefusal) as caught:
        DuckDBEngine({"visits": source}, cases.schema(text))
    assert caught.value.code == "D2"
    assert caught.value.__context__ is None
    return str(caught.value)


def test_sources_that_cannot_be_opened(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"canary is not Parquet")
    assert "'visits'" in refused(tmp_path / "absent.parquet")
    assert "canary" not in refused(tmp_path / "bad.parquet")
    assert "does not say" in refused(tmp_path / "visits.xlsx")
    assert "neither a path nor a table" in refused(42)


def test_a_missing_column_is_named():
    assert "missing: note" in refused(FRAME.drop(columns="note"))


def test_a_type_with_no_such_reading_is_named():
    lists = pa.table({**{n: FRAME[n] for n in FRAME if n != "age"}, "age": [[1]] * len(FRAME)})
    assert "'age'" in refused(lists)
    assert "'note'" in refused(FRAME.assign(note=pd.to_datetime("2024-01-01")))


# --- damage --------------------------------------------------------------------------------

STRINGS = b"ok\xff\xfe\xedfine"


def damaged_text() -> pa.Array:
    """Three texts of which the middle one is not UTF-8."""
    offsets = pa.py_buffer(np.array([0, 2, 5, 9], dtype=np.int32).tobytes())
    return pa.StringArray.from_buffers(3, offsets, pa.py_buffer(STRINGS))


MOMENTS = [0, 2**62, -(2**63)]


def damaged_table() -> pa.Table:
    return pa.table(
        {
            "who": [1, 2, 3],
            "note": damaged_text(),
            "ms": pa.array(MOMENTS, pa.timestamp("ms")),
            "us": pa.array(MOMENTS, pa.timestamp("us")),
            "s": pa.array(MOMENTS, pa.timestamp("s")),
            "ns": pa.array(MOMENTS, pa.timestamp("ns")),
            "day": pa.array([0, 2**31 - 1, -(2**31)], pa.date32()),
        }
    )


DAMAGED = Table(
    "t",
    (
        Column("who", Kind.INTEGER),
        Column("note", Kind.TEXT),
        *(Column(n, Kind.TIMESTAMP) for n in ("ms", "us", "s", "ns")),
        Column("day", Kind.DATE),
    ),
    unit=("who",),
    max_rows_per_unit=1,
)


def known(source, names) -> list[int]:
    """How many rows have a value in each column, and the engine's statement."""
    columns = tuple((name, name) for name in names)
    table = Table("t", tuple(c for c in DAMAGED.columns if c.name in {*names, "who"}),
                  unit=("who",), max_rows_per_unit=1)  # fmt: skip
    plan = Plan(
        Source(table, columns),
        (),
        Contribution(rows=1),
        tuple(
            Moments(condition=Call("not", (Call("is_null", (ColumnRef(name),)),))) for name in names
        ),
    )
    with DuckDBEngine({"t": source}, Schema({"t": table})) as engine:
        found = [int(m[0, 0]) for m in engine.run(engine.compile(plan)).open_for_release().measured]
        statement = engine.compile(plan).explain()
        engine.prepare()
        again = [int(m[0, 0]) for m in engine.run(engine.compile(plan)).open_for_release().measured]
        assert again == found
    return [*found, statement]


ALL = ["note", "ms", "us", "s", "ns", "day"]


def test_damaged_values_in_memory_are_null():
    assert known(damaged_table(), ALL)[:-1] == [2, 1, 1, 1, 3, 1]


@pytest.mark.parametrize("names", [["note"], ["ms"], ["us"], ["day"], ["note", "ms", "us", "day"]])
def test_damaged_values_in_parquet_are_null(tmp_path, names):
    """DuckDB refuses such a file as a whole: one person's bytes would stop everybody."""
    path = tmp_path / "t.parquet"
    pq.write_table(damaged_table().drop_columns(["s"]), path)
    if names[0] in ("note", "ms"):
        with pytest.raises(duckdb.Error):
            duckdb.connect().sql(f"SELECT {names[0]} FROM '{path}'").fetchall()
    expected = {"note": 2, "ms": 1, "us": 1, "day": 1}
    *counts, statement = known(path, names)
    assert counts == [expected[name] for name in names]
    pq.write_table(damaged_table().slice(0, 1), path)
    assert known(path, names)[-1] == statement  # the statement does not tell


def test_a_csv_is_read_line_by_line(tmp_path):
    """Lines that are no rows of the table are left out, each because of itself alone."""
    lines = [
        b"who,note",
        b"1,plain",
        b'2,"with, comma and ""quotes"""',
        b'3,"over\ntwo lines"',
        b"4,\xff\xfe",
        b"5,one,too many",
        b"6",
        b"seven,not a number",
        b"8," + b"x" * 3_000_000,
        b"9,",
        b"",
        b"10,last",
    ]
    path = tmp_path / "t.csv"
    table = Table("t", (Column("who", Kind.INTEGER), Column("note", Kind.TEXT)),
                  unit=("who",), max_rows_per_unit=1)  # fmt: skip
    plan = Plan(
        Source(table, (("note", "note"),)),
        (),
        Contribution(rows=1),
        (Moments(), DistinctValues(ColumnRef("note"))),
    )
    counts = []
    for kept in (lines, [line for line in lines if line[:1] not in b"4568s"]):
        path.write_bytes(b"\n".join(kept) + b"\n")
        with DuckDBEngine({"t": path}, Schema({"t": table})) as engine:
            counts.append(
                [int(m[0, 0]) for m in engine.run(engine.compile(plan)).open_for_release().measured]
            )
    assert counts == [[5, 4], [5, 4]]


def test_a_csv_is_not_sniffed(tmp_path):
    """One odd row must not change how the others are read."""
    numbers = "who,x\n" + "".join(f"{i},00{i}\n" for i in range(1, 50))
    table = Table("t", (Column("who", Kind.INTEGER), Column("x", Kind.TEXT)),
                  unit=("who",), max_rows_per_unit=1)  # fmt: skip
    plan = Plan(
        Source(table, (("x", "x"),)),
        (),
        Contribution(rows=1),
        (Moments(condition=Call("equal", (ColumnRef("x"), Literal("007")))),),
    )
    for text in (numbers, numbers + "50,text\n"):
        (tmp_path / "t.csv").write_text(text)
        with DuckDBEngine({"t": tmp_path / "t.csv"}, Schema({"t": table})) as engine:
            assert engine.run(engine.compile(plan)).open_for_release().measured[0][0, 0] == 1


def test_mixed_pandas_columns_are_read_value_by_value():
    frame = FRAME.assign(note=[i if i % 2 else f"n{i}" for i in range(len(FRAME))])
    text = FRAME.assign(note=[str(i) if i % 2 else f"n{i}" for i in range(len(FRAME))])
    assert cases.answer({"visits": frame}, *MEASURED) == cases.answer({"visits": text}, *MEASURED)


def test_a_table_in_memory_cannot_change_afterwards(expected):
    frame = FRAME.copy()
    with DuckDBEngine({"visits": frame}, cases.schema()) as engine:
        frame.loc[:, "cost"] = 0.0
        frame.loc[:, "note"] = "changed"
        found = cases.integers(
            engine.run(engine.compile(cases.plan(engine, *MEASURED))).open_for_release()
        )
    assert found == expected


# --- versions ------------------------------------------------------------------------------


def test_versions_notice_a_change(tmp_path):
    path = tmp_path / "v.parquet"
    FRAME.to_parquet(path)
    source = open_source("visits", path)
    assert isinstance(source, Parquet)
    version, content = source.version, source.content_hash()
    assert source.version == version
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert source.version != version
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert source.version == version  # nothing to be seen from outside
    assert source.content_hash() != content


def test_versions_of_tables_in_memory():
    one, other = (open_source("visits", FRAME) for _ in range(2))
    assert isinstance(one, InMemory)
    assert one.version == one.version != other.version
    assert one.content_hash() == other.content_hash()
    assert open_source("visits", FRAME.iloc[1:]).content_hash() != one.content_hash()


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "v.csv"
    FRAME.to_csv(path, index=False)
    assert isinstance(open_source("visits", path), Csv)
    with DuckDBEngine({"visits": path}, cases.schema()) as engine:
        plan = cases.plan(engine, *MEASURED)
        engine.run(engine.compile(plan))
        before = engine.data_version()
        FRAME.iloc[:20].to_csv(path, index=False)
        found = cases.integers(engine.run(engine.compile(plan)).open_for_release())
        assert engine.data_version() != before
        assert engine.content_hash("visits") == open_source("visits", path).content_hash()
    assert found == cases.answer({"visits": FRAME.iloc[:20]}, *MEASURED)
