"""What is spent and what is left, for every block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import SATURATED, Budget, Remaining
from discreet.accounting.conversion import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from discreet.accounting.loss import Loss
from discreet.ledger.books import Balances, Blocks, decode_blocks, encode_blocks
from discreet.question.blocks import Area, Space

_ALL_SPENT = Loss(
    Fraction(SATURATED, EPSILON_UNITS),
    Fraction(SATURATED, RHO_UNITS),
    Fraction(DELTA_UNITS - 1, DELTA_UNITS),
)
"""Stands for a loss that nothing bounds, which no ``Loss`` can say."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Balance:
    """What was spent under one budget: a dataset's, or an analyst's allocation.

    A budget holds for every block by itself: a block's balance is what its own people have lost.
    """

    dataset: str
    analyst: str | None
    budget: Budget
    space: Space
    balances: Balances
    cap: Balance | None = None
    """The dataset's own balance, behind an analyst's: it always wins."""

    @property
    def spent(self) -> Loss:
        """What was lost in the block that lost most."""
        return self.block(self.fullest())

    def block(self, number: int) -> Loss:
        """What was lost in one block."""
        epsilon, rho, delta = (int(part) for part in self.balances[:, number])
        if epsilon >= SATURATED and rho >= SATURATED:
            return _ALL_SPENT
        return Loss.from_units(
            None if epsilon >= SATURATED else epsilon, None if rho >= SATURATED else rho, delta
        )

    def share(self, number: int) -> float:
        """How much of the budget one block has used, from 0 to 1; for drawing."""
        return float(self._shares()[number])

    def fullest(self) -> int:
        """The block that has used most of the budget."""
        return int(np.argmax(self._shares()))

    def _shares(self) -> NDArray[np.float64]:
        """By the filter that has more left; nothing here decides whether a charge is admitted."""
        amounts = self.balances.astype(np.float64)
        most_epsilon, most_rho = self.budget.countable
        rho: NDArray[np.float64] = amounts[1] / max(1.0, float(most_rho * RHO_UNITS))
        if most_epsilon is None:
            return np.minimum(rho, 1.0, out=rho)
        epsilon = amounts[0] / float(most_epsilon * EPSILON_UNITS)
        least = np.minimum(epsilon, rho) if self.budget.rho else epsilon
        shares: NDArray[np.float64] = np.minimum(least, 1.0)
        return shares

    def blocks(self, limit: int | None = None) -> Iterator[tuple[str, Loss, float]]:
        """Blocks by name, with what was lost and the share of the budget; the fullest first."""
        shares = self._shares()
        order = np.argsort(-shares, kind="stable")
        for number in order[:limit].tolist():
            yield self.space.name(number), self.block(number), float(shares[number])

    def left(self, area: Area | None = None) -> tuple[Fraction | None, Fraction]:
        """The most epsilon, and the most rho, that one more question about ``area`` may cost.

        Either is enough, without a failure mass.  ``None`` for a budget of rho alone.
        """
        area = Area.everything(self.space) if area is None else area
        blocks = decode_blocks(encode_blocks(area.edges, self.space.size), self.space.size)
        left = self._left(blocks)
        if self.cap is None:
            return left
        whole = self.cap._left(blocks)
        epsilons = [part for part in (left[0], whole[0]) if part is not None]
        return min(epsilons, default=None), min(left[1], whole[1])

    def _left(self, blocks: Blocks) -> tuple[Fraction | None, Fraction]:
        touched = self.balances[:, blocks]
        most_epsilon, most_rho = self.budget.countable
        if touched.shape[1] == 0:
            return most_epsilon, most_rho
        if int(touched[2].max()) > self.budget.failures * DELTA_UNITS:
            return (None if most_epsilon is None else Fraction(0)), Fraction(0)
        rho = max(Fraction(0), most_rho - Fraction(int(touched[1].max()), RHO_UNITS))
        if most_epsilon is None:
            return None, rho
        epsilon = most_epsilon - Fraction(int(touched[0].max()), EPSILON_UNITS)
        return max(Fraction(0), epsilon), rho

    def remaining(self, number: int | None = None) -> Remaining:
        """What is left in one block, in counting questions; in the fullest, unless one is named."""
        return self.budget.remaining(self.block(self.fullest() if number is None else number))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        words = str(self.remaining())
        if self.space.size > 1:
            words = f"In the block that lost most ({self.space.name(self.fullest())}):\n{words}"
        if self.cap is None:
            return words
        return f"{words}\nThe whole dataset:\n{self.cap}"
