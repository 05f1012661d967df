"""Bins: each column's levels grouped, finer and coarser, every grouping inside the next.

Made from a released histogram, so they cost nothing.  Ordered columns are cut
into stretches of about equal mass; in others the common levels stay alone and
the rare ones share a bin.  A NULL that is common stays alone; one that is rare
is the end of the order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.publication.domain import Column
from discreet.publication.measure import Doubles, Integers

_COUNTS = (64, 48, 32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2)
_RARE = 0.002  # of the rows: less than this does not get a bin of its own


@dataclass(frozen=True, slots=True, eq=False)
class Binning:
    """The nested groupings of one column.

    ``base`` maps levels to the finest bins; ``levels[k]`` maps finest bins to
    the grouping of k bins; ``shares`` is the mass of each finest bin.
    """

    base: Integers
    levels: dict[int, Integers]
    shares: Doubles

    @property
    def finest(self) -> int:
        """How many bins the finest grouping has."""
        return self.shares.size

    def map_levels(self, count: int) -> Integers:
        """The map from the column's own levels to the grouping of ``count`` bins."""
        return self.levels[count][self.base]


def make_binning(column: Column, histogram: Doubles, *, most: int) -> Binning:
    """Group the levels of a column, at most ``most`` bins in the finest grouping."""
    shares = histogram / histogram.sum()
    lone_null = column.ordered and column.null and shares[-1] >= _RARE
    base = _group(shares, _finest(column, shares, most), column.ordered, lone_null)
    count = int(base.max()) + 1
    masses = add_up(shares, base, count)
    levels, current = {count: np.arange(count)}, np.arange(count)
    for wanted in _COUNTS:
        held = int(current.max()) + 1
        if wanted < held:
            merged = add_up(masses, current, held)
            current = _group(merged, wanted, column.ordered, lone_null)[current]
            levels.setdefault(int(current.max()) + 1, current)
    if count > 1:
        levels.pop(1, None)
    return Binning(base, levels, masses)


def add_up(masses: Doubles, groups: Integers, count: int) -> Doubles:
    """The mass of every group."""
    return np.bincount(groups, masses, count).astype(np.float64)


def _finest(column: Column, shares: Doubles, most: int) -> int:
    if column.ordered:
        return min(most, shares.size)
    return min(int((shares >= _RARE).sum()) + 1, most, shares.size)


def _group(masses: Doubles, count: int, ordered: bool, lone_null: bool) -> Integers:
    if count >= masses.size:
        return np.arange(masses.size)
    if not ordered:
        return _keep_common(masses, count)
    if lone_null:
        inner = _cut_equally(masses[:-1], max(count - 1, 1))
        return np.append(inner, inner.max() + 1)
    return _cut_equally(masses, count)


def _keep_common(masses: Doubles, count: int) -> Integers:
    """The most common levels alone, the rest together."""
    groups = np.full(masses.size, count - 1)
    groups[np.argsort(-masses, kind="stable")[: count - 1]] = np.arange(count - 1)
    return groups


def _cut_equally(masses: Doubles, count: int) -> Integers:
    """Stretches of about equal mass: from left to right, each aims at its share of the rest."""
    groups = np.zeros(masses.size, dtype=np.int64)
    group, held, left, wanted = 0, 0.0, float(masses.sum()), count
    for place, mass in enumerate(masses.tolist()):
        aim = left / wanted
        if held > 0 and wanted > 1 and held + mass - aim > aim - held:  # better off without it
            group, left, held, wanted = group + 1, left - held, 0.0, wanted - 1
        groups[place] = group
        held += mass
        if wanted > 1 and held >= left / wanted:
            group, left, held, wanted = group + 1, left - held, 0.0, wanted - 1
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)
