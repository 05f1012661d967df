"""Rows from a fitted law, spread evenly instead of drawn independently.

Down the tree, the rows that agree on what a clique shares with its parent are
given its other cells by systematic sampling: equally spaced points on the
cumulated probabilities.  A table of n rows then differs from the law by less
than a row or so a cell, where independent draws differ by the root of the count.
Nothing here is about privacy: the law was made from released numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.publication.fit import Fitted
from discreet.publication.measure import Doubles, Integers
from discreet.publication.stream import PublicStream

_GOLDEN = 0.6180339887498949


def sample_bins(fitted: Fitted, count: int, stream: PublicStream) -> Integers:
    """``count`` rows of bins that follow the law as evenly as they can."""
    tree = fitted.tree
    rows = np.zeros((count, len(tree.sizes)), dtype=np.int64)
    for node, belief in zip(tree.nodes, fitted.beliefs, strict=True):
        shared, rest = node.columns[: node.shared], node.columns[node.shared :]
        if not rest:
            continue
        groups = int(np.prod([tree.sizes[column] for column in shared], dtype=np.int64))
        key = np.zeros(count, dtype=np.int64)
        for column in shared:
            key = key * tree.sizes[column] + rows[:, column]
        cell, order = _place_evenly(belief.reshape(groups, -1), key, stream.uniform(count), stream)
        for column in reversed(rest):
            rows[order, column] = cell % tree.sizes[column]
            cell = cell // tree.sizes[column]
    return rows


def _place_evenly(
    table: Doubles, key: Integers, turns: Doubles, stream: PublicStream
) -> tuple[Integers, Integers]:
    """A cell of its group's line of ``table`` for every row, and the order of rows they are in.

    Within a group, rows take the line's cells from left to right in order of their turns.
    """
    groups, width = table.shape
    order = np.lexsort((turns, key))
    group = key[order]
    held = np.bincount(group, minlength=groups)
    rank = np.arange(key.size) - (np.cumsum(held) - held)[group]
    # Offsets of neighbouring groups differ by the golden ratio: roundings do not gang up.
    offset = (stream.uniform(1)[0] + np.arange(groups) * _GOLDEN) % 1
    point = np.minimum((rank + offset[group]) / held[group], 1 - 1e-12)
    # Each group's line is cumulated by itself, so that a group of mass 1e-300 is as exact as any.
    sums = table.sum(axis=1, keepdims=True)
    lines = np.divide(table, sums, out=np.full_like(table, 1 / width), where=sums > 0)
    ends = np.cumsum(lines, axis=1)
    ends[:, -1] = 1.0
    flat = (ends + np.arange(groups)[:, None]).ravel()
    cell = np.searchsorted(flat, point + group, side="right")
    return np.clip(cell - group * width, 0, width - 1), order


def refine(
    rows: Integers,
    maps: Sequence[Integers],
    histograms: Sequence[Doubles],
    stream: PublicStream,
    *,
    turns: Mapping[int, Doubles] | None = None,
) -> Integers:
    """Bins replaced by levels, in the proportions of each column's released histogram.

    ``turns`` says, for some columns, which rows of a bin get its low levels and
    which its high ones; elsewhere chance does.
    """
    fine = np.empty_like(rows)
    for column, (mapped, histogram) in enumerate(zip(maps, histograms, strict=True)):
        count = int(mapped.max()) + 1
        order = np.argsort(mapped, kind="stable")
        inside = _lines(mapped, histogram, count, order)
        turn = (turns or {}).get(column)
        turn = stream.uniform(len(rows)) if turn is None else turn
        cell, placed = _place_evenly(inside, rows[:, column], turn, stream)
        starts = np.searchsorted(mapped[order], np.arange(count))
        last = np.append(starts[1:], mapped.size)
        group = rows[placed, column]
        fine[placed, column] = order[np.minimum(starts[group] + cell, last[group] - 1)]
    return fine


def lean(fitted: Fitted, rows: Integers, column: int, bins: int, stream: PublicStream) -> Doubles:
    """Where in its bin a row lies, from 0 to 1: drawn from what neighbouring bins are like.

    Within a bin of an ordered column the model knows nothing; between bins it
    does.  Let the share of a row's other values change in a straight line from
    the bin's left edge to its right edge, the edges being means of neighbouring
    bins: then the row's place has a density that is a straight line too.
    ``bins`` is how many of the column's bins are in order; a NULL's comes after.
    """
    tree = fitted.tree
    homes = [place for place, node in enumerate(tree.nodes) if column in node.columns]
    place = max(homes, key=lambda one: fitted.beliefs[one].size)
    columns = tree.nodes[place].columns
    axis = columns.index(column)
    table = np.moveaxis(fitted.beliefs[place], axis, 0).reshape(tree.sizes[column], -1)[:bins]
    sums = table.sum(axis=1, keepdims=True)
    share = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
    edges = np.empty((bins + 1, share.shape[1]))
    edges[1:-1] = (share[1:] + share[:-1]) / 2
    edges[0] = np.maximum(2 * share[0] - edges[1], 0) if bins > 1 else share[0]
    edges[-1] = np.maximum(2 * share[-1] - edges[-2], 0) if bins > 1 else share[-1]
    key = np.zeros(len(rows), dtype=np.int64)
    for other in columns:
        if other != column:
            key = key * tree.sizes[other] + rows[:, other]
    group = np.minimum(rows[:, column], bins - 1)
    left, right = edges[group, key], edges[group + 1, key]
    flat = left + right <= 0
    left, right = np.where(flat, 1.0, left), np.where(flat, 1.0, right)
    drawn = stream.uniform(len(rows))
    root = np.sqrt(np.maximum(left**2 + (right - left) * (right + left) * drawn, 0))
    return np.asarray(drawn * (left + right) / np.maximum(left + root, 1e-300))


def _lines(mapped: Integers, histogram: Doubles, count: int, order: Integers) -> Doubles:
    """For every bin the masses of its levels, padded to the widest; even where all are zero."""
    held = np.bincount(mapped, minlength=count)
    width = int(held.max())
    rank = np.arange(mapped.size) - (np.cumsum(held) - held)[mapped[order]]
    lines = np.zeros((count, width))
    lines[mapped[order], rank] = histogram[order]
    empty = lines.sum(axis=1) <= 0
    lines[empty] = (np.arange(width)[None, :] < held[empty, None]).astype(float)
    return lines
