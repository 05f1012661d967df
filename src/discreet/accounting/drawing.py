"""Line charts as SVG text: axes, ticks, a legend, readable on light and on dark paper.

A drawing is one string of plain SVG without scripts, fonts or identifiers, so
that it can be saved, put into a page, or shown in a notebook as it is.  Colours
follow the reader's light or dark setting where the viewer knows it, and lines
differ by their dashes as well as by colour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 300, 250  # of the area that the lines are drawn in
_LEFT, _TOP, _BOTTOM, _RIGHT = 62, 58, 62, 26
_ROW = 18  # a line of the legend

# Okabe and Ito's colours, which the colour-blind can tell apart; lightened for dark paper.
_LIGHT = ("#0b62a4", "#b3450b", "#00785a", "#8a5a00", "#9c3b78", "#444444")
_DARK = ("#6db7ee", "#ff9e66", "#4fd0a5", "#f0c04f", "#e79cc6", "#cccccc")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")

_STYLE = (
    "<style>"
    ".dpaper{fill:#fff}.dink{fill:#1d1d1f}.dsoft{fill:#55585d}.dframe{stroke:#55585d}"
    ".dgrid{stroke:#e2e4e8}"
    + "".join(
        f".dline{i}{{stroke:{c}}}.dfill{i}{{fill:{c};fill-opacity:.13}}"
        for i, c in enumerate(_LIGHT)
    )
    + "@media (prefers-color-scheme:dark){"
    ".dpaper{fill:#16181c}.dink{fill:#f1f2f4}.dsoft{fill:#b4b8bf}.dframe{stroke:#8a8f98}"
    ".dgrid{stroke:#33373e}"
    + "".join(
        f".dline{i}{{stroke:{c}}}.dfill{i}{{fill:{c};fill-opacity:.18}}"
        for i, c in enumerate(_DARK)
    )
    + "}text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "</style>"
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A direction with a name and two ends."""

    label: str
    least: float
    most: float
    logarithmic: bool = False
    percent: bool = False

    def position(self, value: float) -> float:
        """Where ``value`` lies, from 0 at the least to 1 at the most.

        >>> round(Axis("releases", 2, 2000, logarithmic=True).position(200), 4)
        0.6667
        """
        if self.logarithmic:
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers within the axis, and how they are written.

        >>> Axis("epsilon", 0, 7).ticks()
        [(0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6')]
        """
        if self.logarithmic:
            return [(value, _number(value)) for value in self._powers()]
        rough = (self.most - self.least) / 5
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * nice for nice in (1, 2, 5, 10) if size * nice >= rough * 0.999)
        first = math.ceil(self.least / step - 1e-9)
        last = math.floor(self.most / step + 1e-9)
        values = [k * step for k in range(first, last + 1)]
        return [(v, f"{v * 100:.0f}%" if self.percent else _number(v)) for v in values]

    def _powers(self) -> list[float]:
        powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
        steps = (1, 2, 5) if len(powers) <= 3 else (1,)
        values = [step * 10.0**power for power in powers for step in steps]
        return [value for value in values if self.least * 0.999 <= value <= self.most * 1.001]


@dataclass(frozen=True, slots=True)
class Line:
    """A named sequence of points; ``shaded`` fills what lies below it."""

    label: str
    points: Sequence[tuple[float, float]]
    shaded: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over two axes, under one heading."""

    heading: str
    x: Axis
    y: Axis
    lines: Sequence[Line]


def svg(charts: Sequence[Chart], *, title: str, description: str) -> str:
    """The charts side by side, as the text of an SVG file.

    >>> line = Line("squares", [(2, 4), (3, 9), (4, 16)])
    >>> chart = Chart("growth", Axis("n", 2, 4), Axis("n squared", 0, 16), [line])
    >>> svg([chart], title="Squares", description="They grow.").startswith("<svg xmlns=")
    True
    """
    panel = _LEFT + _WIDTH + _RIGHT
    rows = max(len(chart.lines) for chart in charts)
    width, height = panel * len(charts), _TOP + _HEIGHT + _BOTTOM + _ROW * rows + 14
    body = "".join(
        f'<g transform="translate({index * panel + _LEFT} {_TOP})">{_panel(chart)}</g>'
        for index, chart in enumerate(charts)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{_STYLE}"
        f'<rect class="dpaper" width="{width}" height="{height}"/>'
        f'<text class="dink" x="{_LEFT}" y="24" font-size="15" font-weight="600">'
        f"{escape(title)}</text>{body}</svg>\n"
    )


def _panel(chart: Chart) -> str:
    parts = [_text(0, -12, chart.heading, size=12.5)]
    for value, label in chart.x.ticks():
        x = chart.x.position(value) * _WIDTH
        parts.append(_rule(x, 0, x, _HEIGHT))
        parts.append(_text(x, _HEIGHT + 17, label, anchor="middle"))
    for value, label in chart.y.ticks():
        y = (1 - chart.y.position(value)) * _HEIGHT
        parts.append(_rule(0, y, _WIDTH, y))
        parts.append(_text(-8, y + 4, label, anchor="end"))
    parts.append(_text(_WIDTH / 2, _HEIGHT + 38, chart.x.label, anchor="middle"))
    parts.append(
        f'<text class="dsoft" transform="translate(-46 {_HEIGHT / 2}) rotate(-90)" '
        f'text-anchor="middle" font-size="11.5">{escape(chart.y.label)}</text>'
    )
    # A nested picture clips what leaves the axes, without an identifier to clash with others.
    lines = "".join(_line(chart, line, index) for index, line in enumerate(chart.lines))
    parts.append(f'<svg width="{_WIDTH}" height="{_HEIGHT}" overflow="hidden">{lines}</svg>')
    parts.append(f'<rect class="dframe" width="{_WIDTH}" height="{_HEIGHT}" fill="none"/>')
    parts.extend(_legend(line, index) for index, line in enumerate(chart.lines))
    return "".join(parts)


def _line(chart: Chart, line: Line, index: int) -> str:
    points = [
        (chart.x.position(x) * _WIDTH, (1 - chart.y.position(y)) * _HEIGHT) for x, y in line.points
    ]
    path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    drawn = (
        f'<polyline class="dline{index % len(_LIGHT)}" points="{path}" fill="none" '
        f'stroke-width="2" stroke-dasharray="{_DASHES[index % len(_DASHES)]}"/>'
    )
    if line.shaded:
        floor = f"{points[0][0]:.2f},{_HEIGHT} {path} {points[-1][0]:.2f},{_HEIGHT}"
        drawn = f'<polygon class="dfill{index % len(_LIGHT)}" points="{floor}"/>{drawn}'
    return drawn


def _legend(line: Line, index: int) -> str:
    y = _HEIGHT + _BOTTOM + _ROW * index + 4
    return (
        f'<line class="dline{index % len(_LIGHT)}" x1="0" y1="{y - 4}" x2="28" y2="{y - 4}" '
        f'stroke-width="2" stroke-dasharray="{_DASHES[index % len(_DASHES)]}"/>'
        + _text(36, y, line.label, shade="dink")
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: float = 11.5,
    shade: str = "dsoft",
) -> str:
    return (
        f'<text class="{shade}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(text)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="dgrid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 and value == round(value) else f"{value:.6g}"


__all__ = ["Axis", "Chart", "Line", "svg"]
