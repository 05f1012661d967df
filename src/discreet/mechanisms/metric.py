"""Noise in a metric space: the closer an outcome is to the truth, the likelier."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose
from discreet.exact.numbers import Exact, failure_share, nonnegative, positive, whole
from discreet.exact.search import least_integer
from discreet.mechanisms.grid import is_sequence, match_kind, require_names, set_fields, write_call
from discreet.noise.table import Table, draw_array


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class MetricSpace:
    """Finitely many points and the distance of every two of them; checked to be a metric.

    ``distances`` has a row for each of ``points``, with its distance from each in their order.

    >>> towns = MetricSpace.of(("A", "B", "C"), lambda p, q: 4 * abs(ord(p) - ord(q)))
    >>> towns.distance("A", "C"), towns.homogeneous
    (Fraction(8, 1), False)
    """

    points: tuple[Hashable, ...]
    unit: Fraction
    """Every distance is a whole number of these."""
    multiples: tuple[tuple[int, ...], ...]
    homogeneous: bool
    """Whether every point has the same distances to the others, in some order."""
    _indices: dict[Hashable, int] = field(init=False, compare=False)

    def __init__(self, points: Iterable[Hashable], distances: Sequence[Sequence[Exact]]) -> None:
        names = tuple(points)
        indices = {point: index for index, point in enumerate(names)}
        if not names:
            raise InvalidParameter(
                "P5",
                "a metric space needs at least one point.",
                why="there is no outcome to release.",
                fix="list the public points that an answer may be.",
            )
        rows = _square(distances, len(names))
        if len(indices) != len(names):
            raise _not_a_metric("a point is listed twice")
        unit, matrix = _count_decimals(rows) or _count_steps(_exact_matrix(rows))
        _check_metric(matrix)
        multiples = tuple(map(tuple, matrix.tolist()))
        profile = sorted(multiples[0])
        set_fields(self, points=names, unit=unit, multiples=multiples, _indices=indices)
        set_fields(self, homogeneous=all(sorted(row) == profile for row in multiples))

    @classmethod
    def of(cls, points: Iterable[Hashable], distance: Callable[[Any, Any], Exact]) -> MetricSpace:
        """The space of ``points`` whose distances are ``distance(p, q)``."""
        names = tuple(points)
        return cls(names, [[distance(p, q) for q in names] for p in names])

    def __repr__(self) -> str:
        return f"MetricSpace({len(self.points)} points, homogeneous={self.homogeneous})"

    def index_of(self, point: Hashable) -> int:
        """The number of ``point``, refused (and not named) if it is not in the space."""
        try:
            found = self._indices.get(point)
        except TypeError:
            found = None
        if found is None:
            raise InvalidParameter(
                "P6",
                "the value to release is not a point of the metric space.",
                why="the noise is defined between the declared points only.",
                fix="declare every point that the function can take, from public knowledge.",
            )
        return found

    def distance(self, first: Hashable, second: Hashable) -> Fraction:
        """The distance of two points, ``first`` and ``second``."""
        return self.multiples[self.index_of(first)][self.index_of(second)] * self.unit


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class MetricNoise:
    """Publish a point of a finite metric ``space``, at a random distance from the true one.

    Definition:
        P(M(x) = y) is proportional to exp(-rate * d(y, f(x))), with
        rate = epsilon / (2 sensitivity), or epsilon / sensitivity where the
        normaliser is the same at every point.

    Guarantee:
        If d(f(x), f(y)) <= ``sensitivity`` for neighbours x and y, M is
        ``epsilon``-differentially private.  The factor 2 is dropped exactly where
        Remark 3.1 allows: normalisers of two points are equal if and only if
        the two have the same distances to all points (Lemma 2).

    Accuracy:
        ``margin`` is the least distance that is exceeded with probability at
        most beta, wherever the true point is; from the exact law.

    Reference:
        DMNS Theorem 3.7 and Remark 3.1, with the minus sign that its density
        and equation (6) lack; docs/proofs/metric.md.

    Example:
        >>> cycle = MetricSpace.of(range(12), lambda p, q: min((p - q) % 12, (q - p) % 12))
        >>> month = MetricNoise(space=cycle, sensitivity=2, epsilon=3)
        >>> month.rate, month.loss.epsilon
        (Fraction(3, 2), Fraction(3, 1))
        >>> month.release(7) in range(12)
        True
        >>> month.margin("0.05")
        Fraction(2, 1)
    """

    space: MetricSpace
    sensitivity: Fraction
    epsilon: Fraction
    rate: Fraction = field(init=False, compare=False)
    loss: Loss = field(init=False, compare=False)

    def __init__(self, *, space: MetricSpace, sensitivity: Exact, epsilon: Exact) -> None:
        bound = positive(sensitivity, name="sensitivity")
        price = positive(epsilon, name="epsilon")
        rate = price / bound if space.homogeneous else price / (2 * bound)
        # With the factor 2 this is the exponential mechanism with score -d, of bounded range
        # epsilon; without it the log-ratios of two laws span up to 2 epsilon.
        loss = Loss.pure(price) if space.homogeneous else Loss.exponential(price)
        set_fields(self, space=space, sensitivity=bound, epsilon=price, rate=rate, loss=loss)

    def __repr__(self) -> str:
        return write_call(
            self, space=self.space, sensitivity=self.sensitivity, epsilon=self.epsilon
        )

    def release(self, value: Hashable) -> Hashable:
        """A point, likelier the closer it is to ``value``."""
        row = self.space.multiples[self.space.index_of(value)]
        return self.space.points[_row_table(row, self.rate * self.space.unit).draw_one()]

    def law(self, value: Hashable) -> FiniteLaw:
        """The exact law of the point that is released for ``value``."""
        row = self.space.multiples[self.space.index_of(value)]
        step = self.rate * self.space.unit

        def weights() -> list[arb]:
            return [ball(-step * distance).exp() for distance in row]

        return FiniteLaw.proportional(self.space.points, weights)

    def margin(self, beta: Exact | None = None, *, confidence: Exact | None = None) -> Fraction:
        """The least distance exceeded with probability at most ``beta``, at the worst point.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        allowed = failure_share(beta, confidence)
        rows = {tuple(sorted(row)) for row in self.space.multiples}
        return max(self._reach(row, allowed) for row in rows) * self.space.unit

    def _reach(self, row: tuple[int, ...], beta: Fraction) -> int:
        step = self.rate * self.space.unit

        def excess(index: int) -> arb:
            weights = [ball(-step * distance).exp() for distance in row]
            far = sum((w for w, d in zip(weights, row, strict=True) if d > row[index]), arb(0))
            return far - ball(beta) * sum(weights, arb(0))

        # Within the last distance for certain: nothing is further away.
        index = least_integer(
            lambda index: enclose(lambda: excess(index), bits=1)[1] <= 0, holds_at=len(row) - 1
        )
        return row[index]


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class HammingCube:
    """Publish a string of bits, each flipped with probability 1 / (1 + exp(epsilon / sensitivity)).

    Definition:
        M(x) flips every bit of f(x) independently with that probability: the
        noise of ``MetricNoise`` for the number of bits in which two strings
        differ, at rate epsilon / sensitivity.

    Guarantee:
        If at most ``sensitivity`` bits of f change when one unit is added or
        removed, M is ``epsilon``-differentially private.  All points look alike, so
        Remark 3.1 applies and the factor 2 is dropped.

    Accuracy:
        The number of flipped bits is binomial; ``margin`` is its exact
        quantile.

    Reference:
        DMNS 3.3, with the right probability: about 1/2 - epsilon / (4
        sensitivity), where the text has 1/2 - epsilon / (2 sensitivity), which
        costs twice the epsilon; docs/proofs/metric.md.

    Example:
        >>> tags = HammingCube(sensitivity=3, epsilon=2)
        >>> round(tags.flip, 6)
        0.339244
        >>> tags.loss.epsilon
        Fraction(2, 1)
        >>> len(tags.release([True, False, True, True]))
        4
        >>> tags.margin("0.05", dimension=200)
        79
    """

    sensitivity: int
    epsilon: Fraction
    flip: float = field(init=False, compare=False)
    """The probability that a bit is flipped, to the nearest double."""
    loss: Loss = field(init=False, compare=False)

    def __init__(self, *, sensitivity: int, epsilon: Exact) -> None:
        bits = whole(sensitivity, name="sensitivity", least=1)
        price = positive(epsilon, name="epsilon")
        low, high = enclose(lambda: _flip(price / bits))
        # One unit's bits are that many independent randomized responses.
        loss = bits * Loss.randomized_response(price / bits)
        set_fields(self, sensitivity=bits, epsilon=price, flip=float((low + high) / 2), loss=loss)

    def __repr__(self) -> str:
        return write_call(self, sensitivity=self.sensitivity, epsilon=self.epsilon)

    def release(self, value: Any) -> Any:
        """The bits of ``value``, some of them flipped: a list, tuple or array of 0s and 1s."""
        bits = _bits(value)
        table = _flip_table(self.epsilon / self.sensitivity)
        noisy = bits.reshape(-1) ^ draw_array(bits.size, table.fill)
        if isinstance(value, np.ndarray):
            return noisy.reshape(bits.shape).astype(value.dtype)
        kinds = zip(noisy, value, strict=True)
        return match_kind(value, (bool(x) if isinstance(one, bool) else int(x) for x, one in kinds))

    def law(self, value: Any) -> ProductLaw:
        """The exact law of the release of the bits of ``value``: independent bits."""
        rate = self.epsilon / self.sensitivity

        def coin(bit: int) -> FiniteLaw:
            return FiniteLaw((bit, 1 - bit), lambda: [1 - _flip(rate), _flip(rate)])

        return ProductLaw(tuple(coin(int(bit)) for bit in _bits(value).reshape(-1)))

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, dimension: int
    ) -> int:
        """The least m such that, except with probability ``beta``, at most m bits are flipped.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``dimension`` is how many bits there
        are.
        """
        allowed = failure_share(beta, confidence)
        length = whole(dimension, name="dimension", least=1)
        rate = self.epsilon / self.sensitivity

        def excess(most: int) -> arb:
            # P(binomial > most) is a regularised incomplete beta function.
            return _flip(rate).beta_lower(most + 1, length - most, True) - ball(allowed)

        # More than all of them are never flipped.
        return least_integer(
            lambda most: enclose(lambda: excess(most), bits=1)[1] <= 0, holds_at=length
        )


def _flip(rate: Fraction) -> arb:
    return 1 / (1 + ball(rate).exp())


@lru_cache(maxsize=128)
def _flip_table(rate: Fraction) -> Table:
    def cumulatives() -> Iterator[arb]:
        yield _flip(rate)

    return Table(cumulatives, lambda position: 1 - position)


@lru_cache(maxsize=256)
def _row_table(row: tuple[int, ...], step: Fraction) -> Table:
    """Places in proportion to exp(-step * distance)."""

    def cumulatives() -> Iterator[arb]:
        weights = [ball(-step * distance).exp() for distance in row]
        total, below = sum(weights, arb(0)), arb(0)
        for weight in weights[:-1]:
            below += weight
            yield below / total

    return Table(cumulatives, lambda position: position)


def _bits(value: Any) -> NDArray[np.int64]:
    if not isinstance(value, np.ndarray) and not is_sequence(value):
        raise _not_bits()
    array = value if isinstance(value, np.ndarray) else np.array(list(value))
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind in "iu" and int(array.min()) >= 0 and int(array.max()) <= 1:
        return array.astype(np.int64)
    raise _not_bits()


def _not_bits() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "the value to release must be a list, tuple or array of bits.",
        why="flipping hides bits, and nothing else.",
        fix="encode the value as booleans, or as 0s and 1s.",
    )


def _square(distances: Sequence[Sequence[Exact]], count: int) -> list[list[Any]]:
    try:
        rows = [list(row) for row in distances]
    except TypeError:
        raise InvalidParameter(
            "P4",
            "the distances of a metric space are not a matrix.",
            why="every pair of points needs its distance.",
            fix="pass one row for every point; MetricSpace.of(points, distance) asks a function.",
        ) from None
    if len(rows) != count or any(len(row) != count for row in rows):
        raise InvalidParameter(
            "P4",
            f"{count} points need a matrix of {count} by {count} distances.",
            why="a missing distance leaves the guarantee undefined for that pair.",
            fix="pass one row for every point, in the order of the points.",
        )
    return rows


def _exact_matrix(rows: list[list[Any]]) -> Sequence[Sequence[int | Fraction]]:
    kinds = {type(distance) for row in rows for distance in row}
    if kinds == {int} and all(min(row) >= 0 for row in rows):
        return rows  # whole numbers are their own fractions
    # Many pairs are equally far apart: each distance is read once.
    known: dict[tuple[type, Exact], Fraction] = {}

    def read(distance: Exact) -> Fraction:
        try:
            found = known.get((type(distance), distance))
        except TypeError:  # what cannot be hashed is no distance, and refused as such
            return nonnegative(distance, name="a distance")
        if found is None:
            found = known[type(distance), distance] = nonnegative(distance, name="a distance")
        return found

    return tuple(tuple(read(distance) for distance in row) for row in rows)


def _count_decimals(rows: list[list[Any]]) -> tuple[Fraction, NDArray[Any]] | None:
    """The same as ``_count_steps`` for floats, as the decimals that they print as; None for others.

    Half a million different ones are too many to make a fraction of each: they are printed, and
    read as decimals of 38 digits, all at once; None, too, where they need more digits.
    """
    if any(set(map(type, row)) != {float} for row in rows):
        return None
    matrix = np.array(rows)
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        return None  # to be refused by name
    different, place = matrix.ravel(), np.arange(matrix.size)
    if (matrix == matrix.T).all():  # each pair once
        upper = np.triu_indices(len(matrix))
        different = matrix[upper]
        index = np.zeros(matrix.shape, dtype=np.int64)
        index[upper] = np.arange(len(different))
        place = np.maximum(index, index.T)
    read = _read_decimals(different)
    if read is None:
        return None
    steps, places = read
    over = int(np.gcd.reduce(steps)) or 1
    return Fraction(over, 10**places), (steps // over)[place].reshape(matrix.shape)


def _read_decimals(values: NDArray[np.float64]) -> tuple[NDArray[Any], int] | None:
    """Each as a whole number over one power of ten, and which; None if 38 digits do not hold it.

    >>> steps, places = _read_decimals(np.array([0.125, 3.5]))
    >>> [Fraction(int(step), 10**places) for step in steps]
    [Fraction(1, 8), Fraction(7, 2)]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    written, whole_digits = pc.cast(pa.array(values), pa.string()), len(str(int(values.max())))
    for digits in (18, 38):  # what 64 bits hold, and all that there are
        if whole_digits > digits:
            continue
        places = digits - whole_digits
        try:
            read = pc.cast(written, pa.decimal128(38, places))
        except pa.ArrowInvalid:  # some have more places
            continue
        words = np.frombuffer(read.buffers()[1], dtype=np.uint64).reshape(-1, 2)
        if digits == 18:
            return words[:, 0].astype(np.int64), places
        return words[:, 1].astype(object) * 2**64 + words[:, 0].astype(object), places
    return None


def _count_steps(
    matrix: Sequence[Sequence[int | Fraction]],
) -> tuple[Fraction, NDArray[Any]]:
    """The largest unit of which every distance is a whole number, and these numbers."""
    under = math.lcm(*{distance.denominator for row in matrix for distance in row})
    steps: Sequence[Sequence[int]] = [
        [distance.numerator * (under // distance.denominator) for distance in row] for row in matrix
    ]
    over = 0
    for row in steps:
        over = math.gcd(over, *row)
        if over == 1:
            break
    if over > 1:
        steps = [[step // over for step in row] for row in steps]
    most = max(map(max, steps))
    return Fraction(over or 1, under), np.array(steps, dtype=np.int64 if most < 2**62 else object)


def _check_metric(multiples: NDArray[Any]) -> None:
    most = int(multiples.max())
    kinds = ((2**14, np.int16), (2**30, np.int32), (2**62, np.int64))
    kind: type[Any] = next((kind for above, kind in kinds if most < above), object)
    matrix = multiples.astype(kind, copy=False)  # the sum of two distances fits
    if matrix.diagonal().any():
        raise _not_a_metric("a point is at a distance from itself")
    if (matrix != matrix.T).any():
        raise _not_a_metric("a distance is not the same both ways")
    if np.count_nonzero(matrix) < matrix.size - len(multiples):
        raise _not_a_metric("two different points are at distance 0")
    shorter = _find_detour(matrix) if kind in (np.int16, np.int32) else _find_wide_detour(matrix)
    if shorter:
        raise _not_a_metric("a detour is shorter than the direct way (triangle inequality)")


def _find_detour(matrix: NDArray[Any]) -> bool:
    """Whether some detour is shorter than the direct way."""
    return any(
        (_find_shortest(matrix, start) < matrix[start : start + _ROWS, start:]).any()
        for start in range(0, len(matrix), _ROWS)
    )


def _find_shortest(legs: NDArray[Any], start: int) -> NDArray[Any]:
    """The shortest detours of a few rows, of these legs.

    So few that they stay in the cache; it is symmetric, so half of it will do.
    """
    part = legs[start : start + _ROWS]
    shortest: NDArray[Any] = part[:, 0, None] + legs[0, start:]
    detour = np.empty_like(shortest)
    for middle in range(1, len(legs)):
        np.add(part[:, middle, None], legs[middle, start:], out=detour)
        np.minimum(shortest, detour, out=shortest)
    return shortest


def _find_wide_detour(matrix: NDArray[Any]) -> bool:
    """The same for numbers of many digits: first roughly, then exactly where that is not certain.

    A rough number of b bits is off by at most a part of 2**-b of it, and a rough sum by less than
    2**(2 - b): where the direct way is shorter than every detour by a part of 2**(4 - b), it is
    for certain.  Half the digits come first, where no distance is so small or large to lose more.
    """
    most = matrix.max()
    if most > _WIDEST:  # no double is that large
        return _find_detour(matrix)
    rough = matrix.astype(np.float64)
    scales = [(rough, 1 - 2.0**-49)]
    if most < 2**100 and (rough + np.eye(len(rough))).min() >= 1:
        scales.insert(0, (rough.astype(np.float32), 1 - 2.0**-20))
    for start in range(0, len(matrix), _ROWS):
        doubtful = np.ones((1, 1), dtype=bool)
        for numbers, near in scales:
            if doubtful.any():
                legs = numbers.copy()
                np.fill_diagonal(legs, np.inf)  # who stays where they are takes no detour
                shortest = _find_shortest(legs, start) * numbers.dtype.type(near)
                doubtful = numbers[start : start + _ROWS, start:] > shortest
        for row in np.flatnonzero(doubtful.any(axis=1)).tolist():
            if _is_shorter(matrix, rough, start + row, np.flatnonzero(doubtful[row]) + start):
                return True
    return False


def _is_shorter(
    matrix: NDArray[Any], rough: NDArray[np.float64], first: int, lasts: NDArray[np.intp]
) -> bool:
    """Whether a detour from one point to some others is shorter, exactly."""
    detours = rough[first, :, None] + rough[:, lasts]
    middle, place = np.nonzero(detours * (1 - 2.0**-49) < rough[first, lasts])
    exact = matrix[first, middle] + matrix[middle, lasts[place]]
    return bool((exact < matrix[first, lasts[place]]).any())


_WIDEST = 2**1000
_ROWS = 64


def _not_a_metric(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"the distances are not a metric: {what}.",
        why="the proof of privacy bounds one law by another through the triangle inequality and "
        "symmetry; without them a person may move an answer further than epsilon allows.",
        fix="pass distances that are symmetric, zero only from a point to itself, and never "
        "longer than a detour; shortest-path distances always are.",
    )
