"""The staircase mechanism: the least error that one number can have, on the integers or a grid."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from discreet.accounting.law import ProductLaw, StaircaseLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose
from discreet.exact.numbers import Exact, failure_share, nonnegative, positive, proportion, whole
from discreet.exact.records import dataclass
from discreet.exact.search import least_decimal, least_integer
from discreet.mechanisms.grid import (
    Grid,
    add_noise,
    require_names,
    set_fields,
    to_steps,
    write_call,
)
from discreet.mechanisms.laplace import l1_steps, too_much_noise
from discreet.noise import staircase
from discreet.noise.laplace import GREATEST_SCALE


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Staircase:
    """Publish a number with staircase noise, calibrated to how far one unit can move it.

    Definition:
        M(x) = f(x) + Z, in whole steps of the ``grid``, where P(Z = z) is
        proportional to exp(-epsilon level(|z|)): the distances below ``width``
        have level 0, the next ``sensitivity`` of them level 1, and so on.
        Entries of a vector have independent noise.

    Guarantee:
        If at most one entry of f changes when one unit is added or removed, and
        by at most ``sensitivity``, M is ``epsilon``-differentially private
        (Lemma 9); entries that change together need ``Laplace``.  The bound
        is attained.  Its rho is that of any such mechanism, rounded up.

    Accuracy:
        ``mean_error`` is E|Z|: with the width chosen here, the least of all
        steps, about sensitivity exp(epsilon/2) / (exp(epsilon) - 1) against
        Laplace's sensitivity / epsilon.  ``margin`` is the least m with
        P(|Z| > m) <= beta, from the certified tails of the law, so exact.

    Reference:
        Geng and Viswanath, "The optimal noise-adding mechanism in
        differential privacy" (2016), Theorems 4 and 7 (on the integers).
        Proofs in docs/proofs/laplace.md.

    Example:
        >>> ages = Staircase(sensitivity=120, epsilon=5)
        >>> ages, ages.width
        (Staircase(sensitivity=120, epsilon=5), 10)
        >>> ages.loss.epsilon, round(ages.mean_error, 2)
        (Fraction(5, 1), 9.91)
        >>> ages.margin("0.05"), ages.margin("0.05", coordinates=40)
        (54, 128)
        >>> type(ages.release(1041)), len(ages.release([1041, 977, 1204]))
        (<class 'int'>, 3)
        >>> Staircase.within(54, "0.95", sensitivity=120)
        Staircase(sensitivity=120, epsilon='498981/100000')
    """

    sensitivity: Fraction
    epsilon: Fraction
    grid: Grid | None
    width: int
    """How wide the first step is on either side, in steps of the grid."""
    steps: int = field(init=False, compare=False)
    """The sensitivity after snapping, in steps of the grid."""
    loss: Loss = field(init=False, compare=False)

    def __init__(
        self,
        *,
        sensitivity: Exact,
        epsilon: Exact,
        grid: Grid | None = None,
        width: int | None = None,
    ) -> None:
        bound = positive(sensitivity, name="sensitivity")
        price = positive(epsilon, name="epsilon")
        steps = l1_steps(bound, grid=grid, entries_changed=1)
        if not self.drawable(steps, price):
            raise too_much_noise("epsilon")
        chosen = best_width(steps, price) if width is None else whole(width, name="width", least=1)
        if chosen > steps:
            raise InvalidParameter(
                "P2",
                f"width must be from 1 to {steps} steps, the sensitivity; got {chosen}.",
                why="a unit that moves the number past the first step must meet the second.",
                fix="leave width out: the best is chosen.",
            )
        set_fields(self, sensitivity=bound, epsilon=price, grid=grid, width=chosen, steps=steps)
        set_fields(self, loss=Loss.pure(price))

    def __repr__(self) -> str:
        best = self.width == best_width(self.steps, self.epsilon)
        return write_call(
            self,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            grid=self.grid,
            width=None if best else self.width,
        )

    @classmethod
    def within(
        cls, margin: Exact, confidence: Exact, *, sensitivity: Exact, grid: Grid | None = None
    ) -> Staircase:
        """The cheapest mechanism whose answer is within ``margin``, so often.

        ``confidence`` is how often; ``sensitivity`` and ``grid`` are those of the mechanism.

        Cheapest on the ladder of six-digit decimals, as far as margins fall when prices rise:
        where a wider first step is chosen they may stand still.
        """
        beta = 1 - proportion(confidence, name="confidence")
        steps = l1_steps(positive(sensitivity, name="sensitivity"), grid=grid, entries_changed=1)
        unit = 1 if grid is None else grid.step
        target = math.floor(nonnegative(margin, name="margin") / unit)

        def near_enough(price: Fraction) -> bool:
            law = StaircaseLaw(0, steps, best_width(steps, price), price)
            return _reaches(law, target, beta, 1)

        guess = steps * math.log(2 / float(beta)) / (target + 1)
        return cls(
            sensitivity=sensitivity, epsilon=least_decimal(near_enough, near=guess), grid=grid
        )

    @staticmethod
    def drawable(steps: int, epsilon: Fraction) -> bool:
        """Whether draws of a sensitivity in ``steps``, at ``epsilon``, fit 64-bit integers."""
        return steps <= GREATEST_SCALE and steps / epsilon <= GREATEST_SCALE

    @property
    def mean_error(self) -> float:
        """E|Z|, in the unit of the value."""
        unit = 1.0 if self.grid is None else float(self.grid.step)
        return unit * mean_distance(self.steps, self.epsilon, self.width)

    @property
    def variance(self) -> float:
        """The variance of the noise in one entry, in the squared unit of the value."""
        unit = 1.0 if self.grid is None else float(self.grid.step)
        return unit**2 * _mean_square(self.steps, self.epsilon, self.width)

    def release(self, value: Any, *, exact: bool = False) -> Any:
        """``value`` with noise; kinds, and ``exact``, as for ``Laplace.release``."""
        steps, price, width = self.steps, self.epsilon, self.width
        if type(value) is int and self.grid is None:
            return value + staircase(steps, price, width)
        return add_noise(
            value, self.grid, lambda size: staircase(steps, price, width, size), exact=exact
        )

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, coordinates: int = 1
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, no entry is off by more.

        Given is ``beta`` or ``confidence``, which is 1 - beta; it covers so many ``coordinates`` at
        once.
        """
        allowed = failure_share(beta, confidence)
        count = whole(coordinates, name="coordinates", least=1)
        law = self.noise_law
        steps = least_integer(lambda m: _reaches(law, m, allowed, count), fails_at=-1)
        return steps if self.grid is None else steps * self.grid.step

    @property
    def noise_law(self) -> StaircaseLaw:
        """The exact law of the noise in one entry, counted in steps of the grid."""
        return StaircaseLaw(0, self.steps, self.width, self.epsilon)

    def law(self, value: Any) -> StaircaseLaw | ProductLaw:
        """The exact law of the release of a ``value``, counted in steps of the grid."""
        steps = to_steps(value, self.grid)
        if isinstance(steps, int):
            return StaircaseLaw(steps, self.steps, self.width, self.epsilon)
        laws = [StaircaseLaw(one, self.steps, self.width, self.epsilon) for one in steps]
        return ProductLaw(tuple(laws))


@lru_cache(maxsize=1024)
def best_width(steps: int, epsilon: Fraction) -> int:
    """The first step of least E|Z|, near steps / (1 + exp(epsilon / 2)) (Geng and Viswanath)."""
    guess = steps / (1 + math.exp(min(float(epsilon) / 2, 700.0)))
    least, most = max(1, math.floor(guess) - 2), min(steps, math.ceil(guess) + 2)
    return min(range(least, most + 1), key=lambda width: mean_distance(steps, epsilon, width))


def mean_distance(steps: int, epsilon: Fraction, width: int) -> float:
    """E|Z|, in steps; a description, so in doubles."""
    down = math.exp(-float(epsilon))
    up = -math.expm1(-float(epsilon))
    block = width + down * (steps - width)
    offsets = _pairs(width) + down * (_pairs(steps) - _pairs(width))
    return 2 * (steps * block * down / up**2 + offsets / up) / (2 * block / up - 1)


def _mean_square(steps: int, epsilon: Fraction, width: int) -> float:
    down = math.exp(-float(epsilon))
    up = -math.expm1(-float(epsilon))
    block = width + down * (steps - width)
    offsets = _pairs(width) + down * (_pairs(steps) - _pairs(width))
    squares = _squares(width) + down * (_squares(steps) - _squares(width))
    far = float(steps) ** 2 * block * down * (1 + down) / up**3
    return 2 * (far + 2 * steps * offsets * down / up**2 + squares / up) / (2 * block / up - 1)


def _pairs(count: int) -> float:
    """0 + 1 + ... + (count - 1)."""
    return float(count * (count - 1) // 2)


def _squares(count: int) -> float:
    """0 + 1 + 4 + ... + (count - 1)**2."""
    return float((count - 1) * count * (2 * count - 1) // 6)


def _reaches(law: StaircaseLaw, margin: int, beta: Fraction, coordinates: int) -> bool:
    """Whether P(max of ``coordinates`` draws of |Z| > margin) <= beta, decided with balls."""
    if margin < 0:
        return False

    def excess() -> arb:
        one = 2 * law.tail(margin + 1)
        return 1 - (1 - one) ** coordinates - ball(beta) if coordinates > 1 else one - ball(beta)

    return enclose(excess, bits=1)[1] <= 0
