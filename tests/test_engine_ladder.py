"""Histograms from coarse to fine: few rows come back, and every answer is the same."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import ladder
import numpy as np
import pyarrow as pa
import pytest
from conformance import hold_in_postgres

import discreet
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb import ladder as statements
from discreet.engine.duckdb.database import Database
from discreet.engine.postgres import PostgresEngine
from discreet.engine.truth import Opened, Truth
from discreet.mechanisms.quantiles import quantiles as mechanism
from discreet.noise.entropy import use_recording
from discreet.price.calibration import find_stretches
from discreet.price.plan import Stretch
from discreet.release.release import release


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
        ((around,),) = find_stretches(priced)
        curator.engine.run(curator.engine.compile(priced.plan))
    few, many = fetched
    assert few <= 3 + 3 * (2 * around.ranks + 2 + 2)  # part 0, and cells and lumps of each group
    assert many > 100_000


# --- the same answers --------------------------------------------------------------------------


def draw(priced, truth: Truth, recorded: bytes) -> object:
    with use_recording(recorded):
        return release(priced, truth).parts[0].chosen


def compare(question: str, stays: pa.Table, epsilon: Fraction, recordings: int) -> tuple[int, int]:
    """Releases from lumps and from all cells by the same coins: how many, and how often all."""
    asked = 0
    with DuckDBEngine({"stays": stays}, ladder.SCHEMA, threads=1) as engine:
        priced = ladder.price_question(question, engine.catalogue, epsilon)
        stretches = find_stretches(priced)
        assert any(stretches)
        near = engine.run(engine.compile(priced.plan, stretches)).open_for_release()
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


@pytest.mark.parametrize("epsilon", [Fraction(5), Fraction(1, 2)])
@pytest.mark.parametrize("question", [ladder.GROUPED, ladder.ALONE])
def test_the_same_coins_give_the_same_answers(question, epsilon):
    """And nothing but the stretches was looked at."""
    stays = ladder.make_stays(20_000, "answers")
    assert compare(question, stays, epsilon, 15) == (15, 0)


def test_what_lies_far_off_is_looked_up(monkeypatch):
    """Stretches that are too short change no answer: what they lack is measured again."""
    monkeypatch.setattr(mechanism, "NEAR", 1)
    _, asked = compare(ladder.ALONE, ladder.make_stays(20_000, "answers"), Fraction(1, 2), 15)
    assert asked >= 8


def test_an_engine_measures_the_whole_by_itself(monkeypatch):
    monkeypatch.setattr(mechanism, "NEAR", 1)
    with DuckDBEngine({"stays": ladder.make_stays(9000, "alone")}, ladder.SCHEMA) as engine:
        priced = ladder.price_question(ladder.GROUPED, engine.catalogue, Fraction(1, 2))
        truth = engine.run(engine.compile(priced.plan, find_stretches(priced)))
        ran: list[str] = []
        run = Database.run
        monkeypatch.setattr(Database, "run", lambda self, text: ran.append(text) or run(self, text))
        release(priced, truth)
        assert len(ran) == 1
        assert "_lump" not in ran[0]


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
            assert find_stretches(priced) == ()


def test_prices_that_are_near_share_a_statement():
    with DuckDBEngine({"stays": ladder.make_stays(9, "few")}, ladder.SCHEMA) as engine:
        found = {
            find_stretches(ladder.price_question(ladder.GROUPED, engine.catalogue, epsilon))
            for epsilon in (Fraction(1), Fraction(9, 10), Fraction(11, 10))
        }
        assert len(found) == 1
