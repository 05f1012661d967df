"""EXPLAIN: what a question would cost and how good it would be, without asking it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answer import aggregate_margin
from discreet.display import as_text, cell
from discreet.exact import Exact, proportion
from discreet.loss import Loss
from discreet.price import LaplaceNoise, Priced, SelectionNoise
from discreet.words import described, notes


@dataclass(frozen=True, slots=True)
class Explanation:
    """A priced question before it is asked; the same whatever the data are."""

    priced: Priced
    engine_sql: str

    @property
    def loss(self) -> Loss:
        """What it would cost one unit."""
        return self.priced.loss

    def margins(self, confidence: Exact = "0.95") -> dict[str, float | None]:
        """The predicted margin of each aggregate; None where it depends on the group's size."""
        beta = 1 - proportion(confidence, name="confidence")
        return {
            aggregate.name: aggregate_margin(self.priced, place, Fraction(beta))
            for place, aggregate in enumerate(self.priced.question.aggregates)
        }

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate the answer would carry."""
        return described(self.priced)

    def __str__(self) -> str:
        margins = self.margins()
        rows = []
        for aggregate, recipe in zip(
            self.priced.question.aggregates, self.priced.recipes, strict=True
        ):
            noise = self.priced.noises[recipe.measurement]
            sensitivity = self.priced.sensitivities[recipe.measurement]
            margin = margins[aggregate.name]
            rows.append(
                [
                    aggregate.name,
                    aggregate.function,
                    _named(noise),
                    f"{sensitivity.l1:,}",
                    "with the answer" if margin is None else "± " + cell(margin, None),
                ]
            )
        groups = [
            f"{key.name} ({'private: thresholded' if key.values is None else len(key.values)})"
            for key in self.priced.question.keys
        ]
        footer = [
            f"groups: {', '.join(groups) or 'none'}",
            f"cost: {self.loss}",
            *notes(self.priced),
            "",
            self.engine_sql,
        ]
        return as_text(["column", "aggregate", "noise", "sensitivity", "margin"], rows, footer)


def _named(noise: object) -> str:
    if isinstance(noise, SelectionNoise):
        return "exponential"
    return "Laplace" if isinstance(noise, LaplaceNoise) else "Gaussian"
