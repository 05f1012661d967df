"""Payments between people: a row has two owners, and both are protected."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import discreet

AGES = ["18-29", "30-49", "50-69", "70+"]
SCHEMA = f"""
[tables.people]
unit = "person"
entity = "person"
max_rows_per_unit = 1
[tables.people.columns]
person = "integer"
age_group = {{ type = "text", values = {AGES}, nullable = false }}

[tables.payments]
unit = {{ any = ["sender", "receiver"] }}    # whoever pays and whoever is paid
entity = "person"
max_rows_per_unit = 150                      # payments that name one person
max_rows_per_pair = 1                        # of which two people may share
crowding = {{ rho = 0.02, delta = 1e-9 }}    # is 150 enough for nearly everybody? a paid test
[tables.payments.columns]
sender = "integer"
receiver = "integer"
amount = {{ type = "decimal", bounds = [0, 200], grid = 1 }}
"""
FLOWS = """
SELECT a.age_group AS payer, b.age_group AS paid, COUNT(*) AS payments
FROM payments AS p
JOIN people AS a ON a.person = p.sender
JOIN people AS b ON b.person = p.receiver
GROUP BY a.age_group, b.age_group
"""


def make_network(people: int = 60_000, seed: int = 8) -> dict[str, pa.Table]:
    """Everybody pays a few others, mostly of the own age; some are paid by many."""
    draw = np.random.default_rng(seed)
    age = draw.choice(4, people, p=[0.25, 0.35, 0.28, 0.12])
    sender = np.repeat(np.arange(people), draw.poisson(6, people))
    rank = np.minimum(draw.pareto(0.8, len(sender)) * people / 30, people - 1).astype(int)
    receiver = draw.permutation(people)[rank]
    alike = draw.random(len(sender)) < 0.6
    order = np.argsort(age, kind="stable")
    starts = np.searchsorted(age[order], np.arange(5))
    own = age[sender]
    mates = order[draw.integers(starts[own], starts[own + 1])]
    receiver = np.where(alike, mates, receiver)
    kept = sender != receiver
    return {
        "people": pa.table({"person": np.arange(people), "age_group": np.array(AGES)[age]}),
        "payments": pa.table(
            {
                "sender": sender[kept],
                "receiver": receiver[kept],
                "amount": np.minimum(draw.gamma(2, 15, kept.sum()), 200).round(),
            }
        ),
    }


def count_flows(tables: dict[str, pa.Table]) -> list[int]:
    """All payments by age of who pays and who is paid, in the order of the answer."""
    age, payments = np.array(tables["people"]["age_group"]), tables["payments"]
    payer, paid = (age[np.array(payments[side])] for side in ("sender", "receiver"))
    return [int(((payer == one) & (paid == other)).sum()) for one in AGES for other in AGES]


def count_beyond(payments: pa.Table, most: int = 150) -> int:
    """How many payments are too many for one of the two people, if each keeps the first."""
    named = np.bincount(np.concatenate([payments["sender"], payments["receiver"]]))
    return int(np.maximum(named - most, 0).sum())


def main() -> None:
    tables = make_network()
    budget = discreet.Budget(epsilon=4, delta="1e-6")
    with (
        TemporaryDirectory() as folder,
        discreet.curator(tables, schema=SCHEMA, budget=budget, store=Path(folder)) as bank,
    ):
        bank.prepare()
        flows = bank.ask(FLOWS, rho="0.1")
        total = bank.ask("SELECT COUNT(*) AS n, AVG(amount) AS mean FROM payments", rho="0.1")
    shown = flows.to_pandas(margins=True)
    shown["truth"] = count_flows(tables)  # known here, since the data are made up
    print(shown.head(4).to_string(index=False))
    print(total)
    everything, beyond = tables["payments"].num_rows, count_beyond(tables["payments"])
    print(f"in truth {everything:,}, of which {beyond:,} ({beyond / everything:.1%})")
    print("are beyond the first 150 of somebody: they are not counted, and no margin says so.")


if __name__ == "__main__":
    main()
