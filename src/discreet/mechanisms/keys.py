"""Releasing a key (a city, a product) that only the data knows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.exact.balls import ball, enclose, floor_scaled
from discreet.exact.numbers import Exact, positive, proportion, round_down, whole
from discreet.exact.records import dataclass
from discreet.exact.search import least_integer
from discreet.mechanisms.grid import require_names, set_fields, write_call
from discreet.noise import bernoulli

# The probabilities are computed for a delta smaller by this share and then rounded down to a
# binary fraction: what the rounding may break is less than what was held back.
_HELD_BACK = Fraction(1, 2**60)


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class KeyRelease:
    """Show a key or not, by how many units it has: the highest probability there can be.

    Definition:
        A key with n units is shown with probability p(n), where p(0) = 0 and
        p(n) = min(e**a p(n-1) + d, 1 - e**-a (1 - p(n-1) - d), 1), with
        a = epsilon / keys and d = 1 - (1 - delta)**(1 / keys), rounded down to
        a binary fraction in a way that keeps the guarantee
        (docs/proofs/keys.md).

    Guarantee:
        If one unit counts towards at most ``keys`` keys, adding or removing it
        is (``epsilon``, ``delta``)-differentially private.  No rule that shows an
        empty key with probability 0 shows any key more often at this price
        for each key.

    Accuracy:
        ``probability(n)`` exactly; ``least_units(confidence)`` is how many units
        a key needs to be shown that often.

    Reference:
        Desfontaines, Voss, Gipson and Mandayam (2022), Theorems 1 and 2.

    Example:
        >>> cities = KeyRelease(epsilon="0.5", delta="0.02")
        >>> round(float(cities.probability(6)), 9), cities.probability(15)
        (0.588404845, Fraction(1, 1))
        >>> cities.least_units("0.95")
        10
        >>> cities.release(200), cities.release([0, 200])
        (True, [False, True])
    """

    epsilon: Fraction
    delta: Fraction
    keys: int
    loss: Loss = field(compare=False)

    def __init__(self, *, epsilon: Exact, delta: Exact, keys: int = 1) -> None:
        price = positive(epsilon, name="epsilon")
        mass = proportion(delta, name="delta")
        set_fields(self, epsilon=price, delta=mass, keys=whole(keys, name="keys", least=1))
        one = Loss.approximate(price / self.keys, 0)
        set_fields(self, loss=Loss(price, (self.keys * one).rho, mass))

    def __repr__(self) -> str:
        keys = None if self.keys == 1 else self.keys
        return write_call(self, epsilon=self.epsilon, delta=self.delta, keys=keys)

    def probability(self, units: int) -> Fraction:
        """The exact probability that a key with so many ``units`` is shown."""
        count = whole(units, name="units")
        return _probability(self.epsilon / self.keys, _share(self.delta, self.keys), count)

    def law(self, units: int) -> FiniteLaw:
        """Whether a key with so many ``units`` is shown or not, with these probabilities."""
        shown = self.probability(units)
        return FiniteLaw.exact([(True, shown), (False, 1 - shown)])

    @overload
    def release(self, units: int) -> bool: ...
    @overload
    def release(self, units: Iterable[int]) -> list[bool]: ...
    def release(self, units: int | Iterable[int]) -> bool | list[bool]:
        """Whether to show the key with so many ``units``; for many keys, one answer each."""
        if isinstance(units, Iterable):
            return self._release_many(units)
        return bool(bernoulli(self.probability(units)))

    def _release_many(self, units: Iterable[int]) -> list[bool]:
        counts = [whole(count, name="units") for count in units]
        shown = [False] * len(counts)
        places: dict[int, list[int]] = {}
        for place, count in enumerate(counts):
            places.setdefault(count, []).append(place)
        for count, at in sorted(places.items()):
            coins = bernoulli(self.probability(count), len(at))
            for place, coin in zip(at, coins.tolist(), strict=True):
                shown[place] = bool(coin)
        return shown

    def least_units(self, confidence: Exact) -> int:
        """The fewest units with which a key is shown as often as ``confidence`` says, or more."""
        wanted = proportion(confidence, name="confidence")
        return least_integer(lambda units: self.probability(units) >= wanted, fails_at=0)


def toss_coins(odds: Fraction, count: int) -> NDArray[np.int64]:
    """Ones with probability ``odds``: for keys whose noisy number is just below a threshold."""
    return bernoulli(odds, count) if odds else np.zeros(count, dtype=np.int64)


@lru_cache(maxsize=256)
def _share(delta: Fraction, keys: int) -> Fraction:
    """1 - (1 - delta)**(1 / keys), rounded down in its 64th digit or so."""
    if keys == 1:
        return delta
    least = enclose(lambda: -((ball(-delta).log1p() / keys).expm1()), bits=80)[0]
    return round_down(least, Fraction(1, 2 ** (64 + math.ceil(keys / delta).bit_length())))


@lru_cache(maxsize=4096)
def _probability(epsilon: Fraction, delta: Fraction, count: int) -> Fraction:
    held = delta * (1 - _HELD_BACK)
    if count == 0:
        return Fraction(0)
    # e**epsilon 2**(1 - bits) <= delta 2**-60, with e < 3 < 2**1.6.
    bits = (
        62
        + math.ceil(epsilon * Fraction(8, 5))
        + (delta.denominator // delta.numerator).bit_length()
    )
    turn = _turn(epsilon, held)
    exact = enclose(lambda: _sum_recursion(epsilon, held, turn, count), bits=bits + 2)[0]
    return round_down(min(exact, Fraction(1)), Fraction(1, 2**bits))


@lru_cache(maxsize=256)
def _turn(epsilon: Fraction, delta: Fraction) -> int:
    """How many steps of the first kind are taken: while they are the smaller of the two."""

    def steps() -> arb:
        growth = ball(epsilon).exp()
        ratio = (growth + 2 * ball(delta) - 1) / ((growth + 1) * ball(delta))
        return ratio.log() / ball(epsilon)

    return 1 + floor_scaled(steps, 0)


def _sum_recursion(epsilon: Fraction, delta: Fraction, turn: int, count: int) -> arb:
    """The recursion of the definition, summed; at most 1 is meant."""
    grown = ball(epsilon).expm1()
    first = ball(delta) * ball(epsilon * min(count, turn)).expm1() / grown
    if count <= turn:
        return first
    ceiling = 1 + ball(delta) / grown
    return ceiling - ball(-epsilon * (count - turn)).exp() * (ceiling - first)
