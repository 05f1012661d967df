"""Prepared tables: the same integers, sooner, and never of yesterday's data."""

from __future__ import annotations

import itertools
from fractions import Fraction

import engine_cases as cases
import pytest
from fuzz.questions import plans
from fuzz.test_neighbours import SETTINGS
from fuzz.worlds import World, vectors, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import DataRefusal, QuestionRefusal
from discreet.price.plan import Histogram, Moments, Scaled, Units
from discreet.price.recipes import GRID_BITS, put_on_grid
from discreet.question.expressions import Call, ColumnRef, Literal

MEASURED = (
    Moments((cases.COST,), (1,), counts_null=True),
    Units(),
    Moments(condition=Call("greater", (ColumnRef("v.cost"), Literal(Fraction(12345, 7))))),
    Histogram(Scaled(ColumnRef("v.age"), Fraction(1), 0, 120)),
)


def asked(engine):
    return cases.integers(
        engine.run(engine.compile(cases.plan(engine, *MEASURED))).open_for_release()
    )


@settings(max_examples=4, **SETTINGS)
@given(world=worlds(), data=st.data())
def test_prepared_or_not_the_integers_are_the_same(world: World, data: st.DataObject) -> None:
    """Bounding included, and with every kind of relation and limit above it."""
    compare_prepared(world, data)


@pytest.mark.soak
@settings(max_examples=60, **SETTINGS)
@given(world=worlds(), data=st.data())
def test_prepared_or_not_on_many_worlds(world: World, data: st.DataObject) -> None:
    compare_prepared(world, data)


def compare_prepared(world: World, data: st.DataObject) -> None:
    try:
        drawn = []
        for _ in range(4):
            try:
                drawn.append(data.draw(plans(world.schema, world.engine.catalogue.multiplicity)))
            except QuestionRefusal:
                continue
        before = [
            vectors(world.engine.run(world.engine.compile(p)).open_for_release()) for p in drawn
        ]
        world.engine.prepare()
        assert [
            vectors(world.engine.run(world.engine.compile(p)).open_for_release()) for p in drawn
        ] == before
    finally:
        world.close()


def view(engine) -> str:
    """What stands for the rows of the visits."""
    found = engine._current().connection.execute(
        "SELECT sql FROM duckdb_views() WHERE view_name = 'rows of visits'"
    )
    return found.fetchone()[0]


def test_a_prepared_question_reads_codes_and_steps():
    with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as engine:
        cost = engine.schema.tables["visits"].column("cost").domain
        plan = cases.plan(
            engine, Moments((put_on_grid(ColumnRef("v.cost"), cost, GRID_BITS),), (1,))
        )
        compiled = engine.compile(plan)
        unprepared = view(engine)
        engine.prepare()
        assert engine.compile(plan) is compiled  # the same statement finds other rows
        assert "source of" in unprepared
        assert "source of" not in view(engine)
    assert "source of" not in compiled.text
    assert "ROW_NUMBER" not in compiled.text
    assert '"_steps3"' in compiled.text
    assert "* CAST('" not in compiled.text  # no arithmetic on the value itself


def test_a_changed_source_is_prepared_again(tmp_path):
    path, store = tmp_path / "v.parquet", tmp_path / "store"
    cases.frame().to_parquet(path)
    with DuckDBEngine({"visits": path}, cases.schema(), store=store) as engine:
        engine.prepare()
        before, files = asked(engine), list(store.glob("*.duckdb"))
        cases.frame(40, seed=8).to_parquet(path)
        after = asked(engine)
        assert "source of" not in view(engine)
        assert after == cases.answer({"visits": cases.frame(40, seed=8)}, *MEASURED) != before
        assert len(files) == len(list(store.glob("*.duckdb"))) == 1  # the old one is gone
        assert files != list(store.glob("*.duckdb"))


def test_a_store_is_kept_between_engines(tmp_path):
    path, store = tmp_path / "v.parquet", tmp_path / "store"
    cases.frame().to_parquet(path)
    with DuckDBEngine({"visits": path}, cases.schema(), store=store) as engine:
        engine.prepare()
        first = asked(engine)
    (file,) = store.glob("*.duckdb")
    made = file.stat().st_mtime_ns
    assert store.stat().st_mode & 0o077 == 0
    with DuckDBEngine({"visits": path}, cases.schema(), store=store) as engine:
        engine.prepare()
        assert asked(engine) == first
    assert file.stat().st_mtime_ns == made
    changed = cases.schema(cases.SCHEMA.replace("max_rows_per_unit = 3", "max_rows_per_unit = 2"))
    with DuckDBEngine({"visits": path}, changed, store=store) as engine:
        engine.prepare()
    assert not file.exists()  # another declaration is another table


def test_a_temporary_store_goes_with_the_engine():
    engine = DuckDBEngine({"visits": cases.frame()}, cases.schema())
    engine.prepare()
    folder = engine._store
    assert list(folder.glob("*.duckdb"))
    engine.close()
    del engine
    assert not folder.exists()


def test_progress_is_told_from_nothing_to_all():
    calls = []
    with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as engine:
        engine.prepare(progress=lambda table, done: calls.append((table, done)))
    parts = [done for _, done in calls]
    assert {table for table, _ in calls} == {"visits"}
    assert (parts[0], parts[-1]) == (0.0, 1.0)
    assert all(a <= b for a, b in itertools.pairwise(parts))


def test_a_version_that_cannot_be_prepared_is_read_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "v.parquet"
    cases.frame().to_parquet(path)
    with DuckDBEngine({"visits": path}, cases.schema()) as engine:
        engine.prepare()
        cases.frame(40, seed=8).to_parquet(path)
        monkeypatch.setattr(DuckDBEngine, "_try_prepare", lambda *_: False)
        assert asked(engine) == cases.answer({"visits": cases.frame(40, seed=8)}, *MEASURED)
        assert "source of" in view(engine)


def test_a_failure_to_prepare_says_nothing(monkeypatch):
    def fails(*_):
        raise RuntimeError("canary in a cell")

    with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as engine:
        before = asked(engine)
        with monkeypatch.context() as patch:
            patch.setattr("discreet.engine.duckdb.engine.watch", fails)
            with pytest.raises(DataRefusal) as refused:
                engine.prepare()
        assert refused.value.code == "D1"
        assert "canary" not in str(refused.value)
        assert refused.value.__context__ is None
        assert asked(engine) == before  # unprepared, and no less right
