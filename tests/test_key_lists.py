"""Lists of keys, and words that other systems mean otherwise: no number is lost without a word."""

from __future__ import annotations

import pyarrow as pa
import pytest
from corpus.worlds import WORLDS

import discreet
from discreet.errors import QuestionRefusal
from discreet.question.schema import Schema
from discreet.question.sql import parse, parse_statement

FLIGHTS = Schema.from_text(WORLDS["flights"][0])
HOSPITAL = Schema.from_text(WORLDS["hospital"][0])

LISTS = {
    "values": "SELECT k.s, COUNT(*) FROM (VALUES {}) AS k(s) LEFT JOIN bookings b ON b.{} = k.s "
    "GROUP BY k.s",
    "right": "SELECT k.s, COUNT(*) FROM bookings b RIGHT JOIN (VALUES {}) AS k(s) ON b.{} = k.s "
    "GROUP BY k.s",
    "inside": "SELECT s, COUNT(*) FROM (SELECT k.s, b.customer_id FROM (VALUES {}) AS k(s) "
    "LEFT JOIN bookings b ON b.{} = k.s) AS x GROUP BY s",
}


@pytest.mark.parametrize("shape", LISTS)
@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        ("seats", "3", "77"),
        ("seats", "3", "3.5"),
        ("delay", "-30", "-31"),
        ("flight_date", "DATE '2024-03-01'", "DATE '2031-01-01'"),
        ("flight_date", "'2024-03-01'", "'2031-01-01'"),
        ("price", "3.5", "2000.5"),
        ("carrier", "'AF'", "'XX'"),
    ],
)
def test_a_key_that_nobody_can_have_is_refused_and_never_left_out(shape, column, good, bad):
    question = parse(LISTS[shape].format(f"({good})", column), FLIGHTS)
    ((values,),) = [[key.values for key in question.keys]]
    assert len([value for value in values if value is not None]) == 1
    with pytest.raises(QuestionRefusal) as refusal:
        parse(LISTS[shape].format(f"({good}), ({bad})", column), FLIGHTS)
    assert refusal.value.code == "Q36"


def test_keys_that_are_no_public_groups_are_refused():
    """Whole numbers beside a column of decimals would be looked for in the data."""
    with pytest.raises(QuestionRefusal) as refusal:
        parse(LISTS["values"].format("(3.5), (4)", "price"), FLIGHTS)
    assert refusal.value.code == "Q20"
    assert len(parse(LISTS["values"].format("(3.5), (4.0)", "price"), FLIGHTS).keys[0].values) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT k.s, COUNT(*) FROM (VALUES (3)) AS k(s) LEFT JOIN bookings ON seats = s "
         "GROUP BY k.s", True),
        ("SELECT k.s, COUNT(seats) FROM (VALUES (3)) AS k(s) LEFT JOIN bookings ON seats = s "
         "GROUP BY k.s", False),
        ("SELECT k.s, COUNT(*) FROM (VALUES (3)) AS k(s) JOIN bookings ON seats = s "
         "GROUP BY k.s", False),
    ],
)  # fmt: skip
def test_a_count_of_a_list_says_that_nobody_counts_0(text, said):
    assert any("Plain SQL counts 1" in remark for remark in parse(text, FLIGHTS).remarks) is said


def test_weeks_say_which_weeks_they_are():
    asked = "SELECT AVG({}) AS w FROM admissions"
    whole = parse(asked.format("DATE_DIFF('week', admitted, discharged)"), HOSPITAL)
    mondays = parse(asked.format("DATEDIFF(week, admitted, discharged)"), HOSPITAL)
    days = parse(asked.format("DATE_DIFF('day', admitted, discharged)"), HOSPITAL)
    assert "whole weeks" in whole.remarks[0]
    assert "Mondays" in mondays.remarks[0]
    assert not days.remarks
    assert whole.aggregates[0].arguments != mondays.aggregates[0].arguments


def list_keys(text):
    (key,) = parse(text, FLIGHTS).keys
    return list(key.values)


@pytest.mark.parametrize("shape", LISTS)
@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("{} > 1", [2, 4, 9]),
        ("{} % 2 = 0", [2, 4]),
        ("{} = 1 OR {} > 8", [1, 9]),
        ("{} + 1 IN (3, 7)", [2]),
        ("{} > 9", None),
        ("{} % 5 = 3", None),
        ("{} > 1 AND {} < 2", None),
        ("{} IS NULL", None),
    ],
)
def test_a_condition_on_a_list_is_one_on_its_groups(shape, condition, left):
    """And where none is left nothing is paid: no group is shown that nobody listed."""
    listed = LISTS[shape].format("(1), (2), (4), (9)", "seats")
    end = ") AS x GROUP BY" if shape == "inside" else " GROUP BY"
    text = listed.replace(end, f" WHERE {condition.replace('{}', 'k.s')}{end}")
    if left is not None:
        assert list_keys(text) == left
        return
    with pytest.raises(QuestionRefusal) as refusal:
        parse(text, FLIGHTS)
    assert refusal.value.code == "Q36"


@pytest.mark.parametrize(
    ("join", "left"),
    [
        ("LEFT JOIN bookings b ON b.seats = k.s AND k.s > 2", [1, 2, 4]),
        ("LEFT JOIN bookings b ON b.seats = k.s AND k.t = 'b'", [1, 2, 4]),
        ("LEFT JOIN bookings b ON b.seats = k.s AND k.s > 2 WHERE k.t <> 'c'", [1, 2]),
        ("JOIN bookings b ON b.seats = k.s AND k.s > 1", [2, 4]),
    ],
)
def test_a_condition_in_on_of_an_outer_join_shuts_out_rows_and_no_groups(join, left):
    lists = "(VALUES (1, 'a'), (2, 'b'), (4, 'c')) AS k(s, t)"
    assert list_keys(f"SELECT k.s, COUNT(b.seats) AS n FROM {lists} {join} GROUP BY k.s") == left


RIDES = Schema.from_text("""
[tables.lines]
public = true
unique = [["line"]]
[tables.lines.columns]
line = { type = "text", values = ["red", "green", "blue"], nullable = false }
zone = { type = "integer", bounds = [1, 3], nullable = false }
[tables.rides]
unit = "rider"
max_rows_per_unit = 4
[tables.rides.columns]
rider = "integer"
line = { type = "text", values = ["red", "green", "blue"], nullable = false }
""")


def test_so_it_does_from_a_public_table():
    text = (
        "SELECT l.zone, COUNT(r.line) AS n FROM lines l LEFT JOIN rides r ON r.line = l.line {} "
        "GROUP BY l.zone"
    )
    for condition, left in [
        ("WHERE l.zone > 1", (2, 3)),
        ("WHERE l.zone % 2 = 1", (1, 3)),
        ("AND l.zone > 1", (1, 2, 3)),
        ("AND l.zone > 1 WHERE l.zone <> 2", (1, 3)),
    ]:
        assert parse(text.format(condition), RIDES).keys[0].values == left
    with pytest.raises(QuestionRefusal, match="nothing that is listed"):
        parse(text.format("WHERE l.zone % 3 = 5"), RIDES)


def test_what_is_released_chooses_no_groups():
    """Whatever it turns out to be, the groups are those that were paid for."""
    text = (
        "SELECT k.s, COUNT(*) AS n FROM (VALUES (1), (2)) AS k(s) LEFT JOIN bookings b "
        "ON b.seats = k.s WHERE b.price > (SELECT AVG(price) FROM bookings) "
        "AND k.s + 1 < (SELECT AVG(seats) FROM bookings) GROUP BY k.s"
    )
    for given in (None, [(7.5,), (-3,)], [(None,), (1e300,)]):
        asked = parse_statement(text, FLIGHTS, given=given).question
        assert asked.questions[0].keys[0].values == (1, 2)


def test_a_condition_on_something_else_leaves_the_list():
    text = LISTS["values"].format("(1), (2)", "seats").replace(" GROUP", " WHERE delay > 200 GROUP")
    assert list_keys(text) == [1, 2]


def test_a_list_is_narrowed_by_another_column_of_its_public_table():
    """Which rows of a public table a condition keeps is public: other groups nobody can be in."""
    tables = {
        "lines": pa.table({"line": ["red", "green", "blue"], "zone": [1, 2, 2]}),
        "rides": pa.table({"rider": [1, 2, 3], "line": ["red", "green", "blue"]}),
    }
    text = (
        "SELECT l.line, COUNT(r.line) AS n FROM lines l LEFT JOIN rides r ON r.line = l.line {} "
        "GROUP BY l.line"
    )
    with discreet.curator(tables, schema=RIDES, budget=9) as curator:
        for condition, left in [
            ("WHERE l.zone > 1", ("green", "blue")),
            ("WHERE l.zone > 1 AND l.line <> 'blue'", ("green",)),
            ("AND l.zone > 1", ("red", "green", "blue")),
        ]:
            asked = curator.parse(text.format(condition))
            assert set(asked.keys[0].values) == set(left)
