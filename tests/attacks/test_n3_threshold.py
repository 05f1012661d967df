"""N3: >= where > was meant: the mass at the threshold is missing from delta.

A hundred thousand people, each alone in a group of their own, are asked about.
Those whose group is shown are found out, and delta must be their share.
"""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from discreet.audit.proportions import at_least, at_most
from discreet.engine.duckdb import DuckDBEngine
from discreet.price import Priced, price
from discreet.price.keys import compute_exposure
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.release import release

N = 100_000
ALPHA = Fraction(1, 10**9)
SCHEMA = Schema.from_text("""
[tables.people]
unit = "who"
max_rows_per_unit = 1
columns.who = "integer"
columns.name = "text"
""")


def offer(engine: DuckDBEngine, spend: Offer) -> Priced:
    question = parse("SELECT name, COUNT(*) AS n FROM people GROUP BY name", engine.schema)
    return price(question, spend, engine.catalogue)


@pytest.mark.parametrize(
    "spend",
    [
        Offer(epsilon=Fraction(2), delta=Fraction(1, 50)),
        Offer(rho=Fraction(1), delta=Fraction(1, 50)),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_n3_people_alone_are_shown_as_often_as_delta_says(spend: Offer) -> None:
    people = pa.table({"who": range(N), "name": [f"name {i}" for i in range(N)]})
    with DuckDBEngine({"people": people}, SCHEMA) as engine:
        priced = offer(engine, spend)
        seen = len(release(priced, engine.run(engine.compile(priced.plan))).groups)
    cut = priced.threshold
    assert cut is not None
    least, most = at_least(seen, N, ALPHA / 2), at_most(seen, N, ALPHA / 2)
    assert least <= cut.delta <= spend.delta  # no more often
    assert cut.delta <= most  # and it is the very tail, not a bound far above it
    # The twin that counts the mass above the threshold only is refuted.
    assert compute_exposure(priced.mechanisms[cut.measurement], 1, cut.least + 1) < least
