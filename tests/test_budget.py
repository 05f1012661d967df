"""The filter: adaptive analysts, however clever, never lose more than the budget.

The adversaries here are *optimal*.  With a menu of finite mechanisms the best adaptive
strategy is found by dynamic programming over what was spent and the privacy loss so far:
the value of a state is the largest delta that any continuation can reach.  So a test that
passes has tried every analyst, including those that steer between the two filters.
"""

from __future__ import annotations

import math
import timeit
from bisect import bisect_left
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import divergence
from discreet.accounting.budget import SATURATED, Budget, saturate
from discreet.accounting.conversion import concentrated_delta, largest_rho
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw, FiniteLaw
from discreet.accounting.loss import EPSILON_UNITS, INFINITY, NOTHING, RHO_UNITS, Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose, exp_bounds, log_up
from discreet.exact.numbers import round_down

steady = settings(deadline=None, derandomize=True)

# --- the best adversary ------------------------------------------------------------------------


class Response:
    """Randomised response whose privacy loss is ``size`` steps up or down."""

    def __init__(self, size, loss):
        self.size, self.loss = size, loss

    def value(self, after, place, ratio):
        true = ratio**self.size / (1 + ratio**self.size)
        return true * after(place + self.size) + (1 - true) * after(place - self.size)


class Leak:
    """With probability ``mass`` the neighbours are told apart; otherwise nothing is said."""

    def __init__(self, mass, loss=None):
        self.mass, self.loss = mass, loss or Loss(0, 0, mass)

    def value(self, after, place, ratio):
        return self.mass + (1 - self.mass) * after(place)


def best_adversary(admits, menu, *, ratio, reward):
    """The largest expected ``reward`` (of the final privacy loss, in steps) of any strategy.

    ``ratio`` is e**step.  With the reward (1 - e**(epsilon - loss))+ the result is
    the exact delta at epsilon of the whole adaptive interaction.
    """

    @cache
    def allowed(counts):
        spent = NOTHING
        for count, item in zip(counts, menu, strict=True):
            spent = spent + count * item.loss if count else spent
        return [place for place, item in enumerate(menu) if admits(spent, item.loss)]

    @cache
    def value(counts, place):
        best = reward(place)
        for choice in allowed(counts):
            after = (*counts[:choice], counts[choice] + 1, *counts[choice + 1 :])
            gain = menu[choice].value(lambda at, c=after: value(c, at), place, ratio)
            best = max(best, gain)
        return best

    return value((0,) * len(menu), 0)


def hockey_stick_reward(epsilon, step):
    return lambda place: max(0.0, 1 - math.exp(float(epsilon) - place * float(step)))


def either_with_what_is_left(epsilon, delta):
    """The OR of both filters with delta shared on the way: the rule that this library avoids."""

    def admits(spent, charge):
        total = spent + charge
        if total.delta > delta:
            return False
        left = delta - total.delta
        return total.epsilon <= epsilon or concentrated_delta(total.rho, epsilon) <= left

    return admits


@pytest.mark.parametrize(
    ("epsilon", "delta", "leak"),
    [("2", "0.1", "1/40"), ("3", "0.01", "1/200"), ("4", "0.001", "1/2000")],
)
def test_deciding_on_the_way_how_delta_is_shared_would_break_the_promise(epsilon, delta, leak):
    """docs/proofs/filters.md, Lemma 5: the same analyst against both rules."""
    e, d, step = Fraction(epsilon), Fraction(delta), Fraction(1, 4)
    menu = [Response(1, Loss.pure(step)), Leak(float(Fraction(leak)), Loss(0, 0, leak))]
    play = {"ratio": math.exp(step), "reward": hockey_stick_reward(e, step)}
    wrong = best_adversary(either_with_what_is_left(e, d), menu, **play)
    assert wrong > float(d) * 1.05
    right = best_adversary(Budget(epsilon=e, delta=d, accept_large_delta=True).admits, menu, **play)
    assert float(d) / 3 < right <= float(d)


def test_the_gap_is_no_artefact_of_floats():
    """The same in fractions: e**step is 5/4, and e**epsilon is bounded on the losing side."""
    ratio, delta = Fraction(5, 4), Fraction(1, 10)
    step, epsilon = log_up(ratio), Fraction(2)
    menu = [Response(1, Loss.pure(step)), Leak(Fraction(1, 20))]

    def play(admits, growth):
        reward = lambda place: max(Fraction(0), 1 - growth / ratio**place)  # noqa: E731
        return best_adversary(admits, menu, ratio=ratio, reward=reward)

    low, high = exp_bounds(epsilon)
    assert play(either_with_what_is_left(epsilon, delta), high) > delta
    assert play(Budget(epsilon=epsilon, delta=delta, accept_large_delta=True).admits, low) <= delta


menus = st.tuples(
    st.lists(st.integers(1, 4), min_size=1, max_size=2, unique=True),
    st.lists(st.integers(2, 5), max_size=1),
    st.lists(st.sampled_from([4, 9, 30]), max_size=1),
)


@given(
    st.sampled_from(["1", "2.5", "4"]),
    st.sampled_from(["0.2", "0.03", "0.001"]),
    st.sampled_from([None, "0", "1/4", "1"]),
    menus,
)
@settings(steady, max_examples=60)
def test_no_adaptive_analyst_exceeds_the_budget(epsilon, delta, share, menu):
    """Pure questions, questions known by their rho alone, and leaks, in any adaptive order."""
    e, d, step = Fraction(epsilon), Fraction(delta), Fraction(1, 3)
    pure, known_by_rho, leaks = menu
    items = [Response(size, Loss.pure(size * step)) for size in pure]
    items += [Response(s, Loss(INFINITY, Loss.pure(s * step).rho)) for s in known_by_rho]
    items += [Leak(float(d / part), Loss(0, 0, d / part)) for part in leaks]
    failures = None if share is None else Fraction(share) * d
    budget = Budget(epsilon=e, delta=d, failures=failures, accept_large_delta=True)
    reached = best_adversary(
        budget.admits, items, ratio=math.exp(step), reward=hockey_stick_reward(e, step)
    )
    assert reached <= float(d) * (1 + 1e-9)


@given(st.sampled_from(["0.2", "0.6"]), menus, st.sampled_from([1.05, 1.5, 2, 4, 10]))
@settings(steady, max_examples=40)
def test_no_adaptive_analyst_exceeds_a_budget_of_rho(rho, menu, alpha):
    """The moment of order alpha of the whole interaction is that of a rho-zCDP mechanism."""
    step = Fraction(1, 5)
    items = [Response(size, Loss.pure(size * step)) for size in {*menu[0], *menu[1]}]
    reached = best_adversary(
        Budget(rho=rho).admits,
        items,
        ratio=math.exp(step),
        reward=lambda place: math.exp((alpha - 1) * place * float(step)),
    )
    assert math.log(reached) / (alpha - 1) <= float(rho) * alpha * (1 + 1e-9)


def test_the_adversary_has_teeth():
    """Against a filter that adds rhos a tenth too small, the same search breaks the promise."""
    step, alpha = Fraction(1, 5), 1.05
    items = [Response(1, Loss.pure(step))]
    budget = Budget(rho="0.6")
    reached = best_adversary(
        lambda spent, charge: budget.admits(_shrunk(spent), _shrunk(charge)),
        items,
        ratio=math.exp(step),
        reward=lambda place: math.exp((alpha - 1) * place * float(step)),
    )
    assert math.log(reached) / (alpha - 1) > 0.6 * alpha


def _shrunk(loss):
    return Loss(loss.epsilon, loss.rho * Fraction(9, 10), loss.delta)


# --- any finite mechanisms ---------------------------------------------------------------------


class Finite:
    """A mechanism given by its two laws, and the least loss that is true of them."""

    def __init__(self, mine, theirs, *, pure=True):
        laws = [[Fraction(part, sum(parts)) for part in parts] for parts in (mine, theirs)]
        p, q = (FiniteLaw.exact(dict(enumerate(law))) for law in laws)
        epsilon = both_ways(max_divergence, p, q)[1] if pure else INFINITY
        self.loss = Loss(epsilon, both_ways(divergence.rho, p, q)[1]).rounded()
        self.mine, self.theirs = ([float(mass) for mass in law] for law in laws)


def best_conversation(admits, menu, epsilon, *, rounds):
    """The greatest delta of any conversation of so many rounds: every tree of questions is tried.

    No lattice of losses here, as the mechanisms are arbitrary.  Floats, so good to 1e-12.
    """
    factor = math.exp(epsilon)

    allowed = cache(admits)

    def value(p, q, spent, left):
        best = max(0.0, p - factor * q)
        for item in menu if left else ():
            if allowed(spent, item.loss):
                after = spent + item.loss
                answers = zip(item.mine, item.theirs, strict=True)
                told = (value(p * a, q * b, after, left - 1) for a, b in answers)
                best = max(best, sum(told))
        return best

    return value(1.0, 1.0, NOTHING, rounds)


finite = st.integers(2, 3).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(4, 9), min_size=n, max_size=n)] * 2, st.booleans())
)


@given(
    st.lists(finite.filter(lambda laws: laws[0] != laws[1]), min_size=2, max_size=3),
    st.sampled_from(["0.4", "1"]),
    st.sampled_from(["0.02", "0.2"]),
)
@settings(steady, max_examples=12)
def test_no_conversation_about_random_mechanisms_exceeds_the_budget(laws, epsilon, delta):
    """Each is charged the tight loss of its own two laws, some by their rho alone."""
    menu = [Finite(mine, theirs, pure=pure) for mine, theirs, pure in laws]
    budget = Budget(epsilon=epsilon, delta=delta, accept_large_delta=True)
    reached = best_conversation(budget.admits, menu, float(epsilon), rounds=4)
    assert reached <= float(Fraction(delta)) + 1e-12


def test_the_conversation_has_teeth():
    """Against a filter that forgets what was spent, the same search breaks the promise."""
    budget = Budget(epsilon="0.4", delta="0.02", accept_large_delta=True)
    menu = [Finite([5, 4, 6], [6, 4, 5]), Finite([4, 5], [5, 4], pure=False)]
    forgetful = lambda _, charge: budget.admits(NOTHING, charge)  # noqa: E731
    assert best_conversation(forgetful, menu, 0.4, rounds=6) > 0.02
    assert best_conversation(budget.admits, menu, 0.4, rounds=6) <= 0.02


# --- what fits ---------------------------------------------------------------------------------


def spend(budget, charge, most=100_000):
    """How many equal charges are admitted, one after the other, stored in whole units."""
    spent, count = NOTHING, 0
    while count < most and budget.admits(spent, charge):
        spent, count = spent + charge.rounded(), count + 1
    return count


@pytest.mark.parametrize(("price", "times"), [("0.1", 10), ("1/3", 3), ("1/7", 7), ("0.3", 3)])
def test_a_pure_budget_pays_for_exactly_its_parts(price, times):
    assert spend(Budget(epsilon=1), Loss.pure(price)) == times


def test_a_charge_below_a_unit_is_not_free():
    budget = Budget(epsilon=Fraction(50, EPSILON_UNITS))
    assert spend(budget, Loss("1e-30", "1e-30")) == 50


def test_many_small_questions_are_paid_by_rho_and_few_large_ones_by_epsilon():
    budget = Budget(epsilon=1, delta="1e-6", failures=0)
    large, small = Loss.pure("0.25"), Loss.pure("0.005")
    assert spend(budget, large) == 4 > budget.rho / large.rho
    assert spend(budget, small) == math.floor(budget.rho / small.rho.limit_denominator(10**15))
    assert spend(budget, small) > 9 * 200


def test_the_filter_is_as_good_as_the_conversion_of_peers():
    """1000 Gaussians of sigma 20 at delta 1e-6, one by one: OpenDP's zCDP says 8.8459."""
    charge = Loss.gaussian(sensitivity=1, sigma_squared=400)
    assert spend(Budget(epsilon="8.8459", delta="1e-6", failures=0), charge, 1000) == 1000
    assert spend(Budget(epsilon="8.84", delta="1e-6", failures=0), charge, 1000) < 1000


def test_delta_is_split_beforehand():
    budget = Budget(epsilon=2, delta="1e-6")
    assert budget.failures == Fraction(1, 10**7)
    assert budget.rho == largest_rho(Fraction(2), Fraction(9, 10**7))
    assert spend(budget, Loss.approximate("0.01", "2e-8")) == 5
    assert spend(Budget(epsilon=2, delta="1e-6", failures="1e-6"), Loss(0, 0, "1e-7")) == 10
    assert Budget(epsilon=2, delta="1e-6", failures="1e-6").rho == 0
    assert Budget(epsilon=2).rho == 0


@given(
    st.sampled_from([Fraction(1, 2), Fraction(3)]),
    st.sampled_from([Fraction(1, 10**9), Fraction(1, 100)]),
)
@steady
def test_one_release_may_take_the_budget_whole(epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta, accept_large_delta=True)
    whole = Loss.concentrated(round_down(largest_rho(epsilon, delta), Fraction(1, RHO_UNITS)))
    crumb = Loss.pure("1e-6")
    for charge in (Loss.approximate(epsilon, delta), Loss.pure(epsilon), whole):
        assert budget.admits(NOTHING, charge)
        assert not budget.admits(charge, crumb)
        assert not budget.admits(crumb, charge)
    assert not budget.admits(NOTHING, Loss.approximate(epsilon + 1, delta))
    assert not budget.admits(NOTHING, Loss.approximate(epsilon, 2 * delta))
    assert not budget.admits(NOTHING, Loss.concentrated(whole.rho * Fraction(1001, 1000)))
    assert not budget.admits(NOTHING, Loss(INFINITY, whole.rho, delta))


def test_a_budget_of_rho_counts_rho_and_failures_only():
    budget = Budget(rho="0.5", delta="1e-9")
    assert spend(budget, Loss.gaussian(sensitivity=2, sigma_squared=100)) == 25
    assert spend(budget, Loss.concentrated("0.001", "1e-10")) == 10
    assert not Budget(rho="0.5").admits(NOTHING, Loss.concentrated("0.1", "1e-12"))
    assert not budget.admits(NOTHING, Loss(1, INFINITY))


amounts = st.fractions(0, 3, max_denominator=1000)


@given(amounts, amounts, amounts, amounts)
@steady
def test_what_fits_after_more_fits_after_less(epsilon, rho, more, less):
    budget = Budget(epsilon=2, delta="1e-3")
    spent, charge = Loss(epsilon, rho), Loss(more, less)
    if budget.admits(spent, charge) and spent != NOTHING:
        assert budget.admits(Loss(epsilon / 2, rho / 2), charge)
        assert budget.admits(spent, Loss(more / 2, less / 2))


spendings = st.builds(
    lambda e, r, d: Loss(e, r, d / 10**6),
    amounts | st.just(INFINITY),
    amounts,
    st.fractions(0, 2, max_denominator=20),
)


@steady
@given(
    st.sampled_from(
        [Budget(epsilon=3, delta="1e-6"), Budget(epsilon=2), Budget(rho="1/2", delta="1e-6")]
    ),
    st.lists(spendings, min_size=1, max_size=8),
    spendings,
)
def test_many_accounts_at_once_are_decided_like_each_alone(budget, spent, charge):
    """Also where nothing was spent, where a sum is infinite, and to the last unit."""
    spent = [NOTHING, *spent]
    units = np.array([saturate(loss) for loss in spent], dtype=np.int64).T
    found = budget.admits_units(units, saturate(charge))
    assert found.tolist() == [budget.admits(loss, charge) for loss in spent]


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_many_accounts_are_decided_to_the_unit(step):
    budget = Budget(epsilon=3, delta="1e-6")
    left = 3 * EPSILON_UNITS - 7 + step
    units = np.array([[7], [SATURATED], [1]], dtype=np.int64)
    assert budget.admits_units(units, (left, SATURATED, 0)).tolist() == [step <= 0]


def test_what_is_saturated_is_never_admitted_again():
    budget = Budget(epsilon=10**6, delta="1e-6")  # more than 64 bits of units hold
    units = np.full((3, 2), SATURATED, dtype=np.int64)
    units[:, 0] = 0
    assert budget.admits_units(units, (5, 5, 0)).tolist() == [True, False]


def test_a_decision_takes_as_long_after_a_long_history_as_after_a_short_one():
    """The figure itself (a few microseconds) is in the benchmarks; a list would show 10**6 here."""
    budget = Budget(epsilon=3, delta="1e-9")
    charge = Loss.laplace(sensitivity=2, scale=725)
    best = []
    for charges in (1, 1000, 10**6, 10**12):
        spent = (charges * charge).rounded()
        best.append(min(timeit.repeat(lambda s=spent: budget.admits(s, charge), number=100)))
    assert max(best) < 10 * min(best)


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["0", "1e-9"])
@pytest.mark.parametrize(("within", "confidence"), [(50, "0.95"), (3, "0.9"), (150, "0.999")])
def test_remaining_counts_are_admitted_and_accurate(delta, within, confidence):
    """As many as were promised can be asked, one by one, and not many more could have been."""
    budget = Budget(epsilon=2, delta=delta, accept_large_delta=True)
    spent = 3 * Loss.pure("0.1").rounded()
    counts = budget.remaining(spent, within=within, confidence=confidence).counts
    beta = 1 - Fraction(confidence)

    def misses(law):
        return enclose(lambda: 2 * law.tail(within + 1))[1] > beta

    # The noisiest laws on a ladder of 1 % that are accurate enough, and what they allow.
    def noisiest(law):
        ladder = [Fraction(101, 100) ** k / 50 for k in range(1800)]
        return ladder[bisect_left(ladder, True, key=lambda x: misses(law(0, x))) - 1]

    scale, variance = noisiest(DiscreteLaplaceLaw), noisiest(DiscreteGaussianLaw)
    reference = 0
    for charge in (
        Loss.laplace(sensitivity=1, scale=scale),
        Loss.gaussian(sensitivity=1, sigma_squared=variance),
    ):
        asked, total = 0, spent
        while asked <= 2000 and budget.admits(total, charge):
            asked, total = asked + 1, total + charge.rounded()
        reference = max(reference, asked)
    assert min(reference, 2000) <= counts
    assert counts <= reference * 1.03 + 1 or reference > 2000


def test_remaining_says_it_in_words():
    budget = Budget(epsilon=1, delta="1e-6")
    fresh = str(budget.remaining(NOTHING))
    assert fresh.startswith("Enough for ")
    assert "more counts within ±50 at 95 % confidence." in fresh
    assert "ε 1 of 1 by pure accounting" in fresh
    assert "δ 0.0000001 for releases that may fail" in fresh
    spent = str(budget.remaining(Loss.approximate(5, "1e-6"), within=2000, confidence="0.9"))
    assert spent.startswith("Not enough for another count within ±2,000 at 90 % confidence.")
    assert "ε 0 of 1" in spent


def test_confidence_is_not_rounded_to_certainty():
    assert "at 99.9999 % confidence" in str(
        Budget(epsilon=1).remaining(NOTHING, confidence="0.9999999999")
    )


def test_what_is_left_is_rounded_down():
    left = Budget(epsilon=1).remaining(Loss.pure("1/3"))
    assert "ε 0.666666 of 1" in str(left)
    assert left.epsilon == Fraction(2, 3)


# --- refusals ------------------------------------------------------------------------------------

BAD = {
    "nothing": Budget,
    "both": lambda: Budget(epsilon=1, rho=1),
    "zero": lambda: Budget(epsilon=0),
    "negative": lambda: Budget(rho=-1),
    "infinite": lambda: Budget(epsilon=INFINITY),
    "nan": lambda: Budget(epsilon=float("nan")),
    "delta of one": lambda: Budget(epsilon=1, delta=1),
    "negative delta": lambda: Budget(epsilon=1, delta="-1e-9"),
    "failures above delta": lambda: Budget(epsilon=1, delta="1e-6", failures="1e-5"),
    "negative failures": lambda: Budget(epsilon=1, delta="1e-6", failures="-1e-9"),
    "within nothing": lambda: Budget(epsilon=1).remaining(NOTHING, within=0),
    "certainty": lambda: Budget(epsilon=1).remaining(NOTHING, confidence=1),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(case):
    with pytest.raises(InvalidParameter) as refusal:
        case()
    assert all((refusal.value.what, refusal.value.why, refusal.value.fix))
