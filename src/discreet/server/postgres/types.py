"""PostgreSQL's types: parameters decoded by their declared type or refused, answers encoded.

A parameter becomes a constant of the question, so a byte that is read wrongly asks
another question and pays for it: what is not understood to its last byte is refused.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter
from discreet.question.domain import Kind

BOOL, INT8, INT2, INT4, TEXT, FLOAT4, FLOAT8 = 16, 20, 21, 23, 25, 700, 701
BPCHAR, VARCHAR, NAME, UNKNOWN = 1042, 1043, 19, 705
DATE, TIMESTAMP, NUMERIC = 1082, 1114, 1700
ARRAYS = {BOOL: 1000, INT8: 1016, TEXT: 1009, FLOAT8: 1022, NUMERIC: 1231}
ARRAYS |= {DATE: 1182, TIMESTAMP: 1115}
_ELEMENTS = {array: element for element, array in ARRAYS.items()}
_SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8}
_WHOLE = {INT2: ">h", INT4: ">i", INT8: ">q"}
_DOUBLES = {FLOAT4: ">f", FLOAT8: ">d"}
_TEXTS = (TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, 0)
_DAY_ONE, _MOMENT_ONE = date(2000, 1, 1), datetime(2000, 1, 1)
_OF_KIND = {
    Kind.BOOLEAN: BOOL,
    Kind.INTEGER: INT8,
    Kind.DECIMAL: FLOAT8,
    Kind.TEXT: TEXT,
    Kind.DATE: DATE,
    Kind.TIMESTAMP: TIMESTAMP,
}
SQL_NAMES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "bigint",
    Kind.DECIMAL: "double precision",
    Kind.TEXT: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}
EXAMPLES = {BOOL: "TRUE", DATE: "DATE '2001-01-01'", TIMESTAMP: "TIMESTAMP '2001-01-01 00:00:00'"}
"""Constants that stand for parameters while a question is only described."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a result."""

    name: str
    oid: int

    @property
    def size(self) -> int:
        """Bytes of a value; -1 if they vary."""
        return _SIZES.get(self.oid, -1)


def type_of(kind: Kind, *, total: bool = False, listed: bool = False) -> int:
    """The type in which a released column is sent; a sum of whole numbers may be wide.

    >>> type_of(Kind.INTEGER), type_of(Kind.INTEGER, total=True) == NUMERIC
    (20, True)
    """
    one = NUMERIC if total and kind is Kind.INTEGER else _OF_KIND[kind]
    return ARRAYS[one] if listed else one


def example(oid: int) -> str:
    """A constant of a type, for describing."""
    if oid in _WHOLE:
        return "3"
    if oid in _DOUBLES or oid == NUMERIC:
        return "2.5"
    return EXAMPLES.get(oid, "'x'")


# --- parameters ---------------------------------------------------------------------------------


def write_constant(value: bytes | None, oid: int, binary: bool) -> str:
    """A parameter as a constant of SQL, or a refusal.

    >>> write_constant(b"it's", TEXT, False), write_constant(b"\\xff\\xfe", INT2, True)
    ("'it''s'", '(-2)')
    """
    if value is None:
        return "NULL"
    return write_literal(_decode_binary(value, oid) if binary else _decode_text(value, oid))


def write_literal(value: Any) -> str:
    """A value of Python as a constant of SQL."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            text = str(value) if isinstance(value, int) else format(Decimal(value), "f")
            return f"({text})" if text.startswith("-") else text


def _decode_binary(value: bytes, oid: int) -> Any:
    try:
        if oid in _WHOLE:
            return struct.unpack(_WHOLE[oid], value)[0]
        if oid == FLOAT8:
            return _finite(repr(struct.unpack(">d", value)[0]))
        if oid == FLOAT4:
            return _finite(repr(struct.unpack(">f", value)[0]))
        if oid == BOOL and value in (b"\0", b"\1"):
            return value == b"\1"
        if oid == DATE:
            return _DAY_ONE + timedelta(days=struct.unpack(">i", value)[0])
        if oid == TIMESTAMP:
            return _MOMENT_ONE + timedelta(microseconds=struct.unpack(">q", value)[0])
        if oid == NUMERIC:
            return _decode_numeric(value)
        if oid in _TEXTS:
            return _text(value)
    except (struct.error, ValueError, OverflowError, ArithmeticError):
        raise _unreadable(oid) from None
    raise _unreadable(oid)


def _decode_numeric(value: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack(">HhHH", value[:8])
    digits = struct.unpack(f">{count}H", value[8:])
    if sign not in (0, 0x4000) or any(digit > 9999 for digit in digits) or scale > 1000:
        raise ValueError(sign)
    number = sum(Fraction(10_000) ** (weight - i) * digit for i, digit in enumerate(digits))
    if number != 0 and not Fraction(1, 10**400) < number < 10**400:
        raise ValueError(weight)
    below = max(0, 4 * (count - 1 - weight))
    whole = Fraction(number) * 10**below
    # From text: arithmetic on decimals rounds to the digits of its context.
    return Decimal(f"{'-' if sign else ''}{int(whole)}E-{below}")


def _decode_text(value: bytes, oid: int) -> Any:
    try:
        text = _text(value)
        if oid in _TEXTS:
            return text
        if oid in _WHOLE:
            return _whole(text)
        if oid in _DOUBLES or oid == NUMERIC:
            return _finite(text)
        if oid == BOOL and text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        if oid == DATE:
            return date.fromisoformat(text)
        if oid == TIMESTAMP:
            return _moment(text)
    except (ValueError, InvalidOperation):
        raise _unreadable(oid) from None
    raise _unreadable(oid)


_BOOLEANS = {"t": True, "true": True, "1": True, "on": True}
_BOOLEANS |= {"f": False, "false": False, "0": False, "off": False}


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError(text)
    return found


def _whole(text: str) -> int:
    if not text.lstrip("+-").isdecimal() or not text.isascii() or len(text) > 40:
        raise ValueError(text)
    return int(text)


def _finite(text: str) -> Decimal:
    found = Decimal(text)
    if len(text) > 400 or not found.is_finite() or abs(found.adjusted()) > 400:
        raise ValueError(text)
    return found


def _text(value: bytes) -> str:
    text = value.decode("utf-8")
    if "\0" in text:
        raise ValueError(text)
    return text


def _unreadable(oid: int) -> InvalidParameter:
    return InvalidParameter(
        "P1",
        f"a parameter of the type with the number {oid} cannot be read here.",
        why="a parameter that is read wrongly asks another question, and pays for it.",
        fix="send a whole number, a number, text, a boolean, a date or a timestamp without a zone,"
        " or write the constant into the question.",
    )


# --- answers ------------------------------------------------------------------------------------


def encode(value: Any, oid: int, binary: bool) -> bytes | None:
    """A released value as it is sent."""
    if value is None:
        return None
    try:
        fitted = _fit(value, oid)
    except (TypeError, ValueError, OverflowError):
        raise _misfit() from None
    if fitted is None:
        return None
    return _encode_binary(fitted, oid) if binary else _encode_text(fitted, oid).encode()


def _fit(value: Any, oid: int) -> Any:
    """A value in the type that was described."""
    if oid in _ELEMENTS:
        return [_fit(one, _ELEMENTS[oid]) for one in value]
    if value is None:
        return None
    if oid == FLOAT8:
        return float(value)
    if oid == INT8:
        if value != int(value) or not -(2**63) <= value < 2**63:
            raise ValueError(oid)
        return int(value)
    if oid == NUMERIC:
        if isinstance(value, Fraction):
            value = float(value) if value.denominator != 1 else int(value)
        found = Decimal(repr(value) if isinstance(value, float) else value)
        return found if found.is_finite() else None
    if oid == BOOL:
        return bool(value)
    if oid in (DATE, TIMESTAMP) or isinstance(value, str):
        return value
    return str(value)


def _encode_text(value: Any, oid: int) -> str:
    if oid in _ELEMENTS:
        inside = (
            "NULL" if one is None else _quote_element(_encode_text(one, _ELEMENTS[oid]))
            for one in value
        )
        return "{" + ",".join(inside) + "}"
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")


def _quote_element(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _encode_binary(value: Any, oid: int) -> bytes:
    if oid in _ELEMENTS:
        return _encode_array(value, _ELEMENTS[oid])
    if oid == BOOL:
        return b"\1" if value else b"\0"
    if oid == INT8:
        return struct.pack(">q", value)
    if oid == FLOAT8:
        return struct.pack(">d", value)
    if oid == NUMERIC:
        return _encode_numeric(value)
    if oid == DATE:
        day = value.date() if isinstance(value, datetime) else value
        return struct.pack(">i", (day - _DAY_ONE).days)
    if oid == TIMESTAMP:
        moment = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
        since = moment.replace(tzinfo=None) - _MOMENT_ONE
        return struct.pack(">q", since // timedelta(microseconds=1))
    return str(value).encode()


def _encode_array(values: list[Any], element: int) -> bytes:
    missing = any(one is None for one in values)
    out = [struct.pack(">iii", 1 if values else 0, int(missing), element)]
    if values:
        out.append(struct.pack(">ii", len(values), 1))
    for one in values:
        if one is None:
            out.append(struct.pack(">i", -1))
        else:
            inside = _encode_binary(one, element)
            out.append(struct.pack(">i", len(inside)) + inside)
    return b"".join(out)


def _encode_numeric(value: Decimal) -> bytes:
    """Digits to the base 10,000, the weight of the first, the sign, and digits after the point."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise _misfit()
    whole = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    whole *= 10 ** (-scale % 4)
    below = (scale + 3) // 4
    found: list[int] = []
    while whole:
        whole, digit = divmod(whole, 10_000)
        found.append(digit)
    weight = len(found) - 1 - below
    while found and found[0] == 0:
        found.pop(0)
    found.reverse()
    head = struct.pack(
        ">HhHH", len(found), weight if found else 0, 0x4000 if sign and found else 0, scale
    )
    return head + struct.pack(f">{len(found)}H", *found)


def _misfit() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "a released number is too large for the type of its column.",
        why="the answer is stored as it was released, and a number cut to fit would be another.",
        fix="offer more, so that there is less noise; the stored answer is free over HTTP.",
    )


__all__ = [
    "ARRAYS",
    "FLOAT8",
    "INT8",
    "NUMERIC",
    "SQL_NAMES",
    "TEXT",
    "UNKNOWN",
    "Field",
    "encode",
    "example",
    "type_of",
    "write_constant",
]
