"""Histograms from coarse to fine, as they should be: in Python, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.engine.truth import SparseCounts
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import Priced, price
from discreet.price.calibration import find_lumpings
from discreet.price.plan import Lumping, Stretch
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
TRIMMED = "SELECT ward, TRIMMED_MEAN(cost, 0.1) AS m FROM stays GROUP BY ward"
AUTO = (
    "SELECT ward, SUM(cost - 300, bounds => AUTO) AS s, STDDEV(cost - 300, bounds => AUTO) AS d "
    "FROM stays GROUP BY ward"
)
"""Ends are looked for on both sides of zero; the second power is told, too."""
STRETCHES: tuple[tuple[Stretch, ...], ...] = (
    (Stretch.around(Fraction(1, 2), 5, 0),),
    (Stretch.around(Fraction(1, 10), 2, 0), Stretch.around(Fraction(9, 10), 4, 64)),
    (Stretch.around(Fraction(1, 3), 1, 7), Stretch.around(Fraction(333_333_334, 10**9), 3, 0)),
    (Stretch.around(Fraction(1, 1000), 1, 0), Stretch.around(Fraction(999, 1000), 1, 0)),
    (Stretch.around(Fraction(1, 2), 10**6, 0),),
)


@cache
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


Told = list[tuple[int, ...]]
"""Group, first and last cell, number of values and sums of powers of every lump."""


def lump(counts: SparseCounts, stretches: Sequence[Stretch], degree: int = 0) -> Told:
    """Every lump around ranks, by the definition."""
    found: Told = []
    for group, cells in _list_cells(counts).items():
        total, upto, open_lump = sum(count for _, count in cells), 0, False
        lumps: list[list[tuple[int, int]]] = []
        for cell, count in cells:
            before, upto = upto, upto + count
            near = any(_is_near(one, before, upto, total) for one in stretches)
            if near or not open_lump:
                lumps.append([])
            lumps[-1].append((cell, count))
            open_lump = not near
        found += [_tell(group, one, degree) for one in lumps]
    return found


def lump_between_ends(counts: SparseCounts, sums: ClippedSums) -> Told:
    """Every lump that no candidate for an end parts, by the definition."""
    ends = set(sums.candidates.tolist())
    found: Told = []
    for group, cells in _list_cells(counts).items():
        lumps: dict[tuple[int, bool], list[tuple[int, int]]] = {}
        for cell, count in cells:
            before = sum(end <= cell for end in ends)
            lumps.setdefault((before, cell in ends), []).append((cell, count))
        found += [_tell(group, one, sums.degree) for one in lumps.values()]
    return sorted(found)


def _list_cells(counts: SparseCounts) -> dict[int, list[tuple[int, int]]]:
    by_group: dict[int, list[tuple[int, int]]] = {}
    listed = (counts.group.tolist(), counts.position.tolist(), counts.count.tolist())
    for group, cell, count in zip(*listed, strict=True):
        by_group.setdefault(group, []).append((cell, count))
    return by_group


def _tell(group: int, cells: list[tuple[int, int]], degree: int) -> tuple[int, ...]:
    powers = [sum(count * cell**power for cell, count in cells) for power in range(degree + 1)]
    return (group, cells[0][0], cells[-1][0], *powers)


def _is_near(stretch: Stretch, before: int, upto: int, total: int) -> bool:
    wider = stretch.ranks + (total // stretch.share if stretch.share else 0)
    return stretch.low * total - wider <= upto and before <= stretch.high * total + wider


def show(counts: SparseCounts) -> Told:
    """What came back, in the same form."""
    if counts.first is None:
        raise TypeError("every cell came back alone")
    columns = (counts.group, counts.first, counts.position, counts.count, *counts.powers)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check_lumps(
    engine: Any, question: str, listed: Sequence[tuple[Stretch, ...]] = STRETCHES
) -> None:
    """Every stretch, against the definition applied to the whole histogram."""
    plan = price_question(question, engine.catalogue).plan
    whole = engine.run(engine.compile(plan)).open_for_release()
    for degree, stretches in enumerate(listed):
        given = (Lumping(stretches, degree=degree % 3),) * len(plan.measurements)
        found = engine.run(engine.compile(plan, given)).open_for_release()
        assert found.groups == whole.groups
        for told, every in zip(found.measured, whole.measured, strict=True):
            if isinstance(every, SparseCounts):
                assert show(told) == lump(every, stretches, degree % 3)
            else:
                assert np.array_equal(told, every)


def check_ends(engine: Any, question: str = AUTO) -> None:
    """What no candidate for an end parts comes back together, and nothing else does."""
    priced = price_question(question, engine.catalogue)
    (lumping,), (sums,) = find_lumpings(priced), priced.mechanisms
    assert lumping == Lumping(zero=sums.zero, degree=sums.degree)
    (every,) = engine.run(engine.compile(priced.plan)).open_for_release().measured
    (told,) = engine.run(engine.compile(priced.plan, (lumping,))).open_for_release().measured
    assert show(told) == lump_between_ends(every, sums)
    assert len(told.count) < len(every.count)
