"""What a publication may lose, and how it is divided among draws without losing a crumb.

A publication is many noisy tables.  Plans weigh them in doubles; losses are
fractions.  Between the two stands :func:`Spend.divide`: it turns weights into
whole parts of the amount that add up to exactly the amount, so the loss summed
over the draws is the loss that was charged (docs/proofs/publication.md, Lemma 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.conversion import EPSILON_UNITS, RHO_UNITS, largest_rho
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive, proportion, whole
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace

Noise = Gaussian | Laplace
"""The two mechanisms that counts are measured with."""

PARTS = 2**24
"""An amount is divided into multiples of this part of itself, or of a smaller one."""


class Kind(Enum):
    """Which noise is drawn, and so which coordinate of a loss adds up."""

    GAUSSIAN = "rho"
    LAPLACE = "epsilon"


@dataclass(frozen=True, slots=True)
class Spend:
    """An amount of rho, for Gaussian noise, or of epsilon, for Laplace noise.

    ``kind`` says which of the two, ``amount`` how much.

    ``rows_per_unit`` is how many rows one unit may have in the view that is
    measured; every sensitivity is multiplied by it.

    >>> both = Spend.pure("1/2", rows_per_unit=3).divide([2, 1])
    >>> [part.amount for part in both]
    [Fraction(1, 3), Fraction(1, 6)]
    >>> both[0].noise().scale == 3 / both[0].amount
    True
    """

    kind: Kind
    amount: Fraction
    rows_per_unit: int = 1

    @classmethod
    def concentrated(cls, rho: Exact, *, rows_per_unit: int = 1) -> Spend:
        """Gaussian noise, ``rho``-zCDP in all.

        Units have at most ``rows_per_unit`` rows.
        """
        rows = whole(rows_per_unit, name="rows_per_unit", least=1)
        return cls(Kind.GAUSSIAN, positive(rho, name="rho"), rows)

    @classmethod
    def pure(cls, epsilon: Exact, *, rows_per_unit: int = 1) -> Spend:
        """Laplace noise, ``epsilon``-differentially private in all.

        Units have at most ``rows_per_unit`` rows.
        """
        rows = whole(rows_per_unit, name="rows_per_unit", least=1)
        return cls(Kind.LAPLACE, positive(epsilon, name="epsilon"), rows)

    @classmethod
    def approximate(cls, epsilon: Exact, delta: Exact, *, rows_per_unit: int = 1) -> Spend:
        """Gaussian noise with the largest rho that certifies (``epsilon``, ``delta``).

        Units have at most ``rows_per_unit`` rows.

        >>> round(float(Spend.approximate(1, "1e-9").amount), 6)
        0.014973
        """
        wanted = positive(epsilon, name="epsilon")
        allowed = proportion(delta, name="delta")
        return cls.concentrated(largest_rho(wanted, allowed), rows_per_unit=rows_per_unit)

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.kind is Kind.GAUSSIAN

    @property
    def loss(self) -> Loss:
        """What spending all of it costs one unit, as the sum over draws will say."""
        return Loss.concentrated(self.amount) if self.gaussian else Loss.pure(self.amount)

    @property
    def sharpness(self) -> float:
        """1 / the standard deviation of one count measured with all of it."""
        spent = float(self.amount)
        return (math.sqrt(2 * spent) if self.gaussian else spent / math.sqrt(2)) / (
            self.rows_per_unit
        )

    def divide(self, weights: ArrayLike) -> list[Spend]:
        """Parts in proportion to the ``weights``, that add up to exactly this amount.

        Doubles decide who gets how much, never how much there is.  Where the amount is a
        whole number of an account's units, so is every part: stages that are charged one
        by one, each rounded up, do not come to more than the amount.
        """
        shares = np.asarray(weights, dtype=np.float64)
        if not shares.size or not np.isfinite(shares).all() or shares.min() <= 0:
            raise InvalidParameter(
                "P4",
                "every part of a spend needs a positive and finite weight.",
                why="a table that gets nothing would have to be published without noise.",
                fix="leave out what is not to be measured.",
            )
        if shares.size > PARTS // 2:
            raise InvalidParameter(
                "P2",
                f"a spend is divided into at most {PARTS // 2} parts.",
                why="each part must be a whole multiple of a fixed fraction of it.",
                fix="measure fewer tables.",
            )
        whole = self._count_parts()
        free = whole - shares.size  # one for everybody first
        parts = [1 + math.floor(wished) for wished in shares / shares.sum() * free]
        parts[int(np.argmax(shares))] += whole - sum(parts)
        return [
            Spend(self.kind, self.amount * Fraction(part, whole), self.rows_per_unit)
            for part in parts
        ]

    def _count_parts(self) -> int:
        """How many equal parts it is made of: whole units of the account, if there are enough."""
        units = self.amount * (RHO_UNITS if self.kind is Kind.GAUSSIAN else EPSILON_UNITS)
        if units.denominator > 1 or units < PARTS:
            return PARTS
        parts = units.numerator
        while parts % 10 == 0 and parts >= 640 * PARTS:  # fine enough
            parts //= 10
        return parts

    def noise(self, *, sensitivity: int = 1) -> Noise:
        """The mechanism for numbers that one row moves by ``sensitivity`` (L1 and so L2)."""
        reach = sensitivity * self.rows_per_unit
        if self.gaussian:
            return Gaussian(sensitivity=reach, rho=self.amount)
        return Laplace(sensitivity=reach, epsilon=self.amount)

    def noise_of(self, *, l1: int, l2_squared: int) -> Noise:
        """The mechanism for whole numbers of which one row moves so much in all.

        ``l1`` is the sum of how far, ``l2_squared`` that of the squares.
        """
        if self.gaussian:
            return Gaussian(sensitivity_squared=l2_squared * self.rows_per_unit**2, rho=self.amount)
        return Laplace(sensitivity=l1 * self.rows_per_unit, epsilon=self.amount)


def total_loss(noises: Sequence[Noise]) -> Loss:
    """What a list of draws costs: their losses added."""
    return sum((noise.loss for noise in noises), start=_nothing())


def deviation(noise: Noise) -> float:
    """An upper bound on the standard deviation of one entry, tight from a scale of 1 up.

    sigma for Gaussian and sqrt(2) times the scale for Laplace noise: the amounts
    that tails are bounded with.
    """
    if isinstance(noise, Gaussian):
        return math.sqrt(noise.variance)
    return math.sqrt(2) * float(noise.scale)


def _nothing() -> Any:
    return Loss(Fraction(0), Fraction(0))
