"""What requests ask, by their bytes: the same bytes ask the same, whoever sends them."""

from __future__ import annotations

import json
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from discreet.question.sql.dialect import may_read_clock
from discreet.server.models import Ask

BODY = "discreet_body"
"""Where a request's scope holds its body, once it is there as a whole."""
MOST_BYTES = 16 * 1024 * 1024
JSON = "application/json"
WAYS = {"/ask": "ask", "/explain": "explain"}
_OVERHEAD = 2048
"""What one request takes in memory beside its body and its question, about."""

Sent = tuple[str, str, bytes]
"""The address, what is accepted, and the body."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request, read: which question with which offer, of which dataset."""

    dataset: str
    ask: Ask
    words: str
    """What it asks, in one text."""
    way: str
    route: Any
    """The framework's, for the log."""


class ReadRequests:
    """Requests that a stored text answered; the one unused longest is forgotten first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._read: OrderedDict[Sent, ReadRequest] = OrderedDict()
        self._bytes = 0

    def find(self, sent: Sent) -> ReadRequest | None:
        """What these bytes ask, if they were read lately."""
        with self._lock:
            found = self._read.get(sent)
            if found is not None:
                self._read.move_to_end(sent)
            return found

    def keep(self, request: Request, dataset: str, ask: Ask) -> None:
        """A stored text answered this request: the next that is the same need not be read."""
        sent, words = name_request(request), write_words(ask)
        if sent is None or words is None:
            return
        way = WAYS[sent[0][sent[0].rindex("/") :]]
        read = ReadRequest(dataset, ask, words, way, request.scope.get("route"))
        with self._lock:
            if sent not in self._read:
                self._bytes += _weigh(sent, read)
            self._read[sent] = read
            while self._bytes > self._most:
                self._bytes -= _weigh(*self._read.popitem(last=False))


def _weigh(sent: Sent, read: ReadRequest) -> int:
    """The request as it came and the question in it, whose letters may take four bytes each."""
    texts = sys.getsizeof(read.ask.question) + sys.getsizeof(read.words)
    return sum(map(len, sent)) + texts + _OVERHEAD


def write_words(ask: Ask) -> str | None:
    """The question and what is offered for it, in one text.

    None for words that may name the present: they mean something else each time.
    """
    if may_read_clock(ask.question):
        return None
    return json.dumps([ask.question, ask.offer().to_json()])


def name_request(request: Request) -> Sent | None:
    """What a request is known by; None for one that is none of those that are remembered."""
    scope, headers = request.scope, request.headers
    path: str = scope["path"]
    if scope["method"] != "POST" or not path.endswith(tuple(WAYS)) or scope["query_string"]:
        return None
    if not path.startswith("/v1/datasets/") or "idempotency-key" in headers:
        return None
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        return None
    body: bytes | None = scope.get(BODY)
    return None if body is None else (path, headers.get("accept", "*/*"), body)


__all__ = ["BODY", "JSON", "WAYS", "ReadRequest", "ReadRequests", "name_request", "write_words"]
