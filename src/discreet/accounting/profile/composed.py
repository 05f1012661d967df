"""The profile of many releases, by their privacy-loss distribution in integers.

Every mass is a whole number of 2**-192 and only ever rounds up; see
docs/proofs/profile.md for why the result is an upper bound.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from flint import arb, fmpz_poly

from discreet.accounting.conversion import EPSILON_UNITS, INFINITY, Amount
from discreet.accounting.loss import Loss, failure_mass
from discreet.accounting.profile.closed import TAIL_BITS, GaussianProfile, Profile
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, ends, log_up, precision
from discreet.exact.numbers import Exact, round_up
from discreet.exact.search import least_integer

_BITS: Final = 192
_STEPS: Final = 48  # grid steps in one typical privacy loss: the error falls with its square
_MOST_CELLS: Final = 1 << 18


def compose(profiles: Iterable[Profile]) -> Profile:
    """The profile of all of them together.

    Adaptive in the questions, not in the list: the k-th release may ask anything
    that has the k-th profile.

    >>> from discreet.accounting.profile import LaplaceProfile
    >>> together = compose([LaplaceProfile(sensitivity=2, scale=20, grid=0)] * 50)
    >>> round(float(together.epsilon_at("1e-6")), 2)
    3.12
    """
    counts = Counter(profiles)
    if not counts:
        raise InvalidParameter(
            "P5",
            "there are no releases to compose.",
            why="an account of nothing would say that nothing can be lost.",
            fix="pass at least one profile, such as LaplaceProfile(sensitivity=1, scale=20).",
        )
    gathered = _gather_gaussians(counts)
    if len(gathered) == 1 and next(iter(gathered.values())) == 1:
        return next(iter(gathered))
    return ComposedProfile(tuple(gathered.items()))


def _gather_gaussians(counts: Counter[Profile]) -> dict[Profile, int]:
    """Continuous Gaussians compose to one: the losses are normal, and normal laws add."""
    others: dict[Profile, int] = {}
    squared = Fraction(0)
    for profile, count in counts.items():
        if isinstance(profile, GaussianProfile) and profile.grid == 0:
            squared += count * profile.sensitivity**2 / profile.sigma_squared
        else:
            others[profile] = count
    if squared:
        others[GaussianProfile(sensitivity=1, sigma_squared=1 / squared, grid=0)] = 1
    return others


@dataclass(frozen=True, slots=True)
class ComposedProfile(Profile):
    """Several releases, with how many there are of each, by their privacy-loss distribution."""

    parts: tuple[tuple[Profile, int], ...]

    @property
    def loss(self) -> Loss:
        """The sum of the parts'."""
        total = [count * part.loss for part, count in self.parts]
        return sum(total[1:], total[0])

    @property
    def reach(self) -> Fraction:
        """The sum of the parts'."""
        return sum((count * part.reach for part, count in self.parts), Fraction(0))

    @property
    def spread(self) -> float:
        """Independent losses: the squares add."""
        return math.sqrt(sum(count * part.spread**2 for part, count in self.parts))

    def curve(self, epsilon: Fraction) -> arb:
        """A ball around an upper bound of delta."""
        return _tables(self).curve(epsilon)

    def epsilon_at(self, delta: Exact) -> Amount:
        """The least epsilon certified for this delta, rounded up to a unit."""
        mass = failure_mass(delta)
        best = _tables(self).epsilon_at(mass)
        # The tails that were cut off cost a little delta; the sum of losses does not.
        if sum(count * part.loss.delta for part, count in self.parts) <= mass:
            best = min(best, self.loss.epsilon_at(mass))
        return best


@dataclass(frozen=True, slots=True)
class _Losses:
    """A distribution of privacy losses: integer masses on the multiples of ``step``.

    ``masses[i]`` is the mass at the loss (start + i) * step in units of
    2**-_BITS, ``certain`` the mass of outcomes that only one neighbour can give.
    Masses may add up to more than one: they are rounded up.
    """

    start: int
    masses: list[int]
    certain: int

    def __mul__(self, other: _Losses) -> _Losses:
        # Independent losses add: the masses convolve, exactly, and are then rounded up.
        product = fmpz_poly(self.masses) * fmpz_poly(other.masses)
        masses = [-(-int(mass) >> _BITS) for mass in product.coeffs()]
        both = self.certain * other.certain >> _BITS
        certain = self.certain + other.certain - both
        return _Losses(self.start + other.start, masses, certain)._trimmed()

    def _trimmed(self) -> _Losses:
        masses, few = self.masses, 1 << (_BITS - TAIL_BITS)
        last, above = len(masses), 0
        while last > 1 and above + masses[last - 1] <= few:
            last -= 1
            above += masses[last]
        first, below = 0, 0
        while first < last - 1 and below + masses[first] <= few:
            below += masses[first]
            first += 1
        kept = masses[first:last]
        kept[0] += below  # counted as a greater loss than it is
        return _Losses(self.start + first, kept, self.certain + above)

    def power(self, count: int) -> _Losses:
        """The losses of ``count`` independent copies."""
        result: _Losses | None = None
        square = self
        while True:
            if count & 1:
                result = square if result is None else result * square
            count >>= 1
            if not count:
                return result or square
            square = square * square


def _discretise(profile: Profile, step: Fraction) -> _Losses:
    """A pair of laws on the grid that dominates the profile: it joins the dots of its curve.

    Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022); profile.md, Lemma 2.
    """
    most = math.ceil(profile.reach / step)
    with precision(_BITS + 96):
        dots = [profile.curve(j * step) for j in range(-most, most + 1)]
        rise, fall = ball(step).expm1(), -ball(-step).expm1()
        masses = []
        for index, dot in enumerate(dots):
            below = (dots[index - 1] - dot) / fall if index else 1 - dot
            above = (dots[index + 1] - dot) / rise if index < 2 * most else arb(0)
            masses.append(_units_up(below + above))
        certain = _units_up(dots[-1])
    return _Losses(-most, masses, certain)


def _units_up(mass: arb) -> int:
    most: Fraction = ends(mass)[1]
    return max(0, math.ceil(most * (1 << _BITS)))


@dataclass(frozen=True, slots=True)
class _Tables:
    """Sums over a distribution of losses from each cell upwards.

    With r = e**-step, ``totals[i]`` is the sum over j >= i of masses[j] (an upper
    bound) and ``discounted[i]`` that of masses[j] * r**(j - i) (a lower bound),
    so delta at a loss between cells i - 1 and i is
    totals[i] - e**(epsilon - loss of cell i) discounted[i], plus what is certain.
    """

    step: Fraction
    start: int
    totals: list[int]
    discounted: list[int]

    def _terms(self, cell: int) -> tuple[int, int]:
        index = min(max(cell - self.start, 0), len(self.totals) - 1)
        return self.totals[index], self.discounted[index]

    def curve(self, epsilon: Fraction) -> arb:
        cell = max(math.floor(epsilon / self.step) + 1, self.start)
        total, discounted = self._terms(cell)
        shift = ball(epsilon - cell * self.step).exp()
        return (ball(total) - shift * ball(discounted)) / arb(2) ** _BITS

    def epsilon_at(self, delta: Fraction) -> Amount:
        mass = math.floor(delta * 2**_BITS)
        if self.totals[-1] > mass:
            return INFINITY
        # The first cell, of those at an epsilon of 0 or more, whose delta is at most the mass.
        index = least_integer(
            lambda i: self.totals[i] - self.discounted[i] <= mass,
            fails_at=max(0, -self.start) - 1,
            holds_at=len(self.totals) - 1,
        )
        total, discounted = self.totals[index], self.discounted[index]
        edge = (index + self.start) * self.step
        if total <= mass or discounted == 0:
            return max(Fraction(0), edge)
        # Within the cell below this edge delta is linear in e**epsilon.
        shift = log_up(Fraction(total - mass, discounted))
        if index:  # further below, masses are missing from these sums
            shift = max(shift, -self.step)
        return max(
            Fraction(0), round_up(edge + min(shift, Fraction(0)), Fraction(1, EPSILON_UNITS))
        )


@lru_cache(maxsize=16)
def _tables(composed: ComposedProfile) -> _Tables:
    step = _step(composed)
    combined: _Losses | None = None
    for part, count in composed.parts:
        losses = _discretise(part, step).power(count)
        combined = losses if combined is None else combined * losses
    if combined is None:
        raise ArithmeticError("a composition has at least one part")
    with precision(2 * _BITS):
        ratio = math.floor(ends(ball(-step).exp())[0] * 2**_BITS)
    total, discounted = combined.certain, 0
    totals, sums = [total], [0]
    for mass in reversed(combined.masses):
        total += mass
        discounted = mass + (ratio * discounted >> _BITS)
        totals.append(total)
        sums.append(discounted)
    return _Tables(step, combined.start, totals[::-1], sums[::-1])


def _step(composed: ComposedProfile) -> Fraction:
    """A grid fine for the typical release and short enough to convolve."""
    releases = sum(count for _, count in composed.parts)
    longest = max(part.reach for part, _ in composed.parts)
    spread = composed.spread or float(longest)  # the square of a very small loss is a double 0
    finest = max(
        spread / math.sqrt(releases) / _STEPS,
        max(24 * spread, float(longest)) / _MOST_CELLS,
        sys.float_info.min,
    )
    # A whole number of steps to the longest loss: exact when it is the only one, as for
    # randomised response.
    return longest / max(1, math.ceil(float(longest) / finest))
