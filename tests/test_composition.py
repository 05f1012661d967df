"""Composition theorems and certified profiles against brute force, closed forms and a peer.

Brute force: randomised responses enumerated term by term in fractions; Laplace and Gaussian
losses convolved in floats.  ``dp-accounting`` is asked where it is installed.
"""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import composition
from discreet.accounting.composition import (
    Comparison,
    OptimalComposition,
    Row,
    advanced,
    basic,
    compare,
    concentrated,
    peer_epsilon,
    per_query,
)
from discreet.accounting.loss import INFINITY, Loss
from discreet.accounting.profile import (
    AnyProfile,
    GaussianProfile,
    LaplaceProfile,
    closed,
    compose,
    composed,
)
from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_bounds, log_up
from discreet.mechanisms import ExponentialMechanism, Gaussian, Grid, Laplace

steady = settings(deadline=None, derandomize=True)
scipy_special = pytest.importorskip("scipy.special")


# --- basic and concentrated ------------------------------------------------------------


def test_basic_adds_epsilons_and_deltas_of_different_mechanisms():
    total = basic(
        [Loss.pure("0.3"), Loss.approximate("0.2", "1e-7"), Loss.approximate("0.1", "3e-7")]
    )
    assert (total.epsilon, total.delta) == (Fraction(3, 5), Fraction(4, 10**7))


def test_concentrated_adds_rhos():
    total = concentrated(
        [Loss.gaussian(sensitivity=3, sigma_squared=90), Loss.concentrated("0.05", "1e-9")]
    )
    assert (total.epsilon, total.rho, total.delta) == (
        INFINITY,
        Fraction(1, 10),
        Fraction(1, 10**9),
    )


# --- advanced ------------------------------------------------------------


@pytest.mark.parametrize(("count", "epsilon"), [(10, 0.1), (300, 0.02), (50, 1.0)])
def test_advanced_is_theorem_3_20(count, epsilon):
    slack = 1e-5
    stated = epsilon * math.sqrt(2 * count * math.log(1 / slack))
    stated += count * epsilon * (math.exp(epsilon) - 1)
    loss = advanced(count=count, epsilon=epsilon, delta="1e-9", slack=slack)
    assert float(loss.epsilon) == pytest.approx(stated, rel=1e-12)
    assert loss.delta == count * Fraction(1, 10**9) + Fraction(1, 10**5)


@given(st.integers(1, 400), st.sampled_from(["0.01", "0.1", "0.7", "2"]))
@steady
def test_advanced_is_never_below_the_optimum(count, epsilon):
    slack = Fraction(1, 10**6)
    claimed = advanced(count=count, epsilon=epsilon, slack=slack).epsilon
    assert OptimalComposition(count=count, epsilon=epsilon).delta_at(claimed) <= slack


# --- epsilon per query ------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "epsilon", "delta"),
    [(200, "0.5", "1e-6"), (5000, "200", "1e-6"), (3, "2", "0.01"), (40, "30", "0.001")],
)
def test_per_query_composes_to_at_most_epsilon(count, epsilon, delta):
    each = per_query(count=count, epsilon=epsilon, delta=delta)
    assert OptimalComposition(count=count, epsilon=each).delta_at(epsilon) <= Fraction(delta)
    by_advanced = advanced(count=count, epsilon=each, slack=delta).epsilon
    assert min(by_advanced, count * each) <= Fraction(epsilon)
    # ... and a thousandth more would not be covered by either theorem.
    more = each * Fraction(1001, 1000)
    by_advanced = advanced(count=count, epsilon=more, slack=delta).epsilon
    assert min(by_advanced, count * more) > Fraction(epsilon)


def corollary_3_21(count, epsilon, delta):
    return epsilon / (2 * math.sqrt(2 * count * math.log(1 / delta)))


def test_corollary_3_21_fails_for_large_epsilon():
    """The truth for k randomised responses exceeds what the closed form promises."""
    wrong = corollary_3_21(5000, 200, 1e-6)
    truth = OptimalComposition(count=5000, epsilon=wrong)
    assert truth.delta_at(200) > Fraction(1, 100)
    assert per_query(count=5000, epsilon=200, delta="1e-6") < Fraction(wrong)


@given(st.integers(2, 3000), st.sampled_from([0.1, 0.5, 0.99]), st.sampled_from([1e-9, 1e-3]))
@steady
def test_per_query_is_never_below_the_corollary_where_it_holds(count, epsilon, delta):
    ours = per_query(count=count, epsilon=epsilon, delta=delta)
    assert ours >= Fraction(corollary_3_21(count, epsilon, delta)) * Fraction(999_999, 10**6)


# --- the optimum for equal mechanisms ------------------------------------------------------------


def enumerated(count, growth, target, mass=Fraction(0)):
    """Delta of k randomised responses with e**epsilon = growth, answer by answer, in fractions."""
    one = [(growth / (1 + growth), 1 / (1 + growth)), (1 / (1 + growth), growth / (1 + growth))]
    one = [((1 - mass) * p, (1 - mass) * q) for p, q in one]
    one += [(mass, Fraction(0)), (Fraction(0), mass)] if mass else []
    total = Fraction(0)
    for answers in itertools.product(one, repeat=count):
        p = math.prod((a for a, _ in answers), start=Fraction(1))
        q = math.prod((b for _, b in answers), start=Fraction(1))
        total += max(p - target * q, 0)
    return total


@given(
    st.integers(1, 5),
    st.fractions(Fraction(11, 10), 4, max_denominator=20),
    st.fractions(0, 6, max_denominator=10),
    st.sampled_from([Fraction(0), Fraction(1, 50)]),
)
@steady
def test_optimal_composition_is_the_enumerated_truth(count, growth, target, mass):
    optimum = OptimalComposition(count=count, epsilon=log_up(growth), delta=mass)
    truth = float(enumerated(count, growth, exp_bounds(target)[0] if target else 1, mass))
    assert float(optimum.delta_at(target)) == pytest.approx(truth, rel=1e-9, abs=1e-15)
    # ... and it is certified: never below, whichever way e**target was rounded.
    low = enumerated(count, growth, exp_bounds(target)[1] if target else 1, mass)
    assert optimum.delta_at(target) >= low


@given(
    st.integers(1, 60),
    st.sampled_from(["0.05", "0.5", "3"]),
    st.sampled_from([Fraction(0), Fraction(1, 10**5)]),
    st.sampled_from([Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 3)]),
)
@steady
def test_the_optimal_epsilon_inverts_the_optimal_delta(count, epsilon, mass, target):
    optimum = OptimalComposition(count=count, epsilon=epsilon, delta=mass)
    found = optimum.epsilon_at(target)
    if isinstance(found, float):
        assert 1 - (1 - mass) ** count > target
        return
    assert optimum.delta_at(found) <= target * (1 + Fraction(1, 10**12))
    if found:
        assert optimum.delta_at(found * Fraction(999_999, 10**6)) > target * Fraction(999, 1000)


def test_optimal_composition_of_a_thousand_is_binomial():
    """Against scipy's binomial law, term by term in floats."""
    count, epsilon, target = 1000, 0.1, 19.0
    dissents = np.arange(count + 1)
    loss = (count - 2 * dissents) * epsilon
    log_mass = (
        scipy_special.gammaln(count + 1)
        - scipy_special.gammaln(dissents + 1)
        - scipy_special.gammaln(count - dissents + 1)
        + (count - dissents) * epsilon
        - count * math.log1p(math.exp(epsilon))
    )
    gain = np.clip(-np.expm1(target - loss), 0, None)
    truth = float(np.sum(np.exp(log_mass) * gain))
    found = OptimalComposition(count=count, epsilon="0.1").delta_at(19)
    assert float(found) == pytest.approx(truth, rel=1e-9)


def test_the_optimum_never_exceeds_basic_or_concentrated_accounting():
    for count in (1, 7, 100, 2000):
        optimum = OptimalComposition(count=count, epsilon="0.1").epsilon_at("1e-6")
        assert optimum <= count * Fraction(1, 10)
        assert optimum <= (count * Loss.pure("0.1")).epsilon_at("1e-6")


# --- profiles ------------------------------------------------------------


def gaussian_delta(mu, epsilon):
    """Balle and Wang (2018), Theorem 8."""
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return scipy_special.ndtr(near) - math.exp(epsilon) * scipy_special.ndtr(far)


@given(st.sampled_from([0.3, 1.0, 2.5]), st.sampled_from([0, 0.1, 1, 3]))
@steady
def test_the_gaussian_profile_is_the_closed_form(mu, epsilon):
    profile = GaussianProfile(sensitivity=Fraction(str(mu)), sigma_squared=1, grid=0)
    assert float(profile.delta_at(epsilon)) == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-9)


def discrete_masses(kind, parameter, shift, reach):
    z = np.arange(-reach, reach + 1)
    exponent = -np.abs(z - shift) / parameter if kind == "laplace" else (
        -((z - shift) ** 2) / (2 * parameter)
    )  # fmt: skip
    weight = np.exp(exponent)
    return weight / weight.sum()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("parameter", "shift"), [(2, 1), (9, 3), (1, 2), (40, 5)])
@pytest.mark.parametrize("epsilon", [0, 0.03, 0.5, 1.4])
def test_discrete_profiles_are_the_enumerated_truth(kind, parameter, shift, epsilon):
    p = discrete_masses(kind, parameter, 0, 4000)
    q = discrete_masses(kind, parameter, shift, 4000)
    truth = float(np.clip(p - math.exp(epsilon) * q, 0, None).sum())
    profile = (
        LaplaceProfile(sensitivity=shift, scale=parameter)
        if kind == "laplace"
        else GaussianProfile(sensitivity=shift, sigma_squared=parameter)
    )
    assert float(profile.delta_at(epsilon)) == pytest.approx(truth, rel=1e-9, abs=1e-14)


@given(
    st.sampled_from(
        [
            LaplaceProfile(sensitivity=2, scale=3, grid=0),
            LaplaceProfile(sensitivity=2, scale=3, grid="1/2"),
            GaussianProfile(sensitivity=1, sigma_squared=4, grid=0),
            GaussianProfile(sensitivity=1, sigma_squared=4),
            AnyProfile(epsilon="0.7", delta="0.001"),
        ]
    ),
    st.sampled_from([Fraction(1, 10**8), Fraction(1, 500), Fraction(1, 5)]),
)
@steady
def test_a_profile_is_inverted_by_epsilon_at_and_never_beats_its_loss_unfairly(profile, delta):
    epsilon = profile.epsilon_at(delta)
    if isinstance(epsilon, float):
        assert profile.loss.delta > delta
        return
    assert profile.delta_at(epsilon) <= delta
    assert epsilon <= profile.loss.epsilon_at(delta)
    for target in ("0", "0.2", "1"):
        most = profile.loss.delta_at(target) * (1 + Fraction(1, 10**12))
        assert profile.delta_at(target) <= most


def convolved(parts, epsilon):
    """Delta of independent discrete losses by brute-force convolution over dictionaries."""
    total = {0.0: 1.0}
    for p, q in parts:
        following: dict[float, float] = {}
        for a, b in zip(p, q, strict=True):
            loss = round(math.log(a / b), 9)
            for before, mass in total.items():
                key = round(before + loss, 9)
                following[key] = following.get(key, 0.0) + mass * a
        total = following
    return sum(mass * max(0.0, 1 - math.exp(epsilon - loss)) for loss, mass in total.items())


@pytest.mark.parametrize("epsilon", [0, 0.5, 1.7])
def test_a_mixed_composition_is_above_brute_force_and_close(epsilon):
    def pair(kind, parameter, shift, reach):
        p = discrete_masses(kind, parameter, 0, reach)
        q = discrete_masses(kind, parameter, shift, reach)
        kept = (p > 1e-18) & (q > 1e-18)
        return p[kept], q[kept]

    parts = [pair("laplace", 4, 2, 150)] * 3 + [pair("gaussian", 9, 1, 30)] * 2
    profiles = [LaplaceProfile(sensitivity=2, scale=4)] * 3
    profiles += [GaussianProfile(sensitivity=1, sigma_squared=9)] * 2
    truth = convolved(parts, epsilon)
    ours = float(compose(profiles).delta_at(epsilon))
    assert truth * (1 - 1e-7) <= ours <= truth * 1.001


def test_composed_randomized_responses_are_the_optimum():
    """Two ways to one number: integer convolution, and the binomial law in balls."""
    for count, mass in ((7, "0"), (300, "0"), (300, "1e-8")):
        convolution = compose([AnyProfile(epsilon="0.1", delta=mass)] * count)
        binomial = OptimalComposition(count=count, epsilon="0.1", delta=mass)
        for delta in ("1e-4", "1e-9"):
            ours, truth = convolution.epsilon_at(delta), binomial.epsilon_at(delta)
            if isinstance(truth, float):
                assert ours == INFINITY
                continue
            assert truth <= ours + Fraction(1, 10**12)
            assert float(ours) == pytest.approx(float(truth), rel=1e-9)


# --- arbitrary releases that differ --------------------------------------------------------------


def enumerated_mix(releases, target):
    """Delta of randomised responses (e**epsilon, delta), answer by answer, in fractions."""
    total = Fraction(0)
    pairs = []
    for growth, mass in releases:
        yes, no = (1 - mass) * growth / (1 + growth), (1 - mass) / (1 + growth)
        pairs.append([(yes, no), (no, yes), (mass, Fraction(0)), (Fraction(0), mass)])
    for answers in itertools.product(*pairs):
        p = math.prod((a for a, _ in answers), start=Fraction(1))
        q = math.prod((b for _, b in answers), start=Fraction(1))
        total += max(p - target * q, 0)
    return total


MIXES = st.lists(
    st.tuples(
        st.sampled_from([Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(7, 2)]),
        st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 50), Fraction(1, 3)]),
    ),
    min_size=2,
    max_size=4,
)


@given(MIXES, st.fractions(0, 6, max_denominator=10), st.booleans())
@steady
def test_composed_arbitrary_releases_are_the_enumerated_truth(releases, target, gridded):
    with pytest.MonkeyPatch.context() as patch:
        if gridded:  # too many sums to list: never below the truth, and close
            patch.setattr(composed, "_MOST_SUMS", 1)
            composed._account.cache_clear()
        together = compose([AnyProfile(log_up(growth), mass) for growth, mass in releases])
        ours = together.delta_at(target)
        composed._account.cache_clear()
    low, high = exp_bounds(target) if target else (1, 1)
    assert ours >= enumerated_mix(releases, high)
    truth = float(enumerated_mix(releases, low))
    near = {"abs": 1e-3} if gridded else {"rel": 1e-9, "abs": 1e-15}
    assert float(ours) == pytest.approx(truth, **near)


@given(MIXES, st.sampled_from([Fraction(1, 10**6), Fraction(1, 100), Fraction(2, 5)]))
@steady
def test_the_epsilon_of_arbitrary_releases_inverts_their_delta(releases, target):
    together = compose([AnyProfile(log_up(growth), mass) for growth, mass in releases])
    found = together.epsilon_at(target)
    if isinstance(found, float):
        assert 1 - math.prod(1 - mass for _, mass in releases) > target
        return
    assert together.delta_at(found) <= target * (1 + Fraction(1, 10**9))
    if found:
        least = together.delta_at(found * Fraction(999_999, 10**6))
        assert least > target * Fraction(999, 1000)


@pytest.mark.parametrize("sums", [1, 1 << 14])
@pytest.mark.parametrize(
    "releases",
    [
        [(1, 0), (2, 0)],
        [("0.3", 0), ("0.7", 0), (2, 0)],
        [(1, "0.001"), (2, "0.002")],
        [("1/3", "1e-9"), ("1/7", 0), ("9/10", "1/7")],
    ],
)
def test_nothing_but_failure_exceeds_the_sum(releases, sums, monkeypatch):
    """It was 0.0053 for 0 at the sum 1 + 2, and no epsilon for the delta of the failures."""
    monkeypatch.setattr(composed, "_MOST_SUMS", sums)
    composed._account.cache_clear()
    together = compose([AnyProfile(epsilon, delta) for epsilon, delta in releases])
    most = sum((Fraction(epsilon) for epsilon, _ in releases), Fraction(0))
    failure = 1 - math.prod(1 - Fraction(delta) for _, delta in releases)
    assert 0 <= together.delta_at(most) - failure <= Fraction(1, 10**40)
    assert together.delta_at(2 * most) == together.delta_at(most)
    assert together.delta_at(most * Fraction(999, 1000)) > failure
    assert together.epsilon_at(failure) == most
    assert together.epsilon_at(failure + Fraction(1, 10**30)) <= most
    if failure:
        assert together.epsilon_at(failure * (1 - Fraction(1, 10**30))) == INFINITY
    composed._account.cache_clear()


def test_laplace_releases_that_differ_end_at_their_sum():
    together = compose(
        [LaplaceProfile(sensitivity=1, scale=3), LaplaceProfile(sensitivity=5, scale=7)]
    )
    assert together.delta_at(Fraction(1, 3) + Fraction(5, 7)) == 0
    assert together.delta_at(1) > 0
    # ... and Gaussian tails, which have no end, are not cut off.
    endless = compose(
        [LaplaceProfile(sensitivity=1, scale=3), GaussianProfile(sensitivity=1, sigma_squared=4)]
    )
    assert endless.delta_at(endless.reach * Fraction(99, 100)) > 0
    assert endless.delta_at(endless.reach * 2) > 0


def test_equal_releases_have_an_epsilon_at_the_very_delta_of_their_failures():
    for delta, count in ((Fraction(1, 1000), 2), (Fraction(1, 7), 9), (Fraction(1, 10**6), 3000)):
        failure = 1 - (1 - delta) ** count
        for profile in (
            OptimalComposition(count=count, epsilon="0.4", delta=delta),
            compose([AnyProfile("0.4", delta)] * count),
        ):
            assert profile.epsilon_at(failure) == count * Fraction(2, 5)
            assert profile.epsilon_at(failure * (1 - Fraction(1, 10**30))) == INFINITY


def test_failures_too_many_to_write_out_are_bounded(monkeypatch):
    monkeypatch.setattr(composed, "_MOST_WRITTEN", 10)
    failures = [(Fraction(1, 10), 2), (Fraction(1, 3), 5)]
    truth = 1 - Fraction(9, 10) ** 2 * Fraction(2, 3) ** 5
    assert composed.fails_within(failures, truth + Fraction(1, 10**40))
    assert not composed.fails_within(failures, truth - Fraction(1, 10**40))


def test_composed_gaussians_are_one_gaussian():
    """Closed form, against the same through the grid (a vanishing Laplace spoils the shortcut)."""
    gaussians = [GaussianProfile(sensitivity=3, sigma_squared=3600, grid=0)] * 300
    closed = compose(gaussians)
    assert isinstance(closed, GaussianProfile)
    assert float(closed.delta_at(2)) == pytest.approx(gaussian_delta(math.sqrt(0.75), 2), rel=1e-9)
    nothing = LaplaceProfile(sensitivity=1, scale=10**9, grid=0)
    gridded = compose([*gaussians, nothing])
    truth = float(closed.epsilon_at("1e-6"))
    assert truth <= float(gridded.epsilon_at("1e-6")) <= truth * 1.001


def test_a_delta_that_cannot_be_told_from_zero_is_not_reported_as_zero():
    undecided = closed._least_upper(lambda: arb(0, arb(2) ** -5000))
    assert 0 < undecided < Fraction(1, 2**1000)
    assert closed._least_upper(lambda: arb(0)) == 0


@pytest.mark.parametrize("power", [170, 300, 400])
def test_losses_too_small_for_a_double_are_composed(power):
    least = Fraction(1, 10**power)
    together = compose([AnyProfile(epsilon=least)] * 3)
    assert together.epsilon_at(0) == 3 * least
    # Total variation: the majority of three is right with probability 1/2 + 3/8 epsilon.
    assert together.delta_at(0) >= least * Fraction(3, 4) * (1 - Fraction(1, 10**9))


def test_the_optimal_epsilon_is_never_below_where_rounding_hides_the_difference():
    """Two responses at 200, and a delta that falls short of "both are true" by e**-390."""
    growth, gap = (exp_bounds(Fraction(x), bits=2000)[0] for x in (200, -390))
    delta = (growth / (1 + growth)) ** 2 - gap
    # delta = both true - e**t both false, with both false = (1 + e**200)**-2: t is near 10.
    assert OptimalComposition(count=2, epsilon=200).epsilon_at(delta) > 9


def test_masses_only_ever_round_up_and_none_is_lost():
    """Products far below a unit become a unit; what is cut off above is certain failure."""
    tiny = composed._Losses(0, [1, 1 << composed._BITS, 1], 0)
    product = tiny * tiny
    kept = sum(product.masses) + product.certain
    assert kept << composed._BITS >= sum(tiny.masses) ** 2
    dust = composed._Losses(0, [1 << composed._BITS, 3, 2], 5)._trim()
    assert (dust.masses, dust.certain) == ([1 << composed._BITS], 10)
    dust = composed._Losses(0, [3, 2, 1 << composed._BITS], 5)._trim()
    assert (dust.start, dust.masses, dust.certain) == (2, [5 + (1 << composed._BITS)], 5)
    assert composed._Losses(0, [0, 1, 1, 0], 0).power(1).masses == [0, 1, 1, 0]


def test_the_dots_are_joined_to_a_law():
    """The masses of a discretised release add up to one, and dominate its curve between dots."""
    release = LaplaceProfile(sensitivity=3, scale=2, grid=0)
    step = Fraction(1, 4)
    losses = composed._discretise(release, step)
    total = sum(losses.masses) + losses.certain
    assert 0 <= total - (1 << composed._BITS) < 100
    for target in (-1.3, -0.4, 0.0, 0.1, 0.33, 1.49):
        joined = losses.certain / 2**composed._BITS + sum(
            mass / 2**composed._BITS * max(0.0, 1 - math.exp(target - (losses.start + i) / 4))
            for i, mass in enumerate(losses.masses)
        )
        exact = 1 - math.exp((target - 1.5) / 2)
        assert exact * (1 - 1e-12) <= joined <= exact + 0.01


def test_a_composition_asked_for_less_delta_than_its_tails_falls_back_to_the_sum():
    together = compose([LaplaceProfile(sensitivity=1, scale=4)] * 5)
    assert together.epsilon_at(0) == Fraction(5, 4)
    assert together.epsilon_at("1e-60") <= Fraction(5, 4)


def test_more_releases_never_cost_less():
    values = [
        compose([LaplaceProfile(sensitivity=1, scale=3)] * k).epsilon_at("1e-5")
        for k in (1, 2, 3, 8, 20)
    ]
    assert values == sorted(values)
    assert len(set(values)) == 5


# --- a peer ------------------------------------------------------------

PEER_CASES = {
    "Laplace": [LaplaceProfile(sensitivity=1, scale=10, grid=0)] * 100,
    "discrete Laplace": [LaplaceProfile(sensitivity=2, scale=10)] * 100,
    "Gaussian": [GaussianProfile(sensitivity=1, sigma_squared=50, grid=0)] * 40,
    "discrete Gaussian": [GaussianProfile(sensitivity=1, sigma_squared=50)] * 40,
    "any": [AnyProfile(epsilon="0.2", delta="1e-8")] * 30,
    "mixed": [LaplaceProfile(sensitivity=1, scale=10, grid=0)] * 50
    + [GaussianProfile(sensitivity=1, sigma_squared=50, grid=0)] * 5,
}


@pytest.mark.parametrize("profiles", PEER_CASES.values(), ids=PEER_CASES.keys())
def test_our_certified_epsilon_is_within_a_thousandth_of_the_peer(profiles):
    pytest.importorskip("dp_accounting")
    ours = float(compose(profiles).epsilon_at("1e-6"))
    assert ours == pytest.approx(peer_epsilon(profiles, delta="1e-6"), rel=1e-3)


def test_without_the_peer_installed_the_refusal_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld.privacy_loss_distribution", None)
    with pytest.raises(InvalidParameter, match="P8") as refusal:
        peer_epsilon([AnyProfile(epsilon="0.3")], delta="1e-6")
    assert "pip install 'discreet[accounting]'" in refusal.value.fix


def test_importing_composition_does_not_import_the_peer():
    assert importlib.import_module("discreet.accounting.composition") is composition
    assert not any(name.startswith("dp_accounting") for name in vars(composition))


# --- side by side ------------------------------------------------------------


def test_compare_returns_every_theorem_for_every_count():
    table = compare(LaplaceProfile(sensitivity=1, scale=10, grid=0), counts=(4, 200), delta="1e-6")
    lines = table.series()
    assert set(lines) == {"basic", "advanced", "optimal", "concentrated", "profile"}
    assert all([count for count, _ in points] == [4, 200] for points in lines.values())
    at_200 = {method: dict(points)[200] for method, points in lines.items()}
    assert at_200["basic"] == 20
    assert at_200["profile"] < at_200["optimal"] < at_200["concentrated"] < at_200["advanced"]
    assert table.best(200).method == "profile"
    assert all(row.certified for row in table.rows)
    text = str(table)
    assert text.splitlines()[0] == "ε at δ = 0.000001"
    assert len(text.splitlines()) == 7


def test_compare_gives_gaussians_an_epsilon_by_each_theorem_too():
    table = compare(GaussianProfile(sensitivity=1, sigma_squared=400), counts=50, delta="1e-6")
    by_method = {row.method: float(row.epsilon) for row in table.rows}
    assert by_method["profile"] < by_method["concentrated"] < by_method["basic"]
    assert by_method["optimal"] < by_method["advanced"]


def test_compare_keeps_room_for_the_failures_of_each_release():
    table = compare(AnyProfile(epsilon="0.1", delta="1e-8"), counts=20, delta="1e-6")
    row = next(row for row in table.rows if row.method == "advanced")
    total = advanced(count=20, epsilon="0.1", delta="1e-8", slack="8e-7")
    assert total.delta == Fraction(1, 10**6)
    assert row.epsilon == total.epsilon
    crowded = compare(AnyProfile(epsilon="0.1", delta="1e-7"), counts=20, delta="1e-6")
    assert {row.method for row in crowded.rows} == {"concentrated", "profile"}
    assert {row.epsilon for row in crowded.rows} == {INFINITY}


def test_compare_can_ask_the_peer():
    pytest.importorskip("dp_accounting")
    table = compare(AnyProfile(epsilon="0.1"), counts=20, delta="1e-6", peer=True)
    peer = next(row for row in table.rows if row.method == "peer")
    assert not peer.certified
    assert float(peer.epsilon) == pytest.approx(float(table.best(20).epsilon), rel=1e-3)


@pytest.mark.parametrize(
    ("mechanism", "profile"),
    [
        (Laplace(sensitivity=1, epsilon="1/10"), LaplaceProfile(sensitivity=1, scale=10)),
        (
            Laplace(sensitivity=3, epsilon="1/4", entries_changed=1),
            LaplaceProfile(sensitivity=3, scale=12),
        ),
        (
            Laplace(sensitivity=3, epsilon="1/4", grid=Grid("1/2")),
            LaplaceProfile(sensitivity=6, scale=24),
        ),
        (
            Gaussian(sensitivity=3, rho="1/8", entries_changed=1),
            GaussianProfile(sensitivity=3, sigma_squared=36),
        ),
    ],
)
def test_a_mechanism_stands_for_the_profile_that_it_knows(mechanism, profile):
    assert mechanism.profile == profile
    mine = compare(mechanism, counts=(3, 10), delta="1e-6")
    assert mine == compare(profile, counts=(3, 10), delta="1e-6")
    assert compose([mechanism, profile]) == compose([profile] * 2)
    assert mechanism.loss.epsilon == profile.loss.epsilon
    assert mechanism.loss.rho == profile.loss.rho


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (Laplace(sensitivity=3, epsilon="1/4"), "AnyProfile('1/4', '0')"),
        (Gaussian(sensitivity=3, rho="1/8", entries_changed=2), "entries_changed=1"),
        (ExponentialMechanism(sensitivity=3, epsilon=2), "AnyProfile('2', '0')"),
        ("laplace", "LaplaceProfile(sensitivity=1, scale=20)"),
    ],
)
def test_a_release_of_which_no_profile_is_known_is_refused(release, words):
    for ask in (lambda: compare(release, counts=3, delta="1e-6"), lambda: compose([release])):
        with pytest.raises(InvalidParameter, match="no profile of") as refusal:
            ask()
        assert refusal.value.code == "P4"
        assert words in refusal.value.fix


def test_a_table_with_a_missing_cell_is_still_a_table():
    rows = (Row("basic", 3, Fraction(3, 10), "DR 3.16"), Row("profile", 4, INFINITY, "x"))
    lines = str(Comparison(Fraction(1, 10), rows)).splitlines()
    assert lines[2].split() == ["basic", "0.3", "-", "DR", "3.16"]
    assert lines[3].split() == ["profile", "-", "∞", "x"]


# --- refusals ------------------------------------------------------------

LAPLACE = LaplaceProfile(sensitivity=1, scale=4)
BAD = {
    "no losses": lambda: basic([]),
    "infinite basic": lambda: basic([Loss.concentrated("0.1")]),
    "infinite concentrated": lambda: concentrated([Loss(1, INFINITY)]),
    "no queries": lambda: advanced(count=0, epsilon=1, slack="0.1"),
    "negative count": lambda: OptimalComposition(count=-1, epsilon=1),
    "more than can be listed": lambda: OptimalComposition(count=10**7, epsilon="1e-9"),
    "compare more than can be listed": lambda: compare(LAPLACE, counts=10**15, delta="0.1"),
    "compare nothing": lambda: compare(LAPLACE, counts=None, delta="0.1"),
    "beyond all digits": lambda: OptimalComposition(count=3, epsilon=10**7),
    "beyond all digits by advanced": lambda: advanced(count=3, epsilon=10**7, slack="0.1"),
    "a release beyond all digits": lambda: AnyProfile(epsilon=10**400),
    "no noise to speak of": lambda: LaplaceProfile(sensitivity=1, scale="1e-9"),
    "no slack": lambda: advanced(count=2, epsilon=1, slack=0),
    "certain slack": lambda: advanced(count=2, epsilon=1, slack=1),
    "deltas adding up to one": lambda: advanced(count=9, epsilon=1, delta="0.2", slack="0.1"),
    "free queries": lambda: per_query(count=2, epsilon=0, delta="0.1"),
    "too many queries": lambda: per_query(count=10**30, epsilon=1, delta="0.1"),
    "nan": lambda: OptimalComposition(count=2, epsilon=float("nan")),
    "delta of one": lambda: OptimalComposition(count=2, epsilon=1, delta=1),
    "nothing to compose": lambda: compose([]),
    "off the grid": lambda: LaplaceProfile(sensitivity="0.5", scale=4),
    "no noise": lambda: GaussianProfile(sensitivity=1, sigma_squared=0),
    "negative grid": lambda: LaplaceProfile(sensitivity=1, scale=4, grid=-1),
    "compare none": lambda: compare(LAPLACE, counts=(), delta="0.1"),
    "compare zero": lambda: compare(LAPLACE, counts=0, delta="0.1"),
    "compare at zero": lambda: compare(LAPLACE, counts=2, delta=0),
    "another row": lambda: compare(LAPLACE, counts=2, delta="0.1").best(3),
    "no releases for the peer": lambda: peer_epsilon([], delta="0.1"),
    "negative target": lambda: LAPLACE.delta_at(-1),
    "certain target": lambda: LAPLACE.epsilon_at(1),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(case):
    with pytest.raises(InvalidParameter) as refusal:
        case()
    assert all((refusal.value.what, refusal.value.why, refusal.value.fix))
