"""The exponential mechanism over all candidates of a domain, scored by rank.

The score of a candidate z, for the quantile q = a / b of n values, is minus b
times the distance from q n to the interval [values below z, values up to z].
It rises up to a quantile and falls from there, so the candidates worth looking
at are one stretch.  The others are drawn for together, as one outcome at least
as likely as all of them, which is then accepted in the right proportion or
drawn again: the law is exact (``docs/proofs/quantiles.md``, Lemma 3), and in
practice that outcome never comes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet.mechanisms.grid import Integers
from discreet.mechanisms.quantiles.bit_reversal import RankedCells
from discreet.noise import bernoulli_exp, exponential_choice, uniform_below

_NEAR = 96
"""Candidates whose weight is below exp(-96) of the best are drawn for together."""


class Runs(NamedTuple):
    """Stretches of equally good candidates: where they start, how long they are, their score."""

    starts: Integers
    lengths: Integers
    scores: Integers


def choose_by_rank(cells: RankedCells, q: Fraction, rate: Fraction, least: int, most: int) -> int:
    """A whole number z from ``least`` to ``most``, with weight exp(rate * score of z)."""
    floor = math.ceil(_NEAR / rate)
    runs = score_runs(cells, q, least, most, floor=floor)
    low, high = int(runs.starts[0]), int(runs.starts[-1] + runs.lengths[-1]) - 1
    far = (most - least) - (high - low)
    scores, lengths = runs.scores, runs.lengths
    if far:  # every one of them scores less than -floor
        scores, lengths = np.append(scores, -floor - 1), np.append(lengths, far)
    while True:
        run = exponential_choice(scores, rate, weights=lengths)
        within = uniform_below(int(lengths[run])) if lengths[run] > 1 else 0
        if run < len(runs.scores):
            return int(runs.starts[run]) + within
        z = least + within if within < low - least else high + 1 + within - (low - least)
        if bernoulli_exp(rate * (-floor - 1 - score_at(cells, q, z))):
            return z


def score_at(cells: RankedCells, q: Fraction, z: int) -> int:
    """The score of one candidate."""
    target = q.numerator * cells.total
    below, upto = (q.denominator * cells.count_up_to(position) for position in (z - 1, z))
    return -max(0, below - target, target - upto)


def score_runs(
    cells: RankedCells, q: Fraction, least: int, most: int, *, floor: int | None
) -> Runs:
    """The candidates that score at least ``-floor`` (all without one), in order.

    At a position with values, those below it and up to it differ by their number;
    between two such positions they are the same, and so is the score.
    """
    b, total = q.denominator, cells.total
    target = q.numerator * total
    low, high = least, most
    # Values up to z, at least; and one more than the values below z, at most.
    first = 1 if floor is None else max(1, -((floor - target) // b))
    last = total if floor is None else min(total, (target + floor) // b + 1)
    at, upto, start = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 0
    if total:
        at, upto, start = cells.between_ranks(first, last)
        if floor is not None and floor < target:
            low = int(at[0])
        if floor is not None and (target + floor) // b < total:
            high = int(at[-1])
    upto = np.concatenate([[start], upto]) * b
    starts = np.empty(2 * len(at) + 1, dtype=np.int64)
    ends, scores = np.empty_like(starts), np.empty_like(starts)
    starts[0], starts[1::2], starts[2::2] = low, at, at + 1
    ends[:-1:2], ends[1::2], ends[-1] = at, at + 1, high + 1
    scores[::2] = -np.abs(upto - target)
    scores[1::2] = -np.maximum(np.maximum(upto[:-1] - target, target - upto[1:]), 0)
    some = ends > starts
    return Runs(starts[some], (ends - starts)[some], scores[some])
