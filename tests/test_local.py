"""The local model: probabilities, estimates and margins, each computed a second way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.exact.balls import exp_bounds
from discreet.local import (
    Attributes,
    Direct,
    Frequencies,
    Hadamard,
    HashedSets,
    HeavyHitters,
    HybridMean,
    ItemSets,
    LocalHashing,
    OneBitMean,
    Ordinal,
    PiecewiseMean,
    SubsetSelection,
    Unary,
    best,
    norm_sub,
)
from discreet.local.margins import bernstein, interval
from discreet.local.odds import odds, root_odds
from discreet.local.packed import count_bits
from discreet.mechanisms import postprocess
from discreet.noise.entropy import random_bytes, use_recording

CANARY = 8_675_309

ORACLES = [
    Direct(5, epsilon="3/2"),
    Direct(2, epsilon="3/2"),
    Unary(5, epsilon="3/2"),
    Unary(5, epsilon="3/2", optimised=False),
    LocalHashing(7, epsilon="3/2"),
    LocalHashing(7, epsilon="1/2"),
    LocalHashing(11, epsilon="1/8"),
    HashedSets(9, epsilon="0.9163"),
    HashedSets(11, epsilon="0.4055"),
    HashedSets(7, epsilon="1/2"),
    SubsetSelection(7, epsilon="1/2"),
    SubsetSelection(8, epsilon="3/2"),
    SubsetSelection(2, epsilon=1),
    Hadamard(7, epsilon="3/2"),
    Hadamard(4, epsilon="1/2"),
]


def reports_of(oracle):
    """Every report there is, as ``release`` writes it, with its key in the law."""
    if isinstance(oracle, Unary):
        outcomes = list(itertools.product((0, 1), repeat=oracle.categories))
        return outcomes, np.packbits(np.array(outcomes, dtype=np.uint8), axis=1)
    outcomes = list(oracle.law(0).outcomes)
    if isinstance(oracle, SubsetSelection):
        bits = np.zeros((len(outcomes), oracle.categories), dtype=np.uint8)
        for row, listed in enumerate(outcomes):
            bits[row, list(listed)] = 1
        return outcomes, np.packbits(bits, axis=1)
    return outcomes, np.array(outcomes)


def masses(oracle, value, outcomes):
    law = oracle.law(value)
    if isinstance(oracle, Unary):
        return [
            math.prod(
                (bit.fractions[one] for bit, one in zip(law.laws, outcome, strict=True)),
                start=Fraction(1),
            )
            for outcome in outcomes
        ]
    return list(law.fractions)


# --- the odds --------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 2**24), 20, max_denominator=2**24))
def test_the_odds_are_below_and_close(epsilon):
    low, _ = exp_bounds(epsilon)
    assert 1 < odds(epsilon) <= low
    assert math.log(odds(epsilon)) >= 0.99 * float(epsilon)
    assert root_odds(epsilon) ** 2 <= odds(epsilon)


# --- exactly unbiased, with exactly these variances ------------------------------------------


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_support_has_the_stated_probabilities(oracle):
    outcomes, reports = reports_of(oracle)
    supported = oracle.indicator(reports)
    for value in range(oracle.categories):
        chances = masses(oracle, value, outcomes)
        assert sum(chances) == 1
        for answer in range(oracle.categories):
            found = sum(c for c, hit in zip(chances, supported[:, answer], strict=True) if hit)
            assert found == (oracle.inside if answer == value else oracle.outside)


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_covariance_is_that_of_the_law(oracle):
    """Of the scores of one report, from the law, for each answer and any mixture of them."""
    outcomes, reports = reports_of(oracle)
    p, q = float(oracle.inside), float(oracle.outside)
    scores = (oracle.indicator(reports) - q) / (p - q)
    counts = np.arange(3, 3 + oracle.categories)
    expected = np.zeros((oracle.categories,) * 2)
    for value, count in enumerate(counts):
        chances = np.array([float(c) for c in masses(oracle, value, outcomes)])
        mean = chances @ scores
        here = (scores * chances[:, None]).T @ scores - np.outer(mean, mean)
        assert np.allclose(mean, np.eye(oracle.categories)[value])
        assert np.allclose(oracle.covariance(np.eye(oracle.categories)[value]), here)
        for weights in (np.arange(oracle.categories) - 1.5, np.eye(oracle.categories)[1]):
            bound = oracle.query_variances(weights)[value]
            true = weights @ here @ weights
            assert bound >= true - 1e-9
            if not isinstance(oracle, Hadamard | LocalHashing):
                assert bound == pytest.approx(true, abs=1e-9)
            # The bits of a unary encoding are parts of their own, each with its weight.
            parts = scores * weights if isinstance(oracle, Unary) else (scores @ weights)[:, None]
            moved = np.abs(parts - chances @ parts).max()
            assert moved <= oracle.query_reach(weights) * (1 + 1e-9)
        expected += count * here
    assert np.allclose(oracle.covariance(counts), expected)
    for answer, count in enumerate(counts.tolist()):
        found = oracle.variance(respondents=int(counts.sum()), count=count)
        assert found == pytest.approx(expected[answer, answer])
    assert float(oracle.total_variance()) * counts.sum() == pytest.approx(np.trace(expected))


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_support_counts_the_indicator(oracle):
    _, reports = reports_of(oracle)
    assert (oracle.support(reports) == oracle.indicator(reports).sum(axis=0)).all()
    many = np.concatenate([reports] * 40)
    assert (oracle.support(many) == 40 * oracle.indicator(reports).sum(axis=0)).all()
    found = oracle.estimate(many)
    assert found.respondents == len(many)
    if oracle.sums_to_all:
        assert found.values.sum() == pytest.approx(len(many))


def test_closed_forms_of_the_papers():
    """Wang et al. (2017): GRR, OUE and OLH at f = 0, with e**epsilon for the odds."""
    e = math.e
    assert Direct(50, epsilon=1).variance(respondents=7) == pytest.approx(
        7 * (50 - 2 + e) / (e - 1) ** 2
    )
    assert Unary(50, epsilon=1).variance(respondents=7) == pytest.approx(7 * 4 * e / (e - 1) ** 2)
    olh = LocalHashing(50, epsilon=4).variance(respondents=7)
    assert olh == pytest.approx(7 * 4 * e**4 / (e**4 - 1) ** 2, rel=0.005)
    assert Hadamard(50, epsilon=1).variance(respondents=7) == pytest.approx(
        7 * ((e + 1) / (e - 1)) ** 2
    )


@pytest.mark.parametrize("epsilon", ["1/2", 1, 4])
def test_texts_nobody_listed_cost_no_more_than_unary_encoding(epsilon):
    """4 r / (r - 1)**2 is what optimal unary encoding would cost, if it could list all texts.

    The form of the papers for hashing (OLH) has a whole number of hashes, and costs more.
    """
    hashed = HashedSets(2**40, epsilon=epsilon)
    r, e = float(hashed.odds), math.exp(Fraction(epsilon))
    least = 4 * r / (r - 1) ** 2
    assert least <= hashed.variance(respondents=1) < (1 + 1e-6) * least
    olh = min((e - 1 + g) ** 2 / ((g - 1) * (e - 1) ** 2) for g in range(2, 200))
    assert hashed.variance(respondents=1) < olh
    assert hashed.report_bits <= 53


@given(st.fractions(Fraction(1, 16), 6, max_denominator=16), st.integers(2, 2**40))
@settings(max_examples=40, deadline=None)
def test_what_sets_of_hashes_cost_above_the_least(epsilon, categories):
    """Lemma 7: exactly, for every share q; and at most a part in a million up to epsilon = 4."""
    hashed = HashedSets(categories, epsilon=epsilon)
    r, p, q = hashed.odds, hashed.inside, hashed.outside
    excess = (1 - (r + 1) * q) ** 2 / (4 * r * q * (1 - q))
    assert q * (1 - q) / (p - q) ** 2 == 4 * r / (r - 1) ** 2 * (1 + excess)
    assert excess < (Fraction(1, 10**6) if epsilon <= 4 else Fraction(1, 10**3))
    assert hashed.keys >= categories


def test_sets_of_hashes_are_counted_for_any_candidates():
    """Codes far apart, of which nobody made a list: within six standard deviations."""
    hashed = HashedSets(2**40, epsilon=1)
    codes = np.array([3, 2**39 + 11, 2**40 - 1, 77_777_777])
    held = np.repeat(codes, [9000, 5000, 1000, 0])
    support = hashed.support_of(hashed.release(held), codes)
    p, q = float(hashed.inside), float(hashed.outside)
    found = (support - held.size * q) / (p - q)
    far = 6 * math.sqrt(hashed.variance(respondents=held.size, count=9000))
    assert np.abs(found - [9000, 5000, 1000, 0]).max() < far < 2200


def test_hashes_of_two_answers_are_exactly_pairwise_uniform():
    oracle = LocalHashing(11, epsilon=1)
    keys = np.arange(oracle.keys)
    for one, other in itertools.combinations(range(11), 2):
        differences = oracle.hash(keys, np.array([one])) - oracle.hash(keys, np.array([other]))
        counts = np.bincount(differences % oracle.buckets, minlength=oracle.buckets)
        assert (counts == oracle.keys // oracle.buckets).all()


@pytest.mark.parametrize("oracle", [LocalHashing(300, epsilon=2), HashedSets(300, epsilon="1/2")])
def test_support_of_few_reports_and_of_many_agree(oracle):
    """One way compares each report, the other counts the reports of each key first."""
    reports = oracle.release(np.arange(300).repeat(20))
    assert oracle.keys <= len(reports)
    whole = oracle.support(reports)
    parts = sum(oracle.support(part) for part in np.split(reports, 60))
    assert (whole == parts).all()
    wanted = [7, 250, 3]
    assert (oracle.support_of(reports, wanted) == whole[wanted]).all()


# --- margins ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [("3/4", "1/4"), ("1/2", "1/5"), ("9/10", "1/50")])
def test_intervals_cover_whatever_the_truth_is(p, q):
    """For every c the chance of an interval that misses it, summed exactly, is at most beta."""
    n, beta = 24, Fraction(1, 10)
    inside, outside = Fraction(p), Fraction(q)
    ends = [
        interval(hits, respondents=n, inside=inside, outside=outside, beta=beta)
        for hits in range(n + 1)
    ]
    for c in range(n + 1):
        mine = [math.comb(c, k) * inside**k * (1 - inside) ** (c - k) for k in range(c + 1)]
        rest = n - c
        others = [
            math.comb(rest, k) * outside**k * (1 - outside) ** (rest - k) for k in range(rest + 1)
        ]
        missed = Fraction(0)
        for hits in range(n + 1):
            low, high = ends[hits]
            if not low <= c <= high:
                missed += sum(
                    mine[k] * others[hits - k] for k in range(c + 1) if 0 <= hits - k <= rest
                )
        assert missed <= beta


def test_large_intervals_are_near_the_normal_ones():
    n, c = 10**6, 30_000
    oracle = Unary(50, epsilon=1)
    hits = round(c * oracle.inside + (n - c) * oracle.outside)
    low, high = interval(
        hits, respondents=n, inside=oracle.inside, outside=oracle.outside, beta="0.05"
    )
    half = 1.96 * math.sqrt(oracle.variance(respondents=n, count=c))
    assert low == pytest.approx(c - half, abs=0.01 * half)
    assert high == pytest.approx(c + half, abs=0.01 * half)


def test_bernstein_is_the_published_bound():
    t = bernstein(variance=900.0, largest=3.0, beta="0.05")
    assert 2 * math.exp(-(t**2) / (2 * (900 + 3 * t / 3))) == pytest.approx(0.05)


def test_queries_and_subsets():
    oracle = Direct(4, epsilon=2)
    found = Frequencies(oracle, 1000, np.array([400, 300, 200, 100]))
    both = found.count({0, 2})
    assert both.value == pytest.approx(found.values[0] + found.values[2])
    assert both.low < both.value < both.high
    assert both.margin == pytest.approx(both.high - both.value)
    everyone = found.query(np.ones(4))
    assert everyone.value == pytest.approx(1000)
    assert everyone.margin == pytest.approx(0)
    assert everyone.standard_error == 0
    single = found.count([1])
    assert (single.low, single.high) == found.interval(1)
    assert found.intervals(together=True)[1][0] < found.intervals()[1][0]
    assert [place for place, _ in found.top(2)] == [0, 1]
    w = np.array([2.0, -1.0, 0.5, 3.0])
    assert found.query(w).standard_error == pytest.approx(
        math.sqrt(w @ oracle.covariance(found.plausible) @ w)
    )


@given(st.lists(st.integers(-50, 90), min_size=1, max_size=9))
def test_norm_sub_is_the_projection(values):
    assert np.allclose(norm_sub(values, total=40), postprocess.simplex(values, total=40))


def test_consistent_ways():
    found = Frequencies(Direct(3, epsilon=1), 100, np.array([80, 15, 5]))
    assert found.values.min() < 0
    assert found.consistent("nonnegative").min() == 0
    assert found.consistent("nonnegative").sum() > 100
    for method in ("simplex", "norm-sub"):
        assert found.consistent(method).sum() == pytest.approx(100)
        assert found.consistent(method).min() >= 0
    with pytest.raises(InvalidParameter):
        found.consistent("clip")
    assert Frequencies(Direct(3, epsilon=1), 0, np.zeros(3, dtype=int)).consistent().tolist() == [
        0,
        0,
        0,
    ]


def test_shrunk_numbers_keep_their_order_and_add_up():
    oracle = Direct(6, epsilon=1)
    found = Frequencies(oracle, 900, np.array([300, 180, 140, 120, 90, 70]))
    shrunk = found.consistent("shrunk")
    assert shrunk.sum() == pytest.approx(900)
    assert shrunk.min() >= 0
    assert (np.diff(shrunk) <= 1e-9).all()
    assert np.ptp(shrunk) < np.ptp(found.values)
    exact = Frequencies(Direct(3, epsilon=20), 900, np.array([600, 200, 100]))
    assert np.allclose(exact.consistent("shrunk"), [600, 200, 100], atol=1)
    assert Frequencies(oracle, 0, np.zeros(6, dtype=int)).consistent("shrunk").sum() == 0


def test_shrinking_more_than_halves_the_error_of_rare_answers():
    """Measured 0.09 against 0.47, over n; the spread of a mean of five is below a fifth."""
    oracle = SubsetSelection(500, epsilon="1/2")
    weights = 1 / (np.arange(500) + 5.0)
    values = np.repeat(np.arange(500), np.round(weights / weights.sum() * 5000).astype(int))
    truth = np.bincount(values, minlength=500)
    errors = {"simplex": 0.0, "shrunk": 0.0}
    for _ in range(5):
        found = oracle.estimate(oracle.release(values))
        for method in errors:
            errors[method] += float(((found.consistent(method) - truth) ** 2).sum())
    assert errors["shrunk"] < errors["simplex"] / 2


def draw_counts(law, oracle, n):
    """How many gave each answer, and what their reports say of it."""
    dice, d = np.random.default_rng(), law.size
    truth = dice.multinomial(n, law / law.sum())
    p, q = float(oracle.inside), float(oracle.outside)
    support = dice.binomial(truth, p) + dice.binomial(n - truth, q)
    assert support.size == d
    return truth, Frequencies(oracle, n, support)


def test_the_largest_noise_of_many_is_not_taken_for_a_frequent_answer():
    """All are equally rare: 0.002, over n; one noise taken for a number makes it 0.02 and more."""
    oracle = Unary(500, epsilon="1/2")
    errors = []
    for _ in range(60):
        truth, found = draw_counts(np.ones(500), oracle, 5000)
        errors.append(((found.consistent() - truth) ** 2).mean() / 5000)
    assert np.median(errors) < 0.003
    assert sum(one > 0.01 for one in errors) <= 6


@pytest.mark.parametrize("categories", [85, 2000])
@pytest.mark.parametrize("epsilon", ["1/2", 4])
def test_an_answer_of_half_of_them_stays_so(categories, epsilon):
    """Beside it all are rare, and the law that is begun with gives it no chance at all."""
    law = np.full(categories, 0.5 / (categories - 1))
    law[7] = 0.5
    oracle = SubsetSelection(categories, epsilon=epsilon)
    truth, found = draw_counts(law, oracle, 1_000_000)
    shrunk = found.consistent()
    assert np.isfinite(shrunk).all()
    assert abs(shrunk[7] - truth[7]) < 8 * found.standard_errors[7]
    assert shrunk.sum() == pytest.approx(1_000_000)


# --- reports ---------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_bad_answers_and_bad_reports_are_refused_unquoted(oracle):
    for bad in (CANARY, -1, "yes", 1.0, None, [[1]]):
        with pytest.raises(InvalidParameter) as refused:
            oracle.release(bad)
        assert str(CANARY) not in str(refused.value)
    for reports in ([CANARY * 10**6], [-1], ["x"], [[CANARY]], [0.5]):
        with pytest.raises(InvalidParameter) as refused:
            oracle.estimate(reports)
        assert str(CANARY) not in str(refused.value)
    assert oracle.estimate([]).values.tolist() == [0.0] * oracle.categories


@pytest.mark.parametrize(
    ("read", "empty"),
    [
        (HeavyHitters(length=3, epsilon=2, key=b"a").find, lambda found: found == []),
        *(
            (Attributes((3, 2, 5), epsilon=1, strategy=way).estimate, lambda f: not f.respondents)
            for way in ("split", "sample", "pairs")
        ),
        (Ordinal(40, epsilon=1).estimate, lambda found: not found.respondents),
        (ItemSets(9, epsilon=1, at_most=2).estimate, lambda found: not found.respondents),
    ],
    ids=["texts", "split", "sample", "pairs", "ordinal", "items"],
)
def test_bad_reports_of_several_parts_are_refused_unquoted(read, empty):
    """Half a report belongs to no part: it was passed over, and counted as a respondent."""
    for bad in ([0.5], [-1], ["x"], [None], [True], [2**62], [2**64], 5, [[CANARY]], [[0.5] * 3]):
        with pytest.raises(InvalidParameter) as refused:
            read(bad)
        assert str(CANARY) not in str(refused.value)
    assert empty(read([]))


@pytest.mark.parametrize("bad", [CANARY, None, ["lung", CANARY], [None], [b"lung"], b"lung"])
def test_answers_that_are_no_texts_are_refused_unquoted(bad):
    with pytest.raises(InvalidParameter) as refused:
        HeavyHitters(length=3, epsilon=2, key=b"a").release(bad)
    assert str(CANARY) not in str(refused.value)


def test_reports_outside_the_support_are_refused():
    sets = SubsetSelection(9, epsilon="1/2")
    for listed in (sets.size - 1, sets.size + 1):
        bits = np.zeros(9, dtype=np.uint8)
        bits[:listed] = 1
        with pytest.raises(InvalidParameter):
            sets.check(np.packbits(bits)[None, :])
    with pytest.raises(InvalidParameter):  # a bit beyond the last answer
        Unary(9, epsilon=1).check(np.array([[0, 1]], dtype=np.uint8))


def test_packed_bits_are_counted_beyond_a_byte():
    assert count_bits(np.full((1000, 2), 0b10100000, np.uint8), 11).tolist() == [
        1000, 0, 1000, 0, 0, 0, 0, 0, 1000, 0, 1000,
    ]  # fmt: skip


@pytest.mark.parametrize("oracle", ORACLES, ids=repr)
def test_one_report_is_that_of_a_list_of_one(oracle):
    """A page draws one report; the bytes it draws are those of a list of one, in the same order."""
    for _ in range(20):
        data = random_bytes(2000)
        with use_recording(data):
            one = oracle.release(1)
        with use_recording(data):
            listed = oracle.release([1])
        assert np.array_equal(np.asarray(one), listed[0])


# --- which one -------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 1000), st.fractions(Fraction(1, 8), 6, max_denominator=8))
def test_best_is_never_worse_than_any_that_fits(domain, epsilon):
    chosen = best(domain, epsilon, 1000).randomizer
    kinds = [Direct, LocalHashing, HashedSets, Hadamard, SubsetSelection, Unary]
    for kind in kinds:
        other = kind(domain, epsilon=epsilon)
        if other.report_bits <= 512:
            assert chosen.total_variance() <= other.total_variance() * (1 + Fraction(1, 10**6))
    assert chosen.report_bits <= 512


@pytest.mark.parametrize("epsilon", ["1/2", 1, 4])
@pytest.mark.parametrize("d", [85, 500])
def test_best_is_at_most_the_papers_closed_forms(d, epsilon):
    """Mean squared error of unbiased estimates: equal to these forms whatever the truth is."""
    e = math.exp(Fraction(epsilon))
    g, k = round(e + 1), max(1, round(d / (e + 1)))
    p = e * k / (e * k + d - k)
    papers = {
        "GRR": (e / (e + d - 1), 1 / (e + d - 1)),
        "OUE": (1 / 2, 1 / (e + 1)),
        "OLH": (e / (e + g - 1), 1 / g),
        "SS": (p, (p * (k - 1) + (1 - p) * k) / (d - 1)),
        "HR": (e / (e + 1), 1 / 2),
    }
    least = min((p * (1 - p) + (d - 1) * q * (1 - q)) / (p - q) ** 2 for p, q in papers.values())
    assert float(best(d, epsilon, 1000).randomizer.total_variance()) <= least * (1 + 1e-8)


def test_best_says_why():
    choice = best(500, "1/2", 50_000, most_bits=64)
    assert "500 bits" in choice.why
    assert choice.table[0][0] == "SubsetSelection"
    assert best(2**30, 1, 10).randomizer == HashedSets(2**30, epsilon=1)
    with pytest.raises(InvalidParameter):
        best(2**30, 1, 10, most_bits=20)


# --- means -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OneBitMean, PiecewiseMean, HybridMean])
@pytest.mark.parametrize("epsilon", ["1/2", 2])
@pytest.mark.parametrize("steps", [1, 7, 12])
def test_scores_are_unbiased_with_the_stated_variance(kind, epsilon, steps):
    mean = kind(lower=-3, upper=9, epsilon=epsilon, steps=steps)
    scores = mean.scores(np.arange(mean.outcomes))
    variances = []
    for step in range(steps + 1):
        chances = np.array([float(c) for c in mean.masses(step)])
        assert chances.sum() == pytest.approx(1)
        assert chances @ scores == pytest.approx(step)
        variances.append(chances @ scores**2 - step**2)
        assert mean.step_variance(step) == pytest.approx(variances[-1])
    width = 12 / steps
    assert mean.worst_variance >= max(variances) * width**2 * (1 - 1e-9)
    assert mean.variance(9) == pytest.approx(variances[-1] * width**2)


def test_which_mean_is_better_where():
    """Wang et al. (2019): piecewise beats one bit from 1.29 on; hybrid is never worse."""
    for epsilon, better in (("5/4", False), ("4/3", True)):
        bounds = {"lower": 0, "upper": 10, "epsilon": epsilon}
        bit, number = OneBitMean(**bounds), PiecewiseMean(**bounds)
        assert (number.worst_variance < bit.worst_variance) == better
        hybrid = HybridMean(**bounds)
        assert hybrid.worst_variance <= min(bit.worst_variance, number.worst_variance) * 1.0001


def test_means_clip_and_refuse():
    mean = OneBitMean(lower=0, upper=10, epsilon=1)
    assert mean.steps_of([-5, 0, 5, 10, 99]).tolist() == [0, 0, 2**15, 2**16, 2**16]
    for bad in (float("nan"), "x", None):
        with pytest.raises(InvalidParameter):
            mean.release(bad)
    for reports in ([], [2], [-1], [0.5]):
        with pytest.raises(InvalidParameter):
            mean.estimate(reports)
    with pytest.raises(InvalidParameter):
        OneBitMean(lower=3, upper=3, epsilon=1)


# --- ordered answers -------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_nodes_make_up_the_range(data):
    categories = data.draw(st.integers(2, 70))
    tree = Ordinal(categories, epsilon=1, branching=data.draw(st.integers(2, 5)))
    low = data.draw(st.integers(0, categories - 1))
    high = data.draw(st.integers(low, categories - 1))
    pieces = tree.estimate([])._nodes(low, high + 1)
    covered = np.zeros(categories, dtype=int)
    for weights, width in zip(pieces, tree.widths, strict=True):
        covered += np.repeat(weights.astype(int), width)[:categories]
    inside = np.arange(categories)
    assert (covered == ((inside >= low) & (inside <= high))).all()


def test_a_hierarchy_without_noise_is_the_truth():
    """At epsilon = 20 reports are nearly the answers: ranges and quantiles come out."""
    tree = Ordinal(30, epsilon=20, branching=3)
    values = np.arange(30).repeat(900)
    found = tree.estimate(tree.release(values))
    assert found.count(0, 29).value == pytest.approx(27_000)
    assert found.count(4, 12).value == pytest.approx(8100, abs=600)
    assert abs(found.quantile("1/2") - 15) <= 1
    assert found.cumulative[-1] <= 27_000
    with pytest.raises(InvalidParameter):
        found.count(9, 30)


# --- several attributes, sets, texts ---------------------------------------------------------


@pytest.mark.parametrize("strategy", ["split", "pairs"])
def test_joint_tables_are_exactly_unbiased(strategy):
    both = Attributes((3, 2, 2), epsilon=3, strategy=strategy)
    truth = (2, 1, 0)
    law = both.law(truth)
    expected, weight = np.zeros((3, 2)), 0.0
    if strategy == "split":
        for outcome in itertools.product(*(part.outcomes for part in law.laws)):
            chance = math.prod(
                float(part.exact_mass(one)) for part, one in zip(law.laws, outcome, strict=True)
            )
            expected += chance * both.estimate(np.array([outcome])).joint(0, 1).shares
            weight += chance
    else:
        for outcome, chance in zip(law.outcomes, law.fractions, strict=True):
            if outcome % 3 == 0:  # the pair (0, 1) was drawn
                expected += float(chance) * both.estimate(np.array([outcome])).joint(0, 1).shares
                weight += float(chance)
    wanted = np.zeros((3, 2))
    wanted[2, 1] = 1
    assert np.allclose(expected / weight, wanted)


def test_joint_tables_of_many():
    both = Attributes((3, 4), epsilon=8, strategy="split")
    rows = np.array([[0, 0], [2, 3], [2, 3], [1, 1]] * 3000)
    joint = both.estimate(both.release(rows)).joint(0, 1)
    assert joint.shares[2, 3] == pytest.approx(0.5, abs=9 * joint.standard_errors[2, 3])
    assert joint.correlation() > 0.8
    turned = both.estimate(both.release(rows)).joint(1, 0)
    assert turned.shares.shape == (4, 3)
    alone = Attributes((3, 4), epsilon=8)
    with pytest.raises(InvalidParameter):
        alone.estimate(alone.release(rows)).joint(0, 1)
    with pytest.raises(InvalidParameter):
        both.release([0, 4])
    pairs = Attributes((3, 4), epsilon=8, strategy="pairs")
    with pytest.raises(InvalidParameter):
        pairs.estimate(pairs.release(rows)).table(0)
    alone_table = alone.estimate(alone.release(rows)).table(1)
    assert alone_table.values.sum() == pytest.approx(alone_table.respondents)


def test_item_sets_are_exactly_unbiased():
    sets = ItemSets(5, epsilon=2, at_most=3)
    for items in (set(), {1}, {1, 4}, {0, 2, 4}):
        law = sets.law(items)
        mean = sum(
            float(chance) * sets.estimate([report]).values
            for report, chance in zip(law.outcomes, law.fractions, strict=True)
        )
        assert np.allclose(mean, [float(item in items) for item in range(5)])
    with pytest.raises(InvalidParameter):
        sets.release({7})
    found = sets.estimate(sets.release([{1, 4}] * 500)).count(1)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("bad", [{5}, {7}, {-1}, {1.5}, {"1"}, {2**70}, [1, "a"], {None}, 3])
def test_items_outside_the_declared_are_refused(bad):
    """Blanks are numbers of the oracle, and none that a respondent can name."""
    sets = ItemSets(5, epsilon=2, at_most=3)
    with pytest.raises(InvalidParameter, match="from 0 to 4"):
        sets.release([{1}, bad])


def test_large_sets_lists_and_repeated_items_are_drawn_from_alike():
    """At a price at which the oracle tells nearly always what was drawn."""
    sets = ItemSets(5, epsilon=12, at_most=2)
    for held, drawn in (([3, 3], {3, 6}), ((), {5, 6}), ({0, 2, 4}, {0, 2, 4}), ({1, 2}, {1, 2})):
        found = Counter(np.asarray(sets.release([held] * 6000)).tolist())
        assert {item for item, times in found.items() if times > 500} == drawn
        for item in drawn:
            assert abs(found[item] - 6000 / len(drawn)) < 300  # seven standard deviations


def test_texts_nobody_listed_are_found():
    words = HeavyHitters(length=5, epsilon=4, key=b"a public name")
    texts = ["heart"] * 6000 + ["lung"] * 5000 + ["eye"] * 4000
    texts += [chr(97 + i % 26) * (1 + i % 5) for i in range(3000)]
    found = words.find(words.release(texts), count=3)
    assert {one.text for one in found} == {"heart", "lung", "eye"}
    for one, true in zip(sorted(found), (4000, 6000, 5000), strict=True):
        assert one.low <= one.value <= one.high
        assert one.value == pytest.approx(true, rel=0.3)
    assert words.release("Heart!") >= 0
    assert words.beginning("eye", 5) == words.beginning("eye", 4) == "eye\x00"
    assert words.beginning("heart attack", 5) == "heart"
    with pytest.raises(InvalidParameter):
        HeavyHitters(length=5, epsilon=4, key=b"")
