"""Which mechanism a share of the spend buys, with which parameters; and how a spend is shared.

``release`` alone calls what is bought; nothing is drawn here.  Noise that would not fit 64-bit
integers is not bought at all: the mechanisms say which can be drawn.

One spend is divided among the measurements of a statement so that errors are least.  Let
a_i be the size of measurement i's noise at a loss of one, in its own unit (persons, say).
With pure losses e_i that add up to e, the sum of squared errors of (a_i / e_i)**2 is least
for e_i proportional to a_i**(2/3); with concentrated losses, the sum of a_i**2 / r_i is
least for r_i proportional to a_i (Lagrange).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.accounting.conversion import largest_rho
from discreet.accounting.loss import Loss
from discreet.exact.balls import sqrt_down
from discreet.exact.numbers import round_down, round_up
from discreet.exact.records import dataclass
from discreet.exact.search import bracket
from discreet.mechanisms import Gaussian, KeyRelease, Laplace, Staircase
from discreet.mechanisms.clipping import ENDS, ClippedSums
from discreet.mechanisms.gaussian import (
    analytic_variance,
    gaussian_delta,
    gaussian_equal_delta,
    gaussian_vector_delta,
)
from discreet.mechanisms.staircase import best_width, mean_distance
from discreet.price.plan import (
    Histogram,
    Lumping,
    Lumpings,
    Measurement,
    Moves,
    Sensitivity,
    Stretch,
)
from discreet.price.recipes import Choice, Clipped, Quantile, Spread
from discreet.price.summed import Summed

if TYPE_CHECKING:
    from discreet.mechanisms import Quantiles, TopK
    from discreet.price.priced import Priced

Additive = Laplace | Gaussian | Staircase
"""Noise on every entry of a measurement."""

_STEP = Fraction(1, 2**20)


@dataclass(frozen=True, slots=True)
class Selection:
    """Choices by the exponential mechanism, ``choices`` one after another in each group.

    One unit is in at most ``groups`` groups.  In each it moves scores by at most
    ``score_change`` in all (a change of a unit: what it takes away and what it
    adds), and ``epsilon`` is what one choice costs it.
    """

    epsilon: Fraction
    choices: int
    groups: int
    score_change: int

    @property
    def loss(self) -> Loss:
        """What it costs one unit."""
        return (self.choices * self.groups) * Loss.exponential(self.epsilon)

    def top_k(self, recipe: Choice) -> TopK:
        """The mechanism that chooses the most frequent values.

        Counts only grow when a unit is added, so the scores are monotonic; a change
        lets some fall and others rise, which ``score_change`` adds up.
        """
        from discreet.mechanisms.selection.top_k import TopK  # few questions choose

        return TopK(
            k=recipe.count,
            sensitivity=self.score_change,
            epsilon=self.epsilon * recipe.count,
            method="gumbel",
            monotonic=True,
        )

    def quantiles(self, recipe: Quantile) -> Quantiles:
        """The mechanism that chooses quantiles, for a unit that moves one rank at a time.

        A unit that moves scores by ``score_change`` loses as much as that many units
        that move them by one, so each of those is granted that part of the price.
        """
        from discreet.mechanisms.quantiles.quantiles import Quantiles

        levels = len(recipe.different).bit_length()
        return Quantiles(
            recipe.different,
            lower=0,
            upper=recipe.variable.span,
            epsilon=self.epsilon * levels / self.score_change,
        )


Noisy = Additive | Summed
"""The noise on every entry of what is shown, drawn for it or added up from released entries."""

Bought = Noisy | Selection | ClippedSums | KeyRelease
"""What a measurement is released with."""

FINDING = Fraction(1, 2)
"""The part of the price of a clipped sum that its ends cost."""
CLIPPED_BITS = 30
"""Values between ends are added in at most so many bits: a billionth of what noise moves."""


def buy_clipped(
    recipe: Clipped, *, epsilon: Fraction | None, rho: Fraction, groups: int, moved: int, rows: int
) -> ClippedSums | None:
    """Ends and sums for a pure loss, or without one for rho; None if they cannot be drawn."""
    if epsilon is not None:
        choice, noise = FINDING * epsilon / (ENDS * groups), (1 - FINDING) * epsilon
    else:  # a choice loses epsilon**2 / 8, noise less than epsilon**2 / 2
        choice = sqrt_down(8 * FINDING * rho / (ENDS * groups), bits=32)
        noise = sqrt_down(2 * (1 - FINDING) * rho, bits=32)
    if not choice or not noise:
        return None
    variable = recipe.variable
    for bits in (CLIPPED_BITS, 20):
        found = ClippedSums(
            choice,
            noise,
            rows=rows,
            score_change=moved,
            span=variable.span,
            groups=groups,
            zero=min(max(-variable.low, 0), variable.span),
            degree=recipe.degree,
            bits=bits,
            trim=recipe.trim,
        )
        if found.drawable:
            return found
    return None


def buy_laplace(epsilon: Fraction, sensitivity: Sensitivity) -> Laplace | None:
    """The least Laplace noise of at most this pure loss; None if it cannot be drawn."""
    if not Laplace.drawable(sensitivity.l1 / epsilon):
        return None
    return Laplace(sensitivity=sensitivity.l1, epsilon=epsilon)


WORTHWHILE = 0.98
"""Staircase noise must have at most this part of Laplace's mean error: its rho is larger."""


def buy_pure(epsilon: Fraction, sensitivity: Sensitivity, moved: int) -> Laplace | Staircase | None:
    """The least noise of this pure loss, where one unit moves so many entries."""
    laplace = buy_laplace(epsilon, sensitivity)
    if moved > 1 or sensitivity.l1 == 1 or not Staircase.drawable(sensitivity.l1, epsilon):
        return laplace
    error = mean_distance(sensitivity.l1, epsilon, best_width(sensitivity.l1, epsilon))
    if error > WORTHWHILE * laplace_error(sensitivity.l1 / epsilon):
        return laplace
    return Staircase(sensitivity=sensitivity.l1, epsilon=epsilon)


def laplace_error(scale: Fraction) -> float:
    """E|Z| of discrete Laplace noise, 1 / sinh(1 / scale)."""
    rate = 1 / float(scale)
    return 1 / math.sinh(rate) if rate < 700 else 0.0


def buy_gaussian(rho: Fraction, sensitivity: Sensitivity) -> Gaussian | None:
    """The least Gaussian noise of at most this concentrated loss; None if it cannot be drawn."""
    if not rho or not Gaussian.drawable(sensitivity.l2_squared / (2 * rho)):
        return None
    return Gaussian(sensitivity_squared=sensitivity.l2_squared, rho=rho)


def buy_smallest(rho: Fraction, sensitivity: Sensitivity) -> Additive | None:
    """Laplace or Gaussian noise of at most this concentrated loss, whichever is smaller."""
    if not rho:  # so little was offered that it was rounded down to nothing
        return None
    epsilon = _find_laplace_epsilon(rho)
    scale = sensitivity.l1 / epsilon
    smaller = laplace_variance(scale) < float(sensitivity.l2_squared / (2 * rho))
    if smaller and Loss.laplace(sensitivity=sensitivity.l1, scale=scale).rho <= rho:
        return buy_laplace(epsilon, sensitivity)
    return buy_gaussian(rho, sensitivity)


_NOTICED = 2.0**-9
"""More variance than this part above the least is worth a search."""
_EXACT = 100
"""Below this squared noise, half a squared step is worth avoiding (docs/proofs/laplace.md, Lemmas
10 and 11)."""


def gaussian_loss(
    sigma_squared: Fraction, sensitivity: Sensitivity, moves: Moves, epsilon: Fraction
) -> Fraction:
    """A delta, certified, at which Gaussian noise hides every move of a unit at ``epsilon``."""
    if moves.entries == 1:
        return gaussian_delta(sigma_squared, sensitivity.l1, epsilon)
    squared = sensitivity.l2_squared
    if moves.longest is None or sigma_squared >= _EXACT:
        return gaussian_vector_delta(sigma_squared, squared, moves.entries, epsilon)
    entries, step = moves.longest
    longest = gaussian_equal_delta(sigma_squared, entries, step, epsilon)
    if step == 1:  # and so are those of fewer entries
        return max(longest, _counts_delta(sigma_squared, entries - 1, epsilon, _EXACT_COUNTS))
    return max(longest, gaussian_vector_delta(sigma_squared, moves.shorter, moves.entries, epsilon))


_EXACT_COUNTS = 8
"""Of so many numbers of entries the exact curve is used; fewer are short enough for the bound."""


def _counts_delta(sigma_squared: Fraction, entries: int, epsilon: Fraction, exact: int) -> Fraction:
    """A delta at which noise hides that at most so many entries move, by one each."""
    if entries <= 1:
        return gaussian_delta(sigma_squared, 1, epsilon) if entries else Fraction(0)
    bound = gaussian_vector_delta(sigma_squared, entries, entries, epsilon)
    longest = gaussian_equal_delta(sigma_squared, entries, 1, epsilon)
    if not exact or bound <= longest:
        return bound
    return max(longest, _counts_delta(sigma_squared, entries - 1, epsilon, exact - 1))


@lru_cache(maxsize=1024)
def buy_calibrated(
    epsilon: Fraction, delta: Fraction, sensitivity: Sensitivity, moves: Moves
) -> Gaussian | None:
    """The least Gaussian noise that is (epsilon, delta)-private where entries move like that.

    By the curve of the noise itself, certified, and not through rho; where that curve says
    nothing, through rho.  None if the noise cannot be drawn.
    """
    squared = sensitivity.l2_squared
    rho = largest_rho(epsilon, delta)
    if not rho:  # so little was offered that it was rounded down to nothing
        return None
    through_rho = squared / (2 * rho)
    # Just above the continuous optimum, then further off until it is certain.
    start = squared * analytic_variance(float(epsilon), float(delta))
    if moves.entries > 1 and (moves.longest is None or start >= _EXACT):
        start += 0.5

    def spread_by(excess: float) -> Fraction:
        return round_up(Fraction(start * (1 + excess)), _STEP)

    def hides(excess: float) -> bool:
        return gaussian_loss(spread_by(excess), sensitivity, moves, epsilon) <= delta

    excess, spread = 2.0**-14, through_rho
    while start * (1 + excess) < through_rho:
        if hides(excess):
            if excess > _NOTICED:
                _, excess = bracket(hides, fails_at=excess / 2, holds_at=excess, halvings=5)
            spread = spread_by(excess)
            break
        excess *= 2
    if not Gaussian.drawable(spread):
        return None
    return Gaussian(sensitivity_squared=squared, rho=squared / (2 * spread))


def laplace_variance(scale: Fraction) -> float:
    """The variance of the continuous law, never less than that of the noise.

    Offers are compared by it.  Comparing by the exact variance would change which of two
    nearly equal ones is taken, and with it the key under which answers are stored.
    """
    return 2.0 * float(scale) ** 2


def _find_laplace_epsilon(rho: Fraction) -> Fraction:
    """An epsilon whose Laplace noise loses about ``rho``: solves e - (1 - exp(-e)) = rho."""
    most = float(rho) + math.sqrt(2 * float(rho)) + 1.0
    below, _ = bracket(
        lambda e: e + math.expm1(-e) > float(rho), fails_at=0.0, holds_at=most, halvings=60
    )
    # The law on the integers loses a little more than the continuous one: stay below.
    return max(round_down(Fraction(below * 0.999), _STEP), _STEP)


_PART = Fraction(1, 2**16)


def pure_shares(sizes: Sequence[float]) -> list[Fraction]:
    """Shares of epsilon for noises of these sizes; they add up to at most one."""
    return _shares([size ** (2 / 3) for size in sizes])


def share_rho(sizes: Sequence[float]) -> list[Fraction]:
    """Shares of rho for noises of these sizes; they add up to at most one."""
    return _shares(list(sizes))


def _shares(weights: Sequence[float]) -> list[Fraction]:
    if len(weights) == 1:
        return [Fraction(1)]
    total = sum(weights)
    # Rounded down, so that the parts never add up to more than was offered; never to nothing.
    rounded = [max(round_down(Fraction(weight / total), _PART), _PART) for weight in weights]
    surplus = sum(rounded) - 1
    if surplus > 0:
        largest = max(range(len(rounded)), key=rounded.__getitem__)
        rounded[largest] -= surplus
    return rounded


# --- which cells a choice looks at -----------------------------------------------------------
#
# A choice of a quantile looks at the values within so many ranks of it, and, once in 10**22 times,
# at others (``docs/proofs/quantiles.md``, Lemma 13); ends of clipped values are chosen among a few
# candidates, and nothing between two of them need be told apart (``docs/proofs/clipping.md``,
# Lemma 4).  Both follow from the price alone, so they are public: an engine lumps all other values
# together, and no group sends its whole histogram.


_MOST_RANKS = 2**40
_POWER_BITS = 84
"""Sums of powers of so many bits, over 2**42 rows, fit 126."""


def find_lumpings(priced: Priced) -> Lumpings:
    """What the choices that were paid for cannot look at, measurement by measurement.

    Ranks are rounded up to a power of two: prices that are near each other share one statement.
    """
    both = zip(priced.plan.measurements, priced.mechanisms, strict=False)
    found = tuple(_find(priced, index, *one) for index, one in enumerate(both))
    return found if any(found) else ()


def _find(priced: Priced, index: int, measurement: Measurement, bought: Bought) -> Lumping | None:
    if not isinstance(measurement, Histogram):
        return None
    span = measurement.variable.span
    if isinstance(bought, ClippedSums):
        if span.bit_length() * bought.degree > _POWER_BITS:
            return None
        if bought.trim is not None:
            return _gather([bought.quantiles], span, bought.degree)
        few = 2 * len(bought.candidates) < span
        return Lumping(zero=bought.zero, degree=bought.degree) if few else None
    if not isinstance(bought, Selection):
        return None
    mechanisms = []
    for recipe in priced.recipes:
        if recipe.measurement == index:
            asked = recipe.quantiles if isinstance(recipe, Spread) else recipe
            if not isinstance(asked, Quantile):
                return None
            mechanisms.append(bought.quantiles(asked))
    return _gather(mechanisms, span, 0)


def _gather(mechanisms: Iterable[Quantiles], span: int, degree: int) -> Lumping | None:
    """The stretches of some choices, unless there are as few cells as in these."""
    around = (
        (quantile, ranks, mechanism.tied_share)
        for mechanism in mechanisms
        for quantile, ranks in zip(mechanism.quantiles, mechanism.reach, strict=True)
    )
    return lump_around(around, span, degree)


def lump_around(
    around: Iterable[tuple[Fraction, int, int]], span: int, degree: int = 0
) -> Lumping | None:
    """Lumps beyond some ranks of each quantile, and a share of all; None where that is no less."""
    stretches: dict[Stretch, None] = {}
    for quantile, ranks, share in around:
        rounded = 1 << (ranks - 1).bit_length()
        stretches[Stretch.around(quantile, rounded, share)] = None
    told = sum(2 * one.ranks + 1 for one in stretches)
    few = told <= span and all(s.ranks < _MOST_RANKS for s in stretches)
    return Lumping(tuple(stretches), degree=degree) if few else None
