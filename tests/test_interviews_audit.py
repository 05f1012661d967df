"""An exact audit of interviews through the curator: an adaptive analyst, small tables, no chance.

The analyst looks at each answer before the next question, and refuses nothing that is offered.  On
every path of answers, and for tables that differ by one unit, the laws of everything told are
compared exactly: what they differ by is at most what the ledger was charged.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from test_interviews import SMALL

import discreet
from discreet.accounting.divergence import both_ways, max_divergence
from discreet.accounting.loss import Loss
from discreet.curate import interviews
from discreet.curate.interviews import InterviewRun
from discreet.curate.running import pay_for_run
from discreet.errors import Halted
from discreet.price import interview as pricing
from discreet.release import release as airlock

T, EPSILON = 4, Fraction(3, 2)
OTHERS = [(7, "Cork", 1), (8, "Delft", 3)]
"""People who are in both tables."""
UNITS = [
    (),
    (("Cork", 0),),
    (("Cork", 3), ("Cork", 3)),
    (("Cork", 1), ("Delft", 2)),
]
"""All rows of the one who is in one table, or in neither."""
TREE = {
    "": "SELECT COUNT(*) FROM visits WHERE city = 'Cork'",
    "0": "SELECT COUNT(*) FROM visits WHERE city = 'Delft'",
    "1": "SELECT city, COUNT(*) FROM visits WHERE age < 3 GROUP BY city",
    "00": "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE age = 3",
    "01": "SELECT COUNT(*) FROM visits WHERE age > 1",
    "10": "SELECT SUM(age) FROM visits WHERE age < 2",
    "11": "SELECT COUNT(*) FROM visits",
}
"""What the analyst asks next: 1 for an answer that was high, 0 for one that was low."""
LOW, HIGH = -1000, 1000


@dataclass(frozen=True)
class Path:
    """What one table tells on one path: the law of every number, and what was paid."""

    laws: list
    paid: Fraction
    charges: int
    admitted: int


def open_tables(stack: ExitStack) -> list[discreet.Curator]:
    """A curator for each unit's table."""
    names = ["patient_id", "city", "age"]
    rows = [[*OTHERS, *((1, city, age) for city, age in unit)] for unit in UNITS]
    tables = [pd.DataFrame(one, columns=names) for one in rows]
    return [
        stack.enter_context(discreet.curator({"visits": table}, schema=SMALL, budget=100))
        for table in tables
    ]


def walk(curator, answers, patch) -> Path:
    """Play one path through the curator, with the answers given and the laws taken down."""
    laws: list = []
    given = iter(answers)

    def add_noise(noise, measured):
        laws.extend(noise.law(int(value)) for value in measured[:, 0])
        return np.full_like(measured, HIGH if next(given) == "1" else LOW)

    patch.setattr(airlock, "_add_noise", add_noise)
    spent, charges = curator.spent.epsilon, len(curator.transcript())
    run = curator.interview(sensitivity=T, epsilon=EPSILON, name=answers)
    admitted = 0
    with suppress(Halted):  # then the path ends here
        for depth in range(len(answers)):
            run.ask(TREE[answers[:depth]])
            admitted += 1
    paid = curator.spent.epsilon - spent
    return Path(laws, paid, len(curator.transcript()) - charges, admitted)


def find_worst(monkeypatch) -> Fraction:
    """The most that any path tells of any unit, above what was paid for it; zero is tight.

    After the first path that tells more than was paid, no other is walked.
    """
    worst = Fraction(-100)
    with ExitStack() as stack:
        curators = open_tables(stack)
        for answers in map("".join, product("01", repeat=3)):
            with monkeypatch.context() as patch:
                without, *others = [walk(curator, answers, patch) for curator in curators]
            for one in others:
                assert one.admitted == without.admitted  # refusals depend on questions alone
                assert (one.charges, without.charges) == (1, 1)
                assert one.paid == without.paid == EPSILON
                pairs = zip(one.laws, without.laws, strict=True)
                lost = [both_ways(max_divergence, mine, theirs)[1] for mine, theirs in pairs]
                worst = max(worst, sum(lost, Fraction(0)) - one.paid)
            if worst > 0:
                break
    return worst


def test_no_path_tells_more_of_anybody_than_was_charged(monkeypatch):
    worst = find_worst(monkeypatch)
    assert worst <= 0
    assert worst > -EPSILON / 2  # and the noise is no larger than the theorem's


def forget_what_was_asked(patch):
    """Every question is admitted as if it were the first."""
    patch.setattr(interviews, "add_sensitivities", lambda posed, _known: posed[0].moved)


def add_half_the_noise(patch):
    """Noise for half of what one unit moves."""
    real = pricing.Interview.scale.fget
    patch.setattr(pricing.Interview, "scale", property(lambda self: real(self) / 2))


def charge_by_question(patch):
    """Every question is charged, and the run is not."""
    charge_nearly_nothing(patch)
    real = InterviewRun.ask

    def ask(self, question, **more):
        pay = partial(pay_for_run, self._curator, "interview", self.interview.to_json())
        name = f"{self.name} {self.asked}"
        pay(loss=Loss.pure(EPSILON / 2), text="INTERVIEW", name=name, analyst=self.analyst)
        return real(self, question, **more)

    patch.setattr(InterviewRun, "ask", ask)


def charge_nearly_nothing(patch):
    """The run is charged a trifle, and nothing after."""

    def pay(*args, loss, **more):
        return pay_for_run(*args, loss=Loss.pure(Fraction(1, 10**6)), **more)

    patch.setattr(interviews, "pay_for_run", pay)


@pytest.mark.parametrize(
    "mutant",
    [forget_what_was_asked, add_half_the_noise, charge_by_question, charge_nearly_nothing],
)
def test_the_audit_refutes_a_mutant(mutant, monkeypatch):
    with monkeypatch.context() as patch:
        mutant(patch)
        with pytest.raises(AssertionError):
            assert find_worst(monkeypatch) <= 0
