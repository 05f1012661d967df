"""Many coins of one rational probability, from one byte each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.noise import bernoulli
from discreet.noise.entropy import random_words

_DIGITS = 2**8


def coins(p: Fraction, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Ones with probability exactly ``p``.

    Exactness: eight digits of a uniform number are compared with those of ``p``; where
    they agree, what is left of ``p`` is the probability of a fresh coin.

    >>> int(coins(Fraction(2, 7), (1000, 70)).sum()) in range(18_500, 21_500)
    True
    """
    first = p.numerator * _DIGITS // p.denominator
    drawn = random_words(shape[0] * shape[1], np.uint8)
    if first == _DIGITS:
        return np.ones(shape, dtype=np.uint8)
    ones = (drawn < np.uint8(first)).view(np.uint8)
    open_ = np.flatnonzero(drawn == np.uint8(first))
    ones[open_] = bernoulli(p * _DIGITS - first, open_.size)
    return ones.reshape(shape)


__all__ = ["coins"]
