"""Runs schedules with real processes, and looks at what they leave.

A stage lives in a process that was started with the failing disk. It has imported everything and
has nothing open, so that each actor is a cheap fork of it: a process of its own with its own
connection, that can be killed, stopped and continued.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults.check import Witness, violations
from faults.disk import Disk, Fault, Step, steps
from faults.places import Files, Server
from faults.scenarios import Scenario
from faults.schedule import FAULTS, SOUND, Schedule
from faults.world import Desk

from discreet.ledger.connection import PostgresConnection, SqliteConnection

PATIENCE_S = 0.04
"""How long a second process may run before the first, which was held, goes on."""
HANGS_S = 600

Play = Callable[[Desk], None]
Bug = Callable[[], None]
"""Spoils the code of the process in which it is called."""


@dataclass(slots=True)
class Stage:
    """Where schedules are played."""

    places: Files | Server
    scenarios: dict[str, Scenario]
    bug: Bug | None = None
    desk: type[Desk] = Desk
    patience_s: float = PATIENCE_S
    disk: Disk = field(default_factory=Disk)
    probed: dict[str, tuple[Path, list[Step]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    held: set[bytes] = field(default_factory=set)
    """States after a loss of power that were looked at and are well."""
    looker: Looker | None = None
    verbose: bool = False

    def prepare(self) -> Stage:
        """Do once in this process what every actor would do again."""
        observe(self.disk)
        with tempfile.TemporaryDirectory(dir=self.places.home) as home:
            for name, scenario in self.scenarios.items():
                self.play(scenario.play, str(Path(home) / f"{name}.sqlite"))
        gc.collect()
        gc.freeze()  # forks share what is never collected
        return self

    def steps(self, scenario: str) -> list[Step]:
        """The numbered steps of a scenario in which nothing goes wrong."""
        return self._probe(scenario)[1]

    def _probe(self, scenario: str) -> tuple[Path, list[Step]]:
        if scenario not in self.probed:
            address, place = self._fresh(scenario)
            self.finish(self._start(scenario, address, place, "first"))
            self.probed[scenario] = place, steps(place / "first")
        return self.probed[scenario]

    def run(self, schedule: Schedule) -> list[str]:
        """What does not hold after a schedule; nothing if all is well."""
        if schedule.fault == "power":
            # Nothing need be run: what was done before the step is in the trace.
            place, done = self._probe(schedule.scenario)
            return self._power(schedule, place, [s for s in done if s.number < schedule.step])
        address, place = self._fresh(schedule.scenario)
        self.errors.clear()
        traces = self._played(schedule, address, place)
        done = [steps(place / trace) for trace in traces]
        found = self._violations(address, schedule, [Witness.of(one) for one in done])
        found += self.errors
        if not found and isinstance(self.places, Files) and schedule.fault in _SURVIVED:
            found = [f"then power lost: {why}" for why in self._power(schedule, place, done[0])]
        if self.verbose:
            _tell(schedule, traces, done)
        self.places.done(place)
        return found

    def _played(self, schedule: Schedule, address: str, place: Path) -> list[str]:
        if schedule.fault in ("backend", "restart"):
            return self._server_fails(schedule, address, place)
        if FAULTS[schedule.fault] is Fault.PAUSE:
            return self._pair(schedule, address, place)
        if schedule.fault in _SURVIVED and self._light:
            self._act(schedule.scenario, address, place, "first", schedule)
            self.disk.unwatch()
        else:
            self.finish(self._start(schedule.scenario, address, place, "first", schedule))
        return ["first"]

    def _power(self, schedule: Schedule, place: Path, done: list[Step]) -> list[str]:
        """Cut the power after ``done``, which was done in ``place``.

        Different losses often leave the same bytes to the same witness: they are looked at once.
        """
        coins = random.Random(f"{schedule}") if schedule.seed else None
        left = self.places.after_power_loss(schedule.scenario, place, done, coins)
        witness = Witness.of(done)
        state = _digest(schedule.scenario, witness, left)
        if state in self.held:
            return []
        address = self.places.restored(left)
        found = self._violations(address, schedule, [witness])
        self.places.done(Path(address).parent)
        if not found:
            self.held.add(state)
        return found

    @property
    def _light(self) -> bool:
        """Whether what survives may be done in this process: no bug, and no engine's threads."""
        return self.bug is None and self.desk is Desk

    def _violations(self, address: str, schedule: Schedule, witnesses: list[Witness]) -> list[str]:
        scenario, sound = self.scenarios[schedule.scenario], schedule.fault in SOUND
        if self.desk is Desk:
            return violations(self.desk, address, scenario, witnesses, sound=sound)
        if self.looker is None:
            self.looker = Looker(self)
        return self.looker.look(address, schedule, witnesses)

    def _pair(self, schedule: Schedule, address: str, place: Path) -> list[str]:
        """Hold one process at its step while a second runs until it waits or is done."""
        first = self._start(schedule.scenario, address, place, "first", schedule)
        _, status = os.waitpid(first, os.WUNTRACED)
        held = os.WIFSTOPPED(status)
        second = self._start(schedule.scenario, address, place, "second")
        ended = self._waited(second, self.patience_s if held else HANGS_S)
        if held:
            kill = schedule.fault == "killed-waiting"
            os.kill(first, signal.SIGKILL if kill else signal.SIGCONT)
            self.finish(first)
        if not ended:
            self.finish(second)
        return ["first", "second"]

    def _server_fails(self, schedule: Schedule, address: str, place: Path) -> list[str]:
        """Hold a process at its step while its server dies and comes back."""
        first = self._start(schedule.scenario, address, place, "first", schedule)
        _, status = os.waitpid(first, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            self.places.fail(schedule.fault)
            os.kill(first, signal.SIGCONT)
            self.finish(first)
        return ["first"]

    def _fresh(self, scenario: str) -> tuple[str, Path]:
        def begin(address: str) -> None:
            if self.desk is Desk:
                self.play(self.scenarios[scenario].begin, address)
            else:  # an engine's threads stay out of this process
                self.finish(self.fork(lambda: self.play(self.scenarios[scenario].begin, address)))

        return self.places.fresh(scenario, begin)

    def _start(
        self, scenario: str, address: str, place: Path, name: str, fault: Schedule | None = None
    ) -> int:
        """Fork an actor; the first one meets the fault."""
        return self.fork(lambda: self._act(scenario, address, place, name, fault))

    def _act(
        self, scenario: str, address: str, place: Path, name: str, fault: Schedule | None
    ) -> None:
        chosen = self.scenarios[scenario]
        play = chosen.play if name == "first" or chosen.rival is None else chosen.rival
        self.disk.watch(place, place / name)
        if self.bug is not None:
            self.bug()
        if fault is not None:
            self.disk.arm(fault.step, FAULTS[fault.fault])
        with _told(chosen.pragmas):
            self.play(play, address)

    def play(self, play: Play, address: str) -> None:
        """Play a part in this process."""
        desk = self.desk(address, self.disk.mark)
        play(desk)
        desk.close()

    def fork(self, act: Callable[[], None]) -> int:
        """Do something in a process of its own."""
        pid = os.fork()
        if pid:
            return pid
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)

    def finish(self, pid: int) -> None:
        """Wait for a process; one that hangs is an error."""
        if not self._waited(pid, HANGS_S):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.errors.append("a process hangs")

    def _waited(self, pid: int, timeout_s: float) -> bool:
        deadline, pause_s = time.monotonic() + timeout_s, 0.0002
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                if os.WIFEXITED(status) and os.WEXITSTATUS(status):
                    self.errors.append("a process ended with an exception")
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.005)


def _tell(schedule: Schedule, traces: list[str], done: list[list[Step]]) -> None:
    for name, one in zip(traces, done, strict=True):
        lines = [(s.number, " ", f"{s}{' (failed)' if s.result < 0 else ''}") for s in one]
        if name == "first":  # a call that fails may leave no trace: the fault is told in its place
            lines.append((schedule.step, "!", schedule.fault))
        for number, sign, words in sorted(lines, key=lambda line: line[0]):
            print(f"{name:6} {number:5}{sign} {words}", file=sys.stderr)


class Looker:
    """A process that looks at what is left with a whole curator.

    It keeps an engine, which has threads and is slow to open, out of the stage's process.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        stage.fork(lambda: self._serve(orders, reports))
        os.close(orders)
        os.close(reports)
        self._lines = os.fdopen(self._reports)

    def look(self, address: str, schedule: Schedule, witnesses: list[Witness]) -> list[str]:
        """What does not hold."""
        seen = [asdict(witness) for witness in witnesses]
        order = [address, schedule.scenario, seen, schedule.fault in SOUND]
        os.write(self._orders, f"{json.dumps(order)}\n".encode())
        return list(json.loads(self._lines.readline()))

    def close(self) -> None:
        """Let it end."""
        os.close(self._orders)
        self._lines.close()

    def _serve(self, orders: int, reports: int) -> None:
        from faults.whole import CuratorDesk, share_engine

        os.close(self._orders)  # or this process would wait for its own orders for ever
        share_engine()
        with os.fdopen(orders) as lines:
            for order in lines:
                address, name, seen, sound = json.loads(order)
                witnesses = [Witness(**witness) for witness in seen]
                scenario = self.stage.scenarios[name]
                found = violations(CuratorDesk, address, scenario, witnesses, sound=sound)
                os.write(reports, f"{json.dumps(found)}\n".encode())


_SURVIVED = {"io", "full", "short", "stays-full", "stays-broken"}
"""Faults that a process outlives; afterwards the power may still fail."""


def observe(disk: Disk) -> None:
    """Make every statement two steps of a watched process: before, and after."""

    def watched(send: Callable[..., Any]) -> Callable[..., Any]:
        def mark_and_send(connection: object, statement: str, *rest: Any) -> Any:
            said = " ".join(statement.split()[:3])
            disk.mark(f"before {said}")
            found = send(connection, statement, *rest)
            disk.mark(f"after {said}")
            return found

        return mark_and_send

    SqliteConnection.execute = watched(SqliteConnection.execute)  # type: ignore[method-assign]
    PostgresConnection._cursor = watched(PostgresConnection._cursor)  # type: ignore[method-assign]


def _digest(scenario: str, witness: Witness, files: Mapping[str, bytes]) -> bytes:
    seen = hashlib.sha256(f"{scenario} {witness}".encode())
    for name, contents in sorted(files.items()):
        seen.update(f" {name} {len(contents)} ".encode() + contents)
    return seen.digest()


@contextmanager
def _told(pragmas: tuple[str, ...]) -> Iterator[None]:
    """Give every new connection to SQLite some settings."""

    connect = SqliteConnection.__init__

    def connected(connection: SqliteConnection, *where: Any) -> None:
        connect(connection, *where)
        for pragma in pragmas:
            connection._driver.execute(f"PRAGMA {pragma}")

    SqliteConnection.__init__ = connected  # type: ignore[method-assign]
    try:
        yield
    finally:
        SqliteConnection.__init__ = connect  # type: ignore[method-assign]
