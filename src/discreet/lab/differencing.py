"""Differencing, averaging, trackers: exact facts from harmless questions.

Two totals that differ in one person tell that person (Dwork 2006, section 1; DR section 1.1).
Fresh noise on the same question averages away.  Suppressing small counts does not help: a
*tracker* (Denning, Denning and Schwartz 1979) pads a small set with a large one that is counted
on its own.  Against an account of ε none of it helps more than ε says.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Jittering, Open, Ours, Suppressing, Target
from discreet.lab.town import SCHEMA, make_town

Attack = Callable[[Target, int], int | None]
"""A guess of one person's secret, from a target's answers."""

_ALL = "SELECT COUNT(*) AS n FROM people"
_SICK = f"{_ALL} WHERE secret = 1"


def difference(target: Target, person: int) -> int | None:
    """The secret of one person: everybody, less everybody else; None where it is not answered."""
    try:
        everybody = _count(target, _SICK)
        others = _count(target, f"{_SICK} AND id <> {person}")
    except Denied:
        return None
    return int(everybody - others > 0.5)


def average(target: Target, person: int, times: int) -> int | None:
    """The same from many answers to the same question."""
    question = f"{_SICK} AND id = {person}"
    try:
        heard = [_count(target, question) for _ in range(times)]
    except Denied:
        return None
    return int(sum(heard) / len(heard) > 0.5)


def track(target: Target, person: int) -> int | None:
    """A small count by a tracker: n((person and secret) or M) - n(M).

    ``M``, those with an even number, is large enough to be answered, and so is everything that
    contains it.
    """
    even = "MOD(id, 2) = 0"
    try:
        both = _count(target, _where(f"(id = {person} AND secret = 1) OR {even}"))
        alone = _count(target, _where(even))
    except Denied:
        return None
    if both - alone > 0.5:
        return 1
    # Either healthy, or in M: then the same with the others.
    odd = "MOD(id, 2) = 1"
    try:
        both = _count(target, _where(f"(id = {person} AND secret = 1) OR {odd}"))
        alone = _count(target, _where(odd))
    except Denied:
        return None
    return int(both - alone > 0.5)


def count_few(target: Target, person: int) -> int | None:
    """The plainest question: a count of one."""
    try:
        return int(_count(target, f"{_SICK} AND id = {person}") > 0.5)
    except Denied:
        return None


def _where(condition: str) -> str:
    return f"{_ALL} WHERE {condition}"


def _count(target: Target, question: str) -> float:
    return float(target.ask(question)[0][0])


def run(people: int = 400, tried: int = 40, epsilon: str = "1") -> list[Outcome]:
    """All four against what they break, and against the curator with ``epsilon`` in all."""
    town = make_town(people)
    found = [
        _try("a count of one", Open({"people": town}), count_few, town, tried),
        _try("a count of one", Suppressing({"people": town}), count_few, town, tried),
        _try("differencing", Open({"people": town}), difference, town, tried),
        _try("differencing", Suppressing({"people": town}), difference, town, tried),
        _try("a tracker", Suppressing({"people": town}), track, town, tried),
        _try(
            "averaging 400 answers",
            Jittering({"people": town}, scale=4, dice=Dice("jitter")),
            lambda target, person: average(target, person, 400),
            town,
            tried,
        ),
    ]
    attacks: dict[str, tuple[Attack, int]] = {
        "differencing": (difference, 2),
        "a tracker": (track, 4),
        "averaging 400 answers": (lambda target, person: average(target, person, 400), 1),
    }
    for name, (attack, questions) in attacks.items():
        found.append(_against_ours(name, attack, questions, town, tried, epsilon))
    return found


def _try(name: str, target: Open, attack: Attack, town: pa.Table, tried: int) -> Outcome:
    with target:
        guesses = [attack(target, person) for person in range(tried)]
    return _judge(name, target.name, guesses, town, None)


def _against_ours(
    name: str, attack: Attack, questions: int, town: pa.Table, tried: int, epsilon: str
) -> Outcome:
    """Each person is attacked with a whole budget, as if nobody had spent any of it."""
    budget, spent = Budget(epsilon=epsilon), Fraction(epsilon)
    guesses = []
    price = str(spent / questions)
    with Ours({"people": town}, schema=SCHEMA, budget=budget, epsilon=price) as target:
        for person in range(tried):
            target.renew()
            guesses.append(attack(target, person))
    bound = best_guess(spent, steps=2)
    return _judge(name, f"discreet, ε = {epsilon}", guesses, town, bound)


def _judge(
    attack: str, target: str, guesses: list[int | None], town: pa.Table, bound: float | None
) -> Outcome:
    """A denied question is answered by a coin, which is right half the time."""
    coins = Dice(f"{attack}/{target}").flips(0.5, len(guesses)).tolist()
    made = [coin if guess is None else guess for guess, coin in zip(guesses, coins, strict=True)]
    truth = town["secret"].to_pylist()
    right = sum(guess == truth[person] for person, guess in enumerate(made))
    denied = sum(guess is None for guess in guesses)
    remark = f"{denied} of {len(guesses)} were denied" if denied else ""
    return Outcome(attack, target, right, len(guesses), 0.5, bound, remark)


__all__ = ["average", "count_few", "difference", "run", "track"]
