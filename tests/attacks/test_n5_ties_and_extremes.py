"""N5. Numerical failure as an oracle: a choice that crashes for some scores tells the scores.

Exponentials that overflow or vanish, weights that all underflow, ties, one candidate
or a million: a choice is always made, and it is one of the candidates.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import exponential_choice, permute_and_flip

CHOOSE = [exponential_choice, permute_and_flip]
INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize("choose", CHOOSE)
@pytest.mark.parametrize("n", [1, 2, 3, 1023, 1024, 1025, 1491, 1492, 2**14, 2**14 + 1, 2**20])
def test_any_number_of_candidates(choose, n):
    for scores in (np.zeros(n, dtype=np.int64), np.arange(n), -(np.arange(n) ** 2)):
        for rate in (0, Fraction(1, 7), 10**6):
            assert 0 <= choose(scores, rate) < n


EXTREME = [
    [INT64.min, INT64.max],
    [INT64.max, INT64.min, INT64.max],
    [INT64.min] * 5,
    [INT64.max] * 5,
    [0, -1, -(2**63), 2**63 - 1],
    [10**400, -(10**400), 0],
    [Fraction(1, 10**400), Fraction(0), Fraction(-1, 10**400)],
    ["1e300", "-1e300", "1e-300"],
    [1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0],
    [10**18, 10**18 - 1, 10**18 - 2],
]


@pytest.mark.parametrize("choose", CHOOSE)
@pytest.mark.parametrize("scores", EXTREME, ids=range(len(EXTREME)))
@pytest.mark.parametrize("rate", ["0", "1e-320", "1e-9", "3", "1e9", "1e308", "1e320"])
def test_extreme_scores_and_rates(choose, scores, rate):
    assert 0 <= choose(scores, rate) < len(scores)


@pytest.mark.parametrize("choose", CHOOSE)
def test_the_best_wins_when_the_rest_is_hopeless(choose):
    for n in (2, 1000, 5000):
        for best in (0, n // 2, n - 1):
            scores = np.zeros(n, dtype=np.int64)
            scores[best] = INT64.max
            assert choose(scores, 1) == best


@pytest.mark.parametrize("choose", CHOOSE)
def test_ties_are_all_reachable(choose):
    scores = [INT64.max, INT64.min, INT64.max, INT64.max]
    # Each of three is missed by 200 choices with chance (2 / 3)**200 < 10**-35.
    assert {choose(scores, "1e300") for _ in range(200)} == {0, 2, 3}


@pytest.mark.parametrize("choose", CHOOSE)
def test_near_ties_beyond_the_resolution_of_doubles_are_told_apart(choose):
    """At 2**62 a double cannot hold a difference of one; the exact gap can."""
    scores = np.array([2**62, 2**62 + 1, 2**62 + 2])
    assert choose(scores, 1000) == 2


def test_extreme_weights():
    scores = np.zeros(3000, dtype=np.int64)
    weights = np.full(3000, INT64.max)
    assert 0 <= exponential_choice(scores, 1, weights=weights) < 3000
    weights = np.ones(3000, dtype=np.uint64)
    weights[1234] = np.iinfo(np.uint64).max
    # Everything else together is 2999 / 2**64.
    assert exponential_choice(scores, 1, weights=weights) == 1234
