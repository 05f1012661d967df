"""The accuracy theorems of the numeric mechanisms, held against releases.

Each claim is tested from both sides: the stated failure rate is not exceeded,
and the margin is not vacuous.  Each sampler is accepted with its own law and
refuted with one that is a tenth off.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from discreet.mechanisms import (
    Gaussian,
    Grid,
    HammingCube,
    Laplace,
    RandomizedResponse,
    TwoCoinResponse,
)

ALPHA = 1e-9  # chance that a correct mechanism fails one test
N = 200_000  # releases per claim; tells a scale from one 10 % off, see test_has_power


def too_many(failures: int, runs: int, beta: float) -> bool:
    """More failures than a failure rate of ``beta`` explains, except with probability ALPHA."""
    return failures > stats.binom.isf(ALPHA, runs, beta)


def fits(samples, cdf) -> bool:
    """Massart (1990): P(sup |F_n - F| > t) <= 2 exp(-2 n t**2), for every n and F."""
    values, counts = np.unique(samples, return_counts=True)
    empirical = np.cumsum(counts) / len(samples)
    allowed = math.sqrt(math.log(2 / ALPHA) / (2 * len(samples)))
    gap = np.abs(empirical - np.array([float(cdf(int(v))) for v in values])).max()
    return bool(gap <= allowed)


MECHANISMS = [
    Laplace(sensitivity=3, epsilon="1/4"),
    Laplace(sensitivity=2, epsilon=3),
    Gaussian(sensitivity=3, rho="1/50"),
    Gaussian(sensitivity=3, rho=2),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_releases_have_the_stated_law(mechanism):
    centre = 1041
    samples = mechanism.release(np.full(N, centre))
    assert fits(samples, mechanism.law(centre).cdf)
    one_by_one = [mechanism.release(centre) for _ in range(20_000)]
    assert fits(np.array(one_by_one), mechanism.law(centre).cdf)


@pytest.mark.parametrize("factor", ["0.9", "1.1"])
def test_has_power(factor):
    """The same draws refute a scale that is off by a tenth."""
    laplace = Laplace(sensitivity=3, epsilon="1/4")
    samples = laplace.release(np.full(N, 7))
    wrong = Laplace(sensitivity=3, epsilon=0.25 * float(factor))
    assert not fits(samples, wrong.law(7).cdf)
    gaussian = Gaussian(sensitivity=3, rho="1/50")
    samples = gaussian.release(np.full(N, 7))
    wrong_sigma = Gaussian(sensitivity=3, rho=0.02 * float(factor) ** 2)
    assert not fits(samples, wrong_sigma.law(7).cdf)


@pytest.mark.parametrize("beta", [0.5, 0.05, 0.002])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_margin_holds_and_is_not_vacuous(mechanism, beta):
    errors = np.abs(mechanism.release(np.zeros(N, dtype=np.int64)))
    margin = mechanism.margin(beta)
    assert not too_many(int((errors > margin).sum()), N, beta)
    assert margin <= 2 * np.quantile(errors, 1 - beta, method="higher") + 1
    if margin:  # one step less would be exceeded more often than beta, and is
        rate = 2 * float(mechanism.law(0).tail(margin))
        assert rate > beta
        assert int((errors >= margin).sum()) >= stats.binom.ppf(ALPHA, N, rate)


@pytest.mark.parametrize("beta", [0.3, 0.05])
def test_theorem_3_8_over_many_coordinates(beta):
    """10,000 runs of 100 coordinates: the greatest error stays within the margin, and near it."""
    mechanism = Laplace(sensitivity=3, epsilon="1/2")
    runs, k = 10_000, 100
    worst = np.abs(mechanism.release(np.zeros((runs, k), dtype=np.int64))).max(axis=1)
    margin = mechanism.margin(beta, coordinates=k)
    assert not too_many(int((worst > margin).sum()), runs, beta)
    assert margin <= 2 * np.quantile(worst, 1 - beta)
    theorem = float(mechanism.scale) * math.log(k / beta)
    assert not too_many(int((worst >= theorem).sum()), runs, beta)


def test_example_3_3_ten_thousand_names():
    """DR Example 3.3: with probability 95 % none of 10,000 counts is off by more than 12.2."""
    mechanism = Laplace(sensitivity=1, epsilon=1)
    runs, names = 10_000, 10_000
    failures = exceeded = 0
    margin = mechanism.margin("0.05", coordinates=names)
    worst = []
    for _ in range(runs // 100):
        errors = np.abs(mechanism.release(np.zeros((100, names), dtype=np.int64))).max(axis=1)
        failures += int((errors > margin).sum())
        exceeded += int((errors >= math.log(names / 0.05)).sum())
        worst.append(errors)
    assert not too_many(failures, runs, 0.05)
    assert not too_many(exceeded, runs, 0.05)
    assert margin <= 2 * np.quantile(np.concatenate(worst), 0.95)


def test_margins_on_a_grid():
    mechanism = Laplace(sensitivity="2.5", epsilon="1/3", grid=Grid("1/16"), entries_changed=1)
    values = np.linspace(-9, 9, N)
    errors = np.abs(mechanism.release(values) - values)
    # The margin is for the noise; snapping adds at most half a step.
    margin = float(mechanism.margin("0.05")) + 1 / 32
    assert not too_many(int((errors > margin).sum()), N, 0.05)
    assert margin <= 2 * np.quantile(errors, 0.95)


# --- randomized response --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        RandomizedResponse(epsilon="3/2"),
        RandomizedResponse(epsilon="3/2", categories=5),
        TwoCoinResponse(truth="1/2"),
        TwoCoinResponse(truth="1/3", categories=5),
    ],
    ids=repr,
)
def test_reports_have_the_stated_frequencies(response):
    """Chi-square of the reports of N respondents, in an array and one by one."""
    answer = response.categories - 1
    expected = np.array([float(response.law(answer).mass(c)) for c in range(response.categories)])
    arrays = response.release(np.full(N, answer))
    single = np.array([response.release(answer) for _ in range(20_000)])
    for reports in (arrays, single):
        found = np.bincount(reports, minlength=response.categories)
        scaled = expected / expected.sum() * len(reports)
        assert stats.chisquare(found, scaled).pvalue > ALPHA
    off = RandomizedResponse(epsilon="1.65", categories=response.categories)
    wrong = np.array([float(off.law(answer).mass(c)) for c in range(response.categories)])
    found = np.bincount(arrays, minlength=response.categories)
    assert stats.chisquare(found, wrong / wrong.sum() * N).pvalue < ALPHA


@pytest.mark.parametrize("subset", [{1}, {0, 3}])
def test_estimates_are_unbiased_with_the_stated_error(subset):
    """10,000 surveys of 200 people: mean and spread of the estimate, and the margin."""
    response = RandomizedResponse(epsilon="3/2", categories=4)
    answers = np.repeat(np.arange(4), 50)
    truth = 50 * len(subset)
    runs = 10_000
    reports = response.release(np.tile(answers, (runs, 1)))
    values = np.array([response.estimate(row, subset).value for row in reports])
    inside = response.truthful + (len(subset) - 1) * response.otherwise
    outside = len(subset) * response.otherwise
    variance = truth * inside * (1 - inside) + (200 - truth) * outside * (1 - outside)
    spread = math.sqrt(variance) / (response.truthful - response.otherwise)
    z = (values.mean() - truth) / (spread / math.sqrt(runs))
    assert abs(z) < stats.norm.isf(ALPHA / 2)
    assert values.std() == pytest.approx(spread, rel=0.06)  # about 8 standard errors of a spread
    margin = response.margin("0.05", respondents=200)
    assert not too_many(int((np.abs(values - truth) > margin).sum()), runs, 0.05)


def test_bits_flip_as_often_as_stated():
    cube = HammingCube(sensitivity=3, epsilon=2)
    bits = 2 * N
    flips = int((~cube.release(np.ones(bits, dtype=bool))).sum())
    assert stats.binomtest(flips, bits, cube.flip).pvalue > ALPHA
    assert stats.binomtest(flips, bits, 1 / (1 + math.exp(2.2 / 3))).pvalue < ALPHA
    runs = cube.release(np.zeros((10_000, 200), dtype=np.int8)).sum(axis=1)
    margin = cube.margin("0.05", dimension=200)
    assert not too_many(int((runs > margin).sum()), 10_000, 0.05)
    assert margin <= 2 * np.quantile(runs, 0.95)
