"""The refinement of discrete Laplace noise: exact in rationals, and drawn as it is proved.

docs/proofs/known.md, Lemmas 5 to 10.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import discrete_laplace
from discreet.noise.refinement import refine_laplace

PAIRS = [
    (Fraction(3, 4), Fraction(1, 2)),
    (Fraction(9, 10), Fraction(1, 3)),
    (Fraction(99, 100), Fraction(98, 100)),
    (Fraction(1, 2), Fraction(1, 100)),
    (Fraction(2, 3), Fraction(3, 5)),
]


def law(p, k):
    return (1 - p) / (1 + p) * p ** abs(k)


def rest(p1, p2):
    """The probability that nothing is added to the finer noise."""
    return p2 / p1 * ((1 - p1) / (1 - p2)) ** 2


def conditional(p1, p2, n, k):
    """P(N2 = k | N1 = n) as Lemma 6 states it."""
    if n < 0:
        n, k = -n, -k
    q, u = p2 / p1, p1 * p2
    c = (1 - q) * (1 - u) / (1 - p2**2)
    if k < 0:
        return c * u**-k
    if k < n:
        return c * q**k
    if k == n:
        return q**n * (1 - 2 * u + p2**2) / (1 - p2**2)
    return c * q**n * u ** (k - n)


def drawn(p1, p2, n, k):
    """The law of the sampler: of four geometric draws, worked out by themselves."""
    if n < 0:
        n, k = -n, -k
    q, u = p2 / p1, p1 * p2
    if k < n:
        return (1 - u) * (1 - q) / (1 - u * q) * (q**k if k >= 0 else u**-k)
    reach = (1 - u) / (1 - u * q) * q**n
    go = (1 - q) / (1 - q * p1**2)
    return reach * (go * (1 - u) * u ** (k - n) + (1 - go if k == n else 0))


@pytest.mark.parametrize(("p1", "p2"), PAIRS)
def test_coarse_noise_is_fine_noise_and_something_independent(p1, p2):
    """Both sides are of degree one in the cosine, so two values would do."""
    w = rest(p1, p2)
    assert 0 <= w <= 1
    for c in (Fraction(1), Fraction(0), Fraction(-1), Fraction(1, 3)):
        one, two = 1 - 2 * p1 * c + p1**2, 1 - 2 * p2 * c + p2**2
        assert (1 - p1) ** 2 * two == (1 - p2) ** 2 * (w * one + (1 - w) * (1 - p1) ** 2)


@pytest.mark.parametrize(("p1", "p2"), PAIRS)
def test_the_conditional_law_is_that_of_bayes_and_of_the_sampler(p1, p2):
    w = rest(p1, p2)
    for n, k in itertools.product(range(-6, 7), range(-11, 12)):
        added = (w if n == k else 0) + (1 - w) * law(p1, n - k)
        bayes = law(p2, k) * added / law(p1, n)
        assert conditional(p1, p2, n, k) == bayes == drawn(p1, p2, n, k)


@pytest.mark.parametrize(("p1", "p2"), PAIRS)
def test_what_a_chain_loses_is_what_its_last_release_loses(p1, p2):
    """Lemma 7, outcome by outcome."""
    for z1, z2, moved in itertools.product(range(-4, 5), range(-4, 5), (1, 2, 3)):
        here = law(p1, z1) * conditional(p1, p2, z1, z2)
        there = law(p1, z1 - moved) * conditional(p1, p2, z1 - moved, z2 - moved)
        assert here / there == law(p2, z2) / law(p2, z2 - moved) <= p2**-moved


def test_two_children_lose_more_than_is_charged():
    """Lemma 9 at 0.1 and 0.2: up to 0.5 is lost, and 0.3 would be charged."""
    p1, p2 = math.exp(-0.1), math.exp(-0.2)

    def joint(z1, z2, z3, m):
        first = law(p1, z1 - m)
        return first * conditional(p1, p2, z1 - m, z2 - m) * conditional(p1, p2, z1 - m, z3 - m)

    worst = max(
        math.log(joint(z1, z2, z3, 0) / joint(z1, z2, z3, 1))
        for z1, z2, z3 in itertools.product(range(-3, 4), repeat=3)
    )
    assert worst == pytest.approx(0.5)
    assert worst > 0.3


def test_the_difference_of_rhos_would_be_too_little():
    """Lemma 8: given z1 = 0 or less the step loses more than rho2 - rho1 charges."""
    e1, e2 = 0.5, 1.0
    p1, p2 = math.exp(-e1), math.exp(-e2)

    def divergence(n: int) -> float:
        """KL of the step, given z1 = n, between truths 0 and 1."""
        found = 0.0
        for k in range(-80, 80):
            a = conditional(p1, p2, n, k)
            b = conditional(p1, p2, n - 1, k - 1)
            found += a * math.log(a / b)
        return found

    def rho(epsilon: float) -> float:  # of Laplace noise on the integers, sensitivity 1
        return epsilon - (1 - math.exp(-epsilon)) * epsilon / math.sinh(epsilon)

    losses = [divergence(n) for n in (-3, 4)]
    assert max(losses) > rho(e2) - rho(e1) > min(losses)
    assert max(losses) <= e2**2 / 2


ALPHA = 1e-9  # the chance that a right sampler fails one of these
N = 200_000


def distance(draws: np.ndarray, p: float) -> float:
    """The largest difference of the empirical distribution function to that of scale -1/ln p."""
    values = np.arange(-200, 201)
    below = np.where(values < 0, p**-values / (1 + p), 1 - p ** (values + 1) / (1 + p))
    found = np.searchsorted(np.sort(draws), values, side="right") / draws.size
    return float(np.abs(found - below).max())


def critical(n: int) -> float:
    return math.sqrt(math.log(2 / ALPHA) / (2 * n))  # Massart (1990)


@pytest.mark.parametrize(("wider", "narrower"), [("10", "5"), ("10", "9"), ("40", "3/2")])
def test_refined_noise_has_the_law_of_a_direct_draw(wider, narrower):
    coarse = discrete_laplace(wider, N)
    fine = refine_laplace(coarse, wider=wider, narrower=narrower)
    scale = float(Fraction(narrower))
    assert distance(fine, math.exp(-1 / scale)) < critical(N)
    assert distance(fine, math.exp(-1 / (1.1 * scale))) > critical(N)  # it has the power to refute
    # The rest is independent of it: nothing of the coarse noise is left in the fine one but itself.
    between = np.corrcoef(fine, coarse - fine)[0, 1]
    assert abs(between) < 0.02


def test_chains_have_the_law_of_their_last_scale():
    draws = discrete_laplace(30, N)
    for wider, narrower in ((30, 12), (12, 7), (7, 2)):
        draws = refine_laplace(draws, wider=wider, narrower=narrower)
    assert distance(draws, math.exp(-1 / 2)) < critical(N)


def test_a_mechanism_refines_what_it_released():
    coarse, fine = Laplace(sensitivity=2, epsilon="0.1"), Laplace(sensitivity=2, epsilon="0.4")
    truth = np.full((N // 10, 2), 2**70, dtype=object)  # beyond 64 bits
    first = coarse.release(truth, exact=True)
    second = fine.refine(truth, first, scale=coarse.scale)
    noise = (second - truth).astype(np.int64).ravel()
    assert distance(noise, math.exp(-1 / 5)) < critical(noise.size)
    assert second.shape == truth.shape


def test_noise_is_never_refined_to_more():
    with pytest.raises(InvalidParameter, match="smaller scale"):
        refine_laplace(discrete_laplace(5, 10), wider=5, narrower=5)
