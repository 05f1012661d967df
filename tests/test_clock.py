"""Texts that mean something else at another moment: each is known by its words, and read anew."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from golden_cases import NOW, SCHEMA, all_cases

import discreet
from discreet.errors import Refusal
from discreet.question.sql import parse_statement
from discreet.question.sql.dialect import NOW as NAMES
from discreet.question.sql.dialect import NOW_WITHOUT_BRACKETS, may_read_clock

LATER = NOW + timedelta(days=800, hours=5, minutes=1)
WORLD = """
[tables.t]
unit = "u"
max_rows_per_unit = 1
columns.u = "integer"
columns.age = { type = "integer", bounds = [0, 110] }
columns.day = { type = "date", bounds = [2020-01-01, 2026-12-31] }
"""
AGES = [
    "AGE(day) < INTERVAL '30 days'",
    "age (day) < INTERVAL '30 days'",
    "Age\n\t(day) < INTERVAL '30 days'",
    "AGE/* until now */(day) < INTERVAL '30 days'",
    "AGE -- until now\n(day) < INTERVAL '30 days'",
    "EXTRACT(YEAR FROM AGE(day)) > 1",
    "DATE_PART('year', AGE(day)) > 1",
]


def read(text: str, now: datetime) -> object:
    try:
        return parse_statement(text, SCHEMA, now=now).question
    except Refusal as refusal:
        return refusal.code


def find_differing(texts: list[str]) -> list[str]:
    return [text for text in texts if read(text, NOW) != read(text, LATER)]


def test_every_golden_question_that_time_changes_is_known_by_its_words():
    accepted = [c.question for c in all_cases() if "refused" not in " ".join(c.verdict)]
    differing = find_differing(accepted)
    assert len(differing) >= 3
    assert [text for text in differing if not may_read_clock(text)] == []


@pytest.mark.parametrize("condition", AGES)
def test_an_age_until_now_is_known_however_it_is_written(condition):
    text = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    assert may_read_clock(text)
    assert find_differing([text])


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_of_the_present_is_known(name):
    written = name if name in NOW_WITHOUT_BRACKETS else f"{name}()"
    for spelled in (written, written.lower(), written.replace("ST", "\ufb06")):
        text = f"SELECT COUNT(*) AS n FROM visits WHERE arrived < {spelled}"
        assert may_read_clock(text)
    assert find_differing([f"SELECT COUNT(*) AS n FROM visits WHERE arrived < {written}"])


def test_a_column_of_that_name_is_no_clock():
    """Such texts are remembered: most clinics have an age."""
    for text in (
        "age > 30",
        "AVG(age)",
        "t.age IN (1, 2)",
        '"age" = 3',
        "GROUP BY age",
        "usage(x)",
    ):
        assert not may_read_clock(text)


@pytest.mark.parametrize("condition", ["day = CURRENT_DATE", *AGES])
def test_a_curator_that_runs_past_midnight_reads_the_same_words_anew(monkeypatch, condition):
    from discreet.question import sql

    class Clock(datetime):
        day = 16

        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 11, cls.day, 12, tzinfo=tz)

    monkeypatch.setattr(sql, "datetime", Clock)
    rows = pa.table({"u": [1], "age": [1], "day": [date(2026, 11, 16)]})
    question = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    with discreet.curator({"t": rows}, schema=WORLD, budget=1) as curator:
        first = curator.parse(question)
        Clock.day = 17
        assert curator.parse(question) != first
