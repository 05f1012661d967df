"""Every function on every poison value: total, inside its domain, the same in Python."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poison import DOMAINS, Poisoned, poisoned
from reference_values import LENIENT, STRICT, matches, value_of

from discreet.errors import QuestionRefusal
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, ColumnRef, Expression, Literal
from discreet.question.functions import FUNCTIONS, domain_of, evaluate, render
from discreet.question.functions.patterns import write_pattern

LITERALS = [
    Literal(None),
    Literal(True),
    Literal(0),
    Literal(2),
    Literal(-3),
    Literal(2**63 - 1),
    Literal(-(2**63)),
    Literal(Fraction(1, 10)),
    Literal(Fraction(-5, 2)),
    Literal("a%"),
    Literal("2024-02-29"),
    Literal(date(2024, 2, 29)),
    Literal(datetime(2024, 2, 29, 18, 30)),
]
NOT_BIT_EXACT = {"sqrt", "ln", "log10", "log2", "exp", "power", "epoch", "seconds_between"}
WIDTHS = {
    "in": (2, 3),
    "if": (3,),
    "greatest": (2, 3),
    "least": (2, 3),
    "substr": (2, 3),
    "split_part": (3,),
    "convert_timezone": (3,),
    "replace": (3,),
}
ZONES = [Literal("UTC"), Literal("Europe/Paris"), Literal("Pacific/Apia")]
CONSTANTS: dict[str, list[list[Any]]] = {
    "strftime": [
        [Literal(text) for text in ("%Y-%m", "%d %b %y, %H:%M:%S", "Q%Q", "%A %j %u %w", "%p%I")]
        + [Literal("%V of %G"), Literal("100%%"), Literal("%B%a")]
    ],
    "regexp_matches": [
        [
            Literal(text)
            for text in (
                "a",
                "^a",
                "b$",
                "[0-9]+",
                r"\d{1,3}",
                "(?i)A%",
                "a|true",
                r"\bna.ve",
                "x*?e",
            )
        ]
    ],
    "split_part": [[Literal("a"), Literal(" ")], [Literal(1), Literal(2), Literal(9000)]],
    "replace": [[Literal("a"), Literal("e4")], [Literal("bb"), Literal("")]],
}
"""Constants that a function must be given, since nearly all others are refused."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Poisoned]:
    with poisoned() as found:
        yield found


def accepted(expression: Expression) -> bool:
    try:
        domain_of(expression, DOMAINS)
    except QuestionRefusal:
        return False
    return True


def kinds_in(arguments: tuple[Expression, ...]) -> tuple[Kind, Kind]:
    """Which table of pairs holds the columns among the arguments."""
    found = {a.name[0]: DOMAINS[a.name].kind for a in arguments if isinstance(a, ColumnRef)}
    return found.get("a", Kind.BOOLEAN), found.get("b", Kind.BOOLEAN)


@cache
def calls(name: str) -> tuple[Call, ...]:
    """Ways to call a function: one or two columns, the rest constants."""
    return tuple(_list_calls(name))


def _list_calls(name: str) -> Iterator[Call]:
    lefts = [ColumnRef(n) for n in DOMAINS if n.startswith("a_")]
    rights = [ColumnRef(n) for n in DOMAINS if n.startswith("b_")]
    for width in WIDTHS.get(name, (1, 2)):
        choices: list[list[Any]] = [[*lefts, *LITERALS], [*rights, *LITERALS], LITERALS]
        if width == 3:  # enough to meet every kind, without the full product
            choices = [lefts, LITERALS, LITERALS[:1] + LITERALS[2:4]]
        if name in CONSTANTS:
            choices = [[*lefts, Literal("banana"), Literal(None)], *CONSTANTS[name]]
        if name == "convert_timezone":
            choices = [ZONES, ZONES[::-1], lefts]
        if name == "if":
            choices = [[ColumnRef("a_boolean_0")], [*rights, *LITERALS], LITERALS]
        for arguments in itertools.product(*choices[:width]):
            call = Call(name, arguments)
            if accepted(call):
                yield call


def agree(engine: Any, python: Any, *, exact: bool) -> bool:
    if engine is None or python is None:
        return engine is python
    if isinstance(engine, float) and isinstance(python, float) and not exact:
        return math.isclose(engine, python, rel_tol=1e-12, abs_tol=1e-300)
    return type(engine) is type(python) and engine == python


def by_kinds(name: str) -> dict[tuple[Kind, Kind], list[Call]]:
    """The ways to call a function, by the kinds of the columns that it is given."""
    found: dict[tuple[Kind, Kind], list[Call]] = {}
    for call in calls(name):
        found.setdefault(kinds_in(call.arguments), []).append(call)
    assert found, f"no way to call {name} was found"
    return found


MOST_OF_A_KIND = 6
"""Ways to call a function that are tried for each pair of kinds; `make soak` tries all."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_total_bounded_and_the_same_in_python(engine: Poisoned, name: str) -> None:
    """Of every pair of kinds, some of the ways to call it."""
    dice = random.Random(name)
    check_calls(
        engine,
        name,
        {
            kinds: dice.sample(found, min(MOST_OF_A_KIND, len(found)))
            for kinds, found in by_kinds(name).items()
        },
    )


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_total_bounded_and_the_same_however_called(engine: Poisoned, name: str) -> None:
    check_calls(engine, name, by_kinds(name))


def check_calls(engine: Poisoned, name: str, by_table: dict[tuple[Kind, Kind], list[Call]]) -> None:
    """On every value of the kinds: inside its domain, and what Python and the reference say."""
    exact = name not in NOT_BIT_EXACT
    for kinds, found in by_table.items():
        for call, rows, values in engine.compute(found, *kinds):
            domain = domain_of(call, DOMAINS)
            seen: dict[Any, Any] = {}
            for row, value in zip(rows, values, strict=True):
                key = tuple(row[a.name] for a in call.arguments if isinstance(a, ColumnRef))
                if repr(key) in seen:
                    continue
                seen[repr(key)] = value
                assert domain.contains(value), (call, key, value, domain)
                if name in ("lower", "upper") and not all(map(str.isascii, filter(None, key))):
                    continue  # beyond ASCII, each engine has its own tables of letters
                assert agree(value, evaluate(call, row, DOMAINS), exact=exact), (call, key, value)
                assert agree(value, value_of(call, row, DOMAINS), exact=exact), (call, key, value)


def test_the_reference_knows_every_function() -> None:
    assert set(STRICT) | set(LENIENT) == set(FUNCTIONS)


@pytest.mark.parametrize(
    "pattern", ["", "%", "_", "a%", "%a", "%a%b%", "a_b", "%_%_%", "a%a", "%%"]
)
def test_like_agrees_with_the_textbook_table(pattern: str) -> None:
    for length in range(5):
        for letters in itertools.product("ab", repeat=length):
            text = "".join(letters)
            assert FUNCTIONS["like"].evaluate(text, pattern) == matches(text, pattern)


def test_no_pattern_takes_for_ever() -> None:
    """Backtracking would need centuries: a constant of the question must not stop the service."""
    hostile = "%a" * 30 + "%b"
    city = Domain(Kind.TEXT, values=("a" * 4000,), nullable=False)
    assert domain_of(Call("like", (ColumnRef("x"), Literal(hostile))), {"x": city}).values == (
        False,
    )


def test_results_on_a_short_range_are_listed_in_their_own_order() -> None:
    age = {"age": Domain(Kind.INTEGER, Fraction(0), Fraction(35), nullable=False)}
    tens = Call("floor", (Call("divide", (ColumnRef("age"), Literal(10))),))
    decade = Call("multiply", (tens, Literal(10)))
    assert domain_of(decade, age).values == (0, 10, 20, 30)
    left = Call("subtract", (Literal(30), decade))
    assert domain_of(left, age).values == (30, 20, 10, 0)  # as the decades are
    years = Call("subtract", (Literal(2), Call("modulo", (ColumnRef("age"), Literal(3)))))
    assert domain_of(Call("negate", (ColumnRef("age"),)), age).values == tuple(range(-35, 1))
    assert domain_of(years, age).values == (2, 1, 0)
    assert domain_of(Call("less", (ColumnRef("age"), Literal(18))), age).values == (False, True)
    assert domain_of(Call("less", (ColumnRef("age"), Literal(0))), age).values == (False,)


def test_what_grows_without_reason_is_refused() -> None:
    """A guard names its argument twice; sixty of them would be written 2**60 times."""
    expression: Expression = ColumnRef("x")
    for _ in range(30):
        expression = Call("divide", (Literal(1), expression))
    columns = {"x": Domain(Kind.DECIMAL)}
    with pytest.raises(QuestionRefusal) as caught:
        render(expression, columns)
    assert caught.value.code == "Q3"
    deep: Expression = ColumnRef("x")
    for _ in range(100):
        deep = Call("negate", (deep,))
    with pytest.raises(QuestionRefusal):
        domain_of(deep, columns)


WRONG = [
    Call("add", (Literal("a"), Literal(3))),
    Call("add", (Literal(3),)),
    Call("equal", (Literal("2024-02-29"), Literal(date(2024, 2, 29)))),
    Call("hour", (Literal(date(2024, 2, 29)),)),
    Call("substr", (Literal("abc"), Literal(0), Literal(2))),
    Call("substr", (Literal("abc"), Literal(2), Literal(-1))),
    Call("substr", (Literal("abc"), ColumnRef("x"))),
    Call("round", (Literal(3), ColumnRef("x"))),
    Call("like", (Literal("abc"), ColumnRef("t"))),
    Call("in", (Literal(3), ColumnRef("x"))),
    Call("if", (Literal(3), Literal(3), Literal(3))),
    Call("coalesce", ()),
    Call("greatest", (Literal(True), Literal(3))),
    Call("cast_date", (Literal(3),)),
]


@pytest.mark.parametrize("call", WRONG)
def test_wrong_kinds_are_refused(call: Call) -> None:
    columns = {"x": Domain(Kind.INTEGER, Fraction(0), Fraction(9)), "t": Domain(Kind.TEXT)}
    with pytest.raises(QuestionRefusal) as caught:
        domain_of(call, columns)
    assert caught.value.code == "Q10"


@pytest.mark.parametrize("text", ["it's", "a\0b", 'q"', "back\\slash", "new\nline", "%_", "🇩🇪", ""])
def test_text_constants_arrive_unchanged(engine: Poisoned, text: str) -> None:
    found = engine.connection.execute(f"SELECT {render(Literal(text), {}).sql('duckdb')}")
    assert found.fetchone() == (text,)


@pytest.mark.parametrize("value", [0.1, 5e-324, 1.7976931348623157e308, -1e-7, 123456789.123456789])
def test_decimal_constants_arrive_unchanged(engine: Poisoned, value: float) -> None:
    found = engine.connection.execute(
        f"SELECT {render(Literal(Fraction(value)), {}).sql('duckdb')}"
    )
    assert found.fetchone() == (value,)


CONNECTION = duckdb.connect()  # one for all patterns: to open one takes longer than to match
PATTERN = st.recursive(
    st.sampled_from(
        ["a", "b.", "[a-z]", "[^0-9_]", r"\d", r"\W", r"\s", "^", "$", r"\b", "é", "-"]
    ),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,}"])).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.lists(inner, max_size=3).map("".join)
        | inner.map("({})".format)
        | inner.map("(?:{})".format)
    ),
    max_leaves=8,
)
ANY_PATTERN = PATTERN | st.text("ab()[]{}*+?|^$\\.-1,=!<i:", max_size=12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pattern=ANY_PATTERN)
def test_no_pattern_that_is_let_through_fails_in_the_engine(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.soak
@settings(max_examples=3000, deadline=None)
@given(pattern=ANY_PATTERN)
def test_no_pattern_of_many_that_is_let_through_fails_in_the_engine(pattern: str) -> None:
    check_pattern(pattern)


def check_pattern(pattern: str) -> None:
    """DuckDB finds what Python finds, in what is let through."""
    written = write_pattern(pattern)
    if written is None:
        return
    for text in ("", "a", "ab-b é", "12_z", "a\nb"):
        (found,) = CONNECTION.execute(
            "SELECT REGEXP_MATCHES($1, $2)", [text, written]
        ).fetchone() or (None,)
        assert found is FUNCTIONS["regexp_matches"].evaluate(text, pattern), (pattern, written)
