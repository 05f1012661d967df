"""The noise bought for one measurement, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.exact.numbers import down
from discreet.exact.search import bracket
from discreet.noise import discrete_gaussian, discrete_laplace
from discreet.noise.gaussian import GREATEST_SIGMA_SQUARED
from discreet.noise.laplace import GREATEST_SCALE
from discreet.price.sensitivity import Sensitivity

_STEP = Fraction(1, 2**20)


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise on every entry."""

    scale: Fraction
    sensitivity: Sensitivity

    @classmethod
    def buy(cls, epsilon: Fraction, sensitivity: Sensitivity) -> LaplaceNoise:
        """The least noise of at most this pure loss."""
        return cls(sensitivity.l1 / epsilon, sensitivity)

    @property
    def loss(self) -> Loss:
        """What it costs one unit."""
        return Loss.laplace(sensitivity=self.sensitivity.l1, scale=self.scale)

    @property
    def variance(self) -> float:
        """The variance of one entry's noise (of the continuous law, never less)."""
        return 2.0 * float(self.scale) ** 2

    @property
    def drawable(self) -> bool:
        """Whether draws fit 64-bit integers."""
        return self.scale <= GREATEST_SCALE


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise on every entry."""

    sigma_squared: Fraction
    sensitivity: Sensitivity

    @classmethod
    def buy(cls, rho: Fraction, sensitivity: Sensitivity) -> GaussianNoise:
        """The least noise of at most this concentrated loss."""
        return cls(sensitivity.l2_squared / (2 * rho), sensitivity)

    @property
    def loss(self) -> Loss:
        """What it costs one unit."""
        return Loss.gaussian(
            sensitivity_squared=self.sensitivity.l2_squared, sigma_squared=self.sigma_squared
        )

    @property
    def variance(self) -> float:
        """The variance of one entry's noise."""
        return float(self.sigma_squared)

    @property
    def drawable(self) -> bool:
        """Whether draws fit 64-bit integers."""
        return self.sigma_squared <= GREATEST_SIGMA_SQUARED


@dataclass(frozen=True, slots=True)
class SelectionNoise:
    """Choices made by the exponential mechanism, ``choices`` one after another in each group.

    One unit is in at most ``groups`` groups.  In each it moves scores by at most
    ``score_change`` in all (a change of a unit: what it takes away and what it
    adds), and ``epsilon`` is what one choice costs it.
    """

    epsilon: Fraction
    choices: int
    groups: int
    score_change: int

    @property
    def loss(self) -> Loss:
        """What it costs one unit."""
        return (self.choices * self.groups) * Loss.exponential(self.epsilon)

    @property
    def drawable(self) -> bool:
        """A choice can be made at any price."""
        return True


Noise = LaplaceNoise | GaussianNoise


def noised(noise: Noise, entries: NDArray[Any]) -> NDArray[Any]:
    """Every entry plus its own draw, in integers of any size."""
    if isinstance(noise, LaplaceNoise):
        draws = discrete_laplace(noise.scale, entries.size)
    else:
        draws = discrete_gaussian(noise.sigma_squared, entries.size)
    total: NDArray[Any] = entries.astype(object) + draws.reshape(entries.shape).astype(object)
    return total


def cheapest_of_rho(rho: Fraction, sensitivity: Sensitivity) -> Noise:
    """Laplace or Gaussian noise of at most this concentrated loss, whichever is smaller."""
    gaussian = GaussianNoise.buy(rho, sensitivity)
    laplace = LaplaceNoise.buy(_laplace_epsilon(rho), sensitivity)
    if laplace.loss.rho <= rho and laplace.variance < gaussian.variance:
        return laplace
    return gaussian


def _laplace_epsilon(rho: Fraction) -> Fraction:
    """An epsilon whose Laplace noise loses about ``rho``: solves e - (1 - exp(-e)) = rho."""
    most = float(rho) + math.sqrt(2 * float(rho)) + 1.0
    below, _ = bracket(
        lambda e: e + math.expm1(-e) > float(rho), fails_at=0.0, holds_at=most, halvings=60
    )
    # The law on the integers loses a little more than the continuous one: stay below.
    return max(down(Fraction(below * 0.999), _STEP), _STEP)
