"""N7. The time that a sampler takes tells the noise, if it works longer for larger noise.

Rank correlation (Spearman) of the time of a draw with the size of its noise.  If the
two are independent, the correlation of N pairs has mean 0 and standard deviation
1 / sqrt(N - 1), whatever the law of the times: at N = 8000 the bound 0.12 is 10.7
deviations away, a chance below 10**-25.  A sampler that counts trials until a success,
which is what some libraries do, shows more than 0.5 every time; one that bisects its table
shows up to 0.19, through what the processor keeps in its cache.

Time is the thread's own, which stands still while others have the processor.  They still
take its caches away, and that makes the time of a draw depend on what was drawn before it: on
a machine with seven others at work one run of ninety showed 0.1201.  A sampler that tells its
noise tells it in every run, so what counts is the least of TRIES runs.
"""

from __future__ import annotations

import ssl
import time

import numpy as np
import pytest
from scipy.stats import rankdata

from discreet.noise import discrete_gaussian, discrete_laplace, geometric
from discreet.noise.entropy import random_bytes, use_source

N = 8000
BOUND = 0.12
TRIES = 5

SCALARS = {
    "laplace 1": lambda: discrete_laplace(1),
    "laplace 20": lambda: discrete_laplace(20),
    "laplace 1000": lambda: discrete_laplace(1000),
    "geometric 20": lambda: geometric(20),
    "gaussian 20": lambda: discrete_gaussian(400),
    "gaussian 1000": lambda: discrete_gaussian(10**6),
    "gaussian 10**6": lambda: discrete_gaussian(10**12),
}


def rank_correlation(noise: list[int], times: list[int]) -> float:
    a, b = rankdata(noise), rankdata(times)
    return float(np.corrcoef(a, b)[0, 1])


def timed(draw) -> float:
    """Correlation of abs(noise) with time over N draws, after a warm-up."""
    for _ in range(200):
        draw()
    sizes, times = [], []
    clock = time.thread_time_ns
    for _ in range(N):
        start = clock()
        value = draw()
        times.append(clock() - start)
        sizes.append(int(np.abs(value).sum()))
    return rank_correlation(sizes, times)


def tells(draw) -> bool:
    """Whether every run shows a correlation."""
    return all(abs(timed(draw)) >= BOUND for _ in range(TRIES))


def trials_until_success() -> int:
    """The sampler that leaks: geometric noise by repeated coins."""
    count = 0
    while int.from_bytes(random_bytes(4), "little") >= 2**32 // 20:
        count += 1
    return count


def test_the_attack_sees_a_sampler_that_counts_trials():
    assert tells(trials_until_success)
    assert timed(trials_until_success) > 0.5


@pytest.mark.parametrize("name", SCALARS)
def test_the_time_of_a_scalar_does_not_tell_the_noise(name):
    assert not tells(SCALARS[name])


@pytest.mark.parametrize("size", [1, 5])
def test_the_time_of_a_small_array_does_not_tell_the_noise(size):
    assert not tells(lambda: discrete_laplace(20, size))


def asked_for(draw, times: int = 2000) -> dict[tuple[int, ...], list[int]]:
    """The requests for bytes that each draw makes, and the values drawn with them."""
    patterns: dict[tuple[int, ...], list[int]] = {}
    for _ in range(times):
        requests: list[int] = []

        def source(count: int, requests=requests) -> bytes:
            requests.append(count)
            return ssl.RAND_bytes(count)

        with use_source(source):
            value = draw()
        patterns.setdefault(tuple(requests), []).append(int(np.abs(value).sum()))
    return patterns


@pytest.mark.parametrize(
    "name",
    ["laplace 1", "laplace 20", "laplace 1000", "geometric 20", "gaussian 20", "gaussian 1000"],
)
def test_every_scalar_asks_for_the_same_bytes(name):
    assert len(asked_for(SCALARS[name])) == 1


def test_every_small_array_asks_for_the_same_bytes():
    assert len(asked_for(lambda: discrete_laplace(20, 256), times=200)) == 1
    assert len(asked_for(lambda: discrete_gaussian(400, 256), times=200)) == 1


def test_a_proposal_is_repeated_without_regard_to_what_comes_out():
    """Beyond the tables a draw may be proposed twice (one in a thousand), whatever its value."""
    patterns = asked_for(SCALARS["gaussian 10**6"])
    attempt = min(patterns, key=len)
    once = len(patterns[attempt])
    assert once > 1900
    assert all(set(pattern) <= {*attempt, 8} for pattern in patterns)
