"""Page views by country and page, where nobody can list the pages beforehand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

import discreet

SCHEMA = """
[tables.views]
unit = "visitor"                 # one device on one day
max_rows_per_unit = 10           # ten of its views, by hash
[tables.views.columns]
visitor = "integer"
country = { type = "text", values = ["DK", "IE", "NO", "PT"], nullable = false }
page = "text"                    # no list: which pages exist is itself private
"""
QUESTION = """
SELECT country, page, COUNT(DISTINCT visitor) AS readers FROM views
GROUP BY country, page ORDER BY readers DESC
"""


def make_views(visitors: int = 40_000, seed: int = 1) -> pa.Table:
    """A day of reading: popularity falls off as in an encyclopaedia, countries differ in taste."""
    draw = np.random.default_rng(seed)
    views = np.minimum(1 + draw.geometric(0.3, visitors), 30)
    visitor = np.repeat(np.arange(visitors), views)
    country = np.repeat(draw.choice(4, visitors, p=[0.4, 0.3, 0.2, 0.1]), views)
    rank = np.minimum(draw.zipf(1.3, len(visitor)), 20_000)
    page = np.where(rank % 5 == 0, rank + 100_000 * (1 + country), rank)  # some are read in one
    names = np.array(["DK", "IE", "NO", "PT"])[country]
    return pa.table(
        {"visitor": visitor, "country": names, "page": [f"page {number}" for number in page]}
    )


def publish(views: pa.Table) -> discreet.Answer:
    """Every page that enough people read, for ρ = 0.015 and a δ for the choice of the pages."""
    budget = discreet.Budget(epsilon=1, delta="1e-6")
    with discreet.curator({"views": views}, schema=SCHEMA, budget=budget) as curator:
        return curator.ask(QUESTION, rho="0.015", delta="1e-7")


def count_readers(views: pa.Table, shown: pd.DataFrame) -> list[int]:
    """Everybody who read a page, also those of whom ten other views are counted."""
    readers = views.to_pandas().groupby(["country", "page"])["visitor"].nunique()
    return [int(readers[row.country, row.page]) for row in shown.itertuples()]


def count_beyond(views: pa.Table, most: int = 10) -> int:
    """How many rows are left out, since ten others of the same device are counted."""
    return int((views.to_pandas().groupby("visitor").size() - most).clip(lower=0).sum())


def main() -> None:
    views = make_views()
    answer = publish(views)
    keys = ("country", "page")
    pages = views.group_by(keys).aggregate([]).num_rows
    read = views.group_by(("visitor", *keys)).aggregate([]).num_rows
    shown = answer.to_pandas(margins=True)
    shown["truth"] = count_readers(views, shown)  # known here, since the data are made up
    within = (shown["readers_low"] <= shown["truth"]) & (shown["truth"] <= shown["readers_high"])
    print(shown.head(6).to_string(index=False))
    print(f"truth within the margin: {within.sum()} of {len(shown)} pages")
    print(f"views beyond ten of a device, not counted: {count_beyond(views)} of {len(views)}")
    print(f"shown: {len(answer.rows)} of {pages} pages")
    print(f"readings on them: {sum(answer.column('readers')) / read:.0%}")
    print(*answer.notes, sep="\n")


if __name__ == "__main__":
    main()
