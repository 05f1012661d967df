"""Distances from properties in units (docs/proofs/distances.md), by brute force."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from discreet.mechanisms import Staircase, unit_distance
from discreet.mechanisms.unit_distance import (
    count_units_to_clusters,
    count_units_to_dependency,
    count_units_to_order,
)
from discreet.price import changes, price
from discreet.price.plan import Distance, Units
from discreet.question.catalogue import Catalogue
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

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


# --- several of them in one statement ------------------------------------------------------------


def write_schema(rows, neighbours):
    """Nothing may be missing: whoever stays, stays in every count of people."""
    return Schema.from_text(f"""
neighbours = "{neighbours}"
[tables.v]
unit = "p"
max_rows_per_unit = {rows}
[tables.v.columns]
p = "integer"
a = {{ type = "integer", bounds = [0, 2], nullable = false }}
b = {{ type = "integer", bounds = [0, 2], nullable = false }}
r = {{ type = "text", values = ["e", "n"], nullable = false }}
""")


MEANT = {
    "DISTANCE_TO_DEPENDENCY(a, b)": lambda who, a, b: count_units_to_dependency(who, b, a),
    "DISTANCE_TO_SORTED(a, b)": lambda who, a, b: count_units_to_order(who, b, a),
    "DISTANCE_TO_CLUSTERS(a, 1, 1)": lambda who, a, _: count_units_to_clusters(
        who, a, clusters=1, width=1
    ),
    "COUNT(*)": lambda who, *_: len(who),
    "COUNT(DISTINCT p)": lambda who, *_: len(set(who.tolist())),
}
HELD = {
    "r = 'e'": lambda row: row[2] == "e",
    "r = 'n'": lambda row: row[2] == "n",
    "a > 0": lambda row: row[0] > 0,
    "a = 0": lambda row: row[0] == 0,
    "b < 1": lambda row: row[1] < 1,
    "a + b > 1": lambda row: row[0] + row[1] > 1,
    "TRUE": lambda _: True,  # whoever is changed stays
}
CELLS = list(itertools.product(range(3), range(3), "en"))


def find_numbers(people, asked, groups):
    rows = [(who, row) for who, own in enumerate(people) for row in own]
    found = {}
    for group in groups:
        for place, (function, condition) in enumerate(asked):
            kept = [(w, *r) for w, r in rows if HELD[condition](r) and (not group or r[2] == group)]
            columns = [np.array([row[i] for row in kept], dtype=np.int64) for i in range(3)]
            found[place, group] = MEANT[function](*columns)
    return found


STAYING = [
    ("DISTANCE_TO_DEPENDENCY(a, b)", "TRUE"),
    ("COUNT(*)", "a > 0"),
    ("COUNT(*)", "a = 0"),
]
"""Whoever is changed moves both counts and, staying among all, the distance."""


def choose_asked(chooser):
    listed = list(itertools.product(MEANT, HELD))
    first = chooser.choice(listed[: 3 * len(HELD)])  # a distance
    return list(dict.fromkeys([first, *chooser.sample(listed, chooser.randint(0, 3))]))


def compare_with_price(chooser, neighbours, asked) -> float:
    """The part of the price that the worst of some pairs of neighbours loses in one statement."""
    most, grouped = chooser.choice([1, 2, 3]), asked != STAYING and chooser.choice([False, True])
    text = ", ".join(f"{f} FILTER (WHERE {c}) AS x{i}" for i, (f, c) in enumerate(asked))
    text = f"SELECT r, {text} FROM v GROUP BY r" if grouped else f"SELECT {text} FROM v"
    schema = write_schema(most, neighbours)
    priced = price(parse(text, schema), Offer.of(epsilon=3), Catalogue(schema))
    worst, groups = 0.0, "en" if grouped else [""]

    def draw():
        return tuple(chooser.choice(CELLS) for _ in range(chooser.randint(1, most)))

    for _ in range(60):
        others = [draw() for _ in range(chooser.randint(0, 5))]
        instead = [*others, draw()] if neighbours == "change-one" else others
        one = find_numbers([*others, draw()], asked, groups)
        other = find_numbers(instead, asked, groups)
        lost = 0.0
        for place, recipe in enumerate(priced.recipes):
            bought = priced.mechanisms[recipe.measurement]
            moved = sum(abs(one[place, group] - other[place, group]) for group in groups)
            staircase = isinstance(bought, Staircase)
            lost += float(bought.epsilon) * (moved > 0) if staircase else moved / bought.scale
        worst = max(worst, lost / float(priced.loss.epsilon))
    return worst


@pytest.mark.parametrize("neighbours", ["add/remove", "change-one"])
def test_no_neighbour_moves_a_statement_of_distances_further_than_its_price(neighbours):
    chooser = random.Random(11)
    statements = [STAYING, *(choose_asked(chooser) for _ in range(24))]
    worst = [compare_with_price(chooser, neighbours, asked) for asked in statements]
    assert max(worst) <= 1 + 1e-6
    assert sum(one > 0.999 for one in worst) > 3, "a price that nobody reaches shows nothing"


def test_a_distance_that_is_priced_as_a_count_of_people_is_found(monkeypatch):
    """Whoever stays in a group moves no count of people, and may move a distance by one."""
    right = changes._distance

    def forget(measured, one, other):
        taken = Units(measured.condition) if isinstance(measured, Distance) else measured
        return right(taken, one, other)

    monkeypatch.setattr(changes, "_distance", forget)
    changes._find_changes.cache_clear()
    try:
        with pytest.raises(AssertionError):
            test_no_neighbour_moves_a_statement_of_distances_further_than_its_price("change-one")
    finally:
        changes._find_changes.cache_clear()
