"""Questions in the conditions of others: asked and paid for first, constants afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.accounting.loss import NOTHING
from discreet.errors import BudgetRefusal, QuestionRefusal
from discreet.release.combined import Combined

SCHEMA = """
[tables.orders]
unit = "buyer"
max_rows_per_unit = 4
[tables.orders.columns]
buyer = "integer"
shop = { type = "text", values = ["north", "south", "east"], nullable = false }
amount = { type = "decimal", bounds = [0, 100] }
pieces = { type = "integer", bounds = [1, 9] }
"""
ABOVE = "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"


def orders() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(600), rng.integers(1, 5, 600))
    shop = np.array(["north", "south", "east"])[rng.choice(3, who.size, p=[0.5, 0.3, 0.2])]
    amount = np.round(rng.gamma(2.0, 15.0, who.size).clip(0, 100), 2)
    pieces = rng.integers(1, 10, who.size)
    return pd.DataFrame({"buyer": who, "shop": shop, "amount": amount, "pieces": pieces})


def make(epsilon: int = 1500) -> discreet.Curator:
    return discreet.Curator({"orders": orders()}, schema=SCHEMA, budget=epsilon)


@pytest.fixture(scope="module")
def unspent() -> Iterator[discreet.Curator]:
    """One that only refuses."""
    with make(9) as curator:
        yield curator


@pytest.fixture(scope="module")
def truth() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same orders, for DuckDB itself."""
    with duckdb.connect() as connection:
        connection.register("orders", orders())
        yield connection


ANSWERED = [
    ABOVE,
    "SELECT shop, COUNT(*) AS n FROM orders WHERE amount < (SELECT MEDIAN(amount) FROM orders) "
    "GROUP BY shop ORDER BY shop",
    "WITH m AS (SELECT AVG(amount) AS a, STDDEV(amount) AS s FROM orders) "
    "SELECT COUNT(*) AS n FROM orders CROSS JOIN m WHERE amount > m.a + 2 * m.s",
    "WITH t AS (SELECT buyer, SUM(amount) AS total FROM orders GROUP BY buyer) "
    "SELECT COUNT(*) AS n FROM t WHERE total > (SELECT AVG(total) FROM t)",
    "SELECT AVG(pieces) AS mean FROM orders WHERE shop IN (SELECT shop FROM orders GROUP BY shop "
    "ORDER BY COUNT(*) DESC LIMIT 2)",
    "SELECT AVG(pieces) AS mean FROM orders WHERE shop NOT IN (SELECT shop FROM orders "
    "GROUP BY shop HAVING COUNT(*) > 300)",
    "SELECT COUNT(*) AS n FROM (SELECT buyer FROM orders WHERE amount > "
    "(SELECT AVG(amount) FROM orders) GROUP BY buyer) AS b",
    "SELECT COUNT(*) * 100.0 / (SELECT COUNT(*) FROM orders) AS share FROM orders "
    "WHERE amount > (SELECT AVG(amount) FROM orders)",
    "SELECT COUNT(*) AS n FROM orders a WHERE amount > (SELECT AVG(b.amount) FROM orders b "
    "WHERE b.shop = a.shop AND b.pieces > 2)",
    "SELECT a.shop, COUNT(*) AS n FROM orders a JOIN (SELECT shop, AVG(amount) AS mean FROM orders "
    "GROUP BY shop) AS m ON m.shop = a.shop WHERE a.amount < m.mean GROUP BY a.shop ORDER BY "
    "a.shop",
]


@pytest.mark.parametrize("text", ANSWERED)
def test_it_is_answered_as_duckdb_answers(truth, text):
    with make() as curator:
        answer = curator.ask(text, epsilon=1400)
    rows = list(zip(*(answer.column(name) for name in answer.columns), strict=True))
    for found, true in zip(rows, truth.execute(text).fetchall(), strict=True):
        for one, other in zip(found, true, strict=True):
            assert one == (other if isinstance(other, str) else pytest.approx(other, rel=1e-2))


def test_each_is_charged_once_and_the_constant_is_what_was_released():
    with make(9) as curator:
        plan = curator.explain(ABOVE, epsilon="0.6")
        assert plan.loss.epsilon == Fraction(6, 10)
        assert "asked first" in str(plan)
        assert curator.price(ABOVE, epsilon="0.6").outcome == "admitted"
        answer = curator.ask(ABOVE, epsilon="0.6")
        assert isinstance(answer, Combined)
        assert answer.paid.epsilon == answer.loss.epsilon == Fraction(6, 10)
        assert answer.charged == answer.paid  # which PostgreSQL's clients are told
        assert curator.spent.epsilon == Fraction(6, 10)
        mean = curator.ask("SELECT AVG(amount) FROM orders", epsilon="0.3")
        assert mean.replayed
        asked = answer.parts[0].text
        assert float(asked.split("> ")[1]) == pytest.approx(mean.value(), abs=1e-9)
        assert curator.price(ABOVE, epsilon="0.6").free
        again = curator.ask(ABOVE, epsilon="0.6")
        assert again.replayed
        assert again.column("n") == answer.column("n")
        assert curator.spent.epsilon == Fraction(6, 10)
        assert [column.name for column in curator.columns(ABOVE)] == ["n"]


def test_a_number_for_each_group_is_charged_once_for_all_of_them():
    text = (
        "SELECT COUNT(*) AS n FROM orders a WHERE a.amount > (SELECT AVG(b.amount) FROM orders b "
        "WHERE b.shop = a.shop)"
    )
    with make(9) as curator:
        assert curator.explain(text, epsilon="0.6").loss.epsilon == Fraction(6, 10)
        answer = curator.ask(text, epsilon="0.6")
        assert curator.spent.epsilon == Fraction(6, 10)
        means = curator.ask(
            "SELECT shop, AVG(amount) AS m FROM orders GROUP BY shop", epsilon="0.3"
        )
        assert means.replayed
        for shop, mean in zip(means.column("shop"), means.column("m"), strict=True):
            assert f"'{shop}' THEN {float(mean)!r}" in answer.parts[0].text
        assert curator.ask(text, epsilon="0.6").replayed
        assert curator.spent.epsilon == Fraction(6, 10)


def test_nothing_is_charged_if_all_of_it_cannot_be_paid():
    with make(1) as curator:
        with pytest.raises(BudgetRefusal):
            curator.ask(ABOVE, epsilon="1.5")  # the first half would fit alone
        assert curator.spent.epsilon == 0


def test_what_was_cut_short_is_resumed_and_paid_once(monkeypatch):
    with make(9) as curator:
        real, calls = curator._answer, []

        def killed(paid):
            calls.append(paid)
            if len(calls) == 2:  # the mean is released, the count is paid
                raise KeyboardInterrupt
            return real(paid)

        monkeypatch.setattr(curator, "_answer", killed)
        with pytest.raises(KeyboardInterrupt):
            curator.ask(ABOVE, epsilon="0.6")
        assert curator.spent.epsilon == Fraction(6, 10)
        curator.ask(ABOVE, epsilon="0.6")
        assert curator.spent.epsilon == Fraction(6, 10)


@pytest.mark.parametrize(
    ("text", "offer"),
    [
        ("SELECT COUNT(*) AS n FROM orders WHERE shop > (SELECT AVG(amount) FROM orders)", {}),
        ("SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT amount FROM orders)", {}),
        ("SELECT COUNT(*) AS n FROM orders AS o WHERE amount > (SELECT AVG(p.amount) FROM orders "
         "AS p WHERE p.amount = o.amount)", {}),
        ("SELECT COUNT(*) AS n FROM orders AS o WHERE amount > (SELECT AVG(p.amount) FROM orders "
         "AS p WHERE p.shop = o.nothing)", {}),
        ("SELECT COUNT(*) AS n FROM orders AS o WHERE amount > (SELECT AVG(p.amount) FROM orders "
         "AS p WHERE p.shop = o.pieces)", {}),
        ("SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders WHERE "
         "pieces < EXTRACT(MINUTE FROM NOW()))", {}),
        (ABOVE, {"fresh": True}),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_charged(unspent, text, offer):
    with pytest.raises(QuestionRefusal):
        unspent.ask(text, epsilon=1, **offer)
    assert unspent.spent.epsilon == 0
    assert all(entry.loss is None for entry in unspent.transcript())


@pytest.mark.parametrize(
    "condition",
    [
        "amount > (SELECT AVG(amount), COUNT(*) FROM orders)",
        "amount > (SELECT shop, AVG(amount) FROM orders GROUP BY shop)",
        "amount > (SELECT AVG(amount) FROM orders GROUP BY shop)",
        "shop = (SELECT shop FROM orders GROUP BY shop HAVING COUNT(*) > 0)",
        "amount > (SELECT shop FROM orders GROUP BY shop ORDER BY COUNT(*) DESC LIMIT 1)",
        "amount IN (SELECT shop FROM orders GROUP BY shop HAVING COUNT(*) > 5)",
        "amount > (SELECT CAST(COUNT(*) AS TEXT) FROM orders)",
        "amount > (SELECT CASE WHEN COUNT(*) > 3 THEN 'a' ELSE 'b' END FROM orders)",
        "pieces > (SELECT CASE WHEN COUNT(*) > 3 THEN DATE '2024-01-01' END FROM orders)",
        "amount > (SELECT QUANTILE_CONT(amount, [0.2, 0.5]) FROM orders)",
        "SUBSTR(shop, 1, (SELECT COUNT(*) FROM orders)) = 'n'",
    ],
)
def test_what_cannot_stand_in_a_condition_is_refused_before_it_is_paid_for(unspent, condition):
    with pytest.raises(QuestionRefusal):
        unspent.ask(f"SELECT COUNT(*) AS n FROM orders WHERE {condition}", epsilon=3)
    assert unspent.spent == NOTHING


@pytest.mark.parametrize(
    ("condition", "fewest", "most"),
    [
        ("amount >= (SELECT -SUM(amount) * 1e300 FROM orders)", 1000, 2400),
        ("amount > (SELECT SUM(amount) * 1e300 FROM orders)", -50, 50),
        ("pieces < (SELECT COUNT(*) * 1000000000000000000 FROM orders)", 1000, 2400),
        ("pieces < (SELECT EXP(COUNT(*)) FROM orders)", -50, 50),  # no number: nothing is less
        ("amount > (SELECT EXP(-COUNT(*) / 3.0) FROM orders)", 1000, 2400),
        ("shop = (SELECT CASE WHEN COUNT(*) > 9 THEN 'nowhere' ELSE 'x' END FROM orders)", -50, 50),
        ("shop IN (SELECT shop FROM orders GROUP BY shop HAVING COUNT(*) > 1e9)", -50, 50),
    ],
)
def test_whatever_is_released_the_rest_can_be_asked(condition, fewest, most):
    """Too large, too small, no number at all, a text that nobody has, a list without members."""
    with make() as curator:
        question = f"SELECT COUNT(*) AS n FROM orders WHERE {condition}"
        assert fewest < curator.ask(question, epsilon=40).value() < most
        assert curator.spent.epsilon == 40


def test_a_text_that_is_typed_must_still_be_a_declared_one():
    with make() as curator:
        with pytest.raises(QuestionRefusal, match="none of the declared values"):
            curator.ask(f"{ABOVE} AND shop = 'noth'", epsilon=3)
        assert curator.spent == NOTHING


BLOCKS = """
[tables.stays]
unit = "person"
max_rows_per_unit = 2
blocks = ["ward"]
[tables.stays.columns]
person = "integer"
ward = { type = "text", values = ["a", "b", "c"], nullable = false }
cost = { type = "decimal", bounds = [0, 100] }
"""


@pytest.mark.parametrize(
    ("condition", "spent"),
    [
        ("ward = 'a' AND cost > (SELECT AVG(cost) FROM stays WHERE ward = 'b')", 1),
        ("cost > (SELECT AVG(cost) FROM stays)", 2),
        ("ward = (SELECT ward FROM stays GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 1)", 2),
        ("ward IN (SELECT ward FROM stays GROUP BY ward HAVING COUNT(*) > 200)", 2),
    ],
)
def test_each_is_charged_to_its_own_blocks(condition, spent):
    """Before the answer is known, the question around it may touch every block."""
    rng = np.random.default_rng(3)
    wards = rng.choice(["a", "b", "c"], 900, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame({"person": range(900), "ward": wards, "cost": rng.random(900) * 100})
    question = f"SELECT COUNT(*) AS n FROM stays WHERE {condition}"
    with discreet.Curator({"stays": frame}, schema=BLOCKS, budget=spent) as curator:
        answer = curator.ask(question, epsilon=2)
        assert answer.charged.epsilon == 2
        assert curator.spent.epsilon == spent
    if spent > 1:  # then all of it must be there, or nothing is begun
        with discreet.Curator({"stays": frame}, schema=BLOCKS, budget=1) as curator:
            with pytest.raises(BudgetRefusal):
                curator.ask(question, epsilon=2)
            assert curator.spent == NOTHING


def test_today_beside_a_question_in_a_condition_is_asked_and_found_again():
    """But for the last minutes of a day, when it would be another question: refused, uncharged."""
    text = (
        "SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders WHERE "
        "DATE '2020-01-01' < CURRENT_DATE)"
    )
    with make(9) as curator:
        try:
            first = curator.ask(text, epsilon="0.6")
        except QuestionRefusal:
            assert curator.spent.epsilon == 0
            return
        assert curator.ask(text, epsilon="0.6").column("n") == first.column("n")
        assert curator.spent.epsilon == Fraction(6, 10)
