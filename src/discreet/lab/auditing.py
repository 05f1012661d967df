"""Auditing questions fails: denials tell, and deciding is hard.

An auditor answers unless the answer, with all before, would determine somebody's value.
Kenthapadi, Mishra and Nissim 2005: that it denies is itself an answer.  Ask for the largest of
four values, then of three and of two of them: a denial says that who was left out last is the
largest.  An auditor whose denials could be simulated by the analyst tells nothing by them, and
hardly answers.  For sums of bits even to decide whether a bit is determined is coNP-hard
(Kleinberg, Papadimitriou and Raghavan 2003; the reduction here is our own).
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome, most_right
from discreet.lab.target import Denied, Open, Rows, Target, begin_anew
from discreet.lab.town import guess_prior, secrets_of

Clause = tuple[int, int, int]
"""Three variables, from 1; negative where negated; exactly one of them is to be true."""


@dataclass
class MaxAuditor:
    """Answers which is the largest value of a set, unless that would determine one.

    ``simulatable``: denies whenever *some* answer that fits the past would determine a value,
    so that the denial depends on nothing but what the analyst knows.
    """

    values: Sequence[float]
    simulatable: bool
    answered: list[tuple[frozenset[int], float]] = field(default_factory=list)

    def ask(self, people: Iterable[int]) -> float | None:
        """The largest of their values; None is a denial."""
        asked = frozenset(people)
        truth = max(self.values[i] for i in asked)
        answers = self._possible(asked) if self.simulatable else [truth]
        if any(determine([*self.answered, (asked, answer)]) for answer in answers):
            return None
        self.answered.append((asked, truth))
        return truth

    def _possible(self, asked: frozenset[int]) -> list[float]:
        """One answer for each case: equal to one before, between two of them, above all."""
        known = sorted({answer for _, answer in self.answered})
        between = [(a + b) / 2 for a, b in itertools.pairwise([0.0, *known])]
        cases = [*known, *between, (known[-1] if known else 0.0) + 1.0]
        return [case for case in cases if consistent([*self.answered, (asked, case)])]


def limits(answered: Sequence[tuple[frozenset[int], float]]) -> dict[int, float]:
    """The most that each value can be."""
    least: dict[int, float] = {}
    for people, answer in answered:
        for person in people:
            least[person] = min(answer, least.get(person, answer))
    return least


def consistent(answered: Sequence[tuple[frozenset[int], float]]) -> bool:
    """Whether some values fit: somebody can reach each answer whom no other keeps below it."""
    most = limits(answered)
    return all(any(most[i] == answer for i in people) for people, answer in answered)


def determine(answered: Sequence[tuple[frozenset[int], float]]) -> set[int]:
    """Whose value is known: who alone can have reached some answer (values differ)."""
    most = limits(answered)
    alone = set()
    for people, answer in answered:
        able = [i for i in people if most[i] == answer]
        if len(able) == 1:
            alone.add(able[0])
    return alone


def attack(values: Sequence[float], *, simulatable: bool) -> dict[int, float]:
    """Four at a time: the largest of four, of three, of two; a denial gives the last one away.

    The largest of four is one of the two who are left out half of the time, so that one person in
    eight is told.  Groups of k tell (k - 2)/k² of all people, which is most for four.
    """
    auditor = MaxAuditor(values, simulatable)
    learnt = {}
    for first in range(0, len(values) - 3, 4):
        largest = auditor.ask(range(first, first + 4))
        if largest is None:
            continue
        for out in (first + 3, first + 2):
            if auditor.ask(range(first, out)) is None:
                if not simulatable:
                    learnt[out] = largest
                break
    return learnt


def run_denials(people: int = 300) -> list[Outcome]:
    """Of how many groups of four a value is learnt exactly by a denial, from either auditor."""
    values = Dice("values").uniform(people).tolist()
    found = []
    for simulatable in (False, True):
        learnt = attack(values, simulatable=simulatable)
        right = sum(values[i] == value for i, value in learnt.items())
        name = "a simulatable auditor" if simulatable else "an auditor of largest values"
        found.append(Outcome("denials", name, right, people // 4, 0.0))
    return found


# --- of anything with an ask -------------------------------------------------------------------


class Auditing(Open):
    """Exact answers to "has any of these the secret?", unless that would determine somebody's.

    ``simulatable``: unless *some* answer that fits the past would.
    """

    def __init__(self, tables: Mapping[str, pa.Table], *, simulatable: bool = False) -> None:
        super().__init__(tables)
        self.simulatable = simulatable
        self.name = "a simulatable auditor" if simulatable else "an auditor of largest bits"
        self._answered: list[tuple[frozenset[int], int]] = []

    def ask(self, question: str) -> Rows:
        """The largest secret of a set of people, or a denial; nothing else is answered."""
        read = re.fullmatch(r"SELECT MAX\(secret\) AS n FROM people WHERE (.+)", question)
        if read is None:
            raise Denied
        found = super().ask(f"SELECT id, secret FROM people WHERE {read[1]}")  # noqa: S608
        people = frozenset(int(person) for person, _ in found)
        truth = max((int(secret) for _, secret in found), default=0)
        if any(tells_somebody([*self._answered, (people, a)]) for a in self._cases(people, truth)):
            raise Denied
        self._answered.append((people, truth))
        return [(truth,)]

    def _cases(self, people: frozenset[int], truth: int) -> list[int]:
        """The answers that are looked at: the true one, or all that the past leaves open."""
        if not self.simulatable:
            return [truth]
        certain = any(answer == 1 and asked <= people for asked, answer in self._answered)
        return [1] if certain else [0, 1]


def tells_somebody(answered: Sequence[tuple[frozenset[int], int]]) -> bool:
    """Whether largest bits determine one: a 0 tells all, a 1 the only one who is left for it."""
    zeros = frozenset[int]().union(*(people for people, answer in answered if answer == 0))
    return bool(zeros) or any(len(people - zeros) == 1 for people, _ in answered)


@dataclass(frozen=True, slots=True)
class Denials:
    """Each secret by what is denied: whether any of two people has it.

    Two of whom that is denied have it not, for a yes would tell neither.  One of them is the
    companion with whom everybody else is asked about: a denial is a no, and an answer a yes.
    """

    questions: int = 2
    tried: int = 40
    name: str = "denials"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many secrets are told; without a companion the commoner value is guessed."""
        secret = secrets_of(people)
        companion = self._find_companion(target, len(secret))
        commoner = int(2 * secret.sum() > len(secret))
        tried = [p for p in range(min(self.tried + 1, len(secret))) if p != companion]
        right = 0
        for person in tried[: self.tried]:
            begin_anew(target)
            heard = commoner if companion is None else _largest(target, person, companion)
            right += int(heard == secret[person])
        prior = guess_prior(people)
        count = min(self.tried, len(tried))
        remark = "" if companion is not None else "no denial told of anybody"
        return Outcome(
            self.name, target.name, right, count, prior, most_right(prior, epsilon), remark
        )

    def _find_companion(self, target: Target, people: int) -> int | None:
        """Somebody without the secret; None if answers do not depend on who is asked about."""
        heard = []
        for first in range(people - 2, max(people - 42, -1), -2):
            begin_anew(target)
            heard.append((first, _largest(target, first, first + 1)))
        told = {answer for _, answer in heard}
        return next(first for first, answer in heard if answer == 0) if told == {0, 1} else None


def _largest(target: Target, one: int, other: int) -> int:
    """Whether either has the secret, as far as it is said; a denial is taken for a no."""
    try:
        question = f"SELECT MAX(secret) AS n FROM people WHERE id IN ({one}, {other})"  # noqa: S608
        return int(float(target.ask(question)[0][0]) > 0.5)
    except Denied:
        return 0


# --- deciding is hard --------------------------------------------------------------------------


def audit_sums(clauses: Sequence[Clause], variables: int) -> tuple[bool, int]:
    """Whether the answers to sums of bits determine one bit; and how many data sets were tried.

    The data are a bit for each variable, one for its negation, and a switch, which is 1; all
    others are 0.  The questions are the sums of each clause with the switch, and of each variable
    with its negation and the switch: all answers are 1.  Data with the switch at 0 that give the
    same answers are an assignment under which each clause has exactly one true variable: so
    the switch is determined if and only if there is none, which is NP-complete to find.
    """
    tried = 0
    for bits in itertools.product((0, 1), repeat=variables):
        tried += 1
        if all(sum(bits[abs(v) - 1] == (v > 0) for v in clause) == 1 for clause in clauses):
            return False, tried  # the switch may be 0
    return True, tried


def plant(variables: int, dice: Dice, *, solvable: bool) -> list[Clause]:
    """Clauses of three variables; ``solvable`` ones have a planted assignment."""
    hidden = dice.flips(0.5, variables)
    clauses: list[Clause] = []
    while len(clauses) < 2 * variables:
        a, b, c = (dice.order(variables)[:3] + 1).tolist()
        signs = (2 * dice.flips(0.5, 3) - 1).tolist()
        clause: Clause = (a * signs[0], b * signs[1], c * signs[2])
        true = sum((hidden[abs(v) - 1] == 1) == (v > 0) for v in clause)
        if not solvable or true == 1:
            clauses.append(clause)
    return clauses


def time_audits(sizes: Sequence[int]) -> list[tuple[int, int, float]]:
    """For each number of variables: data sets tried until a bit is sure, and seconds."""
    rows = []
    for variables in sizes:
        dice = Dice(f"clauses/{variables}")
        clauses = plant(variables, dice, solvable=False)
        while not audit_sums(clauses, variables)[0]:
            clauses = plant(variables, dice, solvable=False)
        began = time.process_time()
        _, tried = audit_sums(clauses, variables)
        rows.append((variables, tried, time.process_time() - began))
    return rows


def growth(rows: Sequence[tuple[int, int, float]]) -> float:
    """By how much the work grows with each variable, by least squares on its logarithm."""
    sizes = np.array([row[0] for row in rows], dtype=float)
    logs = np.log(np.array([row[1] for row in rows], dtype=float))
    return float(np.exp(np.polyfit(sizes, logs, 1)[0]))


__all__ = [
    "Auditing",
    "Denials",
    "MaxAuditor",
    "attack",
    "audit_sums",
    "determine",
    "growth",
    "plant",
    "run_denials",
]
