"""Expressions over one row: from normal form to meaning, and back.

``read`` gives a tree in normal form (:mod:`~discreet.question.sql.normal`) its meaning;
``write`` turns the meaning back into the normal form.  What reading forgot is
missing there, and the two trees differ.  The tables are used both ways.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.sql.constants import is_constant, read_constant, write_constant

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "integer_divide",
    exp.Mod: "modulo",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.Like: "like",
}
UNARY: dict[type[exp.Expr], str] = {exp.Not: "not", exp.Neg: "negate"}
CHAINS: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
CASTS: dict[exp.DType, str] = {
    **dict.fromkeys(
        (exp.DType.BIGINT, exp.DType.INT, exp.DType.SMALLINT, exp.DType.TINYINT), "cast_integer"
    ),
    **dict.fromkeys((exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL), "cast_decimal"),
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR), "cast_text"),
    exp.DType.DATE: "cast_date",
    exp.DType.BOOLEAN: "cast_boolean",
    **dict.fromkeys(
        (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME), "cast_timestamp"
    ),
}
CAST_TYPES: dict[str, exp.DType] = {}
for _kind, _name in CASTS.items():
    CAST_TYPES.setdefault(_name, _kind)


def column(name: str) -> exp.Column:
    """A column of a relation, in normal form."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call in normal form."""
    return exp.Anonymous(this=name.upper(), expressions=list(arguments))


def conjunction(members: list[exp.Expr]) -> exp.Expr:
    """All of ``members`` (in normal form), as one condition in normal form."""
    return members[0] if len(members) == 1 else call("and", *members)


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions, in normal form, that ``node`` is the AND of."""
    return chained(node, "and")


def chained(node: exp.Expr, name: str) -> list[exp.Expr]:
    """The members of ``node``, in normal form, if it is a chain of that name; else itself."""
    known = {"this", "expressions"}  # anything else was not read, and must not get lost here
    if isinstance(node, exp.Anonymous) and node.this == name.upper() and set(node.args) <= known:
        return list(node.expressions)
    return [node]


# --- meaning and back ----------------------------------------------------------------------

Leaf = Callable[[exp.Expr], Expression | None]
_BY_NAME = {name: kind for kind, name in (*BINARY.items(), *UNARY.items())}


def read(node: exp.Expr, leaf: Leaf) -> Expression:
    """The meaning of a tree in normal form; ``leaf`` is asked first about every node."""
    found = leaf(node)
    if found is not None:
        return found
    if isinstance(node, exp.Column):
        return ColumnRef(node.name)
    if is_constant(node):
        return Literal(read_constant(node))
    if isinstance(node, exp.Case):
        branches = tuple(
            (read(branch.this, leaf), read(branch.args["true"], leaf))
            for branch in node.args["ifs"]
        )
        return Case(branches, read(node.args["default"], leaf))
    function, arguments = _called(node)
    return Call(function, tuple(read(argument, leaf) for argument in arguments))


def _called(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """The function that a tree in normal form is a call of, and its arguments."""
    match node:
        case exp.Is():
            null = isinstance(node.expression, exp.Null)
            return "is_null" if null else "is_true", [node.this]
        case exp.In():
            return "in", [node.this, *node.expressions]
        case exp.Cast():
            return CASTS[node.args["to"].this], [node.this]
        case exp.Anonymous():
            return node.name.lower(), node.expressions
        case exp.Not() | exp.Neg():
            return UNARY[type(node)], [node.this]
        case _:
            return BINARY[type(node)], [node.this, node.expression]


def write(expression: Expression, leaf: Callable[[str], exp.Expr]) -> exp.Expr:
    """The normal form of a meaning; ``leaf`` gives the tree of a column's name."""
    match expression:
        case ColumnRef(name=name):
            return leaf(name)
        case Literal(value=value):
            return write_constant(value)
        case Case(branches=branches, otherwise=otherwise):
            ifs = [exp.If(this=write(c, leaf), true=write(v, leaf)) for c, v in branches]
            return exp.Case(ifs=ifs, default=write(otherwise, leaf))
        case Call(function=function, arguments=arguments):
            return _write_call(function, [write(argument, leaf) for argument in arguments])


def _write_call(function: str, arguments: list[exp.Expr]) -> exp.Expr:
    if function == "is_null":
        return exp.Is(this=arguments[0], expression=exp.Null())
    if function == "is_true":
        return exp.Is(this=arguments[0], expression=exp.Boolean(this=True))
    if function == "in":
        return exp.In(this=arguments[0], expressions=arguments[1:])
    if function in CAST_TYPES:
        return exp.Cast(this=arguments[0], to=exp.DataType(this=CAST_TYPES[function]))
    operator = _BY_NAME.get(function)
    if operator is None:
        return call(function, *arguments)
    if len(arguments) == 1:
        return operator(this=arguments[0])
    return operator(this=arguments[0], expression=arguments[1])
