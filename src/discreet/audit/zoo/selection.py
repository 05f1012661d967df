"""Choices that say more about the scores than they were paid for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.exact.balls import ball
from discreet.mechanisms import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax, TopK
from discreet.mechanisms.selection.noisy_max import ranking_masses
from discreet.noise import discrete_laplace

EPSILON = Fraction(2)
_LOW, _HIGH = [-30, 0], [-29, -1]
"""One score rises while the other falls: a person's row was changed."""


def exponential(rate: Fraction) -> Callable[[Sequence[int]], FiniteLaw]:
    """Candidate i with probability in proportion to exp(rate * score)."""

    def law(scores: Sequence[int]) -> FiniteLaw:
        best = max(scores)
        return FiniteLaw.proportional(
            range(len(scores)), lambda: [ball(rate * (one - best)).exp() for one in scores]
        )

    return law


def noisy_max(scale: Fraction) -> Callable[[Sequence[int]], FiniteLaw]:
    """The index of the greatest score with discrete Laplace noise."""

    def law(scores: Sequence[int]) -> FiniteLaw:
        indices = tuple(range(len(scores)))
        return FiniteLaw(indices, lambda: ranking_masses(scores, scale, [(i,) for i in indices]))

    return law


def underflowing(scores: Sequence[int]) -> FiniteLaw:
    """Weights in doubles: what is far from zero has no weight at all."""
    weights = [Fraction(math.exp(float(EPSILON) / 2 * score)) for score in scores]
    total = sum(weights)
    return FiniteLaw.exact([(i, weight / total) for i, weight in enumerate(weights)])


def flipped_in_order(scores: Sequence[int]) -> FiniteLaw:
    """Permute-and-flip that forgets to permute: the first one to show heads."""
    best = max(scores)

    def masses() -> list[arb]:
        left, found = arb(1), []
        for score in scores:
            heads = ball(EPSILON / 2 * (score - best)).exp()
            found.append(left * heads)
            left *= 1 - heads
        return found

    return FiniteLaw(tuple(range(len(scores))), masses)


def listed(values: Sequence[str]) -> FiniteLaw:
    """The candidates are the values that occur."""
    names = sorted(set(values))
    return exponential(EPSILON / 2)([values.count(name) for name in names]).image(
        lambda index: names[int(str(index))]
    )


def listed_publicly(values: Sequence[str]) -> FiniteLaw:
    """The candidates are public."""
    names = "abc"
    return exponential(EPSILON / 2)([values.count(name) for name in names]).image(
        lambda index: names[int(str(index))]
    )


# --- the winner's score ---------------------------------------------------------------------

_MANY = 12


def _with_score(
    scores: Sequence[int], size: int, *, scale: int, fresh: int | None
) -> NDArray[np.int64]:
    """The winner and a noisy score of it: the one that won, or one with ``fresh`` noise."""
    exact = np.asarray(scores)
    noisy = exact + discrete_laplace(scale, size * len(scores)).reshape(size, -1)
    index = noisy.argmax(axis=1)
    score = noisy.max(axis=1) if fresh is None else exact[index] + discrete_laplace(fresh, size)
    return np.column_stack([index, score])


def _won_with(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The score with which the first candidate won; far up if another did."""
    return np.where(outputs[:, 0] == 0, outputs[:, 1], 10**6)


def _rho(epsilon: Fraction) -> Loss:
    return Loss.concentrated(epsilon**2 / 8)


def _exponential_noise(kind: Any) -> Callable[[Sequence[int]], Any]:
    return kind(sensitivity=1, epsilon=3).law  # type: ignore[no-any-return]


_PURE = Loss.pure(EPSILON)

ANIMALS = (
    Animal(
        "exponential mechanism without the 2",
        "selection",
        "exp(epsilon score) although some scores rise while others fall",
        "McSherry and Talwar (2007): the exponent has epsilon / (2 sensitivity)",
        Check.LAW,
        _PURE,
        (_LOW, _HIGH),
        exponential(EPSILON),
        exponential(EPSILON / 2),
        relation=CHANGED,
    ),
    Animal(
        "exponential mechanism without the sensitivity",
        "selection",
        "scores that one person moves by three are weighed as if it were one",
        "Dwork and Roth (2014), Definition 3.4, with the sensitivity left out",
        Check.LAW,
        _PURE,
        ([-30, 0], [-27, -3]),
        exponential(EPSILON / 2),
        exponential(EPSILON / 6),
        relation=CHANGED,
    ),
    Animal(
        "weights that underflow",
        "selection",
        "in doubles a far candidate has weight zero, and in the neighbour it has not",
        "Ilvento (2020), the exponential mechanism in base two",
        Check.LAW,
        _PURE,
        ([-745, -700], [-746, -701]),
        underflowing,
        exponential(EPSILON / 2),
        relation=CHANGED,
    ),
    Animal(
        "price of rising scores for changed rows",
        "selection",
        "the discount for scores that all rise together, under neighbours that change a row",
        "Dwork and Roth (2014), Claim 3.9, counts under bounded neighbours",
        Check.LAW,
        _PURE,
        (_LOW, _HIGH),
        ExponentialMechanism(sensitivity=1, epsilon=EPSILON, monotonic=True).law,
        ExponentialMechanism(sensitivity=1, epsilon=EPSILON).law,
        relation=CHANGED,
    ),
    Animal(
        "noisy max without the factor 2",
        "selection",
        "Laplace noise of scale 1 / epsilon on scores of which one rises and one falls",
        "Dwork and Roth (2014), Claim 3.9; Ding et al. (2018), noisy max",
        Check.LAW,
        _PURE,
        (_LOW, _HIGH),
        noisy_max(1 / EPSILON),
        noisy_max(2 / EPSILON),
        relation=CHANGED,
    ),
    Animal(
        "the winner's noisy score for free",
        "selection",
        "noisy max also shows the noisy score that won",
        "Ding, Wang, Wang, Zhang, Kifer (2018), noisy max variants 2 and 4",
        Check.GAME,
        Loss.pure(1),
        ([0] + [1] * _MANY, [1] + [0] * _MANY),
        lambda scores, size: _with_score(scores, size, scale=2, fresh=None),
        lambda scores, size: _with_score(scores, size, scale=4, fresh=2),
        relation=CHANGED,
        view=_won_with,
    ),
    Animal(
        "permute-and-flip in order",
        "selection",
        "the candidates are tried as listed: one that is best shuts out all that follow",
        "McKenna and Sheldon (2020), Algorithm 1 without the permutation",
        Check.LAW,
        _PURE,
        ([5, 5], [4, 6]),
        flipped_in_order,
        PermuteAndFlip(sensitivity=1, epsilon=EPSILON).law,
        relation=CHANGED,
    ),
    Animal(
        "candidates from the data",
        "selection",
        "only values that somebody has can win",
        "modes and quantiles over the observed values",
        Check.LAW,
        _PURE,
        (list("aabb"), list("aabbc")),
        listed,
        listed_publicly,
    ),
    Animal(
        "top two at the price of one",
        "selection",
        "two choices are made one after the other and charged once",
        "Durfee and Rogers (2019): peeling pays for every choice",
        Check.LAW,
        _PURE,
        ([-30, -30, 0, 0], [-29, -29, -1, -1]),
        TopK(k=2, sensitivity=1, epsilon=2 * EPSILON, method="peeling").law,
        TopK(k=2, sensitivity=1, epsilon=EPSILON, method="peeling").law,
        relation=CHANGED,
    ),
    Animal(
        "noisy max charged as the exponential mechanism",
        "selection",
        "rho = epsilon**2 / 8 holds for a bounded range, which permute-and-flip does not have",
        "opendp issue 2911",
        Check.LAW,
        _rho(Fraction(3)),
        ([0, 0], [1, -1]),
        _exponential_noise(PermuteAndFlip),
        _exponential_noise(ExponentialMechanism),
        relation=CHANGED,
    ),
    Animal(
        "noisy max that keeps the noise",
        "selection",
        "the same noise is drawn once and used for every candidate: the best one always wins",
        "a generator seeded anew for each candidate; diffprivlib issue 31 on seeds",
        Check.LAW,
        _PURE,
        ([5, 6], [6, 5]),
        lambda scores: FiniteLaw.exact([(int(np.argmax(scores)), 1)]),
        ReportNoisyMax(sensitivity=1, epsilon=EPSILON, noise="laplace").law,
        relation=CHANGED,
    ),
)

__all__ = ["ANIMALS"]
