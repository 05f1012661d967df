"""The curator's own function on blocks of units: one unit moves one block, whatever it does."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet.curate import aggregating
from discreet.curate.aggregating import Limits, run_block, run_blocks
from discreet.engine.truth import Opened, Truth
from discreet.errors import BudgetRefusal, InvalidParameter, Refusal
from discreet.price.aggregation import STEPS, Aggregation
from discreet.question.schema import Neighbours
from discreet.release.release import release_blocks

SCHEMA = """
[tables.visits]
unit = "patient"
max_rows_per_unit = 2
columns.patient = "integer"
columns.city = { type = "text", values = ["Cork", "Delft"] }
columns.stay = { type = "decimal", bounds = [0, 60] }
columns.day = "date"

[tables.towns]
public = true
columns.name = "text"
"""
VISITS = pd.DataFrame(
    {
        "patient": [n // 2 for n in range(400)],
        "city": ["Cork", None] * 200,
        "stay": [7.0, 9.0, None, 900.0] * 100,
        "day": pd.to_datetime(["2024-02-29"] * 400).date,
    }
)
LIMITS = Limits(seconds=120, memory_bytes=2**31, together=2)


@pytest.fixture
def clinic():
    tables = {"visits": VISITS, "towns": pd.DataFrame({"name": ["Cork"]})}
    with discreet.curator(tables, schema=SCHEMA, budget=10) as curator:
        yield curator


@pytest.fixture
def hurried(monkeypatch):
    """Nobody waits for the fixed time; the moments are kept."""
    moments: list[float] = []
    monkeypatch.setattr(aggregating, "wait_until", moments.append)
    return moments


def mean_stay(frame):
    return [frame.stay.mean(), (frame.city == "Cork").mean()]


def fail(frame):
    raise ValueError(str(frame))


def price(blocks=5, bounds=((0, 10), (-2, 2)), neighbours=Neighbours.ADD_REMOVE) -> Aggregation:
    return Aggregation.of(list(bounds), epsilon="1/2", blocks=blocks, neighbours=neighbours)


# --- one unit moves one block --------------------------------------------------------------------


def test_noise_is_for_every_output_of_one_block_and_of_two_where_a_unit_changes():
    assert price().noise.scale == 2 * STEPS / Fraction(1, 2)
    assert price(neighbours=Neighbours.CHANGE_ONE).noise.scale == 4 * STEPS / Fraction(1, 2)
    assert price().loss.epsilon == Fraction(1, 2)


def test_outputs_are_steps_between_the_bounds_whatever_they_are():
    found = price()
    for said in (None, [math.nan, math.nan]):
        assert found.count_steps(said) == (STEPS // 2, STEPS // 2)
    assert found.count_steps([math.inf, -math.inf]) == (STEPS, 0)
    assert found.count_steps([1e300, -1e300]) == (STEPS, 0)
    assert found.count_steps([2.5, 1.0]) == (STEPS // 4, 3 * STEPS // 4)
    assert found.read([5 * STEPS, 0]) == (10.0, -2.0)


def seal(*columns: list[object]) -> Truth:
    return Truth(Opened((), tuple(np.array(column, dtype=object) for column in columns)))


def test_all_rows_of_a_unit_are_in_one_block_and_every_row_in_some():
    owners = [n % 37 for n in range(600)]
    truth = seal(owners, owners, list(range(600)))
    seen: list[list[list[object]]] = []

    def run(blocks):
        seen.append([list(block[0]) for block in blocks])
        assert sorted(row for block in blocks for row in block[1]) == list(range(600))
        return [[0.0, 0.0]] * len(blocks)

    for _ in range(3):
        release_blocks(price(), truth, 1, run)
    for blocks in seen:
        sets = [set(block) for block in blocks]
        assert sum(map(len, sets)) == 37  # nobody is in two
    assert seen[0] != seen[1] or seen[1] != seen[2]  # another key each time


def test_bad_outputs_are_the_middle_and_none_stops_the_release():
    said = [None, [1.0], [1.0, 2.0, 3.0], [math.nan, 5.0], [4.0, 1.0]]
    found = price(bounds=((0, 10), (-2, 2)))
    steps = np.array(
        [[STEPS // 2] * 2] * 3 + [[STEPS // 2, STEPS], [2 * STEPS // 5, STEPS * 3 // 4]]
    )
    noisy = release_blocks(found, seal([1, 2], [1, 2]), 1, lambda _: said)
    margin = found.noise.margin("0.000000001")
    for total, exact in zip(noisy, steps.sum(axis=0), strict=True):
        assert abs(total - exact) <= margin + 1


# --- processes -----------------------------------------------------------------------------------


def swallow(frame):
    return len(bytearray(2**33))


def run_on(frame):
    while True:
        frame.shape  # noqa: B018


def fork(frame):
    import os

    os.fork()
    return 0


def connect(frame):
    import socket

    socket.socket()
    return 0


def remember(frame):
    import builtins

    seen = getattr(builtins, "seen", 0)
    builtins.seen = seen + 1
    return seen


def code(function) -> bytes:
    return aggregating._take_code(function)


FRAME = pa.table({"stay": [1.0, 2.0, 6.0], "city": ["Cork", None, "Cork"]})


@pytest.mark.parametrize("function", [fail, swallow, fork, connect], ids=lambda f: f.__name__)
def test_what_fails_says_nothing(function):
    assert run_block(code(function), FRAME, LIMITS) is None


def test_what_takes_too_long_is_killed_and_says_nothing():
    assert run_block(code(run_on), FRAME, Limits(seconds=2)) is None


def test_a_block_is_computed_and_nothing_is_shared_with_the_next():
    assert run_block(code(mean_stay), FRAME, LIMITS) == [3.0, pytest.approx(2 / 3)]
    assert [run_block(code(remember), FRAME, LIMITS) for _ in range(2)] == [[0.0], [0.0]]


def test_rounds_end_at_fixed_times(hurried):
    run_blocks(code(fail), [FRAME] * 3, Limits(seconds=50, together=2))
    assert len(hurried) == 2
    assert hurried[1] - hurried[0] == pytest.approx(51)
    assert Limits(seconds=50, together=2).duration_s(3) == 102


# --- asked ---------------------------------------------------------------------------------------


def test_it_is_charged_once_released_with_noise_and_free_again(clinic, hurried):
    settings = {"output_bounds": [(0, 60), (0, 1)], "blocks": 2, "seconds": 120}
    found = clinic.aggregate(mean_stay, "visits", epsilon=8, **settings)
    assert clinic.spent.epsilon == found.loss.epsilon == 8
    truth = VISITS.stay.clip(0, 60).mean(), 0.5  # as declared: clipped
    for value, exact, margin in zip(found.values, truth, found.margins("0.999999999"), strict=True):
        assert abs(value - exact) <= margin + 6
    again = clinic.aggregate(mean_stay, "visits", epsilon=8, **settings)
    assert again.replayed
    assert again.values == found.values
    assert clinic.spent.epsilon == 8
    (entry,) = [e for e in clinic.transcript() if "AGGREGATE mean_stay OF visits" in str(e)][:1]
    assert entry is not None
    assert "average over 2 blocks" in str(found)


def test_a_function_that_always_fails_costs_the_same_and_tells_the_middle(clinic, hurried):
    found = clinic.aggregate(
        fail, "visits", epsilon=5, output_bounds=(0, 60), blocks=2, seconds=120
    )
    assert clinic.spent.epsilon == 5
    assert abs(found.values[0] - 30) <= found.margins("0.999999999")[0]


def test_what_is_refused_is_refused_before_anything_is_paid(clinic):
    outside = 3
    good = {"epsilon": 1, "output_bounds": (0, 60)}
    for function, table, changed in (
        (lambda frame: outside, "visits", {}),
        (lambda frame, other: 0, "visits", {}),
        (lambda frame=1: 0, "visits", {}),
        (len, "visits", {}),
        (mean_stay, "towns", {}),
        (mean_stay, "nowhere", {}),
        (mean_stay, "visits", {"output_bounds": (60, 0)}),
        (mean_stay, "visits", {"output_bounds": []}),
        (mean_stay, "visits", {"output_bounds": [(0, 1, 2)]}),
        (mean_stay, "visits", {"blocks": 0}),
        (mean_stay, "visits", {"blocks": 10_001}),
        (mean_stay, "visits", {"seconds": 0}),
        (mean_stay, "visits", {"epsilon": 0}),
    ):
        with pytest.raises((InvalidParameter, Refusal)):
            clinic.aggregate(function, table, **{**good, **changed})
    with pytest.raises(BudgetRefusal):
        clinic.aggregate(mean_stay, "visits", **{**good, "epsilon": 11})
    assert clinic.spent.epsilon == 0


def test_what_it_would_cost_is_said_before_of_any_function(clinic):
    said = clinic.explain_aggregate("visits", epsilon="1/2", output_bounds=(0, 60), blocks=100)
    assert said.loss.epsilon == Fraction(1, 2)
    assert said.margins() == said.aggregation.margins()
    assert "in 100 blocks" in str(said)
    assert "1,050 s" in str(said)
    with pytest.raises(InvalidParameter):
        clinic.explain_aggregate("nobody", epsilon=1, output_bounds=(0, 60))
    assert clinic.transcript() == ()
