"""A quote: what a question would cost one analyst now, and whether the account would pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.accounting.loss import Loss
from discreet.errors import Refusal
from discreet.exact.numbers import Exact
from discreet.release.explanation import Explanation


@dataclass(frozen=True, slots=True, repr=False)
class Quote:
    """What a question would cost, and whether the account would pay; nothing is charged."""

    explanation: Explanation
    outcome: str  # "admitted"; "stored" or "resumed", which are free; or a refusal's code
    refusal: Refusal | None = None

    @property
    def loss(self) -> Loss:
        """The price."""
        return self.explanation.loss

    @property
    def free(self) -> bool:
        """Whether it has been paid for already."""
        return self.outcome in ("stored", "resumed")

    def margins(self, confidence: Exact = "0.95") -> dict[str, float | None]:
        """The predicted margin of each aggregate."""
        return self.explanation.margins(confidence)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The explanation, and whether the account would pay; the same at every door."""
        return {
            **self.explanation.to_json(confidence),
            "affordable": self.refusal is None,
            "free": self.free,
            "outcome": self.outcome,
            "refusal": None if self.refusal is None else self.refusal.to_json(),
        }

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.refusal is not None:
            return str(self.refusal)
        return f"free: paid for before ({self.loss})" if self.free else str(self.loss)
