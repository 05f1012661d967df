"""Counts on a tree of places: region, city, street; whole, none negative, adding up.

Every level is measured.  Least squares makes the levels agree; then, from the top
down, each node's children become the closest non-negative whole numbers that add
up to it.  A total that is public from elsewhere, or released before, is kept
exactly.  No total is ever computed from private rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.search import bracket
from discreet.mechanisms.postprocess import consistent
from discreet.publication.measure import Doubles, Integers, Measurement, Measurer, ask_cells
from discreet.publication.spend import Spend, deviation


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Levels of a tree over the leaves, from the root down.

    ``levels[k]`` maps each leaf (a level of the column) to its node on level k;
    each level is finer than the one before, and the last one is the leaves.
    """

    levels: tuple[Integers, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise _not_nested()
        for coarse, fine in zip(self.levels[:-1], self.levels[1:], strict=True):
            pairs = len(np.unique(np.stack([coarse, fine]), axis=1).T)
            if coarse.shape != fine.shape or pairs != len(np.unique(fine)):
                raise _not_nested()
        for level in self.levels:
            if set(level.tolist()) != set(range(int(level.max()) + 1)):
                raise _not_nested()

    @classmethod
    def of(cls, paths: Sequence[Sequence[object]]) -> Hierarchy:
        """The tree of a list of leaves, each given as its path from the top: ``paths``.

        >>> Hierarchy.of([("north", "ayr"), ("south", "bath"), ("south", "deal")]).counts
        (1, 2, 3)
        """
        depth = {len(path) for path in paths}
        if len(depth) != 1 or 0 in depth:
            raise _not_nested()
        levels = []
        for length in range(depth.pop() + 1):
            seen: dict[tuple[object, ...], int] = {}
            level = [seen.setdefault(tuple(path[:length]), len(seen)) for path in paths]
            levels.append(np.array(level, dtype=np.int64))
        return cls(tuple(levels))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(int(level.max()) + 1 for level in self.levels)

    def parents(self, level: int) -> Integers:
        """For each node of ``level``, 1 or more, its node on the level above."""
        above = np.zeros(self.counts[level], dtype=np.int64)
        above[self.levels[level]] = self.levels[level - 1]
        return above


def release_hierarchy(
    measurer: Measurer,
    column: int,
    hierarchy: Hierarchy,
    spend: Spend,
    *,
    weights: Sequence[float] | None = None,
    totals: Mapping[tuple[int, int], int] | None = None,
) -> tuple[list[Integers], list[Measurement]]:
    """Whole, non-negative counts of every level that add up, and what they were made from.

    ``measurer`` holds the rows, whose ``column`` has the leaves of ``hierarchy`` as its values.

    ``totals`` are public counts by (level, node); a level that is public
    altogether, or follows from what is, is not measured.  ``weights`` divides the ``spend`` over
    the levels that are (equal shares unless given).
    """
    known = follow_totals(hierarchy, dict(totals or {}))
    noisy, released = measure_levels(
        measurer, column, hierarchy, spend, weights=weights, known=known
    )
    return make_consistent(hierarchy, noisy, known), released


def measure_levels(
    measurer: Measurer,
    column: int,
    hierarchy: Hierarchy,
    spend: Spend,
    *,
    known: Mapping[tuple[int, int], int],
    weights: Sequence[float] | None = None,
) -> tuple[list[tuple[Doubles, float] | None], list[Measurement]]:
    """The noisy counts of every level of which something is not ``known``, with their variance."""
    bound_counts(hierarchy, known)
    open_levels = [
        level
        for level, count in enumerate(hierarchy.counts)
        if sum(place == level for place, _ in known) < count
    ]
    if not open_levels:
        return [None] * len(hierarchy.levels), []
    shares = np.ones(len(hierarchy.levels)) if weights is None else np.asarray(weights, dtype=float)
    parts = spend.divide([float(shares[level]) for level in open_levels])
    released = measurer.measure(
        [
            ask_cells([column], [hierarchy.levels[level]], part)
            for level, part in zip(open_levels, parts, strict=True)
        ]
    )
    noisy: list[tuple[Doubles, float] | None] = [None] * len(hierarchy.levels)
    for level, one in zip(open_levels, released, strict=True):
        noisy[level] = (one.values.astype(np.float64), deviation(one.query.noise) ** 2)
    return noisy, released


def follow_totals(
    hierarchy: Hierarchy, totals: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """The totals and what follows from them: sums of public parts, and the last missing part.

    >>> tree = Hierarchy.of([("north", 0), ("north", 1), ("south", 2)])
    >>> sorted(follow_totals(tree, {(1, 0): 30, (1, 1): 12}).items())
    [((0, 0), 42), ((1, 0), 30), ((1, 1), 12), ((2, 2), 12)]
    """
    least, most = bound_counts(hierarchy, totals)
    found = dict(totals)
    for level, count in enumerate(hierarchy.counts):
        if level:  # what its siblings leave of what is above: nothing less, nothing more
            above = hierarchy.parents(level)
            parents = hierarchy.counts[level - 1]
            siblings = np.bincount(above, least[level], parents)[above] - least[level]
            endless = np.isinf(most[level])
            bounded = np.where(endless, 0.0, most[level])
            others = np.bincount(above, bounded, parents)[above] - bounded
            others[np.bincount(above, endless, parents)[above] > endless] = math.inf
            most[level] = np.minimum(most[level], most[level - 1][above] - siblings)
            least[level] = np.maximum(least[level], least[level - 1][above] - others)
        for node in range(count):
            if least[level][node] == most[level][node]:
                found[level, node] = int(least[level][node])
    return found


def make_consistent(
    hierarchy: Hierarchy,
    noisy: Sequence[tuple[Doubles, float] | None],
    totals: Mapping[tuple[int, int], int],
) -> list[Integers]:
    """The closest whole non-negative counts that add up and keep the ``totals``.

    ``noisy`` are the counts of each level of ``hierarchy`` with their variance, or None where it
    was not measured.

    Least squares over the whole tree first (which is where levels learn from each
    other), then from the top down.
    """
    least, most = bound_counts(hierarchy, totals)
    smooth = fit_tree(hierarchy, noisy, totals).values
    result = [np.clip(np.rint(smooth[0]), least[0], most[0]).astype(np.int64)]
    for level in range(1, len(hierarchy.counts)):
        result.append(
            _share_out(
                smooth[level], hierarchy.parents(level), result[-1], least[level], most[level]
            )
        )
    return result


@dataclass(frozen=True, slots=True, eq=False)
class FittedTree:
    """The best linear unbiased counts of a tree, and how well any sum of them is known."""

    hierarchy: Hierarchy
    values: list[Doubles]
    doubts: list[Doubles]
    """The variance of each node from what was measured of it and below it."""

    def variance(self, level: int, weights: Doubles) -> float:
        """The variance of a weighted sum of the nodes of one level (Lemma 17)."""
        own, total = weights.reshape(-1), 0.0
        for depth in range(level, 0, -1):
            doubt, above = self.doubts[depth], self.hierarchy.parents(depth)
            count = self.hierarchy.counts[depth - 1]
            loose = np.bincount(above, doubt, count)
            pulled = np.bincount(above, own * doubt, count)
            part = np.divide(pulled, loose, out=np.zeros(count), where=loose > 0)
            total += max(float((own**2 * doubt).sum() - (part * pulled).sum()), 0.0)
            own = part
        return total + float((own**2 * self.doubts[0]).sum())

    def variances(self, level: int) -> Doubles:
        """The variance of every node of one level."""
        found = self.doubts[0]
        for depth in range(1, level + 1):
            doubt, above = self.doubts[depth], self.hierarchy.parents(depth)
            loose = np.bincount(above, doubt, self.hierarchy.counts[depth - 1])[above]
            share = np.divide(doubt, loose, out=np.zeros(doubt.size), where=loose > 0)
            found = np.maximum(doubt - share * doubt + share**2 * found[above], 0.0)
        return found


def fit_tree(
    hierarchy: Hierarchy,
    noisy: Sequence[tuple[Doubles, float] | None],
    totals: Mapping[tuple[int, int], int],
) -> FittedTree:
    """Least squares over the whole tree: public totals are kept, unmeasured levels follow."""
    counts = hierarchy.counts
    starts = np.concatenate([[0], np.cumsum(counts)])
    values, variances = np.zeros(starts[-1]), np.full(starts[-1], math.inf)
    parents: list[int | None] = [None] * counts[0]
    for level, one in enumerate(noisy):
        if level:
            parents += (starts[level - 1] + hierarchy.parents(level)).tolist()
        if one is not None:
            values[starts[level] : starts[level + 1]] = one[0]
            variances[starts[level] : starts[level + 1]] = one[1]
    for (level, node), total in totals.items():
        values[starts[level] + node], variances[starts[level] + node] = total, 0.0
    smooth = consistent(values, parents=parents, variances=variances)
    own = [variances[starts[level] : starts[level + 1]] for level in range(len(counts))]
    doubts = [own[-1]]
    for level in range(len(counts) - 2, -1, -1):
        below = np.bincount(hierarchy.parents(level + 1), doubts[0], counts[level])
        with np.errstate(divide="ignore", invalid="ignore"):
            both = 1 / (1 / own[level] + 1 / below)  # zero where either is
        doubts.insert(0, np.where(np.isfinite(both), both, 0.0))
    values_of = [smooth[starts[level] : starts[level + 1]] for level in range(len(counts))]
    return FittedTree(hierarchy, values_of, doubts)


def bound_counts(
    hierarchy: Hierarchy, totals: Mapping[tuple[int, int], int]
) -> tuple[list[Doubles], list[Doubles]]:
    """The least and the most that each node can be, given the totals below it and its own.

    Refuses totals that no counts could have.
    """
    depth, counts = len(hierarchy.levels), hierarchy.counts
    for (level, node), total in totals.items():
        if not (0 <= level < depth and 0 <= node < counts[level]) or total < 0:
            raise _bad_totals()
    least = [np.zeros(count) for count in counts]
    most = [np.full(count, math.inf) for count in counts]
    for level in range(depth - 1, -1, -1):
        if level + 1 < depth:
            above = hierarchy.parents(level + 1)
            least[level] = np.bincount(above, least[level + 1], counts[level]).astype(float)
            most[level] = np.bincount(above, most[level + 1], counts[level]).astype(float)
        for (place, node), total in totals.items():
            if place == level:
                if not least[level][node] <= total <= most[level][node]:
                    raise _bad_totals()
                least[level][node] = most[level][node] = total
    return least, most


def _share_out(
    goal: Doubles, parents: Integers, above: Integers, least: Doubles, most: Doubles
) -> Integers:
    """Children as close to their goals as whole numbers with these sums and bounds can be."""
    result = np.zeros(goal.size, dtype=np.int64)
    order = np.argsort(parents, kind="stable")
    ends = np.searchsorted(parents[order], np.arange(above.size + 1))
    for node, total in enumerate(above.tolist()):
        children = order[ends[node] : ends[node + 1]]
        low, high = least[children], most[children]
        close = project_to_total(goal[children], float(total), low, high)
        result[children] = round_to_total(close, total, high)
    return result


def project_to_total(goal: Doubles, total: float, least: Doubles, most: Doubles) -> Doubles:
    """The closest numbers between the bounds that add up to ``total``: all lowered alike.

    >>> free = np.full(3, np.inf)
    >>> project_to_total(np.array([5.0, -2.0, 9.0]), 8.0, np.zeros(3), free).round(6).tolist()
    [2.0, 0.0, 6.0]
    """
    reach = total + float(np.abs(goal).max()) + float(least.max()) + 1.0

    def lowers_enough(by: float) -> bool:
        return float(np.clip(goal - by, least, most).sum()) <= total

    _, enough = bracket(lowers_enough, fails_at=-reach, holds_at=reach, halvings=100)
    return np.clip(goal - enough, least, most)


def round_to_total(values: Doubles, total: int, most: Doubles) -> Integers:
    """Whole numbers that add up to ``total``, each next to its value: largest remainders.

    >>> round_to_total(np.array([1.5, 0.25, 2.25]), 4, np.full(3, np.inf)).tolist()
    [2, 0, 2]
    """
    whole = np.floor(values + 1e-9).astype(np.int64)  # 2.9999999999 is a 3 that doubles missed
    order = np.argsort(whole - values, kind="stable")
    short = total - int(whole.sum())
    for index in order.tolist():
        if short > 0 and whole[index] < most[index]:
            whole[index] += 1
            short -= 1
    for index in order[::-1].tolist():
        if short < 0 and whole[index] > 0:
            whole[index] -= 1
            short += 1
    return whole


def _not_nested() -> InvalidParameter:
    return InvalidParameter(
        "P4",
        "the levels of a hierarchy must be nested, from the top down, without gaps.",
        why="a place that lies in two regions would be counted in both.",
        fix="give each leaf its whole path, such as [('north', 'ayr'), ('south', 'bath')].",
    )


def _bad_totals() -> InvalidParameter:
    return InvalidParameter(
        "P4",
        "the public totals do not fit the hierarchy or each other.",
        why="no counts could keep them all.",
        fix="give totals by (level, node) whose parts do not exceed their whole.",
    )
