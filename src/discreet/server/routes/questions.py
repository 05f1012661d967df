"""Questions: explained, asked, waited for, answered."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.exact.numbers import proportion
from discreet.publication.told import Told
from discreet.release import record
from discreet.release.amounts import loss_json
from discreet.release.answer import Answer
from discreet.release.files import answer_parquet, answer_workbook
from discreet.release.render import answer_json, arrow_stream
from discreet.server import models
from discreet.server.again import find_told, keep_answer, keep_told
from discreet.server.auth import Access, Anyone, Asker, Server
from discreet.server.cache import CacheKey
from discreet.server.curve import draw_curve, trace_accuracy
from discreet.server.drawing import SVG, Drawing, Wanted, picture_headers, picture_response
from discreet.server.jobs import Status
from discreet.server.refusals import Unreadable
from discreet.server.routes.releases import write_cell
from discreet.server.sending import (
    ARROW,
    CSV,
    ERRORS,
    PARQUET,
    RECORD,
    WORKBOOK,
    encode_json,
    json_response,
    negotiate,
    parse_id,
)

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["questions"], responses=ERRORS)

Retry = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=128,
        pattern=r"^[\x21-\x7e]+$",
        description="the same for every try of one question: no try after the first is paid",
    ),
]
Confidence = Annotated[
    str, Query(max_length=20, examples=["0.95"], description="how surely margins hold")
]
_OTHERS = (RECORD, CSV, ARROW, PARQUET, WORKBOOK, SVG)
"""The forms of an answer beside JSON."""
_FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "the answer",
        "content": {CSV: {"schema": {"type": "string"}}}
        | {form: {} for form in _OTHERS if form != CSV},
    }
}


@router.post(
    "/explain",
    response_model=models.Explanation | models.FreeExplanation,
    responses={200: {"content": {RECORD: {}}, "description": "price and margins; free"}},
)
async def explain(request: Request, ask: models.Ask, access: Asker, server: Server) -> Response:
    """What a question would cost and how good its answer would be; free.

    Of a release or a survey it says that it is free, and what its margins promise.
    """
    exact = negotiate(request, "application/json", RECORD) == RECORD
    if not exact:
        told = await access.dataset.tell(ask.question, str(ask.confidence), access.key_id)
        if told is not None:
            return json_response(_explain_told(ask.question, told))
    explained = _explain_exactly if exact else _explain
    sent = await access.dataset.explain(lambda: explained(ask, access), access.key_id)
    if not exact:
        server.read.keep(request, access.dataset.name, ask)
    return sent


def _explain_told(question: str, told: Told) -> dict[str, Any]:
    """What is said of a question about a release or a survey before it is asked."""
    said = {"question": question, "free": True, "outcome": "public"}
    return {**said, "columns": list(told.columns), "notes": list(told.notes)}


def _explain(ask: models.Ask, access: Access) -> Response:
    key, text = find_told(access.dataset, access.grant, ask, "explain")
    if text is None:
        text = encode_json(access.dataset.quote(ask, access.grant).to_json(ask.confidence))
        keep_told(access.dataset, access.grant, ask, "explain", key, text)
    return Response(text, media_type="application/json")


def _explain_exactly(ask: models.Ask, access: Access) -> Response:
    quote = access.dataset.quote(ask, access.grant)
    body = {
        "explanation": record.to_json(quote.explanation),
        "outcome": quote.outcome,
        "refusal": None if quote.refusal is None else quote.refusal.to_json(),
        "difference": None if quote.difference is None else list(quote.difference.to_units()),
        "choices": [
            [list(one.charge.to_units()), [list(margin) for margin in one.margins], one.source]
            for one in quote.choices
        ],
    }
    return Response(encode_json(body), media_type=RECORD)


@router.post(
    "/curve",
    response_model=models.Curve,
    responses={200: {"content": {SVG: {}}, "description": "margins for other prices; free"}},
)
async def curve(request: Request, ask: models.Ask, access: Asker, drawing: Wanted) -> Response:
    """How the margins of a question depend on its price, before anything is paid; free."""
    form = negotiate(request, "application/json", SVG)

    def trace() -> Response:
        told = trace_accuracy(access.dataset.curator, ask)
        if form == SVG:
            return picture_response(draw_curve(told), drawing)
        return json_response(told)

    return await access.dataset.explain(trace, access.key_id)


@router.post(
    "/ask",
    response_model=models.Answer | models.Told,
    responses={**_FORMS, 202: {"model": models.Job, "description": "not answered yet: a job"}},
)
async def ask(
    request: Request,
    ask: models.AskNow,
    access: Asker,
    drawing: Wanted,
    server: Server,
    idempotency_key: Retry = None,
) -> Response:
    """The answer; or, after ``wait_s``, a job to come back for.

    What is asked of a release or a survey is free, and told as by a route of its own.
    """
    form = negotiate(request, "application/json", *_OTHERS)
    ask.offer()  # refused now if it is none
    told = await access.dataset.tell(ask.question, str(ask.confidence), access.key_id)
    if told is not None:
        return await run_in_threadpool(_send_told, told, form)
    key = None
    if form == "application/json" and idempotency_key is None:
        key, text = await run_in_threadpool(find_told, access.dataset, access.grant, ask, "ask")
        if text is not None:
            access.dataset.count_replay()
            server.read.keep(request, access.dataset.name, ask)
            return Response(text, media_type=form)
    outcome = await access.dataset.ask(
        ask, access.grant, key_id=access.key_id, retry=idempotency_key, wait_s=ask.wait_s
    )
    if isinstance(outcome, Status):
        url = f"{router.prefix.format(dataset=access.dataset.name)}/jobs/{outcome.id}"
        return json_response(_job_json(outcome), 202, headers={"Location": url})
    confidence = str(ask.confidence)
    sent = await run_in_threadpool(_send_answer, outcome, access, form, confidence, drawing)
    if key is not None and outcome.replayed:
        await run_in_threadpool(keep_answer, access.dataset, access.grant, ask, key, outcome)
    return sent


@router.post(
    "/ask_all",
    response_model=models.AnswersTogether,
    responses={200: {"content": {RECORD: {}}, "description": "an answer for each question"}},
)
async def ask_all(
    request: Request, ask: models.AskAll, access: Asker, idempotency_key: Retry = None
) -> Response:
    """Several questions as one release: one price, one charge, an answer for each."""
    exact = negotiate(request, "application/json", RECORD) == RECORD
    answers = await access.dataset.ask_all(
        ask, access.grant, key_id=access.key_id, retry=idempotency_key
    )
    return await run_in_threadpool(_send_all, answers, access, exact, str(ask.confidence))


def _send_all(answers: list[Answer], access: Access, exact: bool, confidence: str) -> Response:
    number, replayed = answers[0].id or 0, answers[0].replayed
    if exact:
        parts = [
            {"answer": json.loads(record.answer_to_bytes(answer)), "said": list(answer.said)}
            for answer in answers
        ]
        body = {"id": str(number), "replayed": replayed, "answers": parts}
        return Response(encode_json(body), media_type=RECORD)
    entry = access.dataset.account.entry(number)
    if entry is None or entry.loss is None:
        raise LookupError(number)  # it was charged before it was answered
    at, name = entry.at.isoformat(), access.dataset.name
    shown = [answer_json(answer, confidence, dataset=name, at=at) for answer in answers]
    price = loss_json(entry.loss)
    return json_response(
        {"id": str(number), "replayed": replayed, "price": price, "answers": shown}
    )


def _send_told(told: Told, form: str) -> Response:
    """What a release or a survey says, in the forms that it has."""
    if form == "application/json":
        said = told.to_json()
        return json_response({**said, "rows": [[write_cell(v) for v in r] for r in said["rows"]]})
    if form == RECORD:
        return Response(encode_json({"Told": told.to_record()}), media_type=RECORD)
    if form == CSV:
        return Response(told.to_csv(), media_type=CSV)
    if form == ARROW:
        return Response(arrow_stream(told.to_arrow(told.confidence)), media_type=ARROW)
    raise Unreadable(
        "an answer of a release or a survey is not told in this form.",
        f"accept application/json, {CSV} or {ARROW}.",
        status=406,
    )


def _send_answer(
    answer: Answer, access: Access, form: str, confidence: str, drawing: Drawing
) -> Response:
    """An answer in the form that is wanted; a text that was sent before is sent again."""
    if form == SVG:
        return _send_picture(answer, access, confidence, drawing)
    key = CacheKey(answer.id or 0, answer.text, form, confidence)
    lasting = answer.replayed and answer.id is not None
    text = access.dataset.cache.find(key) if lasting else None
    if text is None:
        text = _render(answer, access, form, confidence)
        if lasting:  # a new one is shown as new this once
            access.dataset.cache.keep(key, text)
    return Response(text, media_type=form, headers=_headers(answer, form))


def _send_picture(answer: Answer, access: Access, confidence: str, drawing: Drawing) -> Response:
    picture = answer.draw(drawing.y, confidence=confidence, wide=drawing.width)
    key = CacheKey(answer.id or 0, answer.text, drawing.key(), confidence)
    text = None if answer.id is None else access.dataset.cache.find(key)
    if text is None:
        text = drawing.render(picture)
        if answer.id is not None:
            access.dataset.cache.keep(key, text)
    return Response(text, media_type=SVG, headers=picture_headers(picture))


@router.get("/jobs/{id}", response_model=models.Job)
async def job(
    id: str,  # noqa: A002 (the word of the interface)
    access: Anyone,
    wait_s: Annotated[float, Query(ge=0, le=60, description="how long to wait")] = 0.0,
) -> Response:
    """Where a question stands; its duration so far and at most, which are public."""
    number = parse_id(id, "job")
    found = await run_in_threadpool(access.dataset.job_status, number, access.grant)
    running = access.dataset.jobs.find(number)
    if running is not None and wait_s:
        await running.over(wait_s)
        found = await run_in_threadpool(access.dataset.job_status, number, access.grant)
    return json_response(_job_json(found))


def _job_json(status: Status) -> dict[str, object]:
    over = status.state in ("done", "failed")
    share = 1.0 if over else min(1.0, status.elapsed_s / (status.limit_s or 1.0))
    return {
        "id": str(status.id),
        "state": status.state,
        "position": status.position,
        "elapsed_s": round(status.elapsed_s, 1),
        "limit_s": status.limit_s,
        "progress": round(share, 3),
        "answer": str(status.id) if status.state == "done" else None,
        "again": status.again,
    }


@router.get("/answers/{id}", response_model=models.Answer, responses=_FORMS)
async def answer(
    request: Request,
    id: str,  # noqa: A002
    access: Anyone,
    drawing: Wanted,
    confidence: Confidence = "0.95",
) -> Response:
    """An answer that was paid for; free."""
    form = negotiate(request, "application/json", *_OTHERS)
    proportion(confidence, name="confidence")
    number = parse_id(id, "answer")

    def send() -> Response:
        found = access.dataset.answer(number, access.grant)
        return _send_answer(found, access, form, confidence, drawing)

    return await run_in_threadpool(send)


@router.get("/answers/{id}/certificate")
async def certificate(id: str, access: Anyone) -> Response:  # noqa: A002
    """What was promised, to whom, and how."""
    number = parse_id(id, "answer")
    found = await run_in_threadpool(access.dataset.answer, number, access.grant)
    return json_response(found.certificate, headers=_attachment(number, "certificate", "json"))


def _render(answer: Answer, access: Access, form: str, confidence: str) -> bytes:
    if form == RECORD:
        return record.answer_to_bytes(answer)
    if form == CSV:
        return answer.to_csv(confidence).encode()
    if form == ARROW:
        return arrow_stream(answer.to_arrow(confidence))
    if form == PARQUET:
        return answer_parquet(answer, confidence)
    if form == WORKBOOK:
        return answer_workbook(answer, confidence)
    entry = access.dataset.account.entry(answer.id or 0)
    at = None if entry is None else entry.at.isoformat()
    return encode_json(answer_json(answer, confidence, dataset=access.dataset.name, at=at))


def _headers(answer: Answer, form: str) -> dict[str, str]:
    """What the headers tell of an answer."""
    number = answer.id or 0
    if form == RECORD:
        return {"Discreet-Answer": str(number), "Discreet-Replayed": str(answer.replayed).lower()}
    kinds = {CSV: "csv", ARROW: "arrows", PARQUET: "parquet", WORKBOOK: "xlsx"}
    return _attachment(number, "answer", kinds[form]) if form in kinds else {}


def _attachment(number: int, what: str, kind: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{what}-{number}.{kind}"'}
