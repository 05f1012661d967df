"""Reports asked in SQL: unbiased by enumeration, ranges that hold, refusals, nothing charged."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import NOTHING
from discreet.curate.collected import Collected
from discreet.errors import Refusal
from discreet.local.plan import write_report
from discreet.local.survey import Survey
from discreet.question.domain import Kind
from discreet.question.schema import Column, Table

TEXT = """
name = "smoking"
epsilon = 6
[[questions]]
name = "smokes"
options = ["never", "sometimes", "daily"]
[[questions]]
name = "sex"
options = ["f", "m"]
[[questions]]
name = "sleep"
lower = 0
upper = 14
"""
HARM = Table(
    "harm",
    (
        Column("level", Kind.TEXT, values=("never", "sometimes", "daily"), nullable=False),
        Column("bad", Kind.TEXT, values=("no", "yes"), nullable=False),
    ),
)
PUBLIC = {
    "harm": (
        HARM,
        [
            {"level": "never", "bad": "no"},
            {"level": "sometimes", "bad": "yes"},
            {"level": "daily", "bad": "yes"},
        ],
    )
}


@pytest.fixture(scope="module")
def survey() -> Survey:
    return Survey.parse(TEXT)


@pytest.fixture(scope="module")
def collected(survey) -> Collected:
    """Four thousand people; of the men a quarter smoke daily, of the women none."""
    smokes = ["never"] * 2000 + ["never"] * 1500 + ["daily"] * 500
    answers = {
        "smokes": smokes,
        "sex": ["f"] * 2000 + ["m"] * 2000,
        "sleep": [8.0] * 2000 + [6.0] * 2000,
    }
    return Collected(survey, survey.release_many(answers), public=PUBLIC)


def every_report(survey, answer):
    """All reports to the two questions with options, each with its probability."""
    laws = []
    for place, value in enumerate(answer):
        randomizer = survey.randomizers[place]
        law = randomizer.law(value)
        assert isinstance(law, FiniteLaw)
        laws.append(
            [
                (write_report(randomizer, one), float(chance))
                for one, chance in zip(law.outcomes, law.fractions, strict=True)
            ]
        )
    for parts in itertools.product(*laws):
        yield [one for one, _ in parts], math.prod(chance for _, chance in parts)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM survey WHERE smokes = 'daily'", 1),
        ("SELECT COUNT(*) AS n FROM survey WHERE smokes <> 'daily'", 0),
        ("SELECT COUNT(*) AS n FROM survey WHERE smokes = 'daily' AND sex = 'm'", 1),
        ("SELECT COUNT(*) AS n FROM survey WHERE smokes = 'daily' AND sex = 'f'", 0),
        ("SELECT COUNT(*) AS n FROM survey WHERE smokes = 'daily' OR sex = 'f'", 1),
        ("SELECT COUNT(*) AS n FROM survey JOIN harm ON smokes = level WHERE bad = 'yes'", 1),
        ("SELECT COUNT(*) FILTER (WHERE sex = 'm') AS n FROM survey", 1),
    ],
)
def test_counts_are_exactly_unbiased(survey, sql, expected):
    """Over every report that one man who smokes daily can send."""
    sleep = survey.release({"smokes": "daily", "sex": "m", "sleep": 7})[2]
    mean = sum(
        chance * Collected(survey, [[*report, sleep]], public=PUBLIC).ask(sql).column("n")[0]
        for report, chance in every_report(survey, (2, 1))
    )
    assert mean == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        (
            "SELECT smokes, COUNT(*) AS n FROM survey GROUP BY smokes",
            {"never": 3500, "sometimes": 0, "daily": 500},
        ),
        (
            "SELECT bad, COUNT(*) AS n FROM survey JOIN harm ON smokes = level GROUP BY bad",
            {"no": 3500, "yes": 500},
        ),
        (
            "SELECT sex, COUNT(*) AS n FROM survey WHERE smokes = 'daily' GROUP BY sex",
            {"f": 0, "m": 500},
        ),
        ("SELECT sex, AVG(sleep) AS n FROM survey GROUP BY sex", {"f": 8, "m": 6}),
        ("SELECT sex, SUM(sleep) AS n FROM survey GROUP BY sex", {"f": 16_000, "m": 12_000}),
    ],
)
def test_ranges_hold(collected, sql, truth):
    found = collected.ask(sql, confidence="0.999999999")
    assert {row[0] for row in found.rows} == set(truth)
    for row, ends in zip(found.rows, found.intervals("n"), strict=True):
        low, high = ends
        assert low <= truth[row[0]] <= high
        assert low <= row[1] <= high or row[1] < 0
    assert found.intervals(found.columns[0]) == [None] * len(truth)
    assert found.loss == NOTHING


def test_a_mean_lies_between_the_bounds_of_its_answers(survey):
    """Of few people who are few: the quotient of two noisy numbers may be anything, a mean not."""
    people = {"smokes": ["daily"] * 300 + ["never"] * 900, "sex": ["f"] * 1200}
    few = Collected(survey, survey.release_many({**people, "sleep": [14.0] * 1200}))
    bounds = next(q for q in survey.questions if q.name == "sleep")
    shown = 0
    for confidence in ("0.5", "0.95"):
        found = few.ask(
            "SELECT smokes, AVG(sleep) AS m FROM survey GROUP BY smokes", confidence=confidence
        )
        for value, ends in zip(found.column("m"), found.intervals("m"), strict=True):
            if ends is not None:
                shown += 1
                assert bounds.lower <= ends[0] <= value <= ends[1] <= bounds.upper
    assert shown  # "never" is asked of 900, at even odds


def test_how_many_reported_is_known(collected):
    assert collected.ask("SELECT COUNT(*) AS n FROM survey").rows == [(4000.0,)]
    assert collected.ask("SELECT COUNT(*) AS n FROM survey").intervals("n") == [(4000.0, 4000.0)]


def test_order_having_limit_and_arithmetic(collected):
    found = collected.ask(
        "SELECT smokes, COUNT(*) AS n, COUNT(*) / 2 AS half FROM survey GROUP BY smokes "
        "HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 1"
    )
    assert found.column("smokes") == ["never"]
    assert found.column("half")[0] == pytest.approx(found.column("n")[0] / 2)
    assert found.intervals("half") == [None]
    assert json.dumps(found.to_json())
    assert "free" in str(found)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MEDIAN(sleep) FROM survey",
        "SELECT COUNT(*) FROM survey WHERE sleep > 3",
        "SELECT AVG(sleep + 1) FROM survey",
        "SELECT * FROM survey",
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(DISTINCT sex) FROM survey",
        "DROP TABLE survey",
    ],
)
def test_what_reports_do_not_say_is_refused(collected, sql):
    with pytest.raises(Refusal):
        collected.ask(sql)


def test_few_reports(survey):
    none = Collected(survey, [])
    assert none.ask("SELECT COUNT(*) AS n FROM survey WHERE sex = 'f'").rows == [(0.0,)]
    one = Collected(survey, [survey.release({"smokes": "never", "sex": "f", "sleep": 3})])
    (ends,) = one.ask(
        "SELECT COUNT(*) AS n FROM survey WHERE sex = 'f' AND smokes = 'daily'"
    ).intervals("n")
    assert ends == (-math.inf, math.inf)
    assert np.isfinite(one.ask("SELECT COUNT(*) AS n FROM survey WHERE sex = 'f'").rows[0][0])
