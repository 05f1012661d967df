"""Choosing one candidate by score: the exponential mechanism, and permute-and-flip."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from typing import Any

from flint import arb

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss, bounded_range_price
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, enclose, log_up
from discreet.exact.numbers import Exact, failure_share, float_up, positive, proportion, whole
from discreet.exact.records import dataclass
from discreet.exact.search import least_decimal, least_integer
from discreet.mechanisms.grid import Grid, require_names, write_call
from discreet.mechanisms.selection.scores import Scores, rate_per_step, read_scores, to_score_units
from discreet.noise import exponential_choice, permute_and_flip

_FINE = 2**26  # points per unit of a distance that is found by search


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ExponentialMechanism:
    """Choose a candidate with probability that grows exponentially with its score.

    Definition:
        P(M(x) = r) is proportional to exp(rate * u(x, r)), with rate =
        epsilon / (2 sensitivity), or epsilon / sensitivity if ``monotonic``.
        Real scores are put on the ``grid`` first, and the sensitivity is
        rounded up to whole steps of it.

    Guarantee:
        If every score changes by at most ``sensitivity`` between neighbours, M
        is ``epsilon``-differentially private.  ``monotonic`` promises more: adding
        a unit lowers no score (or raises none), under add/remove neighbours;
        counts are monotonic then, and are not when a unit is changed.  Either
        way the range of the privacy loss is at most epsilon, so that M is
        (epsilon**2 / 8)-zCDP.  Given ``rho`` instead, epsilon is sqrt(8 rho).

    Accuracy:
        Except with probability beta, the chosen score is within
        ln((k - m)(1 - beta) / (m beta)) / rate of the best, for k candidates
        of which m are best; attained when the others are all that much worse.
        It is less than DR Theorem 3.11's (ln(k / m) + ln(1 / beta)) / rate.

    Reference:
        DR Definition 3.4, Theorems 3.10 and 3.11, Corollary 3.12; McSherry and
        Talwar (2007); bounded range: Dong, Durfee and Rogers (2020), Cesar and
        Rogers (2021).  Proofs in docs/proofs/selection.md, Lemmas 1 to 3.

    Example:
        >>> choice = ExponentialMechanism(sensitivity=3, epsilon="1/2")
        >>> choice
        ExponentialMechanism(sensitivity=3, epsilon='1/2')
        >>> choice.release({"flu": 2041, "cold": 977, "gout": 12})
        'flu'
        >>> choice.loss.epsilon, choice.loss.rho
        (Fraction(1, 2), Fraction(1, 32))
        >>> round(choice.margin("0.05", candidates=40), 3)
        79.296
        >>> ExponentialMechanism.within(80, "0.95", candidates=40, sensitivity=3)
        ExponentialMechanism(sensitivity=3, epsilon='495601/1000000')
        >>> round(float(choice.law([14, 2, 5]).mass(2)), 6)
        0.256687
    """

    sensitivity: Fraction
    epsilon: Fraction
    monotonic: bool
    grid: Grid | None
    rate: Fraction = field(compare=False)
    """The exponent of one step of score."""

    def __init__(
        self,
        *,
        sensitivity: Exact,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        monotonic: bool = False,
        grid: Grid | None = None,
    ) -> None:
        price = bounded_range_price(epsilon, rho)
        _set_fields(self, sensitivity=sensitivity, price=price, monotonic=monotonic, grid=grid)

    def __repr__(self) -> str:
        return _write(self)

    @classmethod
    def within(
        cls,
        margin: Exact,
        confidence: Exact,
        *,
        candidates: int,
        sensitivity: Exact,
        monotonic: bool = False,
        grid: Grid | None = None,
    ) -> ExponentialMechanism:
        """The cheapest whose choice is within ``margin`` of the best, so often.

        ``confidence`` is how often, among so many ``candidates``; ``sensitivity``, ``monotonic``
        and ``grid`` are those of the mechanism.
        """
        price = _cheapest(
            margin,
            confidence,
            candidates=candidates,
            per_epsilon=rate_per_step(sensitivity, Fraction(1), monotonic=monotonic, grid=grid),
            grid=grid,
            distance=lambda beta: _logit_distance(beta, candidates, 1),
        )
        return cls(sensitivity=sensitivity, epsilon=price, monotonic=monotonic, grid=grid)

    @property
    def loss(self) -> Loss:
        """What one choice costs one unit: epsilon, and epsilon**2 / 8 in zCDP."""
        return Loss.exponential(self.epsilon)

    def release(self, scores: Scores) -> Any:
        """The chosen candidate: its index in a list or array, its name in a mapping.

        ``scores`` has one for each candidate.
        """
        votes = read_scores(scores, self.grid)
        return votes.name_of(exponential_choice(votes.steps, self.rate))

    def margin(
        self,
        beta: Exact | None = None,
        *,
        confidence: Exact | None = None,
        candidates: int,
        optimal: int = 1,
    ) -> float:
        """How much worse than the best the choice is at most, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta; of so many ``candidates`` at least
        ``optimal`` are best.
        """
        count, best = _check_counts(candidates, optimal)
        steps = _logit_distance(failure_share(beta, confidence), count, best) / self.rate
        return float_up(to_score_units(steps, self.grid))

    def theorem_margin(self, beta: Exact, *, candidates: int, optimal: int = 1) -> float:
        """The same by DR Theorem 3.11: (ln(k / m) + ln(1 / beta)) / rate; never the smaller.

        ``beta`` is the chance of a choice further off; k is ``candidates`` and m is ``optimal``:
        how many there are, and how many are best.
        """
        count, best = _check_counts(candidates, optimal)
        steps = log_up(Fraction(count, best) / proportion(beta, name="beta")) / self.rate
        return float_up(to_score_units(steps, self.grid))

    def law(self, scores: Scores) -> FiniteLaw:
        """The exact law of the choice by these ``scores``."""
        votes = read_scores(scores, self.grid)
        best, steps = int(votes.steps.max()), votes.steps.tolist()
        return FiniteLaw.proportional(
            votes.outcomes, lambda: [ball(self.rate * (one - best)).exp() for one in steps]
        )


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PermuteAndFlip:
    """Visit candidates in random order; take one with probability exp(rate (score - best)).

    Definition:
        The candidates are shuffled; each in turn is taken with probability
        exp(rate * (u(x, r) - max u(x, .))), and the first one taken is the
        answer.  The rate, the ``grid`` and ``monotonic`` are those of
        :class:`ExponentialMechanism`.

    Guarantee:
        ``epsilon``-differentially private, under the same conditions: one unit changes
        every score by at most ``sensitivity``.  The range of its privacy loss is
        *not* bounded by epsilon, so its zCDP loss is that of any epsilon-private
        mechanism and not epsilon**2 / 8.

    Accuracy:
        Never worse than the exponential mechanism, in expectation and in every
        tail, and up to twice as good.  With p = exp(-rate * m), the chance that
        the choice is more than m below the best of k is at most
        1 - (1 - (1 - p)**k) / (k p), attained; ``margin`` solves it for m.

    Reference:
        McKenna and Sheldon (2020); the same as report noisy max with one-sided
        exponential noise (Ding, Kifer, Sayed, Steinke, Wang, Xiao and Zhang
        2021), which is DR Theorem 3.13.  Proofs in docs/proofs/selection.md,
        Lemmas 4 and 5.

    Example:
        >>> choice = PermuteAndFlip(sensitivity=3, epsilon="1/2")
        >>> choice.release([12, 977, 2041])
        2
        >>> choice.loss.epsilon
        Fraction(1, 2)
        >>> round(choice.margin("0.05", candidates=40), 3)
        71.194
        >>> round(float(choice.law([14, 2, 5]).mass(2)), 6)
        0.207221
    """

    sensitivity: Fraction
    epsilon: Fraction
    monotonic: bool
    grid: Grid | None
    rate: Fraction = field(compare=False)
    """The exponent of one step of score."""

    def __init__(
        self,
        *,
        sensitivity: Exact,
        epsilon: Exact,
        monotonic: bool = False,
        grid: Grid | None = None,
    ) -> None:
        price = positive(epsilon, name="epsilon")
        _set_fields(self, sensitivity=sensitivity, price=price, monotonic=monotonic, grid=grid)

    def __repr__(self) -> str:
        return _write(self)

    @classmethod
    def within(
        cls,
        margin: Exact,
        confidence: Exact,
        *,
        candidates: int,
        sensitivity: Exact,
        monotonic: bool = False,
        grid: Grid | None = None,
    ) -> PermuteAndFlip:
        """The cheapest whose choice is within ``margin`` of the best, so often.

        ``confidence`` is how often, among so many ``candidates``; ``sensitivity``, ``monotonic``
        and ``grid`` are those of the mechanism.
        """
        price = _cheapest(
            margin,
            confidence,
            candidates=candidates,
            per_epsilon=rate_per_step(sensitivity, Fraction(1), monotonic=monotonic, grid=grid),
            grid=grid,
            distance=lambda beta: _flip_distance(beta, candidates),
        )
        return cls(sensitivity=sensitivity, epsilon=price, monotonic=monotonic, grid=grid)

    @property
    def loss(self) -> Loss:
        """What one choice costs one unit."""
        return Loss.pure(self.epsilon)

    def release(self, scores: Scores) -> Any:
        """The chosen candidate: its index in a list or array, its name in a mapping.

        ``scores`` has one for each candidate.
        """
        votes = read_scores(scores, self.grid)
        return votes.name_of(permute_and_flip(votes.steps, self.rate))

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, candidates: int
    ) -> float:
        """How much worse than the best the choice is at most, except with probability ``beta``.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``candidates`` is how many there
        are.
        """
        count, _ = _check_counts(candidates, 1)
        steps = _flip_distance(failure_share(beta, confidence), count) / self.rate
        return float_up(to_score_units(steps, self.grid))

    def law(self, scores: Scores) -> FiniteLaw:
        """The exact law of the choice by these ``scores``; cubic in the number of candidates."""
        votes = read_scores(scores, self.grid)
        best, steps = int(votes.steps.max()), votes.steps.tolist()
        return FiniteLaw(
            votes.outcomes,
            lambda: flip_masses([ball(self.rate * (one - best)).exp() for one in steps]),
        )


Selection = ExponentialMechanism | PermuteAndFlip


def flip_masses(heads: list[arb]) -> list[arb]:
    """The law of permute-and-flip from each candidate's probability of heads.

    Candidate i is the answer if its coin shows heads and it comes first among
    all heads: heads[i] * E[1 / (1 + number of other heads)].
    """
    masses = []
    for i, own in enumerate(heads):
        counts = [arb(1)]  # counts[h] = P(h of the others show heads)
        for other in heads[:i] + heads[i + 1 :]:
            tails = [(1 - other) * mass for mass in counts] + [arb(0)]
            for h, mass in enumerate(counts):
                tails[h + 1] += other * mass
            counts = tails
        masses.append(own * sum((mass / (h + 1) for h, mass in enumerate(counts)), arb(0)))
    return masses


def _set_fields(
    mechanism: Selection, *, sensitivity: Exact, price: Fraction, monotonic: bool, grid: Grid | None
) -> None:
    values = {
        "sensitivity": positive(sensitivity, name="sensitivity"),
        "epsilon": price,
        "monotonic": bool(monotonic),
        "grid": grid,
        "rate": rate_per_step(sensitivity, price, monotonic=monotonic, grid=grid),
    }
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)


def _write(mechanism: Selection) -> str:
    return write_call(
        mechanism,
        sensitivity=mechanism.sensitivity,
        epsilon=mechanism.epsilon,
        monotonic=mechanism.monotonic or None,
        grid=mechanism.grid,
    )


def _check_counts(candidates: int, optimal: int) -> tuple[int, int]:
    count = whole(candidates, name="candidates", least=1)
    best = whole(optimal, name="optimal", least=1)
    if best > count:
        raise InvalidParameter(
            "P4",
            f"{best} of {count} candidates cannot be best.",
            why="the best are some of the candidates.",
            fix="pass optimal of at most candidates.",
        )
    return count, best


def _logit_distance(beta: Fraction, candidates: int, optimal: int) -> Fraction:
    """The least y with (k - m) e**-y / (m + (k - m) e**-y) <= beta, rounded up."""
    odds = Fraction(candidates - optimal, optimal) * (1 - beta) / beta
    return Fraction(0) if odds <= 1 else log_up(odds)


def _flip_distance(beta: Fraction, candidates: int) -> Fraction:
    """A y with 1 - (1 - (1 - p)**k) / (k p) <= beta for p = e**-y: the least on a grid of 2**-26.

    Rounded up, and certified where it is found.
    """
    if candidates == 1:
        return Fraction(0)

    def holds(y: Fraction) -> bool:
        def good() -> arb:  # (1 - (1 - p)**k) / (k p), the chance of a best one
            p = ball(-y).exp()
            missed = (candidates * (-p).log1p()).exp()
            return (1 - missed) / (candidates * p)

        return y > 0 and enclose(good, bits=96)[0] >= 1 - beta

    enough = _logit_distance(beta, candidates, 1)  # never worse than the exponential mechanism
    found = least_integer(
        lambda n: holds(Fraction(n, _FINE)), fails_at=0, holds_at=math.ceil(enough * _FINE)
    )
    return min(enough, Fraction(found, _FINE))


def _cheapest(
    margin: Exact,
    confidence: Exact,
    *,
    candidates: int,
    per_epsilon: Fraction,
    grid: Grid | None,
    distance: Callable[[Fraction], Fraction],
) -> Fraction:
    """The least epsilon, on the ladder, at which ``margin`` is kept."""
    whole(candidates, name="candidates", least=2)
    beta = 1 - proportion(confidence, name="confidence")
    target = positive(margin, name="margin")
    steps = target if grid is None else target / grid.step - 1
    needed = distance(beta)
    if steps <= 0:
        raise InvalidParameter(
            "P4",
            f"a margin of {target} is within the rounding of the grid.",
            why="putting scores on the grid alone can cost as much.",
            fix="choose a finer grid or a larger margin.",
        )
    if needed == 0:
        raise InvalidParameter(
            "P4",
            "a choice at random already meets this confidence.",
            why="no epsilon is too small for it.",
            fix="ask for a higher confidence.",
        )
    return least_decimal(
        lambda price: needed / (per_epsilon * price) <= steps,
        near=float(needed / (per_epsilon * steps)),
    )
