"""A walk through the zoo: every specimen and its twin, put to the check that tells them apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.audit.exact import exact
from discreet.audit.fit import fit
from discreet.audit.floats import grid
from discreet.audit.game import game
from discreet.audit.replaying import replay
from discreet.audit.timing import timing
from discreet.audit.verdict import Finding
from discreet.audit.zoo.animal import Animal, Check

FALSE_ALARMS = Fraction(1, 1000)
"""The chance that a walk through the whole zoo alarms on any correct twin."""

MOST_SAMPLED = 25
"""As many specimens as may be checked by sampling: each may alarm with this part of the chance."""

ALPHA = FALSE_ALARMS / MOST_SAMPLED

SAMPLES = 100_000
"""Samples in either world."""

TIMED = 400
"""Rounds of a race: enough to see a scan that stops early, too few to see where a list lies."""

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Examined:
    """What a check said of a specimen and of its twin.

    ``animal`` is the specimen, ``broken`` and ``twin`` are what was found of the two, in so many
    ``seconds``.
    """

    animal: Animal
    broken: Finding
    twin: Finding
    seconds: float

    @property
    def found(self) -> bool:
        """Whether the bug was found."""
        return self.broken.alarm

    @property
    def false_alarm(self) -> bool:
        """Whether the correct twin was accused."""
        return self.twin.alarm

    def to_json(self) -> dict[str, Any]:
        """What was examined, how, and what came of it; plain JSON."""
        animal = self.animal
        return {
            "name": animal.name,
            "family": animal.family,
            "bug": animal.bug,
            "source": animal.source,
            "neighbours": animal.relation,
            "promise": str(animal.promise),
            "check": animal.check.value,
            "found": self.found,
            "false_alarm": self.false_alarm,
            "broken": self.broken.sentence,
            "twin": self.twin.sentence,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Walk:
    """Everything examined: whether the auditor can be relied on here.

    ``examined`` has one for each specimen, ``samples`` is how many were drawn in either world.
    """

    examined: tuple[Examined, ...]
    samples: int

    @property
    def missed(self) -> tuple[Examined, ...]:
        """The bugs that were not found."""
        return tuple(one for one in self.examined if not one.found)

    @property
    def false_alarms(self) -> tuple[Examined, ...]:
        """The correct twins that were accused."""
        return tuple(one for one in self.examined if one.false_alarm)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(one.seconds for one in self.examined)

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return (
            f"{len(self.examined) - len(self.missed)} of {len(self.examined)} known bugs found, "
            f"{len(self.false_alarms)} alarms on {len(self.examined)} correct twins, "
            f"in {self.seconds:.0f} seconds."
        )

    def to_json(self) -> dict[str, Any]:
        """The outcome, and that of every specimen."""
        return {
            "sentence": self.sentence,
            "samples": self.samples,
            "false_alarm_rate": str(FALSE_ALARMS),
            "missed": [one.animal.name for one in self.missed],
            "false_alarms": [one.animal.name for one in self.false_alarms],
            "specimens": [one.to_json() for one in self.examined],
        }


def examine(animal: Animal, *, samples: int = SAMPLES) -> Examined:
    """Put a specimen and its twin to the check that should tell them apart.

    ``animal`` is the specimen; of what is sampled so many ``samples`` are drawn in either world.

    >>> from discreet.audit.zoo import animals
    >>> found = examine(animals(named="unclipped sum"))
    >>> found.found, found.false_alarm
    (True, False)
    """
    start = time.perf_counter()
    broken = check_subject(animal, animal.broken, samples=samples, name=animal.name)
    twin = check_subject(animal, animal.twin, samples=samples, name=f"{animal.name}, corrected")
    return Examined(animal, broken, twin, time.perf_counter() - start)


def walk(
    specimens: Iterable[Animal], *, samples: int = SAMPLES, progress: Progress | None = None
) -> Walk:
    """Examine all of ``specimens``; ``progress`` is told the share that is done.

    Of what is sampled so many ``samples`` are drawn in either world.
    """
    todo = tuple(specimens)
    done = []
    for number, animal in enumerate(todo, start=1):
        done.append(examine(animal, samples=samples))
        if progress is not None:
            progress(number / len(todo))
    return Walk(tuple(done), samples)


class NamedLaw:
    """A function from inputs to laws, with a name for sentences about it."""

    def __init__(self, name: str, law: Callable[..., Any]) -> None:
        self.__name__, self.law = name, law


def check_subject(
    animal: Animal,
    subject: Callable[..., Any],
    *,
    samples: int = SAMPLES,
    alpha: Fraction = ALPHA,
    name: str = "",
) -> Finding:
    """What the specimen's check says of ``subject``; a sampled one errs with chance ``alpha``."""
    first, second = animal.pair
    match animal.check:
        case Check.LAW:
            return exact(NamedLaw(name, subject), first, second, promised=animal.promise)
        case Check.REPLAY:
            return replay(subject, first, second, adjacent=True, name=name)
        case Check.GRID:
            return grid(subject(first, 1000), subject(second, 1000))
        case Check.FIT if animal.law is not None:
            return fit(subject, animal.law, samples=samples, alpha=alpha)
        case Check.TIMING:
            return timing(subject, first, second, rounds=TIMED, alpha=alpha)
        case _:
            return game(
                subject,
                first,
                second,
                animal.view,
                samples,
                promised=animal.promise,
                confidence=1 - alpha,
                batch=True,
                adjacent=True,
                name=name,
            )


__all__ = [
    "ALPHA",
    "FALSE_ALARMS",
    "MOST_SAMPLED",
    "SAMPLES",
    "TIMED",
    "Examined",
    "NamedLaw",
    "Walk",
    "check_subject",
    "examine",
    "walk",
]
