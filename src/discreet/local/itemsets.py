"""Sets of items: each respondent has several, and reports one of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, whole
from discreet.local.choose import best_whole
from discreet.local.frequencies import Doubles, Estimate, Frequencies, Integers
from discreet.local.margins import bernstein
from discreet.local.odds import check_categories, check_epsilon
from discreet.local.oracle import FrequencyOracle, check_people, not_an_answer
from discreet.noise import uniform_below


@dataclass(frozen=True, init=False, repr=False)
class ItemSets:
    """Report one item of a set that was filled up to ``at_most`` items.

    Items are numbered from 0, below d = ``categories``, and a report costs ``epsilon``.

    Definition:
        A set of fewer than m = ``at_most`` items is filled with blanks, one of m
        different ones each; of a larger set all items count alike.  One of the m (or
        of all) is drawn uniformly and reported over the d items and m blanks with all of
        epsilon, by the best of ``Direct``, ``LocalHashing`` and ``Hadamard``.

    Guarantee:
        epsilon-differentially private for a respondent who changes the whole set: a
        draw from the set goes through one randomizer of one answer.

    Accuracy:
        m times the estimated number is unbiased for the respondents who have the
        item, if nobody has more than m; those who have more count for less.

    Reference:
        Qin, Yang, Yu, Khalil, Xiao and Ren (2016); Wang, Li and Jha (2018),
        padding and sampling.

    Example:
        >>> baskets = ItemSets(20, epsilon=2, at_most=3)
        >>> found = baskets.estimate(baskets.release([{4, 7}, {4}, set(), {1, 2, 3}]))
        >>> found.values.shape, found.respondents
        ((20,), 4)
        >>> round(baskets.variance(respondents=900, count=200))
        6777
    """

    categories: int
    epsilon: Fraction
    at_most: int

    def __init__(self, categories: int, *, epsilon: Exact, at_most: int) -> None:
        object.__setattr__(self, "categories", check_categories(categories, most=2**16))
        object.__setattr__(self, "epsilon", check_epsilon(epsilon))
        object.__setattr__(self, "at_most", whole(at_most, name="at_most", least=1))

    def __repr__(self) -> str:
        price, most = self.epsilon, self.at_most
        return f"ItemSets({self.categories}, epsilon='{price}', at_most={most})"

    @property
    def loss(self) -> Loss:
        """What one report costs the respondent."""
        return Loss.pure(self.epsilon)

    @cached_property
    def oracle(self) -> FrequencyOracle:
        """Over the items and the blanks."""
        return best_whole(self.categories + self.at_most, self.epsilon)

    @property
    def report_bits(self) -> int:
        """Those of the oracle."""
        return self.oracle.report_bits

    def _fill(self, items: Collection[int]) -> list[int]:
        found = self._check_items(sorted(set(items))).tolist()
        return [*found, *range(self.categories + len(found), self.categories + self.at_most)]

    def _check_items(self, items: Sequence[int]) -> Integers:
        """Items as whole numbers; a blank is none that a respondent can name."""
        with suppress(InvalidParameter):
            found = self.oracle.codes(items)
            if not (found >= self.categories).any():
                return found
        raise not_an_answer(self.categories)

    def law(self, value: Collection[int]) -> FiniteLaw:
        """The exact law of the report of one respondent with the set of items ``value``."""
        filled = self._fill(value)
        total: dict[Hashable, Fraction] = {}
        for item in filled:
            law = self.oracle.law(item)
            if not isinstance(law, FiniteLaw) or law.fractions is None:
                raise self.oracle.not_a_report()
            for report, chance in zip(law.outcomes, law.fractions, strict=True):
                total[report] = total.get(report, Fraction(0)) + chance / len(filled)
        return FiniteLaw.exact(total)

    def release(self, value: Any) -> Any:
        """The report of one set of items, or of each one in a list of sets: ``value``."""
        one = isinstance(value, set | frozenset)
        sets: Sequence[Collection[int]] = [value] if one else list(value)
        if not all(isinstance(s, Collection) for s in sets):
            raise not_an_answer(self.categories)
        chosen = self._draw([s if isinstance(s, set | frozenset) else set(s) for s in sets])
        reports: Integers = self.oracle.randomize(chosen)
        return int(reports[0]) if one else reports

    def _draw(self, sets: Sequence[AbstractSet[int]]) -> Integers:
        """One item of each set, or a blank."""
        items = self._check_items(list(chain.from_iterable(sets)))
        sizes = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
        bounds = np.maximum(sizes, self.at_most)
        places = np.zeros(len(sets), dtype=np.int64)
        for bound in np.unique(bounds):  # one for all but the sets that are too large
            these = np.flatnonzero(bounds == bound)
            places[these] = uniform_below(int(bound), these.size)
        chosen = self.categories + places
        held = np.flatnonzero(places < sizes)
        chosen[held] = items[(np.cumsum(sizes) - sizes + places)[held]]
        return chosen

    def variance(self, *, respondents: int, count: int = 0) -> float:
        """Of the estimated number of those with an item, if ``count`` of ``respondents`` have it.

        Exact, if nobody has more than ``at_most`` items: of those who have the item, one in so many
        draws it.
        """
        n, c = check_people(respondents, count)
        p, q, m = self.oracle.inside, self.oracle.outside, self.at_most
        held = q + (p - q) / m
        return float(m**2 * (c * held * (1 - held) + (n - c) * q * (1 - q)) / (p - q) ** 2)

    def estimate(self, reports: Any) -> ItemCounts:
        """How many respondents have each item, from their ``reports``."""
        return ItemCounts(self, self.oracle.estimate(reports))


@dataclass(frozen=True)
class ItemCounts:
    """Estimated numbers of respondents who have each item.

    ``sets`` made the reports, and ``drawn`` says how often each item and each blank was drawn.
    """

    sets: ItemSets
    drawn: Frequencies

    @property
    def respondents(self) -> int:
        """How many reported."""
        return self.drawn.respondents

    @property
    def values(self) -> Doubles:
        """The unbiased estimates, one for each item."""
        return self.sets.at_most * self.drawn.values[: self.sets.categories]

    @property
    def standard_errors(self) -> Doubles:
        """Of each value, given the sets: of the reports, and of which item was drawn."""
        most = self.sets.at_most
        own = self.drawn.standard_errors[: self.sets.categories] * most
        held = np.clip(self.values, 0, self.respondents)
        return np.sqrt(own**2 + held * (most - 1))

    def count(self, item: int, *, beta: Exact = "0.05") -> Estimate:
        """How many respondents have one item; Bernstein's margin, for every truth.

        ``item`` is its number; the ends hold except with probability ``beta``.
        """
        oracle, most = self.sets.oracle, self.sets.at_most
        weights = np.zeros(oracle.categories)
        weights[item] = most
        each = float(oracle.query_variances(weights).max()) + most - 1
        margin = bernstein(
            variance=self.respondents * each,
            largest=oracle.query_reach(weights) + most,
            beta=beta,
        )
        value = float(self.values[item])
        return Estimate(value, float(self.standard_errors[item]), value - margin, value + margin)


__all__ = ["ItemCounts", "ItemSets"]
