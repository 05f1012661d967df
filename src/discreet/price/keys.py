"""Groups nobody listed: released only when enough people share them.

A group that appears because of one unit must stay hidden except with
probability delta.  Where the number of units of each group is released with
noise anyway, that noisy number decides, and is paid for once: the group is shown
when it is at least ``threshold``, and with certain odds when it is one less.
Where it is not, :class:`~discreet.mechanisms.KeyRelease` decides: no other rule
shows any group more often.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from discreet.exact.balls import ball, enclose, precision
from discreet.exact.numbers import round_up
from discreet.exact.records import dataclass
from discreet.exact.search import double, greatest_integer, least_integer
from discreet.mechanisms import Gaussian, KeyRelease
from discreet.mechanisms.clipping import ClippedSums
from discreet.price.calibration import Additive, Bought, Selection, gaussian_loss
from discreet.price.plan import Measurement, Moments, Moves, Reach, Sensitivity, Units
from discreet.price.summed import Summed

_FINEST = Fraction(1, 2**1024)
_ALMOST = 1 - Fraction(1, 2**64)
_ODDS = Fraction(1, 2**32)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Show a group when its noisy number of units is at least ``least``.

    One less is shown with probability ``odds``.  Where the measurement is released by
    ``KeyRelease`` its number is 1 for a group that is shown and 0 for any other.
    """

    measurement: int
    least: int
    delta: Fraction
    odds: Fraction = Fraction(0)


def find_deciding(measurements: tuple[Measurement, ...], reach: Reach) -> int | None:
    """Which measurement is the number of units of every group; None if none is.

    Rows are units where nobody has two of them in a group.
    """
    for index, measurement in enumerate(measurements):
        if measurement == Units() or (measurement == Moments() and reach.rows_per_group == 1):
            return index
    return None


def find_threshold(
    measurement: int, mechanism: Additive, groups: int, delta: Fraction, *, split: bool = True
) -> Threshold:
    """The least threshold that hides a unit's own groups except with probability ``delta``.

    A group held by one unit has a noisy count of 1 + Z and is shown when
    1 + Z >= least, mass at the threshold included.  A unit alone in ``groups``
    groups is seen in none of them with probability (1 - p)**groups, exactly,
    because their noises are independent.  ``split``: what delta leaves over
    buys odds for noisy counts of least - 1.
    """
    least = least_integer(
        lambda t: compute_exposure(mechanism, groups, t) <= delta,
        fails_at=0,
        near=_guess_threshold(mechanism, delta / groups),
    )
    odds = _find_odds(mechanism, groups, least, delta) if split and least > 1 else Fraction(0)
    return Threshold(measurement, least, compute_exposure(mechanism, groups, least, odds), odds)


def _guess_threshold(mechanism: Additive, chance: Fraction) -> int:
    """About where the noise passes with a chance: the first of the tests that decide."""
    far = math.log(chance.denominator) - math.log(chance.numerator)
    if isinstance(mechanism, Gaussian):  # erfc(x) is about exp(-x**2) / (x sqrt(pi))
        square = Fraction(max(0.0, 2 * far - math.log(max(1.0, 4 * math.pi * far))))
        return 2 + math.isqrt(math.ceil(square * mechanism.sigma_squared))
    return 2 + mechanism.noise_law.window(math.floor(far / math.log(2)))[1]


def compute_exposure(
    mechanism: Additive, groups: int, least: int, odds: Fraction = Fraction(0)
) -> Fraction:
    """The probability, rounded up, that a unit alone in ``groups`` groups is seen in any.

    In steps of the finest: a probability of thousands of digits helps nobody, and takes minutes.
    """
    law = mechanism.noise_law

    def one() -> arb:
        shown = law.tail(least - 1)
        return shown + ball(odds) * law.mass(least - 2) if odds else shown

    def probability() -> arb:
        return -(((-one()).log1p() * groups).expm1())

    with precision(128):
        if one() > ball(_ALMOST):
            return Fraction(1)
        if probability() < ball(_FINEST):
            return _FINEST
    return round_up(enclose(probability)[1], _FINEST)


def _find_odds(mechanism: Additive, groups: int, least: int, delta: Fraction) -> Fraction:
    """The odds that use up delta: 1 - (1 - tail - odds * mass)**groups = delta, rounded down."""
    law = mechanism.noise_law

    def odds() -> arb:
        each = -((ball(-delta).log1p() / groups).expm1())
        return (each - law.tail(least - 1)) / law.mass(least - 2)

    def hides(steps: int) -> bool:
        return compute_exposure(mechanism, groups, least, steps * _ODDS) <= delta

    steps = min(int(max(enclose(odds)[0], Fraction(0)) / _ODDS), int(1 / _ODDS) - 1)
    if not hides(steps):  # two enclosures need not agree to the last digit
        back = double(lambda fewer: hides(steps - fewer), 1, most=steps)
        steps = greatest_integer(hides, holds_at=max(0, steps - back), fails_at=steps - back // 2)
    return steps * _ODDS


def covers(
    mechanism: Gaussian, threshold: Threshold, groups: int, epsilon: Fraction, delta: Fraction
) -> bool:
    """Whether noisy counts of units behind a threshold are (epsilon, delta)-private together.

    Lemma 9: of a unit's groups (of those it leaves and those it joins, if it changes) those in
    which it is alone, j of them, are hidden but with probability e_j, and only the others,
    groups - j, have noise to hide it: so delta need not pay for all of both.  What grows with j
    and what falls are bounded at the ends of ever shorter runs of j, until every run is covered.
    """
    spread = mechanism.sigma_squared
    each = compute_exposure(mechanism, 1, threshold.least, threshold.odds)

    def weigh(alone: int) -> Fraction:
        hidden = (1 - each) ** alone if alone <= _FEW else 1 - min(alone * each, Fraction(1))
        return (1 - hidden) / hidden if hidden else Fraction(1)

    def run(least: int, most: int) -> bool:
        left = groups - least
        noise = Fraction(0)
        if left:
            moves = Moves(left, (left, 1), left - 1)
            noise = gaussian_loss(spread, Sensitivity(left, left), moves, epsilon)
        if noise + weigh(most) <= delta:
            return True
        middle = (least + most) // 2
        return least < most and run(least, middle) and run(middle + 1, most)

    return run(0, groups)


_FEW = 64
"""Up to so many groups the probability to be seen in any is computed, beyond it is bounded."""


def find_shown_share(threshold: Threshold, bought: Bought, units: int) -> float:
    """The probability that a group of so many units is shown; a description, so in doubles."""
    if isinstance(bought, KeyRelease):
        return float(bought.probability(units))
    if isinstance(bought, Selection | ClippedSums | Summed):
        raise TypeError("units are counted, not chosen")
    law = bought.noise_law
    missing = threshold.least - units

    def share() -> arb:
        return law.tail(missing) + ball(threshold.odds) * law.mass(missing - 1)

    return float(enclose(share, bits=40)[1])


def least_units(threshold: Threshold, bought: Bought, share: float = 0.5) -> int:
    """The fewest units with which a group is shown at least so often."""
    return least_integer(lambda n: find_shown_share(threshold, bought, n) >= share, fails_at=0)


def rank_threshold(threshold: Threshold, bought: Bought) -> tuple[int, float]:
    """Whose groups need fewer units come first; among equals, who shows those more often."""
    units = least_units(threshold, bought)
    return units, -math.floor(1000 * find_shown_share(threshold, bought, units))
