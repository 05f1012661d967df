"""The airlock: the only code that sees truth and noise together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.engine.truth import Opened, SparseCounts, Truth
from discreet.exact.records import dataclass
from discreet.mechanisms import KeyRelease, Laplace
from discreet.mechanisms.clipping import ClippedSums, Lumps
from discreet.mechanisms.keys import toss_coins
from discreet.noise.entropy import random_bytes
from discreet.price import Additive, Choice, Priced, Quantile, Selection, Spread, Threshold
from discreet.price.plan import ValueCounts
from discreet.price.summed import Summed
from discreet.release.answer import Entries, Part, Released, Selected

if TYPE_CHECKING:
    from discreet.mechanisms.quantiles.ranks import RankedCells
    from discreet.mechanisms.sparse.run import NoisyThreshold
    from discreet.price.aggregation import Aggregation
    from discreet.price.chosen import Contest
    from discreet.price.crowding import CrowdingTest
    from discreet.price.gathering import Gathered
    from discreet.price.interview import Interview, Posed
    from discreet.price.middle import Middle
    from discreet.price.quality import Quality
    from discreet.price.watch import Watch, Watched

D = TypeVar("D")


def refine(priced: Priced, truth: Truth, earlier: Released, scales: Sequence[Fraction]) -> Released:
    """Less noise on numbers that were released before with Laplace noise of these scales.

    Only where the truth is certain to be the same; docs/proofs/known.md, Lemmas 6, 7 and 10.
    """
    opened = truth.open_for_release()
    if opened.groups != earlier.groups or priced.threshold is not None:
        raise TypeError("other groups than were released")
    parts: list[Part] = []
    for index, (mechanism, measured, part, scale) in enumerate(
        zip(priced.mechanisms, opened.measured, earlier.parts, scales, strict=True)
    ):
        if isinstance(mechanism, Summed):
            parts.append(_show_size(priced, index, measured))
            continue
        if not isinstance(mechanism, Laplace) or isinstance(measured, SparseCounts):
            raise TypeError("only Laplace noise is refined")
        parts.append(mechanism.refine(measured, part, scale=scale))
    return Released(opened.groups, tuple(parts))


def release(priced: Priced, truth: Truth) -> Released:
    """Noise for every number, a choice for every selection, and a threshold for hidden groups."""
    opened = truth.open_for_release()
    groups = opened.groups
    parts: list[Part] = []
    for index, mechanism in enumerate(priced.mechanisms):
        measured = opened.measured[index]
        if isinstance(mechanism, Summed):
            parts.append(_show_size(priced, index, measured))
        elif isinstance(mechanism, Selection | ClippedSums):
            parts.append(_choose(priced, index, mechanism, opened))
        elif isinstance(measured, SparseCounts):
            raise TypeError("a histogram is chosen from, not published")
        else:
            parts.append(
                _show_keys(mechanism, measured)
                if isinstance(mechanism, KeyRelease)
                else _add_noise(mechanism, measured)
            )
    released = Released(groups, tuple(parts))
    if priced.threshold is None:
        return released
    return released.above(priced.threshold, _toss(priced.threshold, len(groups)))


def _show_size(priced: Priced, index: int, measured: Any) -> Entries:
    """A public number of units, as it is; what was added up is not drawn."""
    from discreet.price.sizes import is_public_part

    if not is_public_part(priced, index):
        raise TypeError("only a public number of units has no noise")
    shown: Entries = measured
    return shown


def release_crowding(test: CrowdingTest, truth: Truth) -> bool:
    """Whether few enough people stand in too many rows, as far as noise lets anybody know."""
    (above,) = truth.open_for_release().measured
    if isinstance(above, SparseCounts):
        raise TypeError("people are counted by level")
    return int(test.noise.release(test.measure(above.tolist()))) >= test.least


def release_codes(truth: Truth, draw: Callable[[Sequence[NDArray[Any]]], D]) -> D:
    """What ``draw`` makes of coded rows, column by column: counts of them with noise added.

    For publications, whose tables are chosen as they go: the rows are opened here, are lent to
    the one draw that was paid for, and stay with nobody.
    """
    measured = truth.open_for_release().measured
    return draw([one for one in measured if not isinstance(one, SparseCounts)])


def release_blocks(
    aggregation: Aggregation,
    truth: Truth,
    units: int,
    run: Callable[[Sequence[Sequence[Any]]], Sequence[Sequence[float] | None]],
) -> list[int]:
    """The sums over blocks of what ``run`` says of each, with noise.

    The rows are divided here, by a hash of whose they are, under a key that is drawn for it: the
    first ``units`` columns say that, or, where there are none, each row is a unit of its own.
    """
    opened = truth.open_for_release().measured
    columns = [one for one in opened if not isinstance(one, SparseCounts)]
    key, rows = random_bytes(32), len(columns[0]) if columns else 0
    places: list[list[int]] = [[] for _ in range(aggregation.blocks)]
    for row in range(rows):
        owner = repr([columns[u][row] for u in range(units)] or row).encode()
        hashed = hashlib.blake2b(owner, key=key, digest_size=16).digest()
        places[int.from_bytes(hashed, "big") % aggregation.blocks].append(row)
    blocks = [[column[chosen] for column in columns[units:]] for chosen in places]
    steps = []
    for said in run(blocks):
        fits = said is not None and len(said) == len(aggregation.bounds)
        steps.append(aggregation.count_steps(said if fits else None))
    exact = np.array([sum(column) for column in zip(*steps, strict=True)], dtype=object)
    return [int(one) for one in _add_noise(aggregation.noise, exact)]


def release_distances(quality: Quality, truths: Sequence[Truth]) -> list[int]:
    """How many units stand in the way of each property, with noise."""
    exact = []
    for truth in truths:
        (measured,) = truth.open_for_release().measured
        if isinstance(measured, SparseCounts):
            raise TypeError("a histogram is no distance")
        exact.append(int(measured[0, 0]))
    return [int(one) for one in _add_noise(quality.noise, np.array(exact, dtype=object))]


def release_median(middle: Middle, truth: Truth) -> int | None:
    """The median in steps, with noise that fits the data; None where a test was not passed."""
    opened = truth.open_for_release()
    (counts,) = opened.measured
    if not isinstance(counts, SparseCounts):
        raise TypeError("a median is read off a histogram")
    from discreet.mechanisms import SmoothMedian

    mechanism = middle.mechanism
    ranked = _rank_cells(counts, 0, 0, partial(_measure_whole, opened, 0))
    if isinstance(mechanism, SmoothMedian):
        return int(mechanism.release_ranked(ranked))
    told = mechanism.release_median(ranked, span=middle.variable.span)
    return None if told is None else int(told)


def _add_noise(mechanism: Additive, measured: Entries) -> Entries:
    """Every entry plus its own draw, in Python's integers: those of 64 bits would saturate."""
    released: Entries = mechanism.release(measured, exact=True)
    return released


def _show_keys(mechanism: KeyRelease, measured: Entries) -> Entries:
    """1 for every group that is shown, by its number of units, and 0 for the others."""
    shown = mechanism.release(measured[:, 0].tolist())
    return np.array(shown, dtype=np.int64).reshape(-1, 1)


def _toss(threshold: Threshold, groups: int) -> Entries:
    """A coin for every group, whether or not it will matter."""
    return toss_coins(threshold.odds, groups)


def _choose(
    priced: Priced, index: int, selection: Selection | ClippedSums, opened: Opened
) -> Selected:
    """What each recipe that reads this measurement chooses, group by group."""
    measured: Any = opened.measured[index]
    groups, all_cells = len(opened.groups), cache(partial(_measure_whole, opened, index))
    if isinstance(selection, ClippedSums):
        between = _clip(selection, measured, groups, all_cells)  # once, for all that read it
        readers = [i for i, recipe in enumerate(priced.recipes) if recipe.measurement == index]
        return Selected(dict.fromkeys(readers, between))
    chosen: dict[int, tuple[Any, ...]] = {}
    for reader, recipe in enumerate(priced.recipes):
        if recipe.measurement != index:
            continue
        if isinstance(recipe, Quantile):
            chosen[reader] = _choose_quantiles(recipe, selection, measured, groups, all_cells)
        elif isinstance(recipe, Spread):
            both = recipe.quantiles
            pairs = _choose_quantiles(both, selection, measured, groups, all_cells)
            chosen[reader] = tuple(high - low for low, high in pairs)
        elif isinstance(recipe, Choice):
            listed = priced.plan.measurements[index]
            if not isinstance(listed, ValueCounts):
                raise TypeError(index)
            chosen[reader] = _choose_values(recipe, selection, listed, measured)
    return Selected(chosen)


def _clip(
    sums: ClippedSums, counts: SparseCounts, groups: int, all_cells: Callable[[], SparseCounts]
) -> tuple[Any, ...]:
    """Of each group both ends, and the noisy sums of what is between them."""
    return tuple(
        sums.release_lumps(_lump_steps(counts, group, all_cells)) for group in range(groups)
    )


def _lump_steps(counts: SparseCounts, group: int, all_cells: Callable[[], SparseCounts]) -> Lumps:
    """The values of one group; what their lumps do not tell is measured when needed."""
    told = slice(*np.searchsorted(counts.group, [group, group + 1]))
    position, count = counts.position[told], counts.count[told]
    if counts.first is None:
        return Lumps.of(position, count)
    powers = tuple(power[told] for power in counts.powers)
    return Lumps(counts.first[told], position, count, powers, partial(_lump_all, all_cells, group))


def _lump_all(all_cells: Callable[[], SparseCounts], group: int) -> Lumps:
    return _lump_steps(all_cells(), group, all_cells)


def _measure_whole(opened: Opened, index: int) -> SparseCounts:
    """Every cell of a histogram, on the same data, for a choice that looks at far ones."""
    if opened.whole is None:
        raise TypeError(index)
    again = opened.whole().open_for_release()
    counts = again.measured[index]
    if again.groups != opened.groups or not isinstance(counts, SparseCounts):
        raise TypeError("other groups than were measured")
    return counts


def _rank_cells(
    counts: SparseCounts, group: int, shift: int, all_cells: Callable[[], SparseCounts]
) -> RankedCells:
    """The cells of one group in order; what their lumps do not tell is measured when needed."""
    from discreet.mechanisms.quantiles.ranks import Cells, LumpedCells, RankedCells

    first, past = np.searchsorted(counts.group, [group, group + 1])
    told = slice(first, past)
    cells = Cells(counts.position[told], counts.count[told], dense=False)
    ranked = RankedCells.of(cells, shift=shift)
    if counts.first is None:
        return ranked

    def look_up() -> RankedCells:
        return _rank_cells(all_cells(), group, shift, all_cells)

    upto, total = ranked.cumulative, ranked.total
    return LumpedCells(ranked.at, upto, shift, 0, total, counts.first[told], look_up)


def _choose_quantiles(
    recipe: Quantile,
    selection: Selection,
    counts: SparseCounts,
    groups: int,
    all_cells: Callable[[], SparseCounts],
) -> tuple[Any, ...]:
    mechanism = selection.quantiles(recipe)
    variable, shift = recipe.variable, mechanism.domain.shift
    results = []
    for group in range(groups):
        ranked = _rank_cells(counts, group, shift, all_cells)
        steps = dict(zip(recipe.different, mechanism.release_ranked(ranked), strict=True))
        values = [(variable.low + int(steps[q])) * variable.grid for q in recipe.fractions]
        plain = [int(v) if variable.grid.denominator == 1 else float(v) for v in values]
        results.append(plain if recipe.many else plain[0])
    return tuple(results)


def _choose_values(
    recipe: Choice, selection: Selection, listed: ValueCounts, measured: Entries
) -> tuple[Any, ...]:
    mechanism = selection.top_k(recipe)
    results = []
    for row in measured:
        values = [listed.values[index] for index in mechanism.release([int(n) for n in row])]
        results.append(values if recipe.many else values[0])
    return tuple(results)


# --- what a run is told ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """Of a question's groups, in order: how many were below, and what was above after them."""

    below: int
    above: bool
    value: Fraction | None = None
    """The number that was above, with noise of its own, if the run tells numbers."""


def judge(
    watch: Watch,
    watched: Watched,
    truth: Truth,
    *,
    threshold: Fraction,
    secret: NoisyThreshold,
    first: int = 0,
) -> Judged:
    """Compare each number from ``first`` on with the noisy threshold, up to the first above.

    What comes after that one has not been compared: the next round has another secret.
    """
    steps = [int(one) for one in _open_numbers(truth)[first:, 0]]
    scaled = watched.scale(steps, threshold)
    return _find_above(watch, scaled, secret, lambda _, told: watched.unscale(told, threshold))


def judge_gathered(
    watch: Watch,
    asked: Sequence[tuple[Watched, Fraction]],
    gathered: Gathered,
    truth: Truth,
    *,
    secret: NoisyThreshold,
    first: int = 0,
) -> Judged:
    """The same of numbers that were read together, each of a question with its own threshold."""
    numbers, rest = gathered.add_up(_open_numbers(truth))[first:], asked[first:]
    scaled = [one.scale([n], level)[0] for n, (one, level) in zip(numbers, rest, strict=True)]
    return _find_above(
        watch, scaled, secret, lambda place, told: rest[place][0].unscale(told, rest[place][1])
    )


def release_gathered(priced: Priced, gathered: Gathered, place: int, truth: Truth) -> Released:
    """What is released of one of several questions that were read together, as if it were alone.

    Its number is that of its own statement (docs/proofs/runs.md, Lemma 7), and its noise is drawn
    for it alone.
    """
    number = gathered.add_one(_open_numbers(truth), place)
    kind = np.int64 if abs(number) < 2**63 else object
    return release(priced, Truth(Opened(((),), (np.array([[number]], dtype=kind),))))


def _open_numbers(truth: Truth) -> NDArray[Any]:
    """The numbers of every group, of what measures one for each."""
    (measured,) = truth.open_for_release().measured
    if isinstance(measured, SparseCounts):
        raise TypeError("a histogram is no number")
    return measured


def _find_above(
    watch: Watch,
    numbers: list[int],
    secret: NoisyThreshold,
    unscale: Callable[[int, int], Fraction],
) -> Judged:
    """Compare numbers on the run's scale in order, up to the first above."""
    scaled = _within_reach(numbers)
    place = secret.first_above(watch.mechanism.plan, np.array(scaled, dtype=np.int64))
    if place is None:
        return Judged(len(scaled), above=False)
    noise = watch.number_noise
    if noise is None:
        return Judged(place, above=True)
    # Fresh noise: that of the comparison is never reused.
    told = int(_add_noise(noise, np.array([[scaled[place]]], dtype=object))[0, 0])
    return Judged(place, above=True, value=unscale(place, told))


def _within_reach(steps: list[int]) -> list[int]:
    """Cut off far beyond any noise: a number that far off is above, or below, all the same."""
    from discreet.mechanisms.selection.scores import REACH

    return [min(max(one, -REACH), REACH) for one in steps]


def release_numbers(interview: Interview, posed: Posed, truth: Truth) -> list[int]:
    """The numbers of a question of an interview, each with noise of its own, in steps."""
    noised = _add_noise(posed.noise(interview), _open_numbers(truth))
    return [int(one) for one in noised[:, 0]]


# --- what is chosen among questions ------------------------------------------------------------


def choose_best(contest: Contest, truths: Sequence[Truth]) -> tuple[list[int], list[int] | None]:
    """The places of those chosen, best first; and their numbers with fresh noise, if paid for."""
    from discreet.price.chosen import OneShot

    scores: list[int] = []
    for truth, factor in zip(truths, contest.factors(), strict=True):
        measured = truth.open_for_release().measured[0]
        if isinstance(measured, SparseCounts):
            raise TypeError("a histogram is no score")
        scores += [int(one) * factor for one in measured[:, 0]]
    if isinstance(contest.mechanism, OneShot):
        drawn = _add_noise(contest.mechanism.noise, np.array(scores, dtype=object))
        noisy = [int(one) for one in drawn]
        picked = contest.mechanism.pick(noisy)
        return picked, None if contest.numbers is None else [noisy[place] for place in picked]
    places = [int(place) for place in contest.mechanism.release(scores)]
    if contest.numbers is None:
        return places, None
    entries = np.array([[scores[place]] for place in places], dtype=object)
    return places, [int(one) for one in _add_noise(contest.numbers, entries)[:, 0]]
