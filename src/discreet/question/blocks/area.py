"""Which blocks of a space: what a question can touch, and so what it is charged to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from discreet.question.blocks.known import Mask
from discreet.question.blocks.space import Ranges, Space


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
