"""The law of the draws: the stated one is accepted, one that is 3 % off is refuted.

The masses of each law are enumerated in ball arithmetic, so the only chance is in
the draws.  A test fails a correct sampler with chance ALPHA.  N draws are enough to
refute a scale that is 3 % off, again but with chance ALPHA: for that the distance
between the two laws must be more than twice the tolerance, which ``check`` checks.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb
from statistical.fit import enumerated, fits, tolerance

from discreet import noise
from discreet.exact.balls import ball
from discreet.noise.gaussian import half_sum

N = 8_000_000
OFF = Fraction(3, 100)

Mass = Callable[[int], arb]


def laplace(scale: Fraction) -> Mass:
    def mass(z: int) -> arb:  # (1 - q) / (1 + q) is tanh(1 / 2 scale), for q = exp(-1 / scale)
        return ball(1 / (2 * scale)).tanh() * ball(-abs(z) / scale).exp()

    return mass


def geometric(scale: Fraction) -> Mass:
    return lambda z: -ball(-1 / scale).expm1() * ball(-z / scale).exp()


def gaussian(sigma: Fraction) -> Mass:
    total: list[arb] = []

    def mass(z: int) -> arb:
        if not total:
            total.append(1 + 2 * half_sum(sigma**2))
        return ball(-(z**2) / (2 * sigma**2)).exp() / total[0]

    return mass


def staircase(step: int, width: int) -> Callable[[Fraction], Mass]:
    """By its definition: levels counted off one by one, and all of them added up."""

    def law(epsilon: Fraction) -> Mass:
        levels = [0] * width + [1 + k for k in range(199) for _ in range(step)]
        heights: list[arb] = []
        total: list[arb] = []

        def mass(z: int) -> arb:
            if not total:  # at the precision in force when it is first asked for
                heights.extend(ball(-epsilon * level).exp() for level in range(200))
                total.append(2 * sum((heights[level] for level in levels), arb(0)) - 1)
            return heights[levels[abs(z)]] / total[0]

        return mass

    return law


def check(samples: np.ndarray, law, scale: Fraction, low: int, high: int) -> None:
    right = enumerated(law(scale), low, high)
    assert fits(samples, right, low)
    for wrong_scale in (scale * (1 - OFF), scale * (1 + OFF)):
        wrong = enumerated(law(wrong_scale), low, high)
        apart = np.abs(wrong - right).max()
        assert apart > 2 * tolerance(len(samples)), "too few draws to refute this"
        assert not fits(samples, wrong, low)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(20)])
def test_discrete_laplace(scale):
    reach = int(40 * scale) + 40
    check(noise.discrete_laplace(scale, N), laplace, scale, -reach, reach)


@pytest.mark.parametrize(
    ("step", "width", "epsilon"),
    [(1, 1, Fraction(1)), (7, 2, Fraction(5, 2)), (12, 12, Fraction(1, 2)), (30, 1, Fraction(3))],
)
def test_staircase(step, width, epsilon):
    reach = 60 * step
    check(noise.staircase(step, epsilon, width, N), staircase(step, width), epsilon, -reach, reach)


def test_staircase_of_another_width_is_refuted():
    samples = noise.staircase(7, Fraction(5, 2), 2, N)
    for width in (1, 3):
        wrong = enumerated(staircase(7, width)(Fraction(5, 2)), -400, 400)
        assert not fits(samples, wrong, -400)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5, 2)])
def test_geometric(scale):
    check(noise.geometric(scale, N), geometric, scale, 0, int(40 * scale) + 40)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(20)])
def test_discrete_gaussian(sigma):
    reach = int(10 * sigma) + 10
    check(noise.discrete_gaussian(sigma**2, N), gaussian, sigma, -reach, reach)


def test_laplace_with_digits():
    """Scale 1000 is a leading part and five low bits; the masses of all values are enumerated."""
    reach = 30_000
    check(noise.discrete_laplace(1000, N // 2), laplace, Fraction(1000), -reach, reach)


def test_gaussian_by_proposal():
    """Sigma 1100 is proposed in blocks and accepted or not."""
    reach = 11_000
    check(noise.discrete_gaussian(1100**2, N // 2), gaussian, Fraction(1100), -reach, reach)


@pytest.mark.parametrize("scale", [10**6, 2**40])
def test_laplace_of_large_scale(scale):
    """floor(z / unit) has masses in closed form; the low bits must be nearly uniform."""
    unit = 2 ** (scale.bit_length() - 7)

    def blocks(of: Fraction) -> Mass:
        q, whole = -1 / of, -unit / of

        def mass(y: int) -> arb:
            first = -ball(whole).expm1() / (1 + ball(q).exp())
            if y >= 0:
                return first * ball(y * whole).exp()
            return first * ball((-1 - y) * whole + q).exp()

        return mass

    samples = noise.discrete_laplace(scale, N // 2)
    check(samples // unit, blocks, Fraction(scale), -4500, 4500)
    assert fits(samples & 15, np.arange(1, 17) / 16, 0)


@pytest.mark.parametrize("sigma", [10**6, 2**40])
def test_gaussian_of_large_sigma(sigma):
    """Masses of floor(z / unit), to 10**-12 of the total, from the error function."""
    unit = 2 ** (sigma.bit_length() - 7)

    def blocks(of: Fraction) -> Mass:
        def upto(z: int) -> arb:  # Euler and Maclaurin: sum and integral differ by 1 / sigma**2
            return ((ball(z) - ball(Fraction(1, 2))) / (ball(of) * arb(2).sqrt())).erf() / 2

        return lambda y: upto((y + 1) * unit) - upto(y * unit)

    samples = noise.discrete_gaussian(sigma**2, N // 2)
    check(samples // unit, blocks, Fraction(sigma), -1000, 1000)
    assert fits(samples & 15, np.arange(1, 17) / 16, 0)


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(97, 100), Fraction(1, 1000)])
def test_coins(p):
    samples = noise.bernoulli(p, N)
    assert fits(samples, np.array([float(1 - p), 1.0]), 0)
    off = 4 * tolerance(N)
    assert not fits(samples, np.array([float(1 - p) + off, 1.0]), 0)


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(3)])
def test_exponential_coins(x):
    """One x for all, and one for each element: both fit exp(-x) and neither fits exp(-1.03 x)."""
    wide = np.full(10**6, int(x)) if x.denominator == 1 else [x] * 200_000
    for samples in (noise.bernoulli_exp(x, N), noise.bernoulli_exp(wide)):
        right = 1 - float(np.exp(-float(x)))
        assert fits(samples, np.array([right, 1.0]), 0)
        assert not fits(samples, np.array([right + 3 * tolerance(len(samples)), 1.0]), 0)


@pytest.mark.parametrize("n", [6, 1000])
def test_uniform(n):
    samples = noise.uniform_below(n, N)
    assert fits(samples, np.arange(1, n + 1) / n, 0)
    tilted = np.arange(1, n + 1) / n
    assert not fits(samples, tilted**1.03, 0)


CHOICES = 20_000


def test_exponential_choice():
    scores, rate = [3, 0, 7, 5], Fraction(1, 4)
    weights = np.exp(float(rate) * np.array(scores))
    samples = np.array([noise.exponential_choice(scores, rate) for _ in range(CHOICES)])
    assert fits(samples, np.cumsum(weights / weights.sum()), 0)
    wrong = np.exp(2 * float(rate) * np.array(scores))
    assert not fits(samples, np.cumsum(wrong / wrong.sum()), 0)


def test_permute_and_flip():
    scores, rate = [3, 0, 7, 5], Fraction(1, 4)
    heads = np.exp(float(rate) * (np.array(scores) - 7))
    law = np.zeros(4)
    for order in permutations(range(4)):
        reached = 1 / 24
        for candidate in order:
            law[candidate] += reached * heads[candidate]
            reached *= 1 - heads[candidate]
    samples = np.array([noise.permute_and_flip(scores, rate) for _ in range(CHOICES)])
    assert fits(samples, np.cumsum(law), 0)
    exponential = heads / heads.sum()
    assert not fits(samples, np.cumsum(exponential), 0)


def test_permutations_and_samples():
    """Every order of four, and every ordered pair out of nine, equally often."""
    orders = {order: i for i, order in enumerate(permutations(range(4)))}
    samples = [orders[tuple(noise.random_permutation(4).tolist())] for _ in range(CHOICES)]
    assert fits(np.array(samples), np.arange(1, 25) / 24, 0)
    pairs = {pair: i for i, pair in enumerate(permutations(range(9), 2))}
    samples = [
        pairs[tuple(noise.sample_without_replacement(9, 2).tolist())] for _ in range(CHOICES)
    ]
    assert fits(np.array(samples), np.arange(1, 73) / 72, 0)
    assert not fits(np.array(samples), np.cumsum(np.arange(72, 0, -1) / (36 * 73)), 0)
