"""Events: finding one that tells two worlds apart, and judging it on fresh games.

Half of the games of either world are looked at to choose an event, a world that
it speaks for and a point of the promise; the other half alone decides.  So
however cleverly the event was searched for, one event is judged, once.

An event is a set of outcomes.  Scores are cut at thresholds; outcomes without an
order, and scores once more in narrow cells, are sorted by how much likelier they
were in one world, and the likeliest so many make an event (Neyman and Pearson:
of all events of a size, the sharpest are of that form).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.frozen import frozen_bytes
from discreet.audit.promise import Promise
from discreet.audit.proportions import at_least, at_most
from discreet.errors import Refusal
from discreet.exact.balls import log_down

Floats = NDArray[np.float64]
Counts = NDArray[Any]
Codes = NDArray[np.int64]

_THRESHOLDS = 120
_CELLS = 48
_WARY = 1.4
_PLAINER = 0.99  # a threshold is preferred to a set that is hardly better
_FEW = 400
"""So many different outcomes, at most, are told apart one by one."""


def outcome_of(error: Exception) -> str:
    """An error as an outcome: its kind, and its code where it is a refusal."""
    return (
        f"refused {error.code}" if isinstance(error, Refusal) else f"raised {type(error).__name__}"
    )


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What either world showed: a score for each game, or NaN and a label."""

    scores: Floats
    labels: Codes  # 0 where there is a score, else the index of the label in ``names``, from 1
    names: tuple[str, ...] = ()

    @classmethod
    def pair(cls, first: Sequence[Any], second: Sequence[Any]) -> tuple[Outcomes, Outcomes]:
        """The views of two worlds; what is not a number is known by its text."""
        names: dict[Hashable, int] = {}
        coded = [_encode(views, names) for views in (first, second)]
        known = tuple(str(name) for name in names)
        (a, b), (c, d) = coded
        return cls(a, b, known), cls(c, d, known)

    def __len__(self) -> int:
        return len(self.scores)

    def halves(self) -> tuple[Outcomes, Outcomes]:
        """A half to look at and a half to judge.

        Shuffled by bytes that no target knows of: a target that does something in
        every other release must not have it all in one half.
        """
        keys = np.frombuffer(frozen_bytes("halves", 4 * len(self)), dtype=np.uint32)
        order = np.argsort(keys, kind="stable")
        middle = (len(self) + 1) // 2
        looked, fresh = (
            Outcomes(self.scores[part], self.labels[part], self.names)
            for part in (order[:middle], order[middle:])
        )
        return looked, fresh


def _encode(views: Sequence[Any], names: dict[Hashable, int]) -> tuple[Floats, Codes]:
    if isinstance(views, np.ndarray) and views.ndim == 1 and views.dtype.kind in "biuf":
        scores = views.astype(np.float64)
        return scores, np.where(np.isnan(scores), _label("not a number", names), 0)
    scores, labels = np.full(len(views), np.nan), np.zeros(len(views), dtype=np.int64)
    for index, view in enumerate(views):
        if isinstance(view, int | float | np.number | Fraction) and not _is_undefined(view):
            scores[index] = _double(view)
        else:
            labels[index] = _label(view, names)
    return scores, labels


def _is_undefined(view: Any) -> bool:
    return isinstance(view, float | np.floating) and bool(np.isnan(view))


def _double(view: Any) -> float:
    try:
        return float(view)
    except OverflowError:
        return math.inf if view > 0 else -math.inf


def _label(view: Any, names: dict[Hashable, int]) -> int:
    key = view if isinstance(view, str) else repr(view)
    return names.setdefault(key, len(names) + 1)


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outcomes, in words and as a rule."""

    words: str
    intervals: tuple[tuple[float, float], ...] = ()  # low <= score <= high
    labels: frozenset[int] = frozenset()

    def count(self, outcomes: Outcomes) -> int:
        """How many games ended in the event."""
        inside = np.zeros(len(outcomes), dtype=bool)
        for low, high in self.intervals:
            inside |= (outcomes.scores >= low) & (outcomes.scores <= high)
        if self.labels:
            inside |= np.isin(outcomes.labels, list(self.labels))
        return int(inside.sum())


@dataclass(frozen=True, slots=True)
class Chosen:
    """An event, the world in which it should be the likelier, and a point of the promise."""

    event: Event
    likelier: int
    point: tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Judged:
    """What fresh games say of a chosen event: a certified lower bound of epsilon at delta."""

    chosen: Chosen
    hits: tuple[int, int]  # in world 0 and in world 1
    trials: tuple[int, int]
    lower: Fraction | float


def judge(chosen: Chosen, fresh: tuple[Outcomes, Outcomes], alpha: Fraction) -> Judged:
    """Wrong with chance at most ``alpha``: each of two probabilities with half of it."""
    hits = chosen.event.count(fresh[0]), chosen.event.count(fresh[1])
    trials = len(fresh[0]), len(fresh[1])
    over, under = chosen.likelier, 1 - chosen.likelier
    p = at_least(hits[over], trials[over], alpha / 2)
    q = at_most(hits[under], trials[under], alpha / 2)
    gap = p - chosen.point[1]
    lower: Fraction | float = -math.inf if gap <= 0 else log_down(gap / q)
    return Judged(chosen, hits, trials, lower)


def search(looked: tuple[Outcomes, Outcomes], promise: Promise, alpha: Fraction) -> Chosen:
    """The event and the point that seem to refute the promise most; nothing is certain here."""
    best: tuple[float, Chosen] | None = None
    n = len(looked[0]), len(looked[1])
    # Wider than the bound will be: of events that seem alike the one that varies less is safer.
    reach = _WARY * math.sqrt(-2 * math.log(float(alpha) / 2))
    for events, counts, plain in _families(looked):
        for likelier in (0, 1):
            over, under = counts[:, likelier], counts[:, 1 - likelier]
            p = _end(over, n[likelier], reach, -1)
            q = _end(under, n[1 - likelier], reach, +1)
            for point in promise.points:
                epsilon, delta = float(point[0]), float(point[1])
                with np.errstate(divide="ignore", invalid="ignore"):
                    bound = np.where(p > delta, np.log((p - delta) / q), -np.inf)
                index = int(np.argmax(bound))
                worth = bound[index] / max(epsilon, 1e-9) if bound[index] > 0 else bound[index]
                worth *= 1.0 if plain or worth <= 0 else _PLAINER
                if best is None or worth > best[0]:
                    best = worth, Chosen(events(index), likelier, point)
    if best is None:
        return Chosen(Event("anything at all", ((-math.inf, math.inf),)), 0, promise.points[0])
    return best[1]


def _end(hits: Counts, trials: float, reach: float, side: int) -> Floats:
    """Wilson's interval: near enough to the exact one to choose by."""
    rate, z2 = hits / trials, reach * reach / trials
    middle = rate + z2 / 2
    width = reach * np.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials))
    ends: Floats = np.clip((middle + side * width) / (1 + z2), 1e-12, 1.0)
    return ends


# --- families of events ------------------------------------------------------------------------


def _families(looked: tuple[Outcomes, Outcomes]) -> Iterator[tuple[Any, Counts, bool]]:
    """For each family: from an index to its event, the hits of both worlds, and if it is plain."""
    scores = [outcome.scores[outcome.labels == 0] for outcome in looked]
    pooled = np.unique(np.concatenate(scores))
    if len(pooled):
        cuts = _cuts(pooled)
        below = np.stack([np.searchsorted(np.sort(s), cuts, side="right") for s in scores], axis=1)
        first = np.nextafter(cuts, np.inf)
        totals = np.array([len(s) for s in scores])
        yield (lambda i: _below(float(cuts[i]))), below, True
        yield (lambda i: _above(float(cuts[i]), float(first[i]))), totals - below, True
    yield from _sorted_cells(looked, scores, pooled)


def _below(cut: float) -> Event:
    return Event(f"the score is at most {cut:.6g}", ((-math.inf, cut),))


def _above(cut: float, first: float) -> Event:
    return Event(f"the score is more than {cut:.6g}", ((first, math.inf),))


def _cuts(pooled: Floats) -> Floats:
    if len(pooled) <= _THRESHOLDS:
        return pooled
    chosen: Floats = pooled[np.linspace(0, len(pooled) - 1, _THRESHOLDS).astype(int)]
    return chosen


def _sorted_cells(
    looked: tuple[Outcomes, Outcomes], scores: list[Floats], pooled: Floats
) -> Iterator[tuple[Any, Counts, bool]]:
    edges = _edges(scores, pooled)
    cells: list[tuple[str, tuple[tuple[float, float], ...], frozenset[int]]] = []
    counts: list[tuple[list[int], list[int]]] = []
    for low, high in edges:
        text = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        cells.append((text, ((low, high),), frozenset()))
        counts.append(_part([(w.scores >= low) & (w.scores <= high) for w in looked]))
    for label, name in enumerate(looked[0].names, start=1):
        cells.append((name, (), frozenset([label])))
        counts.append(_part([outcome.labels == label for outcome in looked]))
    if not cells:
        return
    # Sorted by one part and counted on the other, or chance would seem to be telling.
    sorting, hits = (np.array(part, dtype=float) for part in zip(*counts, strict=True))
    share = (sorting[:, 0] + 0.5) / len(looked[0]) / ((sorting[:, 1] + 0.5) / len(looked[1]))
    for order in (np.argsort(-share, kind="stable"), np.argsort(share, kind="stable")):
        kept = [cells[i] for i in order]
        yield (
            (lambda i, kept=kept: _union(kept[: i + 1])),
            2 * np.cumsum(hits[order], axis=0),
            False,
        )


def _part(inside: list[NDArray[np.bool_]]) -> tuple[list[int], list[int]]:
    """The hits of both worlds among every other game, and among the rest."""
    first, second = ([int(part[start::2].sum()) for part in inside] for start in (0, 1))
    return first, second


def _edges(scores: list[Floats], pooled: Floats) -> list[tuple[float, float]]:
    """One cell for each outcome if they are few, else cells of about the same mass."""
    if len(pooled) <= _FEW:
        return [(x, x) for x in pooled.tolist()]
    everything = np.sort(np.concatenate(scores))
    ends = np.unique(everything[np.linspace(0, len(everything) - 1, _CELLS + 1).astype(int)])
    starts = np.concatenate([[-np.inf], np.nextafter(ends[1:-1], np.inf)])
    stops = np.concatenate([ends[1:-1], [np.inf]])
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _union(
    cells: Sequence[tuple[str, tuple[tuple[float, float], ...], frozenset[int]]],
) -> Event:
    texts = [text for text, _, _ in cells]
    shown = ", ".join(texts[:6]) + (f" and {len(texts) - 6} others" if len(texts) > 6 else "")
    return Event(
        f"the outcome is {'one of ' if len(texts) > 1 else ''}{shown}",
        tuple(interval for _, intervals, _ in cells for interval in intervals),
        frozenset(label for _, _, labels in cells for label in labels),
    )


__all__ = ["Chosen", "Event", "Judged", "Outcomes", "judge", "outcome_of", "search"]
