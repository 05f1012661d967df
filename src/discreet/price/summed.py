"""The noise of a sum: independent draws of known laws, added up.

What is derived from released numbers has the noise of all of them.  Its margin comes from the
law of the sum itself: on the integers by one Fourier transform of the product of the
characteristic functions (``docs/proofs/known.md``, Lemma 2), which is exact up to rounding and an
aliasing that is far below any beta that is asked for.  Staircases have tails that their variance
does not tell; how long their transform must be is found by exponential moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import NOTHING, Loss
from discreet.exact.numbers import Exact, proportion
from discreet.exact.records import dataclass
from discreet.mechanisms import Gaussian, Laplace, Staircase

Floats = NDArray[np.float64]

_LEAST_BETA = Fraction(1, 10**9)
"""Below, the transform has too few digits, and a bound that adds up margins takes its place."""
_MOST_POINTS, _MOST_WEIGHTED = 1 << 20, 1 << 17
"""Longer transforms are taken on a coarser lattice; with weights nobody needs the last unit."""
_DEVIATIONS = 80
"""The transform is as long as so many standard deviations: beyond half of it lies less than
exp(-50) of any sum of these laws."""
_ROUNDING, _COARSE = 1e-12, 1e-6
_RATES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
"""At which parts of the largest rate exponential moments are tried."""


@dataclass(frozen=True, slots=True)
class Term:
    """``count`` draws of one law, each times ``weight``."""

    law: Laplace | Gaussian | Staircase
    count: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Summed:
    """The noise of one entry that was added up from released entries; nobody draws it.

    >>> one = Laplace(sensitivity=1, epsilon="0.1")
    >>> [Summed((Term(one, k),)).margin("0.05") for k in (1, 8, 40)]
    [30, 79, 176]
    """

    terms: tuple[Term, ...]
    below: int = 1
    """What the sum is divided by."""

    @property
    def loss(self) -> Loss:
        """Nothing: what was released may be added up for free."""
        return NOTHING

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        return sum(t.count * t.weight**2 * t.law.variance for t in self.terms) / self.below**2

    @property
    def draws(self) -> int:
        """How many draws are added up."""
        return sum(term.count for term in self.terms)

    def combine(self, weights: Sequence[Fraction]) -> Summed:
        """The noise of a combination of entries that each have this noise, independently."""
        below = math.lcm(*(weight.denominator for weight in weights))
        whole = [abs(int(weight * below)) for weight in weights if weight]
        common = math.gcd(*whole) or 1
        terms = tuple(
            Term(term.law, term.count * whole.count(size), term.weight * (size // common))
            for size in sorted(set(whole))
            for term in self.terms
        )
        ratio = Fraction(common, below * self.below)
        scaled = tuple(Term(t.law, t.count, t.weight * ratio.numerator) for t in terms)
        return Summed(scaled, ratio.denominator)

    def margin(self, beta: Exact) -> float:
        """The least m with P(|noise| > m) <= beta; where no transform tells, one that is enough."""
        steps = _find_margin(self.terms, proportion(beta, name="beta"))
        return steps if self.below == 1 else steps / self.below


@lru_cache(maxsize=4096)
def _find_margin(terms: tuple[Term, ...], beta: Fraction) -> int:
    draws = sum(term.count for term in terms)
    if not draws:
        return 0
    common = math.gcd(*(term.weight for term in terms))
    if common > 1:
        plain_terms = tuple(Term(t.law, t.count, t.weight // common) for t in terms)
        return common * _find_margin(plain_terms, beta)
    if draws == 1:
        return terms[0].weight * int(terms[0].law.margin(beta))
    enough = _add_margins(terms, beta / draws)
    if beta < _LEAST_BETA:
        return enough
    stairs = any(isinstance(term.law, Staircase) for term in terms)
    deviation = math.sqrt(sum(t.count * t.weight**2 * t.law.variance for t in terms))
    length = _DEVIATIONS * deviation + 64
    if stairs:
        length = max(length, 2 * _find_reach(terms))
    points = 1 << max(10, math.ceil(math.log2(length)))
    plain = stairs or all(term.weight == 1 for term in terms)
    step = max(1, points // (_MOST_POINTS if plain else _MOST_WEIGHTED))
    tails = 1 - _cumulate(_transform(terms, points // step, step))
    small = tails <= float(beta) - (_ROUNDING if step == 1 else _COARSE)
    if not small.any():  # a beta that the transform cannot tell from nothing
        return enough
    found = int(np.argmax(small))
    if step > 1:  # a staircase has jumps, which blur over the lattice
        found = (found + (3 if stairs else 1)) * step
    return min(found, enough)


def _transform(terms: tuple[Term, ...], points: int, step: int) -> Floats:
    """The masses at 0, step, ...: the product of characteristic functions, turned back."""
    t = 2 * np.pi * np.fft.rfftfreq(points) / step
    product = np.ones_like(t)
    for term in terms:
        product = product * _characteristic(term.law, term.weight * t) ** term.count
    masses: Floats = np.fft.irfft(product, points)
    return masses[: points // 2]


def _characteristic(law: Laplace | Gaussian | Staircase, t: Floats) -> Floats:
    found: Floats
    turned = t - 2 * np.pi * np.round(t / (2 * np.pi))
    match law:
        case Laplace(scale=scale):
            rest = -math.expm1(-1 / float(scale))
            found = rest**2 / (rest**2 + 4 * (1 - rest) * np.sin(t / 2) ** 2)
        case Staircase(steps=steps, width=width, epsilon=epsilon):
            up = -math.expm1(-float(epsilon))
            half = _sum_powers(turned, width) * up + (1 - up) * _sum_powers(turned, steps)
            half = half / (1 - (1 - up) * np.exp(1j * steps * turned))
            whole = (width * up + (1 - up) * steps) / up
            found = (2 * half.real - 1) / (2 * whole - 1)
        case Gaussian(sigma_squared=sigma_squared):
            # Poisson's summation: the sum over integers of a Gaussian is one over its aliases.
            spread = float(sigma_squared)
            many = 4 if spread > 0.05 else 60
            aliases = 2 * np.pi * np.arange(-many, many + 1)
            total = np.exp(-spread * (turned[:, None] - aliases) ** 2 / 2).sum(axis=1)
            found = total / np.exp(-spread * aliases**2 / 2).sum()
    return found


def _sum_powers(t: Floats, count: int) -> NDArray[np.complex128]:
    """1 + exp(it) + ... + exp(i (count - 1) t), for t within a turn; t may be tiny."""
    with np.errstate(all="ignore"):
        ratio = np.where(t == 0, float(count), np.sin(count * t / 2) / np.sin(t / 2))
    found: NDArray[np.complex128] = ratio * np.exp(0.5j * (count - 1) * t)
    return found


def _find_reach(terms: tuple[Term, ...]) -> float:
    """A size that the sum exceeds with probability exp(-50) at most, by exponential moments."""
    rates = []
    for term in terms:
        if isinstance(term.law, Laplace):
            rates.append(1 / (float(term.law.scale) * term.weight))
        elif isinstance(term.law, Staircase):
            rates.append(float(term.law.epsilon) / (term.law.steps * term.weight))
    found = math.inf
    for part in _RATES:
        rate = part * min(rates)
        logs = sum(t.count * _log_moment(t.law, rate * t.weight) for t in terms)
        found = min(found, (51 + logs) / rate)
    return found


def _log_moment(law: Laplace | Gaussian | Staircase, rate: float) -> float:
    """The logarithm of E exp(rate Z), or a little more."""
    match law:
        case Laplace(scale=scale):
            least = 1 / float(scale)
            both = math.expm1(rate - least) * math.expm1(-rate - least)
            return math.log(math.expm1(-least) ** 2 / both)
        case Gaussian(sigma_squared=sigma_squared):
            return float(sigma_squared) * rate * rate / 2  # discrete noise has no more
        case Staircase(steps=steps, epsilon=epsilon):
            # |Z| lies in block j, jS <= |Z| < (j + 1) S, with at most twice a geometric chance.
            price = float(epsilon)
            blocks = math.expm1(-price) / math.expm1(steps * rate - price)
            return steps * rate + math.log(2 * blocks)


def _cumulate(masses: Floats) -> Floats:
    """P(|noise| <= m) for m = 0, 1, ..."""
    found: Floats = 2 * np.cumsum(masses) - masses[0]
    return found


def _add_margins(terms: tuple[Term, ...], beta: Fraction) -> int:
    """Each draw within its own margin, all at once: never too small."""
    return sum(t.count * t.weight * int(t.law.margin(beta)) for t in terms)


__all__ = ["Summed", "Term"]
