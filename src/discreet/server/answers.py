"""Answers and explanations as JSON, CSV and Arrow: values, margins, and the picture they suit."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from discreet.curate.quote import Quote
from discreet.exact.numbers import Exact
from discreet.price import LaplaceNoise, Priced, SelectionNoise
from discreet.question.expressions import ColumnRef
from discreet.release.answer import Answer
from discreet.release.display import cell, number
from discreet.release.explanation import ASSUMED_ROWS, Explanation
from discreet.release.notes import counted, notes, owner
from discreet.server.amounts import FREE, price
from discreet.server.declared import plain

ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"
RECORD = "application/vnd.discreet+json"
"""The exact form, which the Python client reads."""

_KINDS = (("boolean", bool), ("integer", int), ("decimal", float), ("text", str), ("list", list))
_LINES = ("date", "timestamp", "integer")
_FEW = 2
"""So many points make no line."""


def answer_json(
    answer: Answer, *, dataset: str, at: str | None, confidence: Exact
) -> dict[str, Any]:
    """An answer for a program or a page."""
    margins = answer.margins(confidence)
    names = answer.columns
    columns = _columns(answer)
    priced = answer.priced
    counts = {
        aggregate.name: counted(recipe)
        for aggregate, recipe in zip(priced.question.aggregates, priced.recipes, strict=True)
    }
    return {
        "id": str(answer.id),
        "dataset": dataset,
        "question": priced.question.text,
        "at": at,
        "replayed": answer.replayed,
        "price": price(answer.loss),
        "paid": FREE if answer.replayed else price(answer.loss),
        "confidence": str(confidence),
        "columns": columns,
        "rows": [[plain(value) for value in row.values] for row in answer.rows],
        "margins": [[margins[name][i] for name in names] for i in range(len(answer.rows))],
        "cells": [
            [
                cell(row.values[j], margins[name][i], counted=counts.get(name, ""))
                for j, name in enumerate(names)
            ]
            for i, row in enumerate(answer.rows)
        ],
        "chart": _chart(answer, columns),
        "notes": list(answer.notes),
        "text": str(answer),
    }


def _columns(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": _kind(answer.column(name)), **_origin(answer.priced, place)}
        for place, name in enumerate(answer.columns)
    ]


def _origin(priced: Priced, place: int) -> dict[str, Any]:
    """Whether an output is a key or a value, and of which aggregate."""
    expression = priced.question.outputs[place].expression
    name = expression.name if isinstance(expression, ColumnRef) else None
    aggregate = next((a for a in priced.question.aggregates if a.name == name), None)
    key = any(k.name == name for k in priced.question.keys)
    return {
        "role": "key" if key else "value",
        "aggregate": None if aggregate is None else aggregate.function,
    }


def _kind(values: list[Any]) -> str | None:
    first = next((v for v in values if v is not None), None)
    if first is None:
        return None
    for name, kind in _KINDS:
        if isinstance(first, kind):
            return name
    return "timestamp" if hasattr(first, "hour") else "date"


def _chart(answer: Answer, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """The picture that suits the answer's shape."""
    keys = [c for c in columns if c["role"] == "key"]
    numbers = [
        c["name"] for c in columns if c["role"] == "value" and c["kind"] in ("integer", "decimal")
    ]
    drawn: dict[str, Any] = {"kind": "table", "x": None, "series": None, "y": numbers}
    bins = [c for c in columns if c["aggregate"] == "HISTOGRAM"]
    if bins and len(answer.rows) == 1:
        made = answer.priced.question.aggregates
        edges = next(a.parameters for a in made if a.function == "HISTOGRAM")
        ends = [float(edge) for edge in edges]  # type: ignore[arg-type]
        return {**drawn, "kind": "histogram", "y": [bins[0]["name"]], "edges": ends}
    if not numbers:
        return drawn
    if len(answer.rows) == 1 and not keys:
        return {**drawn, "kind": "number"}
    if len(keys) == 1:
        line = keys[0]["kind"] in _LINES and len(answer.rows) > _FEW
        return {**drawn, "kind": "line" if line else "bars", "x": keys[0]["name"]}
    if len(keys) == 2:
        return {**drawn, "kind": "grouped", "x": keys[0]["name"], "series": keys[1]["name"]}
    return drawn


# --- as tables -----------------------------------------------------------------------------


def _with_margins(answer: Answer, confidence: Exact) -> Iterator[tuple[str, list[Any]]]:
    """The columns, each value's followed by its margins."""
    margins = answer.margins(confidence)
    for name in answer.columns:
        yield name, answer.column(name)
        if any(margin is not None for margin in margins[name]):
            said = f"{name}_margin"
            while said in answer.columns:
                said += "_"
            yield said, margins[name]


def answer_csv(answer: Answer, confidence: Exact) -> bytes:
    """Values and margins, one line a row."""
    columns = dict(_with_margins(answer, confidence))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([plain(v) for v in row] for row in zip(*columns.values(), strict=True))
    return out.getvalue().encode()


def answer_arrow(answer: Answer, confidence: Exact) -> bytes:
    """Values and margins as an Arrow stream."""
    import pyarrow as pa

    table = answer.to_arrow()
    for name, values in _with_margins(answer, confidence):
        if name not in answer.columns:
            table = table.append_column(name, pa.array(values, pa.float64()))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


# --- explanations --------------------------------------------------------------------------


def explanation_json(quote: Quote, confidence: Exact) -> dict[str, Any]:
    """A question's price and margins before it is asked."""
    found = quote.explanation
    priced = found.priced
    return {
        "question": priced.question.text,
        "price": price(found.loss),
        "affordable": quote.refusal is None,
        "free": quote.free,
        "columns": [
            {"name": output.name, "kind": None, **_origin(priced, place), **shown}
            for place, (output, shown) in enumerate(
                zip(priced.question.outputs, _predicted(found, confidence), strict=True)
            )
        ],
        "groups": [
            {
                "name": key.name,
                "public": key.values is not None,
                "count": None if key.values is None else len(key.values),
            }
            for key in priced.question.keys
        ],
        "unit": owner(priced),
        "neighbours": str(priced.neighbours),
        "notes": list(notes(priced)),
        "certificate": found.certificate,
        "engine_sql": found.engine_sql,
        "text": str(found),
    }


def _predicted(found: Explanation, confidence: Exact) -> Iterator[dict[str, Any]]:
    """Noise and margin of each output that is an aggregate by itself."""
    priced = found.priced
    known = found.margins(confidence)
    assumed = found.margins(confidence, rows=ASSUMED_ROWS)
    names = [a.name for a in priced.question.aggregates]
    for output in priced.question.outputs:
        name = output.expression.name if isinstance(output.expression, ColumnRef) else None
        if name not in names:
            yield {"mechanism": None, "margin": None, "margin_text": None}
            continue
        noise = priced.noises[priced.recipes[names.index(name)].measurement]
        margin, guess = known[name], assumed[name]
        yield {
            "mechanism": _noise(noise),
            "margin": margin,
            "margin_text": _margin_text(margin, guess),
        }


def _noise(noise: object) -> str:
    if isinstance(noise, SelectionNoise):
        return "exponential"
    return "Laplace" if isinstance(noise, LaplaceNoise) else "Gaussian"


def _margin_text(margin: float | None, guess: float | None) -> str:
    if margin is not None:
        return f"± {number(margin, up=True)}"
    if guess is not None:
        return f"± {number(guess, up=True)} for {ASSUMED_ROWS:,} rows"
    return "with the answer"
