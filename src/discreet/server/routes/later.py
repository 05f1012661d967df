"""What may take longer than its asker waits: told now, or a work to come back for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from starlette.responses import Response

from discreet.server import models
from discreet.server.auth import Access
from discreet.server.sending import json_response
from discreet.server.works import Work

LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": models.Job, "description": "not computed yet: a work to come back for"}
}

Body = dict[str, Any]


async def start_work(
    access: Access, compute: Callable[[], Coroutine[Any, Any, Body]], wait_s: float
) -> Response:
    """Compute it; told now, or after ``wait_s`` a work to come back for."""
    return await send_work(
        access, access.dataset.works.start(access.grant.analyst, compute), wait_s
    )


async def send_work(access: Access, work: Work, wait_s: float) -> Response:
    """What a work found, if it takes no longer than that; or where it stands."""
    found = await work.wait(wait_s)
    if found is not None:
        return json_response(found)
    url = f"/v1/datasets/{access.dataset.name}/works/{work.token}"
    told = work.describe(access.dataset.settings.time_limit_s)
    return json_response(told, 202, headers={"Location": url})
