"""Groups nobody listed: released only when enough people share them.

A group that appears because of one unit must stay hidden except with
probability delta.  Each group's number of units is released with noise, and the
group is shown when that noisy number is at least ``threshold``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet.exact.balls import enclose
from discreet.exact.numbers import round_up
from discreet.exact.search import least_integer
from discreet.price.calibration import Additive

_FINEST = Fraction(1, 2**1024)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Show a group when its noisy number of units is at least ``least``."""

    measurement: int
    least: int
    delta: Fraction


def find_threshold(
    measurement: int, mechanism: Additive, groups: int, delta: Fraction
) -> Threshold:
    """The least threshold that hides a unit's own groups except with probability ``delta``.

    A group held by one unit has a noisy count of 1 + Z and is shown when
    1 + Z >= least, mass at the threshold included.  A unit alone in ``groups``
    groups is seen in none of them with probability (1 - p)**groups, exactly,
    because their noises are independent.
    """
    least = least_integer(lambda t: compute_exposure(mechanism, groups, t) <= delta, fails_at=0)
    return Threshold(measurement, least, compute_exposure(mechanism, groups, least))


def compute_exposure(mechanism: Additive, groups: int, least: int) -> Fraction:
    """The probability, rounded up, that a unit alone in ``groups`` groups is seen in any."""
    law = mechanism.noise_law

    def probability() -> arb:
        return -(((-law.tail(least - 1)).log1p() * groups).expm1())

    return round_up(
        enclose(probability)[1], _FINEST
    )  # a probability of thousands of digits helps nobody
