"""Releases over HTTP: which there are, what each promises, and its answers, which are free."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from discreet.release.render import plain
from discreet.server import models
from discreet.server.auth import Anyone
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/datasets/{dataset}/releases", tags=["releases"], responses=ERRORS)

Release = Annotated[
    str, Path(max_length=63, pattern=r"^[a-z][a-z0-9_]*$", examples=["visits_2026"])
]


@router.get("", response_model=models.Releases)
async def list_releases(access: Anyone) -> Response:
    """The releases that were made: each is a public table, and questions about it are free."""

    def told() -> Response:
        found = access.dataset.curator.releases
        listed = []
        for name in found.names():
            said = found.certificate(name)
            declared = said["declared"]
            listed.append({"name": name, "kind": declared["kind"], "of": declared["of"]})
        return json_response({"releases": listed})

    return await access.dataset.explain(told, access.key_id)


@router.get("/{release}", response_model=dict[str, Any])
async def show_release(release: Release, access: Anyone) -> Response:
    """What a release was declared to be, promises and was charged: its certificate."""

    def told() -> Response:
        releases = access.dataset.curator.releases
        if release not in releases.names():
            releases.find(release)  # refuses, and says which there are
        return json_response(releases.certificate(release))

    return await access.dataset.explain(told, access.key_id)


@router.post("/{release}/ask", response_model=models.Told)
async def ask_release(release: Release, ask: models.AskRelease, access: Anyone) -> Response:
    """What a release says to a SELECT about it; free, each number with the margin it has."""

    def told() -> Response:
        synopsis = access.dataset.curator.releases.find(release)
        found = synopsis.ask(ask.question, confidence=str(ask.confidence)).to_json()
        return json_response(
            {**found, "rows": [[_cell(part) for part in r] for r in found["rows"]]}
        )

    return await access.dataset.explain(told, access.key_id)


def _cell(value: Any) -> Any:
    """A value that JSON has; what SQL makes beside those is written as text."""
    known = plain(value)
    return known if known is None or isinstance(known, bool | int | float | str) else str(known)
