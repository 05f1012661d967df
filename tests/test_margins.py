"""What margins say of themselves, before and after asking; numbers, targets and EXPLAIN's text."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.errors import QuestionRefusal
from discreet.mechanisms import Quantiles
from discreet.mechanisms.quantiles.ranks import count_occupied_cells
from discreet.noise.entropy import use_recording
from discreet.release.display import number
from discreet.release.explanation import shorten
from discreet.release.record import (
    answer_from_bytes,
    answer_to_bytes,
    explanation_from_bytes,
    explanation_to_bytes,
)

SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Oslo"], nullable = false }
cost = { type = "decimal", bounds = [0, 900] }
wide = { type = "integer", bounds = [0, 1000000000000] }
"""
EVERY = (
    "SELECT COUNT(*) AS n, SUM(cost) AS total, AVG(cost) AS mean, MEDIAN(cost) AS middle, "
    "MODE(city) AS usual, HISTOGRAM(cost, 0, 450, 900) AS bins, SUM(cost) / COUNT(*) AS each, "
    "MEDIAN(cost) * 2 AS twice FROM visits"
)
KINDS = {
    "n": "exact",
    "total": "exact",
    "mean": "set",
    "middle": "typical",
    "usual": "certified",
    "bins": "exact",
    "each": "set",
    "twice": None,
}


@pytest.fixture(scope="module")
def clinic() -> discreet.Curator:
    rows = 6_000
    visits = pd.DataFrame(
        {
            "patient": np.arange(rows) // 3,
            "city": np.array(["Cork", "Delft", "Oslo"])[np.arange(rows) % 7 % 3],
            "cost": (np.arange(rows) * 37 % 9000) / 10,
            "wide": np.arange(rows) * 1_000_003 * 101 % 10**12,
        }
    )
    schema = discreet.Schema.from_text(SCHEMA)
    return discreet.curator(
        {"visits": visits}, schema=schema, budget=discreet.Budget(epsilon=10**4)
    )


def test_every_margin_says_how_it_is_known(clinic):
    answer = clinic.ask(EVERY, epsilon=6)
    assert answer.margin_kinds == KINDS
    margins, certified = answer.margins(), answer.margins(certified=True)
    for name, kind in KINDS.items():
        (stated,), (certain,) = margins[name], certified[name]
        if kind in ("exact", "certified", "set"):
            assert certain == stated > 0
        elif kind == "typical":
            assert certain > 2 * stated > 0
        else:
            assert certain is None
            assert (stated is None) == (kind is None)


def test_the_words_and_the_certificate_say_so_too(clinic):
    answer = clinic.ask(EVERY, epsilon=6)
    certain = math.ceil(answer.margins("0.95", certified=True)["middle"][0])
    said = " ".join(answer.notes)
    assert "typical: for values that lie evenly around the answer" in said
    assert f"middle ± {certain}" in said
    assert "its margin, certified," in said
    shown = str(answer)
    assert f"(± {number(answer.margins()['middle'][0], up=True)} ranks)" in shown
    stated = answer.certificate["margins"]
    assert stated["middle"]["kind"] == "typical"
    assert stated["middle"]["counts"] == "ranks"
    assert stated["middle"]["certified_at_95_percent"] > 2 * stated["middle"]["at_95_percent"]
    assert stated["mean"] == {
        "kind": "set",
        "counts": None,
        "at_95_percent": None,
        "certified_at_95_percent": None,
    }


def test_explain_predicts_what_the_answer_states(clinic):
    plan, answer = clinic.explain(EVERY, epsilon=6), clinic.ask(EVERY, epsilon=6)
    for only in (False, True):
        predicted, stated = plan.margins(certified=only), answer.margins(certified=only)
        for name in ("n", "total", "middle", "usual", "bins"):
            assert [predicted[name]] == stated[name]
    assert plan.margins(rows=2000)["mean"] > 0
    assert plan.margins(rows=2000, certified=True)["mean"] is None
    assert plan.margin_kinds["middle"] == "typical"
    assert "ranks (typical)" in str(plan)


def test_a_margin_is_the_same_whenever_and_wherever_it_is_looked_at(clinic):
    """Nothing is drawn for it: also after storing, and in a process of its own."""
    answer, plan = clinic.ask(EVERY, epsilon=5), clinic.explain(EVERY, epsilon=5)
    with use_recording(b""):
        margins, predicted, shown = answer.margins(), plan.margins(rows=2000), str(answer)
    stored = answer_to_bytes(answer)
    assert margins == answer.margins() == answer_from_bytes(stored).margins()
    assert shown == str(answer_from_bytes(stored))
    planned = explanation_from_bytes(explanation_to_bytes(plan))
    assert predicted == planned.margins(rows=2000)
    script = (
        "import sys; from discreet.release.record import answer_from_bytes; "
        "print(answer_from_bytes(sys.stdin.buffer.read()).margins())"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], input=stored, capture_output=True, check=True
    )
    assert other.stdout.decode().strip() == str(margins)


def test_explain_prints_a_screenful_of_the_statement():
    assert shorten("SELECT 3") == ["SELECT 3"]
    lines = shorten("\n".join(["x" * 500] * 300))
    assert len(lines) == 41
    assert max(map(len, lines)) == 100
    assert lines[-1] == "… 300 lines in all: .engine_sql"


def test_wide_whole_numbers_are_summed_to_whole_numbers(clinic):
    answer = clinic.ask("SELECT SUM(wide) AS s, SUM(wide * wide) AS t FROM visits", epsilon=6)
    for value in answer.rows[0].values:
        assert isinstance(value, int)
    assert answer.rows[0].values[0] % 2**19 == 0  # on its public grid


# --- targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(cost)", "MEDIAN(cost)", "MODE(city)"])
def test_a_target_is_met_by_a_margin_that_holds_whatever_the_data_are(clinic, aggregate):
    answer = clinic.ask(f"SELECT {aggregate} AS x FROM visits", within=240, confidence="0.9")
    (certified,) = answer.margins("0.9", certified=True)["x"]
    assert 0.9 * 240 <= certified <= 240


def test_a_target_for_what_depends_on_the_data_is_refused(clinic):
    with pytest.raises(QuestionRefusal, match="Q44"):
        clinic.ask("SELECT AVG(cost) AS x FROM visits", within=3)


# --- the typical errors of quantiles --------------------------------------------------------------


def test_a_single_quantile_errs_by_its_own_choice_alone():
    (((weight, scale),),) = Quantiles(["3/4"], lower=2, upper=900, epsilon="1/5").errors
    assert (weight, scale) == (1.0, pytest.approx(2 * 0.75 * 5))


def test_each_of_several_quantiles_inherits_a_share_of_those_around_it():
    """The quartiles at 1/3 each level: the outer ones move by half of what the middle one does."""
    low, middle, high = Quantiles(["1/4", "1/2", "3/4"], lower=2, upper=900, epsilon="2/3").errors
    one = pytest.approx(2 * 0.5 * 3)
    assert middle == ((1.0, one),)
    assert low == high == ((1.0, one), (0.5, one))


def test_an_answer_nearer_to_a_cut_inherits_more_of_its_error():
    low, _, high = Quantiles(["1/10", "2/5", "4/5"], lower=2, upper=900, epsilon="2/5").errors
    middle = pytest.approx(2 * 0.6 * 5)
    assert low == ((1.0, pytest.approx(2 * 0.75 * 5)), (0.25, middle))
    assert high == ((1.0, pytest.approx(2 * (2 / 3) * 5)), (pytest.approx(1 / 3), middle))


@pytest.mark.parametrize("wanted", [["1/3"], ["1/10", "2/5", "4/5"]])
def test_the_errors_are_those_of_releases_of_evenly_spread_values(wanted):
    """Standard deviations over many releases, against the sum of the laws' variances.

    Of a thousand Laplace draws the deviation is known to 3.5 %, so 25 % is seven deviations.
    """
    runs, rows = 1_000, 5_000
    mechanism = Quantiles(wanted, lower=0, upper=rows * 50, epsilon="1/2")
    cells = count_occupied_cells(np.arange(rows) * 50 + 25)
    found = np.array([mechanism.release_cells(cells) for _ in range(runs)]) / 50
    off = found - np.array([float(Fraction(q)) for q in wanted]) * rows
    for column, errors in zip(off.T, mechanism.errors, strict=True):
        expected = math.sqrt(sum(2 * (weight * scale) ** 2 for weight, scale in errors))
        assert np.sqrt(np.mean(column**2)) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("q", ["1/2", "1/4", "199/200"])
def test_the_certified_margin_of_one_quantile_is_that_of_its_own_choice(q):
    """ln((N - 1)(1 - beta) / beta) / rate for N places, and the rank of the value itself."""
    mechanism = Quantiles([q], lower=2, upper=900, epsilon="1/5")
    share = max(Fraction(q), 1 - Fraction(q))
    odds = (899 * 2**20 - 1) * 0.95 / 0.05
    expected = math.log(odds) * 2 * float(share) * 5 + 1
    assert mechanism.margin("0.05") == pytest.approx(expected)


def test_the_mechanism_of_a_question_has_the_price_of_its_ranks(clinic):
    plan = clinic.explain("SELECT MEDIAN(cost) AS x FROM visits", epsilon="3/4").priced
    (((_, scale),),) = plan.mechanisms[0].quantiles(plan.recipes[0]).errors
    assert scale == pytest.approx(2 * 0.5 * 3 / 0.75)  # three rows of one person
