"""What it takes to say which blocks a question can touch, when its condition is new.

    python -m bench.reach [--blocks 10000]

Every round lays the blocks out anew, so that nothing is remembered; "again" is the same
question once more.  The time is that of the processor: it is one thread of Python.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial

from bench.timing import Call, table
from discreet.question.blocks import Space, reach
from discreet.question.schema import Schema
from discreet.question.sql import parse

ROUNDS = 7
FIRST = date(2000, 1, 1)
Shape = tuple[str, Mapping[str, str], tuple[str, ...]]
"""A name, the block columns, and conditions on them."""


def seconds(call: Call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def days(count: int) -> str:
    return f'{{ type = "date", bounds = [{FIRST}, {FIRST + timedelta(days=count - 1)}] }}'


def names(count: int) -> str:
    return f'{{ type = "text", values = {[f"v{i:07d}" for i in range(count)]} }}'


def shapes(blocks: int) -> list[Shape]:
    numbers = f'{{ type = "integer", bounds = [0, {blocks - 1}] }}'
    return [
        (
            "whole numbers",
            {"n": numbers},
            ("n = 7", "n BETWEEN 7 AND 97", "n * 3 < 700", "CAST(n AS TEXT) = '7'"),
        ),
        (
            "days",
            {"n": days(blocks)},
            ("n >= DATE '2004-03-07'", "EXTRACT(year FROM n) = 2007"),
        ),
        (
            "names",
            {"n": names(blocks)},
            ("n = 'v0000007'", "n IN ('v0000007', 'v0000010')", "UPPER(n) = 'V0000007'"),
        ),
        (
            "ten names × days",
            {"r": names(10), "n": days(blocks // 10)},
            ("r = 'v0000007' AND n < DATE '2000-03-07'", "EXTRACT(month FROM n) = 7"),
        ),
    ]


def measured(columns: Mapping[str, str], condition: str) -> tuple[float, float]:
    """The shortest time of a new question, and of one that was asked before."""
    declared = "\n".join(f"columns.{name} = {column}" for name, column in columns.items())
    schema = Schema.from_text(f'[tables.t]\nunit = "row"\nblocks = {list(columns)}\n{declared}')
    asked = parse(f"SELECT COUNT(*) FROM t WHERE {condition}", schema)
    rounds = []
    for _ in range(ROUNDS):
        space = Space.of(schema)
        ask = partial(reach, asked, schema, space)
        rounds.append((seconds(ask), seconds(ask)))
    first, again = zip(*rounds, strict=True)
    return min(first), min(again)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--blocks", type=int, default=10_000)
    blocks = options.parse_args().blocks
    rows = []
    for name, columns, conditions in shapes(blocks):
        for condition in conditions:
            first, again = measured(columns, condition)
            rows.append((name, f"`{condition}`", f"{first * 1e3:.2f}", f"{again * 1e3:.2f}"))
    print(f"{blocks:,} blocks:\n")
    print(table(("blocks are", "condition", "first time, ms", "again, ms"), rows))


if __name__ == "__main__":
    main()
