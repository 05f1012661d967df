"""A whole ``ask`` on a prepared table with a durable ledger, and the share of each stage.

Every question is a new one, so nothing is replayed and nothing is remembered: each is
parsed, priced, charged, computed, noised, stored and shown.

    python -m bench.ask [--rows 10000000] [--questions 40]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engine import SCHEMA, generate
from bench.timing import table
from discreet.accounting.budget import Budget
from discreet.curate import curator as curate
from discreet.curate.curator import Curator
from discreet.ledger import Ledger
from discreet.question.schema import Schema

STAGES: tuple[tuple[str, object, str], ...] = (
    ("parse", curate, "statement"),
    ("price", curate, "price"),
    ("what it reaches", curate, "reach"),
    ("name it", curate, "replay_key"),
    ("noise", curate, "release"),
    ("write it down", curate, "released_to_bytes"),
    ("read it back", curate, "released_from_bytes"),
    ("which data", curate, "data_version"),
)


@contextmanager
def timed(clinic: Curator) -> Iterator[dict[str, float]]:
    """Seconds spent in each stage; the stages do not contain each other."""
    spent: dict[str, float] = defaultdict(float)
    places = [(name, owner, part) for name, owner, part in STAGES if hasattr(owner, part)]
    places += [
        ("check that it can be run", clinic.engine, "check"),
        ("charge", clinic.account, "charge"),
        ("run", clinic.engine, "run"),
        ("publish", clinic.account, "publish"),
    ]

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                spent[name] += time.perf_counter() - began

        return run

    before = [(owner, part, vars(owner).get(part)) for _, owner, part in places]
    for name, owner, part in places:
        setattr(owner, part, watched(name, getattr(owner, part)))
    try:
        yield spent
    finally:
        for owner, part, was in before:
            delattr(owner, part) if was is None else setattr(owner, part, was)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--questions", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        generate(home / "visits.duckdb", options.rows)
        with Ledger.open(home / "ledger.sqlite") as ledger:
            clinic = Curator(
                {"visits": str(home / "visits.duckdb")},
                schema=Schema.from_text(SCHEMA),
                budget=Budget(epsilon=1000),
                ledger=ledger,
            )
            clinic.prepare()
            measure(clinic, options.rows, options.questions)
            clinic.close()


def measure(clinic: Curator, rows: int, questions: int) -> None:
    def ask(number: int) -> float:
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE val > {number}"
        began = time.perf_counter()
        clinic.ask(sql, epsilon="0.1")
        return time.perf_counter() - began

    for number in range(3):
        ask(number)  # tables of noise, caches of the engine
    with timed(clinic) as spent:
        whole = [ask(100 + number) for number in range(questions)]
    total = sum(whole)
    spent["the rest"] = total - sum(spent.values())
    rows_ = [
        [name, f"{1000 * part / questions:.2f}", f"{100 * part / total:.0f} %"]
        for name, part in sorted(spent.items(), key=lambda item: -item[1])
    ]
    print(
        f"one COUNT on a prepared view of {rows:,} rows, durable ledger: median "
        f"{1000 * statistics.median(whole):.1f} ms of {questions} questions\n"
    )
    print(table(["stage", "ms", "share"], rows_))


if __name__ == "__main__":
    main()
