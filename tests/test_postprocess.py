"""Post-processing: each function against its definition, by independent means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.mechanisms.postprocess import (
    clamp,
    consistent,
    isotonic,
    nonnegative,
    round_to,
    simplex,
)

numbers = st.floats(-100, 100)
vectors = st.lists(numbers, min_size=1, max_size=7)


# --- one number at a time --------------------------------------------------------------------


def test_the_same_kind_comes_back():
    assert clamp(250, lower=2, upper="99.5") == 99
    assert clamp(1.5, lower=2, upper="99.5") == 2.0
    assert clamp(Fraction(1, 3), lower="1/2", upper=2) == Fraction(1, 2)
    assert type(clamp(1.5, lower=2, upper=99)) is float
    assert clamp((-4, 7), lower=2, upper=99) == (2, 7)
    assert clamp(np.array([-4, 7, 200]), lower="2.5", upper="99.5").tolist() == [3, 7, 99]
    assert clamp(np.array([-4.0]), lower="2.5", upper=99).tolist() == [2.5]
    assert nonnegative(-3) == 0
    assert type(nonnegative(-3.5)) is float
    assert nonnegative(np.array([-3, 4])).dtype == np.int64
    assert nonnegative(Fraction(-1, 2)) == 0
    assert round_to(1041, step=25) == 1050
    assert round_to(np.array([1041, 1037, -62, 2**60 + 1]), step=25).tolist() == [
        1050,
        1025,
        -50,
        round(Fraction(2**60 + 1, 25)) * 25,
    ]
    assert round_to(np.array([0.3]), step="0.25").tolist() == [0.25]
    assert round_to(Fraction(3, 10), step="0.25") == Fraction(1, 4)


def test_bounds_must_be_in_order():
    with pytest.raises(InvalidParameter, match="P4"):
        clamp(3, lower=9, upper=2)
    with pytest.raises(InvalidParameter):
        round_to(3, step=0)


# --- isotonic regression ---------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(vectors, st.data())
def test_isotonic_is_the_closest_monotone_sequence(values, data):
    variances = [data.draw(st.floats(0.1, 10)) for _ in values]
    found = isotonic(values, variances=variances)
    assert (np.diff(found) >= -1e-12).all()
    # Brute force: the min-max formula of isotonic regression.
    weights = 1 / np.array(variances)

    def average(i: int, j: int) -> float:
        return float(np.average(values[i : j + 1], weights=weights[i : j + 1]))

    n = len(values)
    expected = [
        max(min(average(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)
    ]
    assert found == pytest.approx(expected)


def test_isotonic_keeps_what_is_in_order():
    assert isotonic([2, 3, 3, 9]).tolist() == [2, 3, 3, 9]
    assert isotonic([]).tolist() == []
    assert isotonic([9, 3]).tolist() == [6, 6]


# --- the simplex -----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(vectors, st.floats(0.5, 200))
def test_simplex_is_the_projection(values, total):
    found = simplex(values, total=total)
    assert found.sum() == pytest.approx(total)
    assert (found >= 0).all()
    # Optimality (Karush-Kuhn-Tucker): what is kept moved by one constant, the rest by less.
    shift = np.array(values) - found
    kept = found > 1e-9
    assert np.ptp(shift[kept]) < 1e-6
    assert (shift[~kept] <= shift[kept].min() + 1e-6).all()


def test_simplex_refuses_nothing_and_no_total():
    with pytest.raises(InvalidParameter, match="P5"):
        simplex([], total=3)
    with pytest.raises(InvalidParameter):
        simplex([2, 3], total=0)


# --- hierarchies -----------------------------------------------------------------------------


@st.composite
def trees(draw):
    size = draw(st.integers(1, 12))
    parents = [None] + [draw(st.integers(0, node - 1)) for node in range(1, size)]
    values = [draw(numbers) for _ in range(size)]
    variances = [draw(st.floats(0.1, 10)) for _ in range(size)]
    return parents, values, variances


def leaves_under(parents, node) -> list[int]:
    below = [child for child, parent in enumerate(parents) if parent == node]
    return (
        [node] if not below else [leaf for child in below for leaf in leaves_under(parents, child)]
    )


def dense_least_squares(parents, values, variances) -> np.ndarray:
    """The same numbers from the normal equations of the leaves."""
    leaves = [n for n in range(len(parents)) if n not in parents]
    design = np.array(
        [
            [float(leaf in leaves_under(parents, node)) for leaf in leaves]
            for node in range(len(parents))
        ]
    )
    weight = 1 / np.sqrt(np.array(variances))
    solved = np.linalg.lstsq(design * weight[:, None], np.array(values) * weight, rcond=None)[0]
    return design @ solved


@given(trees())
def test_consistent_is_weighted_least_squares(tree):
    parents, values, variances = tree
    found = consistent(values, parents=parents, variances=variances)
    assert found == pytest.approx(dense_least_squares(parents, values, variances), abs=1e-6)


def test_children_add_up_to_their_parents():
    parents = [None, 0, 0, 1, 1, 2, 2, None, 7]
    found = consistent(
        [90, 50, 30, 20, 21, 22, 23, 5, 9], parents=parents, variances=[1, 2, 3, 4, 5, 6, 7, 8, 9]
    )
    for node in range(9):
        below = [child for child, parent in enumerate(parents) if parent == node]
        if below:
            assert found[node] == pytest.approx(found[below].sum())


def test_known_totals_stay_and_unmeasured_nodes_follow():
    known = consistent([100, 60, 20], parents=[None, 0, 0], variances=[0, 3, 1])
    assert known.tolist() == pytest.approx([100, 75, 25])
    unmeasured = consistent([0, 60, 20], parents=[None, 0, 0], variances=[math.inf, 3, 1])
    assert unmeasured.tolist() == pytest.approx([80, 60, 20])
    both = consistent([100, 60, 20], parents=[None, 0, 0], variances=[2, 0, 0])
    assert both.tolist() == pytest.approx([80, 60, 20])


def test_consistency_reduces_the_error():
    """Two levels of equal noise over 8 children: the variance of the total falls to 8/9, and
    that of a child to 8/9 too (Hay et al.); from the matrix of the linear map, so exactly."""
    noise = Laplace(sensitivity=2, epsilon="1/2")
    spread = [noise.variance] * 9
    columns = [
        consistent(unit, parents=[None] + [0] * 8, variances=spread) for unit in np.identity(9)
    ]
    after = (np.array(columns) ** 2 * noise.variance).sum(axis=0)
    assert after / noise.variance == pytest.approx([8 / 9] * 9)


@pytest.mark.parametrize(
    "bad",
    [
        {"parents": [None, 0]},
        {"parents": [1, 0, None]},
        {"parents": [None, 0, 9]},
        {"variances": [1, 2]},
        {"variances": [1, 2, -1]},
        {"variances": [1, math.inf, 2]},
        {"variances": [1, math.nan, 2]},
        {"released": [1, math.nan, 2]},
        {"released": [[1, 2, 3]]},
    ],
)
def test_what_is_no_hierarchy_is_refused(bad):
    arguments = {"released": [9, 4, 3], "parents": [None, 0, 0], "variances": [2, 3, 4], **bad}
    with pytest.raises(InvalidParameter):
        consistent(arguments.pop("released"), **arguments)


def test_isotonic_agrees_with_scipy():
    values = np.random.default_rng(7).normal(size=200).cumsum()
    assert isotonic(values) == pytest.approx(optimize.isotonic_regression(values).x)
