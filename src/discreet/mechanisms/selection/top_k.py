"""The k best candidates, in order: one after the other, or all at once."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb

from discreet.accounting.law import MOST_OUTCOMES, FiniteLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, sqrt_down
from discreet.exact.numbers import Exact, failure_share, positive, whole
from discreet.mechanisms.grid import Grid, Integers, require_names, saturating_sum, write_call
from discreet.mechanisms.laplace import margin_steps
from discreet.mechanisms.selection.exponential import (
    ExponentialMechanism,
    PermuteAndFlip,
    flip_masses,
)
from discreet.mechanisms.selection.noisy_max import ranking_masses
from discreet.mechanisms.selection.scores import (
    Scores,
    check_drawable,
    rate_per_step,
    read_scores,
    to_score_units,
)
from discreet.noise import discrete_laplace, exponential_choice, permute_and_flip

Method = Literal["peeling", "gumbel", "laplace"]
METHODS: tuple[Method, ...] = ("peeling", "gumbel", "laplace")


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class TopK:
    """Report the ``k`` candidates of highest score, best first.

    Scores are whole numbers, or are put on the public ``grid``.

    Definition:
        ``method`` "peeling": permute-and-flip k times at epsilon / k, each time
        without those already chosen.  "gumbel": add Gumbel noise once and report
        the k highest, which is the same as peeling with the exponential
        mechanism.  "laplace": add discrete Laplace noise of scale
        2 k sensitivity / epsilon (half of it if ``monotonic``) once and report
        the k highest; of equal ones the one listed first is higher.

    Guarantee:
        ``epsilon``-differentially private if every score changes by at most
        ``sensitivity``; ``monotonic`` as for :class:`ExponentialMechanism`.  In
        zCDP, k times the loss of one choice: k (epsilon / k)**2 / 8 for
        "gumbel", which takes ``rho`` instead of epsilon as well.

    Accuracy:
        Except with probability beta, every reported score is within ``margin``
        of the best one that was still unreported when it was chosen.

    Reference:
        DR 3.3 and 3.6 (iterating report noisy max); Durfee and Rogers (2019)
        for the one shot with Gumbel noise; Qiao, Su and Zhang (2021) and Ding,
        Wang, Zhang and Kifer (2019) for Laplace noise.  Proofs in
        docs/proofs/selection.md, Lemmas 10 and 11.

    Example:
        >>> best = TopK(k=2, sensitivity=3, epsilon="1/2")
        >>> best.release({"flu": 4041, "cold": 1977, "gout": 12})
        ['flu', 'cold']
        >>> TopK(k=2, sensitivity=3, rho="1/32", method="gumbel").loss.rho <= Fraction(1, 32)
        True
    """

    k: int
    sensitivity: Fraction
    epsilon: Fraction
    method: Method
    monotonic: bool
    grid: Grid | None
    rate: Fraction = field(compare=False)
    """The exponent of one step of score in one of the k choices."""

    def __init__(
        self,
        *,
        k: int,
        sensitivity: Exact,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        method: Method = "peeling",
        monotonic: bool = False,
        grid: Grid | None = None,
    ) -> None:
        count = whole(k, name="k", least=1)
        if method not in METHODS:
            raise _unknown_method(method)
        price = _price(count, epsilon, rho, method)
        rate = rate_per_step(sensitivity, price / count, monotonic=monotonic, grid=grid)
        if method == "laplace":
            check_drawable(1 / rate)
        values = {
            "k": count,
            "sensitivity": positive(sensitivity, name="sensitivity"),
            "epsilon": price,
            "method": method,
            "monotonic": bool(monotonic),
            "grid": grid,
            "rate": rate,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return write_call(
            self,
            k=self.k,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            method=self.method,
            monotonic=self.monotonic or None,
            grid=self.grid,
        )

    @property
    def loss(self) -> Loss:
        """What the whole list costs one unit."""
        if self.method == "laplace":
            return Loss.pure(self.epsilon)
        one = Loss.exponential if self.method == "gumbel" else Loss.pure
        return self.k * one(self.epsilon / self.k)

    def release(self, scores: Scores) -> list[Any]:
        """The k chosen candidates, best first: indices in a list or array, names in a mapping.

        ``scores`` has one for each candidate.
        """
        votes = read_scores(scores, self.grid)
        self._enough(len(votes.steps))
        return [votes.name_of(index) for index in self._choose(votes.steps)]

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, candidates: int
    ) -> int | Fraction | float:
        """How much worse than the best still available any choice is, except with ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``candidates`` is how many there
        are.
        """
        count = whole(candidates, name="candidates", least=1)
        self._enough(count)
        failure = failure_share(beta, confidence)
        if self.method == "laplace":
            # What is passed over fell by at most this much noise, and what is chosen rose by it.
            steps = 2 * margin_steps(1 / self.rate, failure, count)
            return steps if self.grid is None else to_score_units(Fraction(steps), self.grid)
        kind = ExponentialMechanism if self.method == "gumbel" else PermuteAndFlip
        one = kind(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon / self.k,
            monotonic=self.monotonic,
            grid=self.grid,
        )
        return one.margin(failure / self.k, candidates=count)

    def law(self, scores: Scores) -> FiniteLaw:
        """The exact law of what is reported for ``scores``; outcomes are tuples, best first."""
        votes = read_scores(scores, self.grid)
        steps: list[int] = votes.steps.tolist()
        self._enough(len(steps))
        if math.perm(len(steps), self.k) > MOST_OUTCOMES:
            raise InvalidParameter(
                "P4",
                f"there are more than {MOST_OUTCOMES} ways to rank {self.k} of {len(steps)}.",
                why="the exact law lists every one of them.",
                fix="look at the law for fewer candidates or a smaller k.",
            )
        orders = list(itertools.permutations(range(len(steps)), self.k))
        outcomes = tuple(tuple(votes.name_of(index) for index in order) for order in orders)
        if self.method == "laplace":
            return FiniteLaw(outcomes, lambda: ranking_masses(steps, 1 / self.rate, orders))
        return FiniteLaw(outcomes, lambda: [self._peel(steps, order) for order in orders])

    def _choose(self, steps: Integers) -> list[int]:
        if self.method == "laplace":
            noisy = saturating_sum(steps, discrete_laplace(1 / self.rate, len(steps)))
            # The complement turns the order round without overflow; stable, so ties keep theirs.
            return [int(index) for index in np.argsort(~noisy, kind="stable")[: self.k]]
        choose = exponential_choice if self.method == "gumbel" else permute_and_flip
        left, chosen = np.arange(len(steps)), []
        for _ in range(self.k):
            index = choose(steps[left], self.rate)
            chosen.append(int(left[index]))
            left = np.delete(left, index)
        return chosen

    def _peel(self, steps: list[int], order: tuple[int, ...]) -> arb:
        left, mass = list(range(len(steps))), arb(1)
        for index in order:
            best = max(steps[one] for one in left)
            weights = [ball(self.rate * (steps[one] - best)).exp() for one in left]
            if self.method == "gumbel":
                mass *= weights[left.index(index)] / sum(weights, arb(0))
            else:
                mass *= flip_masses(weights)[left.index(index)]
            left.remove(index)
        return mass

    def _enough(self, candidates: int) -> None:
        if candidates < self.k:
            raise InvalidParameter(
                "P5",
                f"cannot report {self.k} of {candidates} candidates.",
                why="each is reported once at most.",
                fix=f"pass at least {self.k} scores, or a smaller k.",
            )


def _price(k: int, epsilon: Exact | None, rho: Exact | None, method: Method) -> Fraction:
    if (epsilon is None) == (rho is None) or (rho is not None and method != "gumbel"):
        raise InvalidParameter(
            "P4",
            "state epsilon, or rho with method='gumbel'.",
            why="only choices of bounded range are priced in rho to their advantage.",
            fix="pass epsilon='0.5', or rho='1/32' and method='gumbel'.",
        )
    if epsilon is not None:
        return positive(epsilon, name="epsilon")
    # k choices at epsilon / k cost k (epsilon / k)**2 / 8; rounded down to cost no more.
    return sqrt_down(8 * k * positive(rho if rho is not None else 0, name="rho"))


def _unknown_method(method: object) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}.",
        why="each has its own proof and its own loss.",
        fix="pass method='peeling' for pure epsilon, or method='gumbel' for rho.",
    )
