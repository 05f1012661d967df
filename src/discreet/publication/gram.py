"""Workloads of linear questions about one table, by their Gram matrix.

A planner needs only G = W'W of a workload W: how often two cells are asked
together.  For all ranges and all prefixes of an ordered column G has so much
structure that products with it are two cumulative sums, and it is never written
down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.numbers import whole
from discreet.publication.measure import Doubles


class Gram(Protocol):
    """W'W of a workload of ``questions`` linear questions about ``size`` cells."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    @property
    def questions(self) -> int:
        """How many questions there are."""

    def diagonal(self) -> Doubles:
        """How many questions touch each cell (squared weights)."""

    def multiply(self, rows: Doubles) -> Doubles:
        """``rows`` @ G, for rows of one number for each cell."""

    def dense(self) -> Doubles:
        """G itself."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How many rows are at or below each level: ``size`` questions.

    >>> Prefixes(3).dense().tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """

    size: int

    def __post_init__(self) -> None:
        whole(self.size, name="size", least=1)

    @property
    def questions(self) -> int:
        """One for each level."""
        return self.size

    def diagonal(self) -> Doubles:
        """Level i is in the prefixes from i on."""
        return np.arange(self.size, 0, -1, dtype=np.float64)

    def multiply(self, rows: Doubles) -> Doubles:
        """``rows`` @ G: G is the cumulative sum from the left, then from the right."""
        prefixes = np.cumsum(rows, axis=-1)
        return np.cumsum(prefixes[..., ::-1], axis=-1)[..., ::-1]

    def dense(self) -> Doubles:
        """G itself."""
        place = np.arange(self.size)
        return self.size - np.maximum.outer(place, place).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Ranges:
    """How many rows are in each interval of ``size`` levels: size (size + 1) / 2 questions.

    >>> Ranges(3).dense().tolist()
    [[3.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 3.0]]
    """

    size: int

    def __post_init__(self) -> None:
        whole(self.size, name="size", least=1)

    @property
    def questions(self) -> int:
        """One for each pair of ends."""
        return self.size * (self.size + 1) // 2

    def diagonal(self) -> Doubles:
        """Level i is in (i + 1)(n - i) intervals."""
        place = np.arange(self.size, dtype=np.float64)
        return (place + 1) * (self.size - place)

    def multiply(self, rows: Doubles) -> Doubles:
        """``rows`` @ G, with G_ij = (min + 1)(n - max): one cumulative sum from each side."""
        place = np.arange(self.size, dtype=np.float64)
        left = np.cumsum(rows * (place + 1), axis=-1)
        right = np.cumsum((rows * (self.size - place))[..., ::-1], axis=-1)[..., ::-1]
        beyond = right - rows * (self.size - place)
        return (self.size - place) * left + (place + 1) * beyond

    def dense(self) -> Doubles:
        """G itself."""
        place = np.arange(self.size)
        least = np.minimum.outer(place, place) + 1.0
        return np.asarray(least * (self.size - np.maximum.outer(place, place)))


@dataclass(frozen=True, slots=True, eq=False)
class Questions:
    """Any list of linear questions: one line of ``weights`` over the cells for each."""

    weights: Doubles

    def __post_init__(self) -> None:
        lines = np.asarray(self.weights, dtype=np.float64)
        if lines.ndim != 2 or not lines.size or not np.isfinite(lines).all() or not lines.any():
            raise InvalidParameter(
                "P6",
                "a list of linear questions is a matrix of finite weights, not all zero.",
                why="every question is a weighted sum of the counts of the cells.",
                fix="pass one line of weights for each question.",
            )
        object.__setattr__(self, "weights", lines)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.weights.shape[1])

    @property
    def questions(self) -> int:
        """How many lines there are."""
        return int(self.weights.shape[0])

    def diagonal(self) -> Doubles:
        """The squared weights of each cell, added."""
        return np.asarray(np.square(self.weights).sum(axis=0))

    def multiply(self, rows: Doubles) -> Doubles:
        """``rows`` @ W' @ W, the weights being W."""
        return np.asarray((rows @ self.weights.T) @ self.weights)

    def dense(self) -> Doubles:
        """G itself."""
        return np.asarray(self.weights.T @ self.weights)
