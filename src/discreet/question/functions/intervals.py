"""Spans of time: how far two points lie apart, and points so much later.

``DATE_DIFF`` counts how many first moments of a unit lie between two points;
``DATE_SUB`` counts whole units, as somebody's age in years is counted.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.domain import Domain, Kind, calendar_bounds, number_of, to_double
from discreet.question.functions import nodes
from discreet.question.functions.calendar import ends
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

_DAY = 86_400_000_000
_SECOND = 1_000_000
_FIRST = 62_135_596_800_000_000  # microseconds from the first moment of the year 1 to 1970
_FIXED = {"week": 7 * _DAY, "day": _DAY, "hour": 3_600_000_000, "minute": 60_000_000}
_FIXED["second"] = _SECOND
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
UNITS = (*_MONTHS, *_FIXED)
"""The units in which spans are counted."""


def _moment(point: Any) -> datetime:
    return point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)


def _since_first(point: Any) -> int:
    """Microseconds since the first moment of the calendar, which is a Monday."""
    return (_moment(point) - datetime(1, 1, 1)) // timedelta(microseconds=1)


def _moments(arguments: Nodes, domains: Domains) -> list[Node]:
    return [
        n if d.kind is Kind.TIMESTAMP and not d.is_null else nodes.cast(n, Kind.TIMESTAMP)
        for n, d in zip(arguments, domains, strict=True)
    ]


def _epoch(node: Node) -> Node:
    return nodes.call("EPOCH_US", node)


def _render_since_first(node: Node) -> Node:
    return nodes.infix(exp.Add, _epoch(node), nodes.integer(_FIRST))


def _minus(a: Node, b: Node) -> Node:
    return nodes.infix(exp.Sub, a, b)


# --- differences ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Difference:
    """How two points are compared: on Python values and in the engine; monotone in each."""

    name: str
    usage: str
    meaning: str
    count: Callable[[Any, Any], Any]
    render: Callable[[Node, Node], Node]  # of two timestamps
    kind: Kind = Kind.INTEGER

    def domain(self, domains: Domains) -> Domain:
        check_kinds(domains, self.usage, TIME, TIME)
        a, b = domains
        nullable = a.nullable or b.nullable
        if a.is_null or b.is_null:
            return Domain(self.kind, nullable=True)
        if not (a.bounded and b.bounded):  # known to fit, but not declared by anyone
            return Domain(self.kind, None, None, nullable)
        (a_first, a_last), (b_first, b_last) = ends(a), ends(b)
        low, high = Fraction(self.count(a_last, b_first)), Fraction(self.count(a_first, b_last))
        return Domain(self.kind, low, high, nullable)

    def enter(self) -> None:
        """Enter it in the allow-list."""
        declare(
            Function(
                self.name,
                self.usage,
                self.meaning,
                self.domain,
                lambda arguments, domains: self.render(*_moments(arguments, domains)),
                strict(self.count),
            )
        )


def _month_number(point: Any) -> int:
    return int(point.year) * 12 + int(point.month) - 1


def _render_month_number(node: Node) -> Node:
    years = nodes.infix(exp.Mul, nodes.call("YEAR", node), nodes.integer(12))
    months = _minus(nodes.call("MONTH", node.copy()), nodes.integer(1))
    return nodes.infix(exp.Add, years, months)


def _count_crossed(unit: str) -> _Difference:
    """How many first moments of a unit lie between two points."""
    if unit in _MONTHS:
        size, place, render = _MONTHS[unit], _month_number, _render_month_number
    else:
        size, place, render = _FIXED[unit], _since_first, _render_since_first

    def write(node: Node) -> Node:
        whole = render(node)
        return whole if size == 1 else nodes.infix(exp.IntDiv, whole, nodes.integer(size))

    article = "an" if unit == "hour" else "a"
    first = {"day": "midnights", "week": "Mondays"}.get(unit, f"first moments of {article} {unit}")
    return _Difference(
        f"date_diff_{unit}s",
        "DATEDIFF(week, start, end)" if unit == "week" else f"DATE_DIFF('{unit}', start, end)",
        f"how many {first} lie between two points (negative if end is before start)",
        lambda a, b: place(b) // size - place(a) // size,
        lambda a, b: nodes.cast(_minus(write(b), write(a)), Kind.INTEGER),
    )


def _since_month(point: Any) -> int:
    return _since_first(point) - _since_first(date(point.year, point.month, 1))


def _whole_months(a: Any, b: Any) -> int:
    """Months that are over: from the 31st to the 30th none is."""
    if _since_first(b) < _since_first(a):
        return -_whole_months(b, a)
    return _month_number(b) - _month_number(a) - (_since_month(b) < _since_month(a))


def _render_whole_months(a: Node, b: Node) -> Node:
    def since(node: Node) -> Node:
        month = nodes.call("DATE_TRUNC", exp.Literal.string("month"), node.copy())
        return _minus(_epoch(node.copy()), _epoch(nodes.cast(month, Kind.TIMESTAMP)))

    def over(first: Node, last: Node) -> Node:
        months = _minus(_render_month_number(last.copy()), _render_month_number(first.copy()))
        early = exp.LT(this=since(last), expression=since(first))
        return _minus(months, nodes.case((early, nodes.integer(1)), otherwise=nodes.integer(0)))

    backwards = exp.LT(this=b.copy(), expression=a.copy())
    negative = exp.Neg(this=nodes.paren(over(b, a)))
    ordered = exp.GTE(this=b.copy(), expression=a.copy())
    return nodes.case((backwards, negative), (ordered, over(a, b)))


def _toward_zero(number: int, size: int) -> int:
    return number // size if number >= 0 else -(-number // size)


def _over(unit: str) -> _Difference:
    """How many whole units lie between two points."""
    size = _MONTHS.get(unit) or _FIXED[unit]

    def count(a: Any, b: Any) -> int:
        number = _whole_months(a, b) if unit in _MONTHS else _since_first(b) - _since_first(a)
        return _toward_zero(number, size)

    def render(a: Node, b: Node) -> Node:
        number = _render_whole_months(a, b) if unit in _MONTHS else _minus(_epoch(b), _epoch(a))
        whole = number if size == 1 else nodes.infix(exp.IntDiv, number, nodes.integer(size))
        return nodes.cast(whole, Kind.INTEGER)

    usage = f"DATE_SUB('{unit}', start, end)"
    meaning = f"how many whole {unit}s lie between two points (negative if end is before start)"
    if unit in _MONTHS:
        meaning += "; from the 31st to the 30th no month is over"
    return _Difference(f"whole_{unit}s", usage, meaning, count, render)


def _seconds(a: Any, b: Any) -> float:
    return float(Fraction(_since_first(b) - _since_first(a), _SECOND))


def _render_seconds(micros: Node) -> Node:
    return nodes.infix(exp.Div, nodes.cast(micros, Kind.DECIMAL), nodes.literal(Fraction(_SECOND)))


for _unit in UNITS:
    _count_crossed(_unit).enter()
    _over(_unit).enter()


# --- seconds with their fractions ----------------------------------------------------------
#
# Written as a quotient of doubles.  Microseconds beyond 2**53 (285 years) are rounded when they
# become one and again when they are divided, so bounds are widened by more than both.

_SLACK = Fraction(1, 2**50)


def _wider(domain: Domain) -> Domain:
    low, high = (
        None if end is None else to_double(end + sign * abs(end) * _SLACK)
        for end, sign in ((domain.low, -1), (domain.high, 1))
    )
    return Domain(domain.kind, low, high, domain.nullable)


_APART = _Difference(
    "seconds_between",
    "EXTRACT(EPOCH FROM (end - start))",
    "how many seconds lie between two points, with their fractions",
    _seconds,
    lambda a, b: _render_seconds(_minus(_epoch(b), _epoch(a))),
    Kind.DECIMAL,
)
declare(
    Function(
        _APART.name,
        _APART.usage,
        _APART.meaning,
        lambda domains: _wider(_APART.domain(domains)),
        lambda arguments, domains: _APART.render(*_moments(arguments, domains)),
        strict(_seconds),
        lambda _: False,
    )
)

_EPOCH = "EXTRACT(EPOCH FROM moment)"


def _epoch_rule(domains: Domains) -> Domain:
    check_kinds(domains, _EPOCH, TIME)
    (a,) = domains
    if a.is_null or not a.bounded:
        return Domain(Kind.DECIMAL, nullable=a.nullable)
    low, high = (number_of(_moment(point)) for point in ends(a))
    if low is None or high is None:
        raise TypeError("a point in time has a place on the calendar")
    return _wider(Domain(Kind.DECIMAL, low / _SECOND, high / _SECOND, a.nullable))


declare(
    Function(
        "epoch",
        _EPOCH,
        "seconds since the beginning of 1970, with their fractions",
        _epoch_rule,
        lambda arguments, domains: _render_seconds(_epoch(_moments(arguments, domains)[0])),
        strict(lambda point: _seconds(datetime(1970, 1, 1), point)),
        lambda _: False,
    )
)


# --- shifts --------------------------------------------------------------------------------

_ADD = "date + days"
_MOST_DAYS = 3_652_058  # from the first day of the calendar to the last


@dataclass(frozen=True, slots=True)
class _Shift:
    """A point moved by a number of steps: NULL outside the calendar."""

    name: str
    usage: str
    meaning: str
    most: int  # steps that lead out of the calendar from anywhere
    move: Callable[[Any, int], Any]
    render: Callable[[Node, Node, Kind], Node]  # of the point and a 32-bit number
    kind: Callable[[Kind], Kind] = lambda kind: kind

    def _reach(self, domains: Domains) -> tuple[Fraction, Fraction, bool]:
        """Where a shifted point can lie, and whether that is certain to be in the calendar."""
        a, steps = domains
        kind = self.kind(a.kind)
        low, high = calendar_bounds(kind)
        first, last = ends(a)
        least = -self.most if steps.low is None else int(steps.low)
        most = self.most if steps.high is None else int(steps.high)
        below, above = self._end(first, least, 0), self._end(last, most, 1)
        certain = below is not None and above is not None
        return (
            low if below is None else max(low, below),
            high if above is None else min(high, above),
            certain,
        )

    def _end(self, point: Any, steps: int, side: int) -> Fraction | None:
        """A bound of what the point becomes; the whole day counts, since months end unevenly."""
        try:
            moved = self.move(point, steps)
        except (ArithmeticError, ValueError):
            return None
        if isinstance(moved, datetime) and self.name == "date_add_months":
            moved = datetime(moved.year, moved.month, moved.day)
            moved += side * timedelta(days=1, microseconds=-1)
        return number_of(moved)

    def domain(self, domains: Domains) -> Domain:
        check_kinds(domains, self.usage, TIME, Kind.INTEGER)
        a, steps = domains
        if a.is_null or steps.is_null:
            return Domain(self.kind(Kind.DATE if a.is_null else a.kind))
        low, high, certain = self._reach(domains)
        nullable = a.nullable or steps.nullable or not certain
        if not (a.bounded and steps.bounded) or low > high:
            return Domain(self.kind(a.kind), None, None, nullable)
        return Domain(self.kind(a.kind), low, high, nullable)

    def write(self, arguments: Nodes, domains: Domains) -> Node:
        kind = self.domain(domains).kind
        point = cast_to(arguments[0], domains[0], kind)
        steps = cast_to(arguments[1], domains[1], Kind.INTEGER)
        shift = domains[1].anywhere
        if shift.low is None or shift.high is None or max(-shift.low, shift.high) > self.most:
            limit = nodes.integer(self.most)  # further away is outside the calendar from anywhere
            size = exp.Between(this=nodes.paren(steps), low=nodes.integer(-self.most), high=limit)
            steps = nodes.case((size, steps.copy()))
        node = self.render(point, steps, kind)
        wide = anywhere(domains)
        certain = not any(d.is_null for d in wide) and self._reach(wide)[2]
        return node if certain else nodes.in_calendar(node, kind)

    def enter(self) -> None:
        """Enter it in the allow-list."""
        declare(
            Function(
                self.name, self.usage, self.meaning, self.domain, self.write, strict(self.move)
            )
        )


def _add_days(point: Node, days: Node, kind: Kind) -> Node:
    amount = nodes.cast_short(days)
    step: Node = amount if kind is Kind.DATE else nodes.call("TO_DAYS", amount)
    return nodes.infix(exp.Add, point, step)


def _move_months(point: Any, months: int) -> Any:
    """The same day so many months later, or that month's last."""
    year, month = divmod(_month_number(point) + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("outside the calendar")
    return point.replace(
        year=year, month=month + 1, day=min(point.day, monthrange(year, month + 1)[1])
    )


def _add_months(point: Node, months: Node, kind: Kind) -> Node:
    moved = nodes.infix(exp.Add, point, nodes.call("TO_MONTHS", nodes.cast_short(months)))
    return nodes.cast(moved, kind)


def _move_seconds(point: Any, seconds: int) -> datetime:
    return _moment(point) + timedelta(seconds=seconds)


def _add_seconds(point: Node, seconds: Node, kind: Kind) -> Node:
    del kind
    return nodes.infix(exp.Add, point, nodes.call("TO_SECONDS", seconds))


_Shift(
    "date_add_days",
    _ADD,
    "a date or timestamp some days later; NULL outside the years 1 to 9999",
    _MOST_DAYS,
    lambda point, days: point + timedelta(days=days),
    _add_days,
).enter()
_Shift(
    "date_add_months",
    "date + INTERVAL '1' MONTH",
    "the same day some months later, or that month's last; NULL outside the years 1 to 9999",
    120_000,
    _move_months,
    _add_months,
).enter()
_Shift(
    "date_add_seconds",
    "moment + INTERVAL '1' HOUR",
    "a moment some seconds later; NULL outside the years 1 to 9999",
    315_537_897_600,
    _move_seconds,
    _add_seconds,
    lambda _: Kind.TIMESTAMP,
).enter()
