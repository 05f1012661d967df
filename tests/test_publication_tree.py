"""Inference on the junction tree against brute force; masses of 1e-300; fits and samples."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidParameter
from discreet.publication.fit import Fitted, Problem, Target, fit
from discreet.publication.sample import lean, refine, sample_bins
from discreet.publication.stream import PublicStream
from discreet.publication.tree import (
    JunctionTree,
    Limits,
    add_edge,
    eliminate,
    log_product,
    within_limits,
)


def graph(count, edges):
    neighbours = [set() for _ in range(count)]
    for pair in edges:
        neighbours = add_edge(neighbours, pair)
    return neighbours


def brute_force(sizes, shares, potentials):
    """The whole joint table, cell by cell, in logarithms."""
    logs = np.zeros(sizes)
    for column, mass in enumerate(shares):
        shape = [1] * len(sizes)
        shape[column] = sizes[column]
        logs = logs + np.log(mass).reshape(shape)
    for columns, table in potentials:
        shape = [sizes[c] if c in columns else 1 for c in range(len(sizes))]
        logs = logs + table.transpose(np.argsort(columns)).reshape(shape)
    top = logs.max()
    joint = np.exp(logs - top)
    return joint / joint.sum(), float(np.log(joint.sum()) + top)


def marginal_of(joint, columns):
    others = tuple(axis for axis in range(joint.ndim) if axis not in columns)
    table = joint.sum(axis=others)
    left = sorted(columns)
    return table.transpose([left.index(c) for c in columns])


def infer_with(tree, shares, potentials):
    logs = log_product(tree, dict(enumerate(shares)))
    for columns, table in potentials:
        place = tree.home(columns)
        logs[place] = logs[place] + tree.spread(table, columns, place)
    return tree.infer(logs)


@st.composite
def models(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=8)) if pairs else []
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    shares = [generator.dirichlet(np.ones(size)) + 1e-9 for size in sizes]
    strength = draw(st.sampled_from([1.0, 30.0, 400.0]))
    potentials = [(edge if generator.random() < 0.5 else edge[::-1], None) for edge in edges]
    potentials = [
        (columns, strength * generator.normal(size=[sizes[c] for c in columns]))
        for columns, _ in potentials
    ]
    return sizes, edges, shares, potentials


RECORDED = json.loads((Path(__file__).parent / "recorded" / "inference.json").read_text())["models"]


@pytest.mark.parametrize("model", RECORDED, ids=lambda model: f"{len(model['edges'])} edges")
def test_inference_agrees_with_mbi(model):
    """Another program's marginals of the same laws, recorded by bench/record_inference.py."""
    sizes, edges = model["sizes"], [tuple(edge) for edge in model["edges"]]
    potentials = [(e, np.array(t)) for e, t in zip(edges, model["potentials"], strict=True)]
    tree = JunctionTree(sizes, eliminate(graph(len(sizes), edges), sizes))
    even = [np.full(size, 1 / size) for size in sizes]
    beliefs, _ = infer_with(tree, even, potentials)
    for columns, expected in zip(edges, model["marginals"], strict=True):
        found = tree.marginal(beliefs, columns, tree.home(columns))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@given(models())
@settings(max_examples=150, deadline=None)
def test_inference_agrees_with_brute_force(model):
    sizes, edges, shares, potentials = model
    tree = JunctionTree(sizes, eliminate(graph(len(sizes), edges), sizes))
    beliefs, log_z = infer_with(tree, shares, potentials)
    joint, expected = brute_force(sizes, shares, potentials)
    assert log_z == pytest.approx(expected, rel=1e-9, abs=1e-7)
    for node, belief in zip(tree.nodes, beliefs, strict=True):
        np.testing.assert_allclose(belief, marginal_of(joint, node.columns), rtol=1e-7, atol=1e-12)
    for edge in edges:
        place = tree.home(edge)
        for columns in (edge, edge[::-1], edge[:1]):
            np.testing.assert_allclose(
                tree.marginal(beliefs, columns, place), marginal_of(joint, columns), atol=1e-9
            )


@given(models())
@settings(max_examples=60, deadline=None)
def test_trees_have_the_running_intersection_property(model):
    sizes, edges, _, _ = model
    tree = JunctionTree(sizes, eliminate(graph(len(sizes), edges), sizes))
    for edge in edges:
        assert set(edge) <= set(tree.nodes[tree.home(edge)].columns)
    seen = set()
    for place, node in enumerate(tree.nodes):
        assert node.parent < place
        fresh = set(node.columns[node.shared :])
        assert not fresh & seen  # a column is new once: all else is shared with the parent
        seen |= fresh
    assert seen == set(range(len(sizes)))


def test_masses_of_ten_to_the_minus_three_hundred_are_kept():
    """A chain whose far end is 1e-300 likely: its conditional law is as exact as any other."""
    sizes = [2, 3, 2]
    rare = np.array([1.0, 1e-300])
    shares = [rare / rare.sum(), np.full(3, 1 / 3), np.array([0.5, 0.5])]
    link = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]))
    other = np.log(np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))
    tree = JunctionTree(sizes, eliminate(graph(3, [(0, 1), (1, 2)]), sizes))
    beliefs, _ = infer_with(tree, shares, [((0, 1), link), ((1, 2), other)])
    pair = tree.marginal(beliefs, (0, 1), tree.home((0, 1)))
    assert pair[1].sum() == pytest.approx(1e-300, rel=1e-9)
    np.testing.assert_allclose(pair[1] / pair[1].sum(), [0.1, 0.2, 0.7], rtol=1e-9)
    # And the other way round: log-potentials of -2,000 on all but one path.
    deep = np.full((2, 3), -2000.0)
    deep[1, 2] = -1990.0
    beliefs, log_z = infer_with(tree, [np.array([0.5, 0.5]), *shares[1:]], [((0, 1), deep)])
    assert np.isfinite(log_z)
    pair = tree.marginal(beliefs, (0, 1), tree.home((0, 1)))
    assert pair[1, 2] == pytest.approx(np.e**10 / (np.e**10 + 5), rel=1e-9)


def test_a_law_that_is_impossible_in_places_is_not_a_nan():
    sizes = [2, 2, 2]
    tree = JunctionTree(sizes, eliminate(graph(3, [(0, 1), (1, 2)]), sizes))
    never = np.array([[0.0, -np.inf], [-np.inf, -np.inf]])
    beliefs, log_z = infer_with(tree, [np.array([0.5, 0.5])] * 3, [((0, 1), never)])
    assert log_z == pytest.approx(np.log(0.25))
    assert all(np.isfinite(belief).all() for belief in beliefs)
    assert tree.marginal(beliefs, (1, 2), tree.home((1, 2))).tolist() == [[0.5, 0.5], [0.0, 0.0]]


def test_limits_hold():
    sizes = [10, 10, 10]
    cliques = eliminate(graph(3, [(0, 1), (1, 2), (0, 2)]), sizes)
    assert cliques == [frozenset({0, 1, 2})]
    assert within_limits(cliques, sizes, Limits(largest=1000, together=1000))
    assert not within_limits(cliques, sizes, Limits(largest=999, together=1000))


def test_a_table_that_is_in_no_clique_is_refused():
    tree = JunctionTree([2, 2], [frozenset({0}), frozenset({1})])
    with pytest.raises(InvalidParameter):
        tree.home((0, 1))
    with pytest.raises(InvalidParameter):
        JunctionTree([2, 2], [frozenset({0})])


def test_fitting_exact_tables_recovers_them():
    """Noiseless pair tables of a tree-shaped law, as counts: the fit is that law."""
    generator = np.random.default_rng(3)
    sizes = [3, 4, 2]
    joint = (
        generator.dirichlet(np.ones(3))[:, None, None]
        * generator.dirichlet(np.ones(4), 3)[:, :, None]
        * generator.dirichlet(np.ones(2), 4)[None, :, :]
    )
    tree = JunctionTree(sizes, eliminate(graph(3, [(0, 1), (1, 2)]), sizes))
    shares = [marginal_of(joint, (c,)) for c in range(3)]
    rows = 10**4
    targets = [
        Target(pair, tuple(np.arange(sizes[c]) for c in pair), rows * marginal_of(joint, pair), 1.0)
        for pair in [(0, 1), (1, 2)]
    ]
    found = fit(tree, shares, targets, rows=rows, looks=400)
    for pair in [(0, 1), (1, 2)]:
        np.testing.assert_allclose(
            tree.marginal(found.beliefs, pair, tree.home(pair)), marginal_of(joint, pair), atol=1e-4
        )


def test_coarse_tables_leave_the_rest_to_the_one_ways():
    """A dependence measured in two bins is spread inside them in proportion to the shares."""
    sizes = [4, 2]
    tree = JunctionTree(sizes, [frozenset({0, 1})])
    shares = [np.array([0.1, 0.4, 0.3, 0.2]), np.array([0.5, 0.5])]
    halves = (np.array([0, 0, 1, 1]), np.arange(2))
    target = Target((0, 1), halves, np.array([[400.0, 100.0], [100.0, 400.0]]), 1.0)
    found = fit(tree, shares, [target], rows=1000, looks=300)
    np.testing.assert_allclose(
        found.beliefs[0].reshape(tree.shapes[0])[:, 0]
        if tree.nodes[0].columns == (0, 1)
        else found.beliefs[0][0],
        [0.08, 0.32, 0.06, 0.04],
        atol=1e-3,
    )


def test_sampled_rows_follow_the_law_within_a_few_rows_a_cell():
    generator = np.random.default_rng(4)
    sizes = [5, 6, 4]
    joint = generator.dirichlet(np.ones(30)).reshape(5, 6)[:, :, None] * generator.dirichlet(
        np.ones(4), 6
    )
    tree = JunctionTree(sizes, eliminate(graph(3, [(0, 1), (1, 2)]), sizes))
    beliefs = [marginal_of(joint, node.columns) for node in tree.nodes]
    rows = sample_bins(Fitted(tree, beliefs, 0, 0.0), 10_000, PublicStream("rows"))
    for node, belief in zip(tree.nodes, beliefs, strict=True):
        shape = [sizes[c] for c in node.columns]
        index = np.ravel_multi_index([rows[:, c] for c in node.columns], shape)
        counts = np.bincount(index, minlength=belief.size).reshape(shape)
        assert np.abs(counts - 10_000 * belief).max() < 8  # independent draws: about 60


def test_refined_rows_stay_in_their_bins_and_follow_the_histogram():
    mapped = np.array([0, 1, 0, 2, 1, 2, 0])
    histogram = np.array([50.0, 30.0, 25.0, 0.0, 10.0, 0.0, 25.0])
    bins = np.repeat([0, 1, 2], [100, 40, 10])[:, None]
    fine = refine(bins, [mapped], [histogram], PublicStream("levels"))
    assert (mapped[fine[:, 0]] == bins[:, 0]).all()
    counts = np.bincount(fine[:, 0], minlength=7)
    assert np.abs(counts - [50, 30, 25, 5, 10, 5, 25]).max() <= 1


def test_the_fit_is_the_minimum_it_says():
    """The primal, minimised directly over the cells of a small table, gives the same law."""
    from scipy.optimize import minimize

    shares = [np.array([0.3, 0.7]), np.array([0.6, 0.4])]
    product = np.outer(*shares).ravel()
    noisy, deviation, rows, prior = np.array([380.0, -20.0, 150.0, 420.0]), 60.0, 1000.0, 0.3

    def primal(logits):
        law = np.exp(logits - np.logaddexp.reduce(logits))
        entropy = float((law * np.log(law / product)).sum())
        return prior * rows * entropy + float(np.square(rows * law - noisy).sum()) / (
            2 * deviation**2
        )

    best = minimize(
        primal,
        np.log(product),
        method="Nelder-Mead",
        options={"maxiter": 8000, "xatol": 1e-9, "fatol": 1e-10},
    )
    law = np.exp(best.x - np.logaddexp.reduce(best.x)).reshape(2, 2)
    tree = JunctionTree([2, 2], [frozenset({0, 1})])
    target = Target((0, 1), (np.arange(2), np.arange(2)), noisy.reshape(2, 2), deviation)
    found = fit(tree, shares, [target], rows=rows, prior=prior, looks=300)
    np.testing.assert_allclose(tree.marginal(found.beliefs, (0, 1), 0), law, atol=1e-4)


def test_levels_inside_a_bin_lean_towards_the_neighbours_they_are_like():
    """A share that rises along 20 levels, modelled in 4 bins: most of the rise comes back."""
    levels = np.repeat(np.arange(20), 500)
    rising = np.tile(np.arange(500), 20) < 500 * (levels + 0.5) / 20
    truth = np.stack([np.bincount(levels[rising == side], minlength=20) for side in (0, 1)], axis=1)
    mapped = np.arange(20) // 5
    belief = truth.reshape(4, 5, 2).sum(axis=1) / 10_000
    fitted = Fitted(JunctionTree([4, 2], [frozenset({0, 1})]), [belief], 0, 0.0)
    stream = PublicStream("rows")
    bins = sample_bins(fitted, 10_000, stream)
    histograms = [np.full(20, 500.0), truth.sum(axis=0).astype(float)]
    maps = [mapped, np.arange(2)]

    def distance(turns):
        fine = refine(bins, maps, histograms, PublicStream("levels"), turns=turns)
        assert (mapped[fine[:, 0]] == bins[:, 0]).all()
        found = np.bincount(fine[:, 0] * 2 + fine[:, 1], minlength=40).reshape(20, 2)
        np.testing.assert_allclose(found.sum(axis=1), 500, atol=2)  # the histogram is kept
        return np.abs(found - truth).sum()

    assert distance({0: lean(fitted, bins, 0, 4, stream)}) < 0.4 * distance(None)


def test_leaning_survives_bins_that_are_empty_or_alone():
    tree = JunctionTree([3, 2], [frozenset({0, 1})])
    belief = np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.5]])
    rows = np.array([[0, 0], [1, 1], [2, 1], [2, 0]])
    for bins in (1, 2, 3):
        places = lean(Fitted(tree, [belief], 0, 0.0), rows, 0, bins, PublicStream("places"))
        assert np.isfinite(places).all()
        assert ((places >= 0) & (places <= 1 + 1e-9)).all()


def evident_weight(rng, dependence, deviation):
    """The weight of independence that noisy tables of four columns speak for."""
    sizes, rows = [4, 4, 4, 4], 20_000.0
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    tied = dependence * np.eye(4) / 4 + (1 - dependence) / 16
    tree = JunctionTree(sizes, eliminate(graph(4, pairs), sizes))
    targets = [
        Target(
            pair,
            (np.arange(4), np.arange(4)),
            rows * tied + rng.normal(0, deviation, (4, 4)),
            deviation,
        )
        for pair in pairs
    ]
    problem = Problem(tree, [np.full(4, 0.25)] * 4, targets, rows)
    first = problem.search(0.002, problem.begin(), 100)
    return problem.weigh(first, 0.002)


def test_columns_that_hang_together_leave_little_weight_to_independence():
    """Twice the weight of greatest evidence: by how much the law is from the product, in nats."""
    rng = np.random.default_rng(6)
    tied, loose = (evident_weight(rng, share, 300.0) for share in (0.7, 0.05))
    assert tied < 0.02 / 3 < 0.02 < loose


def test_a_strong_dependence_is_not_shrunk_under_much_noise():
    """A weight of 0.02, which suits many columns, would lose more than twice as much of it."""
    sizes, rows, deviation = [6, 6], 5000.0, 100.0
    tied = 0.8 * np.eye(6) / 6 + 0.2 / 36
    tree = JunctionTree(sizes, [frozenset({0, 1})])
    shares = [np.full(6, 1 / 6)] * 2
    target = Target((0, 1), (np.arange(6), np.arange(6)), rows * tied, deviation)

    def kept(**prior):
        law = fit(tree, shares, [target], rows=rows, looks=200, **prior).beliefs[0]
        return float(np.trace(law.reshape(6, 6)))

    truth = float(np.trace(tied))
    assert truth - kept() < 0.5 * (truth - kept(prior=0.02))


def test_without_a_table_the_law_is_the_product():
    shares = [np.array([0.3, 0.7]), np.array([0.6, 0.4])]
    tree = JunctionTree([2, 2], [frozenset({0}), frozenset({1})])
    targets = [
        Target((place,), (np.arange(2),), 1000 * share, 30.0) for place, share in enumerate(shares)
    ]
    found = fit(tree, shares, targets, rows=1000)
    for node, belief in zip(tree.nodes, found.beliefs, strict=True):
        np.testing.assert_allclose(belief, shares[node.columns[0]], atol=1e-9)
