"""Releasing a key: the exact probabilities, their guarantee and their optimality."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.divergence import both_ways, hockey_stick
from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_bounds
from discreet.mechanisms.keys import KeyRelease

ALPHA = 1e-9  # chance that a correct mechanism fails the statistical test
N = 20_000  # enough to tell 0.58840 from a probability one tenth larger: see below

prices = st.tuples(
    st.sampled_from(["0.001", "0.1", "0.5", "2", "30"]),
    st.sampled_from(["1e-30", "1e-9", "1/1024", "0.02", "0.4", "0.9"]),
)


@given(prices, st.integers(0, 400))
@settings(deadline=None, derandomize=True)
def test_every_step_keeps_the_guarantee_exactly(price, units):
    """All four inequalities of (epsilon, delta), in fractions, on the losing side of e**epsilon."""
    epsilon, delta = map(Fraction, price)
    key = KeyRelease(epsilon=epsilon, delta=delta)
    p, q = key.probability(units), key.probability(units + 1)
    growth = exp_bounds(epsilon, bits=200)[0]
    for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        assert a <= growth * b + delta
    assert p <= q <= 1


@given(prices)
@settings(deadline=None, derandomize=True, max_examples=30)
def test_the_probabilities_follow_the_recursion_as_closely_as_rounding_allows(price):
    """No higher sequence exists: the greedy recursion, in floats of 50 digits."""
    epsilon, delta = map(Fraction, price)
    key = KeyRelease(epsilon=epsilon, delta=delta)
    growth = exp_bounds(epsilon, bits=200)[1]
    highest = Fraction(0)
    for units in range(1, 60):
        highest = min(growth * highest + delta, 1 - (1 - highest - delta) / growth, Fraction(1))
        assert highest * (1 - Fraction(1, 10**15)) <= key.probability(units) <= highest


def test_an_empty_key_is_never_shown_and_a_lonely_one_rarely():
    key = KeyRelease(epsilon="0.7", delta="1e-6")
    assert key.probability(0) == 0
    assert key.release([0] * 50) == [False] * 50
    assert Fraction(999_999, 10**12) < key.probability(1) <= Fraction(1, 10**6)


def test_the_law_has_the_claimed_loss():
    key = KeyRelease(epsilon="0.5", delta="0.02")
    for units in range(16):
        worst = both_ways(hockey_stick, key.law(units), key.law(units + 1), "0.5")
        assert worst[1] <= key.loss.delta
    assert (key.loss.epsilon, key.loss.delta) == (Fraction(1, 2), Fraction(1, 50))


def test_a_unit_with_many_keys_pays_once_for_all():
    delta = Fraction(4, 10**7)
    many = KeyRelease(epsilon="0.4", delta=delta, keys=4)
    less = KeyRelease(epsilon="0.1", delta=delta / 4)
    seen = 1 - (1 - many.probability(1)) ** 4  # alone in four groups, and shown in any of them
    assert delta * (1 - Fraction(1, 2**40)) < seen <= delta
    for n in (1, 20, 100):
        assert (
            less.probability(n) < many.probability(n) < less.probability(n) * Fraction(1001, 1000)
        )
    assert many.loss.epsilon == Fraction(2, 5)
    assert many.loss.delta == delta
    assert many.loss.rho == 4 * less.loss.rho
    assert repr(many) == "KeyRelease(epsilon='2/5', delta='1/2500000', keys=4)"


def test_least_units_is_the_first_that_is_shown_so_often():
    for epsilon, delta in (("0.5", "0.02"), ("0.1", "1e-9"), ("1e-7", "1e-9")):
        key = KeyRelease(epsilon=epsilon, delta=delta)
        least = key.least_units("0.95")
        assert key.probability(least) >= Fraction(95, 100) > key.probability(least - 1)


def test_sizes_from_nothing_to_a_million_never_raise():
    for epsilon, delta in (("1e-6", "1e-12"), ("0.3", "0.5"), ("40", "1e-9")):
        key = KeyRelease(epsilon=epsilon, delta=delta)
        for units in (0, 1, 2, 1000, 2**20, 2**60):
            assert 0 <= key.probability(units) <= 1


def test_keys_are_shown_as_often_as_stated():
    """Hoeffding: P(|share - p| > t) <= 2 exp(-2 N t**2)."""
    key = KeyRelease(epsilon="0.5", delta="0.02")
    share = sum(key.release([6] * N)) / N
    tolerance = math.sqrt(math.log(2 / ALPHA) / (2 * N))
    truth = float(key.probability(6))
    assert abs(share - truth) <= tolerance
    assert abs(share - 1.1 * truth) > tolerance


BAD = {
    "no epsilon": lambda: KeyRelease(epsilon=0, delta="0.1"),
    "no delta": lambda: KeyRelease(epsilon=1, delta=0),
    "certain": lambda: KeyRelease(epsilon=1, delta=1),
    "no keys": lambda: KeyRelease(epsilon=1, delta="0.1", keys=0),
    "negative units": lambda: KeyRelease(epsilon=1, delta="0.1").release(-1),
    "half a unit": lambda: KeyRelease(epsilon=1, delta="0.1").probability(0.5),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(case):
    with pytest.raises(InvalidParameter):
        case()
