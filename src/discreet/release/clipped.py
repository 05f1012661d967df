"""Sums and means between ends that were chosen in the data: read off what was released.

The ends are released, too: what they are is said with the answer, and the noise is as wide as one
value between them.  Of values beyond the ends no margin tells anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from discreet.mechanisms.clipping import ClippedSums
from discreet.price import Clipped, Linear, Priced, Ratio
from discreet.price.margins import linear_margin
from discreet.price.plan import Moments, Scaled
from discreet.price.recipes import (
    compute_ratios,
    find_moved,
    power_coefficients,
)
from discreet.price.sets import find_range, ratio_set
from discreet.release.intervals import Interval

Drawn = Sequence[int]
"""What was released of one group: both ends and the sums."""
_MOST_NAMED = 3
"""The ends of so many groups are named; of more, between which they all lie."""


class Between:
    """One aggregate of one group, between the ends that were chosen for it."""

    def __init__(self, recipe: Clipped, sums: ClippedSums, drawn: Drawn) -> None:
        self.low, self.high = drawn[0], drawn[1]
        self.recipe, self.sums = recipe, sums
        self.entries = np.array([[float(one) for one in drawn[2:]]])
        self.coarser = sums.shift(self.low, self.high)
        variable = recipe.variable
        step = variable.grid * 2**self.coarser
        self.offset = (variable.low + self.low) * variable.grid
        steps = sums.width(self.low, self.high)
        self.moments = Moments((Scaled(variable.expression, step, 0, steps),), (recipe.degree,))
        self.exact = list(drawn[2:])

    @property
    def _ratio(self) -> Ratio:
        function = "AVG" if self.recipe.function == "TRIMMED_MEAN" else self.recipe.function
        return Ratio(0, function, self.moments)

    @property
    def _sum(self) -> Linear:
        """SUM(x) = offset * count + step * (sum of u), a combination of the entries."""
        (variable,) = self.moments.variables
        counts, sums = (power_coefficients(self.moments, (power,)) for power in (0, 1))
        pairs = zip(counts, sums, strict=True)
        coefficients = tuple(self.offset * n + variable.grid * u for n, u in pairs)
        return Linear(0, coefficients, self.recipe.variable.grid)

    @property
    def _shift(self) -> float:
        """What must be added to a value of the moments: only means and sums depend on it."""
        return float(self.offset) if self._ratio.function == "AVG" else 0.0

    def value(self) -> int | float | None:
        """The number; None where nobody can be expected to be."""
        if self.recipe.function == "SUM":
            pairs = zip(self._sum.coefficients, self.exact, strict=True)
            total = sum((c * entry for c, entry in pairs), start=Fraction(0))
            whole = round(total / self._sum.grid) * self._sum.grid
            return int(whole) if self._sum.grid.denominator == 1 else float(whole)
        found = float(compute_ratios(self._ratio, self.entries)[0])
        return found + self._shift if np.isfinite(found) else None

    def interval(self, priced: Priced, beta: Fraction) -> Interval:
        """Between which numbers the true one of the clipped values lies."""
        moved = find_moved(priced.plan.source, self.recipe.variable)
        if self.coarser:  # answers of earlier versions added values that were rounded to this grid
            moved += float(self.moments.variables[0].grid / 2)
        if self.recipe.trim is not None and self.high - self.low == 1:
            moved += float(self.recipe.variable.grid)  # perhaps one end, and nothing a step off it
        law = self.sums.law(self.low, self.high)
        beta = _tighten(beta, self.sums.count_rounded(self.low, self.high) / law.scale)
        if self.recipe.function == "SUM":
            return self._sum_interval(moved, beta)
        ends = ratio_set(self._ratio, law, self.entries, float(beta), (moved,))
        least, most = find_range(self._ratio)
        low, high = float(ends.low[0]), float(ends.high[0])
        anything = low <= least and high >= most
        return Interval(low + self._shift, high + self._shift, anything=anything)

    def _sum_interval(self, moved: float, beta: Fraction) -> Interval:
        """Rounding adds ``moved`` for every value, of which the same entries tell how many."""
        law, total = self.sums.law(self.low, self.high), self._sum
        counts = power_coefficients(self.moments, (0,))
        entries = self.entries[0]
        ends = []
        for sign in (1, -1):
            pairs = zip(total.coefficients, counts, strict=True)
            side = Linear(0, tuple(c + sign * Fraction(moved) * n for c, n in pairs), total.grid)
            margin = linear_margin(side, law, beta) + float(total.grid) / 2
            value = float(entries @ np.array([float(c) for c in side.coefficients]))
            ends += [value - margin, value + margin]
        return Interval(min(ends), max(ends))

    def ends(self) -> tuple[Fraction, Fraction]:
        """Between which values this was measured."""
        variable = self.recipe.variable
        return (variable.low + self.low) * variable.grid, (variable.low + self.high) * variable.grid


def _tighten(beta: Fraction, exponent: Fraction) -> Fraction:
    """At most beta / exp(exponent): what rounded sums may be missed with (clipping.md, Lemma 5).

    >>> _tighten(Fraction(1, 20), Fraction(0)), _tighten(Fraction(1, 20), Fraction(1, 4))
    (Fraction(1, 20), Fraction(3, 80))
    """
    return beta * (1 - exponent) if 2 * exponent <= 1 else beta / 3 ** ceil(exponent)


def describe_ends(name: str, groups: Sequence[Between]) -> str:
    """The ends that were chosen, in words."""
    if not groups:
        return f"{name}: no group is shown, and no ends."
    what = "rows are left out whose value is not within" if groups[0].recipe.trim else "clipped to"
    found = [one.ends() for one in groups]
    if len(found) <= _MOST_NAMED:
        listed = "; ".join(f"{_number(low)} ... {_number(high)}" for low, high in found)
        return f"{name}: {what} {listed}, chosen privately with this answer."
    low, high = min(one[0] for one in found), max(one[1] for one in found)
    return (
        f"{name}: {what} ends that were chosen privately for each group, all of them within "
        f"{_number(low)} ... {_number(high)}."
    )


def _number(x: Fraction) -> str:
    return f"{x.numerator:,}" if x.denominator == 1 else f"{float(x):,.6g}"


__all__ = ["Between", "describe_ends"]
