"""An answer and an explanation as JSON, CSV, Arrow and cells of a table: one of each, everywhere.

A margin is in the unit of its value, or it says in what it is: a quantile is off by so many
ranks, a most frequent value by so many rows.  JSON has a ``margin_unit`` for each column; in CSV
and Arrow the unit is part of the name of the column of margins (``middle_margin_ranks``), so that
a number of ranks never stands beside money as if it were some.  Beside it stand the ends of the
interval in which the value lies (``mean_low``, ``mean_high``), always in the value's own unit.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact
from discreet.price import Priced
from discreet.question.expressions import ColumnRef
from discreet.release.amounts import FREE, loss_json
from discreet.release.chart import suggest_chart
from discreet.release.display import cell, number
from discreet.release.intervals import Interval
from discreet.release.notes import (
    VALUE,
    MarginUnit,
    name_mechanism,
    name_neighbours,
    notes,
    owner,
)

if TYPE_CHECKING:
    import pyarrow

    from discreet.release.answer import Answer, Row, Stated
    from discreet.release.explanation import Explanation

ASSUMED_ROWS = 1000
"""The size of group for which EXPLAIN predicts means, variances and the like."""

LINE_END = "\n"
_KINDS = (("boolean", bool), ("integer", int), ("decimal", float), ("text", str), ("list", list))


# --- values ------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value that JSON has: dates as texts, fractions as numbers.

    >>> plain([date(2024, 2, 29), Fraction(7, 2), Fraction(7), "Oslo"])
    ['2024-02-29', 3.5, 7, 'Oslo']
    """
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _finite(margin: float | None) -> float | None:
    """A margin that JSON has; one without end says nothing."""
    return margin if margin is not None and math.isfinite(margin) else None


def table_cells(answer: Answer, confidence: Exact, most: int | None = None) -> list[list[str]]:
    """Each value with its margin, and the margin's unit where it is another than the value's."""
    shown = answer.rows if most is None else answer.rows[:most]
    return _cells(answer, answer.accuracy(confidence, most=most), shown)


def _cells(
    answer: Answer, stated: dict[str, list[Stated]], shown: Sequence[Row]
) -> list[list[str]]:
    units = answer.margin_units
    return [
        [
            cell(
                row.values[column],
                stated[name][i][0],
                unit=units[name] or VALUE,
                interval=stated[name][i][1],
            )
            for column, name in enumerate(answer.columns)
        ]
        for i, row in enumerate(shown)
    ]


def _interval_json(interval: Interval | None) -> dict[str, Any] | None:
    """An interval that JSON has; null is no end."""
    if interval is None:
        return None
    says = "no people" if interval.nobody else "anything" if interval.anything else None
    return {"low": _finite(interval.low), "high": _finite(interval.high), "says": says}


# --- JSON --------------------------------------------------------------------------------------


def answer_json(
    answer: Answer, confidence: Exact, *, dataset: str | None = None, at: str | None = None
) -> dict[str, Any]:
    """Everything an answer says; ``margins`` and ``intervals`` have the shape of ``rows``."""
    stated = answer.accuracy(confidence)
    columns = _columns(answer)
    lines = [[stated[name][i] for name in answer.columns] for i in range(len(answer.rows))]
    return {
        "id": None if answer.id is None else str(answer.id),
        "dataset": dataset,
        "question": answer.text,
        "at": at,
        "replayed": answer.replayed,
        "price": loss_json(answer.loss),
        "paid": FREE if answer.replayed else loss_json(answer.paid),
        "confidence": str(confidence),
        "columns": columns,
        "rows": [[plain(value) for value in row.values] for row in answer.rows],
        "margins": [[_finite(margin) for margin, _ in line] for line in lines],
        "intervals": [[_interval_json(interval) for _, interval in line] for line in lines],
        "cells": _cells(answer, stated, answer.rows),
        "chart": suggest_chart(answer, columns),
        "notes": list(answer.notes),
        "certificate": answer.certificate,
        "text": str(answer),
        **({"parts": parts} if (parts := answer.parts_json()) else {}),
    }


def _columns(answer: Answer) -> list[dict[str, Any]]:
    kinds, units = answer.margin_kinds, answer.margin_units
    return [
        {
            "name": name,
            **answer.origin(column),
            "kind": kind_of(answer.column(name)),
            "margin_kind": kinds[name],
            "margin_unit": units[name],
        }
        for column, name in enumerate(answer.columns)
    ]


def find_origin(priced: Priced, column: int) -> dict[str, Any]:
    """Whether an output is a key or a value, and of which aggregate."""
    expression = priced.question.outputs[column].expression
    name = expression.name if isinstance(expression, ColumnRef) else None
    aggregate = next((a for a in priced.question.aggregates if a.name == name), None)
    key = any(k.name == name for k in priced.question.keys)
    return {
        "role": "key" if key else "value",
        "aggregate": None if aggregate is None else aggregate.function,
    }


def kind_of(values: list[Any]) -> str | None:
    """What the first value that there is is called, as pictures and JSON name kinds."""
    first = next((v for v in values if v is not None), None)
    if first is None:
        return None
    for name, kind in _KINDS:
        if isinstance(first, kind):
            return name
    return "timestamp" if hasattr(first, "hour") else "date"


def explanation_json(explanation: Explanation, confidence: Exact) -> dict[str, Any]:
    """A question's price and margins before it is asked."""
    priced = explanation.priced
    return {
        "question": priced.question.text,
        "price": loss_json(explanation.loss),
        "confidence": str(confidence),
        "columns": list(_predictions(explanation, confidence)),
        "groups": [
            {
                "name": key.name,
                "public": key.values is not None,
                "count": None if key.values is None else len(key.values),
            }
            for key in priced.question.keys
        ],
        "unit": owner(priced),
        "neighbours": name_neighbours(priced),
        "notes": list(notes(priced)),
        "certificate": explanation.certificate,
        "engine_sql": explanation.engine_sql,
        "text": str(explanation),
    }


def _predictions(explanation: Explanation, confidence: Exact) -> Iterator[dict[str, Any]]:
    """Each output; with noise and margin, if it is an aggregate by itself."""
    priced = explanation.priced
    known, words = explanation.margins(confidence), margin_words(explanation, confidence)
    kinds, units = explanation.margin_kinds, explanation.margin_units
    mechanisms = {
        aggregate.name: priced.mechanisms[recipe.measurement]
        for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True)
    }
    for column, output in enumerate(priced.question.outputs):
        source = output.expression.name if isinstance(output.expression, ColumnRef) else ""
        measured = source in mechanisms
        yield {
            "name": output.name,
            **find_origin(priced, column),
            "kind": None,
            "mechanism": name_mechanism(mechanisms[source]) if measured else None,
            "margin": _finite(known[source]) if measured else None,
            "margin_kind": kinds[source] if measured else None,
            "margin_unit": units[source] if measured else None,
            "margin_text": words[source] if measured else None,
        }


def margin_words(explanation: Explanation, confidence: Exact) -> dict[str, str]:
    """The margin of each aggregate before it is asked, in words and with its unit."""
    known = explanation.margins(confidence)
    assumed = explanation.margins(confidence, rows=ASSUMED_ROWS)
    words = {}
    for name, margin in known.items():
        guess = assumed[name]
        if margin is not None:
            words[name] = f"± {_with_unit(margin, explanation.margin_units[name])}"
        elif guess is not None:
            words[name] = f"± {number(guess, up=True)} in a group of {ASSUMED_ROWS:,} rows"
        else:
            words[name] = "known with the answer"
    return words


def _with_unit(margin: float, unit: MarginUnit) -> str:
    text = number(margin, up=True)
    return text if unit == VALUE else f"{text} {unit}"


# --- columns of values and of margins ----------------------------------------------------------


def _with_margins(
    answer: Answer, confidence: Exact
) -> Iterator[tuple[str, list[Any], dict[str, str] | None]]:
    """Each column, followed by its margins and ends if it has any; of these, what they are."""
    stated = answer.accuracy(confidence)
    for name in answer.columns:
        yield name, answer.column(name), None
        unit, kind = answer.margin_units[name], answer.margin_kinds[name]
        if unit is None:
            continue
        margins = [margin for margin, _ in stated[name]]
        ends = [(None, None) if i is None else (i.low, i.high) for _, i in stated[name]]
        columns = {
            ("margin" if unit == VALUE else f"margin_{unit}"): (margins, unit),
            "low": ([_finite(low) for low, _ in ends], VALUE),
            "high": ([_finite(high) for _, high in ends], VALUE),
        }
        for what, (numbers, counted) in columns.items():
            if all(number is None for number in numbers):
                continue
            title = f"{name}_{what}"
            while title in answer.columns:
                title += "_"
            about = {f"{what.split('_')[0]}_of": name, "unit": counted, "kind": str(kind)}
            yield title, numbers, {**about, "confidence": str(confidence)}


def check_frames(package: str) -> None:
    """Refuse a data frame of a package that is not installed; the others need none."""
    if find_spec(package) is None:
        raise InvalidParameter(
            "P8",
            f"{package} is not installed.",
            why="its data frames are made by it.",
            fix=f"pip install {package}; or use to_arrow() or to_csv(), which need nothing more.",
        )


def answer_csv(answer: Answer, confidence: Exact) -> str:
    """One line for each row; beside each column that has margins, columns of them and of ends."""
    columns = [(name, values) for name, values, _ in _with_margins(answer, confidence)]
    out = io.StringIO()
    lines = csv.writer(out, lineterminator=LINE_END)
    lines.writerow([name for name, _ in columns])
    for row in zip(*(values for _, values in columns), strict=True):
        lines.writerow([plain(value) for value in row])
    return out.getvalue()


def answer_arrow(answer: Answer, confidence: Exact) -> pyarrow.Table:
    """The columns of :func:`answer_csv`, typed; what a margin is, is metadata of its field."""
    import pyarrow as pa

    values = answer.to_arrow()
    fields, arrays = [], []
    for name, listed, about in _with_margins(answer, confidence):
        if about is None:
            fields.append(values.schema.field(name))
            arrays.append(values.column(name))
        else:
            fields.append(pa.field(name, pa.float64(), metadata=about))
            arrays.append(pa.chunked_array([pa.array(listed, pa.float64())]))
    return pa.table(arrays, schema=pa.schema(fields))


def arrow_stream(table: pyarrow.Table) -> bytes:
    """An Arrow table as it is sent."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


__all__ = [
    "ASSUMED_ROWS",
    "answer_arrow",
    "answer_csv",
    "answer_json",
    "arrow_stream",
    "check_frames",
    "explanation_json",
    "kind_of",
    "margin_words",
    "plain",
    "table_cells",
]
