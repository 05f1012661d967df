"""How often printed sets hold the truth: statistics by size of group, price and law of the noise.

``python -m bench.coverage AVG CORR`` does some of the statistics only.  Every cell is made by the
release and the reading of ``ask``: a table with many groups of one size, released until there are
``RELEASES`` sets.  A cell reads ``0.953 0.81 12%``: the share of all sets that hold the truth, the
share among the tenth of them that are smallest, and the median width as a share of what is possible
(a slope has no bounds: in its own unit).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pandas as pd

import discreet
from discreet.curate.curator import Curator
from discreet.question.offer import Offer
from discreet.release.answer import Answer
from discreet.release.release import release

SIZES = (1, 3, 10, 30, 100, 300, 1000)
EPSILONS = ("0.03", "0.1", "0.5", "1")
RELEASES = 2_000
MOST_ROWS = 200_000
HIGH_X, HIGH_Y = 900, 700

Truth = Callable[[pd.DataFrame], float]


def _slope(rows: pd.DataFrame) -> float:
    return float(np.cov(rows.y, rows.x, bias=True)[0, 1] / rows.x.var(ddof=0))


STATISTICS: dict[str, tuple[str, Truth, float]] = {
    "AVG": ("AVG(x)", lambda rows: rows.x.mean(), HIGH_X),
    "VARIANCE": ("VAR_POP(x)", lambda rows: rows.x.var(ddof=0), HIGH_X**2 / 4),
    "STDDEV": ("STDDEV_POP(x)", lambda rows: rows.x.std(ddof=0), HIGH_X / 2),
    "CORR": ("CORR(y, x)", lambda rows: np.corrcoef(rows.y, rows.x)[0, 1], 2.0),
    "REGR": ("REGR_SLOPE(y, x)", _slope, math.nan),
    "rate": ("SUM(CASE WHEN b THEN 1 ELSE 0 END) / COUNT(*)", lambda rows: rows.b.mean(), 1.0),
    "share": ("COUNT(*) FILTER (WHERE b) / COUNT(*)", lambda rows: rows.b.mean(), 1.0),
}
"""What is asked, what is true, and how wide the set is that says nothing."""
UNDEFINED = {("CORR", 1), ("REGR", 1)}


def make_rows(size: int, groups: int) -> pd.DataFrame:
    """Groups of one size: two related numbers and a rare property, the same at every run."""
    rng = np.random.default_rng(size)
    shape = (groups, size)
    x = np.clip(rng.normal(0.3, 0.15, shape), 0, 1)
    y = np.clip(0.6 * x + rng.normal(0.1, 0.1, shape), 0, 1)
    return pd.DataFrame(
        {
            "id": np.arange(groups * size),
            "g": np.repeat(np.arange(groups), size),
            "x": np.rint(x.ravel() * HIGH_X).astype(int),
            "y": np.rint(y.ravel() * HIGH_Y).astype(int),
            "b": rng.random(groups * size) < 0.2,
        }
    )


def make_curator(rows: pd.DataFrame, groups: int) -> Curator:
    schema = f"""
    [tables.t]
    unit = "id"
    max_rows_per_unit = 1
    [tables.t.columns]
    id = "integer"
    g = {{ type = "integer", values = {list(range(groups))}, nullable = false }}
    x = {{ type = "integer", bounds = [0, {HIGH_X}], nullable = false }}
    y = {{ type = "integer", bounds = [0, {HIGH_Y}], nullable = false }}
    b = {{ type = "boolean", nullable = false }}
    """
    budget = discreet.Budget(epsilon=10**6)
    return discreet.curator({"t": rows}, schema=discreet.Schema.from_text(schema), budget=budget)


def offer_of(law: str, epsilon: str) -> Offer:
    """A pure price, or the concentrated one of about as much noise."""
    if law == "Laplace":
        return Offer.of(epsilon=epsilon)
    return Offer.of(rho=Fraction(epsilon) ** 2 / 2)


def measure(
    curator: Curator, rows: pd.DataFrame, name: str, offer: Offer, releases: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of each set: whether it holds the truth, and how wide it is."""
    expression, compute, _ = STATISTICS[name]
    question, _ = curator._parse_question(f"SELECT g, {expression} AS z FROM t GROUP BY g")
    priced = curator.price_question(question, offer)
    truth = curator.engine.run(curator.engine.compile(priced.plan))
    exact = {group: compute(part) for group, part in rows.groupby("g")}
    held, widths = [], []
    while len(held) < releases:
        answer = Answer(priced, *release(priced, truth))
        for group, found in zip(answer.column("g"), answer.intervals()["z"], strict=True):
            true = exact[group]
            if not math.isfinite(true):  # of values that are all the same
                continue
            slack = 1e-9 * abs(true)
            inside = found.low - slack <= true <= found.high + slack
            held.append(inside and not found.nobody)  # every group has people
            widths.append(found.high - found.low)
    return np.array(held), np.array(widths)


def tabulate(
    names: list[str], sizes: tuple[int, ...] = SIZES, releases: int = RELEASES
) -> Iterator[tuple[str, str, str, int, float, float, float]]:
    """Each cell: statistic, law, price, size; coverage, of the smallest tenth too; median width."""
    for size in sizes:
        groups = min(releases, max(1, MOST_ROWS // size))
        rows = make_rows(size, groups)
        curator = make_curator(rows, groups)
        for name in names:
            if (name, size) in UNDEFINED:
                continue
            for law in ("Laplace", "Gaussian"):
                for epsilon in EPSILONS:
                    held, widths = measure(curator, rows, name, offer_of(law, epsilon), releases)
                    smallest = np.argsort(widths, kind="stable")[: len(widths) // 10]
                    median = float(np.median(widths))
                    yield name, law, epsilon, size, held.mean(), held[smallest].mean(), median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(STATISTICS))
    names = parser.parse_args().names
    cells, shares, smallest = {}, [], []
    for name, law, epsilon, size, held, small, width in tabulate(names):
        possible = STATISTICS[name][2]
        wide = f"{width:.2g}" if math.isnan(possible) else f"{100 * width / possible:.3g}%"
        shares.append(held)
        smallest.append(small)
        cells[name, law, epsilon, size] = f"{held:.3f} {small:.2f} {wide}"
    print("|  | ε | " + " | ".join(map(str, SIZES)) + " |")
    print("| --- | --- |" + " --- |" * len(SIZES))
    for name in names:
        for law in ("Laplace", "Gaussian"):
            for epsilon in EPSILONS:
                line = [cells.get((name, law, epsilon, size), "–") for size in SIZES]
                print(f"| {name}, {law} | {epsilon} | " + " | ".join(line) + " |")
    print(
        f"\nOf {len(shares)} cells the lowest share is {min(shares):.3f}; among the smallest tenth"
    )
    print(f"of a cell's sets, {min(smallest):.2f}.")


if __name__ == "__main__":
    main()
