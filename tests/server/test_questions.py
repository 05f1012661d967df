"""Asking over HTTP: answers, forms, jobs, retries, and what everybody may see."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pyarrow as pa
import pytest
from patience import PATIENCE_S

from discreet.server.jobs import Jobs

COUNT = "SELECT COUNT(*) AS n FROM visits"
GROUPED = "SELECT city, COUNT(*) AS n, AVG(age) AS mean FROM visits GROUP BY city"


def spent(server, key):
    found = server.call("GET", "balance", key=key).json()["analyst"]["spent"]["epsilon"]
    return Fraction(found)


def test_an_answer_has_values_margins_and_a_price(server):
    key = server.person()
    answer = server.ask(GROUPED, "1", key=key, fresh=True)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [column["role"] for column in found["columns"]] == ["key", "value", "value"]
    assert found["chart"] == {"kind": "bars", "x": "city", "series": None, "y": ["n", "mean"]}
    assert [row[0] for row in found["rows"]] == ["Aalborg", "Bergen", "Cork"]
    for row, margins, cells in zip(found["rows"], found["margins"], found["cells"], strict=True):
        assert abs(row[1] - 1000) < 100
        assert margins[0] is None
        assert margins[1] > 0
        assert cells[1].startswith(f"{row[1]:,} ± ")
    assert found["paid"]["epsilon"] == "1"
    assert spent(server, key) == 1


def test_the_same_question_is_free_for_everybody(server, fresh):
    (question,) = fresh()
    first, second = server.person(), server.person()
    paid = server.ask(question, key=first).json()
    again = server.ask(question, key=second).json()
    assert (again["rows"], again["id"], again["replayed"]) == (paid["rows"], paid["id"], True)
    assert again["paid"]["text"] == "free"
    assert spent(server, second) == 0
    # Whoever was shown an answer may look at it again.
    assert server.call("GET", f"answers/{paid['id']}", key=second).json()["rows"] == paid["rows"]


def test_declared_groups_are_told_for_nothing(server):
    key = server.person()
    found = server.ask("SELECT DISTINCT city FROM visits ORDER BY city", "1", key=key)
    assert found.status_code == 200, found.text
    assert [row[0] for row in found.json()["rows"]][:3] == ["Aalborg", "Bergen", "Cork"]
    assert found.json()["id"] is None
    assert spent(server, key) == 0


def test_csv_arrow_and_certificate(server):
    number = server.ask(GROUPED, "1", fresh=True).json()["id"]
    rows = server.call("GET", f"answers/{number}").json()["rows"]
    stated = ["city", "n", "n_margin", "n_low", "n_high"]
    stated += ["mean", "mean_margin", "mean_low", "mean_high"]
    csv = server.call("GET", f"answers/{number}", headers={"Accept": "text/csv"})
    assert csv.headers["content-disposition"] == f'attachment; filename="answer-{number}.csv"'
    lines = csv.text.split("\n")
    assert lines[0] == ",".join(stated)
    assert lines[1].startswith(f"Aalborg,{rows[0][1]},")
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    arrow = server.call("GET", f"answers/{number}", headers=accept)
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    assert table.column("n").to_pylist() == [row[1] for row in rows]
    assert table.column_names == stated
    certificate = server.call("GET", f"answers/{number}/certificate").json()
    assert certificate["unit"] == "patient"
    refused = server.call("GET", f"answers/{number}", headers={"Accept": "image/png"})
    assert (refused.status_code, refused.json()["code"]) == (406, "A14")


def test_a_long_question_is_a_job(server, fresh):
    (question,) = fresh()
    key = server.person()
    body = {"question": question, "epsilon": "1/50", "wait_s": 0}
    job = server.call("POST", "ask", body, key=key)
    assert job.status_code == 202
    place = job.headers["location"]
    assert place.endswith(f"/jobs/{job.json()['id']}")
    ended = server.call("GET", f"{place}?wait_s=30", key=key).json()
    assert (ended["state"], ended["progress"], ended["answer"]) == ("done", 1.0, ended["id"])
    answer = server.call("GET", f"answers/{ended['answer']}", key=key)
    assert answer.json()["question"] == question
    # Nobody else can tell that there is such a job.
    other = server.call("GET", place, key=server.person())
    assert (other.status_code, other.json()["code"]) == (404, "A13")


def test_a_retried_request_never_pays_twice(server, fresh):
    """Also when the data have changed between the tries."""
    (question, other) = fresh(2)
    key = server.person()
    retry = {"Idempotency-Key": "a-key-of-mine"}
    first = server.ask(question, key=key, headers=retry).json()
    source = server.datasets["clinic"].home / "visits.parquet"
    try:
        content = source.read_bytes()
        source.write_bytes(content)  # a new version
        again = server.ask(question, key=key, headers=retry).json()
        assert (again["id"], again["rows"], again["replayed"]) == (first["id"], first["rows"], True)
        assert spent(server, key) == Fraction(1, 50)
        reused = server.ask(other, key=key, headers=retry)
        assert (reused.status_code, reused.json()["code"]) == (409, "A16")
        # Without the key it is a new question about new data, and paid for.
        assert server.ask(question, key=key).json()["replayed"] is False
        assert spent(server, key) == Fraction(2, 50)
    finally:
        source.write_bytes(content)
    # Somebody else's key of the same name is another key.
    assert server.ask(other, key=server.person(), headers=retry).status_code == 200


def test_many_at_once_pay_once(server, fresh):
    """A storm of one question: one charge, one answer, the same for all."""
    (question,) = fresh()
    key = server.person()
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: server.ask(question, key=key).json(), range(12)))
    assert len({str(answer["rows"]) for answer in answers}) == 1
    assert len({answer["id"] for answer in answers}) == 1
    assert spent(server, key) == Fraction(1, 50)


def test_another_order_of_the_same_answer_is_free(server):
    key = server.person()
    server.ask(GROUPED, "1", key=server.person())
    turned = server.ask(f"{GROUPED} ORDER BY city DESC", "1", key=key).json()
    assert [row[0] for row in turned["rows"]] == ["Cork", "Bergen", "Aalborg"]
    assert turned["replayed"] is True
    assert spent(server, key) == 0


@pytest.mark.parametrize(
    ("question", "code", "place"),
    [
        ("SELECT SUM(income) FROM visits", "Q1", "income"),
        ("SELECT nme FROM visits", "Q7", "nme"),
    ],
)
def test_a_refusal_names_its_place(server, question, code, place):
    refused = server.call("POST", "explain", {"question": question, "epsilon": "0.1"})
    found = refused.json()
    assert (refused.status_code, found["code"]) == (422, code)
    start, stop = found["place"]
    assert place in question[start:stop]
    assert all(found[part] for part in ("what", "why", "fix"))


def test_a_rewriting_is_accepted(server):
    body = {"question": "SELECT city, age FROM visits", "epsilon": "1/50", "delta": "1e-10"}
    rewriting = server.call("POST", "explain", body).json()["rewriting"]
    explained = server.call("POST", "explain", {**body, "question": rewriting})
    assert explained.status_code == 200
    assert explained.json()["columns"][-1]["aggregate"] == "COUNT"


def test_explain_says_whether_it_is_affordable_or_free(server, fresh):
    (question,) = fresh()
    key = server.person(limit={"epsilon": "1/10"})
    body = {"question": question, "epsilon": "1/50"}
    first = server.call("POST", "explain", body, key=key).json()
    assert (first["affordable"], first["free"]) == (True, False)
    assert first["columns"][0]["margin"] > 0
    server.ask(question, key=key)
    assert server.call("POST", "explain", body, key=key).json()["free"] is True
    much = server.call("POST", "explain", {**body, "epsilon": "1/2"}, key=key).json()
    assert (much["affordable"], much["free"]) == (False, False)


def test_running_out_and_a_raised_limit(server, fresh):
    (question,) = fresh()
    key = server.person(limit={"epsilon": "1/100"})
    refused = server.ask(question, key=key)
    assert (refused.status_code, refused.json()["code"]) == (402, "B2")
    name = server.call("GET", "/v1/me", key=key).json()["datasets"][0]["analyst"]
    changed = server.call("PATCH", f"analysts/{name}", {"limit": {"epsilon": "1/10"}})
    assert changed.json()["limit"]["epsilon"] == "1/10"
    assert server.ask(question, key=key).status_code == 200
    told = server.call("GET", "transcript", key=key).json()["entries"]
    assert [(e["state"], e["code"]) for e in told] == [("answered", None), ("refused", "B2")]


def test_a_limit_with_a_delta_that_may_publish_somebody_is_insisted_on(server):
    limit = {"epsilon": "1/10", "delta": "1/2"}
    refused = server.call("POST", "analysts", {"name": "insisting", "limit": limit})
    assert (refused.status_code, refused.json()["code"]) == (422, "P10")
    limit["accept_large_delta"] = True
    made = server.call("POST", "analysts", {"name": "insisting", "limit": limit})
    assert (made.status_code, made.json()["limit"]["delta"]) == (201, "1/2")


def test_what_epsilon_means_is_said_of_presence_and_of_values(server):
    told = server.client.get("/v1/meaning?epsilon=1/2").json()
    assert told["presence"]["belief_change"].startswith("0.124")
    assert told["value"]["belief_change"].startswith("0.244")
    changed = server.client.get("/v1/meaning?epsilon=1/2&neighbours=change-one").json()
    assert (changed["presence"], changed["value"]) == (None, told["presence"])
    assert server.client.get("/v1/meaning?neighbours=other").status_code == 422


def test_the_schema_is_complete(server):
    found = server.call("GET", "/v1/datasets/clinic").json()
    (table,) = found["tables"]
    assert table["unit_text"].startswith("one unit is one patient: all rows that share it")
    columns = {column["name"]: column for column in table["columns"]}
    assert columns["age"]["bounds"] == ["0", "110"]
    assert columns["city"]["values"] == ["Aalborg", "Bergen", "Cork"]
    assert columns["age"]["text"] == "whole number from 0 to 110, may be missing"
    assert {"COUNT", "AVG"} <= {aggregate["name"] for aggregate in found["aggregates"]}
    for question in found["examples"]:
        body = {"question": question, "epsilon": "1"}
        assert server.call("POST", "explain", body).status_code == 200


def test_evidence_for_curators_and_auditors(server):
    auditor = server.person(role="auditor")
    server.ask(GROUPED, "1")
    verified = server.call("POST", "verify", key=auditor).json()
    assert verified["holds"] is True
    records = server.call("GET", "records?limit=1000", key=auditor).json()
    assert records["last"] >= verified["records"]
    assert {"charge", "release", "analyst", "key"} <= {r["kind"] for r in records["records"]}
    spending = server.call("GET", "spending?by=hour", key=auditor).json()["points"]
    balance = server.call("GET", "balance", key=auditor).json()["dataset"]
    assert spending[-1]["spent"] == balance["spent"]
    unsigned = server.call("POST", "checkpoints")
    assert (unsigned.status_code, unsigned.json()["code"]) == (409, "A14")


def test_an_answer_is_told_as_it_is_asked_for(server, fresh):
    """Texts are kept: not for another form, confidence, naming, or the one who has paid."""
    (question,) = fresh()
    renamed = question.replace(" AS n", " AS people")
    first, again, other = (server.ask(text).json() for text in (question, question, renamed))
    assert (first["replayed"], again["replayed"], other["replayed"]) == (False, True, True)
    assert first["id"] == again["id"] == other["id"]
    assert (again["columns"][0]["name"], other["columns"][0]["name"]) == ("n", "people")
    place = f"answers/{first['id']}"
    forms = [
        server.call("GET", f"{place}?confidence={confidence}", headers={"Accept": form})
        for confidence in ("0.9", "0.99")
        for form in ("application/json", "text/csv", "application/vnd.discreet+json")
        for _ in range(2)
    ]
    texts = [found.content for found in forms]
    assert texts[::2] == texts[1::2]
    assert len(set(texts)) == 5  # the exact form has no margins, so no confidence
    assert [found.headers["content-type"].split(";")[0] for found in forms[::2]] == [
        *("application/json", "text/csv", "application/vnd.discreet+json") * 2,
    ]
    low, high = forms[0].json()["margins"][0][0], forms[6].json()["margins"][0][0]
    assert 0 < low < high


def test_the_page_and_what_needs_no_key(server):
    import httpx

    for path, kind in (
        ("/", "text/html; charset=utf-8"),
        ("/static/app.js", "text/javascript; charset=utf-8"),
        ("/v1/meaning?epsilon=1/2", "application/json"),
        ("/v1/meaning.svg?epsilon=1/2", "image/svg+xml"),
        ("/healthz", "text/plain; charset=utf-8"),
        ("/readyz", "text/plain; charset=utf-8"),
        ("/v1/openapi.json", "application/json"),
    ):
        found = httpx.get(server.url + path, timeout=PATIENCE_S)
        assert (found.status_code, found.headers["content-type"]) == (200, kind), path
        assert "default-src 'none'" in found.headers["content-security-policy"]
    for path in ("/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/app.py"):
        assert httpx.get(server.url + path, timeout=PATIENCE_S).status_code == 404


def test_who_did_not_pay_sees_the_question_and_not_the_payer_s_words(server, fresh):
    (question,) = fresh()
    first, second = server.person(), server.person()
    remark = "/* for the report on ward seven */"
    number = server.ask(f"{question} {remark}", key=first).json()["id"]
    server.ask(question, key=second)
    for path in (f"answers/{number}", f"answers/{number}/certificate"):
        assert "ward seven" in server.call("GET", path, key=first).text
        shown = server.call("GET", path, key=second)
        assert shown.status_code == 200
        assert "ward seven" not in shown.text
        assert shown.json()["question"].startswith("SELECT COUNT(*)")


def test_the_payer_s_words_would_be_seen(server, fresh, monkeypatch):
    """A bug on purpose: whoever asks again is shown what was stored."""
    monkeypatch.setattr("discreet.server.dataset.Dataset._show_to", lambda self, answer, *_: answer)
    with pytest.raises(AssertionError):
        test_who_did_not_pay_sees_the_question_and_not_the_payer_s_words(server, fresh)


def test_a_retry_is_read_through_the_caller_s_own_question(server, fresh):
    """Not through the payer's: neither their words nor their columns."""
    (question,) = fresh()
    first, second = server.person(), server.person()
    server.ask(f"{question} /* for the report on ward seven */", key=first)
    mine = question.replace(" AS n", " AS people")
    for person, number in ((second, "r1"), (first, "r2")):
        sent = [server.ask(mine, key=person, headers={"Idempotency-Key": number}) for _ in "ab"]
        for found in sent:
            assert found.status_code == 200, found.text
            assert "ward seven" not in found.text
            assert found.json()["replayed"] is True
            assert [column["name"] for column in found.json()["columns"]] == ["people"]
            assert found.json()["question"] == mine
        assert sent[0].json()["rows"] == sent[1].json()["rows"]


def test_refusals_beyond_the_first_of_a_kind_are_counted(server):
    key = server.person()
    for _ in range(20):
        assert server.ask("SELECT income FROM visits", key=key).json()["code"] == "Q12"
    entries = server.call("GET", "transcript", key=key).json()["entries"]
    assert [(entry["code"], entry["count"], bool(entry["question"])) for entry in entries] == [
        ("Q12", 6, False),
        *[("Q12", 1, True)] * 10,
    ]


def test_without_a_deadline_the_engine_computes_on_while_an_answer_is_published(
    tmp_path, serving, monkeypatch
):
    """One engine, and a ledger that takes its time: the next question does not wait for it."""
    held, closed = threading.Event(), Jobs._close

    def slow(jobs, paid, answer):
        if "age < 11" in paid.priced.question.text:
            assert held.wait(PATIENCE_S)
        return closed(jobs, paid, answer)

    monkeypatch.setattr(Jobs, "_close", slow)
    with serving(tmp_path, "deadline_s = 0\nworkers = 1") as server:
        first = server.call(
            "POST", "ask", {"question": f"{COUNT} WHERE age < 11", "epsilon": "1/50", "wait_s": 0}
        )
        assert first.status_code == 202
        assert server.ask(f"{COUNT} WHERE age < 12").status_code == 200
        number = first.json()["id"]
        assert server.call("GET", f"jobs/{number}").json()["state"] == "running"
        held.set()
        assert server.ask(f"{COUNT} WHERE age < 11").json()["id"] == number
