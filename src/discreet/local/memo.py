"""Repeated collection: an answer that is randomised once for all, and again for each report."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import NOTHING, Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import log_up
from discreet.exact.numbers import Exact, whole
from discreet.local.direct import Direct
from discreet.local.frequencies import Frequencies, Integers
from discreet.local.odds import check_categories, check_epsilon, odds
from discreet.local.oracle import check_people
from discreet.mechanisms import TwoCoinResponse


@dataclass(frozen=True, init=False, repr=False)
class Memoised:
    """Randomise an answer once and keep it; randomise what was kept for every report.

    The answers are numbered from 0, below ``categories``.

    Definition:
        Once in a period the answer goes through randomized response at the odds of
        ``permanent`` and is kept.  Each report of the period is what was kept, through
        randomized response again, such that one report alone has the odds of ``one``.

    Guarantee:
        All reports of a period are made from what was kept, so together they cost at
        most ``permanent``; k of them cost ``loss_over(k)``, which is exact; periods add
        up.  What changes within a period is not reported until the next one: a
        client that randomised a changed answer anew would tell when it changed.

    Accuracy:
        Each round is a survey by randomized response at ``one``: ``estimate`` is that of
        ``Direct(categories, epsilon=one)``.  Averaging over rounds leaves the error of what
        was kept.

    Reference:
        Erlingsson, Pihur and Korolova (2014), RAPPOR: permanent and instantaneous
        response; Ding, Kulkarni and Yekhanin (2017): memoisation.

    Example:
        >>> weekly = Memoised(4, permanent=2, one=1)
        >>> [round(float(weekly.loss_over(k).epsilon), 3) for k in (1, 2, 8, 100)]
        [1.0, 1.678, 2.0, 2.0]
        >>> client = weekly.client(periods=1, rounds=50)
        >>> client.report(3) in range(4), round(float(client.lost.epsilon), 3)
        (True, 1.0)
        >>> [round(weekly.variance(respondents=900, rounds=k)) for k in (1, 8, 100)]
        [1438, 361, 219]
    """

    categories: int
    permanent: Fraction
    one: Fraction

    def __init__(self, categories: int, *, permanent: Exact, one: Exact) -> None:
        object.__setattr__(self, "categories", check_categories(categories, most=2**20))
        object.__setattr__(self, "permanent", check_epsilon(permanent))
        object.__setattr__(self, "one", check_epsilon(one))
        if self.one >= self.permanent:
            raise InvalidParameter(
                "P4",
                "one report must cost less than all together.",
                why="a report is made from what was kept, and cannot say more than that.",
                fix="pass one below permanent, such as permanent=2, one=1.",
            )

    def __repr__(self) -> str:
        return f"Memoised({self.categories}, permanent='{self.permanent}', one='{self.one}')"

    def _truth(self, epsilon: Fraction) -> Fraction:
        """The coin of TwoCoinResponse that has the odds of epsilon: the difference p - q."""
        growth = odds(epsilon) - 1
        return growth / (growth + self.categories)

    @cached_property
    def kept(self) -> TwoCoinResponse:
        """What is drawn once in a period."""
        return TwoCoinResponse(truth=self._truth(self.permanent), categories=self.categories)

    @cached_property
    def again(self) -> TwoCoinResponse:
        """What is drawn for each report; differences p - q multiply along the way."""
        share = self._truth(self.one) / self._truth(self.permanent)
        return TwoCoinResponse(truth=share, categories=self.categories)

    @cached_property
    def round(self) -> Direct:
        """One report alone: randomized response, with its estimates."""
        return Direct(self.categories, epsilon=self.one)

    @property
    def loss(self) -> Loss:
        """What all reports of one period cost together, however many they are."""
        return Loss.pure(self.permanent)

    def loss_over(self, rounds: int) -> Loss:
        """What ``rounds`` reports of one period cost together: exact, rounded up.

        The likeliest evidence for an answer is that all reports name it (docs/proofs/local.md,
        Lemma 1).
        """
        k = whole(rounds, name="rounds")
        if not k:
            return NOTHING
        d = self.categories
        q = (1 - self.kept.truth) / d
        gap = self.kept.truth
        other = (1 - self.again.truth) / d
        # Powers of the odds of one report, and not of its probabilities: shorter numbers.
        named = _power((other + self.again.truth) / other, k)
        total = named + d - 1
        ratio = (q * total + gap * named) / (q * total + gap)
        return Loss.pure(min(log_up(ratio), self.permanent))

    def law(self, value: Any, *, rounds: int = 1) -> FiniteLaw:
        """The exact law of the reports of so many ``rounds`` of one period, as a tuple.

        ``value`` is the answer of the period.
        """
        code, d = self.round.code(value), self.categories
        k = whole(rounds, name="rounds", least=1)
        outcomes = list(np.ndindex(*([d] * k)))
        kept, again = self.kept.law(code).fractions, [self.again.law(m).fractions for m in range(d)]
        masses = []
        for outcome in outcomes:
            mass = Fraction(0)
            for m in range(d):
                chance = (kept or ())[m]
                for one in outcome:
                    chance *= (again[m] or ())[one]
                mass += chance
            masses.append((tuple(outcome), mass))
        return FiniteLaw.exact(masses)

    def client(self, *, periods: int, rounds: int) -> Client:
        """One respondent's: it keeps the answers and refuses what was not agreed.

        ``periods`` and ``rounds`` in each are what was agreed.
        """
        return Client(
            self, whole(periods, name="periods", least=1), whole(rounds, name="rounds", least=1)
        )

    def estimate(self, reports: Any) -> Frequencies:
        """How many respondents gave each answer, from the ``reports`` of one round."""
        return self.round.estimate(reports)

    def variance(self, *, respondents: int, count: int = 0, rounds: int = 1) -> float:
        """Of the estimated number of those with an answer, if ``count`` of ``respondents`` have it.

        Exact. With ``rounds``, of the mean of the estimates of so many rounds of one period: what
        was kept is the same in all of them, and its error stays.
        """
        n, c = check_people(respondents, count)
        k = whole(rounds, name="rounds", least=1)
        p, q = self.round.inside, self.round.outside
        other = (1 - self.again.truth) / self.categories
        gap = self.again.truth  # between the chances of a report of what was kept, and of another
        kept = (1 - self.kept.truth) / self.categories

        def one(chance: Fraction) -> Fraction:
            """Of one respondent's mean indicator, if the answer was kept with this chance."""
            named = other + gap
            again = chance * named * (1 - named) + (1 - chance) * other * (1 - other)
            return again / k + chance * (1 - chance) * gap**2

        mine = one(kept + self.kept.truth)
        return float((c * mine + (n - c) * one(kept)) / (p - q) ** 2)


class Client:
    """What runs at one respondent: reports of at most so many periods and rounds in each.

    ``plan`` says how answers are kept and randomised; ``periods`` and ``rounds`` are what was
    agreed.

    It can be stored and opened again (:meth:`to_json`, :meth:`from_json`).  A client whose
    store is lost must not begin anew: what it would keep then is a second draw of
    the same answer, and costs ``permanent`` again.
    """

    def __init__(self, plan: Memoised, periods: int, rounds: int) -> None:
        self.plan, self.periods, self.rounds = plan, periods, rounds
        self._kept: int | None = None
        self._period, self._round = 0, 0
        self._past: list[int] = []

    def report(self, value: Any) -> int:
        """The next report of this period; the answer ``value`` counts only at its first."""
        code = self.plan.round.codes([value])
        if self._round >= self.rounds:
            raise self._used_up_refusal(f"all {self.rounds} reports of this period are made.")
        if self._kept is None:
            self._kept = int(self.plan.kept.release(code)[0])
        self._round += 1
        again: Integers = self.plan.again.release(np.array([self._kept]))
        return int(again[0])

    def next_period(self) -> None:
        """Forget what was kept: the next report costs anew."""
        if self._period + 1 >= self.periods:
            raise self._used_up_refusal(f"all {self.periods} periods are over.")
        self._past.append(self._round)
        self._period, self._round, self._kept = self._period + 1, 0, None

    @property
    def lost(self) -> Loss:
        """What the reports so far have cost."""
        return sum((self.plan.loss_over(k) for k in (*self._past, self._round)), start=NOTHING)

    @property
    def most(self) -> Loss:
        """What all reports that were agreed can cost."""
        return self.periods * self.plan.loss_over(self.rounds)

    def to_json(self) -> dict[str, Any]:
        """What must be stored, at the respondent and nowhere else: it holds what was kept."""
        return {
            "categories": self.plan.categories,
            "permanent": str(self.plan.permanent),
            "one": str(self.plan.one),
            "periods": self.periods,
            "rounds": self.rounds,
            "past": list(self._past),
            "round": self._round,
            "kept": self._kept,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Client:
        """The client that was ``stored``; refused if reports were made and nothing was kept."""
        plan = Memoised(stored["categories"], permanent=stored["permanent"], one=stored["one"])
        client = plan.client(periods=stored["periods"], rounds=stored["rounds"])
        past = [whole(k, name="past") for k in stored["past"]]
        done = whole(stored["round"], name="round")
        kept = stored["kept"]
        if (done > 0) != (kept is not None) or len(past) >= client.periods or done > client.rounds:
            raise InvalidParameter(
                "P4",
                "the stored client does not hold what it has reported from.",
                why="drawing the kept answer again would cost the respondent a second time.",
                fix="restore the store from a copy, or wait for the next period.",
            )
        client._past, client._round, client._period = past, done, len(past)
        client._kept = None if kept is None else plan.round.code(kept)
        return client

    def _used_up_refusal(self, what: str) -> InvalidParameter:
        return InvalidParameter(
            "P4",
            what,
            why="more reports would cost the respondent more than was agreed.",
            fix="go on with next_period(), if one is left, or agree on more.",
        )


def _power(number: Fraction, exponent: int) -> Fraction:
    """A power rounded up to 256 bits: the loss only grows by it."""
    found = Fraction(1)
    for _ in range(exponent):
        found = _round_up(found * number)
        if found > 2**512:  # the loss has reached its end long before
            break
    return found


def _round_up(number: Fraction) -> Fraction:
    return Fraction(-(-number.numerator * 2**256 // number.denominator), 2**256)


__all__ = ["Client", "Memoised"]
