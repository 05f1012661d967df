"""What the engine must compute: integers, per group; and how far one unit can move them.

A plan is the contract between pricing (which derives sensitivities from it), the
engine (which runs it exactly) and the release (which adds noise to what comes
back).  Every measurement is a vector of integers per group; a row adds a vector
of non-negative integers to it whose entries add up to exactly ``weight`` (``Sum``
and ``GroupSum``: one integer of either sign).  How far one unit moves that vector,
in total and in Euclidean length, follows from its bounded share alone.

Lemma numbers refer to ``docs/proofs/price.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, prod

from discreet.exact.records import dataclass
from discreet.question.domain import Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression
from discreet.question.functions import references
from discreet.question.functions.interpret import FLIPPED, OPPOSITE
from discreet.question.question import Key
from discreet.question.relation import (
    Filter,
    OwnerJoin,
    PublicJoin,
    PublicSource,
    Relation,
    Source,
    UnitJoin,
)
from discreet.question.schema import Neighbours


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number put on a public grid: u = round(x / grid) - low, clipped to 0 ... span."""

    expression: Expression
    grid: Fraction  # a power of two, or a step that the column declares
    low: int  # in steps of the grid
    span: int  # high - low, in steps; at least 1


@dataclass(frozen=True, slots=True)
class Moments:
    """Bernstein sums of some variables (none: a plain count of rows).

    With u in 0 ... N, a row adds C(d, j) u**j (N - u)**(d - j) to entry j; for
    several variables the entries are the products, in row-major order.  A row
    in which any variable is NULL adds ``weight`` to one further, last entry
    (present only if ``counts_null``), and nothing otherwise.  DESIGN: one
    person has weight one.
    """

    variables: tuple[Scaled, ...] = ()
    degrees: tuple[int, ...] = ()
    counts_null: bool = False
    condition: Expression | None = None  # rows where it is not true add nothing
    parts: int = 1  # of which each entry has so many: those of several measurements, weighted

    @property
    def weight(self) -> int:
        """What the entries added by one row add up to."""
        spans = (v.span**d for v, d in zip(self.variables, self.degrees, strict=True))
        found: int = self.parts * prod(spans)
        return found

    @property
    def entries(self) -> int:
        """How many integers there are for each group."""
        return prod(d + 1 for d in self.degrees) + self.counts_null


@dataclass(frozen=True, slots=True)
class Units:
    """How many different units have a row in the group (where ``condition`` holds)."""

    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many rows fall on each step u = 0 ... span of one variable's grid, NULLs left out."""

    variable: Scaled
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How many rows have each of the listed values; other values and NULL are left out."""

    expression: Expression
    values: tuple[Value, ...]
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class DistinctValues:
    """How many different values other than NULL the group has."""

    expression: Expression
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class GroupTotal:
    """The sum over units of each unit's own total in the group, clipped to low ... low + span.

    ``total`` is a whole number of steps of ``grid`` per row; a unit's total is
    summed exactly, then clipped (BigQuery's contribution_bounds_per_group).
    Each unit adds a vector (span - u, u), as in ``Moments`` of degree one.
    """

    expression: Expression
    grid: Fraction
    low: int
    span: int
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of one variable: a row adds ``low + u`` steps, and nothing where it is NULL.

    One number instead of the two of ``Moments``: less noise where nothing but the sum is asked.
    """

    variable: Scaled
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class GroupSum:
    """The same sum of clipped totals as ``GroupTotal``, as one number: a unit adds ``low + u``."""

    expression: Expression
    grid: Fraction
    low: int
    span: int
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class GroupMean:
    """The sum over units of each unit's own mean in the group, clipped to low ... low + span.

    A unit's rows are added up in steps of ``grid``, divided by how many they are, rounded (half
    up) and clipped (BigQuery's AVG with contribution_bounds_per_group).  Each unit adds a vector
    (span - u, u), so that both entries together are ``span`` for each unit.
    """

    expression: Expression
    grid: Fraction
    low: int
    span: int
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Products:
    """The number of rows, the sums of some variables and of their products, two at a time.

    With v = (2u - N) / N, a row adds 1, every v and every product of two of them (also with
    itself), numbers between -1 and 1.  Their sums over the group are measured in steps of
    1 / ``unit``, rounded down.  A row in which any variable is NULL adds nothing.
    """

    variables: tuple[Scaled, ...]
    unit: int = 2**20
    condition: Expression | None = None

    @property
    def entries(self) -> int:
        """How many integers there are for each group."""
        return len(list_products(len(self.variables)))


def list_products(variables: int) -> list[tuple[int, int]]:
    """Which two of (1, v1, v2, ...) each entry is the sum of products of.

    >>> list_products(2)
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    return [(i, j) for i in range(variables + 1) for j in range(i, variables + 1)]


@dataclass(frozen=True, slots=True)
class Distance:
    """How many units stand in the way of a property of the group's rows, at least.

    ``property`` is "sorted" (a value, by another), "dependency" (a value, on others) or "clusters"
    (of a value: so many, of a width).  A row in which any of them is NULL is left out.
    """

    property: str
    expressions: tuple[Expression, ...]
    clusters: int = 0
    width: Fraction = Fraction(0)
    condition: Expression | None = None


Measurement = (
    Moments
    | Products
    | Units
    | Distance
    | Histogram
    | ValueCounts
    | DistinctValues
    | GroupTotal
    | Sum
    | GroupSum
    | GroupMean
)


MOST_PARTS = 2**20
"""The largest denominator of a fraction of the rows: 2**42 rows times it fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The values around a quantile: from ``ranks`` before ``low`` of all to as many past ``high``.

    At both ends it is longer by one in ``share`` of all values; by nothing if that is 0.
    """

    low: Fraction
    high: Fraction
    ranks: int
    share: int = 0

    @classmethod
    def around(cls, quantile: Fraction, ranks: int, share: int) -> Stretch:
        """Around a quantile; one of many digits is widened to fractions of few."""
        if quantile.denominator <= MOST_PARTS:
            return cls(quantile, quantile, ranks, share)
        low = Fraction(floor(quantile * MOST_PARTS), MOST_PARTS)
        return cls(low, Fraction(ceil(quantile * MOST_PARTS), MOST_PARTS), ranks, share)


@dataclass(frozen=True, slots=True)
class Lumping:
    """Which cells of a histogram come back together, and what is told of them.

    Those outside the ``stretches``; or, around ``zero``, those that no candidate for an end of
    clipped values parts (:class:`~discreet.mechanisms.clipping.ClippedSums`).  Of each lump how
    many values it has, its first and its last cell, and the sums of the powers 1 ... ``degree``.
    """

    stretches: tuple[Stretch, ...] = ()
    zero: int | None = None
    degree: int = 0


Lumpings = tuple[Lumping | None, ...]
"""Of each measurement of a plan what may come back together; None where nothing may."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What is kept of each unit before measuring; which rows, its own rows decide.

    Either ``rows``: at most that many rows in all; or ``groups``: rows of at most
    that many groups, and at most ``rows_per_group`` in each.  ``enforced`` says
    that the relation itself already guarantees it, so that no further step is
    needed.
    """

    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None
    enforced: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Measure ``measurements`` of ``source`` for each group of ``keys``."""

    source: Relation
    keys: tuple[Key, ...]
    contribution: Contribution
    measurements: tuple[Measurement, ...]

    @property
    def public_keys(self) -> bool:
        """Whether the groups are known without looking at data."""
        return all(key.values is not None for key in self.keys)


# --- the same rows under other names -----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class BaseRows:
    """Which rows a plan measures: those of ``base`` that satisfy every one of ``conditions``.

    Aliases are gone: two questions about the same rows have the same base, whatever they call
    its tables.  ``names`` says what a column of the plan is called here.
    """

    base: Relation
    conditions: tuple[Expression, ...]
    names: Mapping[str, str]

    @classmethod
    def of(cls, source: Relation) -> BaseRows:
        """The rows of a relation, below its outermost filters."""
        found: list[Expression] = []
        while isinstance(source, Filter):
            found = [*split_condition(source.predicate), *found]
            source = source.source
        base, names = _without_aliases(source, {})
        return cls(base, tuple(rename(condition, names) for condition in found), names)


def split_condition(condition: Expression | None) -> tuple[Expression, ...]:
    """The parts of which all must be true."""
    if condition is None:
        return ()
    if isinstance(condition, Call) and condition.function == "and":
        return tuple(part for each in condition.arguments for part in split_condition(each))
    return (condition,)


def rename(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with its columns called by other names; those not listed keep theirs."""
    match expression:
        case ColumnRef(name=name):
            return ColumnRef(names.get(name, name))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(rename(part, names) for part in arguments))
        case Case(branches=branches, otherwise=otherwise):
            renamed = tuple((rename(a, names), rename(b, names)) for a, b in branches)
            return Case(renamed, rename(otherwise, names))
    return expression


def _without_aliases(relation: Relation, met: dict[str, int]) -> tuple[Relation, Mapping[str, str]]:
    """Tables and their joins with columns called by the tables' own names; others as they are."""
    match relation:
        case Source(columns=columns):
            own = _by_table(relation, met)
            return replace(relation, columns=tuple((own[a], c) for a, c in columns)), own
        case Filter(source=source, predicate=predicate):
            inner, names = _without_aliases(source, met)
            return Filter(inner, rename(predicate, names)), names
        case PublicJoin(left=left, right=right, on=on, kind=kind):
            first, names = _without_aliases(left, met)
            listed = _by_table(right, met)
            public = replace(right, columns=tuple((listed[a], c) for a, c in right.columns))
            equal = tuple((rename(e, names), listed[column]) for e, column in on)
            return PublicJoin(first, public, equal, kind), {**names, **listed}
        case UnitJoin(left=left, right=right, on=on, kind=kind):
            first, names = _without_aliases(left, met)
            second, other = _without_aliases(right, met)
            pairs = tuple((names.get(a, a), other.get(b, b)) for a, b in on)
            return UnitJoin(first, second, pairs, kind), {**names, **other}
        case OwnerJoin(left=left, right=right, owner=owner, kind=kind):
            first, names = _without_aliases(left, met)
            second, other = _without_aliases(right, met)
            return OwnerJoin(first, second, names.get(owner, owner), kind), {**names, **other}
    return relation, {}


def _by_table(source: Source | PublicSource, met: dict[str, int]) -> dict[str, str]:
    """What each column is called after its table."""
    name = source.table.name
    number = met[name] = met.get(name, 0) + 1  # a table may be met twice
    prefix = name if number == 1 else f"{name} {number}"
    return {alias: f"{prefix}.{column}" for alias, column in source.columns}


def list_values(measurement: Measurement) -> tuple[Expression, ...]:
    """What a measurement adds up or counts, row by row; nothing for a count of rows."""
    match measurement:
        case Moments(variables=variables) | Products(variables=variables):
            return tuple(variable.expression for variable in variables)
        case Histogram(variable=variable) | Sum(variable=variable):
            return (variable.expression,)
        case Units():
            return ()
        case Distance(expressions=expressions):
            return expressions
    return (measurement.expression,)


# --- one condition in several words ------------------------------------------------------------


def normalise(expression: Expression) -> Expression:
    """The expression in its one form: nothing is denied that can be said, constants stand last.

    Only what is true, false and NULL on the same rows has the same form (``docs/proofs/known.md``,
    Lemma 17).  It is for comparing: what is shown and run stays as it was asked.

    >>> from discreet.question.expressions import Literal
    >>> dear = Call("less", (Literal(100), ColumnRef("cost")))
    >>> normalise(dear)
    Call(function='greater', arguments=(ColumnRef(name='cost'), Literal(value=100)))
    >>> normalise(Call("not", (dear,)))
    Call(function='less_equal', arguments=(ColumnRef(name='cost'), Literal(value=100)))
    """
    match expression:
        case Call(function="not", arguments=(part,)):
            return _deny(normalise(part))
        case Call(function=name, arguments=(a, b)) if name in FLIPPED:
            a, b = normalise(a), normalise(b)
            if _rank(b) < _rank(a):
                return Call(FLIPPED[name], (b, a))
            return Call(name, (a, b))
        case Call(function=name, arguments=arguments):
            return Call(name, tuple(map(normalise, arguments)))
        case Case(branches=branches, otherwise=otherwise):
            formed = tuple((normalise(a), normalise(b)) for a, b in branches)
            return Case(formed, normalise(otherwise))
    return expression


def list_conditions(condition: Expression | None) -> tuple[Expression, ...]:
    """The parts of which all must be true, each in its one form."""
    return () if condition is None else split_condition(normalise(condition))


def _deny(form: Expression) -> Expression:
    match form:
        case Call(function="not", arguments=(part,)):
            return part
        case Call(function=name, arguments=(a, b)) if name in OPPOSITE:
            return Call(OPPOSITE[name], (a, b))
    return Call("not", (form,))


def _rank(form: Expression) -> tuple[bool, str]:
    """Constants after all that is looked at, and else in the order of their texts."""
    return not references(form), repr(form)  # Python takes 1 and true for equal


def is_plain(plan: Plan) -> bool:
    """Whether all its conditions are on rows, each in its one form, and none is said twice."""
    if any(one.condition is not None for one in plan.measurements):
        return False
    asked = BaseRows.of(plan.source).conditions
    forms = {repr(part): part for one in asked for part in list_conditions(one)}
    return list(forms) == [repr(one) for one in asked]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The most one unit changes a vector of integers: L1, and L2 squared."""

    l1: int
    l2_squared: int


@dataclass(frozen=True, slots=True)
class Reach:
    """What one unit holds after bounding: groups it is in, rows in one group, rows in all."""

    groups: int
    rows_per_group: int
    rows: int

    @classmethod
    def of(
        cls,
        contribution: Contribution,
        *,
        grouped: bool,
        most: int | None = None,
        width: int | None = None,
    ) -> Reach:
        """The reach of a contribution; without keys there is one group.

        ``most`` is what the relation itself bounds a unit's rows to, if it does, and ``width``
        the number of groups that its rows can lie in, if the keys bound it.
        """
        if contribution.rows is not None:
            rows = contribution.rows
            groups = rows if width is None else min(rows, width)
            return cls(groups if grouped else 1, rows, rows)
        groups = contribution.groups or 1
        groups = groups if width is None else min(groups, width)
        per_group = contribution.rows_per_group or 1
        if not grouped:
            groups = 1
        rows = groups * per_group
        return cls(groups, per_group, rows if most is None else min(rows, most))

    @property
    def length_squared(self) -> int:
        """The greatest sum of squared row counts over groups.

        Lemma 1: with at most ``rows`` rows in all it is largest when they share a
        group; with a bound per group, when every group is full.
        """
        full, rest = divmod(self.rows, self.rows_per_group)
        return full * self.rows_per_group**2 + rest**2


def compute_sensitivity(
    measurement: Measurement,
    reach: Reach,
    neighbours: Neighbours,
    *,
    grouped: bool = True,
    as_two: bool = False,
) -> Sensitivity:
    """The sensitivity of one measurement of every group together.

    ``grouped``: whether a changed unit can leave one group and join another.  ``as_two``: a
    change priced as a removal and an addition, as it was when ledgers began to be kept.
    """
    l1, l2_squared = _bound_addition(measurement, reach)
    if neighbours is not Neighbours.CHANGE_ONE:
        return Sensitivity(l1, l2_squared)
    if as_two:
        return Sensitivity(2 * l1, 4 * l2_squared)  # Lemma 5
    low, high = _ends(measurement)
    end = max(-low, high)
    if moves_once(measurement, grouped=grouped):  # Lemma 10: one number, from end to end
        return Sensitivity(l1 * (high - low) // end, l2_squared * (high - low) ** 2 // end**2)
    # Lemma 10: entries that are left and entries that are joined, or one that changes its sign.
    both = max(2 * end**2, (high - low) ** 2)
    return Sensitivity(2 * l1, l2_squared * both // end**2)


def moves_once(measurement: Measurement, *, grouped: bool) -> bool:
    """Whether a change of one unit moves one number, and so by no more than its range."""
    if grouped:
        return False
    match measurement:
        case Moments(entries=entries):
            return entries == 1
        case ValueCounts(values=values):
            return len(values) == 1
    return isinstance(measurement, Units | Distance | DistinctValues | Sum | GroupSum)


def _ends(measurement: Measurement) -> tuple[int, int]:
    """Between which numbers one row, or unit, moves an entry, in its own weight."""
    match measurement:
        case Sum(variable=Scaled(low=low, span=span)) | GroupSum(low=low, span=span):
            return min(low, 0), max(low + span, 0)
        case Products():
            return -1, 1
    return 0, 1


def _bound_addition(measurement: Measurement, reach: Reach) -> tuple[int, int]:
    match measurement:
        case Moments(weight=weight):  # Lemma 2: a row's entries are >= 0 and add up to weight
            return reach.rows * weight, reach.length_squared * weight**2
        case Products(unit=unit, entries=entries):  # a row moves each entry by at most a unit
            return reach.rows * unit * entries, reach.length_squared * unit**2 * entries
        case Histogram() | ValueCounts() | DistinctValues():  # Lemma 3: a row moves one count by 1
            return reach.rows, reach.length_squared
        case Units() | Distance():  # Lemma 4: a unit moves each of its groups by one
            return reach.groups, reach.groups
        case GroupTotal(span=span) | GroupMean(span=span):  # Lemma 4, with weight span
            return reach.groups * span, reach.groups * span**2
        case Sum(variable=variable):  # Lemma 8: a row moves one number by at most an end
            end = furthest(variable.low, variable.span)
            return reach.rows * end, reach.length_squared * end**2
        case GroupSum(low=low, span=span):  # Lemma 8, once for each group
            end = furthest(low, span)
            return reach.groups * end, reach.groups * end**2


def furthest(low: int, span: int) -> int:
    """The largest size of a number between ``low`` and ``low + span``."""
    return max(abs(low), abs(low + span))


@dataclass(frozen=True, slots=True)
class Moves:
    """How one unit can move the entries of a measurement, of all groups.

    At most ``entries`` move.  ``longest``: the longest move is of so many entries by that step
    each, and all others have at most the squared length ``shorter``; None where nothing is known
    of it but its length.
    """

    entries: int
    longest: tuple[int, int] | None = None
    shorter: int = 0


def find_moves(
    measurement: Measurement, reach: Reach, neighbours: Neighbours, *, grouped: bool
) -> Moves:
    """How one unit can move the entries of a measurement."""
    entries = count_moved(measurement, reach, neighbours, grouped=grouped)
    counted = isinstance(measurement, Units) or (
        isinstance(measurement, Moments) and measurement.entries == measurement.weight == 1
    )
    if not counted or entries == 1 or neighbours is Neighbours.CHANGE_ONE:
        return Moves(entries)
    if isinstance(measurement, Units):
        return Moves(entries, (reach.groups, 1), reach.groups - 1)
    if reach.rows_per_group == 1:
        most = min(reach.groups, reach.rows)
        return Moves(entries, (most, 1), most - 1)
    if reach.rows == reach.rows_per_group:  # all in one group, or one of them in another
        return Moves(entries, (1, reach.rows), (reach.rows - 1) ** 2 + 1)
    return Moves(entries)


def count_moved(
    measurement: Measurement, reach: Reach, neighbours: Neighbours, *, grouped: bool
) -> int:
    """The most entries, of all groups, that one unit can move."""
    groups = reach.groups
    if grouped and neighbours is Neighbours.CHANGE_ONE:  # out of some groups, into others
        groups *= 2
    match measurement:
        case Moments(entries=entries) | Products(entries=entries):
            return groups * entries
        case GroupTotal() | GroupMean():
            return groups * 2
        case Histogram():
            return groups * reach.rows_per_group * 2
        case ValueCounts(values=values):
            return groups * min(2 * reach.rows_per_group, len(values))
    return groups
