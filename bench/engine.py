"""Many groups of a large table through ``curator.ask``, against plain DuckDB without privacy.

COUNT and SUM for each of 1,000 groups, whose key is a declared text, a bounded whole number
or a day.  Users have ten rows on average, and two fifths of them more than the ten they may
keep.  Prepared is set against the same sums on the raw table; unprepared against the window
query that one would write by hand to keep ten rows of each user.

    python -m bench.engine [--rows 10000000] [--threads 2] [--write]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import discreet
from bench.timing import table
from discreet.curate.curator import Curator

GROUPS, MOST_ROWS = 1000, 10
LIGHT, HEAVY = 4, 19  # rows of three users in five, and of the other two: ten on average
TURNS = 9
"""Prepared and plain take turns so often: both are short, and the machine may be busy."""
MOST_PREPARED, MOST_UNPREPARED = 0.5, 0.8

KEYS = {"declared texts": "grp", "whole numbers": "num", "days": "day"}
SCHEMA = f"""
[tables.visits]
unit = "user_id"
max_rows_per_unit = {MOST_ROWS}
[tables.visits.columns]
user_id = "integer"
grp = {{ type = "text", values = {[f"g{i:04d}" for i in range(GROUPS)]} }}
num = {{ type = "integer", bounds = [0, {GROUPS - 1}] }}
day = {{ type = "date", bounds = [2020-01-01, 2022-09-26] }}
val = {{ type = "decimal", bounds = [0, 5000] }}
"""


def generate(path: Path, rows: int) -> None:
    """Rows in random order of users: of every five, three are light and two heavy."""
    light = 3 * LIGHT
    five = light + 2 * HEAVY
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"""CREATE TABLE visits AS SELECT
            (i // {five}) * 5 + CASE WHEN i % {five} < {light} THEN (i % {five}) // {LIGHT}
                ELSE 3 + (i % {five} - {light}) // {HEAVY} END AS user_id,
            'g' || LPAD((HASH(i, 7) % {GROUPS})::VARCHAR, 4, '0') AS grp,
            (HASH(i, 7) % {GROUPS})::BIGINT AS num,
            DATE '2020-01-01' + (HASH(i, 7) % {GROUPS})::INTEGER AS day,
            (HASH(i, 3) % 1000000) / 200.0::DOUBLE AS val
            FROM range({rows}) t(i) ORDER BY HASH(i)"""
        )


def plain(key: str) -> str:
    """No privacy at all."""
    return f"SELECT {key}, COUNT(*), SUM(val) FROM visits GROUP BY {key}"


def window(key: str) -> str:
    """Ten rows of each user, chosen by a hash, as one would write it by hand."""
    return f"""SELECT {key}, COUNT(*), SUM(val) FROM (
        SELECT {key}, val, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY HASH({key}, val)) AS n
        FROM visits) WHERE n <= {MOST_ROWS} GROUP BY {key}"""


def cpu(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of CPU in all threads of this process, and on the clock."""
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    call()
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, ended - began


class Asker:
    """Asks a question about a key that was never asked before, at the same price."""

    def __init__(self, curator: Curator) -> None:
        self.curator, self.asked = curator, 0

    def ask(self, key: str) -> None:
        self.asked += 1  # -1, -2, ...: true of every row, and another question each time
        self.curator.ask(
            f"SELECT {key}, COUNT(*) AS n, SUM(val) AS s FROM visits "
            f"WHERE val > -{self.asked} GROUP BY {key}",
            epsilon=1,
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.duckdb"
        generate(path, options.rows)
        text = measure(path, options.rows, options.threads)
    print(text)


def measure(path: Path, rows: int, threads: int) -> str:
    curator = discreet.curator(
        {"visits": str(path)},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=10**6),
        threads=threads,
    )
    asker = Asker(curator)
    with curator, duckdb.connect() as connection:
        connection.execute(f"SET enable_progress_bar = false; SET threads = {threads}")
        # A copy of its own: one process may not open a file in two ways.
        copy = path.with_suffix(".copy")
        copy.write_bytes(path.read_bytes())
        connection.execute(f"ATTACH '{copy}' AS raw (READ_ONLY); USE raw")

        def by_hand(sql: str) -> Callable[[], object]:
            return lambda: connection.execute(sql).fetchall()

        unprepared = {}
        for name, key in KEYS.items():
            by_hand(plain(key))()  # the first reading is from disk
            unprepared[name] = cpu(lambda key=key: asker.ask(key))[0], cpu(by_hand(window(key)))[0]
        preparing = cpu(curator.prepare)
        lines = []
        for name, key in KEYS.items():
            asker.ask(key)
            turns = [(cpu(lambda key=key: asker.ask(key)), cpu(by_hand(plain(key))))
                     for _ in range(TURNS)]  # fmt: skip
            ours, raw = (min(turn[i][0] for turn in turns) for i in (0, 1))
            slow, hand = unprepared[name]
            lines.append(
                [
                    name,
                    f"{1000 * ours:.0f}", f"{1000 * raw:.0f}", f"{ours / raw:.2f}",
                    f"{slow:.1f}", f"{hand:.1f}", f"{slow / hand:.2f}",
                ]
            )  # fmt: skip
    header = ["key", "prepared, ms", "plain, ms", "ratio", "unprepared, s", "window, s", "ratio"]
    return (
        f"{rows:,} rows, {GROUPS:,} groups, COUNT and SUM through `curator.ask`: prepared against "
        f"plain DuckDB without\nprivacy (best of {TURNS}; wanted: at most {MOST_PREPARED} ×), "
        f"unprepared against the window query (wanted: at most {MOST_UNPREPARED} ×),\n"
        "all in CPU of all threads: others may be at work on the same machine;\n"
        f"preparing took {preparing[1]:.0f} s ({preparing[0]:.0f} s of CPU):\n\n"
    ) + table(header, lines)


if __name__ == "__main__":
    main()
