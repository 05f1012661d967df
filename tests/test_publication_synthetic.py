"""Synthetic tables: nested bins, plans within limits, the whole spend drawn, rows near the data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publication_cases import COLUMNS, count_cells, mean_variation, people

from discreet.publication import Cells, Column, Distance, Records, Spend, loss_of, synthesize
from discreet.publication.bins import make_binning
from discreet.publication.denoise import denoise, looks_ordered
from discreet.publication.plan import plan_pairs
from discreet.publication.synthetic import Settings, outline_stages
from discreet.publication.tree import Limits, eliminate, within_limits

SIZES = [column.size for column in COLUMNS]
GENEROUS = Spend.concentrated(2)


@st.composite
def histograms(draw):
    size = draw(st.integers(1, 90))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    values = generator.pareto(1.0, size) * (generator.random(size) < 0.8)
    values[generator.integers(size)] += 1
    ordered = draw(st.booleans())
    column = Column("x", size, ordered=ordered, null=draw(st.booleans()) and size > 1)
    return column, values, draw(st.integers(2, 64))


@given(histograms())
@settings(deadline=None)
def test_bins_are_nested_and_complete(case):
    column, values, most = case
    binning = make_binning(column, values, most=most)
    assert binning.base.shape == (column.size,)
    assert binning.finest <= max(most, 2)
    assert binning.shares.sum() == pytest.approx(1)
    finer = np.arange(binning.finest)
    for count in sorted(binning.levels, reverse=True):
        mapped = binning.levels[count]
        assert set(mapped.tolist()) == set(range(count))
        # Two finest bins that were together stay together.
        for group in range(int(finer.max()) + 1):
            assert len(set(mapped[finer == group].tolist())) == 1
        finer = mapped
        if column.ordered:
            stretch = binning.map_levels(count)
            inner = stretch[: column.size - column.null]
            assert (np.diff(inner) >= 0).all()


def test_a_common_null_keeps_its_own_bin():
    column = Column("age", 41, ordered=True, null=True)
    values = np.append(np.full(40, 10.0), 60.0)
    binning = make_binning(column, values, most=8)
    for count in binning.levels:
        mapped = binning.map_levels(count)
        assert (mapped == mapped[-1]).sum() == 1


def test_denoising_keeps_spikes_and_averages_plains():
    draw = np.random.default_rng(1)
    truth = np.full(128, 300.0)
    truth[40] = 3000.0
    noisy = truth + draw.normal(0, 50, 128)
    smooth = denoise(noisy, deviation=50)
    assert np.abs(smooth - truth).mean() < 0.5 * np.abs(noisy - truth).mean()
    assert abs(smooth[40] - 3000) < 200


def test_order_is_found_where_it_is_and_only_there():
    draw = np.random.default_rng(2)
    bell = 900 * np.exp(-(((np.arange(60) - 25) / 12) ** 2)) + draw.normal(0, 20, 60)
    assert looks_ordered(bell)
    assert sum(looks_ordered(draw.permutation(bell)) for _ in range(300)) <= 3
    assert not looks_ordered(np.arange(8.0))


def test_plans_stay_within_the_limits():
    draw = np.random.default_rng(3)
    pairs = {(a, b): float(draw.pareto(1) * 3000) for a in range(9) for b in range(a + 1, 9)}
    levels = [[2, 4, 8, 16]] * 9
    for largest in (64, 500, 5000):
        limits = Limits(largest=largest, together=3 * largest)
        for gaussian in (True, False):
            chosen = plan_pairs(
                pairs,
                levels,
                rows=30_000,
                amount=0.5,
                gaussian=gaussian,
                limits=limits,
                interest=[1.0] * 9,
            )
            neighbours = [set() for _ in range(9)]
            sizes = [2] * 9
            for (a, b), choice in chosen.items():
                neighbours[a].add(b)
                neighbours[b].add(a)
                sizes[a], sizes[b] = max(sizes[a], choice.bins[0]), max(sizes[b], choice.bins[1])
            assert chosen
            assert within_limits(eliminate(neighbours, sizes), sizes, limits)


def test_interest_moves_the_plan_towards_a_column():
    pairs = {(0, 1): 4000.0, (2, 3): 4000.0}
    levels = [[2, 4, 8, 16]] * 4

    def weights(interest):
        chosen = plan_pairs(
            pairs,
            levels,
            rows=30_000,
            amount=0.02,
            gaussian=True,
            limits=Limits(),
            interest=interest,
        )
        return chosen[0, 1].weight / (chosen[0, 1].weight + chosen[2, 3].weight)

    assert weights([1, 1, 1, 1]) == pytest.approx(0.5)
    assert weights([5, 1, 1, 1]) > 0.6


@pytest.mark.parametrize(
    "spend",
    [Spend.concentrated("1/3"), Spend.pure("5/3"), Spend.concentrated("1/3", rows_per_unit=3)],
    ids=["gaussian", "laplace", "three rows"],
)
def test_the_draws_cost_exactly_the_spend(spend):
    records = Records(COLUMNS, people())
    made = synthesize(records, COLUMNS, spend, label="1")
    assert made.chosen  # the third stage was drawn, so all of the spend is gone
    loss = loss_of(records.queries)
    assert (loss.rho if spend.gaussian else loss.epsilon) == spend.amount
    assert [one.query for one in made.measurements] == records.queries


def test_rows_are_like_the_data_and_within_the_declaration():
    rows = people()
    made = synthesize(Records(COLUMNS, rows), COLUMNS, GENEROUS, label="1")
    assert ((made.rows >= 0) & (made.rows < SIZES)).all()
    assert abs(len(made.rows) - len(rows)) < 50
    shuffled = np.stack(
        [np.random.default_rng(i).permutation(rows[:, i]) for i in range(5)], axis=1
    )
    ours, independent = (mean_variation(rows, other, SIZES, 2) for other in (made.rows, shuffled))
    assert ours < 0.25 * independent
    # NULL is a value: as common as in the data.
    assert (made.rows[:, 0] == 39).mean() == pytest.approx((rows[:, 0] == 39).mean(), abs=0.005)


def test_pure_noise_gives_rows_like_the_data_too():
    rows = people()
    made = synthesize(Records(COLUMNS, rows), COLUMNS, Spend.pure(8), label="1")
    assert mean_variation(rows, made.rows, SIZES, 2) < 0.06


def test_the_same_measurements_and_seed_give_the_same_rows():
    """Reconstruction looks at released numbers only."""

    class Again:
        def __init__(self, measurements):
            self.left = list(measurements)

        def measure(self, queries):
            return [self.left.pop(0) for _ in queries]

    made = synthesize(Records(COLUMNS, people()), COLUMNS, GENEROUS, label="7")
    again = synthesize(Again(made.measurements), COLUMNS, GENEROUS, label="7")
    assert (made.rows == again.rows).all()


def test_every_group_by_of_one_synopsis_agrees_with_every_other():
    made = synthesize(Records(COLUMNS, people(3000)), COLUMNS, Spend.concentrated("1/8"), label="2")
    whole = count_cells(made.rows, (0, 1, 2), SIZES)
    assert whole.dtype.kind == "i"
    assert (whole >= 0).all()
    assert (whole.sum(axis=2) == count_cells(made.rows, (0, 1), SIZES)).all()
    assert (whole.sum(axis=(0, 1)) == count_cells(made.rows, (2,), SIZES)).all()
    assert whole.sum() == len(made.rows)


@pytest.mark.parametrize("count", [0, 1, 40])
@pytest.mark.parametrize("spend", [Spend.concentrated("1/50"), Spend.pure("1/10")])
def test_little_data_is_released_like_any(count, spend):
    """A refusal that depends on the data would be an oracle."""
    made = synthesize(Records(COLUMNS, people(count)), COLUMNS, spend, label="1")
    assert len(made.rows) >= 1
    assert ((made.rows >= 0) & (made.rows < SIZES)).all()


def test_one_column_gets_the_whole_spend():
    records = Records(COLUMNS[:1], people()[:, :1])
    made = synthesize(records, COLUMNS[:1], GENEROUS, label="1")
    assert loss_of(records.queries).rho == 2
    truth = count_cells(people(), (0,), SIZES)
    assert np.abs(count_cells(made.rows, (0,), SIZES) - truth).max() < 40


@pytest.mark.parametrize("spend", [Spend.concentrated("1/9"), Spend.pure("1/3")])
def test_the_outline_is_what_is_drawn(spend):
    records = Records(COLUMNS, people())
    synthesize(records, COLUMNS, spend, label="1")
    outline = outline_stages(COLUMNS, spend)
    assert sum(stage.amount for stage in outline) == spend.amount
    drawn = {
        "histograms": records.queries[:5],
        "distances": [q for q in records.queries if isinstance(q, Distance)],
        "pair tables": records.queries[15:],
    }
    for stage in outline:
        losses = loss_of(drawn[stage.name])
        assert (losses.rho if spend.gaussian else losses.epsilon) == stage.amount
        assert len(drawn[stage.name]) <= stage.queries


def test_less_noise_is_looked_at_longer():
    rough, fine = Spend.approximate(1, "1e-9"), Spend.approximate(10, "1e-9")
    assert Settings().looks_for(40_000, rough) == 80
    assert Settings().looks_for(40_000, fine) == 160
    assert Settings(looks=7).looks_for(40_000, fine) == 7


def test_stages_ask_what_they_say():
    records = Records(COLUMNS, people())
    synthesize(
        records, COLUMNS, GENEROUS, label="1", settings=Settings(histograms=0.5, distances=0.1)
    )
    singles = [q for q in records.queries if isinstance(q, Cells) and len(q.view.columns) == 1]
    distances = [q for q in records.queries if isinstance(q, Distance)]
    assert len(singles) == 5
    assert len(distances) == 10
    assert sum(q.noise.rho for q in singles) == pytest.approx(Fraction(1), rel=1e-6)
    assert sum(q.noise.rho for q in distances) == pytest.approx(Fraction(1, 5), rel=1e-6)
