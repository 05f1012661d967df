"""Multiplicative weights: a public law that is corrected where it is most wrong.

Two classics, for completeness and comparison: MWEM, which chooses the worst
question of a known list each round, and private multiplicative weights, which
answers questions as they come and pays only for those that surprise it.  Both
come with their accuracy theorem, from the noise that is really drawn.

Questions are lines of weights between 0 and 1 over the cells of a histogram, put
on a grid of 1/1024; the histogram's number of rows is declared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.loss import Loss
from discreet.errors import Halted, InvalidParameter
from discreet.exact.numbers import Exact, positive, proportion, whole
from discreet.exact.search import least_integer
from discreet.mechanisms.grid import set_fields
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.selection.exponential import PermuteAndFlip
from discreet.mechanisms.sparse.vector import NumericSparse
from discreet.publication.measure import GRID, Doubles, Integers


@dataclass(frozen=True, slots=True, init=False, eq=False)
class MWEM:
    """Publish a histogram that answers a list of linear questions well.

    ``questions`` has a line of weights for each, one from 0 to 1 for every cell; ``rows`` is the
    public number of rows.

    Definition:
        Start with the uniform law A.  For T = ``rounds`` rounds: choose a question on which A
        is far from the data by permute-and-flip, measure it with Laplace noise,
        and multiply each cell by exp(4 weight * (measured - A's answer) / n).
        The published histogram is the mean of the T laws, times n.

    Guarantee:
        Both draws of a round cost epsilon / 2T and every question moves by at
        most one with one row, so the loss is ``epsilon``.

    Accuracy:
        If the data have n rows, then except with probability beta no question
        is off by more than sqrt(n**2 ln(cells) / 2T + m**2) + s, with s the
        margin of the choice and m that of the measurement, at beta / 2T and
        beta / 2 (docs/proofs/publication.md, Lemma 13).

    Reference:
        Hardt, Ligett and McSherry (2012), Algorithm 1 and Theorem 2.2, with
        permute-and-flip in place of the exponential mechanism and the step that
        Hoeffding's lemma allows, eight times theirs.

    Example:
        >>> halves = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]])
        >>> mechanism = MWEM(halves, rows=900, rounds=6, epsilon=2)
        >>> mechanism.loss.epsilon
        Fraction(2, 1)
        >>> round(float(mechanism.release(np.array([400, 300, 150, 50])).sum()), 6)
        900.0
    """

    lines: Integers
    rows: int
    rounds: int
    epsilon: Fraction
    choice: PermuteAndFlip = field(repr=False)
    measurement: Laplace = field(repr=False)

    def __init__(self, questions: ArrayLike, *, rows: int, rounds: int, epsilon: Exact) -> None:
        lines = put_on_grid(questions)
        count = whole(rounds, name="rounds", least=1)
        price = positive(epsilon, name="epsilon")
        set_fields(self, lines=lines, rows=whole(rows, name="rows", least=1))
        set_fields(self, rounds=count, epsilon=price)
        set_fields(self, choice=PermuteAndFlip(sensitivity=GRID, epsilon=price / (2 * count)))
        set_fields(self, measurement=Laplace(sensitivity=GRID, epsilon=price / (2 * count)))

    @property
    def loss(self) -> Loss:
        """What all rounds cost one unit."""
        return self.rounds * (self.choice.loss + self.measurement.loss)

    def release(self, counts: ArrayLike) -> Doubles:
        """The published histogram, for the true one, ``counts``."""
        truth = self.lines @ _histogram(counts, self.lines.shape[1])
        law = np.full(self.lines.shape[1], 1 / self.lines.shape[1])
        total = np.zeros_like(law)
        for _ in range(self.rounds):
            guess = np.rint(self.lines @ law * self.rows).astype(np.int64)
            chosen = self.choice.release(np.abs(truth - guess))
            noisy = self.measurement.release(int(truth[chosen]))
            error = (noisy - int(guess[chosen])) / GRID
            law = correct_law(law, self.lines[chosen] / GRID, error, self.rows)
            total += law
        return total / self.rounds * self.rows

    def margin(self, beta: Exact) -> float:
        """No question is off by more, except with probability ``beta``, if ``rows`` is right."""
        allowed = proportion(beta, name="beta")
        chosen = self.choice.margin(allowed / (2 * self.rounds), candidates=len(self.lines)) / GRID
        noise = float(self.measurement.margin(allowed / 2, coordinates=self.rounds)) / GRID
        noise += 1 / GRID  # the law's own answer is rounded to the grid
        drift = self.rows**2 * math.log(max(self.lines.shape[1], 2)) / (2 * self.rounds)
        return math.sqrt(drift + noise**2) + chosen + 2 / GRID


@dataclass(frozen=True, slots=True, init=False, eq=False)
class PrivateMultiplicativeWeights:
    """Answer linear questions as they come, from a public law that learns from its mistakes.

    ``cells`` is how many cells there are, and ``rows`` the public number of rows that they count.

    Definition:
        Each question is answered by the law A, unless the sparse vector says
        that A is off by more than the threshold; then by a noisy value, and A
        is corrected as in MWEM.

    Guarantee:
        ``epsilon``-differentially private however many questions come, adaptively:
        the decisions and the values are those of one ``NumericSparse``.

    Accuracy:
        If the data have n rows, then except with probability ``beta`` all of
        ``questions`` answers are within ``margin``: four times the sparse
        vector's own margin m.  The number of surprises that the run allows is
        the least c with 6 c m(c)**2 >= n**2 ln(cells): there cannot be more
        (docs/proofs/publication.md, Lemma 14).

    Reference:
        Hardt and Rothblum (2010); DR Section 4.2, Theorems 4.10 to 4.12.

    Example:
        >>> weights = PrivateMultiplicativeWeights(
        ...     cells=16, rows=200_000, questions=50, epsilon=2, beta="0.05"
        ... )
        >>> run = weights.start([0, 90_000] + [0] * 12 + [60_000, 50_000])
        >>> abs(run.ask([1] * 8 + [0] * 8) - 90_000) <= weights.margin
        True
        >>> weights.loss.epsilon
        Fraction(2, 1)
    """

    cells: int
    rows: int
    questions: int
    beta: Fraction
    sparse: NumericSparse
    steps: int

    def __init__(
        self, *, cells: int, rows: int, questions: int, epsilon: Exact, beta: Exact
    ) -> None:
        set_fields(self, cells=whole(cells, name="cells", least=2))
        set_fields(self, rows=whole(rows, name="rows", least=1))
        set_fields(self, questions=whole(questions, name="questions", least=1))
        set_fields(self, beta=proportion(beta, name="beta"))
        price = positive(epsilon, name="epsilon")
        needed = (self.rows * GRID) ** 2 * math.log(self.cells) / 6

        def noise(cutoff: int) -> int:
            trial = NumericSparse(threshold=1, cutoff=cutoff, sensitivity=GRID, epsilon=price)
            return int(trial.margin(self.beta, queries=2 * self.questions)) + 1

        # More updates need more noise: the product grows with them.
        updates = least_integer(lambda most: most * noise(most) ** 2 >= needed, fails_at=0)
        steps = noise(updates)
        set_fields(self, steps=steps)
        set_fields(
            self,
            sparse=NumericSparse(
                threshold=3 * steps, cutoff=updates, sensitivity=GRID, epsilon=price
            ),
        )

    @property
    def loss(self) -> Loss:
        """What a run costs one unit."""
        return self.sparse.loss

    @property
    def margin(self) -> float:
        """No answer is off by more, except with probability beta, if ``rows`` is right."""
        return (4 * self.steps + 1) / GRID

    def start(self, counts: ArrayLike) -> WeightsRun:
        """A run on a true histogram, ``counts``; each run costs ``loss``."""
        return WeightsRun(self, _histogram(counts, self.cells))


class WeightsRun:
    """One run: holds the true histogram, so it is never shown or copied.

    ``counts`` is that histogram, ``mechanism`` what the run is of.
    """

    def __init__(self, mechanism: PrivateMultiplicativeWeights, counts: Integers) -> None:
        self.mechanism = mechanism
        self.asked = 0
        self.surprises = 0
        self._counts = counts
        self._run = mechanism.sparse.start()
        self._law = np.full(mechanism.cells, 1 / mechanism.cells)

    def __repr__(self) -> str:
        return f"WeightsRun({self.asked} of {self.mechanism.questions} questions)"

    def __reduce__(self) -> str:
        raise Halted(
            "H3",
            "a run of multiplicative weights cannot be copied.",
            why="two copies would decide with the same secret noise.",
            fix="keep one run.",
        )

    @property
    def histogram(self) -> Doubles:
        """The public law as it is now, times the declared rows; free to look at."""
        return self._law * self.mechanism.rows

    def ask(self, question: ArrayLike) -> float:
        """The answer to one ``question``: a line of weights between 0 and 1, one for each cell."""
        if self.asked >= self.mechanism.questions:
            raise Halted(
                "H1",
                f"the run has answered its {self.mechanism.questions} questions.",
                why="its accuracy was promised for that many.",
                fix="start another run with more questions.",
            )
        line = put_on_grid(np.atleast_2d(np.asarray(question, dtype=np.float64)))[0]
        exact = int(line @ self._counts)
        guess = round(float(line @ self._law) * self.mechanism.rows)
        self.asked += 1
        for sign in (1, -1):
            above = self._run.ask(sign * (exact - guess))
            if above is not None:
                self.surprises += 1
                error = sign * int(above)
                self._law = correct_law(self._law, line / GRID, error / GRID, self.mechanism.rows)
                return (guess + error) / GRID
        return guess / GRID


def put_on_grid(questions: ArrayLike) -> Integers:
    """Lines of weights as whole numbers of steps, refused unless between 0 and 1."""
    lines = np.atleast_2d(np.asarray(questions, dtype=np.float64))
    if not lines.size or not np.isfinite(lines).all() or lines.min() < 0 or lines.max() > 1:
        raise InvalidParameter(
            "P6",
            "a question is a line of weights between 0 and 1, one for each cell.",
            why="one row then moves its answer by at most one.",
            fix="divide the weights by the largest, and ask for minus a negative one.",
        )
    return np.rint(lines * GRID).astype(np.int64)


def _histogram(counts: ArrayLike, cells: int) -> Integers:
    whole_counts = np.asarray(counts, dtype=np.int64).reshape(-1)
    if whole_counts.size != cells:
        raise InvalidParameter(
            "P6",
            f"the histogram must have {cells} cells.",
            why="the questions weigh that many.",
            fix="count every declared cell, also the empty ones.",
        )
    return whole_counts


def correct_law(law: Doubles, weights: Doubles, error: float, rows: int) -> Doubles:
    """Multiply by exp(4 weight * error / n), error clipped to n either way, and normalise.

    >>> correct_law(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 30, 100).round(3).tolist()
    [0.769, 0.231]
    """
    step = 4 * max(-1.0, min(error / rows, 1.0))
    changed = law * np.exp(weights * step)
    return np.asarray(changed / changed.sum())
