"""Interval arithmetic, worked out by hand: bounds as tight as they should be."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest

from discreet.question.domain import Domain, Kind, Value, number_of, value_at
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import Outcome, domain_of, narrow

COLUMNS = {
    "age": Domain(Kind.INTEGER, Fraction(0), Fraction(120), nullable=False),
    "debt": Domain(Kind.INTEGER, Fraction(-7), Fraction(25)),
    "id": Domain(Kind.INTEGER),
    "cost": Domain(Kind.DECIMAL, Fraction(-2), Fraction(5000)),
    "income": Domain(Kind.DECIMAL),
    "city": Domain(Kind.TEXT, values=("Cork", "Faro"), nullable=False),
    "note": Domain(Kind.TEXT),
    "urgent": Domain(Kind.BOOLEAN, values=(False, True), nullable=False),
    "day": Domain(Kind.DATE, number_of(date(2023, 12, 15)), number_of(date(2024, 3, 10)), False),
    "seen": Domain(
        Kind.TIMESTAMP,
        number_of(datetime(2024, 1, 1, 6)),
        number_of(datetime(2024, 1, 3)),
        nullable=False,
    ),
}


def call(name: str, *arguments: Any) -> Call:
    """Names of columns are columns; the rest are constants."""
    parts = [
        a
        if isinstance(a, Call | Case | ColumnRef | Literal)
        else ColumnRef(a)
        if a in COLUMNS
        else Literal(a)
        for a in arguments
    ]
    return Call(name, tuple(parts))


BOUNDS: list[tuple[Expression, Kind, Any, Any, bool]] = [
    (call("add", "age", 10), Kind.INTEGER, 10, 130, False),
    (call("subtract", "age", "debt"), Kind.INTEGER, -25, 127, True),
    (call("multiply", "debt", "debt"), Kind.INTEGER, -175, 625, True),
    (call("multiply", "age", Fraction(1, 2)), Kind.DECIMAL, 0, 60, False),
    (call("negate", "debt"), Kind.INTEGER, -25, 7, True),
    (call("abs", "debt"), Kind.INTEGER, 0, 25, True),
    (call("abs", "cost"), Kind.DECIMAL, 0, 5000, True),
    (call("divide", "age", 4), Kind.DECIMAL, 0, 30, False),
    (call("divide", "cost", "age"), Kind.DECIMAL, -2, 5000, True),
    (call("divide", "age", "cost"), Kind.DECIMAL, None, None, True),
    (call("divide", 6, call("add", "age", 2)), Kind.DECIMAL, Fraction(6 / 122), 3, False),
    (call("integer_divide", "debt", 2), Kind.INTEGER, -3, 12, True),
    (call("modulo", "id", 10), Kind.INTEGER, -9, 9, True),
    (call("modulo", "age", 7), Kind.INTEGER, 0, 6, False),
    (call("modulo", "age", 500), Kind.INTEGER, 0, 120, False),
    (call("floor", call("divide", "age", 10)), Kind.INTEGER, 0, 12, False),
    (call("ceil", Fraction(1, 4)), Kind.INTEGER, 1, 1, False),
    (call("round", "cost", -3), Kind.DECIMAL, 0, 5000, True),
    (call("round", call("divide", "age", 50)), Kind.INTEGER, 0, 2, False),
    (call("sign", "age"), Kind.INTEGER, 0, 1, False),
    (call("greatest", call("least", "income", 90), 0), Kind.DECIMAL, 0, 90, True),
    (call("greatest", "age", "debt"), Kind.INTEGER, 0, 120, True),
    (call("least", "age", 65), Kind.INTEGER, 0, 65, False),
    (call("coalesce", "cost", -5), Kind.DECIMAL, -5, 5000, False),
    (call("coalesce", "age", "id"), Kind.INTEGER, 0, 120, False),
    (call("length", "note"), Kind.INTEGER, 0, 4096, True),
    (call("length", "city"), Kind.INTEGER, 4, 4, False),
    (call("year", "day"), Kind.INTEGER, 2023, 2024, False),
    (call("month", "day"), Kind.INTEGER, 1, 12, False),
    (call("date_diff_days", date(2023, 12, 15), "day"), Kind.INTEGER, 0, 86, False),
    (call("date_diff_months", "day", date(2024, 3, 1)), Kind.INTEGER, 0, 3, False),
    (call("cast_integer", "cost"), Kind.INTEGER, -2, 5000, True),
    (call("cast_integer", "urgent"), Kind.INTEGER, 0, 1, False),
    (call("add", "id", 1), Kind.DECIMAL, None, None, True),
    (call("subtract", "age", None), Kind.DECIMAL, None, None, True),
]


@pytest.mark.parametrize(("expression", "kind", "low", "high", "nullable"), BOUNDS)
def test_bounds(expression: Expression, kind: Kind, low: Any, high: Any, nullable: bool) -> None:
    found = domain_of(expression, COLUMNS)
    assert (found.kind, found.low, found.high, found.nullable) == (kind, low, high, nullable)


LISTS: list[tuple[Expression, tuple[Value, ...]]] = [
    (call("upper", "city"), ("CORK", "FARO")),
    (call("substr", "city", 1, 1), ("C", "F")),
    (call("concat", "city", "!"), ("Cork!", "Faro!")),
    (call("equal", "city", "Oslo"), (False,)),
    (call("like", "city", "%r%"), (True,)),
    (call("not", "urgent"), (True, False)),
    (call("less", "age", 18), (False, True)),
    (call("if", call("less", "age", 18), "child", "adult"), ("child", "adult")),
    (
        Case(
            ((call("less", "age", 18), Literal(0)), (call("less", "age", 65), Literal(18))),
            Literal(65),
        ),
        (0, 18, 65),
    ),
    (
        call("date_trunc_month", "day"),
        (date(2023, 12, 1), date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)),
    ),
    (call("date_trunc_quarter", "day"), (date(2023, 10, 1), date(2024, 1, 1))),
    (
        call("date_trunc_day", "seen"),
        (datetime(2024, 1, 1), datetime(2024, 1, 2), datetime(2024, 1, 3)),
    ),
    (call("cast_text", "urgent"), ("false", "true")),
]


@pytest.mark.parametrize(("expression", "values"), LISTS)
def test_lists(expression: Expression, values: tuple[Value, ...]) -> None:
    found = domain_of(expression, COLUMNS)
    assert (found.values, found.nullable) == (values, False)


def test_what_engines_may_round_or_spell_differently_is_not_listed() -> None:
    columns = {"city": Domain(Kind.TEXT, values=("Malmö",)), "x": domain_of(Literal(2), {})}
    assert domain_of(call("upper", "city"), columns).values is None
    assert domain_of(Call("sqrt", (ColumnRef("x"),)), columns).values is None


TAUGHT: list[tuple[Expression, str, Any, Any, bool]] = [
    (call("less", "debt", 10), "debt", -7, 9, False),
    (call("less_equal", 3, "debt"), "debt", 3, 25, False),
    (call("greater", "income", 0), "income", 0, None, False),
    (call("equal", "debt", 5), "debt", 5, 5, False),
    (call("less", "debt", Fraction(7, 2)), "debt", -7, 3, False),
    (
        call("and", call("greater_equal", "income", 0), call("less", "income", 9)),
        "income",
        0,
        9,
        False,
    ),
    (call("or", call("less", "debt", 0), call("less", "debt", 9)), "debt", -7, 8, False),
    (call("not", call("is_null", "debt")), "debt", -7, 25, False),
    (call("not", call("greater", "debt", 3)), "debt", -7, 3, False),
    (call("is_true", call("less", "debt", 3)), "debt", -7, 2, False),
    (call("is_null", "debt"), "debt", -7, 25, True),
    (call("less", call("abs", "debt"), 3), "debt", -7, 25, True),
    (call("less", "day", date(2024, 1, 1)), "day", 19706, 19722, False),
    (call("less", "day", datetime(2024, 1, 1, 6)), "day", 19706, 19723, False),
    (call("less", "debt", -100), "debt", -7, 25, False),  # no row is left
]


@pytest.mark.parametrize(("condition", "name", "low", "high", "nullable"), TAUGHT)
def test_where(condition: Expression, name: str, low: Any, high: Any, nullable: bool) -> None:
    found = narrow(COLUMNS, condition)[name]
    assert (found.low, found.high, found.nullable) == (low, high, nullable)


def test_where_lists() -> None:
    one = narrow(COLUMNS, call("in", "note", "a", "b"))["note"]
    assert (one.values, one.nullable) == (("a", "b"), False)
    other = narrow(COLUMNS, call("not_equal", "city", "Cork"))["city"]
    assert other.values == ("Faro",)
    neither = narrow(COLUMNS, call("in", "city", "Cork"), Outcome.NOT_TRUE)["city"]
    assert neither.values == ("Faro",)


def test_a_case_that_clips_is_bounded() -> None:
    """The usual way to write a clip, whichever way round."""
    clip = Case(
        (
            (call("greater", "income", 100), Literal(100)),
            (call("less", "income", 0), Literal(0)),
        ),
        ColumnRef("income"),
    )
    found = domain_of(clip, COLUMNS)
    assert (found.low, found.high, found.nullable) == (0, 100, True)


@pytest.mark.parametrize(
    "value", [0, -7, Fraction(1, 4), date(2024, 2, 29), datetime(1969, 12, 31, 23, 59, 59, 5)]
)
def test_places_and_values_are_inverse(value: Value) -> None:
    kinds = {int: Kind.INTEGER, Fraction: Kind.DECIMAL, date: Kind.DATE, datetime: Kind.TIMESTAMP}
    place = number_of(value)
    assert place is not None
    assert value_at(kinds[type(value)], place) == value


def test_listed() -> None:
    assert Domain(Kind.INTEGER, Fraction(-1), Fraction(2)).list_values() == (-1, 0, 1, 2)
    assert Domain(Kind.INTEGER, Fraction(1), Fraction(5)).list_values(most=4) is None
    assert Domain(Kind.INTEGER, Fraction(1), Fraction(5)).list_values(most=5) is not None
    assert Domain(Kind.DECIMAL, Fraction(1), Fraction(2)).list_values() is None
    assert Domain(Kind.DATE, Fraction(0), Fraction(1)).list_values() == (
        date(1970, 1, 1),
        date(1970, 1, 2),
    )


@pytest.mark.parametrize("name", ["and", "or"])
def test_one_null_among_many_is_not_lost(name: str) -> None:
    """Too many combinations to list: the rule itself must know."""
    columns = {
        f"b{i}": Domain(Kind.BOOLEAN, values=(False, True), nullable=False) for i in range(11)
    }
    parts = Call(name, tuple(map(ColumnRef, columns)))
    assert not domain_of(parts, columns).nullable
    columns["b7"] = columns["b7"].with_null()
    assert domain_of(parts, columns).nullable
