"""Choosing: which of several numbers is largest, at the sensitivity of one of them.

The candidates are questions, or the public groups of one question: a person may count in every one
of them, and moves each by a little (DR Example 3.4: the most common of conditions of which one has
many).  A choice costs by how far one unit moves *one* score, not all of them together.

Where one unit moves all scores together by little (groups of which everybody is in one), it is
better to add noise to all of them once and read off the largest, with their numbers (DR 3.3); the
choice with the smaller margin is made, which public knowledge decides.

Proofs: ``docs/proofs/selection.md``, and ``docs/proofs/runs.md`` for what only grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, log

from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact, positive, whole
from discreet.mechanisms import ExponentialMechanism, Laplace, TopK
from discreet.price.watch import Watched
from discreet.question.offer import Offer

COUNTS_SHARE = Fraction(1, 2)
"""What the numbers of those chosen cost, of the whole price, if they are told."""


@dataclass(frozen=True, slots=True)
class OneShot:
    """All scores with noise for all of them together; the k largest are read off, and are free."""

    k: int
    noise: Laplace
    monotonic: bool = False
    method: str = "one-shot"

    @property
    def sensitivity(self) -> Fraction:
        """How far one unit moves all scores together."""
        return self.noise.sensitivity

    @property
    def epsilon(self) -> Fraction:
        """What the choice costs, with all numbers."""
        return self.noise.epsilon

    @property
    def loss(self) -> Loss:
        """What it costs one unit."""
        return self.noise.loss

    def margin(self, beta: Exact, *, candidates: int) -> float:
        """How far below the best that was left a chosen score is: by two noises, at most."""
        return float(2 * self.noise.margin(beta, coordinates=candidates))

    def pick(self, noisy: Sequence[int]) -> list[int]:
        """The places of the k largest, the earlier one first where two are equal."""
        return sorted(range(len(noisy)), key=lambda place: -noisy[place])[: self.k]


@dataclass(frozen=True, slots=True)
class Contest:
    """Candidates with the question that scores each, and what is paid for the choice."""

    names: tuple[object, ...]
    watched: tuple[Watched, ...]
    """One question for each candidate; or one with a public group for each."""
    mechanism: TopK | OneShot
    unit: Fraction
    """The common step of all scores."""
    numbers: Laplace | None = None
    """The noise of the numbers of those chosen, if they are told."""

    @property
    def loss(self) -> Loss:
        """What the choice costs one unit, with the numbers that are told."""
        told = self.numbers
        if isinstance(self.mechanism, OneShot):  # the numbers were released to be compared
            return self.mechanism.loss
        return self.mechanism.loss + (
            self.mechanism.k * told.loss if told is not None else Loss(Fraction(0), Fraction(0))
        )

    def margin(self, confidence: Exact = "0.95") -> float:
        """How far below the best a chosen score is at most, computed from the law."""
        beta = 1 - Fraction(str(confidence))
        steps = self.mechanism.margin(beta, candidates=len(self.names))
        return float(steps) * float(self.unit)

    def theorem_margin(self, confidence: Exact = "0.95") -> float:
        """The same by DR Theorem 3.11 and Corollary 3.12, for one choice of the k."""
        if isinstance(self.mechanism, OneShot):  # DR Theorem 3.8, for both of two noises
            beta = 1 - Fraction(str(confidence))
            scale = float(self.mechanism.noise.scale)
            return 2 * scale * log(len(self.names) / float(beta)) * float(self.unit)
        one = ExponentialMechanism(
            sensitivity=self.mechanism.sensitivity,
            epsilon=self.mechanism.epsilon / self.mechanism.k,
            monotonic=self.mechanism.monotonic,
        )
        beta = (1 - Fraction(str(confidence))) / self.mechanism.k
        return one.theorem_margin(beta, candidates=len(self.names)) * float(self.unit)

    def number_margin(self, confidence: Exact = "0.95") -> float | None:
        """How far off each number that is told may be; None if none is."""
        if self.numbers is None:
            return None
        beta = 1 - Fraction(str(confidence))
        return float(self.numbers.margin(beta)) * float(self.unit)

    def factors(self) -> tuple[int, ...]:
        """How many common steps one step of each question is."""
        return tuple(int(one.grid / self.unit) for one in self.watched)

    def __str__(self) -> str:
        best = "the largest" if self.mechanism.k == 1 else f"the {self.mechanism.k} largest"
        told = ", with numbers" if self.numbers is not None else ""
        return f"CHOOSE {best} of {len(self.names)}{told}"


def price_contest(
    candidates: Mapping[str, Watched] | Watched,
    offer: Offer,
    *,
    k: int = 1,
    counts: bool = False,
    monotonic: bool,
    together: Fraction | None = None,
) -> Contest:
    """The choice that ``offer`` buys: with epsilon by permute-and-flip, one after the other, or in
    one shot, whichever is nearer to the best; with rho by Gumbel noise.

    ``monotonic``: adding a unit lowers no score, which was checked for each of them.  ``together``:
    how far one unit moves all of them, if that is known.
    """
    watched, names = _list_candidates(candidates)
    best = _count_best(k, len(names))
    unit = _common_step([one.grid for one in watched])
    moved = max(int(one.sensitivity * one.grid / unit) for one in watched)
    share = 1 - COUNTS_SHARE if counts else Fraction(1)
    if offer.epsilon is not None:
        mechanism = TopK(
            k=best, sensitivity=moved, epsilon=share * offer.epsilon, monotonic=monotonic
        )
        paid = (1 - share) * offer.epsilon / best
    elif offer.rho is not None and not counts:
        mechanism = TopK(
            k=best, sensitivity=moved, rho=offer.rho, method="gumbel", monotonic=monotonic
        )
        paid = Fraction(0)
    else:
        raise InvalidParameter(
            "P4",
            "a choice is paid with epsilon, or with rho if no numbers are told.",
            why="what it costs the people in the data is decided before they are looked at.",
            fix="pass epsilon='0.1'.",
        )
    noise = Laplace(sensitivity=moved, epsilon=positive(paid, name="epsilon")) if counts else None
    peeled = Contest(names, watched, mechanism, unit, noise)
    if together is None or offer.epsilon is None:
        return peeled
    once = Laplace(sensitivity=int(together / unit), epsilon=offer.epsilon)
    shot = Contest(names, watched, OneShot(best, once, monotonic), unit, once if counts else None)
    return min(peeled, shot, key=_rank)


def _list_candidates(
    candidates: Mapping[str, Watched] | Watched,
) -> tuple[tuple[Watched, ...], tuple[object, ...]]:
    """What is measured, and the names that are chosen among."""
    if isinstance(candidates, Watched):
        return (candidates,), _name(candidates)
    return tuple(candidates.values()), tuple(candidates)


def _count_best(k: int, candidates: int) -> int:
    """How many are chosen, of so many; a refusal if there is no choice."""
    if candidates < 2:
        raise InvalidParameter(
            "P5",
            "there is nothing to choose from.",
            why="a choice among fewer than two tells nothing, and would be paid for.",
            fix="give two questions or more, or group by a column with declared values.",
        )
    best = whole(k, name="k", least=1)
    if best > candidates:
        raise InvalidParameter(
            "P2",
            f"k is {best}, and there are {candidates} candidates.",
            why="each is chosen once.",
            fix=f"choose at most {candidates}.",
        )
    return best


def _rank(contest: Contest) -> float:
    """How far off a choice may be, with its numbers: less is better."""
    return contest.margin() + (contest.number_margin() or 0.0)


def _name(grouped: Watched) -> tuple[object, ...]:
    """The candidates of a question with groups: their values, alone if there is one key."""
    return tuple(group[0] if len(group) == 1 else group for group in grouped.groups)


def _common_step(grids: list[Fraction]) -> Fraction:
    """The largest step of which all are multiples.

    >>> _common_step([Fraction(1), Fraction(1, 1024), Fraction(3)])
    Fraction(1, 1024)
    """
    found = grids[0]
    for grid in grids[1:]:
        over = found.denominator * grid.denominator
        found = Fraction(gcd(int(found * over), int(grid * over)), over)
    return found


__all__ = ["Contest", "OneShot", "price_contest"]
