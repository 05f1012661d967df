"""What a counter whose steps share their noise has counted: kept secret, and kept for ever.

Such steps are combinations of what every step counted on its day, so that what was counted then
must not change when rows do; and a person is counted in so many steps and in no more, whatever
becomes of their rows.  Both are written before noise is drawn, beside the ledger and in no copy of
it.  Whoever has these files has the truth: they are as secret as the tables.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import LedgerRefusal
from discreet.publication.counter import draw_step
from discreet.publication.journal import Journal
from discreet.publication.measure import Measurement, Running

Step = tuple[list[str], list[int]]
"""Who was counted in a step, and the counts."""


class Counted:
    """The steps of one counter as they were counted."""

    def __init__(self, folder: Path | None, declared: dict[str, Any]) -> None:
        self._place = folder, declared
        self._journal = None if folder is None else Journal(folder, declared)
        self._kept: dict[int, Step] = {}

    def __repr__(self) -> str:
        return "Counted(withheld)"

    def to_json(self) -> dict[str, Any]:
        """Where it is kept, for the process that holds the data: never what was counted."""
        folder, declared = self._place
        if folder is None:
            raise TypeError("what this counter counted is in the memory of one process")
        return {"folder": str(folder.absolute()), "declared": declared}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Counted:
        """What is kept there."""
        return cls(Path(said["folder"]), said["declared"])

    def check(self, steps: int) -> None:
        """Refuse to go on where what earlier steps counted is gone; reads none of it."""
        if not all(self._has(step) for step in range(1, steps + 1)):
            raise LedgerRefusal(
                "L10",
                "what earlier steps of this counter counted is gone.",
                why="the noise of later steps is made to go with it; without it a person would "
                "be counted more often than the price was made for.",
                fix="bring back the folder beside the ledger, or make another counter.",
            )

    def draw(
        self, query: Running, codes: Sequence[Any], sizes: Sequence[int], step: int
    ) -> list[Measurement]:
        """One step with its noise, from the codes of all rows and whose they are.

        Called where the truth is open, and nothing but the noisy numbers comes back.
        """
        before = [self._look_up(one) for one in range(1, step)]
        now = self._find(step) or self._keep(step, _count(query, codes, sizes, step, before))
        counted = np.array([counts for _, counts in (*before, now)], dtype=np.int64)
        return [draw_step(query, counted)]

    def _look_up(self, step: int) -> Step:
        found = self._find(step)
        if found is None:
            raise LookupError("an earlier step is gone")
        return found

    def _keep(self, step: int, counted: Step) -> Step:
        """Write it, durably; what was written first is what was counted."""
        if self._journal is None:
            return self._kept.setdefault(step, counted)
        units, counts = self._journal.keep_list(step, "counted", list(counted))
        return units, counts

    def _has(self, step: int) -> bool:
        if self._journal is None:
            return step in self._kept
        return self._journal.has_list(step, "counted")

    def _find(self, step: int) -> Step | None:
        if self._journal is None:
            return self._kept.get(step)
        found = self._journal.find_list(step, "counted")
        return None if found is None else (found[0], found[1])


def _count(
    query: Running, codes: Sequence[Any], sizes: Sequence[int], step: int, before: Sequence[Step]
) -> Step:
    """Who is counted in this step, and the counts: of whoever was counted often enough, nothing."""
    now = np.asarray(codes[0]) == step - 1
    owners = [
        json.dumps([str(part) for part in parts])
        for parts in zip(*(np.asarray(one)[now] for one in codes[len(sizes) :]), strict=True)
    ]
    steps = Tally(unit for units, _ in before for unit in units)
    kept = np.array([steps[unit] < query.steps_per_unit for unit in owners], dtype=bool)
    cell = np.zeros(len(owners), dtype=np.int64)
    for code, size in zip(codes[1 : len(sizes)], sizes[1:], strict=True):
        cell = cell * size + np.asarray(code)[now]
    counts = np.bincount(cell[kept], minlength=query.cells)
    units = sorted({unit for unit, keep in zip(owners, kept.tolist(), strict=True) if keep})
    return units, counts.tolist()


__all__ = ["Counted"]
