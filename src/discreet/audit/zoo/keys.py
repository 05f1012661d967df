"""Thresholds for keys that only the data knows: what one person's own key gives away."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.accounting.law import DiscreteLaplaceLaw, FiniteLaw, Law, ProductLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import Animal, Check
from discreet.exact.balls import ball, enclose, floor_scaled
from discreet.exact.search import least_integer

EPSILON = Fraction(1)
DELTA = Fraction(1, 750)


def _noise(people: int) -> DiscreteLaplaceLaw:
    return DiscreteLaplaceLaw(people, 1 / EPSILON)


def least_threshold(delta: Fraction = DELTA) -> int:
    """The least t with P(1 + Z > t) <= delta, from the exact tail."""
    return least_integer(lambda t: enclose(lambda: _noise(1).tail(t + 1))[1] <= delta, fails_at=0)


def shown_above(threshold: int) -> Callable[[int], FiniteLaw]:
    """Shown if the noisy count is greater than ``threshold``; a key of nobody is never shown."""

    def law(people: int) -> FiniteLaw:
        def masses() -> list[arb]:
            shown = _noise(people).tail(threshold + 1) if people else arb(0)
            return [shown, 1 - shown]

        return FiniteLaw((True, False), masses)

    return law


def continuous_threshold() -> int:
    """The last whole number below 1 + ln(1 / (2 delta)) / epsilon, the threshold on the reals."""
    return 1 + floor_scaled(lambda: (1 / ball(2 * DELTA)).log() / ball(EPSILON), 0)


def by_true_count(people: int) -> FiniteLaw:
    """Shown from five people on, and no noise."""
    return FiniteLaw.exact([(people >= 5, 1)])


def three_keys(threshold: int) -> Callable[[int], Law]:
    """One person brings three new keys."""
    rule = shown_above(threshold)
    return lambda people: ProductLaw((rule(people),) * 3)


_PROMISE = Loss.approximate(EPSILON, DELTA)
_THREE = Loss.approximate(3 * EPSILON, DELTA)

ANIMALS = (
    Animal(
        "at least for greater than",
        "keys",
        "a noisy count equal to the threshold is shown, and delta does not count it",
        "opendp issue 2922",
        Check.LAW,
        _PROMISE,
        (0, 1),
        shown_above(least_threshold() - 1),
        shown_above(least_threshold()),
    ),
    Animal(
        "threshold off by the person's own one",
        "keys",
        "the threshold is the tail of the noise and forgets the one that the person adds",
        "Korolova et al. (2009): 1 + ln(1 / (2 delta)) / epsilon, with the 1 left out",
        Check.LAW,
        _PROMISE,
        (0, 1),
        shown_above(least_threshold() - 2),
        shown_above(least_threshold()),
    ),
    Animal(
        "threshold of the reals for whole noise",
        "keys",
        "the tail of whole noise is heavier than half an exponential",
        "Wilson et al. (2020), Theorem 2, used with geometric noise",
        Check.LAW,
        _PROMISE,
        (0, 1),
        shown_above(continuous_threshold()),
        shown_above(least_threshold()),
    ),
    Animal(
        "delta of one key for three",
        "keys",
        "one person brings three new keys, each of which is shown with probability delta",
        "Wilson et al. (2020): the threshold needs delta for all keys of one person together",
        Check.LAW,
        _THREE,
        (0, 1),
        three_keys(least_threshold()),
        three_keys(least_threshold(DELTA / 3)),
    ),
    Animal(
        "shown by the true count",
        "keys",
        "keys of at least five people are shown, with certainty",
        "k-anonymity; Sweeney (2002)",
        Check.LAW,
        _PROMISE,
        (4, 5),
        by_true_count,
        shown_above(least_threshold()),
    ),
)

__all__ = ["ANIMALS", "least_threshold"]
