"""An audience API: the ten most read topics of any audience, from a budget that each day renews."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa

import discreet

TOPICS = [f"topic {number}" for number in range(200)]
SCHEMA = f"""
[tables.clicks]
unit = ["member", "day"]
max_rows_per_unit = 5
blocks = ["day"]
[tables.clicks.columns]
member = "integer"
day = {{ type = "date", bounds = [2026-05-04, 2026-05-08] }}
job = {{ type = "text", values = ["engineer", "nurse", "teacher"], nullable = false }}
topic = {{ type = "text", values = {TOPICS}, nullable = false }}
"""
AUDIENCE = """
SELECT topic, COUNT(DISTINCT member) AS readers FROM clicks
WHERE day = DATE '{day}' AND job = '{job}'
GROUP BY topic ORDER BY readers DESC LIMIT 10
"""


def make_clicks(members: int = 30_000, seed: int = 6) -> pa.Table:
    """A working week; each profession has its favourites."""
    draw = np.random.default_rng(seed)
    job = draw.integers(0, 3, members)
    clicks = draw.poisson(0.8, (5, members))
    day, member = (np.repeat(part.ravel(), clicks.ravel()) for part in np.indices((5, members)))
    topic = (np.minimum(draw.zipf(1.4, len(member)), 200) - 1 + 17 * job[member]) % 200
    return pa.table(
        {
            "member": member,
            "day": pa.array([date(2026, 5, 4 + int(number)) for number in day], pa.date32()),
            "job": np.array(["engineer", "nurse", "teacher"])[job[member]],
            "topic": pa.array([TOPICS[number] for number in topic]),
        }
    )


def main() -> None:
    clicks = make_clicks()
    with discreet.curator({"clicks": clicks}, schema=SCHEMA, budget=1) as network:
        monday = network.ask(AUDIENCE.format(day="2026-05-04", job="nurse"), epsilon="0.4")
        print(monday.to_pandas(margins=True).head(3).to_string(index=False))
        network.ask(AUDIENCE.format(day="2026-05-04", job="teacher"), epsilon="0.4")
        try:
            network.ask(AUDIENCE.format(day="2026-05-04", job="engineer"), epsilon="0.4")
        except discreet.Refusal as refusal:
            print(refusal.code, "on Monday:", refusal.what)
        tuesday = network.ask(AUDIENCE.format(day="2026-05-05", job="engineer"), epsilon="0.4")
        print("on Tuesday:", tuesday.column("topic")[0])


if __name__ == "__main__":
    main()
