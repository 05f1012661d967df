"""What somebody has opened, saved or paid for, in the hands of somebody else.

Every object that has a number or a name in an address is tried by another analyst: it must sound
as if it did not exist.  What is shared, because it was paid for, brings nobody's own words with it.
"""

from __future__ import annotations

import re

import pytest

from discreet.server import works

SECRET = "Zq7mine"
COUNT = "SELECT COUNT(*) AS n FROM visits"
CHECK = {"table": "visits", "property": "maximum", "column": "age", "bound": 104}


def make_objects(server, key):
    """One of everything that has an id, and which requests name it."""

    def call(path, body):
        made = server.call("POST", path, body, key=key)
        assert made.status_code in (200, 201, 202), made.text
        return made.json()["id"]

    answer = server.ask(f"{COUNT} WHERE age < 91 AND remark <> '{SECRET}'", key=key).json()["id"]
    run = call("runs", {"threshold": 9, "epsilon": "1/50", "name": SECRET})
    interview = call("interviews", {"sensitivity": 3, "epsilon": "1/50", "name": SECRET})
    saved = call("saved", {"name": SECRET, "question": f"{COUNT} -- {SECRET}"})
    state = server.state.datasets["clinic"].works
    call("quality", {"checks": {SECRET: CHECK}, "epsilon": "1/50", "wait_s": 60})
    work = list(state._known)[-1]
    asked = {"question": COUNT}
    return {
        answer: [("GET", "answers/{}", None), ("GET", "answers/{}/certificate", None),
                 ("GET", "jobs/{}", None)],
        run: [("GET", "runs/{}", None), ("POST", "runs/{}/ask", asked),
              ("POST", "runs/{}/ask_many", {"questions": [asked["question"]]}),
              ("DELETE", "runs/{}", None)],
        interview: [("GET", "interviews/{}", None), ("POST", "interviews/{}/ask", asked),
                    ("DELETE", "interviews/{}", None)],
        saved: [("DELETE", "saved/{}", None)],
        work: [("GET", "works/{}", None)],
    }  # fmt: skip


def test_what_is_somebody_elses_sounds_as_if_it_were_nothing(server):
    owner, other = server.person(), server.person()
    objects = make_objects(server, owner)
    tried = set()
    for number, requests in objects.items():
        for method, path, body in requests:
            theirs = server.call(method, path.format(number), body, key=other)
            nothing = server.call(method, path.format("9" * len(number)), body, key=other)
            assert theirs.status_code == nothing.status_code == 404, (path, theirs.text)
            other_name = f"'{'9' * len(number)}'"
            assert theirs.text.replace(f"'{number}'", "N") == nothing.text.replace(other_name, "N")
            assert SECRET not in theirs.text
            tried.add((method, path.format("{id}")))
    for number, requests in objects.items():  # nothing was closed or removed by it
        method, path, body = requests[0]
        assert server.call(method, path.format(number), body, key=owner).status_code in (200, 204)
    prefix = "/v1/datasets/{dataset}/"
    routes = server.client.get("/v1/openapi.json").json()["paths"]
    named = {
        (method.upper(), path.removeprefix(prefix))
        for path, methods in routes.items()
        if "{id}" in path and path.startswith(prefix)
        for method in methods
    }
    assert named - tried == {("DELETE", "keys/{id}")}  # curators only


def test_another_kind_of_object_is_not_found_by_its_number(server):
    key = server.person()
    answer, run, interview, *_ = make_objects(server, key)
    for path in (
        f"runs/{answer}", f"interviews/{answer}", f"interviews/{run}", f"runs/{interview}",
        f"answers/{run}", f"answers/{interview}",
    ):  # fmt: skip
        assert server.call("GET", path, key=key).status_code == 404, path


@pytest.mark.parametrize("odd", ["0", "-1", "1e3", "１", "9" * 30, "x" * 4000, "%00", "..%2F1"])
def test_odd_ids_are_nothing(server, odd):
    key = server.person()
    for path in ("runs/{}", "interviews/{}", "works/{}", "answers/{}", "jobs/{}"):
        found = server.call("GET", path.format(odd), key=key)
        assert found.status_code == 404, (path, found.text)
        assert len(found.content) < 1000


def test_the_same_words_open_a_run_of_ones_own(server):
    """Nobody goes on with a run that somebody else has paid for."""
    one, two = server.person(), server.person()
    for path, wanted in (
        ("runs", {"threshold": 41, "epsilon": "1/60", "name": "shared"}),
        ("interviews", {"sensitivity": 2, "epsilon": "1/60", "name": "shared"}),
    ):
        first = server.call("POST", path, wanted, key=one).json()
        second = server.call("POST", path, wanted, key=two).json()
        assert first["id"] != second["id"]
        assert (first["analyst"], second["analyst"]) != (first["analyst"],) * 2


def test_what_is_shared_brings_nobodys_own_words_with_it(server):
    """The price was paid by another, whose names, comments and aliases stay theirs."""
    payer, other = server.person(), server.person()
    where = "FROM visits WHERE age < 83 AND age > 3"
    # ask, and ask_all
    server.ask(f"SELECT COUNT(*) AS {SECRET} {where} -- {SECRET}", key=payer)
    told = server.ask(f"SELECT COUNT(*) AS n {where}", key=other)
    assert told.status_code == 200
    assert SECRET not in told.text
    number = told.json()["id"]
    for path in (f"answers/{number}", f"answers/{number}/certificate", "transcript", "balance"):
        assert SECRET not in server.call("GET", path, key=other).text, path
    shown = server.call("GET", f"answers/{number}", key=other).json()
    assert [column["name"] for column in shown["columns"]] == ["n"]  # as they asked for it
    both = ["city = 'Cork'", "city = 'Bergen'"]
    for key, name, note in ((payer, SECRET, f" -- {SECRET}"), (other, "n", "")):
        body = {
            "questions": [f"SELECT COUNT(*) AS {name} FROM visits WHERE {c}{note}" for c in both],
            "epsilon": "1/70",
        }
        told = server.call("POST", "ask_all", body, key=key)
        assert told.status_code == 200, told.text
    assert SECRET not in told.text
    # reports, medians, choices
    quality = {"checks": {SECRET: CHECK}, "epsilon": "1/70", "wait_s": 60}
    assert server.call("POST", "quality", quality, key=payer).status_code == 200
    told = server.call("POST", "quality", {**quality, "checks": {"ages": CHECK}}, key=other)
    assert told.status_code == 200
    assert SECRET not in told.text
    assert list(told.json()["distances"]) == ["ages"]
    choice = "SELECT city, COUNT(*) AS {} FROM visits GROUP BY city{}"
    for key, words in ((payer, (SECRET, f" -- {SECRET}")), (other, ("n", ""))):
        body = {"candidates": choice.format(*words), "epsilon": "1/70", "wait_s": 60}
        told = server.call("POST", "choose", body, key=key)
        assert told.status_code == 200, told.text
    assert SECRET not in told.text


ODD = ["0", "1", "nan", "inf", "-1", "1e-400", "1e400", "1/0", "0.95" * 20, "٠.٩", "", 1e308, -0.5]


@pytest.mark.parametrize("value", ODD, ids=str)
def test_odd_numbers_are_refused_before_anything_is_charged(server, value):
    """No confidence, price or bound makes the server fail."""
    key = server.person()
    wanted, questions = {"epsilon": "1/50"}, [COUNT]
    bodies = {
        "curve": [{"question": COUNT, "confidence": value}, {"question": COUNT, "delta": value}],
        "runs/explain": [{**wanted, "threshold": 3, "confidence": value, "question": COUNT}],
        "interviews/explain": [
            {**wanted, "sensitivity": value, "questions": questions},
            {**wanted, "sensitivity": 3, "questions": questions, "confidence": value}],
        "quality/explain": [{"checks": {"a": {**CHECK, "bound": value}}, **wanted},
                            {"checks": {"a": CHECK}, "epsilon": value}],
        "median/explain": [{"question": "SELECT MEDIAN(age) FROM visits", "epsilon": value,
                            "delta": "1e-9"}],
        "choose/explain": [{"candidates": COUNT, "epsilon": value}],
    }  # fmt: skip
    for path, some in bodies.items():
        for body in some:
            found = server.call("POST", path, body, key=key)
            assert found.status_code in (200, 402, 422), (path, body, found.text)
    spent = server.call("GET", "balance", key=key).json()["analyst"]["spent"]
    assert spent["epsilon"] == "0"


def test_works_of_one_do_not_push_out_those_of_another(server, monkeypatch):
    """Whoever floods the server with requests that become works forgets their own."""
    monkeypatch.setattr(works, "_REMEMBERED", 4)
    one, flood = server.person(), server.person()
    wanted = {"checks": {"ages": CHECK}, "epsilon": "1/80", "wait_s": 60}
    assert server.call("POST", "quality", wanted, key=one).status_code == 200
    kept = list(server.state.datasets["clinic"].works._known)[-1]
    for _ in range(9):
        refused = {"checks": {"ages": {**CHECK, "column": "nothing"}}, "epsilon": "1/80"}
        assert server.call("POST", "quality", refused, key=flood).status_code == 422
    assert server.call("GET", f"works/{kept}", key=one).status_code == 200
    held = server.state.datasets["clinic"].works._known.values()
    flooded = next(reversed(held)).analyst
    assert sum(work.analyst == flooded for work in held) <= 5  # four, and the latest
    assert re.fullmatch("[0-9a-f]{24}", kept)
