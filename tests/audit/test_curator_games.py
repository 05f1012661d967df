"""Adaptive adversaries against the curator: twenty of them, ten thousand games each.

The stages are the curator's own (parse, price, the budget's filter, the engine, the
airlock's noise); each game has a fresh account.  No game certifies more than was
promised, and with the charge bypassed the same games find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from discreet import audit
from discreet.accounting.budget import Budget
from discreet.audit import Rehearsal, Verdict, observe
from discreet.audit.crowd import Crowd, ask
from discreet.curate.curator import Curator
from discreet.errors import BudgetRefusal
from discreet.question.schema import Schema

GAMES = 10_000  # in either world
CONFIDENCE = "0.99999999"  # one false alarm in 10**8 games of a kind
BUDGET = Budget(epsilon=1)

SCHEMA = Schema.from_text("""
[tables.visits]
unit = "pid"
max_rows_per_unit = 1
[tables.visits.columns]
pid = "integer"
region = { type = "text", values = ["north", "south"] }
age = { type = "integer", bounds = [0, 8] }
""")
ROWS = [(1, "north", 3), (2, "south", 5), (3, "north", 8), (4, "north", 8)]

COUNT = "SELECT COUNT(*) FROM visits"
NORTH = "SELECT COUNT(*) FROM visits WHERE region = 'north'"
SOUTH = "SELECT COUNT(*) FROM visits WHERE region = 'south'"
OLD = "SELECT COUNT(*) FROM visits WHERE age = 8"
SUM = "SELECT SUM(age) FROM visits"
MEAN = "SELECT AVG(age) FROM visits"
GROUPS = "SELECT region, COUNT(*) FROM visits GROUP BY region"


def tables(rows):
    pid, region, age = zip(*rows, strict=True)
    columns = {"pid": pa.array(pid), "region": pa.array(region), "age": pa.array(age)}
    return {"visits": pa.table(columns)}


WORLDS = tables(ROWS[:-1]), tables(ROWS)


# --- the adversaries -----------------------------------------------------------------------------
#
# A refused question is told as text; sums of what was told are the usual view.  What is asked in
# every game is written once, with its exact offer.

EIGHTHS = [ask(COUNT, epsilon=Fraction(1, 8) + Fraction(part, 10**6)) for part in range(8)]
RISING = [ask(COUNT, epsilon=Fraction(part, 4)) for part in range(1, 9)]
FIFTHS = [ask(OLD, epsilon=Fraction(1, 5) - Fraction(part, 10**6)) for part in range(5)]
SIXTHS = [ask(NORTH, epsilon=Fraction(1, 6) + Fraction(part, 10**6)) for part in range(11)]
QUARTERS = [ask(OLD, epsilon=Fraction(1, 4) - Fraction(part, 10**6)) for part in range(4)]
HALVES = [ask(OLD, epsilon=Fraction(1, 2) + Fraction(part, 10**6)) for part in range(10)]


def told(answer, place=-1):
    return 0 if isinstance(answer, str) or answer[place] is None else answer[place]


def everything_at_once():
    return told((yield ask(COUNT, epsilon=1)))


def halves():
    first = yield ask(COUNT, epsilon="1/2")
    second = yield ask(OLD, epsilon="1/2")
    return told(first) + told(second)


def averaging():
    total = 0
    for asked in EIGHTHS:
        total += told((yield asked))
    return total


def replaying():
    """The same question again is the same answer: nothing to average."""
    total = 0
    for _ in range(4):
        total += told((yield ask(COUNT, epsilon="1/2")))
    return total


def overspending():
    total = 0
    for asked in RISING:
        total += told((yield asked))
    return total


def differencing():
    return told((yield ask(COUNT, epsilon="1/2"))) - told((yield ask(SOUTH, epsilon="1/2")))


def tracker():
    north = yield ask(NORTH, epsilon="1/3")
    old = yield ask(OLD, epsilon="1/3")
    total = yield ask(COUNT, epsilon="1/3")
    return told(north) + told(old) + told(total)


@cache
def raised(doubled, more):
    return ask(OLD, epsilon=Fraction(2**doubled, 16) * Fraction(17, 16) ** more)


def doubling():
    """Spends more and more while what it hears looks large."""
    total = doubled = more = 0
    while True:
        heard = yield raised(doubled, more)
        if isinstance(heard, str):
            return total
        total += heard[0]
        if heard[0] > 1:
            doubled += 1
        else:
            more += 1


def threshold_search():
    low, high = -8, 16
    for asked in FIFTHS:
        heard = yield asked
        middle = (low + high) / 2
        low, high = (middle, high) if told(heard) > middle else (low, middle)
    return low


def grouped():
    heard = yield ask(GROUPS, epsilon=1)
    return told(heard, 1)


def grouped_and_total():
    groups = yield ask(GROUPS, epsilon="1/2")
    return told(groups, 1) + told((yield ask(COUNT, epsilon="1/2")))


def sums():
    return round(told((yield ask(SUM, epsilon=1))))


def sum_then_count():
    total = yield ask(SUM, epsilon="3/4")
    return round(told(total) + 8 * told((yield ask(OLD, epsilon="1/4"))))


def means():
    heard = yield ask(MEAN, epsilon=1)
    return round(told(heard), 1)


def refusals():
    """Listens only to whether it is refused, after a path that its answers decide."""
    heard = yield ask(COUNT, epsilon="1/2")
    again = yield ask(OLD, epsilon="2/5" if told(heard) > 3 else "3/5")
    return again if isinstance(again, str) else "answered"


def how_long_it_lasts():
    steps = 0
    while not isinstance((yield SIXTHS[steps]), str) and steps < 10:
        steps += 1
    return steps


def rho_and_epsilon():
    """Concentrated offers have no pure bound, and a budget without delta refuses them."""
    first = yield ask(COUNT, rho="1/2")
    second = yield ask(COUNT, epsilon=1)
    return (1000 if not isinstance(first, str) else 0) + told(second)


def stopping_when_lucky():
    best = -100
    for asked in QUARTERS:
        heard = yield asked
        best = max(best, told(heard))
        if best > 6:
            return best
    return best


def chaff():
    """The same people under conditions that differ in writing only."""
    total = 0
    for part in range(3):
        text = f"SELECT COUNT(*) FROM visits WHERE age > {part - 9} OR age <= {part}"
        total += told((yield ask(text, epsilon="1/3")))
    return total


def switching():
    heard = yield ask(NORTH, epsilon="1/4")
    question = SUM if told(heard) > 2 else GROUPS
    again = yield ask(question, epsilon="3/4")
    return round(told(heard) + told(again, 1 if question == GROUPS else 0))


def patient():
    """Ten counts, each at half the budget."""
    total = 0
    for asked in HALVES:
        total += told((yield asked))
    return total


ADVERSARIES: list[Callable[[], Iterator]] = [
    everything_at_once,
    halves,
    averaging,
    replaying,
    overspending,
    differencing,
    tracker,
    doubling,
    threshold_search,
    grouped,
    grouped_and_total,
    sums,
    sum_then_count,
    means,
    refusals,
    how_long_it_lasts,
    rho_and_epsilon,
    stopping_when_lucky,
    chaff,
    switching,
]


@pytest.fixture(scope="module")
def stages():
    opened = [Rehearsal(world, schema=SCHEMA, budget=BUDGET) for world in WORLDS]
    yield opened
    for stage in opened:
        stage.engine.close()


def played(stages, script, games=GAMES):
    crowds = [Crowd(stage) for stage in stages]
    return audit.game(
        lambda world, size: crowds[world].play(script, size),
        0,
        1,
        trials=games,
        promised=BUDGET,
        confidence=CONFIDENCE,
        batch=True,
        name=script.__name__,
    )


def test_there_are_twenty():
    assert len(set(ADVERSARIES)) == 20


@pytest.mark.parametrize("script", [*ADVERSARIES, patient], ids=lambda script: script.__name__)
def test_nobody_learns_more_than_was_promised(stages, script):
    found = played(stages, script)
    assert found.verdict is Verdict.CONSISTENT, found.sentence
    assert found.lower <= 1


def test_the_games_are_not_toothless(stages):
    """Spending it all on one count comes close to the promise."""
    assert played(stages, everything_at_once).lower > Fraction(3, 5)


def admitting_all(_, spent, __):
    """The filter of sessions and of the ledger alike, which lets everything pass."""
    return np.ones(spent.shape[1], dtype=bool)


@pytest.mark.parametrize("script", [overspending, patient], ids=lambda script: script.__name__)
def test_with_the_charge_bypassed_it_is_found(stages, script, monkeypatch):
    """Both were played with it above."""
    monkeypatch.setattr(Budget, "admits_units", admitting_all)
    found = played(stages, script)
    assert found.alarm, found.sentence
    assert found.lower > 1


# --- the rehearsal is the curator ----------------------------------------------------------------


@pytest.mark.parametrize("question", [COUNT, SUM, MEAN, GROUPS, "SELECT MEDIAN(age) FROM visits"])
def test_the_same_noise_gives_the_same_answer_as_the_curator(question):
    """With the noise frozen, a curator, a session and a crowd of one say the same."""
    with Curator(WORLDS[1], schema=SCHEMA, budget=BUDGET, threads=1) as curator, observe():
        expected = curator.ask(question, epsilon="1/2")
    with Rehearsal(WORLDS[1], schema=SCHEMA, budget=BUDGET) as stage:
        stage.prepare(question, {"epsilon": "1/2"})
        with observe():
            answer = stage.open().ask(question, epsilon="1/2")
        assert [row.values for row in answer.rows] == [row.values for row in expected.rows]
        assert answer.loss == expected.loss

        def one():
            return (yield ask(question, epsilon="1/2"))

        crowd = Crowd(stage)
        crowd.play(one, 1)  # remembers what enters the noise
        with observe():
            views = crowd.play(one, 1)
        assert views[0] == tuple(value for row in expected.rows for value in row.values)


def test_a_session_refuses_where_the_curator_does():
    offers = ["1/2", "1/3", "1/3", "1/6", "1/100"]
    outcomes = []
    with (
        Curator(WORLDS[1], schema=SCHEMA, budget=BUDGET, threads=1) as curator,
        Rehearsal(WORLDS[1], schema=SCHEMA, budget=BUDGET) as stage,
    ):
        session = stage.open()
        for asking in (curator.ask, session.ask):
            told_here = []
            for offer, question in zip(offers, [COUNT, OLD, NORTH, SOUTH, SUM], strict=True):
                try:
                    asking(question, epsilon=offer)
                except BudgetRefusal as refusal:
                    told_here.append(refusal.code)
                else:
                    told_here.append("answered")
            outcomes.append(told_here)
        views = Crowd(stage).play(lambda: _offering(offers), 2)
    assert outcomes[0] == outcomes[1] == ["answered", "answered", "B1", "answered", "B1"]
    assert views == [["answered", "answered", "refused B1", "answered", "refused B1"]] * 2


def _offering(offers):
    heard = []
    for offer, question in zip(offers, [COUNT, OLD, NORTH, SOUTH, SUM], strict=True):
        heard.append((yield ask(question, epsilon=offer)))
    return [one if isinstance(one, str) else "answered" for one in heard]


def test_games_in_a_crowd_are_independent(stages):
    views = Crowd(stages[0]).play(everything_at_once, 400)
    assert len(set(views)) > 3
    halves_of = sum(a == b for a, b in zip(views[::2], views[1::2], strict=True))
    assert halves_of < 150  # of 200; two draws of this law agree with probability 0.3


def test_a_script_that_fails_is_an_outcome(stages):
    def failing():
        yield ask(COUNT, epsilon=1)
        raise ZeroDivisionError

    assert set(Crowd(stages[0]).play(failing, 3)) == {"raised ZeroDivisionError"}

    def wrong():
        return (yield ask("SELECT pid FROM visits", epsilon=1))

    assert Crowd(stages[0]).play(wrong, 1) == ["refused Q12"]


# --- the curator itself --------------------------------------------------------------------------


def test_against_a_curator_given_as_target():
    def adaptive(asking):
        first = asking(COUNT, epsilon="1/2").value()
        return first + asking(OLD if first > 3 else NORTH, epsilon="1/2").value()

    with Curator(WORLDS[1], schema=SCHEMA, budget=BUDGET, threads=1) as curator:
        found = audit.game(curator, *WORLDS, adaptive, 500, confidence=CONFIDENCE)
        assert found.promised_epsilon == 1
        assert found.verdict is Verdict.CONSISTENT
        assert not audit.game(curator, *WORLDS, halves, 500, confidence=CONFIDENCE).alarm


def greedy(start):
    """Offers far too much after its first answer; remembers the last one that it got."""
    curator, last = start(), 0
    for offer in ("3/5", 40):
        try:
            last = curator.ask(OLD, epsilon=offer).value()
        except BudgetRefusal:
            break
    return last


def frugal(start):
    curator, total = start(), 0
    for part in range(3):
        try:
            total += curator.ask(OLD, epsilon=Fraction(2 + part, 5)).value()
        except BudgetRefusal:
            break
    return total


def with_ledgers(adversary, *, games=50):
    """The whole of it, files apart: every game a new curator's account in a real ledger."""
    open_curators = [Curator(world, schema=SCHEMA, budget=BUDGET, threads=1) for world in WORLDS]

    def session(world):
        curator = open_curators[world]
        session.games += 1
        curator.account = curator.ledger.account(
            f"game {session.games}", schema=SCHEMA, budget=BUDGET
        )
        return curator

    session.games = 0
    found = audit.game(session, 0, 1, adversary, games, promised=BUDGET)
    for curator in open_curators:
        curator.close()
    return found


@pytest.mark.parametrize("adversary", [frugal, greedy], ids=lambda one: one.__name__)
def test_against_curators_with_their_ledgers(adversary):
    """Twenty-five judged games at 0.999: even a true epsilon of 1, all of it in one event (27 %
    against 73 %), is accused once in 6 million times (two binomials), and these tell less.
    """
    assert with_ledgers(adversary).verdict is Verdict.CONSISTENT


def test_with_the_charge_of_the_ledger_bypassed_it_is_found(monkeypatch):
    monkeypatch.setattr(Budget, "admits_units", admitting_all)
    found = with_ledgers(greedy, games=60)  # at 40 the answer is the truth, and 50 would do
    assert found.alarm, found.sentence
