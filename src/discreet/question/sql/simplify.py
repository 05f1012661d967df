"""Whole queries in fewer words, before anything is given a meaning.

Brackets around joins, RIGHT JOIN, DISTINCT rows of a person, names with a database before
them and sub-queries in conditions say what smaller constructions say too.  Here the tree is
changed into those; what they mean, and whether it is allowed, is decided later.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.exact.records import dataclass
from discreet.question.sql.aggregates import NAMES, aggregate_name, is_several
from discreet.question.sql.dialect import Reader
from discreet.question.sql.unnest_subqueries import is_looked_up, join_subqueries


def simplify(tree: exp.Expr, reader: Reader) -> exp.Expr:
    """``tree``, changed in place."""
    _list_any(tree)
    _compare_rows(tree)
    for query in _selects(tree):
        _drop_databases(query, reader)
        _open_brackets(query)
        _write_out_fits(query)
        _name_groups(query)
        _join_commas(query)
        _turn_right_joins(query)
        _filter_before_joining(query, reader)
        _rename_public_rows(query, reader)
        _join_public_rows(query, reader)
        _inline_constants(query)
        _multiply_by_constants(query, reader)
    for union in list(tree.find_all(exp.Union)):
        _group_union(union, reader)
    for both in list(tree.find_all(exp.Except, exp.Intersect)):
        _look_people_up(both, reader)
    for query in _selects(tree):
        _group_distinct(query, reader)
    return tree


def spell_out(tree: exp.Expr) -> None:
    """Change words for what is shown into longer ones, wherever they stand."""
    for query in tree.find_all(exp.Select):
        _list_order(query)
    _divide_by_totals(tree)


def join_looked_up(tree: exp.Expr, reader: Reader) -> exp.Expr | None:
    """A copy of ``tree`` with joins for what is looked up in sub-queries; None if nothing is."""
    if not any(is_looked_up(part) for part in tree.find_all(exp.Exists, exp.In, exp.Subquery)):
        return None
    copy = tree.copy()
    join_subqueries(reader.is_key, reader.columns_of)(copy)
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


def _list_any(tree: exp.Expr) -> None:
    """``x = ANY (...)`` is ``x IN (...)``, and ``x <> ALL (...)`` is ``x NOT IN (...)``."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ)):
        word = "ANY" if isinstance(node, exp.EQ) else "ALL"
        kind = exp.Any if word == "ANY" else exp.All
        said, listed = node.expression, None
        if isinstance(said, kind):
            query = said.this.this if isinstance(said.this, exp.Subquery) else said.this
            if isinstance(query, exp.Query):
                listed = exp.In(this=node.this, query=exp.Subquery(this=query))
        elif isinstance(said, exp.Anonymous) and said.name.upper() in (word, "SOME"):
            (values, *more) = said.expressions or [None]
            if isinstance(values, exp.Array) and values.expressions and not more:
                listed = exp.In(this=node.this, expressions=values.expressions)
        if listed is not None:
            node.replace(listed if word == "ANY" else exp.Not(this=listed))


MOST_ROWS_COMPARED = 100
"""How many rows of constants one row may be compared with."""


def _compare_rows(tree: exp.Expr) -> None:
    """``(a, b) IN ((1, 2), (3, 4))`` is ``a = 1 AND b = 2 OR a = 3 AND b = 4``."""
    for node in list(tree.find_all(exp.In, exp.EQ)):
        row = node.this
        listed = node.expressions if isinstance(node, exp.In) else [node.expression]
        if not isinstance(row, exp.Tuple) or not 0 < len(listed) <= MOST_ROWS_COMPARED:
            continue
        if not all(isinstance(own, exp.Column) for own in row.expressions):
            continue  # each is written as often as there are rows: long ones would be many times
        width = len(row.expressions)
        if not all(isinstance(o, exp.Tuple) and len(o.expressions) == width for o in listed):
            continue
        same = [
            exp.and_(
                *(
                    exp.EQ(this=own.copy(), expression=other.copy())
                    for own, other in zip(row.expressions, values.expressions, strict=True)
                )
            )
            for values in listed
        ]
        node.replace(exp.Paren(this=exp.or_(*same)))


def name_columns(tree: exp.Expr) -> None:
    """``WITH v(a, b) AS (SELECT x, y ...)`` is ``WITH v AS (SELECT x AS a, y AS b ...)``."""
    for node in list(tree.find_all(exp.CTE, exp.Subquery)):
        alias = node.args.get("alias")
        columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        query = node.this
        if alias is None or not isinstance(columns, list) or not isinstance(query, exp.Select):
            continue
        if query.args.get("order") or not _only(alias, "this", "columns"):
            continue
        items = query.expressions
        if len(items) != len(columns) or any(item.is_star for item in items):
            continue
        named = [
            exp.Alias(this=item.unalias().copy(), alias=column.copy())
            for item, column in zip(items, columns, strict=True)
        ]
        group = query.args.get("group")
        own = {item.alias.casefold() for item in items if isinstance(item, exp.Alias)}
        read = query.find_all(exp.Column) if group is not None or own else ()
        if any(not c.table and c.name.casefold() in own for c in read):
            continue  # a name that is given inside is read there
        query.set("expressions", named)
        alias.set("columns", None)


# --- what is shown -------------------------------------------------------------------------


def _list_order(query: exp.Select) -> None:
    """``ORDER BY ALL`` is by every column, from left to right."""
    order = query.args.get("order")
    stars = [item for item in query.expressions if isinstance(item.unalias(), exp.Star)]
    if order is None or len(order.expressions) != 1 or stars:
        return
    (item,) = order.expressions
    word = item.this if isinstance(item.this, exp.Column) and not item.this.table else None
    if word is None or word.name.upper() != "ALL" or word.this.args.get("quoted"):
        return
    places = range(1, len(query.expressions) + 1)
    listed = [exp.Ordered(**{**item.args, "this": exp.Literal.number(n)}) for n in places]
    order.set("expressions", listed)


def _divide_by_totals(tree: exp.Expr) -> None:
    """``RATIO_TO_REPORT(x) OVER w`` is ``x / SUM(x) OVER w``."""
    for window in list(tree.find_all(exp.Window)):
        share = window.this
        if not isinstance(share, exp.Anonymous) or share.name.upper() != "RATIO_TO_REPORT":
            continue
        if len(share.expressions) == 1 and not isinstance(share.this, exp.Identifier):
            total = window.copy()
            total.set("this", exp.Anonymous(this="SUM", expressions=[share.expressions[0].copy()]))
            ratio = exp.Div(this=share.expressions[0].copy(), expression=total)
            window.replace(exp.paren(ratio, copy=False))


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


def _filter_before_joining(query: exp.Select, reader: Reader) -> None:
    """``a LEFT JOIN b ON ... AND b.x > 1`` joins those rows of ``b`` that have it.

    A row of ``a`` without any keeps its place, as it does where nothing is joined.
    """
    for join in query.args.get("joins") or ():
        table, on = join.this, join.args.get("on")
        plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        if not plain or on is None or str(join.args.get("side") or "") != "LEFT":
            continue
        name = table.alias_or_name
        if _is_public(table, reader):
            continue  # a sub-query is of private tables
        parts = _conjuncts(on)
        _name_tables(parts, join, query, reader)
        own = [part for part in parts if _is_of(part, name)]
        if not own or len(own) == len(parts):
            continue
        rows = exp.Select(
            expressions=[exp.Star()],
            from_=exp.From(this=table.copy()),
            where=exp.Where(this=exp.and_(*own)),
        )
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        join.set("this", exp.Subquery(this=rows, alias=alias))
        join.set("on", exp.and_(*(part for part in parts if part not in own)))


def _name_tables(parts: list[exp.Expr], join: exp.Join, query: exp.Select, reader: Reader) -> None:
    """Bare columns of the table that is joined, with its name: no other table has them."""
    own, start = reader.columns_of(join.this.name), query.args.get("from_")
    if start is None:
        return
    others = [start.this, *(j.this for j in query.args["joins"] if j is not join)]
    known = [reader.columns_of(t.name) if isinstance(t, exp.Table) else None for t in others]
    if own is None or None in known:
        return
    taken = {name for names in known for name in names or ()}
    for column in [c for part in parts for c in part.find_all(exp.Column)]:
        name = column.name.casefold()
        if not column.table and name in own and name not in taken:
            column.set("table", exp.to_identifier(join.this.alias_or_name, quoted=True))


def _rename_public_rows(query: exp.Select, reader: Reader) -> None:
    """``JOIN (SELECT x AS y FROM public) AS p`` joins its ``x``, wherever ``p.y`` is written."""
    for join in query.args.get("joins") or ():
        rows = join.this.this if isinstance(join.this, exp.Subquery) else None
        if not isinstance(rows, exp.Select) or not join.this.alias:
            continue
        if {n for n, v in rows.args.items() if v} - {"expressions", "from_", "where"}:
            continue
        start = rows.args.get("from_")
        renamed = {
            item.alias.casefold(): item.this
            for item in rows.expressions
            if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column)
        }
        if not renamed or start is None or not isinstance(start.this, exp.Table):
            continue
        if not _is_public(start.this, reader):
            continue
        name = join.this.alias.casefold()
        inside = query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query))
        read = [c for c in inside if isinstance(c, exp.Column) and c.name.casefold() in renamed]
        if any(not column.table for column in read):
            continue  # a bare name may be of any table
        for column in read:
            if column.table.casefold() != name:
                continue
            own = exp.column(
                renamed[column.name.casefold()].this.copy(), table=column.args["table"]
            )
            shown = column.parent is query and column.arg_key == "expressions"
            column.replace(exp.alias_(own, column.name, quoted=True) if shown else own)
        for item in list(rows.expressions):
            if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column):
                item.replace(item.this.copy())


def _join_public_rows(query: exp.Select, reader: Reader) -> None:
    """``JOIN (SELECT x, y FROM public WHERE ...) AS p ON ...`` joins the table, with more in ON."""
    every = any(item.is_star for item in query.expressions)
    if every or any(join.args.get("method") for join in query.args.get("joins") or ()):
        return  # they would see columns that are not shown
    for join in query.args.get("joins") or ():
        said = {name for name, value in join.args.items() if value}
        rows = join.this.this if isinstance(join.this, exp.Subquery) else None
        if not said <= {"this", "on", "kind"} or "on" not in said or not join.this.alias:
            continue
        if join.args.get("kind") not in (None, "", "INNER") or not isinstance(rows, exp.Select):
            continue
        parts = {name for name, value in rows.args.items() if value}
        shown = [item for item in rows.expressions if not _is_shown(item)]
        table = rows.args["from_"].this if "from_" in parts else None
        plain = parts <= {"expressions", "from_", "where"} and not shown
        if not plain or not isinstance(table, exp.Table) or not _is_public(table, reader):
            continue
        name = exp.to_identifier(join.this.alias, quoted=True)
        where = rows.args.get("where")
        conditions = [] if where is None else [where.this.copy()]
        if any(condition.find(exp.Query) for condition in conditions):
            continue
        for column in [c for tree in conditions for c in tree.find_all(exp.Column)]:
            column.set("table", name.copy())
        join.set("this", exp.Table(this=table.this.copy(), alias=exp.TableAlias(this=name)))
        join.set("on", exp.and_(join.args["on"], *conditions))


def _is_shown(item: exp.Expr) -> bool:
    return isinstance(item, exp.Column | exp.Star) and not item.args.get("except_")


def _is_public(table: exp.Table, reader: Reader) -> bool:
    given = {name for name, value in table.args.items() if value}
    public = {t.name.casefold() for t in reader.schema.tables.values() if t.public}
    return given <= {"this", "alias"} and table.name.casefold() in public


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def _is_of(node: exp.Expr, name: str) -> bool:
    """Whether all columns in an expression are those of one table, as it says."""
    if node.find(exp.Query) is not None:
        return False
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(c.table.casefold() == name.casefold() for c in columns)


LISTED = "listed keys"
"""What FROM remembers of an outer join from a list of keys: which column is which constants."""

NARROWED = "narrowed keys"
"""What FROM remembers of a join with a list: the columns on which a condition is one on groups."""


# --- tables of constants -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Constants:
    """VALUES or UNNEST of constants, under a name: its columns and its rows."""

    alias: str
    columns: tuple[str, ...]
    rows: tuple[tuple[exp.Expr, ...], ...]

    def place(self, node: exp.Expr) -> int | None:
        """Which of its columns ``node`` names."""
        if not isinstance(node, exp.Column):
            return None
        if node.table and node.table.casefold() != self.alias.casefold():
            return None
        names = [name.casefold() for name in self.columns]
        return names.index(node.name.casefold()) if node.name.casefold() in names else None


def _constants(node: exp.Expr) -> _Constants | None:
    alias = node.args.get("alias")
    if alias is None or not isinstance(node, exp.Values | exp.Unnest):
        return None
    if not _only(node, "expressions", "alias") or not _only(alias, "this", "columns"):
        return None  # something that a condition would forget
    names = [column.name for column in alias.args.get("columns") or []]
    if isinstance(node, exp.Values):
        rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
    else:
        lists = [
            part
            for part in node.expressions
            if isinstance(part, exp.Array) and _only(part, "expressions", "bracket_notation")
        ]
        rows = [[value] for part in lists for value in part.expressions]
        names = names or [alias.name]
        if len(lists) != 1 or len(node.expressions) != 1:
            return None
    plain = all(_is_constant(value) for row in rows for value in row)
    if not rows or not plain or any(len(row) != len(names) for row in rows):
        return None
    return _Constants(alias.name, tuple(names), tuple(map(tuple, rows)))


def _is_constant(value: exp.Expr) -> bool:
    """A number, a text, a date: 7, -7, 'a', DATE '2026-01-31'."""
    if isinstance(value, exp.Neg | exp.Cast):
        value = value.this
    return isinstance(value, exp.Literal | exp.Boolean | exp.Null)


def _only(node: exp.Expr, *arguments: str) -> bool:
    """Whether nothing but these is said, and lists are lists."""
    said = {name: value for name, value in node.args.items() if value}
    lists = ("expressions", "columns")
    return set(said) <= set(arguments) and all(
        isinstance(said[name], list) for name in lists if name in said
    )


def _inline_constants(query: exp.Select) -> None:
    """A join with constants is a condition: ``x IN (...)``, and CASE for what stands beside x.

    So the constants are the public groups of x, also where the join is from them outwards.
    """
    start, joins = query.args.get("from_"), list(query.args.get("joins") or [])
    if start is None or not joins:
        return
    first = _constants(start.this)
    for place, join in enumerate(joins):
        from_list = place == 0 and first is not None
        table = first if from_list else _constants(join.this)
        side = str(join.args.get("side") or "")
        if table is None or side not in ("", "LEFT"):
            continue
        if not _only(join, "this", "on", "using", "side", "kind"):
            continue
        found = _find_joined(join, table)
        outward = from_list and side == "LEFT"
        if found is not None and not outward:  # NULL equals nothing
            rows = [row for row in table.rows if not isinstance(row[found[0]], exp.Null)]
            table = _Constants(table.alias, table.columns, tuple(rows))
        keys = [] if found is None else [row[found[0]] for row in table.rows]
        nulls = any(isinstance(key, exp.Null) for key in keys)
        if found is None or nulls or len(set(keys)) < len(keys):
            continue
        outer = side == "LEFT" and not from_list
        if outer and found[2]:
            continue
        if from_list:
            start.set("this", join.this)
            if side == "LEFT":  # each of them is a group, also where nobody is
                groups = exp.In(this=found[1].copy(), expressions=[key.copy() for key in keys])
                start.meta[LISTED] = groups
        query.set("joins", [j for j in joins if j is not join])
        if not outer:
            start.meta[NARROWED] = found[1].copy()
            listed: exp.Expr = exp.false()
            if keys:
                listed = exp.In(this=found[1].copy(), expressions=[key.copy() for key in keys])
            more = [keep_groups(part) if outward else part for part in found[2]]
            query.where(exp.and_(listed, *more), copy=False)
        _substitute(query, table, found[0], found[1], outer=outer)
        return


def keep_groups(condition: exp.Expr) -> exp.Expr:
    """A condition that shuts out rows and no groups: in ON of an outer join each of a list stays.

    Nothing is learnt from a CASE about the columns in it.
    """
    branch = exp.If(this=condition, true=exp.Boolean(this=True))
    return exp.Case(ifs=[branch], default=exp.Boolean(this=False))


MOST_CONSTANTS = 32
"""How many rows of constants each row may be multiplied by."""


def _multiply_by_constants(query: exp.Select, reader: Reader) -> None:
    """``t CROSS JOIN (VALUES (1), (2)) AS k(n)`` is ``t`` with 1, and all of it with 2.

    A UNION ALL: each unit has so many times its rows, and is priced so.
    """
    start, joins = query.args.get("from_"), list(query.args.get("joins") or [])
    declared = reader.schema.tables.get(start.this.name) if start is not None else None
    if start is None or not isinstance(start.this, exp.Table) or (declared and declared.public):
        return
    if any(str(join.args.get("side") or "") not in ("", "LEFT") for join in joins):
        return
    for join in joins:
        table = _constants(join.this)
        plain = _only(join, "this", "kind", "on") and str(join.args.get("kind") or "") in _CROSSED
        if table is None or not plain or len(table.rows) > MOST_CONSTANTS:
            continue
        alias = start.this.alias_or_name
        taken = {column.name.casefold() for column in declared.columns} if declared else set()
        names = [n if n.casefold() not in taken else f"{table.alias}_{n}" for n in table.columns]
        _name_multiplied(query, table, alias, names)
        if join.args.get("on") is not None:
            query.where(join.args["on"].copy(), copy=False)
        query.set("joins", [j for j in query.args["joins"] if j is not join])
        start.set("this", _multiply_table(start.this, alias, names, table))
        return


_CROSSED = ("", "CROSS", "INNER")


def _name_multiplied(query: exp.Select, table: _Constants, alias: str, names: list[str]) -> None:
    """Columns of the constants are columns of the multiplied table."""
    renamed = {own for own, name in zip(table.columns, names, strict=True) if own != name}
    for item in list(query.expressions):
        if isinstance(item, exp.Column) and item.table and table.place(item) is not None:
            named = exp.Alias(this=item.copy(), alias=exp.to_identifier(item.name, quoted=True))
            item.replace(named)  # it is called what it was called, whatever it is called inside
    for part in query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query)):
        place = table.place(part)
        if place is None or not isinstance(part, exp.Column):
            continue
        if part.table or table.columns[place] not in renamed:
            part.set("table", exp.to_identifier(alias, quoted=True) if part.table else None)
            part.set("this", exp.to_identifier(names[place], quoted=True))


def _multiply_table(
    source: exp.Table, alias: str, names: list[str], table: _Constants
) -> exp.Subquery:
    sides = [
        exp.Select(
            expressions=[
                exp.Star(),
                *(
                    exp.Alias(this=value.copy(), alias=exp.to_identifier(name, quoted=True))
                    for value, name in zip(row, names, strict=True)
                ),
            ],
            from_=exp.From(this=source.copy()),
        )
        for row in table.rows
    ]
    together: exp.Expr = sides[0]
    for side in sides[1:]:
        together = exp.Union(this=together, expression=side, distinct=False)
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Subquery(this=together, alias=named)


def _find_joined(
    join: exp.Join, table: _Constants
) -> tuple[int, exp.Column, list[exp.Expr]] | None:
    """Which column of the constants is equal to which other, and what else must hold."""
    using = join.args.get("using") or []
    if len(using) == 1:
        name = exp.column(using[0].copy())
        place = table.place(name)
        return None if place is None else (place, name, [])
    on = join.args.get("on")
    if on is None:
        return None
    parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
    for part in parts:
        if not isinstance(part, exp.EQ):
            continue
        for mine, other in ((part.this, part.expression), (part.expression, part.this)):
            place = table.place(mine)
            if place is not None and isinstance(other, exp.Column) and table.place(other) is None:
                return place, other, [p.copy() for p in parts if p is not part]
    return None


def _substitute(
    query: exp.Select, table: _Constants, key: int, column: exp.Column, *, outer: bool
) -> None:
    """What stands for a column of the constants, wherever the query names one."""
    own = [
        part
        for part in query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query))
        if isinstance(part, exp.Column) and (part.table or part.name != column.name)
    ]
    for part in own:
        place = table.place(part)
        if place is None or part.parent is None:
            continue
        value: exp.Expr = column.copy()
        if outer or place != key:
            ifs = [exp.If(this=r[key].copy(), true=r[place].copy()) for r in table.rows]
            value = exp.Case(this=column.copy(), ifs=ifs) if ifs else exp.Null()
        if part.parent is query and part.arg_key == "expressions":
            value = exp.alias_(value, part.name, quoted=True)
        part.replace(value)


# --- groups --------------------------------------------------------------------------------


def _write_out_fits(query: exp.Select) -> None:
    """``REGR(y, a, b)`` in a SELECT list is a column for the intercept and for each slope."""
    items: list[exp.Expr] = []
    for item in query.expressions:
        fit = item.this if isinstance(item, exp.Alias) else item
        while isinstance(fit, exp.Filter):
            fit = fit.this
        if not is_several(fit) or len(fit.expressions) < 2:
            items.append(item)
            continue
        name = fit.name.upper()
        prefix = f"{item.alias}_" if isinstance(item, exp.Alias) else ""
        for place, own in enumerate(_name_fits(name, fit.expressions)):
            whole = item.this.copy() if isinstance(item, exp.Alias) else item.copy()
            part = whole.find(exp.Anonymous)
            part.set("this", NAMES[name])
            part.set("expressions", [exp.Literal.number(place), *part.expressions])
            items.append(exp.alias_(whole, f"{prefix}{own}", quoted=True))
    query.set("expressions", items)


def _name_fits(name: str, columns: list[exp.Expr]) -> list[str]:
    """What each number of a fit is called: after its columns, or by their places."""
    names = [part.name if isinstance(part, exp.Column) else "" for part in columns]
    if "" in names or len({n.casefold() for n in names}) < len(names):
        names = [f"x{place}" for place in range(len(columns))]
    if name == "REGR":
        return ["intercept", *names[1:]]
    if name == "MEANS":
        return names
    itself = name == "COVAR_MATRIX"  # a column with itself is its variance
    return [f"{a}_{b}" for i, a in enumerate(names) for b in names[i + (not itself) :]]


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


def _look_people_up(both: exp.SetOperation, reader: Reader) -> None:
    """``SELECT unit … EXCEPT SELECT unit …`` in FROM is the units of one that the other has not."""
    sides = [side.unnest() for side in (both.this, both.expression)]
    if not both.args.get("distinct") or not _in_from(both) or both.args.get("with_"):
        return
    if not _only(both, "this", "expression", "distinct"):
        return
    if not all(isinstance(s, exp.Select) and len(s.expressions) == 1 for s in sides):
        return
    item = sides[0].expressions[0]
    if not isinstance(item.unalias(), exp.Column) or not all(_names_unit(s, reader) for s in sides):
        return
    unit = exp.column(exp.to_identifier(item.alias_or_name, quoted=True))
    found: exp.Expr = exp.In(this=unit.copy(), query=exp.Subquery(this=sides[1].copy()))
    if isinstance(both, exp.Except):
        found = exp.Not(this=found)
    alias = exp.TableAlias(this=exp.to_identifier("first_side"))
    both.replace(
        exp.Select(
            expressions=[unit],
            from_=exp.From(this=exp.Subquery(this=sides[0].copy(), alias=alias)),
            where=exp.Where(this=found),
            group=exp.Group(expressions=[unit.copy()]),
        )
    )
