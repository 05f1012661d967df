"""Random expression trees: total on the engine, inside their domain, the same in Python."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from poison import COLUMNS, DOMAINS, RAW, Poisoned, poisoned
from reference_values import value_of

from discreet.errors import QuestionRefusal
from discreet.question.domain import Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import Outcome, domain_of, evaluate, narrow

N, T, D, B = (
    (Kind.INTEGER, Kind.DECIMAL),
    (Kind.TEXT,),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.BOOLEAN,),
)
ANY = (*N, *T, *D, *B)

# What each function gives, and the groups of kinds its arguments are drawn from.
SHAPES: list[tuple[str, tuple[Kind, ...], tuple[tuple[Kind, ...], ...]]] = [
    *((name, N, (N, N)) for name in ("add", "subtract", "multiply", "divide", "integer_divide")),
    *((name, N, (N, N)) for name in ("modulo", "greatest", "least", "coalesce", "nullif")),
    *((name, N, (N,)) for name in ("negate", "abs", "sign", "round", "floor", "ceil")),
    *((name, N, (N,)) for name in ("sqrt", "ln", "log10", "exp", "cast_integer", "cast_decimal")),
    *((name, N, (T,)) for name in ("length", "cast_integer", "cast_decimal")),
    *((name, N, (D,)) for name in ("year", "quarter", "month", "week", "day", "dayofweek")),
    *((name, N, (D, D)) for name in ("date_diff_days", "date_diff_months", "date_diff_years")),
    *((name, T, (T,)) for name in ("trim", "lower")),
    *((name, T, (T, T)) for name in ("concat", "coalesce", "greatest", "nullif")),
    *((name, T, (kinds,)) for name in ("cast_text",) for kinds in (N, D, B)),
    *((f"date_trunc_{u}", D, (D,)) for u in ("year", "quarter", "month", "week", "day")),
    *((name, D, (D, D)) for name in ("coalesce", "greatest", "least", "nullif")),
    *((name, D, (kinds,)) for name in ("cast_date", "cast_timestamp") for kinds in (T, D)),
    ("date_add_days", D, (D, (Kind.INTEGER,))),
    ("power", N, (N, N)),
    *((name, B, (B, B)) for name in ("and", "or")),
    *((name, B, (B,)) for name in ("not", "is_true")),
    *(
        (name, B, (kinds, kinds))
        for name in ("equal", "less", "greater_equal")
        for kinds in (N, T, D)
    ),
    ("is_null", B, (ANY,)),
    ("starts_with", B, (T, T)),
    *(("if", kinds, (B, kinds, kinds)) for kinds in (N, T, D, B)),
]
ROUNDS_ITS_OWN_WAY = {"sqrt", "ln", "log10", "exp", "power", "lower"}

LITERALS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: st.integers(-200, 200) | st.integers(-(2**63), 2**63 - 1),
    Kind.DECIMAL: st.floats(-1e3, 1e3).map(Fraction)
    | st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    Kind.TEXT: st.sampled_from(["", "a", "12", "2024-02-29", "A%_b", " -7 ", "é"]),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(),
}


@st.composite
def leaves(draw: st.DrawFn, kinds: tuple[Kind, ...]) -> Expression:
    kind = draw(st.sampled_from(kinds))
    if draw(st.integers(0, 3)) == 0:
        return Literal(draw(st.none() | LITERALS[kind]))
    return ColumnRef(draw(st.sampled_from([n for n, c in COLUMNS.items() if c.kind is kind])))


@st.composite
def trees(draw: st.DrawFn, kinds: tuple[Kind, ...] = ANY, depth: int = 4) -> Expression:
    shapes = [s for s in SHAPES if set(s[1]) <= set(kinds)]
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(leaves(kinds))
    if draw(st.integers(0, 6)) == 0:
        group = draw(st.sampled_from([g for g in (N, T, D, B) if set(g) <= set(kinds)] or [kinds]))
        conditions = draw(
            st.lists(conditions_on_columns() | trees(B, depth - 1), min_size=1, max_size=2)
        )
        branches = tuple((c, draw(trees(group, depth - 1))) for c in conditions)
        return Case(branches, draw(trees(group, depth - 1)))
    if not shapes:
        return draw(leaves(kinds))
    name, _, arguments = draw(st.sampled_from(shapes))
    return Call(name, tuple(draw(trees(a, depth - 1)) for a in arguments))


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@st.composite
def conditions_on_columns(draw: st.DrawFn, depth: int = 2) -> Expression:
    """Conditions that teach something about a column."""
    choice = draw(st.integers(0, 6)) if depth else draw(st.integers(0, 3))
    if choice <= 1:
        kind = draw(st.sampled_from(list(Kind)))
        name = draw(st.sampled_from([n for n, c in COLUMNS.items() if c.kind is kind]))
        alike = N if kind in N else D if kind in D else (kind,)
        values = st.one_of(*(LITERALS[k] for k in alike)) | near(kind)
        sides = (ColumnRef(name), Literal(draw(values)))
        return Call(
            draw(st.sampled_from(COMPARISONS)), sides if draw(st.booleans()) else sides[::-1]
        )
    if choice == 2:
        kind = draw(st.sampled_from(list(Kind)))
        name = draw(st.sampled_from([n for n, c in COLUMNS.items() if c.kind is kind]))
        options = draw(st.lists(st.none() | near(kind), min_size=1, max_size=3))
        return Call("in", (ColumnRef(name), *map(Literal, options)))
    if choice == 3:
        return Call("is_null", (ColumnRef(draw(st.sampled_from(list(COLUMNS)))),))
    if choice == 4:
        return Call("not", (draw(conditions_on_columns(depth - 1)),))
    if choice == 5:
        return Call("is_true", (draw(conditions_on_columns(depth - 1)),))
    parts = draw(st.lists(conditions_on_columns(depth - 1), min_size=2, max_size=3))
    return Call(draw(st.sampled_from(["and", "or"])), tuple(parts))


def near(kind: Kind) -> st.SearchStrategy[Any]:
    """Constants that the poison table really holds, or that lie next to one."""
    return {
        Kind.BOOLEAN: st.booleans(),
        Kind.INTEGER: st.sampled_from([-8, -7, -1, 0, 1, 6, 7, 24, 25, 2**53 - 1, 2**53 + 1]),
        Kind.DECIMAL: st.sampled_from(
            [Fraction(1, 10), Fraction(-5, 2), Fraction(7, 2), Fraction(0)]
        ),
        Kind.TEXT: st.sampled_from(["", "a", "12", "2024-02-29", "z"]),
        Kind.DATE: st.sampled_from([date(2024, 2, 28) + timedelta(days=n) for n in range(3)]),
        Kind.TIMESTAMP: st.sampled_from(
            [datetime(2024, 2, 29, 18, 30, 15, 250000), datetime(1970, 1, 1)]
        ),
    }[kind]


def functions_in(expression: Expression) -> set[str]:
    match expression:
        case Call(function=name, arguments=arguments):
            return {name}.union(*map(functions_in, arguments))
        case Case(branches=branches, otherwise=otherwise):
            parts = [part for branch in branches for part in branch]
            return functions_in(otherwise).union(*map(functions_in, parts))
        case _:
            return set()


def accepted(expression: Expression, columns: Any = DOMAINS) -> bool:
    try:
        domain_of(expression, columns)
    except QuestionRefusal:
        return False
    return True


@pytest.fixture(scope="module")
def engine() -> Iterator[Poisoned]:
    with poisoned() as found:
        yield found


def holds(engine: Poisoned, expressions: list[Expression]) -> None:
    rows = engine.mix()
    for expression, values in zip(expressions, engine.compute_mixed(expressions), strict=True):
        domain = domain_of(expression, DOMAINS)
        exact = not functions_in(expression) & ROUNDS_ITS_OWN_WAY
        for place, (row, value) in enumerate(zip(rows, values, strict=True)):
            assert domain.contains(value), (expression, value, domain)
            if exact and place % 12 == 0:
                expected = value_of(expression, row, DOMAINS)
                assert (type(value), value) == (type(expected), expected), (expression, row)
            if exact and place % 60 == 0:
                assert evaluate(expression, row, DOMAINS) == value, (expression, row)


FUZZ = settings(
    max_examples=12,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@seed(20240229)
@FUZZ
@given(st.lists(trees(), min_size=10, max_size=20))
def test_random_trees(engine: Poisoned, expressions: list[Expression]) -> None:
    found = [e for e in expressions if accepted(e)]
    if found:
        holds(engine, found)


@pytest.mark.soak
@settings(FUZZ, max_examples=2000)
@given(st.lists(trees(depth=6), min_size=10, max_size=20))
def test_many_deeper_trees(engine: Poisoned, expressions: list[Expression]) -> None:
    found = [e for e in expressions if accepted(e)]
    if found:
        holds(engine, found)


@seed(20240229)
@FUZZ
@given(st.lists(conditions_on_columns(), min_size=10, max_size=20))
def test_what_a_condition_teaches_is_true(engine: Poisoned, conditions: list[Expression]) -> None:
    teaches_truly(engine, conditions)


@pytest.mark.soak
@settings(FUZZ, max_examples=500)
@given(st.lists(conditions_on_columns(), min_size=10, max_size=20))
def test_what_many_conditions_teach_is_true(engine: Poisoned, conditions: list[Expression]) -> None:
    teaches_truly(engine, conditions)


LEARNING = given(conditions_on_columns(), st.lists(trees(), min_size=5, max_size=10))


@seed(20240229)
@FUZZ
@LEARNING
def test_what_was_learnt_cannot_fail_on_other_rows(
    engine: Poisoned, condition: Expression, expressions: list[Expression]
) -> None:
    """An engine may compute before it filters: on rows shut out there is no promise but NULL."""
    hold_learnt(engine, condition, expressions)


@pytest.mark.soak
@settings(FUZZ, max_examples=500)
@LEARNING
def test_what_was_learnt_of_many_cannot_fail_on_other_rows(
    engine: Poisoned, condition: Expression, expressions: list[Expression]
) -> None:
    hold_learnt(engine, condition, expressions)


def hold_learnt(engine: Poisoned, condition: Expression, expressions: list[Expression]) -> None:
    """The expressions that are accepted because of the condition, where it holds."""
    if not accepted(condition):
        return
    learnt = narrow(DOMAINS, condition)
    holds_where(engine, condition, learnt, [e for e in expressions if accepted(e, learnt)])


def holds_where(
    engine: Poisoned, condition: Expression, learnt: Any, expressions: list[Expression]
) -> None:
    rows = engine.mix()
    conditions, *found = engine.compute_mixed([condition, *expressions], learnt)
    for expression, values in zip(expressions, found, strict=True):
        domain = domain_of(expression, learnt)
        exact = not functions_in(expression) & ROUNDS_ITS_OWN_WAY
        for row, holds_here, value in zip(rows, conditions, values, strict=True):
            if holds_here is True:
                assert domain.contains(value), (condition, expression, value, domain)
                if exact:
                    assert value == value_of(expression, row, learnt), (condition, expression)


WHOLE = ColumnRef("a_integer_0")
SMALL = Call("and", (Call("greater", (WHOLE, Literal(0))), Call("less", (WHOLE, Literal(9)))))
CHOICE = Case(((ColumnRef("a_boolean_1"), WHOLE),), Literal(2))
DAY = ColumnRef("a_date_0")
REAL = ColumnRef("a_decimal_0")
FEW = Call("and", (Call("greater", (REAL, Literal(0))), Call("less", (REAL, Literal(9)))))


@pytest.mark.parametrize(
    ("condition", "expression"),
    [
        (SMALL, Call("add", (WHOLE, Call("multiply", (WHOLE, WHOLE))))),
        (SMALL, Call("subtract", (Literal(-5), WHOLE))),
        (SMALL, Call("negate", (WHOLE,))),
        (SMALL, Call("abs", (WHOLE,))),
        (SMALL, Call("modulo", (Literal(70), WHOLE))),
        (SMALL, Call("modulo", (ColumnRef("b_integer_0"), WHOLE))),
        (SMALL, Call("integer_divide", (ColumnRef("b_integer_0"), WHOLE))),
        (SMALL, Call("integer_divide", (WHOLE, Literal(-1)))),
        (SMALL, Call("modulo", (WHOLE, Literal(-1)))),
        (SMALL, Call("round", (WHOLE, Literal(-1)))),
        (SMALL, Call("date_add_days", (DAY, WHOLE))),
        (
            SMALL,
            Call("date_add_days", (Literal(date(2024, 2, 29)), Call("multiply", (WHOLE, WHOLE)))),
        ),
        (SMALL, Case(((Literal(True), Call("multiply", (WHOLE, WHOLE))),), Literal(None))),
        (SMALL, Call("multiply", (CHOICE, CHOICE))),
        (FEW, Call("floor", (REAL,))),
        (FEW, Call("ceil", (REAL,))),
        (FEW, Call("round", (REAL,))),
        (FEW, Call("multiply", (Call("round", (REAL,)), Call("floor", (REAL,))))),
        (FEW, Call("cast_integer", (REAL,))),
    ],
)
def test_whole_numbers_that_fit_only_because_of_a_condition(
    engine: Poisoned, condition: Expression, expression: Expression
) -> None:
    learnt = narrow(DOMAINS, condition)
    holds_where(engine, condition, learnt, [expression])
    # The same inside CASE, whose branches an engine may compute for every row.
    holds(engine, [Case(((condition, expression),), Literal(None))])
    assert domain_of(expression, learnt).kind in (Kind.INTEGER, Kind.DATE)


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_beyond_exact_doubles_nothing_is_learnt(engine: Poisoned, comparison: str) -> None:
    """2**53 + 1 equals 2**53 as a double: the comparison is true, the bound would be a lie."""
    sides = (ColumnRef("a_integer_0"), Literal(Fraction(2**53)))
    teaches_truly(engine, [Call(comparison, sides), Call(comparison, sides[::-1])])


def teaches_truly(engine: Poisoned, conditions: list[Expression]) -> None:
    """On the rows where it came out so, every column is in the narrowed domain."""
    rows = engine.mix()
    conditions = [c for c in conditions if accepted(c)]
    for condition, values in zip(conditions, engine.compute_mixed(conditions), strict=True):
        taught = {outcome: narrow(DOMAINS, condition, outcome) for outcome in Outcome}
        for row, value in zip(rows, values, strict=True):
            outcomes = [Outcome.TRUE] if value else [Outcome.NOT_TRUE]
            if value is False:
                outcomes.append(Outcome.FALSE)
            for outcome in outcomes:
                for name, domain in taught[outcome].items():
                    if domain is not DOMAINS[name]:
                        assert domain.contains(row[name]), (condition, outcome, name, row[name])


def test_the_poison_is_all_there(engine: Poisoned) -> None:
    """A shuffled table that misses values would prove less than it seems to."""
    engine.mix()
    for name, column in COLUMNS.items():
        if name.startswith("a_") and name.endswith("_0"):
            whole = engine.connection.execute(
                f"SELECT COUNT(DISTINCT a_{column.kind.value}) FROM raw_mixed"
            ).fetchone()
            assert whole is not None
            zeros = 1 if column.kind is Kind.DECIMAL else 0  # 0 and -0 are one value
            assert whole[0] == len(RAW[column.kind]) - 1 - zeros
