"""Histograms from coarse to fine, as they should be: in Python, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.engine.truth import SparseCounts
from discreet.price import Priced, price
from discreet.price.plan import Stretch
from discreet.question.offer import Offer
from discreet.question.schema import Schema
from discreet.question.sql import parse_statement

SCHEMA = Schema.from_text(
    """
[tables.stays]
unit = "person"
max_rows_per_unit = 3
[tables.stays.columns]
person = "integer"
ward = { type = "text", values = ["north", "south", "east"] }
cost = { type = "decimal", bounds = [0, 5000] }
"""
)
GROUPED = "SELECT ward, MEDIAN(cost) AS m FROM stays GROUP BY ward"
ALONE = "SELECT QUANTILE_CONT(cost, [0.1, 0.5, 0.9]) AS p, IQR(cost) AS r FROM stays"
STRETCHES: tuple[tuple[Stretch, ...], ...] = (
    (Stretch.around(Fraction(1, 2), 5, 0),),
    (Stretch.around(Fraction(1, 10), 2, 0), Stretch.around(Fraction(9, 10), 4, 64)),
    (Stretch.around(Fraction(1, 3), 1, 7), Stretch.around(Fraction(333_333_334, 10**9), 3, 0)),
    (Stretch.around(Fraction(1, 1000), 1, 0), Stretch.around(Fraction(999, 1000), 1, 0)),
    (Stretch.around(Fraction(1, 2), 10**6, 0),),
)


def make_stays(rows: int, label: str) -> pa.Table:
    """Costs with crowds, gaps, odd and missing values; wards of different sizes, one unknown."""
    rng = Random(label)
    costs = [
        rng.choice(
            [rng.uniform(0, 5000), rng.lognormvariate(4, 1), 120.0, -7.0, 1e300, None, 5000.0]
        )
        for _ in range(rows)
    ]
    wards = rng.choices(["north", "south", None, "elsewhere"], [9, 3, 2, 1], k=rows)
    return pa.table(
        {
            "person": pa.array(range(rows), pa.int64()),
            "ward": pa.array(wards, pa.string()),
            "cost": pa.array(costs, pa.float64()),
        }
    )


def price_question(text: str, catalogue: Any, epsilon: Fraction = Fraction(1)) -> Priced:
    """The price of a question of stays."""
    question = parse_statement(text, catalogue).question
    return price(question, Offer(epsilon=epsilon), catalogue)


def lump(counts: SparseCounts, stretches: Sequence[Stretch]) -> list[tuple[int, int, int, int]]:
    """Group, first and last cell and number of values of every lump, by the definition."""
    found: list[tuple[int, int, int, int]] = []
    by_group: dict[int, list[tuple[int, int]]] = {}
    listed = (counts.group.tolist(), counts.position.tolist(), counts.count.tolist())
    for group, cell, count in zip(*listed, strict=True):
        by_group.setdefault(group, []).append((cell, count))
    for group, cells in by_group.items():
        total, upto, open_lump = sum(count for _, count in cells), 0, False
        for cell, count in cells:
            before, upto = upto, upto + count
            if any(_is_near(one, before, upto, total) for one in stretches):
                found.append((group, cell, cell, count))
                open_lump = False
            elif open_lump:
                _, first, _, held = found[-1]
                found[-1] = (group, first, cell, held + count)
            else:
                found.append((group, cell, cell, count))
                open_lump = True
    return found


def _is_near(stretch: Stretch, before: int, upto: int, total: int) -> bool:
    wider = stretch.ranks + (total // stretch.share if stretch.share else 0)
    return stretch.low * total - wider <= upto and before <= stretch.high * total + wider


def show(counts: SparseCounts) -> list[tuple[int, int, int, int]]:
    """What came back, in the same form."""
    if counts.first is None:
        raise TypeError("every cell came back alone")
    columns = (counts.group, counts.first, counts.position, counts.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check_lumps(
    engine: Any, question: str, listed: Sequence[tuple[Stretch, ...]] = STRETCHES
) -> None:
    """Every stretch, against the definition applied to the whole histogram."""
    plan = price_question(question, engine.catalogue).plan
    whole = engine.run(engine.compile(plan)).open_for_release()
    for stretches in listed:
        given = (stretches,) * len(plan.measurements)
        found = engine.run(engine.compile(plan, given)).open_for_release()
        assert found.groups == whole.groups
        for told, every in zip(found.measured, whole.measured, strict=True):
            if isinstance(every, SparseCounts):
                assert show(told) == lump(every, stretches)
            else:
                assert np.array_equal(told, every)
