"""Distance from a property: how many rows stand in the way of a statement being true.

For every property, the least number of rows to add or remove until the data
have it changes by at most one when one row is added or removed (DMNS 3.2), so
it can be published with little noise.  Five properties are worked out here;
each treats a row that is not a number (NaN, text) as if it were absent, which
is a rule about that row alone and so keeps the sensitivity.
"""

from __future__ import annotations

import math
import numbers
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.law import DiscreteLaplaceLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.exact.numbers import Exact, failure_share, fraction, nonnegative, whole
from discreet.mechanisms.grid import require_names, set_fields, write_call
from discreet.mechanisms.laplace import Laplace

_LARGEST = sys.float_info.max


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PropertyDistance:
    """Publish how far the data are from having a property.

    Definition:
        M(x) = d(x) + Z, where d(x), the ``distance``, is the least number of
        rows to add or remove until x has the property and P(Z = z) is
        proportional to exp(-|z| epsilon / rows_per_unit).

    Guarantee:
        d changes by at most one with every row (any shortest repair of x, plus
        the one row, repairs its neighbour), so M is ``epsilon``-differentially
        private if one unit has at most ``rows_per_unit`` rows.

    Accuracy:
        ``margin(beta)``, exactly as for ``Laplace``.

    Reference:
        DMNS 3.2, distance from a property.

    Example:
        >>> sortedness = PropertyDistance(distance_to_sorted, epsilon="1/2", rows_per_unit=3)
        >>> sortedness.loss.epsilon, sortedness.margin("0.05")
        (Fraction(1, 2), 18)
        >>> type(sortedness.release([5, 2, 3, 9, 4]))
        <class 'int'>
    """

    distance: Callable[[Any], int]
    epsilon: Fraction
    rows_per_unit: int
    count: Laplace = field(init=False, compare=False)

    def __init__(
        self, distance: Callable[[Any], int], *, epsilon: Exact, rows_per_unit: int = 1
    ) -> None:
        rows = whole(rows_per_unit, name="rows_per_unit", least=1)
        count = Laplace(sensitivity=rows, epsilon=epsilon)
        set_fields(self, distance=distance, rows_per_unit=rows, epsilon=count.epsilon, count=count)

    def __repr__(self) -> str:
        return write_call(
            self, distance=self.distance, epsilon=self.epsilon, rows_per_unit=self.rows_per_unit
        )

    @property
    def loss(self) -> Loss:
        """What one release costs one unit."""
        return self.count.loss

    def release(self, rows: Any) -> int:
        """The noisy distance of ``rows``; below zero by chance when they have the property."""
        return self.count.release(int(self.distance(rows)))  # type: ignore[no-any-return]

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, the answer is off by no more.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        beta = failure_share(beta, confidence)
        return self.count.margin(beta)

    def law(self, rows: Any) -> DiscreteLaplaceLaw | ProductLaw:
        """The exact law of the noisy distance of ``rows``."""
        return self.count.law(int(self.distance(rows)))


def distance_to_sorted(values: Iterable[Any]) -> int:
    """How many entries to remove until a sequence does not decrease; adding entries never helps.

    ``values`` are the entries in their order.

    What remains is the longest non-decreasing subsequence, found by patience
    sorting in n log n steps.

    >>> distance_to_sorted([5, 2, 3, 9, 4, 4])
    2
    """
    tops: list[Any] = []
    count = 0
    for value in _numbers(values):
        count += 1
        index = bisect_right(tops, value)
        tops[index : index + 1] = [value]
    return count - len(tops)


def distance_to_maximum(values: Iterable[Any], *, bound: Exact) -> int:
    """How many entries to remove until none is above ``bound``: those above it.

    ``values`` are the entries.

    >>> distance_to_maximum([5, 2, 31, 9, 4], bound="8.5")
    2
    """
    limit = fraction(bound, name="bound")
    return sum(1 for value in _numbers(values) if value > limit)


def distance_to_clusters(values: Iterable[Any], *, clusters: int, width: Exact) -> int:
    """How many points on a line to remove until ``clusters`` intervals of ``width`` hold the rest.

    ``values`` are the points.

    Intervals may start at points; so the most points that k intervals cover is
    found from left to right: with the interval that ends at a point, or without.

    >>> distance_to_clusters([2, 3, 4, 30, 31, 57, 90], clusters=2, width=3)
    2
    """
    most = whole(clusters, name="clusters", least=1)
    reach = nonnegative(width, name="width")
    points = sorted(_numbers(values))
    count = len(points)
    if not count:
        return 0
    firsts, first = np.empty(count, dtype=np.int64), 0
    for last, point in enumerate(points):
        while Fraction(point) - Fraction(points[first]) > reach:
            first += 1
        firsts[last] = first
    sizes = np.arange(count) - firsts + 1
    covered = np.zeros(count + 1, dtype=np.int64)
    for _ in range(min(most, count)):
        here = covered[firsts] + sizes
        covered = np.concatenate(([0], np.maximum.accumulate(here)))
    return count - int(covered[count])


def distance_to_dependency(pairs: Iterable[tuple[Any, Any]]) -> int:
    """How many ``pairs`` to remove until the second is a function of the first.

    Of the pairs with one first value, those with its commonest second value may stay.

    >>> towns = [("1010", "Wien"), ("1010", "Wein"), ("1010", "Wien"), ("4020", "Linz")]
    >>> distance_to_dependency(towns)
    1
    """
    together: dict[Any, Counter[Any]] = {}
    for one, other in pairs:
        together.setdefault(one, Counter())[other] += 1
    return sum(found.total() - max(found.values()) for found in together.values())


def distance_to_order(pairs: Iterable[tuple[Any, Any]]) -> int:
    """How many ``pairs`` to remove until what has a greater first value has no smaller second one.

    Pairs whose first values are equal may have any second values.

    >>> distance_to_order([(3, 30), (1, 10), (2, 90), (2, 20), (4, 40)])
    1
    """
    listed = sorted(pairs)
    places = {value: place for place, value in enumerate(sorted({other for _, other in listed}))}
    return distance_to_sorted(places[other] for _, other in listed)


def _numbers(values: Iterable[Any]) -> list[Any]:
    """The numbers among the values, comparable with each other exactly."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return [number for number in map(_number, listed) if number is not None]


def _number(value: Any) -> int | float | Fraction | None:
    """Total: what is no number is left out, and infinities become the largest double."""
    if isinstance(value, numbers.Rational):
        return int(value) if isinstance(value, numbers.Integral) else Fraction(value)
    if isinstance(value, Decimal):
        if value.is_finite():
            return Fraction(value)
        return None if value.is_nan() else math.copysign(_LARGEST, value)
    if isinstance(value, numbers.Real):
        double = float(value)
        return None if math.isnan(double) else min(max(double, -_LARGEST), _LARGEST)
    return None
