"""Distances from properties, written in SQL: SELECT DISTANCE_TO_SORTED(number, day) FROM people.

In a question they are aggregates like any other.  Two of them are questions about single rows, and
become counts of the units that have such a row: a value above a bound, a reference that is not met.

A report reads them off a statement of one table and functions with these names alone; whatever else
such a statement says is refused, and what was read is all that it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.question.domain import number_of
from discreet.question.schema import Table
from discreet.question.sql.dialect import Reader
from discreet.question.sql.once import find_owned
from discreet.question.sql.scalars import read_number

Said = dict[str, Any]
"""One property, as a report reads it."""

_PARTS = {"expressions", "from_", "kind"}
"""What such a statement consists of."""

_MOST_DIGITS = 9
"""A number of clusters is shorter."""


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


# --- in a question -------------------------------------------------------------------------------


def count_in_the_way(tree: exp.Expr, reader: Reader) -> None:
    """Change ``tree`` in place: distances that single rows decide count units with such a row."""
    for call in list(tree.find_all(exp.Anonymous)):
        breaks = _BREAKS.get(call.name.upper())
        if breaks is None:
            continue
        select = call.find_ancestor(exp.Select) or exp.Select()
        counted = _count_units(select, call, reader)
        item: exp.Expr = call
        while isinstance(item.parent, exp.Filter) and item.parent.this is item:
            item = item.parent
        named = item.parent is select and item.arg_key == "expressions"
        if named:  # its column is called after what was written
            alias = exp.Alias(alias=exp.to_identifier(call.name.lower(), quoted=True))
            item.replace(alias)
            alias.set("this", item)
        where = exp.Where(this=breaks(call, select, reader))
        call.replace(exp.Filter(this=counted, expression=where))


def _break_maximum(call: exp.Anonymous, select: exp.Select, reader: Reader) -> exp.Expr:
    if len(call.expressions) != 2:
        raise _misuse_refusal(call, "DISTANCE_TO_MAXIMUM(x, 120)", reader)
    value, bound = call.expressions
    _check_below(value, bound, _find_table(select, call, reader)[0], reader)
    return exp.GT(this=exp.paren(value.copy()), expression=exp.paren(bound.copy()))


def _check_below(value: exp.Expr, bound: exp.Expr, table: Table, reader: Reader) -> None:
    """Values are clipped to what is declared: none is ever found above it."""
    name = value.name if isinstance(value, exp.Column) else None
    column = next((c for c in table.columns if c.name == name), None)
    high = None if column is None or column.high is None else number_of(column.high)
    if high is None or not isinstance(bound, exp.Literal) or bound.is_string:
        return
    if read_number(bound, reader) >= high:
        raise reader.refusal(
            "Q33",
            bound,
            "the bound is no less than the declared one, to which values are clipped.",
            why="nobody can be found above it, and people would pay for what is known.",
            fix="none for this bound: ask about a smaller one.",
        )


def _break_reference(call: exp.Anonymous, select: exp.Select, reader: Reader) -> exp.Expr:
    del select
    if len(call.expressions) != 3 or not all(isinstance(e, exp.Column) for e in call.expressions):
        raise _misuse_refusal(call, "DISTANCE_TO_REFERENCE(x, other, key)", reader)
    value, table, key = call.expressions
    source = exp.From(this=exp.Table(this=table.this.copy()))
    other = exp.Select(expressions=[exp.column(key.this.copy())], from_=source)
    met = exp.In(this=value.copy(), query=exp.Subquery(this=other))
    known = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    return exp.And(this=known, expression=exp.Not(this=met))


_BREAKS = {
    "DISTANCE_TO_MAXIMUM": _break_maximum,
    "DISTANCE_TO_REFERENCE": _break_reference,
}
"""Under which condition a row stands in the way by itself."""


def _count_units(select: exp.Select, call: exp.Anonymous, reader: Reader) -> exp.Anonymous:
    """COUNT of whoever has a row."""
    table, alias = _find_table(select, call, reader)
    if table.by_row:
        return exp.Anonymous(this="COUNT", expressions=[exp.Star()])
    unit = [exp.column(part, table=alias, quoted=True) for part in table.unit or ()]
    distinct = unit if len(unit) == 1 else [exp.Tuple(expressions=unit)]
    return exp.Anonymous(this="COUNT", expressions=[exp.Distinct(expressions=distinct)])


def _find_table(select: exp.Select, call: exp.Anonymous, reader: Reader) -> tuple[Table, str]:
    """Whose rows are counted, or a refusal."""
    found = find_owned(select, reader)
    if found is not None:
        return found
    raise reader.refusal(
        "Q33",
        call,
        f"{call.name.upper()} is asked of something else than a table of one owner a row.",
        why="it counts people, each once, and whose a row is must be known.",
        fix="ask it FROM a private table, with joins and conditions as you like.",
    )


def _misuse_refusal(call: exp.Anonymous, usage: str, reader: Reader) -> QuestionRefusal:
    return reader.refusal(
        "Q33",
        call,
        f"this is written {usage}.",
        why="what is not understood of a question would be promised and not kept.",
        fix=f"none but yours, who know what is meant: write {usage}.",
    )


# --- in a report ---------------------------------------------------------------------------------


def _parse(text: str) -> exp.Select:
    from discreet.question.sql import read_tree

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
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
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


__all__ = ["count_in_the_way", "read_distances"]
