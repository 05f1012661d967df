"""exp(-x) in doubles: the error bound of Lemma 5, checked with balls."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from discreet.exact.balls import (
    RELATIVE,
    UNDERFLOW,
    _tables,
    ball,
    exp_negative,
    nearest_double,
    precision,
)

OF_A_DOUBLE = 2.0**-50  # Lemma 5, first part
BELOW_700 = float(np.nextafter(700.0, 0.0))


def worst_relative_error(doubles, reals) -> float:
    results = exp_negative(np.array(doubles))
    worst = 0.0
    with precision(160):
        for result, x in zip(results, reals, strict=True):
            true = ball(-x).exp()
            worst = max(worst, float(abs(arb(float(result)) / true - 1).upper()))
    return worst


def hard_doubles() -> list[float]:
    rng = np.random.default_rng(11)
    steps = np.arange(1, 700 * 256, 41) / 256
    return [
        0.0, 5e-324, 2.0**-1040, 2.0**-60, 1 / 256, 699.0, 699.99609375, 699.998, BELOW_700,
        *rng.uniform(0, 700, 4000), *rng.uniform(0, 1, 2000), *(2.0 ** rng.uniform(-60, 0, 500)),
        *np.nextafter(steps, 0), *np.nextafter(steps, 800), *steps,
    ]  # fmt: skip


def test_of_a_double_it_is_within_2_to_the_minus_50():
    doubles = [float(x) for x in hard_doubles()]
    assert worst_relative_error(doubles, [Fraction(x) for x in doubles]) < OF_A_DOUBLE


@pytest.mark.parametrize("sign", [-1, 1])
def test_of_a_real_number_near_the_double_it_is_within_the_stated_bound(sign):
    """The real number as far from the double as the lemma allows."""
    doubles = [float(x) for x in hard_doubles()][::3]
    room = [Fraction(1, 2**50) * max(Fraction(x), 1) * Fraction(9999, 10000) for x in doubles]
    reals = [max(Fraction(x) + sign * r, Fraction(0)) for x, r in zip(doubles, room, strict=True)]
    worst = worst_relative_error(doubles, reals)
    assert 2.0**-41 < worst < RELATIVE


def test_beyond_700_it_is_zero_and_the_truth_is_below_2_to_the_minus_1000():
    beyond = np.array([700.0, 700.5, 1e6, sys.float_info.max, np.inf])
    assert (exp_negative(beyond) == 0).all()
    assert float(exp_negative(np.array([BELOW_700]))[0]) > 0
    with precision(64):
        assert ball(Fraction(-UNDERFLOW) * (1 - Fraction(1, 2**50))).exp() < arb(2) ** -1000


def test_every_table_entry_is_a_normal_double_within_2_to_the_minus_52():
    wholes, parts = _tables()
    assert (len(wholes), len(parts)) == (700, 256)
    entries = [(Fraction(i), w) for i, w in enumerate(wholes)]
    entries += [(Fraction(j, 256), p) for j, p in enumerate(parts)]
    with precision(160):
        for x, entry in entries:
            true = ball(-x).exp()
            assert abs(arb(float(entry)) - true) <= true * arb(2) ** -52
            assert entry >= sys.float_info.min


def test_the_argument_is_not_changed():
    x = np.array([3.0, 701.0])
    exp_negative(x)
    assert x.tolist() == [3.0, 701.0]


def test_nearest_never_overflows():
    assert nearest_double(Fraction(1, 3)) == 1 / 3
    assert nearest_double(Fraction(10) ** 400) == sys.float_info.max
    assert nearest_double(Fraction(1, 10**400)) == 0.0
