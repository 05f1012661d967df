"""Ends that are chosen in the data, privately, and what lies between them, added up with noise.

One release in two steps: two choices by rank say where values are cut, then the sums of the cut
values get noise as wide as one value between the chosen ends.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import Loss
from discreet.exact.records import dataclass
from discreet.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from discreet.mechanisms.quantiles.ranks import Cells

ENDS = 2
"""How many choices are made: of the lower end and of the upper."""
_MANTISSA = 16
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
        ends (with ``trim``: those outside are left out), put into at most 2**(bits / degree) equal
        steps u = 0 ... N between them, and of each group the sums of
        C(d, j) u**j (N - u)**(d - j), j = 0 ... d, are published with discrete Laplace noise of
        scale ``rows`` N**d / ``noise``.

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
        in docs/proofs/clipping.md, Lemmas 1 to 3.

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
        return Laplace.drawable(self.rows * 2**self.bits / self.noise)

    def shift(self, low: int, high: int) -> int:
        """How many powers of two a step between the ends is coarser than one of the values."""
        most, shift = 2 ** (self.bits // self.degree), 0
        while -(-(high - low) >> shift) > most:
            shift += 1
        return shift

    def width(self, low: int, high: int) -> int:
        """N: how many steps there are between the ends."""
        return -(-(high - low) >> self.shift(low, high))

    def law(self, low: int, high: int) -> Laplace:
        """The noise on every sum, once the ends are known."""
        weight = self.width(low, high) ** self.degree
        return Laplace(sensitivity=self.rows * weight, epsilon=self.noise)

    def release(self, position: NDArray[np.int64], count: NDArray[np.int64]) -> Counted:
        """Both ends and the noisy sums, of values in increasing order and how many are of each."""
        low, high = self._choose_ends(position, count)
        sums = self.add_up(position, count, low, high)
        noisy = self.law(low, high).release(np.array(sums, dtype=object), exact=True)
        return (low, high, *(int(one) for one in noisy))

    def score_ends(
        self, position: NDArray[np.int64], count: NDArray[np.int64]
    ) -> tuple[list[int], list[int]]:
        """The scores of all candidates for the lower end, and for the upper."""
        ends, total = self.candidates, int(count.sum())
        upto = np.concatenate(([0], np.cumsum(count)))
        below = upto[np.searchsorted(position, ends, side="left")]
        above = total - upto[np.searchsorted(position, ends, side="right")]
        after, before = np.append(below[1:], total), np.append(total, above[:-1])
        lower, upper = (
            -np.maximum(np.maximum(least - self.beyond, self.beyond - most), 0)
            for least, most in ((below, after), (above, before))
        )
        return lower.tolist(), upper.tolist()

    def _choose_ends(
        self, position: NDArray[np.int64], count: NDArray[np.int64]
    ) -> tuple[int, int]:
        if self.trim is None:
            from discreet.mechanisms.selection.exponential import ExponentialMechanism

            choice = ExponentialMechanism(sensitivity=self.score_change, epsilon=self.epsilon)
            ends = self.candidates
            low, high = (
                int(ends[choice.release(scores)]) for scores in self.score_ends(position, count)
            )
        else:
            from discreet.mechanisms.quantiles.ranks import Cells

            low, high = self._choose_quantiles(Cells(position, count, dense=False))
        # Of what is released: ends that crossed change places, and lie apart.
        low, high = min(low, high), max(low, high)
        if low == high:
            low, high = (low, high + 1) if high < self.span else (low - 1, high)
        return low, high

    def _choose_quantiles(self, cells: Cells) -> tuple[int, int]:
        from discreet.mechanisms.quantiles.quantiles import Quantiles

        trim = self.trim or Fraction(0)
        price = self.epsilon * ENDS / self.score_change
        chosen = Quantiles((trim, 1 - trim), lower=0, upper=self.span, epsilon=price)
        low, high = chosen.release_cells(cells)
        return int(low), int(high)

    def add_up(
        self, position: NDArray[np.int64], count: NDArray[np.int64], low: int, high: int
    ) -> list[int]:
        """The exact sums of the values between two ends, which must not be published."""
        shift, steps, d = self.shift(low, high), self.width(low, high), self.degree
        if self.trim is not None:
            inside = (position >= low) & (position <= high)
            position, count = position[inside], count[inside]
        between = np.clip(position, low, high) - low
        u = np.minimum((between + ((1 << shift) >> 1)) >> shift, steps)
        whole: NDArray[Any] = np.asarray(count)
        if int(whole.sum()) * steps**d * 2**d >= 2**62:
            whole, u = whole.astype(object), u.astype(object)
        return [
            int((whole * (math.comb(d, j) * u**j * (steps - u) ** (d - j))).sum())
            for j in range(d + 1)
        ]


@lru_cache(maxsize=64)
def _list_candidates(span: int, zero: int) -> NDArray[np.int64]:
    far = max(zero, span - zero)
    away, step = list(range(2 * _MANTISSA)), 2
    while away[-1] < far:
        away += [(_MANTISSA + part) * step for part in range(_MANTISSA)]
        step *= 2
    found = {0, span, zero}
    found |= {zero + one for one in away if zero + one <= span}
    found |= {zero - one for one in away if zero - one >= 0}
    return np.array(sorted(found), dtype=np.int64)


__all__ = ["ENDS", "ClippedSums"]
