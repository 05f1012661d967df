"""Points in time written as text: ``STRFTIME`` with a constant format.

A format is taken apart here and written for the engine piece by piece, so that what a
directive means is decided in one place.  Where the directives used have few values,
they are listed, and groups by them are public.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlglot import exp

from discreet.question.domain import Domain, Kind, domain_of_values
from discreet.question.functions import nodes
from discreet.question.functions.calendar import ends, list_starts, start_of
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

_STRFTIME = "STRFTIME(date, '%Y-%m')"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda d: f"{d.year:04d}",
    "y": lambda d: f"{d.year % 100:02d}",
    "Q": lambda d: str((d.month + 2) // 3),
    "m": lambda d: f"{d.month:02d}",
    "B": lambda d: _MONTHS[d.month - 1],
    "b": lambda d: _MONTHS[d.month - 1][:3],
    "d": lambda d: f"{d.day:02d}",
    "j": lambda d: f"{d.timetuple().tm_yday:03d}",
    "A": lambda d: _DAYS[d.weekday()],
    "a": lambda d: _DAYS[d.weekday()][:3],
    "u": lambda d: str(d.isoweekday()),
    "w": lambda d: str(d.isoweekday() % 7),
    "V": lambda d: f"{d.isocalendar().week:02d}",
    "G": lambda d: f"{d.isocalendar().year:04d}",
    "H": lambda d: f"{d.hour:02d}",
    "I": lambda d: f"{(d.hour + 11) % 12 + 1:02d}",
    "p": lambda d: "AM" if d.hour < 12 else "PM",
    "M": lambda d: f"{d.minute:02d}",
    "S": lambda d: f"{d.second:02d}",
    "%": lambda _: "%",
}
"""What each directive writes, in English, whatever the machine's language."""

_LONG = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "h": "%b"}
_PIECES = re.compile(r"%(.)|([^%]+)", re.DOTALL)
MOST_FORMAT = 100
"""How long a format may be."""


def split_format(text: str) -> list[tuple[str, str]] | None:
    """The directives and the texts between them; None if one is unknown.

    >>> split_format("%Y, %B")
    [('%', 'Y'), ('', ', '), ('%', 'B')]
    """
    text = re.sub("%([FTRDh])", lambda found: _LONG[found[1]], text)
    pieces: list[tuple[str, str]] = []
    place = 0
    for found in _PIECES.finditer(text):
        if found.start() != place:
            return None
        place = found.end()
        if found[1] is not None and found[1] not in DIRECTIVES:
            return None
        pieces.append(("%", found[1]) if found[1] is not None else ("", found[2]))
    return pieces if place == len(text) and 0 < len(text) <= MOST_FORMAT else None


def _pieces(domains: Domains) -> list[tuple[str, str]]:
    written = single(domains[1]) if len(domains) == 2 else None
    pieces = split_format(written) if isinstance(written, str) else None
    if pieces is None:
        letters = " ".join(f"%{letter}" for letter in DIRECTIVES)
        refuse_kinds(f"{_STRFTIME} with a constant format of {letters}", domains)
    return pieces


def _format(point: Any, pieces: list[tuple[str, str]]) -> str:
    moment = point if isinstance(point, datetime) else datetime(point.year, point.month, point.day)
    return "".join(DIRECTIVES[p](moment) if mark else p for mark, p in pieces)


# --- which texts there can be --------------------------------------------------------------


_CYCLES: tuple[tuple[str, list[datetime]], ...] = (
    ("aAuw%", [datetime(2024, 1, 1) + timedelta(days=n) for n in range(7)]),
    ("mbBQ%", [datetime(2024, n, 1) for n in range(1, 13)]),
    ("HIp%", [datetime(2024, 1, 1, n) for n in range(24)]),
    ("mbBQd%", [datetime(2024, 1, 1) + timedelta(days=n) for n in range(366)]),
)
"""Directives that come back, and points that show all they write."""


def _list_points(letters: set[str], domain: Domain) -> list[Any] | None:
    for cycle, points in _CYCLES:
        if letters <= set(cycle):
            return points
    unit = "year" if letters <= set("Yy%") else "month" if letters <= set("YymbBQ%") else "day"
    if not domain.bounded or letters & set("HIpMS"):
        return None
    first, last = (start_of(unit)(point) for point in ends(domain))
    return list_starts(unit, first, last)


def _rule(domains: Domains) -> Domain:
    pieces = _pieces(domains)
    check_kinds(domains[:1], _STRFTIME, TIME)
    domain = domains[0]
    letters = {piece for mark, piece in pieces if mark}
    points = None if domain.is_null else _list_points(letters, domain)
    if points is None:
        return Domain(Kind.TEXT, nullable=domain.nullable)
    found = [_format(point, pieces) for point in points]
    return domain_of_values(Kind.TEXT, found, nullable=domain.nullable)


def _render(arguments: Nodes, domains: Domains) -> Node:
    point = cast_to(arguments[0], domains[0], Kind.TIMESTAMP)
    parts: list[Node] = []
    for mark, piece in _pieces(domains):
        if not mark or piece == "%":
            parts.append(nodes.text(piece))
        elif piece == "Q":
            parts.append(nodes.cast(nodes.call("QUARTER", point.copy()), Kind.TEXT))
        else:
            parts.append(nodes.call("STRFTIME", point.copy(), exp.Literal.string(f"%{piece}")))
    node = parts[0]
    for part in parts[1:]:
        node = nodes.infix(exp.DPipe, node, part)
    if not any(mark and piece != "%" for mark, piece in _pieces(domains)):  # nothing of the point
        return nodes.case((nodes.present(point), node))
    return node


declare(
    Function(
        "strftime",
        _STRFTIME,
        "a date or timestamp written out, names in English; directives "
        + " ".join(f"%{letter}" for letter in DIRECTIVES),
        _rule,
        _render,
        strict(lambda point, text: _format(point, split_format(text) or [])),
    )
)
