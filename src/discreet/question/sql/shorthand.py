"""Shorthands of DuckDB, BigQuery and Snowflake, written out in what is read already.

Joins that look something up (:mod:`~discreet.question.sql.partners`), PIVOT
(:mod:`~discreet.question.sql.pivots`), series of constants
(:mod:`~discreet.question.sql.series`), aggregates of one unit's own rows
(:mod:`~discreet.question.sql.own_values`) and of moments
(:mod:`~discreet.question.sql.moments`), ``COUNT()``, and a name that is given and used in one
SELECT.  Each means exactly what it is replaced by, whatever the data are; whether that is allowed
is decided later.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.question.sql.dialect import MOST_NODES, Reader, depth_refusal
from discreet.question.sql.intervals import ENDS
from discreet.question.sql.moments import write_moments_out
from discreet.question.sql.own_values import write_own_values_out
from discreet.question.sql.partners import write_partners_out
from discreet.question.sql.pivots import spread_pivot
from discreet.question.sql.series import list_series


def write_out(tree: exp.Expr, reader: Reader) -> None:
    """Change ``tree`` in place, wherever a shorthand stands in it."""
    for node in list(tree.find_all(exp.Table, exp.Unnest)):
        list_series(node)
    for node in list(tree.find_all(exp.Table, exp.Subquery)):
        spread_pivot(node, reader)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "COUNT" and not call.expressions:
            call.set("expressions", [exp.Star()])
    for table in tree.find_all(exp.Table):
        _read_sample(table)
    for query in list(tree.find_all(exp.Select)):
        write_partners_out(query, reader)
        write_own_values_out(query, reader)
        write_moments_out(query, reader)


def _read_sample(table: exp.Table) -> None:
    """``visits SAMPLE (10)`` samples rows, and gives no columns another name."""
    alias = table.args.get("alias")
    columns = [] if alias is None else alias.args.get("columns") or []
    sampled = alias is not None and alias.name.upper() == "SAMPLE" and len(columns) == 1
    if sampled and columns[0].name.isdigit():
        table.set("alias", None)
        table.set("sample", exp.TableSample(percent=exp.Literal.number(columns[0].name)))


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
