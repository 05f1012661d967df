"""The server under load, on loopback: questions, replays, explanations; memory over many requests.

    python -m bench.server [--rows 10000000] [--analysts 64] [--questions 1280]
                           [--requests 100000] [--deadline 0]

Analysts are threads of other processes, each with its own key and connection.  New questions are
all different, so each is charged durably, computed on the prepared view, and stored.  Memory is
looked at over a mix of everything an analyst's page sends, new questions included.  The budget
ends before the last questions do: all analysts ask at once for what is left of it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import httpx

from bench.timing import table
from discreet.curate import session
from discreet.curate.curator import Curator
from discreet.ledger import keys as access

GROUPS, MOST_ROWS = 20, 10
PRICE = Fraction(1, 1000)
SETTINGS = """
[budget]
epsilon = {epsilon}
[server]
deadline_s = {deadline}
workers = {workers}
rate_per_minute = 1e6
burst = 1000000
concurrent = 1000
queue = 100000
[tables.visits]
source = "visits.parquet"
unit = "user_id"
max_rows_per_unit = {most}
[tables.visits.columns]
user_id = "integer"
grp = {{ type = "text", nullable = false, values = {groups} }}
val = {{ type = "integer", bounds = [0, 1000], nullable = false }}
"""


@dataclass(frozen=True, slots=True)
class Setup:
    home: Path
    keys: list[str]
    port: int


def prepared(home: Path, options: argparse.Namespace, paid: int) -> Setup:
    """A session on generated rows, prepared, with an analyst for each thread.

    The budget pays for so many questions, and the load must not overspend it.
    """
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(
            f"""COPY (SELECT i // {MOST_ROWS} AS user_id,
            'g' || LPAD((HASH(i, 7) % {GROUPS})::VARCHAR, 2, '0') AS grp,
            (HASH(i, 3) % 1000)::BIGINT AS val FROM range({options.rows}) t(i))
            TO '{home / "visits.parquet"}'"""
        )
    groups = [f"g{n:02d}" for n in range(GROUPS)]
    text = SETTINGS.format(
        epsilon=float(paid * PRICE),
        deadline=options.deadline,
        workers=options.workers,
        most=MOST_ROWS,
        groups=groups,
    )
    made = session.init(home, text)
    with made.curator() as curator:
        curator.prepare()
        keys = [_key(curator, n) for n in range(options.analysts)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Setup(home, keys, free.getsockname()[1])


def _key(curator: Curator, number: int) -> str:
    curator.account.add_analyst(f"analyst{number}")
    return access.new_key(curator.account, f"analyst{number}")


@contextmanager
def serving(setup: Setup) -> Iterator[int]:
    """The server as a process of its own; yields its number."""
    with (setup.home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "discreet", "serve", str(setup.home), "--port", str(setup.port)],
            stdout=log,
            stderr=log,
        )
        try:
            while not _ready(setup.port):
                if process.poll() is not None:
                    raise RuntimeError("the server ended")
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            process.wait()


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


# --- load ----------------------------------------------------------------------------------------

PATH = "/v1/datasets/clinic"
Call = tuple[str, dict[str, Any] | None]
"""An address, and what is posted there; nothing is posted to be read."""


def load(setup: Setup, calls: list[Call]) -> tuple[list[float], list[int]]:
    """Each call made once, shared out among all analysts: the times and the statuses."""
    context = multiprocessing.get_context("spawn")
    parts = [calls[n::2] for n in range(2)]
    keys = [setup.keys[n::2] for n in range(2)]
    with context.Pool(2) as processes:
        found = processes.starmap(
            send_half, [(setup.port, part, own) for part, own in zip(parts, keys, strict=True)]
        )
    return [t for times, _ in found for t in times], [s for _, codes in found for s in codes]


def send_half(port: int, calls: list[Call], keys: list[str]) -> tuple[list[float], list[int]]:
    """What one process of clients sends: how long each request took, and its status."""
    waiting = iter(calls)
    lock = threading.Lock()
    times: list[float] = []
    codes: list[int] = []

    def work(key: str) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        while True:
            with lock:
                path, body = next(waiting, (None, None))
            if path is None:
                return
            sent = None if body is None else json.dumps(body)
            before = time.perf_counter()
            line.request("GET" if sent is None else "POST", PATH + path, sent, headers)
            answer = line.getresponse()
            answer.read()
            times.append(time.perf_counter() - before)
            codes.append(answer.status)

    threads = [threading.Thread(target=work, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, codes


# --- what is asked -------------------------------------------------------------------------------

ASK, EXPLAIN = "/ask", "/explain"
MIX = 20
"""Of so many requests of the mix, one is a new question."""
REPLAYED = 64
"""Questions that are asked again and again."""


def question(number: int) -> dict[str, Any]:
    """A question that is like no other (of those that are asked here)."""
    text = (
        "SELECT grp, COUNT(*) AS n, SUM(val) AS s FROM visits "
        f"WHERE val < {100 + number % 900} AND val >= {number // 900 % 90} GROUP BY grp"
    )
    return {"question": text, "epsilon": str(PRICE)}


def asks(numbers: Iterable[int]) -> list[Call]:
    """Questions, waited for."""
    return [(ASK, {**question(number), "wait_s": 60}) for number in numbers]


def explains(numbers: Iterable[int]) -> list[Call]:
    """What questions would cost."""
    return [(EXPLAIN, question(number)) for number in numbers]


def mixed(count: int, *, first: int) -> list[Call]:
    """What analysts do all day: look again, try out, look at the account, and now and then ask."""
    found: list[Call] = []
    for start in range(first, first + count // MIX):
        found += asks([start, *((start + n) % REPLAYED for n in range(13))])
        found += explains([10**6 + start, *((start + n) % REPLAYED for n in range(2))])
        found += [("/balance", None), ("/balance", None), ("/transcript?limit=20", None)]
    return found


def measured(name: str, run: Callable[[], tuple[list[float], list[int]]]) -> list[str]:
    before = time.perf_counter()
    times, codes = run()
    seconds = time.perf_counter() - before
    ordered = sorted(times)
    good = sum(code == 200 for code in codes)
    others = {code: codes.count(code) for code in sorted(set(codes)) if code != 200}
    return [
        name,
        f"{len(times) / seconds:,.0f}",
        f"{1000 * ordered[len(ordered) // 2]:,.0f}",
        f"{1000 * ordered[int(len(ordered) * 0.99)]:,.0f}",
        f"{good:,}" + (f" (others: {others})" if others else ""),
    ]


def resident(pid: int) -> float:
    """Megabytes of memory that a process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--analysts", type=int, default=64)
    parser.add_argument("--questions", type=int, default=1280)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--deadline", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    options = parser.parse_args()
    if options.questions < REPLAYED:
        parser.error(f"at least {REPLAYED} questions are needed: they are replayed")
    new = options.questions + 10 * (options.requests // 10 // MIX)
    paid = new + options.analysts  # the last questions are twice as many as the budget pays for
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        home = Path(folder) / "clinic"
        home.mkdir()
        setup = prepared(home, options, paid)
        with serving(setup) as pid:
            print(
                f"{options.analysts} analysts, {options.rows:,} rows; engines: {options.workers}.\n"
            )
            _rates(setup, options.questions)
            _memory(setup, pid, options.requests // 10, first=options.questions)
            last = asks(range(new, new + 2 * options.analysts))
            rows = [measured("the last questions", lambda: load(setup, last))]
            print(table(HEAD, rows), flush=True)
        _account(setup, paid)


HEAD = ["request", "a second", "p50 ms", "p99 ms", "answered"]


def _rates(setup: Setup, count: int) -> None:
    """Each kind of request by itself."""
    again = [n % REPLAYED for n in range(4 * count)]
    new = range(2 * 10**6, 2 * 10**6 + count)
    kinds = {
        "ask": asks(range(count)),
        "replay": asks(again),
        "explain": explains(new),
        "explain again": explains(again[:count]),
    }
    rows = [measured(name, lambda made=made: load(setup, made)) for name, made in kinds.items()]
    print(table(HEAD, rows), end="\n\n", flush=True)


def _memory(setup: Setup, pid: int, tenth: int, *, first: int) -> None:
    """Memory of the server at every tenth of a long mix; everything in it is answered."""
    sizes: list[float] = []
    lines: list[list[str]] = []
    before = time.perf_counter()
    for part in range(10):
        _, codes = load(setup, mixed(tenth, first=first + part * (tenth // MIX)))
        if set(codes) != {200}:
            raise RuntimeError(f"not all were answered: {set(codes)}")
        sizes.append(resident(pid))
        rate = (part + 1) * len(codes) / (time.perf_counter() - before)
        lines.append([f"{(part + 1) * len(codes):,}", f"{rate:,.0f}", f"{sizes[-1]:.0f}"])
    print(table(["mixed requests", "a second", "the server holds, MB"], lines))
    print(f"\nGrowth over the last half: {sizes[-1] - sizes[4]:+.1f} MB.\n", flush=True)


def _account(setup: Setup, most: int) -> None:
    """Exactly as much was charged as the budget pays for, and each answer once."""
    with session.open(setup.home, opened=False) as curator:
        told = curator.transcript()
        answered = [entry for entry in told if entry.loss is not None]
        spent = curator.spent
        if spent.epsilon != curator.budget.epsilon or len(answered) != most:
            raise RuntimeError(f"{len(answered)} charges of {most}: {spent}")
        held = curator.ledger.verify()
        print(
            f"\n{len(answered):,} charges of {most:,} that the budget pays for; spent "
            f"{float(spent.epsilon):.3f} of {float(curator.budget.epsilon or 0):.3f}; "
            f"overspend: none; ledger: {held}"
        )


if __name__ == "__main__":
    main()
