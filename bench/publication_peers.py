"""Synthetic tables beside those of others, in one run: the same table, the same price, one measure.

``python -m bench publication-peers`` with the folder of the data in DISCREET_BENCH_DATA, and the
interpreters of an environment in which ``dpmm`` is installed and of one with ``opendp[mbi]`` in
DISCREET_BENCH_DPMM and DISCREET_BENCH_OPENDP: their packages want other versions than ours, and
no test needs them.  All columns are coded categories without a declared order, as these systems
take them.  Each peer fits with few steps first, and then, while time is left, with as many as its
class has by default; the table says which.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

DELTA = 1e-9
MEASURED = 0.875
"""What OpenDP's MST measures with: its nine tenths, in eighths, which doubles can hold."""
EPSILONS = (0.1, 1.0, 3.0, 10.0)
SIX = ("workclass", "marital-status", "relationship", "race", "sex", "income>50K")
STEPS = {"dpmm aim": 1000, "dpmm mst": 5000, "opendp mst": 1000}
"""Those of ``AIMGM``, of ``MSTGM`` and of mbi's ``mirror_descent`` when nobody says."""
FEW = {"dpmm aim": 300, "dpmm mst": 1000, "opendp mst": 1000}
"""What ends within some minutes of a busy machine."""


# --- in the peer's environment ------------------------------------------------------------------


def run_dpmm(rows: np.ndarray, sizes: list[int], epsilon: float, kind: str, steps: int):
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    names = [f"c{place}" for place in range(len(sizes))]
    made = MSTGM if kind == "mst" else AIMGM
    # The size of AIM's model is its default, 80 MB, which its source asks of any comparison.
    model = made(epsilon=epsilon, delta=DELTA, n_iters=steps, n_jobs=1)
    model.set_domain(dict(zip(names, sizes, strict=True)))
    model.fit(pd.DataFrame(rows, columns=names))
    return model.generate(n_records=len(rows))[names].to_numpy().astype(np.int64)


def round_for_opendp(rho: float, selections: int) -> float:
    """The largest budget of 20 binary places that its own sums, which round up, do not pass.

    It divides what it selects with among its selections and adds them up again in doubles: some
    budgets end there with an error, others a millionth smaller do not.
    """
    fraction, exponent = math.frexp(rho)
    for places in range(math.floor(fraction * 2**20), 0, -1):
        tried = math.ldexp(places, exponent - 20)
        several = step_down(step_down(tried - tried * 0.5))
        selecting = step_down(step_down(several - several * MEASURED))
        each, total = step_down(selecting / selections), 0.0
        for _ in range(selections):
            exact = Fraction(total) + Fraction(each)
            total = float(exact)
            if total < exact:
                total = math.nextafter(total, math.inf)
        if total <= selecting:
            return tried
    raise ValueError(f"no budget near {rho} can be divided by {selections}")


def step_down(number: float) -> float:
    return math.nextafter(number, -math.inf)


def run_opendp(rows: np.ndarray, sizes: list[int], rho: float) -> np.ndarray:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{place}" for place in range(len(sizes))]
    rho = round_for_opendp(rho, len(sizes) - 1)
    frame = pl.DataFrame({name: rows[:, place] for place, name in enumerate(names)})
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = (
        context.query(rho=rho)
        .select(*names)
        .contingency_table(
            keys={name: list(range(size)) for name, size in zip(names, sizes, strict=True)},
            algorithm=dp.mbi.MST(measure_split=MEASURED),
        )
        .release()
    )
    found = table.synthesize(rows=len(rows))
    drawn = np.stack([found[name].fill_null(0).to_numpy() for name in names], axis=1)
    return np.minimum(drawn.astype(np.int64), np.array(sizes) - 1)


def run_peer(source: str, target: str, told: str) -> None:
    held, asked = np.load(source), json.loads(told)
    rows, sizes = held["rows"], held["sizes"].tolist()
    start = time.process_time()
    if asked["name"] == "opendp mst":
        made = run_opendp(rows, sizes, asked["rho"])
    else:
        made = run_dpmm(rows, sizes, asked["epsilon"], asked["name"].split()[1], asked["steps"])
    np.savez(target, rows=made, seconds=time.process_time() - start)


# --- in ours ------------------------------------------------------------------------------------


@dataclass
class Contest:
    """One system on one table at one price, and what its releases came to."""

    table: str
    sizes: list[int]
    rows: np.ndarray
    epsilon: float
    system: str
    interpreter: str = ""
    steps: int = 0
    errors: list[list[float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def wide(self) -> bool:
        return len(self.sizes) >= 10

    @property
    def turn(self) -> int:
        """What matters most comes first, and what takes longest last."""
        if self.wide:
            return 4 if self.system == "opendp mst" else 3
        return 2 if self.steps > FEW.get(self.system, 0) else 1 if self.interpreter else 0

    def release(self, patience_s: float) -> None:
        """One more release, unless an earlier one failed or there is no time."""
        from bench.publication import mean_variation

        if self.failed or patience_s < 60:
            return
        try:
            made, seconds = self.call(patience_s) if self.interpreter else self.ours()
        except subprocess.TimeoutExpired:
            self.failed = f"not done in {patience_s:.0f} s"
        except subprocess.CalledProcessError as error:
            print(error.stderr.decode()[-2000:], file=sys.stderr)
            self.failed = "ended with an error"
        else:
            self.seconds.append(seconds)
            self.errors.append([mean_variation(self.rows, made, self.sizes, w) for w in (2, 3)])
        print(self.line(), file=sys.stderr, flush=True)

    def ours(self) -> tuple[np.ndarray, float]:
        from discreet.publication import Column, Records, Spend, synthesize

        columns = [Column(f"c{place}", size) for place, size in enumerate(self.sizes)]
        spend = Spend.approximate(str(self.epsilon), str(DELTA))
        start = time.thread_time()
        made = synthesize(Records(columns, self.rows), columns, spend, label=f"{len(self.errors)}")
        return made.rows, time.thread_time() - start

    def call(self, patience_s: float) -> tuple[np.ndarray, float]:
        from discreet.publication import Spend

        rho = float(Spend.approximate(str(self.epsilon), str(DELTA)).amount)
        told = {"name": self.system, "epsilon": self.epsilon, "rho": rho, "steps": self.steps}
        with tempfile.TemporaryDirectory() as folder:
            source, target = str(Path(folder) / "in.npz"), str(Path(folder) / "out.npz")
            np.savez(source, rows=self.rows, sizes=np.array(self.sizes))
            command = [self.interpreter, __file__, "--peer", source, target, json.dumps(told)]
            environment = {**os.environ, "PYTHONPATH": ""}
            subprocess.run(
                command, check=True, env=environment, timeout=patience_s, capture_output=True
            )
            held = np.load(target)
            return held["rows"], float(held["seconds"])

    def line(self) -> list[str]:
        start = [self.table, f"{self.epsilon:g}", self.system, str(self.steps or "–")]
        if not self.errors:
            return [*start, "0", self.failed, "", ""]
        pairs, triples = np.mean(self.errors, axis=0)
        least, most = np.min(self.errors, axis=0)[0], np.max(self.errors, axis=0)[0]
        spread = f"{least:.4f} to {most:.4f}" if len(self.errors) > 1 else ""
        seconds = f"{np.mean(self.seconds):.0f}"
        return [*start, str(len(self.errors)), f"{pairs:.4f} / {triples:.4f}", spread, seconds]


def draw_census(rows: int = 20_000, seed: int = 18):
    """Eight columns, each given up to two earlier ones: held out, nothing was tuned to it."""
    draw = np.random.default_rng(seed)
    sizes = {"age": 9, "sex": 2, "region": 12, "schooling": 6, "work": 10, "tenure": 4}
    sizes |= {"household": 5, "income": 8}
    parents = {"schooling": ("age", "sex"), "work": ("schooling", "region")}
    parents |= {"tenure": ("age", "region"), "household": ("age",), "income": ("work", "sex")}
    found: dict[str, np.ndarray] = {}
    for name, size in sizes.items():
        given, combinations = np.zeros(rows, dtype=np.int64), 1
        for parent in parents.get(name, ()):
            given = given * sizes[parent] + found[parent]
            combinations *= sizes[parent]
        laws = draw.dirichlet(np.full(size, 0.6), size=combinations).cumsum(axis=1)
        found[name] = np.minimum((draw.random(rows)[:, None] > laws[given]).sum(axis=1), size - 1)
    return list(sizes.values()), np.stack(list(found.values()), axis=1)


def prepare(folder: Path | None, interpreters: dict[str, str | None]) -> Iterator[list[Contest]]:
    """The contests in the order in which they matter, those of one table together."""
    from bench.publication import read_acs, read_adult

    everybody = {name: interpreters[name.split()[0]] for name in STEPS}
    one = {"dpmm mst": everybody["dpmm mst"]}
    trees = {**one, "opendp mst": everybody["opendp mst"]}

    def enter(table, sizes, rows, epsilons, peers):
        systems = {"ours": "", **{name: path for name, path in peers.items() if path}}
        return [
            Contest(table, sizes, rows, epsilon, system, path, steps)
            for epsilon in epsilons
            for system, path in systems.items()
            for steps in sorted({FEW.get(system, 0), STEPS.get(system, 0)})
        ]

    if folder is not None:
        columns, rows = read_adult(folder)
        names = [column.name for column in columns]
        places = [names.index(name) for name in SIX]
        sizes = [column.size for column in columns]
        six = [sizes[place] for place in places]
        yield enter("Adult, six columns", six, rows[:, places], EPSILONS, everybody)
    yield enter("held out, eight columns", *draw_census(), (0.1, 1.0), one)
    if folder is not None:
        yield enter("Adult, 14 columns", sizes, rows, EPSILONS, trees)
        columns, rows = read_acs(folder)
        yield enter("ACS, ten columns", [column.size for column in columns], rows, EPSILONS, trees)


def run_all(tables: list[list[Contest]], chosen: argparse.Namespace) -> None:
    """Ours and a release of each peer, table by table; then further ones of peers, in turns."""
    end = time.monotonic() + chosen.within

    def run(contest: Contest) -> None:
        contest.release(min(chosen.patience, end - time.monotonic()))

    contests = sorted((one for those in tables for one in those), key=lambda one: one.turn)
    peers = [one for one in contests if one.interpreter]
    ours = [
        one
        for one in contests
        if not one.interpreter
        for _ in range(3 if one.wide else chosen.releases)
    ]
    # Ours share a process, so that one at a time is as fast as several.
    with ThreadPoolExecutor(chosen.together) as pool, ThreadPoolExecutor(1) as own:
        runs = [own.map(run, ours), pool.map(run, peers * chosen.rounds)]
    for done in runs:
        list(done)  # Raises what a release raised.


def describe_lead(contests: list[Contest]) -> str:
    """Whether ours is ahead of every peer that ended, said of each table by the program itself."""
    ours = {one.epsilon: one for one in contests if one.errors and not one.interpreter}
    pairs = [
        (ours[one.epsilon], one)
        for one in contests
        if one.errors and one.interpreter and one.epsilon in ours
    ]
    behind = [
        f"{theirs.system} at ε = {theirs.epsilon:g}"
        for mine, theirs in pairs
        if not np.all(np.mean(mine.errors, axis=0) < np.mean(theirs.errors, axis=0))
    ]
    said = f"not ahead of {', '.join(behind)}" if behind else "ahead in pairs and in triples"
    return f"{contests[0].table}: beside {len(pairs)} results of others, ours is {said}."


def main() -> None:
    if "--peer" in sys.argv:
        run_peer(*sys.argv[sys.argv.index("--peer") + 1 :])
        return
    from bench.timing import table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("DISCREET_BENCH_DATA"))
    parser.add_argument("--dpmm", default=os.environ.get("DISCREET_BENCH_DPMM"))
    parser.add_argument("--opendp", default=os.environ.get("DISCREET_BENCH_OPENDP"))
    parser.add_argument("--releases", type=int, default=10, help="of ours; 3 if wide")
    parser.add_argument("--rounds", type=int, default=5, help="of the peers, while time is left")
    parser.add_argument("--patience", type=int, default=1200, help="seconds for one release")
    parser.add_argument("--within", type=int, default=1230, help="seconds for all")
    parser.add_argument("--together", type=int, default=3, help="how many at a time")
    chosen = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tables = list(
        prepare(
            Path(chosen.data) if chosen.data else None,
            {"dpmm": chosen.dpmm, "opendp": chosen.opendp},
        )
    )
    run_all(tables, chosen)
    tables = [those for those in tables if any(one.errors and one.interpreter for one in those)]
    heads = ["table", "ε at δ = 1e-9", "", "steps", "releases", "mean TV of pairs / triples"]
    heads += ["pairs, least to most", "CPU s"]
    for contests in tables:
        lines = [one.line() for one in contests if one.errors or one.failed]
        print(table(heads, lines), end="\n\n")
    print(*(describe_lead(contests) for contests in tables), sep="\n\n")


if __name__ == "__main__":
    main()
