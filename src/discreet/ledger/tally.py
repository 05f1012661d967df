"""Refusals, counted: the first of a kind are recorded whole, the others by their number.

A refusal costs nobody anything, so whoever may ask may be refused as often as the server lets them.
A record of each, with the question, would fill the disk.  So each analyst has, on each day and for
each code, some refusals that are recorded whole; from there on a running count is kept beside the
log, in the same transaction, and enters the log whenever it has doubled, and when the day is over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.exact.records import dataclass

WHOLE = 10
"""As many refusals of one analyst, on one day and with one code, are recorded whole."""

WHOLE_BYTES = 2**18
"""As much room as refusals that are recorded whole have, of one analyst on one day."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often one analyst was refused on one day with one code."""

    dataset: str
    analyst: str
    """Empty for all together who are not known to the dataset."""
    day: str
    code: str
    count: int = 0
    told: int = 0
    """How many of them the log tells of, each by itself or by their number."""
    size: int = 0
    """How many bytes were recorded whole."""

    @property
    def untold(self) -> int:
        """How many the log does not tell of yet; never more than it tells of."""
        return self.count - self.told

    def add(self, size: int, taken: int) -> Tally:
        """One refusal more, of ``size`` bytes; ``taken`` is what the day's others have taken.

        Recorded whole while there is room, and the log told of the others when their number
        has doubled: n refusals make at most ``WHOLE`` + log2(n) records.

        >>> tally = Tally("clinic", "ada", "2026-05-03", "Q12")
        >>> for _ in range(10_000):
        ...     tally = tally.add(1000, 0)
        >>> tally.count, tally.told, tally.size
        (10000, 8192, 10000)
        """
        count = self.count + 1
        if count <= WHOLE and self.size + taken + size <= WHOLE_BYTES:
            return replace(self, count=count, told=self.told + 1, size=self.size + size)
        doubled = count & (count - 1) == 0
        return replace(self, count=count, told=count if doubled else self.told)

    def to_content(self, told: int) -> dict[str, Any]:
        """What the log is told: so many more than it knew."""
        return {"code": self.code, "day": self.day, "count": told - self.told}
