"""The discrete Gaussian mechanism and its calibration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.accounting.divergence import hockey_stick
from discreet.accounting.law import DiscreteGaussianLaw, ProductLaw
from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose
from discreet.mechanisms import Gaussian, Grid
from discreet.mechanisms.gaussian import (
    gaussian_delta,
    gaussian_equal_delta,
    gaussian_vector_delta,
)

CANARY = 8_675_309


def brute_delta(sigma_squared: float, shift: int, epsilon: float) -> float:
    """sum over z of max(0, P(z) - e^epsilon Q(z)), term by term."""
    sigma_squared = float(sigma_squared)
    reach = int(12 * math.sqrt(sigma_squared) + shift + 20)
    z = np.arange(-reach, reach + shift + 1, dtype=float)
    log_p = -((z - shift) ** 2) / (2 * sigma_squared)
    log_q = -(z**2) / (2 * sigma_squared)
    total = np.exp(log_q).sum()
    return float(np.maximum(0, np.exp(log_p) - np.exp(epsilon + log_q)).sum() / total)


# --- the curve -------------------------------------------------------------------------------


@given(
    st.fractions(Fraction(1, 10), 200, max_denominator=50),
    st.integers(1, 12),
    st.fractions(0, 5, max_denominator=40),
)
def test_the_curve_is_the_sum_over_all_outcomes(sigma_squared, shift, epsilon):
    found = float(gaussian_delta(sigma_squared, shift, epsilon))
    assert found == pytest.approx(brute_delta(sigma_squared, shift, float(epsilon)), abs=1e-12)


def test_published_value_of_the_curve():
    """Canonne, Kamath and Steinke's program: delta at epsilon 1, sigma 1, shift 1."""
    assert float(gaussian_delta(Fraction(1), 1, Fraction(1))) == pytest.approx(
        0.14135133940562192, rel=1e-12
    )


@given(
    st.fractions(Fraction(1, 4), 60, max_denominator=20),
    st.integers(1, 9),
    st.fractions(0, 3, max_denominator=20),
)
def test_lemma_4_smaller_shifts_are_never_worse(sigma_squared, shift, epsilon):
    worst = gaussian_delta(sigma_squared, shift, epsilon)
    for smaller in range(1, shift):
        assert gaussian_delta(sigma_squared, smaller, epsilon) <= worst


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"), [(1, "0.12693674", 1.041), (16, "1e-5", 0.306)]
)
def test_published_calibrations(epsilon, delta, sigma):
    """google/differential-privacy's tests: least sigma for the discrete Gaussian, within 0.001."""
    found = Gaussian.calibrated(epsilon=epsilon, delta=delta, sensitivity=1, entries_changed=1)
    assert math.sqrt(found.sigma_squared) == pytest.approx(sigma, abs=0.001)


@settings(max_examples=20, deadline=None)
@given(
    st.fractions(Fraction(1, 5), 8, max_denominator=10),
    st.integers(1, 10),
    st.integers(2, 9),
)
def test_calibration_is_sound_and_tight(sensitivity, digits, epsilon_tenths):
    epsilon, delta = Fraction(epsilon_tenths, 3), Fraction(1, 10**digits)
    grid = Grid("1/4")
    found = Gaussian.calibrated(
        epsilon=epsilon, delta=delta, sensitivity=sensitivity, entries_changed=1, grid=grid
    )
    shift = math.ceil(sensitivity / grid.step)
    steps = found.step_sigma_squared
    assert gaussian_delta(steps, shift, epsilon) <= delta
    assert gaussian_delta(steps * Fraction(9999, 10000), shift, epsilon) > delta


def test_several_entries_are_calibrated_near_the_continuous_curve():
    """Within a step of variance of Balle and Wang's, and less noise than through rho."""
    several = Gaussian.calibrated(epsilon=2, delta="1e-6", sensitivity=30, entries_changed=4)
    one = Gaussian.calibrated(epsilon=2, delta="1e-6", sensitivity=30, entries_changed=1)
    assert several.delta_at(2) <= Fraction(1, 10**6) < several.loss.delta_at(2)
    assert one.sigma_squared < several.sigma_squared < one.sigma_squared + 1
    unstated = Gaussian(sensitivity=30, rho=several.rho)
    assert unstated.delta_at(2) == several.loss.delta_at(2)


@pytest.mark.parametrize("move", [(1, 1), (2, 1), (-1, 2), (2, 0), (1, -1)])
@pytest.mark.parametrize("sigma_squared", [Fraction(3, 5), Fraction(2), Fraction(5)])
def test_no_shift_of_two_entries_passes_the_bound(move, sigma_squared):
    """The certified divergence of the two exact laws, for shifts in all directions."""
    squared = sum(step * step for step in move)
    made = Gaussian(
        sensitivity_squared=squared, rho=squared / (2 * sigma_squared), entries_changed=2
    )
    for epsilon in (Fraction(1, 4), Fraction(1), Fraction(3)):
        found = hockey_stick(made.law([0, 0]), made.law(list(move)), epsilon)
        assert found[0] <= made.delta_at(epsilon)
        curve = gaussian_vector_delta(sigma_squared, squared, 2, epsilon)
        assert found[0] <= curve


@pytest.mark.parametrize("sigma_squared", [Fraction(3, 5), Fraction(2), Fraction(5)])
@pytest.mark.parametrize("step", [1, 2])
def test_entries_that_move_alike_have_the_curve_of_their_sum(sigma_squared, step):
    """The certified divergence of the two exact laws, and a bound that is hardly above it."""
    squared = 2 * step * step
    made = Gaussian(sensitivity_squared=squared, rho=squared / (2 * sigma_squared))
    for epsilon in (Fraction(1, 4), Fraction(1), Fraction(3)):
        for move in ((step, step), (step, -step)):
            low, high = hockey_stick(made_law(made, [0, 0]), made_law(made, list(move)), epsilon)
            found = gaussian_equal_delta(sigma_squared, 2, step, epsilon)
            assert low <= found
            if sigma_squared >= 2:
                assert found <= high * Fraction(10001, 10000) + Fraction(1, 10**7)


def made_law(made: Gaussian, center: list[int]) -> ProductLaw:
    spread = made.step_sigma_squared
    return ProductLaw(tuple(DiscreteGaussianLaw(one, spread) for one in center))


def test_the_loss_is_rho():
    mechanism = Gaussian(sensitivity=3, rho="1/8")
    assert mechanism.loss.rho == Fraction(1, 8)
    assert mechanism.sigma_squared == 36
    assert Gaussian(sensitivity_squared=5, rho="1/8").sigma_squared == 20
    grid = Gaussian(sensitivity="2.3", rho="1/8", grid=Grid("1/4"), entries_changed=1)
    assert grid.step_sigma_squared == 400  # ceil(9.2)**2 / (2/8)
    assert grid.sigma_squared == 25


# --- accuracy --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.fractions(Fraction(1, 2000), 2, max_denominator=2000),
    st.fractions(Fraction(1, 10**6), Fraction(9, 10), max_denominator=10**6),
    st.integers(1, 1000),
)
def test_margin_is_the_least(rho, beta, coordinates):
    mechanism = Gaussian(sensitivity=3, rho=rho)
    law = DiscreteGaussianLaw(0, mechanism.sigma_squared)

    def exceeds(m: int) -> tuple[Fraction, Fraction]:
        return enclose(lambda: 1 - (1 - 2 * law.tail(m + 1)) ** coordinates)

    m = mechanism.margin(beta, coordinates=coordinates)
    assert exceeds(m)[1] <= beta
    assert m == 0 or exceeds(m - 1)[0] > beta


def test_a_wide_margin_is_that_of_the_continuous_gaussian():
    mechanism = Gaussian(sensitivity=3, rho=Fraction(9, 2 * 10**10))  # sigma = 10**5
    assert mechanism.margin("0.05") == pytest.approx(stats.norm.isf(0.025) * 1e5, rel=1e-4)


def test_a_margin_for_a_probability_below_every_double():
    assert Gaussian(sensitivity=3, rho="1/8").margin(Fraction(1, 10**400)) > 250


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 200), st.integers(1, 50))
def test_within_is_the_cheapest_on_the_ladder(margin, coordinates):
    found = Gaussian.within(margin, "0.95", sensitivity=3, coordinates=coordinates)
    assert found.margin("0.05", coordinates=coordinates) <= margin
    rung = Fraction(10) ** (math.floor(math.log10(found.rho)) - 5)
    cheaper = Gaussian(sensitivity=3, rho=found.rho - rung)
    assert cheaper.margin("0.05", coordinates=coordinates) > margin


# --- kinds, refusals, itself -----------------------------------------------------------------


def test_the_same_kind_comes_back():
    mechanism = Gaussian(sensitivity=3, rho=2)
    assert type(mechanism.release(7)) is int
    assert isinstance(mechanism.release((7, 8)), tuple)
    assert mechanism.release(np.zeros((2, 3), dtype=np.int64)).shape == (2, 3)
    saturated = mechanism.release(np.full(100, 2**63 - 1))
    assert (saturated > 2**62).all()
    real = Gaussian(sensitivity=3, rho=2, grid=Grid("1/4"), entries_changed=2)
    assert (real.release(np.array([0.1, 0.2])) * 4 % 1 == 0).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"rho": 0},
        {"rho": -2},
        {"sensitivity": 0},
        {"sensitivity": None},
        {"sensitivity_squared": 5},
        {"sensitivity": "5/2"},
        {"rho": Fraction(1, 10**60)},
        {"entries_changed": 0},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(InvalidParameter):
        Gaussian(**{"sensitivity": 3, "rho": 2, **bad})


def test_refusals_do_not_quote_the_data():
    real = Gaussian(sensitivity=3, rho=2, grid=Grid("1/4"))
    for value in (CANARY * 1e300, [CANARY, 2.5], str(CANARY)):
        with pytest.raises(InvalidParameter) as refusal:
            real.release(value)
        assert str(CANARY) not in str(refusal.value)


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(sensitivity=3, rho="1/4"),
        Gaussian(sensitivity_squared=5, rho=2, grid=Grid("1/64"), entries_changed=4),
    ],
)
def test_the_repr_makes_the_same_mechanism(mechanism):
    assert eval(repr(mechanism)) == mechanism


def test_epsilon_and_delta_buy_the_rho_that_converts_to_them():
    bought = Gaussian(sensitivity=3, epsilon=2, delta="1e-6")
    assert bought.loss.epsilon_at("1e-6") <= 2
    assert Gaussian(sensitivity=3, rho=bought.rho * Fraction(101, 100)).loss.epsilon_at("1e-6") > 2
    for wrong in ({"epsilon": 2}, {"delta": "1e-6"}, {}, {"rho": 1, "epsilon": 2, "delta": "1e-6"}):
        with pytest.raises(InvalidParameter):
            Gaussian(sensitivity=3, **wrong)
