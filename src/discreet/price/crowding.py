"""The test that few people stand in too many rows: what it costs, and when it is passed.

Of rows with two owners the first so many of every owner are read, and what one person changes by
leaving is bounded for everybody as long as few people stand in more.  How far the data are from
having too many such people moves by at most one as a person leaves (docs/proofs/graphs.md,
Lemma 3), so that it can be released with noise: the table is opened if it is large enough with
noise, and a table that must not be opened is so with probability at most delta.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.accounting.loss import Loss
from discreet.exact.records import dataclass
from discreet.mechanisms import Gaussian
from discreet.price.keys import find_threshold
from discreet.question.schema import Owners, Table


@dataclass(frozen=True, slots=True)
class CrowdingTest:
    """The test of one table: the noise on the distance, and from where on it is passed.

    >>> from discreet.question.schema import Schema
    >>> table = Schema.from_text('''
    ... [tables.messages]
    ... unit = { any = ["sender", "receiver"] }
    ... entity = "person"
    ... max_rows_per_unit = 200
    ... max_rows_per_pair = 4
    ... crowding = { rho = 0.02, delta = 1e-9 }
    ... [tables.messages.columns]
    ... sender = "integer"
    ... receiver = "integer"
    ... ''').tables["messages"]
    >>> test = CrowdingTest.of(table)
    >>> test.allowed, test.least, float(test.loss.rho)
    (50, 31, 0.02)
    """

    allowed: int
    """How many people may stand in too many rows."""
    noise: Gaussian
    least: int
    """The noisy distance from which on the table is opened."""
    loss: Loss

    @classmethod
    def of(cls, table: Table) -> CrowdingTest:
        """The test that a table with two owners declares."""
        crowding, rows, pair = table.crowding, table.max_rows_per_unit, table.max_rows_per_pair
        if table.owners is not Owners.ANY or crowding is None or rows is None or pair is None:
            raise TypeError(f"the rows of {table.name} have one owner")
        noise = Gaussian(sensitivity=1, rho=crowding.rho)
        # The distance of data that must stay closed is at most 0: P(0 + Z >= least) <= delta.
        least = find_threshold(0, noise, 1, crowding.delta, split=False).least - 1
        loss = Loss.concentrated(noise.loss.rho, crowding.delta)
        return cls(rows // pair, noise, least, loss)

    def measure(self, above: Sequence[int]) -> int:
        """How far the data are from too large a crowd; -1 if it is too large already.

        ``above``: of each level, how many people stand in more rows than max_rows_per_unit less
        so many times max_rows_per_pair.  The largest j with above[i] + i <= allowed for all i up
        to j (Lemma 3).

        >>> from types import SimpleNamespace
        >>> CrowdingTest.measure(SimpleNamespace(allowed=5), [1, 1, 2, 4, 9, 9])
        2
        """
        for level in range(self.allowed + 1):
            if above[level] + level > self.allowed:
                return level - 1
        return self.allowed


__all__ = ["CrowdingTest"]
