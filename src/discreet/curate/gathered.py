"""Questions that wait for the data at the same time: read in one statement, each answered alone.

Whoever asked them knows nothing of the others.  Each was charged by itself and is looked at as
if it were computed by itself: its version of the data, its basis, noise of its own.  What was not
answered so, for whatever reason, is computed alone: no question fails because of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from discreet.engine.protocol import C, Engine
from discreet.exact.records import dataclass
from discreet.price import Priced
from discreet.price.calibration import find_lumpings
from discreet.price.gathering import FEWEST, Gathered, gather_with_first
from discreet.release.record import write_released
from discreet.release.release import release_gathered

if TYPE_CHECKING:
    from discreet.curate.curator import Curator
    from discreet.curate.steps import Paid


@dataclass(frozen=True, slots=True)
class Charged:
    """A question that was paid for, as far as computing it needs to know."""

    priced: Priced
    data_version: str
    basis: str | None


def choose_gathered(
    curator: Curator, waiting: Sequence[Paid]
) -> tuple[Gathered, tuple[int, ...]] | None:
    """What reads the first together with others that wait, and their places; None if it is alone.

    Public knowledge only.  What improves an earlier answer is never among them.
    """
    if len(waiting) < FEWEST or waiting[0].improving is not None:
        return None
    places = [place for place, paid in enumerate(waiting) if paid.improving is None]
    plans = [waiting[place].priced.plan for place in places]
    found = gather_with_first(plans, curator.engine.catalogue.multiplicity)
    if found is None:
        return None
    gathered, chosen = found
    return gathered, tuple(places[place] for place in chosen)


def compute_gathered(
    engine: Engine[C], gathered: Gathered, questions: Sequence[Charged]
) -> list[bytes]:
    """The answers, ready to be stored; empty where a question must be computed alone.

    Whatever fails may fail because of one person's row, so nothing is said of why.
    """
    answers = [b""] * len(questions)
    with suppress(Exception):
        plans = [(one.priced.plan, find_lumpings(one.priced)) for one in questions]
        own = [engine.compile(*plan, bound=True) for plan in plans]
        before = [engine.find_basis(compiled) for compiled in own]
        truth = engine.run(engine.compile(gathered.plan))  # exact integers
        after = [engine.find_basis(compiled) for compiled in own]
        version = engine.data_version()
        for place, (one, *held) in enumerate(zip(questions, before, after, strict=True)):
            kept = one.basis is None or held == [one.basis] * 2
            with suppress(Exception):  # of which nothing leaves, and which is its own
                if kept and one.data_version == version:
                    drawn = release_gathered(one.priced, gathered, place, truth)
                    answers[place] = write_released(one.priced, drawn)
    return answers


__all__ = ["Charged", "choose_gathered", "compute_gathered"]
