"""The picture of an exact audit: where the privacy loss lies, and delta against epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.accounting.drawing import Axis, Chart, Line, svg

_BINS = 60
_LEAST_DELTA = 1e-9

Point = tuple[float, float]
Atoms = Sequence[tuple[float, float, float]]


def draw_losses(
    name: str,
    losses: Atoms,
    curve: Sequence[Point],
    promised: Sequence[Point] | None,
    sentence: str,
) -> str:
    """The charts side by side; the first is left out where the losses are not listed."""
    charts = [chart for chart in (_distribution(losses), _trade_off(curve, promised)) if chart]
    title = name if len(name) <= 70 else f"{name[:67]}..."
    return svg(charts, title=title, description=sentence) if charts else ""


def _distribution(losses: Atoms) -> Chart | None:
    """Both laws of the loss, summed up in bins of equal width."""
    finite = [atom for atom in losses if math.isfinite(atom[0])]
    if not finite:
        return None
    least, most = finite[0][0], finite[-1][0]
    room = max(most - least, 1e-9) * 0.04
    low, width = least - room, (most - least + 2 * room) / _BINS
    bins = [[0.0, 0.0] for _ in range(_BINS)]
    for loss, p, q in finite:
        index = min(int((loss - low) / width), _BINS - 1)
        bins[index][0] += p
        bins[index][1] += q
    top = max(max(pair) for pair in bins) * 1.05
    lines = [
        Line(label, _steps([pair[side] for pair in bins], low, width), shaded=True)
        for side, label in enumerate(("if the first input was used", "if the second was"))
    ]
    return Chart(
        "How often an answer tells so much",
        Axis("privacy loss ln(P/Q) of the answer", low, low + _BINS * width),
        Axis("share of answers", 0, top, percent=True),
        lines,
    )


def _steps(heights: Sequence[float], low: float, width: float) -> list[Point]:
    points: list[Point] = []
    for index, height in enumerate(heights):
        points += [(low + index * width, height), (low + (index + 1) * width, height)]
    return points


def _trade_off(curve: Sequence[Point], promised: Sequence[Point] | None) -> Chart | None:
    drawable = _keep_visible(curve)
    if len(drawable) < 2:
        return None
    lines = [Line("what this pair costs", drawable)]
    if promised is not None and len(_keep_visible(promised)) > 1:
        lines.append(Line("what is promised", _keep_visible(promised)))
    values = [y for line in lines for _, y in line.points]
    least = max(min(values) / 2, _LEAST_DELTA)
    return Chart(
        "δ against ε",
        Axis("ε", 0, max(x for x, _ in curve) or 1.0),
        Axis("δ", least, 1, logarithmic=True),
        lines,
    )


def _keep_visible(points: Sequence[Point]) -> list[Point]:
    return [(x, y) for x, y in points if y >= _LEAST_DELTA]


__all__ = ["draw_losses"]
