"""Reconstruction: enough answers that are too accurate give the data away.

Dinur and Nissim 2003 (DR Theorems 8.1 and 8.2; D06 section 1): if random subset sums of n secret
bits are answered with errors below some c√n, a linear program finds all but a few of the bits.
With errors well above √n it finds no more than guessing does.  A second attack works on published
tables: blocks of people whose cross-tabulations are printed exactly are solved for the only rows
that fit, as a solver did for the census of 2010 (Garfinkel, Abowd and Martindale 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import Budget
from discreet.charts import Picture, lines
from discreet.lab.dice import Dice, Real, Whole
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Ours
from discreet.lab.town import SCHEMA, make_town

Sets = NDArray[np.float64]
"""One row for each question: who is in it."""

_PRIME = 10_007
_BLOCK_VALUES = (2, 3, 2)
"""Sex, age group and status of the people in a block, in the table that is published."""


def subsets(
    dice: Dice, people: int, questions: int, *, of: str = "SUM(secret)"
) -> tuple[Sets, list[str]]:
    """Random halves of the people, as SQL can name them: by a hash of the public number."""
    factors, shifts = dice.below(_PRIME - 1, questions) + 1, dice.below(_PRIME, questions)
    ids = np.arange(people)
    inside = (np.outer(factors, ids) + shifts[:, None]) % _PRIME < _PRIME // 2
    half = f"{_PRIME}) < {_PRIME // 2}"
    texts = [
        f"SELECT {of} AS n FROM people WHERE MOD(id * {a} + {b}, {half}"  # noqa: S608
        for a, b in zip(factors.tolist(), shifts.tolist(), strict=True)
    ]
    return inside.astype(float), texts


def solve(sets: Sets, answers: Real) -> Whole:
    """The bits that fit the answers best: least total error, by linear programming.

    Minimise the sum of |A x - y| over 0 <= x <= 1, then round: DR Theorem 8.2's program, with the
    error made part of the objective, so that no bound needs to be told.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack, identity

    questions, people = sets.shape
    matrix = csr_matrix(sets)
    slack = identity(questions, format="csr")
    cost = np.concatenate([np.zeros(people), np.ones(2 * questions)])
    limits = [(0, 1)] * people + [(0, None)] * (2 * questions)
    found = linprog(
        cost, A_eq=hstack([matrix, slack, -slack]), b_eq=answers, bounds=limits, method="highs"
    )
    return np.asarray(found.x[:people] > 0.5, dtype=np.int64)


def accuracy_against_noise(
    people: int, errors: list[float], *, per_person: int = 4, repeats: int = 3
) -> list[tuple[float, float]]:
    """For each size of error in units of √n: the share of bits that the program finds."""
    curve = []
    for error in errors:
        shares = []
        for repeat in range(repeats):
            dice = Dice(f"curve/{people}/{error}/{repeat}")
            secret = dice.flips(0.5, people)
            sets, _ = subsets(dice, people, per_person * people)
            noise = (2 * dice.uniform(len(sets)) - 1) * error * np.sqrt(people)
            shares.append(float(np.mean(solve(sets, sets @ secret + noise) == secret)))
        curve.append((error, sum(shares) / repeats))
    return curve


def attack_curator(people: int, questions: int, epsilon: str) -> Outcome:
    """The same questions to the curator, whose budget is divided among them evenly."""
    town = make_town(people, name="reconstruct")
    sets, texts = subsets(Dice("questions"), people, questions)
    price = _share(Fraction(epsilon), questions)
    heard: list[float] = []
    with Ours(
        {"people": town}, schema=SCHEMA, budget=Budget(epsilon=epsilon), epsilon=price
    ) as target:
        for text in texts:
            try:
                heard.append(float(target.ask(text)[0][0]))
            except Denied:
                break
    secret = np.array(town["secret"].to_pylist())
    found = solve(sets[: len(heard)], np.array(heard))
    right = int(np.sum(found == secret))
    bound = best_guess(Fraction(epsilon), steps=2)
    return Outcome("reconstruction", f"discreet, ε = {epsilon}", right, people, 0.5, bound)


def _share(epsilon: Fraction, questions: int) -> str:
    return str(epsilon / questions)


def attack_exact(people: int, questions: int, error: float) -> Outcome:
    """The same questions to a system that moves each answer by at most ``error``."""
    town = make_town(people, name="reconstruct")
    dice = Dice("questions")
    sets, _ = subsets(dice, people, questions)
    secret = np.array(town["secret"].to_pylist())
    noise = (2 * dice.uniform(questions) - 1) * error
    right = int(np.sum(solve(sets, sets @ secret + noise) == secret))
    return Outcome("reconstruction", f"answers within ± {error:g}", right, people, 0.5)


# --- from published tables ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """What is published of a block of people: all tables of two columns, exact."""

    people: int
    tables: dict[tuple[int, int], Whole]

    @classmethod
    def publish(cls, rows: Whole) -> Block:
        """The tables of ``rows``, one person a row."""
        columns = range(rows.shape[1])
        tables = {}
        for a in columns:
            for b in columns[a + 1 :]:
                table = np.zeros((_BLOCK_VALUES[a], _BLOCK_VALUES[b]), dtype=np.int64)
                np.add.at(table, (rows[:, a], rows[:, b]), 1)
                tables[a, b] = table
        return cls(len(rows), tables)


def fitting(block: Block) -> list[Whole]:
    """Up to two contingency tables that fit what was published, by integer programming.

    If there is only one, the block is reconstructed, and nobody in it has a secret left.
    """
    cells = list(np.ndindex(*_BLOCK_VALUES))
    rows, sums = [], []
    for (a, b), table in block.tables.items():
        for i, j in np.ndindex(*table.shape):
            rows.append([float(cell[a] == i and cell[b] == j) for cell in cells])
            sums.append(float(table[i, j]))
    first = _integer_point(np.array(rows), np.array(sums), np.zeros(len(cells)))
    # Another solution differs somewhere: push each cell up and down in turn.
    for place in range(len(cells)):
        for sign in (1.0, -1.0):
            direction = np.zeros(len(cells))
            direction[place] = sign
            other = _integer_point(np.array(rows), np.array(sums), direction)
            if not np.array_equal(other, first):
                return [first, other]
    return [first]


def _integer_point(matrix: Real, sums: Real, cost: Real) -> Whole:
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        cost,
        constraints=LinearConstraint(matrix, sums, sums),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, np.inf),
    )
    point: Whole = np.rint(found.x).astype(np.int64)
    return point


def attack_blocks(blocks: int, people: int) -> Outcome:
    """How many small blocks have only one table that fits what is published of them."""
    dice = Dice("blocks")
    solved = 0
    for _ in range(blocks):
        rows = np.stack([dice.below(k, people) for k in _BLOCK_VALUES], axis=1)
        solved += len(fitting(Block.publish(rows))) == 1
    name = f"tables of two columns, exact, blocks of {people}"
    return Outcome("solving published tables", name, solved, blocks, 0.0)


def draw_curve(curves: dict[int, list[tuple[float, float]]]) -> Picture:
    """The share of secrets found against the error of the answers: it falls within one step."""
    return lines(
        [(f"{people} people", curve) for people, curve in curves.items()],
        x="error of each answer, in units of √n",
        y="secret bits found",
        title="Reconstruction from subset sums",
        subtitle="below √n almost everything is found; far above it a coin does as well",
        percent=True,
    )


def run(people: int = 96, epsilon: str = "1") -> tuple[list[Outcome], Picture]:
    """The attack on accurate answers, on the curator, and on published tables; and the curve."""
    questions = 4 * people
    found = [
        attack_exact(people, questions, 0.0),
        attack_exact(people, questions, 0.1 * people**0.5),
        attack_exact(people, questions, 4.0 * people**0.5),
        attack_curator(people, questions, epsilon),
        attack_blocks(40, 8),
    ]
    errors = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    curves = {n: accuracy_against_noise(n, errors) for n in (48, people)}
    return found, draw_curve(curves)


__all__ = [
    "Block",
    "accuracy_against_noise",
    "attack_blocks",
    "attack_curator",
    "fitting",
    "run",
    "solve",
    "subsets",
]
