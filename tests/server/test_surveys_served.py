"""Surveys over HTTP: listed, and asked for free by whoever has a key."""

from __future__ import annotations

import pytest
from patience import PATIENCE_S

import discreet
from discreet.local.collection import Collection
from discreet.local.survey import Survey

SURVEY = """
name = "smoking"
title = "Smoking"
epsilon = 6
[[questions]]
name = "smokes"
options = ["never", "daily"]
"""
QUESTION = "SELECT smokes, COUNT(*) AS n FROM smoking GROUP BY smokes"


@pytest.fixture(scope="module")
def surveyed(serving, tmp_path_factory):
    home = tmp_path_factory.mktemp("surveyed")
    survey = Survey.parse(SURVEY)
    collection = Collection.new(survey, home / "smoking", tokens=2)
    collection.add(survey.release_many({"smokes": ["never"] * 60 + ["daily"] * 40}))
    with serving(home, more='\n[surveys]\nsmoking = "../smoking"\n') as found:
        yield found


def test_a_survey_is_listed_and_asked_for_free(surveyed):
    key = surveyed.person()
    listed = surveyed.call("GET", "surveys", key=key).json()["surveys"]
    assert listed == [
        {
            "name": "smoking",
            "title": "Smoking",
            "epsilon": "6",
            "respondents": 100,
            "questions": ["smokes"],
        }
    ]
    before = surveyed.call("GET", "balance", key=key).json()
    told = surveyed.call("POST", "surveys/smoking/ask", {"question": QUESTION}, key=key).json()
    assert [row[0] for row in told["rows"]] == ["never", "daily"]
    assert told["cost"] == "free"
    assert all(one["within"] > 0 for one in told["margins"]["n"])
    assert surveyed.call("GET", "balance", key=key).json() == before
    with discreet.connect(surveyed.url, timeout_s=PATIENCE_S, key=key) as clinic:
        assert [one["name"] for one in clinic.surveys()] == ["smoking"]
        assert clinic.ask_survey("smoking", QUESTION)["rows"] == told["rows"]


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("surveys/nothing/ask", "SELECT COUNT(*) FROM nothing"),
        ("surveys/..%2Fledger/ask", "SELECT COUNT(*) FROM ledger"),
        ("surveys/smoking/ask", "SELECT COUNT(*) FROM visits"),
        ("surveys/smoking/ask", "SELECT COUNT(*) FROM smoking, visits"),
        ("surveys/smoking/ask", "SELECT * FROM read_csv('/etc/passwd')"),
    ],
)
def test_nothing_but_a_survey_is_asked_there(surveyed, path, question):
    answer = surveyed.call("POST", path, {"question": question}, key=surveyed.person())
    assert 400 <= answer.status_code < 500
    assert "rows" not in answer.json()


def test_nobody_without_a_key_asks(surveyed):
    answer = surveyed.call("POST", "surveys/smoking/ask", {"question": QUESTION}, key="wrong")
    assert answer.status_code == 401


def test_a_dataset_without_surveys_lists_none(server):
    assert server.call("GET", "surveys", key=server.person()).json() == {"surveys": []}
