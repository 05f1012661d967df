"""The composition experiment: an adversary, two worlds, and how well it tells them apart.

DR section 3.5, Experiments 0 and 1: somebody picks two neighbouring data sets, an
adversary talks to a target that holds one of them, asking what it likes in the
light of what it heard, and keeps its view.  If the target is (epsilon,
delta)-private, no event has probability above e**epsilon q + delta in one world
where it has q in the other.  ``game`` plays many times in both worlds, chooses
an event on half of the games and bounds its probabilities on the other half, so
that a broken promise is proved at the stated confidence.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.conversion import Amount
from discreet.accounting.drawing import Axis, Chart, Line, svg
from discreet.audit.crowd import Crowd
from discreet.audit.events import Judged, Outcomes, halves, judge, look, outcome_of, search
from discreet.audit.neighbours import Adjacent, neighbouring
from discreet.audit.promise import Promise, Promised
from discreet.audit.rehearsal import Rehearsal
from discreet.audit.verdict import Verdict, amount_down, amount_up
from discreet.curate.curator import Curator
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import proportion, whole

Target = Callable[..., Any]
Adversary = Callable[..., Any]
Progress = Callable[[float], None]

_CURVE = 160
_REPORTS = 50
_MOST_EPSILON = 40.0  # beyond, no number of games that can be played says anything


@dataclass(frozen=True, slots=True)
class Game:
    """What the games showed.

    ``name`` is what was played, ``promise`` what the target says, ``trials`` how many games there
    were in either world; ``judged`` is the chosen event on the games that decide, and ``roc`` how
    often an adversary is right in one world for how often it is wrong in the other.

    ``lower`` is a bound on epsilon at ``delta``: with probability ``confidence``
    the target's true epsilon there is no smaller.  ``promised_epsilon`` is what
    was promised at the same delta.
    """

    name: str
    promise: Promise
    confidence: Fraction
    trials: int
    judged: Judged
    roc: tuple[tuple[float, float], ...]

    @property
    def lower(self) -> Amount:
        """The certified lower bound of epsilon at ``delta``; never below 0."""
        return max(Fraction(0), self.judged.lower)

    @property
    def delta(self) -> Fraction:
        """The delta at which epsilon is bounded."""
        return self.judged.chosen.point[1]

    @property
    def promised_epsilon(self) -> Fraction:
        """The epsilon promised at ``delta``."""
        return self.judged.chosen.point[0]

    @property
    def event(self) -> str:
        """The event that told the worlds apart best, in words."""
        return self.judged.chosen.event.words

    @property
    def hits(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(games, games that ended in the event) in world 0 and in world 1, of the second half."""
        (a, b), (m, n) = self.judged.hits, self.judged.trials
        return (m, a), (n, b)

    @property
    def verdict(self) -> Verdict:
        """Broken if the bound exceeds the promise; else nothing was found."""
        return Verdict.BROKEN if self.lower > self.promised_epsilon else Verdict.CONSISTENT

    @property
    def alarm(self) -> bool:
        """Whether the promise was found broken."""
        return self.verdict is Verdict.BROKEN

    @property
    def false_alarms(self) -> Fraction:
        """The chance, at most, that a target which keeps the promise is found to break it."""
        return 1 - self.confidence

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        (m, a), (n, b) = self.hits
        at = f" at δ = {amount_up(self.delta)}" if self.delta else ""
        return (
            f"{self.name}: ε ≥ {amount_down(self.lower, 4)}{at} with confidence "
            f"{amount_down(self.confidence, 9)}, where ε = {amount_up(self.promised_epsilon, 4)} "
            f"is promised ({self.verdict}). Best event: {self.event}: {a} of {m} games in world 0, "
            f"{b} of {n} in world 1."
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": "game",
            "name": self.name,
            "promised": str(self.promise),
            "promised_epsilon": amount_up(self.promised_epsilon, 12),
            "delta": amount_up(self.delta, 12),
            "lower": amount_down(self.lower, 12),
            "confidence": amount_down(self.confidence, 12),
            "false_alarms": amount_up(self.false_alarms, 12),
            "trials": self.trials,
            "event": self.event,
            "hits": [list(side) for side in self.hits],
            "roc": [list(point) for point in self.roc],
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """The adversary's ROC beside the one the promise allows, as SVG."""
        alphas = [k / 200 for k in range(201)]
        lines = (
            Line("possible with this promise", [(a, self.promise.power(a)) for a in alphas], True),
            Line("what the adversary reached", self.roc),
            Line("guessing blindly", [(0, 0), (1, 1)]),
        )
        chart = Chart(
            "Telling which world it is",
            Axis("wrong in one world", 0, 1, percent=True),
            Axis("right in the other", 0, 1, percent=True),
            lines,
        )
        return svg((chart,), title=self.name[:60], description=self.sentence)

    def _repr_svg_(self) -> str:
        """Shown by notebooks."""
        return self.picture()


def game(  # noqa: PLR0913 (each is one word of the experiment)
    target: Target | Curator,
    d0: Any,
    d1: Any,
    adversary: Adversary | None = None,
    trials: int = 100_000,
    *,
    promised: Promised | None = None,
    confidence: Number = "0.999",
    batch: bool = False,
    adjacent: Adjacent = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Game:
    """Play ``trials`` games in either world and bound from below what the target loses.

    ``adjacent`` says of the two data sets whether they are neighbours, where that is not read off a
    schema; ``promised`` is what the target says it loses: an epsilon, (epsilon, delta), a loss, a
    budget or an exact audit. ``name`` is what the games are called, and ``progress`` is told how
    far they are.

    ``target(table)`` is one release; an ``adversary`` is given a function ``ask``
    that calls the target on the world's table with whatever arguments it chooses,
    as often as it likes, and returns its view: a number, or anything else with a
    text.  Of views with parts (vectors, rows, transcripts) scores are learned, from
    games that do not decide.  What keeps its promise is found broken with chance
    at most 1 - ``confidence``.  A target that raises has an outcome too: what kind
    of error it was.  With ``batch``, ``target(table, size)`` makes so many releases at
    once and the adversary, if there is one, maps the array of them to one view each.

    A curator as target stands for its schema and its budget, which is then the promise: ``d0`` and
    ``d1`` are its tables by name, every game has a fresh account, and ``ask`` takes SQL and a
    spend. A script (:mod:`discreet.audit.crowd`) plays faster.

    >>> from discreet.mechanisms import Laplace
    >>> noisy = Laplace(sensitivity=2, epsilon="1/2")             # twice as much as it needs
    >>> import numpy as np
    >>> def count(table, size):
    ...     return noisy.release(np.full(size, len(table)))
    >>> found = game(count, [3, 5, 8], [3, 5, 8, 13], promised="1/2", batch=True, trials=20_000)
    >>> found.alarm, found.promised_epsilon
    (False, Fraction(1, 2))
    """
    if isinstance(target, Curator):
        promised = target.budget if promised is None else promised
    promise = _read_promise(promised)
    certainty = proportion(confidence, name="confidence")
    count = whole(trials, name="trials", least=1)
    _require_trials(count, promise, certainty)
    schema = target.schema if isinstance(target, Curator) else None
    neighbouring(d0, d1, schema=schema, adjacent=adjacent)
    named = name or getattr(adversary, "__name__", None) or getattr(target, "__name__", "target")
    report = _Share(progress)
    if isinstance(target, Curator):
        play = _curate(target, adversary)
    else:
        play = _batch if batch else _games
    views = [play(target, world, adversary, count, report) for world in (d0, d1)]
    return conclude(views[0], views[1], promise=promise, confidence=certainty, name=str(named))


def _read_promise(promised: Promised | None) -> Promise:
    """What games are to refute."""
    if promised is None:
        raise InvalidParameter(
            "P4",
            "nothing is promised.",
            why="without a promise there is nothing that games could refute.",
            fix="pass promised=..., such as promised=1 or promised=(1, '1e-6').",
        )
    return Promise.of(promised)


def _require_trials(count: int, promise: Promise, confidence: Fraction) -> None:
    """Refuse fewer games than could refute anything."""
    needed = trials_needed(promise, confidence=confidence)
    if count < needed:
        raise InvalidParameter(
            "P2",
            f"{count} games in either world cannot refute {promise} at this confidence.",
            why="however badly the target treats people, so few games could be chance.",
            fix=f"play at least trials={needed}, and more to find anything subtle.",
        )


def conclude(first: Any, second: Any, *, promise: Promise, confidence: Fraction, name: str) -> Game:
    """The conclusion from the views of both worlds, each a sequence of outcomes."""
    alpha = 1 - confidence
    (seen_0, fresh_0), (seen_1, fresh_1) = halves(first), halves(second)
    ways = look(seen_0, seen_1)
    chosen = search(ways, promise, alpha)
    fresh = chosen.reading.read(fresh_0), chosen.reading.read(fresh_1)
    judged = judge(chosen, fresh, alpha)
    looked = next(way.worlds for way in ways if way.reading is chosen.reading)
    return Game(name, promise, confidence, len(first), judged, _roc(looked, fresh))


def trials_needed(promised: Promised, *, confidence: Number = "0.999") -> int:
    """The fewest games in either world that could refute a promise, were the target to tell all.

    ``promised`` is as in ``game``, and so is ``confidence``.

    An event that always happens in one world and never in the other, n times each
    in the second half, certifies epsilon >= ln((x - delta) / (1 - x)) for
    x = (alpha / 2)**(1/n); n must make that more than is promised.

    >>> trials_needed(3, confidence="0.999"), trials_needed((3, "0.01"), confidence="0.999")
    (314, 318)
    """
    promise = Promise.of(promised)
    alpha = float(1 - proportion(confidence, name="confidence"))

    def fewest(epsilon: float, delta: float) -> float:
        # x above (growth + delta) / (1 + growth) refutes the point: one less this.
        missing = (1 - delta) / (1 + math.exp(min(epsilon, _MOST_EPSILON)))
        return math.log(alpha / 2) / math.log1p(-missing)

    half = min(fewest(float(epsilon), float(delta)) for epsilon, delta in promise.points)
    return 2 * (math.floor(half) + 1)


def _curate(target: Curator, adversary: Adversary | None) -> Callable[..., Any]:
    """Games against a curator of the same schema and budget, a fresh account in each."""
    if adversary is None:
        raise InvalidParameter(
            "P4",
            "a curator is attacked by an adversary, and none is given.",
            why="a curator that nobody asks tells nothing.",
            fix="pass a function of ask, or a script (see discreet.audit.crowd).",
        )

    def play(_: Any, world: Any, __: Any, count: int, report: _Share) -> Any:
        with Rehearsal(world, schema=target.schema, budget=target.budget) as rehearsal:
            if inspect.isgeneratorfunction(adversary):
                views = Crowd(rehearsal).play(adversary, count)
                report.more(1.0)
                return views
            return _games(
                lambda table: table.open(),
                rehearsal,
                lambda opened: adversary(opened().ask),
                count,
                report,
            )

    return play


# --- playing -----------------------------------------------------------------------------------


class _Share:
    """Reports how much of both worlds' games is done, now and then."""

    __slots__ = ("_done", "_progress")

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._done = progress, 0.0

    def more(self, share: float) -> None:
        self._done += share / 2
        if self._progress is not None:
            self._progress(min(self._done, 1.0))


def _games(
    target: Target, world: Any, adversary: Adversary | None, count: int, report: _Share
) -> list[Any]:
    views: list[Any] = []
    block = max(1, count // _REPORTS)

    def ask(*question: Any, **options: Any) -> Any:
        return target(world, *question, **options)

    def play() -> Any:
        return ask() if adversary is None else adversary(ask)

    for number in range(count):
        try:
            views.append(play())
        except Exception as error:  # an outcome, whatever it is
            views.append(outcome_of(error))
        if number % block == block - 1:
            report.more(block / count)
    return views


def _batch(
    target: Target, world: Any, adversary: Adversary | None, count: int, report: _Share
) -> Any:
    try:
        outputs = target(world, count)
        views = outputs if adversary is None else adversary(outputs)
    except Exception as error:
        views = [outcome_of(error)] * count
    report.more(1.0)
    found = views if isinstance(views, list) else np.atleast_1d(views)
    if len(found) != count:
        raise InvalidParameter(
            "P4",
            f"a batch of {count} games has views for {len(found)}.",
            why="games that are left out may be the ones that tell.",
            fix="return one output for each game, or pass batch=False.",
        )
    if isinstance(found, np.ndarray) and (found.ndim > 2 or found.dtype.kind not in "biuf"):
        return [tuple(row) if isinstance(row, list) else row for row in found.tolist()]
    return found


def _roc(
    looked: tuple[Outcomes, Outcomes], fresh: tuple[Outcomes, Outcomes]
) -> tuple[tuple[float, float], ...]:
    """How often either world's fresh games are among the likeliest for world 1.

    Which outcomes speak for world 1 is learned from the other half: games that
    were sorted by themselves would seem to tell where there is nothing to tell.
    """
    known = np.concatenate([w.scores[w.labels == 0] for w in looked])
    cuts = np.unique(known[:: max(1, len(known) // 2000)]) if len(known) else np.array([])
    cuts = cuts[np.linspace(0, len(cuts) - 1, min(_CURVE, len(cuts))).astype(int)]
    size = len(cuts) + len(looked[0].names) + 1
    learned, rates = ([_rates(w, cuts, size) for w in half] for half in (looked, fresh))
    order = np.argsort(-(learned[1] + 1e-12) / (learned[0] + 1e-12), kind="stable")
    steps = [np.concatenate([[0.0], np.cumsum(rate[order])]) for rate in rates]
    return tuple((round(float(x), 6), round(float(y), 6)) for x, y in zip(*steps, strict=True))


def _rates(outcomes: Outcomes, cuts: Any, size: int) -> Any:
    """The share of games in each cell between two cuts, then of each label."""
    cells = np.searchsorted(cuts, np.nan_to_num(outcomes.scores, nan=0.0))
    codes = np.where(outcomes.labels > 0, len(cuts) + outcomes.labels, cells)
    return np.bincount(codes, minlength=size) / max(1, len(codes))


__all__ = ["Adversary", "Game", "Target", "conclude", "game", "trials_needed"]
