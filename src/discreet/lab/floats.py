"""Floating point: the last bits of noise in doubles tell what it was added to.

Mironov 2012: the textbook's ``-b·sign(u)·ln(…)`` reaches only some doubles, other ones around 0
than around 1, so many an output is possible in one world only.  Rounding to a grid after the noise
hides that, and a rounded value that came from a coarse grid does not.  Our noise is drawn as whole
numbers: every output is as likely as its law says.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.audit.floats import reachable
from discreet.lab.dice import Dice, Real, Whole
from discreet.lab.outcome import Outcome, best_guess
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


__all__ = ["attack", "guess", "run", "textbook"]
