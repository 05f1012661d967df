"""Two laws side by side: where, and by how much, one outweighs the other.

Every divergence depends on two laws P and Q only through their likelihood
ratio.  A comparison keeps that ratio exactly where it can be known exactly:

* *stretches*: runs of integers, possibly without end, on which ln(P(z) / Q(z))
  is ``intercept + slope * z`` with rational coefficients.  Two discrete Laplace
  laws of one scale have three (constant, falling, constant), two discrete
  Gaussians of one variance have one.  Thresholds are then found in rational
  arithmetic and nothing infinite is cut off.
* *cells*: sets of outcomes on which the ratio is constant, with the mass of both
  laws, for everything finite, for products, and for what can only be truncated.
  What lies outside the cells is the *rest*, of certified small mass.

A logarithm is kept as (a, r), meaning a + ln r with a and r rational.  Since
e**a is transcendental for rational a != 0 (Lindemann), equal pairs are the same
number and unequal pairs are not: cells merge and ties break without rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, ctx

from discreet.accounting.law import (
    MOST_OUTCOMES,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    FiniteLaw,
    GeometricLaw,
    IntegerLaw,
    Law,
    ProductLaw,
    StaircaseLaw,
)
from discreet.errors import InvalidParameter
from discreet.exact.balls import ball

Logarithm = tuple[Fraction | float, Fraction]
"""(a, r) stands for a + ln r; a is infinite where only one of the laws has any mass."""

EQUAL: Logarithm = (Fraction(0), Fraction(1))
ONLY_P: Logarithm = (math.inf, Fraction(1))
ONLY_Q: Logarithm = (-math.inf, Fraction(1))


@dataclass(frozen=True, slots=True)
class Stretch:
    """The integers ``least..most`` (``None``: without end), where ln(P/Q) = intercept + slope z."""

    least: int | None
    most: int | None
    intercept: Fraction | float
    slope: Fraction = Fraction(0)

    def above(self, epsilon: Fraction) -> tuple[int | None, int | None] | None:
        """The part of the stretch where ln(P/Q) > epsilon; ``None`` if there is none."""
        if self.slope == 0:
            return (self.least, self.most) if self.intercept > epsilon else None
        crossing = (epsilon - Fraction(self.intercept)) / self.slope
        if self.slope > 0:
            first = math.floor(crossing) + 1
            least = first if self.least is None else max(self.least, first)
            return None if self.most is not None and least > self.most else (least, self.most)
        last = math.ceil(crossing) - 1
        most = last if self.most is None else min(self.most, last)
        return None if self.least is not None and most < self.least else (self.least, most)

    def highest(self) -> Fraction | float:
        """The supremum of ln(P/Q) on the stretch."""
        end = self.most if self.slope > 0 else self.least
        if self.slope == 0:
            return self.intercept
        return math.inf if end is None else Fraction(self.intercept) + self.slope * end


@dataclass(frozen=True, slots=True)
class Cell:
    """Outcomes of one likelihood ratio, and what both laws give them together.

    ``log`` is the ratio's exact logarithm, or ``None`` if only balls are known.
    """

    p: arb
    q: arb
    log: Logarithm | None

    def exceeds(self, epsilon: Fraction) -> bool | None:
        """Whether ln(P/Q) > epsilon; ``None`` if the precision in force cannot tell."""
        if self.log is None:
            difference = self.p - self.q * ball(epsilon).exp()
        else:
            a, r = self.log
            if r == 1:
                return a > epsilon
            difference = ball(Fraction(a) - epsilon) + ball(r).log()
        if difference > 0:
            return True
        return False if difference <= 0 else None

    def log_ball(self) -> arb:
        """A ball that contains ln(P/Q), where both laws have mass."""
        if self.log is None:
            return (self.p / self.q).log()
        a, r = self.log
        return ball(Fraction(a)) + (0 if r == 1 else ball(r).log())


@dataclass(frozen=True, slots=True)
class Cells:
    """A partition into cells, and the mass of both laws in the rest."""

    cells: tuple[Cell, ...]
    rest_p: arb
    rest_q: arb

    @property
    def complete(self) -> bool:
        """Whether there is no rest."""
        return bool(self.rest_p.is_zero() and self.rest_q.is_zero())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two laws on the same outcomes."""

    p: Law
    q: Law
    stretches: tuple[Stretch, ...] | None = field(init=False)
    coordinates: tuple[Comparison, ...] = field(init=False)
    """One comparison for each coordinate of two products; else empty."""
    _known: dict[int, Cells] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        p, q = self.p, self.q
        if not isinstance(p, Law) or not isinstance(q, Law):
            raise _incomparable("only laws can be compared.")
        object.__setattr__(self, "stretches", _stretches(p, q))
        pairs: tuple[Comparison, ...] = ()
        if isinstance(p, ProductLaw) and isinstance(q, ProductLaw):
            if len(p.laws) != len(q.laws):
                raise _incomparable(
                    f"one law has {len(p.laws)} coordinates, the other {len(q.laws)}."
                )
            pairs = tuple(map(Comparison, p.laws, q.laws))
        object.__setattr__(self, "coordinates", pairs)

    def cells(self) -> Cells:
        """The cells, at the precision in force."""
        bits = ctx.prec
        found = self._known.get(bits)
        if found is None:
            found = self._evaluate()
            self._known.clear()
            self._known[bits] = found
        return found

    def _evaluate(self) -> Cells:
        if self.p == self.q:
            return Cells((Cell(arb(1), arb(1), EQUAL),), arb(0), arb(0))
        if self.coordinates:
            return _product([pair.cells() for pair in self.coordinates])
        if self.stretches is not None:
            return _cells_of_stretches(self.p, self.q, self.stretches)
        if isinstance(self.p, StaircaseLaw) and isinstance(self.q, StaircaseLaw):
            found = _cells_of_staircases(self.p, self.q)
            if found is not None:
                return found
        if isinstance(self.p, IntegerLaw) or isinstance(self.q, IntegerLaw):
            return _enumerate_window(self.p, self.q)
        return _cells_of_finite(as_finite(self.p), as_finite(self.q))

    def above(self, epsilon: Fraction) -> tuple[arb, arb, arb]:
        """P(S), Q(S) for S = {ln(P/Q) > epsilon}, and a bound on what S may be missing.

        The hockey-stick divergence lies between P(S) - e**epsilon Q(S) and that
        plus the third number, which is exactly 0 where the ratio is known
        (docs/proofs/divergence.md, Lemma 4).
        """
        if self.stretches is None:
            return _cells_above(self.cells(), epsilon)
        total_p, total_q = arb(0), arb(0)
        for stretch in self.stretches:
            part = stretch.above(epsilon)
            if part is not None:
                total_p += _between(self.p, part)
                total_q += _between(self.q, part)
        return total_p, total_q, arb(0)


def _incomparable(what: str) -> InvalidParameter:
    return InvalidParameter(
        "P4",
        what,
        why="a divergence between laws of different things says nothing about a person.",
        fix="compare the laws of one mechanism on two neighbouring inputs.",
    )


def _too_many(count: int) -> InvalidParameter:
    return InvalidParameter(
        "P2",
        f"{count} outcomes would have to be enumerated; the most is {MOST_OUTCOMES}.",
        why="a bound on part of the outcomes is not a bound on what a person loses.",
        fix="compare smaller laws, or bound each coordinate and compose the losses.",
    )


# --- stretches -----------------------------------------------------------------------------


def _stretches(p: Law, q: Law) -> tuple[Stretch, ...] | None:
    match p, q:
        case DiscreteLaplaceLaw(a, scale), DiscreteLaplaceLaw(b, other) if scale == other:
            if a == b:
                return (Stretch(None, None, Fraction(0)),)
            low, high = min(a, b), max(a, b)
            far = Fraction(b - a) / scale  # ln(P/Q) = (|z - b| - |z - a|) / scale
            step = far / abs(b - a)
            inner = Stretch(low + 1, high - 1, step * (a + b), -2 * step)
            middle = (inner,) if high - low > 1 else ()
            return (Stretch(None, low, far), *middle, Stretch(high, None, -far))
        case DiscreteGaussianLaw(a, variance), DiscreteGaussianLaw(b, other) if variance == other:
            slope = Fraction(a - b) / variance
            return (Stretch(None, None, Fraction(b * b - a * a) / (2 * variance), slope),)
        case GeometricLaw(a, scale), GeometricLaw(b, other) if scale == other:
            common = Stretch(max(a, b), None, Fraction(a - b) / scale)
            alone = Stretch(min(a, b), max(a, b) - 1, math.inf if a < b else -math.inf)
            return (common,) if a == b else (alone, common)
        case _:
            return None


def _between(law: Law, part: tuple[int | None, int | None]) -> arb:
    return law.between(*part) if isinstance(law, IntegerLaw) else arb(0)


def _cells_of_stretches(p: Law, q: Law, stretches: Iterable[Stretch]) -> Cells:
    cells: list[Cell] = []
    rest_p, rest_q = arb(0), arb(0)
    for stretch in stretches:
        least, most = stretch.least, stretch.most
        if stretch.slope == 0:
            part = (least, most)
            cells.append(
                Cell(_between(p, part), _between(q, part), (stretch.intercept, Fraction(1)))
            )
            continue
        windows = [law.window(ctx.prec) for law in (p, q) if isinstance(law, IntegerLaw)]
        if least is None:
            least = min(window[0] for window in windows)
            rest_p += _between(p, (None, least - 1))
            rest_q += _between(q, (None, least - 1))
        if most is None:
            most = max(window[1] for window in windows)
            rest_p += _between(p, (most + 1, None))
            rest_q += _between(q, (most + 1, None))
        if most - least >= MOST_OUTCOMES:
            raise _too_many(most - least + 1)
        for z in range(least, most + 1):
            log = Fraction(stretch.intercept) + stretch.slope * z, Fraction(1)
            cells.append(Cell(p.mass(z), q.mass(z), log))
    return Cells(tuple(cells), rest_p, rest_q)


# --- cells ---------------------------------------------------------------------------------


def as_finite(law: Law) -> FiniteLaw:
    """A finite law, or a product of finite laws, as one list of outcomes."""
    if isinstance(law, FiniteLaw):
        return law
    if not isinstance(law, ProductLaw):
        raise _incomparable(f"a {type(law).__name__} has no list of outcomes to compare.")
    factors = [as_finite(factor) for factor in law.laws]
    count = math.prod(len(factor.outcomes) for factor in factors)
    if count > MOST_OUTCOMES:
        raise _too_many(count)

    def masses() -> list[arb]:
        rows = itertools.product(*(factor.all_masses() for factor in factors))
        return [math.prod(row[1:], start=row[0]) for row in rows]

    return FiniteLaw(tuple(itertools.product(*(factor.outcomes for factor in factors))), masses)


def _cells_of_finite(p: FiniteLaw, q: FiniteLaw) -> Cells:
    cells = []
    for outcome in dict.fromkeys((*p.outcomes, *q.outcomes)):
        over, under = p.exact_mass(outcome), q.exact_mass(outcome)
        log: Logarithm | None = None
        if over and under:
            log = (Fraction(0), over / under)
        elif over == 0 or under == 0:
            log = ONLY_Q if over == 0 else ONLY_P
        cells.append(Cell(p.mass(outcome), q.mass(outcome), log))
    return Cells(_merge_cells(cells), arb(0), arb(0))


def _cells_of_staircases(p: StaircaseLaw, q: StaircaseLaw) -> Cells | None:
    """Two staircases of one shape, completely; None if their shapes differ.

    Beyond both centres a step further multiplies both masses by exp(-epsilon), so the ratio
    repeats with that period and a whole residue class has its first mass / (1 - exp(-epsilon)).
    """
    if (p.step, p.width, p.epsilon) != (q.step, q.width, q.epsilon):
        return None
    low, high = min(p.center, q.center), max(p.center, q.center)
    count = high - low + 2 * p.step
    if count > MOST_OUTCOMES:
        raise _too_many(count)
    repeated = -1 / ball(-p.epsilon).expm1()
    cells = []
    for z in range(low - p.step + 1, high + p.step):
        down = q.level(abs(z - q.center)) - p.level(abs(z - p.center))
        times = arb(1) if low < z < high else repeated
        log = (p.epsilon * down, Fraction(1))
        cells.append(Cell(p.mass(z) * times, q.mass(z) * times, log))
    return Cells(_merge_cells(cells), arb(0), arb(0))


def _enumerate_window(p: Law, q: Law) -> Cells:
    """Laws on the integers of different shapes: what can be enumerated, and the rest."""
    reach: list[int] = []
    others: list[Hashable] = []
    for law in (p, q):
        if isinstance(law, IntegerLaw):
            reach += law.window(ctx.prec)
        else:
            others += as_finite(law).outcomes
    reach += [z for z in others if isinstance(z, int)]
    least, most = min(reach), max(reach)
    if most - least >= MOST_OUTCOMES:
        raise _too_many(most - least + 1)
    outcomes: dict[Hashable, None] = dict.fromkeys((*range(least, most + 1), *others))
    cells = [Cell(p.mass(z), q.mass(z), None) for z in outcomes]
    rests = [
        law.below(least) + law.tail(most + 1) if isinstance(law, IntegerLaw) else arb(0)
        for law in (p, q)
    ]
    return Cells(_merge_cells(cells), rests[0], rests[1])


def _merge_cells(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The same partition with cells of one exactly known ratio joined."""
    known: dict[Logarithm, tuple[arb, arb]] = {}
    unknown: list[Cell] = []
    for cell in cells:
        log = cell.log
        if cell.p.is_zero() or cell.q.is_zero():
            if cell.p.is_zero() and cell.q.is_zero():
                continue
            log = ONLY_Q if cell.p.is_zero() else ONLY_P
        if log is None:
            unknown.append(cell)
        else:
            p, q = known.get(log, (arb(0), arb(0)))
            known[log] = p + cell.p, q + cell.q
    return (*(Cell(p, q, log) for log, (p, q) in known.items()), *unknown)


def _product(factors: list[Cells]) -> Cells:
    cells: tuple[Cell, ...] = (Cell(arb(1), arb(1), EQUAL),)
    rest_p, rest_q = arb(0), arb(0)
    for factor in factors:
        if len(cells) * len(factor.cells) > MOST_OUTCOMES:
            raise _too_many(len(cells) * len(factor.cells))
        # The rest of a product: the rest so far, or else the rest of this coordinate.
        rest_p += (1 - rest_p) * factor.rest_p
        rest_q += (1 - rest_q) * factor.rest_q
        cells = _merge_cells(
            Cell(left.p * right.p, left.q * right.q, _add_logarithms(left.log, right.log))
            for left in cells
            for right in factor.cells
        )
    return Cells(cells, rest_p, rest_q)


def _add_logarithms(left: Logarithm | None, right: Logarithm | None) -> Logarithm | None:
    if left is None or right is None:
        return None
    return left[0] + right[0], left[1] * right[1]


def _cells_above(cells: Cells, epsilon: Fraction) -> tuple[arb, arb, arb]:
    total_p, total_q, missing = arb(0), arb(0), cells.rest_p
    growth = ball(epsilon).exp()
    for cell in cells.cells:
        above = cell.exceeds(epsilon)
        if above:
            total_p += cell.p
            total_q += cell.q
        elif above is None:
            missing += arb((cell.p - growth * cell.q).upper()).nonnegative_part()
    return total_p, total_q, missing


__all__ = ["Cell", "Cells", "Comparison", "Logarithm", "Stretch", "as_finite"]
