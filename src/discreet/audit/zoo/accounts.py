"""Sound releases whose sum is not what was charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.accounting.law import DiscreteLaplaceLaw, FiniteLaw, Law, ProductLaw
from discreet.accounting.loss import Loss
from discreet.audit.zoo.animal import CHANGED, Animal, Check
from discreet.exact.balls import ball, enclose, sqrt_down
from discreet.mechanisms import Gaussian
from discreet.noise import discrete_laplace

EPSILON = Fraction(1, 2)


def together(*scales: Fraction) -> Callable[[int], Law]:
    """Independent answers about one number, each with noise of its own scale."""
    return lambda value: ProductLaw(tuple(DiscreteLaplaceLaw(value, scale) for scale in scales))


# --- moments --------------------------------------------------------------------------------


def moments(share: Fraction) -> Callable[[list[int]], Law]:
    """Count, sum and sum of squares of values in 0 ... 3, each for ``share`` of epsilon."""

    def law(values: list[int]) -> Law:
        sums = (len(values), 1), (sum(values), 3), (sum(v * v for v in values), 9)
        return ProductLaw(
            tuple(DiscreteLaplaceLaw(s, reach / (share * EPSILON)) for s, reach in sums)
        )

    return law


# --- sampling -------------------------------------------------------------------------------

_RATE = Fraction(1, 10)
_EACH = Fraction(2)
_REACH = 60


def _amplified() -> Fraction:
    """ln(1 + rate (e**epsilon - 1)), rounded up."""

    def value() -> arb:
        grown = 1 + ball(_RATE) * ball(_EACH).expm1()
        return grown.log()

    return enclose(value)[1]


def _table(mass: Callable[[int], arb]) -> FiniteLaw:
    """A law on -60 ... 60."""
    outcomes = tuple(range(-_REACH, _REACH + 1))
    return FiniteLaw(outcomes, lambda: [mass(z) for z in outcomes])


def _folded(law: DiscreteLaplaceLaw, z: int) -> arb:
    """The mass at z, with the tails folded into the ends."""
    if z == -_REACH:
        return law.cdf(z)
    return law.tail(z) if z == _REACH else law.mass(z)


def not_sampled(people: int) -> FiniteLaw:
    """All rows are used, and the discount of sampling is taken all the same."""
    law = DiscreteLaplaceLaw(people, 1 / _EACH)
    return _table(lambda z: _folded(law, z))


def sampled(people: int) -> FiniteLaw:
    """The person, if there, is in the sample with probability 1/10."""
    without, with_one = DiscreteLaplaceLaw(0, 1 / _EACH), DiscreteLaplaceLaw(people, 1 / _EACH)
    return _table(
        lambda z: ball(1 - _RATE) * _folded(without, z) + ball(_RATE) * _folded(with_one, z)
    )


def publish_one(rows: int) -> Callable[[bool], FiniteLaw]:
    """All that is said is one row, drawn at random; whether it is this person's, and what it holds.

    Delta is one in ``rows``, at every epsilon.
    """

    def law(ill: bool) -> FiniteLaw:
        shown = Fraction(1, rows)
        outcomes = (("ill", shown * ill), ("well", shown * (not ill)), ("another row", 1 - shown))
        return FiniteLaw.exact(list(outcomes))

    return law


# --- noise and charges over time ------------------------------------------------------------

_SCALE = 20


def cached_noise(days: tuple[int, int], size: int) -> NDArray[np.int64]:
    """The noise is kept with the question; the data grew by one person overnight."""
    noise = discrete_laplace(_SCALE, size)
    return np.column_stack([days[0] + noise, days[1] + noise])


def fresh_noise(days: tuple[int, int], size: int) -> NDArray[np.int64]:
    """Each day's answer has its own noise."""
    return np.column_stack([day + discrete_laplace(_SCALE, size) for day in days])


def shared_draw(value: int, size: int) -> NDArray[np.int64]:
    """Count and sum get the same draw: their difference is exact."""
    noise = discrete_laplace(_SCALE, size)
    return np.column_stack([value + noise, 7 * value + noise])


def own_draws(value: int, size: int) -> NDArray[np.int64]:
    """Count and sum get noise of their own, each for its own sensitivity."""
    count, total = discrete_laplace(2 * _SCALE, size), discrete_laplace(14 * _SCALE, size)
    return np.column_stack([value + count, 7 * value + total])


def apart(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The second answer minus the first."""
    return outputs[:, 1] - outputs[:, 0]


def running_sums(counts: Sequence[int], size: int) -> NDArray[np.int64]:
    """Every running sum with the noise of one count: a person of the first day is in them all."""
    noise = discrete_laplace(_DAY, size * len(counts)).reshape(size, -1)
    return np.cumsum(counts) + noise


def summed_noise(counts: Sequence[int], size: int) -> NDArray[np.int64]:
    """Running sums of noisy counts: each person is in one count."""
    noise = discrete_laplace(_DAY, size * len(counts)).reshape(size, -1)
    return np.cumsum(np.array(counts) + noise, axis=1)


def shared_running(counts: Sequence[int], size: int) -> NDArray[np.int64]:
    """One draw for all running sums: their differences are exact."""
    return np.cumsum(counts) + discrete_laplace(_DAY * len(counts), size)[:, None]


_DAY, _WEEK = 2, [5] * 7
_ASKED = 40


def uncharged(value: int, size: int) -> NDArray[np.int64]:
    """Forty equal questions, of which one is charged: the analyst averages."""
    noise = discrete_laplace(_SCALE, size * _ASKED).reshape(size, -1)
    return np.asarray(_ASKED * value + noise.sum(axis=1))


def charged(value: int, size: int) -> NDArray[np.int64]:
    """The first answer is stored and given again; the budget allows no other."""
    return _ASKED * (value + discrete_laplace(_SCALE, size))


def seeded(value: int, size: int) -> NDArray[np.int64]:
    """The generator starts from the same seed in every process."""
    return np.full(size, value + 3)


def unseeded(value: int, size: int) -> NDArray[np.int64]:
    """Fresh bits from the operating system."""
    return value + discrete_laplace(_SCALE, size)


_RHO = Fraction(1, 8)
_GAUSSIAN = Gaussian(sensitivity=2, rho=_RHO)
_LOOSE = Loss.approximate(_RHO, Fraction(1, 10**6))
_CALIBRATED = Gaussian.calibrated(
    sensitivity=2, epsilon=_RHO, delta=Fraction(1, 10**6), entries_changed=1
)

ANIMALS = (
    Animal(
        "three sums charged as one",
        "accounts",
        "a variance from count, sum and sum of squares, each at the full epsilon",
        "diffprivlib issue 104, second item: centring shares one slice of the budget",
        Check.LAW,
        Loss.pure(EPSILON),
        ([1, 2], [1, 2, 3]),
        moments(Fraction(1)),
        moments(Fraction(1, 3)),
    ),
    Animal(
        "overlapping groups as disjoint ones",
        "accounts",
        "'over 30' and 'over 50' are charged as if nobody were in both",
        "McSherry (2009): parallel composition needs disjoint parts",
        Check.LAW,
        Loss.pure(EPSILON),
        (10, 11),
        together(1 / EPSILON, 1 / EPSILON),
        together(2 / EPSILON, 2 / EPSILON),
    ),
    Animal(
        "square root of k without a delta",
        "accounts",
        "nine answers at epsilon / 3 each are charged as epsilon, with delta = 0",
        "Dwork, Rothblum, Vadhan (2010): the square root is bought with a delta",
        Check.LAW,
        Loss.pure(EPSILON),
        (10, 11),
        together(*[sqrt_down(Fraction(9)) / EPSILON] * 9),
        together(*[9 / EPSILON] * 9),
    ),
    Animal(
        "rho printed as epsilon",
        "accounts",
        "a zero-concentrated rho is shown where a reader expects epsilon",
        "Bun and Steinke (2016), Proposition 1.3: epsilon = rho + 2 sqrt(rho ln(1 / delta))",
        Check.LAW,
        _LOOSE,
        (10, 12),
        _GAUSSIAN.law,
        _CALIBRATED.law,
    ),
    Animal(
        "amplified without sampling",
        "accounts",
        "every row is used, and the loss is computed for a sample of one in ten",
        "Chua et al. (2024): shuffled batches accounted as sampled ones",
        Check.LAW,
        Loss.pure(_amplified()),
        (0, 1),
        not_sampled,
        sampled,
    ),
    Animal(
        "one person published, within delta",
        "accounts",
        "one row in twenty is published whole, and delta is said to be a thousandth",
        "Dwork and Roth (2014), section 2.3: delta far below one in the size of the database",
        Check.LAW,
        Loss.approximate(1, Fraction(1, 1000)),
        (True, False),
        publish_one(20),
        publish_one(1000),
        relation=CHANGED,
    ),
    Animal(
        "noise kept with the question",
        "accounts",
        "equal questions get equal noise, although the data changed in between",
        "Gadotti, Houssiau, Rocher, Livshits, de Montjoye (2019), sticky noise",
        Check.GAME,
        Loss.pure(Fraction(1, 10)),
        ((30, 30), (30, 31)),
        cached_noise,
        fresh_noise,
        view=apart,
    ),
    Animal(
        "one draw for two answers",
        "accounts",
        "count and sum are answered with the same noise: subtract them",
        "diffprivlib issue 31: mechanisms with one seed give correlated noise",
        Check.GAME,
        Loss.pure(Fraction(1, 20)),
        (30, 31),
        shared_draw,
        own_draws,
        view=apart,
    ),
    Animal(
        "running sums charged as one count",
        "accounts",
        "every running sum has the noise of one count, and one person is in all of them",
        "Dwork, Naor, Pitassi, Rothblum (2010): why a counter needs a tree",
        Check.GAME,
        Loss.pure(Fraction(1, _DAY)),
        (_WEEK, [6, *_WEEK[1:]]),
        running_sums,
        summed_noise,
    ),
    Animal(
        "one draw for all running sums",
        "accounts",
        "the sums share their noise, so what each day adds is told exactly",
        "diffprivlib issue 31: mechanisms with one seed give correlated noise",
        Check.GAME,
        Loss.pure(Fraction(1, _DAY)),
        (_WEEK, [*_WEEK[:3], 6, *_WEEK[4:]]),
        shared_running,
        summed_noise,
    ),
    Animal(
        "charge bypassed",
        "accounts",
        "the same question is answered forty times and charged once",
        "averaging; Dinur and Nissim (2003)",
        Check.GAME,
        Loss.pure(Fraction(1, 20)),
        (30, 31),
        uncharged,
        charged,
    ),
    Animal(
        "seeded noise",
        "accounts",
        "the generator's seed is fixed, so the noise is known",
        "Garfinkel and Leclerc (2020), randomness concerns",
        Check.GAME,
        Loss.pure(Fraction(1, 20)),
        (30, 31),
        seeded,
        unseeded,
    ),
)

__all__ = ["ANIMALS"]
