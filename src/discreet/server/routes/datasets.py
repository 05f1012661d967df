"""Datasets, their public part."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.release import record
from discreet.release.amounts import budget_json
from discreet.server import models
from discreet.server.auth import Anyone, Behind, Known
from discreet.server.declared import schema_json
from discreet.server.sending import ERRORS, RECORD, dumped, sent, wanted

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], responses=ERRORS)


@router.get("", response_model=models.Datasets)
async def datasets(caller: Known, house: Behind) -> Response:
    """The datasets that the key opens."""
    listed = []
    for name, grant in caller.grants.items():
        served = house.served[name]
        listed.append(
            {
                "name": name,
                "analyst": grant.analyst,
                "role": grant.role,
                "budget": budget_json(served.curator.budget),
                "tables": list(served.curator.schema.tables),
                "deadline_s": served.settings.deadline_s,
            }
        )
    return sent({"datasets": listed})


@router.get("/{dataset}", response_model=models.Schema)
async def schema(request: Request, seat: Anyone) -> Response:
    """Tables, columns, bounds, values, units: all that is known without asking."""
    declared = seat.served.curator.schema
    if wanted(request, "application/json", RECORD) == RECORD:
        exact = {
            "schema": record.to_json(declared),
            "budget": record.to_json(seat.served.curator.budget),
            "analyst": seat.grant.analyst,
            "role": seat.grant.role,
        }
        return Response(dumped(exact), media_type=RECORD)
    return sent(await run_in_threadpool(schema_json, seat.served.name, declared))
