"""Histograms from coarse to fine: few rows come back, and every answer is the same."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import Random

import duckdb
import ladder
import numpy as np
import pyarrow as pa
import pytest
from conformance import hold_in_postgres
from sqlglot import exp

import discreet
from discreet.curate.reports import make_middle
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb import ladder as statements
from discreet.engine.duckdb.database import Database
from discreet.engine.postgres import PostgresEngine
from discreet.engine.truth import Opened, SparseCounts, Truth
from discreet.exact.balls import enclose
from discreet.mechanisms import ProposeTestRelease, SmoothMedian
from discreet.mechanisms.clipping import ClippedSums
from discreet.mechanisms.quantiles import quantiles as mechanism
from discreet.mechanisms.quantiles.ranks import (
    Cells,
    LumpedCells,
    RankedCells,
    count_occupied_cells,
)
from discreet.noise.entropy import use_recording
from discreet.price.calibration import find_lumpings
from discreet.price.plan import Lumping, Stretch
from discreet.release.release import release, release_median


@pytest.mark.parametrize("question", [ladder.GROUPED, ladder.ALONE])
def test_lumps_are_those_of_the_definition(question, postgres):
    stays = ladder.make_stays(400, "lumps")
    with DuckDBEngine({"stays": stays}, ladder.SCHEMA, threads=1) as engine:
        ladder.check_lumps(engine, question)
    given = hold_in_postgres(postgres, ladder.SCHEMA, {"stays": stays}, "ladder")
    with PostgresEngine(given, ladder.SCHEMA) as engine:
        ladder.check_lumps(engine, question)


def test_groups_that_are_not_listed_have_lumps_too():
    private = (
        "SELECT person % 7 AS k, COUNT(*) AS n, MEDIAN(cost) AS m FROM stays GROUP BY person % 7"
    )
    with DuckDBEngine(
        {"stays": ladder.make_stays(300, "keys")}, ladder.SCHEMA, threads=1
    ) as engine:
        ladder.check_lumps(engine, private)


def test_what_no_candidate_for_an_end_parts_comes_back_together(postgres):
    stays = ladder.make_stays(600, "ends")
    with DuckDBEngine({"stays": stays}, ladder.SCHEMA, threads=1) as engine:
        ladder.check_ends(engine)
    given = hold_in_postgres(postgres, ladder.SCHEMA, {"stays": stays}, "ends")
    with PostgresEngine(given, ladder.SCHEMA) as engine:
        ladder.check_ends(engine)


@pytest.mark.parametrize(("zero", "span"), [(0, 2**40), (2**39, 2**40), (70, 200), (5000, 5000)])
def test_places_between_candidates_are_told_for_every_cell(zero, span):
    """Not those of some data: each candidate, what is beside it, and what lies between."""
    sums = ClippedSums(Fraction(1), Fraction(1), 1, 1, span, zero=zero)
    ends = sums.candidates
    cells = np.unique(
        np.clip(np.concatenate([ends - 1, ends, ends + 1, (ends[1:] + ends[:-1]) // 2]), 0, span)
    )
    listed = exp.values([(int(cell),) for cell in cells], alias="given", columns=[statements.AT])
    text = statements.lump_between_ends(
        exp.select(exp.column(statements.AT)).from_(listed), [], zero, span
    ).sql("duckdb")
    with duckdb.connect() as connection:
        told = dict(connection.execute(text).fetchall())
    found: dict[int, set[tuple[int, bool]]] = {}
    for cell in cells.tolist():
        place = int(np.searchsorted(ends, cell, side="right")), cell in ends
        found.setdefault(told[cell], set()).add(place)
    assert all(len(places) == 1 for places in found.values())
    assert len(found) == len(set().union(*found.values()))


@pytest.mark.parametrize("wrong", ["_is_near", "_begins_after"])
def test_a_ladder_off_by_one_is_found(wrong, monkeypatch):
    right = getattr(statements, wrong)

    def move(stretch: Stretch):
        return right(Stretch(stretch.low, stretch.high, stretch.ranks - 1, stretch.share))

    monkeypatch.setattr(statements, wrong, move)
    with (
        DuckDBEngine({"stays": ladder.make_stays(400, "lumps")}, ladder.SCHEMA) as engine,
        pytest.raises(AssertionError),
    ):
        ladder.check_lumps(engine, ladder.ALONE)


@pytest.mark.parametrize("quantile", ["1/2", "1/10", "9/10", "0", "1", "333333334/1000000000"])
def test_groups_whose_every_cell_stands_alone_are_no_larger_than_that(quantile):
    """To the value: with one more, some cell is in no stretch; with fewer, crowds are in one."""
    for ranks in (1, 2, 5, 17):
        one = Stretch.around(Fraction(quantile), ranks, 0)
        most = statements.find_most_values([one])

        def stands_alone(total: int, one=one) -> bool:
            return all(ladder._is_near(one, at, at + 1, total) for at in range(total))

        assert all(map(stands_alone, range(1, most + 1)))
        assert not stands_alone(most + 1)
        assert all(
            ladder._is_near(one, first, last, most)
            for first in range(most)
            for last in range(first + 1, most + 1)
        )
    wider = Stretch.around(Fraction(1, 2), 9, 0)
    assert statements.find_most_values([one, wider]) >= statements.find_most_values([wider]) == 20


def test_a_group_that_is_too_large_is_lumped():
    """The largest group decides; if it were taken for small, its histogram would come back."""
    most = statements.find_most_values(ladder.STRETCHES[0])
    for rows, lumped in ((most, False), (most + 3, True)):
        stays = pa.table({
            "person": np.arange(rows),
            "ward": pa.array(["north"] * rows),
            "cost": np.arange(rows, dtype=float),
        })  # fmt: skip
        with DuckDBEngine({"stays": stays}, ladder.SCHEMA) as engine:
            plan = ladder.price_question(ladder.GROUPED, engine.catalogue).plan
            found = engine.run(engine.compile(plan, (Lumping(ladder.STRETCHES[0]),)))
            (told,) = found.open_for_release().measured
            assert (len(told.count) < rows) == lumped


# --- how much comes back -----------------------------------------------------------------------


def test_no_group_sends_its_histogram(monkeypatch):
    """200,000 costs in three groups: no more rows than there are ranks around a median."""
    rng = np.random.default_rng(5)
    rows = 200_000
    stays = pa.table(
        {
            "person": np.arange(rows),
            "ward": pa.array(np.array(["north", "south", "east"])[np.arange(rows) % 3]),
            "cost": rng.uniform(0, 5000, rows),
        }
    )
    fetched: list[int] = []
    run = Database.run

    def count(self, text):
        found = run(self, text)
        fetched.append(len(next(iter(found.values()))))
        return found

    monkeypatch.setattr(Database, "run", count)
    budget = discreet.Budget(epsilon=100)
    with discreet.curator({"stays": stays}, schema=ladder.SCHEMA, budget=budget) as curator:
        curator.ask(ladder.GROUPED, epsilon=1)
        priced = ladder.price_question(ladder.GROUPED, curator.engine.catalogue)
        (lumping,) = find_lumpings(priced)
        (around,) = lumping.stretches
        curator.engine.run(curator.engine.compile(priced.plan))
    few, many = fetched
    assert few <= 3 + 3 * (2 * around.ranks + 2 + 2)  # part 0, and cells and lumps of each group
    assert many > 100_000


@pytest.mark.parametrize(("question", "most"), [(ladder.TRIMMED, 9000), (ladder.AUTO, 1200)])
def test_no_group_sends_its_histogram_for_ends_either(question, most, monkeypatch):
    """200,000 costs in three groups: as many rows as there are ranks, or candidates, near them."""
    rows = 200_000
    stays = pa.table(
        {
            "person": np.arange(rows),
            "ward": pa.array(np.array(["north", "south", "east"])[np.arange(rows) % 3]),
            "cost": np.random.default_rng(6).uniform(0, 5000, rows),
        }
    )
    fetched: list[int] = []
    run = Database.run

    def count(self, text):
        found = run(self, text)
        fetched.append(len(next(iter(found.values()))))
        return found

    monkeypatch.setattr(Database, "run", count)
    budget = discreet.Budget(epsilon=100)
    with discreet.curator({"stays": stays}, schema=ladder.SCHEMA, budget=budget) as curator:
        curator.ask(question, epsilon=8)
    assert len(fetched) == 1
    assert fetched[0] <= most


# --- the same answers --------------------------------------------------------------------------


def draw(priced, truth: Truth, recorded: bytes) -> object:
    with use_recording(recorded):
        return release(priced, truth).parts[0].chosen


def compare(question: str, stays: pa.Table, epsilon: Fraction, recordings: int) -> tuple[int, int]:
    """Releases from lumps and from all cells by the same coins: how many, and how often all."""
    asked = 0
    with DuckDBEngine({"stays": stays}, ladder.SCHEMA, threads=1) as engine:
        priced = ladder.price_question(question, engine.catalogue, epsilon)
        lumpings = find_lumpings(priced)
        assert any(lumpings)
        near = engine.run(engine.compile(priced.plan, lumpings)).open_for_release()
        every = engine.run(engine.compile(priced.plan))

        def fetch() -> Truth:
            nonlocal asked
            asked += 1
            return every

        lumped = Truth(Opened(near.groups, near.measured, fetch))
        rng = Random(repr(epsilon))
        for _ in range(recordings):
            recorded = rng.randbytes(20_000)
            assert draw(priced, lumped, recorded) == draw(priced, every, recorded)
    return recordings, asked


@pytest.mark.parametrize("recordings", [6, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize("epsilon", [Fraction(5), Fraction(1, 2)])
@pytest.mark.parametrize("question", [ladder.GROUPED, ladder.ALONE, ladder.TRIMMED, ladder.AUTO])
def test_the_same_coins_give_the_same_answers(question, epsilon, recordings):
    """And nothing but the stretches was looked at."""
    stays = ladder.make_stays(20_000, "answers")
    assert compare(question, stays, epsilon, recordings) == (recordings, 0)


@pytest.mark.parametrize("crowd", [0.0, 120.0, 5000.0])
def test_ends_that_are_one_need_no_cell_beside_them(crowd):
    """Nine of ten values are the same, and others lie a step beside them: nothing is looked up."""
    rng, rows = np.random.default_rng(9), 9000
    step = 2.0**-7
    beside = crowd + step * np.arange(1, 30) * (-1 if crowd == 5000 else 1)
    cost = np.where(np.arange(rows) % 20 > 0, crowd, rng.choice(beside, rows))
    ward = pa.array(np.array(["north", "south"])[np.arange(rows) // 20 % 2])
    stays = pa.table({"person": np.arange(rows), "ward": ward, "cost": cost})
    assert compare(ladder.TRIMMED, stays, Fraction(50), 5) == (5, 0)


@pytest.mark.parametrize("question", [ladder.ALONE, ladder.TRIMMED])
def test_what_lies_far_off_is_looked_up(question, monkeypatch):
    """Stretches that are too short change no answer: what they lack is measured again."""
    monkeypatch.setattr(mechanism, "NEAR", 1)
    _, asked = compare(question, ladder.make_stays(20_000, "answers"), Fraction(1, 2), 15)
    assert asked >= 8


def test_ends_among_lumps_that_hide_them_are_looked_up(monkeypatch):
    """A statement that lumps past a candidate is answered by all cells, and not wrongly."""
    right = statements._place_among

    def halve(octaves: range):
        return exp.Paren(this=exp.IntDiv(this=right(octaves), expression=exp.Literal.number("8")))

    monkeypatch.setattr(statements, "_place_among", halve)
    _, asked = compare(ladder.AUTO, ladder.make_stays(9000, "answers"), Fraction(2), 4)
    assert asked >= 4


def test_an_engine_measures_the_whole_by_itself(monkeypatch):
    monkeypatch.setattr(mechanism, "NEAR", 1)
    with DuckDBEngine({"stays": ladder.make_stays(9000, "alone")}, ladder.SCHEMA) as engine:
        priced = ladder.price_question(ladder.GROUPED, engine.catalogue, Fraction(1, 2))
        truth = engine.run(engine.compile(priced.plan, find_lumpings(priced)))
        ran: list[duckdb.Statement] = []
        run = Database.run
        monkeypatch.setattr(Database, "run", lambda self, one: ran.append(one) or run(self, one))
        release(priced, truth)
        assert len(ran) == 1
        assert "_lump" not in ran[0].query


# --- medians with noise that fits the data -----------------------------------------------------

FITTED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) MEDIAN(cost) AS m FROM stays"


def lump_beyond(values: np.ndarray, ranks: int, look_up: Callable[[], RankedCells]) -> LumpedCells:
    """Values in a row, but for those within some ranks of the middle in lumps."""
    at, count = np.unique(values, return_counts=True)
    every = SparseCounts(np.zeros(len(at), int), at, count)
    told = ladder.lump(every, [Stretch.around(Fraction(1, 2), ranks, 0)])
    _, first, last, counts = map(np.array, zip(*told, strict=True))
    ranked = RankedCells.of(Cells(last, counts, dense=False))
    return LumpedCells(ranked.at, ranked.cumulative, 0, 0, ranked.total, first, look_up)


@pytest.mark.parametrize("fitted", [
    SmoothMedian(lower=0, upper=10**6, epsilon=30, delta="1/10"),
    ProposeTestRelease(bound=900, epsilon=20, delta="1/10"),
])  # fmt: skip
def test_medians_look_at_the_ranks_that_the_price_says(fitted):
    """At no other, whatever the data; and at all of these: with one less, some are looked up."""
    rng, asked = np.random.default_rng(4), []
    release_ = getattr(fitted, "release_ranked", None) or partial(fitted.release_median, span=10**6)
    for size in (1, 2, 3, 100, 399, 400, 401, 1000):
        for spread in (1, 40, 900):
            values = np.minimum(np.cumsum(rng.integers(0, 2 * spread, size)) + 7, 10**6)
            every = RankedCells.of(count_occupied_cells(values))
            for ranks in (fitted.reach, fitted.reach - 1):

                def look_up(found=every, ranks=ranks) -> RankedCells:
                    asked.append(ranks)
                    return found

                lumped = lump_beyond(values, ranks, look_up)
                recorded = rng.bytes(4000)
                with use_recording(recorded):
                    told = release_(lumped)
                with use_recording(recorded):
                    assert told == release_(every)
    assert set(asked) == {fitted.reach - 1}


@pytest.mark.parametrize("bound", [None, 5])
def test_a_median_that_fits_the_data_sends_few_cells(bound, monkeypatch):
    """200,000 costs: one statement, no more rows than ranks, and the answer of all cells."""
    rows = 200_000
    cost = np.random.default_rng(7).uniform(0, 5000, rows)
    ward = pa.array(["north"] * rows)
    stays = pa.table({"person": np.arange(rows), "ward": ward, "cost": cost})
    fetched: list[int] = []
    run = Database.run

    def count(self, text):
        found = run(self, text)
        fetched.append(len(next(iter(found.values()))))
        return found

    monkeypatch.setattr(Database, "run", count)
    budget = discreet.Budget(epsilon=100, delta="1e-6")
    price = {"epsilon": 1, "delta": "1e-9", "bound": bound}
    with discreet.curator({"stays": stays}, schema=ladder.SCHEMA, budget=budget) as curator:
        told = curator.robust_median(FITTED, **price)
        assert abs(told.value - np.median(cost)) < 500  # noise of scale 10, or less
        middle, _ = make_middle(curator, FITTED, **price)
        ((around,),) = (one.stretches for one in middle.lumpings)
        (few,) = fetched
        assert few <= 1 + 2 * around.ranks + 2 + 2
        assert around.ranks <= 1024
        engine = curator.engine
        lumped = engine.run(engine.compile(middle.plan, middle.lumpings))
        every = engine.run(engine.compile(middle.plan))
        assert fetched[-1] > 100_000
        for recorded in map(Random(3).randbytes, [4000] * 5):
            with use_recording(recorded):
                found = release_median(middle, lumped)
            with use_recording(recorded):
                assert found == release_median(middle, every)
        assert len(fetched) == 3


def test_a_distance_that_is_cut_off_fails_no_test():
    """Where it is cut off, the noise alone lets data fail less than once in 10**22 tries."""
    for epsilon in (Fraction(1, 7), Fraction(1), Fraction(30)):
        tested = ProposeTestRelease(bound=3, epsilon=epsilon, delta="1e-6")
        law = tested.law(0, distance=tested.most_distance)
        assert enclose(lambda law=law: law.mass(None))[1] < Fraction(1, 10**22)


# --- when there is none ------------------------------------------------------------------------


def test_few_cells_come_back_as_they_are():
    """Where the bounds are narrow, or the price is small, there are fewer cells than ranks."""
    with DuckDBEngine({"stays": ladder.make_stays(9, "few")}, ladder.SCHEMA) as engine:
        for question, epsilon in (
            ("SELECT MEDIAN(CAST(cost / 100 AS INTEGER)) AS m FROM stays", Fraction(1)),
            (ladder.GROUPED, Fraction(1, 10**5)),
            ("SELECT SUM(cost) AS s FROM stays", Fraction(1)),
        ):
            priced = ladder.price_question(question, engine.catalogue, epsilon)
            assert find_lumpings(priced) == ()


def test_prices_that_are_near_share_a_statement():
    with DuckDBEngine({"stays": ladder.make_stays(9, "few")}, ladder.SCHEMA) as engine:
        found = {
            find_lumpings(ladder.price_question(ladder.GROUPED, engine.catalogue, epsilon))
            for epsilon in (Fraction(1), Fraction(9, 10), Fraction(11, 10))
        }
        assert len(found) == 1
