"""How many units there are is public where neighbours change one: no noise there, only there."""

from __future__ import annotations

import itertools
from fractions import Fraction
from statistics import mean

import pyarrow as pa
import pytest

import discreet
from discreet.accounting.loss import NOTHING
from discreet.audit.neighbours import neighbouring
from discreet.curate.curator import Curator
from discreet.curate.opening import MayBeOnePerson
from discreet.errors import DataRefusal, InvalidParameter, LedgerRefusal, QuestionRefusal
from discreet.ledger import Ledger
from discreet.mechanisms import Laplace, Staircase
from discreet.price import sizes
from discreet.price.plan import Moments, Sum
from discreet.price.summed import Summed
from discreet.question.schema import Schema

ONE = 'neighbours = "change-one"\n'
PEOPLE = """
[tables.people]
unit = "id"
max_rows_per_unit = 1
columns.id = "integer"
columns.age = { type = "integer", bounds = [0, 99] }
"""
VISITS = """
[tables.visits]
unit = "id"
max_rows_per_unit = 3
columns.id = "integer"
columns.urgent = "boolean"
"""
ROWS = {
    "people": pa.table({"id": [*range(40), 7, None], "age": [*range(40), 1, 2]}),
    "visits": pa.table({"id": [1, 1, 2], "urgent": [True, False, None]}),
}
COUNT = "SELECT COUNT(*) AS n FROM people"


def open_curator(schema: str, *names: str, ledger: Ledger | None = None) -> Curator:
    return discreet.curator(
        {name: ROWS[name] for name in names or ("people",)}, schema=schema, budget=9, ledger=ledger
    )


@pytest.mark.parametrize("offer", [{}, {"epsilon": "0.5"}, {"rho": 1}, {"within": 3}])
@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT COUNT(DISTINCT id) AS n FROM people",
        "SELECT 2 * COUNT(*) - COUNT(DISTINCT id) AS n FROM people",
    ],
)
def test_how_many_there_are_is_told_as_it_is(sql, offer):
    with open_curator(ONE + PEOPLE) as curator:
        assert curator.price(sql, **offer).loss == sizes.LEAST
        answer = curator.ask(sql, **offer)
        assert answer.column("n") == [40]  # one row of 7, and none of nobody
        assert answer.margins()["n"] == [0]
        assert curator.spent == sizes.LEAST != NOTHING
        assert any("is public" in note for note in answer.notes)
        assert answer.certificate["measurements"][0]["mechanism"] == "none"
        assert curator.ask(sql, **offer).replayed
        assert curator.ledger.verify().ok


def test_who_has_several_rows_is_counted_and_rows_are_not():
    with open_curator(ONE + VISITS, "visits") as curator:
        assert curator.ask("SELECT COUNT(DISTINCT id) AS n FROM visits").column("n") == [2]
        with pytest.raises(QuestionRefusal, match="Q43"):
            curator.ask("SELECT COUNT(*) AS n FROM visits")


NOISY = [
    (PEOPLE, COUNT),  # people come and go
    (ONE + PEOPLE + VISITS, COUNT),  # a unit may be in the other table instead
    (ONE + PEOPLE, f"{COUNT} WHERE age >= 0"),
    (ONE + PEOPLE, "SELECT COUNT(*) FILTER (WHERE age < 200) AS n FROM people"),
    (ONE + PEOPLE, "SELECT COUNT(age) AS n FROM people"),
    (ONE + PEOPLE, "SELECT COUNT(DISTINCT age) AS n FROM people"),
    (ONE + PEOPLE, "SELECT age < 50 AS k, COUNT(*) AS n FROM people GROUP BY 1"),
    (PEOPLE, "SELECT COUNT(*) AS n, SUM(age) AS s FROM people"),
    (ONE + PEOPLE + VISITS, "SELECT COUNT(*) AS n, SUM(age) AS s FROM people"),
    (ONE + PEOPLE, "SELECT COUNT(*) AS n, SUM(age) AS s FROM people WHERE age < 50"),
    (ONE + PEOPLE, "SELECT COUNT_IF(age < 50) AS n, SUM(age) AS s FROM people"),
    (ONE + VISITS, "SELECT COUNT(*) AS n, COUNT_IF(urgent) AS u FROM visits"),
    (ONE + PEOPLE, "SELECT COUNT(*) AS n FROM (SELECT id, age FROM people WHERE age > 3) AS p"),
    (ONE + VISITS, "SELECT COUNT(*) AS n FROM visits"),
]


@pytest.mark.parametrize(("schema", "sql"), NOISY)
def test_what_one_unit_may_change_has_noise(schema, sql):
    names = [name for name in ROWS if f"tables.{name}]" in schema]
    with open_curator(schema, *names) as curator:
        priced = curator.explain(sql, epsilon=1).priced
        assert all(isinstance(m, Laplace | Staircase) for m in priced.mechanisms)
        assert priced.loss.epsilon == 1


# --- beside other numbers ----------------------------------------------------------------------

WAGES = """
[tables.wages]
unit = "id"
max_rows_per_unit = 1
columns.id = "integer"
columns.age = { type = "integer", bounds = [20, 23], nullable = false }
columns.pay = { type = "decimal", bounds = [0, 100], nullable = false }
columns.debt = { type = "integer", bounds = [0, 9] }
"""
MUCH = 1500  # no draw of whole numbers is other than 0


def wages(people: int = 40, schema: str = ONE + WAGES) -> Curator:
    columns = {
        "id": [*range(people)],
        "age": [20 + i % 4 for i in range(people)],
        "pay": [i * 7 % 100 + 0.25 for i in range(people)],
        "debt": [i % 10 if i % 3 else None for i in range(people)],
    }
    return discreet.curator({"wages": pa.table(columns)}, schema=schema, budget=10**6)


MEANS = "SELECT COUNT(*) AS n, AVG(age) AS age, AVG(pay) AS pay, AVG(debt) AS debt FROM wages"


def test_beside_others_it_has_no_noise_either_and_divides_means():
    with wages() as curator:
        answer = curator.ask(MEANS, epsilon=MUCH)
        n, age, pay, debt = answer.rows[0].values
        debts = [i % 10 for i in range(40) if i % 3]
        assert (n, age) == (40, 21.5)
        assert pay == pytest.approx(sum(i * 7 % 100 + 0.25 for i in range(40)) / 40, abs=0.1)
        assert debt == pytest.approx(sum(debts) / len(debts), abs=0.1)
        assert answer.margins()["n"] == [0]
        kinds = [type(mechanism) for mechanism in answer.priced.mechanisms]
        assert kinds.count(Summed) == 1
        assert any("is public" in note for note in answer.notes)
        assert curator.spent == answer.charged.rounded()
        assert curator.ask(MEANS, epsilon=MUCH).replayed
        assert curator.ledger.verify().ok


TIMES = 60
"""Askings: margins of a mean with noise on both vary by 2 %, their average by 0.3 %."""


@pytest.mark.parametrize("column", ["age", "pay"])
def test_a_mean_is_nearer_than_with_noise_on_both(column):
    """Its margin is 0.73 of theirs: 0.75 is six standard errors away."""
    sql = f"SELECT COUNT(*) AS n, AVG({column}) AS m FROM wages"
    with wages(400) as curator:
        now = curator.ask(sql, epsilon="0.5").margins()["m"][0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sizes, "price_beside", lambda *_: None)
            curator._plans.cache_clear()
            asked = (curator.ask(sql, epsilon="0.5", fresh=True) for _ in range(TIMES))
            both = mean(answer.margins()["m"][0] for answer in asked)
        assert now < 0.75 * both


def test_what_is_charged_is_what_a_change_moves():
    """Over all tables of three people and all changes of one: the sum moves by 3, and n by none."""
    with wages() as curator:
        sql = "SELECT COUNT(*) AS n, AVG(age) AS m FROM wages"
        priced = curator.explain(sql, epsilon="0.5").priced
        place = next(i for i, m in enumerate(priced.plan.measurements) if isinstance(m, Sum))
        variable = priced.plan.measurements[place].variable
        ages = range(20, 24)
        tables = list(itertools.product(ages, repeat=3))
        added = {t: sum((a - 20) / variable.grid for a in t) for t in tables}
        moved = [
            (abs(added[one] - added[other]), len(one) - len(other))
            for one in tables
            for other in tables
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1
        ]
        assert max(moved) == (priced.sensitivities[place].l1, 0)
        assert priced.loss.epsilon == Fraction(1, 2)
        assert priced.mechanisms[place].loss.epsilon == Fraction(1, 2)


def test_a_mean_of_what_some_lack_is_not_divided_by_all():
    with wages() as curator:
        priced = curator.explain("SELECT AVG(debt) AS m FROM wages", epsilon=1).priced
        assert not any(isinstance(one, Summed) for one in priced.mechanisms)


def test_higher_powers_are_measured_once():
    with wages() as curator:
        sql = "SELECT AVG(age) AS m, VARIANCE(age) AS v FROM wages"
        assert len(curator.explain(sql, epsilon=1).priced.mechanisms) == 1


def test_beside_it_others_are_refined():
    sql = "SELECT COUNT(*) AS n, AVG(debt) AS m FROM wages"
    with wages() as curator:
        curator.ask(sql, epsilon="0.5")
        better = curator.ask(sql, epsilon="0.75")
        assert better.charged.epsilon == Fraction(1, 4)
        assert better.rows[0].values[0] == 40
        assert curator.ledger.verify().ok


def test_an_accuracy_is_asked_of_what_has_noise():
    sql = "SELECT COUNT(*) AS n, SUM(debt) AS s FROM wages"
    with wages() as curator:
        answer = curator.ask(sql, within={"n": 1, "s": 30})
        assert answer.margins()["n"] == [0]
        assert answer.margins()["s"][0] <= 30
        alone = curator.price("SELECT SUM(debt) AS s FROM wages", within=30, fresh=True).loss
        assert answer.charged.rounded() == alone.rounded()
        with pytest.raises(QuestionRefusal, match="Q43"):
            curator.ask(sql, within={"n": 1}, fresh=True)
        with pytest.raises(QuestionRefusal, match="Q44"):
            curator.ask("SELECT COUNT(*) AS n, AVG(age) AS m FROM wages", within=1, fresh=True)


def test_what_was_paid_for_with_noise_stays_free(monkeypatch):
    with wages() as curator:
        with monkeypatch.context() as before:
            before.setattr(sizes, "price_beside", lambda *_: None)
            curator.ask(MEANS, epsilon="0.5")
        curator._plans.cache_clear()
        spent = curator.spent
        assert curator.ask(MEANS, epsilon="0.5").replayed
        assert curator.spent == spent


def test_the_airlock_believes_no_price_of_a_part(monkeypatch):
    """Beside noise, too, nothing but a number of units is shown without."""
    whole = sizes.is_size
    monkeypatch.setattr(sizes, "is_size", lambda m, reach: isinstance(m, Moments))
    with wages() as curator:
        paid = curator.pay("SELECT COUNT_IF(age > 21) AS n, SUM(pay) AS s FROM wages", epsilon=1)
        assert any(isinstance(one, Summed) for one in paid.priced.mechanisms)
        monkeypatch.setattr(sizes, "is_size", whole)
        with pytest.raises(DataRefusal):
            curator._answer(paid)


def test_a_table_that_was_left_out_may_still_hold_somebody(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite")
    with open_curator(ONE + PEOPLE + VISITS, "people", "visits", ledger=ledger):
        pass
    with open_curator(ONE + PEOPLE, ledger=ledger) as curator:
        assert curator.explain(COUNT, epsilon=1).priced.loss.epsilon == 1
    ledger.close()


def test_a_second_table_about_the_same_people_is_not_added_later(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite")
    with open_curator(ONE + PEOPLE, ledger=ledger) as curator:
        curator.ask(COUNT)
    records = len(list(ledger.records()))
    with pytest.raises(LedgerRefusal, match=r"L11: .*second one about 'id'"):
        open_curator(ONE + PEOPLE + VISITS, "people", "visits", ledger=ledger)
    assert len(list(ledger.records())) == records
    others = ONE + PEOPLE + VISITS.replace('unit = "id"', 'unit = "id"\nentity = "visitor"')
    with pytest.warns(MayBeOnePerson):  # both call their units the same
        curator = open_curator(others, "people", "visits", ledger=ledger)
    with curator:
        assert curator.ask(COUNT).column("n") == [40]
    ledger.close()


def test_where_people_come_and_go_tables_are_added_as_before(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite")
    for schema, names in ((PEOPLE, ["people"]), (PEOPLE + VISITS, ["people", "visits"])):
        open_curator(schema, *names, ledger=ledger).close()
    ledger.close()


def test_in_a_statement_it_costs_nothing_beside_what_has_noise():
    sql = f"SELECT a.n, b.m FROM ({COUNT}) AS a, (SELECT COUNT_IF(age > 9) AS m FROM people) AS b"
    with open_curator(ONE + PEOPLE) as curator:
        assert curator.ask(sql, epsilon=2).column("n") == [40]
        assert curator.ask(COUNT).replayed


def test_what_was_told_without_noise_is_not_mixed_with_what_has_some():
    with open_curator(ONE + PEOPLE) as curator:
        curator.ask(COUNT)
        by_age = curator.ask(
            "SELECT age < 50 AS k, COUNT(*) AS n FROM people GROUP BY 1", epsilon=1
        )
        assert by_age.charged.epsilon == 1
        assert curator.ask(COUNT).margins()["n"] == [0]  # not what the groups add up to


def test_nothing_else_is_said_to_be_public():
    """Neither what groups add up to, nor a number of which no group tells anything."""
    fine = "SELECT age < 50 AS k, COUNT(*) AS n FROM people GROUP BY 1"
    never = "SELECT COUNT(*) FILTER (WHERE age < 50 AND NOT age < 50) AS n FROM people"
    for schema in (PEOPLE, ONE + PEOPLE):
        with open_curator(schema) as curator:
            curator.ask(fine, epsilon=1)
            some = curator.ask("SELECT COUNT(*) AS n FROM people WHERE age < 50")
            for answer in (some, curator.ask(never), curator.ask(fine, epsilon=1)):
                assert answer.charged == NOTHING
                assert not any("is public" in note for note in answer.notes)


def test_the_airlock_shows_nothing_else_without_noise(monkeypatch):
    """A price that forgets what decides is not believed where noise is added."""
    monkeypatch.setattr(sizes, "price_size", _free_of_charge(sizes.price_size))
    with open_curator(ONE + PEOPLE) as curator, pytest.raises(DataRefusal):
        curator.ask("SELECT COUNT_IF(age > 9) AS n FROM people", epsilon=1)


def _free_of_charge(original):
    def price_size(question, catalogue, tables):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sizes, "is_size", lambda *_: True)
            return original(question, catalogue, tables)

    return price_size


def test_auditors_compare_as_many_units():
    schema, people = Schema.from_text(ONE + PEOPLE), ROWS["people"]
    neighbouring({"people": people.slice(0, 39)}, {"people": people.slice(1, 39)}, schema=schema)
    with pytest.raises(InvalidParameter, match="a unit that the other has not"):
        neighbouring({"people": people}, {"people": people.slice(1)}, schema=schema)


def test_no_noise_is_said_to_be_none():
    assert Summed(()).margin("0.05") == 0
