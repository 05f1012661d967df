"""Texts nobody listed: the frequent ones, found letter by letter."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.hashed_sets import HashedSets
from discreet.local.hashing import TEXT_BITS, code_of_text
from discreet.local.margins import interval
from discreet.local.odds import check_epsilon
from discreet.local.oracle import divide
from discreet.noise import uniform_below

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_END = "\x00"
_MOST_LENGTH = 2**10  # reports of 53 bits of each length, in whole numbers of 63


class Found(NamedTuple):
    """A frequent text: how many respondents have it, and between which ends.

    ``text`` is had by about ``value`` of them, from ``low`` to ``high``.
    """

    text: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, init=False, repr=False)
class HeavyHitters:
    """Report one beginning of a text, of a length drawn at random, by local hashing.

    Texts are made of the letters of ``alphabet``; ``key`` is public, and a report costs
    ``epsilon``.

    Definition:
        A respondent draws a length j = 1 ... ``length`` uniformly and reports the
        first j letters of the text, or all of a shorter one and a mark, as a number of 40
        bits (a hash with a public key; fewer with ``bits``) through :class:`HashedSets`.

    Guarantee:
        epsilon-differentially private: the length drawn does not depend on the text,
        and local hashing has all of epsilon.

    Accuracy:
        Each length is estimated from a 1 / ``length`` share of the respondents: ``variance``
        is exact for a text that is named (``estimate``), but for texts of one code.  Texts
        whose number is several standard errors are found by extending the most
        frequent beginnings letter by letter; which ones, nobody can promise, but the
        ends of every number that is shown hold together, but for ``beta``.

    Reference:
        Wang, Li and Jha (2021), "Locally differentially private heavy hitter
        identification" (PEM); Bassily, Nissim, Stemmer and Thakurta (2017).

    Example:
        >>> words = HeavyHitters(length=4, epsilon=4, key=b"survey 7")
        >>> reports = words.release(["lung"] * 5000 + ["skin"] * 500 + ["eye"] * 2500)
        >>> [found.text for found in words.find(reports, count=2)]
        ['lung', 'eye']
        >>> round(words.variance(respondents=8000, count=2500) ** 0.5)
        133
    """

    length: int
    epsilon: Fraction
    key: bytes
    alphabet: str
    bits: int

    def __init__(
        self,
        *,
        length: int,
        epsilon: Exact,
        key: bytes,
        alphabet: str = LETTERS,
        bits: int = TEXT_BITS,
    ) -> None:
        if not key or _END in alphabet or len(set(alphabet)) != len(alphabet) or not alphabet:
            raise InvalidParameter(
                "P4",
                "a key must be given, and an alphabet of different letters.",
                why="texts are hashed with a public key, and found letter by letter.",
                fix="pass key=b'the name of the survey' and the letters that may occur.",
            )
        if whole(length, name="length", least=1) > _MOST_LENGTH:
            raise InvalidParameter(
                "P2",
                f"length must be at most {_MOST_LENGTH}, got {length}.",
                why="a report is one whole number of 63 bits, and would be cut to another.",
                fix="report fewer letters of each text.",
            )
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "alphabet", alphabet)
        object.__setattr__(self, "bits", _check_bits(bits))

    def __repr__(self) -> str:
        return f"HeavyHitters(length={self.length}, epsilon='{self.epsilon}')"

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent."""
        return Loss.pure(self.epsilon)

    @cached_property
    def oracle(self) -> HashedSets:
        """Over the numbers that stand for beginnings."""
        return HashedSets(2**self.bits, epsilon=self.epsilon)

    @property
    def report_bits(self) -> int:
        """The length drawn, and the report of the hash."""
        return (self.length - 1).bit_length() + self.oracle.report_bits

    def beginning(self, text: str, letters: int) -> str:
        """The first so many ``letters`` of ``text``, or all of a shorter one and the mark."""
        cut = "".join(one for one in text if one in self.alphabet)[: self.length]
        return cut[:letters] if len(cut) >= letters else cut + _END

    def _code(self, beginning: str) -> int:
        return code_of_text(beginning, key=self.key) & ((1 << self.bits) - 1)

    def law(self, value: str, *, hash_key: int | None = None) -> FiniteLaw:
        """The exact law of the report on ``value``: (length, report of the hash), as one number.

        With ``hash_key``, given that this hash function was drawn: all are equally likely, whatever
        the text is.  Without it, of all, if so few ``bits`` stand for a text that they can be
        listed.
        """
        (text,) = self._texts(value)
        masses: list[tuple[Hashable, Fraction]] = []
        for drawn in range(self.length):
            code = self._code(self.beginning(text, drawn + 1))
            law = self.oracle.law(code, hash_key=hash_key)
            masses += [
                (int(report) * self.length + drawn, chance / self.length)  # type: ignore[call-overload]
                for report, chance in zip(law.outcomes, law.fractions or (), strict=True)
            ]
        return FiniteLaw.exact(masses)

    def variance(self, *, respondents: int, count: int = 0, reported: Exact | None = None) -> float:
        """Of the estimated number of those with a text, if ``count`` of ``respondents`` have it.

        Exact, given that ``reported`` of them drew the whole text: one in ``length``, if it is not
        said. Other texts that have the same number of ``bits`` count as this one.
        """
        n = whole(respondents, name="respondents", least=1)
        part = Fraction(n, self.length) if reported is None else reported
        return float(self.oracle.variance_of_part(respondents=n, reported=part, count=count))

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
        """The report of one text, or of each one in a list: ``value``.

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

    def estimate(self, reports: Any, texts: Sequence[str], *, beta: Exact = "0.05") -> list[Found]:
        """How many respondents have each of the ``texts``, without bias; ends hold together.

        ``reports`` are those of ``release``, and ``beta`` is the chance that some end does not
        hold. Texts are compared as they are reported: up to their length, in the letters of the
        alphabet.
        """
        wanted = self._texts(list(texts))
        parts = divide(reports, [self.oracle] * self.length)
        whole_texts = [self.beginning(text, self.length) for text in wanted]
        support = self.oracle.support_of(parts[-1], [self._code(one) for one in whole_texts])
        share = proportion(beta, name="beta") / max(len(wanted), 1)
        everyone = sum(map(len, parts))
        return [
            self._measure(text, hits, len(parts[-1]), everyone, share)
            for text, hits in zip(wanted, support.tolist(), strict=True)
        ]

    def find(self, reports: Any, *, count: int = 20, beta: Exact = "0.05") -> list[Found]:
        """Up to ``count`` texts, the most frequent first, with ends that hold together.

        ``reports`` are those of ``release``, and ``beta`` is the chance that some end does not
        hold.
        """
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
        # The texts were chosen by these very numbers: each of all candidates pays for its ends.
        share = proportion(beta, name="beta") / (len(kept) * (len(self.alphabet) + 1))
        measured = [
            self._measure(text.rstrip(_END), hits, len(mine), everyone, share)
            for text, hits in zip(kept[:wanted], support[order].tolist(), strict=False)
        ]
        return [found for found in measured if found.low > 0]

    def _measure(self, text: str, hits: int, reported: int, everyone: int, beta: Fraction) -> Found:
        """The number among those who reported whole texts, scaled to everyone.

        Which length was drawn is chance as well: of everyone, one in ``length`` could support.
        """
        p, q = self.oracle.inside, self.oracle.outside
        value = everyone / max(reported, 1) * float((hits - reported * q) / (p - q))
        low, high = interval(
            hits,
            respondents=everyone,
            inside=p / self.length,
            outside=q / self.length,
            beta=beta,
        )
        return Found(text, value, min(low, value), max(high, value))


def _check_bits(bits: int) -> int:
    count = whole(bits, name="bits", least=1)
    if count > TEXT_BITS:
        raise InvalidParameter(
            "P2",
            f"bits must be at most {TEXT_BITS}, got {count}.",
            why="a report has to fit in a whole number that every device holds exactly.",
            fix="leave bits out.",
        )
    return count


__all__ = ["Found", "HeavyHitters"]
