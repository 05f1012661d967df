"""Expectations of a likelihood ratio: of its logarithm, and of its powers.

Both return a ball of a lower bound and a ball of an upper bound, at the
precision in force.  Where the ratio is known on stretches of integers the sums
are geometric and have closed forms; over cells they are added up, and what is
not in any cell is bounded by merging it (merged outcomes tell less).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet.accounting.law import DiscreteLaplaceLaw, IntegerLaw, Law
from discreet.accounting.ratio import ONLY_P, ONLY_Q, Cells, Comparison, Stretch
from discreet.exact.balls import ball


def mean_log(pair: Comparison) -> tuple[arb, arb]:
    """The expectation under P of ln(P/Q)."""
    if pair.stretches is None:
        return _mean_log_of_cells(pair.cells())
    if any(stretch.intercept == math.inf for stretch in pair.stretches):
        return arb.pos_inf(), arb.pos_inf()
    total = sum((_stretch_log(pair.p, stretch) for stretch in pair.stretches), arb(0))
    return total, total


def mean_power(pair: Comparison, power: Fraction) -> tuple[arb, arb]:
    """The expectation under P of (P/Q)**power, for power > -1 and other than 0."""
    if pair.stretches is None:
        return _mean_power_of_cells(pair.cells(), power)
    if power > 0 and any(stretch.intercept == math.inf for stretch in pair.stretches):
        return arb.pos_inf(), arb.pos_inf()
    total = sum((_stretch_power(pair.p, stretch, power) for stretch in pair.stretches), arb(0))
    return total, total


# --- stretches -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ray:
    """The integers center + side * k, for k in first..last, where P is height * exp(-k / scale)."""

    center: int
    side: int
    first: int
    last: int
    height: arb
    rate: Fraction


def _ray(law: Law, stretch: Stretch) -> _Ray:
    # Only between the centres of two discrete Laplace laws is there a slope to sum over
    # (two discrete Gaussians have closed forms of their own), and there P is one-sided.
    least, most = stretch.least, stretch.most
    if not isinstance(law, DiscreteLaplaceLaw) or least is None or most is None:
        raise TypeError(f"no closed form on {stretch} of {law}")
    side = 1 if least >= law.center else -1
    first, last = sorted((side * (least - law.center), side * (most - law.center)))
    return _Ray(law.center, side, first, last, law.mass(law.center), 1 / law.scale)


def _stretch_log(law: Law, stretch: Stretch) -> arb:
    """The sum of P ln(P/Q) over a stretch."""
    if stretch.intercept == -math.inf or not isinstance(law, IntegerLaw):
        return arb(0)
    total = ball(Fraction(stretch.intercept)) * law.between(stretch.least, stretch.most)
    if stretch.slope == 0:
        return total
    ray = _ray(law, stretch)
    ratio = ball(-ray.rate).exp()
    start, stop = ratio**ray.first, ratio ** (ray.last + 1)
    # The sums of ratio**k and of k * ratio**k over k = first..last.
    plain = (start - stop) / (1 - ratio)
    weighted = (ray.first * start - (ray.last + 1) * stop + ratio * plain) / (1 - ratio)
    return total + ball(stretch.slope) * ray.height * (ray.center * plain + ray.side * weighted)


def _stretch_power(law: Law, stretch: Stretch, power: Fraction) -> arb:
    """The sum of P (P/Q)**power over a stretch."""
    if not isinstance(law, IntegerLaw) or math.inf in (stretch.intercept, -stretch.intercept):
        return arb(0)
    factor = ball(power * Fraction(stretch.intercept)).exp()
    if stretch.slope == 0:
        return factor * law.between(stretch.least, stretch.most)
    ray = _ray(law, stretch)
    factor *= ray.height * ball(power * stretch.slope * ray.center).exp()
    exponent = ray.side * power * stretch.slope - ray.rate
    if exponent == 0:
        return factor * (ray.last - ray.first + 1)
    ratio = ball(exponent).exp()
    return factor * (ratio**ray.first - ratio ** (ray.last + 1)) / (1 - ratio)


# --- cells ---------------------------------------------------------------------------------


def _mean_log_of_cells(cells: Cells) -> tuple[arb, arb]:
    total, unknown = arb(0), arb(0)
    for cell in cells.cells:
        if cell.log == ONLY_Q:
            continue
        if cell.log == ONLY_P:
            if cell.p > 0:
                return arb.pos_inf(), arb.pos_inf()
            unknown = arb.pos_inf()
        elif cell.log is None and not cell.p > 0:
            # P is between 0 and h, and x ln(x/q) falls from 0 as long as x < q/e.
            h = arb(cell.p.upper())
            falling = h * arb.const_e() < cell.q
            total += (h * (h / cell.q).log()).union(arb(0)) if falling else arb.nan()
        else:
            total += cell.p * cell.log_ball()
    if not cells.complete:
        unknown = arb.pos_inf()
        if cells.rest_p > 0 and cells.rest_q > 0:
            total += cells.rest_p * (cells.rest_p / cells.rest_q).log()
    return total, total + unknown


def _mean_power_of_cells(cells: Cells, power: Fraction) -> tuple[arb, arb]:
    exponent = ball(power)
    total = arb(0)
    for cell in cells.cells:
        if cell.log == ONLY_Q or (cell.log == ONLY_P and power < 0):
            continue
        if cell.log == ONLY_P:
            return (arb.pos_inf() if cell.p > 0 else total), arb.pos_inf()
        if cell.log is None and not (cell.p > 0 and cell.q > 0):
            h = arb(cell.p.upper())
            most = h * (exponent * (h / cell.q).log()).exp()
            total += most.union(arb(0)) if cell.q > 0 else arb.nan()
        else:
            total += cell.p * (exponent * cell.log_ball()).exp()
    if cells.complete:
        return total, total
    if not (cells.rest_p > 0 and cells.rest_q > 0):
        return total, arb.pos_inf() if power > 0 else total + 1
    rest = cells.rest_p * (exponent * (cells.rest_p / cells.rest_q).log()).exp()
    # Merging moves the sum down where x**(1 + power) is convex, up where it is concave.
    return (total + rest, arb.pos_inf()) if power > 0 else (total, total + rest)


__all__ = ["mean_log", "mean_power"]
