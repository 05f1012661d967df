"""Bugs on purpose in the account and the curator: the schedules must find each.

A bug is put into the processes that ask, never into the one that looks at what they leave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from faults.places import Files
from faults.scenarios import SCENARIOS, WHOLE
from faults.schedule import Schedule, alone, together
from faults.stage import Bug, Stage
from faults.whole import CuratorDesk
from faults.world import Desk

from discreet import Budget, Curator
from discreet.errors import LedgerRefusal
from discreet.ledger import Account, Ledger, admission, store
from discreet.ledger.books import Standing
from discreet.ledger.connection import SqliteConnection
from discreet.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, and the schedules among which it must be found."""

    bug: Bug
    scenarios: tuple[str, ...]
    faults: tuple[str, ...] = ("none",)
    desk: type[Desk] = Desk
    databases: tuple[str, ...] = ("sqlite", "postgres")


def found(stage: Stage, names: Sequence[str]) -> dict[str, str]:
    """For each mutant (by name, or all) the first schedule that finds it, or an empty text."""
    here = "sqlite" if isinstance(stage.places, Files) else "postgres"
    return {
        mutant.bug.__name__: _first(stage, mutant)
        for mutant in MUTANTS
        if here in mutant.databases and (not names or mutant.bug.__name__ in names)
    }


def _first(stage: Stage, mutant: Mutant) -> str:
    spoiled = replace(
        stage,
        scenarios={**SCENARIOS, **WHOLE},
        bug=mutant.bug,
        desk=mutant.desk,
        patience_s=0.5,
        probed={},
        errors=[],
        held=set(),
    )
    how = ""
    for schedule in _schedules(spoiled, mutant):
        problems = spoiled.run(schedule)
        if problems:
            how = "" if _broken(problems[0]) else f"{schedule}: {problems[0]}"
            break
    if spoiled.looker is not None:
        spoiled.looker.close()
    return how


def _broken(problem: str) -> bool:
    """Whether the mutant does not fit the code any more: that is no success."""
    return problem.endswith(("AttributeError", "NameError", "TypeError", "with an exception"))


def _schedules(stage: Stage, mutant: Mutant) -> Iterable[Schedule]:
    for name in mutant.scenarios:
        if mutant.faults == ("none",):
            yield Schedule(name, 0, "none")
            continue
        opened = next(n for n, step in enumerate(stage.steps(name)) if step.path == "opened")
        steps = stage.steps(name)[opened:]
        rivals = stage.scenarios[name].rival is not None
        every = together(name, steps) if rivals else alone(name, steps, powers=2)
        yield from (schedule for schedule in every if schedule.fault in mutant.faults)


# --- the account ----------------------------------------------------------------------------------


def deleted_immediate() -> None:
    """The lock is taken by the first write, after the check."""
    _said_instead("BEGIN IMMEDIATE", "BEGIN")


def deleted_lock() -> None:
    """PostgreSQL's askers do not wait for each other."""
    store._ALONE = store._ALONE[0], "SELECT 1"


def unsettled_names() -> None:
    """The names of the ledger's files are left to SQLite, which goes on if their disk fails."""
    store.sync_folder = lambda _: None


def committed_late() -> None:
    """SQLite is told not to wait for the disk."""
    _said_instead("synchronous = .*", "synchronous = NORMAL")


def _said_instead(pattern: str, other: str) -> None:
    execute = SqliteConnection.execute

    def replaced(connection: SqliteConnection, said: str, *rest: Any) -> Any:
        return execute(connection, re.sub(pattern, other, said), *rest)

    SqliteConnection.execute = replaced  # type: ignore[method-assign]


def without_log() -> None:
    """SQLite could not keep a write-ahead log, and nobody looked.

    A commit is then undone when the removal of its journal does not survive a loss of power.
    """
    _said_instead("synchronous = .*", "synchronous = FULL")
    store._write_ahead = lambda connection: connection.execute("PRAGMA journal_mode = DELETE")


def ignored_commit() -> None:
    """A commit that failed is taken for one that succeeded."""
    Store._stop = lambda *_: None  # type: ignore[method-assign, assignment]


def retried_commit() -> None:
    """After a failed commit everything is simply tried again."""
    _retry("charge")
    _retry("publish")


def _retry(name: str) -> None:
    once = getattr(Account, name)

    def again(account: Any, *arguments: Any) -> Any:
        try:
            return once(account, *arguments)
        except LedgerRefusal:
            kept = account._journal.store
            with suppress(Exception):
                kept._connection.close()
            kept._connection, kept._broken = kept._connect(create=False), False
            return once(account, *arguments)

    setattr(Account, name, again)


def forgotten_question_cap() -> None:
    """One question may cost anything."""
    _overdrawn(lambda standing: replace(standing, policy=replace(standing.policy, question=None)))


def forgotten_analyst_cap() -> None:
    """An analyst may spend the whole budget of the dataset."""
    Standing.limit = lambda *_: None  # type: ignore[method-assign, assignment]


def forgotten_dataset_cap() -> None:
    """Colluding analysts may spend the sum of their allocations."""
    _overdrawn(lambda standing: replace(standing, budget=Budget(epsilon=1000)))


def forgotten_blocks() -> None:
    """Only the first of the blocks that a question touches is looked at."""
    original = admission.find_overdrawn
    admission.find_overdrawn = lambda standing, analyst, charge, blocks, elsewhere: original(
        standing, analyst, charge, slice(blocks.start, blocks.start + 1), elsewhere
    )


def _overdrawn(changed: Callable[[Standing], Standing]) -> None:
    original = admission.find_overdrawn
    admission.find_overdrawn = lambda standing, *rest: original(changed(standing), *rest)


def shown_before_stored() -> None:
    """An answer is handed out first, and stored when there is time."""
    publish, close, later = Account.publish, Ledger.close, []

    def at_once(account: Account, receipt: Any, answer: bytes) -> bytes:
        later.append((account, receipt, answer))
        return answer

    def in_the_end(ledger: Ledger) -> None:
        while later:
            publish(*later.pop())
        close(ledger)

    Account.publish = at_once  # type: ignore[method-assign]
    Ledger.close = in_the_end  # type: ignore[method-assign]


def forgotten_reservation() -> None:
    """A question that was paid and never answered is paid again."""
    known = Account._find_earlier

    def answered(account: Any, *arguments: Any) -> Any:
        found = known(account, *arguments)
        return None if found is not None and found.answer is None else found

    Account._find_earlier = answered  # type: ignore[method-assign]


def second_answer() -> None:
    """Whoever publishes last is believed, not whoever publishes first."""
    publish = Account.publish

    def believed(account: Account, receipt: Any, answer: bytes) -> bytes:
        publish(account, receipt, answer)
        return answer

    Account.publish = believed  # type: ignore[method-assign]


def refunded() -> None:
    """When the run fails, the charge is taken back."""

    def taken_back(account: Any, receipt: Any) -> None:
        connection = account._journal.store._connection
        connection.execute("DELETE FROM records WHERE sequence = :n", {"n": receipt.id})

    Account.burn = taken_back  # type: ignore[method-assign]


# --- the curator ----------------------------------------------------------------------------------


def charged_after_the_run() -> None:
    """The data is read first; who has no budget is refused afterwards."""
    paid = Curator._pay

    def late(curator: Any, question: Any, spend: Any, analyst: str) -> Any:
        curator.engine.run(curator.engine.compile(curator.price_question(question, spend).plan))
        return paid(curator, question, spend, analyst)

    Curator._pay = late  # type: ignore[method-assign]


def refunded_by_the_curator() -> None:
    """When the engine fails, the charge is taken back."""
    refunded()


MUTANTS = (
    Mutant(deleted_immediate, ("rivals",), ("race",), databases=("sqlite",)),
    Mutant(deleted_lock, ("rivals",), ("race",), databases=("postgres",)),
    Mutant(committed_late, ("resumed",), ("power",), databases=("sqlite",)),
    Mutant(without_log, ("resumed",), ("power",), databases=("sqlite",)),
    Mutant(unsettled_names, ("reopened",), ("io",), databases=("sqlite",)),
    Mutant(ignored_commit, ("resumed",), ("io",), databases=("sqlite",)),
    Mutant(retried_commit, ("resumed",), ("io",), databases=("sqlite",)),
    Mutant(forgotten_question_cap, ("several",)),
    Mutant(forgotten_analyst_cap, ("reopened",)),
    Mutant(forgotten_dataset_cap, ("last unit",)),
    Mutant(forgotten_blocks, ("several",)),
    Mutant(shown_before_stored, ("resumed",), ("kill",)),
    Mutant(forgotten_reservation, ("resumed",)),
    Mutant(second_answer, ("twins",), ("race",)),
    Mutant(refunded, ("failing",)),
    Mutant(refunded_by_the_curator, ("broken",), desk=CuratorDesk),
    Mutant(charged_after_the_run, ("asked",), ("kill",), desk=CuratorDesk),
)
