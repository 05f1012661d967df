"""What is done to negative numbers, on laws of several shapes: clipped, projected, shrunk.

Reports are made and counted by the library, twenty surveys for each line; the mean squared error of
a count is divided by the number of people.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.local_errors import make_tail, scale_up, squared
from discreet.local import best

SURVEYS = 20
BITS = 1000
DICE = np.random.default_rng(2)
"""Who takes part is public: any generator will do."""


def list_laws(d: int) -> Iterator[tuple[str, np.ndarray]]:
    """Laws of answers: none, some and nearly all of them rare."""
    place = np.arange(d)
    five = np.zeros(d)
    five[[3, 10, 40, 60, 80]] = 0.4, 0.3, 0.15, 0.1, 0.05
    half = np.full(d, 0.5 / (d - 1))
    half[7] = 0.5
    yield "uniform", np.ones(d)
    yield "bell", np.exp(-(((place - d / 2) / (d / 6)) ** 2) / 2)
    yield "long tail", np.bincount(make_tail(d), minlength=d).astype(float)
    yield "geometric", 0.95**place
    yield "power 3/2", 1 / (place + 1.0) ** 1.5
    yield "one with half", half
    yield "five answers", five


def measure(law: np.ndarray, n: int, epsilon: Any) -> list[np.ndarray]:
    """The errors of each way in each survey."""
    randomizer = best(law.size, epsilon, n, most_bits=BITS).randomizer
    found = []
    for _ in range(SURVEYS):
        people = DICE.choice(law.size, n, p=law / law.sum())
        counts = randomizer.estimate(randomizer.release(people))
        ways = (
            scale_up(counts.values),
            counts.consistent("simplex"),
            counts.consistent("shrunk"),
        )
        found.append([squared(way, people) for way in ways])
    return list(np.array(found).T)


def main() -> None:
    print("| answers | people | ε | clipped and scaled | projected | shrunk |")
    print("| --- | --- | --- | --- | --- | --- |")
    for d in (85, 500):
        for name, law in list_laws(d):
            for n, epsilon in ((5_000, "1/2"), (50_000, "1/2"), (50_000, 4)):
                cells = [
                    f"{one.mean():.4f} ± {one.std(ddof=1) / math.sqrt(one.size):.4f}"
                    for one in measure(law, n, epsilon)
                ]
                print(f"| {name}, {d} | {n:,} | {epsilon} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
