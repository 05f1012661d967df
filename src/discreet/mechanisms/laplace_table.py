"""Discrete Laplace probabilities at every whole distance, for sums over the noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.exact.balls import ball


@dataclass(frozen=True, slots=True)
class LaplaceTable:
    """P(Z = d) and P(Z < d) for |d| up to a reach, as balls at the precision in force.

    The powers of q = exp(-1 / scale) are made by multiplication, which is much
    faster than an exponential each and widens the balls by the logarithm of the
    reach in bits.
    """

    center: arb
    powers: list[arb]
    far: list[arb]

    @classmethod
    def of(cls, scale: Fraction, reach: int) -> LaplaceTable:
        """For distances up to ``reach`` on both sides."""
        q = ball(-1 / scale).exp()
        powers = [arb(1)]
        for _ in range(reach + 1):
            powers.append(powers[-1] * q)
        share = 1 / (1 + q)
        return cls((ball(1 / scale) / 2).tanh(), powers, [power * share for power in powers])

    def mass(self, distance: int) -> arb:
        """P(Z = distance)."""
        return self.center * self.powers[abs(distance)]

    def below(self, distance: int) -> arb:
        """P(Z < distance)."""
        return 1 - self.far[distance] if distance >= 1 else self.far[1 - distance]


def summation_reach(scale: Fraction) -> tuple[int, arb]:
    """How far out to sum, and a ball around 0 of what one noise weighs beyond that."""
    bits = ctx.prec + 8
    return DiscreteLaplaceLaw(center=0, scale=scale).window(bits)[1], arb(0, arb(2) ** -bits)
