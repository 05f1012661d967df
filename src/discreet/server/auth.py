"""At the door of every request: which key, which dataset, which role, how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from discreet.errors import AccessRefusal
from discreet.ledger.keys import ANALYST, AUDITOR, CURATOR, Caller, Grant, public_part
from discreet.server.dataset import Served
from discreet.server.state import House

bearer = HTTPBearer(auto_error=False, scheme_name="key", description="a key of the dataset")
Name = Annotated[str, Path(max_length=128, examples=["clinic"])]


def house_of(request: Request) -> House:
    """The server's state."""
    house: House = request.app.state.house
    return house


def address_of(request: Request) -> str:
    """Where a request comes from, for all that is known."""
    return "" if request.client is None else request.client.host


async def visiting(request: Request, house: Annotated[House, Depends(house_of)]) -> None:
    """Count a request that needs no key, and some work."""
    house.visitors.take(address_of(request))


async def key_of(
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> str | None:
    """The key that was sent."""
    return None if given is None else given.credentials


async def identified(
    request: Request,
    house: Annotated[House, Depends(house_of)],
    key: Annotated[str | None, Depends(key_of)],
) -> Caller:
    """The holder of a valid key."""
    address = address_of(request)
    house.strangers.look(address, public_part(key))
    try:
        caller = await run_in_threadpool(house.identify, key)
    except AccessRefusal:
        house.strangers.failed(address)
        raise
    house.strangers.came_in(caller.key_id)
    request.scope["discreet_key"] = caller.key_id
    return caller


async def welcomed(
    house: Annotated[House, Depends(house_of)],
    caller: Annotated[Caller, Depends(identified)],
) -> Caller:
    """The holder of a valid key that does not ask too often."""
    house.rate.take(caller.key_id)
    return caller


@dataclass(frozen=True, slots=True)
class Seat:
    """A caller at one dataset."""

    served: Served
    grant: Grant
    key_id: str


async def seated(
    dataset: Name,
    house: Annotated[House, Depends(house_of)],
    caller: Annotated[Caller, Depends(identified)],
) -> Seat:
    """The caller at the dataset of the address, if the key opens it."""
    grant = caller.grant(dataset)
    served = house.served[dataset]
    served.rate.take(caller.key_id)
    return Seat(served, grant, caller.key_id)


def _only(*roles: str):  # type: ignore[no-untyped-def]  # FastAPI reads the inner signature
    async def seat(seat: Annotated[Seat, Depends(seated)]) -> Seat:
        seat.grant.requires(*roles)
        return seat

    return seat


Known = Annotated[Caller, Depends(welcomed)]
Anyone = Annotated[Seat, Depends(seated)]
Asker = Annotated[Seat, Depends(_only(ANALYST, CURATOR))]
Reader = Annotated[Seat, Depends(_only(CURATOR, AUDITOR))]
Curating = Annotated[Seat, Depends(_only(CURATOR))]
Behind = Annotated[House, Depends(house_of)]
Key = Annotated[str | None, Depends(key_of)]

__all__ = [
    "Anyone",
    "Asker",
    "Behind",
    "Curating",
    "Key",
    "Known",
    "Reader",
    "Seat",
    "house_of",
    "visiting",
]
