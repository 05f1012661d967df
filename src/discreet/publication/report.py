"""The card and the report of a release, from released numbers alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.charts.grammar import bars, lines
from discreet.charts.picture import Picture
from discreet.publication.declared import KINDS
from discreet.publication.margins import tabulate
from discreet.publication.measure import Cells, Doubles
from discreet.question.domain import Kind
from discreet.question.levels import Levels

if TYPE_CHECKING:
    from discreet.publication.folder import Made


_BARS = 24
"""Up to so many levels or pairs are bars."""
_SERIES = ("released, noisy", "synthetic rows")


def write_card(made: Made) -> str:
    """The data card, in Markdown: what it is, what it promises, what must not be concluded."""
    declared = made.declared
    lines = [
        f"# {declared.name}",
        "",
        f"{_describe_kind(made)}; of `{' '.join(declared.source.split())}`.",
        "",
        f"**Promise.** {describe_promise(made)}",
        "",
        "| stage | loss |",
        "| --- | --- |",
        *(f"| {stage.name} | {stage.spend.loss} |" for stage in made.stages),
        "",
        "| column | type | levels |",
        "| --- | --- | --- |",
        *(f"| {one.name} | {one.kind.value} | {one.size} |" for one in made.levels),
        "",
        "**What must not be concluded.**",
        *(f"- {one}" for one in list_limits(made)),
        "",
        "`certificate.json` says what was charged; `measurements.parquet` holds every draw, and",
        "all else here is computed from it. `discreet release verify` checks both.",
        "",
    ]
    return "\n".join(lines)


_WAYS = {1: "each", 2: "every two", 3: "every three", 4: "every four"}
_MOST_SETS = 8
"""Up to so many sets of columns are named one by one."""


def _describe_kind(made: Made) -> str:
    """What a release gives; of counts by sets of columns, which."""
    declared, names = made.declared, [one.name for one in made.levels]
    if declared.kind != "marginals":
        told = KINDS[declared.kind]
    elif len(declared.sets) > _MOST_SETS:
        told = f"counts by {len(declared.sets)} sets of columns"
    elif declared.sets:
        told = "counts " + ", ".join(f"by {_join(one)}" for one in declared.sets)
    elif declared.ways >= len(names):
        told = f"counts by {_join(names)}"
    else:
        told = f"counts by {_WAYS[declared.ways]} of {_join(names)}"
    return told[0].upper() + told[1:]


def _join(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def describe_promise(made: Made) -> str:
    """What the release promises to one unit, in words."""
    each, rows = made.promise.unit, made.promise.counted
    many = "" if rows == 1 else f" (at most {rows:,} rows of each are counted)"
    declared = made.declared
    whole = ""
    if declared.delta is not None:
        whole = f"(ε, δ) = ({declared.epsilon}, {float(declared.delta):g}) in all, charged as "
    over = ""
    if declared.kind == "counter":  # said plainly: nobody is protected for a single step only
        over = ", over all steps together"
        if declared.steps_per_unit is not None:
            one = declared.steps_per_unit == 1
            over += f", counted in at most {declared.steps_per_unit} step{'' if one else 's'}"
    return (
        f"For each {each}{many}{over}: {whole}{made.loss}, under {made.promise.neighbours} "
        "neighbours. "
        "Nothing later changes this, whatever is computed from the files."
    )


def list_limits(made: Made) -> list[str]:
    """What the release does not tell."""
    said = []
    if made.product.rows is not None:
        said += [
            "A synthetic row is nobody: it must not be linked, looked up or followed.",
            "Rare combinations are the model's, and dependences of three and more columns are kept "
            "only as far as pairs carry them.",
            "Where a margin is typical, a single answer may be further off.",
        ]
    else:
        said.append("A count is the truth and noise: small and negative ones are mostly noise.")
    if made.declared.steps_per_unit is not None:
        said.append(
            f"Whoever was counted in {made.declared.steps_per_unit} steps is not counted again; "
            "a step is what was counted on its day: rows that came later are in none."
        )
    said += [
        "Numbers and times in cells are known by their cell, and not more finely.",
        *made.product.notes,
    ]
    return said


def write_report(made: Made, *, drawn: bool | None = None) -> str:
    """The report as one HTML page without scripts, ready to print.

    ``drawn`` says whether there are pictures, or what they would show in words; unless it is
    given, there are where something can draw them.
    """
    declared = made.declared
    drawn = find_spec("vl_convert") is not None if drawn is None else drawn
    parts = [
        f"<h1>{escape(declared.name)}</h1>",
        f"<p>{escape(_describe_kind(made))}; of "
        f"<code>{escape(' '.join(declared.source.split()))}</code>.</p>",
        f"<p><b>Promise.</b> {escape(describe_promise(made))}</p>",
        _stages(made),
        *([_columns(made, drawn), _pairs(made, drawn)] if made.product.rows is not None else []),
        *([_tables(made)] if made.product.rows is None or declared.best else []),
        "<h2>What must not be concluded</h2><ul>",
        *(f"<li>{escape(one)}</li>" for one in list_limits(made)),
        "</ul>",
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(declared.name)}'
        f"</title><style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#1d1d1f;background:#fff}table{border-collapse:collapse;margin:.5rem 0}"
    "td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #e2e4e8}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
    "@page{size:A4;margin:18mm 15mm}"
    "@media print{body{margin:0;padding:0;max-width:none;font-size:10pt}"
    "thead{display:table-header-group}section,tr,li,svg{break-inside:avoid}"
    "h2,h3{break-after:avoid}p{orphans:3;widows:3}td{overflow-wrap:anywhere}}"
)


def _stages(made: Made) -> str:
    rows = "".join(
        f"<tr><td>{escape(stage.name)}</td><td>{len(made.product.measured.get(stage.name, []))}"
        f"</td><td>{escape(str(stage.spend.loss))}</td></tr>"
        for stage in made.stages
    )
    return f"<h2>What was measured</h2>{write_table(['stage', 'draws', 'loss'], rows)}"


def write_table(heads: Sequence[str], rows: str) -> str:
    """A table whose heads are said again on every page that it is printed on."""
    said = "".join(f"<th>{escape(one)}</th>" for one in heads)
    return f"<table><thead><tr>{said}</tr></thead><tbody>{rows}</tbody></table>"


def _columns(made: Made, pictures: bool) -> str:
    """Each column: the noisy counts that were released, with error bars, and the rows' own."""
    drawn = []
    for levels, table in zip(made.levels, made.product.tables, strict=False):
        if table.noisy is None:
            continue
        one = np.zeros(table.values.shape)
        one[0] = 1.0
        spread = float(np.sqrt(table.variance_of(one))) * 1.96
        picture = draw_column(levels, table.noisy, table.values, spread)
        drawn.append(
            f"<section><h3>{escape(levels.name)}</h3>{_show(picture, pictures)}"
            f"<p>{levels.size} levels, from {escape(levels.describe(0))} to "
            f"{escape(levels.describe(levels.count - 1))}; ± {spread:.3g} a count.</p></section>"
        )
    return (
        "<h2>Column by column</h2><p>The released noisy counts, with 95 % intervals, beside the "
        "synthetic rows. The data themselves are in neither.</p>" + "".join(drawn)
    )


def draw_column(levels: Levels, noisy: Doubles, rows: Doubles, spread: float) -> Picture:
    """A column's released counts with their intervals, beside those of the rows.

    Few levels are bars; many are lines, of which at most 120 neighbours are added up.
    """
    words: dict[str, Any] = {"y": "rows", "title": f"rows by {levels.name}"}
    if levels.size <= _BARS:
        return bars(
            [
                row
                for place in range(levels.size)
                for row in _compare(levels.describe(place), noisy[place], rows[place], spread)
            ],
            x=levels.name,
            series="counted",
            series_order=_SERIES,
            subtitle="with 95 % intervals",
            **words,
        )
    group = -(-levels.count // 120)
    starts = np.arange(0, levels.count, group)
    sums = [np.add.reduceat(one[: levels.count], starts) for one in (noisy, rows)]
    numbers = levels.values is None and levels.kind in (Kind.INTEGER, Kind.DECIMAL)
    places = [float(levels.ends(int(one))[0]) if numbers else float(one) for one in starts]
    error = spread * float(np.sqrt(group))
    missing = ""
    if levels.nullable:
        missing = f"; NULL: {noisy[-1]:,.0f} ± {spread:,.3g} released, {rows[-1]:,.0f} in the rows"
    return lines(
        [
            (
                _SERIES[0],
                [(x, y, y - error, y + error) for x, y in zip(places, sums[0], strict=True)],
            ),
            (_SERIES[1], list(zip(places, sums[1], strict=True))),
        ],
        x=levels.name if numbers else f"{levels.name}, by number of its level",
        subtitle=f"with 95 % intervals{missing}",
        **words,
    )


def _compare(group: str, noisy: float, rows: float, spread: float) -> list[dict[str, Any]]:
    ends = {"low": noisy - spread, "high": noisy + spread}
    return [
        {"group": group, "series": _SERIES[0], "value": noisy, **ends},
        {"group": group, "series": _SERIES[1], "value": rows, "low": None, "high": None},
    ]


def _show(picture: Picture, drawn: bool) -> str:
    """The picture, or in words what it would show."""
    if not drawn:
        said = escape(picture.description)
        return f"<p><i>{said} (Pictures are drawn with discreet[plots].)</i></p>"
    return picture.svg()


def _pairs(made: Made, drawn: bool) -> str:
    """Each measured pair: how far the rows' table is from the released noisy one."""
    told, scores, shown = [], [], []
    rows = made.product.rows
    if rows is None:
        return ""
    for one in made.product.measured.get("pair tables", []):
        if not isinstance(one.query, Cells):
            continue
        view = one.query.view
        own = tabulate(rows, view)
        apart = float(np.abs(own - one.values).sum()) / 2 / max(len(rows), 1)
        # |noise| of one cell: its mean, and its variance for the error bar, as if it were normal.
        each = float(np.sqrt(one.query.noise.variance)) / 2 / len(rows)
        noise = each * float(np.sqrt(2 / np.pi)) * view.cells
        error = 1.96 * each * float(np.sqrt((1 - 2 / np.pi) * view.cells))
        scores.append(apart)
        names = " × ".join(made.levels[column].name for column in view.columns)
        shape = " × ".join(map(str, view.shape))
        told.append(
            f"<tr><td>{escape(names)}</td><td>{shape}</td><td>{apart:.3f}</td>"
            f"<td>{noise:.3f} ± {error:.3f}</td></tr>"
        )
        shown.append((names, apart, noise, error))
    left = [
        " × ".join(made.levels[column].name for column in pair)
        for pair in itertools.combinations(range(len(made.levels)), 2)
        if not any(
            set(pair) == set(one.query.view.columns)
            for one in made.product.measured.get("pair tables", [])
            if isinstance(one.query, Cells)
        )
    ]
    score = 1000 * (1 - float(np.mean(scores))) if scores else 1000.0
    picture = _show(draw_pairs(shown), drawn) if shown else ""
    rest = f"<p>Not measured together: {escape(', '.join(left))}.</p>" if left else ""
    return (
        "<h2>Pair by pair</h2><p>Total variation between the released noisy table and the rows; "
        "beside it, what noise alone would show. k-marginal score of the measured pairs against "
        f"their noisy tables, noise included: {score:.0f} of 1000.</p>"
        f"{write_table(['pair', 'resolution', 'apart', 'noise alone'], ''.join(told))}"
        f"{rest}{picture}"
    )


def draw_pairs(found: Sequence[tuple[str, float, float, float]]) -> Picture:
    """How far the rows' tables are from the released noisy ones, and what noise alone explains."""
    worst = sorted(found, key=lambda one: one[2] - one[1])[:_BARS]
    few = f"the {_BARS} of {len(found)} that are furthest beyond noise; " * (len(found) > _BARS)
    return bars(
        [
            row
            for names, apart, noise, error in worst
            for row in (
                {
                    "group": names,
                    "series": "noise alone",
                    "value": noise,
                    "low": noise - error,
                    "high": noise + error,
                },
                {"group": names, "series": "apart", "value": apart, "low": None, "high": None},
            )
        ],
        x="pair",
        y="total variation",
        title="rows against released pair tables",
        subtitle=f"{few}with 95 % intervals",
        series="between the two",
        series_order=("noise alone", "apart"),
    )


def _tables(made: Made) -> str:
    lines = []
    for table in made.product.tables:
        margins = table.cell_margins()
        lines.append(
            f"<tr><td>{escape(table.name)}</td><td>{table.values.size}</td>"
            f"<td>{float(np.mean(margins)):.4g}</td><td>{float(np.max(margins)):.4g}</td></tr>"
        )
    for text, value, margin in made.product.answers:
        lines.append(
            f"<tr><td><code>{escape(text)}</code></td><td>1</td><td>{value:,.6g}</td>"
            f"<td>± {margin:.4g}</td></tr>"
        )
    heads = ["table", "cells", "mean margin, 95 %", "largest"]
    return f"<h2>Tables</h2>{write_table(heads, ''.join(lines))}"


__all__ = ["draw_column", "draw_pairs", "write_card", "write_report", "write_table"]
