"""N1. Mironov (2012), "On significance of the least significant bits for differential privacy".

A double b * log(k / 2**53), k a whole number, added to 0 or to 1: which doubles can
come out differs, so that one look at the low bits often tells which it was.  The
attack below breaks the textbook sampler and learns nothing from ours.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import discrete_gaussian, discrete_laplace
from discreet.noise.laplace import _two_sided

RELEASES = 1000
SCALE = 3.0


def reachable(noise: float) -> bool:
    """Is this double SCALE * log(k / 2**53), up to sign, for some whole number k?"""
    near = round(math.exp(-abs(noise) / SCALE) * 2**53)
    return any(
        -SCALE * math.log(k / 2**53) == abs(noise)
        for k in range(max(near - 20, 1), min(near + 21, 2**53 + 1))
    )


def textbook(true: int, rng) -> float:
    k = int(rng.integers(1, 2**53 + 1))
    sign = 1 if rng.integers(2) else -1
    return true + sign * -SCALE * math.log(k / 2**53)


def could_be_zero(releases) -> float:
    """How often the released number is one that the noise alone could give."""
    return sum(reachable(release) for release in releases) / len(releases)


def test_the_attack_breaks_the_textbook_sampler():
    rng = np.random.default_rng(12)
    zero = could_be_zero([textbook(0, rng) for _ in range(RELEASES)])
    one = could_be_zero([textbook(1, rng) for _ in range(RELEASES)])
    assert zero == 1.0
    assert one < 0.6


@pytest.mark.parametrize(
    ("draw", "epsilon"),
    [(lambda n: discrete_laplace(3, n), 1 / 3), (lambda n: discrete_gaussian(9, n), 1.0)],
)
def test_it_learns_nothing_from_whole_numbers(draw, epsilon):
    """Rates for 0 and 1 may differ as the guarantee allows, by e**epsilon, and no more."""
    zero = could_be_zero([float(z) for z in draw(RELEASES)])
    one = could_be_zero([float(1 + z) for z in draw(RELEASES)])
    # Hoeffding: a rate is within 0.1 of its probability but for chance 2 * exp(-20).
    assert zero <= math.exp(epsilon) * (one + 0.1) + 0.1
    assert one <= math.exp(epsilon) * (zero + 0.1) + 0.1


def test_every_whole_number_can_come_from_either_truth():
    """The support is all of the integers: nothing that comes out excludes 0 or 1."""
    values = set(_two_sided(Fraction(3)).top._values.tolist())
    assert values >= set(range(-100, 101))
    assert {1 + z for z in values} >= set(range(-99, 102))


def test_what_is_published_as_json_is_the_whole_number():
    for release in (7 + discrete_laplace(3, 100)).tolist():
        assert json.loads(json.dumps(release)) == release
        assert isinstance(release, int)
