"""Spends divided without a crumb lost; queries whose sensitivity is what their form says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from publication_cases import COLUMNS, people

from discreet.errors import InvalidParameter
from discreet.publication import Column, Records, Spend, loss_of
from discreet.publication.measure import (
    GRID,
    MOST_CELLS,
    Cells,
    Combinations,
    Distance,
    ask_cells,
    ask_combinations,
    ask_distance,
    make_view,
)


@given(
    weights=st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=60),
    amount=st.fractions(Fraction(1, 10**6), 10),
)
def test_parts_add_up_to_exactly_the_amount(weights, amount):
    for spend in (Spend.concentrated(amount), Spend.pure(amount)):
        parts = spend.divide(weights)
        assert sum(part.amount for part in parts) == amount
        assert all(part.amount > 0 for part in parts)
        assert len(parts) == len(weights)


def test_parts_follow_the_weights():
    parts = Spend.pure(3).divide([5, 1, 2])
    assert [float(part.amount) for part in parts] == pytest.approx([15 / 8, 3 / 8, 6 / 8], abs=1e-6)


@pytest.mark.parametrize("weights", [[], [1, 0], [1, float("nan")], [1, float("inf")], [-1, 2]])
def test_weights_that_divide_nothing_are_refused(weights):
    with pytest.raises(InvalidParameter):
        Spend.pure(3).divide(weights)


def test_losses_of_the_draws_are_the_spend():
    for spend, coordinate in (
        (Spend.concentrated("3/7", rows_per_unit=3), "rho"),
        (Spend.pure("3/7", rows_per_unit=3), "epsilon"),
    ):
        asked = [ask_cells([1], [np.arange(12)], part) for part in spend.divide([3.3, 1.7, 0.1])]
        assert getattr(loss_of(asked), coordinate) == Fraction(3, 7)


def exact_answer(query, rows):
    """The answer without noise: the counts by hand, row by row."""
    table = np.zeros(query.view.shape, dtype=np.int64)
    for row in rows:
        table[
            tuple(m[row[c]] for c, m in zip(query.view.columns, query.view.maps, strict=True))
        ] += 1
    match query:
        case Cells():
            return table.ravel()
        case Combinations(matrix=matrix):
            return matrix @ table.ravel()
        case Distance(reference=reference):
            return np.array([np.abs(GRID * table - reference).sum()])


def some_queries(spend):
    maps = [np.arange(40) // 7, np.arange(12) % 5]
    view = make_view([0, 1], maps)
    draw = np.random.default_rng(2)
    return [
        ask_cells([0, 1], maps, spend),
        ask_combinations(view, draw.integers(-9, 10, (11, view.cells)), spend),
        ask_distance(view, draw.random(view.shape) * 30, spend),
    ]


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_one_unit_moves_no_answer_further_than_its_noise_was_made_for(rows_per_unit):
    """Lemmas 2, 3 and 4, on neighbours that differ by all rows of one unit."""
    rows = people(200)
    draw = np.random.default_rng(8)
    for spend in (
        Spend.concentrated(1, rows_per_unit=rows_per_unit),
        Spend.pure(1, rows_per_unit=rows_per_unit),
    ):
        queries = some_queries(spend)
        reached = [0.0] * len(queries)
        for _ in range(60):
            extra = people(400, seed=int(draw.integers(10**6)))[-1:].repeat(rows_per_unit, axis=0)
            if draw.random() < 0.3:
                extra = people(rows_per_unit, seed=int(draw.integers(10**6)))
            for place, query in enumerate(queries):
                moved = exact_answer(query, np.concatenate([rows, extra])) - exact_answer(
                    query, rows
                )
                if spend.gaussian:
                    share = float((moved.astype(float) ** 2).sum() / query.noise.steps_squared)
                else:
                    share = float(np.abs(moved).sum() / query.noise.sensitivity)
                reached[place] = max(reached[place], share)
        assert max(reached) <= 1
        assert reached[0] == 1  # attained: a unit whose rows share a cell
        assert min(reached) > 0.3


def test_records_count_what_a_reader_would():
    rows = people(500)
    generous = Spend.pure(10**6)  # no noise to speak of: scale 1e-6
    records = Records(COLUMNS, rows)
    for query, answer in zip(
        some_queries(generous)[:1], records.measure(some_queries(generous)[:1]), strict=True
    ):
        assert (answer.values.ravel() == exact_answer(query, rows)).all()
        assert answer.values.shape == query.view.shape


def test_codes_that_are_not_declared_are_the_last_level():
    records = Records([Column("a", 3)], np.array([[0], [7], [-2]]))
    answer = records.measure([ask_cells([0], [np.arange(3)], Spend.pure(10**6))])[0]
    assert answer.values.tolist() == [1, 0, 2]


def test_no_rows_are_measured_like_any():
    records = Records(COLUMNS, np.zeros((0, 5), dtype=np.int64))
    assert [one.values.shape for one in records.measure(some_queries(Spend.pure(1)))] == [
        (6, 5), (11,), (1,)
    ]  # fmt: skip


def test_too_many_cells_are_refused_from_the_declaration():
    many = np.arange(MOST_CELLS // 2)
    with pytest.raises(InvalidParameter):
        make_view([0, 1], [many, np.arange(3)])


def test_sensitivities_do_not_wrap():
    matrix = np.full((3, 2), 2**33, dtype=np.int64)
    asked = ask_combinations(make_view([0], [np.arange(2)]), matrix, Spend.concentrated(10**9))
    assert asked.noise.steps_squared == 3 * 2**66
