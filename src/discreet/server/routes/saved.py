"""Saved questions: listed, kept, removed; always one's own."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger.keys import nothing_here
from discreet.server import models
from discreet.server.auth import Asker
from discreet.server.sending import ERRORS, json_response, parse_id

router = APIRouter(prefix="/v1/datasets/{dataset}/saved", tags=["saved"], responses=ERRORS)


@router.get("", response_model=models.SavedList)
async def list_saved(access: Asker) -> Response:
    """The questions that the caller keeps."""
    found = await run_in_threadpool(access.dataset.saved.list, access.grant.analyst)
    return json_response({"saved": [one.to_json() for one in found]})


@router.post("", status_code=201, response_model=models.Saved)
async def keep(new: models.NewSaved, access: Asker) -> Response:
    """Keep a question under a name; one of the same name in the same folder is replaced."""
    kept = await run_in_threadpool(
        access.dataset.saved.keep,
        access.grant.analyst,
        new.folder,
        new.name,
        new.question,
        new.offer.model_dump(exclude_none=True),
    )
    return json_response(kept.to_json(), 201)


@router.delete("/{id}", status_code=204)
async def remove(id: str, access: Asker) -> Response:  # noqa: A002 (the word of the interface)
    """Keep a question no longer; its answers stay."""
    number = parse_id(id, "saved question")
    if not await run_in_threadpool(access.dataset.saved.remove, access.grant.analyst, number):
        raise nothing_here("saved question", str(number))
    return Response(status_code=204)
