"""Dates and spans of time as analysts write them, in one spelling.

PostgreSQL subtracts and adds intervals, DuckDB and Snowflake name the unit first,
BigQuery last.  All become the few functions of :mod:`discreet.question.functions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.question.domain import Kind
from discreet.question.functions.formats import split_format
from discreet.question.functions.intervals import UNITS
from discreet.question.sql.dialect import Reader, copy_span
from discreet.question.sql.scalars import CASTS, call, is_constant, read_constant, write_constant

TIMES = (Kind.DATE, Kind.TIMESTAMP)


class Inner:
    """Brings a part of an expression into normal form, and tells what kind of value it is."""

    def __call__(self, node: exp.Expr) -> exp.Expr:
        """The part in normal form."""
        raise NotImplementedError

    def kind_of_column(self, tree: exp.Column) -> Kind | None:
        """The kind of a column in normal form; None if it is not known."""
        raise NotImplementedError

    def zone_of_column(self, tree: exp.Column) -> str | None:
        """The time zone whose clocks a column in normal form shows; None if it is not declared."""
        raise NotImplementedError

    def kind(self, tree: exp.Expr) -> Kind | None:
        """The kind of what is in normal form, where it can be told at a glance."""
        match tree:
            case exp.Column():
                return self.kind_of_column(tree)
            case exp.Cast():
                return _CAST_KINDS.get(CASTS.get(tree.args["to"].this, ""))
            case exp.Boolean():
                return Kind.BOOLEAN
            case exp.Window():
                return self.kind(tree.this)
            case exp.Case():
                return self.kind(tree.args["ifs"][0].args["true"])
            case exp.Anonymous() if tree.expressions:
                name = tree.name.lower()
                if name in ("date_add_seconds", "convert_timezone"):
                    return Kind.TIMESTAMP
                if name in _KEEP_KIND or name.startswith("date_trunc_"):
                    return self.kind(tree.expressions[0])
        return None

    def time(self, node: exp.Expr) -> exp.Expr:
        """A part that is a point in time: a text that looks like one is one."""
        tree = self(node)
        return _moment_of(tree) or tree


_CAST_KINDS = {
    "cast_date": Kind.DATE, "cast_timestamp": Kind.TIMESTAMP, "cast_boolean": Kind.BOOLEAN,
}  # fmt: skip
_KEEP_KIND = {
    "date_add_days", "date_add_months", "coalesce", "nullif", "greatest", "least", "min", "max",
    "lag", "lead", "first_value", "last_value",
}  # fmt: skip


# --- constants that are compared -----------------------------------------------------------

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_TRUTHS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _moment_of(tree: exp.Expr) -> exp.Expr | None:
    """The point in time that a text constant writes, if it writes one."""
    if not (isinstance(tree, exp.Literal) and tree.is_string):
        return None
    try:
        if _DAY.fullmatch(tree.name):
            return copy_span(write_constant(date.fromisoformat(tree.name)), tree)
        if _MOMENT.fullmatch(tree.name):
            return copy_span(write_constant(datetime.fromisoformat(tree.name)), tree)
    except ValueError:
        pass  # the 31st of April
    return None


def type_constants(tree: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``tree`` in normal form, its constants of the kind that they are compared with.

    A text beside a date is a date; 1 and 0 beside a boolean are true and false.
    """
    match tree:
        case exp.Anonymous() if tree.name == "AND":
            for part in tree.expressions:
                type_constants(part, inner, reader)
        case exp.In():
            kind = inner.kind(tree.this)
            members = [_cast_to(member, kind, reader) for member in tree.expressions]
            tree.set("expressions", members)
        case _ if isinstance(tree, _COMPARED):
            left, right = tree.this, tree.expression
            tree.set("this", _cast_to(left, inner.kind(right), reader))
            tree.set("expression", _cast_to(right, inner.kind(left), reader))
        case exp.Anonymous() if tree.name in ("COALESCE", "GREATEST", "LEAST", "NULLIF"):
            kinds = (inner.kind(part) for part in tree.expressions)
            kind = next((k for k in kinds if k is not None), None)
            parts = [_cast_to(part, kind, reader) for part in tree.expressions]
            tree.set("expressions", parts)
    return tree


def _cast_to(tree: exp.Expr, kind: Kind | None, reader: Reader) -> exp.Expr:
    if not isinstance(tree, exp.Literal):
        return tree
    if kind is Kind.BOOLEAN and tree.name.lower() in _TRUTHS:
        return copy_span(exp.Boolean(this=_TRUTHS[tree.name.lower()]), tree)
    if kind in TIMES and tree.is_string:
        found = _moment_of(tree)
        if found is None:
            raise _not_a_day(tree, reader)
        return found
    return tree


def _not_a_day(node: exp.Expr, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q31",
        node,
        "this stands for a date and is none of the calendar.",
        why="a constant must mean the same for every row.",
        fix="write it as '2024-02-29' or '2024-02-29 12:30:00'.",
    )


# --- units ---------------------------------------------------------------------------------

_SHORT = {
    "y": "year", "yy": "year", "yyyy": "year", "yr": "year", "q": "quarter", "qq": "quarter",
    "qtr": "quarter", "mm": "month", "mon": "month", "w": "week", "wk": "week", "ww": "week",
    "isoweek": "week", "d": "day", "dd": "day", "h": "hour", "hh": "hour", "hr": "hour",
    "m": "minute", "mi": "minute", "min": "minute", "s": "second", "ss": "second", "sec": "second",
}  # fmt: skip


def unit_of(text: str) -> str | None:
    """The unit meant by a word, in any number.

    >>> unit_of("Days"), unit_of("qtr"), unit_of("fortnight")
    ('day', 'quarter', None)
    """
    word = text.lower()
    for form in (word, word.removesuffix("s")):
        if form in UNITS or form in _SHORT:
            return _SHORT.get(form, form)
    return None


def _unit_node(node: exp.Expr, *, text: bool, bare: bool) -> str | None:
    """A unit written as text ('month') or as a bare word (MONTH)."""
    if isinstance(node, exp.Literal) and node.is_string and text:
        return unit_of(node.name)
    if isinstance(node, exp.Column | exp.Var) and bare and not node.args.get("table"):
        return unit_of(node.name)
    return None


def _bigquery_unit(node: exp.Expr) -> tuple[str, bool] | None:
    """A unit after its point, and whether its weeks begin on Sunday."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == "WEEK" and node.expressions:
        start = node.expressions[0].name.upper()
        return ("week", start == "SUNDAY") if start in ("SUNDAY", "MONDAY") else None
    unit = _unit_node(node, text=False, bare=True)
    return None if unit is None else (unit, node.name.upper() == "WEEK")


def _days_later(tree: exp.Expr, days: int) -> exp.Expr:
    return call("date_add_days", tree, write_constant(days))


# --- spans ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """An interval: months, days and seconds; each a tree in normal form, or nothing."""

    months: exp.Expr | None = None
    days: exp.Expr | None = None
    seconds: exp.Expr | None = None

    def later(self, point: exp.Expr, *, back: bool = False) -> exp.Expr:
        """The point that lies this much after ``point``, or before."""
        for name in ("months", "days", "seconds"):
            amount = getattr(self, name)
            if amount is not None:
                point = call(f"date_add_{name}", point, _sign(amount, back))
        return point

    @property
    def fixed_seconds(self) -> exp.Expr | None:
        """How long it is, if that is the same everywhere and written down."""
        if self.months is not None:
            return None
        total = 0
        for amount, scale in ((self.days, 86_400), (self.seconds, 1)):
            value = 0 if amount is None else read_constant(amount) if is_constant(amount) else None
            if not isinstance(value, int):
                return None
            total += scale * value
        return write_constant(total)


def _sign(tree: exp.Expr, negative: bool) -> exp.Expr:
    if not negative:
        return tree
    value = read_constant(tree) if is_constant(tree) else None
    return write_constant(-value) if isinstance(value, int) else exp.Neg(this=tree)


_IN_UNIT = {
    "year": ("months", 12), "quarter": ("months", 3), "month": ("months", 1), "week": ("days", 7),
    "day": ("days", 1), "hour": ("seconds", 3600), "minute": ("seconds", 60),
    "second": ("seconds", 1),
}  # fmt: skip
_AMOUNTS = re.compile(r"\s*([+-]?\d{1,9})\s*([A-Za-z]+)\s*,?")


def span_of(unit: str, amount: exp.Expr) -> Span:
    """So many of a unit; ``amount`` is in normal form."""
    name, scale = _IN_UNIT[unit]
    value = read_constant(amount) if is_constant(amount) else None
    if isinstance(value, int) and not isinstance(value, bool):
        scaled: exp.Expr = write_constant(scale * value)
    elif scale == 1:
        scaled = amount
    else:
        scaled = exp.Mul(this=amount, expression=write_constant(scale))
    return Span(**{name: scaled})


def read_span(node: exp.Expr, inner: Inner, reader: Reader) -> Span | None:
    """The interval that ``node`` is; None if it is none."""
    node = node.unnest()
    match node:
        case exp.Mul(this=factor, expression=other):
            for number, interval in ((factor, other), (other, factor)):
                if isinstance(interval.unnest(), exp.Interval):
                    return _multiple(interval.unnest(), number, inner, reader)
            return None
        case exp.Interval():
            return _interval(node, inner, reader)
        case exp.Cast(this=exp.Literal() as text) if node.args["to"].this is exp.DType.INTERVAL:
            return _read_written_span(text.name) or _refuse_span(node, reader)
    return None


def _interval(node: exp.Expr, inner: Inner, reader: Reader) -> Span:
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Literal) and (amount.is_string or unit is None):
        found = _read_written_span(f"{amount.name} {unit.name if unit else ''}")
        return found or _refuse_span(node, reader)
    known = unit_of(unit.name) if unit is not None else None
    if known is None or amount is None:
        return _refuse_span(node, reader)
    return span_of(known, inner(amount))


def _multiple(node: exp.Expr, factor: exp.Expr, inner: Inner, reader: Reader) -> Span:
    span = _interval(node, inner, reader)
    tree = inner(factor)
    parts = {
        name: tree if read_constant(amount) == 1 else exp.Mul(this=tree, expression=amount)
        for name in ("months", "days", "seconds")
        if (amount := getattr(span, name)) is not None
    }
    return Span(**parts)


def _read_written_span(text: str) -> Span | None:
    """An interval written as text: '7 days', '1 year 2 months'."""
    totals: dict[str, int] = {}
    place = 0
    while place < len(text.rstrip()):
        found = _AMOUNTS.match(text, place)
        unit = unit_of(found[2]) if found else None
        if found is None or unit is None:
            return None
        name, scale = _IN_UNIT[unit]
        totals[name] = totals.get(name, 0) + scale * int(found[1])
        place = found.end()
    if not totals:
        return None
    return Span(**{name: write_constant(total) for name, total in totals.items()})


def _refuse_span(node: exp.Expr, reader: Reader) -> Span:
    raise reader.refusal(
        "Q31",
        node,
        "an interval is a whole number of years, quarters, months, weeks, days, hours, minutes "
        "or seconds.",
        why="how far a date is moved must be known for every row.",
        fix="write INTERVAL '7' DAY, or INTERVAL '1 year 6 months'.",
    )


# --- + and - -------------------------------------------------------------------------------


def shift(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr:
    """``day + INTERVAL '7' DAY``, ``day - 7``, ``day - other``; of numbers it stays what it is."""
    back = isinstance(node, exp.Sub)
    span = read_span(node.expression, inner, reader)
    if span is not None:
        return span.later(inner.time(node.this), back=back)
    if not back and (span := read_span(node.this, inner, reader)) is not None:
        return span.later(inner.time(node.expression))
    left, right = inner(node.this), inner(node.expression)
    kinds = inner.kind(left), inner.kind(right)
    if kinds[0] in TIMES and back and (kinds[1] in TIMES or _moment_of(right) is not None):
        return _apart(node, left, _moment_of(right) or right, kinds, reader)
    if kinds[1] in TIMES and back and (moment := _moment_of(left)) is not None:
        return _apart(node, moment, right, (kinds[1], kinds[1]), reader)
    if kinds[0] in TIMES and kinds[1] is None:
        return call("date_add_days", left, _sign(right, back))
    if kinds[1] in TIMES and kinds[0] is None and not back:
        return call("date_add_days", right, left)
    # Made of what was read: to read it anew would take twice the time at each level of nesting.
    return type(node)(this=left, expression=right)


def _apart(
    node: exp.Expr,
    end: exp.Expr,
    start: exp.Expr,
    kinds: tuple[Kind | None, Kind | None],
    reader: Reader,
) -> exp.Expr:
    if Kind.TIMESTAMP not in kinds:
        return call("date_diff_days", start, end)
    raise reader.refusal(
        "Q10",
        node,
        "the time between two moments is an interval, and here a number is wanted.",
        why="a person's span has bounds only in a unit that is written down.",
        fix="write DATE_DIFF('day', start, end), or EXTRACT(EPOCH FROM (end - start)) for seconds.",
    )


def compare_spans(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """``a - b < INTERVAL '30 days'`` compares seconds; None if there is no interval."""
    for one, other, flipped in ((node.this, node.expression, False),
                                (node.expression, node.this, True)):  # fmt: skip
        apart = one.unnest()
        if not isinstance(apart, exp.Sub | exp.Anonymous):
            continue
        if not isinstance(other.unnest(), exp.Interval | exp.Mul | exp.Cast):
            continue
        points = _find_difference(apart, reader)
        span = read_span(other, inner, reader) if points is not None else None
        if points is None or span is None:
            continue
        seconds = span.fixed_seconds
        if seconds is None:
            start, end = (inner.time(point) for point in points)
            limit: tuple[exp.Expr, exp.Expr] = end, span.later(start)
        else:
            start, end = (inner.time(point) for point in points)
            limit = call("seconds_between", start, end), seconds
        left, right = reversed(limit) if flipped else limit
        return type(node)(this=left, expression=right)
    return None


def _find_difference(node: exp.Expr, reader: Reader) -> tuple[exp.Expr, exp.Expr] | None:
    """The start and the end of ``end - start`` or AGE(end, start)."""
    node = node.unnest()
    if isinstance(node, exp.Sub):
        return node.expression, node.this
    if isinstance(node, exp.Anonymous) and node.name.upper() == "AGE":
        match node.expressions:
            case [end, start]:
                return start, end
            case [start]:
                return start, write_constant(reader.now.date())
    return None


# --- EXTRACT and its family ----------------------------------------------------------------

_PARTS = {
    "dow": "dayofweek", "doy": "dayofyear", "weekday": "dayofweek", "weekofyear": "week",
    "isoweek": "week", "weekiso": "week", "dayofweekiso": "isodow", "dayofweek_iso": "isodow",
    "epoch_second": "epoch", "epoch_seconds": "epoch", "date": "cast_date",
}  # fmt: skip
Find = Callable[[str, exp.Expr, Reader], str]


def extract(
    part: str, subject: exp.Expr, node: exp.Expr, inner: Inner, reader: Reader, find: Find
) -> exp.Expr:
    """A part of a point in time, or of the time between two."""
    part = part.lower()
    points = _find_difference(subject, reader)
    if points is not None:
        return _extract_span(part, subject, points, node, inner, reader)
    name = _PARTS.get(part) or unit_of(part) or part
    tree = inner.time(subject)
    if name == "cast_date":
        return exp.Cast(this=tree, to=exp.DataType(this=exp.DType.DATE))
    return call(find(name, node, reader), tree)


def _extract_span(
    part: str,
    subject: exp.Expr,
    points: tuple[exp.Expr, exp.Expr],
    node: exp.Expr,
    inner: Inner,
    reader: Reader,
) -> exp.Expr:
    start, end = (inner.time(point) for point in points)
    age = isinstance(subject.unnest(), exp.Anonymous)
    match part:
        case "epoch" if not age:
            return call("seconds_between", start, end)
        case "year" | "years" if age:
            return call("whole_years", start, end)
        case "month" | "months" if age:
            months = call("whole_months", start, end)
            return exp.Mod(this=months, expression=write_constant(12))
        case "day" | "days" if not age:
            return call("whole_days", start, end)
    raise reader.refusal(
        "Q10",
        node,
        f"{part.upper()} of {'AGE' if age else 'a difference'} is outside the dialect.",
        why="a person's span has bounds only in a unit that is written down.",
        fix="take YEAR or MONTH of AGE(end, start), EPOCH or DAY of (end - start), or write "
        "DATE_DIFF('hour', start, end).",
    )


# --- DATE_DIFF, DATE_TRUNC, DATE_ADD -------------------------------------------------------


def date_diff(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """The unit first, or BigQuery's unit last; without one, days from the second to the first.

    Of all units, weeks mean most: DuckDB's text counts whole ones between two dates, the bare word
    of Snowflake counts Mondays, and BigQuery's counts Sundays (``remark_on_weeks`` says which).
    """
    del reader
    arguments, name = node.expressions, node.name.upper()
    if len(arguments) == 2:
        end, start = (inner.time(a) for a in arguments)
        return call("date_diff_days", start, end)
    if len(arguments) != 3:
        return None
    first, second, third = arguments
    unit = _unit_node(first, text=True, bare=True)
    if unit == "week" and isinstance(first, exp.Literal):  # DuckDB's: whole weeks between dates
        return call("whole_weeks", *(_day_of(inner.time(p), inner) for p in (second, third)))
    if unit is not None:
        return call(f"date_diff_{unit}s", inner.time(second), inner.time(third))
    found = _bigquery_unit(third)
    if found is None:
        return None
    unit, sunday = found
    end, start = inner.time(first), inner.time(second)
    if name == "TIMESTAMP_DIFF":
        return call(f"whole_{unit}s", start, end)
    if unit == "week" and sunday:  # a Sunday is a Monday for who lives a day later
        start, end = _days_later(start, 1), _days_later(end, 1)
    return call(f"date_diff_{unit}s", start, end)


def _day_of(tree: exp.Expr, inner: Inner) -> exp.Expr:
    if inner.kind(tree) is Kind.DATE:
        return tree
    return exp.Cast(this=tree, to=exp.DataType(this=exp.DType.DATE))


_WEEKS = {"DATE_DIFF", "DATEDIFF", "TIMESTAMPDIFF", "DATETIME_DIFF"}


def remark_on_weeks(tree: exp.Expr) -> tuple[str, ...]:
    """Which weeks are counted between two points, where other systems count others."""
    found: dict[str, None] = {}
    for node in tree.find_all(exp.Anonymous):
        parts = node.expressions
        if len(parts) != 3 or node.name.upper() not in _WEEKS:
            continue
        if _unit_node(parts[0], text=True, bare=True) == "week":
            whole = isinstance(parts[0], exp.Literal)
            found[_WHOLE_WEEKS if whole else _MONDAYS] = None
    return tuple(found)


_WHOLE_WEEKS = (
    "DATE_DIFF('week', ...): whole weeks between the two dates, as in DuckDB 2; "
    "DATEDIFF(week, ...) counts the Mondays between them, as in Snowflake and older versions of "
    "DuckDB."
)
_MONDAYS = (
    "DATEDIFF(week, ...): the Mondays between the two, as in Snowflake; in SQL Server and Redshift "
    "they are Sundays, and DATE_DIFF('week', ...) counts whole weeks, as in DuckDB 2."
)


def date_trunc(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """DATE_TRUNC('month', day), or BigQuery's DATE_TRUNC(day, MONTH)."""
    del reader
    if len(node.expressions) != 2:
        return None
    first, second = node.expressions
    unit = _unit_node(first, text=True, bare=False)
    if unit is not None:
        return call(f"date_trunc_{unit}", inner.time(second))
    if node.name.upper() == "TRUNC" and isinstance(second, exp.Literal) and second.is_string:
        pictured = _TRUNCATED.get(second.name.upper())
        return None if pictured is None else call(f"date_trunc_{pictured}", inner.time(first))
    found = _bigquery_unit(second)
    bare = _unit_node(first, text=False, bare=True)
    if bare is not None and (found is None or not _is_column(first, inner)):
        return call(f"date_trunc_{bare}", inner.time(second))  # Snowflake's DATE_TRUNC(month, day)
    if found is None:
        unit = _unit_node(second, text=True, bare=False)
        return None if unit is None else call(f"date_trunc_{unit}", inner.time(first))
    unit, sunday = found
    if unit == "week" and sunday:
        monday = call("date_trunc_week", _days_later(inner.time(first), 1))
        return _days_later(monday, -1)
    return call(f"date_trunc_{unit}", inner.time(first))


_TRUNCATED = {
    **dict.fromkeys(("YYYY", "YYY", "YY", "Y", "YEAR"), "year"),
    **dict.fromkeys(("Q", "QUARTER"), "quarter"),
    **dict.fromkeys(("MM", "MON", "MONTH", "RM"), "month"),
    **dict.fromkeys(("IW", "WEEK"), "week"),
    **dict.fromkeys(("DD", "DDD", "J"), "day"),
    **dict.fromkeys(("HH", "HH24", "HOUR"), "hour"),
}
"""Oracle's and Snowflake's words in TRUNC(day, 'MM'); DAY is not one meaning in both."""


def _is_column(node: exp.Expr, inner: Inner) -> bool:
    try:
        inner(node)
    except QuestionRefusal:
        return False
    return True


_BUCKETS = {
    **{("months", n): unit for n, unit in ((12, "year"), (3, "quarter"), (1, "month"))},
    **{("seconds", n): unit for n, unit in ((604_800, "week"), (86_400, "day"), (3600, "hour"))},
    **{("seconds", n): unit for n, unit in ((60, "minute"), (1, "second"))},
}


def time_bucket(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """TIME_BUCKET(INTERVAL '1 week', at) and TIME_SLICE(at, 1, 'WEEK') of one unit: DATE_TRUNC."""
    arguments = node.expressions
    if node.name.upper() == "TIME_SLICE":
        if len(arguments) != 3 or arguments[1].name != "1":
            return None
        unit = _unit_node(arguments[2], text=True, bare=True)
        return None if unit is None else call(f"date_trunc_{unit}", inner.time(arguments[0]))
    span = read_span(arguments[0], inner, reader) if len(arguments) == 2 else None
    if span is None:
        return None
    months = read_constant(span.months) if span.months and is_constant(span.months) else None
    if months is not None and span.days is None and span.seconds is None:
        key: tuple[str, object] = ("months", months)
    else:
        seconds = span.fixed_seconds
        key = ("seconds", None if seconds is None else read_constant(seconds))
    known = _BUCKETS.get(key)  # type: ignore[arg-type]
    return None if known is None else call(f"date_trunc_{known}", inner.time(arguments[1]))


def date_add(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """DATE_ADD(day, INTERVAL '7' DAY), DATEADD(day, 7, day), ADD_MONTHS(day, 3); with SUB, back."""
    arguments, name = node.expressions, node.name.upper()
    back = name.endswith("SUB")
    if name == "ADD_MONTHS" and len(arguments) == 2:
        return Span(months=inner(arguments[1])).later(inner.time(arguments[0]))
    if len(arguments) == 2:
        span = read_span(arguments[1], inner, reader)
        if span is not None:
            return span.later(inner.time(arguments[0]), back=back)
        return call("date_add_days", inner.time(arguments[0]), _sign(inner(arguments[1]), back))
    if len(arguments) == 3:
        first, second, third = arguments
        unit = _unit_node(first, text=True, bare=True)
        if unit is not None and back:  # DuckDB's DATE_SUB('day', start, end)
            return call(f"whole_{unit}s", inner.time(second), inner.time(third))
        if unit is not None:
            return span_of(unit, inner(second)).later(inner.time(third))
    return None


def last_day(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """The last day of a month."""
    del reader
    if len(node.expressions) != 1:
        return None
    month = call("date_trunc_month", inner.time(node.expressions[0]))
    return _days_later(call("date_add_months", month, write_constant(1)), -1)


def make_date(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """DATE(moment), TO_DATE('2024-02-29'), DATE(2024, 2, 29), MAKE_DATE(born, 7, 1)."""
    trees = [inner(a) for a in node.expressions]
    if len(trees) == 3:
        parts = [read_constant(t) if is_constant(t) else None for t in trees]
        if all(isinstance(p, int) for p in parts):
            try:
                return write_constant(date(*parts))  # type: ignore[arg-type]
            except (ValueError, OverflowError):
                raise _not_a_day(node, reader) from None
        return _day_of_year(trees[0], parts[1:])
    if not 1 <= len(trees) <= 2:
        return None
    if len(trees) == 2:  # a format beside a constant that is written the usual way
        texts = [_moment_of(t) for t in trees]
        return next((t for t in texts if t is not None), None)
    kind = exp.DType.DATE if node.name.upper()[-4:] == "DATE" else exp.DType.TIMESTAMP
    found = _moment_of(trees[0])
    if found is not None and (kind is exp.DType.DATE) == (len(found.this.name) == 10):
        return found
    if found is None and isinstance(trees[0], exp.Literal) and trees[0].is_string:
        raise _not_a_day(node, reader)
    return exp.Cast(this=found or trees[0], to=exp.DataType(this=kind))


_ANY_YEAR = 2001  # no leap year: its days are those of every year


def _day_of_year(year: exp.Expr, place: list[Any]) -> exp.Expr | None:
    """MAKE_DATE(born, 7, 1): the same day of each row's year, as many months from 2001's."""
    try:
        start = write_constant(date(_ANY_YEAR, *place))
    except (TypeError, ValueError, OverflowError):
        return None
    years = exp.Sub(this=year, expression=write_constant(_ANY_YEAR))
    return call("date_add_months", start, exp.Mul(this=years, expression=write_constant(12)))


# --- formats -------------------------------------------------------------------------------

_PICTURES = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I",
    "MI": "%M", "SS": "%S", "DDD": "%j", "Mon": "%b", "Dy": "%a", "FMMonth": "%B", "FMDay": "%A",
    "MMMM": "%B", "AM": "%p", "PM": "%p", "IW": "%V", "IYYY": "%G", "ID": "%u", "Q": "%Q",
}  # fmt: skip
_PICTURE = re.compile("|".join(sorted(_PICTURES, key=len, reverse=True)) + r'|"[^"]*"|[^\w"]+')


def read_picture(text: str) -> str | None:
    """TO_CHAR's picture as a format; None if a part is unknown.

    >>> read_picture("YYYY-MM"), read_picture('DD "of" FMMonth'), read_picture("Month")
    ('%Y-%m', '%d of %B', None)
    """
    found, place = "", 0
    for piece in _PICTURE.finditer(text):
        if piece.start() != place:
            return None
        place = piece.end()
        found += _PICTURES.get(piece[0], piece[0].strip('"').replace("%", "%%"))
    return found if place == len(text) else None


_MYSQL = {"%i": "%M", "%M": "%B", "%s": "%S", "%W": "%A", "%h": "%I", "%T": "%H:%M:%S"}
_SAME = {"%Y", "%y", "%m", "%d", "%H", "%S", "%b", "%a", "%j", "%p", "%%"}


def read_mysql_format(text: str) -> str | None:
    """The format of MySQL's and Presto's DATE_FORMAT as one of STRFTIME; None if it is neither.

    >>> read_mysql_format("%Y-%m %H:%i"), read_mysql_format("yyyy-MM"), read_mysql_format("%D")
    ('%Y-%m %H:%M', None, None)
    """
    pieces = re.findall(r"%.|[^%]+", text)
    if "%" not in text or "".join(pieces) != text:
        return None
    known = [p for p in pieces if p[0] != "%" or p in _MYSQL or p in _SAME]
    return "".join(_MYSQL.get(p, p) for p in pieces) if known == pieces else None


def format_time(node: exp.Expr, inner: Inner, reader: Reader) -> exp.Expr | None:
    """STRFTIME(day, '%Y-%m') in any order, TO_CHAR(day, 'YYYY-MM'), FORMAT_DATE('%Y-%m', day)."""
    if len(node.expressions) != 2:
        return None
    trees = [inner(a) for a in node.expressions]
    texts = [t for t in trees if isinstance(t, exp.Literal) and t.is_string]
    if node.name.upper().startswith("FORMAT_") or (trees[0] in texts and trees[1] not in texts):
        trees.reverse()
    point, picture = trees
    if not (isinstance(picture, exp.Literal) and picture.is_string):
        return None
    pictured = node.name.upper().startswith("TO_")
    text = read_picture(picture.name) if pictured else picture.name
    if node.name.upper() == "DATE_FORMAT":
        text = read_mysql_format(picture.name)
    if text is None or split_format(text) is None:
        raise reader.refusal(
            "Q31",
            picture,
            "a part of this format is unknown.",
            why="what is written for one person must be written for every person.",
            fix="use YYYY, MM, DD, HH24, MI, SS, Mon, FMMonth, Dy, FMDay, Q, IW."
            if pictured
            else "use %Y, %m, %d, %H, %M, %S, %b, %B, %a, %A, %j, %Q, %V.",
        )
    return call("strftime", _moment_of(point) or point, copy_span(write_constant(text), picture))
