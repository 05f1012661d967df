"""Numbers of rare answers drawn together: what each is likely to be, given all estimates.

The estimates of all answers tell how unequal their numbers are.  A number is replaced by its mean
given its estimate, under a law of the numbers; of many laws, each counts by how likely it makes
all estimates together (Bayes).  This reads estimates alone: it is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

_STEP = 0.25
"""Between the numbers that are considered, in standard errors of an estimate."""
_REACH = 6.0
"""So many standard errors beyond the largest estimate is the last of them."""
_FAR = 200.0
"""What is so many standard errors above zero is left as it is: noise is nothing beside it."""
_ROWS = 4096
"""Of so many estimates at a time the likelihood is in memory."""
_LEAST = 1e-300
_WEIGHT = 1e-6
"""Laws that count for less are left out of the mean."""

_EXPONENTIAL = 1.0
_SHAPES = (*(2.0 ** (place / 2) for place in range(-6, 5)), 8.0, 16.0, 64.0)
_RARE = (1.0, 2.0, 4.0, 8.0, 32.0)
_FREQUENT = (0.5, 1.0, 2.0, 4.0, 8.0)
_PARTS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of the respondents, with rare answers."""


class Law(NamedTuple):
    """A law of numbers whose mean is 1: rare answers and frequent ones, each a Weibull law.

    The smaller a shape, the more unequal; of 1 the law is exponential, of 64 nearly one number.
    """

    share: float
    """Of the answers, that are frequent."""
    rare: float
    """The mean of the rare ones."""
    rare_shape: float
    frequent: float
    frequent_shape: float

    @property
    def second_moment(self) -> float:
        """The mean of the squares: how unequal the numbers are."""
        return (1 - self.share) * _square(self.rare, self.rare_shape) + self.share * _square(
            self.frequent, self.frequent_shape
        )


def _square(mean: float, shape: float) -> float:
    """The second moment of a Weibull law."""
    return mean**2 * math.gamma(1 + 2 / shape) / math.gamma(1 + 1 / shape) ** 2


@lru_cache(maxsize=64)
def list_laws(answers: int) -> tuple[tuple[float, Law], ...]:
    """The laws that are considered, each with what it counts for before anything is reported.

    A quarter each: the exponential law, which of all of mean 1 presumes least; other Weibull laws;
    answers that nobody gave beside a Weibull law; two Weibull laws.  Within its quarter a law
    counts the less, the more unequal it is: by its second moment, as a frequent answer that is
    none costs.
    """
    groups: list[list[Law]] = [
        [Law(0.0, 1.0, _EXPONENTIAL, 1.0, 1.0)],
        [Law(0.0, 1.0, shape, 1.0, 1.0) for shape in _SHAPES if shape != _EXPONENTIAL],
        list(_list_empty(answers)),
        list(_list_double(answers)),
    ]
    found: list[tuple[float, Law]] = []
    for group in groups:
        worth = [1 / max(law.second_moment, 2.0) for law in group]
        parts = [one / math.fsum(worth) / len(groups) for one in worth]
        found += zip(parts, group, strict=True)
    return tuple(found)


def _list_shares(answers: int) -> Iterator[float]:
    """A half, a quarter, ... of the answers, as long as that is nearly one of them."""
    share = 0.5
    while share * answers >= 0.75:
        yield share
        share /= 2


def _list_empty(answers: int) -> Iterator[Law]:
    for share in _list_shares(answers):
        for shape in _FREQUENT:
            yield Law(share, 0.0, 1.0, 1 / share, shape)


def _list_double(answers: int) -> Iterator[Law]:
    for share in _list_shares(answers):
        for part in _PARTS:
            rare, frequent = part / (1 - share), (1 - part) / share
            if frequent >= 2 * rare:
                for first in _RARE:
                    yield from (Law(share, rare, first, frequent, last) for last in _FREQUENT)


@dataclass(frozen=True)
class Noise:
    """Of the estimate of a number c among n: normal, with a variance that is linear in c."""

    respondents: float
    inside: float
    outside: float

    @cached_property
    def base(self) -> float:
        """The variance at 0."""
        q = self.outside
        return self.respondents * q * (1 - q) / (self.inside - q) ** 2

    @cached_property
    def slope(self) -> float:
        """What each who gave the answer adds to the variance; may be negative."""
        p, q = self.inside, self.outside
        return (p * (1 - p) - q * (1 - q)) / (p - q) ** 2

    def place(self, numbers: Doubles) -> Doubles:
        """How many standard errors a number lies above 0: the integral of 1 / sqrt(variance)."""
        root = np.sqrt(np.maximum(self.base + self.slope * numbers, 0.0))
        return np.asarray(2 * numbers / (root + math.sqrt(self.base)))

    def number(self, places: Doubles) -> Doubles:
        """The number at a place."""
        found = places * math.sqrt(self.base) + self.slope * places**2 / 4
        return np.clip(found, 0.0, self.respondents)

    def likely(self, estimates: Doubles, numbers: Doubles) -> Doubles:
        """How likely each number makes each estimate, beside the number that makes it most so."""
        variances = self.base + self.slope * numbers
        exponents = -((estimates[:, None] - numbers) ** 2) / (2 * variances)
        exponents -= exponents.max(axis=1, keepdims=True)
        return np.asarray(np.exp(exponents) / np.sqrt(variances / self.base))


def shrink(support: Integers, *, respondents: int, inside: float, outside: float) -> Doubles:
    """For each answer the mean of its number, given how many reports support each of them all.

    Larger support gives no smaller a mean: for estimates that reports can lead to, the likelihood
    ratio of a larger number to a smaller one grows with the estimate.
    """
    noise = Noise(float(respondents), inside, outside)
    kinds, kind_of, counts = np.unique(support, return_inverse=True, return_counts=True)
    estimates = np.asarray((kinds - respondents * outside) / (inside - outside), dtype=np.float64)
    means = np.clip(estimates, 0.0, noise.respondents)
    places, mean = noise.place(means), respondents / support.size
    near = places <= _FAR
    edges, centres = _make_cells(noise, float(places[near].max(initial=0.0)), mean)

    worth, laws = zip(*list_laws(support.size), strict=True)
    masses = np.diff(_distribute(laws, edges, mean), axis=0)
    logs = np.log(np.array(worth))
    for rows, times in _divide(estimates[near], counts[near]):
        logs += times @ np.log(np.maximum(noise.likely(rows, centres) @ masses, _LEAST))
    if not near.all():
        logs += counts[~near] @ _weigh_alone(noise, laws, places[~near], mean)
    weights = np.exp(logs - logs.max())
    kept = weights > _WEIGHT
    weights, masses = weights[kept] / weights[kept].sum(), masses[:, kept]

    found = [np.zeros(0)]
    for rows, _ in _divide(estimates[near], counts[near]):
        likely = noise.likely(rows, centres)
        given = ((likely * centres) @ masses) / np.maximum(likely @ masses, _LEAST)
        found.append(given @ weights)
    means[near] = np.concatenate(found)
    return np.asarray(means[kind_of.reshape(-1)])


def _divide(estimates: Doubles, counts: Integers) -> Iterator[tuple[Doubles, Integers]]:
    for first in range(0, estimates.size, _ROWS):
        yield estimates[first : first + _ROWS], counts[first : first + _ROWS]


def _make_cells(noise: Noise, largest: float, mean: float) -> tuple[Doubles, Doubles]:
    """Ends and middles of cells of numbers: a step each, finer up to the mean if that is less."""
    last = min(largest + _REACH, float(noise.place(np.array(noise.respondents))))
    fine = min(float(noise.place(np.array(mean))) / 4, _STEP)
    places = [0.0]
    while places[-1] < last and (step := fine + places[-1] / 8) < _STEP:
        places.append(places[-1] + step)
    more = np.arange(places[-1] + _STEP, last + _STEP, _STEP)
    middles = np.concatenate([places, more])
    edges = np.concatenate([[0.0], (middles[1:] + middles[:-1]) / 2, [middles[-1] + _STEP / 2]])
    return noise.number(edges), noise.number(middles)


def _weigh_alone(noise: Noise, laws: tuple[Law, ...], places: Doubles, mean: float) -> Doubles:
    """The logarithm of the probability of a step around each number that is far above zero."""
    low, high = (
        _distribute(laws, noise.number(places + side * _STEP / 2), mean) for side in (-1, 1)
    )
    return np.asarray(np.log(np.maximum(high - low, _LEAST)))


def _distribute(laws: tuple[Law, ...], numbers: Doubles, mean: float) -> Doubles:
    """The distribution function of each law (columns) at each number (rows)."""
    share, rare, rare_shape, frequent, frequent_shape = np.array(laws).T
    found = (1 - share) * _weibull(numbers / mean, rare, rare_shape) + share * _weibull(
        numbers / mean, frequent, frequent_shape
    )
    return np.asarray(found)


def _weibull(numbers: Doubles, mean: Doubles, shape: Doubles) -> Doubles:
    gammas = np.array([math.gamma(1 + 1 / one) for one in shape])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = -np.expm1(-((numbers[:, None] * gammas / mean) ** shape))
    # A mean of nothing is no more than nothing: all of it lies in the first cell.
    return np.where(numbers[:, None] > 0, found, 0.0)


__all__ = ["Law", "list_laws", "shrink"]
