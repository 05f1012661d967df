"""Who asks for an accuracy buys the rest of the rows, too: for the same price, and exactly."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest
from joint_cases import CONDITIONS as SMALL
from joint_cases import brute_force, make_schema

import discreet
from discreet.accounting.loss import NOTHING
from discreet.curate.curator import Curator
from discreet.curate.steps import Paid
from discreet.errors import QuestionRefusal
from discreet.known import derive as deriving
from discreet.known.widen import widen
from discreet.price import price
from discreet.question.builder import count
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.question import Question
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.derived import Derived

CITIES = ("Cork", "Delft", "Faro", "Ghent", None)
PEOPLE = 240
ROWS = pa.table(
    {
        "patient": [*range(PEOPLE)],
        "city": [CITIES[(i * i + i // 7) % 5] for i in range(PEOPLE)],
        "sex": ["fm"[i * 5 % 7 % 2] for i in range(PEOPLE)],
        "age": [(i * 37) % 100 for i in range(PEOPLE)],
        "smokes": [(True, False, None)[i * 11 % 13 % 3] for i in range(PEOPLE)],
    }
)
SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
[tables.visits.columns]
patient = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro", "Ghent"] }
sex = { type = "text", values = ["f", "m"], nullable = false }
age = { type = "integer", bounds = [0, 99], nullable = false }
smokes = "boolean"
"""
SURE = {"within": "0.4", "confidence": "0.9999999999"}  # noise is 0, but for once in 10**10
ASKED = "SELECT COUNT(*) AS n FROM visits WHERE city IN ('Cork', 'Faro') AND sex = 'f'"


def clinic(schema: str = SCHEMA, **options) -> Curator:
    budget = options.pop("budget", 5000)
    return discreet.curator({"visits": ROWS}, schema=schema, budget=budget, **options)


def count_truly(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("visits", ROWS)
        return connection.execute(sql).fetchall()


def test_the_rest_costs_nothing_and_is_known_from_then_on():
    with clinic() as curator:
        direct = curator.price(ASKED, within=20).loss
        answer = curator.ask(ASKED, within=20)
        assert isinstance(answer, Derived)
        assert answer.charged == answer.loss == curator.spent == direct.rounded()
        assert answer.margins()["n"] == curator.ask(ASKED, within=20, fresh=True).margins()["n"]
        spent = curator.spent
        for other in ("sex = 'm'", "city = 'Delft'", "city IN ('Cork', 'Faro', 'Ghent')"):
            found = curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE {other}")
            assert found.charged == NOTHING
        assert curator.spent == spent
        assert curator.ledger.verify().ok


def test_what_was_taken_together_is_not_told_apart():
    with clinic() as curator:
        curator.ask(ASKED, within=20)
        for sql in (
            "SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork'",
            "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
        ):
            with pytest.raises(QuestionRefusal, match="took together what is asked for apart"):
                curator.ask(sql)


def test_the_certificate_names_the_table_and_its_text_is_free_from_then_on():
    with clinic() as curator:
        answer = curator.ask(ASKED, within=20)
        (source,) = answer.certificate["sources"]
        assert source["question"] == curator.transcript()[0].question
        assert "GROUP BY" in source["question"]
        assert source["loss"] == answer.certificate["charged"] == answer.certificate["loss"]
        spent = curator.spent
        table = curator.ask(source["question"])
        assert len(table.rows) == 4 * 2
        assert table.charged == NOTHING
        assert curator.spent == spent
        built = curator.table("visits").group_by("sex").agg(n=count())
        curator.ask(built, epsilon=50)
        (source,) = curator.ask("SELECT COUNT(*) AS n FROM visits").certificate["sources"]
        assert "COUNT(*)" in source["question"]


@pytest.mark.parametrize("offer", [{"epsilon": 1}, {"rho": "0.25"}])
@pytest.mark.parametrize(("rows", "change_one"), [(1, False), (1, True), (2, False), (2, True)])
def test_no_unit_moves_a_table_further_than_is_charged(rows, change_one, offer):
    """Over all units of a small domain; also where the table would cost more than the question."""
    catalogue = Catalogue(make_schema(rows, change_one=change_one))
    draw, tried = random.Random(rows), 0
    while tried < 6 // rows:
        shape = draw.choice(("COUNT(*)", "SUM(x)", "SUM(y)", "COUNT(DISTINCT patient)", "COUNT(x)"))
        key = draw.choice(("", "", "home", "b"))
        conditions = " AND ".join(draw.sample(SMALL, 2))
        sql = f"SELECT {key + ',' if key else ''} {shape} AS n FROM visits WHERE {conditions}"
        try:
            asked = parse(f"{sql} GROUP BY {key}" if key else sql, catalogue)
        except QuestionRefusal:  # which no row can be in
            continue
        wider = widen(asked, catalogue.multiplicity)
        if wider is None:
            continue
        tried += 1
        priced = price(wider, Offer.of(**offer), catalogue)
        epsilon, rho = brute_force(priced, rows, change_one=change_one)
        assert epsilon <= float(priced.loss.epsilon) * (1 + 1e-9), sql
        assert rho <= float(priced.loss.rho) * (1 + 1e-9), sql


CONDITIONS = (
    "city IN ('Cork', 'Faro')",
    "city = 'Delft'",
    "NOT city IN ('Cork', 'Ghent')",
    "city <> 'Faro'",
    "city IS NULL",
    "(city IS NULL OR city = 'Ghent')",
    "sex = 'f'",
    "age >= 65",
    "NOT age >= 65",
    "age < 30",
    "smokes",
    "NOT smokes",
    "(smokes OR sex = 'm')",
    "smokes IS NULL",
)
KEYS = ("city", "sex", "age >= 65", "smokes", "city = 'Cork'")


def ask_anything(draw: random.Random) -> str:
    keys = draw.sample(KEYS, draw.randrange(3))
    conditions = draw.sample(CONDITIONS, draw.randrange(1, 4))
    by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    columns = ", ".join([*keys, "COUNT(*) AS n"])
    return f"SELECT {columns} FROM visits WHERE {' AND '.join(conditions)}{by}"


def ask_possible(draw: random.Random, curator: Curator) -> str:
    """A question that some row can be in: others are refused before anything is paid."""
    while True:
        sql = ask_anything(draw)
        try:
            curator.parse(sql)
        except QuestionRefusal as refusal:
            if refusal.code != "Q36":
                raise
        else:
            return sql


def compare(answer: discreet.Answer, sql: str) -> None:
    """Groups that nobody is in are shown as 0, and not at all by plain SQL."""
    shown = {row.values[:-1]: row.values[-1] for row in answer.rows}
    true = {row[:-1]: row[-1] for row in count_truly(sql)}
    assert {group: n for group, n in shown.items() if n} == {g: n for g, n in true.items() if n}


@pytest.mark.parametrize("seed", range(2))
def test_every_number_is_the_right_one(seed):
    """What is bought, and what is told from all that was bought before."""
    draw = random.Random(seed)
    free = widened = 0
    with clinic() as curator:
        for _ in range(20):
            sql = ask_possible(draw, curator)
            answer = curator.ask(sql, **SURE)
            compare(answer, sql)
            free += answer.charged == NOTHING
            widened += isinstance(answer, Derived) and answer.charged != NOTHING
    assert free > 1
    assert widened > 3


def test_a_table_that_forgets_what_it_took_together_is_found_out(monkeypatch):
    """The same comparison sees a reading that takes a merged group for one of its values."""
    with clinic() as curator:
        curator.ask(ASKED, **SURE)
        monkeypatch.setattr(deriving._Derivation, "_keep_whole", lambda self, kept, at: kept)
        wrong = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Cork'"
        with pytest.raises(AssertionError):
            compare(curator.ask(wrong), wrong)


def plan_wider(curator: Curator, sql: str) -> Question | None:
    asked = curator.parse(sql)
    assert isinstance(asked, Question)
    return widen(asked, curator.engine.catalogue.multiplicity)


def test_groups_of_the_table_are_all_there_are():
    with clinic() as curator:
        found = plan_wider(curator, f"{ASKED} AND age >= 65 AND NOT smokes")
        assert found is not None
        listed = [key.values for key in found.keys]
        assert listed == [
            (False, True),
            ("Cork", "Delft", "Ghent", None),
            ("f", "m"),
            (False, True, None),
        ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) COUNT(*) AS n FROM visits "
        "WHERE sex = 'f'",
        "SELECT age, sex, COUNT(*) AS n FROM visits WHERE city = 'Cork' GROUP BY 1, 2",  # 1000
    ],
)
def test_what_has_no_rest_or_too_much_of_it_stays_as_it_is(sql):
    with clinic() as curator:
        assert plan_wider(curator, sql) is None


def test_who_offers_a_loss_buys_what_is_asked():
    for offer in ({"epsilon": "0.5"}, {"rho": "0.1"}, {"within": 9, "fresh": True}):
        with clinic(budget=discreet.Budget(epsilon=50, delta="1e-6")) as curator:
            assert not isinstance(curator.ask(ASKED, **offer), Derived)


def test_where_a_change_moves_two_groups_it_would_cost_more():
    with clinic('neighbours = "change-one"\n' + SCHEMA) as curator:
        answer = curator.ask(ASKED, within=20)
        assert not isinstance(answer, Derived)
        assert curator.spent == curator.price(ASKED, within=20, fresh=True).loss.rounded()


def test_nobody_pays_for_the_rows_of_others():
    """Where a condition shuts out blocks, their people are not charged for the table."""
    blocks = SCHEMA.replace('unit = "patient"', 'unit = "patient"\nblocks = ["sex"]')
    with clinic(blocks) as curator:
        assert not isinstance(curator.ask(ASKED, within=20), Derived)
        other = curator.ask(ASKED.replace("'f'", "'m'"), within=20)
        assert curator.spent == other.charged.rounded()  # each in its own block


@pytest.mark.parametrize("budget", [5000, discreet.Budget(rho=1000)])
def test_several_rows_of_each_and_sums(budget):
    schema = SCHEMA.replace("max_rows_per_unit = 1", "max_rows_per_unit = 2")
    sql = "SELECT SUM(age) AS s FROM visits WHERE city IN ('Cork', 'Faro')"
    with clinic(schema, budget=budget) as curator:
        offer = {"within": 400, "confidence": "0.9999999999"}
        answer = curator.ask(sql, **offer)
        assert abs(answer.rows[0].values[0] - count_truly(sql)[0][0]) <= 400
        assert answer.charged.rounded() == curator.spent
        assert (
            answer.charged.rounded().rho
            <= curator.price(sql, fresh=True, **offer).loss.rounded().rho
        )


def test_what_was_cut_short_is_gone_on_with():
    with clinic() as curator:
        assert isinstance(curator.pay(ASKED, within=20), Paid)
        spent = curator.spent
        answer = curator.ask(ASKED, within=20)
        assert answer.charged == spent == curator.spent
        assert curator.ledger.verify().ok


def test_who_was_sooner_has_paid_for_both(monkeypatch):
    """The same table is bought by somebody else just before it is charged."""
    with clinic() as curator:
        charge = curator.account.charge

        def after_another(request):
            monkeypatch.setattr(curator.account, "charge", charge)
            curator.ask(ASKED, within=20)
            return charge(request)

        monkeypatch.setattr(curator.account, "charge", after_another)
        answer = curator.ask(ASKED, within=20)
        assert answer.charged == NOTHING
        assert curator.spent == answer.loss


def test_what_one_may_not_see_is_bought_by_each():
    policy = discreet.Policy(shared_answers=False)
    with clinic(policy=policy) as curator:
        for name in ("ada", "bob"):
            curator.account.add_analyst(name)
        ada = curator.ask(ASKED, analyst="ada", within=20)
        bob = curator.ask(ASKED, analyst="bob", within=20)
        assert ada.charged == bob.charged != NOTHING
        assert {o.id for o in ada.origins}.isdisjoint(o.id for o in bob.origins)
        with pytest.raises(QuestionRefusal, match="Q43"):
            curator.ask("SELECT COUNT(*) AS n FROM visits WHERE sex = 'm'", analyst="curator")


MESSAGES = """
[tables.messages]
unit = { any = ["sender", "receiver"] }
entity = "person"
max_rows_per_unit = 20
max_rows_per_pair = 1
crowding = { rho = 0.02, delta = 1e-9 }
[tables.messages.columns]
sender = "integer"
receiver = "integer"
kind = { type = "text", values = ["mail", "call"], nullable = false }
"""


def test_rows_of_two_people_that_let_others_in_cost_more_as_a_table():
    """One who leaves a count of some rows takes them along; of a table, others come in besides."""
    catalogue = Catalogue(Schema.from_text(MESSAGES))
    asked = parse("SELECT COUNT(*) AS n FROM messages WHERE kind = 'mail'", catalogue)
    wider = widen(asked, catalogue.multiplicity)
    assert wider is not None
    alone, table = (price(one, Offer.of(epsilon=1), catalogue) for one in (asked, wider))
    assert (alone.sensitivities[0].l1, table.sensitivities[0].l1) == (20, 40)


def test_people_of_a_pair_are_no_groups_of_a_table():
    catalogue = Catalogue(Schema.from_text(MESSAGES))
    asked = parse("SELECT COUNT(*) AS n FROM messages WHERE sender = 7", catalogue)
    wider = widen(asked, catalogue.multiplicity)
    assert wider is not None
    with pytest.raises(QuestionRefusal, match="Q52"):
        price(wider, Offer.of(epsilon=1), catalogue)
