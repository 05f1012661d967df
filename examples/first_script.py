"""A first script: a table, a schema, three questions; `make types` checks it like user code."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa

import discreet

SCHEMA = """
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 3
columns.patient_id = "integer"
columns.cost = { type = "decimal", bounds = [0, 200] }
"""


def connect(url: str, key: str) -> discreet.Answer:
    """The same question, to a curator behind a server."""
    remote = discreet.connect(url, key=key)
    return remote.ask("SELECT COUNT(*) AS n FROM visits", rho="0.01")


def main() -> None:
    visits = pa.table(
        {
            "patient_id": [n // 3 for n in range(9_000)],
            "cost": [40.0 + (7 * n) % 160 for n in range(9_000)],
        }
    )
    with discreet.curator({"visits": visits}, schema=SCHEMA, budget=3) as clinic:
        plan = clinic.explain("SELECT AVG(cost) AS mean FROM visits", epsilon="0.5")
        print(plan)

        answer = clinic.ask("SELECT COUNT(*) AS n, AVG(cost) AS mean FROM visits", epsilon="0.5")
        margins: list[float | None] = answer.margins()["n"]
        names: tuple[str, ...] = answer.columns
        paid: Fraction = Fraction(answer.loss.epsilon)
        print(answer, margins, names, paid)

        try:
            clinic.ask("SELECT cost FROM visits", epsilon="0.1")
        except discreet.Refusal as refusal:
            instead: str | None = refusal.rewriting
            print(refusal.code, refusal.fix, instead)
        print(clinic.balance())


if __name__ == "__main__":
    main()
