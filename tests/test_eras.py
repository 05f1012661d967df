"""What was paid for at former prices is found and shown for nothing, whatever it costs now."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.curate.curator import Curator
from discreet.curate.eras import Era
from discreet.errors import InvalidParameter
from discreet.price.plan import GroupSum

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


CLIPPED = "SUM(y, contribution_bounds_per_group => (-1, 5))"
TOO_CHEAP = f"SELECT b AS k, {CLIPPED} AS a, COUNT_IF(y > 2) AS n FROM w WHERE b GROUP BY b"
"""What cost up to a tenth too little in rho while a change was compared row by row."""
OFFER = Fraction(1, 500)


@pytest.fixture
def ward():
    schema = """
    neighbours = "change-one"
    [tables.w]
    unit = "patient"
    max_rows_per_unit = 1
    columns.patient = "integer"
    columns.b = "boolean"
    columns.y = { type = "integer", bounds = [-1, 5] }
    """
    rows = pa.table({"patient": [*range(30)], "b": [True] * 30, "y": [3] * 30})
    budget = discreet.Budget(epsilon=100, delta="1e-6")
    with discreet.curator({"w": rows}, schema=schema, budget=budget) as curator:
        yield curator


def ask_then(curator, monkeypatch, era=Era.ROWS, **more):
    """Ask as it was asked in an era."""
    find = curator.find_plan
    with monkeypatch.context() as patch:
        patch.setattr(curator, "find_plan", lambda q, s, _=None: find(q, s, era))
        return curator.ask(TOO_CHEAP, rho=OFFER, **more)


def lose(answer) -> float:
    """What somebody loses in rho whose total goes from one end to the other, and who is counted."""
    lost = 0.0
    for measured, noise in zip(
        answer.priced.plan.measurements, answer.priced.mechanisms, strict=True
    ):
        gap = measured.span if isinstance(measured, GroupSum) else 1
        lost += gap**2 / (2 * float(noise.sigma_squared))
    return lost


def test_what_is_measured_again_is_priced_as_it_is_now(ward, monkeypatch):
    former = ask_then(ward, monkeypatch)
    assert lose(former) > float(OFFER) * 1.05
    assert ward.ask(TOO_CHEAP, rho=OFFER).id == former.id
    spent = ward.spent
    again = ward.ask(TOO_CHEAP, rho=OFFER, fresh=True)
    assert lose(again) <= float(OFFER) * (1 + 1e-9)
    assert ward.spent.rho - spent.rho == OFFER


def test_what_was_too_cheap_and_never_computed_is_not_drawn_any_more(ward, monkeypatch):
    with monkeypatch.context() as cut:
        cut.setattr(ward.engine, "run", lambda plan: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask_then(ward, monkeypatch)
    spent = ward.spent
    assert lose(ward.ask(TOO_CHEAP, rho=OFFER)) <= float(OFFER) * (1 + 1e-9)
    assert ward.spent.rho - spent.rho == OFFER


def test_a_former_price_is_never_charged_where_the_data_change_meanwhile(ward, monkeypatch):
    """Between looking for what was paid for and the charge."""
    ask_then(ward, monkeypatch)
    spent, find, version = ward.spent, ward.account.find, ward.engine.data_version
    versions = [version()]
    monkeypatch.setattr(ward.engine, "data_version", lambda: versions[0])

    def change(request):
        found = find(request)
        if found == "stored":
            versions[0] = "other"
        return found

    monkeypatch.setattr(ward.account, "find", change)
    with pytest.raises(InvalidParameter, match="about other data now"):
        ward.ask(TOO_CHEAP, rho=OFFER)
    assert ward.spent == spent


@pytest.mark.parametrize("era", [Era.SIDES, Era.APART, Era.FIRST])
def test_what_cost_enough_and_was_cut_short_is_finished(monkeypatch, era):
    with clinic() as curator:
        find = curator.find_plan
        with monkeypatch.context() as patch:
            patch.setattr(curator, "find_plan", lambda q, s, _=None: find(q, s, era))
            patch.setattr(curator.engine, "run", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                curator.ask(BY_CITY, epsilon="0.5")
        spent = curator.spent
        curator.ask(BY_CITY, epsilon="0.5")
        assert curator.spent == spent
