"""Does a sampler draw from the law it states?  With the chance of a false alarm, and the power.

Two tests share the allowed chance ``alpha``.  The empirical distribution may
stray from the law by Massart's bound (1990): P(sup |F_n - F| > t) <= 2
exp(-2 n t**2), for every n and F, discrete ones and any order of the outcomes
included.  And each outcome is counted: its true probability must lie within its
exact (Clopper-Pearson) interval, at a share of alpha each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.law import MOST_OUTCOMES, IntegerLaw, Law, ProductLaw
from discreet.accounting.ratio import as_finite
from discreet.audit.proportions import at_least, at_most
from discreet.audit.verdict import Verdict
from discreet.errors import InvalidParameter
from discreet.exact.balls import precision
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import proportion, whole

Sampler = Callable[..., Any]
_COUNTED = 64  # outcomes that are looked at one by one: the likeliest
_WINDOW_BITS = 48


@dataclass(frozen=True, slots=True)
class Fit:
    """How far draws stray from a law, and how far chance would let them.

    Of so many ``samples``, ``distance`` is how far their distribution strays, ``allowed`` how far
    chance lets it but for ``alpha``, and ``outcome`` names the one whose count is impossible, empty
    if there is none.
    """

    samples: int
    alpha: Fraction
    distance: float
    allowed: float
    outcome: str

    @property
    def verdict(self) -> Verdict:
        """Broken if the draws stray further than chance allows."""
        wrong = self.distance > self.allowed or self.outcome
        return Verdict.BROKEN if wrong else Verdict.CONSISTENT

    @property
    def alarm(self) -> bool:
        """Whether the draws do not have the law."""
        return self.verdict is Verdict.BROKEN

    def detects(self, power: Number = "0.99") -> float:
        """A sampler whose distribution is this far from the law is found with at least ``power``.

        >>> round(Fit(100_000, Fraction(1, 10**9), 0.002, 0.0104, "").detects("0.99"), 4)
        0.0155
        """
        missing = float(1 - proportion(power, name="power"))
        return self.allowed + _tolerance(self.samples, missing)

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        verb = "stray" if self.alarm else "keep to the law: they stray"
        named = (
            f"; the outcome {self.outcome} comes too often or too seldom" if self.outcome else ""
        )
        return (
            f"{self.samples} draws {verb} by {self.distance:.2g}, where chance allows "
            f"{self.allowed:.2g} but for {float(self.alpha):.1g}{named}."
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": "fit",
            "samples": self.samples,
            "alpha": float(self.alpha),
            "distance": self.distance,
            "allowed": self.allowed,
            "detects": self.detects(),
            "outcome": self.outcome,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Nothing to draw."""
        return ""


def fit(
    sampler: Sampler | Sequence[Any],
    law: Law,
    *,
    samples: int = 100_000,
    alpha: Number = "1e-9",
) -> Fit:
    """Whether draws have a ``law``; a correct sampler is accused with chance at most ``alpha``.

    So many ``samples`` are drawn, where draws are not passed.

    ``sampler(size)`` gives so many outcomes, each as the law writes them (steps of
    a grid as whole numbers), or the draws themselves are passed.  Of independent
    coordinates each is tested on its own, not how they depend on each other.

    >>> from discreet.accounting.law import DiscreteLaplaceLaw
    >>> from discreet.noise import discrete_laplace
    >>> fit(lambda n: discrete_laplace(3, n), DiscreteLaplaceLaw(center=0, scale=3)).alarm
    False
    >>> fit(lambda n: discrete_laplace(3, n), DiscreteLaplaceLaw(center=0, scale="3.3")).alarm
    True
    """
    size = whole(samples, name="samples", least=100)
    chance = proportion(alpha, name="alpha")
    draws = sampler(size) if callable(sampler) else sampler
    if not len(draws):
        raise InvalidParameter(
            "P2",
            "there are no draws.",
            why="a sampler that is never tried may do anything with a person's number.",
            fix="pass a function of a size, or at least a hundred draws.",
        )
    if isinstance(law, ProductLaw):
        return _worst(
            [
                fit(column, one, alpha=chance / len(law.laws))
                for one, column in zip(law.laws, _columns(draws, len(law.laws)), strict=True)
            ],
            chance,
        )
    masses = _masses(law)
    codes = _places(draws, list(masses))
    counts = np.bincount(codes[codes >= 0], minlength=len(masses))
    n = len(codes)
    strays = np.abs(np.cumsum(counts) / n - np.cumsum(list(masses.values())))
    impossible = _impossible(masses, counts, n, chance / 2, codes)
    allowed = _tolerance(n, float(chance / 2)) + 2.0**-40
    return Fit(n, chance, float(strays.max()), allowed, impossible)


def _places(draws: Any, outcomes: list[Any]) -> NDArray[np.int64]:
    """The index of each draw among the outcomes, in order; -1 for what is none of them."""
    whole_numbers = isinstance(draws, np.ndarray) and draws.dtype.kind in "iu"
    if whole_numbers and _consecutive(outcomes):
        inside = (draws >= outcomes[0]) & (draws <= outcomes[-1])
        return np.where(inside, draws - outcomes[0], -1)
    indices = {outcome: index for index, outcome in enumerate(outcomes)}
    return np.array([indices.get(outcome, -1) for outcome in _list(draws)])


def _consecutive(outcomes: list[Any]) -> bool:
    plain = all(type(outcome) is int for outcome in outcomes)
    return plain and outcomes == list(range(outcomes[0], outcomes[0] + len(outcomes)))


def _tolerance(n: int, alpha: float) -> float:
    return math.sqrt(math.log(2 / alpha) / (2 * n))


def _worst(fits: Sequence[Fit], chance: Fraction) -> Fit:
    worst = max(fits, key=lambda one: (one.alarm, one.distance / one.allowed))
    return Fit(worst.samples, chance, worst.distance, worst.allowed, worst.outcome)


def _list(draws: Any) -> list[Hashable]:
    found = draws.tolist() if isinstance(draws, np.ndarray) else list(draws)
    return [tuple(one) if isinstance(one, list) else one for one in found]


def _columns(draws: Any, width: int) -> list[list[Any]]:
    rows = _list(draws)
    if any(not isinstance(row, tuple) or len(row) != width for row in rows[:100]):
        raise InvalidParameter(
            "P4",
            f"the law has {width} coordinates and the draws do not.",
            why="outcomes of another kind cannot have this law.",
            fix="draw tuples, or an array with one column for each coordinate.",
        )
    return [[row[i] for row in rows] for i in range(width)]  # type: ignore[index]


def _masses(law: Law) -> dict[Hashable, float]:
    """Every outcome that matters and its probability."""
    with precision(128):
        if not isinstance(law, IntegerLaw):
            finite = as_finite(law)
            return dict(
                zip(finite.outcomes, (float(m.mid()) for m in finite.all_masses()), strict=True)
            )
        low, high = law.window(_WINDOW_BITS)
        if high - low >= MOST_OUTCOMES:
            raise InvalidParameter(
                "P2",
                f"{high - low + 1} outcomes would have to be listed; the most is {MOST_OUTCOMES}.",
                why="a law that is compared in part is not compared.",
                fix="fit the law at a smaller scale.",
            )
        return {z: float(law.mass(z).mid()) for z in range(low, high + 1)}


def _impossible(
    masses: dict[Hashable, float], counts: Any, n: int, chance: Fraction, codes: Any
) -> str:
    """An outcome whose count excludes its probability, or that cannot happen at all."""
    outside = int((codes < 0).sum())
    looked = np.argsort(-np.array(list(masses.values())), kind="stable")[:_COUNTED]
    share = chance / (2 * (len(looked) + 1))
    listed = sum(masses.values())
    checks = [("outside the law", outside, max(0.0, 1 - listed) + 2.0**-40)]
    names = list(masses)
    checks += [(str(names[i]), int(counts[i]), masses[names[i]]) for i in looked]
    for name, count, mass in checks:
        # A quick look in doubles first: only a count that is far off is worth an exact bound.
        spread = 4 * math.sqrt(n * mass * max(1 - mass, 0)) + 10
        if abs(count - n * mass) < spread:
            continue
        low, high = at_least(count, n, share), at_most(count, n, share)
        if not float(low) - 2.0**-40 <= mass <= float(high) + 2.0**-40:
            return name
    return ""


__all__ = ["Fit", "fit"]
