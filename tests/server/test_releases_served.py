"""Releases over HTTP: listed, shown, and asked for free by whoever has a key."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S

import discreet


@pytest.fixture
def released(server):
    """A release that the holder of the folder makes while the server runs."""
    home = server.datasets["clinic"].home
    with discreet.open(home) as curator:
        curator.make_release("cities", of="visits", kind="hierarchy", by=["city"], epsilon="0.01")
    return server


def test_a_release_is_listed_shown_and_asked_for_free(released):
    key = released.person()
    listed = released.call("GET", "releases", key=key).json()["releases"]
    assert {"name": "cities", "kind": "hierarchy", "of": "visits"} in listed
    said = released.call("GET", "releases/cities", key=key).json()
    assert said["promise"]["unit"] == "patient"
    before = released.call("GET", "balance", key=key).json()
    question = "SELECT city, COUNT(*) AS n FROM cities GROUP BY city"
    told = released.call("POST", "releases/cities/ask", {"question": question}, key=key).json()
    assert [row[0] for row in told["rows"]] == ["Aalborg", "Bergen", "Cork"]
    assert {one["promise"] for one in told["margins"]["n"]} == {"exact"}
    assert released.call("GET", "balance", key=key).json() == before
    with discreet.connect(released.url, timeout_s=PATIENCE_S, key=key) as clinic:
        assert {one["name"] for one in clinic.releases()} >= {"cities"}
        assert clinic.ask_release("cities", question)["rows"] == told["rows"]


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("releases/nothing/ask", "SELECT COUNT(*) FROM nothing"),
        ("releases/..%2Fledger/ask", "SELECT COUNT(*) FROM ledger"),
        ("releases/cities/ask", "SELECT COUNT(*) FROM visits"),
        ("releases/cities/ask", "SELECT * FROM read_csv('/etc/passwd')"),
    ],
)
def test_nothing_but_a_release_is_asked_there(released, path, question):
    answer = released.call("POST", path, {"question": question}, key=released.person())
    assert 400 <= answer.status_code < 500
    assert "rows" not in answer.json()
