"""Asking somebody for noisy numbers: what is counted, with which noise, and by whom.

The rest of this room plans and reconstructs; it never sees a row.  It hands a
list of :data:`Query` to a :class:`Measurer` and works on the :class:`Measurement`
that come back, which are noisy already.  In the curator the measurer charges,
runs and stores each stage; :class:`Records` is one over rows in memory.

Four kinds of question, each with whole-numbered answers and a sensitivity that is
plain from its form (docs/proofs/publication.md, Lemmas 2 to 4 and 16): the cells of
a table, whole-numbered combinations of such cells, the distance of a table from a
public one, and order statistics of the errors of public answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.publication.domain import Column, check_columns
from discreet.publication.spend import Noise, Spend, total_loss

Integers = NDArray[np.int64]
Doubles = NDArray[np.float64]

MOST_CELLS = 10**7
"""A table of more cells is refused."""

GRID = 2**10
"""A public reference table is rounded to this many steps a row."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A table over some columns, each coarsened by a public map from levels to bins.

    ``columns`` are their places, and ``maps`` has for each a bin for every level.
    """

    columns: tuple[int, ...]
    maps: tuple[Integers, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins there are along each column."""
        return tuple(int(one.max()) + 1 for one in self.maps)

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return int(np.prod([float(one) for one in self.shape]))


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The number of rows in every cell of a view: one row moves one cell by one.

    ``view`` is the table, ``noise`` what is added to each of its cells.
    """

    view: View
    noise: Noise


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """Whole-numbered combinations of the cells of a view: one answer for each row of ``matrix``.

    ``view`` is the table, ``noise`` what is added to each answer.

    Before them, if ``diagonal`` is given, each cell times its own weight.
    """

    view: View
    matrix: Integers
    noise: Noise
    diagonal: Integers | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """How far a view's counts are from a public table: the sum of |GRID · count − reference|.

    ``view`` is the table, ``noise`` what is added to the sum, in steps.

    ``reference`` is in steps, 1/GRID of a row.  One row moves the sum by at most
    GRID, however many cells there are.
    """

    view: View
    reference: Integers
    noise: Noise


@dataclass(frozen=True, slots=True, eq=False)
class Battery:
    """Public questions about one ``view``: how many rows have, in every column, a level of a set.

    ``sets[i][q]`` says which bins of the view's i-th column question q takes.
    """

    view: View
    sets: tuple[NDArray[np.bool_], ...]

    def answer(self, counts: Integers) -> Integers:
        """The answers from a table of ``counts``."""
        found = self.sets[0].astype(np.int64) @ counts.reshape(counts.shape[0], -1)
        for taken, size in zip(self.sets[1:], self.view.shape[1:], strict=True):
            found = (found.reshape(len(found), size, -1) * taken[:, :, None]).sum(axis=1)
        return found.reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Order statistics of |count − reference| over public questions.

    ``batteries`` are the questions, ``references`` the answers that each is compared with; of the
    errors in order those of ``ranks``, from 0, are told, each with ``noise``.

    Each error moves by at most one with one row, and so does every order
    statistic of them, however many questions there are.
    """

    batteries: tuple[Battery, ...]
    references: tuple[Integers, ...]
    ranks: tuple[int, ...]
    noise: Noise


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """One step of a counter: combinations of what this step and those before it counted.

    ``factor`` weighs the last step first.  The noise is that of the whole horizon, for units that
    are counted in at most ``steps_per_unit`` steps: what one step costs is its part of that.
    """

    cells: int
    factor: Integers
    steps_per_unit: int
    rows_per_unit: int
    noise: Noise

    @property
    def reach(self) -> int:
        """How far the worst unit of the horizon moves this step: one of the first steps."""
        return int(self.factor[-self.steps_per_unit :].sum())


Query = Cells | Combinations | Distance | Errors | Running
"""What can be asked of the rows; of a running step, of what was counted."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """A query and its noisy answer, in the shape of what was asked.

    ``query`` is what was asked, ``values`` the answer.
    """

    query: Query
    values: Integers


class Measurer(Protocol):
    """Whoever holds the rows: draws one stage's noise, once."""

    def measure(self, queries: Sequence[Query]) -> list[Measurement]:
        """A noisy answer to every one of ``queries``, in order."""


def ask_cells(columns: Sequence[int], maps: Sequence[Integers], spend: Spend) -> Cells:
    """Every cell of a table, with the noise that the spend buys."""
    view = make_view(columns, maps)
    return Cells(view, spend.noise())


def ask_combinations(
    view: View, matrix: Integers, spend: Spend, *, diagonal: Integers | None = None
) -> Combinations:
    """Combinations of cells, with noise for the worst column of the matrix."""
    l1, l2_squared = column_norms(matrix, diagonal)
    return Combinations(view, matrix, spend.noise_of(l1=l1, l2_squared=l2_squared), diagonal)


def column_norms(matrix: Integers, diagonal: Integers | None = None) -> tuple[int, int]:
    """The largest sum of absolute weights of a column, and of squared weights.

    >>> column_norms(np.array([[3, -4], [0, 5]]), np.array([2, 1]))
    (10, 42)
    """
    if np.abs(matrix).max(initial=0) < 2**20 and len(matrix) < 2**20:
        wide: Any = matrix  # sums of squares stay below 2**60
    else:
        wide = matrix.astype(object)  # they are the sensitivity, so they may not wrap
    l1, squares = np.abs(wide).sum(axis=0), (wide * wide).sum(axis=0)
    if diagonal is not None:
        own = diagonal.astype(object)
        l1, squares = l1 + np.abs(own), squares + own * own
    return int(max(l1.tolist())), int(max(squares.tolist()))


def ask_distance(view: View, expected: Doubles, spend: Spend) -> Distance:
    """The distance from ``expected`` rows in each cell, rounded to the grid."""
    reference = np.rint(np.asarray(expected, dtype=np.float64) * GRID).astype(np.int64)
    return Distance(view, reference.reshape(view.shape), spend.noise(sensitivity=GRID))


def ask_errors(
    batteries: Sequence[Battery],
    references: Sequence[Integers],
    ranks: Sequence[int],
    spend: Spend,
) -> Errors:
    """The errors of given ranks, from 0, among all questions, each with its own noise."""
    count = len(ranks)
    return Errors(
        tuple(batteries),
        tuple(references),
        tuple(ranks),
        spend.noise_of(l1=count, l2_squared=count),
    )


def make_view(columns: Sequence[int], maps: Sequence[Integers]) -> View:
    """A view, refused if it has too many cells."""
    view = View(tuple(columns), tuple(np.asarray(one, dtype=np.int64) for one in maps))
    if view.cells > MOST_CELLS:
        raise InvalidParameter(
            "P2",
            f"a table of {view.cells} cells was asked for; at most {MOST_CELLS} are counted.",
            why="every cell gets noise, whether or not anybody is in it.",
            fix="use fewer columns together, or coarser ones.",
        )
    return view


def loss_of(queries: Sequence[Query]) -> Loss:
    """What measuring these costs one unit.

    ``queries`` are about the same units.
    """
    return total_loss([query.noise for query in queries])


class Records:
    """Rows in memory, coded, as a measurer: exact counts plus exact noise.

    ``codes`` has a row for each row and a number for each of ``columns``.

    ``queries`` remembers what was asked, so that a test can add up its loss.
    Codes outside a column's levels count as the last level: a value that is not
    declared must not fail, and must not be left out of some tables only.

    >>> people = Records([Column("sex", 2), Column("grade", 3)], np.array([[0, 2], [1, 1]]))
    >>> asked = ask_cells([1], [np.arange(3)], Spend.concentrated("1/8"))
    >>> people.measure([asked])[0].values.shape
    (3,)
    >>> float(loss_of(people.queries).rho)
    0.125
    """

    def __init__(self, columns: Sequence[Column], codes: NDArray[np.integer]) -> None:
        self.columns = check_columns(columns)
        if codes.ndim != 2 or codes.shape[1] != len(self.columns):
            raise InvalidParameter(
                "P6",
                "the rows do not have one code for every column.",
                why="each column is counted by its own codes.",
                fix="pass an array of one row per row and one column per column.",
            )
        self.queries: list[Query] = []
        self._codes = [
            _within(codes[:, place], column.size) for place, column in enumerate(self.columns)
        ]

    def measure(self, queries: Sequence[Query]) -> list[Measurement]:
        """A noisy answer to every one of ``queries``, in order."""
        binned: dict[tuple[int, bytes], Integers] = {}
        answers = []
        for query in queries:
            exact = self._answer(query, binned)
            answers.append(Measurement(query, query.noise.release(exact)))
        self.queries.extend(queries)
        return answers

    def _answer(self, query: Query, binned: dict[tuple[int, bytes], Integers]) -> Integers:
        """The exact answer; never shown."""
        match query:
            case Cells(view=view):
                return self._count(view, binned)
            case Combinations(view=view, matrix=matrix, diagonal=diagonal):
                cells = self._count(view, binned).reshape(-1)
                lines = matrix @ cells
                return lines if diagonal is None else np.concatenate([diagonal * cells, lines])
            case Distance(view=view, reference=reference):
                apart = np.abs(self._count(view, binned) * GRID - reference)
                return np.array([int(apart.sum())], dtype=np.int64)
            case Errors(batteries=batteries, references=references, ranks=ranks):
                errors = [
                    np.abs(battery.answer(self._count(battery.view, binned)) - reference)
                    for battery, reference in zip(batteries, references, strict=True)
                ]
                every: Integers = np.sort(np.concatenate(errors))
                return every[list(ranks)]
            case Running():
                raise TypeError("a step of a counter is made of what was counted before")

    def _count(self, view: View, binned: dict[tuple[int, bytes], Integers]) -> Integers:
        """The exact table; never shown."""
        index: Integers | None = None
        for column, mapped, size in zip(view.columns, view.maps, view.shape, strict=True):
            key = (column, mapped.tobytes())
            if key not in binned:
                binned[key] = mapped[self._codes[column]]
            index = binned[key] if index is None else index * size + binned[key]
        if index is None:
            return np.array(len(self._codes[0]), dtype=np.int64)
        return np.bincount(index, minlength=view.cells).reshape(view.shape).astype(np.int64)


def _within(codes: NDArray[np.integer], size: int) -> Integers:
    wide = codes.astype(np.int64)
    return np.where((wide < 0) | (wide >= size), size - 1, wide)
