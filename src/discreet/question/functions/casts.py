"""CAST to each kind.  What cannot be read as that kind is NULL.

A text is read by a stated grammar rather than by whatever the engine accepts
('0x10', '1_000', 'infinity', the year 0), so that engines and versions agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.domain import WIDEST, Domain, Kind, boolean
from discreet.question.functions import nodes
from discreet.question.functions.declaration import (
    Domains,
    Function,
    Nodes,
    Plain,
    as_kind,
    check_kinds,
    declare,
    strict,
)
from discreet.question.functions.nodes import Node

_WHOLE = r"[+-]?[0-9]{1,18}"
_REAL = r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_MOMENT = f"{_DAY}(?:[ T]{_TIME})?"


def _whole_text(pattern: str) -> str:
    """A text of that form, spaces at its ends aside."""
    return f"^ *({pattern}) *$"


WHOLE_FORM, DAY_FORM, MOMENT_FORM = map(_whole_text, (_WHOLE, _DAY, _MOMENT))
"""The forms in which texts are looked for before they are read as numbers, days and moments."""

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


@dataclass(frozen=True, slots=True)
class _Route:
    """A cast from one kind to another."""

    domain: Callable[[Domain], Domain]
    render: Callable[[Node, Domain], Node]
    evaluate: Callable[[Plain], Plain]


def _read(pattern: str, kind: Kind) -> Callable[[Node, Domain], Node]:
    """The text as ``kind`` if all of it (spaces at the ends aside) has the form ``pattern``."""

    def render(node: Node, _: Domain) -> Node:
        form = exp.Literal.string(_whole_text(pattern))
        part = nodes.call("REGEXP_EXTRACT", node, form, exp.Literal.number("1"))
        return nodes.try_cast(part, kind)  # the empty text, where nothing matched, casts to NULL

    return render


def _parse(pattern: str, convert: Callable[[str], Plain]) -> Callable[[str], Plain]:
    form = re.compile(f"(?a: *({pattern}) *)")

    def evaluate(value: str) -> Plain:
        found = form.fullmatch(value)
        return convert(found[1]) if found else None

    return evaluate


def _maybe(
    kind: Kind, low: int | None = None, high: int | None = None
) -> Callable[[Domain], Domain]:
    def rule(_: Domain) -> Domain:
        least, most = (None if end is None else Fraction(end) for end in (low, high))
        return Domain(kind, least, most, nullable=True)

    return rule


# --- to integers ---------------------------------------------------------------------------


def _rounds_to(a: Domain) -> Domain:
    ends = [None if end is None else Fraction(round(end)) for end in (a.low, a.high)]
    inside = all(end is not None and abs(end) <= WIDEST for end in ends)
    low, high = (end if end is not None and abs(end) <= WIDEST else None for end in ends)
    return Domain(Kind.INTEGER, low, high, nullable=a.nullable or not inside)


def _even(value: float) -> int | None:
    whole = round(value)  # halves to even, as the engine's cast does
    return whole if -(2**63) <= whole < 2**63 else None


def _flag(a: Domain) -> Domain:
    return Domain(Kind.INTEGER, Fraction(0), Fraction(1), a.nullable)


def _cast(kind: Kind) -> Callable[[Node, Domain], Node]:
    return lambda node, _: nodes.cast(node, kind)


def _same(node: Node, _: Domain) -> Node:
    return node


_TO_INTEGER = {
    Kind.INTEGER: _Route(lambda a: a, _same, lambda v: v),
    Kind.DECIMAL: _Route(_rounds_to, lambda n, _: nodes.try_cast(n, Kind.INTEGER), _even),
    Kind.BOOLEAN: _Route(_flag, _cast(Kind.INTEGER), int),
    Kind.TEXT: _Route(
        _maybe(Kind.INTEGER, -(10**18) + 1, 10**18 - 1),
        _read(_WHOLE, Kind.INTEGER),
        _parse(_WHOLE, int),
    ),
}

# --- to decimals ---------------------------------------------------------------------------


def _read_real(node: Node, domain: Domain) -> Node:
    return nodes.finite(_read(_REAL, Kind.DECIMAL)(node, domain))


_TO_DECIMAL = {
    Kind.INTEGER: _Route(lambda a: as_kind(a, Kind.DECIMAL), _cast(Kind.DECIMAL), float),
    Kind.DECIMAL: _Route(lambda a: a, _same, lambda v: v),
    Kind.BOOLEAN: _Route(
        lambda a: as_kind(_flag(a), Kind.DECIMAL),
        lambda n, _: nodes.cast(nodes.cast(n, Kind.INTEGER), Kind.DECIMAL),
        float,
    ),
    Kind.TEXT: _Route(_maybe(Kind.DECIMAL), _read_real, _parse(_REAL, float)),
}

# --- to text -------------------------------------------------------------------------------


def _text(a: Domain) -> Domain:
    return Domain(Kind.TEXT, nullable=a.nullable)


def _number_text(node: Node, _: Domain) -> Node:
    """Zero has two signs that compare as equal: adding 0 makes it the same text as well."""
    return nodes.cast(nodes.infix(exp.Add, node, nodes.literal(Fraction(0))), Kind.TEXT)


def _moment_text(value: datetime) -> str:
    text = value.isoformat(sep=" ")
    return text.rstrip("0") if value.microsecond else text


_TO_TEXT = {
    Kind.TEXT: _Route(lambda a: a, _same, lambda v: v),
    Kind.INTEGER: _Route(_text, _cast(Kind.TEXT), str),
    Kind.DECIMAL: _Route(_text, _number_text, lambda v: repr(v + 0.0)),
    Kind.BOOLEAN: _Route(_text, _cast(Kind.TEXT), lambda v: "true" if v else "false"),
    Kind.DATE: _Route(_text, _cast(Kind.TEXT), date.isoformat),
    Kind.TIMESTAMP: _Route(_text, _cast(Kind.TEXT), _moment_text),
}

# --- to booleans ---------------------------------------------------------------------------


def _truth(node: Node, _: Domain) -> Node:
    plain = nodes.call("LOWER", nodes.trim(node))
    return nodes.case(
        *(
            (exp.In(this=plain.copy(), expressions=[nodes.text(w) for w in words]), result)
            for words, result in ((_TRUE, exp.true()), (_FALSE, exp.false()))
        )
    )


def _read_truth(value: str) -> bool | None:
    word = "".join(c.lower() if c.isascii() else c for c in value.strip(" "))
    return True if word in _TRUE else False if word in _FALSE else None


def _unequal_zero(node: Node, _: Domain) -> Node:
    return nodes.infix(exp.NEQ, node, nodes.integer(0))


_TO_BOOLEAN = {
    Kind.BOOLEAN: _Route(lambda a: a, _same, lambda v: v),
    Kind.INTEGER: _Route(lambda a: boolean(nullable=a.nullable), _unequal_zero, bool),
    Kind.DECIMAL: _Route(lambda a: boolean(nullable=a.nullable), _unequal_zero, bool),
    Kind.TEXT: _Route(lambda _: boolean(nullable=True), _truth, _read_truth),
}

# --- to dates and timestamps ---------------------------------------------------------------

_MICROSECONDS = 86_400_000_000


def _day_ends(a: Domain) -> Domain:
    ends = (a.low, a.high)
    low, high = (None if end is None else Fraction(end // _MICROSECONDS) for end in ends)
    return Domain(Kind.DATE, low, high, nullable=a.nullable)


def _in_calendar(pattern: str, kind: Kind) -> Callable[[Node, Domain], Node]:
    return lambda node, domain: nodes.in_calendar(_read(pattern, kind)(node, domain), kind)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


_TO_DATE = {
    Kind.DATE: _Route(lambda a: a, _same, lambda v: v),
    Kind.TIMESTAMP: _Route(_day_ends, _cast(Kind.DATE), datetime.date),
    Kind.TEXT: _Route(
        _maybe(Kind.DATE), _in_calendar(_DAY, Kind.DATE), _parse(_DAY, date.fromisoformat)
    ),
}
_TO_TIMESTAMP = {
    Kind.TIMESTAMP: _Route(lambda a: a, _same, lambda v: v),
    Kind.DATE: _Route(lambda a: as_kind(a, Kind.TIMESTAMP), _cast(Kind.TIMESTAMP), _midnight),
    Kind.TEXT: _Route(
        _maybe(Kind.TIMESTAMP), _in_calendar(_MOMENT, Kind.TIMESTAMP), _parse(_MOMENT, _moment)
    ),
}


def _kind_of(value: Plain) -> Kind:
    match value:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case float():
            return Kind.DECIMAL
        case str():
            return Kind.TEXT
        case datetime():
            return Kind.TIMESTAMP
        case _:
            return Kind.DATE


def _declare(target: Kind, routes: dict[Kind, _Route], meaning: str) -> None:
    usage = f"CAST(a AS {target.value.upper()})"

    def rule(domains: Domains) -> Domain:
        check_kinds(domains, usage, tuple(routes))
        return Domain(target) if domains[0].is_null else routes[domains[0].kind].domain(domains[0])

    def render(arguments: Nodes, domains: Domains) -> Node:
        if domains[0].is_null:
            return nodes.make_null(target)
        return routes[domains[0].kind].render(arguments[0], domains[0])

    def evaluate(value: Plain) -> Plain:
        return routes[_kind_of(value)].evaluate(value)

    declare(Function(f"cast_{target.value}", usage, meaning, rule, render, strict(evaluate)))


_declare(Kind.INTEGER, _TO_INTEGER, "as a whole number; decimals to the nearest, halves to even")
_declare(Kind.DECIMAL, _TO_DECIMAL, "as a decimal number")
_declare(Kind.TEXT, _TO_TEXT, "written out")
_declare(Kind.BOOLEAN, _TO_BOOLEAN, "true unless 0; texts true, t, 1 and false, f, 0")
_declare(Kind.DATE, _TO_DATE, "as a day; texts like 2024-02-29")
_declare(Kind.TIMESTAMP, _TO_TIMESTAMP, "as a moment; texts like 2024-02-29 18:30:00")
