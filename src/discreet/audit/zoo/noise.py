"""Noise of the wrong size, the wrong shape, or in the wrong arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import DiscreteGaussianLaw, DiscreteLaplaceLaw, FiniteLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import ADDED, CHANGED, Animal, Check
from discreet.exact.balls import ball, log_up, sqrt_down
from discreet.mechanisms import (
    Gaussian,
    HammingCube,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    TwoCoinResponse,
    median_distance,
)
from discreet.noise import discrete_gaussian, discrete_laplace
from discreet.noise.entropy import random_words

TOP = 40
"""Counts are shown within 0 ... TOP."""


def laplace(scale: Fraction | int) -> Callable[[int], DiscreteLaplaceLaw]:
    """The law of a whole number with discrete Laplace noise of ``scale``."""
    return lambda value: DiscreteLaplaceLaw(value, Fraction(scale))


def clamped(value: int, scale: Fraction, *, top: int = TOP) -> FiniteLaw:
    """Noise first, then what leaves 0 ... ``top`` is moved to its ends."""
    law = DiscreteLaplaceLaw(value, scale)

    def masses() -> list[arb]:
        inner = [law.mass(z) for z in range(1, top)]
        return [law.cdf(0), *inner, law.tail(top)]

    return FiniteLaw(tuple(range(top + 1)), masses)


def redrawn(value: int, scale: Fraction) -> FiniteLaw:
    """Noise drawn again until the answer lies within 0 ... TOP."""
    outcomes = range(TOP + 1)
    return FiniteLaw.proportional(
        outcomes, lambda: [ball(-abs(z - value) / scale).exp() for z in outcomes]
    )


def one_sided(value: int, scale: Fraction) -> FiniteLaw:
    """Negative noise is set to zero, so that no answer is below the truth."""
    law = DiscreteLaplaceLaw(value, scale)

    def mass(z: int) -> arb:
        if z < value:
            return arb(0)
        return law.cdf(value) if z == value else law.mass(z)

    return FiniteLaw(tuple(range(TOP + 1)), lambda: [*(mass(z) for z in range(TOP)), law.tail(TOP)])


def uniform(value: int, reach: int) -> FiniteLaw:
    """The truth plus a number from -reach ... reach, all equally likely."""
    share = Fraction(1, 2 * reach + 1)
    return FiniteLaw.exact([(value + z, share) for z in range(-reach, reach + 1)])


def cut_off(value: int, scale: Fraction, reach: int) -> FiniteLaw:
    """Laplace noise drawn again until it is at most ``reach``."""
    outcomes = range(value - reach, value + reach + 1)
    return FiniteLaw.proportional(
        outcomes, lambda: [ball(-abs(z - value) / scale).exp() for z in outcomes]
    )


# --- calibration ----------------------------------------------------------------------------

_LARGE = Loss.approximate(10, Fraction(1, 10**5))


def classic(value: int) -> DiscreteGaussianLaw:
    """sigma = sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, proved for epsilon < 1 only."""
    steps = 64
    variance = 2 * log_up(Fraction(5, 4) / _LARGE.delta) * steps**2 / Fraction(_LARGE.epsilon) ** 2
    return DiscreteGaussianLaw(steps * value, variance)


def analytic(value: int) -> Any:
    """The least variance for which the exact delta is small enough."""
    steps = 64
    noise = Gaussian.calibrated(
        sensitivity=steps, epsilon=Fraction(_LARGE.epsilon), delta=_LARGE.delta, entries_changed=1
    )
    return noise.law(steps * value)


_NARROW = Gaussian(sensitivity=3, rho=Fraction(1, 18))


def binary_formula(answer: int) -> FiniteLaw:
    """Truth with e**epsilon / (e**epsilon + 1), as for two answers, among four."""

    def masses() -> list[arb]:
        truth = ball(Fraction(1)).exp() / (ball(Fraction(1)).exp() + 1)
        return [truth if answer == other else (1 - truth) / 3 for other in range(4)]

    return FiniteLaw(tuple(range(4)), masses)


# --- noise in doubles -----------------------------------------------------------------------


def _uniforms(size: int) -> NDArray[np.float64]:
    """k / 2**53 for k = 1 ... 2**53: what every textbook calls a uniform number."""
    return ((random_words(size) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def float_laplace(true: float, size: int) -> NDArray[np.float64]:
    """A truth in doubles plus scale * log(u), with a sign."""
    sign = np.where(random_words(size) & np.uint64(1), 1.0, -1.0)
    return true + sign * -3.0 * np.log(_uniforms(size))


def float_gaussian(true: float, size: int) -> NDArray[np.float64]:
    """Box and Muller's method."""
    radius = np.sqrt(-2.0 * np.log(_uniforms(size)))
    return true + 3.0 * radius * np.cos(2 * math.pi * _uniforms(size))


def grid_laplace(true: float, size: int) -> NDArray[np.float64]:
    """The same law on multiples of 2**-10."""
    return (int(true * 1024) + discrete_laplace(3 * 1024, size)) / 1024.0


def grid_gaussian(true: float, size: int) -> NDArray[np.float64]:
    """The same variance on multiples of 2**-10."""
    return (int(true * 1024) + discrete_gaussian(9 * 1024**2, size)) / 1024.0


# --- noise that follows the data ------------------------------------------------------------

_MEDIAN = SmoothMedian(lower=2, upper=12, epsilon=3, delta=Fraction(1, 1000))
_TESTED = ProposeTestRelease(bound=5, epsilon=2, delta=Fraction(1, 10**6))
_CLOSE = [5] * 6 + [9] * 4
_TIED = [*_CLOSE, 9]


def _median(values: list[int]) -> int:
    return sorted(values)[(len(values) - 1) // 2]


def local_median(values: list[int]) -> DiscreteLaplaceLaw:
    """Noise for what one person could move the median of *these* values."""
    ordered, middle = sorted(values), (len(values) - 1) // 2
    local = max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1])
    return DiscreteLaplaceLaw(ordered[middle], Fraction(max(local, 1), 2))


def untested_noise(values: list[int]) -> FiniteLaw:
    """Propose, test, release with the true distance: it answers, or it certainly does not."""
    far = median_distance(values, lower=0, upper=100, bound=5)
    return FiniteLaw.exact([(_median(values) if far >= 1 else "refused", 1)])


def tested_noise(values: list[int]) -> Any:
    """The same with noise on the distance and on the value: whether it answers."""
    far = median_distance(values, lower=0, upper=100, bound=5)
    law = _TESTED.law(_median(values), distance=far)
    return FiniteLaw(("refused", "answered"), lambda: [law.mass(None), 1 - law.mass(None)])


_ONE = Fraction(1)

ANIMALS = (
    Animal(
        "scale upside down",
        "noise",
        "the scale is epsilon / sensitivity instead of sensitivity / epsilon",
        "a slip so common that every tutorial warns of it",
        Check.LAW,
        Loss.pure(Fraction(3, 2)),
        (40, 43),
        laplace(Fraction(1, 2)),
        laplace(2),
    ),
    Animal(
        "deviation taken for the scale",
        "noise",
        "the scale is chosen so that the standard deviation is sensitivity / epsilon",
        "Laplace noise of scale b has deviation b sqrt(2)",
        Check.LAW,
        Loss.pure(Fraction(3, 4)),
        (40, 43),
        laplace(sqrt_down(Fraction(8))),
        laplace(4),
    ),
    Animal(
        "deviation taken for the variance",
        "noise",
        "sigma is passed where sigma squared is meant",
        "noise functions differ in which of the two they take",
        Check.LAW,
        _NARROW.loss,
        (40, 43),
        lambda value: DiscreteGaussianLaw(value, Fraction(9)),
        _NARROW.law,
    ),
    Animal(
        "classic Gaussian above epsilon 1",
        "noise",
        "sqrt(2 ln(1.25 / delta)) / epsilon is used where it was never proved",
        "Balle and Wang (2018); Dwork and Roth (2014), Theorem A.1 needs epsilon < 1",
        Check.LAW,
        _LARGE,
        (0, 1),
        classic,
        analytic,
    ),
    Animal(
        "uniform noise",
        "noise",
        "all noise is equally likely, and the ends of its range give the truth away",
        "Adam and Wortmann (1989), output perturbation",
        Check.LAW,
        Loss.pure(Fraction(1, 2)),
        (10, 11),
        lambda value: uniform(value, 12),
        laplace(2),
    ),
    Animal(
        "noise cut off",
        "noise",
        "noise above a bound is drawn again, so an answer can exclude one world",
        "bounded noise sold as pure privacy; Geng, Ding, Guo, Kumar (2020) pay a delta for it",
        Check.LAW,
        Loss.pure(Fraction(1, 2)),
        (10, 11),
        lambda value: cut_off(value, Fraction(2), 15),
        laplace(2),
    ),
    Animal(
        "drawn again until plausible",
        "noise",
        "negative answers are drawn again, and how often depends on the truth",
        "google/differential-privacy issue 256; Holohan et al. (2020), bounded Laplace",
        Check.LAW,
        Loss.pure(Fraction(1, 2)),
        (0, 1),
        lambda value: redrawn(value, Fraction(2)),
        lambda value: clamped(value, Fraction(2)),
    ),
    Animal(
        "noise never negative",
        "noise",
        "the noise is clamped instead of the answer, which then is never below the truth",
        "user counts that must not shrink",
        Check.LAW,
        Loss.pure(Fraction(1, 2)),
        (3, 4),
        lambda value: one_sided(value, Fraction(2)),
        lambda value: clamped(value, Fraction(2)),
    ),
    Animal(
        "clamped to the size of the table",
        "noise",
        "the answer is clamped to 0 ... n, and n is what was to be hidden",
        "post-processing that reads the data again is no post-processing",
        Check.LAW,
        Loss.pure(Fraction(1, 2)),
        (9, 10),
        lambda size: clamped(size, Fraction(2), top=size),
        lambda size: clamped(size, Fraction(2)),
    ),
    Animal(
        "a tenth too little noise",
        "noise",
        "the scale is nine tenths of what epsilon = 1 needs",
        "the size of bug that Google's, Tumult's and this suite are made to see",
        Check.GAME,
        Loss.pure(_ONE),
        (0, 20),
        lambda value, size: value + discrete_laplace(18, size),
        lambda value, size: value + discrete_laplace(20, size),
    ),
    Animal(
        "a tenth too little noise, by its law",
        "noise",
        "the same sampler against the law it is said to follow",
        "Massart (1990) bounds the chance of a false alarm",
        Check.FIT,
        Loss.pure(_ONE),
        (0, 20),
        lambda size: discrete_laplace(18, size),
        lambda size: discrete_laplace(20, size),
        law=DiscreteLaplaceLaw(0, Fraction(20)),
    ),
    Animal(
        "rounded normal for a discrete one",
        "noise",
        "noise that is rounded towards zero has too much mass there",
        "int() in place of a discrete sampler; Canonne, Kamath, Steinke (2020)",
        Check.FIT,
        Loss.concentrated(Fraction(1, 18)),
        (0, 1),
        lambda size: np.trunc(float_gaussian(0.0, size)).astype(np.int64),
        lambda size: discrete_gaussian(9, size),
        law=DiscreteGaussianLaw(0, Fraction(9)),
    ),
    Animal(
        "Laplace noise in doubles",
        "noise",
        "which doubles can come out depends on what the noise was added to",
        "Mironov (2012); Haney et al. (2022); diffprivlib issue 94",
        Check.GRID,
        Loss.pure(Fraction(1, 3)),
        (0.0, 1.0),
        float_laplace,
        grid_laplace,
    ),
    Animal(
        "Gaussian noise in doubles",
        "noise",
        "the last bits of a sum of doubles tell which of the two was large",
        "Jin, McMurtry, Rubinstein, Ohrimenko (2022); prestodb/presto issue 23002",
        Check.GRID,
        Loss.concentrated(Fraction(1, 18)),
        (0.0, 1.0),
        float_gaussian,
        grid_gaussian,
    ),
    Animal(
        "two coins sold as ln 2",
        "noise",
        "with probability 1/2 the truth, else a coin: that is ln 3, not ln 2",
        "Warner (1965); Dwork and Roth (2014), section 3.2",
        Check.LAW,
        Loss.pure(Fraction(7, 10)),
        (True, False),
        TwoCoinResponse(truth=Fraction(1, 2)).law,
        RandomizedResponse(epsilon=Fraction(7, 10)).law,
        relation=CHANGED,
    ),
    Animal(
        "formula for two answers among four",
        "noise",
        "the truth is told as often as with two answers, and the others share what is left",
        "Kairouz, Oh, Viswanath (2014): e**epsilon / (e**epsilon + k - 1)",
        Check.LAW,
        Loss.pure(_ONE),
        (2, 3),
        binary_formula,
        RandomizedResponse(epsilon=1, categories=4).law,
        relation=CHANGED,
    ),
    Animal(
        "each bit flipped for itself",
        "noise",
        "an answer in unary code differs in two bits, and each is flipped at the full price",
        "Erlingsson, Pihur, Korolova (2014); Wang et al. (2017)",
        Check.LAW,
        Loss.pure(_ONE),
        ([1, 0, 0], [0, 0, 1]),
        HammingCube(sensitivity=1, epsilon=1).law,
        HammingCube(sensitivity=2, epsilon=1).law,
        relation=CHANGED,
    ),
    Animal(
        "local for smooth sensitivity",
        "noise",
        "the scale of the noise is the local sensitivity, which itself tells on a person",
        "Nissim, Raskhodnikova, Smith (2007), section 1",
        Check.LAW,
        _MEDIAN.loss,
        (_CLOSE, _TIED),
        local_median,
        _MEDIAN.law,
        relation=ADDED,
    ),
    Animal(
        "propose-test-release without the test's noise",
        "noise",
        "whether it answers at all depends on the exact distance",
        "Dwork and Lei (2009), step 2 left out",
        Check.LAW,
        _TESTED.loss,
        ([50] * 9 + [90] * 8, [50] * 9 + [90] * 9),
        untested_noise,
        tested_noise,
    ),
)

__all__ = ["ANIMALS", "TOP", "clamped", "laplace"]
