"""Local hashing with several hashes in a report: for answers too many to list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.local.frequencies import Doubles, Integers
from discreet.local.hashing import PRIMES, LocalHashing, count_digits
from discreet.noise import bernoulli, uniform_below

_MOST_BITS = 53  # of a report: whole numbers that JSON and a browser hold exactly
_MOST_SUM = 2**24  # of a hash before it is reduced: whole numbers that float32 holds exactly
_ALIKE = Fraction(1, 10**6)
"""Shapes whose variance is above the least by less than this are alike: the shortest is taken."""


@dataclass(frozen=True, init=False, repr=False)
class HashedSets(LocalHashing):
    """Report a public hash function drawn at random, and some hashes, more often with your own.

    The answers are numbered from 0, below ``categories``, and a report costs ``epsilon``.

    Definition:
        As :class:`LocalHashing`, with a prime g and a key s; reported are k = ``size``
        consecutive hashes a, a + 1, ... mod g, by their first.  A first a has probability
        proportional to r if the set contains s . x mod g and to 1 if not.  g and k are
        chosen so that k / g is near 1 / (r + 1).

    Guarantee:
        Each hash is in k of the g sets, so the law has one denominator for all answers;
        given the key, which says nothing about the answer, two answers give every set
        probabilities whose ratio is 1, r or 1 / r, and r <= e**epsilon.

    Accuracy:
        The hash of another answer is uniform, so the estimate is unbiased and has
        variance n q (1 - q) / (p - q)**2 for a rare answer, with q = k / g and
        p = r q / (r q + 1 - q).  That is the least that any p and q at the odds r have,
        4 r / (r - 1)**2, times 1 + (1 - (r + 1) q)**2 / (4 r q (1 - q)): one part in a
        million more, up to epsilon = 4 (docs/proofs/local.md, Lemma 7).

    Reference:
        Wang, Blocki, Li and Jha (2017); Ye and Barg (2017).

    Example:
        >>> hashed = HashedSets(10**6, epsilon=1)
        >>> hashed.buckets, hashed.size, round(hashed.variance(respondents=10**6))
        (1009, 271, 3682697)
        >>> round(LocalHashing(10**6, epsilon=1).variance(respondents=10**6))
        3770066
    """

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The prime and the size: of the shortest reports, those alike the least variance."""
        shapes = [shape for shape in _list_shapes(self.odds) if self._fits(shape[0])]
        good = [shape for shape in shapes if self._excess(*shape) < _ALIKE]
        if not good:
            return min(shapes, key=lambda shape: self._excess(*shape))
        return min(good, key=lambda shape: (self._reports(shape[0]), self._excess(*shape)))

    def _fits(self, buckets: int) -> bool:
        digits = count_digits(buckets, self.categories)
        short = self._reports(buckets) <= 2**_MOST_BITS
        return short and digits * (buckets - 1) ** 2 < _MOST_SUM

    def _reports(self, buckets: int) -> int:
        return int(buckets ** (count_digits(buckets, self.categories) + 1))

    def _excess(self, buckets: int, size: int) -> Fraction:
        """By how much the variance is above the least, as a part of it (Lemma 7)."""
        r, q = self.odds, Fraction(size, buckets)
        return (1 - (r + 1) * q) ** 2 / (4 * r * q * (1 - q))

    @cached_property
    def buckets(self) -> int:
        """g: how many hashes there are."""
        return self._shape[0]

    @property
    def size(self) -> int:
        """How many of them a report names."""
        return self._shape[1]

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

    @cached_property
    def _line(self) -> Doubles:
        """For each c, what x, x + t and x + c t on one line add to the chance of the last two.

        The hash of x is at some place o of the set, or beyond it; o + t and o + c t are both
        in the set for so many of the g values of t: one for each place v = o + t in it.
        """
        k, g = self.size, self.buckets
        own = np.where(np.arange(g) < k, float(self.inside) / k, float(1 - self.inside) / (g - k))
        ratios = np.arange(2, g, dtype=np.int32)
        places = np.arange(g, dtype=np.int32)[:, None] * (1 - ratios) % g  # those of v = 0
        found = np.zeros(g)
        for _ in range(k):
            found[2:] += own @ (places < k)
            places += ratios
            places -= g * (places >= g)
        found[2:] = found[2:] / g - (k / g) ** 2
        return found

    @property
    def _place_masses(self) -> tuple[list[Fraction], Fraction]:
        k, g = self.size, self.buckets
        return [self.inside / k] * k, (1 - self.inside) / (g - k)

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """A fresh key for each of ``codes``, then a set with the hash or one without.

        Both are drawn, whatever the coin says: how long it takes says nothing.
        """
        g, k = self.buckets, self.size
        keys = uniform_below(self.keys, codes.size)
        named = bernoulli(self.inside, codes.size)
        within = uniform_below(k, codes.size)
        beyond = k + uniform_below(g - k, codes.size)
        first = (self.hash(keys, codes) - np.where(named, within, beyond)) % g
        reports: Integers = keys * g + first
        return reports

    def _find_supported(self, reports: Integers, wanted: NDArray[np.float32]) -> NDArray[np.bool_]:
        keys, first = np.divmod(reports, self.buckets)
        places = self._products(keys, wanted)
        places -= first.astype(np.float32)[:, None]
        # Before it is reduced a place lies between -g and g.
        within = (places >= 0) & (places < self.size)
        within |= places < self.size - self.buckets
        return within

    def _count_by_hash(self, reports: Integers) -> Integers:
        """A hash is named by the sets that begin at it, or up to size - 1 before it."""
        g, k = self.buckets, self.size
        first = super()._count_by_hash(reports).reshape(self.keys, g)
        sums = np.cumsum(np.concatenate([first[:, g - k + 1 :], first], axis=1), axis=1)
        named = sums[:, k - 1 :].copy()
        named[:, 1:] -= sums[:, : g - 1]
        return named.ravel()


def _list_shapes(odds: Fraction) -> Iterator[tuple[int, int]]:
    """For each prime, the sizes on both sides of the best share."""
    for g in PRIMES:
        below = int(g / (odds + 1))
        yield from ((g, k) for k in (below, below + 1) if 1 <= k < g)


__all__ = ["HashedSets"]
