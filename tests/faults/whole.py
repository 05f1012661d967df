"""The same desk, with the whole curator behind it: SQL in, a real engine, noise, an answer out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from faults.world import (
    ANALYST_CAPS,
    CAP,
    CITIES,
    DATASET,
    QUESTION_CAP,
    Desk,
    Question,
    budget,
    digest,
    schema,
)

from discreet import Curator
from discreet.curate import curator as curate
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.ledger import Account, Ledger, Policy
from discreet.release.record import answer_to_bytes

PEOPLE = 60


def write_people(home: Path) -> Path:
    """The source: a file of a few people in three cities, the same for every process."""
    rows = "".join(f"{n},{CITIES[n % len(CITIES)]},{n % 110}\n" for n in range(PEOPLE))
    file = home / "people.csv"
    file.write_text(f"id,city,age\n{rows}")
    return file


@dataclass(slots=True)
class CuratorDesk(Desk):
    """Where questions are asked in SQL."""

    source: ClassVar[Path]
    _curator: tuple[Ledger, Curator] | None = None
    _breaking: bool = False

    @property
    def curator(self) -> Curator:
        """The curator; opened when first needed, as a new process would."""
        if self._curator is None:
            ledger = Ledger.open(self.address)
            try:
                self._curator = ledger, self._opened(ledger)
            except BaseException:
                ledger.close()
                raise
            self._open = ledger, self._curator[1].account
            self.mark("opened")
        return self._curator[1]

    @property
    def account(self) -> Account:
        """The account behind the curator."""
        return self.curator.account

    def _opened(self, ledger: Ledger) -> Curator:
        curator = Curator(
            {"people": str(self.source)},
            schema=schema(),
            budget=budget(CAP),
            ledger=ledger,
            dataset=DATASET,
            policy=Policy(question=budget(QUESTION_CAP)),
            threads=1,
        )
        known = {analyst.name for analyst in curator.account.analysts()}
        for name, limit in ANALYST_CAPS.items():
            if name not in known:
                curator.account.add_analyst(name, limit=budget(limit))
        return curator

    def close(self) -> None:
        """Close the ledger; the next question opens it anew."""
        self._curator = None
        Desk.close(self)

    def ask(self, question: Question) -> bytes:
        """The answer as the analyst gets it."""
        curator = self.curator
        with _watched(self, question):
            answer = curator.ask(question.text, analyst=question.analyst, epsilon=question.epsilon)
        shown = answer_to_bytes(answer)
        self.mark(f"shown {question.name} {digest(shown)}")
        return shown

    def reserve(self, question: Question) -> None:
        """Pay and vanish: a reservation is left."""
        self.curator.pay(question.text, analyst=question.analyst, epsilon=question.epsilon)

    def fail(self, question: Question) -> None:
        """A question on which the engine breaks down."""
        self._breaking = True
        try:
            self.ask(question)
        finally:
            self._breaking = False


def share_engine() -> None:
    """Let all curators of this process use one engine: it never changes, and opens slowly."""
    one = DuckDBEngine({"people": str(CuratorDesk.source)}, schema(), threads=1)
    curate.DuckDBEngine = lambda *_, **__: one  # type: ignore[attr-defined, misc, assignment]


@contextmanager
def _watched(desk: CuratorDesk, question: Question) -> Iterator[None]:
    """Marks the moment at which the engine reads the data for a question."""
    original = DuckDBEngine.run

    def run(engine: DuckDBEngine, *arguments: Any, **options: Any) -> Any:
        desk.mark(f"run {question.name}")
        truth = original(engine, *arguments, **options)
        desk.mark("ran")
        if desk._breaking:
            raise MemoryError
        return truth

    DuckDBEngine.run = run  # type: ignore[method-assign]
    try:
        yield
    finally:
        DuckDBEngine.run = original  # type: ignore[method-assign]
