"""The bound on being overtaken, against the sum written out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms.selection.noisy_race import least_distance, overtaking_probability


def written_out(distance, chasers, chaser_scale, leaders, leader_scale) -> float:
    """The sum over every value of the leaders' minimum, by differences of its distribution."""
    reach = int(70 * leader_scale) + 5

    def below(x, scale):
        q = math.exp(-1 / scale)
        low, high = q ** (1.0 - np.minimum(x, 0)), (1 + q) - q ** np.maximum(x, 1.0)
        return np.where(x <= 0, low, high) / (1 + q)

    t = np.arange(-reach, reach + 1)
    at_least = below(1 - t, leader_scale) ** leaders  # P(min >= t), by symmetry
    mass = at_least - np.append(at_least[1:], 0.0)
    return float(np.sum(mass * (1 - below(distance + t, chaser_scale) ** chasers)))


@pytest.mark.parametrize("distance", [0, 1, 7, 40])
@pytest.mark.parametrize("chasers", [1, 20])
@pytest.mark.parametrize("leaders", [1, 3, 50])
@pytest.mark.parametrize("scales", [(0.5, 0.25), (3.0, 2.0), (2.0, 9.0)])
def test_exact_where_every_value_is_a_block(distance, chasers, leaders, scales):
    chaser, leader = scales
    bound = overtaking_probability(
        distance,
        chasers=chasers,
        chaser_scale=Fraction(chaser),
        leaders=leaders,
        leader_scale=Fraction(leader),
    )
    truth = written_out(distance, chasers, chaser, leaders, leader)
    assert truth * (1 - 1e-9) - 1e-15 <= bound <= truth * (1 + 1e-5) + 1e-14


@pytest.mark.parametrize("leaders", [1, 8])
@pytest.mark.parametrize("scale", [1000.0, 30_000.0])
def test_a_little_above_where_blocks_are_wide(leaders, scale):
    for distance in (int(3 * scale), int(8 * scale)):
        bound = overtaking_probability(
            distance,
            chasers=100,
            chaser_scale=Fraction(scale),
            leaders=leaders,
            leader_scale=Fraction(scale),
        )
        truth = written_out(distance, 100, scale, leaders, scale)
        assert truth * (1 - 1e-7) <= bound <= truth * 1.03


def test_nobody_to_overtake_or_to_be_overtaken():
    same = {"chaser_scale": Fraction(2), "leader_scale": Fraction(2)}
    assert overtaking_probability(3, chasers=0, leaders=1, **same) == 0
    assert overtaking_probability(3, chasers=4, leaders=0, **same) == 0


def test_the_least_distance():
    for wanted in (0, 1, 2, 5, 64, 1000):
        found = least_distance(lambda m, w=wanted: 0.5 ** (m - w + 1), Fraction(3, 5))
        assert found == wanted
