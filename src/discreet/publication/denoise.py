"""Smoothing a noisy histogram of an ordered column: wavelets, thresholded, at every shift.

Post-processing of released numbers.  Neighbouring levels are alike except where
they are not: a Haar wavelet sees both, and keeping only what stands out from
noise of a known size costs a spike nothing and averages a plain.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.publication.measure import Doubles

LEAST_LEVELS = 16
"""Fewer levels are left as they are: there is little to average."""

_THRESHOLD = 0.65  # of the universal threshold: total variation wants less smoothing than squares


def denoise(noisy: Doubles, *, deviation: float) -> Doubles:
    """A histogram with the coefficients removed that noise alone would explain.

    Translation-invariant Haar (every shift at once), hard threshold at a share
    of sigma sqrt(2 ln n); the ends are mirrored, so that the first and the last
    level are not taken for neighbours.

    >>> flat = np.full(64, 100.0)
    >>> bool(np.abs(denoise(flat, deviation=5.0) - flat).max() < 1e-9)
    True
    """
    size = noisy.size
    limit = _THRESHOLD * deviation * math.sqrt(2 * math.log(max(size, 2)))
    smooth = np.concatenate([noisy, noisy[::-1]])
    details = []
    step = 1
    while step < size:
        ahead = np.roll(smooth, -step)
        detail = (smooth - ahead) / 2
        smooth = (smooth + ahead) / 2
        # The difference of two means of `step` numbers each, halved.
        cut = limit / math.sqrt(2 * step)
        details.append((step, np.where(np.abs(detail) > cut, detail, 0.0)))
        step *= 2
    for step, detail in reversed(details):
        behind = np.roll(smooth - detail, step)
        smooth = (smooth + detail + behind) / 2
    return smooth[:size]


def looks_ordered(noisy: Doubles) -> bool:
    """Whether neighbours in the list of levels are alike, far beyond chance.

    Bartels' rank version of von Neumann's ratio: the mean squared difference of
    neighbouring ranks over their variance is 2 for a list in no order, with
    standard deviation about 2 / sqrt(n).  From a released histogram, so free;
    a wrong guess costs accuracy, never privacy.

    >>> looks_ordered(np.arange(40.0) ** 2), looks_ordered(np.tile([1.0, 50.0, 7.0], 12))
    (True, False)
    """
    if noisy.size < LEAST_LEVELS:
        return False
    ranks = np.argsort(np.argsort(noisy, kind="stable"), kind="stable").astype(np.float64)
    ratio = np.square(np.diff(ranks)).sum() / np.square(ranks - ranks.mean()).sum()
    return bool(ratio < 2 - 4 * 2 / math.sqrt(noisy.size))
