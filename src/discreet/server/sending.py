"""Responses: JSON that is JSON everywhere, and the form that the client asked for."""

from __future__ import annotations

import json
import math
from typing import Any

from fastapi import Request
from starlette.responses import Response

from discreet.server import models
from discreet.server.refusals import Unreadable

ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
RECORD = "application/vnd.discreet+json"
"""The exact form, which the Python client reads."""

ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": models.Refusal, "description": "a refusal"},
    "5XX": {"model": models.Refusal, "description": "a refusal"},
}


def encode_json(value: Any) -> bytes:
    """``value`` as JSON; a number that JSON does not have becomes null."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return value


def json_response(
    value: Any, status: int = 200, *, headers: dict[str, str] | None = None
) -> Response:
    """A JSON response."""
    return Response(encode_json(value), status, headers=headers, media_type="application/json")


def negotiate(request: Request, *offered: str) -> str:
    """The first of ``offered`` that the client accepts most; the first of all if it says nothing.

    A refusal is JSON whatever was accepted.
    """
    accepted: list[tuple[float, str]] = []
    for part in request.headers.get("accept", "*/*").split(","):
        kind, _, rest = part.strip().partition(";")
        accepted.append((_weight(rest), kind.strip().lower()))
    for weight, kind in sorted(accepted, key=lambda pair: -pair[0]):
        for one in offered if weight > 0 else ():
            family = f"{one.split('/')[0]}/*"
            if kind in (one, family, "*/*"):
                return one
    raise Unreadable(
        "none of the accepted forms is offered here.",
        f"accept one of {', '.join(offered)}.",
        status=406,
    )


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def parse_id(name: str, what: str) -> int:
    """The number in an address."""
    from discreet.ledger.keys import nothing_here

    if not (name.isascii() and name.isdigit() and len(name) <= 18):
        raise nothing_here(what, name[:40])
    return int(name)
