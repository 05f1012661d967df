"""Threads that write at the same time share one commit, and none of them goes on before it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from ledger_cases import opened, request
from patience import PATIENCE_S

from discreet.accounting.loss import NOTHING, Loss
from discreet.errors import BudgetRefusal, LedgerRefusal
from discreet.ledger import Account, Ledger, Receipt, Stored
from discreet.ledger.books import Books
from discreet.ledger.journal import Journal, Writer
from discreet.ledger.store import Store

Calls = list[Callable[[], Any]]


def begin(pool: ThreadPoolExecutor, account: Account, calls: Calls) -> list[Future[Any]]:
    """All calls at once: none is let in before all of them wait."""
    journal: Journal = account._journal
    with journal._lock:
        begun = [pool.submit(call) for call in calls]
        while len(journal._waiting) < len(calls):
            threading.Event().wait(0.001)
    return begun


def together(account: Account, calls: Calls) -> list[Any]:
    """What calls give that all wait while somebody else writes; failures as they are."""
    with ThreadPoolExecutor(len(calls)) as pool:
        begun = begin(pool, account, calls)
        return [f.exception(PATIENCE_S) or f.result(PATIENCE_S) for f in begun]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with every commit."""
    found: list[int] = []
    commit = Store._commit

    def counted(self: Store) -> None:
        commit(self)
        found.append(1)

    monkeypatch.setattr(Store, "_commit", counted)
    return found


def asking(account: Account, names: list[str], loss: str = "1/100") -> Calls:
    return [lambda name=name: account.charge(request(account, name, loss=loss)) for name in names]


def test_many_charges_and_answers_are_two_commits(ledger_address: str, commits: list[int]) -> None:
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        del commits[:]
        names = [f"question {n}" for n in range(20)]
        receipts = together(account, asking(account, names))
        assert len(commits) == 1
        assert {type(receipt) for receipt in receipts} == {Receipt}
        assert len({receipt.id for receipt in receipts}) == 20
        publishing: Calls = [
            lambda r=r, n=n: account.publish(r, n.encode())
            for r, n in zip(receipts, names, strict=True)
        ]
        assert together(account, publishing) == [name.encode() for name in names]
        assert len(commits) == 2
        spent = account.balance().spent
        assert spent == 20 * Loss.pure("1/100").rounded()
        assert ledger.verify().ok
    with Ledger.open(ledger_address) as ledger:  # what is on the disk is what was told
        account = opened(ledger)
        assert account.balance().spent == spent
        for receipt, name in zip(receipts, names, strict=True):
            assert account.answer(receipt.id) == Stored(receipt.id, name.encode())


def test_each_sees_what_those_before_it_took(ledger_address: str) -> None:
    """Twenty that fit by themselves, of which six fit together: no more, and no fewer."""
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        found = together(account, asking(account, [str(n) for n in range(20)], loss="1/2"))
        assert sorted(map(type, found), key=str) == [BudgetRefusal] * 14 + [Receipt] * 6
        assert account.balance().spent == 6 * Loss.pure("1/2").rounded()
        assert ledger.verify().charges == 6


def test_one_question_of_many_is_paid_for_once(ledger_address: str) -> None:
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        receipts = together(account, asking(account, ["the same"] * 12))
        assert len({receipt.id for receipt in receipts}) == 1
        assert sum(not receipt.resumed for receipt in receipts) == 1
        assert account.balance().spent == Loss.pure("1/100").rounded()
        told = together(
            account, [lambda n=n: account.publish(receipts[0], b"%d" % n) for n in range(12)]
        )
        assert len(set(told)) == 1  # one was stored, and everybody is shown that


def test_nobody_goes_on_before_the_commit(
    ledger_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not who was charged, nor who resumes what another was charged for, nor who only looks."""
    commit = Store._commit
    reached, finish = threading.Event(), threading.Event()

    def slow(self: Store) -> None:
        reached.set()
        assert finish.wait(PATIENCE_S)
        commit(self)

    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        monkeypatch.setattr(Store, "_commit", slow)
        with ThreadPoolExecutor(4) as pool:
            begun = begin(pool, account, asking(account, ["one", "two", "two"]))
            assert reached.wait(PATIENCE_S)
            looking = pool.submit(account.recall, request(account, "one", loss="1/100"))
            threading.Event().wait(0.05)
            assert not any(future.done() for future in (*begun, looking))
            finish.set()
            assert {type(future.result(PATIENCE_S)) for future in begun} == {Receipt}
            assert looking.result(PATIENCE_S).resumed


def test_what_is_not_committed_is_told_to_nobody(
    ledger_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)

        def fails(self: Store) -> None:
            raise self._connection.failures[0]("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(Store, "_commit", fails)
            found = together(account, asking(account, [str(n) for n in range(8)]))
        assert {type(failure) for failure in found} == {LedgerRefusal}
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        assert account.balance().spent == NOTHING
        assert ledger.verify().charges == 0


class Interrupted(BaseException):
    """As Ctrl-C in the thread that does the work of all."""


def test_who_is_interrupted_takes_nobody_along(ledger_address: str) -> None:
    """Whatever the books said of what was undone, they say no more."""
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        journal: Journal = account._journal
        names = [str(n) for n in range(9)]
        once = [Interrupted()]

        def interrupt(_: object) -> None:
            if once:
                raise once.pop()

        calls = asking(account, names)
        calls.insert(5, lambda: journal.write(interrupt))
        found = together(account, calls)
        assert sum(isinstance(one, Receipt) for one in found) >= 8
        assert sum(isinstance(one, Interrupted) for one in found) == 1
        paid = [one for one in found if isinstance(one, Receipt)]
        assert account.balance().spent == len(paid) * Loss.pure("1/100").rounded()
        assert ledger.verify().charges == len(paid)


def test_what_fails_is_not_written_and_the_others_are(ledger_address: str) -> None:
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        journal: Journal = account._journal

        def fail(writer: Any) -> None:
            writer.append("charge", {"never": "read"}, dataset="clinic")
            raise ValueError("by itself")

        calls = asking(account, ["a", "b"])
        calls.insert(1, lambda: journal.write(fail))
        first, failure, second = together(account, calls)
        assert isinstance(failure, ValueError)
        assert isinstance(first, Receipt)
        assert isinstance(second, Receipt)
        assert ledger.verify().charges == 2


def test_more_than_fit_into_one_commit_are_all_written_once(ledger_address: str) -> None:
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        found = together(account, asking(account, [str(n) for n in range(90)]))
        assert len({receipt.id for receipt in found}) == 90
        assert ledger.verify().charges == 90
        assert not account._journal._waiting or all(e.done for e in account._journal._waiting)


@pytest.mark.parametrize("undone", [False, True])
def test_a_lack_of_memory_in_one_writes_nothing_alone(ledger_address: str, undone: bool) -> None:
    """SQLite may undo the transaction by itself: what comes after must not be written outside."""
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        journal: Journal = account._journal
        once = [MemoryError()]

        def lack(_: object) -> None:
            if once:
                if undone:
                    journal.store._connection.rollback()
                raise once.pop()

        calls = asking(account, ["a", "b", "c"])
        calls.insert(2, lambda: journal.write(lack))
        found = together(account, calls)
        assert any(isinstance(one, MemoryError) for one in found) or not undone
        paid = [one for one in found if isinstance(one, Receipt)]
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        verified = ledger.verify()
        assert verified.ok
        assert verified.charges >= len(paid)
        for receipt in paid:
            assert account.entry(receipt.id).state == "open"


def test_books_that_were_cut_short_are_read_anew(
    ledger_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge that was committed and half entered is counted once, not twice."""
    with Ledger.open(ledger_address) as ledger:
        account = opened(ledger)
        account.charge(request(account, "before", loss="1/100"))
        enter = Writer.enter

        def cut(self: Writer, books: Books) -> None:
            last = books.last
            enter(self, books)
            books.last = last  # as if it had not come so far
            raise Interrupted

        with monkeypatch.context() as broken:
            broken.setattr(Writer, "enter", cut)
            with pytest.raises(Interrupted):
                account.charge(request(account, "cut", loss="1/100"))
        assert account.charge(request(account, "cut", loss="1/100")).resumed
        assert account.balance().spent == 2 * Loss.pure("1/100").rounded()
        assert ledger.verify().charges == 2
