"""Scores of candidates: checked, put on the public grid, and measured in whole steps.

A selection compares scores, and each score may change by the sensitivity when
one unit comes or goes.  Whole-numbered scores are taken as they are; real ones
are put on a public grid first (:class:`discreet.mechanisms.Grid`), after which
each of them changes by at most the sensitivity rounded up to whole steps, and a
score that only ever grows still does: rounding is monotone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive
from discreet.exact.records import dataclass
from discreet.mechanisms.grid import Grid, Integers, to_steps
from discreet.mechanisms.laplace import l1_steps, too_much_noise

REACH = 2**62
"""Scores lie within this many steps of zero, and noise does but for a chance below 2**-1400."""

_GREATEST_SCALE = 2**52

Scores = Sequence[Any] | Mapping[Any, Any] | NDArray[Any]
"""One score for each candidate, in a public order; a mapping names the candidates."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """The candidates and their scores, in whole steps."""

    steps: Integers
    names: tuple[Hashable, ...] | None

    def name_of(self, index: int) -> Any:
        """What to answer when candidate number ``index`` is chosen."""
        return index if self.names is None else self.names[index]

    @property
    def outcomes(self) -> tuple[Any, ...]:
        """Every possible answer, in order."""
        return tuple(range(len(self.steps))) if self.names is None else self.names


def read_scores(scores: Scores, grid: Grid | None) -> Ballot:
    """The scores in steps of ``grid``; refused if there is none or one is not a number.

    >>> read_scores({"flu": 2.5, "cold": 4.0}, Grid("1/4")).steps.tolist()
    [10, 16]
    """
    names = tuple(scores) if isinstance(scores, Mapping) else None
    values: Any = list(scores.values()) if isinstance(scores, Mapping) else scores
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise _not_a_list()
        steps = values if grid is None else grid.snap(values)
        if grid is None and (values.dtype.kind != "i" or values.dtype.itemsize != 8):
            steps = np.asarray(to_steps(values, None), dtype=np.int64)
        return Ballot(_within_reach(_some(steps)), names)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise _not_a_list()
    whole = to_steps(list(values), grid)
    if isinstance(whole, int):
        raise _not_a_list()
    if any(abs(one) > REACH for one in whole):
        raise too_far()
    return Ballot(_some(np.array(whole, dtype=np.int64)), names)


def rate_per_step(
    sensitivity: Exact, epsilon: Fraction, *, monotonic: bool, grid: Grid | None
) -> Fraction:
    """The exponent of one step: epsilon over how far scores can move against each other.

    If every score moves the same way by at most the sensitivity, two scores
    move against each other by at most as much; otherwise by twice as much.
    """
    steps = l1_steps(positive(sensitivity, name="sensitivity"), grid=grid, entries_changed=None)
    return epsilon / (steps if monotonic else 2 * steps)


def check_drawable(scale: Fraction) -> Fraction:
    """``scale``, refused if scores plus noise of that scale might not fit 64 bits."""
    if scale > _GREATEST_SCALE:
        raise too_much_noise("epsilon")
    return scale


def to_score_units(steps: Fraction, grid: Grid | None) -> Fraction:
    """A distance between scores, from steps to the unit of the scores.

    Snapping moves each of the two scores compared by at most half a step.
    """
    return steps if grid is None else (steps + 1) * grid.step


def _some(steps: Integers) -> Integers:
    if len(steps) == 0:
        raise InvalidParameter(
            "P5",
            "there is no candidate to choose from.",
            why="a choice needs at least one candidate, and the list of them must be public.",
            fix="pass at least one score.",
        )
    return steps


def _within_reach(steps: Integers) -> Integers:
    if int(steps.min()) < -REACH or int(steps.max()) > REACH:
        raise too_far()
    return steps


def _not_a_list() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "scores must be a list, a one-dimensional array, or a mapping from candidate to score.",
        why="each candidate has exactly one score, and their order is public.",
        fix="pass scores such as [41, 17, 23] or {'flu': 41, 'cold': 17}.",
    )


def too_far() -> InvalidParameter:
    """A score that noise could push past the end of 64-bit integers."""
    return InvalidParameter(
        "P6",
        "a score lies further than 2**62 steps from zero.",
        why="it could not be compared without wrapping around, and a wrapped score would tell.",
        fix="measure the scores in a coarser unit.",
    )
