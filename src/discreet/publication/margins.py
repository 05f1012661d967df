"""How far a synopsis may be off: exact, certified, typical, or no margin at all.

* **exact**: a number that was itself measured has its noise's own law.
* **certified**: half of a bought, noisy distance between the data and the synopsis
  bounds *every* counting question on the columns it was bought for.
* **typical**: an order statistic of the errors over a public battery of questions
  says what is usual for questions of that kind, and nothing of any one of them.
* **none**: anything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact.numbers import Exact, fraction, proportion
from discreet.publication.domain import Column
from discreet.publication.measure import (
    GRID,
    Battery,
    Integers,
    Measurement,
    Measurer,
    View,
    ask_distance,
    ask_errors,
    make_view,
)
from discreet.publication.spend import Noise, Spend
from discreet.publication.stream import PublicStream
from discreet.publication.tails import tail_bound
from discreet.release.display import number

Subset = tuple[int, ...]


class Promise(Enum):
    """What a margin promises."""

    EXACT = "exact"
    CERTIFIED = "certified"
    TYPICAL = "typical"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Margin:
    """A margin and what it promises.

    ``promise`` is how far it is to be trusted; ``within`` is None when there is no margin. ``ends``
    are the numbers between which the truth lies, where they are not as far away on both sides.
    """

    promise: Promise
    within: float | None
    ends: tuple[float, float] | None = None

    def __str__(self) -> str:
        """In words, as an answer shows it."""
        within = "" if self.within is None else f"± {number(self.within, up=True)}"
        match self.promise:
            case Promise.EXACT:
                return f"{within}, the law of the noise"
            case Promise.CERTIFIED:
                return f"{within}, certified for every count on these columns"
            case Promise.TYPICAL:
                return f"typically {within}; this answer may be further off"
            case Promise.NONE:
                return "no margin: nothing was measured that bounds this answer"


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """Noisy distances between the data's tables and the synopsis's, by their columns.

    ``distances`` are these; ``rows_variance`` is that with which the synopsis's number of rows was
    estimated, and ``gaussian`` says whether by Gaussian noise.

    Definition:
        For each set of columns, the sum over cells of |data's count − synopsis's
        count|, plus noise.

    Guarantee:
        Each distance moves by at most one with one row (docs/proofs/publication.md,
        Lemma 4); their losses add up.

    Accuracy:
        ``bound(columns, beta)`` holds for every counting question on the columns
        at once, and for all certified sets together, except with probability
        beta (Lemma 15).  It is loose: the typical error is far smaller.

    Reference:
        The total variation distance as the worst question's error.

    Example:
        >>> from discreet.publication.measure import Records
        >>> sexes = [Column("sex", 2), Column("grade", 5)]
        >>> rows = np.tile([[0, 3], [1, 2], [1, 4]], (400, 1))
        >>> people = Records(sexes, rows)
        >>> bought = buy_certificate(
        ...     people, sexes, rows, [(0, 1)], Spend.concentrated("1/2"), rows_variance=9.0
        ... )
        >>> 0 <= bought.bound([0], beta="0.05") < 40
        True
        >>> bought.bound([0, 2], beta="0.05") is None
        True
    """

    distances: dict[Subset, Measurement]
    rows_variance: float
    gaussian: bool

    def bound(self, columns: Sequence[int], *, beta: Exact) -> float | None:
        """Every counting question on these columns is within this, or None if none was bought.

        ``columns`` are their places; it holds except with probability ``beta``.
        """
        allowed = proportion(beta, name="beta")
        wanted = set(columns)
        found = [one for those, one in self.distances.items() if wanted <= set(those)]
        if not found:
            return None
        # Half of beta for the number of rows, half for all distances at once.
        apart = 1 + tail_bound(self.rows_variance, allowed / 2, gaussian=self.gaussian)
        share = allowed / (2 * len(self.distances))
        distance = min(
            max(float(one.values[0] + one.query.noise.margin(share)) / GRID, 0.0) for one in found
        )
        return min(distance, (distance + apart) / 2)


@dataclass(frozen=True, slots=True)
class Typical:
    """Noisy order statistics of the errors over a battery of questions on so many columns.

    So many ``questions``, each about ``ways`` columns, were asked; ``quantiles`` has shares of
    them, each with the error that so many do not exceed, measured with ``noise``.
    """

    ways: int
    questions: int
    quantiles: tuple[tuple[Fraction, int], ...]
    noise: Noise

    def within(self, quantile: Exact, *, beta: Exact) -> float | None:
        """At least ``quantile`` of the battery is off by no more, except with probability ``beta``.

        The least bought quantile that is enough; None if none is.
        """
        wanted = fraction(quantile, name="quantile")
        enough = [value for share, value in self.quantiles if share >= wanted]
        if not enough:
            return None
        return float(max(min(enough) + self.noise.margin(beta), 0))


def buy_certificate(
    measurer: Measurer,
    columns: Sequence[Column],
    rows: Integers,
    sets: Sequence[Subset],
    spend: Spend,
    *,
    rows_variance: float,
) -> Certificate:
    """Measure how far the synopsis's tables over these ``sets`` are from the data's.

    Of ``columns``, each set has the places of some; ``rows`` are those of the synopsis.
    ``measurer`` holds the data's rows and draws the noise, at ``spend``.

    ``rows_variance`` is the variance with which the synopsis's number of rows was
    estimated.
    """
    views = [_full_view(columns, those) for those in sets]
    parts = spend.divide(np.ones(len(views)))
    released = measurer.measure(
        [
            ask_distance(view, tabulate(rows, view).astype(np.float64), part)
            for view, part in zip(views, parts, strict=True)
        ]
    )
    return Certificate(dict(zip(sets, released, strict=True)), rows_variance, spend.gaussian)


def buy_typical(
    measurer: Measurer,
    columns: Sequence[Column],
    rows: Integers,
    spend: Spend,
    *,
    ways: int = 2,
    quantiles: Sequence[Exact] = ("0.5", "0.95"),
    questions: int = 3000,
    label: str = "questions",
) -> tuple[Typical, Measurement]:
    """Measure the usual errors over a public random battery of counting questions.

    ``measurer`` holds the data, ``rows`` are the synopsis with the same ``columns``. Of so many
    ``questions``, each about ``ways`` columns and drawn under ``label``, the ``quantiles`` of the
    errors are measured at ``spend``.
    """
    batteries = draw_batteries(columns, ways=ways, questions=questions, label=label)
    references = [battery.answer(tabulate(rows, battery.view)) for battery in batteries]
    total = sum(len(reference) for reference in references)
    shares = sorted({proportion(one, name="quantile") for one in quantiles})
    ranks = [max(math.ceil(share * total) - 1, 0) for share in shares]
    (released,) = measurer.measure([ask_errors(batteries, references, ranks, spend)])
    values = tuple(zip(shares, released.values.tolist(), strict=True))
    return Typical(ways, total, values, released.query.noise), released


def draw_batteries(
    columns: Sequence[Column], *, ways: int, questions: int, label: str, tables: int = 60
) -> list[Battery]:
    """Random sets of columns, and for each random questions: an interval where a column is
    ordered, half of the levels where it is not."""
    stream = PublicStream(label)
    count = min(ways, len(columns))
    batteries = []
    for _ in range(tables):
        those = tuple(sorted(stream.choose(len(columns), count).tolist()))
        view = _full_view(columns, those)
        sets = tuple(
            _draw_sets(columns[column], math.ceil(questions / tables), stream) for column in those
        )
        batteries.append(Battery(view, sets))
    return batteries


def list_margins(
    columns: Sequence[int],
    *,
    exact: float | None = None,
    certificate: Certificate | None = None,
    typical: Sequence[Typical] = (),
    beta: Exact = "0.05",
) -> list[Margin]:
    """Every margin that can be given to a counting question on ``columns``, strongest first.

    ``exact`` is the margin of the noise, where the number was measured itself; ``certificate`` and
    ``typical`` are what was bought with the release; ``beta`` is how often one may be passed.

    >>> [str(one) for one in list_margins([3, 4])]
    ['no margin: nothing was measured that bounds this answer']
    """
    found = []
    if exact is not None:
        found.append(Margin(Promise.EXACT, exact))
    bound = certificate.bound(columns, beta=beta) if certificate else None
    if bound is not None:
        found.append(Margin(Promise.CERTIFIED, bound))
    for one in typical:
        usual = one.within(1 - proportion(beta, name="beta"), beta=beta)
        if one.ways == len(set(columns)) and usual is not None:
            found.append(Margin(Promise.TYPICAL, usual))
    return found or [Margin(Promise.NONE, None)]


def tabulate(rows: Integers, view: View) -> Integers:
    """The table of a view over public rows."""
    index = np.zeros(len(rows), dtype=np.int64)
    for column, mapped, size in zip(view.columns, view.maps, view.shape, strict=True):
        index = index * size + mapped[rows[:, column]]
    return np.bincount(index, minlength=view.cells).reshape(view.shape).astype(np.int64)


def _full_view(columns: Sequence[Column], those: Sequence[int]) -> View:
    return make_view(those, [np.arange(columns[column].size) for column in those])


def _draw_sets(column: Column, count: int, stream: PublicStream) -> NDArray[np.bool_]:
    if not column.ordered:
        return stream.uniform(count, column.size) < 0.5
    ends = np.sort(stream.integers(column.size, count, 2), axis=1)
    place = np.arange(column.size)
    return (place >= ends[:, :1]) & (place <= ends[:, 1:])
