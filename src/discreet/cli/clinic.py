"""A made-up clinic: what ``discreet demo`` asks about and ``discreet init --sample`` starts with.

Two tables about the same people: each patient lives in one city, and comes one
to three times.  Nobody in them exists.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.noise import discrete_gaussian, geometric, uniform_below

CITIES = ("Aalborg", "Bergen", "Cork", "Delft", "Elblag", "Faro", "Ghent", "Hamar")
REASONS = ("accident", "check-up", "illness")
MOST_VISITS = 3
PATIENTS = 20_000

SETTINGS = f"""\
# A made-up clinic.  Everything in this file is public: it says who is protected, and how well.

[budget]                       # what any one patient may lose, in all questions together
epsilon = 1
delta = 1e-9

[tables.patients]
source = "patients.parquet"
unit = "patient_id"            # one person is one patient
max_rows_per_unit = 1
blocks = ["city"]              # a patient lives in one city: cities are paid for one by one

[tables.patients.columns]
patient_id = {{ type = "integer" }}
city = {{ type = "text", nullable = false, values = [
  {", ".join(f'"{city}"' for city in CITIES)},
] }}
age = {{ type = "integer", bounds = [0, 110], nullable = false }}
smoker = {{ type = "boolean", nullable = false }}

[tables.visits]
source = "visits.parquet"
unit = "patient_id"            # the same patients, with all their visits
max_rows_per_unit = {MOST_VISITS}

[tables.visits.columns]
patient_id = {{ type = "integer" }}
reason = {{ type = "text", nullable = false, values = [
  {", ".join(f'"{reason}"' for reason in REASONS)},
] }}
cost = {{ type = "decimal", bounds = [0, 800], nullable = false }}
"""


def make_tables(patients: int = PATIENTS) -> dict[str, pa.Table]:
    """The tables by name; other people each time."""
    home = geometric("2.5", patients) % len(CITIES)
    age = np.clip(46 + discrete_gaussian(400, patients), 0, 110)
    smoker = uniform_below(5, patients) == 0
    visits = uniform_below(MOST_VISITS, patients) + 1
    patient = np.repeat(np.arange(patients), visits)
    reason = uniform_below(len(REASONS), patient.size)
    dearer = age[patient] + 60 * smoker[patient]
    cost = np.clip(40 + dearer + discrete_gaussian(900, patient.size), 0, 800) / 1.0
    return {
        "patients": pa.table(
            {
                "patient_id": np.arange(patients),
                "city": np.array(CITIES)[home],
                "age": age,
                "smoker": smoker,
            }
        ),
        "visits": pa.table(
            {"patient_id": patient, "reason": np.array(REASONS)[reason], "cost": cost}
        ),
    }


def write_tables(directory: Path, tables: dict[str, pa.Table]) -> None:
    """Put the tables where :data:`SETTINGS` says they are."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, directory / f"{name}.parquet")


__all__ = [
    "CITIES",
    "MOST_VISITS",
    "PATIENTS",
    "REASONS",
    "SETTINGS",
    "make_tables",
    "write_tables",
]
