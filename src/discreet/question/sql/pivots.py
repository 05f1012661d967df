"""PIVOT written out: a column for each value is an aggregate with a FILTER of its own."""

from __future__ import annotations

from sqlglot import exp

from discreet.question.sql.dialect import Reader

_PIVOT = {"this", "expressions", "using", "fields", "group", "alias"}
"""What is read of one."""

_PARSED = {"columns", "pivot_column_naming"}
"""What the parser notes beside it."""


def spread_pivot(node: exp.Expr, reader: Reader) -> None:
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


__all__ = ["spread_pivot"]
