"""The people of a block from what is said of them: numbers, medians and means, by a SAT solver.

Garfinkel, Abowd and Martindale (2019) published a block of seven people as an office would, groups
of fewer than three left out, and found them again.  The same here: what is published becomes
clauses about the age, the sex and two more things of each person, a solver finds people that fit,
and proves that no others do.  What the curator says of the same people fits nobody, or others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise

import pyarrow as pa

from discreet.accounting.budget import Budget
from discreet.accounting.meaning import Worlds
from discreet.lab.clauses import Clauses, Literal, Number
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome
from discreet.lab.target import Ours, Rows
from discreet.question.schema import Schema

OLDEST = 125
"""Nobody is older."""
LEAST = 3
"""A group of fewer people is not published."""
_BITS = OLDEST.bit_length()

Person = tuple[int, int, int, int]
"""An age, and three things of which each is so or not: female, of a minority, married."""
Group = tuple[tuple[int, int], ...]
"""Who is meant: which of the things (1, 2, 3) must be 0 or 1."""

BLOCK: tuple[Person, ...] = (
    (8, 1, 1, 0),
    (18, 0, 0, 0),
    (24, 1, 0, 0),
    (30, 0, 0, 1),
    (36, 1, 1, 1),
    (66, 1, 1, 1),
    (84, 0, 1, 1),
)
"""The seven people of the article."""
GROUPS: Mapping[str, Group] = {
    "everybody": (),
    "women": ((1, 1),),
    "men": ((1, 0),),
    "the minority": ((2, 1),),
    "the majority": ((2, 0),),
    "the married": ((3, 1),),
    "women of the minority": ((1, 1), (2, 1)),
    "men of the minority": ((1, 0), (2, 1)),
    "women of the majority": ((1, 1), (2, 0)),
    "men of the majority": ((1, 0), (2, 0)),
}
"""What is published, or left out."""
_KINDS = (OLDEST + 1) * 2**3
"""So many people can be told apart."""
_SCHEMA = Schema.from_text(f"""
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = {{ type = "integer", bounds = [0, 999999] }}
block = {{ type = "integer", bounds = [0, 9999] }}
age = {{ type = "integer", bounds = [0, {OLDEST}] }}
c1 = {{ type = "integer", bounds = [0, 1] }}
c2 = {{ type = "integer", bounds = [0, 1] }}
c3 = {{ type = "integer", bounds = [0, 1] }}
""")


@dataclass(frozen=True, slots=True)
class Statistic:
    """What is said of a group: how many, their median age and their mean age."""

    group: Group
    people: int
    median: Fraction
    mean: Fraction

    @classmethod
    def publish(cls, people: Sequence[Person], group: Group) -> Statistic | None:
        """The numbers of a group; None where they are too few to be published."""
        return cls.describe([person[0] for person in people if _is_in(person, group)], group)

    @classmethod
    def describe(cls, ages: Sequence[int], group: Group) -> Statistic | None:
        """The numbers of people of these ages; None where they are too few."""
        ages = sorted(ages)
        if len(ages) < LEAST:
            return None
        middle = Fraction(ages[(len(ages) - 1) // 2] + ages[len(ages) // 2], 2)
        return cls(group, len(ages), middle, Fraction(sum(ages), len(ages)))


def _is_in(person: Person, group: Group) -> bool:
    return all(person[thing] == value for thing, value in group)


def publish(people: Sequence[Person]) -> dict[str, Statistic | None]:
    """What an office says of a block; None for what it leaves out."""
    return {name: Statistic.publish(people, group) for name, group in GROUPS.items()}


@dataclass(frozen=True, slots=True)
class Unknown:
    """So many people as variables, in order of their age and then of the rest."""

    clauses: Clauses
    ages: tuple[Number, ...]
    things: tuple[Number, ...]

    @classmethod
    def make(cls, people: int) -> Unknown:
        """So many people of whom nothing is said yet."""
        clauses = Clauses()
        ages = tuple(clauses.make_number(_BITS) for _ in range(people))
        things = tuple(clauses.make_number(3) for _ in range(people))
        rows = [(*rest, *age) for age, rest in zip(ages, things, strict=True)]
        for one, other in pairwise(rows):
            clauses.order(one, other)
        for age in ages:  # 126 and 127 are no ages
            clauses.add(*(-bit for bit in age[1:]))
        return cls(clauses, ages, things)

    def belong(self, group: Group) -> list[Literal]:
        """Whether each person is in a group."""
        found = []
        for rest in self.things:
            literals = [rest[thing - 1] if value else -rest[thing - 1] for thing, value in group]
            found.append(reduce(self.clauses.conjoin, literals, self.clauses.true))
        return found

    def state(self, said: Statistic) -> None:
        """What is said of a group is so."""
        clauses, members = self.clauses, self.belong(said.group)
        clauses.require(members, said.people, said.people)
        counted = clauses.count(members)

        def find_place(place: int) -> list[Literal]:
            """Who is the member with so many members before them."""
            before = (
                clauses.conjoin(row[place], -row[place + 1]) if place + 1 < len(row) else row[place]
                for row in counted[place:-1]
            )
            late = [clauses.conjoin(a, b) for a, b in zip(members[place:], before, strict=True)]
            return [*([-clauses.true] * place), *late]

        low, high = find_place((said.people - 1) // 2), find_place(said.people // 2)
        twice = int(2 * said.median)
        for i, age in enumerate(self.ages):
            if said.people % 2:
                clauses.equate(age, twice // 2, -low[i])
        if said.people % 2 == 0:
            for i, j in combinations(range(len(self.ages)), 2):
                unless = -clauses.conjoin(low[i], high[j])
                clauses.equate(clauses.add_up(self.ages[i], self.ages[j]), twice, unless)
        masked = [
            tuple(clauses.conjoin(member, bit) for bit in age)
            for member, age in zip(members, self.ages, strict=True)
        ]
        clauses.equate(reduce(clauses.add_up, masked), int(said.mean * said.people))

    def leave_out(self, group: Group) -> None:
        """A group was too few to be published: that, too, is said."""
        self.clauses.require(self.belong(group), 0, LEAST - 1)

    def find(self, most: int) -> Iterator[tuple[Person, ...]]:
        """Up to so many blocks of people that fit."""
        wanted = [bit for row in zip(self.ages, self.things, strict=True) for n in row for bit in n]
        for values in self.clauses.find(wanted, most=most):
            size = _BITS + 3
            starts = range(0, len(values), size)
            yield tuple(_read_person(values[start : start + size]) for start in starts)


def _read_person(bits: Sequence[bool]) -> Person:
    age = sum(bit << place for place, bit in enumerate(bits[:_BITS]))
    one, two, three = map(int, bits[_BITS:])
    return age, one, two, three


def reconstruct(said: Mapping[str, Statistic | None], *, most: int = 2) -> list[tuple[Person, ...]]:
    """Up to so many blocks of people of whom all this is true; fewer than ``most``: no others."""
    everybody = said["everybody"]
    if everybody is None:
        raise ValueError("how many people there are must be published")
    block = Unknown.make(everybody.people)
    for name, statistic in said.items():
        if statistic is None:
            block.leave_out(GROUPS[name])
        else:
            block.state(statistic)
    return list(block.find(most))


def attack_block() -> Outcome:
    """The people of the published block: right only if nobody else fits."""
    found = reconstruct(publish(BLOCK))
    right = len(BLOCK) if found == [BLOCK] else 0
    name = "numbers, medians and means of groups of three or more"
    return Outcome("solving a published block", name, right, len(BLOCK), 0.0)


def attack_noisy_blocks(blocks: int, epsilon: str) -> Outcome:
    """The same from the curator, with a whole budget for each block: counts of each age.

    In each block one of the seven is somebody else, as likely any as another.  Who knows the other
    six knows that one if all are right: so all are at most as often as the best guess at one of
    so many kinds of people.
    """
    dice = Dice("blocks of seven")
    truths = [_exchange_one(dice) for _ in range(blocks)]
    every = [person for people in truths for person in people]
    columns = {name: [row[place] for row in every] for place, name in enumerate(_NAMES)}
    block = [number for number, people in enumerate(truths) for _ in people]
    tables = {"people": pa.table({"id": range(len(every)), "block": block, **columns})}
    right = 0
    with Ours(tables, schema=_SCHEMA, budget=Budget(epsilon=epsilon), epsilon=epsilon) as target:
        for number, people in enumerate(truths):
            target.renew()
            said = _read_ages(target.ask(_ask_ages(number)), len(people))
            right += reconstruct(said) == [people]
    guess = Fraction(1, _KINDS)
    bound = float(Worlds(Fraction(epsilon), steps=2).posterior(guess)[1])
    name = f"discreet, ε = {epsilon}"
    return Outcome("solving a published block", name, right, blocks, float(guess), bound)


_NAMES = ("age", "c1", "c2", "c3")


def _exchange_one(dice: Dice) -> tuple[Person, ...]:
    """The block with somebody else in the place of one, in the order of the variables."""
    people = list(BLOCK)
    one, two, three = map(int, dice.below(2, 3))
    who, age = int(dice.below(len(BLOCK), 1)[0]), int(dice.below(OLDEST + 1, 1)[0])
    people[who] = (age, one, two, three)
    return tuple(sorted(people, key=lambda person: (person[0], *reversed(person[1:]))))


def _ask_ages(block: int) -> str:
    """How many of each group have each age."""
    counts = []
    for number, group in enumerate(GROUPS.values()):
        tests = " AND ".join(f"c{thing} = {value}" for thing, value in group)
        counts.append(f"COUNT(*){f' FILTER (WHERE {tests})' if tests else ''} AS n{number}")
    return f"SELECT age, {', '.join(counts)} FROM people WHERE block = {block} GROUP BY age"  # noqa: S608


def _read_ages(rows: Rows, people: int) -> dict[str, Statistic | None]:
    """What noisy counts say of each group, if everybody is so many: the ages heard of most."""
    said = {}
    for place, (name, group) in enumerate(GROUPS.items(), 1):
        heard = sorted(
            ((row[place], row[0]) for row in rows if row[0] is not None and row[place] > 0),
            reverse=True,
        )
        ages = [age for count, age in heard for _ in range(min(count, people))]
        total = sum(row[place] for row in rows) if group else people
        said[name] = Statistic.describe(ages[: max(0, min(total, people))], group)
    return said


__all__ = [
    "BLOCK",
    "GROUPS",
    "Statistic",
    "Unknown",
    "attack_block",
    "attack_noisy_blocks",
    "publish",
    "reconstruct",
]
