"""The accuracy theorems of selection hold at the stated beta, and are not vacuous.

Each mechanism faces the input that is worst for it, ``RUNS`` times.  A run fails
if its error exceeds the margin; more failures than a binomial of mean
beta * RUNS could have, but for a chance of ALPHA, refute the margin.  The margin
is also at most twice the empirical quantile of the error: it says something.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from discreet.mechanisms import (
    AboveThreshold,
    ExponentialMechanism,
    NumericSparse,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    ReportNoisyMax,
    Sparse,
)

ALPHA = 1e-9  # chance that a correct margin fails one test
RUNS = 10_000
BETA = Fraction(1, 20)
MOST_FAILURES = int(binom.isf(ALPHA, RUNS, float(BETA)))


def test_has_power():
    """A margin that fails half as often again as stated would be refuted."""
    assert binom.sf(MOST_FAILURES, RUNS, float(BETA) * 3 / 2) > 0.999


def holds(failures: int) -> bool:
    return failures <= MOST_FAILURES


def fails_clearly(failures: int, runs: int) -> bool:
    """Far more often than beta: the margin could not be half as large."""
    return failures > int(binom.isf(ALPHA, runs, float(BETA)))


# --- choosing one ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialMechanism(sensitivity=2, epsilon="1/2"),
        PermuteAndFlip(sensitivity=2, epsilon="1/2"),
        ReportNoisyMax(sensitivity=2, epsilon="1/2", noise="laplace"),
        ReportNoisyMax(sensitivity=2, epsilon="1/2", monotonic=True, noise="laplace"),
    ],
    ids=repr,
)
def test_the_margin_of_a_choice(mechanism):
    """One best and 19 others, listed first, one step beyond the margin; then at half of it."""
    candidates = 20
    margin = float(mechanism.margin(BETA, candidates=candidates))

    def failures(distance: int, runs: int) -> int:
        scores = np.array([-distance] * (candidates - 1) + [0])
        return sum(mechanism.release(scores) != candidates - 1 for _ in range(runs))

    assert holds(failures(int(margin) + 1, RUNS))
    assert fails_clearly(failures(int(margin / 2), RUNS // 10), RUNS // 10)


# --- sparse vector -----------------------------------------------------------------------------


def errors_of_above_threshold(mechanism: AboveThreshold, queries: int) -> np.ndarray:
    """By how much each run's noise could mislead: the least alpha for which it is accurate.

    All queries lie far below, so that only the first alarm matters: the run is
    asked whether it stays silent at T - alpha, for all alpha at once, by drawing
    the same two noises that a run draws.
    """
    from discreet.noise import discrete_laplace

    plan = mechanism.plan
    threshold = discrete_laplace(plan.threshold_scale, RUNS)
    noise = discrete_laplace(plan.query_scale, RUNS * queries).reshape(RUNS, queries)
    return np.maximum(noise.max(axis=1) - threshold, 0)


@pytest.mark.parametrize("queries", [1, 20, 400])
@pytest.mark.parametrize("monotonic", [False, True])
def test_above_threshold_is_within_twice_the_empirical_quantile(queries, monotonic):
    mechanism = AboveThreshold(threshold=0, sensitivity=2, epsilon="1/2", monotonic=monotonic)
    errors = errors_of_above_threshold(mechanism, queries)
    margin = mechanism.margin(BETA, queries=queries)
    assert holds(int((errors > margin).sum()))
    assert margin <= 2 * np.quantile(errors, 1 - float(BETA))
    # The book's bound holds as well, and is looser.
    theorem = mechanism.theorem_margin(BETA, queries=queries)
    assert holds(int((errors > theorem).sum()))
    assert theorem > margin


def test_above_threshold_on_its_worst_stream():
    """DR Definition 3.9: silent on 19 low queries, and the last one, high, is seen."""
    mechanism = AboveThreshold(threshold=0, sensitivity=2, epsilon="1/2")
    margin = mechanism.margin(BETA, queries=20)
    stream = np.array([-margin - 1] * 19 + [margin + 1])
    failures = sum(mechanism.release(stream).above.tolist() != [19] for _ in range(RUNS))
    assert holds(failures)
    half, fewer = np.array([-(margin // 2)] * 19 + [margin // 2]), RUNS // 10
    wrong = sum(mechanism.release(half).above.tolist() != [19] for _ in range(fewer))
    assert fails_clearly(wrong, fewer)


@pytest.mark.parametrize("renew", [True, False])
def test_sparse_on_its_worst_stream(renew):
    mechanism = Sparse(threshold=0, cutoff=3, sensitivity=2, epsilon=3, renew=renew)
    margin = mechanism.margin(BETA, queries=21)
    far = margin + 1
    stream = np.array(([-far] * 6 + [far]) * 3)
    right = [6, 13, 20]
    failures = sum(mechanism.release(stream).above.tolist() != right for _ in range(RUNS))
    assert holds(failures)
    half, fewer = np.array(([-(margin // 2)] * 6 + [margin // 2]) * 3), RUNS // 10
    wrong = sum(mechanism.release(half).above.tolist() != right for _ in range(fewer))
    assert fails_clearly(wrong, fewer)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_numeric_sparse_on_its_worst_stream(delta):
    """DR Definition 3.10: values within the margin too."""
    mechanism = NumericSparse(threshold=0, cutoff=3, sensitivity=1, epsilon=9, delta=delta)
    margin = mechanism.margin(BETA, queries=21)
    far = margin + 1
    stream = np.array(([-far] * 6 + [far]) * 3)
    failures = 0
    for _ in range(RUNS):
        answer = mechanism.release(stream)
        right = answer.above.tolist() == [6, 13, 20]
        failures += not right or bool((np.abs(answer.answers - far) > margin).any())
    assert holds(failures)
    assert mechanism.theorem_margin(BETA, queries=21) >= margin


# --- quantiles ---------------------------------------------------------------------------------


def ranks_off(values: np.ndarray, answers: np.ndarray, q: float) -> np.ndarray:
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
    return np.maximum(np.maximum(below - q * len(values), q * len(values) - upto), 0)


def test_the_margin_of_a_quantile():
    values = np.arange(0, 30_000, 30)
    mechanism = Quantile("1/4", lower=0, upper=29_999, epsilon="1/2")
    answers = np.array([mechanism.release(values) for _ in range(RUNS // 5)])
    off = ranks_off(values, answers, 0.25)
    most = int(binom.isf(ALPHA, len(answers), float(BETA)))
    assert (off > mechanism.margin(BETA)).sum() <= most


def test_the_margin_of_many_quantiles():
    values = np.arange(0, 30_000, 30)
    wanted = [Fraction(i, 10) for i in range(1, 10)]
    mechanism = Quantiles(wanted, lower=0, upper=29_999, epsilon=2)
    margin, failures, runs = mechanism.margin(BETA), 0, 300
    for _ in range(runs):
        answers = np.array(mechanism.release(values))
        off = [ranks_off(values, answers[i : i + 1], float(q))[0] for i, q in enumerate(wanted)]
        failures += max(off) > margin
    assert failures <= int(binom.isf(ALPHA, runs, float(BETA)))


def test_halving_is_more_accurate_than_splitting_the_price():
    """Nine deciles at epsilon / 9 each, against four levels at epsilon / 4: mean rank error."""
    values = np.round(np.exp(np.linspace(3, 12, 20_001))).astype(np.int64)
    wanted = [Fraction(i, 10) for i in range(1, 10)]
    halving = Quantiles(wanted, lower=0, upper=200_000, epsilon="1/4")
    apart = [Quantile(q, lower=0, upper=200_000, epsilon=Fraction(1, 36)) for q in wanted]

    def error(answers):
        return np.mean(
            [
                ranks_off(values, np.array([a]), float(q))[0]
                for a, q in zip(answers, wanted, strict=True)
            ]
        )

    # About 20 ranks against 49 over sixty runs: at forty, 7 deviations from what is asked.
    together = np.mean([error(halving.release(values)) for _ in range(40)])
    separately = np.mean([error([one.release(values) for one in apart]) for _ in range(40)])
    assert together < 0.8 * separately
