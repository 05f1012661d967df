"""What was paid for at former prices is found and shown for nothing, whatever it costs now."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet
from discreet.curate.curator import Curator, Era

SCHEMA = """
neighbours = "change-one"
[tables.v]
unit = "who"
max_rows_per_unit = 2
columns.who = "integer"
columns.city = { type = "text", values = ["a", "b", "c"], nullable = false }
columns.sex = { type = "text", values = ["f", "m"] }
columns.x = { type = "integer", bounds = [-5, 9], nullable = false }
columns.y = { type = "decimal", bounds = [0, 8] }
"""
ROWS = pa.table(
    {
        "who": [*range(30)] * 2,
        "city": ["a", "b", "c"] * 20,
        "sex": ["f", "m"] * 30,
        "x": [4] * 60,
        "y": [2.5] * 60,
    }
)
BY_CITY = "SELECT city, COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM v GROUP BY city"
MEANS = "SELECT sex, AVG(y) AS m, COUNT(DISTINCT who) AS u FROM v GROUP BY sex"


def clinic() -> Curator:
    return discreet.curator({"v": ROWS}, schema=SCHEMA, budget=discreet.Budget(epsilon=100))


@pytest.mark.parametrize(
    ("sql", "former", "now"),
    [(BY_CITY, 0.0578895, 0.0655794), (MEANS, 0.0577456, 0.0653921)],
)
def test_the_prices_of_rows_two_by_two_are_what_they_were(sql, former, now):
    """As the program said that compared units of several rows outside groups alone."""
    with clinic() as curator:
        for era, rho in ((Era.ROWS, former), (Era.NOW, now)):
            offer = discreet.question.offer.Offer.of(epsilon="0.5")
            loss = curator.find_plan(curator.parse(sql), offer, era).priced.loss
            assert float(loss.rho) == pytest.approx(rho, rel=1e-5)


@pytest.mark.parametrize("era", [Era.ROWS, Era.SIDES, Era.APART, Era.FIRST])
@pytest.mark.parametrize("sql", [BY_CITY, MEANS])
def test_what_was_paid_for_then_is_shown_and_not_improved(monkeypatch, sql, era):
    with clinic() as curator:
        find = curator.find_plan
        with monkeypatch.context() as patch:
            patch.setattr(curator, "find_plan", lambda q, s, _=None: find(q, s, era))
            paid = curator.ask(sql, epsilon="0.5")
        spent = curator.spent
        again = curator.ask(sql, epsilon="0.5")
        assert again.replayed
        assert again.column("u") == paid.column("u")
        assert curator.spent == spent
