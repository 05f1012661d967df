"""Runs and interviews, paid for once and asked many times; choices, reports and medians."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from discreet.curate.interviews import InterviewRun
from discreet.curate.runs import Run, Verdict
from discreet.server import models
from discreet.server.auth import Anyone, Asker
from discreet.server.sending import ERRORS, json_response, parse_id

router = APIRouter(prefix="/v1/datasets/{dataset}/runs", tags=["runs"], responses=ERRORS)

interviews = APIRouter(prefix="/v1/datasets/{dataset}/interviews", tags=["runs"], responses=ERRORS)

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


@choosing.post("/choose/explain", response_model=models.ChoiceExplanation)
async def explain_choice(wanted: models.Choose, access: Asker) -> Response:
    """What a choice would cost, and how far below the best who is chosen may be; free."""
    offer = wanted.offer()

    def explained() -> Response:
        found = access.dataset.curator.explain_choose(
            wanted.candidates, k=wanted.k, counts=wanted.counts, **offer.amounts()
        )
        return json_response(found.to_json())

    return await access.dataset.explain(explained, access.key_id)


@choosing.post("/quality", response_model=models.QualityReport)
async def quality(wanted: models.QualityChecks, access: Asker) -> Response:
    """How many units must be left out until each property holds; one charge for all."""
    found = await access.dataset.report_quality(wanted, access.grant, key_id=access.key_id)
    return json_response({**found.to_json(), "id": str(found.id)})


@choosing.post("/quality/explain", response_model=models.QualityExplanation)
async def explain_quality(wanted: models.QualityChecks, access: Asker) -> Response:
    """What such a report would cost, and how far off its numbers would be; free."""

    def explained() -> Response:
        found = access.dataset.curator.explain_quality(wanted.checks, epsilon=wanted.epsilon)
        return json_response(found.to_json())

    return await access.dataset.explain(explained, access.key_id)


@choosing.post("/median", response_model=models.RobustMedian)
async def median(wanted: models.MedianWanted, access: Asker) -> Response:
    """A median with noise to fit the data, at a price that does not depend on it."""
    found = await access.dataset.release_median(wanted, access.grant, key_id=access.key_id)
    return json_response({**found.to_json(), "id": str(found.id)})


@choosing.post("/median/explain", response_model=models.MedianExplanation)
async def explain_median(wanted: models.MedianWanted, access: Asker) -> Response:
    """What such a median would cost; free."""
    settings = wanted.settings()

    def explained() -> Response:
        found = access.dataset.curator.explain_robust_median(wanted.question, **settings)
        return json_response(found.to_json())

    return await access.dataset.explain(explained, access.key_id)


@interviews.post("/explain", response_model=models.InterviewExplanation)
async def explain_interview(ask: models.ExplainInterview, access: Asker) -> Response:
    """What an interview would cost, and whether it would answer the questions; free."""
    settings = ask.settings()

    def explained() -> Response:
        found = access.dataset.curator.explain_interview(*ask.questions, **settings)
        return json_response(found.to_json(ask.confidence))

    return await access.dataset.explain(explained, access.key_id)


@interviews.post("", status_code=201, response_model=models.InterviewState)
async def interview(wanted: models.Interview, access: Asker) -> Response:
    """Pay for an interview; the same words of the same analyst go on with one that is open."""
    run = await access.dataset.open_interview(wanted.settings(), wanted.name, access.grant)
    return json_response(run_json(run), 201)


@interviews.get("/{id}", response_model=models.InterviewState)
async def interview_state(id: str, access: Anyone) -> Response:  # noqa: A002
    """How an interview stands; free."""
    found = await access.dataset.find_interview(parse_id(id, "interview"), access.grant)
    return json_response(run_json(found))


@interviews.post("/{id}/ask", response_model=models.InterviewReply)
async def ask_interview(id: str, wanted: models.AskInterview, access: Asker) -> Response:  # noqa: A002
    """The number of a question, with noise; refused if one unit would move all by too much."""
    run, told = await access.dataset.ask_interview(
        parse_id(id, "interview"), wanted, access.grant, key_id=access.key_id
    )
    state = {"asked": run.asked, "joint": float(run.joint), "ended": run.ended or None}
    return json_response({**told.to_json(), **state})


@interviews.delete("/{id}", response_model=models.InterviewState)
async def close_interview(id: str, access: Asker) -> Response:  # noqa: A002
    """End an interview; nothing comes back."""
    found = await access.dataset.close_interview(parse_id(id, "interview"), access.grant)
    return json_response(run_json(found))


def run_json(run: Run | InterviewRun) -> dict[str, Any]:
    """A run as it is sent."""
    return {**run.to_json(), "id": str(run.id)}
