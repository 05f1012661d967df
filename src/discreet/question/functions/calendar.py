"""Dates and timestamps: parts, truncation, differences, shifts.  No time zones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.question.domain import (
    LISTED_MOST,
    Domain,
    Kind,
    calendar_bounds,
    domain_of_values,
    number_of,
    value_at,
)
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    TIME,
    Domains,
    Function,
    Nodes,
    anywhere,
    cast_to,
    check_kinds,
    declare,
    strict,
)
from discreet.question.functions.nodes import Node

_DAY_MICROSECONDS = 86_400_000_000


def _ends(domain: Domain) -> tuple[Any, Any]:
    """The first and the last point a date or timestamp can be, declared or not."""
    kind = domain.kind if domain.kind.is_time else Kind.DATE
    first, last = calendar_bounds(kind)
    low = first if domain.low is None else domain.low
    high = last if domain.high is None else domain.high
    return value_at(kind, low), value_at(kind, high)


def _typed(arguments: Nodes, domains: Domains) -> Node:
    domain = domains[0]
    return cast_to(arguments[0], domain, Kind.DATE if domain.is_null else domain.kind)


# --- parts ---------------------------------------------------------------------------------


def _part(
    name: str,
    meaning: str,
    evaluate: Callable[[Any], int],
    low: int,
    high: int,
    *,
    engine: str | None = None,
    kinds: tuple[Kind, ...] = TIME,
) -> None:
    usage = f"{name.upper()}({'timestamp' if kinds == (Kind.TIMESTAMP,) else 'date'})"

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, kinds)
        least, most = low, high
        if name == "year" and not domains[0].is_null:  # the one part that grows with time
            least, most = (point.year for point in _ends(domains[0]))
        return Domain(Kind.INTEGER, Fraction(least), Fraction(most), domains[0].nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        node = _typed(arguments, domains)
        if kinds == (Kind.TIMESTAMP,):
            node = cast_to(arguments[0], domains[0], Kind.TIMESTAMP)
        return nodes.call(engine or name.upper(), node)

    declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


_part("year", "the year", lambda d: d.year, 1, 9999)
_part("quarter", "the quarter, 1 to 4", lambda d: (d.month + 2) // 3, 1, 4)
_part("month", "the month, 1 to 12", lambda d: d.month, 1, 12)
_part("week", "the ISO week, 1 to 53", lambda d: d.isocalendar().week, 1, 53)
_part("day", "the day of the month, 1 to 31", lambda d: d.day, 1, 31)
_part("dayofweek", "the day of the week, Sunday is 0", lambda d: d.isoweekday() % 7, 0, 6)
_part("isodow", "the day of the week, Monday is 1 and Sunday 7", lambda d: d.isoweekday(), 1, 7)
_part("dayofyear", "the day of the year, 1 to 366", lambda d: d.timetuple().tm_yday, 1, 366)
_part("hour", "the hour, 0 to 23", lambda d: d.hour, 0, 23, kinds=(Kind.TIMESTAMP,))
_part("minute", "the minute, 0 to 59", lambda d: d.minute, 0, 59, kinds=(Kind.TIMESTAMP,))
_part("second", "the second, 0 to 59", lambda d: d.second, 0, 59, kinds=(Kind.TIMESTAMP,))


# --- truncation ----------------------------------------------------------------------------


def _midnight(point: Any, day: date) -> Any:
    return datetime(day.year, day.month, day.day) if isinstance(point, datetime) else day


def _day_of(point: Any) -> date:
    return point.date() if isinstance(point, datetime) else point


def _start(unit: str) -> Callable[[Any], Any]:
    """The first moment of the year, quarter, ... that the point lies in."""

    def truncate(point: Any) -> Any:
        day = _day_of(point)
        match unit:
            case "year":
                return _midnight(point, day.replace(month=1, day=1))
            case "quarter":
                return _midnight(point, day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1))
            case "month":
                return _midnight(point, day.replace(day=1))
            case "week":  # the year 1 begins with a Monday, so this stays in the calendar
                return _midnight(point, day - timedelta(days=day.weekday()))
            case "day":
                return _midnight(point, day)
            case "hour":
                return point.replace(minute=0, second=0, microsecond=0)
            case _:
                return point.replace(second=0, microsecond=0)

    return truncate


def _listed(unit: str, first: Any, last: Any) -> list[Any] | None:
    """Every start from ``first`` to ``last``, themselves starts; None if there are too many."""
    shortest = {"year": 365, "quarter": 90, "month": 28, "week": 7, "day": 1}
    if unit not in shortest or (last - first).days > LISTED_MOST * shortest[unit]:
        return None
    truncate, points = _start(unit), []
    while first <= last:
        points.append(first)
        if (_day_of(last) - _day_of(first)).days < shortest[unit]:
            break
        longest = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
        first = truncate(first + timedelta(days=longest))
    return points if len(points) <= LISTED_MOST else None


def _truncation(unit: str, kinds: tuple[Kind, ...]) -> None:
    name, usage = f"date_trunc_{unit}", f"DATE_TRUNC('{unit}', date)"
    evaluate = _start(unit)

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, kinds)
        (a,) = domains
        if a.is_null:
            return Domain(kinds[-1])
        first, last = (evaluate(point) for point in _ends(a))
        if a.bounded:
            points = _listed(unit, first, last)
            if points is not None:
                return domain_of_values(a.kind, points, nullable=a.nullable)
        low = None if a.low is None else number_of(first)
        high = None if a.high is None else number_of(last)
        return Domain(a.kind, low, high, a.nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        kind = rule(domains).kind
        node = cast_to(arguments[0], domains[0], kind)
        return nodes.cast(nodes.call("DATE_TRUNC", exp.Literal.string(unit), node), kind)

    declare(
        Function(name, usage, f"the first moment of its {unit}", rule, render, strict(evaluate))
    )


for _unit in ("year", "quarter", "month", "week", "day"):
    _truncation(_unit, TIME)
for _unit in ("hour", "minute"):
    _truncation(_unit, (Kind.TIMESTAMP,))


# --- differences ---------------------------------------------------------------------------


def _difference(
    unit: str,
    meaning: str,
    count: Callable[[Any, Any], int],
    render_dates: Callable[[Node, Node], Node],
) -> None:
    name, usage = f"date_diff_{unit}", f"DATE_DIFF('{unit[:-1]}', start, end)"

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, TIME, TIME)
        a, b = domains
        nullable = a.nullable or b.nullable
        if a.is_null or b.is_null:
            return Domain(Kind.INTEGER, nullable=True)
        (a_first, a_last), (b_first, b_last) = _ends(a), _ends(b)
        low, high = Fraction(count(a_last, b_first)), Fraction(count(a_first, b_last))
        if not (a.bounded and b.bounded):  # known to fit, but not declared by anyone
            return Domain(Kind.INTEGER, None, None, nullable)
        return Domain(Kind.INTEGER, low, high, nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        a, b = (
            nodes.cast(n, Kind.DATE) if d.kind is not Kind.DATE or d.is_null else n
            for n, d in zip(arguments, domains, strict=True)
        )
        return render_dates(a, b)

    declare(Function(name, usage, meaning, rule, render, strict(count)))


def _months(a: date, b: date) -> int:
    return (b.year - a.year) * 12 + b.month - a.month


def _render_months(a: Node, b: Node) -> Node:
    years = nodes.infix(exp.Sub, nodes.call("YEAR", b), nodes.call("YEAR", a))
    months = nodes.infix(exp.Sub, nodes.call("MONTH", b.copy()), nodes.call("MONTH", a.copy()))
    return nodes.infix(exp.Add, nodes.infix(exp.Mul, years, nodes.integer(12)), months)


_difference(
    "days",
    "how many midnights lie between two dates (negative if end is before start)",
    lambda a, b: (_day_of(b) - _day_of(a)).days,
    lambda a, b: nodes.cast(nodes.infix(exp.Sub, b, a), Kind.INTEGER),
)
_difference(
    "months", "how many first days of a month lie between two dates", _months, _render_months
)
_difference(
    "years",
    "how many first days of a year lie between two dates",
    lambda a, b: b.year - a.year,
    lambda a, b: nodes.infix(exp.Sub, nodes.call("YEAR", b), nodes.call("YEAR", a)),
)


# --- shifts --------------------------------------------------------------------------------

_ADD = "date + days"
_MOST_DAYS = 3_652_058  # from the first day of the calendar to the last


def _shift_ends(domains: Domains) -> tuple[Fraction, Fraction, bool]:
    """Where a shifted date can lie, and whether that is certain to be in the calendar."""
    a, days = domains
    step = _DAY_MICROSECONDS if a.kind is Kind.TIMESTAMP else 1
    first, last = calendar_bounds(a.kind)
    low = (first if a.low is None else a.low) + step * (
        -_MOST_DAYS if days.low is None else days.low
    )
    high = (last if a.high is None else a.high) + step * (
        _MOST_DAYS if days.high is None else days.high
    )
    return max(low, first), min(high, last), first <= low and high <= last


def _shift_rule(domains: Domains) -> Domain:
    check_kinds(domains, _ADD, TIME, Kind.INTEGER)
    a, days = domains
    if a.is_null or days.is_null:
        return Domain(Kind.DATE if a.is_null else a.kind)
    low, high, certain = _shift_ends(domains)
    nullable = a.nullable or days.nullable or not certain
    if not (a.bounded and days.bounded) or low > high:
        return Domain(a.kind, None, None, nullable)
    return Domain(a.kind, low, high, nullable)


def _shift_render(arguments: Nodes, domains: Domains) -> Node:
    kind = _shift_rule(domains).kind
    point, days = (
        cast_to(arguments[0], domains[0], kind),
        cast_to(arguments[1], domains[1], Kind.INTEGER),
    )
    shift = domains[1].anywhere
    if shift.low is None or shift.high is None or max(-shift.low, shift.high) > _MOST_DAYS:
        limit = nodes.integer(_MOST_DAYS)  # further away is outside the calendar from anywhere
        size = exp.Between(this=nodes.paren(days), low=nodes.integer(-_MOST_DAYS), high=limit)
        days = nodes.case((size, days.copy()))
    amount = nodes.cast_short(days)
    step: Node = amount if kind is Kind.DATE else nodes.call("TO_DAYS", amount)
    node = nodes.infix(exp.Add, point, step)
    return node if _shift_ends(anywhere(domains))[2] else nodes.in_calendar(node, kind)


declare(
    Function(
        "date_add_days",
        _ADD,
        "a date or timestamp some days later; NULL outside the years 1 to 9999",
        _shift_rule,
        _shift_render,
        strict(lambda point, days: point + timedelta(days=days)),
    )
)
