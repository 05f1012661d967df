"""Tails of weighted sums of draws: never too narrow, by their exact laws, and not much too wide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.publication.measure import Measurement, Running
from discreet.publication.tails import Draws, tail_bound

BETAS = ("0.3", "0.05", "0.01", "1e-4", "1e-7")
WEIGHTS = ([1], [3], [1, 1], [5, 1], [3, 2, 2], [1, 2, 4, 8], [1] * 12)


def pmf(gaussian: bool, width: float) -> np.ndarray:
    """The law of one draw, from its definition, as far as it is above 1e-18."""
    reach = math.ceil(10 * math.sqrt(width)) if gaussian else math.ceil(45 * width)
    places = np.arange(-reach, reach + 1)
    mass = np.exp(-(places**2) / (2 * width)) if gaussian else np.exp(-np.abs(places) / width)
    return mass / mass.sum()


def sum_law(one: np.ndarray, weights: list[int]) -> np.ndarray:
    """The law of the weighted sum, by convolution."""
    law = np.ones(1)
    for weight in weights:
        stretched = np.zeros(weight * (one.size - 1) + 1)
        stretched[::weight] = one
        law = np.convolve(law, stretched)
    return law


def beyond(law: np.ndarray, bound: float) -> float:
    """The probability to be further off."""
    places = np.arange(law.size) - law.size // 2
    return float(law[np.abs(places) > bound].sum())


def bound_of(gaussian: bool, width: float, weights: list[int], beta: str, *, near=True) -> float:
    each = width if gaussian else 2 * width**2
    draws = Draws(gaussian, len(weights), width) if near else None
    variance = each * sum(weight**2 for weight in weights)
    return tail_bound(variance, beta, gaussian=gaussian, draws=draws)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize(
    ("gaussian", "width"),
    [*((True, w) for w in (0.3, 1, 4, 30, 400)), *((False, w) for w in (0.4, 1, 3, 12))],
)
def test_no_sum_is_further_off_than_its_bound_more_often_than_stated(gaussian, width, weights):
    law = sum_law(pmf(gaussian, width), weights)
    for beta in BETAS:
        within = bound_of(gaussian, width, weights, beta)
        assert beyond(law, within) <= float(beta) * (1 + 1e-9)
        assert within <= bound_of(gaussian, width, weights, beta, near=False)


def test_a_bound_that_is_a_seventh_narrower_would_be_wrong():
    """What the test above would notice."""
    law = sum_law(pmf(False, 12), [1])
    assert beyond(law, 0.86 * bound_of(False, 12, [1], "0.05")) > 0.05
    law = sum_law(pmf(True, 400), [1, 2, 4, 8])
    assert beyond(law, 0.93 * bound_of(True, 400, [1, 2, 4, 8], "0.05")) > 0.05


@pytest.mark.parametrize(("gaussian", "width", "most"), [(True, 100, 1.1), (False, 9, 1.25)])
def test_bounds_of_many_draws_are_near_the_quantile(gaussian, width, most):
    """As docs/proofs/publication.md states them; Lemma 9's are 1.39 and 2.1 times the quantile."""
    weights = [1] * 40
    law = sum_law(pmf(gaussian, width), weights)
    within = bound_of(gaussian, width, weights, "0.05")
    assert beyond(law, within / most) > 0.05
    assert beyond(law, bound_of(gaussian, width, weights, "0.05", near=False) / 1.35) < 0.05


def test_draws_of_different_widths_are_bounded_by_the_narrowest():
    law = np.convolve(sum_law(pmf(False, 2), [3]), sum_law(pmf(False, 7), [1, 1]))
    variance = 2 * (9 * 4 + 2 * 49)
    for beta in BETAS:
        within = tail_bound(variance, beta, gaussian=False, draws=Draws(False, 3, 2.0))
        assert beyond(law, within) <= float(beta)
    noises = [Laplace(sensitivity=2, epsilon="1/3"), Laplace(sensitivity=7, epsilon="1/2")]
    queries = [Running(1, np.ones(1, dtype=np.int64), 1, 1, noise) for noise in noises]
    made = [Measurement(query, np.zeros((2, 3), dtype=np.int64)) for query in queries]
    assert Draws.of(made) == Draws(False, 12, 6.0)
    pair = Gaussian(sensitivity=3, rho="1/2"), Gaussian(sensitivity=1, rho="1/8")
    queries = [Running(1, np.ones(1, dtype=np.int64), 1, 1, noise) for noise in pair]
    made = [Measurement(query, np.zeros(5, dtype=np.int64)) for query in queries]
    assert Draws.of(made) == Draws(True, 10, 4.0)


def test_what_is_no_probability_is_refused():
    for odd in ("0", "1", "-1", "nan"):
        with pytest.raises(InvalidParameter):
            tail_bound(1.0, odd, gaussian=True, draws=Draws(True, 1, 9.0))
    assert math.isfinite(tail_bound(1.0, "1e-300", gaussian=True, draws=Draws(True, 10**6, 0.01)))
    assert math.isfinite(tail_bound(1.0, "1e-300", gaussian=False, draws=Draws(False, 1, 0.01)))
