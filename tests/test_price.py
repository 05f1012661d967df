"""Pricing: sharing, sensitivities, thresholds, splits and accuracy-first, without any data."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.exact.balls import enclose
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms import Quantile as OneQuantile
from discreet.price import Choice, Counts, Linear, Reach, Selection, compute_sensitivity, price
from discreet.price.calibration import pure_shares, share_rho
from discreet.price.keys import compute_exposure, find_threshold
from discreet.price.margins import entry_margin, linear_margin, rank_margin, ratio_margin
from discreet.price.plan import (
    Contribution,
    GroupMean,
    GroupTotal,
    Histogram,
    Moments,
    Scaled,
    Units,
)
from discreet.price.recipes import Ratio, choose_grid, compute_ratios, power_coefficients
from discreet.price.within import find_cheapest
from discreet.question.catalogue import Catalogue
from discreet.question.domain import Kind
from discreet.question.expressions import Call, ColumnRef, Literal
from discreet.question.offer import Offer
from discreet.question.question import Aggregate, Key, Limits, Output, Question
from discreet.question.relation import Source
from discreet.question.schema import Column, Neighbours, Schema, Table

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
    return price(asked, Offer(**spend), Catalogue(schema, multiplicity=lambda *_: None))


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
        assert compute_ratios(Ratio(0, function, moments), entries) == pytest.approx(
            value, rel=1e-9
        )


@pytest.mark.parametrize(
    ("contribution", "l1", "l2_squared"),
    [
        (Contribution(rows=3), 3 * 7, (3 * 7) ** 2),
        (Contribution(groups=4, rows_per_group=3), 4 * 3 * 7, 4 * (3 * 7) ** 2),
    ],
)
def test_sensitivity_of_moments(contribution, l1, l2_squared):
    reach = Reach.of(contribution, grouped=True)
    found = compute_sensitivity(
        Moments((Scaled(COST, Fraction(1), 0, 7),), (1,)), reach, Neighbours.ADD_REMOVE
    )
    assert (found.l1, found.l2_squared) == (l1, l2_squared)
    twice = compute_sensitivity(
        Moments((Scaled(COST, Fraction(1), 0, 7),), (1,)), reach, Neighbours.CHANGE_ONE
    )
    assert (twice.l1, twice.l2_squared) == (2 * l1, 2 * l2_squared)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=0, max_size=5),
    st.sampled_from([Contribution(rows=5), Contribution(groups=3, rows_per_group=2)]),
    st.sampled_from([None, 3, 5]),
)
def test_sensitivity_bounds_every_arrangement_of_one_unit(rows, contribution, most):
    """Brute force: any rows a unit may keep add a vector within the claimed norms."""
    counts = [rows[:most].count(group) for group in range(4)]
    if contribution.rows is None:
        counts = [min(c, 2) for c in counts][:3]
    reach = Reach.of(contribution, grouped=True, most=most)
    found = compute_sensitivity(Moments(), reach, Neighbours.ADD_REMOVE)
    assert sum(counts) <= found.l1
    assert sum(c * c for c in counts) <= found.l2_squared
    units = compute_sensitivity(Units(), reach, Neighbours.ADD_REMOVE)
    assert sum(c > 0 for c in counts) <= units.l1
    total = compute_sensitivity(GroupTotal(COST, Fraction(1), 0, 9), reach, Neighbours.ADD_REMOVE)
    assert 9 * sum(c > 0 for c in counts) <= total.l1


def test_threshold_delta_is_the_exact_tail_with_its_end_included():
    noise = Laplace(sensitivity=2, epsilon="2/3")  # of scale 3
    delta = Fraction(1, 10**6)
    cut = find_threshold(0, noise, groups=2, delta=delta, split=False)
    law = DiscreteLaplaceLaw(0, Fraction(3))
    p_low, p_high = enclose(lambda: law.tail(cut.least - 1))
    assert 1 - (1 - p_low) ** 2 <= cut.delta <= delta
    assert cut.delta <= (1 - (1 - p_high) ** 2) * (1 + Fraction(1, 2**50))
    assert compute_exposure(noise, 2, cut.least - 1) > delta  # no smaller threshold would do


@pytest.mark.parametrize(
    "noise",
    [
        Laplace(sensitivity=2, epsilon="2/3"),
        Laplace(sensitivity=1, epsilon=3),
        Gaussian(sensitivity_squared=3, rho="1/20"),
        Gaussian(sensitivity=1, rho=2),
    ],
    ids=str,
)
@pytest.mark.parametrize("groups", [1, 3, 50])
def test_odds_below_the_threshold_use_up_delta_and_no_more(noise, groups):
    delta = Fraction(1, 10**6)
    cut = find_threshold(0, noise, groups=groups, delta=delta)
    plain = find_threshold(0, noise, groups=groups, delta=delta, split=False)
    assert cut.least == plain.least
    assert 0 <= cut.odds < 1
    assert plain.delta <= cut.delta <= delta
    # One group: shown with P(1 + Z >= least) + odds * P(1 + Z = least - 1), term by term.
    law = noise.noise_law
    shown = float(law.tail(cut.least - 1)) + float(cut.odds) * float(law.mass(cut.least - 2))
    assert 1 - (1 - shown) ** groups == pytest.approx(float(cut.delta), rel=1e-6)
    assert compute_exposure(noise, groups, cut.least, cut.odds + Fraction(1, 2**31)) > delta


def test_private_groups_need_a_delta_and_pay_it():
    with pytest.raises(QuestionRefusal, match="Q42"):
        priced(question(COUNT, keys=(STREET,)), epsilon="1/4")
    hidden = priced(question(COUNT, keys=(STREET,)), epsilon="1/4", delta="1e-6")
    assert 0 < hidden.loss.delta <= Fraction(1, 10**6)
    assert hidden.loss.epsilon_at("1e-6") <= Fraction(1, 4)


SPENDS = [
    {"epsilon": "1/4"},
    {"rho": "1/50"},
    {"epsilon": "1/4", "delta": "1e-6"},
    {"rho": "1/50", "delta": "1e-6"},
]
KEYS = {"public": (CITY,), "private": (STREET,), "both": (CITY, STREET)}
LIMITS = [Limits(), Limits(max_groups=2, max_rows_per_group=2), Limits(max_rows=2)]


def list_offers():
    """Every offer, grouping, law of neighbours and limits; of three limits two for the long run."""
    for (s, spend), (k, (kind, keys)), (n, law), (i, limits) in product(
        enumerate(SPENDS), enumerate(KEYS.items()), enumerate(Neighbours), enumerate(LIMITS)
    ):
        if STREET in keys and "delta" not in spend:
            continue
        marks = () if (s + k + n) % len(LIMITS) == i else (pytest.mark.soak,)
        yield pytest.param(
            spend, keys, law, limits, marks=marks, id=f"{kind}-{law.name}-{'-'.join(spend)}-{i}"
        )


@pytest.mark.parametrize(("spend", "keys", "neighbours", "limits"), [*list_offers()])
def test_never_costs_more_than_was_offered(spend, keys, neighbours, limits):
    quantile = Aggregate("mid", "QUANTILE", (COST,), (Fraction(1, 4), Fraction(1, 2)))
    units = Aggregate("people", "COUNT_UNITS")
    distinct = Aggregate("streets", "COUNT_DISTINCT", (ColumnRef("v.street"),))
    mode = Aggregate("top", "TOP_K", (ColumnRef("v.city"),), (2,))
    asked = question(
        COUNT,
        SUM,
        VAR,
        quantile,
        units,
        distinct,
        mode,
        Aggregate("old", "AVG", (AGE,)),
        keys=keys,
    )
    offer = priced(replace(asked, limits=limits), replace(SCHEMA, neighbours=neighbours), **spend)
    if "rho" in spend:
        assert offer.loss.rho <= Fraction(spend["rho"])
        assert offer.loss.delta <= Fraction(spend.get("delta", 0))
    elif "delta" in spend:
        assert offer.loss.epsilon_at(spend["delta"]) <= Fraction(spend["epsilon"])
    else:
        assert offer.loss.epsilon <= Fraction(spend["epsilon"])


def test_gaussian_is_chosen_where_it_is_better():
    wide = replace(
        question(
            COUNT,
            keys=(Key("age", AGE, tuple(range(121))),),
            limits=Limits(max_groups=50, max_rows_per_group=1),
        ),
        source=Source(replace(VISITS, max_rows_per_unit=50), SOURCE.columns),
    )
    assert isinstance(priced(wide, epsilon="1/2", delta="1e-6").mechanisms[0], Gaussian)
    assert isinstance(priced(question(COUNT), epsilon="1/2", delta="1e-9").mechanisms[0], Laplace)


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=8))
def test_shares_never_add_up_to_more_than_was_offered(sizes):
    for shares in (pure_shares(sizes), share_rho(sizes)):
        assert sum(shares) <= 1
        assert all(share > 0 for share in shares)


def test_within_buys_just_enough():
    asked = question(COUNT)
    spend = Offer(within=(("", Fraction(40)),), confidence=Fraction(9, 10))
    offer = find_cheapest(asked, spend, Catalogue(SCHEMA, multiplicity=lambda *_: None))
    (recipe,) = offer.recipes
    assert isinstance(recipe, Linear)
    assert linear_margin(recipe, offer.mechanisms[0], Fraction(1, 10)) <= 40
    bought = offer.mechanisms[0]
    dearer = Laplace(sensitivity=bought.sensitivity, epsilon=bought.epsilon / Fraction(106, 100))
    assert linear_margin(recipe, dearer, Fraction(1, 10)) > 40 - 1


@pytest.mark.parametrize(
    ("asked", "spend"),
    [
        (question(AVG), Offer(within=(("", Fraction(40)),))),
        (question(COUNT), Offer(within=(("typo", Fraction(40)),))),
    ],
)
def test_within_refuses_what_cannot_be_promised(asked, spend):
    with pytest.raises(QuestionRefusal, match="Q44"):
        find_cheapest(asked, spend, Catalogue(SCHEMA, multiplicity=lambda *_: None))


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
    assert choose_grid(Fraction(low), Fraction(high), 20) == Fraction(step)


def test_entry_margin_is_least():
    noise = Laplace(sensitivity=3, epsilon="1/4")  # of scale 12
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


def test_nothing_is_chosen_from_counts_that_are_published():
    """A histogram's bins, spelled out, are the same counts: some are noised, the others not."""
    ages = Aggregate("ages", "HISTOGRAM", (AGE,), (0, 18, 120))
    (bins,) = priced(question(ages), epsilon="1/4").plan.measurements
    usual = Aggregate("usual", "MODE", (bins.expression,))
    for asked in ((ages, usual), (usual, ages)):
        offer = priced(question(*asked), epsilon="1/4")
        kinds = {type(r): type(offer.mechanisms[r.measurement]) for r in offer.recipes}
        assert kinds == {Counts: Laplace, Choice: Selection}


MODE = Aggregate("top", "MODE", (ColumnRef("v.city"),))
MEDIAN = Aggregate("mid", "QUANTILE", (COST,), (Fraction(1, 2),))


@pytest.mark.parametrize("spend", [{"epsilon": "1/2"}, {"rho": "1/50"}])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_law_of_a_choice_loses_no_more_than_is_charged(spend, neighbours):
    """A changed unit takes rows from one value and adds them to another, in the same group."""
    offer = priced(question(MODE, keys=()), replace(SCHEMA, neighbours=neighbours), **spend)
    (noise,), (recipe,) = offer.mechanisms, offer.recipes
    mechanism = noise.top_k(recipe)
    before = [40, 37, 37]
    after = [37, 40, 37] if neighbours is Neighbours.CHANGE_ONE else [40, 40, 37]
    low = [enclose(lambda i=i: mechanism.law(before).masses()[i])[0] for i in range(3)]
    high = [enclose(lambda i=i: mechanism.law(after).masses()[i])[1] for i in range(3)]
    losses = [float(np.log(float(b / a))) for a, b in zip(low, high, strict=True)]
    spread = max(losses) - min(losses)
    charged = Loss.exponential(Fraction(spread).limit_denominator(10**9))
    assert noise.loss.rho >= charged.rho * Fraction(999, 1000)
    # and nothing is thrown away: the worst pair of neighbours loses what is charged
    assert noise.loss.rho <= charged.rho * Fraction(1001, 1000)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_changed_unit_squares_the_range_of_both_of_its_steps(neighbours):
    offer = priced(
        question(MEDIAN, limits=Limits(max_groups=2, max_rows_per_group=2)),
        replace(SCHEMA, neighbours=neighbours),
        rho="1/50",
    )
    (noise,), (recipe,) = offer.mechanisms, offer.recipes
    per_rank = noise.quantiles(recipe).epsilon
    factor = 2 if neighbours is Neighbours.CHANGE_ONE else 1
    # The table allows three rows of one unit: two in one group and one in another.
    assert offer.loss.rho >= (2**2 + 1**2) * (factor * per_rank) ** 2 / 8
    assert offer.loss.epsilon >= (2 + 1) * factor * per_rank


def test_groups_hold_no_more_rows_than_the_relation_allows():
    limits = Limits(max_groups=4, max_rows_per_group=2)
    offer = priced(question(COUNT, limits=limits), epsilon="1/2")
    assert (offer.reach.groups, offer.reach.rows_per_group, offer.reach.rows) == (3, 2, 3)
    (found,) = offer.sensitivities
    assert (found.l1, found.l2_squared) == (3, 2**2 + 1**2)


def test_margin_of_a_quantile_is_that_of_its_mechanism():
    offer = priced(question(MEDIAN, keys=()), epsilon="1/4")
    (noise,), (recipe,) = offer.mechanisms, offer.recipes
    assert isinstance(noise, Selection)
    # Three rows of one person at 1/4 are three ranks at 1/12 each.
    span = recipe.variable.span
    one = OneQuantile("1/2", lower=0, upper=span, epsilon=Fraction(1, 12))
    assert rank_margin(recipe, noise, Fraction(1, 20)) < 4 * one.margin("0.05")


@pytest.mark.parametrize(
    "spend",
    [
        {"epsilon": "1e-999"},
        {"epsilon": "1e999"},
        {"rho": "1e-999"},
        {"rho": "1e999"},
        {"epsilon": "1", "delta": "-1"},
        {"epsilon": "1", "delta": "1"},
        {"epsilon": "1", "delta": "1e-999"},
    ],
)
@pytest.mark.parametrize("aggregate", [COUNT, VAR, MODE, MEDIAN], ids=lambda a: a.function)
def test_absurd_spends_are_refused_while_pricing(spend, aggregate):
    for keys in ((CITY,), (STREET,)):
        with pytest.raises(InvalidParameter, match="P2"):
            priced(question(aggregate, keys=keys), **{"delta": "1e-9", **spend})


@pytest.mark.parametrize(
    ("aggregate", "spend"),
    [(COUNT, {"epsilon": "1e-18"}), (VAR, {"epsilon": "1e-18"}), (VAR, {"rho": "1e-23"})],
)
def test_noise_that_does_not_fit_is_refused_while_pricing(aggregate, spend):
    with pytest.raises(InvalidParameter, match="64-bit"):
        priced(question(aggregate), **spend)


def test_steps_are_coarser_where_noise_would_not_fit():
    (fine,) = priced(question(VAR), epsilon="1e-3").plan.measurements
    offer = priced(question(VAR), epsilon="1e-5")
    (coarse,) = offer.plan.measurements
    assert coarse.weight < fine.weight
    assert all(Laplace.drawable(noise.scale) for noise in offer.mechanisms)
    assert offer.loss.epsilon == Fraction(1, 10**5)


@pytest.mark.parametrize("margin", ["1e-300", "1e12", "1e300", "1e999"])
def test_any_accuracy_is_priced_or_refused_quickly(margin):
    spend = Offer(within=(("", Fraction(margin)),))
    offer = find_cheapest(question(COUNT), spend, Catalogue(SCHEMA, multiplicity=lambda *_: None))
    (recipe,) = offer.recipes
    assert linear_margin(recipe, offer.mechanisms[0], Fraction(1, 20)) <= Fraction(margin)


def test_a_limit_above_the_schema_costs_nothing_more():
    plain = priced(question(COUNT), epsilon="1/4")
    assert (
        priced(question(COUNT, limits=Limits(max_rows=50)), epsilon="1/4").mechanisms
        == plain.mechanisms
    )
    grouped = priced(question(COUNT, limits=Limits(max_groups=1)), epsilon="1/4")
    assert grouped.sensitivities == plain.sensitivities
    assert priced(question(COUNT, limits=Limits(max_groups=50)), epsilon="1/4").reach.groups == 3


def test_bounds_of_a_group_clip_totals_counts_and_own_means():
    def measured(function: str, *arguments: object) -> object:
        bounds = (Fraction(0), Fraction(2))
        asked = Aggregate("x", function, arguments, bounds_per_group=bounds)  # type: ignore[arg-type]
        return priced(question(asked), epsilon="1/4").plan.measurements[0]

    assert measured("SUM", AGE) == GroupTotal(AGE, Fraction(1), 0, 2)
    assert measured("COUNT") == GroupTotal(Literal(1), Fraction(1), 0, 2)
    known = Call("not", (Call("is_null", (COST,)),))
    assert measured("COUNT", COST) == GroupTotal(Literal(1), Fraction(1), 0, 2, known)
    mean = measured("AVG", COST)
    assert isinstance(mean, GroupMean)  # of each unit's own mean, as in BigQuery
    assert (mean.low, mean.span * mean.grid) == (0, 2)


def test_steps_are_never_finer_than_a_double():
    end = Fraction(10) ** 40
    step = choose_grid(end, end, 20)
    assert 2**50 <= end / step <= 2**54


def test_predicted_margin_of_a_mean_is_near_the_simulated():
    offer = priced(question(AVG, keys=()), epsilon="1/2")
    (recipe,), (noise,) = offer.recipes, offer.mechanisms
    rng = np.random.default_rng(3)
    weight, rows = recipe.moments.weight, 3000
    entries = np.array([rows * weight / 2] * 2) + rng.laplace(
        scale=float(noise.scale), size=(200_000, 2)
    )
    errors = np.abs(compute_ratios(recipe, entries) - 2500)
    predicted = ratio_margin(recipe, noise, Fraction(1, 20), rows=rows)
    assert predicted == pytest.approx(float(np.quantile(errors, 0.95)), rel=0.03)
    assert predicted == ratio_margin(recipe, noise, Fraction(1, 20), rows=rows)
