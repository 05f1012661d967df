"""Pieces of engine SQL, as sqlglot nodes: typed literals, casts, guards, quoted names, SELECT.

Nothing here is text from an analyst: a name is quoted, a constant is typed, and
every piece is total.  Written for DuckDB (:class:`EngineDialect`); each node is chosen so that
sqlglot prints it as it is, without a translation that could change its meaning.  Nodes are
put together in place: sqlglot's builders would copy the whole statement at every clause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

from discreet.question.domain import (
    TEXT_LIMIT,
    Kind,
    Value,
    calendar_bounds,
    value_at,
)

Node = exp.Expr


class EngineGenerator(Generator):
    """Prints the nodes of this module for DuckDB.

    sqlglot's own dialect translates hundreds of functions of others, which we do not write, and
    takes longer to import than all of them to print.
    """

    JOIN_HINTS = False
    SEMI_ANTI_JOIN_WITH_SIDE = False
    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **Generator.TRANSFORMS,
        exp.IntDiv: lambda self, e: self.binary(e, "//"),
    }
    TYPE_MAPPING: ClassVar[dict[Any, Any]] = {
        **Generator.TYPE_MAPPING,
        exp.DType.VARCHAR: "TEXT",
    }


class EngineDialect(Dialect):
    """What the engine reads, as far as we write it."""

    NULL_ORDERING = "nulls_are_last"
    Generator = EngineGenerator


ENGINE = EngineDialect()
"""To print a node: ``node.sql(ENGINE)``."""

TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.DECIMAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""What each kind is in the engine."""

# Parsing a type's name takes longer than all the rest: done once, then copied.
_TYPE_NODES = {
    name: exp.DataType.build(name, dialect=ENGINE) for name in (*TYPES.values(), "INT", "HUGEINT")
}


def call(name: str, *arguments: Node) -> Node:
    """A function of the engine, printed as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def paren(node: Node) -> Node:
    """The node, in parentheses unless it cannot be torn apart."""
    plain = (exp.Column, exp.Anonymous, exp.Paren, exp.Cast, exp.Case, exp.Literal, exp.Boolean)
    return node if isinstance(node, plain) else exp.Paren(this=node)


def infix(operator: type[exp.Binary], left: Node, right: Node) -> Node:
    """An operator between two nodes, in parentheses of its own."""
    return exp.Paren(this=operator(this=paren(left), expression=paren(right)))


def cast(node: Node, kind: Kind) -> Node:
    """A cast that the domain has shown cannot fail."""
    return exp.Cast(this=node, to=_TYPE_NODES[TYPES[kind]].copy())


def try_cast(node: Node, kind: Kind) -> Node:
    """A cast that gives NULL where it fails."""
    return exp.TryCast(this=node, to=_TYPE_NODES[TYPES[kind]].copy())


def cast_short(node: Node) -> Node:
    """A cast to 32 bits, for the few places where the engine takes nothing wider."""
    return exp.Cast(this=node, to=_TYPE_NODES["INT"].copy())


def wide(node: Node) -> Node:
    """A whole number in 128 bits, where no sum or product of two of 64 bits can overflow."""
    return exp.Cast(this=node, to=_TYPE_NODES["HUGEINT"].copy())


def case(*branches: tuple[Node, Node], otherwise: Node | None = None) -> Node:
    """CASE WHEN ... THEN ... [ELSE ...] END."""
    return exp.Case(
        ifs=[exp.If(this=condition, true=value) for condition, value in branches],
        default=otherwise,
    )


def integer(number: int) -> Node:
    """A 64-bit constant: DuckDB would read a bare one as 32 bits and overflow."""
    return cast(exp.Literal.number(str(number)) if number >= 0 else _negative(number), Kind.INTEGER)


def whole(number: int) -> Node:
    """A whole constant, in 64 bits or, if it does not fit, in 128."""
    return integer(number) if abs(number) < 2**63 else wide(exp.Literal.string(str(number)))


def cast_whole(node: Node, most: int) -> Node:
    """The type of 0 ... most: the same for every way of computing it, so that hashes agree."""
    return wide(node) if most >= 2**62 else cast(node, Kind.INTEGER)


def _negative(number: int) -> Node:
    return exp.Literal.string(str(number))  # -2**63 has no positive twin to negate


def text(value: str) -> Node:
    """A text constant; the zero character, which ends a statement, is spelled CHR(0)."""
    pieces = [exp.Literal.string(piece) for piece in value.split("\0")]
    node: Node = pieces[0]
    for piece in pieces[1:]:
        node = infix(exp.DPipe, infix(exp.DPipe, node, call("CHR", exp.Literal.number("0"))), piece)
    return node


def literal(value: Value | None) -> Node:
    """A typed constant.

    >>> literal(Fraction(1, 10)).sql(ENGINE), literal(date(2024, 2, 29)).sql(ENGINE)
    ("CAST('0.1' AS DOUBLE)", "CAST('2024-02-29' AS DATE)")
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return integer(value)
        case str():
            return text(value)
        case datetime():
            return cast(exp.Literal.string(value.isoformat(sep=" ")), Kind.TIMESTAMP)
        case date():
            return cast(exp.Literal.string(value.isoformat()), Kind.DATE)
        case _:
            return cast(exp.Literal.string(repr(float(value))), Kind.DECIMAL)


def make_null(kind: Kind) -> Node:
    """NULL of a kind."""
    return cast(exp.Null(), kind)


def present(node: Node) -> Node:
    """Whether the value is not NULL."""
    return exp.Not(this=exp.Is(this=paren(node), expression=exp.Null()))


def finite(node: Node) -> Node:
    """The double, or NULL if it is infinite or not a number."""
    return case((call("ISFINITE", node), node.copy()))


def nonzero(node: Node) -> Node:
    """The number, or NULL if it is zero."""
    return case((exp.NEQ(this=paren(node), expression=exp.Literal.number("0")), node.copy()))


def in_calendar(node: Node, kind: Kind) -> Node:
    """The date or timestamp, or NULL outside the years 1 to 9999 (infinity is outside)."""
    low, high = calendar_bounds(kind)
    return case((between(node, low, high, kind), node.copy()))


def change_zone(node: Node, old: str, new: str) -> Node:
    """What clocks in ``new`` show when those in ``old`` show the timestamp."""
    return call("TIMEZONE", text(new), call("TIMEZONE", text(old), node))


def between(node: Node, low: Fraction, high: Fraction, kind: Kind) -> Node:
    """Whether low <= node <= high, both bounds given as numbers of the kind."""
    return exp.And(
        this=exp.GTE(this=paren(node), expression=literal(value_at(kind, low))),
        expression=exp.LTE(this=paren(node.copy()), expression=literal(value_at(kind, high))),
    )


def clip(node: Node, low: Value, high: Value) -> Node:
    """The value moved into low ... high; NULL stays NULL (it is not less than anything)."""
    return case(
        (exp.LT(this=paren(node), expression=literal(low)), literal(low)),
        (exp.GT(this=paren(node.copy()), expression=literal(high)), literal(high)),
        otherwise=node.copy(),
    )


def trim(node: Node) -> Node:
    """The text without spaces at its ends; left to itself, the engine takes other blanks too."""
    return call("TRIM", node, exp.Literal.string(" "))


def shorten(node: Node) -> Node:
    """The first ``TEXT_LIMIT`` characters of a text."""
    return call("LEFT", node, exp.Literal.number(str(TEXT_LIMIT)))


# --- statements ---------------------------------------------------------------------------------

Definition = tuple[str, exp.Query, bool]
"""A name in the WITH clause, what it stands for, and whether it must be computed once."""


def quote_column(identifier: str, *, of: str | None = None) -> exp.Column:
    """A column by its identifier, quoted."""
    return exp.column(
        exp.to_identifier(identifier, quoted=True),
        table=None if of is None else exp.to_identifier(of, quoted=True),
    )


def add_alias(node: Node, identifier: str) -> exp.Alias:
    """The node under a name, quoted."""
    return exp.Alias(this=node, alias=exp.to_identifier(identifier, quoted=True))


def choose_identifiers(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """A name in the engine for each of ``names``: itself wherever that is safe.

    The engine takes names that differ in case for the same, and those of this
    package begin with an underscore.

    >>> choose_identifiers(["v.Age", "v.age", "_unit0"])
    {'v.Age': 'v.Age', 'v.age': 'column 1', '_unit0': 'column 2'}
    """
    used = {name.casefold() for name in taken}
    found: dict[str, str] = {}
    for name in names:
        chosen, number = name, len(found)
        plain = name.isprintable() and not name.startswith("_") and 0 < len(name) <= 200
        while not plain or chosen.casefold() in used:
            chosen, plain, number = f"column {number}", True, number + 1
        used.add(chosen.casefold())
        found[name] = chosen
    return found


def quote_table(*names: str) -> exp.Table:
    """A table or view of the engine, every part of its name quoted."""
    parts = [exp.to_identifier(name, quoted=True) for name in names]
    return exp.Table(
        this=parts[-1],
        db=parts[-2] if len(parts) > 1 else None,
        catalog=parts[-3] if len(parts) > 2 else None,
    )


def select(
    columns: Iterable[Node],
    source: Node,
    *,
    where: Sequence[Node] = (),
    group: Iterable[Node] = (),
    joins: Sequence[exp.Join] = (),
) -> exp.Select:
    """SELECT columns FROM source [JOIN ...] [WHERE ...] [GROUP BY ...]."""
    query = exp.Select(expressions=list(columns))
    query.set("from_", exp.From(this=source))
    if joins:
        query.set("joins", list(joins))
    if where:
        query.set("where", exp.Where(this=conjoin(where)))
    keys = [key.copy() for key in group]
    if keys:
        query.set("group", exp.Group(expressions=keys))
    return query


def conjoin(conditions: Sequence[Node]) -> Node:
    """Every condition, joined by AND."""
    return _chain(exp.And, conditions)


def disjoin(conditions: Sequence[Node]) -> Node:
    """At least one condition, joined by OR."""
    return _chain(exp.Or, conditions)


def _chain(operator: type[exp.Binary], conditions: Sequence[Node]) -> Node:
    first, *others = conditions
    if not others:
        return first
    first = paren(first)
    for other in others:
        first = operator(this=first, expression=paren(other))
    return first


def select_all(source: Node) -> exp.Select:
    """SELECT * FROM source."""
    return select([exp.Star()], source)


def nest_query(query: exp.Query, alias: str) -> Node:
    """A query in the place of a table."""
    name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Subquery(this=query, alias=name)


def add_definitions(query: exp.Query, definitions: Iterable[Definition]) -> exp.Query:
    """The query, preceded by what its names stand for."""
    steps = [
        exp.CTE(
            this=step,
            alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
            materialized=True if once else None,
        )
        for name, step, once in definitions
    ]
    query.set("with_", exp.With(expressions=steps))
    return query


def name_definitions(query: exp.Query) -> list[Definition]:
    """What the names of a query stand for, as :func:`add_definitions` was given it."""
    found = query.args.get("with_")
    return [
        (step.args["alias"].this.name, step.this, bool(step.args.get("materialized")))
        for step in (found.expressions if found else ())
    ]


def order_by(keys: Iterable[Node]) -> exp.Order:
    """ORDER BY keys, NULL last."""
    return exp.Order(expressions=[exp.Ordered(this=key, nulls_first=False) for key in keys])
