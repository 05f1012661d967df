"""How large a weighted sum of independent noises is, for many sums at once.

The quantile of such a sum is its standard deviation times a factor that depends on little else
than ``kappa``, the share of Laplace in its fourth cumulant: 0 for Gaussian noise and for very
many draws, 1 for a single Laplace draw.  Of all sums of one kappa, two families are the extremes:
one Laplace draw beside Gaussian noise, and equally large Laplace draws.  The factor here is the
larger of theirs, found by inverting characteristic functions, and two parts in a thousand more:
other sums were searched, and none exceeds them by half of that (docs/proofs/sets.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.exact.records import dataclass
from discreet.exact.search import bracket
from discreet.mechanisms import Gaussian, Laplace
from discreet.price.calibration import Noisy
from discreet.price.summed import Summed

Floats = NDArray[np.float64]

_KAPPAS = np.array(sorted({*(np.linspace(0.0, 1.0, 21) ** 2).tolist(), 1 / 4, 1 / 3, 1 / 2}))
"""Where the factor is computed; between them it is interpolated.  At 1 / k draws can be equal."""
_FREQUENCIES = 1 << 11
_ENLARGED = 1.002
"""By how much the factor is larger than that of either family: so far no search came."""
_NOTICED = 1e-6
"""A smaller part of a probability changes no digit that is shown."""
_LEAST_BETA = 1e-4
"""Below, inversion has too few digits, and a bound by exponential moments takes its place."""


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """The noise of some entries: independent, each of a law of its own.

    ``variances`` are those of the continuous laws, which are never less than those on the
    integers; ``laplace`` is the part of Laplace in each entry's fourth cumulant.  ``steps`` is what
    the noise on whole numbers may be off its continuous twin: half a step a draw, or one.
    ``heavier`` is by which power of e its tails may then still exceed those of the twin.
    ``others`` is the noise of the entries that have neither law: of these only a margin is known.
    """

    variances: Floats
    laplace: Floats  # 1 for Laplace, 0 for Gaussian, between for sums
    steps: Floats
    heavier: Floats
    others: tuple[tuple[int, Noisy], ...] = ()

    @property
    def _heavier(self) -> float:
        """By how much the tails on whole numbers may be heavier, half a step aside."""
        more = float(self.heavier.sum())
        return math.exp(more) if more > _NOTICED else 1.0

    @classmethod
    def of(cls, entries: Sequence[Noisy]) -> Noise:
        """The noise of entries that are released by these mechanisms."""
        spreads, others = [], []
        for place, mechanism in enumerate(entries):
            found = _measure(mechanism)
            spreads.append(found or (0.0, 0.0, 1.0, 0.0))
            if found is None:
                others.append((place, mechanism))
        columns = np.array(spreads, dtype=np.float64).reshape(-1, 4).T
        variances, laplace, steps, heavier = columns
        return cls(variances, laplace, steps, heavier, tuple(others))

    def quantiles(self, weights: Floats, beta: float) -> Floats:
        """q with P(|sum of weight times noise| > q) <= beta, for each row of weights.

        The noises are whole numbers, and a step for each entry covers the difference to their
        continuous twins (docs/proofs/sets.md, Lemma 1).
        """
        sizes = np.abs(weights)
        known = bool(np.any(self.variances > 0))  # beta is shared by as many as there are
        share = beta / max(1, known + len(self.others)) / self._heavier
        parts = weights * weights * self.variances
        spread = parts.sum(axis=-1)
        with np.errstate(all="ignore"):
            kappa = (parts * parts * self.laplace).sum(axis=-1) / (spread * spread)
        kappa = np.where(np.isfinite(kappa), kappa, 1.0)
        found: Floats = np.sqrt(spread) * factors(kappa, share) + (sizes * self.steps).sum(axis=-1)
        for place, mechanism in self.others:
            found = found + sizes[..., place] * _other_margin(mechanism, share)
        return found


def _measure(mechanism: Noisy) -> tuple[float, float, float, float] | None:
    """Variance, part of Laplace, steps and excess of one entry; None if only a margin is known."""
    match mechanism:
        case Laplace(scale=scale):
            variance = 2.0 * float(scale) ** 2
            if variance < 2.0:
                return variance, 1.0, 1.0, 0.0
            return variance, 1.0, 0.5, 1 / (72 * variance**2)  # h**4 / 18 with h = 1 / (2 scale)
        case Gaussian():
            variance = float(mechanism.variance)
            return variance, 0.0, 0.5 if variance >= 2.0 else 1.0, 0.0
        case Summed(terms=terms, below=below):
            parts = [(term, _measure(term.law)) for term in terms]
            known = [(term, found) for term, found in parts if found is not None]
            if len(known) < len(parts):
                return None
            spread = sum(t.count * t.weight**2 * v for t, (v, _, _, _) in known)
            fourth = sum(t.count * (t.weight**2 * v) ** 2 * part for t, (v, part, _, _) in known)
            steps = sum(t.count * t.weight * step for t, (_, _, step, _) in known)
            more = sum(t.count * excess for t, (_, _, _, excess) in known)
            return spread / below**2, fourth / spread**2 if spread else 0.0, steps / below, more
    return None


@lru_cache(maxsize=1024)
def _other_margin(mechanism: Noisy, beta: float) -> float:
    return float(mechanism.margin(Fraction(beta)))


def factors(kappa: Floats, beta: float) -> Floats:
    """By how many standard deviations a sum of this kappa is exceeded with probability beta.

    >>> [round(float(f), 3) for f in factors(np.array([0.0, 0.5, 1.0]), 0.05)]
    [1.964, 2.061, 2.123]
    """
    found: Floats = np.interp(kappa, _KAPPAS, _factor_table(beta)) * _ENLARGED
    return found


@lru_cache(maxsize=256)
def _factor_table(beta: float) -> Floats:
    if beta < _LEAST_BETA:
        return np.full(_KAPPAS.size, _bound_factor(beta))
    within = np.array([_find_quantile(_extremes(float(k)), beta) for k in _KAPPAS[1:-1]])
    from statistics import NormalDist  # long to import, and only for margins

    ends = NormalDist().inv_cdf(1 - beta / 2), math.log(1 / beta) / math.sqrt(2)
    return np.array([ends[0], *within, ends[1]])


def _extremes(kappa: float) -> tuple[tuple[float, ...], ...]:
    """Variances of Laplace draws with this kappa, of one in all; what is missing is Gaussian."""
    many = math.floor(1 / kappa + 1e-9)
    # So many equal draws and a smaller one: many * a + b = 1, many * a**2 + b**2 = kappa.
    root = math.sqrt(max(0.0, many * ((many + 1) * kappa - 1)))
    equal = (many + root) / (many * (many + 1))
    rest = max(0.0, 1 - many * equal)
    return (math.sqrt(kappa),), (*(equal,) * many, rest)


def _find_quantile(families: tuple[tuple[float, ...], ...], beta: float) -> float:
    """The largest t with P(|S| > t) = beta for S of variance one, of which parts are Laplace."""
    sizes, _, _ = _frequencies()
    found = 0.0
    for laplace in families:
        with np.errstate(all="ignore"):
            logs = np.log(_tails(laplace))
        logs = np.minimum.accumulate(np.where(np.isfinite(logs), logs, -np.inf))
        found = max(found, float(np.interp(-math.log(beta), -logs, sizes)))
    return found


@lru_cache(maxsize=1024)
def _tails(laplace: tuple[float, ...]) -> Floats:
    """P(|S| > t) at every size t: 1 - (2/pi) * integral of phi(s) sin(s t) / s over s > 0."""
    _, s, measured_sines = _frequencies()
    phi = np.exp(-max(0.0, 1 - sum(laplace)) * s * s / 2)
    for variance in laplace:
        phi = phi / (1 + variance / 2 * s * s)
    found: Floats = 1.0 - measured_sines @ phi
    return found


@lru_cache(maxsize=1)
def _frequencies() -> tuple[Floats, Floats, Floats]:
    """Sizes t, frequencies s = tan(theta), and sin(s t) with the measure of each frequency."""
    width = math.pi / 2 / _FREQUENCIES
    s = np.tan((np.arange(_FREQUENCIES) + 0.5) * width)
    sizes = np.linspace(0.0, 10.0, 401)
    measure = (1 + s * s) / s * width * (2 / math.pi)
    return sizes, s, np.sin(np.outer(sizes, s)) * measure


def _bound_factor(beta: float) -> float:
    """A factor that is never too small, by exponential moments.

    Those of any such sum are at most those of one Laplace draw of its variance:
    product of 1 / (1 - x_i) <= 1 / (1 - sum of x_i), and exp(x) <= 1 / (1 - x).
    """

    def suffices(t: float) -> bool:
        x = t * math.sqrt(2)  # in scales of that draw
        rate = (math.sqrt(1 + x * x) - 1) / x
        return math.log(2) - rate * x - math.log1p(-rate * rate) <= math.log(beta)

    most = 4.0 * (math.log(1 / beta) + 4)
    _, enough = bracket(suffices, fails_at=1e-3, holds_at=most, halvings=60)
    return enough


__all__ = ["Floats", "Noise", "factors"]
