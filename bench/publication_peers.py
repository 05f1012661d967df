"""Synthetic tables beside those of others, in one run: the same table, the same price, one measure.

``python -m bench publication-peers`` with the folder of the data in DISCREET_BENCH_DATA, and the
interpreters of an environment in which ``dpmm`` is installed and of one with ``opendp[mbi]`` and
pandas in DISCREET_BENCH_DPMM and DISCREET_BENCH_OPENDP: their packages want other versions than
ours, and no test needs them.  All columns are coded categories without a declared order, as these
systems take them.  One release at a time; each may use so many seconds of processor (``--limit``),
however busy the machine is, and one that needs more is told as such.

With ``--kept FILE`` (or DISCREET_BENCH_KEPT) every release is written down when it ends, and a run
that was interrupted goes on: the tables are then those of all its parts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

DELTA = 1e-9
MEASURED = 0.875
"""What OpenDP's MST measures with: its nine tenths, in eighths, which doubles can hold."""
EPSILONS = (0.1, 1.0, 3.0, 10.0)
SIX = ("workclass", "marital-status", "relationship", "race", "sex", "income>50K")
STEPS = {"dpmm mst": 1000, "opendp mst": 1000, "dpmm aim": 1000}
"""Of a peer's fit: as many as mbi's ``mirror_descent`` and ``AIMGM`` take when nobody says;
``MSTGM`` takes five thousand."""


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
    """Each column's last level is handed over as the NULL that it adds to every list of keys."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{place}" for place in range(len(sizes))]
    rho = round_for_opendp(rho, len(sizes) - 1)
    frame = pl.DataFrame({name: rows[:, place] for place, name in enumerate(names)}).with_columns(
        pl.when(pl.col(name) < size - 1).then(pl.col(name)).alias(name)
        for name, size in zip(names, sizes, strict=True)
    )
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = (
        context.query(rho=rho)
        .select(*names)
        .contingency_table(
            keys={name: list(range(size - 1)) for name, size in zip(names, sizes, strict=True)},
            algorithm=dp.mbi.MST(measure_split=MEASURED),
        )
        .release()
    )
    found = table.synthesize(rows=len(rows))
    lasts = [found[name].fill_null(size - 1) for name, size in zip(names, sizes, strict=True)]
    return np.stack([one.to_numpy() for one in lasts], axis=1).astype(np.int64)


def run_peer(source: str, target: str, told: str) -> None:
    held, asked = np.load(source), json.loads(told)
    rows, sizes = held["rows"], held["sizes"].tolist()
    resource.setrlimit(resource.RLIMIT_CPU, (asked["limit"], asked["limit"] + 5))
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
    errors: list[list[float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def key(self) -> list[str]:
        return [self.table, f"{self.epsilon:g}", self.system]

    @property
    def ended(self) -> int:
        return len(self.errors)

    def release(self, limit_s: int, patience_s: float) -> dict[str, object]:
        """One more release: its errors and seconds of processor, or why there are none."""
        from bench.publication import mean_variation

        try:
            made, seconds = self.call(limit_s, patience_s) if self.interpreter else self.ours()
        except subprocess.TimeoutExpired:
            return {}  # The run is over, which says nothing of the peer.
        except subprocess.CalledProcessError as error:
            if error.returncode in (-24, -9):  # SIGXCPU, and SIGKILL five seconds after it
                return {"failed": f"not done in {limit_s} s of processor"}
            print(error.stderr.decode()[-2000:], file=sys.stderr)
            return {"failed": "ended with an error"}
        errors = [mean_variation(self.rows, made, self.sizes, ways) for ways in (2, 3)]
        return {"errors": errors, "seconds": seconds}

    def take(self, told: dict[str, object]) -> None:
        """Add what a release came to, now or in an earlier part of the run."""
        if "failed" in told:
            self.failed = str(told["failed"])
        elif "errors" in told:
            self.errors.append(told["errors"])  # type: ignore[arg-type]
            self.seconds.append(told["seconds"])  # type: ignore[arg-type]

    def ours(self) -> tuple[np.ndarray, float]:
        from discreet.publication import Column, Records, Spend, synthesize

        columns = [Column(f"c{place}", size) for place, size in enumerate(self.sizes)]
        spend = Spend.approximate(str(self.epsilon), str(DELTA))
        start = time.process_time()
        made = synthesize(Records(columns, self.rows), columns, spend, label=f"{self.ended}")
        return made.rows, time.process_time() - start

    def call(self, limit_s: int, patience_s: float) -> tuple[np.ndarray, float]:
        from discreet.publication import Spend

        rho = float(Spend.approximate(str(self.epsilon), str(DELTA)).amount)
        told = {"name": self.system, "epsilon": self.epsilon, "rho": rho}
        told |= {"steps": STEPS[self.system], "limit": limit_s}
        with tempfile.TemporaryDirectory() as folder:
            source, target = str(Path(folder) / "in.npz"), str(Path(folder) / "out.npz")
            np.savez(source, rows=self.rows, sizes=np.array(self.sizes))
            command = [self.interpreter, __file__, "--peer", source, target, json.dumps(told)]
            subprocess.run(
                command,
                check=True,
                env={**os.environ, "PYTHONPATH": ""},
                timeout=patience_s,
                capture_output=True,
            )
            held = np.load(target)
            return held["rows"], float(held["seconds"])

    def line(self) -> list[str]:
        start = [*self.key, str(self.ended)]
        if not self.errors:
            return [*start, self.failed, "", ""]
        pairs, triples = np.mean(self.errors, axis=0)
        least, most = np.min(self.errors, axis=0)[0], np.max(self.errors, axis=0)[0]
        spread = f"{least:.4f} to {most:.4f}" if self.ended > 1 else ""
        seconds = f"{np.mean(self.seconds):.0f}" if self.interpreter else f"{self.seconds[-1]:.1f}"
        return [*start, f"{pairs:.4f} / {triples:.4f}", spread, seconds]


def prepare(folder: Path | None, interpreters: dict[str, str | None]) -> Iterator[list[Contest]]:
    """The contests in the order in which they matter, those of one table together."""
    from bench.held_out import draw_census, draw_contracts, draw_habits
    from bench.publication import read_acs, read_adult

    found = {name: interpreters[name.split()[0]] for name in STEPS}
    systems = {"ours": "", **{name: path for name, path in found.items() if path}}

    def enter(table: str, sizes: list[int], rows: np.ndarray) -> list[Contest]:
        return [
            Contest(table, sizes, rows, epsilon, system, path)
            for epsilon in EPSILONS
            for system, path in systems.items()
        ]

    if folder is not None:
        columns, rows = read_adult(folder)
        names = [column.name for column in columns]
        places = [names.index(name) for name in SIX]
        sizes = [column.size for column in columns]
        yield enter("Adult, six columns", [sizes[place] for place in places], rows[:, places])
    yield enter("contracts, held out", *draw_contracts())
    yield enter("habits, held out", *draw_habits())
    if folder is not None:
        yield enter("Adult, 14 columns", sizes, rows)
        columns, rows = read_acs(folder)
        yield enter("ACS, ten columns", [column.size for column in columns], rows)
    yield enter("census, held out", *draw_census())


def run_all(contests: list[Contest], chosen: argparse.Namespace) -> None:
    """A release of each, then a further one of each, as far as there is time."""
    end = time.monotonic() + chosen.within
    for done in range(max(chosen.releases, chosen.rounds)):
        for contest in contests:
            wanted = chosen.rounds if contest.interpreter else chosen.releases
            left = end - time.monotonic()
            if contest.failed or not contest.ended <= done < wanted or left < 1:
                continue
            told = contest.release(chosen.limit, left)
            if not told:
                continue
            contest.take(told)
            print(contest.line(), file=sys.stderr, flush=True)
            if chosen.kept:
                with Path(chosen.kept).open("a") as file:
                    file.write(json.dumps({"key": contest.key, **told, "of": name_code()}) + "\n")


def name_code() -> str:
    """The state of ours that a release was made with, and of what measures."""
    from bench.timing import read_commit

    return read_commit()


def read_kept(path: str | None, contests: list[Contest]) -> list[str]:
    """Give every contest its releases of earlier parts; of which commits ours were."""
    if not path or not Path(path).exists():
        return []
    held = {tuple(contest.key): contest for contest in contests}
    commits = []
    for line in Path(path).read_text().splitlines():
        told = json.loads(line)
        if tuple(told["key"]) in held:
            held[tuple(told["key"])].take(told)
            commits.append(told["of"])
    return list(dict.fromkeys(commits))


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("DISCREET_BENCH_DATA"))
    parser.add_argument("--dpmm", default=os.environ.get("DISCREET_BENCH_DPMM"))
    parser.add_argument("--opendp", default=os.environ.get("DISCREET_BENCH_OPENDP"))
    parser.add_argument("--kept", default=os.environ.get("DISCREET_BENCH_KEPT"))
    parser.add_argument("--only", default="", help="a part of the tables' names")
    parser.add_argument("--systems", default="", help="some of them, with commas between")
    parser.add_argument("--epsilons", default="", help="some of them, with commas between")
    parser.add_argument("--releases", type=int, default=5, help="of ours")
    parser.add_argument("--rounds", type=int, default=2, help="of the peers")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds for one of a peer")
    parser.add_argument("--within", type=int, default=36_000, help="seconds for all")
    chosen = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    tables = list(
        prepare(
            Path(chosen.data) if chosen.data else None,
            {"dpmm": chosen.dpmm, "opendp": chosen.opendp},
        )
    )
    commits = read_kept(chosen.kept, [one for those in tables for one in those])
    run_all(
        [
            one
            for those in tables
            for one in those
            if chosen.only in one.table
            and (not chosen.systems or one.system in chosen.systems.split(","))
            and (not chosen.epsilons or f"{one.epsilon:g}" in chosen.epsilons.split(","))
        ],
        chosen,
    )
    show(tables, commits)


def show(tables: list[list[Contest]], commits: list[str]) -> None:
    from bench.timing import table

    heads = ["table", "ε at δ = 1e-9", "", "releases", "mean TV of pairs / triples"]
    heads += ["pairs, least to most", "CPU s"]
    tables = [those for those in tables if any(one.errors and one.interpreter for one in those)]
    for contests in tables:
        lines = [one.line() for one in contests if one.errors or one.failed]
        print(table(heads, lines), end="\n\n")
    print(*(describe_lead(contests) for contests in tables), sep="\n\n")
    if commits:
        print(f"\nIn parts, of commit {', '.join(commits)}.")


if __name__ == "__main__":
    main()
