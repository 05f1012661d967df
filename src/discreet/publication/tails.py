"""How far off a weighted sum of draws may be, from its variance and from what the draws are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from discreet.exact.numbers import Exact, proportion
from discreet.exact.search import bracket
from discreet.mechanisms.gaussian import Gaussian
from discreet.publication.measure import Measurement

_NORMAL = NormalDist()
_SHIFTS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
_BLURS = (0.8, 1.0, 1.2, 1.5, 2.0)
_SAFE = 1 + 1e-9  # for what doubles round


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws behind a table: one law, how many there are, the narrowest of them."""

    gaussian: bool
    count: int
    least: float
    """The least sigma_squared, or the least scale of Laplace noise."""

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Draws:
        """Those of some measurements."""
        noises = [one.query.noise for one in measurements]
        widths = [
            float(one.sigma_squared if isinstance(one, Gaussian) else one.scale) for one in noises
        ]
        gaussian = all(isinstance(one, Gaussian) for one in noises)
        return cls(gaussian, sum(one.values.size for one in measurements), min(widths))


def tail_bound(
    variance: float,
    beta: Exact,
    *,
    gaussian: bool,
    sharp: bool = True,
    draws: Draws | None = None,
) -> float:
    """A weighted sum of independent draws is within this, except with probability ``beta``.

    From its variance alone, whatever the weights and the draws: sub-Gaussian for Gaussian noise,
    Chernoff's bound for Laplace noise (Lemma 9); where the ``draws`` are known, near the quantile
    (Lemmas 21 and 22).  Not ``sharp``: as the first plans bounded it, with Bernstein's inequality.
    """
    allowed = float(proportion(beta, name="beta"))
    tail = math.log(2 / allowed)
    if not gaussian and not sharp:
        return math.sqrt(2 * variance * tail) + math.sqrt(variance / 2) * tail
    plain = math.sqrt(2 * tail) if gaussian else _laplace_tail(tail) / math.sqrt(2)
    if draws is not None:
        near = _near_gaussian if gaussian else _near_laplace
        plain = min(plain, _SAFE * near(allowed, draws))
    return math.sqrt(variance) * plain


@lru_cache(64)
def _laplace_tail(tail: float) -> float:
    """The least (tail - ln(1 - u**2)) / u over a grid of u between 0 and 1: each is a bound."""
    u = 1 - np.geomspace(1e-9, 0.9, 2000)
    return float(((tail - np.log1p(-np.square(u))) / u).min())


@lru_cache(256)
def _near_gaussian(beta: float, draws: Draws) -> float:
    """A bound for a sum of variance one: a little continuous noise makes it almost normal."""
    found = math.inf
    for blur in _BLURS:
        squared = draws.least * blur**2 / (draws.least + blur**2)
        ripple = math.exp(-2 * math.pi**2 * squared)
        excess = draws.count * math.log1p(2 * ripple / (1 - ripple))
        wide = blur / math.sqrt(draws.least)
        for shift in _SHIFTS:
            share = beta / 2 * _NORMAL.cdf(shift) * math.exp(-excess)
            if share > 1e-300:
                normal = -_NORMAL.inv_cdf(share)
                found = min(found, shift * wide + math.sqrt(1 + wide**2) * normal)
    return found


@lru_cache(256)
def _near_laplace(beta: float, draws: Draws) -> float:
    """A bound for a sum of variance one: of continuous draws that are a little wider."""
    scale = draws.least
    wider = 1 / (2 * scale * math.tanh(1 / (2 * scale)))
    found = math.inf
    for shift in _SHIFTS:
        kept = max(0.5, -math.expm1(-(shift**2) / 2))
        moved = shift / (scale * math.sqrt(24))
        found = min(found, moved + wider * _find_mixed_quantile(beta * kept))
    return found


@lru_cache(1024)
def _find_mixed_quantile(beta: float) -> float:
    """Where exp(-sqrt(2) t) + (3/e)**1.5 / sqrt(2 pi) / t**2 exp(-t**2 / 3) falls to ``beta``."""
    steep = math.pow(3 / math.e, 1.5) / math.sqrt(2 * math.pi)

    def falls_so_far(t: float) -> bool:
        return math.exp(-math.sqrt(2) * t) + steep / t**2 * math.exp(-(t**2) / 3) <= beta

    _, enough = bracket(falls_so_far, fails_at=1e-3, holds_at=1e4, halvings=80)
    return enough


__all__ = ["Draws", "tail_bound"]
