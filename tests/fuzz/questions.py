"""Random plans over a schema: relations, expressions, keys, bounds, measurements.

Everything drawn is well-kinded, so that nearly all of it has a typing; what is
refused is simply drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from discreet.price.plan import (
    Contribution,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.price.recipes import put_on_grid
from discreet.question.domain import Domain, Kind, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of
from discreet.question.ownership import Multiplicity, columns, row_bound
from discreet.question.question import Key
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
from discreet.question.schema import Schema, Table

Columns = Mapping[str, Domain]


@dataclass(frozen=True)
class Focus:
    """What to look at more closely: one shape of relation, one way of bounding, one measurement."""

    shape: str | None = None
    limits: str | None = None
    measured: type[GroupMean] | None = None


ANYWHERE = Focus()
SHAPES = ("source", "filter", "project", "public join", "unit join", "per unit", "union")


def of_kind(known: Columns, *kinds: Kind) -> list[str]:
    return [name for name, domain in known.items() if domain.kind in kinds]


# --- expressions ---------------------------------------------------------------------------

LITERALS: dict[Kind, list[Value]] = {
    Kind.INTEGER: [0, 1, -3, 7, 10],
    Kind.DECIMAL: [Fraction(1, 4), Fraction(-5, 2), Fraction(3)],
    Kind.TEXT: ["north", "", "a"],
    Kind.DATE: [date(2024, 2, 1)],
    Kind.BOOLEAN: [True, False],
}


@st.composite
def values(draw: Any, known: Columns, kind: Kind, depth: int = 2) -> Expression:
    """An expression of one kind."""
    names = of_kind(known, kind)
    plain = [*map(ColumnRef, names), Literal(draw(st.sampled_from(LITERALS[kind])))]
    shape = draw(st.integers(0, 11)) if depth else 0
    if shape <= 6:
        return draw(st.sampled_from(plain[:-1] or plain))
    if shape == 7:
        return plain[-1]
    below = values(known, kind, depth - 1)
    if shape == 8:
        otherwise = draw(st.one_of(below, st.just(Literal(None))))
        return Case(((draw(conditions(known, depth - 1)), draw(below)),), otherwise)
    if shape == 9:
        return Call("coalesce", (draw(below), draw(below)))
    return draw(computed(known, kind, depth - 1))


@st.composite
def computed(draw: Any, known: Columns, kind: Kind, depth: int) -> Expression:
    a = draw(values(known, kind, depth))
    match kind:
        case Kind.INTEGER | Kind.DECIMAL:
            name = draw(st.sampled_from(["add", "subtract", "multiply", "negate", "abs", "least"]))
            if name in ("negate", "abs"):
                return Call(name, (a,))
            if kind is Kind.DECIMAL and name == "least":
                name = "divide"
            return Call(name, (a, draw(values(known, kind, depth))))
        case Kind.TEXT:
            return Call(draw(st.sampled_from(["lower", "upper", "trim"])), (a,))
        case Kind.DATE:
            return Call("date_trunc_month", (a,))
        case _:
            return draw(conditions(known, depth))


@st.composite
def conditions(draw: Any, known: Columns, depth: int = 1) -> Expression:
    """Something true, false or NULL."""
    shape = draw(st.integers(0, 5))
    kinds = sorted({d.kind for d in known.values() if d.kind is not Kind.TIMESTAMP})
    kind = draw(st.sampled_from(kinds))
    a = draw(values(known, kind, max(0, depth - 1)))
    if shape == 0:
        return Call("is_null", (a,))
    if shape == 1 and depth:
        both = draw(conditions(known, depth - 1)), draw(conditions(known, depth - 1))
        return Call(draw(st.sampled_from(["and", "or"])), both)
    if shape == 2 and depth:
        return Call("not", (draw(conditions(known, depth - 1)),))
    if shape == 3:
        listed = [Literal(v) for v in draw(st.lists(st.sampled_from(LITERALS[kind]), min_size=1))]
        return Call("in", (a, *listed))
    name = draw(st.sampled_from(["equal", "less", "greater_equal", "not_equal"]))
    return Call(name, (a, draw(values(known, kind, 0))))


# --- relations -----------------------------------------------------------------------------


def read(table: Table, alias: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"{alias}.{c.name}", c.name) for c in table.columns)


@st.composite
def relations(draw: Any, schema: Schema, multiplicity: Multiplicity, shapes: list[str]) -> Relation:
    """A private relation, made by applying ``shapes`` one after the other to the visits."""
    visits = schema.tables["visits"]
    relation: Relation = Source(visits, read(visits, "v"))
    for place, shape in enumerate(shapes):
        known = columns(relation, multiplicity)
        match shape:
            case "filter":
                relation = Filter(relation, draw(conditions(known)))
            case "project":
                relation = draw(projections(relation, known))
            case "public join":
                relation = draw(public_joins(relation, known, schema, f"c{place}"))
            case "unit join" if not visits.by_row:
                relation = draw(unit_joins(relation, schema, multiplicity, f"u{place}"))
            case "per unit":
                relation = draw(per_units(relation, known))
            case "union":
                sides = [Filter(relation, draw(conditions(known))) for _ in range(2)]
                relation = Union(*sides)
    return relation


@st.composite
def projections(draw: Any, below: Relation, known: Columns) -> Relation:
    kept = [(name, ColumnRef(name)) for name in draw(st.permutations(list(known)))[:4]]
    new = []
    for place, kind in enumerate(draw(st.lists(st.sampled_from(list(LITERALS)), max_size=2))):
        new.append((f"p{place}", draw(values(known, kind))))
    named = dict([*kept, *new])
    return Project(below, tuple(named.items()))


@st.composite
def public_joins(
    draw: Any, below: Relation, known: Columns, schema: Schema, alias: str
) -> Relation:
    cities = PublicSource(schema.tables["cities"], read(schema.tables["cities"], alias))
    on: tuple[Expression, str]
    if of_kind(known, Kind.TEXT) and draw(st.integers(0, 3)):
        on = (draw(values(known, Kind.TEXT, 0)), f"{alias}.name")
    else:
        kind = draw(st.sampled_from([Kind.INTEGER, Kind.DECIMAL]))
        on = (draw(values(known, kind, 1)), f"{alias}.{draw(st.sampled_from(['pop', 'n']))}")
    kinds = (JoinKind.INNER, JoinKind.LEFT)  # a public row without a partner is nobody's
    return PublicJoin(below, cities, (on,), draw(st.sampled_from(kinds)))


@st.composite
def unit_joins(
    draw: Any, below: Relation, schema: Schema, multiplicity: Multiplicity, alias: str
) -> Relation:
    right: Relation = Source(schema.tables["people"], read(schema.tables["people"], alias))
    if draw(st.booleans()):
        known = columns(right, multiplicity)
        total = UnitAggregate("SUM", ColumnRef(f"{alias}.age"))
        right = PerUnit(
            Filter(right, draw(conditions(known))),
            (),
            ((f"{alias}.total", total), (f"{alias}.rows", UnitAggregate("COUNT"))),
        )
    return UnitJoin(below, right, (), draw(st.sampled_from(JoinKind)))


@st.composite
def per_units(draw: Any, below: Relation, known: Columns) -> Relation:
    keys = tuple(
        (name, ColumnRef(name))
        for name in draw(st.sampled_from([[], list(known)[:1], list(known)[3:4]]))
    )
    aggregates: list[tuple[str, UnitAggregate]] = [("rows", UnitAggregate("COUNT"))]
    for place, name in enumerate(of_kind(known, Kind.INTEGER, Kind.DECIMAL)[:2]):
        function = draw(st.sampled_from(["COUNT", "COUNT_DISTINCT", "SUM", "MIN", "MAX", "AVG"]))
        bounded = known[name].bounded
        if bounded or function not in ("SUM", "AVG"):
            aggregates.append((f"a{place}", UnitAggregate(function, ColumnRef(name))))
    return PerUnit(below, keys, tuple(aggregates))


# --- plans ---------------------------------------------------------------------------------


@st.composite
def keys(draw: Any, known: Columns) -> Key:
    coded = [name for name, domain in known.items() if domain.values and len(domain.values) > 2]
    if coded and draw(st.booleans()):
        name = draw(st.sampled_from(coded))
        return Key("k", ColumnRef(name), (*(known[name].values or ()), None))
    kind = draw(st.sampled_from([Kind.TEXT, Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN, Kind.DECIMAL]))
    expression = draw(values(known, kind, 1))
    listed = domain_of(expression, known).list_values(20)
    if listed is None or draw(st.integers(0, 3)) == 0:
        return Key("k", expression, None)
    some = tuple(draw(st.permutations(listed)))[: draw(st.integers(1, max(1, len(listed))))]
    return Key("k", expression, (*some, *draw(st.sampled_from([(), (None,)]))))


@st.composite
def variables(draw: Any, known: Columns) -> Scaled:
    """A number on a grid: its whole domain, or a narrower band of it."""
    kind = draw(st.sampled_from([Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.BOOLEAN]))
    expression = draw(values(known, kind, 1))
    domain = domain_of(expression, known)
    if domain.bounded and draw(st.booleans()) and domain.kind.is_number:
        return put_on_grid(expression, domain, draw(st.integers(2, 8)))
    grid = Fraction(2) ** draw(st.integers(-3, 2))
    return Scaled(expression, grid, draw(st.integers(-5, 5)), draw(st.integers(1, 12)))


@st.composite
def measurements(draw: Any, known: Columns, focus: Focus = ANYWHERE) -> Measurement:
    condition = None if draw(st.integers(0, 2)) else draw(conditions(known))
    match 7 if focus.measured else draw(st.integers(0, 7)):
        case 0 | 1:
            count = draw(st.integers(0, 2))
            degrees = tuple(draw(st.integers(1, 2)) for _ in range(count))
            chosen = tuple(draw(variables(known)) for _ in range(count))
            return Moments(chosen, degrees, draw(st.booleans()), condition)
        case 2:
            return Units(condition)
        case 3:
            return Histogram(draw(variables(known)), condition)
        case 4:
            kind = draw(st.sampled_from([Kind.TEXT, Kind.INTEGER]))
            listed = tuple(dict.fromkeys(LITERALS[kind]))
            return ValueCounts(draw(values(known, kind, 1)), listed, condition)
        case 5:
            kind = draw(st.sampled_from([Kind.TEXT, Kind.INTEGER, Kind.DECIMAL]))
            return DistinctValues(draw(values(known, kind, 1)), condition)
        case 6:
            return Sum(draw(variables(known)), condition)
        case _:
            kind = draw(st.sampled_from([Kind.INTEGER, Kind.DECIMAL]))
            grid = Fraction(2) ** draw(st.integers(-2, 1))
            low, span = draw(st.integers(-6, 3)), draw(st.integers(1, 9))
            total = focus.measured or draw(st.sampled_from([GroupTotal, GroupSum, GroupMean]))
            return total(draw(values(known, kind, 1)), grid, low, span, condition)


@st.composite
def plans(draw: Any, schema: Schema, multiplicity: Multiplicity, focus: Focus = ANYWHERE) -> Plan:
    depth = draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2, 2, 3]))
    shapes = [draw(st.sampled_from(SHAPES[1:])) for _ in range(depth)]
    source = draw(relations(schema, multiplicity, [focus.shape] if focus.shape else shapes))
    known = columns(source, multiplicity)
    grouped = tuple(draw(keys(known)) for _ in range(draw(st.sampled_from([0, 1, 1, 2]))))
    most = row_bound(source, multiplicity)
    small = st.integers(1, 3)
    limits = focus.limits or draw(st.sampled_from(["most", "most", "rows", "groups", "groups"]))
    if most is not None and limits == "most":
        contribution = Contribution(rows=most, enforced=True)
    elif limits != "groups":
        contribution = Contribution(rows=draw(small))
    else:
        contribution = Contribution(groups=draw(small), rows_per_group=draw(small))
    wanted = tuple(draw(measurements(known, focus)) for _ in range(draw(st.integers(1, 3))))
    return Plan(source, grouped, contribution, wanted)
