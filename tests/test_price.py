"""Pricing: sharing, sensitivities, thresholds, splits and accuracy-first, without any data."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Kind
from discreet.errors import QuestionRefusal
from discreet.exact import enclose
from discreet.expressions import Call, ColumnRef, Literal
from discreet.law import DiscreteLaplaceLaw
from discreet.plan import Contribution, GroupTotal, Histogram, Moments, Scaled, Units
from discreet.price import GaussianNoise, LaplaceNoise, Linear, Reach, price, sensitivity
from discreet.price.keys import shown, threshold
from discreet.price.margins import entry_margin, linear_margin
from discreet.price.recipes import Ratio, grid_step, power_coefficients, ratio_values
from discreet.price.split import concentrated_shares, pure_shares
from discreet.price.within import cheapest
from discreet.question import Aggregate, Key, Limits, Output, Question, Spend
from discreet.relation import Source
from discreet.schema import Column, Neighbours, Schema, Table

VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("city", Kind.TEXT, values=("Cork", "Delft", "Faro")),
        Column("street", Kind.TEXT),
        Column("cost", Kind.DECIMAL, 0, 5000),
        Column("age", Kind.INTEGER, 0, 120, nullable=False),
        Column("free", Kind.DECIMAL),
    ),
    unit=("patient",),
    max_rows_per_unit=3,
)
SCHEMA = Schema({"visits": VISITS})
SOURCE = Source(VISITS, tuple((f"v.{c.name}", c.name) for c in VISITS.columns))
CITY = Key("city", ColumnRef("v.city"), ("Cork", "Delft", "Faro", None))
STREET = Key("street", ColumnRef("v.street"), None)
COST, AGE = ColumnRef("v.cost"), ColumnRef("v.age")


def question(*aggregates: Aggregate, keys: tuple[Key, ...] = (CITY,), **more: object) -> Question:
    outputs = tuple(Output(a.name, ColumnRef(a.name)) for a in aggregates)
    return Question(SOURCE, keys, aggregates, outputs, **more)  # type: ignore[arg-type]


def priced(asked: Question, schema: Schema = SCHEMA, **spend: object):
    spend = {name: Fraction(value) for name, value in spend.items()}
    return price(asked, Spend(**spend), schema=schema, multiplicity=lambda *_: None)


COUNT = Aggregate("n", "COUNT")
SUM = Aggregate("total", "SUM", (COST,))
AVG = Aggregate("mean", "AVG", (COST,))
VAR = Aggregate("spread", "VAR_POP", (COST,))


def test_all_moments_of_a_column_cost_one_count():
    alone = priced(question(COUNT), epsilon="1/4")
    together = priced(question(COUNT, SUM, AVG, VAR), epsilon="1/4")
    assert len(together.plan.measurements) == 1
    assert together.loss.epsilon == alone.loss.epsilon == Fraction(1, 4)
    (moments,) = together.plan.measurements
    assert moments.degrees == (2,)
    assert moments.counts_null  # cost may be NULL, and COUNT(*) counts those rows too


def test_a_count_before_its_column_is_still_free():
    n_first = priced(question(COUNT, SUM), epsilon="1/4")
    n_last = priced(question(SUM, COUNT), epsilon="1/4")
    assert n_first.plan.measurements == n_last.plan.measurements
    lengths = {len(r.coefficients) for r in n_first.recipes}
    assert lengths == {n_first.plan.measurements[0].entries}


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.sampled_from([1, 2]))
def test_power_sums_are_read_off_exactly(values, degree):
    variable = Scaled(COST, Fraction(1, 2), -4, 7)
    moments = Moments((variable,), (degree,))
    entries = [
        sum(_bernstein(degree, j) * u**j * (7 - u) ** (degree - j) for u in values)
        for j in range(degree + 1)
    ]
    for power in range(degree + 1):
        read = sum(
            c * e for c, e in zip(power_coefficients(moments, (power,)), entries, strict=True)
        )
        assert read == sum(u**power for u in values)


def _bernstein(d: int, j: int) -> int:
    return [[1, 1], [1, 2, 1]][d - 1][j]


def test_ratios_of_exact_entries_are_the_textbook_values():
    rng = np.random.default_rng(7)
    u, w = rng.integers(0, 11, 500), rng.integers(0, 14, 500)
    y, x = Scaled(COST, Fraction(1, 4), 3, 10), Scaled(AGE, Fraction(2), -5, 13)
    moments = Moments((y, x), (2, 2))
    entries = np.array(
        [
            sum(
                _bernstein(2, i)
                * a**i
                * (10 - a) ** (2 - i)
                * _bernstein(2, j)
                * b**j
                * (13 - b) ** (2 - j)
                for a, b in zip(u.tolist(), w.tolist(), strict=True)
            )
            for i, j in product(range(3), repeat=2)
        ],
        dtype=float,
    )
    ys, xs = (u + 3) / 4, (w - 5) * 2.0
    slope, intercept = np.polyfit(xs, ys, 1)
    expected = {
        "COVAR_POP": np.cov(xs, ys, ddof=0)[0, 1],
        "COVAR_SAMP": np.cov(xs, ys)[0, 1],
        "CORR": np.corrcoef(xs, ys)[0, 1],
        "REGR_SLOPE": slope,
        "REGR_INTERCEPT": intercept,
    }
    for function, value in expected.items():
        assert ratio_values(Ratio(0, function, moments), entries) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("contribution", "l1", "l2_squared"),
    [
        (Contribution(rows=3), 3 * 7, (3 * 7) ** 2),
        (Contribution(groups=4, rows_per_group=3), 4 * 3 * 7, 4 * (3 * 7) ** 2),
    ],
)
def test_sensitivity_of_moments(contribution, l1, l2_squared):
    reach = Reach.of(contribution, grouped=True)
    found = sensitivity(
        Moments((Scaled(COST, Fraction(1), 0, 7),), (1,)), reach, Neighbours.ADD_REMOVE
    )
    assert (found.l1, found.l2_squared) == (l1, l2_squared)
    twice = sensitivity(
        Moments((Scaled(COST, Fraction(1), 0, 7),), (1,)), reach, Neighbours.CHANGE_ONE
    )
    assert (twice.l1, twice.l2_squared) == (2 * l1, 4 * l2_squared)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=0, max_size=5),
    st.sampled_from([Contribution(rows=5), Contribution(groups=3, rows_per_group=2)]),
)
def test_sensitivity_bounds_every_arrangement_of_one_unit(rows, contribution):
    """Brute force: any rows a unit may keep add a vector within the claimed norms."""
    counts = [rows.count(group) for group in range(4)]
    if contribution.rows is None:
        counts = [min(c, 2) for c in counts][:3]
    reach = Reach.of(contribution, grouped=True)
    found = sensitivity(Moments(), reach, Neighbours.ADD_REMOVE)
    assert sum(counts) <= found.l1
    assert sum(c * c for c in counts) <= found.l2_squared
    units = sensitivity(Units(), reach, Neighbours.ADD_REMOVE)
    assert sum(c > 0 for c in counts) <= units.l1
    total = sensitivity(GroupTotal(COST, Fraction(1), 0, 9), reach, Neighbours.ADD_REMOVE)
    assert 9 * sum(c > 0 for c in counts) <= total.l1


def test_threshold_delta_is_the_exact_tail_with_its_end_included():
    noise = LaplaceNoise(Fraction(3), sensitivity(Units(), Reach(2, 2, 2), Neighbours.ADD_REMOVE))
    delta = Fraction(1, 10**6)
    cut = threshold(0, noise, groups=2, delta=delta)
    law = DiscreteLaplaceLaw(0, Fraction(3))
    p_low, p_high = enclose(lambda: law.tail(cut.least - 1))
    assert 1 - (1 - p_low) ** 2 <= cut.delta <= delta
    assert cut.delta <= (1 - (1 - p_high) ** 2) * (1 + Fraction(1, 2**50))
    assert shown(noise, 2, cut.least - 1) > delta  # no smaller threshold would do


def test_private_groups_need_a_delta_and_pay_it():
    with pytest.raises(QuestionRefusal, match="Q42"):
        priced(question(COUNT, keys=(STREET,)), epsilon="1/4")
    hidden = priced(question(COUNT, keys=(STREET,)), epsilon="1/4", delta="1e-6")
    assert 0 < hidden.loss.delta <= Fraction(1, 10**6)
    assert hidden.loss.epsilon_at("1e-6") <= Fraction(1, 4)


@pytest.mark.parametrize(
    "spend", [{"epsilon": "1/4"}, {"rho": "1/50"}, {"epsilon": "1/4", "delta": "1e-6"}]
)
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_never_costs_more_than_was_offered(spend, neighbours):
    quantile = Aggregate("mid", "QUANTILE", (COST,), (Fraction(1, 4), Fraction(1, 2)))
    units = Aggregate("people", "COUNT_UNITS")
    distinct = Aggregate("streets", "COUNT_DISTINCT", (ColumnRef("v.street"),))
    mode = Aggregate("top", "TOP_K", (ColumnRef("v.city"),), (2,))
    asked = question(
        COUNT, SUM, VAR, quantile, units, distinct, mode, Aggregate("old", "AVG", (AGE,))
    )
    for limits in (Limits(), Limits(max_groups=2, max_rows_per_group=2), Limits(max_rows=2)):
        offer = priced(
            replace(asked, limits=limits), replace(SCHEMA, neighbours=neighbours), **spend
        )
        if "rho" in spend:
            assert offer.loss.rho <= Fraction(spend["rho"])
        elif "delta" in spend:
            assert offer.loss.epsilon_at(spend["delta"]) <= Fraction(spend["epsilon"])
        else:
            assert offer.loss.epsilon <= Fraction(spend["epsilon"])


def test_gaussian_is_chosen_where_it_is_better():
    wide = question(COUNT, limits=Limits(max_groups=50, max_rows_per_group=1))
    assert isinstance(priced(wide, epsilon="1/2", delta="1e-6").noises[0], GaussianNoise)
    assert isinstance(priced(question(COUNT), epsilon="1/2", delta="1e-9").noises[0], LaplaceNoise)


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=8))
def test_shares_never_add_up_to_more_than_was_offered(sizes):
    for shares in (pure_shares(sizes), concentrated_shares(sizes)):
        assert sum(shares) <= 1
        assert all(share > 0 for share in shares)


def test_within_buys_just_enough():
    asked = question(COUNT)
    spend = Spend(within=(("", Fraction(40)),), confidence=Fraction(9, 10))
    offer = cheapest(asked, spend, schema=SCHEMA, multiplicity=lambda *_: None)
    (recipe,) = offer.recipes
    assert isinstance(recipe, Linear)
    assert linear_margin(recipe, offer.noises[0], Fraction(1, 10)) <= 40
    dearer = replace(offer.noises[0], scale=offer.noises[0].scale * Fraction(106, 100))
    assert linear_margin(recipe, dearer, Fraction(1, 10)) > 40 - 1


@pytest.mark.parametrize(
    ("asked", "spend"),
    [
        (question(AVG), Spend(within=(("", Fraction(40)),))),
        (question(COUNT), Spend(within=(("typo", Fraction(40)),))),
    ],
)
def test_within_refuses_what_cannot_be_promised(asked, spend):
    with pytest.raises(QuestionRefusal, match="Q44"):
        cheapest(asked, spend, schema=SCHEMA, multiplicity=lambda *_: None)


def test_refusals_before_any_data():
    with pytest.raises(QuestionRefusal, match="Q1:"):
        priced(question(Aggregate("x", "SUM", (ColumnRef("v.free"),))), epsilon="1/4")
    with pytest.raises(QuestionRefusal, match="Q40"):
        priced(question(Aggregate("x", "MODE", (ColumnRef("v.street"),))), epsilon="1/4")
    with pytest.raises(QuestionRefusal, match="Q43"):
        priced(question(COUNT))
    unbounded = Source(replace(VISITS, max_rows_per_unit=None), SOURCE.columns)
    with pytest.raises(QuestionRefusal, match="Q41"):
        priced(replace(question(COUNT), source=unbounded), epsilon="1/4")


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 5000, "1/128"), (0, 120, "1/8192"), (-3, 10**9, 1024)]
)
def test_grid_is_the_least_power_of_two(low, high, step):
    assert grid_step(Fraction(low), Fraction(high), 20) == Fraction(step)


def test_entry_margin_is_least():
    noise = LaplaceNoise(Fraction(12), sensitivity(Units(), Reach(3, 3, 3), Neighbours.ADD_REMOVE))
    assert entry_margin(noise, Fraction(1, 20)) == 36


def test_narrow_bounds_of_an_expression_are_used():
    narrow = Aggregate("x", "SUM", (Call("least", (COST, Literal(100))),))
    (moments,) = priced(question(narrow), epsilon="1/4").plan.measurements
    (variable,) = moments.variables
    assert (variable.low * variable.grid, (variable.low + variable.span) * variable.grid) == (
        0,
        100,
    )


def test_min_and_max_share_a_histogram():
    low, high = Aggregate("low", "MIN", (AGE,)), Aggregate("high", "MAX", (AGE,))
    assert [type(m) for m in priced(question(low, high), epsilon="1/4").plan.measurements] == [
        Histogram
    ]
