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
from discreet.server.auth import Access, Anyone
from discreet.server.balances import balance_json, hide_datasets
from discreet.server.sending import ERRORS, json_response, parse_id

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["account"], responses=ERRORS)
Whose = Annotated[str | None, Query(max_length=64)]


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
    # Whoever may ask here need not know which other datasets there are.
    told = hide_datasets if access.grant.role == ANALYST else (lambda balance: balance)
    whole = told(account.balance())
    if analyst is None:
        return balance_json(access.dataset.name, whole, None, limited=False)
    account.analyst(analyst)  # refused if there is none
    limited = account.standing().limit(analyst) is not None
    own = told(account.balance(analyst))
    return balance_json(access.dataset.name, whole, own, limited=limited)


@router.get("/transcript", response_model=models.Transcript)
async def transcript(
    access: Anyone,
    analyst: Whose = None,
    before: Annotated[str | None, Query(max_length=18, pattern=r"^[0-9]+$")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Questions charged and refused, the newest first."""
    last = None if before is None else parse_id(before, "entry")
    return json_response(
        await run_in_threadpool(
            _list_entries, access, _resolve_analyst(access, analyst), last, limit
        )
    )


def _list_entries(
    access: Access, analyst: str | None, before: int | None, limit: int
) -> dict[str, Any]:
    found = access.dataset.account.transcript(analyst, before=before, limit=limit)
    more = str(found[-1].id) if len(found) == limit else None
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
