"""A small clinic on the engine, for the tests of the engine's own behaviour."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.truth import Opened
from discreet.price.plan import (
    Contribution,
    DistinctValues,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.question import Key
from discreet.question.relation import Source
from discreet.question.schema import Schema

CITIES = ("Cork", "Faro", "Oslo")

SCHEMA = """
[tables.visits]
unit = "who"
max_rows_per_unit = 3
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"] }
age = { type = "integer", bounds = [0, 120] }
cost = { type = "decimal", bounds = [0, 5000] }
note = "text"
day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
at = "timestamp"
"""

COST = Scaled(ColumnRef("v.cost"), Fraction(1, 256), 0, 5000 * 256)

AGE = Scaled(ColumnRef("v.age"), Fraction(1), 0, 120)
DAYS = tuple(date(2024, 1, d) for d in range(1, 32))
MEASURED = (
    Moments((COST,), (2,), counts_null=True),
    Units(),
    Histogram(AGE),
    ValueCounts(ColumnRef("v.city"), CITIES),
    DistinctValues(ColumnRef("v.note")),
    GroupTotal(ColumnRef("v.cost"), Fraction(1, 256), 0, 256 * 7000),
    Sum(Scaled(ColumnRef("v.age"), Fraction(1), -20, 90)),
    GroupSum(ColumnRef("v.cost"), Fraction(1, 256), -256 * 5, 256 * 70),
)
KEYS: dict[str, tuple[Key, ...]] = {
    "none": (),
    "declared texts": (Key("city", ColumnRef("v.city"), (*CITIES, None)),),
    "whole numbers": (Key("age", ColumnRef("v.age"), (*range(121), None)),),
    "some whole numbers": (Key("age", ColumnRef("v.age"), (7, 120, 0)),),
    "days": (Key("day", ColumnRef("v.day"), (*DAYS, None)),),
    "truth values": (
        Key("old", Call("greater", (ColumnRef("v.age"), Literal(40))), (False, True, None)),
    ),
    "two": (
        Key("age", ColumnRef("v.age"), (0, 120)),
        Key("city", ColumnRef("v.city"), (None, "Oslo", "Cork")),
    ),
    "found": (Key("note", ColumnRef("v.note"), None), Key("day", ColumnRef("v.day"), None)),
}


def schema(text: str = SCHEMA) -> Schema:
    return Schema.from_text(text)


def frame(rows: int = 60, seed: int = 5) -> pd.DataFrame:
    """Visits of a dozen people, some with more than they may keep, some cells missing."""
    chance = np.random.default_rng(seed)
    cities = [*CITIES, "nowhere", None]
    days = pd.to_datetime("2023-12-20") + pd.to_timedelta(chance.integers(0, 400, rows), "D")
    return pd.DataFrame(
        {
            "who": pd.array(chance.integers(1, 13, rows), "Int64"),
            "city": [cities[i] for i in chance.integers(0, 5, rows)],
            "age": pd.array(chance.integers(-5, 140, rows), "Int64"),
            "cost": np.round(chance.normal(2000, 3000, rows), 2),
            "note": [f"note {i % 7}" for i in range(rows)],
            "day": days.date,
            "at": days,
        }
    )


def plan(
    engine: DuckDBEngine, *measurements: Measurement, keys: tuple[Key, ...] | None = None
) -> Plan:
    """Questions about the visits: by city unless ``keys`` says otherwise."""
    table = engine.schema.tables["visits"]
    source = Source(table, tuple((f"v.{c.name}", c.name) for c in table.columns))
    by_city = (Key("city", ColumnRef("v.city"), (*CITIES, None)),)
    wanted = measurements or (Moments((COST,), (1,), counts_null=True), Units())
    return Plan(source, by_city if keys is None else keys, Contribution(rows=3), wanted)


def integers(result: Opened) -> list[Any]:
    """Everything in a result, as plain lists."""
    return [
        list(result.groups),
        *(
            part.tolist()
            if isinstance(part, np.ndarray)
            else [
                one.tolist()
                for one in (part.group, part.position, part.count, part.first, *part.powers)
                if one is not None
            ]
            for part in result.measured
        ),
    ]


def answer(tables: Any, *measurements: Measurement, **options: Any) -> list[Any]:
    """The integers of a plan on some tables."""
    with DuckDBEngine(tables, schema(), **options) as engine:
        return integers(engine.run(engine.compile(plan(engine, *measurements))).open_for_release())
