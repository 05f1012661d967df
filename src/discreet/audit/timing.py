"""Does the time taken tell the two inputs apart?  A paired rank test.

Both inputs are timed in each round, in an order drawn at random, so that a
machine that slows down slows both.  Wilcoxon's signed ranks (1945) of the
differences are summed; if the two take equally long every sign is a fair coin,
and Hoeffding's bound for weighted coins gives the threshold, for any number of
rounds and any distribution of times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.verdict import Verdict
from discreet.errors import InvalidParameter
from discreet.exact.numbers import Exact as Number
from discreet.exact.numbers import proportion, whole
from discreet.noise.entropy import random_bits

_WARM = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """The signed ranks of the differences, and how large chance makes their sum.

    ``statistic``, from -1 to 1, is how consistently the second input takes longer in so many
    ``rounds``; beyond ``allowed``, either way, chance takes it at most with ``alpha``.
    ``medians_ns`` are the median times of both inputs.
    """

    rounds: int
    alpha: Fraction
    statistic: float
    allowed: float
    medians_ns: tuple[float, float]

    @property
    def verdict(self) -> Verdict:
        """Broken if one input takes longer more consistently than chance allows."""
        return Verdict.BROKEN if abs(self.statistic) > self.allowed else Verdict.CONSISTENT

    @property
    def alarm(self) -> bool:
        """Whether time tells."""
        return self.verdict is Verdict.BROKEN

    @property
    def sentence(self) -> str:
        """The conclusion in words."""
        one, two = self.medians_ns
        told = "time tells the inputs apart" if self.alarm else "time does not tell"
        return (
            f"{told}: medians {one / 1000:.4g} and {two / 1000:.4g} µs, rank statistic "
            f"{self.statistic:+.3f} of ±{self.allowed:.3f} allowed in {self.rounds} rounds."
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "kind": "timing",
            "rounds": self.rounds,
            "alpha": float(self.alpha),
            "statistic": self.statistic,
            "allowed": self.allowed,
            "medians_ns": list(self.medians_ns),
            "verdict": self.verdict.value,
            "sentence": self.sentence,
        }

    def picture(self) -> str:
        """Nothing to draw."""
        return ""


def timing(
    call: Callable[[Any], Any],
    d0: Any,
    d1: Any,
    *,
    rounds: int = 2000,
    alpha: Number = "1e-6",
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Timing:
    """Time ``call`` on both inputs in turn; one that raises has taken its time too.

    ``d0`` and ``d1`` are the two inputs, timed in so many ``rounds``; ``alpha`` is how often times
    of one law are told apart at most, and ``clock`` gives nanoseconds.

    >>> timing(len, [3, 5, 8], [3, 5, 8, 13], rounds=400).rounds
    400
    """
    count, chance = whole(rounds, name="rounds", least=1), proportion(alpha, name="alpha")
    needed = math.ceil(2 * math.log(2 / float(chance)) * 4 / 3) + 1
    if count < needed:
        raise InvalidParameter(
            "P2",
            f"{count} rounds cannot show anything at this alpha.",
            why="however much the time tells, so few rounds could be chance.",
            fix=f"time at least rounds={needed}.",
        )
    for _ in range(_WARM):
        _time(call, d0, clock)
        _time(call, d1, clock)
    taken = np.empty((count, 2))
    for number in range(count):
        first = random_bits(1)
        for side in (first, 1 - first):
            taken[number, side] = _time(call, (d0, d1)[side], clock)
    return _test(taken, chance)


def _test(taken: Any, chance: Fraction) -> Timing:
    gaps = taken[:, 1] - taken[:, 0]
    sizes = np.abs(gaps)
    order = np.argsort(sizes, kind="stable")
    ranks = np.empty(len(gaps))
    ranks[order] = np.arange(1, len(gaps) + 1)
    _, tied, members = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (np.bincount(tied, weights=ranks) / members)[tied]  # ties share their ranks
    ranks[gaps == 0] = 0.0
    total = float(ranks.sum()) or 1.0
    # P(|sum of r_i s_i| >= t) <= 2 exp(-t**2 / (2 sum of r_i**2)) for fair signs s_i.
    allowed = math.sqrt(2 * float((ranks**2).sum()) * math.log(2 / float(chance))) / total
    medians = float(np.median(taken[:, 0])), float(np.median(taken[:, 1]))
    return Timing(len(gaps), chance, float((ranks * np.sign(gaps)).sum()) / total, allowed, medians)


def _time(call: Callable[[Any], Any], data: Any, clock: Callable[[], int]) -> int:
    start = clock()
    with suppress(Exception):
        call(data)
    return clock() - start


__all__ = ["Timing", "timing"]
