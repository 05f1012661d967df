"""Exact draws by inversion, from certified thresholds.

A law on finitely or countably many values, in a fixed order, has cumulative
probabilities c_1 < c_2 < ...  A uniform real u selects value number
#{j : c_j <= u}.  Only the first 64 binary digits of u are drawn at first, an
integer U with U <= u * 2**64 < U + 1, and compared with t_j = floor(c_j * 2**64),
which ball arithmetic certifies:

* U > t_j implies c_j < (t_j + 1) / 2**64 <= U / 2**64 <= u;
* U < t_j implies u < (U + 1) / 2**64 <= t_j / 2**64 <= c_j;
* U = t_j, which happens once in 2**64 draws per threshold, decides nothing: more
  digits of u are drawn and c_j is computed to more digits, until they differ.

So the law of the result is exactly the stated one, and no float takes part.

For long arrays a guide makes this quick.  A first word of 16 digits of U (32 for
a long table) is drawn alone; for most words only one outcome is possible, and
one look-up finds it.  The others, and only they, draw the remaining digits.
Short arrays and scalars skip the guide, so that the time of a single draw does
not tell which value it gave.  Proof: ``docs/proofs/noise.md``, Lemmas 1 and 2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.entropy import random_bits, words
from discreet.exact import ends, floor_scaled, precision
from discreet.noise.draws import SMALL, Integers

_BITS = 64
_LONG_TABLE = 2500
_LAST = 2**_BITS - 1
_WORKING_BITS = 192
_UNDECIDED = np.iinfo(np.int16).min


class Table:
    """Thresholds of one law; draws values exactly.

    ``cumulatives`` yields balls around c_1, c_2, ... at the precision in force:
    all but the last (which is 1) for a finite law, endlessly for an infinite one.
    ``value`` gives the outcome of each position.
    """

    __slots__ = ("_cumulatives", "_guide", "_list", "_value", "_values", "_word", "thresholds")

    def __init__(
        self, cumulatives: Callable[[], Iterator[arb]], value: Callable[[int], int]
    ) -> None:
        self._cumulatives = cumulatives
        self._value = value
        self._list = self._certified_thresholds()
        self.thresholds = np.array(self._list, dtype=np.uint64)
        self._values = np.array([value(i) for i in range(len(self._list) + 1)], dtype=np.int64)
        long = len(self._list) > _LONG_TABLE
        self._word: type[np.unsignedinteger] = np.uint32 if long else np.uint16
        self._guide = self._made_guide(20 if long else 16)

    def _certified_thresholds(self) -> list[int]:
        found: list[int] = []
        with precision(_WORKING_BITS):
            scale = arb(2) ** _BITS
            for cumulative in self._cumulatives():
                whole = (cumulative * scale).floor().unique_fmpz()
                found.append(self._refined(len(found)) if whole is None else int(whole))
                if found[-1] == _LAST:  # all that lies beyond is settled digit by digit
                    break
        return found

    def _refined(self, position: int) -> int:
        return floor_scaled(lambda: next(islice(self._cumulatives(), position, None)), _BITS)

    def _made_guide(self, guide_bits: int) -> NDArray[np.int16]:
        """For each leading ``guide_bits`` digits, the only possible value, or ``_UNDECIDED``."""
        cells = (self.thresholds >> np.uint64(_BITS - guide_bits)).astype(np.int64)
        inside = np.bincount(cells, minlength=2**guide_bits)
        values = self._values[np.cumsum(inside) - inside]
        decided = (inside == 0) & (np.abs(values) < -_UNDECIDED)
        return np.where(decided, values, _UNDECIDED).astype(np.int16)

    def one(self) -> int:
        """One draw."""
        prefix = random_bits(_BITS)
        position = bisect_left(self._list, prefix)
        if position < len(self._list) and self._list[position] == prefix:
            position = self._settled(prefix)
        return self._value(position)

    def fill(self, out: NDArray[Any]) -> None:
        """Fill ``out`` with independent draws."""
        if out.size <= SMALL:
            out[:] = self._inverted(words(out.size))
            return
        heads = words(out.size, self._word)
        word_bits = heads.dtype.itemsize * 8
        shorter = heads >> (word_bits - self._guide.size.bit_length() + 1)
        out[:] = self._guide.take(shorter, mode="clip")
        open_ = np.flatnonzero(out == _UNDECIDED)
        if open_.size:
            digits = heads[open_].astype(np.uint64) << np.uint64(_BITS - word_bits)
            digits |= words(open_.size) >> np.uint64(word_bits)
            out[open_] = self._inverted(digits)

    def _inverted(self, digits: NDArray[Any]) -> Integers:
        positions = np.searchsorted(self.thresholds, digits, side="left")
        values: Integers = self._values[positions]
        nearest = self.thresholds[np.minimum(positions, len(self._list) - 1)]
        for tie in np.flatnonzero(nearest == digits):
            values[tie] = self._value(self._settled(int(digits[tie])))
        return values

    def _settled(self, prefix: int) -> int:
        """The position selected by a u that begins with the 64 digits ``prefix`` of a threshold."""
        bits = _BITS
        position = bisect_left(self._list, prefix)
        while True:
            with precision(bits + _WORKING_BITS):
                for cumulative in islice(self._cumulatives(), position, None):
                    low, high = ends(cumulative)
                    if high * 2**bits <= prefix:  # c <= u: certainly further on
                        position += 1
                    elif low * 2**bits >= prefix + 1:  # u < c: certainly here
                        return position
                    else:
                        break
                else:
                    return position
            prefix = prefix << _BITS | random_bits(_BITS)
            bits += _BITS
