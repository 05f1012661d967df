"""A released answer as it may be used again: what was measured, of which rows, with which noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.engine.truth import Group
from discreet.price import Priced
from discreet.price.plan import BaseRows
from discreet.release.answer import Part, Selected


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """One answer of the ledger, by its number ``id``.

    ``chain`` are the releases that it refines, itself the last: noise that is shared among all of
    them.  ``loss`` is what was charged for the whole chain.
    """

    id: int
    priced: Priced
    groups: tuple[Group, ...]
    parts: tuple[Part, ...]
    loss: Loss
    chain: tuple[int, ...] = ()
    rows: BaseRows = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", BaseRows.of(self.priced.plan.source))

    def entries(self, place: int) -> NDArray[Any]:
        """What was released of one measurement, in Python's integers: sums of them stay exact."""
        part = self.parts[place]
        if isinstance(part, Selected):
            raise TypeError("chosen, not counted")
        return part.astype(object) if part.dtype != object else np.asarray(part)

    def shares_noise(self, other: Released) -> bool:
        """Whether some noise is in both, so that they must not be combined (Lemma 4)."""
        return bool({self.id, *self.chain} & {other.id, *other.chain})


__all__ = ["Released"]
