"""Shorthands of DuckDB, BigQuery and Snowflake, written out in what is read already.

``SEMI`` and ``ANTI JOIN``, a condition on the left side in ON, ``PIVOT``, ``COUNT()``, a name that
is given and used in one SELECT, and ``FILTER`` and ``BOOL_OR`` of one unit's own rows.  Each means
exactly what it is replaced by, whatever the data are; whether that is allowed is decided later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from discreet.question.sql.dialect import MOST_NODES, Reader, depth_refusal
from discreet.question.sql.intervals import ENDS


def write_out(tree: exp.Expr, reader: Reader) -> None:
    """Change ``tree`` in place, wherever a shorthand stands in it."""
    for node in list(tree.find_all(exp.Table, exp.Subquery)):
        _spread_pivot(node, reader)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "COUNT" and not call.expressions:
            call.set("expressions", [exp.Star()])
    for table in tree.find_all(exp.Table):
        _read_sample(table)
    units = {name.casefold() for t in reader.schema.tables.values() for name in t.unit or ()}
    private = {name.casefold() for name, t in reader.schema.tables.items() if not t.public}
    for query in list(tree.find_all(exp.Select)):
        _test_partners(query)
        _equate_conditions(query, private)
        if _is_of_units(query, units):
            _count_own_rows(query)


# --- joins that only test -------------------------------------------------------------------------


def _test_partners(query: exp.Select) -> None:
    """``a SEMI JOIN b USING (k)`` is ``a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)``."""
    joins, start = list(query.args.get("joins") or ()), query.args.get("from_")
    for join in joins:
        kind = str(join.args.get("kind") or "").upper()
        said = {name for name, value in join.args.items() if value} - {"this", "kind"}
        if kind not in ("SEMI", "ANTI") or start is None or said not in ({"on"}, {"using"}):
            continue
        left, right = start.this.alias_or_name, join.this.alias_or_name
        equal = [
            exp.EQ(
                this=exp.column(name.name, right, quoted=True),
                expression=exp.column(name.name, left, quoted=True),
            )
            for name in join.args.get("using") or ()
        ]
        condition = exp.and_(*equal, copy=False) if equal else join.args["on"].copy()
        inside = exp.Select(
            expressions=[exp.Literal.number(1)],
            from_=exp.From(this=join.this.copy()),
            where=exp.Where(this=condition),
        )
        test: exp.Expr = exp.Exists(this=inside)
        join.pop()
        _add_condition(query, test if kind == "SEMI" else exp.Not(this=test))


def _equate_conditions(query: exp.Select, private: set[str]) -> None:
    """``p LEFT JOIN a ON a.k = p.k AND p.x > 3``: a column of p that says so equals TRUE of a.

    Rows of p that do not meet it keep their row, and find no partner.
    """
    start = query.args.get("from_")
    known = {} if start is None else {start.this.alias_or_name.casefold(): start.this}
    for number, join in enumerate(query.args.get("joins") or ()):
        right, on = join.this, join.args.get("on")
        parts = list(on.flatten()) if isinstance(on, exp.And) else []
        if str(join.args.get("side") or "").upper() == "LEFT" and right.name.casefold() in private:
            for name, left in list(known.items()):
                met = [part for part in parts if _tables(part) == {name}]
                if met and _is_plain(left) and _is_plain(right) and left.name.casefold() in private:
                    title = f"meets {number + 1}"
                    first, second = left.alias_or_name, right.alias_or_name
                    holds = exp.and_(*(part.copy() for part in met), copy=False)
                    known[name] = _with_column(left, holds, title)
                    own = [part for part in parts if _tables(part) == {second.casefold()}]
                    _with_column(right, exp.true(), title, own)
                    same = exp.EQ(
                        this=exp.column(title, second, quoted=True),
                        expression=exp.column(title, first, quoted=True),
                    )
                    kept = [part.copy() for part in parts if part not in met and part not in own]
                    join.set("on", exp.and_(*kept, same, copy=False))
                    break
        known[join.this.alias_or_name.casefold()] = join.this


def _is_plain(source: exp.Expr) -> bool:
    """Whether it is a table whose columns are called as they are declared."""
    alias = source.args.get("alias")
    renamed = alias is not None and alias.args.get("columns")
    return isinstance(source, exp.Table) and not renamed


def _tables(condition: exp.Expr) -> set[str]:
    """The tables that a condition is about, as far as its columns name them."""
    if condition.find(exp.Query) is not None:
        return set()
    return {column.table.casefold() for column in condition.find_all(exp.Column)}


def _with_column(
    table: exp.Expr, value: exp.Expr, title: str, kept: Sequence[exp.Expr] = ()
) -> exp.Expr:
    """A sub-query in the place of ``table``, of the rows ``kept``, with one column more."""
    name = table.alias_or_name
    where = exp.Where(this=exp.and_(*(part.copy() for part in kept), copy=False)) if kept else None
    for part in (value, where):
        for column in () if part is None else part.find_all(exp.Column):
            column.set("table", None)
    source = exp.Table(**{**table.copy().args, "alias": None})
    named = exp.Alias(this=value, alias=exp.to_identifier(title, quoted=True))
    query = exp.Select(expressions=[exp.Star(), named], from_=exp.From(this=source), where=where)
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    made = exp.Subquery(this=query, alias=alias)
    table.replace(made)
    return made


def _add_condition(query: exp.Select, condition: exp.Expr) -> None:
    where = query.args.get("where")
    if where is not None:
        kept = where.this
        kept = exp.paren(kept, copy=False) if isinstance(kept, exp.Or) else kept
        condition = exp.And(this=kept, expression=condition)
    query.set("where", exp.Where(this=condition))


def _read_sample(table: exp.Table) -> None:
    """``visits SAMPLE (10)`` samples rows, and gives no columns another name."""
    alias = table.args.get("alias")
    columns = [] if alias is None else alias.args.get("columns") or []
    sampled = alias is not None and alias.name.upper() == "SAMPLE" and len(columns) == 1
    if sampled and columns[0].name.isdigit():
        table.set("alias", None)
        table.set("sample", exp.TableSample(percent=exp.Literal.number(columns[0].name)))


# --- PIVOT ----------------------------------------------------------------------------------------


_PIVOT = {"this", "expressions", "using", "fields", "group", "alias"}
"""What is read of one."""

_PARSED = {"columns", "pivot_column_naming"}
"""What the parser notes beside it."""


def _spread_pivot(node: exp.Expr, reader: Reader) -> None:
    """``t PIVOT (COUNT(*) FOR x IN ('a', 'b') GROUP BY g)``: for each value a FILTER of its own."""
    inner = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(inner, exp.Pivot):
        pivot, source = inner, inner.this
        fields, aggregates = pivot.expressions, pivot.args.get("using") or []
        alias = node.args.get("alias")
    else:
        pivots = node.args.get("pivots") or []
        if len(pivots) != 1:
            return
        pivot, source = pivots[0], node
        fields, aggregates = pivot.args.get("fields") or [], pivot.expressions
        alias = pivot.args.get("alias") or node.args.get("alias")
        own = pivot.args.get("alias")
        if alias is not None and alias is not own and alias.args.get("columns"):
            return  # other names for what is read, and not for what comes of it
    more = {name for name, part in pivot.args.items() if part} - _PIVOT - _PARSED
    if len(fields) != 1 or not aggregates or more or source is None:
        return
    source = source.copy()
    source.set("pivots", None)
    column, values = _list_spread(fields[0], source, reader)
    keys = _list_kept(pivot, source, column, aggregates)
    if column is None or not values or keys is None:
        return
    shown: list[exp.Expr] = [key.copy() for key in keys]
    for value, title in values:
        for made in aggregates:
            shown.append(_filter(made, column, value, title, alone=len(aggregates) == 1))
    query = exp.Select(expressions=shown, from_=exp.From(this=source))
    if keys:
        query.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    unnamed = exp.TableAlias(this=exp.to_identifier("pivoted", quoted=True))
    name = alias if isinstance(alias, exp.TableAlias) else unnamed
    node.replace(exp.Subquery(this=query, alias=name.copy()))


def _list_spread(
    field: exp.Expr, source: exp.Expr, reader: Reader
) -> tuple[exp.Column | None, list[tuple[exp.Expr, str]]]:
    """The column whose values become columns, and those with their titles."""
    if isinstance(field, exp.In) and isinstance(field.this, exp.Column):
        values = [
            (v.this, v.args["alias"].name) if isinstance(v, exp.PivotAlias) else (v, v.name)
            for v in field.expressions
        ]
        plain = all(isinstance(v, exp.Literal) for v, _ in values)
        return field.this, values if plain else []
    if not isinstance(field, exp.Column) or not isinstance(source, exp.Table):
        return None, []
    table = reader.schema.tables.get(source.name)
    known = {} if table is None else {c.name.casefold(): c for c in table.columns}
    found = known.get(field.name.casefold())
    declared = () if found is None else found.domain.values or ()
    texts = [value for value in declared if isinstance(value, str)]
    return field, [(exp.Literal.string(value), value) for value in texts]


def _list_kept(
    pivot: exp.Pivot, source: exp.Expr, column: exp.Column | None, aggregates: list[exp.Expr]
) -> list[exp.Expr] | None:
    """The columns that are grouped by: those named, or all that a sub-query has left."""
    group = pivot.args.get("group")
    if group is not None:
        return list(group.expressions)
    inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Select) or column is None or inner.is_star:
        return None  # of a table all its other columns, and so each person by themselves
    used = {part.name.casefold() for made in aggregates for part in made.find_all(exp.Column)}
    used.add(column.name.casefold())
    names = [item.alias_or_name for item in inner.expressions]
    return [exp.column(name, quoted=True) for name in names if name.casefold() not in used]


def _filter(
    made: exp.Expr, column: exp.Column, value: exp.Expr, title: str, *, alone: bool
) -> exp.Expr:
    same = exp.EQ(this=column.copy(), expression=value.copy())
    call = made.unalias().copy()
    named = made.alias or ("" if alone else call.name.lower())
    name = f"{title}_{named}" if named else title
    return exp.Alias(
        this=exp.Filter(this=call, expression=exp.Where(this=same)),
        alias=exp.to_identifier(name, quoted=True),
    )


# --- one unit's own rows --------------------------------------------------------------------------

_ANY = {"BOOL_OR", "LOGICAL_OR", "BOOLOR_AGG"}
_ALL = {"BOOL_AND", "LOGICAL_AND", "BOOLAND_AGG", "EVERY"}
_OWN = {"COUNT", "SUM", "AVG", "MIN", "MAX", *_ANY, *_ALL}


def _is_of_units(query: exp.Select, units: set[str]) -> bool:
    """Whether a sub-query groups by a column that a unit has."""
    group = query.args.get("group")
    keys = group.expressions if group is not None else ()
    return query.parent is not None and any(
        isinstance(key, exp.Column) and key.name.casefold() in units for key in keys
    )


def _count_own_rows(query: exp.Select) -> None:
    """``SUM(x) FILTER (WHERE c)`` is ``SUM(CASE WHEN c THEN x END)``, BOOL_OR a MAX of 0 and 1."""
    for part in [node for node in _walk_own(query) if isinstance(node, exp.Filter)]:
        call, where = part.this, part.expression
        own = isinstance(call, exp.Anonymous) and call.name.upper() in _OWN
        given = call.expressions
        if own and len(given) == 1 and not isinstance(given[0], exp.Distinct):
            part.replace(_inside(call, where.this))
    for node in list(_walk_own(query)):
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if name in _ANY | _ALL and len(node.expressions) == 1:
            condition = node.expressions[0]
            number = exp.Case(
                ifs=[
                    exp.If(this=condition.copy(), true=exp.Literal.number(1)),
                    exp.If(
                        this=exp.Not(this=exp.paren(condition.copy(), copy=False)),
                        true=exp.Literal.number(0),
                    ),
                ]
            )
            extreme = exp.Anonymous(this="MAX" if name in _ANY else "MIN", expressions=[number])
            node.replace(exp.paren(exp.EQ(this=extreme, expression=exp.Literal.number(1))))


def _inside(call: exp.Anonymous, condition: exp.Expr) -> exp.Expr:
    value = call.expressions[0]
    counted = exp.Literal.number(1) if isinstance(value, exp.Star) else value.copy()
    case = exp.Case(ifs=[exp.If(this=condition.copy(), true=counted)])
    return exp.Anonymous(this=call.this, expressions=[case])


def _walk_own(query: exp.Select) -> Iterator[exp.Expr]:
    return query.walk(prune=lambda n: n is not query and isinstance(n, exp.Query))


# --- names that are used where they are given -----------------------------------------------------


def use_names(tree: exp.Expr, reader: Reader) -> None:
    """``AVG(x) AS a, a / 2 AS half`` is ``AVG(x) AS a, AVG(x) / 2 AS half``.

    Only of a name that can mean nothing else: no table's column, and nothing that is read.
    """
    declared = {c.name.casefold() for t in reader.schema.tables.values() for c in t.columns}
    for query in tree.find_all(exp.Select):
        given: dict[str, tuple[exp.Expr, int]] = {}
        if not (_list_given(query) & _list_used(query)) - declared:
            continue  # as of nearly all of them
        taken = declared | _list_read(query)
        for item in query.expressions:
            _put_names(item, given)
            if isinstance(item, exp.Alias) and item.alias.casefold() not in taken:
                size = sum(1 for _ in item.this.walk())
                given[item.alias.casefold()] = item.this, size
        where = query.args.get("where")
        if where is not None:
            _put_names(where, given)


def _list_given(query: exp.Select) -> set[str]:
    return {item.alias.casefold() for item in query.expressions if isinstance(item, exp.Alias)}


def _list_used(query: exp.Select) -> set[str]:
    """Names without a table that its list, or its condition, looks for."""
    where = query.args.get("where")
    return {
        node.name.casefold()
        for part in (*query.expressions, *(() if where is None else (where,)))
        for node in part.walk(prune=_names_by_itself)
        if isinstance(node, exp.Column) and not node.table
    }


def _names_by_itself(node: exp.Expr) -> bool:
    """A question has names of its own; DP_INTERVAL_LOW(r) means the output that is called r."""
    return isinstance(node, exp.Query) or (
        isinstance(node, exp.Anonymous) and node.name.upper() in ENDS
    )


def _put_names(part: exp.Expr, given: dict[str, tuple[exp.Expr, int]]) -> None:
    if not given:
        return
    named = [
        node
        for node in part.walk(prune=lambda n: n is not part and _names_by_itself(n))
        if isinstance(node, exp.Column) and not node.table and node.name.casefold() in given
    ]
    if sum(given[node.name.casefold()][1] for node in named) > MOST_NODES:
        raise depth_refusal()  # each twice the one before is twice as long, every time
    for node in named:
        meant = given[node.name.casefold()][0].copy()
        node.replace(meant if isinstance(meant, exp.Column) else exp.paren(meant, copy=False))


def _list_read(query: exp.Select) -> set[str]:
    """Names that what a query reads may have."""
    sources = [query.args.get("from_"), *(query.args.get("joins") or ()), query.args.get("with_")]
    parent = query.parent_select
    while parent is not None:
        sources.append(parent.args.get("with_"))
        parent = parent.parent_select
    found = {
        part.alias_or_name.casefold()
        for source in sources
        if source is not None
        for part in source.find_all(exp.Alias, exp.Column, exp.TableAlias)
    }
    columns = (
        identifier.name.casefold()
        for source in sources
        if source is not None
        for alias in source.find_all(exp.TableAlias)
        for identifier in alias.args.get("columns") or ()
    )
    return found | set(columns)


__all__ = ["use_names", "write_out"]
