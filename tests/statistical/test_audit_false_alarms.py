"""How often a game accuses what is right: at most as often as its confidence says.

Views are vectors, answers to GROUP BY and whole transcripts: almost every view of a game is
one of its kind.  Each mechanism keeps its promise exactly, none with room to spare.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audit.test_curator_games import COUNT, GROUPS, OLD, SCHEMA, SUM, WORLDS
from scipy import stats

from discreet.accounting.budget import Budget
from discreet.audit import Promise, Rehearsal, events, learning
from discreet.audit.crowd import Crowd, ask
from discreet.audit.events import Plain
from discreet.noise import discrete_laplace

game = importlib.import_module("discreet.audit.game")  # of this name there is a function, too
EPSILON = Fraction(1, 4)
RATE = Fraction(1, 10)  # of false alarms, as claimed: one less the confidence
ALPHA = 1e-9  # chance that a rate as claimed fails a test here
FEW, RUNS = 25, 1000
GAMES = 300  # in either world
Patch = pytest.MonkeyPatch
Views = Callable[[int, int], Any]


def three_counts(world: int, size: int) -> Any:
    """Every count is one more in world 1, and has a third of epsilon."""
    return np.array([30, 50, 70]) + world + discrete_laplace(12, 3 * size).reshape(size, 3)


def three_bits(world: int, size: int) -> list[tuple[bool, ...]]:
    """Randomised response to three bits that all differ: the extreme view attains epsilon."""
    keep = 1 / (1 + np.exp(-float(EPSILON) / 3))
    told = np.random.default_rng().random((size, 3)) < (keep if world else 1 - keep)
    return [tuple(row) for row in told.tolist()]


def grouped() -> Iterator[Any]:
    return (yield ask(GROUPS, epsilon=EPSILON))


def conversation() -> Iterator[Any]:
    """What is asked next depends on what was heard, and the last question is refused."""
    first = yield ask(COUNT, epsilon="1/12")
    second = yield ask(GROUPS if first[0] > 3 else OLD, epsilon="1/12")
    return [first, second, (yield ask(SUM, epsilon="1/12")), (yield ask(OLD, epsilon="1/9"))]


@pytest.fixture(scope="module")
def kinds() -> Iterator[dict[str, Views]]:
    stages = [Rehearsal(world, schema=SCHEMA, budget=Budget(epsilon=EPSILON)) for world in WORLDS]
    crowds = [Crowd(stage) for stage in stages]
    yield {
        "vectors": three_counts,
        "bits": three_bits,
        "answers": lambda world, size: crowds[world].play(grouped, size),
        "transcripts": lambda world, size: crowds[world].play(conversation, size),
    }
    for stage in stages:
        stage.engine.close()


KINDS = ("vectors", "bits", "answers", "transcripts")


def alarms(views: Views, runs: int, *, rate: Fraction = RATE) -> int:
    """How many of so many runs find the promise broken."""
    drawn = [views(world, runs * GAMES) for world in (0, 1)]
    found = 0
    for run in range(runs):
        first, second = (world[run * GAMES : (run + 1) * GAMES] for world in drawn)
        found += game.conclude(
            first, second, promise=Promise.of(EPSILON), confidence=1 - rate, name="right"
        ).alarm
    return found


def most(runs: int) -> int:
    """More alarms than these have chance ``ALPHA``, if each has chance ``RATE``."""
    return int(stats.binom.isf(ALPHA, runs, float(RATE)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_not_accused(kinds: dict[str, Views], kind: str) -> None:
    assert alarms(kinds[kind], FEW) <= most(FEW) < FEW


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_runs_accuse_no_more_than_claimed(kinds: dict[str, Views], kind: str) -> None:
    """The bounds of both probabilities hold together, so that the rate is half of it at most:
    more than 100 of 1,000 then have a chance below 10**-9."""
    assert stats.binom.sf(int(RUNS * RATE), RUNS, float(RATE) / 2) < ALPHA
    assert alarms(kinds[kind], RUNS) <= RUNS * RATE


# --- bugs on purpose ---------------------------------------------------------------------------


def texts_of_the_judged(patch: Patch) -> None:
    """Every text is an outcome of its own, be it from the games that decide."""
    split, known = events.halves, []

    def halves(views: Any) -> Any:
        known.extend(repr(tuple(view)) for view in getattr(views, "tolist", lambda: views)())
        return split(views)

    def learn(_: Any) -> Plain:
        names = tuple(dict.fromkeys(known))
        known.clear()
        return Plain(("rare", *names), {name: code for code, name in enumerate(names, start=2)})

    patch.setattr(game, "halves", halves)
    patch.setattr(Plain, "learn", learn)


def judged_by_what_was_learned(patch: Patch) -> None:
    """The games that taught the score and chose the event decide; it believes every chance."""
    patch.setattr(game, "halves", lambda views: (np.repeat(views, 2, axis=0), views))
    patch.setattr(learning, "_IN_A_BIN", 1)
    patch.setattr(learning, "_CHANCE", 0.0)


MUTANTS = {texts_of_the_judged: "vectors", judged_by_what_was_learned: "vectors"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_is_found(
    mutant: Callable[[Patch], None], kinds: dict[str, Views], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    assert alarms(kinds[MUTANTS[mutant]], FEW) > most(FEW)
