"""Attacks that need nothing but an ``ask``: ``attack.run(target, people)``, whatever the target is.

The target holds a table ``people`` with a public number ``id`` (from 0) and a ``secret`` of 0 or 1
(linkage and parity need more, and say what).  ``people`` is that table, to judge the guesses by: no
guess depends on a secret that the attack is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from discreet.accounting.meaning import Worlds
from discreet.lab import differencing, reconstruction
from discreet.lab.auditing import Auditing, Denials
from discreet.lab.dalenius import Unlocking
from discreet.lab.dice import Dice
from discreet.lab.distance import RandomRow, Taking
from discreet.lab.floats import LastBits, NumPy, Rounded, tell_by_precision
from discreet.lab.outcome import Outcome, most_right
from discreet.lab.separations import Parity
from discreet.lab.simulation import Telling
from discreet.lab.target import (
    Denied,
    Jittering,
    Open,
    Silent,
    Suppressing,
    Target,
    begin_anew,
    make_silent,
)
from discreet.lab.town import guess_prior, secrets_of

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
        """How often it is right about ``people`` when it asks ``target``.

        ``epsilon`` is what the target promises in all, if anything.
        """


@dataclass(frozen=True, slots=True)
class OneByOne:
    """A guess of one person's secret after the other; ours is met with a whole budget each time.

    ``guess`` asks a target about a person, ``questions`` times; so many people are ``tried``.
    ``name`` is what the attack is called.
    """

    name: str
    guess: Guess
    questions: int
    tried: int = 40

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many secrets it guesses; a denied question is answered by the commoner value.

        Of ``people``, behind ``target``, which promises ``epsilon`` in all, if anything.
        """
        secret = secrets_of(people)
        commoner = int(2 * secret.sum() > len(secret))
        right = denied = 0
        tried = min(self.tried, len(secret))
        for person in range(tried):
            begin_anew(target)
            found = self.guess(target, person)
            denied += found is None
            right += int((commoner if found is None else found) == secret[person])
        remark = f"{denied} of {tried} were denied" if denied else ""
        prior = guess_prior(people)
        bound = most_right(prior, epsilon)
        return Outcome(self.name, target.name, right, tried, prior, bound, remark)


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """All secrets at once, from sums over random halves, by a linear program.

    So many ``questions`` are asked; ``name`` is what the attack is called.
    """

    questions: int = 384
    name: str = "reconstruction"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many bits the program finds; questions that are denied end the asking.

        Of ``people``, behind ``target``, which promises ``epsilon`` in all, if anything.
        """
        secret = secrets_of(people)
        sets, texts = reconstruction.subsets(Dice("questions"), len(secret), self.questions)
        heard = _ask_all(target, texts)
        found = reconstruction.solve(sets[: len(heard)], np.array(heard))
        right = int(np.sum(found == secret))
        prior = guess_prior(people)
        return Outcome(
            self.name, target.name, right, len(secret), prior, most_right(prior, epsilon)
        )


@dataclass(frozen=True, slots=True)
class Tracing:
    """Who is in the table at all, from counts of what anybody knows of everybody.

    So many ``questions`` are asked; ``name`` is what the attack is called.

    What is known of a person are bits of their number, in the table or not: those of members lean
    towards what is counted.  One in twenty others is taken for a member.
    """

    questions: int = 384
    name: str = "tracing"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many members are told; their number is taken to be known.

        Of ``people``, behind ``target``, which promises ``epsilon`` in all, if anything.
        """
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
    """What is secret of somebody in a register: of the rows that have what it says of them.

    So many people are ``tried``, with ``questions`` about each; ``name`` is what the attack is
    called.

    ``known`` are the columns that the register has, too, and ``sought`` the one that it has not.
    """

    known: tuple[str, ...] = ("district", "birth", "sex")
    sought: str = "disease"
    questions: int = 1
    tried: int = 60
    name: str = "linkage, one by one"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often the value with the largest count is theirs.

        Of ``people``, behind ``target``, which promises ``epsilon`` in all, if anything.
        """
        rows = people.slice(0, self.tried).to_pylist()
        ((common, most),) = Counter(people[self.sought].to_pylist()).most_common(1)
        commonest = most / len(people)
        right = 0
        for person in rows:
            begin_anew(target)
            theirs = " AND ".join(f"{name} = {_literal(person[name])}" for name in self.known)
            question = (
                f"SELECT {self.sought}, COUNT(*) AS n FROM people "  # noqa: S608 (names of ours)
                f"WHERE {theirs} GROUP BY {self.sought}"
            )
            try:
                counts = {value: float(count) for value, count in target.ask(question)}
            except Denied:
                counts = {common: 1.0}
            right += max(counts, key=lambda value: counts[value]) == person[self.sought]
        bound = most_right(commonest, epsilon)
        return Outcome(self.name, target.name, right, len(rows), commonest, bound)


def _literal(value: float | str) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


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
    "link": (Linkage(),),
    "audit": (Denials(),),
    "reconstruct": (Reconstruction(),),
    "trace": (Tracing(),),
    "floats": (
        LastBits(scale=1),
        LastBits(scale=1, tell=tell_by_precision, name="certain by too fine a double"),
    ),
    "dalenius": (Unlocking(),),
    "separate": (Parity(),),
    "distance": (Taking(),),
    "simulate": (Telling(),),
}
"""The attacks of each chapter, on anything with an ``ask``."""

Make = Callable[[dict[str, pa.Table]], Open | Silent]
"""What opens a target on some tables."""


def _jitter(tables: dict[str, pa.Table]) -> Open:
    return Jittering(tables, scale=4, dice=Dice("jitter"))


TARGETS: dict[str, tuple[Make, ...]] = {
    "a count of one": (Open, Suppressing),
    "differencing": (Open,),
    "a tracker": (Suppressing,),
    "averaging 400 answers": (_jitter,),
    "linkage, one by one": (Open,),
    "denials": (Auditing, partial(Auditing, simulatable=True)),
    "reconstruction": (Open,),
    "tracing": (Open,),
    "certain by last bits": (partial(NumPy, scale=1),),
    "certain by too fine a double": (partial(Rounded, scale=1),),
    "gossip about a stranger": (Open, make_silent),
    "taking what is published": (RandomRow,),
    "real or simulated": (Open,),
}
"""The targets without a promise that each is tried on; parity makes up its own."""

__all__ = [
    "ATTACKS",
    "TARGETS",
    "Attack",
    "Linkage",
    "Make",
    "OneByOne",
    "Reconstruction",
    "Tracing",
]
