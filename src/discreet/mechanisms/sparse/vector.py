"""Sparse vector: pay for the queries that are above a threshold, not for those below."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.accounting.law import FiniteLaw
from discreet.accounting.loss import Loss
from discreet.exact.balls import log_up
from discreet.exact.numbers import Exact, failure_share, proportion, whole
from discreet.mechanisms.grid import Grid, require_names, write_call
from discreet.mechanisms.laplace import l1_steps
from discreet.mechanisms.selection.noisy_race import least_distance
from discreet.mechanisms.selection.scores import check_drawable, to_score_units
from discreet.mechanisms.sparse.law import transcript_law
from discreet.mechanisms.sparse.plan import Plan, Settings, steps_list
from discreet.mechanisms.sparse.run import NumericSparseRun, SparseRun, Transcript

_NUMBERS_PER_ROUND = Fraction(1, 8)
"""What a numeric answer costs, in rounds: with DR's 8/9 and 1/9, both errors are balanced."""


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class AboveThreshold:
    """Answer "below" for as long as it is true, then "above" once, and halt.

    ``threshold`` and the queries are whole numbers, or are put on the public ``grid``.

    Definition:
        The threshold gets discrete Laplace noise once, every query its own; the
        answer is "above" when the noisy query is at least the noisy threshold.
        Of epsilon, the share e1 = ``threshold_share`` buys the threshold's
        noise, of scale sensitivity / e1, and the rest e2 the queries', of scale
        2 sensitivity / e2, or sensitivity / e2 if ``monotonic``.  The default
        share is the best one, e1 : e2 = 1 : 2**(2/3), or 1 : 1 if monotonic;
        DR's Algorithm 1 has 1/2.

    Guarantee:
        ``epsilon``-differentially private for any number of queries, chosen
        adaptively, whose values change by at most ``sensitivity``.
        ``monotonic``: besides, when a unit is added all values go up, or all go
        down, under add/remove neighbours.  The noisy threshold and the noise of
        "below" are never shown.

    Accuracy:
        Except with probability beta, among k queries of which only the last may
        be near or above the threshold, every "above" is at least threshold -
        margin and every "below" at most threshold + margin.  ``margin`` is
        computed from the law; DR Theorem 3.24's 8 (ln k + ln(2 / beta))
        sensitivity / epsilon is ``theorem_margin``, which is about twice it.

    Reference:
        DR Algorithm 1, Theorems 3.23 and 3.24; the split and monotonic queries:
        Lyu, Su and Li (2017).  Proofs on the integers, with the tie rule, in
        docs/proofs/sparse-vector.md, Lemmas 1, 2, 4 and 5.

    Example:
        >>> alarm = AboveThreshold(threshold=900, sensitivity=3, epsilon="1/2")
        >>> alarm
        AboveThreshold(threshold=900, sensitivity=3, epsilon='1/2')
        >>> run = alarm.start()
        >>> run.ask(25), run.ask(140), run.ask(2400)
        (False, False, True)
        >>> run.ask(7)
        Traceback (most recent call last):
        ...
        discreet.errors.Halted: H1: this sparse vector has answered "above" 1 time and halted.
        Why: the price covered that many answers, and one more would be free of charge.
        Fix: start a new run and pay for it: mechanism.start().
        >>> alarm.loss.epsilon
        Fraction(1, 2)
        >>> alarm.margin("0.05", queries=40), alarm.theorem_margin("0.05", queries=40)
        (129, 356)
    """

    threshold: Fraction
    sensitivity: Fraction
    epsilon: Fraction
    monotonic: bool
    threshold_share: Fraction | None
    grid: Grid | None
    plan: Plan = field(compare=False)

    def __init__(
        self,
        *,
        threshold: Exact,
        sensitivity: Exact,
        epsilon: Exact,
        monotonic: bool = False,
        threshold_share: Exact | None = None,
        grid: Grid | None = None,
    ) -> None:
        settings = Settings.check(threshold, sensitivity, epsilon, monotonic=monotonic, grid=grid)
        share = (
            None if threshold_share is None else proportion(threshold_share, name="threshold_share")
        )
        plan = settings.plan(settings.epsilon, share=share)
        settings.give_to(self, threshold_share=share, plan=plan)

    def __repr__(self) -> str:
        return write_call(
            self,
            threshold=self.threshold,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            monotonic=self.monotonic or None,
            threshold_share=self.threshold_share,
            grid=self.grid,
        )

    @property
    def loss(self) -> Loss:
        """What one run costs one unit, however many queries it is asked."""
        return Loss.pure(self.epsilon)

    def start(self) -> SparseRun:
        """A run, with its own secret threshold; each run costs ``loss``."""
        return SparseRun(self.plan)

    def release(self, values: Any) -> Transcript:
        """A run asked all of ``values`` in order: where it answered "above", if it did."""
        return self.start().ask_many(values)

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, queries: int
    ) -> int | Fraction:
        """How wrong an answer can be, except with probability ``beta``, computed from the law.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``queries`` is how many are asked.
        """
        beta = failure_share(beta, confidence)
        return _margin(self.plan, beta, queries)

    def theorem_margin(self, beta: Exact, *, queries: int) -> int | Fraction:
        """The same by DR Theorem 3.24, rounded up to even steps of the grid.

        ``beta`` is the chance that some answer is further off, ``queries`` how many are asked.
        """
        return _theorem_margin(self.plan, self.sensitivity, self.epsilon, beta, queries)

    def law(self, values: Any) -> FiniteLaw:
        """The exact law of the answers to ``values``: tuples of bools, up to the halt."""
        return transcript_law(self.plan, steps_list(values, self.grid))


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Sparse:
    """Answer "above" or "below" until "above" was answered ``cutoff`` times.

    ``threshold`` and the queries are whole numbers, or are put on the public ``grid``;
    ``sensitivity`` and ``monotonic`` are those of :class:`AboveThreshold`.

    Definition:
        ``cutoff`` rounds of :class:`AboveThreshold`, each with a fresh noisy
        threshold.  With ``renew=False`` the first noisy threshold is kept: its
        noise is then paid for once, with e1 : e2 = 1 : (2 cutoff)**(2/3) or
        1 : cutoff**(2/3) if monotonic, and scales sensitivity / e1 and
        2 cutoff sensitivity / e2, or half of that if monotonic.

    Guarantee:
        ``epsilon``-differentially private if ``delta`` is 0; otherwise
        (epsilon, delta)-differentially private.  Then each round costs the
        greatest e for which ``cutoff`` times ``Loss.pure(e)`` is at most
        epsilon at delta, certified; DR's epsilon / sqrt(8 c ln(1 / delta)) is
        smaller, or wrong where epsilon is large.  ``loss`` is what an account
        adds, and ``loss.epsilon_at(delta)`` is at most epsilon.

    Accuracy:
        As for :class:`AboveThreshold`, when at most ``cutoff`` of the k queries
        are near or above the threshold.  DR Theorem 3.26 is ``theorem_margin``.

    Reference:
        DR Algorithm 2, Theorems 3.25 and 3.26; the kept threshold: Lyu, Su and
        Li (2017), Algorithm 7.  Proofs in docs/proofs/sparse-vector.md,
        Lemmas 3 to 6.

    Example:
        >>> alarms = Sparse(threshold=900, cutoff=3, sensitivity=2, epsilon="3/2")
        >>> alarms.release([25, 2400, 140, 2500, 33, 2600, 18]).above.tolist()
        [1, 3, 5]
        >>> kept = Sparse(threshold=900, cutoff=3, sensitivity=2, epsilon="3/2", renew=False)
        >>> alarms.margin("0.05", queries=40), kept.margin("0.05", queries=40)
        (98, 66)
        >>> many = Sparse(threshold=900, cutoff=60, sensitivity=2, epsilon="3/2", delta="1e-6")
        >>> many.loss.epsilon_at("1e-6") <= Fraction(3, 2), many.round_epsilon > Fraction(3, 2) / 60
        (True, True)
    """

    threshold: Fraction
    cutoff: int
    sensitivity: Fraction
    epsilon: Fraction
    delta: Fraction
    monotonic: bool
    renew: bool
    grid: Grid | None
    round_epsilon: Fraction = field(compare=False)
    """What one round costs; with a kept threshold, epsilon / cutoff."""
    plan: Plan = field(compare=False)

    def __init__(
        self,
        *,
        threshold: Exact,
        cutoff: int,
        sensitivity: Exact,
        epsilon: Exact,
        delta: Exact = 0,
        monotonic: bool = False,
        renew: bool = True,
        grid: Grid | None = None,
    ) -> None:
        settings = Settings.check(
            threshold,
            sensitivity,
            epsilon,
            monotonic=monotonic,
            grid=grid,
            cutoff=cutoff,
            delta=delta,
            renew=renew,
        )
        price = settings.round_price(Loss.pure)
        settings.give_to(self, round_epsilon=price, plan=settings.plan(price))

    def __repr__(self) -> str:
        return _write(self)

    @property
    def loss(self) -> Loss:
        """What one run costs one unit; at ``delta`` it is at most ``epsilon``."""
        if not self.renew:
            return Loss.pure(self.epsilon)
        return self.cutoff * Loss.pure(self.round_epsilon)

    def start(self) -> SparseRun:
        """A run, with its own secret thresholds; each run costs ``loss``."""
        return SparseRun(self.plan)

    def release(self, values: Any) -> Transcript:
        """A run asked all of ``values`` in order: where it answered "above"."""
        return self.start().ask_many(values)

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, queries: int
    ) -> int | Fraction:
        """How wrong an answer can be, except with probability ``beta``, computed from the law.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``queries`` is how many are asked.
        """
        beta = failure_share(beta, confidence)
        return _margin(self.plan, beta, queries)

    def theorem_margin(self, beta: Exact, *, queries: int) -> int | Fraction:
        """The same by DR Theorem 3.26, with the price of a round that is in force.

        ``beta`` is the chance that some answer is further off, ``queries`` how many are asked.
        """
        share = proportion(beta, name="beta") / self.cutoff
        return _theorem_margin(self.plan, self.sensitivity, self.round_epsilon, share, queries)

    def law(self, values: Any) -> FiniteLaw:
        """The exact law of the answers to ``values``: tuples of bools, up to the halt."""
        return transcript_law(self.plan, steps_list(values, self.grid))


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class NumericSparse:
    """As :class:`Sparse`, but a query above the threshold is answered with its noisy value.

    ``threshold``, ``sensitivity``, ``monotonic``, ``renew`` and ``grid`` are those of
    :class:`Sparse`.

    Definition:
        :class:`Sparse` decides; for "above", the value itself is published with
        fresh discrete Laplace noise, at one eighth of the price of a round.
        The noise of the decision is never reused for the answer.

    Guarantee:
        ``epsilon``-differentially private if ``delta`` is 0 (8/9 for the decisions
        and 1/9 for the values, as in DR), else (epsilon, delta)-differentially
        private with the greatest certified price of a round.  DR prints
        e2 = 2 / (sqrt(512) + 1) there, without the factor epsilon.

    Accuracy:
        Except with probability beta, every published value is within ``margin``
        of the true one and every "below" at most threshold + margin, when at
        most ``cutoff`` of the k queries are near or above.  DR Theorem 3.28 is
        ``theorem_margin``.

    Reference:
        DR Algorithm 3, Theorems 3.27 and 3.28.  Proofs in
        docs/proofs/sparse-vector.md, Lemmas 5 and 7.

    Example:
        >>> alarms = NumericSparse(threshold=900, cutoff=3, sensitivity=2, epsilon="9/2")
        >>> run = alarms.start()
        >>> run.ask(25), type(run.ask(2400))
        (None, <class 'int'>)
        >>> alarms.round_epsilon, alarms.loss.epsilon
        (Fraction(4, 3), Fraction(9, 2))
    """

    threshold: Fraction
    cutoff: int
    sensitivity: Fraction
    epsilon: Fraction
    delta: Fraction
    monotonic: bool
    renew: bool
    grid: Grid | None
    round_epsilon: Fraction = field(compare=False)
    """What the decisions of one round cost; with a kept threshold, their share of a round."""
    answer_loss: Loss = field(compare=False)
    """What one published value costs."""
    plan: Plan = field(compare=False)

    def __init__(
        self,
        *,
        threshold: Exact,
        cutoff: int,
        sensitivity: Exact,
        epsilon: Exact,
        delta: Exact = 0,
        monotonic: bool = False,
        renew: bool = True,
        grid: Grid | None = None,
    ) -> None:
        settings = Settings.check(
            threshold,
            sensitivity,
            epsilon,
            monotonic=monotonic,
            grid=grid,
            cutoff=cutoff,
            delta=delta,
            renew=renew,
        )
        steps = settings.steps

        def answer(price: Fraction) -> Loss:
            return Loss.laplace(sensitivity=steps, scale=steps / (_NUMBERS_PER_ROUND * price))

        price = settings.round_price(lambda one: Loss.pure(one) + answer(one))
        scale = check_drawable(steps / (_NUMBERS_PER_ROUND * price))
        settings.give_to(
            self,
            round_epsilon=price,
            answer_loss=answer(price),
            plan=settings.plan(price, answers=scale),
        )

    def __repr__(self) -> str:
        return _write(self)

    @property
    def loss(self) -> Loss:
        """What one run costs one unit; at ``delta`` it is at most ``epsilon``."""
        decisions = Loss.pure(self.round_epsilon)
        if not self.renew:  # one bound for all decisions together
            return Loss.pure(self.cutoff * self.round_epsilon) + self.cutoff * self.answer_loss
        return self.cutoff * (decisions + self.answer_loss)

    def start(self) -> NumericSparseRun:
        """A run, with its own secret thresholds; each run costs ``loss``."""
        return NumericSparseRun(self.plan)

    def release(self, values: Any) -> Transcript:
        """A run asked all of ``values`` in order: where it answered, and what."""
        return self.start().ask_many(values)

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, queries: int
    ) -> int | Fraction:
        """How wrong an answer can be, except with probability ``beta``, computed from the law.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``queries`` is how many are asked.
        """
        beta = failure_share(beta, confidence)
        return _margin(self.plan, beta, queries)

    def theorem_margin(self, beta: Exact, *, queries: int) -> int | Fraction:
        """The same by DR Theorem 3.28, with the price of a round that is in force.

        ``beta`` is the chance that some answer is further off, ``queries`` how many are asked.
        """
        share = proportion(beta, name="beta") / (2 * self.cutoff)
        return _theorem_margin(self.plan, self.sensitivity, self.round_epsilon, share, queries)


def _write(mechanism: Sparse | NumericSparse) -> str:
    return write_call(
        mechanism,
        threshold=mechanism.threshold,
        cutoff=mechanism.cutoff,
        sensitivity=mechanism.sensitivity,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta or None,
        monotonic=mechanism.monotonic or None,
        renew=None if mechanism.renew else False,
        grid=mechanism.grid,
    )


def _margin(plan: Plan, beta: Exact, queries: int) -> int | Fraction:
    count = whole(queries, name="queries", least=1)
    steps = least_distance(
        lambda distance: plan.failure(distance, count), proportion(beta, name="beta")
    )
    return steps if plan.grid is None else to_score_units(Fraction(steps), plan.grid)


def _theorem_margin(
    plan: Plan, sensitivity: Fraction, price: Fraction, beta: Exact, queries: int
) -> int | Fraction:
    """8 (ln k + ln(2 / beta)) sensitivity / price.

    Rounded up to an even number of steps: half of it is allowed to each of the
    two noises, and P(|Z| > m) <= exp(-m / scale) for whole m.
    """
    step = Fraction(1) if plan.grid is None else plan.grid.step
    steps = l1_steps(sensitivity, grid=plan.grid, entries_changed=None)
    count = whole(queries, name="queries", least=1)
    exact = 8 * log_up(2 * count / proportion(beta, name="beta")) * steps / price
    even = 2 * math.ceil(exact / 2)
    return even if plan.grid is None else (even + 1) * step
