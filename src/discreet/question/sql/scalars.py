"""Expressions over one row: from normal form to meaning, and back.

``read`` gives a tree in normal form (:mod:`~discreet.question.sql.normalize`) its meaning;
``write`` turns the meaning back into the normal form.  What reading forgot is
missing there, and the two trees differ.  The tables are used both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from discreet.question.domain import Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.sql.dialect import Reader, copy_span

# --- small trees -------------------------------------------------------------------------------


def table_tree(name: str, alias: str) -> exp.Table:
    """A table under its alias."""
    return exp.Table(this=exp.Identifier(this=name, quoted=True), alias=alias_tree(alias))


def graph_tree(shape: str, table: str, most: int, alias: str) -> exp.Table:
    """What a table of pairs holds as a graph, under its alias."""
    named = exp.Column(this=exp.Identifier(this=table, quoted=True))
    call = exp.Anonymous(this=shape, expressions=[named, exp.Literal.number(str(most))])
    return exp.Table(this=call, alias=alias_tree(alias))


def alias_tree(alias: str) -> exp.TableAlias:
    """The alias of a table or a sub-query."""
    return exp.TableAlias(this=exp.Identifier(this=alias, quoted=True))


def output_tree(tree: exp.Expr, name: str) -> exp.Alias:
    """A column of a query."""
    return exp.Alias(this=tree, alias=exp.Identifier(this=name, quoted=True))


# --- constants ---------------------------------------------------------------------------------
#
# A number is the decimal that was typed, never a double; a date is ``DATE '2024-02-29'``, a
# moment ``TIMESTAMP '2024-02-29 12:30:00'``.


_NUMBER = re.compile(r"(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,3})?")
_WHOLE = 2**63 - 1
_LARGEST = Fraction(10) ** 300
_TIMES = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME}


RELEASED = "released"
"""What is noted beside a constant that nobody typed: it may be any text."""


def is_released(tree: exp.Expr) -> bool:
    """Whether a constant stands in it that is an answer."""
    return any(part.meta.get(RELEASED) for part in tree.walk() if part._meta)


def normalize_constant(node: exp.Expr, reader: Reader) -> exp.Expr | None:
    """``node`` in its one spelling, if it is a constant."""
    match node:
        case exp.Literal(is_string=False):
            return copy_span(write_constant(read_number(node, reader)), node)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return copy_span(type(node)(**node.args), node)
        case exp.Cast(this=exp.Literal(is_string=True) as text) if _is_time(node):
            return copy_span(write_constant(_moment(node, text.name, reader)), text)
        case exp.Neg():
            inner = normalize_constant(_drop_parentheses(node.this), reader)
            value = None if inner is None else read_constant(inner)
            if inner is None or isinstance(value, bool) or not isinstance(value, int | Fraction):
                return None
            return copy_span(write_constant(-value), inner)
        case _:
            return None


def is_constant(node: exp.Expr) -> bool:
    """Whether a tree in normal form is a constant."""
    if isinstance(node, exp.Cast):
        text = node.this
        return isinstance(text, exp.Literal) and bool(text.is_string) and _is_time(node)
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null)


def read_constant(node: exp.Expr) -> Value | None:
    """The value of a constant in normal form."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Cast():
            text = node.this.name
            return datetime.fromisoformat(text) if len(text) > 10 else date.fromisoformat(text)
        case exp.Literal(is_string=True):
            return str(node.this)
        case _:
            number = Fraction(node.this)
            return int(number) if "." not in node.this else number


def write_constant(value: Value | None) -> exp.Expr:
    """The one spelling of ``value``; :func:`read_constant` gives it back.

    >>> write_constant(Fraction(1, 8)).sql(), write_constant(-7).sql()
    ('0.125', '-7')
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return exp.Literal(this=str(value), is_string=False)
        case str():
            return exp.Literal(this=value, is_string=True)
        case datetime():
            text = exp.Literal(this=value.isoformat(sep=" "), is_string=True)
            return exp.Cast(this=text, to=exp.DataType(this=exp.DType.TIMESTAMP))
        case date():
            text = exp.Literal(this=value.isoformat(), is_string=True)
            return exp.Cast(this=text, to=exp.DataType(this=exp.DType.DATE))
        case _:
            return exp.Literal(this=_decimal(value), is_string=False)


def _decimal(number: Fraction) -> str:
    """All digits of a number whose denominator divides a power of ten; a point marks it."""
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    scaled = str(abs((number * 10**digits).numerator)).rjust(digits + 1, "0")
    whole, part = scaled[: len(scaled) - digits], scaled[len(scaled) - digits :]
    return f"{'-' if number < 0 else ''}{whole}.{part or '0'}"


def _drop_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_time(node: exp.Cast) -> bool:
    kind = node.args["to"].this
    return kind is exp.DType.DATE or kind in _TIMES


def read_number(node: exp.Literal, reader: Reader) -> int | Fraction:
    """A number as it is typed; refused before it is worked out if that could take long."""
    text = node.name
    if _NUMBER.fullmatch(text):
        number = Fraction(text)
        if text.isdigit():
            if number <= _WHOLE:
                return int(number)
        elif number <= _LARGEST:
            return number
    raise reader.refusal(
        "Q31",
        node,
        "this number is too large or too long.",
        why="it could not be compared with a person's value exactly.",
        fix="write at most 18 digits, or a decimal such as 12.5 or 1.5e9.",
    )


def _moment(node: exp.Cast, text: str, reader: Reader) -> date | datetime:
    try:
        if node.args["to"].this is exp.DType.DATE:
            if len(text) == 10:
                return date.fromisoformat(text)
        elif len(text) >= 10 and text[-1].isdigit() and "+" not in text:
            found = datetime.fromisoformat(text)
            if found.tzinfo is None:
                return found
    except ValueError:
        pass
    raise reader.refusal(
        "Q31",
        node,
        "this is not a date or a time of the calendar.",
        why="a constant must mean the same for every row.",
        fix="write DATE '2024-02-29' or TIMESTAMP '2024-02-29 12:30:00'.",
    )


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
    return flatten_chain(node, "and")


def flatten_chain(node: exp.Expr, name: str) -> list[exp.Expr]:
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
    function, arguments = _split_call(node)
    return Call(function, tuple(read(argument, leaf) for argument in arguments))


def _split_call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
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
