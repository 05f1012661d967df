"""People in several datasets: one budget for all that an entity's people lose, wherever they do."""

from __future__ import annotations

import json
import os
import signal
import threading
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_cases import is_refusal, runner
from ledger_cases import Clock, request
from patience import PATIENCE_S

import discreet
from discreet.accounting.budget import SATURATED, Budget
from discreet.accounting.loss import Loss
from discreet.curate import session
from discreet.errors import BudgetRefusal, InvalidParameter, LedgerRefusal, SchemaRefusal
from discreet.ledger import Account, Ledger, verify_export
from discreet.ledger import books as ledger_books
from discreet.ledger.books import Books, next_record
from discreet.question.schema import Schema

EACH = Budget(epsilon=3)
PERSON = "[entities.person]\nepsilon = 4\n"
HALF = "[entities.person]\nepsilon = 2\n"


def schema(table: str = "visits", more: str = "", *, entity: str = "person") -> Schema:
    """A table about people, in blocks by region."""
    return Schema.from_text(f"""
    [tables.{table}]
    unit = "who"
    entity = "{entity}"
    max_rows_per_unit = 7
    blocks = ["region"]
    columns.who = "integer"
    columns.region = {{ type = "text", values = ["north", "south"], nullable = false }}
    {more}
    """)


NORTH, SOUTH = 1, 2


def join(ledger: Ledger, name: str, more: str = "", **options: str) -> Account:
    found = schema(f"table_of_{name}", more, **options)
    return ledger.account(name, schema=found, budget=EACH)


def code(refusal: pytest.ExceptionInfo[discreet.Refusal]) -> str:
    return refusal.value.code


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def two(ledger):
    return join(ledger, "clinic", PERSON), join(ledger, "pharmacy")


# --- the cap -------------------------------------------------------------------------------------


def test_people_lose_no_more_than_their_budget_in_all_datasets(two, ledger):
    clinic, pharmacy = two
    clinic.charge(request(clinic, loss="5/2"))
    with pytest.raises(BudgetRefusal) as refusal:
        pharmacy.charge(request(pharmacy, loss="13/8"))
    assert code(refusal) == "B4"
    assert "'person'" in refusal.value.what
    assert "clinic" not in str(refusal.value)  # nor any other dataset's name
    assert pharmacy.balance().spent.epsilon == 0  # nothing was lost
    pharmacy.charge(request(pharmacy, loss="3/2"))  # exactly what was left
    for account in two:
        with pytest.raises(BudgetRefusal) as refusal:
            account.charge(request(account, "more", loss="1/1000"))
        assert code(refusal) == "B4"
    assert ledger.verify().ok


def test_what_is_stored_stays_free_when_the_budget_is_gone(two):
    clinic, pharmacy = two
    receipt = clinic.charge(request(clinic, loss="3"))
    clinic.publish(receipt, b"an answer")
    pharmacy.charge(request(pharmacy, loss="1"))
    assert clinic.charge(request(clinic, loss="3")).answer == b"an answer"


def test_a_person_is_in_one_block_of_each_dataset(two):
    """North and south of one dataset are different people; of two they may be the same."""
    clinic, pharmacy = two
    clinic.charge(request(clinic, "north", loss="3", blocks=(NORTH,)))
    clinic.charge(request(clinic, "south", loss="2", blocks=(SOUTH,)))
    for block in (NORTH, SOUTH):  # whoever lost 3 there may be in either here
        with pytest.raises(BudgetRefusal):
            pharmacy.charge(request(pharmacy, "too much", loss="9/8", blocks=(block,)))
    pharmacy.charge(request(pharmacy, "south", loss="1", blocks=(SOUTH,)))
    with pytest.raises(BudgetRefusal) as refusal:  # 2 + 1 + 2 is more than 4
        clinic.charge(request(clinic, "south again", loss="9/8", blocks=(SOUTH,)))
    assert code(refusal) == "B1"
    clinic.charge(request(clinic, "south again", loss="1", blocks=(SOUTH,)))


def test_the_bound_is_what_brute_force_over_people_says(ledger):
    """Whoever is in any pair of blocks: the worst of all pairs is compared with the decisions."""
    clinic, pharmacy = join(ledger, "clinic", PERSON), join(ledger, "pharmacy")
    lost = {clinic.dataset: np.zeros(3), pharmacy.dataset: np.zeros(3)}
    steps = [((i * 5) % 7 + 1, (i * 3) % 4, i % 2) for i in range(40)]
    admitted = 0
    for number, (eighths, touched, which) in enumerate(steps):
        account = (clinic, pharmacy)[which]
        blocks = ((NORTH,), (SOUTH,), (NORTH, SOUTH), (0, NORTH, SOUTH))[touched]
        after = {name: amounts.copy() for name, amounts in lost.items()}
        after[account.dataset][list(blocks)] += eighths
        worst = max(
            after[account.dataset][own] + other
            for own in blocks
            for other in after[(pharmacy, clinic)[which].dataset]
        )
        fits = worst <= 32 and after[account.dataset][list(blocks)].max() <= 24
        asked = request(account, f"part {number}", loss=f"{eighths}/8", blocks=blocks)
        if fits:
            account.charge(asked)
            lost, admitted = after, admitted + 1
        else:
            with pytest.raises(BudgetRefusal):
                account.charge(asked)
    assert 4 < admitted < len(steps)
    assert ledger.verify().ok


def test_rho_and_failures_are_capped_too(ledger):
    more = "[entities.person]\nepsilon = 1\ndelta = 1e-6\n"
    budget = Budget(epsilon=1, delta="1e-6")
    accounts = [
        ledger.account(name, schema=schema(name, more), budget=budget) for name in ("one", "two")
    ]
    loss = Loss(Fraction(1, 5), Fraction(1, 500), Fraction(0))
    codes, part = [], 0
    while not codes:
        account = accounts[part % 2]
        try:
            account.charge(request(account, f"part {part}", loss=loss))
            part += 1
        except BudgetRefusal as refusal:
            codes.append(refusal.code)
    assert codes == ["B4"]
    total = accounts[0].balance().entities[0]
    assert total.spent.rho == Fraction(part, 500)
    assert budget.admits(Loss(Fraction(0), Fraction(part - 1, 500), Fraction(0)), loss)
    failing = Loss(Fraction(1, 10**9), Fraction(1, 10**9), Fraction(1, 10**5))
    with pytest.raises(BudgetRefusal):
        accounts[1].charge(request(accounts[1], "may fail", loss=failing))
    assert ledger.verify().ok


def test_several_questions_are_admitted_for_people_in_all_or_not_at_all(two):
    clinic, pharmacy = two
    pharmacy.charge(request(pharmacy, loss="2"))
    several = [request(clinic, f"part {part}", loss="1") for part in range(3)]
    for attempt in (clinic.preview_all, clinic.charge_all):
        with pytest.raises(BudgetRefusal) as refusal:
            attempt(several)
        assert code(refusal) == "B4"
    assert clinic.balance().spent.epsilon == 0
    clinic.charge_all(several[:2])
    assert clinic.balance().entities[0].spent.epsilon == 4


def test_other_people_are_not_counted(two, ledger):
    clinic, pharmacy = two
    school = join(ledger, "school", entity="pupil")
    clinic.charge(request(clinic, loss="3"))
    pharmacy.charge(request(pharmacy, loss="1"))
    school.charge(request(school, loss="3"))
    assert school.balance().entities == ()


# --- what counts ---------------------------------------------------------------------------------


def test_what_was_spent_before_the_entity_had_a_budget_counts(ledger):
    clinic, pharmacy = join(ledger, "clinic"), join(ledger, "pharmacy")
    clinic.charge(request(clinic, loss="3"))
    assert pharmacy.balance().entities == ()
    archive = join(ledger, "archive", PERSON)  # of a third dataset; the others stay open
    with pytest.raises(BudgetRefusal):
        pharmacy.charge(request(pharmacy, loss="5/4"))
    with pytest.raises(BudgetRefusal):
        archive.charge(request(archive, loss="5/4"))
    assert {n: str(s.epsilon) for n, s in archive.balance().entities[0].describe()} == {
        "archive": "0",
        "clinic": "3",
        "pharmacy": "0",
    }
    assert ledger.verify().ok


def test_a_dataset_that_comes_to_be_about_them_counts_with_all_it_has_spent(ledger):
    join(ledger, "clinic", PERSON)
    other = ledger.account("school", schema=schema(entity="pupil"), budget=EACH)
    other.charge(request(other, loss="2"))
    both = Schema.from_dict(
        {
            "tables": {
                name: {
                    "unit": "who",
                    "entity": entity,
                    "columns": {
                        "who": "integer",
                        "region": {
                            "type": "text",
                            "values": ["north", "south"],
                            "nullable": False,
                        },
                    },
                    **more,
                }
                for name, entity, more in (
                    ("visits", "pupil", {"blocks": ["region"], "max_rows_per_unit": 7}),
                    ("members", "person", {}),
                )
            }
        }
    )
    again = ledger.account("school", schema=both, budget=EACH)
    assert again.balance().entities[0].spent.epsilon == 2
    assert ledger.verify().ok


def test_an_entity_is_also_named_by_its_units_columns(ledger):
    plain = '[tables.stays]\nunit = "who"\ncolumns.who = "integer"\n'
    stays = ledger.account("clinic", schema=Schema.from_text(plain), budget=EACH)
    stays.charge(request(stays, loss="2"))
    capped = Schema.from_text(f"{plain.replace('stays', 'sales')}[entities.who]\nepsilon = 3\n")
    sales = ledger.account("pharmacy", schema=capped, budget=EACH)
    with pytest.raises(BudgetRefusal) as refusal:
        sales.charge(request(sales, loss="2"))
    assert code(refusal) == "B4"


def test_a_renewal_gives_people_in_several_datasets_nothing_back_unless_it_names_them(two, ledger):
    clinic, pharmacy = two
    clinic.charge(request(clinic, loss="3"))
    names = [clinic.space.name(number) for number in range(clinic.space.size)]
    clinic.renew(names, reason="a new consent")
    assert clinic.balance().spent.epsilon == 0
    assert clinic.balance().entities[0].spent.epsilon == 3
    with pytest.raises(BudgetRefusal) as refusal:
        clinic.charge(request(clinic, "again", loss="2"))
    assert code(refusal) == "B4"
    for wrong in (["nobody"], "person", ["person", "nobody"]):
        with pytest.raises(InvalidParameter):
            clinic.renew(names, reason="a new consent", entities=wrong)
    clinic.renew(names, reason="a new consent to both", entities=["person"])
    assert pharmacy.balance().entities[0].spent.epsilon == 0
    clinic.charge(request(clinic, "again", loss="2"))
    assert ledger.verify().ok


def test_blocks_declared_anew_forget_nobody(two, ledger):
    clinic, pharmacy = two
    clinic.charge(request(clinic, loss="3", blocks=(NORTH,)))
    wider = Schema.from_text(
        f"""
    [tables.table_of_clinic]
    unit = "who"
    entity = "person"
    max_rows_per_unit = 7
    columns.who = "integer"
    columns.region = {{ type = "text", values = ["north", "south"], nullable = false }}
    {PERSON}"""
    )
    again = ledger.account("clinic", schema=wider, budget=EACH)
    assert again.balance().entities[0].spent.epsilon == 3
    with pytest.raises(BudgetRefusal):
        pharmacy.charge(request(pharmacy, loss="5/4"))
    assert ledger.verify().ok


def test_a_restored_ledger_counts_everything_as_lost_for_them(two, ledger, tmp_path):
    clinic, _ = two
    clinic.charge(request(clinic, loss="1"))
    ledger.backup(tmp_path / "backup.sqlite")
    restored = Ledger.restore(
        tmp_path / "new.sqlite", tmp_path / "backup.sqlite", reason="the disk of May failed"
    )
    with restored:
        clinic, pharmacy = join(restored, "clinic", PERSON), join(restored, "pharmacy")
        late = join(restored, "late")  # it may have been declared in the time that was lost
        for account in (clinic, pharmacy, late):
            names = [account.space.name(number) for number in range(account.space.size)]
            account.renew(names, reason="nothing was asked")
            with pytest.raises(BudgetRefusal) as refusal:
                account.charge(request(account, "new", loss="1/8"))
            assert code(refusal) == "B4"
        for account in (clinic, pharmacy, late):
            names = [account.space.name(number) for number in range(account.space.size)]
            account.renew(names, reason="nothing was asked", entities=["person"])
        clinic.charge(request(clinic, "new", loss="1/8"))
        assert restored.verify().ok


def test_sums_that_saturate_stay_on_the_safe_side(two):
    clinic, _ = two
    books = clinic._journal.books
    for standing in books.datasets.values():
        standing.lost["person"][:] = SATURATED
    whole = books.elsewhere("clinic")["person"]
    total = whole.add_to(books.datasets["clinic"].lost["person"])
    assert (total == SATURATED).all()
    assert clinic.balance().entities[0].spent.epsilon > 1000


# --- declared in two ways ------------------------------------------------------------------------


def test_two_budgets_for_the_same_people_are_refused_and_nothing_is_recorded(two, ledger):
    clinic, _ = two
    clinic.charge(request(clinic, loss="1"))
    before = ledger.records()
    with pytest.raises(LedgerRefusal) as refusal:
        join(ledger, "archive", HALF)
    assert code(refusal) == "L15"
    assert "archive" not in ledger.datasets()
    with pytest.raises(LedgerRefusal) as refusal:
        join(ledger, "pharmacy", HALF)
    assert code(refusal) == "L15"
    assert ledger.records() == before
    assert clinic.balance().entities[0].budget == Budget(epsilon=4)
    join(ledger, "archive", PERSON)  # the same is not another


def test_the_only_one_who_states_a_budget_may_change_it(two, ledger):
    clinic, pharmacy = two
    clinic.charge(request(clinic, loss="3"))
    join(ledger, "clinic", HALF)
    with pytest.raises(BudgetRefusal):
        pharmacy.charge(request(pharmacy, loss="1/8"))
    join(ledger, "pharmacy", HALF)
    with pytest.raises(LedgerRefusal):
        join(ledger, "clinic", PERSON)
    join(ledger, "pharmacy")  # takes its statement back
    join(ledger, "clinic", PERSON)
    pharmacy.charge(request(pharmacy, loss="1/8"))
    assert ledger.verify().ok


def test_a_budget_that_nobody_states_any_more_still_holds(two, ledger):
    clinic, pharmacy = two
    clinic.charge(request(clinic, loss="3"))
    join(ledger, "clinic")
    with pytest.raises(BudgetRefusal):
        pharmacy.charge(request(pharmacy, loss="5/4"))
    count = len(ledger.records())
    join(ledger, "clinic")
    assert len(ledger.records()) == count  # said once
    join(ledger, "pharmacy", "[entities.person]\nepsilon = 5\n")  # anybody may state one then
    pharmacy.charge(request(pharmacy, loss="5/4"))
    assert ledger.verify().ok


@pytest.mark.parametrize("order", [0, 1])
def test_other_neighbours_for_the_same_people_are_refused(ledger, order):
    changed = (
        'neighbours = "change-one"\n[tables.visits]\nunit = "who"\nentity = "person"\n'
        f'columns.who = "integer"\n{PERSON if order else ""}'
    )
    declared = [
        lambda: ledger.account("clinic", schema=Schema.from_text(changed), budget=EACH),
        lambda: join(ledger, "pharmacy", "" if order else PERSON),
    ]
    declared[0]()
    before = ledger.records()
    with pytest.raises(LedgerRefusal) as refusal:
        declared[1]()
    assert code(refusal) == "L15"
    assert ledger.records() == before


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("[entities.nobody]\nepsilon = 4", "S6"),
        ("[entities.person]", "S2"),
        ("[entities.person]\nepsilon = -1", "S2"),
        ("[entities.person]\nepsilon = 'a lot'", "S2"),
        ("[entities.person]\nepsilons = 4", "S2"),
        ("[entities]\nperson = 4", "S2"),
    ],
)
def test_a_budget_that_means_nothing_is_refused(more, expected):
    with pytest.raises(SchemaRefusal) as refusal:
        schema("visits", more)
    assert code(refusal) == expected
    assert "line" in refusal.value.what


def test_entities_that_are_no_section_are_refused():
    text = 'entities = 4\n[tables.visits]\nunit = "who"\ncolumns.who = "integer"'
    with pytest.raises(SchemaRefusal) as refusal:
        Schema.from_text(text)
    assert code(refusal) == "S2"


def test_rows_are_not_an_entity():
    text = '[tables.visits]\nunit = "row"\nentity = "person"\ncolumns.cost = "integer"\n'
    with pytest.raises(SchemaRefusal) as refusal:
        Schema.from_text(text)
    assert code(refusal) == "S5"
    text = '[tables.visits]\nunit = "row"\ncolumns.cost = "integer"\n[entities.row]\nepsilon = 1'
    with pytest.raises(SchemaRefusal) as refusal:
        Schema.from_text(text)
    assert code(refusal) == "S6"


CALLS = """
[tables.calls]
unit = {{ {how} = ["caller", "callee"] }}
entity = "person"
max_rows_per_unit = 5
max_rows_per_pair = 1
crowding = {{ rho = 0.02, delta = 1e-9 }}
columns.caller = "integer"
columns.callee = "integer"
"""


def test_both_people_of_a_row_count(two, ledger):
    """A table of which each row is two people's is about these people, too."""
    clinic, _ = two
    calls = ledger.account("calls", schema=Schema.from_text(CALLS.format(how="any")), budget=EACH)
    calls.charge(request(calls, loss="3"))
    with pytest.raises(BudgetRefusal) as refusal:
        clinic.charge(request(clinic, loss="5/4"))
    assert code(refusal) == "B4"
    assert ledger.verify().ok


def test_pairs_of_people_are_not_people():
    text = '[tables.calls]\nunit = { pair = ["a", "b"] }\ncolumns.a = "integer"\n'
    text += 'columns.b = "integer"\n'
    for more, expected in (("[entities.a]\nepsilon = 1", "S6"), ('entity = "person"', "S12")):
        wrong = (
            f"{text}{more}" if more[0] == "[" else text.replace("columns.a", f"{more}\ncolumns.a")
        )
        with pytest.raises(SchemaRefusal) as refusal:
            Schema.from_text(wrong)
        assert code(refusal) == expected


def test_a_large_delta_for_an_entity_needs_a_word(ledger):
    with pytest.raises(discreet.Refusal) as refusal:
        join(ledger, "clinic", "[entities.person]\nepsilon = 1\ndelta = 0.1\n")
    assert code(refusal) == "P10"
    assert ledger.datasets() == ()


# --- whose people a question is about ------------------------------------------------------------

HOSPITAL = """
[tables.stays]
unit = "patient"
entity = "patient"
max_rows_per_unit = 1
columns.patient = "integer"
columns.age = { type = "integer", bounds = [0, 9], nullable = false }
[tables.shifts]
unit = "doctor"
entity = "doctor"
max_rows_per_unit = 1
columns.doctor = "integer"
[tables.wards]
public = true
columns.ward = "integer"
[entities.patient]
epsilon = 2
[entities.doctor]
epsilon = 1
"""
PATIENTS, DOCTORS = "SELECT COUNT(*) AS n FROM stays", "SELECT COUNT(*) AS n FROM shifts"


@pytest.fixture
def hospital(ledger):
    import pyarrow as pa

    tables = {
        "stays": pa.table({"patient": [*range(40)], "age": [3, 4] * 20}),
        "shifts": pa.table({"doctor": [*range(9)]}),
        "wards": pa.table({"ward": [3, 4]}),
    }
    with discreet.curate.curator.Curator(
        tables, schema=HOSPITAL, budget=Budget(epsilon=30), ledger=ledger, dataset="hospital"
    ) as curator:
        yield curator


def list_lost(curator) -> dict[str, Fraction]:
    found = curator.balance().entities
    return {one.entity: Fraction(one.spent.epsilon) for one in found}


def test_a_question_counts_for_those_whose_tables_it_reads(hospital, ledger):
    hospital.ask(PATIENTS, epsilon="3/2")
    assert list_lost(hospital) == {"patient": Fraction(3, 2), "doctor": 0}
    hospital.ask(DOCTORS, epsilon="3/4")  # patients have lost 3/2 of 2, doctors nothing
    assert list_lost(hospital) == {"patient": Fraction(3, 2), "doctor": Fraction(3, 4)}
    for sql in (PATIENTS, DOCTORS):
        with pytest.raises(BudgetRefusal) as refusal:
            hospital.ask(f"{sql} -- more", epsilon=3)
        assert code(refusal) == "B4"
    assert hospital.spent.epsilon == Fraction(9, 4)  # the dataset's own budget counts all
    assert ledger.verify().ok


def test_questions_together_and_statements_count_for_all_whose_tables_they_read(hospital, ledger):
    hospital.ask_all([PATIENTS, DOCTORS], epsilon="1/2")
    assert set(list_lost(hospital).values()) == {Fraction(1, 2)}
    hospital.ask_all(
        [f"{PATIENTS} WHERE patient < 3", f"{PATIENTS} WHERE patient > 5"], epsilon="1/4"
    )
    assert list_lost(hospital) == {"patient": Fraction(3, 4), "doctor": Fraction(1, 2)}
    both = f"SELECT a.n + b.n AS n FROM ({PATIENTS}) AS a CROSS JOIN ({DOCTORS}) AS b"
    hospital.ask(both, epsilon="1/8")
    lost = list_lost(hospital)
    assert lost["patient"] > Fraction(3, 4)
    assert lost["doctor"] > Fraction(1, 2)
    assert ledger.verify().ok


def test_what_is_no_question_counts_for_those_whose_tables_it_reads(hospital, ledger):
    few = f"{PATIENTS} WHERE patient < 9"
    hospital.choose({"few": few, "all": PATIENTS}, epsilon="1/16")
    hospital.make_release("people", kind="marginals", of="stays", epsilon="1/16")
    most = {"property": "maximum", "table": "stays", "column": "age", "bound": 3}
    line = {"property": "clusters", "table": "stays", "column": "age", "clusters": 2, "width": 1}
    hospital.quality({"most": most, "line": line}, epsilon="1/16")
    hospital.measure_bounding("1/16", tables=["stays"])
    lost = list_lost(hospital)
    assert lost["patient"] > Fraction(3, 16)
    assert lost["doctor"] == 0
    hospital.watch(epsilon="1/16", threshold=20)  # may be asked anything later
    assert list_lost(hospital)["doctor"] == Fraction(1, 16)
    assert ledger.verify().ok


UNNAMED = HOSPITAL.replace('unit = "doctor"\nentity = "doctor"', 'unit = "patient"').replace(
    "columns.doctor", "columns.patient"
)


def test_a_table_that_may_be_about_the_same_people_and_does_not_say_so_is_told(tmp_path, capsys):
    own = UNNAMED.replace("[entities.doctor]\nepsilon = 1\n", "")
    text = own.replace('entity = "patient"', 'entity = "person"')
    text = text.replace("[entities.patient]", "[entities.person]")
    found = Schema.from_text(text)
    (doubt,) = found.list_doubts()
    assert "'shifts' names no entity" in doubt
    assert "write entity = 'person'" in doubt
    assert Schema.from_text(own).list_doubts() == []  # its unit is called as that entity is
    assert Schema.from_text(HOSPITAL).list_doubts() == []
    import pyarrow as pa

    from discreet.curate.opening import MayBeOnePerson

    people = pa.table({"patient": [3, 4], "age": [5, 6]})
    tables = {"stays": people, "shifts": people, "wards": pa.table({"ward": [3, 4]})}
    with pytest.warns(MayBeOnePerson, match="two people to the account"):
        discreet.curator(tables, schema=found, budget=3).close()
    file = tmp_path / "discreet.toml"
    file.write_text(text)
    assert "names no entity" in runner(capsys)("schema", "check", "--declared", file)[1]


def test_what_was_refined_counts_for_the_same_people(hospital, ledger):
    hospital.ask(PATIENTS, epsilon="1/4")
    hospital.ask(PATIENTS, epsilon="1/2")
    assert list_lost(hospital) == {"patient": Fraction(1, 2), "doctor": 0}
    assert ledger.verify().ok


def test_a_charge_counts_for_people_again_when_the_ledger_is_read_again(hospital, tmp_path):
    hospital.ask(PATIENTS, epsilon="3/2")
    standing = hospital.account.standing()
    again = type(standing).from_json(json.loads(json.dumps(standing.to_json())))
    assert int(again.lost["doctor"].sum()) == 0
    with Ledger.open(tmp_path / "ledger.sqlite") as read:
        other = read.account(
            "hospital", schema=Schema.from_text(HOSPITAL), budget=Budget(epsilon=30)
        )
        assert {e.entity: e.spent.epsilon for e in other.balance().entities} == list_lost(hospital)


def test_without_other_people_nothing_more_is_recorded(two):
    """Charges are as they were where all entities that have a budget are read."""
    clinic, _ = two
    named = request(clinic, loss="1/4")
    receipt = clinic.charge(replace(named, entities=frozenset({"person"})))
    assert "entities" not in clinic._journal.store.record(receipt.id).content


@pytest.mark.parametrize("mutant", ["reads nobody", "others", "one of both"])
def test_who_is_left_out_of_a_charge_is_found(hospital, ledger, monkeypatch, mutant):
    named = {"reads nobody": [], "others": ["nurse"], "one of both": ["doctor"]}[mutant]
    curators = type(hospital)
    monkeypatch.setattr(curators, "list_entities", lambda *_: frozenset(named))
    hospital.ask(PATIENTS, epsilon="1/2")
    monkeypatch.undo()
    if mutant == "one of both":  # the log cannot tell what a question reads; the account can
        assert list_lost(hospital)["patient"] == 0
        assert hospital.list_entities([hospital.parse(PATIENTS).source]) == {"patient"}
    else:
        assert not ledger.verify().ok


# --- one account, many processes -----------------------------------------------------------------


def test_two_datasets_never_pass_one_check(tmp_path):
    """Both would hold the check open for the other, if the other could get there."""
    meeting, staged, clock = threading.Barrier(2), threading.Event(), Clock()
    together: list[bool] = []
    outcomes: list[str] = []

    def read_clock():  # inside the transaction, before the caps are checked
        if staged.is_set():
            try:
                meeting.wait(timeout=0.4)
                together.append(True)
            except threading.BrokenBarrierError:
                pass
        return clock()

    def ask(ledger, name):
        account = join(ledger, name, PERSON)
        ready.wait(timeout=PATIENCE_S)
        try:
            account.charge(request(account, name, loss="5/2"))
            outcomes.append("admitted")
        except BudgetRefusal as refusal:
            outcomes.append(refusal.code)

    ready = threading.Barrier(2, action=staged.set)
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, clock=read_clock) as one, Ledger.open(path, clock=read_clock) as other:
        join(one, "clinic", PERSON)
        join(other, "pharmacy", PERSON)
        threads = [
            threading.Thread(target=ask, args=pair)
            for pair in ((one, "clinic"), (other, "pharmacy"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        staged.clear()
        assert sorted(outcomes) == ["B4", "admitted"]
        assert not together
        assert join(one, "clinic", PERSON).balance().entities[0].spent.epsilon == Fraction(5, 2)
        assert one.verify().ok


def _spend(path: Path, name: str, told: int, dies_at: int | None, other: int | None) -> None:
    with Ledger.open(path) as ledger:
        account = join(ledger, name, PERSON)
        for part in range(1000):
            try:
                account.charge(request(account, f"{os.getpid()} {part}", loss="1/32"))
            except BudgetRefusal:
                return
            if part == dies_at:  # the charge is durable, and nobody was told
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(told, b"x")
            if part == 40 and other is not None:  # whoever is to be killed gets its turn
                os.read(other, 1)  # nothing comes: it ends with the one that is killed


def _fork(
    path: Path, name: str, dies_at: int | None = None, other: int | None = None
) -> tuple[int, int]:
    """A process that spends until it is refused; its number, and where it tells of charges."""
    heard, told = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # of threads, which no child uses
        child = os.fork()
    if child == 0:
        os.close(heard)
        try:
            _spend(path, name, told, dies_at, other)
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(told)
    return child, heard


def test_processes_that_ask_two_datasets_at_once_keep_to_the_cap_though_one_is_killed(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        join(ledger, "clinic", PERSON)
        join(ledger, "pharmacy", PERSON)
    other, life = os.pipe()
    children = [_fork(path, "pharmacy", 3)]  # alone holds the other end, once it is closed here
    os.close(life)
    assert os.read(children[0][1], 1)  # it has begun
    children += [_fork(path, name, other=other) for name in ("clinic", "pharmacy")]
    os.close(other)
    counts, outcomes = [], []
    for child, pipe in children:
        with os.fdopen(pipe, "rb") as stream:
            counts.append(len(stream.read()))
        outcomes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert outcomes == [-signal.SIGKILL, 0, 0]
    assert counts[0] == 2  # and one that was read before
    with Ledger.open(path) as ledger:
        accounts = [join(ledger, name, PERSON) for name in ("clinic", "pharmacy")]
        total = accounts[0].balance().entities[0]
        assert total.spent.epsilon == 4  # all of it, and no more
        assert sum(counts) + 1 == 128 - 1  # one was charged of which nobody was told
        for account in accounts:
            with pytest.raises(BudgetRefusal):
                account.charge(request(account, "more", loss="1/1000"))
        assert ledger.verify().ok


# --- evidence ------------------------------------------------------------------------------------


def test_snapshots_and_exports_hold_what_people_lost(two, ledger, tmp_path, monkeypatch):
    clinic, pharmacy = two
    names = [clinic.space.name(number) for number in range(clinic.space.size)]
    clinic.charge(request(clinic, loss="2"))
    clinic.renew(names, reason="a new consent")
    pharmacy.charge(request(pharmacy, loss="1/2", blocks=(NORTH,)))
    monkeypatch.setattr(ledger_books, "SNAPSHOT_PERIOD", 1)
    clinic.charge(request(clinic, "again", loss="1/4"))
    snapshots = [record for record in ledger.records() if record.kind == "balances"]
    assert snapshots
    found = Books.from_snapshot(snapshots[-1])
    assert found.entities["person"].budget == Budget(epsilon=4)
    with Ledger.open(tmp_path / "ledger.sqlite") as again:  # from the snapshot
        parts = join(again, "clinic", PERSON).balance().entities[0].describe()
        assert {name: str(spent.epsilon) for name, spent in parts} == {
            "clinic": "9/4",
            "pharmacy": "1/2",
        }
    assert ledger.verify().ok
    ledger.export(tmp_path / "log.jsonl")
    assert verify_export(tmp_path / "log.jsonl").ok


def _forge(ledger: Ledger, kind: str, content: dict, dataset: str) -> None:
    """Append what the code would not: the chain holds, the sums do not."""
    store = ledger._journal.store
    last = store.head()
    subject = "forged" if kind == "charge" else ""
    with store.transaction():
        forged = next_record(
            *(last, kind, content),
            at=last.at,
            dataset=dataset,
            analyst="curator" if kind == "charge" else "",
            subject=subject,
        )
        store.append(forged)


def test_verify_recomputes_what_people_lost(two, ledger):
    clinic, _ = two
    clinic.charge(request(clinic, loss="3"))
    content = ledger.records()[-1].content
    loss = list(Loss.pure("3/2").to_units())
    _forge(ledger, "charge", {**content, "key": "forged", "loss": loss}, "pharmacy")
    problems = ledger.verify().problems
    assert len(problems) == 1
    assert "more than a cap allowed" in problems[0]


@pytest.mark.parametrize(
    ("content", "dataset"),
    [
        ({"entity": "person", "budget": "half"}, "pharmacy"),
        ({"entity": "person", "budget": None}, "pharmacy"),
        ({"entity": "nobody", "budget": "half"}, "pharmacy"),
    ],
)
def test_verify_finds_an_entity_that_was_declared_otherwise(two, ledger, content, dataset):
    from discreet.release.record import to_json

    if content["budget"] == "half":
        content = {**content, "budget": to_json(Budget(epsilon=2))}
    _forge(ledger, "entity", content, dataset)
    assert not ledger.verify().ok


@pytest.mark.parametrize("mutant", ["forgets others", "forgets renewals", "late"])
def test_the_cap_is_what_these_tests_say(ledger, monkeypatch, mutant):
    """Bugs that were put in on purpose are found."""
    clinic, pharmacy = join(ledger, "clinic", PERSON), join(ledger, "pharmacy")
    if mutant == "forgets others":
        monkeypatch.setattr(Books, "elsewhere", lambda *_: {})
    elif mutant == "forgets renewals":
        renewed = ledger_books.EFFECTS["renew"]

        def everything(books, record, content):
            renewed(books, record, {**content, "entities": ["person"]})

        monkeypatch.setitem(ledger_books.EFFECTS, "renew", everything)
    else:
        monkeypatch.setattr(ledger_books.Standing, "charge", _charge_spent_only)
    clinic.charge(request(clinic, loss="3"))
    clinic.renew([clinic.space.name(n) for n in range(3)], reason="a new consent")
    pharmacy.charge(request(pharmacy, loss="2"))  # 5 in all, of 4
    monkeypatch.undo()
    assert not ledger.verify().ok


def _charge_spent_only(standing, analyst, content):
    blocks = ledger_books.decode_blocks(content["area"], standing.size)
    units = ledger_books.saturate_units(content["loss"])
    ledger_books.add_loss(standing.spent, blocks, units)
    ledger_books.add_loss(standing.share(analyst), blocks, units)


# --- asking --------------------------------------------------------------------------------------


TOML = """
[budget]
epsilon = 3
{ledger}
[tables.visits]
source = "visits.csv"
unit = "who"
entity = "person"
max_rows_per_unit = 1
columns.who = "integer"
{more}
"""


def start(home: Path, *, ledger: str = "", more: str = "") -> None:
    home.mkdir()
    (home / "visits.csv").write_text("who\n" + "\n".join(map(str, range(50))))
    session.init(home, TOML.format(ledger=ledger, more=more))


def test_two_sessions_share_a_ledger_and_its_people(tmp_path):
    start(tmp_path / "clinic", more=PERSON)
    shared = '[ledger]\naddress = "../clinic/ledger.sqlite"\ndataset = "pharmacy"\n'
    start(tmp_path / "pharmacy", ledger=shared)
    count = "SELECT COUNT(*) AS n FROM visits"
    with discreet.open(tmp_path / "clinic") as clinic:
        clinic.ask(count, epsilon="5/2")
    with discreet.open(tmp_path / "pharmacy") as pharmacy:
        with pytest.raises(BudgetRefusal) as refusal:
            pharmacy.ask(count, epsilon=2)
        assert code(refusal) == "B4"
        assert pharmacy.balance().left()[0] == Fraction(3, 2)
        pharmacy.ask(count, epsilon="3/2")
        told = str(pharmacy.balance())
        assert "Each person, of ε = 4" in told
        assert "pharmacy: ε = 1.5" in told
        assert "data: ε = 2.5" in told
    again = TOML.format(ledger=shared, more="")
    for directory in ("pharmacy", "third"):  # an account is begun once, though in a shared ledger
        with pytest.raises(SchemaRefusal) as refusal:
            session.init(tmp_path / directory, again)
        assert code(refusal) == "S21"


def test_a_refused_accuracy_is_told_with_what_people_have_left(tmp_path):
    start(tmp_path / "clinic", more="[entities.person]\nepsilon = 1\n")
    with discreet.open(tmp_path / "clinic") as clinic:
        with pytest.raises(BudgetRefusal) as refusal:
            clinic.ask("SELECT COUNT(*) AS n FROM visits", within=1)
        assert code(refusal) == "B4"
        assert "epsilon = 1)" in refusal.value.fix


def test_the_command_line_shows_what_people_lost_in_all_datasets(tmp_path, capsys):
    run = runner(capsys)
    start(tmp_path / "clinic", more=PERSON)
    shared = '[ledger]\naddress = "../clinic/ledger.sqlite"\ndataset = "pharmacy"\n'
    start(tmp_path / "pharmacy", ledger=shared)
    count = "SELECT COUNT(*) AS n FROM visits"
    assert run("ask", count, "--epsilon", "5/2", "--session", tmp_path / "clinic")[0] == 0
    here = ("--session", tmp_path / "pharmacy")
    refused = run("ask", count, "--epsilon", "2", *here)
    assert is_refusal(refused, "B4")
    told = run("balance", *here)[1]
    lines = [" ".join(line.split()) for line in told.splitlines()]
    start_of_table = next(n for n, line in enumerate(lines) if line.startswith("each person in"))
    shown = [line for line in lines[start_of_table:] if line]
    assert shown[2].startswith("all datasets")
    assert "% of ε = 4" in shown[2]
    assert shown[3].startswith("pharmacy ε = 0")
    assert shown[4].startswith("data ε = 2.5")
    (person,) = json.loads(run("balance", "--json", *here)[1])["entities"]
    assert person["spent"]["epsilon"] == "5/2"
    assert person["datasets"]["data"]["epsilon"] == "5/2"
    everybody = clinic_blocks(tmp_path / "clinic")
    home = ("--session", tmp_path / "clinic")
    assert run("renew", *everybody, "--reason", "a new consent", *home)[0] == 0
    assert is_refusal(run("ask", count, "--epsilon", "2", *here), "B4")
    named = ("--reason", "a new consent", "--entity", "person")
    assert run("renew", *everybody, *named, *home)[0] == 0
    assert run("ask", count, "--epsilon", "2", *here)[0] == 0
    assert run("ledger", "verify", *here)[0] == 0


def clinic_blocks(home: Path) -> list[str]:
    with discreet.open(home) as clinic:
        return [clinic.space.name(number) for number in range(clinic.space.size)]
