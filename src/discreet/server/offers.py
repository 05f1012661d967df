"""What is offered where a question does not say: the section [offers], by analyst or by role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import Refusal, SchemaRefusal, quote_value
from discreet.ledger.keys import Grant
from discreet.question.offer import Offer

AMOUNTS = ("epsilon", "rho", "delta", "within", "confidence")
"""What an offer is made of, by the names in which every door takes it."""


def read_within(text: str) -> str | dict[str, str]:
    """A margin for all numbers, or one for each by name.

    >>> read_within("50"), read_within("n = 50, mean=0.5")
    ('50', {'n': '50', 'mean': '0.5'})
    """
    if "=" not in text:
        return text.strip()
    parts = [part.partition("=") for part in text.split(",")]
    return {name.strip(): margin.strip() for name, _, margin in parts}


def make_offer(amounts: Mapping[str, str]) -> Offer:
    """The offer that these texts make, or a refusal."""
    found: dict[str, Any] = dict(amounts)
    if "within" in found:
        found["within"] = read_within(found["within"])
    return Offer.of(**found)


class Defaults:
    """The offers of a session's file."""

    def __init__(self, section: Mapping[str, Any]) -> None:
        self._amounts = {name: _read(name, amounts) for name, amounts in section.items()}

    def of(self, grant: Grant) -> dict[str, str]:
        """What is offered for this analyst if they say nothing; by name, else by role."""
        return dict(self._amounts.get(grant.analyst) or self._amounts.get(grant.role) or {})


def _read(name: str, amounts: object) -> dict[str, str]:
    try:
        if not isinstance(amounts, Mapping) or any(key not in AMOUNTS for key in amounts):
            raise TypeError(name)
        found = {key: str(amount) for key, amount in amounts.items()}
        make_offer(found)
    except (Refusal, TypeError):
        raise SchemaRefusal(
            "S2",
            f"[offers] says something of {quote_value(name)} that is not an offer.",
            why="what is offered for somebody who says nothing must be meant.",
            fix='write a table by an analyst\'s name or role: [offers.analyst] epsilon = "0.1".',
        ) from None
    return found


__all__ = ["AMOUNTS", "Defaults", "make_offer", "read_within"]
