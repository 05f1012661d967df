"""Mean and covariance of bounded vectors, with noise that does not grow with the dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import DiscreteLaplaceLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, failure_share, positive, whole
from discreet.mechanisms.grid import Grid, require_names, set_fields, write_call
from discreet.mechanisms.laplace import Laplace

Doubles = NDArray[np.float64]

_DEFAULT_BITS = 16
_MOST_BITS = 20
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """What was released: a ``count``, and sums of the vectors, ``sums``, and of ``products``.

    The products are the outer ones of each vector with itself.
    """

    count: int
    sums: Doubles
    products: Doubles

    @property
    def mean(self) -> Doubles:
        """The mean vector; post-processing."""
        return self.sums / max(self.count, 1)

    @property
    def covariance(self) -> Doubles:
        """The covariance matrix, symmetric; post-processing, so it may fail to be positive."""
        return self.products / max(self.count, 1) - np.outer(self.mean, self.mean)


@dataclass(frozen=True, slots=True)
class MomentMargins:
    """How far off the ``count``, all ``sums`` and all ``products`` are, all of them together."""

    count: float
    sums: float
    products: float


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Moments:
    """Publish the number, the sum and the sum of outer products of bounded vectors.

    Definition:
        Each row v, of ``dimension`` entries, is put on the ``grid``, entries
        towards zero, and scaled down if its L1 norm exceeds ``bound``; an entry
        that is no finite number is 0.
        M(x) is the count, the sum of the v and the upper triangle of the sum of
        v v^T, exact integers, plus two-sided geometric noise of scale 3/epsilon,
        3 bound/epsilon and 3 bound**2/epsilon.

    Guarantee:
        ``epsilon``-differentially private under add/remove neighbours of one row: a
        third of epsilon for each of the three.  The norm is enforced, not
        believed, and in integers, so the sensitivities bound and bound**2 are
        exact, whatever the dimension.

    Accuracy:
        ``margin(beta)`` covers everything released, each part with beta / 3.
        Against noise calibrated coordinate by coordinate, which grows with the
        number of coordinates (or its root), joint noise is smaller by that
        factor: d for the sums and d**2 for the products (or sqrt(d) and d).

    Reference:
        DMNS 3.2, mean and covariance.

    Example:
        >>> moments = Moments(dimension=2, bound=3, epsilon="3/2")
        >>> moments.loss.epsilon
        Fraction(3, 2)
        >>> noisy = moments.release([[0.5, -2.25], [2.0, 0.75], [-0.5, 0.25]])
        >>> noisy.mean.shape, noisy.covariance.shape
        ((2,), (2, 2))
        >>> round(moments.margin("0.05").sums, 1)
        28.7
    """

    dimension: int
    bound: Fraction
    epsilon: Fraction
    grid: Grid
    reach: int = field(init=False, compare=False)
    """The bound in steps of the grid."""
    count: Laplace = field(init=False, compare=False)
    sums: Laplace = field(init=False, compare=False)
    products: Laplace = field(init=False, compare=False)

    def __init__(
        self, *, dimension: int, bound: Exact, epsilon: Exact, grid: Grid | None = None
    ) -> None:
        width = whole(dimension, name="dimension", least=1)
        norm = positive(bound, name="bound")
        price = positive(epsilon, name="epsilon")
        steps = grid or _default_grid(norm)
        reach = math.floor(norm / steps.step)
        if not 1 <= reach <= 2**_MOST_BITS:
            raise InvalidParameter(
                "P4",
                f"bound {norm} is not between 1 and 2**{_MOST_BITS} steps of {steps!r}.",
                why="sums of products must be exact integers, and a vector must fit the grid.",
                fix="leave grid out, or choose a step between bound / 2**20 and bound.",
            )
        set_fields(self, dimension=width, bound=norm, epsilon=price, grid=steps, reach=reach)
        third = price / 3
        set_fields(
            self,
            count=Laplace(sensitivity=1, epsilon=third),
            sums=Laplace(sensitivity=reach, epsilon=third),
            products=Laplace(sensitivity=reach**2, epsilon=third),
        )

    def __repr__(self) -> str:
        return write_call(
            self, dimension=self.dimension, bound=self.bound, epsilon=self.epsilon, grid=self.grid
        )

    @property
    def loss(self) -> Loss:
        """What the three parts cost together."""
        return self.count.loss + self.sums.loss + self.products.loss

    def release(self, rows: Any) -> NoisyMoments:
        """The noisy moments of the ``rows`` of a matrix."""
        vectors = self.enforce(rows)
        sums, products = _exact_sums(vectors, self.reach)
        upper = np.triu_indices(self.dimension)
        noisy = np.array(
            self.products.release([products[i][j] for i, j in zip(*upper, strict=True)])
        )
        matrix = np.zeros((self.dimension, self.dimension))
        matrix[upper] = np.ldexp(noisy.astype(np.float64), 2 * self.grid.exponent)
        matrix.T[upper] = matrix[upper]
        total = np.array(self.sums.release(sums)).astype(np.float64)
        return NoisyMoments(
            count=self.count.release(len(vectors)),
            sums=np.ldexp(total, self.grid.exponent),
            products=matrix,
        )

    def enforce(self, rows: Any) -> NDArray[np.int64]:
        """The ``rows`` in steps of the grid, none of L1 norm above the bound; not for publication.

        Every row's result depends on that row alone, and every row has one.
        """
        matrix = np.asarray(rows)
        if matrix.ndim != 2 or matrix.shape[1] != self.dimension or matrix.dtype.kind not in "iuf":
            raise InvalidParameter(
                "P6",
                f"the data must be a numeric matrix of {self.dimension} columns.",
                why="the bound is on vectors of that many entries.",
                fix=f"pass an array of shape (rows, {self.dimension}).",
            )
        doubles = matrix.astype(np.float64)
        doubles[~np.isfinite(doubles)] = 0.0
        with np.errstate(over="ignore"):
            steps = np.trunc(np.ldexp(doubles, -self.grid.exponent))
        whole_steps = np.clip(steps, -self.reach, self.reach).astype(np.int64)
        sizes = np.abs(whole_steps)
        norms = np.maximum(sizes.sum(axis=1, keepdims=True), self.reach)
        # Integer division rounds each entry towards zero, so the norm ends at or below reach.
        shrunk: NDArray[np.int64] = np.sign(whole_steps) * (sizes * self.reach // norms)
        return shrunk

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None
    ) -> MomentMargins:
        """How far off each part is, except with probability ``beta`` for all of them together.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        third = failure_share(beta, confidence) / 3
        pairs = self.dimension * (self.dimension + 1) // 2
        return MomentMargins(
            count=float(self.count.margin(third)),
            sums=float(self.sums.margin(third, coordinates=self.dimension) * self.grid.step),
            products=float(self.products.margin(third, coordinates=pairs) * self.grid.step**2),
        )

    def law(self, rows: Any) -> ProductLaw:
        """The exact law of the released integers: count, sums, upper triangle of the products.

        ``rows`` are those of ``release``.
        """
        vectors = self.enforce(rows)
        sums, products = _exact_sums(vectors, self.reach)
        upper = [products[i][j] for i in range(self.dimension) for j in range(i, self.dimension)]
        parts = (
            (self.count, [len(vectors)]),
            (self.sums, sums),
            (self.products, upper),
        )
        return ProductLaw(
            tuple(
                DiscreteLaplaceLaw(center, part.step_scale)
                for part, centers in parts
                for center in centers
            )
        )


def _default_grid(bound: Fraction) -> Grid:
    """The grid on which the bound is between 2**15 and 2**16 steps."""
    exponent = bound.numerator.bit_length() - bound.denominator.bit_length()
    if bound > Fraction(2) ** exponent:  # it is within a factor of two, either way
        exponent += 1
    return Grid(Fraction(2) ** (exponent - _DEFAULT_BITS))


def _exact_sums(vectors: NDArray[np.int64], reach: int) -> tuple[list[int], list[list[int]]]:
    """Sums and sums of products, exact.

    Doubles hold integers up to 2**53 exactly, and no partial sum of this many
    products of at most reach**2 is larger: any order of addition gives the
    same result, and fast matrix products can be used.
    """
    width = vectors.shape[1]
    sums, products = [0] * width, [[0] * width for _ in range(width)]
    rows_at_once = max(1, _EXACT // reach**2)
    for start in range(0, len(vectors), rows_at_once):
        part = vectors[start : start + rows_at_once].astype(np.float64)
        square = part.T @ part
        for i in range(width):
            sums[i] += int(part[:, i].sum())
            for j in range(width):
                products[i][j] += int(square[i, j])
    return sums, products
