"""The profile of many releases, by their privacy-loss distribution.

Arbitrary (epsilon, delta) releases have a loss of plus or minus epsilon, so that few
of them have few sums, which are listed one by one.  All others go on a grid, where
every mass is a whole number of 2**-192 and only ever rounds up; see
docs/proofs/profile.md for why the result is an upper bound.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Protocol

from flint import arb, ctx, fmpz_poly

from discreet.accounting.conversion import EPSILON_UNITS, INFINITY, Amount
from discreet.accounting.loss import Loss, failure_mass
from discreet.accounting.profile.closed import (
    TAIL_BITS,
    AnyProfile,
    GaussianProfile,
    Profile,
    find_profile,
)
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, ends, log_up, precision
from discreet.exact.numbers import Exact, round_up
from discreet.exact.search import least_integer

_BITS: Final = 192
_STEPS: Final = 48  # grid steps in one typical privacy loss: the error falls with its square
_MOST_CELLS: Final = 1 << 18
_MOST_SUMS: Final = 1 << 14  # of losses, listed one by one
_MOST_WRITTEN: Final = 1 << 22  # bits of a product of fractions that is written out


def compose(profiles: Iterable[Any]) -> Profile:
    """The profile of all ``profiles`` together; of a mechanism, the one that it knows.

    Adaptive in the questions, not in the list: the k-th release may ask anything
    that has the k-th profile.

    >>> from discreet.accounting.profile import LaplaceProfile
    >>> together = compose([LaplaceProfile(sensitivity=2, scale=20, grid=0)] * 50)
    >>> round(float(together.epsilon_at("1e-6")), 2)
    3.12
    """
    counts: Counter[Profile] = Counter()
    for release, count in Counter(profiles).items():
        counts[find_profile(release)] += count
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
    """Several releases, with how many there are of each, by their privacy-loss distribution.

    ``parts`` are the profiles, each with how many there are.
    """

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

    @property
    def _most(self) -> Amount:
        """What is exceeded by failures alone: the tails of Gaussian noise have no end."""
        endless = any(isinstance(part, GaussianProfile) for part, _ in self.parts)
        return INFINITY if endless else self.reach

    @property
    def _failures(self) -> tuple[tuple[Fraction, int], ...]:
        return tuple((part.loss.delta, count) for part, count in self.parts)

    def curve(self, epsilon: Fraction) -> arb:
        """A ball around an upper bound of delta at ``epsilon``."""
        if epsilon >= self._most:  # a grid that does not meet the sum would go on beyond it
            return 1 - _survival(self._failures)
        return _account(self).curve(epsilon)

    def epsilon_at(self, delta: Exact) -> Amount:
        """The least epsilon certified for this ``delta``, rounded up to a unit."""
        mass = failure_mass(delta)
        best = _account(self).epsilon_at(mass)
        if fails_within(self._failures, mass):
            best = min(best, self._most)
        # The tails that were cut off cost a little delta; the sum of losses does not.
        if sum(count * failure for failure, count in self._failures) <= mass:
            best = min(best, self.loss.epsilon_at(mass))
        return best


def _survival(failures: Iterable[tuple[Fraction, int]]) -> arb:
    """The probability that nothing fails outright, of so many releases of each delta."""
    survives = arb(1)
    for delta, count in failures:
        survives *= ball(1 - delta) ** count
    return survives


def fails_within(failures: Sequence[tuple[Fraction, int]], mass: Fraction) -> bool:
    """Whether any of them fails with probability at most ``mass``, certainly; exact at equality.

    >>> fails_within([(Fraction(1, 10), 2)], Fraction(19, 100))
    True
    """
    if sum(count * (1 - delta).denominator.bit_length() for delta, count in failures) > (
        _MOST_WRITTEN
    ):
        with precision(_BITS):
            return bool(1 - _survival(failures) <= ball(mass))
    return 1 - math.prod((1 - delta) ** count for delta, count in failures) <= mass


class _Account(Protocol):
    """What a composition is read off."""

    def curve(self, epsilon: Fraction) -> arb: ...

    def epsilon_at(self, delta: Fraction) -> Amount: ...


@lru_cache(maxsize=16)
def _account(composed: ComposedProfile) -> _Account:
    known = [part for part, _ in composed.parts if isinstance(part, AnyProfile)]
    sums = math.prod(count + 1 for _, count in composed.parts)
    return (
        _Sums(composed)
        if len(known) == len(composed.parts) and sums <= _MOST_SUMS
        else (_tables(composed))
    )


# --- sums of losses, one by one ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sums:
    """Randomised responses of any epsilons that fail with any deltas, exactly.

    Murtagh and Vadhan (2016), Theorem 1.5: the best composition of mechanisms that
    differ is that of their randomised responses.  To compute it is hard in general,
    because 2**k sums may differ; here they are few.
    """

    composed: ComposedProfile

    def curve(self, epsilon: Fraction) -> arb:
        losses, mine, theirs = _list_sums(self.composed, ctx.prec)
        above = bisect_left(losses, -epsilon, key=lambda loss: -loss)  # so many exceed it
        excess = mine[above] - ball(epsilon).exp() * theirs[above]
        return 1 - _survival(self.composed._failures) * (1 - excess)

    def epsilon_at(self, delta: Fraction) -> Amount:
        composed = self.composed
        losses, mine, theirs = _list_sums(composed, _BITS)
        with precision(_BITS):
            left = ends(1 - ball(1 - delta) / _survival(composed._failures))[0]
            if left < 0:
                return composed.reach if fails_within(composed._failures, delta) else INFINITY

            def too_large(index: int) -> bool:  # the divergence at this loss, by those above it
                at = ball(losses[index]).exp()
                return bool(ends(mine[index] - at * theirs[index])[1] > left)

            # At the greatest loss nothing exceeds it; they fall until 0 or until too much does.
            first = least_integer(
                lambda index: index == len(losses) or losses[index] < 0 or too_large(index),
                fails_at=0,
                holds_at=len(losses),
            )
            # Between two losses the divergence is linear in e**epsilon.
            top = losses[first - 1]
            bottom = max(Fraction(0), losses[first] if first < len(losses) else Fraction(0))
            most, least = ends(mine[first])[1], ends(theirs[first])[0]
            if most <= left:
                return bottom
            solved = round_up(log_up((most - left) / least), Fraction(1, EPSILON_UNITS))
            return min(top, max(solved, bottom))


@lru_cache(maxsize=16)
def _list_sums(composed: ComposedProfile, bits: int) -> tuple[list[Fraction], list[arb], list[arb]]:
    """The sums of losses, greatest first, and the mass of the first so many, under either world."""
    with precision(bits):
        masses = {Fraction(0): arb(1)}
        for part, count in composed.parts:
            longer: dict[Fraction, arb] = {}
            for loss, mass in _responses(part.reach, count):
                for known, before in masses.items():
                    at = known + loss
                    longer[at] = longer.get(at, arb(0)) + before * mass
            masses = longer
        losses = sorted(masses, reverse=True)
        mine, theirs = [arb(0)], [arb(0)]
        for loss in losses:
            mine.append(mine[-1] + masses[loss])
            theirs.append(theirs[-1] + masses[loss] * ball(-loss).exp())
    return losses, mine, theirs


def _responses(epsilon: Fraction, count: int) -> list[tuple[Fraction, arb]]:
    """The losses of ``count`` randomised responses, and their masses: binomial."""
    yes, ratio = 1 / (1 + ball(-epsilon).exp()), ball(-epsilon).exp()
    mass, found = yes**count, []
    for dissents in range(count + 1):
        found.append(((count - 2 * dissents) * epsilon, mass))
        mass = mass * ratio * (count - dissents) / (dissents + 1)
    return found


# --- losses on a grid --------------------------------------------------------------------------


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
        return _Losses(self.start + other.start, masses, certain)._trim()

    def _trim(self) -> _Losses:
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
