"""Who the caller is, and a new key in place of an old one."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger import keys as access
from discreet.server import models
from discreet.server.auth import Behind, Key, Known
from discreet.server.sending import ERRORS, sent

router = APIRouter(prefix="/v1/me", tags=["identity"], responses=ERRORS)


@router.get("", response_model=models.Me)
async def me(caller: Known) -> Response:
    """What the key opens, and until when."""
    return sent(
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
    caller: Known,  # noqa: ARG001 (counts the request)
    house: Behind,
    key: Key,
) -> Response:
    """A new key that opens the same, no longer; the one that was sent opens nothing any more."""
    new = await run_in_threadpool(access.rotate, house.accounts, key or "", expires=wanted.expires)
    return key_sent(new, (await run_in_threadpool(house.identify, new)).expires)


def key_sent(key: str, expires: object) -> Response:
    """A key, shown this once."""
    until = None if expires is None else expires.isoformat()  # type: ignore[attr-defined]
    return sent({"key": key, "id": access.key_id(key), "expires": until}, 201)
