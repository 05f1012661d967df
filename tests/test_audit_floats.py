"""The last bits of doubles: the grid and Mironov's support."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import audit
from discreet.audit.floats import lowest_bits, reachable
from discreet.errors import InvalidParameter
from discreet.mechanisms import Grid, Laplace
from discreet.noise import discrete_gaussian, discrete_laplace

SURE = "0.999999999"
DRAWS = 1000


def test_numpys_laplace_is_convicted_from_a_thousand_draws():
    chance = np.random.default_rng(7)
    found = audit.mironov(
        lambda value, size: chance.laplace(value, 1.0, size),
        0.0,
        1.0,
        scale=1.0,
        draws=DRAWS,
        promised=1,
        confidence=SURE,
    )
    assert found.alarm
    assert found.lower > 2


def test_textbook_inversion_is_convicted():
    chance = np.random.default_rng(8)

    def textbook(value, size):
        k = chance.integers(1, 2**53, size)
        sign = chance.choice([-1, 1], size)
        return [value + s * -3.0 * math.log(j / 2**53) for j, s in zip(k, sign, strict=True)]

    found = audit.mironov(
        textbook, 0.0, 1.0, scale=3.0, draws=DRAWS, promised="1/3", confidence=SURE
    )
    assert found.alarm


@pytest.mark.parametrize(
    "draw", [lambda n: discrete_laplace(3, n), lambda n: discrete_gaussian(9, n)]
)
def test_whole_numbers_are_not(draw):
    found = audit.mironov(
        lambda value, size: value + draw(size), 0, 1, scale=3.0, promised="1", confidence=SURE
    )
    assert not found.alarm


def test_too_few_draws_are_refused_and_a_target_that_raises_has_an_outcome():
    def failing(value, size):
        raise ValueError(value)

    with pytest.raises(InvalidParameter, match="cannot refute"):
        audit.mironov(lambda x, size: [x] * size, 0.0, 1.0, scale=1.0, draws=3, promised=1)
    found = audit.mironov(failing, 0.0, 1.0, scale=1.0, promised=1)
    assert not found.alarm
    assert "raised ValueError" in found.event


def test_reachable_knows_its_own_noise():
    for k in (1, 17, 2**40 + 1, 2**53 - 1):
        noise = -3.0 * math.log(k / 2.0**53)
        assert reachable(noise, 0.0, 3.0)
        assert reachable(-noise, 0.0, 3.0)
        assert reachable(1.0 + noise, 1.0, 3.0)


@pytest.mark.parametrize("kind", ["laplace", "normal"])
def test_float_noise_is_on_no_grid(kind):
    chance = np.random.default_rng(9)
    found = audit.grid(getattr(chance, kind)(0, 1, DRAWS))
    assert found.alarm
    assert "too large" in found.sentence
    assert audit.grid(getattr(chance, kind)(0, 1, DRAWS), step=2.0**-30).off_grid > 0.9 * DRAWS


def test_our_noise_is_on_its_grid():
    mechanism = Laplace(sensitivity=2500, epsilon="1/2", grid=Grid("1/64"))
    here = [mechanism.release(81_250.75) for _ in range(DRAWS)]
    there = [mechanism.release(0.0) for _ in range(DRAWS)]
    found = audit.grid(here, there)
    assert not found.alarm
    assert found.exponent == -6
    assert not audit.grid(here, there, step=Fraction(1, 64)).alarm
    assert audit.grid(here, there, step=Fraction(1, 32)).alarm
    assert json.loads(json.dumps(found.to_json()))["verdict"] == "consistent"


def test_lowest_bits_against_fractions():
    chance = np.random.default_rng(3)
    doubles = np.ldexp(chance.integers(1, 2**40, 500).astype(float), chance.integers(-60, 20, 500))
    for x, bit in zip(doubles.tolist(), lowest_bits(doubles).tolist(), strict=True):
        assert (Fraction(x) / Fraction(2) ** bit).denominator == 1
        assert (Fraction(x) / Fraction(2) ** (bit + 1)).denominator == 2


def test_nothing_but_zeros_and_infinities_says_nothing():
    assert audit.grid([0.0, math.inf, math.nan]).exponent is None
