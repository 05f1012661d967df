"""Propose, test, release: the distance by walking, the delta by its law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from discreet.errors import InvalidParameter
from discreet.exact.balls import precision
from discreet.mechanisms import Grid, ProposeTestRelease, median_distance

TOP = 4
SETS = [
    values
    for n in range(5)
    for values in itertools.combinations_with_replacement(range(TOP + 1), n)
]


def median(values) -> int:
    return values[(len(values) + 1) // 2 - 1] if values else 0


def neighbours(values):
    for more in range(TOP + 1):
        yield tuple(sorted((*values, more)))
    for place in range(len(values)):
        yield values[:place] + values[place + 1 :]


def local_sensitivity(values) -> int:
    return max(abs(median(values) - median(other)) for other in neighbours(values))


def distance(values, bound=2) -> int:
    return median_distance(list(values), lower=0, upper=TOP, bound=bound)


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_the_distance_is_how_far_it_is_to_walk(bound):
    for values in SETS:
        near, steps = {values}, 0
        while all(local_sensitivity(one) <= bound for one in near):
            near |= {other for one in near for other in neighbours(one)}
            steps += 1
        assert distance(values, bound) == steps


def test_delta_is_the_exact_tail():
    """q**(m + 1) / (1 + q), least m: the chance to pass where the bound does not hold."""
    tested = ProposeTestRelease(bound=3, epsilon=1, delta="1e-4")
    q = math.exp(-1 / 2)
    tail = q ** (tested.threshold + 1) / (1 + q)
    assert float(tested.exact_delta) == pytest.approx(tail, rel=1e-12)
    assert tail <= 1e-4 < tail / q
    assert tested.passing(0) == pytest.approx(tail, rel=1e-12)
    assert tested.loss.delta == tested.exact_delta


def masses(law, reach=200) -> dict:
    with precision(100):
        return {z: float(law.mass(z)) for z in [None, *range(-reach, reach + 1)]}


def delta_at(first: dict, second: dict, epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * second[z]) for z, p in first.items())


def test_the_guarantee_by_the_exact_laws():
    tested = ProposeTestRelease(bound=1, epsilon=2, delta="1/50")
    worst, known = 0.0, {}

    def law(values):
        key = median(values), distance(values, bound=1)
        if key not in known:
            known[key] = masses(tested.law(key[0], distance=key[1]))
        return known[key]

    for values in SETS:
        for other in neighbours(values):
            worst = max(worst, delta_at(law(values), law(other), 2.0))
    assert worst <= float(tested.exact_delta) + 1e-12
    assert worst > 0.1 * float(tested.exact_delta)


def test_a_test_that_passes_at_the_threshold_itself_would_miss_delta():
    """>= instead of >: the mass at the threshold is left out of delta."""
    tested = ProposeTestRelease(bound=2, epsilon=2, delta="1/50")
    law = tested.law(3, distance=0)
    with precision(100):
        loose = float(law.distance.tail(tested.threshold))
    assert loose > float(tested.exact_delta) * 2


def test_masses_add_up_and_draws_agree():
    tested = ProposeTestRelease(bound=2, epsilon=4, delta="1/50")
    edge = tested.threshold  # where passing at the threshold itself would show
    law = masses(tested.law(7, distance=edge))
    assert sum(law.values()) == pytest.approx(1)
    seen = [tested.release(7, distance=edge) for _ in range(3000)]
    t = math.sqrt(math.log(2e9) / 6000)
    assert abs(seen.count(None) / 3000 - law[None]) <= t
    assert abs(seen.count(7) / 3000 - law[7]) <= t


def test_far_from_trouble_it_answers():
    tested = ProposeTestRelease(bound="1/2", epsilon=1, delta="1e-9", grid=Grid("1/8"))
    value = tested.release(12.25, distance=10_000)
    assert (value * 8).is_integer()
    assert tested.passing(10_000) == 1.0
    assert tested.margin("0.05") == pytest.approx(0.5 * 2 * math.log(20), rel=0.2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ProposeTestRelease(bound=0, epsilon=1, delta="1e-6"),
        lambda: ProposeTestRelease(bound=2, epsilon=0, delta="1e-6"),
        lambda: ProposeTestRelease(bound=2, epsilon=1, delta=0),
        lambda: ProposeTestRelease(bound="1/2", epsilon=1, delta="1e-6"),
        lambda: ProposeTestRelease(bound=2, epsilon=1, delta="1e-6").release(3, distance=-1),
        lambda: ProposeTestRelease(bound=2, epsilon=1, delta="1e-6").release(3.5, distance=2),
        lambda: ProposeTestRelease(bound=2, epsilon=1, delta="1e-6").law([3], distance=2),
        lambda: median_distance([3], lower=0, upper=9, bound=9),
    ],
)
def test_refusals(build):
    with pytest.raises(InvalidParameter):
        build()


def test_a_refusal_comes_before_the_test():
    """Whether a bad value is refused must not depend on the noise of the test."""
    tested = ProposeTestRelease(bound=2, epsilon=1, delta="1e-6")
    for _ in range(20):
        with pytest.raises(InvalidParameter):
            tested.release(float("nan"), distance=0)


def test_repr():
    tested = ProposeTestRelease(bound=2, epsilon=1, delta=Fraction(1, 50))
    assert eval(repr(tested)) == tested
