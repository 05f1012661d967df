"""Rows of two people: what is kept of skewed networks, and what preparing them takes.

    python -m bench.graphs [--people 100000] [--rows 10000000]
    python -m bench.graphs --picture docs/graphs-degrees.svg

"kept" is the share of rows that are among the first of both owners, "busy" who stands in more
rows than are read of one, "distance" how far that is from too many.  Preparing, and asking
afterwards, is compared with the same rows of one owner, the sender's, in seconds of the processor.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
import pyarrow as pa

from discreet.curate.curator import Curator
from discreet.engine.duckdb.engine import DuckDBEngine
from discreet.price import price
from discreet.price.crowding import CrowdingTest
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse

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


def write(people: int, pairs: int, seed: int = 7) -> pa.Table:
    """Messages: pairs as drawn by power 2.5, each with a number of rows that has a long tail."""
    met = chung_lu(people, pairs, 2.5, seed)
    times = np.minimum(np.random.default_rng(seed).zipf(2.0, size=met.num_rows), 50)
    return met.take(pa.array(np.repeat(np.arange(met.num_rows), times)))


def keep(table: pa.Table, rows: int, q: int) -> tuple[float, int, int, int]:
    """The share of rows that is kept, the busy, the distance of the test, and rows of pairs."""
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
    return kept / whole, int(above[0]), distance, whole


QUESTIONS = (
    "SELECT COUNT(*) AS n FROM messages",
    "SELECT COUNT(*) AS n, SUM(receiver % 10) AS s FROM messages WHERE sender % 3 = 1",
)


def measure(table: pa.Table, schema: Schema) -> tuple[float, float, float]:
    """Seconds to prepare a table, to count its crowd, and to answer questions afterwards."""
    with DuckDBEngine({"messages": table}, schema, opened=False) as engine:
        start = time.process_time()
        engine.prepare()
        prepared = time.process_time()
        if schema.tables["messages"].crowding is not None:
            engine.count_crowd("messages")
        counted = time.process_time()
        known, offer = engine.catalogue, Offer.of(rho="0.5", delta="1e-9")
        plans = [engine.compile(price(parse(q, known), offer, known).plan) for q in QUESTIONS]
        ready = time.process_time()
        for plan in plans:
            engine.run(plan)
        return prepared - start, counted - prepared, time.process_time() - ready


def draw_degrees(people: int, path: str) -> None:
    """The picture of the guide: people with at least so many connections, as released."""
    table = attach(people, 5)
    schema = (
        '[tables.friends]\nunit = { pair = ["sender", "receiver"] }\nmax_rows_per_unit = 1\n'
        '[tables.friends.columns]\nsender = "integer"\nreceiver = "integer"\n'
    )
    with Curator({"friends": table}, schema=schema, budget=1) as curator:
        answer = curator.ask(
            "SELECT at_least, COUNT(*) AS people FROM DEGREES(friends, 40) AS d GROUP BY at_least",
            epsilon="1/2",
        )
    answer.draw().save(path)


def main() -> None:
    """Both tables, or the picture."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--people", type=int, default=100_000)
    reader.add_argument("--rows", type=int, default=10_000_000)
    reader.add_argument("--picture", default=None)
    given = reader.parse_args()
    people = given.people
    if given.picture:
        draw_degrees(people, given.picture)
        return
    print("| network | R | kept | busy / allowed | distance | noise of a count at ε = 1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, table, rows, q in (
        ("preferential attachment, 5 each", attach(people, 5), 200, 1),
        ("power 2.5", chung_lu(people, 5 * people, 2.5), 400, 1),
        ("power 2.1", chung_lu(people, 5 * people, 2.1), 800, 1),
        ("messages, q = 5", write(people, 5 * people), 1000, 5),
    ):
        kept, busy, distance, whole = keep(table, rows, q)
        noise = np.sqrt(2) * rows / whole
        allowed = rows // q
        print(f"| {name} | {rows} | {kept:.1%} | {busy} / {allowed} | {distance} | {noise:.2%} |")
    table = chung_lu(max(people, given.rows // 10), given.rows, 2.5)
    one, two = measure(table, declare(200, None)), measure(table, declare(200, 5))
    print(f"\n{table.num_rows:,} rows, seconds of the processor, one owner and two:")
    print(f"preparing {one[0]:.1f} and {two[0]:.1f} ({two[0] / one[0]:.1f} times),", end=" ")
    print(f"counting the crowd {two[1]:.1f}, two questions {one[2]:.2f} and {two[2]:.2f}")


if __name__ == "__main__":
    main()
