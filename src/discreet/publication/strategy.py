"""The matrix mechanism: measure other questions than those asked, and combine.

A strategy A is a whole-numbered matrix of full column rank.  Its answers get
noise for its worst column; least squares turns them into an unbiased estimate of
every cell, and so of every question.  The planners look for the A that makes the
total error of a workload least: p-Identity for Laplace noise, the fixed point of
the convex optimum for Gaussian noise, plain cells when nothing is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact
from discreet.publication.fit import import_minimize
from discreet.publication.gram import Gram
from discreet.publication.measure import (
    Combinations,
    Doubles,
    Integers,
    Measurement,
    ask_combinations,
    column_norms,
    make_view,
)
from discreet.publication.spend import Spend
from discreet.publication.stream import PublicStream

STEPS = 2**16
"""The weights of a strategy are whole multiples of 1 / STEPS of its largest column."""

MOST_DENSE = 1536
"""More cells than this are too many for the dense optimum (its eigenvectors take minutes)."""

MOST_CELLS = 2**13
"""More cells than this are refused."""

_MOST_EXTRA = 64  # extra questions of a p-Identity strategy
_FIXED_POINT = 12
_CLOSE = 3e-3


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """What is measured instead: ``diagonal`` times each cell, and the lines of ``matrix``.

    Definition:
        M(x) = least-squares estimate of the cells x from A x + Z, where A has a
        diagonal block (unless ``diagonal`` is None) above the lines of
        ``matrix``, all whole numbers, and Z is exact discrete noise.

    Guarantee:
        One row moves A x by one column of A, so the noise is made for the
        largest column, in L1 for Laplace noise and in L2 for Gaussian noise
        (docs/proofs/publication.md, Lemma 3).

    Accuracy:
        Unbiased; the squared error of a workload with Gram matrix G, added over
        its questions, is variance * trace(G (A'A)^-1) (Lemma 7).

    Reference:
        Li, Miklau, Hay, McGregor and Rastogi (2015); McKenna, Miklau, Hay and
        Machanavajjhala (2018) for p-Identity; Denisov, McMahan, Rush, Smith and
        Thakurta (2022) for the fixed point.

    Example:
        >>> from discreet.publication.gram import Prefixes
        >>> spend = Spend.pure("1/2")
        >>> strategy = plan_strategy(Prefixes(64), spend)
        >>> rmse = expected_rmse(strategy, Prefixes(64), spend)
        >>> rmse < 0.9 * expected_rmse(plain_cells(64), Prefixes(64), spend)
        True
    """

    diagonal: Integers | None
    matrix: Integers

    @property
    def size(self) -> int:
        """How many cells the strategy is about."""
        return int(self.matrix.shape[1])


def plain_cells(size: int) -> Strategy:
    """Every cell by itself."""
    return Strategy(np.ones(size, dtype=np.int64), np.zeros((0, size), dtype=np.int64))


def plan_strategy(gram: Gram, spend: Spend) -> Strategy:
    """The best strategy known for a workload and a kind of noise.

    ``gram`` is of the workload's questions; the kind of noise is that of ``spend``.
    """
    if gram.size > MOST_CELLS:
        raise InvalidParameter(
            "P2",
            f"a workload about {gram.size} cells was asked for; at most {MOST_CELLS} are planned.",
            why="a strategy weighs every cell.",
            fix="group the cells first.",
        )
    candidates = [plain_cells(gram.size)]
    if gram.size > 1:
        dense = spend.gaussian and gram.size <= MOST_DENSE
        candidates.append(
            _find_optimum(gram) if dense else _find_extra(gram, gaussian=spend.gaussian)
        )
    return min(candidates, key=lambda one: expected_rmse(one, gram, spend))


def choose_kind(
    gram: Gram, *, epsilon: Exact, delta: Exact, rows_per_unit: int = 1
) -> tuple[Spend, Strategy]:
    """Laplace noise at ``epsilon``, or Gaussian at (epsilon, ``delta``): whichever errs less.

    ``gram`` is of the questions; ``rows_per_unit`` is how many rows of one unit count.
    """
    spends = [Spend.pure(epsilon, rows_per_unit=rows_per_unit)]
    if Fraction(str(delta)) > 0:
        spends.append(Spend.approximate(epsilon, delta, rows_per_unit=rows_per_unit))
    planned = [(spend, plan_strategy(gram, spend)) for spend in spends]
    return min(planned, key=lambda one: expected_rmse(one[1], gram, one[0]))


def expected_rmse(strategy: Strategy, gram: Gram, spend: Spend) -> float:
    """The root mean squared error of a question of the workload.

    ``gram`` is of the workload, ``strategy`` what is measured for it, at ``spend``.
    """
    total = float(np.sum(_inverse_times_gram(strategy, gram)))
    return _deviation(strategy, spend) * math.sqrt(max(total, 0.0) / gram.questions)


def ask_strategy(
    strategy: Strategy, columns: Sequence[int], maps: Sequence[Integers], spend: Spend
) -> Combinations:
    """The ``strategy`` as one query.

    It is about the cells of ``columns``, each put together by its one of ``maps``, and costs
    ``spend``.
    """
    view = make_view(columns, maps)
    return ask_combinations(view, strategy.matrix, spend, diagonal=strategy.diagonal)


def estimate_cells(strategy: Strategy, measurement: Measurement) -> Doubles:
    """The unbiased estimate of every cell from the strategy's noisy answers.

    ``measurement`` is the released one of ``strategy``.
    """
    noisy = measurement.values.astype(np.float64)
    if strategy.diagonal is None:
        return np.asarray(np.linalg.lstsq(strategy.matrix.astype(np.float64), noisy)[0])
    own, extra = noisy[: strategy.size], noisy[strategy.size :]
    squares = strategy.diagonal.astype(np.float64) ** 2
    lines = strategy.matrix.astype(np.float64)
    scaled = (strategy.diagonal * own + extra @ lines) / squares
    return np.asarray(
        scaled - np.linalg.solve(_core(strategy, squares), lines @ scaled) @ lines / squares
    )


# --- error ------------------------------------------------------------------------------------


def _deviation(strategy: Strategy, spend: Spend) -> float:
    """The standard deviation of one noisy answer, in the strategy's own steps."""
    l1, l2_squared = column_norms(strategy.matrix, strategy.diagonal)
    return (math.sqrt(l2_squared) if spend.gaussian else l1) / spend.sharpness


def _inverse_times_gram(strategy: Strategy, gram: Gram) -> Doubles:
    """The diagonal of (A'A)^-1 G, whose sum is the workload's total variance."""
    if strategy.diagonal is None:
        dense = strategy.matrix.astype(np.float64)
        return np.asarray(np.linalg.solve(dense.T @ dense, gram.dense()).diagonal())
    # Woodbury: (E + T'T)^-1 = E^-1 - E^-1 T' M T E^-1 with E the squared diagonal.
    squares = strategy.diagonal.astype(np.float64) ** 2
    lines = strategy.matrix / squares
    inner = np.asarray(np.linalg.solve(_core(strategy, squares), lines), dtype=np.float64)
    return np.asarray(gram.diagonal() / squares - (gram.multiply(inner) * lines).sum(axis=0))


def _core(strategy: Strategy, squares: Doubles) -> Doubles:
    lines = strategy.matrix.astype(np.float64)
    return np.asarray(np.eye(len(lines)) + (lines / squares) @ lines.T)


# --- p-Identity -------------------------------------------------------------------------------


def _find_extra(gram: Gram, *, gaussian: bool) -> Strategy:
    """A p-Identity strategy: every cell, and p questions that L-BFGS makes up.

    A = [I; T] / (column norms), T >= 0: any T gives a valid strategy, so the
    search is free of constraints and its result is always of full rank.
    """
    minimize = import_minimize()
    size = gram.size
    count = int(min(_MOST_EXTRA, max(1, size // 32) + 7, size))
    start = PublicStream("where a search for a strategy starts").uniform(count, size)
    found = minimize(
        lambda flat: _extra_error(flat.reshape(count, size), gram, gaussian),
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (count * size),
        options={"maxiter": 400, "maxfun": 800, "maxcor": 10},
    )
    return _round_extra(found.x.reshape(count, size), gaussian)


def _extra_error(lines: Doubles, gram: Gram, gaussian: bool) -> tuple[float, Doubles]:
    """trace(G (A'A)^-1) and its slope in the extra lines T.

    With D the column norms, (A'A)^-1 = D K D, K = I - T'MT, M = (I + TT')^-1.
    """
    count = len(lines)
    norms = np.sqrt(1 + np.square(lines).sum(axis=0)) if gaussian else 1 + lines.sum(axis=0)
    core = np.linalg.solve(np.eye(count) + lines @ lines.T, lines)  # MT
    crossed = gram.multiply(core * norms) * norms  # T K D G D
    diagonal = gram.diagonal()
    value = float((diagonal * norms**2).sum() - (crossed * lines).sum())
    by_norm = 2 * (diagonal * norms - (crossed * lines).sum(axis=0) / norms)
    slope = -2 * (crossed - (crossed @ lines.T) @ core)
    slope += by_norm * (lines / norms if gaussian else 1.0)
    scale = float(gram.questions)
    return value / scale, (slope / scale).ravel()


def _round_extra(lines: Doubles, gaussian: bool) -> Strategy:
    """The strategy on whole numbers: rounded down, so that no column grows."""
    norms = np.sqrt(1 + np.square(lines).sum(axis=0)) if gaussian else 1 + lines.sum(axis=0)
    matrix = np.floor(lines / norms * STEPS).astype(np.int64)
    matrix = matrix[matrix.any(axis=1)]
    diagonal = np.maximum(np.floor(STEPS / norms), 1).astype(np.int64)
    if not gaussian:
        diagonal += np.maximum(STEPS - diagonal - matrix.sum(axis=0), 0)  # what rounding left over
    return Strategy(diagonal, matrix)


# --- the Gaussian optimum ---------------------------------------------------------------------


def _find_optimum(gram: Gram) -> Strategy:
    """Minimise trace(G X^-1) over X = A'A with diagonal at most one, by its fixed point.

    At the optimum X U X = G for a diagonal U >= 0 with diag(X) = 1, so with
    v = diag(U): v = diag((U^1/2 G U^1/2)^1/2).  Iterating that equation converges.
    """
    dense = gram.dense()
    dense = dense + np.eye(gram.size) * (1e-12 * float(np.trace(dense)) / gram.size)
    weights = np.ones(gram.size)
    root = dense
    for _ in range(_FIXED_POINT):
        half = np.sqrt(weights)
        root = _square_root(half[:, None] * dense * half)
        updated = np.maximum(np.diagonal(root), 1e-300)
        if np.abs(updated / weights - 1).max() < _CLOSE:
            break
        weights = updated
    half = np.sqrt(weights)
    squared = root / half[:, None] / half
    matrix = _square_root(squared / np.diagonal(squared).max())
    return Strategy(None, np.rint(matrix * STEPS).astype(np.int64))


def _square_root(symmetric: Doubles) -> Doubles:
    values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
