"""Conditions that nobody can meet: refused free, and nothing that somebody may meet."""

from __future__ import annotations

import pytest

from discreet.errors import QuestionRefusal
from discreet.question.schema import Schema
from discreet.question.sql import parse

SCHEMA = Schema.from_text("""
[tables.stays]
unit = "patient"
max_rows_per_unit = 2
columns.patient = "integer"
columns.ward = { type = "text", values = ["north", "south"] }
columns.days = { type = "integer", bounds = [0, 60] }
columns.cost = { type = "decimal", bounds = [0, 900] }
columns.day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
columns.name = "text"
columns.size = "decimal"
columns.paid = { type = "boolean", nullable = false }
""")


@pytest.mark.parametrize(
    "condition",
    [
        "ward = 'north' AND ward = 'south'",
        "ward IN ('north', 'south') AND ward NOT IN ('south') AND ward <> 'north'",
        "ward LIKE 'x%'",
        "days > 5 AND cost > 3 AND days < 3",
        "days > 60",
        "cost > 7 AND cost < 7",
        "7 < cost AND cost <= 7",
        "cost > 900",
        "cost < -1",
        "day >= '2025-01-01'",
        "day < DATE '2024-03-01' AND day > DATE '2024-06-01'",
        "name = 'a' AND name = 'b'",
        "name IN ('a', 'b') AND name = 'c'",
        "name = 'a' AND name IS NULL",
        "size > 3 AND size < 2",
        "size IS NULL AND size < 2",
        "paid AND NOT paid",
        "paid IS NULL",
    ],
)
def test_what_nobody_can_meet_is_refused(condition: str) -> None:
    for text in (
        f"SELECT COUNT(*) AS n FROM stays WHERE {condition}",
        f"SELECT ward, COUNT(*) AS n FROM stays WHERE {condition} GROUP BY ward",
        f"SELECT COUNT(*) AS n FROM (SELECT * FROM stays) AS s WHERE {condition}",
    ):
        with pytest.raises(QuestionRefusal) as caught:
            parse(text, SCHEMA)
        assert (caught.value.code, "meets the condition" in caught.value.what) == ("Q36", True)


@pytest.mark.parametrize(
    "condition",
    [
        "ward = 'north' OR ward = 'south'",
        "ward IS NULL AND days = 3",
        "days >= 60",
        "days > 59",
        "cost >= 900 AND cost <= 900",
        "cost > 6.9 AND cost < 7",
        "day >= '2024-12-31'",
        "name = 'a' AND name <> 'b'",
        "name IN ('a', 'b') AND name IN ('b', 'c')",
        "name IS NULL",
        "size > 3 AND size < 4",
        "size > 900",
        "paid OR NOT paid",
        "1 = 0",
        "days > cost AND cost > days",  # of two columns nothing is decided
    ],
)
def test_what_somebody_may_meet_is_asked(condition: str) -> None:
    parse(f"SELECT COUNT(*) AS n FROM stays WHERE {condition}", SCHEMA)


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("ward = 'north' AND ward = 'south'", "ward = 'north' OR ward = 'south'"),
        ("days > 5 AND paid AND days < 3", "paid AND (days > 5 OR days < 3)"),
        ("cost BETWEEN 80 AND 50", "cost BETWEEN 50 AND 80"),
    ],
)
def test_the_fix_is_the_question_that_was_meant(condition: str, meant: str) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse(f"SELECT COUNT(*) AS n FROM stays WHERE {condition}", SCHEMA)
    assert caught.value.rewriting == f"SELECT COUNT(*) AS n FROM stays WHERE {meant}"


def test_the_fix_says_what_is_declared() -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse("SELECT COUNT(*) FROM stays WHERE day > '2026-01-01'", SCHEMA)
    assert caught.value.fix == "'day' lies between 2024-01-01 and 2024-12-31."
