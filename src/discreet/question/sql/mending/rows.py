"""Joins, sub-queries, windows and sides of a UNION: whose rows stand together."""

from __future__ import annotations

from sqlglot import exp

from discreet.question.schema import Owners
from discreet.question.sql.mending.torn import Mended, Torn, make_call, whole


def mend_joins(torn: Torn) -> Mended:
    """A join on the unit; a public table by an equality, or around the other way."""
    yield from _begin_with_rows_of_two(torn)
    for root, node in torn.each(exp.Join):
        yield from _change_kind(root, node)
    for root, node in torn.each(exp.Join):
        yield from _join_on_unit(torn, root, node)
    yield from _swap_sides(torn)
    for root, node in torn.each(exp.Join):
        select, on = node.parent, node.args.get("on")
        if isinstance(select, exp.Select) and on is not None and not node.args.get("side"):
            node.set("on", None)
            node.set("side", None)
            node.set("kind", "CROSS")
            where = select.args.get("where")
            both = [*([where.this.copy()] if where is not None else ()), on.copy()]
            select.set("where", exp.Where(this=exp.and_(*both)))
            yield "", root


def qualify_rows_first(torn: Torn) -> Mended:
    """``SELECT COUNT(*) FROM t QUALIFY ...``: the rows are chosen first, and then counted."""
    root = torn.tree.copy() if torn.tree is not None else None
    if not isinstance(root, exp.Select) or root.args.get("qualify") is None:
        return
    chosen = ("from_", "joins", "where", "qualify", "windows")
    inner = exp.Select(
        expressions=[exp.Star()],
        **{name: root.args[name] for name in chosen if root.args.get(name)},
    )
    name = inner.args["from_"].this.alias_or_name if inner.args.get("from_") else ""
    if not name or inner.args.get("joins"):
        return  # two columns of one name would meet
    for clause in chosen:
        root.set(clause, None)
    alias = exp.TableAlias(this=exp.to_identifier(name))
    root.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))
    yield "the rows are chosen before they are aggregated: ", root


def _begin_with_rows_of_two(torn: Torn) -> Mended:
    """FROM people JOIN messages, around the other way: a message is of two people, not one."""
    root = torn.tree.copy() if torn.tree is not None else None
    if not isinstance(root, exp.Select) or not root.args.get("from_"):
        return
    start = root.args["from_"]
    for join in root.args.get("joins") or []:
        table = torn.schema.tables.get(join.this.name) if isinstance(join.this, exp.Table) else None
        if table is None or table.owners is not Owners.ANY:
            continue
        if str(join.args.get("side") or "") in ("", "LEFT"):
            words = "of rows that have a partner: " if join.args.get("side") else ""
            first, other = start.this, join.this
            start.set("this", other)
            join.set("this", first)
            join.set("side", None)
            yield words, root
        return


def _swap_sides(torn: Torn) -> Mended:
    """FROM a public table LEFT JOIN people, around the other way."""
    root = torn.tree.copy() if torn.tree is not None else None
    joins = root.args.get("joins") or [] if isinstance(root, exp.Select) else []
    if root is not None and len(joins) == 1 and joins[0].args.get("side"):
        start, join = root.args["from_"], joins[0]
        left, right = start.this, join.this
        start.set("this", right)
        join.set("this", left)
        join.set("side", None)
        yield "of rows that have a partner: ", root


def _join_on_unit(torn: Torn, root: exp.Expr, node: exp.Expr) -> Mended:
    select, right = node.parent, node.this
    start = select.args.get("from_") if isinstance(select, exp.Select) else None
    if start is None or not isinstance(right, exp.Table) or not isinstance(start.this, exp.Table):
        return
    tables = [torn.schema.tables.get(part.name) for part in (start.this, right)]
    if any(table is None or table.public or table.by_row for table in tables):
        return
    units = [table.unit or () for table in tables if table is not None]
    if len(units[0]) != len(units[1]):
        return
    names = (start.this.alias_or_name, right.alias_or_name)
    equal = [
        exp.EQ(this=exp.column(a, table=names[0]), expression=exp.column(b, table=names[1]))
        for a, b in zip(*units, strict=True)
    ]
    on = node.args.get("on")
    node.set("on", exp.and_(*([on.copy()] if on is not None else ()), *equal))
    node.set("kind", None)
    yield "each with their own rows: ", root


def _change_kind(root: exp.Expr, node: exp.Expr) -> Mended:
    on = node.args.get("on")
    if str(node.args.get("kind") or "").upper() in ("SEMI", "ANTI") and on is not None:
        yield from _semi_join(root, node, on)
    elif str(node.args.get("side") or "").upper() == "FULL":
        node.set("side", "LEFT")
        yield "groups of listed values are in the answer anyway: ", root
    elif str(node.args.get("side") or "").upper() == "LEFT" and isinstance(on, exp.And):
        node.set("side", None)
        yield "of rows that have a partner: ", root


def _semi_join(root: exp.Expr, node: exp.Expr, on: exp.Expr) -> Mended:
    """``a SEMI JOIN b ON a.x = b.x`` is ``a WHERE EXISTS (SELECT 1 FROM b WHERE a.x = b.x)``."""
    select = node.parent
    if not isinstance(select, exp.Select):
        return
    inner = exp.Select(
        expressions=[whole(1)],
        from_=exp.From(this=node.this.copy()),
        where=exp.Where(this=on.copy()),
    )
    there: exp.Expr = exp.Exists(this=inner)
    if str(node.args.get("kind")).upper() == "ANTI":
        there = exp.Not(this=there)
    where = select.args.get("where")
    both = [*([where.this.copy()] if where is not None else ()), there]
    node.pop()
    select.set("where", exp.Where(this=exp.and_(*both)))
    yield "", root


def mend_subqueries(torn: Torn) -> Mended:
    """A sub-query about the same person, or one that is a question by itself."""
    for root, node in torn.each(exp.All, exp.Any):
        yield from _compare_with_extreme(root, node)
    yield from _ask_groups_first(torn)
    for root, node in torn.each(exp.Select):
        if node.parent_select is None or node.args.get("distinct") or node.find(exp.Anonymous):
            continue
        again = root.copy()
        same = next(part for part in again.find_all(exp.Select) if part == node)
        same.set("distinct", exp.Distinct())
        yield "with the values that many have: ", again
        yield from _correlate(torn, root, node)


def _ask_groups_first(torn: Torn) -> Mended:
    """``x > (SELECT AVG(x) FROM t AS b WHERE b.k = a.k)``: the number of each k is a question."""
    tree = torn.tree
    for part in () if tree is None else tree.find_all(exp.Subquery):
        query, where = part.this, part.this.args.get("where")
        inside = part.find_ancestor(exp.Where, exp.Select)
        if not isinstance(query, exp.Select) or not isinstance(inside, exp.Where) or where is None:
            continue
        own = {table.alias_or_name.casefold() for table in query.find_all(exp.Table)}
        parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
        keys = [key for key in (_find_key(one, own) for one in parts) if key is not None]
        if not keys or len(query.expressions) != 1 or query.args.get("group") is not None:
            continue
        found = query.copy()
        rest = [one.copy() for one in parts if _find_key(one, own) is None]
        found.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
        found.set("expressions", [*(key.copy() for key in keys), query.expressions[0].copy()])
        found.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        yield (
            "the number of each group is a question by itself, and in the next one a constant: "
            "CASE key WHEN 'a' THEN 12 WHEN 'b' THEN 15 END; first ",
            found,
        )


def _find_key(condition: exp.Expr, own: set[str]) -> exp.Column | None:
    """The column inside that is to equal one of the row outside; None if it is something else."""
    sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
    if not all(isinstance(side, exp.Column) for side in sides):
        return None
    inner = [side for side in sides if not side.table or side.table.casefold() in own]
    return inner[0] if len(inner) == 1 else None


def _compare_with_extreme(root: exp.Expr, node: exp.Expr) -> Mended:
    """x >= ALL (...) compares with the greatest, x = ANY (...) is x IN (...)."""
    comparison = node.parent
    query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if comparison is None or not isinstance(query, exp.Select):
        return
    if isinstance(node, exp.Any) and isinstance(comparison, exp.EQ):
        found = query.copy()
        found.set("distinct", exp.Distinct())
        comparison.replace(exp.In(this=comparison.this.copy(), query=exp.Subquery(this=found)))
        yield "with the values that many have: ", root
        return
    upper = isinstance(comparison, exp.GT | exp.GTE) == isinstance(node, exp.All)
    value = query.expressions[0].unalias()
    query.set("expressions", [make_call("MAX" if upper else "MIN", value)])
    node.replace(exp.Subquery(this=query.copy()))
    yield "", root


def _correlate(torn: Torn, root: exp.Expr, node: exp.Expr) -> Mended:
    """A sub-query about the same person's rows."""
    outer = node.parent_select
    own = next(iter(torn.tables(node)), None)
    other = next(iter(torn.tables(outer)), None) if outer is not None else None
    if own is None or other is None or own[1].public or other[1].public:
        return
    units = own[1].unit or (), other[1].unit or ()
    if own[1].by_row or other[1].by_row or len(units[0]) != len(units[1]) or own[0] == other[0]:
        return
    equal = [
        exp.EQ(this=exp.column(a, table=own[0]), expression=exp.column(b, table=other[0]))
        for a, b in zip(*units, strict=True)
    ]
    where = node.args.get("where")
    both = [*([where.this.copy()] if where is not None else ()), *equal]
    node.set("where", exp.Where(this=exp.and_(*both)))
    yield "of the same one's rows: ", root


def _mend_places(torn: Torn) -> Mended:
    """A number of places, or of parts, that is let in."""
    for root, node in torn.each(exp.Window):
        call = node.this
        if isinstance(call, exp.Anonymous) and call.name.upper() in ("LAG", "LEAD"):
            places = [part for part in call.expressions[1:2] if part.name.isdigit()]
            for part in places:
                part.replace(whole(1))
                yield "one place away: ", root
        if isinstance(call, exp.Anonymous) and call.name.upper() == "NTILE":
            call.set("expressions", [whole(4)])
            yield "in quarters: ", root


def mend_windows(torn: Torn) -> Mended:
    """A window over each person's own rows; over everybody's, the aggregate by group."""
    yield from _mend_places(torn)
    for root, node in torn.each(exp.Window):
        if node.args.get("spec") is None and "LAST_VALUE" in node.this.name.upper():
            ends = {"start": "UNBOUNDED", "start_side": "PRECEDING"}
            spec = exp.WindowSpec(kind="ROWS", end="UNBOUNDED", end_side="FOLLOWING", **ends)
            node.set("spec", spec)
            yield "", root
    for root, node in torn.each(exp.Window):
        select, parts = node.parent_select, node.args.get("partition_by") or []
        if select is None or select.parent_select is not None:
            continue
        if isinstance(node.this, exp.Anonymous) and len(select.expressions) == 1:
            node.replace(node.this.copy())
            select.set("expressions", [*(p.copy() for p in parts), *select.expressions])
            if parts:
                select.set("group", exp.Group(expressions=[part.copy() for part in parts]))
            yield "the aggregate of each group: " if parts else "the aggregate: ", root
    for root, node in torn.each(exp.Window):
        tables = [table for _, table in torn.tables(node) if table.unit and not table.by_row]
        unit = [exp.column(name) for name in (tables[0].unit or ())] if tables else []
        parts = [p for p in node.args.get("partition_by") or [] if p not in unit]
        if unit:
            node.set("partition_by", [*unit, *(part.copy() for part in parts)])
            yield "among each one's own rows: ", root


def mend_sets(torn: Torn) -> Mended:
    """Sides of a UNION of one width; one side alone where the two cannot stand together."""
    for root, node in torn.each(exp.SetOperation):
        sides = [side for side in (node.this, node.expression) if isinstance(side, exp.Select)]
        if len(sides) == 2:
            width = min(len(side.expressions) for side in sides)
            if any(len(side.expressions) > width for side in sides):
                for side in sides:
                    side.set("expressions", side.expressions[:width])
                yield "with as many columns on both sides: ", root
    if torn.tree is None:
        return
    root = torn.tree.copy()
    for node in root.find_all(exp.SetOperation):
        if node.parent is not None:
            node.replace(node.this.copy())
            yield "of the first side alone: ", root
            return
