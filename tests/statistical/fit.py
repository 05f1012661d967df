"""A statistical test that cannot flake and cannot sleep.

Massart (1990): for every n, every law F and every t > 0,
P(sup abs(F_n - F) > t) <= 2 exp(-2 n t**2), where F_n is the empirical
distribution of n independent draws; discrete laws included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from flint import arb

from discreet.exact.balls import precision

ALPHA = 1e-9
"""Chance that a correct sampler fails one test."""


def tolerance(n: int, alpha: float = ALPHA) -> float:
    """The distance that the empirical distribution of n draws exceeds with chance alpha."""
    return math.sqrt(math.log(2 / alpha) / (2 * n))


def enumerated(mass: Callable[[int], arb], low: int, high: int) -> np.ndarray:
    """P(Z <= z) for z = low ... high, as doubles, from certified balls around P(Z = z).

    ``low`` is far enough out if the mass below it is under 10**-12.
    """
    with precision(128):
        below, cumulative = arb(0), []
        for z in range(low, high + 1):
            below += mass(z)
            cumulative.append(float(below.mid()))
        certain = float(below.rad()) < 1e-12
    if not certain or not 1 - 1e-12 < cumulative[-1] < 1 + 1e-12:
        raise ArithmeticError("the enumeration does not add up to one")
    return np.array(cumulative)


def distance(samples: np.ndarray, cdf: np.ndarray, low: int) -> float:
    """sup abs(F_n - F) over the integers, where cdf[i] = P(Z <= low + i)."""
    inside = np.clip(samples - low, -1, len(cdf))  # what falls outside counts against the fit
    counts = np.bincount(inside + 1, minlength=len(cdf) + 2)
    empirical = np.cumsum(counts) / len(samples)
    return float(np.abs(empirical - np.concatenate([[0.0], cdf, [1.0]])).max())


def fits(samples: np.ndarray, cdf: np.ndarray, low: int, alpha: float = ALPHA) -> bool:
    """Accept unless the empirical distribution strays further than chance allows."""
    return distance(samples, cdf, low) <= tolerance(len(samples), alpha)
