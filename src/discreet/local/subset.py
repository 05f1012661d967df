"""Subset selection: report a few answers, more often with your own among them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.errors import InvalidParameter
from discreet.local.frequencies import Integers
from discreet.local.oracle import FrequencyOracle, chunks
from discreet.local.packed import check_packed, count_bits, unpack, width
from discreet.noise import bernoulli, uniform_below
from discreet.noise.entropy import random_words

_CELLS = 1 << 22  # bits made at a time
_BITS = np.array([128 >> place for place in range(8)], dtype=np.uint8)
"""The bit of each of eight answers, the first the highest."""
_RARE = 16
"""Sets of fewer than one answer in so many are filled from nothing."""
_TRIES = 64
"""How many places at most are drawn for a set before it is looked whose are complete."""
_FEW = 256  # up to this many reports are drawn as a page draws them


@dataclass(frozen=True, init=False, repr=False)
class SubsetSelection(FrequencyOracle):
    """Report ``size`` of the answers, with the true one among them more often than not.

    The answers are 0 ... d - 1 for d = ``categories``, and a report costs ``epsilon``.

    Definition:
        A set S of k = ``size`` answers has probability proportional to r if it
        contains the true answer and to 1 if not; k is the whole number, near
        d / (r + 1), of least variance.

    Guarantee:
        Two answers give every set probabilities whose ratio is 1, r or 1 / r, and
        r <= e**epsilon.  Attained.

    Accuracy:
        With p = r k / (r k + d - k) and q = (p (k - 1) + (1 - p) k) / (d - 1), the
        estimate of a rare answer has variance n q (1 - q) / (p - q)**2: the least
        possible for one report of each respondent, up to lower orders.

    Reference:
        Ye and Barg (2017); Wang, Huang, Wang, Nie, Xu, Yang, Li and Qiao (2016).

    Example:
        >>> sets = SubsetSelection(12, epsilon="3/2")
        >>> sets.size, sets.report_bits, round(sets.variance(respondents=1000))
        (2, 12, 1073)
        >>> int(np.unpackbits(sets.release(7)).sum())
        2
    """

    most_categories: ClassVar[int] = 2**16

    @cached_property
    def size(self) -> int:
        """How many answers a report lists."""
        middle = int(self.categories / (self.odds + 1))
        near = {min(max(1, middle + step), self.categories - 1) for step in (-1, 0, 1, 2)}
        return min(sorted(near), key=self._variance_with)

    def _variance_with(self, size: int) -> Fraction:
        p, q = self._chances(size)
        return (p * (1 - p) + (self.categories - 1) * q * (1 - q)) / (p - q) ** 2

    def _chances(self, size: int) -> tuple[Fraction, Fraction]:
        k, d, r = size, self.categories, self.odds
        p = r * k / (r * k + d - k)
        return p, (p * (k - 1) + (1 - p) * k) / (d - 1)

    @cached_property
    def inside(self) -> Fraction:
        """The probability that the true answer is listed."""
        return self._chances(self.size)[0]

    @cached_property
    def outside(self) -> Fraction:
        """The probability that another answer is listed."""
        return self._chances(self.size)[1]

    @cached_property
    def both(self) -> tuple[Fraction, Fraction]:
        """Of k places, or k - 1 beside the true answer, two are given to two answers."""
        k, d, p = self.size, self.categories, self.inside
        one = p * (k - 1) / (d - 1)
        if d == 2:
            return one, Fraction(0)
        pairs = (d - 1) * (d - 2)
        return one, (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / pairs

    @property
    def report_bits(self) -> int:
        """One for each answer."""
        return self.categories

    @property
    def sums_to_all(self) -> bool:
        """Every report lists ``size`` answers."""
        return True

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of one report on ``value``, as a tuple of the answers it lists."""
        code, k = self.code(value), self.size
        if math.comb(self.categories, k) > MOST_OUTCOMES:
            raise InvalidParameter(
                "P2",
                f"there are more than {MOST_OUTCOMES} sets of {k} out of {self.categories}.",
                why="an exact law lists every possible report.",
                fix="look at the law for fewer answers.",
            )
        with_own = math.comb(self.categories - 1, k - 1)
        without = math.comb(self.categories - 1, k)
        masses: list[tuple[Hashable, Fraction]] = [
            (found, self.inside / with_own if code in found else (1 - self.inside) / without)
            for found in combinations(range(self.categories), k)
        ]
        return FiniteLaw.exact(masses)

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """A coin says whether each of ``codes`` is listed; the others are chosen uniformly."""
        out = np.empty((codes.size, width(self.categories)), dtype=np.uint8)
        if codes.size <= _FEW:
            for place, code in enumerate(codes.tolist()):
                out[place] = np.packbits(self._one(code))
            return out
        for part in chunks(codes.size, max(_FEW, _CELLS // self.categories)):
            out[part] = self._many(codes[part])[:, : out.shape[1]]
        return out

    def _one(self, code: int) -> NDArray[np.uint8]:
        """Floyd's algorithm: one draw for each answer that is listed."""
        bits = np.zeros(self.categories, dtype=np.uint8)
        listed = bernoulli(self.inside)
        others = self.categories - 1
        chosen: set[int] = set()
        for last in range(others - self.size + listed, others):
            drawn = uniform_below(last + 1)
            chosen.add(last if drawn in chosen else drawn)
        bits[[other + (other >= code) for other in chosen]] = 1
        bits[code] = listed
        return bits

    def _many(self, codes: Integers) -> NDArray[np.uint8]:
        """Sets of about the right size, to which uniform places are added or taken away.

        A set of independent bits is, given how many it has, uniform among the sets of that size;
        so it stays if the true answer is taken out, and if uniform places outside of it are added,
        or such of it taken away: whatever does not look at which places they are
        (docs/proofs/local.md, Lemma 3).
        """
        listed = bernoulli(self.inside, codes.size)
        words = self._draw_sets(codes.size)
        cells = words.view(np.uint8)
        own = np.arange(codes.size), codes >> 3
        bit = _BITS.take(codes & 7)
        cells[own] &= ~bit
        missing = self.size - listed - np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        # What is to be taken away is added to what is not in the set.
        turned = np.flatnonzero(missing < 0)
        words[turned] = ~words[turned]
        # Full for now: the true answer's place, and those that there are not.
        words |= ~self._there
        cells[own] |= bit
        _fill(cells, np.abs(missing).astype(np.int32), self.categories)
        words[turned] = ~words[turned]
        words &= self._there
        cells[own] &= ~bit
        cells[own] |= bit * listed.astype(np.uint8)
        return cells

    @cached_property
    def _there(self) -> NDArray[np.uint64]:
        """A bit for each answer, in as many words as hold a power of two."""
        bits = max(64, 1 << (self.categories - 1).bit_length())
        return np.packbits(np.arange(bits) < self.categories).view(np.uint64)

    def _draw_sets(self, count: int) -> NDArray[np.uint64]:
        """Independent bits, a row of words each, of which about ``size`` are set, or none.

        Which chance they have decides no law.  Sets of few answers are filled from nothing.
        """
        words = self._there.size
        if _RARE * self.size < self.categories:
            return np.zeros((count, words), dtype=np.uint64)
        return _draw_words(*self._chance, count, words) & self._there

    @cached_property
    def _chance(self) -> tuple[int, int]:
        """As few binary digits as bring the size of most sets near to what is wanted."""
        k, d = self.size, self.categories
        spread = math.sqrt(k * (d - k) / d)
        digits, chance = 1, 1
        while abs(chance * d / (1 << digits) - k) > spread:
            digits += 1
            chance = min(max(1, round((k << digits) / d)), (1 << digits) - 1)
        return chance, digits

    def check(self, reports: Any) -> NDArray[Any]:
        """The ``reports``, each a row of bytes with ``size`` bits."""
        packed = check_packed(self, reports)
        if (np.bitwise_count(packed).sum(axis=1, dtype=np.int64) != self.size).any():
            raise self.not_a_report()
        return packed

    def support(self, reports: Any) -> Integers:
        """How many of ``reports`` list each answer."""
        return count_bits(reports, self.categories)

    def indicator(self, reports: Any) -> NDArray[np.bool_]:
        """For each of ``reports``, whether it supports each answer."""
        return unpack(reports, self.categories).view(np.bool_)


def _draw_words(chance: int, digits: int, count: int, words: int) -> NDArray[np.uint64]:
    """Rows of words whose every bit is set with probability ``chance`` / 2**``digits``."""
    found = np.zeros((count, words), dtype=np.uint64)
    for place in range(digits):
        one = chance >> place & 1
        if not one and not chance & ((1 << place) - 1):
            continue  # below the last digit that is set there is nothing to halve
        half = random_words(count * words).reshape(count, words)
        if one:  # 1/2 + p/2
            found |= half
        else:
            found &= half
    return found


def _fill(cells: NDArray[np.uint8], missing: NDArray[np.int32], d: int) -> None:
    """Add as many uniform places as are missing to each row of bits.

    A place is drawn for every row at a time, and added if it is empty and one is missing: no step
    looks at a place but to see whether it is full.
    """
    flat = cells.reshape(-1)
    start = np.arange(len(cells)) * cells.shape[1]
    last = np.uint16((1 << (d - 1).bit_length()) - 1)
    while True:
        open_ = np.flatnonzero(missing)
        if not open_.size:
            return
        begin, left = start[open_], missing[open_]
        tries = min(_TRIES, int(1.25 * left.mean()) + 4)
        drawn = random_words(open_.size * tries, np.uint16).reshape(tries, -1) & last
        bits = _BITS.take(drawn & 7)
        drawn >>= 3
        for place, bit in zip(drawn, bits, strict=True):
            at = begin + place
            held = flat.take(at)
            added = ((held & bit) == 0) & (left > 0)
            bit *= added  # noqa: PLW2901
            held |= bit
            flat[at] = held
            left -= added
        missing[open_] = left


__all__ = ["SubsetSelection"]
