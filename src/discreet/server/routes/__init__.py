"""The routes, one file for each topic."""

from __future__ import annotations

from discreet.server.routes import (
    account,
    datasets,
    evidence,
    identity,
    operation,
    people,
    public,
    questions,
    releases,
    runs,
    saved,
    sign_in,
    surveys,
)

ROUTERS = (
    public.router,
    operation.router,
    identity.router,
    sign_in.router,
    datasets.router,
    questions.router,
    releases.router,
    surveys.router,
    runs.router,
    runs.interviews,
    runs.choosing,
    account.router,
    saved.router,
    people.router,
    evidence.router,
)

__all__ = ["ROUTERS"]
