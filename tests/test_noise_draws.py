"""How many draws: sizes, types, chunks and memory."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    uniform_below,
)
from discreet.noise import table as module
from discreet.noise.table import CHUNK, SMALL

DRAWS = {
    "uniform_below": lambda size=None: uniform_below(6, size),
    "bernoulli": lambda size=None: bernoulli("1/3", size),
    "bernoulli_exp": lambda size=None: bernoulli_exp("1.5", size),
    "geometric": lambda size=None: geometric(3, size),
    "laplace 3": lambda size=None: discrete_laplace(3, size),
    "laplace 1/1000": lambda size=None: discrete_laplace(Fraction(1, 1000), size),
    "laplace 1000": lambda size=None: discrete_laplace(1000, size),
    "laplace 2**40": lambda size=None: discrete_laplace(2**40, size),
    "gaussian 9": lambda size=None: discrete_gaussian(9, size),
    "gaussian 10**12": lambda size=None: discrete_gaussian(10**12, size),
}
SIZES = [
    0,
    1,
    2,
    SMALL - 1,
    SMALL,
    SMALL + 1,
    CHUNK - 1,
    CHUNK,
    CHUNK + 1,
    CHUNK + SMALL,
    3 * CHUNK,
]


@pytest.fixture(params=DRAWS)
def draw(request):
    return DRAWS[request.param]


def test_the_sizes_at_which_paths_change():
    assert (SMALL, CHUNK) == (256, 2**14)


@pytest.mark.parametrize("size", SIZES)
def test_every_place_of_every_size_is_written(draw, size, monkeypatch):
    poison = 7 * 10**17
    monkeypatch.setattr(module.np, "empty", lambda shape, dtype: np.full(shape, poison, dtype))
    result = draw(size)
    assert result.dtype == np.int64
    assert result.shape == (size,)
    assert not (result == poison).any()


def test_places_are_drawn_independently(draw):
    """No two chunks and no two runs repeat each other."""
    size = 2 * CHUNK
    first, second = draw(size), draw(size)
    if len(set(first.tolist())) > 1:
        assert (first != second).any()
        assert (first[:CHUNK] != first[CHUNK:]).any()


def test_without_a_size_a_python_int(draw):
    assert type(draw()) is int


@pytest.mark.parametrize("size", [np.int64(5), np.uint8(5)])
def test_sizes_may_be_numpy_integers(draw, size):
    assert draw(size).shape == (5,)


@pytest.mark.parametrize("size", [-1, 2.0, 2.5, "3", True, float("nan"), (2, 2), [3], 10**30 + 0.5])
def test_what_is_no_size_is_refused(draw, size):
    with pytest.raises(InvalidParameter, match="P3: size must be a whole number"):
        draw(size)


MEASURE = """
import resource
from discreet.noise import *
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if {mac} else 1024)
before = peak()
result = {call}
print(peak() - before - result.nbytes)
"""
EXTRA = 256 * 10**6


def beyond_output(call: str) -> int:
    """Bytes of memory at the peak, beyond what was there before and the result itself."""
    script = MEASURE.format(mac=sys.platform == "darwin", call=call)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


CALLS = [
    "discrete_laplace(20, {n})",
    "discrete_laplace(2**40, {n})",
    "discrete_gaussian(10**6, {n})",
    "discrete_gaussian(10**12, {n})",
    "bernoulli('1/3', {n})",
    "bernoulli_exp('1/3', {n})",
    "uniform_below(10, {n})",
    "random_permutation({n})",
]


@pytest.mark.parametrize("call", [CALLS[0], CALLS[3], CALLS[7]])
def test_memory_is_the_output_and_at_most_256_mb(call):
    assert beyond_output(call.format(n=3 * 10**7)) < EXTRA


@pytest.mark.soak
@pytest.mark.parametrize("call", CALLS)
def test_memory_of_a_hundred_million_draws(call):
    assert beyond_output(call.format(n=10**8)) < EXTRA
