"""The card and the report of a release, from released numbers alone."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from discreet.publication.declared import KINDS
from discreet.publication.margins import tabulate
from discreet.publication.measure import Cells
from discreet.publication.typed import cell_margins

if TYPE_CHECKING:
    from discreet.publication.folder import Made


def write_card(made: Made) -> str:
    """The data card, in Markdown: what it is, what it promises, what must not be concluded."""
    declared = made.declared
    lines = [
        f"# {declared.name}",
        "",
        f"{KINDS[declared.kind].capitalize()}; of `{' '.join(declared.source.split())}`.",
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


def describe_promise(made: Made) -> str:
    """What the release promises to one unit, in words."""
    each, rows = made.promise.unit, made.promise.rows_per_unit
    many = "" if rows == 1 else f", with all of its {rows} rows at most"
    declared = made.declared
    whole = ""
    if declared.delta is not None:
        whole = f"(ε, δ) = ({declared.epsilon}, {float(declared.delta):g}) in all, charged as "
    return (
        f"For each {each}{many}: {whole}{made.loss}, under {made.promise.neighbours} neighbours. "
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
    said += [
        "Numbers and times in cells are known by their cell, and not more finely.",
        *made.product.notes,
    ]
    return said


def write_report(made: Made) -> str:
    """The report as one HTML page without scripts, ready to print."""
    declared = made.declared
    parts = [
        f"<h1>{escape(declared.name)}</h1>",
        f"<p>{escape(KINDS[declared.kind].capitalize())}; of "
        f"<code>{escape(' '.join(declared.source.split()))}</code>.</p>",
        f"<p><b>Promise.</b> {escape(describe_promise(made))}</p>",
        _stages(made),
        *([_columns(made), _pairs(made)] if made.product.rows is not None else [_tables(made)]),
        "<h2>What must not be concluded</h2><ul>",
        *(f"<li>{escape(one)}</li>" for one in list_limits(made)),
        "</ul>",
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(declared.name)}'
        f"</title><style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;"
    "color:#1d1d1f;background:#fff}table{border-collapse:collapse;margin:.5rem 0}"
    "td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #e2e4e8}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
    ".m{fill:#0b62a4}.r{fill:none;stroke:#b3450b;stroke-width:2}.e{stroke:#55585d}"
    "section{break-inside:avoid}@media print{body{margin:0}}"
)


def _stages(made: Made) -> str:
    rows = "".join(
        f"<tr><td>{escape(stage.name)}</td><td>{len(made.product.measured.get(stage.name, []))}"
        f"</td><td>{escape(str(stage.spend.loss))}</td></tr>"
        for stage in made.stages
    )
    return f"<h2>What was measured</h2><table><tr><th>stage<th>draws<th>loss</tr>{rows}</table>"


def _columns(made: Made) -> str:
    """Each column: the noisy counts that were released, with error bars, and the rows' own."""
    drawn = []
    for levels, table in zip(made.levels, made.product.tables, strict=True):
        if table.noisy is None:
            continue
        one = np.zeros(table.values.shape)
        one[0] = 1.0
        spread = float(np.sqrt(table.variance_of(one))) * 1.96
        drawn.append(
            f"<section><h3>{escape(levels.name)}</h3>"
            f"{_chart(table.noisy, table.values, spread)}"
            f"<p>{levels.size} levels, from {escape(levels.describe(0))} to "
            f"{escape(levels.describe(levels.count - 1))}; ± {spread:.3g} a bar.</p></section>"
        )
    return (
        "<h2>Column by column</h2><p>Bars: the released noisy counts, with 95 % error bars. "
        "Line: the synthetic rows. The data themselves are in neither.</p>" + "".join(drawn)
    )


def _chart(noisy: np.ndarray, rows: np.ndarray, spread: float) -> str:
    """Bars with error bars, and a line of steps, in plain SVG; many levels are added up."""
    group = -(-len(noisy) // 120)
    starts = np.arange(0, len(noisy), group)
    bars, line = np.add.reduceat(noisy, starts), np.add.reduceat(rows, starts)
    error = spread * float(np.sqrt(group))
    top = max(float(np.max(bars)) + error, float(np.max(line)), 1.0)
    wide, high = 600.0, 140.0
    step = wide / len(bars)

    def y(value: float) -> float:
        return high - high * min(max(value, 0.0), top) / top

    shapes = []
    for place, bar in enumerate(bars):
        x = place * step
        shapes.append(
            f'<rect class="m" x="{x + step * 0.1:.1f}" y="{y(bar):.1f}" width="{step * 0.8:.1f}" '
            f'height="{high - y(bar):.1f}" opacity=".55"/><line class="e" x1="{x + step / 2:.1f}" '
            f'x2="{x + step / 2:.1f}" y1="{y(bar - error):.1f}" y2="{y(bar + error):.1f}"/>'
        )
    points = " ".join(
        f"{x:.1f},{y(value):.1f}"
        for place, value in enumerate(line)
        for x in (place * step, (place + 1) * step)
    )
    return (
        f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" role="img">{"".join(shapes)}'
        f'<polyline class="r" points="{points}"/></svg>'
    )


def _pairs(made: Made) -> str:
    """Each measured pair: how far the rows' table is from the released noisy one."""
    lines, scores = [], []
    rows = made.product.rows
    if rows is None:
        return ""
    for one in made.product.measured.get("pair tables", []):
        if not isinstance(one.query, Cells):
            continue
        view = one.query.view
        own = tabulate(rows, view)
        apart = float(np.abs(own - one.values).sum()) / 2 / max(len(rows), 1)
        noise = float(np.sqrt(one.query.noise.variance * 2 / np.pi)) * view.cells / 2 / len(rows)
        scores.append(apart)
        names = " × ".join(made.levels[column].name for column in view.columns)
        shape = " × ".join(map(str, view.shape))
        lines.append(
            f"<tr><td>{escape(names)}</td><td>{shape}</td><td>{apart:.3f}</td>"
            f"<td>{noise:.3f}</td></tr>"
        )
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
    rest = f"<p>Not measured together: {escape(', '.join(left))}.</p>" if left else ""
    return (
        "<h2>Pair by pair</h2><p>Total variation between the released noisy table and the rows; "
        "beside it, what noise alone would show. k-marginal score of the measured pairs against "
        f"their noisy tables, noise included: {score:.0f} of 1000.</p><table><tr><th>pair"
        f"<th>resolution<th>apart<th>noise alone</tr>{''.join(lines)}</table>{rest}"
    )


def _tables(made: Made) -> str:
    lines = []
    for table in made.product.tables:
        margins = cell_margins(table)
        lines.append(
            f"<tr><td>{escape(table.name)}</td><td>{table.values.size}</td>"
            f"<td>{float(np.mean(margins)):.4g}</td><td>{float(np.max(margins)):.4g}</td></tr>"
        )
    for text, value, margin in made.product.answers:
        lines.append(
            f"<tr><td><code>{escape(text)}</code></td><td>1</td><td>{value:,.6g}</td>"
            f"<td>± {margin:.4g}</td></tr>"
        )
    return (
        "<h2>Tables</h2><table><tr><th>table<th>cells<th>mean margin, 95 %<th>largest</tr>"
        f"{''.join(lines)}</table>"
    )


__all__ = ["write_card", "write_report"]
