"""Linkage: rows without names are joined with a register that has them.

Sweeney 2000, Golle 2006: district, birth date and sex single out most people.
Making rows k-anonymous first does not save them: a group of k people who all have the same disease
tells it of each (homogeneity; Machanavajjhala and others 2006), and two releases that are each
k-anonymous are not so together (Ganta, Kasiviswanathan and Smith 2008).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.lab.outcome import Outcome, most_right
from discreet.lab.target import Ours
from discreet.lab.town import DISEASES, SCHEMA, make_town

Person = dict[str, Any]
Blur = Callable[[Person], tuple[Any, ...]]
"""What a release keeps of somebody's district, birth and sex."""

YEAR = 365


def whole(person: Person) -> tuple[Any, ...]:
    """Nothing is blurred."""
    return person["district"], person["birth"], person["sex"]


def by_district(person: Person) -> tuple[Any, ...]:
    """Two districts become one, and birth dates five years."""
    return person["district"] // 2, person["birth"] // (5 * YEAR), person["sex"]


def by_age(person: Person) -> tuple[Any, ...]:
    """Districts stay, birth dates become decades, and sex is left out."""
    return person["district"], person["birth"] // (10 * YEAR)


def share_unique(people: Sequence[Person], blur: Blur = whole) -> float:
    """How many people are alone with what is published of them."""
    sizes = Counter(blur(person) for person in people)
    return sum(sizes[blur(person)] == 1 for person in people) / len(people)


def publish(people: Sequence[Person], blur: Blur, k: int) -> dict[tuple[Any, ...], list[str]]:
    """Rows without names, blurred; groups of fewer than ``k`` are left out."""
    groups: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for person in people:
        groups[blur(person)].append(person["disease"])
    return {key: diseases for key, diseases in groups.items() if len(diseases) >= k}


def link(
    people: Sequence[Person], releases: Sequence[tuple[Blur, dict[tuple[Any, ...], list[str]]]]
) -> list[str | None]:
    """For each person of the register, the only disease that every release allows; else None."""
    guesses: list[str | None] = []
    for person in people:
        possible = set(DISEASES)
        for blur, groups in releases:
            if blur(person) in groups:
                possible &= set(groups[blur(person)])
        guesses.append(possible.pop() if len(possible) == 1 else None)
    return guesses


def most_by_district(people: Sequence[Person]) -> float:
    """How many have the commonest disease of their district and sex: no guess by those does better.

    It is about a district, and hardly more than the commonest of all.
    """
    groups: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for person in people:
        groups[person["district"], person["sex"]][person["disease"]] += 1
    return sum(max(counts.values()) for counts in groups.values()) / len(people)


def run(people: int = 4_000, epsilon: str = "1") -> list[Outcome]:
    """Names found in raw rows, in k-anonymous ones, in two of those; then in a private table."""
    town = make_town(people, name="linkage")
    rows = town.to_pylist()
    raw = publish(rows, whole, 1)
    first, second = publish(rows, by_district, 3), publish(rows, by_age, 3)
    attacks = [
        ("rows without names", [(whole, raw)]),
        ("3-anonymous rows", [(by_district, first)]),
        ("two 3-anonymous releases", [(by_district, first), (by_age, second)]),
    ]
    found = [_judge(name, rows, link(rows, releases)) for name, releases in attacks]
    found.append(_against_ours(town, rows, epsilon))
    return found


def _judge(target: str, rows: Sequence[Person], guesses: Sequence[str | None]) -> Outcome:
    """Only certain guesses count; without any release there is none."""
    right = sum(
        guess == person["disease"] for guess, person in zip(guesses, rows, strict=True) if guess
    )
    wrong = sum(
        guess != person["disease"] for guess, person in zip(guesses, rows, strict=True) if guess
    )
    return Outcome("linkage", target, right, len(rows), 0.0, remark=f"certain and wrong: {wrong}")


def _against_ours(town: pa.Table, rows: Sequence[Person], epsilon: str) -> Outcome:
    """The finest table that is affordable, from which the likeliest disease is guessed.

    Nothing there is certain: what is learnt is what is true of a district, and it would have been
    learnt without the person.  The guess is compared with the commonest disease of all.
    """
    question = (
        "SELECT district, sex, disease, COUNT(*) AS n FROM people GROUP BY district, sex, disease"
    )
    with Ours(
        {"people": town}, schema=SCHEMA, budget=Budget(epsilon=epsilon), epsilon=epsilon
    ) as t:
        counts = {(d, s, disease): n for d, s, disease, n in t.ask(question)}
    right = 0
    for person in rows:
        seen = [counts[person["district"], person["sex"], disease] for disease in DISEASES]
        right += DISEASES[seen.index(max(seen))] == person["disease"]
    commonest = max(Counter(person["disease"] for person in rows).values()) / len(rows)
    return Outcome(
        "linkage, likeliest guess",
        f"discreet, ε = {epsilon}",
        right,
        len(rows),
        commonest,
        most_right(commonest, Fraction(epsilon)),
        "a guess about the district, not a fact about a person",
    )


__all__ = ["link", "most_by_district", "publish", "run", "share_unique"]
