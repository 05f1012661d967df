"""E1 to E4 on the engine: rows that break functions, versions, nullability, other people's rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from fuzz.questions import Focus, plans, values
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import EVERYDAY, POISON, World, worlds
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from discreet.engine.duckdb import DuckDBEngine, render
from discreet.errors import QuestionRefusal
from discreet.price.plan import Contribution, DistinctValues, Moments, Plan
from discreet.question.domain import Kind, value_at
from discreet.question.expressions import Call, ColumnRef, Expression, Literal
from discreet.question.functions import FUNCTIONS, domain_of
from discreet.question.functions.nodes import add_definitions, quote_table, select_all
from discreet.question.ownership import columns, row_bound
from discreet.question.relation import Relation, Source
from discreet.question.schema import Column, Schema, Table

# --- E1: an exception for one person's row -------------------------------------------------

HELD = {
    "i": (Kind.INTEGER, pa.int64()),
    "d": (Kind.DECIMAL, pa.float64()),
    "t": (Kind.TEXT, pa.string()),
    "b": (Kind.BOOLEAN, pa.bool_()),
    "day": (Kind.DATE, pa.date32()),
    "at": (Kind.TIMESTAMP, pa.timestamp("us")),
}
ODD = {
    "i": POISON[Kind.INTEGER],
    "d": [*POISON[Kind.DECIMAL], -1e308, 5e-324, -745.2, 710.0],
    "t": [*POISON[Kind.TEXT], "99999999999999999999", "287000-01-01", "0x10", "%", "é" * 5000],
    "b": POISON[Kind.BOOLEAN],
    "day": [0, 19_000, 2**31 - 1, -(2**31), -719_163, 2_932_897],
    "at": [0, 10**15, 2**62, -(2**63), 2**63 - 1, -(10**17)],
}
CALM = {
    **{name: EVERYDAY[kind] for name, (kind, _) in HELD.items() if kind in EVERYDAY},
    "day": [19_000],
    "at": [10**15],
}
TABLE = Table(
    "t",
    (Column("who", Kind.INTEGER), *(Column(name, kind) for name, (kind, _) in HELD.items())),
    unit=("who",),
    max_rows_per_unit=1,
)
SOURCE = Source(TABLE, tuple((name, name) for name in HELD))
DOMAINS = {name: TABLE.column(name).domain for name in HELD}


def table(pools: dict[str, list[Any]], count: int) -> pa.Table:
    """``count`` people whose values go round the pools at different speeds."""
    found: dict[str, Any] = {"who": list(range(count))}
    for place, (name, pool) in enumerate(pools.items()):
        longer = [*pool, None]
        turns = [(i // (1 + 6 * (place % 2))) % len(longer) for i in range(count)]
        found[name] = pa.array([longer[turn] for turn in turns], HELD[name][1])
    return pa.table(found)


def calls(name: str) -> list[Expression]:
    """A function of every combination of kinds it takes."""
    found: list[Expression] = []
    zones = [Literal("Europe/Paris"), Literal("UTC")]
    constants = [Literal(2), Literal("a%"), Literal("%Y-%m"), Literal(Fraction(1, 2))]
    for arity in (0, 1, 2, 3):
        choices: Iterator[tuple[Expression, ...]] = itertools.product(
            [ColumnRef(c) for c in HELD], repeat=arity
        )
        mixed = itertools.product([ColumnRef(c) for c in HELD], *[constants] * (arity - 1))
        last = itertools.product(*[zones] * (arity - 1), [ColumnRef(c) for c in HELD])
        for given_ in itertools.chain(choices, *((mixed, last) if arity > 1 else ())):
            call = Call(name, given_)
            try:
                domain_of(call, DOMAINS)
            except QuestionRefusal:
                continue
            found.append(call)
    return found


@pytest.fixture(scope="module")
def engines():
    schema = Schema({"t": TABLE})
    with (
        DuckDBEngine({"t": table(CALM, 12)}, schema, threads=1) as calm,
        DuckDBEngine({"t": table(ODD, 260)}, schema, threads=1) as odd,
    ):
        yield calm, odd


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_e1_no_function_fails_on_any_row(engines, name):
    found = calls(name)
    assert found, f"{name} was never called"
    for start in range(0, len(found), 24):
        some = found[start : start + 24]
        plan = Plan(SOURCE, (), Contribution(rows=1), tuple(map(DistinctValues, some)))
        shapes = [
            [m.shape for m in engine.run(engine.compile(plan)).open_for_release().measured]
            for engine in engines
        ]
        assert shapes[0] == shapes[1]


# --- E2: the engine's own meaning may change with its version ------------------------------

MEANINGS: list[tuple[Expression, object]] = [
    (Call("divide", (Literal(1), Literal(0))), None),
    (Call("divide", (Literal(7), Literal(2))), 3.5),
    (Call("integer_divide", (Literal(-7), Literal(2))), -3),
    (Call("modulo", (Literal(-7), Literal(2))), -1),
    (Call("least", (Literal(3), Literal(None))), None),
    (Call("sqrt", (Literal(-1),)), None),
    (Call("cast_integer", (Literal("0x10"),)), None),
    (Call("cast_integer", (Literal("1_000"),)), None),
    (Call("equal", (Literal("a"), Literal("A"))), False),
    (Call("less", (Literal("Z"), Literal("a"))), True),
    (Call("length", (Literal("naïve"),)), 5),
]


@pytest.mark.parametrize(("expression", "value"), MEANINGS, ids=lambda part: str(part)[:40])
def test_e2_what_functions_mean_is_pinned(engines, expression, value):
    calm, _ = engines
    if value is None:
        condition = Call("is_null", (expression,))
    else:
        exact = Fraction(value) if isinstance(value, float) else value
        condition = Call("equal", (expression, Literal(exact)))
    plan = Plan(SOURCE, (), Contribution(rows=1), (Moments(condition=condition),))
    assert calm.run(calm.compile(plan)).open_for_release().measured[0][0, 0] == 12


def test_e2_rounding_and_order_are_pinned(engines):
    """Half to even on the grid; text in the order of its code points."""
    connection = engines[0]._current().connection
    assert connection.execute(
        "SELECT CAST(2.5::DOUBLE AS BIGINT), CAST(-3.5::DOUBLE AS BIGINT), 'Z' < 'a', "
        "HASH(0.0::DOUBLE) = HASH(-0.0::DOUBLE), (-5)::HUGEINT >> 1"
    ).fetchone() == (2, -4, True, True, -3)


# --- E3: nullability lies ------------------------------------------------------------------


def outside(expression: Expression, known: Any) -> list[Expression]:
    """Conditions that the domain says no row meets."""
    domain = domain_of(expression, known)
    found: list[Expression] = []
    if not domain.nullable:
        found.append(Call("is_null", (expression,)))
    if domain.low is not None:
        low = Literal(value_at(domain.kind, domain.low))
        found.append(Call("less", (expression, low)))
    if domain.high is not None:
        high = Literal(value_at(domain.kind, domain.high))
        found.append(Call("greater", (expression, high)))
    if domain.values and domain.kind is not Kind.BOOLEAN:
        listed = Call("in", (expression, *map(Literal, domain.values)))
        found.append(Call("not", (listed,)))
    return found


@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.soak)])
def test_e3_no_row_is_outside_its_domain(examples: int) -> None:
    """COUNT(*) against COUNT(x), and every other promise that a declared domain makes."""

    @settings(max_examples=examples, **SETTINGS)
    @given(world=worlds(), data=st.data())
    def promises_are_kept(world: World, data: st.DataObject) -> None:
        try:
            for _ in range(3):
                keep_promises(world, data)
        finally:
            world.close()

    promises_are_kept()


def keep_promises(world: World, data: st.DataObject) -> None:
    """No row of one relation meets what the domains of some expressions exclude."""
    multiplicity = world.engine.catalogue.multiplicity
    try:
        source = data.draw(plans(world.schema, multiplicity, Focus(limits="rows"))).source
        known = columns(source, multiplicity)
        drawn = [data.draw(values(known, kind)) for kind in list(EVERYDAY) * 2]
        promises = [c for e in drawn for c in outside(e, known)]
    except QuestionRefusal:
        return
    checks = tuple(Moments(condition=c) for c in promises[:24])
    if checks:
        found = world.run(Plan(source, (), Contribution(rows=10**6), checks))
        assert [int(m[0, 0]) for m in found.measured] == [0] * len(checks), promises


# --- E4: expressions that look at other rows -----------------------------------------------


Rows = Counter[tuple[Any, ...]]


def reader(world: World, relation: Relation) -> Callable[[], Rows]:
    """Reads the rows of a relation as the engine has them, each with its unit."""
    database = world._database
    renderer = render.Renderer(lambda table: table, database.multiplicity)
    step = renderer.relation(relation)
    query = add_definitions(select_all(quote_table(step.name)), renderer.definitions)
    sql = query.sql("duckdb")

    def read() -> Rows:
        rows = Counter(tuple(map(repr, row)) for row in database.connection.execute(sql).fetchall())
        if world.schema.tables["visits"].by_row:  # a row's number is nobody's value
            return Counter(row[1:] for row in rows.elements())
        return rows

    return read


def same_but_for(world: World, relation: Relation, people: list[int]) -> None:
    """Without one person, the others' rows are the same and fewer than the bound are gone."""
    read, visits = reader(world, relation), world.schema.tables["visits"]
    most = row_bound(relation, world.engine.catalogue.multiplicity)
    world.show_everybody()
    whole = read()
    for person in people:
        world.show_without(person)
        rest = read()
        assert not rest - whole
        gone = whole - rest
        assert most is None or gone.total() <= most
        assert visits.by_row or len({row[: len(visits.unit or ())] for row in gone}) <= 1


def compare(examples: int, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    @settings(max_examples=examples, phases=phases, **SETTINGS)
    @given(world=worlds(), data=st.data())
    def others_are_untouched(world: World, data: st.DataObject) -> None:
        try:
            people = world.people()
            for _ in range(3):
                try:
                    plan = data.draw(plans(world.schema, world.engine.catalogue.multiplicity))
                except QuestionRefusal:
                    continue
                same_but_for(world, plan.source, data.draw(st.permutations(people))[:3])
        finally:
            world.close()

    others_are_untouched()


@pytest.mark.parametrize("examples", [8, pytest.param(80, marks=pytest.mark.soak)])
def test_e4_a_relation_of_some_people_is_the_same_among_others(examples: int) -> None:
    compare(examples)


def test_e4_a_look_at_other_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sub-query in a condition, as a forgotten node would let through."""
    original = render.Rendered.value

    def peeking(self: Any, expression: Expression, **options: Any) -> Any:
        node = original(self, expression, **options)
        if isinstance(expression, Call):
            return exp.Coalesce(
                this=exp.Anonymous(this="NULLIF", expressions=[node, node.copy()]),
                expressions=[
                    exp.Paren(
                        this=exp.GT(
                            this=exp.Subquery(
                                this=exp.select("COUNT(*) % 2").from_(quote_table(self.name))
                            ),
                            expression=exp.Literal.number("0"),
                        )
                    )
                ],
            )
        return node

    monkeypatch.setattr(render.Rendered, "value", peeking)
    with pytest.raises(AssertionError):
        compare(40, (Phase.generate,))
