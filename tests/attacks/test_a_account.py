"""A1 to A9: attacks on the account.

Races (A1), crashes and failing disks (A2) are staged in ``tests/faults``; forgeries of every
kind (A6) are in ``tests/test_ledger.py``; A9 is in ``test_e_engine.py`` and ``test_curate.py``.
"""

from __future__ import annotations

import shutil
from fractions import Fraction

import pytest
from ledger_cases import BUDGET, opened, request

from discreet.accounting.budget import Budget
from discreet.accounting.conversion import EPSILON_UNITS
from discreet.accounting.loss import INFINITY, Loss
from discreet.errors import BudgetRefusal, DataRefusal, InvalidParameter, LedgerRefusal
from discreet.ledger import Ledger, new_signing_key


@pytest.fixture
def account():
    with Ledger.open("sqlite://") as ledger:
        yield opened(ledger)


def test_a1_the_second_of_two_askers_of_the_last_unit_is_refused(tmp_path):
    with Ledger.open(tmp_path / "l.sqlite") as one, Ledger.open(tmp_path / "l.sqlite") as other:
        first, second = opened(one), opened(other)
        first.charge(request(first, "a", loss=3))
        with pytest.raises(BudgetRefusal):
            second.charge(request(second, "b", loss="1e-12"))


def test_a3_a_failure_is_no_refund_and_asking_again_is_no_oracle(account):
    for attempt in range(1, 4):
        account.burn(account.charge(request(account, loss="1/2")))
        assert account.balance().spent.epsilon == Fraction(attempt, 2)


def test_a3_what_was_burnt_cannot_be_published(account):
    receipt = account.charge(request(account))
    account.burn(receipt)
    with pytest.raises(DataRefusal):
        account.publish(receipt, b"a late answer")


def test_a4_tiny_charges_are_not_lost(account):
    tiny = Loss.pure(Fraction(1, 10**30))
    for part in range(50):
        account.charge(request(account, f"tiny {part}", loss=tiny))
    assert account.balance().spent.epsilon >= 50 * Fraction(1, 2520 * 10**12)


@pytest.mark.parametrize("loss", [Loss.pure(0), Loss(0, 0, 0)])
def test_a4_a_charge_of_nothing_is_refused(account, loss):
    with pytest.raises(InvalidParameter):
        account.charge(request(account, loss=loss))


def test_a5_an_old_backup_is_not_opened(tmp_path):
    path, key = tmp_path / "l.sqlite", tmp_path / "key"
    new_signing_key(key)
    with Ledger.open(path) as ledger:
        account = opened(ledger)
        account.charge(request(account, "before"))
        ledger.backup(tmp_path / "old.sqlite")
        account.charge(request(account, "after", loss=2))
        ledger.checkpoint(key)
    for left in tmp_path.glob("l.sqlite*"):
        if left.is_file():
            left.unlink()
    shutil.copy(tmp_path / "old.sqlite", path)
    with pytest.raises(LedgerRefusal, match="L4"):
        Ledger.open(path)


def test_a7_colluding_analysts_share_one_cap(account):
    for name in ("ana", "bob"):
        account.add_analyst(name, limit=Budget(epsilon=2))
    account.charge(request(account, "hers", loss=2, analyst="ana"))
    with pytest.raises(BudgetRefusal, match="B1"):
        account.charge(request(account, "his", loss=2, analyst="bob"))
    account.charge(request(account, "the rest", loss=1, analyst="bob"))
    assert account.balance().spent.epsilon == BUDGET.epsilon


def test_a4_what_an_account_cannot_count_is_refused_in_plain_words_and_to_the_unit():
    """A budget beyond 64 bits of units: words, sums and decisions agree on what there is."""
    with Ledger.open("sqlite://") as ledger:
        account = opened(ledger, budget=Budget(epsilon=5000))
        account.charge(request(account, "much", loss="1000"))
        left, _ = account.balance().left()
        assert 830 < left < 831
        for loss in ("1025", "2000", "4000", str(2**40)):
            with pytest.raises(BudgetRefusal, match="B1") as refused:
                account.charge(request(account, "more", loss=loss))
            assert "Left: ε 830.034 of 5000" in refused.value.fix
            assert "No account counts beyond an ε, or a ρ, of 1830.03." in refused.value.fix
        assert account.balance().spent.epsilon == 1000
        unit = Fraction(1, EPSILON_UNITS)
        with pytest.raises(BudgetRefusal):
            account.charge(request(account, "a unit more", loss=Loss.pure(left + unit)))
        account.charge(request(account, "all", loss=Loss.pure(left)))
        assert account.balance().left()[0] == 0
        with pytest.raises(BudgetRefusal):
            account.charge(request(account, "one unit", loss=Loss(unit, INFINITY)))
        assert account.balance().spent.epsilon == 1000 + left
        assert "Not enough for another count" in str(account.balance())
        assert ledger.verify().ok


def test_a8_a_charge_takes_as_many_statements_after_thousands_as_after_one():
    with Ledger.open("sqlite://") as ledger:
        account = opened(ledger, budget=Budget(epsilon=3000))
        counts = [_statements(ledger, account, f"{part}") for part in range(1500)]
    assert max(counts[1:]) == counts[1]


def _statements(ledger, account, key) -> int:
    seen: list[str] = []

    connection = ledger._journal.store._connection
    connection._driver.set_trace_callback(seen.append)
    try:
        account.charge(request(account, key, loss="1/8"))
    finally:
        connection._driver.set_trace_callback(None)
    return len(seen)
