"""E10, every cell: physical type × declared kind × kind of source, with and without one person.

Each table has a column for every physical type and every kind it can be declared as.  One person
brings the poison of all of them, and the rows of the others must be read as they are without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.declared import _PHYSICAL
from discreet.engine.duckdb.sources import quote_name
from discreet.question.domain import Kind
from discreet.question.schema import Column, Schema, Table

PERSON = 99
OTHERS = 3
WIDE = [2**31 - 1, -(2**31)]
LONG = [2**63 - 1, -(2**63)]
TEXTS = ["", "n/a", "\ufffd", "\u0000", "1e999", "-0", "NaN", "2024-02-30", "9" * 400, "a" * 9000]
ODD = [math.nan, math.inf]
_E = 10**9

PHYSICAL: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "boolean": (pa.bool_(), [True, False, None], [None, True]),
    **{f"int{n}": (getattr(pa, f"int{n}")(), [1, 0, 7], [2 ** (n - 1) - 1, -(2 ** (n - 1))])
       for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), [1, 0, 7], [2**n - 1, 0]) for n in (8, 16, 32, 64)},
    "float32": (pa.float32(), [0.5, 2.5, -1.0], [*ODD, 3.4e38]),
    "float64": (pa.float64(), [0.1, 2.5, 1.0], [*ODD, 5e-324, -1.7e308]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.25"), Decimal(2), None], [Decimal("9999999.99")]),
    "wide decimal": (pa.decimal128(38, 4), [Decimal("2.5"), Decimal(1), Decimal(0)],
                     [Decimal(10**33), -Decimal(10**33)]),
    "text": (pa.string(), ["1", "2024-02-29", "true"], TEXTS),
    "large text": (pa.large_string(), ["2.5", "ä", ""], TEXTS),
    "codes": (pa.dictionary(pa.int8(), pa.string()), ["a", "1", "a"], TEXTS[:8]),
    "bytes": (pa.binary(), [b"1", b"ok", b""], [b"\xff", b"\x00", b"\xed\xa0\x80"]),
    "date32": (pa.date32(), [date(2024, 2, 29), date(1970, 1, 1), None], [2**31 - 1, -719_163]),
    "date64": (pa.date64(), [date(2024, 2, 29), date(1970, 1, 1), None], [86_400_000 * 10**6]),
    **{f"timestamp {unit}": (pa.timestamp(unit), [0, 10 ** power, None], [*LONG, 2**62])
       for unit, power in (("ms", 12), ("us", 15), ("ns", 18))},
    "moment": (pa.timestamp("us", "UTC"), [0, 10**15, None], [*LONG, 2**62]),
    "time": (pa.time64("us"), [0, 10**9, None], [86_399_999_999, 0]),
    "nothing": (pa.null(), [None, None, None], [None]),
}  # fmt: skip
"""Of each type, what three people have and what the poison is."""


Cells = list[tuple[str, Kind]]
"""Each a type and the kind that it is declared as: a column."""


def matrix(cells: Cells, *, poison: bool) -> pa.Table:
    """Three people, and perhaps one with a row for each poison."""
    count = len(TEXTS) if poison else 0
    table = {"who": pa.array([*range(1, OTHERS + 1), *[PERSON] * count], pa.int64())}
    for name, kind in cells:
        held, calm, odd = PHYSICAL[name]
        values = [*calm, *(odd[n % len(odd)] for n in range(count))]
        table[f"{name} as {kind}"] = _array(values, held)
    return pa.table(table)


def _array(values: list[Any], held: pa.DataType) -> pa.Array:
    if pa.types.is_date(held):  # days beyond those that Python knows, as numbers
        per_day = 86_400_000 if held == pa.date64() else 1
        days = [
            None
            if v is None
            else v
            if isinstance(v, int)
            else (v - date(1970, 1, 1)).days * per_day
            for v in values
        ]
        return pa.array(days, pa.int64() if held == pa.date64() else pa.int32()).view(held)
    return pa.array(values, held)


def declared(cells: Cells) -> Table:
    columns = (Column(f"{name} as {kind}", kind) for name, kind in cells)
    who = Column("who", Kind.INTEGER)
    return Table("t", (who, *columns), unit=("who",), max_rows_per_unit=20)


def rows_of_others(source: Any, table: Table) -> list[str]:
    with DuckDBEngine({"t": source}, Schema({"t": table}), threads=1) as engine:
        found = engine._current().connection.execute(f"FROM {quote_name('rows of t')}").fetchall()
    assert any(PERSON in row[:2] for row in found) or len(found) == OTHERS
    return sorted(repr(row[1:]) for row in found if PERSON not in row[:2])


# --- kinds of source -----------------------------------------------------------------------

WHOLE = list(PHYSICAL)
POLARS = [name for name in WHOLE if name != "wide decimal"]


def to_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"), store_schema=False)
    return path.with_suffix(".parquet")


def to_folder(table: pa.Table, path: Path) -> Path:
    """A file for the others, one for the person."""
    path.mkdir()
    mine = np.asarray(table["who"]) == PERSON
    for name, part in (("a", table.filter(pa.array(~mine))), ("b", table.filter(pa.array(mine)))):
        if part.num_rows:
            pq.write_table(part, path / f"{name}.parquet")
    return path


def to_csv(table: pa.Table, path: Path) -> Path:
    """As a proper writer writes: every text in quotation marks."""
    texts = {name: _written(table[name]) for name in table.column_names}
    pa_csv.write_csv(pa.table(texts), path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _written(column: pa.ChunkedArray) -> pa.Array:
    values = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    if pa.types.is_date(column.type):
        values = column.cast(pa.int32() if column.type == pa.date32() else pa.int64())
    plain = values.to_pylist()
    return pa.array([None if v is None else v if isinstance(v, str) else str(v) for v in plain])


def to_duckdb(table: pa.Table, path: Path) -> Path:
    file = path.with_suffix(".duckdb")
    with duckdb.connect(str(file)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS FROM given")
    return file


def to_pandas(table: pa.Table, _path: Path) -> Any:
    """As pandas holds what Arrow holds, and nothing converted."""
    return pd.DataFrame(
        {name: pd.Series(table[name], dtype=pd.ArrowDtype(table[name].type))
         for name in table.column_names}
    )  # fmt: skip


def to_objects(table: pa.Table, _path: Path) -> Any:
    """Every column as Python's own objects."""
    return pd.DataFrame(
        {
            name: pd.Series(_objects(table[name]), dtype="int64" if name == "who" else object)
            for name in table.column_names
        }
    )


def _objects(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        held = pa.int32() if column.type == pa.date32() else pa.int64()
        return column.cast(held).to_pylist()
    return column.to_pylist()


SOURCES: dict[str, tuple[list[str], Callable[[pa.Table, Path], Any]]] = {
    "Arrow": (WHOLE, lambda table, _path: table),
    "Polars": (POLARS, lambda table, _path: pl.from_arrow(table)),
    "pandas": (WHOLE, to_pandas),
    "pandas, objects": (WHOLE, to_objects),
    "Parquet": (WHOLE, to_parquet),
    "folder": (WHOLE, to_folder),
    "CSV": (WHOLE, to_csv),
    "DuckDB": (WHOLE, to_duckdb),
}


UNTYPED = ("CSV", "pandas, objects")
"""Where a column has no type of its own, every kind can be declared."""


@cache
def readings() -> dict[str, set[Kind]]:
    """As which kinds each type can be declared; others are refused by its description alone."""
    table = matrix([(name, Kind.TEXT) for name in WHOLE], poison=False)
    with duckdb.connect() as connection:
        connection.register("given", table)
        types = dict(row[:2] for row in connection.execute("DESCRIBE given").fetchall())
    return {
        name: {
            kind
            for kind, known in _PHYSICAL.items()
            if name == "nothing" or types[f"{name} as text"].partition("(")[0] in known
        }
        for name in WHOLE
    }


def test_every_type_has_a_reading() -> None:
    assert {name for name, kinds in readings().items() if not kinds} == {"time"}
    assert all(any(kind in kinds for kinds in readings().values()) for kind in Kind)


@pytest.mark.parametrize("source", SOURCES)
def test_e10_every_cell(tmp_path: Path, source: str) -> None:
    held, make = SOURCES[source]
    cells = [
        (name, kind)
        for name in held
        for kind in Kind
        if source in UNTYPED or kind in readings()[name]
    ]
    table = declared(cells)
    without = rows_of_others(make(matrix(cells, poison=False), tmp_path / "without"), table)
    assert len(without) == OTHERS
    assert rows_of_others(make(matrix(cells, poison=True), tmp_path / "with"), table) == without
