"""Adaptive Laplace: whole conversations, enumerated, never tell more than they may."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import random
import threading
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import divergence
from discreet.accounting.law import DiscreteLaplaceLaw, FiniteLaw
from discreet.errors import Halted, InvalidParameter
from discreet.mechanisms.adaptive import AdaptiveLaplace
from discreet.mechanisms.grid import Grid

ALPHA = 1e-9  # chance that a correct mechanism fails the statistical test
N = 30_000  # enough to tell a scale from one a quarter smaller or a third larger: asserted below

REGIONS = ("north", "east", "south")
REFUSED = "refused"
REACH = 2  # answers are cut to -REACH..REACH before the analyst looks at them


# --- whole conversations -------------------------------------------------------------------


class Analyst:
    """Chooses each query from the answers so far, in a way fixed by a seed."""

    def __init__(self, seed: int, rounds: int) -> None:
        self.seed, self.rounds = seed, rounds

    def query(self, history):
        """Weights for each region, or None to stop: the query is their sum over all records."""
        if len(history) == self.rounds:
            return None
        chooser = random.Random(f"{self.seed} {history}")
        return {region: chooser.choice((0, 0, 1, -1, 2)) for region in REGIONS}


def conversation(mechanism, analyst, records) -> FiniteLaw:
    """The exact law of the transcript, answers cut to a few values (that is post-processing)."""
    outcomes, factors = [], []

    def walk(history, asked, chances):
        weights = analyst.query(history)
        if weights is None:
            outcomes.append(history)
            factors.append(tuple(chances))
            return
        run = mechanism.start()
        for earlier in asked:  # the run's own admission rule, replayed
            run.ask(0, sensitivity=earlier)
        bounds = {region: abs(weight) for region, weight in weights.items() if weight}
        if not run.admits(bounds):
            walk((*history, REFUSED), asked, chances)
            return
        law = mechanism.law(sum(weights[region] for region in records))
        for answer in range(-REACH, REACH + 1):
            walk((*history, answer), (*asked, bounds), (*chances, (law, answer)))

    walk((), (), ())

    def masses():
        return [math.prod((chance(*factor) for factor in row), start=arb(1)) for row in factors]

    return FiniteLaw(tuple(outcomes), masses)


def chance(law, answer):
    if answer == -REACH:
        return law.cdf(answer)
    return law.tail(answer) if answer == REACH else law.mass(answer)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 3),
    promised=st.integers(1, 4),
    epsilon=st.sampled_from(["1/3", "3/2", "4"]),
    records=st.lists(st.sampled_from(REGIONS), max_size=4),
    newcomer=st.sampled_from(REGIONS),
)
def test_no_conversation_tells_more_than_epsilon(
    seed, rounds, promised, epsilon, records, newcomer
):
    mechanism = AdaptiveLaplace(joint_sensitivity=promised, epsilon=epsilon, regions=REGIONS)
    analyst = Analyst(seed, rounds)
    before = conversation(mechanism, analyst, records)
    after = conversation(mechanism, analyst, [*records, newcomer])
    assert before.outcomes == after.outcomes  # what is refused does not depend on the data
    lower, _ = divergence.both_ways(divergence.max_divergence, before, after)
    assert lower <= mechanism.loss.epsilon == Fraction(epsilon)
    low, _ = divergence.both_ways(divergence.rho, before, after)
    assert low <= mechanism.loss.rho


def test_the_bound_is_attained():
    """Two queries that together use all of the promise, about one region."""
    mechanism = AdaptiveLaplace(joint_sensitivity=3, epsilon="3/2", regions=REGIONS)

    class Greedy(Analyst):
        def query(self, history):
            used = (1, 2)
            if len(history) == len(used):
                return None
            return {"north": used[len(history)], "east": 0, "south": 0}

    before = conversation(mechanism, Greedy(0, 2), [])
    after = conversation(mechanism, Greedy(0, 2), ["north"])
    lower, upper = divergence.max_divergence(before, after)
    assert lower <= Fraction(3, 2) <= upper
    assert upper - lower < Fraction(1, 2**50)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.fractions(Fraction(1, 3), 5, max_denominator=6),
    st.fractions(Fraction(101, 100), 20, max_denominator=100),
)
def test_splitting_a_shift_never_costs_more(one, other, scale, alpha):
    """Lemma 6: the Rényi divergence of the discrete Laplace law is superadditive in the shift."""

    def cost(shift):
        pair = DiscreteLaplaceLaw(0, scale), DiscreteLaplaceLaw(shift, scale)
        return divergence.renyi(*pair, alpha)

    assert cost(one)[0] + cost(other)[0] <= cost(one + other)[1]


# --- the rule ------------------------------------------------------------------------------


def test_disjoint_regions_cost_the_greatest_and_not_the_sum():
    run = AdaptiveLaplace(joint_sensitivity=5, epsilon="1/2", regions=REGIONS).start()
    for region in REGIONS:
        run.ask(40, sensitivity={region: 5})
    assert run.joint_sensitivity == 5
    assert set(run.remaining.values()) == {0}
    assert run.admits({})
    assert not run.admits({"east": 1})


def test_one_region_pays_the_sum():
    run = AdaptiveLaplace(joint_sensitivity=5, epsilon="1/2", regions=REGIONS).start()
    run.ask(40, sensitivity={"north": 3})
    run.ask(40, sensitivity={"north": 2, "south": 1})  # exactly all that was promised
    with pytest.raises(Halted) as refusal:
        run.ask(40, sensitivity={"north": 1})
    assert refusal.value.code == "H2"
    assert dict(run.remaining) == {"north": 0, "east": 5, "south": 4}


def test_one_bound_for_all_is_charged_to_every_region():
    run = AdaptiveLaplace(joint_sensitivity=5, epsilon="1/2", regions=REGIONS).start()
    run.ask(40, sensitivity=3)
    assert dict(run.remaining) == dict.fromkeys(REGIONS, 2)
    assert not run.admits({"south": 3})


def test_a_refusal_neither_looks_at_the_data_nor_spends():
    run = AdaptiveLaplace(joint_sensitivity=4, epsilon="1/2", regions=REGIONS).start()
    run.ask(40, sensitivity=3)
    looked = []
    for _ in range(3):
        with pytest.raises(Halted):
            run.ask(lambda: looked.append(1), sensitivity=2)
    assert not looked
    assert run.joint_sensitivity == 3
    assert isinstance(run.ask(lambda: 40, sensitivity={"east": 1}), int)


def test_what_was_looked_at_is_charged_even_if_it_fails():
    run = AdaptiveLaplace(joint_sensitivity=4, epsilon="1/2").start()
    with pytest.raises(ZeroDivisionError):
        run.ask(lambda: 3 // 0, sensitivity=3)
    assert run.joint_sensitivity == 3
    with pytest.raises(InvalidParameter):
        run.ask([3, 4], sensitivity=1)
    assert run.joint_sensitivity == 4


def test_on_a_grid_sensitivities_are_rounded_up_to_steps():
    mechanism = AdaptiveLaplace(joint_sensitivity="3/4", epsilon="1/2", grid=Grid("1/4"))
    assert mechanism.scale == Fraction(3, 2)
    run = mechanism.start()
    answer = run.ask(10.3, sensitivity="0.3")  # two steps, since values on the grid move by steps
    assert answer * 4 == int(answer * 4)
    assert run.joint_sensitivity == Fraction(1, 2)
    with pytest.raises(Halted):
        run.ask(10.3, sensitivity="0.26")
    run.ask(10.3, sensitivity="0.25")
    assert mechanism.law(10.3).center == 41


def test_two_askers_cannot_pass_one_check():
    mechanism = AdaptiveLaplace(joint_sensitivity=7, epsilon="1/2")
    for _ in range(20):
        run = mechanism.start()
        barrier = threading.Barrier(4)
        answered = []

        def asker(run=run, barrier=barrier, answered=answered):
            barrier.wait()
            for _ in range(5):
                with contextlib.suppress(Halted):
                    answered.append(run.ask(40, sensitivity=2))

        threads = [threading.Thread(target=asker) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answered) == 3


def test_the_check_and_the_charge_are_one_step(monkeypatch):
    """Staged: a second asker starts exactly between the first one's check and charge."""
    run = AdaptiveLaplace(joint_sensitivity=5, epsilon="1/2").start()
    kind, real = type(run), type(run)._after
    second, outcomes = [], []

    def intruder():
        try:
            outcomes.append(run.ask(40, sensitivity=3))
        except Halted:
            outcomes.append(None)

    def paused(self, charges):
        after = real(self, charges)
        if not second:
            second.append(threading.Thread(target=intruder))
            second[0].start()
            second[0].join(timeout=0.2)
        return after

    monkeypatch.setattr(kind, "_after", paused)
    run.ask(40, sensitivity=3)
    second[0].join()
    assert outcomes == [None]


def test_a_run_cannot_be_copied():
    run = AdaptiveLaplace(joint_sensitivity=5, epsilon="1/2").start()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Halted) as refusal:
            duplicate(run)
        assert refusal.value.code == "H3"


def test_answers_have_the_stated_law():
    """Massart (1990): P(sup |F_n - F| > t) <= 2 exp(-2 n t**2)."""
    mechanism = AdaptiveLaplace(joint_sensitivity=3, epsilon="1/2")  # scale 6
    run = mechanism.start()
    draws = [run.ask(100, sensitivity=0) for _ in range(N)]

    def fits(scale) -> bool:
        law = DiscreteLaplaceLaw(100, Fraction(scale))
        allowed = math.sqrt(math.log(2 / ALPHA) / (2 * N))
        return all(
            abs(sum(draw <= z for draw in draws) / N - float(law.cdf(z))) <= allowed
            for z in range(85, 115)
        )

    assert fits(6)
    assert not fits("4.5")
    assert not fits("8")


def test_its_loss_is_reserved_from_the_start():
    mechanism = AdaptiveLaplace(joint_sensitivity=3, epsilon="3/2")
    run = mechanism.start()
    assert run.loss == mechanism.loss
    assert run.loss.epsilon == Fraction(3, 2)
    assert run.loss.delta == 0
    assert "0 of 3" in repr(run)
    assert repr(mechanism) == "AdaptiveLaplace(joint_sensitivity=3, epsilon='3/2')"


@pytest.mark.parametrize(
    "build",
    [
        lambda: AdaptiveLaplace(joint_sensitivity=0, epsilon=2),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=-2),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=float("nan")),
        lambda: AdaptiveLaplace(joint_sensitivity="3/2", epsilon=2),
        lambda: AdaptiveLaplace(joint_sensitivity="1/3", epsilon=2, grid=Grid("1/4")),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2, regions=()),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2, regions=("a", "a")),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon="1e-30"),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).law([2, 3]),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).start().admits({"nowhere": 2}),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).start().ask(5, sensitivity=-1),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).start().ask(5, sensitivity="1/2"),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).start().ask(0.5, sensitivity=2),
        lambda: AdaptiveLaplace(joint_sensitivity=3, epsilon=2).margin(2),
    ],
)
def test_bad_input_is_refused(build):
    with pytest.raises(InvalidParameter) as refusal:
        build()
    assert refusal.value.fix
