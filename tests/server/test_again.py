"""Requests that were read before: told again without being read, and to nobody who may not ask."""

from __future__ import annotations

import itertools

import pytest
from patience import wait_until

from discreet.server.again import Again
from discreet.server.readings import BODY, ReadRequests

COUNT = "SELECT COUNT(*) AS n FROM visits"
AGES = itertools.count(1)
TRIES = 4
"""Asked, replayed, remembered as it is read, told without being read."""


@pytest.fixture
def short(server, monkeypatch):
    """How many requests were told without being read."""
    told = []
    long_way = Again._find

    def counted(self, key, read, way):
        found = long_way(self, key, read, way)
        if found[1] is not None:
            told.append(way)
        return found

    monkeypatch.setattr(Again, "_find", counted)
    return told


def body(**more):
    return {
        "question": f"{COUNT} WHERE age > {next(AGES)}",
        "epsilon": "1/50",
        "wait_s": 60,
        **more,
    }


def ask(server, sent, key=None, **more):
    return server.call("POST", "ask", sent, key=key, **more)


def test_the_same_bytes_are_told_the_same_without_being_read(server, short):
    sent = body()
    first, *others = [ask(server, sent) for _ in range(TRIES)]
    assert short == ["ask"]
    assert {one.status_code for one in (first, *others)} == {200}
    kept = others[-1]
    assert (kept.content, kept.headers) == (others[0].content, kept.headers)
    assert kept.json()["rows"] == first.json()["rows"]
    assert kept.json()["replayed"]
    names = ("content-type", "cache-control", "content-security-policy", "x-content-type-options")
    assert [kept.headers[n] for n in names] == [first.headers[n] for n in names]


def test_explanations_too(server, short):
    sent = {"question": f"{COUNT} WHERE age > {next(AGES)}", "epsilon": "1/50"}
    found = [server.call("POST", "explain", sent).content for _ in range(TRIES)]
    assert short == ["explain"] * (TRIES - 1)
    assert len(set(found)) == 1


def test_it_is_logged_and_counted_as_any_other(server, short):
    sent, key = body(), server.person()
    told = f'"route":"/v1/datasets/{{dataset}}/ask","status":200,"key":"{key.split("_")[1]}"'
    for _ in range(TRIES):
        ask(server, sent, key)
    assert short == ["ask"]
    wait_until(lambda: server.log.getvalue().count(told) == TRIES)  # written after the answer


def test_a_revoked_key_and_one_that_was_never_made_are_told_nothing(server, short):
    sent, key = body(), server.person()
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    assert short
    short.clear()
    assert server.call("DELETE", f"keys/{key.split('_')[1]}").status_code == 204
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    for one in (key, wrong, "nonsense"):
        found = ask(server, sent, one)
        assert (found.status_code, found.json()["code"]) == (401, "A10")
    assert not short


def test_who_is_disabled_or_only_audits_is_told_nothing(server, short):
    sent, name = body(), f"leaving{next(AGES)}"
    key, auditor = server.person(name=name), server.person(role="auditor")
    for _ in range(TRIES):
        assert ask(server, sent, key).status_code == 200
    short.clear()
    found = ask(server, sent, auditor)
    assert (found.status_code, found.json()["code"]) == (403, "A12")
    assert server.call("PATCH", f"analysts/{name}", {"disabled": True}).status_code == 200
    assert ask(server, sent, key).status_code == 401
    assert not short


def test_another_analyst_is_not_told_what_was_told_to_the_first(tmp_path, serving):
    """Where answers are not shared, the same bytes are another question of somebody else's."""
    with serving(tmp_path, shared=False) as server:
        sent, ada, bob = body(), server.person(), server.person()
        told = [ask(server, sent, ada).json() for _ in range(TRIES)][-1]
        assert told["replayed"]
        own = ask(server, sent, bob).json()
        assert not own["replayed"]
        assert own["id"] != told["id"]


def test_anything_recorded_since_takes_the_long_way(server, short):
    sent = body()
    for _ in range(TRIES):
        ask(server, sent)
    short.clear()
    server.person()  # a record
    assert ask(server, sent).json()["replayed"]
    assert not short


@pytest.mark.parametrize("change", ["accept", "retry", "query", "form"])
def test_a_request_that_says_more_is_read(server, short, change):
    sent = body()
    for _ in range(TRIES):
        ask(server, sent)
    short.clear()
    headers = {
        "accept": {"Accept": "text/csv"},
        "retry": {"Idempotency-Key": f"again-{next(AGES)}"},
    }.get(change)
    if change == "query":
        found = server.call("POST", "ask?paper=dark", sent)
    elif change == "form":
        found = ask(server, sent, headers={"Content-Type": "text/plain"})
    else:
        found = ask(server, sent, headers=headers)
    assert not short
    assert found.status_code == (422 if change == "form" else 200)
    assert found.headers["content-type"].startswith(
        "text/csv" if change == "accept" else "application/json"
    )


def test_the_rate_holds_for_what_is_not_read(tmp_path, serving):
    slow = "deadline_s = 0.05\nrate_per_minute = 0.01\nburst = 10"
    with serving(tmp_path, slow) as server:
        key, sent = server.person(), body()
        found = [ask(server, sent, key) for _ in range(12)]
        assert [one.status_code for one in found] == [200] * 10 + [429] * 2
        assert found[-1].json()["code"] == "A15"
        assert "retry-after" in found[-1].headers


def test_what_is_remembered_is_bounded():
    class Sent:
        def __init__(self, text: bytes) -> None:
            self.headers = {"content-type": "application/json"}
            self.scope = {
                "method": "POST",
                "path": "/v1/datasets/clinic/ask",
                "query_string": b"",
                BODY: text,
            }

    kept = ReadRequests(most_bytes=100_000)
    for number in range(1000):
        kept.keep(Sent(b"%04d" % number * 100), "clinic", None)
    assert 30 < len(kept._read) < 50
    assert kept._bytes <= 100_000
    newest = ("/v1/datasets/clinic/ask", "*/*", b"0999" * 100)
    assert kept.find(newest) is not None
    assert kept.find((*newest[:2], b"0000" * 100)) is None
