"""Numbers of the texts, asked of a curator: DR Examples 3.4 to 3.6, Theorems 3.24 and 3.26."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.audit.rehearsal import Rehearsal
from discreet.errors import QuestionRefusal
from discreet.mechanisms import ExponentialMechanism, TopK
from discreet.question.schema import Schema

CONDITIONS = tuple(f"c{number:02}" for number in range(40))
PEOPLE = 3000


def quoted(values):
    return ", ".join(f'"{value}"' for value in values)


@pytest.fixture(scope="module")
def clinic():
    """Of each person up to twenty conditions; every third bids a dollar, one in ten three."""
    rng = np.random.default_rng(4)
    pairs = {
        (person, CONDITIONS[n])
        for person in range(PEOPLE)
        for n in rng.permutation(40)[: person % 19]
    }
    pairs |= {(person, "c07") for person in range(0, PEOPLE, 2)}
    tables = {
        "ill": pd.DataFrame(sorted(pairs), columns=["person", "condition"]),
        "bids": pd.DataFrame({"bidder": range(400), "cents": [100] * 300 + [301] * 100}),
        "prices": pd.DataFrame({"price": range(2, 401)}),
        "two": pd.DataFrame({"person": range(30), "which": ["B"] * 30}),
    }
    prices = ", ".join(str(price) for price in range(2, 401))
    schema = f"""
    [tables.ill]
    unit = "person"
    max_rows_per_unit = 20
    columns.person = "integer"
    columns.condition = {{ type = "text", values = [{quoted(CONDITIONS)}], nullable = false }}
    [tables.bids]
    unit = "bidder"
    max_rows_per_unit = 1
    columns.bidder = "integer"
    columns.cents = {{ type = "integer", bounds = [0, 1000] }}
    [tables.prices]
    public = true
    columns.price = {{ type = "integer", values = [{prices}], nullable = false }}
    [tables.two]
    unit = "person"
    max_rows_per_unit = 1
    columns.person = "integer"
    columns.which = {{ type = "text", values = ["A", "B"], nullable = false }}
    """
    with discreet.curator(tables, schema=schema, budget=200) as curator:
        yield curator


@pytest.fixture
def laws(monkeypatch):
    """The laws of the choices that are made."""
    seen = []
    real = TopK.release

    def release(self, scores):
        seen.append((self, list(scores)))
        return real(self, scores)

    monkeypatch.setattr(TopK, "release", release)
    return seen


def test_example_3_4_the_most_common_condition_costs_by_one_count(clinic):
    """A person has up to twenty conditions; the answer is near the best by ln(40/0.05)/0.1."""
    by = "SELECT condition, COUNT(DISTINCT person) FROM ill GROUP BY condition"
    said = clinic.explain_choose(by, epsilon="0.1")
    assert said.contest.mechanism.sensitivity == 1
    assert said.contest.theorem_margin() == pytest.approx(log(40 / 0.05) / 0.1, rel=1e-9)
    assert said.margin() < 68
    assert clinic.choose(by, epsilon=20).best == "c07"


def test_example_3_4_in_the_words_that_people_type(clinic):
    """MODE(DISTINCT x) counts each person once for a value; MODE(x) counts rows, and says so."""
    once = clinic.explain("SELECT MODE(DISTINCT condition) AS m FROM ill", epsilon="0.1")
    often = clinic.explain("SELECT MODE(condition) AS m FROM ill", epsilon="0.1")
    assert once.margins()["m"] < 68
    assert often.margins()["m"] > 1_300
    assert "MODE(DISTINCT" in str(often)
    told = clinic.ask("SELECT MODE(DISTINCT condition) AS m FROM ill", epsilon=20)
    assert told.value() == "c07"
    different = "SELECT MODE(condition) AS m FROM (SELECT DISTINCT person, condition FROM ill)"
    spent = clinic.spent
    assert clinic.ask(different, epsilon=20).value() == told.value()  # the same question, and free
    assert clinic.spent == spent


CALLS = """
[tables.calls]
unit = "phone"
max_rows_per_unit = 2
columns.phone = "integer"
columns.zone = { type = "text", values = ["home", "eu"], nullable = false }
columns.app = { type = "text", values = ["voice", "video"], nullable = false }
columns.value = { type = "text", values = ["low", "high"], nullable = false }
"""


@pytest.fixture(scope="module")
def calls():
    """All at home speak, all abroad are seen; values are as many of each."""
    zones = ["home", "eu"] * 60
    apps = ["voice" if zone == "home" else "video" for zone in zones]
    columns = {
        "phone": range(120),
        "zone": zones,
        "app": apps,
        "value": ["low", "low", "high"] * 40,
    }
    with Rehearsal({"calls": pd.DataFrame(columns)}, schema=Schema.from_text(CALLS)) as rehearsal:
        yield rehearsal


@pytest.mark.parametrize(
    "question",
    [
        "SELECT zone AS app, MODE(DISTINCT app) AS m FROM calls GROUP BY zone",
        "SELECT zone AS App, MODE(DISTINCT app) AS m FROM calls GROUP BY 1",
        "SELECT zone AS value, LOWER(MODE(DISTINCT UPPER(app))) AS m FROM calls GROUP BY zone",
        "SELECT Zone, MODE(DISTINCT app) AS m FROM calls GROUP BY zone",
        "SELECT c.zone, MODE(DISTINCT c.app) AS m FROM calls c GROUP BY 1 ORDER BY c.zone DESC",
        "SELECT zone, MODE(DISTINCT app) AS m FROM calls c GROUP BY c.zone HAVING c.zone <> 'x'",
    ],
)
def test_a_value_that_counts_once_is_told_from_keys_of_the_same_name(calls, question):
    answer = calls(question, epsilon=10**4)
    assert list(answer.column("m")) == ["voice", "video"]
    assert list(answer.column(answer.columns[0])) == ["home", "eu"]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT MODE(DISTINCT UPPER(app)) AS m FROM calls GROUP BY value",
        "SELECT LEFT(c.app, 2) AS zone, MODE(DISTINCT app) AS m FROM calls c GROUP BY c.zone",
    ],
)
def test_a_key_that_is_not_listed_is_not_taken_for_another(calls, question):
    with pytest.raises(QuestionRefusal, match="a key that is not in the SELECT list"):
        calls(question, epsilon=10**4)


def test_example_3_5_the_auction(clinic, laws):
    """What price earns most, of everybody who bids as much: one dollar, and not a cent above."""
    auction = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 399, "
        "max_rows_per_group = 1) p.price, SUM(p.price) FROM bids AS b CROSS JOIN prices AS p "
        "WHERE b.cents >= p.price GROUP BY p.price"
    )
    said = clinic.explain_choose(auction, rho="1/32")
    assert said.contest.mechanism.sensitivity * said.contest.unit == 400
    told = clinic.choose(auction, rho="1/32")  # of the exponential mechanism: epsilon = 1/2
    ((mechanism, scores),) = laws
    revenue = [price * (300 * (price <= 100) + 100 * (price <= 301)) for price in range(2, 401)]
    assert [score * float(said.contest.unit) for score in scores] == revenue
    assert (revenue[98], revenue[298], revenue[299], revenue[300]) == (40_000, 30_000, 30_100, 0)
    # Theorem 3.11 and Corollary 3.12, at its epsilon and sensitivity.
    rate = ExponentialMechanism(sensitivity=400, epsilon=mechanism.epsilon, monotonic=True)
    bound = 400 / float(mechanism.epsilon) * (log(399) + log(1 / 0.05))
    assert rate.theorem_margin("0.05", candidates=399) == pytest.approx(bound)
    assert said.contest.theorem_margin() == pytest.approx(bound)
    assert said.margin() <= bound
    # And the price itself: within the law, above a dollar it earns less than half of the best.
    law = rate.law(dict(zip(range(2, 401), revenue, strict=True)))
    earned = zip(range(2, 401), revenue, strict=True)
    expected = sum(cents * float(law.mass(price)) for price, cents in earned)
    assert expected > 39_000
    assert told.best in range(2, 401)


def test_example_3_6_the_better_of_two(clinic, laws):
    """A never occurs, B thirty times: A is told no more often than 2 exp(-c epsilon / 2)."""
    clinic.choose("SELECT which, COUNT(*) FROM two GROUP BY which", epsilon="1/2")
    ((mechanism, scores),) = laws
    assert scores == [0, 30]
    wrong = float(mechanism.law(scores).mass((0,)))
    assert wrong == pytest.approx(exp(-30 / 2) / 2)  # monotonic: half of exp(-c epsilon)
    assert wrong < 2 * exp(-30 / 4)


@pytest.mark.parametrize(("queries", "beta"), [(100, "0.05"), (10_000, "0.01")])
def test_theorem_3_24_a_threshold_once(clinic, queries, beta):
    """alpha = 8 (ln k + ln(2 / beta)) / epsilon for counts that one person moves by one."""
    said = clinic.explain_watch(
        "SELECT COUNT(DISTINCT person) FROM ill", threshold=900, epsilon="0.1"
    )
    confidence = 1 - Fraction(beta)
    alpha = 8 * (log(queries) + log(2 / float(beta))) / 0.1
    assert said.theorem_margin(confidence, queries=queries) == pytest.approx(alpha, abs=0.1)
    assert said.margin(confidence, queries=queries) < alpha / 2


@pytest.mark.parametrize("at_most", [3, 20])
def test_theorem_3_26_a_threshold_so_many_times(clinic, at_most):
    """alpha = 8 c (ln k + ln(2 c / beta)) / epsilon."""
    said = clinic.explain_watch(
        "SELECT COUNT(DISTINCT person) FROM ill", threshold=900, epsilon=1, at_most=at_most
    )
    alpha = 8 * at_most * (log(1000) + log(2 * at_most / 0.05))
    assert said.theorem_margin() == pytest.approx(alpha, abs=1)
    assert said.margin() < alpha
