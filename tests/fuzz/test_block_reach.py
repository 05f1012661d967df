"""Blocks on the real engine: nobody outside a question's area can move its integers.

A case is one random plan on one random world whose units name one block, several
or none.  The plan is run on the people whose block is *not* in the area, all
together: what it measures must be what it measures of nobody.  Rows are counted,
so none of them can be hidden by another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from fuzz.questions import conditions, keys, read, relations
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import NOBODY, PERSON, World, schemas, tables, vectors
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference import is_declared, null_last, typed
from sqlglot import exp

from discreet.engine.duckdb import declared
from discreet.errors import QuestionRefusal
from discreet.price.plan import Contribution, Measurement, Moments, Plan, Units
from discreet.question.blocks import Space, outcomes, reach, reachability
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Expression, Literal
from discreet.question.ownership import columns
from discreet.question.question import Aggregate, Question
from discreet.question.relation import Filter, JoinKind, Project, Relation, Source, Union, UnitJoin
from discreet.question.schema import Column, Schema, Table

QUICK, QUICK_CASES = 5, 40
SEARCHED = 30  # worlds, at most, until a mutant is found
LONG, LONG_CASES = 1_000, 8_000
PLANS = 12
SHAPES = ["filter", "project", "public join", "unit join", "unit join", "per unit", "union"]
BLOCKS = [("region",), ("region",), ("x",), ("b",), ("region", "x"), ("b", "region"), ("day",)]
HUGE = Literal(9 * 10**18)
"""An integer; a thousand of it is none, and beside it the engine computes in doubles."""


# --- worlds with blocks ----------------------------------------------------------------------


@st.composite
def declarations(draw: Any, choices: list[tuple[str, ...]]) -> Schema:
    schema = draw(schemas())
    visits, people = schema.tables["visits"], schema.tables["people"]
    blocks = draw(st.sampled_from(choices))
    tables = {**schema.tables, "visits": replace(visits, blocks=blocks)}
    if blocks == ("day",) and visits.unit == people.unit == ("pid", "day"):
        tables["people"] = replace(people, blocks=draw(st.sampled_from([(), blocks])))
    return Schema(tables)


@st.composite
def worlds(draw: Any, choices: list[tuple[str, ...]]) -> World:
    schema = draw(declarations(choices))
    return World(schema, draw(tables(schema)))


def blocks_of(world: World, space: Space) -> dict[int, int]:
    """In which block each person lies, from their own rows; 0 if in none."""
    table = world.schema.tables["visits"]
    (part,) = space.parts
    numbers = {part.cell(place): part.first + place for place in range(part.size)}
    named: dict[int, list[tuple[Any, ...]]] = {person: [] for person in world.people()}
    for row in world.rows["visits"]:
        if row[PERSON] != NOBODY:
            kinds = [(name, column_of(table, name).kind) for name in table.blocks]
            named[row[PERSON]].append(tuple(typed(kind, row[name]) for name, kind in kinds))
    if part.home is None:  # the unit says it, in whichever table
        for row in world.rows["people"]:
            if row[PERSON] != NOBODY:
                named[row[PERSON]].append((row["day"],))
    found = {}
    for person, cells in named.items():
        least = min(cells, key=null_last, default=None)
        inside = least is not None and is_declared(table, least)
        found[person] = numbers[least] if inside else 0  # type: ignore[index]
    return found


def column_of(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None
    return column


# --- questions that look at blocks -----------------------------------------------------------


@st.composite
def about_blocks(draw: Any, names: list[str], table: Table) -> Expression:
    """A condition on a block column alone."""
    name = draw(st.sampled_from(names))
    column = column_of(table, name.rpartition(".")[2])
    constants = [Literal(v) for v in (column.domain.list_values(100) or ())]
    ref = ColumnRef(name)
    shape = draw(st.integers(-1, 4))
    if shape == -1:
        return draw(as_text(ref, column))
    if shape == 0:
        return Call("is_null", (ref,))
    if shape == 1 and column.kind is Kind.TEXT:
        return Call("equal", (Call("upper", (ref,)), Literal("NORTH")))
    if shape <= 2:
        some = draw(st.lists(st.sampled_from(constants), min_size=1, max_size=3))
        return Call("in", (ref, *some, *draw(st.sampled_from([(), (Literal(None),)]))))
    name = draw(st.sampled_from(["equal", "equal", "less", "greater_equal", "not_equal"]))
    sides = (ref, draw(st.sampled_from(constants)))
    return Call(name, sides if draw(st.booleans()) else sides[::-1])


@st.composite
def as_text(draw: Any, ref: Expression, column: Column) -> Expression:
    """How the engine writes a value, which shows whether it computed in doubles."""
    wanted: Any = draw(st.sampled_from(column.domain.list_values(100) or ()))
    if column.kind is Kind.INTEGER:
        ref, wanted = Call("multiply", (ref, Literal(1000))), 1000 * wanted
    name = draw(st.sampled_from(["equal", "not_equal", "not_equal"]))
    return Call(name, (Call("cast_text", (ref,)), Literal(str(wanted).lower())))


@st.composite
def predicates(draw: Any, known: Any, names: list[str], table: Table, depth: int = 2) -> Expression:
    shape = draw(st.integers(0, 7)) if depth else 0
    if shape <= 1:
        return draw(about_blocks(names, table))
    if shape == 2:
        return draw(conditions(known))
    below = predicates(known, names, table, depth - 1)
    if shape in (3, 4):
        return Call("not", (draw(below),))
    return Call("and" if shape == 5 else "or", (draw(below), draw(below)))


def shown(known: Any, table: Table) -> list[str]:
    """The columns of a relation that are called as a block column of the visits is."""
    wanted = {(name, column_of(table, name).kind) for name in table.blocks}
    return [n for n, d in known.items() if (n.rpartition(".")[2], d.kind) in wanted]


@st.composite
def beside_constant(draw: Any, relation: Relation, known: Any, name: str, table: Table) -> Relation:
    """The rows beside a huge number, which is then left out again, and how the rest is written."""
    again = {column: ColumnRef(column) for column in known} | {name: HUGE}
    both = Union(relation, Project(relation, tuple(again.items())))
    shut_out = Call("not_equal", (ColumnRef(name), HUGE))
    written = draw(as_text(ColumnRef(name), column_of(table, name.rpartition(".")[2])))
    return Filter(both, Call("and", (shut_out, written)))


@st.composite
def sources(draw: Any, world: World) -> Relation:
    """A relation that is restricted by blocks somewhere, seen from either side of a join."""
    schema, visits = world.schema, world.schema.tables["visits"]
    multiplicity = world.engine.catalogue.multiplicity
    below = [draw(st.sampled_from(SHAPES)) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    relation: Relation = draw(relations(schema, multiplicity, below))
    known = columns(relation, multiplicity)
    numbers = [name for name in shown(known, visits) if known[name].kind is Kind.INTEGER]
    if numbers and draw(st.booleans()):
        relation = draw(beside_constant(relation, known, draw(st.sampled_from(numbers)), visits))
        known = columns(relation, multiplicity)
    elif names := shown(known, visits):
        relation = Filter(relation, draw(predicates(known, names, visits)))
    if not visits.by_row and draw(st.integers(0, 3)) == 0:
        people = schema.tables["people"]
        kind = draw(st.sampled_from(JoinKind))
        relation = UnitJoin(Source(people, read(people, "w")), relation, (), kind)
        known = columns(relation, multiplicity)
        if (names := shown(known, visits)) and draw(st.booleans()):
            relation = Filter(relation, draw(predicates(known, names, visits)))
    return relation


@st.composite
def asked(draw: Any, world: World) -> Plan:
    """Counts of such a relation, grouped and filtered or not."""
    source = draw(sources(world))
    known = columns(source, world.engine.catalogue.multiplicity)
    names = shown(known, world.schema.tables["visits"])
    counts: list[Measurement] = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        condition = None
        if names and draw(st.booleans()):
            condition = draw(predicates(known, names, world.schema.tables["visits"]))
        counts.append(Moments(condition=condition))
    grouped = tuple(draw(keys(known)) for _ in range(draw(st.sampled_from([0, 0, 1]))))
    plan = Plan(source, grouped, Contribution(rows=3), tuple(counts))
    # As priced: groups that are not listed are shown if they have people enough.
    return plan if plan.public_keys else replace(plan, measurements=(*counts, Units()))


def question(plan: Plan) -> Question:
    """What would have been asked to be measured so."""
    counts = [m for m in plan.measurements if isinstance(m, Moments)]
    wanted = tuple(Aggregate(f"a{i}", "COUNT", condition=m.condition) for i, m in enumerate(counts))
    return Question(plan.source, plan.keys, wanted, ())


# --- checking --------------------------------------------------------------------------------


@dataclass
class Seen:
    """How many cases there were, and how many of them spared anybody."""

    cases: int = 0
    spared: int = 0


def show_only(world: World, people: list[int]) -> None:
    listed = ", ".join(map(str, [*people, NOBODY]))
    for view in world._views:
        world._database.connection.execute(f"{view} WHERE {PERSON} IN ({listed})")
    world._hidden = None  # type: ignore[assignment]


def check(world: World, plan: Plan, seen: Seen) -> None:
    space = Space.of(world.schema)
    area = reach(question(plan), world.schema, space)
    outside = [p for p, block in blocks_of(world, space).items() if block not in area]
    seen.cases += 1
    if not outside:
        return
    seen.spared += 1
    run = world.runner(plan)
    show_only(world, [])
    nobody = vectors(run())
    show_only(world, outside)
    assert vectors(run()) == nobody, (plan, area.names(9))


def fuzz(
    examples: int,
    *,
    phases: tuple[Phase, ...] = tuple(Phase),
    choices: list[tuple[str, ...]] = BLOCKS,
) -> Seen:
    seen = Seen()

    @settings(max_examples=examples, phases=phases, **SETTINGS)
    @given(world=worlds(choices), data=st.data())
    def nobody_outside_is_touched(world: World, data: st.DataObject) -> None:
        try:
            for _ in range(PLANS):
                try:
                    check(world, data.draw(asked(world)), seen)
                except QuestionRefusal:
                    continue
        finally:
            world.close()

    nobody_outside_is_touched()
    return seen


def test_nobody_outside_the_area_moves_the_integers() -> None:
    seen = fuzz(QUICK)
    assert seen.cases >= QUICK_CASES
    assert seen.spared >= QUICK_CASES // 3  # it is about something


@pytest.mark.soak
def test_nobody_outside_the_area_moves_the_integers_for_long() -> None:
    seen = fuzz(LONG)
    assert seen.cases >= LONG_CASES


# --- mutants ---------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def believed_blocks(patch: Patch) -> None:
    """That a unit lies in one block is believed, not enforced."""
    patch.setattr(declared, "choose_block", lambda *_: exp.true())


def clipped_blocks(patch: Patch) -> None:
    """A value outside the declared ones is clipped into a block, or becomes NULL."""
    patch.setattr(declared, "_check_blocks", lambda *_: [exp.true()])


def shuttered_not(patch: Patch) -> None:
    """What may be true is taken never to be false."""

    def wrong(a: outcomes.Outcomes) -> outcomes.Outcomes:
        return outcomes.Outcomes(~a.true, a.true, a.null)

    patch.setattr(outcomes, "_not", wrong)


def or_as_and(patch: Patch) -> None:
    """Both parts of an OR must be possible."""
    patch.setattr(outcomes, "_or", outcomes._and)


def partners_for_all(patch: Patch) -> None:
    """A left join is read as if every row had a partner."""
    original = reachability._join_ways
    patch.setattr(
        reachability,
        "_join_ways",
        lambda join, part: original(replace(join, kind=JoinKind.INNER), part),
    )


def everybody_is_home(patch: Patch) -> None:
    """A table without blocks is taken to hold nobody who lies in none."""
    original = reachability._source
    patch.setattr(
        reachability, "_source", lambda source, part: replace(original(source, part), outside=False)
    )


def any_filter(patch: Patch) -> None:
    """The FILTER of an aggregate is taken for a WHERE although groups are counted by people."""

    def counted(asked: Question, way: reachability.Way) -> reachability.Way:
        for aggregate in asked.aggregates:
            way = way if aggregate.condition is None else way.where(aggregate.condition)
        return way

    patch.setattr(reachability, "_find_counted", counted)


def narrow_union(patch: Patch) -> None:
    """Each side of a union keeps its own bounds, as if the engine computed it alone."""
    patch.setattr(reachability, "_within", lambda value, _: value)


SOON = {believed_blocks: BLOCKS, clipped_blocks: BLOCKS, narrow_union: [("x",)]}
READING = [shuttered_not, or_as_and, partners_for_all, everybody_is_home, any_filter]
"""Found sooner by the areas listed in test_blocks; here with real rows, in the long run."""


@pytest.mark.parametrize("mutant", SOON, ids=lambda mutant: mutant.__name__)
def test_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        fuzz(SEARCHED, phases=(Phase.generate,), choices=SOON[mutant])


@pytest.mark.soak
@pytest.mark.parametrize("mutant", READING, ids=lambda mutant: mutant.__name__)
def test_a_wrong_reading_is_found(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        fuzz(SEARCHED, phases=(Phase.generate,))
