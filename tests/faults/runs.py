"""Runs and interviews on a failing disk: real processes, killed or without space at any step.

An actor opens a run, asks it, and ends it; at one of its steps something goes wrong.  Another
process then goes on in the same words.  Whatever happened: one charge, nothing shown that is not
recorded as it was shown, nothing drawn anew that was recorded.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from faults.disk import Step, steps
from faults.schedule import FAULTS, Schedule, alone
from faults.stage import Stage
from faults.whole import write_people
from faults.world import CAP, DATASET, budget, digest, schema

from discreet import Curator
from discreet.curate import interviews, runs
from discreet.errors import Refusal
from discreet.ledger import Ledger

CORK = "SELECT COUNT(*) FROM people WHERE city = 'Cork'"
OLD = "SELECT COUNT(*) FROM people WHERE age > 30"
NOBODY = "SELECT COUNT(*) FROM people WHERE age > 109"
CITIES = "SELECT city, COUNT(*) FROM people GROUP BY city"
PRICE = Fraction(2)
MOST = 4
"""The joint sensitivity of an interview, and more than its questions have."""


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of run, and what it is asked."""

    open: Callable[[Curator], Any]
    asked: tuple[str, ...]


PARTS = {
    "interview": Part(lambda c: c.interview(sensitivity=MOST, epsilon=PRICE), (CORK, OLD, CITIES)),
    "watch": Part(
        lambda c: c.watch(threshold=15, epsilon=PRICE, at_most=2, numbers=True),
        (NOBODY, CORK, NOBODY, CITIES),
    ),
}


@dataclass(slots=True)
class Playing:
    """A process that asks: what it draws and shows is marked, before anybody could see it."""

    part: Part
    source: Path
    mark: Callable[[str], None]
    drawn: list[int] = field(default_factory=list)

    def open(self, place: Path) -> tuple[Ledger, Curator]:
        """The curator, as a new process would open it."""
        ledger = Ledger.open(str(place / "ledger.sqlite"))
        try:
            curator = Curator(
                {"people": str(self.source)},
                schema=schema(),
                budget=budget(CAP),
                ledger=ledger,
                dataset=DATASET,
                threads=1,
            )
        except BaseException:
            ledger.close()
            raise
        return ledger, curator

    def play(self, curator: Curator) -> None:
        """Ask what was not asked yet, and end the run."""
        run = self.part.open(curator)
        self._observe(run)
        for number in range(run.asked - run._is_cut_short(), len(self.part.asked)):
            if run.ended:
                break
            told = run.ask(self.part.asked[number], number=number)
            self.mark(f"shown {number} {_digest(told)}")
        run.close()

    def _observe(self, run: Any) -> None:
        def follow(module: Any, name: str) -> None:
            real = getattr(module, name)

            def drawing(*args: Any, **more: Any) -> Any:
                self.drawn.append(run.asked - run._is_cut_short())
                found = real(*args, **more)
                self.mark("drawn")
                return found

            setattr(module, name, drawing)

        follow(interviews, "release_numbers")
        follow(runs, "judge")
        follow(runs, "judge_gathered")


def _digest(told: Any) -> str:
    return digest(repr(told).encode())


@dataclass(slots=True)
class Hall:
    """Where runs are played, with the failing disk of a stage."""

    stage: Stage
    home: Path
    source: Path
    probed: dict[str, list[Step]] = field(default_factory=dict)

    @classmethod
    def of(cls, stage: Stage, home: Path) -> Hall:
        """A hall, with a file of people."""
        return cls(stage, home, write_people(home))

    def schedules(self) -> Iterator[Schedule]:
        """Every fault at every step of each kind of run."""
        for name in PARTS:
            yield from alone(name, self.steps(name), powers=0)

    def steps(self, name: str) -> list[Step]:
        """The steps of a run in which nothing goes wrong."""
        if name not in self.probed:
            place = self._directory(f"{name}-whole")
            self.stage.finish(self.stage.fork(lambda: self._act(place, Schedule(name, -1, "none"))))
            self.probed[name] = steps(place / "trace")
        return self.probed[name]

    def run(self, schedule: Schedule) -> list[str]:
        """What does not hold after a schedule."""
        place = self._directory(str(schedule).replace(":", "-"))
        self.stage.errors.clear()
        self.stage.finish(self.stage.fork(lambda: self._act(place, schedule)))
        if not self.stage.errors:
            self.stage.finish(self.stage.fork(lambda: self._look(place, schedule)))
        report = place / "report"
        found = json.loads(report.read_text()) if report.exists() else ["nobody could look"]
        found += self.stage.errors
        shutil.rmtree(place)
        return found

    def _directory(self, name: str) -> Path:
        place = self.home / name
        place.mkdir()
        return place

    def _act(self, place: Path, schedule: Schedule) -> None:
        """Ask; a refusal ends it, as it would end a program."""
        disk = self.stage.disk
        playing = Playing(PARTS[schedule.scenario], self.source, disk.mark)
        disk.watch(place, place / "trace")
        if self.stage.bug is not None:
            self.stage.bug()
        if schedule.step >= 0:
            disk.arm(schedule.step, FAULTS[schedule.fault])
        try:
            ledger, curator = playing.open(place)
            playing.play(curator)
            ledger.close()
        except Refusal as refusal:
            disk.mark(f"refused {refusal.code}")

    def _look(self, place: Path, schedule: Schedule) -> None:
        """Go on in a new process, and compare what was shown with what is recorded."""
        if self.stage.bug is not None:
            self.stage.bug()
        part = PARTS[schedule.scenario]
        shown = dict(_shown(place / "trace"))
        playing = Playing(part, self.source, lambda _: None)
        ledger, curator = playing.open(place)
        paid = [entry.id for entry in curator.transcript() if entry.loss is not None]
        recorded = 0
        if paid:
            run = curator.run(paid[0])
            recorded = run.asked - run._is_cut_short()
        if not (paid and run.ended):
            playing.play(curator)
        found = list(self._find(curator, ledger, part, shown))
        found += [f"question {n} was drawn anew" for n in playing.drawn if n < recorded]
        (place / "report").write_text(json.dumps(found))
        ledger.close()

    def _find(
        self, curator: Curator, ledger: Ledger, part: Part, shown: Mapping[int, str]
    ) -> Iterator[str]:
        paid = [entry for entry in curator.transcript() if entry.loss is not None]
        if len(paid) != 1:
            yield f"{len(paid)} charges"
        if curator.spent.epsilon != PRICE:
            yield f"spent {curator.spent.epsilon}"
        run = curator.run(paid[0].id)
        if run.ended not in ("closed", "halted"):
            yield f"the run ended as {run.ended!r}"
        if isinstance(run, interviews.InterviewRun) and run.joint > MOST:
            yield "more was told than one unit may move"
        for number, seen in shown.items():
            if number >= run.asked or _digest(run.ask(part.asked[number], number=number)) != seen:
                yield f"question {number} was shown, and is told otherwise"
        if not ledger.verify().ok:
            yield "the ledger does not verify"
        if list(ledger.secrets.glob("*.sealed")):
            yield "a secret outlives its round"


def _shown(trace: Path) -> Iterator[tuple[int, str]]:
    for step in steps(trace):
        words = step.path.split()
        if step.is_mark and words[0] == "shown":
            yield int(words[1]), words[2]


def forget_records() -> None:
    """A bug: what is told is never recorded."""
    from discreet.ledger.runs import RunBook

    RunBook.record = lambda *_args, **_more: True  # type: ignore[method-assign]


def show_before_recording() -> None:
    """A bug: a number is shown, and recorded when the next one is."""
    from discreet.ledger.runs import RunBook

    real, late = RunBook.record, []

    def record(book: Any, id: int, told: list[Any], *, after: int, halts: bool) -> bool:  # noqa: A002
        late.append((id, told, after, halts))
        if len(late) > 1:
            number, before, place, over = late.pop(0)
            return real(book, number, before, after=place, halts=over)
        return True

    RunBook.record = record  # type: ignore[method-assign]


def pay_again() -> None:
    """A bug: every process pays for a run of its own."""
    from discreet.curate import running

    real = running.canonical_json

    def salted(value: Any, **more: Any) -> str:
        return real(value, **more) + os.urandom(4).hex()

    running.canonical_json = salted  # type: ignore[assignment]


BUGS = {bug.__name__: bug for bug in (forget_records, show_before_recording, pay_again)}

__all__ = ["BUGS", "PARTS", "Hall"]
