"""Numbers that are read together: counts and sums under many conditions, off one table of cells.

Questions that differ in their conditions alone are read in one statement: the rows are counted for
each combination of values of the columns that the conditions look at, and the number of a question
is the sum over the combinations on which its condition is true.  That is the same number, to the
last digit, that its own statement finds: so what one unit moves, and the noise, are those of the
question by itself.  What is not certain to be the same is not gathered: where a unit's rows are
chosen from, where a condition is not understood on every value, where values are not listed.

Proof: ``docs/proofs/runs.md``, Lemma 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.records import dataclass
from discreet.price.plan import Measurement, Moments, Plan, Sum, Units, split_condition
from discreet.price.priced import Multiplicity
from discreet.price.watch import Watched
from discreet.question.blocks.evaluate import Known, evaluate_on_blocks
from discreet.question.blocks.space import Axis, Part
from discreet.question.domain import Domain, Kind, Value
from discreet.question.expressions import ColumnRef, Expression
from discreet.question.functions import references
from discreet.question.ownership import columns, row_bound
from discreet.question.question import Key
from discreet.question.relation import Filter, Relation, Source

MOST_CELLS = 2**17
"""How many combinations of values one statement may count."""

FEWEST = 4
"""Fewer questions than that are asked one by one."""

CELLS_EACH = 2**12
"""How many combinations are counted for each question where all are waited for: more take longer
than the questions by themselves."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """One plan, and how to find the number of each question in what it measures."""

    plan: Plan
    shape: tuple[int, ...]
    """How many values each column has."""
    chosen: tuple[tuple[Mask, ...], ...]
    """Of each question the values, or combinations, on which each of its conditions is true."""

    def add_up(self, measured: NDArray[Any]) -> list[int]:
        """The number of each question, from the number of each cell."""
        cells = self._spread(measured)
        return [self._add(cells, masks) for masks in self.chosen]

    def add_one(self, measured: NDArray[Any], place: int) -> int:
        """The number of one question."""
        return self._add(self._spread(measured), self.chosen[place])

    def _spread(self, measured: NDArray[Any]) -> NDArray[Any]:
        """The number of each cell, in as many dimensions as there are columns; no sum overflows."""
        cells = measured[:, 0].reshape(self.shape)
        if cells.dtype != object and int(np.abs(cells).max(initial=0)) >= 2**62 // MOST_CELLS:
            return cells.astype(object)
        return cells

    def write_chosen(self) -> list[list[dict[str, Any]]]:
        """What each question chooses, as it is sent to whoever holds the data."""
        return [
            [{"shape": m.shape, "bits": np.packbits(m, axis=None).tobytes().hex()} for m in masks]
            for masks in self.chosen
        ]

    @classmethod
    def read(cls, plan: Plan, shape: Sequence[int], chosen: Sequence[Any]) -> Gathered:
        """The same, from what was sent."""

        def read_mask(sent: Mapping[str, Any]) -> Mask:
            bits = np.frombuffer(bytes.fromhex(sent["bits"]), dtype=np.uint8)
            size = math.prod(sent["shape"])
            return np.unpackbits(bits, count=size).astype(np.bool_).reshape(sent["shape"])

        masks = tuple(tuple(map(read_mask, one)) for one in chosen)
        return cls(plan, tuple(shape), masks)

    def _add(self, cells: NDArray[Any], masks: tuple[Mask, ...]) -> int:
        """The sum of the cells in which all masks are true."""
        along: list[list[Mask]] = [[] for _ in self.shape]
        across: list[Mask] = []
        for mask in masks:
            axes = [axis for axis, size in enumerate(mask.shape) if size > 1]
            if not axes:
                if not mask.all():
                    return 0
            elif len(axes) == 1:
                along[axes[0]].append(mask.ravel())
            else:
                across.append(mask)
        kept = cells
        for axis, found in enumerate(along):
            if found:
                places = np.flatnonzero(np.logical_and.reduce(found))
                kept = np.take(kept, places, axis=axis)
                across = [m if m.shape[axis] == 1 else np.take(m, places, axis) for m in across]
        for mask in across:
            kept = np.where(mask, kept, 0)
        return int(kept.sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A question as what it counts, of which rows, under which conditions."""

    base: Relation
    measurement: Measurement
    conditions: tuple[Expression, ...]
    narrowed: Mapping[str, Domain]
    """What each column can be on the rows that count."""

    def is_like(self, other: _Part) -> bool:
        """Whether both count the same of the same rows, but for their conditions.

        Python takes 1, 1.0 and true for equal, and SQL does not: so they are written, too.
        """
        if self.base != other.base or self.measurement != other.measurement:
            return False
        same = isinstance(self.base, Source) or repr(self.base) == repr(other.base)
        return same and repr(self.measurement) == repr(other.measurement)


def gather(watched: Sequence[Watched], multiplicity: Multiplicity) -> Iterator[Gathered | int]:
    """The questions in their order: those that are read together, and how many are not.

    A number says that so many are to be asked one by one.  Public knowledge only.
    """
    parts = [_take_apart(one.plan, multiplicity) for one in watched]
    at = 0
    while at < len(parts):
        first = parts[at]
        cells = None if first is None else _Cells(first, multiplicity)
        past = at
        while cells is not None and past < len(parts) and cells.take(parts[past]):
            past += 1
        if cells is None or past - at < FEWEST:
            past = max(past, at + 1)
            yield past - at
        else:
            found = cells.find_chosen()
            odd = [place for place, masks in enumerate(found) if masks is None]
            for place in odd:  # what is not understood on every value is asked by itself
                parts[at + place] = None
            if odd:
                continue
            chosen = tuple(masks for masks in found if masks is not None)
            yield Gathered(cells.make_plan(watched[at].plan), cells.shape, chosen)
        at = past


def gather_with_first(
    plans: Sequence[Plan], multiplicity: Multiplicity
) -> tuple[Gathered, tuple[int, ...]] | None:
    """The first and whichever of the others is read with it, and their places, its own first.

    In any order, for questions that know nothing of each other.  None if the first is read sooner
    by itself.  Public knowledge only.
    """
    first = _take_apart(plans[0], multiplicity)
    if first is None:
        return None
    cells, taken = _Cells(first, multiplicity), list[int]()
    for place, plan in enumerate(plans):
        most = min(MOST_CELLS, CELLS_EACH * max(FEWEST, len(taken) + 1))
        if cells.take(_take_apart(plan, multiplicity) if place else first, most):
            taken.append(place)
    if len(taken) < FEWEST:
        return None
    found = {
        place: masks
        for place, masks in zip(taken, cells.find_chosen(), strict=True)
        if masks is not None
    }
    if 0 not in found or len(found) < FEWEST:
        return None
    return Gathered(cells.make_plan(plans[0]), cells.shape, tuple(found.values())), tuple(found)


def _take_apart(plan: Plan, multiplicity: Multiplicity) -> _Part | None:
    """The question's parts, or None if its number is not the sum over its rows, each by itself."""
    if plan.keys or len(plan.measurements) != 1 or not _is_one_number(plan.measurements[0]):
        return None
    (measurement,) = plan.measurements
    base, found = plan.source, list(split_condition(measurement.condition))
    while isinstance(base, Filter):
        found = [*split_condition(base.predicate), *found]
        base = base.source
    most, kept = row_bound(base, multiplicity), plan.contribution.rows
    if most is None or kept is None or most > kept:
        return None  # which of a unit's rows are kept would depend on the conditions
    if isinstance(measurement, Units) and most != 1:
        return None
    return _Part(
        base, replace(measurement, condition=None), tuple(found), columns(plan.source, multiplicity)
    )


def _is_one_number(measurement: Measurement) -> bool:
    """Whether it counts rows or units, or adds up one number of each row, and no more than that."""
    if isinstance(measurement, Moments):
        return not measurement.variables and measurement.entries == 1
    return isinstance(measurement, Sum | Units)


class _Cells:
    """The combinations of values that some questions look at; grows as questions are taken."""

    def __init__(self, first: _Part, multiplicity: Multiplicity) -> None:
        self._first = first
        self._known = columns(first.base, multiplicity)
        self._ends: dict[str, _Ends] = {}
        self._parts: list[_Part] = []

    def take(self, part: _Part | None, most: int | None = None) -> bool:
        """Whether one more question fits among so many combinations; if so it is taken."""
        if part is None or not part.is_like(self._first):
            return False
        names = frozenset(self._ends).union(*map(references, part.conditions))
        before = self._known if self._parts else part.narrowed  # of those who did not look at it
        ends = {
            name: self._ends.get(name, _Ends.of(before[name])).join(_Ends.of(part.narrowed[name]))
            for name in sorted(names)
        }
        cells = math.prod(one.count(self._known[name]) for name, one in ends.items())
        if cells > (MOST_CELLS if most is None else most):
            return False
        self._ends = ends
        self._parts.append(part)
        return True

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns that are looked at, with their values."""
        return tuple(
            Axis(name, self._known[name].kind, one.list_values(self._known[name]))
            for name, one in self._ends.items()
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each of them has."""
        return tuple(len(axis.values) for axis in self.axes)

    def find_chosen(self) -> list[tuple[Mask, ...] | None]:
        """Of each question where its conditions are true; None if that is not certain."""
        spread = Part("", (), None, self.axes, 0).columns
        known = dict(zip((axis.name for axis in self.axes), spread, strict=True))
        masks: dict[str, Mask | None] = {}

        def find(condition: Expression) -> Mask | None:
            written = repr(condition)
            if written not in masks:
                found = evaluate_on_blocks(condition, known, len(self.axes))
                masks[written] = None if found is None else _find_true(found)
            return masks[written]

        return [_settle([find(one) for one in part.conditions]) for part in self._parts]

    def make_plan(self, like: Plan) -> Plan:
        """What counts the rows of every combination."""
        keys = tuple(Key(axis.name, ColumnRef(axis.name), axis.values) for axis in self.axes)
        return Plan(self._first.base, keys, like.contribution, (self._first.measurement,))


@dataclass(frozen=True, slots=True)
class _Ends:
    """Between which numbers a column lies, where it has no list of values; and whether NULL is."""

    low: Fraction | None
    high: Fraction | None
    null: bool

    @classmethod
    def of(cls, domain: Domain) -> _Ends:
        return cls(domain.low, domain.high, domain.nullable)

    def join(self, other: _Ends) -> _Ends:
        """What holds both."""
        low = None if self.low is None or other.low is None else min(self.low, other.low)
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return _Ends(low, high, self.null or other.null)

    def count(self, domain: Domain) -> int:
        """How many values there are; more than fit, where they cannot be listed."""
        if domain.values is not None:
            return len(domain.values) + self.null
        if domain.kind not in (Kind.INTEGER, Kind.DATE) or self.low is None or self.high is None:
            return MOST_CELLS + 1
        return max(math.floor(self.high) - math.ceil(self.low) + 1, 0) + self.null

    def list_values(self, domain: Domain) -> tuple[Value | None, ...]:
        """Each of them, NULL last."""
        between = domain
        if domain.values is None:
            between = Domain(domain.kind, self.low, self.high)
        listed = between.list_values(MOST_CELLS) or ()
        return (*listed, None) if self.null else listed


def _find_true(known: Known) -> Mask:
    """Where a condition is true, and not false nor NULL."""
    return np.equal(known.values, True).astype(np.bool_)


def _settle(masks: Sequence[Mask | None]) -> tuple[Mask, ...] | None:
    found = tuple(mask for mask in masks if mask is not None)
    return found if len(found) == len(masks) else None


__all__ = ["CELLS_EACH", "FEWEST", "MOST_CELLS", "Gathered", "gather", "gather_with_first"]
