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
from discreet.local.packed import checked_packed, count_bits, unpack, width
from discreet.noise import bernoulli, uniform_below
from discreet.noise.entropy import random_words

_CELLS = 1 << 20  # bits made at a time
_WORD = 1 << 16
_RARE = 16
"""Sets of fewer than one answer in so many are filled from nothing."""
_TRIES = 40
"""How many places at most are drawn at a time to be added to a set."""
_FEW = 256  # up to this many reports are drawn as a page draws them


@dataclass(frozen=True, init=False, repr=False)
class SubsetSelection(FrequencyOracle):
    """Report ``size`` of the answers, with the true one among them more often than not.

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
        """The exact law of one report, as a tuple of the answers it lists."""
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
        """A coin says whether the true answer is listed; the others are chosen uniformly."""
        out = np.empty((codes.size, width(self.categories)), dtype=np.uint8)
        if codes.size <= _FEW:
            for place, code in enumerate(codes.tolist()):
                out[place] = np.packbits(self._one(code))
            return out
        for part in chunks(codes.size, max(_FEW, _CELLS // self.categories)):
            out[part] = np.packbits(self._many(codes[part]), axis=1)
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
        """Sets a little too small, filled up at uniform places until the number is right.

        A set of independent bits is, given how many it has, uniform among the sets of that size;
        so it stays if sets are picked by their size, if the true answer is taken out, and if
        uniform places outside of it are added: whatever does not look at which places they are
        (docs/proofs/local.md, Lemma 3).
        """
        count, d = codes.size, self.categories
        rows = np.arange(count)
        listed = bernoulli(self.inside, count)
        bits = self._draw_small_sets(count)
        bits[rows, codes] = 0
        missing = self.size - listed - bits.sum(axis=1, dtype=np.uint16).astype(np.int64)
        open_ = np.flatnonzero(missing)
        while open_.size:
            some = bits[open_]
            left = missing[open_]
            _fill(some, codes[open_], left, d)
            bits[open_] = some
            missing[open_] = left
            open_ = open_[left > 0]
        bits[rows, codes] = listed
        return bits

    def _draw_small_sets(self, count: int) -> NDArray[np.uint8]:
        """Sets of independent bits that lack at least one answer, and not many; a row each.

        The bits of a word are drawn at once: with probability a / 64 each, from the digits of a.
        """
        d, below = self.categories, self.size - 1
        spread = math.sqrt(self.size * (1 - self.size / d))
        span = max(2, round(spread))
        # Any chance will do, since it decides no law: of those near, one of few binary digits.
        near = range(max(0, 64 * (below - span)) // d + 1, 64 * below // d + 1)
        chance = max(near, key=lambda c: c & -c, default=0)
        if _RARE * below < d or chance == 0:
            return np.zeros((count, d), dtype=np.uint8)
        words = (d + 63) // 64
        spare = np.packbits(np.arange(64 * words) < d).view(np.uint64)
        found: list[NDArray[np.uint64]] = []
        lacking = count
        while lacking > 0:
            drawn = _draw_words(chance, 2 * lacking + 64, words)
            drawn &= spare
            sizes = np.bitwise_count(drawn).sum(axis=1, dtype=np.uint16)
            some = drawn[(sizes <= below) & (sizes >= max(0, below - span))][:lacking]
            found.append(some)
            lacking -= len(some)
        packed = np.concatenate(found).view(np.uint8)
        return np.unpackbits(packed, axis=1, count=d)

    def check(self, reports: Any) -> NDArray[Any]:
        """A report is a row of bytes with ``size`` bits."""
        packed = checked_packed(self, reports)
        if (np.bitwise_count(packed).sum(axis=1, dtype=np.int64) != self.size).any():
            raise self.not_a_report()
        return packed

    def support(self, reports: Any) -> Integers:
        """How many reports list each answer."""
        return count_bits(reports, self.categories)

    def indicator(self, reports: Any) -> NDArray[np.bool_]:
        """For each report, whether it supports each answer."""
        return unpack(reports, self.categories).view(np.bool_)


def _draw_words(chance: int, count: int, words: int) -> NDArray[np.uint64]:
    """Rows of words whose every bit is set with probability ``chance`` / 64."""
    found = np.zeros((count, words), dtype=np.uint64)
    for place in range(6):
        one = chance >> place & 1
        if not one and not chance & ((1 << place) - 1):
            continue  # below the last digit that is set there is nothing to halve
        half = random_words(count * words).reshape(count, words)
        if one:  # 1/2 + p/2
            found |= half
        else:
            found &= half
    return found


def _fill(bits: NDArray[np.uint8], codes: Integers, missing: Integers, d: int) -> None:
    """Add up to ``missing`` uniform places, different and new, to each row; count down.

    Places are drawn with repetition; the last of equal ones stands for them.  As many as are
    missing are taken in the order drawn, if there are as many: no step looks at a place
    but to compare it with others.
    """
    count = codes.size
    tries = min(_TRIES, int(1.4 * missing.mean()) + 3)
    drawn = random_words(count * tries, np.uint16).reshape(count, tries)
    places = (drawn % np.uint16(d)) if d < _WORD else drawn
    cells, flat = bits.reshape(-1), places + (np.arange(count) * d)[:, None]
    good = cells.take(flat) == 0
    good &= places != codes.astype(np.uint16)[:, None]
    if _WORD % d:
        good &= drawn < np.uint16(_WORD - _WORD % d)
    turns = np.arange(tries, dtype=np.uint8)
    last = np.empty(count * d, dtype=np.uint8)
    last[flat] = turns
    good &= last.take(flat) == turns
    order = np.cumsum(good, axis=1, dtype=np.uint8)
    most = np.minimum(missing, 255).astype(np.uint8)
    good &= order <= most[:, None]
    cells[flat[good]] = 1
    missing -= np.minimum(order[:, -1], most)


__all__ = ["SubsetSelection"]
