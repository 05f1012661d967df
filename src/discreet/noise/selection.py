"""Choosing, exactly: uniformly, and by score with the exponential mechanism or permute-and-flip.

Uniform integers, permutations and samples: ``docs/proofs/noise.md``, Lemma 10.

Weights exp(rate * score) are summed in doubles with a proven error bound; a
choice is taken when it is certain in spite of that error.  When it is not
(about once in 10**8 choices) the same uniform digits are compared with sums in
ball arithmetic.  Proof: Lemmas 8 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact.balls import RELATIVE, Doubles, ball, exp_negative, nearest_double, precision
from discreet.exact.numbers import Exact, fraction, nonnegative, whole
from discreet.exact.records import dataclass
from discreet.noise.bernoulli import toss_coins
from discreet.noise.entropy import random_bits, random_words
from discreet.noise.table import Integers, check_size, draw_array


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(n: int, size: int) -> Integers: ...
def uniform_below(n: int, size: int | None = None) -> int | Integers:
    """Integers 0 <= z < n, each with probability exactly 1 / n; ``n`` is 1 to 2**63.

    With ``size`` an array of so many; without, one.

    Exactness: a 64-bit word w counts as w mod n unless it is among the last
    2**64 mod n words, which are drawn again.

    >>> sorted(set(uniform_below(6, 1000).tolist()))
    [0, 1, 2, 3, 4, 5]
    """
    bound = whole(n, name="n", least=1)
    if bound > 2**63:
        raise InvalidParameter(
            "P2",
            f"n must be at most 2**63, got {bound}.",
            why="results are 64-bit integers.",
            fix="draw in two parts.",
        )
    if size is None:
        return _draw_one(bound)
    return draw_array(check_size(size), lambda out: _fill(bound, out))


def _draw_one(bound: int) -> int:
    usable = 2**_BITS // bound * bound
    while True:
        word = random_bits(_BITS)
        if word < usable:
            return word % bound


def _fill(bound: int, out: NDArray[Any]) -> None:
    divisor = np.uint64(bound)
    last_usable = np.uint64(2**_BITS // bound * bound - 1)
    drawn = random_words(out.size)
    out[:] = drawn - drawn // divisor * divisor
    refused = np.flatnonzero(drawn > last_usable)
    if refused.size:
        again = np.empty(refused.size, dtype=np.int64)
        _fill(bound, again)
        out[refused] = again


def random_permutation(n: int) -> Integers:
    """The ``n`` numbers 0 ... n - 1 in an order drawn uniformly from all n! orders.

    Each number gets a random key in the high bits of one word and itself in the
    low bits; sorting the words sorts by key.  Numbers whose keys are equal are
    exchangeable, so their order among themselves is drawn again.

    >>> sorted(random_permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    count = check_size(n, name="n")
    index_bits = max(count - 1, 0).bit_length()
    mask = np.uint64(2**index_bits - 1)
    keyed = np.empty(count, dtype=np.uint64)
    step = 1 << 20
    for start in range(0, count, step):
        part = keyed[start : start + step]
        part[:] = random_words(part.size) & ~mask
        part |= np.arange(start, start + part.size, dtype=np.uint64)
    keyed.sort()
    for first, past in _equal_keys(keyed, index_bits):
        group = keyed[first:past].copy()
        keyed[first:past] = group[_short_permutation(past - first)]
    keyed &= mask
    return keyed.view(np.int64)


def _equal_keys(keyed: NDArray[Any], index_bits: int) -> list[tuple[int, int]]:
    """The runs of more than one word with the same key, as (first, past the last)."""
    shift, step = np.uint64(index_bits), 1 << 20
    runs: list[tuple[int, int]] = []
    for start in range(0, max(keyed.size - 1, 0), step):
        keys = keyed[start : start + step + 1] >> shift
        for index in (np.flatnonzero(keys[1:] == keys[:-1]) + start).tolist():
            if runs and runs[-1][1] == index + 1:
                runs[-1] = (runs[-1][0], index + 2)
            else:
                runs.append((index, index + 2))
    return runs


def _short_permutation(n: int) -> list[int]:
    """Fisher-Yates, for the handful of numbers that share a key."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        other = _draw_one(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def sample_without_replacement(n: int, k: int) -> Integers:
    """``k`` different numbers below ``n``, in random order; every such sequence is equally likely.

    >>> len(set(sample_without_replacement(1000, 30).tolist()))
    30
    """
    population = whole(n, name="n")
    wanted = check_size(k, name="k")
    if wanted > population:
        raise InvalidParameter(
            "P4",
            f"cannot choose {wanted} different numbers out of {population}.",
            why="a sample without replacement is never larger than what it is drawn from.",
            fix=f"ask for at most {population}.",
        )
    if wanted * 4 >= population:
        whole_order = random_permutation(population)
        return whole_order if wanted == population else whole_order[:wanted].copy()
    # Uniform draws with the repeats dropped: by symmetry every sequence is equally likely.
    chosen: Integers = np.empty(0, dtype=np.int64)
    while chosen.size < wanted:
        more = uniform_below(population, wanted - chosen.size)
        together = np.concatenate([chosen, more])
        first = np.unique(together, return_index=True)[1]
        chosen = together[np.sort(first)]
    return chosen


_BLOCK = 1024
_BITS = 64
_FAR = 600.0

Scores = Sequence[Exact] | NDArray[Any]


def exponential_choice(scores: Scores, rate: Exact, *, weights: Scores | None = None) -> int:
    """Index i with probability exactly proportional to weights[i] * exp(rate * scores[i]).

    ``scores`` are integers or rationals; ``weights`` (default: all one) are
    whole numbers of at least 1, such as the length of an interval of equally
    good outcomes.  ``rate`` is not below 0.

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
    ``scores`` has one for each candidate, and ``rate`` is not below 0.
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
