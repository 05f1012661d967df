"""Statements in PostgreSQL's words, in which no value of anybody's can raise an error.

What PostgreSQL means otherwise than DuckDB is written out: sums are ``numeric``, texts compare by
their bytes, rounding and calendars are formulas of our own, doubles are looked at before they are
multiplied (:mod:`discreet.engine.postgres.doubles`).  What it cannot mean the same is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar

from discreet.engine.calls import FUNCTIONS, Writer, call_as, call_letters, call_of_text, call_trim
from discreet.engine.postgres.doubles import (
    write_product,
    write_quotient,
    write_scaled,
    write_sum,
)
from discreet.engine.printing import Printer
from discreet.engine.typed import Type, Typed, common_type
from discreet.exact.records import dataclass
from discreet.question.functions.casts import DAY_FORM, MOMENT_FORM, WHOLE_FORM

_SPELLED = {
    Type.BOOLEAN: "boolean",
    Type.SHORT: "int4",
    Type.WHOLE: "int8",
    Type.WIDE: "numeric",
    Type.DOUBLE: "float8",
    Type.TEXT: "text",
    Type.CODED: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
_MOST_NAME = 63
_WORD = 2**64
_SAME_DIGITS = 2.0**52  # from here on every double is whole
_PLAIN_SUM = 2.0**960  # so little moves no finite double beyond the last


@dataclass(slots=True)
class PostgresPrinter(Printer):
    """Prints one statement for PostgreSQL 14 and later."""

    _long: dict[str, str] = field(default_factory=dict)
    _bound: list[int] = field(default_factory=list)

    name: ClassVar[str] = "postgres"

    # --- words ------------------------------------------------------------------------------------

    def identify(self, name: str) -> str:
        """A name; one that PostgreSQL would cut, and so take for another, is replaced."""
        if len(name.encode()) > _MOST_NAME:
            name = self._long.setdefault(name, f"_long{len(self._long)}")
        return '"' + name.replace('"', '""') + '"'

    def quote(self, text: str) -> str:
        """A text constant, whatever ``standard_conforming_strings`` says."""
        if "\0" in text:
            self.refuse("texts with the zero character")
        if "\\" in text:
            return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
        return "'" + text.replace("'", "''") + "'"

    def spell(self, type_: Type) -> str:
        """The name of a type."""
        return _SPELLED[type_]

    def whole(self, value: int) -> Typed:
        """A whole constant."""
        type_ = Type.WHOLE if -(2**63) <= value < 2**63 else Type.WIDE
        return Typed(f"'{value}'::{_SPELLED[type_]}", type_, constant=value, plain=True)

    def double(self, value: float) -> Typed:
        """A double, told in full."""
        return Typed(f"'{value!r}'::float8", Type.DOUBLE, constant=value, plain=True)

    def bind(self, values: Sequence[Typed], write: Callable[..., str]) -> str:
        """Text in which values stand several times: named first, unless they are plain.

        ``OFFSET 0`` keeps the planner from writing them out again.  What is about several rows
        cannot be named in a query of its own, and is written out.
        """
        if all(value.plain or value.together for value in values):
            return write(*(v.text if v.plain else f"({v.text})" for v in values))
        self._bound.append(len(self._bound))
        alias = f"_b{self._bound[-1]}"
        named = ", ".join(f"{value.text} AS v{i}" for i, value in enumerate(values))
        body = write(*(f"{alias}.v{i}" for i in range(len(values))))
        return f"(SELECT {body} FROM (SELECT {named} OFFSET 0) AS {alias})"  # noqa: S608

    def in_order(self, value: Typed) -> str:
        """Texts by their bytes, whatever the database's language."""
        if value.type is Type.CODED:
            return self.place(value).text
        return f'{value.text} COLLATE "C"' if value.type is Type.TEXT else value.text

    # --- numbers ----------------------------------------------------------------------------------

    def of_doubles(self, sign: str, a: Typed, b: Typed) -> Typed:
        """As IEEE 754 says, where PostgreSQL would raise."""
        for one, other, order in ((a, b, (0, 1)), (b, a, (1, 0))):
            if not isinstance(other.constant, float):
                continue
            constant = other.constant
            if sign in "+-" and abs(constant) < _PLAIN_SUM:
                return self._of(f"{a.text} {sign} {b.text}", a, b)
            if sign == "*" or (sign == "/" and order == (0, 1) and constant != 0):
                text = self.bind([one], lambda v, c=constant: write_scaled(v, sign, c))
                return self._of(text, a, b)
        if sign == "*":
            return self._of(self.bind([a, b], write_product), a, b)
        if sign == "/":
            return self._of(self.bind([a, b], write_quotient), a, b)
        return self._of(self.bind([a, b], lambda x, y: write_sum(x, y, sign)), a, b)

    def _of(self, text: str, *parts: Typed, type_: Type = Type.DOUBLE) -> Typed:
        return Typed(text, type_, together=any(part.together for part in parts))

    def quotient(self, a: Typed, b: Typed) -> Typed:
        """Towards zero; NULL instead of an error if the second is zero."""
        type_ = self._whole_type("//", a, b)
        divisor = b.text if b.constant else f"NULLIF({b.text}, 0)"
        if type_ is Type.WIDE:
            return self._of(f"DIV({a.text}, {divisor})", a, b, type_=type_)
        return self._of(f"{a.text} / {divisor}", a, b, type_=type_)

    def remainder(self, a: Typed, b: Typed) -> Typed:
        """Of the sign of the first; NULL instead of an error if the second is zero."""
        type_ = self._whole_type("%", a, b)
        divisor = b.text if b.constant else f"NULLIF({b.text}, 0)"
        return self._of(f"{a.text} % {divisor}", a, b, type_=type_)

    def _whole_type(self, sign: str, a: Typed, b: Typed) -> Type:
        type_ = common_type((a.type, b.type))
        if type_ not in (Type.SHORT, Type.WHOLE, Type.WIDE):
            self.refuse(f"'{sign}' of {type_.value}")
        return type_

    def shift_right(self, value: Typed, bits: Typed) -> Typed:
        """Rounded down, exactly."""
        if not isinstance(bits.constant, int):
            self.refuse("'>>' by a number that is no constant")
        unit = 2**bits.constant
        text = self.bind([value], lambda v: f"DIV({v} - {_remainder(v, unit)}, {unit})")
        return self._of(text, value, type_=Type.WIDE)

    def last_bits(self, value: Typed, mask: Typed) -> Typed:
        """The remainder above zero."""
        if not isinstance(mask.constant, int) or mask.constant & (mask.constant + 1):
            self.refuse("'&' with a number that is no mask")
        unit = mask.constant + 1
        return self._of(self.bind([value], lambda v: _remainder(v, unit)), value, type_=Type.WIDE)

    # --- points in time ---------------------------------------------------------------------------

    def days_between(self, a: Typed, b: Typed) -> Typed:
        """A difference of dates."""
        return self._of(f"CAST({a.text} - {b.text} AS int8)", a, b, type_=Type.WHOLE)

    def move(self, point: Typed, step: Typed) -> Typed:
        """A date moved by an interval is a timestamp."""
        if point.type is Type.DATE and step.type is Type.SHORT:
            return self._of(f"{point.text} + {step.text}", point, step, type_=Type.DATE)
        if step.type is not Type.INTERVAL:
            self.refuse(f"a point in time moved by {step.type.value}")
        return self._of(f"{point.text} + {step.text}", point, step, type_=Type.TIMESTAMP)

    # --- texts ------------------------------------------------------------------------------------

    def place(self, value: Typed) -> Typed:
        """The place of a text in the declared list."""
        if value.type is not Type.CODED or value.values is None:
            self.refuse(f"the place of {value.type.value} in a list")
        listed = ", ".join(self.quote(one) for one in value.values)
        text = f"CAST(ARRAY_POSITION(ARRAY[{listed}]::text[], {value.text}) - 1 AS int8)"
        return self._of(text, value, type_=Type.WHOLE)

    def digest(self, value: Typed) -> Typed:
        """Four of the bytes, the last one first."""
        pairs = " || ".join(f"SUBSTR(MD5({value.text}), {at}, 2)" for at in (31, 29, 27, 25))
        text = f"(CAST(CAST('x' || {pairs} AS bit(32)) AS int8) >> 1)"
        return self._of(text, value, type_=Type.WHOLE)

    def like(self, value: Typed, pattern: str) -> str:
        """Without an escape, which PostgreSQL has by itself."""
        return f"{value.text} LIKE {self.quote(pattern)} ESCAPE ''"

    # --- casts ------------------------------------------------------------------------------------

    def cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that cannot fail; whole numbers of 128 bits become doubles as DuckDB's do."""
        match value.type, wanted:
            case Type.BOOLEAN, Type.WHOLE:
                return self._of(f"CAST(CAST({value.text} AS int4) AS int8)", value, type_=wanted)
            case Type.WIDE, Type.DOUBLE:
                return self._of(self.bind([value], _wide_as_double), value)
            case (Type.DOUBLE, Type.WIDE | Type.TEXT) | (Type.TEXT, _):
                self.refuse(f"{value.type.value} as {wanted.value}")
        return Printer.cast(self, value, wanted)

    def try_cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that is NULL where it fails, by looking first."""
        low, high = -(2**63), 2**63
        match value.type, wanted:
            case Type.DOUBLE, Type.WHOLE:
                inside = f"{{0}} >= '{low}'::float8 AND {{0}} < '{high}'::float8"
            case Type.WIDE, Type.WHOLE:
                inside = f"{{0}} >= {low} AND {{0}} < {high}"
            case Type.TEXT, Type.WHOLE if value.form == WHOLE_FORM:
                return self._of(f"CAST(NULLIF({value.text}, '') AS int8)", value, type_=wanted)
            case Type.TEXT, Type.DATE if value.form == DAY_FORM:
                return self._of(self.bind([value], _read_day), value, type_=wanted)
            case Type.TEXT, Type.TIMESTAMP if value.form == MOMENT_FORM:
                return self._of(self.bind([value], _read_moment), value, type_=wanted)
            case _:
                self.refuse(f"{value.type.value} as {wanted.value}")
        text = self.bind(
            [value],
            lambda v: f"CASE WHEN {inside.format(v)} THEN CAST({v} AS {self.spell(wanted)}) END",
        )
        return self._of(text, value, type_=wanted)

    # --- aggregates -------------------------------------------------------------------------------

    def extreme(self, name: str, value: Typed) -> Typed:
        """PostgreSQL has no least truth value, but knows whether all are true."""
        if value.type is Type.BOOLEAN:
            word = "BOOL_AND" if name == "MIN" else "BOOL_OR"
            return replace(value, text=f"{word}({value.text})", plain=False, together=True)
        return Printer.extreme(self, name, value)

    def functions(self) -> Mapping[str, Writer]:
        """Those of every engine, and these."""
        return _FUNCTIONS


def _remainder(value: str, unit: int) -> str:
    return f"(({value} % {unit} + {unit}) % {unit})"


def _wide_as_double(n: str) -> str:
    """As DuckDB rounds: what fits in one word once, what is just below zero and the rest twice."""
    low = _remainder(n, _WORD)
    return (
        f"CASE WHEN {n} >= 0 AND {n} < {_WORD} THEN {n}::float8 "
        f"WHEN {n} < 0 AND {n} >= -{_WORD} THEN -((-{n} - 1)::float8) - '1'::float8 "
        f"ELSE {low}::float8 + DIV({n} - {low}, {_WORD})::float8 * '{float(_WORD)!r}'::float8 END"
    )


def _is_day(text: str) -> str:
    """Whether a text of the form of a day names one."""
    year, month, day = f"SUBSTR({text}, 1, 4)", f"SUBSTR({text}, 6, 2)", f"SUBSTR({text}, 9, 2)"
    leap = f"(CAST({year} AS int4) % 4 = 0 AND (CAST({year} AS int4) % 100 <> 0 OR "
    leap += f"CAST({year} AS int4) % 400 = 0))"
    last = (
        f"CASE WHEN {month} IN ('04', '06', '09', '11') THEN '30' WHEN {month} <> '02' THEN '31' "
        f"WHEN {leap} THEN '29' ELSE '28' END"
    )
    return (
        f"CASE WHEN {year} = '0000' OR {month} = '00' OR {month} > '12' THEN FALSE "
        f"ELSE {day} >= '01' AND {day} <= {last} END"
    )


def _read_day(text: str) -> str:
    return (
        f"CASE WHEN {text} <> '' THEN CASE WHEN {_is_day(text)} THEN CAST({text} AS date) END END"
    )


def _read_moment(text: str) -> str:
    return (
        f"CASE WHEN {text} <> '' THEN CASE WHEN {_is_day(text)} "
        f"THEN CAST({text} AS timestamp) END END"
    )


# --- functions ------------------------------------------------------------------------------------


def _extract(field_: str) -> Writer:
    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        text = f"CAST(FLOOR(EXTRACT({field_} FROM {values[0].text})) AS int8)"
        return Typed(text, Type.WHOLE, together=values[0].together)

    return write


def _find_form(printer: Printer, values: Sequence[Typed]) -> Typed:
    form = str(values[1].constant)
    if form not in (WHOLE_FORM, DAY_FORM, MOMENT_FORM):
        printer.refuse("texts read as numbers with a fraction")
    text = f"COALESCE(SUBSTRING({values[0].text} FROM {values[1].text}), '')"
    return Typed(text, Type.TEXT, form=form, together=values[0].together)


def _finite(_: Printer, values: Sequence[Typed]) -> Typed:
    text = f"ABS({values[0].text}) <= '1.7976931348623157e+308'::float8"
    return Typed(text, Type.BOOLEAN, together=values[0].together)


def _sign(printer: Printer, values: Sequence[Typed]) -> Typed:
    text = printer.bind(
        values, lambda v: f"CASE WHEN {v} > 0 THEN 1 WHEN {v} < 0 THEN -1 WHEN {v} = 0 THEN 0 END"
    )
    return Typed(f"CAST({text} AS int8)", Type.WHOLE, together=values[0].together)


def _same(name: str) -> Writer:
    """A function of one number whose result is of its type."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        return replace(values[0], text=f"{name}({values[0].text})", plain=False, constant=None)

    return write


def _round_away(x: str) -> str:
    """To the nearest whole number, halves away from zero; PostgreSQL's own goes to even."""
    up = f"CASE WHEN ABS({x}) - FLOOR(ABS({x})) >= 0.5 THEN 1 ELSE 0 END"
    whole = f"SIGN({x}) * (FLOOR(ABS({x})) + {up})"
    return f"CASE WHEN ABS({x}) < '{_SAME_DIGITS!r}'::float8 THEN {whole} ELSE {x} END"


def _round(printer: Printer, values: Sequence[Typed]) -> Typed:
    value = values[0]
    digits = values[1].constant if len(values) > 1 else 0
    if not isinstance(digits, int):
        printer.refuse("ROUND to a number of digits that is no constant")
    if value.type is not Type.DOUBLE:
        rounded = f"ROUND(CAST({value.text} AS numeric), {digits})"
        return Typed(
            f"CAST({rounded} AS {printer.spell(value.type)})", value.type, together=value.together
        )
    if digits == 0:
        return Typed(printer.bind([value], _round_away), Type.DOUBLE, together=value.together)
    unit = 10.0 ** abs(digits)
    there, back = ("*", "/") if digits > 0 else ("/", "*")

    def write(x: str) -> str:
        moved = Typed(f"({write_scaled(x, there, unit)})", Type.DOUBLE)
        whole = Typed(printer.bind([moved], _round_away), Type.DOUBLE)
        result = Typed(printer.bind([whole], lambda w: write_scaled(w, back, unit)), Type.DOUBLE)
        return printer.bind(
            [result],
            lambda r: (
                f"CASE WHEN ABS({r}) <= '1.7976931348623157e+308'::float8 THEN {r} ELSE {x} END"
            ),
        )

    if value.together:
        printer.refuse("ROUND of an aggregate")
    return Typed(printer.bind([value], write), Type.DOUBLE)


def _root(printer: Printer, values: Sequence[Typed]) -> Typed:
    text = printer.bind(values, lambda v: f"CASE WHEN {v} >= 0 THEN SQRT({v}) END")
    return Typed(text, Type.DOUBLE, together=values[0].together)


def _truncate(_: Printer, values: Sequence[Typed]) -> Typed:
    unit, point = values
    text = f"DATE_TRUNC({unit.text}, CAST({point.text} AS timestamp))"
    if point.type is Type.DATE:
        text = f"CAST({text} AS date)"
    return Typed(text, point.type, together=point.together)


def _microseconds(_: Printer, values: Sequence[Typed]) -> Typed:
    text = f"CAST(EXTRACT(EPOCH FROM {values[0].text}) * 1000000 AS int8)"
    return Typed(text, Type.WHOLE, together=values[0].together)


def _interval(unit: str) -> Writer:
    return lambda _, v: Typed(
        f"MAKE_INTERVAL({unit} => {v[0].text})", Type.INTERVAL, together=v[0].together
    )


_FORMATS = {
    "%Y": "YYYY", "%y": "YY", "%m": "MM", "%B": "FMMonth", "%b": "Mon", "%d": "DD", "%j": "DDD",
    "%A": "FMDay", "%a": "Dy", "%u": "ID", "%V": "IW", "%G": "IYYY", "%H": "HH24", "%I": "HH12",
    "%p": "AM", "%M": "MI", "%S": "SS",
}  # fmt: skip


def _format(printer: Printer, values: Sequence[Typed]) -> Typed:
    point, said = values[0], str(values[1].constant)
    if said == "%w":
        text = f"CAST(CAST(EXTRACT(DOW FROM {point.text}) AS int4) AS text)"
    elif said in _FORMATS:
        text = f"TO_CHAR({point.text}, '{_FORMATS[said]}')"
    else:
        printer.refuse(f"STRFTIME with {said}")
    return Typed(text, Type.TEXT, together=point.together)


def _ends_with(printer: Printer, values: Sequence[Typed]) -> Typed:
    text = printer.bind(values, lambda a, b: f"RIGHT({a}, LENGTH({b})) = {b}")
    return Typed(text, Type.BOOLEAN, together=any(v.together for v in values))


def _contains(_: Printer, values: Sequence[Typed]) -> Typed:
    text = f"STRPOS({values[0].text}, {values[1].text}) > 0"
    return Typed(text, Type.BOOLEAN, together=any(v.together for v in values))


_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "ISODOW", "HOUR", "MINUTE", "SECOND")
_FUNCTIONS: dict[str, Writer] = {
    **FUNCTIONS,
    **{name: _extract(name) for name in _PARTS},
    "DAYOFWEEK": _extract("DOW"),
    "DAYOFYEAR": _extract("DOY"),
    "DATE_TRUNC": _truncate,
    "EPOCH_US": _microseconds,
    "TO_DAYS": _interval("days"),
    "TO_MONTHS": _interval("months"),
    "TO_SECONDS": _interval("secs"),
    "STRFTIME": _format,
    "ABS": _same("ABS"),
    "FLOOR": _same("FLOOR"),
    "CEIL": _same("CEIL"),
    "TRUNC": _same("TRUNC"),
    "SIGN": _sign,
    "ROUND": _round,
    "SQRT": _root,
    "ISFINITE": _finite,
    "LOWER": call_letters("LOWER"),
    "UPPER": call_letters("UPPER"),
    "TRIM": call_trim("BTRIM({0}, ' ')"),
    "LEFT": call_of_text("LEFT"),
    "RIGHT": call_of_text("RIGHT"),
    "SUBSTR": call_of_text("SUBSTR"),
    "SPLIT_PART": call_of_text("SPLIT_PART"),
    "REPLACE": call_of_text("REPLACE"),
    "LENGTH": call_of_text("LENGTH", Type.WHOLE),
    "STRPOS": call_of_text("STRPOS", Type.WHOLE),
    "STARTS_WITH": call_as("STARTS_WITH", Type.BOOLEAN),
    "ENDS_WITH": _ends_with,
    "CONTAINS": _contains,
    "REGEXP_EXTRACT": _find_form,
}

__all__ = ["PostgresPrinter"]
