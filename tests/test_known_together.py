"""What was released together tells of other questions, as what was released by itself does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet
from discreet.accounting.loss import NOTHING, Loss
from discreet.curate.curator import Curator
from discreet.curate.together import PlannedBatch
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.ledger import Policy
from discreet.question.offer import Offer
from discreet.release.derived import Derived

SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
columns.patient = "integer"
columns.city = { type = "text", values = ["Cork", "Delft", "Faro"], nullable = false }
columns.sex = { type = "text", values = ["f", "m"], nullable = false }
"""
ROWS = pa.table(
    {
        "patient": [*range(300)],
        "city": ["Cork", "Delft", "Faro"] * 100,
        "sex": ["f"] * 120 + ["m"] * 180,
    }
)
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
TOTAL = "SELECT COUNT(*) AS n FROM visits"
CORK = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork'"
MEN = "SELECT COUNT(*) AS n FROM visits WHERE sex = 'm'"


@pytest.fixture
def clinic() -> Iterator[Curator]:
    with discreet.curator({"visits": ROWS}, schema=SCHEMA, budget=1000) as curator:
        yield curator


def test_what_was_released_together_is_added_up_for_nothing(clinic):
    cities, sexes = clinic.ask_all([BY_CITY, BY_SEX], epsilon=80)
    spent = clinic.spent
    total, cork, men = (clinic.ask(sql) for sql in (TOTAL, CORK, MEN))
    assert clinic.spent == spent
    # Noise of 40 for each: all is exact but with probability e**-40.
    assert [one.value() for one in (total, cork, men)] == [300, 100, 180]
    for told in (total, cork, men):
        assert isinstance(told, Derived)
        assert told.charged == NOTHING
        assert told.loss == spent  # of all that was released with it
        assert [origin.id for origin in told.origins] == [cities.id] == [sexes.id]
    assert men.margins()["n"] == sexes.margins()["n"][:1]


def test_what_was_asked_together_is_not_paid_for_again_by_itself(clinic):
    cities, _ = clinic.ask_all([BY_CITY, BY_SEX], epsilon=2)
    spent = clinic.spent
    again = clinic.ask(BY_CITY, epsilon=1)  # its half of the offer
    assert again.column("n") == clinic.ask(BY_CITY).column("n") == cities.column("n")
    assert clinic.spent == spent
    assert clinic.price(BY_CITY, epsilon=1).outcome == "known"


def test_the_same_number_twice_in_one_release_is_told_by_one_of_them(clinic):
    """They share a charge: whether they share noise nobody needs to look at."""
    clinic.ask_all([BY_CITY, BY_SEX], epsilon=2)
    assert len(clinic.ask(TOTAL).origins) == 1
    apart = clinic.ask(TOTAL, epsilon=1, fresh=True)
    both = clinic.ask(TOTAL)
    assert [origin.id for origin in both.origins][1:] == [apart.id]
    assert sum(origin.weight for origin in both.origins) == 1


def test_it_is_improved_beside_and_never_refined(clinic):
    cities, _ = clinic.ask_all([BY_CITY, BY_SEX], epsilon="0.6")
    better = clinic.ask(BY_CITY, epsilon="0.5")
    assert isinstance(better, Derived)
    assert float(better.charged.epsilon) == pytest.approx(0.4, rel=0.01)  # 3, 4, 5
    assert all("parent" not in record.content for record in clinic.ledger.records())
    planned = clinic.find_plan(clinic.parse(BY_CITY), Offer.of(epsilon="0.7"))
    request = clinic.make_request(planned, Offer.of(epsilon="0.7"), "curator")
    loss = Loss(Fraction(1, 10), Fraction(1, 2))
    basis = clinic.engine.find_basis(planned.compiled)
    refining = replace(request, parent=cities.id, loss=loss, basis=basis)
    with pytest.raises(InvalidParameter, match="other data"):
        clinic.account.charge(refining)
    assert clinic.ledger.verify().ok


def test_what_was_charged_before_it_was_recorded_is_found_too(clinic, monkeypatch):
    made = PlannedBatch.request
    former = lambda *given: replace(made(*given), abouts=())  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(PlannedBatch, "request", former)
        clinic.ask_all([BY_CITY, BY_SEX], epsilon=80)
    assert [clinic.ask(sql).value() for sql in (TOTAL, MEN)] == [300, 180]


def test_nobody_is_told_what_is_another_analysts():
    policy = Policy(shared_answers=False)
    with Curator({"visits": ROWS}, schema=SCHEMA, budget=100, policy=policy) as curator:
        for name in ("ana", "ben"):
            curator.account.add_analyst(name)
        curator.ask_all([BY_CITY, BY_SEX], epsilon=20, analyst="ana")
        assert curator.ask(MEN, analyst="ana").charged == NOTHING
        with pytest.raises(QuestionRefusal, match="Q43"):
            curator.ask(MEN, analyst="ben")


def test_a_refusal_to_derive_gives_one_reason_for_what_was_released_together(clinic):
    clinic.ask_all([BY_CITY, BY_SEX], epsilon=1)
    with pytest.raises(QuestionRefusal) as refused:
        clinic.ask("SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork' AND sex = 'm'")
    assert str(refused.value).count("Not free") <= 1
