"""Signing in with a provider, and out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from discreet.errors import AccessRefusal
from discreet.ledger.keys import nothing_here
from discreet.server import models
from discreet.server.auth import Authenticated, Server, count_visit
from discreet.server.limits import Busy
from discreet.server.sending import ERRORS, json_response
from discreet.server.state import ServerState

if TYPE_CHECKING:  # nothing of it is imported where nobody signs in
    from discreet.server.sign_in.flow import SignIn

router = APIRouter(prefix="/v1", tags=["identity"], responses=ERRORS)
_BROWSER: dict[int | str, dict[str, Any]] = {
    303: {"description": "to the provider, or back to the page"}
}


@router.get("/sign-in", response_model=models.SignIn, dependencies=[Depends(count_visit)])
async def about(server: Server) -> Response:
    """Whether one can sign in here, and with whom."""
    signing_in = server.signing_in
    name = None if signing_in is None else signing_in.settings.provider
    return json_response({"available": name is not None, "provider": name})


def _find_way(server: ServerState) -> SignIn:
    if server.signing_in is None:
        raise nothing_here("sign-in", "provider")
    return server.signing_in


@router.get(
    "/sign-in/begin",
    response_class=Response,
    status_code=303,
    responses=_BROWSER,
    dependencies=[Depends(count_visit)],
)
async def begin(request: Request, server: Server) -> Response:
    """To the provider; the browser gets a cookie that its answer must belong to."""
    way = _find_way(server)
    try:
        return await way.begin()
    except AccessRefusal as refusal:
        return _send_back(request, refusal)


@router.get(
    "/sign-in/callback",
    response_class=Response,
    status_code=303,
    responses=_BROWSER,
    dependencies=[Depends(count_visit)],
)
async def callback(request: Request, server: Server) -> Response:
    """Back from the provider: a cookie that opens what the person's groups may ask."""
    way = _find_way(server)
    try:
        return await way.complete(request, server.lineage)
    except AccessRefusal as refusal:
        return _send_back(request, refusal)


def _send_back(request: Request, refusal: AccessRefusal) -> Response:
    """A refusal: to the page for a browser, which shows what the code means; else as it is."""
    if isinstance(refusal, Busy) or "text/html" not in request.headers.get("accept", ""):
        raise refusal
    server: ServerState = request.app.state.server
    server.metrics.count("discreet_refusals_total", code=refusal.code)
    return RedirectResponse(f"/#refused/{refusal.code}", status_code=303)


@router.post("/sign-out", status_code=204, response_class=Response)
async def sign_out(request: Request, caller: Authenticated, server: Server) -> Response:
    """Let this browser be signed in no more; what its cookie holds opens nothing any more."""
    way = _find_way(server)
    response = Response(status_code=204)
    if way.find_key(request) is not None and "authorization" not in request.headers:
        for dataset in caller.grants:
            account = server.datasets[dataset].account
            await run_in_threadpool(account.revoke_key, caller.key_id)
        way.forget(response)
    return response
