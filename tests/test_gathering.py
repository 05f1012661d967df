"""Questions of a run that are read together: the same numbers, the same law, one statement."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.curate import gathered as reading
from discreet.curate import runs
from discreet.curate.gathered import Charged, choose_gathered, compute_gathered
from discreet.curate.runs import Run
from discreet.curate.steps import Paid
from discreet.engine.duckdb import DuckDBEngine
from discreet.errors import DataRefusal, Halted
from discreet.mechanisms.sparse.run import NoisyThreshold
from discreet.price import gathering
from discreet.price.gathering import FEWEST, Gathered, gather, gather_with_first
from discreet.price.watch import Watch
from discreet.question.schema import Schema
from discreet.release.record import answer_from_bytes
from discreet.release.release import judge_gathered
from discreet.server import comparing
from discreet.server.gathered import read_gathered, write_gathered
from discreet.server.worker import write_paid

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "patient"
max_rows_per_unit = 3
[tables.visits.columns]
patient = "integer"
ward = { type = "text", values = ["A", "B", "it's"] }
age = { type = "integer", bounds = [0, 90] }
day = { type = "date", bounds = ["2024-01-01", "2024-03-31"], nullable = false }
late = "boolean"
cost = { type = "integer", bounds = [-20, 50], nullable = false }
weight = { type = "decimal", bounds = [0, 200] }

[tables.people]
unit = "patient"
max_rows_per_unit = 1
[tables.people.columns]
patient = "integer"
age = { type = "integer", bounds = [0, 90] }
""")

ROWS = 900


def make_tables() -> dict[str, pd.DataFrame]:
    """Three visits of each of 300 patients; of every nullable column some are missing."""
    draw = np.random.default_rng(5)
    ages = draw.integers(0, 91, ROWS).astype(object)
    ages[draw.random(ROWS) < 0.1] = None
    wards = draw.choice(np.array(["A", "B", "it's", None], dtype=object), ROWS)
    late = draw.choice(np.array([True, False, None], dtype=object), ROWS)
    visits = pd.DataFrame(
        {
            "patient": np.arange(ROWS) // 3,
            "ward": wards,
            "age": pd.array(list(ages), dtype="Int64"),
            "day": [date(2024, 1, 1) + timedelta(int(n)) for n in draw.integers(0, 91, ROWS)],
            "late": pd.array(list(late), dtype="boolean"),
            "cost": draw.integers(-20, 51, ROWS),
            "weight": draw.random(ROWS) * 200,
        }
    )
    people = pd.DataFrame({"patient": np.arange(300), "age": visits["age"][:300]})
    return {"visits": visits, "people": people}


@pytest.fixture(scope="module")
def clinic():
    with discreet.curator(make_tables(), schema=SCHEMA, budget=10**6) as curator:
        yield curator


def watch_of(clinic: discreet.Curator, texts: list[str]) -> list[runs.Watched]:
    watch = Watch.of(threshold=1, epsilon=1)
    return [runs.prepare(clinic, text, watch) for text in texts]


def gather_all(clinic: discreet.Curator, texts: list[str]) -> list[Gathered | int]:
    return list(gather(watch_of(clinic, texts), clinic.engine.catalogue.multiplicity))


def read(clinic: discreet.Curator, found: Gathered) -> list[int]:
    truth = clinic.engine.run(clinic.engine.compile(found.plan))
    (measured,) = truth.open_for_release().measured
    return found.add_up(measured)


def read_alone(clinic: discreet.Curator, watched: runs.Watched) -> int:
    truth = clinic.engine.run(clinic.engine.compile(watched.plan))
    (measured,) = truth.open_for_release().measured
    return int(measured[0, 0])


SIMPLE = [
    "age = 40",
    "age <> 40",
    "age < 30",
    "age >= 30.5",
    "30 <= age",
    "age BETWEEN 20 AND 29",
    "age IN (3, 5, 8)",
    "age NOT IN (3, 5, 8)",
    "age IS NULL",
    "age IS NOT NULL",
    "age = 90",
    "age = 40 AND age <> 41",
    "NOT (age > 30)",
    "age > 10 OR ward = 'B'",
    "age % 7 = 3",
    "age + 1 > cost",
]
WARDS = ["ward = 'A'", "ward <> 'it''s'", "ward LIKE '%t%'", "ward IS NULL", "ward > 'A'", "TRUE"]
DAYS = ["day >= DATE '2024-02-01'", "day = DATE '2024-01-09'", "EXTRACT(MONTH FROM day) = 3"]
LATE = ["late", "NOT late", "late IS NULL", "late IS NOT TRUE"]
COUNT = "SELECT COUNT(*) FROM visits WHERE "


@pytest.mark.parametrize(
    "texts",
    [
        [f"{COUNT}{one}" for one in SIMPLE],
        [f"{COUNT}{one}" for one in WARDS + LATE],
        [f"{COUNT}{one} AND {other}" for one, other in product(SIMPLE[:13], WARDS[:4])],
        [f"{COUNT}{one} AND {other}" for one, other in product(DAYS, LATE)],
        [f"SELECT COUNT(*) FILTER (WHERE {one}) FROM visits" for one in SIMPLE],
        [f"SELECT SUM(cost) FROM visits WHERE {one}" for one in SIMPLE[:15]],
        [f"SELECT COUNT(DISTINCT patient) FROM people WHERE {one}" for one in SIMPLE[:12]],
        [f"SELECT COUNT(*) FROM people WHERE {one}" for one in SIMPLE[:12]],
        ["SELECT COUNT(*) FROM visits"] * 5,
        [f"{COUNT}{one}" for one in (*SIMPLE[:5], *LATE, "cost = 3", "cost < 0 AND age > 7")],
    ],
)
def test_each_number_is_that_of_its_own_statement(clinic, texts):
    (found,) = gather_all(clinic, texts)
    assert isinstance(found, Gathered)
    alone = [read_alone(clinic, one) for one in watch_of(clinic, texts)]
    assert read(clinic, found) == alone
    assert len(set(alone)) > 1 or len(set(texts)) == 1  # it tells something apart


def test_questions_of_several_shapes_stay_in_order(clinic):
    many = [f"{COUNT}age = {n}" for n in range(6)]
    sums = [f"SELECT SUM(cost) FROM visits WHERE age = {n}" for n in range(5)]
    grouped = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    found = gather_all(clinic, [*many, grouped, *sums, *many[:2]])
    sizes = [one if isinstance(one, int) else len(one.chosen) for one in found]
    assert sizes == [6, 1, 5, 2]
    assert [isinstance(one, Gathered) for one in found] == [True, False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT patient) FROM visits WHERE age < {n}",  # a person has several rows
        "SELECT COUNT(DISTINCT age) FROM visits WHERE cost < {n}",
        "SELECT COUNT(*) FROM visits WHERE weight < {n}",  # which has no list of values
        "SELECT ward, COUNT(*) FROM visits WHERE age < {n} GROUP BY ward",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 2) COUNT(*) FROM visits "
        "WHERE age < {n}",  # two rows of a person are chosen, of those that count
    ],
)
def test_what_is_not_a_sum_over_listed_values_is_asked_alone(clinic, text):
    texts = [text.format(n=n + 9) for n in range(9)]
    found = gather_all(clinic, texts)
    assert all(isinstance(one, int) for one in found)
    assert sum(found) == 9


def test_too_many_combinations_are_divided(clinic, monkeypatch):
    monkeypatch.setattr(gathering, "MOST_CELLS", 300)
    texts = [f"{COUNT}age < {1 + n % 90} AND cost = {n % 70 - 20}" for n in range(60)]
    found = gather_all(clinic, texts)
    together = [one for one in found if isinstance(one, Gathered)]
    assert len(together) > 1
    assert all(np.prod(one.shape) <= 300 for one in together)
    assert sum(one if isinstance(one, int) else len(one.chosen) for one in found) == 60


def test_a_condition_that_is_not_understood_is_asked_alone(clinic, monkeypatch):
    real = gathering.evaluate_on_blocks

    def evaluate(condition, known, dimensions):
        return None if "41" in repr(condition) else real(condition, known, dimensions)

    monkeypatch.setattr(gathering, "evaluate_on_blocks", evaluate)
    found = gather_all(clinic, [f"{COUNT}age = {n}" for n in range(36, 46)])
    assert [one if isinstance(one, int) else len(one.chosen) for one in found] == [5, 1, 4]


# --- through the run -----------------------------------------------------------------------------


def count_statements(monkeypatch) -> list[object]:
    seen: list[object] = []
    real = DuckDBEngine.run

    def run(self, compiled):
        seen.append(compiled)
        return real(self, compiled)

    monkeypatch.setattr(DuckDBEngine, "run", run)
    return seen


def test_a_run_reads_many_in_one_statement_and_tells_each(clinic, monkeypatch):
    texts = [f"{COUNT}age < {n} AND ward = 'A'" for n in range(1, 61)]
    with clinic.watch(threshold=10**5, epsilon=1, name="many") as run:
        seen = count_statements(monkeypatch)
        told = run.ask_many(texts)
        assert len(seen) == 1
        assert [one.question for one in told] == texts
        assert not any(told)
        assert run.asked == 60
        assert run.transcript == tuple(told)
    assert clinic.ledger.verify().ok


def test_it_halts_where_it_would_halt(clinic, monkeypatch):
    """Numbers far from their thresholds: each verdict is certain, but for chance below 1e-9."""
    high, low = f"{COUNT}cost >= -20", f"{COUNT}cost > 48"
    run = clinic.watch(threshold=450, epsilon=60, at_most=3, numbers=True, name="halts")
    seen = count_statements(monkeypatch)
    told = run.ask_many([low, low, high, low, high, high, low, high])
    assert list(map(bool, told)) == [False, False, True, False, True, True]
    assert [one.value is not None for one in told] == list(map(bool, told))
    assert all(abs(one.value - ROWS) < 300 for one in told if one)
    assert (run.ended, run.asked, len(seen)) == ("halted", 6, 3)  # once more after each "above"
    with pytest.raises(Halted):
        run.ask(low)


def test_each_has_its_own_threshold_and_number(clinic):
    run = clinic.watch(epsilon=60, at_most=2, name="own")
    texts = [f"{COUNT}cost >= {-20 - n}" for n in range(6)]
    assert not any(run.ask_many(texts, threshold=2000))
    assert run.ask_many(texts[2:4], threshold=2000, number=2) == list(run.transcript[2:4])
    assert run.ask(texts[0], threshold=2)


def test_a_failure_closes_the_run_and_says_nothing(clinic, monkeypatch):
    run = clinic.watch(threshold=9, epsilon=1, name="fails")

    def fail(self, compiled):
        raise ValueError("canary 7")

    monkeypatch.setattr(DuckDBEngine, "run", fail)
    with pytest.raises(DataRefusal) as refused:
        run.ask_many([f"{COUNT}age = {n}" for n in range(9)])
    assert "canary" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert (run.ended, run.transcript) == ("lost", ())


def test_where_the_data_is_elsewhere_many_are_sent_at_once_and_read_the_same(clinic, monkeypatch):
    """As a server does it: the turn as bytes, to whoever holds the data, and its verdict back."""
    sent, added = [], []
    add_up = Gathered.add_up
    monkeypatch.setattr(
        Gathered, "add_up", lambda self, cells: added.append(add_up(self, cells)) or added[-1]
    )

    def compare(turn):
        sent.append(comparing.write_turn(turn))
        content = json.loads(sent[-1])["turn"]
        return comparing.read_judged(comparing.answer_turn(clinic.engine, content))

    texts = [f"{COUNT}{one} AND {other}" for one, other in product(SIMPLE[:13], WARDS[:4])]
    high = f"{COUNT}cost >= -20"
    opened = clinic.watch(threshold=450, epsilon=60, at_most=2, numbers=True, name="sent")
    run = Run(clinic, opened.id, compare=compare)
    told = run.ask_many([*texts, high, *texts[:4]])
    assert len(sent) == 2  # all at once, and the rest after the one above
    assert [bool(one) for one in told] == [False] * len(texts) + [True] + [False] * 4
    assert abs(told[len(texts)].value - ROWS) < 300
    assert added[0] == read(clinic, gather_all(clinic, [*texts, high, *texts[:4]])[0])
    assert all(b"canary" not in one for one in sent)


def test_what_is_told_is_used_the_same_way_with_and_without_groups(clinic):
    wards = "SELECT late, COUNT(*) FROM visits GROUP BY late"
    with clinic.watch(threshold=2000, epsilon=60, at_most=9, name="types") as run:
        for told, size in ((run.ask(f"{COUNT}age > 3"), 1), (run.ask(wards), 3)):
            assert not told.above
            assert [verdict.above for verdict in told] == [False] * size
            assert len(told) == size
            assert "below 2,000" in str(told)
        several = run.ask(wards, threshold=-2000)
        assert several.above
        assert several
        assert run.ask_groups(wards, threshold=-2000).above


# --- of many askers ------------------------------------------------------------------------------

SURE = 200
"""Of so much epsilon a count has no noise, but for chance below 1e-80."""
MIXED = [
    f"{COUNT}age < 40",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    f"{COUNT}age >= 30.5 AND ward = 'A'",
    "SELECT COUNT(*), SUM(cost) FROM visits WHERE age < 9",
    f"{COUNT}ward LIKE '%t%' OR age IS NULL",
    f"{COUNT}weight < 20",
    "SELECT COUNT(*) FROM people WHERE age < 9",
    f"{COUNT}age % 7 = 3",
    "SELECT COUNT(*) FROM visits",
]
READ = (0, 2, 4, 7, 8)
"""Of these, what one statement reads with the first."""


def pay(clinic: discreet.Curator, texts: list[str], epsilon: Any = SURE) -> list[Any]:
    """As if they were paid for: no account has so much."""
    engine, receipt, found = clinic.engine, cast("Any", None), []
    for text in texts:
        priced = clinic.price(text, epsilon=epsilon).explanation.priced
        compiled = engine.compile(priced.plan)
        basis = engine.find_basis(compiled)
        found.append(Paid(priced, compiled, receipt, engine.data_version(), basis=basis))
    return found


def charge(paid: list[Any]) -> list[Charged]:
    return [Charged(one.priced, one.data_version, one.basis) for one in paid]


def read_values(answers: list[bytes]) -> list[Any]:
    return [answer_from_bytes(one).value() if one else None for one in answers]


@pytest.fixture(scope="module")
def waiting(clinic) -> list[Any]:
    return pay(clinic, MIXED)


@pytest.fixture(scope="module")
def chosen(clinic, waiting) -> tuple[Gathered, list[Charged], list[int]]:
    """What is read together of those that wait, and what each must find."""
    found = choose_gathered(clinic, waiting)
    assert found is not None
    gathered, places = found
    assert places == READ
    mine = [waiting[place] for place in places]
    alone = [read_alone(clinic, one.priced) for one in mine]
    assert len(set(alone)) == len(alone)
    return gathered, charge(mine), alone


def test_each_of_those_that_wait_is_answered_its_own_number(clinic, chosen, monkeypatch):
    gathered, questions, alone = chosen
    seen = count_statements(monkeypatch)
    answers = compute_gathered(clinic.engine, gathered, questions)
    assert len(seen) == 1
    assert read_values(answers) == alone


def test_sums_and_people_are_read_together_too(clinic):
    for text in ("SUM(cost) FROM visits", "COUNT(DISTINCT patient) FROM people"):
        paid = pay(clinic, [f"SELECT {text} WHERE age < {n}" for n in (20, 40, 60, 80)])
        gathered, places = choose_gathered(clinic, paid)
        assert places == (0, 1, 2, 3)
        values = read_values(compute_gathered(clinic.engine, gathered, charge(paid)))
        assert values == [read_alone(clinic, one.priced) for one in paid]


def test_noise_is_drawn_for_each(clinic):
    """Equal would be the noises of one draw: fifteen of scale 15 are with chance below 1e-20."""
    paid = pay(clinic, [f"{COUNT}age < 40"] * 16, epsilon="1/5")
    gathered, places = choose_gathered(clinic, paid)
    assert len(places) == 16
    values = read_values(compute_gathered(clinic.engine, gathered, charge(paid)))
    assert len(set(values)) > 1


def test_whoever_is_first_or_last_the_same_are_read_together(clinic, waiting):
    plans = [one.priced.plan for one in waiting]
    multiplicity = clinic.engine.catalogue.multiplicity
    assert gather_with_first([plans[1], *plans], multiplicity) is None  # the first has groups
    _, places = gather_with_first([plans[7], *plans], multiplicity)
    assert places == (0, *(place + 1 for place in READ))
    few = [plans[place] for place in (*READ[: FEWEST - 1], 1, 3, 5, 6)]
    assert gather_with_first(few, multiplicity) is None
    few.append(plans[READ[-1]])
    assert gather_with_first(few, multiplicity) is not None


def test_one_that_looks_at_too_much_is_left_out(clinic, monkeypatch):
    """Which of them is too much is decided by how many are there already, and not for all."""
    monkeypatch.setattr(gathering, "CELLS_EACH", 30)
    wide = f"{COUNT}day = DATE '2024-01-09' AND age = 3"
    texts = [f"{COUNT}age < {n + 3}" for n in range(5)]
    paid = pay(clinic, [*texts[:2], wide, *texts[2:]])
    found, places = choose_gathered(clinic, paid)
    assert places == (0, 1, 3, 4, 5)
    assert np.prod(found.shape) <= 30 * 5
    assert choose_gathered(clinic, paid[2:]) is None


def test_one_that_is_not_understood_is_left_out(clinic, waiting, monkeypatch):
    real = gathering.evaluate_on_blocks

    def evaluate(condition, known, dimensions):
        return None if "modulo" in repr(condition) else real(condition, known, dimensions)

    assert "modulo" in repr(waiting[7].priced.plan)
    monkeypatch.setattr(gathering, "evaluate_on_blocks", evaluate)
    assert choose_gathered(clinic, waiting)[1] == (0, 2, 4, 8)
    assert choose_gathered(clinic, waiting[7:] + waiting) is None


def test_what_improves_an_earlier_answer_is_computed_alone(clinic, waiting):
    improving = [replace(one, improving="a release") for one in waiting]
    assert choose_gathered(clinic, [improving[0], *waiting]) is None
    assert choose_gathered(clinic, [*waiting[:1], *improving, *waiting[2:]])[1] == (
        0,
        *(place + len(waiting) - 1 for place in READ[1:]),
    )


def test_a_failure_of_one_is_its_own(clinic, chosen, monkeypatch):
    gathered, questions, alone = chosen
    real = reading.release_gathered

    def fail(priced, *others):
        if priced is questions[2].priced:
            raise ValueError("canary 7")
        return real(priced, *others)

    monkeypatch.setattr(reading, "release_gathered", fail)
    values = read_values(compute_gathered(clinic.engine, gathered, questions))
    assert values == [*alone[:2], None, *alone[3:]]


@pytest.mark.parametrize(
    "change", [{"data_version": "another"}, {"basis": "another"}, {"basis": None}]
)
def test_of_other_data_than_were_paid_for_nothing_is_answered(clinic, chosen, change):
    gathered, questions, alone = chosen
    assert all(one.basis is not None for one in questions)
    other = [*questions[:1], replace(questions[1], **change), *questions[2:]]
    expected = alone if change == {"basis": None} else [alone[0], None, *alone[2:]]
    assert read_values(compute_gathered(clinic.engine, gathered, other)) == expected


@pytest.mark.parametrize("gone", ["before", "after"])
def test_a_basis_is_looked_at_before_and_after(clinic, chosen, monkeypatch, gone):
    gathered, questions, _ = chosen
    real, ran = DuckDBEngine.find_basis, count_statements(monkeypatch)

    def find(self, compiled):
        return real(self, compiled) if bool(ran) == (gone == "before") else None

    monkeypatch.setattr(DuckDBEngine, "find_basis", find)
    assert not any(compute_gathered(clinic.engine, gathered, questions))
    assert len(ran) == 1


@pytest.mark.parametrize("step", ["run", "compile"])
def test_where_the_statement_fails_each_is_computed_alone(clinic, chosen, monkeypatch, step):
    def fail(*_, **__):
        raise ValueError("canary 7")

    monkeypatch.setattr(DuckDBEngine, step, fail)
    assert compute_gathered(clinic.engine, *chosen[:2]) == [b""] * len(READ)


def test_they_are_sent_as_they_are_alone_and_come_back_in_order(clinic, chosen, waiting):
    gathered, _, alone = chosen
    sent = write_gathered(gathered, [write_paid(waiting[place]) for place in READ])
    ((kind, content),) = json.loads(sent).items()
    answer = comparing.ANSWERS[kind](clinic.engine, content)
    assert read_values(read_gathered(answer, len(READ))) == alone
    for other in (b"", b"no", b"{}", b"[1, 2, 3, 4, 5]", answer[:-1]):
        assert read_gathered(other, len(READ)) == [b""] * len(READ)
    assert read_gathered(answer, 4) == [b""] * 4


N = 4000
ALPHA = 1e-9


def test_verdicts_on_gathered_numbers_have_the_law_of_the_mechanism(clinic):
    """P(first above at i), for numbers of the engine near the threshold; a wrong law is refuted."""
    watch = Watch.of(threshold=450, epsilon=2)
    texts = [f"{COUNT}cost {sign} 15" for sign in ("<", "<=", ">", ">=")]
    (found,) = gather_all(clinic, texts)
    asked = [(one, Fraction(450)) for one in watch_of(clinic, texts)]
    truth = clinic.engine.run(clinic.engine.compile(found.plan))
    draw = partial(NoisyThreshold.draw, watch.mechanism.plan)
    below = [judge_gathered(watch, asked, found, truth, secret=draw()).below for _ in range(N)]
    numbers = read(clinic, found)
    fits = partial(_fits, watch, [below.count(place) / N for place in range(5)])
    scaled = [one.scale([n], level)[0] for n, (one, level) in zip(numbers, asked, strict=True)]
    assert fits(scaled)
    assert not fits(scaled[::-1])
    assert not fits([2 * one for one in scaled])


def _fits(watch: Watch, seen: list[float], scaled: list[int]) -> bool:
    law, bound = watch.mechanism.law(scaled), np.sqrt(np.log(2 * 5 / ALPHA) / (2 * N))
    for place, rate in enumerate(seen):
        outcome = (False,) * place + (True,) * (place < 4)
        if abs(rate - float(law.mass(outcome).mid())) > bound:
            return False
    return True
