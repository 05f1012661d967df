"""Attacks that need nothing but an ``ask``: ``attack.run(target, people)``, whatever the target is.

The target holds a table ``people`` with a public number ``id`` (from 0) and a ``secret`` of 0 or 1.
``people`` is that table, to judge the guesses by; the attack itself never looks at the secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import pyarrow as pa

from discreet.accounting.meaning import Worlds
from discreet.lab import differencing, reconstruction
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome
from discreet.lab.target import Denied, Ours, Target

Guess = Callable[[Target, int], int | None]
ALPHA = 0.05
"""Of how many others tracing takes for members."""


class Attack(Protocol):
    """Something that is tried on a target."""

    @property
    def name(self) -> str:
        """What it is, in a few words."""

    @property
    def questions(self) -> int:
        """How many questions it asks about whom it attacks: a budget is divided among them."""

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often it is right; ``epsilon`` is what the target promises in all, if anything."""


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A guess of one person's secret after the other; ours is met with a whole budget each time."""

    name: str
    guess: Guess
    questions: int
    tried: int = 40

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many secrets it guesses; a denied question is answered by the commoner value."""
        secret = _secrets(people)
        commoner = int(2 * secret.sum() > len(secret))
        right = denied = 0
        tried = min(self.tried, len(secret))
        for person in range(tried):
            if isinstance(target, Ours):
                target.renew()
            found = self.guess(target, person)
            denied += found is None
            right += (commoner if found is None else found) == secret[person]
        remark = f"{denied} of {tried} were denied" if denied else ""
        prior = _prior(secret)
        bound = most_right(prior, epsilon)
        return Outcome(self.name, target.name, right, tried, prior, bound, remark)


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """All secrets at once, from sums over random halves, by a linear program."""

    questions: int = 384
    name: str = "reconstruction"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many bits the program finds; questions that are denied end the asking."""
        secret = _secrets(people)
        sets, texts = reconstruction.subsets(Dice("questions"), len(secret), self.questions)
        heard = _ask_all(target, texts)
        found = reconstruction.solve(sets[: len(heard)], np.array(heard))
        right = int(np.sum(found == secret))
        prior = _prior(secret)
        return Outcome(
            self.name, target.name, right, len(secret), prior, most_right(prior, epsilon)
        )


@dataclass(frozen=True, slots=True)
class Tracing:
    """Who is in the table at all, from counts of what anybody knows of everybody.

    What is known of a person are bits of their number, in the table or not: those of members lean
    towards what is counted.  One in twenty others is taken for a member.
    """

    questions: int = 384
    name: str = "tracing"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many members are told; their number is taken to be known."""
        members = len(people)
        bits, texts = reconstruction.subsets(
            Dice("traits"), 2 * members, self.questions, of="COUNT(*)"
        )
        heard = np.array(_ask_all(target, texts))
        lean = heard / members - 0.5
        scores = (bits[: len(heard)] - 0.5).T @ lean
        least = np.quantile(scores[members:], 1 - ALPHA)
        right = int(np.sum(scores[:members] > least))
        bound = None if epsilon is None else float(Worlds(epsilon).power(str(ALPHA)))
        return Outcome(self.name, target.name, right, members, ALPHA, bound)


@dataclass(frozen=True, slots=True)
class Linkage:
    """The disease of somebody in a register: of the rows with their district, birth and sex.

    Needs those columns in the target's table, and ``disease``.
    """

    questions: int = 1
    tried: int = 60
    name: str = "linkage, one by one"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often the disease with the largest count is theirs."""
        rows = people.slice(0, self.tried).to_pylist()
        right = 0
        for person in rows:
            if isinstance(target, Ours):
                target.renew()
            counts = {
                disease: float(count)
                for disease, count in target.ask(
                    "SELECT disease, COUNT(*) AS n FROM people "  # noqa: S608 (numbers and a letter)
                    f"WHERE district = {person['district']} AND birth = {person['birth']} "
                    f"AND sex = '{person['sex']}' GROUP BY disease"
                )
            }
            right += max(counts, key=lambda disease: counts[disease]) == person["disease"]
        commonest = max(Counter(people["disease"].to_pylist()).values()) / len(people)
        bound = most_right(commonest, epsilon)
        return Outcome(self.name, target.name, right, len(rows), commonest, bound)


def most_right(prior: float, epsilon: Fraction | None) -> float | None:
    """How often anybody can be right who was right with ``prior`` before: odds times e^(2ε)."""
    if epsilon is None:
        return None
    return float(Worlds(epsilon, steps=2).posterior(str(round(prior, 9)))[1])


def _prior(secret: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """How often the commoner value is right, which takes no access."""
    share = float(secret.mean())
    return max(share, 1 - share)


def _secrets(people: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(people["secret"].to_pylist(), dtype=np.int64)


def _ask_all(target: Target, texts: list[str]) -> list[float]:
    heard: list[float] = []
    for text in texts:
        try:
            heard.append(float(target.ask(text)[0][0] or 0))  # the sum of nobody is NULL
        except Denied:
            break
    return heard


ATTACKS: dict[str, tuple[Attack, ...]] = {
    "difference": (
        OneByOne("a count of one", differencing.count_few, 1),
        OneByOne("differencing", differencing.difference, 2),
        OneByOne("a tracker", differencing.track, 4),
        OneByOne("averaging 400 answers", lambda t, p: differencing.average(t, p, 400), 1),
    ),
    "reconstruct": (Reconstruction(),),
    "trace": (Tracing(),),
}
"""The attacks of each chapter that need nothing but an ``ask``."""

__all__ = ["ATTACKS", "Attack", "Linkage", "OneByOne", "Reconstruction", "Tracing", "most_right"]
