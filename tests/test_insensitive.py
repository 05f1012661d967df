"""Insensitive functions: histograms, distances from properties, moments, samples."""

from __future__ import annotations

import itertools
import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.mechanisms import (
    Disjoint,
    Gaussian,
    Grid,
    Histogram,
    Laplace,
    Moments,
    PropertyDistance,
    SubsampleAggregate,
    disjoint_sensitivity,
    distance_to_clusters,
    distance_to_maximum,
    distance_to_sorted,
    sample_sensitivity,
)

# --- disjoint analyses -----------------------------------------------------------------------


def test_a_histogram_costs_the_same_for_any_number_of_bins():
    small = Histogram(bins=range(3), epsilon="1/2", rows_per_unit=3)
    large = Histogram(bins=range(3000), epsilon="1/2", rows_per_unit=3)
    assert small.loss == large.loss
    assert small.counts.scale == large.counts.scale == 6
    assert small.margin("0.05") == small.counts.margin("0.05", coordinates=3)
    assert large.margin("0.05") == large.counts.margin("0.05", coordinates=3000)
    assert large.margin("0.05") > small.margin("0.05")


def test_a_histogram_counts_the_declared_bins_only():
    ages = Histogram(bins=("a", "b"), epsilon=50, rows_per_unit=2)
    rows = ["a", "b", "b", "elsewhere", None, ["b"], ("a", ["b"])]
    noisy = ages.release(rows)
    assert list(noisy) == ["a", "b"]
    assert ages.count(rows) == [1, 2]
    assert all(isinstance(count, int) for count in noisy.values())
    for bad in ((), ("a", "a")):
        with pytest.raises(InvalidParameter):
            Histogram(bins=bad, epsilon=2)


def test_disjoint_regions_cost_the_dearest():
    parts = {
        "a": Laplace(sensitivity=3, epsilon="1/4"),
        "b": Gaussian(sensitivity=3, rho="1/9"),
        "c": Laplace(sensitivity=2, epsilon="1/3"),
    }
    regions = Disjoint(parts)
    assert regions.loss.epsilon == math.inf
    assert regions.loss.rho == max(part.loss.rho for part in parts.values())
    assert Disjoint({k: parts[k] for k in "ac"}).loss.epsilon == Fraction(1, 3)
    assert disjoint_sensitivity(3, "7/2") == Fraction(7, 2)
    assert set(regions.release({"a": 4, "b": [5, 6], "c": 7})) == {"a", "b", "c"}


def test_every_region_must_have_a_value():
    regions = Disjoint({"a": Laplace(sensitivity=3, epsilon="1/4")})
    for values in ({}, {"a": 2, "secret": 3}, {"secret": 3}):
        with pytest.raises(InvalidParameter, match="P6") as refusal:
            regions.release(values)
        assert "secret" not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="P5"):
        Disjoint({})
    with pytest.raises(InvalidParameter, match="P5"):
        disjoint_sensitivity()


# --- distance from a property ----------------------------------------------------------------


def fewest_removed(rows, has) -> int:
    """Brute force: the fewest entries to take out until the property holds."""
    for removed in range(len(rows) + 1):
        for kept in itertools.combinations(range(len(rows)), len(rows) - removed):
            if has([rows[place] for place in kept]):
                return removed
    raise AssertionError("the empty data have every property here")


def is_sorted(rows) -> bool:
    return all(a <= b for a, b in itertools.pairwise(rows))


def in_clusters(rows, clusters, width) -> bool:
    """Greedy from the left, which is optimal for covering points on a line."""
    used, edge = 0, None
    for point in sorted(rows):
        if edge is None or point > edge:
            used, edge = used + 1, point + width
    return used <= clusters


short_rows = st.lists(st.integers(0, 12), max_size=8)


@given(short_rows)
def test_distance_to_sortedness(rows):
    assert distance_to_sorted(rows) == fewest_removed(rows, is_sorted)


@given(short_rows, st.integers(0, 12))
def test_distance_to_a_bound_on_the_maximum(rows, bound):
    def has(kept) -> bool:
        return not kept or max(kept) <= bound

    assert distance_to_maximum(rows, bound=bound) == fewest_removed(rows, has)


@given(short_rows, st.integers(1, 4), st.integers(0, 5))
def test_distance_to_clusters(rows, clusters, width):
    def has(kept) -> bool:
        return in_clusters(kept, clusters, width)

    assert distance_to_clusters(rows, clusters=clusters, width=width) == fewest_removed(rows, has)


DISTANCES = [
    distance_to_sorted,
    lambda rows: distance_to_maximum(rows, bound="8.5"),
    lambda rows: distance_to_clusters(rows, clusters=2, width="5/2"),
]


@pytest.mark.parametrize("distance", DISTANCES)
@given(rows=st.lists(st.floats(), max_size=20), row=st.floats(), place=st.integers(0, 20))
def test_one_row_moves_a_distance_by_at_most_one(distance, rows, row, place):
    """Whatever the row is: infinite, tiny, not a number."""
    more = [*rows[:place], row, *rows[place:]]
    assert abs(distance(more) - distance(rows)) <= 1
    assert distance(np.array(rows, dtype=float)) == distance(rows)


@pytest.mark.parametrize("distance", DISTANCES)
def test_rows_of_any_kind_have_a_distance(distance):
    """No row can make a distance fail: that would be seen."""
    poison = [None, "text", [2], math.nan, math.inf, -math.inf, Decimal("sNaN"), Decimal("-inf")]
    mixed = [Decimal("2.5"), Fraction(7, 3), 4, 2.25, np.float32(3.5), np.int8(6), True]
    for row in poison:
        assert abs(distance([*mixed, row]) - distance(mixed)) <= 1
    assert distance(poison) <= 3


def test_a_property_distance_is_released_with_laplace_noise():
    mechanism = PropertyDistance(distance_to_sorted, epsilon="1/2", rows_per_unit=3)
    assert mechanism.count.scale == 6
    assert mechanism.margin("0.05") == Laplace(sensitivity=3, epsilon="1/2").margin("0.05")
    assert mechanism.law([5, 2, 3]).center == 1
    assert "distance_to_sorted" in repr(mechanism)


# --- mean and covariance ---------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 3), min_size=1, max_size=6
    ),
    st.fractions(Fraction(1, 7), 50, max_denominator=30),
)
def test_the_norm_is_enforced_on_every_row(rows, bound):
    moments = Moments(dimension=3, bound=bound, epsilon=2)
    vectors = moments.enforce(np.array(rows))
    norms = np.abs(vectors).sum(axis=1)
    assert (norms * float(moments.grid.step) <= float(bound)).all()
    outer = np.abs(vectors[:, :, None] * vectors[:, None, :]).sum(axis=(1, 2))
    assert (outer <= moments.reach**2).all()
    alone = [moments.enforce(np.array([row]))[0].tolist() for row in rows]
    assert vectors.tolist() == alone  # a row's result depends on that row alone


def test_rows_within_the_bound_are_kept():
    moments = Moments(dimension=2, bound=3, epsilon=2, grid=Grid("1/8"))
    assert moments.enforce([[1.5, -0.25], [-1.26, 0.0]]).tolist() == [[12, -2], [-10, 0]]
    assert 2**15 < Moments(dimension=2, bound="3.7", epsilon=2).reach <= 2**16


def test_sums_are_exact_beyond_the_doubles():
    """Enough rows that one matrix product of doubles would round."""
    moments = Moments(dimension=2, bound=2**20, epsilon=3, grid=Grid(1))
    rows = np.full((20_001, 2), [2**20 - 1, 1])
    law = moments.law(rows)
    centers = [one.center for one in law.laws]
    n, a = 20_001, 2**20 - 1
    assert centers == [n, n * a, n, n * a * a, n * a, n]
    assert n * a * a > 2**53  # and odd, so no double


def test_moments_come_close_for_many_rows():
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (50_000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.2]])
    moments = Moments(dimension=3, bound=4, epsilon=3)
    noisy = moments.release(rows)
    assert np.abs(noisy.mean - rows.mean(axis=0)).max() < 0.01
    assert np.abs(noisy.covariance - np.cov(rows.T, bias=True)).max() < 0.02
    assert np.array_equal(noisy.products, noisy.products.T)
    assert moments.loss.epsilon == 3


def test_the_improvement_that_the_paper_claims():
    """DMNS 3.2: joint noise beats noise per coordinate by d and d**2, and by sqrt(d) and d
    against noise that grows with the root of the number of queries."""
    d, bound, third = 16, 5, Fraction(1, 2)
    moments = Moments(dimension=d, bound=bound, epsilon=3 * third)
    sums = moments.sums.scale * moments.grid.step
    products = moments.products.scale * moments.grid.step**2
    # One at a time, each is bounded by gamma (gamma**2) and gets 1/d (1/d**2) of epsilon.
    assert Laplace(sensitivity=bound, epsilon=third / d).scale / sums == d
    assert Laplace(sensitivity=bound**2, epsilon=third / d**2).scale / products == d**2
    # Noise proportional to the root of the number of queries, as for Gaussian noise whose
    # variance covers d (d**2) queries that may each change by gamma (gamma**2).
    one = Gaussian(sensitivity=bound, rho=third).sigma_squared
    every = Gaussian(sensitivity_squared=d * bound**2, rho=third).sigma_squared
    assert math.sqrt(every / one) == math.sqrt(d)
    one = Gaussian(sensitivity=bound**2, rho=third).sigma_squared
    every = Gaussian(sensitivity_squared=d**2 * bound**4, rho=third).sigma_squared
    assert math.sqrt(every / one) == d


def test_joint_noise_is_measured_smaller():
    """The same factors, measured on releases: mean absolute noise in the sums of 3,000 releases."""
    d, bound, third = 9, 4, Fraction(1, 2)
    moments = Moments(dimension=d, bound=bound, epsilon=3 * third, grid=Grid("1/16"))
    nothing = np.zeros((1, d))
    joint = np.mean([np.abs(moments.release(nothing).sums) for _ in range(3000)])
    apart = Laplace(sensitivity=bound, epsilon=third / d).release(np.zeros(27_000, dtype=np.int64))
    assert np.abs(apart).mean() / joint == pytest.approx(d, rel=0.1)


def test_the_margins_hold_together():
    moments = Moments(dimension=3, bound=4, epsilon=3)
    m = moments.margin("0.1")
    assert m.count == moments.count.margin(Fraction(1, 30))
    assert m.sums == pytest.approx(
        float(moments.sums.margin(Fraction(1, 30), coordinates=3)) * float(moments.grid.step)
    )


def test_moments_refuse_what_they_cannot_hold():
    with pytest.raises(InvalidParameter, match="P4"):
        Moments(dimension=2, bound=3, epsilon=2, grid=Grid(4))
    with pytest.raises(InvalidParameter, match="P4"):
        Moments(dimension=2, bound=3, epsilon=2, grid=Grid(Fraction(1, 2**30)))
    moments = Moments(dimension=2, bound=3, epsilon=2)
    for rows in ([1.5, 2.5], [[1.5]], [["a", "b"]]):
        with pytest.raises(InvalidParameter, match="P6"):
            moments.release(rows)


# --- low sample complexity -------------------------------------------------------------------


def test_lemma_3_5():
    assert sample_sensitivity(error="0.05", sampled="0.2", confidence="0.61") == Fraction(1, 10)
    with pytest.raises(InvalidParameter, match="P4"):
        sample_sensitivity(error="0.05", sampled="0.2", confidence="0.6")


def medians(blocks=64, epsilon=2) -> SubsampleAggregate:
    return SubsampleAggregate(
        statistics.median, blocks=blocks, lower=-2, upper=14, epsilon=epsilon, grid=Grid("1/256")
    )


def test_a_median_by_blocks():
    rng = np.random.default_rng(3)
    rows = rng.normal(5, 2, 20_000)
    errors = [abs(medians().release(rows) - 5) for _ in range(20)]
    assert statistics.mean(errors) < 0.5
    assert abs(medians().release(list(rows)) - 5) < 3


def test_no_rows_have_an_answer_too():
    assert -14 < medians(epsilon=9).release([]) < 26


def test_the_noise_covers_one_block_from_end_to_end():
    mechanism = medians()
    assert mechanism.total.sensitivity == 16 * 256
    assert mechanism.margin("0.05") == Laplace(sensitivity=4096, epsilon=2).margin(
        "0.05"
    ) * Fraction(1, 256 * 64)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-99, 99), max_size=12), st.integers(-99, 99), st.data())
def test_given_the_blocks_one_row_moves_one_value(rows, row, data):
    """The coupling of the proof: same blocks for the others, the row joins one of them."""
    mechanism = medians(blocks=4)
    where = [data.draw(st.integers(0, 3)) for _ in rows]
    own = data.draw(st.integers(0, 3))

    def total(extra) -> int:
        return sum(
            mechanism._steps(
                [r for r, w in zip(rows, where, strict=True) if w == b]
                + ([row] if extra and b == own else [])
            )
            for b in range(4)
        )

    assert abs(total(True) - total(False)) <= mechanism.total.sensitivity


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: 1 / 0,
        lambda rows: math.nan,
        lambda rows: "text",
        lambda rows: None,
        lambda rows: (_ for _ in ()).throw(RuntimeError("secret")),
    ],
)
def test_a_function_that_fails_has_a_value_all_the_same(function):
    mechanism = SubsampleAggregate(
        function, blocks=64, lower=-2, upper=14, epsilon=90, grid=Grid("1/256")
    )
    assert mechanism.release([5] * 10) == pytest.approx(6, abs=1)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_a_function_out_of_bounds_is_clipped(value):
    mechanism = SubsampleAggregate(
        lambda _: value, blocks=64, lower=-2, upper=14, epsilon=90, grid=Grid("1/256")
    )
    assert mechanism.release([5] * 10) == pytest.approx(14 if value > 0 else -2, abs=1)


def test_bounds_must_be_in_order():
    for lower, upper in ((3, 3), (4, 3)):
        with pytest.raises(InvalidParameter, match="P4"):
            SubsampleAggregate(
                statistics.median, blocks=4, lower=lower, upper=upper, epsilon=2, grid=Grid("1/8")
            )
