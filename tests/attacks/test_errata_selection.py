"""Where the texts are wrong about selection, and the bugs that came of it in libraries.

Each test implements the left-hand side, as printed or as shipped, and shows with
exact laws that it breaks the promise; and that what is implemented here does not.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import max_divergence, renyi
from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.exact.balls import precision
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
from discreet.mechanisms.selection.noisy_max import ranking_masses


def noisy_max(scores, scale) -> FiniteLaw:
    orders = [(i,) for i in range(len(scores))]
    return FiniteLaw(tuple(range(len(scores))), lambda: ranking_masses(scores, scale, orders))


def test_report_noisy_max_with_lap_of_one_over_epsilon():
    """DR Claim 3.9 has Lap(1 / epsilon); a score that rises while another falls breaks it."""
    epsilon = Fraction(2)
    rising, falling = [-29, -1], [-30, 0]
    as_printed = noisy_max(rising, 1 / epsilon), noisy_max(falling, 1 / epsilon)
    assert max_divergence(*as_printed)[0] > epsilon * Fraction(3, 2)
    here = ReportNoisyMax(sensitivity=1, epsilon=epsilon, noise="laplace")
    assert max_divergence(here.law(rising), here.law(falling))[1] <= epsilon


def test_counts_are_not_monotonic_when_a_unit_is_changed():
    """One person moves from one condition to the other: the monotonic price is too low."""
    counts = ReportNoisyMax(sensitivity=1, epsilon=2, monotonic=True, noise="laplace")
    choice = ExponentialMechanism(sensitivity=1, epsilon=2, monotonic=True)
    for mechanism in (counts, choice):
        pair = mechanism.law([-29, -1]), mechanism.law([-30, 0])
        assert max_divergence(*pair)[0] > mechanism.loss.epsilon * Fraction(3, 2)


def test_the_sensitivity_left_out():
    """Scores of sensitivity 3 with the noise for 1."""
    wrong = ExponentialMechanism(sensitivity=1, epsilon=1)
    pair = wrong.law([-27, -3]), wrong.law([-30, 0])
    assert max_divergence(*pair)[0] > Fraction(5, 2)
    right = ExponentialMechanism(sensitivity=3, epsilon=1)
    assert max_divergence(right.law([-27, -3]), right.law([-30, 0]))[1] <= 1


def test_noisy_max_charged_as_the_exponential_mechanism():
    """A library charged epsilon**2 / 8 for noise whose range is not bounded: rho off by four."""
    alpha, price = Fraction(2), Fraction(3)
    low, high = [-30, 0, 0, 0], [-29, -1, -1, -1]
    moved = [([0, 0, 0, -1], [-1, -1, -1, 0]), ([0, -2], [-1, -1]), (low, high)]
    for noise, bounded in (("gumbel", True), ("exponential", False), ("laplace", False)):
        mechanism = ReportNoisyMax(sensitivity=1, epsilon=price, noise=noise)
        worst = max(
            renyi(mechanism.law(one), mechanism.law(two), alpha)[0]
            for pair in moved
            for one, two in (pair, pair[::-1])
        )
        eighth = price**2 / 8
        assert worst <= alpha * mechanism.loss.rho
        assert (mechanism.loss.rho == eighth) is bounded
        if noise == "exponential":
            assert worst > alpha * eighth


def composed_delta(price: float, rounds: int, epsilon: float) -> float:
    """The exact delta at epsilon of ``rounds`` randomised responses of ``price``."""
    p = 1 / (1 + math.exp(-price))
    total = 0.0
    for ones in range(rounds + 1):
        loss = (2 * ones - rounds) * price
        if loss > epsilon:
            log = math.lgamma(rounds + 1) - math.lgamma(ones + 1) - math.lgamma(rounds - ones + 1)
            log += ones * math.log(p) + (rounds - ones) * math.log1p(-p)
            total += math.exp(log) * (1 - math.exp(epsilon - loss))
    return total


@pytest.mark.parametrize(("cutoff", "epsilon", "delta"), [(1000, 100, 1e-2), (2000, 200, 1e-3)])
def test_the_price_of_a_round_of_sparse_for_large_epsilon(cutoff, epsilon, delta):
    """epsilon / sqrt(8 c ln(1 / delta)) needs epsilon < 1 (DR Corollary 3.21)."""
    printed = epsilon / math.sqrt(8 * cutoff * math.log(1 / delta))
    assert composed_delta(printed, cutoff, epsilon) > 0.5
    here = Sparse(threshold=5, cutoff=cutoff, sensitivity=1, epsilon=epsilon, delta=str(delta))
    assert float(here.round_epsilon) < printed
    assert composed_delta(float(here.round_epsilon), cutoff, epsilon) <= delta


def test_the_price_of_a_number_of_numeric_sparse():
    """DR Algorithm 3 prints e2 = 2 / (sqrt(512) + 1): without epsilon, a small one is overspent."""
    cutoff, epsilon, delta = 20, 0.001, 1e-6

    def price(e2):
        return e2 / math.sqrt(32 * cutoff * math.log(2 / delta))

    printed = Loss.pure(Fraction(price(2 / (math.sqrt(512) + 1))))
    corrected = Loss.pure(Fraction(price(2 * epsilon / (math.sqrt(512) + 1))))
    assert (cutoff * printed).epsilon_at(Fraction(delta)) > 2 * epsilon
    assert (cutoff * corrected).epsilon_at(Fraction(delta)) < epsilon
    here = NumericSparse(threshold=5, cutoff=cutoff, sensitivity=1, epsilon="0.001", delta="1e-6")
    assert (cutoff * here.answer_loss).epsilon_at("1e-6") < epsilon / 5
    assert here.loss.epsilon_at("1e-6") <= Fraction(1, 1000)


def test_theorem_3_28_does_not_hold_for_its_own_numbers():
    """With delta > 0 and the printed parameters, a value is off by more than alpha too often."""
    cutoff, epsilon, delta, beta, queries = 1, 1.0, 1e-6, 1e-3, 1
    root = math.sqrt(512) + 1
    alpha = (math.log(queries) + math.log(4 * cutoff / beta)) * math.sqrt(
        cutoff * math.log(2 / delta)
    )
    alpha *= root / epsilon
    scale = math.sqrt(32 * cutoff * math.log(2 / delta)) / (2 * epsilon / root)
    assert math.exp(-alpha / scale) > 40 * beta  # P(|Lap(scale)| > alpha)


def test_a_threshold_without_the_sensitivity():
    """DR writes Lap(2 / epsilon), Lap(4 / epsilon): for queries of sensitivity 2 that is half."""
    wrong = AboveThreshold(threshold=0, sensitivity=1, epsilon=2, threshold_share="1/2")
    right = AboveThreshold(threshold=0, sensitivity=2, epsilon=2, threshold_share="1/2")
    first, second = [20] * 4 + [-20], [22] * 4 + [-22]
    assert max_divergence(wrong.law(first), wrong.law(second))[0] > 3
    assert max_divergence(right.law(first), right.law(second))[1] <= 2 + Fraction(1, 2**40)


def test_more_answers_than_were_paid_for():
    """A sparse vector that goes on after c answers, at the price of c."""
    paid = Sparse(threshold=0, cutoff=1, sensitivity=1, epsilon=2)
    first, second = ([20] * 4 + [-20]) * 2, ([21] * 4 + [-21]) * 2
    longer = Sparse(threshold=0, cutoff=2, sensitivity=1, epsilon=4)
    assert longer.plan.query_scale == paid.plan.query_scale
    assert max_divergence(longer.law(first), longer.law(second))[0] > 3
    assert max_divergence(paid.law(first), paid.law(second))[1] <= 2 + Fraction(1, 2**40)


def test_n5_numerical_failure_is_no_oracle():
    """A library answered for 1491 equal values and crashed for 1492: its weights underflowed."""
    median = Quantile("1/2", lower=0, upper=100, epsilon=1)
    deciles = Quantiles([f"{i}/10" for i in range(1, 10)], lower=0, upper=100, epsilon=1)
    for n in (0, 1, 1491, 1492, 2**20):
        values = np.full(n, 60)
        assert 0 <= median.release(values) <= 100
        assert len(deciles.release(values)) == 9
    scores = np.full(1492, -(10**15))
    scores[7] = 10**15
    for kind in (ExponentialMechanism, PermuteAndFlip, ReportNoisyMax):
        assert kind(sensitivity=1, epsilon=8).release(scores) == 7


def test_a_tie_is_part_of_the_law():
    """On the integers ties happen: leaving them out of the proof is not leaving them out."""
    mechanism = ReportNoisyMax(sensitivity=1, epsilon=2, noise="laplace")
    with precision(100):
        first = float(mechanism.law([0, 0]).mass(0))
    q = math.exp(-1)
    tie = ((1 - q) / (1 + q)) ** 2 * (1 + q * q) / (1 - q * q)
    assert first == pytest.approx((1 + tie) / 2)
