"""What a release costs: one currency with three coordinates.

``Loss(epsilon, rho, delta)`` says of a mechanism, for every pair of neighbours:
outside an event of probability ``delta`` (drawn without looking at the data) the
two laws of the output are within ``epsilon`` in max divergence *and* within
``rho * alpha`` in Rényi divergence of every order ``alpha > 1``, both ways round.
So ``epsilon`` is a pure bound, ``rho`` a zero-concentrated bound, ``delta`` a
failure mass; either bound may be infinite, not both.  With that one event for
both bounds, adaptive composition adds the coordinates (docs/proofs/loss.md,
Lemma 2), and nobody has to choose a calculus before the first question.

Amounts are exact fractions; a conversion that is irrational is certified in
ball arithmetic and rounded up.  Stored amounts are integers of a fixed unit,
rounded up, so that nothing is ever free.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from discreet.accounting.conversion import (
    DELTA_UNITS,
    EPSILON_UNITS,
    INFINITY,
    RHO_UNITS,
    Amount,
    concentrated_delta,
    concentrated_epsilon,
    laplace_rho,
    pure_delta,
    pure_epsilon,
    pure_rho,
)
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import exp_up, sqrt_down
from discreet.exact.numbers import Exact, decimal_up, fraction, nonnegative, positive, whole
from discreet.exact.records import dataclass

_MOST_EXPONENT: Final = 20_000  # e**20000 times any delta that is not absurd exceeds 1


@dataclass(frozen=True, slots=True)
class Loss:
    """A pure bound ``epsilon``, a zero-concentrated one ``rho``, a failure mass ``delta``: exact.

    One of the two bounds may be ``INFINITY``: then it is none.

    Losses are compared by coordinates: ``a <= b`` when every coordinate is, so
    two losses may be incomparable.

    >>> count = Loss.laplace(sensitivity=3, scale=12)
    >>> count.epsilon
    Fraction(1, 4)
    >>> print(2 * count + Loss.gaussian(sensitivity=2, sigma_squared=800))
    ε = ∞, ρ = 0.0606132, δ = 0
    """

    epsilon: Amount
    rho: Amount
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _amount(self.epsilon, name="epsilon"))
        object.__setattr__(self, "rho", _amount(self.rho, name="rho"))
        object.__setattr__(self, "delta", failure_mass(self.delta))
        if self.epsilon == INFINITY and self.rho == INFINITY:
            raise InvalidParameter(
                "P4",
                "epsilon and rho cannot both be infinite.",
                why="nothing would bound what a person's data add to what the release tells.",
                fix="give a finite epsilon or a finite rho.",
            )

    # --- from what is known of a mechanism ------------------------------------------------

    @classmethod
    def pure(cls, epsilon: Exact) -> Loss:
        """Any ``epsilon``-differentially private mechanism, with the best rho that follows.

        That rho is epsilon tanh(epsilon / 2), attained by randomised response
        (Lemma 3); the textbook value epsilon**2 / 2 is never smaller.

        >>> round(float(Loss.pure(2).rho), 6)
        1.523188
        """
        amount = nonnegative(epsilon, name="epsilon")
        return cls(amount, pure_rho(amount))

    @classmethod
    def approximate(cls, epsilon: Exact, delta: Exact) -> Loss:
        """Any (``epsilon``, ``delta``)-differentially private mechanism."""
        amount = nonnegative(epsilon, name="epsilon")
        return cls(amount, pure_rho(amount), failure_mass(delta))

    @classmethod
    def concentrated(cls, rho: Exact, delta: Exact = 0) -> Loss:
        """Any (``delta``-approximate) ``rho``-zero-concentrated private mechanism."""
        return cls(INFINITY, nonnegative(rho, name="rho"), failure_mass(delta))

    @classmethod
    def laplace(cls, *, sensitivity: Exact, scale: Exact, grid: Exact = 1) -> Loss:
        """Laplace noise of ``scale`` on multiples of ``grid``, for L1 ``sensitivity``.

        With epsilon = sensitivity / scale and x = grid / scale, the tight rho is
        epsilon - (1 - exp(-epsilon)) x / sinh(x): the Kullback-Leibler divergence
        (Lemma 4; one coordinate or many).  ``grid=0`` is the continuous law, whose
        rho is smaller: using it for noise on a grid would be optimistic.

        >>> round(float(Loss.laplace(sensitivity=3, scale=12).rho), 6)
        0.029057
        """
        reach = nonnegative(sensitivity, name="sensitivity")
        width = positive(scale, name="scale")
        step = nonnegative(grid, name="grid")
        epsilon = reach / width
        return cls(epsilon, laplace_rho(epsilon, step / width))

    @classmethod
    def gaussian(
        cls,
        *,
        sigma_squared: Exact,
        sensitivity: Exact | None = None,
        sensitivity_squared: Exact | None = None,
    ) -> Loss:
        """(Discrete) Gaussian noise for L2 ``sensitivity``: rho = sensitivity**2 / 2 sigma**2.

        ``sigma_squared`` is sigma**2, the parameter of the noise.

        Canonne, Kamath and Steinke (2020), Theorem 4, on the integers; Bun and
        Steinke (2016), Proposition 1.6, on the reals.  A vector of 5 coordinates
        that each move by 1 has ``sensitivity_squared=5``.

        >>> Loss.gaussian(sensitivity=3, sigma_squared=100).rho
        Fraction(9, 200)
        """
        spread = positive(sigma_squared, name="sigma_squared")
        if (sensitivity is None) == (sensitivity_squared is None):
            raise InvalidParameter(
                "P4",
                "give either sensitivity or sensitivity_squared.",
                why="the loss is computed from how far one person moves the result.",
                fix="Loss.gaussian(sensitivity=3, sigma_squared=100).",
            )
        if sensitivity_squared is not None:
            squared = nonnegative(sensitivity_squared, name="sensitivity_squared")
        else:
            squared = nonnegative(sensitivity or 0, name="sensitivity") ** 2
        return cls(INFINITY if squared else Fraction(0), squared / (2 * spread))

    @classmethod
    def exponential(cls, epsilon: Exact) -> Loss:
        """A mechanism of bounded range ``epsilon``, as the exponential one: rho = epsilon**2 / 8.

        Bounded range: the privacy loss of every outcome lies in one interval of
        length epsilon (Durfee and Rogers, 2019).  Four times less rho than
        purity alone gives (Lemma 5).

        >>> Loss.exponential("0.4").rho
        Fraction(1, 50)
        """
        amount = nonnegative(epsilon, name="epsilon")
        return cls(amount, min(amount**2 / 8, pure_rho(amount)))

    @classmethod
    def randomized_response(cls, epsilon: Exact) -> Loss:
        """Randomised response at ``epsilon``: the worst of all pure mechanisms, so :meth:`pure`."""
        return cls.pure(epsilon)

    # --- adding ---------------------------------------------------------------------------

    def __add__(self, other: Loss) -> Loss:
        if not isinstance(other, Loss):
            return NotImplemented
        return Loss(
            _sum(self.epsilon, other.epsilon),
            _sum(self.rho, other.rho),
            self.delta + other.delta,
        )

    def __radd__(self, other: object) -> Loss:
        if other == 0:  # the start of ``sum(losses)``
            return self
        return NotImplemented

    def __mul__(self, count: int) -> Loss:
        times = whole(count, name="count", least=1)
        return Loss(_times(times, self.epsilon), _times(times, self.rho), times * self.delta)

    __rmul__ = __mul__

    def __le__(self, other: Loss) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.rho <= other.rho and self.delta <= other.delta

    def __lt__(self, other: Loss) -> bool:
        return NotImplemented if not isinstance(other, Loss) else self <= other and self != other

    # ``a >= b`` and ``a > b`` are ``b <= a`` and ``b < a``: Python reflects them.

    # --- what it means --------------------------------------------------------------------

    def epsilon_at(self, delta: Exact) -> Amount:
        """The least certified epsilon for which (epsilon, ``delta``) holds, rounded up.

        The better of two routes: the pure bound (by its worst case, randomised
        response) and the concentrated bound (by the tight conversion).
        ``INFINITY`` if neither says anything at this delta.

        >>> round(float(Loss.concentrated("0.1").epsilon_at("1e-6")), 6)
        2.141939
        """
        target = failure_mass(delta)
        if target < self.delta:
            return INFINITY
        # The failure event costs its own mass; the rest of the law has what is left (Lemma 1).
        left = (target - self.delta) / (1 - self.delta)
        return min(pure_epsilon(self.epsilon, left), concentrated_epsilon(self.rho, left))

    def delta_at(self, epsilon: Exact) -> Fraction:
        """The least certified delta for which (``epsilon``, delta) holds, rounded up.

        >>> round(float(Loss.concentrated("0.05").delta_at("0.25")), 6)
        0.081773
        """
        target = nonnegative(epsilon, name="epsilon")
        best = min(pure_delta(self.epsilon, target), concentrated_delta(self.rho, target))
        return self.delta + (1 - self.delta) * best

    def for_group(self, size: int) -> Loss:
        """What ``size`` people together lose.

        Pure: size * epsilon.  Concentrated: size**2 * rho (Bun and Steinke,
        Proposition 1.9).  With a failure mass: (size * epsilon,
        size * exp((size - 1) epsilon) * delta), as DR after Theorem 2.2; the
        concentrated bound then comes from the pure one (Lemma 6).

        >>> Loss.pure("0.5").for_group(4).epsilon
        Fraction(2, 1)
        """
        people = whole(size, name="size", least=1)
        if people == 1:
            return self
        epsilon = _times(people, self.epsilon)
        if not self.delta:
            rho = _times(people**2, self.rho)
            return Loss(epsilon, rho if epsilon == INFINITY else min(rho, pure_rho(epsilon)))
        if isinstance(epsilon, float) or isinstance(self.epsilon, float):
            raise InvalidParameter(
                "P4",
                "a concentrated loss with a failure mass has no group loss of the same form.",
                why="what fails rarely for one person may fail often for several.",
                fix="convert first: Loss.approximate(loss.epsilon_at(delta), delta).for_group(4).",
            )
        exponent = (people - 1) * self.epsilon
        if exponent > _MOST_EXPONENT:
            raise _no_promise(f"for {people} people together delta would not stay below 1")
        return Loss(epsilon, pure_rho(epsilon), people * exp_up(exponent) * self.delta)

    def change_one(self) -> Loss:
        """The loss when a neighbour changes one unit, given that of adding or removing one.

        A change is one removal and one addition, so a group of two.  A mechanism
        that knows its own sensitivity under change-one neighbours may do better.
        """
        return self.for_group(2)

    # --- storage --------------------------------------------------------------------------

    def to_units(self) -> tuple[int | None, int | None, int]:
        """Whole units of epsilon, rho and delta, rounded up; ``None`` is infinite.

        >>> Loss.from_units(*Loss.approximate("1/3", "1e-9").to_units()).epsilon
        Fraction(1, 3)
        """
        return (
            None if isinstance(self.epsilon, float) else _ceil(self.epsilon, EPSILON_UNITS),
            None if isinstance(self.rho, float) else _ceil(self.rho, RHO_UNITS),
            _ceil(self.delta, DELTA_UNITS),
        )

    @classmethod
    def from_units(cls, epsilon: int | None, rho: int | None, delta: int) -> Loss:
        """The loss stored as whole units of ``epsilon``, ``rho`` (None: infinite) and ``delta``."""
        return cls(
            INFINITY if epsilon is None else Fraction(epsilon, EPSILON_UNITS),
            INFINITY if rho is None else Fraction(rho, RHO_UNITS),
            Fraction(delta, DELTA_UNITS),
        )

    def rounded(self) -> Loss:
        """This loss as an account stores it: whole units, never less than it was."""
        return Loss.from_units(*self.to_units())

    def __str__(self) -> str:
        return f"ε = {_text(self.epsilon)}, ρ = {_text(self.rho)}, δ = {_text(self.delta)}"


# --- amounts -------------------------------------------------------------------------------


def _amount(value: Exact, *, name: str) -> Amount:
    if isinstance(value, float) and value == INFINITY:
        return INFINITY
    return nonnegative(value, name=name)


def failure_mass(delta: Exact) -> Fraction:
    """``delta`` exactly, refused unless 0 <= delta < 1."""
    mass = fraction(delta, name="delta")
    if not 0 <= mass < 1:
        raise _no_promise(f"delta must be at least 0 and less than 1, got {_short(mass)}")
    return mass


def _no_promise(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P2",
        f"{what}.",
        why="delta is how much probability the promise to a person may miss by; at 1 it is void.",
        fix="pass a small probability such as delta='1e-9', or compose fewer releases.",
    )


def _short(number: Fraction) -> str:
    text = quote_value(number)  # which never fails, however many digits there are
    return text if len(text) < 30 else f"about {decimal_up(number)}"


def _ceil(amount: Fraction, units: int) -> int:
    # In integers: this is on the path of every charge, and Fraction arithmetic is slower.
    return -(-amount.numerator * units // amount.denominator)


def _sum(one: Amount, other: Amount) -> Amount:
    if isinstance(one, float) or isinstance(other, float):
        return INFINITY
    return one + other


def _times(count: int, amount: Amount) -> Amount:
    return INFINITY if isinstance(amount, float) else count * amount


def _text(amount: Amount) -> str:
    return "∞" if isinstance(amount, float) else decimal_up(amount)


NOTHING: Final = Loss(Fraction(0), Fraction(0), Fraction(0))
"""What an account has lost before its first charge."""


__all__ = [
    "DELTA_UNITS",
    "EPSILON_UNITS",
    "INFINITY",
    "NOTHING",
    "RHO_UNITS",
    "Amount",
    "Loss",
    "failure_mass",
]


def bounded_range_price(epsilon: Exact | None, rho: Exact | None) -> Fraction:
    """The epsilon of a mechanism of bounded range: as given, or sqrt(8 rho) rounded down."""
    if (epsilon is None) == (rho is None):
        raise InvalidParameter(
            "P4",
            "state either epsilon or rho.",
            why="together they would be two different promises, and neither is none.",
            fix="pass epsilon='0.5' or rho='1/32', not both.",
        )
    if epsilon is not None:
        return positive(epsilon, name="epsilon")
    return sqrt_down(8 * positive(rho if rho is not None else 0, name="rho"))
