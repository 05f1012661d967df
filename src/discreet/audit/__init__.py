"""The auditor: check any mechanism, any question, the whole curator.

    exact     from the laws: what two inputs cost, certified, with the whole curve
    replay    the same noise in two neighbouring worlds: what enters it, and how far it moves
    fuzz      the same over made-up neighbours of a schema, for any questions
    game      an adversary in two worlds: a certified lower bound of epsilon
    fit       does a sampler draw from its law?
    grid, mironov   do the last bits of doubles tell?
    timing    does the time taken tell?

Each finding has a ``verdict``, a ``sentence``, ``to_json()`` and ``picture()``.
Only ``exact`` can prove; the others can refute.
"""

from discreet.audit import adversaries
from discreet.audit.exact import Exact, exact
from discreet.audit.fit import Fit, fit
from discreet.audit.floats import GridFinding, grid, mironov
from discreet.audit.fuzzing import Fuzz, Moved, fuzz
from discreet.audit.game import Game, game, trials_needed
from discreet.audit.neighbours import neighbouring
from discreet.audit.observing import Event, Observation, observe
from discreet.audit.promise import Promise
from discreet.audit.rehearsal import Rehearsal, Stage
from discreet.audit.replaying import Replay, replay
from discreet.audit.timing import Timing, timing
from discreet.audit.verdict import Finding, Verdict

__all__ = [
    "Event",
    "Exact",
    "Finding",
    "Fit",
    "Fuzz",
    "Game",
    "GridFinding",
    "Moved",
    "Observation",
    "Promise",
    "Rehearsal",
    "Replay",
    "Stage",
    "Timing",
    "Verdict",
    "adversaries",
    "exact",
    "fit",
    "fuzz",
    "game",
    "grid",
    "mironov",
    "neighbouring",
    "observe",
    "replay",
    "timing",
    "trials_needed",
]
