"""The profiles that are closed forms: one release at a time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from flint import arb

from discreet.accounting.conversion import EPSILON_UNITS, INFINITY, Amount
from discreet.accounting.law import DiscreteGaussianLaw
from discreet.accounting.loss import Loss, failure_mass
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import ball, ends, precision
from discreet.exact.numbers import Exact, nonnegative, positive
from discreet.exact.search import least_integer

TAIL_BITS: Final = 112
"""What is less likely than 2**-TAIL_BITS is not resolved, but counted on the safe side."""

_WRITTEN_BITS: Final = 4096  # a delta below 2**-4096 is reported as that
_MOST_REACH: Final = 1 << 20


class Profile(ABC):
    """Delta as a function of epsilon; every number returned is an upper bound."""

    __slots__ = ()

    @abstractmethod
    def curve(self, epsilon: Fraction) -> arb:
        """A ball around delta at ``epsilon`` (negative ones too), at the precision in force."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The same mechanism as a charge."""

    @property
    @abstractmethod
    def reach(self) -> Fraction:
        """A privacy loss that is exceeded with probability below 2**-TAIL_BITS, or never."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The typical size of the privacy loss; decides the grid, not the guarantee."""

    def delta_at(self, epsilon: Exact) -> Fraction:
        """The delta of this ``epsilon``, rounded up."""
        target = nonnegative(epsilon, name="epsilon")
        return _least_upper(lambda: self.curve(target))

    def epsilon_at(self, delta: Exact) -> Amount:
        """The least epsilon certified for this ``delta``, rounded up to a unit."""
        mass = failure_mass(delta)
        most = self.loss.epsilon_at(mass)
        if isinstance(most, float):
            return INFINITY
        # The relative error of 2**-40 is far below what any reader will see.
        units = least_integer(
            lambda n: self.delta_at(Fraction(n, EPSILON_UNITS)) <= mass,
            holds_at=math.ceil(most * EPSILON_UNITS),
            bits=40,
        )
        return Fraction(units, EPSILON_UNITS)


def find_profile(release: object) -> Profile:
    """A profile as it is, or that of a mechanism which knows its own.

    >>> from discreet.mechanisms import Laplace
    >>> find_profile(Laplace(sensitivity=3, epsilon="1/4", entries_changed=1))
    LaplaceProfile(sensitivity=Fraction(3, 1), scale=Fraction(12, 1), grid=Fraction(1, 1))
    """
    found = release if isinstance(release, Profile) else getattr(release, "profile", None)
    if isinstance(found, Profile):
        return found
    loss = getattr(release, "loss", None)
    known = "AnyProfile(epsilon, delta)"
    if isinstance(loss, Loss) and not isinstance(loss.epsilon, float):
        known = f"AnyProfile('{loss.epsilon}', '{loss.delta}')"
    raise InvalidParameter(
        "P4",
        f"no profile of {quote_value(release)} is known.",
        why="what many releases cost together follows from delta at every epsilon, and not from "
        "the price of one alone.",
        fix="pass a profile such as LaplaceProfile(sensitivity=1, scale=20); a Laplace or Gaussian "
        "mechanism with entries_changed=1, if one unit changes one number only; or, which holds "
        f"for whatever has this price, {known}.",
    )


def _least_upper(function: Callable[[], arb]) -> Fraction:
    """The upper end of a ball, as a probability; good to 2**-160, absolutely."""
    with precision(160):
        value = function()
        if value <= 0:
            return Fraction(0)
        if value < arb(2) ** -_WRITTEN_BITS:  # perhaps zero, perhaps not
            return Fraction(1, 2**_WRITTEN_BITS)
        return min(Fraction(1), max(Fraction(0), ends(value)[1]))


@dataclass(frozen=True, slots=True, init=False)
class LaplaceProfile(Profile):
    """One number plus Laplace noise on multiples of ``grid`` (0: the continuous law).

    ``sensitivity`` is how far one unit moves the number, ``scale`` that of the noise.

    >>> noise = LaplaceProfile(sensitivity=4, scale=2)
    >>> round(float(noise.delta_at(1)), 8)
    0.39346934
    """

    sensitivity: Fraction
    scale: Fraction
    grid: Fraction

    def __init__(self, *, sensitivity: Exact, scale: Exact, grid: Exact = 1) -> None:
        object.__setattr__(self, "scale", positive(scale, name="scale"))
        _set_sensitivity(self, sensitivity, grid)

    @property
    def loss(self) -> Loss:
        """Its exact pure loss and the tight rho."""
        return Loss.laplace(sensitivity=self.sensitivity, scale=self.scale, grid=self.grid)

    @property
    def reach(self) -> Fraction:
        """The loss never exceeds sensitivity / scale."""
        return self.sensitivity / self.scale

    @property
    def spread(self) -> float:
        """About the square root of 2 rho."""
        return math.sqrt(2 * float(self.loss.rho))

    def curve(self, epsilon: Fraction) -> arb:
        """At ``epsilon``: P(Z <= t) - e**epsilon P(Z <= t - sensitivity) for the best t."""
        most = self.reach
        if epsilon >= most:
            return arb(0)
        if epsilon <= -most:
            return -ball(epsilon).expm1()
        if self.grid == 0:
            return -ball((epsilon - most) / 2).expm1()
        distance = self.sensitivity / self.grid
        step = self.grid / self.scale
        # The outcomes z with (distance - 2 z) step > epsilon are worth more than e**epsilon.
        t = math.ceil((distance - epsilon / step) / 2) - 1
        q = ball(-step).exp()
        above = ball(-step * (t + 1)).exp() + ball(epsilon - step * (distance - t)).exp()
        return 1 - above / (1 + q)


@dataclass(frozen=True, slots=True, init=False)
class GaussianProfile(Profile):
    """One number plus Gaussian noise on multiples of ``grid`` (0: the continuous law).

    ``sensitivity`` is how far one unit moves the number, ``sigma_squared`` the parameter of the
    noise.

    >>> noise = GaussianProfile(sensitivity=2, sigma_squared=4, grid=0)
    >>> round(float(noise.delta_at(1)), 8)
    0.12693674
    """

    sensitivity: Fraction
    sigma_squared: Fraction
    grid: Fraction

    def __init__(self, *, sensitivity: Exact, sigma_squared: Exact, grid: Exact = 1) -> None:
        object.__setattr__(self, "sigma_squared", positive(sigma_squared, name="sigma_squared"))
        _set_sensitivity(self, sensitivity, grid)

    @property
    def loss(self) -> Loss:
        """Its rho."""
        return Loss.gaussian(sensitivity=self.sensitivity, sigma_squared=self.sigma_squared)

    @property
    def reach(self) -> Fraction:
        """By the sub-Gaussian tail exp(-t**2 / 2) of the noise in units of sigma."""
        squared = self.sensitivity**2 / self.sigma_squared
        t_squared = 2 * TAIL_BITS  # ln 2 < 1
        return squared / 2 + Fraction(math.isqrt(math.ceil(squared * t_squared * 2**64)) + 1, 2**32)

    @property
    def spread(self) -> float:
        """Sensitivity / sigma."""
        return math.sqrt(2 * float(self.loss.rho))

    def curve(self, epsilon: Fraction) -> arb:
        """At ``epsilon``: P(Z <= t) - e**epsilon P(Z <= t - sensitivity) for the best t."""
        # (s**2 - 2 s z) / 2 sigma**2 > epsilon is z < s / 2 - epsilon sigma**2 / s.
        s = self.sensitivity
        threshold = s / 2 - epsilon * self.sigma_squared / s
        growth = ball(epsilon).exp()
        if self.grid == 0:
            root = (2 * ball(self.sigma_squared)).sqrt()
            near, far = ball(-threshold) / root, ball(s - threshold) / root
            return (near.erfc() - growth * far.erfc()) / 2
        law = DiscreteGaussianLaw(0, self.sigma_squared / self.grid**2)
        # By symmetry P(Z <= t) = P(Z >= -t).
        t = math.ceil(threshold / self.grid) - 1
        return law.tail(-t) - growth * law.tail(math.floor(s / self.grid) - t)


@dataclass(frozen=True, slots=True, init=False)
class AnyProfile(Profile):
    """Any (``epsilon``, ``delta``)-private mechanism, by the worst there is: randomised response.

    Kairouz, Oh and Viswanath (2015): every such mechanism is a randomised
    function of one that gives the bit away with probability delta and answers
    by randomised response otherwise.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact = 0) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon"))
        object.__setattr__(self, "delta", failure_mass(delta))
        _refuse_unless_within_reach(self)

    @property
    def loss(self) -> Loss:
        """As for any such mechanism."""
        return Loss.approximate(self.epsilon, self.delta)

    @property
    def reach(self) -> Fraction:
        """Beyond epsilon there is only failure."""
        return self.epsilon

    @property
    def spread(self) -> float:
        """The loss is epsilon or -epsilon."""
        return float(self.epsilon)

    def curve(self, epsilon: Fraction) -> arb:
        """At ``epsilon``, delta + (1-delta) (e**a - e**epsilon) / (1 + e**a) where a is its own."""
        a = self.epsilon
        if epsilon >= a:
            return ball(self.delta)
        rest = ball(1 - self.delta)
        if epsilon <= -a:
            return ball(self.delta) - rest * ball(epsilon).expm1()
        return ball(self.delta) - rest * ball(epsilon - a).expm1() / (1 + ball(-a).exp())


def _set_sensitivity(profile: Profile, sensitivity: Exact, grid: Exact) -> None:
    reach, step = positive(sensitivity, name="sensitivity"), nonnegative(grid, name="grid")
    if step and (reach / step).denominator != 1:
        raise InvalidParameter(
            "P6",
            f"the sensitivity {reach} is not a multiple of the grid {step}.",
            why="a value on the grid moves by whole steps, and the profile is that of the steps.",
            fix="pass the sensitivity as a multiple of the grid, or grid=0 for continuous noise.",
        )
    object.__setattr__(profile, "sensitivity", reach)
    object.__setattr__(profile, "grid", step)
    _refuse_unless_within_reach(profile)


def _refuse_unless_within_reach(profile: Profile) -> None:
    if profile.reach > _MOST_REACH:
        raise InvalidParameter(
            "P2",
            f"this release may lose more than {_MOST_REACH:,}.",
            why="a loss of e to this power protects nobody, and its digits would fill the memory.",
            fix="add more noise, or pass a smaller epsilon.",
        )
