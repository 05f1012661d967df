"""Separations: what asking can do and publishing cannot, and what the local model costs.

DMNS section 4: whether all rows have even or all odd parity over a set r of columns.  One noisy
sum answers it for a handful of people, whatever the number d of columns.  Published once and for
all without knowing r, it takes exponentially many: 2^(d/2)/ε by a histogram of all 2^d rows, about
4^d/ε² by randomised response on whole rows, and for sets of |r| columns (1/tanh(ε/2d))^(2|r|) by
randomised response on each column.  And the folklore: a count is off by about 1/ε with a
curator and by √n/ε without one (DR section 12.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, exp, sqrt, tanh
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.charts import Picture, lines
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Open, Target, begin_anew
from discreet.lab.target import Rows as Answers
from discreet.mechanisms import Laplace, RandomizedResponse
from discreet.question.schema import Schema

Rows = NDArray[np.int64]
Guess = Callable[[Rows, int, int, str], int]
"""The parity of all rows, guessed from a release about them; the set r comes afterwards."""


def make_rows(people: int, columns: int, chosen: int, parity: int, dice: Dice) -> Rows:
    """Rows as whole numbers, uniform among those whose parity over the set ``chosen`` is given."""
    rows = dice.below(2**columns, people)
    lowest = chosen & -chosen
    wrong = parity_of(rows, chosen) != parity
    return np.where(wrong, rows ^ lowest, rows)


def parity_of(rows: Rows, chosen: int) -> Rows:
    """Whether the number of ones among the chosen columns is odd."""
    bits: Rows = rows & chosen
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return bits & 1


def ask(rows: Rows, columns: int, chosen: int, epsilon: str) -> int:
    """Interactively: one sum of parities, with Laplace noise of 1/ε."""
    del columns
    total = Laplace(sensitivity=1, epsilon=epsilon).release(int(parity_of(rows, chosen).sum()))
    return int(float(total) > len(rows) / 2)


def publish_histogram(rows: Rows, columns: int, chosen: int, epsilon: str) -> int:
    """Non-interactively: a noisy count of each of the 2^d rows, then the parity is read off."""
    counts = np.bincount(rows, minlength=2**columns)
    noisy = np.asarray(Laplace(sensitivity=1, epsilon=epsilon).release(counts), dtype=float)
    odd = parity_of(np.arange(2**columns), chosen)
    return int(float((noisy * (2 * odd - 1)).sum()) > 0)


def randomise_rows(rows: Rows, columns: int, chosen: int, epsilon: str) -> int:
    """Locally: each person reports one of the 2^d rows, their own with a little more weight."""
    mechanism = RandomizedResponse(epsilon=epsilon, categories=2**columns)
    reports = np.asarray(mechanism.release(rows))
    return int(float((2 * parity_of(reports, chosen) - 1).sum()) > 0)


METHODS: dict[str, Guess] = {
    "asked": ask,
    "published": publish_histogram,
    "each alone": randomise_rows,
}
"""What is compared, by the name it has in pictures."""


def success(
    guess: Guess, people: int, columns: int, *, epsilon: str = "1", trials: int = 60
) -> float:
    """How often the parity over a random set of about half the columns is found."""
    right = 0
    for trial in range(trials):
        dice = Dice(f"parity/{guess.__name__}/{people}/{columns}/{trial}")
        chosen = int(dice.below(2**columns - 1, 1)[0]) + 1
        parity = int(dice.flips(0.5, 1)[0])
        rows = make_rows(people, columns, chosen, parity, dice)
        right += guess(rows, columns, chosen, epsilon) == parity
    return right / trials


def people_needed(
    guess: Guess, columns: int, *, epsilon: str = "1", most: int = 100_000, trials: int = 60
) -> int:
    """The least power of two of people with whom nine in ten are found; above ``most`` if none."""
    people = 2
    while people <= most and success(guess, people, columns, epsilon=epsilon, trials=trials) < 0.9:
        people *= 2
    return people


def theory(columns: int, epsilon: Fraction) -> dict[str, float]:
    """People needed for nine in ten, up to the normal approximation of each noise."""
    quantile, e = 1.2816, float(epsilon)
    kept = (exp(e) - 1) / (exp(e) + 2**columns - 1)
    return {
        "ask": 2 * np.log(5) / e,
        "publish_histogram": quantile * sqrt(2 * 2**columns) / e,
        "randomise_rows": (quantile / kept) ** 2,
        "randomise_columns": (quantile / tanh(e / (2 * columns)) ** (columns / 2)) ** 2,
    }


def expected_success(people: int, columns: int, epsilon: Fraction) -> dict[str, float]:
    """How often each finds the parity, up to the same approximation.

    >>> {name: round(share, 2) for name, share in expected_success(64, 8, Fraction(1)).items()}
    {'ask': 1.0, 'publish_histogram': 1.0, 'randomise_rows': 0.52}
    """
    normal, e = NormalDist(), float(epsilon)
    kept = (exp(e) - 1) / (exp(e) + 2**columns - 1)
    return {
        "ask": 1 - exp(-e * people / 2) / 2,
        "publish_histogram": normal.cdf(e * people / sqrt(2 * 2**columns)),
        "randomise_rows": normal.cdf(kept * sqrt(people)),
    }


def draw_success(columns: int, people: list[int], *, epsilon: str = "1") -> Picture:
    """How often each finds the parity, against people: three steps, exponentially far apart."""
    named = []
    for label, guess in METHODS.items():
        found = [(float(n), success(guess, n, columns, epsilon=epsilon)) for n in people]
        shares = [expected_success(n, columns, Fraction(epsilon)) for n in people]
        named.append((label, found))
        expected = [
            (float(n), share[guess.__name__]) for n, share in zip(people, shares, strict=True)
        ]
        named.append((f"{label}: theory", expected))
    return lines(
        named,
        x="people",
        y="parities found",
        x_scale="log",
        title=f"Parity of {columns} columns, ε = {epsilon}",
        subtitle="a coin finds half of them",
        percent=True,
    )


def draw_needed(columns: list[int], *, epsilon: str = "1", most: int = 100_000) -> Picture:
    """People needed against columns: level, and exponential twice."""
    named = []
    for label, guess in METHODS.items():
        needed = [(d, people_needed(guess, d, epsilon=epsilon, most=most)) for d in columns]
        named.append((label, [(float(d), float(n)) for d, n in needed if n <= most]))
        expected = [(d, theory(d, Fraction(epsilon))[guess.__name__]) for d in columns]
        shown = [(float(d), n) for d, n in expected if n <= most]
        named.append((f"{label}: theory", shown))
    return lines(
        named,
        x="columns d",
        y="people needed",
        y_scale="log",
        title=f"Parity of a set chosen afterwards, ε = {epsilon}",
        subtitle="for nine in ten: asked of a curator, published as a histogram, randomised alone",
    )


def local_and_central(
    sizes: list[int], epsilon: str = "1", repeats: int = 60
) -> list[tuple[int, float, float]]:
    """For each n: the root mean squared error of a count with a curator, and without one."""
    central = Laplace(sensitivity=1, epsilon=epsilon)
    local = RandomizedResponse(epsilon=epsilon)
    rows = []
    for people in sizes:
        bits = Dice(f"bits/{people}").flips(0.3, people)
        truth = int(bits.sum())
        errors = [float(central.release(truth)) - truth for _ in range(repeats)]
        guesses = []
        for _ in range(repeats):
            yes = float(np.asarray(local.release(bits)).mean())
            p = exp(float(Fraction(epsilon))) / (1 + exp(float(Fraction(epsilon))))
            guesses.append(people * (yes - (1 - p)) / (2 * p - 1) - truth)
        rows.append((people, _rms(errors), _rms(guesses)))
    return rows


def _rms(errors: list[float]) -> float:
    return sqrt(sum(error**2 for error in errors) / len(errors))


# --- of anything with an ask -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Studies:
    """Studies of a few people each: all rows of one have the same parity over a set of its own."""

    table: pa.Table
    columns: int
    people: int
    sets: tuple[int, ...]
    """The set of each study, chosen after anything was published."""
    parities: tuple[int, ...]

    @classmethod
    def make(cls, studies: int, people: int, columns: int) -> Studies:
        """So many studies of so many people."""
        rows, sets, parities = [], [], []
        for number in range(studies):
            dice = Dice(f"study/{number}/{people}/{columns}")
            chosen, parity = int(dice.below(2**columns - 1, 1)[0]) + 1, int(dice.flips(0.5, 1)[0])
            rows.append(make_rows(people, columns, chosen, parity, dice))
            sets.append(chosen)
            parities.append(parity)
        return cls(
            _tabulate(np.array(rows), columns), columns, people, tuple(sets), tuple(parities)
        )

    @classmethod
    def choose(cls, rows: Rows, studies: int, people: int, columns: int) -> Studies | None:
        """So many studies of people who are there: those of one parity over a set of columns.

        Only who is in which study is chosen.  None where hardly any set of columns has so many
        people of both parities.
        """
        chosen, sets, parities = [], [], []
        for number in range(studies):
            dice = Dice(f"chosen/{number}/{people}/{columns}")
            found = _draw_set(rows, people, columns, dice)
            if found is None:
                return None
            parity = int(dice.flips(0.5, 1)[0])
            fitting = rows[parity_of(rows, found) == parity]
            chosen.append(fitting[dice.order(len(fitting))[:people]])
            sets.append(found)
            parities.append(parity)
        return cls(
            _tabulate(np.array(chosen), columns), columns, people, tuple(sets), tuple(parities)
        )

    @property
    def schema(self) -> Schema:
        """What a curator declares of them."""
        bits = "\n".join(f'c{j} = {{ type = "integer", bounds = [0, 1] }}' for j in self._places)
        return Schema.from_text(f"""
[tables.people]
unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = {{ type = "integer", bounds = [0, 999999] }}
study = {{ type = "integer", bounds = [0, 999] }}
{bits}
""")

    @property
    def _places(self) -> range:
        return range(self.columns)

    def rows(self) -> NDArray[np.int64]:
        """The rows as whole numbers, a line for each study."""
        bits = [np.array(self.table[f"c{j}"]) << j for j in self._places]
        total: NDArray[np.int64] = np.sum(bits, axis=0)
        return total.reshape(len(self.sets), self.people)


_TRIES = 200
"""So many sets of columns are drawn at most, for one with people of both parities."""


def _draw_set(rows: Rows, people: int, columns: int, dice: Dice) -> int | None:
    """A set of columns over which at least so many people have each parity."""
    for chosen in (dice.below(2**columns - 1, _TRIES) + 1).tolist():
        odd = int(parity_of(rows, chosen).sum())
        if people <= odd <= len(rows) - people:
            return int(chosen)
    return None


def _tabulate(rows: NDArray[np.int64], columns: int) -> pa.Table:
    """One line of ``rows`` for each study, as a table of bits."""
    studies, people = rows.shape
    bits = {f"c{j}": ((rows >> j) & 1).ravel() for j in range(columns)}
    study = np.repeat(np.arange(studies), people)
    return pa.table({"id": np.arange(rows.size), "study": study, **bits})


class InAdvance(Open):
    """A histogram of every study, published once with ε: whatever is asked is read off it."""

    def __init__(self, studies: Studies, *, epsilon: str) -> None:
        kinds = 2**studies.columns
        counts = np.array([np.bincount(line, minlength=kinds) for line in studies.rows()])
        noisy = np.asarray(Laplace(sensitivity=1, epsilon=epsilon).release(counts.ravel()))
        every = np.tile(np.arange(kinds), (len(counts), 1))
        table = _tabulate(every, studies.columns).append_column("weight", pa.array(noisy))
        super().__init__({"people": table})
        self.name = f"a histogram in advance, ε = {epsilon}"

    def ask(self, question: str) -> Answers:
        """A count is a sum of what was published."""
        return super().ask(question.replace("COUNT(*)", "SUM(weight)"))


class Reports(Open):
    """Rows that each person has randomised alone, with ε, before anybody saw them."""

    def __init__(self, studies: Studies, *, epsilon: str) -> None:
        mechanism = RandomizedResponse(epsilon=epsilon, categories=2**studies.columns)
        said = np.asarray(mechanism.release(studies.rows().ravel())).astype(np.int64)
        table = _tabulate(said.reshape(len(studies.sets), studies.people), studies.columns)
        super().__init__({"people": table})
        self.name = f"each person alone, ε = {epsilon}"


@dataclass(frozen=True, slots=True)
class Parity:
    """The parity of all rows of each study over its set: one count, whoever answers it."""

    studies: int = 60
    members: int = 16
    columns: int = 10
    questions: int = 1
    name: str = "parity"
    chosen: Studies | None = None
    """Studies of people who are there; None: they are made up."""

    @classmethod
    def among(cls, chosen: Studies) -> Parity:
        """The attack on studies of people who are there."""
        return cls(len(chosen.sets), chosen.people, chosen.columns, chosen=chosen)

    def make(self) -> Studies:
        """What is asked about."""
        return self.chosen or Studies.make(self.studies, self.members, self.columns)

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often most rows are said to have the parity that all have.

        ``people`` is the table of :meth:`make`.  Nothing about one person is learnt, so ε bounds it
        only through all members of a study at once.
        """
        made = self.make()
        if people.num_rows != made.table.num_rows:
            raise ValueError("the target must hold the table of Parity.make()")
        right = 0
        for study, (chosen, parity) in enumerate(zip(made.sets, made.parities, strict=True)):
            begin_anew(target)
            odd = " + ".join(f"c{j}" for j in range(self.columns) if chosen >> j & 1)
            question = (
                "SELECT COUNT(*) AS n FROM people "  # noqa: S608 (numbers)
                f"WHERE study = {study} AND MOD({odd}, 2) = 1"
            )
            try:
                heard = float(target.ask(question)[0][0] or 0)
            except Denied:
                heard = 0.0
            right += int(heard > self.members / 2) == parity
        # All members change what they say: two steps for each.
        bound = None if epsilon is None else best_guess(2 * self.members * epsilon, steps=1)
        return Outcome(self.name, target.name, right, self.studies, 0.5, bound)


def alone_at_most(people: int, columns: int, epsilon: str) -> float:
    """How often most of the reports of whole rows have the right parity: a sum of coins, exactly.

    A report has it with probability (1 + kept)/2; of an even number a tie goes to even parities.

    >>> round(alone_at_most(16, 10, "1"), 4)
    0.5026
    """
    growth = exp(float(Fraction(epsilon)))
    chance = (1 + (growth - 1) / (growth + 2**columns - 1)) / 2
    law = [comb(people, k) * chance**k * (1 - chance) ** (people - k) for k in range(people + 1)]
    more: float = sum(law[people // 2 + 1 :])
    return more + (law[people // 2] / 2 if people % 2 == 0 else 0.0)


__all__ = [
    "InAdvance",
    "Parity",
    "Reports",
    "Studies",
    "alone_at_most",
    "ask",
    "draw_needed",
    "draw_success",
    "expected_success",
    "local_and_central",
    "parity_of",
    "people_needed",
    "publish_histogram",
    "success",
]
