"""Private multiplicative weights through the curator: one charge, a histogram that learns."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.curate import session as sessions
from discreet.errors import Halted, Refusal

ROWS = 24_000
SCHEMA = """
[budget]
epsilon = 900
[tables.visits]
source = "visits.parquet"
unit = "who"
max_rows_per_unit = 1
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"], nullable = false }
sick = { type = "boolean", nullable = false }
cost = { type = "decimal", bounds = [0, 9] }
"""
SETTINGS = {
    "of": "visits",
    "columns": ["city", "sick"],
    "rows": ROWS,
    "questions": 60,
    "epsilon": 400,
    "beta": "1e-10",
}
CONDITIONS = [
    f"{city} AND {sick}"
    for city in ("city = 'Cork'", "city = 'Faro'", "city <> 'Oslo'", "TRUE")
    for sick in ("sick", "NOT sick", "TRUE")
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that nothing was asked of."""
    folder = tmp_path_factory.mktemp("learning")
    who = np.arange(ROWS)
    visits = pd.DataFrame(
        {
            "who": who,
            "city": np.array(["Cork", "Faro", "Oslo"])[np.where(who % 10 < 8, 0, who % 3)],
            "sick": who % 20 == 3,
            "cost": 1.5,
        }
    )
    visits.to_parquet(folder / "visits.parquet")
    sessions.init(folder, SCHEMA)
    return folder


@pytest.fixture
def home(written: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(written, tmp_path / "home"))


def count(home: Path, condition: str) -> int:
    return len(pd.read_parquet(home / "visits.parquet").query(_python(condition)))


def _python(condition: str) -> str:
    said = condition.replace("<>", "!=").replace(" = ", " == ").replace("AND", "and")
    return said.replace("NOT", "not").replace("TRUE", "who >= 0")


def test_answers_are_within_their_theorem_and_the_histogram_learns(home):
    with discreet.open(home) as curator:
        plan = curator.explain_learn(**SETTINGS)
        assert curator.spent.epsilon == 0
        assert str(plan).startswith("LEARN city × sick OF visits, 60 questions")
        run = curator.learn(**SETTINGS)
        assert curator.spent.epsilon == plan.loss.epsilon == 400
        first = {}
        for condition in CONDITIONS * 2:
            answer = run.ask(f"SELECT COUNT(*) FROM visits WHERE {condition}")
            true = count(home, condition)
            assert abs(answer.value - true) <= answer.margin == run.margin
            first.setdefault(condition, answer)
        assert curator.spent.epsilon == 400  # nothing is charged after
    assert 0 < run.surprises <= plan.watch.at_most
    assert first["city = 'Cork' AND sick"].surprised  # a sixth was guessed: far too many
    assert first["city = 'Cork' AND NOT sick"].surprised  # and here far too few
    cork = run.histogram[0]
    assert abs(cork[1] - count(home, "city = 'Cork' AND sick")) <= run.margin + 1
    assert run.histogram.sum() == pytest.approx(ROWS)


def test_a_run_goes_on_from_the_ledger(home):
    with discreet.open(home) as curator:
        run = curator.learn(**SETTINGS)
        for condition in CONDITIONS[:4]:
            run.ask(f"SELECT COUNT(*) FROM visits WHERE {condition}")
        assert run.surprises
    with discreet.open(home) as curator:
        again = curator.learn(**SETTINGS)
        assert (again.id, again.asked, again.surprises) == (run.id, run.asked, run.surprises)
        assert again.histogram == pytest.approx(run.histogram, rel=1e-12)
        assert curator.spent.epsilon == 400
        with again:
            pass
        with pytest.raises(Refusal):
            again.ask("SELECT COUNT(*) FROM visits")


def test_a_run_ends_with_its_questions(home):
    with discreet.open(home) as curator:
        run = curator.learn(**{**SETTINGS, "questions": 2})
        run.ask("SELECT COUNT(*) FROM visits")
        run.ask("SELECT COUNT(*) FROM visits")
        with pytest.raises(Halted, match="its 2 questions"):
            run.ask("SELECT COUNT(*) FROM visits")


def test_what_the_histogram_cannot_say_is_refused_and_not_asked(home):
    with discreet.open(home) as curator:
        run = curator.learn(**SETTINGS)
        for question in (
            "SELECT city, COUNT(*) FROM visits GROUP BY city",
            "SELECT SUM(cost) FROM visits",
            "SELECT COUNT(*) FROM visits WHERE cost > 2",
            "SELECT COUNT(*) FROM visits JOIN visits AS w USING (who)",
            "nothing",
        ):
            with pytest.raises(Refusal):
                run.ask(question)
            assert run.asked == 0, question


def test_runs_that_cannot_be_are_refused_before_paying(home):
    with discreet.open(home) as curator:
        for change, says in (
            ({"columns": ["cost"]}, "several values"),
            ({"columns": ["place"]}, "no column"),
            ({"rows": 0}, "rows"),
            ({"epsilon": None}, "epsilon"),
            ({"rows": 10**12, "epsilon": 800}, "more often than a run may tell"),
        ):
            with pytest.raises(Refusal, match=says):
                curator.learn(**{**SETTINGS, **change})
            assert curator.spent.epsilon == 0


def test_the_command_line_learns_and_goes_on(home, capsys):
    import json

    from typer.testing import CliRunner

    from discreet.cli import app

    words = ["learn", "SELECT COUNT(*) FROM visits WHERE city = 'Cork' AND sick", "--json"]
    words += ["--of", "visits", "--columns", "city,sick", "--rows", str(ROWS), "--questions", "60"]
    words += ["--epsilon", "400", "--beta", "1e-10", "--session", str(home)]
    told = []
    for more in (["--explain"], [], []):
        found = CliRunner().invoke(app, [*words, *more])
        assert found.exit_code == 0, found.output
        told.append(json.loads(found.stdout))
    explained, first, second = told
    truth = count(home, "city = 'Cork' AND sick")
    for one in (first, second):
        (answer,) = one["answers"]
        assert abs(answer["value"] - truth) <= answer["margin"] == explained["margin"]
    assert (first["id"], second["asked"] > first["asked"]) == (second["id"], True)
    found = CliRunner().invoke(app, ["learn", "SELECT AVG(cost) FROM visits", *words[2:]])
    assert found.exit_code != 0
    with discreet.open(home) as curator:
        assert curator.spent.epsilon == 400
