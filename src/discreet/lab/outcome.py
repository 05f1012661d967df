"""What an attack found: how often it was right, how often anybody is, and what ε allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, sqrt
from typing import Any

from discreet.accounting.meaning import Worlds
from discreet.charts import Picture, bars

ALPHA = 1e-9
"""The chance that an attack on ours which does as well as it may is told to do better."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An attack on one target.

    ``attack`` and ``target`` are their names, and ``remark`` is what else is to be said.

    ``right`` of ``tried`` guesses were right; ``baseline`` is how often a guess without access is,
    ``bound`` how often the best attacker can be against what was promised (None: nothing was).
    """

    attack: str
    target: str
    right: int
    tried: int
    baseline: float
    bound: float | None = None
    remark: str = ""

    @property
    def success(self) -> float:
        """The share of guesses that were right."""
        return self.right / self.tried

    @property
    def spread(self) -> float:
        """The standard deviation of ``success`` if every guess is right with the bound's chance."""
        chance = self.baseline if self.bound is None else self.bound
        return sqrt(max(chance * (1 - chance), 0.25 / self.tried) / self.tried)

    @property
    def within(self) -> bool:
        """Whether it stayed below what was promised, but for chance.

        Chernoff: guesses that are each right with the bound's chance are right this often with
        probability at most e^(-n KL(success, bound)), and that must not fall below ``ALPHA``.

        >>> Outcome("a", "b", 70, 100, 0.5, 0.6).within, Outcome("a", "b", 95, 100, 0.5, 0.6).within
        (True, False)
        """
        if self.bound is None or self.success <= self.bound:
            return True
        return self.bound > 0 and self.tried * self._divergence(self.bound) <= log(1 / ALPHA)

    def _divergence(self, chance: float) -> float:
        """Kullback and Leibler's, of coins that fall as often as was seen from ``chance``."""
        seen, parts = self.success, ((self.success, chance), (1 - self.success, 1 - chance))
        if chance in (0.0, 1.0) and seen != chance:
            return inf
        return sum(share * log(share / other) for share, other in parts if share > 0)

    @property
    def picture(self) -> Picture:
        """How often it was right, beside a guess and what ε allows."""
        return compare([self], f"{self.attack} against {self.target}")

    def to_json(self) -> dict[str, Any]:
        """Everything, for a report."""
        return {
            "attack": self.attack,
            "target": self.target,
            "right": self.right,
            "tried": self.tried,
            "success": self.success,
            "baseline": self.baseline,
            "bound": self.bound,
            "remark": self.remark,
        }

    def __str__(self) -> str:
        promised = "" if self.bound is None else f"; ε allows {self.bound:.1%}"
        return (
            f"{self.attack} against {self.target}: right {self.success:.1%} of {self.tried:,}"
            f" (a guess: {self.baseline:.1%}{promised})"
        )


def best_guess(epsilon: Fraction, *, steps: int, delta: Fraction = Fraction(0)) -> float:
    """How often the best attacker guesses a fair coin about one unit, at ``epsilon`` and ``delta``.

    ``steps`` is 1 for whether somebody is in the data, 2 for what their data say.

    >>> round(best_guess(Fraction(1), steps=1), 4), round(best_guess(Fraction(0), steps=2), 4)
    (0.7311, 0.5)
    """
    return float(Worlds(epsilon, delta, steps).best_guess)


def most_right(prior: float, epsilon: Fraction | None) -> float | None:
    """How often anybody can be right who was right with ``prior`` before: odds times e^(2ε).

    ``epsilon`` is the ε; None where nothing is promised.

    >>> round(most_right(0.5, Fraction(1, 2)), 4), most_right(0.5, None)
    (0.7311, None)
    """
    if epsilon is None:
        return None
    return float(Worlds(epsilon, steps=2).posterior(str(round(prior, 9)))[1])


def compare(outcomes: Sequence[Outcome], title: str) -> Picture:
    """The success of each of ``outcomes`` beside what a guess would do, and what ε allows.

    ``title`` is that of the picture. Attacks are numbered, as in the tables of the report.
    """
    rows = []
    for number, one in enumerate(outcomes, 1):
        for series, share in (
            ("found", one.success),
            ("a guess", one.baseline),
            ("ε allows", one.bound),
        ):
            if share is not None:
                row = {"group": str(number), "series": series, "value": share, "none": False}
                rows.append({**row, "low": None, "high": None})
    words = {"x": "attack", "y": "share of guesses that are right", "title": title}
    return bars(rows, series="", series_order=("found", "a guess", "ε allows"), **words)


__all__ = ["ALPHA", "Outcome", "best_guess", "compare", "most_right"]
