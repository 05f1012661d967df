"""Aggregates of one unit's own rows that are said by others: FILTER, COUNT_IF, BOOL_OR, MIN_BY.

In a sub-query that groups by the unit, ``BOOL_OR(x > 3)`` is a MAX of 0 and 1, and
``MIN_BY(city, day)`` the city of the row that is first by day.  Each is exactly what it is replaced
by, whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.question.sql.dialect import Reader

_ANY = {"BOOL_OR", "LOGICAL_OR", "BOOLOR_AGG"}
_ALL = {"BOOL_AND", "LOGICAL_AND", "BOOLAND_AGG", "EVERY"}
_IF = {"COUNT_IF", "COUNTIF"}
_FIRST = {"MIN_BY", "ARG_MIN", "MAX_BY", "ARG_MAX", "FIRST", "LAST"}
_OWN = {"COUNT", "SUM", "AVG", "MIN", "MAX", *_ANY, *_ALL}


def write_own_values_out(query: exp.Select, reader: Reader) -> None:
    """Change the aggregates of ``query`` in place, if it is about each unit by itself."""
    units = {name.casefold() for t in reader.schema.tables.values() for name in t.unit or ()}
    if not is_of_units(query, units):
        return
    _filter_own_rows(query)
    _test_own_rows(query)
    _choose_own_rows(query)


def is_of_units(query: exp.Select, units: set[str]) -> bool:
    """Whether a sub-query groups by a column that a unit has."""
    group = query.args.get("group")
    keys = group.expressions if group is not None else ()
    return query.parent is not None and any(
        isinstance(key, exp.Column) and key.name.casefold() in units for key in keys
    )


def _filter_own_rows(query: exp.Select) -> None:
    """``SUM(x) FILTER (WHERE c)`` is ``SUM(CASE WHEN c THEN x END)``."""
    for part in [node for node in _walk_own(query) if isinstance(node, exp.Filter)]:
        call, where = part.this, part.expression
        own = isinstance(call, exp.Anonymous) and call.name.upper() in _OWN
        given = call.expressions
        if own and len(given) == 1 and not isinstance(given[0], exp.Distinct):
            part.replace(_inside(call, where.this))


def _test_own_rows(query: exp.Select) -> None:
    """``COUNT_IF(c)`` counts a CASE, and BOOL_OR is a MAX of 0 and 1."""
    for node in list(_walk_own(query)):
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if len(node.expressions) != 1 or isinstance(node.parent, exp.Window | exp.Filter):
            continue
        if name in _IF:
            case = exp.Case(ifs=[exp.If(this=node.expressions[0].copy(), true=_number(1))])
            node.replace(exp.Anonymous(this="COUNT", expressions=[case]))
        elif name in _ANY | _ALL:
            condition = node.expressions[0]
            otherwise = exp.Not(this=exp.paren(condition.copy(), copy=False))
            number = exp.Case(
                ifs=[
                    exp.If(this=condition.copy(), true=_number(1)),
                    exp.If(this=otherwise, true=_number(0)),
                ]
            )
            extreme = exp.Anonymous(this="MAX" if name in _ANY else "MIN", expressions=[number])
            node.replace(exp.paren(exp.EQ(this=extreme, expression=_number(1))))


def _choose_own_rows(query: exp.Select) -> None:
    """``MIN_BY(x, t)`` is x of the row that is first by t, of those where neither is NULL."""
    start, group = query.args.get("from_"), query.args["group"]
    called = [node for node in _walk_own(query) if _read_choice(node) is not None]
    keys = list(group.expressions)
    if not called or start is None or query.args.get("joins") or not start.this.alias_or_name:
        return
    if not all(isinstance(key, exp.Column) for key in keys):
        return
    shown: list[exp.Expr] = [exp.Star()]
    for place, node in enumerate(called, 1):
        value, order, there = _read_choice(node) or (node, [], [])
        title = f"place {place}"
        number = exp.Window(
            this=exp.Anonymous(this="ROW_NUMBER"),
            partition_by=[key.copy() for key in keys],
            order=exp.Order(expressions=order),
            over="OVER",
        )
        shown.append(exp.Alias(this=number, alias=exp.to_identifier(title, quoted=True)))
        first = exp.EQ(this=exp.column(title, quoted=True), expression=_number(1))
        chosen = exp.Case(ifs=[exp.If(this=exp.and_(first, *there), true=value.copy())])
        node.replace(exp.Anonymous(this="MIN", expressions=[chosen]))
    name = start.this.alias_or_name
    inner = exp.Select(
        expressions=shown,
        from_=exp.From(this=start.this.copy()),
        where=query.args["where"].copy() if query.args.get("where") else None,
    )
    query.set("where", None)
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    start.this.replace(exp.Subquery(this=inner, alias=alias))


def _read_choice(node: exp.Expr) -> tuple[exp.Expr, list[exp.Expr], list[exp.Expr]] | None:
    """What is shown, in which order the row is first, and what must be so of it.

    ``FIRST(x ORDER BY t)`` is of the first row, whatever x is there; NULL is last.
    """
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    if name not in _FIRST or isinstance(node.parent, exp.Window | exp.Filter):
        return None
    given = list(node.expressions)
    if name in ("FIRST", "LAST"):
        said = given[0] if len(given) == 1 and isinstance(given[0], exp.Order) else None
        keys = [] if said is None else said.expressions
        if said is None or len(keys) != 1 or keys[0].args.get("nulls_first"):
            return None  # which row is first would be anybody's guess
        last, by = name == "LAST", keys[0].this
        down = bool(keys[0].args.get("desc")) != last
        unknown = exp.If(this=exp.Is(this=by.copy(), expression=exp.Null()), true=_number(1))
        order: list[exp.Expr] = [exp.Ordered(this=by.copy(), desc=down, nulls_first=False)]
        if last:  # where NULL is
            missing = exp.Case(ifs=[unknown], default=_number(0))
            order.insert(0, exp.Ordered(this=missing, desc=True, nulls_first=False))
        return said.this, order, []
    if len(given) != 2:
        return None
    there: list[exp.Expr] = [
        exp.Not(this=exp.Is(this=part.copy(), expression=exp.Null())) for part in given
    ]
    known = exp.Case(ifs=[exp.If(this=there[0].copy(), true=given[1].copy())])
    return given[0], [exp.Ordered(this=known, desc="MAX" in name, nulls_first=False)], there


def _inside(call: exp.Anonymous, condition: exp.Expr) -> exp.Expr:
    value = call.expressions[0]
    counted = _number(1) if isinstance(value, exp.Star) else value.copy()
    case = exp.Case(ifs=[exp.If(this=condition.copy(), true=counted)])
    return exp.Anonymous(this=call.this, expressions=[case])


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _walk_own(query: exp.Select) -> Iterator[exp.Expr]:
    return query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query))


__all__ = ["is_of_units", "write_own_values_out"]
