"""EXPLAIN: what a question would cost and how good it would be, without asking it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.answer import aggregate_margin
from discreet.display import as_text, number
from discreet.exact import Exact, proportion, whole
from discreet.loss import Loss
from discreet.price import LaplaceNoise, Priced, Ratio, SelectionNoise
from discreet.price.margins import ratio_margin
from discreet.words import described, notes, owner

ASSUMED_ROWS = 1000
"""The size of group for which EXPLAIN predicts means, variances and the like."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A priced question before it is asked; the same whatever the data are."""

    priced: Priced
    engine_sql: str

    @property
    def loss(self) -> Loss:
        """What it would cost one unit."""
        return self.priced.loss

    def margins(
        self, confidence: Exact = "0.95", *, rows: int | None = None
    ) -> dict[str, float | None]:
        """The predicted margin of each aggregate; None where it depends on the group's size.

        Given ``rows``, those are predicted as well, for a group of so many rows
        with values spread evenly between their bounds.
        """
        beta = 1 - proportion(confidence, name="confidence")
        return {
            aggregate.name: self._margin(place, beta, rows)
            for place, aggregate in enumerate(self.priced.question.aggregates)
        }

    def _margin(self, place: int, beta: Fraction, rows: int | None) -> float | None:
        recipe = self.priced.recipes[place]
        noise = self.priced.noises[recipe.measurement]
        if rows is None or not isinstance(recipe, Ratio) or isinstance(noise, SelectionNoise):
            return aggregate_margin(self.priced, place, beta)
        return ratio_margin(recipe, noise, beta, rows=whole(rows, name="rows", least=1))

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate the answer would carry."""
        return described(self.priced)

    def __str__(self) -> str:
        known, assumed = self.margins(), self.margins(rows=ASSUMED_ROWS)
        rows = []
        for aggregate, recipe in zip(
            self.priced.question.aggregates, self.priced.recipes, strict=True
        ):
            noise = self.priced.noises[recipe.measurement]
            sensitivity = self.priced.sensitivities[recipe.measurement]
            margin = known[aggregate.name]
            guess = assumed[aggregate.name]
            rows.append(
                [
                    aggregate.name,
                    aggregate.function,
                    _named(noise),
                    f"{sensitivity.l1:,}",
                    _predicted(margin, guess),
                ]
            )
        groups = [
            f"{key.name} ({'private: thresholded' if key.values is None else len(key.values)})"
            for key in self.priced.question.keys
        ]
        footer = [
            f"one unit: {owner(self.priced)}; all its rows are hidden together "
            f"({self.priced.neighbours})",
            f"groups: {', '.join(groups) or 'none'}",
            f"cost: {self.loss}",
            *notes(self.priced),
            "",
            self.engine_sql,
        ]
        return as_text(["column", "aggregate", "noise", "sensitivity", "margin"], rows, footer)


def _predicted(margin: float | None, assumed: float | None) -> str:
    if margin is not None:
        return f"± {number(margin, up=True)}"
    if assumed is not None:
        return f"± {number(assumed, up=True)} for {ASSUMED_ROWS:,} rows"
    return "with the answer"


def _named(noise: object) -> str:
    if isinstance(noise, SelectionNoise):
        return "exponential"
    return "Laplace" if isinstance(noise, LaplaceNoise) else "Gaussian"
