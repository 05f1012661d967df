"""Runs and interviews, paid for once and asked many times; choices, reports and medians.

What reads data may take longer than its asker waits: then it is a work to come back for.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from discreet.curate.interviews import InterviewRun
from discreet.curate.runs import Run, Told, Verdicts
from discreet.server import models
from discreet.server.auth import Access, Anyone, Asker
from discreet.server.routes.later import LATER, Body, send_work, start_work
from discreet.server.sending import ERRORS, json_response, parse_id

router = APIRouter(prefix="/v1/datasets/{dataset}/runs", tags=["runs"], responses=ERRORS)

interviews = APIRouter(prefix="/v1/datasets/{dataset}/interviews", tags=["runs"], responses=ERRORS)

choosing = APIRouter(prefix="/v1/datasets/{dataset}", tags=["questions"], responses=ERRORS)

# --- runs ------------------------------------------------------------------------------------


@router.post("/explain", response_model=models.WatchExplanation)
async def explain(ask: models.ExplainWatch, access: Asker) -> Response:
    """What a run would cost, and how wrong its verdicts on a question could be; free."""
    settings = ask.settings()
    explained = access.dataset.curator.explain_watch
    return await _explain(
        access,
        lambda: explained(ask.question, **settings).to_json(ask.confidence, queries=ask.queries),
    )


@router.post("", status_code=201, response_model=models.Run)
async def watch(wanted: models.Watch, access: Asker) -> Response:
    """Pay for a run; the same words of the same analyst go on with one that is open."""
    run = await access.dataset.open_run(wanted, access.grant)
    return json_response(run_json(run), 201)


@router.get("/{id}", response_model=models.Run)
async def state(id: str, access: Anyone) -> Response:  # noqa: A002 (the word of the interface)
    """How a run stands; free.  What it told is told again by the number of its question."""
    found = await access.dataset.find_run(parse_id(id, "run"), access.grant)
    return json_response(run_json(found))


@router.post("/{id}/ask", response_model=models.Verdicts, responses=LATER)
async def ask(id: str, wanted: models.AskRun, access: Asker) -> Response:  # noqa: A002
    """Whether the number of a question is above its threshold; one verdict for each group.

    With ``number``, the how-manieth question of the run it is, a second try is told the same.
    With ``new`` it is asked of new data alone, for a timer: no verdict where there are none.
    """
    number = parse_id(id, "run")

    async def ask() -> Body:
        run, told = await access.dataset.ask_run(number, wanted, access.grant, key_id=access.key_id)
        return {
            **_tell(told),
            "asked": run.asked,
            "remaining": run.remaining,
            "ended": run.ended or None,
        }

    return await start_work(access, ask, wanted.wait_s)


@router.post("/{id}/ask_many", response_model=models.ToldMany, responses=LATER)
async def ask_many(id: str, wanted: models.AskRunMany, access: Asker) -> Response:  # noqa: A002
    """Which of many numbers are above, in order, until the run halts; read together if they can be.

    With ``number``, the how-manieth question of the run the first is, a second try is told the
    same.
    """
    number = parse_id(id, "run")

    async def ask_all() -> Body:
        run, told = await access.dataset.ask_run_many(
            number, wanted, access.grant, key_id=access.key_id
        )
        return {
            "told": [_tell(one) for one in told],
            "asked": run.asked,
            "remaining": run.remaining,
            "ended": run.ended or None,
        }

    return await start_work(access, ask_all, wanted.wait_s)


@router.delete("/{id}", response_model=models.Run)
async def close(id: str, access: Asker) -> Response:  # noqa: A002
    """End a run: its secret is erased, and nothing comes back."""
    found = await access.dataset.close_run(parse_id(id, "run"), access.grant)
    return json_response(run_json(found))


# --- interviews ------------------------------------------------------------------------------


@interviews.post("/explain", response_model=models.InterviewExplanation)
async def explain_interview(ask: models.ExplainInterview, access: Asker) -> Response:
    """What an interview would cost, and whether it would answer the questions; free."""
    settings = ask.settings()
    explained = access.dataset.curator.explain_interview
    return await _explain(
        access, lambda: explained(*ask.questions, **settings).to_json(ask.confidence)
    )


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


@interviews.post("/{id}/ask", response_model=models.InterviewReply, responses=LATER)
async def ask_interview(id: str, wanted: models.AskInterview, access: Asker) -> Response:  # noqa: A002
    """The number of a question, with noise; refused if one unit would move all by too much."""
    number = parse_id(id, "interview")

    async def ask() -> Body:
        run, told = await access.dataset.ask_interview(
            number, wanted, access.grant, key_id=access.key_id
        )
        state = {"asked": run.asked, "joint": float(run.joint), "ended": run.ended or None}
        return {**told.to_json(), **state}

    return await start_work(access, ask, wanted.wait_s)


@interviews.delete("/{id}", response_model=models.InterviewState)
async def close_interview(id: str, access: Asker) -> Response:  # noqa: A002
    """End an interview; nothing comes back."""
    found = await access.dataset.close_interview(parse_id(id, "interview"), access.grant)
    return json_response(run_json(found))


# --- private multiplicative weights ----------------------------------------------------------


@choosing.post("/learn/explain", response_model=models.LearnExplanation)
async def explain_learn(wanted: models.ExplainLearn, access: Asker) -> Response:
    """What such a run would cost, and within what its answers would be; free."""
    settings = wanted.settings()
    explained = access.dataset.curator.explain_learn
    return await _explain(access, lambda: explained(**settings).to_json())


@choosing.post("/learn", response_model=models.LearningState, responses=LATER)
async def learn(wanted: models.Learn, access: Asker) -> Response:
    """Pay for a run that answers counts from a histogram it corrects, and ask it.

    The same words of the same analyst go on with one that is open.
    """

    async def learn() -> Body:
        return await access.dataset.learn(wanted, access.grant, key_id=access.key_id)

    return await start_work(access, learn, wanted.wait_s)


# --- what is released once -------------------------------------------------------------------


@choosing.post("/choose", response_model=models.Chosen, responses=LATER)
async def choose(wanted: models.Choose, access: Asker) -> Response:
    """Which of some numbers is largest, at the sensitivity of one of them."""
    wanted.offer()  # refused now if it is none
    return await _release(access, access.dataset.choose, wanted)


@choosing.post("/choose/explain", response_model=models.ChoiceExplanation)
async def explain_choice(wanted: models.Choose, access: Asker) -> Response:
    """What a choice would cost, and how far below the best who is chosen may be; free."""
    amounts = wanted.offer().amounts()
    explained = access.dataset.curator.explain_choose
    return await _explain(
        access,
        lambda: explained(wanted.candidates, k=wanted.k, counts=wanted.counts, **amounts).to_json(),
    )


@choosing.post("/quality", response_model=models.QualityReport, responses=LATER)
async def quality(wanted: models.QualityChecks, access: Asker) -> Response:
    """How many units must be left out until each property holds; one charge for all."""
    return await _release(access, access.dataset.report_quality, wanted)


@choosing.post("/quality/explain", response_model=models.QualityExplanation)
async def explain_quality(wanted: models.QualityChecks, access: Asker) -> Response:
    """What such a report would cost, and how far off its numbers would be; free."""
    explained = access.dataset.curator.explain_quality
    return await _explain(
        access, lambda: explained(wanted.checks, epsilon=wanted.epsilon).to_json()
    )


@choosing.post("/median", response_model=models.RobustMedian, responses=LATER)
async def median(wanted: models.MedianWanted, access: Asker) -> Response:
    """A median with noise to fit the data, at a price that does not depend on it."""
    return await _release(access, access.dataset.release_median, wanted)


@choosing.post("/median/explain", response_model=models.MedianExplanation)
async def explain_median(wanted: models.MedianWanted, access: Asker) -> Response:
    """What such a median would cost; free."""
    settings = wanted.settings()
    explained = access.dataset.curator.explain_robust_median
    return await _explain(access, lambda: explained(wanted.question, **settings).to_json())


@choosing.get("/works/{id}", response_model=dict[str, Any], responses=LATER)
async def work(
    id: str,  # noqa: A002
    access: Asker,
    wait_s: Annotated[float, Query(ge=0, le=60, description="how long to wait")] = 0.0,
) -> Response:
    """What a request that became a work is answered with; 202 while it is under way."""
    return await send_work(access, access.dataset.works.find(id, access.grant.analyst), wait_s)


# --- what they share -------------------------------------------------------------------------


async def _explain(access: Access, explained: Callable[[], Body]) -> Response:
    """Say what is free, within the limits of what is paid for."""
    return await access.dataset.explain(lambda: json_response(explained()), access.key_id)


async def _release(
    access: Access, release: Callable[..., Coroutine[Any, Any, Any]], wanted: models.Waited
) -> Response:
    async def send() -> Body:
        found = await release(wanted, access.grant, key_id=access.key_id)
        return {**found.to_json(), "id": str(found.id)}

    return await start_work(access, send, wanted.wait_s)


def _tell(told: Told | None) -> Body:
    """What was told of one question, as it is sent."""
    if told is None:
        return {"verdicts": [], "grouped": False}
    return {
        "verdicts": [verdict.to_json() for verdict in told],
        "grouped": isinstance(told, Verdicts),
    }


def run_json(run: Run | InterviewRun) -> Body:
    """A run as it is sent."""
    return {**run.to_json(), "id": str(run.id)}
