"""A hundred million rows on one machine, in at most 4 GB: prepared, then asked through the curator.

The table is made by one process and asked by another, whose greatest resident memory is what the
operating system says of it at the end.  DuckDB is told to stay within 3 GB: the rest is for Python,
for results, and for what DuckDB does not count.

    python -m bench.large [--rows 100000000] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import discreet
from bench.timing import table

ROWS, GROUPS, MOST_ROWS = 10**8, 1000, 10
MEMORY_LIMIT, MOST_GB = "3GB", 4.0
SCHEMA = f"""
[tables.visits]
unit = "user_id"
max_rows_per_unit = {MOST_ROWS}
[tables.visits.columns]
user_id = "integer"
num = {{ type = "integer", bounds = [0, {GROUPS - 1}] }}
code = "integer"
val = {{ type = "decimal", bounds = [0, 5000] }}
"""
QUESTIONS = {
    "COUNT, SUM, AVG of 1,000 groups": (
        "SELECT num, COUNT(*) AS n, SUM(val) AS s, AVG(val) AS a FROM visits GROUP BY num"
    ),
    "a median of all rows": "SELECT MEDIAN(val) AS m FROM visits",
    "medians of 1,000 groups": "SELECT num, MEDIAN(val) AS m FROM visits GROUP BY num",
    "COUNT of groups that are not listed": (
        "SELECT code, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY code"
    ),
}


def generate(path: Path, rows: int) -> None:
    """Users of ten rows on average, in random order."""
    with duckdb.connect() as connection:
        connection.execute(f"SET enable_progress_bar = false; SET memory_limit = '{MEMORY_LIMIT}'")
        connection.execute(
            f"""COPY (SELECT (HASH(i, 1) % {max(rows // 10, 1)})::BIGINT AS user_id,
            (HASH(i, 7) % {GROUPS})::BIGINT AS num, (HASH(i, 9) % 50000)::BIGINT AS code,
            (HASH(i, 3) % 1000000) / 200.0::DOUBLE AS val
            FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"""
        )


def ask(path: Path, store: Path) -> None:
    """Prepare and ask; prints what each took, and the most memory that was held."""
    curator = discreet.curator(
        {"visits": str(path)},
        schema=discreet.Schema.from_text(SCHEMA),
        budget=discreet.Budget(epsilon=1000, delta="1e-8"),
        memory_limit=MEMORY_LIMIT,
        threads=2,
        store=store,
    )
    took = {}
    with curator:
        for name, step in {
            "preparing": curator.prepare,
            **{
                name: lambda text=text: curator.ask(text, epsilon=1, delta="1e-9")
                for name, text in QUESTIONS.items()
            },
        }.items():
            began = time.perf_counter()
            step()
            took[name] = time.perf_counter() - began, read_peak()
            print(name, *took[name], file=sys.stderr, flush=True)
    print(json.dumps(took))


def read_peak() -> float:
    """The greatest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(folder: Path, rows: int) -> str:
    path = folder / "visits.parquet"
    generate(path, rows)
    command = [sys.executable, "-m", "bench.large", "--ask", str(path), str(folder / "store")]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    took = json.loads(found.stdout)
    lines = [[name, f"{seconds:.1f}", f"{peak:.2f}"] for name, (seconds, peak) in took.items()]
    most = max(peak for _, peak in took.values())
    held = "held" if most <= MOST_GB else "NOT held"
    return (
        f"{rows:,} rows of {rows // 10:,} people in Parquet ({path.stat().st_size / 1e9:.1f} GB), "
        f"through the curator, DuckDB told to stay within {MEMORY_LIMIT}\n"
        f"(wanted: at most {MOST_GB:g} GB resident, {held}: {most:.2f} GB), two threads, on the "
        "clock of a machine that others may use:\n\n"
    ) + table(["step", "s", "most resident so far, GB"], lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="where to put some ten GB")
    parser.add_argument("--ask", nargs=2, type=Path, metavar=("PATH", "STORE"))
    options = parser.parse_args(arguments)
    if options.ask:
        ask(*options.ask)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        text = measure(Path(folder), options.rows)
    print(text)


if __name__ == "__main__":
    main()
