"""A number for each group inside a condition: asked first for all groups, and then a CASE.

``WHERE x > (SELECT AVG(x) FROM t AS b WHERE b.k = a.k)`` compares each row with the number of its
own group.  ``SELECT b.k, AVG(x) FROM t AS b GROUP BY b.k`` is a question by itself; released, it is
``CASE WHEN a.k = 'north' THEN 12 WHEN a.k = 'south' THEN 15 END``.  A join with such a question
says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.sql.scalars import RELEASED
from discreet.question.statement import Statement

MOST_GROUPS = 200
"""How many groups there may be: each of them stands in the question around it."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """A question for all groups, and the columns outside that say which one is meant."""

    query: exp.Select
    outside: tuple[exp.Column, ...]


def group_correlated(query: exp.Expr) -> Grouped | None:
    """The sub-query ``query`` asked for every value of what it compares with the row outside."""
    if not isinstance(query, exp.Select) or query.args.get("where") is None:
        return None
    parts = {name for name, value in query.args.items() if value}
    if len(query.expressions) != 1 or not parts <= {"expressions", "from_", "joins", "where"}:
        return None
    own = {table.alias_or_name.casefold() for table in query.find_all(exp.Table)}
    condition = query.args["where"].this
    said = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    pairs = [_pair_keys(one, own) for one in said]
    keys = [pair for pair in pairs if pair is not None]
    if not keys:
        return None
    found = query.copy()
    rest = [one.copy() for one, pair in zip(said, pairs, strict=True) if pair is None]
    found.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    found.set("expressions", [*(inner.copy() for inner, _ in keys), query.expressions[0].copy()])
    found.set("group", exp.Group(expressions=[inner.copy() for inner, _ in keys]))
    return Grouped(found, tuple(outer.copy() for _, outer in keys))


def _pair_keys(condition: exp.Expr, own: set[str]) -> tuple[exp.Column, exp.Column] | None:
    """The column inside and the one outside that are to be equal."""
    sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
    if not sides or not all(isinstance(side, exp.Column) for side in sides):
        return None
    inner = [side for side in sides if not side.table or side.table.casefold() in own]
    outer = [side for side in sides if side.table and side.table.casefold() not in own]
    return (inner[0], outer[0]) if len(inner) == len(outer) == 1 else None


def has_few_groups(asked: Statement) -> bool:
    """Whether all groups are listed beforehand, and so are few before anything is paid."""
    listed = [[key.values for key in question.keys] for question in asked.questions]
    return (
        len(listed) == 1
        and all(values is not None for values in listed[0])
        and prod(1 + len(values or ()) for values in listed[0]) <= MOST_GROUPS
    )


def write_cases(outside: Sequence[exp.Column], rows: Sequence[Sequence[exp.Expr]]) -> exp.Expr:
    """The value of the row whose keys the columns outside have; NULL if there is none."""
    cases = []
    for *keys, value in rows:
        if any(isinstance(key, exp.Null) for key in keys):
            continue  # no row equals it
        same = [exp.EQ(this=c.copy(), expression=k) for c, k in zip(outside, keys, strict=True)]
        cases.append(exp.If(this=exp.and_(*same, copy=False), true=value))
    written: exp.Expr = exp.Case(ifs=cases) if cases else exp.Null()
    written.meta[RELEASED] = True
    return written


# --- joins ------------------------------------------------------------------------------------

_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between)


def look_up_groups(root: exp.Expr) -> None:
    """``t JOIN (SELECT k, AVG(x) AS m FROM t GROUP BY k) AS g ON g.k = t.k WHERE t.x > g.m``.

    The same as with the sub-query for g.m, where it is only compared with in WHERE: a row that has
    no partner is compared with NULL, and meets nothing.
    """
    if not isinstance(root, exp.Select) or root.args.get("from_") is None:
        return
    commons = {cte.alias.casefold(): cte.this for cte in root.ctes}
    for join in list(root.args.get("joins") or ()):
        said = {key for key, value in join.args.items() if value}
        kind = str(join.args.get("kind") or "INNER").upper()
        source = join.this
        query = (
            source.this if isinstance(source, exp.Subquery) else commons.get(source.name.casefold())
        )
        if not said <= {"this", "on", "using", "kind"} or kind != "INNER":
            continue
        grouped = isinstance(query, exp.Select) and query.args.get("group") is not None
        if isinstance(query, exp.Select) and grouped and query.args.get("from_") is not None:
            _replace_join(root, join, query)


def _replace_join(root: exp.Select, join: exp.Join, query: exp.Select) -> None:
    name = join.this.alias_or_name.casefold()
    group = query.args["group"].expressions
    parts = {key for key, value in query.args.items() if value}
    titles = {item.alias_or_name.casefold(): item.unalias() for item in query.expressions}
    keys = {title: value for title, value in titles.items() if value in group}
    pairs = _list_pairs(root, join, name)
    used = [c for c in root.find_all(exp.Column) if c.table.casefold() == name]
    own = {id(c) for c in join.find_all(exp.Column)}
    if pairs is None or set(pairs) != set(keys) or len(keys) != len(group):
        return
    if not parts <= {"expressions", "from_", "where", "group"} or len(titles) != len(query.selects):
        return
    values = [c for c in used if id(c) not in own and c.name.casefold() not in keys]
    if not values or not all(c.name.casefold() in titles and _is_compared(c, root) for c in values):
        return
    for column in [c for c in used if id(c) not in own and c.name.casefold() in keys]:
        column.replace(pairs[column.name.casefold()].copy())
    for column in values:
        alone = exp.Select(
            expressions=[titles[column.name.casefold()].copy()], from_=query.args["from_"].copy()
        )
        where = query.args.get("where")
        same = [exp.EQ(this=keys[k].copy(), expression=pairs[k].copy()) for k in keys]
        alone.set("where", exp.Where(this=exp.and_(*([where.this.copy()] if where else ()), *same)))
        column.replace(exp.Subquery(this=alone))
    join.pop()


def _list_pairs(root: exp.Select, join: exp.Join, name: str) -> dict[str, exp.Column] | None:
    """For each key of the joined question, by its name, the column that it is to equal."""
    if join.args.get("using"):
        left = root.args["from_"].this.alias_or_name
        return {n.name.casefold(): exp.column(n.name, left) for n in join.args["using"]}
    on = join.args.get("on")
    found: dict[str, exp.Column] = {}
    for part in list(on.flatten()) if isinstance(on, exp.And) else [on]:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) and side.table for side in sides):
            return None
        mine = [side for side in sides if side.table.casefold() == name]
        other = [side for side in sides if side.table.casefold() != name]
        if len(mine) != 1:
            return None
        found[mine[0].name.casefold()] = other[0]
    return found


def _is_compared(column: exp.Column, root: exp.Select) -> bool:
    """Whether it stands in a comparison that WHERE asks for, with others or alone."""
    node: exp.Expr = column
    while node.parent is not None and not isinstance(node, _COMPARED):
        node = node.parent
        if isinstance(node, exp.Query | exp.Case | exp.Not | exp.Or | exp.Is):
            return False
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Where) and node.parent.parent is root


__all__ = [
    "MOST_GROUPS",
    "Grouped",
    "group_correlated",
    "has_few_groups",
    "look_up_groups",
    "write_cases",
]
