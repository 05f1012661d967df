"""Which blocks of a space: what a question can touch, and so what it is charged to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from discreet.blocks.known import Mask
from discreet.blocks.space import Ranges, Space


@dataclass(frozen=True, slots=True)
class Area:
    """Some blocks of a space, as ranges of their numbers: half-open, ascending, apart."""

    space: Space
    ranges: Ranges

    def __post_init__(self) -> None:
        end = -1
        for first, last in self.ranges:
            if not end < first < last <= self.space.size:
                raise ValueError(f"{self.ranges} are not ranges of {self.space.size} blocks")
            end = last

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
