"""Typing of relations, and that the lemmas of docs/proofs/ownership.md hold of the reference."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from reference import Reader, Row, Truncated

import discreet
from discreet.errors import QuestionRefusal
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.own_rows import unit_grid
from discreet.question.ownership import (
    Unit,
    check_joined_rows,
    check_relation,
    columns,
    find_declared_multiplicity,
    row_bound,
    unit,
    unit_columns,
)
from discreet.question.relation import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    Union,
    UnitAggregate,
    UnitJoin,
)
from discreet.question.schema import ROW, Column, Table

VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("city", Kind.TEXT, values=("Cork", "Faro")),
        Column("age", Kind.INTEGER, 0, 120, nullable=False),
        Column("cost", Kind.DECIMAL, Fraction(-2), Fraction(5000)),
        Column("day", Kind.DATE, date(2024, 1, 1), date(2024, 12, 31)),
        Column("note", Kind.TEXT),
    ),
    unit=("patient",),
    max_rows_per_unit=4,
    entity="patient",
)
PATIENTS = Table(
    "patients",
    (Column("id", Kind.INTEGER), Column("weight", Kind.DECIMAL, 0, 300), Column("town", Kind.TEXT)),
    unit=("id",),
    max_rows_per_unit=2,
    entity="patient",
)
DOCTORS = Table("doctors", (Column("id", Kind.INTEGER),), unit=("id",), max_rows_per_unit=3)
ROWS = Table("rows", (Column("x", Kind.INTEGER, 0, 9),), unit=ROW)
TOWNS = Table(
    "towns",
    (Column("name", Kind.TEXT), Column("people", Kind.INTEGER, 0, 1000)),
    unique=(("name",),),
)


def source(table: Table, prefix: str = "") -> Source:
    return Source(table, tuple((prefix + c.name, c.name) for c in table.columns))


def towns(prefix: str = "t.") -> PublicSource:
    return PublicSource(TOWNS, tuple((prefix + c.name, c.name) for c in TOWNS.columns))


V, P = source(VISITS, "v."), source(PATIENTS, "p.")
AGE, COST, CITY = ColumnRef("v.age"), ColumnRef("v.cost"), ColumnRef("v.city")


# --- each node -----------------------------------------------------------------------------


def test_a_source_is_its_declarations() -> None:
    assert columns(V) == {f"v.{c.name}": c.domain for c in VISITS.columns}
    assert unit(V) == Unit("patient", (Kind.INTEGER,))
    assert unit_columns(V) == ("v.patient",)
    assert row_bound(V) == 4
    assert row_bound(source(ROWS)) == 1
    assert unit_columns(source(ROWS)) == ()
    assert row_bound(source(replace(VISITS, max_rows_per_unit=None))) is None


def test_a_filter_narrows_what_it_lets_through() -> None:
    adults = Call(
        "and",
        (
            Call("greater", (COST, Literal(0))),
            Call("less_equal", (AGE, Literal(64))),
            Call("equal", (CITY, Literal("Faro"))),
        ),
    )
    found = columns(Filter(V, adults))
    assert (found["v.age"].low, found["v.age"].high) == (0, 64)
    assert found["v.cost"] == Domain(Kind.DECIMAL, Fraction(0), Fraction(5000), nullable=False)
    assert (found["v.city"].values, found["v.city"].nullable) == (("Faro",), False)
    assert found["v.day"] == columns(V)["v.day"]
    assert row_bound(Filter(V, adults)) == 4


def test_a_projection_computes_and_may_hide_the_unit() -> None:
    double = Call("multiply", (AGE, Literal(2)))
    shown = Project(V, (("who", ColumnRef("v.patient")), ("twice", double)))
    even = tuple(range(0, 241, 2))
    assert columns(shown)["twice"] == Domain(Kind.INTEGER, Fraction(0), Fraction(240), False, even)
    assert unit_columns(shown) == ("who",)
    assert unit_columns(Project(V, (("twice", double),))) == (None,)
    moved = Project(V, (("who", Call("add", (ColumnRef("v.patient"), Literal(1)))),))
    assert unit_columns(moved) == (None,)  # computed from the unit, but not the unit


def test_a_public_row_without_a_partner_is_nobodys() -> None:
    with pytest.raises(QuestionRefusal, match="FULL JOIN"):
        columns(PublicJoin(V, towns(), ((CITY, "t.name"),), JoinKind.FULL))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT])
def test_a_public_join_multiplies_by_the_public_rows(kind: JoinKind) -> None:
    join = PublicJoin(V, towns(), ((CITY, "t.name"),), kind)
    assert row_bound(join) == 4  # declared unique
    assert row_bound(join, lambda table, key: 3) == 12
    assert row_bound(join, lambda table, key: 0) == 4
    assert row_bound(join, lambda table, key: None) is None
    asked: list[Any] = []
    row_bound(join, lambda table, key: asked.append((table.name, key)))
    assert asked == [("towns", ("name",))]
    by_people = PublicJoin(V, towns(), ((AGE, "t.people"),), kind)
    assert row_bound(by_people) is None
    assert find_declared_multiplicity(TOWNS, ("people",)) is None
    assert find_declared_multiplicity(TOWNS, ("people", "name")) == 1
    found = columns(join)
    assert found["t.people"].nullable
    assert unit_columns(join) == ("v.patient",)


def test_an_outer_join_makes_the_other_side_nullable() -> None:
    sure = replace(
        TOWNS,
        columns=(Column("name", Kind.TEXT), Column("people", Kind.INTEGER, 0, 9, nullable=False)),
    )
    right = PublicSource(sure, (("t.name", "name"), ("t.people", "people")))
    inner = PublicJoin(V, right, ((CITY, "t.name"),))
    assert not columns(inner)["t.people"].nullable
    assert columns(replace(inner, kind=JoinKind.LEFT))["t.people"].nullable


def test_what_joins_make_of_one_unit_is_bounded_at_every_step() -> None:
    join = UnitJoin(V, P)
    totals = PerUnit(join, (), (("n", UnitAggregate("COUNT")),))
    for relation in (join, Filter(join, Call("is_null", (AGE,))), totals, UnitJoin(totals, P)):
        check_joined_rows(relation, 8)
        with pytest.raises(QuestionRefusal, match=r"Q45: .* 8 rows of one person, and at most 7"):
            check_joined_rows(relation, 7)
    with pytest.raises(QuestionRefusal, match=r"Q45: .* 8 rows"):
        check_joined_rows(Union(V, V), 7)
    check_joined_rows(V, 1)  # a table's own bound is the curator's word


def test_rows_without_a_bound_are_read_but_not_multiplied() -> None:
    many = source(replace(VISITS, max_rows_per_unit=None), "v.")
    one = PerUnit(P, (), (("n", UnitAggregate("COUNT")),))
    for relation in (many, Union(many, many), UnitJoin(many, one), UnitJoin(one, many)):
        check_joined_rows(relation, 8)
    for relation in (UnitJoin(many, P), UnitJoin(P, many), UnitJoin(one, UnitJoin(many, P))):
        with pytest.raises(QuestionRefusal, match="Q41"):
            check_joined_rows(relation, 8)
    join = PublicJoin(many, towns(), ((CITY, "t.name"),))
    check_joined_rows(join, 8, lambda table, key: 1)
    for multiplicity in (2, None):
        with pytest.raises(QuestionRefusal, match="Q41"):
            check_joined_rows(join, 8, lambda table, key, most=multiplicity: most)


def test_a_join_on_the_unit_multiplies() -> None:
    join = UnitJoin(V, P)
    assert row_bound(join) == 8
    assert unit(join).entity == "patient"
    assert unit_columns(join) == ("v.patient",)
    assert set(columns(join)) == set(columns(V)) | set(columns(P))
    assert columns(replace(join, on=(("v.city", "p.town"),))) == columns(join)


def test_one_row_per_unit() -> None:
    totals = PerUnit(
        V,
        (),
        (
            ("n", UnitAggregate("COUNT")),
            ("paid", UnitAggregate("COUNT", COST)),
            ("cities", UnitAggregate("COUNT_DISTINCT", AGE)),
            ("age", UnitAggregate("SUM", AGE)),
            ("cost", UnitAggregate("SUM", COST)),
            ("mean", UnitAggregate("AVG", AGE)),
            ("first", UnitAggregate("MIN", ColumnRef("v.day"))),
        ),
    )
    whole, decimal = Kind.INTEGER, Kind.DECIMAL
    assert columns(totals) == {
        "n": Domain(whole, Fraction(1), Fraction(4), nullable=False),
        "paid": Domain(whole, Fraction(0), Fraction(4), nullable=False),
        "cities": Domain(whole, Fraction(1), Fraction(4), nullable=False),
        "age": Domain(whole, Fraction(0), Fraction(480), nullable=False),
        "cost": Domain(decimal, Fraction(-8), Fraction(20000)),
        "mean": Domain(decimal, Fraction(0), Fraction(120), nullable=False),
        "first": columns(V)["v.day"],
    }
    assert row_bound(totals) == 1
    by_city = replace(totals, keys=(("city", CITY),))
    assert row_bound(by_city) == 4
    by_unit = replace(totals, keys=(("who", ColumnRef("v.patient")),))
    assert row_bound(by_unit) == 1
    assert unit_columns(by_unit) == ("who",)


def test_a_union_adds() -> None:
    younger = Filter(V, Call("less", (AGE, Literal(30))))
    older = Project(V, tuple((n, ColumnRef(n)) for n in columns(V)))
    both = Union(younger, older)
    assert row_bound(both) == 8
    assert columns(both)["v.age"].high == 120
    assert unit_columns(both) == ("v.patient",)
    assert unit_columns(
        Union(Project(V, (("a", ColumnRef("v.patient")),)), Project(V, (("a", AGE),)))
    ) == (None,)


# --- refusals ------------------------------------------------------------------------------

REFUSED: list[tuple[str, Relation]] = [
    ("Q18", UnitJoin(V, source(DOCTORS, "d."))),
    ("Q18", Union(Project(V, (("x", AGE),)), source(ROWS))),
    ("Q18", UnitJoin(source(ROWS, "a."), source(ROWS, "b."))),  # no two rows are one person
    ("Q18", PublicJoin(V, PublicSource(PATIENTS, (("p.id", "id"),)), ((AGE, "p.id"),))),
    ("Q10", PublicJoin(V, towns(), ((AGE, "t.name"),))),
    ("Q10", UnitJoin(V, P, on=(("v.age", "p.town"),))),
    ("Q10", Filter(V, AGE)),
    ("Q10", Filter(V, Call("add", (AGE, CITY)))),
    ("Q7", Filter(V, Call("is_null", (ColumnRef("v.income"),)))),
    ("Q7", Source(VISITS, (("v.income", "income"),))),
    ("Q8", UnitJoin(V, V)),
    ("Q8", Project(V, (("x", AGE), ("x", COST)))),
    ("Q21", Union(V, P)),
    ("Q9", Project(V, (("x", Call("system", (AGE,))),))),
    ("Q1", PerUnit(V, (), (("x", UnitAggregate("SUM", ColumnRef("v.patient"))),))),
    (
        "Q1",
        PerUnit(
            source(replace(VISITS, max_rows_per_unit=None), "v."),
            (),
            (("x", UnitAggregate("SUM", AGE)),),
        ),
    ),
    ("Q33", PerUnit(V, (), (("x", UnitAggregate("SUM", CITY)),))),
    ("Q33", PerUnit(V, (), (("x", UnitAggregate("MEDIAN", AGE)),))),
    ("Q26", Source(TOWNS, (("name", "name"),))),
]


@pytest.mark.parametrize(("code", "relation"), REFUSED)
def test_what_has_no_owner_or_no_type_is_refused(code: str, relation: Relation) -> None:
    with pytest.raises(QuestionRefusal) as caught:
        check_relation(relation)
    assert caught.value.code == code
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize("bounds", [(-3, 5000), (0, 1), (-1000, -999), (0, 3)])
def test_the_grid_of_one_unit_is_fine_and_a_power_of_two(bounds: tuple[int, int]) -> None:
    low, high = map(Fraction, bounds)
    grid = unit_grid(Domain(Kind.DECIMAL, low, high))
    largest = max(abs(low), abs(high))
    assert grid.numerator == 1
    assert grid.denominator & (grid.denominator - 1) == 0
    assert largest / 2**41 < grid <= largest / 2**39


# --- the lemmas, on the reference ----------------------------------------------------------

NUMBERS = st.sampled_from([7, None, -5, 0, 64, 120, 4000])
TEXTS = st.sampled_from(["Cork", None, "Faro", "Oslo", ""])
PEOPLE = st.sampled_from([1, 2, 3, 1, 2, None])

DATA = st.fixed_dictionaries(
    {
        "visits": st.lists(
            st.fixed_dictionaries(
                {
                    "patient": PEOPLE,
                    "city": TEXTS,
                    "age": NUMBERS,
                    "cost": NUMBERS.map(lambda n: None if n is None else n / 4)
                    | st.just(float("nan")),
                    "day": st.sampled_from([None, date(2024, 2, 29), date(2030, 1, 1)]),
                    "note": TEXTS,
                }
            ),
            min_size=4,
            max_size=8,
        ),
        "patients": st.lists(
            st.fixed_dictionaries({"id": PEOPLE, "weight": NUMBERS, "town": TEXTS}),
            min_size=2,
            max_size=4,
        ),
        "towns": st.lists(
            st.fixed_dictionaries({"name": TEXTS, "people": NUMBERS}), min_size=1, max_size=4
        ),
    }
)


def unnamed(relation: Relation) -> Relation:
    """Columns named 0, 1, ... so that relations can be put together."""
    return Project(relation, tuple((str(i), ColumnRef(n)) for i, n in enumerate(columns(relation))))


def prefixed(relation: Relation, prefix: str) -> Relation:
    return Project(relation, tuple((prefix + n, ColumnRef(n)) for n in columns(relation)))


@st.composite
def conditions(draw: st.DrawFn, known: dict[str, Domain]) -> Expression:
    name = draw(st.sampled_from(sorted(known)))
    match known[name].kind:
        case Kind.INTEGER | Kind.DECIMAL:
            comparison = draw(st.sampled_from(["greater_equal", "less", "equal"]))
            return Call(comparison, (ColumnRef(name), Literal(draw(st.sampled_from([-6, 7, 64])))))
        case Kind.TEXT:
            return Call("equal", (ColumnRef(name), Literal(draw(st.sampled_from(["Cork", "x"])))))
        case _:
            return Call("not", (Call("is_null", (ColumnRef(name),)),))


@st.composite
def relations(draw: st.DrawFn, depth: int = 3) -> Relation:
    """Relations whose columns are named 0, 1, ..."""
    if depth == 0:
        return unnamed(draw(st.sampled_from([V, P])))
    below = draw(relations(depth - 1))
    known = dict(columns(below, lambda *_: 4))
    numbers = [n for n, d in known.items() if d.kind.is_number and d.bounded]
    texts = [n for n, d in known.items() if d.kind is Kind.TEXT]
    choice = draw(st.sampled_from(["filter", "project", "public", "unit", "per", "union"]))
    kind = draw(st.sampled_from(list(JoinKind)))
    match choice:
        case "filter":
            return Filter(below, draw(conditions(known)))
        case "project" if numbers:
            test, name = draw(conditions(known)), ColumnRef(draw(st.sampled_from(numbers)))
            computed = Case(((test, Call("add", (name, Literal(3)))),), Literal(None))
            kept = [(n, ColumnRef(n)) for n in known]
            return Project(below, (*kept, (str(len(kept)), computed)))
        case "public" if texts:
            on = ((ColumnRef(draw(st.sampled_from(texts))), "t.name"),)
            kind = JoinKind.LEFT if kind is JoinKind.FULL else kind  # see above
            return unnamed(PublicJoin(below, towns(), on, kind))
        case "unit":
            other = draw(relations(min(depth - 1, 1)))
            return unnamed(UnitJoin(prefixed(below, "l."), prefixed(other, "r."), kind=kind))
        case "per" if numbers:
            name = ColumnRef(draw(st.sampled_from(numbers)))
            keys = tuple(
                (str(i), ColumnRef(n))
                for i, n in enumerate(draw(st.lists(st.sampled_from(sorted(known)), max_size=2)))
            )
            functions = draw(st.lists(st.sampled_from(["SUM", "AVG", "MIN", "COUNT"]), min_size=1))
            return PerUnit(
                below,
                keys,
                tuple(
                    (str(len(keys) + i), UnitAggregate(f, name)) for i, f in enumerate(functions)
                ),
            )
        case "union":
            return Union(below, Filter(below, draw(conditions(known))))
    return below


def canonical(rows: list[Row]) -> Counter[str]:
    return Counter(repr((row.unit, row.values)) for row in rows)


ANY = settings(
    max_examples=140, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@seed(20240229)
@ANY
@given(relations(), DATA)
def test_each_row_is_its_units_own(
    relation: Relation, data: dict[str, list[dict[str, Any]]]
) -> None:
    """Lemmas 1 to 8: a unit has what its own rows give it, in bounded number and size."""
    check_lemmas(relation, data)


@pytest.mark.soak
@settings(ANY, max_examples=4_000)
@given(relations(), DATA)
def test_each_row_is_its_units_own_for_long(
    relation: Relation, data: dict[str, list[dict[str, Any]]]
) -> None:
    check_lemmas(relation, data)


def check_lemmas(relation: Relation, data: dict[str, list[dict[str, Any]]]) -> None:
    whole = Reader(data)
    try:
        typing = columns(relation, whole.multiplicity)
        rows = whole.rows(relation)
    except (Truncated, QuestionRefusal):
        return
    most = row_bound(relation, whole.multiplicity)
    assert most is not None
    for person in (1, 2, 3):
        alone = {
            "visits": [r for r in data["visits"] if r["patient"] == person],
            "patients": [r for r in data["patients"] if r["id"] == person],
            "towns": data["towns"],
        }
        own = [row for row in rows if row.unit == (person,)]
        assert canonical(own) == canonical(Reader(alone).rows(relation))
        assert len(own) <= most
    assert {row.unit for row in rows} <= {(1,), (2,), (3,)}
    for row in rows:
        assert list(row.values) == list(typing)
        for name, value in row.values.items():
            assert typing[name].contains(value), (name, value, typing[name])


# --- the proofs ----------------------------------------------------------------------------


def test_every_cited_lemma_exists() -> None:
    root = Path(discreet.__file__).parent / "question"
    cited: set[int] = set()
    for file in ("ownership.py", "own_rows.py", "relation.py"):
        for text in re.findall(r"Lemmas? ([\d, and]+)", (root / file).read_text()):
            cited |= set(map(int, re.findall(r"\d+", text)))
    proofs = Path(__file__).parent.parent / "docs" / "proofs" / "ownership.md"
    proved = set(map(int, re.findall(r"^## Lemma (\d+)", proofs.read_text(), re.M)))
    assert cited
    assert cited <= proved
