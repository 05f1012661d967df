"""The exponential mechanism and permute-and-flip, against enumeration and the book's examples."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import max_divergence, renyi
from discreet.errors import InvalidParameter
from discreet.exact.balls import precision
from discreet.mechanisms import ExponentialMechanism, Grid, PermuteAndFlip

BOTH = [ExponentialMechanism, PermuteAndFlip]


def masses(law) -> list[float]:
    with precision(100):
        return [float(law.mass(outcome)) for outcome in law.outcomes]


def by_enumeration(scores, rate) -> list[float]:
    """Permute-and-flip as it is defined: every order, every coin."""
    best = max(scores)
    heads = [math.exp(rate * (score - best)) for score in scores]
    chances = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for candidate in order:
            chances[candidate] += left * heads[candidate]
            left *= 1 - heads[candidate]
    return chances


# --- the laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("monotonic", "rate"), [(False, 0.25), (True, 0.5)])
def test_the_exponential_law_is_the_definition(monotonic, rate):
    law = ExponentialMechanism(sensitivity=3, epsilon="3/2", monotonic=monotonic).law([4, -2, 0, 9])
    weights = [math.exp(rate * score) for score in (4, -2, 0, 9)]
    assert masses(law) == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-14)


@pytest.mark.parametrize("scores", [[5], [2, 2], [4, -2, 0, 9], [7, 7, 6, 0, 5]])
@pytest.mark.parametrize(("monotonic", "rate"), [(False, 0.25), (True, 0.5)])
def test_the_permute_and_flip_law_is_the_definition(scores, monotonic, rate):
    law = PermuteAndFlip(sensitivity=3, epsilon="3/2", monotonic=monotonic).law(scores)
    assert masses(law) == pytest.approx(by_enumeration(scores, rate), rel=1e-13)


def test_permute_and_flip_is_never_worse():
    """McKenna and Sheldon, Theorem 2: in expectation, and stochastically."""
    for scores in itertools.product([-9, -4, -3, 0], repeat=3):
        flip = masses(PermuteAndFlip(sensitivity=2, epsilon=1).law(scores))
        expo = masses(ExponentialMechanism(sensitivity=2, epsilon=1).law(scores))
        for level in (-9, -4, -3, 0):
            good = [i for i, score in enumerate(scores) if score >= level]
            assert sum(flip[i] for i in good) >= sum(expo[i] for i in good) - 1e-12


def test_only_the_exponential_mechanism_has_bounded_range():
    """Charging permute-and-flip epsilon**2 / 8 would be false: its Rényi divergence is larger."""
    scores = ([0, 0, 0, -1], [-1, -1, -1, 0])
    flip, expo = (kind(sensitivity=1, epsilon=3) for kind in (PermuteAndFlip, ExponentialMechanism))
    alpha, eighth = Fraction(2), Fraction(9, 8)
    worst = max(
        renyi(flip.law(first), flip.law(second), alpha)[0]
        for first, second in itertools.permutations(
            [*scores, [-30, 0, 0, 0], [-29, -1, -1, -1], [0, -2], [-1, -1]], 2
        )
        if len(first) == len(second)
        and max(abs(a - b) for a, b in zip(first, second, strict=True)) <= 1
    )
    assert worst > alpha * eighth
    assert flip.loss.rho > eighth
    assert expo.loss.rho == eighth
    assert renyi(expo.law(scores[0]), expo.law(scores[1]), alpha)[1] <= alpha * eighth


# --- accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("candidates", [2, 9, 40])
@pytest.mark.parametrize("beta", ["0.3", "0.01"])
def test_the_margin_is_attained_and_not_exceeded(kind, candidates, beta):
    """All the others just beyond the margin: the chance of one of them is beta, and not more."""
    mechanism = kind(sensitivity=3, epsilon=1, grid=Grid("1/1024"))
    margin = mechanism.margin(beta, candidates=candidates)
    chance = {}
    for worse in (margin, 0.97 * margin):
        law = mechanism.law([0.0] + [-worse] * (candidates - 1))
        chance[worse] = 1 - masses(law)[0]
    assert chance[margin] <= float(beta) < chance[0.97 * margin]


def test_the_margin_is_below_the_theorems():
    """DR Theorem 3.11: 2 Delta / epsilon (ln(k / m) + ln(1 / beta))."""
    mechanism = ExponentialMechanism(sensitivity=3, epsilon="1/2")
    for candidates, optimal, beta in [(2, 1, "0.5"), (40, 1, "0.05"), (40, 7, "0.01")]:
        theorem = 12 * (math.log(candidates / optimal) + math.log(1 / float(beta)))
        bounds = {"candidates": candidates, "optimal": optimal}
        assert mechanism.theorem_margin(beta, **bounds) == pytest.approx(theorem, rel=1e-12)
        assert mechanism.margin(beta, **bounds) <= theorem
    assert mechanism.margin("0.6", candidates=2) == 0


@pytest.mark.parametrize("kind", BOTH)
def test_the_cheapest_within_a_margin(kind):
    cheapest = kind.within(60, "0.95", candidates=50, sensitivity=3)
    assert cheapest.margin("0.05", candidates=50) <= 60
    less = kind(sensitivity=3, epsilon=cheapest.epsilon - Fraction(1, 10**5))
    assert less.margin("0.05", candidates=50) > 60


def test_permute_and_flip_buys_the_same_margin_for_less():
    flip, expo = (kind.within(60, "0.95", candidates=50, sensitivity=3) for kind in BOTH[::-1])
    assert flip.epsilon < expo.epsilon


# --- the book's examples -----------------------------------------------------------------------

BIDS = {"A": 100, "F": 100, "I": 100, "K": 301}


def revenue(price: int, bids: dict[str, int]) -> int:
    return price * sum(bid >= price for bid in bids.values())


def test_the_pumpkin_auction():
    """DR Example 3.5, in cents.  At 1.00 all four buy: the revenue is 4.00, not the 3.00 printed.

    One more bidder adds at most the price, so the sensitivity is the highest
    price on offer; and never takes any away, so the scores are monotonic.
    """
    prices = range(1, 401)
    scores = {price: revenue(price, BIDS) for price in prices}
    assert (scores[100], scores[300], scores[301], scores[302]) == (400, 300, 301, 0)
    mechanism = ExponentialMechanism(sensitivity=400, epsilon=40, monotonic=True)
    with precision(100):
        law = mechanism.law(scores)
        mass = {price: float(law.mass(price)) for price in prices}
    # A cent too much costs everything: adding noise to the best price would have been a disaster.
    assert mass[301] / mass[302] == pytest.approx(math.exp(30.1), rel=1e-9)
    expected = sum(scores[price] * mass[price] for price in prices)
    assert expected > 390
    for bidder in BIDS:
        fewer = {name: bid for name, bid in BIDS.items() if name != bidder}
        neighbour = mechanism.law({price: revenue(price, fewer) for price in prices})
        for one, other in ((law, neighbour), (neighbour, law)):
            assert max_divergence(one, other)[1] <= mechanism.epsilon * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize("c", [2, 10, 30])
def test_the_best_of_two(c):
    """DR Example 3.6: the wrong one with probability at most 2 exp(-c epsilon / 2)."""
    epsilon = 0.5
    expo = masses(ExponentialMechanism(sensitivity=1, epsilon="1/2").law({"A": 0, "B": c}))
    assert expo[0] == pytest.approx(1 / (1 + math.exp(c * epsilon / 2)), rel=1e-12)
    assert expo[0] <= 2 * math.exp(-c * epsilon / 2)
    # One-sided noise, monotonic counts: exponentially in c epsilon less likely.
    flip = masses(PermuteAndFlip(sensitivity=1, epsilon="1/2", monotonic=True).law([0, c]))
    assert flip[0] == pytest.approx(math.exp(-c * epsilon) / 2, rel=1e-12)


# --- the release -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_every_kind_of_scores_gives_the_same_law(kind):
    mechanism = kind(sensitivity=2, epsilon=1, grid=Grid("1/4"))
    same = [
        [0.5, 1.25, -3.0],
        np.array([0.5, 1.25, -3.0]),
        np.array([0.5, 1.25, -3.0], dtype=np.float32),
        [Fraction(1, 2), Decimal("1.25"), -3],
        {"a": 0.5, "b": 1.25, "c": -3.0},
    ]
    laws = [masses(mechanism.law(scores)) for scores in same]
    assert all(law == laws[0] for law in laws)
    whole = kind(sensitivity=8, epsilon=1)
    assert masses(whole.law(np.array([2, 5, -12], dtype=np.int16))) == pytest.approx(laws[0])


@pytest.mark.parametrize("kind", BOTH)
def test_the_best_far_ahead_is_chosen(kind):
    mechanism = kind(sensitivity=1, epsilon=4)
    assert mechanism.release([3, 90, 4]) == 1
    assert mechanism.release(np.array([3, 4, 90])) == 2
    assert mechanism.release({"flu": 90, "cold": 4}) == "flu"
    assert mechanism.release([7]) == 0
    assert mechanism.release([-(2**62), 2**62]) == 1


def test_rounding_halves_never_moves_scores_apart():
    """Halves to even would put 1/2 and 3/2, one step apart, two steps apart."""
    mechanism = ExponentialMechanism(sensitivity=1, epsilon=1, grid=Grid(1))
    for start in (-1.5, -0.5, 0.5, 1.5, 2.5):
        law = mechanism.law([start, 0.0]), mechanism.law([start + 1, 0.0])
        ratio = masses(law[1])[0] / masses(law[1])[1] / (masses(law[0])[0] / masses(law[0])[1])
        assert ratio == pytest.approx(math.exp(0.5))


def test_a_price_in_rho():
    mechanism = ExponentialMechanism(sensitivity=3, rho="1/3")
    assert Fraction(1, 3) * (1 - Fraction(1, 2**60)) < mechanism.loss.rho <= Fraction(1, 3)
    assert mechanism == ExponentialMechanism(sensitivity=3, epsilon=mechanism.epsilon)


def test_repr_reads_like_the_call():
    shown = PermuteAndFlip(sensitivity="1/3", epsilon="0.25", monotonic=True, grid=Grid("1/8"))
    expected = "sensitivity='1/3', epsilon='1/4', monotonic=True, grid=Grid('1/8')"
    assert repr(shown) == f"PermuteAndFlip({expected})"
    assert eval(repr(shown)) == shown


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"sensitivity": 0}, "P2"),
        ({"sensitivity": -3}, "P2"),
        ({"sensitivity": "5/2"}, "P4"),
        ({"epsilon": 0}, "P2"),
        ({"epsilon": -1}, "P2"),
        ({"epsilon": float("nan")}, "P1"),
    ],
)
def test_refuses_parameters(kind, wrong, code):
    with pytest.raises(InvalidParameter) as refusal:
        kind(**{"sensitivity": 3, "epsilon": 2} | wrong)
    assert refusal.value.code == code


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("scores", "code"),
    [
        ([], "P5"),
        ({}, "P5"),
        (np.array([], dtype=np.int64), "P5"),
        ([1.5, 2.25], "P6"),
        (np.array([1.5, 2.25]), "P6"),
        (np.array([[1, 2], [3, 4]]), "P6"),
        ("41", "P6"),
        (41, "P6"),
        ([None, 3], "P6"),
        ([2**70, 3], "P6"),
        (np.array([2**63 - 1, 3]), "P6"),
    ],
)
def test_refuses_scores(kind, scores, code):
    with pytest.raises(InvalidParameter) as refusal:
        kind(sensitivity=3, epsilon=2).release(scores)
    assert refusal.value.code == code


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("make", [list, np.array])
def test_refuses_what_is_no_number_without_naming_a_value(kind, bad, make):
    mechanism = kind(sensitivity=3, epsilon=2, grid=Grid("1/4"))
    with pytest.raises(InvalidParameter) as refusal:
        mechanism.release(make([987654.25, bad]))
    assert refusal.value.code == "P6"
    assert "987654" not in str(refusal.value)


def test_refuses_two_prices_or_none():
    for prices in ({}, {"epsilon": 1, "rho": 1}):
        with pytest.raises(InvalidParameter, match="either epsilon or rho"):
            ExponentialMechanism(sensitivity=3, **prices)


def test_refuses_impossible_targets():
    with pytest.raises(InvalidParameter, match="rounding of the grid"):
        PermuteAndFlip.within("1/8", "0.9", candidates=5, sensitivity=2, grid=Grid("1/4"))
    with pytest.raises(InvalidParameter, match="at random"):
        ExponentialMechanism.within(3, "0.3", candidates=2, sensitivity=2)
    with pytest.raises(InvalidParameter, match="cannot be best"):
        ExponentialMechanism(sensitivity=2, epsilon=2).margin("0.1", candidates=3, optimal=4)
