"""A server that receives the reports of a survey: it keeps what was sent, and nothing else.

It trusts nobody and need not be trusted with answers: reports are randomised before they come.
It writes no log, sets no cookie, and stores neither addresses nor times.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from discreet.errors import Refusal
from discreet.local.collection import Collection
from discreet.local.page import results_page
from discreet.local.survey import Result
from discreet.server.refusals import Unreadable, failed_refusal, refusal_response

MOST_BODY = 64 * 1024
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
}
# The page may be opened from disk, so its report may come from any origin; it carries no cookie.
_ANYWHERE = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Allow-Methods": "POST",
}
Handler = Callable[[Request], Awaitable[Response]]


def survey_application(collection: Collection) -> ASGIApp:
    """The page at ``/``, its declaration, a place to send reports to, and the results."""
    page = collection.page  # as it was published, for as long as this server runs

    async def answer(_: Request) -> Response:
        return Response(page, media_type="text/html; charset=utf-8", headers=_HEADERS)

    async def show_survey(_: Request) -> Response:
        said = {**collection.survey.to_json(), "page_sha256": hashlib.sha256(page).hexdigest()}
        return _json(said)

    async def receive(request: Request) -> Response:
        token, report = _read(await _body(request), collection.survey.fingerprint)
        await run_in_threadpool(collection.receive, token, report)
        return _json({"received": True}, status=201)

    async def allow(_: Request) -> Response:
        return Response(status_code=204, headers={**_HEADERS, **_ANYWHERE})

    latest = _Latest(collection)

    async def results(request: Request) -> Response:
        found = await latest.read()
        if request.url.path.endswith(".json"):
            return _json([one.to_json() for one in found])
        written = results_page(collection.survey, found)
        return Response(written, media_type="text/html; charset=utf-8", headers=_HEADERS)

    return Starlette(
        routes=[
            Route("/", _guard(answer)),
            Route("/survey.json", _guard(show_survey)),
            Route("/report", _guard(receive), methods=["POST"]),
            Route("/report", allow, methods=["OPTIONS"]),
            Route("/results", _guard(results)),
            Route("/results.json", _guard(results)),
        ]
    )


class _Latest:
    """The results of the reports that there are: computed once for each number of reports.

    Anyone may look, as often as they like: who looks a thousand times must not keep a thousand
    threads busy that others' reports are waiting for.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._lock = asyncio.Lock()
        self._found: tuple[int, list[Result]] | None = None

    async def read(self) -> list[Result]:
        async with self._lock:
            count = await run_in_threadpool(lambda: self._collection.count)
            if self._found is None or self._found[0] != count:
                self._found = await run_in_threadpool(self._compute)
            return self._found[1]

    def _compute(self) -> tuple[int, list[Result]]:
        reports = self._collection.reports()
        return len(reports), self._collection.survey.results(reports)


def _guard(handler: Handler) -> Handler:
    """Refusals in their one shape; of a mistake nothing but that it happened."""

    async def guard(request: Request) -> Response:
        try:
            return await handler(request)
        except Refusal as refusal:
            said = refusal_response(refusal)
        except Exception:
            said = refusal_response(failed_refusal())
        said.headers.update({**_HEADERS, **_ANYWHERE})
        return said

    return guard


async def _body(request: Request) -> bytes:
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > MOST_BODY:
            raise Unreadable("the report is too long.", "send what the page made.", status=413)
    return found


def _read(body: bytes, fingerprint: str) -> tuple[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable("the report is not JSON.", "send what the page made.") from None
    fitting = isinstance(found, dict) and set(found) == {"survey", "token", "report"}
    if not fitting or not _is_token(found["token"]):
        raise Unreadable("the report is not as the page makes it.", "send what the page made.")
    if found["survey"] != fingerprint:
        raise Unreadable(
            "the report is for another survey, or an older page of this one.",
            "load the page again.",
        )
    return found["token"], found["report"]


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 100 and value.isascii()


def _json(value: Any, *, status: int = 200) -> Response:
    written = json.dumps(value, ensure_ascii=False).encode()
    headers = {**_HEADERS, **_ANYWHERE}
    return Response(written, status, headers=headers, media_type="application/json")


__all__ = ["MOST_BODY", "survey_application"]
