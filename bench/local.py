"""The local model: speed of reports, speed of estimates; errors are in ``bench.local_errors``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.local_errors import make_tail
from discreet.local import (
    Attributes,
    Direct,
    Hadamard,
    HashedSets,
    HeavyHitters,
    HybridMean,
    ItemSets,
    LocalHashing,
    OneBitMean,
    Ordinal,
    PiecewiseMean,
    SubsetSelection,
    Unary,
)
from discreet.local.hashing import TEXT_BITS, code_of_text

MANY = 10**6


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The time of the processor, so that a busy machine does not count."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def speed() -> None:
    print("\nreports a second and a million of them estimated, in seconds of the processor\n")
    rows = []
    for categories in (85, 500, 1000):
        values = np.resize(make_tail(categories), MANY)
        for oracle in (
            Direct(categories, epsilon=1),
            LocalHashing(categories, epsilon=1),
            LocalHashing(categories, epsilon=4),
            HashedSets(categories, epsilon=1),
            Hadamard(categories, epsilon=1),
            SubsetSelection(categories, epsilon="1/2"),
            SubsetSelection(categories, epsilon=1),
            SubsetSelection(categories, epsilon=4),
            Unary(categories, epsilon=1),
        ):
            count = MANY if oracle.report_bits <= 100 else MANY // 5
            oracle.release(values[:1000])
            taken, reports = seconds(lambda o=oracle, v=values[:count]: o.release(v))
            read, _ = seconds(lambda o=oracle, r=reports: o.estimate(r))
            rows.append((repr(oracle), count / taken, read * MANY / count))
    for name, rate, read in rows:
        print(f"  {name:38} {rate:12,.0f} /s   {read:6.2f} s")


def others() -> None:
    print("\nreports a second of those that are not one answer of a list\n")
    tail = np.resize(make_tail(500), MANY)
    pairs = np.stack([tail, tail[::-1]], axis=1)
    for randomizer, values in (
        *(
            (kind(lower=0, upper=500, epsilon=1), tail)
            for kind in (OneBitMean, PiecewiseMean, HybridMean)
        ),
        (Ordinal(500, epsilon=1), tail),
        *((Attributes((500, 500), epsilon=1, strategy=way), pairs) for way in ("split", "sample")),
        (ItemSets(500, epsilon=1, at_most=2), [set(row) for row in pairs[:100_000].tolist()]),
        *(
            (
                HeavyHitters(length=8, epsilon=epsilon, key=b"bench"),
                [chr(97 + v % 26) * (1 + v // 26 % 8) + chr(97 + v // 208) for v in tail.tolist()],
            )
            for epsilon in (1, 4)
        ),
    ):
        randomizer.release(values[:1000])
        taken, _ = seconds(lambda r=randomizer, v=values: r.release(v))
        print(f"  {randomizer!r:58} {len(values) / taken:12,.0f} /s")


def candidates() -> None:
    print("\nany text by sets of hashes, counted for 300 candidates\n")
    codes = np.array([code_of_text(f"condition {place}", key=b"bench") for place in range(300)])
    said = codes[np.resize(make_tail(300), MANY)]
    for epsilon in (1, 4):
        hashed = HashedSets(2**TEXT_BITS, epsilon=epsilon)
        hashed.release(said[:1000])
        taken, reports = seconds(lambda h=hashed: h.release(said))
        read, _ = seconds(lambda h=hashed, r=reports: h.support_of(r, codes))
        print(f"  {hashed!r:46} {MANY / taken:12,.0f} /s   {read:6.2f} s")


def texts() -> None:
    print("\ntexts nobody listed, ε = 4\n")
    words = HeavyHitters(length=8, epsilon=4, key=b"bench")
    names = ["diabetes", "asthma", "migraine", "gout", "anaemia"]
    said = [name for place, name in enumerate(names) for _ in range(20_000 // (place + 1))]
    taken, reports = seconds(lambda: words.release(said))
    read, found = seconds(lambda: words.find(reports, count=5))
    print(f"  {len(said)} reports in {taken:.2f} s, read in {read:.2f} s")
    for one in found:
        print(f"  {one.text:10} {one.value:8.0f}  [{one.low:.0f}, {one.high:.0f}]")


def main() -> None:
    speed()
    others()
    candidates()
    texts()


if __name__ == "__main__":
    main()
