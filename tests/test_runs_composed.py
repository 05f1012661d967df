"""Runs side by side, exactly: an adaptive analyst who interleaves them; and mutants of runs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import test_runs
from flint import arb

import discreet
from discreet.accounting.loss import Loss
from discreet.curate import runs, sealed
from discreet.curate.runs import Run
from discreet.ledger.runs import RunBook
from discreet.mechanisms import AboveThreshold
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price import watch as watching
from discreet.price.watch import Watch, Watched

X, Y = (4, 7, 5), (5, 6, 6)
"""Three numbers of two neighbours, each moved by one."""

FIRST = AboveThreshold(threshold=5, sensitivity=1, epsilon="3/4")
SECOND = AboveThreshold(threshold=6, sensitivity=1, epsilon="5/4")

Step = tuple[int, int, bool]
"""Which run was asked for which number, and what it said."""


def next_question(told: tuple[Step, ...]) -> tuple[int, int] | None:
    """An analyst who looks at all answers of both runs before every question."""
    over = {run for run, _, above in told if above}
    if len(told) == 5 or len(over) == 2:
        return None
    above = sum(step[2] for step in told)
    run = (len(told) + above) % 2
    if run in over:
        run = 1 - run
    return run, (len(told) + 2 * above) % 3


def transcripts(told: tuple[Step, ...] = ()):
    question = next_question(told)
    if question is None:
        yield told
        return
    for above in (False, True):
        yield from transcripts((*told, (*question, above)))


def probability(told: tuple[Step, ...], numbers: tuple[int, ...], mechanisms) -> arb:
    """Coins of different runs are independent: the product over runs of what each said."""
    found = arb(1)
    for run, mechanism in enumerate(mechanisms):
        mine = [(numbers[place], above) for which, place, above in told if which == run]
        if mine:
            law = mechanism.law([number for number, _ in mine])
            found *= law.mass(tuple(above for _, above in mine))
    return found


def worst(mechanisms) -> float:
    ratios = []
    for told in transcripts():
        one, other = (probability(told, numbers, mechanisms) for numbers in (X, Y))
        ratios.append(abs(float((one / other).log().mid())))
    return max(ratios)


def test_two_interleaved_runs_lose_no_more_than_their_sum():
    """Lemma 4 of docs/proofs/runs.md, transcript by transcript."""
    everything = list(transcripts())
    assert len(everything) > 10
    total = sum((probability(told, X, (FIRST, SECOND)) for told in everything), arb(0))
    assert abs(float(total.mid()) - 1) < 1e-9
    found = worst((FIRST, SECOND))
    assert found <= 2
    assert found > 0.5


def test_the_same_analyst_refutes_a_run_with_too_little_noise():
    wrong = AboveThreshold(threshold=5, sensitivity=1, epsilon=6)
    assert worst((wrong, wrong)) > 2


# --- mutants: each must be found by a test of runs -----------------------------------------------


def reused_secret(patch):
    """The threshold's noise is kept after "above"."""
    real = sealed.Sealed.load
    patch.setattr(sealed.Sealed, "erase", lambda *_: None)
    patch.setattr(sealed.Sealed, "sweep", lambda *_: None)
    patch.setattr(sealed.Sealed, "load", lambda self, run, _turn: real(self, run, 0))


def numbers_of_below(patch):
    """What is below is told with a number, too."""
    from discreet.release.release import Judged

    real = Run._judge

    def judged(self, one, first):
        found = real(self, one, first)
        return Judged(found.below, found.above, found.value or Fraction(3))

    patch.setattr(Run, "_judge", judged)


def paid_by_question(patch):
    """Every question is charged."""
    real = Run.ask_many

    def asked(self, questions, **more):
        listed = list(questions)
        for _ in listed:
            self._curator.ask("SELECT COUNT(*) FROM visits WHERE age > 3", epsilon=1)
        return real(self, listed, **more)

    patch.setattr(Run, "ask_many", asked)


def paid_nearly_nothing(patch):
    """A run costs a trifle, however much it tells."""
    real = runs.pay_for_run

    def pay(*args, loss, **more):
        return real(*args, loss=Loss.pure(Fraction(1, 10**6)), **more)

    patch.setattr(runs, "pay_for_run", pay)


def shown_before_recorded(patch):
    """A verdict is told, and its record forgotten."""

    def forgotten(self, told, *, after, halts):
        return True

    patch.setattr(RunBook, "record", lambda self, _id, told, **more: forgotten(self, told, **more))


def sensitivity_of_one(patch):
    """How far one unit moves a number is taken to be one step."""
    real = watching.price_watched

    def priced(*args, **more):
        found = real(*args, **more)
        return Watched(found.question, found.plan, 1, found.grid)

    patch.setattr(test_runs, "price_watched", priced)


def always_monotonic(patch):
    """Everything is taken to grow only."""
    patch.setattr(test_runs, "is_monotonic", lambda *_: True)


def home(tmp_path):
    patient = np.repeat(np.arange(400), 2)
    rows = {"patient_id": patient, "city": "Cork", "age": patient % 90, "debt": patient % 20}
    pd.DataFrame(rows).to_csv(tmp_path / "visits.csv", index=False)
    test_runs.session.init(tmp_path, test_runs.TOML)
    return tmp_path


def renewed(tmp_path):
    test_runs.test_thresholds_of_different_rounds_are_different(home(tmp_path))


def told_again(tmp_path):
    """What was told is in the ledger, for the next process."""
    place = home(tmp_path)
    for asked in (0, 1):
        with discreet.open(place) as curator:
            run = curator.watch(threshold=10**6, epsilon=1, at_most=2)
            assert run.asked == asked
            run.ask(test_runs.NONE)


def many_debts(_tmp_path):
    for case in (
        ("SELECT SUM(debt) FROM visits", test_runs.SCHEMA),
        (test_runs.ALL, test_runs.CHANGE),
    ):
        test_runs.test_monotonic_prices_are_for_what_only_grows(*case, grows=False)


MUTANTS = [
    (reused_secret, renewed),
    (numbers_of_below, lambda _: test_runs.test_numbers_are_told_of_what_is_above_alone()),
    (paid_by_question, lambda _: test_runs.test_many_questions_and_one_charge()),
    (paid_nearly_nothing, lambda _: test_runs.test_many_questions_and_one_charge()),
    (shown_before_recorded, told_again),
    (
        sensitivity_of_one,
        lambda _: test_runs.test_sensitivity_follows_from_the_question(
            test_runs.ALL, test_runs.SCHEMA, 2
        ),
    ),
    (always_monotonic, many_debts),
]


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_a_mutant_is_found(mutant, check, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        mutant(patch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check(tmp_path)


@pytest.mark.parametrize("check", [renewed, told_again])
def test_the_checks_pass_without_a_mutant(check, tmp_path):
    check(tmp_path)


def test_a_secret_has_no_readable_form():
    secret = NoisyThreshold.draw(Watch.of(epsilon=1).mechanism.plan)
    for reading in (lambda: f"{secret:d}", lambda: secret == secret, lambda: {secret}):  # noqa: PLR0124
        with pytest.raises(TypeError):
            reading()
