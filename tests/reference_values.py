"""The reference meaning of every function, in plain Python; None is NULL, a decimal a float.

Written from the meaning of each function, not from the code that runs it:
arithmetic on doubles is done on exact fractions and rounded once, patterns by
a table of prefixes, dates by counting days.  Only the choice between whole
numbers and doubles is asked of :func:`discreet.question.functions.domain_of`, because
it is part of the meaning.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from discreet.question.domain import TEXT_LIMIT, Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import Outcome, domain_of, narrow

# --- numbers -------------------------------------------------------------------------------


def rounded(x: Fraction) -> float | None:
    """The nearest double; None if there is no finite one."""
    try:
        nearest = float(x)  # Python's int/int division is correctly rounded
    except OverflowError:
        return None
    return nearest if math.isfinite(nearest) else None


def exactly(value: Any) -> Fraction:
    return Fraction(value)


def number(exact: Fraction, like: Sequence[Any]) -> Any:
    """``exact`` as a whole number if all arguments are, else as the nearest double."""
    if all(isinstance(v, int) for v in like):
        return int(exact)
    return rounded(exact)


def toward_zero(x: Fraction) -> int:
    return math.floor(x) if x >= 0 else -math.floor(-x)


def half_away(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2)) if x >= 0 else -math.floor(-x + Fraction(1, 2))


def half_even(x: Fraction) -> int:
    below = math.floor(x)
    rest = x - below
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
    return below + up


def whole_if_small(x: Fraction) -> Any:
    return int(x) if abs(x) <= 2**62 else float(x)


def round_to(value: Any, digits: int = 0) -> Any:
    digits = int(digits)
    if isinstance(value, int):
        unit = 10 ** max(-digits, 0)
        return half_away(Fraction(value, unit)) * unit
    if digits == 0:
        return whole_if_small(Fraction(half_away(Fraction(value))))
    scale = 10.0 ** abs(digits)
    scaled = rounded(
        exactly(value) * exactly(scale) if digits > 0 else exactly(value) / exactly(scale)
    )
    if scaled is None:
        return value
    whole = exactly(half_away(Fraction(scaled)))
    back = rounded(
        whole / exactly(scale) if digits > 0 else exactly(rounded(whole)) * exactly(scale)
    )
    return value if back is None else back


def transcendental(function: Callable[..., float]) -> Callable[..., float | None]:
    def total(*values: Any) -> float | None:
        try:
            result = function(*map(float, values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return result if math.isfinite(result) else None

    return total


# --- texts ---------------------------------------------------------------------------------


def matches(text: str, pattern: str) -> bool:
    """LIKE, by the textbook table of prefixes."""
    reach = [True] + [False] * len(text)
    for symbol in pattern:
        if symbol == "%":
            reach = list(itertools.accumulate(reach, lambda a, b: a or b))
        else:
            steps = [symbol in ("_", letter) for letter in text]
            reach = [False] + [a and b for a, b in zip(reach, steps, strict=False)]
    return reach[-1]


def recased(text: str, convert: Callable[[str], str]) -> str:
    return "".join(convert(c) if len(convert(c)) == 1 else c for c in text)


def read_whole(text: str) -> int | None:
    text = text.strip(" ")
    digits = text[1:] if text[:1] in ("+", "-") else text
    plain = digits.isascii() and digits.isdigit() and 1 <= len(digits) <= 18
    return int(text) if plain else None


def read_decimal(text: str) -> float | None:
    text = text.strip(" ")
    mantissa, _, exponent = text.replace("E", "e").partition("e")
    if "e" in text.lower() and not (
        exponent.lstrip("+-").isdigit()
        and len(exponent.lstrip("+-")) <= 3
        and len(exponent) - len(exponent.lstrip("+-")) <= 1
    ):
        return None
    body = mantissa[1:] if mantissa[:1] in ("+", "-") else mantissa
    whole, _, part = body.partition(".")
    if not (whole + part).isdigit() or not text.isascii() or len(whole) > 40 or len(part) > 40:
        return None
    return rounded(
        Fraction(mantissa if part or "." not in mantissa else mantissa + "0")
        * Fraction(10) ** int(exponent or 0)
    )


def read_day(text: str) -> date | None:
    text = text.strip(" ")
    if len(text) != 10 or not text.isascii() or text[4] + text[7] != "--":
        return None
    parts = text[:4], text[5:7], text[8:]
    if not all(p.isdigit() for p in parts):
        return None
    try:
        return date(*map(int, parts))
    except ValueError:
        return None


def read_moment(text: str) -> datetime | None:
    text = text.strip(" ")
    day = read_day(text[:10])
    if day is None or text[:1] == " " or (len(text) > 10 and text[10] not in " T"):
        return None
    clock, _, part = text[11:].partition(".")
    pieces = clock.split(":") if clock else []
    fraction = part.isdigit() and 1 <= len(part) <= 6 and len(pieces) == 3
    fine = fraction if "." in text else True
    if len(text) in (11,) or len(pieces) == 1 or len(pieces) > 3 or not fine:
        return None
    if not all(len(p) == 2 and p.isascii() and p.isdigit() for p in pieces):
        return None
    try:
        return datetime(day.year, day.month, day.day, *map(int, pieces)) + timedelta(
            microseconds=int(part.ljust(6, "0") or 0)
        )
    except ValueError:
        return None


def read_truth(text: str) -> bool | None:
    word = text.strip(" ")
    if not word.isascii():
        return None
    return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(
        word.lower()
    )


def written(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return "0.0" if value == 0 else repr(value)
        case datetime():
            part = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
            return f"{value.year:04d}-{value.month:02d}-{value.day:02d} {value:%H:%M:%S}{part}"
        case date():
            return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
        case _:
            return str(value)


# --- dates ---------------------------------------------------------------------------------


def day_number(point: date) -> int:
    return date(point.year, point.month, point.day).toordinal()


def at(point: Any, year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> Any:
    if isinstance(point, datetime):
        return datetime(year, month, day, hour, minute)
    return date(year, month, day)


def iso_week(point: date) -> int:
    """The week that holds the year's first Thursday is week 1."""
    ordinal = day_number(point)
    thursday = (
        date.fromordinal(max(ordinal + 3 - (ordinal - 1) % 7, 1)) if ordinal < 3_652_057 else None
    )
    if thursday is None:  # the last days of the calendar
        return point.isocalendar().week
    return (thursday.toordinal() - date(thursday.year, 1, 1).toordinal()) // 7 + 1


def week_start(point: Any) -> Any:
    ordinal = day_number(point)
    monday = date.fromordinal(ordinal - (ordinal - 1) % 7)
    return at(point, monday.year, monday.month, monday.day)


def shifted(point: Any, days: int) -> Any:
    ordinal = day_number(point) + days
    if not 1 <= ordinal <= date.max.toordinal():
        return None
    day = date.fromordinal(ordinal)
    return datetime.combine(day, point.time()) if isinstance(point, datetime) else day


def clock(point: Any, seconds: int) -> int:
    """Which hour, minute or second since the beginning of the calendar it is."""
    time = point.time() if isinstance(point, datetime) else datetime.min.time()
    since = time.hour * 3600 + time.minute * 60 + time.second
    return (day_number(point) * 86_400 + since) // seconds


def apart(a: Any, b: Any) -> Fraction:
    def place(point: Any) -> Fraction:
        micros = point.microsecond if isinstance(point, datetime) else 0
        return clock(point, 1) + Fraction(micros, 10**6)

    return place(b) - place(a)


def whole(a: Any, b: Any, months: int) -> int:
    """Months that are over, counted one day of the month after the other, in so many at a time."""
    if apart(a, b) < 0:
        return -whole(b, a, months)

    def within(point: Any) -> Fraction:
        return apart(date(point.year, point.month, 1), point)

    over = 12 * (b.year - a.year) + b.month - a.month - (1 if within(b) < within(a) else 0)
    return over // months


def months_later(point: Any, months: int) -> Any:
    number = 12 * point.year + point.month - 1 + months
    year, month = number // 12, number % 12 + 1
    if not 1 <= year <= 9999:
        return None
    days = 31 if (year, month) == (9999, 12) else _days(year, month)
    return point.replace(year=year, month=month, day=min(point.day, days))


def _days(year: int, month: int) -> int:
    following = date(year + month // 12, month % 12 + 1, 1)
    return following.toordinal() - date(year, month, 1).toordinal()


def seconds_later(point: Any, seconds: int) -> Any:
    midnight = datetime(point.year, point.month, point.day)
    moment = point if isinstance(point, datetime) else midnight
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None


def formatted(point: Any, text: str) -> str:
    moment = point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)
    years = text.replace("%Y", f"{point.year:04d}").replace("%G", f"{point.isocalendar()[0]:04d}")
    return moment.strftime(years.replace("%Q", str(math.ceil(point.month / 3))))


def shown_elsewhere(old: str, new: str, point: date) -> datetime | None:
    """The later of the moments at which clocks in ``old`` show it, or would have."""
    moment = point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)
    if moment < datetime(1, 1, 3) or moment > datetime(9999, 12, 29):
        return None
    both = [moment.replace(tzinfo=ZoneInfo(old), fold=f).astimezone(UTC) for f in (0, 1)]
    return max(both).astimezone(ZoneInfo(new)).replace(tzinfo=None)


# --- functions -----------------------------------------------------------------------------


def as_one_kind(*values: Any) -> tuple[Any, ...]:
    """Whole numbers among doubles are doubles; dates among timestamps are midnights."""
    if any(isinstance(v, float) for v in values):
        return tuple(None if v is None else float(v) for v in values)
    if any(isinstance(v, datetime) for v in values):
        return tuple(
            v if v is None or isinstance(v, datetime) else datetime(v.year, v.month, v.day)
            for v in values
        )
    return values


def compare(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda a, b: test(*as_one_kind(a, b))


def quotient(a: Any, b: Any) -> Any:
    return None if b == 0 else rounded(exactly(float(a)) / exactly(float(b)))


def whole_quotient(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, float) or isinstance(b, float):
        ratio = quotient(a, b)
        return None if ratio is None else float(toward_zero(Fraction(ratio)))
    return toward_zero(Fraction(a, b))


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    exact = exactly(a) - toward_zero(exactly(a) / exactly(b)) * exactly(b)
    return number(exact, (a, b))


STRICT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: number(exactly(a) + exactly(b), (a, b)),
    "subtract": lambda a, b: number(exactly(a) - exactly(b), (a, b)),
    "multiply": lambda a, b: number(exactly(a) * exactly(b), (a, b)),
    "divide": quotient,
    "integer_divide": whole_quotient,
    "modulo": remainder,
    "negate": lambda a: number(-exactly(a), (a,)),
    "abs": lambda a: number(abs(exactly(a)), (a,)),
    "sign": lambda a: 1 if a > 0 else -1 if a < 0 else 0,
    "floor": lambda a: (
        a if isinstance(a, int) else whole_if_small(Fraction(math.floor(exactly(a))))
    ),
    "ceil": lambda a: (
        a if isinstance(a, int) else whole_if_small(Fraction(-math.floor(-exactly(a))))
    ),
    "round": round_to,
    "sqrt": transcendental(math.sqrt),
    "ln": transcendental(math.log),
    "log10": transcendental(math.log10),
    "log2": transcendental(math.log2),
    "exp": transcendental(math.exp),
    "power": transcendental(math.pow),
    "greatest": lambda *values: sorted(as_one_kind(*values))[-1],
    "least": lambda *values: sorted(as_one_kind(*values))[0],
    "not": lambda a: not a,
    "equal": compare(lambda a, b: a == b),
    "not_equal": compare(lambda a, b: a != b),
    "less": compare(lambda a, b: a < b),
    "less_equal": compare(lambda a, b: a <= b),
    "greater": compare(lambda a, b: a > b),
    "greater_equal": compare(lambda a, b: a >= b),
    "like": matches,
    "lower": lambda a: recased(a, str.lower),
    "upper": lambda a: recased(a, str.upper),
    "trim": lambda a: a.strip(" "),
    "length": len,
    "substr": lambda a, first, count=TEXT_LIMIT: a[first - 1 :][:count],
    "concat": lambda *parts: "".join(parts)[:TEXT_LIMIT],
    "starts_with": lambda a, b: a[: len(b)] == b,
    "ends_with": lambda a, b: b == "" or a[-len(b) :] == b,
    "contains": lambda a, b: a.find(b) >= 0,
    "year": lambda d: d.year,
    "quarter": lambda d: math.ceil(d.month / 3),
    "month": lambda d: d.month,
    "week": iso_week,
    "day": lambda d: d.day,
    "dayofweek": lambda d: day_number(d) % 7,  # day 1 of the calendar is a Monday
    "isodow": lambda d: (day_number(d) - 1) % 7 + 1,
    "dayofyear": lambda d: day_number(d) - date(d.year, 1, 1).toordinal() + 1,
    "hour": lambda d: d.hour,
    "minute": lambda d: d.minute,
    "second": lambda d: d.second,
    "date_trunc_year": lambda d: at(d, d.year, 1, 1),
    "date_trunc_quarter": lambda d: at(d, d.year, 3 * math.ceil(d.month / 3) - 2, 1),
    "date_trunc_month": lambda d: at(d, d.year, d.month, 1),
    "date_trunc_week": week_start,
    "date_trunc_day": lambda d: at(d, d.year, d.month, d.day),
    "date_trunc_hour": lambda d: at(d, d.year, d.month, d.day, d.hour),
    "date_trunc_minute": lambda d: at(d, d.year, d.month, d.day, d.hour, d.minute),
    "date_trunc_second": lambda d: d.replace(microsecond=0),
    "date_diff_days": lambda a, b: day_number(b) - day_number(a),
    "date_diff_weeks": lambda a, b: (day_number(b) - 1) // 7 - (day_number(a) - 1) // 7,
    "date_diff_months": lambda a, b: 12 * b.year + b.month - 12 * a.year - a.month,
    "date_diff_quarters": lambda a, b: (
        4 * (b.year - a.year) + math.ceil(b.month / 3) - math.ceil(a.month / 3)
    ),
    "date_diff_years": lambda a, b: b.year - a.year,
    "date_diff_hours": lambda a, b: clock(b, 3600) - clock(a, 3600),
    "date_diff_minutes": lambda a, b: clock(b, 60) - clock(a, 60),
    "date_diff_seconds": lambda a, b: clock(b, 1) - clock(a, 1),
    "whole_years": lambda a, b: whole(a, b, 12),
    "whole_quarters": lambda a, b: whole(a, b, 3),
    "whole_months": lambda a, b: whole(a, b, 1),
    "whole_weeks": lambda a, b: toward_zero(apart(a, b) / 604_800),
    "whole_days": lambda a, b: toward_zero(apart(a, b) / 86_400),
    "whole_hours": lambda a, b: toward_zero(apart(a, b) / 3600),
    "whole_minutes": lambda a, b: toward_zero(apart(a, b) / 60),
    "whole_seconds": lambda a, b: toward_zero(apart(a, b)),
    "seconds_between": lambda a, b: rounded(apart(a, b)),
    "epoch": lambda a: rounded(apart(date(1970, 1, 1), a)),
    "date_add_days": shifted,
    "date_add_months": months_later,
    "date_add_seconds": seconds_later,
    "strftime": formatted,
    "convert_timezone": shown_elsewhere,
    "regexp_matches": lambda a, pattern: (
        re.search(pattern.replace("$", r"\Z"), a, re.ASCII) is not None
    ),
    "right": lambda a, count: a[-count:] if count else "",
    "split_part": lambda a, b, place: [*a.split(b), *[""] * place][place - 1],
    "replace": lambda a, old, new: new.join(a.split(old))[:TEXT_LIMIT],
    "strpos": lambda a, b: a.find(b) + 1,
    "cast_text": lambda a: a if isinstance(a, str) else written(a),
}
"""Functions that are NULL whenever an argument is."""


def cast_integer(a: Any) -> Any:
    if isinstance(a, str):
        return read_whole(a)
    whole = half_even(Fraction(a))
    return whole if -(2**63) <= whole < 2**63 else None


def cast_decimal(a: Any) -> Any:
    return read_decimal(a) if isinstance(a, str) else float(a)


def cast_boolean(a: Any) -> Any:
    return read_truth(a) if isinstance(a, str) else a != 0


def cast_date(a: Any) -> Any:
    if isinstance(a, str):
        return read_day(a)
    return date(a.year, a.month, a.day)


def cast_timestamp(a: Any) -> Any:
    if isinstance(a, str):
        return read_moment(a)
    return a if isinstance(a, datetime) else datetime(a.year, a.month, a.day)


STRICT |= {
    "cast_integer": cast_integer,
    "cast_decimal": cast_decimal,
    "cast_boolean": cast_boolean,
    "cast_date": cast_date,
    "cast_timestamp": cast_timestamp,
}


def kleene_and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def kleene_or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def member(value: Any, *options: Any) -> bool | None:
    if value is None:
        return None
    hits = [STRICT["equal"](value, o) for o in options if o is not None]
    return True if any(hits) else None if None in options else False


def first_present(*values: Any) -> Any:
    return next((v for v in as_one_kind(*values) if v is not None), None)


LENIENT: dict[str, Callable[..., Any]] = {
    "and": kleene_and,
    "or": kleene_or,
    "is_true": lambda a: a is True,
    "is_null": lambda a: a is None,
    "in": member,
    "coalesce": first_present,
    "nullif": lambda a, b: None if None not in (a, b) and STRICT["equal"](a, b) else a,
    "if": lambda condition, a, b: a if condition is True else b,
}
"""Functions that look at NULL."""


def apply(name: str, values: Sequence[Any]) -> Any:
    """The value of one function; None is NULL."""
    if name in LENIENT:
        return LENIENT[name](*values)
    return None if any(v is None for v in values) else STRICT[name](*values)


def as_double(value: Any) -> Any:
    return (
        float(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else value
    )


def branch_of(
    branches: Sequence[tuple[Expression, Expression]],
    otherwise: Expression,
    row: Mapping[str, Any],
    columns: Mapping[str, Domain],
) -> Any:
    """The first branch that is true, else ``otherwise``; conditions teach what fits in 64 bits."""
    for condition, value in branches:
        if value_of(condition, row, columns) is True:
            return value_of(value, row, learnt(columns, condition, Outcome.TRUE))
        columns = learnt(columns, condition, Outcome.NOT_TRUE)
    return value_of(otherwise, row, columns)


_LEARNT: dict[Any, Any] = {}


def learnt(
    columns: Mapping[str, Domain], condition: Expression, outcome: Outcome
) -> Mapping[str, Domain]:
    """What a condition teaches; remembered, with what it is about kept alive."""
    key = (id(columns), id(condition), outcome)
    if key not in _LEARNT:
        _LEARNT[key] = (narrow(columns, condition, outcome), columns, condition)
    return _LEARNT[key][0]


_KINDS: dict[Any, Any] = {}


def kind_of(expression: Expression, columns: Mapping[str, Domain]) -> Kind:
    """Whether whole numbers, doubles, ...; remembered, with what it is about kept alive."""
    key = (id(columns), id(expression))
    if key not in _KINDS:
        _KINDS[key] = (domain_of(expression, columns).kind, columns, expression)
    return _KINDS[key][0]


def value_of(expression: Expression, row: Mapping[str, Any], columns: Mapping[str, Domain]) -> Any:
    """The value of an expression on one row."""
    kind = kind_of(expression, columns)
    decimal = kind is Kind.DECIMAL
    match expression:
        case ColumnRef(name=name):
            found = row[name]
        case Literal(value=value):
            found = float(value) if isinstance(value, Fraction) else value
        case Call(function="if", arguments=(condition, a, b)):
            found = branch_of([(condition, a)], b, row, columns)
        case Call(function=name, arguments=arguments):
            values = [value_of(a, row, columns) for a in arguments]
            found = apply(name, [as_double(v) for v in values] if decimal else values)
        case Case(branches=branches, otherwise=otherwise):
            found = branch_of(branches, otherwise, row, columns)
    return widened(found, kind)


def widened(value: Any, kind: Kind) -> Any:
    if kind is Kind.TIMESTAMP:
        return None if value is None else cast_timestamp(value)
    return as_double(value) if kind is Kind.DECIMAL else value
