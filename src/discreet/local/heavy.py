"""Texts nobody listed: the frequent ones, found letter by letter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.frequencies import Integers
from discreet.local.hashed_sets import HashedSets
from discreet.local.hashing import TEXT_BITS, code_of_text
from discreet.local.margins import interval
from discreet.local.odds import checked_epsilon
from discreet.local.oracle import divide
from discreet.noise import uniform_below

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_END = "\x00"


class Found(NamedTuple):
    """A frequent text: how many respondents have it, and between which ends."""

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, init=False, repr=False)
class HeavyHitters:
    """Report one beginning of a text, of a length drawn at random, by local hashing.

    Definition:
        A respondent draws a length j = 1 ... ``length`` uniformly and reports the
        first j letters of the text, or all of a shorter one and a mark, as a number of 40
        bits (a hash with a public key) through :class:`HashedSets`.

    Guarantee:
        epsilon-differentially private: the length drawn does not depend on the text,
        and local hashing has all of epsilon.

    Accuracy:
        Each length is estimated from a 1 / ``length`` share of the respondents.  Texts
        whose number is several standard errors are found by extending the most
        frequent beginnings letter by letter; which ones, nobody can promise, but the
        ends of every number that is shown hold together, but for ``beta``.

    Reference:
        Wang, Li and Jha (2021), "Locally differentially private heavy hitter
        identification" (PEM); Bassily, Nissim, Stemmer and Thakurta (2017).

    Example:
        >>> words = HeavyHitters(length=4, epsilon=4, key=b"survey 7")
        >>> reports = words.release(["lung"] * 3000 + ["skin"] * 2000 + ["eye"] * 2500)
        >>> [found.text for found in words.find(reports, count=2)]
        ['lung', 'eye']
    """

    length: int
    epsilon: Fraction
    key: bytes
    alphabet: str

    def __init__(self, *, length: int, epsilon: Exact, key: bytes, alphabet: str = LETTERS) -> None:
        if not key or _END in alphabet or len(set(alphabet)) != len(alphabet) or not alphabet:
            raise InvalidParameter(
                "P4",
                "a key must be given, and an alphabet of different letters.",
                why="texts are hashed with a public key, and found letter by letter.",
                fix="pass key=b'the name of the survey' and the letters that may occur.",
            )
        object.__setattr__(self, "length", whole(length, name="length", least=1))
        object.__setattr__(self, "epsilon", checked_epsilon(epsilon))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "alphabet", alphabet)

    def __repr__(self) -> str:
        return f"HeavyHitters(length={self.length}, epsilon='{self.epsilon}')"

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent."""
        return Loss.pure(self.epsilon)

    @cached_property
    def oracle(self) -> HashedSets:
        """Over the numbers of 40 bits that stand for beginnings."""
        return HashedSets(2**TEXT_BITS, epsilon=self.epsilon)

    @property
    def report_bits(self) -> int:
        """The length drawn, and the report of the hash."""
        return (self.length - 1).bit_length() + self.oracle.report_bits

    def beginning(self, text: str, letters: int) -> str:
        """The first letters of a text, or all of a shorter one and the mark."""
        cut = "".join(one for one in text if one in self.alphabet)[: self.length]
        return cut[:letters] if len(cut) >= letters else cut + _END

    def _code(self, beginning: str) -> int:
        return code_of_text(beginning, key=self.key)

    def _texts(self, value: Any) -> list[str]:
        texts = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
        found = list(texts)
        if not all(isinstance(one, str) for one in found):
            raise InvalidParameter(
                "P6",
                "an answer is not a text.",
                why="a report is made of the letters at the beginning of a text.",
                fix="pass a text, or a list of texts; an empty one for who has nothing to say.",
            )
        return found

    def release(self, value: Any) -> Any:
        """The report of one text, or of each one in a list.

        Letters outside the alphabet and beyond the length are left out.
        """
        texts = self._texts(value)
        drawn = uniform_below(self.length, len(texts))
        known: dict[tuple[str, int], int] = {}
        codes = np.empty(len(texts), dtype=np.int64)
        for place, (text, group) in enumerate(zip(texts, drawn.tolist(), strict=True)):
            if (text, group) not in known:
                known[text, group] = self._code(self.beginning(text, group + 1))
            codes[place] = known[text, group]
        reports = self.oracle.randomize(codes) * self.length + drawn
        return int(reports[0]) if isinstance(value, str) else reports

    def find(self, reports: Any, *, count: int = 20, beta: Exact = "0.05") -> list[Found]:
        """Up to ``count`` texts, the most frequent first, with ends that hold together."""
        wanted = whole(count, name="count", least=1)
        parts = divide(reports, [self.oracle] * self.length)
        everyone = sum(map(len, parts))
        kept = [""]
        for mine in parts:
            candidates = [
                longer
                for one in kept
                for longer in (
                    [one]
                    if one.endswith(_END)
                    else [*(one + letter for letter in self.alphabet), one + _END]
                )
            ]
            codes = [self._code(one) for one in candidates]
            support = self.oracle.support_of(mine, codes)
            order = np.argsort(-support, kind="stable")[: 3 * wanted]
            kept = [candidates[place] for place in order.tolist()]
        return self._measure(kept, support[order], len(mine), everyone, wanted, beta)

    def _measure(
        self,
        texts: list[str],
        support: Integers,
        reported: int,
        everyone: int,
        wanted: int,
        beta: Exact,
    ) -> list[Found]:
        """Numbers among those who reported whole texts, scaled to everyone.

        Which length was drawn is chance as well: of everyone, one in ``length`` could support.
        """
        p, q = self.oracle.inside, self.oracle.outside
        scale = everyone / max(reported, 1)
        # The texts were chosen by these very numbers: each of all candidates pays for its ends.
        share = proportion(beta, name="beta") / (len(texts) * (len(self.alphabet) + 1))
        out = []
        for text, hits in list(zip(texts, support.tolist(), strict=True))[:wanted]:
            value = scale * float((hits - reported * q) / (p - q))
            low, high = interval(
                hits,
                respondents=everyone,
                inside=p / self.length,
                outside=q / self.length,
                beta=share,
            )
            if low > 0:
                name = text.rstrip(_END)
                out.append(Found(name, value, min(low, value), max(high, value)))
        return out


__all__ = ["Found", "HeavyHitters"]
