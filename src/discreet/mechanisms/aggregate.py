"""Functions of low sample complexity: what a sample can tell does not hang on one person."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, failure_share, fraction, positive, proportion, whole
from discreet.mechanisms.grid import Grid, require_names, set_fields, write_call
from discreet.mechanisms.laplace import Laplace
from discreet.noise import uniform_below


def sample_sensitivity(*, error: Exact, sampled: Exact, confidence: Exact) -> Fraction:
    """The sensitivity of a function that a random sample approximates: twice the error.

    If an algorithm that sees each row with probability at most ``sampled`` is
    within ``error`` of f (in L1) with probability at least ``confidence``, and
    confidence > (1 + sampled) / 2, then f has sensitivity at most 2 * error
    (DMNS Lemma 3.5).

    >>> sample_sensitivity(error="0.05", sampled="0.2", confidence="0.75")
    Fraction(1, 10)
    """
    share = proportion(sampled, name="sampled")
    sure = proportion(confidence, name="confidence", closed=True)
    if not sure > (1 + share) / 2:
        raise InvalidParameter(
            "P4",
            f"confidence must be above (1 + sampled) / 2 = {(1 + share) / 2}, got {sure}.",
            why="otherwise the sample may owe its result to one person, and nothing follows "
            "about the function without them.",
            fix="sample fewer rows, or repeat the estimate until it is surer.",
        )
    return 2 * positive(error, name="error")


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class SubsampleAggregate:
    """Publish the average of any function over random blocks of the data.

    Definition:
        Every row goes to one of ``blocks`` blocks, independently and uniformly.
        The ``function`` is applied to each block; its value is clipped to
        [``lower``, ``upper``] and put on the ``grid``, and where it fails or is
        not a number the middle is taken.  M(x) is the sum over blocks, plus two-sided
        geometric noise, divided by the number of blocks.

    Guarantee:
        ``epsilon``-differentially private for any function whatsoever, under
        add/remove neighbours of one row: given where the rows go, one row
        changes one block's value, by at most upper - lower.

    Accuracy:
        ``margin(beta)`` bounds the noise, about (upper - lower) ln(1/beta) /
        (epsilon blocks).  The function's own error is that of a block: small
        exactly for functions of low sample complexity.

    Reference:
        Nissim, Raskhodnikova and Smith (2007); DMNS Lemma 3.5.

    Example:
        >>> import statistics
        >>> medians = SubsampleAggregate(statistics.median, blocks=64, lower=-2, upper=14,
        ...                              epsilon="1/2", grid=Grid("1/256"))
        >>> medians.loss.epsilon, round(float(medians.margin("0.05")), 3)
        (Fraction(1, 2), 1.498)
        >>> -9 < medians.release([3, 4, 5, 6, 9] * 500) < 21
        True
    """

    function: Callable[[Any], Any]
    blocks: int
    lower: Fraction
    upper: Fraction
    epsilon: Fraction
    grid: Grid
    total: Laplace = field(init=False, compare=False)
    """The mechanism that the sum over blocks goes through, in steps of the grid."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        blocks: int,
        lower: Exact,
        upper: Exact,
        epsilon: Exact,
        grid: Grid,
    ) -> None:
        ends = fraction(lower, name="lower"), fraction(upper, name="upper")
        low, high = (grid.snap(end) for end in ends)
        if not low < high:
            raise InvalidParameter(
                "P4",
                f"upper must be at least one step of {grid!r} above lower.",
                why="a function that cannot vary has nothing to tell.",
                fix="pass public bounds on the function's value, in order.",
            )
        count = whole(blocks, name="blocks", least=1)
        total = Laplace(sensitivity=high - low, epsilon=epsilon)
        set_fields(self, function=function, blocks=count, grid=grid, total=total)
        set_fields(self, lower=low * grid.step, upper=high * grid.step, epsilon=total.epsilon)

    def __repr__(self) -> str:
        return write_call(
            self,
            function=self.function,
            blocks=self.blocks,
            lower=self.lower,
            upper=self.upper,
            epsilon=self.epsilon,
            grid=self.grid,
        )

    @property
    def loss(self) -> Loss:
        """What one release costs one row's owner."""
        return self.total.loss

    def release(self, rows: Sequence[Any] | np.ndarray[Any, Any]) -> float:
        """The noisy average of the function over fresh random blocks of ``rows``."""
        noisy = self.total.release(self._add_blocks(rows, uniform_below(self.blocks, len(rows))))
        return float(Fraction(noisy, self.blocks) * self.grid.step)

    def law(
        self, rows: Sequence[Any] | np.ndarray[Any, Any], *, where: Sequence[int]
    ) -> DiscreteLaplaceLaw:
        """The exact law of the sum over blocks, in steps, given ``where`` each of ``rows`` goes.

        Neighbours are compared block by block: whoever is added goes somewhere, and the others
        stay where they are.
        """
        if len(where) != len(rows) or not all(0 <= block < self.blocks for block in where):
            raise InvalidParameter(
                "P6",
                f"where must name one of the {self.blocks} blocks, from 0 on, for every row.",
                why="the law is that of the noise, once it is known which rows are together.",
                fix="pass as many block numbers as there are rows.",
            )
        law = self.total.law(self._add_blocks(rows, np.asarray(where, dtype=np.int64)))
        if not isinstance(law, DiscreteLaplaceLaw):
            raise TypeError("the sum is one number")
        return law

    def _add_blocks(self, rows: Any, where: np.ndarray[Any, Any]) -> int:
        """The clipped values of all blocks together, in steps."""
        order = np.argsort(where, kind="stable")
        edges = np.searchsorted(where[order], np.arange(self.blocks + 1))
        exact = 0
        for block in range(self.blocks):
            chosen = order[edges[block] : edges[block + 1]]
            members = rows[chosen] if isinstance(rows, np.ndarray) else [rows[i] for i in chosen]
            exact += self._steps(members)
        return exact

    def _steps(self, members: Any) -> int:
        """The clipped value of one block; total, because a failure would tell of the data."""
        try:
            value = float(self.function(members))
        except Exception:
            value = math.nan
        if math.isnan(value):
            value = float((self.lower + self.upper) / 2)
        return int(self.grid.snap(min(max(value, float(self.lower)), float(self.upper))))

    def margin(self, beta: Exact | None = None, *, confidence: Exact | None = None) -> Fraction:
        """How far the noise moves the average, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta.
        """
        beta = failure_share(beta, confidence)
        return self.total.margin(beta) * self.grid.step / self.blocks
