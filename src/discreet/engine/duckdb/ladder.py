"""A histogram from coarse to fine: cells around quantiles one by one, all others in a few lumps.

Where a cell stands is told by ranks, which the engine finds by adding up the counts of the cells of
each group.  All cells between two stretches become one: how many values it holds, and its first
and its last cell.  So a group comes back in as many rows as there are ranks around its quantiles,
however wide the bounds are and however many rows it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from discreet.price.plan import Stretch
from discreet.question.domain import Kind
from discreet.question.functions import nodes
from discreet.question.functions.nodes import (
    Node,
    add_alias,
    conjoin,
    disjoin,
    nest_query,
    order_by,
    quote_column,
    select,
)

AT, COUNT, LUMP = "_at", "_count", "_lump"
_UPTO, _TOTAL = "_upto", "_total"


def lump_cells(cells: exp.Select, keys: Sequence[str], stretches: Sequence[Stretch]) -> exp.Select:
    """The rows of ``cells`` (keys, ``AT`` and ``COUNT``), each with the ``LUMP`` it belongs to.

    A cell of a stretch is a lump of its own; of the others, those with as many stretches before
    them are one.
    """
    held = (*keys, AT, COUNT)
    totals = [
        add_alias(_add_up(keys, "CURRENT ROW"), _UPTO),
        add_alias(_add_up(keys, "UNBOUNDED"), _TOTAL),
    ]
    ranked = select([*map(quote_column, held), *totals], nest_query(cells, "cells"))
    lump: Node = nodes.integer(-1)
    for stretch in stretches:
        one = nodes.case((_begins_after(stretch), nodes.integer(1)), otherwise=nodes.integer(0))
        lump = nodes.infix(exp.Sub, lump, one)
    near = disjoin([_is_near(stretch) for stretch in stretches])
    lump = nodes.case((near, quote_column(AT)), otherwise=lump)
    return select([*map(quote_column, held), add_alias(lump, LUMP)], nest_query(ranked, "ranked"))


def _add_up(keys: Iterable[str], last: str) -> Node:
    """How many values a group has, from its first cell to this one or to its last."""
    side = {"end_side": "FOLLOWING"} if last == "UNBOUNDED" else {}
    frame = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end=last, **side)
    window = exp.Window(
        this=nodes.call("SUM", quote_column(COUNT)),
        partition_by=[quote_column(key) for key in keys],
        order=order_by([quote_column(AT)]),
        spec=frame,
    )
    return nodes.cast(window, Kind.INTEGER)


def _is_near(stretch: Stretch) -> Node:
    """Whether a rank of the cell lies in the stretch: it neither begins after it nor ends before.

    With a fraction a / b of n values: b (values up to it + ranks) >= a n.
    """
    low = stretch.low
    reached = nodes.infix(exp.Add, quote_column(_UPTO), _widen(stretch))
    ends_in = exp.GTE(this=_times(reached, low.denominator), expression=_share(low.numerator))
    return exp.Paren(this=conjoin([ends_in, exp.Not(this=_begins_after(stretch))]))


def _begins_after(stretch: Stretch) -> Node:
    """Whether all ranks of the cell lie beyond the stretch."""
    high = stretch.high
    before = nodes.infix(exp.Sub, quote_column(_UPTO), quote_column(COUNT))
    within = nodes.infix(exp.Sub, before, _widen(stretch))
    return exp.Paren(
        this=exp.GT(this=_times(within, high.denominator), expression=_share(high.numerator))
    )


def _widen(stretch: Stretch) -> Node:
    """By how many ranks a stretch is longer at each end."""
    ranks = nodes.integer(stretch.ranks)
    if not stretch.share:
        return ranks
    tied = nodes.infix(exp.IntDiv, quote_column(_TOTAL), nodes.integer(stretch.share))
    return nodes.infix(exp.Add, tied, ranks)


def _share(numerator: int) -> Node:
    return _times(quote_column(_TOTAL), numerator)


def _times(node: Node, factor: int) -> Node:
    return nodes.infix(exp.Mul, node, nodes.integer(factor))


__all__ = ["AT", "COUNT", "LUMP", "lump_cells"]
