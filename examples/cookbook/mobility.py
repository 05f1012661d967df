"""Mobility over time: how visits to kinds of places change from week to week."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa

import discreet

START = date(2026, 1, 5)
PLACES = ["home", "work", "shop", "park", "station"]
SCHEMA = f"""
[tables.visits]
unit = ["phone", "day"]          # one phone on one day: what is promised is said below
max_rows_per_unit = 4            # at most four kinds of places a day
blocks = ["day"]                 # every day has a budget of its own
[tables.visits.columns]
phone = "integer"
day = {{ type = "date", bounds = [2026-01-05, 2026-03-01] }}
place = {{ type = "text", values = {PLACES}, nullable = false }}
"""
# The inner question is released; the comparison with a week ago is arithmetic, and free.
QUESTION = """
WITH daily AS (
  SELECT day, place, COUNT(DISTINCT phone) AS n FROM visits GROUP BY day, place
)
SELECT day, place, n,
       n / LAG(n, 7) OVER (PARTITION BY place ORDER BY day) - 1 AS change
FROM daily ORDER BY day, place
"""


def make_visits(phones: int = 3_000, seed: int = 4) -> pa.Table:
    """Eight weeks; from the fifth on people stay at home more."""
    draw = np.random.default_rng(seed)
    days = 56
    chance = np.tile([0.9, 0.6, 0.4, 0.2, 0.3], (days, 1))
    chance[np.arange(days) % 7 >= 5] = [0.95, 0.1, 0.5, 0.35, 0.15]
    chance[28:] *= [1.03, 0.55, 0.8, 1.3, 0.5]
    seen = draw.random((days, phones, len(PLACES))) < np.minimum(chance, 1)[:, None, :]
    day, phone, place = np.nonzero(seen)
    dates = [START + timedelta(int(number)) for number in range(days)]
    return pa.table(
        {
            "phone": phone,
            "day": pa.array([dates[number] for number in day], pa.date32()),
            "place": pa.array([PLACES[number] for number in place]),
        }
    )


def publish(visits: pa.Table) -> discreet.Answer:
    """Every day and place, for ε = 1/2 of that day's budget, and the change within a week."""
    with discreet.curator({"visits": visits}, schema=SCHEMA, budget="1/2") as operator:
        return operator.ask(QUESTION, epsilon="1/2")


def main() -> None:
    answer = publish(make_visits())
    shown = answer.to_pandas(margins=True).set_index("day")
    print(shown.loc[START + timedelta(28)].to_string())


if __name__ == "__main__":
    main()
