"""Runs, opened and paid for once, asked many times, ended; and choices among questions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from discreet.curate.runs import Run, Verdict
from discreet.server import models
from discreet.server.auth import Anyone, Asker
from discreet.server.sending import ERRORS, json_response, parse_id

router = APIRouter(prefix="/v1/datasets/{dataset}/runs", tags=["runs"], responses=ERRORS)

choosing = APIRouter(prefix="/v1/datasets/{dataset}", tags=["questions"], responses=ERRORS)


@router.post("/explain", response_model=models.WatchExplanation)
async def explain(ask: models.ExplainWatch, access: Asker) -> Response:
    """What a run would cost, and how wrong its verdicts on a question could be; free."""
    settings = ask.settings()

    def explained() -> Response:
        found = access.dataset.curator.explain_watch(ask.question, **settings)
        return json_response(found.to_json(ask.confidence, queries=ask.queries))

    return await access.dataset.explain(explained, access.key_id)


@router.post("", status_code=201, response_model=models.Run)
async def watch(wanted: models.Watch, access: Asker) -> Response:
    """Pay for a run; the same words of the same analyst go on with one that is open."""
    run = await access.dataset.open_run(wanted.settings(), wanted.name, access.grant)
    return json_response(run_json(run), 201)


@router.get("/{id}", response_model=models.Run)
async def state(id: str, access: Anyone) -> Response:  # noqa: A002 (the word of the interface)
    """How a run stands, and what it has told last; free."""
    found = await access.dataset.find_run(parse_id(id, "run"), access.grant)
    return json_response(run_json(found))


@router.post("/{id}/ask", response_model=models.Verdicts)
async def ask(id: str, wanted: models.AskRun, access: Asker) -> Response:  # noqa: A002
    """Whether the number of a question is above its threshold; one verdict for each group.

    With ``number``, the how-manieth question of the run it is, a second try is told the same.
    """
    run, told = await access.dataset.ask_run(
        parse_id(id, "run"), wanted, access.grant, key_id=access.key_id
    )
    verdicts = [told] if isinstance(told, Verdict) else list(told)
    body: dict[str, Any] = {
        "verdicts": [verdict.to_json() for verdict in verdicts],
        "grouped": not isinstance(told, Verdict),
        "asked": run.asked,
        "remaining": run.remaining,
        "ended": run.ended or None,
    }
    return json_response(body)


@router.delete("/{id}", response_model=models.Run)
async def close(id: str, access: Asker) -> Response:  # noqa: A002
    """End a run: its secret is erased, and nothing comes back."""
    found = await access.dataset.close_run(parse_id(id, "run"), access.grant)
    return json_response(run_json(found))


@choosing.post("/choose", response_model=models.Chosen)
async def choose(wanted: models.Choose, access: Asker) -> Response:
    """Which of some numbers is largest, at the sensitivity of one of them."""
    wanted.offer()  # refused now if it is none
    found = await access.dataset.choose(wanted, access.grant, key_id=access.key_id)
    return json_response({**found.to_json(), "id": str(found.id)})


def run_json(run: Run) -> dict[str, Any]:
    """A run as it is sent."""
    return {**run.to_json(), "id": str(run.id)}
