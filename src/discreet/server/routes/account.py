"""The account: balances, spending over time and the transcript."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger import Entry, State
from discreet.ledger.keys import ANALYST
from discreet.release.amounts import budget_json, loss_json
from discreet.server import models
from discreet.server.auth import Access, Anyone
from discreet.server.balances import balance_json, find_balances
from discreet.server.drawing import SVG, Wanted, draw_spending, picture_response
from discreet.server.sending import ERRORS, json_response, negotiate, parse_id
from discreet.server.spending import spending as spent_over_time

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["account"], responses=ERRORS)
MOST_SEARCHED = 2000
"""Lines of the transcript that one request looks through."""
Whose = Annotated[str | None, Query(max_length=64, description="of whom; the caller if null")]


def _resolve_analyst(access: Access, analyst: str | None) -> str | None:
    """Analysts see their own; others whom they name, or all."""
    if access.grant.role != ANALYST:
        return analyst
    if analyst not in (None, access.grant.analyst):
        access.grant.requires("curator", "auditor")
    return access.grant.analyst


@router.get("/balance", response_model=models.Balance)
async def balance(access: Anyone, analyst: Whose = None) -> Response:
    """What is left: of the dataset, of an analyst's allocation, of each block."""
    return json_response(
        await run_in_threadpool(_balance_of, access, _resolve_analyst(access, analyst))
    )


def _balance_of(access: Access, analyst: str | None) -> dict[str, Any]:
    account = access.dataset.account
    if analyst is not None:
        account.analyst(analyst)  # refused if there is none
    whole, own = find_balances(account, access.grant, analyst)
    limited = analyst is not None and account.standing().limit(analyst) is not None
    return balance_json(access.dataset.name, whole, own, limited=limited)


@router.get(
    "/spending",
    response_model=models.Spending,
    responses={200: {"content": {SVG: {}}, "description": "points in time, or a picture"}},
)
async def spending(
    request: Request,
    access: Anyone,
    drawing: Wanted,
    by: Annotated[Literal["hour", "day"], Query(description="how finely")] = "day",
    analyst: Whose = None,
) -> Response:
    """What was spent in all by the end of each hour or day: of the dataset, or by an analyst."""
    form = negotiate(request, "application/json", SVG)
    whose = _resolve_analyst(access, analyst)

    def tell() -> Response:
        account = access.dataset.account
        if whose is not None:
            account.analyst(whose)  # refused if there is none
        found = spent_over_time(access.dataset.curator.ledger, account.dataset, by, whose)
        limit = None if whose is None else account.standing().limit(whose)
        shown = {**found, "budget": budget_json(account.budget if limit is None else limit)}
        if form == SVG:
            return picture_response(draw_spending(shown), drawing)
        return json_response(shown)

    return await access.dataset.explain(tell, access.key_id)


@router.get("/transcript", response_model=models.Transcript)
async def transcript(
    access: Anyone,
    analyst: Whose = None,
    before: Annotated[
        str | None,
        Query(max_length=18, pattern=r"^[0-9]+$", description="only entries older than this one"),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="how many at most")] = 100,
    contains: Annotated[str, Query(max_length=200, description="words of the question")] = "",
) -> Response:
    """Questions charged and refused, the newest first."""
    last = None if before is None else parse_id(before, "entry")
    whose = _resolve_analyst(access, analyst)
    listed = await run_in_threadpool(_list_entries, access, whose, last, limit, contains)
    return json_response(listed)


def _list_entries(
    access: Access, analyst: str | None, before: int | None, limit: int, contains: str
) -> dict[str, Any]:
    """A page; of a search perhaps a short one, with the place at which to go on."""
    size = limit if not contains else MOST_SEARCHED
    found = access.dataset.account.transcript(analyst, before=before, limit=size)
    more = str(found[-1].id) if len(found) == size else None
    if contains:
        wanted = contains.casefold()
        found = tuple(e for e in found if wanted in e.question.casefold())
        if len(found) > limit:
            found = found[:limit]
            more = str(found[-1].id)
    return {"entries": [_entry_json(entry, access) for entry in found], "next": more}


def _entry_json(entry: Entry, access: Access) -> dict[str, Any]:
    state = access.dataset.state(entry)
    answered = state is State.ANSWERED
    return {
        "id": str(entry.id),
        "at": entry.at.isoformat(),
        "analyst": entry.analyst,
        "question": entry.question,
        "spend": dict(entry.spend),
        "price": None if entry.loss is None else loss_json(entry.loss),
        "state": state.value,
        "code": entry.code or None,
        "count": entry.count,
        "answer": str(entry.id) if answered else None,
        "shown": answered and access.dataset.visible(entry, access.grant),
    }
