"""The least noise: one number by a staircase, a sum by itself, Gaussian noise to what is offered.

``python -m bench.least --acs acs.csv`` also asks for medians of incomes (column PINCP) that are
declared to be rounded to 100, and compares them with the median of the file.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from bench.keys import analytic_sigma
from bench.timing import find_data
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price.calibration import buy_calibrated, buy_pure
from discreet.price.plan import Moves, Sensitivity

DRAWS, MEDIANS = 200_000, 200


def mean_error(mechanism: Laplace | Staircase | Gaussian) -> float:
    """E|error| of one number, over many draws."""
    zeros = np.zeros(DRAWS, dtype=np.int64)
    return float(np.abs(mechanism.release(zeros, exact=True).astype(float)).mean())


def show_staircases() -> None:
    print("\n| one number | Laplace, mean error | bought | its mean error | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name, most, epsilon in (
        ("SUM of ages [0, 120], ε = 5", 120, 5),
        ("COUNT of 10 rows a person, ε = 5", 10, 5),
        ("SUM of ages [0, 120], ε = 2", 120, 2),
        ("SUM with bounds [-60, 60], ε = 1", 60, 1),
    ):
        bought = buy_pure(Fraction(epsilon), Sensitivity(most, most**2), 1)
        if bought is None:
            raise TypeError(name)
        plain = mean_error(Laplace(sensitivity=most, epsilon=epsilon))
        found = mean_error(bought)
        kind = type(bought).__name__
        print(f"| {name} | {plain:.2f} | {kind} | {found:.2f} | {found / plain:.2f} |", flush=True)


def show_gaussians() -> None:
    print(
        "\n| Gaussian noise, against the analytic variance | (0.1, 1e-5) | (1, 1e-5) | (1, 1e-9) "
        "| (3, 1e-5) | (3, 1e-9) | (10, 1e-5) |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    prices = (
        ("0.1", "1e-5"),
        ("1", "1e-5"),
        ("1", "1e-9"),
        ("3", "1e-5"),
        ("3", "1e-9"),
        ("10", "1e-5"),
    )
    for k in (1, 2, 3, 5, 10, 20, 50):
        line = []
        moves = Moves(k, (k, 1), k - 1) if k > 1 else Moves(1)
        for epsilon, delta in prices:
            bought = buy_calibrated(Fraction(epsilon), Fraction(delta), Sensitivity(k, k), moves)
            if bought is None:
                raise TypeError(k)
            best = k * analytic_sigma(float(epsilon), float(delta)) ** 2
            line.append(f"{bought.variance / best:.4f}")
        print(f"| people counted in {k} groups each | " + " | ".join(line) + " |", flush=True)


def show_medians(path: str) -> None:
    """Medians of incomes through ``ask``, with and without the declared step."""
    import pandas as pd

    import discreet

    frame = pd.read_csv(path, usecols=["PINCP"])
    frame = frame[pd.to_numeric(frame["PINCP"], errors="coerce").notna()].astype(float)
    frame["PINCP"] = frame["PINCP"].astype(int)
    frame["id"] = range(len(frame))
    true = float(np.median(frame["PINCP"]))
    print(f"\n| median of {len(frame):,} ACS incomes, mean error of {MEDIANS} | ε = 1 | ε = 0.1 |")
    print("| --- | --- | --- |")
    for name, step in (("declared step of 100", ", step = 100"), ("no step", "")):
        schema = discreet.Schema.from_text(f"""
            [tables.acs]
            unit = "id"
            max_rows_per_unit = 1
            [tables.acs.columns]
            id = "integer"
            PINCP = {{ type = "integer", bounds = [0, 1000000]{step}, nullable = false }}
        """)
        errors = []
        with discreet.curator({"acs": frame}, schema=schema, budget=1000) as curator:
            for epsilon in (Fraction(1), Fraction(1, 10)):
                found = [
                    curator.ask(
                        "SELECT MEDIAN(PINCP) AS m FROM acs", epsilon=epsilon + Fraction(run, 10**7)
                    ).value()
                    for run in range(MEDIANS)
                ]
                errors.append(float(np.mean(np.abs(np.array(found, dtype=float) - true))))
        print(f"| {name} | {errors[0]:.1f} | {errors[1]:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acs", default=find_data("acs_national2019.csv"), help="incomes, as CSV")
    chosen = parser.parse_args()
    show_staircases()
    show_gaussians()
    if chosen.acs:
        show_medians(chosen.acs)


if __name__ == "__main__":
    main()
