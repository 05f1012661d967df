"""`discreet schema suggest` drafts from names and types, and shows nothing of the rows."""

from __future__ import annotations

import gzip
import re
import tomllib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli.schema import app
from discreet.errors import SchemaRefusal
from discreet.question.schema import SchemaFile
from discreet.question.suggest import FILL_IN, suggest

CANARY = "zxqcanary"
ROWS = 7_919  # a count that stands nowhere else


def table() -> pa.Table:
    """A table each of whose cells would be recognised."""
    columns = {
        "patient_id": pa.array([918_273_645] * ROWS, pa.int64()),
        "age": pa.array([73] * ROWS, pa.int8()),
        "cost": pa.array([4_242.4242] * ROWS, pa.float64()),
        "price": pa.array([Decimal("86753.09")] * ROWS, pa.decimal128(12, 2)),
        "city": pa.array([CANARY] * ROWS, pa.string()),
        "kind": pa.array([CANARY] * ROWS).dictionary_encode(),
        "born": pa.array([date(1931, 7, 19)] * ROWS, pa.date32()),
        "seen": pa.array(
            [datetime(1931, 7, 19, 4, 5, tzinfo=UTC)] * ROWS, pa.timestamp("ms", "UTC")
        ),
        "urgent": pa.array([True] * ROWS, pa.bool_()),
        "scan": pa.array([CANARY.encode()] * ROWS, pa.binary()),
        "tags": pa.array([[CANARY]] * ROWS, pa.list_(pa.string())),
        'odd "name"': pa.array([918_273_645] * ROWS, pa.int64()),
    }
    return pa.table(columns)


TELLTALES = (CANARY, "918273645", "73", "4242", "86753", "1931", str(ROWS), f"{ROWS:,}")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    pq.write_table(table(), path, row_group_size=1000)
    return path


def test_parquet_types_become_a_draft(parquet: Path) -> None:
    draft = suggest(parquet)
    found = tomllib.loads(draft)
    columns = found["tables"]["visits"]["columns"]
    assert {name: declared["type"] for name, declared in columns.items()} == {
        "patient_id": "integer",
        "age": "integer",
        "cost": "decimal",
        "price": "decimal",
        "city": "text",
        "kind": "text",
        "born": "date",
        "seen": "timestamp",
        "urgent": "boolean",
        'odd "name"': "integer",
    }
    assert all(set(declared) == {"type"} for declared in columns.values())
    assert "# scan: binary" in draft
    assert "# tags: list" in draft


def test_the_draft_shows_no_value_no_range_and_no_count(parquet: Path) -> None:
    text = suggest(parquet).replace(str(parquet), "")
    for telltale in TELLTALES:
        assert telltale not in text


@pytest.mark.parametrize("name", ["visits.csv", "visits.tsv", "visits.csv.gz"])
def test_csv_headers_become_a_draft(tmp_path: Path, name: str) -> None:
    separator = "\t" if "tsv" in name else ","
    lines = [separator.join(["patient_id", "age", "home town"])]
    lines += [separator.join(["918273645", "73", CANARY])] * ROWS
    path = tmp_path / name
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    draft = suggest(path)
    columns = tomllib.loads(draft)["tables"]["visits"]["columns"]
    assert columns == {key: {"type": FILL_IN} for key in ["patient_id", "age", "home town"]}
    assert not any(telltale in draft.replace(str(path), "") for telltale in TELLTALES)


@pytest.mark.parametrize(
    "first",
    [
        f"{CANARY},918273645,73",  # a file without a header: its first line is a person
        f"{CANARY},{CANARY}",
        f"name,{CANARY}@example.org",
        f'name,"{CANARY}, Jane"',
        "",
    ],
)
def test_a_file_without_a_header_is_refused_unseen(tmp_path: Path, first: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"{first}\n{CANARY},918273645,73\n")
    with pytest.raises(SchemaRefusal) as caught:
        suggest(path)
    assert caught.value.code == "S8"
    assert not any(telltale in str(caught.value) for telltale in TELLTALES)


@pytest.mark.parametrize("name", ["broken.parquet", "broken.csv", "missing.csv", "notes.txt"])
def test_an_unreadable_file_is_refused_without_its_content(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if "missing" not in name:
        path.write_bytes(f"\xff\xfe{CANARY},918273645".encode("latin-1"))
    with pytest.raises(SchemaRefusal) as caught:
        suggest(path)
    assert caught.value.code == "S8"
    assert caught.value.__cause__ is None
    assert CANARY not in str(caught.value)


def test_a_draft_is_refused_until_it_is_filled_in(parquet: Path) -> None:
    draft = suggest(parquet)
    for answer in ('"patient_id"', "20"):
        with pytest.raises(SchemaRefusal, match=r"line \d+: .*FILL IN"):
            SchemaFile.parse(draft)
        draft = re.sub(
            rf'(unit|max_rows_per_unit) = "{FILL_IN}"', rf"\1 = {answer}", draft, count=1
        )
    assert SchemaFile.parse(draft).schema.tables["visits"].unit == ("patient_id",)


# --- the command line ----------------------------------------------------------------------


def test_the_commands(parquet: Path, tmp_path: Path) -> None:
    run = CliRunner()
    drafted = run.invoke(app, ["suggest", str(parquet)])
    assert drafted.exit_code == 0
    assert drafted.stdout == suggest(parquet)
    file = tmp_path / "discreet.toml"
    file.write_text(
        drafted.stdout.replace(f'unit = "{FILL_IN}"', 'unit = "patient_id"', 1)
        .replace(f'max_rows_per_unit = "{FILL_IN}"', "max_rows_per_unit = 20")
        .replace(f'epsilon = "{FILL_IN}"', "epsilon = 3")
        .replace(f'delta = "{FILL_IN}"', "delta = 1e-9")
    )
    checked = run.invoke(app, ["check", str(file)])
    assert checked.exit_code == 0
    assert "visits: protects each patient_id; at most 20 rows each" in checked.stdout
    assert "  age: integer" in checked.stdout
    file.write_text(drafted.stdout)
    refused = run.invoke(app, ["check", str(file)])
    assert isinstance(refused.exception, SchemaRefusal)  # printed by the command line's main
