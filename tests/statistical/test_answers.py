"""Margins tell the truth: the error of every aggregate over many releases of one truth.

The engine runs once for each question; only the release is repeated.  An error
counts as a miss when it exceeds the margin stated with that very answer.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet
from discreet.curate import Curator, offered
from discreet.domain import Kind
from discreet.release import release

RUNS = 2000
SAMPLED = 100  # simulated margins are dear: stated for every 20th release, compared with all
CONFIDENCE = Fraction(9, 10)
ALPHA = 1e-9  # chance that correct margins fail one test

QUESTIONS = {
    "count": "SELECT COUNT(*) AS x FROM visits",
    "count of a column": "SELECT COUNT(cost) AS x, SUM(cost) AS y FROM visits",
    "units": "SELECT COUNT(DISTINCT patient) AS x FROM visits",
    "distinct": "SELECT COUNT(DISTINCT age) AS x FROM visits",
    "sum": "SELECT SUM(cost) AS x FROM visits",
    "mean": "SELECT AVG(cost) AS x FROM visits",
    "variance": "SELECT VAR_POP(age) AS x FROM visits",
    "deviation": "SELECT STDDEV(age) AS x FROM visits",
    "covariance": "SELECT COVAR_POP(cost, age) AS x FROM visits",
    "correlation": "SELECT CORR(cost, age) AS x FROM visits",
    "slope": "SELECT REGR_SLOPE(cost, age) AS x FROM visits",
    "intercept": "SELECT REGR_INTERCEPT(cost, age) AS x FROM visits",
    "ratio of outputs": "SELECT SUM(cost) / COUNT(*) AS x FROM visits",
    "filtered": "SELECT COUNT(*) FILTER (WHERE age > 40) AS x FROM visits",
}


@pytest.fixture(scope="module")
def clinic() -> Curator:
    rng = np.random.default_rng(11)
    rows = 60_000
    age = rng.integers(0, 100, rows)
    visits = pd.DataFrame(
        {
            "patient": np.arange(rows) // 2,
            "cost": np.clip(rng.gamma(2.0, 60.0, rows) + age, 0, 1000),
            "age": age,
        }
    )
    table = discreet.Table(
        "visits",
        (
            discreet.Column("patient", Kind.INTEGER),
            discreet.Column("cost", Kind.DECIMAL, 0, 1000),
            discreet.Column("age", Kind.INTEGER, 0, 100),
        ),
        unit=("patient",),
        max_rows_per_unit=2,
    )
    budget = discreet.Budget(epsilon=1000)
    return discreet.curator(
        {"visits": visits}, schema=discreet.Schema({"visits": table}), budget=budget
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_margins_cover_and_are_not_vacuous(clinic, name):
    parsed, _ = clinic._parsed(QUESTIONS[name])
    priced = clinic._priced(parsed, offered(parsed, "1/2", None, None, None, "0.95"))
    truth = clinic._engine.run(priced.plan)
    exact = _without_noise(priced, truth)
    answers = [release(priced, truth) for _ in range(RUNS)]
    errors = np.array([abs(float(answer.rows[0].values[0]) - exact) for answer in answers])
    margins = np.array(
        [answer.margins(CONFIDENCE)["x"][0] for answer in answers[:: RUNS // SAMPLED]]
    )
    margin = float(np.median(margins))
    misses = int((errors > margin).sum())
    beta = float(1 - CONFIDENCE)
    # Size: a margin that holds with probability 0.9 fails this with probability ALPHA.  The
    # simulated margins of ratios are themselves estimates from 1,000 draws, hence 0.115.
    assert misses <= binom.isf(ALPHA, RUNS, beta * 1.15)
    assert margin <= 1.25 * float(np.quantile(errors, float(CONFIDENCE))) + 1
    assert margin >= 0.8 * float(np.quantile(errors, float(CONFIDENCE)))


CHOSEN = {
    "median": "SELECT MEDIAN(age) AS x FROM visits WHERE patient < 300",
    "quartiles": "SELECT APPROX_QUANTILES(age, 4) AS x FROM visits WHERE patient < 300",
    "greatest": "SELECT MAX(age) AS x FROM visits WHERE patient < 300",
    "mode": "SELECT MODE(age) AS x FROM visits WHERE age IN (3, 4, 5, 6)",
    "histogram": "SELECT HISTOGRAM(age, 0, 30, 60, 100) AS x FROM visits",
}


@pytest.mark.parametrize("name", CHOSEN)
def test_margins_of_ranks_choices_and_lists_cover(clinic, name):
    """Certified margins hold whatever the data are, so on these they need not be tight."""
    parsed, _ = clinic._parsed(CHOSEN[name])
    priced = clinic._priced(parsed, offered(parsed, "1/2", None, None, None, "0.95"))
    truth = clinic._engine.run(priced.plan)
    answers = [release(priced, truth) for _ in range(RUNS)]
    (margin,) = answers[0].margins(CONFIDENCE)["x"]
    errors = _errors(name, priced, truth, answers)
    misses = int((errors > margin).sum(axis=0).max())
    assert misses <= binom.isf(ALPHA, RUNS, float(1 - CONFIDENCE))
    if name == "histogram":
        assert margin <= 1.25 * float(np.quantile(errors, float(CONFIDENCE))) + 1


def _errors(name, priced, truth, answers) -> np.ndarray:
    """Ranks, rows or counts by which each answer (and each of its entries) is off."""
    found = [answer.rows[0].values[0] for answer in answers]
    (recipe,) = priced.recipes
    (measured,) = truth.open_for_release().measured
    if name == "histogram":
        return np.abs(np.array(found) - measured[0].astype(np.int64))
    if name == "mode":
        values = priced.plan.measurements[0].values
        counts = measured[0].astype(np.int64)
        return np.array([[counts.max() - counts[values.index(v)]] for v in found])
    counts = np.zeros(recipe.variable.span + 1, dtype=np.int64)
    counts[measured.position] = measured.count
    upto = np.cumsum(counts)
    chosen = np.array(found).reshape(RUNS, -1) - recipe.variable.low
    target = np.array([float(q) for q in recipe.fractions]) * upto[-1]
    below = upto[chosen] - counts[chosen]
    return np.maximum(np.maximum(below - target, target - upto[chosen]), 0)


def _without_noise(priced, truth) -> float:
    """What the same recipe gives on the exact integers."""
    from discreet.answer import Answer

    opened = truth.open_for_release()
    return float(Answer(priced, opened.groups, opened.measured).rows[0].values[0])


def test_the_check_has_power():
    """Margins 20 % too small, at the same number of runs, would be caught."""
    rng = np.random.default_rng(5)
    errors = np.abs(rng.laplace(size=RUNS))
    short = 0.8 * -np.log(float(1 - CONFIDENCE))
    assert (errors > short).sum() > binom.isf(ALPHA, RUNS, float(1 - CONFIDENCE) * 1.15)
