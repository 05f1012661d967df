"""Reconstruction: enough answers that are too accurate give the data away.

Dinur and Nissim 2003 (DR Theorems 8.1 and 8.2; D06 section 1): if random subset sums of n secret
bits are answered with errors below some c√n, a linear program finds all but a few of the bits.
With errors well above √n it finds no more than guessing does.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.budget import Budget
from discreet.accounting.meaning import Worlds
from discreet.charts import Picture, lines
from discreet.lab import census
from discreet.lab.blocks import attack_blocks, attack_noisy_blocks
from discreet.lab.dice import Dice, Real, Whole
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Ours
from discreet.lab.town import SCHEMA, make_town

Sets = NDArray[np.float64]
"""One row for each question: who is in it."""

_PRIME = 10_007


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


def attack_members(people: int, questions: int, epsilon: str | None) -> tuple[Outcome, Outcome]:
    """The same about as many people who are not in the data: found no less often, up to e^ε.

    Of non-members nothing was answered, so that half of their bits are right.  What is right of a
    member is an event that is at most e^ε as likely as if that member had stayed away.
    """
    town = make_town(people, name="members")
    secret = Dice("members and others").flips(0.5, 2 * people)
    town = town.set_column(town.column_names.index("secret"), "secret", [secret[:people]])
    sets, texts = subsets(Dice("questions"), 2 * people, questions)
    if epsilon is None:
        heard, target = sets[:, :people] @ secret[:people], "exact answers"
    else:
        price, target = _share(Fraction(epsilon), questions), f"discreet, ε = {epsilon}"
        budget = Budget(epsilon=epsilon)
        with Ours({"people": town}, schema=SCHEMA, budget=budget, epsilon=price) as ours:
            heard = np.array([float(ours.ask(text)[0][0]) for text in texts])
    right = solve(sets, heard) == secret
    bound = None if epsilon is None else float(Worlds(Fraction(epsilon)).power("0.5"))
    half = None if epsilon is None else 0.5
    found = int(right[:people].sum()), int(right[people:].sum())
    return (
        Outcome("reconstruction, members", target, found[0], people, 0.5, bound),
        Outcome("reconstruction, non-members", target, found[1], people, 0.5, half),
    )


def attack_signs(people: int, error: float) -> Outcome:
    """As many signed sums as people, each within ``error`` √n (after Dwork and Yekhanin 2008).

    Signs are the rows of a Hadamard matrix H (``people`` is a power of two): HᵀH = nI, so the
    inverse moves the answers' error, at most ``error`` n in length, to at most ``error`` √n, and at
    most 4 ``error``² n bits can be rounded the wrong way, whatever the errors are.
    """
    signs = np.ones((1, 1))
    while len(signs) < people:
        signs = np.block([[signs, signs], [signs, -signs]])
    dice = Dice(f"signs/{people}/{error}")
    secret = dice.flips(0.5, people)
    noise = np.where(dice.flips(0.5, people) == 1, error, -error) * np.sqrt(people)
    found = (signs.T @ (signs @ secret + noise)) / people > 0.5
    right = int(np.sum(found == secret))
    return Outcome("signed sums", f"answers within ± {error:g} √n", right, people, 0.5)


def attack_all(people: int, error: int) -> Outcome:
    """Dinur and Nissim 2003 (DR Theorem 8.1): all subset sums, each within ``error``.

    Any bits that fit all answers are right but for 4 ``error`` of them.
    """
    dice = Dice(f"all sums/{people}/{error}")
    secret = dice.flips(0.5, people)
    every = (np.arange(2**people)[:, None] >> np.arange(people)) & 1
    heard = every @ secret + dice.below(2 * error + 1, len(every)) - error
    # Any candidate that fits will do: the first one.
    fits = next(bits for bits in every if np.all(np.abs(every @ bits - heard) <= error))
    right = int(np.sum(fits == secret))
    return Outcome("all subset sums", f"answers within ± {error}", right, people, 0.5)


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
    return Outcome("reconstruction", f"answers within ± {error:.3g}", right, people, 0.5)


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
        *attack_members(people // 2, questions // 2, epsilon),
        attack_signs(256, 0.25),
        census.attack_block(),
        census.attack_noisy_blocks(6, epsilon),
        attack_blocks(40, 8),
        attack_noisy_blocks(16, 8, epsilon),
    ]
    errors = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    curves = {n: accuracy_against_noise(n, errors) for n in (48, people)}
    return found, draw_curve(curves)


__all__ = [
    "accuracy_against_noise",
    "attack_all",
    "attack_curator",
    "attack_members",
    "attack_signs",
    "run",
    "solve",
    "subsets",
]
