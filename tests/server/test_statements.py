"""Statements of several questions over real HTTP: paid together, answered together, free again."""

from __future__ import annotations

import io
from fractions import Fraction

import pyarrow as pa
import pytest
from patience import PATIENCE_S

import discreet
from discreet.release.combined import Combined, CombinedExplanation

SHARE = (
    "SELECT a.n / b.n AS share, a.n AS young FROM"
    " (SELECT COUNT(*) AS n FROM visits WHERE age < {age}) AS a,"
    " (SELECT COUNT(*) AS n FROM visits WHERE age < {age} + 50) AS b"
)


def spent(server, key):
    found = server.call("GET", "balance", key=key).json()["analyst"]["spent"]["epsilon"]
    return Fraction(found)


@pytest.fixture
def remote(server):
    with discreet.connect(server.url, key=server.person(), timeout_s=PATIENCE_S) as found:
        yield found


def test_a_statement_is_answered_with_its_parts(server):
    key, other = server.person(), server.person()
    text = SHARE.format(age=31)
    paid = server.ask(text, "0.5", key=key)
    assert paid.status_code == 200, paid.text
    found = paid.json()
    assert found["id"] is None
    assert [part["price"]["epsilon"] for part in found["parts"]] == ["1/4", "1/4"]
    assert found["paid"]["epsilon"] == "1/2"
    share, young = found["rows"][0]
    counts = [
        server.call("GET", f"answers/{part['answer']}", key=key).json()["rows"][0][0]
        for part in found["parts"]
    ]
    assert share == counts[0] / counts[1]
    assert young == counts[0]
    assert found["margins"][0][0] is None
    assert found["margins"][0][1] > 0
    assert spent(server, key) == 0.5
    again = server.ask(text, "0.5", key=other).json()
    assert again["replayed"]
    assert again["rows"] == found["rows"]
    assert spent(server, other) == 0
    # Whoever was shown the parts may look at them again.
    assert server.call("GET", f"answers/{found['parts'][0]['answer']}", key=other).is_success


def test_a_statement_as_csv_and_arrow(server):
    key = server.person()
    text = SHARE.format(age=32)
    first = server.ask(text, "0.5", key=key).json()
    body = {"question": text, "epsilon": "0.5"}
    csv = server.call("POST", "ask", body, key=key, headers={"Accept": "text/csv"})
    assert csv.text.split("\n")[0] == "share,young,young_margin,young_low,young_high"
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    arrow = server.call("POST", "ask", body, key=key, headers=accept)
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    assert table.column("young").to_pylist() == [first["rows"][0][1]]
    assert spent(server, key) == 0.5


def test_the_same_answer_through_the_client(remote):
    text = SHARE.format(age=33)
    plan = remote.explain(text, epsilon="0.5")
    assert isinstance(plan, CombinedExplanation)
    assert len(plan.parts) == 2
    assert remote.price(text, epsilon="0.5").outcome == "admitted"
    answer = remote.ask(text, epsilon="0.5")
    assert isinstance(answer, Combined)
    assert [part.replayed for part in answer.parts] == [False, False]
    again = remote.ask(text, epsilon="0.5")
    assert again.replayed
    assert again.column("share") == answer.column("share")
    assert again.margins() == answer.margins()
    assert remote.price(text, epsilon="0.5").free
    assert remote.answer(answer.parts[0].id).value() == answer.column("young")[0]


def test_totals_of_a_rollup_agree_over_http_and_through_the_client(server, remote):
    text = "SELECT city, COUNT(*) AS n FROM visits WHERE age > 35 GROUP BY ROLLUP(city)"
    key = server.person()
    found = server.ask(text, "0.5", key=key).json()
    *cities, total = [row[1] for row in found["rows"]]
    assert total == sum(cities)
    assert spent(server, key) == 0.5
    again = server.ask(text, "0.5", key=key).json()
    assert again["rows"] == found["rows"]
    assert spent(server, key) == 0.5
    plan = remote.explain(text, epsilon="0.5")
    assert plan.loss.epsilon == Fraction(1, 2)
    answer = remote.ask(text, epsilon="0.5")
    *margins, whole = answer.margins()["n"]
    assert max(margins) < whole == plan.margins()["n"]
    assert answer.column("n")[-1] == sum(answer.column("n")[:-1])


def test_a_statement_that_takes_long_is_a_job_and_then_asked_again(server):
    key = server.person()
    body = {"question": SHARE.format(age=34), "epsilon": "0.5", "wait_s": 0}
    job = server.call("POST", "ask", body, key=key)
    while job.status_code == 202:
        assert job.json()["again"]
        server.call("GET", f"jobs/{job.json()['id']}?wait_s=10", key=key)
        job = server.call("POST", "ask", body, key=key)
    assert job.status_code == 200, job.text
    assert len(job.json()["parts"]) == 2
    assert spent(server, key) == 0.5


def test_what_cannot_be_computed_costs_nothing(server):
    key = server.person()
    refused = server.ask("SELECT m FROM (SELECT COUNT(*) AS n FROM visits) AS s", "0.5", key=key)
    assert refused.json()["code"] == "Q7"
    assert spent(server, key) == 0


def test_a_number_for_each_group_is_asked_first(server, remote):
    """One question for all groups, and then a constant for each."""
    text = (
        "SELECT COUNT(*) AS n FROM visits a WHERE age < 53 AND age > "
        "(SELECT AVG(b.age) FROM visits b WHERE b.city = a.city AND b.age < 53)"
    )
    answer = remote.ask(text, epsilon="0.5")
    assert answer.paid.epsilon == Fraction(1, 2)
    groups = "SELECT city, AVG(age) AS m FROM visits WHERE age < 53 GROUP BY city"
    means = remote.ask(groups, epsilon="0.25")
    assert means.replayed
    assert repr(float(means.column("m")[0])) in answer.parts[0].text
    assert remote.ask(text, epsilon="0.5").column("n") == answer.column("n")


def test_a_question_in_a_condition_is_asked_first(server, remote):
    """Paid for together by whoever asks; the constant is what was released."""
    text = (
        "SELECT COUNT(*) AS n FROM visits WHERE age < 47 AND age > "
        "(SELECT AVG(age) FROM visits WHERE age < 47)"
    )
    assert remote.price(text, epsilon="0.5").outcome == "admitted"
    answer = remote.ask(text, epsilon="0.5")
    assert isinstance(answer, Combined)
    assert answer.paid.epsilon == Fraction(1, 2)
    mean = remote.ask("SELECT AVG(age) FROM visits WHERE age < 47", epsilon="0.25")
    assert mean.replayed
    assert repr(float(mean.value())) in answer.parts[0].text
    again = remote.ask(text, epsilon="0.5")
    assert again.replayed
    assert again.column("n") == answer.column("n")
    key = server.person()
    found = server.ask(text.replace("47", "48"), "0.5", key=key).json()
    assert found["paid"]["epsilon"] == "1/2"
    assert spent(server, key) == Fraction(1, 2)
