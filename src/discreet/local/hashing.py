"""Local hashing: report a hash function and the randomised hash of the answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.errors import InvalidParameter
from discreet.exact.numbers import whole
from discreet.local.frequencies import Doubles, Integers
from discreet.local.odds import MOST_CATEGORIES
from discreet.local.oracle import FrequencyOracle, check_whole, chunks
from discreet.mechanisms import TwoCoinResponse
from discreet.noise import uniform_below

_MOST_LISTED = 2**16  # answers that are all estimated at once
_CELLS = 1 << 22
PRIMES = [p for p in range(2, 2000) if all(p % q for q in range(2, int(p**0.5) + 1))]
TEXT_BITS = 40


@dataclass(frozen=True, init=False, repr=False)
class LocalHashing(FrequencyOracle):
    """Report a public hash function drawn at random, and the answer's hash, randomised.

    The answers are numbered from 0, below ``categories``, and a report costs ``epsilon``.

    Definition:
        An answer is written as m digits of base g, g a prime near r + 1.  A key s of m
        digits is drawn uniformly; h = s . x mod g is reported by randomized
        response over g values at the odds r.  The report is (s, h'), as one number.

    Guarantee:
        Given the key, which says nothing about the answer, the report is randomized
        response: epsilon-differentially private.  The key is public; it must be
        drawn anew for each respondent, or two answers that collide stay together.

    Accuracy:
        Two different answers have equal hashes for exactly one key in g, so the
        estimate is unbiased and has variance n (r - 1 + g)**2 / ((g - 1) (r - 1)**2)
        for a rare answer, however many answers there are.

    Reference:
        Wang, Blocki, Li and Jha (2017), 4.5; the family is the inner product, exactly
        pairwise uniform (Carter and Wegman 1979).

    Example:
        >>> hashed = LocalHashing(10**6, epsilon=2)
        >>> hashed.buckets, hashed.digits, round(hashed.variance(respondents=1000))
        (7, 8, 732)
        >>> hashed.report_bits
        26
    """

    most_categories: ClassVar[int] = MOST_CATEGORIES

    @cached_property
    def buckets(self) -> int:
        """g: the prime of least variance."""
        r = self.odds
        return min(PRIMES, key=lambda g: (r - 1 + g) ** 2 / (g - 1)) if r < 1900 else PRIMES[-1]

    @cached_property
    def digits(self) -> int:
        """How many digits of base g write every answer."""
        return count_digits(self.buckets, self.categories)

    @property
    def keys(self) -> int:
        """How many hash functions there are."""
        return int(self.buckets**self.digits)

    @cached_property
    def response(self) -> TwoCoinResponse:
        """What is tossed over the hash."""
        share = (self.odds - 1) / (self.odds - 1 + self.buckets)
        return TwoCoinResponse(truth=share, categories=self.buckets)

    @property
    def inside(self) -> Fraction:
        """The probability that the true hash is reported."""
        return self.odds / (self.odds + self.buckets - 1)

    @property
    def outside(self) -> Fraction:
        """The hash of another answer is uniform, whatever is reported."""
        return Fraction(1, self.buckets)

    @property
    def both(self) -> tuple[Fraction, Fraction]:
        """The hashes of three answers are independent unless they lie on one line."""
        return self.inside / self.buckets, Fraction(1, self.buckets**2)

    @cached_property
    def _line(self) -> Doubles:
        """For each c, what x, x + t and x + c t on one line add to the chance of the last two.

        With local hashing they are supported together or not at all, whatever c is.
        """
        chance = float(self.inside / self.buckets - Fraction(1, self.buckets**2))
        return np.where(np.arange(self.buckets) < 2, 0.0, chance)

    def tie_together(self, counts: Doubles) -> Doubles:
        """What answers on the line through two others add to how these are supported.

        ``counts`` are the numbers of respondents with each answer.
        """
        g, d = self.buckets, len(counts)
        digits = self.digits_of(np.arange(d))
        powers = g ** np.arange(self.digits)
        padded = np.append(counts, np.zeros(self.keys - d))
        found = np.zeros((d, d))
        for step in range(2, g):
            between = (digits[:, None, :] * (1 - step) + digits[None, :, :] * step) % g
            # The third is x; the two are x + t and x + c t with c = (step - 1) / step.
            ratio = (step - 1) * pow(step, -1, g) % g
            found += padded[between @ powers] * self._line[ratio]
        return found

    @property
    def tied(self) -> float:
        """Lines through one answer share no other; on each the sum over a row bounds (Schur)."""
        return float(np.abs(self._line).sum())

    @property
    def report_bits(self) -> int:
        """The key and the hash."""
        return (self.keys * self.buckets - 1).bit_length()

    def digits_of(self, numbers: Integers) -> Integers:
        """The digits of base g of ``numbers``, the lowest first, in the last axis."""
        rest = np.asarray(numbers, dtype=np.int64)
        out = np.empty((*rest.shape, self.digits), dtype=np.int64)
        for place in range(self.digits):
            rest, out[..., place] = np.divmod(rest, self.buckets)
        return out

    def hash(self, keys: Integers, codes: Integers) -> Integers:
        """s . x mod g for each pair of a key s of ``keys`` and an answer x of ``codes``."""
        total = np.zeros(np.broadcast_shapes(keys.shape, codes.shape), dtype=np.int64)
        g = self.buckets
        for _ in range(self.digits):
            total += (keys % g) * (codes % g)
            keys, codes = keys // g, codes // g
        return total % g

    def law(self, value: Any, *, hash_key: int | None = None) -> FiniteLaw:
        """The exact law of the report of one whose answer is ``value``.

        With ``hash_key``, given that this key was drawn. Keys are uniform, whatever the answer is.
        Without one, all reports of a family that can be listed.
        """
        keys = self._list_keys(hash_key)
        named, other = self._place_masses
        hashes = self.hash(np.array(keys), np.array([self.code(value)])).tolist()

        def masses() -> Iterator[tuple[Hashable, Fraction]]:
            g, k = self.buckets, len(named)
            for key, own in zip(keys, hashes, strict=True):
                for found in range(g):
                    place = (own - found) % g
                    yield key * g + found, (named[place] if place < k else other) / len(keys)

        return FiniteLaw.exact(masses())

    @property
    def _place_masses(self) -> tuple[list[Fraction], Fraction]:
        """Of a reported hash: for each place before the own at which it says the own; and else."""
        return [self.inside], (1 - self.inside) / (self.buckets - 1)

    def _list_keys(self, hash_key: int | None) -> Sequence[int]:
        if hash_key is not None:
            key = whole(hash_key, name="hash_key")
            if key < self.keys:
                return [key]
        if hash_key is not None or self.keys * self.buckets > MOST_OUTCOMES:
            raise InvalidParameter(
                "P2",
                f"there are more than {MOST_OUTCOMES} reports."
                if hash_key is None
                else f"there is no hash_key {hash_key}; the last is {self.keys - 1}.",
                why="an exact law lists every possible report.",
                fix="look at the law given a key, law(value, hash_key=0), or for fewer answers.",
            )
        return range(self.keys)

    def randomize(self, codes: Integers) -> NDArray[Any]:
        """A fresh key for each of ``codes``, then randomized response over the hash."""
        keys = uniform_below(self.keys, codes.size)
        reports: Integers = keys * self.buckets + self.response.release(self.hash(keys, codes))
        return reports

    def check(self, reports: Any) -> NDArray[Any]:
        """The ``reports``, each of which is a key and a hash."""
        return check_whole(self, reports, below=self.keys * self.buckets)

    def support(self, reports: Any) -> Integers:
        """For each answer, the ``reports`` whose hash is that of the answer under their key."""
        if self.categories > _MOST_LISTED:
            raise InvalidParameter(
                "P2",
                f"{self.categories} answers cannot all be estimated at once.",
                why="each report would have to be hashed with every answer.",
                fix="name the answers you want: support_of(reports, candidates).",
            )
        return self.support_of(reports, np.arange(self.categories))

    def support_of(self, reports: Any, candidates: Any) -> Integers:
        """How many of ``reports`` support each of the ``candidates``."""
        checked = self.check(reports)
        wanted = self.digits_of(np.asarray(candidates, dtype=np.int64)).astype(np.float32).T
        if self.keys <= len(checked):
            return self._by_key(checked, wanted)
        total = np.zeros(wanted.shape[1], dtype=np.int64)
        for part in chunks(len(checked), max(1, _CELLS // max(1, wanted.shape[1]))):
            total += self._find_supported(checked[part], wanted).sum(axis=0)
        return total

    def indicator(self, reports: Integers) -> NDArray[np.bool_]:
        """For each of ``reports``, whether it supports each answer."""
        every = self.digits_of(np.arange(self.categories)).astype(np.float32).T
        return self._find_supported(np.asarray(reports), every)

    def _find_supported(self, reports: Integers, wanted: NDArray[np.float32]) -> NDArray[np.bool_]:
        keys, hashes = np.divmod(reports, self.buckets)
        return np.asarray(self._products(keys, wanted) == hashes[:, None])

    def _count_by_hash(self, reports: Integers) -> Integers:
        """For each key and hash, the reports with that key that support that hash."""
        return np.bincount(reports, minlength=self.keys * self.buckets)

    def _by_key(self, reports: Integers, wanted: NDArray[np.float32]) -> Integers:
        """Count the reports of each key and hash first: fewer than the reports."""
        counts = self._count_by_hash(reports)
        total = np.zeros(wanted.shape[1], dtype=np.int64)
        for part in chunks(self.keys, max(1, _CELLS // max(1, wanted.shape[1]))):
            keys = np.arange(part.start, part.stop)
            cells = self._products(keys, wanted).astype(np.int64) + (keys * self.buckets)[:, None]
            total += counts[cells].sum(axis=0)
        return total

    def _products(self, keys: Integers, wanted: NDArray[np.float32]) -> NDArray[np.float32]:
        """s . x mod g for every key and column: whole numbers below 2**24, exact in floats."""
        sums = self.digits_of(keys).astype(np.float32) @ wanted
        sums -= np.float32(self.buckets) * np.floor(sums / np.float32(self.buckets))
        return sums


def count_digits(base: int, categories: int) -> int:
    """How many digits of a base write every answer.

    >>> count_digits(10, 1000), count_digits(10, 1001)
    (3, 4)
    """
    count, reach = 1, base
    while reach < categories:
        count, reach = count + 1, reach * base
    return count


def code_of_text(text: str, *, key: bytes) -> int:
    """The number below 2**40 that stands for ``text``, by a hash with a public ``key``.

    >>> code_of_text("lung", key=b"survey 7") == code_of_text("lung", key=b"survey 7") < 2**40
    True
    """
    found = blake2b(text.encode(), digest_size=TEXT_BITS // 8, key=key[:64]).digest()
    return int.from_bytes(found, "little")


__all__ = ["LocalHashing", "code_of_text"]
