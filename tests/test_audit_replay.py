"""Replay: frozen noise, what enters it, and nothing left behind."""

from __future__ import annotations

import json
import random
import sys
import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet import audit, mechanisms
from discreet.accounting.budget import Budget
from discreet.audit import Verdict, observe
from discreet.audit.generators import watch_sources
from discreet.curate.curator import Curator
from discreet.errors import InvalidParameter
from discreet.mechanisms import (
    AboveThreshold,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Quantile,
    ReportNoisyMax,
)
from discreet.noise import bernoulli, discrete_gaussian, discrete_laplace
from discreet.noise.entropy import random_bytes
from discreet.price.calibration import buy_laplace
from discreet.price.plan import Sensitivity
from discreet.question.schema import Schema
from discreet.release import release as airlock

HERE, THERE = [3, 5, 8], [3, 5, 8, 13]

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "pid"
max_rows_per_unit = 2
[tables.visits.columns]
pid = "integer"
region = { type = "text", values = ["north", "south"] }
word = "text"
cost = { type = "decimal", bounds = [0, 100] }
""")


def tables(people):
    rows = [(1, "north", "a", 10.0), (2, "south", "b", 95.5), (2, "south", "b", 3.0)]
    kept = [row for row in rows if row[0] in people]
    names = ("pid", "region", "word", "cost")
    types = (pa.int64(), pa.string(), pa.string(), pa.float64())
    columns = {
        name: pa.array([row[place] for row in kept], kind)
        for place, (name, kind) in enumerate(zip(names, types, strict=True))
    }
    return {"visits": pa.table(columns)}


# --- functions ---------------------------------------------------------------------------------


def right(rows):
    return Laplace(sensitivity=1, epsilon="1/2").release(len(rows))


def too_far(rows):
    return Laplace(sensitivity=2, epsilon="1/2").release(sum(rows))


def other_noise(rows):
    return Laplace(sensitivity=1, epsilon="1/2" if len(rows) > 3 else "1/4").release(len(rows))


def other_count(rows):
    return [discrete_laplace(2) for _ in rows]


def other_kind(rows):
    return discrete_laplace(4) if len(rows) > 3 else discrete_gaussian(4)


def gaussian_far(rows):
    return Gaussian(sensitivity=3, rho="1/8").release([sum(rows), len(rows)])


def gaussian_right(rows):
    return Gaussian(sensitivity=14, rho="1/8").release([sum(rows), len(rows)])


def scores(rows, sensitivity):
    return ExponentialMechanism(sensitivity=sensitivity, epsilon=1).release([sum(rows), 5, 2])


def noisy_max(rows):
    return ReportNoisyMax(sensitivity=12, epsilon=1, noise="laplace").release([sum(rows), 5, 2])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (too_far, "move by 13 in l1, where 2 is stated"),
        (other_noise, "use 1 of noise is"),
        (other_count, "3 times and the other 4 times"),
        (other_kind, "use 1 of noise is"),
        (gaussian_far, "in l2 squared, where 9 is stated"),
        (lambda rows: scores(rows, 12), "in linf"),
        (noisy_max, "in linf"),
    ],
)
def test_what_one_person_may_not_change_is_found(target, words):
    found = audit.replay(target, HERE, THERE)
    assert found.verdict is Verdict.BROKEN
    assert words in found.sentence


@pytest.mark.parametrize("target", [right, gaussian_right, lambda rows: scores(rows, 13)])
def test_what_is_right_is_let_be(target):
    found = audit.replay(target, HERE, THERE)
    assert found.verdict is Verdict.CONSISTENT
    assert found.checked == 1
    assert json.loads(json.dumps(found.to_json()))["differences"] == []


def test_nothing_to_compare_is_said():
    assert audit.replay(lambda rows: 7, HERE, THERE).verdict is Verdict.UNDECIDED
    found = audit.replay(lambda rows: 7, HERE, THERE, sensitivity=20)
    assert found.verdict is Verdict.UNDECIDED
    assert "no noise was seen, and nothing moved" in found.sentence


def test_a_bare_draw_hides_nobody_knows_how_much():
    """The same draw in both worlds, on numbers that nobody stated a sensitivity of."""

    def bare(rows):
        return 1000 * len(rows) + discrete_laplace(2)

    found = audit.replay(bare, HERE, THERE)
    assert found.verdict is Verdict.UNDECIDED
    assert "no sensitivity was stated" in found.sentence
    assert audit.replay(bare, HERE, THERE, sensitivity=999).alarm
    assert audit.replay(bare, HERE, THERE, sensitivity=1000).verdict is Verdict.CONSISTENT


def test_an_error_in_one_world_is_a_difference():
    found = audit.replay(lambda rows: 1 / (len(rows) - 3), HERE, THERE)
    assert found.alarm
    assert "error" in found.sentence


def test_an_adaptive_run_may_follow_what_it_released():
    def adaptive(rows):
        first = Laplace(sensitivity=1, epsilon="1/2").release(len(rows))
        with_more = Laplace(sensitivity=1, epsilon="1/4" if first % 2 else "1/8")
        return with_more.release(len(rows))

    assert audit.replay(adaptive, HERE, THERE).alarm
    assert not audit.replay(adaptive, HERE, THERE, adaptive=True).alarm


# --- other people's noise ----------------------------------------------------------------------


def numpy_global(rows):
    return sum(rows) + np.random.laplace(0, 3)


def numpy_given(rows, rng):
    return np.array([sum(rows), len(rows)]) + rng.normal(0, 3, 2)


def standard_library(rows):
    return sum(rows) + random.gauss(0, 3)


@pytest.mark.parametrize("target", [numpy_global, numpy_given, standard_library])
def test_outputs_are_compared_with_the_stated_sensitivity(target):
    assert audit.replay(target, HERE, THERE, sensitivity=14).verdict is Verdict.CONSISTENT
    found = audit.replay(target, HERE, THERE, sensitivity=12)
    assert found.alarm
    assert "with the noise frozen" in found.sentence
    assert audit.replay(target, HERE, THERE, sensitivity=12, norm="linf").alarm


OWN = np.random.default_rng()


def numpy_fresh(rows):
    return sum(rows) + np.random.default_rng().laplace(0, 40)


def numpy_own(rows):
    return sum(rows) + OWN.laplace(0, 40)


def the_system(rows):
    return sum(rows) + random.SystemRandom().gauss(0, 40)


def hardly_ever(rows):
    """Right, and nearly always without noise: no repetition would find that it draws."""
    return len(rows) + (random.SystemRandom().random() < 1e-6)


def a_coin_of_its_own(rows):
    """Right, with a public coin that says which noise is drawn."""
    scale = 2 if OWN.random() < 0.5 else 3
    return discrete_laplace(scale)


@pytest.mark.parametrize("target", [numpy_fresh, numpy_own, the_system])
@pytest.mark.parametrize("there", [HERE, THERE])
@pytest.mark.parametrize("sensitivity", [None, 13])
def test_noise_that_cannot_be_frozen_convicts_nobody(target, there, sensitivity):
    for _ in range(5):
        found = audit.replay(target, HERE, there, sensitivity=sensitivity, adjacent=True)
        assert found.verdict is Verdict.UNDECIDED
        assert found.differences == ()
        assert "could not be frozen" in found.sentence
        assert "a parameter named rng" in found.sentence
        assert found.to_json()["frozen"] is False


def test_rare_noise_convicts_nobody():
    found = audit.replay(hardly_ever, HERE, THERE, sensitivity=1)
    assert found.verdict is Verdict.UNDECIDED
    assert "could not be frozen" in found.sentence


def test_chance_would_have_to_strike_forty_times():
    """With one run more a coin that is not frozen convicts right code once in eight."""
    assert not any(audit.replay(a_coin_of_its_own, HERE, THERE).alarm for _ in range(60))


class Unlike:
    """Equal to nothing but itself."""


def test_outputs_that_are_no_numbers():
    def words(rows, rng):
        return np.array(["few", "many"])[: 1 + (rng.random() < 2)]

    assert not audit.replay(words, HERE, THERE, sensitivity=3).alarm
    found = audit.replay(lambda rows, rng: Unlike(), HERE, THERE, sensitivity=3)
    assert found.verdict is Verdict.UNDECIDED
    found = audit.replay(lambda rows: np.array(["a"] * (len(rows) - 3)), HERE, THERE)
    assert found.alarm


@pytest.mark.parametrize("sensitivity", [None, 13, 20])
@pytest.mark.parametrize("seeded", [False, True])
def test_no_noise_at_all_is_found(sensitivity, seeded):
    def exposed(rows):
        return sum(rows) + (np.random.default_rng(3).laplace() if seeded else 0)

    found = audit.replay(exposed, HERE, THERE, sensitivity=sensitivity)
    assert found.verdict is Verdict.BROKEN
    assert "no noise was drawn" in found.sentence
    assert "the output moved" in found.sentence


def both(rows, rng):
    return right(rows) + sum(rng.spawn(1)[0].normal(size=2))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (numpy_global, ": noise from numpy's global generator, frozen, and nothing"),
        (standard_library, ": noise from the global generator of random, frozen, and nothing"),
        (numpy_given, ": noise from the given rng, frozen, and nothing"),
        (both, ": the same 1 use of noise in both worlds, noise from the given rng, frozen, and"),
        (right, ": the same 1 use of noise in both worlds, and nothing"),
    ],
)
def test_what_was_drawn_is_said(target, words):
    found = audit.replay(target, HERE, THERE, sensitivity=14)
    assert found.verdict is Verdict.CONSISTENT
    assert words in found.sentence


def test_who_is_asked_is_looked_at_no_longer_than_asked():
    before = sys.getprofile()
    with watch_sources() as asked:
        random.random()
        random.Random(7).random()
    OWN.random()
    random.SystemRandom().random()
    assert asked == ["seed", "random"]
    assert sys.getprofile() is before


def test_global_generators_are_put_back():
    np.random.seed(5)
    random.seed(5)
    expected = np.random.random(), random.random()
    np.random.seed(5)
    random.seed(5)
    audit.replay(numpy_global, HERE, THERE, sensitivity=13)
    assert (np.random.random(), random.random()) == expected


def test_bad_calls_are_refused():
    with pytest.raises(InvalidParameter, match="no norm"):
        audit.replay(right, HERE, THERE, norm="l3")
    with pytest.raises(InvalidParameter, match="not neighbours"):
        audit.replay(right, HERE, [4])
    with pytest.raises(InvalidParameter, match="cannot be run"):
        audit.replay(7, HERE, THERE)
    with pytest.raises(InvalidParameter, match="none is given"):
        audit.replay(SCHEMA, tables({1, 2}), tables({1}))


# --- observing ---------------------------------------------------------------------------------


def test_noise_is_frozen_inside_and_fresh_outside():
    with observe("a"):
        first = discrete_laplace(2**40, 5).tolist()
    with observe("a"):
        second = discrete_laplace(2**40, 5).tolist()
    with observe("b"):
        third = discrete_laplace(2**40, 5).tolist()
    assert first == second != third
    assert discrete_laplace(2**40, 5).tolist() != first
    assert random_bytes(16) != random_bytes(16)


def test_other_threads_are_neither_frozen_nor_seen():
    drawn = []
    with observe() as seen:
        for _ in range(2):
            thread = threading.Thread(target=lambda: drawn.append(discrete_laplace(2**40)))
            thread.start()
            thread.join()
        assert not seen.events
    assert drawn[0] != drawn[1]


def test_an_event_draws_the_same_however_much_was_drawn_before():
    def run(n):
        with observe():
            discrete_laplace(3, n)
            return discrete_laplace(2**40)

    assert run(3) == run(4000)


def test_frames_are_let_go():
    with observe() as seen:
        Laplace(sensitivity=3, epsilon=2).release(40)
    assert seen._owners == []


def test_every_public_noise_is_seen_by_its_name():
    with observe() as seen:
        discrete_laplace(3)
        discrete_gaussian(7, 2)
        bernoulli("1/3", 5)
    assert [event.name for event in seen.events] == [
        "discrete_laplace",
        "discrete_gaussian",
        "bernoulli",
    ]
    assert dict(seen.events[1].parameters) == {"sigma_squared": "7", "size": "2"}


def test_mechanisms_are_seen_by_what_they_are():
    with observe() as seen:
        Quantile("1/2", lower=0, upper=9, epsilon=2).release([3, 5])
        AboveThreshold(threshold=3, sensitivity=2, epsilon=2).start().ask(5)
    assert seen.events[0].name.startswith("Quantile(")
    assert len({event.name for event in seen.events}) >= 2


# --- the curator -------------------------------------------------------------------------------

QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT region, SUM(cost), AVG(cost) FROM visits GROUP BY region",
    "SELECT word, COUNT(*) FROM visits GROUP BY word",
    "SELECT MEDIAN(cost) FROM visits",
    "SELECT MODE(region) FROM visits",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_curator_keeps_to_its_price(question):
    found = audit.replay(SCHEMA, tables({1, 2}), tables({1}), question, epsilon=1, delta="1e-6")
    assert found.verdict is Verdict.CONSISTENT, found.sentence
    assert found.checked >= 1


def test_a_curator_stands_for_its_schema_and_budget():
    with Curator(tables({1}), schema=SCHEMA, budget=Budget(epsilon=1)) as curator:
        found = audit.replay(curator, tables({1, 2}), tables({2}), QUESTIONS[0], epsilon="1/2")
        assert found.verdict is Verdict.CONSISTENT
        with pytest.raises(InvalidParameter, match="not neighbours"):
            audit.replay(curator, tables({1, 2}), tables(set()), QUESTIONS[0], epsilon="1/2")


@pytest.mark.parametrize("question", [*QUESTIONS[:2], QUESTIONS[3]])
def test_a_price_that_is_too_low_is_found(question, monkeypatch):
    """Half the sensitivity: the person with two rows moves twice as far as stated."""
    from discreet.price import priced

    original = priced.compute_sensitivity

    def halved(*arguments, **how):
        whole = original(*arguments, **how)
        return replace(whole, l1=whole.l1 // 2, l2_squared=whole.l2_squared // 4)

    monkeypatch.setattr(priced, "compute_sensitivity", halved)
    found = audit.replay(SCHEMA, tables({1, 2}), tables({1}), question, epsilon=1)
    assert found.alarm
    assert "is stated" in found.sentence
    for value in ("95.5", "98.5", "south"):
        assert value not in json.dumps(found.to_json())


def test_noise_that_depends_on_the_data_is_found():
    """In the airlock itself: the same truth, released with noise that the data decide."""

    def peeking(rows):
        bought = buy_laplace(Fraction(1, 2 + len(rows)), Sensitivity(3, 9))
        return airlock._add_noise(bought, np.array([[len(rows)]]))

    def steady(rows):
        bought = buy_laplace(Fraction(1, 2), Sensitivity(3, 9))
        return airlock._add_noise(bought, np.array([[len(rows)]]))

    assert audit.replay(peeking, HERE, THERE).alarm
    assert audit.replay(steady, HERE, THERE).verdict is Verdict.CONSISTENT


def test_the_mechanisms_module_is_as_it_was():
    """Nothing is patched: what was imported before is what is called."""
    before = mechanisms.laplace.discrete_laplace, airlock._add_noise
    with observe():
        right(HERE)
    assert (mechanisms.laplace.discrete_laplace, airlock._add_noise) == before
