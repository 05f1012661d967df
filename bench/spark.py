"""COUNT, SUM and AVG of 1,000 groups by Spark: prepared, against the same without privacy.

CPU of the whole session (the driver's Java and this process), the raw aggregates on the raw Parquet
in the same session.  Preparing is timed beside it, its exchanges read from Spark's own plan.

    python -m bench.spark [--rows 100000 1000000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from bench.engine import SCHEMA
from bench.timing import table
from discreet.engine.spark.engine import SparkEngine
from discreet.engine.spark.prepare import Preparing
from discreet.engine.spark.session import open_session
from discreet.price import price
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement

SIZES = (10**5, 10**6)
TURNS = 5
MOST_PREPARED = 1.0
"""Of the CPU of the same aggregates without privacy."""
QUESTION = "SELECT num, COUNT(*) AS n, SUM(val) AS s, AVG(val) AS a FROM visits GROUP BY num"
PLAIN = "SELECT num, COUNT(*) AS n, SUM(val) AS s, AVG(val) AS a FROM raw GROUP BY num"
SETTINGS = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "2g"}


def generate(path: Path, rows: int) -> None:
    """Users of ten rows on average, in random order."""
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (SELECT (HASH(i, 1) % {max(rows // 10, 1)})::BIGINT AS user_id,
            'g' || LPAD((HASH(i, 7) % 1000)::VARCHAR, 4, '0') AS grp,
            (HASH(i, 7) % 1000)::BIGINT AS num,
            DATE '2020-01-01' + (HASH(i, 7) % 1000)::INTEGER AS day,
            (HASH(i, 3) % 1000000) / 200.0::DOUBLE AS val
            FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"""
        )


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            for child in (task / "children").read_text().split():
                found += [int(child), *_children(int(child))]
    return found


def spent() -> float:
    """Seconds of CPU of this process and of Spark's Java, so far."""
    ticks = 0
    for pid in (os.getpid(), *_children(os.getpid())):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of CPU, and on the clock."""
    before, began = spent(), time.perf_counter()
    call()
    return spent() - before, time.perf_counter() - began


def measure(session: Any, rows: int, folder: Path) -> list[object]:
    path = folder / f"{rows}.parquet"
    generate(path, rows)
    session.read.parquet(str(path)).createOrReplaceTempView("raw")
    schema = Schema.from_text(SCHEMA)
    with SparkEngine({"visits": path}, schema, spark=session, store=folder / str(rows)) as engine:
        declared, source = engine.schema.tables["visits"], engine._public.find_source("visits")
        moved = Preparing.of(engine._open(), declared, source).explain().count("Exchange")
        preparing, _ = cpu(engine.prepare)
        question = parse_statement(QUESTION, engine.catalogue).question
        plan = engine.compile(price(question, Offer(epsilon=1), engine.catalogue).plan)
        own, plain = [], []
        for _ in range(TURNS):
            own.append(cpu(lambda: engine.run(plan)))
            plain.append(cpu(lambda: session.sql(PLAIN).collect()))
    answered, raw = min(one for one, _ in own[1:]), min(one for one, _ in plain[1:])
    return [f"{rows:,}", moved, preparing, answered, raw, answered / raw]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    chosen = options.parse_args()
    session = open_session("local[2]", settings=SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(session, rows, Path(folder)) for rows in chosen.rows]
    heads = ["rows", "exchanges", "prepare s", "prepared s", "plain s", "of plain"]
    rows = [[f"{c:.2f}" if isinstance(c, float) else str(c) for c in row] for row in found]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
