"""COUNT, SUM and AVG of 1,000 groups by Spark: prepared, against the same without privacy.

CPU of the whole session (the driver's Java and this process), the raw aggregates on the raw Parquet
in the same session; the two take turns, and the best of each counts, once Java has compiled what it
will.  Preparing is timed beside it, its exchanges read from Spark's own plan.

    python -m bench.spark [--rows 100000 1000000 10000000] [--tumult FOLDER]

With ``--tumult``, Tumult Analytics asks the same of the same files: an environment of its own is
made in the folder, unless one is there, because it wants other versions of everything.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
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

SIZES = (10**5, 10**6, 10**7)
TURNS = 12
MOST_PREPARED, LEAST_TUMULT = 1.0, 20
"""Of the CPU of the same aggregates without privacy; and how many times as much Tumult takes."""
QUESTION = "SELECT num, COUNT(*) AS n, SUM(val) AS s, AVG(val) AS a FROM visits GROUP BY num"
PLAIN = "SELECT num, COUNT(*) AS n, SUM(val) AS s, AVG(val) AS a FROM raw GROUP BY num"
SETTINGS = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "2g"}


def generate(path: Path, rows: int) -> None:
    """Users of ten rows on average, in random order."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
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
    """Seconds of CPU of this process, of Spark's Java, and of all that both have started."""
    ticks = 0
    for pid in (os.getpid(), *_children(os.getpid())):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # its own, and of those that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu(call: Callable[[], object]) -> float:
    """Seconds of CPU that a call takes."""
    before = spent()
    call()
    return spent() - before


def measure(session: Any, rows: int, folder: Path, peer: str | None) -> list[str]:
    path = folder / f"{rows}.parquet"
    generate(path, rows)
    session.read.parquet(str(path)).createOrReplaceTempView("raw")
    schema = Schema.from_text(SCHEMA)
    with SparkEngine({"visits": path}, schema, spark=session, store=folder / str(rows)) as engine:
        declared, source = engine.schema.tables["visits"], engine._public.find_source("visits")
        moved = Preparing.of(engine._open(), declared, source).explain().count("Exchange")
        began = time.perf_counter()
        preparing = cpu(engine.prepare)
        clock = time.perf_counter() - began
        question = parse_statement(QUESTION, engine.catalogue).question
        plan = engine.compile(price(question, Offer(epsilon=1), engine.catalogue).plan)
        own, plain = [], []
        for _ in range(TURNS):
            own.append(cpu(lambda: engine.run(plan)))
            plain.append(cpu(lambda: session.sql(PLAIN).collect()))
    answered, raw = min(own), min(plain)
    found = [f"{rows:,}", str(moved), f"{preparing:.1f} ({clock:.0f})", f"{answered:.2f}"]
    found += [f"{raw:.2f}", f"{answered / raw:.2f}"]
    if peer is not None:
        theirs = ask_tumult(peer, path)
        found += [f"{theirs:.0f}", f"{theirs / answered:.0f}"]
    return found


# --- beside it -----------------------------------------------------------------------------------


def make_environment(folder: Path) -> str:
    """The Python of an environment that has Tumult Analytics."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "tmlt.analytics"]
        subprocess.run(install, check=True)
    return str(python)


def ask_tumult(python: str, path: Path) -> float:
    """Seconds of CPU that Tumult takes for the same question, once its session is open."""
    script = Path(__file__).with_name("tumult.py")
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONPATH": str(script.parents[1])}
    found = subprocess.run(
        [python, str(script), str(path)],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    took: float = json.loads(found.stdout.splitlines()[-1])
    return took


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    options.add_argument("--tumult", type=Path, default=os.environ.get("DISCREET_BENCH_TUMULT"))
    chosen = options.parse_args()
    peer = None if chosen.tumult is None else make_environment(Path(chosen.tumult))
    session = open_session("local[2]", settings=SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(session, rows, Path(folder), peer) for rows in chosen.rows]
    heads = ["rows", "exchanges", "preparing (clock)", "prepared", "plain", "of plain"]
    heads += [] if peer is None else ["Tumult", "of prepared"]
    beside = f"; Tumult at least {LEAST_TUMULT} ×" if peer else ""
    print(
        f"Seconds of CPU, best of {TURNS} turns (wanted: prepared at most {MOST_PREPARED} × plain, "
        f"preparing with one exchange{beside}):\n"
    )
    print(table(heads, found))


if __name__ == "__main__":
    main()
