"""Sparse vector: the laws, the halt, the secret, and the variants that are not private."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.divergence import max_divergence
from discreet.accounting.loss import Loss
from discreet.errors import Halted, InvalidParameter
from discreet.exact.balls import precision
from discreet.mechanisms import AboveThreshold, Grid, NumericSparse, Sparse
from discreet.mechanisms.sparse.law import transcript_law
from discreet.mechanisms.sparse.plan import Plan
from discreet.mechanisms.sparse.run import SparseRun

ALPHA = 1e-9  # chance that a correct sampler fails one test
N = 3_000

ALL = [AboveThreshold, Sparse, NumericSparse]


def built(kind, **options):
    given = {"threshold": 5, "sensitivity": 2, "epsilon": 3} | options
    if kind is not AboveThreshold:
        given = {"cutoff": 2} | given
    return kind(**given)


def masses(law) -> dict:
    with precision(100):
        return {outcome: float(law.mass(outcome)) for outcome in law.outcomes}


def laplace(scale: float, reach: int = 80) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)}


def written_out(values, plan: Plan) -> dict:
    """Every noisy threshold of every round, every answer: the algorithm as printed, in floats."""
    level = laplace(float(plan.threshold_scale))
    query = laplace(float(plan.query_scale), 400)
    upper = {}
    total = 0.0
    for z in sorted(query, reverse=True):
        total += query[z]
        upper[z] = total
    law: dict = {}

    def go(place, answers, t, weight):
        if place == len(values) or sum(answers) == plan.cutoff:
            law[answers] = law.get(answers, 0.0) + weight
            return
        above = upper[plan.threshold + t - values[place]]
        go(place + 1, (*answers, False), t, weight * (1 - above))
        if plan.renew and sum(answers) + 1 < plan.cutoff and place + 1 < len(values):
            for fresh, mass in level.items():
                go(place + 1, (*answers, True), fresh, weight * above * mass)
        else:
            go(place + 1, (*answers, True), t, weight * above)

    for t, mass in level.items():
        go(0, (), t, mass)
    return law


def sampled_well(seen: dict, law: dict, draws: int) -> bool:
    """Hoeffding for every outcome, added up."""
    t = math.sqrt(math.log(2 * len(law) / ALPHA) / (2 * draws))
    return all(abs(seen.get(key, 0) / draws - mass) <= t for key, mass in law.items())


# --- the law -----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[5], [5, 5], [3, 9, 4]])
@pytest.mark.parametrize("monotonic", [False, True])
def test_the_law_of_above_threshold_is_the_algorithm(values, monotonic):
    mechanism = built(AboveThreshold, monotonic=monotonic)
    law = masses(mechanism.law(values))
    assert law == pytest.approx(written_out(values, mechanism.plan), rel=1e-9)
    assert sum(law.values()) == pytest.approx(1)


@pytest.mark.parametrize("renew", [False, True])
def test_the_law_of_sparse_is_the_algorithm(renew):
    mechanism = built(Sparse, renew=renew, epsilon=6)
    law = masses(mechanism.law([7, 4, 6]))
    assert law == pytest.approx(written_out([7, 4, 6], mechanism.plan), rel=1e-9)


def test_the_scales_are_those_of_the_book_and_of_lyu():
    book = built(AboveThreshold, threshold_share="1/2").plan
    assert (book.threshold_scale, book.query_scale) == (Fraction(4, 3), Fraction(8, 3))
    best = built(AboveThreshold).plan
    split = (2 / best.threshold_scale) / (4 / best.query_scale)  # e1 : e2
    assert float(split) == pytest.approx(2 ** (-2 / 3), rel=1e-5)
    counts = built(AboveThreshold, monotonic=True).plan
    assert counts.threshold_scale == counts.query_scale == Fraction(4, 3)
    kept = built(Sparse, cutoff=4, renew=False).plan
    split = (2 / kept.threshold_scale) / (16 / kept.query_scale)
    assert float(split) == pytest.approx(8 ** (-2 / 3), rel=1e-5)
    for plan, shifts in ((best, 2), (counts, 1), (kept, 8)):
        assert 2 / plan.threshold_scale + shifts * 2 / plan.query_scale == 3


def test_the_shares_are_the_best_ones():
    """The variance of query noise minus threshold noise is least at the chosen share."""

    def spread(share):
        plan = built(AboveThreshold, threshold_share=share).plan
        return plan.threshold_scale**2 + plan.query_scale**2

    best = Fraction(10**6, 10**6 + 1587401)
    assert spread(best) < min(spread(best + Fraction(1, 50)), spread(best - Fraction(1, 50)))


@pytest.mark.parametrize("together", [False, True])
def test_asking_one_by_one_or_together_has_the_law(together):
    mechanism, values = built(Sparse, epsilon=6), [7, 4, 6, 5]
    seen: dict = {}
    for _ in range(N):
        run = mechanism.start()
        if together:
            answer = run.ask_many(np.array(values))
            above = set(answer.above.tolist())
            answers = tuple(i in above for i in range(answer.asked))
        else:
            answers = ()
            for value in values:
                if not run.halted:
                    answers += (run.ask(value),)
        seen[answers] = seen.get(answers, 0) + 1
    assert sampled_well(seen, masses(mechanism.law(values)), N)
    assert not sampled_well(seen, masses(built(Sparse, epsilon=20).law(values)), N)


def test_the_threshold_is_renewed_after_an_answer():
    """Much noise on the threshold, none to speak of on the queries: a kept one repeats itself."""
    settings = {
        "threshold": 0,
        "threshold_scale": Fraction(20),
        "query_scale": Fraction(1, 9),
        "cutoff": 3,
        "answer_scale": None,
        "grid": None,
    }
    renewed, kept = (Plan(renew=renew, **settings) for renew in (True, False))
    seen: dict = {}
    for _ in range(N):
        answers = SparseRun(renewed).ask_many([0, 0, 0]).above.tolist()
        key = tuple(i in answers for i in range(3))
        seen[key] = seen.get(key, 0) + 1
    assert sampled_well(seen, masses(transcript_law(renewed, [0, 0, 0])), N)
    assert not sampled_well(seen, masses(transcript_law(kept, [0, 0, 0])), N)


def test_a_stream_longer_than_a_chunk_halts_where_it_should():
    values = np.zeros(300_000, dtype=np.int64)
    values[[5, 40_000, 200_000, 299_999]] = 10**6
    mechanism = Sparse(threshold=5_000, cutoff=3, sensitivity=1, epsilon=3)
    run = mechanism.start()
    answer = run.ask_many(values)
    assert answer.above.tolist() == [5, 40_000, 200_000]
    assert (answer.asked, run.asked, run.halted) == (200_001, 200_001, True)
    longer = Sparse(threshold=5_000, cutoff=5, sensitivity=1, epsilon=3).start()
    assert longer.ask_many(values).above.tolist() == [5, 40_000, 200_000, 299_999]
    assert (longer.asked, longer.remaining, longer.halted) == (300_000, 1, False)
    assert longer.ask(10**6)


# --- halting and secrecy -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_it_halts_and_stays_halted(kind):
    run = built(kind).start()
    while not run.halted:
        run.ask(10**6)
    asked = run.asked
    for _ in range(3):
        with pytest.raises(Halted) as refusal:
            run.ask(7)
        assert refusal.value.code == "H1"
        with pytest.raises(Halted):
            run.ask_many([7, 8])
    assert (run.asked, run.remaining, run.halted) == (asked, 0, True)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("bad", [float("nan"), "7", None, 1.5, 2**70])
def test_a_refused_query_changes_nothing(kind, bad):
    run = built(kind).start()
    run.ask(-(10**6))
    with pytest.raises(InvalidParameter):
        run.ask(bad)
    with pytest.raises(InvalidParameter):
        run.ask_many([10**6, bad])
    assert (run.asked, run.halted) == (1, False)
    assert run.ask(10**6) not in (None, False)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_run_cannot_be_copied(kind, way):
    with pytest.raises(Halted) as refusal:
        way(built(kind).start())
    assert refusal.value.code == "H3"


def test_a_forked_child_cannot_ask_again():
    run = built(Sparse).start()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run.ask(5)
            said = b"answered"
        except Halted as refusal:
            said = refusal.code.encode()
        os.write(write, said)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"H3"
    run.ask(5)


@pytest.mark.parametrize("kind", ALL)
def test_the_threshold_is_withheld(kind):
    mechanism = built(kind)
    run = mechanism.start()
    run.ask(3)
    assert "withheld" in repr(run)
    assert not hasattr(run, "__dict__")
    shown = [getattr(run, name) for name in SparseRun.__slots__]
    assert all(not isinstance(one, int) or one in (0, 1, os.getpid()) for one in shown)
    assert "threshold=5" in repr(mechanism)


def test_two_threads_cannot_both_spend_the_last_answer():
    for _ in range(40):
        run = Sparse(threshold=5, cutoff=3, sensitivity=1, epsilon=3).start()
        barrier = threading.Barrier(6)
        answered = []

        def asks(run=run, barrier=barrier, answered=answered):
            barrier.wait()
            try:
                answered.append(run.ask(10**6))
            except Halted:
                answered.append(None)

        threads = [threading.Thread(target=asks) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answered.count(True) == 3


# --- prices ------------------------------------------------------------------------------------


def exact_delta(round_epsilon: float, rounds: int, epsilon: float) -> float:
    """Kairouz, Oh and Viswanath: the delta of ``rounds`` randomised responses, exactly."""
    p = 1 / (1 + math.exp(-round_epsilon))
    total = 0.0
    for ones in range(rounds + 1):
        loss = (2 * ones - rounds) * round_epsilon
        if loss > epsilon:
            log = (
                math.lgamma(rounds + 1)
                - math.lgamma(ones + 1)
                - math.lgamma(rounds - ones + 1)
                + ones * math.log(p)
                + (rounds - ones) * math.log1p(-p)
            )
            total += math.exp(log) * (1 - math.exp(epsilon - loss))
    return total


@pytest.mark.parametrize("kind", [Sparse, NumericSparse])
@pytest.mark.parametrize(("cutoff", "epsilon"), [(3, "1/2"), (60, "3/2"), (400, 4), (2000, 30)])
def test_the_price_of_a_round_fits_the_target_and_nearly_fills_it(kind, cutoff, epsilon):
    mechanism = built(kind, cutoff=cutoff, epsilon=epsilon, delta="1e-6")
    target = Fraction(epsilon)
    assert mechanism.loss.epsilon_at("1e-6") <= target
    assert mechanism.loss.epsilon_at("1e-6") > target * Fraction(999, 1000)
    parts = [float(mechanism.round_epsilon)]
    if kind is NumericSparse:
        parts.append(float(mechanism.answer_loss.epsilon))
    # The decisions alone, composed exactly, stay within the target.
    assert exact_delta(parts[0], cutoff, float(target)) <= 1e-6


def test_the_price_is_never_below_the_books_when_that_is_valid():
    for cutoff in (20, 100, 1000):
        for epsilon in ("1/10", "9/10"):
            book = float(Fraction(epsilon)) / math.sqrt(8 * cutoff * math.log(1e6))
            mechanism = built(Sparse, cutoff=cutoff, epsilon=epsilon, delta="1e-6")
            assert mechanism.round_epsilon > 1.5 * book


def test_pure_prices():
    assert built(Sparse, cutoff=4, epsilon=2).round_epsilon == Fraction(1, 2)
    assert built(Sparse, cutoff=4, epsilon=2).loss == 4 * Loss.pure("1/2")
    assert built(Sparse, cutoff=4, epsilon=2, renew=False).loss == Loss.pure(2)
    numeric = built(NumericSparse, cutoff=4, epsilon=9)
    assert numeric.loss.epsilon == 9
    assert numeric.round_epsilon * 4 == 8  # DR: 8/9 of epsilon for the decisions
    assert numeric.answer_loss.epsilon * 4 == 1
    assert numeric.plan.answer_scale == 8
    kept = built(NumericSparse, cutoff=4, epsilon=9, renew=False)
    assert kept.loss.epsilon == 9
    plan = kept.plan
    assert 2 / plan.threshold_scale + 8 * 2 / plan.query_scale + 4 * 2 / plan.answer_scale == 9


def test_a_kept_threshold_has_no_delta():
    with pytest.raises(InvalidParameter, match="kept threshold"):
        built(Sparse, renew=False, delta="1e-6")


# --- numeric answers ---------------------------------------------------------------------------


def test_numeric_answers_are_fresh_and_of_the_kind_asked():
    run = NumericSparse(threshold=100, cutoff=4, sensitivity=1, epsilon=36).start()
    assert run.ask(3) is None
    assert abs(run.ask(900) - 900) < 100
    answer = run.ask_many(np.array([2, 800]))
    assert answer.above.tolist() == [1]
    assert answer.answers.dtype == np.int64
    grid = Grid("1/8")
    real = NumericSparse(threshold=100, cutoff=4, sensitivity="1/2", epsilon=36, grid=grid).start()
    value = real.ask(900.25)
    assert isinstance(value, float)
    assert (value * 8).is_integer()
    assert isinstance(real.ask(Fraction(900)), Fraction)


def test_numeric_answers_have_the_stated_noise():
    mechanism = NumericSparse(threshold=-500, cutoff=N, sensitivity=1, epsilon=9 * N)
    errors = mechanism.release(np.full(N, 700)).answers - 700
    assert mechanism.plan.answer_scale == 1
    law = {z: mass for z, mass in laplace(1.0).items() if abs(z) < 5}
    seen = dict(
        zip(*(part.tolist() for part in np.unique(errors, return_counts=True)), strict=True)
    )
    assert sampled_well(seen, law, N)
    assert not sampled_well(seen, {z: m for z, m in laplace(1.5).items() if abs(z) < 5}, N)


# --- accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [2, 6])
def test_the_margin_is_the_least_that_holds_for_the_worst_stream(queries):
    """All queries just beyond the margin below: certified by the exact law of the answers."""
    mechanism = AboveThreshold(threshold=0, sensitivity=1, epsilon=2)
    beta = Fraction(1, 10)
    margin = mechanism.margin(beta, queries=queries)

    def false_alarm(distance):
        law = masses(mechanism.law([-distance] * queries))
        return 1 - law[(False,) * queries]

    def missed(distance):
        law = masses(mechanism.law([-distance] * (queries - 1) + [distance]))
        return 1 - law[(*(False,) * (queries - 1), True)]

    assert max(false_alarm(margin + 1), missed(margin + 1)) <= beta
    assert false_alarm(3 * margin // 4) > beta


def test_the_theorems_margins():
    """DR 3.24, 3.26 and 3.28, and the ones from the law below them."""
    mechanism = AboveThreshold(threshold=0, sensitivity=3, epsilon="1/2")
    book = 8 * 3 * (math.log(50) + math.log(2 / 0.05)) / 0.5
    assert book <= mechanism.theorem_margin("0.05", queries=50) <= book + 2
    assert mechanism.margin("0.05", queries=50) <= book
    sparse = built(Sparse, cutoff=7, sensitivity=3, epsilon="1/2")
    book = 8 * 3 * 7 * (math.log(50) + math.log(2 * 7 / 0.05)) / 0.5
    assert book <= sparse.theorem_margin("0.05", queries=50) <= book + 2
    assert sparse.margin("0.05", queries=50) <= book
    numeric = built(NumericSparse, cutoff=7, sensitivity=3, epsilon="1/2")
    book = 9 * 3 * 7 * (math.log(50) + math.log(4 * 7 / 0.05)) / 0.5
    assert book <= numeric.theorem_margin("0.05", queries=50) <= book + 2
    assert numeric.margin("0.05", queries=50) <= book
    # With delta: 8 / e' instead of sqrt(512 c ln(1 / delta)) / epsilon, for a larger e'.
    approximate = built(Sparse, cutoff=70, sensitivity=3, epsilon="1/2", delta="1e-6")
    book = 3 * (math.log(50) + math.log(140 / 0.05)) * math.sqrt(512 * 70 * math.log(1e6)) / 0.5
    assert approximate.margin("0.05", queries=50) < approximate.theorem_margin("0.05", queries=50)
    assert approximate.theorem_margin("0.05", queries=50) < book


def test_a_kept_threshold_is_more_accurate():
    kept, renewed = (built(Sparse, cutoff=20, renew=renew) for renew in (False, True))
    assert kept.margin("0.05", queries=500) < 0.7 * renewed.margin("0.05", queries=500)


def test_margins_scale_with_the_grid():
    whole = AboveThreshold(threshold=0, sensitivity=3, epsilon="1/2")
    fine = AboveThreshold(threshold=0, sensitivity=3, epsilon="1/2", grid=Grid("1/64"))
    assert fine.margin("0.05", queries=50) == pytest.approx(
        whole.margin("0.05", queries=50), rel=0.02
    )


# --- what is not private -----------------------------------------------------------------------


def broken(first, second, plan: Plan, epsilon) -> bool:
    """Whether the audit of the exact laws convicts this plan of losing more than epsilon."""
    bounds = max_divergence(transcript_law(plan, first), transcript_law(plan, second))
    return bounds[0] > epsilon


HIGH, LOW = [12] * 4 + [-10], [13] * 4 + [-11]


def test_the_right_plan_is_acquitted():
    mechanism = AboveThreshold(threshold=2, sensitivity=1, epsilon=2)
    assert not broken(HIGH, LOW, mechanism.plan, 2)


@pytest.mark.parametrize(
    ("variant", "changes"),
    [
        ("Lap(1/e) for the threshold and the queries", {"threshold_scale": 1, "query_scale": 1}),
        ("the sensitivity forgotten", {"threshold_scale": "13/20", "query_scale": "4/5"}),
        ("the monotonic price for queries that are not", {"threshold_scale": 1, "query_scale": 1}),
    ],
)
def test_too_little_noise_is_convicted(variant, changes):
    right = AboveThreshold(threshold=2, sensitivity=1, epsilon=2).plan
    plan = Plan(
        threshold=2,
        threshold_scale=Fraction(changes["threshold_scale"]),
        query_scale=Fraction(changes["query_scale"]),
        cutoff=1,
        renew=True,
        answer_scale=None,
        grid=None,
    )
    assert plan.query_scale < right.query_scale
    assert broken(HIGH, LOW, plan, 2)


def test_lyu_algorithm_5_no_noise_on_the_queries():
    """Stoddard et al. 2014: with noise on the threshold only, some answers become impossible."""
    # Answers (below, above) to (0, 1) need a threshold 0 < t <= 1; to (1, 0), 1 < t <= 0.
    noise = laplace(2.0)
    first = sum(mass for t, mass in noise.items() if 0 < t <= 1)
    second = sum(mass for t, mass in noise.items() if 1 < t <= 0)
    assert first > 0.1
    assert second == 0


@pytest.mark.parametrize(
    ("name", "query_scale"),
    [("Lee and Clifton 2014", Fraction(4, 6)), ("Chen et al. 2015", Fraction(1))],
)
def test_lyu_algorithms_4_and_6_no_noise_for_the_cutoff(name, query_scale):
    """Query noise that does not grow with the number of answers, and one threshold for all."""
    plan = Plan(
        threshold=2,
        threshold_scale=Fraction(2),
        query_scale=query_scale,
        cutoff=4,
        renew=False,
        answer_scale=None,
        grid=None,
    )
    assert broken([12] * 4 + [-10] * 4, [13] * 4 + [-11] * 4, plan, 2)


def test_lyu_algorithm_3_the_compared_value_released():
    """Roth's notes 2011: the noisy value that passed is published, without fresh noise."""
    scale_t, scale_q = 1.0, 2.0  # AboveThreshold at epsilon = 2, DR's shares, sensitivity 1
    level, query = laplace(scale_t, 60), laplace(scale_q, 200)
    below = {}
    total = 0.0
    for z in sorted(query):
        below[z] = total
        total += query[z]

    def chance(lows, last, value):
        """P(below for every low, then the value itself)."""
        return sum(
            mass * math.prod(below[t - low] for low in lows) * query[value - last]
            for t, mass in level.items()
            if value >= t
        )

    ratio = math.log(chance([0] * 20, 0, 0) / chance([1] * 20, -1, 0))
    assert ratio > 4  # twice the epsilon that was claimed


def test_the_same_threshold_after_an_answer_at_the_price_of_a_fresh_one_is_fine():
    """Not a mutant: keeping the threshold costs less, so rounds at full price stay private."""
    renewed = Sparse(threshold=2, cutoff=2, sensitivity=1, epsilon=4).plan
    kept = Plan(**{name: getattr(renewed, name) for name in Plan.__slots__} | {"renew": False})
    for first, second in itertools.product([HIGH + HIGH, [-10, 12] * 2], repeat=2):
        if len(first) == len(second):
            assert not broken(first, [value + 1 for value in first], kept, 4)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"sensitivity": 0}, "P2"),
        ({"sensitivity": -1}, "P2"),
        ({"sensitivity": "1/2"}, "P4"),
        ({"epsilon": 0}, "P2"),
        ({"epsilon": "1e-30"}, "P2"),
        ({"threshold": "1/3"}, "P6"),
        ({"threshold": 2**70}, "P6"),
        ({"threshold": float("nan")}, "P1"),
    ],
)
def test_refuses_parameters(kind, wrong, code):
    with pytest.raises(InvalidParameter) as refusal:
        built(kind, **wrong)
    assert refusal.value.code == code


@pytest.mark.parametrize("wrong", [{"cutoff": 0}, {"cutoff": "3"}, {"delta": 1}, {"delta": -1}])
def test_refuses_a_cutoff_or_delta(wrong):
    with pytest.raises(InvalidParameter):
        built(Sparse, **wrong)


def test_refuses_streams():
    run = built(Sparse).start()
    for bad in (np.zeros((2, 2), dtype=np.int64), 7, "71", np.array([1.5])):
        with pytest.raises(InvalidParameter) as refusal:
            run.ask_many(bad)
        assert refusal.value.code == "P6"
    assert run.ask_many([]).asked == 0
    with pytest.raises(InvalidParameter):
        built(Sparse).law([])
    with pytest.raises(InvalidParameter):
        built(Sparse, cutoff=9).law([0] * 60)


def test_repr_reads_like_the_call():
    for mechanism in (
        built(AboveThreshold, threshold_share="1/2"),
        built(Sparse, delta="1e-6", monotonic=True),
        built(NumericSparse, renew=False, grid=Grid("1/4"), threshold="11/4"),
    ):
        assert eval(repr(mechanism)) == mechanism
