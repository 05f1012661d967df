"""Which pair tables to measure, how finely and for how much: bias against noise.

Known for each pair: about how far it is from independence (``strengths``).  A
table that is not measured is wrong by that much; one measured in k × l bins
keeps a part of it as bias and gets noise that grows with its cells.  For a
multiplier on the spend every pair chooses by itself, so the plan is one
bisection, over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.exact.search import bracket
from discreet.publication.measure import Doubles
from discreet.publication.tree import Limits, add_edge, eliminate, within_limits

Pair = tuple[int, int]

_BIAS_POWER = 0.5  # what k bins miss of a dependence falls like k ** -1/2
_FIT_GAIN = 0.8  # the joint fit removes about a fifth of the noise
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Choice:
    """A pair's table: its bins along both columns, its weight in the spend, what it gains."""

    bins: tuple[int, int]
    weight: float
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class _Options:
    """Every resolution of every pair, padded to one array of pairs by options."""

    pairs: list[Pair]
    bins: list[list[tuple[int, int]]]
    strengths: Doubles
    bias: Doubles
    noise: Doubles


def plan_pairs(
    strengths: Mapping[Pair, float],
    levels: Sequence[Sequence[int]],
    *,
    rows: float,
    amount: float,
    gaussian: bool,
    limits: Limits,
    interest: Sequence[float],
) -> dict[Pair, Choice]:
    """The pairs to measure, of a graph whose junction tree stays within the limits.

    Twice: choose for all, keep what the tree can hold in order of gain, choose
    again for those with the money that is free now.
    """
    options = _list_options(
        strengths, levels, rows=rows, gaussian=gaussian, interest=interest, limits=limits
    )
    chosen = _choose(options, amount, gaussian)
    for _ in range(2):
        ranked = sorted(chosen, key=lambda pair: -chosen[pair].gain)
        kept = _keep_tractable(ranked, chosen, len(levels), limits)
        chosen = _choose(_only(options, kept), amount, gaussian)
    # The last choice may ask for finer bins than the kept graph was checked with.
    ranked = sorted(chosen, key=lambda pair: -chosen[pair].gain)
    kept = _keep_tractable(ranked, chosen, len(levels), limits)
    return {pair: chosen[pair] for pair in chosen if pair in kept}


def finest_bins(chosen: Mapping[Pair, Choice], levels: Sequence[Sequence[int]]) -> list[int]:
    """For each column the finest grouping in use; the coarsest one where nobody measured it."""
    finest = [min(counts) for counts in levels]
    used = [0] * len(levels)
    for pair, choice in chosen.items():
        for column, count in zip(pair, choice.bins, strict=True):
            used[column] = max(used[column], count)
    return [own or coarse for own, coarse in zip(used, finest, strict=True)]


def _list_options(
    strengths: Mapping[Pair, float],
    levels: Sequence[Sequence[int]],
    *,
    rows: float,
    gaussian: bool,
    interest: Sequence[float],
    limits: Limits,
) -> _Options:
    pairs = [pair for pair, strength in strengths.items() if strength > 0]
    width = max((len(levels[a]) * len(levels[b]) for a, b in pairs), default=1)
    bias = np.full((len(pairs), width), np.inf)
    noise = np.ones((len(pairs), width))
    bins: list[list[tuple[int, int]]] = []
    weights = np.array([interest[a] * interest[b] for a, b in pairs])
    for place, (a, b) in enumerate(pairs):
        strength = strengths[a, b]
        # Where rows gather in few cells, few cells are all that noise can hurt.
        spread = (1 - min(strength / (2 * rows), 1.0)) ** 2
        ks = np.repeat(np.array(levels[a], dtype=float), len(levels[b]))
        ls = np.tile(np.array(levels[b], dtype=float), len(levels[a]))
        kept = (1 - _find_missed(ks, max(levels[a]))) * (1 - _find_missed(ls, max(levels[b])))
        cells = np.sqrt((ks - 1) * (ls - 1) * ks * ls)
        fits = (ks * ls <= limits.largest) & (cells > 0)  # one bin shows no dependence
        cells = cells * spread + np.minimum(cells, np.maximum(ks, ls)) * (1 - spread)
        cells = np.where(fits, cells, 1.0)
        bias[place, : ks.size] = np.where(fits, strength * (1 - kept), np.inf)
        noise[place, : ks.size] = _FIT_GAIN * cells / (math.sqrt(math.pi) if gaussian else 1.0)
        bins.append([(k, l) for k in levels[a] for l in levels[b]])
    values = np.array([strengths[pair] for pair in pairs])
    return _Options(
        pairs, bins, values * weights, bias * weights[:, None], noise * weights[:, None]
    )


def _find_missed(counts: Doubles, finest: int) -> Doubles:
    """The share of a dependence that ``counts`` bins do not see and ``finest`` bins do."""
    if finest <= 1:
        return np.zeros_like(counts)
    edge = finest**-_BIAS_POWER
    return np.asarray((counts**-_BIAS_POWER - edge) / (1 - edge))


def _only(options: _Options, kept: set[Pair]) -> _Options:
    places = [place for place, pair in enumerate(options.pairs) if pair in kept]
    return _Options(
        [options.pairs[place] for place in places],
        [options.bins[place] for place in places],
        options.strengths[places],
        options.bias[places],
        options.noise[places],
    )


def _choose(options: _Options, amount: float, gaussian: bool) -> dict[Pair, Choice]:
    """Minimise bias + noise over resolutions and shares of the amount, by its multiplier."""
    if not options.pairs:
        return {}

    def is_paid(power: float) -> bool:
        return bool(_answer(options, 10.0**power, gaussian)[1].sum() <= amount)

    _, power = bracket(is_paid, fails_at=-6.0, holds_at=18.0, halvings=_STEPS)
    best, spent, gain = _answer(options, 10.0**power, gaussian)
    if not (gain > 0).any():
        return {}
    return {
        options.pairs[place]: Choice(
            options.bins[place][int(best[place])], float(spent[place]), float(gain[place])
        )
        for place in np.flatnonzero(gain > 0)
    }


def _answer(options: _Options, price: float, gaussian: bool) -> tuple[Doubles, Doubles, Doubles]:
    """For each pair, at this price of the spend: its best option, what it spends, what it gains.

    Gaussian noise is noise / sqrt(rho), Laplace noise is noise / epsilon; each
    option's best share has a closed form.
    """
    if gaussian:
        shares = (options.noise / (2 * price)) ** (2 / 3)
        cost = options.bias + options.noise / np.sqrt(shares) + price * shares
    else:
        shares = np.sqrt(options.noise / price)
        cost = options.bias + options.noise / shares + price * shares
    best = cost.argmin(axis=1)
    every = np.arange(len(options.pairs))
    gain = options.strengths - cost[every, best]
    return best, np.where(gain > 0, shares[every, best], 0.0), gain


def _keep_tractable(
    ranked: Sequence[Pair], chosen: Mapping[Pair, Choice], count: int, limits: Limits
) -> set[Pair]:
    """Greedily, in order of gain: the pairs whose junction tree stays within the limits."""
    kept: set[Pair] = set()
    neighbours: list[set[int]] = [set() for _ in range(count)]
    sizes = [1] * count
    cliques = [frozenset([column]) for column in range(count)]
    for pair in ranked:
        grown = list(sizes)
        for column, bins in zip(pair, chosen[pair].bins, strict=True):
            grown[column] = max(grown[column], bins)
        known = any(pair[0] in clique and pair[1] in clique for clique in cliques)
        trial = cliques if known else eliminate(add_edge(neighbours, pair), grown)
        if within_limits(trial, grown, limits):
            kept.add(pair)
            neighbours = add_edge(neighbours, pair)
            sizes, cliques = grown, trial
    return kept
