"""A synthetic table: measured in three stages, fitted once, sampled evenly.

1. Every column's histogram, a third of the spend.
2. How far each pair is from independence: one number each, all of sensitivity one.
3. The pair tables worth measuring, at the resolution and price that the plan finds.

Then the law of maximum entropy that explains them, and rows that follow it.  What
is measured later depends only on what was released earlier.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.errors import InvalidParameter
from discreet.mechanisms.postprocess import simplex
from discreet.publication.bins import Binning, add_up, make_binning
from discreet.publication.denoise import LEAST_LEVELS, denoise, looks_ordered
from discreet.publication.domain import Column, check_columns
from discreet.publication.fit import Fitted, Target, fit
from discreet.publication.measure import (
    GRID,
    Doubles,
    Integers,
    Measurement,
    Measurer,
    ask_cells,
    ask_distance,
    make_view,
)
from discreet.publication.plan import Choice, Pair, finest_bins, plan_pairs
from discreet.publication.sample import lean, refine, sample_bins
from discreet.publication.spend import Spend, deviation
from discreet.publication.stream import PublicStream
from discreet.publication.tree import JunctionTree, Limits, eliminate

MOST_VALUES = 4 * 10**8
"""Rows times columns of a table that is made."""
_MOST_BINS = 128
_MANY_BINS = 64  # of each of very many columns: the numbers of all pairs are to be held
_BINS_OF_ALL = 2**13
_LEAST_BINS = 4
_ROWS_A_CELL = 16.0  # deviations of a count that an even cell of a pair's finest table should hold
_LEAST_ROWS_A_CELL = 4.0  # where tables are clear
_FINER = 6.0  # with that power of how clear they are
_HAZY = 8500.0  # rows times sharpness up to which eighty looks are enough
_HASTE = 4.0  # looks grow with that power of how clear the tables are
_USUAL_TABLES = 54.0  # pair tables that share the spend of the third stage, about


@dataclass(frozen=True, slots=True)
class Settings:
    """How a spend is divided and how large the model may grow; the same for every table.

    ``histograms`` and ``distances`` are the first two stages' shares of the spend; unless given,
    0.33, and 0.02 with Gaussian or 0.07 with Laplace noise.

    ``bins`` are of a column at most; unless given, 128, and fewer of more than 64 columns.
    ``rows_a_cell`` is how many deviations of a count an even cell of the finest bins should hold;
    unless given, sixteen, down to four the less Gaussian noise hides.

    ``limits`` bound the model; unless given, 250,000 cells in a clique, and more of them together
    the more columns.  ``looks`` are taken at the tree while fitting; unless given, more the less
    noise there is to overfit; ``haste`` is how fast they become more, unless given 4.  ``prior``
    is the weight of independence in the fit; unless given, that of greatest evidence.
    """

    histograms: float | None = None
    distances: float | None = None
    bins: int | None = None
    rows_a_cell: float | None = None
    limits: Limits | None = None
    looks: int | None = None
    haste: float | None = None
    prior: float | None = None

    def shares(self, gaussian: bool) -> tuple[float, float, float]:
        """The three stages' shares of the spend; ``gaussian`` says of which noise."""
        first = self.histograms or 0.33
        second = self.distances or (0.02 if gaussian else 0.07)
        return first, second, 1 - first - second

    def most_bins(self, columns: int) -> int:
        """How many bins each of so many ``columns`` gets at most, whatever the price."""
        return self.bins or min(_MOST_BINS, max(_BINS_OF_ALL // columns, _MANY_BINS))

    def bins_for(self, columns: int, rows: float, spend: Spend) -> int:
        """How many bins a column gets at most: so many that a pair's cells still stand out.

        ``columns`` are there, ``rows`` is about how many rows, ``spend`` the price of all stages.
        """
        # (With Laplace noise, slopes of finer bins spread more, and were smaller.)
        finer = max(_measure_clarity(rows, spend), 1.0) ** _FINER if spend.gaussian else 1.0
        wanted = self.rows_a_cell or max(_ROWS_A_CELL / finer, _LEAST_ROWS_A_CELL)
        held = rows * _sharpness(spend) / wanted
        return int(np.clip(math.sqrt(held), _LEAST_BINS, self.most_bins(columns)))

    def limits_for(self, columns: int) -> Limits:
        """How large the model of so many ``columns`` may grow."""
        return self.limits or Limits(together=Limits().largest * max(5.0, columns / 3))

    def looks_for(self, rows: float, spend: Spend) -> int:
        """Eighty where noise hides what further looks would find, up to twice that.

        ``rows`` is about how many there are, ``spend`` the price of all stages.
        """
        clear = _measure_clarity(rows, spend) ** (self.haste or _HASTE)
        return self.looks or round(80 * min(max(clear, 1.0), 2.0))


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """The first stage, cleaned: a non-negative histogram per column and the number of rows."""

    values: list[Doubles]
    deviations: list[float]
    rows: float
    rows_variance: float
    """Of the estimate of the number of rows, before it was kept positive."""


@dataclass(frozen=True, slots=True, eq=False)
class Synthesis:
    """What came of it: rows of codes, the law they follow, and every number it was made from.

    ``columns`` are those of ``rows``; ``fitted`` is the law, None of a single column; ``chosen``
    has the pairs whose tables were measured, ``histograms`` are those of the columns, cleaned, and
    ``measurements`` all that was released.
    """

    columns: tuple[Column, ...]
    rows: Integers
    fitted: Fitted | None
    chosen: dict[Pair, Choice]
    measurements: list[Measurement]
    histograms: Histograms


def synthesize(
    measurer: Measurer,
    columns: Sequence[Column],
    spend: Spend,
    *,
    settings: Settings | None = None,
    label: str = "rows",
) -> Synthesis:
    """Measure, fit and sample a table like the one the measurer holds.

    ``columns`` are those of the rows that ``measurer`` holds, ``spend`` is the price of all
    stages, ``settings`` how it is divided, ``label`` names the draws that are no noise.

    ``label`` names the public digits that rows are sampled with, which is post-processing: the
    same released numbers give the same rows.  Noise has none.
    """
    listed = check_columns(columns)
    wanted = settings or Settings()
    stream = PublicStream(label)
    pairs = list(itertools.combinations(range(len(listed)), 2))
    shares = wanted.shares(spend.gaussian)
    first, second, third = (
        spend.divide(shares)
        if pairs
        else (spend, spend, spend)  # one column: all for its histogram
    )
    released = measure_histograms(measurer, listed, first)
    ordered = find_orders(listed, released)
    histograms = clean_histograms(ordered, released)
    count = _whole_rows(histograms)
    if not pairs:
        flat = [np.zeros(listed[0].size, dtype=np.int64)]
        rows = refine(np.zeros((count, 1), dtype=np.int64), flat, histograms.values, stream)
        return Synthesis(listed, rows, None, {}, released, histograms)
    most = wanted.bins_for(len(listed), histograms.rows, spend)
    binnings = make_binnings(ordered, histograms, most=most)
    distances = measure_distances(measurer, binnings, pairs, histograms.rows, second)
    levels = [sorted(binning.levels) for binning in binnings]
    chosen = plan_pairs(
        excess_over_chance(distances, binnings, pairs, histograms.rows),
        levels,
        rows=histograms.rows,
        amount=float(third.amount),
        gaussian=spend.gaussian,
        limits=wanted.limits_for(len(listed)),
        interest=[column.interest for column in listed],
    )
    tables = measure_pairs(measurer, binnings, chosen, third)
    looks = wanted.looks_for(histograms.rows, spend)
    fitted, maps = fit_law(binnings, chosen, tables, histograms, looks=looks, prior=wanted.prior)
    bins = sample_bins(fitted, count, stream)
    turns = {
        place: lean(fitted, bins, place, _bins_in_order(column, maps[place]), stream)
        for place, column in enumerate(ordered)
        if column.ordered
    }
    rows = refine(bins, maps, histograms.values, stream, turns=turns)
    return Synthesis(listed, rows, fitted, chosen, [*released, *distances, *tables], histograms)


def measure_histograms(
    measurer: Measurer, columns: Sequence[Column], spend: Spend
) -> list[Measurement]:
    """Every column by itself; a column's share grows with its levels.

    Total noise is least when shares go like levels ** (2/3) for Gaussian noise
    and like levels ** (1/2) for Laplace noise.
    """
    parts = _divide_histograms(columns, spend)
    return measurer.measure(
        [
            ask_cells([place], [np.arange(column.size)], part)
            for place, (column, part) in enumerate(zip(columns, parts, strict=True))
        ]
    )


def _divide_histograms(columns: Sequence[Column], spend: Spend) -> list[Spend]:
    power = 2 / 3 if spend.gaussian else 1 / 2
    return spend.divide([column.interest ** (2 / 3) * column.size**power for column in columns])


def find_orders(columns: Sequence[Column], released: Sequence[Measurement]) -> tuple[Column, ...]:
    """The columns, also ordered where the released histogram shows that their list is in order."""
    return tuple(
        replace(column, ordered=True)
        if not column.ordered
        and looks_ordered(one.values[: column.size - column.null].astype(np.float64))
        else column
        for column, one in zip(columns, released, strict=True)
    )


def clean_histograms(columns: Sequence[Column], released: Sequence[Measurement]) -> Histograms:
    """Smoothed where ordered, brought to one common total, none negative."""
    noises = [deviation(one.query.noise) for one in released]
    totals = np.array([float(one.values.sum()) for one in released])
    spreads = np.array([one.values.size * s**2 for one, s in zip(released, noises, strict=True)])
    rows = max(float(np.average(totals, weights=1 / spreads)), 1.0)
    values = []
    for column, one, noise in zip(columns, released, noises, strict=True):
        counts = one.values.astype(np.float64)
        if column.ordered:
            end = column.size - 1 if column.null else column.size
            if end >= LEAST_LEVELS:
                counts[:end] = denoise(counts[:end], deviation=noise)
        values.append(simplex(counts, total=rows))
    return Histograms(values, noises, rows, 1 / float((1 / spreads).sum()))


def make_binnings(columns: Sequence[Column], histograms: Histograms, *, most: int) -> list[Binning]:
    """Nested bins for every column, at most so many."""
    return [
        make_binning(column, values, most=most)
        for column, values in zip(columns, histograms.values, strict=True)
    ]


def too_few(rows: float, spend: Spend) -> bool:
    """Whether so few ``rows`` leave little but the histograms at this price.

    ``spend`` is the price of all stages.

    From a declared number of rows before, from the released one afterwards;
    never from the data.

    >>> price = Spend.approximate(1, "1e-9")
    >>> too_few(1300, price), too_few(9000, price)
    (True, False)
    """
    return rows * _sharpness(spend) < _ROWS_A_CELL * _LEAST_BINS**2


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a synthetic table before it is drawn: what is asked, for how much.

    ``queries`` is how many tables or distances it measures, ``amount`` what they cost together;
    ``deviation`` is that of a noisy count, the mean over its tables, and None where the plan
    decides. ``name`` says which stage it is.
    """

    name: str
    queries: int
    amount: Fraction
    deviation: float | None


def outline_stages(
    columns: Sequence[Column], spend: Spend, *, settings: Settings | None = None
) -> list[Stage]:
    """The stages and their shares, from public knowledge alone; free.

    ``columns`` are those of the table, ``spend`` the price of all stages, ``settings`` how it is
    divided.

    >>> people = [Column("age", 90, ordered=True), Column("sex", 2), Column("city", 30)]
    >>> for stage in outline_stages(people, Spend.pure(1)):
    ...     print(stage.name, stage.queries, f"{float(stage.amount):.2f}")
    histograms 3 0.33
    distances 3 0.07
    pair tables 3 0.60
    """
    listed = check_columns(columns)
    pairs = len(listed) * (len(listed) - 1) // 2
    if not pairs:
        return [Stage("histograms", 1, spend.amount, 1 / spend.sharpness)]
    first, second, third = spend.divide((settings or Settings()).shares(spend.gaussian))
    histograms = _divide_histograms(listed, first)
    return [
        Stage(
            "histograms",
            len(listed),
            first.amount,
            float(np.mean([1 / part.sharpness for part in histograms])),
        ),
        Stage(
            "distances",
            pairs,
            second.amount,
            1 / second.divide(np.ones(pairs))[0].sharpness,
        ),
        Stage("pair tables", pairs, third.amount, None),
    ]


def measure_distances(
    measurer: Measurer,
    binnings: Sequence[Binning],
    pairs: Sequence[Pair],
    rows: float,
    spend: Spend,
) -> list[Measurement]:
    """How far each pair is from independence, one number each."""
    parts = spend.divide(np.ones(len(pairs)))
    return measurer.measure(
        [
            ask_distance(
                make_view(pair, [binnings[column].base for column in pair]),
                _independent(binnings, pair, rows),
                part,
            )
            for pair, part in zip(pairs, parts, strict=True)
        ]
    )


def excess_over_chance(
    distances: Sequence[Measurement],
    binnings: Sequence[Binning],
    pairs: Sequence[Pair],
    rows: float,
) -> dict[Pair, float]:
    """The part of each distance that independent columns would not show by chance."""
    strengths = {}
    for pair, one in zip(pairs, distances, strict=True):
        noisy = float(one.values[0]) / GRID
        a, b = (binnings[column].shares for column in pair)
        spread = _independent(binnings, pair, rows) * np.outer(1 - a, 1 - b)
        chance = float(np.sqrt(2 / math.pi * np.maximum(spread, 0)).sum())
        strengths[pair] = math.sqrt(max(noisy * abs(noisy) - chance**2, 0.0))
    return strengths


def measure_pairs(
    measurer: Measurer, binnings: Sequence[Binning], chosen: Mapping[Pair, Choice], spend: Spend
) -> list[Measurement]:
    """The planned tables, at once; nothing is asked when no pair is worth its noise."""
    if not chosen:
        return []
    parts = spend.divide([choice.weight for choice in chosen.values()])
    return measurer.measure(
        [
            ask_cells(
                pair,
                [
                    binnings[column].map_levels(count)
                    for column, count in zip(pair, choice.bins, strict=True)
                ],
                part,
            )
            for (pair, choice), part in zip(chosen.items(), parts, strict=True)
        ]
    )


def fit_law(
    binnings: Sequence[Binning],
    chosen: Mapping[Pair, Choice],
    tables: Sequence[Measurement],
    histograms: Histograms,
    *,
    looks: int,
    prior: float | None = None,
) -> tuple[Fitted, list[Integers]]:
    """The fitted law over each column's finest bins in use, and the maps from levels to them."""
    finest = finest_bins(chosen, [sorted(binning.levels) for binning in binnings])
    maps = [binning.map_levels(count) for binning, count in zip(binnings, finest, strict=True)]
    shares = [
        add_up(values, mapped, count) / histograms.rows
        for mapped, values, count in zip(maps, histograms.values, finest, strict=True)
    ]
    neighbours: list[set[int]] = [set() for _ in binnings]
    for a, b in chosen:
        neighbours[a].add(b)
        neighbours[b].add(a)
    tree = JunctionTree(finest, eliminate(neighbours, finest))
    targets = [
        Target(
            (place,),
            (np.arange(count),),
            shares[place] * histograms.rows,
            noise * math.sqrt(maps[place].size / count),
        )
        for place, (count, noise) in enumerate(zip(finest, histograms.deviations, strict=True))
    ]
    for (pair, choice), table in zip(chosen.items(), tables, strict=True):
        coarse = tuple(
            _between(binnings[column], finest[column], count)
            for column, count in zip(pair, choice.bins, strict=True)
        )
        targets.append(
            Target(pair, coarse, table.values.astype(np.float64), deviation(table.query.noise))
        )
    fitted = fit(tree, shares, targets, rows=histograms.rows, prior=prior, looks=looks)
    return fitted, maps


def _between(binning: Binning, fine: int, coarse: int) -> Integers:
    """The map from one grouping of a column to a coarser one; they are nested."""
    mapped = np.zeros(fine, dtype=np.int64)
    mapped[binning.levels[fine]] = binning.levels[coarse]
    return mapped


def _bins_in_order(column: Column, mapped: Integers) -> int:
    """How many of a column's bins are stretches of its order: all but a NULL's own."""
    count = int(mapped.max()) + 1
    alone = column.null and count > 1 and int((mapped == mapped[-1]).sum()) == 1
    return count - 1 if alone else count


def _independent(binnings: Sequence[Binning], pair: Pair, rows: float) -> Doubles:
    a, b = (binnings[column].shares for column in pair)
    return rows * np.outer(a, b)


def _sharpness(spend: Spend) -> float:
    """1 / the deviation of a count, were the spend divided over the usual tables as rho is."""
    return spend.sharpness if spend.gaussian else spend.sharpness / math.sqrt(_USUAL_TABLES)


def _measure_clarity(rows: float, spend: Spend) -> float:
    """One where noise begins to hide less than the model does; above it, less still."""
    return math.sqrt(rows * _sharpness(spend) / _HAZY)


def _whole_rows(histograms: Histograms) -> int:
    """How many rows are made; a released number, which a forger or the noise may make huge."""
    rows = max(round(histograms.rows), 1)
    check_size(rows, len(histograms.values))
    return rows


def check_size(rows: int, columns: int) -> None:
    """Refuse to make more rows than there is room for."""
    if rows * columns > MOST_VALUES:
        raise InvalidParameter(
            "P2",
            f"about {rows:,} rows of {columns} columns would be made; at most {MOST_VALUES:,} "
            "values are.",
            why="rows are made in memory, and whoever checks a release makes them again.",
            fix="release marginals, or fewer columns; with rows = ..., about how many there are, "
            "this is said before anything is paid.",
        )


def predict_rows_deviation(
    columns: Sequence[Column], spend: Spend, *, settings: Settings | None = None
) -> float:
    """How far off the number of rows will usually be, from public knowledge alone.

    ``spend`` is the price of all stages of a table of ``columns``, divided as ``settings`` say.

    >>> people = [Column("age", 90, ordered=True), Column("sex", 2)]
    >>> round(predict_rows_deviation(people, Spend.pure(1)), 1)
    33.0
    """
    listed = check_columns(columns)
    first = spend
    if len(listed) > 1:
        first = spend.divide((settings or Settings()).shares(spend.gaussian))[0]
    parts = _divide_histograms(listed, first)
    each = [column.size / part.sharpness**2 for column, part in zip(listed, parts, strict=True)]
    return math.sqrt(1 / sum(1 / one for one in each))
