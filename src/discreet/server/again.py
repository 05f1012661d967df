"""Requests that were read and answered before, told again without being read.

What is remembered is what a body says, whoever sends it.  Whose key comes with it, what that key
opens now, how often it asks and whether anything was recorded since is looked at each time; where
one of these does not let a stored text through, the request takes the long way and is told there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.errors import Refusal
from discreet.ledger.keys import ANALYST, CURATOR, Caller, Grant, public_part
from discreet.release.answer import Answer
from discreet.server.auth import client_address
from discreet.server.cache import CacheKey
from discreet.server.dataset import Dataset, write_asked
from discreet.server.models import Ask
from discreet.server.readings import JSON, ReadRequest, name_request, write_words
from discreet.server.sending import encode_json
from discreet.server.state import ServerState

W = TypeVar("W")
T = TypeVar("T")


FOR_ALL = " for all"
ASKED = "asked"
"""How what an answer was to is called among the texts, where it is told to everybody."""


def find_told(
    dataset: Dataset, grant: Grant, ask: Ask, way: str
) -> tuple[CacheKey | None, bytes | None]:
    """What the same request was told, if nothing was recorded since; the question is not read."""
    words = write_words(ask)
    if words is None:
        return None, None
    version = dataset.curator.engine.data_version()
    telling = Telling(dataset, version)
    with dataset.account.reading():
        found = telling.find(words, str(ask.confidence), grant, way)
    telling.mark_shown()
    return found


def keep_told(
    dataset: Dataset, grant: Grant, ask: Ask, way: str, key: CacheKey | None, told: bytes
) -> CacheKey | None:
    """Remember what a request was told, unless something has changed since it came.

    Where everybody is told the same, it is remembered for all, too, under the key that is returned.
    """
    words = write_words(ask)
    if key is None or words is None:
        return None
    for_all = _name_for_all(key, words) if dataset.is_for_all(ask) else None
    if key != dataset.find_cache_key(ask, grant, way):
        return None
    dataset.cache.keep(key, told)
    if for_all is not None:
        dataset.cache.keep(for_all, told)
    return for_all


def keep_answer(
    dataset: Dataset, grant: Grant, ask: Ask, key: CacheKey | None, answer: Answer
) -> None:
    """Remember of an answer under which number and through which words it is told."""
    if answer.id is None:
        return
    told = encode_json([answer.id, answer.text])
    for_all = keep_told(dataset, grant, ask, "ask", key, told)
    if for_all is not None:
        dataset.cache.keep(_name_asked(answer.id, for_all), write_asked(answer))


def _name_for_all(key: CacheKey, words: str) -> CacheKey:
    return key._replace(question=words, form=key.form + FOR_ALL)


def _name_asked(number: int, for_all: CacheKey) -> CacheKey:
    return CacheKey(number, for_all.question, ASKED, for_all.confidence)


class Telling:
    """What some requests to one dataset were told before; its data have a version, looked at now.

    Whoever is told an answer for the first time is remembered as one to whom it is shown, through
    their own words, before they are told it.
    """

    def __init__(self, dataset: Dataset, version: str) -> None:
        self._dataset = dataset
        self._version = version
        self._shown: list[tuple[str, int, bytes]] = []
        self._kept: list[tuple[CacheKey, bytes]] = []

    def find(
        self, words: str, confidence: str, grant: Grant, way: str
    ) -> tuple[CacheKey | None, bytes | None]:
        """What a request was told, or everybody; in a reading of the account."""
        what = f"{way} {self._version}"
        key = self._dataset.name_request(words, confidence, grant, what)
        if key is None:
            return None, None
        cache = self._dataset.cache
        found = cache.find(key)
        for_all = None
        if found is None:
            for_all = _name_for_all(key, words)
            found = cache.find(for_all)
        if found is None or way == "explain":
            return key, found
        number, question = json.loads(found)  # many ask the same: its text is kept once
        text = cache.find(CacheKey(number, question, JSON, confidence))
        if text is not None and for_all is not None:
            asked = cache.find(_name_asked(number, for_all))
            if asked is None:
                return key, None
            self._shown.append((grant.analyst, number, asked))
            self._kept.append((key, found))
        return key, text

    def mark_shown(self) -> None:
        """Remember to whom what was found is shown, all at once."""
        if self._shown:
            self._dataset.idempotency.mark_all_shown(self._shown)
            for key, found in self._kept:
                self._dataset.cache.keep(key, found)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that was read before, and the key that came with it this time."""

    key: str | None
    read: ReadRequest


Found = tuple[Caller, bytes | None]
"""Whose key it is, and what was told before."""


class Together(Generic[W, T]):
    """What many requests want, found for all of them at once, in one thread.

    A thread for each would take longer to begin and to come back than its work takes; and what
    each would look at outside of this process is looked at once for all that came before.
    """

    def __init__(self, find: Callable[[Sequence[W]], list[T | Refusal]]) -> None:
        self._find = find
        self._waiting: list[tuple[asyncio.Future[T], W]] = []
        self._at_work: asyncio.Task[None] | None = None

    async def run(self, wanted: W) -> T:
        """What is found for it, or the refusal."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[T] = loop.create_future()
        self._waiting.append((found, wanted))
        if self._at_work is None:
            self._at_work = loop.create_task(self._do_all())
        return await found

    async def _do_all(self) -> None:
        taken: list[tuple[asyncio.Future[T], W]] = []
        try:
            while self._waiting:
                taken, self._waiting = self._waiting, []
                try:
                    results = await run_in_threadpool(self._find, [wanted for _, wanted in taken])
                except Exception as error:
                    _fail([found for found, _ in taken], error)
                    continue
                for (found, _), result in zip(taken, results, strict=True):
                    if isinstance(result, Refusal):
                        _fail([found], result)
                    elif not found.done():  # somebody waits for it still
                        found.set_result(result)
        finally:
            self._at_work = None
            for found, _ in (*taken, *self._waiting):
                found.cancel()  # where the server stops; of what is done nothing happens


def _fail(waiting: Sequence[asyncio.Future[T]], error: Exception) -> None:
    for found in waiting:
        if not found.done():
            found.set_exception(error)


class Again:
    """In front of the routes: what was read and told before is told again without them."""

    def __init__(self, app: ASGIApp, server: ServerState) -> None:
        self._app = app
        self._server = server
        self._together = {  # none waits for another
            name: Together(partial(self._find_all, name)) for name in server.datasets
        }

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
            caller, text = await self._together[read.dataset].run(Wanted(key, read))
        except Refusal:
            return None  # the long way says so, and counts it
        if text is None:
            return None
        scope["discreet_key"], scope["route"] = caller.key_id, read.route
        self._server.strangers.came_in(caller.key_id)
        dataset = self._server.datasets[read.dataset]
        dataset.rate.take(self._server.lineage.first(caller.key_id))
        if read.way == "ask":
            dataset.count_replay()
        return Response(text, media_type=JSON)

    def _find_key(self, request: Request) -> str | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and key:
            return key
        signing_in = self._server.signing_in
        return None if signing_in is None else signing_in.find_key(request)

    def _find_all(self, name: str, wanted: Sequence[Wanted]) -> list[Found | Refusal]:
        """What each is told of one dataset, by the data and the ledgers as they are now."""
        dataset = self._server.datasets[name]
        version = dataset.curator.engine.data_version()
        callers = self._server.identify_all([one.key for one in wanted])
        telling = Telling(dataset, version)
        with dataset.account.reading():
            found = [
                caller if isinstance(caller, Refusal) else _find(dataset, telling, caller, one.read)
                for caller, one in zip(callers, wanted, strict=True)
            ]
        telling.mark_shown()
        return found


def _find(dataset: Dataset, telling: Telling, caller: Caller, read: ReadRequest) -> Found | Refusal:
    """What a caller is told, in a reading of the dataset's account."""
    try:
        grant = caller.grant(dataset.name)
        grant.requires(ANALYST, CURATOR)
    except Refusal as refusal:
        return refusal
    return caller, telling.find(read.words, str(read.ask.confidence), grant, read.way)[1]


__all__ = ["Again", "find_told", "keep_answer", "keep_told"]
