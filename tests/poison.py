"""Values that have broken engines, and a DuckDB table full of them.

Each kind has raw values of the engine's own type: NULL, NaN, the infinities,
the extremes of the type, empty and odd texts, dates from before the year 1 to
the year 290000.  The table pairs every value of one kind with every value of
another, so that functions of two arguments meet each pair.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
from sqlglot import exp

from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Expression
from discreet.question.functions import read_column, render
from discreet.question.schema import Column

RAW: dict[Kind, list[str]] = {
    Kind.BOOLEAN: ["NULL", "TRUE", "FALSE"],
    Kind.INTEGER: [
        "NULL",
        "0",
        "1",
        "-1",
        "7",
        "-7",
        "25",
        "120",
        "2147483647",
        "-2147483648",
        "9007199254740993",
        "4611686018427387904",
        "-4611686018427387905",
        "9223372036854775807",
        "CAST('-9223372036854775808' AS BIGINT)",
    ],
    Kind.DECIMAL: [
        "NULL",
        "'nan'::DOUBLE",
        "'inf'::DOUBLE",
        "'-inf'::DOUBLE",
        "0e0",
        "-0e0",
        "0.1e0",
        "-2.5e0",
        "2.675e0",
        "3.5e0",
        "1e16",
        "9.3e18",
        "-9223372036854775808e0",
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        "710e0",
        "-745.2e0",
    ],
    Kind.TEXT: [
        "NULL",
        "''",
        "' '",
        "'\u00a0true\u3000'",  # blanks that are not spaces
        "'a'",
        "'A%_b'",
        "'straße'",
        "'naïve 🇩🇪'",
        "'12'",
        "' -7 '",
        "'0x10'",
        "'1_000'",
        "'1e400'",
        "'2.5'",
        "'nan'",
        "'2024-02-29'",
        "'2023-02-29'",
        "'0000-01-01'",
        "'2024-02-29T23:59:59.5'",
        "'2024-02-29 24:00:00'",
        "'TRUE'",
        "'infinity'",
        "'a' || CHR(0) || E'b\\n'",
        "REPEAT('é', 5000)",
        "REPEAT('9', 30)",
    ],
    Kind.DATE: [
        "NULL",
        "DATE '1970-01-01'",
        "DATE '2024-02-29'",
        "DATE '2024-12-30'",
        "DATE '0001-01-01'",
        "DATE '9999-12-31'",
        "DATE '290000-01-01'",
        "DATE '5877642-06-25 (BC)'",
        "DATE '0044-03-15 (BC)'",
        "'infinity'::DATE",
        "'-infinity'::DATE",
    ],
    Kind.TIMESTAMP: [
        "NULL",
        "TIMESTAMP '1969-12-31 23:59:59.999999'",
        "TIMESTAMP '2024-02-29 18:30:15.25'",
        "TIMESTAMP '0001-01-01 00:00:00'",
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
        "TIMESTAMP '290000-01-01 00:00:00'",
        "TIMESTAMP '0044-03-15 (BC) 01:02:03'",
        "'infinity'::TIMESTAMP",
        "'-infinity'::TIMESTAMP",
    ],
}

DECLARED: dict[Kind, list[dict[str, Any]]] = {
    Kind.BOOLEAN: [{}, {"nullable": False}],
    Kind.INTEGER: [
        {},
        {"low": 0, "high": 120},
        {"low": -7, "high": 25, "nullable": False},
        {"values": (7, -1, 25)},
        {"nullable": False},  # nothing public to put in NULL's place: NULL all the same
    ],
    Kind.DECIMAL: [
        {},
        {"low": Fraction(-5, 2), "high": Fraction(1, 10)},
        {"low": 1, "high": 710, "nullable": False},
        {"low": Fraction(10) ** 300 * -1, "high": Fraction(10) ** 308, "nullable": False},
        {"values": (Fraction(1, 10), Fraction(7, 2))},
    ],
    Kind.TEXT: [{}, {"values": ("a", "12", "2024-02-29"), "nullable": False}],
    Kind.DATE: [{}, {"low": date(2024, 2, 1), "high": date(2024, 12, 31), "nullable": False}],
    Kind.TIMESTAMP: [{}, {"low": datetime(1970, 1, 1), "high": datetime(2030, 1, 1, 12)}],
}

SIDES = ("a", "b")


def declarations() -> dict[str, Column]:
    """A column for each way to declare a kind, on both sides of a pair."""
    return {
        f"{side}_{kind.value}_{n}": Column(f"{side}_{kind.value}", kind, **options)
        for side in SIDES
        for kind, ways in DECLARED.items()
        for n, options in enumerate(ways)
    }


COLUMNS = declarations()
DOMAINS: dict[str, Domain] = {name: column.domain for name, column in COLUMNS.items()}


def _spread(raw: list[str], row: int, column: int) -> str:
    """Any of the values, the same one each time: every column meets all its values."""
    return random.Random(f"{row} {column}").choice(raw)


class Poisoned:
    """A connection with a table for each pair of kinds, read through its declarations."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.rows: dict[tuple[Kind, Kind], list[dict[str, Any]]] = {}
        self.mixed: list[dict[str, Any]] = []

    def _pair(self, left: Kind, right: Kind) -> str:
        name = f"pair_{left.value}_{right.value}"
        if (left, right) not in self.rows:
            cells = ", ".join(f"({a}, {b})" for a in RAW[left] for b in RAW[right])
            self.connection.execute(
                f"CREATE TABLE raw_{name} AS SELECT * FROM (VALUES {cells}) "
                f't("a_{left.value}", "b_{right.value}")'
            )
            chosen = self.columns(left, right)
            selected = ", ".join(
                f'{read_column(c, exp.column(c.name, quoted=True)).sql("duckdb")} AS "{n}"'
                for n, c in chosen.items()
            )
            # Materialised: a function must be total on what was read, not because of a plan.
            self.connection.execute(f"CREATE TABLE {name} AS SELECT {selected} FROM raw_{name}")
            self.rows[left, right] = self.fetch(f"SELECT * FROM {name}", list(chosen))
        return name

    @staticmethod
    def columns(left: Kind, right: Kind) -> dict[str, Column]:
        """The declarations that the pair's table holds."""
        return {
            n: c
            for n, c in COLUMNS.items()
            if (n[0] == "a" and c.kind is left) or (n[0] == "b" and c.kind is right)
        }

    def fetch(self, sql: str, names: list[str]) -> list[dict[str, Any]]:
        """The rows of a statement."""
        found = self.connection.execute(sql).fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def mix(self, rows: int = 240) -> list[dict[str, Any]]:
        """A table of every declared column, its values shuffled against each other."""
        if self.mixed:
            return self.mixed
        raws = {c.name: RAW[c.kind] for c in COLUMNS.values()}
        cells = ", ".join(
            f"({', '.join(_spread(raw, i, k) for k, raw in enumerate(raws.values()))})"
            for i in range(rows)
        )
        names = ", ".join(f'"{name}"' for name in raws)
        self.connection.execute(
            f"CREATE TABLE raw_mixed AS SELECT * FROM (VALUES {cells}) t({names})"
        )
        selected = ", ".join(
            f'{read_column(c, exp.column(c.name, quoted=True)).sql("duckdb")} AS "{n}"'
            for n, c in COLUMNS.items()
        )
        self.connection.execute(f"CREATE TABLE mixed AS SELECT {selected} FROM raw_mixed")
        self.mixed = self.fetch("SELECT * FROM mixed", list(COLUMNS))
        return self.mixed

    def compute_mixed(
        self, expressions: list[Expression], columns: Mapping[str, Domain] = DOMAINS
    ) -> list[list[Any]]:
        """What the engine makes of each expression on the rows of the mixed table."""
        self.mix()
        written = ", ".join(
            f'{render(e, columns).sql("duckdb")} AS "{i}"' for i, e in enumerate(expressions)
        )
        found = self.connection.execute(f"SELECT {written} FROM mixed").fetchall()
        return [[row[i] for row in found] for i in range(len(expressions))]

    def compute(
        self, expressions: list[Expression], left: Kind, right: Kind
    ) -> Iterator[tuple[Expression, list[dict[str, Any]], list[Any]]]:
        """Each expression, the rows it was computed on, and what the engine made of them."""
        name = self._pair(left, right)
        written = ", ".join(
            f'{render(e, DOMAINS).sql("duckdb")} AS "{i}"' for i, e in enumerate(expressions)
        )
        found = self.connection.execute(f"SELECT {written} FROM {name}").fetchall()
        for i, expression in enumerate(expressions):
            yield expression, self.rows[left, right], [row[i] for row in found]


@contextmanager
def poisoned() -> Iterator[Poisoned]:
    """A fresh engine with its poison."""
    engine = Poisoned()
    try:
        yield engine
    finally:
        engine.connection.close()
