"""Which rows of a unit with too many are kept: in steps that sort less, the very same ones."""

from __future__ import annotations

import random

import duckdb
import pytest

from discreet.engine.duckdb.declared import add_steps, bound_rows, source_name
from discreet.engine.duckdb.hashing import hash_columns
from discreet.engine.duckdb.render import lay_out
from discreet.question.functions.nodes import ENGINE, add_definitions
from discreet.question.schema import Schema, Table

Row = tuple[int, int, int]
MANY = 300_000
"""Rows among which some pairs have the same hash of 31 bits: about 21 of them."""


def declare(most: int, *, rank: str = "y") -> Table:
    text = f"""
[tables.t]
unit = "unit"
max_rows_per_unit = {most}
[tables.t.columns]
unit = "integer"
x = {{ type = "integer", bounds = [0, 1000000] }}
{rank} = {{ type = "integer", bounds = [0, 1000000] }}
"""
    return Schema.from_text(text).tables["t"]


def connect(rows: list[Row], *, rank: str = "y") -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f'CREATE TABLE "{source_name("t")}" (unit BIGINT, x BIGINT, {rank} BIGINT)')
    connection.executemany(f'INSERT INTO "{source_name("t")}" VALUES (?, ?, ?)', rows)
    return connection


def keep(
    connection: duckdb.DuckDBPyConnection, table: Table, *, ranked: bool, rank: str = "y"
) -> list[Row]:
    definitions = bound_rows(lay_out(table), source_name("t"), "bounded", ranked=ranked)
    query = add_definitions(add_steps(table, definitions[-1][0]), definitions)
    kept = f"SELECT unit, x, {rank} FROM ({query.sql(ENGINE)}) ORDER BY ALL"
    return connection.execute(kept).fetchall()


@pytest.fixture(scope="module")
def tie() -> tuple[Row, Row]:
    """Two rows of one person that differ, and have the same hash."""
    shape = lay_out(declare(1))
    hashed = hash_columns(shape.list_hashed(without=("unit",))).sql(ENGINE)
    found = duckdb.sql(
        f"""SELECT MIN(x), MAX(x) FROM (
            SELECT 7::BIGINT AS unit, 7::BIGINT AS _unit0, i AS x, 5::BIGINT AS y
            FROM range({MANY}) t(i))
        GROUP BY {hashed} HAVING COUNT(*) > 1 ORDER BY ALL"""
    ).fetchall()
    assert found
    return (7, found[0][0], 5), (7, found[0][1], 5)


def test_rows_that_tie_at_the_bound_are_chosen_by_their_content(tie: tuple[Row, Row]) -> None:
    for rows in (list(tie), list(reversed(tie)), [*tie, *tie], [*tie, (8, 3, 4)]):
        with connect(rows) as connection:
            for most in (1, 2, 3):
                new, old = (keep(connection, declare(most), ranked=r) for r in (True, False))
                assert new == old
                own = sum(unit == 7 for unit, _, _ in rows)
                assert sum(unit == 7 for unit, _, _ in new) == min(most, own)
        with connect(rows) as connection:
            assert min(tie) in keep(connection, declare(1), ranked=True)


def test_the_same_rows_are_kept_whatever_way_they_are_ranked() -> None:
    dice = random.Random(20240229)
    rows = [(dice.randrange(60), dice.randrange(6), dice.randrange(3)) for _ in range(700)]
    with connect(rows) as connection:
        for most in (1, 2, 5, 11):
            table = declare(most)
            assert keep(connection, table, ranked=True) == keep(connection, table, ranked=False)


def test_a_column_called_like_the_rank_is_not_taken_for_it() -> None:
    rows = [(unit, x, 0) for unit in range(3) for x in range(9)]
    table = declare(4, rank="_rank")
    held = lay_out(table).fields["_rank"].identifier
    assert not held.startswith(("_rank", "_number"))
    with connect(rows, rank="_rank") as connection:
        assert len(keep(connection, table, ranked=True, rank=f'"{held}"')) == 12
