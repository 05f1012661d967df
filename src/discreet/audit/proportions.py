"""How large a probability certainly is, from how often its event happened.

Clopper and Pearson (1934): if an event of probability p happened k times in n
independent trials, the p at which k or more would have had chance alpha exceeds
the true p with probability at most alpha, whatever p is.  The binomial tail is
an incomplete beta function, enclosed by ball arithmetic, and the ends are
rounded outward: the confidence is at least what is stated, for every n.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from discreet.exact.balls import ball, precision
from discreet.exact.search import double, greatest_integer

_BITS = 40  # of a bound
_DIGITS = 20  # and of its own size: closer is not worth the time
_PRECISION = 64


@lru_cache(maxsize=4096)
def at_least(hits: int, trials: int, alpha: Fraction) -> Fraction:
    """A lower bound of the probability, wrong with chance at most ``alpha``.

    >>> round(float(at_least(30, 1000, Fraction(1, 40))), 6)
    0.02033
    """
    if hits == 0:
        return Fraction(0)
    # Greatest grid point p with P(Bin(trials, p) >= hits) certainly at most alpha.
    low, high = _bracket(hits, trials, alpha, -1)
    unit = 1 << _BITS

    def is_excluded(point: int) -> bool:
        return _excludes(hits, trials, Fraction(point, unit), alpha)

    # The step down doubles until the guess is certainly below; at 0 it is.
    step = double(lambda width: is_excluded(high - width), max(1, high - low), most=high)
    low = greatest_integer(is_excluded, holds_at=max(0, high - step), fails_at=high, bits=_DIGITS)
    return Fraction(low, unit)


def at_most(hits: int, trials: int, alpha: Fraction) -> Fraction:
    """An upper bound of the probability, wrong with chance at most ``alpha``.

    >>> round(float(at_most(30, 1000, Fraction(1, 40))), 6)
    0.042552
    """
    return 1 - at_least(trials - hits, trials, alpha)


def _excludes(hits: int, trials: int, p: Fraction, alpha: Fraction) -> bool:
    """Whether as many hits have certainly a chance of at most ``alpha`` under ``p``."""
    if p <= 0:
        return True
    if p >= 1:
        return False
    with precision(_PRECISION):
        tail = ball(p).beta_lower(arb(hits), arb(trials - hits + 1), True)
        return bool(tail <= ball(alpha))


def _bracket(hits: int, trials: int, alpha: Fraction, side: int) -> tuple[int, int]:
    """Grid points around the bound as the normal law would have it; the search is exact."""
    rate = hits / trials
    width = math.sqrt(max(rate * (1 - rate), 1 / trials) / trials)
    reach = math.sqrt(-2 * math.log(float(alpha)))
    unit = 1 << _BITS
    low = int(max(0.0, rate + side * reach * width * 1.1) * unit)
    return low, min(unit, math.ceil(rate * unit) + 1)


__all__ = ["at_least", "at_most"]
