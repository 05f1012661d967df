"""``discreet demo``: a made-up clinic, asked in SQL, with the truth shown beside each answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from discreet.answer import Answer
from discreet.budget import Budget
from discreet.curate import Curator
from discreet.display import cell
from discreet.errors import Refusal
from discreet.noise import discrete_gaussian, geometric, uniform_below
from discreet.schema import Schema

CITIES = ("Aalborg", "Bergen", "Cork", "Delft", "Elblag", "Faro", "Ghent", "Hamar")
PATIENTS = 20_000
MOST_VISITS = 3

SCHEMA = f"""
[tables.visits]
unit = "patient_id"            # one person is one patient, with all their visits
max_rows_per_unit = {MOST_VISITS}

[tables.visits.columns]
patient_id = {{ type = "integer" }}
city       = {{ type = "text", values = {list(CITIES)} }}
age        = {{ type = "integer", bounds = [0, 110], nullable = false }}
cost       = {{ type = "decimal", bounds = [0, 800], nullable = false }}
"""


def made_up_visits() -> pa.Table:
    """A table of visits: each patient lives in one city and makes 1 to 3 visits."""
    home = geometric("2.5", PATIENTS) % len(CITIES)
    age = np.clip(46 + discrete_gaussian(400, PATIENTS), 0, 110)
    visits = uniform_below(MOST_VISITS, PATIENTS) + 1
    patient = np.repeat(np.arange(PATIENTS), visits)
    cost = np.clip(40 + age[patient] + discrete_gaussian(900, patient.size), 0, 800) / 1.0
    return pa.table(
        {
            "patient_id": patient,
            "city": np.array(CITIES)[home[patient]],
            "age": age[patient],
            "cost": cost,
        }
    )


def demo() -> None:
    """Ask a made-up clinic some questions, and see what each answer costs."""
    console = Console(width=80, highlight=False)
    visits = made_up_visits()
    clinic = Curator(
        {"visits": visits},
        schema=Schema.from_text(SCHEMA),
        budget=Budget(epsilon=2, delta="1e-9"),
    )
    console.print(
        f"A made-up clinic: {PATIENTS:,} patients, at most {MOST_VISITS} visits each.\n"
        "An analyst asks in SQL; no answer lets anyone tell whether any one patient was\n"
        "ever there. Every answer has a margin and a price ε, paid from an account of 2.\n"
    )
    _asked(
        console,
        clinic,
        visits,
        "SELECT city, COUNT(*) AS visits, AVG(cost) AS mean_cost\n"
        "FROM visits GROUP BY city ORDER BY visits DESC",
        epsilon="0.5",
    )
    _within(console, clinic)
    _refused(console, clinic)
    console.print("[bold]What is left[/]\n" + clinic.balance())


def _asked(console: Console, clinic: Curator, visits: pa.Table, sql: str, *, epsilon: str) -> None:
    answer = clinic.ask(sql, epsilon=epsilon)
    if not isinstance(answer, Answer):
        raise TypeError("an answer was expected")
    console.print(f"[bold]{sql}[/]\n  -- epsilon = {epsilon}")
    truth = visits.group_by("city").aggregate([("cost", "count"), ("cost", "mean")])
    true = {row["city"]: row for row in truth.to_pylist()}
    margins = answer.margins()
    table = Table("city")
    for name in ("visits", "(truth)", "mean cost", "(truth)"):
        table.add_column(name, justify="right")
    for place, row in enumerate(answer.rows):
        city, count, mean = row.values
        if city in true:
            table.add_row(
                str(city),
                cell(count, margins["visits"][place]),
                f"{true[city]['cost_count']:,}",
                cell(mean, margins["mean_cost"][place]),
                f"{true[city]['cost_mean']:.1f}",
            )
    console.print(table)
    console.print(
        f"Margins hold with 95 % confidence. Cost: {answer.loss}.\n"
        "The truth is shown only because the clinic is made up.\n"
    )


def _within(console: Console, clinic: Curator) -> None:
    sql = "SELECT COUNT(*) AS over_80 FROM visits WHERE age > 80"
    console.print(f"[bold]{sql}[/]\n  -- within 40, whatever that costs")
    console.print(str(clinic.ask(sql, within=40)) + "\n")


def _refused(console: Console, clinic: Curator) -> None:
    for sql, epsilon in (
        ("SELECT patient_id, age FROM visits", "0.1"),
        ("SELECT city, COUNT(*) AS visits FROM visits GROUP BY city", "5"),
    ):
        console.print(f"[bold]{sql}[/]\n  -- epsilon = {epsilon}")
        try:
            clinic.ask(sql, epsilon=epsilon)
        except Refusal as refusal:
            console.print(f"{refusal}\n", markup=False)
