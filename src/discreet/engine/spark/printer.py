"""Statements in Spark's words, which mean the same as DuckDB's or are refused.

What Spark means otherwise is written out: a cast of a double would cut instead of rounding, FLOOR
would give 64 bits, a sum of 64 bits would not fit, ELEMENT_AT would take NULL for a value.  What it
cannot mean the same (logarithms, regular expressions, letters beyond ASCII) is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from sqlglot import exp

from discreet.engine.calls import (
    FUNCTIONS,
    Writer,
    call_as,
    call_letters,
    call_of_text,
    call_trim,
    write_short,
)
from discreet.engine.printing import Printer
from discreet.engine.typed import Scope, Type, Typed, combine, common_type
from discreet.exact.records import dataclass
from discreet.question.functions.casts import DAY_FORM, MOMENT_FORM, WHOLE_FORM
from discreet.question.functions.nodes import Definition, Node

WIDE = "DECIMAL(38,0)"
_SPELLED = {
    Type.BOOLEAN: "BOOLEAN",
    Type.SHORT: "INT",
    Type.WHOLE: "BIGINT",
    Type.WIDE: WIDE,
    Type.DOUBLE: "DOUBLE",
    Type.TEXT: "STRING",
    Type.CODED: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}
_WHOLE = (Type.SHORT, Type.WHOLE, Type.WIDE)
_TAIL = "\0"
"""In the text of an aggregate: where FILTER or OVER belongs.  No constant holds this character."""
_HALF = 31  # bits of a 64-bit number that are summed apart from the others
_WORD = 2**64
_FEW = 16  # declared texts that are looked for one after the other
_LARGEST = "CAST('1.7976931348623157E308' AS DOUBLE)"


@dataclass(slots=True)
class SparkPrinter(Printer):
    """Prints one statement for Spark 3.5 and 4, in ANSI mode and UTC."""

    numbers_rows: bool = False
    """Whether rows may be told apart by a number: only where the result is kept."""

    name: ClassVar[str] = "spark"
    once: ClassVar[str] = ""

    # --- words ------------------------------------------------------------------------------------

    def identify(self, name: str) -> str:
        """A name."""
        return quote_name(name)

    def quote(self, text: str) -> str:
        """A text constant."""
        return quote_text(text)

    def spell(self, type_: Type) -> str:
        """The name of a type."""
        return _SPELLED[type_]

    def whole(self, value: int) -> Typed:
        """A whole constant."""
        if 0 <= value < 2**63:
            return Typed(f"{value}L", Type.WHOLE, constant=value, plain=True)
        return Printer.whole(self, value)

    def constant(self, said: str, wanted: Type) -> Typed:
        """A constant of a type; whole ones are no casts that Spark would have to work out."""
        if wanted is Type.WHOLE and 0 <= int(said) < 2**63:
            return self.whole(int(said))
        return Printer.constant(self, said, wanted)

    def statement(self, query: exp.Query, before: Iterable[tuple[str, str]] = ()) -> str:
        """The whole statement; aggregates that stand alone have no tail."""
        return Printer.statement(self, query, before).replace(_TAIL, "")

    def print_steps(self, definitions: Iterable[Definition]) -> list[tuple[str, str]]:
        """Steps by themselves: the name and the text of each; later ones know those before."""
        found = []
        for name, query, _ in definitions:
            text, self.steps[name] = self._query(query)
            found.append((name, text.replace(_TAIL, "")))
        return found

    # --- numbers ----------------------------------------------------------------------------------

    def of_doubles(self, sign: str, a: Typed, b: Typed) -> Typed:
        """As IEEE 754 says; in ANSI mode a quotient by zero would fail, here it is NULL."""
        divisor = b.text if sign != "/" or b.constant else f"NULLIF({b.text}, 0D)"
        return combine(f"{a.text} {sign} {divisor}", Type.DOUBLE, a, b)

    def quotient(self, a: Typed, b: Typed) -> Typed:
        """Towards zero; Spark's DIV of decimals would give 64 bits, whatever the quotient is."""
        type_ = common_type((a.type, b.type))
        if type_ not in (Type.SHORT, Type.WHOLE):
            self.refuse(f"whole division of {type_.value}")
        divisor = b.text if b.constant else f"NULLIF({b.text}, 0L)"
        return combine(f"{a.text} DIV {divisor}", type_, a, b)

    def remainder(self, a: Typed, b: Typed) -> Typed:
        """Of the sign of the first: of doubles, too, as C and Java have it."""
        a, b = self.alike(a, b)
        type_ = common_type((a.type, b.type))
        if type_ not in (*_WHOLE, Type.DOUBLE):
            self.refuse(f"'%' of {type_.value}")
        divisor = b.text if b.constant else f"NULLIF({b.text}, 0)"
        return combine(f"{a.text} % {divisor}", type_, a, b)

    def shift_right(self, value: Typed, bits: Typed) -> Typed:
        """Of numbers that are not below zero, the limbs of sums: a quotient without remainder."""
        if value.type is not Type.WIDE or not isinstance(bits.constant, int):
            self.refuse(f"'>>' of {value.type.value}")
        unit = f"CAST('{2**bits.constant}' AS {WIDE})"
        text = f"CAST(({value.text} - {value.text} % {unit}) / {unit} AS {WIDE})"
        return combine(text, Type.WIDE, value)

    def last_bits(self, value: Typed, mask: Typed) -> Typed:
        """Of numbers that are not below zero."""
        constant = mask.constant
        if value.type is not Type.WIDE or not isinstance(constant, int) or constant & constant + 1:
            self.refuse(f"'&' of {value.type.value}")
        return combine(f"({value.text} % CAST('{constant + 1}' AS {WIDE}))", Type.WIDE, value)

    # --- points in time ---------------------------------------------------------------------------

    def days_between(self, a: Typed, b: Typed) -> Typed:
        """A difference of dates."""
        return combine(f"CAST(DATEDIFF({a.text}, {b.text}) AS BIGINT)", Type.WHOLE, a, b)

    def move(self, point: Typed, step: Typed) -> Typed:
        """Some days later, or by an interval; a date moved by months is a timestamp elsewhere."""
        if point.type is Type.DATE and step.type is Type.SHORT:
            return combine(f"DATE_ADD({point.text}, {step.text})", Type.DATE, point, step)
        if step.type is not Type.INTERVAL:
            self.refuse(f"a point in time moved by {step.type.value}")
        moment = f"CAST({point.text} AS TIMESTAMP_NTZ)"
        return combine(f"({moment} + {step.text})", Type.TIMESTAMP, point, step)

    # --- texts ------------------------------------------------------------------------------------

    def place(self, value: Typed) -> Typed:
        """The place of a text in the declared list."""
        if value.type is not Type.CODED or value.values is None:
            self.refuse(f"the place of {value.type.value} in a list")
        return combine(find_place(value.text, value.values), Type.WHOLE, value)

    def code(self, value: Typed, listed: tuple[str, ...]) -> Typed:
        """A text if it is one of those listed; compared with all of them at once."""
        if value.type not in (Type.TEXT, Type.CODED, Type.NULL):
            self.refuse(f"a declared text of {value.type.value}")
        return Printer.code(self, value, listed)

    def digest(self, value: Typed) -> Typed:
        """Four of the bytes, the last one first."""
        digest = f"MD5(CAST({value.text} AS BINARY))"
        pairs = ", ".join(f"SUBSTR({digest}, {at}, 2)" for at in (31, 29, 27, 25))
        text = f"(CAST(CONV(CONCAT({pairs}), 16, 10) AS BIGINT) DIV 2L)"
        return combine(text, Type.WHOLE, value)

    def like(self, value: Typed, pattern: str) -> str:
        """With an escape that the pattern does not have: Spark's own is the backslash."""
        escape = next((one for one in "~^|!#$&*" if one not in pattern), None)
        if escape is None:
            self.refuse("LIKE with this pattern")
        return f"{value.text} LIKE {quote_text(pattern)} ESCAPE '{escape}'"

    # --- casts ------------------------------------------------------------------------------------

    def cast_node(self, node: exp.Cast, scope: Scope) -> Typed:
        """A sum that is cast to 64 bits fits in them: Spark's own does, which fails past them."""
        if node.args["to"].this == exp.DType.BIGINT and _is_sum(node.this):
            summed, where = _take_apart(node.this)
            value = self.node(summed, scope)
            if value.type in (Type.SHORT, Type.WHOLE):
                text = f"SUM({value.text}){_TAIL}"
                if where is not None:
                    text = text.replace(_TAIL, f" FILTER (WHERE {self.node(where, scope).text})")
                return Typed(text, Type.WHOLE, together=True)
        return Printer.cast_node(self, node, scope)

    def cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that cannot fail; doubles to the nearest, halves to even."""
        match value.type, wanted:
            case Type.DOUBLE, Type.WHOLE | Type.SHORT:
                text = f"CAST(RINT({value.text}) AS {self.spell(wanted)})"
                return combine(text, wanted, value)
            case Type.WIDE, Type.DOUBLE:
                return combine(_wide_as_double(value.text), wanted, value)
            # A double becomes a decimal by the digits that it is shown with, not by its value.
            case (Type.DOUBLE, Type.WIDE | Type.TEXT) | (Type.TEXT | Type.TIMESTAMP, Type.TEXT):
                self.refuse(f"{value.type.value} as {wanted.value}")
            case Type.TEXT, _:
                self.refuse(f"{value.type.value} as {wanted.value}")
        return Printer.cast(self, value, wanted)

    def try_cast(self, value: Typed, wanted: Type) -> Typed:
        """A cast that is NULL where it fails."""
        match value.type, wanted:
            case Type.DOUBLE, Type.WHOLE:
                inside = "{0} >= -9223372036854775808D AND {0} < 9223372036854775808D"
                text = f"CASE WHEN {inside} THEN CAST(RINT({{0}}) AS BIGINT) END"
                return combine(text.format(value.text), wanted, value)
            case (Type.WIDE, Type.WHOLE) | (Type.WHOLE, Type.BOOLEAN):
                return combine(f"TRY_CAST({value.text} AS {self.spell(wanted)})", wanted, value)
            case Type.TEXT, Type.WHOLE if value.form == WHOLE_FORM:
                return combine(f"TRY_CAST({value.text} AS BIGINT)", wanted, value)
            case Type.TEXT, Type.DATE if value.form == DAY_FORM:
                return combine(f"TRY_CAST({value.text} AS DATE)", wanted, value)
            case Type.TEXT, Type.TIMESTAMP if value.form == MOMENT_FORM:
                return combine(f"TRY_CAST({value.text} AS TIMESTAMP_NTZ)", wanted, value)
            case Type.WHOLE, Type.TEXT:
                return Printer.cast(self, value, wanted)
        return self.refuse(f"{value.type.value} as {wanted.value}")

    # --- aggregates -------------------------------------------------------------------------------

    def total(self, value: Typed) -> Typed:
        """A sum of 64-bit numbers in two sums of half of their bits, neither of which overflows."""
        if value.type is Type.WIDE:
            return Typed(f"SUM({value.text}){_TAIL}", Type.WIDE, together=True)
        if value.type not in _WHOLE:
            self.refuse(f"SUM of {value.type.value}")
        high = f"CAST(SUM(SHIFTRIGHT({value.text}, {_HALF})){_TAIL} AS {WIDE})"
        low = f"CAST(SUM({value.text} & {2**_HALF - 1}L){_TAIL} AS {WIDE})"
        return Typed(f"({high} * {2**_HALF}L + {low})", Type.WIDE, together=True)

    def filter_rows(self, node: exp.Filter, scope: Scope) -> Typed:
        """An aggregate of the rows that fulfil a condition."""
        value = self.node(node.this, scope)
        condition = self.node(node.expression.this, scope)
        return _add_tail(value, f" FILTER (WHERE {condition.text})")

    def window(self, node: exp.Window, scope: Scope) -> Typed:
        """A function of a row among others; Spark does not number rows in no order."""
        if not node.args.get("partition_by") and not node.args.get("order"):
            if self.numbers_rows and isinstance(node.this, exp.RowNumber):
                return Typed("MONOTONICALLY_INCREASING_ID()", Type.WHOLE)
            self.refuse("a window over rows in no order")
        value = self.node(node.this, scope)
        bare = Printer.window(self, node, scope)
        over = bare.text[len(value.text) :]
        if _TAIL in value.text:
            return _add_tail(replace(value, together=True), over)
        text = f"CAST({bare.text} AS BIGINT)" if value.type is Type.WHOLE else bare.text
        return replace(bare, text=text)

    def count_distinct(self, value: Typed) -> str:
        """How many different values there are, NULL aside."""
        return f"COUNT(DISTINCT {value.text}){_TAIL}"

    def count(self, node: exp.Count, scope: Scope) -> Typed:
        """COUNT of rows, of values or of different values."""
        found = Printer.count(self, node, scope)
        return found if _TAIL in found.text else replace(found, text=found.text + _TAIL)

    def extreme(self, name: str, value: Typed) -> Typed:
        """MIN or MAX."""
        found = Printer.extreme(self, name, value)
        return replace(found, text=found.text + _TAIL, constant=None)

    def functions(self) -> Mapping[str, Writer]:
        """Those of every engine, and these."""
        return _FUNCTIONS


def quote_name(name: str) -> str:
    """A name of Spark's."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    r"""A constant: a backslash begins an escape, and two quotation marks are none.

    >>> print(quote_text("it's a \\ here"))
    'it\'s a \\ here'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000") + "'"


def find_place(value: str, listed: Sequence[str]) -> str:
    """The place of a text among the declared ones, from 0; NULL if it is none of them.

    Many are divided by a checksum first, so that each text is compared with few.  Not by
    ELEMENT_AT: in ANSI mode Spark takes it for never NULL, also where the place is NULL.
    """
    if len(listed) <= _FEW:
        texts = ", ".join(map(quote_text, listed))
        return f"(NULLIF(ARRAY_POSITION(ARRAY({texts}), {value}), 0L) - 1L)"
    size = len(listed) // 2 + 1
    parts: list[list[int]] = [[] for _ in range(size)]
    for place, code in enumerate(listed):
        parts[zlib.crc32(code.encode()) % size].append(place)
    texts = ", ".join(_array([quote_text(listed[i]) for i in p], "STRING") for p in parts)
    places = ", ".join(_array([f"{i}L" for i in p], "BIGINT") for p in parts)
    part = f"CAST(CRC32(CAST({value} AS BINARY)) % {size}L AS INT)"
    at = f"CAST(ARRAY_POSITION(GET(ARRAY({texts}), {part}), {value}) - 1L AS INT)"
    return f"GET(GET(ARRAY({places}), {part}), {at})"


def _array(items: list[str], type_: str) -> str:
    return f"ARRAY({', '.join(items)})" if items else f"CAST(ARRAY() AS ARRAY<{type_}>)"


def _is_sum(node: Node) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.Sum) or (isinstance(inner, exp.Anonymous) and inner.name == "SUM")


def _take_apart(node: Node) -> tuple[Node, Node | None]:
    """What is summed, and where."""
    where = node.expression.this if isinstance(node, exp.Filter) else None
    inner = node.this if isinstance(node, exp.Filter) else node
    return (inner.this if isinstance(inner, exp.Sum) else inner.expressions[0]), where


def _add_tail(value: Typed, tail: str) -> Typed:
    """FILTER or OVER, after every aggregate of a text."""
    return replace(value, text=value.text.replace(_TAIL, tail))


def _wide_as_double(n: str) -> str:
    """As DuckDB rounds: what fits in one word once, what is just below zero and the rest twice."""
    word = f"CAST('{_WORD}' AS {WIDE})"
    low = f"((({n}) % {word} + {word}) % {word})"
    high = f"((({n}) - {low}) / {word})"
    below = f"-CAST(-({n}) - 1 AS DOUBLE) - 1D"
    return (
        f"CASE WHEN ({n}) >= 0 AND ({n}) < {word} THEN CAST(({n}) AS DOUBLE) "
        f"WHEN ({n}) < 0 AND ({n}) >= -{word} THEN {below} "
        f"ELSE CAST({low} AS DOUBLE) + CAST({high} AS DOUBLE) * {float(_WORD)!r}D END"
    )


# --- functions ------------------------------------------------------------------------------------


def _part(name: str) -> Writer:
    """A part of a point in time."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        if values[0].type not in (Type.DATE, Type.TIMESTAMP):
            printer.refuse(f"{name} of {values[0].type.value}")
        return combine(f"CAST({name}({values[0].text}) AS BIGINT)", Type.WHOLE, *values)

    return write


def _day_of_week(form: str) -> Writer:
    """Spark's Sunday is 1, and its Monday 0."""
    return lambda _, v: combine(f"CAST({form.format(v[0].text)} AS BIGINT)", Type.WHOLE, *v)


def _find_form(printer: Printer, values: Sequence[Typed]) -> Typed:
    """One of our own forms; ``$`` would leave a line feed at the end unread."""
    form = str(values[1].constant)
    if form not in (WHOLE_FORM, DAY_FORM, MOMENT_FORM) or not form.endswith("$"):
        printer.refuse("texts read as numbers with a fraction")
    pattern = quote_text(form[:-1] + r"\z")
    found = combine(f"REGEXP_EXTRACT({values[0].text}, {pattern}, 1)", Type.TEXT, *values)
    return replace(found, form=form)


def _finite(_: Printer, values: Sequence[Typed]) -> Typed:
    return combine(f"ABS({values[0].text}) <= {_LARGEST}", Type.BOOLEAN, *values)


def _same(name: str) -> Writer:
    """A function of one number whose result is of its type."""

    def write(_: Printer, values: Sequence[Typed]) -> Typed:
        return combine(f"{name}({values[0].text})", values[0].type, *values)

    return write


def _to_whole(form: str) -> Writer:
    """A function that Spark computes in 64 bits: beyond 2**52 every double is whole."""

    def write(printer: Printer, values: Sequence[Typed]) -> Typed:
        (value,) = values
        if value.type in _WHOLE:
            return value
        if value.type is not Type.DOUBLE:
            printer.refuse(f"rounding of {value.type.value}")
        near = f"ABS({value.text}) < 4503599627370496D"
        text = f"CASE WHEN {near} THEN {form.format(value.text)} ELSE {value.text} END"
        return combine(text, Type.DOUBLE, value)

    return write


def _round_away(x: str) -> str:
    """To the nearest whole number, halves away from zero; Spark's own looks at the digits shown."""
    up = f"CASE WHEN ABS({x}) - FLOOR(ABS({x})) >= 0.5D THEN 1D ELSE 0D END"
    whole = f"SIGN({x}) * (CAST(FLOOR(ABS({x})) AS DOUBLE) + {up})"
    return f"CASE WHEN ABS({x}) < 4503599627370496D THEN {whole} ELSE {x} END"


def _round(printer: Printer, values: Sequence[Typed]) -> Typed:
    value = values[0]
    digits = values[1].constant if len(values) > 1 else 0
    if not isinstance(digits, int):
        printer.refuse("ROUND to a number of digits that is no constant")
    if value.type in _WHOLE:
        text = f"CAST(ROUND({value.text}, {digits}) AS {printer.spell(value.type)})"
        return combine(text, value.type, value)
    if value.type is not Type.DOUBLE or value.together:
        printer.refuse(f"ROUND of {value.type.value}")
    if digits == 0:
        return combine(_round_away(value.text), Type.DOUBLE, value)
    unit = f"{10.0 ** abs(digits)!r}D"
    there, back = ("*", "/") if digits > 0 else ("/", "*")
    whole = _round_away(f"({value.text} {there} {unit})")
    result = f"(({whole}) {back} {unit})"
    text = f"CASE WHEN ABS{result} <= {_LARGEST} THEN {result} ELSE {value.text} END"
    return combine(text, Type.DOUBLE, value)


def _root(_: Printer, values: Sequence[Typed]) -> Typed:
    text = f"CASE WHEN {values[0].text} >= 0D THEN SQRT({values[0].text}) END"
    return combine(text, Type.DOUBLE, *values)


_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _truncate(printer: Printer, values: Sequence[Typed]) -> Typed:
    unit, point = values
    if unit.constant not in _TRUNCATED:
        printer.refuse(f"DATE_TRUNC to {unit.constant}")
    if point.type is Type.DATE:
        if unit.constant in ("day", "hour", "minute", "second"):
            return point
        return combine(f"TRUNC({point.text}, '{unit.constant}')", Type.DATE, point)
    moment = f"CAST({point.text} AS TIMESTAMP_LTZ)"
    text = f"CAST(DATE_TRUNC('{unit.constant}', {moment}) AS TIMESTAMP_NTZ)"
    return combine(text, Type.TIMESTAMP, point)


def _microseconds(_: Printer, values: Sequence[Typed]) -> Typed:
    text = f"UNIX_MICROS(CAST({values[0].text} AS TIMESTAMP_LTZ))"
    return combine(text, Type.WHOLE, *values)


def _interval(form: str) -> Writer:
    return lambda _, v: combine(form.format(v[0].text), Type.INTERVAL, *v)


def _ends_with(_: Printer, values: Sequence[Typed]) -> Typed:
    return combine(f"ENDSWITH({values[0].text}, {values[1].text})", Type.BOOLEAN, *values)


_FUNCTIONS: dict[str, Writer] = {
    **FUNCTIONS,
    **{name: _part(name) for name in ("YEAR", "QUARTER", "MONTH", "DAY", "DAYOFYEAR")},
    **{name: _part(name) for name in ("HOUR", "MINUTE", "SECOND")},
    "WEEK": _part("WEEKOFYEAR"),
    "DAYOFWEEK": _day_of_week("DAYOFWEEK({0}) - 1"),
    "ISODOW": _day_of_week("WEEKDAY({0}) + 1"),
    "DATE_TRUNC": _truncate,
    "EPOCH_US": _microseconds,
    "TO_DAYS": _interval("MAKE_DT_INTERVAL({0})"),
    "TO_MONTHS": _interval("MAKE_YM_INTERVAL(0, {0})"),
    "TO_SECONDS": _interval("MAKE_DT_INTERVAL(0, 0, 0, CAST({0} AS DECIMAL(18, 6)))"),
    "ABS": _same("ABS"),
    "FLOOR": _to_whole("CAST(FLOOR({0}) AS DOUBLE)"),
    "CEIL": _to_whole("CAST(CEIL({0}) AS DOUBLE)"),
    "TRUNC": _to_whole("CAST(CAST({0} AS BIGINT) AS DOUBLE)"),
    "SIGN": lambda _, v: combine(f"CAST(SIGN({v[0].text}) AS BIGINT)", Type.WHOLE, *v),
    "ROUND": _round,
    "SQRT": _root,
    "ISFINITE": _finite,
    "LOWER": call_letters("LOWER"),
    "UPPER": call_letters("UPPER"),
    "TRIM": call_trim("TRIM(BOTH ' ' FROM {0})"),
    "LEFT": call_of_text("LEFT"),
    "RIGHT": call_of_text("RIGHT"),
    "SUBSTR": call_of_text("SUBSTR"),
    "LENGTH": call_of_text("LENGTH", Type.WHOLE),
    "REPLACE": call_of_text("REPLACE"),
    "CHR": lambda p, v: Typed(f"CHR({write_short(p, v[0])})", Type.TEXT),
    "CONTAINS": call_as("CONTAINS", Type.BOOLEAN),
    "STARTS_WITH": call_as("STARTSWITH", Type.BOOLEAN),
    "ENDS_WITH": _ends_with,
    "REGEXP_EXTRACT": _find_form,
    "ROW": call_as("STRUCT", Type.ROW),
    "ROUND_EVEN": lambda _, v: combine(f"RINT({v[0].text})", Type.DOUBLE, *v),
}

__all__ = ["SparkPrinter", "find_place", "quote_name", "quote_text"]
