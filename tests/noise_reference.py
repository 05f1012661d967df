"""Cumulative probabilities recomputed without the code under test.

Ball arithmetic and recurrences are what the library uses; here the standard
library's correctly rounded ``Decimal.exp`` computes every term on its own, masses
are added one by one, and the normaliser of the Gaussian comes from Poisson's
summation formula.  The two ways share no formula and no arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate

DIGITS = 100
"""Working digits: 192 binary digits of a cumulative are 58 decimal ones."""

_GUARD = Decimal(10) ** -25
"""An enclosure at 192 binary digits that came this close to a whole number would be refused."""


def exp(x: Fraction) -> Decimal:
    return (Decimal(x.numerator) / Decimal(x.denominator)).exp()


def binary_digits(cumulative: Decimal, bits: int) -> int:
    """floor(cumulative * 2**bits), refusing to guess."""
    scaled = cumulative * 2**bits
    below = int(scaled)
    if not _GUARD < scaled - below < 1 - _GUARD:
        raise ArithmeticError("too close to a whole number")
    return below


def cumulatives(masses: Iterable[Decimal]) -> list[Decimal]:
    return list(accumulate(masses))


@cache
def pi() -> Decimal:
    """Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239)."""

    def arctan_of_inverse(n: int) -> Decimal:
        return sum(
            (Decimal((-1) ** k) / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(90)),
            Decimal(0),
        )

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


def theta(sigma_squared: Fraction) -> Decimal:
    """The sum over all integers of exp(-z**2 / 2 sigma_squared), by Poisson summation."""
    variance = Decimal(sigma_squared.numerator) / Decimal(sigma_squared.denominator)
    waves = sum(
        ((-2 * pi() ** 2 * variance * k**2).exp() for k in range(1, 40)),
        Decimal(0),
    )
    return (2 * pi() * variance).sqrt() * (1 + 2 * waves)


def laplace_blocks(scale: Fraction, block: int, count: int) -> list[Decimal]:
    """Masses of floor(z / block) in the order 0, -1, 1, -2, ..., for P(z) ~ exp(-|z| / scale)."""
    q = exp(-1 / scale)
    inside = (1 - exp(-block / scale)) / (1 + q)
    masses = []
    for y in range(-(-count // 2)):
        nonnegative = inside * exp(-y * block / scale)
        masses += [nonnegative, nonnegative * q]
    return masses[:count]


def geometric_blocks(scale: Fraction, block: int, count: int) -> list[Decimal]:
    """Masses of floor(z / block) for P(z) ~ exp(-z / scale) on z >= 0."""
    first = 1 - exp(-block / scale)
    return [first * exp(-y * block / scale) for y in range(count)]


def digit(step: Fraction, bits: int) -> list[Decimal]:
    """Masses of d < 2**bits with P(d) ~ exp(-d step)."""
    weights = [exp(-d * step) for d in range(2**bits)]
    total = sum(weights, Decimal(0))
    return [weight / total for weight in weights]


def gaussian(sigma_squared: Fraction, count: int) -> list[Decimal]:
    """Masses in the order 0, -1, 1, -2, ... for P(z) ~ exp(-z**2 / 2 sigma_squared)."""
    total = theta(sigma_squared)
    sizes = [exp(Fraction(-(z**2)) / (2 * sigma_squared)) / total for z in range(count // 2 + 1)]
    return [sizes[-(-position // 2)] for position in range(count)]


def half_gaussian(sigma_squared: Fraction, count: int) -> list[Decimal]:
    """Masses of y >= 0 with P(y) ~ exp(-y**2 / 2 sigma_squared)."""
    total = (theta(sigma_squared) + 1) / 2
    return [exp(Fraction(-(y**2)) / (2 * sigma_squared)) / total for y in range(count)]
