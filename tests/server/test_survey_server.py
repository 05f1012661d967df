"""The server that receives reports: hostile senders, and what a hostile server could keep."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from discreet.local.collection import Collection
from discreet.local.survey import Survey
from discreet.server.survey import MOST_BODY, survey_application

TEXT = """
name = "smoking"
epsilon = 2
[[questions]]
name = "smokes"
options = ["never", "sometimes", "daily"]
[[questions]]
name = "sleep"
lower = 0
upper = 14
"""
ANSWERS = {"smokes": "daily", "sleep": 6}


@pytest.fixture
def collection(tmp_path) -> Collection:
    return Collection.new(Survey.parse(TEXT), tmp_path / "smoking", tokens=9)


class Client:
    """Requests straight to the application."""

    def __init__(self, app):
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def request(self, method, path, **options) -> httpx.Response:
        async def ask():
            async with httpx.AsyncClient(transport=self.transport, base_url="http://x") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, **options):
        return self.request("POST", path, **options)


@pytest.fixture
def client(collection) -> Client:
    return Client(survey_application(collection))


def sent(collection, **changes):
    survey = collection.survey
    return {
        "survey": survey.fingerprint,
        "token": collection.tokens()[0],
        "report": survey.release(ANSWERS),
        **changes,
    }


def test_the_page_is_served_byte_for_byte(client, collection):
    reply = client.get("/")
    assert reply.content == collection.page
    assert "set-cookie" not in reply.headers
    assert client.get("/survey.json").json()["page_sha256"] == collection.page_hash


def test_a_report_is_kept_once(client, collection):
    body = sent(collection)
    assert client.post("/report", json=body).status_code == 201
    again = client.post("/report", json=body)
    assert again.status_code == 409
    assert again.json()["code"] == "A16"
    assert collection.reports() == [body["report"]]
    assert again.headers["access-control-allow-origin"] == "*"
    assert client.request("OPTIONS", "/report").status_code == 204


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "x" * 20},
        {"token": 7},
        {"token": "x" * 1000},
        {"token": "\ud800"},
        {"survey": "another"},
        {"report": [3, 0]},
        {"report": [0]},
        {"report": [0, -1]},
        {"report": [0, 1e9]},
        {"report": "daily"},
        {"report": None},
        {"address": "127.0.0.1"},
    ],
)
def test_what_no_page_sends_is_refused_and_costs_nothing(client, collection, changes):
    reply = client.post("/report", content=json.dumps(sent(collection, **changes)))
    assert 400 <= reply.status_code < 500
    assert set(reply.json()) >= {"code", "what", "why", "fix"}
    assert "daily" not in reply.text
    assert collection.reports() == []
    assert client.post("/report", json=sent(collection)).status_code == 201


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 60_000, b"\xff", b"{}", b"[]", b"3"])
def test_unreadable_bodies(client, collection, body):
    reply = client.post("/report", content=body)
    assert reply.status_code == 400
    assert reply.json()["code"] == "A14"


def test_a_body_without_end_is_not_read_to_its_end(client):
    reply = client.post("/report", content=b" " * (MOST_BODY + 1))
    assert reply.status_code == 413


def test_the_results_of_reports(client, collection):
    assert "No reports yet" in client.get("/results").text
    collection.add([collection.survey.release(ANSWERS) for _ in range(50)])
    page = client.get("/results")
    assert "50 reports" in page.text
    assert "<script" not in page.text
    smokes, sleep = client.get("/results.json").json()
    assert [one["answer"] for one in smokes["estimates"]] == ["never", "sometimes", "daily"]
    assert sleep["kind"] == "mean"


def test_looking_often_is_computed_once(client, collection, monkeypatch):
    """Attack: ask for the results without end, so that nobody's report gets a thread."""
    collection.add([collection.survey.release(ANSWERS) for _ in range(5)])
    read, plain = [], Collection.reports
    monkeypatch.setattr(Collection, "reports", lambda self: read.append(1) or plain(self))
    for _ in range(4):
        assert "5 reports" in client.get("/results").text
    assert len(read) == 1
    assert client.post("/report", json=sent(collection)).status_code == 201
    assert "6 reports" in client.get("/results").text
    assert len(read) == 2


def test_a_page_changed_while_served_is_neither_served_nor_vouched_for(client, collection):
    told = client.get("/survey.json").json()["page_sha256"]
    (collection.directory / "page.html").write_text("<script>another()</script>")
    assert "another()" not in client.get("/").text
    assert client.get("/survey.json").json()["page_sha256"] == told


def test_a_mistake_says_nothing(client, collection, monkeypatch):
    def broken(*_):
        raise RuntimeError("canary 8675309")

    monkeypatch.setattr(collection, "receive", broken)
    reply = client.post("/report", json=sent(collection))
    assert reply.status_code == 500
    assert "8675309" not in reply.text


def test_nothing_but_the_report_reaches_the_disk(client, collection):
    """Headers and addresses of the sender are in no file of the survey."""
    headers = {"User-Agent": "canary-agent-8675309", "X-Forwarded-For": "203.0.113.77"}
    assert client.post("/report", json=sent(collection), headers=headers).status_code == 201
    for file in collection.directory.iterdir():
        content = file.read_bytes()
        assert b"8675309" not in content
        assert b"203.0.113.77" not in content
    assert json.dumps(collection.reports())
