"""Linear regression of many columns: ours against AdaSSP and diffprivlib, on the same data.

    python -m bench.fitting --acs acs_national2019.csv [--runs 20]

Log-income on age, sex and education of everybody in the file with an income.  All get the same
public bounds.  R² is that of the whole data for the released coefficients; means over the runs.
AdaSSP (Wang 2018, Algorithm 2) has Gaussian noise and so a δ, 10⁻⁶ here; ours and diffprivlib are
pure.  diffprivlib is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
import pandas as pd

import discreet
from bench.timing import find_data, table

BOUNDS = {"y": (4.0, 14.5), "age": (0.0, 99.0), "sex": (1.0, 2.0), "edu": (1.0, 13.0)}
DELTA = 1e-6
SCHEMA = """
[tables.people]
unit = "row"
columns.y = { type = "decimal", bounds = [4, 14.5] }
columns.age = { type = "integer", bounds = [0, 99] }
columns.sex = { type = "integer", bounds = [1, 2] }
columns.edu = { type = "integer", bounds = [1, 13] }
"""


def read(path: str) -> pd.DataFrame:
    """Everybody with an income."""
    found = pd.read_csv(path, usecols=["AGEP", "SEX", "EDU", "PINCP"])
    numbers = found.apply(pd.to_numeric, errors="coerce").dropna()
    people = numbers[numbers.PINCP > 0]
    whole = {"age": people.AGEP, "sex": people.SEX, "edu": people.EDU}
    return pd.DataFrame({"y": np.log(people.PINCP), **{n: c.astype(int) for n, c in whole.items()}})


def r_squared(people: pd.DataFrame, coefficients: np.ndarray) -> float:
    """How much of the variance of y the coefficients explain."""
    y = people.y.to_numpy()
    told = coefficients[0] + people[["age", "sex", "edu"]].to_numpy() @ coefficients[1:]
    return float(1 - ((y - told) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def ours(people: pd.DataFrame, epsilon: float) -> np.ndarray:
    """``REGR`` through ``ask``."""
    with discreet.curator({"people": people}, schema=SCHEMA, budget=2) as curator:
        answer = curator.ask("SELECT REGR(y, age, sex, edu) FROM people", epsilon=str(epsilon))
        return np.array([float(value) for value in answer.rows[0].values])


def adassp(people: pd.DataFrame, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """AdaSSP on columns scaled into the unit ball, intercept and all; change-one not doubled."""
    names = list(BOUNDS)
    ends = np.array([BOUNDS[name] for name in names])
    middle, half = ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2
    scaled = (people[names].to_numpy() - middle) / half
    x = np.c_[np.ones(len(scaled)), scaled[:, 1:]] / 2  # four numbers of at most 1/2: norm 1
    y = scaled[:, 0]
    spread = math.sqrt(math.log(6 / DELTA)) / (epsilon / 3)
    gram = x.T @ x
    least = max(np.linalg.eigvalsh(gram)[0], 0.0)
    least += spread * rng.normal() - math.log(6 / DELTA) / (epsilon / 3)
    size = x.shape[1]
    rho = 0.05
    need = math.sqrt(size * math.log(6 / DELTA) * math.log(2 * size**2 / rho)) / (epsilon / 3)
    ridge = max(0.0, need - max(least, 0.0))
    noise = np.triu(rng.normal(size=(size, size)))
    gram = gram + spread * (noise + noise.T - np.diag(np.diag(noise)))
    side = x.T @ y + spread * rng.normal(size=size)
    solved = np.linalg.solve(gram + ridge * np.eye(size), side) / 2
    slopes = half[0] * solved[1:] / half[1:]
    return np.array([middle[0] + half[0] * solved[0] - slopes @ middle[1:], *slopes])


def diffprivlib(people: pd.DataFrame, epsilon: float) -> np.ndarray | None:
    """Its ``LinearRegression`` with the same bounds."""
    try:
        from diffprivlib.models import LinearRegression
    except ImportError:
        return None
    ends = np.array([BOUNDS[name] for name in ("age", "sex", "edu")]).T
    model = LinearRegression(epsilon=epsilon, bounds_X=(ends[0], ends[1]), bounds_y=BOUNDS["y"])
    model.fit(people[["age", "sex", "edu"]].to_numpy(dtype=float), people.y.to_numpy())
    return np.array([float(np.ravel(model.intercept_)[0]), *np.ravel(model.coef_)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--acs", metavar="FILE", default=find_data("acs_national2019.csv"))
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    if options.acs is None:
        sys.exit("pass --acs FILE: the data are not part of this repository")
    people = read(options.acs)
    rng = np.random.default_rng(1)
    exact = np.linalg.lstsq(
        np.c_[np.ones(len(people)), people[["age", "sex", "edu"]]], people.y, rcond=None
    )[0]
    rows = []
    for epsilon in (1.0, 0.1):
        makers = {
            "discreet, REGR": lambda e=epsilon: ours(people, e),
            "AdaSSP, δ = 10⁻⁶": lambda e=epsilon: adassp(people, e, rng),
            "diffprivlib": lambda e=epsilon: diffprivlib(people, e),
        }
        for name, make in makers.items():
            found = [make() for _ in range(options.runs)]
            told = [r_squared(people, one) for one in found if one is not None]
            if told:
                middle = float(np.median(told))
                rows.append([name, f"{epsilon:g}", f"{np.mean(told):.4f}", f"{middle:.4f}"])
    text = table(["regression", "ε", "R², mean", "R², median"], rows)
    print(f"{len(people):,} people; without noise R² = {r_squared(people, exact):.4f}\n\n{text}")


if __name__ == "__main__":
    main()
