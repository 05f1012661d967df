"""Many columns at once: regressions and correlations read off one measurement."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.errors import QuestionRefusal
from discreet.mechanisms import Laplace
from discreet.price.fitting import Fit
from discreet.price.plan import Products, Reach, Scaled, compute_sensitivity, list_products
from discreet.price.recipes import Fitted
from discreet.question.expressions import ColumnRef
from discreet.question.schema import Neighbours

SCHEMA = """
[tables.people]
unit = "person"
max_rows_per_unit = 2
columns.person = "integer"
columns.city = { type = "text", values = ["Cork", "Delft"], nullable = false }
columns.x = { type = "decimal", bounds = [0, 100] }
columns.z = { type = "integer", bounds = [-3, 20] }
columns.y = { type = "decimal", bounds = [-50, 100] }
columns.wild = "decimal"
"""
BUDGET = discreet.Budget(epsilon=500, delta="1e-6")
N = 8000
RANDOM = np.random.default_rng(32)
PEOPLE = pd.DataFrame(
    {
        "person": range(N),
        "city": ["Cork", "Delft"] * (N // 2),
        "x": RANDOM.uniform(0, 100, N),
        "z": RANDOM.integers(-3, 21, N),
        "wild": RANDOM.normal(size=N),
    }
)
PEOPLE["y"] = np.clip(7 + 0.5 * PEOPLE.x - 1.5 * PEOPLE.z + RANDOM.normal(0, 4, N), -50, 100)
TRUE = np.linalg.lstsq(np.c_[np.ones(N), PEOPLE.x, PEOPLE.z], PEOPLE.y, rcond=None)[0]


@pytest.fixture
def clinic():
    with discreet.curator({"people": PEOPLE}, schema=SCHEMA, budget=BUDGET) as curator:
        yield curator


def variable(low: int, span: int, name: str = "x") -> Scaled:
    return Scaled(ColumnRef(name), Fraction(1), low, span)


# --- sensitivity ---------------------------------------------------------------------------------


def entries_of(products: Products, rows: list[tuple[int, ...]]) -> list[int]:
    """The definition, in fractions."""
    found = []
    for i, j in list_products(len(products.variables)):
        total = Fraction(0)
        for row in rows:
            v = [Fraction(1)] + [
                Fraction(2 * u - one.span, one.span)
                for u, one in zip(row, products.variables, strict=True)
            ]
            total += v[i] * v[j]
        found.append(math.floor(total * products.unit))
    return found


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.CHANGE_ONE])
def test_no_unit_moves_the_entries_further_and_one_moves_them_so_far(neighbours):
    products = Products((variable(0, 7), variable(-2, 3)), unit=50)
    reach = Reach(1, 3, 3)
    limit = compute_sensitivity(products, reach, neighbours, grouped=False)
    others = [(1, 1), (5, 2), (2, 3)]
    corners = [(0, 0), (0, 3), (7, 0), (7, 3), (3, 1)]
    furthest = squared = 0
    for one in corners:
        for other in corners:
            before = [*others, *([other] * 3 if neighbours is Neighbours.CHANGE_ONE else [])]
            moved = [
                a - b
                for a, b in zip(
                    entries_of(products, [*others, *[one] * 3]),
                    entries_of(products, before),
                    strict=True,
                )
            ]
            furthest = max(furthest, sum(map(abs, moved)))
            squared = max(squared, sum(m * m for m in moved))
    assert furthest <= limit.l1
    assert squared <= limit.l2_squared
    if neighbours is Neighbours.ADD_REMOVE:
        assert furthest >= limit.l1 - products.entries  # attained at a corner, but for rounding


def test_the_engine_measures_the_definition(clinic):
    text = "SELECT REGR(z, x) FROM people WHERE person < 40"
    priced = clinic.explain(text, epsilon=1).priced
    (products,) = priced.plan.measurements
    opened = clinic.engine.run(clinic.engine.compile(priced.plan)).open_for_release()
    rows = []
    for x, z in PEOPLE[["x", "z"]][:40].itertuples(index=False):
        steps = [
            math.floor(Fraction(value) / one.grid + Fraction(1, 2)) - one.low
            for value, one in zip((int(z), float(x)), products.variables, strict=True)
        ]
        rows.append(tuple(steps))
    assert [int(n) for n in opened.measured[0][0]] == entries_of(products, rows)


# --- values and sets -----------------------------------------------------------------------------


def test_a_regression_is_near_the_exact_one_and_charged_once(clinic):
    answer = clinic.ask("SELECT REGR(y, x, z) AS fit FROM people", epsilon=20)
    assert answer.columns == ("fit_intercept", "fit_x", "fit_z")
    assert answer.charged.epsilon == clinic.spent.epsilon == 20
    (row,) = answer.rows
    assert row.values == pytest.approx(TRUE, abs=0.4)
    (measured,) = answer.certificate["measurements"]
    assert measured["measured"]["kind"] == "Products"
    assert json.dumps(answer.to_json())
    assert any("measured together" in note for note in answer.notes)


def test_sets_hold_the_truth_and_are_not_absurdly_wide():
    """Of 60 answers at 90 %, fewer than 37 would hold with probability below 1e-9."""
    products = Products((variable(0, 100, "y"), variable(0, 100, "x"), variable(0, 20, "z")))
    rows = [(int(30 + x // 2 - z), x, z) for x in range(0, 101, 5) for z in range(21)] * 12
    exact = entries_of(products, rows)
    law = Laplace(sensitivity=products.unit * products.entries, epsilon=1)
    data = np.array(rows, dtype=float)
    truth = np.linalg.lstsq(np.c_[np.ones(len(rows)), data[:, 1:]], data[:, 0], rcond=None)[0]
    held = np.zeros(3)
    widths = []
    for _ in range(60):
        noisy = law.release(np.array(exact, dtype=object), exact=True)
        for place in range(3):
            fit = Fit(Fitted(0, "REGR_COEFFICIENT", place), products, law, noisy)
            low, high = fit.ends(Fraction(1, 10), (0.0, 0.0, 0.0))
            held[place] += low <= truth[place] <= high
            if place == 1:
                widths.append(high - low)
    assert held.min() >= 37
    assert np.median(widths) < 0.2


def test_correlations_hold_and_are_free_after_a_regression(clinic):
    clinic.ask("SELECT REGR(y, x, z) FROM people", epsilon=20)
    answer = clinic.ask("SELECT CORR_MATRIX(y, x, z) FROM people", epsilon=20)
    assert answer.charged.epsilon == 0
    true = PEOPLE[["y", "x", "z"]].corr()
    sure = answer.intervals("0.9999999999")
    for name, (interval,) in answer.intervals("0.999").items():
        one, other = name.split("_")
        assert sure[name][0].contains(true.loc[one, other])
        assert interval.high - interval.low < 0.2


def test_too_few_rows_have_a_value_or_none_and_no_set(clinic):
    answer = clinic.ask("SELECT REGR(y, x) FROM people WHERE person = 3", epsilon="0.01")
    assert answer.intervals()["x"][0].anything


def test_groups_gaussian_noise_and_conditions(clinic):
    text = "SELECT city, REGR(y, x) FILTER (WHERE z > 3) FROM people GROUP BY city"
    answer = clinic.ask(text, rho=1)
    assert type(answer.priced.mechanisms[0]).__name__ == "Gaussian"
    kept = PEOPLE[PEOPLE.z > 3]
    for row in answer.rows:
        own = kept[kept.city == row.values[0]]
        truth = np.polyfit(own.x, own.y, 1)
        assert row.values[2] == pytest.approx(truth[0], abs=0.15)


def test_python_asks_the_same(clinic):
    from discreet.question.builder import coefficient

    clinic.ask("SELECT REGR_COEFFICIENT(1, y, x, z) AS slope FROM people", epsilon=1)
    built = clinic.table("people").agg(slope=coefficient(1, "y", "x", "z"))
    assert clinic.ask(built, epsilon=1).replayed


def test_refusals(clinic):
    for text, code in {
        "SELECT REGR(y) FROM people": "Q33",
        "SELECT REGR(y, x) + 1 FROM people": "Q33",
        "SELECT REGR(y, city) FROM people": "Q33",
        "SELECT REGR(y, wild) FROM people": "Q1",
        "SELECT CORR_OF(1, y, x) FROM people": "Q33",
        "SELECT REGR_COEFFICIENT(z, y, x) FROM people": "Q33",
        "SELECT REGR(y, x, x, x, x, x, x, x, x, x, x) FROM people": "Q33",
    }.items():
        with pytest.raises(QuestionRefusal) as caught:
            clinic.ask(text, epsilon=1)
        assert caught.value.code == code, text


# --- means and covariances -----------------------------------------------------------------------


def test_covariances_and_means_are_near_the_exact_ones_and_read_off_one_measurement(clinic):
    answer = clinic.ask(
        "SELECT COVAR_MATRIX(x, z, y) AS c, MEANS(x, z, y), REGR(x, z, y) AS r FROM people",
        epsilon=200,
    )
    assert list(answer.columns)[:9] == [
        *("c_x_x", "c_x_z", "c_x_y", "c_z_z", "c_z_y", "c_y_y"),
        *("x", "z", "y"),
    ]
    found = np.array([float(value) for value in answer.rows[0].values[:9]])
    columns = PEOPLE[["x", "z", "y"]].to_numpy()
    spread = np.cov(columns.T, bias=True)[np.triu_indices(3)]
    assert found == pytest.approx([*spread, *columns.mean(axis=0)], rel=0.02, abs=2)
    assert clinic.spent.epsilon == 200
    assert len(answer.priced.plan.measurements) == 1
    again = clinic.ask("SELECT MEANS(x, z, y) FROM people", epsilon=200)
    assert clinic.spent.epsilon == 200  # known
    assert again.rows[0].values == answer.rows[0].values[6:9]


@pytest.mark.parametrize("function", ["COVAR_OF", "MEAN_OF"])
def test_sets_of_means_and_covariances_hold(function):
    """Of 60 answers at 90 %, fewer than 37 would hold with probability below 1e-9."""
    products = Products((variable(0, 100, "y"), variable(-7, 20, "z")))
    rows = [(x, (3 * x + k) % 21) for x in range(0, 101, 5) for k in range(9)] * 9
    exact = entries_of(products, rows)
    law = Laplace(sensitivity=products.unit * products.entries, epsilon=1)
    data = np.array(rows, dtype=float) + np.array([0, -7])
    spread = np.cov(data.T, bias=True)
    truth = spread[np.triu_indices(2)] if function == "COVAR_OF" else data.mean(axis=0)
    held, widths = np.zeros(len(truth)), []
    for _ in range(60):
        noisy = law.release(np.array(exact, dtype=object), exact=True)
        for place, true in enumerate(truth):
            fit = Fit(Fitted(0, function, place), products, law, noisy)
            low, high = fit.ends(Fraction(1, 10), (0.0, 0.0))
            held[place] += low <= true <= high
            assert low <= fit.value() <= high
            widths.append((high - low) / max(abs(true), 1))
    assert held.min() >= 37
    assert np.median(widths) < 1


def test_nobody_has_no_set(clinic):
    answer = clinic.ask(
        "SELECT COVAR_MATRIX(x, y) AS c, MEANS(x, y) FROM people WHERE wild > 900", epsilon=9
    )
    for (interval,) in answer.intervals().values():
        assert interval.anything


def test_places_that_there_are_not_are_refused(clinic):
    for text in ("COVAR_OF(3, x, y)", "MEAN_OF(2, x, y)", "MEANS(x)", "COVAR_MATRIX(x, city)"):
        with pytest.raises(QuestionRefusal):
            clinic.ask(f"SELECT {text} FROM people", epsilon=1)
    assert not clinic.spent.epsilon
