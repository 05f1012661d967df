"""How many units there are is public where neighbours change one: no noise there, only there."""

from __future__ import annotations

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
    (ONE + PEOPLE, "SELECT COUNT(*) AS n, SUM(age) AS s FROM people"),
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
