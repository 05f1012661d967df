"""Distances from properties in units (docs/proofs/distances.md), by brute force."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms import unit_distance
from discreet.mechanisms.unit_distance import (
    count_units_to_clusters,
    count_units_to_dependency,
    count_units_to_order,
)

Unit = tuple[tuple[int, int], ...]
"""The rows of one unit."""


def is_function(rows):
    return len({one for one, _ in rows}) == len(set(rows))


def is_ordered(rows):
    return all(a[1] <= b[1] for a, b in itertools.product(rows, rows) if a[0] < b[0])


def fits_two(rows):
    """Two intervals of width 1 hold the second values."""
    left = sorted({value for _, value in rows})
    for _ in range(2):
        if left:
            left = [value for value in left if value > left[0] + 1]
    return not left


def find_dependency(units):
    return count_units_to_dependency(*take_apart(units))


def find_order(units):
    return count_units_to_order(*take_apart(units))


def find_clusters(units):
    who, _, points = take_apart(units)
    return count_units_to_clusters(who, points, clusters=2, width=1)


def take_apart(units):
    rows = [(who, *row) for who, own in enumerate(units) for row in own]
    return tuple(np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))


KINDS = {
    "dependency": (find_dependency, is_function),
    "order": (find_order, is_ordered),
    "clusters": (find_clusters, fits_two),
}


def least_units(units, holds) -> int:
    """The true distance: the fewest units to leave out."""
    for away in range(len(units) + 1):
        for kept in itertools.combinations(units, len(units) - away):
            if holds([row for own in kept for row in own]):
                return away
    raise AssertionError


def draw_units(rng, count, values=6) -> list[Unit]:
    def one() -> Unit:
        rows = rng.integers(0, values, size=(rng.integers(1, 4), 2))
        return tuple(map(tuple, rows.tolist()))

    return [one() for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_unit_moves_it_by_more_than_one_nor_down(kind):
    """Every table of some hundred, every unit left out, and a change of each; attained."""
    find, holds = KINDS[kind]
    rng, moved = np.random.default_rng(17), set()
    for _ in range(80):
        units = draw_units(rng, 6)
        whole, true = find(units), least_units(units, holds)
        assert whole <= true
        for place in range(len(units)):
            without = find(units[:place] + units[place + 1 :])
            assert 0 <= whole - without <= 1
            (other,) = draw_units(rng, 1)
            assert abs(find([*units[:place], other, *units[place + 1 :]]) - whole) <= 1
            moved.add(whole - without)
    assert moved == {0, 1}


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_row_each_it_is_the_distance(kind):
    find, holds = KINDS[kind]
    rng = np.random.default_rng(3)
    for _ in range(100):
        units = [own[:1] for own in draw_units(rng, 7)]
        assert find(units) == least_units(units, holds)


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_as_many_times_more_are_needed_as_a_unit_has_rows(kind):
    find, holds = KINDS[kind]
    rng, apart = np.random.default_rng(5), 0
    for _ in range(80):
        units = draw_units(rng, 6)
        true, told = least_units(units, holds), find(units)
        assert told <= true <= 3 * told
        apart += told < true
    assert apart, "no table was hard: nothing was shown"


def test_all_tables_of_three_units_with_two_rows():
    """Not a sample: of two values, with every way to add a unit."""
    rows = list(itertools.product((0, 1), repeat=2))
    owns = [own for n in (1, 2) for own in itertools.combinations(rows, n)]
    for pair in itertools.combinations_with_replacement(owns, 2):
        for find, holds in KINDS.values():
            before = find(list(pair))
            for more in owns:
                after = find([*pair, more])
                assert before <= after <= before + 1
                assert after <= least_units([*pair, more], holds)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_one_unit(kind):
    """Beyond 24 rows the parts have a rest, which is left out: never more than one."""
    find, _ = KINDS[kind]
    rng = np.random.default_rng(8)
    crowd = draw_units(rng, 5, values=30)
    for rows in (24, 25, 31, 70):
        many = tuple(map(tuple, rng.integers(0, 30, size=(rows, 2)).tolist()))
        ordered = tuple((i, i) for i in range(rows))  # breaks nothing by itself
        for own in (many, ordered):
            assert 0 <= find([*crowd, own]) - find(crowd) <= 1


def test_a_unit_that_breaks_it_by_itself_counts_one():
    assert find_dependency([((7, 1), (7, 2))]) == 1
    assert find_order([((1, 9), (2, 3), (3, 1))]) == 1
    assert find_clusters([((0, 1), (0, 5), (0, 9))]) == 1


def test_nothing_stands_in_the_way_of_nobody():
    nobody = np.array([], dtype=np.int64)
    assert count_units_to_dependency(nobody, nobody, nobody) == 0
    assert count_units_to_order(nobody, nobody, nobody) == 0
    assert count_units_to_clusters(nobody, nobody, clusters=2, width=3) == 0


def test_points_are_compared_exactly_and_odd_ones_do_not_fail():
    tenth = [0.1, 0.2, 0.30000000000000004]
    width = Fraction(0.2) - Fraction(0.1)
    assert count_units_to_clusters([1, 2, 3], tenth, clusters=1, width=width) == 1
    odd = [np.nan, np.inf, -np.inf, 3.0]
    assert count_units_to_clusters([1, 2, 3, 4], odd, clusters=2, width=5) == 1


@pytest.mark.parametrize("mutant", ["whole rows", "no dropping", "down"])
def test_wrong_weights_are_found(mutant, monkeypatch):
    """What the brute force above is worth: three ways to be wrong, each seen to die."""
    if mutant == "whole rows":

        def weigh(unit, broken):
            kept = ~np.isin(unit, broken)
            return kept, np.full(kept.sum(), unit_distance.WHOLE)

        monkeypatch.setattr(unit_distance, "_weigh", weigh)
    elif mutant == "no dropping":  # who breaks it by itself is counted, and counted again
        right = unit_distance._weigh
        monkeypatch.setattr(unit_distance, "_weigh", lambda unit, _: right(unit, np.array([-1])))
    else:
        monkeypatch.setattr(unit_distance, "_find_disordered", lambda *_: np.array([0]))

    def look_for_it():
        for kind in KINDS:
            test_no_unit_moves_it_by_more_than_one_nor_down(kind)
            test_of_one_row_each_it_is_the_distance(kind)

    with pytest.raises(AssertionError):
        look_for_it()
