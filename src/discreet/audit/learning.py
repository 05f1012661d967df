"""Scores of views that are learned from examples of two worlds.

Three learners, each for what the others are blind to: naive Bayes (noise of its own
on every part: the log-ratios add), Fisher's discriminant (one draw used twice:
some combination of parts has no noise), and boosted trees over everything (what
tells only together with something else: "all below, and then a small number").
Deterministic given the examples.  How well a score tells is judged on other games,
so that nothing here can convict: a bad learner finds less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.audit.features import Columns, Reader

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_BINS: Final = 32
_IN_A_BIN: Final = 150  # examples: fewer would be believed for what is chance
_EXAMPLES: Final = 12_000  # of either world
_ROUNDS: Final = 24
_CHANCE: Final = 12.0  # the best of some hundred questions gains as much where nothing tells
_DEPTH: Final = 3
_PACE: Final = 0.4  # of what a tree says, this much is believed
_LEAST: Final = 4.0  # information in a leaf, as so many fair coins / 4
_RIDGE: Final = 1e-12


class Scorer(Protocol):
    """A score: the greater, the more a view speaks for world 1."""

    @property
    def words(self) -> str:
        """What is scored, in words."""
        ...

    def score(self, columns: Columns) -> Floats:
        """The score of every row."""
        ...


@dataclass(frozen=True, slots=True)
class Lens:
    """A learned score of views, with how they are read."""

    reader: Reader
    scorers: tuple[Scorer, ...]

    def scores(self, views: Any, which: Iterable[int] | None = None) -> list[Floats]:
        """One array of scores for each scorer, or for some of them by their numbers."""
        columns = self.reader.read(views)
        chosen = range(len(self.scorers)) if which is None else which
        return [self.scorers[index].score(columns) for index in chosen]


def learn(first: Any, second: Any) -> Lens:
    """Scores that tell these views of world 0 from those of world 1."""
    zero, one = first[:_EXAMPLES], second[:_EXAMPLES]
    arrays = isinstance(zero, np.ndarray) and isinstance(one, np.ndarray)
    examples = np.concatenate([zero, one]) if arrays else [*zero, *one]
    world = np.zeros(len(examples))
    world[len(zero) :] = 1.0
    reader = Reader.learn(examples)
    columns = reader.read(examples)
    bayes = Bayes.learn(columns, world)
    fisher = Fisher.learn(columns, world)
    simple = tuple(one for one in (bayes, fisher) if one is not None)
    return Lens(reader, (*simple, Trees.learn(columns, world, simple)))


# --- bins --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bins:
    """Every column in at most 32 bins of about the same mass, and one for what is missing."""

    edges: tuple[Floats, ...]

    @classmethod
    def learn(cls, values: Floats) -> Bins:
        """Few values have a bin each."""
        edges = []
        for column in values.T:
            known = column[~np.isnan(column)]
            distinct = np.unique(known)
            if len(distinct) > _BINS:
                bins = max(4, min(_BINS, len(known) // _IN_A_BIN))
                ranks = np.linspace(0, len(known) - 1, bins + 1)[1:-1].astype(int)
                distinct = np.unique(np.sort(known)[ranks])
            edges.append(distinct)
        return cls(tuple(edges))

    def codes(self, values: Floats) -> Codes:
        """The bin of every entry: 0 to 32, and 33 for what is missing."""
        found = [
            np.where(np.isnan(column), _BINS + 1, np.searchsorted(edge, column, side="left"))
            for edge, column in zip(self.edges, values.T, strict=True)
        ]
        return np.column_stack(found).astype(np.int64)


_CELLS: Final = _BINS + 2


# --- the learners ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bayes:
    """The sum over all parts of how much likelier each is in world 1, in logarithms."""

    bins: Bins
    ratios: Floats  # a row of cells for each column
    words: str = "naive Bayes over the parts of the view"

    @classmethod
    def learn(cls, columns: Columns, world: Floats) -> Bayes:
        """The shares of both worlds in each bin; a bin that was not seen says nothing."""
        values = columns.values[:, : columns.plain]
        bins = Bins.learn(values)
        codes = bins.codes(values)
        ratios = [_log_ratio(codes[:, i], world) for i in range(values.shape[1])]
        return cls(bins, np.array(ratios).reshape(values.shape[1], _CELLS))

    def score(self, columns: Columns) -> Floats:
        """The sum of the log-ratios."""
        codes = self.bins.codes(columns.values[:, : self.ratios.shape[0]])
        total: Floats = np.take_along_axis(self.ratios, codes.T, axis=1).sum(axis=0)
        return total


def _log_ratio(codes: Codes, world: Floats) -> Floats:
    ones = np.bincount(codes, weights=world, minlength=_CELLS)
    zeros = np.bincount(codes, weights=1 - world, minlength=_CELLS)
    share: Floats = np.log((ones + 1) / (world.sum() + 1)) - np.log(
        (zeros + 1) / (len(world) - world.sum() + 1)
    )
    return share


@dataclass(frozen=True, slots=True)
class Fisher:
    """The combination of the places that moves furthest, in units of how much it varies."""

    kept: Codes
    center: Floats
    weights: Floats
    words: str = "Fisher's discriminant of the numbers"

    @classmethod
    def learn(cls, columns: Columns, world: Floats) -> Fisher | None:
        """None where fewer than two numbers are in every view, or nothing moves."""
        plain = columns.values[:, : columns.plain]
        kept = np.flatnonzero(~np.isnan(plain).any(axis=0) & (np.ptp(plain, axis=0) > 0))
        if len(kept) < 2 or min(world.sum(), len(world) - world.sum()) < 2:
            return None
        values = plain[:, kept]
        center, width = values.mean(axis=0), values.std(axis=0)
        scaled = (values - center) / width
        means = [scaled[world == w].mean(axis=0) for w in (0, 1)]
        rest = scaled - np.where(world[:, None] == 1, means[1], means[0])
        spread = rest.T @ rest / len(rest) + _RIDGE * np.eye(len(kept))
        weights = np.linalg.solve(spread, means[1] - means[0]) / width
        length = np.abs(weights * width).max()
        return cls(kept, center, weights / length) if np.isfinite(length) and length > 0 else None

    def score(self, columns: Columns) -> Floats:
        """Rounded, so that the last bits of the arithmetic do not tell equal sums apart."""
        found = (columns.values[:, self.kept] - self.center) @ self.weights
        return np.round(np.nan_to_num(found, nan=0.0), 6).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tree:
    """Yes-or-no questions about bins, three deep, and what each end is worth."""

    questions: tuple[tuple[Codes, Codes], ...]  # for each level: column and last bin, by node
    worth: Floats

    def read(self, codes: Codes) -> Floats:
        """The worth of the end that every row comes to."""
        node = np.zeros(len(codes), dtype=np.int64)
        rows = np.arange(len(codes))
        for column, last in self.questions:
            node = 2 * node + (codes[rows, column[node]] > last[node])
        found: Floats = self.worth[node]
        return found


@dataclass(frozen=True, slots=True)
class Trees:
    """Boosted trees (Friedman 2001) over all columns and the simpler scores."""

    bins: Bins
    simple: tuple[Scorer, ...]
    trees: tuple[Tree, ...]
    words: str

    @classmethod
    def learn(cls, columns: Columns, world: Floats, simple: tuple[Scorer, ...]) -> Trees:
        """Newton's steps on the logistic loss, one tree a step."""
        values = _beside(columns, simple)
        bins = Bins.learn(values)
        codes = bins.codes(values)
        total, trees = np.zeros(len(world)), []
        used = np.zeros(values.shape[1])
        for _ in range(_ROUNDS):
            belief = 1 / (1 + np.exp(-total))
            tree = _grow(codes, belief - world, np.maximum(belief * (1 - belief), 1e-6), used)
            if tree is None:
                break
            trees.append(tree)
            total = np.clip(total + tree.read(codes), -30, 30)
        names = [*columns.names, *(one.words for one in simple)]
        top = [names[i] for i in np.argsort(-used, kind="stable")[:2] if used[i] > 0]
        by = f", most of all by {' and '.join(top)}" if top else ""
        return cls(bins, simple, tuple(trees), f"boosted trees{by}")

    def score(self, columns: Columns) -> Floats:
        """The sum over all trees."""
        codes = self.bins.codes(_beside(columns, self.simple))
        total: Floats = sum((tree.read(codes) for tree in self.trees), np.zeros(len(codes)))
        return np.round(total, 9)


def _beside(columns: Columns, simple: tuple[Scorer, ...]) -> Floats:
    return np.column_stack([columns.values, *(one.score(columns) for one in simple)])


def _grow(codes: Codes, slope: Floats, weight: Floats, used: Floats) -> Tree | None:
    """The tree that lowers the loss most, level by level; ``used`` is told by which columns.

    None where even its first question gains no more than chance would.
    """
    node = np.zeros(len(codes), dtype=np.int64)
    questions = []
    for level in range(_DEPTH):
        column, last, gains = _best_questions(codes, node, 1 << level, slope, weight)
        if level == 0 and gains[0] < _CHANCE:
            return None
        np.add.at(used, column, gains)
        questions.append((column, last))
        node = 2 * node + (codes[np.arange(len(codes)), column[node]] > last[node])
    ends = 1 << _DEPTH
    sums = np.bincount(node, weights=slope, minlength=ends)
    mass = np.bincount(node, weights=weight, minlength=ends)
    return Tree(tuple(questions), -_PACE * sums / (mass + 1.0))


def _best_questions(
    codes: Codes, node: Codes, nodes: int, slope: Floats, weight: Floats
) -> tuple[Codes, Codes, Floats]:
    """For every node the column and bin whose question gains most; bin 33 asks nothing."""
    column = np.zeros(nodes, dtype=np.int64)
    last = np.full(nodes, _CELLS, dtype=np.int64)
    best = np.zeros(nodes)
    for index in range(codes.shape[1]):
        cell = node * _CELLS + codes[:, index]
        left, mass = (
            np.cumsum(
                np.bincount(cell, weights=of, minlength=nodes * _CELLS).reshape(nodes, _CELLS),
                axis=1,
            )
            for of in (slope, weight)
        )
        all_left, all_mass = left[:, -1:], mass[:, -1:]
        right, other = all_left - left, all_mass - mass
        gain = left**2 / (mass + 1) + right**2 / (other + 1) - all_left**2 / (all_mass + 1)
        gain = np.where((mass >= _LEAST) & (other >= _LEAST), gain, 0.0)
        place = np.argmax(gain, axis=1)
        found = gain[np.arange(nodes), place]
        better = found > best + 1e-9
        column, last = np.where(better, index, column), np.where(better, place, last)
        best = np.where(better, found, best)
    return column, last, best


__all__ = ["Bayes", "Bins", "Fisher", "Lens", "Scorer", "Tree", "Trees", "learn"]
