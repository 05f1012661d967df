"""The one search: least and greatest, on the side that was promised."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.exact.search import (
    bracket,
    double,
    greatest_integer,
    least_decimal,
    least_fraction,
    least_integer,
)

integers = st.integers(-(10**12), 10**12)


class Watched:
    """A test that remembers what it was asked and what it said."""

    def __init__(self, holds):
        self.holds = holds
        self.said = {}

    def __call__(self, point):
        self.said[point] = bool(self.holds(point))
        return self.said[point]


# --- integers --------------------------------------------------------------------------------


@given(integers, st.integers(0, 10**12))
def test_the_least_integer_is_found_by_doubling(fails_at, distance):
    threshold = fails_at + 1 + distance
    watched = Watched(lambda n: n >= threshold)
    assert least_integer(watched, fails_at=fails_at) == threshold
    assert watched.said[threshold]
    assert fails_at not in watched.said
    assert len(watched.said) <= 2 * distance.bit_length() + 2


@given(integers, st.integers(1, 10**12), st.data())
def test_the_least_integer_between_two_ends(fails_at, width, data):
    holds_at = fails_at + width
    threshold = data.draw(st.integers(fails_at + 1, holds_at))
    watched = Watched(lambda n: n >= threshold)
    assert least_integer(watched, fails_at=fails_at, holds_at=holds_at) == threshold
    assert not {fails_at, holds_at} & watched.said.keys()


@given(integers, st.integers(1, 10**12), st.data())
def test_the_greatest_integer_mirrors_the_least(holds_at, width, data):
    fails_at = holds_at + width
    threshold = data.draw(st.integers(holds_at, fails_at - 1))
    watched = Watched(lambda n: n <= threshold)
    assert greatest_integer(watched, holds_at=holds_at, fails_at=fails_at) == threshold
    assert not {fails_at, holds_at} & watched.said.keys()
    assert greatest_integer(lambda n: n <= threshold, holds_at=holds_at) == threshold


@given(st.integers(1, 10**15), st.integers(3, 45))
def test_a_search_that_ends_early_ends_on_the_safe_side(threshold, bits):
    above = least_integer(lambda n: n >= threshold, holds_at=10**16, bits=bits)
    assert threshold <= above <= threshold + max(0, above >> bits)
    below = greatest_integer(lambda n: n <= threshold, holds_at=0, fails_at=10**16, bits=bits)
    assert threshold - max(0, below >> bits) <= below <= threshold


@given(st.sets(st.integers(0, 200)), st.integers(1, 200))
def test_a_test_that_wavers_is_still_answered_where_it_held(odd, threshold):
    """Certified inequalities may waver: what is returned was seen to hold, whatever they do."""
    watched = Watched(lambda n: n >= threshold and n not in odd)
    assert watched.said[least_integer(watched)]
    falling = Watched(lambda n: n <= threshold or n in odd)
    found = greatest_integer(falling, holds_at=0)
    assert found == 0 or falling.said[found]


# --- fractions and decimals --------------------------------------------------------------------


@given(st.fractions(Fraction(1, 2**20), 2**15), st.integers(2, 2000))
def test_the_least_fraction_is_at_most_its_tolerance_too_large(threshold, parts):
    watched = Watched(lambda x: x >= threshold)
    found = least_fraction(
        watched, least=Fraction(1, 2**20), most=Fraction(2**15), tolerance=Fraction(1, parts)
    )
    assert watched.said[found]
    assert threshold <= found <= threshold + found / parts


def test_the_least_fraction_stays_within_its_ends():
    watched = Watched(lambda _: False)
    ends = {"least": Fraction(1, 8), "most": Fraction(16), "tolerance": Fraction(1, 4)}
    assert least_fraction(watched, **ends) is None
    assert max(watched.said) == 16
    watched = Watched(lambda _: True)
    assert least_fraction(watched, **ends) <= Fraction(1, 8)
    assert min(watched.said) > Fraction(1, 16)


@given(st.floats(1e-9, 1e9), st.fractions(Fraction(1, 10**9), 10**9))
def test_the_least_decimal_is_found_from_any_start(near, target):
    watched = Watched(lambda x: x >= target)
    found = least_decimal(watched, near=near)
    assert target <= found <= target * (1 + Fraction(1, 10**5))
    assert watched.said[found]
    digits = found / Fraction(10) ** (math.floor(math.log10(found)) - 6)
    assert digits.denominator == 1


@pytest.mark.parametrize("near", [0.0, -3.0, math.inf, math.nan, 5e-324, 1e308])
@pytest.mark.parametrize("target", ["1e-299", "7e-160", "3", "2e160", "9.9999e299"])
def test_a_bad_guess_costs_time_and_nothing_else(near, target):
    assert least_decimal(lambda x: x >= Fraction(target), near=near) == Fraction(target)


@pytest.mark.parametrize("near", [1e-300, 2.0, 1e299])
def test_the_decimals_refuse_what_nothing_meets(near):
    with pytest.raises(InvalidParameter, match="P4"):
        least_decimal(lambda _: False, near=near)
    with pytest.raises(InvalidParameter, match="P4"):
        least_decimal(lambda _: True, near=near)


# --- floats ------------------------------------------------------------------------------------


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1), st.integers(0, 200))
def test_a_bracket_holds_the_threshold(low, width, share, halvings):
    threshold = low + share * width
    fails, holds = bracket(
        lambda x: x > threshold, fails_at=low, holds_at=low + width, halvings=halvings
    )
    assert fails <= threshold
    assert holds > threshold or holds == low + width
    assert holds - fails <= width * 2.0**-halvings + 2 * math.ulp(abs(low) + width)


def test_a_bracket_may_fall():
    fails, holds = bracket(lambda x: x < 3, fails_at=8.0, holds_at=0.0, halvings=80)
    assert holds < 3 <= fails
    assert fails == math.nextafter(holds, 8)


@given(st.integers(1, 1000), st.integers(0, 10**9), st.integers(1, 10**9))
def test_doubling_stops_at_the_first_that_holds(start, threshold, most):
    found = double(lambda n: n >= threshold, start)
    assert found >= threshold
    assert found == start or found // 2 < threshold
    capped = Watched(lambda n: n >= threshold)
    assert double(capped, start, most=most) in (found, *(start << k for k in range(31)))
    assert all(tried < most for tried in capped.said)
