"""Many marginals at once, unbiased, that agree with each other: residual planning.

A marginal is a sum of orthogonal parts, one for each subset C of its columns (the
interaction of C).  Every measured table A that contains C tells something of that
part; the best combination weighs them by their precision, and since the parts are
orthogonal, least squares over all tables is one weighted mean for each part.
The plan divides the spend so that the total error of what is asked is least.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, proportion
from discreet.publication.domain import Column, check_columns
from discreet.publication.measure import (
    MOST_CELLS,
    Doubles,
    Measurement,
    Measurer,
    ask_cells,
)
from discreet.publication.spend import Spend
from discreet.publication.tails import tail_bound

Subset = tuple[int, ...]

_LOOKS = 400
_NEGLIGIBLE = 1e-5  # of the spend: a table that would get less is not measured


@dataclass(frozen=True, slots=True, eq=False)
class MarginalPlan:
    """Which tables are measured for how much, and the variance of what is asked.

    ``sizes`` are the numbers of levels of all columns, ``asked`` and ``measured`` the marginals and
    tables, each by the places of its columns; ``spends`` has what each measured one costs.

    Definition:
        Each measured table A gets independent discrete noise in every cell; the
        part of a marginal that belongs to C is the mean of what every A that
        contains C says of it, weighed by precision.

    Guarantee:
        One row is in one cell of each table, so the loss is the sum of the
        tables' (docs/proofs/publication.md, Lemmas 2 and 5).

    Accuracy:
        Unbiased; every cell of a marginal has the same variance, ``variance(B)``
        (Lemma 8).  All marginals agree on all they share.

    Reference:
        Xiao, He, Zhang and Kifer (2023), ResidualPlanner, with discrete noise
        on whole tables, none of which is thrown away.

    Example:
        >>> grades = [Column("sex", 2), Column("grade", 5), Column("city", 9)]
        >>> plan = plan_marginals(grades, [(0, 1), (1, 2)], Spend.concentrated("1/8"))
        >>> plan.rmse() < 0.95 * plain_rmse(grades, [(0, 1), (1, 2)], Spend.concentrated("1/8"))
        True
    """

    sizes: tuple[int, ...]
    asked: tuple[Subset, ...]
    measured: tuple[Subset, ...]
    spends: tuple[Spend, ...]

    def precision(self, part: Subset) -> float:
        """1 / the variance with which a cell of the marginal of ``part`` is known, for its part."""
        return sum(
            spend.sharpness**2 / _cells(self.sizes, set(table) - set(part))
            for table, spend in zip(self.measured, self.spends, strict=True)
            if set(part) <= set(table)
        )

    def variance(self, asked: Subset) -> float:
        """The variance of every cell of a marginal that is ``asked``."""
        total = 0.0
        for part in list_subsets(asked):
            rest = _cells(self.sizes, set(asked) - set(part))
            inner = math.prod(1 - 1 / self.sizes[column] for column in part)
            if inner > 0:
                precise = self.precision(part)
                total += inner / (precise * rest**2) if precise else math.inf
        return total

    def rmse(self) -> float:
        """The root mean squared error over all cells that were asked for."""
        cells = [_cells(self.sizes, one) for one in self.asked]
        total = sum(n * self.variance(one) for n, one in zip(cells, self.asked, strict=True))
        return math.sqrt(total / sum(cells))


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """One released marginal: unbiased values and the variance that each of them has.

    ``columns`` are their places, ``values`` the table and ``variance`` that of each cell;
    ``gaussian`` says whether the noise is.
    """

    columns: Subset
    values: Doubles
    variance: float
    gaussian: bool

    def margin(self, beta: Exact) -> float:
        """Each value is within this of the truth, except with probability ``beta``.

        Gaussian noise: the normal quantile; sums of discrete Gaussians are
        normal up to their grid.  Laplace noise: Chernoff's bound for sums of
        Laplace variables, which holds whatever the weights (Lemma 9).
        """
        allowed = float(proportion(beta, name="beta"))
        if self.gaussian:
            return math.sqrt(self.variance) * NormalDist().inv_cdf(1 - allowed / 2)
        return tail_bound(self.variance, beta, gaussian=False)


def plan_marginals(
    columns: Sequence[Column], asked: Iterable[Iterable[int]], spend: Spend
) -> MarginalPlan:
    """Divide a ``spend`` over the tables that make the marginals asked for most precise.

    ``columns`` are those of the table, of which ``asked`` names the places.
    """
    listed = check_columns(columns)
    sizes = tuple(column.size for column in listed)
    wanted = tuple(dict.fromkeys(tuple(sorted(set(one))) for one in asked))
    _refuse_impossible(sizes, wanted)
    weights = [math.prod(listed[column].interest for column in one) for one in wanted]
    return plan_parts(listed, wanted, _total_need(sizes, wanted, weights), spend)


def plan_parts(
    columns: Sequence[Column], asked: Sequence[Subset], needs: Mapping[Subset, float], spend: Spend
) -> MarginalPlan:
    """Divide a spend over tables so that sum of need / precision over all parts is least."""
    sizes = tuple(column.size for column in columns)
    _refuse_impossible(sizes, asked)
    parts = sorted(needs, key=lambda part: (len(part), part))
    # How much a table tells of a part that it contains.
    tells = np.array(
        [
            [
                1 / _cells(sizes, set(table) - set(part)) if set(part) <= set(table) else 0.0
                for table in parts
            ]
            for part in parts
        ]
    )
    shares = _optimise(np.array([needs[part] for part in parts]), tells, gaussian=spend.gaussian)
    for place, part in enumerate(parts):  # whatever is needed is told by somebody
        if needs[part] > 0 and not (tells[place] * (shares > _NEGLIGIBLE)).any():
            shares[place] = 2 * _NEGLIGIBLE
    kept = np.flatnonzero(shares > _NEGLIGIBLE)
    measured = tuple(parts[place] for place in kept)
    return MarginalPlan(sizes, tuple(asked), measured, tuple(spend.divide(shares[kept])))


def release_marginals(
    measurer: Measurer, columns: Sequence[Column], plan: MarginalPlan
) -> tuple[dict[Subset, Marginal], list[Measurement]]:
    """Measure the ``plan``'s tables and combine them.

    ``measurer`` holds the rows, with these ``columns``, and draws the noise.
    """
    released = measurer.measure(
        [
            ask_cells(table, [np.arange(columns[column].size) for column in table], spend)
            for table, spend in zip(plan.measured, plan.spends, strict=True)
        ]
    )
    return combine_tables(plan, released), released


def combine_tables(plan: MarginalPlan, released: Sequence[Measurement]) -> dict[Subset, Marginal]:
    """The marginals asked for, from the measured tables alone.

    ``plan`` says which are asked for, ``released`` what was measured by it.
    """
    parts = {part for one in plan.asked for part in list_subsets(one)}
    found = {part: _estimate_part(plan, released, part) for part in parts}
    gaussian = plan.spends[0].gaussian
    marginals = {}
    for asked in plan.asked:
        shape = [plan.sizes[column] for column in asked]
        values = np.zeros(shape)
        for part in list_subsets(asked):
            rest = _cells(plan.sizes, set(asked) - set(part))
            wide = [plan.sizes[column] if column in part else 1 for column in asked]
            values += found[part].reshape(wide) / rest
        marginals[asked] = Marginal(asked, values, plan.variance(asked), gaussian)
    return marginals


def plain_rmse(columns: Sequence[Column], asked: Iterable[Iterable[int]], spend: Spend) -> float:
    """The error of measuring each marginal by itself with an equal share, for comparison."""
    count = len({tuple(sorted(set(one))) for one in asked})
    share = count if not spend.gaussian else math.sqrt(count)
    check_columns(columns)
    return share / spend.sharpness


def _estimate_part(plan: MarginalPlan, released: Sequence[Measurement], part: Subset) -> Doubles:
    """The interaction of ``part``: a weighted mean over the tables that contain it, centred."""
    total = np.zeros([plan.sizes[column] for column in part])
    for table, spend, one in zip(plan.measured, plan.spends, released, strict=True):
        if set(part) <= set(table):
            others = tuple(axis for axis, column in enumerate(table) if column not in part)
            weight = spend.sharpness**2 / _cells(plan.sizes, set(table) - set(part))
            total = total + weight * one.values.astype(np.float64).sum(axis=others)
    precise = plan.precision(part)
    if precise == 0:  # a part that no question needs was not measured
        return total
    total = total / precise
    for axis in range(total.ndim):  # what smaller parts say is not this one's to say
        total = total - total.mean(axis=axis, keepdims=True)
    return np.asarray(total)


def _total_need(
    sizes: Sequence[int],
    asked: Sequence[Subset],
    weights: Sequence[float],
) -> dict[Subset, float]:
    """How much the total squared error grows with the variance of each part."""
    needs: dict[Subset, float] = {}
    for one, weight in zip(asked, weights, strict=True):
        for part in list_subsets(one):
            rank = math.prod(sizes[column] - 1 for column in part)
            own = weight * rank / _cells(sizes, set(one) - set(part))
            needs[part] = needs.get(part, 0.0) + own
    return needs


def _optimise(needs: Doubles, tells: Doubles, *, gaussian: bool) -> Doubles:
    """Shares s that minimise sum needs / (tells @ precision(s)), by multiplicative steps.

    precision is s for Gaussian and s**2 for Laplace noise.  Each step multiplies a
    share by a power of its slope: exact at once when every part has its own
    table, and monotone for the Gaussian case (Yu 2010).
    """
    power = 1 / 2 if gaussian else 1 / 3
    best, least = np.full(len(needs), 1 / len(needs)), math.inf
    for start in (np.ones(len(needs)), np.maximum(needs, needs.max() * 1e-9) ** power):
        shares = start / start.sum()
        for _ in range(_LOOKS):
            precise = np.maximum(tells @ (shares if gaussian else shares**2), 1e-100)
            slope = tells.T @ (needs / precise**2) * (1 if gaussian else 2 * shares)
            shares = shares * slope**power
            shares = shares / shares.sum()
        error = float(
            (needs / np.maximum(tells @ (shares if gaussian else shares**2), 1e-100)).sum()
        )
        if error < least:
            best, least = shares, error
    return best


def list_subsets(columns: Subset) -> list[Subset]:
    """Every subset of the columns, small ones first."""
    return [
        part for count in range(len(columns) + 1) for part in itertools.combinations(columns, count)
    ]


def _cells(sizes: Sequence[int], columns: Iterable[int]) -> float:
    return math.prod(float(sizes[column]) for column in columns)


def _refuse_impossible(sizes: Sequence[int], asked: Sequence[Subset]) -> None:
    if not asked:
        raise InvalidParameter(
            "P5",
            "no marginal was asked for.",
            why="there is nothing to divide the spend over.",
            fix="list at least one set of columns, such as [(0, 1)].",
        )
    if any(not 0 <= column < len(sizes) for one in asked for column in one):
        raise InvalidParameter(
            "P6",
            "a marginal names a column that is not declared.",
            why="only declared columns have public levels.",
            fix=f"use columns 0 to {len(sizes) - 1}.",
        )
    most = max(_cells(sizes, one) for one in asked)
    if most > MOST_CELLS or max(map(len, asked)) > 8:
        raise InvalidParameter(
            "P2",
            f"a marginal of {most:.0f} cells or of more than 8 columns was asked for.",
            why="every cell gets noise, whether or not anybody is in it.",
            fix=f"ask for marginals of at most {MOST_CELLS} cells and 8 columns.",
        )
