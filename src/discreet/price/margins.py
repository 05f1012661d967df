"""How far off a released number is, from public noise parameters alone.

A single entry's margin is certified from the exact law of its noise.  A
combination of entries (a SUM, a COUNT read off moments) has the law of a
weighted sum of independent noises; its tail is computed by inverting the
characteristic function, which gives the margin to half a percent.  Ratios have
confidence sets (``price.sets``), known with the answer and predicted before.  A
quantile has two margins: a certified one, which holds whatever the data are and is
wide, and a typical one, which is that of values that lie evenly around the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from discreet.exact.search import bracket, double
from discreet.mechanisms import KeyRelease, Laplace
from discreet.mechanisms.clipping import ClippedSums
from discreet.price.calibration import Noisy, Selection
from discreet.price.plan import Moments, ValueCounts
from discreet.price.priced import Priced
from discreet.price.recipes import (
    MOST_ROUNDED,
    Choice,
    Clipped,
    Counts,
    Fitted,
    Linear,
    Quantile,
    Ratio,
    Recipe,
    Rounding,
    Spread,
    compute_ratios,
    find_rounding,
)
from discreet.price.sets import find_range, ratio_set
from discreet.price.summed import Summed

MarginKind = Literal["exact", "certified", "set", "typical"]
"""How a margin is known: from the law of the noise; for any data; as a confidence set from the
released numbers and the joint law of their noise, for any data; for values that lie evenly
around the answer."""

_FREQUENCIES = 1 << 13
_LEAST_BETA = Fraction(1, 10**5)


def number_margin(recipe: Linear, mechanism: Noisy, beta: Fraction) -> float:
    """The margin of a number as it is published: its noise, and its rounding to the grid."""
    if _is_certain(mechanism):  # a sum of nothing is zero, which is on every grid
        return 0.0
    rounds = any((c / recipe.grid).denominator != 1 for c in recipe.coefficients)
    found = linear_margin(recipe, mechanism, beta)
    if rounds and isinstance(mechanism, Summed):
        return _round_noise(found, float(recipe.grid))
    return found + (float(recipe.grid) / 2 if rounds else 0.0)


def _round_noise(margin: float, grid: float) -> float:
    """The margin of a number on the grid that its truth is on, which its noise is rounded to.

    It is off by more than m steps only if its noise is m and a half or more.

    >>> _round_noise(79.4, 1.0), _round_noise(79.5, 1.0)
    (79.0, 80.0)
    """
    return grid * (math.floor(margin / grid * (1 + 2.0**-40) - 0.5) + 1)


def rounding_of(priced: Priced, index: int) -> Rounding | None:
    """What rounding adds to an aggregate that is a sum; None where it adds nothing."""
    if priced.question.aggregates[index].function != "SUM":
        return None
    place = priced.recipes[index].measurement
    found = find_rounding(priced.plan, place, priced.reach.rows_per_group)
    if found is None or found.counted is not None or priced.plan.measurements[place].condition:
        return found
    return replace(found, counted=_find_certain(priced))


def _find_certain(priced: Priced) -> Linear | None:
    """How many rows there are, where that has no noise; None where it has."""
    measured = zip(priced.plan.measurements, priced.mechanisms, strict=True)
    for place, (measurement, mechanism) in enumerate(measured):
        if measurement == Moments() and _is_certain(mechanism):
            return Linear(place, (Fraction(1),), Fraction(1))
    return None


def round_margin(recipe: Linear, rounding: Rounding, mechanism: Noisy, beta: Fraction) -> float:
    """The margin of a sum of rounded values, but for ``each`` times the released number of them.

    The true sum is at most the rounded one and ``each`` times the number of values, which is
    read off the same entries: together one combination of them, and so on the other side.
    """
    if rounding.counted is None:
        raise TypeError(recipe)
    each, sides = Fraction(rounding.each), []
    for sign in (1, -1):
        pairs = zip(recipe.coefficients, rounding.counted.coefficients, strict=True)
        moved = tuple(c + sign * each * n for c, n in pairs)
        sides.append(linear_margin(Linear(recipe.measurement, moved, recipe.grid), mechanism, beta))
    return max(sides) + float(recipe.grid) / 2


def linear_margin(recipe: Linear, mechanism: Noisy, beta: Fraction) -> float:
    """The least m with P(|noise of the number| > m) <= beta, before rounding to its grid."""
    if isinstance(mechanism, Summed):
        return mechanism.combine(recipe.coefficients).margin(beta)
    weights = [abs(float(c)) for c in recipe.coefficients if c]
    if len(weights) == 1:
        return weights[0] * entry_margin(mechanism, beta)
    if isinstance(mechanism, Laplace) and beta < _LEAST_BETA:
        # Beyond the inversion's digits: a union bound, never too small.
        return sum(weights) * entry_margin(mechanism, beta / len(weights))
    if isinstance(mechanism, Laplace):
        return _laplace_margin([w * float(mechanism.scale) for w in weights], beta)
    deviation = math.sqrt(mechanism.variance * sum(w * w for w in weights))
    return deviation * _normal_quantile(float(beta))


@lru_cache(maxsize=4096)
def entry_margin(mechanism: Noisy, beta: Fraction) -> int:
    """The least integer m with P(|Z| > m) <= beta for one entry's noise Z, certified."""
    return math.ceil(mechanism.margin(beta))


def _is_certain(mechanism: object) -> bool:
    """Whether nothing was drawn: a sum of no released numbers."""
    return isinstance(mechanism, Summed) and not mechanism.draws


def _normal_quantile(beta: float) -> float:
    """t with P(|N(0, 1)| > t) = beta."""
    _, enough = bracket(
        lambda t: math.erfc(t / math.sqrt(2)) <= beta, fails_at=0.0, holds_at=40.0, halvings=80
    )
    return enough


def _laplace_margin(scales: Sequence[float], beta: Fraction) -> float:
    """t with P(|sum of Laplace noises of these scales| > t) = beta, or less."""
    if len(scales) == 1 or beta < _LEAST_BETA:
        return sum(scales) * math.log(len(scales) / beta)
    return _laplace_sum_margin(tuple(sorted(scales)), float(beta))


@lru_cache(maxsize=4096)
def _laplace_sum_margin(scales: tuple[float, ...], beta: float) -> float:
    """t with P(|sum of Laplace noises of these scales| > t) = beta.

    The characteristic function of the sum is the product of 1 / (1 + (b s)**2);
    P(|S| > t) = 1 - (2/pi) * integral of phi(s) sin(s t) / s over s > 0.
    """
    top = scales[-1]
    relative = np.array(scales) / top
    # Substituting s = tan(theta) maps the half line to [0, pi/2): phi decays like cos**2.
    theta = (np.arange(_FREQUENCIES) + 0.5) * (math.pi / 2 / _FREQUENCIES)
    s = np.tan(theta)
    phi = np.prod(1.0 / (1.0 + np.square(np.outer(relative, s))), axis=0)
    weights = phi / s * (1.0 + s * s) * (math.pi / 2 / _FREQUENCIES) * (2 / math.pi)

    def suffices(t: float) -> bool:
        return 1.0 - float(weights @ np.sin(s * t)) <= beta

    most = double(suffices, 1.0, most=1e3)
    _, enough = bracket(suffices, fails_at=0.0, holds_at=most, halvings=50)
    return enough * top


def ratio_margin(
    recipe: Ratio,
    mechanism: Noisy,
    beta: Fraction,
    *,
    rows: int,
    moved: tuple[float, ...] | None = None,
) -> float | None:
    """How far off a ratio would be in a group of ``rows`` rows spread evenly between the bounds.

    A prediction: the set that would be printed if the noise happened to be nothing.  Rows spread
    evenly add the same to every Bernstein entry.  None where that set is everything.
    """
    moments = recipe.moments
    entries = math.prod(d + 1 for d in moments.degrees)
    expected = np.full((1, entries), float(Fraction(rows * moments.weight, entries)))
    exact = float(compute_ratios(recipe, expected)[0])
    still = (0.0,) * len(moments.variables) if moved is None else moved
    low, high = (float(e[0]) for e in ratio_set(recipe, mechanism, expected, float(beta), still))
    least, most = find_range(recipe)
    if not math.isfinite(exact + low + high) or (low <= least and high >= most):
        return None
    return max(high - exact, exact - low)


def margin_kind(recipe: Recipe, *, certified: bool = False) -> MarginKind | None:
    """How the margin of an aggregate is known; None where none is (``certified``: for any data)."""
    match recipe:
        case Quantile() | Spread():
            return "certified" if certified else "typical"
        case Choice():
            return "certified"
        case Ratio() | Clipped() | Fitted():
            return "set"
    return "exact"


def aggregate_margin(
    priced: Priced, index: int, beta: Fraction, *, certified: bool = False
) -> float | None:
    """The margin of an aggregate where public parameters alone tell it; None for ratios.

    In ranks for quantiles, in rows for choices, of each count for histograms.
    """
    recipe = priced.recipes[index]
    bought = priced.mechanisms[recipe.measurement]
    if isinstance(bought, Selection):
        if isinstance(recipe, Spread):
            recipe = recipe.quantiles
        if isinstance(recipe, Quantile):
            return (rank_margin if certified else typical_rank_margin)(recipe, bought, beta)
        listed = priced.plan.measurements[recipe.measurement]
        if isinstance(recipe, Choice) and isinstance(listed, ValueCounts):
            return choice_margin(recipe, len(listed.values), bought, beta)
    elif isinstance(bought, ClippedSums):
        return None  # noise is as wide as the ends lie apart, and these are in the answer
    elif isinstance(bought, KeyRelease):
        raise TypeError("a key is shown or not; there is no number to read")
    elif isinstance(recipe, Linear):
        rounding = rounding_of(priced, index)
        if rounding is None:
            return number_margin(recipe, bought, beta)
        if rounding.counted is None:
            return number_margin(recipe, bought, beta) + rounding.each * MOST_ROUNDED
        if rounding.counted.measurement != recipe.measurement:
            return number_margin(recipe, bought, beta)  # they are counted without noise
        return round_margin(recipe, rounding, bought, beta)
    elif isinstance(recipe, Counts):
        return float(entry_margin(bought, beta))
    return None


def state_margin(
    priced: Priced, index: int, beta: Fraction, *, certified: bool = False
) -> float | None:
    """The margin of an aggregate as it is shown: not zero, unless nothing was drawn.

    What is off once in a thousand releases is not called exact; it is within a step of its grid.
    """
    margin, recipe = (
        aggregate_margin(priced, index, beta, certified=certified),
        priced.recipes[index],
    )
    if margin != 0 or _is_certain(priced.mechanisms[recipe.measurement]):
        return margin
    return float(recipe.grid) if isinstance(recipe, Linear) else 1.0


def rank_margin(recipe: Quantile, selection: Selection, beta: Fraction) -> float:
    """How many ranks a quantile is off at most, except with probability ``beta``; certified."""
    return selection.quantiles(recipe).margin(beta)


def typical_rank_margin(recipe: Quantile, selection: Selection, beta: Fraction) -> float:
    """How many ranks a quantile is off where values lie evenly around it; the worst of several.

    Equally wide gaps make the chosen rank geometric on both sides of the target
    (docs/proofs/quantiles.md, Lemma 12).  Half a rank for each choice covers the
    step from that law to its continuous twin.
    """
    return max(
        _laplace_margin([weight * scale for weight, scale in errors], beta)
        + sum(weight for weight, _ in errors) / 2
        for errors in selection.quantiles(recipe).errors
    )


def choice_margin(recipe: Choice, values: int, selection: Selection, beta: Fraction) -> float:
    """How many rows fewer than the best left a chosen value has at most, except ``beta``."""
    return float(selection.top_k(recipe).margin(beta, candidates=values))
