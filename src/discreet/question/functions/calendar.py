"""Points in time: their parts, and the first moment of the year, month, day they lie in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.question.domain import (
    FIRST_SHOWN,
    LAST_SHOWN,
    LISTED_MOST,
    Domain,
    Kind,
    calendar_bounds,
    change_zone,
    domain_of_values,
    is_zone,
    number_of,
    value_at,
)
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    TIME,
    Domains,
    Function,
    Nodes,
    cast_to,
    check_kinds,
    declare,
    refuse_kinds,
    single,
    strict,
)
from discreet.question.functions.nodes import Node


def ends(domain: Domain) -> tuple[Any, Any]:
    """The first and the last point a date or timestamp can be, declared or not."""
    kind = domain.kind if domain.kind.is_time else Kind.DATE
    first, last = calendar_bounds(kind)
    low = first if domain.low is None else domain.low
    high = last if domain.high is None else domain.high
    return value_at(kind, low), value_at(kind, high)


def _make_point(arguments: Nodes, domains: Domains) -> Node:
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
            least, most = (point.year for point in ends(domains[0]))
        return Domain(Kind.INTEGER, Fraction(least), Fraction(most), domains[0].nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        node = _make_point(arguments, domains)
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


# --- time zones ----------------------------------------------------------------------------

_ZONES = "CONVERT_TIMEZONE('UTC', 'Europe/Paris', timestamp)"


def _zones(domains: Domains) -> tuple[str, str]:
    """The two constant zones."""
    found = [single(domain) for domain in domains[:2]]
    if len(domains) != 3 or not all(map(is_zone, found)):
        refuse_kinds(_ZONES, domains)
    check_kinds(domains[2:], _ZONES, TIME)
    return str(found[0]), str(found[1])


def _in_zone(domains: Domains) -> Domain:
    """Its ends are where clocks turned back near an end lead: ``render`` moves all between them."""
    old, new = _zones(domains)
    point = domains[2]
    if point.is_null or not point.bounded:
        return Domain(Kind.TIMESTAMP, nullable=True)
    first, last = (_moment(end) for end in ends(point))
    hours = range(min(48, (last - first) // timedelta(hours=1)) + 1)
    near = [first + timedelta(hours=hour) for hour in hours]
    near += [last - timedelta(hours=hour) for hour in hours]
    shown = [change_zone(moment, old, new) for moment in near]
    known = [number_of(moment) for moment in shown if moment is not None]
    numbers = [number for number in known if number is not None]
    if len(numbers) < len(shown):  # at an end of the calendar
        return Domain(Kind.TIMESTAMP, nullable=True)
    return Domain(Kind.TIMESTAMP, min(numbers), max(numbers), point.nullable)


def _moment(point: Any) -> datetime:
    return point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)


def _render_zone(arguments: Nodes, domains: Domains) -> Node:
    old, new = _zones(domains)
    point = cast_to(arguments[2], domains[2], Kind.TIMESTAMP)
    ends_shown = (number_of(FIRST_SHOWN) or Fraction(0), number_of(LAST_SHOWN) or Fraction(0))
    everywhere = nodes.between(point, *ends_shown, Kind.TIMESTAMP)
    shown = nodes.case((everywhere, nodes.change_zone(point.copy(), old, new)))
    found = _in_zone(domains)
    if found.low is None or found.high is None:
        return shown
    low, high = (value_at(Kind.TIMESTAMP, end) for end in (found.low, found.high))
    return nodes.clip(shown, low, high)


declare(
    Function(
        "convert_timezone",
        _ZONES,
        "what clocks in the second zone show when those in the first show it; an hour that is "
        "shown twice is taken for the second one, one that is leapt over for what would be shown",
        _in_zone,
        _render_zone,
        strict(lambda old, new, point: change_zone(_moment(point), old, new)),
        listable=lambda _: False,  # the engine has a time zone database of its own
    )
)


# --- truncation ----------------------------------------------------------------------------


def _midnight(point: Any, day: date) -> Any:
    return datetime(day.year, day.month, day.day) if isinstance(point, datetime) else day


def _day_of(point: Any) -> date:
    return point.date() if isinstance(point, datetime) else point


def start_of(unit: str) -> Callable[[Any], Any]:
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
            case "minute":
                return point.replace(second=0, microsecond=0)
            case _:
                return point.replace(microsecond=0)

    return truncate


def list_starts(unit: str, first: Any, last: Any) -> list[Any] | None:
    """Every start from ``first`` to ``last``, themselves starts; None if there are too many."""
    shortest = {"year": 365, "quarter": 90, "month": 28, "week": 7, "day": 1}
    if unit not in shortest or (last - first).days > LISTED_MOST * shortest[unit]:
        return None
    truncate, points = start_of(unit), []
    while first <= last:
        points.append(first)
        if (_day_of(last) - _day_of(first)).days < shortest[unit]:
            break
        longest = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
        first = truncate(first + timedelta(days=longest))
    return points if len(points) <= LISTED_MOST else None


def _truncation(unit: str, kinds: tuple[Kind, ...]) -> None:
    name, usage = f"date_trunc_{unit}", f"DATE_TRUNC('{unit}', date)"
    evaluate = start_of(unit)

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, kinds)
        (a,) = domains
        if a.is_null:
            return Domain(kinds[-1])
        first, last = (evaluate(point) for point in ends(a))
        if a.bounded:
            points = list_starts(unit, first, last)
            if points is not None:
                return domain_of_values(a.kind, points, nullable=a.nullable)
        low = None if a.low is None else number_of(first)
        high = None if a.high is None else number_of(last)
        return Domain(a.kind, low, high, a.nullable)

    def render(arguments: Nodes, domains: Domains) -> Node:
        kind = rule(domains).kind
        node = cast_to(arguments[0], domains[0], kind)
        return nodes.cast(nodes.call("DATE_TRUNC", exp.Literal.string(unit), node), kind)

    meaning = f"the first moment of its {unit}" + (", a Monday" if unit == "week" else "")
    declare(Function(name, usage, meaning, rule, render, strict(evaluate)))


for _unit in ("year", "quarter", "month", "week", "day"):
    _truncation(_unit, TIME)
for _unit in ("hour", "minute", "second"):
    _truncation(_unit, (Kind.TIMESTAMP,))
