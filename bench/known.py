"""What an analyst's session costs, with what is known used and without; how fast it is found.

    python -m bench.known [--questions 200] [--answers 100000] [--tables prepared] [--rho] [--bound]

Drill-downs as analysts make them: an overview, its groups, some of the groups, totals and means of
them, the same again more exactly.  Every question says which margin it needs; "without" is what
each different question costs by itself, "with" what the account was charged so that all are met.
The tables are in memory, in a file, or prepared from a file; the budget is one of epsilon, or
of rho, where it is the rho that is compared.  ``--bound`` says how much who knew all questions
beforehand could save at most, with Gaussian noise.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import minimize

import discreet
from discreet.accounting.loss import Loss
from discreet.curate.curator import Curator, describe_rows

CITIES = [f"city {i}" for i in range(8)]
SCHEMA = f"""
[tables.visits]
unit = "patient"
max_rows_per_unit = 1
[tables.visits.columns]
patient = "integer"
city = {{ type = "text", values = {CITIES}, nullable = false }}
sex = {{ type = "text", values = ["f", "m"], nullable = false }}
age = {{ type = "integer", bounds = [0, 99], nullable = false }}
"""
FINE = "SELECT city, sex, age >= 65 AS old, COUNT(*) AS n FROM visits GROUP BY 1, 2, 3"
KEYS = ("city", "sex", "age >= 65 AS old")


TABLES = ("memory", "file", "prepared")


def make_rows() -> pa.Table:
    draw = random.Random(7)
    rows = range(20_000)
    return pa.table(
        {
            "patient": [*rows],
            "city": [draw.choice(CITIES) for _ in rows],
            "sex": [draw.choice("fm") for _ in rows],
            "age": [draw.randrange(100) for _ in rows],
        }
    )


@contextmanager
def clinic(tables: str = "memory", *, rho: bool = False) -> Iterator[Curator]:
    budget = discreet.Budget(rho=100_000) if rho else discreet.Budget(epsilon=1000)
    with tempfile.TemporaryDirectory() as folder:
        source: object = make_rows()
        if tables != "memory":
            source = Path(folder) / "visits.parquet"
            pq.write_table(make_rows(), source)
        store = Path(folder) / "store"
        given = {"visits": source}
        with discreet.curator(given, schema=SCHEMA, budget=budget, store=store) as curator:
            if tables == "prepared":
                curator.prepare()
            yield curator


def workload(count: int) -> list[tuple[str, int]]:
    """Questions, each with the margin it needs: overviews first, then what they make one ask."""
    draw = random.Random(11)
    found = [(FINE, 40)]
    while len(found) < count:
        keys = draw.sample(KEYS, draw.randrange(3))
        conditions = []
        if draw.random() < 0.6:
            some = draw.sample(CITIES, draw.randrange(1, 4))
            conditions.append(f"city IN ({', '.join(map(repr, some))})")
        if draw.random() < 0.3:
            conditions.append(f"sex = '{draw.choice('fm')}'")
        if draw.random() < 0.3:
            conditions.append(draw.choice(("age >= 65", "NOT age >= 65")))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        sql = f"SELECT {', '.join([*keys, 'COUNT(*) AS n'])} FROM visits{where}{by}"
        found.append((sql, draw.choice((60, 80, 100, 150, 200))))
    return found


def shuffle(questions: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The same questions in another order: overviews come when they come."""
    found = list(questions)
    random.Random(3).shuffle(found)
    return found


def deepen(count: int) -> list[tuple[str, int]]:
    """The other way round: totals first, then their groups, then parts of them, by chapters."""
    draw = random.Random(5)
    found: list[tuple[str, int]] = []
    margins = (60, 80, 100, 150, 200)
    while len(found) < count:
        keys = draw.sample(KEYS, 3)
        where = f" WHERE sex = '{draw.choice('fm')}'" if draw.random() < 0.3 else ""
        for depth in range(3):
            by = f" GROUP BY {', '.join(str(i + 1) for i in range(depth))}" if depth else ""
            columns = ", ".join([*keys[:depth], "COUNT(*) AS n"])
            found.append((f"SELECT {columns} FROM visits{where}{by}", draw.choice(margins)))
        for _ in range(draw.randrange(3, 9)):
            some = draw.sample(CITIES, draw.randrange(1, 4))
            conditions = [f"city IN ({', '.join(map(repr, some))})"]
            if draw.random() < 0.4:
                conditions.append(f"sex = '{draw.choice('fm')}'")
            if draw.random() < 0.3:
                conditions.append("age >= 65")
            sql = f"SELECT COUNT(*) AS n FROM visits WHERE {' AND '.join(conditions)}"
            found.append((sql, draw.choice(margins)))
    return found[:count]


def spend(
    questions: list[tuple[str, int]], tables: str = "memory", *, rho: bool = False
) -> tuple[float, float, int]:
    """Epsilon, or rho, without and with what is known; and how many questions were free."""

    def read(loss: Loss) -> Fraction:
        return Fraction(loss.rho if rho else loss.epsilon)

    alone, best = Fraction(0), {}
    with clinic(tables, rho=rho) as pricing:
        for sql, margin in questions:
            price = read(pricing.price(sql, within=margin).loss)
            if (sql, margin) not in best:
                best[sql, margin] = price
                alone += price
    free = 0
    with clinic(tables, rho=rho) as curator:
        for sql, margin in questions:
            before = curator.spent
            answer = curator.ask(sql, within=margin)
            if max(m for m in answer.margins()["n"] if m is not None) > margin:
                raise ValueError(f"{sql} is not within {margin}")
            free += curator.spent == before
        return float(alone), float(read(curator.spent)), free


def find_bound(questions: list[tuple[str, int]]) -> float:
    """How many times less rho than question by question any Gaussian noise takes, at the most.

    Let P be the inverse covariance of estimates of all cells: one person loses P_ii / 2 in cell i,
    and the sum of cells w has the variance w' P^-1 w.  The least loss that keeps all variances t_w
    is at least 2 tr((L/2)^(1/2) W (L/2)^(1/2))^(1/2) - sum of mu_w, for any weights L of cells that
    add up to one and any mu >= 0, with W = sum of mu_w w w' / t_w: each choice is a bound, and the
    best that is found is taken.
    """
    cells, alone = _find_cells(questions)
    count = len(cells)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        mu, raw = np.exp(x[:count]), np.exp(x[count:] - x[count:].max())
        people = raw / raw.sum()
        half = np.sqrt(people / 2)
        whole = (cells.T * mu) @ cells
        values, turned = np.linalg.eigh(half[:, None] * whole * half)
        roots = np.sqrt(np.maximum(values, 1e-18))
        inverse = turned @ np.diag(1 / roots) @ turned.T
        by_mu = np.einsum("ij,jk,ik->i", cells, half[:, None] * inverse * half, cells) - 1
        by_people = np.einsum("ij,ij,j->i", inverse, whole, half) / np.sqrt(2 * people)
        by_raw = people * (by_people - (by_people * people).sum())
        scale = 1 / alone
        slope = np.concatenate([by_mu * mu, by_raw])
        return -scale * (2 * roots.sum() - mu.sum()), -scale * slope

    start = np.concatenate([np.full(count, np.log(0.03 * alone / count)), np.zeros(cells.shape[1])])
    found = minimize(evaluate, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000})
    return float(-1 / found.fun)


def _find_cells(questions: list[tuple[str, int]]) -> tuple[np.ndarray, float]:
    """Of every number asked for its cells over its deviation; and the rho of all one by one."""
    people = [(c, s, a) for c in CITIES for s in "fm" for a in (30, 70)]
    columns = dict(zip(("city", "sex", "age"), zip(*people, strict=True), strict=True))
    table = pa.table({"patient": [*range(len(people))], **{k: [*v] for k, v in columns.items()}})
    wanted: dict[tuple[int, ...], float] = {}
    with duckdb.connect() as connection:
        connection.register("visits", table)
        for sql, margin in questions:
            listed = sql.replace("COUNT(*)", "LIST(patient ORDER BY patient)")
            for row in connection.execute(listed).fetchall():
                cells = tuple(row[-1] or ())
                wanted[cells] = min(margin / 1.96, wanted.get(cells, math.inf))
    found = np.zeros((len(wanted), len(people)))
    for place, (cells, deviation) in enumerate(wanted.items()):
        found[place, list(cells)] = 1 / deviation
    return found, sum(1.96**2 / (2 * margin**2) for _, margin in set(questions))


def decide(answers: int) -> float:
    """Seconds of one free question, the least of some, among so many released answers."""
    with clinic() as curator:
        curator.ask(FINE, epsilon=1)
        asked = "SELECT COUNT(*) AS n FROM visits WHERE city = '{}'"
        curator.ask(asked.format(CITIES[0]))
        base = describe_rows(curator.explain("SELECT COUNT(*) FROM visits", epsilon=1).priced.plan)
        version = curator.engine.data_version()
        for number in range(answers):
            content = {
                "about": [base.base, [f"{number}"], ["visits.city"] * (number % 2), []],
                "data_version": version,
                "loss": [number, number, 0],
            }
            curator.account._shelf.keep(10**6 + number, "curator", content)
        taken = []
        for city in CITIES[1:]:
            sql = asked.format(city)
            curator.explain(sql, epsilon=1)  # parsing, pricing and compiling are no part of it
            begun = time.perf_counter()
            curator.ask(sql)
            taken.append(time.perf_counter() - begun)
        return min(taken)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--tables", choices=TABLES, default="memory")
    parser.add_argument("--rho", action="store_true", help="a budget of rho, not of epsilon")
    parser.add_argument("--bound", action="store_true", help="only what could be saved at most")
    options = parser.parse_args(arguments or [])
    unit = "ρ" if options.rho else "ε"
    overview_first = workload(options.questions)
    orders = (
        ("an overview first, then what it makes one ask", overview_first),
        ("the same, in any order", shuffle(overview_first)),
        ("totals first, then their groups and parts", deepen(options.questions)),
    )
    if options.bound:
        print(f"| {options.questions} questions | ρ, known beforehand |\n| --- | --- |")
        for name, questions in orders:
            print(f"| {name} | at most {find_bound(questions):.1f} × less |")
        return
    print(f"| {options.questions} questions | free | {unit}, each by itself | {unit}, ", end="")
    print("with what is known | |\n| --- | --- | --- | --- | --- |")
    for name, questions in orders:
        alone, used, free = spend(questions, options.tables, rho=options.rho)
        print(f"| {name} | {free} | {alone:.4f} | {used:.4f} | {alone / used:.1f} × less |")
    taken = 1e3 * decide(options.answers)
    print(f"\nOne decision among {options.answers:,} answers: {taken:.1f} ms.")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
