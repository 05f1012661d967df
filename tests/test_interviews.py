"""Interviews through the curator: one charge, and numbers while their joint sensitivity lasts."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cli_cases import runner
from run_cases import Killed, copy_session, kill_at_step
from statistical.fit import fits
from test_curate import clinic

import discreet
from discreet.curate import interviews, session
from discreet.curate.interviews import InterviewRun
from discreet.engine.truth import Opened, Truth
from discreet.errors import (
    AccessRefusal,
    BudgetRefusal,
    DataRefusal,
    Halted,
    InvalidParameter,
    LedgerRefusal,
    QuestionRefusal,
    Refusal,
)
from discreet.ledger.account import Account
from discreet.ledger.runs import RunBook
from discreet.price import interview as pricing
from discreet.price.interview import Interview, add_sensitivities, price_posed
from discreet.question.schema import Schema
from discreet.release.release import release_numbers

CORK = "SELECT COUNT(*) FROM visits WHERE city = 'Cork'"
DELFT = "SELECT COUNT(*) FROM visits AS v WHERE v.city = 'Delft'"
YOUNG = "SELECT COUNT(*) FROM visits WHERE age < 30"
CITIES = "SELECT city, COUNT(*) FROM visits GROUP BY city"
PEOPLE = "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE city = 'Cork'"

TOML = """
[budget]
epsilon = 3
[tables.visits]
unit = "patient_id"
max_rows_per_unit = 2
source = "visits.csv"
[tables.visits.columns]
patient_id = "integer"
city = { type = "text", values = ["Cork", "Delft"], nullable = false }
age = { type = "integer", bounds = [0, 3] }
"""


def write(place, cities=("Cork", "Delft")):
    patient = np.repeat(np.arange(60), 2)
    rows = {"patient_id": patient, "city": np.array(cities)[patient % 2], "age": patient % 4}
    pd.DataFrame(rows).to_csv(place / "visits.csv", index=False)


@pytest.fixture
def home(tmp_path):
    write(tmp_path)
    session.init(tmp_path, TOML)
    return tmp_path


# --- what it tells ---------------------------------------------------------------------------


def test_numbers_are_told_while_one_unit_moves_little_of_them():
    with clinic() as curator:
        with curator.interview(sensitivity=6, epsilon=3) as run:
            assert abs(run.ask(CORK).value - 2000) < 60
            assert abs(run.ask(DELFT).value - 2000) < 60
            assert run.joint == 3  # nobody's row is in both cities
            told = run.ask(CITIES)
            assert told.groups == (("Cork",), ("Delft",), ("Faro",))
            assert run.remaining == 0
            assert not run.admits(CORK)
            with pytest.raises(Halted, match="joint sensitivity to 9 of 6"):
                run.ask(CORK)
            assert run.asked == 3
        assert run.ended == "closed"
        assert curator.spent.epsilon == 3
        assert [r.question for r in curator.run(run.id).transcript] == [CORK, DELFT, CITIES]
        assert curator.ledger.verify().ok


def test_what_it_would_cost_and_admit_is_said_before():
    with clinic() as curator:
        two = curator.explain_interview(CORK, DELFT, sensitivity=3, epsilon="0.5")
        assert (two.joint, two.admitted, two.loss.epsilon) == (3, True, Fraction(1, 2))
        assert two.margin() == 18  # that of Laplace noise of scale 6
        assert "one unit moves all by at most 3 of 3" in str(two)
        assert not curator.explain_interview(CORK, YOUNG, sensitivity=3, epsilon=1).admitted
        assert curator.transcript() == ()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"sensitivity": 0, "epsilon": 1}, InvalidParameter),
        ({"sensitivity": 3, "epsilon": -1}, InvalidParameter),
        ({"sensitivity": 3, "epsilon": None}, InvalidParameter),
        ({"sensitivity": "x", "epsilon": 1}, InvalidParameter),
        ({"sensitivity": 10**60, "epsilon": 1}, InvalidParameter),
        ({"sensitivity": 3, "epsilon": 1, "name": "n" * 65}, InvalidParameter),
        ({"sensitivity": 3, "epsilon": 10**4}, BudgetRefusal),
    ],
)
def test_odd_settings_are_refused_unpaid(settings, kind):
    with clinic() as curator:
        with pytest.raises(kind):
            curator.interview(**settings)
        assert not curator.spent.epsilon


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(age) FROM visits",
        "SELECT COUNT(*), SUM(age) FROM visits",
        "SELECT street, COUNT(*) FROM visits GROUP BY street",
        "SELECT COUNT(*) + 1 FROM visits",
    ],
)
def test_what_is_not_one_number_is_refused_and_changes_nothing(text):
    with clinic() as curator, curator.interview(sensitivity=6, epsilon=1) as run:
        with pytest.raises(QuestionRefusal):
            run.ask(text)
        assert (run.asked, run.joint) == (0, 0)


# --- joint sensitivity -----------------------------------------------------------------------

PARTS = {
    "city = 'Cork'": lambda city, age: city == "Cork",
    "city = 'Delft'": lambda city, age: city == "Delft",
    "age < 1": lambda city, age: age < 1,
    "age >= 2": lambda city, age: age >= 2,
    "city = 'Cork' AND age = 3": lambda city, age: city == "Cork" and age == 3,
    "age = 1 OR city = 'Delft'": lambda city, age: age == 1 or city == "Delft",
}
KINDS = {
    "COUNT(*)": len,
    "SUM(age)": sum,
    "COUNT(DISTINCT patient_id)": lambda ages: int(bool(ages)),
}
UNITS = [
    rows
    for size in (1, 2)
    for rows in itertools.combinations_with_replacement(
        list(itertools.product(("Cork", "Delft"), range(4))), size
    )
]
"""Every unit there can be: at most two rows, each of a city and an age."""


def questions():
    for kind, condition in itertools.product(KINDS, PARTS):
        yield f"SELECT {kind} FROM visits WHERE {condition}", KINDS[kind], PARTS[condition]


def brute_force(asked) -> int:
    """The most that any unit there can be adds to all of the numbers together."""
    return max(
        sum(add([age for city, age in unit if met(city, age)]) for _, add, met in asked)
        for unit in UNITS
    )


SMALL = Schema.from_text(TOML.split("epsilon = 3")[1].replace('source = "visits.csv"\n', ""))


def mixes():
    listed = list(questions())
    picked = np.random.default_rng(7).integers(0, len(listed), size=(25, 5))
    return [[listed[i] for i in row[: 2 + n % 4]] for n, row in enumerate(picked)]


def check_bounds(add=add_sensitivities) -> int:
    exact = 0
    frame = pd.DataFrame({"patient_id": [1], "city": ["Cork"], "age": [1]})
    with discreet.curator({"visits": frame}, schema=SMALL, budget=1) as curator:
        known = curator.engine.catalogue.multiplicity
        for asked in mixes():
            posed = [
                price_posed(curator.parse(text), schema=SMALL, multiplicity=known)
                for text, *_ in asked
            ]
            found = add(posed, known)
            assert found >= brute_force(asked), [text for text, *_ in asked]
            exact += found == brute_force(asked)
    return exact


def test_no_unit_moves_everything_asked_by_more_and_often_one_moves_it_so_far():
    """Brute force over every unit that the declaration allows."""
    assert check_bounds() >= 8


def take_the_largest(posed, _known):
    """A mutant: as if no two questions could be about the same person."""
    return max(one.moved for one in posed)


def test_a_joint_sensitivity_that_does_not_add_up_is_found():
    with pytest.raises(AssertionError):
        check_bounds(take_the_largest)


def test_many_conditions_are_added_where_they_are_not_told_apart():
    ages = [f"SELECT COUNT(*) FROM visits WHERE age = {n}" for n in range(70)]
    with clinic() as curator:
        few = curator.explain_interview(*ages[:60], sensitivity=3, epsilon=1)
        many = curator.explain_interview(*ages, sensitivity=33, epsilon=1)
    assert few.joint == 3
    assert many.joint == 33  # ten more, each by three rows


def test_limits_of_its_own_and_other_tables_are_added_to_everything():
    own = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 1) COUNT(*) FROM visits"
    with clinic() as curator:
        assert curator.explain_interview(CORK, own, sensitivity=9, epsilon=1).joint == 4


def test_under_change_one_everything_is_added():
    frame = pd.DataFrame({"patient_id": [1, 2], "city": ["Cork", "Delft"]})
    schema = """
    neighbours = "change-one"
    [tables.visits]
    unit = "patient_id"
    max_rows_per_unit = 1
    columns.patient_id = "integer"
    columns.city = { type = "text", values = ["Cork", "Delft"], nullable = false }
    """
    with discreet.curator({"visits": frame}, schema=schema, budget=2) as curator:
        both = curator.explain_interview(CORK, DELFT, sensitivity=9, epsilon=1)
        assert both.joint == 2
        assert curator.explain_interview(CITIES, sensitivity=9, epsilon=1).joint == 2


def test_another_version_of_the_data_is_added(home):
    """Who is in Cork today may be in Delft tomorrow, and is counted by both."""
    with discreet.open(home) as curator:
        run = curator.interview(sensitivity=4, epsilon=2)
        run.ask(CORK)
        assert run.admits(DELFT)
        run.ask(DELFT)
        assert run.joint == 2
    write(home, ("Delft", "Cork"))
    with discreet.open(home) as curator:
        run = curator.interview(sensitivity=4, epsilon=2)
        assert run.asked == 2
        run.ask(DELFT)
        assert run.joint == 4
        assert run.admits(CORK)
        assert not run.admits(YOUNG)


def test_an_adaptive_analyst_is_never_told_more_than_one_unit_may_move():
    """The questions depend on the answers; of every transcript the joint sensitivity is in T."""
    pool = list(questions())
    with clinic() as curator:
        for start in range(4):
            run = curator.interview(sensitivity=14, epsilon="0.5", name=str(start))
            place, asked = start, []
            for _ in range(12):
                text, add, met = pool[place % len(pool)]
                with suppress(Halted):
                    told = run.ask(text)
                    asked.append((text, add, met))
                    place += int(told.value) % 5
                place += 1
            assert run.joint <= 14
            assert sum(Fraction(p["moved"]) for p in run._told) >= run.joint
        assert curator.spent.epsilon == 2


# --- its noise -------------------------------------------------------------------------------


def test_the_noise_is_that_of_the_theorem_for_every_question():
    interview = Interview.of(sensitivity=12, epsilon=2)
    with clinic() as curator:
        counted = interviews.prepare(curator, CORK)
        summed = interviews.prepare(curator, "SELECT SUM(cost) FROM visits")
    for posed in (counted, summed):
        assert posed.noise(interview).scale * posed.grid == interview.scale == 6
    many = Truth(Opened((), (np.full((200_000, 1), 500, dtype=object),)))
    drawn = np.array(release_numbers(interview, counted, many)) - 500

    steps = np.arange(-200, 201)

    def law(scale):
        q = np.exp(-1 / scale)
        return np.where(steps < 0, q ** -steps.astype(float), 1 + q - q ** (steps + 1.0)) / (1 + q)

    assert fits(drawn, law(6.0), -200)
    assert not fits(drawn, law(5.4), -200)
    assert not fits(drawn, law(6.6), -200)


# --- crashes, races, who may ask -------------------------------------------------------------


STEPS = (
    (Account, "charge"),
    (interviews, "release_numbers"),
    (RunBook, "record"),
    (RunBook, "close"),
)


ASKED = (CORK, DELFT, YOUNG)


def play(place, shown) -> None:
    with discreet.open(place) as curator:
        run = curator.interview(sensitivity=6, epsilon=2)
        for number in range(run.asked, len(ASKED)):
            shown.append((number, run.ask(ASKED[number], number=number)))
        run.close()


@pytest.mark.parametrize("start", [3, *(pytest.param(k, marks=pytest.mark.soak) for k in (1, 2))])
def test_killed_at_every_step_it_goes_on_unpaid_and_no_number_is_drawn_twice(
    home, monkeypatch, start
):
    with monkeypatch.context() as patch:
        steps = kill_at_step(patch, STEPS, 0)
        play(copy_session(home, "whole"), [])
    assert len(steps) == 2 * (1 + 3 + 3 + 1)
    for kill_at in range(start, len(steps) + 1, 3):
        place, shown = copy_session(home, str(kill_at)), []
        with monkeypatch.context() as patch:
            kill_at_step(patch, STEPS, kill_at)
            with suppress(Killed):
                play(place, shown)
        with discreet.open(place) as curator:
            charges = [e.id for e in curator.transcript() if e.loss is not None]
            over = bool(charges) and curator.run(charges[0]).ended
        if not over:
            play(place, shown)
        with discreet.open(place) as curator:
            (charge,) = [e for e in curator.transcript() if e.loss is not None]
            assert curator.spent.epsilon == 2
            run = curator.run(charge.id)
            assert run.joint <= 6
            for number, reply in shown:
                assert run.ask(ASKED[number], number=number) == reply
            assert curator.ledger.verify().ok


def test_a_ledger_that_cannot_write_tells_nothing(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.interview(sensitivity=2, epsilon=1)
        with monkeypatch.context() as patch:

            def full(*_args, **_more):
                raise LedgerRefusal("L5", "full", why="full", fix="full")

            patch.setattr(RunBook, "record", full)
            with pytest.raises(LedgerRefusal):
                run.ask(CORK)
        assert (run.asked, run.joint) == (0, 0)
        run.ask(CORK)
        assert not run.admits(CORK)


def test_two_processes_do_not_both_go_on_from_one_place(home):
    with discreet.open(home) as one, discreet.open(home) as other:
        first = one.interview(sensitivity=2, epsilon=1)
        second = other.interview(sensitivity=2, epsilon=1)
        assert first.id == second.id
        first.ask(CORK)
        with pytest.raises(InvalidParameter, match="another process"):
            second.ask(DELFT)
        with pytest.raises(Halted):
            second.ask(CORK)  # it knows now what was told
        assert second.ask(CORK, number=0) == first.transcript[0]
        with pytest.raises(AccessRefusal, match="another one"):
            second.ask(DELFT, number=0)


def test_a_failing_question_closes_it_and_says_nothing(home, monkeypatch):
    with discreet.open(home) as curator:
        run = curator.interview(sensitivity=2, epsilon=1)

        def broken(*_args):
            raise ValueError("row 17")

        with monkeypatch.context() as patch:
            patch.setattr(curator.engine, "run", broken)
            with pytest.raises(DataRefusal) as raised:
                run.ask(CORK)
        assert "17" not in str(raised.value)
        assert run.ended == "lost"
        with pytest.raises(Refusal):
            run.ask(CORK)


def test_it_is_its_analysts_own():
    with clinic() as curator:
        curator.account.add_analyst("ann")
        run = curator.interview(sensitivity=6, epsilon=1, analyst="ann")
        assert isinstance(curator.run(run.id, analyst="ann"), InterviewRun)
        with pytest.raises(LookupError):
            curator.run(run.id, analyst="bob")


def test_runs_of_both_kinds_and_questions_are_interleaved():
    with clinic() as curator:
        talk = curator.interview(sensitivity=6, epsilon=2)
        watch = curator.watch(threshold=500, epsilon=1, at_most=2)
        talk.ask(CORK)
        assert watch.ask(CORK)
        curator.ask("SELECT SUM(age) FROM visits", epsilon="1/2")
        talk.ask(DELFT)
        assert not watch.ask("SELECT COUNT(*) FROM visits WHERE age > 109")
        assert curator.spent.epsilon == Fraction(7, 2)
        assert curator.run(talk.id).asked == curator.run(watch.id).asked == 2


def forgotten(patch):
    """What was asked before is not added."""
    patch.setattr(interviews, "add_sensitivities", lambda posed, _known: posed[0].moved)


def half_the_noise(patch):
    """Noise as if half of everything were hidden."""
    real = pricing.Interview.scale.fget
    patch.setattr(pricing.Interview, "scale", property(lambda self: real(self) / 2))


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (forgotten, test_numbers_are_told_while_one_unit_moves_little_of_them),
        (half_the_noise, test_the_noise_is_that_of_the_theorem_for_every_question),
    ],
)
def test_a_mutant_is_found(mutant, check, monkeypatch):
    with monkeypatch.context() as patch:
        mutant(patch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            check()


def test_the_command_line(home, capsys):
    command = runner(capsys)
    words = ("--sensitivity", 4, "--epsilon", 2, "--session", home)
    code, out, _ = command("interview", CORK, DELFT, "--explain", *words)
    assert code == 0
    assert "by at most 2 of 4" in out
    code, out, _ = command("interview", CORK, DELFT, *words)
    assert code == 0
    assert out.splitlines()[-1].startswith("Interview")
    code, out, _ = command("interview", YOUNG, *words, "--json", "--close")
    told = json.loads(out)
    assert (told["asked"], told["joint"], told["ended"]) == (3, 4.0, "closed")
    code, _, err = command("interview", CORK, "--sensitivity", 4, "--session", home)
    assert code == 2
    assert "no epsilon" in err
    checks = home / "checks.toml"
    checks.write_text('[old]\ntable = "visits"\nproperty = "maximum"\ncolumn = "age"\nbound = 2\n')
    words = ("--epsilon", "1/2", "--session", home)
    code, out, _ = command("quality", checks, "--explain", *words)
    assert code == 0
    assert "margin" in out
    code, out, _ = command("quality", checks, *words)
    assert code == 0
    assert "maximum of age in visits" in out
    code, _, err = command("quality", home / "nothing.toml", *words)
    assert code == 2
    assert "P4" in err
    own = "SELECT MEDIAN(a) FROM (SELECT patient_id, MAX(age) AS a FROM visits GROUP BY patient_id)"
    code, out, _ = command("median", own, "--delta", "1e-9", "--explain", *words)
    assert code == 0
    assert "smooth sensitivity" in out
    code, out, _ = command("choose", CITIES, "--explain", *words)
    assert code == 0
    assert "below the best" in out
    code, out, _ = command("watch", CORK, "--threshold", 500, "--new", *words)
    assert (code, out.splitlines()[0]) == (0, f"below 500  ({CORK})")
    code, out, _ = command("watch", CORK, "--threshold", 500, "--new", *words)
    assert (code, len(out.splitlines())) == (0, 1)  # nothing new was asked
