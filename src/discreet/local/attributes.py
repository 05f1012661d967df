"""Several attributes of one respondent: what each says, and how two go together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.law import FiniteLaw, Law, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.local.choose import best_whole
from discreet.local.frequencies import Doubles, Frequencies, Integers
from discreet.local.odds import check_categories, check_epsilon
from discreet.local.oracle import FrequencyOracle, chunks, divide
from discreet.noise import uniform_below

_MOST_ATTRIBUTES = 256
"""Of two of 2**16 answers a report has up to 2**45 values, times fewer than 2**15 pairs."""
STRATEGIES = ("sample", "split", "pairs")


@dataclass(frozen=True, init=False, repr=False)
class Attributes:
    """Report on several attributes for one price.

    ``domains`` are the numbers of answers of each attribute, k in all; ``strategy`` is one of the
    three below, and the report costs ``epsilon``.

    Definition:
        ``split``: every attribute is reported with epsilon / k.  ``sample``: one
        attribute, drawn uniformly, is reported with all of epsilon.  ``pairs``: two
        attributes, drawn uniformly, are reported as one answer with all of epsilon.
        Each report is by the best of ``Direct``, ``LocalHashing`` and ``Hadamard``.

    Guarantee:
        epsilon-differentially private for a respondent who changes all attributes
        at once: k reports of epsilon / k add up, and which attribute is drawn does
        not depend on the answers.

    Accuracy:
        One table: ``sample`` has about k times the variance of a survey on that
        attribute alone, ``split`` about k**2 times.  Two attributes together:
        ``split`` and ``pairs``; ``pairs`` has about k (k - 1) / 2 times the variance of
        a survey on that pair alone.

    Reference:
        Wang, Xiao et al. (2019), Section IV (sampling); Ren et al. (2018) and Cormode,
        Kulkarni and Srivastava (2018) for joint tables.

    Example:
        >>> both = Attributes((3, 5, 2), epsilon=2, strategy="pairs")
        >>> both.loss.epsilon, both.pairs
        (Fraction(2, 1), ((0, 1), (0, 2), (1, 2)))
        >>> found = both.estimate(both.release(np.array([[2, 4, 1]] * 900)))
        >>> found.joint(0, 1).shares.shape
        (3, 5)
        >>> round(both.variance(respondents=900, attributes=(0, 1), share="1/3") ** 0.5, 4)
        0.0665
    """

    domains: tuple[int, ...]
    epsilon: Fraction
    strategy: str

    def __init__(self, domains: Sequence[int], *, epsilon: Exact, strategy: str = "sample") -> None:
        sizes = tuple(check_categories(one, most=2**16) for one in domains)
        if len(sizes) < 2 or strategy not in STRATEGIES:
            raise InvalidParameter(
                "P4",
                "there must be two attributes or more, and a strategy of split, sample or pairs.",
                why="a price is divided or an attribute drawn only where there are several.",
                fix="Attributes((3, 5), epsilon=1, strategy='sample').",
            )
        if len(sizes) > _MOST_ATTRIBUTES:
            raise InvalidParameter(
                "P2",
                f"there may be at most {_MOST_ATTRIBUTES} attributes, got {len(sizes)}.",
                why="a report is one whole number of 63 bits, and would be cut to another.",
                fix="ask about fewer attributes, or about some of them in another survey.",
            )
        object.__setattr__(self, "domains", sizes)
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "strategy", strategy)

    def __repr__(self) -> str:
        return f"Attributes({self.domains}, epsilon='{self.epsilon}', strategy={self.strategy!r})"

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent."""
        return Loss.pure(self.epsilon)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Every two attributes."""
        return tuple(combinations(range(len(self.domains)), 2))

    @cached_property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """One for each attribute, or for each pair."""
        if self.strategy == "pairs":
            sizes = [self.domains[one] * self.domains[other] for one, other in self.pairs]
            return tuple(best_whole(size, self.epsilon) for size in sizes)
        price = self.epsilon / len(self.domains) if self.strategy == "split" else self.epsilon
        return tuple(best_whole(size, price) for size in self.domains)

    def _answers(self, row: NDArray[Any]) -> list[Integers]:
        """For each oracle its answers."""
        if self.strategy != "pairs":
            return [row[:, place] for place in range(len(self.domains))]
        return [row[:, one] * self.domains[other] + row[:, other] for one, other in self.pairs]

    def _rows(self, values: Any) -> Integers:
        rows = np.asarray(values)
        if rows.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != len(self.domains):
            raise InvalidParameter(
                "P6",
                f"each respondent has {len(self.domains)} whole numbers.",
                why="every attribute has an answer, or the missing one would be told.",
                fix="pass an array with one row for each respondent.",
            )
        if rows.size and ((rows < 0) | (rows >= np.array(self.domains))).any():
            raise InvalidParameter(
                "P6",
                "an answer is not one of those declared for its attribute.",
                why="a report outside the declared answers would say who gave it.",
                fix="number the answers of each attribute from 0.",
            )
        return rows.astype(np.int64)

    def release(self, value: Any) -> Any:
        """The report of one respondent (a row), or of each one in a table of answers.

        ``value`` has one whole number for each attribute, in a row or in rows.

        Reports of ``split`` are rows; of the others, one number each.
        """
        one = np.ndim(value) == 1
        answers = self._answers(self._rows([value] if one else value))
        if self.strategy == "split":
            columns = [o.randomize(a) for o, a in zip(self.oracles, answers, strict=True)]
            table = np.stack(columns, axis=1)
            return table[0] if one else table
        kinds = len(self.oracles)
        drawn = uniform_below(kinds, answers[0].size)
        reports = np.empty(drawn.size, dtype=np.int64)
        for place, oracle in enumerate(self.oracles):
            these = drawn == place
            reports[these] = oracle.randomize(answers[place][these]) * kinds + place
        return int(reports[0]) if one else reports

    def law(self, value: Any) -> Law:
        """The exact law of the report of one respondent with the row of answers ``value``."""
        answers = self._answers(self._rows([value]))
        laws = [o.law(int(a[0])) for o, a in zip(self.oracles, answers, strict=True)]
        if self.strategy == "split":
            return ProductLaw(tuple(laws))
        kinds = len(laws)
        masses: list[tuple[Hashable, Fraction]] = []
        for place, law in enumerate(laws):
            if not isinstance(law, FiniteLaw) or law.fractions is None:
                raise self.oracles[place].not_a_report()
            masses += [
                (int(report) * kinds + place, chance / kinds)  # type: ignore[call-overload]
                for report, chance in zip(law.outcomes, law.fractions, strict=True)
            ]
        return FiniteLaw.exact(masses)

    def variance(self, *, respondents: int, attributes: Sequence[int], share: Exact = 0) -> float:
        """Of the estimated share of those with one answer, or with an answer to each of two.

        ``attributes`` are the places of the one or the two; ``share`` of the ``respondents`` have
        the answer. Exact, given that each attribute or pair was drawn by its equal part of them; of
        two with ``split``, the most that it can be, whoever else has one of the two answers.
        """
        n = whole(respondents, name="respondents", least=1)
        f = proportion(share, name="share", closed=True)
        places = tuple(sorted({self._place(one) for one in attributes}))
        if self.strategy == "split":
            chosen = [self.oracles[place] for place in places]
            if len(chosen) == 1:
                p, q = chosen[0].inside, chosen[0].outside
                return float((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2 / n)
            return float(_product_variance(chosen[0], chosen[1], f) / n)
        oracle = self._oracle(places)
        c = round(f * n)
        part = Fraction(n, len(self.oracles))
        found = oracle.variance_of_part(respondents=n, reported=part, count=c)
        return float(found / n**2)

    def _place(self, place: int) -> int:
        found = whole(place, name="an attribute")
        if found >= len(self.domains):
            raise InvalidParameter(
                "P2",
                f"there is no attribute {found}; the last is {len(self.domains) - 1}.",
                why="only declared attributes are reported on.",
                fix="number the attributes from 0.",
            )
        return found

    def _oracle(self, places: tuple[int, ...]) -> FrequencyOracle:
        """What reports on one attribute, or on two together."""
        if self.strategy == "pairs":
            if len(places) != 2:
                raise _no_table()
            return self.oracles[self.pairs.index((places[0], places[1]))]
        if len(places) != 1:
            raise _no_joint()
        return self.oracles[places[0]]

    def estimate(self, reports: Any) -> Tables:
        """Tables of single attributes and of two, from the ``reports``."""
        if self.strategy != "split":
            parts = divide(reports, self.oracles)
            return Tables(self, sum(map(len, parts)), tuple(parts))
        found = np.asarray(reports)
        if not found.size:
            found = np.zeros((0, len(self.oracles)), dtype=np.int64)
        if found.ndim != 2 or found.shape[1] != len(self.oracles):
            raise self.oracles[0].not_a_report()
        columns = [o.check(found[:, place]) for place, o in enumerate(self.oracles)]
        return Tables(self, len(found), tuple(columns))


@dataclass(frozen=True)
class Joint:
    """Estimated shares of the respondents for two attributes together.

    ``shares`` and their ``standard_errors`` have a row for each answer of the first and a column
    for each of the second; so many ``respondents`` reported.
    """

    shares: Doubles
    standard_errors: Doubles
    respondents: int

    def consistent(self) -> Doubles:
        """The closest shares that are not negative and add up to 1."""
        from discreet.mechanisms import postprocess

        return postprocess.simplex(self.shares.reshape(-1), total=1.0).reshape(self.shares.shape)

    def correlation(self, first: ArrayLike | None = None, second: ArrayLike | None = None) -> float:
        """Of two numbers that the answers stand for; their places unless said otherwise.

        ``first`` and ``second`` are these numbers, one for each answer.
        """
        table = self.consistent()
        x, y = (
            np.arange(size, dtype=np.float64) if values is None else np.asarray(values, np.float64)
            for values, size in zip((first, second), table.shape, strict=True)
        )
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        mean_x, mean_y = float(rows @ x), float(columns @ y)
        spread = (rows @ (x - mean_x) ** 2) * (columns @ (y - mean_y) ** 2)
        both = float((x - mean_x) @ table @ (y - mean_y))
        return both / math.sqrt(spread) if spread > 0 else 0.0


@dataclass(frozen=True)
class Tables:
    """What the reports on several attributes say.

    ``attributes`` made the reports of so many ``respondents``; ``columns`` are these, divided by
    the attribute or the pair that they are about.
    """

    attributes: Attributes
    respondents: int
    columns: tuple[Integers, ...]

    def table(self, place: int) -> Frequencies:
        """The frequencies of the attribute at ``place``, among those who reported on it."""
        if self.attributes.strategy == "pairs":
            raise _no_table()
        return self.attributes.oracles[place].estimate(self.columns[place])

    def joint(self, one: int, other: int) -> Joint:
        """The shares of the respondents for the attributes ``one`` and ``other``, without bias."""
        attributes = self.attributes
        if attributes.strategy == "sample":
            raise _no_joint()
        if one > other:
            turned = self.joint(other, one)
            return Joint(turned.shares.T, turned.standard_errors.T, turned.respondents)
        if attributes.strategy == "split":
            return self._product(one, other)
        place = attributes.pairs.index((one, other))
        found = attributes.oracles[place].estimate(self.columns[place])
        n, shape = max(found.respondents, 1), (attributes.domains[one], attributes.domains[other])
        errors = found.standard_errors / n
        return Joint((found.values / n).reshape(shape), errors.reshape(shape), found.respondents)

    def _product(self, one: int, other: int) -> Joint:
        """Reports are independent given the answers, so products of scores are unbiased."""
        oracles = self.attributes.oracles[one], self.attributes.oracles[other]
        columns = self.columns[one], self.columns[other]
        sizes = oracles[0].categories, oracles[1].categories
        both = np.zeros(sizes)
        for part in chunks(self.respondents, 1 << 13):
            left, right = (
                o.indicator(c[part]).astype(np.float32)
                for o, c in zip(oracles, columns, strict=True)
            )
            both += left.T @ right
        hits = [o.support(c).astype(float) for o, c in zip(oracles, columns, strict=True)]
        n = self.respondents

        def combine(scores: list[tuple[float, float]]) -> Doubles:
            """The sum over reports of the product of two scores: of a hit, and of none."""
            (a1, a0), (b1, b0) = scores
            a, b = a1 - a0, b1 - b0
            return np.asarray(
                a * b * both + a * b0 * hits[0][:, None] + a0 * b * hits[1][None, :] + n * a0 * b0
            )

        scores = []
        for oracle in oracles:
            p, q = float(oracle.inside), float(oracle.outside)
            scores.append(((1 - q) / (p - q), -q / (p - q)))
        values = combine(scores)
        squares = combine([(hit**2, none**2) for hit, none in scores])
        # The variance given the answers: the mean square, less the square of the mean, 0 or 1.
        variance = np.maximum(squares - np.clip(values, 0, n), 0.0)
        return Joint(values / max(n, 1), np.sqrt(variance) / max(n, 1), n)


def _product_variance(one: FrequencyOracle, other: FrequencyOracle, share: Fraction) -> Fraction:
    """Of the product of two scores, for each respondent: the most, if ``share`` have both answers.

    Scores are independent given the answers, so squares multiply; who has one of the two answers,
    or neither, is nobody's to know, and taken for the worst.
    """
    squares = []
    for oracle in (one, other):
        p, q = oracle.inside, oracle.outside
        squares.append((p * (1 - p) / (p - q) ** 2 + 1, q * (1 - q) / (p - q) ** 2))
    (a, none_a), (b, none_b) = squares
    others = max(a * none_b, none_a * b, none_a * none_b)
    return share * (a * b - 1) + (1 - share) * others


def _no_table() -> InvalidParameter:
    return InvalidParameter(
        "P4",
        "reports on pairs have no table of one attribute of their own.",
        why="every report is about two attributes.",
        fix="add up the shares of a joint table: joint(0, 1).shares.sum(axis=1).",
    )


def _no_joint() -> InvalidParameter:
    return InvalidParameter(
        "P4",
        "a respondent who reports on one attribute says nothing about two.",
        why="how attributes go together is in no report.",
        fix="use strategy='pairs' or strategy='split'.",
    )


__all__ = ["Attributes", "Joint", "Tables"]
