"""N2. Haney, Desfontaines, Hartman, Shrestha, Hay (2022), "Precision-based attacks".

In doubles 1 + n is a multiple of 2**-53 while n alone need not be, so the place of
the last bit tells what the noise was added to.  On a grid every output is a multiple
of one public power of two, whatever it was added to.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet.noise import discrete_gaussian, discrete_laplace

PAIRS = [(0, 1), (0, 2**20), (10**9, 10**9 + 1)]
GRID = 2.0**-10
DRAWS = 20_000


def off_grid(releases: np.ndarray, unit: float) -> float:
    """How often a double is no multiple of the unit."""
    return float((np.fmod(releases, unit) != 0).mean())


def test_the_attack_breaks_noise_in_doubles():
    rng = np.random.default_rng(4)
    zero = rng.laplace(0, 1, DRAWS)
    one = 1 + rng.laplace(0, 1, DRAWS)
    assert off_grid(zero, 2.0**-53) > 0.1
    assert off_grid(one, 2.0**-53) == 0


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    "draw",
    [
        lambda n: discrete_laplace(3 * 2**10, n),
        lambda n: discrete_laplace(2**30, n),
        lambda n: discrete_gaussian(2**20, n),
        lambda n: discrete_gaussian(2**44, n),
    ],
)
def test_every_output_is_a_multiple_of_the_public_grid(pair, draw):
    """In units of the grid, as doubles, and after a journey through JSON."""
    for true in pair:
        units = true * 2**10 + draw(DRAWS)
        assert units.dtype == np.int64
        published = units * GRID
        assert off_grid(published, GRID) == 0
        assert (published / GRID == units).all()
        again = np.array(json.loads(json.dumps(published[:2000].tolist())))
        assert (again == published[:2000]).all()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_last_bits_are_the_same_for_both_truths(pair):
    """Odd and even multiples of the grid are about equally likely for either."""
    rates = [
        float(((true * 2**10 + discrete_laplace(3 * 2**10, DRAWS)) & 1).mean()) for true in pair
    ]
    assert all(0.45 < rate < 0.55 for rate in rates)
