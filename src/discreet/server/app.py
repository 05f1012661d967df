"""The application: routes, the one error shape, and the document that describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

import discreet
from discreet.curate.session import Session
from discreet.errors import AccessRefusal, Refusal
from discreet.server.envelope import Envelope
from discreet.server.log import Log
from discreet.server.refusals import Unreadable, failed, refused
from discreet.server.routes import ROUTERS
from discreet.server.settings import MOST_BODY
from discreet.server.state import House

_ABOUT = f"""
Ask about people without learning about a person: every answer has noise, a margin and a price.

Every request but those marked otherwise carries `Authorization: Bearer KEY`. Every error has one
shape (`Refusal`). Losses and limits are exact fractions or decimals, in quotes. A body has at most
{MOST_BODY // 1024} KiB.
"""


def application(
    sessions: Sequence[Session], *, log: Log | None = None, signing_key: Path | None = None
) -> ASGIApp:
    """The server of some sessions, as an ASGI application."""
    house = House(sessions, log=log, signing_key=signing_key)
    app = bare(house)
    return Envelope(app, log=house.log, metrics=house.metrics)


def bare(house: House) -> FastAPI:
    """The routes of a house, without the envelope."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        house.start()
        try:
            yield
        finally:
            await house.stop()

    app = FastAPI(
        title="discreet",
        version=discreet.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # they load a script from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.house = house
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_exception_handler(Exception, _mistaken)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, Refusal):
        raise error
    house: House = request.app.state.house
    house.metrics.count("discreet_refusals_total", code=error.code)
    return refused(error)


async def _mistaken(request: Request, error: Exception) -> Response:
    """A mistake in the program: its kind and place go to the log, nothing to the client."""
    house: House = request.app.state.house
    house.log.mistake(error)
    return await _refused(request, failed())


async def _invalid(request: Request, error: Exception) -> Response:
    """What does not fit the description: which field, and what is expected there."""
    problems: Any = getattr(error, "errors", list)()
    said = [_problem(problem) for problem in problems[:3]] or ["the request does not fit."]
    what = "; ".join(said)
    refusal = Unreadable(f"{what}.", "send what /v1/openapi.json describes.", status=422)
    return await _refused(request, refusal)


def _problem(problem: Any) -> str:
    place = ".".join(str(part)[:40] for part in problem.get("loc", ()))
    return f"{place[:120]}: {str(problem.get('msg', 'not as described')).lower()[:160]}"


async def _unrouted(request: Request, error: Exception) -> Response:
    """No such address, or not in this way."""
    status = getattr(error, "status_code", 400)
    if status == 404:
        refusal: Refusal = AccessRefusal(
            "A13",
            "there is nothing at this address.",
            why="no person's data is involved.",
            fix="see /v1/openapi.json for what there is.",
        )
    else:
        refusal = Unreadable(
            "this cannot be done at this address."
            if status == 405
            else "the request cannot be read.",
            "see /v1/openapi.json for what can.",
            status=status if 400 <= status < 500 else 400,
        )
    response = await _refused(request, refusal)
    for name, value in (getattr(error, "headers", None) or {}).items():
        if name.lower() == "allow":
            response.headers[name] = value
    return response
