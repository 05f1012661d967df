"""The airlock: the only code that sees truth and noise together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from discreet.engine.truth import SparseCounts, Truth
from discreet.mechanisms.quantiles.ranks import Cells
from discreet.price import Choice, Priced, Quantile, SelectionNoise
from discreet.price.margins import choice_mechanism, quantile_mechanism
from discreet.price.noises import noised
from discreet.price.plan import ValueCounts
from discreet.release.answer import Answer
from discreet.release.reading import Released, Selected


def release(priced: Priced, truth: Truth) -> Answer:
    """Noise for every number, a choice for every selection, and a threshold for hidden groups."""
    opened = truth.open_for_release()
    groups = opened.groups
    released: list[Released] = []
    for place, noise in enumerate(priced.noises):
        measured = opened.measured[place]
        if isinstance(noise, SelectionNoise):
            released.append(_selected(priced, place, noise, measured, len(groups)))
        elif isinstance(measured, SparseCounts):
            raise TypeError("a histogram is chosen from, not published")
        else:
            released.append(noised(noise, measured))
    if priced.threshold is not None:
        counts = released[priced.threshold.measurement]
        if isinstance(counts, Selected):
            raise TypeError("units are counted, not chosen")
        shown = [i for i in range(len(groups)) if counts[i, 0] >= priced.threshold.least]
        groups = tuple(groups[i] for i in shown)
        released = [
            part.only(shown) if isinstance(part, Selected) else part[shown] for part in released
        ]
    return Answer(priced, groups, tuple(released))


def _selected(
    priced: Priced, place: int, noise: SelectionNoise, measured: Any, groups: int
) -> Selected:
    chosen: dict[int, tuple[Any, ...]] = {}
    for index, recipe in enumerate(priced.recipes):
        if recipe.measurement != place:
            continue
        if isinstance(recipe, Quantile):
            chosen[index] = _quantiles(recipe, noise, measured, groups)
        elif isinstance(recipe, Choice):
            chosen[index] = _choices(priced, recipe, noise, measured)
    return Selected(chosen)


def _quantiles(
    recipe: Quantile, noise: SelectionNoise, counts: SparseCounts, groups: int
) -> tuple[Any, ...]:
    mechanism = quantile_mechanism(recipe, noise)
    variable = recipe.variable
    bounds = np.searchsorted(counts.group, np.arange(groups + 1))
    results = []
    for first, past in pairwise(bounds):
        cells = Cells(counts.position[first:past], counts.count[first:past], dense=False)
        steps = dict(zip(recipe.different, mechanism.release_cells(cells), strict=True))
        values = [(variable.low + int(steps[q])) * variable.grid for q in recipe.fractions]
        plain = [int(v) if variable.grid >= 1 else float(v) for v in values]
        results.append(plain if recipe.many else plain[0])
    return tuple(results)


def _choices(
    priced: Priced, recipe: Choice, noise: SelectionNoise, measured: Any
) -> tuple[Any, ...]:
    listed = priced.plan.measurements[recipe.measurement]
    if not isinstance(listed, ValueCounts):
        raise TypeError(recipe.measurement)
    mechanism = choice_mechanism(recipe, noise)
    results = []
    for row in measured:
        places = mechanism.release([int(n) for n in row])
        values = [listed.values[place] for place in places]
        results.append(values if recipe.many else values[0])
    return tuple(results)
