"""A histogram from coarse to fine: cells that matter one by one, all others in a few lumps.

Around quantiles, where a cell stands is told by ranks, which the engine finds by adding up the
counts of the cells of each group.  All cells between two stretches become one: how many values it
holds, and its first and its last cell.  So a group comes back in as many rows as there are ranks
around its quantiles, however wide the bounds are and however many rows it has.  For ends of clipped
values, all cells become one that no candidate for an end parts: their number is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor

from sqlglot import exp

from discreet.mechanisms.clipping import MANTISSA
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
_AWAY = "_away"
_NO_END = 2**62
_OUTERMOST = 10_000  # more than twice the number of candidates on one side


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


# --- groups that are small ------------------------------------------------------------------------


def find_most_values(stretches: Iterable[Stretch]) -> int:
    """How many values a group may have for every cell of it to be within one of the stretches.

    Its first cell ends at rank 1 or later, and before its last one stand n - 1 values or fewer.
    """
    return max(min(_fit(s.ranks, s.low), _fit(s.ranks, 1 - s.high)) for s in stretches)


def _fit(ranks: int, share: Fraction) -> int:
    """The most values of which so large a share is no more than some ranks and one."""
    return floor((ranks + 1) / share) if share > 0 else _NO_END


def exceed(groups: exp.Select, most: int) -> Node:
    """Whether the largest of some groups of rows has more than so many."""
    sized = groups.copy()
    sized.set("expressions", [add_alias(exp.Count(this=exp.Star(), big_int=True), COUNT)])
    largest = select([nodes.call("MAX", quote_column(COUNT))], nest_query(sized, "sized"))
    return exp.Paren(this=exp.GT(this=exp.Subquery(this=largest), expression=nodes.integer(most)))


# --- between the candidates for ends --------------------------------------------------------------


def lump_between_ends(cells: exp.Select, keys: Sequence[str], zero: int, span: int) -> exp.Select:
    """The rows of ``cells`` (keys and ``AT``), each with the ``LUMP`` it belongs to.

    A candidate (:class:`~discreet.mechanisms.clipping.ClippedSums`) is a lump of its own, and so
    are all cells between it and the next.
    """
    at, held = quote_column(AT), [*keys, AT]
    above = nodes.infix(exp.Sub, at, nodes.integer(zero))
    below = nodes.infix(exp.Sub, nodes.integer(zero), at.copy())
    beyond = exp.GTE(this=at.copy(), expression=nodes.integer(zero))
    away = nodes.case((beyond, above), otherwise=below)
    measured = select(
        [*map(quote_column, held), add_alias(away, _AWAY)], nest_query(cells, "cells")
    )
    farthest = max(zero, span - zero)
    octaves = range(max(1, farthest.bit_length() - MANTISSA.bit_length() + 1))
    place = _place_among(octaves)
    lump = nodes.case(
        (exp.EQ(this=at.copy(), expression=nodes.integer(0)), nodes.integer(-_OUTERMOST)),
        (exp.EQ(this=at.copy(), expression=nodes.integer(span)), nodes.integer(_OUTERMOST)),
        (beyond.copy(), place),
        otherwise=nodes.infix(exp.Sub, nodes.integer(0), place.copy()),
    )
    return select(
        [*map(quote_column, held), add_alias(lump, LUMP)], nest_query(measured, "measured")
    )


def _place_among(octaves: range) -> Node:
    """Twice the number of candidates nearer to zero, one more between two: by halving octaves.

    In octave e, distances are below 2 * MANTISSA * 2**e, and the candidates multiples of 2**e.
    """
    if len(octaves) == 1:
        (octave,) = octaves
        away, step = quote_column(_AWAY), nodes.integer(2**octave)
        if not octave:
            return nodes.infix(exp.Mul, away, nodes.integer(2))
        up = nodes.infix(exp.Add, away.copy(), nodes.integer(2**octave - 1))
        both = nodes.infix(
            exp.Add,
            nodes.infix(exp.IntDiv, away, step),
            nodes.infix(exp.IntDiv, up, step.copy()),
        )
        return nodes.infix(exp.Add, both, nodes.integer(2 * MANTISSA * octave))
    middle = len(octaves) // 2
    least = nodes.integer(MANTISSA * 2 ** octaves[middle])
    nearer = exp.LT(this=quote_column(_AWAY), expression=least)
    return nodes.case(
        (nearer, _place_among(octaves[:middle])), otherwise=_place_among(octaves[middle:])
    )


__all__ = [
    "AT", "COUNT", "LUMP", "exceed", "find_most_values", "lump_between_ends", "lump_cells",
]  # fmt: skip
