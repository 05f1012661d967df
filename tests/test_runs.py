"""Runs of the sparse vector through the curator: one charge, many questions, crashes."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import runner
from run_cases import Killed, copy_session, kill_at_step
from test_curate import clinic

import discreet
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.curate import runs, sealed, session
from discreet.curate.runs import Run, compare
from discreet.engine.duckdb import DuckDBEngine
from discreet.engine.truth import Opened, Truth
from discreet.errors import (
    BudgetRefusal,
    DataRefusal,
    Halted,
    InvalidParameter,
    LedgerRefusal,
    QuestionRefusal,
    Refusal,
)
from discreet.ledger import Ledger
from discreet.ledger.account import Account
from discreet.ledger.runs import RunBook
from discreet.ledger.store import Store
from discreet.mechanisms import AboveThreshold, NumericSparse, Sparse
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price.watch import Watch, is_monotonic, price_watched
from discreet.question.ownership import find_declared_multiplicity
from discreet.question.schema import Schema
from discreet.question.sql import parse
from discreet.release.release import judge

ALL = "SELECT COUNT(*) FROM visits"
NONE = "SELECT COUNT(*) FROM visits WHERE age > 105"
CITIES = "SELECT city, COUNT(*) FROM visits GROUP BY city"

TOML = """
[budget]
epsilon = 3
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 2
source = "visits.csv"
[tables.visits.columns]
patient_id = "integer"
city = { type = "text", values = ["Cork", "Delft", "Faro"], nullable = false }
age = { type = "integer", bounds = [0, 110] }
debt = { type = "integer", bounds = [-50, 20] }
"""
SCHEMA = Schema.from_text(
    TOML.replace('source = "visits.csv"\n', "").split("[budget]")[1].split("3", 1)[1]
)


@pytest.fixture
def home(tmp_path):
    """A session of 400 patients with two visits each."""
    patient = np.repeat(np.arange(400), 2)
    rows = {
        "patient_id": patient,
        "city": np.array(["Cork", "Delft", "Faro"])[patient % 3],
        "age": patient % 90,
        "debt": patient % 20,
    }
    pd.DataFrame(rows).to_csv(tmp_path / "visits.csv", index=False)
    session.init(tmp_path, TOML)
    return tmp_path


# --- what a run tells ----------------------------------------------------------------------------


def test_many_questions_and_one_charge():
    with clinic() as curator:
        before = len(curator.transcript())
        with curator.watch(threshold=3000, epsilon=8, at_most=2) as run:
            verdicts = run.ask_many([NONE] * 30)
            assert not any(verdicts)
            assert run.ask(ALL)
            assert (run.asked, run.remaining, run.ended) == (31, 1, "")
        assert run.ended == "closed"
        assert curator.spent.epsilon == 8
        assert len(curator.transcript()) == before + 1
        assert curator.ledger.verify().ok


def test_it_halts_and_a_halted_run_is_asked_no_more():
    with clinic() as curator:
        run = curator.watch(threshold=3000, epsilon=20, at_most=2)
        told = run.ask_many([NONE, ALL, NONE, ALL, ALL, ALL])
        assert list(map(bool, told)) == [False, True, False, True]
        assert (run.ended, run.remaining) == ("halted", 0)
        with pytest.raises(Halted, match="told all"):
            run.ask(NONE)
        assert curator.spent.epsilon == 20


def test_numbers_are_told_of_what_is_above_alone():
    with clinic() as curator:
        run = curator.watch(threshold=1500, epsilon=40, at_most=3, numbers=True)
        below, above = run.ask(NONE), run.ask(ALL)
        assert below.value is None
        assert abs(above.value - 6000) < 200
        assert isinstance(above.value, int)
        cities = run.ask(CITIES)
        assert [v.group for v in cities] == [("Cork",), ("Delft",)]  # the third came too late
        assert all(abs(v.value - 2000) < 200 for v in cities)
        body = json.dumps([dict(part) for part in curator.account.runs.state(run.id).told])
    assert body.count('"value": null') == 1


def test_a_threshold_per_question():
    with clinic() as curator, curator.watch(epsilon=30, at_most=5) as run:
        assert not run.ask(ALL, threshold=7000)
        assert run.ask(ALL, threshold=5000)
        with pytest.raises(InvalidParameter, match="neither the run nor this question"):
            run.ask(ALL)
        assert [v.threshold for v in run.transcript] == [7000, 5000]


def test_groups_are_compared_one_by_one():
    with clinic() as curator, curator.watch(threshold=1000, epsilon=30, at_most=3) as run:
        told = run.ask(CITIES)
        assert [(v.group, v.above) for v in told] == [
            (("Cork",), True),
            (("Delft",), True),
            (("Faro",), True),
        ]
        assert run.ended == "halted"


def test_methods_whose_answers_have_one_type():
    with clinic() as curator, curator.watch(threshold=3000, epsilon=8) as run:
        assert not run.ask_one(NONE).above
        assert [one.above for one in run.ask_groups(NONE)] == [False]
        told = run.ask_groups(CITIES, threshold=10**6)
        assert [one.group for one in told] == [("Cork",), ("Delft",), ("Faro",)]
        asked = run.asked
        with pytest.raises(InvalidParameter, match="verdict for each of its groups"):
            run.ask_one(CITIES, threshold=10**6)
        assert run.asked == asked  # refused unasked


def test_a_run_outlives_a_version_of_the_data(home):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=1200, epsilon=2, at_most=1, name="growing")
        assert not run.ask(ALL)
        rows = pd.read_csv(home / "visits.csv")
        more = rows.assign(patient_id=rows.patient_id + 1000)
        pd.concat([rows, more]).to_csv(home / "visits.csv", index=False)
        os.utime(home / "visits.csv", ns=(10**18, 10**18))
    with discreet.open(home) as curator:
        run = curator.watch(threshold=1200, epsilon=2, at_most=1, name="growing")
        assert run.ask(ALL)
        assert curator.spent.epsilon == 2


# --- what may be asked ---------------------------------------------------------------------------


def test_a_schedule_asks_once_for_each_version_of_the_data(home):
    """Called again and again, by processes that end: one charge, one question for new data."""

    def visit():
        with discreet.open(home) as curator:
            run = curator.watch(threshold=600, epsilon=3, at_most=3, name="daily")
            return run.ask_new(CITIES), run.asked, curator.spent.epsilon

    told, asked, spent = visit()
    assert [v.above for v in told] == [False] * 3
    assert (asked, spent) == (1, 3)
    assert visit() == (None, 1, 3)
    rows = pd.read_csv(home / "visits.csv")
    more = rows.assign(patient_id=rows.patient_id + 1000, city="Cork")
    pd.concat([rows, more, more.assign(patient_id=more.patient_id + 1000)]).to_csv(
        home / "visits.csv", index=False
    )
    told, asked, spent = visit()
    assert [(v.group, v.above) for v in told] == [
        (("Cork",), True),
        (("Delft",), False),
        (("Faro",), False),
    ]
    assert visit() == (None, 2, 3)
    with discreet.open(home) as curator:
        run = curator.watch(threshold=600, epsilon=3, at_most=3, name="daily")
        assert not run.ask_new(NONE)  # another question, of the same data
        assert run.asked == 3


def test_a_schedule_that_has_halted_is_not_bought_anew(home):
    """A timer goes on ticking: what was paid for is told, and no more is paid."""

    def visit(**more):
        with discreet.open(home) as curator:
            run = curator.watch(threshold=100, epsilon=1, at_most=1, name="daily", **more)
            return run.id, run.ask_new(CITIES), run.ended, curator.spent.epsilon

    number, told, ended, spent = visit(once=True)
    assert ([v.above for v in told], ended, spent) == ([True], "halted", 1)
    for _ in range(2):
        assert visit(once=True) == (number, None, "halted", 1)
    rows = pd.read_csv(home / "visits.csv")
    pd.concat([rows, rows.assign(patient_id=rows.patient_id + 1000)]).to_csv(
        home / "visits.csv", index=False
    )
    with pytest.raises(Halted):  # of new data nothing more was paid for: said, and free
        visit(once=True)
    other, told, _, spent = visit()  # who wants another buys it
    assert (other > number, told.above, spent) == (True, True, 2)
    assert visit(once=True) == (other, None, "halted", 2)  # the last one is gone on with


def test_once_finds_no_run_that_was_ended_or_is_of_other_words(home):
    with discreet.open(home) as curator:
        with curator.watch(threshold=100, epsilon="1/2", once=True) as ended:
            pass
        assert ended.ended == "closed"
        again = curator.watch(threshold=100, epsilon="1/2", once=True)
        assert again.id != ended.id
        assert again.ask(ALL)
        curator.account.add_analyst("ana")
        others = [
            curator.watch(threshold=101, epsilon="1/2", once=True),
            curator.watch(threshold=100, epsilon="1/2", name="other", once=True),
            curator.watch(threshold=100, epsilon="1/2", analyst="ana", once=True),
        ]
        assert len({again.id, *(run.id for run in others)}) == 4
        assert curator.watch(threshold=100, epsilon="1/2", once=True).id == again.id
        assert curator.spent.epsilon == Fraction(5, 2)


def test_a_schedule_finishes_what_was_cut_short(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=100, epsilon=3, at_most=9)
        real = RunBook.record

        def dies(self, id, told, **more):  # noqa: A002
            real(self, id, told, **more)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(RunBook, "record", dies)
            with suppress(Killed):
                run.ask_new(CITIES)
    with discreet.open(home) as curator:
        run = curator.watch(threshold=100, epsilon=3, at_most=9)
        assert len(run.transcript) == 1
        assert [v.group for v in run.ask_new(CITIES)] == [("Cork",), ("Delft",), ("Faro",)]
        assert run.ask_new(CITIES) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(age) FROM visits",
        "SELECT COUNT(*) + 1 AS n FROM visits",
        "SELECT COUNT(*), SUM(age) FROM visits",
        "SELECT MEDIAN(age) FROM visits",
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 5",
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT 1",
        "SELECT street, COUNT(*) FROM visits GROUP BY street",
    ],
)
def test_what_is_not_one_number_is_refused_and_free(text):
    with clinic() as curator, curator.watch(threshold=3, epsilon=1) as run:
        with pytest.raises(QuestionRefusal, match="Q48"):
            run.ask(text)
        assert run.asked == 0


def test_statements_of_several_questions_are_refused():
    with (
        clinic() as curator,
        curator.watch(threshold=3, epsilon=1) as run,
        pytest.raises(InvalidParameter, match="one question at a time"),
    ):
        run.ask("SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT SUM(age) FROM visits) AS b")


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": None},
        {"epsilon": 0},
        {"epsilon": 1, "at_most": 0},
        {"epsilon": 1, "at_most": 10**6},
        {"epsilon": 1, "threshold": "nan"},
        {"epsilon": 1, "delta": 2},
        {"epsilon": 1, "delta": "-1/2"},
        {"epsilon": "1e-300"},
    ],
)
def test_odd_settings_are_refused_before_anything_is_charged(settings):
    with clinic() as curator:
        with pytest.raises(Refusal):
            curator.watch(**settings)
        assert curator.transcript() == ()


def test_a_run_that_cannot_be_paid_is_refused_and_recorded():
    with clinic(epsilon=1) as curator:
        with pytest.raises(BudgetRefusal):
            curator.watch(threshold=3, epsilon=2)
        assert [entry.code for entry in curator.transcript()] == ["B1"]


def test_nobody_is_asked_how_far_one_person_moves_it():
    with (
        clinic() as curator,
        curator.watch(threshold=3, epsilon=1) as run,
        pytest.raises(TypeError),
    ):
        run.ask(ALL, sensitivity=1)


def watched(text: str, schema: Schema = SCHEMA, *, monotonic: bool = False):
    return price_watched(
        parse(text, schema),
        schema=schema,
        multiplicity=find_declared_multiplicity,
        monotonic=monotonic,
    )


CHANGE = Schema.from_text(
    'neighbours = "change-one"\n'
    + TOML.split("epsilon = 3")[1].replace('source = "visits.csv"\n', "")
)


@pytest.mark.parametrize(
    ("text", "schema", "moved"),
    [
        (ALL, SCHEMA, 2),
        ("SELECT COUNT(DISTINCT patient_id) FROM visits", SCHEMA, 1),
        (CITIES, SCHEMA, 2),
        ("SELECT SUM(age) FROM visits", SCHEMA, 220),
        ("SELECT SUM(debt) FROM visits", SCHEMA, 100),
        (ALL, CHANGE, 2),  # two rows less, or two more: never four
        ("SELECT SUM(age) FROM visits", CHANGE, 220),
        ("SELECT SUM(debt) FROM visits", CHANGE, 200),
        ("SELECT COUNT(DISTINCT patient_id) FROM visits", CHANGE, 1),
    ],
)
def test_sensitivity_follows_from_the_question(text, schema, moved):
    found = watched(text, schema)
    assert found.sensitivity * found.grid == moved


@pytest.mark.parametrize(
    ("text", "schema", "grows"),
    [
        (ALL, SCHEMA, True),
        (CITIES, SCHEMA, True),
        ("SELECT SUM(age) FROM visits", SCHEMA, True),
        ("SELECT COUNT(DISTINCT patient_id) FROM visits", SCHEMA, True),
        ("SELECT SUM(debt) FROM visits", SCHEMA, False),
        (ALL, CHANGE, False),
        ("SELECT SUM(age) FROM visits", CHANGE, False),
    ],
)
def test_monotonic_prices_are_for_what_only_grows(text, schema, grows):
    found = watched(text, schema)
    measurement = found.plan.measurements[0]
    assert is_monotonic(found.question, measurement, schema.neighbours) is grows
    if grows:
        watched(text, schema, monotonic=True)
    else:
        with pytest.raises(QuestionRefusal, match="Q49"):
            watched(text, schema, monotonic=True)


def test_rows_of_unknown_ownership_are_not_monotonic():
    class Shared:
        """A relation that this version does not know."""

    found = watched(ALL)
    odd = replace(found.question, source=Shared())
    assert not is_monotonic(odd, found.plan.measurements[0], SCHEMA.neighbours)


def test_a_monotonic_run_needs_add_remove_neighbours(home):
    with discreet.curator(
        {"visits": pd.read_csv(home / "visits.csv")}, schema=CHANGE, budget=3
    ) as curator:
        with pytest.raises(InvalidParameter, match="add/remove"):
            curator.watch(threshold=3, epsilon=1, monotonic=True)
        assert curator.transcript() == ()


# --- the law -------------------------------------------------------------------------------------


def test_the_mechanism_is_the_one_of_the_library():
    assert isinstance(Watch.of(epsilon=1).mechanism, AboveThreshold)
    assert isinstance(Watch.of(epsilon=1, at_most=2).mechanism, Sparse)
    assert isinstance(Watch.of(epsilon=1, numbers=True).mechanism, NumericSparse)
    for at_most, numbers in ((1, False), (4, False), (4, True)):
        watch = Watch.of(epsilon="3/2", at_most=at_most, numbers=numbers)
        assert watch.loss.epsilon == Fraction(3, 2)
        assert watch.mechanism.plan.renew or at_most == 1
    many = Watch.of(epsilon="3/2", at_most=60, delta="1e-6")
    assert many.loss.epsilon_at("1e-6") <= Fraction(3, 2)


def small(rows: list[tuple[int, str]]) -> discreet.Curator:
    table = pd.DataFrame(
        {
            "patient_id": [unit for unit, _ in rows],
            "city": [city for _, city in rows],
            "age": 30,
            "debt": 0,
        }
    )
    return discreet.curator({"visits": table}, schema=SCHEMA, budget=100)


BOTH = [(1, "Cork"), (1, "Cork"), (2, "Cork"), (3, "Delft"), (3, "Faro")]


@pytest.mark.parametrize("without", [1, 3])
def test_an_exact_audit_of_neighbouring_tables_through_the_curator(without, monkeypatch):
    """The law of every verdict, on two tables that differ by one patient: within epsilon."""
    watch = Watch.of(threshold=1, epsilon="3/2")
    laws = []
    for rows in (BOTH, [row for row in BOTH if row[0] != without]):
        seen: list[int] = []

        def first_above(self, plan, queries, seen=seen):
            seen += queries.tolist()

        with small(rows) as curator, monkeypatch.context() as patch:
            patch.setattr(NoisyThreshold, "first_above", first_above)
            run = curator.watch(threshold=1, epsilon="3/2")
            run.ask(CITIES)
            run.ask("SELECT COUNT(DISTINCT patient_id) FROM visits WHERE city = 'Cork'")
        assert len(seen) == 4
        laws.append(watch.mechanism.law(seen))
    least, most = both_ways(max_divergence, *laws)
    assert most <= watch.epsilon
    assert least > watch.epsilon / 12  # it looks at something


N = 4000
ALPHA = 1e-9


def test_the_verdicts_have_the_law_of_the_mechanism():
    """Through the airlock itself, with a truth of ours: P(above) of two numbers in order."""
    watch = Watch.of(threshold=10, epsilon=2)
    two = watched(CITIES)
    truth = Truth(Opened(two.groups, (np.array([[9], [11], [10]]),)))
    draw = partial(NoisyThreshold.draw, watch.mechanism.plan)
    found = [
        judge(watch, two, truth, threshold=Fraction(10), secret=draw()).below for _ in range(N)
    ]
    law = watch.mechanism.law(two.scale([9, 11, 10], Fraction(10)))
    for below in range(4):
        outcome = (False,) * below + (True,) * (below < 3)
        expected = float(law.mass(outcome).mid())
        seen = found.count(below) / N if below < 3 else found.count(3) / N
        bound = np.sqrt(np.log(2 / ALPHA) / (2 * N))
        assert abs(seen - expected) < bound
    wrong = watched(ALL, CHANGE).scale([9], Fraction(10)) == two.scale([9], Fraction(10))
    assert wrong  # the same sensitivity, by either way of thinking of it


def test_the_margin_is_that_of_the_texts():
    """DR Theorems 3.24 and 3.26 through the curator: 8 (ln k + ln(2 c / beta)) c / epsilon."""
    with clinic() as curator:
        one = curator.explain_watch(
            "SELECT COUNT(DISTINCT patient_id) FROM visits", threshold=500, epsilon="0.1"
        )
        assert one.theorem_margin(queries=100) == pytest.approx(
            8 / 0.1 * (np.log(100) + np.log(2 / 0.05)), abs=0.1
        )
        assert one.margin(queries=100) < 250
        assert one.loss.epsilon == Fraction(1, 10)
        five = curator.explain_watch(
            "SELECT COUNT(DISTINCT patient_id) FROM visits", threshold=500, epsilon=1, at_most=5
        )
        exact = 8 * 5 * (np.log(1000) + np.log(2 * 5 / 0.05))
        assert five.theorem_margin(queries=1000) == pytest.approx(exact, abs=1)
        assert curator.transcript() == ()


# --- crashes -------------------------------------------------------------------------------------


STEPS = (
    (Account, "charge"),
    (sealed, "_write_once"),
    (sealed.Sealed, "keep"),
    (sealed.Sealed, "erase"),
    (runs, "compare"),
    (runs, "judge_gathered"),
    (RunBook, "record"),
    (RunBook, "close"),
)


QUESTIONS = (NONE, ALL, NONE, CITIES)


def play(home: Path, shown: list[tuple[int, object]]) -> None:
    with discreet.open(home) as curator:
        run = curator.watch(threshold=200, epsilon=2, at_most=3, numbers=True)
        for number in range(run.asked - run._is_cut_short(), len(QUESTIONS)):
            if run.ended:
                break
            shown.append((number, run.ask(QUESTIONS[number], number=number)))
        run.close()


@pytest.mark.parametrize(
    ("start", "every"), [(3, 7), *(pytest.param(k, 4, marks=pytest.mark.soak) for k in range(4))]
)
def test_killed_at_every_step_it_goes_on_unpaid_and_tells_nothing_twice(
    home, monkeypatch, start, every
):
    """Released <= charged <= cap: one charge, each verdict told as it was first recorded."""
    with monkeypatch.context() as patch:
        steps = kill_at_step(patch, STEPS, 0)
        whole = copy_session(home, "whole")
        play(whole, [])
    assert len(steps) > 20
    for kill_at in range(1 + start, len(steps) + 1, every):
        place = copy_session(home, f"killed-{kill_at}")
        shown: list[tuple[int, object]] = []
        with monkeypatch.context() as patch:
            kill_at_step(patch, STEPS, kill_at)
            with suppress(Killed):
                play(place, shown)
        with discreet.open(place) as curator:
            charges = [e for e in curator.transcript() if e.loss is not None]
            ended = bool(charges) and curator.run(charges[0].id).ended
        if not ended:
            play(place, shown)
        with discreet.open(place) as curator:
            charges = [entry for entry in curator.transcript() if entry.loss is not None]
            assert len(charges) == 1, kill_at
            assert curator.spent.epsilon == 2
            run = curator.run(charges[0].id)
            assert run.ended in ("halted", "closed"), kill_at
            assert sum(v.above for v in run.transcript) <= 3
            for number, verdict in shown:
                assert run.ask(QUESTIONS[number], number=number) == verdict
            assert curator.ledger.verify().ok
            assert not list(curator.ledger.secrets.glob("*.sealed"))


TOGETHER = [f"SELECT COUNT(*) FROM visits WHERE age >= {n}" for n in (105, 0, 99, 100, 1, 103)]


def play_together(home: Path, shown: list[object]) -> None:
    with discreet.open(home) as curator:
        paid = [entry.id for entry in curator.transcript() if entry.loss is not None]
        settings = {"threshold": 400, "epsilon": 3, "at_most": 2, "numbers": True}
        run = curator.run(paid[0]) if paid else curator.watch(**settings)
        asked = TOGETHER[: run.asked] if run.ended else TOGETHER
        shown[:] = run.ask_many(asked, number=0)


@pytest.mark.parametrize(
    ("start", "every"), [(2, 5), *(pytest.param(k, 4, marks=pytest.mark.soak) for k in range(4))]
)
def test_killed_where_questions_are_read_together_it_goes_on(home, monkeypatch, start, every):
    """Each verdict that was shown is the recorded one, for one charge; none is told twice."""
    with monkeypatch.context() as patch:
        steps = kill_at_step(patch, STEPS, 0)
        play_together(copy_session(home, "whole"), [])
    gathered = steps.count("before judge_gathered")
    assert gathered == steps.count("before compare") == 2  # once more after the first "above"
    for kill_at in range(1 + start, len(steps) + 1, every):
        place, shown = copy_session(home, f"killed-{kill_at}"), []
        with monkeypatch.context() as patch:
            kill_at_step(patch, STEPS, kill_at)
            with suppress(Killed):
                play_together(place, shown)
        before = list(shown)
        play_together(place, shown)
        assert [one.above for one in shown] == [False, True, False, False, True]
        assert before in ([], shown)
        with discreet.open(place) as curator:
            (charge,) = (entry for entry in curator.transcript() if entry.loss is not None)
            run = curator.run(charge.id)
            assert (run.ended, run.transcript) == ("halted", tuple(shown))
            assert curator.spent.epsilon == 3
            assert curator.ledger.verify().ok


def test_a_secret_that_is_lost_closes_the_run(home):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=5000, epsilon=1, at_most=2)
        assert not run.ask(ALL)
        (file,) = curator.ledger.secrets.glob("*.sealed")
        file.unlink()
        with pytest.raises(Halted, match="could not go on"):
            run.ask(ALL)
        assert run.ended == "lost"
        with pytest.raises(Halted):
            curator.run(run.id).ask(ALL)
        assert curator.watch(threshold=5000, epsilon=1, at_most=2).id != run.id
        assert curator.spent.epsilon == 2


@pytest.mark.parametrize("how", ["altered", "another round", "another key"])
def test_a_secret_that_was_meddled_with_closes_the_run(home, how):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=5000, epsilon=1, at_most=2)
        assert not run.ask(ALL)
        (file,) = curator.ledger.secrets.glob("*.sealed")
        if how == "altered":
            file.write_bytes(file.read_bytes()[:-1] + b"?")
        elif how == "another round":
            other = curator.watch(threshold=5000, epsilon=1, at_most=2, name="other")
            other.ask(ALL)
            file.write_bytes((file.parent / f"{other.id}-0.sealed").read_bytes())
        else:
            (file.parent / "key").write_bytes(bytes(32))
        with pytest.raises(Halted):
            run.ask(ALL)
        assert run.ended == "lost"


def test_the_secret_is_sealed_renewed_and_erased(home):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=2, at_most=2)
        run.ask(NONE)
        folder = curator.ledger.secrets
        (file,) = folder.glob("*.sealed")
        assert file.name == f"{run.id}-0.sealed"
        assert oct(file.stat().st_mode)[-3:] == "600"
        first = curator.sealed.load(run.id, 0)
        assert repr(first) == "NoisyThreshold(withheld)"
        value = first.reveal()
        assert str(value).encode() not in file.read_bytes()
        for name in ("ledger.sqlite", "ledger.sqlite-wal"):
            held = (home / name).read_bytes() if (home / name).exists() else b""
            assert file.read_bytes() not in held
        assert run.ask(ALL)
        assert not file.exists()
        run.ask(NONE)
        assert [f.name for f in folder.glob("*.sealed")] == [f"{run.id}-1.sealed"]
        assert curator.sealed.load(run.id, 1) is not None
        run.close()
        assert list(folder.glob("*.sealed")) == []


def test_thresholds_of_different_rounds_are_different(home):
    """A mutant that keeps the noise after "above" dies here: 2**-64 or so by chance."""
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon="1/1000", at_most=12)
        seen = []
        while len(seen) < 12 and not run.ended:
            run.ask(ALL, threshold=-(10**9))
            if run.ended:
                break
            run.ask(ALL, threshold=10**9)
            seen.append(curator.sealed.load(run.id, run._above).reveal())
    assert len(set(seen)) == len(seen) >= 10


def test_a_failing_question_closes_the_run_and_says_nothing(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=1, at_most=2)
        run.ask(NONE)

        def broken(_compiled):
            raise RuntimeError("patient 17")

        monkeypatch.setattr(curator.engine, "run", broken)
        with pytest.raises(DataRefusal) as caught:
            run.ask(ALL)
        assert "17" not in str(caught.value)
        assert caught.value.__context__ is None or "17" not in str(caught.value.__context__)
        assert run.ended == "lost"


def test_a_full_disk_tells_nothing_and_the_run_goes_on(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=1, at_most=2)
        with monkeypatch.context() as patch:

            def full(*_):
                raise OSError(errno.ENOSPC, "no space")

            patch.setattr(sealed, "_write_once", full)
            with pytest.raises(LedgerRefusal, match="secret of a run"):
                run.ask(ALL)
        assert run.asked == 0
        assert run.ask(ALL)
        assert curator.spent.epsilon == 1


def test_a_ledger_that_cannot_write_tells_nothing(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=1, at_most=2)
        run.ask(NONE)
        with monkeypatch.context() as patch:

            def full(_self):
                raise sqlite3.OperationalError("database or disk is full")

            patch.setattr(Store, "_commit", full)
            with pytest.raises(LedgerRefusal):
                run.ask(ALL)
    with discreet.open(home) as curator:
        again = curator.watch(threshold=500, epsilon=1, at_most=2)
        assert (again.id, again.asked) == (run.id, 1)
        assert again.ask(ALL)


def test_two_processes_do_not_both_go_on_from_one_place(home):
    with discreet.open(home) as one, discreet.open(home) as other:
        mine = one.watch(threshold=500, epsilon=1, at_most=2)
        yours = other.watch(threshold=500, epsilon=1, at_most=2)
        assert mine.id == yours.id
        mine.ask(NONE)
        with pytest.raises(InvalidParameter, match="another process"):
            yours.ask(NONE)
        assert yours.asked == 1
        yours.ask(NONE)
        assert one.spent.epsilon == 1


DYING = """
import os, signal, sys
import discreet
from discreet.curate import runs
with discreet.open(sys.argv[1]) as curator:
    run = curator.watch(threshold=5000, epsilon=1, at_most=2)
    run.ask(sys.argv[2])
    runs.compare = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    run.ask(sys.argv[2])
"""


def test_kill_9_while_the_data_is_read(home):
    done = subprocess.run([sys.executable, "-c", DYING, str(home), NONE], check=False)
    assert done.returncode == -signal.SIGKILL
    with discreet.open(home) as curator:
        run = curator.watch(threshold=5000, epsilon=1, at_most=2)
        assert run.asked == 1
        assert not run.ask(ALL)
        assert curator.spent.epsilon == 1
        assert curator.ledger.verify().ok


# --- the ledger ----------------------------------------------------------------------------------


def test_what_was_told_is_told_again_as_it_was():
    with clinic() as curator:
        run = curator.watch(threshold=6000, epsilon="1/2", at_most=50)
        first = [run.ask(ALL) for _ in range(20)]
        assert [run.ask(ALL, number=n) for n in range(20)] == first
        assert run.asked == 20
        with pytest.raises(Refusal, match="was another one"):
            run.ask(NONE, number=3)
        with pytest.raises(InvalidParameter, match="numbered in order"):
            run.ask(ALL, number=40)


def test_many_that_ended_in_a_halt_are_told_again_as_they_were(home):
    """Whoever did not see the answer with the last "above" in it has paid for it."""
    many = [NONE, NONE, ALL, NONE, ALL, ALL]
    with discreet.open(home) as curator:
        run = curator.watch(threshold=400, epsilon=3, at_most=2)
        told = run.ask_many(many, number=0)
        assert [one.above for one in told] == [False, False, True, False, True]
        assert run.ended == "halted"
        assert run.ask_many(many, number=0) == told
    with discreet.open(home) as curator:
        again = curator.run(run.id)
        assert again.ask_many(many, number=0) == told
        assert again.ask_many(many[2:], number=2) == told[2:]
        assert curator.spent.epsilon == 3
        for first in (None, 5):
            with pytest.raises(Halted):
                again.ask_many([ALL], number=first)
        with pytest.raises(Refusal, match="was another one"):
            again.ask_many([ALL, *many[1:]], number=0)


def test_who_may_no_longer_ask_cannot_go_on():
    with clinic() as curator:
        curator.account.add_analyst("ana")
        run = curator.watch(threshold=6000, epsilon=1, analyst="ana")
        assert curator.balance("ana").spent.epsilon == 1
        with pytest.raises(LookupError):
            curator.run(run.id, analyst="bob")
        curator.account.disable_analyst("ana")
        with pytest.raises(Refusal, match="A2"):
            run.ask(ALL)
        assert run.asked == 0


def test_two_analysts_have_two_runs_though_answers_are_shared():
    with clinic() as curator:
        curator.account.add_analyst("ana")
        curator.account.add_analyst("bob")
        one = curator.watch(threshold=6000, epsilon=1, analyst="ana")
        other = curator.watch(threshold=6000, epsilon=1, analyst="bob")
        assert one.id != other.id
        assert curator.spent.epsilon == 2


def test_an_altered_step_is_found(home):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=1, at_most=2)
        run.ask(NONE)
    with closing(sqlite3.connect(home / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE answers SET body = '[]'")
    assert not session.read(home).examine().ok
    with discreet.open(home) as curator, pytest.raises(LedgerRefusal):
        curator.run(run.id)


def test_a_backup_holds_no_secret_and_closes_open_runs(home, tmp_path):
    with discreet.open(home) as curator:
        run = curator.watch(threshold=500, epsilon=1, at_most=2)
        run.ask(NONE)
        curator.ledger.backup(tmp_path / "backup.sqlite")
        curator.ledger.export(tmp_path / "export.jsonl", answers=True)
    place = tmp_path / "restored"
    place.mkdir()
    with Ledger.restore(
        place / "ledger.sqlite", tmp_path / "backup.sqlite", reason="a test"
    ) as ledger:
        assert ledger.verify().ok
        assert ledger.records()[-1].kind == "burn"


def test_interleaved_runs_and_questions_each_keep_their_own():
    """Two runs, asked in turn, with questions between: losses add, secrets do not meet."""
    with clinic() as curator:
        high = curator.watch(threshold=9000, epsilon=2, at_most=1)
        low = curator.watch(threshold=1000, epsilon=3, at_most=2)
        for _ in range(5):
            assert not high.ask(ALL)
            assert not low.ask(NONE)
        curator.ask(ALL, epsilon=1)
        assert low.ask(ALL)
        assert not high.ask(ALL)
        assert curator.spent.epsilon == 6
        assert isinstance(high, Run)
        assert high.remaining == 1
        assert curator.ledger.verify().ok


def test_compare_says_nothing_of_why():
    with pytest.raises(DataRefusal):
        compare(None, None)


# --- the command line ----------------------------------------------------------------------------


def test_the_command_line_goes_on_with_its_run(home, capsys):
    command = runner(capsys)
    words = ("--threshold", 500, "--epsilon", 2, "--at-most", 2, "--session", home)
    code, out, _ = command("watch", ALL, "--explain", *words)
    assert code == 0
    assert "for the whole run" in out
    code, out, _ = command("watch", NONE, *words)
    assert (code, out.splitlines()[0]) == (0, f"below 500  ({NONE})")
    code, out, _ = command("watch", ALL, *words, "--json", "--close")
    told = json.loads(out)
    assert (told["asked"], told["ended"], told["verdicts"][0]["above"]) == (2, "closed", True)
    code, _, err = command("watch", "SELECT AVG(age) FROM visits", *words)
    assert code == 2
    assert "Q48" in err


def test_the_command_line_on_a_timer_shows_what_halted_it_and_pays_once(home, capsys):
    command = runner(capsys)
    words = ("--threshold", 400, "--epsilon", 1, "--new", "--session", home)
    code, out, _ = command("watch", NONE, ALL, CITIES, *words)  # ALL is the last it may tell
    assert code == 0
    assert [line.split("  (")[0] for line in out.splitlines()[:2]] == ["below 400", "above 400"]
    assert "2 asked, over (halted)" in out
    code, out, _ = command("watch", NONE, ALL, *words)
    assert (code, len(out.splitlines())) == (0, 1)
    code, _, err = command("watch", CITIES, *words)  # not asked before, and nothing is left of it
    assert code == 2
    assert "H1" in err
    with discreet.open(home) as curator:
        assert curator.spent.epsilon == 1


def test_the_command_line_asks_for_distances_and_gathers_many(home, capsys, monkeypatch):
    """As any other question; and many of a run are read in one statement there, too."""
    command = runner(capsys)
    text = "SELECT DISTANCE_TO_MAXIMUM(age, 90) AS old, COUNT(*) AS n FROM visits"
    code, out, _ = command("ask", text, "--epsilon", 1, "--session", home)
    assert code == 0
    assert "old" in out
    seen, run = [], DuckDBEngine.run

    def count(self, compiled):
        seen.append(compiled)
        return run(self, compiled)

    monkeypatch.setattr(DuckDBEngine, "run", count)
    many = [f"SELECT COUNT(*) FROM visits WHERE age < {n}" for n in range(1, 10)]
    words = ("--threshold", 10**6, "--epsilon", 1, "--name", "many", "--session", home)
    code, out, _ = command("watch", *many, *words)
    assert code == 0
    assert len(seen) == 1
    assert "9 asked" in out
