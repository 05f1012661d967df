"""The fit of samplers to laws, and the test of time: size and power."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import audit
from discreet.accounting.law import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    FiniteLaw,
    GeometricLaw,
    ProductLaw,
)
from discreet.audit import Verdict
from discreet.errors import InvalidParameter
from discreet.noise import bernoulli, discrete_gaussian, discrete_laplace, geometric

N = 100_000
ALPHA = Fraction(1, 10**9)

PAIRS = [
    (lambda n: discrete_laplace(7, n), lambda s: DiscreteLaplaceLaw(0, 7 * s)),
    (lambda n: discrete_gaussian(30, n), lambda s: DiscreteGaussianLaw(0, 30 * s * s)),
    (lambda n: geometric(5, n), lambda s: GeometricLaw(0, 5 * s)),
    (
        lambda n: bernoulli("3/10", n),
        lambda s: FiniteLaw.exact([(True, Fraction(3, 10) * s), (False, 1 - Fraction(3, 10) * s)]),
    ),
]


@pytest.mark.parametrize(("sampler", "law"), PAIRS)
def test_right_laws_are_accepted_and_those_a_tenth_off_refuted(sampler, law):
    draws = sampler(N)
    assert not audit.fit(draws, law(Fraction(1)), alpha=ALPHA).alarm
    for wrong in (Fraction(9, 10), Fraction(11, 10)):
        assert audit.fit(draws, law(wrong), alpha=ALPHA).alarm


def test_one_outcome_that_comes_too_seldom_is_named():
    """A hole of one part in a hundred: too narrow for the distribution, seen by the count."""
    draws = np.arange(N) % 200
    draws = np.where(draws == 17, 18, draws)
    law = FiniteLaw.exact([(i, Fraction(1, 200)) for i in range(200)])
    found = audit.fit(draws.tolist(), law, alpha=ALPHA)
    assert found.distance < found.allowed
    assert found.outcome in {"17", "18"}
    assert found.alarm
    assert "too seldom" in found.sentence


def test_an_impossible_outcome_is_named():
    law = FiniteLaw.exact({"heads": "1/2", "tails": "1/2"})
    draws = ["heads", "tails"] * 5000 + ["edge"] * 20
    assert audit.fit(draws, law).outcome == "outside the law"


def test_coordinates_are_tested_one_by_one():
    law = ProductLaw((DiscreteLaplaceLaw(0, 3), DiscreteLaplaceLaw(5, 7)))
    right = np.stack([discrete_laplace(3, N), 5 + discrete_laplace(7, N)], axis=1)
    wrong = np.stack([discrete_laplace(3, N), 5 + discrete_laplace(6, N)], axis=1)
    assert not audit.fit(right, law).alarm
    assert audit.fit(wrong, law).alarm
    with pytest.raises(InvalidParameter, match="coordinates"):
        audit.fit(right[:, 0], law)


def test_size_is_massarts_and_power_is_stated():
    found = audit.fit(discrete_laplace(7, N), DiscreteLaplaceLaw(0, 7), alpha=ALPHA)
    assert found.samples == N
    assert found.allowed == pytest.approx(math.sqrt(math.log(2 / float(ALPHA / 2)) / (2 * N)))
    assert found.allowed < found.detects("0.99") < 1.5 * found.allowed
    # A sampler as far off as is found but for a chance of 10**-9 is found, 3 times of 3.
    shift = found.detects(1 - ALPHA)
    assert shift - found.allowed == pytest.approx(math.sqrt(math.log(2 / float(ALPHA)) / (2 * N)))
    law = FiniteLaw.exact([(1, Fraction(1, 2)), (0, Fraction(1, 2))])
    for _ in range(3):
        draws = bernoulli(Fraction(1, 2) + Fraction(shift), N).astype(int)
        assert audit.fit(draws.tolist(), law, alpha=ALPHA).alarm


def test_words_and_refusals():
    found = audit.fit(discrete_laplace(7, 1000), DiscreteLaplaceLaw(0, 7))
    assert found.verdict is Verdict.CONSISTENT
    assert json.loads(json.dumps(found.to_json()))["kind"] == "fit"
    with pytest.raises(InvalidParameter):
        audit.fit(discrete_laplace, DiscreteLaplaceLaw(0, 7), samples=3)
    with pytest.raises(InvalidParameter, match="no draws"):
        audit.fit([], DiscreteLaplaceLaw(0, 7))
    with pytest.raises(InvalidParameter, match="listed"):
        audit.fit(discrete_laplace(10, 1000), DiscreteLaplaceLaw(0, 10**6))


# --- timing --------------------------------------------------------------------------------------


class Clock:
    """Time that passes only when it is told to."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def test_time_that_tells_is_found():
    clock = Clock()
    jitter = discrete_laplace(1000, 5000).tolist()

    def slower(rows):
        clock.now += 5000 + 1500 * len(rows) + jitter.pop()

    found = audit.timing(slower, [3, 5], [3, 5, 8], rounds=1000, clock=clock)
    assert found.alarm
    assert found.statistic > 0
    assert found.medians_ns[0] < found.medians_ns[1]


def test_time_that_does_not_tell_is_let_be():
    """Equal laws of time, with a drift that slows both: no alarm but for chance alpha."""
    clock = Clock()
    jitter = discrete_laplace(1000, 50_000).tolist()

    def drifting(_):
        clock.now += 5000 + len(jitter) // 3 + jitter.pop()

    for _ in range(5):
        found = audit.timing(drifting, [3, 5], [3, 5, 8], rounds=1000, alpha=ALPHA, clock=clock)
        assert not found.alarm
        assert found.verdict is Verdict.CONSISTENT
    assert json.loads(json.dumps(found.to_json()))["rounds"] == 1000


def test_one_that_raises_has_taken_its_time():
    clock = Clock()

    def crashing(rows):
        clock.now += len(rows)
        raise ValueError

    assert audit.timing(crashing, [3, 5], [3, 5, 8], rounds=500, clock=clock).alarm


def test_too_few_rounds_are_refused_with_the_number_needed():
    clock = Clock()

    def telling(rows):
        clock.now += len(rows)

    with pytest.raises(InvalidParameter, match="cannot show") as refused:
        audit.timing(telling, [3], [3, 5], rounds=5, clock=clock)
    needed = int(refused.value.fix.rpartition("=")[2].rstrip("."))
    assert audit.timing(telling, [3], [3, 5], rounds=needed, clock=clock).alarm


def test_equal_times_say_nothing():
    assert not audit.timing(len, [3], [3, 5], rounds=100, clock=Clock()).alarm
