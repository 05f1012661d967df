"""Choosing one of many by score, exactly: the exponential mechanism and permute-and-flip.

Weights exp(rate * score) are summed in doubles with a proven error bound; a
choice is taken when it is certain in spite of that error.  When it is not
(about once in 10**8 choices) the same uniform digits are compared with sums in
ball arithmetic.  Proof: ``docs/proofs/noise.md``, Lemmas 8 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, precision
from discreet.exact.numbers import Exact, fraction, nonnegative
from discreet.noise.bernoulli import toss_coins
from discreet.noise.doubles import RELATIVE, Doubles, exp_negative, nearest_double
from discreet.noise.entropy import random_bits
from discreet.noise.uniform import uniform_below

_BLOCK = 1024
_BITS = 64
_FAR = 600.0

Scores = Sequence[Exact] | NDArray[Any]


def exponential_choice(scores: Scores, rate: Exact, *, weights: Scores | None = None) -> int:
    """Index i with probability exactly proportional to weights[i] * exp(rate * scores[i]).

    ``scores`` are integers or rationals; ``weights`` (default: all one) are
    whole numbers of at least 1, such as the length of an interval of equally
    good outcomes.

    >>> exponential_choice([0, 900, 3], rate=2)
    1
    """
    gaps = _Gaps.below_best(scores, rate)
    counts = _check_weights(weights, len(gaps.doubles))
    starts = range(0, len(gaps.doubles), _BLOCK)
    blocks = [gaps.part(start, start + _BLOCK) for start in starts]
    block = (
        _choose(
            _block_sums(gaps, counts),
            RELATIVE + (_BLOCK + len(blocks)) * 2.0**-52,
            lambda: [_ball_sum(gaps, counts, start) for start in starts],
        )
        if len(blocks) > 1
        else 0
    )
    inside, first = blocks[block].from_best(), block * _BLOCK
    kept = counts[first : first + _BLOCK]
    return first + _choose(
        exp_negative(inside.doubles) * kept,
        RELATIVE + _BLOCK * 2.0**-52,
        lambda: [ball(-inside.exact(i)).exp() * int(kept[i]) for i in range(len(inside.doubles))],
    )


def permute_and_flip(scores: Scores, rate: Exact) -> int:
    """The permute-and-flip choice of McKenna and Sheldon, exactly.

    Candidates are visited in random order; each is taken with probability
    exp(rate * (score - best score)), and the first one taken is the choice.
    Tossing every coin once and choosing uniformly among the heads has the same
    law, because the order is independent of the coins; it also takes the same
    number of steps whatever the scores.

    >>> permute_and_flip([0, 900, 3], rate=2)
    1
    """
    gaps = _Gaps.below_best(scores, rate)
    heads = np.flatnonzero(toss_coins(gaps.doubles, gaps.exact))
    return int(heads[uniform_below(len(heads))])


@dataclass(frozen=True, slots=True)
class _Gaps:
    """rate * (best score - score), exactly and as doubles up to rounding (Lemma 5)."""

    doubles: Doubles
    exact: Callable[[int], Fraction]

    @classmethod
    def below_best(cls, scores: Scores, rate: Exact) -> _Gaps:
        per_point = nonnegative(rate, name="rate")
        if isinstance(scores, np.ndarray) and scores.ndim != 1:
            raise InvalidParameter(
                "P6",
                "scores must be flat.",
                why="each candidate has one score.",
                fix="pass one number for each candidate, such as [3, 5, 4].",
            )
        if len(scores) == 0:
            raise InvalidParameter(
                "P5",
                "there is no candidate to choose from.",
                why="a choice needs at least one candidate.",
                fix="pass at least one score.",
            )
        array = scores if isinstance(scores, np.ndarray) else _integers(scores)
        if array is not None and array.dtype.kind in "iu":
            return cls._of_integers(array, per_point)
        exact = [fraction(score, name="every score", secret=True) for score in scores]
        best = max(exact)
        gaps = [per_point * (best - score) for score in exact]
        return cls(np.array([nearest_double(gap) for gap in gaps]), gaps.__getitem__)

    @classmethod
    def _of_integers(cls, scores: NDArray[Any], rate: Fraction) -> _Gaps:
        best = scores.max()
        # Differences of 64-bit integers fit 64 bits without a sign, also when they wrap.
        below = best.astype(np.uint64) - scores.astype(np.uint64)
        with np.errstate(over="ignore"):  # infinity stands for "at least 700" as well as any
            doubles = below.astype(np.float64) * nearest_double(rate)
        return cls(doubles, lambda i: rate * int(below[i]))

    def part(self, start: int, stop: int) -> _Gaps:
        return _Gaps(self.doubles[start:stop], lambda i: self.exact(start + i))

    def from_best(self) -> _Gaps:
        """The same choice measured from its own best candidate, so that no weight underflows."""
        if self.doubles.min() < _FAR:  # the total is then far from underflow
            return self
        # Large doubles cannot tell near-equal gaps apart, so the exact ones are subtracted.
        gaps = [self.exact(i) for i in range(len(self.doubles))]
        least = min(gaps)
        return _Gaps(
            np.array([nearest_double(gap - least) for gap in gaps]), lambda i: gaps[i] - least
        )


def _integers(scores: Sequence[Exact]) -> NDArray[np.int64] | None:
    if all(type(score) is int and -(2**63) <= score < 2**63 for score in scores):
        return np.array(scores, dtype=np.int64)
    return None


def _check_weights(weights: Scores | None, count: int) -> NDArray[Any]:
    if weights is None:
        return np.ones(count, dtype=np.int64)
    array = np.asarray(weights)
    if array.shape != (count,) or array.dtype.kind not in "iu" or int(array.min()) < 1:
        raise InvalidParameter(
            "P4",
            "weights must be one whole number of at least 1 for each score.",
            why="a weight says how many equally good outcomes a candidate stands for.",
            fix="pass an integer array of the same length as scores.",
        )
    return array


def _block_sums(gaps: _Gaps, counts: NDArray[Any]) -> Doubles:
    weights = exp_negative(gaps.doubles) * counts
    padded = np.zeros(-(-weights.size // _BLOCK) * _BLOCK)
    padded[: weights.size] = weights
    sums: Doubles = padded.reshape(-1, _BLOCK).sum(axis=1)
    return sums


def _ball_sum(gaps: _Gaps, counts: NDArray[Any], start: int) -> arb:
    total = arb(0)
    for i in range(start, min(start + _BLOCK, len(gaps.doubles))):
        total += ball(-gaps.exact(i)).exp() * int(counts[i])
    return total


def _choose(weights: Doubles, relative: float, balls: Callable[[], list[arb]]) -> int:
    """Index with probability proportional to the weights that ``balls`` encloses.

    Each partial sum of the doubles is within ``relative`` of the true one, and of
    what has underflowed: less than 2**-60 of their total.
    """
    prefix = random_bits(_BITS)
    sums = np.cumsum(weights)
    target = prefix * 2.0**-_BITS * sums[-1]
    index = min(int(np.searchsorted(sums, target, side="right")), len(sums) - 1)
    slack = sums[-1] * (8 * relative)
    lower = sums[index - 1] if index else -np.inf
    if lower < target - slack and target + slack < sums[index]:
        return index
    return _decide(prefix, balls)


def _decide(prefix: int, balls: Callable[[], list[arb]]) -> int:
    """The index selected by a uniform u that begins with ``prefix``, by ball arithmetic."""
    bits = _BITS
    while True:
        with precision(bits + 2 * _BITS):
            sums = list(accumulate(balls()))
            low = arb(prefix) / arb(2) ** bits * sums[-1]
            high = arb(prefix + 1) / arb(2) ** bits * sums[-1]
            # The first sum that is certainly above u, if the one before is certainly not.
            for index, total in enumerate(sums):
                if index == len(sums) - 1 or high <= total:
                    return index
                if not total <= low:
                    break
        prefix = prefix << _BITS | random_bits(_BITS)
        bits += _BITS
