"""Schedules: in this scenario, at this step, this goes wrong.

A schedule is written ``scenario:step:fault`` or ``scenario:step:fault:seed``; what is printed when
one fails can be run again alone (``python -m faults SCHEDULE``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faults.disk import Fault, Step

FAULTS = {
    "kill": Fault.KILL,
    "torn": Fault.TORN,
    "io": Fault.IO_ERROR,
    "full": Fault.FULL,
    "short": Fault.SHORT,
    "stays-full": Fault.STAYS_FULL,
    "stays-broken": Fault.STAYS_BROKEN,
    "killed-waiting": Fault.PAUSE,
    "race": Fault.PAUSE,
    "backend": Fault.PAUSE,
    "restart": Fault.PAUSE,
    "power": Fault.NONE,
    "none": Fault.NONE,
}
"""The words for faults. ``killed-waiting`` stops the first process at the step, lets a second run
until it waits or is done, then kills the first; ``race`` lets the first go on instead; ``backend``
kills PostgreSQL's side of the connection at the step and ``restart`` the whole server; ``power``
cuts the power at the step and chooses with the seed what of the unsynced bytes survives."""

POWERS = 0.6
"""The share of losses of power among schedules that are chosen; they cost least."""

SOUND = {"none", "race", "killed-waiting"}
"""Faults during which the disk works."""

_BY_KIND = {
    "m": ("kill",),
    "w": ("kill", "torn", "io", "full", "short", "stays-full", "stays-broken"),
    "c": ("kill", "io", "full"),
    "t": ("kill", "io"),
    "s": ("kill", "io", "stays-broken"),
    "u": ("kill", "io"),
    "r": ("kill", "io"),
    "l": ("kill", "io", "full"),
    "h": ("kill", "io", "full"),
}


@dataclass(frozen=True, slots=True, order=True)
class Schedule:
    """One way in which things go wrong."""

    scenario: str
    step: int
    fault: str
    seed: int = 0

    def __str__(self) -> str:
        tail = f":{self.seed}" if self.seed else ""
        return f"{self.scenario}:{self.step}:{self.fault}{tail}"

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that is written so."""
        scenario, step, fault, *seed = text.split(":")
        return cls(scenario, int(step), fault, int(seed[0]) if seed else 0)


def alone(scenario: str, steps: Sequence[Step], *, powers: int) -> Iterator[Schedule]:
    """Every fault at every step of one process, and ``powers`` losses of power at each."""
    for step in steps:
        for fault in _BY_KIND[step.kind]:
            yield Schedule(scenario, step.number, fault)
        for seed in range(powers):
            yield Schedule(scenario, step.number, "power", seed)


def together(scenario: str, steps: Sequence[Step]) -> Iterator[Schedule]:
    """Every step of the first of two processes, held while the second runs."""
    for step in steps:
        yield Schedule(scenario, step.number, "race")
        yield Schedule(scenario, step.number, "killed-waiting")


def served(scenario: str, steps: Sequence[Step]) -> Iterator[Schedule]:
    """Every step, at which the server fails."""
    for step in steps:
        yield Schedule(scenario, step.number, "backend")
        yield Schedule(scenario, step.number, "restart")


def some(schedules: Sequence[Schedule], count: int, *, seed: int = 0) -> list[Schedule]:
    """``count`` of them, always the same for one seed; most are of the kind that costs least."""
    if count >= len(schedules):
        return list(schedules)
    coins, chosen = random.Random(seed), []
    powers = [schedule for schedule in schedules if schedule.fault == "power"]
    others = [schedule for schedule in schedules if schedule.fault != "power"]
    kills = [schedule for schedule in others if schedule.fault in ("kill", "torn")]
    errors = [schedule for schedule in others if schedule.fault not in ("kill", "torn")]
    for kind, share in ((powers, POWERS), (kills, 0.55), (errors, 1)):
        chosen += coins.sample(kind, min(len(kind), round((count - len(chosen)) * share)))
    rest = set(schedules) - set(chosen)
    return sorted(chosen + coins.sample(sorted(rest), count - len(chosen)))


def part(schedules: Sequence[Schedule], which: str) -> Sequence[Schedule]:
    """The part ``K/M``: neighbours stay together, because they leave the same states."""
    number, parts = map(int, which.split("/"))
    cuts = [len(schedules) * cut // parts for cut in (number - 1, number)]
    return schedules[slice(*cuts)]
