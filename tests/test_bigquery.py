"""What BigQuery and Snowflake mean by their words, and that it is what is measured here."""

from __future__ import annotations

import math

import duckdb
import pytest

import discreet
from discreet.errors import Refusal
from discreet.question.sql import parse
from discreet.release.record import answer_from_bytes, answer_to_bytes

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
    assert abs(answer.value() - mean_of_means(0, 100)) < 8 * margin  # 24 scales: 4e-11


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


def test_the_ends_of_an_interval_are_those_that_the_answer_states(curator):
    answer = curator.ask(
        "SELECT ward, DP_INTERVAL_HIGH(n) AS high, COUNT(*) AS n, AVG(cost) AS m, "
        "SUM(cost) / COUNT(*) AS r, DP_INTERVAL_LOW(n), DP_INTERVAL_LOW(AVG(cost)) AS m_low, "
        "DP_INTERVAL_HIGH(r) AS r_high FROM visits GROUP BY ward ORDER BY DP_INTERVAL_LOW(n)",
        epsilon=2,
    )
    stated = answer.accuracy()
    for place in range(len(answer.rows)):
        found = {name: answer.column(name)[place] for name in answer.columns}
        assert (found["low_n"], found["high"]) == (
            stated["n"][place][1].low,
            stated["n"][place][1].high,
        )
        for name, end in (("m_low", "low"), ("r_high", "high")):
            true = getattr(stated[name[0]][place][1], end)
            assert found[name] == (true if math.isfinite(true) else None)
    assert answer.column("low_n") == sorted(answer.column("low_n"))
    assert answer.loss.epsilon == 2  # the number is paid for, its interval is not
    assert any("at 95 % confidence" in note for note in answer.notes)
    assert not any("no margin is known" in note for note in answer.notes)
    again = curator.ask(
        "SELECT ward, n FROM (SELECT ward, COUNT(*) AS n, AVG(cost) AS m, SUM(cost) / COUNT(*) AS "
        "r, DP_INTERVAL_LOW(n) AS low FROM visits GROUP BY ward) AS s WHERE low > 20",
        epsilon=2,
    )
    assert set(again.column("n")) <= set(answer.column("n"))
    assert again.replayed


def test_the_interval_has_the_confidence_that_is_offered(curator):
    inner = "COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM visits"
    written = curator.ask(
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(within = 20, confidence = 0.99) {inner}"
    )
    given = curator.ask(f"SELECT {inner}", within=20, confidence="0.99")
    for answer in (written, given):
        assert answer.column("low")[0] == answer.accuracy("0.99")["n"][0][1].low
        assert answer.column("low")[0] < answer.accuracy()["n"][0][1].low
        assert any("at 99 % confidence" in note for note in answer.notes)


def test_totals_have_intervals_too(curator):
    answer = curator.ask(
        "SELECT ward, COUNT(*) AS n, DP_INTERVAL_HIGH(n) AS high, GROUPING(ward) AS g FROM visits "
        "GROUP BY ROLLUP (ward)",
        epsilon=1,
    )
    ends = [interval.high for _, interval in answer.accuracy()["n"]]
    assert answer.column("high") == ends
    assert not any("no margin is known" in note for note in answer.notes)  # g is certain


INNER = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.mark.parametrize(
    "above",
    [
        f"SELECT ward, n, DP_INTERVAL_LOW(n) AS low FROM ({INNER}) AS s",
        f"SELECT s.ward, n, DP_INTERVAL_LOW(s.n) AS low FROM ({INNER}) AS s ORDER BY s.ward",
        f"WITH s AS ({INNER}) SELECT ward, n, DP_INTERVAL_LOW(n) AS low FROM s",
        f"WITH s AS ({INNER}), t AS (SELECT ward, n AS k FROM s) "
        "SELECT ward, k AS n, DP_INTERVAL_LOW(k) AS low FROM t WHERE DP_INTERVAL_LOW(k) < 1e9",
        f"SELECT a.ward, a.n, DP_INTERVAL_LOW(a.n) AS low FROM ({INNER}) AS a "
        "JOIN (SELECT ward, COUNT(DISTINCT pid) AS n FROM visits GROUP BY ward) AS b "
        "ON a.ward = b.ward",
        "SELECT ward, n, DP_INTERVAL_LOW(n) AS low FROM (SELECT ward, 3 AS n_low, COUNT(*) AS n "
        "FROM visits GROUP BY ward) AS s",
    ],
)
def test_an_interval_may_be_asked_for_above_its_question(curator, above):
    """It is the one that the question's own answer states, and costs nothing more."""
    told = curator.ask(above, epsilon=2)
    within = curator.ask(f"{INNER.replace(' FROM', ', DP_INTERVAL_LOW(n) AS low FROM')}", epsilon=2)
    if "JOIN" not in above:
        assert told.loss == within.loss
        assert dict(zip(told.column("ward"), told.column("low"), strict=True)) == dict(
            zip(within.column("ward"), within.column("low"), strict=True)
        )
    assert all(low <= n for low, n in zip(told.column("low"), told.column("n"), strict=True))


def test_they_can_be_sent(curator):
    answer = curator.ask("SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM visits", epsilon=1)
    again = answer_from_bytes(answer_to_bytes(answer))
    assert again.to_json() == answer.to_json()


@pytest.mark.parametrize(
    "question",
    [
        "SELECT ward, DP_INTERVAL_LOW(ward) AS low, COUNT(*) FROM visits GROUP BY ward",
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n, 0.9) AS low FROM visits",
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(cost) AS low FROM visits",
        "SELECT DP_INTERVAL_LOW(n + 1) FROM (SELECT COUNT(*) AS n FROM visits) AS s",
        "SELECT DP_INTERVAL_LOW(m) FROM (SELECT n + 1 AS m FROM (SELECT COUNT(*) AS n FROM "
        "visits) AS s) AS t",
        "SELECT DP_INTERVAL_LOW(n) FROM (SELECT SUM(n) AS n FROM (SELECT ward, COUNT(*) AS n "
        "FROM visits GROUP BY ward) AS s) AS t",
        "SELECT DP_INTERVAL_LOW(ward) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) "
        "AS s",
        "SELECT *, DP_INTERVAL_LOW(n) AS low FROM (SELECT COUNT(*) AS n FROM visits) AS s",
        "SELECT COUNT(*) FROM visits WHERE DP_INTERVAL_LOW(cost) > 3",
        "SELECT COUNT(*) AS n, RANK() OVER () AS r, DP_INTERVAL_LOW(r) AS low FROM visits",
    ],
)
def test_only_what_is_released_has_an_interval(curator, question):
    with pytest.raises(Refusal) as caught:
        curator.ask(question, epsilon=1)
    assert caught.value.code == "Q9"
    assert curator.balance().spent.epsilon == 0


@pytest.mark.parametrize("written", ["'JSON'", "JSON", '"json"', "COLUMNS"])
def test_a_report_is_what_every_answer_is(curator, written):
    answer = curator.ask(
        f"SELECT SUM(cost, report_format => {written}) AS s FROM visits", epsilon=1
    )
    assert any(note.startswith("report_format") for note in answer.notes)
    assert curator.ask("SELECT SUM(cost) AS s FROM visits", epsilon=1).replayed


def test_days_of_the_week_are_not_counted_as_bigquery_does():
    schema = discreet.Schema.from_text(
        """
        [tables.t]
        unit = "pid"
        max_rows_per_unit = 1
        [tables.t.columns]
        pid = { type = "integer" }
        day = { type = "date", bounds = ["2024-01-01", "2024-12-31"] }
        """
    )
    for text, said in (("EXTRACT(DAYOFWEEK FROM day)", True), ("EXTRACT(DOW FROM day)", False)):
        question = parse(f"SELECT {text} AS d, COUNT(*) AS n FROM t GROUP BY d", schema)
        assert any("Sunday is 0" in remark for remark in question.remarks) is said


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT SUM(cost, report_format => 'PROTO') AS s FROM visits", "no protocol buffers"),
    ],
)
def test_what_is_no_number_of_an_answer_is_refused(curator, question, words):
    with pytest.raises(Refusal, match=words):
        curator.ask(question, epsilon=1)


@pytest.mark.parametrize(
    "condition",
    [
        "LPAD(doctor, 3, 'ab') = 'ad1'",
        "LPAD(doctor, 3, '') = 'ad1'",
        "LPAD(doctor, pid) = 'd1'",
        "RPAD(doctor, 1001) = 'd1'",
        "RPAD(doctor, 3, 'x', 'y') = 'd1'",
        "doctor[0] = 'd'",
        "doctor[pid] = 'd'",
    ],
)
def test_texts_are_padded_and_picked_from_by_constants(curator, condition):
    with pytest.raises(Refusal) as caught:
        curator.ask(f"SELECT COUNT(*) FROM visits WHERE {condition}", epsilon=1)
    assert caught.value.code == "Q10"
