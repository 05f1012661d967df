"""Authentication of every request: which key, which dataset, which role, how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from discreet.errors import AccessRefusal
from discreet.ledger.keys import ANALYST, AUDITOR, CURATOR, Caller, Grant, public_part
from discreet.server.dataset import Dataset
from discreet.server.state import ServerState

bearer = HTTPBearer(auto_error=False, scheme_name="key", description="a key of the dataset")
Name = Annotated[str, Path(max_length=128, examples=["clinic"])]


def server_state(request: Request) -> ServerState:
    """The server's state."""
    server: ServerState = request.app.state.server
    return server


def client_address(request: Request) -> str:
    """Where a request comes from, for all that is known."""
    return "" if request.client is None else request.client.host


async def count_visit(
    request: Request, server: Annotated[ServerState, Depends(server_state)]
) -> None:
    """Count a request that needs no key, and some work."""
    server.visitors.take(client_address(request))


async def bearer_key(
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> str | None:
    """The key that was sent."""
    return None if given is None else given.credentials


async def find_sent_key(
    request: Request,
    server: Annotated[ServerState, Depends(server_state)],
    key: Annotated[str | None, Depends(bearer_key)],
) -> str | None:
    """The key that was sent, or that of a browser which has signed in."""
    if key is not None or server.signing_in is None:
        return key
    return server.signing_in.find_key(request)


async def authenticate(
    request: Request,
    server: Annotated[ServerState, Depends(server_state)],
    key: Annotated[str | None, Depends(find_sent_key)],
) -> Caller:
    """The holder of a valid key."""
    address = client_address(request)
    server.strangers.look(address, public_part(key))
    try:
        caller = await run_in_threadpool(server.identify, key)
    except AccessRefusal:
        server.strangers.count_failure(address)
        raise
    server.strangers.came_in(caller.key_id)
    request.scope["discreet_key"] = caller.key_id
    return caller


async def admit(
    server: Annotated[ServerState, Depends(server_state)],
    caller: Annotated[Caller, Depends(authenticate)],
) -> Caller:
    """The holder of a valid key that does not ask too often."""
    server.rate.take(server.lineage.first(caller.key_id))
    return caller


@dataclass(frozen=True, slots=True)
class Access:
    """A caller at one dataset."""

    dataset: Dataset
    grant: Grant
    key_id: str
    """The key that limits are kept for."""


async def authorize(
    dataset: Name,
    server: Annotated[ServerState, Depends(server_state)],
    caller: Annotated[Caller, Depends(authenticate)],
) -> Access:
    """The caller at the dataset of the address, if the key opens it."""
    grant = caller.grant(dataset)
    opened = server.datasets[dataset]
    counted = server.lineage.first(caller.key_id)
    opened.rate.take(counted)
    return Access(opened, grant, counted)


def _require(*roles: str):  # type: ignore[no-untyped-def]  # FastAPI reads the inner signature
    async def check_role(access: Annotated[Access, Depends(authorize)]) -> Access:
        access.grant.requires(*roles)
        return access

    return check_role


Authenticated = Annotated[Caller, Depends(admit)]
Anyone = Annotated[Access, Depends(authorize)]
Asker = Annotated[Access, Depends(_require(ANALYST, CURATOR))]
Reader = Annotated[Access, Depends(_require(CURATOR, AUDITOR))]
Curating = Annotated[Access, Depends(_require(CURATOR))]
Server = Annotated[ServerState, Depends(server_state)]
Key = Annotated[str | None, Depends(bearer_key)]

__all__ = [
    "Access",
    "Anyone",
    "Asker",
    "Authenticated",
    "Curating",
    "Key",
    "Reader",
    "Server",
    "count_visit",
    "server_state",
]
