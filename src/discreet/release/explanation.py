"""EXPLAIN: what a question would cost and how good it would be, without asking it."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Any

from discreet.accounting.loss import NOTHING, Loss
from discreet.exact.numbers import Exact, proportion, whole
from discreet.exact.records import dataclass
from discreet.mechanisms import KeyRelease
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import (
    Priced,
    Ratio,
    Recipe,
    Selection,
    deciding_mechanism,
    least_units,
)
from discreet.price.margins import MarginKind, margin_kind, ratio_margin, state_margin
from discreet.price.recipes import find_shifts
from discreet.release.display import as_text, fit_screen, number
from discreet.release.notes import (
    VALUE,
    MarginUnit,
    describe,
    list_together,
    margin_unit,
    name_mechanism,
    name_neighbours,
    notes,
    owner,
)
from discreet.release.render import ASSUMED_ROWS, explanation_json

_LINES, _WIDTH = 40, 100
"""How much of the engine's statement is printed."""
_WAYS = 6
"""How many ways to move measurements together are printed."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A question before it is asked, as it was ``priced``; the same whatever the data are.

    ``engine_sql`` is the statement that the engine would run; ``now`` says in words what whoever
    asks would pay now, where an account was looked at.
    """

    priced: Priced
    engine_sql: str
    now: str = field(default="", kw_only=True, compare=False)

    @property
    def loss(self) -> Loss:
        """What it would cost one unit."""
        return self.priced.loss

    def margins(
        self, confidence: Exact = "0.95", *, rows: int | None = None, certified: bool = False
    ) -> dict[str, float | None]:
        """The predicted margin of each aggregate; None where it depends on the group's size.

        They hold at ``confidence``.  Given ``rows``, those are predicted as well, for a group of
        so many rows with values spread evenly between their bounds.  ``certified``: only margins
        that hold whatever the data are.
        """
        beta = 1 - proportion(confidence, name="confidence")
        return {
            aggregate.name: self._margin(index, beta, rows, certified=certified)
            for index, aggregate in enumerate(self.priced.question.aggregates)
        }

    @property
    def margin_kinds(self) -> dict[str, MarginKind | None]:
        """How the margin of each aggregate is known."""
        return {
            aggregate.name: margin_kind(recipe)
            for aggregate, recipe in zip(
                self.priced.question.aggregates, self.priced.recipes, strict=True
            )
        }

    @property
    def margin_units(self) -> dict[str, MarginUnit]:
        """What the margin of each aggregate counts: the value's own unit, ranks or rows."""
        return {
            aggregate.name: margin_unit(recipe)
            for aggregate, recipe in zip(
                self.priced.question.aggregates, self.priced.recipes, strict=True
            )
        }

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """All it says, for programs; the same at every door.  Margins are at ``confidence``."""
        return explanation_json(self, confidence)

    def _margin(
        self, index: int, beta: Fraction, rows: int | None, *, certified: bool
    ) -> float | None:
        recipe = self.priced.recipes[index]
        mechanism = self.priced.mechanisms[recipe.measurement]
        if not isinstance(recipe, Ratio) or isinstance(
            mechanism, Selection | ClippedSums | KeyRelease
        ):
            return state_margin(self.priced, index, beta, certified=certified)
        if rows is None or certified:
            return None
        moved = find_shifts(self.priced.plan, recipe)
        size = whole(rows, name="rows", least=1)
        return ratio_margin(recipe, mechanism, beta, rows=size, moved=moved)

    def _threshold_words(self) -> str:
        """How many units it takes for a private group to be shown, in a few words."""
        if self.priced.threshold is None:
            return ""
        half = least_units(self.priced.threshold, deciding_mechanism(self.priced))
        return f"shown from about {half:,} units on"

    def _together_words(self) -> list[str]:
        """What is charged where not everything can be moved at once: the most of these."""
        if self.priced.together is None:
            return []
        ways = [
            " + ".join(name if part == "1" else f"{part} of {name}" for name, part in way.items())
            for way in list_together(self.priced)
        ]
        shown = "; ".join(ways[:_WAYS]) + (f"; {len(ways) - _WAYS:,} more" if ways[_WAYS:] else "")
        return [f"moved together, so charged once: the most of: {shown}"]

    def cost_lines(self) -> list[str]:
        """What it would cost now; and what a new measurement would, where that is not the same."""
        if self.now in ("", str(self.loss)):
            return [f"cost: {self.loss}"]
        anew = [] if self.loss == NOTHING else [f"cost if measured anew: {self.loss}"]
        return [f"cost: {self.now}", *anew]

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate the answer would carry."""
        return describe(self.priced)

    def __repr__(self) -> str:
        return fit_screen(str(self))

    def __str__(self) -> str:
        known, assumed = self.margins(), self.margins(rows=ASSUMED_ROWS)
        rows = []
        for aggregate, recipe in zip(
            self.priced.question.aggregates, self.priced.recipes, strict=True
        ):
            mechanism = self.priced.mechanisms[recipe.measurement]
            sensitivity = self.priced.sensitivities[recipe.measurement]
            rows.append(
                [
                    aggregate.name,
                    aggregate.function,
                    name_mechanism(mechanism),
                    f"{sensitivity.l1:,}",
                    _predict_words(recipe, known[aggregate.name], assumed[aggregate.name]),
                ]
            )
        if self.priced.threshold is not None:
            deciding = self.priced.threshold.measurement
            if all(recipe.measurement != deciding for recipe in self.priced.recipes):
                keys = ", ".join(key.name for key in self.priced.question.keys)
                moved = self.priced.sensitivities[deciding].l1
                noise = name_mechanism(self.priced.mechanisms[deciding])
                rows.append([keys, "groups", noise, f"{moved:,}", self._threshold_words()])
        private = f"private: {self._threshold_words()}"
        groups = [
            f"{key.name} ({private if key.values is None else len(key.values)})"
            for key in self.priced.question.keys
        ]
        footer = [
            f"one unit: {owner(self.priced)}; all its rows are hidden together "
            f"({name_neighbours(self.priced)})",
            f"groups: {', '.join(groups) or 'none'}",
            *self.cost_lines(),
            *self._together_words(),
            *notes(self.priced),
            "",
            *shorten(self.engine_sql),
        ]
        return as_text(["column", "aggregate", "noise", "sensitivity", "margin"], rows, footer)


def _predict_words(recipe: Recipe, margin: float | None, assumed: float | None) -> str:
    kind = margin_kind(recipe)
    if margin is not None:
        unit = "" if margin_unit(recipe) == VALUE else f" {margin_unit(recipe)}"
        return f"± {number(margin, up=True)}{unit} ({kind})"
    if assumed is not None:
        return f"± {number(assumed, up=True)} for {ASSUMED_ROWS:,} rows ({kind})"
    return "with the answer"


def shorten(sql: str) -> list[str]:
    """The first lines of a statement, each cut to the width of a screen."""
    lines = sql.splitlines()
    shown = [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 2]} …" for line in lines[:_LINES]]
    if shown != lines:
        shown.append(
            f"… {len(lines):,} lines in all: .engine_sql in Python, --json on the command line"
        )
    return shown
