"""An answer from a release, read as any answer is: as text, in a notebook, as a data frame, a file.

It costs nothing, and every number says what kind of margin it has.  Values and margins are written
by the same functions that write the answers of a curator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, fraction
from discreet.publication.margins import Margin, Promise
from discreet.release.answer import as_arrow_values
from discreet.release.chart import suggest_chart
from discreet.release.display import MOST_ROWS, as_html, as_text, cell, fit_table
from discreet.release.intervals import Interval
from discreet.release.render import answer_arrow, answer_csv, check_frames, kind_of, plain

if TYPE_CHECKING:
    import altair
    import pandas
    import polars
    import pyarrow

    from discreet.charts import Picture
    from discreet.release.answer import Answer


@dataclass(frozen=True, slots=True)
class Told:
    """An answer from a release: free, with a margin for every number that has one.

    ``text`` is what was asked; ``columns`` and ``rows`` are the table; ``margins`` are those of a
    column, a row each, at ``confidence``; ``keys`` the columns that say of whom a number is;
    ``notes`` what is said of it besides.

    >>> from discreet.publication.margins import Promise
    >>> sick = {"n": (Margin(Promise.EXACT, 11.2),)}
    >>> told = Told("SELECT ...", ("city", "n"), (("Cork", 412),), sick, ("Free.",))
    >>> print(told.to_csv(), end="")
    city,n,n_margin,n_low,n_high,n_promise
    Cork,412,11.2,400.8,423.2,exact
    """

    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    margins: Mapping[str, tuple[Margin, ...]]
    notes: tuple[str, ...]
    keys: tuple[str, ...] = ()
    """The columns that say of whom a number is."""
    confidence: Exact = "0.95"
    """At which its margins hold."""

    def column(self, name: str) -> list[Any]:
        """The values of the column ``name``, in the order of the rows."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def value(self) -> Any:
        """The single value of an answer with one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise LookupError("the answer has more than one value; use column(name)")
        return self.rows[0][0]

    def accuracy(
        self, confidence: Exact | None = None
    ) -> dict[str, list[tuple[float | None, Interval | None]]]:
        """For every column and row its margin and its interval, at the ``confidence`` asked for."""
        self._check(confidence)
        found = {}
        for name in self.columns:
            listed = self.margins.get(name) or (None,) * len(self.rows)
            found[name] = [
                _state(value, one) for value, one in zip(self.column(name), listed, strict=True)
            ]
        return found

    @property
    def margin_units(self) -> dict[str, str | None]:
        """In what the margins of each column are: always in its values' own unit."""
        return {name: "value" if name in self.margins else None for name in self.columns}

    @property
    def margin_kinds(self) -> dict[str, str | None]:
        """What the margins of each column promise, the weakest of them."""
        order = ("none", "typical", "certified", "exact")
        return {
            name: next(
                (k for k in order if any(m.promise.value == k for m in self.margins[name])), None
            )
            if name in self.margins
            else None
            for name in self.columns
        }

    # --- sent --------------------------------------------------------------------------------

    def to_record(self) -> dict[str, Any]:
        """All of it as it is sent to the client: values exactly, and what each margin promises."""
        return {
            "text": self.text,
            "columns": list(self.columns),
            "rows": [[_write_value(value) for value in row] for row in self.rows],
            "margins": {
                name: [
                    [one.promise.value, one.within, None if one.ends is None else list(one.ends)]
                    for one in listed
                ]
                for name, listed in self.margins.items()
            },
            "notes": list(self.notes),
            "keys": list(self.keys),
            "confidence": str(self.confidence),
        }

    @classmethod
    def from_record(cls, shape: Mapping[str, Any]) -> Told:
        """The answer of which :meth:`to_record` wrote the ``shape``."""
        from discreet.release.record import from_json

        return cls(
            str(shape["text"]),
            tuple(map(str, shape["columns"])),
            tuple(tuple(from_json(value) for value in row) for row in shape["rows"]),
            {
                str(name): tuple(_read_margin(*one) for one in listed)
                for name, listed in shape["margins"].items()
            },
            tuple(map(str, shape["notes"])),
            tuple(map(str, shape["keys"])),
            str(shape["confidence"]),
        )

    # --- as a table ------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Columns, rows and margins, as JSON."""
        return {
            "question": self.text,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "margins": {
                name: [{"promise": one.promise.value, "within": one.within} for one in listed]
                for name, listed in self.margins.items()
            },
            "cells": self.cells(),
            "notes": list(self.notes),
            "cost": "free",
        }

    def to_csv(self, confidence: Exact | None = None) -> str:
        """The values as CSV, each number followed by its margin and what that promises.

        ``confidence`` is the one that was asked for.
        """
        self._check(confidence)
        return answer_csv(self._with_promises(), self.confidence)

    def to_arrow(self, confidence: Exact | None = None) -> pyarrow.Table:
        """The values as an Arrow table; given the ``confidence``, with the margins beside them."""
        import pyarrow as pa

        if confidence is not None:
            self._check(confidence)
            return answer_arrow(self._with_promises(), self.confidence)
        return pa.table({name: as_arrow_values(self.column(name)) for name in self.columns})

    def to_pandas(self, *, margins: bool = False) -> pandas.DataFrame:
        """The values as a pandas data frame; with ``margins``, what they promise beside them."""
        check_frames("pandas")
        import pandas as pd

        if margins:
            return self.to_arrow(self.confidence).to_pandas()
        return pd.DataFrame({name: self.column(name) for name in self.columns})

    def to_polars(self, *, margins: bool = False) -> polars.DataFrame:
        """The values as a Polars data frame; with ``margins``, what they promise beside them."""
        check_frames("polars")
        import polars as pl

        return pl.DataFrame(self.to_arrow(self.confidence if margins else None))

    def draw(self, y: str | None = None, *, wide: int | None = None) -> Picture:
        """The picture of column ``y`` (the first with numbers), ``wide`` pixels in all if given."""
        from discreet.charts import draw_answer

        return draw_answer(self._drawable(), y, wide=wide)

    def plot(self, y: str | None = None) -> altair.TopLevelMixin:
        """The picture of ``y`` (:meth:`draw`) as an Altair chart."""
        return self.draw(y).altair()

    def cells(self, most: int | None = None) -> list[list[str]]:
        """The rows as text, numbers with their margins; ``most`` rows, if given."""
        stated = self.accuracy()
        return [
            [
                cell(value, stated[name][place][0], interval=stated[name][place][1])
                for name, value in zip(self.columns, row, strict=True)
            ]
            for place, row in enumerate(self.rows[:most])
        ]

    def __repr__(self) -> str:
        return fit_table(self.columns, self._show_cells(), list(self.notes))

    def __str__(self) -> str:
        return as_text(self.columns, self._show_cells(), list(self.notes))

    def _repr_html_(self) -> str:
        return as_html(self.columns, self._show_cells(), list(self.notes)) + self._figure()

    # --- parts -----------------------------------------------------------------------------------

    def _show_cells(self) -> list[list[str]]:
        shown = self.cells(MOST_ROWS)
        return shown + [[""] * len(self.columns)] * (len(self.rows) - len(shown))

    def _figure(self) -> str:
        """The picture for a notebook; nothing where a table says it better, or nobody can draw."""
        from importlib.util import find_spec

        chart = self._drawable()["chart"]
        if not chart["y"] or chart["kind"] in ("table", "number") or not find_spec("vl_convert"):
            return ""
        return f"<figure>{self.draw().svg()}</figure>"

    def _drawable(self) -> dict[str, Any]:
        """What a picture is drawn from, as the JSON of an answer has it."""
        stated = self.accuracy()
        columns = [
            {
                "name": name,
                "role": "key" if name in self.keys else "value",
                "aggregate": "COUNT" if name in self.margins else None,
                "kind": kind_of(self.column(name)),
                "margin_kind": self.margin_kinds[name],
                "margin_unit": self.margin_units[name],
            }
            for name in self.columns
        ]
        lines = [
            [stated[name][place][1] for name in self.columns] for place in range(len(self.rows))
        ]
        return {
            "confidence": str(self.confidence),
            "columns": columns,
            "rows": [[plain(value) for value in row] for row in self.rows],
            "intervals": [
                [None if i is None else {"low": i.low, "high": i.high, "says": None} for i in line]
                for line in lines
            ],
            "cells": self.cells(),
            "chart": suggest_chart(cast("Answer", self), columns),
        }

    def _with_promises(self) -> Answer:
        """The same with a column beside each number that says what its margin promises."""
        columns: list[str] = []
        values: list[list[Any]] = []
        for name in self.columns:
            columns.append(name)
            values.append(self.column(name))
            if name in self.margins:
                columns.append(f"{name}_promise")
                values.append([one.promise.value for one in self.margins[name]])
        rows = tuple(zip(*values, strict=True)) if values else self.rows
        return cast("Answer", replace(self, columns=tuple(columns), rows=rows))

    def _check(self, confidence: Exact | None) -> None:
        if confidence is None:
            return
        if fraction(confidence, name="confidence") != fraction(self.confidence, name="confidence"):
            raise InvalidParameter(
                "P4",
                "this answer of a release has its margins at another confidence.",
                why="margins are looked up when the release is asked, which is free.",
                fix=f"ask the release again: release.ask(..., confidence={confidence!r}).",
            )


def _write_value(value: Any) -> Any:
    """A value exactly; what SQL makes beside those that last is written as text."""
    from discreet.release.record import to_json

    try:
        return to_json(value)
    except TypeError:
        return str(value)


def _read_margin(promise: str, within: float | None, ends: list[float] | None) -> Margin:
    return Margin(Promise(promise), within, None if ends is None else (ends[0], ends[1]))


def _state(value: Any, margin: Margin | None) -> tuple[float | None, Interval | None]:
    within = None if margin is None else margin.within
    if within is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None, None
    if margin is not None and margin.ends is not None:
        return within, Interval(*margin.ends)
    return within, Interval(value - within, value + within)


__all__ = ["Told"]
