"""``discreet.connect``: a notebook moves from a file to a server by changing one line."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import httpx
import pytest
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.curate import session
from discreet.errors import (
    AccessRefusal,
    BudgetRefusal,
    DataRefusal,
    InvalidParameter,
    QuestionRefusal,
)
from discreet.question.builder import count

FALSE = "discreet_0123456789abcdef_" + "0" * 64
GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY city"


@pytest.fixture
def remote(server):
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as found:
        yield found


def test_the_same_methods_as_the_local_curator(server, remote):
    public = {"ask", "explain", "price", "table", "balance", "transcript", "budget", "spent"}
    with session.open(server.datasets["clinic"].home) as local:
        for name in public | {"schema", "close", "__enter__"}:
            assert hasattr(local, name), name
            assert hasattr(remote, name), name
        assert remote.schema == local.schema
        assert remote.budget == local.budget


def test_the_same_answer_objects(server, remote):
    mine = GROUPED.replace(" GROUP", " WHERE age > 41 GROUP")  # known from no other test's answer
    answer = remote.ask(mine, epsilon="1/2")
    with session.open(server.datasets["clinic"].home) as local:
        twin = local.ask(mine, epsilon="1/2")
    assert twin.replayed
    assert [row.values for row in answer.rows] == [row.values for row in twin.rows]
    assert answer.certificate["charged"] != twin.certificate["charged"]  # paid once, free now
    assert answer.certificate | {"charged": None} == twin.certificate | {"charged": None}
    assert answer.loss == twin.loss
    assert answer.margins("0.99")["n"] == twin.margins("0.99")["n"]
    assert answer.to_arrow().schema == twin.to_arrow().schema
    assert list(answer.to_pandas().columns) == ["city", "n", "mean"]
    assert str(answer).splitlines()[0] == str(twin).splitlines()[0]
    assert remote.answer(answer.id).rows == answer.rows
    again = remote.ask(mine, epsilon="1/2")
    assert (again.replayed, again.id, again.rows) == (True, answer.id, answer.rows)


def test_explanations_prices_and_balances(server, remote, fresh):
    (question,) = fresh()
    explained = remote.explain(question, epsilon="1/50")
    assert explained.margins()["n"] > 0
    assert str(remote.explain(f"EXPLAIN {question}", epsilon="1/50")) == str(explained)
    with pytest.raises(InvalidParameter, match="EXPLAIN is not charged"):
        remote.ask(f"EXPLAIN {question}", epsilon="1/50")
    quote = remote.price(question, epsilon="1/50")
    assert (quote.free, remote.spent.epsilon) == (False, 0)
    price, margins = repr(quote).splitlines()
    assert price == str(quote.loss)
    assert margins.startswith("n ± ")
    remote.ask(question, epsilon=Fraction(1, 50))
    assert remote.price(question, epsilon="1/50").free
    improved = remote.price(question, epsilon="1/20")  # as the curator says it, not as a new one
    assert improved.difference == improved.choices[-2].charge
    for quoted, epsilon in ((remote.price(question, epsilon="1/50"), "1/50"), (improved, "1/20")):
        said = str(remote.explain(question, epsilon=epsilon)).splitlines()
        assert f"cost: {quoted.describe()[0]}" in said
        assert any(line.startswith("cost if measured anew: ε = ") for line in said)
    balance = remote.balance()
    assert balance.spent.epsilon == Fraction(1, 50)
    assert "more counts" in str(balance)
    assert repr(balance) == str(balance)  # what a notebook shows
    shown = repr(remote)
    assert shown == f"<{remote.dataset} at {server.url}, asked by {remote.analyst}>"
    (entry,) = remote.transcript()
    assert (entry.question, entry.loss.epsilon, entry.state) == (
        *(question, Fraction(1, 50), "answered"),
    )


def test_questions_built_in_python_and_accuracy(remote):
    built = remote.table("visits").group_by("city").agg(n=count())
    assert len(remote.ask(built, epsilon="1/3").rows) == 3
    exact = remote.ask("SELECT COUNT(*) AS n FROM visits", within={"n": 40}, confidence=0.99)
    assert exact.margins("0.99")["n"][0] <= 40


def test_the_same_refusals(server, remote):
    with pytest.raises(QuestionRefusal, match="Q1") as refused:
        remote.ask("SELECT SUM(income) FROM visits", epsilon="1")
    assert "^^^^^^" in str(refused.value)
    with pytest.raises(BudgetRefusal, match="B1"):
        remote.ask("SELECT COUNT(*) FROM visits", epsilon="5000")
    with pytest.raises(AccessRefusal, match="A10: the key that was given opens") as refused:
        client.connect(server.url, timeout_s=PATIENCE_S, key=FALSE)
    assert 'key="discreet_' in refused.value.fix
    with client.connect(
        server.url, timeout_s=PATIENCE_S, key=server.datasets["damaged"].key
    ) as damaged:
        assert damaged.dataset == "damaged"
        with pytest.raises(DataRefusal, match="D1"):
            damaged.ask("SELECT AVG(age) AS a FROM visits", epsilon="1/7")


def test_a_key_is_not_sent_over_an_open_line(monkeypatch):
    sent = []
    monkeypatch.setattr(client, "_TRIES", 1)
    line = httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(401))
    for url in ("http://clinic.example", "http://10.0.0.7:8765", "//clinic.example", "clinic"):
        with pytest.raises(AccessRefusal, match="A19"):
            client.connect(url, key=FALSE, transport=line)
    assert sent == []
    for url, said in (
        *(("https://clinic.example", {}), ("http://localhost:1", {})),
        ("http://clinic.example", {"insecure": True}),
    ):
        with pytest.raises(AccessRefusal, match="A17"):
            client.connect(url, key=FALSE, transport=line, **said)
    assert len(sent) == 3


@pytest.mark.parametrize(
    "key",
    [
        *("", "discreet_x", "discreet_…", "discreet_...", FALSE[:-1], None),
        *("Bearer " + FALSE, "clé", FALSE + "\nX: y"),
    ],
)
def test_what_cannot_be_a_key_is_not_sent(key):
    with pytest.raises(AccessRefusal, match="A10: what was given as key= is not a key") as refused:
        client.connect("https://clinic.example", key=key, transport=httpx.MockTransport(_never))
    assert 'key="discreet_…"' in refused.value.fix
    assert "Authorization" not in str(refused.value)
    assert not key or FALSE[26:] not in str(refused.value)


def _never(request):
    raise AssertionError(request.url)


@pytest.mark.parametrize("url", ["https://clinic.example:port", "https://[::1", "https://a\x00b"])
def test_an_address_that_cannot_be_read(url):
    with pytest.raises(AccessRefusal, match="A17"):
        client.connect(url, key=FALSE, transport=httpx.MockTransport(_never))


def test_a_pasted_key_may_end_its_line(server):
    with client.connect(server.url, timeout_s=PATIENCE_S, key=f" {server.person()}\n") as remote:
        assert remote.dataset == "clinic"


# --- a server of another kind, or something between -----------------------------------------------


@pytest.fixture
def strange(monkeypatch):
    """Makes a client that has connected, and from then on is sent one response."""
    monkeypatch.setattr(client, "_PAUSE_S", 0.0)
    opened = b'{"datasets": [{"name": "clinic", "analyst": "ana"}]}'

    def connected(content=b"", status=200, headers=None):
        def respond(request):
            if request.url.path == "/v1/me":
                return httpx.Response(200, content=opened)
            return httpx.Response(status, content=content, headers=headers)

        line = httpx.MockTransport(respond)
        return client.connect("https://x.example", key=FALSE, dataset="clinic", transport=line)

    return connected


CALLS = {
    "ask": lambda remote: remote.ask(GROUPED, epsilon="1/2"),
    "price": lambda remote: remote.price(GROUPED, epsilon="1/2"),
    "answer": lambda remote: remote.answer(3),
    "balance": lambda remote: remote.balance(),
    "transcript": lambda remote: remote.transcript(),
    "schema": lambda remote: remote.schema,
    "budget": lambda remote: remote.budget,
}
BODIES = [
    *(b"", b"<html>sign in</html>", b"null", b"[]", b"3", b"{}", b"\xff", b"[" * 100_000),
    b'{"entries": [{"id": "x"}], "next": null, "explanation": {"Row": []}, "refusal": null}',
    b'{"analyst": {"spent": {"epsilon": "1/0", "rho": "x", "delta": "0"}}, "text": ""}',
]


@pytest.mark.parametrize("name", CALLS)
def test_what_is_not_understood_is_refused(strange, name):
    for content in BODIES:
        with strange(content) as remote, pytest.raises(AccessRefusal, match="A17"):
            CALLS[name](remote)


@pytest.mark.parametrize("status", [202, 204, 302, 400, 404, 500, 502])
def test_no_status_is_a_traceback(strange, status):
    for content in (b"", b"[]", b'{"code": []}', b'{"code": "A13", "what": "x", "why": "y"}'):
        for headers in ({}, {"content-encoding": "gzip"}):
            with (
                strange(content, status, headers) as remote,
                pytest.raises(AccessRefusal, match="A17"),
            ):
                remote.ask(GROUPED, epsilon="1/2")


def test_a_stranger_is_not_connected_to():
    for content in BODIES:
        line = httpx.MockTransport(lambda _, body=content: httpx.Response(200, content=body))
        for dataset in (None, "clinic"):
            with pytest.raises(AccessRefusal, match="A17"):
                client.connect("https://x.example", key=FALSE, dataset=dataset, transport=line)


@pytest.mark.parametrize(
    ("said", "pause"),
    [
        *(("3", 3.0), ("0", 0.0), ("60", 10.0), ("9" * 5000, 10.0)),
        *(("", 1.0), ("-1", 1.0), ("nan", 1.0), ("x", 1.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0)),
    ],
)
def test_a_pause_is_a_pause_whatever_is_said(strange, monkeypatch, said, pause):
    paused = []
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=paused.append))
    with (
        strange(b"{}", 429, {"Retry-After": said}) as remote,
        pytest.raises(AccessRefusal, match="A17"),
    ):
        remote.balance()
    assert paused == [pause] * 3


def test_a_lost_connection_is_tried_again_and_paid_once(server, fresh, monkeypatch):
    """The answer is lost on its way; the second try finds it."""
    (question,) = fresh()
    monkeypatch.setattr(client, "_PAUSE_S", 0.01)
    lost = []

    class Losing(httpx.HTTPTransport):
        def handle_request(self, request):
            response = super().handle_request(request)
            if request.url.path.endswith("/ask") and len(lost) < 2:
                response.read()
                lost.append(response.status_code)
                raise httpx.ReadError("lost")
            return response

    key = server.person()
    with client.connect(server.url, timeout_s=PATIENCE_S, key=key, transport=Losing()) as remote:
        answer = remote.ask(question, epsilon="1/50")
        assert lost == [200, 200]
        assert answer.replayed
        assert remote.spent.epsilon == Fraction(1, 50)


def test_jobs_are_waited_for(server, fresh, monkeypatch):
    (question,) = fresh()
    monkeypatch.setattr(client, "_WAIT_S", 0.0)
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as remote:
        assert isinstance(remote.ask(question, epsilon="1/50").value(), int)
        assert remote.spent.epsilon == Fraction(1, 50)
