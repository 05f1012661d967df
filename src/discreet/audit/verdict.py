"""What an audit can conclude."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol

from discreet.accounting.conversion import Amount
from discreet.exact.numbers import decimal_up


class Verdict(StrEnum):
    """The conclusion about a promise: only ``PROVED`` says that it is kept."""

    BROKEN = "broken"
    """Something that the promise excludes was found."""
    PROVED = "proved"
    """Computed from the exact laws: this pair of inputs cannot be told apart better."""
    CONSISTENT = "consistent"
    """Looked for a breach and found none; that is no proof."""
    UNDECIDED = "undecided"
    """Nothing could be concluded."""


class Finding(Protocol):
    """What every audit hands back."""

    @property
    def verdict(self) -> Verdict:
        """The conclusion."""
        ...

    @property
    def alarm(self) -> bool:
        """Whether the promise was found broken."""
        ...

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        ...

    def picture(self) -> str:
        """A drawing as SVG text; empty where there is nothing to draw."""
        ...


def amount_up(amount: Amount, digits: int = 6) -> str:
    """An amount as a person reads it, rounded up.

    >>> from fractions import Fraction
    >>> amount_up(Fraction(2, 3), 4), amount_up(float("inf"))
    ('0.6667', '∞')
    """
    return "∞" if isinstance(amount, float) else decimal_up(amount, digits)


def amount_down(amount: Amount, digits: int = 6) -> str:
    """An amount as a person reads it, rounded down: for what is certified from below.

    >>> from fractions import Fraction
    >>> amount_down(Fraction(2, 3), 4)
    '0.6666'
    """
    if isinstance(amount, float):
        return "∞" if amount > 0 else "-∞"
    return decimal_up(-amount, digits).removeprefix("-") if amount > 0 else decimal_up(amount)


__all__ = ["Finding", "Verdict", "amount_down", "amount_up"]
