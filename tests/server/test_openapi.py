"""The interface against its own description: schemathesis makes the requests up.

No 5xx, every error in the one shape, every answer as described.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from patience import PATIENCE_S
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from typer.main import get_command

from discreet.cli import app
from discreet.server.settings import Settings

SHAPE = {"code", "title", "what", "why", "fix", "place", "rewriting"}
CHECKS = (
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def described(server):
    loaded = schemathesis.openapi.from_url(f"{server.url}/v1/openapi.json", timeout=PATIENCE_S)
    return {f"{o.ok().method.upper()} {o.ok().path}": o.ok() for o in loaded.get_all_operations()}


def _one_shape(response) -> None:
    if response.status_code >= 400:
        found = json.loads(response.content)
        assert set(found) <= SHAPE
        assert {"code", "title", "what", "why", "fix"} <= set(found)


def test_requests_made_up(server, described):
    assert len(described) >= 25
    keys = [server.datasets["clinic"].key, server.person(), server.person(role="auditor")]
    session = requests.Session()
    seen: Counter[int] = Counter()
    for name, operation in described.items():
        if name.endswith("/me/key"):
            continue  # it would take away the key of all others

        @settings(
            max_examples=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @_given(operation)
        def one(case):
            if "dataset" in (case.path_parameters or {}):
                case.path_parameters["dataset"] = "clinic"
            for key in keys[:1] if case.method == "POST" else keys:
                response = case.call(
                    base_url=server.url,
                    session=session,
                    timeout=PATIENCE_S,
                    headers={"Authorization": f"Bearer {key}"},
                )
                case.validate_response(response, checks=CHECKS)
                _one_shape(response)
                seen[response.status_code] += 1

        one()
    # It was let in, and refused in several ways: not only at the door.
    assert min(seen[200], seen[422], seen[404]) >= 10, seen


def _given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())


def test_the_description_has_examples_and_one_error(described, server):
    document = server.client.get("/v1/openapi.json").json()
    assert document["info"]["title"] == "discreet"
    assert document["components"]["schemas"]["Ask"]["examples"][0]["question"]
    assert document["components"]["schemas"]["Refusal"]["example"]["code"] == "Q1"
    for path, methods in document["paths"].items():
        for operation in methods.values():
            for status in ("4XX", "5XX"):
                shape = operation["responses"][status]["content"]["application/json"]["schema"]
                assert shape["$ref"].endswith("/Refusal"), path
            assert operation.get("summary")
            assert operation.get("description")


def test_every_route_has_a_heading(described):
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### ((?:GET|POST|PATCH|DELETE) \S+)$", page, re.MULTILINE))
    assert headings == set(described)


def test_every_option_is_documented_and_the_settings_shown_are_understood():
    """Every setting with its default is in docs/settings.md: ``test_settings_docs.py``."""
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    section = page.split("[server]")[1].split("```")[0]
    stated = tomllib.loads("[server]" + section)["server"]
    assert stated
    shown = Settings.of(stated)
    assert all(getattr(shown, name) != getattr(Settings(), name) for name in stated)
    options = set(re.findall(r"`(--[a-z-]+)", page.split("## Settings")[0]))
    declared = {name for p in get_command(app).commands["serve"].params for name in p.opts}
    assert options - {"--sample"} == {name for name in declared if name.startswith("--")}
