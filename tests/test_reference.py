"""The reference itself, against plans worked out by hand."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from reference import Reader, Truncated

from discreet.price.plan import (
    Contribution,
    DistinctValues,
    GroupTotal,
    Histogram,
    Moments,
    Plan,
    Scaled,
    Units,
    ValueCounts,
)
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.question import Key
from discreet.question.relation import PerUnit, Source, UnitAggregate
from discreet.question.schema import Column, Table

VISITS = Table(
    "visits",
    (
        Column("who", Kind.INTEGER),
        Column("city", Kind.TEXT, values=("Cork", "Faro")),
        Column("cost", Kind.DECIMAL, 0, 10),
        Column("day", Kind.DATE, date(1970, 1, 2), date(1970, 1, 9)),
    ),
    unit=("who",),
    max_rows_per_unit=3,
)
SOURCE = Source(VISITS, tuple((c.name, c.name) for c in VISITS.columns))
ROWS = [
    {"who": 1, "city": "Cork", "cost": 2.5, "day": date(1970, 1, 5)},
    {"who": 1, "city": "Cork", "cost": 99.0, "day": date(1970, 1, 1)},  # read as 10 and the 2nd
    {"who": 1, "city": "Oslo", "cost": 3.25, "day": None},  # not an allowed city
    {"who": 2, "city": "Cork", "cost": float("nan"), "day": date(1970, 1, 5)},
    {"who": 2, "city": "Faro", "cost": 4.0, "day": date(1970, 1, 7)},
    {"who": None, "city": "Faro", "cost": 4.0, "day": date(1970, 1, 7)},  # nobody's
]
CITY = Key("city", ColumnRef("city"), ("Cork", "Faro"))
COST = Scaled(ColumnRef("cost"), Fraction(1, 2), 0, 20)


def measure(*measurements: object, keys: tuple[Key, ...] = (CITY,), **limits: int) -> object:
    plan = Plan(SOURCE, keys, Contribution(**limits), measurements)  # type: ignore[arg-type]
    return Reader({"visits": ROWS}).measure(plan)


def test_counts_and_sums() -> None:
    count, mean = Moments(), Moments((COST,), (1,), counts_null=True)
    groups, (counts, means) = measure(count, mean)  # type: ignore[misc]
    assert groups == [("Cork",), ("Faro",)]
    assert counts == [[3], [1]]
    # 2.5 and 10 are steps 5 and 20 of 20: (15 + 0, 5 + 20); the NaN weighs 20 as a NULL.
    assert means == [[15, 25, 20], [12, 8, 0]]


def test_second_moments() -> None:
    _, (found,) = measure(Moments((COST,), (2,)), keys=())  # type: ignore[misc]
    steps = [5, 20, 6, 8]  # 3.25 is 6.5 steps: to the even one
    assert found == [
        [
            sum((20 - u) ** 2 for u in steps),
            sum(2 * u * (20 - u) for u in steps),
            sum(u * u for u in steps),
        ]
    ]
    assert sum(found[0]) == 4 * 20**2


def test_products_are_in_row_major_order() -> None:
    day = Scaled(ColumnRef("day"), Fraction(1), 1, 7)
    _, (found,) = measure(Moments((COST, day), (1, 1)))  # type: ignore[misc]
    # Cork: (5, 4 - 1) and (20, 1 - 1); Faro: (8, 6 - 1).
    assert found[0] == [15 * 4 + 0 * 7, 15 * 3 + 0 * 0, 5 * 4 + 20 * 7, 5 * 3 + 20 * 0]
    assert found[1] == [12 * 2, 12 * 5, 8 * 2, 8 * 5]


def test_units_values_and_histograms() -> None:
    expensive = Call("greater", (ColumnRef("cost"), Literal(3)))
    groups, found = measure(  # type: ignore[misc]
        Units(),
        Units(condition=expensive),
        DistinctValues(ColumnRef("cost")),
        ValueCounts(ColumnRef("city"), ("Faro", "Cork")),
        Histogram(COST),
        keys=(),
    )
    assert groups == [()]
    assert found == [[[2]], [[2]], [[4]], [[1, 3]], {(0, 5): 1, (0, 20): 1, (0, 6): 1, (0, 8): 1}]


def test_totals_of_each_unit_are_clipped() -> None:
    total = GroupTotal(ColumnRef("cost"), Fraction(1, 2), 4, 10)
    _, (found,) = measure(total)  # type: ignore[misc]
    # Cork: unit 1 has 25 steps, clipped to 4 + 10; unit 2 has only a NULL.  Faro: 8 - 4.
    assert found == [[0, 10], [6, 4]]


def test_private_groups_are_those_found() -> None:
    groups, (found,) = measure(Moments(), keys=(Key("city", ColumnRef("city"), None),))  # type: ignore[misc]
    assert groups == [("Cork",), ("Faro",), (None,)]
    assert found == [[3], [1], [1]]


@pytest.mark.parametrize("limits", [{"rows": 2}, {"groups": 1}, {"groups": 2, "rows_per_group": 1}])
def test_a_choice_is_left_to_the_engine(limits: dict[str, int]) -> None:
    keys = (Key("city", ColumnRef("city"), ("Cork", "Faro", None)),)
    with pytest.raises(Truncated):
        measure(Moments(), keys=keys, **limits)


def test_one_unit_at_a_time() -> None:
    totals = PerUnit(
        SOURCE,
        (),
        (
            ("n", UnitAggregate("COUNT")),
            ("sum", UnitAggregate("SUM", ColumnRef("cost"))),
            ("avg", UnitAggregate("AVG", ColumnRef("cost"))),
            ("cities", UnitAggregate("COUNT_DISTINCT", ColumnRef("city"))),
            ("first", UnitAggregate("MIN", ColumnRef("day"))),
        ),
    )
    rows = {row.unit: row.values for row in Reader({"visits": ROWS}).rows(totals)}
    assert rows == {
        (1,): {"n": 3, "sum": 15.75, "avg": 5.25, "cities": 1, "first": date(1970, 1, 2)},
        (2,): {"n": 2, "sum": 4.0, "avg": 4.0, "cities": 2, "first": date(1970, 1, 5)},
    }
