"""COUNT, SUM and AVG of 1,000 groups by Spark: prepared, against the same without privacy.

CPU of the whole session (the driver's Java and this process), the raw aggregates on the raw Parquet
in the same session; the two take turns, and the best of each counts, once Java has compiled what it
will; the medians of the second half of the turns stand beside it.  Preparing is timed, too, its
exchanges read from Spark's own plan.

    python -m bench.spark [--rows 100000 1000000 10000000] [--tumult FOLDER]

With ``--tumult``, Tumult Analytics asks the same of the smallest of the files: an environment of
its own is made in the folder, unless one is there, because it wants other versions of everything.
It is stopped after ``--within`` seconds; what it had spent by then is a lower bound.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
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
TURNS = 80
"""Java compiles for as many before it is done: until then that is half of what either takes."""
MOST_PREPARED, LARGE, LEAST_TUMULT = 1.0, 10**6, 20
"""Of the CPU of the same aggregates without privacy, from how many rows on; and how many times as
much Tumult takes."""
LARGEST = 10**7
"""From so many rows on, a quarter of the turns: Java has compiled all of it by then."""
_CPU_OF_PROCESS = 2
"""Linux's clock of all threads of a process, those that have ended too, in nanoseconds."""
WITHIN, AGGREGATES = 600, ("COUNT", "SUM", "AVG")
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


def list_processes() -> list[int]:
    """This process, Spark's Java, and all that both have started."""
    return [os.getpid(), *_children(os.getpid())]


def spent(processes: Iterable[int]) -> float:
    """Seconds of CPU of processes."""
    seconds = 0.0
    for pid in processes:
        with suppress(OSError):
            seconds += time.clock_gettime((~pid << 3) | _CPU_OF_PROCESS)
    return seconds


def cpu(call: Callable[[], object]) -> float:
    """Seconds of CPU that a call takes, whichever process takes them.

    Java has a hundred threads: who has started whom is looked up before and after, and not timed.
    """
    known = list_processes()
    before = spent(known)
    call()
    taken = spent(known) - before
    return taken + spent(set(list_processes()) - set(known))


@dataclass(frozen=True)
class Measured:
    """Seconds of CPU at one size, and how often rows were moved to prepare."""

    rows: int
    exchanges: int
    preparing: float
    clock: float
    prepared: float
    plain: float
    medians: float  # of the second half of the turns: ours by the other

    def show(self) -> list[str]:
        """A row of the table."""
        preparing = f"{self.preparing:.1f} ({self.clock:.0f})"
        numbers = (self.prepared, self.plain, self.prepared / self.plain, self.medians)
        return [f"{self.rows:,}", str(self.exchanges), preparing, *(f"{n:.2f}" for n in numbers)]


def measure(session: Any, rows: int, folder: Path) -> Measured:
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
        for _ in range(TURNS if rows < LARGEST else TURNS // 4):
            own.append(cpu(lambda: engine.run(plan)))
            plain.append(cpu(lambda: session.sql(PLAIN).collect()))
    late = [median(turns[len(turns) // 2 :]) for turns in (own, plain)]
    return Measured(rows, moved, preparing, clock, min(own), min(plain), late[0] / late[1])


def say_growth(found: list[Measured]) -> str:
    """How many times as much CPU each size takes as the one before it."""
    said = [
        f"{larger.rows / smaller.rows:g} times {smaller.rows:,} rows take "
        f"{larger.prepared / smaller.prepared:.1f} times the CPU prepared, "
        f"{larger.preparing / smaller.preparing:.1f} times to prepare"
        for smaller, larger in pairwise(found)
    ]
    return "; ".join(said) + "." if said else ""


# --- beside it -----------------------------------------------------------------------------------


def make_environment(folder: Path) -> str:
    """The Python of an environment that has Tumult Analytics."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "tmlt.analytics"]
        subprocess.run(install, check=True)
    return str(python)


def ask_tumult(python: str, path: Path, within: float) -> tuple[float, int]:
    """Seconds of CPU that Tumult takes once its session is open, and how many of three it answered.

    Whoever has not answered all of them within so many seconds is stopped.
    """
    script = Path(__file__).with_name("tumult.py")
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONPATH": str(script.parents[1])}
    started = subprocess.Popen(
        [python, str(script), str(path)],
        env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = started.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        printed, _ = started.communicate()
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("[")]
    if not told:
        raise SystemExit("Tumult did not open its session in time")
    spent_by_it, answered = told[-1]
    return float(spent_by_it), int(answered)


def say_tumult(python: str, found: Measured, folder: Path, within: float) -> str:
    """Tumult beside one size, in words."""
    theirs, answered = ask_tumult(python, folder / f"{found.rows}.parquet", within)
    times = theirs / found.prepared
    ended = "" if answered == len(AGGREGATES) else f", stopped after {within:g} s of the clock"
    held = "held" if times >= LEAST_TUMULT else "NOT held"
    return (
        f"Tumult Analytics on the {found.rows:,} rows: {'' if not ended else 'more than '}"
        f"{theirs:.0f} s of CPU for {answered} of {len(AGGREGATES)} aggregates{ended}; "
        f"{times:.0f} times as much (wanted: at least {LEAST_TUMULT}, {held})."
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    options.add_argument("--tumult", type=Path, default=os.environ.get("DISCREET_BENCH_TUMULT"))
    options.add_argument("--within", type=float, default=WITHIN)
    chosen = options.parse_args()
    peer = None if chosen.tumult is None else make_environment(Path(chosen.tumult))
    session = open_session("local[2]", settings=SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(session, rows, Path(folder)) for rows in sorted(chosen.rows)]
        beside = "" if peer is None else say_tumult(peer, found[0], Path(folder), chosen.within)
    heads = ["rows", "exchanges", "preparing (clock)", "prepared", "plain", "of plain", "medians"]
    held = all(one.prepared <= MOST_PREPARED * one.plain for one in found if one.rows >= LARGE)
    kept = "held" if held else "NOT held"
    print(
        f"Seconds of CPU, best of {TURNS} turns, and of {TURNS // 4} from {LARGEST:,} rows on "
        f"(wanted: preparing with one exchange;\nprepared at most {MOST_PREPARED:g} × plain from "
        f"{LARGE:,} rows on, {kept}):\n"
    )
    print(table(heads, [one.show() for one in found]))
    print("\n" + "\n\n".join(filter(None, (say_growth(found), beside))))


if __name__ == "__main__":
    main()
