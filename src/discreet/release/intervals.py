"""Between which numbers a value lies: confidence sets of what is read off released entries.

A COUNT or a SUM lies within its margin.  Means, variances, correlations and regressions have sets
from the joint law of the noise (``price.sets``).  So have sums, differences and quotients of
aggregates; for other arithmetic the parts have sets, which share the error, and interval rules
do the rest.  Everything here is computed from what was released, so it is free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Refusal
from discreet.exact.records import dataclass
from discreet.mechanisms import KeyRelease
from discreet.mechanisms.clipping import ClippedSums
from discreet.price import Linear, Noisy, Priced, Quantile, Ratio, Selection
from discreet.price.margins import rank_margin, rounding_of
from discreet.price.plan import (
    Distance,
    DistinctValues,
    GroupMean,
    GroupTotal,
    Histogram,
    Moments,
    Units,
    ValueCounts,
)
from discreet.price.recipes import MOST_ROUNDED, find_moved, find_shifts
from discreet.price.sets import (
    CAUTION,
    Ends,
    Sum,
    find_range,
    quotient_set,
    ratio_set,
    share_set,
)
from discreet.price.tails import Noise
from discreet.question.domain import Domain, Kind
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of, references
from discreet.question.functions.interpret import domain_of_literal
from discreet.question.ownership import columns

Groups = NDArray[np.intp]
Entries = NDArray[Any] | None
"""What was released of one measurement; None for what was chosen."""
Chosen = Mapping[int, Sequence[Any]]
"""What was chosen, for each aggregate and then each group."""
_NOT_NEGATIVE = (Moments, Units, Distance, DistinctValues, ValueCounts, GroupTotal, GroupMean)
"""What is measured in entries that are never negative."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value lies between ``low`` and ``high``, at some confidence; either may be infinite.

    ``anything``: not narrower than what was known without asking.  ``nobody``: the group has no
    people, at that confidence, so there is no value.

    >>> Interval(38.1, 46.0).contains(41.5), Interval(-math.inf, 3.0).contains(3.1)
    (True, False)
    """

    low: float
    high: float
    anything: bool = False
    nobody: bool = False

    def contains(self, value: float) -> bool:
        """Whether ``value`` is inside."""
        return self.low <= value <= self.high

    def margin(self, value: float) -> float:
        """How far the farther end is from ``value``."""
        return max(self.high - value, value - self.low)


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """A fixed combination of all released entries, and a constant."""

    weights: NDArray[np.float64]
    constant: float = 0.0
    rounded: NDArray[np.float64] | None = None  # what rounding may add, read off the entries
    room: float = 0.0  # and what it may add besides

    @property
    def sides(self) -> tuple[_Form, ...]:
        """The form with the most that rounding may add, and with the most it may take away."""
        if self.rounded is None and not self.room:
            return (self,)
        by = np.zeros_like(self.weights) if self.rounded is None else self.rounded
        return tuple(
            _Form(self.weights + sign * by, self.constant + sign * self.room)
            for sign in (0.0, 1.0, -1.0)
        )

    @property
    def known(self) -> bool:
        """Whether it is a constant."""
        return not self.weights.any()


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The sets of the columns of one answer, for some of its groups at once."""

    priced: Priced
    released: tuple[Entries, ...]
    groups: Groups
    names: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        names = {a.name: i for i, a in enumerate(self.priced.question.aggregates)}
        object.__setattr__(self, "names", names)

    # --- aggregates ---------------------------------------------------------------------------

    def of_aggregate(self, index: int, beta: float) -> list[Interval]:
        """The sets of an aggregate that is a ratio."""
        recipe = self.priced.recipes[index]
        if not isinstance(recipe, Ratio):
            raise TypeError(index)
        ends = self._ratio_ends(recipe, beta)
        least, most = find_range(recipe)
        nobody = self._nobody(recipe, beta)
        return [
            Interval(low, high, anything=low <= least and high >= most, nobody=absent)
            for low, high, absent in zip(*_lists(ends), nobody, strict=True)
        ]

    def _ratio_ends(self, recipe: Ratio, beta: float) -> Ends:
        mechanism, entries = self._entries(recipe.measurement)
        moved = find_shifts(self.priced.plan, recipe)
        ends = ratio_set(recipe, mechanism, entries, beta, moved)
        least, most = find_range(recipe)
        low = np.where(np.isfinite(ends.low), ends.low, least)  # absurd bounds overflow doubles
        return Ends(low, np.where(np.isfinite(ends.high), ends.high, most))

    def _nobody(self, recipe: Ratio, beta: float) -> list[bool]:
        """Where the number of rows is below one, with the error of a set that has one side.

        A group with people is said to have none so rarely that this and its sets, which are those
        of one side where it is as small, miss no more often than stated.
        """
        mechanism, entries = self._entries(recipe.measurement)
        used = entries[:, : math.prod(d + 1 for d in recipe.moments.degrees)]
        weight = np.full((1, used.shape[1]), 1.0 / recipe.moments.weight)
        one_side = 2 * beta * CAUTION
        margin = Noise.of([mechanism] * used.shape[1]).quantiles(weight, one_side)
        absent: list[bool] = ((used @ weight[0]) + margin < 1.0).tolist()
        return absent

    def _entries(self, measurement: int) -> tuple[Noisy, NDArray[np.float64]]:
        mechanism, part = self.priced.mechanisms[measurement], self.released[measurement]
        if part is None or isinstance(mechanism, Selection | ClippedSums | KeyRelease):
            raise TypeError("a choice has no entries")
        return mechanism, part[self.groups].astype(np.float64)

    # --- sums of rounded values ---------------------------------------------------------------

    def find_rounded(self, index: int) -> list[float]:
        """How much of a sum may be rounding, by the released number of its values."""
        rounding = rounding_of(self.priced, index)
        if rounding is None or rounding.counted is None:
            return [0.0] * self.groups.size
        _, entries = self._entries(rounding.counted.measurement)
        weights = np.array([float(c) for c in rounding.counted.coefficients])
        found: list[float] = (rounding.each * np.maximum(entries @ weights, 0.0)).tolist()
        return found

    # --- quantiles ----------------------------------------------------------------------------

    def of_quantile(self, index: int, beta: float, chosen: Chosen) -> list[Interval | None]:
        """Between which values one quantile lies, by other quantiles of the same values.

        A released value has a rank near its own fraction of the rows, within the certified
        margin.  One whose rank is surely below the wanted one is not above the wanted value.
        That takes a count of the rows; None where nothing was released that tells.
        """
        recipe = self.priced.recipes[index]
        count = self._find_count(recipe)
        if not isinstance(recipe, Quantile) or recipe.many or count is None:
            return [None] * self.groups.size
        measured = self.priced.plan.measurements
        others = [
            (place, other)
            for place, other in enumerate(self.priced.recipes)
            if isinstance(other, Quantile)
            and measured[other.measurement] == measured[recipe.measurement]
        ]
        share = beta / (1 + sum(len(other.fractions) for _, other in others))
        rows = self._linear_ends(count, 2 * share).low.tolist()  # one side
        found: list[Interval | None] = []
        for place, group in enumerate(self.groups.tolist()):
            known = [
                (fraction, value, self._certain(other, share))
                for i, other in others
                for fraction, value in zip(
                    other.fractions, _values(chosen[i][group], many=other.many), strict=True
                )
            ]
            found.append(self._between(recipe, known, rows[place]))
        return found

    def _certain(self, recipe: Quantile, beta: float) -> float:
        selection = self.priced.mechanisms[recipe.measurement]
        if not isinstance(selection, Selection):
            raise TypeError(recipe)
        return rank_margin(recipe, selection, Fraction(beta))

    def _between(
        self, recipe: Quantile, known: list[tuple[Fraction, float, float]], rows: float
    ) -> Interval | None:
        (wanted,), variable = recipe.fractions, recipe.variable
        below = [v for f, v, off in known if float(wanted - f) * rows >= off]
        above = [v for f, v, off in known if float(f - wanted) * rows >= off]
        if not below and not above:
            return None
        moved = find_moved(self.priced.plan.source, variable)
        ends = variable.low * variable.grid, (variable.low + variable.span) * variable.grid
        low = max(below) - moved if below else float(ends[0])
        high = min(above) + moved if above else float(ends[1])
        return Interval(min(low, high), max(low, high))

    def _find_count(self, recipe: Any) -> _Form | None:
        """A count of the rows that a quantile is of: those of its condition where it is known."""
        if not isinstance(recipe, Quantile):
            return None
        measured = self.priced.plan.measurements[recipe.measurement]
        known = domain_of(recipe.variable.expression, columns(self.priced.plan.source))
        for index, moments in enumerate(self.priced.plan.measurements):
            if not isinstance(moments, Moments) or not isinstance(measured, Histogram):
                continue
            same = [v.expression for v in moments.variables] == [recipe.variable.expression]
            if moments.condition != measured.condition or not (
                same or (not moments.variables and not known.nullable)
            ):
                continue
            weights = np.zeros(self._size)
            first = self._offset(index)
            weights[first : first + math.prod(d + 1 for d in moments.degrees)] = 1 / moments.weight
            return _Form(weights)
        return None

    # --- expressions ---------------------------------------------------------------------------

    def of_expression(
        self, expression: Expression, beta: float, keys: Sequence[Mapping[str, Any]]
    ) -> list[Interval | None]:
        """The sets of an expression over aggregates, and over the ``keys`` of each group."""
        parts: dict[str, Expression] = {}
        rest = self._take_parts(expression, parts)
        share = beta / max(1, len(parts))
        known = {name: self._part_ends(part, share) for name, part in parts.items()}
        possible = {name: self._part_range(part) for name, part in parts.items()}
        if isinstance(rest, ColumnRef) and rest.name in known:
            whole = Interval(*possible[rest.name])
            return [_compare(Interval(*ends), whole) for ends in known[rest.name]]
        found: list[Interval | None] = []
        for group in range(self.groups.size):
            of_keys = _key_domains(keys[group])
            ranges = {name: _domain(*ends) for name, ends in possible.items()}
            enclosed = _enclose(rest, {**of_keys, **_domains(known, group)})
            found.append(_compare(enclosed, _enclose(rest, {**of_keys, **ranges})))
        return found

    def _take_parts(self, expression: Expression, parts: dict[str, Expression]) -> Expression:
        """The expression with its largest parts that have sets of their own replaced by names."""
        if not references(expression) & set(self.names):
            return expression
        if self._has_set(expression):
            name = f"part {len(parts)}"
            for taken, part in parts.items():
                name = taken if part == expression else name
            parts[name] = expression
            return ColumnRef(name)
        match expression:
            case Call(function=function, arguments=arguments):
                return Call(function, tuple(self._take_parts(a, parts) for a in arguments))
            case Case(branches=branches, otherwise=otherwise):
                taken_branches = tuple(
                    (self._take_parts(a, parts), self._take_parts(b, parts)) for a, b in branches
                )
                return Case(taken_branches, self._take_parts(otherwise, parts))
        return expression

    def _has_set(self, expression: Expression) -> bool:
        recipe = self._recipe(expression)
        if isinstance(recipe, Ratio) or self._form(expression) is not None:
            return True
        return self._quotient(expression) is not None

    def _part_ends(self, part: Expression, beta: float) -> list[tuple[float, float]]:
        recipe = self._recipe(part)
        if isinstance(recipe, Ratio):
            ends = self._ratio_ends(recipe, beta)
        elif (form := self._form(part)) is not None:
            ends = self._linear_ends(form, beta)
        else:
            above, below = self._quotient(part) or (None, None)
            if above is None or below is None:
                raise TypeError(part)
            ends = self._quotient_ends(above, below, beta)
        return list(zip(*_lists(ends), strict=True))

    def _part_range(self, part: Expression) -> tuple[float, float]:
        """Between which numbers a part lies whatever the data are."""
        recipe = self._recipe(part)
        if isinstance(recipe, Ratio):
            return find_range(recipe)
        quotient = None if self._form(part) is not None else self._quotient(part)
        ranges = [
            self._quotient_range(above, below)
            for above in (quotient[0].sides if quotient else ())
            for below in (quotient[1].sides if quotient else ())
        ]
        known = [between for between in ranges if between is not None]
        if not known or len(known) < len(ranges):
            return -math.inf, math.inf
        return min(least for least, _ in known), max(most for _, most in known)

    def _recipe(self, expression: Expression) -> Any:
        if isinstance(expression, ColumnRef) and expression.name in self.names:
            return self.priced.recipes[self.names[expression.name]]
        return None

    def _form(self, expression: Expression) -> _Form | None:
        """The expression as a combination of entries, if it is one."""
        recipe = self._recipe(expression)
        if isinstance(recipe, Linear):
            weights = np.zeros(self._size)
            first = self._offset(recipe.measurement)
            weights[first : first + len(recipe.coefficients)] = [
                float(c) for c in recipe.coefficients
            ]
            return self._note_rounding(_Form(weights), expression)
        match expression:
            case Literal(value=int() | Fraction() as value) if not isinstance(value, bool):
                return _Form(np.zeros(self._size), float(value))
            case Call(function="cast_decimal", arguments=(inner,)):
                return self._form(inner)
            case Call(function="negate", arguments=(inner,)):
                return _scale(self._form(inner), -1.0)
            case Call(function="add" | "subtract" as sign, arguments=(a, b)):
                return _join(self._form(a), self._form(b), 1.0 if sign == "add" else -1.0)
            case Call(function="multiply", arguments=(a, b)):
                return _multiply(self._form(a), self._form(b))
            case Call(function="divide", arguments=(a, b)):
                below = self._form(b)
                if below is not None and below.known and below.constant:
                    return _scale(self._form(a), 1.0 / below.constant)
        return None

    def _note_rounding(self, form: _Form, expression: Expression) -> _Form:
        """The form of an aggregate, with what rounding adds to it if it is a sum."""
        index = self.names[expression.name] if isinstance(expression, ColumnRef) else None
        rounding = None if index is None else rounding_of(self.priced, index)
        if rounding is None:
            return form
        if rounding.counted is None:
            return replace(form, room=rounding.each * MOST_ROUNDED)
        first, counted = self._offset(rounding.counted.measurement), np.zeros(self._size)
        coefficients = rounding.counted.coefficients
        counted[first : first + len(coefficients)] = [
            rounding.each * float(c) for c in coefficients
        ]
        return replace(form, rounded=counted)

    def _quotient(self, expression: Expression) -> tuple[_Form, _Form] | None:
        """One combination divided by another, if the expression is that; NULLIF guards nothing."""
        match expression:
            case Call(function="divide", arguments=(a, b)):
                if isinstance(b, Call) and b.function == "nullif" and b.arguments[1] == Literal(0):
                    b = b.arguments[0]
                above, below = self._form(a), self._form(b)
                return None if above is None or below is None else (above, below)
            case Call(function="cast_decimal", arguments=(inner,)):
                return self._quotient(inner)
            case Call(function="multiply", arguments=(a, b)):
                for one, other in ((a, b), (b, a)):
                    form, quotient = self._form(one), self._quotient(other)
                    if form is not None and form.known and quotient is not None:
                        scaled = _scale(quotient[0], form.constant)
                        return None if scaled is None else (scaled, quotient[1])
        return None

    @property
    def _size(self) -> int:
        return sum(self._width(part) for part in self.released)

    def _offset(self, measurement: int) -> int:
        return sum(self._width(part) for part in self.released[:measurement])

    @staticmethod
    def _width(part: Entries) -> int:
        return 0 if part is None else int(part.shape[1])

    @property
    def _noise(self) -> Noise:
        laws: list[Noisy] = []
        for mechanism, part in zip(self.priced.mechanisms, self.released, strict=True):
            if not isinstance(mechanism, Selection | ClippedSums | KeyRelease):
                laws += [mechanism] * self._width(part)
        return Noise.of(laws)

    def _sum(self, form: _Form) -> Sum:
        entries = [
            part[self.groups].astype(np.float64) for part in self.released if part is not None
        ]
        return Sum(np.concatenate(entries, axis=1) @ form.weights + form.constant, form.weights)

    def _linear_ends(self, form: _Form, beta: float) -> Ends:
        ends = []
        for side in form.sides:
            found = self._sum(side)
            margin = self._noise.quantiles(found.weights, beta)
            ends.append(Ends(found.value - margin, found.value + margin))
        return _span(ends)

    def _quotient_ends(self, above: _Form, below: _Form, beta: float) -> Ends:
        """Between the least and the most of what it is on either side of rounding.

        Each side fails with half the error at its own end (docs/proofs/sets.md, Lemma 5).
        """
        return _span(
            [self._exact_quotient_ends(a, b, beta) for a in above.sides for b in below.sides]
        )

    def _exact_quotient_ends(self, above: _Form, below: _Form, beta: float) -> Ends:
        part, whole = self._sum(above), self._sum(below)
        between = self._quotient_range(above, below)
        if between is None:
            low, high = quotient_set(part, whole, self._noise, beta)
            return Ends(_without_end(low), _without_end(high))
        least, most = between
        if math.isinf(most):  # of two sums that are not negative, by their odds
            share = share_set(part, whole, self._noise, beta)
            with np.errstate(all="ignore"):
                return Ends(share.low / (1 - share.low), share.high / (1 - share.high))
        width = most - least
        over, under = part - least * whole, most * whole - part
        share = share_set((1 / width) * over, (1 / width) * under, self._noise, beta)
        return Ends(least + width * share.low, least + width * share.high)

    def _quotient_range(self, above: _Form, below: _Form) -> tuple[float, float] | None:
        """Between which numbers a quotient lies whatever the data are; None if it has no bounds."""
        used = (above.weights != 0) | (below.weights != 0)
        if above.constant or below.constant or (used & ~self._never_negative).any():
            return None
        a, b = above.weights[used], below.weights[used]
        if (b > 0).all() and (a / b).min() < (a / b).max():
            return float((a / b).min()), float((a / b).max())
        if (a < 0).any() or (b < 0).any() or not b.any():
            return None
        most = self._part_of(above, below)
        return 0.0, math.inf if most is None else most

    @property
    def _never_negative(self) -> NDArray[np.bool_]:
        kinds = [
            np.full(self._width(part), isinstance(measurement, _NOT_NEGATIVE))
            for measurement, part in zip(self.priced.plan.measurements, self.released, strict=True)
        ]
        return np.concatenate(kinds)

    def _part_of(self, above: _Form, below: _Form) -> float | None:
        """What a count of some rows, divided by the count of all those rows, is at most."""
        counted, among = self._counts_rows(above), self._counts_rows(below)
        if counted is None or among is None:
            return None
        (some, one), (every, other) = counted, among
        inside = every is None or some == every
        if isinstance(some, Call) and some.function == "and":
            inside = inside or every in some.arguments
        return one / other if inside else None

    def _counts_rows(self, form: _Form) -> tuple[Expression | None, float] | None:
        """The condition of the rows that a form counts, and the weight of each; None if it sums."""
        for index, measurement in enumerate(self.priced.plan.measurements):
            first, width = self._offset(index), self._width(self.released[index])
            own = form.weights[first : first + width]
            if width and own.any() and isinstance(measurement, Moments):
                alone = np.count_nonzero(form.weights) == np.count_nonzero(own)
                complete = own.min() == own.max() and (
                    measurement.counts_null or not measurement.variables
                )
                if alone and complete:
                    return measurement.condition, float(own[0]) * measurement.weight
        return None


def _values(chosen: Any, *, many: bool) -> list[Any]:
    return chosen if many else [chosen]


def _lists(ends: Ends) -> tuple[list[float], list[float]]:
    return ends.low.tolist(), ends.high.tolist()


def _span(ends: Sequence[Ends]) -> Ends:
    """From the least to the greatest of several ends, group by group."""
    lows, highs = [end.low for end in ends], [end.high for end in ends]
    return Ends(np.minimum.reduce(lows), np.maximum.reduce(highs))


def _without_end(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ends so far away that they are none."""
    found: NDArray[np.float64] = np.where(np.abs(ends) > 1e100, np.copysign(np.inf, ends), ends)
    return found


def _scale(form: _Form | None, by: float) -> _Form | None:
    if form is None:
        return None
    rounded = None if form.rounded is None else form.rounded * abs(by)
    return _Form(form.weights * by, form.constant * by, rounded, form.room * abs(by))


def _join(a: _Form | None, b: _Form | None, sign: float) -> _Form | None:
    if a is None or b is None:
        return None
    both = [form.rounded for form in (a, b) if form.rounded is not None]
    rounded = sum(both[1:], start=both[0]) if both else None
    weights = a.weights + sign * b.weights
    return _Form(weights, a.constant + sign * b.constant, rounded, a.room + b.room)


def _multiply(a: _Form | None, b: _Form | None) -> _Form | None:
    if a is None or b is None:
        return None
    if a.known:
        return _scale(b, a.constant)
    return _scale(a, b.constant) if b.known else None


def _key_domains(keys: Mapping[str, Any]) -> dict[str, Domain]:
    return {name: domain_of_literal(value) for name, value in keys.items()}


def _domains(known: Mapping[str, list[tuple[float, float]]], group: int) -> dict[str, Domain]:
    return {name: _domain(*ends[group]) for name, ends in known.items()}


def _domain(low: float, high: float) -> Domain:
    first, last = (Fraction(end) if math.isfinite(end) else None for end in (low, high))
    return Domain(Kind.DECIMAL, first, last)


def _enclose(expression: Expression, known: Mapping[str, Domain]) -> Interval | None:
    """What an expression can be where its parts are in their sets; None if no rule tells."""
    try:
        found = domain_of(expression, known)
    except Refusal:
        return None
    if not found.kind.is_number:
        return None
    low = -math.inf if found.low is None else float(found.low)
    high = math.inf if found.high is None else float(found.high)
    return Interval(low, high)


def _compare(found: Interval | None, possible: Interval | None) -> Interval | None:
    """A set, and whether it says anything: not where it is all that is possible."""
    if found is None:
        return None
    whole = Interval(-math.inf, math.inf) if possible is None else possible
    room = 1e-9 * (whole.high - whole.low) if math.isfinite(whole.high - whole.low) else 0.0
    if found.low > whole.low + room or found.high < whole.high - room:
        return found
    return replace(whole, anything=True)  # roots and powers are rounded on their way


__all__ = ["Interval", "Sets"]
