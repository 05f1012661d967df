"""Counters over time, multiplicative weights, and the margins of a synopsis."""

from __future__ import annotations

import itertools
import math
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from publication_cases import COLUMNS, count_cells, people

from discreet.errors import Halted, InvalidParameter, LedgerRefusal
from discreet.publication import Records, Spend, loss_of, synthesize
from discreet.publication.counter import STEPS, Counter, decode_total, square_root_sequence
from discreet.publication.margins import (
    Promise,
    buy_certificate,
    buy_typical,
    draw_batteries,
    list_margins,
    tabulate,
)
from discreet.publication.measure import GRID, Battery, ask_errors, make_view
from discreet.publication.tails import tail_bound
from discreet.publication.weights import MWEM, PrivateMultiplicativeWeights

SIZES = [column.size for column in COLUMNS]
PAIRS = list(itertools.combinations(range(5), 2))


# --- counters -----------------------------------------------------------------------------------


def factor_matrix(counter):
    n = counter.horizon
    return np.array([[counter.factor[t - s] if t >= s else 0 for s in range(n)] for t in range(n)])


def test_the_square_root_squares_to_all_ones():
    first = square_root_sequence(40)
    root = np.array([[first[t - s] if t >= s else 0 for s in range(40)] for t in range(40)])
    np.testing.assert_allclose(root @ root, np.tril(np.ones((40, 40))), atol=1e-12)


@pytest.mark.parametrize("touched", [1, 3, 12])
def test_no_unit_moves_a_counter_further_than_its_noise_was_made_for(touched):
    """Lemmas 10 and 11: every choice of steps, and the worst is attained."""
    counter = Counter(horizon=12, spend=Spend.concentrated("1/2"), steps_per_unit=touched)
    factor = factor_matrix(counter)
    reached = max(
        int(np.square(factor[:, list(those)].sum(axis=1)).sum())
        for those in itertools.combinations(range(12), touched)
    )
    assert reached == counter.noise.steps_squared
    signs = np.random.default_rng(1).uniform(-1, 1, (200, touched))
    for those in itertools.islice(itertools.combinations(range(12), touched), 50):
        moved = np.square(factor[:, list(those)] @ signs.T).sum(axis=0)
        assert moved.max() <= counter.noise.steps_squared


def test_totals_are_unbiased_and_spread_as_stated():
    counter = Counter(horizon=30, spend=Spend.concentrated("1/8"), cells=2000)
    run = counter.start()
    draw = np.random.default_rng(3)
    truth = np.zeros(2000)
    for step in range(30):
        fresh = draw.integers(0, 50, 2000)
        truth += fresh
        error = run.step(fresh) - truth
        stated = counter.deviations()[step]
        assert abs(error.mean()) < 7 * stated / math.sqrt(2000)
        assert error.std() == pytest.approx(stated, rel=0.12)
        assert (np.abs(error) <= counter.margin("0.05", step=step + 1)).mean() > 0.91
    again = decode_total(counter.decoder(), run.released)
    np.testing.assert_array_equal(again, run.totals())


def test_the_error_is_that_of_the_square_root_factorisation():
    spend = Spend.approximate(1, "1e-9")
    stated = Counter(horizon=1024, spend=spend).deviations()
    assert math.sqrt(np.square(stated).mean()) < 18.1  # the optimum over all factorisations: 17.1
    assert Counter(horizon=7, spend=spend).loss.rho == spend.amount


def test_a_counter_ends_at_its_horizon_and_is_not_copied():
    run = Counter(horizon=2, spend=Spend.concentrated(1), cells=3).start()
    run.step([1, 2, 3])
    with pytest.raises(InvalidParameter):
        run.step([1, 2])
    run.step([0, 0, 0])
    with pytest.raises(Halted):
        run.step([0, 0, 0])
    with pytest.raises(Halted):
        pickle.dumps(run)


COUNTING = """
import os, signal, sys
from discreet.publication import Counter, Spend
from discreet.publication.journal import Journal
keep = Journal.keep
def dying(self, step, what, values):
    if (step, what, "before") == (3, sys.argv[2], sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    kept = keep(self, step, what, values)
    if (step, what, "after") == (3, sys.argv[2], sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return kept
Journal.keep = dying
run = Counter(horizon=6, spend=Spend.concentrated("1/8"), cells=2).start(sys.argv[1])
for day in range(1, 7):
    run.step([100 * day, 7])
"""


@pytest.mark.parametrize("what", ["counted", "released"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_counter_that_is_killed_draws_no_step_twice(tmp_path, what, when):
    """kill -9 in the third step, before and after each of the two things that it writes."""
    command = [sys.executable, "-c", COUNTING, str(tmp_path / "c"), what, when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    counter = Counter(horizon=6, spend=Spend.concentrated("1/8"), cells=2)
    run = counter.start(tmp_path / "c")
    done = 3 if (what, when) == ("released", "after") else 2
    assert len(run.released) == done
    told = [one.tolist() for one in run.released]
    if done == 2:
        run.step([300, 7] if when == "before" and what == "counted" else [9**9, 9**9])
    for day in range(4, 7):
        totals = run.step([100 * day, 7])
    # What was counted before the end is what is told, whoever asks again with other numbers.
    assert np.abs(totals - [2100, 42]).max() < 12 * counter.deviations()[5]
    again = counter.start(tmp_path / "c")
    assert [one.tolist() for one in again.released[:done]] == told
    np.testing.assert_array_equal(again.totals(), run.totals())
    with pytest.raises(Halted):
        again.step([0, 0])
    names = [file.name for file in (tmp_path / "c").iterdir()]
    assert {(tmp_path / "c" / n).stat().st_mode & 0o77 for n in names} == {0}


def test_two_runs_of_one_counter_tell_the_same(tmp_path):
    counter = Counter(horizon=4, spend=Spend.concentrated(1))
    one, other = counter.start(tmp_path), counter.start(tmp_path)
    assert one.step([50]) == other.step([70])
    with pytest.raises(InvalidParameter, match="another counter"):
        Counter(horizon=5, spend=Spend.concentrated(1)).start(tmp_path)
    (tmp_path / "000001.counted").unlink()
    with pytest.raises(LedgerRefusal):
        counter.start(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        {"horizon": 3, "spend": Spend.pure(1)},
        {"horizon": 3, "spend": Spend.concentrated(1), "steps_per_unit": 4},
        {"horizon": 2**17, "spend": Spend.concentrated(1)},
    ],
)
def test_absurd_counters_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        Counter(**arguments)


def test_steps_of_the_grid_are_fine_enough():
    assert abs(square_root_sequence(365) * STEPS).min() > 100


# --- multiplicative weights -----------------------------------------------------------------------


def test_mwem_keeps_its_theorem():
    draw = np.random.default_rng(2)
    truth = np.bincount(draw.geometric(0.2, 60_000) % 24, minlength=24)
    lines = (draw.random((80, 24)) < 0.5).astype(float)
    mechanism = MWEM(lines, rows=60_000, rounds=20, epsilon=4)
    assert mechanism.loss.epsilon == 4
    worst = [float(np.abs(lines @ (mechanism.release(truth) - truth)).max()) for _ in range(8)]
    uniform = float(np.abs(lines @ (np.full(24, 2500.0) - truth)).max())
    assert max(worst) <= mechanism.margin("0.05")
    assert np.mean(worst) < 0.6 * uniform  # it learns


def test_private_multiplicative_weights_keep_their_theorem():
    draw = np.random.default_rng(4)
    truth = np.bincount(draw.geometric(0.3, 400_000) % 8, minlength=8)
    weights = PrivateMultiplicativeWeights(
        cells=8, rows=400_000, questions=60, epsilon=8, beta="0.01"
    )
    assert weights.loss.epsilon == 8
    run = weights.start(truth)
    worst = 0.0
    for _ in range(60):
        line = (draw.random(8) < 0.5).astype(float)
        worst = max(worst, abs(run.ask(line) - float(line @ truth)))
    assert worst <= weights.margin
    assert 1 <= run.surprises <= weights.sparse.cutoff
    with pytest.raises(Halted):
        run.ask(np.ones(8))
    with pytest.raises(Halted):
        pickle.dumps(run)


def test_questions_outside_their_domain_are_refused():
    with pytest.raises(InvalidParameter):
        MWEM([[0, 2]], rows=10, rounds=2, epsilon=1)
    with pytest.raises(InvalidParameter):
        MWEM([[0, 1]], rows=10, rounds=2, epsilon=1).release([1, 2, 3])


def test_tails_are_bounded_whatever_the_weights():
    """Lemma 9: the exponential moment of discrete Laplace noise, on a grid of scales."""
    for scale in (0.3, 1.0, 7.0):
        s = np.linspace(0, 0.999, 400) / scale
        ratio = np.sinh(s / 2) / np.sinh(1 / (2 * scale))
        assert (-np.log1p(-(ratio**2)) <= (scale * s) ** 2 / (1 - scale * s) + 1e-12).all()
    draws = np.stack([Spend.pure(w).noise().release(np.zeros(4000, dtype=int)) for w in (1, 2)])
    combined = np.array([3.0, -1.0]) @ draws
    bound = tail_bound(2 * (9 + 1 / 4), "0.05", gaussian=False)
    assert (np.abs(combined) <= bound).mean() > 0.95
    assert tail_bound(4.0, "0.05", gaussian=True) == pytest.approx(2 * math.sqrt(2 * math.log(40)))


# --- margins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_order_statistics_of_errors_move_no_further_than_a_count(rows_per_unit):
    """Lemma 16, whatever the battery's size."""
    spend = Spend.pure(1, rows_per_unit=rows_per_unit)
    batteries = draw_batteries(COLUMNS, ways=2, questions=90, label="1", tables=6)
    rows, public = people(300), people(300, seed=9)
    references = [battery.answer(tabulate(public, battery.view)) for battery in batteries]
    query = ask_errors(batteries, references, [10, 44, 89], spend)

    def exact(those):
        errors = [
            np.abs(b.answer(tabulate(those, b.view)) - r)
            for b, r in zip(batteries, references, strict=True)
        ]
        return np.sort(np.concatenate(errors))[list(query.ranks)]

    moves = [
        int(
            np.abs(exact(np.concatenate([rows, people(rows_per_unit, seed=s)])) - exact(rows)).sum()
        )
        for s in range(80)
    ]
    assert max(moves) <= query.noise.sensitivity == 3 * rows_per_unit
    assert max(moves) > 0


def test_batteries_count_what_their_sets_say():
    rows = people(400)
    view = make_view([0, 2, 3], [np.arange(SIZES[c]) for c in (0, 2, 3)])
    sets = tuple(np.random.default_rng(c).random((5, SIZES[c])) < 0.5 for c in (0, 2, 3))
    found = Battery(view, sets).answer(tabulate(rows, view))
    for question in range(5):
        taken = np.ones(len(rows), dtype=bool)
        for place, column in enumerate((0, 2, 3)):
            taken &= sets[place][question][rows[:, column]]
        assert found[question] == taken.sum()


@pytest.mark.parametrize(
    "whole", [Spend.concentrated("1/10"), Spend.pure(2)], ids=["rho", "epsilon"]
)
def test_certified_margins_hold_and_typical_ones_are_typical(whole):
    rows = people(6000)
    made_for, certified, usual = whole.divide([8, 1, 1])
    records = Records(COLUMNS, rows)
    made = synthesize(records, COLUMNS, made_for, label="3")
    bought = buy_certificate(
        records,
        COLUMNS,
        made.rows,
        PAIRS,
        certified,
        rows_variance=made.histograms.rows_variance,
    )
    typical, _ = buy_typical(records, COLUMNS, made.rows, usual, questions=900)
    loss = loss_of(records.queries)
    assert (loss.rho if whole.gaussian else loss.epsilon) == whole.amount
    errors = []
    for battery in draw_batteries(COLUMNS, ways=2, questions=6000, label="77"):
        bound = bought.bound(battery.view.columns, beta="0.001")
        wrong = np.abs(
            battery.answer(tabulate(rows, battery.view))
            - battery.answer(tabulate(made.rows, battery.view))
        )
        assert wrong.max() <= bound
        errors.append(wrong)
    every = np.concatenate(errors)
    within = typical.within("0.95", beta="0.001")
    assert (every <= within).mean() > 0.93
    assert within < bought.bound((0, 1), beta="0.001")


def test_a_certified_bound_is_half_the_distance_when_totals_agree():
    rows = np.repeat(np.arange(2), 500)[:, None] * np.ones((1, 5), dtype=int)
    other = np.where(np.arange(1000)[:, None] < 400, 0, 1) * np.ones((1, 5), dtype=int)
    records = Records(COLUMNS, rows)
    bought = buy_certificate(
        records, COLUMNS, other, [(3, 4)], Spend.pure(10**6), rows_variance=0.0
    )
    assert bought.distances[3, 4].values[0] == 200 * GRID
    assert bought.bound([4], beta="0.05") == pytest.approx(100, abs=1)
    truth = count_cells(rows, (4,), SIZES) - count_cells(other, (4,), SIZES)
    assert abs(truth[0]) == 100  # attained


def test_margins_say_what_they_promise():
    assert [m.promise for m in list_margins([1], exact=12.0)] == [Promise.EXACT]
    (none,) = list_margins([1, 2])
    assert none.promise is Promise.NONE
    assert none.within is None
    assert "no margin" in str(none)
    assert Fraction(1, 2) not in [none.within]


@pytest.mark.soak
@pytest.mark.parametrize("release", range(20))
def test_certified_margins_are_never_violated(release):
    """5,000 random questions on two columns about each of 20 releases; beta is 1e-6 in all."""
    rows = people(8000, seed=release)
    made_for, certified = Spend.concentrated("1/20").divide([97, 3])
    records = Records(COLUMNS, rows)
    made = synthesize(records, COLUMNS, made_for, label=f"{release}")
    bought = buy_certificate(
        records, COLUMNS, made.rows, PAIRS, certified, rows_variance=made.histograms.rows_variance
    )
    for battery in draw_batteries(COLUMNS, ways=2, questions=5000, label=f"{release}"):
        wrong = battery.answer(tabulate(rows, battery.view)) - battery.answer(
            tabulate(made.rows, battery.view)
        )
        assert np.abs(wrong).max() <= bought.bound(battery.view.columns, beta="1e-6")


def share_within(typical, rows, synopsis, *, label: str, questions: int, beta: str) -> float:
    """Of a battery of questions, the share that is off by no more than is typical of 95 %."""
    within = typical.within("0.95", beta=beta)
    wrong = [
        np.abs(
            battery.answer(tabulate(rows, battery.view))
            - battery.answer(tabulate(synopsis, battery.view))
        )
        for battery in draw_batteries(COLUMNS, ways=2, questions=questions, label=label)
    ]
    return float((np.concatenate(wrong) <= within).mean())


@pytest.mark.parametrize("spend", [Spend.concentrated("1/8"), Spend.pure("1/2")], ids=str)
def test_typical_margins_cover_the_share_that_they_state(spend):
    """Of the questions that were tried: at least 95 %, but for ALPHA; with less noise allowed for,
    fewer, so that what is stated is not simply wide."""
    rows, other = people(3000), people(3000, seed=9)
    fewer = 0
    for place in range(12):
        records = Records(COLUMNS, rows)
        typical, _ = buy_typical(records, COLUMNS, other, spend, questions=600, label=f"{place}")
        same = {"label": f"{place}", "questions": 600}
        assert share_within(typical, rows, other, **same, beta="1e-10") >= 0.95
        low = min(value for share, value in typical.quantiles if share >= Fraction(19, 20))
        narrow = replace(typical, quantiles=((Fraction(19, 20), low - 200),))
        fewer += share_within(narrow, rows, other, **same, beta="0.999") < 0.95
    assert fewer >= 6


@pytest.mark.soak
@pytest.mark.parametrize("release", range(20))
def test_typical_margins_cover_other_questions_of_their_kind(release):
    """20 releases as they are made, asked what they were not tried on: 95 % of it, or nearly."""
    rows = people(8000, seed=release)
    made_for, usual = Spend.concentrated("1/20").divide([97, 3])
    records = Records(COLUMNS, rows)
    made = synthesize(records, COLUMNS, made_for, label=f"{release}")
    typical, _ = buy_typical(records, COLUMNS, made.rows, usual)
    same = {"rows": rows, "synopsis": made.rows, "questions": 3000, "beta": "1e-9"}
    assert share_within(typical, label="questions", **same) >= 0.95
    assert share_within(typical, label=f"fresh {release}", **same) >= 0.93
