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
Scalars and short arrays compare U with every threshold instead, so that neither
the time nor the memory that is read tells which value was drawn.  Proof:
``docs/proofs/noise.md``, Lemmas 1 and 2.

Here too: sizes checked, and long arrays filled in chunks.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import floor_scaled, precision
from discreet.noise.entropy import random_bits, random_words

Integers = NDArray[np.int64]

CHUNK = 1 << 14
"""Draws made at a time: few enough that a chunk's arrays stay in a core's cache."""

SMALL = 256
"""Up to this many draws take the path whose operations do not depend on what is drawn."""


def check_size(size: object, *, name: str = "size") -> int:
    """``size`` as an ``int``, refused unless a whole number of at least zero."""
    if isinstance(size, numbers.Integral) and not isinstance(size, bool) and int(size) >= 0:
        return int(size)
    raise InvalidParameter(
        "P3",
        f"{name} must be a whole number of at least 0, got {quote_value(size)}.",
        why="it is how many numbers to draw.",
        fix=f"pass {name} as an int, such as 1000.",
    )


def draw_array(size: int, fill: Callable[[NDArray[Any]], None]) -> Integers:
    """An array of ``size`` integers, written chunk by chunk by ``fill``."""
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        fill(out[start : start + CHUNK])
    return out


Kind = TypeVar("Kind", bound=np.generic)

_BITS = 64
_LONG_TABLE = 2500
_LAST: int = 2**_BITS - 1
_WORKING_BITS = 128
_UNDECIDED = np.iinfo(np.int16).min


class Table:
    """Thresholds of one law; draws values exactly.

    ``cumulatives`` yields balls around c_1, c_2, ... at the precision in force,
    each strictly between 0 and 1: all but the last (which is 1) for a finite law,
    endlessly for an infinite one.  ``value`` gives the outcome of a position, and of
    an array of them.
    """

    __slots__ = ("_cumulatives", "_made", "_value", "_values", "thresholds")

    def __init__(
        self, cumulatives: Callable[[], Iterator[arb]], value: Callable[[Any], Any]
    ) -> None:
        self._cumulatives = cumulatives
        self._value = value
        found = self._certify_thresholds()
        self.thresholds = _freeze(np.array(found, dtype=np.uint64))
        self._values: Integers = _freeze(value(np.arange(len(found) + 1, dtype=np.int64)))
        self._made: NDArray[np.int16] | None = None

    def _certify_thresholds(self) -> list[int]:
        found: list[int] = []
        with precision(_WORKING_BITS):
            scale = arb(2) ** _BITS
            for cumulative in self._cumulatives():
                scaled = cumulative * scale
                whole = scaled.floor().unique_fmpz()
                found.append(self._refine(len(found), scaled) if whole is None else int(whole))
                if found[-1] == _LAST:  # all that lies beyond is settled digit by digit
                    break
        return found

    def _refine(self, position: int, scaled: arb) -> int:
        """The threshold whose ball contains a whole number; probabilities lie between 0 and 1."""
        if scaled < 1:
            return 0
        if scaled >= _LAST:
            return _LAST
        return floor_scaled(lambda: next(islice(self._cumulatives(), position, None)), _BITS)

    @property
    def _guide(self) -> NDArray[np.int16]:
        """For each possible beginning of U, the only possible value, or ``_UNDECIDED``.

        Made for the first long array, so that scalars do not pay for it.
        """
        if self._made is None:
            guide_bits = 20 if self.thresholds.size > _LONG_TABLE else 16
            cells = (self.thresholds >> np.uint64(_BITS - guide_bits)).astype(np.int64)
            fitting = np.where(np.abs(self._values) < -_UNDECIDED, self._values, _UNDECIDED)
            # Value number j holds from the cell after threshold j's to the next one's.
            lengths = np.diff(cells, prepend=-1, append=2**guide_bits - 1)
            guide = np.repeat(fitting.astype(np.int16), lengths)
            guide[cells] = _UNDECIDED
            self._made = _freeze(guide)
        return self._made

    def draw_one(self) -> int:
        """One draw."""
        return self.at(random_words(1)[0])

    def at(self, digits: np.unsignedinteger) -> int:
        """The draw whose u begins with these 64 digits.

        It is compared with every threshold: which memory is read, and for how long,
        does not depend on what is found.
        """
        thresholds = self.thresholds
        position = int(np.count_nonzero(thresholds < digits))
        if position < thresholds.size and thresholds.item(position) == int(digits):
            position = self._decide(int(digits))
        value: int = self._value(position)
        return value

    def fill(self, out: NDArray[Any]) -> None:
        """Fill ``out`` with independent draws."""
        if out.size <= SMALL:
            out[:] = [self.at(digits) for digits in random_words(out.size)]
            return
        guide = self._guide
        heads = random_words(out.size, np.uint16 if guide.size == 2**16 else np.uint32)
        word_bits = heads.dtype.itemsize * 8
        shorter = heads >> (word_bits - guide.size.bit_length() + 1)
        out[:] = guide.take(shorter, mode="clip")
        open_ = np.flatnonzero(out == _UNDECIDED)
        if open_.size:
            digits = heads[open_].astype(np.uint64) << np.uint64(_BITS - word_bits)
            digits |= random_words(open_.size) >> np.uint64(word_bits)
            out[open_] = self._invert(digits)

    def _invert(self, digits: NDArray[Any]) -> Integers:
        positions = np.searchsorted(self.thresholds, digits, side="left")
        values: Integers = self._values[positions]
        nearest = self.thresholds[np.minimum(positions, self.thresholds.size - 1)]
        for tie in np.flatnonzero(nearest == digits):
            values[tie] = self._value(self._decide(int(digits[tie])))
        return values

    def _decide(self, prefix: int) -> int:
        """The position selected by a u that begins with the 64 digits ``prefix`` of a threshold."""
        bits = _BITS
        position = int(np.searchsorted(self.thresholds, np.uint64(prefix)))
        while True:
            with precision(bits + _WORKING_BITS):
                scale = arb(2) ** bits
                for cumulative in islice(self._cumulatives(), position, None):
                    scaled = cumulative * scale
                    if scaled <= prefix:  # c <= u: certainly further on
                        position += 1
                    elif scaled >= prefix + 1:  # u < c: certainly here
                        return position
                    else:
                        break
                else:
                    return position
            prefix = prefix << _BITS | random_bits(_BITS)
            bits += _BITS


def _freeze(array: NDArray[Kind]) -> NDArray[Kind]:
    """Tables are shared between callers: nobody may write to them."""
    array.flags.writeable = False
    return array
