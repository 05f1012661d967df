"""Rows from a fitted law, spread evenly instead of drawn independently.

Down the tree, the rows that agree on what a clique shares with its parent are
given its other cells by systematic sampling: equally spaced points on the
cumulated probabilities.  A table of n rows then differs from the law by less
than a row or so a cell, where independent draws differ by the root of the count.
Nothing here is about privacy: the law was made from released numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.publication.fit import Fitted
from discreet.publication.measure import Doubles, Integers

_GOLDEN = 0.6180339887498949


def sample_bins(fitted: Fitted, count: int, generator: np.random.Generator) -> Integers:
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
        cell, order = _place_evenly(belief.reshape(groups, -1), key, generator)
        for column in reversed(rest):
            rows[order, column] = cell % tree.sizes[column]
            cell = cell // tree.sizes[column]
    return rows


def _place_evenly(
    table: Doubles, key: Integers, generator: np.random.Generator
) -> tuple[Integers, Integers]:
    """A cell of its group's line of ``table`` for every row, and the order of rows they are in."""
    groups, width = table.shape
    shuffled = generator.permutation(key.size)
    order = shuffled[np.argsort(key[shuffled], kind="stable")]
    group = key[order]
    held = np.bincount(group, minlength=groups)
    rank = np.arange(key.size) - (np.cumsum(held) - held)[group]
    # Offsets of neighbouring groups differ by the golden ratio: roundings do not gang up.
    offset = (generator.random() + np.arange(groups) * _GOLDEN) % 1
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
    generator: np.random.Generator,
) -> Integers:
    """Bins replaced by levels, in the proportions of each column's released histogram."""
    fine = np.empty_like(rows)
    for column, (mapped, histogram) in enumerate(zip(maps, histograms, strict=True)):
        count = int(mapped.max()) + 1
        order = np.argsort(mapped, kind="stable")
        inside = _lines(mapped, histogram, count, order)
        cell, placed = _place_evenly(inside, rows[:, column], generator)
        starts = np.searchsorted(mapped[order], np.arange(count))
        last = np.append(starts[1:], mapped.size)
        group = rows[placed, column]
        fine[placed, column] = order[np.minimum(starts[group] + cell, last[group] - 1)]
    return fine


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
