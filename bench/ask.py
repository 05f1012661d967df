"""One question through the curator, against what nobody can avoid.

A new question on 20,000 rows in memory against its own statement on plain DuckDB; the same
question again; and a process from nothing to its first answer against importing the
libraries it stands on.  Every question is a new one, so nothing is remembered: each is
parsed, priced, compiled, charged, computed, noised, stored and shown.

    python -m bench.ask [--questions 40] [--write]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from bench.timing import table
from discreet.curate.curator import Curator
from discreet.question.offer import Offer

ROWS, CITIES = 20_000, 8
SCHEMA = discreet.Schema.from_text(f"""
[tables.visits]
unit = "patient"
max_rows_per_unit = 10
[tables.visits.columns]
patient = "integer"
city = {{ type = "text", values = {[f"city {i}" for i in range(CITIES)]} }}
age = {{ type = "integer", bounds = [0, 110] }}
cost = {{ type = "decimal", bounds = [0, 800] }}
""")
QUESTIONS = {
    "COUNT": "SELECT COUNT(*) AS n FROM visits WHERE cost > {}",
    "8 groups": "SELECT city, COUNT(*) AS n FROM visits WHERE cost > {} GROUP BY city",
    "AVG": "SELECT AVG(cost) AS mean FROM visits WHERE cost > {}",
    "MEDIAN": "SELECT MEDIAN(cost) AS middle FROM visits WHERE cost > {}",
}
EPSILON = "0.1"
MOST_RATIO, MOST_REPLAY_MS, MOST_COLD = 3.0, 0.5, 1.6

LIBRARIES = "import duckdb, pyarrow, numpy, sqlglot"
COLD = """
import discreet
schema = discreet.Schema.from_text('''
[tables.t]
unit = "who"
max_rows_per_unit = 1
[tables.t.columns]
who = "integer"
x = {{ type = "integer", bounds = [0, 100] }}
''')
clinic = discreet.curator({{"t": {path!r}}}, schema=schema, budget=discreet.Budget(epsilon=1))
clinic.ask("SELECT COUNT(*) AS n FROM t", epsilon="0.5").value()
"""
SO_FAR = """
import os, time
print(time.process_time(), flush=True)
os._exit(0)
"""
"""What a process has used when it comes here; how long it takes to end is no part of it."""


def clinic() -> Curator:
    """Patients with five visits each on average, some with more than they may keep."""
    chance = np.random.default_rng(7)
    rows = pa.table(
        {
            "patient": chance.integers(0, ROWS // 5, ROWS),
            "city": [f"city {i}" for i in chance.integers(0, CITIES, ROWS)],
            "age": chance.integers(0, 110, ROWS),
            "cost": np.round(chance.random(ROWS) * 800, 2),
        }
    )
    return discreet.curator(
        {"visits": rows}, schema=SCHEMA, budget=discreet.Budget(epsilon=10**6), threads=2
    )


def ask_anew(curator: Curator, text: str, questions: int) -> list[str]:
    """The median of asking and of the statement alone, taking turns; and of asking again."""
    whole, alone, again = [], [], []
    database = curator.engine._current()
    for number in range(questions + 3):
        asked = text.format(number)
        whole.append(seconds(lambda asked=asked: curator.ask(asked, epsilon=EPSILON)))
        question, _ = curator._parse_question(asked)
        statement = curator.find_plan(question, Offer.of(epsilon=EPSILON)).compiled.text
        cursor = database._cursor()
        alone.append(seconds(lambda s=statement, c=cursor: c.execute(s).fetchnumpy()))
    for number in range(questions + 3):
        asked = text.format(number)
        again.append(seconds(lambda asked=asked: curator.ask(asked, epsilon=EPSILON)))
    # The first are for tables of noise and the engine's caches.
    ours, plain, replay = (1000 * statistics.median(part[3:]) for part in (whole, alone, again))
    return [f"{ours:.1f}", f"{plain:.1f}", f"{ours / plain:.2f}", f"{replay:.2f}"]


def seconds(call: object) -> float:
    """Of CPU, in all threads: others may be at work on the same machine."""
    began = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - began


def cpu_of(code: str) -> float:
    """The CPU, in seconds, of a fresh process until it has run ``code``, compiled before."""
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as an installed package is
    done = subprocess.run(
        [sys.executable, "-c", code + SO_FAR],
        check=True,
        stdout=subprocess.PIPE,
        env=compiled,
        text=True,
    )
    return float(done.stdout)


def start_cold(file: str, rounds: int = 15) -> tuple[float, float, float]:
    """Importing the libraries, and to a first answer: medians of CPU, and of the ratio of pairs."""
    cold = COLD.format(path=file)
    turns = [(cpu_of(LIBRARIES), cpu_of(cold)) for _ in range(rounds + 1)][1:]  # compiled by now
    libraries, whole = (statistics.median(turn[i] for turn in turns) for i in (0, 1))
    return libraries, whole, statistics.median(ours / base for base, ours in turns)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=40)
    options = parser.parse_args(arguments)
    with clinic() as curator:
        rows = [
            [name, *ask_anew(curator, text, options.questions)] for name, text in QUESTIONS.items()
        ]
    text = (
        f"A new question on {ROWS:,} rows in memory (wanted: at most {MOST_RATIO} × its own "
        f"statement on plain DuckDB), and\nthe same again (wanted: at most {MOST_REPLAY_MS} ms "
        "of CPU); medians, all in CPU of\nall threads:\n\n"
    ) + table(["question", "ask, ms", "statement, ms", "ratio", "again, ms"], rows)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "t.parquet")
        pq.write_table(pa.table({"who": [1, 2, 3], "x": [10, 20, 30]}), file)
        libraries, cold, ratio = start_cold(file)
    text += (
        f"\n\nA cold process to its first answer: {cold:.2f} s of CPU, {ratio:.2f} × "
        f"importing duckdb, pyarrow,\nnumpy and sqlglot ({libraries:.2f} s; wanted: at most "
        f"{MOST_COLD} ×)."
    )
    print(text)


if __name__ == "__main__":
    main()
