"""The Laplace mechanism, the public grid and its prices."""

from __future__ import annotations

import inspect
import math
from collections import namedtuple
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from discreet import mechanisms
from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.audit import observe
from discreet.errors import InvalidParameter
from discreet.exact.balls import enclose
from discreet.mechanisms import Gaussian, Grid, Laplace

CANARY = 8_675_309

Point = namedtuple("Point", "x y")

betas = st.fractions(Fraction(1, 10**6), Fraction(9, 10), max_denominator=10**6)
prices = st.fractions(Fraction(1, 50), 6, max_denominator=100)


# --- accuracy --------------------------------------------------------------------------------


def exceeds(scale: Fraction, m: int, coordinates: int) -> tuple[Fraction, Fraction]:
    """P(some |Z| > m), from the law's own tail and not from the formula in the mechanism."""
    law = DiscreteLaplaceLaw(0, scale)
    return enclose(lambda: 1 - (1 - 2 * law.tail(m + 1)) ** coordinates)


@given(st.integers(2, 50), prices, betas, st.integers(1, 1000))
def test_margin_is_the_least(sensitivity, epsilon, beta, coordinates):
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    m = mechanism.margin(beta, coordinates=coordinates)
    assert exceeds(mechanism.scale, m, coordinates)[1] <= beta
    assert m == 0 or exceeds(mechanism.scale, m - 1, coordinates)[0] > beta


@given(st.integers(2, 50), prices, betas, st.integers(1, 10**6))
def test_margin_is_never_worse_than_theorem_3_8(sensitivity, epsilon, beta, coordinates):
    """DR 3.8: scale * ln(k / beta), here plus at most the one step of the integers."""
    mechanism = Laplace(sensitivity=sensitivity, epsilon=epsilon)
    theorem = float(mechanism.scale) * math.log(coordinates / beta)
    assert mechanism.margin(beta, coordinates=coordinates) <= theorem + 1


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (Laplace(sensitivity=3, epsilon="1/4"), {"coordinates": 3}),
        (Gaussian(sensitivity=3, rho="1/8"), {}),
        (mechanisms.Staircase(sensitivity=3, epsilon=2), {}),
        (mechanisms.Histogram(bins=["a", "b", "c"], epsilon="1/2"), {}),
        (mechanisms.PropertyDistance(len, epsilon="1/2"), {}),
        (mechanisms.Quantile("1/2", lower=0, upper=9, epsilon=2), {}),
        (mechanisms.Quantiles(["1/4", "1/2"], lower=0, upper=9, epsilon=2), {}),
        (mechanisms.ExponentialMechanism(sensitivity=3, epsilon=2), {"candidates": 5}),
        (mechanisms.ReportNoisyMax(sensitivity=3, epsilon=2), {"candidates": 5}),
        (mechanisms.TopK(k=3, sensitivity=3, epsilon=2), {"candidates": 5}),
        (mechanisms.AboveThreshold(threshold=3, sensitivity=2, epsilon=2), {"queries": 7}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_margin_is_asked_for_by_either_chance(mechanism, options):
    usual = mechanism.margin("0.05", **options)
    assert mechanism.margin(confidence="0.95", **options) == usual
    assert mechanism.margin(beta="0.05", **options) == usual
    for chances in ({}, {"beta": "0.05", "confidence": "0.95"}):
        with pytest.raises(InvalidParameter, match="beta or confidence, and not both"):
            mechanism.margin(**chances, **options)
    with pytest.raises(InvalidParameter, match="confidence must be strictly between"):
        mechanism.margin(confidence=95, **options)


def test_every_margin_takes_a_confidence():
    named = [getattr(mechanisms, name) for name in mechanisms.__all__]
    having = [one for one in named if hasattr(one, "margin")]
    assert len(having) >= 20
    for one in having:
        assert "confidence" in inspect.signature(one.margin).parameters, one


def test_the_ten_thousand_names_of_example_3_3():
    """DR Example 3.3: 10,000 names, epsilon 1, 95 %: ln(10000 / 0.05) = 12.2, here exactly 12."""
    names = Laplace(sensitivity=1, epsilon=1)
    assert round(math.log(10_000 / 0.05), 1) == 12.2
    m = names.margin("0.05", coordinates=10_000)
    # Independently: the continuous bound allows 13 on the integers; the discrete law needs 12.
    q = math.exp(-1)
    fails = [1 - (1 - 2 * q ** (k + 1) / (1 + q)) ** 10_000 for k in range(20)]
    assert m == next(k for k, p in enumerate(fails) if p <= 0.05) == 12


@given(st.integers(0, 500), st.integers(2, 30), st.integers(1, 300))
def test_within_is_the_cheapest_on_the_ladder(margin, sensitivity, coordinates):
    found = Laplace.within(margin, "0.95", sensitivity=sensitivity, coordinates=coordinates)
    beta = Fraction(1, 20)
    assert found.margin(beta, coordinates=coordinates) <= margin
    magnitude = math.floor(math.log10(found.epsilon))
    rung_below = found.epsilon - Fraction(10) ** (magnitude - 5)
    cheaper = Laplace(sensitivity=sensitivity, epsilon=rung_below)
    assert cheaper.margin(beta, coordinates=coordinates) > margin


def test_within_on_a_grid_counts_in_the_values_unit():
    found = Laplace.within("2.5", "0.9", sensitivity="0.7", grid=Grid("1/16"))
    assert found.margin("0.1") <= Fraction(5, 2)
    assert found.margin("0.1") % Fraction(1, 16) == 0
    cheaper = Laplace(
        sensitivity="0.7", epsilon=found.epsilon * Fraction(99999, 100000), grid=Grid("1/16")
    )
    assert cheaper.margin("0.1") > Fraction(5, 2)


def test_variance_is_that_of_the_law():
    mechanism = Laplace(sensitivity=3, epsilon="1/2")
    law = mechanism.law(0)
    total = sum(2 * z * z * float(law.mass(z)) for z in range(1, 600))
    assert mechanism.variance == pytest.approx(total)
    assert Laplace(sensitivity=1, epsilon=800).variance == 0.0


# --- the grid --------------------------------------------------------------------------------


reals = st.fractions(-100, 100, max_denominator=10**6)


@given(reals, reals, st.integers(-8, 4))
def test_rounding_costs_at_most_one_step(a, b, exponent):
    grid = Grid(Fraction(2) ** exponent)
    assert abs(grid.snap(a) - grid.snap(b)) <= math.ceil(abs(a - b) / grid.step)
    assert abs(grid.snap(a) * grid.step - a) <= grid.step / 2


def test_halves_to_even_would_move_neighbours_two_steps_apart():
    """The mutant that np.rint is: 1/2 and 3/2 are one step apart, and became 0 and 2."""
    grid = Grid(1)
    halves = np.array([0.5, 1.5])
    assert np.diff(np.rint(halves)) == 2
    assert np.diff(grid.snap(halves)) == 1
    assert grid.snap(1.5) - grid.snap(0.5) == 1


@given(st.lists(reals, min_size=1, max_size=5), st.data())
def test_lemma_1_bounds_vectors(first, data):
    moves = [data.draw(st.fractions(-3, 3, max_denominator=1000)) for _ in first]
    sensitivity = sum(map(abs, moves))
    assume(sensitivity > 0)
    grid = Grid("1/8")
    second = [value + move for value, move in zip(first, moves, strict=True)]
    moved = sum(abs(grid.snap(a) - grid.snap(b)) for a, b in zip(first, second, strict=True))
    squared = sum((grid.snap(a) - grid.snap(b)) ** 2 for a, b in zip(first, second, strict=True))
    entries = sum(move != 0 for move in moves)
    assert moved <= grid.steps(sensitivity, entries_changed=entries)
    assert squared <= grid.steps_squared(sum(m * m for m in moves), entries_changed=entries)


def test_lemma_1_is_attained():
    grid, tiny, edge = Grid("1/4"), Fraction(1, 10**9), Fraction(1, 8)
    first = [edge - tiny] * 3
    second = [edge, edge, edge - tiny + Fraction(23, 10) - 2 * tiny]
    moved = sum(abs(grid.snap(a) - grid.snap(b)) for a, b in zip(first, second, strict=True))
    assert moved == grid.steps("2.3", entries_changed=3) == 12


@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(-30, 30))
@example(0.49999999999999994, 0)
@example(-0.5, 0)
@example(-0.5000000000000001, 0)
@example(-5e-324, 3)
@example(4503599627370497.5, 0)
def test_arrays_and_scalars_snap_alike(value, exponent):
    grid = Grid(Fraction(2) ** exponent)
    exact = math.floor(Fraction(value) / grid.step + Fraction(1, 2))
    if -(2**63) <= exact < 2**63:
        assert grid.snap(value) == exact
        assert grid.snap(np.array([value])).tolist() == [exact]
        assert grid.lift(exact, like=value) == pytest.approx(value, abs=float(grid.step) / 2)
    else:
        for form in (value, np.array([value])):
            with pytest.raises(InvalidParameter, match="P6"):
                grid.snap(form)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-70, 70))
@example(-(2**63), 0)
@example(-(2**60), -3)
def test_integer_arrays_snap_exactly(value, exponent):
    grid = Grid(Fraction(2) ** exponent)
    exact = math.floor(Fraction(value) / grid.step + Fraction(1, 2))
    if -(2**63) <= exact < 2**63:
        assert grid.snap(np.array([value])).tolist() == [exact]


@pytest.mark.parametrize("step", ["1/3", 3, "0.1", Fraction(3, 8)])
def test_a_grid_is_a_power_of_two(step):
    with pytest.raises(InvalidParameter, match="power of two"):
        Grid(step)


def test_every_output_is_a_multiple_of_the_grid():
    mechanism = Laplace(sensitivity=1, epsilon="1/3", grid=Grid("1/1024"))
    for value in (0.1, 1e9 + 0.3, -(2.0**40), 2.0**52):
        noisy = mechanism.release(value)
        assert isinstance(noisy, float)
        assert (Fraction(noisy) * 1024).denominator == 1
    array = Laplace(sensitivity=1, epsilon="1/3", grid=Grid("1/1024"), entries_changed=1).release(
        np.linspace(-5, 5, 1001)
    )
    assert np.array_equal(array * 1024, np.round(array * 1024))


def test_clip_is_total():
    grid = Grid("1/2")
    array = grid.clip(np.array([np.nan, np.inf, -np.inf, 1.25]), lower=-3, upper=4)
    assert array.tolist() == [-3.0, 4.0, -3.0, 1.25]
    assert grid.clip((None, Decimal("NaN"), 9, "text"), lower=-3, upper=4) == (-3, -3, 4, -3)
    mixed = np.array([None, 10**400, "x", Decimal("inf")], dtype=object)
    assert grid.clip(mixed, lower=-3, upper=4).tolist() == [-3, 4, -3, 4]
    assert grid.clip(np.float32("inf"), lower=-3, upper=4) == 4
    assert grid.clip(np.array([2**60 + 1, -9]), lower=-3, upper=2**61).tolist() == [2**60 + 1, -3]
    assert grid.clip(np.array([200], dtype=np.uint8), lower=-3, upper="7/2").tolist() == [3]
    assert grid.clip(np.array([1e400, 2.0], dtype=np.longdouble), lower=-3, upper=4).max() == 4
    with pytest.raises(InvalidParameter, match="P4"):
        grid.clip(2.0, lower=4, upper=-3)


# --- kinds of values -------------------------------------------------------------------------


def test_the_same_kind_comes_back():
    whole = Laplace(sensitivity=3, epsilon=2)
    assert type(whole.release(7)) is int
    assert type(whole.release(np.int64(7))) is int
    assert [type(x) for x in whole.release([7, 8])] == [int, int]
    assert isinstance(whole.release((7, 8)), tuple)
    square = whole.release(np.arange(6, dtype=np.int8).reshape(2, 3))
    assert square.shape == (2, 3)
    assert square.dtype == np.int64
    assert whole.release(np.array(5)).shape == ()
    assert whole.release(np.array([], dtype=np.int64)).size == 0
    assert whole.release([]) == []
    assert len(whole.release(range(4))) == 4
    point = whole.release(Point(3, 4))
    assert type(point) is tuple
    real = Laplace(sensitivity=3, epsilon=2, grid=Grid("1/4"), entries_changed=2)
    assert type(real.release(2.5)) is float
    assert type(real.release(Fraction(5, 3))) is Fraction
    assert [type(x) for x in real.release((2.5, Decimal("0.1")))] == [float, Fraction]
    assert real.release(np.array([2.5, 0.1], dtype=np.float32)).dtype == np.float64
    assert real.release(np.array([2, 7])).dtype == np.float64


def test_every_entry_has_its_own_noise():
    noisy = Laplace(sensitivity=3, epsilon="1/10").release(np.zeros(2000, dtype=np.int64))
    assert len(set(noisy.tolist())) > 50
    assert len(set(Laplace(sensitivity=3, epsilon="1/10").release([0] * 500))) > 30


@pytest.mark.parametrize("end", [2**63 - 1, -(2**63)])
def test_arrays_saturate_and_never_wrap(end):
    noisy = Laplace(sensitivity=3, epsilon="1/9").release(np.full(1000, end))
    assert (np.sign(noisy) == np.sign(end)).all()
    assert (noisy == end).any()
    unsigned = Laplace(sensitivity=3, epsilon="1/9").release(
        np.full(50, 2**64 - 1, dtype=np.uint64)
    )
    assert (unsigned > 2**62).all()
    assert abs(Laplace(sensitivity=3, epsilon="1/9").release(2**80) - 2**80) < 2**20


@pytest.mark.parametrize(
    "mechanism",
    [Laplace(sensitivity=3, epsilon="1/7"), Gaussian(sensitivity=3, rho="1/50")],
    ids=["Laplace", "Gaussian"],
)
def test_arrays_of_pythons_integers_hold_any_size(mechanism):
    """The same draws on the same numbers, far beyond 64 bits too: neither cut nor rounded."""
    values = np.array([[5, -(2**62)], [2**62 - 1, 0]])
    far = 2**90
    with observe():
        plain = mechanism.release(values)
    with observe():
        exact = mechanism.release(values.astype(object) + far)
    assert exact.dtype == object
    assert exact.shape == values.shape
    assert (exact - far).tolist() == plain.tolist()
    assert plain.tolist() != values.tolist()
    with observe():
        grown = mechanism.release(values, exact=True)
    assert grown.dtype == object
    assert grown.tolist() == plain.tolist()
    ends = np.array([2**63 - 1, -(2**63)] * 20)
    beyond = mechanism.release(ends, exact=True)
    assert max(beyond) > 2**63 - 1
    assert min(beyond) < -(2**63)
    assert max(abs(beyond - ends.astype(object))) < 10**6
    mixed = np.array([np.int64(7), 2**70], dtype=object)  # numpy's integers among them
    assert {type(one) for one in mechanism.release(mixed).tolist()} == {int}


def test_saturation_on_the_grid_is_still_on_the_grid():
    mechanism = Laplace(sensitivity=3, epsilon="1/9", grid=Grid("1/4"))
    assert mechanism.release(2.0**60) <= 2.0**61
    assert mechanism.release(Fraction(2**61) - Fraction(1, 4)) <= 2**61


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -3, "0", float("nan"), float("inf"), "many", True])
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_outside_their_domain_are_refused(name, bad):
    given = {"sensitivity": 3, "epsilon": 2, name: bad}
    with pytest.raises(InvalidParameter, match=name):
        Laplace(**given)


def test_a_fraction_needs_a_grid():
    with pytest.raises(InvalidParameter, match="grid"):
        Laplace(sensitivity="5/2", epsilon=2)


def test_too_much_noise_is_refused_when_the_mechanism_is_made():
    with pytest.raises(InvalidParameter, match="coarser grid"):
        Laplace(sensitivity=2**40, epsilon="1/1000", grid=Grid(Fraction(1, 2**20)))


@pytest.mark.parametrize(
    "value",
    [
        float(CANARY) + 0.5,
        str(CANARY),
        None,
        True,
        [CANARY, CANARY + 0.25],
        np.array([CANARY + 0.5]),
        np.array([CANARY, CANARY + 0.5], dtype=object),
        np.array([True, CANARY], dtype=object),
        np.array([True]),
    ],
)
def test_without_a_grid_only_whole_numbers_and_no_value_in_the_refusal(value):
    with pytest.raises(InvalidParameter, match="P6") as refusal:
        Laplace(sensitivity=3, epsilon=2).release(value)
    assert str(CANARY) not in str(refusal.value)


@pytest.mark.parametrize("mechanism", [Laplace(3, "1e9"), Gaussian(sensitivity=3, rho="1e9")])
def test_what_calls_itself_an_array_is_read_as_one(mechanism):
    released = mechanism.release(pd.Series([40, 7], dtype="Int64"))
    assert isinstance(released, np.ndarray)
    assert released.tolist() == [40, 7]
    assert mechanism.release(pd.DataFrame({"a": [4, 7], "b": [5, 9]})).tolist() == [[4, 5], [7, 9]]
    assert mechanism.release(pa.chunked_array([[3], [8, 2]])).tolist() == [3, 8, 2]
    on_grid = Laplace(3, "1e9", grid=Grid("1/4"), entries_changed=2)
    assert on_grid.release(pd.Series([2.5, 7.0])).tolist() == [2.5, 7.0]
    with pytest.raises(InvalidParameter, match="entries_changed"):
        Laplace(3, "1e9", grid=Grid("1/4")).release(pd.Series([2.5, 7.0]))


class Broken:
    """Says that it is an array, and what its cell holds."""

    def __array__(self, *_: object, **__: object) -> None:
        raise ValueError("4711")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "text"),
        (["a"], "text"),
        (np.array(["a"]), "text"),
        (pd.Series([True]), "truth value"),
        (True, "truth value"),
        (np.bool_(True), "truth value"),
        (math.nan, "not a number"),
        ([3, np.float64("inf")], "not a number"),
        (Decimal("sNaN"), "not a number"),
        (2.5, "digits after the point"),
        (Fraction(5, 2), "digits after the point"),
        (pd.Series([2.5]), "digits after the point"),
        (pd.Series([3.0, math.nan]), "digits after the point"),  # its type is public, no more
        (None, "this is none"),
        (pd.Series([3, None], dtype=object), "this is none"),
        (Broken(), "this is none"),
    ],
)
def test_the_refusal_fits_what_was_given(value, words):
    with pytest.raises(InvalidParameter) as refusal:
        Laplace(sensitivity=3, epsilon=1).release(value)
    assert refusal.value.code == "P6"
    assert words in refusal.value.why
    assert "4711" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        CANARY * 1e300,
        CANARY * 10**30,
        str(CANARY),
        np.array([CANARY, np.nan]),
        np.array([CANARY * 1e300]),
        np.array([CANARY * 10**11]),
        np.array([CANARY], dtype=np.longdouble),
        np.array([str(CANARY)]),
        [2.0, float("nan")],
    ],
)
def test_off_the_grid_is_refused_without_the_value(value):
    mechanism = Laplace(sensitivity=3, epsilon=2, grid=Grid("1/1024"), entries_changed=2)
    if isinstance(value, np.ndarray) and value.dtype == np.int64:
        mechanism = Laplace(sensitivity=3, epsilon=2, grid=Grid(Fraction(1, 2**40)))
    with pytest.raises(InvalidParameter, match="P6") as refusal:
        mechanism.release(value)
    assert str(CANARY) not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_a_real_vector_must_say_how_many_entries_change():
    mechanism = Laplace(sensitivity=3, epsilon=2, grid=Grid("1/4"))
    for form in ([1.5, 2.5], np.array([1.5, 2.5])):
        with pytest.raises(InvalidParameter, match="entries_changed"):
            mechanism.release(form)
        with pytest.raises(InvalidParameter, match="entries_changed"):
            mechanism.law(form)


# --- what it says of itself ------------------------------------------------------------------


def test_the_loss_is_the_epsilon_asked_for_on_any_grid():
    for grid in (None, Grid("1/8"), Grid(4)):
        mechanism = Laplace(sensitivity=3, epsilon="2/7", grid=grid)
        assert mechanism.loss.epsilon == Fraction(2, 7)


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(sensitivity=3, epsilon="1/4"),
        Laplace(sensitivity="2.5", epsilon=2, grid=Grid("1/64"), entries_changed=4),
        Laplace(sensitivity=2, epsilon=3, grid=Grid(8)),
    ],
)
def test_the_repr_makes_the_same_mechanism(mechanism):
    again = eval(repr(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)


def test_a_changed_copy_is_recomputed():
    """``dataclasses.replace`` must not keep the noise or the loss of the old price."""
    cheaper = replace(Laplace(sensitivity=3, epsilon=2), epsilon="1/2")
    assert cheaper == Laplace(sensitivity=3, epsilon="1/2")
    assert cheaper.loss.epsilon == Fraction(1, 2)
    assert cheaper.scale == 6


def test_the_law_is_centred_on_the_snapped_value():
    mechanism = Laplace(sensitivity=3, epsilon="1/2", grid=Grid("1/4"), entries_changed=2)
    assert mechanism.law(2.6) == DiscreteLaplaceLaw(10, mechanism.step_scale)
    assert mechanism.step_scale == Fraction(13 * 2)  # ceil(3 / (1/4)) + 2 - 1 steps
    assert mechanism.scale == Fraction(13, 2)
    assert len(mechanism.law([2.6, 3.0]).laws) == 2


def test_sensitivity_and_price_may_stand_without_their_names():
    assert Laplace(3, "1/4") == Laplace(sensitivity=3, epsilon="1/4")
    assert Laplace(3, epsilon="1/4") == Laplace(epsilon="1/4", sensitivity=3)
