"""The application: routes, the one error shape, and the document that describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
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
from discreet.server.again import Again
from discreet.server.beside import Beside, Door
from discreet.server.envelope import Envelope
from discreet.server.log import Log
from discreet.server.readings import JSON
from discreet.server.refusals import Unreadable, failed_refusal, refusal_response
from discreet.server.routes import ROUTERS
from discreet.server.settings import MOST_BODY
from discreet.server.state import ServerState

_ABOUT = f"""
Ask about people: every answer has noise, a margin, and a price, which bounds what each of them
adds to it.

Every request but those marked otherwise carries `Authorization: Bearer KEY`. Every error has one
shape (`Refusal`). Losses and limits are exact fractions or decimals, in quotes. A body has at most
{MOST_BODY // 1024} KiB.
"""


def application(
    sessions: Sequence[Session],
    *,
    log: Log | None = None,
    signing_key: Path | None = None,
    beside: Beside | None = None,
) -> ASGIApp:
    """The server of some sessions, as an ASGI application; other doors open and close with it."""
    server = ServerState(sessions, log=log, signing_key=signing_key)
    app = make_app(server, {} if beside is None else beside.doors(server))
    return Envelope(Again(app, server), log=server.log, metrics=server.metrics)


def make_app(server: ServerState, doors: Mapping[str, Door] | None = None) -> FastAPI:
    """The routes of a server, without the envelope."""
    beside = dict(doors or {})

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        server.start()
        try:
            await _open_doors(beside, server)
            yield
        finally:
            for door in beside.values():
                await door.close()
            await server.stop()

    app = FastAPI(
        title="discreet",
        version=discreet.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # it loads a script from elsewhere; ours is in routes/public.py
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = server
    app.state.doors = beside
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Refusal, _handle_refusal)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_unrouted)
    app.add_exception_handler(Exception, _handle_mistake)
    return app


async def _open_doors(doors: Mapping[str, Door], server: ServerState) -> None:
    for name, door in doors.items():
        try:
            await door.open()
        except Exception as error:  # a port that is taken, a program that does not start
            server.log.mistake(error)
            server.log.write("not opened", door=name)
            raise
        server.log.write("opened", door=name)


async def _handle_refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, Refusal):
        raise error
    server: ServerState = request.app.state.server
    server.metrics.count("discreet_refusals_total", code=error.code)
    return refusal_response(error)


async def _handle_mistake(request: Request, error: Exception) -> Response:
    """A mistake in the program: its kind and place go to the log, nothing to the client."""
    server: ServerState = request.app.state.server
    server.log.mistake(error)
    return await _handle_refusal(request, failed_refusal())


async def _handle_invalid(request: Request, error: Exception) -> Response:
    """What does not fit the description: which field, and what is expected there."""
    problems: Any = getattr(error, "errors", list)()
    said = [_describe_problem(problem) for problem in problems[:3]] or ["the request does not fit."]
    what = "; ".join(said)
    fix = "send what /v1/openapi.json describes."
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and sent != JSON:
        fix = f"send Content-Type: {JSON} (with curl: -H 'Content-Type: {JSON}')."
    refusal = Unreadable(f"{what}.", fix, status=422)
    return await _handle_refusal(request, refusal)


def _describe_problem(problem: Any) -> str:
    field = ".".join(str(part)[:40] for part in problem.get("loc", ()))
    return f"{field[:120]}: {str(problem.get('msg', 'not as described')).lower()[:160]}"


async def _handle_unrouted(request: Request, error: Exception) -> Response:
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
    response = await _handle_refusal(request, refusal)
    for name, value in (getattr(error, "headers", None) or {}).items():
        if name.lower() == "allow":
            response.headers[name] = value
    return response
