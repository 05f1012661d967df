"""The server under load, on loopback: questions, replays, explanations; memory over many requests.

    python -m bench.server [--rows 10000000] [--analysts 64] [--questions 1280]
                           [--requests 100000] [--deadline 0]

Analysts are threads of other processes, each with its own key and connection.  Questions are all
different, so each is charged durably, computed on the prepared view, and stored.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import httpx

from bench.timing import table
from discreet import access, session
from discreet.curate import Curator

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


def prepared(home: Path, options: argparse.Namespace, asked: int) -> Setup:
    """A session on generated rows, prepared, with an analyst for each thread.

    The budget pays for all but the last few questions: the load must not overspend it.
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
        epsilon=float(asked * PRICE),
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


def load(setup: Setup, path: str, bodies: list[dict[str, Any]]) -> tuple[list[float], list[int]]:
    """Each body sent once, shared out among all analysts: the times and the statuses."""
    context = multiprocessing.get_context("spawn")
    parts = [bodies[n::2] for n in range(2)]
    keys = [setup.keys[n::2] for n in range(2)]
    with context.Pool(2) as processes:
        found = processes.starmap(
            _half, [(setup.port, path, part, own) for part, own in zip(parts, keys, strict=True)]
        )
    return [t for times, _ in found for t in times], [s for _, codes in found for s in codes]


def _half(
    port: int, path: str, bodies: list[dict[str, Any]], keys: list[str]
) -> tuple[list[float], list[int]]:
    waiting = iter(bodies)
    lock = threading.Lock()
    times: list[float] = []
    codes: list[int] = []

    def work(key: str) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        while True:
            with lock:
                body = next(waiting, None)
            if body is None:
                return
            before = time.perf_counter()
            line.request("POST", path, json.dumps(body), headers)
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


def questions(count: int, *, start: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "question": "SELECT grp, COUNT(*) AS n, SUM(val) AS s FROM visits "
            f"WHERE val < {100 + n % 900} AND grp <> 'x{n}' GROUP BY grp",
            "epsilon": str(PRICE),
            "wait_s": 60,
        }
        for n in range(start, start + count)
    ]


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
    spare = options.analysts  # the last questions must be refused: the budget ends before them
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        home = Path(folder) / "clinic"
        home.mkdir()
        setup = prepared(home, options, options.questions - spare)
        with serving(setup) as pid:
            path = "/v1/datasets/clinic"
            asked = questions(options.questions)
            rows = [measured("ask", lambda: load(setup, f"{path}/ask", asked))]
            again = [asked[n % 64] for n in range(4 * options.questions)]
            rows.append(measured("replay", lambda: load(setup, f"{path}/ask", again)))
            new = questions(options.questions, start=10**6)
            for body in new:
                del body["wait_s"]
            rows.append(measured("explain", lambda: load(setup, f"{path}/explain", new)))
            print(f"{options.analysts} analysts, {options.rows:,} rows, {options.workers} engines")
            print(table(["request", "a second", "p50 ms", "p99 ms", "answered"], rows), flush=True)
            _memory(setup, pid, path, options.requests)
        _account(setup, options.questions - spare)


def _memory(setup: Setup, pid: int, path: str, requests: int) -> None:
    """Memory of the server at every tenth of many replays."""
    body = {**questions(1)[0]}
    sizes = []
    for _ in range(10):
        load(setup, f"{path}/ask", [body] * (requests // 10))
        sizes.append(resident(pid))
    told = ", ".join(f"{size:.0f}" for size in sizes)
    print(f"\nMB held by the server over {requests:,} requests: {told}")
    print(f"growth over the last half: {sizes[-1] - sizes[4]:+.1f} MB", flush=True)


def _account(setup: Setup, most: int) -> None:
    """What was spent must be what was answered, and at most the budget."""
    with session.open(setup.home, opened=False) as curator:
        told = curator.transcript()
        answered = [entry for entry in told if entry.loss is not None]
        spent = curator.spent
        if spent.epsilon > curator.budget.epsilon or len(answered) > most:  # type: ignore[operator]
            raise RuntimeError("overspent")
        held = curator.ledger.verify()
        print(
            f"\n{len(answered):,} charges of {most:,} that the budget pays for; spent "
            f"{float(spent.epsilon):.3f} of {float(curator.budget.epsilon or 0):.3f}; "
            f"overspend: none; ledger: {held}"
        )


if __name__ == "__main__":
    main()
