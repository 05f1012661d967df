"""What the analyst gets: values with margins, the price, a certificate, and words.

The rows are read from released integers, for free, because nothing private enters:
aggregates are read off the released entries, outputs are computed from aggregates, then
HAVING, ORDER BY and LIMIT apply.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import field, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import NOTHING, Loss
from discreet.engine.truth import Group
from discreet.exact.numbers import Exact, proportion
from discreet.exact.records import dataclass
from discreet.mechanisms import KeyRelease
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import (
    Choice,
    Clipped,
    Counts,
    Fitted,
    Linear,
    Priced,
    Quantile,
    Ratio,
    Selection,
    Spread,
    Threshold,
)
from discreet.price.fitting import Fit
from discreet.price.margins import MarginKind, margin_kind, state_margin
from discreet.price.plan import Products, ValueCounts
from discreet.price.recipes import compute_ratios, find_moved
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import evaluate, references
from discreet.question.functions.declaration import plain
from discreet.question.possible import find_possible
from discreet.release.amounts import exact_loss_json
from discreet.release.clipped import Between, describe_ends
from discreet.release.display import MOST_ROWS, as_html, as_text, fit_table
from discreet.release.intervals import Interval, Sets
from discreet.release.notes import VALUE, MarginUnit, describe, margin_unit, notes
from discreet.release.render import (
    answer_arrow,
    answer_csv,
    answer_json,
    check_frames,
    find_origin,
    table_cells,
)

if TYPE_CHECKING:
    import altair
    import pandas
    import polars
    import pyarrow

    from discreet.charts import Picture


Stated = tuple[float | None, Interval | None]
"""How far a value may be off, and between which numbers it lies; None where nobody can tell."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """A released table.

    Everything in it is already paid for: looking at it in any way is free.  It is made by
    ``ask``, of what was ``priced``, the ``groups`` and the ``released`` numbers; ``id`` is under
    which the ledger keeps it, ``replayed`` whether it was paid for before, ``said`` what is
    known of the data besides, bought apart, and ``behind`` the charges that led to it, if it
    improves an earlier answer.
    """

    priced: Priced
    groups: tuple[Group, ...]
    released: tuple[Part, ...]
    id: int | None = None  # under which the ledger keeps it
    replayed: bool = False  # answered before, and free this time
    said: tuple[str, ...] = ()  # what is known of the data besides, bought apart
    behind: tuple[Loss, ...] = ()  # all charges that led to it, where it improves an earlier answer
    _rows: tuple[Row, ...] | None = field(init=False, default=None)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in order; read off what was released when they are first looked at."""
        if self._rows is None:
            values = read_aggregates(self.priced, self.released, len(self.groups))
            rows = tuple(build_rows(self.priced, self.groups, values))
            object.__setattr__(self, "_rows", rows)
            return rows
        return self._rows

    def read_as(self, priced: Priced) -> Answer:
        """The answer to what is ``priced`` and measures the same; itself, if it is that."""
        return self if priced is self.priced else replace(self, priced=priced)

    def number(self, id: int | None, *, replayed: bool) -> Answer:  # noqa: A002
        """The same under ``id`` in the ledger, ``replayed`` or not; nothing is read anew."""
        found = copy(self)
        object.__setattr__(found, "id", id)
        object.__setattr__(found, "replayed", replayed)
        return found

    @property
    def text(self) -> str:
        """The question as it was asked."""
        return self.priced.question.text

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(output.name for output in self.priced.question.outputs)

    @property
    def loss(self) -> Loss:
        """What this answer cost one unit: all charges that led to it."""
        return sum(self.behind, start=NOTHING) if self.behind else self.priced.loss

    @property
    def worth(self) -> Loss:
        """What one payment would have bought the same accuracy."""
        return self.priced.loss

    @property
    def charged(self) -> Loss:
        """What was paid for it this time; nothing, if it was known before."""
        if self.replayed:
            return NOTHING
        return self.behind[-1] if self.behind else self.priced.loss

    @property
    def paid(self) -> Loss:
        """The same as ``charged``."""
        return self.charged

    @property
    def notes(self) -> tuple[str, ...]:
        """What the margins do not tell, in words."""
        return (*notes(self.priced), *self._describe_ends(), *self.said)

    def _describe_ends(self) -> list[str]:
        """Which ends were chosen in the data, where some were."""
        first = {
            recipe.measurement: index
            for index, recipe in reversed(list(enumerate(self.priced.recipes)))
            if isinstance(recipe, Clipped)
        }
        names = [aggregate.name for aggregate in self.priced.question.aggregates]
        said = []
        for place, index in sorted(first.items()):
            readers = [
                name
                for name, recipe in zip(names, self.priced.recipes, strict=True)
                if recipe.measurement == place
            ]
            between = read_between(self.priced, index, self.released)
            said.append(describe_ends(", ".join(readers), between))
        return said

    def origin(self, column: int) -> dict[str, Any]:
        """Whether the ``column`` at a place, from 0, is a key or a value; of which aggregate."""
        return find_origin(self.priced, column)

    def parts_json(self) -> list[dict[str, Any]]:
        """The questions it is computed from, if it is not the answer to one."""
        return []

    def column(self, name: str) -> list[Any]:
        """The values of the column ``name``, in the order of the rows."""
        index = self.columns.index(name)
        return [row.values[index] for row in self.rows]

    def value(self) -> Any:
        """The single value of an answer with one row and one column."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise LookupError("the answer has more than one value; use column(name)")
        return self.rows[0].values[0]

    def margins(
        self, confidence: Exact = "0.95", *, certified: bool = False, most: int | None = None
    ) -> dict[str, list[float | None]]:
        """For each column, how far each value may be off; None where nothing can be said.

        At the given ``confidence``, one value at a time: noise alone; clipping and
        bounding are told in ``notes``.  A quantile may be off by so many ranks, a
        chosen value have so many rows fewer than the best, each count of a
        histogram be off by so much.  None for keys, and for arithmetic on
        quantiles and choices.  How each margin is known, ``margin_kinds`` says, and what it
        counts, ``margin_units``; ``certified``: only margins that hold whatever the data are;
        ``most``: of the first rows only.  Where a value has a set (``intervals``), its margin is
        the distance to the farther end.
        """
        stated = self.accuracy(confidence, certified=certified, most=most)
        return {name: [margin for margin, _ in column] for name, column in stated.items()}

    def intervals(
        self, confidence: Exact = "0.95", *, most: int | None = None
    ) -> dict[str, list[Interval | None]]:
        """For each column, between which numbers each value lies at the given ``confidence``.

        Means, variances, correlations, regressions and arithmetic have sets that need not be
        symmetric, and are also known where there is no value.  None where margins count ranks
        or rows and nothing released tells values, and for keys and lists.  ``most``: of the first
        rows only.
        """
        stated = self.accuracy(confidence, most=most)
        return {name: [interval for _, interval in column] for name, column in stated.items()}

    def accuracy(
        self, confidence: Exact = "0.95", *, certified: bool = False, most: int | None = None
    ) -> dict[str, list[Stated]]:
        """Margins and intervals together, each computed once.

        ``confidence``, ``certified`` and ``most`` are those of :meth:`margins`.
        """
        rows = self.rows if most is None else self.rows[:most]
        beta = 1 - proportion(confidence, name="confidence")
        return {
            name: self._column_accuracy(index, rows, beta, certified=certified)
            for index, name in enumerate(self.columns)
        }

    @property
    def margin_units(self) -> dict[str, MarginUnit | None]:
        """What the margins of each column count: the value's own unit, ranks or rows."""
        return {name: self._unit(index) for index, name in enumerate(self.columns)}

    def _unit(self, index: int) -> MarginUnit | None:
        if self._kind(index) is None:
            return None
        aggregate = self._aggregate(index)
        return VALUE if aggregate is None else margin_unit(self.priced.recipes[aggregate])

    @property
    def margin_kinds(self) -> dict[str, MarginKind | None]:
        """How the margins of each column are known; None where there are none."""
        return {name: self._kind(index) for index, name in enumerate(self.columns)}

    def _kind(self, index: int, *, certified: bool = False) -> MarginKind | None:
        aggregate = self._aggregate(index)
        if aggregate is not None:
            return margin_kind(self.priced.recipes[aggregate], certified=certified)
        used = references(self.priced.question.outputs[index].expression)
        recipes = [
            recipe
            for recipe, aggregate in zip(
                self.priced.recipes, self.priced.question.aggregates, strict=True
            )
            if aggregate.name in used
        ]
        read = Quantile | Spread | Clipped | Fitted | Choice
        chosen = any(isinstance(recipe, read) for recipe in recipes)
        return "set" if recipes and not chosen else None

    def _aggregate(self, index: int) -> int | None:
        """Which aggregate a column shows as it is; None for keys and arithmetic."""
        expression = self.priced.question.outputs[index].expression
        names = [aggregate.name for aggregate in self.priced.question.aggregates]
        if isinstance(expression, ColumnRef) and expression.name in names:
            return names.index(expression.name)
        return None

    def _column_accuracy(
        self, index: int, rows: tuple[Row, ...], beta: Fraction, *, certified: bool
    ) -> list[Stated]:
        return self._state_column(self.priced, index, rows, beta, certified=certified)

    def _state_column(
        self, priced: Priced, index: int, rows: tuple[Row, ...], beta: Fraction, *, certified: bool
    ) -> list[Stated]:
        """How near a column is, if the released numbers have the noise of ``priced``."""
        kind = self._kind(index, certified=certified)
        values = [row.values[index] for row in rows]
        if kind is None:
            return [(None, None)] * len(rows)
        if kind == "set":
            return [
                _state(value, found)
                for value, found in zip(values, self._sets(priced, index, rows, beta), strict=True)
            ]
        aggregate = self._aggregate(index)
        if aggregate is None:
            raise TypeError(index)
        margin = state_margin(priced, aggregate, beta, certified=kind == "certified")
        if isinstance(priced.recipes[aggregate], Quantile):
            sets = self._sets_of(priced, rows)
            chosen = {
                place: results
                for part in self.released
                if isinstance(part, Selected)
                for place, results in part.chosen.items()
            }
            return [(margin, found) for found in sets.of_quantile(aggregate, float(beta), chosen)]
        measured = self._unit(index) == VALUE
        if margin is None:
            return [(None, None)] * len(rows)
        rounded = self._sets_of(priced, rows).find_rounded(aggregate)
        return [
            _state_margin(value, margin + more, measured=measured)
            for value, more in zip(values, rounded, strict=True)
        ]

    def _sets_of(self, priced: Priced, rows: tuple[Row, ...]) -> Sets:
        parts = tuple(
            None if isinstance(part, Selected) or isinstance(bought, KeyRelease) else part
            for part, bought in zip(self.released, priced.mechanisms, strict=True)
        )
        return Sets(priced, parts, np.array([row.group for row in rows], dtype=int))

    def _sets(
        self, priced: Priced, index: int, rows: tuple[Row, ...], beta: Fraction
    ) -> list[Interval | None]:
        """The confidence sets of a column, of all groups at once."""
        sets = self._sets_of(priced, rows)
        aggregate = self._aggregate(index)
        if aggregate is not None and isinstance(priced.recipes[aggregate], Clipped):
            between = read_between(priced, aggregate, self.released)
            return [between[row.group].interval(priced, beta) for row in rows]
        if aggregate is not None and isinstance(priced.recipes[aggregate], Fitted):
            return self._fit_sets(priced, aggregate, rows, beta)
        if aggregate is not None:
            return [*sets.of_aggregate(aggregate, float(beta))]
        names = [key.name for key in priced.question.keys]
        keys = [dict(zip(names, self.groups[row.group], strict=True)) for row in rows]
        return sets.of_expression(priced.question.outputs[index].expression, float(beta), keys)

    def _fit_sets(
        self, priced: Priced, aggregate: int, rows: tuple[Row, ...], beta: Fraction
    ) -> list[Interval | None]:
        fits = read_fits(priced, aggregate, self.released)
        found: list[Interval | None] = []
        for row in rows:
            fit = fits[row.group]
            source = priced.plan.source
            moved = tuple(find_moved(source, variable) for variable in fit.products.variables)
            low, high = fit.ends(beta, moved)
            widest = 1.0 if fit.recipe.function == "CORR_OF" else float("inf")
            found.append(Interval(low, high, anything=low <= -widest and high >= widest))
        return found

    # --- as a table -----------------------------------------------------------------------

    def to_json(self, confidence: Exact = "0.95") -> dict[str, Any]:
        """All it says, for programs, with margins at ``confidence``; the same at every door."""
        return answer_json(self, confidence)

    def to_csv(self, confidence: Exact = "0.95") -> str:
        """The values as CSV, each column followed by its margins at ``confidence``."""
        return answer_csv(self, confidence)

    def to_arrow(self, confidence: Exact | None = None) -> pyarrow.Table:
        """The values as an Arrow table; given a ``confidence``, with the margins beside them."""
        import pyarrow as pa

        if confidence is not None:
            return answer_arrow(self, confidence)
        return pa.table({name: as_arrow_values(self.column(name)) for name in self.columns})

    def to_pandas(self, *, margins: bool = False, confidence: Exact = "0.95") -> pandas.DataFrame:
        """The values as a pandas data frame; with ``margins`` at ``confidence`` beside them."""
        check_frames("pandas")
        import pandas as pd

        if margins:
            return self.to_arrow(confidence).to_pandas()
        return pd.DataFrame({name: self.column(name) for name in self.columns})

    def to_polars(self, *, margins: bool = False, confidence: Exact = "0.95") -> polars.DataFrame:
        """The values as a Polars data frame; with ``margins`` at ``confidence`` beside them."""
        check_frames("polars")
        import polars as pl

        if margins:
            return pl.DataFrame(self.to_arrow(confidence))
        return pl.DataFrame(
            {n: as_arrow_values(self.column(n)) for n in self.columns}, strict=False
        )

    def draw(
        self, y: str | None = None, *, confidence: Exact = "0.95", wide: int | None = None
    ) -> Picture:
        """The picture of column ``y`` (the first with numbers), with intervals at ``confidence``.

        A specification in one grammar: ``.svg()``, ``.save(path)``, ``.spec``; ``wide`` pixels in
        all, if that is given.
        """
        from discreet.charts import draw_answer

        return draw_answer(self.to_json(confidence), y, wide=wide)

    def plot(self, y: str | None = None, *, confidence: Exact = "0.95") -> altair.TopLevelMixin:
        """The picture of ``y`` at ``confidence`` (:meth:`draw`) as an Altair chart."""
        return self.draw(y, confidence=confidence).altair()

    @property
    def certificate(self) -> dict[str, Any]:
        """What was promised, to whom, and how: plain JSON."""
        return {**describe(self.priced), **self._amounts_json()}

    def _amounts_json(self) -> dict[str, Any]:
        """What was lost in all, what this payment was, and what the answer is worth."""
        return {
            "loss": exact_loss_json(self.loss.rounded()),  # as an account charges it
            "charged": exact_loss_json(self.charged.rounded()),
            "worth": exact_loss_json(self.worth.rounded()),
        }

    def __repr__(self) -> str:
        return fit_table(self.columns, self._show_cells(), self._footer())

    def __str__(self) -> str:
        return as_text(self.columns, self._show_cells(), self._footer())

    def _repr_html_(self) -> str:
        return as_html(self.columns, self._show_cells(), self._footer()) + self._figure()

    def _figure(self) -> str:
        """The picture for a notebook; nothing where a table says it better, or nobody can draw."""
        from importlib.util import find_spec

        shape = self.to_json()["chart"]
        drawable = shape["y"] and shape["kind"] not in ("table", "number")
        if not drawable or find_spec("vl_convert") is None:
            return ""
        return f"<figure>{self.draw().svg()}</figure>"

    def _show_cells(self) -> list[list[str]]:
        """The cells of the rows that are shown; further rows are only counted."""
        shown = table_cells(self, "0.95", MOST_ROWS)
        return shown + [[""] * len(self.columns)] * (len(self.rows) - len(shown))

    def cost_words(self, write: Callable[[Loss], str] = str) -> str:
        """What was paid for it now, and what it cost in all; ``write`` writes a loss."""
        if self.loss == NOTHING:
            return "free: nothing was measured"
        if self.replayed:
            return f"answered before, free now; it cost {write(self.loss)}"
        if self.behind:
            return f"{write(self.charged)} more; in all {write(self.loss)}"
        return f"cost {write(self.loss)}"

    def _footer(self) -> list[str]:
        margin = "± at 95 % confidence; " if self.priced.question.aggregates else ""
        return [f"{margin}{self.cost_words()}", *self.notes]


def _state(value: Any, found: Interval | None) -> Stated:
    """A value with its set, and the distance to the farther end.

    A quotient of noisy numbers may lie where no true one can; its set does not.
    """
    if found is None or isinstance(value, bool) or not isinstance(value, int | float | None):
        return None, None
    if value is None or found.nobody:
        return None, found
    return found.margin(value), found


def _state_margin(value: Any, margin: float | None, *, measured: bool) -> Stated:
    """A value with a margin on both sides; ``measured`` in its own unit, they make an interval."""
    if value is None or margin is None:
        return None, None
    if not measured or isinstance(value, bool) or not isinstance(value, int | float):
        return margin, None
    return margin, Interval(value - margin, value + margin)


def as_arrow_values(values: list[Any]) -> list[Any]:
    """Values that Arrow can hold: whole numbers beyond 64 bits, and fractions, as doubles.

    Also in lists, as TOP_K and quantiles answer with.
    """
    flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
    wide = any(isinstance(v, int) and abs(v) >= 2**63 for v in flat)
    doubles = Fraction | (int if wide else Fraction)

    def hold(value: Any) -> Any:
        if isinstance(value, list):
            return [hold(part) for part in value]
        return float(value) if isinstance(value, doubles) else value

    return [hold(value) for value in values]


Entries = NDArray[Any]
_WIDEST = 2**64
"""Whole numbers have steps below this, and stay whole; beyond are decimals with absurd bounds."""
_ROOM = 2**62
"""Sums below this, doubled, fit 64 bits."""
_FURTHEST = 900
"""A 64-bit integer times two to this power, or to its negative, is a normal double."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What the exponential mechanism chose: for each recipe, one result per group."""

    chosen: dict[int, tuple[Any, ...]]

    def only(self, kept: Sequence[int]) -> Selected:
        """The results of some groups."""
        return Selected({i: tuple(r[g] for g in kept) for i, r in self.chosen.items()})


Part = Entries | Selected
"""What was released of one measurement."""


class Released(NamedTuple):
    """What leaves the airlock: the groups, and what was released of each measurement."""

    groups: tuple[Group, ...]
    parts: tuple[Part, ...]

    def above(self, threshold: Threshold, coins: Entries) -> Released:
        """The groups whose noisy number of units reaches the threshold, or nearly and by luck."""
        counts = self.parts[threshold.measurement]
        if isinstance(counts, Selected):
            raise TypeError("units are counted, not chosen")
        noisy = counts[:, 0]
        lucky = (noisy == threshold.least - 1) & (coins == 1)
        kept = np.flatnonzero((noisy >= threshold.least) | lucky).tolist()
        return Released(
            tuple(self.groups[i] for i in kept),
            tuple(p.only(kept) if isinstance(p, Selected) else p[kept] for p in self.parts),
        )


def read_aggregates(priced: Priced, parts: Sequence[Part], groups: int) -> list[list[Any]]:
    """For each aggregate, its value in each group; None where it has none."""
    return [_read(priced, index, parts, groups) for index in range(len(priced.recipes))]


def _read(priced: Priced, index: int, parts: Sequence[Part], groups: int) -> list[Any]:
    recipe = priced.recipes[index]
    part = parts[recipe.measurement]
    if isinstance(recipe, Clipped):
        return [one.value() for one in read_between(priced, index, parts)]
    if isinstance(part, Selected):
        return list(part.chosen[index])
    if isinstance(recipe, Fitted):
        return [fit.value() for fit in read_fits(priced, index, parts)]
    match recipe:
        case Linear():
            return _read_linear(recipe, part)
        case Ratio():
            values = compute_ratios(recipe, part.astype(np.float64))
            known = np.isfinite(values).tolist()
            return [value if k else None for value, k in zip(values.tolist(), known, strict=True)]
        case Counts(measurement=measurement):
            if not isinstance(priced.plan.measurements[measurement], ValueCounts):
                raise TypeError(measurement)
            counts: list[Any] = _to_integers(part).tolist()
            return counts
    return [None] * groups


def read_between(priced: Priced, index: int, parts: Sequence[Part]) -> list[Between]:
    """An aggregate between chosen ends, of each group."""
    recipe = priced.recipes[index]
    if not isinstance(recipe, Clipped):
        raise TypeError(index)
    sums, part = priced.mechanisms[recipe.measurement], parts[recipe.measurement]
    if not isinstance(sums, ClippedSums) or not isinstance(part, Selected):
        raise TypeError(index)
    return [Between(recipe, sums, drawn) for drawn in part.chosen[index]]


def read_fits(priced: Priced, index: int, parts: Sequence[Part]) -> list[Fit]:
    """A coefficient or a correlation of many columns, of each group."""
    recipe = priced.recipes[index]
    measured, part = priced.plan.measurements[recipe.measurement], parts[recipe.measurement]
    if not isinstance(recipe, Fitted) or not isinstance(measured, Products):
        raise TypeError(index)
    law = priced.mechanisms[recipe.measurement]
    if isinstance(part, Selected) or isinstance(law, Selection | ClippedSums | KeyRelease):
        raise TypeError(index)
    return [Fit(recipe, measured, law, entries) for entries in part]


def _read_linear(recipe: Linear, part: Entries) -> list[Any]:
    """The combination of each row's entries, exactly, put on the public grid."""
    grid = recipe.grid
    # In whole numbers: each entry times its weight, all over one denominator.
    rates = [coefficient / grid for coefficient in recipe.coefficients]
    below = lcm(*(rate.denominator for rate in rates))
    weights = [int(rate * below) for rate in rates]
    entries = _to_integers(part)
    if entries.dtype != object and not _fits(entries, sum(map(abs, weights)), below):
        entries = entries.astype(object)
    total = entries @ np.array(weights, dtype=entries.dtype)
    steps = _round_quotient(total, below)
    if grid.denominator == 1 and grid < _WIDEST:
        whole: list[Any] = (steps.astype(object) * int(grid)).tolist()
        return whole
    if steps.dtype != object and abs(exponent := _find_exponent(grid)) <= _FURTHEST:
        # The nearest double of a 64-bit integer, and an exact product with a power of two.
        doubles: list[Any] = np.ldexp(steps.astype(np.float64), exponent).tolist()
        return doubles
    return [_to_double(int(step) * grid) for step in steps]


def _to_integers(part: Entries) -> Entries:
    """The same integers in 64 bits, or as Python's where one does not fit; doubles cut to whole."""
    if part.dtype == object:
        try:
            return part.astype(np.int64)
        except OverflowError:
            return part
    if part.dtype.kind == "f":
        if part.size and np.abs(part).max() >= 2.0**62:
            exact = np.empty(part.size, dtype=object)
            exact[:] = [int(entry) for entry in part.reshape(-1).tolist()]
            return exact.reshape(part.shape)
        return part.astype(np.int64)
    return part


def _fits(entries: Entries, weight: int, below: int) -> bool:
    """Whether weights that add up to ``weight`` fit 64 bits, and so do sums and rests with them."""
    largest = max(int(entries.max(initial=1)), -int(entries.min(initial=-1)))
    return largest * weight < _ROOM and below < _ROOM


def _round_quotient(total: Entries, below: int) -> Entries:
    """``total / below`` to the nearest integer, halves to even as Python's ``round``."""
    if below == 1:
        return total
    quotient = total // below
    rest = 2 * (total - quotient * below)
    up = (rest > below) | ((rest == below) & (quotient % 2 == 1))
    rounded: Entries = quotient + up.astype(quotient.dtype)
    return rounded


def _find_exponent(grid: Fraction) -> int:
    """The power of two that ``grid`` is; one that is none has no exponent near zero."""
    exponent = grid.numerator.bit_length() - grid.denominator.bit_length()
    return exponent if Fraction(2) ** exponent == grid else _FURTHEST + 1


def _to_double(number: Fraction) -> float:
    """The nearest double; the greatest of them beyond, for no sum may fail because it is large."""
    largest = Fraction(sys.float_info.max)
    return float(min(max(number, -largest), largest))


class Row(NamedTuple):
    """One row of the result: which ``group`` it is, and its outputs, the ``values``."""

    group: int
    values: tuple[Any, ...]


def build_rows(priced: Priced, groups: Sequence[Group], aggregates: list[list[Any]]) -> list[Row]:
    """The outputs of every group, filtered, ordered and cut as the question says."""
    question = priced.question
    columns = _name_columns(priced, groups, aggregates)
    computed = any(not isinstance(key.expression, ColumnRef) for key in question.keys)
    possible = find_possible(question) if computed else None  # else all there are can be
    kept = [i for i in range(len(groups)) if possible is None or possible(groups[i])]
    if question.having is not None:
        passing = _evaluate_rows(question.having, columns, kept)
        kept = [row for row, passed in zip(kept, passing, strict=True) if passed is True]
    for order in reversed(question.order):
        values = _evaluate_rows(order.expression, columns, kept)
        keys = [_sort_key(value, descending=order.descending) for value in values]
        ranked = sorted(range(len(kept)), key=keys.__getitem__)
        kept = [kept[position] for position in ranked]
    kept = kept[: question.limit]
    outputs = [_evaluate_rows(output.expression, columns, kept) for output in question.outputs]
    pairs = zip(kept, zip(*outputs, strict=True), strict=True)
    return [tuple.__new__(Row, pair) for pair in pairs]  # thousands: no call of Python for each


def _name_columns(
    priced: Priced, groups: Sequence[Group], aggregates: list[list[Any]]
) -> dict[str, Sequence[Any]]:
    """The keys and the aggregates of all groups, by name."""
    question = priced.question
    columns: dict[str, Sequence[Any]] = {
        key.name: [group[index] for group in groups] for index, key in enumerate(question.keys)
    }
    for aggregate, values in zip(question.aggregates, aggregates, strict=True):
        columns[aggregate.name] = values
    return columns


def _evaluate_rows(
    expression: Expression, columns: dict[str, Sequence[Any]], rows: Sequence[int]
) -> list[Any]:
    """An expression on some of the rows; a column as it is needs no more than a look."""
    if isinstance(expression, ColumnRef) and expression.name in columns:
        values = [columns[expression.name][row] for row in rows]
        return [plain(value) for value in values] if Fraction in set(map(type, values)) else values
    return [
        evaluate(expression, {name: column[row] for name, column in columns.items()})
        for row in rows
    ]


class _Reversed:
    """Sorts backwards, for text as well as numbers."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _sort_key(value: Any, *, descending: bool) -> tuple[bool, Any]:
    """SQL: NULLs last, whichever way."""
    if value is None:
        return True, 0
    return False, _Reversed(value) if descending else value
