"""E1, E5, E6, E8 and A9 against the running curator: errors, order, keys, trackers, refusals."""

import random
from contextlib import suppress
from fractions import Fraction

import pandas as pd
import pytest

import discreet
from discreet.engine.duckdb.database import Database
from discreet.errors import BudgetRefusal, DataRefusal, Refusal
from discreet.release.answer import Answer

CANARY = "canary-7f3a"

SCHEMA = """
[tables.t]
unit = "who"
max_rows_per_unit = 2
[tables.t.columns]
who = "integer"
name = "text"
city = { type = "text", values = ["Cork", "Faro"] }
n = { type = "integer", bounds = [-1000, 1000] }
x = { type = "decimal", bounds = [-1000, 1000] }
big = "integer"
"""

PLAIN = [(i, "7", "Cork" if i % 2 else "Faro", i % 9 - 4, (i % 11) / 2 - 2, i) for i in range(40)]
POISON = [
    (900, CANARY, "Cork", 0, 0.0, 0),
    (901, "", "nowhere", None, float("nan"), 2**63 - 1),
    (902, "99999999999999999999", None, 0, float("inf"), -(2**63)),
    (903, "287000-01-01", "Faro", 0, float("-inf"), 2**62),
    (904, "0x10", "Cork", 1000, 5e-324, -1),
]
COLUMNS = ["who", "name", "city", "n", "x", "big"]


def frame(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"n": "Int64"})


def clinic(rows, *, epsilon=10**6) -> discreet.Curator:
    return discreet.curator(
        {"t": frame(rows)},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=epsilon, delta="1e-6"),
    )


QUESTIONS = [
    "SELECT SUM(GREATEST(LEAST(1 / n, 9), -9)) AS a FROM t",
    "SELECT SUM(GREATEST(LEAST(n % (n - 0), 9), -9)) AS a FROM t",
    "SELECT SUM(GREATEST(LEAST(CAST(name AS INTEGER), 9), 0)) AS a FROM t",
    "SELECT COUNT(CAST(name AS DATE)) AS a FROM t",
    "SELECT COUNT(*) AS a FROM t WHERE big + big > 10",
    "SELECT COUNT(*) AS a FROM t WHERE big * big > big - 10",
    "SELECT COUNT(*) AS a FROM t WHERE -big > 0",
    "SELECT SUM(GREATEST(LEAST(SQRT(x), 9), 0)) AS a FROM t",
    "SELECT SUM(GREATEST(LEAST(LN(x), 9), -9)) AS a FROM t",
    "SELECT SUM(GREATEST(LEAST(EXP(x), 9), 0)) AS a FROM t",
    "SELECT SUM(GREATEST(LEAST(POWER(x, n), 9), 0)) AS a FROM t",
    "SELECT AVG(x) AS a, VARIANCE(x) AS b, CORR(x, n) AS c FROM t",
    "SELECT MEDIAN(x) AS a FROM t",
    "SELECT COUNT(*) AS a FROM t WHERE SUBSTR(name, 2, 3) LIKE '%a%'",
    "SELECT COUNT(*) AS a FROM t WHERE LENGTH(UPPER(name)) > 3",
    "SELECT COUNT(DISTINCT name) AS a FROM t",
]


@pytest.fixture(scope="module")
def neighbours():
    with clinic(PLAIN) as plain, clinic(PLAIN + POISON) as poisoned:
        yield plain, poisoned


@pytest.mark.parametrize("sql", QUESTIONS)
def test_e1_a_poisoned_row_changes_neither_status_nor_shape_nor_charge(neighbours, sql):
    results = []
    for curator in neighbours:
        answer = curator.ask(sql, epsilon=1, fresh=True)
        assert isinstance(answer, Answer)
        results.append((answer.columns, len(answer.rows), curator.spent))
        assert CANARY not in str(answer)
    assert results[0] == results[1]


def test_e1_an_engine_failure_is_charged_and_says_nothing(monkeypatch):
    curator = clinic(PLAIN + POISON)

    def fails(sql: str):
        raise RuntimeError(f"Conversion Error: could not convert '{CANARY}' to INT32")

    monkeypatch.setattr(Database, "run", lambda self, sql: fails(sql))
    with pytest.raises(DataRefusal) as refused:
        curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert CANARY not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    assert curator.spent.epsilon == 1


def test_e5_rows_come_in_the_order_of_public_keys_whatever_the_data_order():
    sql = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    orders = set()
    for seed in range(4):
        rows = PLAIN.copy()
        random.Random(seed).shuffle(rows)
        orders.add(tuple(clinic(rows).ask(sql, epsilon=1).column("city")))
    assert orders == {("Cork", "Faro", None)}


def test_e6_catalogue_and_explain_are_identical_for_neighbours():
    sql = "SELECT name, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY name"
    for rows in (PLAIN, PLAIN[1:], PLAIN + POISON, []):
        explained = clinic(rows).explain(sql, epsilon=1, delta="1e-7")
        assert str(explained) == str(clinic(PLAIN).explain(sql, epsilon=1, delta="1e-7"))
    assert CANARY not in str(explained)


def test_e6_empty_groups_are_shown_like_full_ones():
    only_cork = [row for row in PLAIN if row[2] == "Cork"]
    answer = clinic(only_cork).ask("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1)
    assert answer.column("city") == ["Cork", "Faro", None]


def test_e8_averaging_learns_no_more_than_the_account_allows():
    """The same question in other words again and again: the budget ends it."""
    curator = clinic(PLAIN, epsilon=1)
    asked = 0
    with suppress(BudgetRefusal):
        while asked < 400:
            curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE who <> {10**6 + asked}", epsilon="0.05")
            asked += 1
    assert 19 <= asked < 400
    assert curator.spent.epsilon_at("1e-6") <= 1


def test_e8_averaging_the_same_question_learns_nothing_and_costs_nothing():
    curator = clinic(PLAIN, epsilon=1)
    answers = {curator.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.3").value() for _ in range(9)}
    assert len(answers) == 1
    assert curator.spent.epsilon == Fraction(3, 10)


def test_e8_differencing_pays_for_both_sides():
    curator = clinic(PLAIN)
    curator.ask("SELECT COUNT(*) AS n FROM t", epsilon=1)
    curator.ask("SELECT COUNT(*) AS n FROM t WHERE who <> 7", epsilon=1)
    assert curator.spent.epsilon == 2


@pytest.mark.parametrize(
    ("sql", "spend"),
    [
        ("SELECT who FROM t", {"epsilon": 1}),
        ("SELECT COUNT(*) FROM t", {"epsilon": 10**9}),
        ("SELECT name, COUNT(*) FROM t GROUP BY name", {"epsilon": 1}),
        ("SELECT SUM(big) FROM t", {"epsilon": 1}),
        ("SELECT AVG(x) FROM t", {"within": 3}),
    ],
)
def test_a9_refusals_are_the_same_with_the_data_unplugged(sql, spend, monkeypatch):
    def verdict(curator) -> str:
        with pytest.raises(Refusal) as refused:
            curator.ask(sql, **spend)
        return str(refused.value)

    plugged, unplugged = clinic(PLAIN), clinic(POISON)
    monkeypatch.setattr(
        unplugged.engine, "run", lambda plan: pytest.fail("a refusal read the data")
    )
    assert verdict(plugged) == verdict(unplugged)
