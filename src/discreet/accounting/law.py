"""Probability laws as objects: what a mechanism can answer, and how often.

A law knows its outcomes and, for each, a ball of Arb arithmetic that certainly
contains the probability, as narrow as the precision in force allows.  Call it
inside :func:`discreet.exact.balls.precision` or :func:`discreet.exact.balls.enclose`.
Sampling is not a law's business (see ``discreet.noise``); comparing two laws is
``discreet.accounting.divergence``'s.

    FiniteLaw             finitely many outcomes of any kind
    DiscreteLaplaceLaw    P(Z = z) proportional to exp(-|z - center| / scale)
    DiscreteGaussianLaw   P(Z = z) proportional to exp(-(z - center)**2 / (2 sigma_squared))
    StaircaseLaw          P(Z = z) proportional to exp(-epsilon * level(|z - center|))
    GeometricLaw          P(Z = start + k) proportional to exp(-k / scale), k >= 0
    ProductLaw            independent coordinates

>>> law = DiscreteLaplaceLaw(center=3, scale=Fraction(5, 2))
>>> from discreet.exact.balls import enclose
>>> low, high = enclose(lambda: law.tail(7))       # P(Z >= 7) = q**4 / (1 + q), q = exp(-2/5)
>>> low < high, round(float(high), 6)
(True, 0.120873)
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from flint import arb, ctx

from discreet.accounting.gaussian_sums import gaussian_half_sum, gaussian_sum
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball
from discreet.exact.numbers import Exact, fraction, nonnegative, positive, whole
from discreet.exact.records import dataclass

MOST_OUTCOMES = 1 << 18
"""The largest number of outcomes that is ever enumerated."""

# ln 2 < 7/10: dividing bits by it, or multiplying, is off on the safe side.
_LOG_2_UP = Fraction(7, 10)


class Law(ABC):
    """Something random with a certified probability for every outcome."""

    __slots__ = ()

    @abstractmethod
    def mass(self, outcome: Hashable) -> arb:
        """A ball around P(``outcome``), at the precision in force; exactly 0 off the support."""


# --- finitely many outcomes ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FiniteLaw(Law):
    """Finitely many outcomes.

    ``masses()`` evaluates all probabilities at the precision in force, in the order of
    ``outcomes``. It is called again whenever more precision is needed. ``fractions`` are the
    probabilities themselves, where they are rational and known.

    >>> weights = lambda: [ball(Fraction(score, 4)).exp() for score in (2, 3, 7)]
    >>> law = FiniteLaw.proportional(("two", "three", "seven"), weights)
    >>> round(float(law.mass("seven")), 6)
    0.604455
    """

    outcomes: tuple[Hashable, ...]
    masses: Callable[[], Sequence[arb]]
    fractions: tuple[Fraction, ...] | None = None
    _index: dict[Hashable, int] = field(init=False, repr=False, compare=False)
    _known: dict[int, tuple[arb, ...]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        outcomes = tuple(self.outcomes)
        index = {outcome: i for i, outcome in enumerate(outcomes)}
        if not outcomes or len(index) != len(outcomes):
            raise InvalidParameter(
                "P4" if outcomes else "P5",
                "a law needs at least one outcome, and each outcome once.",
                why="a probability that is split or missing would compare as less than it is.",
                fix="list every possible outcome exactly once.",
            )
        object.__setattr__(self, "outcomes", outcomes)
        object.__setattr__(self, "_index", index)

    @classmethod
    def exact(
        cls, masses: Mapping[Hashable, Exact] | Iterable[tuple[Hashable, Exact]]
    ) -> FiniteLaw:
        """The law with these rational probabilities, which must add up to one.

        ``masses`` has the outcomes and the probability of each.

        >>> FiniteLaw.exact({"yes": "3/4", "no": "0.25"}).fractions
        (Fraction(3, 4), Fraction(1, 4))
        """
        pairs = tuple(masses.items() if isinstance(masses, Mapping) else masses)
        amounts = tuple(nonnegative(amount, name="a probability") for _, amount in pairs)
        if pairs and sum(amounts) != 1:
            raise _not_a_law(f"the probabilities add up to {sum(amounts)} and not to 1.")
        outcomes = tuple(outcome for outcome, _ in pairs)
        return cls(outcomes, lambda: [ball(amount) for amount in amounts], amounts)

    @classmethod
    def proportional(
        cls, outcomes: Iterable[Hashable], weights: Callable[[], Sequence[arb]]
    ) -> FiniteLaw:
        """The law of ``outcomes`` with probabilities in proportion to ``weights()``."""

        def masses() -> list[arb]:
            values = list(weights())
            total = sum(values[1:], values[0])
            return [value / total for value in values]

        return cls(tuple(outcomes), masses)

    def all_masses(self) -> tuple[arb, ...]:
        """Every probability, in the order of ``outcomes``, at the precision in force."""
        bits = ctx.prec
        found = self._known.get(bits)
        if found is None:
            found = self._evaluate()
            self._known.clear()
            self._known[bits] = found
        return found

    def _evaluate(self) -> tuple[arb, ...]:
        values = [value if isinstance(value, arb) else arb(value) for value in self.masses()]
        if len(values) != len(self.outcomes):
            raise _not_a_law(f"{len(self.outcomes)} outcomes have {len(values)} probabilities.")
        if any(value < 0 for value in values):
            raise _not_a_law("a probability is negative.")
        total = sum(values, arb(0))
        if total.is_finite() and not total.contains(1):
            raise _not_a_law("the probabilities do not add up to 1.")
        # The true value is not negative, so neither need its ball be.
        return tuple(value if value >= 0 else value.nonnegative_part() for value in values)

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(``outcome``); exactly 0 for what is not an outcome."""
        index = self._index.get(outcome)
        return arb(0) if index is None else self.all_masses()[index]

    def exact_mass(self, outcome: Hashable) -> Fraction | None:
        """P(``outcome``) itself, where it is known to be this rational number."""
        index = self._index.get(outcome)
        if index is None:
            return Fraction(0)
        return None if self.fractions is None else self.fractions[index]

    def image(self, function: Callable[[Hashable], Hashable]) -> FiniteLaw:
        """The law of ``function(outcome)``: what remains after post-processing."""
        groups: dict[Hashable, list[int]] = {}
        for index, outcome in enumerate(self.outcomes):
            groups.setdefault(function(outcome), []).append(index)
        gathered = tuple(groups.values())

        def masses() -> list[arb]:
            values = self.all_masses()
            return [sum((values[index] for index in indices), arb(0)) for indices in gathered]

        known = self.fractions
        amounts = known and tuple(
            sum((known[index] for index in indices), Fraction(0)) for indices in gathered
        )
        return FiniteLaw(tuple(groups), masses, amounts)


def _not_a_law(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="a bound computed from them would be a bound on nothing.",
        fix="give non-negative probabilities that add up to 1, one for each outcome.",
    )


# --- laws on the integers ------------------------------------------------------------------


class IntegerLaw(Law):
    """A law on the integers with certified tails."""

    __slots__ = ()

    @abstractmethod
    def tail(self, z: int) -> arb:
        """A ball that contains P(Z >= ``z``)."""

    @abstractmethod
    def below(self, z: int) -> arb:
        """A ball that contains P(Z < ``z``)."""

    @abstractmethod
    def window(self, bits: int) -> tuple[int, int]:
        """Two integers outside of which less than 2**-``bits`` of the mass lies."""

    @property
    @abstractmethod
    def middle(self) -> int:
        """An integer that splits the law: intervals on one side of it are summed from there."""

    @property
    def support(self) -> tuple[int | None, int | None]:
        """The least and the greatest possible value; ``None`` where there is none."""
        return None, None

    def cdf(self, z: int) -> arb:
        """A ball that contains P(Z <= ``z``)."""
        return self.below(z + 1)

    def between(self, least: int | None, most: int | None) -> arb:
        """A ball that contains P(``least`` <= Z <= ``most``); ``None`` stands for no bound."""
        if least is not None and most is not None and most < least:
            return arb(0)
        if least is None:
            return arb(1) if most is None else self.cdf(most)
        if most is None:
            return self.tail(least)
        # Of the two differences, the one of smaller numbers cancels less.
        if least >= self.middle:
            return self.tail(least) - self.tail(most + 1)
        return self.cdf(most) - self.below(least)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw(IntegerLaw):
    """Two-sided geometric: P(Z = z) = (1 - q) / (1 + q) * q**|z - center|, q = exp(-1 / scale).

    ``center`` is a whole number, ``scale`` is above 0.

    >>> round(float(DiscreteLaplaceLaw(center=2, scale=Fraction(3)).mass(6)), 6)
    0.043531
    """

    center: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _integer(self.center, name="center"))
        object.__setattr__(self, "scale", positive(self.scale, name="scale"))

    @property
    def middle(self) -> int:
        """The centre of symmetry."""
        return self.center

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(Z = ``outcome``)."""
        z = _as_integer(outcome)
        if z is None:
            return arb(0)
        rate = 1 / self.scale
        # (1 - q) / (1 + q) = tanh(rate / 2), without cancellation when the scale is large.
        return ball(rate / 2).tanh() * ball(-rate * abs(z - self.center)).exp()

    def tail(self, z: int) -> arb:
        """A ball that contains P(Z >= ``z``)."""
        distance = z - self.center
        return self._far(distance) if distance >= 1 else 1 - self._far(1 - distance)

    def below(self, z: int) -> arb:
        """A ball that contains P(Z < ``z``)."""
        return self.tail(2 * self.center - z + 1)

    def _far(self, distance: int) -> arb:
        # The sum of the mass from a distance >= 1 on: q**distance / (1 + q).
        rate = 1 / self.scale
        return ball(-rate * distance).exp() / (1 + ball(-rate).exp())

    def window(self, bits: int) -> tuple[int, int]:
        """P(|Z - center| > m) < 2 q**m, which is at most 2**-``bits`` for this m."""
        reach = math.ceil(self.scale * (bits + 1) * _LOG_2_UP)
        return self.center - reach, self.center + reach


@dataclass(frozen=True, slots=True)
class StaircaseLaw(IntegerLaw):
    """Flat steps: distances below ``width`` have level 0, each next ``step`` of them one more.

    P(Z = z) = exp(-epsilon * level(|z - center|)) / total, where
    level(k * step + u) = k + [u >= width] for u below ``step``; ``center`` is a whole number and
    ``epsilon`` is above 0.

    >>> law = StaircaseLaw(center=2, step=5, width=2, epsilon=Fraction(1))
    >>> [round(float(law.mass(2 + distance)), 6) for distance in (0, 1, 2, 6, 7)]
    [0.113382, 0.113382, 0.041711, 0.041711, 0.015345]
    """

    center: int
    step: int
    width: int
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _integer(self.center, name="center"))
        object.__setattr__(self, "step", whole(self.step, name="step", least=1))
        object.__setattr__(self, "width", whole(self.width, name="width", least=1))
        object.__setattr__(self, "epsilon", positive(self.epsilon, name="epsilon"))
        if self.width > self.step:
            raise InvalidParameter(
                "P2",
                f"width must be from 1 to step = {self.step}, got {self.width}.",
                why="beyond it the first step would be wider than the others.",
                fix="pass a width of at most the step.",
            )

    @property
    def middle(self) -> int:
        """The centre of symmetry."""
        return self.center

    def level(self, distance: int) -> int:
        """How many steps down the law is at a ``distance`` from its centre."""
        blocks, offset = divmod(distance, self.step)
        return blocks + (offset >= self.width)

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(Z = ``outcome``)."""
        z = _as_integer(outcome)
        if z is None:
            return arb(0)
        return ball(-self.epsilon * self.level(abs(z - self.center))).exp() / self._total()

    def tail(self, z: int) -> arb:
        """A ball that contains P(Z >= ``z``)."""
        distance = z - self.center
        return self._far(distance) if distance >= 1 else 1 - self._far(1 - distance)

    def below(self, z: int) -> arb:
        """A ball that contains P(Z < ``z``)."""
        return self.tail(2 * self.center - z + 1)

    def _block(self) -> arb:
        """The weight of one block of ``step`` distances, the first."""
        return self.width + (self.step - self.width) * ball(-self.epsilon).exp()

    def _total(self) -> arb:
        """The weight of both sides; the centre is on each of them, and counts once."""
        return 2 * self._block() / -ball(-self.epsilon).expm1() - 1

    def _far(self, distance: int) -> arb:
        # What is left of the block that the distance lies in, then all the blocks behind it.
        blocks, offset = divmod(distance, self.step)
        near = max(self.width - offset, 0)
        far = self.step - max(self.width, offset)
        down = ball(-self.epsilon).exp()
        weight = near + down * far + down * self._block() / -ball(-self.epsilon).expm1()
        return ball(-self.epsilon * blocks).exp() * weight / self._total()

    def window(self, bits: int) -> tuple[int, int]:
        """P(|Z - center| >= k * step) <= 2 exp(-k epsilon), at most 2**-``bits`` for this k."""
        reach = self.step * math.ceil((bits + 1) * _LOG_2_UP / self.epsilon)
        return self.center - reach, self.center + reach


@dataclass(frozen=True, slots=True)
class GeometricLaw(IntegerLaw):
    """One-sided: P(Z = start + k) = (1 - q) * q**k for k >= 0, q = exp(-1 / scale).

    ``start`` is a whole number, ``scale`` is above 0.
    """

    start: int
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", _integer(self.start, name="start"))
        object.__setattr__(self, "scale", positive(self.scale, name="scale"))

    @property
    def middle(self) -> int:
        """Everything lies on one side of the start."""
        return self.start

    @property
    def support(self) -> tuple[int | None, int | None]:
        """From ``start`` on."""
        return self.start, None

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(Z = ``outcome``)."""
        z = _as_integer(outcome)
        if z is None or z < self.start:
            return arb(0)
        rate = 1 / self.scale
        return -ball(-rate).expm1() * ball(-rate * (z - self.start)).exp()

    def tail(self, z: int) -> arb:
        """A ball that contains P(Z >= ``z``)."""
        return ball(-Fraction(max(0, z - self.start)) / self.scale).exp()

    def below(self, z: int) -> arb:
        """A ball that contains P(Z < ``z``)."""
        return -ball(-Fraction(max(0, z - self.start)) / self.scale).expm1()

    def window(self, bits: int) -> tuple[int, int]:
        """P(Z > start + m) = q**(m + 1) < 2**-``bits`` for this m."""
        return self.start, self.start + math.ceil(self.scale * bits * _LOG_2_UP)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw(IntegerLaw):
    """P(Z = z) proportional to exp(-(z - center)**2 / (2 sigma_squared)), on the integers.

    The normaliser is a theta function, summed on whichever side of Poisson's
    formula needs only a few terms; tails come from their own sum or, when that
    would be long, from the Euler-Maclaurin formula with a certified remainder.
    Nothing is enumerated, whatever ``sigma_squared`` is.  ``center`` is a whole number.

    >>> round(float(DiscreteGaussianLaw(center=2, sigma_squared=Fraction(3)).mass(6)), 6)
    0.016004
    >>> law = DiscreteGaussianLaw(center=5, sigma_squared=Fraction(2) ** 40)
    >>> round(float(law.tail(5 + 3 * 2**20)), 6)       # as for the continuous one
    0.00135
    """

    center: int
    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _integer(self.center, name="center"))
        variance = positive(self.sigma_squared, name="sigma_squared")
        object.__setattr__(self, "sigma_squared", variance)

    @property
    def middle(self) -> int:
        """The centre of symmetry."""
        return self.center

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains P(Z = ``outcome``)."""
        z = _as_integer(outcome)
        if z is None:
            return arb(0)
        exponent = -Fraction((z - self.center) ** 2) / (2 * self.sigma_squared)
        return ball(exponent).exp() / gaussian_sum(self.sigma_squared)

    def tail(self, z: int) -> arb:
        """A ball that contains P(Z >= ``z``)."""
        distance = z - self.center
        if distance >= 1:
            return gaussian_half_sum(self.sigma_squared, distance) / gaussian_sum(
                self.sigma_squared
            )
        return 1 - self.tail(2 * self.center - z + 1)

    def below(self, z: int) -> arb:
        """A ball that contains P(Z < ``z``)."""
        return self.tail(2 * self.center - z + 1)

    def window(self, bits: int) -> tuple[int, int]:
        """P(|Z - center| >= m) <= 2 exp(-m**2 / (2 sigma_squared)), at most 2**-``bits`` here.

        Canonne, Kamath and Steinke (2020), Proposition 25: the discrete
        Gaussian is sub-Gaussian with the parameter of the continuous one.
        """
        reach = math.isqrt(math.ceil(2 * self.sigma_squared * (bits + 1) * _LOG_2_UP)) + 1
        return self.center - reach, self.center + reach


# --- independent coordinates ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProductLaw(Law):
    """Independent coordinates; an outcome is a tuple with one entry for each.

    ``laws`` are those of the coordinates.

    >>> coin = FiniteLaw.exact({0: "1/3", 1: "2/3"})
    >>> pair = ProductLaw((coin, DiscreteLaplaceLaw(center=4, scale=Fraction(2))))
    >>> round(float(pair.mass((1, 7))), 6)
    0.036432
    """

    laws: tuple[Law, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "laws", tuple(self.laws))
        if not self.laws or not all(isinstance(law, Law) for law in self.laws):
            raise InvalidParameter(
                "P5",
                "a product needs at least one law.",
                why="a tuple of nothing has nothing to compare.",
                fix="pass a sequence of laws.",
            )

    def mass(self, outcome: Hashable) -> arb:
        """A ball that contains the probability of ``outcome``: the product of its coordinates'."""
        if not isinstance(outcome, tuple) or len(outcome) != len(self.laws):
            return arb(0)
        product = arb(1)
        for law, entry in zip(self.laws, outcome, strict=True):
            product *= law.mass(entry)
        return product


def _as_integer(outcome: object) -> int | None:
    """``outcome`` as an int (numpy's integers too), or None if it is not a whole number."""
    if isinstance(outcome, numbers.Integral) and not isinstance(outcome, bool):
        return int(outcome)
    return None


def _integer(value: object, *, name: str) -> int:
    """``value`` as an int of either sign."""
    number = fraction(value, name=name)  # type: ignore[arg-type]
    sign = -1 if number < 0 else 1
    return sign * whole(
        int(abs(number)) if number.denominator == 1 else number, name=f"the size of {name}"
    )


__all__ = [
    "MOST_OUTCOMES",
    "DiscreteGaussianLaw",
    "DiscreteLaplaceLaw",
    "FiniteLaw",
    "GeometricLaw",
    "IntegerLaw",
    "Law",
    "ProductLaw",
    "StaircaseLaw",
]
