"""Whole queries in fewer words, before anything is given a meaning.

Brackets around joins, RIGHT JOIN, DISTINCT rows of a person, names with a database before
them and sub-queries in conditions say what smaller constructions say too.  Here the tree is
changed into those; what they mean, and whether it is allowed, is decided later.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.question.sql.aggregates import aggregate_name
from discreet.question.sql.dialect import Reader
from discreet.question.sql.unnest_subqueries import is_looked_up, join_subqueries


def simplify(tree: exp.Expr, reader: Reader) -> exp.Expr:
    """``tree``, changed in place."""
    for query in _selects(tree):
        _drop_databases(query, reader)
        _open_brackets(query)
        _name_groups(query)
        _join_commas(query)
        _turn_right_joins(query)
    for union in list(tree.find_all(exp.Union)):
        _group_union(union, reader)
    for query in _selects(tree):
        _group_distinct(query, reader)
    return tree


def join_looked_up(tree: exp.Expr, reader: Reader) -> exp.Expr | None:
    """A copy of ``tree`` with joins for what is looked up in sub-queries; None if nothing is."""
    if not any(is_looked_up(part) for part in tree.find_all(exp.Exists, exp.In, exp.Subquery)):
        return None
    copy = tree.copy()
    join_subqueries(reader.is_key)(copy)
    return None if copy == tree else copy


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """Every SELECT, those inside others first."""
    return reversed(list(tree.find_all(exp.Select)))


# --- names ---------------------------------------------------------------------------------


def _drop_databases(query: exp.Select, reader: Reader) -> None:
    """``database.schema.visits`` is ``visits``: there is one of each name."""
    for part in query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query)):
        if isinstance(part, exp.Table) and isinstance(part.this, exp.Identifier):
            name = part.name
            if "." in name and part.this.args.get("quoted") and name not in reader.schema.tables:
                last = name.rpartition(".")[2]  # BigQuery's `project.dataset.visits`
                if last in reader.schema.tables:
                    part.this.set("this", last)
            if _is_table(part, reader):
                part.set("db", None)
                part.set("catalog", None)
        elif isinstance(part, exp.Column) and _is_table(part.args.get("table"), reader):
            part.set("db", None)
            part.set("catalog", None)


def _is_table(node: exp.Expr | None, reader: Reader) -> bool:
    tables = {name.casefold() for name in reader.schema.tables}
    return node is not None and node.name.casefold() in tables


# --- joins ---------------------------------------------------------------------------------


def _open_brackets(query: exp.Select) -> None:
    """``FROM (a JOIN b ON ...) JOIN c`` is ``FROM a JOIN b ON ... JOIN c``."""
    start = query.args.get("from_")
    if start is None:
        return
    inner = start.this
    while isinstance(inner, exp.Subquery) and inner.args.get("alias") is None:
        if isinstance(inner.this, exp.Query) and not isinstance(inner.this, exp.Subquery):
            return
        first = inner.this
        joins = [*(first.args.get("joins") or []), *(inner.args.get("joins") or [])]
        if isinstance(first, exp.Table | exp.Subquery):
            first.set("joins", None)
        start.set("this", first)
        query.set("joins", [*joins, *(query.args.get("joins") or [])])
        inner = first


def _join_commas(query: exp.Select) -> None:
    """``FROM a, b WHERE a.x = b.x`` is ``FROM a JOIN b ON a.x = b.x``."""
    where, start = query.args.get("where"), query.args.get("from_")
    if where is None or start is None:
        return
    before = {start.this.alias_or_name.casefold()}
    for join in query.args.get("joins") or []:
        name = join.this.alias_or_name.casefold()
        if not {key for key, value in join.args.items() if value} <= {"this"}:
            before.add(name)
            continue
        pairs = [
            part
            for part in (where.this.flatten() if isinstance(where.this, exp.And) else [where.this])
            if isinstance(part, exp.EQ) and _sides(part, name, before)
        ]
        before.add(name)
        if not pairs or not isinstance(join.this, exp.Table | exp.Subquery):
            continue
        join.set("on", exp.and_(*(pair.copy() for pair in pairs)))
        for pair in pairs:
            pair.replace(exp.true())
    _drop_true(query, where)


def _sides(part: exp.EQ, name: str, before: set[str]) -> bool:
    """Whether a column of the table ``name`` is equal to one of a table before it."""
    sides = (part.this, part.expression)
    if not all(isinstance(side, exp.Column) for side in sides):
        return False
    tables = [side.table.casefold() for side in sides]
    return name in tables and bool(before & set(tables))


def _drop_true(query: exp.Select, where: exp.Expr) -> None:
    whole = where.this
    parts = list(whole.flatten()) if isinstance(whole, exp.And) else [whole]
    rest = [part for part in parts if part != exp.true()]
    if len(rest) < len(parts):
        query.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)


def _turn_right_joins(query: exp.Select) -> None:
    """``a RIGHT JOIN b`` is ``b LEFT JOIN a``, where it is the first join."""
    joins = query.args.get("joins") or []
    start = query.args.get("from_")
    if start is None or not joins or str(joins[0].args.get("side") or "") != "RIGHT":
        return
    if any(isinstance(item, exp.Star) for item in query.expressions):
        return  # the order of the columns would change
    left, right = start.this, joins[0].this
    start.set("this", right)
    joins[0].set("this", left)
    joins[0].set("side", "LEFT")


# --- groups --------------------------------------------------------------------------------


def _name_groups(query: exp.Select) -> None:
    """``GROUP BY ALL`` is by everything selected that is no aggregate."""
    group = query.args.get("group")
    if group is None or not group.args.get("all") or group.expressions:
        return
    keys = [item.unalias().copy() for item in query.expressions if not _aggregates(item)]
    query.set("group", exp.Group(expressions=keys) if keys else None)


def _aggregates(node: exp.Expr) -> bool:
    inside = node.walk(prune=lambda n: isinstance(n, exp.Query))
    return any(aggregate_name(part) is not None for part in inside)


def _names_unit(query: exp.Select, reader: Reader) -> bool:
    """Whether a SELECT shows whose its rows are; of a sub-query that is seen only later."""
    start = query.args.get("from_")
    if start is None or not isinstance(start.this, exp.Table):
        return True
    table = next((t for n, t in reader.schema.tables.items()
                  if n.casefold() == start.this.name.casefold()), None)  # fmt: skip
    if table is None or table.unit is None:
        return True
    shown = {item.unalias().name.casefold() for item in query.expressions}
    return {name.casefold() for name in table.unit} <= shown


def _in_from(query: exp.Expr) -> bool:
    """Whether the rows of a query are read by another one."""
    parent = query.parent
    while isinstance(parent, exp.Subquery | exp.Union):
        query, parent = parent, parent.parent
    return isinstance(parent, exp.From | exp.Join | exp.CTE)


def _group_distinct(query: exp.Select, reader: Reader) -> None:
    """Different rows of a sub-query are its groups; whose they are is seen later."""
    distinct = query.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or not _in_from(query):
        return
    items = [item.unalias() for item in query.expressions]
    plain = query.args.get("group") is None and not any(map(_aggregates, items))
    if not plain or not _names_unit(query, reader):
        return
    if any(isinstance(i, exp.Star) or isinstance(i.this, exp.Star) for i in items):
        return
    query.set("distinct", None)
    query.set("group", exp.Group(expressions=[item.copy() for item in items]))


def _group_union(union: exp.Union, reader: Reader) -> None:
    """Different rows of two sub-queries are the groups of all their rows."""
    if not union.args.get("distinct") or not _in_from(union):
        return
    first: exp.Expr = union
    while isinstance(first, exp.Union | exp.Subquery):
        first = first.this
    names = [item.alias_or_name for item in first.expressions]
    if not all(names) or any(name == "*" for name in names):
        return
    if not isinstance(first, exp.Select) or not _names_unit(first, reader):
        return
    inner = union.copy()
    inner.set("distinct", False)
    clause = inner.args.pop("with_", None)
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
    alias = exp.TableAlias(this=exp.to_identifier("both_sides"))
    outer = exp.Select(
        expressions=columns,
        from_=exp.From(this=exp.Subquery(this=inner, alias=alias)),
        group=exp.Group(expressions=[c.copy() for c in columns]),
        with_=clause,
    )
    union.replace(outer)
