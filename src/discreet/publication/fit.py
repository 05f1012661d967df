"""The law of maximum entropy that explains noisy tables, on a junction tree.

Among all laws p over the bins it minimises

    c n KL(p || product of one-way shares) + sum_j |n Q_j p - y_j|**2 / (2 s_j**2)

for measured tables y_j with noise s_j.  Its dual, n log Z(t) - t.y +
(c/2) sum_j s_j**2 |t_j|**2, is smooth and strongly convex; L-BFGS needs about
eighty looks at the tree.

How much independence weighs, c, is read off the noisy tables themselves: where the
evidence is greatest, 2 c n KL is the number of cells that the tables decide and not the
prior (MacKay's rule).  Columns that hang together strongly get a small c, and noise
that explains all there is to see a large one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.measure import Doubles, Integers
from discreet.publication.tree import JunctionTree, log_product

_LEAST_SHARE = 1e-12
_FIRST_PRIOR = 0.002  # light: a law that was shrunk to the product would not show what it lost
_MOST_PRIOR = 1.0
_MORE = 2.0  # times the weight of greatest evidence: total variation minds noise more than squares
_LEFT = 0.003  # of a usual count, left to the prior at least: with less the search does not end
_PULL = 0.3  # deviations by which it may move a count for that


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A noisy table over a few columns, each coarsened from the model's bins."""

    columns: tuple[int, ...]
    maps: tuple[Integers, ...]
    values: Doubles
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The fitted law: every clique's probabilities, and how the search ended."""

    tree: JunctionTree
    beliefs: list[Doubles]
    looks: int
    objective: float


@dataclass(frozen=True, slots=True, eq=False)
class _Term:
    """One target, prepared: its place in the vector of multipliers and in the tree."""

    target: Target
    start: int
    stop: int
    shape: tuple[int, ...]
    home: int
    sorts: tuple[tuple[Integers, Integers] | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Where a search has come to: its multipliers, and the law they make."""

    multipliers: Doubles
    beliefs: list[Doubles]
    expected: Doubles
    distance: float
    """KL of the law from the one-way product."""
    objective: float
    looks: int


def fit(
    tree: JunctionTree,
    shares: Sequence[Doubles],
    targets: Sequence[Target],
    *,
    rows: float,
    prior: float | None = None,
    looks: int = 80,
) -> Fitted:
    """Minimise the dual; ``prior`` is c, the weight of the one-way product.

    Unless it is given, half of the looks go to a first law, from which it is read.
    """
    problem = Problem(tree, shares, targets, rows)
    if prior is not None:
        # As releases of earlier plans were fitted: they are made again to the last row.
        found = problem.search(prior, problem.begin(), looks, memory=20)
        return Fitted(tree, found.beliefs, found.looks, found.objective)
    light = max(_FIRST_PRIOR, problem.lightest())
    first = problem.search(light, problem.begin(), looks // 2)
    found = problem.search(problem.weigh(first, light), first, looks)
    return Fitted(tree, found.beliefs, first.looks + found.looks, found.objective)


class Problem:
    """The dual of one set of tables, for any weight of the prior."""

    def __init__(
        self,
        tree: JunctionTree,
        shares: Sequence[Doubles],
        targets: Sequence[Target],
        rows: float,
    ) -> None:
        self._tree, self._rows = tree, rows
        self._terms = _prepare(tree, targets)
        self._base = log_product(
            tree, {column: np.maximum(mass, _LEAST_SHARE) for column, mass in enumerate(shares)}
        )
        self._noisy = self._join(lambda term: term.target.values.ravel())
        self._variance = self._join(lambda term: _fill(term, term.target.deviation**2))
        self._even = self._join(lambda term: _fill(term, rows / (term.stop - term.start)))
        # Of a table's cells those that its two histograms leave free; of a histogram's, none.
        self._free = self._join(lambda term: _fill(term, _free_share(term.shape)))

    def begin(self) -> _State:
        """The one-way product."""
        return self._look(np.zeros(self._noisy.size))

    def search(self, prior: float, start: _State, looks: int, *, memory: int = 40) -> _State:
        """The law of this prior, by at most so many steps from another."""
        minimize = import_minimize()
        penalty = prior * self._variance
        # The dual's curvature in a multiplier is about the expected count of its cell.
        likely = np.maximum(self._noisy, 0) / 2 + self._even / 2
        scale = 1 / np.sqrt(likely + penalty)
        seen = [0]

        def dual(scaled: Doubles) -> tuple[float, Doubles]:
            seen[0] += 1
            state = self._look(scaled * scale)
            held = penalty * state.multipliers
            value = state.objective + float(held @ state.multipliers) / 2
            slope = (state.expected - self._noisy + held) * scale
            return value / self._rows, slope / self._rows

        found = minimize(
            dual,
            start.multipliers / scale,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": looks, "maxfun": 2 * looks, "maxcor": memory}
            | {"ftol": 1e-12, "gtol": 1e-9},
        )
        return replace(self._look(found.x * scale), objective=float(found.fun), looks=seen[0])

    def weigh(self, state: _State, prior: float) -> float:
        """The prior's weight that the tables speak for, as the law of a lighter one shows it."""
        if not (self._free > 0).any():
            return prior
        decided = self._free * state.expected / (state.expected + prior * self._variance)
        evident = float(decided.sum()) / (2 * max(self._rows * state.distance, 1e-9))
        return min(max(_MORE * evident, self.lightest()), _MOST_PRIOR)

    def lightest(self) -> float:
        """The least weight with which a search still ends."""
        tables = self._free > 0
        if not tables.any():
            return _FIRST_PRIOR
        count, variance = (float(np.median(one[tables])) for one in (self._even, self._variance))
        return min(_LEFT * count / variance, _PULL / math.sqrt(variance))

    def _look(self, multipliers: Doubles) -> _State:
        tree, rows = self._tree, self._rows
        beliefs, log_z = tree.infer(_add_terms(tree, self._base, self._terms, multipliers))
        expected = rows * self._join(lambda term: _expect(tree, beliefs, term).ravel())
        distance = float(multipliers @ expected) / rows - log_z
        value = rows * log_z - float(multipliers @ self._noisy)
        return _State(multipliers, beliefs, expected, distance, value, 1)

    def _join(self, part: Callable[[_Term], Doubles]) -> Doubles:
        return np.concatenate([part(term) for term in self._terms])


def _fill(term: _Term, value: float) -> Doubles:
    return np.full(term.stop - term.start, value)


def _free_share(shape: tuple[int, ...]) -> float:
    """Of a table's numbers, how many are not said by its margins."""
    return math.prod((size - 1) / size for size in shape) if len(shape) > 1 else 0.0


def _prepare(tree: JunctionTree, targets: Sequence[Target]) -> list[_Term]:
    if not targets:
        raise InvalidParameter(
            "P5",
            "there is no measured table to fit.",
            why="a law that explains nothing is the product of its one-way shares.",
            fix="measure at least one table.",
        )
    terms, start = [], 0
    for target in targets:
        shape = tuple(int(one.max()) + 1 for one in target.maps)
        stop = start + int(np.prod(shape))
        sorts = tuple(_sort_bins(one) for one in target.maps)
        terms.append(_Term(target, start, stop, shape, tree.home(target.columns), sorts))
        start = stop
    return terms


def _sort_bins(mapped: Integers) -> tuple[Integers, Integers] | None:
    """How to add up bins along an axis: an order, and where each group starts."""
    count = int(mapped.max()) + 1
    if count == mapped.size and (mapped == np.arange(count)).all():
        return None
    order = np.argsort(mapped, kind="stable")
    return order, np.searchsorted(mapped[order], np.arange(count))


def _add_terms(
    tree: JunctionTree, base: Sequence[Doubles], terms: Sequence[_Term], multipliers: Doubles
) -> list[Doubles]:
    logs = [table.copy() for table in base]
    for term in terms:
        coarse = multipliers[term.start : term.stop].reshape(term.shape)
        fine = coarse[np.ix_(*term.target.maps)]
        logs[term.home] += tree.spread(fine, term.target.columns, term.home)
    return logs


def _expect(tree: JunctionTree, beliefs: Sequence[Doubles], term: _Term) -> Doubles:
    table = tree.marginal(beliefs, term.target.columns, term.home)
    for axis, sort in enumerate(term.sorts):
        if sort is not None:
            order, starts = sort
            table = np.add.reduceat(np.take(table, order, axis=axis), starts, axis=axis)
    return table


def import_minimize() -> Any:
    """scipy's minimiser, or a refusal that says how to install it."""
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise InvalidParameter(
            "P8",
            "fitting a model needs scipy, which is not installed.",
            why="the search for the law that explains the noisy tables is scipy's.",
            fix="pip install 'discreet[synthetic]'.",
        ) from None
    return minimize
