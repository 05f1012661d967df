"""The server beside the least that a server can be: replays, explanations, new questions.

    python -m bench.yardsticks [--rows 1000000] [--analysts 64] [--requests 2000] [--questions 200]

In one run on loopback, with clients on the same processors: a bare FastAPI route that returns the
same JSON, replays and explanations of texts that were seen; then new counts, beside the rate at
which plain DuckDB, in one process, runs the very statements that the engine ran for them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from bench.server import (
    HEAD,
    PRICE,
    REPLAYED,
    Call,
    Setup,
    asks,
    explains,
    load,
    prepared,
    send_half,
    serving,
)
from bench.timing import table
from discreet.curate import session

AGAIN = ("a bare route", "replay", "explain again")
"""What the bare route is the yardstick of; that of new counts is DuckDB by itself."""

BARE = """
import sys, uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response
body = open(sys.argv[2], "rb").read()
app = FastAPI()
@app.post("/v1/datasets/clinic/ask")
async def ask(request: Request) -> Response:
    await request.json()
    return Response(body, media_type="application/json")
uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""


@contextmanager
def bare(home: Path, body: bytes) -> Iterator[int]:
    """A route that reads the request and returns the same bytes each time; yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (home / "bare.json").write_bytes(body)
    command = [sys.executable, "-c", BARE, str(port), str(home / "bare.json")]
    with subprocess.Popen(command) as process:
        try:
            while True:
                try:
                    httpx.get(f"http://127.0.0.1:{port}/", timeout=5)
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def one(setup: Setup, path: str, body: dict[str, Any]) -> bytes:
    """What one analyst is answered."""
    url = f"http://127.0.0.1:{setup.port}/v1/datasets/clinic{path}"
    headers = {"Authorization": f"Bearer {setup.keys[0]}"}
    found = httpx.post(url, json=body, headers=headers, timeout=300)
    if found.status_code != 200:
        raise RuntimeError(found.text)
    return found.content


def measured(name: str, setup: Setup, calls: list[Call]) -> list[str]:
    """How many a second, from the first request to the last answer.

    Each analyst sends the next request when the last is answered.  That processes of clients take
    long to begin is not counted.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as processes:
        found = processes.starmap(
            half, [(setup.port, calls[n::2], setup.keys[n::2]) for n in range(2)]
        )
    starts, ends, times, codes = zip(*found, strict=True)
    ordered = sorted(one for part in times for one in part)
    return [
        name,
        f"{len(ordered) / (max(ends) - min(starts)):,.1f}",
        f"{1000 * ordered[len(ordered) // 2]:,.0f}",
        f"{1000 * ordered[int(len(ordered) * 0.99)]:,.0f}",
        f"{sum(code == 200 for part in codes for code in part):,}",
    ]


def half(
    port: int, calls: list[Call], keys: list[str]
) -> tuple[float, float, list[float], list[int]]:
    """When a process of clients began and ended, by the clock of the machine, and what it saw."""
    begun = time.monotonic()
    times, codes = send_half(port, calls, keys)
    return begun, time.monotonic(), times, codes


def compare(row: list[str], yardstick: list[str]) -> list[str]:
    """A row with how many times its yardstick it is."""
    rate, unit = (float(one[1].replace(",", "")) for one in (row, yardstick))
    return [*row[:2], f"{rate / unit:.2f}", *row[2:]]


def count_question(number: int) -> dict[str, Any]:
    """A count that is like no other of those that are asked here."""
    low, high = number // 900 % 90, 100 + number % 900
    return {
        "question": f"SELECT COUNT(*) AS n FROM visits WHERE val < {high} AND val >= {low}",
        "epsilon": str(PRICE),
    }


def plain(home: Path, questions: list[dict[str, Any]]) -> float:
    """Statements a second of DuckDB by itself: those that the engine runs, one after the other."""
    with session.open(home) as curator:
        plans = [
            curator.price(one["question"], epsilon=one["epsilon"]).explanation.priced.plan
            for one in questions
        ]
        texts = [curator.engine.compile(plan).text for plan in plans]
        database = curator.engine._current()
        database.run(texts[0])  # and opens what it reads
        before = time.perf_counter()
        for text in texts:
            database.run(text)
        return len(texts) / (time.perf_counter() - before)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--analysts", type=int, default=64)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=0.0)
    options = parser.parse_args()
    again = [n % REPLAYED for n in range(options.requests)]
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as folder:
        home = Path(folder) / "clinic"
        home.mkdir()
        setup = prepared(home, options, 10 * (REPLAYED + options.questions))
        new = [count_question(number) for number in range(options.questions)]
        alone = new[: max(10, options.questions // 8)]
        rate = plain(home, alone)  # before and after: whatever else the machine does meanwhile
        with serving(setup):
            load(setup, asks(range(REPLAYED)))
            body = one(setup, "/ask", asks([0])[0][1] or {})
            for calls in (asks(again), explains(again)):  # each analyst's own words, seen once
                load(setup, calls)
            with bare(home, body) as port:
                other = replace(setup, port=port)
                rows = [measured("a bare route", other, asks(again))]
            rows.append(measured("replay", setup, asks(again)))
            rows.append(measured("explain again", setup, explains(again)))
            calls = [("/ask", {**one, "wait_s": 60}) for one in new]
            rows.append(measured("new counts", setup, calls))
        rate = max(rate, plain(home, alone))
    rows.append(["plain DuckDB, one process", f"{rate:,.1f}", "", "", ""])
    rows = [compare(row, rows[0] if row[0] in AGAIN else rows[-1]) for row in rows]
    size = f"{len(body):,} bytes of {len(json.loads(body)['rows'])} rows"
    print(f"An answer has {size}, the table {options.rows:,} rows.\n")
    print(table([*HEAD[:2], "of its yardstick", *HEAD[2:]], rows))


if __name__ == "__main__":
    main()
