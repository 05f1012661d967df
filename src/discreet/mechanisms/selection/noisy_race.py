"""How often the best of many noises overtakes another: what selections get wrong.

Report noisy max errs when the noise of a worse candidate makes up the distance
to the best one; sparse vector errs when the noise of a low query reaches the
noisy threshold.  Both are one event: the greatest of some discrete Laplace
draws reaches ``distance`` plus the least of some others.

The bound is computed in doubles.  Every term is positive and the sums hold
fewer than 2**15 of them, each within 2**-40 of the true one, so the final
factor of 1 + 2**-20 puts the result above the truth (``docs/proofs/selection.md``,
Lemma 9).  It is about accuracy: nothing on the loss path passes through here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact.search import least_integer

_BLOCKS_PER_SCALE = 64
_REACH = 60
_ROUNDING = 1 + 2.0**-20

Doubles = NDArray[np.float64]


def overtaking_probability(
    distance: int,
    *,
    chasers: int,
    chaser_scale: Fraction,
    leaders: int,
    leader_scale: Fraction,
) -> float:
    """At least P(max of the chasers' draws >= distance + min of the leaders' draws).

    The leaders' minimum is cut into blocks, each counted at its least value,
    where being overtaken is most likely; blocks of one value make it exact.
    """
    if chasers == 0 or leaders == 0:
        return 0.0
    scale = float(leader_scale)
    width = max(1, math.floor(scale / _BLOCKS_PER_SCALE))
    half = math.ceil(scale * (_REACH + math.log(leaders)) / width) + 1
    edges = np.arange(-half, half + 1, dtype=np.float64) * width
    below = -np.expm1(leaders * _log_cdf(-edges + 1, scale))  # P(min < edge), of a symmetric law
    above = np.exp(leaders * _log_cdf(-edges + 1, scale))  # P(min >= edge)
    # Differences of whichever of the two is small, so that nothing cancels.
    inside = np.where(edges[:-1] < 0, np.diff(below), -np.diff(above))
    overtaken = -np.expm1(chasers * _log_cdf(distance + edges, float(chaser_scale)))
    total = below[0] + float(np.sum(inside * overtaken[:-1])) + above[-1] * overtaken[-1]
    return min(1.0, float(total) * _ROUNDING)


def least_distance(failure: Callable[[int], float], beta: Fraction) -> int:
    """The least whole m >= 0 with ``failure(m) <= beta``, for a decreasing ``failure``."""
    allowed = math.nextafter(float(beta), 0.0)
    return least_integer(lambda m: failure(m) <= allowed)


def _log_cdf(x: Doubles, scale: float) -> Doubles:
    """ln P(Z < x) for a discrete Laplace Z: q**(1-x) / (1+q) up to 0, 1 - q**x / (1+q) above."""
    log_one_q = math.log1p(math.exp(-1 / scale))
    low = (np.minimum(x, 0.0) - 1) / scale - log_one_q
    high = np.log1p(-np.exp(-np.maximum(x, 1.0) / scale - log_one_q))
    return np.where(x <= 0, low, high)
