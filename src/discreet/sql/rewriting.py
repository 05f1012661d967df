"""Rewritings: a whole question to type instead of the one refused.

Each function changes a copy of the question's tree.  The result is printed only
if it is itself accepted, so a fix is never a second refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

Change = Callable[[exp.Expr], None]


def without(*arguments: str) -> Change:
    """Leave clauses out."""

    def change(node: exp.Expr) -> None:
        for argument in arguments:
            node.set(argument, None)

    return change


def counted(node: exp.Expr) -> None:
    """Rows shown one by one, or DISTINCT rows, become groups with a count."""
    select = node if isinstance(node, exp.Select) else node.parent_select
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return
    columns = [e.unalias().copy() for e in select.expressions]
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=columns))
    select.append("expressions", exp.alias_(_count(), "n"))


def only_counted(node: exp.Expr) -> None:
    """Rows shown one by one become their number: a person is not a group."""
    select = node if isinstance(node, exp.Select) else node.parent_select
    if isinstance(select, exp.Select):
        for part in ("distinct", "order", "limit", "offset"):
            select.set(part, None)
        select.set("expressions", [exp.alias_(_count(), "n")])


def _count() -> exp.Anonymous:
    return exp.Anonymous(this="COUNT", expressions=[exp.Star()])


def grouped(node: exp.Expr) -> None:
    """A column that is neither grouped nor aggregated is grouped."""
    select = node.parent_select
    if isinstance(select, exp.Select):
        group = select.args.get("group") or exp.Group(expressions=[])
        group.append("expressions", node.copy())
        select.set("group", group)


def by_unit(unit: tuple[str, ...]) -> Change:
    """A sub-query that mixes people groups by the unit as well."""

    def change(node: exp.Expr) -> None:
        if not isinstance(node, exp.Select):
            return
        group = node.args.get("group") or exp.Group(expressions=[])
        shown = {e.alias_or_name for e in node.expressions}
        own = [exp.column(name, quoted=not name.isidentifier()) for name in unit]
        group.set("expressions", [*own, *group.expressions])
        node.set("group", group)
        added = [c.copy() for c in own if c.name not in shown]
        node.set("expressions", [*added, *node.expressions])

    return change


def averaged(node: exp.Expr) -> None:
    """One group per person becomes an average over people."""
    if not isinstance(node, exp.Select):
        return
    inner = node.copy()
    outer = []
    for number, item in enumerate(inner.expressions, start=1):
        if any(isinstance(part, exp.Anonymous) for part in item.walk()):
            name = item.alias or f"value_{number}"
            item.replace(exp.alias_(item.unalias().copy(), name))
            outer.append(exp.Anonymous(this="AVG", expressions=[exp.column(name)]))
    clauses = ("hint", "order", "limit", "with_")
    kept = {clause: inner.args.get(clause) for clause in clauses}
    for clause in clauses:
        inner.set(clause, None)
    for clause in list(node.args):
        node.set(clause, None)
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("each")))
    node.set("expressions", outer)
    node.set("from_", exp.From(this=source))
    node.set("hint", kept["hint"])
    node.set("with_", kept["with_"])


def clipped(node: exp.Expr) -> None:
    """An argument without bounds is put between 0 and 1000."""
    call = node
    while isinstance(call, exp.Filter | exp.WithinGroup | exp.Bracket):
        if isinstance(call, exp.WithinGroup):
            ordered = call.expression.expressions[0]
            ordered.set("this", _between(ordered.this))
            return
        call = call.this
    for value in _values(call):
        value.replace(_between(value.copy()))


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What an aggregate is of; its constants and options aside."""
    call = node.this if isinstance(node, exp.Filter) else node
    return [e for e in call.expressions if not isinstance(e, exp.Kwarg | exp.Literal)]


def _between(value: exp.Expr) -> exp.Anonymous:
    least = exp.Anonymous(this="LEAST", expressions=[value, exp.Literal.number(1000)])
    return exp.Anonymous(this="GREATEST", expressions=[least, exp.Literal.number(0)])


def all_rows(node: exp.Expr) -> None:
    """UNION becomes UNION ALL."""
    node.set("distinct", False)


def on(conditions: list[exp.Expr]) -> Change:
    """A join gets further conditions."""

    def change(node: exp.Expr) -> None:
        present = node.args.get("on")
        node.set("on", exp.and_(*([present] if present is not None else []), *conditions))

    return change


def turned(node: exp.Expr) -> None:
    """``a RIGHT JOIN b`` becomes ``b LEFT JOIN a``."""
    select = node.parent
    if isinstance(select, exp.Select) and len(select.args.get("joins") or []) == 1:
        start = select.args["from_"]
        left, right = start.this, node.this
        start.set("this", right)
        node.set("this", left)
        node.set("side", "LEFT")


def qualified(alias: str) -> Change:
    """A column says which table it is of."""

    def change(node: exp.Expr) -> None:
        node.set("table", exp.to_identifier(alias))

    return change


def joined(node: exp.Expr) -> None:
    """``x IN (SELECT y FROM ...)`` becomes a join with one row per y."""
    select, query = node.parent_select, node.args.get("query")
    if not isinstance(select, exp.Select):
        return
    where = select.args.get("where")
    if where is None or not isinstance(node.this, exp.Column) or query is None:
        return
    inner = query.this
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        return
    value = inner.expressions[0].unalias().copy()
    inner.set("expressions", [exp.alias_(value.copy(), "member")])
    if inner.args.get("group") is None:
        inner.set("group", exp.Group(expressions=[value]))
    condition = exp.EQ(this=node.this.copy(), expression=exp.column("member", table="chosen"))
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("chosen")))
    rest = [c.copy() for c in where.this.flatten() if c is not node]
    if len(rest) == len(list(where.this.flatten())) and where.this is not node:
        return  # it does not stand by itself among the conditions
    rest = [] if where.this is node else rest
    select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    select.append("joins", exp.Join(this=source, on=condition))


_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


def dated(node: exp.Expr) -> None:
    """Texts that are compared and look like days or moments are said to be such."""
    compared = [part for part in node.walk() if isinstance(part, _COMPARED)]
    for text in [child for part in compared for child in part.iter_expressions()]:
        if isinstance(text, exp.Literal) and text.is_string:
            for kind, form in (("DATE", _DAY), ("TIMESTAMP", _MOMENT)):
                if form.fullmatch(text.name):
                    text.replace(exp.cast(text.copy(), kind))


def in_days(node: exp.Expr) -> None:
    """``day + 7`` becomes ``day + INTERVAL '7' DAY``; ``a - b`` the days from b to a."""
    for part in [part for part in node.walk() if isinstance(part, exp.Add | exp.Sub)]:
        number = part.expression
        if isinstance(number, exp.Literal) and not number.is_string:
            text = exp.Literal.string(number.name)
            number.replace(exp.Interval(this=text, unit=exp.Var(this="DAY")))
        elif isinstance(part, exp.Sub):
            days = [exp.Literal.string("day"), number.copy(), part.this.copy()]
            part.replace(exp.Anonymous(this="DATE_DIFF", expressions=days))


def dated_in_days(node: exp.Expr) -> None:
    """Both of these."""
    dated(node)
    in_days(node)


def as_number(node: exp.Expr) -> None:
    """Whether something is true is counted as 0 or 1."""
    for value in _values(node):
        value.replace(exp.cast(value.copy(), "INTEGER"))


def since_1970(node: exp.Expr) -> None:
    """A day is counted from another, so that it is a number."""
    for value in _values(node):
        start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
        days = [exp.Literal.string("day"), start, value.copy()]
        value.replace(exp.Anonymous(this="DATE_DIFF", expressions=days))


def lowered(node: exp.Expr) -> None:
    """``x ILIKE 'North%'`` becomes ``LOWER(x) LIKE 'north%'``."""
    pattern = node.expression
    if isinstance(pattern, exp.Literal):
        small = exp.Anonymous(this="LOWER", expressions=[node.this.copy()])
        text = exp.Literal.string(pattern.name.lower())
        node.replace(exp.Like(this=small, expression=text, negate=node.args.get("negate")))


def from_where(node: exp.Expr) -> None:
    """``a, b WHERE a.x = b.x`` becomes ``a JOIN b ON a.x = b.x``."""
    select = node.parent
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if not isinstance(select, exp.Select) or where is None or len(select.args["joins"]) != 1:
        return
    parts = (
        [part.copy() for part in where.this.flatten()]
        if where.this.key == "and"
        else [where.this.copy()]
    )
    equal = [
        part
        for part in parts
        if isinstance(part, exp.EQ)
        and isinstance(part.this, exp.Column)
        and isinstance(part.expression, exp.Column)
    ]
    rest = [part for part in parts if part not in equal]
    if equal:
        node.set("kind", None)
        node.set("on", exp.and_(*equal))
        select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
