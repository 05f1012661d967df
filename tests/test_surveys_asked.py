"""Surveys beside a curator's tables: asked in SQL, free, joined with public tables."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from typer.testing import CliRunner

from discreet.accounting.loss import NOTHING
from discreet.cli import app
from discreet.curate import session
from discreet.errors import Refusal, SchemaRefusal
from discreet.local.collection import Collection
from discreet.local.survey import Survey

SURVEY = """
name = "smoking"
title = "Smoking"
epsilon = 12
[[questions]]
name = "smokes"
options = ["never", "sometimes", "daily"]
[[questions]]
name = "city"
options = ["Aarhus", "Bergen"]
"""
TOML = """
budget = { epsilon = 1 }
[tables.visits]
source = "visits.csv"
unit = "patient"
[tables.visits.columns]
patient = "integer"
age = { type = "integer", bounds = [0, 99] }
[tables.harm]
source = "harm.csv"
public = true
[tables.harm.columns]
level = { type = "text", values = ["never", "sometimes", "daily"], nullable = false }
bad = { type = "text", values = ["no", "yes"], nullable = false }
[surveys]
smoking = "surveys/smoking"
"""
GROUPED = "SELECT smokes, COUNT(*) AS n FROM smoking GROUP BY smokes"
JOINED = "SELECT bad, COUNT(*) AS n FROM smoking JOIN harm ON smokes = level GROUP BY bad"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("asked")
    (home / "visits.csv").write_text("patient,age\n" + "".join(f"{n},{n}\n" for n in range(50)))
    (home / "harm.csv").write_text("level,bad\nnever,no\nsometimes,yes\ndaily,yes\n")
    survey = Survey.parse(SURVEY)
    collection = Collection.new(survey, home / "surveys" / "smoking", tokens=3)
    people = {
        "smokes": ["never"] * 900 + ["sometimes"] * 400 + ["daily"] * 700,
        "city": ["Aarhus", "Bergen"] * 1000,
    }
    collection.add(survey.release_many(people))
    session.init(home, TOML)
    return home


@pytest.fixture
def curator(home):
    with closing(session.open(home)) as found:
        yield found


def test_reports_are_a_public_table_of_the_curator(curator):
    """Bernstein and exact tails at 1e-9: a right program misses once in a thousand million."""
    found = curator.ask(GROUPED)
    assert dict(zip(found.column("smokes"), (900, 400, 700), strict=True)).keys() == {
        "never",
        "sometimes",
        "daily",
    }
    sure = curator.surveys.tell("smoking", GROUPED, confidence="0.999999999")
    for (_, interval), truth in zip(sure.accuracy()["n"], (900, 400, 700), strict=True):
        assert interval.low <= truth <= interval.high
        assert interval.high - interval.low < 500
    assert curator.spent == NOTHING
    assert curator.transcript() == ()
    assert "free" in str(found)
    assert "±" in found.notes[1]


def test_reports_are_joined_with_public_tables(curator):
    found = curator.surveys.tell("smoking", JOINED, confidence="0.999999999")
    assert found.column("bad") == ["no", "yes"]
    for (_, interval), truth in zip(found.accuracy()["n"], (900, 1100), strict=True):
        assert interval.low <= truth <= interval.high
    assert curator.spent == NOTHING


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM smoking JOIN visits ON smokes = age",
        "SELECT COUNT(*) FROM visits, smoking",
        "SELECT MEDIAN(smokes) FROM smoking",
        "SELECT COUNT(*) FROM smoking WHERE hair = 'red'",
    ],
)
def test_private_rows_are_never_joined_with_reports(curator, sql):
    with pytest.raises(Refusal):
        curator.ask(sql, epsilon="1/2")
    assert curator.spent == NOTHING


def test_private_tables_are_asked_as_before(curator):
    assert curator.tell("SELECT COUNT(*) FROM visits") is None
    with pytest.raises(Refusal):
        curator.ask("SELECT COUNT(*) FROM visits")  # it has a price


def test_a_release_and_a_survey_never_share_a_name(tmp_path):
    """Neither is made or opened beside the other: no question has two answers."""
    (tmp_path / "visits.csv").write_text("patient,age\n1,30\n2,40\n")
    (tmp_path / "harm.csv").write_text("level,bad\nnever,no\n")
    Collection.new(Survey.parse(SURVEY), tmp_path / "surveys" / "smoking", tokens=1)
    once = 'unit = "patient"\nmax_rows_per_unit = 1'
    session.init(tmp_path, TOML.replace('unit = "patient"', once))
    ages = {"of": "visits", "kind": "marginals", "columns": ["age"], "ways": 1, "epsilon": "1/4"}
    with closing(session.open(tmp_path)) as curator:
        with pytest.raises(Refusal, match="'smoking' is a survey of the session already"):
            curator.make_release("smoking", **ages)
        assert curator.spent == NOTHING
        curator.make_release("ages", **ages)
    settings = tmp_path / session.FILE
    settings.write_text(settings.read_text().replace("\nsmoking =", "\nages ="))
    with pytest.raises(SchemaRefusal, match="the survey 'ages' has the name of a release"):
        session.open(tmp_path)


def test_ends_need_not_be_as_far_on_both_sides(curator):
    found = curator.ask("SELECT COUNT(*) AS n FROM smoking WHERE smokes = 'daily'")
    ((margin, interval),) = found.accuracy()["n"]
    (value,) = found.column("n")
    assert margin == pytest.approx(max(value - interval.low, interval.high - value))
    assert interval.low == int(interval.low)  # exact tails count people


def test_new_reports_are_seen(home, curator):
    before = curator.ask("SELECT COUNT(*) AS n FROM smoking").value()
    collection = Collection(home / "surveys" / "smoking")
    report = collection.survey.release({"smokes": "never", "city": "Bergen"})
    collection.receive(collection.tokens()[0], report)
    assert curator.ask("SELECT COUNT(*) AS n FROM smoking").value() == before + 1


def test_the_command_line_asks_surveys(home):
    shown = CliRunner().invoke(app, ["ask", GROUPED, "--session", str(home)])
    assert shown.exit_code == 0, shown.output
    assert "never" in shown.output
    assert "free" in shown.output
    told = CliRunner().invoke(app, ["ask", JOINED, "--session", str(home), "--json"])
    found = json.loads(told.output)
    assert found["cost"] == "free"
    assert found["columns"] == ["bad", "n"]
    assert all(one["within"] > 0 for one in found["margins"]["n"])


def test_arithmetic_on_estimates_has_no_margin_and_says_so(curator):
    found = curator.ask("SELECT smokes, COUNT(*) * 2 AS n FROM smoking GROUP BY smokes")
    assert {one.promise.value for one in found.margins["n"]} == {"none"}
    assert any("No margin" in note for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('smoking = "surveys/smoking"', 'visits = "surveys/smoking"'),
        ('smoking = "surveys/smoking"', 'harm = "surveys/smoking"'),
        ('smoking = "surveys/smoking"', '"no name" = "surveys/smoking"'),
        ('smoking = "surveys/smoking"', "smoking = 7"),
    ],
)
def test_names_that_mean_something_else_are_refused(home, tmp_path, old, new):
    for name in ("visits.csv", "harm.csv"):
        (tmp_path / name).write_bytes((home / name).read_bytes())
    with pytest.raises(SchemaRefusal):
        session.init(tmp_path, TOML.replace(old, new))


def test_a_survey_that_is_not_there_is_said_when_it_is_asked(home, tmp_path):
    for name in ("visits.csv", "harm.csv"):
        (tmp_path / name).write_bytes((home / name).read_bytes())
    session.init(tmp_path, TOML)
    with closing(session.open(tmp_path)) as curator, pytest.raises(SchemaRefusal) as refused:
        curator.ask(GROUPED)
    assert refused.value.code == "S20"
