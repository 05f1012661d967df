"""Numbers that one person moves further than the mechanism was told.

Every pipeline here ends in a sound mechanism; what is wrong is the number that
enters it.  So the noise looks right, no test of its law finds anything, and a
replay with frozen noise finds it at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.mechanisms import Gaussian, Grid, Laplace

EPSILON = Fraction(1, 2)
LOW, HIGH = 0, 10
_HALF = Fraction(1, 2)


def _clip(value: int, low: int = LOW, high: int = HIGH) -> int:
    return min(max(value, low), high)


def _noisy(total: int, sensitivity: int = HIGH) -> Any:
    return Laplace(sensitivity=sensitivity, epsilon=EPSILON).release(total)


def _clipped_sum(values: Iterable[int]) -> Any:
    return _noisy(sum(_clip(value) for value in values))


def _square_first(values: Sequence[int]) -> Any:
    return _noisy(sum(_clip(value) ** 2 for value in values))


def _square_last(values: Sequence[int]) -> Any:
    return _noisy(sum(_clip(value**2) for value in values))


def _kept_in_name_only(values: Sequence[int]) -> Any:
    clipped = [_clip(value) for value in values]
    return _noisy(sum(values) if clipped else 0)


# --- what a mean divides by -----------------------------------------------------------------


def _mean_by_true_size(values: Sequence[int]) -> Any:
    """The sensitivity of a mean, with the size of the table taken as if it were public."""
    grid, size = Grid("1/64"), max(1, len(values))
    mean = Fraction(sum(_clip(value) for value in values), size)
    return Laplace(sensitivity=Fraction(HIGH, size), epsilon=EPSILON, grid=grid).release(mean)


def _mean_by_noisy_size(values: Sequence[int]) -> Any:
    total = Laplace(sensitivity=HIGH, epsilon=EPSILON / 2).release(sum(map(_clip, values)))
    size = Laplace(sensitivity=1, epsilon=EPSILON / 2).release(len(values))
    return Fraction(total, max(1, size))


def _bounds_from_data(values: Sequence[int]) -> Any:
    low, high = min(values), max(values)
    return _noisy(sum(_clip(value, low, high) for value in values), max(abs(low), abs(high)))


# --- machine arithmetic ---------------------------------------------------------------------

_INT = 2**31 - 1


def _wrapping(values: Sequence[int]) -> Any:
    total = int(np.asarray(values, dtype=np.int32).sum(dtype=np.int32))
    return _noisy(total, _INT)


def _saturating(values: Sequence[int]) -> Any:
    return _noisy(min(sum(values), _INT), _INT)


_P = 4
_CLOSE = (0.5 * (1 + 2.0 ** (_P - 53) - 2.0**-52), 0.5 * (1 + 2.0 ** (_P - 53)))
_FINE = Grid(Fraction(1, 2**58))


def _close_sum(total: float | Fraction) -> Any:
    width = Fraction(_CLOSE[1]) - Fraction(_CLOSE[0])
    return Laplace(sensitivity=width, epsilon=EPSILON, grid=_FINE).release(total)


def _float_sum(values: Sequence[float]) -> Any:
    total = 0.0
    for value in values:
        total += min(max(value, _CLOSE[0]), _CLOSE[1])
    return _close_sum(total)


def _exact_sum(values: Sequence[float]) -> Any:
    return _close_sum(sum(Fraction(min(max(v, _CLOSE[0]), _CLOSE[1])) for v in values))


# --- vectors --------------------------------------------------------------------------------


def _counts(people: Sequence[Sequence[str]], most: int | None = None) -> list[int]:
    """How many people name each of four public topics; each person at most ``most`` of them."""
    kept = [topic for person in people for topic in sorted(person)[:most]]
    return [kept.count(topic) for topic in "abcd"]


def _per_group_bound(people: Sequence[Sequence[str]]) -> Any:
    return Laplace(sensitivity=1, epsilon=EPSILON).release(_counts(people))


def _total_bound(people: Sequence[Sequence[str]]) -> Any:
    return Laplace(sensitivity=3, epsilon=EPSILON).release(_counts(people, most=3))


def _root_of_four(people: Sequence[Sequence[str]]) -> Any:
    return Laplace(sensitivity=2, epsilon=EPSILON).release(_counts(people))


def _four(people: Sequence[Sequence[str]]) -> Any:
    return Laplace(sensitivity=4, epsilon=EPSILON).release(_counts(people))


def _one_coordinate(people: Sequence[Sequence[str]]) -> Any:
    return Gaussian(sensitivity=1, rho=_HALF).release(_counts(people))


def _all_coordinates(people: Sequence[Sequence[str]]) -> Any:
    return Gaussian(sensitivity_squared=4, rho=_HALF).release(_counts(people))


def _histogram(sensitivity: int, rows: Sequence[str]) -> Any:
    counts = [rows.count(topic) for topic in "abcd"]
    return Laplace(sensitivity=sensitivity, epsilon=EPSILON).release(counts)


def _rows(limit: int | None, sensitivity: int, rows: Sequence[int]) -> Any:
    """Rows counted, each belonging to the person it names; at most ``limit`` of each."""
    count = sum(min(rows.count(one), limit or len(rows)) for one in set(rows))
    return _noisy(count, sensitivity)


def _overlapping_blocks(rows: Sequence[int]) -> Any:
    """Sample and aggregate, with blocks that share rows: one row is in three of them."""
    blocks = [rows[start : start + 3] for start in range(len(rows) - 2)]
    return _noisy(sum(max(block) > HIGH for block in blocks), 1)


def _disjoint_blocks(rows: Sequence[int]) -> Any:
    blocks = [rows[start : start + 3] for start in range(0, len(rows), 3)]
    return _noisy(sum(max(block) > HIGH for block in blocks), 1)


_PURE = Loss.pure(EPSILON)
_FEW = [3, 4, 5, 2]

ANIMALS = (
    Animal(
        "unclipped sum",
        "sums",
        "the values are never clipped, so one person can add any amount",
        "Casacuberta, Shoemate, Vadhan, Wagaman (2022), survey of libraries",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 90]),
        lambda values: _noisy(sum(values)),
        _clipped_sum,
    ),
    Animal(
        "clip after the sum",
        "sums",
        "the total is clipped instead of what each person adds to it",
        "PipelineDP issue 551: a vector sum clipped after the whole group was added up",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 70]),
        lambda values: _noisy(_clip(sum(values), 0, 100)),
        _clipped_sum,
    ),
    Animal(
        "clipped in name only",
        "sums",
        "clipped values are computed, and the raw ones are summed",
        "a slip known from reviews: the clipped column is computed and the original one used",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 55]),
        _kept_in_name_only,
        _clipped_sum,
    ),
    Animal(
        "bounds applied before the expression",
        "sums",
        "x is clipped to 0 ... 10 and then squared, with the sensitivity of x",
        "smartnoise-sdk issues 201 and 203: clamping below the expression",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 9]),
        _square_first,
        _square_last,
    ),
    Animal(
        "upper minus lower under add/remove",
        "sums",
        "a person who appears adds up to 60, not the 10 between the bounds 50 and 60",
        "the sensitivity for change-one neighbours under add/remove ones",
        Check.REPLAY,
        _PURE,
        ([50, 55], [50, 55, 57]),
        lambda values: _noisy(sum(_clip(value, 50, 60) for value in values), 10),
        lambda values: _noisy(sum(_clip(value, 50, 60) for value in values), 60),
    ),
    Animal(
        "rounding before the noise",
        "sums",
        "the total is rounded to tens first, which moves it by ten for a person who adds three",
        "Casacuberta et al. (2022), rounding; Mironov (2012)",
        Check.REPLAY,
        _PURE,
        ([3, 3, 3, 3], [3, 3, 3, 3, 3]),
        lambda values: _noisy(10 * ((sum(_clip(v, 0, 3) for v in values) + 5) // 10), 3),
        lambda values: _noisy(sum(_clip(v, 0, 3) for v in values), 3),
    ),
    Animal(
        "mean with the true size",
        "sums",
        "the sensitivity of a mean is divided by a size that is itself secret",
        "smartnoise-core issues 355 and 356: sensitivity of a mean from the current n",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 9]),
        _mean_by_true_size,
        _mean_by_noisy_size,
    ),
    Animal(
        "bounds taken from the data",
        "sums",
        "the least and greatest value of the data become the public bounds",
        "diffprivlib issue 20: bounds not given are read from the data",
        Check.REPLAY,
        _PURE,
        (_FEW, [*_FEW, 80]),
        _bounds_from_data,
        _clipped_sum,
    ),
    Animal(
        "integer wrap-around",
        "sums",
        "a 32-bit total wraps around, and one person moves it by four thousand million",
        "Casacuberta et al. (2022), modular addition",
        Check.REPLAY,
        _PURE,
        ([_INT], [_INT, 1]),
        _wrapping,
        _saturating,
    ),
    Animal(
        "sum in doubles",
        "sums",
        "rounding of a float sum moves it sixteen times as far as the two bounds are apart",
        "Casacuberta et al. (2022), repeated rounding",
        Check.REPLAY,
        _PURE,
        ([0.0] * 2**_P + [0.0], [0.0] * 2**_P + [1.0]),
        _float_sum,
        _exact_sum,
        relation=CHANGED,
    ),
    Animal(
        "bound per group used as the total",
        "vectors",
        "one person is in up to three groups, and the noise is for one",
        "Wilson et al. (2020): bound per partition without the bound across partitions",
        Check.REPLAY,
        _PURE,
        ([["a"], ["b"]], [["a"], ["b"], ["a", "c", "d"]]),
        _per_group_bound,
        _total_bound,
    ),
    Animal(
        "L2 in, L1 out",
        "vectors",
        "Laplace noise is scaled to the Euclidean length of what one person moves",
        "DMNS, section 3: the sensitivity is in L1",
        Check.REPLAY,
        _PURE,
        ([["a"]], [["a"], ["a", "b", "c", "d"]]),
        _root_of_four,
        _four,
    ),
    Animal(
        "sensitivity of one coordinate",
        "vectors",
        "Gaussian noise on four counts is scaled to what one of them moves",
        "Dwork and Roth (2014), Theorem 3.22: the sensitivity is in L2 over the whole vector",
        Check.REPLAY,
        Loss.concentrated(_HALF),
        ([["a"]], [["a"], ["a", "b", "c", "d"]]),
        _one_coordinate,
        _all_coordinates,
    ),
    Animal(
        "a changed row counted once",
        "vectors",
        "a person who moves from one bin to another changes two of them",
        "Dwork and Roth (2014), section 3.3 against bounded neighbours",
        Check.REPLAY,
        _PURE,
        (["a", "b", "c"], ["a", "b", "d"]),
        lambda rows: _histogram(1, rows),
        lambda rows: _histogram(2, rows),
        relation=CHANGED,
    ),
    Animal(
        "max group change k where it is 2k",
        "vectors",
        "a person who changes three of their rows moves six counts, not three",
        "group-by under change-one neighbours: what leaves one group enters another",
        Check.REPLAY,
        _PURE,
        (["a"] * 3, ["b"] * 3),
        lambda rows: _histogram(3, rows),
        lambda rows: _histogram(6, rows),
        relation=CHANGED,
    ),
    Animal(
        "many rows charged as one",
        "vectors",
        "one person owns four rows, and the noise hides one row",
        "Dwork and Roth (2014), Theorem 2.2 (group privacy) forgotten",
        Check.REPLAY,
        _PURE,
        ([1, 2, 2], [1, 2, 2, 7, 7, 7, 7]),
        lambda rows: _rows(None, 1, rows),
        lambda rows: _rows(2, 2, rows),
    ),
    Animal(
        "overlapping blocks",
        "vectors",
        "sample and aggregate with blocks that share rows: one row sways three votes",
        "Nissim, Raskhodnikova, Smith (2007), section 4, partition replaced by windows",
        Check.REPLAY,
        _PURE,
        ([3, 4, 5, 5, 4, 3], [3, 4, 90, 5, 4, 3]),
        _overlapping_blocks,
        _disjoint_blocks,
        relation=CHANGED,
    ),
)

__all__ = ["ANIMALS"]
