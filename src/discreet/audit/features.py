"""Views of several parts as columns of numbers: what a learner may look at.

A view is flattened into a list of numbers and words: a vector, an answer's rows, a
transcript.  What is a column (which places, which words, between which bounds) is
decided by the views that are given to learn from, and by them alone; other views
are read in the same way, whatever they hold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PLACES: Final = 64  # parts of a view that are looked at
_WORDS: Final = 16  # words whose presence, and the number behind which, is a column
_PAIRS: Final = 6  # as many places are compared each with each; more, each with the next
_FURTHEST: Final = 1e300  # beyond, sums and differences would no longer be numbers


def flatten(view: Any) -> list[Any]:
    """The parts of a view in order: numbers as doubles, whatever else as text.

    >>> flatten([("Ulm", 3), ("Bonn", None)])
    ['Ulm', 3.0, 'Bonn', 'None']
    """
    return list(_parts(view))


def _parts(view: Any) -> Iterator[Any]:
    if isinstance(view, str):
        yield view
    elif isinstance(view, Mapping):
        for key in sorted(view, key=repr):
            yield from (key if isinstance(key, str) else repr(key), *_parts(view[key]))
    elif isinstance(view, Iterable):
        for part in view:
            yield from _parts(part)
    else:
        yield as_number(view)


def as_number(part: Any) -> float | str:
    """A number as a double, at most 10**300 in size; anything else as its text."""
    if not isinstance(part, int | float | Fraction | np.number | np.bool_):
        return repr(part)
    try:
        number = float(part)
    except OverflowError:
        number = math.inf if part > 0 else -math.inf
    return "not a number" if math.isnan(number) else max(-_FURTHEST, min(number, _FURTHEST))


def has_parts(view: Any) -> bool:
    """Whether a view is more than one number or one text."""
    return isinstance(view, Iterable) and not isinstance(view, str | bytes)


@dataclass(frozen=True, slots=True)
class Columns:
    """Named columns of numbers, NaN where a view has none; the first ``plain`` are its places."""

    names: tuple[str, ...]
    values: Floats  # one row for each view
    plain: int


@dataclass(frozen=True, slots=True)
class Reader:
    """How views become columns, fixed by the views it was learned from."""

    places: int
    codes: tuple[Mapping[str, int], ...] = ()  # of words at each place, by how often they came
    words: tuple[str, ...] = ()
    plain: bool = False  # vectors of numbers of one length

    @classmethod
    def learn(cls, views: Any) -> Reader:
        """Which places and words there are, from these views."""
        table = _table(views)
        if table is not None:
            places = min(table.shape[1], _PLACES)
            return cls(places, ({},) * places, (), plain=True)
        rows = [flatten(view) for view in views]
        places = min(max(map(len, rows), default=0), _PLACES)
        seen: list[Counter[str]] = [Counter() for _ in range(places)]
        anywhere: Counter[str] = Counter()
        for row in rows:
            for place, part in enumerate(row[:places]):
                if isinstance(part, str):
                    seen[place][part] += 1
            anywhere.update({part for part in row if isinstance(part, str)})
        ranked = [sorted(words, key=lambda w: (-words[w], w)) for words in (*seen, anywhere)]
        codes = tuple({word: i for i, word in enumerate(known)} for known in ranked[:-1])
        return cls(places, codes, tuple(ranked[-1][:_WORDS]))

    def read(self, views: Any) -> Columns:
        """The columns of views."""
        table = _table(views)
        if self.plain and table is not None and table.shape[1] >= self.places:
            return _derive(table[:, : self.places], [])
        numbers = np.full((len(views), self.places), np.nan)
        texts = np.full((len(views), self.places), np.nan)
        following = np.full((len(views), len(self.words)), np.nan)
        lengths = np.zeros(len(views))
        known = {word: index for index, word in enumerate(self.words)}
        for row, view in enumerate(views):
            parts = flatten(view)
            lengths[row] = len(parts)
            for place, part in enumerate(parts):
                if isinstance(part, str):
                    self._read_word(row, place, parts, texts, following, known)
                elif place < self.places:
                    numbers[row, place] = part
        if self.plain:
            return _derive(numbers, [])
        more: list[tuple[str, Floats]] = [("how many parts there are", lengths)]
        for place, codes in enumerate(self.codes):
            if codes:
                more.append((f"the word at place {place + 1}", texts[:, place]))
        more += [(f"what follows {w!r}", following[:, i]) for i, w in enumerate(self.words)]
        return _derive(numbers, more)

    def _read_word(
        self,
        row: int,
        place: int,
        parts: list[Any],
        texts: Floats,
        following: Floats,
        known: Mapping[str, int],
    ) -> None:
        """A word by its code (all that were not learned have one), and the number after it."""
        word = parts[place]
        if place < self.places:
            texts[row, place] = self.codes[place].get(word, len(self.codes[place]))
        index = known.get(word)
        if index is not None:
            behind = parts[place + 1] if place + 1 < len(parts) else 0.0
            following[row, index] = 0.0 if isinstance(behind, str) else behind


def _table(views: Any) -> Floats | None:
    """Views that are vectors of numbers of one length, as an array; quickly."""
    if not isinstance(views, np.ndarray):
        if not all(type(view) in (tuple, list) for view in views):
            return None
        try:
            views = np.array(views)
        except ValueError:  # of several lengths
            return None
    if views.ndim != 2 or not views.size or views.dtype.kind not in "biuf":
        return None
    table = views.astype(np.float64)
    return None if np.isnan(table).any() else np.clip(table, -_FURTHEST, _FURTHEST)


def _derive(numbers: Floats, more: list[tuple[str, Floats]]) -> Columns:
    """Places, then words, then what places are together: differences, sums, order, equality."""
    size = numbers.shape[1]
    named = [(f"the number at place {i + 1}", numbers[:, i]) for i in range(size)] + more
    plain = len(named)
    if size > 1:
        pairs = (
            list(combinations(range(size), 2))
            if size <= _PAIRS
            else [(i, i + 1) for i in range(size - 1)]
        )
        named += [
            (f"place {b + 1} less place {a + 1}", numbers[:, b] - numbers[:, a]) for a, b in pairs
        ]
        sums = np.cumsum(np.nan_to_num(numbers), axis=1)
        named += [(f"the sum of the first {i + 1}", sums[:, i]) for i in range(1, size)]
        ordered = np.sort(numbers, axis=1)
        named += [(f"the {i + 1}. in order", ordered[:, i]) for i in range(min(size, _PAIRS))]
        named += [("the greatest", np.max(np.nan_to_num(numbers, nan=-_FURTHEST), axis=1))]
        equal = (numbers[:, 1:] == numbers[:, :-1]).sum(axis=1)
        named += [("how many places equal the next", equal.astype(np.float64))]
        distinct = (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
        named += [("how many numbers differ", distinct.astype(np.float64))]
    return Columns(tuple(n for n, _ in named), np.column_stack([v for _, v in named]), plain)


__all__ = ["Columns", "Reader", "as_number", "flatten", "has_parts"]
