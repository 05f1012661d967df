"""What a target says it promises, as points (epsilon, delta) that an experiment can refute.

A promise of rho is turned into points by the certified conversion; an exact
audit offers the points of its own curve, the sharpest there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss, failure_mass
from discreet.audit.verdict import amount_up
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import float_up, nonnegative

_DELTAS = (
    *(Fraction(10**k, 10**6) for k in range(5)),
    Fraction(1, 20),
    Fraction(1, 5),
    Fraction(2, 5),
)


@dataclass(frozen=True, slots=True)
class Promise:
    """Pairs (epsilon, delta), all of which are promised at once.

    ``points`` are these pairs.
    """

    points: tuple[tuple[Fraction, Fraction], ...]

    def power(self, alpha: float) -> float:
        """The most that a test wrong ``alpha`` of the time about one world is right of the other.

        Each point bounds it twice: P(S) <= e**epsilon Q(S) + delta for the event
        and the same for its complement, with the worlds exchanged (DR 2.3.3).

        >>> round(Promise.of(("0.5", "0.01")).power(0.2), 6)
        0.339744
        """
        best = 1.0
        for epsilon, delta in self.points:
            growth, miss = math.exp(min(float_up(epsilon), 700.0)), float_up(delta)
            best = min(best, growth * alpha + miss, 1 - (1 - miss - alpha) / growth)
        return max(best, alpha)

    @classmethod
    def of(cls, promised: Promised) -> Promise:
        """The points ``promised`` by a loss, a number, a pair, a budget or an exact audit."""
        if isinstance(promised, Promise):
            return promised
        if isinstance(promised, Curved):
            return cls(_sort_points(promised.list_promised()))
        if isinstance(promised, Budget):
            if promised.epsilon is not None:
                return cls(((promised.epsilon, promised.delta),))
            return cls.of(Loss.concentrated(promised.rho, promised.delta))
        if isinstance(promised, Loss):
            if isinstance(promised.epsilon, Fraction):
                return cls(((promised.epsilon, promised.delta),))
            ends = [(promised.epsilon_at(d), d) for d in _DELTAS if d > promised.delta]
            return cls(_sort_points((e, d) for e, d in ends if isinstance(e, Fraction)))
        if isinstance(promised, tuple):
            epsilon, delta = promised
            return cls(((nonnegative(epsilon, name="epsilon"), failure_mass(delta)),))
        return cls(((nonnegative(promised, name="promised"), Fraction(0)),))

    def __str__(self) -> str:
        if len(self.points) == 1:
            epsilon, delta = self.points[0]
            return f"ε = {amount_up(epsilon)}" + (f", δ = {amount_up(delta)}" if delta else "")
        (first, at), (last, end) = self.points[0], self.points[-1]
        return (
            f"ε = {amount_up(first)} at δ = {amount_up(at)} up to "
            f"ε = {amount_up(last)} at δ = {amount_up(end)}"
        )


@runtime_checkable
class Curved(Protocol):
    """Something with a certified curve of its own: an exact audit."""

    def list_promised(self) -> Iterable[tuple[Fraction, Fraction]]:
        """Pairs (epsilon, delta) that are certainly kept."""
        ...


Promised = Promise | Loss | Budget | Curved | Number | tuple[Number, Number]
"""What a promise may be given as."""


def _sort_points(
    points: Iterable[tuple[Fraction, Fraction]],
) -> tuple[tuple[Fraction, Fraction], ...]:
    """The points by rising epsilon, without those that say nothing."""
    kept = tuple(sorted((e, d) for e, d in points if d < 1))
    if not kept:
        raise InvalidParameter(
            "P4",
            "this promise allows everything.",
            why="what promises nothing to a person cannot be broken, so there is nothing to audit.",
            fix="pass promised=... with a finite epsilon or rho.",
        )
    return kept


__all__ = ["Curved", "Promise", "Promised"]
