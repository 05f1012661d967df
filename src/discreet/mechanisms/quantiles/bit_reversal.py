"""Values in order, equal ones set apart; only the positions that are asked for are laid out.

Every cell is cut into ``2**shift`` positions, and the i-th of its values stands at
the bit reversal of i (``docs/proofs/quantiles.md``, Lemma 4).  How many values
stand up to a position has a closed form, so a crowd of a million on one value costs
no more than the few positions around a quantile.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from discreet.mechanisms.grid import Integers
from discreet.mechanisms.quantiles.ranks import Cells


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
        return (
            RankedCells(self.at, self.cumulative, self.shift, self.before, left),
            RankedCells(
                self.at, self.cumulative, self.shift, self.before + left, self.total - left
            ),
        )

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
