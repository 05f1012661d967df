"""Counting as time goes on: a running total after every step, for one charge.

The square-root factorisation: the totals are B C x with B = C the lower-triangular
Toeplitz matrix whose square is all ones.  Each step publishes one whole number, a
line of C (on a grid) times the increments so far, plus noise; the totals are
B-combinations of what was published.  The error grows like the logarithm of the
horizon, with the best constant known but for a few per cent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.errors import Halted, InvalidParameter
from discreet.exact.numbers import Exact, proportion, whole
from discreet.mechanisms.grid import set_fields
from discreet.publication.journal import Journal
from discreet.publication.measure import Doubles, Integers, Measurement, Running
from discreet.publication.spend import Noise, Spend, deviation

STEPS = 2**12
"""The factor's weights are whole multiples of 1 / STEPS."""

MOST_STEPS = 2**16
"""A longer horizon is refused."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Counter:
    """Publish running totals of ``cells`` counts over a horizon of steps.

    ``horizon`` is how many steps there are, and ``spend`` the rho of all of them.

    Definition:
        After step t, y_t = sum over s <= t of c_(t-s) x_s + Z_t is published, in
        whole numbers: c is the square-root sequence 1, 1/2, 3/8, ... rounded to
        a grid, x_s the increments of step s, Z_t discrete Gaussian.  The totals
        are the combination of y_1 ... y_t that is unbiased.

    Guarantee:
        rho-zCDP for the whole horizon, also when increments depend on what was
        published before.  A unit may add at most one, in each of at most
        ``steps_per_unit`` steps, to one of the cells; with one step this
        protects an event, with as many as the horizon a person over all of it
        (docs/proofs/publication.md, Lemmas 10 and 11).

    Accuracy:
        The total after step t has standard deviation ``deviations()[t]``, about
        (0.57 + ln(t) / pi) sigma; ``margin`` is its normal quantile.

    Reference:
        Fichtenberger, Henzinger and Upadhyay (2023); Henzinger, Upadhyay and
        Upadhyay (2023) on the mean error; Denisov, McMahan, Rush, Smith and
        Thakurta (2022) on adaptive streams.

    Example:
        >>> visits = Counter(horizon=365, spend=Spend.concentrated("1/10"))
        >>> visits.loss.rho
        Fraction(1, 10)
        >>> run = visits.start()
        >>> total = run.step([120])
        >>> bool(abs(total[0] - 120) < 6 * visits.deviations()[0])
        True
    """

    horizon: int
    cells: int
    steps_per_unit: int
    spend: Spend
    factor: Integers
    noise: Noise = field(repr=False)

    def __init__(
        self, *, horizon: int, spend: Spend, cells: int = 1, steps_per_unit: int = 1
    ) -> None:
        length = whole(horizon, name="horizon", least=1)
        touched = whole(steps_per_unit, name="steps_per_unit", least=1)
        if length > MOST_STEPS or touched > length or not spend.gaussian:
            raise InvalidParameter(
                "P2" if spend.gaussian else "P4",
                f"a counter takes 1 to {MOST_STEPS} steps, of which a unit touches no more than "
                "there are, and Gaussian noise.",
                why="its noise is made for the whole horizon at once; Laplace noise would grow "
                "with its length.",
                fix="choose a shorter horizon or longer steps, and Spend.concentrated(...).",
            )
        factor = np.rint(square_root_sequence(length) * STEPS).astype(np.int64)
        # The worst unit: the first steps, one after the other (Lemma 11).
        sums = np.concatenate([np.zeros(touched, dtype=np.int64), np.cumsum(factor)])
        reached = sums[touched:] - sums[:length]
        squared = sum(int(one) ** 2 for one in reached)
        noise = spend.noise_of(l1=int(reached.sum()), l2_squared=squared)
        set_fields(self, horizon=length, cells=whole(cells, name="cells", least=1))
        set_fields(self, steps_per_unit=touched, spend=spend, factor=factor, noise=noise)

    @property
    def loss(self) -> Loss:
        """What the whole horizon costs, charged at the start."""
        return self.noise.loss

    def decoder(self) -> Doubles:
        """The sequence b with totals_t = sum over s <= t of b_(t-s) y_s: all ones over c."""
        inverse = np.zeros(self.horizon)
        factor = self.factor / STEPS
        for step in range(self.horizon):
            target = 1.0  # the prefix sums of a single one are all ones
            known = float(factor[1 : step + 1][::-1] @ inverse[:step])
            inverse[step] = (target - known) / factor[0]
        return inverse / STEPS

    def deviations(self) -> Doubles:
        """The standard deviation of the total after every step."""
        return np.asarray(deviation(self.noise) * np.sqrt(np.cumsum(self.decoder() ** 2)))

    def margin(self, beta: Exact, *, step: int) -> float:
        """The total after a ``step`` is within this, except with probability ``beta``."""
        allowed = float(proportion(beta, name="beta"))
        return float(self.deviations()[step - 1]) * NormalDist().inv_cdf(1 - allowed / 2)

    def start(self, folder: str | Path | None = None) -> CounterRun:
        """A run: one call of ``step`` for each step.

        With a ``folder`` every step is on the disk before it is shown, and a run that was killed
        goes on there: nothing is drawn twice.  The folder holds the true counts, and is as
        secret as the table they are counted in.
        """
        return CounterRun(self, None if folder is None else Journal(Path(folder), self._declare()))

    def _declare(self) -> dict[str, Any]:
        return {
            "counter": 1,
            "horizon": self.horizon,
            "cells": self.cells,
            "steps_per_unit": self.steps_per_unit,
            "rho": str(self.spend.amount),
            "rows_per_unit": self.spend.rows_per_unit,
        }


class CounterRun:
    """One counter as it goes; it holds the true increments, so it is never shown or copied.

    ``counter`` is what it is of; ``journal`` keeps every step on disk, if there is one.
    """

    def __init__(self, counter: Counter, journal: Journal | None = None) -> None:
        self.counter = counter
        self._journal = journal
        counted, released = ([], []) if journal is None else journal.read_steps()
        self.released: list[Integers] = released
        self._increments: list[Integers] = counted
        self._decoder = counter.decoder()

    def __repr__(self) -> str:
        return f"CounterRun(step {len(self.released)} of {self.counter.horizon})"

    def __reduce__(self) -> str:
        raise Halted(
            "H3",
            "a counter that runs cannot be copied.",
            why="two copies would publish one step twice, with one charge.",
            fix="keep one run; publish what it released.",
        )

    def step(self, increments: object) -> Doubles:
        """Add one step's counts and publish; the running totals so far, unbiased.

        ``increments`` has the count of this step for each cell.
        """
        counter = self.counter
        if len(self.released) >= counter.horizon:
            raise Halted(
                "H1",
                f"the counter has published its {counter.horizon} steps.",
                why="its noise was charged and made for that many.",
                fix="start another counter.",
            )
        fresh = np.asarray(increments, dtype=np.int64).reshape(-1)
        if fresh.size != counter.cells:
            raise InvalidParameter(
                "P6",
                f"a step needs {counter.cells} counts, one for each cell.",
                why="every cell is published at every step, whether or not anything happened.",
                fix="pass zeros where nothing was counted.",
            )
        step = len(self.released) + 1
        if self._journal is not None:  # what was counted first is what is told
            fresh = self._journal.keep(step, "counted", fresh)
        counted = [*self._increments, fresh]
        exact = counter.factor[:step][::-1] @ np.stack(counted)
        drawn = np.asarray(counter.noise.release(exact))
        if self._journal is not None:
            drawn = self._journal.keep(step, "released", drawn)
        self._increments.append(fresh)
        self.released.append(drawn)
        return self.totals()

    def totals(self) -> Doubles:
        """The running totals after the last step, from what was released."""
        return decode_total(self._decoder, self.released)


def draw_step(query: Running, counted: Integers) -> Measurement:
    """One step of a counter from what this step and all before it counted, with its noise."""
    exact: Integers = query.factor[::-1] @ counted
    return Measurement(query, np.asarray(query.noise.release(exact)))


def decode_total(decoder: Doubles, released: list[Integers]) -> Doubles:
    """The unbiased totals from released numbers alone."""
    weights = decoder[: len(released)][::-1]
    return np.asarray(weights @ np.stack(released).astype(np.float64))


def square_root_sequence(length: int) -> Doubles:
    """The first column of the square root of the all-ones lower triangle: 1, 1/2, 3/8, 5/16, ...

    >>> square_root_sequence(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    places = np.arange(1, length)
    return np.concatenate([[1.0], np.cumprod((2 * places - 1) / (2 * places))])


def mean_deviation(horizon: int, sharpness: float) -> float:
    """The root mean squared error over the horizon, before rounding to the grid."""
    squares = np.cumsum(square_root_sequence(horizon) ** 2)
    return math.sqrt(float(squares[-1] * squares.mean())) / sharpness
