"""Several questions as one release over HTTP, and through the client: one charge, never twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import AccessRefusal, DataRefusal, InvalidParameter, Refusal

SOME = "SELECT COUNT(*) AS n FROM visits WHERE city = '{}' AND age < {}"


@pytest.fixture
def remote(server):
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as found:
        yield found


def apart(age: int) -> list[str]:
    """Two questions about different people, which nobody else asks."""
    return [SOME.format(city, age) for city in ("Aalborg", "Bergen")]


def test_questions_about_different_people_are_charged_once_and_answered_each(remote):
    found = remote.ask_all(apart(71), epsilon=3)
    # Everybody has three rows at most, of which each is counted by one of both.
    assert remote.spent.epsilon == 3
    assert [answer.replayed for answer in found] == [False, False]
    assert all(abs(answer.value() - 710) < 200 for answer in found)
    assert all("one of 2 questions released together" in str(answer.notes) for answer in found)
    assert found[0].certificate["loss"]["epsilon"] == "3"
    (entry,) = remote.transcript()
    assert entry.question == ";\n".join(apart(71))
    again = remote.ask_all(apart(71), epsilon=3)
    assert [answer.value() for answer in again] == [answer.value() for answer in found]
    assert all(answer.replayed for answer in again)
    assert remote.spent.epsilon == 3


def test_each_may_have_a_margin_of_its_own(remote):
    near, far = remote.ask_all(apart(72), within=[20, {"n": 90}])
    assert near.margins()["n"][0] <= 20 < far.margins()["n"][0] <= 90


def test_what_cannot_be_asked_together_is_refused_and_costs_nothing(remote):
    for questions, offer in (
        ("SELECT COUNT(*) FROM visits", {"epsilon": 1}),
        ([], {"epsilon": 1}),
        (apart(73), {}),
        (apart(73), {"epsilon": 1, "within": 5}),
        (apart(73), {"within": [5]}),
        ([*apart(73), "EXPLAIN SELECT COUNT(*) FROM visits"], {"epsilon": 1}),
        ([*apart(73), "SELECT remark FROM visits"], {"epsilon": 1}),
        (["SELECT COUNT(*) FROM visits"] * 101, {"epsilon": 1}),
    ):
        with pytest.raises(Refusal):
            remote.ask_all(questions, **offer)
    assert remote.spent.epsilon == 0
    with pytest.raises(InvalidParameter, match="one text is no list"):
        remote.ask_all("SELECT 1", epsilon=1)


def test_a_retried_request_never_pays_twice(server):
    """Also when the data have changed between the tries."""
    key, retry = server.person(), {"Idempotency-Key": "together"}
    body = {"questions": apart(74), "epsilon": "1/50"}

    def spent() -> Fraction:
        return Fraction(
            server.call("GET", "balance", key=key).json()["analyst"]["spent"]["epsilon"]
        )

    first = server.call("POST", "ask_all", body, key=key, headers=retry).json()
    assert first["price"]["epsilon"] == "1/50"
    assert [answer["id"] for answer in first["answers"]] == [first["id"]] * 2
    source = server.datasets["clinic"].home / "visits.parquet"
    content = source.read_bytes()
    try:
        source.write_bytes(content)  # a new version
        again = server.call("POST", "ask_all", body, key=key, headers=retry).json()
        assert (again["id"], again["replayed"]) == (first["id"], True)
        assert [a["rows"] for a in again["answers"]] == [a["rows"] for a in first["answers"]]
        assert spent() == Fraction(1, 50)
        other = {**body, "questions": apart(75)}
        reused = server.call("POST", "ask_all", other, key=key, headers=retry)
        assert (reused.status_code, reused.json()["code"]) == (409, "A16")
        assert spent() == Fraction(1, 50)
    finally:
        source.write_bytes(content)


def test_many_at_once_pay_once(server):
    key = server.person()
    body = {"questions": apart(76), "epsilon": "1/50"}
    with ThreadPoolExecutor(6) as threads:
        sent = threads.map(lambda _: server.call("POST", "ask_all", body, key=key).json(), range(6))
        found = list(sent)
    assert len({str([a["rows"] for a in one["answers"]]) for one in found}) == 1
    assert len({one["id"] for one in found}) == 1
    (entry,) = server.call("GET", "transcript", key=key).json()["entries"]
    assert entry["price"]["epsilon"] == "1/50"


def test_a_release_of_several_is_no_single_answer(remote):
    (first, _) = remote.ask_all(apart(77), epsilon="1/50")
    with pytest.raises(AccessRefusal, match="A13"):
        remote.answer(first.id)


def test_what_cannot_be_computed_stays_spent_and_says_nothing(remote, monkeypatch):
    from discreet.server.jobs import Jobs

    async def nothing(self, turn):
        return b""

    monkeypatch.setattr(Jobs, "compare", nothing)
    with pytest.raises(DataRefusal, match="D1"):
        remote.ask_all(apart(78), epsilon="1/50")
    assert remote.spent.epsilon == Fraction(1, 50)
