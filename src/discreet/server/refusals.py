"""The one shape of every error, and its HTTP status."""

from __future__ import annotations

import json
from typing import NoReturn

from starlette.responses import Response

from discreet.errors import AccessRefusal, Refusal
from discreet.server.limits import Busy

_STATUS = {
    "A10": 401,
    "A11": 401,
    "A12": 403,
    "A13": 404,
    "A14": 400,
    "A15": 429,
    "A16": 409,
    "A17": 503,
    "A18": 500,
    "A20": 403,
    "A21": 403,
}
_FAMILY = {"A": 403, "B": 402, "D": 424, "L": 503}


class Unreadable(AccessRefusal):
    """A request that is not what the interface describes; ``status`` says in which way."""

    def __init__(self, what: str, fix: str, *, status: int = 400) -> None:
        super().__init__(
            "A14",
            what,
            why="what is not understood wholly is not answered at all. Nothing was charged.",
            fix=fix,
        )
        self.status = status


def http_status(refusal: Refusal) -> int:
    """The HTTP status of a refusal.

    >>> from discreet.errors import DataRefusal
    >>> http_status(DataRefusal("D1", "...", why="...", fix="..."))
    424
    """
    if isinstance(refusal, Unreadable):
        return refusal.status
    return _STATUS.get(refusal.code) or _FAMILY.get(refusal.code[0], 422)


def refusal_response(refusal: Refusal) -> Response:
    """The response that says no."""
    status = http_status(refusal)
    headers = {"Cache-Control": "no-store"}
    if isinstance(refusal, Busy):
        headers["Retry-After"] = str(refusal.retry_after_s)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="discreet"'
    return Response(
        json.dumps(refusal.translate("http").to_json(), ensure_ascii=False).encode(),
        status,
        headers=headers,
        media_type="application/json",
    )


def failed_refusal() -> AccessRefusal:
    """What is said of a mistake in the program: nothing."""
    return AccessRefusal(
        "A18",
        "the server failed.",
        why="what went wrong could quote a person's row, so nothing more is said.",
        fix="report the time of the request to the curator; its log tells the kind and place.",
    )


def not_ready(what: str) -> AccessRefusal:
    """Starting, stopping, or waiting for an engine."""
    return AccessRefusal(
        "A17",
        what,
        why="a question that is charged should be answered. Nothing was charged.",
        fix="try again in a moment; with the same idempotency key nothing is paid twice.",
    )


def not_computed(what: str) -> AccessRefusal:
    """A question that was charged, and that no engine has computed."""
    return AccessRefusal(
        "A17",
        what,
        why="it was charged before anything was read; it stays paid, and nobody was shown "
        "anything of it.",
        fix="ask the same again in a moment: it is computed then, and nothing is paid twice.",
    )


def unknown_route(path: str) -> NoReturn:
    """There is no such address."""
    raise AccessRefusal(
        "A13",
        f"there is nothing at {path[:80]!r}.",
        why="no person's data is involved.",
        fix="see /v1/openapi.json for what there is.",
    )


__all__ = [
    "Unreadable",
    "failed_refusal",
    "http_status",
    "not_computed",
    "not_ready",
    "refusal_response",
    "unknown_route",
]
