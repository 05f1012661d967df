"""The same in other words: what PostgreSQL's users type, as constructions that are read already.

``FETCH FIRST``, ``DISTINCT ON`` of a sub-query, a time of the day compared with a constant, and a
difference that a sub-query gives a name.  Each is exactly what it is replaced by, whatever the
data are; whether that is allowed is decided later.
"""

from __future__ import annotations

import re

from sqlglot import exp

_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,6})?))?")


def respell(tree: exp.Expr) -> None:
    """Change ``tree`` in place, wherever it can be said in fewer kinds of words."""
    for query in tree.find_all(exp.Select):
        _limit_fetched(query)
        _number_first_rows(query)
    for node in list(tree.find_all(*_COMPARED, exp.Between)):
        _compare_clocks(node)


def _limit_fetched(query: exp.Select) -> None:
    """``FETCH FIRST 3 ROWS ONLY`` is ``LIMIT 3``."""
    fetch = query.args.get("limit")
    if not isinstance(fetch, exp.Fetch) or fetch.args.get("count") is None:
        return
    options = fetch.args.get("limit_options")
    said = {} if options is None else options.args
    if not said.get("percent") and not said.get("with_ties"):
        query.set("limit", exp.Limit(expression=fetch.args["count"].copy()))


def _number_first_rows(query: exp.Select) -> None:
    """``DISTINCT ON (k) … ORDER BY k, x`` in FROM is the first row of each k, ordered by x."""
    distinct = query.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    said = {} if distinct is None else {n for n, v in distinct.args.items() if v} - {"on"}
    if on is None or said or not _is_read(query):
        return
    if any(query.args.get(name) for name in ("qualify", "group", "having", "limit", "offset")):
        return
    keys = list(on.expressions) if isinstance(on, exp.Tuple) else [on.unnest()]
    order = query.args.get("order")
    rest = [item for item in order.expressions if item.this not in keys] if order else []
    if not rest:
        return  # which row is first would be anybody's guess
    first = exp.Window(
        this=exp.Anonymous(this="ROW_NUMBER"),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[item.copy() for item in rest]),
        over="OVER",
    )
    query.set("distinct", None)
    query.set("order", None)
    query.set("qualify", exp.Qualify(this=exp.EQ(this=first, expression=exp.Literal.number(1))))


def _is_read(query: exp.Expr) -> bool:
    """Whether the rows of a query are read by another one."""
    parent = query.parent
    while isinstance(parent, exp.Subquery):
        query, parent = parent, parent.parent
    return isinstance(parent, exp.From | exp.Join | exp.CTE)


# --- times of the day ------------------------------------------------------------------------


def _compare_clocks(node: exp.Expr) -> None:
    """``at::time > '12:00'`` compares the seconds since midnight."""
    names = ("this", "low", "high") if isinstance(node, exp.Between) else ("this", "expression")
    parts = [node.args[name] for name in names]
    points = [_point_of(part) for part in parts]
    seconds = [_seconds_of(part) for part in parts]
    if not any(points) or any(
        a is None and b is None for a, b in zip(points, seconds, strict=True)
    ):
        return
    for name, point, constant in zip(names, points, seconds, strict=True):
        node.set(name, _since_midnight(point) if point is not None else constant)


def _point_of(part: exp.Expr) -> exp.Expr | None:
    """What a cast to TIME takes the time of the day of; not of a constant."""
    part = part.unnest()
    timed = isinstance(part, exp.Cast) and part.args["to"].this is exp.DType.TIME
    return None if not timed or isinstance(part.this, exp.Literal) else part.this


def _seconds_of(part: exp.Expr) -> exp.Expr | None:
    """How many seconds after midnight a constant is."""
    part = part.unnest()
    if isinstance(part, exp.Cast) and part.args["to"].this is exp.DType.TIME:
        part = part.this
    found = _CLOCK.fullmatch(part.name) if isinstance(part, exp.Literal) else None
    if found is None or not part.args.get("is_string"):
        return None
    hours, minutes, rest = int(found[1]), int(found[2]), found[3] or "0"
    if hours > 24 or minutes > 59:
        return None
    whole, _, fraction = rest.partition(".")
    total = hours * 3600 + minutes * 60 + int(whole)
    return exp.Literal.number(f"{total}.{fraction}" if fraction else str(total))


def _since_midnight(point: exp.Expr) -> exp.Expr:
    midnight = exp.Anonymous(
        this="DATE_TRUNC", expressions=[exp.Literal.string("day"), point.copy()]
    )
    apart = exp.paren(exp.Sub(this=point.copy(), expression=midnight), copy=False)
    return exp.Extract(this=exp.Var(this="EPOCH"), expression=apart)


# --- differences with a name -----------------------------------------------------------------


def split_differences(tree: exp.Expr) -> exp.Expr | None:
    """A copy in which ``(SELECT a - b AS gap …) WHERE gap < …`` compares ``a - b`` outside.

    So the span between two moments may be given a name: it has no kind of its own.  None if there
    is no such name.
    """
    copy, found = tree.copy(), False
    for query in list(copy.find_all(exp.Select)):
        for item in [i for i in query.expressions if _is_difference(i)]:
            readers = _find_readers(query, copy)
            stars = [part for reader, _ in readers for part in reader.expressions if part.is_star]
            if not readers or stars:
                continue
            found = True
            ends = [f"{item.alias} until", f"{item.alias} since"]
            _replace_item(query, item, ends)
            for reader, alias in readers:
                _subtract_outside(reader, alias, item.alias, ends)
    return copy if found else None


def _is_difference(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias) and isinstance(item.this.unnest(), exp.Sub)


def _find_readers(query: exp.Select, root: exp.Expr) -> list[tuple[exp.Select, str]]:
    """The queries that read this one, and under which name."""
    parent = query.parent
    if isinstance(parent, exp.Subquery) and isinstance(parent.parent, exp.From | exp.Join):
        reader = parent.parent_select
        return [(reader, parent.alias)] if isinstance(reader, exp.Select) else []
    if not isinstance(parent, exp.CTE):
        return []
    found = []
    for table in root.find_all(exp.Table):
        if table.name.casefold() == parent.alias.casefold():
            reader = table.parent_select
            if not isinstance(reader, exp.Select):
                return []
            found.append((reader, table.alias_or_name))
    return found


def _replace_item(query: exp.Select, item: exp.Expr, names: list[str]) -> None:
    difference = item.this.unnest()
    sides = (difference.this, difference.expression)
    named = [
        exp.Alias(this=side.copy(), alias=exp.to_identifier(name, quoted=True))
        for side, name in zip(sides, names, strict=True)
    ]
    items = [part for i in query.expressions for part in (named if i is item else [i])]
    query.set("expressions", items)


def _subtract_outside(reader: exp.Select, alias: str, name: str, ends: list[str]) -> None:
    inside = reader.walk(prune=lambda n: n is not reader and isinstance(n, exp.Query))
    for column in [node for node in inside if isinstance(node, exp.Column)]:
        if column.name.casefold() != name.casefold():
            continue
        if column.table and column.table.casefold() != alias.casefold():
            continue
        until, since = (
            exp.Column(this=exp.to_identifier(end, quoted=True), table=column.args.get("table"))
            for end in ends
        )
        column.replace(exp.paren(exp.Sub(this=until, expression=since), copy=False))


__all__ = ["respell", "split_differences"]
