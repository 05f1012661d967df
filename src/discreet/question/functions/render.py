"""Expressions as engine SQL, and columns read through their declaration."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import nodes
from discreet.question.functions.declaration import cast_to, too_deep, union
from discreet.question.functions.domains import (
    Columns,
    Outcome,
    column_named,
    domain_of,
    domain_of_literal,
    function_named,
    narrowed,
    result_on,
)
from discreet.question.functions.nodes import Node
from discreet.question.schema import Column

_LARGEST = 20_000  # nodes of one expression


def quoted(name: str) -> Node:
    """A column, its name in quotes."""
    return exp.column(exp.to_identifier(name, quoted=True))


def render(
    expression: Expression, columns: Columns, column: Callable[[str], Node] = quoted
) -> Node:
    """The expression for the engine, total on every row; ``column`` says how to write a name.

    >>> age = Domain(Kind.INTEGER)
    >>> half = Call("divide", (ColumnRef("v.age"), Literal(2)))
    >>> render(half, {"v.age": age}).sql("duckdb")
    '(CAST("v.age" AS DOUBLE) / CAST(CAST(2 AS BIGINT) AS DOUBLE))'
    """
    return _written(expression, columns, column)[0]


def _written(
    expression: Expression, columns: Columns, column: Callable[[str], Node]
) -> tuple[Node, Domain]:
    match expression:
        case ColumnRef(name=name):
            domain: Domain = column_named(name, columns)
            return column(name), domain
        case Literal(value=value):
            domain = domain_of_literal(value)
            return nodes.literal(domain.values[0] if domain.values else None), domain
        case Call(function="if", arguments=(condition, a, b)):
            return _written(Case(((condition, a),), b), columns, column)
        case Call(function=name, arguments=arguments):
            function = function_named(name)
            written = [_written(argument, columns, column) for argument in arguments]
            domains = tuple(domain for _, domain in written)
            node = function.render(tuple(node for node, _ in written), domains)
            _refuse_if_large(node)
            return node, result_on(name, domains)
        case Case():
            return _case(expression, columns, column)


def _case(case: Case, columns: Columns, column: Callable[[str], Node]) -> tuple[Node, Domain]:
    branches, known = [], columns
    for condition, value in case.branches:
        check, domain = _written(condition, known, column)
        inside = narrowed(known, condition, Outcome.TRUE)
        branches.append((cast_to(check, domain, Kind.BOOLEAN), _written(value, inside, column)))
        known = narrowed(known, condition, Outcome.NOT_TRUE)
    otherwise, last = _written(case.otherwise, known, column)
    result = union([*(domain for _, (_, domain) in branches), last], "CASE")
    node = nodes.case(
        *((check, cast_to(value, domain, result.kind)) for check, (value, domain) in branches),
        otherwise=cast_to(otherwise, last, result.kind),
    )
    _refuse_if_large(node)
    return node, domain_of(case, columns)


def _refuse_if_large(node: Node) -> None:
    """A guard names its argument twice, so a deep expression could grow beyond reason."""
    for size, _ in enumerate(node.walk()):
        if size > _LARGEST:
            too_deep()


# --- columns -------------------------------------------------------------------------------


def read(column: Column, raw: Node) -> Node:
    """The column through its declaration: whatever ``raw`` is, the value is in its domain.

    NaN and the infinities are NULL, other numbers and dates are clipped to the
    bounds, values that are not allowed are NULL, texts are cut; a column that
    is declared never NULL has its low bound or its first value in NULL's place.
    """
    domain = column.domain
    node = typed(column.kind, raw)
    if domain.values is not None and column.kind is not Kind.BOOLEAN:
        allowed = [nodes.literal(value) for value in domain.values]
        node = nodes.case((exp.In(this=nodes.paren(node), expressions=allowed), node.copy()))
    elif column.ends is not None:
        node = nodes.clipped(node, *column.ends)
    if not domain.nullable:
        node = nodes.call("COALESCE", node, nodes.literal(column.instead_of_null))
    return node


def typed(kind: Kind, raw: Node) -> Node:
    """``raw`` as a value of ``kind``, or NULL: what holds of every value of a kind holds of it."""
    node = nodes.try_cast(raw, kind)
    match kind:
        case Kind.DECIMAL:
            return nodes.finite(node)
        case Kind.DATE | Kind.TIMESTAMP:
            return nodes.in_calendar(node, kind)
        case Kind.TEXT:
            return nodes.shortened(node)
        case _:
            return node
