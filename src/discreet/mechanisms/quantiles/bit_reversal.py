"""Values in order, equal ones set apart; only the places that are asked for are laid out.

Every cell is cut into ``2**shift`` places, and the i-th of its values stands at
the bit reversal of i (``docs/proofs/quantiles.md``, Lemma 4).  How many values
stand up to a place has a closed form, so a crowd of a million on one value costs
no more than the few places around a quantile.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from discreet.mechanisms.grid import Integers
from discreet.mechanisms.quantiles.ranks import Cells


@dataclass(frozen=True, slots=True)
class Ranked:
    """Cells with the number of values up to each; a part of them shares the arrays.

    Only the ``total`` values that come after the first ``before`` belong to the
    part.  Without a ``shift`` a cell is a single place.
    """

    at: Integers
    upto: Integers
    shift: int
    before: int
    total: int

    @classmethod
    def of(cls, cells: Cells, *, shift: int = 0) -> Ranked:
        """All of the cells."""
        upto = np.cumsum(cells.counts, dtype=np.int64)
        return cls(cells.at, upto, shift, 0, int(upto[-1]) if len(upto) else 0)

    def up_to(self, place: int) -> int:
        """How many values of the part stand at ``place`` or before it."""
        cell, within = place >> self.shift, place & ((1 << self.shift) - 1)
        past = int(np.searchsorted(self.at, cell, side="right"))
        found = self._up_to_cell(past - 1)
        if past and int(self.at[past - 1]) == cell:
            count = found - self._up_to_cell(past - 2)
            level = _level(count, self.shift)
            found += _standing(count, (within >> (self.shift - level)) + 1, level) - count
        return min(max(found - self.before, 0), self.total)

    def split(self, place: int) -> tuple[Ranked, Ranked]:
        """Those up to ``place``, and those beyond it."""
        left = self.up_to(place)
        return (
            Ranked(self.at, self.upto, self.shift, self.before, left),
            Ranked(self.at, self.upto, self.shift, self.before + left, self.total - left),
        )

    def stretch(self, first: int, last: int) -> tuple[Integers, Integers, int]:
        """Places from the one with the ``first`` value of the part to the one with the ``last``.

        With each the number of values up to it, and with them all the number of
        values before.
        """
        ends = self.before + np.array([first, last])
        low, high = (int(cell) for cell in np.searchsorted(self.upto, ends, side="left"))
        before = self._up_to_cell(low - 1)
        if self.shift == 0:
            upto = self.upto[low : high + 1] - self.before
            return self.at[low : high + 1], upto, before - self.before
        top = self._up_to_cell(high - 1)
        counts = np.diff(self.upto[low : high + 1], prepend=before)
        cells = self.at[low : high + 1] << self.shift
        near = self._index(int(counts[0]), int(ends[0]) - before)
        far = self._index(int(counts[-1]), int(ends[1]) - top)
        before += _standing(int(counts[0]), near, _level(int(counts[0]), self.shift))
        if low == high:
            places, numbers = _laid_out(int(counts[0]), self.shift, near, far + 1)
            places = places + cells[0]
        else:
            parts = [
                _laid_out(int(counts[0]), self.shift, near, None),
                _all_laid_out(cells[1:-1], counts[1:-1], self.shift),
                _laid_out(int(counts[-1]), self.shift, 0, far + 1),
            ]
            offsets = (cells[0], 0, cells[-1])
            places = np.concatenate([p + o for (p, _), o in zip(parts, offsets, strict=True)])
            numbers = np.concatenate([n for _, n in parts])
        before -= self.before
        return places, before + np.cumsum(numbers), before

    def _up_to_cell(self, index: int) -> int:
        return int(self.upto[index]) if index >= 0 else 0

    def _index(self, count: int, rank: int) -> int:
        """Which of the places used by ``count`` values holds the one of that rank, from one."""
        level = _level(count, self.shift)
        return bisect_left(range(1 << level), rank, key=lambda p: _standing(count, p + 1, level))


def _level(count: int, shift: int) -> int:
    """The bits of the places that ``count`` values need: 2**bits, as far as there is room."""
    return min(max(count - 1, 0).bit_length(), shift)


def _standing(count: int, bound: int, level: int) -> int:
    """How many of ``count`` values stand at the first ``bound`` of 2**level places.

    Every place is used ``count >> level`` times, and once more by those of the
    other values whose reversal is below the bound: those are counted by their
    lowest digits, which are the highest of the reversal.

    >>> [_standing(5, bound, 3) for bound in range(9)]  # at 0, 4, 2, 6 and 1
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


def _laid_out(count: int, shift: int, first: int, stop: int | None) -> tuple[Integers, Integers]:
    """The places of one cell that hold values, from the ``first`` index on, and how many each."""
    level = _level(count, shift)
    index = np.arange(first, 1 << level if stop is None else stop, dtype=np.int64)
    numbers = (count >> level) + (_reversed_bits(index, level) < (count & ((1 << level) - 1)))
    some = numbers > 0
    return index[some] << (shift - level), numbers[some]


def _all_laid_out(cells: Integers, counts: Integers, shift: int) -> tuple[Integers, Integers]:
    """The same for whole cells; those that need as many places share one table of reversals."""
    if counts.max(initial=0) <= 1:
        some = counts > 0
        return cells[some], counts[some]
    places, numbers = [], []
    levels = np.minimum(np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), shift)
    for level in np.unique(levels).tolist():
        chosen = levels == level
        index = np.arange(1 << level, dtype=np.int64)
        often, rest = np.divmod(counts[chosen][:, None], 1 << level)
        each = often + (_reversed_bits(index, level)[None, :] < rest)
        kept = each > 0
        places.append((cells[chosen][:, None] + (index << (shift - level))[None, :])[kept])
        numbers.append(each[kept])
    every = np.concatenate(places)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(numbers)[order]


def _reversed_bits(numbers: Integers, bits: int) -> Integers:
    reversed_numbers = np.zeros_like(numbers)
    for bit in range(bits):
        reversed_numbers |= ((numbers >> bit) & 1) << (bits - 1 - bit)
    return reversed_numbers
