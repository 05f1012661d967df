"""Quality monitoring in a hospital: hundreds of checks, paid only for the alarms."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa

import discreet

WARDS = [f"ward {number}" for number in range(1, 21)]
WEEKS = 26
START = date(2026, 1, 5)
SCHEMA = f"""
[tables.stays]
unit = "patient"
max_rows_per_unit = 2
[tables.stays.columns]
patient = "integer"
ward = {{ type = "text", values = {WARDS}, nullable = false }}
week = {{ type = "date", bounds = [2026-01-05, 2026-07-05], nullable = false }}
infection = "boolean"
"""
QUESTION = "SELECT ward, COUNT(*) FROM stays WHERE infection AND week = DATE '{week}' GROUP BY ward"


def make_stays(seed: int = 7) -> pa.Table:
    """About 500 stays a ward and week; an outbreak in ward 7 from the eighteenth week on."""
    draw = np.random.default_rng(seed)
    week, ward = (part.ravel() for part in np.indices((WEEKS, len(WARDS))))
    stays = draw.poisson(500, len(week))
    week, ward = np.repeat(week, stays), np.repeat(ward, stays)
    chance = np.where((ward == 6) & (week >= 17), 0.60, 0.02)
    return pa.table(
        {
            "patient": draw.integers(0, len(week), len(week)),
            "ward": pa.array([WARDS[number] for number in ward]),
            "week": pa.array([START + timedelta(7 * int(n)) for n in week], pa.date32()),
            "infection": draw.random(len(week)) < chance,
        }
    )


def main() -> None:
    alarms, asked = [], 0
    with (
        discreet.curator({"stays": make_stays()}, schema=SCHEMA, budget=2) as hospital,
        hospital.watch(threshold=150, epsilon=2, at_most=2, monotonic=True) as run,
    ):
        for number in range(WEEKS):
            if run.ended:
                break
            week = START + timedelta(7 * number)
            run.ask(QUESTION.format(week=week))
            alarms += [f"{week}: {verdict}" for verdict in run.transcript[asked:] if verdict]
            asked = len(run.transcript)
        spent = hospital.spent.epsilon
    print(*alarms, sep="\n")
    print(f"{asked} checks, {len(alarms)} alarms, ε = {spent}")


if __name__ == "__main__":
    main()
