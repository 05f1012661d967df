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
from discreet.errors import QuestionRefusal, SchemaRefusal
from discreet.mechanisms import Quantiles
from discreet.mechanisms.quantiles.ranks import count_occupied_cells
from discreet.noise.entropy import use_recording
from discreet.price.recipes import find_moved
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
    return make_clinic()


def make_clinic() -> discreet.Curator:
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
        for name in ("n", "middle", "usual", "bins"):
            assert [predicted[name]] == stated[name]
        # Costs are rounded to 1024ths, and how many there are is known with the answer.
        (total,) = stated["total"]
        assert (
            0 < total - predicted["total"] == pytest.approx(2**-11 * answer.column("n")[0], rel=0.1)
        )
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
    assert lines[-1] == "… 300 lines in all: .engine_sql in Python, --json on the command line"


def test_wide_whole_numbers_are_summed_to_whole_numbers(clinic):
    answer = clinic.ask("SELECT SUM(wide) AS s, SUM(wide * wide) AS t FROM visits", epsilon=6)
    for value in answer.rows[0].values:
        assert isinstance(value, int)
    assert answer.rows[0].values[1] % 2**39 == 0  # on its public grid, as fine as 2**40 steps allow


# --- the grid ------------------------------------------------------------------------------------

WIDE = """
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = "integer"
wealth = { type = "decimal", bounds = [0, 1000000000] }
debt = { type = "integer", bounds = [0, 10000000000] }
income = { type = "decimal", bounds = [0, 1000000], step = 100 }
"""


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, discreet.Curator]:
    rng = np.random.default_rng(4)
    rows = 100_000
    frame = pd.DataFrame(
        {
            "id": np.arange(rows),
            "wealth": 700 + rng.random(rows),
            "debt": rng.integers(0, 5000, rows),
            "income": np.clip(np.rint(rng.lognormal(10.5, 0.9, rows) / 100) * 100, 0, 10**6),
        }
    )
    budget = discreet.Budget(epsilon=10**4)
    schema = discreet.Schema.from_text(WIDE)
    return frame, discreet.curator({"people": frame}, schema=schema, budget=budget)


def test_a_median_is_as_many_ranks_off_as_it_says_however_wide_the_bounds(people):
    """On a million steps of 10,000 each every value was one of two: off by all ranks there are."""
    frame, curator = people
    answer = curator.ask("SELECT MEDIAN(debt) AS x FROM people", epsilon=1)
    (certain,) = answer.margins("0.999", certified=True)["x"]
    below, upto = ((frame.debt < answer.value()).sum(), (frame.debt <= answer.value()).sum())
    assert max(below - len(frame) / 2, len(frame) / 2 - upto) <= certain < 100


def test_a_mean_far_below_the_bound_is_within_its_set(people):
    frame, curator = people
    for run in range(10):
        answer = curator.ask("SELECT AVG(wealth) AS x FROM people", epsilon=10 + Fraction(run, 100))
        (interval,) = answer.intervals("0.999999")["x"]
        assert interval.contains(frame.wealth.mean())
        (variable,) = answer.priced.recipes[0].moments.variables
        assert variable.grid == 1


def test_medians_of_rounded_numbers_are_chosen_from_the_declared_steps(people):
    frame, curator = people
    true = np.median(frame.income)
    for epsilon, most in ((1, 10), (Fraction(1, 10), 80)):
        errors = []
        for run in range(10):
            offered = epsilon + Fraction(run, 10**6)
            value = curator.ask("SELECT MEDIAN(income) AS x FROM people", epsilon=offered).value()
            assert value % 100 == 0
            errors.append(abs(value - true))
        assert np.mean(errors) <= most


def test_a_declared_step_is_no_part_of_a_margin(people):
    _, curator = people
    plan = curator.explain("SELECT AVG(income) AS x, AVG(wealth) AS y FROM people", epsilon=1)
    variables = [recipe.moments.variables[0] for recipe in plan.priced.recipes]
    assert [v.grid for v in variables] == [100, 1]
    assert [find_moved(plan.priced.plan.source, v) for v in variables] == [0.0, 0.5]


@pytest.mark.parametrize(
    "wrong",
    ['type = "decimal", step = 0', 'type = "integer", step = 0.5', 'type = "text", step = 2'],
)
def test_a_step_that_is_none_is_refused(wrong):
    with pytest.raises(SchemaRefusal, match="S3"):
        discreet.Schema.from_text(WIDE.replace('type = "decimal", bounds = [0, 1000000000]', wrong))


def test_a_sum_says_that_rounding_adds_up(people):
    _, curator = people
    said = curator.explain("SELECT SUM(wealth) AS x, SUM(income) AS y FROM people", epsilon=1)
    (note,) = (note for note in said.to_json()["notes"] if "rounded" in note)
    assert note.startswith("x: a value is rounded by up to 0.5 before it is added")


ROUNDED = """
[tables.t]
unit = "id"
max_rows_per_unit = 1
[tables.t.columns]
id = "integer"
x = { type = "decimal", bounds = [0, 1024], nullable = false }
"""


@pytest.mark.parametrize(
    ("asked", "joint"),
    [("SUM(x) AS s, 2 * SUM(x) AS d", False), ("SUM(x) AS s, 2 * SUM(x) AS d, AVG(x) AS m", True)],
)
def test_what_rounding_adds_to_a_sum_is_in_its_margin(asked, joint):
    """Values a quarter of a 1024th above such a step: together off by more than the noise."""
    rows, above = 40_000, 2.0**-12
    frame = pd.DataFrame({"id": range(rows), "x": [7 + above] * rows})
    schema = discreet.Schema.from_text(ROUNDED)
    with discreet.curator({"t": frame}, schema=schema, budget=1800) as curator:
        answer = curator.ask(f"SELECT {asked} FROM t", epsilon=1500)
    (interval,), (margin,) = answer.intervals("0.999999")["s"], answer.margins("0.999999")["s"]
    off = abs(answer.column("s")[0] - (7 + above) * rows)
    (doubled,) = answer.intervals("0.999999")["d"]
    assert doubled.contains((7 + above) * rows * 2)
    assert doubled.high - doubled.low > 1.9 * (interval.high - interval.low)
    assert interval.contains((7 + above) * rows)
    if joint:
        assert margin >= 2.0**-11 * rows > above * rows
        assert off > 5
        assert margin - 2.0**-11 * rows < 25
    else:  # nothing counts the values, but steps are fine enough
        assert margin < 25
        assert off < 20


# --- targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(cost)", "MEDIAN(cost)", "MODE(city)"])
def test_a_target_is_met_by_a_margin_that_holds_whatever_the_data_are(aggregate):
    question = f"SELECT {aggregate} AS x FROM visits"
    with make_clinic() as clinic:  # which knows nothing yet that would be free
        answer = clinic.ask(question, within=240, confidence="0.9")
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


@pytest.mark.parametrize("epsilon", [4, 12, 100])
@pytest.mark.parametrize(
    "measured",
    [
        "COUNT(*)",
        "SUM(wide)",
        "HISTOGRAM(cost, 0, 450, 900)",
        "COUNT(DISTINCT patient)",
        "SUM(cost)",
    ],
)
def test_no_margin_of_noise_is_nothing(clinic, measured, epsilon):
    """What is exact nearly always has a margin of a step: exact is what has no noise."""
    question = f"SELECT {measured} AS x FROM visits"
    answer = clinic.ask(question, epsilon=epsilon, fresh=True)
    assert answer.margins()["x"][0] >= (0 if "cost" in measured else 1)
    assert answer.margins()["x"][0] > 0
    assert not answer.to_json()["cells"][0][0].endswith(("± 0", "± 0)"))
    assert (
        "± 0,"
        not in clinic.explain(question, epsilon=epsilon).to_json()["columns"][0]["margin_text"]
    )
    known = clinic.ask(question) if "DISTINCT" not in measured else answer
    assert known.margins()["x"][0] > 0
