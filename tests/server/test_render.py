"""One rendering of an answer: the same at every door, and every margin with its unit."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from cli_cases import copied, make_session, runner
from patience import PATIENCE_S

from discreet.curate import session
from discreet.curate.remote import connect
from discreet.ledger.keys import new_key
from discreet.release.record import answer_from_bytes, answer_to_bytes
from discreet.release.render import arrow_stream, margin_words

QUESTION = (
    "SELECT reason, COUNT(*) AS n, MEDIAN(cost) AS middle, AVG(cost) AS mean, "
    "MODE(reason) AS most, 2 * COUNT(*) AS twice FROM visits GROUP BY reason"
)
OFFER = {"epsilon": "3/10", "confidence": "0.9"}
UNITS = {
    "reason": None,
    "n": "value",
    "middle": "ranks",
    "mean": "value",
    "most": "rows",
    "twice": "value",
}
HEADER = [
    *("reason", "n", "n_margin", "n_low", "n_high", "middle", "middle_margin_ranks"),
    *("mean", "mean_margin", "mean_low", "mean_high", "most", "most_margin_rows"),
    *("twice", "twice_margin", "twice_low", "twice_high"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return make_session(tmp_path_factory.mktemp("render") / "clinic")


@pytest.fixture(scope="module")
def answer(home):
    with session.open(home) as curator:
        return curator.ask(QUESTION, **OFFER)


def test_every_margin_has_its_unit(answer):
    assert answer.margin_units == UNITS
    told = answer.to_json("0.9")
    assert {c["name"]: c["margin_unit"] for c in told["columns"]} == UNITS
    for cells in told["cells"]:
        assert cells[2].endswith(" ranks)")
        assert cells[4].endswith(" rows)")
        assert not any("ranks" in text or "rows" in text for text in (*cells[:2], cells[3]))
    margins = answer.margins("0.9")
    assert told["margins"] == [
        [margins[name][row] for name in answer.columns] for row in range(len(answer.rows))
    ]


def test_csv_and_arrow_have_the_same_columns(answer):
    lines = answer.to_csv("0.9").split("\n")
    assert lines[0].split(",") == HEADER
    assert "\r" not in answer.to_csv("0.9")
    table = answer.to_arrow("0.9")
    assert table.column_names == HEADER
    units = {
        field.metadata[b"margin_of"].decode(): field.metadata[b"unit"].decode()
        for field in table.schema
        if field.metadata and b"margin_of" in field.metadata
    }
    ends = [f for f in table.schema if f.name.endswith(("_low", "_high"))]
    assert {f.metadata[b"unit"] for f in ends} == {b"value"}
    assert units == {name: unit for name, unit in UNITS.items() if unit}
    rows = list(csv.DictReader(io.StringIO(answer.to_csv("0.9"))))
    for name in HEADER:
        assert [row[name] for row in rows] == [str(v) for v in table.column(name).to_pylist()]
    assert answer.to_arrow().column_names == list(answer.columns)  # the values alone


def test_a_margin_never_takes_the_name_of_a_column(home):
    question = "SELECT MEDIAN(cost) AS x, COUNT(*) AS x_margin_ranks FROM visits"
    with session.open(home) as curator:
        header = curator.ask(question, epsilon="0.1").to_csv().split("\n")[0]
    assert header == (
        "x,x_margin_ranks_,x_margin_ranks,x_margin_ranks_margin,"
        "x_margin_ranks_low,x_margin_ranks_high"
    )


def test_before_it_is_asked_margins_have_units_too(home):
    with session.open(home, opened=False) as curator:
        explained = curator.explain(QUESTION, epsilon="0.2")
    told = {c["name"]: c for c in explained.to_json()["columns"]}
    assert {name: c["margin_unit"] for name, c in told.items()} == UNITS | {"twice": None}
    words = margin_words(explained, "0.95")
    assert words["middle"].endswith(" ranks")
    assert words["most"].endswith(" rows")
    assert words["n"].split()[-1].isdigit()
    assert told["middle"]["margin_text"] == words["middle"]


def test_what_could_be_bought_is_told_with_its_unit(home):
    with session.open(home, opened=False) as curator:
        question = "SELECT MEDIAN(cost) AS middle FROM visits"
        quote = curator.price(question, within="4")
    assert " ranks" in quote.refusal.fix


def test_every_door_says_the_same(home, capsys, monkeypatch, tmp_path, serve_sessions):
    """CLI, HTTP and client show the stored answer; only where it was found differs."""
    elsewhere = copied(home, tmp_path / "clinic")
    with session.open(elsewhere, opened=False) as curator:
        key = new_key(curator.account, "curator")
        local = curator.ask(QUESTION, **OFFER)
    monkeypatch.setenv("DISCREET_SESSION", str(elsewhere))
    run = runner(capsys)
    asked = ("ask", QUESTION, "--epsilon", "3/10", "--confidence", "0.9")
    cli = json.loads(run(*asked, "--json")[1])
    with (
        serve_sessions([elsewhere]) as url,
        connect(url, key=key, timeout_s=PATIENCE_S) as remote,
    ):
        path = f"/v1/datasets/clinic/answers/{local.id}?confidence=0.9"
        http = {
            form: remote._connection._client.get(path, headers={"Accept": form})
            for form in ("application/json", "text/csv", "application/vnd.apache.arrow.stream")
        }
        client = remote.answer(local.id)
    texts, csvs, arrow = http.values()
    found = texts.json()
    assert list(cli) == list(found) == list(client.to_json())
    place = {"dataset": None, "at": None}
    replayed = {"replayed": True, "paid": cli["paid"], "text": cli["text"]}
    mine = client.to_json("0.9")
    for shown in (found, mine):
        shown["certificate"] = {**shown["certificate"], "charged": cli["certificate"]["charged"]}
    assert {**found, **place, **replayed} == cli
    assert {**mine, **replayed} == cli
    assert csvs.text == run(*asked, "--csv")[1] == client.to_csv("0.9") == local.to_csv("0.9")
    table = pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()
    assert table.equals(local.to_arrow("0.9"), check_metadata=True)
    assert arrow.content == arrow_stream(client.to_arrow("0.9"))


def test_a_stored_answer_is_rendered_alike(answer):
    again = answer_from_bytes(answer_to_bytes(answer))
    assert again.to_csv() == answer.to_csv()
    assert {**again.to_json(), "id": str(answer.id)} == answer.to_json()
