"""The blocks of a dataset, numbered.

Block 0 is everybody who lies in no declared block: the units of entities that
declare none, and units none of whose rows are read where blocks are declared.
It is always there, so that a question about all people has a place in the
account whatever is declared later.  The cells of each entity that declares
block columns follow, the last column running fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from discreet.exact.records import dataclass
from discreet.question.blocks.evaluate import Known, Mask, Objects
from discreet.question.domain import Domain, Kind, Value, number_of
from discreet.question.functions.declaration import plain
from discreet.question.ownership import unit_of
from discreet.question.schema import Schema, Table
from discreet.question.schema.tables import cell_values, in_unit

EVERYONE = "everyone"
EVERYONE_ELSE = "everyone else"

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges of block numbers, ascending and apart."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One block column and the values it can have; None, last, is NULL."""

    name: str
    kind: Kind
    values: tuple[Value | None, ...]

    @property
    def domain(self) -> Domain:
        """What is known of the values: bounds, but no list, which would be long."""
        some = [value for value in self.values if value is not None]
        low, high = (number_of(end(some)) if some else None for end in (min, max))
        return Domain(self.kind, low, high, nullable=None in self.values)

    def identity(self) -> dict[str, Any]:
        """The axis as JSON."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "values": [_to_json(value) for value in self.values],
        }

    @classmethod
    def from_identity(cls, found: Mapping[str, Any]) -> Axis:
        """The axis that ``identity`` was made of."""
        kind = Kind(found["kind"])
        return cls(found["name"], kind, tuple(_from_json(v, kind) for v in found["values"]))


@dataclass(frozen=True, slots=True)
class Part:
    """The blocks of one entity: every combination of its axes.

    ``unit`` says by which columns, of which kinds, a unit is known; ``home`` is
    the table whose rows say in which block it lies, or None if the unit itself
    says it; ``first`` is the number of the first block.
    """

    entity: str
    unit: tuple[str, ...]
    home: str | None
    axes: tuple[Axis, ...]
    first: int
    columns: tuple[Known, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        count = len(self.axes)
        spread = (Known(_along(a, i, count), a.domain) for i, a in enumerate(self.axes))
        object.__setattr__(self, "columns", tuple(spread))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """How many blocks there are."""
        return math.prod(self.shape)

    def cell(self, index: int) -> tuple[Value | None, ...]:
        """The values of the block at ``place`` of this part."""
        indices = np.unravel_index(index, self.shape)
        return tuple(a.values[int(i)] for a, i in zip(self.axes, indices, strict=True))

    def same_columns(self, other: Part) -> bool:
        """Whether both read a unit's block off the same columns of the same rows."""
        return (self.entity, self.unit, self.home, self._columns()) == (
            other.entity,
            other.unit,
            other.home,
            other._columns(),
        )

    def _columns(self) -> tuple[tuple[str, Kind], ...]:
        return tuple((axis.name, axis.kind) for axis in self.axes)

    def identity(self) -> dict[str, Any]:
        """The part as JSON; its place follows from its order."""
        axes = [axis.identity() for axis in self.axes]
        return {"entity": self.entity, "unit": list(self.unit), "home": self.home, "axes": axes}


@dataclass(frozen=True, slots=True)
class Space:
    """All blocks of a dataset.

    >>> space = Space.of(Schema.from_text('''
    ... [tables.visits]
    ... unit = "patient"
    ... blocks = ["region"]
    ... [tables.visits.columns]
    ... patient = "integer"
    ... region = { type = "text", values = ["north", "south"], nullable = false }
    ... '''))
    >>> [space.name(block) for block in range(space.size)]
    ['everyone else', 'region = north', 'region = south']
    """

    parts: tuple[Part, ...] = ()
    size: int = field(init=False, compare=False, repr=False)
    """How many blocks there are."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", 1 + sum(part.size for part in self.parts))

    @classmethod
    def of(cls, schema: Schema) -> Space:
        """The blocks a schema declares; one block, of everyone, if it declares none."""
        parts: dict[str, Part] = {}
        first = 1
        for table in schema.tables.values():
            if table.blocks:
                entity = unit_of(table).entity
                if entity not in parts:  # further tables declare the same: schema.blocks
                    parts[entity] = _part(table, entity, first)
                    first += parts[entity].size
        return cls(tuple(parts.values()))

    def part(self, entity: str) -> Part | None:
        """The blocks of an entity, if it declares any."""
        return next((part for part in self.parts if part.entity == entity), None)

    def name(self, block: int) -> str:
        """A block in words."""
        if not 0 <= block < self.size:
            raise IndexError(f"there are {self.size} blocks, and none numbered {block}")
        if block == 0:
            return EVERYONE_ELSE if self.parts else EVERYONE
        part = next(p for p in reversed(self.parts) if p.first <= block)
        cell = zip(part.axes, part.cell(block - part.first), strict=True)
        words = ", ".join(f"{axis.name} = {_show_value(value)}" for axis, value in cell)
        names = [axis.name for axis in part.axes]
        alike = sum(names == [axis.name for axis in other.axes] for other in self.parts)
        return words if alike == 1 else f"{part.entity}: {words}"

    def identity(self) -> dict[str, Any]:
        """The space as JSON, for the ledger: columns and their values."""
        return {"parts": [part.identity() for part in self.parts]}

    @classmethod
    def from_identity(cls, found: Mapping[str, Any]) -> Space:
        """The space that ``identity`` was made of."""
        parts: list[Part] = []
        first = 1
        for part in found["parts"]:
            axes = tuple(Axis.from_identity(axis) for axis in part["axes"])
            parts.append(Part(part["entity"], tuple(part["unit"]), part["home"], axes, first))
            first += parts[-1].size
        return cls(tuple(parts))

    def origins(self, earlier: Mapping[str, Any]) -> tuple[Ranges, ...]:
        """For each block, the blocks of an earlier space that its people may have been in.

        A block's balance starts at the largest of its origins' (Lemma 6): nobody's
        past is forgotten by declaring blocks anew.  A value that is new in the
        same columns was not read before, so its people were in no block.
        """
        before = Space.from_identity(earlier)
        everywhere: Ranges = ((0, before.size),)
        found: list[Ranges] = [((0, 1),)]
        kept = 1
        for part in self.parts:
            old = before.part(part.entity)
            if old is None or not old.same_columns(part):
                found += [everywhere] * part.size
                continue
            numbers = _old_numbers(part, old)
            kept += int(np.count_nonzero(numbers))
            found += [((number, number + 1),) for number in numbers.tolist()]
        if kept < before.size:  # people of a block that is gone are now in none
            found[0] = everywhere
        return tuple(found)


def _old_numbers(part: Part, old: Part) -> npt.NDArray[np.int64]:
    """For each block of ``part``, the number of the same cell in ``old``; 0 if there is none."""
    known = np.ones(part.shape, dtype=bool)
    cells = np.zeros(part.shape, dtype=np.int64)
    for dimension, (axis, other) in enumerate(zip(part.axes, old.axes, strict=True)):
        where = {(type(v), v): i for i, v in enumerate(other.values)}
        indices = np.array([where.get((type(v), v), -1) for v in axis.values], dtype=np.int64)
        shape = [1] * len(part.axes)
        shape[dimension] = len(indices)
        known &= indices.reshape(shape) >= 0
        cells = cells * len(other.values) + indices.reshape(shape)
    return np.where(known, cells + old.first, 0).ravel()


def _part(table: Table, entity: str, first: int) -> Part:
    axes = []
    for name in table.blocks:
        column = table.column(name)
        values = None if column is None else cell_values(table, column)
        if column is None or values is None:
            raise ValueError(f"blocks of {table.name!r} are not listed yet: resolve the schema")
        axes.append(Axis(name, column.kind, values))
    home = None if in_unit(table) else table.name
    kinds = {column.name: column.kind.value for column in table.columns}
    unit = tuple(f"{name} {kinds.get(name, '')}".strip() for name in table.unit or ())
    return Part(entity, unit, home, tuple(axes), first)


def _along(axis: Axis, dimension: int, count: int) -> Objects:
    """The values of an axis as the engine has them, laid along their own dimension."""
    values = np.empty(len(axis.values), dtype=object)
    values[:] = [plain(value) for value in axis.values]
    shape = [1] * count
    shape[dimension] = len(values)
    return values.reshape(shape)


def _show_value(value: Value | None) -> str:
    """A value in words; a double as the shortest decimal that is read as it."""
    if isinstance(value, Fraction) and value.denominator > 1 and float(value) == value:
        return repr(float(value))
    return "NULL" if value is None else str(value)


def _to_json(value: Value | None) -> Any:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return value.isoformat() if isinstance(value, date) else value


def _from_json(value: Any, kind: Kind) -> Value | None:
    if value is None:
        return None
    match kind:
        case Kind.DECIMAL:
            found: Value = Fraction(value)
        case Kind.DATE:
            found = date.fromisoformat(value)
        case Kind.TIMESTAMP:
            found = datetime.fromisoformat(value)
        case _:
            found = value
    return found


__all__ = ["EVERYONE", "EVERYONE_ELSE", "Axis", "Part", "Ranges", "Space"]


# --- areas -------------------------------------------------------------------------------------


@dataclass(frozen=True)  # without slots, for what is cached
class Area:
    """Some blocks of a space, as ranges of their numbers: half-open, ascending, apart."""

    space: Space
    ranges: Ranges

    def __post_init__(self) -> None:
        edges, size = self.edges, self.space.size
        if edges.size and not (edges[0] >= 0 and edges[-1] <= size and (np.diff(edges) > 0).all()):
            raise ValueError(f"{self.ranges} are not ranges of {size} blocks")

    @classmethod
    def everything(cls, space: Space) -> Area:
        """Every block."""
        return cls(space, ((0, space.size),))

    @classmethod
    def of(cls, space: Space, mask: Mask) -> Area:
        """The blocks where ``mask`` is true.

        >>> Area.of(Space(), np.array([True])).ranges
        ((0, 1),)
        """
        edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).tolist()
        return cls(space, tuple(zip(edges[::2], edges[1::2], strict=True)))

    @property
    def count(self) -> int:
        """How many blocks it has."""
        return sum(last - first for first, last in self.ranges)

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where each range begins and ends, one after the other; a charge reads no more."""
        pairs = chain.from_iterable(self.ranges)
        return np.fromiter(pairs, dtype=np.int64, count=2 * len(self.ranges))

    def __contains__(self, block: int) -> bool:
        return any(first <= block < last for first, last in self.ranges)

    def mask(self) -> Mask:
        """For each block of the space, whether it is in the area."""
        found = np.zeros(self.space.size, dtype=bool)
        for first, last in self.ranges:
            found[first:last] = True
        return found

    def names(self, limit: int | None = None) -> tuple[str, ...]:
        """The first ``limit`` blocks in words, all of them without a limit."""
        numbers = (block for first, last in self.ranges for block in range(first, last))
        return tuple(map(self.space.name, islice(numbers, limit)))
