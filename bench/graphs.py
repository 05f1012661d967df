"""Rows of two people: what is kept of skewed networks, and what preparing them takes.

    python -m bench.graphs [--people 100000] [--rows 10000000]

"kept" is the share of rows that are among the first of both owners, "busy" who stands in more
rows than are read of one, "distance" how far that is from too many.  Preparing is compared with
the same rows of one owner, the sender's, in seconds of the clock.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
import pyarrow as pa

from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.price.crowding import CrowdingTest
from discreet.question.schema import Schema

ANY = 'unit = {{ any = ["sender", "receiver"] }}\nmax_rows_per_pair = {q}\n'
CROWDING = "crowding = { rho = 0.02, delta = 1e-9 }\n"
ONE = 'unit = "sender"\n'


def declare(rows: int, q: int | None) -> Schema:
    """Messages with one owner, or with two of whom q rows are shared at most."""
    unit = ONE if q is None else ANY.format(q=q) + CROWDING
    return Schema.from_text(
        f'[tables.messages]\nentity = "person"\nmax_rows_per_unit = {rows}\n{unit}'
        '[tables.messages.columns]\nsender = "integer"\nreceiver = "integer"\n'
    )


def attach(people: int, each: int, seed: int = 7) -> pa.Table:
    """Preferential attachment: everybody joins with so many others, by how many these have."""
    dice = np.random.default_rng(seed)
    ends = np.empty(2 * each * people, dtype=np.int64)
    ends[: each + 1] = np.arange(each + 1)
    filled, sender, receiver = each + 1, [], []
    for person in range(each + 1, people):
        met: set[int] = set()
        while len(met) < each:
            met.add(int(ends[dice.integers(filled)]))
        for other in met:
            sender.append(person)
            receiver.append(other)
            ends[filled : filled + 2] = person, other
            filled += 2
    return pa.table({"sender": sender, "receiver": receiver})


def chung_lu(people: int, rows: int, power: float, seed: int = 7) -> pa.Table:
    """Rows whose two ends are drawn by weights that fall as a power."""
    dice = np.random.default_rng(seed)
    weights = np.arange(1, people + 1, dtype=float) ** (-1 / (power - 1))
    drawn = dice.choice(people, size=(rows, 2), p=weights / weights.sum())
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    return pa.table({"sender": drawn[:, 0], "receiver": drawn[:, 1]})


def keep(table: pa.Table, rows: int, q: int) -> tuple[float, int, int]:
    """The share of rows that is kept, the busy, and the distance of the test."""
    schema = declare(rows, q)
    with DuckDBEngine({"messages": table}, schema) as engine:
        counted = engine._current().connection.execute('SELECT COUNT(*) FROM "rows of messages"')
        (kept,) = counted.fetchone() or (0,)
        (above,) = engine.count_crowd("messages").open_for_release().measured
    distance = CrowdingTest.of(schema.tables["messages"]).measure(above.tolist())
    pairs = np.sort(np.column_stack([table["sender"], table["receiver"]]), axis=1)
    shared = Counter(map(tuple, pairs.tolist())) if q > 1 else None
    whole = (
        len(np.unique(pairs, axis=0)) if shared is None else sum(min(n, q) for n in shared.values())
    )
    return kept / whole, int(above[0]), distance


def prepare(table: pa.Table, schema: Schema) -> float:
    """How long it takes to prepare a table."""
    with DuckDBEngine({"messages": table}, schema, opened=False) as engine:
        start = time.perf_counter()
        engine.prepare()
        return time.perf_counter() - start


def main() -> None:
    """Both tables."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--people", type=int, default=100_000)
    reader.add_argument("--rows", type=int, default=10_000_000)
    given = reader.parse_args()
    people = given.people
    print("| network | R | kept | busy / allowed | distance | noise of a count at ε = 1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, table, rows in (
        ("preferential attachment, 5 each", attach(people, 5), 200),
        ("power 2.5", chung_lu(people, 5 * people, 2.5), 400),
        ("power 2.1", chung_lu(people, 5 * people, 2.1), 800),
    ):
        kept, busy, distance = keep(table, rows, 1)
        noise = np.sqrt(2) * rows / table.num_rows
        print(f"| {name} | {rows} | {kept:.1%} | {busy} / {rows} | {distance} | {noise:.2%} |")
    table = chung_lu(max(people, given.rows // 10), given.rows, 2.5)
    single, both = prepare(table, declare(200, None)), prepare(table, declare(200, 5))
    print(
        f"\npreparing {table.num_rows:,} rows: one owner {single:.1f} s, two {both:.1f} s, ", end=""
    )
    print(f"{both / single:.1f} times")


if __name__ == "__main__":
    main()
