"""Margins that hold: exact intervals from sums of coins, and Bernstein's bound for the rest.

Given the answers, the number of reports that support an answer is the sum of two
independent binomials, c coins of probability p and n - c of probability q < p, and
it grows with c in every quantile.  Inverting its tails gives an interval for c
whose coverage is at least 1 - beta for every n and every truth.  Tails are summed
in doubles (a relative error below 1e-9), where accuracy may be a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact.balls import log_up
from discreet.exact.numbers import Exact, float_up, proportion
from discreet.exact.search import double, least_integer

Doubles = NDArray[np.float64]
_REACH = 12.0  # standard deviations beyond which a binomial has less than 2**-100


def interval(
    hits: int, *, respondents: int, inside: Fraction, outside: Fraction, beta: Exact
) -> tuple[int, int]:
    """The numbers c for which neither tail of the reports is rarer than beta / 2.

    >>> interval(60, respondents=100, inside=Fraction(3, 4), outside=Fraction(1, 4), beta="0.05")
    (53, 88)
    """
    share = float(proportion(beta, name="beta")) / 2
    p, q, n = float(inside), float(outside), respondents
    # Fewer than nobody would support, or more than everybody: read as nobody or everybody,
    # whose set is larger.  Otherwise it could be empty, and seem certain.
    hits = min(max(hits, math.floor(n * outside)), math.ceil(n * inside))

    def not_too_many(c: int) -> bool:
        return _tail(hits, c, n, p, q) > share

    def too_few(c: int) -> bool:
        return 1 - _tail(hits + 1, c, n, p, q) <= share

    guess = (hits - n * q) / (p - q)
    spread = 2.2 * math.sqrt(n * max(p * (1 - p), q * (1 - q))) / (p - q) + 3
    # Both turn once from false to true as c grows.
    low = _first(not_too_many, n, guess - spread, spread / 4)
    high = _first(too_few, n, guess + spread, spread / 4) - 1
    return min(low, n), max(min(high, n), 0)


def _first(holds: Callable[[int], bool], n: int, guess: float, step: float) -> int:
    """The least c in 0 ... n for which ``holds(c)``, or n + 1; looked for around a guess."""
    near, first = min(max(int(guess), 0), n), int(step) + 1
    if holds(near):
        back = double(lambda distance: not holds(near - distance), first, most=near + 1)
        tried = back // 2 if back > first else 0
        return least_integer(holds, fails_at=max(near - back, -1), holds_at=near - tried)
    ahead = double(lambda distance: holds(near + distance), first, most=n + 1 - near)
    tried = ahead // 2 if ahead > first else 0
    return least_integer(holds, fails_at=near + tried, holds_at=min(near + ahead, n + 1))


def _tail(hits: int, c: int, n: int, p: float, q: float) -> float:
    """P(B(c, p) + B(n - c, q) >= hits)."""
    first, masses = _binomial(c, p)
    second, others = _binomial(n - c, q)
    above = np.append(np.cumsum(others[::-1])[::-1], 0.0)
    wanted = np.clip(hits - (first + np.arange(masses.size)) - second, 0, others.size)
    return float(masses @ above[wanted])


def _binomial(n: int, p: float) -> tuple[int, Doubles]:
    """Where the masses of a binomial begin, and the masses."""
    if n == 0 or p in (0.0, 1.0):
        return int(n * p), np.ones(1)
    reach = _REACH * math.sqrt(n * p * (1 - p)) + 40
    low, high = max(0, int(n * p - reach)), min(n, int(n * p + reach))
    k = np.arange(low, high, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - k) / (k + 1) * (p / (1 - p))))])
    masses = np.exp(logs - logs.max())
    return low, masses / masses.sum()


def bernstein(*, variance: float, largest: float, beta: Exact) -> float:
    """How far a sum of independent, centred numbers strays, except with probability beta.

    ``variance`` bounds the variance of the sum, ``largest`` the size of each
    summand: P(|S| > t) <= 2 exp(-t**2 / (2 (variance + largest t / 3))).

    >>> round(bernstein(variance=900, largest=3, beta="0.05"), 3)
    85.258
    """
    logarithm = float_up(log_up(2 / proportion(beta, name="beta")))
    linear = largest * logarithm / 3
    return linear + math.sqrt(linear**2 + 2 * variance * logarithm)


__all__ = ["bernstein", "interval"]
