"""What the workbench needs of the server: pictures, files, curves, saved questions, pages."""

from __future__ import annotations

import io
import zipfile
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from patience import wait_until

from discreet.errors import AccessRefusal
from discreet.release.files import answer_workbook
from discreet.server.models import Ask
from discreet.server.saved import SavedQuestions

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits WHERE age < {} GROUP BY city"
SVG = "image/svg+xml"
PARQUET = "application/vnd.apache.parquet"
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.fixture(scope="module")
def stored(server):
    """An answer with three groups, and who paid for it."""
    key = server.person()
    answer = server.ask(BY_CITY.format(31), key=key).json()
    return answer, key


def get(server, path, key, accept="application/json"):
    return server.call("GET", path, key=key, headers={"Accept": accept})


def test_an_answer_is_drawn_as_it_was_released(server, stored):
    answer, key = stored
    path = f"answers/{answer['id']}?width=400&paper=dark"
    drawn = get(server, path, key, SVG)
    assert drawn.status_code == 200
    assert drawn.headers["content-type"] == SVG
    assert "default-src 'none'" in drawn.headers["content-security-policy"]
    assert drawn.headers["discreet-description"].startswith("n%20by%20city")
    text = drawn.text
    assert text.startswith("<svg")
    assert 'width="400"' in text
    for city in ("Aalborg", "Bergen", "Cork"):
        assert city in text
    assert get(server, path, key, SVG).text == text
    light = get(server, f"answers/{answer['id']}?width=400", key, SVG).text
    assert light != text
    wrong = get(server, f"answers/{answer['id']}?y=m", key, SVG)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "P5")
    other = get(server, path, server.person(), SVG)
    assert other.status_code == 404


def test_files_hold_what_the_table_holds(server, stored):
    answer, key = stored
    sent = get(server, f"answers/{answer['id']}", key, PARQUET)
    table = pq.read_table(io.BytesIO(sent.content))
    assert table.column("n").to_pylist() == [row[1] for row in answer["rows"]]
    assert "n_margin" in table.column_names
    book = get(server, f"answers/{answer['id']}", key, WORKBOOK)
    with zipfile.ZipFile(io.BytesIO(book.content)) as parts:
        sheet = parts.read("xl/worksheets/sheet1.xml").decode()
        words = parts.read("xl/sharedStrings.xml").decode()
    for row in answer["rows"]:
        assert f"<v>{row[1]}</v>" in sheet
        assert row[0] in words


def test_a_key_that_looks_like_a_formula_is_text_in_a_workbook():
    import pyarrow as pa

    class Fake:
        text, loss, notes = "=SELECT 7", "ε = 7", ("=2+2",)

        def to_arrow(self, _confidence):
            return pa.table({"=who": ['=HYPERLINK("x")', "+7"], "n": [2**60, 7]})

    with zipfile.ZipFile(io.BytesIO(answer_workbook(Fake(), "0.95"))) as parts:
        sheets = [parts.read(f"xl/worksheets/sheet{i}.xml").decode() for i in (1, 2)]
        words = parts.read("xl/sharedStrings.xml").decode()
    assert all("<f>" not in sheet for sheet in sheets)
    assert str(2**60) in words  # not a rounded number


def test_the_curve_says_what_other_prices_would_buy_and_costs_nothing(server):
    key = server.person()
    body = {"question": f"{COUNT} WHERE age < 33"}
    told = server.call("POST", "curve", body, key=key).json()
    margins = [point["margins"]["n"] for point in told["points"]]
    assert margins == sorted(margins, reverse=True)
    half = next(point for point in told["points"] if point["epsilon"] == "0.5")
    explained = server.call("POST", "explain", {**body, "epsilon": "0.5"}, key=key).json()
    assert explained["columns"][0]["margin"] == half["margins"]["n"]
    drawn = server.call("POST", "curve?width=300", body, key=key, headers={"Accept": SVG})
    assert "Accuracy against price" in drawn.text
    assert server.call("GET", "transcript", key=key).json()["entries"] == []
    refused = server.call("POST", "curve", {"question": "SELECT age FROM visits"}, key=key)
    assert refused.status_code == 422


def test_saved_questions_are_ones_own(server):
    key, other = server.person(), server.person()
    new = {"folder": "Monthly", "name": "all", "question": COUNT, "offer": {"epsilon": "0.1"}}
    made = server.call("POST", "saved", new, key=key)
    assert made.status_code == 201
    again = server.call("POST", "saved", {**new, "question": f"{COUNT} WHERE age < 9"}, key=key)
    assert again.json()["id"] == made.json()["id"]
    (kept,) = server.call("GET", "saved", key=key).json()["saved"]
    assert (kept["question"], kept["offer"]) == (f"{COUNT} WHERE age < 9", {"epsilon": "0.1"})
    assert server.call("GET", "saved", key=other).json()["saved"] == []
    number = kept["id"]
    assert server.call("DELETE", f"saved/{number}", key=other).status_code == 404
    assert server.call("DELETE", f"saved/{number}", key=key).status_code == 204
    assert server.call("GET", "saved", key=key).json()["saved"] == []
    assert server.call("POST", "saved", {**new, "name": ""}, key=key).status_code == 422


def test_so_many_questions_may_be_saved_and_are_there_after_a_restart(tmp_path, monkeypatch):
    from discreet.errors import AccessRefusal
    from discreet.server import saved

    monkeypatch.setattr(saved, "MOST_SAVED", 3)
    store = SavedQuestions(tmp_path / "saved.sqlite")
    for name in "abc":
        store.keep("ana", "", name, COUNT, {})
    with pytest.raises(AccessRefusal, match="3 questions are saved"):
        store.keep("ana", "", "d", COUNT, {})
    store.keep("ana", "", "c", "other", {})  # in the place of one that is there
    store.keep("bob", "", "d", COUNT, {})
    store.close()
    found = SavedQuestions(tmp_path / "saved.sqlite")
    assert [(one.name, one.question) for one in found.list("ana")][2] == ("c", "other")
    found.close()


def test_looking_at_a_saved_question_never_pays(server):
    """What a dashboard does: asked without an offer, what is unknown is refused with its price."""
    key = server.person()
    question = BY_CITY.format(37)
    first = server.call("POST", "ask", {"question": question}, key=key)
    assert (first.status_code, first.json()["code"]) == (422, "Q43")
    assert server.ask(question, key=key).status_code == 200
    spent = server.call("GET", "balance", key=key).json()["analyst"]["spent"]
    again = server.call("POST", "ask", {"question": question}, key=key)
    assert again.json()["paid"]["epsilon"] == "0"
    assert server.call("GET", "balance", key=key).json()["analyst"]["spent"] == spent


def test_a_request_that_was_seen_is_not_read_again_until_something_is_recorded(
    server, fresh, monkeypatch
):
    """Explained and replayed from what was sent; whatever the ledger records ends that."""
    key = server.person()
    (question, other) = fresh(2)
    body = {"question": question, "epsilon": "1/50"}
    served = server.state.datasets["clinic"]
    wait_until(lambda: not served.jobs.waiting)
    first = server.call("POST", "explain", body, key=key).json()
    real = served.curator.price
    monkeypatch.setattr(served.curator, "price", None)
    assert server.call("POST", "explain", body, key=key).json() == first
    monkeypatch.setattr(served.curator, "price", real)
    answer = server.ask(question, key=key).json()
    told = server.call("POST", "explain", body, key=key).json()
    assert (first["free"], told["free"]) == (False, True)  # a charge came between
    replay = server.call("POST", "ask", body, key=key).json()
    assert replay["replayed"]
    pay = served.curator.pay
    monkeypatch.setattr(served.curator, "pay", None)
    assert server.call("POST", "ask", body, key=key).json() == replay
    monkeypatch.setattr(served.curator, "pay", pay)
    assert replay["rows"] == answer["rows"]
    server.ask(other, key=key)
    assert server.call("POST", "ask", body, key=key).json()["rows"] == answer["rows"]
    data = served.curator.engine.data_version
    monkeypatch.setattr(served.curator.engine, "data_version", lambda: data() + "x")
    assert not server.call("POST", "explain", body, key=key).json()["free"]  # other data


def test_history_is_searched(server):
    key = server.person()
    for age in (61, 62, 63):
        server.ask(f"{COUNT} WHERE age < {age}", key=key)
    found = server.call("GET", "transcript?contains=AGE < 62", key=key).json()
    assert [entry["question"] for entry in found["entries"]] == [f"{COUNT} WHERE age < 62"]
    page = server.call("GET", "transcript?contains=age&limit=2", key=key).json()
    assert len(page["entries"]) == 2
    path = f"transcript?contains=age&limit=2&before={page['next']}"
    rest = server.call("GET", path, key=key).json()
    assert [entry["question"] for entry in rest["entries"]] == [f"{COUNT} WHERE age < 61"]
    assert server.call("GET", "transcript?contains=nowhere", key=key).json()["entries"] == []


def test_an_analyst_sees_their_own_spending_from_zero(server):
    mine, other = server.person(), server.person()
    server.ask(f"{COUNT} WHERE age < 71", key=other, epsilon="1/3")
    server.ask(f"{COUNT} WHERE age < 72", key=mine, epsilon="1/7")
    told = server.call("GET", "spending?by=hour", key=mine).json()
    assert told["since"] is not None
    assert told["points"][-1]["spent"]["epsilon"].startswith("1")
    assert told["points"][-1]["questions"] == 1
    balance = server.call("GET", "balance", key=mine).json()
    assert told["points"][-1]["spent"] == balance["analyst"]["spent"]
    drawn = get(server, "spending?width=320", mine, SVG)
    assert "Share of the budget" in drawn.text
    refused = server.call("GET", "spending?analyst=curator", key=mine)
    assert refused.status_code == 403


def test_records_are_read_backwards_in_pages(server, fresh):
    for question in fresh(3):
        server.ask(question)
    newest = server.call("GET", "records?before=1000000000&limit=4").json()
    assert len(newest["records"]) == 4
    older = server.call("GET", f"records?before={newest['first']}&limit=4").json()
    assert older["last"] == newest["first"] - 1
    whole = server.call("GET", f"records?after={older['first'] - 1}&limit=8").json()["records"]
    assert older["records"] + newest["records"] == whole
    assert server.call("GET", "records?before=1").json()["records"] == []


def test_whose_time_is_over_is_not_answered_from_what_was_sent(server, fresh, monkeypatch):
    """No record says that a day has passed; nor is the present kept by its name."""
    key = server.person()
    (question,) = fresh(1)
    body = {"question": question, "epsilon": "1/50"}
    served = server.state.datasets["clinic"]
    server.ask(question, key=key)
    wait_until(lambda: not served.jobs.waiting)
    (first, again) = (server.call("POST", "ask", body, key=key) for _ in range(2))
    assert first.json() == again.json()

    def over(*_: object) -> None:
        raise AccessRefusal(
            "A3", "it expired.", why="so it was promised.", fix="ask for more time."
        )

    monkeypatch.setattr("discreet.server.dataset.check_access", over)
    monkeypatch.setattr("discreet.ledger.admission.check_access", over)
    assert server.call("POST", "ask", body, key=key).json()["code"] == "A3"


def test_words_for_the_present_are_read_each_time(server):
    served = server.state.datasets["clinic"]
    wait_until(lambda: not served.jobs.waiting)
    grant = SimpleNamespace(analyst="curator", role="curator")
    plain, today = (
        Ask(question=f"SELECT COUNT(*) FROM visits WHERE {word} > 1", epsilon="1/50")
        for word in ("age", "Current_Date")
    )
    assert served.find_cache_key(plain, grant, "ask") is not None
    assert served.find_cache_key(today, grant, "ask") is None
