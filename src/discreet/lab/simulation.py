"""Simulatability: what a release tells of you could be told without you, up to e^ε.

DMNS appendix A: a simulator knows every row but yours, puts any row in its place and runs the same
mechanism.  What an observer sees of the release is within e^ε of what the simulator makes, in
any event; under change-one neighbours in one step, and where a row is added or removed in two if
both sides say something of you (A-5(1) with its step counted).  Computed exactly, on every
small table, and attained.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.divergence import max_divergence, total_variation
from discreet.mechanisms import Laplace


@dataclass(frozen=True, slots=True)
class Simulated:
    """The worst over all tables of a few bits, all people and all rows that may stand in."""

    epsilon: Fraction
    compared: int
    loss: float
    """The largest |ln| of a ratio of probabilities, certified from above."""
    distance: float
    """The largest statistical distance."""


def simulate(people: int, epsilon: str) -> Simulated:
    """A sum of bits with Laplace noise, against its simulator, on every table of ``people`` bits.

    >>> found = simulate(4, "0.5")
    >>> found.compared, found.loss <= 0.5, found.loss > 0.4999
    (64, True, True)
    """
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    laws = [mechanism.law(total) for total in range(people + 1)]
    loss = distance = 0.0
    compared = 0
    for table in itertools.product((0, 1), repeat=people):
        for person in range(people):
            compared += 1
            without = sum(table) - table[person]
            real, made = laws[sum(table)], laws[without]  # a 0 stands in for whoever is left out
            loss = max(loss, float(max_divergence(real, made)[1]))
            distance = max(distance, float(total_variation(real, made)[1]))
    return Simulated(Fraction(epsilon), compared, loss, distance)


__all__ = ["Simulated", "simulate"]
