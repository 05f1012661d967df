"""For curators and auditors: the ledger's records, their verification, checkpoints."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from discreet.ledger import Checkpoint
from discreet.server import models
from discreet.server.auth import Access, Curating, Reader, Server
from discreet.server.refusals import Unreadable
from discreet.server.sending import ERRORS, json_response

router = APIRouter(prefix="/v1/datasets/{dataset}", tags=["evidence"], responses=ERRORS)


@router.get("/records", response_model=models.Records)
async def records(
    access: Reader,
    after: Annotated[int, Query(ge=0, le=10**15, description="the record before the first")] = 0,
    before: Annotated[
        int | None,
        Query(ge=1, le=10**15, description="the record after the last; instead of after"),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="how many at most")] = 200,
) -> Response:
    """Records of the ledger after a number, in order; those of other datasets are left out.

    Given ``before``, the last ones before that number instead: the newest, for a large one.
    """
    return json_response(await run_in_threadpool(_list_records, access, after, limit, before))


def _list_records(
    access: Access, after: int, limit: int, before: int | None = None
) -> dict[str, Any]:
    ledger = access.dataset.curator.ledger
    if before is not None:
        before = min(before, ledger.last + 1)
        after, limit = max(0, before - 1 - limit), min(limit, before - 1)
    found = ledger.records(after=after, limit=limit) if limit else ()
    own = access.dataset.account.dataset
    return {
        "records": [
            {
                "sequence": record.sequence,
                "kind": record.kind,
                "at": record.at,
                "analyst": record.analyst,
                "body": record.content,
                "digest": record.digest,
            }
            for record in found
            if record.dataset == own or record.kind in ("ledger", "checkpoint")
        ],
        "first": found[0].sequence if found else after + 1,
        "last": found[-1].sequence if found else after,
    }


@router.post("/verify", response_model=models.Verification)
async def verify(access: Reader) -> Response:
    """Check the ledger from its first record to its last."""
    found = await run_in_threadpool(access.dataset.curator.ledger.verify)
    return json_response(
        {
            "holds": found.ok,
            "records": found.records,
            "head": found.head,
            "findings": list(found.problems),
            "text": str(found),
        }
    )


@router.get("/checkpoints", response_model=models.Checkpoints)
async def checkpoints(access: Reader) -> Response:
    """The checkpoints beside the ledger, oldest first."""
    found = await run_in_threadpool(access.dataset.curator.ledger.checkpoints)
    return json_response({"checkpoints": [_checkpoint_json(one) for one in found]})


@router.post("/checkpoints", status_code=201, response_model=models.Checkpoint)
async def checkpoint(access: Curating, server: Server) -> Response:
    """Sign the newest record; give the checkpoint to somebody who does not hold the ledger."""
    key = server.signing_key
    if key is None:
        raise Unreadable(
            "this server has no key to sign checkpoints with.",
            "start it with --signing-key FILE, or sign where the key is: discreet ledger "
            "checkpoint.",
            status=409,
        )
    made = await run_in_threadpool(access.dataset.curator.ledger.checkpoint, key)
    return json_response(_checkpoint_json(made), 201)


def _checkpoint_json(checkpoint: Checkpoint) -> dict[str, Any]:
    told = checkpoint.to_json()
    return {name: told[name] for name in ("sequence", "digest", "at", "signature", "public_key")}
