"""Local hashing with several hashes in a report: for texts that nobody has listed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.errors import InvalidParameter
from discreet.local.frequencies import Integers
from discreet.local.hashing import PRIMES, LocalHashing
from discreet.local.oracle import checked_whole, chunks
from discreet.noise import bernoulli, uniform_below

_MOST_SETS = 500  # sets of hashes that a report can name
_CELLS = 1 << 20


@dataclass(frozen=True, init=False, repr=False)
class HashedSets(LocalHashing):
    """Report a public hash function drawn at random, and some hashes, more often with your own.

    Definition:
        As :class:`LocalHashing`, with a prime g and a key s; of the g hashes a set of
        k = ``size`` is reported, with probability proportional to r if it contains
        s . x mod g and to 1 if not (subset selection).  Of the primes and sizes with
        at most 500 sets, or with k = 1, those of least variance.

    Guarantee:
        Given the key, which says nothing about the answer, the report is subset
        selection: epsilon-differentially private.

    Accuracy:
        The hash of another answer is uniform, so the estimate is unbiased and has
        variance n q (1 - q) / (p - q)**2 for a rare answer, with q = k / g and
        p = r q / (r q + 1 - q).  At q = 1 / (r + 1) that is 4 r / (r - 1)**2, which no
        choice of p and q at the odds r is below; q is a fraction near it.

    Reference:
        Wang, Blocki, Li and Jha (2017); Ye and Barg (2017).

    Example:
        >>> hashed = HashedSets(10**6, epsilon=1)
        >>> hashed.buckets, hashed.size, round(hashed.variance(respondents=10**6))
        (11, 3, 3683033)
        >>> round(LocalHashing(10**6, epsilon=1).variance(respondents=10**6))
        3770066
    """

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The prime and the size of least variance."""
        near = [g for g in PRIMES if g <= 2 * self.odds + 20]
        found = [(g, k) for g in near for k in _list_sizes(g)]
        return min(found, key=lambda shape: self._variance_with(*shape))

    def _variance_with(self, buckets: int, size: int) -> Fraction:
        q = Fraction(size, buckets)
        p = self.odds * q / (self.odds * q + 1 - q)
        return q * (1 - q) / (p - q) ** 2

    @cached_property
    def buckets(self) -> int:
        """g: how many hashes there are."""
        return self._shape[0]

    @property
    def size(self) -> int:
        """How many of them a report names."""
        return self._shape[1]

    @cached_property
    def sets(self) -> int:
        """How many sets of hashes there are."""
        return math.comb(self.buckets, self.size)

    @property
    def inside(self) -> Fraction:
        """The probability that the true hash is named."""
        r, k, g = self.odds, self.size, self.buckets
        return r * k / (r * k + g - k)

    @property
    def outside(self) -> Fraction:
        """The hash of another answer is uniform, whichever are named."""
        return Fraction(self.size, self.buckets)

    @property
    def both(self) -> tuple[Fraction, Fraction]:
        """The hashes of three answers are independent unless they lie on one line."""
        return self.inside * self.outside, self.outside**2

    @property
    def _line(self) -> float:
        """On a line, three hashes are all equal, or all different."""
        p, k, g = self.inside, self.size, self.buckets
        if g == 2:
            return float(p / 2 - Fraction(1, 4))
        apart = (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / ((g - 1) * (g - 2))
        return float((p + (g - 1) * apart) / g - self.outside**2)

    @property
    def tied(self) -> float:
        """Lines through one answer share no other: Cauchy and Schwarz on each."""
        return (self.buckets - 2) * abs(self._line)

    @property
    def report_bits(self) -> int:
        """The key and the set of hashes."""
        return (self.keys * self.sets - 1).bit_length()

    @cached_property
    def _members(self) -> NDArray[np.bool_]:
        """Which hashes each set has; a row for each set."""
        found = np.zeros((self.sets, self.buckets), dtype=np.bool_)
        for place, hashes in enumerate(combinations(range(self.buckets), self.size)):
            found[place, list(hashes)] = True
        return found

    @cached_property
    def _choices(self) -> tuple[Integers, Integers]:
        """For each hash, the sets with it and those without; all have equally many."""
        every = [np.flatnonzero(column) for column in self._members.T]
        none = [np.flatnonzero(~column) for column in self._members.T]
        return np.stack(every), np.stack(none)

    def law(self, value: Any) -> FiniteLaw:
        """The exact law of one report, for a family that can be listed."""
        if self.keys * self.sets > MOST_OUTCOMES:
            raise InvalidParameter(
                "P2",
                f"there are more than {MOST_OUTCOMES} reports.",
                why="an exact law lists every possible report.",
                fix="look at the law for fewer answers.",
            )
        code, members = np.array([self.code(value)]), self._members
        with_own = math.comb(self.buckets - 1, self.size - 1)
        chances = ((1 - self.inside) / (self.sets - with_own), self.inside / with_own)

        def masses() -> Iterator[tuple[Hashable, Fraction]]:
            for key, own in enumerate(self.hash(np.arange(self.keys), code).tolist()):
                for found in range(self.sets):
                    yield key * self.sets + found, chances[int(members[found, own])] / self.keys

        return FiniteLaw.exact(masses())

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """A fresh key for each respondent, then a set with the hash or one without.

        Both are drawn, whatever the coin says: how long it takes says nothing.
        """
        every, none = self._choices
        keys = uniform_below(self.keys, codes.size)
        own = self.hash(keys, codes)
        listed = bernoulli(self.inside, codes.size)
        one = every[own, uniform_below(every.shape[1], codes.size)]
        other = none[own, uniform_below(none.shape[1], codes.size)]
        reports: Integers = keys * self.sets + np.where(listed, one, other)
        return reports

    def check(self, reports: Any) -> NDArray[Any]:
        """A report is a key and a set of hashes."""
        return checked_whole(self, reports, below=self.keys * self.sets)

    def support_of(self, reports: Any, candidates: Any) -> Integers:
        """How many reports support each of the candidates."""
        checked = self.check(reports)
        wanted = self.digits_of(np.asarray(candidates, dtype=np.int64)).astype(np.float32).T
        total = np.zeros(wanted.shape[1], dtype=np.int64)
        for part in chunks(len(checked), max(1, _CELLS // max(1, wanted.shape[1]))):
            total += self._supported(checked[part], wanted).sum(axis=0)
        return total

    def indicator(self, reports: Integers) -> NDArray[np.bool_]:
        """For each report, whether it supports each answer."""
        every = self.digits_of(np.arange(self.categories)).astype(np.float32).T
        return self._supported(np.asarray(reports), every)

    def _supported(self, reports: Integers, wanted: NDArray[np.float32]) -> NDArray[np.bool_]:
        keys, sets = np.divmod(reports, self.sets)
        cells = self._products(keys, wanted).astype(np.int32)
        cells += (sets * self.buckets).astype(np.int32)[:, None]
        return self._members.ravel().take(cells)


def _list_sizes(buckets: int) -> Iterator[int]:
    """One, and as long as the sets can be named; up to half of the hashes they become more."""
    yield 1
    for size in range(2, buckets // 2 + 1):
        if math.comb(buckets, size) > _MOST_SETS:
            return
        yield size


__all__ = ["HashedSets"]
