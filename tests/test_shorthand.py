"""Shorthands of DuckDB, BigQuery and Snowflake: the same question as when they are written out."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.schema import Schema
from discreet.question.sql import parse, parse_statement
from discreet.question.sql.dialect import parse_trees, tokenize
from discreet.question.sql.series import list_series
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
[tables.bills]
unit = "patient"
max_rows_per_unit = 3
columns.patient = "integer"
columns.due = { type = "date", bounds = [2024-01-01, 2024-12-31] }
columns.day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
[tables.wards]
public = true
unique = [["ward"]]
columns.ward = "text"
columns.beds = { type = "integer", bounds = [0, 99] }
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
    (
        "SELECT SUM(s.cost) AS n FROM people p JOIN bills b ON b.patient = p.patient ASOF JOIN "
        "stays s ON s.patient = p.patient AND b.due >= s.day",
        "SELECT SUM(s.cost) AS n FROM people p JOIN bills b ON b.patient = p.patient JOIN (SELECT "
        '*, LEAD(day) OVER (PARTITION BY patient ORDER BY day) AS "next 2" FROM stays WHERE day IS '
        'NOT NULL) AS s ON p.patient = s.patient AND b.due >= s.day AND (s."next 2" IS NULL OR '
        'b.due < s."next 2")',
    ),
    (
        "SELECT COUNT(*) AS n FROM bills b ASOF JOIN stays s ON s.patient = b.patient AND s.day > "
        "b.due",
        "SELECT COUNT(*) AS n FROM bills b JOIN (SELECT *, LAG(day) OVER (PARTITION BY patient "
        'ORDER BY day) AS "next 1" FROM stays WHERE day IS NOT NULL) AS s ON b.patient = s.patient '
        'AND b.due < s.day AND (s."next 1" IS NULL OR b.due >= s."next 1")',
    ),
    (
        "SELECT COUNT(*) AS n FROM bills ASOF JOIN stays USING (patient, day) WHERE day > "
        "DATE '2024-02-02'",
        "SELECT COUNT(*) AS n FROM bills JOIN (SELECT *, LEAD(day) OVER (PARTITION BY patient "
        'ORDER BY day) AS "next 1" FROM stays WHERE day IS NOT NULL) AS stays ON bills.patient = '
        'stays.patient AND bills.day >= stays.day AND (stays."next 1" IS NULL OR bills.day < '
        "stays.\"next 1\") WHERE bills.day > DATE '2024-02-02'",
    ),
    (
        "SELECT AVG(l.total) AS n FROM people p, LATERAL (SELECT SUM(s.cost) AS total FROM stays s "
        "WHERE s.patient = p.patient) AS l WHERE l.total > 9",
        "SELECT AVG((SELECT SUM(s.cost) FROM stays s WHERE s.patient = p.patient)) AS n FROM "
        "people p WHERE (SELECT SUM(s.cost) FROM stays s WHERE s.patient = p.patient) > 9",
    ),
    (
        "SELECT k.h, COUNT(s.days) AS n FROM generate_series(2, 5, 2) AS k(h) LEFT JOIN stays s ON "
        "MONTH(s.day) = k.h GROUP BY k.h",
        "SELECT k.h, COUNT(s.days) AS n FROM (VALUES (2), (4)) AS k(h) LEFT JOIN (SELECT *, MONTH("
        'day) AS "key 1 1" FROM stays) AS s ON s."key 1 1" = k.h GROUP BY k.h',
    ),
    (
        "SELECT w, COUNT(*) AS n FROM (SELECT patient, MIN_BY(ward, day) AS w FROM stays WHERE "
        "paid "
        "GROUP BY patient) AS s GROUP BY w",
        'SELECT w, COUNT(*) AS n FROM (SELECT patient, MIN(CASE WHEN "place 1" = 1 AND NOT ward IS '
        "NULL AND NOT day IS NULL THEN ward END) AS w FROM (SELECT *, ROW_NUMBER() OVER (PARTITION "
        'BY patient ORDER BY CASE WHEN NOT ward IS NULL THEN day END) AS "place 1" FROM stays '
        "WHERE paid) AS stays GROUP BY patient) AS s GROUP BY w",
    ),
    (
        "SELECT AVG(d) AS n FROM (SELECT patient, ward, LAST(days ORDER BY day) AS d, "
        "COUNT_IF(paid) "
        "AS p FROM stays GROUP BY patient, ward) AS s WHERE p > 1",
        'SELECT AVG(d) AS n FROM (SELECT patient, ward, MIN(CASE WHEN "place 1" = 1 THEN days END) '
        "AS d, COUNT(CASE WHEN paid THEN 1 END) AS p FROM (SELECT *, ROW_NUMBER() OVER (PARTITION "
        "BY patient, ward ORDER BY CASE WHEN day IS NULL THEN 1 ELSE 0 END DESC, day DESC) AS "
        '"place 1" FROM stays) AS stays GROUP BY patient, ward) AS s WHERE p > 1',
    ),
    (
        "SELECT SKEWNESS(days) AS s FROM stays",
        "SELECT POWER(ABS(COUNT(days - 30) * (COUNT(days - 30) - 1)), 0.5) / (COUNT(days - 30) - "
        "2) "
        "* (AVG(POWER(days - 30, 3)) - 3 * AVG(days - 30) * VAR_POP(days - 30) - POWER(AVG(days - "
        "30), 3)) / POWER(VAR_POP(days - 30), 1.5) AS s FROM stays",
    ),
    (
        "SELECT ward, GEOMEAN(cost + 1) AS g FROM stays GROUP BY ward",
        "SELECT ward, EXP(AVG(LN(cost + 1))) AS g FROM stays GROUP BY ward",
    ),
    (
        "SELECT GEOMETRIC_MEAN(days) FILTER (WHERE paid) AS g FROM stays",
        "SELECT EXP(AVG(LN(days)) FILTER (WHERE paid)) AS g FROM stays",
    ),
    (
        "SELECT MAKE_DATE(YEAR(day), 7, 31) AS d, COUNT(*) AS n FROM stays GROUP BY d",
        "SELECT DATE '2001-07-31' + INTERVAL '1 month' * ((YEAR(day) - 2001) * 12) AS d, "
        "COUNT(*) AS n FROM stays GROUP BY d",
    ),
    (
        "SELECT DATEPART(month, day) AS m, COUNT(*) AS n FROM stays GROUP BY DATEPART(month, day)",
        "SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM stays GROUP BY m",
    ),
    (
        "SELECT REGR_R2(cost, days) FILTER (WHERE paid) AS r, REGR_COUNT(cost, days) AS c FROM "
        "stays",
        "SELECT POWER(CORR(cost, days) FILTER (WHERE paid), 2) AS r, COUNT(CASE WHEN NOT cost IS "
        "NULL AND NOT days IS NULL THEN 1 END) AS c FROM stays",
    ),
    (
        "SELECT w.ward, w.beds, COUNT(*) AS n FROM stays s JOIN wards w ON w.ward = s.ward "
        "GROUP BY w.ward",
        "SELECT w.ward, w.beds, COUNT(*) AS n FROM stays s JOIN wards w ON w.ward = s.ward "
        "GROUP BY w.ward, w.beds",
    ),
    (
        "SELECT w.ward, ANY_VALUE(w.beds) AS b, COUNT(*) AS n FROM stays s JOIN wards w ON "
        "w.ward = "
        "s.ward GROUP BY w.ward",
        "SELECT w.ward, w.beds AS b, COUNT(*) AS n FROM stays s JOIN wards w ON w.ward = s.ward "
        "GROUP BY w.ward, w.beds",
    ),
    (
        "SELECT TRUNC(day, 'MM') AS m, COUNT(*) AS n FROM stays GROUP BY m",
        "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM stays GROUP BY m",
    ),
    (
        "SELECT DATE_FORMAT(day, '%Y %i %M') AS m, COUNT(*) AS n FROM stays GROUP BY m",
        "SELECT STRFTIME(day, '%Y %M %B') AS m, COUNT(*) AS n FROM stays GROUP BY m",
    ),
    (
        "SELECT ward || '-' || days AS k, COUNT(*) AS n FROM stays GROUP BY k",
        "SELECT ward || '-' || CAST(days AS TEXT) AS k, COUNT(*) AS n FROM stays GROUP BY k",
    ),
    (
        "SELECT SUM(TRUNC(cost)) AS n FROM stays",
        "SELECT SUM(SIGN(cost) * FLOOR(ABS(cost))) AS n FROM stays",
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
        "PIVOT stays ON ward USING COUNT(*) GROUP BY paid",
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
        ("SELECT COUNT(*) FROM stays SAMPLE (10)", "Q17"),
        ("SELECT BOOL_OR(paid) AS b FROM stays", "Q32"),  # one person alone would decide it
        ("SELECT MIN_BY(ward, day) AS w FROM stays", "Q32"),  # one person's own
        # Who has no partner, or a public one, is not among the same person's rows.
        (
            "SELECT COUNT(*) FROM bills b ASOF LEFT JOIN stays s ON s.patient = b.patient AND "
            "b.due >= s.day",
            "Q19",
        ),
        (
            "SELECT COUNT(*) FROM stays s ASOF JOIN wards w ON w.ward = s.ward AND s.days > w.beds",
            "Q19",
        ),
        ("SELECT COUNT(*) FROM bills b ASOF JOIN stays s ON b.due >= s.day", "Q19"),
        (
            "SELECT COUNT(*) FROM bills b ASOF JOIN stays s ON s.day = b.day AND b.due >= s.day",
            "Q19",
        ),
        ("SELECT COUNT(*) FROM people p, LATERAL (SELECT days FROM stays s) AS l", "Q19"),
        # A series that is too long, has no end, or is of somebody's values is no list of constants.
        (
            "SELECT n, COUNT(*) FROM generate_series(1, 2000) AS k(n) JOIN stays ON days = n "
            "GROUP BY n",
            "Q29",
        ),
        (
            "SELECT n, COUNT(*) FROM generate_series(1, 5, 0) AS k(n) JOIN stays ON days = n "
            "GROUP BY n",
            "Q29",
        ),
        (
            "SELECT s.ward, w.beds, COUNT(*) AS n FROM stays s LEFT JOIN wards w ON w.ward = "
            "s.ward GROUP BY s.ward",
            "Q24",
        ),
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
    asked = parse_statement(text, SCHEMA).question
    assert isinstance(asked, Statement)
    (first,) = asked.first
    assert first.keys == 1
    (question,) = first.statement.questions
    inside = "SELECT b.ward, AVG(b.cost) FROM stays AS b WHERE b.paid GROUP BY b.ward"
    assert replace(question, text="") == plain(inside)
    given = [[("north", 12.5), (None, 3.0), ("south", 15)]]
    around = parse_statement(text, SCHEMA, given=given).question
    assert isinstance(around, Statement)
    assert around.first == ()
    written = parse(
        "SELECT COUNT(*) FROM stays AS s WHERE s.cost > CASE WHEN s.ward = 'north' THEN 12.5 "
        "WHEN s.ward = 'south' THEN 15 END",
        SCHEMA,
    )
    assert replace(around.questions[0], text="") == replace(written, text="")


@pytest.mark.parametrize(
    "text",
    [
        # Of groups that nobody listed there is no knowing how many there will be.
        "SELECT COUNT(*) FROM bills AS s WHERE s.due > (SELECT AVG(b.cost) FROM stays AS b "
        "WHERE b.patient = s.patient + 1)",
        "SELECT COUNT(*) FROM stays s WHERE s.cost > (SELECT AVG(b.cost) FROM stays b "
        "WHERE b.day = s.day)",
        # A number of a group that is shown of each row, and not only compared with.
        "SELECT SUM(g.m) FROM stays s JOIN (SELECT ward, AVG(cost) AS m FROM stays GROUP BY ward) "
        "AS g ON g.ward = s.ward",
        "SELECT COUNT(*) FROM stays s JOIN (SELECT ward, AVG(cost) AS m FROM stays GROUP BY ward) "
        "AS g ON g.ward = s.ward WHERE g.m IS NULL OR s.cost > g.m",
    ],
)
def test_what_is_no_number_of_a_group_is_refused(text: str) -> None:
    with pytest.raises(QuestionRefusal):
        parse_statement(text, SCHEMA)


SERIES = [
    ("generate_series(0, 3)", "0 1 2 3"),
    ("generate_series(-1, 5, 3)", "-1 2 5"),
    ("range(3)", "0 1 2"),
    (
        "range(DATE '2024-01-30', DATE '2024-02-02', INTERVAL 1 DAY)",
        "2024-01-30 2024-01-31 2024-02-01",
    ),
    (
        "generate_series(DATE '2024-01-31', DATE '2024-04-30', INTERVAL '1' MONTH)",
        "2024-01-31 2024-02-29 2024-03-31 2024-04-30",
    ),
    (
        "UNNEST(GENERATE_DATE_ARRAY('2024-01-01', '2024-01-15', INTERVAL 1 WEEK))",
        "2024-01-01 2024-01-08 2024-01-15",
    ),
    (
        "generate_series(TIMESTAMP '2024-01-01 22:00', TIMESTAMP '2024-01-02 00:00', INTERVAL 1 "
        "HOUR)",
        "2024-01-01T22:00:00 2024-01-01T23:00:00 2024-01-02T00:00:00",
    ),
    ("generate_series(5, 1)", None),
    ("generate_series(1, 1001)", None),
    ("generate_series(DATE '9999-12-30', DATE '9999-12-31', INTERVAL 1 DAY)", None),
    ("generate_series(1, days)", None),
    ("generate_series(1, 9, -1)", None),
    ("generate_series(DATE '2024-01-01', 5, INTERVAL 1 DAY)", None),
]


@pytest.mark.parametrize(("series", "values"), SERIES)
def test_a_series_is_its_values(series: str, values: str | None) -> None:
    text = f"SELECT 1 FROM {series} AS k(n)"
    tree = parse_trees(text, tokenize(text))[0]
    assert tree is not None
    list_series(tree.args["from_"].this)
    found = tree.args["from_"].this
    if values is None:
        assert not isinstance(found, exp.Values)
        return
    texts = [row.expressions[0].sql().split("'") for row in found.expressions]
    listed = [part[1].replace(" ", "T") if len(part) > 1 else part[0] for part in texts]
    assert listed == values.split()
    assert [c.name for c in found.args["alias"].args["columns"]] == ["n"]


def test_a_written_out_question_is_no_longer_than_others() -> None:
    """Each use of what LATERAL finds is a sub-query: too many of them are refused, soon."""
    many = " OR ".join(f"l.m = {n}" for n in range(400))
    text = (
        "SELECT COUNT(*) FROM people p, LATERAL (SELECT MAX(s.cost) AS m FROM stays s WHERE "
        f"s.patient = p.patient) AS l WHERE {many}"
    )
    start = time.process_time()
    with pytest.raises(QuestionRefusal) as caught:
        parse(text, SCHEMA)
    assert caught.value.code == "Q3"
    assert time.process_time() - start < 10
