"""From one bound on a mechanism to another, certified and never optimistic.

What purity says about Rényi divergence, what a concentrated bound says about
(epsilon, delta), and back.  Every irrational number is enclosed by ball
arithmetic and rounded to the safe side: losses up, the room in a budget down.
The proofs are in docs/proofs/loss.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

from flint import arb

from discreet.exact.balls import (
    ball,
    describe_too_wide,
    enclose,
    exp_up,
    narrow_ends,
    precision,
    precisions,
)
from discreet.exact.numbers import round_up
from discreet.exact.search import bracket

INFINITY: Final = math.inf
"""No bound in this coordinate."""

Amount = Fraction | float
"""An exact fraction, or ``INFINITY``: the only float that a loss may hold."""

# 2520 = lcm(1..10), so that a budget of one pays exactly for three thirds or seven sevenths, and
# twelve (fifteen) decimals are exact as well.  A signed 64-bit integer holds epsilon and rho up
# to 3660 and delta up to 3.66.
EPSILON_UNITS: Final = 2520 * 10**12
"""How many units of stored epsilon make one."""
RHO_UNITS: Final = 2520 * 10**12
"""How many units of stored rho make one."""
DELTA_UNITS: Final = 2520 * 10**15
"""How many units of stored delta make one."""

_CACHED: Final = 4096
_BITS: Final = 64  # of every bound, relative to it
_LEAST_EXPONENT: Final = Fraction(-20_000)  # e**-20000 is as good as nothing, and can be written
_LEAST_ORDER: Final = Fraction(1) + Fraction(1, 2**40)
_MOST_ORDER: Final = 2.0**60
_MOST_PURE: Final = 1 << 20  # beyond it e**-epsilon is not written out: what always holds is said


def _upper(function: Callable[[], arb]) -> Fraction:
    """The upper end of what ``function`` encloses; the loop is here, so that no call goes up."""
    for working in precisions(_BITS):
        with precision(working):
            found = narrow_ends(function(), _BITS)
        if found is not None:
            return found[1]
    raise describe_too_wide()


def _epsilon_up(function: Callable[[], arb]) -> Fraction:
    return max(Fraction(0), round_up(_upper(function), Fraction(1, EPSILON_UNITS)))


# --- the best rho of a law -------------------------------------------------------------------


@lru_cache(maxsize=_CACHED)
def pure_rho(epsilon: Fraction) -> Fraction:
    """The least rho of every epsilon-private mechanism: epsilon tanh(epsilon / 2) (Lemma 3).

    >>> round(float(pure_rho(Fraction(2))), 6)
    1.523188
    """
    if epsilon == 0:
        return Fraction(0)
    return _upper(lambda: ball(epsilon) * (ball(epsilon) / 2).tanh())


@lru_cache(maxsize=_CACHED)
def laplace_rho(epsilon: Fraction, step: Fraction) -> Fraction:
    """The least rho of Laplace noise (Lemma 4); ``step`` is grid / scale, 0 if continuous.

    >>> round(float(laplace_rho(Fraction(1, 4), Fraction(1, 12))), 6)
    0.029057
    """
    if epsilon == 0:
        return Fraction(0)

    def divergence() -> arb:
        ratio = ball(step) / ball(step).sinh() if step else arb(1)
        return ball(epsilon) + (-ball(epsilon)).expm1() * ratio

    return min(_upper(divergence), pure_rho(epsilon))


# --- a pure bound at another delta -----------------------------------------------------------


def pure_delta(epsilon: Amount, target: Fraction) -> Fraction:
    """By how much an epsilon-private mechanism may miss (target, 0); randomised response does.

    >>> round(float(pure_delta(Fraction(2), Fraction(1, 2))), 6)
    0.684265
    """
    if isinstance(epsilon, float):
        return Fraction(1)
    if target >= epsilon:
        return Fraction(0)
    if epsilon > _MOST_PURE:
        return Fraction(1)
    # (e^epsilon - e^target) / (1 + e^epsilon), without cancellation.
    return _upper(lambda: -ball(target - epsilon).expm1() / (1 + (-ball(epsilon)).exp()))


@lru_cache(maxsize=_CACHED)
def pure_epsilon(epsilon: Amount, delta: Fraction) -> Amount:
    """The least target for which an epsilon-private mechanism is (target, delta)-private."""
    if isinstance(epsilon, float) or delta == 0 or epsilon > _MOST_PURE:
        return epsilon
    if pure_delta(epsilon, Fraction(0)) <= delta:
        return Fraction(0)
    # pure_delta solved for the target; 1 - delta (1 + e^-epsilon) > 0 as total variation > delta.

    def target() -> arb:
        return ball(epsilon) + (1 - ball(delta) * (1 + (-ball(epsilon)).exp())).log()

    return min(epsilon, _epsilon_up(target))


# --- a concentrated bound as (epsilon, delta) -------------------------------------------------
#
# Canonne, Kamath and Steinke (2020), Corollary 13: rho-zCDP implies (epsilon, delta) with
#     ln delta = (alpha - 1)(alpha rho - epsilon + ln(1 - 1/alpha)) - ln alpha
# for EVERY alpha > 1.  So alpha is found in floating point and only the bound at that alpha is
# certified: a poor alpha costs tightness, never safety.


def _order(rising: Callable[[float], float], most: float) -> Fraction:
    """An alpha > 1 near where ``rising`` crosses zero, by bisection in ln(alpha - 1)."""
    low, high = bracket(
        lambda x: rising(1 + math.exp(x)) >= 0,
        fails_at=math.log(1e-12),
        holds_at=math.log(min(most, _MOST_ORDER)),
        halvings=64,
    )
    return max(_LEAST_ORDER, Fraction(1 + math.exp((low + high) / 2)))


def _double(x: Fraction) -> float:
    """``x`` as a positive double, near enough to search with."""
    return max(float(min(x, Fraction(10) ** 300)), 1e-300)


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)


def _epsilon_order(rho: float, log_delta: float) -> Fraction:
    # The derivative of the epsilon at alpha, times (alpha - 1)**2, rises through zero once.
    return _order(
        lambda a: (a - 1) * (a - 1) * rho + log_delta + math.log(a),
        2 + math.sqrt(-log_delta / rho),
    )


@lru_cache(maxsize=_CACHED)
def concentrated_delta(rho: Amount, epsilon: Fraction) -> Fraction:
    """A delta for which every rho-zCDP mechanism is (epsilon, delta)-private.

    >>> round(float(concentrated_delta(Fraction(1, 20), Fraction(1, 4))), 6)
    0.081773
    """
    if isinstance(rho, float):
        return Fraction(1)
    if rho == 0:
        return Fraction(0)
    r, e = _double(rho), _double(epsilon)
    alpha = _order(lambda a: (2 * a - 1) * r - e + math.log1p(-1 / a), 2 + (e + 1) / r)

    def exponent() -> arb:
        a = ball(alpha)
        return (a - 1) * (a * ball(rho) - ball(epsilon) + (1 - 1 / a).log()) - a.log()

    most = _upper(exponent)
    return Fraction(1) if most >= 0 else exp_up(max(most, _LEAST_EXPONENT))


@lru_cache(maxsize=_CACHED)
def concentrated_epsilon(rho: Amount, delta: Fraction) -> Amount:
    """An epsilon for which every rho-zCDP mechanism is (epsilon, delta)-private.

    >>> round(float(concentrated_epsilon(Fraction(1, 10), Fraction(1, 10**6))), 6)
    2.141939
    """
    if rho == 0:
        return Fraction(0)
    if isinstance(rho, float) or delta == 0:
        return INFINITY
    alpha = _epsilon_order(_double(rho), _log(delta))

    def bound() -> arb:
        a = ball(alpha)
        return a * ball(rho) + (1 - 1 / a).log() - (ball(delta) * a).log() / (a - 1)

    return _epsilon_up(bound)


@lru_cache(maxsize=_CACHED)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho whose every mechanism is (epsilon, delta)-private, as large as the conversion allows.

    Rounds down: it is the room in a budget.

    >>> round(float(largest_rho(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    if delta == 0:
        return Fraction(0)
    e, d = _double(epsilon), _log(delta)

    def compute_epsilon(rho: float) -> float:
        a = float(_epsilon_order(rho, d))
        return a * rho + math.log1p(-1 / a) - (d + math.log(a)) / (a - 1)

    # Only the order is taken from this search; the rho at that order is certified below.
    log_rho, _ = bracket(
        lambda x: compute_epsilon(math.exp(x)) > e,
        fails_at=math.log(1e-30),
        holds_at=math.log(1e30),
        halvings=64,
    )
    alpha = _epsilon_order(math.exp(log_rho), d)

    def bound() -> arb:
        a = ball(alpha)
        return (ball(epsilon) - (1 - 1 / a).log() + (ball(delta) * a).log() / (a - 1)) / a

    return max(Fraction(0), enclose(bound)[0])
