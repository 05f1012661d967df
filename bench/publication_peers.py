"""Synthetic tables beside those of others, in one run: the same table, the same price, one measure.

``python -m bench.publication_peers --data FOLDER --dpmm PYTHON --opendp PYTHON`` with the
interpreter of an environment in which ``dpmm`` is installed, and of one with ``opendp[mbi]``: their
packages want other versions than ours, and no test needs them.  All columns are coded
categories without a declared order, as these systems take them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DELTA = 1e-9


# --- in the peer's environment ------------------------------------------------------------------


def run_dpmm(rows: np.ndarray, sizes: list[int], epsilon: float, kind: str) -> np.ndarray:
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    names = [f"c{place}" for place in range(len(sizes))]
    frame = pd.DataFrame(rows, columns=names)
    if kind == "mst":
        looks = int(os.environ.get("BENCH_LOOKS", "10000"))
        model = MSTGM(epsilon=epsilon, delta=DELTA, n_iters=looks, n_jobs=1)
    else:
        looks = int(os.environ.get("BENCH_LOOKS", "1000"))
        model = AIMGM(epsilon=epsilon, delta=DELTA, max_model_size=1, n_iters=looks, n_jobs=1)
    model.set_domain(dict(zip(names, sizes, strict=True)))
    model.fit(frame)
    return model.generate(n_records=len(rows))[names].to_numpy().astype(np.int64)


def run_opendp(rows: np.ndarray, sizes: list[int]) -> np.ndarray:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    names = [f"c{place}" for place in range(len(sizes))]
    # Rounded down to 16 binary places, and divided by eighths: its budget is checked in doubles.
    rho = int(json.loads(os.environ["BENCH_RHO"]) * 2**16) / 2**16
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
            algorithm=dp.mbi.MST(measure_split=0.875),
        )
        .release()
    )
    found = table.synthesize(rows=len(rows))
    drawn = np.stack([found[name].fill_null(0).to_numpy() for name in names], axis=1)
    return np.minimum(drawn.astype(np.int64), np.array(sizes) - 1)


def run_peer(name: str, source: str, epsilon: float, target: str) -> None:
    held = np.load(source)
    rows, sizes = held["rows"], held["sizes"].tolist()
    start = time.process_time()
    if name == "opendp mst":
        made = run_opendp(rows, sizes)
    else:
        made = run_dpmm(rows, sizes, epsilon, name.split()[1])
    np.savez(target, rows=made, seconds=time.process_time() - start)


# --- in ours ------------------------------------------------------------------------------------


def call_peer(
    name: str, interpreter: str, rows: np.ndarray, sizes: list[int], epsilon: float, patience_s: int
) -> tuple[np.ndarray, float] | None:
    from discreet.publication import Spend

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, rows=rows, sizes=np.array(sizes))
        rho = float(Spend.approximate(str(epsilon), str(DELTA)).amount)
        command = [interpreter, __file__, "--peer", name, str(source), str(epsilon), str(target)]
        environment = {**os.environ, "BENCH_RHO": json.dumps(rho), "PYTHONPATH": ""}
        try:
            subprocess.run(
                command, check=True, env=environment, timeout=patience_s, capture_output=True
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            print(name, repr(error)[:80], (error.stderr or b"")[-300:], file=sys.stderr)
            return None
        held = np.load(target)
        return held["rows"], float(held["seconds"])


def compare(name: str, coded, epsilon: float, peers: dict[str, str], patience_s: int) -> list:
    from bench.publication import mean_variation
    from discreet.publication import Column, Records, Spend, synthesize

    columns, rows = coded
    plain = [Column(one.name, one.size) for one in columns]
    sizes = [one.size for one in columns]

    def measure(made: np.ndarray) -> str:
        return " / ".join(f"{mean_variation(rows, made, sizes, ways):.4f}" for ways in (2, 3))

    spend = Spend.approximate(str(epsilon), str(DELTA))
    start = time.process_time()
    made = synthesize(Records(plain, rows), plain, spend, label="peers")
    found = [
        [name, f"{epsilon:g}", "ours", measure(made.rows), f"{time.process_time() - start:.0f}"]
    ]
    for peer, interpreter in peers.items():
        told = call_peer(peer, interpreter, rows, sizes, epsilon, patience_s)
        if told is None:
            found.append([name, f"{epsilon:g}", peer, f"not done in {patience_s} s", ""])
        else:
            found.append([name, f"{epsilon:g}", peer, measure(told[0]), f"{told[1]:.0f}"])
        print(found[-1], file=sys.stderr, flush=True)
    return found


def choose_columns(coded, names: list[str]):
    """The same rows with some of their columns."""
    columns, rows = coded
    places = [[one.name for one in columns].index(name) for name in names]
    return [columns[place] for place in places], rows[:, places]


def main() -> None:
    if "--peer" in sys.argv:
        name, source, epsilon, target = sys.argv[sys.argv.index("--peer") + 1 :]
        run_peer(name, source, float(epsilon), target)
        return
    from bench.publication import made_up, read_acs, read_adult
    from bench.timing import table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=os.environ.get("DISCREET_BENCH_DATA"))
    parser.add_argument("--dpmm")
    parser.add_argument("--opendp")
    parser.add_argument("--epsilons", default="0.1,1,3,10")
    parser.add_argument("--tables", default="acs,adult")
    parser.add_argument("--peers", default="dpmm mst,dpmm aim,opendp mst")
    parser.add_argument("--columns", help="of the tables, with commas between; else all")
    parser.add_argument("--patience", type=int, default=600)
    chosen = parser.parse_args()
    interpreters = {"dpmm": chosen.dpmm, "opendp": chosen.opendp}
    peers = {
        name: interpreters[name.split()[0]]
        for name in chosen.peers.split(",")
        if interpreters[name.split()[0]]
    }
    folder = Path(chosen.data) if chosen.data else None
    readers = {"acs": read_acs, "adult": read_adult}
    tables = (
        [("made up", made_up())]
        if folder is None
        else [(name, readers[name](folder)) for name in chosen.tables.split(",")]
    )
    if chosen.columns:
        tables = [
            (name, choose_columns(coded, chosen.columns.split(","))) for name, coded in tables
        ]
    lines = [
        line
        for name, coded in tables
        for epsilon in map(float, chosen.epsilons.split(","))
        for line in compare(name, coded, epsilon, peers, chosen.patience)
    ]
    heads = ["table", "ε at δ = 1e-9", "", "mean TV of pairs / triples", "CPU s"]
    print(table(heads, lines))


if __name__ == "__main__":
    main()
