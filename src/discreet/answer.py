"""What the analyst gets: values with margins, the price, a certificate, and words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.display import as_html, as_text, cell
from discreet.exact import Exact, proportion
from discreet.expressions import ColumnRef
from discreet.loss import Loss
from discreet.price import Linear, Priced, Quantile, Ratio, SelectionNoise
from discreet.price.margins import linear_margin, rank_margin
from discreet.price.noises import noised
from discreet.price.recipes import ratio_values
from discreet.reading import Entries, Released, Row, Selected, aggregate_values, result_rows
from discreet.truth import Group
from discreet.words import described, notes

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

SIMULATIONS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A released table.

    Everything in it is already paid for: looking at it in any way is free.
    """

    priced: Priced
    groups: tuple[Group, ...]
    released: tuple[Released, ...]
    rows: tuple[Row, ...] = field(init=False)

    def __post_init__(self) -> None:
        values = aggregate_values(self.priced, self.released, len(self.groups))
        rows = result_rows(self.priced, self.groups, values)
        object.__setattr__(self, "rows", tuple(rows))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(output.name for output in self.priced.question.outputs)

    @property
    def loss(self) -> Loss:
        """What this answer cost one unit."""
        return self.priced.loss

    @property
    def notes(self) -> tuple[str, ...]:
        """What the margins do not tell, in words."""
        return notes(self.priced)

    def column(self, name: str) -> list[Any]:
        """The values of one column, in the order of the rows."""
        place = self.columns.index(name)
        return [row.values[place] for row in self.rows]

    def value(self) -> Any:
        """The single value of an answer with one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise LookupError("the answer has more than one value; use column(name)")
        return self.rows[0].values[0]

    def margins(self, confidence: Exact = "0.95") -> dict[str, list[float | None]]:
        """For each column, how far each value may be off; None for keys and choices.

        At the given confidence, one value at a time: noise alone; clipping and
        bounding are told in ``notes``.
        """
        beta = 1 - proportion(confidence, name="confidence")
        return {
            name: [self._cell_margin(place, row, beta) for row in self.rows]
            for place, name in enumerate(self.columns)
        }

    def _cell_margin(self, place: int, row: Row, beta: Fraction) -> float | None:
        released = row.values[place]
        if not isinstance(released, int | float) or isinstance(released, bool):
            return None
        expression = self.priced.question.outputs[place].expression
        names = [aggregate.name for aggregate in self.priced.question.aggregates]
        if not isinstance(expression, ColumnRef):
            return _spread(self._simulated_output(place, row), float(released), beta)
        if expression.name not in names:
            return None
        aggregate = names.index(expression.name)
        recipe = self.priced.recipes[aggregate]
        if isinstance(recipe, Ratio):
            entries = self._simulated_entries(recipe.measurement, row.group)
            return _spread(ratio_values(recipe, entries), float(released), beta)
        return aggregate_margin(self.priced, aggregate, beta)

    def _simulated_entries(self, measurement: int, group: int) -> Entries:
        """A parametric bootstrap: the released entries with fresh noise of the same law."""
        noise, part = self.priced.noises[measurement], self.released[measurement]
        if isinstance(part, Selected) or isinstance(noise, SelectionNoise):
            raise TypeError("a choice has no entries")
        copies = np.repeat(part[group : group + 1], SIMULATIONS, axis=0)
        return noised(noise, copies).astype(np.float64)

    def _simulated_output(self, place: int, row: Row) -> Entries:
        """An expression over aggregates, computed from simulated entries."""
        again: list[Released] = [
            part.only([row.group] * SIMULATIONS)
            if isinstance(part, Selected)
            else self._simulated_entries(measurement, row.group)
            for measurement, part in enumerate(self.released)
        ]
        values = aggregate_values(self.priced, again, SIMULATIONS)
        groups = (self.groups[row.group],) * SIMULATIONS
        simulated = result_rows(_without_ending(self.priced), groups, values)
        cells = [one.values[place] for one in simulated]
        return np.array([np.nan if cell is None else float(cell) for cell in cells])

    # --- as a table -----------------------------------------------------------------------

    def to_arrow(self) -> pyarrow.Table:
        """The values as an Arrow table."""
        import pyarrow as pa

        return pa.table({name: _plain(self.column(name)) for name in self.columns})

    def to_pandas(self) -> pandas.DataFrame:
        """The values as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame({name: self.column(name) for name in self.columns})

    def to_polars(self) -> polars.DataFrame:
        """The values as a Polars data frame."""
        import polars as pl

        return pl.DataFrame({name: self.column(name) for name in self.columns}, strict=False)

    @property
    def certificate(self) -> dict[str, Any]:
        """What was promised, to whom, and how: plain JSON."""
        return {"discreet": version("discreet"), **described(self.priced)}

    def __str__(self) -> str:
        return as_text(self.columns, self._shown(), self._footer())

    def _repr_html_(self) -> str:
        return as_html(self.columns, self._shown(), self._footer())

    def _shown(self) -> list[list[str]]:
        margins = self.margins()
        return [
            [cell(row.values[place], margins[name][i]) for place, name in enumerate(self.columns)]
            for i, row in enumerate(self.rows)
        ]

    def _footer(self) -> list[str]:
        return [f"± at 95 % confidence; cost {self.loss}", *self.notes]


def aggregate_margin(priced: Priced, place: int, beta: Fraction) -> float | None:
    """The margin of an aggregate where public parameters alone tell it; in ranks for quantiles."""
    recipe = priced.recipes[place]
    noise = priced.noises[recipe.measurement]
    if isinstance(recipe, Linear) and not isinstance(noise, SelectionNoise):
        return linear_margin(recipe, noise, beta) + (
            0.0 if _whole(recipe) else float(recipe.grid) / 2
        )
    if isinstance(recipe, Quantile) and isinstance(noise, SelectionNoise):
        return rank_margin(recipe, noise, beta)
    return None


def _whole(recipe: Linear) -> bool:
    """Whether the number needs no rounding to its grid: one entry, a whole number of times."""
    return sum(1 for c in recipe.coefficients if c) == 1 and all(
        (c / recipe.grid).denominator == 1 for c in recipe.coefficients
    )


def _spread(simulated: Entries, released: float, beta: Fraction) -> float | None:
    """The distance that a share of 1 - beta of the simulations keeps; None if half fail."""
    errors = np.abs(simulated[~np.isnan(simulated)] - released)
    if errors.size < SIMULATIONS // 2:
        return None
    return float(np.quantile(errors, float(1 - beta)))


def _without_ending(priced: Priced) -> Priced:
    question = replace(priced.question, having=None, order=(), limit=None)
    return replace(priced, question=question)


def _plain(values: list[Any]) -> list[Any]:
    return [float(v) if isinstance(v, Fraction) else v for v in values]
