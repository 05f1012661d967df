"""Datasets, their public part."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.curate.free_tables import list_free_tables
from discreet.release import record
from discreet.release.amounts import budget_json
from discreet.server import models
from discreet.server.auth import Anyone, Authenticated, Server
from discreet.server.declared import schema_json
from discreet.server.sending import ERRORS, RECORD, encode_json, json_response, negotiate

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], responses=ERRORS)


@router.get("", response_model=models.Datasets)
async def datasets(caller: Authenticated, server: Server) -> Response:
    """The datasets that the key opens."""
    listed = []
    for name, grant in caller.grants.items():
        dataset = server.datasets[name]
        listed.append(
            {
                "name": name,
                "analyst": grant.analyst,
                "role": grant.role,
                "budget": budget_json(dataset.curator.budget),
                "tables": list(dataset.curator.schema.tables),
                "deadline_s": dataset.settings.deadline_s,
            }
        )
    return json_response({"datasets": listed})


@router.get("/{dataset}", response_model=models.Schema)
async def schema(request: Request, access: Anyone) -> Response:
    """Tables, columns, bounds, values, units: all that is known without asking."""
    declared = access.dataset.curator.schema
    if negotiate(request, "application/json", RECORD) == RECORD:
        exact = {
            "schema": record.to_json(declared),
            "budget": record.to_json(access.dataset.curator.budget),
            "analyst": access.grant.analyst,
            "role": access.grant.role,
        }
        return Response(encode_json(exact), media_type=RECORD)

    def tell() -> Response:
        free = list_free_tables(access.dataset.curator)
        return json_response(schema_json(access.dataset.name, declared, free))

    return await run_in_threadpool(tell)
