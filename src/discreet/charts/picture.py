"""A specification, and what can be made of it: JSON, SVG on light or dark paper, Altair."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import altair

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
"""The grammar's name; nothing is fetched from there."""

Paper = Literal["light", "dark"]

# Okabe and Ito's colours, which the colour-blind can tell apart; lightened for dark paper.
COLOURS: dict[Paper, tuple[str, ...]] = {
    "light": ("#0b62a4", "#b3450b", "#00785a", "#8a5a00", "#9c3b78", "#444444"),
    "dark": ("#6db7ee", "#ff9e66", "#4fd0a5", "#f0c04f", "#e79cc6", "#cccccc"),
}
_INK = {"light": "#1d1d1f", "dark": "#f1f2f4"}
_SOFT = {"light": "#55585d", "dark": "#b4b8bf"}
_GRID = {"light": "#e2e4e8", "dark": "#33373e"}
_PAPER = {"light": "#ffffff", "dark": "#1b212b"}
_SMALL = 12
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as a Vega-Lite ``spec``, without colours of paper and ink; see :meth:`on`."""

    spec: Mapping[str, Any]

    @property
    def title(self) -> str:
        """What is shown."""
        words = self.spec["title"]["text"]  # in lines, where the picture is narrow
        return str(words) if isinstance(words, str) else " ".join(words)

    @property
    def description(self) -> str:
        """The picture in words, for people who hear it."""
        return str(self.spec["description"])

    def on(self, paper: Paper) -> dict[str, Any]:
        """The whole specification, in the colours of light or dark ``paper``."""
        if paper not in COLOURS:
            raise InvalidParameter(
                "P5",
                f"paper is {paper!r}.",
                why="a picture is drawn for light or for dark paper.",
                fix='write paper="light" or paper="dark".',
            )
        ink, soft, grid = _INK[paper], _SOFT[paper], _GRID[paper]
        words: dict[str, Any] = {"labelColor": soft, "titleColor": ink, "labelFont": _FONT}
        words |= {"titleFont": _FONT, "labelFontSize": _SMALL, "titleFontSize": _SMALL}
        config = {
            "font": _FONT,
            "background": _PAPER[paper],
            "view": {"stroke": "transparent"},
            "axis": {**words, "gridColor": grid, "domainColor": soft, "tickColor": soft},
            "legend": words,
            "header": words,
            "title": {"color": ink, "subtitleColor": soft, "anchor": "start", "fontSize": 15},
            "range": {"category": list(COLOURS[paper])},
            "mark": {"color": COLOURS[paper][0]},
            "rule": {"color": ink},
            "tick": {"color": ink},
            "text": {"color": ink},
        }
        return {"$schema": SCHEMA, **self.spec, "config": config}

    def json(self, *, paper: Paper = "light") -> str:
        """The specification as text, in the colours of light or dark ``paper``."""
        return json.dumps(self.on(paper), ensure_ascii=False)

    def svg(self, *, paper: Paper = "light") -> str:
        """The picture on ``paper`` as the text of an SVG file, drawn without browser or request."""
        try:
            import vl_convert
        except ImportError as error:
            raise _missing_refusal("vl-convert-python") from error
        drawn = str(vl_convert.vegalite_to_svg(self.on(paper), vl_version="5.21"))
        return drawn.replace("<svg ", '<svg role="img" ', 1)

    def altair(self) -> altair.TopLevelMixin:
        """The picture as an Altair chart, to be changed and shown by a notebook."""
        try:
            import altair
        except ImportError as error:
            raise _missing_refusal("altair") from error
        chart: altair.TopLevelMixin = altair.Chart.from_dict(self.on("light"))
        return chart

    def save(self, path: str | Path, *, paper: Paper = "light") -> None:
        """Write the picture to ``path``: SVG, or the specification if it ends in ``.json``.

        ``paper`` is "light" or "dark".
        """
        target = check_target(path)
        text = self.svg(paper=paper) if target.suffix == ".svg" else self.json(paper=paper)
        target.write_text(text, encoding="utf-8")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """What a notebook shows: the specification, or words where it cannot."""
        return {"application/vnd.vegalite.v5+json": self.on("light"), "text/plain": self.title}


def check_target(path: str | Path) -> Path:
    """Where a picture is to be written; refused before anything is paid for it."""
    target = Path(path)
    if target.suffix not in (".svg", ".json"):
        raise InvalidParameter(
            "P9",
            f"a picture cannot be written to {target.name!r}.",
            why="pictures are SVG, or their specification as JSON.",
            fix="let the file's name end in .svg or .json.",
        )
    if not target.absolute().parent.is_dir():
        raise InvalidParameter(
            "P9",
            f"there is no folder for {target.name!r}.",
            why="a picture is written where it is said, and makes no folders.",
            fix="make the folder first, or choose another.",
        )
    if target.suffix == ".svg" and find_spec("vl_convert") is None:
        raise _missing_refusal("vl-convert-python")
    return target


def _missing_refusal(package: str) -> InvalidParameter:
    return InvalidParameter(
        "P8",
        f"{package} is not installed.",
        why="pictures are drawn by it.",
        fix='pip install "discreet[plots]".' if package == "altair" else f"pip install {package}.",
    )
