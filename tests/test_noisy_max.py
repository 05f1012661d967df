"""Report noisy max and top-k, against sums over the noise written out."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import max_divergence
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import precision
from discreet.mechanisms import ExponentialMechanism, Grid, PermuteAndFlip, ReportNoisyMax, TopK
from discreet.mechanisms.selection.noisy_max import NOISES

ALPHA = 1e-9  # chance that a correct sampler fails one test
N = 5_000  # enough to tell the law from one of twice the rate

REACH = 60  # the scales below are at most 2: what lies further weighs less than 1e-13


def laplace(scale: float) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-REACH, REACH + 1)}


def masses(law) -> dict:
    with precision(100):
        return {outcome: float(law.mass(outcome)) for outcome in law.outcomes}


def winner_law(scores, scale) -> list[float]:
    """Three candidates at most, every triple of noises; the first listed wins a tie."""
    noise = laplace(scale)
    lower = {z: sum(noise[w] for w in noise if w < z) for z in range(-2 * REACH, 2 * REACH + 1)}
    chances = []
    for i, own in enumerate(scores):
        total = 0.0
        for z, mass in noise.items():
            product = mass
            for j, other in enumerate(scores):
                if j != i:
                    strictly = own + z - other + (0 if j < i else 1)
                    product *= lower[max(min(strictly, 2 * REACH), -2 * REACH)]
            total += product
        chances.append(total)
    return chances


def sampled_well(frequencies: dict, law: dict, draws: int) -> bool:
    """Hoeffding for every outcome: P(|f - p| > t) <= 2 exp(-2 n t**2), added up."""
    t = math.sqrt(math.log(2 * len(law) / ALPHA) / (2 * draws))
    return all(abs(frequencies.get(key, 0) / draws - mass) <= t for key, mass in law.items())


def counted(draw, draws: int) -> dict:
    seen: dict = {}
    for _ in range(draws):
        outcome = draw()
        outcome = tuple(outcome) if isinstance(outcome, list) else outcome
        seen[outcome] = seen.get(outcome, 0) + 1
    return seen


# --- the laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [[3, 3], [0, 0, 0], [2, -1, 4], [5, 6, 5]])
def test_the_laplace_law_is_the_definition_ties_included(scores):
    mechanism = ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace")
    assert mechanism.scale == 2
    assert list(masses(mechanism.law(scores)).values()) == pytest.approx(
        winner_law(scores, 2.0), rel=1e-11
    )


def test_the_first_listed_wins_a_tie():
    assert masses(ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace").law([0, 0]))[0] > 0.55


def test_scales_of_the_three_kinds_of_scores():
    """Lap(2 Delta / epsilon) in general; Lap(Delta / epsilon) for counts under add/remove."""
    assert ReportNoisyMax(sensitivity=3, epsilon="1/2", noise="laplace").scale == 12
    assert ReportNoisyMax(sensitivity=3, epsilon="1/2", monotonic=True, noise="laplace").scale == 6
    assert ReportNoisyMax(sensitivity=3, epsilon="1/2", disjoint=True).scale == 6
    assert ReportNoisyMax(
        sensitivity="0.7", epsilon=2, grid=Grid("1/4"), noise="laplace"
    ).scale == Fraction(3, 4)


@pytest.mark.parametrize(
    ("noise", "twin", "loss"),
    [
        ("gumbel", ExponentialMechanism, Loss.exponential),
        ("exponential", PermuteAndFlip, Loss.pure),
    ],
)
def test_gumbel_and_one_sided_noise_are_the_mechanisms_they_equal(noise, twin, loss):
    """DR Remark 3.1; Ding et al. (2021)."""
    mechanism = ReportNoisyMax(sensitivity=3, epsilon=1, noise=noise)
    other = twin(sensitivity=3, epsilon=1)
    assert masses(mechanism.law([4, 1, 0])) == masses(other.law([4, 1, 0]))
    assert mechanism.margin("0.1", candidates=9) == other.margin("0.1", candidates=9)
    assert mechanism.loss == loss(1)


def test_one_sided_exponential_noise_is_permute_and_flip():
    """The continuous noisy max, integrated, has the law that is drawn here."""
    gap, rate = 3.0, 0.5
    # P(the worse of two wins): its noise exceeds the other's by the gap; exponentials: e**-rg / 2.
    flip = masses(ReportNoisyMax(sensitivity=1, epsilon=1, noise="exponential").law([0, int(gap)]))
    assert flip[0] == pytest.approx(math.exp(-rate * gap) / 2, rel=1e-12)


def test_draws_follow_the_law_and_not_another():
    scores = [2, -1, 4, 3]
    mechanism = ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace")
    seen = counted(lambda: mechanism.release(scores), N)
    assert sampled_well(seen, masses(mechanism.law(scores)), N)
    wrong = ReportNoisyMax(sensitivity=2, epsilon=5, noise="laplace")
    assert not sampled_well(seen, masses(wrong.law(scores)), N)


# --- the lead and the count --------------------------------------------------------------------


def lead_law(scores, scale, *, own_step=1) -> dict:
    """P(winner i, lead g): i at v, and the highest other, plus its step if listed before, at v - g.

    With ``own_step=0`` the lead is the plain difference of noisy scores.
    """
    noise = laplace(scale)
    below: dict[int, float] = {}
    total = 0.0
    for z in range(-2 * REACH, 2 * REACH + 1):
        below[z] = total
        total += noise.get(z, 0.0)

    def all_below(i, v, step):
        """P(every other j has its noisy score, plus step if j < i, below v)."""
        product = 1.0
        for j, other in enumerate(scores):
            if j != i:
                bound = v - other - (step if j < i else 0)
                product *= below[max(min(bound, 2 * REACH), -2 * REACH)]
        return product

    law: dict = {}
    for i, own in enumerate(scores):
        for z, mass in noise.items():
            v = own + z
            for g in range(25):
                if own_step:
                    chance = all_below(i, v - g + 1, 1) - all_below(i, v - g, 1)
                elif g == 0:  # tied with a later one, ahead of all earlier ones
                    chance = all_below(i, v + 1, 1) - all_below(i, v, 0)
                else:
                    chance = all_below(i, v - g + 1, 0) - all_below(i, v - g, 0)
                law[i, g] = law.get((i, g), 0.0) + mass * chance
    return law


def worst_ratio(first: dict, second: dict) -> float:
    return max(
        abs(math.log(first[key] / second[key]))
        for key in first
        if min(first[key], second[key]) > 1e-9
    )


def neighbours(width: int, *, monotonic: bool) -> list:
    moves = itertools.product([0, 1] if monotonic else [-1, 0, 1], repeat=width)
    return [list(move) for move in moves]


@pytest.mark.parametrize(("monotonic", "scale"), [(False, 2.0), (True, 1.0)])
def test_the_lead_is_free(monotonic, scale):
    epsilon = 1.0
    for scores in ([0, 0, 0], [2, 0, 1]):
        law = lead_law(scores, scale)
        assert sum(law.values()) == pytest.approx(1, abs=1e-4)
        for move in neighbours(3, monotonic=monotonic)[:: 1 if monotonic else 4]:
            other = lead_law([a + b for a, b in zip(scores, move, strict=True)], scale)
            assert worst_ratio(law, other) <= epsilon + 1e-9


def test_the_lead_that_is_released_has_that_law():
    scores = [2, 0, 1]
    mechanism = ReportNoisyMax(sensitivity=1, epsilon=1, noise="laplace")
    seen = counted(lambda: tuple(mechanism.release_with_lead(scores)), N)
    law = lead_law(scores, 2.0)
    assert sampled_well(seen, law, N)
    assert not sampled_well(seen, lead_law(scores, 2.0, own_step=0), N)


def count_ratio(candidates: int, scale: float, *, disjoint: bool) -> float:
    """The worst |ln P(i, v) / P'(i, v)| when counts of 0 become 1: all of them, or one."""
    noise = laplace(scale)
    below = {z: sum(noise[w] for w in noise if w < z) for z in range(-30, 31)}
    worst = 0.0
    for v in range(-20, 20):  # the first candidate wins at v: the others may tie
        before = noise[v] * below[v + 1] ** (candidates - 1)
        if disjoint:
            moved = [noise[v - 1] * below[v + 1] ** (candidates - 1)]
            moved.append(noise[v] * below[v + 1] ** (candidates - 2) * below[v])
        else:
            moved = [noise[v - 1] * below[v] ** (candidates - 1)]
        worst = max(worst, *(abs(math.log(before / after)) for after in moved))
    return worst


def test_the_count_of_the_winner_is_free_for_disjoint_counts_only():
    """DR 3.3 says in passing that it is free; for overlapping counts it costs more and more."""
    assert count_ratio(10, 1.0, disjoint=True) <= 1 + 1e-9
    assert count_ratio(10, 1.0, disjoint=False) > 8
    with pytest.raises(InvalidParameter, match="disjoint"):
        ReportNoisyMax(
            sensitivity=1, epsilon=1, monotonic=True, noise="laplace"
        ).release_with_count([3, 4])
    name, score = ReportNoisyMax(sensitivity=1, epsilon=2, disjoint=True).release_with_count(
        {"Ann": 900, "Bob": 20}
    )
    assert name == "Ann"
    assert abs(score - 900) < 60


def test_the_lead_on_a_grid_is_a_multiple_of_it():
    mechanism = ReportNoisyMax(sensitivity="1/2", epsilon=2, grid=Grid("1/4"), noise="laplace")
    winner, lead = mechanism.release_with_lead([100.0, 3.25])
    assert winner == 0
    assert lead % Fraction(1, 4) == 0
    assert 60 < lead < 140


# --- accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [2, 5])
def test_the_margin_is_the_least_that_holds(candidates):
    """The others one step beyond the margin and listed first, where they win ties."""
    mechanism = ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace")
    beta = Fraction(1, 20)
    margin = mechanism.margin(beta, candidates=candidates)

    def wrong(distance):
        law = mechanism.law([-distance] * (candidates - 1) + [0])
        return 1 - masses(law)[candidates - 1]

    assert wrong(margin + 1) <= beta < wrong(margin)


# --- top-k -------------------------------------------------------------------------------------


def test_one_shot_laplace_for_one_is_noisy_max():
    scores = [2, -1, 4]
    one = masses(TopK(k=1, sensitivity=2, epsilon=2, method="laplace").law(scores))
    assert list(one.values()) == pytest.approx(
        list(
            masses(ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace").law(scores)).values()
        ),
        rel=1e-14,
    )


def test_one_shot_laplace_by_enumeration():
    """Two of three, every triple of noises: the first listed is higher in a tie."""
    scores, scale = [1, 0, 1], 4 / 5
    noise = {z: mass for z, mass in laplace(scale).items() if abs(z) <= 16}
    expected: dict = {}
    for zs in itertools.product(noise, repeat=3):
        ranked = sorted(range(3), key=lambda i: (-(scores[i] + zs[i]), i))
        key = tuple(ranked[:2])
        expected[key] = expected.get(key, 0.0) + math.prod(noise[z] for z in zs)
    law = TopK(k=2, sensitivity=1, epsilon=5, method="laplace").law(scores)
    assert masses(law) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "kind"), [("gumbel", ExponentialMechanism), ("peeling", PermuteAndFlip)]
)
def test_peeling_is_one_choice_after_the_other(method, kind):
    scores = [3, 0, 2, 5]
    one = kind(sensitivity=2, epsilon=1)
    law = masses(TopK(k=2, sensitivity=2, epsilon=2, method=method).law(scores))
    first = masses(one.law(scores))
    for (a, b), mass in law.items():
        rest = [i for i in range(4) if i != a]
        second = masses(one.law([scores[i] for i in rest]))
        assert mass == pytest.approx(first[a] * second[rest.index(b)], rel=1e-12)


@pytest.mark.parametrize("method", ["peeling", "gumbel", "laplace"])
def test_top_k_draws_follow_the_law(method):
    scores = np.array([3, 0, 2])
    mechanism = TopK(k=2, sensitivity=2, epsilon=4, method=method)
    seen = counted(lambda: mechanism.release(scores), N)
    assert sampled_well(seen, masses(mechanism.law(scores)), N)
    wrong = TopK(k=2, sensitivity=2, epsilon=8, method=method)
    assert not sampled_well(seen, masses(wrong.law(scores)), N)


def test_what_top_k_costs():
    gumbel = TopK(k=4, sensitivity=3, epsilon=2, method="gumbel")
    assert (gumbel.loss.epsilon, gumbel.loss.rho) == (2, 4 * Fraction(1, 4) / 8)
    peeled = TopK(k=4, sensitivity=3, epsilon=2)
    assert peeled.loss == 4 * Loss.pure("1/2")
    by_rho = TopK(k=4, sensitivity=3, rho="1/8", method="gumbel")
    assert Fraction(1, 8) * (1 - Fraction(1, 2**50)) < by_rho.loss.rho <= Fraction(1, 8)


@pytest.mark.parametrize("method", ["peeling", "gumbel", "laplace"])
def test_the_best_far_ahead_are_ranked(method):
    mechanism = TopK(k=3, sensitivity=1, epsilon=9, method=method)
    assert mechanism.release([10, 900, 400, 700]) == [1, 3, 2]
    assert sorted(mechanism.release([4, 4, 4])) == [0, 1, 2]


@pytest.mark.parametrize("method", ["peeling", "gumbel", "laplace"])
def test_the_top_k_margin_holds_by_the_law(method):
    mechanism = TopK(k=2, sensitivity=1, epsilon=6, method=method)
    beta = Fraction(1, 10)
    margin = math.ceil(mechanism.margin(beta, candidates=4))
    worse = margin + 1
    scores = [0, -worse, -worse, -worse]
    right = sum(mass for order, mass in masses(mechanism.law(scores)).items() if order[0] == 0)
    assert right >= 1 - beta


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: ReportNoisyMax(sensitivity=0, epsilon=1, noise="laplace"), "P2"),
        (lambda: ReportNoisyMax(sensitivity=-2, epsilon=1, noise="laplace"), "P2"),
        (lambda: ReportNoisyMax(sensitivity=2, epsilon=0, noise="laplace"), "P2"),
        (lambda: ReportNoisyMax(sensitivity=2, epsilon=1, noise="gauss"), "P4"),
        (lambda: ReportNoisyMax(sensitivity=2, epsilon="1e-30", noise="laplace"), "P2"),
        (lambda: TopK(k=0, sensitivity=2, epsilon=1), "P2"),
        (lambda: TopK(k=2, sensitivity=2), "P4"),
        (lambda: TopK(k=2, sensitivity=2, rho=1), "P4"),
        (lambda: TopK(k=2, sensitivity=2, epsilon=1, method="best"), "P4"),
        (lambda: TopK(k=2, sensitivity=2, epsilon=1).release([5]), "P5"),
        (lambda: TopK(k=2, sensitivity=2, epsilon=1).margin("0.1", candidates=1), "P5"),
        (lambda: TopK(k=9, sensitivity=2, epsilon=1).law(range(30)), "P4"),
        (lambda: ReportNoisyMax(sensitivity=2, epsilon=1, noise="laplace").release([]), "P5"),
        (lambda: ReportNoisyMax(sensitivity=2, epsilon=1, noise="laplace").release([1.5]), "P6"),
        (
            lambda: ReportNoisyMax(sensitivity=2, epsilon=1, noise="laplace").release_with_lead(
                [3]
            ),
            "P5",
        ),
        (
            lambda: ReportNoisyMax(sensitivity=2, epsilon=1, noise="gumbel").release_with_lead(
                [3, 4]
            ),
            "P4",
        ),
    ],
)
def test_refusals(build, code):
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.code == code


def test_nan_scores_are_refused():
    mechanism = ReportNoisyMax(sensitivity=2, epsilon=1, grid=Grid("1/2"), noise="laplace")
    with pytest.raises(InvalidParameter) as refusal:
        mechanism.release([3.0, float("nan")])
    assert refusal.value.code == "P6"


def test_scores_at_the_end_of_the_range_do_not_wrap():
    mechanism = ReportNoisyMax(sensitivity=2, epsilon=1, noise="laplace")
    assert mechanism.release(np.array([2**62, -(2**62)])) == 0
    assert mechanism.release_with_lead([2**62, -(2**62)]).lead > 2**62


def test_the_audit_sees_too_little_noise():
    """A law of twice the rate breaks the promise: the audit of the contract suite is not blind."""
    claimed = ReportNoisyMax(sensitivity=2, epsilon=2, noise="laplace")
    drawn = ReportNoisyMax(sensitivity=2, epsilon=2, monotonic=True, noise="laplace")
    pair = drawn.law([-38, -2]), drawn.law([-40, 0])
    assert max_divergence(*pair)[0] > claimed.loss.epsilon * Fraction(3, 2)


def test_the_noise_of_least_error_is_the_default():
    default = ReportNoisyMax(sensitivity=2, epsilon=1)
    assert default.noise == "exponential"
    kinds = [ReportNoisyMax(sensitivity=2, epsilon=1, noise=noise) for noise in NOISES]
    for candidates in (2, 40, 1000):
        margins = [kind.margin("0.05", candidates=candidates) for kind in kinds]
        assert default.margin("0.05", candidates=candidates) == min(margins)
    assert ReportNoisyMax(sensitivity=2, epsilon=1, disjoint=True).noise == "laplace"
