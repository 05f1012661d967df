"""For curators: who may ask, how much, and with which key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.accounting.budget import Budget
from discreet.ledger import Account, Analyst, Key
from discreet.ledger import keys as access
from discreet.ledger.keys import CURATOR
from discreet.release.amounts import budget_json, loss_json
from discreet.server import models
from discreet.server.auth import Behind, Curating, Known, Reader, Seat
from discreet.server.routes.identity import key_sent
from discreet.server.sending import ERRORS, sent

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["people"], responses=ERRORS)


@router.get("/analysts", response_model=models.Analysts)
async def analysts(seat: Reader) -> Response:
    """Everybody who may ask, with limits and what they have spent."""
    return sent(await run_in_threadpool(_listed, seat.served.account))


def _listed(account: Account) -> dict[str, Any]:
    keys = account.keys()
    return {"analysts": [_analyst(account, one, keys) for one in account.analysts()]}


def _analyst(account: Account, analyst: Analyst, keys: tuple[Key, ...]) -> dict[str, Any]:
    balance = account.balance(analyst.name)
    limit = account.standing().limit(analyst.name)
    return {
        "name": analyst.name,
        "role": analyst.role,
        "limit": None if limit is None else budget_json(limit),
        "expires": None if analyst.expires is None else analyst.expires.isoformat(),
        "disabled": analyst.disabled,
        "spent": loss_json(balance.spent),
        "share": None if limit is None else balance.share(balance.fullest()),
        "keys": [
            {
                "id": key.key_id,
                "expires": None if key.expires is None else key.expires.isoformat(),
                "revoked": key.revoked,
                "at": None if key.at is None else key.at.isoformat(),
            }
            for key in keys
            if key.analyst == analyst.name
        ],
    }


def _budget(limit: models.Limit | None) -> Budget | None:
    if limit is None:
        return None
    return Budget(epsilon=limit.epsilon, delta=limit.delta, rho=limit.rho)


@router.post("/analysts", status_code=201, response_model=models.Analyst)
async def add(new: models.NewAnalyst, seat: Curating) -> Response:
    """Let somebody ask; what they may cost any one person is their limit."""

    def added() -> dict[str, Any]:
        account = seat.served.account
        made = account.add_analyst(
            new.name, role=new.role, limit=_budget(new.limit), expires=new.expires
        )
        return _analyst(account, made, ())

    return sent(await run_in_threadpool(added), 201)


@router.patch("/analysts/{name}", response_model=models.Analyst)
async def change(name: str, changed: models.ChangedAnalyst, seat: Curating) -> Response:
    """Change an analyst's limit, or let them ask no more."""
    return sent(await run_in_threadpool(_changed, seat.served.account, name, changed))


def _changed(account: Account, name: str, changed: models.ChangedAnalyst) -> dict[str, Any]:
    analyst = _known(account, name)
    if "limit" in changed.model_fields_set:
        analyst = account.limit_analyst(name, _budget(changed.limit))
    if changed.disabled:
        analyst = account.disable_analyst(name)
    return _analyst(account, analyst, account.keys())


def _known(account: Account, name: str) -> Analyst:
    for analyst in account.analysts():
        if analyst.name == name:
            return analyst
    raise access.nothing_here("analyst", name[:64])


@router.post("/analysts/{name}/keys", status_code=201, response_model=models.NewKey)
async def key(
    name: str, wanted: models.KeyWanted, seat: Curating, caller: Known, house: Behind
) -> Response:
    """A key for an analyst, shown once; ``also`` lets it open other datasets of the curator."""
    for other in wanted.also:
        caller.grant(other).requires(CURATOR)
    others = {*wanted.also} - {seat.served.name}
    accounts = [seat.served.account, *(house.served[other].account for other in others)]

    def made() -> str:
        for account in accounts:
            _known(account, name)
        new = access.new_key(accounts[0], name, expires=wanted.expires)
        for account in accounts[1:]:
            access.grant_key(account, name, new, expires=wanted.expires)
        return new

    return key_sent(await run_in_threadpool(made), wanted.expires)


@router.delete("/keys/{id}", status_code=204)
async def revoke(id: str, seat: Curating) -> Response:  # noqa: A002 (the word of the interface)
    """Let a key open nothing any more."""
    await run_in_threadpool(_revoked, seat, id)
    return Response(status_code=204)


def _revoked(seat: Seat, key_id: str) -> None:
    if seat.served.account.key(key_id) is None:
        raise access.nothing_here("key", key_id[:40])
    seat.served.account.revoke_key(key_id)
