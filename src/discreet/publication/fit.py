"""The law of maximum entropy that explains noisy tables, on a junction tree.

Among all laws p over the bins it minimises

    c n KL(p || product of one-way shares) + sum_j |n Q_j p - y_j|**2 / (2 s_j**2)

for measured tables y_j with noise s_j.  Its dual, n log Z(t) - t.y +
(c/2) sum_j s_j**2 |t_j|**2, is smooth and strongly convex; L-BFGS needs about
eighty looks at the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.publication.measure import Doubles, Integers
from discreet.publication.tree import JunctionTree, log_product

_LEAST_SHARE = 1e-12


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


def fit(
    tree: JunctionTree,
    shares: Sequence[Doubles],
    targets: Sequence[Target],
    *,
    rows: float,
    prior: float = 0.02,
    looks: int = 80,
) -> Fitted:
    """Minimise the dual; ``prior`` is c, the weight of the one-way product."""
    minimize = import_minimize()
    terms = _prepare(tree, targets)
    base = log_product(
        tree, {column: np.maximum(mass, _LEAST_SHARE) for column, mass in enumerate(shares)}
    )
    noisy = np.concatenate([term.target.values.ravel() for term in terms])
    penalty = np.concatenate(
        [np.full(term.stop - term.start, prior * term.target.deviation**2) for term in terms]
    )
    # The dual's curvature in a multiplier is about the expected count of its cell.
    even = np.concatenate(
        [np.full(term.stop - term.start, rows / (term.stop - term.start)) for term in terms]
    )
    scale = 1 / np.sqrt(np.maximum(noisy, 0) / 2 + even / 2 + penalty)
    seen = [0]

    def dual(scaled: Doubles) -> tuple[float, Doubles]:
        seen[0] += 1
        multipliers = scaled * scale
        beliefs, log_z = tree.infer(_add_terms(tree, base, terms, multipliers))
        expected = np.concatenate([_expect(tree, beliefs, term).ravel() for term in terms]) * rows
        value = rows * log_z - multipliers @ noisy + (penalty * multipliers) @ multipliers / 2
        slope = (expected - noisy + penalty * multipliers) * scale
        return value / rows, slope / rows

    found = minimize(
        dual,
        np.zeros(noisy.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": looks, "maxfun": 2 * looks, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9},
    )
    beliefs, _ = tree.infer(_add_terms(tree, base, terms, found.x * scale))
    return Fitted(tree, beliefs, seen[0], float(found.fun))


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
