"""Who the caller is, and a new key in place of an old one."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger import keys as ledger_keys
from discreet.server import models
from discreet.server.auth import Authenticated, Key, Server
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/me", tags=["identity"], responses=ERRORS)


@router.get("", response_model=models.Me)
async def me(caller: Authenticated) -> Response:
    """What the key opens, and until when."""
    return json_response(
        {
            "key": caller.key_id,
            "expires": None if caller.expires is None else caller.expires.isoformat(),
            "datasets": [
                {"name": grant.dataset, "analyst": grant.analyst, "role": grant.role}
                for grant in caller.grants.values()
            ],
        }
    )


@router.post("/key", status_code=201, response_model=models.NewKey)
async def rotate(
    wanted: models.Rotation,
    caller: Authenticated,
    server: Server,
    key: Key,
) -> Response:
    """A new key that opens the same, no longer; the one that was sent opens nothing any more."""
    server.renewals.take(server.lineage.first(caller.key_id))  # each is written down for ever
    new = await run_in_threadpool(
        ledger_keys.rotate, server.accounts, key or "", expires=wanted.expires
    )
    server.lineage.renew(caller.key_id, ledger_keys.key_id(new))
    return key_response(new, (await run_in_threadpool(server.identify, new)).expires)


def key_response(key: str, expires: object) -> Response:
    """A key, shown this once."""
    until = None if expires is None else expires.isoformat()  # type: ignore[attr-defined]
    return json_response({"key": key, "id": ledger_keys.key_id(key), "expires": until}, 201)
