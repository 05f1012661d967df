"""Pieces of a statement: quoted names, steps of a WITH clause, SELECT.

Nodes are put together in place: sqlglot's builders would copy the whole
statement at every clause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from discreet.question.functions import nodes
from discreet.question.functions.nodes import Node

Definition = tuple[str, exp.Query, bool]
"""A name in the WITH clause, what it stands for, and whether it must be computed once."""


def named(identifier: str, *, of: str | None = None) -> exp.Column:
    """A column by its identifier, quoted."""
    return exp.column(
        exp.to_identifier(identifier, quoted=True),
        table=None if of is None else exp.to_identifier(of, quoted=True),
    )


def aliased(node: Node, identifier: str) -> exp.Alias:
    """The node under a name, quoted."""
    return exp.Alias(this=node, alias=exp.to_identifier(identifier, quoted=True))


def identifiers(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """A name in the engine for each of ``names``: itself wherever that is safe.

    The engine takes names that differ in case for the same, and those of this
    package begin with an underscore.

    >>> identifiers(["v.Age", "v.age", "_unit0"])
    {'v.Age': 'v.Age', 'v.age': 'column 1', '_unit0': 'column 2'}
    """
    used = {name.casefold() for name in taken}
    found: dict[str, str] = {}
    for name in names:
        chosen, number = name, len(found)
        plain = name.isprintable() and not name.startswith("_") and 0 < len(name) <= 200
        while not plain or chosen.casefold() in used:
            chosen, plain, number = f"column {number}", True, number + 1
        used.add(chosen.casefold())
        found[name] = chosen
    return found


def table_named(*names: str) -> exp.Table:
    """A table or view of the engine, every part of its name quoted."""
    parts = [exp.to_identifier(name, quoted=True) for name in names]
    return exp.Table(
        this=parts[-1],
        db=parts[-2] if len(parts) > 1 else None,
        catalog=parts[-3] if len(parts) > 2 else None,
    )


def select(
    columns: Iterable[Node],
    source: Node,
    *,
    where: Sequence[Node] = (),
    group: Iterable[Node] = (),
    joins: Sequence[exp.Join] = (),
) -> exp.Select:
    """SELECT columns FROM source [JOIN ...] [WHERE ...] [GROUP BY ...]."""
    query = exp.Select(expressions=list(columns))
    query.set("from_", exp.From(this=source))
    if joins:
        query.set("joins", list(joins))
    if where:
        query.set("where", exp.Where(this=all_of(where)))
    keys = [key.copy() for key in group]
    if keys:
        query.set("group", exp.Group(expressions=keys))
    return query


def all_of(conditions: Sequence[Node]) -> Node:
    """Every condition, joined by AND."""
    return _chained(exp.And, conditions)


def any_of(conditions: Sequence[Node]) -> Node:
    """At least one condition, joined by OR."""
    return _chained(exp.Or, conditions)


def _chained(operator: type[exp.Binary], conditions: Sequence[Node]) -> Node:
    first, *others = conditions
    if not others:
        return first
    first = nodes.paren(first)
    for other in others:
        first = operator(this=first, expression=nodes.paren(other))
    return first


def everything(source: Node) -> exp.Select:
    """SELECT * FROM source."""
    return select([exp.Star()], source)


def nested(query: exp.Query, alias: str) -> Node:
    """A query in the place of a table."""
    name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Subquery(this=query, alias=name)


def with_definitions(query: exp.Query, definitions: Iterable[Definition]) -> exp.Query:
    """The query, preceded by what its names stand for."""
    steps = [
        exp.CTE(
            this=step,
            alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
            materialized=True if once else None,
        )
        for name, step, once in definitions
    ]
    query.set("with_", exp.With(expressions=steps))
    return query


def ordered(keys: Iterable[Node]) -> exp.Order:
    """ORDER BY keys, NULL last."""
    return exp.Order(expressions=[exp.Ordered(this=key, nulls_first=False) for key in keys])


def present(node: Node) -> Node:
    """Whether the value is not NULL."""
    return exp.Not(this=exp.Is(this=nodes.paren(node), expression=exp.Null()))
