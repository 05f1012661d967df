"""Adaptive Laplace: what counts is the joint sensitivity of everything asked."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from discreet.accounting.law import DiscreteLaplaceLaw
from discreet.accounting.loss import Loss
from discreet.errors import Halted, InvalidParameter
from discreet.exact.numbers import Exact, failure_share, nonnegative, positive, whole
from discreet.mechanisms.grid import (
    Grid,
    add_noise,
    require_names,
    set_fields,
    to_steps,
    write_call,
)
from discreet.mechanisms.laplace import (
    fractional_without_grid,
    l1_steps,
    margin_steps,
    too_much_noise,
)
from discreet.noise import discrete_laplace
from discreet.noise.laplace import GREATEST_SCALE

Sensitivity = Exact | Mapping[Hashable, Exact]
"""How much one record can change a query: in every region, or for each region by name."""


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdaptiveLaplace:
    """Answer queries chosen one after the other, until together they are too sensitive.

    Definition:
        The records' universe is divided into ``regions``.  Each query says how
        much one record of each region can change it.  ``start`` opens a run,
        which answers a query with two-sided geometric noise of scale
        joint_sensitivity / epsilon, in whole steps of the ``grid``, as long as, for
        every region, the sensitivities of all answered queries add up to at
        most ``joint_sensitivity``.  Otherwise it refuses, before the query is
        evaluated; a refused query leaves the run as it was.

    Guarantee:
        However the queries depend on the answers before them, the whole run is
        ``epsilon``-differentially private under add/remove neighbours of one
        record, if each query's stated sensitivities hold and no record lies in
        two regions.  Queries about disjoint regions cost the greatest, not the
        sum.  Its concentrated loss is that of one answer of sensitivity
        ``joint_sensitivity``, too (docs/proofs/divergence.md, Lemma 6).

    Accuracy:
        Every answer has the same law, whatever was asked before: ``margin`` as
        for a Laplace mechanism of that scale, exactly.

    Reference:
        DMNS Theorem 3.4, on the integers; the joint sensitivity by regions is
        its "disjoint analyses" in section 3.2.

    Example:
        >>> halves = ("north", "south")
        >>> curator = AdaptiveLaplace(joint_sensitivity=6, epsilon="1/2", regions=halves)
        >>> run = curator.start()
        >>> north = run.ask(412, sensitivity={"north": 4})
        >>> south = run.ask(77, sensitivity={"south": 5})
        >>> run.joint_sensitivity, curator.scale, curator.margin("0.05")
        (Fraction(5, 1), Fraction(12, 1), 36)
        >>> run.ask(lambda: 489, sensitivity=2)
        Traceback (most recent call last):
        ...
        discreet.errors.Halted: H2: this query would bring the joint sensitivity to 7 of 6.
        Why: the noise was made to hide that much of one person in all answers together, and with
        this answer more of them would show.
        Fix: ask about regions that have some left (run.remaining), or pay for a new run:
        mechanism.start().
        >>> run.remaining["north"], curator.loss.epsilon
        (Fraction(2, 1), Fraction(1, 2))
    """

    joint_sensitivity: Fraction
    epsilon: Fraction
    regions: tuple[Hashable, ...]
    grid: Grid | None
    steps: int = field(compare=False)
    """The joint sensitivity, in steps of the grid."""
    step_scale: Fraction = field(compare=False)
    """The scale of the noise, in steps of the grid."""

    def __init__(
        self,
        *,
        joint_sensitivity: Exact,
        epsilon: Exact,
        regions: Iterable[Hashable] = ("everyone",),
        grid: Grid | None = None,
    ) -> None:
        total = positive(joint_sensitivity, name="joint_sensitivity")
        price = positive(epsilon, name="epsilon")
        names = tuple(regions)
        if not names or len(set(names)) != len(names):
            raise InvalidParameter(
                "P4" if names else "P5",
                "there must be at least one region, and each region once.",
                why="a record outside all regions, or in two, would not be counted as it should.",
                fix="list the parts of a public partition, such as regions=('north', 'south').",
            )
        steps = total if grid is None else total / grid.step
        if steps.denominator != 1:
            raise (
                fractional_without_grid("joint_sensitivity", total)
                if grid is None
                else _between_steps(total, grid)
            )
        scale = steps / price
        if scale > GREATEST_SCALE:
            raise too_much_noise("epsilon")
        set_fields(self, joint_sensitivity=total, epsilon=price, regions=names, grid=grid)
        set_fields(self, steps=int(steps), step_scale=scale)

    def __repr__(self) -> str:
        return write_call(
            self,
            joint_sensitivity=self.joint_sensitivity,
            epsilon=self.epsilon,
            regions=None if self.regions == ("everyone",) else self.regions,
            grid=self.grid,
        )

    @property
    def loss(self) -> Loss:
        """What one run costs one unit, however many queries it answers."""
        return Loss.laplace(sensitivity=self.steps, scale=self.step_scale)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in the unit of the answers."""
        return self.step_scale if self.grid is None else self.step_scale * self.grid.step

    def start(self) -> AdaptiveRun:
        """A run; each run costs ``loss``."""
        return AdaptiveRun(self)

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, queries: int = 1
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, no answer is off by more.

        Given is ``beta`` or ``confidence``, which is 1 - beta; ``queries`` is how many are asked.
        """
        steps = margin_steps(
            self.step_scale,
            failure_share(beta, confidence),
            whole(queries, name="queries", least=1),
        )
        return steps if self.grid is None else steps * self.grid.step

    def law(self, value: Any) -> DiscreteLaplaceLaw:
        """The exact law of the answer to a query of this ``value``, in steps of the grid."""
        steps = to_steps(value, self.grid)
        if not isinstance(steps, int):
            raise _one_number()
        return DiscreteLaplaceLaw(center=steps, scale=self.step_scale)


class AdaptiveRun:
    """One conversation with an :class:`AdaptiveLaplace`; safe to share between threads.

    ``mechanism`` is that one; what was asked is counted here.
    """

    __slots__ = ("_lock", "_used", "mechanism")

    def __init__(self, mechanism: AdaptiveLaplace) -> None:
        self.mechanism = mechanism
        self._used = dict.fromkeys(mechanism.regions, 0)  # in steps
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        used, total = self.joint_sensitivity, self.mechanism.joint_sensitivity
        return f"<AdaptiveRun: joint sensitivity {used} of {total}>"

    def __reduce__(self) -> tuple[object, ...]:
        raise Halted(
            "H3",
            "a run cannot be copied or pickled.",
            why="two copies would each answer all that one was promised to.",
            fix="start a new run and pay for it: mechanism.start().",
        )

    @property
    def loss(self) -> Loss:
        """What the whole run costs one unit; it does not grow with the queries."""
        return self.mechanism.loss

    @property
    def joint_sensitivity(self) -> Fraction:
        """Of all that has been answered: the greatest over regions."""
        return max(self._used.values()) * self._step

    @property
    def remaining(self) -> Mapping[Hashable, Fraction]:
        """For each region, how sensitive to its records further queries may be."""
        left = {name: self.mechanism.steps - used for name, used in self._used.items()}
        return MappingProxyType({name: steps * self._step for name, steps in left.items()})

    @property
    def _step(self) -> Fraction:
        grid = self.mechanism.grid
        return Fraction(1) if grid is None else grid.step

    def admits(self, sensitivity: Sensitivity) -> bool:
        """Whether a query of this ``sensitivity`` would be answered; anyone can work it out."""
        after = self._after(self._charges(sensitivity))
        return max(after.values()) <= self.mechanism.steps

    def ask(self, value: Any, *, sensitivity: Sensitivity) -> Any:
        """The answer to a query, or a refusal that does not depend on the data.

        ``value`` is a number, or a function without arguments that returns one
        and is called only once the query is admitted.  ``sensitivity`` is how
        much one record can change it: one bound for all regions, or a bound for
        each region it looks at (a region that is not named must not matter).
        """
        charges = self._charges(sensitivity)
        with self._lock:
            # Charged before the value is seen: whatever happens then, nothing is given back.
            after = self._after(charges)
            if max(after.values()) > self.mechanism.steps:
                raise _too_sensitive(max(after.values()) * self._step, self.mechanism)
            self._used = after
        number = value() if callable(value) else value
        if isinstance(to_steps(number, self.mechanism.grid), list):
            raise _one_number()
        scale = self.mechanism.step_scale
        return add_noise(number, self.mechanism.grid, lambda size: discrete_laplace(scale, size))

    def _charges(self, sensitivity: Sensitivity) -> dict[Hashable, int]:
        """The steps that each region pays."""
        regions = self.mechanism.regions
        if not isinstance(sensitivity, Mapping):
            sensitivity = dict.fromkeys(regions, sensitivity)
        unknown = [name for name in sensitivity if name not in self._used]
        if unknown:
            raise InvalidParameter(
                "P4",
                f"{unknown[0]!r} is not a region; the regions are {', '.join(map(repr, regions))}.",
                why="a change that no declared region pays for would be free.",
                fix="name the regions that were declared, or give one bound for all.",
            )
        bounds = {name: nonnegative(s, name="sensitivity") for name, s in sensitivity.items()}
        return {name: self._steps(bound) for name, bound in bounds.items()}

    def _steps(self, bound: Fraction) -> int:
        # Lemma 1 of docs/proofs/laplace.md: rounding to the grid moves one number by whole steps.
        return l1_steps(bound, grid=self.mechanism.grid, entries_changed=None) if bound else 0

    def _after(self, charges: Mapping[Hashable, int]) -> dict[Hashable, int]:
        return {name: used + charges.get(name, 0) for name, used in self._used.items()}


def _too_sensitive(joint: Fraction, mechanism: AdaptiveLaplace) -> Halted:
    return Halted(
        "H2",
        f"this query would bring the joint sensitivity to {joint} of "
        f"{mechanism.joint_sensitivity}.",
        why="the noise was made to hide that much of one person in all answers together, and "
        "with this answer more of them would show.",
        fix="ask about regions that have some left (run.remaining), or pay for a new run: "
        "mechanism.start().",
    )


def _between_steps(total: Fraction, grid: Grid) -> InvalidParameter:
    return InvalidParameter(
        "P6",
        f"joint_sensitivity must be a whole number of steps of {grid!r}, got {total}.",
        why="values on the grid change by whole steps; the fraction would be noise for nobody.",
        fix=f"pass a multiple of {grid.step}.",
    )


def _one_number() -> InvalidParameter:
    return InvalidParameter(
        "P6",
        "a query must have one number as its value.",
        why="the sensitivity stated for it is that of one number.",
        fix="ask one query for each entry, naming the regions that entry looks at.",
    )


__all__ = ["AdaptiveLaplace", "AdaptiveRun", "Sensitivity"]
