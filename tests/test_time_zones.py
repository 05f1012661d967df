"""Time zones: what is stored as a moment is read as the declared clocks show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit.rehearsal import Rehearsal
from discreet.errors import Refusal, SchemaRefusal
from discreet.question.domain import Domain, Kind, change_zone, number_of
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.functions import domain_of, nodes
from discreet.question.schema import Schema
from discreet.question.sql import parse, write_question_text

MOMENTS = [
    datetime(2024, 7, 1, 7, 30),  # 09:30 in Paris
    datetime(2024, 1, 1, 8, 30),  # 09:30 in Paris
    datetime(2024, 3, 31, 0, 59, 59),  # 01:59:59, before clocks leap to 03:00
    datetime(2024, 3, 31, 1, 0),  # 03:00
    datetime(2024, 10, 27, 0, 30),  # 02:30, in summer
    datetime(2024, 10, 27, 1, 30),  # 02:30 once more, in winter
    datetime(2024, 12, 31, 23, 30),  # next year
]
PARIS = [9, 9, 1, 3, 2, 2, 0]
PLAIN = [7, 8, 0, 1, 0, 1, 23]


def schema(zone: str | None = "Europe/Paris", *, of_table: bool = False) -> Schema:
    said = "" if zone is None else f'time_zone = "{zone}"'
    return Schema.from_text(f"""
[tables.visits]
unit = "pid"
max_rows_per_unit = 1
{said if of_table else ""}
[tables.visits.columns]
pid = {{ type = "integer" }}
at = {{ type = "timestamp"{"" if of_table or not said else ", " + said} }}
""")


def ask(source: Any, question: str, declared: Schema) -> Any:
    curator = Rehearsal({"visits": source}, schema=declared)
    return curator(question, epsilon=10**6, delta="1e-9")


def hours(source: Any, declared: Schema, hour: str = "HOUR(at)") -> list[int]:
    question = f"SELECT {hour} AS h, COUNT(*) AS n FROM visits GROUP BY h"
    answer = ask(source, question, declared)
    pairs = zip(answer.column("h"), answer.column("n"), strict=True)
    return sorted(h for h, n in pairs for _ in range(n) if h is not None)


def arrow(unit: str = "us", zone: str | None = "UTC") -> pa.Table:
    at = pa.array(MOMENTS, pa.timestamp(unit, zone))
    return pa.table({"pid": list(range(len(MOMENTS))), "at": at})


def aware() -> list[datetime]:
    return [m.replace(tzinfo=UTC) for m in MOMENTS]


def frame(at: Any) -> pd.DataFrame:
    return pd.DataFrame({"pid": range(len(MOMENTS)), "at": at})


SOURCES = {
    **{f"arrow {unit}": lambda unit=unit: arrow(unit) for unit in ("s", "ms", "us", "ns")},
    "arrow, another zone": lambda: arrow("ns", "Asia/Tokyo"),
    "pandas": lambda: frame(pd.to_datetime(aware(), utc=True)),
    "pandas, another zone": lambda: frame(pd.to_datetime(aware()).tz_convert("Asia/Tokyo")),
    "pandas objects": lambda: frame(pd.Series(aware(), dtype=object)),
    "polars": lambda: pl.DataFrame({"pid": range(len(MOMENTS)), "at": aware()}),
    "polars ns": lambda: pl.from_arrow(arrow("ns", "Europe/Paris")),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_moments_in_memory_are_read_as_clocks_show_them(source):
    assert hours(source(), schema()) == sorted(PARIS)
    assert hours(source(), schema(of_table=True)) == sorted(PARIS)
    assert hours(source(), schema(None)) == sorted(PLAIN)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_moments_in_parquet_are_read_as_clocks_show_them(unit, tmp_path: Path):
    path = tmp_path / "visits.parquet"
    pq.write_table(arrow(unit), path)
    assert hours(str(path), schema()) == sorted(PARIS)
    assert hours(str(path), schema(None)) == sorted(PLAIN)


def test_moments_in_a_duckdb_file(tmp_path: Path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("SET TimeZone = 'America/Lima'")
        connection.register("given", arrow())
        connection.execute("CREATE TABLE visits AS FROM given")
    assert hours(str(tmp_path / "clinic.duckdb"), schema()) == sorted(PARIS)


def test_what_has_no_zone_is_what_the_clocks_showed(tmp_path: Path):
    for source in (arrow(zone=None), frame(MOMENTS), frame(pd.Series(MOMENTS, dtype=object))):
        assert hours(source, schema()) == sorted(PLAIN)
    path = tmp_path / "visits.parquet"
    for unit in ("ms", "us", "ns"):
        pq.write_table(arrow(unit, None), path)
        assert hours(str(path), schema()) == sorted(PLAIN)


def test_a_text_that_says_its_offset_is_a_moment_and_no_row_decides_for_another(tmp_path: Path):
    path = tmp_path / "visits.csv"
    east = [m.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=5))) for m in MOMENTS]
    for form in (
        [m.isoformat() for m in aware()],
        [m.isoformat(sep=" ") for m in east],
        [f"{m.isoformat()}Z" for m in MOMENTS],
    ):
        rows = "".join(f"{i},{at}\n" for i, at in enumerate(form))
        path.write_text("pid,at\n" + rows)
        assert hours(str(path), schema()) == sorted(PARIS)
        path.write_text("pid,at\n" + rows + "90,2024-07-01 11:00:00\n91,nonsense\n")
        assert hours(str(path), schema()) == sorted([*PARIS, 11])


def test_nanoseconds_are_read_to_the_microsecond():
    at = pa.array([1_719_819_000_123_456_789], pa.timestamp("ns", "UTC"))
    table = pa.table({"pid": [1], "at": at})
    condition = "at = TIMESTAMP '2024-07-01 09:30:00.123457'"
    answer = ask(table, f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", schema())
    assert answer.value() == 1


def test_the_last_moments_of_the_calendar_are_nobodys_trouble():
    moments = [datetime.max, datetime.min, datetime(2024, 7, 1, 7, 30)]
    at = pa.array(moments, pa.timestamp("us", "UTC"))
    table = pa.table({"pid": [1, 2, 3], "at": at})
    assert 9 in hours(table, schema())


TOKYO = sorted((h + 9) % 24 for h in PLAIN)


def test_at_time_zone_shows_the_same_moment_elsewhere():
    """Of an hour that Paris shows twice the second is meant: one moment is an hour later."""
    later = sorted([*((h + 9) % 24 for h in [7, 8, 0, 1, 1, 1, 23])])
    tokyo = "EXTRACT(HOUR FROM at AT TIME ZONE 'Asia/Tokyo')"
    assert hours(arrow(), schema("UTC"), tokyo) == TOKYO
    assert hours(arrow(), schema(), tokyo) == later
    assert hours(arrow(), schema("UTC"), "HOUR(CONVERT_TIMEZONE('Asia/Tokyo', at))") == TOKYO
    plain = arrow(zone=None)
    for hour in (
        "HOUR(at AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo')",
        "HOUR(CONVERT_TIMEZONE('UTC', 'Asia/Tokyo', at))",
    ):
        assert hours(plain, schema(None), hour) == TOKYO


def test_nothing_is_guessed_about_whose_clocks_are_meant():
    for zone, hour, word in (
        (None, "HOUR(at AT TIME ZONE 'Asia/Tokyo')", "not declared"),
        ("UTC", "HOUR(at AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo')", "declared already"),
        ("UTC", "HOUR(at AT TIME ZONE 'Asia/Edo')", "no time zone"),
        ("UTC", "HOUR(at AT TIME ZONE pid)", "no time zone"),
    ):
        with pytest.raises(Refusal, match=word):
            hours(arrow(), schema(zone), hour)


NOW = datetime(2026, 11, 16, 23, 30)


def condition(question: str, declared: Schema) -> str:
    return write_question_text(parse(question, declared, now=NOW)).partition("WHERE ")[2]


def test_now_is_what_the_declared_clocks_show():
    question = "SELECT COUNT(*) AS n FROM visits WHERE at <= {}"
    for now, zone, found in (
        ("NOW()", None, "2026-11-16 23:30:00"),
        ("NOW()", "Europe/Paris", "2026-11-17 00:30:00"),
        ("CURRENT_DATE", "Europe/Paris", "2026-11-17"),
        ("CURRENT_TIMESTAMP AT TIME ZONE 'Asia/Tokyo'", "Europe/Paris", "2026-11-17 08:30:00"),
    ):
        assert found in condition(question.format(now), schema(zone))


def test_of_two_zones_neither_is_now():
    both = Schema.from_text(
        """
[tables.visits]
unit = "pid"
[tables.visits.columns]
pid = "integer"
at = { type = "timestamp", time_zone = "Europe/Paris" }
to = { type = "timestamp", time_zone = "Asia/Tokyo" }
"""
    )
    with pytest.raises(Refusal, match="AT TIME ZONE"):
        condition("SELECT COUNT(*) AS n FROM visits WHERE at <= NOW()", both)
    assert "23" not in condition(
        "SELECT COUNT(*) AS n FROM visits WHERE at <= NOW() AT TIME ZONE 'Europe/Paris'", both
    )


ZONES = ["UTC", "Europe/Paris", "Asia/Tokyo", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]


def test_the_engine_and_python_agree_around_every_leap():
    """Each quarter of an hour around changes of clocks, between every two zones."""
    leaps = [datetime(2024, 3, 10), datetime(2024, 3, 31), datetime(2024, 10, 27)]
    leaps += [datetime(2011, 12, 30), datetime(2024, 11, 3)]
    moments = [day + timedelta(minutes=15 * n) for day in leaps for n in range(-60, 200)]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", pa.table({"at": moments}))
        for old in ZONES:
            for new in ZONES:
                shown = nodes.change_zone(nodes.quote_column("at"), old, new).sql("duckdb")
                found = connection.execute(f"SELECT {shown} FROM given").fetchall()
                assert [row[0] for row in found] == [change_zone(m, old, new) for m in moments]


def test_what_is_shown_elsewhere_lies_in_its_domain():
    low, high = datetime(2024, 10, 27, 0, 45), datetime(2024, 10, 27, 4)
    point = Domain(Kind.TIMESTAMP, number_of(low), number_of(high), nullable=False)
    call = Call("convert_timezone", (Literal("UTC"), Literal("Europe/Paris"), ColumnRef("at")))
    found = domain_of(call, {"at": point})
    for minutes in range(0, 195, 5):
        shown = change_zone(low + timedelta(minutes=minutes), "UTC", "Europe/Paris")
        assert found.contains(shown)
    assert not found.nullable


@pytest.mark.parametrize(
    "column",
    [
        'at = { type = "timestamp", time_zone = "Europe/Lutetia" }',
        'at = { type = "timestamp", time_zone = 1 }',
        'at = { type = "integer", time_zone = "Europe/Paris" }',
        'at = "timestamp"\npid = { type = "timestamp", time_zone = "Europe/Paris" }',
    ],
)
def test_a_zone_that_means_nothing_is_refused(column):
    pid = "" if "pid" in column else 'pid = "integer"'
    with pytest.raises(SchemaRefusal):
        Schema.from_text(f'[tables.v]\nunit = "pid"\n[tables.v.columns]\n{pid}\n{column}')
