"""Runs over HTTP: the data in another process, the secret on its way there and nowhere else."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import AccessRefusal, Halted, InvalidParameter, QuestionRefusal

COUNT = "SELECT COUNT(*) FROM visits"
NONE = "SELECT COUNT(*) FROM visits WHERE age > 105"
CITY = ("Aalborg", "Bergen", "Cork")
CITIES = "SELECT city, COUNT(*) FROM visits GROUP BY city"


@pytest.fixture
def remote(server):
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as found:
        yield found


def test_a_run_over_http_is_paid_once_and_tells_the_truth(server, remote):
    explained = remote.explain_watch(COUNT, threshold=900, epsilon=20, at_most=2)
    assert explained["sensitivity"] == 3
    assert 0 < explained["margin"] < explained["theorem_margin"]
    with remote.watch(threshold=500, epsilon=20, at_most=2, numbers=True) as run:
        assert not run.ask(NONE)
        assert not run.ask_one(NONE).above
        assert [one.above for one in run.ask_groups(NONE)] == [False]
        with pytest.raises(InvalidParameter, match="verdict for each of its groups"):
            run.ask_one(CITIES, threshold=10**6)
        assert not any(run.ask_groups(CITIES, threshold=10**6, number=3))  # as it was told
        first, second = run.ask(CITIES)
        assert (first.group, second.group) == (("Aalborg",), ("Bergen",))
        assert abs(first.value - 1000) < 200
        assert run.ended == "halted"
        with pytest.raises(Halted):
            run.ask(COUNT)
    (entry,) = remote.transcript()
    assert (entry.state, entry.loss.epsilon) == ("closed", 20)
    assert remote.run(run.id).ended == "halted"


def test_a_run_that_learns_is_paid_once_over_http(server, remote):
    settings = {"of": "visits", "columns": ["city"], "rows": 3000, "questions": 4}
    settings |= {"epsilon": 60, "beta": "1e-10"}
    explained = remote.explain_learn(**settings)
    assert (explained["cells"], remote.spent.epsilon) == (3, 0)
    key = server.person()
    odd = ["SELECT AVG(age) FROM visits", "SELECT COUNT(*) FROM visits WHERE age > 3"]
    odd += ["SELECT COUNT(*) FROM visits WHERE city = 'Nowhere'", "DROP TABLE visits", ""]
    for question in odd:
        found = server.call("POST", "learn", {**settings, "ask": [question]}, key=key)
        assert found.status_code in (400, 422), found.text
    spent = server.call("GET", "balance", key=key).json()["analyst"]["spent"]
    assert float(spent["epsilon"]) == 0
    run = remote.learn(**settings)
    assert remote.spent.epsilon == 60
    told = [run.ask(f"SELECT COUNT(*) FROM visits WHERE city <> '{city}'") for city in CITY]
    told.append(run.ask("SELECT COUNT(*) FROM visits WHERE city = 'Cork'"))
    for one, truth in zip(told, (2000, 2000, 2000, 1000), strict=True):
        assert abs(one.value - truth) <= one.margin == explained["margin"]
    again = remote.learn(**settings)
    assert (again.id, again.asked) == (run.id, run.asked)
    with pytest.raises(Halted):
        again.ask(COUNT)
    assert remote.spent.epsilon == 60
    assert len(remote.transcript()) == 1


def test_many_questions_go_in_one_request_and_stop_where_the_run_halts(server, remote):
    low, high = [f"{COUNT} WHERE age > {n}" for n in range(100, 109)], f"{COUNT} WHERE age >= 0"
    with remote.watch(threshold=500, epsilon=40, at_most=2, numbers=True, name="many") as run:
        told = run.ask_many([*low, high, CITIES, *low])
        assert [one.above for one in told] == [False] * 9 + [True, True]
        assert abs(told[9].value - 3000) < 300
        assert [verdict.group for verdict in told[10]] == [("Aalborg",)]
        assert run.ended == "halted"
        path = f"runs/{run.id}/ask_many"
        again = {"questions": [*low, high, CITIES, *low], "threshold": None, "number": 0}
        second = server.call("POST", path, {**again, "wait_s": 60}).json()
        assert [one["verdicts"][-1]["above"] for one in second["told"]] == [False] * 9 + [True] * 2
        assert second["told"][9]["verdicts"][0]["value"] == told[9].value
        assert (second["ended"], second["asked"]) == ("halted", 11)
    key = server.person()
    assert server.call("POST", path, again, key=key).status_code in (403, 404)
    odd = {"questions": []}, {"questions": [COUNT] * 251}, {"questions": [COUNT], "number": -1}
    for body in odd:
        assert server.call("POST", path, body).status_code == 422


def test_a_distance_is_asked_over_http_like_any_other_number(remote):
    text = "SELECT DISTANCE_TO_DEPENDENCY(city, age) AS d FROM visits"
    said = remote.explain(text, epsilon=20)
    answer = remote.ask(text, epsilon=20)
    assert 0 <= answer.column("d")[0] <= 3000
    assert said.loss.epsilon == remote.spent.epsilon == 20
    assert remote.transcript()[-1].question == text


def test_a_schedule_over_http_asks_new_data_alone_and_is_paid_once(server, remote):
    words = {"threshold": 500, "epsilon": 20, "name": "timer", "once": True}
    run = remote.watch(**words)
    assert not run.ask_new(NONE)
    assert run.ask_new(NONE) is None
    assert run.ask_new(COUNT).above
    again = remote.watch(**words)
    assert (again.id, again.ended, again.asked) == (run.id, "halted", 2)
    assert again.ask_new(COUNT) is None
    with pytest.raises(Halted):
        again.ask_new(CITIES)
    assert remote.spent.epsilon == 20
    both = {"question": COUNT, "number": 0, "new": True}
    assert server.call("POST", f"runs/{run.id}/ask", both).status_code == 422


def test_a_refused_one_of_many_asks_nothing(remote):
    run = remote.watch(threshold=5, epsilon="1/100", name="refused")
    with pytest.raises(QuestionRefusal, match="Q48"):
        run.ask_many([COUNT, NONE, "SELECT AVG(age) FROM visits"])
    assert remote.run(run.id).asked == 0


def test_a_second_try_is_told_the_same(remote):
    run = remote.watch(threshold=3000, epsilon="1/100", at_most=500)
    first = [bool(run.ask(COUNT)) for _ in range(4)]
    assert [bool(run.ask(COUNT, number=n)) for n in range(4)] == first
    assert remote.watch(threshold=3000, epsilon="1/100", at_most=500).asked == 4
    run.close()
    assert run.ended == "closed"
    assert remote.spent.epsilon == pytest.approx(0.01)


def test_a_question_that_is_not_one_number_is_refused(remote):
    with (
        remote.watch(threshold=9, epsilon="1/100") as run,
        pytest.raises(QuestionRefusal, match="Q48"),
    ):
        run.ask("SELECT AVG(age) FROM visits")


def test_nobody_else_sees_or_asks_a_run(server, remote):
    run = remote.watch(threshold=9, epsilon="1/100", name="mine")
    with (
        client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as other,
        pytest.raises(AccessRefusal, match="A13"),
    ):
        other.run(run.id)
    reader = server.person(role="auditor")
    assert server.call("GET", f"runs/{run.id}", key=reader).status_code == 200
    asked = server.call("POST", f"runs/{run.id}/ask", {"question": COUNT}, key=reader)
    assert asked.status_code == 403
    assert server.call("GET", "runs/999999").status_code == 404


def test_a_source_that_cannot_be_read_closes_the_run(server):
    opened = server.call("POST", "runs", {"threshold": 3, "epsilon": 1}, dataset="damaged")
    assert opened.status_code == 201
    path = f"runs/{opened.json()['id']}"
    asked = server.call("POST", f"{path}/ask", {"question": COUNT}, dataset="damaged")
    assert (asked.status_code, asked.json()["code"]) == (424, "D1")
    assert server.call("GET", path, dataset="damaged").json()["ended"] == "lost"


def test_a_choice_over_http_is_made_where_the_data_is(remote):
    found = remote.choose(CITIES, epsilon=20, k=2, counts=True)
    assert len(found["chosen"]) == 2
    assert all(abs(number - 1000) < 100 for number in found["numbers"])
    assert remote.choose(CITIES, epsilon=20, k=2, counts=True)["replayed"]
    named = remote.choose({"few": NONE, "all": COUNT}, epsilon=10)
    assert named["chosen"] == ["all"]
    assert remote.spent.epsilon == 30


def test_a_choice_is_no_answer_to_be_read_by_number(server):
    made = server.call("POST", "choose", {"candidates": CITIES, "epsilon": "1/40"})
    assert made.status_code == 200
    assert server.call("GET", f"answers/{made.json()['id']}").status_code == 404
