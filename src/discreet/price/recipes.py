"""From aggregates to measurements, and back from released integers to numbers.

A statement's aggregates share measurements: COUNT, SUM, AVG and VARIANCE of one
column are all read off the same Bernstein sums, COVAR, CORR and REGR of a pair
off the same table of products.  A recipe says how one aggregate is read off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.errors import QuestionRefusal
from discreet.exact.records import dataclass
from discreet.price.plan import (
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Plan,
    Products,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.question.domain import Domain, Kind, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of
from discreet.question.ownership import columns
from discreet.question.question import Aggregate
from discreet.question.relation import Relation

Floats = NDArray[np.float64]

GRID_BITS = 20
"""A value is measured in at most 2**20 steps of a power of two ..."""
FINE_BITS = 40
"""... or in up to 2**40 steps of one: bounds may be far wider than values are ..."""
WEIGHT_BITS = (40, 30, 20)
"""... and a row weighs at most 2**40, so that products of several values use coarser steps.

Where noise would not fit 64-bit integers, steps are coarser still: they vanish in such noise.
"""

EXTREME = Fraction(1, 200)
"""The quantile that stands for MIN; 1 - EXTREME stands for MAX."""

_DEGREES = {
    "SUM": 1,
    "AVG": 1,
    "VAR_POP": 2,
    "VAR_SAMP": 2,
    "STDDEV_POP": 2,
    "STDDEV_SAMP": 2,
}
_PAIRS = {"COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT"}
_TOTALS = {"COUNT", "SUM"}
_QUARTILES = (Fraction(1, 4), Fraction(3, 4))
_QUANTILES = {"QUANTILE", "MIN", "MAX"}
_CHOICES = {"MODE", "TOP_K"}


@dataclass(frozen=True, slots=True)
class Linear:
    """A number that is a fixed combination of one measurement's entries, on a public grid."""

    measurement: int
    coefficients: tuple[Fraction, ...]
    grid: Fraction


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number computed from power sums of one or two variables; not linear in the entries."""

    measurement: int
    function: str
    moments: Moments


@dataclass(frozen=True, slots=True)
class Quantile:
    """Values at given fractions of the ordered rows."""

    measurement: int
    fractions: tuple[Fraction, ...]  # as asked: in any order, perhaps repeated
    variable: Scaled
    many: bool  # a list was asked for, not one number

    @property
    def different(self) -> tuple[Fraction, ...]:
        """The fractions in increasing order, each once: what is paid for."""
        return tuple(sorted(set(self.fractions)))


@dataclass(frozen=True, slots=True)
class Spread:
    """How far two quantiles lie apart."""

    measurement: int
    variable: Scaled

    @property
    def quantiles(self) -> Quantile:
        """Both quartiles, chosen together."""
        return Quantile(self.measurement, _QUARTILES, self.variable, many=True)


@dataclass(frozen=True, slots=True)
class Clipped:
    """A sum, a mean or a variance of values between two ends that were chosen in the data.

    ``variable`` says between which public numbers the ends are looked for.
    """

    measurement: int
    function: str
    variable: Scaled
    degree: int
    trim: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The most frequent of the listed values, or the k most frequent."""

    measurement: int
    count: int
    many: bool


@dataclass(frozen=True, slots=True)
class Fitted:
    """A coefficient, a correlation, a covariance or a mean of many columns measured together."""

    measurement: int
    function: str
    place: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows have each of the listed values."""

    measurement: int


Recipe = Linear | Ratio | Quantile | Spread | Clipped | Choice | Fitted | Counts


@dataclass(frozen=True, slots=True)
class Menu:
    """The measurements of a statement, and how each of its aggregates is read off them."""

    measurements: tuple[Measurement, ...]
    recipes: tuple[Recipe, ...]


def choose_measurements(
    aggregates: tuple[Aggregate, ...],
    columns: Mapping[str, Domain],
    weight_bits: int = WEIGHT_BITS[0],
) -> Menu:
    """Measurements that serve all ``aggregates``, sharing what can be shared.

    ``measure_sums_alone`` may have less noise for the same aggregates.
    """
    builder = _Builder(columns, weight_bits)
    # Counts come last: they are free wherever moments of the same rows are measured anyway.
    order = sorted(range(len(aggregates)), key=lambda i: aggregates[i].function == "COUNT")
    makers = {i: builder.book(aggregates[i]) for i in order}
    recipes = tuple(makers[i]() for i in range(len(aggregates)))
    return Menu(tuple(builder.measurements), recipes)


def measure_sums_alone(
    menu: Menu,
    aggregates: tuple[Aggregate, ...],
    columns: Mapping[str, Domain],
    weight_bits: int = WEIGHT_BITS[0],
) -> Menu:
    """The same numbers, with every SUM whose measurement nothing else reads as one number.

    Both ends of the range counted together serve a mean; a sum alone read off them has noise
    from both ends, in the measure low**2 + high**2, where by itself it has the larger only.
    Rounding adds up, and nothing tells over how many values: where values are rounded, it is to
    steps as fine as there is room for.
    """
    measurements, recipes = list(menu.measurements), list(menu.recipes)
    for index, measurement in enumerate(menu.measurements):
        readers = [i for i, recipe in enumerate(recipes) if recipe.measurement == index]
        if {aggregates[i].function for i in readers} != {"SUM"}:
            continue
        alone = _alone(measurement)
        if alone is not None:
            measurements[index], grid = _make_finer(alone, columns, weight_bits)
            for i in readers:
                recipes[i] = Linear(index, (grid,), grid)
    return Menu(tuple(measurements), tuple(recipes))


def _alone(measurement: Measurement) -> Sum | GroupSum | None:
    """A pair of ends as one number; None for what has no ends."""
    match measurement:
        case Moments(variables=(variable,), degrees=(1,), counts_null=False, condition=condition):
            return Sum(variable, condition)
        case GroupTotal(expression=x, grid=grid, low=low, span=span, condition=condition):
            return GroupSum(x, grid, low, span, condition)
    return None


_FINEST = Fraction(1, 2**30)


def _make_finer(
    alone: Sum | GroupSum, columns: Mapping[str, Domain], bits: int
) -> tuple[Measurement, Fraction]:
    """The same, where values are rounded in steps as fine as 2**bits allow; and their size."""
    if isinstance(alone, Sum):
        variable = alone.variable
    else:
        variable = Scaled(alone.expression, alone.grid, alone.low, alone.span)
    by = 1
    if rounds(variable, columns):
        while variable.span * by * 2 <= 2**bits and variable.grid / by > _FINEST:
            by *= 2
    grid, low, span = variable.grid / by, variable.low * by, variable.span * by
    if isinstance(alone, Sum):
        return replace(alone, variable=replace(variable, grid=grid, low=low, span=span)), grid
    return replace(alone, grid=grid, low=low, span=span), grid


class _Builder:
    """Collects measurements; moments of the same variable grow to the degree needed."""

    def __init__(self, columns: Mapping[str, Domain], weight_bits: int) -> None:
        self.columns = columns
        self.weight_bits = weight_bits
        self.measurements: list[Measurement] = []
        self._moments: dict[tuple[object, ...], int] = {}
        self._counted: set[int] = set()  # measured with noise: nothing is chosen from these
        self._clipped: dict[tuple[object, ...], tuple[int, int]] = {}

    def book(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        """Book the measurement ``aggregate`` needs; its recipe is made once all are booked."""
        function = aggregate.function
        if aggregate.bounds_per_group is not None:
            if function in _TOTALS:
                return self._group_total(aggregate)
            if function == "AVG":
                return self._group_mean(aggregate)
            # What is not a total has no total to clip: the bounds are those of its values.
            bounds = aggregate.bounds_per_group
            aggregate = replace(aggregate, bounds_per_row=bounds, bounds_per_group=None)
        if function == "TRIMMED_MEAN" or (aggregate.auto and function in _DEGREES):
            return self._clip(aggregate)
        return self._find_booking(function)(aggregate)

    def _find_booking(self, function: str) -> Callable[[Aggregate], Callable[[], Recipe]]:
        named = {
            "COUNT": self._count,
            "COUNT_UNITS": self._units,
            "COUNT_DISTINCT": self._distinct,
            "DISTANCE_TO_SORTED": self._distance,
            "DISTANCE_TO_CLUSTERS": self._distance,
            "DISTANCE_TO_DEPENDENCY": self._distance,
            "IQR": self._spread,
            "REGR_COEFFICIENT": self._fit,
            "CORR_OF": self._fit,
            "COVAR_OF": self._fit,
            "MEAN_OF": self._fit,
        }
        several = (
            (_DEGREES, self._moment),
            (_PAIRS, self._pair),
            (_QUANTILES, self._quantile),
            (_CHOICES, self._choice),
        )
        for names, booking in several:
            if function in names:
                return booking
        return named.get(function, self._histogram)

    def _units(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        index = self._book(Units(aggregate.condition))
        return lambda: Linear(index, (Fraction(1),), Fraction(1))

    def _distinct(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        index = self._book(DistinctValues(aggregate.arguments[0], aggregate.condition))
        return lambda: Linear(index, (Fraction(1),), Fraction(1))

    def _distance(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        settled = aggregate.parameters or (0, 0)
        clusters, width = (_to_fraction(one) for one in settled)
        index = self._book(
            Distance(
                aggregate.function.removeprefix("DISTANCE_TO_").lower(),
                aggregate.arguments,
                int(clusters),
                width,
                aggregate.condition,
            )
        )
        return lambda: Linear(index, (Fraction(1),), Fraction(1))

    def _fit(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        domains = [self._number(argument, aggregate) for argument in aggregate.arguments]
        variables = tuple(
            put_on_grid(argument, domain, GRID_BITS)
            for argument, domain in zip(aggregate.arguments, domains, strict=True)
        )
        index = self._book(Products(variables, condition=aggregate.condition))
        place = int(_to_fraction(aggregate.parameters[0]))
        return lambda: Fitted(index, aggregate.function, place)

    def _spread(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        variable, index = self._rank(aggregate)
        return lambda: Spread(index, variable)

    def _book(self, measurement: Measurement) -> int:
        for index, booked in enumerate(self.measurements):
            if booked == measurement and index not in self._counted:
                return index
        self.measurements.append(measurement)
        return len(self.measurements) - 1

    def _book_moments(
        self, arguments: tuple[Expression, ...], degree: int, aggregate: Aggregate
    ) -> int:
        """The index of the moments of ``arguments``, raised to at least ``degree``."""
        key = (arguments, aggregate.condition, aggregate.bounds_per_row)
        domains = [self._number(argument, aggregate) for argument in arguments]
        index = self._moments.get(key)
        if index is None:
            index = self._moments[key] = len(self.measurements)
            self.measurements.append(Moments(condition=aggregate.condition))
        existing = self._get_moments(index)
        degrees = tuple(max(degree, *existing.degrees, 0) for _ in arguments)
        bits = min(GRID_BITS, self.weight_bits // sum(degrees))
        variables = tuple(
            put_on_grid(argument, domain, bits, self.weight_bits // sum(degrees))
            for argument, domain in zip(arguments, domains, strict=True)
        )
        self.measurements[index] = replace(existing, variables=variables, degrees=degrees)
        return index

    def _number(self, argument: Expression, aggregate: Aggregate) -> Domain:
        """The domain of an argument that must be a bounded number."""
        domain = domain_of(argument, self.columns)
        if aggregate.bounds_per_row is not None:
            low, high = aggregate.bounds_per_row
            domain = replace(domain, low=low, high=high)
        if not domain.kind.is_number and domain.kind is not Kind.BOOLEAN:
            raise QuestionRefusal(
                "Q10",
                f"{aggregate.function} needs a number, and '{aggregate.name}' is given "
                f"a {domain.kind}.",
                why="noise is added to numbers.",
                fix="aggregate a numeric column, or count rows with COUNT(*).",
            )
        if domain.kind is Kind.BOOLEAN:
            domain = replace(domain, low=Fraction(0), high=Fraction(1))
        if aggregate.auto:
            return look_everywhere(domain)
        if not domain.bounded:
            raise QuestionRefusal(
                "Q1",
                f"the argument of {aggregate.function} in '{aggregate.name}' has no public bounds.",
                why="one person could add any amount, and no amount of noise would hide them.",
                fix="declare bounds for the column in the schema, or write the bounds into the "
                "question: GREATEST(LEAST(x, 200000), 0).",
            )
        return domain

    def _count(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        if not aggregate.arguments:
            return self._rows(aggregate.condition)
        argument = aggregate.arguments[0]
        index = self._moments.get(((argument,), aggregate.condition, None))
        if index is not None:  # the moments of x count the rows where x is known
            return lambda: read_count(index, self._get_moments(index), nulls=False)
        if not domain_of(argument, self.columns).nullable:
            return self._rows(aggregate.condition)
        known = Call("not", (Call("is_null", (argument,)),))
        return self._rows(join_conditions(aggregate.condition, known))

    def _rows(self, condition: Expression | None) -> Callable[[], Recipe]:
        """Rows where ``condition`` holds, off any moments of the same rows, or by themselves."""
        for index, moments in enumerate(self.measurements):
            if isinstance(moments, Moments) and moments.condition == condition:
                nullable = any(
                    domain_of(v.expression, self.columns).nullable for v in moments.variables
                )
                counts_null = moments.counts_null or nullable
                self.measurements[index] = replace(moments, counts_null=counts_null)
                return lambda: read_count(index, self._get_moments(index), nulls=True)
        index = self._book(Moments(condition=condition))
        return lambda: read_count(index, self._get_moments(index), nulls=True)

    def _moment(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        degree = _DEGREES[aggregate.function]
        index = self._book_moments(aggregate.arguments, degree, aggregate)

        def recipe() -> Recipe:
            moments = self._get_moments(index)
            if aggregate.function == "SUM":
                return read_sum(index, moments)
            return Ratio(index, aggregate.function, moments)

        return recipe

    def _pair(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        index = self._book_moments(aggregate.arguments, 2, aggregate)
        return lambda: Ratio(index, aggregate.function, self._get_moments(index))

    def _get_moments(self, index: int) -> Moments:
        moments = self.measurements[index]
        if not isinstance(moments, Moments):
            raise TypeError(index)
        return moments

    def _group_total(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        """SUM, or COUNT as the sum of ones, with each unit's own total clipped."""
        low, high = aggregate.bounds_per_group or (Fraction(0), Fraction(0))
        condition = aggregate.condition
        argument: Expression = aggregate.arguments[0] if aggregate.arguments else Literal(1)
        if aggregate.function == "COUNT" and aggregate.arguments:
            condition = join_conditions(condition, Call("not", (Call("is_null", (argument,)),)))
            argument = Literal(1)
        grid = _refine(choose_grid(low, high, GRID_BITS), low, high, self.weight_bits)
        if domain_of(argument, self.columns).kind is not Kind.DECIMAL:
            grid = max(grid, Fraction(1))  # whole numbers need no finer steps
        first, last = math.floor(low / grid), math.ceil(high / grid)
        total = GroupTotal(argument, grid, first, max(1, last - first), condition)
        index = self._book(total)
        return lambda: Linear(
            index, (grid * Fraction(first, total.span), grid * Fraction(last, total.span)), grid
        )

    def _group_mean(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        """AVG as the mean of each unit's own mean, which is clipped.

        Both entries of a unit are those of one row whose value is the unit's mean: what is read
        off them is read off moments.  A mean of whole numbers is none: its steps are fine.
        """
        low, high = aggregate.bounds_per_group or (Fraction(0), Fraction(0))
        grid = choose_grid(low, high, GRID_BITS)
        first, last = math.floor(low / grid), math.ceil(high / grid)
        mean = GroupMean(
            aggregate.arguments[0], grid, first, max(1, last - first), aggregate.condition
        )
        index = self._book(mean)
        unit = Scaled(mean.expression, grid, mean.low, mean.span)
        return lambda: Ratio(index, "AVG", Moments((unit,), (1,), condition=mean.condition))

    def _rank(self, aggregate: Aggregate) -> tuple[Scaled, int]:
        """The counts of all values, from which quantiles are chosen."""
        argument = aggregate.arguments[0]
        bits = FINE_BITS if aggregate.auto else GRID_BITS
        variable = put_on_grid(argument, self._number(argument, aggregate), bits, FINE_BITS)
        return variable, self._book(Histogram(variable, aggregate.condition))

    def _clip(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        """The counts of all values, in which ends are found and between which they are added.

        Aggregates of the same values share the ends, and so what these cost.
        """
        function, argument = aggregate.function, aggregate.arguments[0]
        trim = _to_fraction(aggregate.parameters[0]) if function == "TRIMMED_MEAN" else None
        bits = FINE_BITS if aggregate.auto else GRID_BITS
        variable = put_on_grid(argument, self._number(argument, aggregate), bits, FINE_BITS)
        key = (variable, aggregate.condition, trim)
        index, degree = self._clipped.get(key, (len(self.measurements), 1))
        if key not in self._clipped:
            self._counted.add(index)
            self.measurements.append(Histogram(variable, aggregate.condition))
        self._clipped[key] = index, max(degree, _DEGREES.get(function, 1))
        return lambda: Clipped(index, function, variable, self._clipped[key][1], trim)

    def _quantile(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        variable, index = self._rank(aggregate)
        ends = {"MIN": (Fraction(0),), "MAX": (Fraction(1),)}
        asked = ends.get(aggregate.function) or tuple(_to_fraction(p) for p in aggregate.parameters)
        at = tuple(min(max(q, EXTREME), 1 - EXTREME) for q in asked)
        return lambda: Quantile(index, at, variable, len(at) > 1)

    def _choice(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        argument = aggregate.arguments[0]
        domain = domain_of(argument, self.columns)
        if domain.values is None:
            raise QuestionRefusal(
                "Q40",
                f"{aggregate.function} in '{aggregate.name}' has no public list of values to "
                "choose from.",
                why="to name a value that only one person has would name that person.",
                fix="declare the column's allowed values in the schema (values or values_from).",
            )
        index = self._book(ValueCounts(argument, domain.values, aggregate.condition))
        asked = int(_to_fraction(aggregate.parameters[0])) if aggregate.parameters else 1
        count = min(asked, len(domain.values))
        return lambda: Choice(index, count, aggregate.function == "TOP_K")

    def _histogram(self, aggregate: Aggregate) -> Callable[[], Recipe]:
        """Counts between the edges e_0 <= x < e_1 <= x < ...; the last bin includes its end."""
        argument = aggregate.arguments[0]
        edges = tuple(_to_fraction(edge) for edge in aggregate.parameters)
        branches = tuple(
            (_write_between(argument, low, high, last=i == len(edges) - 2), Literal(i))
            for i, (low, high) in enumerate(pairwise(edges))
        )
        which = Case(branches, Literal(None))
        # A measurement of its own: counts are measured with noise, choices without.
        index = len(self.measurements)
        self._counted.add(index)
        values = tuple(range(len(branches)))
        self.measurements.append(ValueCounts(which, values, aggregate.condition))
        return lambda: Counts(index)


def _write_between(x: Expression, low: Fraction, high: Fraction, *, last: bool) -> Expression:
    upper = Call("less_equal" if last else "less", (x, Literal(high)))
    return Call("and", (Call("greater_equal", (x, Literal(low))), upper))


def _to_fraction(value: Value) -> Fraction:
    if isinstance(value, str | date):
        raise TypeError("a parameter of an aggregate is a number")
    return Fraction(value)


def join_conditions(one: Expression | None, other: Expression) -> Expression:
    """The conjunction of a condition that may be absent and another."""
    return other if one is None else Call("and", (one, other))


def choose_grid(low: Fraction, high: Fraction, bits: int) -> Fraction:
    """The least power of two that divides low ... high into at most 2**bits steps.

    And the ends into at most 2**53: finer than a double has, nothing can be told.
    """
    span = max(high - low, max(abs(low), abs(high)) / 2 ** (53 - bits), Fraction(1, 2**30))
    step = Fraction(1)
    while step * 2**bits < span:
        step *= 2
    while step / 2 * 2**bits >= span:
        step /= 2
    return step


def _refine(step: Fraction, low: Fraction, high: Fraction, bits: int) -> Fraction:
    """A step above one made finer, down to one, where 2**bits steps allow it."""
    return step if step <= 1 else min(step, max(Fraction(1), choose_grid(low, high, bits)))


REACH = {Kind.INTEGER: Fraction(2**39), Kind.DECIMAL: Fraction(2**29)}
"""How far from zero bounds are looked for, where none are declared."""


def look_everywhere(domain: Domain) -> Domain:
    """Where bounds are looked for: between those that are public, or far enough without them.

    A single end that is public is kept, and the other looked for on its side.
    """
    far = REACH.get(domain.kind, REACH[Kind.DECIMAL])
    low, high = domain.low, domain.high
    if low is None:
        low = -far if high is None else min(-far, high - far)
    if high is None:
        high = max(far, low + far)
    return replace(domain, low=low, high=high)


def put_on_grid(argument: Expression, domain: Domain, bits: int, fine: int = 0) -> Scaled:
    """``argument`` on a grid that covers its domain in at most 2**bits steps.

    Steps above one are made finer where 2**``fine`` steps allow it.  A column that declares a
    step is measured in its own, or in so many of them.
    """
    low, high = domain.low or Fraction(0), domain.high or Fraction(0)
    step = choose_grid(low, high, bits)
    if fine > bits:
        step = _refine(step, low, high, fine)
    if domain.kind is not Kind.DECIMAL:
        step = max(step, Fraction(1))  # whole numbers need no finer steps
    declared = domain.step if isinstance(argument, ColumnRef) else None
    if declared is not None and max(abs(low), abs(high)) < 2**53 * declared:
        own = declared
        while (high - low) / own > 2 ** max(bits, fine):
            own *= 2
        step = own
    first, last = math.floor(low / step), math.ceil(high / step)
    return Scaled(argument, step, first, max(1, last - first))


def rounds(variable: Scaled, columns: Mapping[str, Domain]) -> bool:
    """Whether the grid moves values: not those that lie on it."""
    domain = domain_of(variable.expression, columns)
    if isinstance(variable.expression, ColumnRef) and domain.step == variable.grid:
        return False
    return domain.kind is Kind.DECIMAL or variable.grid.numerator != 1


def find_moved(source: Relation, variable: Scaled) -> float:
    """By how much the grid may move a value of ``variable``: nothing where values lie on it."""
    return _half(variable.grid) if rounds(variable, columns(source)) else 0.0


def _half(grid: Fraction) -> float:
    try:
        return float(grid / 2)
    except OverflowError:
        return math.inf


def find_shifts(plan: Plan, recipe: Ratio) -> tuple[float, ...]:
    """By how much the grid may move a value of each variable that a ratio is computed of."""
    if isinstance(plan.measurements[recipe.measurement], GroupMean):
        # half a step for each row of a unit, and half a step for their mean
        return tuple(2 * _half(variable.grid) for variable in recipe.moments.variables)
    return tuple(find_moved(plan.source, variable) for variable in recipe.moments.variables)


MOST_ROUNDED = 2**32
"""So many values a sum is taken to have at most, where nothing that was released counts them."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """What the grid may add to a sum: ``each`` for every value that is added.

    ``counted`` says how the values are read off the same entries; None where nothing tells.
    """

    each: float
    counted: Linear | None


def find_rounding(plan: Plan, index: int, rows_per_group: int) -> Rounding | None:
    """By how much rounded values may move the sum that a measurement is; None where they do not.

    The entries of ``GroupTotal`` count units, of which each has so many rows in a group at most.
    """
    counted, each = None, 1
    match measurement := plan.measurements[index]:
        case Moments(variables=(variable,)):
            counted = read_count(index, measurement, nulls=False)
        case Sum(variable=variable):
            pass
        case GroupTotal(expression=x, grid=grid, low=low, span=span):
            variable = Scaled(x, grid, low, span)
            counted, each = Linear(index, (Fraction(1, span),) * 2, Fraction(1)), rows_per_group
        case GroupSum(expression=x, grid=grid, low=low, span=span):
            variable = Scaled(x, grid, low, span)
        case _:
            return None
    moved = find_moved(plan.source, variable)
    return Rounding(each * moved, counted) if moved else None


# --- reading entries -------------------------------------------------------------------------


def read_count(index: int, moments: Moments, *, nulls: bool) -> Linear:
    """COUNT(*) (``nulls``) or COUNT(x) as a combination of the entries."""
    coefficients = power_coefficients(moments, (0,) * len(moments.degrees))
    if moments.counts_null:
        coefficients += (Fraction(1, moments.weight) if nulls else Fraction(0),)
    return Linear(index, coefficients, Fraction(1))


def read_sum(index: int, moments: Moments) -> Linear:
    """SUM(x) = grid * (low * count + sum of u), as one combination of the entries."""
    variable = moments.variables[0]
    counts = power_coefficients(moments, (0,))
    sums = power_coefficients(moments, (1,))
    coefficients = tuple(
        variable.grid * (variable.low * n + u) for n, u in zip(counts, sums, strict=True)
    )
    if moments.counts_null:
        coefficients += (Fraction(0),)
    return Linear(index, coefficients, variable.grid)


def power_coefficients(moments: Moments, powers: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Coefficients that give the sum of u1**p1 * u2**p2 * ... from the Bernstein entries.

    On [0, N], (u / N)**p is the combination of the Bernstein polynomials of
    degree d with coefficients binom(j, p) / binom(d, p).
    """
    products = [Fraction(1, moments.weight)]
    for variable, degree, power in zip(moments.variables, moments.degrees, powers, strict=True):
        row = [
            Fraction(math.comb(j, power), math.comb(degree, power)) * variable.span**power
            for j in range(degree + 1)
        ]
        products = [left * right for left in products for right in row]
    return tuple(products)


def compute_ratios(recipe: Ratio, entries: Floats) -> Floats:
    """AVG, VARIANCE, COVAR, ... of each group (last axis: entries); NaN where undefined."""
    moments = recipe.moments

    def power(*powers: int) -> Floats:
        # One product after the other: a dot product adds in an order that the processor chooses,
        # and an answer that is shown again elsewhere must be the same to its last digit.
        total: Floats = np.zeros(entries.shape[:-1])
        for j, coefficient in enumerate(power_coefficients(moments, powers)):
            total = total + entries[..., j] * float(coefficient)
        return total

    with np.errstate(all="ignore"):
        if len(moments.variables) == 1:
            return _compute_of_one(recipe.function, moments.variables[0], power)
        return _compute_of_two(recipe.function, moments.variables, power)


def _compute_of_one(function: str, variable: Scaled, power: Callable[..., Floats]) -> Floats:
    # numpy's floats: where bounds are absurd they give infinity instead of raising.
    grid, span = np.float64(variable.grid), float(variable.span)
    count = power(0)
    count = np.where(count >= 1.0, count, np.nan)
    mean = np.clip(power(1) / count, 0.0, span)
    if function == "AVG":
        values: Floats = grid * (float(variable.low) + mean)
        return values
    spread = np.clip(power(2) / count - mean**2, 0.0, span**2 / 4)
    if function.endswith("SAMP"):
        spread = np.where(count > 1.0, spread * count / (count - 1), np.nan)
    variance: Floats = spread * grid**2
    if not function.startswith("STDDEV"):
        return variance
    deviation: Floats = np.sqrt(variance)
    return deviation


def _compute_of_two(
    function: str, variables: tuple[Scaled, ...], power: Callable[..., Floats]
) -> Floats:
    """SQL's argument order: y first, x second (REGR_SLOPE(y, x))."""
    y, x = variables
    count = power(0, 0)
    count = np.where(count >= 1.0, count, np.nan)
    mean_y = np.clip(power(1, 0) / count, 0.0, y.span)
    mean_x = np.clip(power(0, 1) / count, 0.0, x.span)
    var_y = np.clip(power(2, 0) / count - mean_y**2, 0.0, y.span**2 / 4)
    var_x = np.clip(power(0, 2) / count - mean_x**2, 0.0, x.span**2 / 4)
    most = np.sqrt(var_x * var_y)  # Cauchy-Schwarz
    joint = np.clip(power(1, 1) / count - mean_x * mean_y, -most, most)
    step_x, step_y = np.float64(x.grid), np.float64(y.grid)
    if function.startswith("COVAR"):
        scale = count / (count - 1) if function == "COVAR_SAMP" else 1.0
        values: Floats = joint * step_x * step_y * scale
    elif function == "CORR":
        values = joint / most
    else:
        slope = joint / var_x * (step_y / step_x)
        values = slope
        if function == "REGR_INTERCEPT":
            values = step_y * (float(y.low) + mean_y) - slope * step_x * (float(x.low) + mean_x)
    return values
