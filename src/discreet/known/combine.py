"""What is known of a question, as one answer: the best derivation, or several that share no noise.

Two estimates of one number whose noises are independent are combined in inverse proportion to
their variances (``docs/proofs/known.md``, Lemma 3).  Weights are public and whole parts of 1024,
so that sums stay whole; rounding them costs a millionth of the variance.  The least variance is
not always the least margin: noise that is zero nearly always has a margin that no mean with
other noise has.  Who asks for what is near, not for what a price buys, gets the least margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.loss import NOTHING, Loss
from discreet.exact.numbers import round_down
from discreet.known.derive import Reading
from discreet.known.released import Released
from discreet.price import Linear, Priced, Ratio
from discreet.price.margins import number_margin
from discreet.price.plan import GroupSum, GroupTotal, Measurement, Moments, Sensitivity, Sum
from discreet.price.summed import Summed, Term
from discreet.question.expressions import ColumnRef
from discreet.question.sql import write_question_text
from discreet.release.derived import Derived, Origin

PARTS = 1024
"""Weights are so many parts of the whole."""
_BETA = Fraction(1, 20)
"""Margins are compared as they are shown."""
MOST_COMBINED = 8
"""More estimates of one number improve it by little, and are looked for in vain."""

Derivation = tuple[Reading, ...]
"""One source, and how each aggregate is read off it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Estimate:
    """One aggregate, from one or more readings that share no noise."""

    readings: tuple[Reading, ...]
    weights: NDArray[np.int64]  # (groups, readings), each row adds up to PARTS

    @property
    def alone(self) -> bool:
        return len(self.readings) == 1

    @property
    def by_entry(self) -> bool:
        """Whether entries are weighted one by one, because all mean the same; else one number."""
        first = self.readings[0]
        return not self.alone and all(_are_alike(one, first) for one in self.readings)


def combine(
    new: Priced,
    derivations: Sequence[Derivation],
    groups: tuple[Any, ...],
    *,
    payment: Loss = NOTHING,
    nearest: bool = False,
    said: tuple[str, ...] = (),
) -> Derived:
    """The answer that these derivations of ``new`` give together; they must not be none.

    ``nearest``: of each number what has the least margin, be it one of them alone.  ``said`` is
    what is known of the data besides.
    """
    read, estimates, predicted = _plan(new, derivations, nearest=nearest)
    priced, laws = predicted.priced, predicted.laws
    return Derived(
        priced,
        groups,
        tuple(_entries(estimate) for estimate in estimates),
        replayed=payment == NOTHING,
        said=said,
        laws=laws,
        origins=_list_origins(read),
        equivalent=estimate_worth(new, predicted.worst, priced.recipes),
        payment=payment,
    )


@dataclass(frozen=True, slots=True)
class Predicted:
    """An answer that will be derived, before there is anything to derive it from."""

    priced: Priced
    laws: tuple[tuple[Summed, ...], ...]
    worst: tuple[Summed, ...]


def predict(new: Priced, *derivations: Derivation) -> Predicted:
    """How good ``new`` will be if it is read off answers of which some are still to be released."""
    return _plan(new, derivations)[2]


def _plan(
    new: Priced, derivations: Sequence[Derivation], *, nearest: bool = False
) -> tuple[list[_Estimate], list[_Estimate], Predicted]:
    """What is read for each aggregate, what of it is different, and the noise: public knowledge."""
    chosen = choose_independent(derivations)
    read = [_estimate([d[i] for d in chosen]) for i in range(len(new.recipes))]
    plain = all(isinstance(output.expression, ColumnRef) for output in new.question.outputs)
    if nearest and plain:  # what is computed needs numbers that are combined alike
        read = [_find_nearest(estimate) for estimate in read]
    estimates, places = _share(read)
    laws = tuple(_list_laws(estimate) for estimate in estimates)
    recipes = tuple(
        replace(_scale_recipe(estimate), measurement=place)
        for estimate, place in zip(read, places, strict=True)
    )
    sums = {
        place
        for aggregate, place in zip(new.question.aggregates, places, strict=True)
        if aggregate.function == "SUM"
    }
    measured = tuple(
        _describe_entries(estimate, is_sum=place in sums)
        for place, estimate in enumerate(estimates)
    )
    worst = tuple(max(some, key=lambda law: law.variance) for some in laws)
    priced = replace(
        new,
        plan=replace(new.plan, measurements=measured),
        recipes=recipes,
        mechanisms=worst,
        sensitivities=(Sensitivity(0, 0),) * len(measured),  # nothing is measured
        threshold=None,
        loss=NOTHING,
        population=None,
    )
    return read, estimates, Predicted(priced, laws, worst)


def _share(read: list[_Estimate]) -> tuple[list[_Estimate], list[int]]:
    """Aggregates that are read off the same sums share them, as their noise is the same."""
    estimates: list[_Estimate] = []
    places = []
    for estimate in read:
        same = (i for i, one in enumerate(estimates) if _is_same(one, estimate))
        place = next(same, len(estimates))
        if place == len(estimates):
            estimates.append(estimate)
        places.append(place)
    return estimates, places


def _is_same(one: _Estimate, other: _Estimate) -> bool:
    if len(one.readings) != len(other.readings):
        return False
    whole = (one.alone and other.alone) or (one.by_entry and other.by_entry)
    pairs = zip(one.readings, other.readings, strict=True)
    return (
        whole
        and np.array_equal(one.weights, other.weights)
        and all(_reads_same(a, b) for a, b in pairs)
    )


def _reads_same(a: Reading, b: Reading) -> bool:
    return (a.source is b.source and a.place == b.place and a.bins == b.bins) and all(
        np.array_equal(c, d) for c, d in zip(a.cells, b.cells, strict=True)
    )


def choose_independent(derivations: Sequence[Derivation]) -> list[Derivation]:
    """The best, and all others that share no noise with those before them, while they help."""
    ranked = sorted(derivations, key=_size)
    chosen: list[Derivation] = []
    for derivation in ranked:
        source = derivation[0].source
        apart = all(not source.shares_noise(one[0].source) for one in chosen)
        helps = not chosen or _size(derivation) <= 100 * _size(chosen[0])
        if (
            apart
            and helps
            and len(chosen) < MOST_COMBINED
            and not (chosen and _is_whole(derivation))
        ):
            chosen.append(derivation)
    return chosen


def _is_whole(derivation: Derivation) -> bool:
    """Whether it has bins or fitted coefficients: shown as they are, never weighted."""
    return any(not isinstance(reading.recipe, Linear | Ratio) for reading in derivation)


def _size(derivation: Derivation) -> float:
    """How large the noise of a derivation is, over all aggregates and groups."""
    return float(sum(reading.variances().sum() for reading in derivation))


def _estimate(readings: list[Reading]) -> _Estimate:
    """Readings of one aggregate that have the same shape as the best, weighted group by group."""
    first = readings[0]
    alike = [r for r in readings if _same_scale(r, first)]
    alike = [r for r in alike if isinstance(r.law, Summed)][:1] or alike  # a public number
    # A group of which no cell is asked for is nothing, without noise: any weights will do.
    inverse = np.array([1 / np.maximum(r.variances(), 1e-300) for r in alike]).T
    shares = inverse / inverse.sum(axis=1, keepdims=True)
    weights = np.rint(shares * PARTS).astype(np.int64)
    weights[:, 0] += PARTS - weights.sum(axis=1)
    return _Estimate(tuple(alike), weights)


def _find_nearest(estimate: _Estimate) -> _Estimate:
    """The estimate, or one of its readings, by the margin where noise is largest."""
    if estimate.alone or not isinstance(estimate.readings[0].recipe, Linear):
        return estimate
    groups = estimate.weights.shape[0]
    whole = np.full((groups, 1), PARTS, dtype=np.int64)
    ways = [estimate, *(_Estimate((reading,), whole) for reading in estimate.readings)]
    return min(ways, key=_largest_margin)


def _largest_margin(estimate: _Estimate) -> float:
    law = max(_list_laws(estimate), key=lambda one: one.variance)
    return number_margin(_scale_recipe(estimate), law, _BETA)


def _same_scale(one: Reading, other: Reading) -> bool:
    """Whether entries mean the same, or both are one number."""
    if isinstance(one.recipe, Linear) and isinstance(other.recipe, Linear):
        sums = _sums_moments(one) and _sums_moments(other)
        return one.recipe.grid == other.recipe.grid and (not sums or _are_alike(one, other))
    return one.recipe == other.recipe and one.measured == other.measured


def _are_alike(one: Reading, other: Reading) -> bool:
    """Whether each entry of both is the same sum over rows."""
    moments = isinstance(one.measured, Moments) or isinstance(one.recipe, Ratio)
    return moments and one.recipe == other.recipe and one.measured == other.measured


def _sums_moments(reading: Reading) -> bool:
    """Whether it is a sum read off moments, which also count the values that were rounded."""
    if not isinstance(reading.measured, Moments) or not isinstance(reading.recipe, Linear):
        return False
    return set(reading.recipe.coefficients) - {0, Fraction(1, reading.measured.weight)} != set()


def _list_laws(estimate: _Estimate) -> tuple[Summed, ...]:
    """The noise of each group."""
    number = not estimate.alone and not estimate.by_entry
    below = _denominator(estimate.readings)
    found = []
    for group in range(len(estimate.readings[0].cells)):
        terms: list[Term] = []
        for reading, weight in zip(
            estimate.readings, estimate.weights[group].tolist(), strict=True
        ):
            count = reading.cells[group].size * reading.merged
            share = 1 if estimate.alone else weight
            if number:
                terms += _number_terms(reading, count, share, below)
            elif count and share and not isinstance(law := reading.law, Summed):
                terms.append(Term(law, count, share))
        found.append(Summed(tuple(terms)))
    return tuple(found)


def _denominator(readings: Sequence[Reading]) -> int:
    below = [
        (c / r.recipe.grid).denominator
        for r in readings
        if isinstance(r.recipe, Linear)
        for c in r.recipe.coefficients
    ]
    return math.lcm(*below)


def _number_terms(reading: Reading, count: int, share: int, below: int) -> list[Term]:
    """The noise of the number itself: each entry's, times its coefficient."""
    law = reading.law
    if not isinstance(reading.recipe, Linear) or not count or not share or isinstance(law, Summed):
        return []
    return [
        Term(law, count, abs(share * size)) for size in _whole_coefficients(reading, below) if size
    ]


def _whole_coefficients(reading: Reading, below: int) -> list[int]:
    if not isinstance(reading.recipe, Linear):
        raise TypeError("not a number")
    recipe = reading.recipe
    return [int(c / recipe.grid * below) for c in recipe.coefficients]


def _scale_recipe(estimate: _Estimate) -> Any:
    """The recipe that reads the combined entries, of which each has so many parts."""
    recipe = estimate.readings[0].recipe
    if estimate.alone:
        return recipe
    if isinstance(recipe, Ratio):
        return replace(recipe, moments=_in_parts(recipe.moments))
    if not isinstance(recipe, Linear):
        raise TypeError("shown as it is, never weighted")
    if estimate.by_entry:
        return replace(recipe, coefficients=tuple(c / PARTS for c in recipe.coefficients))
    # Combined numbers are one entry: the weighted sum, in steps of the grid, times what divides it.
    return Linear(0, (recipe.grid / (PARTS * _denominator(estimate.readings)),), recipe.grid)


def _in_parts(moments: Moments) -> Moments:
    return replace(moments, parts=moments.parts * PARTS)


def _describe_entries(estimate: _Estimate, *, is_sum: bool) -> Measurement:
    """What the entries are; of sums combined as numbers only the sum is left, and no count."""
    first = estimate.readings[0].measured
    if estimate.by_entry and isinstance(first, Moments):
        return _in_parts(first)
    if is_sum and not estimate.alone:
        match first:
            case Moments(variables=(variable,), condition=condition):
                return Sum(variable, condition)
            case GroupTotal(expression, grid, low, span, condition):
                return GroupSum(expression, grid, low, span, condition)
    return first


def _entries(estimate: _Estimate) -> NDArray[Any]:
    """The numbers that are read: sums, or weighted sums."""
    if estimate.alone:
        return estimate.readings[0].entries()
    number = not estimate.by_entry
    below = _denominator(estimate.readings) if number else 1
    total: Any = 0
    for place, reading in enumerate(estimate.readings):
        entries = reading.entries()
        if number:
            sizes = np.array(_whole_coefficients(reading, below), dtype=object)
            entries = (entries * sizes).sum(axis=1, keepdims=True)
        total = total + entries * estimate.weights[:, [place]].astype(object)
    found: NDArray[Any] = total
    return found


def _list_origins(estimates: Sequence[_Estimate]) -> tuple[Origin, ...]:
    found: dict[int, Origin] = {}
    for estimate in estimates:
        for place, reading in enumerate(estimate.readings):
            source: Released = reading.source
            added = max((cells.size for cells in reading.cells), default=0) * reading.merged
            weight = Fraction(int(estimate.weights[:, place].max()), PARTS)
            before = found.get(source.id)
            if isinstance(reading.law, Summed):
                weight = Fraction(0)  # what is public says nothing of how much is used
            if before is not None:
                added, weight = max(added, before.groups), max(weight, before.weight)
            question = source.priced.question
            text = question.text or write_question_text(question)  # what was built has no text
            found[source.id] = Origin(source.id, text, source.loss, added, weight)
    return tuple(found[number] for number in sorted(found))


def estimate_worth(new: Priced, laws: Sequence[Summed], recipes: Sequence[Any]) -> Loss:
    """The epsilon of one direct measurement whose noise has the variance of the first aggregate.

    A description, rounded down; of the worst group.
    """
    if not laws or not isinstance(recipes[0], Linear):
        return NOTHING
    noise = laws[0].combine(recipes[0].coefficients)
    direct = new.recipes[0]
    if noise.variance <= 0 or not isinstance(direct, Linear):
        return NOTHING
    sensitivity = new.sensitivities[direct.measurement].l1
    length = sum(float(c) ** 2 for c in direct.coefficients)
    # Laplace noise of scale 1 / x has the variance 1 / (2 sinh(x / 2)**2).
    epsilon = sensitivity * 2 * math.asinh(math.sqrt(length / (2 * noise.variance)))
    return Loss.pure(round_down(Fraction(epsilon), Fraction(1, 10**6)))


__all__ = [
    "Derivation",
    "Predicted",
    "choose_independent",
    "combine",
    "estimate_worth",
    "predict",
]
