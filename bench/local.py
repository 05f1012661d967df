"""The local model against its peers, in one run: error, speed of reports, speed of estimates.

    python -m bench.local [--adult adult.csv] [--people 5000]

Ages are those of the Adult table if its file is given (a sample of so many people), else made up.
Peers that are not installed are named as absent.  They draw with floats from numpy's or
Python's generators; we draw exactly from the system's cryptographic one.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet.local import (
    Direct,
    Frequencies,
    Hadamard,
    HashedSets,
    HeavyHitters,
    LocalHashing,
    SubsetSelection,
    Unary,
    best,
)
from discreet.local.hashing import TEXT_BITS, code_of_text

MANY = 10**6
PEOPLE = 5_000
CELLS = 1000
"""Repeats are so many that about this many numbers are compared, and three at least (--cells)."""
DOMAINS = {"age, d = 85": 85, "occupation, d = 500": 500}
EPSILONS = ("1/2", 1, 4)


def people(categories: int, count: int = PEOPLE) -> np.ndarray:
    """Answers with a long tail, in shuffled order; public knowledge, so any generator will do."""
    weights = 1 / (np.arange(categories) + 5.0)
    numbers = np.round(weights / weights.sum() * count).astype(int)
    return np.repeat(np.arange(categories), numbers)


def read_ages(path: str, count: int) -> np.ndarray:
    """Ages of the Adult table, those below 85, so many people of it at random."""
    with Path(path).open() as file:
        ages = np.array([int(row["age"]) for row in csv.DictReader(file)])
    return np.random.default_rng(1).permutation(ages[ages < 85])[:count]


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """The time of the processor, so that a busy machine does not count."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def squared_error(estimate: Callable[[], np.ndarray], truth: np.ndarray, cells: int) -> float:
    """Mean over answers and repeats, of shares, times n: comparable with variance / n."""
    repeats = max(3, cells // truth.size)
    errors = [((estimate() - truth) ** 2).mean() for _ in range(repeats)]
    return float(np.mean(errors) / truth.sum())


def closed_forms(categories: int, epsilon: Any) -> dict[str, float]:
    """The mean squared error / n of each oracle as the papers state it."""
    e, d = math.exp(float(best(2, epsilon, 1).randomizer.epsilon)), categories

    def total(p: float, q: float) -> float:
        return (p * (1 - p) + (d - 1) * q * (1 - q)) / (p - q) ** 2 / d

    g, k = round(e + 1), max(1, round(d / (e + 1)))
    p = e * k / (e * k + d - k)
    return {
        "GRR": total(e / (e + d - 1), 1 / (e + d - 1)),
        "OUE": total(1 / 2, 1 / (e + 1)),
        "OLH": total(e / (e + g - 1), 1 / g),
        "SS": total(p, (p * (k - 1) + (1 - p) * k) / (d - 1)),
        "HR": total(e / (e + 1), 1 / 2),
    }


# --- peers -----------------------------------------------------------------------------------


def pure_ldp(categories: int, epsilon: float, values: np.ndarray) -> dict[str, Any]:
    found = {}
    for name, module, kind, options in (
        ("GRR", "direct_encoding", "DE", {}),
        ("OUE", "unary_encoding", "UE", {"use_oue": True}),
        ("OLH", "local_hashing", "LH", {"use_olh": True}),
    ):
        home = importlib.import_module(f"pure_ldp.frequency_oracles.{module}")
        client = getattr(home, f"{kind}Client")(epsilon, categories, **options)
        server = getattr(home, f"{kind}Server")(epsilon, categories, **options)

        def run(client: Any = client, server: Any = server) -> np.ndarray:
            server.reset()
            for value in values.tolist():
                server.aggregate(client.privatise(value + 1))
            return np.array(server.estimate_all(range(1, categories + 1)), dtype=float)

        found[f"pure-ldp {name}"] = run
    return found


def multi_freq(categories: int, epsilon: float, values: np.ndarray) -> dict[str, Any]:
    home = "multi_freq_ldpy.pure_frequency_oracles"
    found = {}
    for name, options in (("GRR", ()), ("UE", (True,)), ("LH", (True,)), ("SS", ())):
        module = importlib.import_module(f"{home}.{name}")
        client = getattr(module, f"{name}_Client")
        server = getattr(module, f"{name}_Aggregator_MI")

        def run(client: Any = client, server: Any = server, extra: tuple = options) -> np.ndarray:
            reports = [client(value, categories, epsilon, *extra) for value in values.tolist()]
            # The aggregator of unary encodings does not take the number of answers.
            known = () if server.__name__.startswith("UE") else (categories,)
            return np.array(server(reports, *known, epsilon, *extra)) * len(values)

        found[f"multi-freq-ldpy {name} (projected)"] = run
    return found


def errors(adult: str | None, count: int, cells: int) -> None:
    print("mean squared error of a count / n; peers beside ours, closed forms above\n")
    for title, categories in DOMAINS.items():
        values = people(categories, count)
        if adult is not None and categories == 85:
            values = read_ages(adult, count)
        truth = np.bincount(values, minlength=categories).astype(float)
        for epsilon in EPSILONS:
            chosen = best(categories, epsilon, len(values)).randomizer
            forms = closed_forms(categories, epsilon)
            print(f"{title}, ε = {epsilon}, n = {len(values)}: {chosen}")
            print("  closed forms: " + ", ".join(f"{k} {v:.3f}" for k, v in forms.items()))
            print(f"  ours, closed form {float(chosen.total_variance()) / categories:.3f}")
            found = {
                name: squared_error(
                    lambda o=chosen, v=values, w=way: w(o.estimate(o.release(v))), truth, cells
                )
                for name, way in WAYS.items()
            }
            print("  ours, " + ", ".join(f"{name} {error:.3f}" for name, error in found.items()))
            beside(categories, float(chosen.epsilon), values, truth, cells)


WAYS: dict[str, Callable[[Any], np.ndarray]] = {
    "measured": lambda found: found.values,
    "projected": lambda found: found.consistent(),
    "shrunk": lambda found: found.consistent("shrunk"),
}


def beside(
    categories: int,
    epsilon: float,
    values: np.ndarray,
    truth: np.ndarray,
    cells: int,
    only: str = "",
) -> None:
    """The peers on the same answers, those whose name has ``only`` in it."""
    for peer in (pure_ldp, multi_freq):
        try:
            rivals = peer(categories, epsilon, values)
        except ImportError:
            print(f"  {peer.__name__}: not installed")
            continue
        for name, run in rivals.items():
            if only not in name:
                continue
            try:
                taken, error = seconds(lambda run=run: squared_error(run, truth, cells))
            except TypeError:  # they hash texts, which xxhash takes no more from 4 on
                print(f"  {name}: does not run with what is installed")
                continue
            print(f"  {name} {error:.3f}   ({taken:.1f} s)")


def open_texts(count: int, cells: int) -> None:
    """Texts of which nobody made a list, counted for 500 candidates: hashing is all there is."""
    words = [f"condition {place}" for place in range(500)]
    codes = np.array([code_of_text(word, key=b"bench") for word in words])
    values = people(500, count)
    truth = np.bincount(values, minlength=500).astype(float)
    for epsilon in EPSILONS:
        oracle = HashedSets(2**TEXT_BITS, epsilon=epsilon)

        def estimate(way: Callable[[Any], np.ndarray], o: HashedSets = oracle) -> np.ndarray:
            support = o.support_of(o.release(codes[values]), codes)
            return way(Frequencies(o, len(values), support))

        forms = closed_forms(2**TEXT_BITS, epsilon)
        print(f"open texts, ε = {epsilon}, n = {len(values)}: {oracle}")
        print(f"  closed forms: OUE {forms['OUE']:.4f}, OLH {forms['OLH']:.4f}, ", end="")
        print(f"ours {float(oracle.variance(respondents=1)):.4f}")
        for name in ("measured", "shrunk"):
            error = squared_error(partial(estimate, WAYS[name]), truth, cells)
            print(f"  ours, {name} {error:.4f}")
        beside(500, float(oracle.epsilon), values, truth, cells, only="LH")


def speed() -> None:
    print("\nreports a second and a million of them estimated, in seconds of the processor\n")
    rows = []
    for categories in (85, 500, 1000):
        values = np.resize(people(categories), MANY)
        for oracle in (
            Direct(categories, epsilon=1),
            LocalHashing(categories, epsilon=1),
            LocalHashing(categories, epsilon=4),
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
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--adult", default=None)
    reader.add_argument("--people", type=int, default=PEOPLE)
    reader.add_argument("--cells", type=int, default=CELLS)
    reader.add_argument("--only-errors", action="store_true")
    given = reader.parse_args()
    if not given.only_errors:
        speed()
        texts()
    errors(given.adult, given.people, given.cells)
    open_texts(given.people, given.cells)


if __name__ == "__main__":
    main()
