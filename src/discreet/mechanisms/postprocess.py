"""Post-processing: whatever is done to an answer after its release is free.

A function of a released value, and of public knowledge, loses nothing more
(DR Proposition 2.1).  These functions take released numbers and never data:
a scalar gives a scalar, a list a list, a tuple a tuple, an array an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction, positive
from discreet.mechanisms.grid import match_kind

Doubles = NDArray[np.float64]
Released = TypeVar(
    "Released", bound="int | float | Fraction | list[Any] | tuple[Any, ...] | NDArray[Any]"
)
"""A released number, or several: what comes out is of the kind that went in."""


def clamp(released: Released, *, lower: Exact, upper: Exact) -> Released:
    """Each number ``released`` brought into [``lower``, ``upper``].

    >>> clamp([-4, 17, 250], lower=2, upper=99)
    [2, 17, 99]
    """
    low, high = fraction(lower, name="lower"), fraction(upper, name="upper")
    if low > high:
        raise InvalidParameter(
            "P4",
            f"lower {low} is above upper {high}.",
            why="no number lies between them.",
            fix="pass lower and upper in order.",
        )

    def one(number: Any) -> Any:
        if number < low:
            return math.ceil(low) if isinstance(number, int) else type(number)(low)
        if number > high:
            return math.floor(high) if isinstance(number, int) else type(number)(high)
        return number

    def every(array: NDArray[Any]) -> Any:
        if array.dtype.kind in "iu":
            return np.clip(array, math.ceil(low), math.floor(high))
        return np.clip(array, float(low), float(high))

    return _each(released, one, every)


def nonnegative(released: Released) -> Released:
    """Each number ``released``, or 0 where noise took it below.

    >>> nonnegative((-4, 17, 2.5))
    (0, 17, 2.5)
    """
    return _each(
        released, lambda number: max(number, type(number)(0)), lambda array: np.maximum(array, 0)
    )


def round_to(released: Released, *, step: Exact) -> Released:
    """Each number ``released`` at the nearest multiple of ``step``, halves to the even multiple.

    >>> round_to([1041, 977.5], step=25)
    [1050, 975.0]
    """
    width = positive(step, name="step")

    def one(number: Any) -> Any:
        nearest = round(fraction(number) / width) * width
        if isinstance(number, float):
            return float(nearest)
        return int(nearest) if nearest.denominator == 1 else nearest

    def every(array: NDArray[Any]) -> Any:
        if array.dtype.kind in "iu" and width.denominator == 1:
            below, rest = np.divmod(array, width.numerator)
            up = (2 * rest > width.numerator) | ((2 * rest == width.numerator) & (below % 2 == 1))
            return (below + up) * width.numerator
        return np.round(array / float(width)) * float(width)

    return _each(released, one, every)


def isotonic(released: ArrayLike, *, variances: ArrayLike | None = None) -> Doubles:
    """The closest non-decreasing sequence, in least squares weighted by 1 / variance.

    ``released`` is the sequence, ``variances`` are those of its numbers, equal unless given.

    Pool adjacent violators, in linear time.  For noisy counts of a sorted
    histogram or a cumulative count it only removes error.

    >>> isotonic([3, 8, 4, 9]).tolist()
    [3.0, 6.0, 6.0, 9.0]
    """
    values = _vector(released)
    spread = np.ones_like(values) if variances is None else _vector(variances)
    if spread.shape != values.shape or not np.all(spread > 0) or not np.isfinite(spread).all():
        raise _bad_variances("a positive and finite variance for every number")
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), (1 / spread).tolist(), strict=True):
        mean, heavy, length = value, weight, 1
        while blocks and blocks[-1][0] >= mean:
            older, lighter, before = blocks.pop()
            total = heavy + lighter
            mean, heavy = (mean * heavy + older * lighter) / total, total
            length += before
        blocks.append((mean, heavy, length))
    means, _, lengths = zip(*blocks, strict=True) if blocks else ((), (), ())
    return np.repeat(np.array(means, dtype=np.float64), np.array(lengths, dtype=np.int64))


def simplex(released: ArrayLike, *, total: float) -> Doubles:
    """The non-negative vector closest to ``released`` that adds up to ``total``, in least squares.

    >>> simplex([5, -2, 9], total=8).tolist()
    [2.0, 0.0, 6.0]
    """
    values = _vector(released)
    amount = float(positive(total, name="total"))
    if not values.size:
        raise InvalidParameter(
            "P5",
            "there is no number to bring to the total.",
            why="nothing adds up to a positive total.",
            fix="pass at least one number.",
        )
    down = np.sort(values)[::-1]
    excess = (np.cumsum(down) - amount) / np.arange(1, values.size + 1)
    kept = np.flatnonzero(down > excess)[-1]  # the first always is
    projected: Doubles = np.maximum(values - excess[kept], 0.0)
    return projected


def consistent(
    released: ArrayLike, *, parents: Sequence[int | None], variances: ArrayLike
) -> Doubles:
    """The numbers closest to ``released`` in which every parent is the sum of its children.

    ``parents[i]`` is the index of the node above node i, or ``None`` for a
    root.  Closest in least squares weighted by 1 / variance, which is the best
    linear unbiased estimate for independent noise of these ``variances``.  Variance
    0 marks what is publicly known, infinity a node that was not measured.

    Two passes: upwards, each node's own value is combined with the sum of its
    children, each weighted by 1 / variance; downwards, what a node differs from
    the sum of its children is shared among them in proportion to their
    variances.  (Hay, Rastogi, Miklau and Suciu 2010, for any tree and any
    variances.)

    >>> consistent([40, 50, 110], parents=[2, 2, None], variances=[4, 4, 2]).tolist()
    [48.0, 58.0, 106.0]
    """
    values, spread = _vector(released), _vector(variances, infinite=True)
    children, order = _tree(parents, values.size)
    if spread.shape != values.shape or not np.all(spread >= 0):
        raise _bad_variances("a variance of at least 0 for every number")
    if any(math.isinf(spread[node]) and not children[node] for node in order):
        raise _bad_variances("a finite variance for every leaf")
    estimate, doubt = values.copy(), spread.copy()
    for node in reversed(order):
        if children[node]:
            below = float(estimate[children[node]].sum())
            loose = float(doubt[children[node]].sum())
            estimate[node], doubt[node] = _combine(
                (float(values[node]), float(spread[node])), (below, loose)
            )
    for node in order:
        if children[node]:
            below = float(estimate[children[node]].sum())
            loose = float(doubt[children[node]].sum())
            share = doubt[children[node]] / loose if loose else 1 / len(children[node])
            estimate[children[node]] += (estimate[node] - below) * share
    return estimate


def _combine(own: tuple[float, float], below: tuple[float, float]) -> tuple[float, float]:
    """Two independent estimates of one number, weighted by 1 / variance, and what remains."""
    (value, spread), (total, loose) = own, below
    if spread == 0 or loose == 0 or math.isinf(spread):
        return own if spread == 0 else below
    return (value * loose + total * spread) / (spread + loose), spread * loose / (spread + loose)


def _tree(parents: Sequence[int | None], count: int) -> tuple[list[list[int]], list[int]]:
    """The children of every node, and an order in which parents come first."""
    children: list[list[int]] = [[] for _ in range(count)]
    order = []
    sound = len(parents) == count
    for node, parent in enumerate(parents if sound else ()):
        if parent is None:
            order.append(node)
        elif 0 <= parent < count:
            children[parent].append(node)
    for node in order:  # grows while it is read: breadth first
        order.extend(children[node])
    if not sound or len(order) != count:
        raise InvalidParameter(
            "P4",
            "parents must give every number the index of the node above it, or None for a root.",
            why="sums around a loop, or of missing nodes, cannot be made consistent.",
            fix="pass one entry for each number, such as parents=[None, 0, 0].",
        )
    return children, order


def _each(
    released: Released, one: Callable[[Any], Any], every: Callable[[NDArray[Any]], Any]
) -> Released:
    found: Any
    if isinstance(released, np.ndarray):
        found = every(released)
    elif isinstance(released, list | tuple):
        found = match_kind(released, (one(number) for number in released))
    else:
        found = one(released)
    return cast(Released, found)


def _vector(numbers: ArrayLike, *, infinite: bool = False) -> Doubles:
    values = np.array(numbers, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any() or not (infinite or np.isfinite(values).all()):
        raise InvalidParameter(
            "P6",
            "the numbers must be one flat sequence of finite numbers.",
            why="a number that is missing has no closest consistent value.",
            fix="pass a list or a one-dimensional array of released numbers.",
        )
    return values


def _bad_variances(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"there must be {what}.",
        why="numbers are weighted by how much noise they carry.",
        fix="pass mechanism.variance for every number that it released.",
    )


__all__ = ["clamp", "consistent", "isotonic", "nonnegative", "round_to", "simplex"]
