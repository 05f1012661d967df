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


def rank_by_power(people: int, rows: int, power: float, seed: int = 7) -> pa.Table:
    """Rows whose two ends are drawn by weights that fall with a power of their rank."""
    dice = np.random.default_rng(seed)
    weights = np.arange(1, people + 1, dtype=float) ** (-1 / (power - 1))
    drawn = dice.choice(people, size=(rows, 2), p=weights / weights.sum())
    drawn = drawn[drawn[:, 0] != drawn[:, 1]]
    return pa.table({"sender": drawn[:, 0], "receiver": drawn[:, 1]})


def chung_lu(people: int, power: float, most: int, seed: int = 7) -> pa.Table:
    """Different pairs, five for each person, whose ends are drawn by weights.

    The weights W of people are drawn themselves, P(W > w) falling as w**(1 - power), scaled to ten
    on average and cut at ``most``: what is kept hangs on the few largest, and so on the draw.
    """
    dice = np.random.default_rng(seed)
    weights = dice.random(people) ** (1 / (1 - power))
    weights = np.minimum(weights * (10 / weights.mean()), most)
    ends = dice.choice(people, size=(5 * people, 2), p=weights / weights.sum())
    pairs = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    return pa.table({"sender": pairs[:, 0], "receiver": pairs[:, 1]})


def write(people: int, seed: int = 7) -> pa.Table:
    """Messages: pairs as drawn by power 2.5, each with one to five rows, mostly few."""
    met = chung_lu(people, 2.5, 3000, seed)
    times = np.minimum(np.random.default_rng(seed).geometric(0.3, size=met.num_rows), 5)
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
    reader.add_argument("--draws", type=int, default=1, help="networks of each kind")
    reader.add_argument("--picture", default=None)
    given = reader.parse_args()
    people = given.people
    if given.picture:
        draw_degrees(people, given.picture)
        return
    print("| network | R | kept | busy / allowed | distance | noise of a count at ε = 1 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, make, rows, q in (
        ("preferential attachment, 5 each", lambda seed: attach(people, 5, seed), 200, 1),
        ("power 2.5", lambda seed: chung_lu(people, 2.5, 3_000, seed), 400, 1),
        ("power 2.1", lambda seed: chung_lu(people, 2.1, 20_000, seed), 800, 1),
        ("messages, q = 5", lambda seed: write(people, seed), 1000, 5),
    ):
        found = [keep(make(seed), rows, q) for seed in range(7, 7 + given.draws)]
        shares = sorted(kept for kept, *_ in found)
        busy, distance, whole = np.mean(found, axis=0)[1:].round().astype(int)
        spread = f" ({shares[0]:.1%} … {shares[-1]:.1%})" if given.draws > 1 else ""
        kept, noise = f"{np.mean(shares):.1%}{spread}", np.sqrt(2) * rows / whole
        print(f"| {name} | {rows} | {kept} | {busy} / {rows // q} | {distance} | {noise:.2%} |")
    table = rank_by_power(max(people, given.rows // 10), given.rows, 2.5)
    one, two = measure(table, declare(200, None)), measure(table, declare(200, 5))
    print(f"\n{table.num_rows:,} rows, seconds of the processor, one owner and two:")
    both = two[0] + two[1]
    print(f"preparing, with the crowd counted, {one[0]:.1f} and {both:.1f}", end=" ")
    print(f"({both / one[0]:.1f} times), two questions {one[2]:.2f} and {two[2]:.2f}")


if __name__ == "__main__":
    main()
