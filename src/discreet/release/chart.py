"""Which picture suits an answer, from its shape alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.release.answer import Answer

_ORDERED = ("date", "timestamp", "integer")
_FEW = 2
"""So many points make no line."""


def suggest_chart(answer: Answer, columns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A number, bars, a line, groups of bars, a histogram; or the table alone."""
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
        line = keys[0]["kind"] in _ORDERED and len(answer.rows) > _FEW
        return {**drawn, "kind": "line" if line else "bars", "x": keys[0]["name"]}
    if len(keys) == 2:
        return {**drawn, "kind": "grouped", "x": keys[0]["name"], "series": keys[1]["name"]}
    return drawn
