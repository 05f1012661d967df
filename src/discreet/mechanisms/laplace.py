"""The Laplace mechanism, on the integers and on a public grid."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb

from discreet.accounting.law import DiscreteLaplaceLaw, ProductLaw
from discreet.accounting.loss import Loss
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball, floor_scaled, log_up
from discreet.exact.numbers import Exact, failure_share, nonnegative, positive, proportion, whole
from discreet.exact.records import dataclass
from discreet.exact.search import least_decimal
from discreet.mechanisms.grid import (
    Grid,
    add_noise,
    count_entries,
    require_names,
    set_fields,
    to_steps,
    write_call,
)
from discreet.noise import discrete_laplace
from discreet.noise.laplace import GREATEST_SCALE

if TYPE_CHECKING:
    from discreet.accounting.profile import LaplaceProfile


@require_names
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Laplace:
    """Publish numbers with two-sided geometric noise, calibrated to their L1 sensitivity.

    Definition:
        M(x) = f(x) + (Z_1, ..., Z_d), in whole steps of the ``grid``, where the Z_i
        are independent and P(Z_i = z) is proportional to exp(-|z| / scale).
        Without a grid, f must be whole-numbered and a step is 1.  With one, f
        is first put on the nearest multiple, halves up, and ``entries_changed``
        says how many entries of a vector one unit can change: rounding may move
        each of them one step further (Lemma 1).

    Guarantee:
        If the entries of f change by at most ``sensitivity`` in total (L1) when
        one unit is added or removed, M is ``epsilon``-differentially private, with
        scale = (sensitivity in steps) / epsilon.  The bound is attained.

    Accuracy:
        P(|Z_i| > m) = 2 q**(m + 1) / (1 + q), q = exp(-1 / scale); ``margin``
        is the least m that makes it at most beta, exactly, and with
        ``coordinates=k`` the least that covers all of k entries at once.
        It is never above DR Theorem 3.8's scale * ln(k / beta), plus one step.

    Reference:
        DMNS Proposition 3.3 with the density (1/2b) exp(-|y|/b), which its
        equation (4) misprints; DR Theorems 3.6 and 3.8.  Proofs in
        docs/proofs/laplace.md.

    Example:
        >>> counts = Laplace(sensitivity=3, epsilon="1/4")
        >>> counts
        Laplace(sensitivity=3, epsilon='1/4')
        >>> counts.loss.epsilon, counts.scale
        (Fraction(1, 4), Fraction(12, 1))
        >>> counts.margin("0.05"), counts.margin("0.05", coordinates=40)
        (36, 80)
        >>> type(counts.release(1041)), len(counts.release([1041, 977, 1204]))
        (<class 'int'>, 3)
        >>> Laplace.within(36, "0.95", sensitivity=3)
        Laplace(sensitivity=3, epsilon='61539/250000')
        >>> incomes = Laplace(sensitivity=2500, epsilon="1/2", grid=Grid("1/64"))
        >>> incomes.release(81_250.75) * 64 % 2 in (0.0, 1.0)
        True
    """

    sensitivity: Fraction
    epsilon: Fraction
    grid: Grid | None
    entries_changed: int | None
    steps: int = field(init=False, compare=False)
    """The sensitivity after snapping, in steps of the grid."""
    step_scale: Fraction = field(init=False, compare=False)
    """The scale of the noise, in steps of the grid."""
    loss: Loss = field(init=False, compare=False)

    def __init__(
        self,
        sensitivity: Exact,
        epsilon: Exact,
        *,
        grid: Grid | None = None,
        entries_changed: int | None = None,
    ) -> None:
        bound = positive(sensitivity, name="sensitivity")
        price = positive(epsilon, name="epsilon")
        steps = l1_steps(bound, grid=grid, entries_changed=entries_changed)
        scale = steps / price
        if not self.drawable(scale):
            raise too_much_noise("epsilon")
        set_fields(
            self, sensitivity=bound, epsilon=price, grid=grid, entries_changed=entries_changed
        )
        loss = Loss.laplace(sensitivity=Fraction(steps), scale=scale)
        set_fields(self, steps=steps, step_scale=scale, loss=loss)

    def __repr__(self) -> str:
        return write_call(
            self,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            grid=self.grid,
            entries_changed=self.entries_changed,
        )

    @classmethod
    def within(
        cls,
        margin: Exact,
        confidence: Exact,
        *,
        sensitivity: Exact,
        coordinates: int = 1,
        grid: Grid | None = None,
        entries_changed: int | None = None,
    ) -> Laplace:
        """The cheapest mechanism whose every answer is within ``margin``, so often.

        ``confidence`` is how often; ``sensitivity``, ``grid`` and ``entries_changed`` are those of
        the mechanism.

        ``coordinates`` entries are all within it together.  Cheapest on the
        ladder of six-digit decimals: one rung less of epsilon would miss.
        """
        beta = 1 - proportion(confidence, name="confidence")
        count = whole(coordinates, name="coordinates", least=1)
        steps = l1_steps(
            positive(sensitivity, name="sensitivity"), grid=grid, entries_changed=entries_changed
        )
        unit = 1 if grid is None else grid.step
        target = math.floor(nonnegative(margin, name="margin") / unit)
        guess = float(steps * log_up(2 * count / beta) / (target + 1))
        epsilon = least_decimal(
            lambda price: margin_steps(steps / price, beta, count) <= target, near=guess
        )
        return cls(
            sensitivity=sensitivity, epsilon=epsilon, grid=grid, entries_changed=entries_changed
        )

    @staticmethod
    def drawable(scale: Fraction) -> bool:
        """Whether draws of this ``scale``, in steps, fit 64-bit integers; if not, none is made."""
        return scale <= GREATEST_SCALE

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in the unit of the value."""
        return self.step_scale if self.grid is None else self.step_scale * self.grid.step

    @property
    def variance(self) -> float:
        """The variance of the noise in one entry, 2 q / (1 - q)**2 in the unit of the value."""
        half = 1 / (2 * float(self.step_scale))
        unit = 1.0 if self.grid is None else float(self.grid.step)
        return unit**2 / (2 * math.sinh(half) ** 2) if half < 350 else 0.0

    def release(self, value: Any, *, exact: bool = False) -> Any:
        """``value`` with noise: a number, a list or tuple, or an array; the same kind comes back.

        What calls itself an array, such as a series of pandas, comes back as numpy's.
        Without a grid, whole numbers: arrays of 64-bit ones saturate, or come back as
        Python's (dtype object) if ``exact``; arrays of Python's hold any size.  On a
        grid, any finite numbers: floats stay floats, others become fractions.
        """
        if type(value) is int and self.grid is None:
            return value + discrete_laplace(self.step_scale)
        refuse_unstated(self.grid, self.entries_changed, value)
        scale = self.step_scale
        return add_noise(value, self.grid, lambda size: discrete_laplace(scale, size), exact=exact)

    def refine(self, value: Any, earlier: Any, *, scale: Exact) -> Any:
        """``value`` with this noise, given an ``earlier`` release of it with noise of ``scale``.

        The law is exactly that of ``release``, and the noise a part of the earlier one's: so
        both together lose no more than this one alone, and the difference of their epsilons is
        charged (docs/proofs/known.md, Lemmas 6 and 7).  Of one earlier release at most one is
        made, and only if ``value`` is the very same.  Arrays of whole numbers.
        """
        from discreet.noise.refinement import refine_laplace  # few answers are improved

        exact = np.asarray(value).astype(object)
        drawn = (np.asarray(earlier).astype(object) - exact).astype(np.int64)
        return exact + refine_laplace(drawn, wider=scale, narrower=self.step_scale).astype(object)

    def margin(
        self, beta: Exact | None = None, *, confidence: Exact | None = None, coordinates: int = 1
    ) -> int | Fraction:
        """The least m such that, except with probability ``beta``, no entry is off by more.

        Given is ``beta`` or ``confidence``, which is 1 - beta; it covers so many ``coordinates`` at
        once.
        """
        steps = margin_steps(
            self.step_scale,
            failure_share(beta, confidence),
            whole(coordinates, name="coordinates", least=1),
        )
        return steps if self.grid is None else steps * self.grid.step

    @property
    def profile(self) -> LaplaceProfile | None:
        """Delta at every epsilon, if one unit changes one entry; None if it may change more."""
        if not changes_one(self.steps, self.grid, self.entries_changed):
            return None
        from discreet.accounting.profile import LaplaceProfile  # few releases are compared

        return LaplaceProfile(sensitivity=self.steps, scale=self.step_scale)

    @property
    def noise_law(self) -> DiscreteLaplaceLaw:
        """The exact law of the noise in one entry, counted in steps of the grid."""
        return DiscreteLaplaceLaw(center=0, scale=self.step_scale)

    def law(self, value: Any) -> DiscreteLaplaceLaw | ProductLaw:
        """The exact law of the release of a ``value``, counted in steps of the grid."""
        refuse_unstated(self.grid, self.entries_changed, value)
        steps = to_steps(value, self.grid)
        if isinstance(steps, int):
            return DiscreteLaplaceLaw(center=steps, scale=self.step_scale)
        return ProductLaw(tuple(DiscreteLaplaceLaw(one, self.step_scale) for one in steps))


def l1_steps(sensitivity: Fraction, *, grid: Grid | None, entries_changed: int | None) -> int:
    """The L1 sensitivity in whole steps, after snapping."""
    entries = (
        1 if entries_changed is None else whole(entries_changed, name="entries_changed", least=1)
    )
    if grid is not None:
        return grid.steps(sensitivity, entries_changed=entries)
    if sensitivity.denominator != 1:
        raise fractional_without_grid("sensitivity", sensitivity)
    return sensitivity.numerator


def changes_one(steps: int, grid: Grid | None, entries_changed: int | None) -> bool:
    """Whether one unit changes one entry only.

    It does if that is stated, if a single step is all that there is, and on a grid
    where nothing is stated: there a vector is refused.
    """
    return steps == 1 or entries_changed == 1 or (grid is not None and entries_changed is None)


def margin_steps(scale: Fraction, beta: Fraction, coordinates: int) -> int:
    """The least m with P(max of ``coordinates`` draws of |Z| > m) <= beta, exactly.

    P(|Z| > m) = 2 q**(m+1) / (1 + q) must be at most t = 1 - (1 - beta)**(1/k),
    that is m + 1 >= x = scale * ln(2 / (t (1 + q))).  q is transcendental
    and t algebraic, so x is no integer and the least m is its floor.
    """

    def bound() -> arb:
        allowed = ball(beta)
        if coordinates > 1:
            allowed = -((-allowed).log1p() / coordinates).expm1()
        return ball(scale) * (2 / (allowed * (1 + ball(-1 / scale).exp()))).log()

    return floor_scaled(bound, 0)


def refuse_unstated(grid: Grid | None, entries_changed: int | None, value: Any) -> None:
    """A real vector needs ``entries_changed``: rounding costs a step for each of them."""
    if grid is not None and entries_changed is None and count_entries(value) > 1:
        raise InvalidParameter(
            "P4",
            "a vector of real numbers needs entries_changed.",
            why="putting a vector on the grid can move every entry that a person changes by one "
            "step more than the sensitivity says.",
            fix="pass entries_changed=..., the most entries one unit can change: the length of "
            "the vector is always safe.",
        )


def fractional_without_grid(name: str, value: Fraction) -> InvalidParameter:
    """Whole numbers change by whole numbers."""
    return InvalidParameter(
        "P4",
        f"{name} is {value}, not a whole number, and no grid is stated.",
        why="without a grid the values are whole numbers, which change by whole numbers; a "
        "fraction suggests that the values are not what the noise was made for.",
        fix="state a public grid, such as grid=Grid('1/1024'), or round the sensitivity up.",
    )


def too_much_noise(name: str) -> InvalidParameter:
    """The noise would not fit 64-bit integers."""
    return InvalidParameter(
        "P2",
        f"{name} is so small, for this sensitivity and grid, that the noise exceeds 2**56 steps.",
        why="draws that large would saturate 64-bit integers, and their law with them.",
        fix=f"choose a coarser grid or a larger {name}.",
    )
