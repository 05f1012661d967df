"""A quote: what a question would cost one analyst now, and whether the account would pay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from discreet.accounting.loss import NOTHING, Loss
from discreet.errors import Refusal
from discreet.exact.numbers import Exact
from discreet.release.amounts import loss_json
from discreet.release.display import number, percent
from discreet.release.explanation import Explanation
from discreet.release.render import margin_words


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to an answer: the ``charge`` now, the ``margins`` then, and its ``source``."""

    charge: Loss
    margins: tuple[tuple[str, float], ...]
    source: str

    @property
    def free(self) -> bool:
        """Whether it costs nothing."""
        return self.charge == NOTHING

    def __str__(self) -> str:
        cost = "free" if self.free else str(self.charge)
        stated = ", ".join(f"{name} ± {number(m, up=True)}" for name, m in self.margins)
        return "   ".join(part for part in (cost, stated, self.source) if part)

    def to_json(self) -> dict[str, Any]:
        """The choice as every door sends it."""
        return {
            "charge": loss_json(self.charge),
            "free": self.free,
            "margins": dict(self.margins),
            "source": self.source,
            "text": str(self),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Quote:
    """What a question would cost, and whether the account would pay; nothing is charged.

    ``outcome`` is "admitted"; "stored", "resumed" or "known", which are free; or the code of the
    ``refusal``.  The ``explanation`` says how good the answer would be, ``choices`` which ways to
    one there are, ``difference`` what improving what is known costs.
    """

    explanation: Explanation
    outcome: str
    refusal: Refusal | None = None
    choices: tuple[Choice, ...] = ()
    """What is known, what improving it costs, what a new measurement costs; as far as there is."""
    difference: Loss | None = None
    """What is charged where something is known that is improved."""

    @property
    def loss(self) -> Loss:
        """The price."""
        return self.explanation.loss if self.difference is None else self.difference

    @property
    def free(self) -> bool:
        """Whether it has been paid for already, or is told by what was."""
        return self.outcome in ("stored", "resumed", "known")

    def margins(self, confidence: Exact = "0.95") -> dict[str, float | None]:
        """The predicted margin of each aggregate, at ``confidence``."""
        return self.explanation.margins(confidence)

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """The explanation, and whether the account would pay; the same at every door.

        Margins are at ``confidence``.
        """
        return {
            **self.explanation.to_json(confidence),
            "affordable": self.refusal is None,
            "free": self.free,
            "outcome": self.outcome,
            "refusal": None if self.refusal is None else self.refusal.to_json(),
            "charge": loss_json(NOTHING if self.free else self.loss),
            "choices": [choice.to_json() for choice in self.choices],
        }

    def __repr__(self) -> str:
        return str(self)

    def describe(self, confidence: Exact = "0.95") -> list[str]:
        """The price, then the margins that it buys, or the ways to an answer if there are some.

        Margins are at ``confidence``.
        """
        if self.refusal is not None:
            return str(self.refusal).splitlines()
        price = self._price_words()
        if self.loss == NOTHING:
            return [price]
        if self.choices or self.outcome == "known":  # which is as good as what it is told by
            return [price, *(f"choice: {choice}" for choice in self.choices)]
        words = margin_words(self.explanation, confidence)
        expected = ", ".join(f"{name} {margin}" for name, margin in words.items())
        return [price, *([f"{expected} ({percent(confidence)})"] if expected else [])]

    @property
    def is_told(self) -> bool:
        """Whether what is known is all there is: nothing is offered that would buy more."""
        return self.outcome == "known" and len(self.choices) == 1

    def explain_lines(self, confidence: Exact = "0.95") -> list[str]:
        """The price in words; and how it would be answered, if anything is to be measured.

        Margins are at ``confidence``.
        """
        said = self.describe(confidence)
        return said if self.is_told else [*said, "", *str(self.explain()).splitlines()]

    def explain(self) -> Explanation:
        """The explanation, which says this price."""
        if self.refusal is not None:
            return self.explanation
        return replace(self.explanation, now=self._price_words())

    def _price_words(self) -> str:
        if self.loss == NOTHING:
            return "free: it is public"
        if self.outcome == "known":
            return "free: it is known"
        return f"free: paid for before ({self.loss})" if self.free else str(self.loss)

    def __str__(self) -> str:
        return "\n".join(self.describe())
