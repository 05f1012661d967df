"""What the engine found, sealed until noise has been added.

A truth has no readable form: it prints as withheld, and it cannot be formatted,
copied, compared, pickled or looped over.  ``open_for_release`` is called in
``release`` alone; a test looks for any other caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from discreet.exact.records import dataclass
from discreet.question.domain import Value

Group = tuple[Value | float | None, ...]
"""The values of the keys of one group."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SparseCounts:
    """A histogram of every group: only the cells that hold rows, by group and then by position."""

    group: NDArray[np.int64]  # place in ``Opened.groups``
    position: NDArray[np.int64]  # 0 ... span of the variable
    count: NDArray[np.int64]
    first: NDArray[np.int64] | None = None
    """Where a position stands for several, the first of them; None if every one stands alone."""
    powers: tuple[NDArray[Any], ...] = ()
    """Of each the sum of all its rows' positions, of their squares ...: as many as are needed."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Opened:
    """One exact result.

    ``groups`` are the product of the keys' values, the last key changing
    fastest, when those are public; otherwise the groups found, in the order of
    their values.  ``measured`` follows the plan's measurements: an array of
    shape (groups, entries), of 64-bit integers or of Python's where one does
    not fit, or sparse counts for a histogram.  Where cells of one stand together, ``whole``
    measures the same on the same data with every cell alone.
    """

    groups: tuple[Group, ...]
    measured: tuple[NDArray[Any] | SparseCounts, ...]
    whole: Callable[[], Truth] | None = None


class Truth:
    """Exact integers that nobody may see.

    >>> Truth(Opened(groups=((),), measured=(np.array([[1041]]),)))
    Truth(withheld)
    """

    __slots__ = ("__contents",)

    def __init__(self, contents: Opened) -> None:
        self.__contents = contents

    def open_for_release(self) -> Opened:
        """The integers themselves; for ``release``, which adds the noise."""
        return self.__contents

    def __repr__(self) -> str:
        return "Truth(withheld)"

    def __format__(self, specification: str) -> NoReturn:
        raise TypeError("a truth cannot be formatted")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a truth cannot be pickled or copied")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a truth has no state to show")

    def __bool__(self) -> NoReturn:
        raise TypeError("a truth has no truth value")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("a truth cannot be compared")

    __hash__ = None  # type: ignore[assignment]
