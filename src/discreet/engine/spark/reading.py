"""Files as Spark reads them: the declared columns, each in its kind's own type, as elsewhere.

Spark reads Parquet by itself, and DuckDB does; both must see the same values.  So only types of
which both have one reading are read here: what the files say of their columns decides, and never
a value.  Files that one of the two would read otherwise, or fail on for one person's row, are
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from discreet.engine.duckdb.postgres import PostgresTable
from discreet.engine.duckdb.render import list_codes
from discreet.engine.duckdb.sources import MARK, DataSource, Parquet
from discreet.engine.spark.printer import quote_name, quote_text
from discreet.errors import DataRefusal
from discreet.question.domain import Kind
from discreet.question.schema import Column, Table

_TWO_63 = "9223372036854775808D"
_MOMENTS = {Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP_NTZ"}
_EXACT_DIGITS = 15  # of a decimal that every engine makes the same double of
_MODERN = 4  # the version of Spark that knows what is valid UTF-8

CATALOGUED = "catalog://"
"""Begins the address of a table that Spark's catalogue knows: ``catalog://clinic.visits``."""
_PROVIDERS = ("parquet", "delta")


def locate_table(session: Any, table: str, address: str) -> str:
    """The folder of a table of the session's catalogue, whose files are then read as any."""
    named = ".".join(map(quote_name, address.removeprefix(CATALOGUED).split(".")))
    said: dict[str, str] = {}
    with suppress(Exception):  # whose text names what else there is
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {named}").collect()
        said = {str(row[0]): str(row[1]) for row in rows}
    if not said:
        raise refuse_source(
            table,
            "Spark's catalogue has no such table",
            fix=f"write {CATALOGUED}database.table, of a table and not of a temporary view.",
        )
    place = urlsplit(said.get("Location", ""))
    if said.get("Provider", "").lower() not in _PROVIDERS or place.scheme != "file":
        raise refuse_source(
            table, "in Spark's catalogue it is not made of Parquet or Delta files in a folder here"
        )
    return unquote(place.path)


def list_files(table: Table, source: DataSource) -> tuple[str, ...]:
    """The files of a source that Spark can read too; of a table of PostgreSQL, its copy."""
    if not isinstance(source, Parquet | PostgresTable):
        raise refuse_source(table.name, "it is not made of Parquet files (or a Delta table)")
    return source.paths()


def describe_files(table: Table, files: Sequence[str]) -> pa.Schema:
    """What the files say of their columns, which must be the same of all of them."""
    import pyarrow.parquet as pq

    found: pa.Schema | None = None
    for path in files:
        said = pa.schema([(f.name, _plain_type(f.type)) for f in pq.read_schema(path)])
        if found is not None and not said.equals(found):
            raise refuse_source(table.name, "its files describe their columns differently")
        found = said
    if found is None:
        raise refuse_source(table.name, "there is no file")
    return found


def select_typed(table: Table, described: pa.Schema, view: str, *, version: str) -> str:
    """The statement that reads the declared columns of a view, each as its kind."""
    columns = {}
    for name in described.names:
        if name.casefold() in columns:
            raise refuse_source(table.name, f"two of its columns are named {name!r}")
        columns[name.casefold()] = name
    picked = []
    for column in table.columns:
        name = columns.get(column.name.casefold())
        if name is None:
            raise refuse_source(
                table.name,
                f"its files have no column {column.name!r} (names of folders are not read)",
            )
        held = described.field(name).type
        read = _read(table, column, quote_name(name), held, version)
        picked.append(f"{read} AS {quote_name(column.name)}")
    return f"SELECT {', '.join(picked)} FROM {quote_name(view)}"  # noqa: S608


def _plain_type(held: pa.DataType) -> pa.DataType:
    """What a file holds, however whoever wrote it had it in memory."""
    held = held.value_type if pa.types.is_dictionary(held) else held
    texts = pa.types.is_large_string(held) or pa.types.is_string_view(held)
    return pa.string() if texts else held


def _read(table: Table, column: Column, raw: str, held: pa.DataType, version: str) -> str:
    """A raw value as its kind; NULL where it is not one."""
    if column.time_zone is not None:
        raise _refuse_column(table, column, "a time zone")
    of = pa.types
    whole = of.is_integer(held) or (of.is_decimal(held) and held.scale == 0)
    real = of.is_float32(held) or of.is_float64(held)
    match column.kind:
        case Kind.BOOLEAN if of.is_boolean(held) or of.is_integer(held):
            return f"CAST({raw} AS BOOLEAN)"
        case Kind.INTEGER if of.is_boolean(held) or whole:
            return f"TRY_CAST({raw} AS BIGINT)"
        case Kind.INTEGER if real:
            double = f"CAST({raw} AS DOUBLE)"
            inside = f"{double} >= -{_TWO_63} AND {double} < {_TWO_63}"
            return f"CASE WHEN {inside} THEN CAST(RINT({double}) AS BIGINT) END"
        case Kind.DECIMAL if real or of.is_integer(held):
            return f"(CAST({raw} AS DOUBLE) + 0D)"  # -0.0 equals 0.0, and is made the same
        case Kind.DECIMAL if of.is_decimal(held) and held.precision <= _EXACT_DIGITS:
            return f"(CAST({raw} AS DOUBLE) + 0D)"
        case Kind.TEXT if of.is_boolean(held) or of.is_integer(held):
            return f"CAST({raw} AS STRING)"
        case Kind.TEXT if of.is_string(held):
            return _read_text(column, raw, version)
        case Kind.DATE | Kind.TIMESTAMP if of.is_date32(held):
            return f"CAST({raw} AS {_MOMENTS[column.kind]})"
        case Kind.DATE | Kind.TIMESTAMP if of.is_timestamp(held) and held.unit == "us":
            return f"CAST(CAST({raw} AS TIMESTAMP_NTZ) AS {_MOMENTS[column.kind]})"
        case _:
            raise _refuse_column(table, column, str(held))


def _read_text(column: Column, raw: str, version: str) -> str:
    """A text; bytes that are none, or that were none before they were written, are NULL."""
    if list_codes(column) is not None and not any(MARK in c for c in list_codes(column) or ()):
        return raw  # whatever is not listed is NULL anyway
    if int(version.partition(".")[0]) >= _MODERN:
        valid = f"IS_VALID_UTF8({raw})"
    else:
        valid = f"ENCODE(DECODE(CAST({raw} AS BINARY), 'UTF-8'), 'UTF-8') = CAST({raw} AS BINARY)"
    return f"CASE WHEN {valid} AND NOT CONTAINS({raw}, {quote_text(MARK)}) THEN {raw} END"


def _refuse_column(table: Table, column: Column, held: str) -> DataRefusal:
    return refuse_source(table.name, f"{column.name!r} is declared {column.kind} and holds {held}")


def refuse_source(name: str, what: str, fix: str | None = None) -> DataRefusal:
    """The refusal of what Spark would not read as DuckDB does."""
    return DataRefusal(
        "D2",
        f"Spark does not read the source of table '{name}': {what}.",
        why="read in two ways, the same table would have two answers, and a person's row that "
        "one of them fails on would be noticed.",
        fix=fix
        or "prepare it without Spark, or write it as Parquet with plain columns: whole "
        "numbers, doubles, texts, days, moments in microseconds.",
    )


def read_view(session: Any, files: Sequence[str], name: str) -> None:
    """Show the files to Spark under a name of this session's own."""
    rows = session.read.parquet(*(f"file://{path}" for path in files))
    rows.createOrReplaceTempView(quote_name(name))


__all__ = [
    "CATALOGUED", "describe_files", "list_files", "locate_table", "read_view", "refuse_source",
    "select_typed",
]  # fmt: skip
