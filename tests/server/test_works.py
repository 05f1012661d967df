"""What is no question and takes a while: 202, and what was found for whoever comes back for it."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import Halted

CORK = "SELECT COUNT(*) FROM visits WHERE age > 61"
OLD = "SELECT COUNT(*) FROM visits WHERE age > 62"
CITIES = "SELECT city, COUNT(*) FROM visits WHERE age > 63 GROUP BY city"
CHECKS = {"ages": {"table": "visits", "property": "maximum", "column": "age", "bound": 103}}


@pytest.fixture(scope="module")
def slow_server(serving, tmp_path_factory):
    """Nothing that reads data is told before its deadline."""
    settings = "deadline_s = 0.2\nburst = 1000\nconcurrent = 50\nrate_per_minute = 100000"
    with serving(tmp_path_factory.mktemp("works"), settings) as found:
        yield found


def come_back(server, sent, key) -> dict:
    """What a request that was not waited for is answered with in the end."""
    while sent.status_code == 202:
        told = sent.json()
        assert told["state"] == "running"
        assert 0 <= told["progress"] <= 1
        assert sent.headers["Location"].endswith(f"/works/{told['id']}")
        sent = server.call("GET", f"works/{told['id']}?wait_s=30", key=key)
    return sent


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("choose", {"candidates": CITIES, "epsilon": "1/50"}, "chosen"),
        ("quality", {"checks": CHECKS, "epsilon": "1/50"}, "distances"),
    ],
)
def test_what_is_released_once_is_a_work(slow_server, path, body, told):
    server, key = slow_server, slow_server.person()
    sent = server.call("POST", path, {**body, "wait_s": 0}, key=key)
    assert sent.status_code == 202
    found = come_back(server, sent, key)
    assert found.status_code == 200
    assert found.json()[told]
    again = server.call("POST", path, {**body, "wait_s": 30}, key=key)
    assert again.json() == {**found.json(), "replayed": True}  # paid once, told once


def test_questions_of_runs_are_works_and_each_is_told_once(slow_server):
    server, key = slow_server, slow_server.person()
    opened = server.call("POST", "runs", {"threshold": 10**6, "epsilon": "1/50"}, key=key).json()
    path = f"runs/{opened['id']}/ask"
    first = {"question": CORK, "number": 0, "wait_s": 0}
    sent = server.call("POST", path, first, key=key)
    assert sent.status_code == 202
    found = come_back(server, sent, key).json()
    assert (found["asked"], found["verdicts"][0]["above"]) == (1, False)
    again = server.call("POST", path, {**first, "wait_s": 30}, key=key).json()
    assert again["verdicts"] == found["verdicts"]
    body = {"sensitivity": 6, "epsilon": "1/50"}
    talk = server.call("POST", "interviews", body, key=key).json()
    path = f"interviews/{talk['id']}/ask"
    told = [
        come_back(server, server.call("POST", path, {**first, "wait_s": wait_s}, key=key), key)
        for wait_s in (0, 30)
    ]
    assert told[0].json() == told[1].json()


def test_a_work_is_its_askers_own_and_a_refusal_is_told_to_who_comes_back(slow_server):
    server, key = slow_server, slow_server.person()
    body = {"candidates": "SELECT AVG(age) FROM visits", "epsilon": "1/50", "wait_s": 0}
    refused = come_back(server, server.call("POST", "choose", body, key=key), key)
    assert (refused.status_code, refused.json()["code"]) == (422, "Q48")
    body = {"candidates": CITIES, "epsilon": "1/60", "wait_s": 0}
    sent = server.call("POST", "choose", body, key=key).json()
    other = server.call("GET", f"works/{sent['id']}", key=slow_server.person())
    assert (other.status_code, other.json()["code"]) == (404, "A13")
    assert server.call("GET", "works/0123", key=key).status_code == 404
    assert server.call("POST", "choose", {**body, "wait_s": 61}, key=key).status_code == 422


def test_the_client_comes_back_and_sends_again_what_was_forgotten(slow_server, monkeypatch):
    monkeypatch.setattr(client, "_WAIT_S", 0.0)
    server = slow_server
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as remote:
        asked = []
        real = client._Connection.send

        def send(self, method, path, body):
            asked.append((method, path.split("/")[4].split("?")[0]))
            if len([one for one in asked if one[1] == "works"]) == 2:
                path = path.replace("/works/", "/works/forgotten")
            return real(self, method, path, body)

        monkeypatch.setattr(client._Connection, "send", send)
        found = remote.choose(CITIES, epsilon="1/70", k=2)
        assert len(found["chosen"]) == 2
        assert asked.count(("POST", "choose")) == 2
        assert remote.spent.epsilon == pytest.approx(1 / 70)
        with remote.interview(sensitivity=6, epsilon="1/70") as run:
            assert run.ask(CORK) == run.ask(CORK, number=0)
            with pytest.raises(Halted, match="H2"):
                [run.ask(OLD) for _ in range(4)]
        assert ("GET", "works") in asked
