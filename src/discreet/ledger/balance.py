"""What is spent and what is left, for every block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import SATURATED, Budget, Remaining
from discreet.accounting.conversion import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS
from discreet.accounting.loss import Loss
from discreet.exact.records import dataclass
from discreet.ledger.books import Balances, Blocks, Units, decode_blocks, encode_blocks
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

    ``dataset`` and ``analyst`` say whose, ``budget`` of what; ``space`` are the blocks, and
    ``balances`` what was lost in each, in whole units. Behind an analyst's stand the dataset's own,
    ``cap``, which always wins, and ``group``, what all of their group have spent of its common
    limit, if it has one. ``entities`` is what people who may be in other datasets, too, have lost
    in all of them.

    A budget holds for every block by itself: a block's balance is what its own people have lost.
    """

    dataset: str
    analyst: str | None
    budget: Budget
    space: Space
    balances: Balances
    cap: Balance | None = None
    group: Balance | None = None
    entities: tuple[EntityBalance, ...] = ()

    @property
    def spent(self) -> Loss:
        """What was lost in the block that lost most."""
        return self.block(self.fullest())

    def block(self, number: int) -> Loss:
        """What was lost in the block ``number``."""
        epsilon, rho, delta = (int(part) for part in self.balances[:, number])
        return _loss_of((epsilon, rho, delta))

    def share(self, number: int) -> float:
        """How much of the budget the block ``number`` has used, from 0 to 1; for drawing."""
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
        """Blocks by name, with what was lost and the share of the budget; the fullest first.

        At most ``limit`` of them.
        """
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
        left = [balance._find_left(blocks) for balance in self._caps()]
        epsilons = [epsilon for epsilon, _ in left if epsilon is not None]
        return min(epsilons, default=None), min(rho for _, rho in left)

    def repeats(self, loss: Loss) -> int:
        """How many times everybody could lose ``loss`` more before some budget is spent."""
        return min(
            cap.budget.repeats(_loss_of((int(epsilon), int(rho), int(delta))), loss)
            for cap in self._caps()
            for epsilon, rho, delta in np.unique(cap.balances, axis=1).T
        )

    def failures_left(self) -> Fraction:
        """How much more delta of single answers everybody could lose."""
        return min(
            cap.budget.failures - Fraction(int(cap.balances[2].max(initial=0)), DELTA_UNITS)
            for cap in self._caps()
        )

    def _caps(self) -> tuple[Balance, ...]:
        """All balances that a charge must fit into."""
        behind = () if self.cap is None else self.cap._caps()
        common = () if self.group is None else (self.group,)
        return (self, *common, *behind, *(entity.total for entity in self.entities))

    def _find_left(self, blocks: Blocks) -> tuple[Fraction | None, Fraction]:
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
        """What is left in the block ``number``, or else the fullest, in counting questions."""
        return self.budget.remaining(self.block(self.fullest() if number is None else number))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        words = str(self.remaining())
        if self.space.size > 1:
            words = f"In the block that lost most ({self.space.name(self.fullest())}):\n{words}"
        if self.group is not None:
            words = f"{words}\nThe group {self.group.analyst}, together:\n{self.group}"
        if self.cap is not None:
            words = f"{words}\nThe whole dataset:\n{self.cap}"
        return "\n".join([words, *map(str, self.entities)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EntityBalance:
    """What the people of an entity have lost in all datasets that are about them.

    ``total`` is for each block of one dataset what its people, of ``entity``, can have lost there
    and elsewhere; ``parts`` the most that anybody can have lost in each dataset, in whole units.
    """

    entity: str
    total: Balance
    parts: Mapping[str, Units]

    @property
    def budget(self) -> Budget:
        """What the people of the entity may lose in all."""
        return self.total.budget

    def spent_in(self, dataset: str) -> Loss:
        """The most that anybody can have lost in one ``dataset``."""
        return _loss_of(self.parts[dataset])

    @property
    def spent(self) -> Loss:
        """The most that anybody can have lost in all datasets together."""
        return _loss_of(_add_units(self.parts.values()))

    @property
    def share(self) -> float:
        """How much of the budget whoever lost most has used, from 0 to 1; for drawing."""
        return self.total.share(self.total.fullest())

    def without_names(self) -> EntityBalance:
        """The same, with all other datasets together: whoever may ask here need not know them."""
        own = self.total.dataset
        others = [lost for name, lost in self.parts.items() if name != own]
        merged = {own: self.parts[own], **({"": _add_units(others)} if others else {})}
        return replace(self, parts=merged)

    def describe(self) -> list[tuple[str, Loss]]:
        """What was lost in each dataset, by name, this one first."""
        own = self.total.dataset
        order = sorted(self.parts, key=lambda name: (name != own, name))
        return [(name or "other datasets", self.spent_in(name)) for name in order]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        told = "; ".join(f"{name}: {spent}" for name, spent in self.describe())
        left = self.budget.remaining(self.spent)
        return f"Each {self.entity}, of {self.budget} in all datasets ({told}):\n{left}"


def _add_units(parts: Iterable[Units]) -> Units:
    listed = list(parts)
    epsilon, rho, delta = (min(sum(part[i] for part in listed), SATURATED) for i in range(3))
    return epsilon, rho, delta


def _loss_of(units: Units) -> Loss:
    epsilon, rho, delta = units
    if epsilon >= SATURATED and rho >= SATURATED:
        return _ALL_SPENT
    return Loss.from_units(
        None if epsilon >= SATURATED else epsilon, None if rho >= SATURATED else rho, delta
    )
