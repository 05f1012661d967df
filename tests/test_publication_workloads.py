"""Marginals, strategies and hierarchies: unbiased with stated variance, consistent, whole."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publication_cases import COLUMNS, count_cells, people

from discreet.errors import InvalidParameter
from discreet.publication import Column, Measurement, Records, Spend, loss_of
from discreet.publication.gram import Prefixes, Questions, Ranges
from discreet.publication.hierarchy import (
    Hierarchy,
    fit_tree,
    follow_totals,
    make_consistent,
    release_hierarchy,
)
from discreet.publication.marginals import combine_tables, plan_marginals, release_marginals
from discreet.publication.measure import ask_cells
from discreet.publication.strategy import (
    MOST_CELLS,
    Strategy,
    ask_strategy,
    choose_kind,
    estimate_cells,
    expected_rmse,
    plain_cells,
    plan_strategy,
)
from discreet.publication.workload import LinearQuestion, answer_workload, plan_workload

SIZES = [column.size for column in COLUMNS]
PAIRS = list(itertools.combinations(range(5), 2))
NO_NOISE = Spend.pure(10**7)


# --- marginals ----------------------------------------------------------------------------------


def noise_matrix(plan, asked):
    """The asked marginal as a matrix of the measured tables' cells, column by column."""
    columns = []
    shapes = [tuple(plan.sizes[c] for c in table) for table in plan.measured]
    for place, shape in enumerate(shapes):
        for cell in range(math.prod(shape)):
            tables = [np.zeros(one) for one in shapes]
            tables[place].reshape(-1)[cell] = 1
            answers = [Measurement(None, table) for table in tables]
            columns.append(
                combine_tables(plan, answers)[asked].values.ravel() / plan.spends[place].sharpness
            )
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("spend", [Spend.concentrated("1/8"), Spend.pure(2)])
@pytest.mark.parametrize("asked", [[(0, 1), (1, 2)], [(0,), (0, 1, 2)], [()], [(2, 1)]], ids=str)
def test_the_stated_variance_is_that_of_the_linear_map(spend, asked):
    """Lemma 8, against the whole matrix."""
    columns = [Column("a", 2), Column("b", 4), Column("c", 3)]
    plan = plan_marginals(columns, asked, spend)
    assert sum(part.amount for part in plan.spends) == spend.amount
    for one in plan.asked:
        spread = np.square(noise_matrix(plan, one)).sum(axis=1)
        np.testing.assert_allclose(spread, plan.variance(one), rtol=1e-9)


def test_marginals_are_unbiased_and_agree_on_what_they_share():
    rows = people(3000)
    plan = plan_marginals(COLUMNS, PAIRS, NO_NOISE)
    exact, _ = release_marginals(Records(COLUMNS, rows), COLUMNS, plan)
    for pair, one in exact.items():
        np.testing.assert_allclose(one.values, count_cells(rows, pair, SIZES), atol=1e-6)
    plan = plan_marginals(COLUMNS, PAIRS, Spend.concentrated("1/50"))
    noisy, _ = release_marginals(Records(COLUMNS, rows), COLUMNS, plan)
    for a, b in PAIRS:
        if (a, b) != (0, 1):
            shared = {0, 1} & {a, b}
            for column in shared:
                one = noisy[0, 1].values.sum(axis=1 - (0, 1).index(column))
                two = noisy[a, b].values.sum(axis=1 - (a, b).index(column))
                np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize("spend", [Spend.concentrated("1/50"), Spend.pure("1/2")])
def test_marginals_err_as_planned_and_cover(spend):
    rows = people(3000)
    plan = plan_marginals(COLUMNS, PAIRS, spend)
    noisy, _ = release_marginals(Records(COLUMNS, rows), COLUMNS, plan)
    errors = {p: noisy[p].values - count_cells(rows, p, SIZES) for p in PAIRS}
    cells = sum(error.size for error in errors.values())
    rmse = math.sqrt(sum(float(np.square(error).sum()) for error in errors.values()) / cells)
    assert rmse == pytest.approx(plan.rmse(), rel=0.2)
    within = sum((np.abs(e) <= noisy[p].margin("0.05")).sum() for p, e in errors.items()) / cells
    assert within > 0.92


def test_planning_beats_equal_shares():
    """Sharing what tables tell of each other: never worse than each by itself."""
    for spend in (Spend.concentrated("1/8"), Spend.pure(2)):
        share = math.sqrt(len(PAIRS)) if spend.gaussian else len(PAIRS)
        assert plan_marginals(COLUMNS, PAIRS, spend).rmse() < 0.9 * share / spend.sharpness


def test_interest_makes_a_marginal_more_precise():
    plain = plan_marginals(COLUMNS, PAIRS, Spend.concentrated("1/8"))
    keen = [Column(c.name, c.size, interest=20 if c.name == "job" else 1) for c in COLUMNS]
    better = plan_marginals(keen, PAIRS, Spend.concentrated("1/8"))
    assert better.variance((1, 2)) < 0.8 * plain.variance((1, 2))


@pytest.mark.parametrize("asked", [[], [(0, 7)], [(0, 1, 2, 3, 4, 5, 6, 7, 8)]])
def test_impossible_marginals_are_refused(asked):
    columns = [Column(str(i), 10**3) for i in range(9)] if asked and len(asked[0]) > 4 else COLUMNS
    with pytest.raises(InvalidParameter):
        plan_marginals(columns, asked, NO_NOISE)


# --- strategies ---------------------------------------------------------------------------------


def matrix_of(gram):
    n = gram.size
    lower = np.tril(np.ones((n, n)))
    if isinstance(gram, Prefixes):
        return lower
    return np.array([[l <= j <= h for j in range(n)] for l in range(n) for h in range(l, n)], float)


@given(st.integers(1, 12), st.sampled_from([Prefixes, Ranges]))
def test_gram_matrices_are_those_of_their_questions(size, kind):
    gram = kind(size)
    weights = matrix_of(gram)
    rows = np.random.default_rng(size).normal(size=(3, size))
    assert gram.questions == len(weights)
    np.testing.assert_allclose(gram.dense(), weights.T @ weights)
    np.testing.assert_allclose(gram.multiply(rows), rows @ weights.T @ weights, atol=1e-9)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(weights.T @ weights))
    other = Questions(weights)
    np.testing.assert_allclose(other.multiply(rows), gram.multiply(rows), atol=1e-9)


def whole_matrix(strategy: Strategy) -> np.ndarray:
    if strategy.diagonal is None:
        return strategy.matrix
    return np.concatenate([np.diag(strategy.diagonal), strategy.matrix])


@pytest.mark.parametrize("spend", [Spend.pure("1/2"), Spend.concentrated("1/8")], ids=str)
@pytest.mark.parametrize("gram", [Prefixes(48), Ranges(48)], ids=str)
def test_strategies_are_better_than_cells_and_err_as_they_say(gram, spend):
    strategy = plan_strategy(gram, spend)
    rmse = expected_rmse(strategy, gram, spend)
    assert rmse < 0.95 * expected_rmse(plain_cells(48), gram, spend)
    # The stated error, against the pseudo-inverse of the whole matrix and the noise's own variance.
    asked = ask_strategy(strategy, [0], [np.arange(48)], spend)
    spread = np.square(matrix_of(gram) @ np.linalg.pinv(whole_matrix(strategy).astype(float))).sum()
    expected = math.sqrt(spread / gram.questions * asked.noise.variance)
    assert rmse == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("spend", [NO_NOISE, Spend.concentrated(10**12)], ids=["pure", "gaussian"])
def test_estimates_of_cells_are_unbiased(spend):
    rows = np.random.default_rng(1).integers(0, 48, (5000, 1))
    columns = [Column("age", 48, ordered=True)]
    strategy = plan_strategy(Ranges(48), spend)
    (measured,) = Records(columns, rows).measure(
        [ask_strategy(strategy, [0], [np.arange(48)], spend)]
    )
    cells = estimate_cells(strategy, measured)
    np.testing.assert_allclose(cells, np.bincount(rows[:, 0], minlength=48), atol=1e-2)


def test_the_gaussian_strategy_is_the_optimum():
    """No X with a unit diagonal does better: the dual certifies it."""
    gram = Prefixes(32)
    spend = Spend.concentrated("1/2")  # one count has standard deviation 1
    strategy = plan_strategy(gram, spend)
    dense, weights = gram.dense(), np.ones(32)
    for _ in range(300):
        half = np.sqrt(weights)
        values, vectors = np.linalg.eigh(half[:, None] * dense * half)
        weights = np.diagonal((vectors * np.sqrt(values.clip(0))) @ vectors.T)
    half = np.sqrt(weights / weights.sum())
    values = np.linalg.eigvalsh(half[:, None] * dense * half)
    bound = math.sqrt(np.sqrt(values.clip(0)).sum() ** 2 / 32)
    assert bound <= expected_rmse(strategy, gram, spend) * (1 + 1e-9)
    assert expected_rmse(strategy, gram, spend) < 1.005 * bound


def test_pure_noise_wins_one_line_at_a_tiny_delta():
    spend, strategy = choose_kind(Prefixes(40), epsilon=1, delta="1e-9")
    assert not spend.gaussian
    assert strategy.diagonal is not None
    spend, _ = choose_kind(Questions(np.ones((3, 200))), epsilon="1/10", delta=0)
    assert not spend.gaussian


def test_any_questions_are_answered_through_the_best_strategy():
    weights = np.random.default_rng(5).integers(0, 2, (7, 60)).astype(float)
    for spend in (Spend.pure(1), Spend.concentrated("1/8")):
        strategy = plan_strategy(Questions(weights), spend)
        better = expected_rmse(strategy, Questions(weights), spend)
        assert better <= expected_rmse(plain_cells(60), Questions(weights), spend)


def test_absurd_workloads_are_refused():
    with pytest.raises(InvalidParameter):
        plan_strategy(Prefixes(MOST_CELLS + 1), Spend.pure(1))
    with pytest.raises(InvalidParameter):
        Questions(np.zeros((2, 3)))


def random_questions(seed, count=12):
    draw = np.random.default_rng(seed)
    questions = []
    for _ in range(count):
        columns = tuple(draw.choice(5, int(draw.integers(1, 4)), replace=False).tolist())
        weights = tuple(
            (draw.random(SIZES[c]) < 0.5).astype(float) * draw.uniform(0.5, 2) for c in columns
        )
        questions.append(LinearQuestion(columns, weights))
    return questions


def answer_exactly(questions, rows):
    return np.array(
        [
            np.prod(
                [w[rows[:, c]] for c, w in zip(q.columns, q.weights, strict=True)], axis=0
            ).sum()
            for q in questions
        ]
    )


def small_questions():
    """Prefixes of one column: a small joint table, for which a strategy is better than cells."""
    return [LinearQuestion((0,), ((np.arange(40) <= k).astype(float),)) for k in range(40)]


@pytest.mark.parametrize(
    "questions", [random_questions(3), small_questions()], ids=["many", "small"]
)
def test_linear_questions_are_answered_unbiased(questions):
    rows = people(3000)
    plan = plan_workload(COLUMNS, questions, NO_NOISE)
    answers, _ = answer_workload(Records(COLUMNS, rows), plan)
    np.testing.assert_allclose(answers, answer_exactly(questions, rows), atol=0.05)


@pytest.mark.parametrize(
    "spend", [Spend.concentrated("1/50"), Spend.pure(1)], ids=["rho", "epsilon"]
)
@pytest.mark.parametrize(
    "questions", [random_questions(3), small_questions()], ids=["many", "small"]
)
def test_linear_questions_err_as_planned(questions, spend):
    rows = people(500)
    plan = plan_workload(COLUMNS, questions, spend)
    truth, squares = answer_exactly(questions, rows), []
    for _ in range(40):
        records = Records(COLUMNS, rows)
        answers, _ = answer_workload(records, plan)
        squares.append(np.square(answers - truth).mean())
        loss = loss_of(records.queries)
        assert (loss.rho if spend.gaussian else loss.epsilon) == spend.amount
    assert math.sqrt(np.mean(squares)) == pytest.approx(plan.rmse, rel=0.25)


def test_the_better_way_is_taken():
    few = plan_workload(COLUMNS, small_questions(), Spend.pure(1))
    assert few.strategy is not None
    many = plan_workload(COLUMNS, random_questions(3), Spend.pure(1))
    assert many.tables is not None  # the joint table of all columns would be 51,840 cells


@pytest.mark.parametrize(
    "question",
    [((0,), (np.ones(3),)), ((9,), (np.ones(3),)), ((4,), (np.zeros(2),))],
    ids=["levels", "column", "nothing"],
)
def test_questions_that_weigh_nothing_declared_are_refused(question):
    with pytest.raises(InvalidParameter):
        plan_workload(COLUMNS, [LinearQuestion(*question)], NO_NOISE)
    with pytest.raises(InvalidParameter):
        LinearQuestion((1, 1), (np.ones(12), np.ones(12)))


# --- hierarchies --------------------------------------------------------------------------------


@st.composite
def trees(draw):
    fans = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    paths: list[tuple[int, ...]] = [()]
    for fan in fans:
        paths = [(*p, i) for p in paths for i in range(int(generator.integers(1, fan + 1)))]
    tree = Hierarchy.of(paths)
    leaves = generator.integers(0, 30, len(paths))
    truth = [
        np.bincount(level, leaves, count).astype(int)
        for level, count in zip(tree.levels, tree.counts, strict=True)
    ]
    noisy = [(t + np.rint(generator.normal(0, 12, t.size)), 144.0) for t in truth]
    known = {
        (level, node): int(truth[level][node])
        for level in range(len(truth))
        for node in range(len(truth[level]))
        if generator.random() < 0.25
    }
    return tree, truth, noisy, known


@given(trees())
@settings(deadline=None, max_examples=150)
def test_hierarchies_add_up_keep_totals_and_stay_whole(case):
    tree, _, noisy, known = case
    levels = make_consistent(tree, noisy, known)
    for level, counts in enumerate(levels):
        assert counts.dtype.kind == "i"
        assert (counts >= 0).all()
        if level:
            summed = np.bincount(tree.parents(level), counts, tree.counts[level - 1])
            assert (summed == levels[level - 1]).all()
    for (level, node), total in known.items():
        assert levels[level][node] == total


def test_levels_learn_from_each_other():
    draw = np.random.default_rng(4)
    tree = Hierarchy.of([(region, city) for region in range(8) for city in range(6)])
    leaves = draw.integers(200, 900, 48)
    truth = [
        np.bincount(m, leaves, c).astype(int) for m, c in zip(tree.levels, tree.counts, strict=True)
    ]
    before = after = 0.0
    for _ in range(60):
        noisy = [(t + np.rint(draw.normal(0, 40, t.size)), 1600.0) for t in truth]
        made = make_consistent(tree, noisy, {})
        before += float(np.square(noisy[1][0] - truth[1]).mean())
        after += float(np.square(made[1] - truth[1]).mean())
    assert after < 0.95 * before


def test_a_hierarchy_is_measured_for_exactly_its_spend():
    records = Records([Column("city", 6)], np.arange(600)[:, None] % 6)
    tree = Hierarchy.of([("n", i) for i in range(2)] + [("s", i) for i in range(4)])
    levels, released = release_hierarchy(records, 0, tree, Spend.pure("3/4"), totals={(0, 0): 600})
    assert loss_of(records.queries).epsilon == Fraction(3, 4)
    assert len(released) == 2  # the public total was not measured
    assert levels[0].tolist() == [600]
    assert levels[1].sum() == 600
    everything, none = release_hierarchy(
        records,
        0,
        tree,
        Spend.pure(1),
        totals={(2, i): 5 for i in range(6)} | {(1, 0): 10, (1, 1): 20, (0, 0): 30},
    )
    assert none == []
    assert everything[1].tolist() == [10, 20]


@pytest.mark.parametrize(
    "totals", [{(0, 0): 5, (1, 0): 6}, {(5, 0): 1}, {(0, 0): -1}, {(1, 0): 1, (1, 1): 1, (0, 0): 3}]
)
def test_totals_that_cannot_be_are_refused_before_anything_is_measured(totals):
    records = Records([Column("city", 3)], np.zeros((5, 1), dtype=int))
    tree = Hierarchy.of([("n", 1), ("s", 1), ("s", 2)])
    with pytest.raises(InvalidParameter):
        release_hierarchy(records, 0, tree, Spend.pure(1), totals=totals)
    assert records.queries == []


def test_a_place_in_two_regions_is_refused():
    with pytest.raises(InvalidParameter):
        Hierarchy((np.array([0, 0, 1]), np.array([0, 1, 1])))


def test_exact_tables_have_their_own_margin():
    asked = ask_cells([0], [np.arange(5)], Spend.pure("1/4"))
    assert asked.noise.margin("0.05") == 12


@given(trees(), st.integers(0, 10**6))
@settings(deadline=None, max_examples=60)
def test_the_variance_of_sums_in_a_tree_is_that_of_least_squares(case, seed):
    """Against the matrix: leaves from all measurements, public totals all but without noise."""
    tree, _, _, known = case
    draw = np.random.default_rng(seed)
    spread = [float(draw.integers(2, 200)) for _ in tree.counts]
    noisy = [(np.zeros(count), v) for count, v in zip(tree.counts, spread, strict=True)]
    fitted = fit_tree(tree, noisy, dict.fromkeys(known, 0))
    lines, precisions = [], []
    for level, (of, count) in enumerate(zip(tree.levels, tree.counts, strict=True)):
        for node in range(count):
            lines.append((of == node).astype(float))
            precisions.append(1 / (1e-7 if (level, node) in known else spread[level]))
    matrix, weight = np.array(lines), np.array(precisions)
    covariance = np.linalg.inv(matrix.T @ (weight[:, None] * matrix))
    for level, (of, count) in enumerate(zip(tree.levels, tree.counts, strict=True)):
        own = draw.integers(0, 2, count).astype(float)
        leaves = own[of]
        exact = float(leaves @ covariance @ leaves)
        assert fitted.variance(level, own) == pytest.approx(exact, rel=1e-4, abs=1e-4)
        each = [fitted.variance(level, np.eye(count)[node]) for node in range(count)]
        assert fitted.variances(level) == pytest.approx(np.array(each), rel=1e-9, abs=1e-9)


@given(trees())
@settings(deadline=None, max_examples=60)
def test_what_follows_from_public_totals_is_true_and_complete(case):
    """Nothing false is added; sums of public parts and single missing parts are all found."""
    tree, truth, _, known = case
    found = follow_totals(tree, known)
    assert all(truth[level][node] == total for (level, node), total in found.items())
    assert found.items() >= known.items()
    for level in range(1, len(tree.counts)):
        above = tree.parents(level)
        for parent in range(tree.counts[level - 1]):
            children = [(level, int(child)) for child in np.flatnonzero(above == parent)]
            family = [(level - 1, parent), *children]
            if truth[level - 1][parent] and level == len(tree.counts) - 1:
                open_ones = [one for one in family if one not in found]
                assert len(open_ones) != 1


def test_a_level_that_follows_from_public_totals_is_not_measured():
    records = Records([Column("city", 3)], np.arange(60)[:, None] % 3)
    tree = Hierarchy.of([("n", 0), ("n", 1), ("s", 2)])
    totals = {(1, 0): 40, (1, 1): 20}
    levels, released = release_hierarchy(records, 0, tree, Spend.pure(2), totals=totals)
    assert len(released) == 1
    assert [level.tolist() for level in levels[:2]] == [[60], [40, 20]]
    assert levels[2][2] == 20
