"""The account: balances and the transcript."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger import Entry, State
from discreet.ledger.keys import ANALYST
from discreet.release.amounts import loss_json
from discreet.server import models
from discreet.server.auth import Anyone, Seat
from discreet.server.balances import balance_json
from discreet.server.sending import ERRORS, number_of, sent

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["account"], responses=ERRORS)
Whose = Annotated[str | None, Query(max_length=64)]


def _whose(seat: Seat, analyst: str | None) -> str | None:
    """Analysts see their own; others whom they name, or all."""
    if seat.grant.role != ANALYST:
        return analyst
    if analyst not in (None, seat.grant.analyst):
        seat.grant.requires("curator", "auditor")
    return seat.grant.analyst


@router.get("/balance", response_model=models.Balance)
async def balance(seat: Anyone, analyst: Whose = None) -> Response:
    """What is left: of the dataset, of an analyst's allocation, of each block."""
    return sent(await run_in_threadpool(_balance, seat, _whose(seat, analyst)))


def _balance(seat: Seat, analyst: str | None) -> dict[str, Any]:
    account = seat.served.account
    whole = account.balance()
    if analyst is None:
        return balance_json(seat.served.name, whole, None, limited=False)
    account.analyst(analyst)  # refused if there is none
    limited = account.standing().limit(analyst) is not None
    own = account.balance(analyst)
    return balance_json(seat.served.name, whole, own, limited=limited)


@router.get("/transcript", response_model=models.Transcript)
async def transcript(
    seat: Anyone,
    analyst: Whose = None,
    before: Annotated[str | None, Query(max_length=18, pattern=r"^[0-9]+$")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Questions charged and refused, the newest first."""
    last = None if before is None else number_of(before, "entry")
    return sent(await run_in_threadpool(_page, seat, _whose(seat, analyst), last, limit))


def _page(seat: Seat, analyst: str | None, before: int | None, limit: int) -> dict[str, Any]:
    found = seat.served.account.transcript(analyst, before=before, limit=limit)
    more = str(found[-1].id) if len(found) == limit else None
    return {"entries": [_entry(entry, seat) for entry in found], "next": more}


def _entry(entry: Entry, seat: Seat) -> dict[str, Any]:
    state = seat.served.state(entry)
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
        "answer": str(entry.id) if answered else None,
        "shown": answered and seat.served.visible(entry, seat.grant),
    }
