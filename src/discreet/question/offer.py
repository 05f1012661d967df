"""What an analyst offers for an answer: a loss, or the accuracy wanted.

Every door makes its offers here: the keywords of a Python call, the options of a command, the
body of a request and the clause of a statement.  It imports little, for the client does too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, decimal_up, positive, proportion
from discreet.exact.records import dataclass

Within = Exact | Mapping[str, Exact]
"""One margin for all numbers of an answer, or one for each by name."""

CONFIDENCE = Fraction(95, 100)
"""How surely margins hold if nothing is said."""


class Amounts(TypedDict, total=False):
    """The keywords in which an offer is made; at most one of epsilon, rho and within."""

    epsilon: Exact | None
    rho: Exact | None
    delta: Exact | None
    within: Within | None
    confidence: Exact
    fresh: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """A loss, or the accuracy wanted."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    within: tuple[tuple[str, Fraction], ...] = ()  # (aggregate name, or "" for all; margin)
    confidence: Fraction = CONFIDENCE
    fresh: bool = False  # a new measurement, whatever is known already

    @classmethod
    def of(
        cls,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        within: Within | None = None,
        confidence: Exact = CONFIDENCE,
        fresh: bool = False,
    ) -> Offer:
        """The offer that these amounts make, or a refusal.

        >>> Offer.of(within={"n": 30}, confidence="0.99").within
        (('n', Fraction(30, 1)),)
        >>> Offer.of(epsilon="0.3", rho="0.2")
        Traceback (most recent call last):
        discreet.errors.InvalidParameter: P4: both epsilon and rho are given.
        Why: each of them alone decides what the people in the data lose.
        Fix: leave out epsilon or rho.
        """
        alone = {"epsilon": epsilon, "rho": rho, "within": within}
        given = [name for name, amount in alone.items() if amount is not None]
        if len(given) > 1:
            raise InvalidParameter(
                "P4",
                f"both {given[0]} and {given[1]} are given.",
                why="each of them alone decides what the people in the data lose.",
                fix=f"leave out {given[0]} or {given[1]}.",
            )
        return cls(
            epsilon=None if epsilon is None else positive(epsilon, name="epsilon"),
            rho=None if rho is None else positive(rho, name="rho"),
            delta=None if delta is None else _read_delta(delta),
            within=_targets(within),
            confidence=proportion(confidence, name="confidence"),
            fresh=_flag(fresh),
        )

    @property
    def empty(self) -> bool:
        """Whether it says neither what to pay nor how good the answer must be."""
        return self.epsilon is None and self.rho is None and not self.within

    def beside(self, written: Offer | None) -> Offer:
        """This offer; or, if it is empty, the one written in the statement.

        >>> str(Offer.of(delta="1e-9").beside(Offer.of(epsilon="0.3")))
        'epsilon = 0.3, delta = 1e-9'
        """
        if not self.empty or written is None:
            return self
        offer = written if self.delta is None else replace(written, delta=self.delta)
        return replace(offer, fresh=True) if self.fresh else offer

    def divide(self, parts: int) -> Offer:
        """The even share of one of so many questions; an accuracy is asked of each of them.

        >>> str(Offer.of(epsilon="0.6", delta="1e-6").divide(2))
        'epsilon = 0.3, delta = 5e-7'
        """
        amounts = {
            name: amount / parts
            for name in ("epsilon", "rho", "delta")
            if (amount := getattr(self, name)) is not None
        }
        return replace(self, **amounts)

    def to_json(self) -> dict[str, Any]:
        """What was offered, exactly; :meth:`of` takes it back.

        >>> Offer.of(within=30, delta="0").to_json()
        {'delta': '0', 'within': {'': '30'}, 'confidence': '19/20'}
        """
        shape: dict[str, Any] = {
            name: str(amount)
            for name in ("epsilon", "rho", "delta")
            if (amount := getattr(self, name)) is not None
        }
        if self.within:
            shape["within"] = {name: str(margin) for name, margin in self.within}
        if self.within or self.confidence != CONFIDENCE:
            shape["confidence"] = str(self.confidence)
        if self.fresh:
            shape["fresh"] = True
        return shape

    def amounts(self) -> Amounts:
        """The keywords of a call that makes this offer."""
        found: Amounts = {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "delta": self.delta,
            "within": dict(self.within) or None,
            "confidence": self.confidence,
        }
        if self.fresh:
            found["fresh"] = True
        return found

    def __str__(self) -> str:
        if self.within:
            margins = ", ".join(
                f"{name} within {_decimal(margin)}" if name else f"within {_decimal(margin)}"
                for name, margin in self.within
            )
            return f"{margins} at {_decimal(self.confidence)} confidence"
        paid = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return ", ".join(
            f"{name} = {_decimal(amount)}" for name, amount in paid.items() if amount is not None
        )


def _flag(fresh: object) -> bool:
    if not isinstance(fresh, bool):
        raise InvalidParameter(
            "P4",
            f"fresh is a {type(fresh).__name__}, not true or false.",
            why="a new measurement costs the people in the data again.",
            fix="say fresh=True, or leave it out.",
        )
    return fresh


def unpaid_refusal() -> InvalidParameter:
    """What is said when an explanation is to be paid for."""
    return InvalidParameter(
        "P4",
        "EXPLAIN is not charged.",
        why="it says nothing about anybody in the data.",
        fix="call explain(...), or leave out EXPLAIN.",
    )


def free_refusal() -> InvalidParameter:
    """What is said when the price is asked of what a release or a survey tells."""
    return InvalidParameter(
        "P4",
        "this is told by a release or a survey, and has no price.",
        why="the people in the data paid for it when that was made, and for no answer again.",
        fix="ask it: it is free.",
    )


def _read_delta(delta: Exact) -> Fraction:
    from discreet.accounting.loss import failure_mass  # heavier than everything else here

    return failure_mass(delta)


def _targets(within: Within | None) -> tuple[tuple[str, Fraction], ...]:
    if within is None:
        return ()
    named = within if isinstance(within, Mapping) else {"": within}
    return tuple((name, positive(margin, name="within")) for name, margin in named.items())


def _decimal(amount: Fraction) -> str:
    """As it would be typed: the decimal if it has one that is short, else the ratio.

    >>> [_decimal(Fraction(x)) for x in ("0.3", "2/3", "1e-9", "700")]
    ['0.3', '2/3', '1e-9', '700']
    """
    text = decimal_up(amount)
    if Fraction(text) != amount:
        return str(amount)
    return min(text, f"{Decimal(text):e}", key=len)


__all__ = ["CONFIDENCE", "Amounts", "Offer", "Within", "free_refusal", "unpaid_refusal"]
