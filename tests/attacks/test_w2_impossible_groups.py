"""Groups that cannot be: two keys of one column, and what lies outside its declared bounds.

``(2022, NULL)`` and the January of a year that begins in March were listed, with noise for a
number, as if somebody could be in them.  They are left out of what is shown; what is measured, and
what it costs, is what it was, so that answers stored before are still found.
"""

from __future__ import annotations

from datetime import date, datetime

import pandas as pd
import pytest

from discreet.accounting.budget import Budget
from discreet.curate.curator import Curator
from discreet.question import possible
from discreet.question.schema import Schema
from discreet.question.sql import parse

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "pid"
max_rows_per_unit = 1
[tables.visits.columns]
pid = { type = "integer" }
city = { type = "text", values = ["york", "hull"] }
age = { type = "integer", bounds = [0, 25] }
day = { type = "date", bounds = ["2022-03-10", "2023-02-20"] }
at = { type = "timestamp", bounds = ["2022-11-30 12:00:00", "2023-01-02 06:00:00"] }
""")
ROWS = pd.DataFrame(
    {
        "pid": range(60),
        "city": ["york", "hull", None] * 20,
        "age": [i % 26 for i in range(60)],
        "day": [None if i % 7 == 0 else date(2022, 3 + i % 10, 15) for i in range(60)],
        "at": [datetime(2022, 12, 1 + i % 28, 5) for i in range(60)],
    }
)
MONTHS = {(2022, m) for m in range(3, 13)} | {(2023, 1), (2023, 2), (None, None)}
CASES = {
    "YEAR(day), MONTH(day)": MONTHS,
    "MONTH(day), YEAR(day)": {(m, y) for y, m in MONTHS},
    "MONTH(at)": {(11,), (12,), (1,), (None,)},
    "YEAR(at), MONTH(at), DAY(at)": {
        (2022, 11, 30), *((2022, 12, d) for d in range(1, 32)), (2023, 1, 1), (2023, 1, 2),
        (None, None, None),
    },
    "FLOOR(age / 10), age >= 18": {
        (0, False), (1, False), (1, True), (2, True), (None, None),
    },
    "age < 5, age > 20": {(True, False), (False, False), (False, True), (None, None)},
}  # fmt: skip


@pytest.fixture(scope="module")
def curator():
    with Curator({"visits": ROWS}, schema=SCHEMA, budget=Budget(epsilon=1000)) as found:
        yield found


@pytest.mark.parametrize("keys", CASES)
def test_only_groups_that_can_be_are_listed(curator, keys):
    count = len(keys.split(", "))
    named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys.split(", ")))
    places = ", ".join(str(i + 1) for i in range(count))
    answer = curator.ask(f"SELECT {named}, COUNT(*) AS n FROM visits GROUP BY {places}", epsilon=1)
    shown = [row.values[:-1] for row in answer.rows]
    assert set(shown) == CASES[keys]
    assert len(shown) == len(CASES[keys])
    assert len(answer.groups) >= len(shown)  # what is measured is what it was


def test_other_keys_combine_freely(curator):
    answer = curator.ask(
        "SELECT city, YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM visits"
        " WHERE day >= DATE '2022-12-05' GROUP BY 1, 2, 3",
        epsilon=1,
    )
    months = {(2022, 12), (2023, 1), (2023, 2)}
    shown = {row.values[:-1] for row in answer.rows}
    assert shown == {(city, *month) for city in ("york", "hull", None) for month in months}


def test_nobody_in_the_data_is_left_out(curator):
    """Every group that somebody is in is shown: at an enormous price, all rows are counted."""
    for keys in CASES:
        answer = curator.ask(
            f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY "
            + ", ".join(str(i + 1) for i in range(len(keys.split(", ")))),
            epsilon=40,
        )
        assert abs(sum(answer.column("n")) - len(ROWS)) <= 3


def test_a_key_that_is_listed_otherwise_is_left_alone(monkeypatch):
    """If a value computed here is not among those listed, nothing is left out."""
    question = parse(
        "SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) FROM visits GROUP BY 1, 2", SCHEMA
    )
    assert possible.find_possible(question) is not None
    possible._combinations.cache_clear()
    monkeypatch.setattr(possible, "evaluate", lambda *_: 1999)
    assert possible.find_possible(question) is None
    possible._combinations.cache_clear()
