"""Ends that are chosen in the data, privately, and what lies between them, added up with noise.

One release in two steps: two choices by rank say where values are cut, then the sums of the cut
values get noise as wide as one value between the chosen ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.exact.records import dataclass
from discreet.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from discreet.mechanisms.quantiles.quantiles import Quantiles
    from discreet.mechanisms.quantiles.ranks import RankedCells

ENDS = 2
"""How many choices are made: of the lower end and of the upper."""
MANTISSA = 16
"""Ends are looked for in steps of a sixteenth of their distance from zero ..."""
_SURE = 5.0
"""... and so many ranks away from the end that emptiness is chosen less than once in a hundred."""

Counted = tuple[int, ...]
"""What is released of a group: both ends, in steps, and the sums."""


@dataclass(frozen=True, slots=True)
class ClippedSums:
    """Choose two ends by their rank; then publish Bernstein sums of the values between them.

    Definition:
        Values are steps 0 ... ``span``.  Without ``trim``, the candidates for an end are the
        steps that lie 0, 1, 2 ... 32, then sixteenths of a power of two, away from ``zero`` on
        either side.  The upper end is chosen by the exponential mechanism: c has the score minus
        the distance of k from the interval [values above c, values above the candidate before c],
        and so for the lower end with values below, where k = ``beyond`` is public.  With ``trim``
        = t they are the t- and (1 - t)-quantiles (:class:`Quantiles`).  Values are clipped to the
        ends (with ``trim``: those outside are left out; ends that are one are released a step
        apart, and what is not at the chosen one is left out) and measured from the lower one in N
        steps, at most 2**(bits / degree), each 2**s of the values': u = 0 ... N, a fraction if
        s > 0.  Of each group the sums of C(d, j) u**j (N - u)**(d - j), j = 0 ... d, are rounded
        down and published with discrete Laplace noise of scale ``rows`` W / ``noise``, where
        W = N**d, and d + 1 more if s > 0.

    Guarantee:
        If between neighbours the values of one group change by at most ``score_change`` (so many
        are added or removed), those of all groups by at most ``rows``, and those of at most
        ``groups`` groups change at all as a unit's rows do (docs/proofs/price.md, Lemma 6), all
        groups together are (2 groups epsilon + noise)-differentially private.

    Accuracy:
        The sums are off by the noise alone, whose law is known with the ends.  If there are at
        least k values, except with probability beta at most k + m are beyond a chosen end and at
        least k - m beyond the candidate before it, m = ``ExponentialMechanism.margin(beta)``.

    Reference:
        Clipping at a private rank: Smith (2011); Amin, Kulesza, Munoz Medina and Vassilvitskii
        (2019), who show that about as many values should be clipped as the noise hides.  Proofs
        in docs/proofs/clipping.md, Lemmas 1 to 5.

    Example:
        >>> sums = ClippedSums(Fraction(1, 8), Fraction(3, 4), rows=3, score_change=3, span=10**6)
        >>> print(sums.loss)
        ε = 1, ρ = 0.272675, δ = 0
        >>> cells = np.arange(1000, 3000), np.full(2000, 7)
        >>> low, high, *noisy = sums.release(*cells)
        >>> 0 <= low < 1500 and 2500 < high <= 10**6
        True
        >>> abs(sum(noisy) / sums.width(low, high) - 14_000) < 400
        True
    """

    epsilon: Fraction
    """What one choice costs a unit, in a group that it fills."""
    noise: Fraction
    """What the noise costs it, in all groups."""
    rows: int
    score_change: int
    span: int
    groups: int = 1
    zero: int = 0
    degree: int = 1
    bits: int = 30
    trim: Fraction | None = None

    @property
    def choices(self) -> int:
        """How many choices are made in each group."""
        return ENDS

    @property
    def finding(self) -> Loss:
        """What both ends cost one unit."""
        return (ENDS * self.groups) * Loss.exponential(self.epsilon)

    @property
    def loss(self) -> Loss:
        """What the ends and the sums cost one unit."""
        return self.finding + Loss.pure(self.noise)

    @property
    def candidates(self) -> NDArray[np.int64]:
        """The steps among which ends are chosen, where they are not quantiles."""
        return _list_candidates(self.span, self.zero)

    @property
    def beyond(self) -> int:
        """How many values are to lie beyond an end; public."""
        rate = float(self.epsilon) / (2 * self.score_change)
        return math.ceil((math.log(self.candidates.size) + _SURE) / rate)

    @property
    def drawable(self) -> bool:
        """Whether the noise fits 64-bit integers, whichever ends are chosen."""
        return Laplace.drawable(self.rows * (2**self.bits + self.degree + 1) / self.noise)

    def shift(self, low: int, high: int) -> int:
        """How many powers of two a step between the ends is coarser than one of the values."""
        most, shift = 2 ** (self.bits // self.degree), 0
        while -(-(high - low) >> shift) > most:
            shift += 1
        return shift

    def width(self, low: int, high: int) -> int:
        """N: how many steps there are between the ends."""
        return -(-(high - low) >> self.shift(low, high))

    def weigh(self, low: int, high: int) -> int:
        """W: what one value moves the sums by, in all (Lemma 2)."""
        whole: int = self.width(low, high) ** self.degree
        return whole + self.count_rounded(low, high)

    def count_rounded(self, low: int, high: int) -> int:
        """How many of the sums are rounded down: none where steps are those of the values."""
        return self.degree + 1 if self.shift(low, high) else 0

    def law(self, low: int, high: int) -> Laplace:
        """The noise on every sum, once the ends are known."""
        return Laplace(sensitivity=self.rows * self.weigh(low, high), epsilon=self.noise)

    @property
    def quantiles(self) -> Quantiles:
        """The choice of both ends, where they are quantiles."""
        from discreet.mechanisms.quantiles.quantiles import Quantiles

        trim = self.trim or Fraction(0)
        price = self.epsilon * ENDS / self.score_change
        return Quantiles((trim, 1 - trim), lower=0, upper=self.span, epsilon=price)

    def release(self, position: NDArray[np.int64], count: NDArray[np.int64]) -> Counted:
        """Both ends and the noisy sums, of values in increasing order and how many are of each."""
        return self.release_lumps(Lumps.of(position, count))

    def release_lumps(self, lumps: Lumps) -> Counted:
        """The same, of values of which some are told together."""
        chosen = self._choose_ends(lumps)
        low, high = self._move_apart(*chosen)
        sums = np.array(self._add_up(lumps, low, high, chosen), dtype=object)
        noisy = self.law(low, high).release(sums, exact=True)
        return (low, high, *(int(one) for one in noisy))

    def score_ends(
        self, position: NDArray[np.int64], count: NDArray[np.int64]
    ) -> tuple[list[int], list[int]]:
        """The scores of all candidates for the lower end, and for the upper."""
        return self._score_ends(Lumps.of(position, count))

    def _score_ends(self, lumps: Lumps) -> tuple[list[int], list[int]]:
        ends = self.candidates
        if lumps.hide_any(ends):
            lumps = lumps.look_up()
        total, upto = int(lumps.count.sum()), np.concatenate(([0], np.cumsum(lumps.count)))
        below = upto[np.searchsorted(lumps.last, ends, side="left")]
        above = total - upto[np.searchsorted(lumps.last, ends, side="right")]
        after, before = np.append(below[1:], total), np.append(total, above[:-1])
        lower, upper = (
            -np.maximum(np.maximum(least - self.beyond, self.beyond - most), 0)
            for least, most in ((below, after), (above, before))
        )
        return lower.tolist(), upper.tolist()

    def _choose_ends(self, lumps: Lumps) -> tuple[int, int]:
        if self.trim is None:
            from discreet.mechanisms.selection.exponential import ExponentialMechanism

            choice = ExponentialMechanism(sensitivity=self.score_change, epsilon=self.epsilon)
            ends = self.candidates
            low, high = (int(ends[choice.release(scores)]) for scores in self._score_ends(lumps))
        else:
            chosen = self.quantiles
            low, high = map(int, chosen.release_ranked(lumps.rank(chosen.domain.shift)))
        return min(low, high), max(low, high)  # those that crossed change places

    def _move_apart(self, low: int, high: int) -> tuple[int, int]:
        """The ends that are released: those chosen, a step apart if they are the same."""
        if low == high:
            return (low, high + 1) if high < self.span else (low - 1, high)
        return low, high

    def add_up(
        self, position: NDArray[np.int64], count: NDArray[np.int64], low: int, high: int
    ) -> list[int]:
        """The exact sums of the values between two ends, which must not be published."""
        return self._add_up(Lumps.of(position, count), low, high, (low, high))

    def _add_up(self, lumps: Lumps, low: int, high: int, chosen: tuple[int, int]) -> list[int]:
        """With ``trim``, of the values between the ends as they were ``chosen``."""
        least, most_kept = (low, high) if self.trim is None else chosen
        inside = (lumps.first >= least) & (lumps.last <= most_kept)
        below, above = lumps.last < least, lumps.first > most_kept
        if self.trim is None:  # what is clipped to an end may be told with what stands there
            below |= (lumps.last == low) & ~inside
            above |= (lumps.first == high) & ~inside
        if not np.all(inside | below | above):
            return self._add_up(lumps.look_up(), low, high, chosen)
        d, shift = self.degree, self.shift(low, high)
        most = self.width(low, high) << shift
        told = lumps.add_powers(inside, d)
        # The sums of powers of how far the values are from the lower end.
        off = [
            sum(math.comb(j, i) * (-low) ** (j - i) * told[i] for i in range(j + 1))
            for j in range(d + 1)
        ]
        if self.trim is None:
            off[0] += int(lumps.count[below].sum())
            beyond = int(lumps.count[above].sum())
            off = [one + beyond * (high - low) ** j for j, one in enumerate(off)]
        return [
            math.comb(d, j)
            * sum(
                math.comb(d - j, i) * most ** (d - j - i) * (-1) ** i * off[j + i]
                for i in range(d - j + 1)
            )
            >> (shift * d)
            for j in range(d + 1)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Lumps:
    """Values in increasing order, those of some steps together (docs/proofs/clipping.md, Lemma 4).

    Of each lump the first and the last step, how many values it has, and the sums of the powers of
    their steps; a lump of one step needs none.  What lumps do not tell is looked up.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    count: NDArray[np.int64]
    powers: tuple[NDArray[Any], ...]
    look_up: Callable[[], Lumps]

    @classmethod
    def of(cls, position: NDArray[np.int64], count: NDArray[np.int64]) -> Lumps:
        """Every step by itself: all is told."""

        def refuse() -> Lumps:
            raise TypeError("steps that stand alone hide nothing")

        return cls(position, position, count, (), refuse)

    def hide_any(self, places: NDArray[np.int64]) -> bool:
        """Whether one of these places, which are in order, lies among several steps of a lump."""
        several = self.first < self.last
        reached = np.searchsorted(places, self.first[several], side="left")
        passed = np.searchsorted(places, self.last[several], side="right")
        return bool(np.any(reached < passed))

    def rank(self, shift: int) -> RankedCells:
        """The same for a choice by rank."""
        from discreet.mechanisms.quantiles.ranks import Cells, LumpedCells, RankedCells

        cells = Cells(self.last, self.count, dense=False)
        ranked = RankedCells.of(cells, shift=shift)
        if not np.any(self.first < self.last):
            return ranked
        upto, total = ranked.cumulative, ranked.total
        return LumpedCells(
            ranked.at, upto, shift, 0, total, self.first, lambda: self.look_up().rank(shift)
        )

    def add_powers(self, chosen: NDArray[np.bool_], degree: int) -> list[int]:
        """The sums of the powers 0 ... ``degree`` of the steps of some lumps."""
        count: NDArray[Any] = self.count[chosen]
        at: NDArray[Any] = self.last[chosen]
        alone = self.first[chosen] == at
        found = [int(count.sum())]
        if int(at.max(initial=0)) ** degree * found[0] >= 2**62:
            count, at = count.astype(object), at.astype(object)
        for power in range(1, degree + 1):
            each = count * at**power
            if self.powers:
                each = np.where(alone, each, self.powers[power - 1][chosen])
            elif not alone.all():
                raise TypeError("lumps without the sums of their powers")
            found.append(int(each.sum()))
        return found


@lru_cache(maxsize=64)
def _list_candidates(span: int, zero: int) -> NDArray[np.int64]:
    far = max(zero, span - zero)
    away, step = list(range(2 * MANTISSA)), 2
    while away[-1] < far:
        away += [(MANTISSA + part) * step for part in range(MANTISSA)]
        step *= 2
    found = {0, span, zero}
    found |= {zero + one for one in away if zero + one <= span}
    found |= {zero - one for one in away if zero - one >= 0}
    return np.array(sorted(found), dtype=np.int64)


__all__ = ["ENDS", "MANTISSA", "ClippedSums", "Lumps"]
