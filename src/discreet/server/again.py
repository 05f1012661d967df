"""Requests that were read and answered before, told again without being read.

What is remembered is what a body says, whoever sends it.  Whose key comes with it, what that key
opens now, how often it asks and whether anything was recorded since is looked at each time; where
one of these does not let a stored text through, the request takes the long way and is told there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.errors import Refusal
from discreet.ledger.keys import ANALYST, CURATOR, Caller, Grant, public_part
from discreet.server.auth import client_address
from discreet.server.cache import CacheKey
from discreet.server.dataset import Dataset
from discreet.server.models import Ask
from discreet.server.readings import JSON, WAYS, ReadRequest, name_request
from discreet.server.state import ServerState

T = TypeVar("T")


def find_told(
    dataset: Dataset, grant: Grant, ask: Ask, way: str
) -> tuple[CacheKey | None, bytes | None]:
    """What the same request was told, if nothing was recorded since; the question is not read."""
    key, cache = dataset.find_cache_key(ask, grant, way), dataset.cache
    found = None if key is None else cache.find(key)
    if found is None or way == "explain":
        return key, found
    number, question = json.loads(found)  # many ask the same: its text is kept once
    return key, cache.find(CacheKey(number, question, JSON, str(ask.confidence)))


def keep_told(
    dataset: Dataset, grant: Grant, ask: Ask, way: str, key: CacheKey | None, told: bytes
) -> None:
    """Remember what a request was told, unless something has changed since it came."""
    if key is not None and key == dataset.find_cache_key(ask, grant, way):
        dataset.cache.keep(key, told)


class Together:
    """Brief works of many requests, one after the other in one thread.

    A thread for each would take longer to begin and to come back than its work takes.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        self._at_work: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """What a work gives, or what it raises."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[T] = loop.create_future()
        self._waiting.append((found, work))
        if self._at_work is None:
            self._at_work = loop.create_task(self._do_all())
        return await found

    async def _do_all(self) -> None:
        taken: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        try:
            while self._waiting:
                taken, self._waiting = self._waiting, []
                results = await run_in_threadpool(_attempt, [work for _, work in taken])
                for (found, _), (value, error) in zip(taken, results, strict=True):
                    if found.done():  # nobody waits for it any more
                        continue
                    if error is None:
                        found.set_result(value)
                    else:
                        found.set_exception(error)
        finally:
            self._at_work = None
            for found, _ in (*taken, *self._waiting):
                found.cancel()  # where the server stops; of what is done nothing happens


def _attempt(works: list[Callable[[], Any]]) -> list[tuple[Any, Exception | None]]:
    results: list[tuple[Any, Exception | None]] = []
    for work in works:
        try:
            results.append((work(), None))
        except Exception as error:
            results.append((None, error))
    return results


class Again:
    """In front of the routes: what was read and told before is told again without them."""

    def __init__(self, app: ASGIApp, server: ServerState) -> None:
        self._app = app
        self._server = server
        self._together = {name: Together() for name in server.datasets}  # none waits for another

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell it, or pass the request on as it came."""
        told = None if scope["type"] != "http" else await self._tell(scope)
        await (self._app if told is None else told)(scope, receive, send)

    async def _tell(self, scope: Scope) -> Response | None:
        request = Request(scope)
        sent = name_request(request)
        read = None if sent is None else self._server.read.find(sent)
        if read is None:
            return None
        try:
            key = self._find_key(request)
            self._server.strangers.look(client_address(request), public_part(key))
            way = WAYS[scope["path"][scope["path"].rindex("/") :]]
            find = partial(self._find, key, read, way)
            caller, text = await self._together[read.dataset].run(find)
        except Refusal:
            return None  # the long way says so, and counts it
        if text is None:
            return None
        scope["discreet_key"], scope["route"] = caller.key_id, read.route
        self._server.strangers.came_in(caller.key_id)
        dataset = self._server.datasets[read.dataset]
        dataset.rate.take(self._server.lineage.first(caller.key_id))
        if way == "ask":
            dataset.count_replay()
        return Response(text, media_type=JSON)

    def _find_key(self, request: Request) -> str | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and key:
            return key
        signing_in = self._server.signing_in
        return None if signing_in is None else signing_in.find_key(request)

    def _find(self, key: str | None, read: ReadRequest, way: str) -> tuple[Caller, bytes | None]:
        caller = self._server.identify(key)
        grant = caller.grant(read.dataset)
        grant.requires(ANALYST, CURATOR)
        return caller, find_told(self._server.datasets[read.dataset], grant, read.ask, way)[1]


__all__ = ["Again", "find_told", "keep_told"]
