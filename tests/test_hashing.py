"""The hash that chooses rows: the same integers as in Python, no value preferred, no new data."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import engine_cases as cases
import psycopg
import pytest
import reference_hash
from scipy.stats import binom, chi2

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.engine.duckdb.engine import CHOICE, DuckDBEngine
from discreet.engine.duckdb.hashing import Hashed, hash_columns, multiplier
from discreet.ledger import Ledger, Receipt, Request, Stored
from discreet.question.blocks import Area
from discreet.question.domain import Kind
from discreet.question.functions.nodes import ENGINE, TYPES

ALPHA = 1e-9
"""The chance that a fair choice fails one test."""

VALUES: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False, None],
    Kind.INTEGER: [0, 1, -1, 2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 7, None],
    Kind.DECIMAL: [
        0.0, 0.5, -0.5, 1e-300, 5e-324, -1e300, 1e300, 2.0**-41, 3 * 2.0**-41, 123.456, 2.0**60,
        float("inf"), float("-inf"), float("nan"), None,
    ],
    Kind.TEXT: ["", "a", "é", "日本", "it's", "\x00zero", "x" * 5000, None],
    Kind.DATE: [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31), None],
    Kind.TIMESTAMP: [
        datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999), None,
    ],
}  # fmt: skip


def in_duckdb(kinds: list[Kind], rows: list[list[Any]], owners: int = 0) -> list[int]:
    connection = duckdb.connect()
    names = [f"c{i}" for i in range(len(kinds))]
    columns = ", ".join(f"{n} {TYPES[k]}" for n, k in zip(names, kinds, strict=True))
    connection.execute(f"CREATE TABLE t (place INT, {columns})")
    marks = ", ".join("?" * (len(kinds) + 1))
    connection.executemany(
        f"INSERT INTO t VALUES ({marks})", [[i, *row] for i, row in enumerate(rows)]
    )
    columns = zip(names, kinds, strict=True)
    said = [Hashed(name, kind, owner=i < owners) for i, (name, kind) in enumerate(columns)]
    hashed = hash_columns(said).sql(ENGINE)
    found = connection.execute(f"SELECT {hashed} FROM t ORDER BY place").fetchall()
    return [value for (value,) in found]


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_hashes_as_in_python(kind):
    rows = [[value] for value in VALUES[kind]]
    wanted = [reference_hash.hash_row(row) for row in rows]
    assert in_duckdb([kind], rows) == wanted
    assert all(0 <= found < reference_hash.P for found in wanted)


def test_rows_of_every_kind_hash_as_in_python():
    dice = random.Random(3)
    kinds = [*Kind, *Kind]
    rows = [[dice.choice(VALUES[kind]) for kind in kinds] for _ in range(200)]
    for owners in (0, 1, 2, 6):
        wanted = [reference_hash.hash_row(row, owners) for row in rows]
        assert in_duckdb(kinds, rows, owners) == wanted
        assert len(set(wanted)) > 195


def test_the_hash_stays_what_it_is():
    """Kept rows, and so answers, depend on these numbers: another hash is another generation."""
    row = [-5, "Ålesund", date(2024, 2, 29), True, 17.25, datetime(2001, 9, 9, 1, 46, 40), None]
    kinds = ["integer", "text", "date", "boolean", "decimal", "timestamp", "text"]
    assert reference_hash.hash_row(row, 1) == STAYS
    assert in_duckdb([Kind(kind) for kind in kinds], [row], 1) == [STAYS]
    assert CHOICE == "product of reciprocals"


STAYS = 926263126


def in_postgres_words(hashed: str, kinds: list[Kind]) -> str:
    """The same hash in PostgreSQL's SQL: other names of the same operations."""
    hashed = hashed.replace(" // ", " / ").replace(" AS DOUBLE)", " AS DOUBLE PRECISION)")
    for place, kind in enumerate(kinds):
        column = f'"c{place}"'
        pairs = "||".join(f"SUBSTR(MD5({column}), {at}, 2)" for at in (31, 29, 27, 25))
        written, words = {
            Kind.BOOLEAN: (f"CAST({column} AS BIGINT)", f"CAST(CAST({column} AS INT) AS BIGINT)"),
            Kind.TIMESTAMP: (
                f"EPOCH_US({column})",
                f"CAST(EXTRACT(EPOCH FROM {column}) * 1000000 AS BIGINT)",
            ),
            Kind.TEXT: (
                f"CAST(MD5_NUMBER_LOWER({column}) >> 33 AS BIGINT)",
                f"(CAST(CAST('x' || {pairs} AS BIT(32)) AS BIGINT) >> 1)",
            ),
        }.get(kind, (column, column))
        assert written in hashed
        hashed = hashed.replace(written, words)
    return hashed


def test_postgres_computes_the_same_integers(postgres):
    """Whole numbers and MD5: what one engine keeps, another would keep."""
    dice = random.Random(5)
    kinds = [*Kind]
    values = {kind: [v for v in VALUES[kind] if v != "\x00zero"] for kind in kinds}
    rows = [[dice.choice(values[kind]) for kind in kinds] for _ in range(150)]
    types = {**TYPES, Kind.DECIMAL: "DOUBLE PRECISION"}
    said = [Hashed(f"c{i}", kind, owner=i == 1) for i, kind in enumerate(kinds)]
    hashed = in_postgres_words(hash_columns(said).sql(ENGINE), kinds)
    columns = ", ".join(f"c{i} {types[kind]}" for i, kind in enumerate(kinds))
    with psycopg.connect(postgres.conninfo) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE t (place INT, {columns})")
        marks = ", ".join(["%s"] * (len(kinds) + 1))
        cursor.executemany(
            f"INSERT INTO t VALUES ({marks})", [(i, *row) for i, row in enumerate(rows)]
        )
        found = cursor.execute(f"SELECT {hashed} FROM t ORDER BY place").fetchall()
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (place INT, {columns})")
    marks = ", ".join("?" * (len(kinds) + 1))
    connection.executemany(
        f"INSERT INTO t VALUES ({marks})", [[i, *row] for i, row in enumerate(rows)]
    )
    own = hash_columns(said).sql(ENGINE)
    assert found == connection.execute(f"SELECT {own} FROM t ORDER BY place").fetchall()


def test_codes_are_places_and_wide_numbers_are_numbers():
    connection = duckdb.connect()
    connection.execute("CREATE TYPE k AS ENUM ('low', 'mid', 'high')")
    coded = hash_columns([Hashed("c", Kind.TEXT, coded=True)]).sql(ENGINE)
    for text in ("low", "mid", "high", None):
        (found,) = connection.execute(f"SELECT {coded} FROM (SELECT ?::k AS c)", [text]).fetchone()
        place = reference_hash.number(text, ("low", "mid", "high"))
        assert found == reference_hash.hash_numbers([place])
    wide = hash_columns([Hashed("c", Kind.INTEGER)]).sql(ENGINE)
    for number in (2**100, -(2**100)):
        given = f"CAST('{number}' AS HUGEINT)"
        (found,) = connection.execute(f"SELECT {wide} FROM (SELECT {given} AS c)").fetchone()
        assert found == reference_hash.hash_numbers([number])


def test_multipliers_differ_and_leave_room():
    found = [multiplier(place) for place in range(2000)]
    assert len(set(found)) == 2000
    assert all(0 < factor < 2**28 for factor in found)
    assert (reference_hash.P - 1 + 3_000_000_019) * max(found) * 4 < 2**63


# --- no value is preferred for everybody ------------------------------------------------------


N = 12_000


def first_of_each(values: list[Any], kind: Kind, unit: Kind = Kind.INTEGER) -> Counter[Any]:
    """Of N units that all have the same rows, how often each value is first."""
    connection = duckdb.connect()
    own = {Kind.INTEGER: "u", Kind.TEXT: "'person ' || u"}[unit]
    connection.execute(f"CREATE TABLE v (x {TYPES[kind]})")
    connection.executemany("INSERT INTO v VALUES (?)", [[value] for value in values])
    hashed = hash_columns([Hashed("unit", unit, owner=True), Hashed("x", kind)]).sql(ENGINE)
    found = connection.execute(
        f"SELECT x, COUNT(*) FROM (SELECT unit, x FROM (SELECT {own} AS unit FROM range({N}) r(u))"
        f", v QUALIFY ROW_NUMBER() OVER (PARTITION BY unit ORDER BY {hashed}, x) = 1) GROUP BY x"
    ).fetchall()
    return Counter(dict(found))


def fair(found: Counter[Any], values: list[Any]) -> bool:
    wanted = N / len(values)
    distance = sum((found[value] - wanted) ** 2 / wanted for value in values)
    return distance <= chi2.isf(ALPHA, len(values) - 1)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1], Kind.INTEGER),
        ([-1, 1], Kind.INTEGER),
        (list(range(5)), Kind.INTEGER),
        ([10**12 * i for i in range(4)], Kind.INTEGER),
        ([True, False], Kind.BOOLEAN),
        ([0.0, 1e-9, 2e-9], Kind.DECIMAL),
        ([0.1, 0.2, 0.3, 0.7], Kind.DECIMAL),
        ([1e12, 2e12, 3e12 + 1], Kind.DECIMAL),
        ([date(2024, 1, d) for d in range(1, 8)], Kind.DATE),
        ([datetime(2024, 1, 1, h) for h in range(4)], Kind.TIMESTAMP),
        (["note 1", "note 2", "note 3"], Kind.TEXT),
    ],
)
def test_no_value_is_preferred_for_everybody(values, kind):
    for unit in (Kind.INTEGER, Kind.TEXT):
        assert fair(first_of_each(values, kind, unit), values), unit


def test_the_test_sees_a_value_that_is_preferred():
    favoured = Counter({0: round(0.56 * N), 1: round(0.44 * N)})
    assert not fair(favoured, [0, 1])
    assert binom.sf(round(0.56 * N), N, 0.5) < ALPHA


# --- other rows are other data ----------------------------------------------------------------


def test_versions_say_which_hash_chose(tmp_path):
    path = tmp_path / "visits.parquet"
    cases.frame().to_parquet(path)
    with DuckDBEngine({"visits": path}, cases.schema()) as engine:
        former = engine.former_version()
        assert former is not None
        assert engine.data_version() != former
        path.unlink()
        assert (engine.former_version(), engine.data_version()) == (None, "unreadable")


@pytest.fixture
def account(tmp_path):
    schema = cases.schema()
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        account = ledger.account("clinic", schema=schema, budget=Budget(epsilon=9))
        account.add_analyst("ann")
        yield account


def request(account, key: str = "k", **fields: Any) -> Request:
    said = {"analyst": "ann", "question": "q", "spend": {}, "data_version": "old"}
    said |= {"loss": Loss.pure(Fraction(1, 3)), "area": Area.everything(account.space), **fields}
    return Request(key=key, **said)


def test_what_was_answered_about_the_former_rows_is_free(account):
    paid = account.charge(request(account))
    account.publish(paid, b"answer")
    again = request(account, data_version="new", formerly="old")
    assert account.preview(again) == "stored"
    assert account.charge(again) == Stored(paid.id, b"answer")
    assert account.preview(request(account, data_version="new")) == "admitted"
    assert account.preview(request(account, data_version="new", formerly="older")) == "admitted"


def test_an_open_charge_is_finished_on_the_rows_of_now(account):
    paid = account.charge(request(account))
    again = account.charge(request(account, data_version="new", formerly="old"))
    assert isinstance(again, Receipt)
    assert (again.id, again.resumed, again.data_version) == (paid.id, True, "new")


def test_an_open_refinement_of_former_rows_is_not_finished(account):
    """Its noise is shared with an answer about other rows: together they would tell more."""
    first = account.charge(request(account))
    account.publish(first, b"answer", "rows that nobody can change")
    refined = {"parent": first.id, "basis": "rows that nobody can change"}
    loss = Loss(Fraction(1, 3), Fraction(2, 9), Fraction(0))
    open_still = account.charge(request(account, key="finer", loss=loss, **refined))
    assert open_still.parent == first.id
    again = request(account, key="finer", data_version="new", formerly="old")
    assert account.preview(again) == "admitted"
    assert account.charge(again).id != open_still.id
