"""`discreet schema suggest` drafts from names and types, and shows nothing of the rows."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from discreet.cli import app as whole
from discreet.cli.schema import app
from discreet.curate.suggest import FILL_IN, suggest
from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import SchemaRefusal
from discreet.question.schema import SchemaFile

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


def test_a_time_zone_of_the_type_is_drafted_and_an_offset_is_not(tmp_path: Path) -> None:
    at = [datetime(2025, 7, 1, 7, 30, tzinfo=UTC)]
    file = tmp_path / "rides.parquet"
    zones = {"a": "Europe/Paris", "b": "+02:00", "c": None}
    pq.write_table(
        pa.table({n: pa.array(at, pa.timestamp("ns", z)) for n, z in zones.items()}), file
    )
    columns = tomllib.loads(suggest(file))["tables"]["rides"]["columns"]
    assert columns["a"] == {"type": "timestamp", "time_zone": "Europe/Paris"}
    assert columns["b"] == columns["c"] == {"type": "timestamp"}
    assert "day after the last" in suggest(file)  # midnight of the last day would cut it off


def test_what_nobody_is_in_may_be_public_and_a_table_of_people_may_not(tmp_path: Path) -> None:
    files = {
        "rides": "ride_id,rider,station\n7,3,x\n",
        "stations": "station,zone\nx,in\n",
        "branches": "branch,town\nb,York\n",
        "clients": "client_id,branch\n3,b\n",
        "marks": "pupil,subject,mark\np,math,2\n",
        "pupils": "pupil,class\np,7a\n",
        "subjects": "subject,hours\nmath,5\n",
        "weather": "day,rain\n2025-01-02,3.5\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    draft = suggest(*(tmp_path / f"{name}.csv" for name in files))
    tables = tomllib.loads(draft)["tables"]
    assert "rider" in tables["rides"]["unit"]
    said = {part.split("]", 1)[0]: part for part in draft.split("[tables.") if "unit = " in part}
    public = {name for name, part in said.items() if "public = true" in part}
    assert public == {"stations", "branches", "subjects", "weather"}


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
    assert columns.pop("seen") == {"type": "timestamp", "time_zone": "UTC"}  # its type says so
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
    kinds = {"patient_id": "integer", "age": "integer", "home town": "text"}
    assert columns == {key: {"type": kind} for key, kind in kinds.items()}
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
    for answer in ("3", '"patient_id"', "20"):
        with pytest.raises(SchemaRefusal, match=r"line \d+: .*FILL IN"):
            SchemaFile.parse(draft)
        draft = re.sub(
            rf'(epsilon|unit|max_rows_per_unit) = "{FILL_IN}[^"]*"',
            rf"\1 = {answer}",
            draft,
            count=1,
        )
    assert SchemaFile.parse(draft).schema.tables["visits"].unit == ("patient_id",)


# --- CSV -------------------------------------------------------------------------------------

TYPED = {
    "whole": (["-3", "0", "", "NA", "918273645"], "integer"),
    "amount": (["4.5", "3", "1e3", "n/a", ""], "decimal"),
    "phone": (["0471", "031", "0", "7", "12"], "text"),
    "day": (["2024-02-29", "", "1931-07-19", "2020-01-01", "?"], "date"),
    "no_day": (["2024-02-30", "2024-01-01", "", "", ""], "text"),
    "moment": (["2024-02-29 09:30:00", "2024-02-29", "", "", ""], "timestamp"),
    "flag": (["true", "False", "", "NULL", "TRUE"], "boolean"),
    "mixed": (["1", "2", "3", "4", "x"], "text"),  # one value in the last line decides
    "nothing": (["", "", "-", "NA", ""], FILL_IN),
}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_types_of_a_csv_are_those_that_all_its_values_have(tmp_path: Path, separator: str):
    path = tmp_path / "things.csv"
    rows = zip(*(values for values, _ in TYPED.values()), strict=True)
    path.write_text(
        "\n".join(separator.join(row) for row in [TYPED, *rows]) + "\n", encoding="utf-8-sig"
    )
    columns = tomllib.loads(suggest(path))["tables"]["things"]["columns"]
    assert columns == {name: {"type": kind} for name, (_, kind) in TYPED.items()}


def test_what_is_drafted_is_read_with_the_same_separator(tmp_path: Path):
    """A European CSV, with the index that a data frame wrote along."""
    path = tmp_path / "v.csv"
    path.write_text(";who;cost\n0;1;2.5\n1;2;3.5\n")
    draft = suggest(path)
    assert '# "column 1": without a name in the header' in draft
    for what, answer in (("epsilon", "3"), ("unit", '"who"'), ("max_rows_per_unit", "1")):
        draft = re.sub(rf'^{what} = "{FILL_IN}[^"]*"', f"{what} = {answer}", draft, flags=re.M)
    with DuckDBEngine({}, SchemaFile.parse(draft).schema) as engine:
        fit = engine.examine("v")
    assert (fit.rows, fit.units, fit.left_out) == (2, 2, 0)
    assert not any(column.changed for column in fit.columns.values())


# --- several files ---------------------------------------------------------------------------


def test_units_and_keys_are_proposed_with_reasons(tmp_path: Path):
    (tmp_path / "patients.csv").write_text("id,age\n1,30\n")
    (tmp_path / "visits.csv").write_text("patient_id,cityCode,cost\n1,7,2.5\n")
    (tmp_path / "cities.csv").write_text("city_code,name\n7,x\n")
    home = tmp_path / "session"
    run = CliRunner()
    sources = [f"--from={tmp_path / name}.csv" for name in ("patients", "visits", "cities")]
    drafted = run.invoke(whole, ["init", str(home), *sources])
    assert drafted.exit_code == 0, drafted.output
    text = (home / "discreet.toml").read_text()
    tables = tomllib.loads(text)["tables"]
    assert {name: table["unit"] for name, table in tables.items()} == {
        "patients": f"{FILL_IN}: id?",
        "visits": f"{FILL_IN}: patient_id?",
        "cities": f"{FILL_IN}: city_code?",
    }
    assert tables["patients"]["entity"] == tables["visits"]["entity"] == "patient"
    assert "person's identifier, and 2 of these files have it" in text
    assert 'unique = ["city_code"]' in text


def test_two_files_of_one_name_are_refused(tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "v.csv").write_text("who\n1\n")
    with pytest.raises(SchemaRefusal, match="both be table 'v'"):
        suggest(tmp_path / "a" / "v.csv", tmp_path / "b" / "v.csv")


# --- schema check ----------------------------------------------------------------------------

DECLARED = """
[budget]
epsilon = 3
[tables.v]
source = "v.csv"
unit = "who"
max_rows_per_unit = 2
columns.who = "integer"
columns.age = {{ type = "integer", bounds = [0, 120] }}
columns.sex = {{ type = "text", values = ["f", "m"] }}
{more}
"""


def checked(home: Path, text: str, *options: str) -> tuple[int, str]:
    (home / "discreet.toml").write_text(text)
    found = CliRunner().invoke(app, ["check", str(home), *options])
    return found.exit_code, found.output


def test_check_tells_what_is_unreadable_clipped_and_cut(tmp_path: Path):
    lines = ["who,age,sex", "1,30,f", "1,130,m", "1,-2,x", "1,old,f", ",50,f", "2,60,m,9", "2,,"]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    code, _ = checked(tmp_path, DECLARED.format(more=""))
    assert code == 0
    shown = json.loads(checked(tmp_path, DECLARED.format(more=""), "--json")[1])["sources"]["v"]
    assert shown["rows"] == 6
    assert shown["left_out"] == 1
    assert shown["ownerless"] == 1
    assert shown["units"] == 2
    assert shown["cut"] == 2
    assert shown["columns"]["age"] == {
        "missing": 1, "unreadable": 1, "below": 1, "above": 1, "unlisted": 0, "read_as": None,
    }  # fmt: skip
    assert shown["columns"]["sex"]["unlisted"] == 1
    assert "sources" not in json.loads(
        checked(tmp_path, DECLARED.format(more=""), "--json", "--declared")[1]
    )


NEVER_NULL = DECLARED.format(
    more="""
columns.ward = { type = "text", values = ["children", "eyes"], nullable = false }
columns.stay = { type = "integer", bounds = [2, 30], nullable = false }
columns.paid = { type = "boolean", nullable = false }
columns.born = { type = "date", bounds = [1900-01-01, 2020-12-31], nullable = false }
columns.city = { type = "text", values_from = "cities.city", nullable = false }
[tables.cities]
public = true
source = "cities.csv"
columns.city = "text"
"""
)


def read_lines(output: str) -> dict[str, str]:
    """What the figures of table ``v`` say, by column, unfolded."""
    told = re.sub(r"\s*\n(?! )", " ", output.partition("\nv: ")[2])
    return dict(re.findall(r"^  (\w+): (.*?) *$", told, re.MULTILINE))


def test_check_tells_what_is_read_where_a_column_is_never_null(tmp_path: Path):
    lines = [
        "who,age,sex,ward,stay,paid,born,city",
        "1,30,f,eyes,3,true,1980-01-01,Cork",
        "2,30,x,canary,long,,,nowhere",
        "3,30,f,,31,maybe,then,",
        "4,30,,,,true,,Bergen",
    ]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "cities.csv").write_text("city\nBergen\nCork\n")
    code, output = checked(tmp_path, NEVER_NULL)
    assert code == 0
    told = read_lines(output)
    assert told["sex"] == "1 (33.3 %) none of its values, read as NULL"
    assert told["ward"] == (
        "2 (50 %) missing, read as 'children'; 1 (50 %) none of its values, read as 'children'"
    )
    assert told["stay"] == (
        "1 (25 %) missing, read as 2; 1 (33.3 %) unreadable, read as 2; "
        "1 (33.3 %) above its bounds, clipped"
    )
    assert told["paid"].endswith("1 (33.3 %) unreadable, read as false")
    assert told["born"].startswith("2 (50 %) missing, read as 1900-01-01; ")
    assert "1 (33.3 %) none of its values, read as 'Bergen'" in told["city"]
    assert "canary" not in output


def test_check_tells_that_a_column_of_nothing_is_read_as_a_value(tmp_path: Path):
    (tmp_path / "v.csv").write_text("who,age,sex\n1,,f\n2,,m\n")
    text = DECLARED.format(more="").replace("120] }", "120], nullable = false }")
    assert read_lines(checked(tmp_path, text)[1])["age"] == "nothing in it, read as 0"


def test_check_tells_that_rows_of_no_block_are_left_out(tmp_path: Path):
    (tmp_path / "v.csv").write_text("who,age,sex\n1,3,f\n2,4,x\n3,5,\n4,6,m\n")
    text = DECLARED.format(more="").replace("max_rows", 'blocks = ["sex"]\nmax_rows')
    assert read_lines(checked(tmp_path, text)[1])["sex"] == (
        "1 (33.3 %) none of its values, left out"
    )


@pytest.mark.parametrize(("rows", "warned"), [(4, False), (5, True)])
def test_check_warns_where_much_is_cut(tmp_path: Path, rows: int, warned: bool):
    """Of 10 rows, two that are cut are a fifth, and three are more."""
    lines = ["who,age,sex", *["1,30,f"] * rows, *(f"{who},40,m" for who in range(2, 12 - rows))]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    _, output = checked(tmp_path, DECLARED.format(more=""))
    assert f"cut: {rows - 2} (" in output
    assert ("more than a fifth of the rows is never counted" in output) is warned


@pytest.mark.parametrize(
    ("text", "rows", "quoted"),
    [('1,30,"f', 1, 3), ('1,30,"f\nm"', 4, 1), ("1,30,f", 4, 0), ('1,30,"f"\n\n', 4, 0)],
)
def test_check_tells_of_a_quotation_mark_that_is_never_closed(tmp_path: Path, text, rows, quoted):
    lines = ["who,age,sex", "1,20,f", text, "2,30,m", "3,40,f"]
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    shown = json.loads(checked(tmp_path, DECLARED.format(more=""), "--json")[1])["sources"]["v"]
    assert (shown["rows"] + shown["left_out"], shown["quoted"]) == (rows, quoted)
    _, output = checked(tmp_path, DECLARED.format(more=""))
    assert ("never closed" in output) == bool(quoted)


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        (None, "", "is not there"),
        ("", "", "is empty"),
        ("who,age,sex\n", "", "holds no row"),
        ("who,age,sex\n1,2,f\n", 'columns.gone = "text"', "has no column 'gone'"),
    ],
)
def test_check_says_what_is_wrong_with_a_source(tmp_path: Path, content, more: str, said: str):
    if content is not None:
        (tmp_path / "v.csv").write_text(content)
    code, output = checked(tmp_path, DECLARED.format(more=more))
    assert code == 2
    assert said in output


def test_check_finds_a_source_at_home(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for folder in ("me", "session"):
        (tmp_path / folder).mkdir()
    (tmp_path / "me" / "v.csv").write_text("who,age,sex\n1,2,f\n")
    text = DECLARED.format(more="").replace('"v.csv"', '"~/v.csv"')
    code, output = checked(tmp_path / "session", text)
    assert code == 0, output


def test_check_names_a_type_that_cannot_be(tmp_path: Path):
    pq.write_table(pa.table({"who": [1], "age": [True], "sex": ["f"]}), tmp_path / "v.parquet")
    text = (
        DECLARED.format(more="")
        .replace("v.csv", "v.parquet")
        .replace('columns.age = { type = "integer", bounds = [0, 120] }', 'columns.age = "date"')
    )
    code, output = checked(tmp_path, text)
    assert code == 2
    assert "declared date but its source holds BOOLEAN" in " ".join(output.split())


# --- the command line ----------------------------------------------------------------------


def test_the_commands(parquet: Path, tmp_path: Path) -> None:
    run = CliRunner()
    drafted = run.invoke(app, ["suggest", str(parquet)])
    assert drafted.exit_code == 0
    assert drafted.stdout == suggest(parquet)
    file = tmp_path / "discreet.toml"
    file.write_text(
        drafted.stdout.replace(f'unit = "{FILL_IN}: patient_id?"', 'unit = "patient_id"', 1)
        .replace(f'max_rows_per_unit = "{FILL_IN}"', "max_rows_per_unit = 20")
        .replace(f'epsilon = "{FILL_IN}"', "epsilon = 3")
        .replace(f'delta = "{FILL_IN}"', "delta = 1e-9")
    )
    checked = run.invoke(app, ["check", str(file)])
    assert checked.exit_code == 0
    assert "visits: protects each patient_id; at most 20 rows each" in checked.stdout
    assert "  age: integer" in checked.stdout
    assert f"visits: {ROWS:,} rows of 1 unit\n" in checked.stdout
    assert f"rows beyond max_rows_per_unit, cut: {ROWS - 20:,}" in checked.stdout
    file.write_text(drafted.stdout)
    refused = run.invoke(app, ["check", str(file)])
    assert isinstance(refused.exception, SchemaRefusal)  # printed by the command line's main


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("src", "dst", "since"), ("src", "dst")),
        (("amount", "payer_id", "payee_id"), ("payer_id", "payee_id")),
        (("from_account", "to_account"), ("from_account", "to_account")),
        (("user1", "user2"), ("user1", "user2")),
        (("patient_id", "ward"), None),
        (("cost_a", "weight_b"), None),
    ],
)
def test_two_columns_that_look_alike_are_proposed_as_owners(names, found, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: pa.array([1], pa.int64()) for name in names}), path)
    draft = suggest(path)
    if found is None:
        assert "pair" not in draft
        return
    listed = ", ".join(f'"{name}"' for name in found)
    assert f"# unit = {{ pair = [{listed}] }}" in draft
    assert f"# unit = {{ any = [{listed}] }}" in draft


def test_an_empty_file_is_called_empty(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("")
    with pytest.raises(SchemaRefusal) as caught:
        suggest(path)
    assert "visits.csv is empty" in str(caught.value)
