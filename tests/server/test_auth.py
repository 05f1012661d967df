"""The lock: keys, roles, scopes, ids of others, rates, and no open line."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest

from discreet.curate.session import read
from discreet.errors import AccessRefusal
from discreet.ledger import keys as access
from discreet.server import limits
from discreet.server.listen import check_line

CURATOR_ONLY = [
    ("POST", "analysts", {"name": "eve"}),
    ("PATCH", "analysts/curator", {"limit": None}),
    ("POST", "analysts/curator/keys", {}),
    ("DELETE", "keys/0123456789abcdef", None),
    ("POST", "checkpoints", None),
    ("POST", "releases", {"name": "a", "of": "visits", "settings": {"epsilon": "1/50"}}),
    ("POST", "releases/plan", {"name": "a", "of": "visits", "settings": {"epsilon": "1/50"}}),
    (
        "POST",
        "releases/plan_all",
        {"release": [{"name": "a", "kind": "synthetic", "of": "visits"}]},
    ),
    (
        "POST",
        "releases/make_all",
        {"release": [{"name": "a", "kind": "synthetic", "of": "visits"}]},
    ),
    ("POST", "releases/folder", {"releases": ["a"]}),
    ("POST", "releases/a/step", {}),
]
READERS = [
    ("GET", "analysts", None),
    ("GET", "records", None),
    ("POST", "verify", None),
    ("GET", "checkpoints", None),
]
ASKERS = [
    ("POST", "ask", {"question": "SELECT COUNT(*) FROM visits", "epsilon": "1/50"}),
    ("POST", "ask_all", {"questions": ["SELECT COUNT(*) FROM visits"], "epsilon": "1/50"}),
    ("POST", "explain", {"question": "SELECT COUNT(*) FROM visits", "epsilon": "1/50"}),
    ("POST", "curve", {"question": "SELECT COUNT(*) FROM visits"}),
    ("GET", "saved", None),
    ("POST", "saved", {"name": "all", "question": "SELECT COUNT(*) FROM visits"}),
    ("DELETE", "saved/1", None),
    ("POST", "runs", {"threshold": 100, "epsilon": "1/50"}),
    ("POST", "runs/1/ask", {"question": "SELECT COUNT(*) FROM visits"}),
    ("POST", "runs/explain", {"threshold": 100, "epsilon": "1/50"}),
    ("DELETE", "runs/1", None),
    ("POST", "quality", {}),
    ("POST", "median", {}),
    ("POST", "interviews", {}),
    ("POST", "learn", {}),
    ("POST", "interviews/1/ask", {}),
    ("DELETE", "interviews/1", None),
    ("GET", "works/1", None),
    ("POST", "choose", {"candidates": "SELECT COUNT(*) FROM visits", "epsilon": "1/50"}),
]


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return True


def test_wrong_role(server):
    analyst, auditor = server.person(), server.person(role="auditor")
    denied = itertools.chain(
        ((route, analyst) for route in CURATOR_ONLY + READERS),
        ((route, auditor) for route in CURATOR_ONLY + ASKERS),
    )
    for (method, path, body), key in denied:
        assert refused(server.call(method, path, body, key=key), 403, "A12"), path
    for method, path, _ in READERS:
        assert server.call(method, path, key=auditor).status_code == 200, path
    for query in (f"{path}?analyst=curator" for path in ("balance", "transcript", "spending")):
        assert refused(server.call("GET", query, key=analyst), 403, "A12")
        assert server.call("GET", query, key=auditor).status_code == 200


def test_every_route_is_in_one_of_the_lists(server):
    """A new route must say who may use it: here, and in its own signature."""
    routes = server.client.get("/v1/openapi.json").json()["paths"]
    known = {(m, p.split("/")[0]) for m, p, _ in CURATOR_ONLY + READERS + ASKERS}
    everyone = {
        *(("GET", "jobs"), ("GET", "answers"), ("GET", "balance"), ("GET", "transcript")),
        ("GET", "interviews"),
        *(("GET", "surveys"), ("POST", "surveys")),
        *(("GET", "runs"), ("GET", "spending"), ("GET", "releases"), ("POST", "releases")),
    }
    prefix = "/v1/datasets/{dataset}/"
    found = {
        (method.upper(), path.removeprefix(prefix).split("/")[0])
        for path, methods in routes.items()
        if path.startswith(prefix)
        for method in methods
    }
    assert found == known | everyone


@pytest.mark.parametrize("path", ["/v1/me", "/v1/datasets", "/v1/datasets/clinic/balance"])
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Basic Y3VyYXRvcjp4",
        "Bearer discreet_0123456789abcdef_" + "0" * 64,
        "Bearer discreet_" + "é" * 16,
        "Bearer " + "x" * 5000,
    ],
)
def test_no_key_or_a_false_one(server, path, header):
    headers = {} if header is None else {"Authorization": header.encode()}
    assert refused(server.client.get(path, headers=headers), 401, "A10")


PUBLIC = {
    *("/v1/meaning", "/v1/meaning.svg", "/healthz", "/readyz"),
    *("/v1/sign-in", "/v1/sign-in/begin", "/v1/sign-in/callback"),
}


def test_every_other_route_needs_a_key(server):
    """Before anything else is looked at: the body, the name of the dataset, the id."""
    for path, methods in server.client.get("/v1/openapi.json").json()["paths"].items():
        for method in methods if path not in PUBLIC else ():
            place = re.sub(r"\{\w+\}", "1", path)
            assert refused(server.client.request(method, place), 401, "A10"), path


def test_metrics_are_for_curators_and_auditors_of_their_datasets(server):
    """Which questions failed, and how many were asked, is not for everybody to count."""
    assert refused(server.client.get("/metrics"), 401, "A10")
    assert refused(server.call("GET", "/metrics", key=server.person()), 403, "A12")
    for key in (server.datasets["clinic"].key, server.person(role="auditor")):
        text = server.call("GET", "/metrics", key=key).text
        assert 'discreet_worker_starts_total{dataset="clinic"}' in text
        assert "damaged" not in text
        assert "missing" not in text


def test_a_key_for_several_datasets(server):
    """Of those that their curator curates, each named once or more."""
    key = server.person(name="two", role="curator")
    damaged = server.state.datasets["damaged"].account
    damaged.add_analyst("two", role="curator")
    access.grant_key(damaged, "two", key)
    for dataset in ("clinic", "damaged"):
        made = server.call("POST", "analysts", {"name": "of-two"}, key=key, dataset=dataset)
        assert made.status_code == 201
    wanted = {"also": ["damaged", "clinic", "damaged"]}
    new = server.call("POST", "analysts/of-two/keys", wanted, key=key)
    assert new.status_code == 201, new.text
    opened = server.call("GET", "/v1/me", key=new.json()["key"]).json()["datasets"]
    assert [(one["name"], one["role"]) for one in opened] == [
        *(("clinic", "analyst"), ("damaged", "analyst")),
    ]


def test_too_many_tries_without_a_key(server, monkeypatch):
    """An address that tries keys is refused before a ledger is asked; known keys still come in."""
    key, new = server.person(), server.person()
    assert server.call("GET", "/v1/me", key=key).status_code == 200
    monkeypatch.setattr(server.state, "strangers", limits.Strangers(per_minute=1e-3, burst=3))
    server.state.strangers.came_in(access.key_id(key))
    false = "discreet_0123456789abcdef_" + "0" * 64
    assert [server.call("GET", "/v1/me", key=false).status_code for _ in range(3)] == [401] * 3
    assert server.call("GET", "/v1/me", key=key).status_code == 200
    monkeypatch.setattr(type(server.state), "identify", _asked)
    for one in (false, new, "x"):
        busy = server.call("GET", "/v1/me", key=one)
        assert refused(busy, 429, "A15")
        assert int(busy.headers["retry-after"]) >= 1


def _asked(*_):
    raise AssertionError("a ledger was asked")


def test_what_needs_no_key_is_limited_too(server, monkeypatch):
    monkeypatch.setattr(server.state, "visitors", limits.Rate(per_minute=1e-3, burst=2))
    told = [server.client.get(f"/v1/meaning{kind}").status_code for kind in ("", ".svg", "")]
    assert told == [200, 200, 429]


def test_a_key_differing_in_one_place_opens_nothing(server):
    key = server.person()
    for place in (10, 26, 60, len(key) - 1):
        other = key[:place] + ("0" if key[place] != "0" else "1") + key[place + 1 :]
        assert refused(server.call("GET", "/v1/me", key=other), 401, "A10")
    assert server.call("GET", "/v1/me", key=key).status_code == 200


def test_others_answer_id(server, fresh):
    """What is not yours and what does not exist sound the same."""
    (question,) = fresh()
    owner, other = server.person(), server.person()
    number = server.ask(question, key=owner).json()["id"]
    for path in (f"answers/{number}", f"answers/{number}/certificate", f"jobs/{number}"):
        assert server.call("GET", path, key=owner).status_code == 200
        theirs = server.call("GET", path, key=other)
        nothing = server.call("GET", path.replace(number, "999999999"), key=other)
        assert refused(theirs, 404, "A13")
        assert theirs.text.replace(number, "N") == nothing.text.replace("999999999", "N")
        assert server.call("GET", path).status_code == 200  # the curator sees all
    for strange in ("0", "-1", "1e3", "１", "9" * 30, "x", "%00", "1;DROP"):
        assert refused(server.call("GET", f"answers/{strange}", key=owner), 404, "A13")


def test_an_answer_of_another_dataset(server, fresh):
    """The number of a charge in one dataset opens nothing through another."""
    (question,) = fresh()
    number = server.ask(question).json()["id"]
    key = server.datasets["clinic"].key
    assert refused(server.call("GET", f"answers/{number}", key=key, dataset="damaged"), 404, "A13")
    charge = server.call("GET", "records?limit=1000", dataset="damaged").json()["records"]
    assert all(question not in str(record) for record in charge)


class Later(datetime):
    """A clock that is three hours ahead."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(hours=3)


def test_expired_key(server, monkeypatch):
    soon = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    made = server.call("POST", "analysts", {"name": "brief"})
    assert made.status_code == 201
    key = server.call("POST", "analysts/brief/keys", {"expires": soon}).json()["key"]
    assert server.call("GET", "/v1/me", key=key).status_code == 200
    with monkeypatch.context() as later:
        later.setattr(access, "datetime", Later)
        assert refused(server.call("GET", "/v1/me", key=key), 401, "A11")
    past = server.call("POST", "analysts/brief/keys", {"expires": "2020-01-01T00:00:00Z"})
    assert refused(past, 422, "P2")


def test_a_revoked_key_is_dead_at_once(server):
    """Also when another process revokes it."""
    key = server.person()
    assert server.call("DELETE", f"keys/{access.key_id(key)}").status_code == 204
    assert refused(server.call("GET", "/v1/me", key=key), 401, "A10")
    other = server.person()
    with read(server.datasets["clinic"].home).ledger() as ledger:
        (name,) = ledger.datasets()
        served = server.state.datasets["clinic"].curator
        account = ledger.account(name, schema=served.schema, budget=served.budget)
        account.revoke_key(access.key_id(other))
    assert refused(server.call("GET", "/v1/me", key=other), 401, "A10")


def test_a_disabled_analyst_is_out(server):
    key = server.person()
    name = server.call("GET", "/v1/me", key=key).json()["datasets"][0]["analyst"]
    assert server.call("PATCH", f"analysts/{name}", {"disabled": True}).json()["disabled"]
    assert refused(server.call("GET", "balance", key=key), 401, "A10")


def test_rotation(server):
    old = server.person()
    made = server.call("POST", "/v1/me/key", {}, key=old).json()
    new = made["key"]
    assert made["expires"] is None
    assert refused(server.call("GET", "/v1/me", key=old), 401, "A10")
    assert server.call("GET", "/v1/me", key=new).json()["key"] == access.key_id(new)
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    name = server.call("GET", "/v1/me", key=new).json()["datasets"][0]["analyst"]
    brief = server.call("POST", f"analysts/{name}/keys", {"expires": until}).json()["key"]
    assert server.call("POST", "/v1/me/key", {}, key=brief).json()["expires"] == until


def test_renewing_a_key_renews_no_limit(server):
    """Neither how often it may ask, nor how many records it may add to the ledger."""
    key = server.person()
    for _ in range(10):
        key = server.call("POST", "/v1/me/key", {}, key=key).json()["key"]
    last = server.call("POST", "/v1/me/key", {}, key=key)
    assert refused(last, 429, "A15")
    assert server.call("GET", "/v1/me", key=key).status_code == 200
    buckets = server.state.datasets["clinic"].rate._buckets
    before = len(buckets)
    server.call("GET", "balance", key=key)
    server.call("GET", "balance", key=key)
    assert len(buckets) <= before + 1
    assert access.key_id(key) not in buckets


def test_scopes(server):
    """A key opens the datasets it was put into, by a curator of each."""
    for name in ("clinic", "damaged"):
        server.call("POST", "analysts", {"name": "both"}, dataset=name)
    one = server.call("POST", "analysts/both/keys", {}).json()["key"]
    assert refused(server.call("GET", "balance", key=one, dataset="damaged"), 404, "A13")
    also = {"also": ["damaged"]}  # the clinic's curator is nobody in the other
    assert refused(server.call("POST", "analysts/both/keys", also), 404, "A13")


def test_keys_are_not_in_the_ledger(server):
    key = server.person()
    home = server.datasets["clinic"].home
    held = b"".join(file.read_bytes() for file in home.iterdir() if file.is_file())
    assert access.digest(key).encode() in held
    assert key.encode() not in held
    assert key[-64:].encode() not in held


def test_keys_are_long_and_compared_in_constant_time(monkeypatch, server):
    key = server.person()
    assert re.fullmatch(r"discreet_[0-9a-f]{16}_[0-9a-f]{64}", key)  # 256 bits
    compared = []
    real = access.hmac.compare_digest
    monkeypatch.setattr(
        access.hmac, "compare_digest", lambda a, b: compared.append(len(b)) or real(a, b)
    )
    accounts = server.state.accounts
    access.identify(accounts, key)
    with pytest.raises(AccessRefusal):
        access.identify(accounts, "discreet_0123456789abcdef_" + "0" * 64)
    assert compared == [64] * 2 * len(accounts)  # as often for a key that does not exist


def test_rate_and_concurrency(tmp_path, fresh, serving, monkeypatch):
    # Nothing ends before its deadline, and the rate allows no other within the hour: however slow
    # the machine is, all questions are under way at once.  Closing does not wait for them.
    monkeypatch.setattr(import_module("discreet.server.state"), "GRACE_S", 0.0)
    tight = "rate_per_minute = 0.01\nburst = 5\nconcurrent = 2\ndeadline_s = 3600\nqueue = 3"
    with serving(tmp_path, tight) as server:
        keys = [server.person() for _ in range(2)]
        jobs = [_posted(server, question, keys[0]) for question in fresh(3)]
        assert [job.status_code for job in jobs] == [202, 202, 429]
        assert refused(jobs[-1], 429, "A15")
        assert int(jobs[-1].headers["retry-after"]) >= 1
        assert _posted(server, fresh()[0], keys[1]).status_code == 202
        full = _posted(server, fresh()[0], keys[1])
        assert refused(full, 429, "A15")  # the queue is full
        statuses = [server.call("GET", "balance", key=keys[1]).status_code for _ in range(8)]
        assert statuses[:2] == [200, 200]
        assert statuses[-1] == 429


def _posted(server, question, key):
    body = {"question": question, "epsilon": "1/50", "wait_s": 0}
    return server.call("POST", "ask", body, key=key)


def test_no_open_line():
    for host in ("0.0.0.0", "::", "192.168.1.7", "clinic.example", ""):
        with pytest.raises(AccessRefusal, match="A19"):
            check_line(host, tls=False, insecure=False)
        check_line(host, tls=True, insecure=False)
        check_line(host, tls=False, insecure=True)
    for host in ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost"):
        assert access.is_loopback(host)
        check_line(host, tls=False, insecure=False)
