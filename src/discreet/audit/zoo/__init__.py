"""A zoo of broken mechanisms, each beside its correct twin.

The bugs are those known from papers and from the trackers of libraries; every
specimen names its source.  An auditor that finds them all, and accuses none of
the twins, has shown what its silence is worth.

>>> len(animals()) > 70
True
>>> print(animals(named="at least for greater than").bug)
a noisy count equal to the threshold is shown, and delta does not count it
"""

from __future__ import annotations

from typing import overload

from discreet.audit.zoo import accounts, clocks, keys, noise, selection, sparse, sums, tables
from discreet.audit.zoo.animal import Animal, Check
from discreet.audit.zoo.keeper import (
    FALSE_ALARMS,
    SAMPLES,
    Examined,
    Walk,
    examine,
    walk,
)
from discreet.errors import InvalidParameter, quote_value

_ALL: tuple[Animal, ...] = tuple(
    animal
    for kind in (sums, tables, noise, selection, sparse, keys, accounts, clocks)
    for animal in kind.ANIMALS
)


@overload
def animals() -> tuple[Animal, ...]: ...
@overload
def animals(*, named: str) -> Animal: ...
def animals(*, named: str | None = None) -> Animal | tuple[Animal, ...]:
    """Every specimen, or the one that is ``named``."""
    if named is None:
        return _ALL
    for animal in _ALL:
        if animal.name == named:
            return animal
    raise InvalidParameter(
        "P4",
        f"there is no specimen {quote_value(named)}.",
        why="a check of nothing would find nothing.",
        fix="pick one of [animal.name for animal in zoo.animals()].",
    )


__all__ = [
    "FALSE_ALARMS",
    "SAMPLES",
    "Animal",
    "Check",
    "Examined",
    "Walk",
    "animals",
    "examine",
    "walk",
]
