"""What released numbers of people with at least so many connections tell: free, and consistent.

The number of people with at least t connections does not grow with t, so noisy ones are replaced
by the closest that do not; a histogram of degrees, their mean and wedges are read off those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.mechanisms.postprocess import isotonic


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many people have at least 1, 2, ... connections, as fitted: ``at_least``.

    >>> fitted = Degrees.fit([30, 33, 12, 13, -1])
    >>> fitted.at_least
    (31.5, 31.5, 12.5, 12.5, 0.0)
    >>> fitted.histogram, round(fitted.mean, 2), fitted.wedges
    ((0.0, 19.0, 0.0, 12.5, 0.0), 2.79, 94.0)
    """

    at_least: tuple[float, ...]

    @classmethod
    def fit(cls, people: Sequence[float]) -> Degrees:
        """The closest numbers that do not grow and are not negative.

        ``people``: what SELECT at_least, COUNT(*) FROM DEGREES(friends, T) GROUP BY at_least tells.
        """
        falling = isotonic([float(number) for number in people][::-1])[::-1]
        return cls(tuple(np.maximum(falling, 0).tolist()))

    @property
    def histogram(self) -> tuple[float, ...]:
        """How many people have exactly 1, 2, ... connections; the last number: so many or more."""
        return tuple(a - b for a, b in zip(self.at_least, (*self.at_least[1:], 0.0), strict=True))

    @property
    def mean(self) -> float:
        """The mean degree of those who have a connection, counted up to the last number."""
        return sum(self.at_least) / self.at_least[0] if self.at_least[0] else 0.0

    @property
    def wedges(self) -> float:
        """How many times two connections meet in one person, counted up to the last number."""
        return sum(place * people for place, people in enumerate(self.at_least))


__all__ = ["Degrees"]
