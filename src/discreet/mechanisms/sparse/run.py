"""A sparse vector at work: queries come one at a time, and it stops after so many answers.

The run holds the only secret of the mechanism, the noisy threshold, inside a
function, not in an attribute; it prints as withheld.  It cannot be copied,
pickled, or carried into another process: two copies of one secret, asked
different questions, are no longer what was proved.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Halted, InvalidParameter
from discreet.mechanisms.grid import GREATEST, LEAST, Grid, Integers, saturating_sum, to_steps
from discreet.mechanisms.selection.scores import REACH, too_far
from discreet.mechanisms.sparse.plan import Plan
from discreet.noise import discrete_laplace

_CHUNK = 1 << 15


class Transcript(NamedTuple):
    """What a run answered to an array of queries: how many were ``asked``, which are ``above``.

    ``answers`` are their noisy values, if the mechanism gives them.
    """

    asked: int
    """How many of the queries were answered; all of them unless the run halted."""
    above: Integers
    """The indices of those answered with "above"."""
    answers: Any = None
    """Their noisy values, if the mechanism gives them."""


class SparseRun:
    """One run of a sparse vector, as its ``plan`` says; made by ``start()``.

    >>> from discreet.mechanisms import Sparse
    >>> run = Sparse(threshold=900, cutoff=2, sensitivity=3, epsilon="1/2").start()
    >>> run.ask(25), run.ask(2400)
    (False, True)
    >>> run
    <SparseRun: 2 asked, 1 of 2 above, threshold withheld>
    """

    __slots__ = ("_above", "_asked", "_lock", "_plan", "_process", "_verdicts")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._verdicts = _verdicts(plan)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._asked = 0
        self._above = 0

    def __repr__(self) -> str:
        state = ", halted" if self.halted else ""
        return (
            f"<{type(self).__name__}: {self._asked} asked, {self._above} of {self._plan.cutoff} "
            f"above, threshold withheld{state}>"
        )

    @property
    def asked(self) -> int:
        """How many queries have been answered."""
        return self._asked

    @property
    def remaining(self) -> int:
        """How many more times "above" can be answered."""
        return self._plan.cutoff - self._above

    @property
    def halted(self) -> bool:
        """Whether every answer that was paid for has been given."""
        return self._above >= self._plan.cutoff

    def ask(self, value: Any) -> Any:
        """Whether the query's ``value``, with noise, reaches the noisy threshold."""
        return bool(len(self.ask_many([value]).above))

    def ask_many(self, values: Any) -> Transcript:
        """Ask a list or array of ``values`` in order, until they end or the run halts.

        The law is that of asking them one at a time.  Once halted the rest is
        not asked, and asking again is refused.
        """
        queries = _queries(values, self._plan.grid)
        with self._lock:  # two threads must not both spend the last answer
            self._refuse_elsewhere()
            if self.halted:
                raise _halted_refusal(self._plan.cutoff)
            asked, above = self._verdicts(queries, self.remaining)
            answers = self._numbers(queries[above], values)
            self._asked += asked
            self._above += len(above)
        return Transcript(asked, above, answers)

    def _numbers(self, steps: Integers, like: Any) -> Any:  # noqa: ARG002
        return None  # only a numeric run says how high

    def _refuse_elsewhere(self) -> None:
        if os.getpid() != self._process:
            self._refuse_copy()

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise Halted(
            "H3",
            "a run of a sparse vector cannot be copied, pickled or carried to another process.",
            why="two copies share one secret threshold, and asking both tells more than was "
            "paid for.",
            fix="start a new run and pay for it, or ask this one where it was started.",
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse_copy


class NumericSparseRun(SparseRun):
    """One run of a numeric sparse vector, as its ``plan`` says; made by ``start()``."""

    __slots__ = ()

    def ask(self, value: Any) -> Any:
        """The query's ``value`` with fresh noise if it is above the threshold, or else ``None``."""
        answers = self.ask_many([value]).answers
        return answers[0] if len(answers) else None

    def _numbers(self, steps: Integers, like: Any) -> Any:
        scale, grid = self._plan.answer_scale, self._plan.grid
        if scale is None:
            raise InvalidParameter(
                "P4",
                "this plan has no noise for its answers.",
                why="a value without fresh noise would be the truth itself.",
                fix="start the run from NumericSparse(...).",
            )
        noisy = saturating_sum(steps, discrete_laplace(scale, len(steps)))
        if isinstance(like, np.ndarray):
            return noisy if grid is None else grid.lift(noisy, like=noisy)
        if grid is None:
            return noisy.tolist()
        return [grid.lift(one, like=like[0]) for one in noisy.tolist()]


class NoisyThreshold:
    """The secret of one round: the threshold with its noise; drawn here, and shown nowhere.

    A run that outlives its process keeps it sealed, by ``reveal``, and never asks
    again with one that has answered "above".

    >>> from discreet.mechanisms import AboveThreshold
    >>> NoisyThreshold.draw(AboveThreshold(threshold=900, sensitivity=3, epsilon=2).plan)
    NoisyThreshold(withheld)
    """

    __slots__ = ("__value",)

    def __init__(self, value: int) -> None:
        self.__value = value

    @classmethod
    def draw(cls, plan: Plan) -> NoisyThreshold:
        """A fresh one."""
        noisy = plan.threshold + discrete_laplace(plan.threshold_scale)
        return cls(min(max(noisy, LEAST), GREATEST))

    def first_above(self, plan: Plan, queries: Integers) -> int | None:
        """The place of the first query that, with noise of its own, reaches it; None if none does.

        Whatever comes after that place has not been asked.
        """
        for start in range(0, len(queries), _CHUNK):
            part = queries[start : start + _CHUNK]
            hits = saturating_sum(part, _draw(plan.query_scale, len(part))) >= self.__value
            first = int(hits.argmax())
            if hits[first]:
                return start + first
        return None

    def reveal(self) -> int:
        """The number itself; only to be sealed, or sent to the process that holds the data."""
        return self.__value

    def __repr__(self) -> str:
        return "NoisyThreshold(withheld)"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a noisy threshold cannot be shown, copied or compared")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse
    __format__ = __eq__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def _verdicts(plan: Plan) -> Callable[[Integers, int], tuple[int, Integers]]:
    """The secret half of a run: which of the next queries are above, at most ``most`` of them."""
    secret = NoisyThreshold.draw(plan).reveal()

    def verdicts(queries: Integers, most: int) -> tuple[int, Integers]:
        nonlocal secret
        above: list[int] = []
        for start in range(0, len(queries), _CHUNK):
            part = queries[start : start + _CHUNK]
            noisy = saturating_sum(part, _draw(plan.query_scale, len(part)))
            index = 0
            while index < len(noisy):
                hits: NDArray[np.bool_] = noisy[index:] >= secret
                first = int(hits.argmax())
                if not hits[first]:
                    break
                index += first + 1
                above.append(start + index - 1)
                if plan.renew:  # never the same threshold twice (DR Algorithm 2)
                    secret = NoisyThreshold.draw(plan).reveal()
                if len(above) == most:
                    return start + index, np.array(above, dtype=np.int64)
        return len(queries), np.array(above, dtype=np.int64)

    return verdicts


def _draw(scale: Fraction, size: int) -> Integers:
    if size == 1:  # a single query is the usual case, and a single draw is twice as fast
        return np.array([discrete_laplace(scale)])
    return discrete_laplace(scale, size)


def _queries(values: Any, grid: Grid | None) -> Integers:
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise _not_a_stream()
        steps: Integers
        if grid is not None:
            steps = grid.snap(values)
        elif values.dtype == np.int64:
            steps = values
        else:
            steps = np.asarray(to_steps(values, None), dtype=np.int64)
        if len(steps) and (int(steps.min()) < -REACH or int(steps.max()) > REACH):
            raise too_far()
        return steps
    if not isinstance(values, list | tuple):
        raise _not_a_stream()
    whole = to_steps(list(values), grid)
    if isinstance(whole, int) or any(abs(one) > REACH for one in whole):
        raise too_far()
    return np.array(whole, dtype=np.int64)


def _not_a_stream() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "ask_many takes a list or a one-dimensional array of query values.",
        why="queries are answered in order, one value each.",
        fix="pass a list such as [25, 40, 2400], or ask(25) for a single value.",
    )


def _halted_refusal(cutoff: int) -> Halted:
    return Halted(
        "H1",
        f'this sparse vector has answered "above" {cutoff} time{"s" * (cutoff > 1)} and halted.',
        why="the price covered that many answers, and one more would be free of charge.",
        fix="start a new run and pay for it: mechanism.start().",
    )
