"""Releases over HTTP: made by curators; listed, asked and downloaded by whoever has a key."""

from __future__ import annotations

from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from discreet.publication.packing import pack_folder
from discreet.release.render import plain
from discreet.server import models
from discreet.server.auth import Anyone, Curating
from discreet.server.routes.later import LATER, start_work
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/datasets/{dataset}/releases", tags=["releases"], responses=ERRORS)

Release = Annotated[
    str, Path(max_length=63, pattern=r"^[a-z][a-z0-9_]*$", examples=["visits_2026"])
]


@router.get("", response_model=models.Releases)
async def list_releases(access: Anyone) -> Response:
    """The releases that were made: each is a public table, and questions about it are free."""

    def tell() -> Response:
        found = access.dataset.curator.releases
        listed = []
        for name in found.names():
            said = found.certificate(name)
            declared = said["declared"]
            listed.append({"name": name, "kind": declared["kind"], "of": declared["of"]})
        return json_response({"releases": listed})

    return await access.dataset.explain(tell, access.key_id)


@router.post("/plan", response_model=models.ReleasePlan)
async def plan_release(wanted: models.MakeRelease, access: Curating) -> Response:
    """What a release would count and cost, stage by stage; free."""
    declared = wanted.declare()

    def plan() -> Response:
        return json_response(access.dataset.curator.releases.plan(declared).to_json())

    return await access.dataset.explain(plan, access.key_id)


@router.post("/plan_all", response_model=models.ReleasesPlan)
async def plan_releases(wanted: models.PlanReleases, access: Curating) -> Response:
    """The best division of a plan's price, or the least price for its targets; free."""

    def divide() -> Response:
        division = access.dataset.curator.releases.divide(wanted.agenda())
        return json_response(division.to_json())

    return await access.dataset.explain(divide, access.key_id)


@router.post("/make_all", response_model=models.MadeReleases, responses=LATER)
async def make_releases(wanted: models.MakeReleases, access: Curating) -> Response:
    """Charge all that a plan names at once, and make it; sent again it goes on, and is free."""

    async def make() -> dict[str, Any]:
        found = await access.dataset.make_releases(wanted, access.grant, key_id=access.key_id)
        return {"releases": found}

    return await start_work(access, make, wanted.wait_s)


@router.post("/folder", response_class=Response)
async def hand_over_releases(wanted: models.HandOver, access: Curating) -> Response:
    """Some releases in one folder to hand over, as a ZIP, with an index and checksums; free."""

    def pack() -> Response:
        with TemporaryDirectory() as scratch:
            place = FilePath(scratch) / "publication"
            access.dataset.curator.releases.hand_over_all(wanted.releases, place)
            return _send_packed(place)

    return await access.dataset.explain(pack, access.key_id)


@router.post("", status_code=201, response_model=dict[str, Any])
async def make_release(wanted: models.MakeRelease, access: Curating) -> Response:
    """Charge and make a release, all of it; declared again it costs nothing more."""
    found = await access.dataset.make_release(wanted, access.grant, key_id=access.key_id)
    return json_response(found, 201)


@router.post("/{release}/step", response_model=dict[str, Any])
async def step_release(release: Release, wanted: models.StepRelease, access: Curating) -> Response:
    """Publish the next step of a counter, on the data as they are now; it is paid for.

    With ``number``, which step it is, a second try publishes no other one.
    """
    step = access.dataset.step_release
    found = await step(release, wanted.number, access.grant, key_id=access.key_id)
    return json_response(found)


@router.get("/{release}/card", response_model=models.ReleaseCard)
async def show_card(release: Release, access: Anyone) -> Response:
    """What a release is and promises, in words."""

    def tell() -> Response:
        card = access.dataset.curator.releases.card(release)
        return json_response({"name": release, "card": card})

    return await access.dataset.explain(tell, access.key_id)


@router.get("/{release}/folder", response_class=Response)
async def send_folder(release: Release, access: Anyone) -> Response:
    """The folder of a release, as a ZIP: data, measurements, certificate, card, report."""

    def pack() -> Response:
        return _send_packed(access.dataset.curator.releases.folder_of(release))

    return await access.dataset.explain(pack, access.key_id)


@router.get("/{release}", response_model=dict[str, Any])
async def show_release(release: Release, access: Anyone) -> Response:
    """What a release was declared to be, promises and was charged: its certificate."""

    def tell() -> Response:
        return json_response(access.dataset.curator.releases.certificate(release))

    return await access.dataset.explain(tell, access.key_id)


@router.post("/{release}/ask", response_model=models.Told)
async def ask_release(release: Release, ask: models.AskRelease, access: Anyone) -> Response:
    """What a release says to a SELECT about it; free, each number with the margin it has."""

    def tell() -> Response:
        synopsis = access.dataset.curator.releases.find(release)
        found = synopsis.ask(ask.question, confidence=str(ask.confidence)).to_json()
        return json_response(
            {**found, "rows": [[write_cell(part) for part in r] for r in found["rows"]]}
        )

    return await access.dataset.explain(tell, access.key_id)


def _send_packed(folder: FilePath) -> Response:
    name = {"content-disposition": f'attachment; filename="{folder.name}.zip"'}
    return Response(pack_folder(folder), headers=name, media_type="application/zip")


def write_cell(value: Any) -> Any:
    """A value that JSON has; what SQL makes beside those is written as text."""
    known = plain(value)
    return known if known is None or isinstance(known, bool | int | float | str) else str(known)
