"""For curators: who may ask, how much, and with which key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.accounting.budget import Budget
from discreet.ledger import AccessKey, Account, Analyst
from discreet.ledger import keys as ledger_keys
from discreet.ledger.keys import CURATOR
from discreet.release.amounts import budget_json, loss_json
from discreet.server import models
from discreet.server.auth import Access, Authenticated, Curating, Reader, Server
from discreet.server.balances import group_json
from discreet.server.routes.identity import key_response
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["people"], responses=ERRORS)


@router.get("/analysts", response_model=models.Analysts)
async def analysts(access: Reader) -> Response:
    """Everybody who may ask, with limits and what they have spent."""
    return json_response(await run_in_threadpool(_list_analysts, access.dataset.account))


def _list_analysts(account: Account) -> dict[str, Any]:
    keys = account.keys()
    return {
        "analysts": [_analyst_json(account, one, keys) for one in account.analysts()],
        "groups": [
            {
                "name": name,
                "limit": None if group.limit is None else budget_json(group.limit),
                "each": None if group.each is None else budget_json(group.each),
                "together": group_json(together),
            }
            for name, (group, together) in account.groups().items()
        ],
    }


def _analyst_json(
    account: Account, analyst: Analyst, keys: tuple[AccessKey, ...]
) -> dict[str, Any]:
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
        "group": analyst.group,
        "signs_in": analyst.identity is not None,
        "identity": analyst.identity,
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


def _parse_limit(limit: models.Limit | None) -> Budget | None:
    if limit is None:
        return None
    return Budget(
        epsilon=limit.epsilon,
        delta=limit.delta,
        rho=limit.rho,
        accept_large_delta=limit.accept_large_delta,
    )


@router.post("/analysts", status_code=201, response_model=models.Analyst)
async def add(new: models.NewAnalyst, access: Curating) -> Response:
    """Let somebody ask; what they may cost any one person is their limit."""

    def enrol() -> dict[str, Any]:
        account = access.dataset.account
        made = account.add_analyst(
            new.name,
            role=new.role,
            limit=_parse_limit(new.limit),
            expires=new.expires,
            group=new.group,
        )
        return _analyst_json(account, made, ())

    return json_response(await run_in_threadpool(enrol), 201)


@router.patch("/analysts/{name}", response_model=models.Analyst)
async def change(name: str, changed: models.ChangedAnalyst, access: Curating) -> Response:
    """Change an analyst's limit or group, or let them ask no more."""
    return json_response(await run_in_threadpool(_change, access.dataset.account, name, changed))


def _change(account: Account, name: str, changed: models.ChangedAnalyst) -> dict[str, Any]:
    analyst = _find_analyst(account, name)
    if "limit" in changed.model_fields_set:
        analyst = account.limit_analyst(name, _parse_limit(changed.limit))
    if "group" in changed.model_fields_set:
        analyst = account.move_analyst(name, changed.group)
    if changed.disabled:
        analyst = account.disable_analyst(name)
    return _analyst_json(account, analyst, account.keys())


def _find_analyst(account: Account, name: str) -> Analyst:
    for analyst in account.analysts():
        if analyst.name == name:
            return analyst
    raise ledger_keys.nothing_here("analyst", name[:64])


@router.post("/analysts/{name}/keys", status_code=201, response_model=models.NewKey)
async def key(
    name: str, wanted: models.KeyWanted, access: Curating, caller: Authenticated, server: Server
) -> Response:
    """A key for an analyst, shown once; ``also`` lets it open other datasets of the curator."""
    for other in wanted.also:
        caller.grant(other).requires(CURATOR)
    others = {*wanted.also} - {access.dataset.name}
    accounts = [access.dataset.account, *(server.datasets[other].account for other in others)]

    def make() -> str:
        for account in accounts:
            _find_analyst(account, name)
        new = ledger_keys.new_key(accounts[0], name, expires=wanted.expires)
        for account in accounts[1:]:
            ledger_keys.grant_key(account, name, new, expires=wanted.expires)
        return new

    return key_response(await run_in_threadpool(make), wanted.expires)


@router.delete("/keys/{id}", status_code=204)
async def revoke(id: str, access: Curating) -> Response:  # noqa: A002 (the word of the interface)
    """Let a key open nothing any more."""
    await run_in_threadpool(_revoke, access, id)
    return Response(status_code=204)


def _revoke(access: Access, key_id: str) -> None:
    if access.dataset.account.key(key_id) is None:
        raise ledger_keys.nothing_here("key", key_id[:40])
    access.dataset.account.revoke_key(key_id)
