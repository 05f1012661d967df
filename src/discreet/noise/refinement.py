"""Discrete Laplace noise made smaller: the noise of a finer release, given that of a coarser one.

Noise of scale b1 is noise of a smaller scale b2 plus something independent; given the sum, the
part can be drawn.  With x = 1 / b, all that is needed are geometric draws of the rational scales
1 / (x1 + x2), 1 / (x2 - x1) and 1 / (2 x1).  Proof: ``docs/proofs/known.md``, Lemmas 5 and 6.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive
from discreet.noise.laplace import geometric
from discreet.noise.table import Integers


def refine_laplace(drawn: Integers, *, wider: Exact, narrower: Exact) -> Integers:
    """Draws of scale ``narrower``, given draws of scale ``wider`` that each of them is part of.

    Over the law of ``drawn`` they have exactly the discrete Laplace law of their own scale.

    >>> from discreet.noise import discrete_laplace
    >>> coarse = discrete_laplace(20, 100_000)
    >>> fine = refine_laplace(coarse, wider=20, narrower=10)
    >>> bool(fine.var() < coarse.var() / 3), bool((fine == coarse).mean() > 0.2)
    (True, True)
    """
    first, second = 1 / positive(wider, name="wider"), 1 / positive(narrower, name="narrower")
    if not first < second:
        raise InvalidParameter(
            "P2",
            "noise is refined to a smaller scale.",
            why="to add noise to what was released hides nobody: the release stays known.",
            fix="refine to a scale below the one that was drawn.",
        )
    size = drawn.size
    both, apart = Fraction(1) / (first + second), Fraction(1) / (second - first)
    start = geometric(apart, size) - geometric(both, size)
    beyond, enough = geometric(both, size), geometric(1 / (2 * first), size)
    distance = np.abs(drawn.ravel())
    stopped = distance + np.where(start - distance <= enough, beyond, 0)
    found = np.where(start < distance, start, stopped)
    result: Integers = np.where(drawn.ravel() < 0, -found, found).reshape(drawn.shape)
    return result


__all__ = ["refine_laplace"]
