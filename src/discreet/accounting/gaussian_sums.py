"""Sums of exp(-z**2 / (2 sigma_squared)) over the integers, certified and never enumerated.

The normaliser of the discrete Gaussian is a theta function, its tails are half
sums.  Both cost a few dozen operations whatever the variance, from far below
one (nearly all mass on one integer) to astronomical (sums on a fine grid).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from flint import arb, ctx

from discreet.exact.balls import ball

# ln 2 < 7/10, so as many terms as this asks for are enough.
_LOG_2_UP = Fraction(7, 10)

# A half sum of more terms than this (or than the bits of precision: beyond what the formula can
# give) is computed by the Euler-Maclaurin formula instead.
_MOST_TERMS = 2_000


def gaussian_sum(sigma_squared: Fraction, shift: Fraction = Fraction(0)) -> arb:
    """A ball that contains the sum over all integers z of exp(-(z - shift)**2 / (2 sigma_squared)).

    Poisson's formula gives the same number as sigma * sqrt(2 pi) times the sum
    over all integers k of exp(-2 pi**2 sigma_squared k**2) cos(2 pi k shift).
    One side or the other falls faster than exp(-pi k**2), up to the shift
    (docs/proofs/divergence.md, Lemma 2).

    >>> round(float(gaussian_sum(Fraction(1, 5), Fraction(1, 3))), 6)
    1.099367
    """
    shift = shift - math.floor(shift + Fraction(1, 2))  # in [-1/2, 1/2): the sum has period one
    if sigma_squared * 44 < 7:  # 7/44 is about 1/(2 pi): where the sides are equally fast
        rate = 1 / (2 * sigma_squared)
        # (k - 1/2)**2 >= k * (k - 1): the shifted terms fall at least that fast.
        terms = [ball(-rate * shift**2).exp()]
        for k in itertools.count(1):
            bound = 2 * ball(-rate * k * (k - 1)).exp()
            remaining = 2 * bound  # each later bound is less than half of the one before
            if remaining * arb(2) ** ctx.prec < terms[0]:
                return sum(terms, arb(0)) + arb(0, remaining.upper())
            terms.append(
                ball(-rate * (k - shift) ** 2).exp() + ball(-rate * (k + shift) ** 2).exp()
            )
    rate_ball = 2 * arb.pi() ** 2 * ball(sigma_squared)
    terms = [arb(1)]
    for k in itertools.count(1):
        size = 2 * (-rate_ball * k**2).exp()
        if size * arb(2) ** ctx.prec < 1:
            # Later terms: a geometric series with a ratio below exp(-3 pi) < 1/2.
            terms.append(arb(0, (2 * size).upper()))
            break
        terms.append(size * ball(2 * k * shift).cos_pi())
    return sum(terms, arb(0)) * (2 * arb.pi() * ball(sigma_squared)).sqrt()


def gaussian_half_sum(sigma_squared: Fraction, first: int) -> arb:
    """The sum over the integers z >= first, for first >= 1, of exp(-z**2 / (2 sigma_squared))."""
    # n terms leave at most exp(-(2 first n + n**2) / (2 sigma_squared)) of the first one.
    wanted = 2 * sigma_squared * (ctx.prec + 8) * _LOG_2_UP
    terms = min(math.isqrt(math.ceil(wanted)), math.floor(wanted / (2 * first))) + 2
    if terms <= max(_MOST_TERMS, ctx.prec):
        return _series(sigma_squared, first, terms)
    return _euler_maclaurin(sigma_squared, first)


def _series(sigma_squared: Fraction, first: int, terms: int) -> arb:
    term = ball(Fraction(-(first**2)) / (2 * sigma_squared)).exp()
    ratio = ball(Fraction(-(2 * first + 1)) / (2 * sigma_squared)).exp()
    fall = ball(-1 / sigma_squared).exp()
    total = arb(0)
    for _ in range(terms):
        total += term
        term *= ratio
        ratio *= fall
    # The ratios keep falling, so the rest is less than a geometric series.
    return total + arb(0, (term / (1 - ratio)).upper())


def _euler_maclaurin(sigma_squared: Fraction, first: int) -> arb:
    """The half sum by the Euler-Maclaurin formula; see docs/proofs/divergence.md, Lemma 1.

    With t = first / sigma, the n-th derivative of exp(-x**2 / (2 sigma**2)) at
    ``first`` is (-1)**n sigma**-n He_n(t) exp(-t**2 / 2).  After the
    corrections of order 2, 4, ..., 2m the remainder is at most
    2 zeta(2m) / (2 pi)**2m times the integral of the 2m-th derivative's size.
    """
    sigma = ball(sigma_squared).sqrt()
    t = ball(first) / sigma
    height = (-t * t / 2).exp()
    total = sigma * (arb.pi() / 2).sqrt() * (t / arb(2).sqrt()).erfc() + height / 2
    older, newer = arb(1), t  # He_0, He_1
    order, factor = 2, 1 / (2 * sigma)  # factor = 1 / (order! sigma**(order - 1))
    previous = None
    while True:
        total += arb.bernoulli(order) * factor * newer * height
        remainder = _remainder(sigma, t, height, order)
        small = remainder * arb(2) ** ctx.prec < total
        # An asymptotic series: once the bound grows, more terms make it worse.
        if small or (previous is not None and not remainder < previous):
            return total + arb(0, remainder.upper())
        previous = remainder
        for n in (order - 1, order):
            older, newer = newer, t * newer - n * older
        factor /= (order + 1) * (order + 2) * sigma**2
        order += 2


def _remainder(sigma: arb, t: arb, height: arb, order: int) -> arb:
    share = 4 / (2 * arb.pi()) ** order * sigma ** (1 - order)
    if t * t > 2 * order:
        # |He_n(u)| <= E (u + |N|)**n <= 2**(n-1) (u**n + (n-1)!!), and for t**2 > 2n the
        # integral of u**n exp(-u**2 / 2) over u >= t is at most 2 t**(n-1) exp(-t**2 / 2).
        odd = arb(order).fac() / (arb(2) ** (order // 2) * arb(order // 2).fac())
        return share * arb(2) ** (order - 1) * height * (2 * t ** (order - 1) + odd / t)
    # Cramer: |He_n(u)| <= 1.0865 sqrt(n!) exp(u**2 / 4).
    return (
        share * ball(Fraction(11, 10)) * arb(order).fac().sqrt() * arb.pi().sqrt() * (t / 2).erfc()
    )


__all__ = ["gaussian_half_sum", "gaussian_sum"]
