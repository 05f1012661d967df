"""Exact draws, vectorised: integers whose law is the stated one, to the last digit.

Uniform digits come from :mod:`discreet.noise.entropy`.  A decision is taken when a
certified enclosure makes it certain; otherwise more digits are drawn and the
enclosure is narrowed.  No float decides an outcome.
"""

from discreet.noise.bernoulli import bernoulli, bernoulli_exp
from discreet.noise.gaussian import discrete_gaussian
from discreet.noise.laplace import discrete_laplace, geometric
from discreet.noise.selection import (
    exponential_choice,
    permute_and_flip,
    random_permutation,
    sample_without_replacement,
    uniform_below,
)
from discreet.noise.staircase import staircase

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "geometric",
    "permute_and_flip",
    "random_permutation",
    "sample_without_replacement",
    "staircase",
    "uniform_below",
]
