"""Simulatability: what a release tells of you could be told without you, up to e^ε.

DMNS appendix A: a simulator knows every row but yours, puts any row in its place and runs the same
mechanism.  What an observer sees of the release is within e^ε of what the simulator makes, in
any event; under change-one neighbours in one step, and where a row is added or removed in two if
both sides say something of you (A-5(1) with its step counted).  Computed exactly, on every
small table, and attained.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from discreet.accounting.divergence import max_divergence, total_variation
from discreet.charts import Picture, lines
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Target, begin_anew
from discreet.lab.town import secrets_of
from discreet.mechanisms import Laplace

Bits = tuple[int, ...]


class Mechanism(Protocol):
    """What has a law for each value that it is given."""

    def law(self, value: Any) -> Any:
        """The law of what is released."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The worst over all tables of a few bits, all people and all rows that may stand in."""

    compared: int
    loss: float
    """The largest |ln| of a ratio of probabilities, certified from above."""
    distance: float
    """The largest statistical distance."""


def simulate(mechanism: Mechanism, people: int, of: Callable[[Bits], Any] = sum) -> Simulated:
    """A mechanism on ``of`` a table, against its simulator, on every table of ``people`` bits.

    >>> found = simulate(Laplace(sensitivity=1, epsilon="0.5"), 4)
    >>> found.compared, found.loss <= 0.5, found.loss > 0.4999
    (64, True, True)
    """
    tables = list(itertools.product((0, 1), repeat=people))
    laws = {table: mechanism.law(of(table)) for table in tables}
    losses: dict[tuple[Any, Any], tuple[float, float]] = {}
    compared = 0
    for table in tables:
        for person in range(people):
            compared += 1
            without = (*table[:person], 0, *table[person + 1 :])  # a 0 stands in for the person
            pair = of(table), of(without)
            if pair not in losses:
                real, made = laws[table], laws[without]
                # Either may be the likelier one.
                worst = max(max_divergence(real, made)[1], max_divergence(made, real)[1])
                losses[pair] = float(worst), float(total_variation(real, made)[1])
    loss, distance = (max(found) for found in zip(*losses.values(), strict=True))
    return Simulated(compared, loss, distance)


def draw_loss(people: int, epsilons: tuple[str, ...] = ("0.1", "0.5", "1", "2", "3")) -> Picture:
    """What a simulator misses against ε: the loss, and the statistical distance."""
    found = {e: simulate(Laplace(sensitivity=1, epsilon=e), people) for e in epsilons}
    return lines(
        [
            ("largest loss", [(float(e), one.loss) for e, one in found.items()]),
            ("largest distance", [(float(e), one.distance) for e, one in found.items()]),
        ],
        x="ε",
        y="real against simulated",
        title=f"A sum of {people} bits and its simulator",
        subtitle="the loss is ε, to the last digit",
    )


# --- of anything with an ask -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Telling:
    """Whether an answer was given with a person's row, or by a simulator that never saw it.

    The simulator asks the same of everybody else.  Whoever tells them apart knows all secrets, that
    one included; only people who have the secret are tried, of the others there is nothing to tell.
    """

    questions: int = 1
    rounds: int = 200
    name: str = "real or simulated"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often the real one is told from the made one, of which a coin chooses."""
        secret = secrets_of(people)
        having = [person for person in range(len(secret)) if secret[person]]
        others = len(having) - 1
        right = 0
        for number in range(self.rounds):
            begin_anew(target)
            real = int(Dice(f"real/{number}").flips(0.5, 1)[0])
            person = having[number % len(having)]
            question = "SELECT COUNT(*) AS n FROM people WHERE secret = 1"
            made = f"{question} AND id <> {person}"
            try:
                heard = float(target.ask(question if real else made)[0][0])
            except Denied:
                heard = 0.0
            right += int(heard > others + 0.5) == real
        bound = None if epsilon is None else best_guess(epsilon, steps=1)
        return Outcome(self.name, target.name, right, self.rounds, 0.5, bound)


__all__ = ["Mechanism", "Simulated", "Telling", "draw_loss", "simulate"]
