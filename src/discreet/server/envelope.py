"""Around every request: sizes and times of bodies, headers, the log, and no exception's text.

Plain ASGI, outside the framework, so that nothing is answered without passing it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.errors import Refusal
from discreet.server.limits import Busy
from discreet.server.log import Log
from discreet.server.metrics import Metrics
from discreet.server.readings import BODY
from discreet.server.refusals import Unreadable, failed_refusal, refusal_response
from discreet.server.settings import BODY_TIME_S, MOST_BODY, MOST_REQUESTS

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
)


class Envelope:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, *, log: Log, metrics: Metrics) -> None:
        self._app = app
        self._log = log
        self._metrics = metrics
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, its body bounded, and its response through the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._active += 1
        try:
            await self._handle(scope, receive, send)
        finally:
            self._active -= 1

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        reply = _Reply(send, api=scope["path"].startswith("/v1"))
        try:
            if self._active > MOST_REQUESTS:
                raise Busy("too many requests are under way.", 1)
            await self._app(scope, await _read_body(scope, receive), reply)
        except _Disconnected:
            return
        except Refusal as refusal:
            await self._refuse(reply, refusal, scope, receive)
        except Exception as error:
            if reply.status == 0:  # otherwise the application has logged and refused it
                self._log.mistake(error)
            await self._refuse(reply, failed_refusal(), scope, receive)
        self._record(scope, reply.status, started)

    async def _refuse(
        self, reply: _Reply, refusal: Refusal, scope: Scope, receive: Receive
    ) -> None:
        if reply.status == 0:
            self._metrics.count("discreet_refusals_total", code=refusal.code)
            await refusal_response(refusal)(scope, receive, reply)

    def _record(self, scope: Scope, status: int, started: float) -> None:
        route = getattr(scope.get("route"), "path", "-")
        self._metrics.count("discreet_requests_total", route=route, status=str(status))
        self._log.write(
            "request",
            method=scope["method"] if scope["method"] in _METHODS else "-",
            route=route,
            status=status,
            key=scope.get("discreet_key"),
            ms=round(1000 * (time.monotonic() - started)),
        )


_METHODS = {"GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT"}


class _Disconnected(Exception):
    """The client has gone before its request was complete."""


class _Reply:
    """Sends a response, with the headers that all have."""

    def __init__(self, send: Send, *, api: bool) -> None:
        self._send = send
        self._api = api
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*self._headers(message.get("headers", ()))]
        await self._send(message)

    def _headers(self, given: Any) -> Iterator[tuple[bytes, bytes]]:
        names = {name.lower() for name, _ in given}
        yield from given
        yield from (header for header in HEADERS if header[0] not in names)
        if self._api and b"cache-control" not in names:
            yield b"cache-control", b"no-store"


async def _read_body(scope: Scope, receive: Receive) -> Receive:
    """The body, received completely or refused: too large, or too slow."""
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value[:20]) > MOST_BODY):
            raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIME_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Disconnected
                body += message.get("body", b"")
                if len(body) > MOST_BODY:
                    raise _too_large()
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        raise Unreadable(
            f"the body took longer than {BODY_TIME_S:g} s to arrive.",
            "send it at once.",
            status=408,
        ) from None
    scope[BODY] = bytes(body)
    return _replay_body(scope[BODY], receive)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _too_large() -> Unreadable:
    return Unreadable(
        f"the body has more than {MOST_BODY:,} bytes.",
        "ask a shorter question.",
        status=413,
    )
