"""What a charge costs: against an empty durable commit, with many blocks and a long past.

On the same disk, in the same run, taking turns: a commit of one small row (SQLite in WAL mode with
``synchronous = FULL``, and what PostgreSQL does by default) and a charge of an account with 10,000
blocks and 10,000, 100,000 and (``--most 1000000``) 1,000,000 past charges. Then charge and publish
per second with durability on, and how long opening takes.

    python -m bench.ledger [--most 100000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np

from bench.timing import table
from discreet.accounting.budget import Budget
from discreet.accounting.loss import Loss
from discreet.ledger import Account, Ledger, Request
from discreet.ledger.journal import Journal
from discreet.question.blocks import Area
from discreet.question.schema import Schema

BLOCKS = 10_000
BUDGET = Budget(epsilon=1000, delta="1e-6")
LITTLE = Loss.pure("1/100000")
ROUNDS = 300
SCHEMA = f"""
[tables.visits]
unit = "patient"
max_rows_per_unit = 5
blocks = ["day"]
[tables.visits.columns]
patient = "integer"
day = {{ type = "integer", bounds = [1, {BLOCKS}], nullable = false }}
"""

number = itertools.count()  # every question is a new one


def request(area: Area) -> Request:
    text = "SELECT COUNT(*) AS visits FROM visits WHERE day BETWEEN 100 AND 5100"
    return Request(
        "curator", text, {"epsilon": "0.00001"}, f"{next(number):064x}", "v", LITTLE, area
    )


def areas(account: Account) -> dict[str, Area]:
    """All blocks; half of them in one range; every second one."""
    size = account.space.size
    return {
        "all blocks": Area.everything(account.space),
        "a range": Area(account.space, ((100, 100 + size // 2),)),
        "every second": Area.of(account.space, np.arange(size) % 2 == 1),
    }


def grow(account: Account, journal: Journal, until: int) -> None:
    """Append past charges, many to a commit: only their number matters here."""
    from discreet.ledger import admission

    area = Area(account.space, ((100, 101),))
    while (last := journal.books.last) is not None and last.sequence < until:
        with journal.writing() as writer:
            writer.append_snapshot_if_due()
            for _ in range(min(5000, until - last.sequence)):
                asked = request(area)
                writer.append(
                    "charge",
                    admission.charge_content(asked, account.standing()),
                    dataset=account.dataset,
                    analyst=asked.analyst,
                    subject=account._subject(asked),
                )


def times(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The time of each call, in milliseconds; the contestants take turns, each after each other.

    What comes after a large write waits for the disk, so the order changes from round to round.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    orders = itertools.cycle(itertools.permutations(calls))
    for order in itertools.islice(orders, rounds):
        for name in order:
            start = time.perf_counter()
            calls[name]()
            found[name].append(1000 * (time.perf_counter() - start))
    return found


def empty_commit(folder: Path) -> Callable[[], object]:
    """One small row, durably: the least that any account must do."""
    connection = sqlite3.connect(folder / "empty.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE one (x)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO one VALUES (1)")
        connection.execute("COMMIT")

    return commit


def empty_commit_postgres(url: str) -> Callable[[], object]:
    import psycopg

    connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    connection.execute("CREATE TABLE one (x integer)")
    return lambda: connection.execute("INSERT INTO one VALUES (1)")


def charging(address: str | Path, empty: Callable[[], object], sizes: list[int]) -> list[list[str]]:
    rows = []
    with closing(Ledger.open(address)) as ledger:
        account = ledger.account("clinic", schema=Schema.from_text(SCHEMA), budget=BUDGET)
        for past in sizes:
            grow(account, ledger._journal, past)
            calls: dict[str, Callable[[], object]] = {"empty commit": empty}
            for name, area in areas(account).items():
                calls[name] = lambda area=area: account.charge(request(area))  # type: ignore[misc]
            found = times(calls, ROUNDS)
            least = statistics.median(found["empty commit"])
            for name in calls:
                middle = statistics.median(found[name])
                spread = sorted(found[name])
                rows.append(
                    [
                        f"{past:,}",
                        name,
                        f"{middle:.2f}",
                        f"{middle - least:+.2f}",
                        f"{spread[len(spread) * 95 // 100]:.2f}",
                    ]
                )
    return rows


def publishing(address: str | Path, threads: int, seconds: float = 5.0) -> tuple[float, float]:
    """Charge, then publish, each durable: how many in a second, and in one of the processor."""
    answer = b"x" * 4000
    with closing(Ledger.open(address)) as ledger, ThreadPoolExecutor(threads) as pool:
        account = ledger.account("clinic", schema=Schema.from_text(SCHEMA), budget=BUDGET)
        area = areas(account)["a range"]
        start, used = time.perf_counter(), time.process_time()

        def work(_: int) -> int:
            done = 0
            while time.perf_counter() - start < seconds:
                account.publish(account.charge(request(area)), answer)
                done += 1
            return done

        done = sum(pool.map(work, range(threads)))
        return done / (time.perf_counter() - start), done / (time.process_time() - used)


def opening(address: str | Path) -> tuple[float, float, int]:
    """Seconds to open, to verify everything, and of how many records."""
    start = time.perf_counter()
    with closing(Ledger.open(address)) as ledger:
        took = time.perf_counter() - start
        start = time.perf_counter()
        found = ledger.verify()
        if not found.ok:
            raise SystemExit(str(found))
        return took, time.perf_counter() - start, found.records


def measure(name: str, address: str | Path, empty: Callable[[], object], most: int) -> None:
    sizes = [size for size in (10_000, 100_000, 1_000_000) if size <= most]
    print(f"{name}, {BLOCKS:,} blocks; milliseconds, {ROUNDS} rounds, taking turns\n")
    header = ["past charges", "a charge of", "median", "more than empty", "95 % below"]
    print(table(header, charging(address, empty, sizes)), flush=True)
    for threads in (1, 4, 64):
        rate, of_processor = publishing(address, threads)
        print(
            f"\ncharge + publish, {threads} at once: {rate:,.0f} per second "
            f"({of_processor:,.0f} per second of the processor)",
            flush=True,
        )
    took, verifying, records = opening(address)
    print(f"opening {records:,} records: {took:.2f} s; verifying all: {verifying:.0f} s\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="past charges, at most")
    parser.add_argument("--folder", type=Path, help="where the ledgers are, for this run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as home:
        folder = Path(home)
        measure("SQLite", folder / "ledger.sqlite", empty_commit(folder), options.most)
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    import services

    most = min(options.most, 100_000)
    with services.private_postgres(Path(tempfile.gettempdir())) as server:
        measure("PostgreSQL", server.url, empty_commit_postgres(server.url), most)


if __name__ == "__main__":
    main()
