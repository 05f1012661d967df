"""How far apart two laws are, certified from below and from above.

Each function takes two laws and returns ``(lower, upper)``: exact fractions
with the true value between them, normally ``2**-64`` apart relative to it.
``math.inf`` stands for infinity, in either place; nothing else is a float.
A value below ``2**-256`` is reported as lying between 0 and that.

    max_divergence              sup ln P(S)/Q(S)                       pure epsilon
    approximate_max_divergence  sup ln (P(S) - delta)/Q(S)             epsilon at delta
    hockey_stick                sup P(S) - e**epsilon Q(S)             delta at epsilon
    total_variation             sup P(S) - Q(S)
    renyi                       ln E_Q (P/Q)**alpha / (alpha - 1)
    kl                          E_P ln P/Q
    rho                         sup over alpha > 1 of renyi / alpha    zero-concentrated rho

All are of P from Q, in that order; :func:`both_ways` takes the larger of the two.

>>> from discreet.accounting.law import DiscreteLaplaceLaw
>>> near, far = DiscreteLaplaceLaw(center=2, scale=2), DiscreteLaplaceLaw(center=5, scale=2)
>>> max_divergence(near, far)
(Fraction(3, 2), Fraction(3, 2))
>>> low, high = hockey_stick(near, far, epsilon="0.5")
>>> low <= high, round(float(high), 6)
(True, 0.393469)

References: DR section 3.5.1 (KL, max and approximate max divergence); Bun and
Steinke (2016) for Rényi divergence and rho.  Proofs: docs/proofs/divergence.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import arb

from discreet.accounting.expectations import mean_log, mean_power
from discreet.accounting.gaussian_sums import gaussian_sum
from discreet.accounting.law import DiscreteGaussianLaw, Law
from discreet.accounting.ratio import ONLY_P, ONLY_Q, Cells, Comparison
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, ends, log_down, precision, sqrt_down
from discreet.exact.numbers import Exact, fraction, nonnegative, positive, round_up

Extended = Fraction | float
"""A fraction, or ``math.inf``."""

Bounds = tuple[Extended, Extended]
"""Certified: the true value is at least the first and at most the second."""

_BITS = 64  # the relative width aimed at
_FLOOR = Fraction(1, 2**256)  # what is smaller is not resolved
_PRECISIONS = (128, 256, 512, 1024)  # tried in turn until the bounds are close

_RHO_CLOSE = Fraction(1, 2**20)  # the relative width aimed at where a supremum is searched for
_RHO_UNIT = Fraction(1, 2**80)  # and the absolute one
_MOST_STEPS = 2_000  # of either search; the bounds then stand as they are


def max_divergence(p: Law, q: Law) -> Bounds:
    """The supremum over events of ln P(S)/Q(S): the least epsilon of pure privacy (DR 3.6).

    P is the law ``p`` and Q the law ``q``.
    """
    return _max(Comparison(p, q))


def approximate_max_divergence(p: Law, q: Law, delta: Exact) -> Bounds:
    """The supremum of ln (P(S) - delta)/Q(S) over events with P(S) >= ``delta`` (DR 3.5.1).

    P is the law ``p`` and Q the law ``q``. It is the least epsilon, of either sign, with
    hockey_stick(epsilon) <= delta.

    >>> from discreet.accounting.law import DiscreteGaussianLaw
    >>> near, far = DiscreteGaussianLaw(2, 30), DiscreteGaussianLaw(5, 30)
    >>> round(float(approximate_max_divergence(near, far, "1e-5")[1]), 6)
    2.210381
    """
    share = nonnegative(delta, name="delta")
    if share >= 1:
        raise InvalidParameter(
            "P2",
            f"delta must be less than 1, got {share}.",
            why="a guarantee that may fail with certainty protects nobody.",
            fix="pass delta as a small probability such as '1e-6'.",
        )
    pair = Comparison(p, q)
    if share == 0:
        return _max(pair)
    bounds: Bounds = (-math.inf, math.inf)
    for bits in _PRECISIONS:
        with precision(bits):
            bounds = _approximate(pair, share)
        if _close(bounds):
            break
    return bounds


def hockey_stick(p: Law, q: Law, epsilon: Exact) -> Bounds:
    """The supremum over events of P(S) - e**epsilon Q(S): the least delta at this ``epsilon``.

    P is the law ``p`` and Q the law ``q``.
    """
    return _hockey_stick(Comparison(p, q), fraction(epsilon, name="epsilon"))


def privacy_curve(
    p: Law, q: Law, epsilons: Iterable[Exact]
) -> tuple[tuple[Fraction, Extended, Extended], ...]:
    """(epsilon, lower delta, upper delta) for each of ``epsilons``: the whole curve of trade-offs.

    Of the laws ``p`` and ``q``. The curve is convex in e**epsilon and falls, so between two points
    the bounds of the left one hold from above and those of the right from below.
    """
    pair = Comparison(p, q)
    points = [fraction(epsilon, name="epsilon") for epsilon in epsilons]
    return tuple((point, *_hockey_stick(pair, point)) for point in points)


def total_variation(p: Law, q: Law) -> Bounds:
    """The supremum over events of P(S) - Q(S), for the laws ``p`` and ``q``."""
    return _hockey_stick(Comparison(p, q), Fraction(0))


def kl(p: Law, q: Law) -> Bounds:
    """The expectation under P of ln P/Q (DR Definition 3.5), for the laws ``p`` and ``q``."""
    return _kl(Comparison(p, q))


def renyi(p: Law, q: Law, alpha: Exact) -> Bounds:
    """The Rényi divergence of order ``alpha`` > 0 of the laws ``p`` and ``q``; at 1 it is ``kl``.

    >>> from discreet.accounting.law import DiscreteGaussianLaw
    >>> renyi(DiscreteGaussianLaw(2, 30), DiscreteGaussianLaw(5, 30), alpha=4)  # alpha Δ²/(2σ²)
    (Fraction(3, 5), Fraction(3, 5))
    """
    return _renyi(Comparison(p, q), positive(alpha, name="alpha"))


def both_ways(divergence: Callable[..., Bounds], p: Law, q: Law, *parameters: Exact) -> Bounds:
    """The larger of ``divergence(p, q)`` and ``divergence(q, p)``: what two neighbours cost.

    ``p`` and ``q`` are the two laws, ``parameters`` what the divergence takes besides.

    >>> from discreet.accounting.law import FiniteLaw
    >>> often, seldom = FiniteLaw.exact({"a": "1/4", "b": "3/4"}), FiniteLaw.exact({"b": 1})
    >>> max_divergence(seldom, often)[1] < both_ways(max_divergence, seldom, often)[1] == math.inf
    True
    """
    first, second = divergence(p, q, *parameters), divergence(q, p, *parameters)
    return max(first[0], second[0]), max(first[1], second[1])


# --- certificates --------------------------------------------------------------------------


def _close(bounds: Bounds) -> bool:
    lower, upper = bounds
    if lower == upper:
        return True
    if math.inf in (upper, -lower):
        return False
    width = Fraction(upper) - Fraction(lower)
    return width * 2**_BITS <= max(abs(Fraction(lower)), abs(Fraction(upper))) or width <= _FLOOR


def _certify(evaluate: Callable[[], tuple[arb, arb]]) -> Bounds:
    """Bounds of a number >= 0 from balls of a lower and an upper bound, narrowed until close.

    A pair that does not close (a law is truncated, or its own balls are wide) is
    returned as it is: certified, only not tight.
    """
    bounds: Bounds = (Fraction(0), math.inf)
    for bits in _PRECISIONS:
        with precision(bits):
            low, high = evaluate()
            if high.is_zero():
                return Fraction(0), Fraction(0)
            if high < ball(_FLOOR):
                return Fraction(0), _FLOOR
            bounds = _lower_end(low), _upper_end(high)
        if _close(bounds):
            break
    return bounds


def _lower_end(value: arb) -> Extended:
    if value.is_finite():
        return max(Fraction(0), ends(value)[0])
    return math.inf if value > 0 else Fraction(0)


def _upper_end(value: arb) -> Extended:
    return ends(value)[1] if value.is_finite() else math.inf


def _add_bounds(parts: Iterable[Bounds]) -> Bounds:
    lower: Extended = Fraction(0)
    upper: Extended = Fraction(0)
    for low, high in parts:
        lower, upper = lower + low, upper + high
    return lower, upper


# --- events: hockey-stick and approximate max divergence ----------------------------------


def _hockey_stick(pair: Comparison, epsilon: Fraction) -> Bounds:
    def evaluate() -> tuple[arb, arb]:
        p, q, missing = pair.above(epsilon)
        gap = p - ball(epsilon).exp() * q
        return gap, gap + missing

    return _certify(evaluate)


def _approximate(pair: Comparison, delta: Fraction) -> Bounds:
    """Dinkelbach's iteration from below, then a certificate from above (Lemma 4).

    Every event gives a lower bound, and the event {ln P/Q > epsilon} of the
    bound so far gives the next; at the end hockey_stick(x) <= delta proves x.
    """
    lower = log_down(1 - delta)  # the event of everything
    for _ in range(_MOST_STEPS):
        p, q, _ = pair.above(lower)
        if not p - ball(delta) > 0:
            break
        if q.is_zero():
            return math.inf, math.inf
        better = ((p - ball(delta)) / q).log()
        if not better.is_finite() or ends(better)[0] <= lower:
            break
        lower = ends(better)[0]
    step = Fraction(1, 2 ** (_BITS + 4)) * max(abs(lower), Fraction(1, 2**_BITS))
    while step < 2**10:
        upper = lower + step
        p, q, missing = pair.above(upper)
        if p - ball(upper).exp() * q + missing <= ball(delta):
            return lower, upper
        step *= 4
    return lower, math.inf


# --- max divergence ------------------------------------------------------------------------


def _max(pair: Comparison) -> Bounds:
    if pair.coordinates:
        return _add_bounds(map(_max, pair.coordinates))
    if pair.stretches is not None:
        top = max(stretch.highest() for stretch in pair.stretches)
        return top, top
    return _certify(lambda: _max_of_cells(pair.cells()))


def _max_of_cells(cells: Cells) -> tuple[arb, arb]:
    low, high = arb(0), arb(0) if cells.complete else arb.pos_inf()
    for cell in cells.cells:
        if cell.log == ONLY_Q:
            continue
        if cell.log == ONLY_P:
            low = arb.pos_inf() if cell.p > 0 else low
            high = arb.pos_inf()
            continue
        value = cell.log_ball()
        if value.is_finite():
            low, high = low.max(value), high.max(value)
        elif not cell.q > 0:
            high = arb.pos_inf()
        else:  # P's ball reaches 0: only its upper end says anything
            high = high.max((arb(cell.p.upper()) / cell.q).log())
    return low, high


# --- expectations: KL and Rényi ------------------------------------------------------------


def _kl(pair: Comparison) -> Bounds:
    if pair.coordinates:
        return _add_bounds(map(_kl, pair.coordinates))
    gaussian = _gaussian(pair)
    if gaussian is not None:
        shift, variance = gaussian
        return (shift**2 / (2 * variance),) * 2
    return _certify(lambda: mean_log(pair))


def _renyi(pair: Comparison, alpha: Fraction) -> Bounds:
    if alpha == 1:
        return _kl(pair)
    if pair.coordinates:
        return _add_bounds(_renyi(one, alpha) for one in pair.coordinates)
    gaussian = _gaussian(pair)
    if gaussian is not None:
        return _gaussian_renyi(*gaussian, alpha)

    def evaluate() -> tuple[arb, arb]:
        low, high = mean_power(pair, alpha - 1)
        if alpha < 1:  # the logarithm is divided by a negative number
            low, high = high, low
        return low.log() / ball(alpha - 1), high.log() / ball(alpha - 1)

    return _certify(evaluate)


def _gaussian(pair: Comparison) -> tuple[Fraction, Fraction] | None:
    """The distance of the centres and the variance, for two discrete Gaussians of one variance."""
    match pair.p, pair.q:
        case DiscreteGaussianLaw(a, variance), DiscreteGaussianLaw(b, other) if variance == other:
            return Fraction(a - b), variance
        case _:
            return None


def _gaussian_renyi(shift: Fraction, variance: Fraction, alpha: Fraction) -> Bounds:
    """As for the continuous Gaussian where alpha * shift is whole, and less elsewhere.

    Completing the square, the sum of P**alpha Q**(1-alpha) is a Gaussian sum
    around alpha * center_p + (1 - alpha) * center_q (Lemma 3).
    """
    continuous = alpha * shift**2 / (2 * variance)
    if (alpha * shift).denominator == 1:
        return continuous, continuous

    def evaluate() -> tuple[arb, arb]:
        share = gaussian_sum(variance, alpha * shift) / gaussian_sum(variance)
        value = ball(continuous) + share.log() / ball(alpha - 1)
        return value, value

    lower, upper = _certify(evaluate)
    # The shifted sum is the smaller one, so its logarithm over alpha - 1 has this sign.
    return lower, min(upper, continuous) if alpha > 1 else upper


# --- the concentrated rho ------------------------------------------------------------------


def rho(p: Law, q: Law) -> Bounds:
    """The supremum over alpha > 1 of renyi(alpha) / alpha: the least rho of zero-concentrated DP.

    Divergences are those of the laws ``p`` and ``q``.

    (alpha - 1) renyi(alpha) is convex and 0 at alpha = 1, so it lies below its
    chords, and a chord bounds the supremum over its interval in closed form
    (Lemma 5).  The interval with the greatest bound is split until that is
    within a relative 2**-20 (or 2**-80) of the greatest value found.

    >>> from discreet.accounting.law import DiscreteLaplaceLaw
    >>> low, high = rho(DiscreteLaplaceLaw(2, 4), DiscreteLaplaceLaw(5, 4))
    >>> round(float(low), 6), round(float(high), 6)
    (0.227823, 0.227823)
    """
    pair = Comparison(p, q)
    steep, flat = _far_orders(pair)
    if flat == 0:  # Gaussians only: the bound is attained, by kl and at every whole order
        return steep, steep
    found = _kl(pair)[0]  # the limit at alpha = 1
    if flat == math.inf:
        return max(found, _renyi(pair, Fraction(2))[0] / 2), math.inf
    heights: dict[Fraction, Fraction] = {}

    def height(alpha: Fraction) -> Fraction:
        """An upper bound of renyi(alpha)."""
        nonlocal found
        if alpha not in heights:
            low, high = _renyi(pair, alpha)
            found = max(found, low / alpha)
            heights[alpha] = round_up(Fraction(high), _RHO_UNIT / 2**16)
        return heights[alpha]

    def bound(a: Fraction, b: Fraction | None) -> tuple[Extended, Fraction, Fraction | None]:
        if b is None:
            return -(steep + flat / a), a, b
        if a == 1:  # the divergence grows with its order
            return -height(b), a, b
        return -_chord(a, (a - 1) * height(a), b, (b - 1) * height(b)), a, b

    queue = [bound(Fraction(1), Fraction(2)), bound(Fraction(2), None)]
    for _ in range(_MOST_STEPS):
        negative, a, b = queue[0]
        if -negative <= found * (1 + _RHO_CLOSE) + _RHO_UNIT:
            break
        middle = 2 * a if b is None else a + (b - a) / (4 if a == 1 else 2)
        heapq.heapreplace(queue, bound(a, middle))
        heapq.heappush(queue, bound(middle, b))
    return found, -queue[0][0]


def _far_orders(pair: Comparison) -> tuple[Fraction, Extended]:
    """(s, f) such that renyi(alpha) / alpha <= s + f / a for every alpha >= a."""
    if pair.coordinates:
        parts = [_far_orders(one) for one in pair.coordinates]
        return sum((s for s, _ in parts), Fraction(0)), sum((f for _, f in parts), Fraction(0))
    gaussian = _gaussian(pair)
    if gaussian is None:
        return Fraction(0), _max(pair)[1]
    shift, variance = gaussian
    return shift**2 / (2 * variance), Fraction(0)


def _chord(a: Fraction, at_a: Fraction, b: Fraction, at_b: Fraction) -> Fraction:
    """An upper bound over a <= x <= b of (the line through both points) / (x (x - 1))."""
    slope = (at_b - at_a) / (b - a)
    at_one = at_a - slope * (a - 1)
    if at_one >= 0 or slope < 0:  # convexity forbids both, but for the rounding of the ends
        return max(at_a, at_b) / (a * (a - 1))
    # With u = slope - at_one and v = -at_one the quotient is u/x - v/(x - 1), whose one
    # maximum is (sqrt(u) - sqrt(v))**2, where ((x - 1)/x)**2 = v/u.
    u, v = slope - at_one, -at_one
    if ((a - 1) / a) ** 2 < v / u < ((b - 1) / b) ** 2:
        return u + v - 2 * sqrt_down(u * v, bits=2 * _BITS)
    return max(at_a / (a * (a - 1)), at_b / (b * (b - 1)))


__all__ = [
    "Bounds",
    "Extended",
    "approximate_max_divergence",
    "both_ways",
    "hockey_stick",
    "kl",
    "max_divergence",
    "privacy_curve",
    "renyi",
    "rho",
    "total_variation",
]
