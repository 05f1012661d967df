"""A watch over many questions: how many a second, on a prepared table, and one commit for many.

    python -m bench.watching [--rows 1000000] [--questions 1000] [--together 1000]

For the figure of the documentation: ``--rows 10000000 --questions 100000 --together 10000``.  Every
question is a new one, COUNT(*) under a condition of its own on two columns, and all are far below
the threshold, so that the run goes through all of them for the price of one.  With ``--grouped``
the same numbers are asked a hundred at a time, by GROUP BY of one of the columns: each is still
compared by itself, and reading, pricing and binding are shared.  CPU is what this process used,
its threads among it: where others use the machine, too, it says more than the clock.

``--law 400``: so many runs of one question about a hundred groups, whose numbers are not far below
the threshold.  Which group is the first to be told to be above is compared with what the mechanism
by itself, given the true numbers, tells in fifty times as many runs (two samples, Kolmogorov and
Smirnov, one false alarm in a million); a mechanism at twice the price must be told apart.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from bench.timing import table
from discreet.curate import session
from discreet.curate.curator import Curator
from discreet.mechanisms import AboveThreshold

TOML = """
[budget]
epsilon = 1000
[tables.visits]
unit = "patient"
max_rows_per_unit = 4
source = "visits.parquet"
[tables.visits.columns]
patient = "integer"
age = { type = "integer", bounds = [0, 99], nullable = false }
cost = { type = "integer", bounds = [0, 100000] }
"""


def write(home: Path, rows: int) -> None:
    """Rows of people with an age and a cost, and a session about them."""
    rng = np.random.default_rng(3)
    columns = {
        "patient": np.arange(rows) // 4,
        "age": rng.integers(0, 100, rows),
        "cost": rng.integers(0, 100_000, rows),
    }
    pq.write_table(pa.table(columns), home / "visits.parquet")
    session.init(home, TOML)


def questions(count: int) -> Iterator[str]:
    """Each of its own."""
    for number in range(count):
        age, cost = number % 100, 1 + number // 100
        yield f"SELECT COUNT(*) FROM visits WHERE age = {age} AND cost < {cost}"


def grouped(count: int) -> Iterator[str]:
    """The same numbers, a hundred in each question."""
    for number in range(-(-count // 100)):
        yield f"SELECT age, COUNT(*) FROM visits WHERE cost < {1 + number} GROUP BY age"


CHEAP = "SELECT age, COUNT(*) FROM visits WHERE cost < 2000 GROUP BY age"
PRICE = "1/5"
ALPHA = 1e-6


def check_law(curator: Curator, home: Path, runs: int) -> str:
    """Whether verdicts of the curator have the law of the mechanism by itself: a line, or raise."""
    rows = pq.read_table(home / "visits.parquet", columns=["age", "cost"])
    cheap = rows["cost"].to_numpy() < 2000
    numbers = np.bincount(rows["age"].to_numpy()[cheap], minlength=100)
    threshold = int(numbers.mean()) + 250
    told = []
    for number in range(runs):
        with curator.watch(threshold=threshold, epsilon=PRICE, name=f"law {number}") as run:
            verdicts = [verdict.above for verdict in run.ask(CHEAP)]
        told.append(verdicts.index(True) if True in verdicts else len(numbers))
    gaps = []
    for price in (PRICE, "2/5"):
        loose = AboveThreshold(threshold=threshold, sensitivity=4, epsilon=price)
        alone = [tell_first(loose, numbers) for _ in range(50 * runs)]
        gaps.append(find_gap(np.array(told), np.array(alone)))
    most = math.sqrt(math.log(2 / ALPHA) / 2 * (1 / runs + 1 / (50 * runs)))
    if gaps[0] > most or gaps[1] <= most:
        raise AssertionError((gaps, most))
    names = ["rows", "runs", "greatest difference", "allowed", "at twice the price"]
    shown = [f"{len(rows):,}", f"{runs:,}", *(f"{x:.3f}" for x in (gaps[0], most, gaps[1]))]
    return table(names, [shown])


def tell_first(mechanism: AboveThreshold, numbers: np.ndarray) -> int:
    """Which of the numbers a run of the mechanism by itself tells to be above; none: how many."""
    above = mechanism.start().ask_many(numbers).above
    return int(above[0]) if len(above) else len(numbers)


def find_gap(one: np.ndarray, other: np.ndarray) -> float:
    """The greatest difference of two empirical distributions."""
    places = np.unique(np.concatenate([one, other]))
    sides = [
        np.searchsorted(np.sort(some), places, side="right") / len(some) for some in (one, other)
    ]
    return float(np.abs(sides[0] - sides[1]).max())


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--together", type=int, default=1000, help="so many are recorded at once")
    parser.add_argument("--grouped", action="store_true", help="a hundred numbers a question")
    parser.add_argument(
        "--law", type=int, default=0, metavar="RUNS", help="compare the law instead"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write(home, options.rows)
        with discreet.open(home) as curator:
            start = time.perf_counter()
            curator.prepare()
            prepared_s = time.perf_counter() - start
            if options.law:
                print(check_law(curator, home, options.law))
                return
            run = curator.watch(threshold=10 * options.rows, epsilon=1)
            asked = list((grouped if options.grouped else questions)(options.questions))
            start, began = time.perf_counter(), time.process_time()
            for first in range(0, len(asked), options.together):
                run.ask_many(asked[first : first + options.together])
            took_s, used_s = time.perf_counter() - start, time.process_time() - began
            told = len(run.transcript)
            if run.asked != len(asked) or any(run.transcript):
                raise AssertionError(run)
    shown = [
        f"{options.rows:,}",
        f"{told:,}",
        f"{prepared_s:.1f} s",
        f"{took_s:.1f} s",
        f"{told / took_s:,.0f}",
        f"{told / used_s:,.0f}",
    ]
    names = ["rows", "numbers", "preparing", "asking", "numbers a second", "a second of CPU"]
    print(table(names, [shown]))


if __name__ == "__main__":
    main()
