"""What needs no key: the page, and what an epsilon means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response

from discreet.accounting.meaning import Meaning
from discreet.accounting.neighbours import Neighbours
from discreet.server.auth import count_visit
from discreet.server.refusals import unknown_route
from discreet.server.sending import ERRORS, json_response

STATIC = Path(__file__).parent.parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
router = APIRouter(responses=ERRORS)

Epsilon = Annotated[str, Query(max_length=50, examples=["0.5"], description="what is lost")]
Delta = Annotated[str, Query(max_length=50, examples=["1e-9"], description="the chance of more")]
Group = Annotated[int, Query(ge=1, le=1000, description="how many people together")]
Apart = Annotated[Neighbours, Query(description="which data sets the epsilon was stated for")]


@router.get("/v1/meaning", tags=["meaning"], dependencies=[Depends(count_visit)])
async def meaning(
    epsilon: Epsilon = "1",
    delta: Delta = "0",
    group: Group = 1,
    neighbours: Apart = Neighbours.ADD_REMOVE,
) -> Response:
    """What (epsilon, delta) promises to a person, in numbers and in words."""

    def tell() -> dict[str, object]:
        # Made exact there.
        promise = Meaning(epsilon, delta, group, neighbours)  # type: ignore[arg-type]
        return {**promise.to_json(), "table": [list(row) for row in promise.table()]}

    return json_response(await run_in_threadpool(tell))


@router.get(
    "/v1/meaning.svg",
    tags=["meaning"],
    dependencies=[Depends(count_visit)],
    response_class=Response,
    responses={200: {"content": {"image/svg+xml": {}}, "description": "two charts"}},
)
async def picture(
    epsilon: Epsilon = "1",
    delta: Delta = "0",
    group: Group = 1,
    neighbours: Apart = Neighbours.ADD_REMOVE,
) -> Response:
    """The same as a picture."""
    promise = Meaning(epsilon, delta, group, neighbours)  # type: ignore[arg-type]
    # A picture of its own may style itself; it can load nothing and run nothing.
    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    drawn = await run_in_threadpool(promise.svg)
    return Response(drawn, media_type="image/svg+xml", headers=policy)


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """The page."""
    return _file("index.html")


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """The interface, as a page that loads nothing from elsewhere."""
    return _file("docs.html")


@router.get("/static/{name}", include_in_schema=False)
async def static(name: str) -> Response:
    """A file of the page."""
    return _file(name)


def _file(name: str) -> Response:
    path = STATIC / name
    if path.parent != STATIC or path.suffix not in _TYPES or not path.is_file():
        unknown_route(f"/static/{name}")
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(path, media_type=_TYPES[path.suffix], headers=headers)
