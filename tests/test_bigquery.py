"""What BigQuery and Snowflake mean by their words, and that it is what is measured here."""

from __future__ import annotations

import duckdb
import pytest

import discreet
from discreet.errors import Refusal

SCHEMA = """
[tables.visits]
unit = "pid"
max_rows_per_unit = 8
[tables.visits.columns]
pid = { type = "integer" }
ward = { type = "text", values = ["a", "b"] }
doctor = { type = "text" }
cost = { type = "decimal", bounds = [0, 100] }
"""
ROWS = [
    (person, "ab"[person % 3 == 0], f"d{person % 5}", cost)
    for person in range(60)
    for cost in [10.0 * (person % 7)] + [90.0] * (person % 4)
]
HUGE = 1_000


@pytest.fixture
def curator() -> discreet.Curator:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (pid INT, ward TEXT, doctor TEXT, cost DOUBLE)")
    connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
    visits = connection.sql("FROM visits").arrow()
    schema = discreet.Schema.from_text(SCHEMA)
    budget = discreet.Budget(epsilon=10**9, delta="1e-6")
    return discreet.Curator({"visits": visits}, schema=schema, budget=budget)


def mean_of_means(low: float, high: float, ward: str | None = None) -> float:
    own: dict[int, list[float]] = {}
    for person, place, _, cost in ROWS:
        if ward in (None, place):
            own.setdefault(person, []).append(cost)
    means = [min(max(sum(c) / len(c), low), high) for c in own.values()]
    return sum(means) / len(means)


def test_an_average_with_bounds_per_group_is_of_each_persons_average(curator):
    question = "SELECT AVG(cost, contribution_bounds_per_group => (5, 60)) AS m FROM visits"
    answer = curator.ask(question, epsilon=HUGE)
    assert answer.value() == pytest.approx(mean_of_means(5, 60), rel=1e-3)
    plain = sum(cost for *_, cost in ROWS) / len(ROWS)
    assert abs(answer.value() - plain) > 3  # the mean of rows is another number
    assert any("own mean" in note for note in answer.notes)


def test_it_is_so_in_every_group(curator):
    question = (
        "SELECT ward, AVG(cost, contribution_bounds_per_group => (0, 100)) AS m "
        "FROM visits GROUP BY ward"
    )
    answer = curator.ask(question, epsilon=HUGE)
    for ward, mean in list(zip(answer.column("ward"), answer.column("m"), strict=True))[:2]:
        assert mean == pytest.approx(mean_of_means(0, 100, ward), rel=1e-2)


def test_the_interval_holds_the_mean_of_means(curator):
    question = "SELECT AVG(cost, contribution_bounds_per_group => (0, 100)) AS m FROM visits"
    answer = curator.ask(question, epsilon=4)
    margin = answer.margins()["m"][0]
    assert margin is not None
    assert abs(answer.value() - mean_of_means(0, 100)) < 3 * margin


CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) "


def ask(curator, options: str, rest: str):
    return curator.ask(CLAUSE.format(options) + rest)


def test_without_bounds_the_answer_says_how_bigquery_differs(curator):
    answer = ask(curator, "epsilon = 1", "AVG(cost) AS m FROM visits")
    assert any("BigQuery's AVG" in note for note in answer.notes)
    alone = curator.ask("SELECT AVG(cost) AS m FROM visits", epsilon=1)
    assert not any("BigQuery" in note for note in alone.notes)


@pytest.mark.parametrize("name", ["min_privacy_units_per_group", "k_threshold"])
@pytest.mark.parametrize("key", ["ward", "doctor"])
def test_groups_of_few_units_are_left_out_by_their_noisy_number(curator, name, key):
    """Ward a has 40 people and b 20; each doctor 12."""
    rest = f"{key}, COUNT(*) AS n FROM visits GROUP BY {key}"
    offer = "epsilon = 300, delta = 1e-9"
    least = 30 if key == "ward" else 12
    answer = ask(curator, f"{offer}, {name} = {least}", rest)
    found = set(answer.column(key))
    assert found == ({"a"} if key == "ward" else {f"d{i}" for i in range(5)})
    assert any("noisy number" in note for note in answer.notes)
    assert not ask(curator, f"{offer}, {name} = 50", rest).rows


def test_the_number_that_decides_is_paid_for(curator):
    """A part of the offer measures how many units there are, so the other number is noisier."""
    rest = "ward, COUNT(*) AS n FROM visits GROUP BY ward"
    plain = ask(curator, "epsilon = 1", rest)
    cut = ask(curator, "epsilon = 1, min_privacy_units_per_group = 2", rest)
    assert 0.999 <= cut.loss.epsilon <= plain.loss.epsilon == 1
    assert len(cut.priced.mechanisms) == len(plain.priced.mechanisms) + 1
    assert cut.margins()["n"][0] > 1.3 * plain.margins()["n"][0]


def test_public_groups_are_those_that_are_declared(curator):
    options = "epsilon = 1, group_selection_strategy = PUBLIC_GROUPS"
    rest = "{0}, COUNT(*) AS n FROM visits GROUP BY {0}"
    assert len(ask(curator, options, rest.format("ward")).rows) == 3
    with pytest.raises(Refusal, match="not public") as caught:
        ask(curator, options, rest.format("doctor"))
    assert caught.value.code == "Q28"
    told = "epsilon = 1, group_selection_strategy = LAPLACE_THRESHOLD"
    assert any("all of them are shown" in n for n in ask(curator, told, rest.format("ward")).notes)


@pytest.mark.parametrize(
    "options",
    [
        "min_privacy_units_per_group = 0",
        "min_privacy_units_per_group = 2.5",
        "min_privacy_units_per_group = 3, k_threshold = 3",
        "group_selection_strategy = NOISY",
        "group_selection_strategy = PUBLIC_GROUPS, group_selection_strategy = PUBLIC_GROUPS",
    ],
)
def test_an_option_that_makes_no_sense_is_refused(curator, options):
    with pytest.raises(Refusal) as caught:
        ask(curator, options, "ward, COUNT(*) AS n FROM visits GROUP BY ward")
    assert caught.value.code == "Q28"


def test_bounds_per_group_need_numbers(curator):
    for function in ("SUM", "AVG"):
        with pytest.raises(Refusal) as caught:
            curator.ask(
                f"SELECT {function}(ward, contribution_bounds_per_group => (0, 4)) FROM visits"
            )
        assert caught.value.code == "Q33"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT SUM(cost, report_format => 'PROTO') AS s FROM visits", "how far off each number"),
        ("SELECT COUNT(*) AS n, DP_INTERVAL_HIGH(n) AS h FROM visits", "shown with every number"),
        ("SELECT * FROM ESTIMATE_REMAINING_DP_AGGREGATES('visits')", "account"),
    ],
)
def test_what_every_answer_has_need_not_be_asked_for(curator, question, words):
    with pytest.raises(Refusal, match=words):
        curator.ask(question, epsilon=1)
