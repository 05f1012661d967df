"""S2: order, threads and partitions, with truncation at work and rows that tie.

The attack needs a sum, or a choice of rows, that depends on how the table
happens to be laid out; then somebody else's row moves a person's share.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import engine_cases as cases
import numpy as np
import pandas as pd
import pytest

from discreet.engine.duckdb import DuckDBEngine, declared, render
from discreet.price.plan import Contribution, GroupTotal, Histogram, Moments, Plan, Scaled, Units
from discreet.question.expressions import ColumnRef
from discreet.question.functions import nodes
from discreet.question.question import Key
from discreet.question.relation import PerUnit, PublicJoin, PublicSource, Source, UnitAggregate

ROWS = 4000
MEASURED = (
    Moments((cases.COST,), (2,), counts_null=True),
    Units(),
    Histogram(Scaled(ColumnRef("v.age"), Fraction(1), 0, 120)),
    GroupTotal(ColumnRef("v.cost"), Fraction(1, 256), 0, 256 * 7000),
)


def data() -> pd.DataFrame:
    """300 people with up to thirty visits each, three of which may be kept; many are equal."""
    frame = cases.frame(ROWS, seed=3)
    chance = np.random.default_rng(9)
    return frame.assign(
        who=chance.integers(0, 300, ROWS), cost=np.round(frame.cost, -3), note="the same"
    )


def plans(engine: DuckDBEngine) -> list[Plan]:
    """By city, by group limits, and of per-person averages of decimals."""
    plain = cases.plan(engine, *MEASURED)
    limits = Contribution(groups=2, rows_per_group=1)
    averages = PerUnit(
        plain.source,
        (),
        (
            ("mean", UnitAggregate("AVG", ColumnRef("v.cost"))),
            ("sum", UnitAggregate("SUM", ColumnRef("v.cost"))),
        ),
    )
    values = (Scaled(ColumnRef("mean"), Fraction(1, 2**20), 0, 5000 * 2**20),
              Scaled(ColumnRef("sum"), Fraction(1, 2**20), 0, 15000 * 2**20))  # fmt: skip
    by_age = Key("age", ColumnRef("v.age"), tuple(range(0, 121, 5)))
    return [
        plain,
        Plan(plain.source, (by_age, *plain.keys), limits, MEASURED[:2]),
        Plan(averages, (), Contribution(rows=1), tuple(Moments((v,), (1,)) for v in values)),
    ]


def answers(source, *, prepare: bool = False, **options) -> str:
    with DuckDBEngine({"visits": source}, cases.schema(), **options) as engine:
        if prepare:
            engine.prepare()
        return repr(
            [
                cases.integers(engine.run(engine.compile(p)).open_for_release())
                for p in plans(engine)
            ]
        )


def layouts(folder) -> dict[str, object]:
    """The same rows in many layouts."""
    frame = data()
    found: dict[str, object] = {"as made": frame}
    for seed in range(3):
        found[f"shuffled {seed}"] = frame.sample(frac=1, random_state=seed)
    found["sorted"] = frame.sort_values(["cost", "who"])
    for parts in (1, 3, 17, 64):
        where = folder / str(parts)
        where.mkdir()
        mixed = frame.sample(frac=1, random_state=parts)
        for part in range(parts):
            mixed.iloc[part::parts].to_parquet(where / f"{part}.parquet", row_group_size=100)
        found[f"{parts} files"] = where
    return found


WAYS = (1, 2, 4, "prepared")
"""With so many threads, or prepared."""


@pytest.mark.parametrize("ways", [1, pytest.param(len(WAYS), marks=pytest.mark.soak)])
def test_layout_threads_and_preparation_change_nothing(tmp_path, ways):
    """So many ways for each layout, in turn; all of them for the rows as they were made."""
    seen, turns = {}, itertools.cycle(WAYS)
    for name, source in layouts(tmp_path).items():
        for way in WAYS if name == "as made" else itertools.islice(turns, ways):
            options = {"prepare": True} if way == "prepared" else {"threads": way}
            seen[name, way] = answers(source, **options)
    assert len(set(seen.values())) == 1, {k: hash(v) for k, v in seen.items()}


def test_rows_that_are_units_are_chosen_from_by_content_alone():
    """Every row a unit, two partners each, one of them kept: the row's place has no say."""
    text = cases.SCHEMA.replace('unit = "who"\nmax_rows_per_unit = 3', 'unit = "row"')
    text += "[tables.cities]\npublic = true\n"
    cities = pd.DataFrame({"name": [*cases.CITIES] * 2, "rank": range(6)})

    def found(rows: pd.DataFrame) -> list[object]:
        tables = {"visits": rows, "cities": cities}
        with DuckDBEngine(tables, cases.schema(text)) as engine:
            visits, public = (engine.schema.tables[name] for name in ("visits", "cities"))
            joined = PublicJoin(
                Source(visits, (("v.city", "city"),)),
                PublicSource(public, (("c.name", "name"), ("c.rank", "rank"))),
                ((ColumnRef("v.city"), "c.name"),),
            )
            ranks = Key("rank", ColumnRef("c.rank"), tuple(range(6)))
            plan = Plan(joined, (ranks,), Contribution(rows=1), (Moments(), Units()))
            return cases.integers(engine.run(engine.compile(plan)).open_for_release())

    frame = data()
    expected = found(frame)
    assert all(count > 0 for (count,) in expected[1])  # both partners are kept by some
    assert expected[1] == expected[2]
    for seed in range(3):
        assert found(frame.sample(frac=1, random_state=seed)) == expected
    without = found(frame.iloc[1:])
    moved = [a[0] - b[0] for a, b in zip(expected[1], without[1], strict=True)]
    assert sorted(map(abs, moved)) in ([0] * 6, [0] * 5 + [1])


def test_the_test_sees_a_choice_by_position(tmp_path, monkeypatch):
    """With no order among a unit's rows, the first that come are kept: layouts must differ."""
    monkeypatch.setattr(declared, "_order_by_hash", lambda *_: [nodes.literal(None)])
    sources = [data(), data().sample(frac=1, random_state=1)]
    assert len({answers(source, threads=1) for source in sources}) == 2


@pytest.mark.parametrize("limit", [1, 3])
def test_nobody_else_decides_which_rows_are_kept(limit):
    """A person's kept rows are the same alone and among the others."""
    text = cases.SCHEMA.replace("max_rows_per_unit = 3", f"max_rows_per_unit = {limit}")
    frame = data()

    def kept(rows: pd.DataFrame) -> pd.DataFrame:
        with DuckDBEngine({"visits": rows}, cases.schema(text)) as engine:
            rows = render.name_rows(engine.schema.tables["visits"])
            found = pd.DataFrame(engine._current().run(f'SELECT * FROM "{rows}"'))
        return found.sort_values(list(found.columns), ignore_index=True)

    together = kept(frame)
    assert (together.groupby("_unit0").size() <= limit).all()
    assert set(together["_unit0"]) == set(frame.who)
    for who in (0, 7, 150, 299):
        alone = kept(frame[frame.who == who])
        share = together[together["_unit0"] == who].reset_index(drop=True)
        assert alone.astype(str).equals(share.astype(str))
