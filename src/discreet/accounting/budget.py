"""What may be lost, and whether the next charge still fits.

A budget is a *filter*: before every charge it looks at what was spent and at
what is asked, never at the data, and says yes or no.  Everything may be chosen
adaptively (which mechanism, at what price, when to stop) and the whole
interaction keeps the budget's promise.  The proof is docs/proofs/filters.md.

``Budget(epsilon=3, delta="1e-9")`` admits a charge when the failure masses fit
into their share of delta and **either** the epsilons add up to at most epsilon
(pure filter) **or** the rhos add up to at most the rho that converts into
(epsilon, the rest of delta) (concentrated filter).  Nobody has to choose.

The share of delta that charges may use up as their own failure mass is fixed
beforehand (``failures``).  Were it decided along the way, an analyst could spend
delta twice: on failures where the answers so far happened to look harmless, and
on the conversion where they did not (filters.md, Lemma 5).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.conversion import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, largest_rho
from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw, IntegerLaw
from discreet.accounting.loss import NOTHING, Amount, Loss, failure_mass
from discreet.errors import InvalidParameter, quote_value
from discreet.exact.balls import enclose
from discreet.exact.numbers import Exact, decimal_up, fraction, positive, proportion, whole
from discreet.exact.records import dataclass
from discreet.exact.search import greatest_integer

SATURATED: Final = 2**62 - 1
"""Units from which on an amount counts as infinite where it is kept in 64 bits."""

COUNTED: Final = Fraction(SATURATED - 1, EPSILON_UNITS)
"""The most epsilon, and the most rho, that an account counts: about 1830, whatever the budget is.
Who is promised more than that is promised nothing; the ceiling is that of arithmetic."""

REFUSED_DELTA: Final = Fraction(1, 100)
"""From here on a delta is refused, whatever the population is, unless it is insisted on."""
WARNED_DELTA: Final = Fraction(1, 10**5)
"""Above this a delta is warned of where nobody said how many units there are."""


class LargeDelta(UserWarning):
    """A delta that may allow what nobody meant to allow."""


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """A promise of (epsilon, delta), or of rho, to every person in the data.

    ``failures`` is the part of delta that single releases may use up, a tenth if left out;
    ``accept_large_delta`` insists on a delta that may let somebody be published.

    >>> budget = Budget(epsilon=3, delta="1e-9")
    >>> question = Loss.laplace(sensitivity=2, scale=100)
    >>> spent = 500 * question
    >>> budget.admits(spent, question), budget.admits(2 * spent, question)
    (True, False)

    Summed as pure losses the 500 questions would already cost 10; summed as
    concentrated ones they fit into epsilon = 3.
    """

    epsilon: Fraction | None
    """The bound promised, or ``None`` for a budget of rho alone."""
    delta: Fraction
    """How much probability the bound of epsilon may miss by, everything included."""
    rho: Fraction
    """The most that the rhos of an adaptive session may add up to."""
    failures: Fraction
    """The share of delta that charges may use up as their own delta."""
    accept_large_delta: bool = field(repr=False, compare=False)
    """Whether it was insisted on, in so many words, that delta may let somebody be published."""
    _ceilings: tuple[int, int, int, int, int] = field(repr=False, compare=False)

    def __init__(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        failures: Exact | None = None,
        accept_large_delta: bool = False,
    ) -> None:
        self._make(epsilon, delta, rho, failures, accept_large_delta)
        if self.delta >= REFUSED_DELTA and not self.accept_large_delta:
            raise _too_large(self.delta, "a hundredth or more")

    @classmethod
    def recorded(
        cls,
        *,
        epsilon: Exact | None = None,
        delta: Exact = 0,
        rho: Exact | None = None,
        failures: Exact | None = None,
        accept_large_delta: bool = False,
    ) -> Self:
        """A budget written down before, whose delta is not objected to here.

        ``epsilon``, ``delta``, ``rho``, ``failures`` and ``accept_large_delta`` are a budget's own.

        Whoever promises it anew calls :meth:`check_delta`.
        """
        made = cls.__new__(cls)
        made._make(epsilon, delta, rho, failures, accept_large_delta)
        return made

    def _make(
        self,
        epsilon: Exact | None,
        delta: Exact,
        rho: Exact | None,
        failures: Exact | None,
        accept_large_delta: bool,
    ) -> None:
        if not isinstance(accept_large_delta, bool):
            raise InvalidParameter(
                "P4",
                f"accept_large_delta must be true or false, got {quote_value(accept_large_delta)}.",
                why="what lets somebody be published is not decided by accident.",
                fix="leave it out, or say accept_large_delta=True.",
            )
        if (epsilon is None) == (rho is None):
            raise InvalidParameter(
                "P4",
                "a budget is either epsilon (with a delta) or rho.",
                why="two promises at once leave open which one a person was given.",
                fix="Budget(epsilon=3, delta='1e-9'), or Budget(rho='0.2').",
            )
        mass = failure_mass(delta)
        if rho is not None:
            promise, ceiling, share = None, positive(rho, name="rho"), _share(failures, mass, mass)
        else:
            promise, share = (
                positive(epsilon or 0, name="epsilon"),
                _share(failures, mass, mass / 10),
            )
            ceiling = largest_rho(promise, mass - share)
        for name, value in (
            ("epsilon", promise),
            ("delta", mass),
            ("rho", ceiling),
            ("failures", share),
            ("accept_large_delta", accept_large_delta),
            ("_ceilings", _ceilings(promise, mass, ceiling, share)),
        ):
            object.__setattr__(self, name, value)

    def check_delta(self, population: int | None) -> None:
        """Refuse, or warn of, a delta that is about to be promised to ``population`` units.

        To publish one unit's rows, drawn at random, and nothing else is
        (0, 1/population)-differentially private: a delta as large as that promises
        nobody anything.  How many units there are is public, or None if not declared.

        >>> Budget(epsilon=3, delta="1e-3").check_delta(population=2000)
        Traceback (most recent call last):
        ...
        discreet.errors.InvalidParameter: P10: delta = 0.001 is too large: it is 1/n or more,
        where n = 2,000 are declared.
        Why: a mechanism that publishes all rows of one person, drawn at random among n, has
        delta = 1/n.
        Fix: choose a delta far below one in the number of people, such as '1e-9'; or insist:
        accept_large_delta=True (in a file, accept_large_delta = true).
        """
        if self.accept_large_delta:
            return
        if population is not None and self.delta * population >= 1:
            raise _too_large(self.delta, f"1/n or more, where n = {population:,} are declared")
        if self.delta >= REFUSED_DELTA:
            raise _too_large(self.delta, "a hundredth or more")
        if population is None and self.delta > WARNED_DELTA:
            warnings.warn(
                f"delta = {decimal_up(self.delta)} is large: {_PUBLISHED} Declare the population "
                "in the schema, or choose a smaller delta.",
                LargeDelta,
                stacklevel=2,
            )

    @property
    def countable(self) -> tuple[Fraction | None, Fraction]:
        """The most epsilon, and the most rho, that an account admits in all under this budget.

        >>> epsilon, rho = Budget(epsilon=5000, delta="1e-9").countable
        >>> round(float(epsilon), 2), round(float(rho), 2)
        (1830.03, 1830.03)
        """
        epsilon = None if self.epsilon is None else min(self.epsilon, COUNTED)
        return epsilon, min(self.rho, COUNTED)

    def admits(self, spent: Loss, next: Loss) -> bool:  # noqa: A002 (the word of the proof)
        """Whether ``next`` may be charged after ``spent``; public knowledge only.

        Compares whole units, each charge rounded up as it will be stored, so the
        time taken does not depend on how many charges there were.
        """
        epsilon, rho, delta = _total(spent, next)
        most_epsilon, most_rho, most_failures, most_delta, whole_rho = self._ceilings
        pure = epsilon is not None and epsilon <= most_epsilon
        if delta <= most_failures and (pure or (rho is not None and rho <= most_rho)):
            return True
        # One release may take the budget whole, by the sharper of the two bounds: nothing came
        # before, so nothing was chosen, and nothing can follow (filters.md, Lemma 4).
        if spent != NOTHING:
            return False
        return (pure and delta <= most_delta) or (
            delta == 0 and rho is not None and rho <= whole_rho
        )

    def admits_units(
        self, spent: NDArray[np.int64], charge: tuple[int, int, int]
    ) -> NDArray[np.bool_]:
        """``admits`` for many accounts at once: row i of ``spent`` holds coordinate i, in units.

        So does ``charge``, of the one loss that is to be added to each.

        ``SATURATED`` and more is infinite.  An account that reached it admits nothing
        on that coordinate ever again, so that saturation is on the safe side.

        >>> budget = Budget(epsilon=3, delta="1e-9")
        >>> spent = np.zeros((3, 2), dtype=np.int64)
        >>> spent[:, 1] = saturate(Loss.pure("2.9"))
        >>> budget.admits_units(spent, saturate(Loss.pure("0.2")))
        array([ True, False])
        """
        most_epsilon, most_rho, most_failures, most_delta, whole_rho = (
            min(ceiling, SATURATED - 1) for ceiling in self._ceilings
        )
        # Both terms are at most SATURATED < 2**62, so their sum fits into 64 bits.
        epsilon, rho, delta = (spent[i] + charge[i] for i in range(3))
        pure, concentrated = epsilon <= most_epsilon, rho <= most_rho
        admitted: NDArray[np.bool_] = (delta <= most_failures) & (pure | concentrated)
        if admitted.all():
            return admitted
        untouched = (spent == 0).all(axis=0)  # one release may take the budget whole (Lemma 4)
        alone = pure & (delta <= most_delta)
        if charge[2] == 0:
            alone |= rho <= whole_rho
        admitted |= untouched & alone
        return admitted

    def remaining(self, spent: Loss, *, within: int = 50, confidence: Exact = "0.95") -> Remaining:
        """What is left after ``spent``, as an analyst would ask: how many more counts?

        Counts that are ``within`` so much of the truth at ``confidence``.

        >>> budget = Budget(epsilon=3, delta="1e-9")
        >>> print(budget.remaining(20 * Loss.laplace(sensitivity=2, scale=25)))
        Enough for 75 more counts within ±50 at 95 % confidence.
        Left: ε 1.4 of 3 by pure accounting, ρ 0.0572012 of 0.119938 by concentrated accounting,
        δ 0.0000000001 for releases that may fail.
        """
        distance = whole(within, name="within", least=1)
        certainty = proportion(confidence, name="confidence")
        counts = max(self.repeats(spent, count) for count in _counts(distance, 1 - certainty))
        most_epsilon, most_rho = self.countable
        epsilon = None if most_epsilon is None else _subtract_spent(most_epsilon, spent.epsilon)
        return Remaining(
            counts=counts,
            within=distance,
            confidence=certainty,
            epsilon=epsilon,
            rho=_subtract_spent(most_rho, spent.rho),
            delta=_subtract_spent(self.failures, spent.delta),
            budget=self,
        )

    def repeats(self, spent: Loss, count: Loss) -> int:
        """How many times ``count`` is admitted after ``spent``, one after the other.

        >>> Budget(epsilon=3, delta="1e-9").repeats(Loss.pure("0.9"), Loss.pure("0.7"))
        3
        """
        epsilon, rho, delta = spent.to_units()
        one_epsilon, one_rho, _ = count.to_units()
        most_epsilon, most_rho, most_failures, _, _ = (
            min(ceiling, SATURATED - 1) for ceiling in self._ceilings
        )
        if delta > most_failures:
            return 0
        times = [0]
        if epsilon is not None and one_epsilon is not None:
            times.append((most_epsilon - epsilon) // one_epsilon)
        if rho is not None and one_rho is not None:
            times.append((most_rho - rho) // one_rho)
        return max(times)

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"ρ = {decimal_up(self.rho)}, δ = {decimal_up(self.delta)}"
        return f"ε = {decimal_up(self.epsilon)}, δ = {decimal_up(self.delta)}"


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a budget still pays for; ``str`` says it in words.

    ``counts`` is how many more counting questions, each within ``within`` of the truth at
    ``confidence``.  ``epsilon``, ``rho`` and ``delta`` are what is left of ``budget`` for the sum
    of epsilons (None for a budget of rho alone), for that of rhos, and for the failure masses of
    single charges.
    """

    counts: int
    within: int
    confidence: Fraction
    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction
    budget: Budget

    def __str__(self) -> str:
        questions = f"{self.counts:,} more counts" if self.counts != 1 else "1 more count"
        first = f"Enough for {questions}" if self.counts else "Not enough for another count"
        percent = _down_text(100 * self.confidence)
        left = []
        if self.epsilon is not None and self.budget.epsilon is not None:
            of = decimal_up(self.budget.epsilon)
            left.append(f"ε {_down_text(self.epsilon)} of {of} by pure accounting")
        if self.budget.rho:
            of = _down_text(self.budget.rho)
            left.append(f"ρ {_down_text(self.rho)} of {of} by concentrated accounting")
        if self.budget.failures:
            left.append(f"δ {_down_text(self.delta)} for releases that may fail")
        counted = ""
        if max(self.budget.epsilon or 0, self.budget.rho) > COUNTED:
            counted = f"\nNo account counts beyond an ε, or a ρ, of {_down_text(COUNTED)}."
        return (
            f"{first} within ±{self.within:,} at {percent} % confidence.\n"
            f"Left: {', '.join(left)}.{counted}"
        )


# --- whole units ---------------------------------------------------------------------------


def _share(failures: Exact | None, delta: Fraction, default: Fraction) -> Fraction:
    share = default if failures is None else fraction(failures, name="failures")
    if not 0 <= share <= delta:
        raise InvalidParameter(
            "P2",
            f"failures must be from 0 to delta = {decimal_up(delta)}, got {decimal_up(share)}.",
            why="it is the part of delta that releases may use up by failing outright.",
            fix="pass a part of delta, such as half of it, or leave it out.",
        )
    return share


def _ceilings(
    epsilon: Fraction | None, delta: Fraction, rho: Fraction, failures: Fraction
) -> tuple[int, int, int, int, int]:
    """The most units of epsilon, rho, failures, delta, and of rho for a single release."""
    # A budget of rho alone needs no pure filter: rho is superadditive (loss.md, Lemma 3).
    whole_rho = rho if epsilon is None else largest_rho(epsilon, delta)
    return (
        -1 if epsilon is None else math.floor(epsilon * EPSILON_UNITS),
        math.floor(rho * RHO_UNITS),
        math.floor(failures * DELTA_UNITS),
        math.floor(delta * DELTA_UNITS),
        math.floor(whole_rho * RHO_UNITS),
    )


def saturate(loss: Loss) -> tuple[int, int, int]:
    """Whole units of epsilon, rho and delta, rounded up; infinite and huge are ``SATURATED``."""
    epsilon, rho, delta = loss.to_units()
    return (
        SATURATED if epsilon is None else min(epsilon, SATURATED),
        SATURATED if rho is None else min(rho, SATURATED),
        min(delta, SATURATED),
    )


def _total(spent: Loss, charge: Loss) -> tuple[int | None, int | None, int]:
    epsilon, rho, delta = spent.to_units()
    more_epsilon, more_rho, more_delta = charge.to_units()
    return (
        None if epsilon is None or more_epsilon is None else epsilon + more_epsilon,
        None if rho is None or more_rho is None else rho + more_rho,
        delta + more_delta,
    )


_PUBLISHED = (
    "a mechanism that publishes all rows of one person, drawn at random among n, has delta = 1/n."
)


def _too_large(delta: Fraction, limit: str) -> InvalidParameter:
    return InvalidParameter(
        "P10",
        f"delta = {decimal_up(delta)} is too large: it is {limit}.",
        why=_PUBLISHED,
        fix="choose a delta far below one in the number of people, such as '1e-9'; or insist: "
        "accept_large_delta=True (in a file, accept_large_delta = true).",
    )


# --- words ---------------------------------------------------------------------------------


def _subtract_spent(most: Fraction, spent: Amount) -> Fraction:
    return Fraction(0) if isinstance(spent, float) else max(Fraction(0), most - spent)


def _down_text(amount: Fraction) -> str:
    """What is left, rounded down: never more than there is."""
    return decimal_up(-amount).removeprefix("-")


@lru_cache(maxsize=256)
def _counts(within: int, beta: Fraction) -> tuple[Loss, Loss]:
    """The cheapest Laplace and Gaussian counts that miss by more than ``within`` at most beta."""

    def misses(law: IntegerLaw) -> bool:
        return enclose(lambda: 2 * law.tail(within + 1))[1] > beta

    scale = _largest(lambda x: misses(DiscreteLaplaceLaw(0, x)), within)
    sigma_squared = _largest(lambda x: misses(DiscreteGaussianLaw(0, x)), within**2)
    return (
        Loss.laplace(sensitivity=1, scale=scale),
        Loss.gaussian(sensitivity=1, sigma_squared=sigma_squared),
    )


def _largest(fails: Callable[[Fraction], bool], start: int) -> Fraction:
    """Just below the least parameter that fails; ``fails`` is monotone and fails far above."""
    unit = Fraction(start, 2**20)
    while fails(unit):
        unit /= 2**20
    return greatest_integer(lambda n: not fails(n * unit), holds_at=1) * unit
