"""A census: counts of persons from the region down to the street block, which all add up."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import discreet

LEVELS = ["region", "county", "tract", "block"]  # each numbered within the one before, as usual
TOTALS = {"North": 29_000, "South": 31_000}  # from the register of residents: public already
SCHEMA = """
[tables.persons]
unit = "person"
max_rows_per_unit = 1
[tables.persons.columns]
person = "integer"
region = { type = "text", values = ["North", "South"], nullable = false }
county = { type = "integer", bounds = [1, 5], nullable = false }
tract = { type = "integer", bounds = [1, 10], nullable = false }
block = { type = "text", values = ["a", "b", "c", "d", "e"], nullable = false }
"""


def make_persons(seed: int = 2) -> pd.DataFrame:
    """People in 500 blocks, a few of them large, some empty."""
    draw = np.random.default_rng(seed)
    parts = []
    for region, persons in TOTALS.items():
        weights = draw.lognormal(0, 1.3, 250) * (draw.random(250) > 0.1)
        county, tract, block = np.unravel_index(
            draw.choice(250, persons, p=weights / weights.sum()), (5, 10, 5)
        )
        part = {"county": county + 1, "tract": tract + 1, "block": np.array(list("abcde"))[block]}
        parts.append(pd.DataFrame({"region": region, **part}))
    return pd.concat(parts, ignore_index=True).rename_axis("person").reset_index()


def publish(persons: pd.DataFrame, folder: Path) -> dict[str, pd.DataFrame]:
    """Every level of the tree in one release, for ε = 1 in all; the totals are kept exactly."""
    with discreet.curator({"persons": persons}, schema=SCHEMA, budget=1) as office:
        office.keep_releases(folder)
        office.make_release(
            "census", kind="hierarchy", of="persons", by=LEVELS, totals=TOTALS, epsilon=1
        )
    names = {level: "_".join(LEVELS[: place + 1]) for place, level in enumerate(LEVELS)}
    tables = folder / "census" / "tables"
    return {level: pd.read_parquet(tables / f"{name}.parquet") for level, name in names.items()}


def main() -> None:
    persons = make_persons()
    with TemporaryDirectory() as folder:
        published = publish(persons, Path(folder))
    print("level    areas  persons  mean error  margin (95 %)")
    for place, (level, table) in enumerate(published.items()):
        keys = LEVELS[: place + 1]
        counts = table.set_index(keys)["n"]
        truth = persons.groupby(keys).size().reindex(counts.index, fill_value=0)
        off, margin = (counts - truth).abs().mean(), table["margin"].mean()
        print(f"{level:7} {len(counts):6} {counts.sum():8} {off:11.1f} {margin:14.1f}")


if __name__ == "__main__":
    main()
