"""What of a release could not be made or written is refused from its declaration, unpaid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.errors import InvalidParameter, Refusal
from discreet.publication import synthetic
from discreet.publication.domain import Column
from discreet.publication.measure import Measurement, Query, Records
from discreet.publication.spend import Spend
from discreet.publication.synthetic import predict_rows_deviation, synthesize
from discreet.publication.verifying import verify_folder

SCHEMA = """
[tables.visits]
unit = "who"
max_rows_per_unit = 3
[tables.visits.columns]
who = "integer"
city = { type = "text", values = ["Cork", "Faro", "Oslo"], nullable = false }
age = { type = "integer", bounds = [0, 19], nullable = false }
"""
LONG = "a" * 128
NAMED = 'SELECT who, city AS "{}", age AS "{}" FROM visits'


@pytest.fixture
def clinic() -> Any:
    rows = pd.DataFrame({"who": range(90), "city": ["Cork", "Faro", "Oslo"] * 30, "age": [7] * 90})
    budget = discreet.Budget(epsilon=40, delta="1e-6")
    with discreet.curator({"visits": rows}, schema=SCHEMA, budget=budget) as curator:
        yield curator


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"kind": "synthetic", "epsilon": "1e-8"}, "noise would be all there is"),
        ({"kind": "synthetic", "rho": "1e-20"}, "noise would be all there is"),
        ({"kind": "marginals", "best": True, "epsilon": "1e-8"}, "noise would be all there is"),
        ({"kind": "marginals", "epsilon": "1e-12"}, "noise would be all there is"),
        ({"kind": "ranges", "by": "age", "rho": "1e-29"}, "noise would be all there is"),
        ({"kind": "hierarchy", "by": "age", "epsilon": "1e-12"}, "noise would be all there is"),
        ({"kind": "counter", "by": "age", "epsilon": "1e-12"}, "noise would be all there is"),
        ({"kind": "synthetic", "rows": 10**9}, "about 1,000,000,000 rows of 2 columns"),
        ({"kind": "marginals", "of": NAMED.format(LONG, f"b{LONG[1:]}")}, "too long a name"),
        ({"kind": "marginals", "ways": 1, "of": NAMED.format("é" * 128, "b")}, "too long a name"),
        (
            {"kind": "marginals", "sets": [["a_b"], ["a", "b"]],
             "of": 'SELECT who, city AS a_b, city AS a, age AS b FROM visits'},
            "two tables of this release would be called 'a_b'",
        ),
        (
            {"kind": "hierarchy", "by": ["all", "b"], "of": NAMED.format("all", "b")},
            "two tables of this release would be called 'all'",
        ),
    ],
    ids=lambda value: repr(value)[:40],
)  # fmt: skip
def test_what_would_be_paid_for_in_vain_is_refused_for_free(clinic, declared, says):
    price = {} if "epsilon" in declared or "rho" in declared else {"epsilon": 1}
    for act in (clinic.plan_release, clinic.make_release):
        with pytest.raises(InvalidParameter) as refused:
            act("vain", **{"of": "visits", **price, **declared})
        assert says in refused.value.what
    assert not clinic.transcript()[:-1]  # nothing but the refusal
    assert not clinic.spent.epsilon


def test_what_is_listed_twice_is_one_table(clinic, tmp_path):
    clinic.make_release(
        "twice", kind="marginals", of="visits", sets=[["city", "age"], ["age", "city"]], epsilon=1
    )
    clinic.hand_over_release("twice", tmp_path / "twice")
    assert all(check.holds for check in verify_folder(tmp_path / "twice"))


WILD = [
    10**400, -1, 0, True, float("nan"), float("inf"), 1e308, 1e-320, "1e999", "1e-999", "nan",
    "9" * 999, None, [], {}, [[]], "", "x\n'", "\ud800", b"x", {"city": 10**400}, {"Cork": 10**60},
]  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "synthetic": {},
    "marginals": {},
    "ranges": {"by": ["age"]},
    "hierarchy": {"by": ["city"]},
    "counter": {"by": ["age"]},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "setting",
    ["kind", "of", "epsilon", "delta", "rho", "rows", "ways", "cells", "interest", "totals",
     "margins", "steps_per_unit", "by", "sets", "tree"],
)  # fmt: skip
def test_wild_settings_are_refused_or_planned_and_nothing_else(clinic, kind, setting):
    for value in WILD:
        price = {"rho": "0.1"} if setting == "steps_per_unit" else {"epsilon": 1}
        price = {} if setting == "rho" else price
        declared = {"kind": kind, "of": "visits", **price, **KINDS[kind], setting: value}
        try:
            clinic.plan_release("wild", **declared)
        except Refusal:
            continue


@pytest.mark.parametrize("price", [{}, {"epsilon": 1}, {"delta": "1e-9"}], ids=repr)
@pytest.mark.parametrize("setting", ["weight", "within", "relative"])
def test_wild_plans_are_refused_or_divided_and_nothing_else(clinic, setting, price):
    for value in WILD:
        one = {"name": "a", "kind": "marginals", "of": "visits", "rows": 90, setting: value}
        one |= {} if setting == "relative" else {"within": one.get("within", 30)}
        try:
            clinic.plan_releases({"plan": price, "release": [one]}).to_json()
        except Refusal:
            continue


COLUMNS = [Column("age", 90, ordered=True), Column("city", 30)]


class Huge:
    """A measurer whose first numbers say that there are more rows than anybody can make."""

    def __init__(self) -> None:
        self.stages = 0

    def measure(self, queries: list[Query]) -> list[Measurement]:
        self.stages += 1
        shapes = [query.view.shape for query in queries]
        return [
            Measurement(query, np.full(shape, 10**9))
            for query, shape in zip(queries, shapes, strict=True)
        ]


def test_more_rows_than_there_is_room_for_are_not_made():
    """As whoever is handed a forged folder would, who makes all rows again."""
    measurer = Huge()
    with pytest.raises(InvalidParameter, match="at most 400,000,000 values are"):
        synthesize(measurer, COLUMNS, Spend.pure(1))
    assert measurer.stages == 1


def test_the_number_of_rows_is_as_far_off_as_is_said():
    rows = np.zeros((5000, 2), dtype=int)
    spend = Spend.pure("1/10")
    listed = []
    for _ in range(200):
        people = Records(COLUMNS, rows)
        first = spend.divide(synthetic.Settings().shares(spend.gaussian))[0]
        released = synthetic.measure_histograms(people, COLUMNS, first)
        listed.append(synthetic.clean_histograms(COLUMNS, released).rows - 5000)
    said = predict_rows_deviation(COLUMNS, spend)
    assert 0.7 < np.std(listed) / said < 1.3  # 6 deviations of an estimate from 200
