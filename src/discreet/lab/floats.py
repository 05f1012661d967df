"""Floating point: the last bits of noise in doubles tell what it was added to.

Mironov 2012: the textbook's ``-b·sign(u)·ln(…)`` reaches only some doubles, other ones around 0
than around 1, so many an output is possible in one world only; numpy's noise is of this kind.
Haney and others 2022: noise that has the right law, rounded to the nearest double, does not help,
for the sum is rounded again: whatever is finer than the doubles that 1 was added to came from 0.
Our noise is drawn as whole numbers: every output is as likely as its law says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pyarrow as pa

from discreet.audit.floats import reachable
from discreet.lab.dice import Dice, Real, Whole
from discreet.lab.outcome import Outcome, best_guess
from discreet.lab.target import Denied, Open, Rows, Target, begin_anew
from discreet.lab.town import secrets_of
from discreet.mechanisms import Laplace

_STEPS = 2.0**53


def textbook(value: float, scale: float, dice: Dice, count: int) -> Real:
    """Laplace noise by the logarithm of a uniform double, added to ``value``."""
    size = -scale * np.log((dice.below(2**53, count) + 1) / _STEPS)
    outputs: Real = value + np.where(dice.flips(0.5, count) == 1, size, -size)
    return outputs


def guess(output: float, scale: float) -> int | None:
    """Which of the values 0 and 1 the noise was added to, if only one of them can give it."""
    zero, one = reachable(output, 0.0, scale), reachable(output, 1.0, scale)
    return None if zero == one else int(one)


def attack(outputs: Real, truth: Whole, *, scale: float, target: str, epsilon: str) -> Outcome:
    """Guess each output's value: by its bits if they tell, else by which is nearer."""
    right = certain = 0
    for output, value in zip(outputs.tolist(), truth.tolist(), strict=True):
        told = guess(output, scale)
        certain += told is not None
        right += int(output > 0.5) == value if told is None else told == value
    bound = best_guess(Fraction(epsilon), steps=1)
    remark = f"{certain} told by their last bits"
    return Outcome("last bits", target, right, len(outputs), 0.5, bound, remark)


def run(draws: int = 6_000, epsilon: str = "0.1") -> list[Outcome]:
    """The textbook's noise at ε, and ours: the same question, whether a count is 0 or 1."""
    dice = Dice("floats")
    scale = 1 / float(epsilon)
    truth = dice.flips(0.5, draws)
    outputs = np.concatenate([textbook(float(v), scale, dice, 1) for v in truth.tolist()])
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    ours = np.array([float(mechanism.release(v)) for v in truth.tolist()])
    return [
        attack(
            outputs, truth, scale=scale, target=f"the textbook's, ε = {epsilon}", epsilon=epsilon
        ),
        _by_size(ours, truth, epsilon),
    ]


def _by_size(outputs: Real, truth: Whole, epsilon: str) -> Outcome:
    """Whole numbers have no last bits: what is left is which value is nearer."""
    right = int(np.sum((outputs > 0.5).astype(int) == truth))
    bound = best_guess(Fraction(epsilon), steps=1)
    off = int(np.sum(outputs != np.rint(outputs)))
    remark = f"{off} of {len(outputs)} are not whole"
    return Outcome("last bits", f"discreet, ε = {epsilon}", right, len(outputs), 0.5, bound, remark)


# --- of anything with an ask -------------------------------------------------------------------


class Doubles(Open):
    """Exact answers with noise of one kind in doubles, at ε = 1/``scale`` a question."""

    kind = ""

    def __init__(self, tables: Mapping[str, pa.Table], *, scale: float) -> None:
        super().__init__(tables)
        self.name = f"{self.kind}, scale {scale:g}"
        self.scale = scale
        self._dice = Dice(self.kind)

    def ask(self, question: str) -> Rows:
        """Each number with noise of its own."""
        return [
            tuple(self.add(float(v)) if isinstance(v, int | float) else v for v in row)
            for row in super().ask(question)
        ]

    def add(self, value: float) -> float:
        """One released number."""
        raise NotImplementedError


class NumPy(Doubles):
    """What most people would write: numpy's own Laplace noise."""

    kind = "numpy's Laplace noise"

    def __init__(self, tables: Mapping[str, pa.Table], *, scale: float) -> None:
        super().__init__(tables, scale=scale)
        self._numpy = np.random.default_rng(0)

    def add(self, value: float) -> float:
        """Around the value."""
        return float(self._numpy.laplace(value, self.scale))


class Rounded(Doubles):
    """Noise with the right law, rounded to the nearest double, and added as doubles are."""

    kind = "exact Laplace noise as a double"

    def add(self, value: float) -> float:
        """A logarithm to forty digits, of a number of 106 random bits."""
        high, low = self._dice.below(2**53, 2).tolist()
        share = Decimal(high * 2**53 + low + 1) / Decimal(2**106)
        size = float(-Decimal(self.scale) * share.ln(Context(prec=40)))
        return value + (size if self._dice.flips(0.5, 1)[0] else -size)


def tell_by_precision(output: float, scale: float) -> int | None:
    """Haney and others: 0, if no double at all added to 1 gives this output."""
    del scale
    near = output - 1.0
    candidates = (near, nextafter(near, inf), nextafter(near, -inf))
    return None if any(1.0 + noise == output for noise in candidates) else 0


@dataclass(frozen=True, slots=True)
class LastBits:
    """Secrets that are certain: the count of one came out as it never would with the other value.

    Under any ε whatever can come out of one can come out of the other, so nothing may be certain:
    the bound is 0.  Answers that are whole numbers have no last bits.
    """

    scale: float
    tell: Callable[[float, float], int | None] = guess
    questions: int = 1
    tried: int = 60
    name: str = "certain by last bits"

    def run(self, target: Target, people: pa.Table, *, epsilon: Fraction | None = None) -> Outcome:
        """How many secrets are certain, and true; what is certain and false is remarked on."""
        secret = secrets_of(people)
        tried = min(self.tried, len(secret))
        right = wrong = 0
        for person in range(tried):
            begin_anew(target)
            heard = (self._ask(target, person) for _ in range(self.questions))
            told = next((one for one in heard if one is not None), None)
            right += int(told is not None and told == secret[person])
            wrong += int(told is not None and told != secret[person])
        bound = None if epsilon is None else 0.0
        remark = f"certain and false: {wrong}"
        return Outcome(self.name, target.name, right, tried, 0.0, bound, remark)

    def _ask(self, target: Target, person: int) -> int | None:
        question = f"SELECT COUNT(*) AS n FROM people WHERE secret = 1 AND id = {person}"  # noqa: S608
        try:
            output = target.ask(question)[0][0]
        except Denied:
            return None
        return self.tell(output, self.scale) if isinstance(output, float) else None


__all__ = [
    "Doubles",
    "LastBits",
    "NumPy",
    "Rounded",
    "attack",
    "guess",
    "run",
    "tell_by_precision",
    "textbook",
]
