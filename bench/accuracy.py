"""Accuracy of SQL aggregates against peers, at equal epsilon, add/remove neighbours, one run."""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
import pandas as pd

import discreet
from bench.selection import TOP, median_calls
from discreet.curate.curator import Curator
from discreet.noise import discrete_laplace
from discreet.question.domain import Kind
from discreet.question.offer import Offer
from discreet.release.answer import Answer
from discreet.release.release import release

RUNS = 600
ROWS = 20_000
HIGH = 1_000
EPSILON = 1.0


def curator(values: np.ndarray, high: int = HIGH) -> Curator:
    table = discreet.Table(
        "people",
        (
            discreet.Column("id", Kind.INTEGER),
            discreet.Column("x", Kind.INTEGER, 0, high, nullable=False),
        ),
        unit=("id",),
        max_rows_per_unit=1,
    )
    frame = pd.DataFrame({"id": np.arange(len(values)), "x": values})
    schema = discreet.Schema({"people": table})
    return discreet.curator({"people": frame}, schema=schema, budget=discreet.Budget(epsilon=10**6))


def ours(clinic: Curator, aggregate: str) -> np.ndarray:
    question, _ = clinic._parse_question(f"SELECT {aggregate} AS y FROM people")
    priced = clinic.price_question(question, Offer.of(epsilon=str(EPSILON)))
    truth = clinic.engine.run(clinic.engine.compile(priced.plan))
    return np.array(
        [Answer(priced, *release(priced, truth)).value() for _ in range(RUNS)], dtype=float
    )


def opendp_mean(values: np.ndarray) -> np.ndarray:
    """OpenDP's documented way: noisy sum over noisy count, half the price each."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    bounded = space >> dp.t.then_clamp((0, HIGH)) >> dp.t.then_sum()
    total = bounded >> dp.m.then_laplace(HIGH / (EPSILON / 2))
    count = space >> dp.t.then_count() >> dp.m.then_laplace(1 / (EPSILON / 2))
    data = values.tolist()
    return np.array([total(data) / max(count(data), 1) for _ in range(RUNS)])


def separate_variance(values: np.ndarray) -> np.ndarray:
    """Count, sum and sum of squares noised separately, a third of the price each."""
    share = EPSILON / 3
    n = len(values) + discrete_laplace(f"{1 / share:.9f}", RUNS)
    s1 = values.sum() + discrete_laplace(f"{HIGH / share:.9f}", RUNS)
    s2 = (values.astype(object) ** 2).sum() + discrete_laplace(f"{HIGH**2 / share:.9f}", RUNS)
    return np.array(s2 / n - (s1 / n) ** 2, dtype=float)


def ranks_off(ordered: np.ndarray, answers: np.ndarray) -> float:
    """The mean distance from the middle to the ranks of the answers."""
    below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
    target = len(ordered) / 2
    return float(np.maximum(np.maximum(below - target, target - upto), 0).mean())


def medians() -> None:
    """A median of incomes, through SQL and from peers."""
    incomes = np.random.default_rng(7).lognormal(10.0, 0.8, ROWS)
    values = np.clip(incomes, 0, TOP).astype(np.int64)
    ordered = np.sort(values)
    mine = ranks_off(ordered, ours(curator(values, TOP), "MEDIAN(x)"))
    print(f"MEDIAN of {ROWS:,} incomes in 0 ... {TOP:,}; mean error in ranks")
    print(f"  discreet, through SQL: {mine:.2f}")
    calls, absent = median_calls(values, EPSILON)
    errors = {
        name: ranks_off(ordered, np.array([call() for _ in range(RUNS // 4)]))
        for name, call in calls.items()
    }
    for name, error in errors.items():
        print(f"  {name}: {error:.2f}, ratio {mine / error:.2f} (<= 1)")
    for name in absent:
        print(f"  {name} is not installed")


def main() -> None:
    rng = np.random.default_rng(3)
    data = {
        "skewed": np.clip(rng.gamma(0.6, 120.0, ROWS), 0, HIGH).astype(np.int64),
        "symmetric": np.clip(rng.normal(500, 120, ROWS), 0, HIGH).astype(np.int64),
    }
    print(f"{ROWS:,} rows in 0 ... {HIGH}, epsilon = {EPSILON}, {RUNS} runs; mean absolute error")
    for name, values in data.items():
        clinic = curator(values)
        mine = np.abs(ours(clinic, "AVG(x)") - values.mean()).mean()
        theirs = np.abs(opendp_mean(values) - values.mean()).mean()
        print(
            f"  AVG, {name:9}: {mine:.4f}, OpenDP {theirs:.4f}, ratio {mine / theirs:.2f} (<= 0.5)"
        )
        mine = np.abs(ours(clinic, "VAR_POP(x)") - values.var()).mean()
        theirs = np.abs(separate_variance(values) - values.var()).mean()
        print(
            f"  VAR, {name:9}: {mine:.2f}, three sums {theirs:.2f}, "
            f"ratio {mine / theirs:.2f} (<= 0.35)"
        )
    medians()


if __name__ == "__main__":
    main()
