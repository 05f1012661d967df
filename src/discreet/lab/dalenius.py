"""Dalenius' goal cannot be reached: D06 Theorem 1 as a protocol that runs.

*Nothing should be learnt about a person from a useful database that could not be learnt without
it*: impossible, whatever the sanitizer, for there may be auxiliary information that needs the
database to be read.  The utility vector w is what everybody is meant to learn.  A gossip who knows
w and a secret y tells the world z = (s, Ext_s(w) ⊕ y).  With the database, w is learnt, and y with
it; without it, Ext_s(w) is as good as uniform given s (the leftover hash lemma), and z says
nothing.  The person need not be in the database.  If the sanitizer is randomised, the gossip adds
a sketch that repairs a few wrong bits (a fuzzy extractor: Dodis, Reyzin and Smith 2004).

What ε promises instead is seen in the same protocol: whether the person takes part changes the
adversary's success by at most a factor e^ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.accounting.meaning import Worlds
from discreet.lab.dice import Dice
from discreet.lab.outcome import Outcome
from discreet.lab.target import Denied, Target, begin_anew
from discreet.lab.town import secrets_of
from discreet.mechanisms import Laplace

Bits = NDArray[np.int64]

SECRET_BITS = 8
REPEAT = 7
"""Each bit of the codeword is written so often: three of seven wrong bits are repaired."""


def extract(key: Bits, source: Bits, length: int) -> Bits:
    """A strong extractor: the product with a Toeplitz matrix, modulo 2, which is universal."""
    size = len(source)
    rows = np.array([key[i : i + size][::-1] for i in range(length)])
    found: Bits = rows @ source % 2
    return found


def distance_bound(entropy: float, length: int) -> float:
    """The leftover hash lemma: how far from uniform ``length`` bits are, given the key.

    >>> distance_bound(12, 4)
    0.03125
    """
    return float(0.5 * 2 ** ((length - entropy) / 2))


def measure_distance(size: int, entropy: int, length: int, keys: int = 64) -> float:
    """The statistical distance itself, over some keys, for a source flat on 2^entropy points."""
    dice = Dice(f"extractor/{size}/{entropy}/{length}")
    source = np.array([_bits(int(i), size) for i in dice.order(2**size)[: 2**entropy]])
    weights = 1 << np.arange(length)
    total = 0.0
    for _ in range(keys):
        key = dice.flips(0.5, size + length - 1)
        outputs = [int(extract(key, w, length) @ weights) for w in source]
        shares = np.bincount(outputs, minlength=2**length) / len(source)
        total += 0.5 * float(np.abs(shares - 2.0**-length).sum())
    return total / keys


def _bits(number: int, count: int) -> Bits:
    return (number >> np.arange(count)) & 1


# --- the protocol ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gossip:
    """What the world has heard: a key, the secret masked, and a sketch that repairs w."""

    key: Bits
    masked: Bits
    sketch: Bits

    @classmethod
    def tell(cls, utility: Bits, secret: Bits, dice: Dice) -> Gossip:
        """Mask ``secret`` by what is extracted of a codeword, and that by the utility vector.

        The sketch w ⊕ c leaves of w's entropy what the codeword c has: one bit in seven.
        """
        word = dice.flips(0.5, len(utility) // REPEAT)
        code = np.repeat(word, REPEAT)
        key = dice.flips(0.5, len(word) + len(secret) - 1)
        return cls(key, secret ^ extract(key, word, len(secret)), utility[: len(code)] ^ code)

    def read(self, utility: Bits) -> Bits:
        """The secret, to somebody who has learnt the utility vector but for a few bits."""
        noisy = (self.sketch ^ utility[: len(self.sketch)]).reshape(-1, REPEAT)
        word = (noisy.sum(axis=1) > REPEAT // 2).astype(np.int64)
        found: Bits = self.masked ^ extract(self.key, word, len(self.masked))
        return found


def count_others(people: int, questions: int, dice: Dice) -> Bits:
    """How many of the other people say yes to each question: fair coins, by their normal limit."""
    totals: Bits = np.rint(people / 2 + np.sqrt(people) / 2 * dice.normal(questions)).astype(int)
    return totals


def utility_of(totals: NDArray[np.int64], people: int) -> Bits:
    """What everybody is meant to learn: of each question, whether most people say yes."""
    return (2 * totals > people).astype(np.int64)


def play(
    rounds: int,
    *,
    people: int = 64_000_000,
    questions: int = 280,
    epsilon: str | None,
    present: bool,
    access: bool,
) -> Outcome:
    """How often the adversary learns the person's secret.

    ``epsilon``: sanitized by Laplace noise on all counts (None: published as they are);
    ``present``: the person is in the data; ``access``: the adversary reads what is published.
    """
    right = 0
    for number in range(rounds):
        dice = Dice(f"dalenius/{number}")
        others = count_others(people, questions, dice)
        person = dice.flips(0.5, questions)
        secret = dice.flips(0.5, SECRET_BITS)
        totals = others + person if present else others
        gossip = Gossip.tell(utility_of(totals, people + present), secret, dice)
        if epsilon is not None:
            totals = np.asarray(Laplace(sensitivity=questions, epsilon=epsilon).release(totals))
        learnt = utility_of(totals, people + present) if access else dice.flips(0.5, questions)
        right += bool(np.array_equal(gossip.read(learnt), secret))
    who = "in the data" if present else "not in the data"
    how = "with access" if access else "without access"
    database = "exact counts" if epsilon is None else f"discreet, ε = {epsilon}"
    return Outcome(
        f"gossip about somebody {who}", f"{database}, {how}", right, rounds, 2**-SECRET_BITS
    )


def run(rounds: int = 60, epsilon: str = "1") -> list[Outcome]:
    """With and without access, in the data and not, exact and with ε.

    A country answers 280 questions.  No useful sanitizer reaches Dalenius' goal; whether the person
    is in the data hardly matters, and that is what ε promises.
    """
    return [
        play(rounds, epsilon=None, present=True, access=True),
        play(rounds, epsilon=None, present=True, access=False),
        play(rounds, epsilon=None, present=False, access=True),
        play(rounds, epsilon=epsilon, present=True, access=True),
        play(rounds, epsilon=epsilon, present=True, access=False),
        play(rounds, epsilon=epsilon, present=False, access=True),
    ]


def tip(rounds: int, *, epsilon: str | None, present: bool, questions: int = 280) -> Outcome:
    """What one person can change at most: all others are tied, and the gossip counts on them.

    The gossip is told of the data with the person in them, whichever is published: then any event,
    and that the secret is learnt, is at most e^ε as likely with the person as without (D06
    Definition 2), where it is a guess but for what the extractor leaves.
    """
    people, right = 1_000, 0
    for number in range(rounds):
        dice = Dice(f"tip/{number}")
        person, secret = dice.flips(0.5, questions), dice.flips(0.5, SECRET_BITS)
        tied = np.full(questions, people // 2)
        gossip = Gossip.tell(utility_of(tied + person, people + 1), secret, dice)
        totals = tied + person if present else tied
        if epsilon is not None:
            totals = np.asarray(Laplace(sensitivity=questions, epsilon=epsilon).release(totals))
        right += bool(np.array_equal(gossip.read(utility_of(totals, people + 1)), secret))
    who = "who tips the scales" if present else "who stayed away"
    database = "exact counts" if epsilon is None else f"discreet, ε = {epsilon}"
    alone = 2**-SECRET_BITS + distance_bound(questions // REPEAT, SECRET_BITS)
    bound = None
    if epsilon is not None:
        bound = min(1.0, float(Worlds(Fraction(epsilon)).factor) * alone) if present else alone
    return Outcome(f"gossip about somebody {who}", database, right, rounds, 2**-SECRET_BITS, bound)


# --- of anything with an ask -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unlocking:
    """A stranger's secret, from gossip that any useful table unlocks: theirs is not in it.

    The utility vector is whether the secret of the table is common or rare in each of some groups,
    by the last digits of people's numbers.  The gossip knows it, and the stranger's secret.
    Nothing is promised against this: a target that tells nothing, :class:`~discreet.lab.target.
    Silent`, is all that it does not work on.
    """

    groups: int = 280
    secret_bits: int = SECRET_BITS
    rounds: int = 40
    questions: int = 1
    name: str = "gossip about a stranger"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How often the stranger's secret is read."""
        del epsilon  # it bounds what taking part changes, and the stranger takes no part
        bits = secrets_of(people)
        sizes = np.bincount(np.arange(len(bits)) % self.groups, minlength=self.groups)
        counts = np.bincount(np.arange(len(bits)) % self.groups, bits, self.groups)
        share = float(bits.mean())
        right = 0
        for number in range(self.rounds):
            begin_anew(target)
            dice = Dice(f"stranger/{number}")
            secret = dice.flips(0.5, self.secret_bits)
            gossip = Gossip.tell((counts > share * sizes).astype(np.int64), secret, dice)
            heard = self._ask(target)
            learnt = (
                dice.flips(0.5, self.groups)
                if heard is None
                else (heard > share * sizes).astype(np.int64)
            )
            right += bool(np.array_equal(gossip.read(learnt), secret))
        return Outcome(self.name, target.name, right, self.rounds, 2.0**-self.secret_bits)

    def _ask(self, target: Target) -> NDArray[np.float64] | None:
        question = (
            f"SELECT MOD(id, {self.groups}) AS part, COUNT(*) AS n FROM people "  # noqa: S608
            f"WHERE secret = 1 GROUP BY MOD(id, {self.groups})"
        )
        try:
            rows = target.ask(question)
        except Denied:
            return None
        heard = np.zeros(self.groups)
        for part, count in rows:
            if part is not None:
                heard[int(part)] = float(count)
        return heard


def tell_height(*, known: float = -5.0, women: int = 10_000) -> tuple[float, float]:
    """Turing is so many centimetres shorter than the average woman: learnt with and without data.

    What is learnt with access (the mean, then his height exactly), and how far off a guess without.
    """
    heights = 165 + 7 * Dice("heights").normal(women)
    mean = float(heights.mean())
    return mean + known, 7.0


__all__ = [
    "Gossip",
    "Unlocking",
    "distance_bound",
    "extract",
    "measure_distance",
    "play",
    "run",
    "tell_height",
    "tip",
]
