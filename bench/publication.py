"""Publication: synthetic tables, marginals, ranges and counters; error at a price, and seconds.

Real data if there is a folder of them (``python -m bench.publication --data FOLDER``, or
the environment variable DISCREET_BENCH_DATA): ``adult.csv`` with ``adult-domain.json``
(sizes of the coded columns), and ``acs_national2019.csv`` (missing values coded N).
Otherwise a table made up with a seed.  ``--repeats 5`` for means of five releases, where a line
does not say that it is of one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from bench.timing import table
from discreet.curate import session
from discreet.publication import (
    Column,
    Counter,
    Prefixes,
    Ranges,
    Records,
    Spend,
    buy_certificate,
    buy_typical,
    expected_rmse,
    plan_marginals,
    plan_strategy,
    synthesize,
)
from discreet.publication.margins import draw_batteries, tabulate

ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
# The ten columns that NIST's collaborative research cycle calls demographic.
TEN = (
    *("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE"),
    *("OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE"),
)
ACS_ORDERED = ("AGEP", "EDU", "PINCP_DECILE", "DVET")

Coded = tuple[list[Column], np.ndarray]


# --- data -------------------------------------------------------------------------------------


def made_up(rows: int = 40_000, seed: int = 1) -> Coded:
    """Twelve columns that depend on two hidden numbers."""
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(rows, 2))
    columns, codes = [], []
    for place, size in enumerate((80, 60, 16, 12, 9, 7, 6, 5, 4, 3, 2, 2)):
        score = hidden @ draw.normal(size=2) + draw.normal(size=rows)
        edges = np.quantile(score, np.sort(draw.random(size - 1)))
        code = np.searchsorted(edges, score)
        ordered = size >= 12
        codes.append(code if ordered else draw.permutation(size)[code])
        columns.append(Column(f"c{place}", size, ordered=ordered))
    return columns, np.stack(codes, axis=1)


def read_adult(folder: Path, *, ordered: bool = True) -> Coded:
    sizes = json.loads((folder / "adult-domain.json").read_text())
    with (folder / "adult.csv").open() as file:
        header = file.readline().strip().split(",")
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    columns = [Column(name, sizes[name], ordered=ordered and name in ORDERED) for name in sizes]
    return columns, rows[:, [header.index(name) for name in sizes]]


def read_acs(folder: Path) -> Coded:
    lines = (folder / "acs_national2019.csv").read_text().splitlines()
    header = lines[0].split(",")
    cells = np.array([line.split(",") for line in lines[1:]])
    columns, codes = [], []
    for name in TEN:
        values = cells[:, header.index(name)]
        known = sorted({one for one in values.tolist() if one != "N"}, key=float)
        if name == "AGEP":
            known = [str(age) for age in range(100)]
        null = "N" in values
        place = {value: code for code, value in enumerate([*known, "N"])}
        codes.append(np.array([place[one] for one in values.tolist()]))
        columns.append(
            Column(name, len(known) + null, ordered=name in ACS_ORDERED, null=bool(null))
        )
    return columns, np.stack(codes, axis=1)


# --- measures ---------------------------------------------------------------------------------


def mean_variation(one: np.ndarray, other: np.ndarray, sizes: Sequence[int], ways: int) -> float:
    """The mean total variation of all marginals of so many columns."""
    found = []
    for those in itertools.combinations(range(len(sizes)), ways):
        shares = []
        for rows in (one, other):
            index = np.zeros(len(rows), dtype=np.int64)
            for column in those:
                index = index * sizes[column] + rows[:, column]
            cells = math.prod(sizes[column] for column in those)
            shares.append(np.bincount(index, minlength=cells) / len(rows))
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def in_twentieths(rows: np.ndarray, reference: np.ndarray, column: int) -> np.ndarray:
    """One column in twenty stretches between the twentieths of the data; NIST has its own."""
    edges = np.unique(np.quantile(reference[:, column], np.linspace(0, 1, 21)[1:-1]))
    coarse = rows.copy()
    coarse[:, column] = np.searchsorted(edges, rows[:, column], side="right")
    return coarse


def released(name: str, coded: Coded, spend: Spend, repeats: int, ways: Sequence[int]) -> list[str]:
    columns, rows = coded
    sizes = [column.size for column in columns]
    seconds, errors = [], []
    for seed in range(repeats):
        start = time.process_time()
        made = synthesize(Records(columns, rows), columns, spend, label=f"{seed}")
        seconds.append(time.process_time() - start)
        errors.append([mean_variation(rows, made.rows, sizes, way) for way in ways])
        if name.startswith("ACS"):
            grouped = [in_twentieths(each, rows, 0) for each in (rows, made.rows)]
            errors[-1].append(1000 * (1 - mean_variation(*grouped, sizes, 2)))
            errors[-1][-2] = 1000 * (1 - errors[-1][-2])
    means = np.mean(errors, axis=0)
    cells = " / ".join(f"{one:.4f}" if one < 1 else f"{one:.0f}" for one in means)
    return [name, cells, f"{np.mean(seconds):.1f}"]


def through_the_curator(coded: Coded) -> list[str]:
    """One release as `discreet release new` makes it: from a file, with margins that are bought."""
    columns, rows = coded
    names = [f"c{place}" for place in range(len(columns))]
    declared = "\n".join(
        f"{name} = {{ type = 'integer', bounds = [0, {one.size - 1}], nullable = false }}"
        if one.ordered
        else f"{name} = {{ type = 'integer', values = {list(range(one.size))}, nullable = false }}"
        for name, one in zip(names, columns, strict=True)
    )
    schema = "[tables.people]\nsource = 'people.parquet'\nunit = 'row'\n"
    schema += f"[tables.people.columns]\n{declared}\n"
    cells = {name: one.size for name, one in zip(names, columns, strict=True) if one.ordered}
    with tempfile.TemporaryDirectory() as home:
        table_of = pa.table({name: rows[:, place] for place, name in enumerate(names)})
        pq.write_table(table_of, Path(home) / "people.parquet")
        session.init(Path(home), f"[budget]\nepsilon = 2\ndelta = 1e-6\n{schema}")
        with discreet.open(home) as curator:
            start = time.process_time()
            made = curator.make_release(
                "adult", of="people", epsilon=1, delta="1e-9", cells=cells
            ).made
            seconds = time.process_time() - start
    sizes = [column.size for column in columns]
    errors = [mean_variation(rows, made.product.rows, sizes, ways) for ways in (2, 3)]
    cells_of = " / ".join(f"{one:.4f}" for one in errors)
    return ["Adult (1, 1e-9), one release through the curator", cells_of, f"{seconds:.1f}"]


def synthetic(folder: Path | None, repeats: int) -> str:
    price = Spend.approximate(1, "1e-9")
    if folder is None:
        lines = [released("made up, (1, 1e-9)", made_up(), price, repeats, (2,))]
        return table(["synthetic table", "mean TV of pairs", "CPU s"], lines)
    adult, plain = read_adult(folder), read_adult(folder, ordered=False)
    lines = [
        released("Adult (1, 1e-9)", adult, price, repeats, (2, 3)),
        released("Adult pure 1", adult, Spend.pure(1), repeats, (2, 3)),
        released("Adult (1, 1e-9), no orders declared", plain, price, repeats, (2, 3)),
        released(
            "ACS ten (1, 1e-9): score, and with ages in 20", read_acs(folder), price, repeats, (2,)
        ),
    ]
    for epsilon in ("0.1", "3", "10"):
        spend = Spend.approximate(epsilon, "1e-9")
        lines.append(released(f"Adult ({epsilon}, 1e-9), one release", adult, spend, 1, (2, 3)))
    lines.append(through_the_curator(adult))
    return table(["synthetic table", "mean TV of pairs / triples", "CPU s"], lines)


def large(rows: int) -> str:
    """Fifty columns that depend on three hidden numbers: CPU seconds and memory."""
    draw = np.random.default_rng(3)
    hidden = draw.normal(size=(rows, 3)).astype(np.float32)
    columns, codes = [], np.empty((rows, 50), dtype=np.int64)
    for place in range(50):
        size = (100, 40, 20, 12, 8, 6, 5, 4, 3, 2)[place % 10]
        score = hidden @ draw.normal(size=3).astype(np.float32)
        score += draw.normal(size=rows).astype(np.float32)
        edges = np.quantile(score[:20_000], np.sort(draw.random(size - 1)))
        codes[:, place] = np.searchsorted(edges, score)
        columns.append(Column(f"c{place}", size, ordered=size >= 12))
    start = time.process_time()
    made = synthesize(Records(columns, codes), columns, Spend.approximate(1, "1e-9"), label="large")
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    line = [f"{rows:,} × 50", f"{len(made.chosen)}", f"{seconds:.0f}", f"{memory:.1f}"]
    return table(["synthetic table, (1, 1e-9)", "pair tables", "CPU s", "GB"], [line])


def workloads() -> str:
    lines = []
    for name, spend in (("pure 1", Spend.pure(1)), ("(1, 1e-9)", Spend.approximate(1, "1e-9"))):
        for gram in (Ranges(1024), Prefixes(1024)):
            start = time.process_time()
            strategy = plan_strategy(gram, spend)
            seconds = time.process_time() - start
            error = expected_rmse(strategy, gram, spend)
            lines.append([f"{gram}", name, f"{error:.2f}", f"{seconds:.1f}"])
    spend = Spend.approximate(1, "1e-9")
    deviations = Counter(horizon=1024, spend=spend).deviations()
    error = math.sqrt(float(np.square(deviations).mean()))
    lines.append(["counter of 1,024 steps", "(1, 1e-9)", f"{error:.2f}", ""])
    return table(["workload", "price", "expected RMSE", "CPU s to plan"], lines)


def marginals(folder: Path | None) -> str:
    columns, _ = made_up() if folder is None else read_adult(folder)
    spend = Spend.approximate(1, "1e-9")
    pairs = list(itertools.combinations(range(len(columns)), 2))
    plan = plan_marginals(columns, pairs, spend)
    alone = math.sqrt(len(pairs)) / spend.sharpness
    return table(
        ["all pairs, unbiased, (1, 1e-9)", "expected RMSE of a cell"],
        [["residual planning", f"{plan.rmse():.2f}"], ["each by itself", f"{alone:.2f}"]],
    )


def margins(releases: int, questions: int) -> str:
    """How often bought margins are passed, by counting questions on two columns at random."""
    many, passed, usual, widths, errors = 0, 0, 0, [], []
    for release in range(releases):
        columns, rows = made_up(8000, seed=release)
        columns, rows = columns[2:10], rows[:, 2:10]
        pairs = list(itertools.combinations(range(len(columns)), 2))
        parts = Spend.concentrated("1/20").divide([94, 3, 3])
        people = Records(columns, rows)
        law = synthesize(people, columns, parts[0], label=f"{release}")
        made, doubt = law.rows, law.histograms.rows_variance
        bought = buy_certificate(people, columns, made, pairs, parts[1], rows_variance=doubt)
        typical, _ = buy_typical(people, columns, made, parts[2])
        for battery in draw_batteries(columns, ways=2, questions=questions, label=f"{release} own"):
            truth, told = (battery.answer(tabulate(one, battery.view)) for one in (rows, made))
            wrong = np.abs(truth - told)
            bound = bought.bound(battery.view.columns, beta="1e-6")
            many, passed = many + wrong.size, passed + int((wrong > bound).sum())
            usual += int((wrong <= typical.within("0.95", beta="0.05")).sum())
            widths.append(bound)
            errors.append(float(np.mean(wrong)))
    line = [f"{releases}", f"{many:,}", f"{passed}", f"{np.mean(widths):.0f}"]
    line += [f"{np.mean(errors):.0f}", f"{usual / many:.2%}"]
    heads = ["releases", "questions", "certified passed", "certified", "mean error"]
    return table([*heads, "within what is typical of 95 %"], [line])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("DISCREET_BENCH_DATA"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--large", type=int, metavar="ROWS", help="fifty columns, and no more")
    parser.add_argument("--margins", type=int, metavar="RELEASES", help="and no more")
    chosen = parser.parse_args()
    if chosen.margins:
        print(margins(chosen.margins, 5000))
        return
    if chosen.large:
        print(large(chosen.large))
        return
    folder = Path(chosen.data) if chosen.data else None
    print(marginals(folder), end="\n\n", flush=True)
    print(synthetic(folder, chosen.repeats), end="\n\n", flush=True)
    print(workloads(), flush=True)


if __name__ == "__main__":
    main()
