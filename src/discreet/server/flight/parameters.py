"""Parameters of a prepared statement: one row of Arrow, whose values become constants.

A parameter that is read wrongly asks another question and pays for it, so each is taken by the type
that Arrow declares for it, or refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from discreet.errors import InvalidParameter
from discreet.question.sql import MOST_CHARACTERS
from discreet.question.sql.dialect import depth_refusal
from discreet.server.postgres.tokens import Part, Token, rewrite, tokenize
from discreet.server.postgres.types import write_literal
from discreet.server.refusals import Unreadable

MOST = 100
"""Parameters of one statement."""
_MOST_BYTES = 64 * 1024


def count_parameters(text: str) -> int:
    """How many parameters a statement has: the largest of ``$1``, ``$2``, … in it.

    >>> count_parameters("SELECT COUNT(*) FROM t WHERE a > $1 AND b = '$9' AND c < $2")
    2
    """
    if "$" not in text:
        return 0
    return _count(_read_tokens(text))


def _count(tokens: list[Token]) -> int:
    return max((_number(token) for token in tokens if token.part is Part.PARAMETER), default=0)


def _read_tokens(text: str) -> list[Token]:
    """The tokens of what may be a question; of what is too long for one nothing is read."""
    if len(text) > MOST_CHARACTERS:
        raise depth_refusal()
    return tokenize(text)


def _number(token: Token) -> int:
    number = token.text[1:]
    if not number.isdigit() or len(number) > 3 or not 1 <= int(number) <= MOST:
        raise Unreadable(
            "this statement has a parameter that cannot be given.", f"use $1 to ${MOST}."
        )
    return int(number)


def fill_parameters(text: str, constants: list[str]) -> str:
    """The statement with constants in the place of its parameters."""
    tokens = _read_tokens(text)
    if _count(tokens) != len(constants):
        raise Unreadable(
            f"the statement has {_count(tokens)} parameters, and {len(constants)} came.",
            "send one column for each, in one row.",
        )
    if any(token.part is Part.ESCAPED for token in tokens):
        raise Unreadable(
            "a statement with parameters has a string with escapes.",
            "write the string without E, with quotes doubled, or give it as a parameter.",
        )
    put = {
        place: constants[_number(token) - 1]
        for place, token in enumerate(tokens)
        if token.part is Part.PARAMETER
    }
    return rewrite(text, tokens, put).text


def read_row(batches: Iterable[pa.RecordBatch]) -> list[str]:
    """The one row that is bound, as constants of SQL."""
    found: pa.RecordBatch | None = None
    for batch in batches:
        if found is not None or batch.num_rows != 1:
            raise _one_row()
        found = batch
    if found is None:
        raise _one_row()
    if found.num_columns > MOST or found.get_total_buffer_size() > _MOST_BYTES:
        raise Unreadable("these parameters are more than is taken.", "send fewer, or shorter ones.")
    return [write_value(_read_value(column), column.type) for column in found.columns]


def _read_value(column: pa.Array) -> Any:
    """The one value of a column, if it lies within what was sent.

    Arrow believes the offsets of a text: those of a forged one reach into the server's memory.
    """
    try:
        column.validate(full=True)
        return column[0].as_py()
    except (pa.ArrowException, ArithmeticError, ValueError):  # whose texts may quote what was read
        raise _no_value("a parameter has a value that cannot be read") from None


def write_value(value: Any, kind: pa.DataType) -> str:
    """A value of Arrow as a constant of SQL, or a refusal.

    >>> write_value("it's", pa.string()), write_value(-3, pa.int16())
    ("'it''s'", '(-3)')
    """
    known = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_null(kind)
        or (pa.types.is_timestamp(kind) and kind.tz is None)
    )
    if not known:
        raise _no_value("parameters of this type are not taken")
    match value:
        case None:
            return "NULL"
        case bool() | int() | datetime() | date():
            return write_literal(_to_micros(value))
        case str() if "\0" not in value:
            return write_literal(value)
        case float() if math.isfinite(value):
            return write_literal(Decimal(repr(value)))
        case Decimal() if value.is_finite():
            return write_literal(value)
    raise _no_value("a parameter has a value that SQL has no constant for")


def _to_micros(value: Any) -> Any:
    """A moment as Python has it; one that is finer is refused, not cut."""
    if getattr(value, "nanosecond", 0):
        raise _no_value("a parameter is finer than a microsecond")
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def _one_row() -> Unreadable:
    return Unreadable(
        "parameters come in one row.", "bind one row; ask again for other parameters."
    )


def _no_value(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P1",
        f"{what}.",
        why="a parameter that is read wrongly asks another question, and pays for it. "
        "Nothing was charged.",
        fix="bind booleans, numbers, texts, days or moments without a zone.",
    )
