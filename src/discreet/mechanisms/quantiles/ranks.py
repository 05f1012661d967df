"""Values as counts on a public domain, in order, and a choice among candidates by their rank.

Counting is linear in the number of values plus the number of cells counted; nothing
depends on the values except the result.

Equal values are set apart, and only the positions that are asked for are laid out.  Every
cell is cut into ``2**shift`` positions, and the i-th of its values stands at the bit
reversal of i (``docs/proofs/quantiles.md``, Lemma 4).  How many values stand up to a
position has a closed form, so a crowd of a million on one value costs no more than the few
positions around a quantile.

The choice is the exponential mechanism over all candidates.  The score of a candidate z,
for the quantile q = a / b of n values, is minus b times the distance from q n to the
interval [values below z, values up to z].  It rises up to a quantile and falls from there,
so the candidates worth looking at are one stretch.  The others are drawn for together, as
one outcome at least as likely as all of them, which is then accepted in the right
proportion or drawn again: the law is exact (Lemma 3), and in practice that outcome never
comes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction
from discreet.exact.records import dataclass
from discreet.mechanisms.grid import Grid, Integers
from discreet.noise import bernoulli_exp, exponential_choice, uniform_below

_FINE_BITS = 20
_ROOM_BITS = 61


@dataclass(frozen=True, slots=True, init=False)
class Domain:
    """The multiples of a grid (whole numbers without one) between two public bounds."""

    lower: Fraction
    upper: Fraction
    grid: Grid | None
    least: int
    most: int

    def __init__(self, lower: Exact, upper: Exact, grid: Grid | None) -> None:
        low, high = fraction(lower, name="lower"), fraction(upper, name="upper")
        step = Fraction(1) if grid is None else grid.step
        least, most = math.ceil(low / step), math.floor(high / step)
        if least >= most or max(abs(least), abs(most)) > 2**_ROOM_BITS:
            raise InvalidParameter(
                "P2",
                f"from {low} to {high} there are fewer than two multiples of {step}, or more "
                "than 2**61 on one side of zero.",
                why="the candidates are those multiples, and they must be public.",
                fix="pass lower < upper, or another grid.",
            )
        values = {"lower": low, "upper": high, "grid": grid, "least": least, "most": most}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return self.most - self.least + 1

    @property
    def shift(self) -> int:
        """How many bits there is room for below a step, to tell equal values apart."""
        return min(_FINE_BITS, _ROOM_BITS - self.size.bit_length())

    @property
    def fine_size(self) -> int:
        """How many candidates there are when every step is cut into ``2**shift`` positions."""
        return self.size << self.shift

    def steps(self, values: Any) -> Integers:
        """Each value clipped to the domain and rounded down to a step; total.

        Whatever is no number is left out.  Both are decided row by row, so one
        unit's value moves no other's.
        """
        array = values if isinstance(values, np.ndarray) else _array(values)
        if array.ndim != 1 or array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
            raise InvalidParameter(
                "P6",
                "values must be a list or a one-dimensional array of numbers.",
                why="a quantile is taken of one number for each row.",
                fix="pass values such as [30, 31, 35].",
            )
        exponent = 0 if self.grid is None else self.grid.exponent
        if array.dtype.kind != "f":
            return _whole_steps(array, exponent, self.least, self.most)
        known = array[~np.isnan(array)] if np.isnan(np.min(array, initial=0.0)) else array
        with np.errstate(over="ignore"):
            scaled = known.astype(np.float64, copy=False) * 2.0**-exponent
        floor = np.floor(scaled, out=scaled)
        # The bounds may not be doubles; clip to doubles inside int64, then exactly.
        inside = np.clip(floor, -(2.0**62), 2.0**62, out=floor).astype(np.int64)
        return np.clip(inside, self.least, self.most, out=inside)

    def lift(self, step: int) -> int | Fraction | float:
        """A step as a value: an int without a grid, else a float if one holds it exactly."""
        if self.grid is None:
            return step
        exact = step * self.grid.step
        return float(exact) if Fraction(float(exact)) == exact else exact


class Cells(NamedTuple):
    """Distinct values in increasing order and how many there are of each.

    ``dense`` cells are all whole numbers from the first to the last, some of
    them with a count of zero; otherwise no count is zero.
    """

    at: Integers
    counts: Integers
    dense: bool


def count_cells(steps: Integers, domain: Domain) -> Cells:
    """The values gathered in cells: linear in their number plus the size of the domain.

    A domain not much larger than the number of values is counted through; for a
    larger one the values are sorted, which is then the lesser of the two.
    """
    if domain.size <= 4 * len(steps) + 4096:
        return count_all_cells(steps, domain)
    return count_occupied_cells(steps)


def count_all_cells(steps: Integers, domain: Domain) -> Cells:
    """Every cell of the domain, the empty ones too."""
    counts = np.bincount(steps - domain.least, minlength=domain.size)
    return Cells(np.arange(domain.least, domain.most + 1), counts, dense=True)


def count_occupied_cells(steps: Integers) -> Cells:
    """The occupied cells only."""
    at, counts = np.unique(steps, return_counts=True)
    return Cells(at, counts, dense=False)


def _array(values: Any) -> NDArray[Any]:
    listed = list(values)
    if not listed:
        return np.empty(0, dtype=np.int64)
    if all(type(one) is int for one in listed):
        # Beyond 2**62 every whole number is clipped alike.
        return np.array([min(max(one, -(2**62)), 2**62) for one in listed], dtype=np.int64)
    try:
        return np.array([float(one) for one in listed])
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(
            "P6",
            "values must be a list or a one-dimensional array of numbers.",
            why="a quantile is taken of one number for each row.",
            fix="pass values such as [30, 31, 35].",
        ) from None


def _whole_steps(array: NDArray[Any], exponent: int, least: int, most: int) -> Integers:
    if array.dtype.kind == "u":
        array = np.minimum(array, np.array(2**63 - 1, dtype=np.uint64))
    whole = array.astype(np.int64, copy=False)
    if exponent > 0:
        coarse: Integers = np.clip(whole >> min(exponent, 63), least, most)
        return coarse
    # Clip before scaling, so that nothing overflows: least and most are within 2**61 steps.
    shift = min(-exponent, 63)
    low, high = -(-least >> shift), most >> shift
    if shift > 61:
        return _far(whole, least, most)
    inside = np.clip(whole, min(low - 1, high), max(high + 1, low))
    fine: Integers = np.clip(inside << shift, least, most)
    return fine


def _far(whole: Integers, least: int, most: int) -> Integers:
    """A step finer than 2**-62: every whole number but 0 is off one end or the other."""
    far: Integers = np.where(whole > 0, most, np.where(whole < 0, least, 0))
    return np.clip(far, least, most)


@dataclass(frozen=True, slots=True)
class RankedCells:
    """Cells with the number of values up to each; a part of them shares the arrays.

    Only the ``total`` values that come after the first ``before`` belong to the
    part.  Without a ``shift`` a cell is a single position.
    """

    at: Integers
    cumulative: Integers
    shift: int
    before: int
    total: int

    @classmethod
    def of(cls, cells: Cells, *, shift: int = 0) -> RankedCells:
        """All of the cells."""
        upto = np.cumsum(cells.counts, dtype=np.int64)
        return cls(cells.at, upto, shift, 0, int(upto[-1]) if len(upto) else 0)

    def count_up_to(self, position: int) -> int:
        """How many values of the part stand at ``position`` or before it."""
        cell, within = position >> self.shift, position & ((1 << self.shift) - 1)
        past = int(np.searchsorted(self.at, cell, side="right"))
        found = self._count_up_to_cell(past - 1)
        if past and int(self.at[past - 1]) == cell:
            count = found - self._count_up_to_cell(past - 2)
            level = _level(count, self.shift)
            found += _count_first(count, (within >> (self.shift - level)) + 1, level) - count
        return min(max(found - self.before, 0), self.total)

    def split(self, position: int) -> tuple[RankedCells, RankedCells]:
        """Those up to ``position``, and those beyond it."""
        left = self.count_up_to(position)
        before, rest = self.before + left, self.total - left
        return replace(self, total=left), replace(self, before=before, total=rest)

    def find_values(self, ranks: Integers) -> Integers:
        """The cells of the values of some ranks of the part, which count from one."""
        found: Integers = self.at[np.searchsorted(self.cumulative, self.before + ranks)]
        return found

    def between_ranks(self, first: int, last: int) -> tuple[Integers, Integers, int]:
        """Positions from the one with the ``first`` value of the part to the one with the ``last``.

        With each the number of values up to it, and with them all the number of
        values before.
        """
        ends = self.before + np.array([first, last])
        low, high = (int(cell) for cell in np.searchsorted(self.cumulative, ends, side="left"))
        before = self._count_up_to_cell(low - 1)
        if self.shift == 0:
            upto = self.cumulative[low : high + 1] - self.before
            return self.at[low : high + 1], upto, before - self.before
        top = self._count_up_to_cell(high - 1)
        counts = np.diff(self.cumulative[low : high + 1], prepend=before)
        cells = self.at[low : high + 1] << self.shift
        near = self._index(int(counts[0]), int(ends[0]) - before)
        far = self._index(int(counts[-1]), int(ends[1]) - top)
        before += _count_first(int(counts[0]), near, _level(int(counts[0]), self.shift))
        if low == high:
            positions, numbers = _lay_out(int(counts[0]), self.shift, near, far + 1)
            positions = positions + cells[0]
        else:
            parts = [
                _lay_out(int(counts[0]), self.shift, near, None),
                _lay_out_cells(cells[1:-1], counts[1:-1], self.shift),
                _lay_out(int(counts[-1]), self.shift, 0, far + 1),
            ]
            offsets = (cells[0], 0, cells[-1])
            positions = np.concatenate([p + o for (p, _), o in zip(parts, offsets, strict=True)])
            numbers = np.concatenate([n for _, n in parts])
        before -= self.before
        return positions, before + np.cumsum(numbers), before

    def _count_up_to_cell(self, index: int) -> int:
        return int(self.cumulative[index]) if index >= 0 else 0

    def _index(self, count: int, rank: int) -> int:
        """Which of the positions used by ``count`` values holds the one of that rank, from one."""
        level = _level(count, self.shift)
        return bisect_left(range(1 << level), rank, key=lambda p: _count_first(count, p + 1, level))


@dataclass(frozen=True, slots=True)
class LumpedCells(RankedCells):
    """Cells of which some stand for several: what these do not tell is looked up in all of them.

    A lump stands at the last of its cells.  Every number that is told is the one that all cells
    would have told (Lemmas 13 and 14).
    """

    first: Integers  # the first cell of each lump; of a cell that stands alone, itself
    look_up: Callable[[], RankedCells]  # all cells

    def count_up_to(self, position: int) -> int:
        """How many values of the part stand at ``position`` or before it."""
        cell = position >> self.shift
        next_one = int(np.searchsorted(self.at, cell, side="left"))
        if next_one < len(self.at) and self.first[next_one] <= cell and self._is_lump(next_one):
            return self._find_all().count_up_to(position)
        return RankedCells.count_up_to(self, position)

    def between_ranks(self, first: int, last: int) -> tuple[Integers, Integers, int]:
        """Positions from the one with the ``first`` value of the part to that with the ``last``."""
        ends = self.before + np.array([first, last])
        low, high = (int(cell) for cell in np.searchsorted(self.cumulative, ends, side="left"))
        if np.any(self.first[low : high + 1] < self.at[low : high + 1]):
            return self._find_all().between_ranks(first, last)
        return RankedCells.between_ranks(self, first, last)

    def find_values(self, ranks: Integers) -> Integers:
        """The cells of the values of some ranks of the part, which count from one."""
        where = np.searchsorted(self.cumulative, self.before + ranks)
        if np.any(self.first[where] < self.at[where]):
            return self._find_all().find_values(ranks)
        return RankedCells.find_values(self, ranks)

    def _is_lump(self, index: int) -> bool:
        return bool(self.first[index] < self.at[index])

    def _find_all(self) -> RankedCells:
        return replace(self.look_up(), before=self.before, total=self.total)


def _level(count: int, shift: int) -> int:
    """The bits of the positions that ``count`` values need: 2**bits, as far as there is room."""
    return min(max(count - 1, 0).bit_length(), shift)


def _count_first(count: int, bound: int, level: int) -> int:
    """How many of ``count`` values stand at the first ``bound`` of 2**level positions.

    Every position is used ``count >> level`` times, and once more by those of the
    other values whose reversal is below the bound: those are counted by their
    lowest digits, which are the highest of the reversal.

    >>> [_count_first(5, bound, 3) for bound in range(9)]  # at 0, 4, 2, 6 and 1
    [0, 1, 2, 3, 3, 4, 4, 5, 5]
    """
    often, rest = count >> level, count & ((1 << level) - 1)
    if bound >> level:
        return count
    total, lowest = often * bound, 0
    for digit in range(level):
        if bound >> (level - 1 - digit) & 1:
            total += max(0, -((lowest - rest) >> (digit + 1)))
            lowest |= 1 << digit
    return total


def _lay_out(count: int, shift: int, first: int, stop: int | None) -> tuple[Integers, Integers]:
    """The positions of a cell that hold values, from the ``first`` index on, and how many each."""
    level = _level(count, shift)
    index = np.arange(first, 1 << level if stop is None else stop, dtype=np.int64)
    numbers = (count >> level) + (_reverse_bits(index, level) < (count & ((1 << level) - 1)))
    some = numbers > 0
    return index[some] << (shift - level), numbers[some]


def _lay_out_cells(cells: Integers, counts: Integers, shift: int) -> tuple[Integers, Integers]:
    """The same for whole cells; those that need as many positions share one table of reversals."""
    if counts.max(initial=0) <= 1:
        some = counts > 0
        return cells[some], counts[some]
    positions, numbers = [], []
    levels = np.minimum(np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), shift)
    for level in np.unique(levels).tolist():
        chosen = levels == level
        index = np.arange(1 << level, dtype=np.int64)
        often, rest = np.divmod(counts[chosen][:, None], 1 << level)
        each = often + (_reverse_bits(index, level)[None, :] < rest)
        kept = each > 0
        positions.append((cells[chosen][:, None] + (index << (shift - level))[None, :])[kept])
        numbers.append(each[kept])
    every = np.concatenate(positions)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(numbers)[order]


def _reverse_bits(numbers: Integers, bits: int) -> Integers:
    reversed_numbers = np.zeros_like(numbers)
    for bit in range(bits):
        reversed_numbers |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    return reversed_numbers


NEAR = 96
"""Candidates whose weight is below exp(-96) of the best are drawn for together."""


class Runs(NamedTuple):
    """Stretches of equally good candidates: where they start, how long they are, their score."""

    starts: Integers
    lengths: Integers
    scores: Integers


def choose_by_rank(cells: RankedCells, q: Fraction, rate: Fraction, least: int, most: int) -> int:
    """A whole number z from ``least`` to ``most``, with weight exp(rate * score of z)."""
    floor = math.ceil(NEAR / rate)
    runs = score_runs(cells, q, least, most, floor=floor)
    low, high = int(runs.starts[0]), int(runs.starts[-1] + runs.lengths[-1]) - 1
    far = (most - least) - (high - low)
    scores, lengths = runs.scores, runs.lengths
    if far:  # every one of them scores less than -floor
        scores, lengths = np.append(scores, -floor - 1), np.append(lengths, far)
    while True:
        run = exponential_choice(scores, rate, weights=lengths)
        within = uniform_below(int(lengths[run])) if lengths[run] > 1 else 0
        if run < len(runs.scores):
            return int(runs.starts[run]) + within
        z = least + within if within < low - least else high + 1 + within - (low - least)
        if bernoulli_exp(rate * (-floor - 1 - score_at(cells, q, z))):
            return z


def score_at(cells: RankedCells, q: Fraction, z: int) -> int:
    """The score of one candidate."""
    target = q.numerator * cells.total
    below, upto = (q.denominator * cells.count_up_to(position) for position in (z - 1, z))
    return -max(0, below - target, target - upto)


def score_runs(
    cells: RankedCells, q: Fraction, least: int, most: int, *, floor: int | None
) -> Runs:
    """The candidates that score at least ``-floor`` (all without one), in order.

    At a position with values, those below it and up to it differ by their number;
    between two such positions they are the same, and so is the score.
    """
    b, total = q.denominator, cells.total
    target = q.numerator * total
    low, high = least, most
    # Values up to z, at least; and one more than the values below z, at most.
    first = 1 if floor is None else max(1, -((floor - target) // b))
    last = total if floor is None else min(total, (target + floor) // b + 1)
    at, upto, start = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 0
    if total:
        at, upto, start = cells.between_ranks(first, last)
        if floor is not None and floor < target:
            low = int(at[0])
        if floor is not None and (target + floor) // b < total:
            high = int(at[-1])
    upto = np.concatenate([[start], upto]) * b
    starts = np.empty(2 * len(at) + 1, dtype=np.int64)
    ends, scores = np.empty_like(starts), np.empty_like(starts)
    starts[0], starts[1::2], starts[2::2] = low, at, at + 1
    ends[:-1:2], ends[1::2], ends[-1] = at, at + 1, high + 1
    scores[::2] = -np.abs(upto - target)
    scores[1::2] = -np.maximum(np.maximum(upto[:-1] - target, target - upto[1:]), 0)
    some = ends > starts
    return Runs(starts[some], (ends - starts)[some], scores[some])
