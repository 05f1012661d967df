"""The hash of our own that says which rows a unit keeps, beside DuckDB's built-in one.

The same question of the same table by two engines; in the statements of one, DuckDB's ``HASH`` of
the same columns stands where ours does.  The table is that of ``bench.engine``: two fifths of the
users have more than the ten rows that they may keep, and a row is whose it is, a number and a
column of one kind.  Seconds of CPU; the two take turns, and the best of each counts.

    python -m bench.hashing [--rows 10000000] [--threads 2] [--turns 5]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from unittest import mock

import duckdb

from bench.engine import GROUPS, MOST_ROWS, cpu
from bench.engine import generate as generate_visits
from bench.timing import table
from discreet.engine.duckdb import DuckDBEngine, declared
from discreet.engine.duckdb.hashing import Hashed, hash_columns
from discreet.price import price
from discreet.question.functions.nodes import Node, call, quote_column
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement

MOST, REPORTED = 1.3, "free text"
"""How many times the CPU an unprepared question may take; of free text it is only said."""
COLUMNS = {
    "whole numbers": f'{{ type = "integer", bounds = [0, {GROUPS - 1}] }}',
    "days": '{ type = "date", bounds = [2020-01-01, 2022-09-26] }',
    "declared texts": f'{{ type = "text", values = {[f"g{i:04d}" for i in range(GROUPS)]} }}',
    REPORTED: '"text"',
}
NAMES = {"whole numbers": "num", "days": "day", "declared texts": "grp", REPORTED: "note"}
_MODULUS = 2**31 - 1  # which our hash is full of
QUESTION = "SELECT COUNT(*) AS n, SUM(val) AS s FROM visits"


def describe(kind: str) -> Schema:
    """The table with a column of one kind."""
    return Schema.from_text(
        f"""
[tables.visits]
unit = "user_id"
max_rows_per_unit = {MOST_ROWS}
[tables.visits.columns]
user_id = "integer"
val = {{ type = "decimal", bounds = [0, 5000] }}
{NAMES[kind]} = {COLUMNS[kind]}
"""
    )


def hash_as_duckdb(columns: Iterable[Hashed]) -> Node:
    """DuckDB's own hash of the same columns."""
    return call("HASH", *(quote_column(column.identifier) for column in columns))


class Asked:
    """An engine whose statements are written with our hash, or with DuckDB's own."""

    def __init__(self, path: Path, kind: str, threads: int, *, own: bool) -> None:
        self.own = own
        with self._choose():
            self.engine = DuckDBEngine({"visits": path}, describe(kind), threads=threads)
            question = parse_statement(QUESTION, self.engine.catalogue).question
            plan = price(question, Offer(epsilon=1), self.engine.catalogue).plan
            self.compiled = self.engine.compile(plan)
            self.ask()
        held = self.engine._current().connection.execute("SELECT sql FROM duckdb_views()")
        written = " ".join(row[0] for row in held.fetchall())
        if ("hash(_unit0" in written) is own or (str(_MODULUS) in written) is not own:
            raise SystemExit("the hash is not the one that was to be measured")

    def _choose(self) -> AbstractContextManager[object]:
        """Whose hash is written from now on; what was written before is forgotten."""
        declared.define_rows.cache_clear()
        chosen = hash_columns if self.own else hash_as_duckdb
        return mock.patch.object(declared, "hash_columns", chosen)

    def ask(self) -> None:
        self.engine.run(self.compiled)

    def prepare(self) -> None:
        with self._choose():
            self.engine.prepare()


def measure(path: Path, kind: str, threads: int, turns: int) -> list[float]:
    """Unprepared, preparing and prepared, each by ours and by DuckDB's own."""
    with ExitStack() as open_ones:
        both = [Asked(path, kind, threads, own=own) for own in (True, False)]
        for one in both:
            open_ones.enter_context(one.engine)

        def take_turns(count: int) -> list[float]:
            found = [[cpu(one.ask)[0] for one in both] for _ in range(count)]
            return [min(column) for column in zip(*found, strict=True)]

        unprepared = take_turns(turns)
        preparing = [cpu(one.prepare)[0] for one in both]
        take_turns(1)
        return [*unprepared, *preparing, *take_turns(4 * turns)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    lines, held = [], True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.duckdb"
        generate_visits(path, options.rows)
        with duckdb.connect(str(path)) as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute("ALTER TABLE visits ADD COLUMN note VARCHAR")
            connection.execute("UPDATE visits SET note = 'said on ' || day || ' in ' || grp")
        for kind in COLUMNS:
            found = measure(path, kind, options.threads, options.turns)
            ratios = [ours / other for ours, other in zip(found[::2], found[1::2], strict=True)]
            held = held and (kind == REPORTED or ratios[0] <= MOST)
            shown = [f"{one:.2f}" for one in found[:4]] + [f"{1000 * one:.0f}" for one in found[4:]]
            pairs = zip(shown[::2], shown[1::2], ratios, strict=True)
            cells = [cell for a, b, ratio in pairs for cell in (f"{a} / {b}", f"{ratio:.2f}")]
            lines.append([kind, *cells])
    print(
        f"{options.rows:,} rows, COUNT and SUM of all, CPU by our hash / by DuckDB's own, best of "
        f"{options.turns} turns\n(wanted: unprepared at most {MOST} times as much but for free "
        f"text, {'held' if held else 'NOT held'}):\n"
    )
    heads = ["column", "unprepared, s", "ratio", "preparing, s", "ratio", "prepared, ms", "ratio"]
    print(table(heads, lines))


if __name__ == "__main__":
    main()
