"""A released table of counts: how exactly each cell, and any sum of cells, is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from discreet.exact.numbers import Exact
from discreet.publication.marginals import Subset
from discreet.publication.measure import Doubles, Integers
from discreet.publication.spend import Noise
from discreet.publication.tails import Draws, tail_bound


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """A released table of counts: how exactly any sum of its cells is known."""

    name: str
    columns: Subset
    values: Doubles
    gaussian: bool
    variance_of: Callable[[Doubles], float] = field(repr=False)
    """The variance of the sum of the cells with these weights."""
    noisy: Doubles | None = field(default=None, repr=False)
    """What was measured of cells that were made whole, non-negative and agreeing afterwards."""
    bound: Callable[[Exact], float] | None = field(default=None, repr=False)
    """Of tables counted from synthetic rows: what was bought for every sum of their cells."""
    own: Noise | None = field(default=None, repr=False)
    """The noise of each cell, where each was measured by itself."""
    cell_variances: Doubles | None = field(default=None, repr=False)
    """The variance of every cell, where they differ."""
    places: Integers | None = field(default=None, repr=False)
    """Of listed cells: the level of each in every column; else cells are all combinations."""
    sharp: bool = True
    """Whether tails are bounded as they are now, or as earlier plans did."""
    draws: Draws | None = None
    """All draws that its cells are sums of, if tails are bounded by what they are."""

    def levels_of(self) -> Integers:
        """The level of every cell in each of the columns."""
        if self.places is not None:
            return self.places
        shape = self.values.shape
        return np.indices(shape).reshape(len(shape), self.values.size)

    def margin(self, weights: Doubles, beta: Exact = "0.05") -> float:
        """The weighted sum of cells is within this, except with probability ``beta``.

        What was moved after it was measured is off by no more than it was moved besides.
        Not a number where nothing was bought that bounds it.
        """
        if self.bound is not None:
            return self.bound(beta)
        tail = self._tail(weights, beta)
        if self.noisy is None:
            return tail
        return tail + abs(float((weights * (self.values - self.noisy)).sum()))

    def cell_margins(self, beta: Exact = "0.05") -> Doubles:
        """The margin of every cell."""
        count = self.values.size
        if self.bound is not None:
            return np.full(count, self.bound(beta))
        one = np.zeros(count)
        if self.cell_variances is not None:
            unit = self._bound_sum(1.0, beta)
            tails = unit * np.sqrt(self.cell_variances.reshape(-1))
        elif count <= 4096:
            tails = np.empty(count)
            for place in range(count):
                one[place] = 1.0
                tails[place] = self._tail(one.reshape(self.values.shape), beta)
                one[place] = 0.0
        else:  # all cells have one variance
            one[0] = 1.0
            tails = np.full(count, self._tail(one.reshape(self.values.shape), beta))
        if self.noisy is None:
            return tails
        return np.asarray(tails + np.abs(self.values - self.noisy).reshape(-1))

    def _tail(self, weights: Doubles, beta: Exact) -> float:
        if self.own is not None and np.abs(weights).sum() == np.abs(weights).max() == 1:
            return float(self.own.margin(beta))  # one cell: the law of its noise itself
        return self._bound_sum(self.variance_of(weights), beta)

    def _bound_sum(self, variance: float, beta: Exact) -> float:
        return tail_bound(
            variance, beta, gaussian=self.gaussian, sharp=self.sharp, draws=self.draws
        )


__all__ = ["Estimates"]
