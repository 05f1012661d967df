"""What every engine must do, whatever it is made of; add its factory to ``ENGINES``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import conformance
import engine_cases as cases
import pandas as pd
import pytest
import services
from test_postgres_source import fill

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.postgres import PostgresEngine
from discreet.engine.protocol import Engine
from discreet.engine.truth import Truth
from discreet.errors import DataRefusal, InvalidParameter
from discreet.price.plan import (
    Contribution,
    Moments,
    Plan,
    Scaled,
)
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.schema import Schema

FILES = "visits.parquet"

AGE, MEASURED, KEYS = cases.AGE, cases.MEASURED, cases.KEYS


class OnDuckDB:
    """Engines on tables in memory, and in files that may change or go."""

    def __call__(self, tables: dict[str, Any], schema: Schema, **settings: Any) -> Engine[Any]:
        return DuckDBEngine(tables, schema, **settings)

    def save(self, path: Path, frame: pd.DataFrame) -> None:
        frame.to_parquet(path)

    def remove(self, path: Path) -> None:
        path.unlink()


class OnPostgres:
    """The same on tables of a server, which may change or go as well."""

    def __init__(self, postgres: services.Postgres) -> None:
        self._postgres = postgres
        self._count = itertools.count()

    def __call__(self, tables: dict[str, Any], schema: Schema, **settings: Any) -> Engine[Any]:
        given = dict(tables)
        if isinstance(given["visits"], Path):
            given["visits"] = self._address(self._name(given["visits"]))
        else:
            name = f"visits_{next(self._count)}"
            self._fill(name, given["visits"])
            given["visits"] = self._address(name)
        return PostgresEngine(given, schema, **settings)

    def _name(self, path: Path) -> str:
        return f"file_{path.stem}"

    def _address(self, name: str) -> str:
        where = f"/{self._postgres.database}?host={self._postgres.home}"
        return f"postgresql://{conformance.READER}@{where}#public.{name}"

    def _fill(self, name: str, frame: pd.DataFrame) -> None:
        fill(self._postgres, frame)
        self._postgres.execute(f"DROP TABLE IF EXISTS {name}")
        self._postgres.execute(f"ALTER TABLE visits RENAME TO {name}")
        conformance.address_for_reader(self._postgres, "public", name)

    def save(self, path: Path, frame: pd.DataFrame) -> None:
        self._fill(self._name(path), frame)

    def remove(self, path: Path) -> None:
        self._postgres.execute(f"DROP TABLE {self._name(path)}")


ENGINES: dict[str, Callable[[pytest.FixtureRequest], Any]] = {
    "duckdb": lambda _: OnDuckDB(),
    "postgres": lambda request: OnPostgres(request.getfixturevalue("postgres")),
}


@pytest.fixture(params=sorted(ENGINES))
def factory(request):
    return ENGINES[request.param](request)


@pytest.fixture
def engine(factory):
    with factory({"visits": cases.frame()}, cases.schema()) as opened:
        yield opened


def ask(engine, *measurements, keys=None) -> list[Any]:
    compiled = engine.compile(cases.plan(engine, *measurements, keys=keys))
    return cases.integers(engine.run(compiled).open_for_release())


# --- compiling -----------------------------------------------------------------------------


def test_a_plan_is_compiled_once(engine):
    one, same = cases.plan(engine, *MEASURED), cases.plan(engine, *MEASURED)
    assert one is not same
    assert engine.compile(one) is engine.compile(same)
    assert engine.compile(one).plan == one
    assert engine.compile(one).explain() == engine.compile(same).explain()


def test_what_python_takes_for_equal_is_compiled_apart(engine):
    """1 and true are the same to Python; one of them has no order among whole numbers."""
    plans = [
        cases.plan(engine, Moments(condition=Call("is_null", (Literal(value),))), keys=())
        for value in (1, True, Fraction(1))
    ]
    assert plans[0] == plans[1] == plans[2]
    assert len({id(engine.compile(plan)) for plan in plans}) == 3


def test_compiling_needs_no_data(factory, tmp_path):
    """The same is compiled, and the same refused, with the sources gone."""
    path = tmp_path / FILES
    factory.save(path, cases.frame())
    wide = Moments((Scaled(ColumnRef("v.age"), Fraction(1), 0, 2**64),), (2,))
    with factory({"visits": path}, cases.schema()) as plugged:
        factory.remove(path)
        with factory({"visits": path}, cases.schema(), opened=False) as unplugged:
            for keys in KEYS.values():
                texts = {
                    e.compile(cases.plan(e, *MEASURED, keys=keys)).explain()
                    for e in (plugged, unplugged)
                }
                assert len(texts) == 1
            for engine in (plugged, unplugged):
                with pytest.raises(InvalidParameter, match="126 bits"):
                    engine.compile(cases.plan(engine, wide))
            compiled = unplugged.compile(cases.plan(unplugged))
            assert unplugged.data_version() == "unreadable"
            with pytest.raises(DataRefusal):
                unplugged.run(compiled)


def test_a_plan_for_another_schema_is_refused(factory, engine):
    other = cases.schema(cases.SCHEMA.replace("max_rows_per_unit = 3", "max_rows_per_unit = 9"))
    with factory({"visits": cases.frame()}, other) as second:
        plan = cases.plan(second)
    with pytest.raises(InvalidParameter) as refused:
        engine.compile(plan)
    assert refused.value.code == "P4"


# --- running -------------------------------------------------------------------------------


def test_the_integers_are_sealed(engine):
    truth = engine.run(engine.compile(cases.plan(engine)))
    assert isinstance(truth, Truth)
    assert repr(truth) == "Truth(withheld)"


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_one_object_serves_the_tables_prepared_or_not(engine, keys):
    compiled = engine.compile(cases.plan(engine, *MEASURED, keys=keys))
    before = cases.integers(engine.run(compiled).open_for_release())
    engine.prepare()
    assert engine.compile(cases.plan(engine, *MEASURED, keys=keys)) is compiled
    assert cases.integers(engine.run(compiled).open_for_release()) == before


@pytest.mark.parametrize("name", [name for name in KEYS if name != "found"])
def test_public_groups_are_all_there_in_their_order(engine, name):
    """The product of the lists, the last key changing fastest, empty groups too."""
    groups, counts, *_ = ask(engine, Moments(), keys=KEYS[name])
    plain = pd.MultiIndex.from_product([range(len(k.values)) for k in KEYS[name]] or [[0]])
    assert len(groups) == len(counts) == len(plain)
    if KEYS[name]:
        assert groups == [
            tuple(k.values[i] for k, i in zip(KEYS[name], places, strict=True)) for places in plain
        ]


def test_every_kind_of_key_finds_its_rows(factory):
    """One row a person, so that plain counts are what bounding leaves."""
    frame = cases.frame(200).assign(who=range(200))
    clipped = {
        "declared texts": frame.city.where(frame.city.isin(cases.CITIES), None),
        "whole numbers": frame.age.clip(0, 120),
        "some whole numbers": frame.age.clip(0, 120),
        "days": frame.day.clip(date(2024, 1, 1), date(2024, 12, 31)),
        "truth values": frame.age.clip(0, 120) > 40,
    }
    with factory({"visits": frame}, cases.schema()) as engine:
        for name, column in clipped.items():
            groups, counts = ask(engine, Moments(), keys=KEYS[name])
            wanted = [
                int(column.isna().sum() if group is None else (column == group).sum())
                for (group,) in groups
            ]
            assert [n for (n,) in counts] == wanted, name
            assert sum(wanted) > 0


def test_a_large_sum_is_exact(factory):
    """Some 2**61 steps in each of four rows: beyond 64 bits, and beyond the whole doubles."""
    frame = cases.frame(4).assign(who=range(4), cost=[5000.0, 4999.9999, 5000.0, 5000.0])
    fine = Scaled(ColumnRef("v.cost"), Fraction(1, 2**49), 0, 5000 * 2**49)
    with factory({"visits": frame}, cases.schema()) as engine:
        _, ((rest, total),) = ask(engine, Moments((fine,), (1,)), keys=())
    steps = [round(Fraction(x) * 2**49) for x in frame.cost]
    assert total == sum(steps) > 2**63
    assert rest == sum(5000 * 2**49 - s for s in steps)


def test_a_changed_source_is_noticed(factory, tmp_path):
    path = tmp_path / FILES
    factory.save(path, cases.frame())
    with factory({"visits": path}, cases.schema()) as engine:
        before, version = ask(engine), engine.data_version()
        assert engine.data_version() == version
        factory.save(path, cases.frame(40, seed=8))
        assert engine.data_version() != version
        assert ask(engine) == cases.answer({"visits": cases.frame(40, seed=8)}) != before


def test_another_public_table_is_another_catalogue(factory, tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text("name\nCork\nOslo\n")
    text = cases.SCHEMA + '[tables.cities]\npublic = true\n[tables.cities.columns]\nname = "text"\n'
    tables = {"visits": cases.frame(), "cities": path}
    with factory(tables, cases.schema(text)) as engine:
        first = engine.catalogue
        cities = first.schema.tables["cities"]
        assert engine.catalogue.version == first.version
        assert first.multiplicity(cities, ("name",)) == 1
        path.write_text("name\nCork\nCork\nCork\n")
        assert engine.catalogue.version != first.version
        assert engine.catalogue.multiplicity(cities, ("name",)) == 3


def test_progress_goes_from_nothing_to_all(engine):
    parts: list[float] = []
    engine.prepare(progress=lambda _, done: parts.append(done), tables=["visits"])
    assert parts[-1] == 1.0
    assert parts == sorted(parts)


def test_bounding_is_by_the_plan(engine):
    """Two rows a person at most, whoever has more."""
    plan = cases.plan(engine, Moments(), keys=())
    counts = []
    for rows in (1, 2, 3):
        bounded = Plan(plan.source, plan.keys, Contribution(rows=rows), plan.measurements)
        counts.append(engine.run(engine.compile(bounded)).open_for_release().measured[0][0, 0])
    people = cases.frame().who.value_counts()
    assert counts == [int(people.clip(upper=rows).sum()) for rows in (1, 2, 3)]
