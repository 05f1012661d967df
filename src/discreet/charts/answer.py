"""Which picture suits an answer, from its shape alone, and the picture.

Everything is read off the answer's JSON, which a curator, a client and the page have alike.
Margins are drawn only where they are on the value's own axis: a median that may be off by so
many ranks is a point, and the subtitle says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.charts.grammar import Row, bars, bins, fit, heat, intervals, timeline
from discreet.charts.picture import Picture
from discreet.errors import InvalidParameter

MOST_GROUPS = 40
"""So many groups are drawn side by side; of more, the picture says how many it shows."""
_FEW_SERIES = 6
_FROM_ZERO = ("COUNT", "SUM", "HISTOGRAM", "COUNT_IF", "COUNTIF")
_NO_KEY = "(none)"

Shown = Mapping[str, Any]
"""An answer as ``to_json`` writes it."""


def draw_answer(shown: Shown, y: str | None = None, *, wide: int | None = None) -> Picture:
    """The picture of an answer; ``y`` names the column, the first with numbers if None.

    It is ``wide`` pixels in all, or as wide as suits it.
    """
    picture = _draw(shown, y)
    return picture if wide is None else fit(picture, wide)


def _draw(shown: Shown, y: str | None) -> Picture:
    kind, names = shown["chart"]["kind"], shown["chart"]["y"]
    if not names:
        raise InvalidParameter(
            "P5",
            "the answer has no column of numbers.",
            why="a picture shows numbers.",
            fix="show it as a table.",
        )
    if y is not None and y not in names:
        raise InvalidParameter(
            "P5",
            f"the answer has no column of numbers {y!r}.",
            why="a picture shows one column of numbers.",
            fix=f"one of: {', '.join(names)}.",
        )
    name = names[0] if y is None else y
    if kind == "histogram":
        return _histogram(shown, name)
    keys = [column["name"] for column in shown["columns"] if column["role"] == "key"]
    if _is_dated(shown, keys[1:2]) and not _is_dated(shown, keys[:1]):
        keys = [keys[1], keys[0], *keys[2:]]  # time goes from left to right
    dated = kind == "line" or (len(keys) == 2 and _is_dated(shown, keys[:1]))
    rows = [_point(shown, number, keys, name, dated=dated) for number in range(len(shown["rows"]))]
    empty = sum(row["value"] is None for row in rows)
    rows = [row for row in rows if row["value"] is not None]
    unsaid = [f"{empty} of {len(rows) + empty} without a value: see the table"] if empty else []
    by = f" by {' and '.join(keys)}" if keys else ""
    words = {"title": f"{name}{by}", "y": name}
    series = keys[1] if len(keys) == 2 else None
    many = series is not None and len({row["series"] for row in rows}) > _FEW_SERIES
    if dated and not many:
        rows, apart = _split(rows)
        said = _says(shown, name, [*apart, *unsaid])
        return timeline(rows, x=keys[0], subtitle=said, series=series, **words)
    if series is not None and many:
        return _cells(rows, keys, name, unsaid, words)
    return _groups(shown, name, rows, keys, series, words, unsaid)


def _is_dated(shown: Shown, keys: Sequence[str]) -> bool:
    return any(_column(shown, key)["kind"] in ("date", "timestamp") for key in keys)


def _cells(
    rows: Sequence[dict[str, Any]],
    keys: Sequence[str],
    name: str,
    unsaid: Sequence[str],
    words: Mapping[str, str],
) -> Picture:
    """A heat map: so many of either key as can be told apart."""
    kept, cut = {}, []
    for place, key in (("group", keys[0]), ("series", keys[1])):
        found = list(dict.fromkeys(row[place] for row in rows))
        kept[place] = set(found[:MOST_GROUPS])
        if len(found) > MOST_GROUPS:
            cut.append(f"{MOST_GROUPS} of {len(found)} of {key} shown")
    shown = [row for row in rows if all(row[place] in kept[place] for place in kept)]
    said = " · ".join(["margins: see the table", *cut, *unsaid])
    return heat(shown, x=keys[0], y=keys[1], title=words["title"], value=name, subtitle=said)


def _groups(
    shown: Shown,
    name: str,
    rows: list[dict[str, Any]],
    keys: Sequence[str],
    series: str | None,
    words: Mapping[str, str],
    unsaid: Sequence[str],
) -> Picture:
    """Bars or points; the group without a key last, and apart."""
    rows.sort(key=lambda row: bool(row["none"]))  # stable: else in the answer's order
    groups = list(dict.fromkeys(row["group"] for row in rows))
    kept = set(groups[:MOST_GROUPS])
    cut = [f"{MOST_GROUPS} of {len(groups)} groups shown"] if len(groups) > MOST_GROUPS else []
    counted = keys and _column(shown, name)["aggregate"] in _FROM_ZERO
    draw = bars if counted else intervals
    return draw(
        [row for row in rows if row["group"] in kept],
        x=", ".join(keys[:1]) or "",
        subtitle=_says(shown, name, [*cut, *unsaid]),
        series=series,
        series_order=list(dict.fromkeys(row["series"] for row in rows)) if series else (),
        **words,
    )


def _point(
    shown: Shown, number: int, keys: Sequence[str], name: str, *, dated: bool
) -> dict[str, Any]:
    places = {column["name"]: place for place, column in enumerate(shown["columns"])}
    row, ends = shown["rows"][number], shown["intervals"][number][places[name]] or {}
    key = row[places[keys[0]]] if keys else name
    more = [_label(row[places[k]]) for k in keys[1:]]
    value = row[places[name]]
    if ends.get("says"):  # "anything", or "no people": no picture of a number
        value, ends = None, {}
    return {
        "group": key if dated or not keys else _label(key),
        "none": key is None,
        "series": " · ".join(more) or None,
        "value": value if isinstance(value, int | float) else None,
        "low": ends.get("low"),
        "high": ends.get("high"),
        "cell": shown["cells"][number][places[name]],
    }


def _split(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """What has a place in time, and what has none, in words."""
    dated = [row for row in rows if not row["none"]]
    lost = [row for row in rows if row["none"]]
    names = {row["series"] for row in lost if row["series"]}
    whose = {row["series"]: f"{row['series']} " if len(names) > 1 else "" for row in lost}
    return dated, [f"without a key: {whose[row['series']]}{row['cell']}" for row in lost]


def _histogram(shown: Shown, name: str) -> Picture:
    place = next(i for i, column in enumerate(shown["columns"]) if column["name"] == name)
    edges, counts = shown["chart"]["edges"], shown["rows"][0][place]
    margin = shown["margins"][0][place]
    rows: list[Row] = [
        {
            "from": low,
            "to": high,
            "value": count,
            "low": None if margin is None else count - margin,
            "high": None if margin is None else count + margin,
        }
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    said, title = _says(shown, name, []), f"Histogram of {name}"
    return bins(rows, x=name, y="count", title=title, subtitle=said)


def _says(shown: Shown, name: str, also: Sequence[str]) -> str:
    """What the bars of error are, or why there are none."""
    unit, percent = _column(shown, name)["margin_unit"], float(shown["confidence"]) * 100
    ends = any(row is not None for line in shown["intervals"] for row in line)
    if unit is None:
        words = "without margins"
    elif unit == "value" or ends:
        words = f"with {percent:g} % intervals"
    else:
        words = f"margins are in {unit}: see the table"
    return " · ".join([words, *also])


def _column(shown: Shown, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(c for c in shown["columns"] if c["name"] == name)
    return found


def _label(key: Any) -> str:
    return _NO_KEY if key is None else str(key)


__all__ = ["MOST_GROUPS", "draw_answer"]
