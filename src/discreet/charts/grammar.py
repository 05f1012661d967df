"""The few kinds of pictures there are: lines with bands, bars and points with intervals, heat maps.

Every value may have a low and a high end, which are drawn where both are known; a missing end
(None) draws nothing, never a bar of length zero.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from discreet.charts.picture import Picture

Scale = Literal["linear", "log", "time"]
Row = Mapping[str, Any]

WIDE, TALL = 560, 260
_LETTER = 6.5
"""About how many pixels a letter of a label takes."""
_MOMENTS = {
    "labelOverlap": True,
    "format": {
        "year": "%Y",
        "quarter": "%b",
        "month": "%b",
        "week": "%-d %b",
        "date": "%-d %b",
        "hours": "%H:%M",
        "minutes": "%H:%M",
        "seconds": "%H:%M:%S",
    },
}
"""How moments are written, by what changes from one to the next: half past five in the afternoon is
17:30, where the renderer by itself writes 05:30."""
_LEGEND = {"title": None, "orient": "bottom", "labelLimit": WIDE, "symbolType": "stroke"}
_DASHES = [[1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2], [1, 2]]


def lines(
    named: Sequence[tuple[str, Sequence[Sequence[float | None]]]],
    *,
    x: str,
    y: str,
    title: str,
    subtitle: str = "",
    x_scale: Scale = "linear",
    y_scale: Scale = "linear",
    percent: bool = False,
) -> Picture:
    """Lines of points ``(x, y)`` or ``(x, y, low, high)``, told apart by colour and dashes.

    ``x`` and ``y`` are what the axes count; ``percent`` writes shares as percentages, from zero;
    a scale of ``time`` reads ``x`` as milliseconds since 1970 and draws steps.
    """
    values = []
    for name, points in named:
        for point in points:
            row = {"x": point[0], "y": point[1], "line": name}
            if len(point) > 2:
                row |= {"low": point[2], "high": point[3]}
            values.append(row)
    across = _make_axis(x, x_scale)
    form = {"format": "~%"} if percent else {}
    up = {"title": y, "scale": _make_scale(y_scale), "axis": {"grid": True, **form}}
    names = [name for name, _ in named]
    legend = None if len(names) == 1 else {**_LEGEND, "columns": 2 if len(names) > 3 else 0}
    # The same domain for both, so that they share one legend.
    colour = {"field": "line", "type": "nominal", "scale": {"domain": names}, "legend": legend}
    dash = {**colour, "scale": {"domain": names, "range": _DASHES[: len(names)]}}
    layers: list[dict[str, Any]] = []
    if any("low" in row for row in values):
        ends = {"y": {**up, "field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
        layers.append(
            {
                "transform": [{"filter": "datum.low != null && datum.high != null"}],
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {"x": across, "color": colour, **ends},
            }
        )
    layers.append(
        {
            "mark": {
                "type": "line",
                "point": len(values) <= 40 * len(names),
                "interpolate": "step-after" if x_scale == "time" else "linear",
            },
            "encoding": {
                "x": across,
                "y": {**up, "field": "y", "type": "quantitative"},
                "color": colour,
                "strokeDash": dash,
            },
        }
    )
    return _picture(values, title, subtitle, {"layer": layers, "width": WIDE, "height": TALL})


def _make_axis(title: str, scale: Scale) -> dict[str, Any]:
    """The axis that lines go along."""
    axis: dict[str, Any] = {"field": "x", "title": title}
    if scale == "time":
        return axis | {"type": "temporal", "scale": {"type": "utc"}, "axis": _MOMENTS}
    axis |= {"type": "quantitative", "scale": _make_scale(scale)}
    if scale == "log":  # whose ticks crowd
        axis["axis"] = {"labelOverlap": "greedy", "labelSeparation": 6}
    return axis


def bars(values: Sequence[Row], **words: Any) -> Picture:
    """A bar from zero for each row, with its interval; see :func:`intervals` for the words."""
    return _draw_groups(values, "bar", **words)


def intervals(values: Sequence[Row], **words: Any) -> Picture:
    """A point for each row, with its interval: for what need not begin at zero.

    A row has ``group``, ``value``, ``low``, ``high``, and may have ``series``; ``none`` is true
    for the group without a key, which stands apart in grey.
    """
    return _draw_groups(values, "point", **words)


def _draw_groups(
    values: Sequence[Row],
    mark: Literal["bar", "point"],
    *,
    x: str,
    y: str,
    title: str,
    subtitle: str = "",
    series: str | None = None,
    series_order: Sequence[str] = (),
) -> Picture:
    order = list(dict.fromkeys(str(row["group"]) for row in values))
    across: dict[str, Any] = {
        "x": {
            "field": "group",
            "type": "nominal",
            "sort": order,
            "title": x,
            "axis": {"labelAngle": _angle(order, WIDE), "labelLimit": 160},
        }
    }
    colour: dict[str, Any] = {"condition": {"test": "datum.none", "value": "#8a8f98"}}
    if series is not None:
        legend = {"title": series, "orient": "bottom"}
        part = {"field": "series", "type": "nominal", "sort": list(series_order)}
        across["xOffset"] = part
        colour |= {**part, "legend": legend}
    up: dict[str, Any] = {"type": "quantitative", "title": y}
    zero: dict[str, Any] = {"scale": {"zero": mark == "bar"}}
    shape = {"type": "bar"} if mark == "bar" else {"type": "point", "filled": True, "size": 60}
    encoding = {**across, "y": {"field": "value", **up, **zero}}
    if len(colour) > 1 or any(row.get("none") for row in values):
        encoding["color"] = colour
    known = {"filter": "datum.low != null && datum.high != null"}
    ends: dict[str, Any] = {"y": {"field": "low", **up, **zero}, "y2": {"field": "high"}}
    layers: list[dict[str, Any]] = [
        {"mark": shape, "encoding": encoding},
        {"transform": [known], "mark": "rule", "encoding": {**across, **ends}},
    ]
    for end in ("low", "high"):
        tick = {"type": "tick", "width": 7, "thickness": 1, "orient": "horizontal"}
        at: dict[str, Any] = {"field": end, **up, **zero}
        layers.append({"transform": [known], "mark": tick, "encoding": {**across, "y": at}})
    width = {"step": 26} if len(order) > 16 else WIDE
    return _picture(values, title, subtitle, {"layer": layers, "width": width, "height": TALL})


def timeline(
    values: Sequence[Row],
    *,
    x: str,
    y: str,
    title: str,
    subtitle: str = "",
    series: str | None,
) -> Picture:
    """Lines over dates or numbers in order, with a band; rows are those of :func:`intervals`."""
    temporal = any(isinstance(row["group"], str) for row in values)
    across = {
        "field": "group",
        "type": "temporal" if temporal else "quantitative",
        "title": x,
        "scale": {"type": "utc"} if temporal else {"zero": False},
        "axis": _dates(values) if temporal else {"format": "~r", "tickMinStep": 1},
    }
    colour = {}
    if series is not None:
        colour["color"] = {
            "field": "series",
            "type": "nominal",
            "legend": {"title": series, "orient": "bottom", "symbolOpacity": 1},
        }
    up = {"type": "quantitative", "title": y}
    band = {"y": {"field": "low", **up}, "y2": {"field": "high"}}
    layers = [
        {
            "transform": [{"filter": "datum.low != null && datum.high != null"}],
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"x": across, **colour, **band},
        },
        {
            "mark": {"type": "line", "point": len(values) <= 60},
            "encoding": {"x": across, **colour, "y": {"field": "value", **up}},
        },
    ]
    return _picture(values, title, subtitle, {"layer": layers, "width": WIDE, "height": TALL})


def bins(
    values: Sequence[Row],
    *,
    x: str,
    y: str,
    title: str,
    subtitle: str = "",
) -> Picture:
    """Bars between edges: rows have ``from``, ``to``, ``value``, ``low`` and ``high``."""
    up = {"type": "quantitative", "title": y}
    edges = {"x": {"field": "from", "type": "quantitative", "title": x}, "x2": {"field": "to"}}
    middle = {"x": {"field": "middle", "type": "quantitative", "title": x}}
    ends = {"y": {"field": "low", **up}, "y2": {"field": "high"}}
    rows = [{**row, "middle": (row["from"] + row["to"]) / 2} for row in values]
    layers = [
        {"mark": "bar", "encoding": {**edges, "y": {"field": "value", **up}, "y2": {"datum": 0}}},
        {
            "transform": [{"filter": "datum.low != null && datum.high != null"}],
            "mark": "rule",
            "encoding": {**middle, **ends},
        },
    ]
    return _picture(rows, title, subtitle, {"layer": layers, "width": WIDE, "height": TALL})


def heat(
    values: Sequence[Row],
    *,
    x: str,
    y: str,
    value: str,
    title: str,
    subtitle: str = "",
) -> Picture:
    """A cell for each pair of keys: rows have ``group``, ``series`` and ``value``."""
    across = list(dict.fromkeys(str(row["group"]) for row in values))
    down = list(dict.fromkeys(str(row["series"]) for row in values))
    cell = {
        "mark": "rect",
        "encoding": {
            "x": {"field": "group", "type": "nominal", "sort": across, "title": x},
            "y": {"field": "series", "type": "nominal", "sort": down, "title": y},
            "color": {
                "field": "value",
                "type": "quantitative",
                "title": value,
                "scale": {"scheme": "blues"},
            },
        },
    }
    size = {"width": {"step": 24}, "height": {"step": 20}}
    return _picture(values, title, subtitle, {**cell, **size})


def fit(picture: Picture, wide: int) -> Picture:
    """The same picture, ``wide`` pixels in all: labels and legends included, titles in lines."""
    letters = max(12, int(wide / _LETTER))
    heading = picture.spec["title"]
    spec = {
        **picture.spec,
        "title": {part: textwrap.wrap(words, letters) for part, words in heading.items()},
        "width": wide,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    if "layer" in spec:
        spec["layer"] = [_turn_names(layer, wide) for layer in spec["layer"]]
    return Picture(spec)


def _turn_names(layer: Row, wide: int) -> Row:
    """The layer with names under its bars that do not run into each other."""
    across = layer["encoding"]["x"]
    if across["type"] != "nominal":
        return layer
    axis = {**across["axis"], "labelAngle": _angle(across["sort"], wide)}
    return {**layer, "encoding": {**layer["encoding"], "x": {**across, "axis": axis}}}


def _picture(
    values: Sequence[Row],
    title: str,
    subtitle: str,
    drawn: Mapping[str, Any],
) -> Picture:
    heading: dict[str, Any] = {"text": title}
    if subtitle:
        heading["subtitle"] = subtitle
    description = f"{title}. {subtitle}".strip()
    data = {"values": [dict(row) for row in values]}
    spec = {"title": heading, "description": description, "data": data, **drawn}
    return Picture(spec)


def _make_scale(scale: Scale) -> dict[str, Any]:
    return {"type": "log"} if scale == "log" else {"zero": False}


def _dates(values: Sequence[Row]) -> dict[str, Any]:
    """How days are written: months where there is nothing else."""
    texts = [row["group"] for row in values]
    if any(len(text) > len("2024-02-29") for text in texts):
        return _MOMENTS
    months = all(text.endswith("-01") for text in texts)
    return {"labelOverlap": True, "format": "%b %Y" if months else "%-d %b %Y"}


def _angle(names: Sequence[str], wide: int) -> int:
    """How names stand under their bars: side by side if they can."""
    longest = max((len(name) for name in names), default=0) + 2
    return 0 if longest * len(names) * _LETTER <= wide else -40


__all__ = ["Row", "Scale", "bars", "bins", "fit", "heat", "intervals", "lines", "timeline"]
