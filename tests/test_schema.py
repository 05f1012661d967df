"""Declarations: what is accepted, what is refused and on which line, what is read through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
import reference
from poison import COLUMNS, RAW
from sqlglot import exp

from discreet.errors import SchemaRefusal
from discreet.question.domain import Kind
from discreet.question.functions import read_column
from discreet.question.schema import ROW, Column, Neighbours, Schema, SchemaFile, Table

CLINIC = """\
# everything here is public
[budget]
epsilon = 3
delta = 1e-9

[tables.visits]
source = "visits.parquet"
unit = "patient_id"
max_rows_per_unit = 20
max_groups_per_unit = 5
blocks = ["region"]

[tables.visits.columns]
patient_id = { type = "integer" }
region     = { type = "text", values = ["north", "south"] }
city       = { type = "text", values_from = "cities.name" }
age        = { type = "integer", bounds = [0, 120], nullable = false }
cost       = { type = "decimal", bounds = [0, 5000], grid = 0.25 }
day        = { type = "date", bounds = [2024-01-01, 2026-12-31] }
seen       = { type = "timestamp", bounds = [2024-01-01, 2026-12-31 23:59:59] }
urgent     = "boolean"

[tables.cities]
source = "cities.csv"
public = true
"""


def test_how_many_rows_joins_may_make_of_one_unit() -> None:
    schema = SchemaFile.parse(CLINIC).schema
    assert schema.most_joined_rows == 1000
    visits = replace(schema.tables["visits"], max_rows_per_unit=70_000)
    assert replace(schema, tables={**schema.tables, "visits": visits}).most_joined_rows == 70_000
    declared = Schema.from_text(f"max_joined_rows_per_unit = 30\n{CLINIC}")
    assert declared.most_joined_rows == 30
    kept = declared.resolve(
        columns=lambda _: (Column("name", Kind.TEXT),), values=lambda *_: ("here",)
    )
    assert kept.most_joined_rows == 30
    assert Schema({}).most_joined_rows == 1000


def test_the_file_of_the_manual() -> None:
    found = SchemaFile.parse(CLINIC)
    visits, cities = found.schema.tables["visits"], found.schema.tables["cities"]
    assert found.schema.neighbours is Neighbours.ADD_REMOVE
    assert found.budget == {"epsilon": 3, "delta": Decimal("1e-9")}
    assert (visits.unit, visits.max_rows_per_unit, visits.blocks) == (
        ("patient_id",),
        20,
        ("region",),
    )
    assert cities.public
    assert visits.source == "visits.parquet"
    assert visits.columns == (
        Column("patient_id", Kind.INTEGER),
        Column("region", Kind.TEXT, values=("north", "south")),
        Column("city", Kind.TEXT, values_from=("cities", "name")),
        Column("age", Kind.INTEGER, 0, 120, nullable=False),
        Column("cost", Kind.DECIMAL, Fraction(0), Fraction(5000), grid=Fraction(1, 4)),
        Column("day", Kind.DATE, date(2024, 1, 1), date(2026, 12, 31)),
        Column("seen", Kind.TIMESTAMP, datetime(2024, 1, 1), datetime(2026, 12, 31, 23, 59, 59)),
        Column("urgent", Kind.BOOLEAN),
    )


def test_a_file_a_text_and_a_dict_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "clinic.toml"
    file.write_text(CLINIC)
    schema = Schema.from_toml(file)
    assert schema == Schema.from_text(CLINIC)
    tables = {
        "visits": {
            "unit": ["patient_id", "day"],
            "columns": {"patient_id": "integer", "day": {"type": "date"}},
        }
    }
    declared = Schema.from_dict({"tables": tables, "neighbours": "change-one"})
    assert declared.tables["visits"].unit == ("patient_id", "day")
    assert declared.neighbours is Neighbours.CHANGE_ONE


# Each case: what is replaced in the file above, by what, the code and the line that must be named.
REFUSED = [
    ("[budget]", "[budget", "S1", 2),
    ('unit = "patient_id"', 'unit = "patient_id', "S1", 8),
    ('unit = "patient_id"', 'unti = "patient_id"', "S2", 8),
    ('unit = "patient_id"', "", "S5", 6),
    ('unit = "patient_id"', "public = 1", "S5", 8),
    ('unit = "patient_id"', 'unit = "row"', "S7", 9),
    ('unit = "patient_id"', 'unit = "patient"', "S6", 8),
    ('unit = "patient_id"', "unit = 7", "S2", 8),
    ('unit = "patient_id"', "unit = []", "S5", 8),
    ('unit = "patient_id"', 'unit = ["day", "day"]', "S5", 8),
    ('unit = "patient_id"', 'unit = "cost"', "S5", 8),
    ("max_rows_per_unit = 20", "max_rows_per_unit = 0", "S7", 9),
    ("max_rows_per_unit = 20", "max_rows_per_unit = 2.5", "S7", 9),
    ("max_groups_per_unit = 5", "max_groups_per_unit = true", "S7", 10),
    ('blocks = ["region"]', 'blocks = ["regoin"]', "S6", 11),
    ('blocks = ["region"]', 'unique = ["region"]', "S5", 11),
    ('source = "visits.parquet"', "source = 5", "S2", 7),
    ('{ type = "integer" }', '{ type = "int" }', "S2", 14),
    ('{ type = "integer" }', "{ bounds = [0, 9] }", "S2", 14),
    ('["north", "south"]', '["north", "north"]', "S4", 15),
    ('["north", "south"]', "[]", "S4", 15),
    ('["north", "south"]', '"north"', "S4", 15),
    ('["north", "south"]', '["north", 3]', "S4", 15),
    ('"cities.name"', '"cities"', "S6", 16),
    ('"cities.name"', '"towns.name"', "S6", 16),
    ('"cities.name"', '"visits.region"', "S6", 16),
    ("bounds = [0, 120]", "bound = [0, 120]", "S2", 17),
    ("bounds = [0, 120]", "bounds = [120, 0]", "S3", 17),
    ("bounds = [0, 120]", "bounds = [0, 0]", "S3", 17),
    ("bounds = [0, 120]", "bounds = [0]", "S3", 17),
    ("bounds = [0, 120]", "bounds = [0, 12.5]", "S3", 17),
    ("bounds = [0, 120]", "bounds = [0, 99999999999999999999]", "S3", 17),
    ("bounds = [0, 120]", "bounds = [0, 120], values = [1]", "S4", 17),
    ("nullable = false", 'nullable = "no"', "S2", 17),
    ("grid = 0.25", "grid = 0.3", "S3", 18),
    ("bounds = [0, 5000]", "bounds = [0, inf]", "S3", 18),
    ("bounds = [0, 5000]", "bounds = [0, 1e400]", "S3", 18),
    ("[2024-01-01, 2026-12-31] }\nseen", '[2024-01-01, "soon"] }\nseen', "S3", 19),
    ("2026-12-31 23:59:59]", "2026-12-31T23:59:59Z]", "S3", 20),
    ('urgent     = "boolean"', 'urgent = { type = "boolean", bounds = [0, 1] }', "S3", 21),
    ('urgent     = "boolean"', 'Age = "integer"', "S2", 13),
    ("public = true", 'public = true\nunit = "name"', "S5", 25),
    ("public = true", "public = true\nmax_rows_per_unit = 3", "S5", 26),
    ("[tables.cities]", "[table.cities]", "S2", 23),
    ("# everything here is public", "max_joined_rows_per_unit = 0", "S7", 1),
    ("# everything here is public", "max_joined_rows_per_unit = 2.5", "S7", 1),
    ("# everything here is public", "max_joined_rows = 5", "S2", 1),
]


@pytest.mark.parametrize(("old", "new", "code", "line"), REFUSED)
def test_a_refusal_names_the_line(old: str, new: str, code: str, line: int) -> None:
    assert CLINIC.count(old) == 1
    with pytest.raises(SchemaRefusal) as caught:
        SchemaFile.parse(CLINIC.replace(old, new), name="clinic.toml")
    assert caught.value.code == code
    assert caught.value.what.startswith(f"clinic.toml, line {line}"), caught.value.what
    assert caught.value.why
    assert caught.value.fix


def test_lines_are_found_in_long_sections() -> None:
    text = CLINIC + '\n[tables.cities.columns.name]\ntype = "text"\nvalues = ["a",\n "b", "a"]\n'
    with pytest.raises(SchemaRefusal, match=r"line 27: .*'name' lists a value more than once"):
        Schema.from_text(text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaRefusal) as caught:
        Schema.from_toml(tmp_path / "none.toml")
    assert caught.value.code == "S1"


def test_people_are_identified_alike_everywhere() -> None:
    text = (
        '[tables.a]\nunit = "id"\n[tables.a.columns]\nid = "integer"\n'
        '[tables.b]\nunit = "id"\n[tables.b.columns]\nid = "text"\n'
    )
    with pytest.raises(SchemaRefusal) as caught:
        Schema.from_text(text)
    assert caught.value.code == "S5"
    other = text.replace('[tables.b]\nunit = "id"', '[tables.b]\nunit = "id"\nentity = "doctor"')
    assert Schema.from_text(other).tables["b"].entity == "doctor"


def test_declarations_in_python_are_checked_too() -> None:
    with pytest.raises(SchemaRefusal):
        Column("age", Kind.INTEGER, 120, 0)
    with pytest.raises(SchemaRefusal):
        Column("name", Kind.TEXT, values=("\ud800",))
    with pytest.raises(SchemaRefusal):
        Table("t", (Column("x", Kind.DECIMAL),), unit=("x",))
    with pytest.raises(SchemaRefusal):
        Schema({"u": Table("t", (), unit=None)})
    assert Table("t", (Column("x", Kind.DECIMAL),), unit=ROW).by_row


# --- resolving -----------------------------------------------------------------------------


def test_public_tables_fill_in_what_was_left_open() -> None:
    asked: list[str] = []

    def columns(table: Table) -> tuple[Column, ...]:
        asked.append(table.name)
        return (Column("name", Kind.TEXT), Column("people", Kind.INTEGER))

    def values(table: Table, column: Column) -> tuple[Any, ...]:
        asked.append(f"{table.name}.{column.name}")
        return ("Faro", "Cork", "Faro")

    schema = Schema.from_text(CLINIC).resolve(columns=columns, values=values)
    assert asked == ["cities", "cities.name"]  # never a private table
    city = schema.tables["visits"].column("city")
    assert city is not None
    assert city.values == ("Cork", "Faro")
    assert city.domain.values == ("Cork", "Faro")
    again = schema.resolve(columns=columns, values=values)
    assert (again, asked) == (schema, ["cities", "cities.name"])


def test_values_of_a_column_that_is_not_there_are_refused() -> None:
    schema = Schema.from_text(CLINIC)
    with pytest.raises(SchemaRefusal) as caught:
        schema.resolve(columns=lambda _: (Column("town", Kind.TEXT),), values=lambda *_: ("a",))
    assert caught.value.code == "S6"


# --- reading through a declaration ---------------------------------------------------------


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.parametrize("name", [n for n in COLUMNS if n.startswith("a_")])
def test_what_is_read_is_in_the_domain(name: str, database: duckdb.DuckDBPyConnection) -> None:
    """Whatever the table holds: the theorem every bound rests on."""
    column = replace(COLUMNS[name], name="x")
    cells = ", ".join(f"({raw})" for raw in RAW[column.kind])
    database.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {cells}) t(x)")
    statement = f"SELECT x, {read_column(column, exp.column('x')).sql('duckdb')} FROM t"
    for raw, value in database.execute(statement).fetchall():
        assert column.domain.contains(value), (column, value)
        in_python = not isinstance(raw, str) or column.kind is Kind.TEXT
        special = column.kind.is_time and raw in (
            date.min,
            date.max,
            datetime.min,
            datetime.max,
        )
        if in_python and not special:  # DuckDB hands over infinity as the last date
            assert reference.read(column, raw) == value, (column, raw, value)


TYPES = {
    "BLOB": "'\\xFF\\x00'::BLOB",
    "UUID": "UUID '44450702-4175-4017-a9e2-2589264dd9fc'",
    "TIME": "TIME '23:00:00'",
    "INTERVAL": "INTERVAL 1 MONTH",
    "HUGEINT": "170141183460469231731687303715884105727",
    "UBIGINT": "18446744073709551615",
    "DECIMAL(38,10)": "9999999999999999999999999999.5",
    "INTEGER[]": "[1, 2]",
    "STRUCT(a INT)": "{'a': 1}",
    "TIMESTAMPTZ": "TIMESTAMPTZ '290000-01-01 00:00:00+00'",
    "TIMESTAMP_NS": "TIMESTAMP_NS '2262-01-01'",
    "TIMESTAMP_S": "TIMESTAMP_S '290000-01-01'",
    "FLOAT": "'nan'::FLOAT",
    "BIT": "'101'::BIT",
    "VARCHAR": "'infinity'",
}


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("engine_type", list(TYPES))
def test_any_stored_type_can_be_read_as_any_kind(
    kind: Kind, engine_type: str, database: duckdb.DuckDBPyConnection
) -> None:
    """A column of an unforeseen type is NULL or a value of its kind, never an error."""
    column = Column("x", kind)
    database.execute(f"CREATE OR REPLACE TABLE t (x {engine_type})")
    database.execute(f"INSERT INTO t VALUES ({TYPES[engine_type]}), (NULL)")
    found = database.execute(f"SELECT {read_column(column, exp.column('x')).sql('duckdb')} FROM t")
    assert all(column.domain.contains(value) for (value,) in found.fetchall())
