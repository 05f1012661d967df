"""Staircase noise: its law by enumeration, its draws, its price, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import audit, noise
from discreet.accounting.divergence import max_divergence
from discreet.accounting.law import DiscreteLaplaceLaw, StaircaseLaw
from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose
from discreet.mechanisms import Grid, Laplace, Staircase
from discreet.mechanisms.staircase import best_width, mean_distance
from discreet.noise.entropy import use_source
from discreet.noise.staircase import _propose


def heights(step: int, width: int, epsilon: float, reach: int) -> dict[int, float]:
    """The law by its words: ``width`` distances at the top, then ``step`` at each level."""
    levels = [0] * width + [1 + k for k in range(reach // step + 1) for _ in range(step)]
    weights = {z: math.exp(-epsilon * levels[abs(z)]) for z in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


SHAPES = [(1, 1, "3/2"), (2, 1, "1/2"), (5, 2, "1"), (5, 5, "2"), (12, 1, "3"), (12, 7, "1/4")]


@pytest.mark.parametrize(("step", "width", "epsilon"), SHAPES)
def test_the_law_is_the_one_in_words(step, width, epsilon):
    law = StaircaseLaw(0, step, width, Fraction(epsilon))
    reach = 60 * step * max(1, math.ceil(1 / Fraction(epsilon)))
    by_hand = heights(step, width, float(Fraction(epsilon)), reach)
    for z in range(-3 * step - 1, 3 * step + 2):
        assert float(law.mass(z)) == pytest.approx(by_hand[z], rel=1e-9)
        above = math.fsum(mass for y, mass in by_hand.items() if y >= z)
        assert float(law.tail(z)) == pytest.approx(above, rel=1e-9)
        assert float(law.below(z)) == pytest.approx(1 - above, abs=1e-12)
    made = Staircase(sensitivity=step, epsilon=epsilon, width=width)
    assert made.mean_error == pytest.approx(sum(abs(z) * p for z, p in by_hand.items()), rel=1e-9)
    assert made.variance == pytest.approx(sum(z * z * p for z, p in by_hand.items()), rel=1e-9)
    low, high = law.window(40)
    assert float(law.below(low) + law.tail(high + 1)) < 2**-40


def test_of_sensitivity_one_it_is_the_geometric_law():
    law = StaircaseLaw(4, 1, 1, Fraction(3, 5))
    other = DiscreteLaplaceLaw(4, Fraction(5, 3))
    for z in range(-9, 15):
        assert float(law.mass(z)) == pytest.approx(float(other.mass(z)), rel=1e-12)


@pytest.mark.parametrize("sensitivity", [2, 5, 9, 24])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "5"])
def test_the_width_is_the_best_of_all(sensitivity, epsilon):
    price = Fraction(epsilon)
    errors = {w: mean_distance(sensitivity, price, w) for w in range(1, sensitivity + 1)}
    assert errors[best_width(sensitivity, price)] == pytest.approx(min(errors.values()), rel=1e-12)


def test_error_against_laplace():
    """0.41 of Laplace's error at epsilon = 5, on a number that one person moves by up to 120."""
    price = Fraction(5)
    ages = Staircase(sensitivity=120, epsilon=price)
    q = math.exp(-5 / 120)
    assert ages.mean_error / (2 * q / (1 - q * q)) == pytest.approx(0.413, abs=0.002)
    for epsilon in ("1/2", "1", "2", "5", "8"):
        stairs = Staircase(sensitivity=120, epsilon=epsilon)
        assert stairs.variance < Laplace(sensitivity=120, epsilon=epsilon).variance


def test_loss_is_reached_and_not_passed():
    made = Staircase(sensitivity=7, epsilon="5/2")
    for move in range(1, 8):
        low, high = max_divergence(made.law(0), made.law(move))
        assert high <= made.epsilon
        assert move < 7 or low == made.epsilon
    assert max_divergence(made.law(0), made.law(8))[0] > made.epsilon
    assert made.loss.rho >= Fraction(5, 2) * Fraction(math.tanh(1.25)) - Fraction(1, 10**9)


def test_entries_that_move_together_cost_more_and_the_replay_says_so():
    made = Staircase(sensitivity=4, epsilon=1)
    one, other = made.law([10, 10]), made.law([12, 12])
    assert max_divergence(one, other)[0] == 2  # within 4 in l1, at twice the price
    found = audit.replay(made.release, [10, 10], [12, 12], adjacent=True)
    assert found.alarm
    assert not audit.replay(made.release, [10, 10], [14, 10], adjacent=True).alarm


@pytest.mark.parametrize(("step", "width", "epsilon"), SHAPES)
def test_draws_have_the_law(step, width, epsilon):
    made = Staircase(sensitivity=step, epsilon=epsilon, width=width)
    for sampler in (
        lambda size: made.release(np.full(size, 3)),
        lambda size: np.array([made.release(3) for _ in range(size)]),
    ):
        found = audit.fit(sampler, made.law(3), samples=4000, alpha=Fraction(1, 10**6))
        assert not found.alarm, str(found)


def test_wrong_widths_are_told_from_the_right_one():
    made = Staircase(sensitivity=7, epsilon="5/2", width=2)
    for width in (1, 3):
        wrong = Staircase(sensitivity=7, epsilon="5/2", width=width)
        draws = wrong.release(np.zeros(20_000, dtype=np.int64))
        assert audit.fit(draws, made.law(0), alpha=Fraction(1, 10**6)).alarm


def test_long_arrays_are_full_and_saturate():
    assert noise.staircase(5, 2, 1, 1000).shape == (1000,)
    assert noise.staircase(5, 2, 1, 0).shape == (0,)
    wide = noise.staircase(2**55, "1/2", 2**54, 2000)
    assert int(np.abs(wide).max()) > 2**55
    huge = _propose(2**56, Fraction(1, 2**20), 2**55, 2000)  # steps beyond 64 bits
    assert set(np.unique(np.abs(huge))) <= {2**63 - 1, *np.abs(huge).tolist()}
    assert (np.abs(huge) == 2**63 - 1).mean() > 0.9


def test_a_negative_zero_is_drawn_again():
    made: list[int] = []

    def zeros_then_ones(count: int) -> bytes:
        made.append(count)
        return b"\0" * count if len(made) > 4 else b"\xff" * count if count == 1 else b"\0" * count

    with use_source(zeros_then_ones):
        assert noise.staircase(1, 1, 1) == 0
    assert len(made) > 4  # one proposal does not take so many


@pytest.mark.parametrize("beta", ["1/2", "0.05", "0.001"])
@pytest.mark.parametrize("coordinates", [1, 30])
def test_margin_is_the_least(beta, coordinates):
    made = Staircase(sensitivity=12, epsilon=3)
    margin = made.margin(beta, coordinates=coordinates)
    law = made.noise_law
    for at, holds in ((margin, True), (margin - 1, False)):
        miss = enclose(lambda at=at: 1 - (1 - 2 * law.tail(at + 1)) ** coordinates)
        assert (miss[1] <= Fraction(beta)) is holds


def test_on_a_grid():
    made = Staircase(sensitivity="2.5", epsilon=3, grid=Grid("1/8"))
    assert made.steps == 20
    assert (made.release(1.3) * 8) % 1 == 0
    assert made.margin("0.05") == Fraction(made.noise_law.step, 8) or made.margin("0.05") > 0
    assert made.variance == pytest.approx(
        Staircase(sensitivity=20, epsilon=3).variance / 64, rel=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"sensitivity": 0, "epsilon": 1}, "P2"),
        ({"sensitivity": 3, "epsilon": 0}, "P2"),
        ({"sensitivity": "5/2", "epsilon": 1}, "P4"),
        ({"sensitivity": 3, "epsilon": 1, "width": 4}, "P2"),
        ({"sensitivity": 3, "epsilon": 1, "width": 0}, "P2"),
        ({"sensitivity": 2**57, "epsilon": 4}, "P2"),
        ({"sensitivity": 3, "epsilon": "1e-18"}, "P2"),
    ],
)
def test_refusals(arguments, code):
    with pytest.raises(InvalidParameter) as caught:
        Staircase(**arguments)
    assert caught.value.code == code


@pytest.mark.parametrize("arguments", [(3, 1, 4), (2**57, 4, 1), (3, "1e-18", 1), (3, 1, 0)])
def test_refused_draws(arguments):
    with pytest.raises(InvalidParameter):
        noise.staircase(*arguments)
