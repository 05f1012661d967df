"""Rows of two people: of every person the first so many, by one order for both owners.

A row is kept where it is among the first ``max_rows_per_unit`` of each of its owners, after the
rows that two people share were cut to ``max_rows_per_pair``.  The order is that of a hash of what
a row says, then of what it says, then of its place among equal rows: it depends on the row alone,
and is the same for both owners (docs/proofs/graphs.md, Lemma 1).
"""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from discreet.engine.duckdb.render import Layout, lay_out
from discreet.engine.duckdb.result import Columns
from discreet.engine.truth import Opened
from discreet.question.functions import nodes
from discreet.question.functions.nodes import (
    ENGINE,
    Definition,
    Node,
    add_alias,
    add_definitions,
    order_by,
    quote_column,
    quote_table,
    select,
)
from discreet.question.schema import Table

_ONE, _OTHER, _PLACE, _HASH, _OWNER = "_one", "_other", "_place", "_hash", "_owner"


def bound_shared(shape: Layout, owned: str, name: str) -> list[Definition]:
    """Definitions that end in ``name``: the rows of ``owned`` that are among the first of both.

    Ranking everybody's rows would sort them all: the few people who stand in too many are found
    first, by counting, and only their rows are ranked.
    """
    table = shape.table
    ends, busy, beyond = (f"{name}, {what}" for what in ("each owner", "busy", "beyond"))
    capped = f"{name}, of each pair"
    most = exp.Literal.number(str(table.max_rows_per_unit))
    everything = exp.Count(this=exp.Star(), big_int=True)
    found = select([quote_column(_OWNER)], quote_table(ends), group=[quote_column(_OWNER)])
    found.set("having", exp.Having(this=exp.GT(this=everything, expression=most.copy())))
    late = select([quote_column(c) for c in (_ONE, _OTHER, _PLACE)], quote_table(ends))
    late.append("joins", _join(busy, "SEMI", (_OWNER,)))
    rank = exp.Window(
        this=exp.RowNumber(),
        partition_by=[quote_column(_OWNER)],
        order=order_by(_order(shape)),
    )
    late.set("qualify", exp.Qualify(this=exp.GT(this=rank, expression=most)))
    kept = select([quote_column(c) for c in shape.content], quote_table(capped))
    kept.append("joins", _join(beyond, "ANTI", (_ONE, _OTHER, _PLACE)))
    return [
        *_cap_pairs(shape, owned, capped),
        (ends, _list_ends(shape, capped), False),
        (busy, found, True),
        (beyond, late, True),
        (name, kept, False),
    ]


def _order(shape: Layout) -> list[Node]:
    """By what a row says; of equal rows, by their place among the rows of their pair."""
    return [quote_column(c) for c in (_HASH, *shape.content, _PLACE)]


def _cap_pairs(shape: Layout, owned: str, capped: str) -> list[Definition]:
    """The first rows of every unordered pair, numbered; rows of one person are all kept."""
    numbered = f"{capped}, numbered"
    both = [quote_column(u) for u in shape.unit]
    content = [quote_column(c) for c in shape.content]
    one, other = (nodes.call(end, *(b.copy() for b in both)) for end in ("LEAST", "GREATEST"))
    hashed = nodes.call("HASH", *(c.copy() for c in content))
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[one.copy(), other.copy()],
        order=order_by([hashed.copy(), *(c.copy() for c in content)]),
    )
    picked = [
        *content,
        add_alias(one, _ONE),  # which of the two is NULL, they do not say: then both are the other
        add_alias(other, _OTHER),
        add_alias(hashed, _HASH),
        add_alias(place, _PLACE),
    ]
    alone = exp.EQ(this=quote_column(_ONE), expression=quote_column(_OTHER))
    few = exp.LTE(
        this=quote_column(_PLACE),
        expression=exp.Literal.number(str(shape.table.max_rows_per_pair)),
    )
    kept = select(
        [quote_column(c) for c in (*shape.content, _ONE, _OTHER, _HASH, _PLACE)],
        quote_table(numbered),
        where=[exp.Paren(this=exp.Or(this=alone, expression=few))],
    )
    return [(numbered, select(picked, quote_table(owned)), False), (capped, kept, True)]


def _list_ends(shape: Layout, capped: str) -> exp.Query:
    """Every row once for each of its owners."""
    said = [quote_column(c) for c in (*shape.content, _ONE, _OTHER, _HASH, _PLACE)]
    one = select([add_alias(quote_column(_ONE), _OWNER), *said], quote_table(capped))
    apart = exp.NEQ(this=quote_column(_ONE), expression=quote_column(_OTHER))
    other = select(
        [add_alias(quote_column(_OTHER), _OWNER), *(s.copy() for s in said)],
        quote_table(capped),
        where=[apart],
    )
    return exp.Union(this=one, expression=other, distinct=False)


def _join(name: str, kind: str, columns: tuple[str, ...]) -> exp.Join:
    using = [exp.to_identifier(c, quoted=True) for c in columns]
    return exp.Join(this=quote_table(name), kind=kind, using=using)


def count_crowd(table: Table, owned: Definition, capped: str) -> str:
    """How many people stand in more rows than each of the levels of the test, from the top.

    The levels are max_rows_per_unit less 0, 1, 2, ... times max_rows_per_pair
    (docs/proofs/graphs.md, Lemma 3); people in fewer rows than the last do not matter.
    """
    shape = lay_out(table)
    most, pair = table.max_rows_per_unit or 1, table.max_rows_per_pair or 1
    each = select(
        [add_alias(exp.Count(this=exp.Star(), big_int=True), "d")],
        quote_table("ends"),
        group=[quote_column(_OWNER)],
    )
    above = exp.Literal.number(str(most))
    step = exp.Literal.number(str(pair))
    # the first level that a person is above: ceil((most - d + 1) / pair), and 0 at least
    short = nodes.call(
        "GREATEST",
        nodes.infix(
            exp.IntDiv,
            exp.Paren(
                this=exp.Add(
                    this=exp.Sub(this=above, expression=quote_column("d")),
                    expression=step.copy(),
                )
            ),
            step,
        ),
        exp.Literal.number("0"),
    )
    level = add_alias(short, "level")
    people = add_alias(exp.Count(this=exp.Star(), big_int=True), "people")
    query = select([level, people], quote_table("each"), group=[quote_column("level")])
    definitions: list[Definition] = [
        owned,
        *_cap_pairs(shape, owned[0], capped),
        ("ends", _list_ends(shape, capped), False),
        ("each", each, False),
    ]
    return add_definitions(query, definitions).sql(ENGINE, pretty=True)


def read_crowd(table: Table, found: Columns) -> Opened:
    """How many people stand in more rows than each level, from the highest level on."""
    levels = (table.max_rows_per_unit or 1) // (table.max_rows_per_pair or 1) + 1
    above = np.zeros(levels, dtype=np.int64)
    for level, people in zip(found["level"].tolist(), found["people"].tolist(), strict=True):
        if level < levels:
            above[level] += people
    return Opened((), (np.cumsum(above),))


__all__ = ["bound_shared", "count_crowd", "read_crowd"]
