"""What every ledger promises, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from ledger_cases import BUDGET, NORTH, SOUTH, WEST, Clock, opened, request, schema
from patience import PATIENCE_S

from discreet.accounting.budget import Budget
from discreet.accounting.loss import INFINITY, NOTHING, Loss
from discreet.errors import (
    AccessRefusal,
    BudgetRefusal,
    DataRefusal,
    InvalidParameter,
    LedgerRefusal,
    QuestionRefusal,
)
from discreet.ledger import (
    Ledger,
    Policy,
    Receipt,
    Stored,
    new_signing_key,
    verify_export,
)
from discreet.ledger.analysts import Group
from discreet.ledger.books import next_record
from discreet.ledger.connection import PostgresConnection, SqliteConnection
from discreet.ledger.store import _LOCK, Store
from discreet.question.schema import Schema


@pytest.fixture
def tmp_path_factory():
    """In memory where that can be had: what a disk can do wrong is another suite's matter."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Folders(Path(folder))


class Folders:
    def __init__(self, home):
        self.home = home

    def mktemp(self, name):
        return Path(mkdtemp(prefix=name, dir=self.home))


@pytest.fixture
def tmp_path(tmp_path_factory):
    return tmp_path_factory.mktemp("test")


@pytest.fixture
def ledger(ledger_address):
    with Ledger.open(ledger_address) as opened_ledger:
        yield opened_ledger


@pytest.fixture
def account(ledger):
    return opened(ledger)


def code(refusal):
    return refusal.value.code


# --- charge, publish, burn -----------------------------------------------------------------------


def test_a_paid_question_is_answered_once_and_shown_for_ever(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        receipt = account.charge(request(account))
        assert isinstance(receipt, Receipt)
        assert not receipt.resumed
        assert account.publish(receipt, b"first") == b"first"
        assert account.publish(receipt, b"second") == b"first"
        account.burn(receipt)  # too late: it was shown
        assert account.answer(receipt.id) == Stored(receipt.id, b"first")
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        assert account.charge(request(account)) == Stored(receipt.id, b"first")
        assert account.balance().spent == Loss.pure("1/2").rounded()
        assert account.entry(receipt.id).state == "answered"
        assert ledger.verify().ok


def test_an_open_charge_is_finished_without_paying_again(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        first = account.charge(request(account))
    with Ledger.open(ledger_address) as ledger:  # after a crash
        account = opened(ledger)
        assert account.preview(request(account)) == "resumed"
        again = account.charge(request(account))
        assert (again.id, again.resumed, again.loss) == (first.id, True, first.loss)
        assert account.balance().spent == Loss.pure("1/2").rounded()
        assert account.publish(again, b"answer") == b"answer"
        assert account.preview(request(account)) == "stored"
        assert ledger.verify().charges == 1


def test_several_questions_are_charged_in_one_transaction_or_none(ledger_address):
    """What one admits counts for the next; each is found again as a question of its own."""
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        one, two, three = (request(account, name, loss="5/4") for name in ("one", "two", "three"))
        account.publish(account.charge(one), b"first")
        before = account.balance().spent
        with pytest.raises(BudgetRefusal):  # each by itself would fit into the 3
            account.charge_all([one, two, three])
        with pytest.raises(BudgetRefusal):
            account.preview_all([one, two, three])
        assert account.balance().spent == before
        assert account.preview_all([one, two, two]) == ["stored", "admitted", "admitted"]
        stored, paid, same = account.charge_all([one, two, two])
        assert (stored.answer, paid.resumed, same) == (b"first", False, paid)
        assert account.balance().spent == 2 * Loss.pure("5/4").rounded()
        assert [account.find(r) for r in (one, two, three)] == ["stored", "resumed", "admitted"]
        recalled = [account.recall(r) for r in (one, two, three)]
        assert recalled == [account.charge(one), account.charge(two), None]
    with Ledger.open(ledger_address) as ledger:  # after a crash
        account = opened(ledger)
        again = account.charge_all([two, one])
        assert (again[0].id, again[0].resumed) == (paid.id, True)
        assert account.balance().spent == 2 * Loss.pure("5/4").rounded()
        assert ledger.verify().charges == 2


def test_a_burnt_charge_stays_spent_and_has_no_answer(account, ledger):
    receipt = account.charge(request(account))
    account.burn(receipt)
    with pytest.raises(DataRefusal) as refusal:
        account.publish(receipt, b"too late")
    assert code(refusal) == "D1"
    with pytest.raises(LookupError):
        account.answer(receipt.id)
    again = account.charge(request(account))
    assert not again.resumed
    assert again.id != receipt.id
    account.publish(again, b"answer")
    assert account.balance().spent == (2 * Loss.pure("1/2").rounded())
    assert [entry.state for entry in account.transcript()] == ["burnt", "answered"]
    assert account.entry(receipt.id).state == "burnt"
    assert ledger.verify().ok


def test_another_data_version_or_key_is_another_question(account):
    one = account.charge(request(account))
    two = account.charge(request(account, version="tuesday"))
    three = account.charge(request(account, "other"))
    assert len({one.id, two.id, three.id}) == 3
    assert account.balance().spent == 3 * Loss.pure("1/2").rounded()


def test_a_receipt_of_another_dataset_opens_nothing(account, ledger):
    other = ledger.account("other", schema=schema(), budget=BUDGET)
    receipt = other.charge(request(other))
    for attempt in (account.answer, account.publish, account.burn):
        with pytest.raises(LedgerRefusal) as refusal:
            attempt(*((receipt.id,) if attempt == account.answer else (receipt,)),
                    *((b"x",) if attempt == account.publish else ()))  # fmt: skip
        assert code(refusal) == "L12"
    assert account.entry(receipt.id) is None


@pytest.mark.parametrize("loss", [NOTHING, "nan"], ids=["nothing", "text"])
def test_a_charge_is_a_positive_loss(account, loss):
    wrong = request(account)
    object.__setattr__(wrong, "loss", loss)
    with pytest.raises(InvalidParameter):
        account.charge(wrong)
    negative = Loss.pure("1/2")
    object.__setattr__(negative, "epsilon", Fraction(-1, 2))
    object.__setattr__(wrong, "loss", negative)
    with pytest.raises(InvalidParameter):
        account.charge(wrong)
    assert account.transcript() == ()


def test_a_charge_below_one_unit_costs_one(account):
    account.charge(request(account, loss=Loss(Fraction(1, 10**30), Fraction(1, 10**30))))
    assert account.balance().spent.to_units() == (1, 1, 0)


def test_refusals_are_recorded_and_free(account):
    refusal = QuestionRefusal("Q12", "rows are not shown.", why="...", fix="...")
    account.record_refusal("curator", "SELECT *", refusal)
    (entry,) = account.transcript()
    assert (entry.state, entry.code, entry.loss) == ("refused", "Q12", None)
    assert account.balance().spent == NOTHING


def test_many_refusals_are_counted_in_little_room(ledger_address):
    refusal = QuestionRefusal("Q12", "rows are not shown.", why="...", fix="...")
    for opening in (1, 2):
        with Ledger.open(ledger_address) as ledger:
            account = opened(ledger)
            for _ in range(100):
                account.record_refusal("curator", "SELECT *", refusal)
            assert sum(account.refusals().values()) == 100 * opening
            assert account.refusals("curator") == account.refusals()
            assert sum(r.kind == "refusal" for r in ledger.records()) <= 20  # two days at most
            assert ledger.verify().ok


def test_a_ceiling_of_work_that_changes_is_recorded(ledger_address):
    """As every change of the schema is: who raised it, and when, can be asked later."""
    declared = [None, 2_000_000_000, 2_000_000_000, None]
    for most in declared:
        with Ledger.open(ledger_address) as ledger:
            shape = replace(schema(), max_joined_rows_per_unit=most)
            ledger.account("clinic", schema=shape, budget=BUDGET)
    with Ledger.open(ledger_address) as ledger:
        told = [
            r.content["max_joined_rows_per_unit"] for r in ledger.records() if r.kind == "schema"
        ]
        assert told == [1000, 2_000_000_000, 1000]
        assert ledger.verify().ok


# --- every cap -----------------------------------------------------------------------------------


def spend_all(account, *, of="3", parts=6, **options):
    for part in range(parts):
        account.charge(request(account, f"part {part}", loss=str(Fraction(of) / parts), **options))


def test_the_datasets_cap_is_exact(account):
    spend_all(account)
    least = Loss(Fraction(1, 10**30), INFINITY)
    with pytest.raises(BudgetRefusal) as refusal:
        account.charge(request(account, "one unit more", loss=least))
    assert code(refusal) == "B1"
    with pytest.raises(BudgetRefusal):
        account.preview(request(account, "one unit more", loss=least))
    assert len(account.transcript()) == 6


def test_blocks_cost_the_maximum_and_not_the_sum(account):
    for block in (NORTH, SOUTH, WEST):
        for part in range(6):
            account.charge(request(account, f"{block} {part}", blocks=(block,)))
    balance = account.balance()
    assert balance.spent.epsilon == 3
    assert balance.block(0) == NOTHING
    for block in (NORTH, SOUTH, WEST):
        with pytest.raises(BudgetRefusal) as refusal:
            account.charge(request(account, "more", loss="1/100", blocks=(0, block)))
        assert "region = " in str(refusal.value)
    account.charge(request(account, "elsewhere", blocks=(0,)))


def test_one_release_may_take_a_fresh_block_whole(account):
    whole = Loss(Fraction(3), INFINITY, BUDGET.delta)
    account.charge(request(account, "all at once", loss=whole, blocks=(NORTH,)))
    account.charge(request(account, "a little", loss="1/100", blocks=(SOUTH,)))
    with pytest.raises(BudgetRefusal):
        account.charge(request(account, "all of it", loss=whole, blocks=(SOUTH,)))


def test_an_analysts_cap_is_for_any_one_person(account):
    account.add_analyst("ana", limit=Budget(epsilon=1))
    spend_all(account, of="1", parts=2, blocks=(NORTH,), analyst="ana")
    with pytest.raises(BudgetRefusal) as refusal:
        account.charge(request(account, "more", loss="1/100", blocks=(NORTH,), analyst="ana"))
    assert code(refusal) == "B2"
    account.charge(request(account, "elsewhere", blocks=(SOUTH,), analyst="ana"))
    account.charge(request(account, "curator's", loss="2", blocks=(NORTH,)))
    assert account.balance("ana").spent.epsilon == 1
    assert account.balance("ana").left(request(account, blocks=(SOUTH,)).area)[0] == Fraction(1, 2)
    account.limit_analyst("ana", Budget(epsilon=2))
    with pytest.raises(BudgetRefusal) as refusal:  # the dataset's cap always wins
        account.charge(request(account, "more", loss="1/100", blocks=(NORTH,), analyst="ana"))
    assert code(refusal) == "B1"


def test_the_policys_cap_is_for_every_analyst_without_their_own(ledger):
    account = opened(ledger, policy=Policy(analyst=Budget(epsilon=1)))
    for name in ("ana", "ben"):
        account.add_analyst(name)
        account.charge(request(account, name, loss="1", analyst=name))
        with pytest.raises(BudgetRefusal) as refusal:
            account.charge(request(account, f"{name}'s", loss="1/100", analyst=name))
        assert code(refusal) == "B2"
    account.charge(request(account, loss="1"))  # the curator's own has no such cap


GROUPS = {"staff": Group(Budget(epsilon=1), each=Budget(epsilon="3/4")), "others": Group()}


def test_a_groups_common_limit_is_charged_with_each_of_its_analysts(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger, policy=Policy(groups=GROUPS))
        for name in ("ana", "ben"):
            account.add_analyst(name, group="staff")
        account.add_analyst("eve")
        account.charge(request(account, "first", loss="3/4", analyst="ana"))
        with pytest.raises(BudgetRefusal) as refusal:  # ana's own part of it
            account.charge(request(account, "more", loss="1/100", analyst="ana"))
        assert code(refusal) == "B2"
        with pytest.raises(BudgetRefusal) as refusal:  # ben's own would do
            account.charge(request(account, "much", loss="1/2", analyst="ben"))
        assert code(refusal) == "B5"
        with pytest.raises(BudgetRefusal) as refusal:  # both fit, but not together
            account.charge_all(
                [request(account, q, loss="1/5", analyst="ben") for q in ("one", "two")]
            )
        assert code(refusal) == "B5"
        assert account.balance("ben").left()[0] == Fraction(1, 4)
        account.charge(request(account, "rest", loss="1/4", analyst="ben"))
        account.charge(request(account, "eve's", loss="1", analyst="eve"))
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger, policy=Policy(groups=GROUPS))
        together = account.balance("ana").group
        assert (together.analyst, together.spent.epsilon) == ("staff", 1)
        assert account.balance("eve").group is None
        assert account.balance("ana").left()[0] == 0
        assert ledger.verify().ok


def test_of_two_of_a_group_who_ask_at_once_one_is_refused(ledger):
    """The common limit is checked in the transaction that charges: a race cannot pass it twice."""
    account = opened(ledger, policy=Policy(groups={"staff": Group(Budget(epsilon=1))}))
    names = [f"analyst{number}" for number in range(6)]
    for name in names:
        account.add_analyst(name, group="staff")
    start, codes = threading.Barrier(len(names)), []

    def ask(name):
        start.wait(PATIENCE_S)
        try:
            account.charge(request(account, f"question of {name}", loss="2/5", analyst=name))
            codes.append("paid")
        except BudgetRefusal as refusal:
            codes.append(refusal.code)

    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(codes) == ["B5"] * 4 + ["paid"] * 2
    assert account.balance(names[0]).group.spent.epsilon == Fraction(4, 5)


def test_what_was_spent_in_a_group_stays_there(ledger, monkeypatch):
    monkeypatch.setattr("discreet.ledger.books.SNAPSHOT_PERIOD", 3)
    account = opened(ledger, policy=Policy(groups=GROUPS))
    account.add_analyst("ana", group="staff")
    account.charge(request(account, "first", blocks=(NORTH,), analyst="ana"))
    account.move_analyst("ana", "others")
    account.charge(request(account, "second", blocks=(NORTH,), analyst="ana"))
    account.move_analyst("ana", "staff")
    assert account.balance("ana").group.spent.epsilon == Fraction(1, 2)
    assert account.balance("ana").spent.epsilon == 1
    account.renew([NORTH], reason="new consent")
    assert account.balance("ana").group.spent == NOTHING
    assert ledger.verify().ok  # snapshots were written in between


def test_whoever_is_in_a_group_that_is_declared_no_more_is_refused(ledger):
    account = opened(ledger, policy=Policy(groups=GROUPS))
    account.add_analyst("ana", group="staff")
    with pytest.raises(InvalidParameter):
        account.add_analyst("ben", group="nobody")
    with pytest.raises(InvalidParameter):
        account.move_analyst("ana", "nobody")
    account = opened(ledger, policy=Policy())
    with pytest.raises(AccessRefusal) as refusal:
        account.charge(request(account, analyst="ana"))
    assert code(refusal) == "A2"
    account.move_analyst("ana", None)
    account.charge(request(account, analyst="ana"))
    assert ledger.verify().ok


def test_an_overdrawn_group_is_found_in_the_log(ledger):
    """Whoever writes a charge beyond the common limit into the log is found out."""
    account = opened(ledger, policy=Policy(groups={"staff": Group(Budget(epsilon=1))}))
    account.add_analyst("ana", group="staff")
    with admit_everything():
        account.charge(request(account, loss="2", analyst="ana"))
    assert any("more than a cap" in problem for problem in ledger.verify().problems)


def test_a_refusal_says_whose_the_cap_is(ledger):
    """Only the dataset's budget is a promise to people; a limit is how the curator shares it."""
    account = opened(ledger, policy=Policy(question=Budget(epsilon="5/2"), groups=GROUPS))
    account.add_analyst("ana", limit=Budget(epsilon=2))
    account.add_analyst("ben", group="staff")
    account.add_analyst("cyd", group="staff", limit=Budget(epsilon=2))
    account.charge(request(account, "first", loss="1", analyst="ana"))
    why = {}
    for name, loss in (("ana", "3/2"), ("ben", "4/5"), ("cyd", "5/4"), ("curator", "11/4")):
        with pytest.raises(BudgetRefusal) as refusal:
            account.charge(request(account, f"of {name}", loss=loss, analyst=name))
        why[code(refusal), name] = refusal.value.why
    account.charge(request(account, "second", loss="3/2"))
    with pytest.raises(BudgetRefusal) as refusal:
        account.charge(request(account, "too much", loss="3/5"))
    assert (code(refusal), refusal.value.why[:25]) == ("B1", "beyond it, what is promis")
    assert why.keys() == {("B2", "ana"), ("B2", "ben"), ("B5", "cyd"), ("B3", "curator")}
    assert not any("promised" in words for words in why.values())
    assert why["B2", "ana"].startswith("the curator allows this asker no more")
    assert why["B5", "cyd"].startswith("the curator allows this group no more")
    assert why["B3", "curator"].startswith("the curator lets no single question cost")


@contextmanager
def admit_everything():
    """Admit everything, as a mistake would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.ledger.admission.admit", lambda *_: None)
        yield


def test_a_question_has_a_cap(ledger):
    account = opened(ledger, policy=Policy(question=Budget(epsilon="1/4")))
    with pytest.raises(BudgetRefusal) as refusal:
        account.charge(request(account))
    assert code(refusal) == "B3"
    account.charge(request(account, loss="1/4"))


def test_concentrated_losses_add_by_rho(account):
    loss = Loss.concentrated((BUDGET.rho - Fraction(1, 10**9)) / 5)
    for part in range(5):
        account.charge(request(account, f"part {part}", loss=loss))
    with pytest.raises(BudgetRefusal):
        account.charge(request(account, "more", loss=loss))


# --- who may ask ---------------------------------------------------------------------------------


def test_strangers_and_the_disabled_are_refused_before_anything_else(account):
    with pytest.raises(AccessRefusal) as refusal:
        account.charge(request(account, analyst="mallory"))
    assert code(refusal) == "A1"
    account.add_analyst("ana")
    receipt = account.charge(request(account, analyst="ana"))
    account.publish(receipt, b"answer")
    account.disable_analyst("ana")
    with pytest.raises(AccessRefusal) as refusal:  # not even what was paid for
        account.charge(request(account, analyst="ana"))
    assert code(refusal) == "A2"
    assert [a.disabled for a in account.analysts()] == [False, True]
    with pytest.raises(InvalidParameter):
        account.disable_analyst("curator")


def test_auditors_do_not_ask(account):
    account.add_analyst("vera", role="auditor")
    with pytest.raises(AccessRefusal, match="A12"):
        account.charge(request(account, analyst="vera"))


def test_analysts_and_datasets_expire_by_the_newest_time_known(ledger_address):
    clock = Clock()
    with Ledger.open(ledger_address, clock=clock) as ledger:
        account = opened(ledger, policy=Policy(expires=clock.time + timedelta(days=3)))
        account.add_analyst("ana", expires=clock.time + timedelta(hours=1))
        account.charge(request(account, analyst="ana"))
        clock.pass_(hours=1)
        with pytest.raises(AccessRefusal) as refusal:
            account.charge(request(account, analyst="ana"))
        assert code(refusal) == "A3"
        account.charge(request(account, "later"))
        clock.pass_(minutes=-4)  # a small step back does not bring the access back
        with pytest.raises(AccessRefusal):
            account.charge(request(account, analyst="ana"))
        clock.pass_(days=4)
        with pytest.raises(AccessRefusal) as refusal:
            account.charge(request(account, "later"))
        assert "dataset" in str(refusal.value)


def test_answers_are_shared_only_if_the_curator_says_so(ledger):
    account = opened(ledger, policy=Policy(shared_answers=False))
    account.add_analyst("ana")
    account.add_analyst("ben")
    first = account.charge(request(account, analyst="ana"))
    second = account.charge(request(account, analyst="ben"))
    assert first.id != second.id  # not even the open charge
    account.publish(first, b"ana's")
    account.publish(second, b"ben's")
    assert account.charge(request(account, analyst="ana")).answer == b"ana's"
    assert account.charge(request(account, analyst="ben")).answer == b"ben's"
    shared = opened(ledger, policy=Policy(shared_answers=True))
    third = shared.charge(request(shared, "new", analyst="ana"))
    shared.publish(third, b"everybody's")
    assert shared.charge(request(shared, "new", analyst="ben")).answer == b"everybody's"
    private = opened(ledger, policy=Policy(shared_answers=False))
    assert isinstance(private.charge(request(private, "new", analyst="ben")), Receipt)
    assert private.charge(request(private, "new", analyst="ana")).answer == b"everybody's"
    assert ledger.verify().ok


def test_keys_are_kept_and_revoked(account):
    until = datetime(2040, 1, 2, tzinfo=UTC)
    account.add_key("curator", key_id="k1", digest="d" * 64, expires=until)
    with pytest.raises(InvalidParameter):
        account.add_key("curator", key_id="k1", digest="e" * 64)
    with pytest.raises(AccessRefusal):
        account.add_key("mallory", key_id="k2", digest="e" * 64)
    assert (account.key("k1").digest, account.key("k1").expires) == ("d" * 64, until)
    account.revoke_key("k1")
    assert account.key("k1").revoked
    assert account.key("k2") is None
    with pytest.raises(InvalidParameter):
        account.revoke_key("k2")


# --- changes are records, never resets -----------------------------------------------------------


def test_a_changed_budget_is_recorded_and_keeps_what_was_spent(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        account.charge(request(account, loss="2"))
        before = len(ledger.records())
        opened(ledger)  # the same again records nothing
        assert len(ledger.records()) == before
        lower = opened(ledger, budget=Budget(epsilon=1))
        assert [record.kind for record in ledger.records(after=before)] == ["budget"]
        assert account.budget == lower.budget == Budget(epsilon=1)
        with pytest.raises(BudgetRefusal):
            account.charge(request(account, "more", loss="1/100"))
    with Ledger.open(ledger_address) as ledger:
        higher = opened(ledger, budget=Budget(epsilon=4))
        assert higher.balance().spent.epsilon == 2
        assert higher.balance().left()[0] == 2
        assert ledger.verify().ok


def test_renewal_is_for_named_blocks_with_a_reason(account, ledger):
    account.add_analyst("ana", limit=Budget(epsilon=3))
    for block in (NORTH, SOUTH):
        account.charge(request(account, f"{block}", loss="3", blocks=(block,), analyst="ana"))
    for wrong in ([], "region = north", ["nowhere"], [17]):
        with pytest.raises(InvalidParameter):
            account.renew(wrong, reason="new consent")
    with pytest.raises(InvalidParameter):
        account.renew(["region = north"], reason=" ")
    account.renew(["region = north"], reason="new consent")
    account.charge(request(account, "again", loss="3", blocks=(NORTH,), analyst="ana"))
    with pytest.raises(BudgetRefusal):
        account.charge(request(account, "more", loss="1/9", blocks=(SOUTH,), analyst="ana"))
    record = next(r for r in ledger.records() if r.kind == "renew")
    assert record.content["reason"] == "new consent"
    assert ledger.verify().ok


def test_blocks_declared_anew_forget_nobody(ledger):
    account = opened(ledger)
    account.add_analyst("ana")
    account.charge(request(account, "n", loss="1", blocks=(NORTH,), analyst="ana"))
    account.charge(request(account, "s", loss="2", blocks=(SOUTH,)))
    more = ledger.account("clinic", schema=schema("east", "south", "north"), budget=BUDGET)
    assert [more.space.name(i) for i in range(4)][1:] == [
        "region = east", "region = south", "region = north"]  # fmt: skip
    spent = [more.balance().block(i).epsilon for i in range(4)]
    assert spent[1:] == [0, 2, 1]  # a new block is fresh, the others keep what they lost
    assert more.balance("ana").block(3).epsilon == 1
    with pytest.raises(LedgerRefusal) as refusal:  # an account opened before the change
        account.charge(request(account, "old"))
    assert code(refusal) == "L9"
    undivided = ledger.account("clinic", schema=schema(blocks=False), budget=BUDGET)
    assert undivided.balance().spent.epsilon == 2  # anybody may have been in the fullest block
    assert ledger.verify().ok


def test_who_one_person_is_cannot_change(ledger):
    opened(ledger)
    with pytest.raises(LedgerRefusal) as refusal:
        ledger.account("clinic", schema=schema(unit="row", blocks=False), budget=BUDGET)
    assert code(refusal) == "L11"


def other_table(neighbours: str) -> Schema:
    return Schema.from_text(
        f"neighbours = '{neighbours}'\n[tables.calls]\nunit = 'row'\ncolumns.age = 'integer'"
    )


def test_who_one_person_is_cannot_change_by_leaving_a_table_out_for_a_while(ledger):
    account = opened(ledger)
    account.charge(request(account, "n", loss="1"))
    later = ledger.account("clinic", schema=other_table("add/remove"), budget=BUDGET)
    assert later.balance().spent.epsilon == 1  # whoever they are, nothing starts anew
    with pytest.raises(LedgerRefusal) as refusal:
        ledger.account("clinic", schema=schema(unit="row", blocks=False), budget=BUDGET)
    assert code(refusal) == "L11"


def test_what_neighbours_are_cannot_change_under_other_names(ledger):
    opened(ledger)
    with pytest.raises(LedgerRefusal) as refusal:
        ledger.account("clinic", schema=other_table("change-one"), budget=BUDGET)
    assert code(refusal) == "L11"


# --- several at once -----------------------------------------------------------------------------


def test_two_ledgers_on_one_database_see_each_other(ledger_address):
    with Ledger.open(ledger_address) as one, Ledger.open(ledger_address) as two:
        first, second = opened(one), opened(two)
        receipt = first.charge(request(first))
        assert second.charge(request(second)).id == receipt.id
        second.publish(receipt, b"by the other")
        assert first.publish(receipt, b"late") == b"by the other"
        for part in range(5):
            account = (first, second)[part % 2]
            account.charge(request(account, f"part {part}"))
        for account in (first, second):
            with pytest.raises(BudgetRefusal):
                account.charge(request(account, "more", loss="1/100"))
        assert first.balance().spent == second.balance().spent
        assert one.verify().ok


def test_two_askers_never_pass_one_check(ledger_address):
    """Both would hold the check open for the other, if the other could get there."""
    meeting = threading.Barrier(2)
    staged = threading.Event()

    def clock():  # read inside the transaction, before the caps are checked
        if staged.is_set():
            try:
                meeting.wait(timeout=0.4)
                together.append(True)
            except threading.BrokenBarrierError:
                pass
        return datetime.now(UTC)

    together, outcomes = [], []

    def ask(ledger, name):
        account = opened(ledger)
        ready.wait(timeout=PATIENCE_S)
        try:
            account.charge(request(account, name, loss="2"))
            outcomes.append("admitted")
        except BudgetRefusal:
            outcomes.append("refused")
        except LedgerRefusal as refusal:
            outcomes.append(refusal.code)

    ready = threading.Barrier(2, action=staged.set)
    with (
        Ledger.open(ledger_address, clock=clock) as one,
        Ledger.open(ledger_address, clock=clock) as two,
    ):
        opened(one)
        threads = [
            threading.Thread(target=ask, args=(ledger, name))
            for ledger, name in ((one, "one"), (two, "two"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        staged.clear()
        assert sorted(outcomes) == ["admitted", "refused"]
        assert not together
        assert opened(one).balance().spent.epsilon == 2
        assert one.verify().ok


def about_people(table: str) -> Schema:
    return Schema.from_text(f"""
    [tables.{table}]
    unit = "who"
    entity = "person"
    columns.who = "integer"
    [entities.person]
    epsilon = 4
    """)


def test_two_datasets_about_the_same_people_see_each_other(ledger_address):
    """Two connections, two datasets, one budget of their people; nothing beyond it."""
    with Ledger.open(ledger_address) as one, Ledger.open(ledger_address) as two:
        accounts = [
            ledger.account(name, schema=about_people(name), budget=BUDGET)
            for ledger, name in ((one, "clinic"), (two, "pharmacy"))
        ]
        for part in range(8):
            account = accounts[part % 2]
            account.charge(request(account, f"part {part}"))
        for account in accounts:
            with pytest.raises(BudgetRefusal) as refusal:
                account.charge(request(account, "more", loss="1/100"))
            assert code(refusal) == "B4"
            (person,) = account.balance().entities
            assert {name: str(loss.epsilon) for name, loss in person.describe()} == {
                "clinic": "2",
                "pharmacy": "2",
            }
        otherwise = replace(about_people("archive"), entities={"person": Budget(epsilon=5)})
        with pytest.raises(LedgerRefusal) as refusal:
            two.account("archive", schema=otherwise, budget=BUDGET)
        assert code(refusal) == "L15"
        assert one.verify().ok


# --- evidence ------------------------------------------------------------------------------------


def filled(ledger):
    account = opened(ledger)
    account.add_analyst("ana")
    for part in range(4):
        receipt = account.charge(request(account, f"part {part}", analyst="ana"))
        if part < 3:
            account.publish(receipt, f"answer {part}".encode())
    account.burn(receipt)
    return account


def test_exports_are_checked_without_the_database(ledger, tmp_path):
    filled(ledger)
    new_signing_key(tmp_path / "key.pem")
    made = ledger.checkpoint(tmp_path / "key.pem", folder=tmp_path / "checkpoints")
    assert made.is_genuine
    count = ledger.export(tmp_path / "with.jsonl", answers=True)
    assert count == ledger.export(tmp_path / "without.jsonl") == len(ledger.records())
    for name in ("with", "without"):
        found = verify_export(tmp_path / f"{name}.jsonl", checkpoint=tmp_path / "checkpoints")
        assert found.ok, str(found)
        assert (found.checkpoints, found.charges, found.releases) == (1, 4, 3)
        assert found.head == ledger.records()[-1].digest
    with pytest.raises(LedgerRefusal) as refusal:
        ledger.export(tmp_path / "with.jsonl")
    assert code(refusal) == "L13"


def test_a_backup_is_a_ledger_and_a_restored_one_has_spent_everything(ledger, tmp_path):
    account = filled(ledger)
    ledger.backup(tmp_path / "backup.sqlite")
    new_signing_key(tmp_path / "key.pem")
    account.charge(request(account, "after the backup"))
    ledger.checkpoint(tmp_path / "key.pem", folder=tmp_path / "checkpoints")
    newest = tmp_path / "checkpoints"
    with pytest.raises(LedgerRefusal) as refusal:  # an old copy
        Ledger.open(tmp_path / "backup.sqlite", checkpoint=newest)
    assert code(refusal) == "L4"
    with Ledger.restore(
        tmp_path / "new.sqlite", tmp_path / "backup.sqlite", reason="fire", checkpoint=newest
    ) as restored:
        again = opened(restored)
        assert again.balance().left() == (0, 0)
        assert again.charge(request(again, "part 1", analyst="ana")).answer == b"answer 1"
        for blocks in ((NORTH,), (0,), None):
            with pytest.raises(BudgetRefusal):
                again.charge(request(again, "new", loss="1/100", blocks=blocks))
        fresh = restored.account("another", schema=schema(), budget=BUDGET)
        with pytest.raises(BudgetRefusal):  # it may have been there in the time that was lost
            fresh.charge(request(fresh))
        again.renew(["region = north"], reason="all of them agreed")
        again.charge(request(again, "new", blocks=(NORTH,)))
        found = restored.verify()
        assert found.ok, str(found)
    with Ledger.open(tmp_path / "new.sqlite", checkpoint=newest) as restored:
        assert restored.identity == ledger.identity


def test_a_restored_ledger_does_not_finish_what_may_have_been_answered(ledger, tmp_path):
    """A charge open in the backup may have been answered since: its answer is not the second."""
    account = opened(ledger)
    receipt = account.charge(request(account))
    ledger.backup(tmp_path / "backup.sqlite")
    account.publish(receipt, b"shown, then lost")
    with Ledger.restore(
        tmp_path / "new.sqlite", tmp_path / "backup.sqlite", reason="fire"
    ) as restored:
        again = opened(restored)
        with pytest.raises(BudgetRefusal):
            again.charge(request(again))
        with pytest.raises(DataRefusal):
            again.publish(receipt, b"another")
        assert again.entry(receipt.id).state == "burnt"
        assert restored.verify().ok


def test_a_broken_connection_stops_the_ledger_for_good(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        store = ledger._journal.store
        real, store._connection = store._connection, Failing(store._connection, "COMMIT")
        with pytest.raises(LedgerRefusal) as refusal:
            account.charge(request(account))
        assert code(refusal) == "L5"
        store._connection = None  # nothing more is sent, though the disk may be well again
        for again in (lambda: account.charge(request(account)), account.balance):
            with pytest.raises(LedgerRefusal) as refusal:
                again()
            assert code(refusal) == "L5"
        store._connection = real
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        assert account.transcript() == ()
        account.charge(request(account))
        assert ledger.verify().ok


class Failing:
    """A connection on which one statement fails, as on a full disk."""

    def __init__(self, connection, statement):
        self._connection, self._statement = connection, statement
        self.tries = 0

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def send(self, text, *rest):
        if text == self._statement:
            self.tries += 1
            raise self._connection.failures[0]("database or disk is full")
        return self._connection.send(text, *rest)


def impatient(ledger, milliseconds):
    """Wait for no lock longer than that."""
    store = ledger._journal.store
    wait = "PRAGMA busy_timeout = {}" if store.sqlite else "SET lock_timeout = {}"
    store._connection.execute(wait.format(milliseconds))


@pytest.mark.parametrize("step", ["begun", "inserted"])
def test_whoever_is_interrupted_leaves_no_lock_behind(ledger_address, step, monkeypatch):
    with Ledger.open(ledger_address) as one, Ledger.open(ledger_address) as two:
        first, second = opened(one), opened(two)
        impatient(two, 2000)
        kind = type(one._journal.store._connection)
        begun = kind, "execute" if kind is SqliteConnection else "fetch_after"
        owner, name = begun if step == "begun" else (Store, "_insert")
        real = getattr(owner, name)

        def interrupted(*arguments):
            real(*arguments)
            if step == "inserted" or "BEGIN" in str(arguments):
                raise KeyboardInterrupt

        monkeypatch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.charge(request(first, "interrupted"))
        monkeypatch.undo()
        second.charge(request(second, "at once", loss="1/4"))
        with pytest.raises(LedgerRefusal) as refusal:
            first.charge(request(first, "interrupted"))
        assert code(refusal) == "L5"
        assert [entry.question for entry in second.transcript()] == ["SELECT at once"]
        assert two.verify().ok


def write_within_a_write(journal, account):
    with journal.writing() as writer:
        writer.append("refusal", {"question": "?", "code": "Q1", "what": "?"})
        with suppress(LedgerRefusal):
            account.charge(request(account))


def test_a_write_within_a_write_is_refused_and_neither_counts(ledger_address):
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        count = ledger._journal.store.count()
        with pytest.raises(LedgerRefusal) as refusal:
            write_within_a_write(ledger._journal, account)
        assert code(refusal) == "L5"
    with Ledger.open(ledger_address) as ledger:
        assert ledger._journal.store.count() == count


def test_a_lock_that_a_server_holds_too_long_stops_nothing(postgres):
    """Whatever the driver had in mind for the statements of the journey that failed."""
    import psycopg

    with (
        Ledger.open(postgres.url) as ledger,
        psycopg.connect(postgres.conninfo, autocommit=True) as holder,
    ):
        account = opened(ledger)
        impatient(ledger, 5)
        for part in range(12):
            holder.execute(f"SELECT pg_advisory_lock({_LOCK})")
            for _ in range(1 + part % 3):
                with pytest.raises(LedgerRefusal) as refusal:
                    account.charge(request(account, "too late"))
                assert code(refusal) == "L6"
            holder.execute(f"SELECT pg_advisory_unlock({_LOCK})")
            account.charge(request(account, f"part {part}", loss="1/16"))
        assert len(account.transcript()) == 12
        assert ledger.verify().ok


def test_a_clock_far_behind_writes_nothing(ledger_address):
    clock = Clock()
    with Ledger.open(ledger_address, clock=clock) as ledger:
        account = opened(ledger)
        account.charge(request(account))
        clock.pass_(minutes=-3)
        account.charge(request(account, "a little early"))
        clock.pass_(minutes=-3)
        with pytest.raises(LedgerRefusal) as refusal:
            account.charge(request(account, "much too early"))
        assert code(refusal) == "L7"
        times = [record.at for record in ledger.records()]
        assert times == sorted(times)
        assert account.balance().spent.epsilon == 1  # reading goes on


def test_a_closed_ledger_says_so(ledger_address):
    ledger = Ledger.open(ledger_address)
    account = opened(ledger)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerRefusal) as refusal:
        account.charge(request(account))
    assert code(refusal) == "L14"


def test_a_transcript_comes_in_pages(account):
    for part in range(5):
        account.charge(request(account, f"part {part}", loss="1/100"))
    account.add_analyst("ana")
    account.charge(request(account, "ana's", loss="1/100", analyst="ana"))
    newest = account.transcript(limit=2)
    assert [entry.question for entry in newest] == ["SELECT ana's", "SELECT part 4"]
    older = account.transcript(limit=2, before=newest[-1].id)
    assert [entry.question for entry in older] == ["SELECT part 3", "SELECT part 2"]
    assert [entry.question for entry in account.transcript("ana")] == ["SELECT ana's"]
    assert len(account.transcript()) == 6


def test_postgres_waits_for_the_disk_whatever_its_defaults(postgres):
    import psycopg

    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        name = connection.info.dbname
        for setting in (
            "synchronous_commit = off",
            "default_transaction_isolation = 'serializable'",
        ):
            connection.execute(f'ALTER DATABASE "{name}" SET {setting}')
    with Ledger.open(postgres.url) as one, Ledger.open(postgres.url) as two:
        raw = one._journal.store._connection
        assert raw.value("SHOW synchronous_commit") == "on"
        first, second = opened(one), opened(two)
        with one._journal.store.transaction():
            level = raw.value("SHOW transaction_isolation")
        assert level == "read committed"
        first.charge(request(first, "one"))
        second.charge(request(second, "two"))
        assert first.balance().spent.epsilon == 1


def test_a_server_that_may_lose_what_it_confirmed_is_refused(postgres, monkeypatch):
    real = PostgresConnection.execute

    def without_fsync(self, text, *rest):
        return real(self, "SELECT 'off'" if text == "SHOW fsync" else text, *rest)

    monkeypatch.setattr(PostgresConnection, "execute", without_fsync)
    with pytest.raises(LedgerRefusal) as refusal:
        Ledger.open(postgres.url)
    assert code(refusal) == "L1"


def append_all(store, records):
    with store.transaction():
        for record in records:
            store.append(record)


@pytest.mark.parametrize("place", ["first", "last", "among many"])
def test_if_one_insert_fails_nothing_is_committed(ledger_address, place, monkeypatch):
    """What is appended is sent together with the commit, which must not come through alone."""
    monkeypatch.setattr("discreet.ledger.store._MOST_APPENDED", 3)
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        account.charge(request(account, "one"))
        journal = ledger._journal
        count, head = journal.store.count(), journal.store.head()
        later = [next_record(head, "burn", {"charge": 1}, at=head.at)]
        for _ in range(5 if place == "among many" else 1):
            later.append(next_record(later[-1], "burn", {"charge": 1}, at=head.at))
        where = {"first": 0, "last": len(later), "among many": 2}[place]
        later.insert(where, head)  # its number is taken
        with pytest.raises(LedgerRefusal) as refusal:
            append_all(journal.store, later)
        assert code(refusal) == "L5"
        with pytest.raises(LedgerRefusal):
            account.charge(request(account, "two"))
    with Ledger.open(ledger_address) as ledger:
        assert ledger._journal.store.count() == count
        assert ledger.verify().ok


def test_a_refusal_names_the_block_that_has_least_left(account):
    account.charge(request(account, "north", loss="5/2", blocks=(NORTH,)))
    account.charge(request(account, "south", loss="9/4", blocks=(SOUTH,)))
    with pytest.raises(BudgetRefusal, match="region = north"):
        account.charge(request(account, "all", loss=1))
    with pytest.raises(BudgetRefusal, match="region = south"):
        account.charge(request(account, "others", loss=1, blocks=(SOUTH, WEST)))


def test_what_a_checkpoint_knows_of_is_never_begun_anew(tmp_path):
    """Wherever the checkpoint is kept."""
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        opened(ledger)
        new_signing_key(tmp_path / "key.pem")
        ledger.checkpoint(tmp_path / "key.pem", folder=tmp_path / "auditor")
    with pytest.raises(LedgerRefusal) as refusal:
        Ledger.open(tmp_path / "other.sqlite", checkpoint=tmp_path / "auditor")
    assert code(refusal) == "L4"
    assert not (tmp_path / "other.sqlite").exists()
