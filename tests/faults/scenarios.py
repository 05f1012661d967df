"""What is going on when the fault happens.

Each scenario has a beginning that goes well and a part during which a fault happens at one of its
steps. ``questions`` is everything that anybody asked; asking all of it again afterwards must change
nothing that was paid or shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from faults.world import Desk, Question

COUNT = Question("count", "ada", Fraction(1))
CORK = Question("cork", "ada", Fraction(3, 4), (1, 2))
MORE_CORK = Question("more cork", "ada", Fraction(1, 2), (1, 2))
"""Within the budget of the city, beyond that of the analyst."""
DELFT = Question("delft", "bob", Fraction(3, 2), (2, 3))
AGAIN = Question("again", "bob", Fraction(5, 4))
TOO_MUCH = Question("too much", "bob", Fraction(7, 4), (3, 4))
"""Costs more than one question may."""
FIRST_HALF = Question("first half", "ada", Fraction(3, 2))
SECOND_HALF = Question("second half", "bob", Fraction(3, 2))
ONE_MORE = Question("one more", "bob", Fraction(1, 100))
BROKEN = Question("broken", "bob", Fraction(1, 2), (1, 3))


MANY = 5


def _nothing(desk: Desk) -> None:
    """Begin without a ledger."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A beginning, and the part that is disturbed."""

    name: str
    play: Callable[[Desk], None]
    begin: Callable[[Desk], None] = _nothing
    questions: tuple[Question, ...] = ()
    rival: Callable[[Desk], None] | None = None
    """What a second process does meanwhile."""
    pragmas: tuple[str, ...] = field(default=())


def _reserve(desk: Desk) -> None:
    desk.reserve(COUNT)


def _several(desk: Desk) -> None:
    desk.asks(COUNT, TOO_MUCH, DELFT, COUNT, AGAIN)


def _reopened(desk: Desk) -> None:
    desk.asks(CORK)
    desk.close()
    desk.asks(CORK, MORE_CORK, AGAIN)


def _failing(desk: Desk) -> None:
    with desk.refusing("broken"):
        desk.fail(BROKEN)
    desk.asks(COUNT)


def _to_the_last_unit(desk: Desk) -> None:
    desk.asks(SECOND_HALF, ONE_MORE)
    desk.close()


def _many(desk: Desk) -> None:
    for number in range(MANY):
        desk.asks(Question(f"small {number}", "ada", Fraction(1, 16)))
    desk.close()


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("first", lambda desk: desk.asks(COUNT), questions=(COUNT,)),
        Scenario(
            "resumed",
            lambda desk: desk.asks(COUNT, DELFT),
            begin=_reserve,
            questions=(COUNT, DELFT),
        ),
        Scenario(
            "several",
            _several,
            begin=lambda desk: desk.asks(CORK),
            questions=(CORK, COUNT, TOO_MUCH, DELFT, AGAIN),
        ),
        Scenario(
            "reopened",
            _reopened,
            begin=lambda desk: desk.asks(COUNT),
            questions=(COUNT, CORK, MORE_CORK, AGAIN),
        ),
        Scenario(
            "failing", _failing, begin=lambda desk: desk.asks(CORK), questions=(CORK, COUNT, BROKEN)
        ),
        Scenario(
            "last unit",
            _to_the_last_unit,
            begin=lambda desk: desk.asks(FIRST_HALF),
            questions=(FIRST_HALF, SECOND_HALF, ONE_MORE),
        ),
        # The log is copied back into the database every few pages instead of every thousand.
        Scenario(
            "copied back",
            _many,
            begin=lambda desk: desk.asks(CORK),
            questions=(
                CORK,
                *(Question(f"small {n}", "ada", Fraction(1, 16)) for n in range(MANY)),
            ),
            pragmas=("wal_autocheckpoint = 4",),
        ),
        # Two processes, and a budget for one of them.
        Scenario(
            "rivals",
            lambda desk: desk.asks(SECOND_HALF),
            begin=lambda desk: desk.asks(FIRST_HALF),
            rival=lambda desk: desk.asks(AGAIN),
            questions=(FIRST_HALF, SECOND_HALF, AGAIN),
        ),
        # Two processes, and one question.
        Scenario(
            "twins",
            lambda desk: desk.asks(COUNT),
            begin=lambda desk: desk.asks(CORK),
            rival=lambda desk: desk.asks(COUNT),
            questions=(CORK, COUNT),
        ),
        Scenario(
            "founders",
            lambda desk: desk.asks(COUNT),
            rival=lambda desk: desk.asks(DELFT),
            questions=(COUNT, DELFT),
        ),
    )
}

WHOLE = {
    scenario.name: scenario
    for scenario in (
        Scenario("asked", lambda desk: desk.asks(COUNT), questions=(COUNT,)),
        Scenario("finished", lambda desk: desk.asks(COUNT), begin=_reserve, questions=(COUNT,)),
        Scenario("broken", _failing, questions=(COUNT, BROKEN)),
        Scenario(
            "both",
            lambda desk: desk.asks(COUNT),
            rival=lambda desk: desk.asks(COUNT),
            questions=(COUNT,),
        ),
    )
}
"""For the whole curator, whose engine takes its time: the fewest questions that say something."""
