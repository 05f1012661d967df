"""Data-quality reports and medians with noise to fit the data, through the curator."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.accounting.budget import Budget
from discreet.accounting.divergence import hockey_stick
from discreet.curate import reports
from discreet.engine.truth import Opened, SparseCounts, Truth
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter, QuestionRefusal, Refusal
from discreet.ledger.account import Account
from discreet.mechanisms import (
    ProposeTestRelease,
    SmoothMedian,
    distance_to_dependency,
    distance_to_order,
)
from discreet.release import release as airlock
from discreet.release.release import release_median
from discreet.server import comparing

SCHEMA = """
[tables.people]
unit = "id"
max_rows_per_unit = 1
columns.id = "integer"
columns.age = { type = "integer", bounds = [0, 150] }
columns.number = { type = "integer", bounds = [0, 100000] }
columns.since = "date"
columns.zip = "text"
columns.town = "text"
[tables.visits]
unit = "id"
max_rows_per_unit = 4
columns.id = "integer"
columns.ward = "text"
columns.cost = { type = "integer", bounds = [0, 500] }
[tables.wards]
public = true
columns.name = "text"
[tables.letters]
unit = "id"
columns.id = "integer"
columns.day = "date"
columns.pages = "integer"
"""

LETTERS = pd.DataFrame({"id": [1], "day": ["2024-01-01"], "pages": [1]})

BUDGET = Budget(epsilon=400, delta="1/10", failures="1/20", accept_large_delta=True)
CHECKS = {
    "ages": {"table": "people", "property": "maximum", "column": "age", "bound": 120},
    "order": {"table": "people", "property": "sorted", "column": "number", "by": "since"},
    "groups": {
        "table": "people",
        "property": "clusters",
        "column": "number",
        "clusters": 2,
        "width": 400,
    },
    "towns": {"table": "people", "property": "dependency", "column": "town", "on": "zip"},
    "wards": {
        "table": "visits",
        "property": "reference",
        "column": "ward",
        "to": "wards",
        "key": "name",
    },
    "known": {"table": "visits", "property": "reference", "column": "id", "to": "people"},
}
TRUE = {"ages": 40, "order": 30, "groups": 168, "towns": 25, "wards": 60, "known": 100}


def make_people():
    """A thousand people; of each property it is known how many break it."""
    id_ = np.arange(1000)
    number = id_.copy()
    number[10:40] = 900 - id_[10:40] % 7  # thirty numbers that come too early
    return pd.DataFrame(
        {
            "id": id_,
            "age": np.where(id_ < 40, 130, 50),
            "number": number,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(id_, unit="D"),
            "zip": (id_ % 7).astype(str),
            "town": np.where(
                id_ >= 975, "elsewhere", "town " + (id_ % 7).astype(str).astype(object)
            ),
        }
    )


def make_visits():
    """Of 900 known people, and of 100 others; sixty have been, also, in no ward there is."""
    id_ = np.repeat(np.arange(100, 1100), 2)
    ward = np.where((id_ < 160) & (np.arange(len(id_)) % 2 == 0), "attic", "a")
    return pd.DataFrame({"id": id_, "ward": ward, "cost": id_ % 400})


@contextmanager
def open_clinic():
    tables = {
        "people": make_people(),
        "visits": make_visits(),
        "wards": pd.DataFrame({"name": ["a", "b"]}),
        "letters": LETTERS,
    }
    with discreet.curator(tables, schema=SCHEMA, budget=BUDGET) as curator:
        yield curator


@pytest.fixture
def clinic():
    with open_clinic() as curator:
        yield curator


@pytest.fixture(scope="module")
def asked_in_vain():
    """A clinic for questions that are all refused: it is as it was."""
    with open_clinic() as curator:
        yield curator


# --- distances -------------------------------------------------------------------------------


def least_removed(rows, holds) -> int:
    """By brute force: how many rows to leave out until the rest has the property."""
    for away in range(len(rows) + 1):
        if any(holds(kept) for kept in itertools.combinations(rows, len(rows) - away)):
            return away
    raise AssertionError


def is_function(rows):
    return len({one for one, _ in rows}) == len(set(rows))


def is_ordered(rows):
    return all(a[1] <= b[1] for a, b in itertools.product(rows, rows) if a[0] < b[0])


@pytest.mark.parametrize("seed", range(12))
def test_distances_are_the_least_number_of_rows_to_leave_out(seed):
    rows = list(map(tuple, np.random.default_rng(seed).integers(0, 4, size=(7, 2)).tolist()))
    assert distance_to_dependency(rows) == least_removed(rows, is_function)
    assert distance_to_order(rows) == least_removed(rows, is_ordered)


@pytest.mark.parametrize("distance", [distance_to_dependency, distance_to_order])
def test_one_row_changes_a_distance_by_at_most_one(distance):
    rows = list(map(tuple, np.random.default_rng(3).integers(0, 5, size=(60, 2)).tolist()))
    whole, moved = distance(rows), set()
    for place in range(len(rows)):
        moved.add(whole - distance(rows[:place] + rows[place + 1 :]))
    assert moved <= {0, 1}
    assert 1 in moved


def test_a_report_tells_how_many_units_stand_in_the_way_for_one_charge(clinic):
    report = clinic.quality(CHECKS, epsilon=300)
    assert {name: report[name] for name in CHECKS} == pytest.approx(TRUE, abs=2)
    assert clinic.spent.epsilon == 300
    assert len(clinic.transcript()) == 1
    assert clinic.quality(CHECKS, epsilon=300).replayed
    assert clinic.spent.epsilon == 300
    assert "maximum of age in people" in str(report)
    assert clinic.ledger.verify().ok


def test_price_and_margin_are_said_before_and_do_not_depend_on_the_data(clinic):
    said = clinic.explain_quality(CHECKS, epsilon="1/2")
    assert said.loss.epsilon == Fraction(1, 2)
    assert said.quality.noise.scale == 12  # six numbers, each moved by at most one
    assert said.to_json()["margin"] == said.quality.margin() == 36
    assert 'WHERE "age" > 120' in str(said)
    assert clinic.transcript() == ()


def test_no_unit_moves_a_distance_by_more_than_one():
    """Every unit left out, through the engine: of tables small enough to leave out each."""
    people = make_people().iloc[[0, 5, 12, 20, 39, 40, 500, 980]].reset_index(drop=True)
    visits = make_visits()
    visits = visits[visits.id.isin([100, 101, 1050])].reset_index(drop=True)

    def measure(people, visits):
        tables = {
            "people": people,
            "visits": visits,
            "wards": pd.DataFrame({"name": ["a", "b"]}),
            "letters": LETTERS,
        }
        with discreet.curator(tables, schema=SCHEMA, budget=9) as curator:
            quality = reports.make_quality(curator, CHECKS, 1)
            plans = [check.plan for check in quality.checks]
            truths = [curator.engine.run(curator.engine.compile(plan)) for plan in plans]
            return np.array([int(t.open_for_release().measured[0][0, 0]) for t in truths])

    whole = measure(people, visits)
    moved = np.zeros(len(CHECKS), dtype=int)
    for unit in {*people.id, *visits.id}:
        without = measure(people[people.id != unit], visits[visits.id != unit])
        assert (np.abs(whole - without) <= 1).all()
        moved |= whole - without
    assert moved.sum() >= 4


OF_ROWS = {
    "order": {"table": "visits", "property": "sorted", "column": "cost", "by": "ward"},
    "costs": {"table": "visits", "property": "dependency", "column": "cost", "on": "ward"},
    "near": {
        "table": "visits",
        "property": "clusters",
        "column": "cost",
        "clusters": 1,
        "width": 3,
    },
    "dear": {"table": "visits", "property": "maximum", "column": "cost", "bound": 400},
}


def open_visits(visits):
    tables = {"people": make_people(), "visits": visits, "wards": pd.DataFrame({"name": ["a"]})}
    tables["letters"] = LETTERS
    return discreet.curator(tables, schema=SCHEMA, budget=900)


def measure_rows(visits):
    """The distances as they are before noise, and how far one unit may move each."""
    seen = []

    def add_noise(_noise, exact):
        seen.extend(exact.tolist())
        return exact

    with pytest.MonkeyPatch.context() as patch, open_visits(visits) as curator:
        patch.setattr(airlock, "_add_noise", add_noise)
        report = curator.quality(OF_ROWS, epsilon=1)
        return np.array(seen), report.quality


def test_of_units_with_several_rows_the_units_are_counted():
    """Every unit left out, through the engine: no distance moves by more than one, nor down."""
    rows = [
        (unit, "abc"[place % 3], [7, 90, 450, 8][(unit * 3 + place) % 4])
        for unit in range(5)
        for place in range(3 + 3 * (unit == 4))  # of six rows of one, four are read
    ]
    visits = pd.DataFrame(rows, columns=["id", "ward", "cost"])
    whole, quality = measure_rows(visits)
    assert quality.noise.sensitivity == 4  # four numbers, and one of each
    moved = np.zeros(4, dtype=int)
    for unit in range(5):
        without, _ = measure_rows(visits[visits.id != unit])
        change = whole - without
        assert (change >= 0).all()
        assert (change <= 1).all()
        moved = np.maximum(moved, change)
    assert (moved == 1).all()
    few = visits[visits.id < 2]
    counted, _ = measure_rows(few)
    own = [list(zip(g.ward, g.cost, strict=True)) for _, g in few.groupby("id")]
    for told, holds in zip(counted[:2], (is_ordered, is_function), strict=True):
        assert told <= least_removed(own, lambda kept, h=holds: h([r for o in kept for r in o]))


def test_what_may_take_more_units_says_so_before_and_has_the_same_noise_elsewhere(monkeypatch):
    with open_visits(make_visits()) as curator:
        said = curator.explain_quality(OF_ROWS, epsilon=1)
        assert "one unit moves each number by at most 1" in str(said)
        assert "order may take more units than it tells" in str(said)
        assert "dear may take more" not in str(said)
        assert said.to_json()["sensitivity"] == 1
        assert ": at least)" in str(curator.quality(OF_ROWS, epsilon=1))
        sent = json.loads(comparing.write_quality(said.quality, "v"))["quality"]
        seen = []
        monkeypatch.setattr(comparing, "compute_quality", lambda _e, q, _v: seen.append(q) or b"")
        comparing.answer_quality(curator.engine, sent)
        assert seen[0].noise == said.quality.noise


# --- the same as questions -----------------------------------------------------------------------

AS_QUESTIONS = {
    "ages": "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people",
    "order": "SELECT DISTANCE_TO_SORTED(number, since) FROM people",
    "groups": "SELECT DISTANCE_TO_CLUSTERS(number, 2, 400) FROM people",
    "towns": "SELECT DISTANCE_TO_DEPENDENCY(town, zip) FROM people",
    "wards": "SELECT DISTANCE_TO_REFERENCE(ward, wards, name) FROM visits",
    "known": "SELECT DISTANCE_TO_REFERENCE(id, people, id) FROM visits",
}


@pytest.mark.parametrize("name", AS_QUESTIONS)
def test_a_distance_is_asked_like_any_other_number(clinic, name):
    text = AS_QUESTIONS[name]
    said = clinic.explain(text, epsilon=20)
    assert said.loss.epsilon == 20
    assert "Laplace" in str(said)
    assert " 1  ±" in str(said)  # its sensitivity
    answer = clinic.ask(text, epsilon=20)
    assert answer.value() == pytest.approx(TRUE[name], abs=2)
    (entry,) = clinic.transcript()
    assert (entry.question, entry.loss.epsilon) == (text, 20)
    assert clinic.ask(text, epsilon=20).value() == answer.value()
    assert clinic.spent.epsilon == 20
    assert clinic.ledger.verify().ok


def test_distances_stand_beside_other_aggregates_in_groups_and_under_conditions(clinic):
    text = (
        "SELECT ward, COUNT(*) AS n, DISTANCE_TO_DEPENDENCY(cost, id) FILTER (WHERE cost > 3) AS d,"
        " DISTANCE_TO_MAXIMUM(cost, 300) + 1 AS m FROM visits WHERE ward IN ('a', 'attic') "
        "GROUP BY ward ORDER BY ward"
    )
    answer = clinic.ask(text, epsilon=90)
    assert answer.column("ward") == ["a", "attic"]
    assert answer.column("d")[0] == pytest.approx(0, abs=2)
    high = make_visits()
    high = high[(high.cost > 300) & (high.ward == "a")].id.nunique()
    assert answer.column("m")[0] == pytest.approx(high + 1, abs=2)


def test_a_distance_is_watched_and_asked_of_in_an_interview(clinic):
    """One unit moves it by one, and it only grows: also of units with several rows."""
    text = "SELECT DISTANCE_TO_DEPENDENCY(cost, ward) FROM visits"
    with clinic.watch(threshold=100, epsilon=30, monotonic=True) as run:
        assert run.ask_one(text).above
    with clinic.interview(sensitivity=3, epsilon=30) as talk:
        assert talk.ask(text).moved == 1
    both = {"many": text, "few": "SELECT DISTANCE_TO_MAXIMUM(cost, 390) FROM visits"}
    assert clinic.explain_choose(both, epsilon=1).loss.epsilon == 1
    assert clinic.choose(both, epsilon=30).names == ("many",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTANCE_TO_SORTED(number) FROM people",
        "SELECT DISTANCE_TO_SORTED(DISTINCT number, since) FROM people",
        "SELECT DISTANCE_TO_DEPENDENCY(town) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(town, 2, 3) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(number, 0, 3) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(number, 2, -3) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(number, age, 3) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(number, 2) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 150) FROM people",
        f"SELECT DISTANCE_TO_MAXIMUM(age, {'9' * 5000}) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 9) FROM (SELECT age FROM people)",
        "SELECT DISTANCE_TO_REFERENCE(cost, people, age) FROM visits",
        "SELECT DISTANCE_TO_REFERENCE(cost, people) FROM visits",
        "SELECT DISTANCE_TO_SORTED(pages, day) FROM letters",
        "SELECT DISTANCE_TO_SORTED(number, since) OVER () FROM people",
        "SELECT id, DISTANCE_TO_SORTED(cost, ward) AS d FROM visits GROUP BY id",
        "SELECT AVG(d) FROM (SELECT id, DISTANCE_TO_SORTED(cost, ward) d FROM visits GROUP BY id)",
        "SELECT name, DISTANCE_TO_SORTED(name, name) FROM wards GROUP BY name",
    ],
)
def test_what_is_no_distance_is_refused_before_anything_is_paid(asked_in_vain, text):
    with pytest.raises(Refusal):
        asked_in_vain.ask(text, epsilon=1)
    assert asked_in_vain.spent.epsilon == 0


@pytest.mark.parametrize("bound", ["9" * 5000, "1e9000"])
def test_a_bound_of_a_billion_digits_is_not_worked_out(asked_in_vain, bound):
    with pytest.raises(QuestionRefusal, match="too large or too long") as caught:
        asked_in_vain.ask(f"SELECT DISTANCE_TO_MAXIMUM(age, {bound}) FROM people", epsilon=1)
    assert caught.value.code == "Q31"


IN_SQL = (
    'SELECT DISTANCE_TO_MAXIMUM(age, 120) AS ages, DISTANCE_TO_SORTED(number, since) AS "order", '
    'distance_to_clusters(number, 2, 400) AS "groups", DISTANCE_TO_DEPENDENCY(town, zip) AS towns '
    "FROM people"
)


def test_a_report_is_asked_in_sql(clinic):
    by_name = {name: CHECKS[name] for name in ("ages", "order", "groups", "towns")}
    report = clinic.quality(IN_SQL, epsilon=80)
    assert {name: report[name] for name in by_name} == pytest.approx(
        {name: TRUE[name] for name in by_name}, abs=5
    )
    assert clinic.quality(by_name, epsilon=80).replayed  # the same, in other words
    wards = "SELECT DISTANCE_TO_REFERENCE(ward, wards, name) AS wards FROM visits"
    said = clinic.explain_quality(wards, epsilon=1)
    alike = clinic.explain_quality({"wards": CHECKS["wards"]}, epsilon=1)
    assert said.quality == alike.quality
    several = "SELECT DISTANCE_TO_DEPENDENCY(town, zip, number) AS t FROM people"
    (check,) = clinic.explain_quality(several, epsilon=1).quality.checks
    assert check.columns == ("town", "zip", "number")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 7",
        "SELECT COUNT(*) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age + 1, 120) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, zip) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(DISTINCT age, 120) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people WHERE age > 3",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people AS p",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people, visits",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people TABLESAMPLE (10 PERCENT)",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FILTER (WHERE age > 3) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) OVER () FROM people",
        "SELECT DISTINCT DISTANCE_TO_MAXIMUM(age, 120) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120), DISTANCE_TO_MAXIMUM(age, 130) FROM people",
        "SELECT DISTANCE_TO_CLUSTERS(number, 2.5, 400) FROM people",
        f"SELECT DISTANCE_TO_CLUSTERS(number, {'9' * 5000}, 400) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people LIMIT 3",
        "WITH x AS (SELECT 3) SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people",
        "SELECT DISTANCE_TO_MAXIMUM(age, 120) FROM people; SELECT DISTANCE_TO_MAXIMUM(age, 3)",
        "(" * 3000,
    ],
)
def test_other_sql_is_refused_whole_and_unpaid(asked_in_vain, text):
    before = asked_in_vain.transcript()
    with pytest.raises(Refusal):
        asked_in_vain.quality(text, epsilon=1)
    assert asked_in_vain.transcript() == before
    assert not asked_in_vain.spent.epsilon


@pytest.mark.parametrize(
    "check",
    [
        {"table": "people", "property": "beauty", "column": "age"},
        {"table": "people", "property": "maximum", "column": "age"},
        {"table": "people", "property": "maximum", "column": "age", "bound": 120, "more": 1},
        {"table": "people", "property": "maximum", "column": "age", "bound": 150},
        {"table": "people", "property": "maximum", "column": "age", "bound": "1/3"},
        {"table": "people", "property": "maximum", "column": "town", "bound": 3},
        {"table": "people", "property": "maximum", "column": "nobody", "bound": 3},
        {"table": "nobody", "property": "maximum", "column": "age", "bound": 3},
        {"table": "wards", "property": "dependency", "column": "name", "on": "name"},
        {"table": "letters", "property": "sorted", "column": "pages", "by": "day"},
        {"table": "letters", "property": "dependency", "column": "pages", "on": ["day"]},
        {"table": "people", "property": "dependency", "column": "town", "on": []},
        {"table": "people", "property": "clusters", "column": "town", "clusters": 2, "width": 1},
        {"table": "people", "property": "clusters", "column": "age", "clusters": 0, "width": 1},
        {"table": "visits", "property": "reference", "column": "ward", "to": "nobody"},
        {
            "table": "visits",
            "property": "reference",
            "column": "cost",
            "to": "people",
            "key": "age",
        },
        {"table": ["people"], "property": "maximum", "column": "age", "bound": 3},
        "maximum",
    ],
)
def test_what_is_not_understood_is_refused_unpaid(asked_in_vain, check):
    with pytest.raises(Refusal):
        asked_in_vain.quality({"one": check}, epsilon=1)
    assert not asked_in_vain.spent.epsilon


@pytest.mark.parametrize(
    ("checks", "epsilon", "kind"),
    [({}, 1, InvalidParameter), (CHECKS, 0, InvalidParameter), (CHECKS, 10**6, BudgetRefusal)],
)
def test_reports_about_nothing_or_for_too_much_are_refused(clinic, checks, epsilon, kind):
    with pytest.raises(kind):
        clinic.quality(checks, epsilon=epsilon)
    assert not clinic.spent.epsilon


def test_what_fails_stays_paid_and_says_nothing(clinic, monkeypatch):
    def broken(*_args):
        raise ValueError("row 17")

    monkeypatch.setattr(reports, "release_distances", broken)
    with pytest.raises(DataRefusal) as raised:
        clinic.quality(CHECKS, epsilon=1)
    assert "17" not in str(raised.value)
    assert clinic.spent.epsilon == 1


def test_a_crash_before_it_is_stored_is_finished_unpaid(clinic, monkeypatch):
    class Killed(BaseException):
        """The process ends here."""

    def dies(*_args):
        raise Killed

    for place, asked in (
        ("quality", lambda: clinic.quality(CHECKS, epsilon=2)),
        ("median", lambda: clinic.robust_median(MEDIAN, epsilon=1, delta="1e-9")),
    ):
        before = clinic.spent.epsilon
        with monkeypatch.context() as patch:
            patch.setattr(Account, "publish", dies)
            with pytest.raises(Killed):
                asked()
        paid = clinic.spent.epsilon
        assert paid > before, place
        assert not asked().replayed
        assert clinic.spent.epsilon == paid
        assert asked().replayed


# --- medians ---------------------------------------------------------------------------------

MEDIAN = "SELECT MEDIAN(number) FROM people"


def test_medians_fit_the_data_at_a_price_that_does_not(clinic):
    true = float(np.sort(make_people().number)[499])
    smooth = clinic.robust_median(MEDIAN, epsilon=2, delta="1e-9")
    assert abs(smooth.value - true) < 400  # of 100,000; its noise is about one
    assert smooth.margin() is None
    assert (smooth.loss.epsilon_at("1e-9"), smooth.loss.delta) == (2, Fraction(1, 10**9))
    tested = clinic.robust_median(MEDIAN, epsilon=2, delta="1e-9", bound=40)
    assert abs(tested.value - true) < 1500
    assert tested.margin() == 120
    assert clinic.robust_median(MEDIAN, epsilon=2, delta="1e-9", bound=40).replayed
    said = clinic.explain_robust_median(MEDIAN, epsilon=2, delta="1e-9", bound=40)
    assert said.loss == tested.loss
    assert "moves by at most 40" in str(said)


def test_a_bound_that_does_not_hold_is_not_answered_and_paid(clinic):
    few = "SELECT MEDIAN(number) FROM people WHERE age > 149"
    told = clinic.robust_median(few, epsilon=1, delta="1e-12", bound=1)
    assert told.value is None
    assert "no answer" in str(told)
    assert clinic.spent.epsilon == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(number) FROM people",
        "SELECT PERCENTILE(number, 0.25) FROM people",
        "SELECT MEDIAN(number), COUNT(*) FROM people",
        "SELECT MEDIAN(number) + 1 FROM people",
        "SELECT zip, MEDIAN(number) FROM people GROUP BY zip",
        "SELECT MEDIAN(cost) FROM visits",  # four rows of each
    ],
)
def test_other_questions_are_refused_unpaid(asked_in_vain, text):
    with pytest.raises((QuestionRefusal, InvalidParameter)):
        asked_in_vain.robust_median(text, epsilon=1, delta="1e-9")
    assert not asked_in_vain.spent.epsilon


@pytest.mark.parametrize("odd", [{"bound": 10**6}, {"bound": "0.5"}, {"delta": 0}, {"epsilon": 0}])
def test_odd_settings_are_refused_unpaid(asked_in_vain, odd):
    with pytest.raises(InvalidParameter):
        asked_in_vain.robust_median(MEDIAN, **{"epsilon": 1, "delta": "1e-9", **odd})
    assert not asked_in_vain.spent.epsilon


def test_one_value_of_each_unit_may_be_computed(clinic):
    own = "SELECT MEDIAN(most) FROM (SELECT id, MAX(cost) AS most FROM visits GROUP BY id)"
    assert clinic.robust_median(own, epsilon=1, delta="1e-9").value is not None


def test_the_law_on_neighbouring_tables_is_within_the_price(clinic):
    """Exactly, for the values that the engine found: what is released has that law."""
    seen = []

    def spied(middle, truth):
        (counts,) = truth.open_for_release().measured
        seen.append((middle, np.repeat(counts.position, counts.count)))
        return release_median(middle, truth)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "release_median", spied)
        ages = "SELECT MEDIAN(age) FROM people WHERE id > 35 AND id <"
        clinic.robust_median(f"{ages} 45", epsilon=1, delta="1/100")
        clinic.robust_median(f"{ages} 44", epsilon=1, delta="1/100")
    (middle, values), (_, fewer) = seen
    assert len(values) == 9
    assert len(fewer) == 8
    laws = [middle.mechanism.law(one) for one in (values, fewer)]
    for one, other in itertools.permutations(laws):
        assert hockey_stick(one, other, 1)[1] <= Fraction(1, 100)


CHANGED = """
neighbours = "change-one"
[tables.people]
unit = "id"
max_rows_per_unit = 1
columns.id = "integer"
columns.age = { type = "integer", bounds = [0, 200] }
"""


@pytest.mark.parametrize("bound", [None, 40])
def test_where_a_person_is_changed_both_who_goes_and_who_comes_are_paid_for(bound):
    """The laws of two tables in which one person's value differs are within the price."""
    tables = {"people": make_people()[["id", "age"]]}
    seen = []

    def spied(middle, truth):
        (counts,) = truth.open_for_release().measured
        seen.append((middle, np.repeat(counts.position, counts.count)))
        return release_median(middle, truth)

    price = {"epsilon": 2, "delta": "1/100", "bound": bound}
    with (
        discreet.curator(tables, schema=CHANGED, budget=BUDGET) as curator,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(reports, "release_median", spied)
        same = "SELECT MEDIAN(age) FROM people WHERE (id > 35 AND id < 44) OR id ="
        curator.robust_median(f"{same} 10", **price)
        curator.robust_median(f"{same} 50", **price)
        spent = curator.spent
        with pytest.raises(InvalidParameter, match="above 100"):
            curator.robust_median(MEDIAN.replace("number", "age"), epsilon=101, delta="1/100")
        assert curator.spent == spent
    (middle, values), (_, others) = seen
    assert sorted(set(values.tolist()) | set(others.tolist())) == [50, 130]
    assert values.sum() - others.sum() == 80  # one of nine has another value
    assert middle.loss.epsilon == 2
    assert 0 < middle.loss.delta <= Fraction(1, 100)
    assert middle.mechanism.epsilon == 1
    if bound is None:
        laws = [middle.mechanism.law(one) for one in (values, others)]
        for one, other in itertools.permutations(laws):
            assert hockey_stick(one, other, 2)[1] <= Fraction(1, 100)


def test_what_is_released_is_drawn_from_that_law(monkeypatch):
    """Both mechanisms get the values and the parameters they were priced with."""
    variable = type("Scaled", (), {"span": 100, "low": 5, "grid": Fraction(2)})()
    counts = SparseCounts(np.zeros(2, int), np.array([10, 60]), np.array([30, 11]))
    truth = Truth(Opened(((),), (counts,)))
    smooth = SmoothMedian(lower=0, upper=100, epsilon=5000, delta="1e-9")
    middle = reports.Middle(None, variable, smooth)
    assert release_median(middle, truth) == 10
    assert middle.value(10) == 30
    assert middle.value(10**9) == 210  # within the declared bounds
    tested = reports.Middle(None, variable, ProposeTestRelease(bound=7, epsilon=5000, delta="1e-9"))
    assert release_median(tested, truth) == 10
