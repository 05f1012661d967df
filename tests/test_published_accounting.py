"""Numbers that other people published or computed, and ours beside them.

Each row names its source.  ``never_below`` is what a certified upper bound owes: it is at
least the true value and within the stated relative distance of it.  The published decimals
are rounded themselves: "at least" allows for half a unit of the last digit printed, and for
a few units in the last place of the doubles that most of them were computed in.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.accounting.budget import Budget
from discreet.accounting.conversion import largest_rho
from discreet.accounting.divergence import hockey_stick
from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw
from discreet.accounting.loss import Loss
from discreet.accounting.profile import GaussianProfile, LaplaceProfile, compose
from discreet.exact.balls import log_bounds
from discreet.mechanisms.keys import KeyRelease


def never_below(ours, published, *, within):
    """``published`` is a decimal string."""
    truth = Fraction(published)
    digits = len(published.split(".")[1]) if "." in published else 0
    rounding = max(Fraction(1, 2 * 10**digits), truth / 2**50) if truth else Fraction(0)
    assert ours >= truth - rounding
    assert ours <= truth * (1 + Fraction(within)) + rounding


# google/differential-privacy, python/dp_accounting/.../privacy_loss_mechanism_test.py: the delta of
# one mechanism under add/remove, within 1e-6.
CONTINUOUS = [
    (LaplaceProfile(sensitivity=1, scale=1, grid=0), 1, "0"),
    (LaplaceProfile(sensitivity=1, scale=1, grid=0), 0, "0.39346934"),
    (LaplaceProfile(sensitivity=4, scale=2, grid=0), 2, "0"),
    (GaussianProfile(sensitivity=1, sigma_squared=1, grid=0), 1, "0.12693674"),
    (GaussianProfile(sensitivity=2, sigma_squared=4, grid=0), 1, "0.12693674"),
    (GaussianProfile(sensitivity=1, sigma_squared=1, grid=0), 2, "0.02092364"),
]


@pytest.mark.parametrize(("profile", "epsilon", "delta"), CONTINUOUS)
def test_delta_of_one_continuous_mechanism(profile, epsilon, delta):
    never_below(profile.delta_at(epsilon), delta, within="1e-6")


# The same file: P(z) proportional to exp(-a |z|), a = 0.5 and sensitivity 4.
@pytest.mark.parametrize(("epsilon", "delta"), [(1, "0.39346934"), (2, "0")])
def test_delta_of_one_discrete_laplace(epsilon, delta):
    never_below(LaplaceProfile(sensitivity=4, scale=2).delta_at(epsilon), delta, within="1e-6")
    low, high = hockey_stick(DiscreteLaplaceLaw(0, 2), DiscreteLaplaceLaw(4, 2), epsilon)
    never_below(high, delta, within="1e-6")
    assert low <= high


# IBM/discrete-gaussian-differential-privacy, run: sigma**2 = 1, sensitivity 1, epsilon 1.
def test_delta_of_one_discrete_gaussian():
    published = "0.14135133940562192"
    profile = GaussianProfile(sensitivity=1, sigma_squared=1)
    never_below(profile.delta_at(1), published, within="1e-12")
    high = hockey_stick(DiscreteGaussianLaw(0, 1), DiscreteGaussianLaw(1, 1), 1)[1]
    never_below(high, published, within="1e-12")


def test_the_continuous_gaussian_has_less_delta_than_the_discrete_one():
    profile = GaussianProfile(sensitivity=1, sigma_squared=1, grid=0)
    never_below(profile.delta_at(1), "0.1269367375066439", within="1e-12")
    assert profile.delta_at(1) < GaussianProfile(sensitivity=1, sigma_squared=1).delta_at(1)


# google, the same file: the least sigma of a discrete Gaussian, plus or minus 0.001.
@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"), [("1", "0.12693674", "1.041"), ("16", "1e-5", "0.306")]
)
def test_the_least_sigma_of_a_discrete_gaussian(epsilon, delta, sigma):
    def suffices(value):
        profile = GaussianProfile(sensitivity=1, sigma_squared=value**2)
        return profile.delta_at(epsilon) <= Fraction(delta)

    published, tolerance = Fraction(sigma), Fraction(1, 1000)
    assert suffices(published + tolerance)
    assert not suffices(published - tolerance)


# IBM cdp2adp.py, run, and OpenDP cdp_delta/test.rs: the tight conversion, within 1e-3.
def test_epsilon_and_delta_to_rho():
    published = Fraction("0.024355970359538372")
    room = largest_rho(Fraction(1), Fraction(1, 10**6))
    # The room in a budget rounds the other way: never above, and very near.
    assert published * (1 - Fraction(1, 10**9)) <= room <= published + Fraction(1, 10**17)
    assert Budget(epsilon=1, delta="1e-6", failures=0).rho == room


def test_rho_and_delta_to_epsilon():
    loss = Loss.concentrated("0.1")
    never_below(loss.epsilon_at("1e-6"), "2.141938928385474", within="1e-9")


def test_rho_and_epsilon_to_delta():
    loss = Loss.concentrated("0.05")
    never_below(loss.delta_at("0.25"), "0.0817727531036955", within="1e-9")


# Compositions at delta = 1e-6: the Gaussian in closed form (Balle and Wang 2018 for one with
# mu**2 = 1000 / 400); Laplace by dp-accounting's privacy-loss distribution on a grid of 1e-4.
def test_a_thousand_gaussians():
    together = compose([GaussianProfile(sensitivity=1, sigma_squared=400, grid=0)] * 1000)
    never_below(together.epsilon_at("1e-6"), "8.306225049954731", within="1e-9")
    discrete = compose([GaussianProfile(sensitivity=1, sigma_squared=400)] * 1000)
    never_below(discrete.epsilon_at("1e-6"), "8.306225049954731", within="1e-3")


def test_a_thousand_laplaces():
    together = compose([LaplaceProfile(sensitivity=1, scale=10, grid=0)] * 1000)
    never_below(together.epsilon_at("1e-6"), "18.9503", within="1e-4")


# The same library's calibration of Laplace noise under (1, 1e-4): the least scale, within 0.1.
@pytest.mark.parametrize(("count", "scale"), [(20, "13.6"), (500, "71.0")])
def test_the_least_scale_of_many_laplaces(count, scale):
    def suffices(b):
        profile = LaplaceProfile(sensitivity=1, scale=b, grid=0)
        return compose([profile] * count).delta_at(1) <= Fraction(1, 10**4)

    published, tolerance = Fraction(scale), Fraction(1, 10)
    assert suffices(published + tolerance)
    assert not suffices(published - tolerance)


# google, go/dpagg/select_partition_test.go: the probability of showing a key with n people.
def test_the_probability_of_showing_a_key_at_ln_2():
    below = KeyRelease(epsilon=log_bounds(Fraction(2))[0], delta="0.1")
    above = KeyRelease(epsilon=log_bounds(Fraction(2))[1], delta="0.1")
    for units, published in enumerate(["0", "0.1", "0.3", "0.7", "0.9", "1", "1"]):
        for key in (below, above):
            assert abs(key.probability(units) - Fraction(published)) < Fraction(1, 10**12)


@pytest.mark.parametrize(("units", "published"), [(6, "0.58840484458"), (8, "0.86807080625")])
def test_the_probability_of_showing_a_key_at_one_half(units, published):
    key = KeyRelease(epsilon="0.5", delta="0.02")
    assert abs(key.probability(units) - Fraction(published)) < Fraction(1, 10**11)


def test_fifteen_people_always_show_their_key():
    assert KeyRelease(epsilon="0.5", delta="0.02").probability(15) == 1
