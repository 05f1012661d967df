"""Pictures that are asked for over HTTP: how wide, on which paper; drawn one at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Depends, Query
from starlette.responses import Response

from discreet.charts import Picture, fit, lines

SVG = "image/svg+xml"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A picture may style itself; it can load nothing and run nothing."""
_ONE_AT_A_TIME = threading.Lock()
"""The renderer takes a processor for a moment: whoever wants pictures waits for each other."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a picture is wanted."""

    paper: Annotated[Literal["light", "dark"], Query(description="of a picture")] = "light"
    width: Annotated[int | None, Query(ge=200, le=2000, description="pixels in all")] = None
    y: Annotated[str | None, Query(max_length=200, description="the column that is drawn")] = None

    def render(self, picture: Picture) -> bytes:
        """The picture as SVG."""
        with _ONE_AT_A_TIME:
            return picture.svg(paper=self.paper).encode()

    def key(self) -> str:
        """All that the text of a picture depends on, beside what is drawn."""
        return f"{SVG};{self.paper};{self.width};{self.y}"


Wanted = Annotated[Drawing, Depends()]


def picture_headers(picture: Picture | None = None) -> dict[str, str]:
    """The headers of a picture; the words that say what it shows are among them."""
    told = {"Content-Security-Policy": _POLICY}
    if picture is not None:
        told["Discreet-Description"] = quote(picture.description[:1000])
    return told


def picture_response(picture: Picture, drawing: Drawing) -> Response:
    """A picture as it is sent."""
    fitted = picture if drawing.width is None else fit(picture, drawing.width)
    return Response(drawing.render(fitted), media_type=SVG, headers=picture_headers(picture))


def draw_spending(told: dict[str, Any]) -> Picture:
    """The share of the budget that was spent, over time, from zero."""
    points = [{"at": told["since"], "share": 0.0}] if told["since"] else []
    line = [(_milliseconds(p["at"]), float(p["share"])) for p in [*points, *told["points"]]]
    now = datetime.now(UTC).timestamp() * 1000
    if line and now > line[-1][0]:
        line.append((now, line[-1][1]))
    named: list[Any] = [("spent", line)]
    return lines(
        named,
        x="",
        y="spent",
        title="Share of the budget that is spent",
        percent=True,
        x_scale="time",
    )


def _milliseconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() * 1000


__all__ = ["SVG", "Drawing", "Wanted", "draw_spending", "picture_headers", "picture_response"]
