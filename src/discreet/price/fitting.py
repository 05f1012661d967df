"""Many columns at once: means, covariances, correlations, linear regression, off noisy sums.

Every column is centred between its bounds and divided by half their distance, so that each row
adds a vector of numbers between -1 and 1, their count, sums and products (DMNS 3.2: noise for all
of them together).  A regression solves the normal equations.  Its sets hold whatever the data are:
of the true coefficients t, what was released of A t - b is noise alone, of which every entry is
within a margin at once (``docs/proofs/fitting.md``).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.price.calibration import Noisy
from discreet.price.margins import entry_margin
from discreet.price.plan import Products, Scaled, list_products
from discreet.price.recipes import Fitted
from discreet.price.tails import Noise

Floats = NDArray[np.float64]
Ends = tuple[float, float]
_NOWHERE: Ends = (-math.inf, math.inf)
_RIDGE = 8.0
"""How many deviations of the noise the least spread of the columns should exceed."""
_SUMS_READ = {"CORR_OF": 6, "COVAR_OF": 4, "MEAN_OF": 2}
"""A correlation is read off a count, two sums, two squares and a product; a covariance needs no
squares, and a mean a count and a sum."""


class Fit:
    """What one group's entries say of its columns."""

    def __init__(
        self, recipe: Fitted, products: Products, law: Noisy, entries: NDArray[Any]
    ) -> None:
        self.recipe, self.products, self.law = recipe, products, law
        found = np.array([float(one) for one in entries]) / products.unit
        size = len(products.variables) + 1
        table = np.zeros((size, size))
        for place, (row, column) in enumerate(list_products(len(products.variables))):
            table[row, column] = table[column, row] = found[place]
        self.table = table  # of (1, v1, v2, ...), each with each
        self.count = float(table[0, 0])

    # --- values --------------------------------------------------------------------------------

    def value(self) -> float | None:
        """A coefficient or a correlation; None where there is nobody, or it is not determined."""
        if self.count < 1:
            return None
        how = {"CORR_OF": self._correlate, "COVAR_OF": self._vary, "MEAN_OF": self._average}
        found = how.get(self.recipe.function, self._solve)()
        return found if math.isfinite(found) else None

    def _average(self) -> float:
        place = self.recipe.place + 1
        middle, half = _centre(self.products.variables[self.recipe.place])
        return middle + half * float(np.clip(self.table[0, place] / self.count, -1, 1))

    def _vary(self) -> float:
        i, j = self._pair()
        mean = self.table[0] / self.count
        joint = float(self.table[i, j] / self.count - mean[i] * mean[j])
        return (max(joint, 0.0) if i == j else joint) * self._size(i, j)

    def _size(self, i: int, j: int) -> float:
        """What a product of two scaled columns is one of."""
        halves = [_centre(self.products.variables[k - 1])[1] for k in (i, j)]
        return halves[0] * halves[1]

    def _correlate(self) -> float:
        i, j = self._pair()
        mean = self.table[0] / self.count
        spread = [self.table[k, k] / self.count - mean[k] ** 2 for k in (i, j)]
        joint = self.table[i, j] / self.count - mean[i] * mean[j]
        if min(spread) <= 0:
            return math.nan
        return float(np.clip(joint / math.sqrt(spread[0] * spread[1]), -1, 1))

    def _pair(self) -> tuple[int, int]:
        """Which two columns a correlation is of, counted from one."""
        size = len(self.products.variables)
        apart = self.recipe.function == "CORR_OF"
        pairs = [(i, j) for i in range(1, size + 1) for j in range(i + apart, size + 1)]
        return pairs[self.recipe.place]

    @property
    def _normal(self) -> tuple[Floats, Floats]:
        """The matrix and the right-hand side for y = v1 on 1, v2, v3, ...; all of them scaled."""
        used = [0, *range(2, self.table.shape[0])]
        return self.table[np.ix_(used, used)], self.table[used, 1]

    def _solve(self) -> float:
        """The regression; where noise is as large as the least spread, with a ridge against it.

        The ridge is what the noise may have taken from the least eigenvalue (Wang 2018): nothing
        where people are many.
        """
        mean = self.table[0] / self.count
        spread = self.table / self.count - np.outer(mean, mean)
        inner, side = spread[2:, 2:], spread[2:, 1]
        noise = math.sqrt(float(self.law.variance)) / (self.products.unit * self.count)
        least = float(np.linalg.eigvalsh(inner)[0])
        ridge = max(_RIDGE * noise * math.sqrt(len(side)) - least, 0.0)
        slopes = np.linalg.solve(inner + ridge * np.eye(len(side)), side)
        solved = np.array([mean[1] - slopes @ mean[2:], *slopes])
        return float(self._weights @ solved + self._constant)

    @property
    def _weights(self) -> Floats:
        """The wanted number as a combination of the scaled coefficients, but for a constant."""
        y, *others = [_centre(variable) for variable in self.products.variables]
        weights = np.zeros(len(others) + 1)
        if self.recipe.place:
            weights[self.recipe.place] = y[1] / others[self.recipe.place - 1][1]
            return weights
        weights[0] = y[1]
        weights[1:] = [-y[1] * middle / half for middle, half in others]
        return weights

    @property
    def _constant(self) -> float:
        return 0.0 if self.recipe.place else _centre(self.products.variables[0])[0]

    # --- sets ----------------------------------------------------------------------------------

    def ends(self, beta: Fraction, moved: tuple[float, ...]) -> Ends:
        """Between which numbers the true one lies; ``moved``: by how much the grid moves values."""
        read = _SUMS_READ.get(self.recipe.function)
        if read is not None:
            noise = self._bound_noise(beta / read)
            margin = noise + self._bound_rounding(noise, moved)
            how = {
                "CORR_OF": self._correlation_ends,
                "COVAR_OF": self._covariance_ends,
                "MEAN_OF": self._mean_ends,
            }
            return how[self.recipe.function](margin)
        size = self.table.shape[0]
        noise = self._bound_noise(beta / (size * (size + 1)))  # all of them, with beta/2
        return self._coefficient_ends(noise, self._bound_rounding(noise, moved), beta)

    def _bound_noise(self, beta: Fraction) -> float:
        return entry_margin(self.law, beta) / self.products.unit

    def _bound_rounding(self, noise: float, moved: tuple[float, ...]) -> float:
        """How far the grid, and the step that a sum is rounded down to, may move a sum."""
        halves = [_centre(variable)[1] for variable in self.products.variables]
        shift = max(m / half for m, half in zip(moved, halves, strict=True))
        return 1 / self.products.unit + (max(self.count, 0.0) + noise) * (2 * shift + shift**2)

    def _coefficient_ends(self, noise: float, rounding: float, beta: Fraction) -> Ends:
        """docs/proofs/fitting.md, Lemma 3."""
        matrix, side = self._normal
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return _NOWHERE
        solved, margin = inverse @ side, noise + rounding
        reach = np.abs(inverse).sum(axis=1) * margin  # of each coefficient, for a residue of one
        total = float(reach.sum())
        if not total < 1:
            return _NOWHERE
        size = (1 + float(np.abs(solved).sum())) / (1 - total)  # at least 1 + |t|, the true one
        off = reach * size
        lever = inverse.T @ self._weights
        levers = np.abs(lever) + reach * float(np.abs(lever).sum()) / (1 - total)
        first = self._first_order(levers, np.abs(solved) + off, beta / 2)
        rest = float(levers.sum()) * (margin * float(off.sum()) + rounding * size)
        radius = min(first + rest, float(np.abs(self._weights) @ off))
        middle = float(self._weights @ solved + self._constant)
        return middle - radius, middle + radius

    def _first_order(self, levers: Floats, sizes: Floats, beta: Fraction) -> float:
        """The quantile of lever . (E t - e), a sum of the noise of all entries but that of y y."""
        products = np.outer(levers, sizes)
        weights = [*levers]  # of the right-hand side
        for row in range(len(levers)):
            weights.append(products[row, row])
            weights += [products[row, k] + products[k, row] for k in range(row + 1, len(levers))]
        law = Noise.of([self.law] * len(weights))
        found = law.quantiles(np.array([weights]), float(beta))
        return float(found[0]) / self.products.unit

    def _correlation_ends(self, margin: float) -> Ends:
        i, j = self._pair()
        if self.count - margin <= 1:
            return -1.0, 1.0
        joint, first, second = (self._moment(a, b, margin) for a, b in ((i, j), (i, i), (j, j)))
        if min(first[0], second[0]) <= 0:
            return -1.0, 1.0
        spreads = [math.sqrt(a * b) for a, b in ((first[0], second[0]), (first[1], second[1]))]
        corners = [value / spread for value in joint for spread in spreads]
        return float(max(min(corners), -1.0)), float(min(max(corners), 1.0))

    def _covariance_ends(self, margin: float) -> Ends:
        """docs/proofs/fitting.md, Lemma 2, without the division; never beyond what is possible."""
        i, j = self._pair()
        if self.count - margin <= 1:
            return _NOWHERE
        low, high = self._moment(i, j, margin)
        least = 0.0 if i == j else -1.0
        size = self._size(i, j)
        return min(max(low, least), 1.0) * size, min(max(high, least), 1.0) * size

    def _mean_ends(self, margin: float) -> Ends:
        if self.count - margin <= 1:
            return _NOWHERE
        middle, half = _centre(self.products.variables[self.recipe.place])
        low, high = self._ends_of_average((0, self.recipe.place + 1), margin)
        return middle + half * max(low, -1.0), middle + half * min(high, 1.0)

    def _ends_of_average(self, place: tuple[int, int], margin: float) -> Ends:
        """Between which numbers a sum divided by the count is, both within the margin."""
        value = float(self.table[place])
        counts = (self.count - margin, self.count + margin)
        corners = [(value + sign * margin) / n for sign in (-1, 1) for n in counts]
        return min(corners), max(corners)

    def _moment(self, a: int, b: int, margin: float) -> Ends:
        """Between which numbers the covariance of two scaled columns is."""
        one, other, both = (self._ends_of_average(p, margin) for p in ((0, a), (0, b), (a, b)))
        corners = [x * y for x in one for y in other]
        if a == b:  # a square: never negative, and the same number twice
            largest = max(corners)
            inside = one[0] <= 0 <= one[1]
            corners = [0.0 if inside else min(x * x for x in one), largest]
        return both[0] - max(corners), both[1] - min(corners)


def _centre(variable: Scaled) -> tuple[float, float]:
    """The middle of the bounds, and half their distance."""
    half = Fraction(variable.span, 2)
    return float((variable.low + half) * variable.grid), float(half * variable.grid)


__all__ = ["Fit"]
