"""Shorthands of DuckDB, BigQuery and Snowflake: the same question as when they are written out."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from discreet.errors import QuestionRefusal
from discreet.question.schema import Schema
from discreet.question.sql import parse, parse_statement
from discreet.question.statement import Statement

SCHEMA = Schema.from_text("""
[tables.stays]
unit = "patient"
max_rows_per_unit = 4
columns.patient = "integer"
columns.ward = { type = "text", values = ["north", "south"] }
columns.days = { type = "integer", bounds = [0, 60] }
columns.cost = { type = "decimal", bounds = [0, 900] }
columns.paid = { type = "boolean" }
columns.day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
[tables.people]
unit = "patient"
max_rows_per_unit = 1
columns.patient = "integer"
columns.sex = { type = "text", values = ["f", "m"] }
""")

SAME = [
    ("SELECT COUNT() FROM stays", "SELECT COUNT(*) FROM stays"),
    (
        "SELECT COUNT(*) AS n FROM people SEMI JOIN stays USING (patient)",
        "SELECT COUNT(*) AS n FROM people WHERE EXISTS (SELECT 1 FROM stays "
        "WHERE stays.patient = people.patient)",
    ),
    (
        "SELECT COUNT(*) AS n FROM people p ANTI JOIN stays s ON s.patient = p.patient "
        "AND s.ward = 'north' WHERE p.sex = 'f' OR p.sex = 'm'",
        "SELECT COUNT(*) AS n FROM people p WHERE (p.sex = 'f' OR p.sex = 'm') AND NOT EXISTS "
        "(SELECT 1 FROM stays s WHERE s.patient = p.patient AND s.ward = 'north')",
    ),
    (
        "SELECT ward, AVG(cost) AS mean, mean / 2 AS half FROM stays GROUP BY ward",
        "SELECT ward, AVG(cost) AS mean, AVG(cost) / 2 AS half FROM stays GROUP BY ward",
    ),
    (
        "SELECT MONTH(day) AS m, COUNT(*) AS n FROM stays WHERE m > 3 GROUP BY m",
        "SELECT MONTH(day) AS m, COUNT(*) AS n FROM stays WHERE MONTH(day) > 3 GROUP BY m",
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT patient, BOOL_OR(paid) AS some, EVERY(paid) AS each "
        "FROM stays GROUP BY patient) AS s WHERE some AND NOT each",
        "SELECT COUNT(*) AS n FROM (SELECT patient, MAX(CASE WHEN paid THEN 1 WHEN NOT paid THEN 0 "
        "END) = 1 AS some, MIN(CASE WHEN paid THEN 1 WHEN NOT paid THEN 0 END) = 1 AS each "
        "FROM stays GROUP BY patient) AS s WHERE some AND NOT each",
    ),
    (
        "SELECT p.sex, COUNT(s.days) AS n FROM people p LEFT JOIN stays s ON s.patient = p.patient "
        "AND p.sex = 'f' AND s.paid GROUP BY p.sex",
        "SELECT p.sex, COUNT(s.days) AS n FROM (SELECT *, sex = 'f' AS \"meets 1\" FROM people) p "
        'LEFT JOIN (SELECT *, TRUE AS "meets 1" FROM stays WHERE paid) AS s ON s.patient = '
        'p.patient AND s."meets 1" = p."meets 1" GROUP BY p.sex',
    ),
    (
        "SELECT AVG(n) AS n, AVG(c) AS c FROM (SELECT patient, COUNT(*) FILTER (WHERE paid) AS n, "
        "SUM(cost) FILTER (WHERE days > 3) AS c FROM stays GROUP BY patient) AS s",
        "SELECT AVG(n) AS n, AVG(c) AS c FROM (SELECT patient, COUNT(CASE WHEN paid THEN 1 END) "
        "AS n, SUM(CASE WHEN days > 3 THEN cost END) AS c FROM stays GROUP BY patient) AS s",
    ),
]


def plain(text: str) -> object:
    return replace(parse(text, SCHEMA), text="")


@pytest.mark.parametrize(("short", "long"), SAME)
def test_written_out_it_is_the_same_question(short: str, long: str) -> None:
    assert plain(short) == plain(long)


def asked(text: str) -> tuple[object, ...]:
    found = parse_statement(text, SCHEMA).question
    assert isinstance(found, Statement)
    return tuple(replace(question, text="") for question in found.questions)


@pytest.mark.parametrize(
    "short",
    [
        "SELECT * FROM (PIVOT stays ON ward IN ('north', 'south') USING COUNT(*) GROUP BY paid)",
        "SELECT * FROM (PIVOT stays ON ward USING COUNT(*) GROUP BY paid)",
        "SELECT * FROM stays PIVOT (COUNT(*) FOR ward IN ('north', 'south') GROUP BY paid)",
        "SELECT * FROM (SELECT paid, ward FROM stays) PIVOT (COUNT(*) FOR ward IN "
        "('north', 'south')) AS p",
    ],
)
def test_a_pivot_has_a_column_for_each_value(short: str) -> None:
    (question,) = asked(short)
    (long,) = asked(
        "SELECT * FROM (SELECT paid, COUNT(*) FILTER (WHERE ward = 'north') AS north, COUNT(*) "
        "FILTER (WHERE ward = 'south') AS south FROM stays GROUP BY paid) AS p"
    )
    assert [o.name for o in question.outputs] == ["paid", "north", "south"]
    assert [a.name for a in question.aggregates] == [a.name for a in long.aggregates]
    assert all(a.function == "COUNT" and a.condition for a in question.aggregates)
    assert [key.values for key in question.keys] == [key.values for key in long.keys]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM stays PIVOT (COUNT(*) FOR ward IN ('north'))", "Q11"),  # by each person
        ("PIVOT stays ON ward USING COUNT(*) GROUP BY paid", "Q5"),
        ("SELECT COUNT(*) FROM stays SAMPLE (10)", "Q17"),
        ("SELECT BOOL_OR(paid) AS b FROM stays", "Q32"),  # one person alone would decide it
        ("SELECT COUNT(*) AS days, days + 1 AS more FROM stays", "Q24"),  # a column goes first
        # Other names for columns, and a word for NULL, would be left out of what is asked.
        (
            "SELECT COUNT(s.days) FROM people AS p(sex, patient) LEFT JOIN stays AS s "
            "ON s.patient = p.patient AND p.sex = 'f'",
            "Q29",
        ),
        (
            "SELECT COUNT(s.days) FROM people AS p LEFT JOIN stays AS s(patient, paid, days, cost, "
            "ward, day) ON s.patient = p.patient AND p.sex = 'f'",
            "Q29",
        ),
        (
            "SELECT * FROM (SELECT paid, ward, days FROM stays) PIVOT (SUM(days) FOR ward IN "
            "('north', 'south') DEFAULT ON NULL (7))",
            "Q11",
        ),
        (
            "SELECT * FROM (SELECT paid, ward, days FROM stays) AS s(a, ward, b) PIVOT (SUM(b) FOR "
            "ward IN ('north', 'south') GROUP BY a)",
            "Q11",
        ),
    ],
)
def test_what_is_no_shorthand_is_refused(text: str, code: str) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        parse_statement(text, SCHEMA)
    assert caught.value.code == code
    if caught.value.rewriting is not None:
        parse_statement(caught.value.rewriting, SCHEMA)


def test_names_that_double_are_refused_before_they_are_long() -> None:
    names = "".join(f", a{i} + a{i} AS a{i + 1}" for i in range(60))
    start = time.process_time()
    with pytest.raises(QuestionRefusal) as caught:
        parse(f"SELECT COUNT(*) AS a0{names} FROM stays", SCHEMA)
    assert caught.value.code == "Q3"
    assert time.process_time() - start < 20  # and not for as long as 2**60 takes


def test_a_number_for_each_group_is_asked_first() -> None:
    text = (
        "SELECT COUNT(*) FROM stays AS s WHERE s.cost > (SELECT AVG(b.cost) FROM stays AS b "
        "WHERE b.ward = s.ward AND b.paid)"
    )
    with pytest.raises(QuestionRefusal) as caught:
        parse_statement(text, SCHEMA)
    first = "SELECT b.ward, AVG(b.cost) FROM stays AS b WHERE b.paid GROUP BY b.ward"
    assert caught.value.rewriting == first
    parse(first, SCHEMA)
    parse(
        "SELECT COUNT(*) FROM stays AS s WHERE s.cost > CASE s.ward WHEN 'north' THEN 12.5 "
        "WHEN 'south' THEN 15 END",
        SCHEMA,
    )
