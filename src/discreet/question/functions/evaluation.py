"""Expressions on Python values: what the engine computes, one row at a time."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions.declaration import Plain, as_engine, plain
from discreet.question.functions.domains import (
    Columns,
    Outcome,
    column_named,
    domain_of,
    function_named,
    narrowed,
)


def evaluate(
    expression: Expression, row: Mapping[str, Plain], columns: Columns | None = None
) -> Plain:
    """The value of ``expression`` on ``row``; a decimal is a float, NULL is None.

    With ``columns``, whole numbers become doubles exactly where the engine's
    do; without, they stay exact, as is wanted of released values.

    >>> ratio = Call("divide", (ColumnRef("total"), ColumnRef("n")))
    >>> evaluate(ratio, {"total": 30, "n": 4}), evaluate(ratio, {"total": 30, "n": 0})
    (7.5, None)
    """
    match expression:
        case ColumnRef(name=name):
            return plain(column_named(name, row))
        case Literal(value=value):
            return plain(value)
        case Call(function="if", arguments=(condition, a, b)):
            return evaluate(Case(((condition, a),), b), row, columns)
        case Call(function=name, arguments=arguments):
            values = [evaluate(argument, row, columns) for argument in arguments]
            kind = None if columns is None else domain_of(expression, columns).kind
            result = function_named(name).evaluate(*(as_engine(v, kind) for v in values))
            return as_engine(result, kind)
        case Case():
            kind = None if columns is None else domain_of(expression, columns).kind
            return as_engine(_chosen(expression, row, columns), kind)


def _chosen(case: Case, row: Mapping[str, Plain], columns: Columns | None) -> Plain:
    """The value of the branch taken, computed with what the conditions taught about it."""
    for condition, value in case.branches:
        if evaluate(condition, row, columns) is True:
            return evaluate(value, row, columns and narrowed(columns, condition, Outcome.TRUE))
        columns = columns and narrowed(columns, condition, Outcome.NOT_TRUE)
    return evaluate(case.otherwise, row, columns)
