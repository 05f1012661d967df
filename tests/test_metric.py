"""Noise in metric spaces: the axioms, Remark 3.1 and the Hamming cube."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from contract.numeric_cases import cycle, line, star
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose
from discreet.exact.numbers import fraction
from discreet.mechanisms import HammingCube, MetricNoise, MetricSpace

CANARY = 8_675_309


# --- the space -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distances", "reason"),
    [
        ([[0, 2], [3, 0]], "both ways"),
        ([[0, 9, 2], [9, 0, 3], [2, 3, 0]], "triangle"),
        ([[4, 2], [2, 0]], "itself"),
        ([[0, 0], [0, 0]], "distance 0"),
        ([[0, 2]], "2 by 2"),
        ([[0, -2], [-2, 0]], "negative"),
        ([[0, float("nan")], [float("nan"), 0]], "finite"),
    ],
)
def test_what_is_not_a_metric_is_refused(distances, reason):
    points = range(len(distances[0]))
    with pytest.raises(InvalidParameter, match=reason):
        MetricSpace(points, distances)


def test_points_are_refused_twice_and_none():
    with pytest.raises(InvalidParameter, match="twice"):
        MetricSpace("aa", [[0, 2], [2, 0]])
    with pytest.raises(InvalidParameter, match="P5"):
        MetricSpace((), [])


def test_distances_are_exact():
    space = MetricSpace("ab", [[0, "0.3"], ["3/10", 0]])
    assert space.distance("a", "b") == Fraction(3, 10)
    huge = MetricSpace("abc", [[0, 2**90, 1], [2**90, 0, 2**90], [1, 2**90, 0]])
    assert huge.distance("a", "b") == 2**90


def test_remark_3_1_is_checked_in_the_distances():
    assert cycle(7).homogeneous
    assert MetricSpace.of(range(8), lambda p, q: (p ^ q).bit_count()).homogeneous
    assert not line(7).homogeneous
    assert not star(4).homogeneous
    sensitivity, epsilon = 2, Fraction(3, 5)
    assert MetricNoise(space=cycle(7), sensitivity=2, epsilon=epsilon).rate == epsilon / sensitivity
    assert MetricNoise(space=line(7), sensitivity=2, epsilon=epsilon).rate == epsilon / 4


@given(st.sampled_from([cycle, line, star]), st.integers(3, 9), st.integers(1, 9))
def test_lemma_2_equal_normalisers_exactly_where_homogeneous(shape, size, rate):
    space = shape(size)

    def total(row: int) -> float:
        return sum(math.exp(-rate / 7 * float(space.unit * m)) for m in space.multiples[row])

    totals = [total(row) for row in range(len(space.points))]
    assert space.homogeneous == (max(totals) - min(totals) < 1e-12)


# --- the mechanism ---------------------------------------------------------------------------


def test_the_law_falls_with_the_distance():
    mechanism = MetricNoise(space=line(6), sensitivity=2, epsilon=3)
    law = mechanism.law(2)
    ratio = enclose(lambda: law.mass(2) / law.mass(5))
    assert ratio[0] <= Fraction(math.exp(3 * 3 / 4)) * Fraction(10**12 + 1, 10**12)
    assert float(ratio[0]) == pytest.approx(math.exp(3 / 4 * 3))


@pytest.mark.parametrize("shape", [cycle, line, star])
def test_the_margin_is_the_least_at_the_worst_point(shape):
    mechanism = MetricNoise(space=shape(9), sensitivity=1, epsilon="3/2")
    space = mechanism.space

    def worst(m: Fraction) -> float:
        return max(
            sum(float(mechanism.law(z).mass(y)) for y in space.points if space.distance(y, z) > m)
            for z in space.points
        )

    for beta in (0.5, 0.1, 0.01):
        m = mechanism.margin(beta)
        assert worst(m) <= beta
        assert m == 0 or worst(m - space.unit) > beta


def test_releases_are_points_with_the_right_frequencies():
    """A chi-square test of 40,000 releases; the chance that it fails a right sampler is 1e-9."""
    mechanism = MetricNoise(space=line(5), sensitivity=2, epsilon=4)
    draws = 40_000
    found = np.bincount([mechanism.release(1) for _ in range(draws)], minlength=5)

    def fits(law) -> bool:
        expected = np.array([float(law.mass(point)) for point in range(5)]) * draws
        return stats.chisquare(found, expected * draws / expected.sum()).pvalue > 1e-9

    assert fits(mechanism.law(1))
    assert not fits(MetricNoise(space=line(5), sensitivity=2, epsilon="4.4").law(1))


def test_unknown_points_are_refused_and_not_named():
    mechanism = MetricNoise(space=line(5), sensitivity=2, epsilon=4)
    for value in (CANARY, str(CANARY), [CANARY], None):
        with pytest.raises(InvalidParameter, match="P6") as refusal:
            mechanism.release(value)
        assert str(CANARY) not in str(refusal.value)


def test_bad_parameters_are_refused():
    for bad in ({"sensitivity": 0}, {"epsilon": 0}, {"epsilon": -2}):
        with pytest.raises(InvalidParameter):
            MetricNoise(**{"space": line(5), "sensitivity": 2, "epsilon": 4, **bad})
        with pytest.raises(InvalidParameter):
            HammingCube(**{"sensitivity": 2, "epsilon": 4, **bad})
    with pytest.raises(InvalidParameter):
        HammingCube(sensitivity="5/2", epsilon=4)


# --- the Hamming cube ------------------------------------------------------------------------


@given(st.integers(1, 9), st.fractions(Fraction(1, 20), 9, max_denominator=20))
def test_the_flip_probability_is_logistic(sensitivity, epsilon):
    cube = HammingCube(sensitivity=sensitivity, epsilon=epsilon)
    assert cube.flip == pytest.approx(1 / (1 + math.exp(epsilon / sensitivity)))
    assert cube.loss.epsilon == epsilon


def test_the_cube_is_the_metric_mechanism_of_the_hamming_distance():
    """Independent flips and the finite metric space give one and the same law."""
    points = [tuple(n >> k & 1 for k in range(3)) for n in range(8)]
    space = MetricSpace.of(points, lambda p, q: sum(a != b for a, b in zip(p, q, strict=True)))
    general = MetricNoise(space=space, sensitivity=2, epsilon="3/2").law((1, 0, 1))
    cube = HammingCube(sensitivity=2, epsilon="3/2").law((1, 0, 1))
    for point in points:
        assert float(general.mass(point)) == pytest.approx(float(cube.mass(point)), rel=1e-12)


def test_bits_of_every_kind():
    cube = HammingCube(sensitivity=2, epsilon=3)
    assert [type(x) for x in cube.release([True, False])] == [bool, bool]
    assert isinstance(cube.release((1, 0, 1)), tuple)
    assert set(cube.release([1] * 300)) == {0, 1}
    array = cube.release(np.ones((4, 5), dtype=np.int8))
    assert array.shape == (4, 5)
    assert array.dtype == np.int8
    assert cube.release([]) == []
    for bad in ([2, 0], np.array([0.5]), ["x"], np.array([CANARY])):
        with pytest.raises(InvalidParameter, match="P6") as refusal:
            cube.release(bad)
        assert str(CANARY) not in str(refusal.value)


@pytest.mark.parametrize("dimension", [1, 7, 200, 100_000])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_the_margin_is_the_binomial_quantile(dimension, beta):
    cube = HammingCube(sensitivity=3, epsilon=2)
    m = cube.margin(beta, dimension=dimension)
    assert stats.binom.sf(m, dimension, cube.flip) <= beta
    assert m == 0 or stats.binom.sf(m - 1, dimension, cube.flip) > beta


def test_the_repr_makes_the_same_mechanism():
    cube = HammingCube(sensitivity=3, epsilon="2/3")
    assert eval(repr(cube)) == cube


def test_a_thousand_points_take_about_a_second():
    """CPU time, and a generous bound: it was half a minute."""
    began = time.process_time()
    cycle = MetricSpace.of(range(1000), lambda p, q: min((p - q) % 1000, (q - p) % 1000))
    assert time.process_time() - began < 5
    assert cycle.homogeneous
    rows = [list(row) for row in cycle.multiples]
    rows[998][3] = rows[3][998] = rows[998][3] + 20
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace(range(1000), rows)


# --- distances of many digits --------------------------------------------------------------------


def make_line(places: list[Fraction]) -> list[list[Fraction]]:
    """On a line every triangle is flat: a detour is exactly as long as the direct way."""
    return [[abs(p - q) for q in places] for p in places]


def test_wide_distances_are_compared_exactly():
    places = [Fraction(n * n * 10**30 + 7 * n + 1, 3**40) for n in range(90)]
    rows = make_line(places)
    assert MetricSpace(range(90), rows).distance(3, 80) == rows[3][80]
    tiny = Fraction(1, 3**40)  # one unit in 10**35
    rows[3][80] = rows[80][3] = rows[3][80] + tiny
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace(range(90), rows)
    rows[3][80] = rows[80][3] = rows[3][80] - 2 * tiny  # then others are too long
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace(range(90), rows)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 10**9), Fraction(10**25)])
def test_a_flat_triangle_of_many_digits_may_be_shorter_by_nothing(scale):
    sides = [[0, 10**20, 3 * 10**20 + 1], [10**20, 0, 2 * 10**20 + 1], [3 * 10**20 + 1] * 2 + [0]]
    sides[2][1] = sides[1][2]
    exact = [[scale * side for side in row] for row in sides]
    MetricSpace("abc", exact)
    exact[0][2] = exact[2][0] = exact[0][2] + scale
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace("abc", exact)


def test_no_double_is_as_large():
    large = 2**1100
    MetricSpace("abc", [[0, large, large], [large, 0, 2 * large], [large, 2 * large, 0]])
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace(
            "abc", [[0, large, large], [large, 0, 2 * large + 1], [large, 2 * large + 1, 0]]
        )


def test_floats_are_the_decimals_that_they_print_as():
    values = [0.1, 1.25e-7, 3e20, 123.0, 1e-300, 0.30000000000000004, 5e-324, 1.7e308]
    for value in values:
        space = MetricSpace("ab", [[0.0, value], [value, -0.0]])
        assert space.distance("a", "b") == fraction(value)
        assert space == MetricSpace("ab", [[0, fraction(value)], [fraction(value), 0]])
    for bad in (-0.5, float("nan"), float("inf")):
        with pytest.raises(InvalidParameter):
            MetricSpace("ab", [[0.0, bad], [bad, 0.0]])


def draw_distances(points: int, scale: float = 1.0) -> list[list[float]]:
    """As many different floats as there are pairs; every detour is longer, by far."""
    rng = np.random.default_rng(7)
    upper = np.triu(1 + rng.random((points, points)), 1) * scale
    return (upper + upper.T).tolist()


def test_a_thousand_points_with_half_a_million_different_distances_take_about_a_second():
    """CPU time, and a generous bound: it was more than three seconds."""
    rows = draw_distances(1000)
    assert len({one for row in rows for one in row}) > 499_000
    began = time.process_time()
    space = MetricSpace(range(1000), rows)
    assert time.process_time() - began < 5
    assert space.distance(3, 801) == fraction(rows[3][801])


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-12, 1e17, 1e-40])
def test_many_floats_are_read_all_at_once_as_they_are_one_by_one(scale):
    """In 64 bits, in 128, and where neither holds them."""
    rows = draw_distances(40, scale)
    space = MetricSpace(range(40), rows)
    exact = [[fraction(one) for one in row] for row in rows]
    assert space == MetricSpace(range(40), exact)
    assert all(space.distance(i, j) == exact[i][j] for i in range(40) for j in range(40))


@pytest.mark.parametrize("off", ["0.000001", "0.000000000001", "0.0000000000000001"])
def test_one_detour_among_many_is_found_by_how_little_ever_it_is_shorter(off):
    """Too small for half the digits, for all of them, and for none."""
    rows = draw_distances(150)
    exact = [[fraction(one) for one in row] for row in rows]
    way = min(exact[20][k] + exact[k][140] for k in range(150) if k not in (20, 140))
    exact[20][140] = exact[140][20] = way
    MetricSpace(range(150), exact)
    exact[20][140] = exact[140][20] = way + fraction(off)
    with pytest.raises(InvalidParameter, match="triangle"):
        MetricSpace(range(150), exact)
