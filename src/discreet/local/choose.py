"""Which randomizer to use: the least error that a report of the allowed size can have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, whole
from discreet.local.direct import Direct
from discreet.local.hadamard import Hadamard
from discreet.local.hashed_sets import HashedSets
from discreet.local.hashing import LocalHashing
from discreet.local.odds import MOST_CATEGORIES, check_categories, check_epsilon
from discreet.local.oracle import FrequencyOracle
from discreet.local.subset import SubsetSelection
from discreet.local.unary import Unary

WHOLE = (Direct, LocalHashing, Hadamard)
"""The oracles whose reports are whole numbers, and few enough to be listed inside other laws.

``HashedSets`` is left out: there are so many more of its reports that the laws of levels,
attributes and sets of items could be listed no more.  That costs up to 3.1 % of variance.
"""

_KINDS = (*WHOLE, HashedSets, SubsetSelection, Unary)
_MOST_BITS = 512
_ALIKE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Choice:
    """The randomizer that was chosen, why, and what the others would have done.

    ``table`` has for each that could have been chosen, for so many ``respondents``, its name, its
    error and the bits of a report; ``randomizer`` is the chosen one and ``why`` the reason in
    words.
    """

    randomizer: FrequencyOracle
    respondents: int
    why: str
    table: tuple[tuple[str, float, int], ...]

    def __str__(self) -> str:
        return f"{self.randomizer!r}: {self.why}"


def best(domain: int, epsilon: Exact, n: int, *, most_bits: int = _MOST_BITS) -> Choice:
    """The frequency oracle of least error for ``domain`` answers and ``n`` respondents.

    Among the oracles at ``epsilon`` whose report has at most ``most_bits`` bits, the one whose
    squared errors, added over all answers, are least, whatever the truth is; of equals the shortest
    report.

    >>> best(4, 1, 10_000).randomizer
    Direct(4, epsilon=1)
    >>> print(best(500, "1/2", 50_000))                          # doctest: +ELLIPSIS
    SubsetSelection(500, epsilon='1/2'): root mean squared error 883 of 50000 for each answer, ...
    >>> best(500, "1/2", 50_000, most_bits=64).randomizer
    HashedSets(500, epsilon='1/2')
    """
    count = check_categories(domain, most=MOST_CATEGORIES)
    price = check_epsilon(epsilon)
    people = whole(n, name="n", least=1)
    limit = whole(most_bits, name="most_bits", least=1)
    oracles = list(_candidates(count, price))
    fitting = [one for one in oracles if one.report_bits <= limit]
    if not fitting:
        least = min(one.report_bits for one in oracles)
        raise InvalidParameter(
            "P2",
            f"no report on {count} answers has at most {limit} bits.",
            why="a report has to say which of the answers it supports.",
            fix=f"allow {least} bits.",
        )
    least_error = min(one.total_variance() for one in fitting)
    equals = [one for one in fitting if one.total_variance() <= least_error * (1 + _ALIKE)]
    chosen = min(equals, key=lambda one: one.report_bits)
    table = tuple(
        (type(one).__name__, _error(one, people), one.report_bits)
        for one in sorted(oracles, key=lambda one: one.total_variance())
    )
    return Choice(chosen, people, _why(chosen, oracles, people, limit), table)


def best_whole(categories: int, epsilon: Fraction) -> FrequencyOracle:
    """The one of least error among ``WHOLE``, to be put inside other reports."""
    found = [kind(categories, epsilon=epsilon) for kind in WHOLE if _fits(kind, categories)]
    return min(found, key=lambda one: one.total_variance())


def _candidates(categories: int, epsilon: Fraction) -> Iterator[FrequencyOracle]:
    for kind in _KINDS:
        if _fits(kind, categories):
            yield kind(categories, epsilon=epsilon)


def _fits(kind: type[FrequencyOracle], categories: int) -> bool:
    return categories <= kind.most_categories


def _error(oracle: FrequencyOracle, people: int) -> float:
    """The root mean squared error of the number of respondents with one answer."""
    return math.sqrt(people * oracle.total_variance() / oracle.categories)


def _why(chosen: FrequencyOracle, oracles: list[FrequencyOracle], people: int, limit: int) -> str:
    said = (
        f"root mean squared error {_error(chosen, people):.0f} of {people} for each answer, "
        f"{chosen.report_bits} bits a report; "
    )
    others = [one for one in oracles if one is not chosen]
    if not others:
        return said + "no other tells so many answers apart."
    next_ = min(others, key=lambda one: one.total_variance())
    name, error = type(next_).__name__, _error(next_, people)
    if next_.report_bits > limit:
        return said + f"{name} has {error:.0f}, but needs {next_.report_bits} bits."
    return said + f"the next, {name}, has {error:.0f} and {next_.report_bits} bits."


__all__ = ["Choice", "best"]
