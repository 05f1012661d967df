"""Tracing: published means of many columns tell who is among the people they were taken of.

Homer and others 2008; Dwork, Smith, Steinke, Ullman and Vadhan 2015.  The inner product of a
target's row with the published means, less the population's, is large for members: with d columns
and n members it tells them from others as soon as d is some multiple of n, and noise of less than
√d/n on the means does not stop it.  With ε its receiver operating curve stays under e^ε α + δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.meaning import Worlds
from discreet.charts import Picture, lines
from discreet.lab.dice import Dice, Real
from discreet.lab.outcome import Outcome
from discreet.mechanisms import Laplace

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Study:
    """People in a study, others from the same population, and what the study publishes."""

    members: Real
    others: Real
    rates: Real
    means: Real

    def scores(self) -> tuple[Scores, Scores]:
        """How much each row leans towards the published means: of members, of others."""
        lean = self.means - self.rates
        return (self.members - self.rates) @ lean, (self.others - self.rates) @ lean


def make_study(
    members: int,
    columns: int,
    *,
    epsilon: Fraction | None = None,
    name: str,
    looked_at: int | None = None,
) -> Study:
    """A study of so many ``members`` and binary ``columns``; with ``epsilon``, released privately.

    All counts together are one vector of L1 sensitivity ``columns`` (DMNS Proposition 1).
    Of all members' rows, or of some that are ``looked_at``, and of as many others.
    """
    dice = Dice(f"{name}/{members}/{columns}")
    rates = 0.1 + 0.8 * dice.uniform(columns)

    def draw(people: int) -> Real:
        return (dice.uniform(people * columns).reshape(people, columns) < rates).astype(float)

    some = members if looked_at is None else looked_at
    rows = draw(2 * some)
    counts = rows[:some].sum(axis=0).astype(np.int64)
    for start in range(some, members, some):  # a few at a time: their rows are not kept
        counts += draw(min(some, members - start)).sum(axis=0).astype(np.int64)
    if epsilon is not None:
        counts = np.asarray(Laplace(sensitivity=columns, epsilon=epsilon).release(counts))
    return Study(rows[:some], rows[some:], rates, counts / members)


def power_at(study: Study, false_positives: float) -> float:
    """The share of members above the score that so few others exceed."""
    inside, outside = study.scores()
    return float(np.mean(inside > np.quantile(outside, 1 - false_positives)))


def attack(
    members: int, columns: int, *, epsilon: Fraction | None, studies: int, alpha: float = 0.05
) -> Outcome:
    """Over several studies: how many members are told at a false-positive rate of ``alpha``."""
    right = 0
    for number in range(studies):
        study = make_study(members, columns, epsilon=epsilon, name=f"study {number}")
        right += round(power_at(study, alpha) * members)
    target = "exact means" if epsilon is None else f"discreet, ε = {epsilon}"
    bound = None if epsilon is None else float(Worlds(epsilon).power(str(alpha)))
    return Outcome(
        f"tracing by {columns:,} means of {members}", target, right, studies * members, alpha, bound
    )


def roc(members: int, columns: int, epsilon: Fraction | None) -> list[tuple[float, float]]:
    """The share of members against the share of others, over all thresholds."""
    study = make_study(members, columns, epsilon=epsilon, name="roc")
    return [(alpha, power_at(study, alpha)) for alpha in np.linspace(0.01, 0.99, 50).tolist()]


def draw_roc(members: int, columns: int, epsilon: Fraction) -> Picture:
    """Exact means, ours, and what ε allows."""
    allowed = [
        (alpha, float(Worlds(epsilon).power(str(round(alpha, 4)))))
        for alpha in np.linspace(0, 1, 51).tolist()
    ]
    return lines(
        [
            ("exact means", roc(members, columns, None)),
            ("discreet", roc(members, columns, epsilon)),
            (f"ε = {float(epsilon):g} allows", allowed),
        ],
        x="others who are taken for members",
        y="members who are found",
        title=f"Who was in the study? {columns:,} means of {members} people",
        percent=True,
    )


def expected_power(members: int, columns: int, alpha: float = 0.05) -> float:
    """What the normal limit says of exact means: Φ(c √(d/n) - z), with c a little below 1.

    Of somebody who is not a member the score has mean 0 and variance Σ v²/n, over the columns'
    v = p (1 - p); of a member its mean is Σ v/n.  The ratio of mean and deviation is c √(d/n) with
    c = E v / √(E v²), where rates p are even between 0.1 and 0.9.
    """
    normal = NormalDist()
    rates = np.linspace(0.1, 0.9, 2001)
    spread = rates * (1 - rates)
    lost = float(spread.mean() / np.sqrt((spread**2).mean()))
    return normal.cdf(lost * sqrt(columns / members) - normal.inv_cdf(1 - alpha))


def draw_power(members: list[int], columns: list[int], studies: int = 6) -> Picture:
    """Members found at one false alarm in twenty, against columns, for studies of some sizes."""
    named = []
    for n in members:
        found = [(d, attack(n, d, epsilon=None, studies=studies).success) for d in columns]
        named.append((f"{n} members", [(float(d), share) for d, share in found]))
        named.append((f"{n}: theory", [(float(d), expected_power(n, d)) for d in columns]))
    return lines(
        named,
        x="columns published",
        y="members found",
        x_scale="log",
        title="More columns, fewer people: who was there shows",
        subtitle="one in twenty others is taken for a member",
        percent=True,
    )


def run(epsilon: str = "1") -> tuple[list[Outcome], Picture]:
    """Exact means of more and more columns, then the same with ε."""
    spent = Fraction(epsilon)
    found = [attack(50, columns, epsilon=None, studies=8) for columns in (25, 250, 2_500)]
    found.append(attack(50, 2_500, epsilon=spent, studies=8))
    return found, draw_roc(50, 2_500, spent)


__all__ = [
    "Study",
    "attack",
    "draw_power",
    "draw_roc",
    "expected_power",
    "make_study",
    "power_at",
    "roc",
    "run",
]
