"""Events: finding one that tells two worlds apart, and judging it on fresh games.

Half of the games of either world are looked at to choose how views are read, an event,
a world that it speaks for and a point of the promise; the other half alone decides.  So
however cleverly the event was searched for, one event is judged, once, and what keeps its
promise is accused with chance at most alpha.

An event is a set of outcomes.  Scores are cut at thresholds; outcomes without an
order, and scores once more in narrow cells, are sorted by how much likelier they
were in one world, and the likeliest so many make an event (Neyman and Pearson:
of all events of a size, the sharpest are of that form).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.audit.features import has_parts
from discreet.audit.frozen import freeze_bytes
from discreet.audit.learning import Lens, learn
from discreet.audit.promise import Promise
from discreet.audit.proportions import at_least, at_most
from discreet.errors import Refusal
from discreet.exact.balls import log_down

Floats = NDArray[np.float64]
Counts = NDArray[Any]
Codes = NDArray[np.int64]
Views = Any
"""What one world's games ended with: an array of numbers, or a list of anything."""

_THRESHOLDS = 120
_CELLS = 48
_WARY = 1.4
_PLAINER = 0.99  # a threshold is preferred to a set that is hardly better
_FEW = 400
"""So many different outcomes, at most, are told apart one by one."""
_MOST_LABELS = 4000
_LEAST_LEARNED = 40  # games to look at: from fewer there is nothing to learn
_UNDEFINED = "not a number"


def outcome_of(error: Exception) -> str:
    """An error as an outcome: its kind, and its code where it is a refusal."""
    return (
        f"refused {error.code}" if isinstance(error, Refusal) else f"raised {type(error).__name__}"
    )


# --- views and how they are read -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a world showed, as it was read: a score for each game, or NaN and a label."""

    scores: Floats
    labels: Codes  # 0 where there is a score, else the index of the label in ``names``, from 1
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)


def halves(views: Views) -> tuple[Views, Views]:
    """A half to look at and a half to judge.

    Shuffled by bytes that no target knows of: a target that does something in
    every other release must not have it all in one half.

    >>> [len(half) for half in halves([3, 5, 8, 13, 21])]
    [3, 2]
    """
    keys = np.frombuffer(freeze_bytes("halves", 4 * len(views)), dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    middle = (len(views) + 1) // 2
    if isinstance(views, np.ndarray):
        return views[order[:middle]], views[order[middle:]]
    looked, fresh = ([views[i] for i in part] for part in (order[:middle], order[middle:]))
    return looked, fresh


class Reading(Protocol):
    """A way to read views as outcomes, fixed before the views that are judged are seen."""

    @property
    def words(self) -> str:
        """What its score is, in words."""
        ...

    def read(self, views: Views) -> Outcomes:
        """The outcomes of some views."""
        ...


_RARE = "an outcome that was too rare to be told apart"


@dataclass(frozen=True, slots=True)
class Plain:
    """Numbers as they are, and whatever else by its text, if that was seen while looking.

    All texts that were not seen then, or hardly, are one outcome.  If each were one
    of its own, those that came in one world's judged games alone would be known
    to be that world's.
    """

    names: tuple[str, ...]
    codes: Mapping[str, int]
    words: str = "the score"

    @classmethod
    def learn(cls, looked: Sequence[Views]) -> Plain:
        """The texts of these views that came at least twice."""
        seen: Counter[str] = Counter()
        for views in looked:
            if not _is_numeric(views):
                seen.update(_text(view) for view in _list_views(views) if not _is_number(view))
            elif np.isnan(views).any():
                seen.update({_UNDEFINED: 2})
        often = sorted((name for name, n in seen.items() if n > 1), key=lambda name: -seen[name])
        names = (_RARE, *often[:_MOST_LABELS])
        return cls(names, {name: code for code, name in enumerate(names[1:], start=2)})

    def read(self, views: Views) -> Outcomes:
        """A score, or the label of a text."""
        if _is_numeric(views):
            scores = np.asarray(views, dtype=np.float64)
            undefined = self.codes.get(_UNDEFINED, 1)
            return Outcomes(scores, np.where(np.isnan(scores), undefined, 0), self.names)
        scores, labels = np.full(len(views), np.nan), np.zeros(len(views), dtype=np.int64)
        if _is_table(views) and not self.codes:  # vectors that hardly ever come twice
            return Outcomes(scores, labels + 1, self.names)
        for index, view in enumerate(_list_views(views)):
            if _is_number(view):
                scores[index] = _double(view)
            else:
                labels[index] = self.codes.get(_text(view), 1)
        return Outcomes(scores, labels, self.names)


@dataclass(frozen=True, slots=True)
class Learned:
    """A score that was learned from a part of the views that were looked at."""

    lens: Lens
    index: int

    @property
    def words(self) -> str:
        """Which score it is."""
        return f"the learned score ({self.lens.scorers[self.index].words})"

    def read(self, views: Views) -> Outcomes:
        """A score for every view."""
        return _score(self.lens.scores(views, [self.index])[0])


def _score(scores: Floats) -> Outcomes:
    return Outcomes(scores, np.zeros(len(scores), dtype=np.int64))


def _is_numeric(views: Views) -> bool:
    return isinstance(views, np.ndarray) and views.ndim == 1 and views.dtype.kind in "biuf"


def _is_table(views: Views) -> bool:
    return isinstance(views, np.ndarray) and views.ndim > 1


def _list_views(views: Views) -> Iterable[Any]:
    """The views one by one; a row of an array as a tuple of plain numbers."""
    if not _is_table(views):
        return views  # type: ignore[no-any-return]
    return map(tuple, views.tolist())


def _is_number(view: Any) -> bool:
    return isinstance(view, int | float | np.number | Fraction) and not _is_undefined(view)


def _is_undefined(view: Any) -> bool:
    return isinstance(view, float | np.floating) and bool(np.isnan(view))


def _double(view: Any) -> float:
    try:
        return float(view)
    except OverflowError:
        return math.inf if view > 0 else -math.inf


def _text(view: Any) -> str:
    if _is_undefined(view):
        return _UNDEFINED
    return view if isinstance(view, str) else repr(view)


@dataclass(frozen=True, slots=True)
class Looked:
    """One way to read, what it makes of the games that were looked at, and of how many of them."""

    reading: Reading
    worlds: tuple[Outcomes, Outcomes]
    share: float = 1.0  # of the games that were looked at; the others taught the score


def look(first: Views, second: Views) -> list[Looked]:
    """All ways to read these views: as they are, and where they have parts by learned scores.

    A score is learned from every other game and looked at on the rest: on the games
    that taught it, it would seem to tell where there is nothing to tell.
    """
    plain = Plain.learn((first, second))
    ways = [Looked(plain, (plain.read(first), plain.read(second)))]
    if _is_numeric(first) or _is_numeric(second) or min(len(first), len(second)) < _LEAST_LEARNED:
        return ways
    tables = _is_table(first) and _is_table(second)
    if not tables and not any(has_parts(view) for views in (first, second) for view in views):
        return ways
    lens = learn(first[::2], second[::2])
    scores = lens.scores(first[1::2]), lens.scores(second[1::2])
    for index, pair in enumerate(zip(*scores, strict=True)):
        zero, one = (_score(part) for part in pair)
        ways.append(Looked(Learned(lens, index), (zero, one), share=len(zero) / len(first)))
    return ways


# --- events --------------------------------------------------------------------------------------


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
    reading: Reading


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


def search(ways: Sequence[Looked], promise: Promise, alpha: Fraction) -> Chosen:
    """The event and the point that seem to refute the promise most; nothing is certain here."""
    best: tuple[float, Chosen] | None = None
    # Wider than the bound will be: of events that seem alike the one that varies less is safer.
    reach = _WARY * math.sqrt(-2 * math.log(float(alpha) / 2))
    for way in ways:
        # As if all games had been read so, to compare with ways that need no teaching.
        n = [len(world) / way.share for world in way.worlds]
        for events, counts, plain in _families(way):
            for likelier in (0, 1):
                over, under = counts[:, likelier], counts[:, 1 - likelier]
                p = _end(over / way.share, n[likelier], reach, -1)
                q = _end(under / way.share, n[1 - likelier], reach, +1)
                for point in promise.points:
                    worth, index = _worth(p, q, point)
                    worth *= 1.0 if plain or worth <= 0 else _PLAINER
                    if best is None or worth > best[0]:
                        best = worth, Chosen(events(index), likelier, point, way.reading)
    if best is None:
        everything = Event("anything at all", ((-math.inf, math.inf),))
        return Chosen(everything, 0, promise.points[0], ways[0].reading)
    return best[1]


def _worth(p: Floats, q: Floats, point: tuple[Fraction, Fraction]) -> tuple[float, int]:
    """How far the best of some events is beyond the promise, and which it is."""
    epsilon, delta = float(point[0]), float(point[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(p > delta, np.log((p - delta) / q), -np.inf)
    index = int(np.argmax(bound))
    most = float(bound[index])
    return (most / max(epsilon, 1e-9) if most > 0 else most), index


def _end(hits: Counts, trials: float, reach: float, side: int) -> Floats:
    """Wilson's interval: near enough to the exact one to choose by."""
    rate, z2 = hits / trials, reach * reach / trials
    middle = rate + z2 / 2
    width = reach * np.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials))
    ends: Floats = np.clip((middle + side * width) / (1 + z2), 1e-12, 1.0)
    return ends


# --- families of events ------------------------------------------------------------------------


def _families(way: Looked) -> Iterator[tuple[Any, Counts, bool]]:
    """For each family: from an index to its event, the hits of both worlds, and if it is plain."""
    scores = [world.scores[world.labels == 0] for world in way.worlds]
    pooled = np.unique(np.concatenate(scores))
    name = way.reading.words
    if len(pooled):
        cuts = _cuts(pooled)
        below = np.stack([np.searchsorted(np.sort(s), cuts, side="right") for s in scores], axis=1)
        first = np.nextafter(cuts, np.inf)
        totals = np.array([len(s) for s in scores])
        plain = way.share == 1.0
        yield (lambda i: _below(name, float(cuts[i]))), below, plain
        yield (lambda i: _above(name, float(cuts[i]), float(first[i]))), totals - below, plain
    yield from _sort_cells(way, scores, pooled)


def _below(name: str, cut: float) -> Event:
    return Event(f"{name} is at most {cut:.6g}", ((-math.inf, cut),))


def _above(name: str, cut: float, first: float) -> Event:
    return Event(f"{name} is more than {cut:.6g}", ((first, math.inf),))


def _cuts(pooled: Floats) -> Floats:
    if len(pooled) <= _THRESHOLDS:
        return pooled
    chosen: Floats = pooled[np.linspace(0, len(pooled) - 1, _THRESHOLDS).astype(int)]
    return chosen


def _sort_cells(
    way: Looked, scores: list[Floats], pooled: Floats
) -> Iterator[tuple[Any, Counts, bool]]:
    looked, what = way.worlds, "the outcome" if way.share == 1.0 else way.reading.words
    cells: list[tuple[str, tuple[tuple[float, float], ...], frozenset[int]]] = []
    counts: list[tuple[list[int], list[int]]] = []
    for low, high in _edges(scores, pooled):
        text = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        cells.append((text, ((low, high),), frozenset()))
        counts.append(_part([(w.scores >= low) & (w.scores <= high) for w in looked]))
    names = looked[0].names
    hits_of = [
        [np.bincount(w.labels[k::2], minlength=len(names) + 1) for w in looked] for k in (0, 1)
    ]
    for label, name in enumerate(names, start=1):
        sorting, counting = ([int(world[label]) for world in part] for part in hits_of)
        cells.append((name, (), frozenset([label])))
        counts.append((sorting, counting))
    if not cells:
        return
    # Sorted by one part and counted on the other, or chance would seem to be telling.
    sorting_by, hits = (np.array(part, dtype=float) for part in zip(*counts, strict=True))
    share = (sorting_by[:, 0] + 0.5) / len(looked[0]) / ((sorting_by[:, 1] + 0.5) / len(looked[1]))
    for order in (np.argsort(-share, kind="stable"), np.argsort(share, kind="stable")):
        kept = [cells[i] for i in order]
        yield (
            (lambda i, kept=kept: _union(what, kept[: i + 1])),
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
    what: str,
    cells: Sequence[tuple[str, tuple[tuple[float, float], ...], frozenset[int]]],
) -> Event:
    texts = [text for text, _, _ in cells]
    shown = ", ".join(texts[:6]) + (f" and {len(texts) - 6} others" if len(texts) > 6 else "")
    return Event(
        f"{what} is {'one of ' if len(texts) > 1 else ''}{shown}",
        tuple(interval for _, intervals, _ in cells for interval in intervals),
        frozenset(label for _, _, labels in cells for label in labels),
    )


__all__ = [
    "Chosen",
    "Event",
    "Judged",
    "Looked",
    "Outcomes",
    "Plain",
    "Reading",
    "halves",
    "judge",
    "look",
    "outcome_of",
    "search",
]
