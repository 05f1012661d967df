"""The engine: what it may touch, what it says, whom a row belongs to."""

from __future__ import annotations

import copy
import logging
import pickle
import threading
from fractions import Fraction
from pathlib import Path

import duckdb
import engine_cases as cases
import pandas as pd
import pytest

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.duckdb.database import Database
from discreet.engine.truth import Truth
from discreet.errors import DataRefusal, InvalidParameter, SchemaRefusal
from discreet.price.plan import (
    Contribution,
    DistinctValues,
    GroupTotal,
    Histogram,
    Moments,
    Plan,
    Scaled,
    Units,
    ValueCounts,
)
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.question import Key
from discreet.question.relation import Source
from discreet.question.schema import ROW, Column, Schema, Table

SRC = Path(__file__).parents[1] / "src" / "discreet"


@pytest.fixture
def engine():
    with DuckDBEngine({"visits": cases.frame()}, cases.schema(), threads=1) as opened:
        yield opened


# --- behind bars ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "COPY (SELECT 1) TO '/tmp/discreet-test-out.csv'",
        "ATTACH '/tmp/discreet-test.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 8",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SET allowed_paths = ['/etc/hostname']",
    ],
)
def test_the_connection_can_do_nothing_else(engine, sql):
    with pytest.raises(duckdb.Error):
        engine._current().connection.execute(sql).fetchall()


def test_a_source_file_is_all_that_can_be_opened(tmp_path):
    cases.frame().to_parquet(tmp_path / "visits.parquet")
    cases.frame().to_parquet(tmp_path / "other.parquet")
    with DuckDBEngine({"visits": tmp_path / "visits.parquet"}, cases.schema()) as opened:
        connection = opened._current().connection
        path = tmp_path / "visits.parquet"
        assert connection.execute(f"SELECT COUNT(*) FROM read_parquet('{path}')").fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute(f"SELECT * FROM read_parquet('{tmp_path}/other.parquet')")


def test_limits_are_set(engine):
    rows = engine._current().connection.execute(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    )
    threads, memory = rows.fetchone()
    assert threads == 1
    assert memory.endswith("GiB")


# --- the truth is sealed -------------------------------------------------------------------


def test_settings_hold_in_every_thread(engine):
    """A statement of another thread runs on a cursor, which may have settings of its own."""
    from discreet.engine.duckdb.database import _CONFIGURATION

    def read() -> None:
        cursor = engine._current()._cursor()
        for name in _CONFIGURATION:
            (found[name],) = cursor.execute(f"SELECT current_setting('{name}')").fetchone()

    found: dict[str, object] = {}
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert found == _CONFIGURATION


def test_a_truth_shows_nothing(engine, caplog):
    truth = engine.run(engine.compile(cases.plan(engine)))
    assert isinstance(truth, Truth)
    assert repr(truth) == str(truth) == "Truth(withheld)"
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("found %s", truth)
    assert caplog.messages == ["found Truth(withheld)"]
    for attempt in (
        lambda: f"{truth}",
        lambda: pickle.dumps(truth),
        lambda: copy.copy(truth),
        lambda: copy.deepcopy(truth),
        lambda: vars(truth),
        lambda: bool(truth),
        lambda: truth == truth,  # noqa: PLR0124
        lambda: hash(truth),
        lambda: list(truth),
        lambda: len(truth),
    ):
        with pytest.raises(TypeError):
            attempt()


# --- failures ------------------------------------------------------------------------------


def test_a_failure_says_nothing_and_the_next_question_is_answered(engine, monkeypatch):
    question = cases.plan(engine)
    before = cases.integers(engine.run(engine.compile(question)).open_for_release())
    calls = []

    def fails(self, sql):
        calls.append(sql)
        raise duckdb.ConversionException("Could not convert string 'canary-2c1' to INT32")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "run", fails)
        with pytest.raises(DataRefusal) as refused:
            engine.run(engine.compile(question))
    assert refused.value.code == "D1"
    assert "canary" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert len(calls) == 1  # a failure is never a reason to read otherwise
    assert cases.integers(engine.run(engine.compile(question)).open_for_release()) == before


def test_a_result_that_cannot_be_read_says_nothing(engine, monkeypatch):
    def fails(*_):
        raise ValueError("canary-9e0 is not in list")

    monkeypatch.setattr("discreet.engine.duckdb.result.ResultColumns.read", fails)
    with pytest.raises(DataRefusal) as refused:
        engine.run(engine.compile(cases.plan(engine)))
    assert "canary" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_source_that_changes_under_a_question_fails_it(tmp_path, monkeypatch):
    path = tmp_path / "v.parquet"
    cases.frame().to_parquet(path)
    with DuckDBEngine({"visits": path}, cases.schema()) as opened:
        original = Database.run

        def changes(self, sql):
            found = original(self, sql)
            cases.frame(20).to_parquet(path)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(Database, "run", changes)
            with pytest.raises(DataRefusal):
                opened.run(opened.compile(cases.plan(opened)))
        assert cases.integers(opened.run(opened.compile(cases.plan(opened))).open_for_release())


def test_a_plan_for_another_schema_is_refused(engine):
    other = Schema.from_text(cases.SCHEMA.replace("max_rows_per_unit = 3", "max_rows_per_unit = 9"))
    with DuckDBEngine({"visits": cases.frame()}, other) as second:
        question = cases.plan(second)
    with pytest.raises(InvalidParameter) as refused:
        engine.run(engine.compile(question))
    assert refused.value.code == "P4"


def test_a_source_for_an_undeclared_table_is_refused():
    with pytest.raises(InvalidParameter, match="does not declare"):
        DuckDBEngine({"visits": cases.frame(), "more": cases.frame()}, cases.schema())
    with pytest.raises(InvalidParameter, match="no source"):
        DuckDBEngine({}, cases.schema())


def test_a_measurement_too_wide_for_the_engine_is_refused(engine):
    wide = Scaled(ColumnRef("v.age"), Fraction(1), 0, 2**64)
    with pytest.raises(InvalidParameter, match="126 bits"):
        engine.run(engine.compile(cases.plan(engine, Moments((wide,), (2,)))))


# --- whose rows ----------------------------------------------------------------------------


def people(unit, rows, *measurements, limit=2, **columns):
    declared = {
        "who": Column("who", Kind.INTEGER, *columns.get("bounds", ())),
        "part": Column("part", Kind.TEXT),
        "x": Column("x", Kind.INTEGER, 0, 9),
    }
    table = Table("t", tuple(declared.values()), unit=unit, max_rows_per_unit=limit)
    source = Source(table, (("t.x", "x"),))
    question = Plan(source, (), Contribution(rows=limit), measurements or (Moments(), Units()))
    frame = pd.DataFrame(rows, columns=["who", "part", "x"]).astype({"who": "Int64"})
    with DuckDBEngine({"t": frame}, Schema({"t": table})) as opened:
        first = cases.integers(opened.run(opened.compile(question)).open_for_release())
        opened.prepare()
        assert cases.integers(opened.run(opened.compile(question)).open_for_release()) == first
    return [entries[0][0] for entries in first[1:]]


ROWS = [(1, "a", 1), (1, "a", 2), (1, "b", 3), (2, "a", 4), (None, "a", 5), (70, "b", 6)]


def test_rows_without_a_unit_are_left_out():
    assert people(("who",), ROWS) == [4, 3]


def test_a_unit_of_two_columns():
    assert people(("who", "part"), [*ROWS, (1, None, 9)]) == [5, 4]


def test_every_row_a_unit_of_its_own():
    assert people(ROW, ROWS, limit=1) == [6, 6]


def test_people_outside_the_bounds_of_their_identifier_stay_apart():
    rows = [(70 + i, "a", 1) for i in range(5)]
    assert people(("who",), rows, bounds=(0, 9)) == [5, 5]


def test_a_unit_keeps_the_rows_of_one_block():
    table = Table(
        "t",
        (
            Column("who", Kind.INTEGER),
            Column("region", Kind.TEXT, values=("n", "s")),
            Column("x", Kind.INTEGER, 0, 9),
        ),
        unit=("who",),
        max_rows_per_unit=2,
        blocks=("region",),
    )
    source = Source(table, (("t.region", "region"),))
    named = [("n", "n", "n", "s", None), ("s", None, None), (None,), ("elsewhere", "s")]
    rows = [(w, r, 1) for w in range(40) for r in named[w % 4]]
    frame = pd.DataFrame(rows, columns=["who", "region", "x"])
    key = Key("region", ColumnRef("t.region"), ("n", "s", None))
    question = Plan(source, (key,), Contribution(rows=2), (Moments(), Units()))
    with DuckDBEngine({"t": frame}, Schema({"t": table})) as opened:
        counts, units = (
            m[:, 0] for m in opened.run(opened.compile(question)).open_for_release().measured
        )
    # The least block that a unit names, NULL last; a block that is not declared is not read.
    assert units.tolist() == [10, 10, 10]
    assert counts.tolist() == [20, 10, 10]


# --- what is measured ----------------------------------------------------------------------


def test_every_measurement_against_plain_pandas(engine):
    """Few enough rows that nothing is truncated: the integers are those of the frame."""
    frame = cases.frame(30, seed=11).drop_duplicates("who").reset_index(drop=True)
    condition = Call("greater", (ColumnRef("v.age"), Literal(40)))
    wanted = (
        Moments(),
        Moments((cases.COST,), (2,), counts_null=True),
        Units(condition),
        Histogram(Scaled(ColumnRef("v.age"), Fraction(8), 0, 15)),
        ValueCounts(ColumnRef("v.note"), ("note 1", "note 2", "absent")),
        DistinctValues(ColumnRef("v.note")),
        GroupTotal(ColumnRef("v.age"), Fraction(1), 10, 90),
    )
    found = cases.answer({"visits": frame}, *wanted)
    city = frame.city.where(frame.city.isin(cases.CITIES))
    age = frame.age.clip(0, 120).astype(int)
    steps = [round(Fraction(c) * 256) for c in frame.cost.clip(0, 5000)]
    for place, name in enumerate([*cases.CITIES, None]):
        here = city.isna() if name is None else city == name
        n = 5000 * 256
        u = [s for s, h in zip(steps, here, strict=True) if h]
        assert found[1][place] == [here.sum()]
        assert found[2][place] == [
            sum((n - x) ** 2 for x in u), sum(2 * x * (n - x) for x in u), sum(x * x for x in u), 0
        ]  # fmt: skip
        assert found[3][place] == [(here & (age > 40)).sum()]
        notes = frame.note[here]
        assert found[5][place] == [(notes == v).sum() for v in ("note 1", "note 2", "absent")]
        assert found[6][place] == [notes.nunique()]
        totals = age[here].clip(10, 100) - 10
        assert found[7][place] == [(90 - totals).sum(), totals.sum()]
    cells = dict(zip(zip(found[4][0], found[4][1], strict=True), found[4][2], strict=True))
    assert sum(cells.values()) == len(frame)
    for a, c in zip(age, city, strict=True):
        place = 3 if not isinstance(c, str) else cases.CITIES.index(c)
        assert (place, min(round(Fraction(int(a), 8)), 15)) in cells


def test_public_groups_come_in_their_order_and_empty_ones_hold_zeros(engine):
    keys = (
        Key("city", ColumnRef("v.city"), ("Oslo", None, "Cork")),
        Key("old", Call("greater", (ColumnRef("v.age"), Literal(500))), (True, False)),
    )
    result = engine.run(engine.compile(cases.plan(engine, Moments(), keys=keys))).open_for_release()
    assert result.groups == (
        ("Oslo", True), ("Oslo", False), (None, True), (None, False), ("Cork", True),
        ("Cork", False),
    )  # fmt: skip
    counts = result.measured[0][:, 0]
    assert counts[::2].tolist() == [0, 0, 0]
    assert (counts[1::2] > 0).all()


def test_private_groups_come_in_the_order_of_their_values(engine):
    keys = (Key("note", ColumnRef("v.note"), None), Key("city", ColumnRef("v.city"), None))
    groups = engine.run(engine.compile(cases.plan(engine, keys=keys))).open_for_release().groups
    codes = {name: i for i, name in enumerate([*cases.CITIES, None])}
    assert list(groups) == sorted(groups, key=lambda g: (g[0], codes[g[1]]))


def test_no_rows_at_all():
    assert cases.answer({"visits": cases.frame(30).iloc[:0]}) == [
        [("Cork",), ("Faro",), ("Oslo",), (None,)],
        [[0, 0, 0]] * 4,
        [[0]] * 4,
    ]


# --- public tables -------------------------------------------------------------------------

WITH_CITIES = (
    cases.SCHEMA.replace('values = ["Cork", "Faro", "Oslo"]', 'values_from = "cities.name"')
    + "[tables.cities]\npublic = true\n"
)


def test_public_tables_complete_the_schema(tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text("name,people,opened\nOslo,7,2001-02-03\nCork,2,1999-12-31\nCork,,\n")
    tables = {"visits": cases.frame(), "cities": path}
    with DuckDBEngine(tables, cases.schema(WITH_CITIES)) as opened:
        cities, visits = opened.schema.tables["cities"], opened.schema.tables["visits"]
        assert visits.column("city").values == ("Cork", "Oslo")
        assert [(c.name, c.kind) for c in cities.columns] == [
            ("name", Kind.TEXT), ("people", Kind.INTEGER), ("opened", Kind.DATE)
        ]  # fmt: skip
        assert (cities.column("people").low, cities.column("people").high) == (2, 7)
        assert opened.catalogue.multiplicity(cities, ("name",)) == 2
        assert opened.catalogue.multiplicity(cities, ("people",)) == 1  # NULL matches nothing
        with pytest.raises(ValueError, match="private"):
            opened.catalogue.multiplicity(visits, ("city",))
        with pytest.raises(ValueError, match="private"):
            opened._current().values(visits, visits.column("city"))


def test_a_key_declared_unique_is_checked():
    declared = WITH_CITIES + 'unique = [["name"]]\n[tables.cities.columns]\nname = "text"\n'
    tables = {"visits": cases.frame(), "cities": pd.DataFrame({"name": ["Cork", "Cork"]})}
    with pytest.raises(SchemaRefusal) as refused:
        DuckDBEngine(tables, cases.schema(declared))
    assert refused.value.code == "S9"


# --- many at once --------------------------------------------------------------------------


def test_questions_from_many_threads(engine):
    question = cases.plan(engine)
    expected = cases.integers(engine.run(engine.compile(question)).open_for_release())
    found = []

    def ask():
        found.append(cases.integers(engine.run(engine.compile(question)).open_for_release()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


# --- one plan, one statement -------------------------------------------------------------------


# --- what statements are bound to ----------------------------------------------------------------


def test_engines_of_one_schema_bind_to_one_database_with_nobody_in_it():
    """Without public tables it is the schema's alone; whoever ends leaves it to the others."""
    with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as first:
        shared = first._public_database()
        assert not shared.readers
        with DuckDBEngine({"visits": cases.frame()}, cases.schema()) as second:
            assert second._public_database() is shared
        held = shared.connection.execute(
            "SELECT table_name, estimated_size FROM duckdb_tables()"
        ).fetchall()
        assert held
        assert not any(rows for _, rows in held)
        with pytest.raises(duckdb.Error):
            shared.connection.execute("SELECT * FROM read_text('/etc/hostname')")
    with DuckDBEngine({"visits": cases.frame()}, cases.schema(), threads=1) as other:
        assert other._public_database() is not shared  # it may use less


def test_schemas_that_python_takes_for_equal_share_nothing():
    def made(low):
        column = Column("x", Kind.DECIMAL, low=low, high=Fraction(5))
        table = Table("t", (Column("u", Kind.INTEGER), column), unit=("u",), max_rows_per_unit=1)
        return Schema({"t": table})

    frame = pd.DataFrame({"u": [1, 2], "x": [1.5, 2.5]})
    with (
        DuckDBEngine({"t": frame}, made(1)) as whole,
        DuckDBEngine({"t": frame}, made(Fraction(1))) as exact,
    ):
        assert whole.schema == exact.schema
        assert whole._public_database() is not exact._public_database()


def test_a_process_that_was_forked_binds_to_a_database_of_its_own(engine, monkeypatch):
    shared = engine._public_database()
    monkeypatch.setattr("os.getpid", lambda: -5)
    with DuckDBEngine({"visits": cases.frame()}, cases.schema(), threads=1) as child:
        assert child._public_database() is not shared


def test_what_the_engine_has_bound_is_what_it_runs(engine, monkeypatch):
    bound, ran = [], []
    bind, run = Database.bind, Database.run
    monkeypatch.setattr(
        Database, "bind", lambda self, sql: bound.append(bind(self, sql)) or bound[-1]
    )
    monkeypatch.setattr(Database, "run", lambda self, one: ran.append(one) or run(self, one))
    question = cases.plan(engine, Units(), keys=(Key("two", Literal(2), (2,)),))
    for _ in range(2):
        engine.run(engine.compile(question))
    assert len(bound) == 1
    assert [one is bound[0] for one in ran] == [True, True]


def test_plans_that_python_takes_for_equal_have_a_statement_each(engine):
    whole, truth = (
        cases.plan(engine, Units(), keys=(Key("k", Literal(value), (value,)),))
        for value in (1, True)
    )
    assert whole == truth
    for question in (whole, truth, whole, truth):
        compiled = engine.compile(question)
        assert repr(compiled.plan) == repr(question)
        assert engine.compile(question) is compiled
    assert engine.compile(whole).text != engine.compile(truth).text
