"""Rewritings: a whole question to type instead of the one refused.

Each function changes a copy of the question's tree.  The result is printed only
if it is itself accepted, so a fix is never a second refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from discreet.question.sql.unnest_subqueries import IsKey, ask_subquery_alone, join_subqueries

Change = Callable[[exp.Expr], None]


def drop_clauses(*arguments: str) -> Change:
    """Leave clauses out."""

    def change(node: exp.Expr) -> None:
        for argument in arguments:
            node.set(argument, None)

    return change


def select_all_columns(node: exp.Expr) -> None:
    """A SELECT of nothing selects every column."""
    node.set("expressions", [exp.Star()])


def count_by_group(node: exp.Expr) -> None:
    """Rows shown one by one, or DISTINCT rows, become groups with a count."""
    select = node if isinstance(node, exp.Select) else node.parent_select
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return
    columns = [e.unalias().copy() for e in select.expressions]
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=columns))
    select.append("expressions", exp.alias_(_count(), "n"))


def count_rows(node: exp.Expr) -> None:
    """Rows shown one by one become their number: a person is not a group."""
    select = node if isinstance(node, exp.Select) else node.parent_select
    if isinstance(select, exp.Select):
        for part in ("distinct", "order", "limit", "offset"):
            select.set(part, None)
        select.set("expressions", [exp.alias_(_count(), "n")])


def _count() -> exp.Anonymous:
    return exp.Anonymous(this="COUNT", expressions=[exp.Star()])


def group_by_column(node: exp.Expr) -> None:
    """A column that is neither grouped nor aggregated is grouped."""
    select = node.parent_select
    if isinstance(select, exp.Select):
        group = select.args.get("group") or exp.Group(expressions=[])
        group.append("expressions", node.copy())
        select.set("group", group)


def group_by_unit(unit: tuple[str, ...]) -> Change:
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


def average_over_units(node: exp.Expr) -> None:
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


def _values(node: exp.Expr) -> list[exp.Expr]:
    """What an aggregate is of; its constants and options aside."""
    call = node.this if isinstance(node, exp.Filter) else node
    return [e for e in call.expressions if not isinstance(e, exp.Kwarg | exp.Literal)]


def keep_all_rows(node: exp.Expr) -> None:
    """UNION becomes UNION ALL."""
    node.set("distinct", False)


def add_join_conditions(conditions: list[exp.Expr]) -> Change:
    """A join gets further conditions."""

    def change(node: exp.Expr) -> None:
        present = node.args.get("on")
        node.set("on", exp.and_(*([present] if present is not None else []), *conditions))

    return change


def swap_join_sides(node: exp.Expr) -> None:
    """``a RIGHT JOIN b`` becomes ``b LEFT JOIN a``."""
    select = node.parent
    start = select.args.get("from_") if isinstance(select, exp.Select) else None
    if select is not None and start is not None and len(select.args.get("joins") or []) == 1:
        left, right = start.this, node.this
        start.set("this", right)
        node.set("this", left)
        node.set("side", "LEFT")


def qualify_column(alias: str) -> Change:
    """A column says which table it is of."""

    def change(node: exp.Expr) -> None:
        node.set("table", exp.to_identifier(alias))

    return change


def cast_to_integer(node: exp.Expr) -> None:
    """Whether something is true is counted as 0 or 1."""
    for value in _values(node):
        value.replace(exp.cast(value.copy(), "INTEGER"))


def count_values(node: exp.Expr) -> None:
    """What cannot be added up is counted."""
    if isinstance(node, exp.Anonymous):
        node.set("this", "COUNT")


def count_days_since_1970(node: exp.Expr) -> None:
    """A day is counted from another, so that it is a number."""
    for value in _values(node):
        start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
        days = [exp.Literal.string("day"), start, value.copy()]
        value.replace(exp.Anonymous(this="DATE_DIFF", expressions=days))
    if node.name.upper() in ("MIN", "MAX"):  # a whole number of days, so it is a day again
        shown = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        start = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
        day: exp.Expr = exp.Add(this=start, expression=node.copy())
        node.replace(exp.alias_(day, f"{node.name.lower()}_day") if shown else exp.paren(day))


def change_each(changes: Mapping[exp.Expr, Change]) -> Change:
    """Several calls, each with its own change, all at once."""

    def change(node: exp.Expr) -> None:
        for call in [part for part in node.find_all(exp.Anonymous) if part in changes]:
            changes[call](call)

    return change


def move_where_to_join(node: exp.Expr) -> None:
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


# --- what is refused wherever it stands ----------------------------------------------------


def find_rewrites(node: exp.Expr | None, is_key: IsKey) -> tuple[tuple[str, Change], ...]:
    """What may be typed instead of ``node``: words to say first, and the change; best first."""
    match node:
        case exp.Null(parent=exp.In()):
            return (("NULL equals nothing, so leave it out (x IS NULL finds it): ", drop_nulls),)
        case exp.Exists() | exp.Subquery(parent=exp.In()):
            return (("", join_subqueries(is_key)),)
        case exp.Subquery():
            first = "ask two questions, and put the first one's answer in its place; first "
            return (("", join_subqueries(is_key)), (first, ask_subquery_alone))
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    if isinstance(node, exp.Anonymous):
        name = node.name.upper()
        if name in _CONTINUOUS:
            return (("for a quantile that nobody need have, ", use_continuous_quantiles),)
    return ()


def drop_nulls(node: exp.Expr) -> None:
    """NULL in a list finds nothing; outside it (NOT IN) a row without a value is none either."""
    for part in list(node.root().find_all(exp.In)):
        kept = [e for e in part.expressions if not isinstance(e, exp.Null)]
        if kept:
            part.set("expressions", kept)
        elif part.expressions:
            part.replace(exp.Is(this=part.this.copy(), expression=exp.Null()))


_CONTINUOUS = {"PERCENTILE_DISC": "PERCENTILE_CONT", "QUANTILE_DISC": "QUANTILE_CONT"}


def use_continuous_quantiles(node: exp.Expr) -> None:
    """A quantile here is a number between the bounds, whether or not somebody has it."""
    for call in node.root().find_all(exp.Anonymous):
        call.set("this", _CONTINUOUS.get(call.name.upper(), call.this))
