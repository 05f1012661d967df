"""The engine against plain DuckDB and OpenDP's Polars interface: COUNT, SUM and AVG per group.

Data is generated here: a tenth as many users as rows, 1,000 groups, at most ten
rows per user, in a DuckDB file that every contestant reads.  Each contestant runs in a
process of its own, so that its peak memory is its own.

    python -m bench.engine [--rows 10000000] [--huge] [--threads 2]
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from bench.timing import best
from bench.timing import seconds as timed
from discreet.engine.duckdb import DuckDBEngine
from discreet.price.plan import Contribution, Moments, Plan
from discreet.price.recipes import GRID_BITS, put_on_grid
from discreet.question.expressions import ColumnRef
from discreet.question.question import Key
from discreet.question.relation import Source
from discreet.question.schema import Schema

GROUPS, MOST_ROWS = 1000, 10
TURNS = 25
"""Prepared and plain take turns so often: both are short, and the machine may be busy."""

SCHEMA = f"""
[tables.visits]
unit = "user_id"
max_rows_per_unit = {MOST_ROWS}
[tables.visits.columns]
user_id = "integer"
grp = {{ type = "text", values = {[f"g{i:04d}" for i in range(GROUPS)]} }}
val = {{ type = "decimal", bounds = [0, 5000] }}
"""

PLAIN = "SELECT grp, COUNT(*), SUM(val), AVG(val) FROM visits GROUP BY grp"
WINDOW = """
SELECT grp, COUNT(*), SUM(val), AVG(val) FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY HASH(grp, val)) AS n FROM visits
) WHERE n <= 10 GROUP BY grp
"""
UNORDERED = WINDOW.replace(" ORDER BY HASH(grp, val)", "")


def generate(path: Path, rows: int) -> None:
    """Rows in random order of users, ten for each: nobody exceeds the bound."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"""CREATE TABLE visits AS SELECT i // {MOST_ROWS} AS user_id,
            'g' || LPAD((HASH(i, 7) % {GROUPS})::VARCHAR, 4, '0') AS grp,
            (HASH(i, 3) % 1000000) / 200.0::DOUBLE AS val
            FROM range({rows}) t(i) ORDER BY HASH(i)"""
        )


def seconds(call: Callable[[], object], *, repeats: int = 3) -> float:
    """The shortest of several runs."""
    return min(timed(call) for _ in range(repeats))


def peak_mb() -> int:
    """The most memory this process has held; Linux counts a parent's in ``ru_maxrss``."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def question(schema: Schema) -> Plan:
    """COUNT, SUM and AVG of val for each group: one measurement serves all three."""
    table = schema.tables["visits"]
    source = Source(table, (("v.grp", "grp"), ("v.val", "val")))
    column = table.column("val")
    values = table.column("grp").domain.values
    variable = put_on_grid(ColumnRef("v.val"), column.domain, GRID_BITS)
    return Plan(
        source,
        (Key("grp", ColumnRef("v.grp"), (*values, None)),),
        Contribution(rows=MOST_ROWS),
        (Moments((variable,), (1,), counts_null=True),),
    )


def plain_connection(path: Path, threads: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path), read_only=True, config={"threads": threads})
    connection.execute("SET enable_progress_bar = false")
    return connection


def plain_duckdb(path: Path, threads: int) -> dict[str, float]:
    with plain_connection(path, threads) as connection:

        def run(sql: str) -> float:
            try:
                return seconds(lambda: connection.execute(sql).fetchall())
            except duckdb.OutOfMemoryException:
                return math.nan  # as plain DuckDB does on 10⁸ rows in 24 GB

        run(PLAIN)  # the first reading is from disk
        return {"window": run(WINDOW), "unordered": run(UNORDERED)}


def ours(path: Path, threads: int) -> dict[str, float]:
    found: dict[str, float] = {}
    calls: list[float] = []
    with DuckDBEngine({"visits": path}, Schema.from_text(SCHEMA), threads=threads) as engine:
        plan = question(engine.schema)
        truth = engine.run(engine.compile(plan)).open_for_release()
        found["unprepared"] = seconds(lambda: engine.run(engine.compile(plan)))
        start = time.perf_counter()
        engine.prepare(progress=lambda _, done: calls.append(done))
        found["preparing"] = time.perf_counter() - start
        again = engine.run(engine.compile(plan)).open_for_release()
        if (truth.measured[0] != again.measured[0]).any():
            raise SystemExit("prepared and unprepared answers differ")
        found["peak"] = peak_mb()  # before the other contestant comes in
        with plain_connection(path, threads) as connection:
            found["prepared"], found["plain"] = best(
                [
                    lambda: engine.run(engine.compile(plan)),
                    lambda: connection.execute(PLAIN).fetchall(),
                ],
                rounds=TURNS,
            )
    found["progress calls"] = len(calls)
    return found


def opendp_polars(path: Path) -> float:
    """OpenDP's count and sum per group, at most ten rows per user; CPU-bound, one thread."""
    import opendp.prelude as dp
    import polars as pl

    with duckdb.connect(str(path), read_only=True) as connection:
        frame = pl.from_arrow(connection.sql("FROM visits").to_arrow_table()).lazy()
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=MOST_ROWS, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["grp"], max_length=10**8, max_groups=GROUPS)],
    )
    query = (
        context.query()
        .truncate_per_group(MOST_ROWS)
        .group_by("grp")
        .agg(dp.len(signed=False), pl.col("val").fill_null(0.0).dp.sum((0.0, 5000.0)))
    )
    start = time.perf_counter()
    query.release().collect()
    return time.perf_counter() - start


def measured(
    contestant: Callable[[Path, int], dict[str, float]],
    path: Path,
    threads: int,
    results: multiprocessing.Queue,
) -> None:
    before = peak_mb()
    found = contestant(path, threads)
    results.put({"peak": peak_mb(), "start": before, **found})


def in_own_process(
    contestant: Callable[[Path, int], dict[str, float]], path: Path, threads: int
) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=measured, args=(contestant, path, threads, results))
    process.start()
    found: dict[str, float] = results.get()
    process.join()
    return found


def show(rows: int, found: dict[str, float]) -> None:
    plain, window = found["plain"], found["window"]
    print(
        f"{rows:>11,} rows: prepared {found['prepared']:.3f} s "
        f"({found['prepared'] / plain:.2f}x plain {plain:.3f} s), "
        f"unprepared {found['unprepared']:.3f} s ({found['unprepared'] / window:.2f}x window "
        f"{window:.3f} s; {found['unprepared'] / found['unordered']:.2f}x without its ORDER BY), "
        f"preparing {found['preparing']:.3f} s ({found['preparing'] / window:.2f}x window, "
        f"{found['progress calls']:.0f} calls of progress), "
        f"peak {found['peak']:.0f} MB (plain {found['peak plain']:.0f} MB, "
        f"an idle process {found['start']:.0f} MB)"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7, help="the largest size")
    parser.add_argument("--huge", action="store_true", help="go on to 10**8 rows")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= options.rows]
    with tempfile.TemporaryDirectory() as folder:
        for rows in [*sizes, *([10**8] if options.huge else [])]:
            path = Path(folder) / f"{rows}.duckdb"
            generate(path, rows)
            plain = in_own_process(plain_duckdb, path, options.threads)
            found = in_own_process(ours, path, options.threads)
            show(rows, {**plain, **found, "peak plain": plain["peak"]})
        largest = Path(folder) / f"{max(sizes)}.duckdb"
        try:
            print(f"OpenDP's Polars interface, {max(sizes):,} rows: {opendp_polars(largest):.2f} s")
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            print(f"OpenDP's Polars interface does not run here: {reason}")


if __name__ == "__main__":
    main()
