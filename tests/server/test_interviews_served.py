"""Interviews, reports, medians and what a choice would cost, over HTTP: the data elsewhere."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S

from discreet.curate import remote as client
from discreet.errors import AccessRefusal, Halted, QuestionRefusal, Refusal

AALBORG = "SELECT COUNT(*) FROM visits WHERE city = 'Aalborg'"
BERGEN = "SELECT COUNT(*) FROM visits WHERE city = 'Bergen'"
CITIES = "SELECT city, COUNT(*) FROM visits GROUP BY city"
AGES = {"ages": {"table": "visits", "property": "maximum", "column": "age", "bound": 104}}


@pytest.fixture
def remote(server):
    with client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as found:
        yield found


def test_an_interview_over_http_is_paid_once_and_tells_the_truth(remote):
    said = remote.explain_interview(AALBORG, BERGEN, sensitivity=3, epsilon=3)
    assert (said["joint"], said["admitted"]) == (3, True)
    with remote.interview(sensitivity=6, epsilon=12) as run:
        first = run.ask(AALBORG)
        assert abs(first.value - 1000) < 200
        run.ask(BERGEN)
        assert run.joint == 3
        assert len(run.ask(CITIES).groups) >= 2
        with pytest.raises(Halted, match="H2"):
            run.ask(AALBORG)
        assert run.ask(AALBORG, number=0) == first
        assert run.asked == 3
    assert run.ended == "closed"
    (entry,) = remote.transcript()
    assert (entry.state, entry.loss.epsilon) == ("closed", 12)


def test_nobody_else_sees_an_interview_and_it_is_no_watch(server, remote):
    run = remote.interview(sensitivity=3, epsilon="1/50", name="mine")
    with pytest.raises(AccessRefusal):
        remote.run(run.id)
    with (
        client.connect(server.url, timeout_s=PATIENCE_S, key=server.person()) as other,
        pytest.raises(AccessRefusal),
    ):
        other._connection.send("GET", f"{other._path}/interviews/{run.id}", None)
    with pytest.raises(QuestionRefusal, match="Q48"):
        run.ask("SELECT AVG(age) FROM visits")
    run.close()


def test_a_report_over_http(remote):
    said = remote.explain_quality(AGES, epsilon=2)
    assert said["sensitivity"] == 1
    told = remote.quality(AGES, epsilon=2)
    assert abs(told["distances"]["ages"]) < 3000
    assert not told["replayed"]
    assert remote.quality(AGES, epsilon=2)["replayed"]
    with pytest.raises(AccessRefusal):
        remote.answer(int(told["id"]))
    with pytest.raises(Refusal):
        remote.quality({"x": {"table": "visits", "property": "beauty"}}, epsilon=1)


def test_a_median_over_http(remote):
    own = (
        "SELECT MEDIAN(oldest) FROM (SELECT patient, MAX(age) AS oldest FROM visits "
        "GROUP BY patient)"
    )
    said = remote.explain_robust_median(own, epsilon=1, delta="1e-12")
    assert said["margin"] is None
    told = remote.robust_median(own, epsilon=1, delta="1e-12")
    assert 0 <= told["value"] <= 110
    tested = remote.robust_median(own, epsilon=1, delta="1e-12", bound=3)
    assert tested["margin"] == 18


def test_what_a_choice_would_cost_is_said_before(remote):
    said = remote.explain_choose(CITIES, epsilon="1/7")
    assert said["loss"]["epsilon"]
    assert 0 < said["margin"] <= said["theorem_margin"]
    told = remote.choose(CITIES, k=2, counts=True, epsilon=9)
    assert len(told["numbers"]) == 2
