"""A registry of births as synthetic rows: hospital research without the hospital's rows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import discreet

SCHEMA = """
[tables.births]
unit = "birth"                   # a mother and her newborn: one row
max_rows_per_unit = 1
[tables.births.columns]
birth = "integer"
month = { type = "integer", bounds = [1, 12], nullable = false }
mother_age = { type = "integer", bounds = [15, 50], nullable = false }
parity = { type = "integer", bounds = [1, 10], nullable = false }
weeks = { type = "integer", bounds = [24, 43], nullable = false }
sex = { type = "text", values = ["female", "male"], nullable = false }
grams = { type = "integer", bounds = [500, 5500], nullable = false }
"""


def make_births(births: int = 100_000, seed: int = 3) -> pd.DataFrame:
    """Older mothers have more children before; early births weigh less."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.normal(30, 5.5, births).round(), 15, 50).astype(int)
    parity = np.clip(1 + draw.poisson(np.maximum(age - 20, 0) / 9), 1, 10)
    weeks = np.clip((40.2 - draw.gamma(1.6, 0.9, births)).round(), 24, 43).astype(int)
    sex = draw.integers(0, 2, births)
    grams = 3350 + 130 * (weeks - 39) + 120 * sex + draw.normal(0, 400, births)
    return pd.DataFrame(
        {
            "birth": np.arange(births),
            "month": draw.integers(1, 13, births),
            "mother_age": age,
            "parity": parity,
            "weeks": weeks,
            "sex": np.array(["female", "male"])[sex],
            "grams": np.clip(grams, 500, 5500).astype(int),
        }
    )


def publish(births: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Rows of nobody, with the types and bounds of the schema, for a pure ε = 2."""
    with discreet.curator({"births": births}, schema=SCHEMA, budget=2) as ministry:
        ministry.keep_releases(folder)
        ministry.make_release("births_open", of="births", epsilon=2)
    return pd.read_parquet(folder / "births_open" / "rows.parquet")


def compare(births: pd.DataFrame, made: pd.DataFrame) -> pd.DataFrame:
    """What a researcher would compute, from the registry and from the open rows."""

    def study(rows: pd.DataFrame) -> dict[str, float]:
        slope = np.polyfit(rows["weeks"], rows["grams"], 1)[0]
        return {
            "births": len(rows),
            "before week 37, %": 100 * (rows["weeks"] < 37).mean(),
            "under 2500 g, %": 100 * (rows["grams"] < 2500).mean(),
            "mean age of first-time mothers": rows.loc[rows["parity"] == 1, "mother_age"].mean(),
            "grams a week more": slope,
            "boys heavier by": rows.groupby("sex")["grams"].mean().diff().iloc[-1],
        }

    return pd.DataFrame({"registry": study(births), "open": study(made)}).round(2)


def main() -> None:
    births = make_births()
    with TemporaryDirectory() as folder:
        made = publish(births, Path(folder))
    print(compare(births, made).to_string())


if __name__ == "__main__":
    main()
