"""How far off a released number is, from public noise parameters alone.

A single entry's margin is certified from the exact law of its noise.  A
combination of entries (a SUM, a COUNT read off moments) has the law of a
weighted sum of independent noises; its tail is computed by inverting the
characteristic function, to about six digits.  Ratios are simulated.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.exact import enclose
from discreet.mechanisms import Quantiles
from discreet.price.keys import noise_law
from discreet.price.noises import LaplaceNoise, Noise, SelectionNoise
from discreet.price.recipes import Linear, Quantile

_FREQUENCIES = 1 << 13
_LEAST_BETA = Fraction(1, 10**5)


def linear_margin(recipe: Linear, noise: Noise, beta: Fraction) -> float:
    """The least m with P(|noise of the number| > m) <= beta, before rounding to its grid."""
    weights = [abs(float(c)) for c in recipe.coefficients if c]
    if len(weights) == 1:
        return weights[0] * entry_margin(noise, beta)
    if isinstance(noise, LaplaceNoise) and beta < _LEAST_BETA:
        # Beyond the inversion's digits: a union bound, never too small.
        return sum(weights) * entry_margin(noise, beta / len(weights))
    if isinstance(noise, LaplaceNoise):
        scaled = tuple(sorted(w * float(noise.scale) for w in weights))
        return _laplace_sum_margin(scaled, float(beta))
    deviation = math.sqrt(noise.variance * sum(w * w for w in weights))
    return deviation * _normal_quantile(float(beta))


@lru_cache(maxsize=4096)
def entry_margin(noise: Noise, beta: Fraction) -> int:
    """The least integer m with P(|Z| > m) <= beta for one entry's noise Z, certified."""
    law = noise_law(noise)

    def misses(m: int) -> bool:
        return enclose(lambda: 2 * law.tail(m + 1), bits=32)[1] > beta

    high = 1
    while misses(high):
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        if misses(middle):
            low = middle + 1
        else:
            high = middle
    return low


def _normal_quantile(beta: float) -> float:
    """t with P(|N(0, 1)| > t) = beta."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        if math.erfc(middle / math.sqrt(2)) > beta:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=4096)
def _laplace_sum_margin(scales: tuple[float, ...], beta: float) -> float:
    """t with P(|sum of Laplace noises of these scales| > t) = beta.

    The characteristic function of the sum is the product of 1 / (1 + (b s)**2);
    P(|S| > t) = 1 - (2/pi) * integral of phi(s) sin(s t) / s over s > 0.
    """
    top = scales[-1]
    relative = np.array(scales) / top
    # Substituting s = tan(theta) maps the half line to [0, pi/2): phi decays like cos**2.
    theta = (np.arange(_FREQUENCIES) + 0.5) * (math.pi / 2 / _FREQUENCIES)
    s = np.tan(theta)
    phi = np.prod(1.0 / (1.0 + np.square(np.outer(relative, s))), axis=0)
    weights = phi / s * (1.0 + s * s) * (math.pi / 2 / _FREQUENCIES) * (2 / math.pi)

    def tail(t: float) -> float:
        return 1.0 - float(weights @ np.sin(s * t))

    low, high = 0.0, 1.0
    while tail(high) > beta and high < 1e3:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        if tail(middle) > beta:
            low = middle
        else:
            high = middle
    return high * top


def rank_margin(recipe: Quantile, noise: SelectionNoise, beta: Fraction) -> float:
    """How many ranks a quantile is off at most, except with probability ``beta``; certified."""
    return quantile_mechanism(recipe, noise).margin(beta) * noise.score_change


def quantile_mechanism(recipe: Quantile, noise: SelectionNoise) -> Quantiles:
    """The mechanism that answers ``recipe``, for a unit that moves one rank at a time.

    A unit that moves scores by ``score_change`` loses as much as that many units
    that move them by one, so each of those is granted that part of the price.
    """
    variable = recipe.variable
    levels = len(recipe.different).bit_length()
    return Quantiles(
        recipe.different,
        lower=0,
        upper=variable.span,
        epsilon=noise.epsilon * levels / noise.score_change,
    )
