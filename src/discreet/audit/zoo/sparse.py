"""The sparse vector technique and its family of wrong variants.

Lyu, Su and Li (2017) list six algorithms under this name.  Their Algorithms 1
and 2 are right and stand here as twins (the kept and the renewed threshold);
3, 4, 5 and 6 are not, and are the specimens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import DiscreteLaplaceLaw, FiniteLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.mechanisms import Sparse
from discreet.mechanisms.sparse.law import transcript_law
from discreet.mechanisms.sparse.plan import Plan
from discreet.noise import discrete_laplace

EPSILON = Fraction(2)
_LIU = "Lyu, Su, Li (2017), Algorithm"

_HIGH, _LOWER = [12, 12, -10, -10], [13, 13, -11, -11]
"""Two queries above the threshold rise, two below it fall."""


def transcripts(
    threshold_scale: Fraction, query_scale: Fraction, cutoff: int, *, renew: bool = False
) -> Callable[[Sequence[int]], FiniteLaw]:
    """The law of the answers, by the scales of both noises."""
    plan = Plan(2, threshold_scale, query_scale, cutoff, renew, None, None)
    return lambda values: transcript_law(plan, values)


def kept(cutoff: int) -> Callable[[Sequence[int]], FiniteLaw]:
    """Lyu et al.'s Algorithm 1: one noisy threshold, noise 2 c / e2 on the queries."""
    return Sparse(threshold=2, cutoff=cutoff, sensitivity=1, epsilon=EPSILON, renew=False).law


def renewed(cutoff: int) -> Callable[[Sequence[int]], FiniteLaw]:
    """Their Algorithm 2, Dwork and Roth's: a fresh threshold after every "above"."""
    return Sparse(threshold=2, cutoff=cutoff, sensitivity=1, epsilon=EPSILON).law


def no_query_noise(values: Sequence[int]) -> FiniteLaw:
    """Algorithm 5: only the threshold is noisy, so the answers are those of one threshold.

    A threshold of t answers "above" to every value that is at least t: there is
    one outcome for each gap between the values.
    """
    noise = DiscreteLaplaceLaw(2, 2 / EPSILON)
    steps = sorted(set(values))
    outcomes = [tuple(v >= t for v in values) for t in [*steps, steps[-1] + 1]]

    def masses() -> list[arb]:
        gaps = zip([None, *(s + 1 for s in steps)], [*steps, None], strict=True)
        return [noise.between(low, high) for low, high in gaps]

    return FiniteLaw(tuple(outcomes), masses)


def shared_noise(values: Sequence[int]) -> FiniteLaw:
    """Query and threshold get the same draw, which cancels out."""
    return FiniteLaw.exact([(tuple(value >= 2 for value in values), 1)])


# --- numbers --------------------------------------------------------------------------------

_BELOW, _ENDED = -(10**6), -(2 * 10**6)
"""Marks for a query that was answered "below", and for one that was never asked."""


def _numeric(
    values: Sequence[int], size: int, *, threshold: int, query: int, fresh: int | None
) -> NDArray[np.int64]:
    """Algorithm 3 in one batch: a column for each query, and the first "above" ends the run.

    It publishes the noisy value that was compared.  With ``fresh`` noise instead,
    which is paid for, it is Dwork and Roth's NumericSparse.
    """
    exact, shape = np.asarray(values), (size, len(values))
    level = discrete_laplace(threshold, size)
    noisy = exact + discrete_laplace(query, size * len(values)).reshape(shape)
    above = noisy >= level[:, None]
    first = np.where(above.any(axis=1), above.argmax(axis=1), len(values))[:, None]
    again = noisy
    if fresh is not None:
        again = exact + discrete_laplace(fresh, size * len(values)).reshape(shape)
    index = np.arange(len(values))
    return np.where(index < first, _BELOW, np.where(index > first, _ENDED, again))


def _last_published(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value published for the last query after all others were below; else far up."""
    last = outputs[:, -1]
    return np.where((last != _BELOW) & (last != _ENDED), last, 10**6)


_PURE = Loss.pure(EPSILON)

ANIMALS = (
    Animal(
        "sparse vector 3: the compared value is published",
        "sparse vector",
        "the noise that decided is shown, and with it where the threshold was",
        f"{_LIU} 3 (Roth's lecture notes of 2011)",
        Check.GAME,
        _PURE,
        ([0] * 5 + [1], [1] * 5 + [0]),
        lambda values, size: _numeric(values, size, threshold=1, query=1, fresh=None),
        lambda values, size: _numeric(values, size, threshold=2, query=4, fresh=1),
        relation=CHANGED,
        view=_last_published,
    ),
    Animal(
        "sparse vector 4: the cutoff is not paid for",
        "sparse vector",
        "the noise of the queries does not grow with how many may be above",
        f"{_LIU} 4 (Lee and Clifton 2014)",
        Check.LAW,
        _PURE,
        (_HIGH, _LOWER),
        transcripts(4 / EPSILON, 4 / (3 * EPSILON), 2),
        kept(2),
        relation=CHANGED,
    ),
    Animal(
        "sparse vector 5: no noise on the queries",
        "sparse vector",
        "only the threshold is noisy: the order of the queries is told exactly",
        f"{_LIU} 5 (Stoddard, Chen, Machanavajjhala 2014)",
        Check.LAW,
        _PURE,
        ([5, 6], [6, 5]),
        no_query_noise,
        kept(2),
        relation=CHANGED,
    ),
    Animal(
        "sparse vector 6: no cutoff",
        "sparse vector",
        "it answers as often as it is asked, at the price of once",
        f"{_LIU} 6 (Chen, Xiao, Zhang, Xu 2015)",
        Check.LAW,
        _PURE,
        (_HIGH, _LOWER),
        transcripts(2 / EPSILON, 2 / EPSILON, 5),
        renewed(2),
        relation=CHANGED,
    ),
    Animal(
        "sparse vector without the 2",
        "sparse vector",
        "the queries get the noise for values that all rise together",
        "Dwork and Roth (2014), Algorithm 1: 4 / epsilon and not 2 / epsilon",
        Check.LAW,
        _PURE,
        ([12] * 4 + [-10], [13] * 4 + [-11]),
        transcripts(2 / EPSILON, 2 / EPSILON, 1),
        transcripts(2 / EPSILON, 4 / EPSILON, 1),
        relation=CHANGED,
    ),
    Animal(
        "sparse vector that goes on",
        "sparse vector",
        "after its one paid answer it starts over without a charge",
        "Dwork and Roth (2014), Theorem 3.25: every round is paid for",
        Check.LAW,
        _PURE,
        ([12, 12, -10] * 2, [13, 13, -11] * 2),
        Sparse(threshold=2, cutoff=2, sensitivity=1, epsilon=2 * EPSILON).law,
        renewed(2),
        relation=CHANGED,
    ),
    Animal(
        "reused threshold noise",
        "sparse vector",
        "the same draw is added to the threshold and to the query, and cancels out",
        "one generator state used twice; Lyu, Su, Li (2017), section 3 on what each noise is for",
        Check.LAW,
        _PURE,
        ([1], [2]),
        shared_noise,
        renewed(1),
        relation=CHANGED,
    ),
)

__all__ = ["ANIMALS"]
