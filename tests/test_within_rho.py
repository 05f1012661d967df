"""An accuracy costs the least of what is counted: epsilon, or rho where rho alone is."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.accounting.loss import INFINITY, NOTHING
from discreet.audit.rehearsal import Rehearsal
from discreet.curate.curator import Curator
from discreet.errors import BudgetRefusal
from discreet.mechanisms import Gaussian, Laplace
from discreet.price import Priced, price
from discreet.price.within import find_cheapest, promise_margin
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

ROWS = pa.table(
    {
        "patient": [i // 2 for i in range(400)],
        "city": [("Cork", "Faro")[i % 2] for i in range(400)],
        "town": [f"town {i % 3}" for i in range(400)],
        "age": [i % 100 for i in range(400)],
    }
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Faro"], nullable = false }
town = "text"
age = { type = "integer", bounds = [0, 99], nullable = false }
"""
CHANGE = 'neighbours = "change-one"\n'
IN_RHO = discreet.Budget(rho=1000, delta="1e-6")
COUNT = "SELECT COUNT(*) AS n FROM visits"
SHAPES = [
    COUNT,
    f"{COUNT} WHERE city = 'Cork'",
    "SELECT SUM(age) AS n FROM visits",
    "SELECT COUNT(DISTINCT patient) AS n FROM visits",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
    "SELECT COUNT(*) AS n, COUNT_IF(age > 50) AS m, SUM(age) AS s FROM visits",
    "SELECT MEDIAN(age) AS n FROM visits",
]


def clinic(schema: str = SCHEMA, **options) -> Curator:
    budget = options.pop("budget", IN_RHO)
    return discreet.curator({"visits": ROWS}, schema=schema, budget=budget, **options)


def forget(monkeypatch) -> None:
    """As it was before: an accuracy at the least epsilon, whatever is counted."""
    monkeypatch.setattr(Curator, "seeks_rho", lambda *_: False)


@pytest.mark.parametrize("neighbours", ["", CHANGE])
@pytest.mark.parametrize("sql", SHAPES)
def test_no_way_to_keep_the_margin_costs_less_rho(sql, neighbours):
    asked, offer = parse(sql, schema := Schema.from_text(neighbours + SCHEMA)), Offer.of(within=90)
    catalogue = Catalogue(schema)
    found = find_cheapest(asked, offer, catalogue, in_rho=True)
    assert is_kept(found)
    assert found.loss.rho <= find_cheapest(asked, offer, catalogue).loss.rho
    less = Offer(rho=Fraction(found.loss.rho) * Fraction(99, 100))
    assert not is_kept(price(asked, less, catalogue, accuracy_first=True))


def is_kept(priced: Priced) -> bool:
    """Whether every number is within 90, for certain."""
    count = len(priced.question.aggregates)
    return all(promise_margin(priced, index, Fraction(1, 20)) <= 90 for index in range(count))


def test_gaussian_noise_of_one_margin_costs_less_than_half_the_rho():
    with clinic() as curator, clinic(budget=1000) as other:
        found = curator.price(COUNT, within=40).loss
        pure = other.price(COUNT, within=40).loss
        assert found.epsilon == INFINITY != pure.epsilon
        assert float(found.rho) == pytest.approx((2 * 1.96 / 40) ** 2 / 2, rel=0.03)
        assert 0.4 < found.rho / pure.rho < 0.45  # 1.96**2 / ln(20)**2


def test_where_tails_are_not_looked_at_laplace_noise_costs_less_in_rho_too():
    with clinic() as curator:
        priced = curator.explain(COUNT, within=40, confidence="0.3").priced
        assert isinstance(priced.mechanisms[0], Laplace)
        assert priced.loss.epsilon != INFINITY


@pytest.mark.parametrize("budget", [1000, discreet.Budget(epsilon=1000, delta="1e-6")])
@pytest.mark.parametrize("sql", SHAPES)
def test_where_epsilon_is_counted_prices_are_what_they_were(sql, budget):
    with clinic(budget=budget) as curator:
        offer = Offer.of(within=90)
        pure = find_cheapest(curator.parse(sql), offer, curator.engine.catalogue)
        assert curator.explain(sql, within=90).priced.loss == pure.loss
        assert curator.explain(sql, within=90).priced.mechanisms == pure.mechanisms


def test_it_is_charged_kept_and_improved():
    """Of Gaussian noise the difference of rho is what improving costs."""
    sql = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    with clinic() as curator:
        first = curator.ask(sql, within=600)
        assert curator.spent.rho == first.charged.rounded().rho
        better = curator.ask(sql, within=300)
        direct = curator.price(sql, within=300, fresh=True).loss
        assert float(curator.spent.rho) == pytest.approx(float(direct.rho), rel=0.02)
        assert max(better.margins()["n"]) <= 300
        assert curator.ask(sql, within=300).charged == NOTHING
        assert curator.ledger.verify().ok


@pytest.mark.parametrize(
    "policy",
    [
        discreet.Policy(question=discreet.Budget(epsilon=1)),
        discreet.Policy(analyst=discreet.Budget(epsilon=1)),
    ],
)
def test_who_has_a_cap_of_epsilon_pays_what_it_admits(policy):
    with clinic(policy=policy) as curator:
        curator.account.add_analyst("ada")
        assert curator.price(COUNT, analyst="ada", within=40).refusal is None
        answer = curator.ask(COUNT, analyst="ada", within=40)
        assert answer.charged.epsilon < 1
        assert max(answer.margins()["n"]) <= 40
        together = curator.ask_all([COUNT, SHAPES[2]], analyst="ada", within=[80, 9000])
        assert all(isinstance(one.priced.mechanisms[0], Laplace) for one in together)
        with pytest.raises(BudgetRefusal):
            curator.ask(COUNT, analyst="ada", within=1)


OLD = [
    ("SELECT town, COUNT(DISTINCT patient) AS n FROM visits GROUP BY town", {"delta": "1e-9"}),
    ("SELECT COUNT(DISTINCT patient) AS n FROM visits", {}),
    (COUNT, {}),
]


@pytest.mark.parametrize(("sql", "more"), OLD)
def test_what_was_paid_for_at_the_least_epsilon_stays_free(sql, more):
    with clinic() as curator:
        with pytest.MonkeyPatch.context() as patched:
            forget(patched)
            before = curator.ask(sql, within=60, **more)
        assert before.charged.epsilon != INFINITY
        spent = curator.spent
        again = curator.ask(sql, within=60, **more)
        assert [row.values for row in again.rows] == [row.values for row in before.rows]
        assert curator.spent == spent
        fresh = curator.ask(sql, within=60, fresh=True, **more)
        assert fresh.charged.rho < before.charged.rho


def test_several_questions_are_asked_at_the_least_rho():
    questions = [COUNT, SHAPES[2]]
    with clinic() as curator:
        with pytest.MonkeyPatch.context() as patched:
            forget(patched)
            before = curator.ask_all(questions, within=[40, 4000])
        pure = curator.spent
        assert pure.epsilon != INFINITY
        again = curator.ask_all(questions, within=[40, 4000])
        assert [a.rows for a in again] == [b.rows for b in before]
        assert curator.spent == pure
        fresh = curator.ask_all(questions, within=[40, 4000], fresh=True)
        assert all(isinstance(one.priced.mechanisms[0], Gaussian) for one in fresh)
        assert curator.spent.rho < Fraction(3, 2) * pure.rho
        spent = curator.spent
        curator.ask_all(questions, within=[40, 4000])
        assert curator.spent == spent


def test_auditors_price_as_the_curator_does():
    with (
        clinic() as curator,
        Rehearsal({"visits": ROWS}, schema=Schema.from_text(SCHEMA), budget=IN_RHO) as rehearsal,
    ):
        expected = curator.explain(COUNT, within=40).priced
        assert rehearsal.price(COUNT, {"within": 40}).mechanisms == expected.mechanisms


def test_mutant_that_forgets_what_is_counted_costs_more(monkeypatch):
    forget(monkeypatch)
    with clinic() as curator:
        found = curator.explain(COUNT, within=40).priced.loss
        less = curator.explain(COUNT, rho=Fraction(found.rho) / 2)
        assert max(less.margins("0.95").values()) < 40
