"""Constants: from a syntax tree to an exact value and back to the same tree.

A number is the decimal that was typed, never a double; a date is
``DATE '2024-02-29'``, a moment ``TIMESTAMP '2024-02-29 12:30:00'``.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from discreet.question.domain import Value
from discreet.question.sql.reader import Reader, placed

_NUMBER = re.compile(r"(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,3})?")
_WHOLE = 2**63 - 1
_LARGEST = Fraction(10) ** 300
_TIMES = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME}


def normal_constant(node: exp.Expr, reader: Reader) -> exp.Expr | None:
    """``node`` in its one spelling, if it is a constant."""
    match node:
        case exp.Literal(is_string=False):
            return placed(write_constant(_number(node, reader)), node)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return placed(type(node)(**node.args), node)
        case exp.Cast(this=exp.Literal(is_string=True) as text) if _is_time(node):
            return placed(write_constant(_moment(node, text.name, reader)), text)
        case exp.Neg():
            inner = normal_constant(_unwrapped(node.this), reader)
            value = None if inner is None else read_constant(inner)
            if inner is None or isinstance(value, bool) or not isinstance(value, int | Fraction):
                return None
            return placed(write_constant(-value), inner)
        case _:
            return None


def is_constant(node: exp.Expr) -> bool:
    """Whether a tree in normal form is a constant."""
    return isinstance(node, exp.Literal | exp.Boolean | exp.Null) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and _is_time(node)
    )


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


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_time(node: exp.Cast) -> bool:
    kind = node.args["to"].this
    return kind is exp.DType.DATE or kind in _TIMES


def _number(node: exp.Literal, reader: Reader) -> int | Fraction:
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
