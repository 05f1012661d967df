"""Losses: what mechanisms cost, how costs add and convert, and that none is optimistic.

Truth comes from brute force (Rényi and hockey-stick divergences of finite laws, computed
here in floats and in fractions) and from closed forms, never from the code under test.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.composition import advanced
from discreet.accounting.conversion import (
    concentrated_delta,
    concentrated_epsilon,
    largest_rho,
    pure_rho,
)
from discreet.accounting.loss import DELTA_UNITS, EPSILON_UNITS, INFINITY, NOTHING, RHO_UNITS, Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_bounds, log_up

steady = settings(deadline=None, derandomize=True)

TINY = 1e-9  # relative error of the floats that stand for the truth here

# --- brute force -----------------------------------------------------------------------------


def renyi(p, q, alpha):
    """D_alpha(p || q) of two finite laws with the same support."""
    terms = [alpha * math.log(a) + (1 - alpha) * math.log(b) for a, b in zip(p, q, strict=True)]
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(t - top) for t in terms))) / (alpha - 1)


def hockey_stick(p, q, factor):
    """The sum of (p - factor q)+, exactly when the arguments are fractions."""
    return sum(max(a - factor * b, 0) for a, b in zip(p, q, strict=True))


def pure_epsilon_of(p, q):
    """An upper bound of the max divergence both ways, from exact fractions."""
    return max(log_up(max(a / b, b / a)) for a, b in zip(p, q, strict=True))


weights = st.lists(st.integers(1, 50), min_size=2, max_size=6)


def law(parts):
    return [Fraction(part, sum(parts)) for part in parts]


pairs = st.integers(2, 6).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(1, 60), min_size=n, max_size=n)] * 2)
)


def discrete_laplace(scale, shift, reach):
    """The law of shift plus two-sided geometric noise on -reach .. reach + shift, in floats."""
    q = math.exp(-1 / scale)
    return [(1 - q) / (1 + q) * q ** abs(z - shift) for z in range(-reach, reach + 1)]


def blur(alpha):
    """How far off the floats of ``renyi`` may be: a rounded logarithm over alpha - 1."""
    return 1e-12 + 1e-14 / (alpha - 1)


ORDERS = [1.0001, 1.01, 1.1, 1.5, 2, 3, 5, 8, 16, 32, 64, 200]


# --- the best rho ----------------------------------------------------------------------------


@steady
@given(pairs)
def test_pure_rho_bounds_every_renyi_divergence_of_a_pure_mechanism(parts):
    p, q = law(parts[0]), law(parts[1])
    loss = Loss.pure(pure_epsilon_of(p, q))
    for alpha in ORDERS:
        assert renyi(p, q, alpha) <= float(loss.rho) * alpha * (1 + TINY) + blur(alpha)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "9"])
def test_pure_rho_is_attained_by_randomized_response(epsilon):
    e = float(epsilon)
    p, q = 1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))
    kl = (p - q) * e
    assert math.isclose(float(Loss.pure(epsilon).rho), kl, rel_tol=1e-12)
    assert Loss.randomized_response(epsilon) == Loss.pure(epsilon)
    worst = max(renyi([p, q], [q, p], alpha) / alpha for alpha in ORDERS)
    assert worst <= kl * (1 + TINY)
    # ... and a rho one part in a thousand smaller would be refuted near order one.
    assert worst > kl * 0.999


@pytest.mark.parametrize(("scale", "shift"), [(2, 1), (2, 3), (0.7, 2), (12, 3), (5, 40)])
def test_laplace_rho_is_the_tight_rho_of_the_discrete_law(scale, shift):
    reach = int(60 * scale) + 2 * shift
    p, q = discrete_laplace(scale, 0, reach), discrete_laplace(scale, shift, reach)
    rho = float(Loss.laplace(sensitivity=shift, scale=scale).rho)
    ratios = [renyi(p, q, alpha) / alpha for alpha in ORDERS]
    assert max(ratios) <= rho * (1 + 1e-7)
    assert max(ratios) >= rho * 0.999
    # The continuous law's rho would be optimistic for this noise: the laws refute it.
    continuous = float(Loss.laplace(sensitivity=shift, scale=scale, grid=0).rho)
    assert math.isclose(continuous, shift / scale - 1 + math.exp(-shift / scale), rel_tol=1e-9)
    if scale < 5:
        assert max(ratios) > continuous * 1.0001


def test_laplace_rho_on_a_finer_grid_approaches_the_continuous_one():
    fine = Loss.laplace(sensitivity=3, scale=12, grid="1/4096").rho
    coarse = Loss.laplace(sensitivity=3, scale=12).rho
    continuous = Loss.laplace(sensitivity=3, scale=12, grid=0).rho
    assert continuous < fine < coarse < pure_rho(Fraction(1, 4))
    assert float(fine / continuous) < 1 + 1e-6


@steady
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(1, 30))
def test_laplace_rho_covers_a_shift_spread_over_many_coordinates(shifts, scale):
    """Independent coordinates add their divergences; the sum is below that of one big shift."""
    spread = sum((Loss.laplace(sensitivity=s, scale=scale).rho for s in shifts), Fraction(0))
    assert spread <= Loss.laplace(sensitivity=sum(shifts), scale=scale).rho


@steady
@given(st.lists(st.integers(0, 40), min_size=2, max_size=6), st.data())
def test_exponential_rho_bounds_every_mechanism_of_bounded_range(scores, data):
    """Scores that move by at most 1, up or down, with probability proportional to e^(eps u / 2)."""
    epsilon = data.draw(st.sampled_from([0.1, 0.5, 1.0, 3.0]))
    moves = data.draw(
        st.lists(st.sampled_from([-1, 0, 1]), min_size=len(scores), max_size=len(scores))
    )
    p = [math.exp(epsilon * s / 2 / 10) for s in scores]
    q = [math.exp(epsilon * (s / 10 + m) / 2) for s, m in zip(scores, moves, strict=True)]
    p, q = [x / math.fsum(p) for x in p], [x / math.fsum(q) for x in q]
    loss = Loss.exponential(epsilon)
    for alpha in ORDERS:
        assert renyi(p, q, alpha) <= float(loss.rho) * alpha * (1 + TINY) + blur(alpha)


def test_bounded_range_is_worth_a_factor_of_four():
    assert Loss.exponential("0.2").rho == Fraction(4, 100) / 8
    assert float(Loss.pure("0.2").rho / Loss.exponential("0.2").rho) > 3.9
    # At large epsilon purity is the better argument, and is used.
    assert Loss.exponential(20).rho == Loss.pure(20).rho < Fraction(400, 8)


def test_gaussian_rho_uses_the_square_of_the_sensitivity():
    assert Loss.gaussian(sensitivity=3, sigma_squared=50).rho == Fraction(9, 100)
    assert Loss.gaussian(sensitivity_squared=3, sigma_squared=50).rho == Fraction(3, 100)
    assert Loss.gaussian(sensitivity=3, sigma_squared=50).epsilon == INFINITY
    assert Loss.gaussian(sensitivity=0, sigma_squared=50) == NOTHING


# --- conversions -----------------------------------------------------------------------------


@steady
@given(pairs, st.sampled_from([0.0, 0.1, 0.4, 1.0, 2.0]))
def test_delta_at_is_never_below_brute_force(parts, target):
    p, q = law(parts[0]), law(parts[1])
    loss = Loss.pure(pure_epsilon_of(p, q))
    at = Fraction(str(target))
    truth = hockey_stick(p, q, exp_bounds(at)[1])
    assert loss.delta_at(at) >= truth
    only_rho = Loss.concentrated(loss.rho)
    assert only_rho.delta_at(at) >= truth


@steady
@given(pairs, st.fractions(Fraction(1, 10**6), Fraction(1, 2)))
def test_epsilon_at_is_never_below_brute_force(parts, delta):
    p, q = law(parts[0]), law(parts[1])
    loss = Loss.pure(pure_epsilon_of(p, q))
    for bound in (loss, Loss.concentrated(loss.rho)):
        epsilon = bound.epsilon_at(delta)
        assert hockey_stick(p, q, exp_bounds(epsilon)[1]) <= delta


@steady
@given(pairs, st.fractions(0, Fraction(1, 3)), st.sampled_from(["0", "0.3", "1.1"]))
def test_a_failure_mass_costs_itself_and_no_more(parts, mass, target):
    """With probability ``mass`` the neighbours are told apart; otherwise as before."""
    p, q = law(parts[0]), law(parts[1])
    base = pure_epsilon_of(p, q)
    loss = Loss.approximate(base, mass)
    p, q = [*((1 - mass) * a for a in p), mass, 0], [*((1 - mass) * b for b in q), 0, mass]
    truth = hockey_stick(p, q, exp_bounds(Fraction(target))[1])
    assert truth <= loss.delta_at(target)
    more = mass + Fraction(1, 50)
    assert hockey_stick(p, q, exp_bounds(loss.epsilon_at(more))[1]) <= more
    if mass:
        assert loss.epsilon_at(mass / 2) == INFINITY


def test_pure_conversion_is_attained_by_randomized_response():
    e = Fraction(3, 2)
    growth = exp_bounds(e)[0]
    p, q = [growth / (1 + growth), 1 / (1 + growth)], [1 / (1 + growth), growth / (1 + growth)]
    for target in (Fraction(0), Fraction(1, 2), Fraction(7, 5)):
        truth = hockey_stick(p, q, exp_bounds(target)[0])
        assert math.isclose(float(Loss.pure(e).delta_at(target)), float(truth), rel_tol=1e-12)
        delta = Loss.pure(e).delta_at(target)
        assert 0 <= Loss.pure(e).epsilon_at(delta) - target < Fraction(1, 10**12)


@given(
    st.fractions(Fraction(1, 10**6), 20),
    st.fractions(Fraction(1, 10**12), Fraction(1, 2)),
)
@settings(steady, max_examples=60)
def test_the_conversion_is_the_best_over_all_orders(rho, delta):
    """No order on a dense grid gives a smaller epsilon than the one that was found."""
    r, log_delta = float(rho), math.log(delta)
    orders = [1 + math.exp(x / 20) for x in range(-200, 400)]
    best = min(a * r + math.log1p(-1 / a) - (log_delta + math.log(a)) / (a - 1) for a in orders)
    found = concentrated_epsilon(rho, delta)
    assert float(found) <= max(0.0, best) + 1e-9
    if found > Fraction(1, 10**6):
        assert concentrated_delta(rho, found) <= delta * (1 + Fraction(1, 10**6))
        assert largest_rho(found, delta) >= rho * (1 - Fraction(1, 10**6))


@given(st.fractions(Fraction(1, 100), 10), st.fractions(Fraction(1, 10**9), Fraction(1, 3)))
@settings(steady, max_examples=40)
def test_the_room_in_a_budget_rounds_down(epsilon, delta):
    room = largest_rho(epsilon, delta)
    # Another order is found here; the two optima agree to many digits.
    assert concentrated_delta(room, epsilon) <= delta * (1 + Fraction(1, 10**9))


def test_the_tight_conversion_beats_the_textbook_one():
    """Bun and Steinke, Proposition 1.3: rho + 2 sqrt(rho ln(1 / delta))."""
    textbook = 0.1 + 2 * math.sqrt(0.1 * math.log(1e6))
    assert float(Loss.concentrated("0.1").epsilon_at("1e-6")) < textbook - 0.2


def test_a_loss_beyond_all_digits_still_converts():
    loss = Loss.laplace(sensitivity=3, scale="1e-999")
    assert loss.epsilon_at("1e-6") <= loss.epsilon
    assert loss.epsilon_at("1e-6") >= loss.epsilon - Fraction(1, 10**3)
    assert loss.delta_at(2) == 1


def test_conversions_at_the_edges():
    assert Loss.pure("0.3").epsilon_at(0) == Fraction(3, 10)
    assert Loss.concentrated("0.3").epsilon_at(0) == INFINITY
    assert Loss.approximate("0.3", "0.01").epsilon_at("0.001") == INFINITY
    assert Loss.approximate("0.3", "0.01").epsilon_at("0.01") == Fraction(3, 10)
    assert NOTHING.epsilon_at(0) == NOTHING.delta_at(0) == 0
    assert Loss.concentrated("1e-40").epsilon_at("1e-9") < Fraction(1, 10**12)
    assert Loss.concentrated("1e30").delta_at("0.5") == 1
    assert Loss.concentrated("1e-9").delta_at(5000) == pytest.approx(0, abs=1e-300)
    assert Loss.pure(10**6).delta_at(1) <= 1


# --- adding ------------------------------------------------------------------------------------


@steady
@given(st.lists(pairs, min_size=3, max_size=3), st.sampled_from(["0", "0.25", "1"]))
def test_an_adaptive_second_question_never_costs_more_than_the_sum(trio, target):
    """The second mechanism depends on the first answer; both losses are worst cases."""
    first, *seconds = [(law(a), law(b)) for a, b in trio]
    p, q = [], []
    for place, (a, b) in enumerate(zip(*first, strict=True)):
        second = seconds[place % 2]
        p += [a * c for c in second[0]]
        q += [b * c for c in second[1]]
    price = max(pure_epsilon_of(*pair) for pair in seconds)
    loss = Loss.pure(pure_epsilon_of(*first)) + Loss.pure(price)
    at = Fraction(target)
    truth = hockey_stick(p, q, exp_bounds(at)[1])
    assert truth <= loss.delta_at(at)
    for alpha in (1.1, 2, 7):
        assert renyi(p, q, alpha) <= float(loss.rho) * alpha * (1 + TINY) + blur(alpha)


def test_losses_add_multiply_and_sum_by_coordinates():
    one, other = Loss.approximate("0.2", "1e-7"), Loss.gaussian(sensitivity=3, sigma_squared=90)
    total = one + other
    assert (total.epsilon, total.delta) == (INFINITY, Fraction(1, 10**7))
    assert total.rho == one.rho + Fraction(1, 20)
    assert sum([one, one, one]) == 3 * one == one * 3
    assert (3 * one).epsilon == Fraction(3, 5)
    assert sum([one, other]) == total


def test_the_order_is_partial():
    small, large = Loss.pure("0.2"), Loss.approximate("0.3", "1e-9")
    assert small < large
    assert large > small
    assert small <= Loss.pure("0.2")
    assert not small < Loss.pure("0.2")
    other = Loss.gaussian(sensitivity=1, sigma_squared=10**6)
    assert not small <= other
    assert not other <= small
    with pytest.raises(TypeError):
        _ = small <= 3


# --- groups ------------------------------------------------------------------------------------


def test_a_group_multiplies_epsilon_and_squares_rho():
    assert Loss.pure("0.3").for_group(5).epsilon == Fraction(3, 2)
    assert Loss.concentrated("0.02").for_group(5).rho == Fraction(1, 2)
    assert Loss.gaussian(sensitivity=2, sigma_squared=9).for_group(3) == Loss.gaussian(
        sensitivity=6, sigma_squared=9
    )
    # Purity may bound rho better than the square does.
    assert Loss.pure("0.5").for_group(40).rho == Loss.pure(20).rho


def test_advanced_composition_for_groups_would_be_wrong():
    """100 people move a Laplace count by 100: the square root would be refuted by the law."""
    people, epsilon, slack = 100, 0.1, 1e-6
    wrong = float(advanced(count=people, epsilon=epsilon, slack=slack).epsilon)
    right = people * epsilon
    assert wrong < right
    # Laplace noise of scale 1/epsilon: delta at e is 1 - exp((e - right) / 2).
    truth = 1 - math.exp((wrong - right) / 2)
    assert truth > 1000 * slack
    assert Loss.pure("0.1").for_group(people).epsilon == 10
    assert float(Loss.pure("0.1").for_group(people).delta_at(wrong)) >= truth


@pytest.mark.parametrize("people", [2, 3, 7])
def test_a_group_fails_more_often_than_its_members_added_up(people):
    """Each neighbour shows the outcome 'leak' e**eps times as often, plus delta."""
    epsilon, delta = Fraction(2, 5), Fraction(1, 1000)
    growth = exp_bounds(epsilon)[0]
    leak = Fraction(0)
    for _ in range(people):
        leak = growth * leak + delta
    group = Loss.approximate(epsilon, delta).for_group(people)
    assert group.epsilon == people * epsilon
    assert group.delta >= leak  # the truth, at people * epsilon
    assert people * delta < leak  # the wrong form
    assert float(group.delta) == pytest.approx(
        people * math.exp((people - 1) * 0.4) * 0.001, rel=1e-12
    )


@steady
@given(st.lists(st.lists(st.integers(1, 60), min_size=3, max_size=3), min_size=4, max_size=4))
def test_groups_are_never_below_brute_force_on_a_chain_of_neighbours(chain):
    laws = [law(parts) for parts in chain]
    steps = list(pairwise(laws))
    epsilon = Fraction(1, 4)
    factor = exp_bounds(epsilon)[0]
    delta = max(max(hockey_stick(p, q, factor), hockey_stick(q, p, factor)) for p, q in steps)
    base = Loss.approximate(epsilon, delta)
    truth = hockey_stick(laws[0], laws[-1], exp_bounds(3 * epsilon)[1])
    try:
        group = base.for_group(3)
    except InvalidParameter:  # the failure mass of the group would reach 1: nothing is promised
        assert 3 * exp_bounds(2 * epsilon)[1] * delta >= 1
        return
    assert truth <= group.delta_at(3 * epsilon)
    pure = Loss.pure(max(pure_epsilon_of(p, q) for p, q in steps))
    for alpha in (1.1, 2, 7):
        divergence = renyi(laws[0], laws[-1], alpha)
        assert divergence <= float(pure.for_group(3).rho) * alpha * (1 + TINY) + blur(alpha)


def test_changing_one_unit_is_a_group_of_two():
    loss = Loss.laplace(sensitivity=2, scale=9)
    assert loss.change_one() == loss.for_group(2)
    assert loss.change_one().epsilon == Fraction(4, 9)
    assert loss.for_group(1) == loss


def test_a_failing_concentrated_loss_has_no_group_loss():
    with pytest.raises(InvalidParameter, match="P4"):
        Loss.concentrated("0.1", "1e-9").for_group(2)


# --- storage -----------------------------------------------------------------------------------


@steady
@given(
    st.fractions(0, 100),
    st.fractions(0, 100),
    st.fractions(0, Fraction(99, 100)),
)
def test_units_round_up_by_less_than_one(epsilon, rho, delta):
    loss = Loss(epsilon, rho, delta)
    stored = loss.rounded()
    assert loss <= stored
    assert stored.epsilon - epsilon < Fraction(1, EPSILON_UNITS)
    assert stored.rho - rho < Fraction(1, RHO_UNITS)
    assert stored.delta - delta < Fraction(1, DELTA_UNITS)
    assert stored.rounded() == stored
    assert all(isinstance(unit, int) for unit in loss.to_units())


def test_nothing_smaller_than_a_unit_is_free():
    crumbs = Loss("1e-30", "1e-30", "1e-40")
    assert crumbs.to_units() == (1, 1, 1)
    assert NOTHING.to_units() == (0, 0, 0)


def test_infinity_is_stored_as_none():
    loss = Loss.gaussian(sensitivity=2, sigma_squared=100)
    assert loss.to_units()[0] is None
    assert Loss.from_units(*loss.to_units()) == loss


def test_thirds_sevenths_and_decimals_are_whole_units():
    for text in ("1/3", "1/7", "0.1", "0.000000000001"):
        assert Loss.pure(text).rounded().epsilon == Fraction(text)
    assert Loss.approximate(1, "1e-15").rounded().delta == Fraction(1, 10**15)
    assert 3000 * EPSILON_UNITS < 2**63
    assert DELTA_UNITS < 2**63


def test_no_float_hides_in_a_loss():
    for loss in (
        Loss.pure(0.1),
        Loss.approximate(0.1, 1e-6),
        Loss.laplace(sensitivity=1.5, scale=7.25),
        Loss.exponential(0.3),
    ):
        assert all(type(x) is Fraction for x in (loss.epsilon, loss.rho, loss.delta))
        assert all(type(x) is Fraction for x in (loss.epsilon_at("1e-6"), loss.delta_at("0.01")))
    assert Loss.pure(0.1).epsilon == Fraction(1, 10)


# --- refusals ----------------------------------------------------------------------------------

BAD = {
    "negative epsilon": lambda: Loss.pure(-1),
    "negative rho": lambda: Loss.concentrated("-0.1"),
    "negative delta": lambda: Loss.approximate(1, "-1e-9"),
    "nan": lambda: Loss.pure(float("nan")),
    "nan rho": lambda: Loss(1, float("nan")),
    "minus infinity": lambda: Loss(float("-inf"), 1),
    "infinite pure": lambda: Loss.pure(INFINITY),
    "both infinite": lambda: Loss(INFINITY, INFINITY),
    "delta of one": lambda: Loss.approximate(1, 1),
    "deltas adding up to one": lambda: 2 * Loss.approximate(1, "0.5"),
    "group delta of one": lambda: Loss.approximate(1, "0.5").for_group(3),
    "a large group": lambda: Loss.approximate(3, "1e-6").for_group(1000),
    "a delta of many digits": lambda: Loss.approximate(1, Fraction(10**5000, 3)),
    "a crowd": lambda: Loss.approximate(100, "1e-9").for_group(10**9),
    "group of nobody": lambda: Loss.pure(1).for_group(0),
    "zero copies": lambda: 0 * Loss.pure(1),
    "half a copy": lambda: Loss.pure(1) * 0.5,
    "no noise": lambda: Loss.laplace(sensitivity=1, scale=0),
    "no variance": lambda: Loss.gaussian(sensitivity=1, sigma_squared=0),
    "no sensitivity": lambda: Loss.gaussian(sigma_squared=4),
    "two sensitivities": lambda: Loss.gaussian(
        sensitivity=2, sensitivity_squared=4, sigma_squared=4
    ),
    "conversion at delta of one": lambda: Loss.pure(1).epsilon_at(1),
    "conversion at a negative epsilon": lambda: Loss.pure(1).delta_at(-1),
    "a word": lambda: Loss.pure("much"),
    "negative units": lambda: Loss.from_units(-1, 0, 0),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_what_why_and_fix(case):
    with pytest.raises(InvalidParameter) as refusal:
        case()
    assert refusal.value.code in ("P1", "P2", "P4")
    assert all((refusal.value.what, refusal.value.why, refusal.value.fix))
