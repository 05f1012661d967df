"""What bounding removed is bought apart, once for the data, and told beside every later answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cli_cases import make_session, runner

import discreet
from discreet.curate.bounding import TIMES, list_looks
from discreet.errors import BudgetRefusal, InvalidParameter, SchemaRefusal
from discreet.price import compute_sensitivity
from discreet.price.plan import Moments

SCHEMA = """
[tables.flights]
unit = "plane"
max_rows_per_unit = 30
[tables.flights.columns]
plane = "integer"
month = { type = "integer", bounds = [1, 12] }
delay = { type = "decimal", bounds = [0, 120] }

[tables.owners]
unit = "plane"
max_rows_per_unit = 1
[tables.owners.columns]
plane = "integer"
"""


def make_flights(seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    flights = rng.geometric(0.03, 2_000)
    plane = np.repeat(np.arange(2_000), flights)
    delay = rng.normal(40, 50, plane.size)
    return pd.DataFrame({"plane": plane, "month": plane % 12 + 1, "delay": delay})


def make_curator(tables: dict, *, epsilon: int = 10**4) -> discreet.Curator:
    return discreet.curator(
        {"owners": pd.DataFrame({"plane": np.arange(2_000)}), **tables},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=epsilon),
    )


def found(curator: discreet.Curator, table: str) -> dict:
    """The intervals of everything that was bought about a table."""
    version = curator.engine.data_version()
    return {
        name: column[0]
        for _, answer in curator._bounding._load_stored(version).get(table, [])
        for name, column in answer.intervals("0.999999").items()
    }


def test_shares_are_those_of_the_rows_and_units_as_they_came():
    flights = make_flights()
    sizes = flights.groupby("plane").size().to_numpy()
    curator = make_curator({"flights": flights})
    curator.measure_bounding(40, tables=["flights"])
    intervals = found(curator, "flights")
    kept = np.minimum(sizes, TIMES * 30)
    truths = {
        "above": (sizes > 30).mean(),
        "cut": (kept - np.minimum(sizes, 30)).sum() / kept.sum(),
        "c0": 0.0,
        "c1": ((flights.delay < 0) | (flights.delay > 120)).mean(),
    }
    for name, truth in truths.items():
        # Of the clipped ones only rows that were kept are looked at: which, hashes say.
        more = 0.02 if name == "c1" else 0.0
        assert intervals[name].low - more <= truth <= intervals[name].high + more, name
        assert intervals[name].high - intervals[name].low < 0.1


def test_it_is_charged_once_for_a_version_of_the_data_and_told_beside_later_answers():
    curator = make_curator({"flights": make_flights()})
    question = "SELECT AVG(delay) AS x FROM flights"
    before = curator.ask(question, epsilon=1)
    assert not any("not read" in note for note in before.notes)
    spent = curator.spent.epsilon
    said = curator.measure_bounding("1/2", tables=["flights"])
    charged = curator.spent.epsilon - spent
    assert 0 < charged <= Fraction(1, 2)
    assert curator.measure_bounding("1/2", tables=["flights"]) == said
    assert curator.spent.epsilon == spent + charged
    for answer in (curator.ask(question, epsilon=1), curator.ask(question, epsilon=2)):
        assert any("are beyond 30 per plane and not read" in note for note in answer.notes)
        assert any("'delay' outside its bounds" in note for note in answer.notes)
        assert not any("'month'" in note for note in answer.notes)
    assert curator.ask(question, epsilon=2).loss.epsilon <= 2  # nothing of it is the question's
    assert curator.ask("SELECT COUNT(*) AS n FROM owners", epsilon=1).said == ()


def test_a_later_version_is_told_nothing_of_an_earlier_one(tmp_path):
    path = tmp_path / "flights.parquet"
    make_flights().to_parquet(path)
    curator = make_curator({"flights": str(path)})
    curator.measure_bounding(1, tables=["flights"])
    assert curator.ask("SELECT COUNT(*) AS n FROM flights", epsilon=1).said
    make_flights(seed=4).to_parquet(path)
    assert curator.ask("SELECT COUNT(*) AS n FROM flights", epsilon=1).said == ()


def test_one_unit_moves_each_number_as_far_as_it_may():
    schema = discreet.Schema.from_text(SCHEMA)
    curator = make_curator({"flights": make_flights()})
    rows, values = list_looks(schema, schema.tables["flights"])
    bounding = curator._bounding
    for look, most in ((rows, {1, TIMES * 30 - 30, TIMES * 30 - 1}), (values, {30})):
        with bounding._open(look) as engine:
            priced = bounding._price(engine, look, discreet.question.offer.Offer.of(epsilon=1))
        for measurement, sensitivity in zip(
            priced.plan.measurements, priced.sensitivities, strict=True
        ):
            assert isinstance(measurement, Moments)
            assert sensitivity == compute_sensitivity(measurement, priced.reach, priced.neighbours)
            assert sensitivity.l1 in most
        assert priced.loss.epsilon <= 1


def test_what_cannot_be_bought_is_refused_and_costs_nothing():
    curator = make_curator({"flights": make_flights()}, epsilon=1)
    for refusal, asked in (
        (SchemaRefusal, {"epsilon": 1, "tables": ["planes"]}),
        (InvalidParameter, {"epsilon": 0}),
        (InvalidParameter, {"epsilon": "much"}),
        (BudgetRefusal, {"epsilon": 3}),
    ):
        with pytest.raises(refusal):
            curator.measure_bounding(**asked)
        assert curator.spent.epsilon == 0


def test_tables_with_one_row_of_each_have_nothing_cut():
    schema = discreet.Schema.from_text(SCHEMA)
    (only,) = list_looks(schema, schema.tables["owners"])
    assert "ROWS" in only.name


def test_it_is_bought_on_the_command_line_and_told_by_every_process(tmp_path, capsys, monkeypatch):
    home = make_session(tmp_path / "clinic")
    monkeypatch.setenv("DISCREET_SESSION", str(home))
    run = runner(capsys)
    _, shown, _ = run("prepare", "--bounding", "0.05")
    assert "not read" in shown
    _, told, failed = run("ask", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    assert "not read" in told, failed
