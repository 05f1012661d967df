"""Several questions asked as one release: one price, one charge, an answer for each."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest
from joint_cases import find_vector, list_rows, make_schema, weigh

import discreet
from discreet.errors import BudgetRefusal, DataRefusal, Refusal
from discreet.mechanisms import Laplace
from discreet.price import batch, joint
from discreet.price.batch import price_batch
from discreet.question.catalogue import Catalogue
from discreet.question.functions import evaluate
from discreet.question.offer import Offer
from discreet.question.relation import Filter
from discreet.question.sql import parse
from discreet.question.sql.several import split_questions

SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
age = { type = "integer", bounds = [0, 120] }
cost = { type = "decimal", bounds = [0, 100] }
"""
YOUNG = "SELECT COUNT(*) AS n FROM visits WHERE age < 50"
OLD = "SELECT COUNT(*) AS n FROM visits WHERE age >= 50"
COSTS = "SELECT AVG(cost) AS mean FROM visits WHERE age > 90"


@pytest.fixture
def clinic():
    visits = pd.DataFrame(
        {
            "patient": range(300),
            "age": [n % 100 for n in range(300)],
            "cost": [float(n % 90) for n in range(300)],
        }
    )
    with discreet.curator({"visits": visits}, schema=SCHEMA, budget=300) as curator:
        yield curator


def test_questions_about_different_rows_cost_what_one_costs(clinic):
    answers = clinic.ask_all([YOUNG, OLD], epsilon=200)
    assert [answer.value() for answer in answers] == [150, 150]
    assert [answer.loss.epsilon for answer in answers] == [200, 200]
    assert clinic.spent.epsilon == 200
    (entry,) = clinic.transcript()
    assert entry.loss.epsilon == 200


def test_each_answer_has_its_certificate_and_says_what_it_was_released_with(clinic):
    answers = clinic.ask_all([YOUNG, OLD, COSTS], epsilon=1)
    assert [answer.text for answer in answers] == [YOUNG, OLD, COSTS]
    for answer in answers:
        assert answer.certificate["question"] == answer.text
        assert any("one of 3 questions released together" in note for note in answer.notes)
    assert answers[1].loss.epsilon + answers[2].loss.epsilon == 1  # one row can be in both
    assert clinic.spent.epsilon == 1


def test_asked_again_together_they_are_free(clinic):
    first = clinic.ask_all([YOUNG, OLD], epsilon=1)
    spent = clinic.spent
    again = clinic.ask_all([YOUNG, OLD], epsilon=1)
    assert clinic.spent == spent
    assert all(answer.replayed for answer in again)
    assert [a.value() for a in again] == [a.value() for a in first]


def test_each_gets_what_its_margin_costs(clinic):
    young, old = clinic.ask_all([YOUNG, OLD], within=[10, 40])
    assert young.margins()["n"][0] <= 10 < old.margins()["n"][0] <= 40
    assert clinic.spent.epsilon == max(young.loss.epsilon, old.loss.epsilon)


def test_questions_about_the_same_rows_add_up(clinic):
    answers = clinic.ask_all([YOUNG, "SELECT COUNT(*) AS n FROM visits"], epsilon=1)
    assert sum(answer.loss.epsilon for answer in answers) == 1 == clinic.spent.epsilon


@pytest.mark.parametrize(
    ("questions", "offer"),
    [
        ([], {"epsilon": 1}),
        (YOUNG, {"epsilon": 1}),
        ([YOUNG] * 101, {"epsilon": 1}),
        ([YOUNG, f"EXPLAIN {OLD}"], {"epsilon": 1}),
        ([YOUNG, f"SELECT ({YOUNG}) + ({OLD}) AS both"], {"epsilon": 1}),
        ([YOUNG, OLD], {"within": [10]}),
        ([YOUNG, OLD], {"within": [10, None]}),
        ([YOUNG, OLD], {"epsilon": 1, "within": [10, 20]}),
        ([YOUNG, OLD], {}),
        ([YOUNG, "SELECT secret FROM visits"], {"epsilon": 1}),
    ],
)
def test_what_cannot_be_asked_together_is_refused_and_costs_nothing(clinic, questions, offer):
    with pytest.raises(Refusal):
        clinic.ask_all(questions, **offer)
    assert clinic.spent == discreet.Loss(0, 0)


def test_all_are_answered_or_none(clinic, monkeypatch):
    with pytest.raises(BudgetRefusal):
        clinic.ask_all([YOUNG, YOUNG], epsilon=301)

    def fail(compiled):
        raise RuntimeError(compiled)

    monkeypatch.setattr(clinic.engine, "run", fail)
    with pytest.raises(DataRefusal):
        clinic.ask_all([YOUNG, OLD], epsilon=1)
    (entry,) = (e for e in clinic.transcript() if e.state == "burnt")
    assert entry.loss.epsilon == 1


def lost(parts, rows):
    """What one unit of these rows loses to all questions, in epsilon."""
    total = 0.0
    for part in parts:
        relation, conditions = part.plan.source, []
        while isinstance(relation, Filter):
            conditions.append(relation.predicate)
            relation = relation.source
        kept = tuple(r for r in rows if all(evaluate(c, r) is True for c in conditions))
        for (index, *_), amount in find_vector(part, kept).items():
            mechanism = part.mechanisms[index]
            assert isinstance(mechanism, Laplace)
            total += abs(amount) / float(mechanism.scale)
    return total


BATCHES = [
    [
        "SELECT COUNT(*) AS n FROM visits WHERE x < 2",
        "SELECT COUNT(*) AS n FROM visits WHERE x = 2",
    ],
    [
        "SELECT b, COUNT(*) AS n FROM visits WHERE x < 2 GROUP BY b",
        "SELECT SUM(y) AS s FROM visits WHERE x > 1",
    ],
    [
        "SELECT AVG(x) AS m FROM visits WHERE b",
        "SELECT COUNT(*) AS n FROM visits WHERE NOT b",
        "SELECT COUNT(*) AS n FROM visits WHERE b IS NULL",
    ],
    [
        "SELECT COUNT(DISTINCT patient) AS n FROM visits WHERE b",
        "SELECT COUNT(*) AS n FROM visits WHERE NOT b",
    ],
]


@pytest.mark.parametrize("questions", BATCHES, ids=str)
@pytest.mark.parametrize("epsilon", [1, 8])
def test_no_unit_loses_more_to_a_batch_than_is_charged(questions, epsilon):
    schema = make_schema(2)
    asked = [parse(text, schema) for text in questions]
    found = price_batch(asked, [Offer.of(epsilon=epsilon)], Catalogue(schema))
    assert found.loss.epsilon <= epsilon
    rows = [r for r in list_rows() if r["visits.home"] == "north"]
    most = max(lost(found.parts, (one, other)) for one in rows for other in rows)
    assert most <= float(found.loss.epsilon) * (1 + 1e-9)
    if "DISTINCT" not in questions[0]:
        assert most >= float(found.loss.epsilon) * (1 - 1e-3)


CHANGED = [
    *BATCHES,
    [f"SELECT COUNT(*) AS n FROM visits WHERE x = {n}" for n in range(4)],
    [
        "SELECT home, COUNT(*) AS n FROM visits WHERE x < 2 GROUP BY home",
        "SELECT b, COUNT(*) AS n FROM visits WHERE x = 2 GROUP BY b",
        "SELECT b, SUM(y) AS s FROM visits WHERE x = 3 GROUP BY b",
    ],
    [
        "SELECT b, COUNT(*) AS n, COUNT_IF(y > 0) AS m FROM visits WHERE x < 2 GROUP BY b",
        "SELECT b, COUNT(DISTINCT patient) AS n FROM visits WHERE x > 1 GROUP BY b",
    ],
]


def lost_by_change(parts, units):
    """The most that a unit loses that is changed into another, in epsilon."""
    sides = []
    for unit in [*units, ()]:
        found = []
        for part in parts:
            relation, rows = part.plan.source, unit
            while isinstance(relation, Filter):
                rows = tuple(r for r in rows if evaluate(relation.predicate, r) is True)
                relation = relation.source
            found.append(find_vector(part, rows))
        sides.append(found)
    different = list({repr(found): found for found in sides}.values())
    return max(
        sum(weigh(part, a, b)[0] for part, a, b in zip(parts, one, other, strict=True))
        for one in different
        for other in different
    )


@pytest.mark.parametrize("questions", CHANGED, ids=str)
@pytest.mark.parametrize(("rows", "epsilon"), [(1, 1), (1, 9), (2, 1)])
def test_no_change_of_a_unit_loses_more_to_a_batch_than_is_charged(questions, rows, epsilon):
    schema = make_schema(rows, change_one=True)
    asked = [parse(text, schema) for text in questions]
    found = price_batch(asked, [Offer.of(epsilon=epsilon)], Catalogue(schema))
    assert found.loss.epsilon <= epsilon
    domain = [row for row in list_rows() if row["visits.y"] in (-2.0, 2.0)]
    units = [(row,) * rows for row in domain]
    if rows == 2:  # one row stays, or both change
        units += [(domain[0], row) for row in domain if row["visits.home"] == "north"]
    most = lost_by_change(found.parts, units)
    assert most <= float(found.loss.epsilon) * (1 + 1e-9)


def test_questions_about_different_rows_share_what_a_change_moves():
    """Who is changed leaves one of four counts, and joins another: two of four are moved."""
    schema = make_schema(1, change_one=True)
    asked = [parse(text, schema) for text in CHANGED[len(BATCHES)]]
    found = price_batch(asked, [Offer.of(epsilon=1)], Catalogue(schema))
    assert found.loss.epsilon <= 1
    assert [float(part.loss.epsilon) for part in found.parts] == pytest.approx([0.5] * 4, rel=1e-3)
    grouped = [parse(text, schema) for text in CHANGED[len(BATCHES) + 1]]
    found = price_batch(grouped, [Offer.of(epsilon=1)], Catalogue(schema))
    assert all(float(part.loss.epsilon) > 0.9 for part in found.parts)


def test_a_batch_that_takes_half_of_what_is_lost_whole_is_found(monkeypatch):
    """A single number is priced at its range: who leaves it and comes back nowhere loses all."""
    schema = make_schema(1, change_one=True)
    monkeypatch.setattr(batch, "_is_taken_whole", lambda _part: False)
    asked = [parse(text, schema) for text in CHANGED[len(BATCHES)]]
    found = price_batch(asked, [Offer.of(epsilon=1)], Catalogue(schema))
    most = lost_by_change(found.parts, [(row,) for row in list_rows()])
    assert most > float(found.loss.epsilon) * (1 + 1e-9)


def test_a_batch_that_forgets_the_conditions_of_a_question_is_found(monkeypatch):
    """Questions about the same rows taken for questions about different ones."""
    schema = make_schema(2)
    texts = [
        "SELECT COUNT(*) AS n FROM visits WHERE b",
        "SELECT COUNT(*) AS n FROM visits WHERE x < 2",
    ]
    monkeypatch.setattr(batch, "find_cells", lambda *_: {0: {0b01, 0b10}})
    found = price_batch(
        [parse(text, schema) for text in texts], [Offer.of(epsilon=1)], Catalogue(schema)
    )
    rows = [r for r in list_rows() if r["visits.home"] == "north"]
    assert max(lost(found.parts, (row, row)) for row in rows) > float(found.loss.epsilon)


def test_noise_in_steps_is_not_bought_in_company():
    """One row of several would lose all of it."""
    schema = make_schema(2)
    texts = ["SELECT SUM(y) AS s FROM visits WHERE b", "SELECT SUM(y) AS s FROM visits WHERE NOT b"]
    found = price_batch(
        [parse(text, schema) for text in texts], [Offer.of(epsilon=4)], Catalogue(schema)
    )
    assert found.together == ((1, 0), (0, 1))
    assert all(isinstance(m, Laplace) for part in found.parts for m in part.mechanisms)


def test_shares_of_a_batch_are_exact():
    shares = joint.share_out([3.0, 4.0], ((Fraction(1), Fraction(1)),), pure=False)
    assert sum(shares) == 1


def test_questions_are_taken_apart_where_statements_end():
    assert split_questions("SELECT 1; ;\n SELECT ';' -- no; end\n;") == [
        "SELECT 1",
        "SELECT ';' -- no; end",
    ]
    with pytest.raises(Refusal):
        split_questions("SELECT 'open")


def test_fresh_questions_and_statements_are_measured_and_charged_again(clinic):
    clinic.ask_all([YOUNG, OLD], epsilon=2)
    assert all(one.replayed for one in clinic.ask_all([YOUNG, OLD], epsilon=2))
    for spent in (4, 6):
        assert not any(one.replayed for one in clinic.ask_all([YOUNG, OLD], epsilon=2, fresh=True))
        assert clinic.spent.epsilon == spent
    share = f"SELECT n / 3 AS third FROM ({COSTS.replace('AVG(cost) AS mean', 'COUNT(*) AS n')})"
    for fresh, free, spent in ((False, False, 7), (False, True, 7), (True, False, 8)):
        assert clinic.price(share, epsilon=1, fresh=fresh).free == free
        clinic.ask(share, epsilon=1, fresh=fresh)
        assert clinic.spent.epsilon == spent
