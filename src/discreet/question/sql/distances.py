"""Distances from properties, written in SQL: SELECT DISTANCE_TO_SORTED(number, day) FROM people.

One table, and of it functions with these names alone; whatever else a statement says is refused,
and what was read is all that it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from discreet.errors import InvalidParameter
from discreet.question.sql import read_tree

Said = dict[str, Any]
"""One property, as a report reads it."""

_PARTS = {"expressions", "from_", "kind"}
"""What such a statement consists of."""


def read_distances(text: str) -> dict[str, Said]:
    """The properties that ``text`` asks about, by the names of its columns.

    >>> read_distances("SELECT DISTANCE_TO_MAXIMUM(age, 120) AS ages FROM people")
    {'ages': {'table': 'people', 'property': 'maximum', 'column': 'age', 'bound': '120'}}
    """
    select = _parse(text)
    table = _read_table(select)
    found: dict[str, Said] = {}
    for node in select.expressions:
        call = node.this if isinstance(node, exp.Alias) else node
        name = call.name.upper() if isinstance(call, exp.Anonymous) else ""
        if name not in _READ:
            raise _odd("something else than a distance is asked for")
        alias = node.alias if isinstance(node, exp.Alias) else name.lower()
        if alias in found:
            raise _odd(f"two distances are called {alias!r}")
        found[alias] = {"table": table, **_READ[name](call.expressions)}
    return found


def _parse(text: str) -> exp.Select:
    try:
        select = read_tree(text)
    except RecursionError:
        raise _odd("this is too deeply nested") from None
    if not isinstance(select, exp.Select):
        raise _odd("this is not one SELECT")
    more = {name for name, part in select.args.items() if part} - _PARTS
    if more or select.args.get("kind"):
        raise _odd("a report is about whole tables, and this says more")
    return select


def _read_table(select: exp.Select) -> str:
    start = select.args.get("from_")
    table = start.this if start is not None else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise _odd("the rows of one table are asked about, by its name")
    if any(part for name, part in table.args.items() if name != "this"):
        raise _odd("the rows of one table are asked about, by its name alone")
    return str(table.name)


def _read_column(node: exp.Expr) -> str:
    if not isinstance(node, exp.Column) or node.table or not isinstance(node.this, exp.Identifier):
        raise _odd("a distance is about columns, by their names")
    return str(node.name)


def _read_number(node: exp.Expr) -> str:
    sign, value = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if not isinstance(value, exp.Literal) or value.is_string:
        raise _odd("a bound, a number of clusters and a width are numbers")
    return f"{sign}{value.name}"


def _read_whole(node: exp.Expr) -> int:
    text = _read_number(node)
    if not text.isdecimal():
        raise _odd("a number of clusters is a whole number")
    return int(text)


def _make_reader(
    kind: str, *parts: tuple[str, Callable[[exp.Expr], Any]], many: bool = False
) -> Callable[[list[exp.Expr]], Said]:
    """How the arguments of a distance are read; with ``many`` the last may be several."""

    def read(arguments: list[exp.Expr]) -> Said:
        fits = len(arguments) >= len(parts) if many else len(arguments) == len(parts)
        if not fits:
            listed = ", ".join(name for name, _ in parts)
            raise _odd(f"the distance of {kind} is written with {listed}")
        said: Said = {"property": kind}
        for (name, take), node in zip(parts, arguments, strict=False):
            said[name] = take(node)
        if many and len(arguments) > len(parts):
            name, take = parts[-1]
            said[name] = [take(node) for node in arguments[len(parts) - 1 :]]
        return said

    return read


_COLUMN = ("column", _read_column)
_READ: dict[str, Callable[[list[exp.Expr]], Said]] = {
    "DISTANCE_TO_MAXIMUM": _make_reader("maximum", _COLUMN, ("bound", _read_number)),
    "DISTANCE_TO_SORTED": _make_reader("sorted", _COLUMN, ("by", _read_column)),
    "DISTANCE_TO_CLUSTERS": _make_reader(
        "clusters", _COLUMN, ("clusters", _read_whole), ("width", _read_number)
    ),
    "DISTANCE_TO_DEPENDENCY": _make_reader("dependency", _COLUMN, ("on", _read_column), many=True),
    "DISTANCE_TO_REFERENCE": _make_reader(
        "reference", _COLUMN, ("to", _read_column), ("key", _read_column)
    ),
}


_EXAMPLE = "SELECT DISTANCE_TO_MAXIMUM(age, 120) AS ages FROM people"


def _odd(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"{what}.",
        why="what is not understood of a statement would be promised and not kept.",
        fix=f"write {_EXAMPLE}; there are {', '.join(sorted(_READ))}.",
    )


__all__ = ["read_distances"]
