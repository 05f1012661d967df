"""docs/api.md: every body it shows is sent, and answered as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from masking import find_far_json, mask_json

from discreet.ledger import keys as access
from discreet.local.collection import Collection
from discreet.local.survey import Survey

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
ROUTE = re.compile(r"^### ((?:GET|POST|PATCH|DELETE) \S+)$", re.MULTILINE)
BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r'`(\{".*?\})`(?: → (\d+))?')
COUNT = "SELECT COUNT(*) AS n FROM visits"
SURVEY = """
name = "smoking"
title = "Smoking"
epsilon = 6
[[questions]]
name = "smokes"
options = ["never", "daily"]
"""
SETTINGS = """
[groups.staff]
limit = { epsilon = 5, delta = 1e-9 }
[surveys]
smoking = "../smoking"
"""
WITHIN = "POST /v1/datasets/{dataset}/explain"
"""Where what stands in the line is a part of a body: a margin for each number."""
PLACES = {"{dataset}": "clinic", "{name}": "ana", "{survey}": "smoking"}


class Example(NamedTuple):
    """A body that the page shows, and what it says is answered."""

    route: str
    body: Any
    status: int | None
    answer: Any


def read_examples() -> Iterator[Example]:
    before, *parts = ROUTE.split(PAGE)
    body, answer = map(json.loads, BLOCK.findall(before))
    yield Example("POST /v1/datasets/{dataset}/ask", body, 422, answer)
    for route, text in zip(parts[::2], parts[1::2], strict=True):
        shown = [json.loads(block) for block in BLOCK.findall(text)]
        if shown:
            body = None if route.startswith("GET") else shown.pop(0)
            (answer,) = shown
            yield Example(route, body, 200, answer)
        for found, status in INLINE.findall(BLOCK.sub("", text)):
            body = json.loads(found)
            if route == WITHIN:
                body = {"question": COUNT, "within": body}
            yield Example(route, body, int(status) if status else None, None)


EXAMPLES = list(read_examples())


@pytest.fixture(scope="module")
def served(start, make_dataset, tmp_path_factory):
    """A clinic as the page supposes it, and another one of a curator who has both."""
    home = tmp_path_factory.mktemp("page")
    survey = Survey.parse(SURVEY)
    collection = Collection.new(survey, home / "smoking", tokens=2)
    collection.add(survey.release_many({"smokes": ["never"] * 60 + ["daily"] * 40}))
    made = {name: make_dataset(home / name, more=SETTINGS) for name in ("clinic", "other")}
    with start(made) as server:
        yield server


def prepare(served: Any) -> None:
    """What the bodies in the lines of the page are about: they come after the others."""
    release = {"of": "visits", "settings": {"epsilon": "0.5", "columns": ["city"]}}
    steps = {"of": "visits", "settings": {"epsilon": "0.5", "by": ["city"]}}
    for name, kind, body in (("visits_2026", "marginals", release), ("steps", "counter", steps)):
        wanted = {"name": name, "kind": kind, **body}
        assert served.call("POST", "releases", wanted).status_code == 201
    for number in (1, 2):
        assert served.call("POST", "releases/steps/step", {"number": number}).status_code == 200
    assert served.call("POST", "analysts", {"name": "ana"}, dataset="other").status_code == 201


def find_key(served: Any, example: Example) -> str:
    """Whose key is sent: a curator's, who has both clinics if both are named."""
    if example.route.endswith("/me/key"):
        return str(served.person())  # it opens nothing any more
    key: str = served.datasets["clinic"].key
    if "also" in (example.body or {}):
        key = served.person(name="both", role="curator")
        other = served.state.datasets["other"].account
        other.add_analyst("both", role="curator")
        access.grant_key(other, "both", key)
    return key


def send(served: Any, example: Example) -> Any:
    method, path = example.route.split()
    for place, name in PLACES.items():
        path = path.replace(place, name)
    path = path.replace("{release}", "steps" if path.endswith("/step") else "visits_2026")
    return served.call(method, path, example.body, key=find_key(served, example))


def is_part(shown: Any, told: Any) -> bool:
    """Whether what is shown was told, but for fields that are left out."""
    match shown, told:
        case dict(), dict():
            return all(name in told and is_part(one, told[name]) for name, one in shown.items())
        case list(), list():
            return len(shown) == len(told) and all(map(is_part, shown, told))
        case _:
            return type(shown) is type(told) and bool(shown == told)


def test_what_the_page_shows_is_what_is_answered(served):
    shown = [one for one in EXAMPLES if one.answer is not None]
    assert len(shown) == 5
    for one in shown:
        told = send(served, one)
        assert told.status_code == one.status, told.text
        assert is_part(mask_json(one.answer), mask_json(told.json())), (one.route, told.text)
        assert find_far_json(one.answer, told.json()) == [], (one.route, told.text)


def test_bodies_in_the_lines_of_the_page_are_understood(served):
    named = [one for one in EXAMPLES if one.answer is None]
    assert len(named) >= 11
    prepare(served)
    for one in named:
        told = send(served, one)
        assert told.status_code in ([one.status] if one.status else [200, 201]), told.text


def test_the_refusal_of_the_description_is_the_one_of_the_page(served):
    document = served.client.get("/v1/openapi.json").json()
    example = document["components"]["schemas"]["Refusal"]["example"]
    assert is_part({key: one for key, one in example.items() if key != "fix"}, EXAMPLES[0].answer)


@pytest.mark.parametrize(
    ("shown", "told", "same"),
    [
        ({"n": 1}, {"n": 1, "m": 2}, True),
        ({"n": 1}, {"n": 2}, False),
        ({"n": 1}, {"m": 1}, False),
        ({"n": None}, {}, False),
        ({"n": False}, {"n": 0}, False),
        ([{"n": 1}], [{"n": 1}, {"n": 1}], False),
    ],
)
def test_a_field_that_differs_is_noticed(shown, told, same):
    assert is_part(shown, told) is same


@pytest.mark.parametrize(
    ("old", "new"), [("975]", "12]"), ("1065.0", "12.0"), ('"1,018 ±', '"12 ±'), ("640", "-640")]
)
def test_a_number_that_no_chance_explains_is_noticed(old, new):
    assert PAGE.count(old) >= 1
    shown = [one.answer for one in EXAMPLES if one.answer is not None]
    told = json.loads(json.dumps(shown, ensure_ascii=False).replace(old, new))
    assert find_far_json(shown, shown) == []
    assert find_far_json(shown, told)
