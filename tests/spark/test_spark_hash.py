"""The hash that chooses rows, computed by Spark: the same integers, whatever the values are."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference_hash

from discreet.engine.duckdb.hashing import Hashed, hash_columns
from discreet.engine.spark.printer import SparkPrinter, find_place, quote_text
from discreet.engine.typed import OF_KIND, Type, Typed
from discreet.question.domain import Kind

ODD = [
    "", "a", "é", "e\u0301", "日本", "it's", "\x00zero", "x" * 5000, "\U0001f600", "\ufffe", "İ",
    "back\\slash", "new\nline", "${spark.app.name}", "`tick`", '"quoted"', "%_", "\u200b", "ß",
]  # fmt: skip
VALUES: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False, None],
    Kind.INTEGER: [0, 1, -1, 2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 7, None],
    Kind.DECIMAL: [
        0.0, -0.0, 0.5, -0.5, 1e-300, 5e-324, -1e300, 1e300, 2.0**-41, 3 * 2.0**-41, 123.456,
        2.0**60, 2.0**21, -(2.0**21) - 2.0**-31, 1.7976931348623157e308,
        float("inf"), float("-inf"), float("nan"), None,
    ],
    Kind.TEXT: [*ODD, None],
    Kind.DATE: [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1969, 12, 31),
                date(1970, 1, 1), date(9999, 12, 31), None],
    Kind.TIMESTAMP: [
        datetime(1, 1, 1), datetime(1582, 10, 10, 3), datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 2, 29, 1), datetime(2024, 3, 31, 1, 30),
        datetime(9999, 12, 31, 23, 59, 59, 999999), None,
    ],
}  # fmt: skip
ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


def in_spark(spark, folder, kinds, rows, owners=0, words=None) -> list[int]:
    """Rows written as Parquet, read and hashed by Spark; ``words`` edits its statement."""
    names = [f"c{i}" for i in range(len(kinds))]
    columns = {
        name: pa.array([row[i] for row in rows], ARROW[kind])
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    path = str(folder / f"{random.randrange(10**12)}.parquet")
    pq.write_table(pa.table({"place": pa.array(range(len(rows))), **columns}), path)
    spark.read.parquet(path).createOrReplaceTempView("given")
    said = [
        Hashed(name, kind, owner=i < owners)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    held = {n: Typed("", OF_KIND[kind]) for n, kind in zip(names, kinds, strict=True)}
    found = SparkPrinter({}).node(hash_columns(said), {None: held})
    hashed = found.text
    assert found.type is Type.WHOLE
    statement = f"SELECT {words(hashed) if words else hashed} AS h FROM given ORDER BY place"
    return [row.h for row in spark.sql(statement).collect()]


@pytest.mark.parametrize("how", ["spark", "compiling"])
def test_rows_of_every_kind_hash_as_in_python(request, tmp_path, how):
    """Values of every kind beside each other, in two sums."""
    spark = request.getfixturevalue(how)
    dice = random.Random(3)
    kinds = [*Kind, Kind.TEXT]
    longest = max(map(len, VALUES.values()))
    rows = [[VALUES[kind][i % len(VALUES[kind])] for kind in kinds] for i in range(longest)]
    rows += [[dice.choice(VALUES[kind]) for kind in kinds] for _ in range(150)]
    wanted = [reference_hash.hash_row(row, 2) for row in rows]
    assert in_spark(spark, tmp_path, kinds, rows, 2) == wanted


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Kind.DECIMAL, "RINT(", "("),  # a cast that cuts instead of rounding
        (Kind.TEXT, "(31, 29, 27, 25)", None),
        (Kind.TIMESTAMP, "UNIX_MICROS", "UNIX_MILLIS"),
    ],
)
def test_a_wrong_word_is_noticed(spark, tmp_path, kind, right, wrong):
    rows = [[value] for value in VALUES[kind]]

    def spoil(hashed: str) -> str:
        if wrong is None:  # the bytes of MD5 from the other end
            return hashed.replace(", 31, 2)", ", 25, 2)")
        assert right in hashed
        return hashed.replace(right, wrong)

    wanted = [reference_hash.hash_row(row) for row in rows]
    assert in_spark(spark, tmp_path, [kind], rows) == wanted
    assert in_spark(spark, tmp_path, [kind], rows, words=spoil) != wanted


def test_declared_texts_are_places_however_many_there_are(spark):
    for codes in (tuple(ODD[:9]), (*ODD, *(f"value {i}" for i in range(300)))):
        asked = [*codes, "none of them", "value 299 "]
        rows = ", ".join(f"({i}, {quote_text(v)})" for i, v in enumerate(asked))
        found = find_place("t.v", codes)
        statement = f"SELECT {found} AS c FROM VALUES {rows}, (9999, NULL) AS t(i, v) ORDER BY i"
        got = [row.c for row in spark.sql(statement).collect()]
        assert got == [*range(len(codes)), None, None, None]


def test_nothing_of_a_text_is_read_as_a_variable(spark):
    """Spark replaces ``${...}`` in statements unless told not to."""
    (row,) = spark.sql(f"SELECT {quote_text('${spark.app.name}')} AS v").collect()
    assert row.v == "${spark.app.name}"
    days = [date(1, 1, 1) + timedelta(days=400 * i) for i in range(9)]
    for day in days:  # nor is any day moved to another calendar
        (row,) = spark.sql(f"SELECT CAST('{day}' AS DATE) AS v").collect()
        assert row.v == day
