"""What it costs to improve what is known to what one payment would have bought.

By refining the noise of an earlier answer, where the truth is certain to be the same (the
difference in epsilon); else by a smaller measurement beside what is known, combined with it (the
difference in rho for Gaussian noise, the root of the difference of squares for Laplace).  What is
refined may be a finer table that the question is added up from (docs/proofs/known.md, Lemma 12).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.accounting.budget import Budget
from discreet.accounting.loss import INFINITY, Loss
from discreet.exact.numbers import round_up
from discreet.known.combine import Derivation
from discreet.known.derive import same_text
from discreet.known.released import Released
from discreet.mechanisms import Gaussian, Laplace
from discreet.price import Linear, Priced, Ratio
from discreet.price.calibration import Bought
from discreet.price.summed import Summed
from discreet.question.offer import Offer
from discreet.release.derived import Derived

NO_NOISE = Summed(())
"""Of a public number."""
WORTHWHILE = 0.05
"""What is known must be worth at least this part of what is wanted to be improved, not replaced."""
_ALIKE = 1.0005
"""A little more, so that rounded weights do not leave the answer short of what was asked."""
_STEP = Fraction(1, 10**7)


def find_parent(new: Priced, sources: Iterable[Released]) -> Released | None:
    """The best answer whose noise may be refined to that of ``new``: the very same measurements.

    All with Laplace noise of public groups, each with a larger scale than is wanted.
    """
    if new.threshold is not None or not new.plan.public_keys or not _is_laplace(new):
        return None
    fitting = [
        source
        for source in sources
        if _is_laplace(source.priced) and is_refinement(new, source.priced)
    ]
    return max(fitting, key=lambda source: source.priced.loss.epsilon, default=None)


def _is_laplace(priced: Priced) -> bool:
    """Whether all noise is Laplace's, and there is some: a public number has none."""
    noise = list_noise(priced)
    return bool(noise) and all(isinstance(mechanism, Laplace) for mechanism in noise)


def list_noise(priced: Priced) -> list[Bought]:
    """The mechanisms that draw something."""
    return [mechanism for mechanism in priced.mechanisms if mechanism != NO_NOISE]


def list_scales(priced: Priced) -> tuple[Fraction, ...]:
    """The scale of the noise of each measurement; 0 where there is none."""
    return tuple(m.scale if isinstance(m, Laplace) else Fraction(0) for m in priced.mechanisms)


def price_refinement(before: Loss, after: Loss) -> Loss:
    """What a refinement costs: the epsilon it adds, and half the square of all epsilon as rho.

    The difference of the rhos would not do: docs/proofs/known.md, Lemma 8.

    >>> loss = price_refinement(Loss.pure("0.1"), Loss.pure("0.3"))
    >>> loss.epsilon, loss.rho
    (Fraction(1, 5), Fraction(9, 200))
    """
    if INFINITY in (before.epsilon, after.epsilon):
        raise TypeError("only pure losses are refined")
    # As they are charged: rounded up, each by itself.
    first, last = Fraction(before.rounded().epsilon), Fraction(after.rounded().epsilon)
    return Loss(last - first, round_up(last * last / 2, _STEP * _STEP))


def can_be_refined(priced: Priced) -> bool:
    """Whether its noise may be refined at all: Laplace noise of public groups, of a pure loss."""
    return (
        priced.threshold is None
        and priced.plan.public_keys
        and priced.loss.epsilon != INFINITY
        and _is_laplace(priced)
    )


def is_refinement(finer: Priced, of: Priced) -> bool:
    """Whether it is the same measurement with less noise on every number, which costs more.

    Since prices have fallen, less noise may be had for less than an earlier answer has cost:
    that is bought anew, for nothing is given back.
    """
    return (
        can_be_refined(finer)
        and finer.loss.rounded().epsilon > of.loss.rounded().epsilon
        and same_text((finer.plan, finer.recipes)) == same_text((of.plan, of.recipes))
        and all(
            a > b or a == b == 0 for a, b in zip(list_scales(of), list_scales(finer), strict=True)
        )
    )


def reprice(derivation: Derivation, priced: Priced) -> Derivation:
    """The same numbers, of the source at another price: how it would be read once it is there."""
    source = replace(derivation[0].source, id=0, chain=(), priced=priced)
    return tuple(replace(reading, source=source) for reading in derivation)


def list_others(derivation: Derivation, derivations: Sequence[Derivation]) -> list[Derivation]:
    """Those that share no noise with one, and may be combined with what it is refined to."""
    source = derivation[0].source
    return [one for one in derivations if not one[0].source.shares_noise(source)]


def measure_use(budget: Budget, spent: Loss, charge: Loss) -> float:
    """Which part of a budget is used after a charge, by the filter that has more left.

    >>> measure_use(Budget(epsilon=2), Loss.pure("0.3"), Loss.pure("0.2"))
    0.25
    """
    most_epsilon, most_rho = budget.countable
    after = spent + charge
    pairs = ((after.epsilon, most_epsilon or 0), (after.rho, most_rho))
    return min((float(used) / float(most) for used, most in pairs if most), default=math.inf)


def spare(known: Derived, target: Priced) -> float:
    """Which part of the wanted accuracy is known: wanted variance over known, the least of all."""
    least = 1.0
    for index, recipe in enumerate(target.recipes):
        bought = target.mechanisms[recipe.measurement]
        read = known.priced.recipes[index]
        laws = known.laws[read.measurement]
        wanted = float(getattr(bought, "variance", 0.0))
        if isinstance(recipe, Linear) and isinstance(read, Linear):
            wanted *= sum(float(c) ** 2 for c in recipe.coefficients)
            sizes = [law.combine(read.coefficients).variance for law in set(laws)]
        elif isinstance(recipe, Ratio) and isinstance(read, Ratio):
            wanted /= float(recipe.moments.weight) ** 2
            sizes = [law.variance / float(read.moments.weight) ** 2 for law in set(laws)]
        else:  # bins are not combined
            return 0.0
        worst = max(sizes)
        least = min(least, wanted / worst if worst > 0 else 1.0)
    return least


def split_offer(spend: Offer, target: Priced, known: float) -> Offer | None:
    """What is still to be offered where a part of the accuracy is ``known``; None if all of it.

    Inverse variances add up: with Gaussian noise they are proportional to rho, with Laplace
    noise to the square of epsilon.
    """
    if known < WORTHWHILE:
        return None
    missing = Fraction(max(0.0, 1 - known)).limit_denominator(10**12)
    plain = replace(spend, within=(), epsilon=None, rho=None, fresh=False)
    if _is_laplace(target):
        scales = [scale for scale in list_scales(target) if scale]
        share = max(_laplace_share(float(missing), 1 / float(s)) for s in scales)
        exact = Fraction(share * _ALIKE).limit_denominator(10**12)
        return replace(plain, epsilon=round_up(exact * Fraction(target.loss.epsilon), _STEP))
    if all(isinstance(mechanism, Gaussian) for mechanism in list_noise(target)):
        if target.loss.rho == INFINITY or target.loss.epsilon != INFINITY:
            return None  # charged by its curve, of which nothing can be subtracted
        part = missing * Fraction(_ALIKE).limit_denominator(10**6)
        return replace(plain, rho=round_up(part * Fraction(target.loss.rho), _STEP), delta=None)
    return None


def _laplace_share(missing: float, rate: float) -> float:
    """Which part of the epsilon buys a part of the inverse variance, 2 sinh(rate / 2)**2."""
    if rate > 100:  # noise that is next to none
        return 1.0
    return 2 * math.asinh(math.sqrt(missing) * math.sinh(rate / 2)) / rate


__all__ = [
    "WORTHWHILE",
    "can_be_refined",
    "find_parent",
    "is_refinement",
    "list_noise",
    "list_others",
    "list_scales",
    "measure_use",
    "price_refinement",
    "reprice",
    "spare",
    "split_offer",
]
