"""Where the texts, and we, said more about privacy than is so."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.accounting.divergence import hockey_stick, max_divergence
from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw
from discreet.accounting.meaning import Meaning
from discreet.mechanisms import Laplace

SCHEMA = """
[tables.patients]
unit = "person"
max_rows_per_unit = 1
columns.person = "integer"
columns.ill = { type = "text", values = ["yes", "no"] }
"""


# --- DMNS Proposition A-5(1): epsilon for what is learnt about a value --------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_a_histogram_moves_a_belief_about_a_value_by_tanh_of_half_epsilon(epsilon):
    """Under add/remove two values are two steps apart, and the curator's histogram attains it."""
    rows = pa.table({"person": [1], "ill": ["yes"]})
    curator = discreet.curator(
        {"patients": rows},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=10),
    )
    asked = "SELECT ill, COUNT(*) AS n FROM patients GROUP BY ill"
    (mechanism,) = curator.explain(asked, epsilon=epsilon).priced.mechanisms
    assert isinstance(mechanism, Laplace)
    ill, well, absent = (mechanism.law(counts) for counts in ([1, 0], [0, 1], [0, 0]))
    assert max_divergence(ill, absent)[1] <= epsilon
    assert max_divergence(ill, well)[0] == 2 * epsilon
    # The outcome (1, 0), seen by one who believed 1/(1 + e**epsilon): Bayes, exactly.
    odds = float(ill.mass((1, 0)) / well.mass((1, 0)))
    prior = 1 / (1 + math.exp(epsilon))
    after = prior * odds / (prior * odds + 1 - prior)
    moved = math.tanh(float(epsilon) / 2)
    assert after - prior == pytest.approx(moved, rel=1e-9)
    promise = Meaning(epsilon=epsilon)
    assert after - prior > float(promise.presence.belief_change) * 1.2
    assert float(promise.value.belief_change) == pytest.approx(moved, rel=1e-9)


# --- DR 2.3: "|loss| <= epsilon with probability at least 1 - delta" ----------------------------


def test_the_loss_exceeds_epsilon_far_more_often_than_delta():
    """Its size exceeds 3/4 half of the time, where delta at 3/4 is 0.18."""
    here, there = DiscreteGaussianLaw(0, 4), DiscreteGaussianLaw(2, 4)
    epsilon = Fraction(3, 4)
    delta = float(hockey_stick(here, there, epsilon)[1])
    # The loss at z is (1 - z)/2, which leaves -3/4 ... 3/4 outside of 0, 1, 2.
    exceeds = float(here.below(0)) + float(here.tail(3))
    assert 0.17 < delta < 0.19
    assert 0.49 < exceeds < 0.52
    # What is true: never more than that often by an ideal release's side (DR Lemma 3.17).
    assert Meaning(epsilon=epsilon, delta=Fraction(delta)).presence.ideal_gap < delta


# --- DR Theorem 3.2: both tails of the multiplicative Chernoff bound ----------------------------


def test_the_upper_tail_of_chernoff_needs_epsilon_at_most_1():
    """One coin of probability 1/100 is above 51/100 in expectation's 51st part too often."""
    m, mean, epsilon = 1, 0.01, 50.0
    upper = mean  # P(S > (1 + 50)/100) = P(heads)
    assert upper > 40 * math.exp(-m * mean * epsilon**2 / 3)
    assert upper <= math.exp(-m * mean * epsilon**2 / (2 + epsilon))  # for every epsilon > 0
    # Where it is used with epsilon <= 1 it holds: a hundred coins, exactly.
    coins, p = 100, 0.1
    for tenths in range(1, 11):
        least = math.floor(coins * p * (1 + tenths / 10) + 1e-9) + 1
        tail = sum(
            math.comb(coins, k) * p**k * (1 - p) ** (coins - k) for k in range(least, coins + 1)
        )
        assert tail <= math.exp(-coins * p * (tenths / 10) ** 2 / 3)


# --- DR Example 3.4: the winning count "at no extra privacy cost" -------------------------------


def winner_and_count(counts, epsilon, value) -> list[float]:
    """The masses of (each index, value): the winner shows its noisy count; ties go to nobody."""
    laws = [DiscreteLaplaceLaw(count, 1 / epsilon) for count in counts]
    masses = []
    for i, law in enumerate(laws):
        others = math.prod(float(o.below(value)) for j, o in enumerate(laws) if j != i)
        masses.append(float(law.mass(value)) * others)
    return masses


@pytest.mark.parametrize("conditions", [2, 5])
def test_the_winning_count_of_overlapping_conditions_costs_as_much_as_all(conditions):
    """One person has every condition: all counts rise, and a low winner says so m times over."""
    epsilon = Fraction(1, 2)
    without = winner_and_count([10] * conditions, epsilon, -20)
    joined = winner_and_count([11] * conditions, epsilon, -20)
    lost = math.log(without[0] / joined[0])
    assert lost == pytest.approx(conditions * float(epsilon), rel=1e-9)
    # Cells that nobody shares lose epsilon, winner and count together.
    joined = winner_and_count([11] + [10] * (conditions - 1), epsilon, -20)
    assert abs(math.log(without[0] / joined[0])) <= float(epsilon) * (1 + 1e-9)
    assert abs(math.log(without[1] / joined[1])) <= float(epsilon) * (1 + 1e-9)


# --- DR Example 3.5 and the proof of Claim 3.5 --------------------------------------------------


def test_pumpkins_sell_for_more_at_one_dollar():
    bids = [Fraction(1), Fraction(1), Fraction(1), Fraction("3.01")]

    def revenue(price: str) -> Fraction:
        return Fraction(price) * sum(bid >= Fraction(price) for bid in bids)

    told = [revenue(price) for price in ("1.00", "3.00", "3.01", "3.02")]
    assert told == [4, 3, Fraction("3.01"), 0]  # the text has 3.00 for the first
    assert max(told) == revenue("1.00")


def test_yes_where_the_truth_is_no_needs_two_heads():
    """The proof of Claim 3.5 has heads, then tails, which answers no."""
    coins = list(itertools.product("HT", repeat=2))
    yes = [pair for pair in coins if pair[0] == "H" and pair[1] == "H"]
    assert (len(yes), yes) == (1, [("H", "H")])
    assert Fraction(len(yes), len(coins)) == Fraction(1, 4)


# --- DMNS Claim 4.4 and Lemma 4.3: the random half ----------------------------------------------


def parity(r: int, x: int) -> int:
    return (r & x).bit_count() % 2


@pytest.mark.parametrize("d", [2, 3, 4])
def test_two_points_of_a_random_half_are_negatively_correlated(d):
    """The text has +1/2**d; without r = 0 the mean over the others is -1/(2**d - 1)."""
    rs = range(1, 2**d)
    for x, y in itertools.combinations(range(2**d), 2):
        mean = Fraction(sum((-1) ** (parity(r, x) + parity(r, y)) for r in rs), len(rs))
        assert mean == Fraction(-1, 2**d - 1)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_claim_4_4_holds_all_the_same(d):
    """The variance of the estimate, over all r except 0 and both halves, for a skewed map."""
    epsilon = 0.7
    shares = [math.exp(epsilon * (x % 3 == 0)) for x in range(2**d)]  # p_x(z), up to a factor
    mean = sum(shares) / 2**d
    found = []
    for r, b in itertools.product(range(1, 2**d), (0, 1)):
        half = [share for x, share in enumerate(shares) if parity(r, x) == b]
        found.append((sum(half) / len(half) - mean) ** 2)
    assert sum(found) / len(found) <= 2 * (math.exp(epsilon) - 1) ** 2 * mean**2 / 2**d


def distance_to_half(d: int, epsilon: float, secret: int, r: int) -> float:
    """The statistical distance of Z(D_r) and Z(D), Z a randomised response about parity."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    inside = [x for x in range(2**d) if parity(r, x) == 0]
    ones = sum(parity(secret, x) for x in inside) / len(inside)
    return abs(ones * p + (1 - ones) * (1 - p) - 0.5)


def test_lemma_4_3_without_alpha_in_the_denominator():
    """Z tells one secret parity by randomised response: for r = secret the halves are far apart.

    The proof ends with 4 (12 eps**2 / 2**d)**(1/3), whatever alpha is; as soon as one r in
    2**d - 1 counts, that is too little.  With alpha below the line it is enough.
    """
    epsilon = 1.0
    for d in (2, 3, 4):  # the distance does not depend on d, and other r have none
        assert distance_to_half(d, epsilon, 1, 1) == pytest.approx(math.tanh(epsilon / 2) / 2)
        assert distance_to_half(d, epsilon, 1, 2) == pytest.approx(0)
    far, d = math.tanh(epsilon / 2) / 2, 20
    alpha = 0.5 / (2**d - 1)  # fewer than one r may be left out
    assert far > 2 * 4 * (12 * epsilon**2 / 2**d) ** (1 / 3)
    assert far <= 4 * (8 * epsilon**2 / (alpha * 2**d)) ** (1 / 3)
    # The printed delta does not make both halves of the error equal; the right one does.
    grown = math.exp(epsilon) - 1
    for alpha in (1 / 3, 0.01):

        def rest(delta: float, alpha: float = alpha) -> float:
            return 2 * grown**2 / (alpha * delta**2 * 2**d)

        printed = (2 * alpha * grown**2 / 2**d) ** (1 / 3)
        right = (2 * grown**2 / (alpha * 2**d)) ** (1 / 3)
        assert rest(printed) > printed * 8.9
        assert rest(right) == pytest.approx(right)
        assert right > printed
