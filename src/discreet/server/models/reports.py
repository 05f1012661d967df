"""What is computed for a price and is no question: reports, medians, choices."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from discreet.question.offer import Offer
from discreet.server.models.base import Given, Number, Price, Text, Waited


class QualityChecks(Waited):
    """Properties that should hold, by name, or as SELECT DISTANCE_TO_...(...) FROM a table."""

    checks: (
        Text
        | Annotated[
            dict[Annotated[str, Field(max_length=200)], dict[str, Number | list[str]]],
            Field(max_length=100),
        ]
    )
    epsilon: Number


class QualityExplanation(Given):
    """What a report would cost, and how far off its numbers would be."""

    checks: list[dict[str, str | None]]
    sensitivity: int
    margin: int
    loss: Price


class QualityReport(Given):
    """Of each property, about how many units stand in its way."""

    id: str
    distances: dict[str, int]
    margin: int
    price: Price
    replayed: bool


class MedianWanted(Waited):
    """A median with noise to fit the data: by smooth sensitivity, or if a bound is passed."""

    question: Text
    epsilon: Number
    delta: Number
    bound: Number | None = None

    def settings(self) -> dict[str, Any]:
        """The keywords with which the curator releases it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "bound": self.bound}


class MedianExplanation(Given):
    """What such a median would cost."""

    by: str
    margin: float | None
    loss: Price


class RobustMedian(Given):
    """A median; null where the proposed bound may not hold."""

    id: str
    value: float | None
    margin: float | None
    price: Price
    replayed: bool


class Choose(Waited):
    """Questions of one number each, by name, or one with public groups: which is largest?"""

    candidates: Text | dict[Annotated[str, Field(max_length=200)], Text]
    epsilon: Number | None = None
    rho: Number | None = None
    k: Annotated[int, Field(ge=1, le=1000)] = 1
    counts: bool = False

    def offer(self) -> Offer:
        """What is offered, or a refusal."""
        return Offer.of(epsilon=self.epsilon, rho=self.rho)


class ChoiceExplanation(Given):
    """What a choice would cost, and how far below the best who is chosen may be."""

    choice: str
    candidates: int
    sensitivity: float
    method: str
    margin: float
    theorem_margin: float
    loss: Price


class Chosen(Given):
    """Who was chosen, best first."""

    id: str
    chosen: list[str]
    numbers: list[float] | None
    margin: float
    theorem_margin: float
    price: Price
    replayed: bool
