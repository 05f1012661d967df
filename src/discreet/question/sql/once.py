"""Each person once for a value: MODE(DISTINCT x) and TOP_K(DISTINCT x, k).

In plain SQL the different values of everybody are each there once, and none is more frequent than
another; so nobody means that.  Here each unit counts once for each value that it has (in each
group, where there are groups): the question is asked of SELECT DISTINCT, with the unit, the keys
and the value.  One unit then moves a count by one, however many rows it has (DR Example 3.4).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.errors import QuestionRefusal
from discreet.question.schema import Table
from discreet.question.schema.tables import Owners
from discreet.question.sql.aggregates import NAMES, aggregate_name
from discreet.question.sql.bans import DISTINCT
from discreet.question.sql.dialect import Reader

_VALUE = "value"
"""What a computed value is called inside."""


def count_once(tree: exp.Expr, reader: Reader) -> None:
    """Change ``tree`` in place: what counts each unit once for a value asks of different rows."""
    for select in list(tree.find_all(exp.Select)):
        found = [node for node in _walk_own(select) if _is_once(node)]
        if found:
            _ask_of_different(select, found, reader)


def _is_once(node: exp.Expr) -> bool:
    return (
        isinstance(node, exp.Anonymous)
        and NAMES.get(aggregate_name(node) or "") in ("MODE", "TOP_K")
        and bool(node.expressions)
        and isinstance(node.expressions[0], exp.Distinct)
        and bool(node.expressions[0].expressions)
    )


def _walk_own(select: exp.Select) -> Iterator[exp.Expr]:
    """What stands in a SELECT itself, and not in a query inside."""
    parts = [*select.expressions]
    parts += [part for name in ("group", "having", "order") if (part := select.args.get(name))]
    for part in parts:
        yield from part.walk(prune=lambda node: isinstance(node, exp.Query))


def _ask_of_different(select: exp.Select, found: list[exp.Expr], reader: Reader) -> None:
    node = found[0]
    value = node.expressions[0].expressions[0]
    if isinstance(node.parent, exp.Filter):
        raise _refuse(reader, node.parent, "under a FILTER; its condition belongs after WHERE")
    others = [one for one in _walk_own(select) if aggregate_name(one) and one not in found]
    others += [one for one in found if one.expressions[0].expressions[0] != value]
    if others:
        raise _refuse(reader, others[0], "beside another aggregate, which counts other rows")
    table, alias = _find_table(select, reader)
    for one in found:
        one.set("expressions", list(one.expressions[0].expressions))
    if table.by_row:
        return  # every row is a unit of its own: each counts once as it is
    keys: dict[str, exp.Expr] = {}
    for item in select.expressions:
        if not any(aggregate_name(part) for part in item.walk()):
            if not item.alias_or_name:
                raise _refuse(reader, item, "beside a key without a name")
            keys[item.alias_or_name] = item.unalias().copy()
    name = _name_value(value, keys, table)
    named = {name: value.copy(), **keys}
    unit = [exp.column(part, table=alias, quoted=True) for part in table.unit or ()]
    inner = exp.Select(
        expressions=[*unit, *(exp.alias_(e, n, quoted=True) for n, e in named.items())],
        distinct=exp.Distinct(),
        **{part: select.args.get(part) for part in ("from_", "joins", "where")},
    )
    for part in ("joins", "where"):
        select.set(part, None)
    select.set("from_", exp.From(this=exp.Subquery(this=inner)))
    for one in found:
        one.set("expressions", [_column(name), *one.expressions[1:]])
    _name_keys(select, keys, named, reader)


def _name_value(value: exp.Expr, keys: dict[str, exp.Expr], table: Table) -> str:
    """What the value is called inside: as no other column is there, unless that is the same."""
    name = value.name if isinstance(value, exp.Column) else _VALUE
    if keys.get(name) == value:
        return name
    taken = {other.casefold() for other in (*keys, *(table.unit or ()))}
    while name.casefold() in taken:
        name += "_"
    return name


def _find_key(key: exp.Expr, keys: dict[str, exp.Expr]) -> str | None:
    """The key of the SELECT list that one of GROUP BY names: by its name, or its column."""
    if not isinstance(key, exp.Column):
        return None
    for name, own in keys.items():
        if not key.table and name.casefold() == key.name.casefold():
            return name
        if not isinstance(own, exp.Column) or own.name.casefold() != key.name.casefold():
            continue
        if "" in (key.table, own.table):
            return name
    return None


def _name_keys(
    select: exp.Select, keys: dict[str, exp.Expr], named: dict[str, exp.Expr], reader: Reader
) -> None:
    """The keys by the names that they have inside."""
    of = {expression: name for name, expression in reversed(named.items())}
    for clause in ("having", "order"):
        part = select.args.get(clause)
        for column in list(part.find_all(exp.Column)) if part is not None else ():
            if column.table and (inside := of.get(column) or _find_key(column, keys)):
                column.replace(_column(inside))
    for item in list(select.expressions):
        if not any(aggregate_name(part) for part in item.walk()):
            item.replace(_column(item.alias_or_name))
    group = select.args.get("group")
    for key in list(group.expressions) if group is not None else ():
        if isinstance(key, exp.Literal):
            continue  # the place of an item
        said = of.get(key) or _find_key(key, keys)
        if said is None:
            raise _refuse(reader, key, "with a key that is not in the SELECT list")
        key.replace(_column(said))


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def _find_table(select: exp.Select, reader: Reader) -> tuple[Table, str]:
    found = find_owned(select, reader)
    if found is None:
        start = select.args.get("from_")
        source = None if start is None else start.this
        raise _refuse(reader, source, "in a question that is not FROM a table of one owner a row")
    return found


def find_owned(select: exp.Select, reader: Reader) -> tuple[Table, str] | None:
    """The first table in FROM, and what it is called there; None unless a row has one owner."""
    start = select.args.get("from_")
    source = None if start is None else start.this
    if isinstance(source, exp.Table):
        for name, table in reader.schema.tables.items():
            private = not table.public and table.owners is Owners.ONE
            if private and name.casefold() == source.name.casefold():
                return table, source.alias_or_name
    return None


def _refuse(reader: Reader, node: exp.Expr | None, where: str) -> QuestionRefusal:
    return reader.refusal(
        DISTINCT.code,
        node,
        f"MODE(DISTINCT ...) stands {where}.",
        why="each person counts once for a value, so it is asked of other rows than the rest of "
        "the question.",
        fix="ask for it alone, FROM a table, or of (SELECT DISTINCT unit, keys, value FROM ...).",
    )


__all__ = ["count_once", "find_owned"]
