"""For whoever runs the server: whether it is well, and counters."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from discreet.ledger.keys import AUDITOR, CURATOR
from discreet.server.auth import Authenticated, Server
from discreet.server.refusals import not_ready
from discreet.server.sending import ERRORS

_PLAIN: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "in words"}
}
router = APIRouter(tags=["operation"], responses={**ERRORS, **_PLAIN})


@router.get("/healthz", response_class=Response)
async def healthz() -> Response:
    """The process runs; needs no key."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", response_class=Response)
async def readyz(server: Server) -> Response:
    """Questions are taken: the ledgers can be read and the engines answer; needs no key."""
    if not server.ready or not await run_in_threadpool(server.accounts_open):
        raise not_ready("not every dataset can be asked yet.")
    return PlainTextResponse("ready\n")


@router.get("/metrics", response_class=Response)
async def metrics(caller: Authenticated, server: Server) -> Response:
    """Counters for Prometheus, for curators and auditors: public quantities of their datasets."""
    grants = caller.grants.values()
    theirs = [grant.dataset for grant in grants if grant.role in (CURATOR, AUDITOR)]
    if not theirs:
        next(iter(grants)).requires(CURATOR, AUDITOR)
    server.measure()
    return PlainTextResponse(server.metrics.text(theirs), media_type="text/plain; version=0.0.4")
