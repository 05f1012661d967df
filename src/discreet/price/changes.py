"""What a change of one unit moves: the row that goes and the row that comes, side by side.

Where a unit is changed, one row goes as another comes.  What both are counted in alike does not
move, and a sum moves by the difference of the two.  So rows are compared two by two: each cell
of the columns that a statement looks at says for every measurement what a row there can add, and
every pair of cells how much of each measurement's loss such a change takes.  What is not
understood may be anything.

Lemma numbers refer to ``docs/proofs/joint.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np

from discreet.price.joint import (
    MOST_MEETINGS,
    Cutter,
    Layout,
    Meeting,
    conjoin,
    describe_rows,
    is_by_row,
    peel,
)
from discreet.price.plan import (
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Measurement,
    Moments,
    Plan,
    Products,
    Reach,
    Scaled,
    Sum,
    Units,
    compute_sensitivity,
)
from discreet.question.blocks.evaluate import evaluate_on_blocks
from discreet.question.domain import Domain, Kind, number_of
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of
from discreet.question.ownership import Multiplicity, constant_columns
from discreet.question.schema import Neighbours

_MOST_ROWS = 700
"""So many kinds of rows are compared with one another."""

_MOST_UNITS = 1000
"""So many kinds of units, of several rows each."""

_MOST_APART = 60_000
"""So often what two units hold is compared."""

_MOST_ORDERS = 3
"""Of so many rows every order is tried."""

_MOST_PARTS = 24
"""So many things a row can add to one measurement; beyond, they are taken together."""

_MOST_WAYS = 20_000
"""So many different pairs are looked through for those that no other exceeds."""

_SIMPLE, _FINE = 1000, 2**16
"""Parts of a loss are fractions with small denominators, or rounded up to this one."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a row can add to one measurement: nothing, one for NULL, values in a range of each."""

    nothing: bool
    null: bool = False
    ranges: tuple[tuple[int, int], ...] | None = None  # of each variable, in steps

    @property
    def adds(self) -> bool:
        """Whether it can add anything."""
        return self.null or self.ranges is not None


_NOTHING = Part(nothing=True)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Every kind of row: what it adds to each measurement, its group and its unit's state."""

    parts: list[list[Part]]  # of each measurement, nothing first
    kinds: Any  # one row for each kind: which part of each measurement
    groups: Any  # of each kind: in which group it is; -1 if that is not known
    states: Any  # of each kind: which values the columns have that its unit's rows have in common


def find_changes(
    plan: Plan,
    known: Mapping[str, Domain],
    reach: Reach,
    multiplicity: Multiplicity,
    *,
    by_rows: bool = False,
) -> tuple[tuple[Meeting, ...] | None, bool]:
    """The ways in which a change can move measurements together, and whether they were found.

    None for all at once.  ``known`` are the columns of the plan's source.  ``by_rows``: as it was
    done before units were compared as a whole in groups, only to find what was paid for then.
    """
    constant = constant_columns(plan.source, multiplicity)
    return _find_changes(plan, tuple(known.items()), reach, constant, by_rows)


@lru_cache(maxsize=64)  # the price of an accuracy is looked for at many prices
def _find_changes(
    plan: Plan,
    items: tuple[tuple[str, Domain], ...],
    reach: Reach,
    constant: frozenset[str],
    by_rows: bool,
) -> tuple[tuple[Meeting, ...] | None, bool]:
    known = dict(items)
    grouped, measured = bool(plan.keys), plan.measurements
    by_row = [reach.rows == 1 or is_by_row(m, reach) for m in measured]
    if reach.rows_per_group != reach.rows:  # Lemma 7: no limit for each group
        return None, False
    whole = grouped and not by_rows
    listed = 1 < reach.rows <= _MOST_ORDERS and (whole or not all(by_row))
    if by_rows and grouped and not all(by_row):
        return None, False
    if not (all(by_row) or listed):
        return None, False
    rows = _list_rows(plan, known, constant)
    if rows is None:
        return None, False
    tables = [_tabulate(m, p, grouped=grouped) for m, p in zip(measured, rows.parts, strict=True)]
    ways = _pair_units(rows, plan, tables, reach, by_rows=by_rows) if listed else None
    if ways is None and all(by_row):
        ways = _price_pairs(_pair_rows(rows, tables), plan, reach, by_rows=by_rows)
    if ways is None or len(ways) > _MOST_WAYS:
        return None, False
    return _settle([column.tolist() for column in ways.T])


def _price_pairs(moved: Any, plan: Plan, reach: Reach, *, by_rows: bool) -> Any:
    """The part of each measurement's loss that a unit takes all of whose rows change alike."""
    if moved is None:
        return None
    columns = []
    for index, measurement in enumerate(plan.measurements):
        times = _count(measurement, reach)
        price = {
            one: _price_move(
                measurement,
                one * times,
                _square(measurement, one, times, by_rows=by_rows),
                reach,
                grouped=bool(plan.keys),
            )
            for one in set(moved[:, index].tolist())
        }
        columns.append([price[one] for one in moved[:, index].tolist()])
    return np.array(columns, dtype=object).T


def _square(measurement: Measurement, moved: int, times: int, *, by_rows: bool) -> int:
    """The squared length of a move that is made so often: in one group, or in one each time."""
    if by_rows and isinstance(measurement, GroupSum):
        return 0  # which was a mistake
    return moved**2 * (times if isinstance(measurement, GroupSum) else times**2)


def _count(measurement: Measurement, reach: Reach) -> int:
    """How often a unit can move a measurement as one row does."""
    if isinstance(measurement, Units | Distance | GroupTotal | GroupSum | GroupMean):
        return reach.groups
    return reach.rows


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Branches:
    """Values by the condition, already rewritten, under which each is taken."""

    branches: tuple[tuple[Expression | None, Any], ...]


def _list_rows(plan: Plan, known: Mapping[str, Domain], constant: frozenset[str]) -> _Rows | None:
    cutter = Cutter(known)
    _, where = peel(plan.source)
    conditions, values = [], []
    for measurement in plan.measurements:
        variables = _list_variables(measurement)
        own = measurement.condition
        met = describe_rows(measurement) if variables is None else conjoin([own] if own else [])
        conditions.append(cutter.rewrite(conjoin((*where, met))))
        values.append([_take_value(cutter, v.expression) for v in variables or ()])
    keys = [_take_key(cutter, key.expression) for key in plan.keys]
    layout = Layout.of(cutter)
    columns, parts = [], []
    for measurement, condition, taken in zip(plan.measurements, conditions, values, strict=True):
        found, kinds = _find_parts(layout, measurement, condition, taken, known)
        columns.append(kinds)
        parts.append(found)
    cells = np.arange(math.prod(layout.shape)).reshape(layout.shape)
    states = np.empty(cells.size, dtype=np.int64)
    for state, row in enumerate(layout.by_state(cells, constant)):
        states[row] = state
    groups = _find_groups(layout, keys)
    table = np.unique(np.stack([groups, states, *columns], axis=1), axis=0)
    if len(table) > _MOST_ROWS * max(1, len(np.unique(states))):
        return None
    return _Rows(parts, table[:, 2:], table[:, 0], table[:, 1])


def _list_variables(measurement: Measurement) -> tuple[Scaled, ...] | None:
    """The variables whose values decide what a row adds; None where any row may add anything."""
    match measurement:
        case Moments(variables=variables):
            return variables
        case Sum(variable=variable):
            return (variable,)
    return None


def _take_value(cutter: Cutter, expression: Expression) -> Expression | _Branches:
    """An expression whose columns are looked at, with its conditions rewritten."""
    if isinstance(expression, Call) and expression.function == "if":
        condition, one, other = expression.arguments
        expression = Case(((condition, one),), other)
    if isinstance(expression, Case):
        return _Branches(
            (
                *((cutter.rewrite(c), _take_value(cutter, v)) for c, v in expression.branches),
                (None, _take_value(cutter, expression.otherwise)),
            )
        )
    if isinstance(expression, ColumnRef):
        cutter.take(expression)
    return expression


def _take_key(cutter: Cutter, expression: Expression) -> tuple[Expression, bool] | None:
    """A key, and whether it is a condition; None where its value is not found in a cell."""
    if domain_of(expression, cutter.known).kind is Kind.BOOLEAN:
        return cutter.rewrite(expression), True
    return (expression, False) if cutter.take_listed(expression) else None


def _find_groups(layout: Layout, keys: Sequence[tuple[Expression, bool] | None]) -> Any:
    """A number for the group of each cell; -1 where it is not known."""
    size, found = math.prod(layout.shape), []
    unknown = np.zeros(size, dtype=bool)
    for key in keys:
        if key is None:
            return np.full(size, -1)
        expression, condition = key
        if condition:
            outcomes = layout.outcomes(expression)
            ways = [
                layout.spread(w).ravel() for w in (outcomes.true, outcomes.false, outcomes.null)
            ]
            unknown |= np.sum(ways, axis=0) != 1
            found.append(np.argmax(ways, axis=0))
        else:
            value = evaluate_on_blocks(expression, layout.shown, len(layout.shape))
            if value is None:
                return np.full(size, -1)
            texts = [repr(v) for v in layout.spread(value.values).ravel().tolist()]
            found.append(np.unique(texts, return_inverse=True)[1])
    if not found:
        return np.zeros(size, dtype=np.int64)
    groups = np.unique(np.stack(found, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(unknown, -1, groups)


def _find_parts(
    layout: Layout,
    measurement: Measurement,
    condition: Expression,
    values: Sequence[Expression | _Branches],
    known: Mapping[str, Domain],
) -> tuple[list[Part], Any]:
    """What rows can add to a measurement, and which of it those of each cell can."""
    outcomes = layout.outcomes(condition)
    met = layout.spread(outcomes.true).ravel()
    nothing = layout.spread(outcomes.false | outcomes.null).ravel()
    null, some = np.zeros_like(met), met
    bounds = []
    for value, variable in zip(values, _list_variables(measurement) or (), strict=True):
        missing, there, low, high = _bound(layout, value, variable, known)
        null, some = null | (met & missing), some & there
        bounds += [low, high]
    if not (isinstance(measurement, Moments) and measurement.counts_null):
        nothing, null = nothing | null, np.zeros_like(null)
    flags = [nothing.astype(np.int64), null.astype(np.int64), some.astype(np.int64)]
    table = np.stack([*flags, *(np.where(some, b, 0) for b in bounds)], axis=1)
    different, kinds = np.unique(table, axis=0, return_inverse=True)
    kinds = kinds.reshape(-1)
    if len(different) > _MOST_PARTS:  # those alike but for their values are taken together
        alike, kinds = np.unique(table[:, :3], axis=0, return_inverse=True)
        kinds = kinds.reshape(-1)
        rows = [table[kinds == index] for index in range(len(alike))]
        ends = [
            np.where(np.arange(table.shape[1]) % 2 == 1, r.min(axis=0), r.max(axis=0)) for r in rows
        ]
        different = np.array(ends)
    parts = [_NOTHING]
    for row in different.tolist():
        ranges = tuple(zip(row[3::2], row[4::2], strict=True)) if row[2] else None
        parts.append(Part(bool(row[0]), bool(row[1]), ranges))
    return parts, kinds + 1


def _bound(
    layout: Layout, value: Expression | _Branches, variable: Scaled, known: Mapping[str, Domain]
) -> tuple[Any, Any, Any, Any]:
    """Whether a value may be NULL, may be a number, and between which steps, in each cell."""
    size = math.prod(layout.shape)
    no, yes = np.zeros(size, dtype=bool), np.ones(size, dtype=bool)
    first, last = np.zeros(size, dtype=np.int64), np.full(size, variable.span)
    match value:
        case _Branches(branches=branches):
            null, some, left = no, no, yes
            low, high = last, first
            for condition, part in branches:
                taken = left
                if condition is not None:
                    outcomes = layout.outcomes(condition)
                    taken = left & layout.spread(outcomes.true).ravel()
                    left = left & layout.spread(outcomes.false | outcomes.null).ravel()
                missing, there, least, most = _bound(layout, part, variable, known)
                null, there = null | (taken & missing), taken & there
                some = some | there
                low = np.where(there, np.minimum(low, least), low)
                high = np.where(there, np.maximum(high, most), high)
            return null, some, low, high
        case Literal(value=None):
            return yes, no, first, last
        case Literal(value=constant) if constant is not None:
            number = number_of(constant)
            if number is not None:
                least, most = _steps(variable, number, number)
                return no, yes, np.full(size, least), np.full(size, most)
        case ColumnRef():
            for place, (axis, _) in enumerate(layout.axes):
                if axis.term == value:
                    return _bound_axis(layout, place, variable)
    domain = domain_of(value, known)
    return (yes if domain.nullable or domain.is_null else no), yes, first, last


def _bound_axis(layout: Layout, place: int, variable: Scaled) -> tuple[Any, Any, Any, Any]:
    along = [1] * len(layout.shape)
    along[place] = -1
    ranges = layout.axes[place][0].ranges()
    steps = [(0, 0) if r is None else _steps(variable, *r) for r in ranges]

    def lay(values: Any) -> Any:
        return layout.spread(np.array(values).reshape(along)).ravel()

    missing = lay([r is None for r in ranges])
    return missing, ~missing, lay([low for low, _ in steps]), lay([high for _, high in steps])


def _steps(variable: Scaled, low: Fraction | None, high: Fraction | None) -> tuple[int, int]:
    """Between which steps the numbers of a range lie, rounded outwards."""

    def clip(step: int) -> int:
        return min(max(step - variable.low, 0), variable.span)

    first = 0 if low is None else clip(math.floor(low / variable.grid))
    last = variable.span if high is None else clip(math.ceil(high / variable.grid))
    return first, last


# --- two rows ------------------------------------------------------------------------------------


def _tabulate(measurement: Measurement, parts: Sequence[Part], *, grouped: bool) -> Any:
    """How far two rows move a measurement: in different groups, and in the same one."""
    table = np.zeros((2, len(parts), len(parts)), dtype=object)
    for i, one in enumerate(parts):
        for j, other in enumerate(parts):
            apart = _size(measurement, one) + _size(measurement, other)
            table[1, i, j] = min(_distance(measurement, one, other), apart)
            table[0, i, j] = apart if grouped else table[1, i, j]
    return table


def _size(measurement: Measurement, part: Part) -> int:
    """The most that a row adds, in L1."""
    if not part.adds:
        return 0
    if isinstance(measurement, Sum):
        low, high = _ends(measurement, part)
        return max(-low, high)
    match measurement:
        case Moments(weight=weight):
            return weight
        case Products(unit=unit, entries=entries):
            return unit * entries
        case GroupTotal(span=span) | GroupMean(span=span):
            return span
        case GroupSum(low=low, span=span):
            return max(abs(low), abs(low + span))
    return 1


def _ends(measurement: Sum, part: Part) -> tuple[int, int]:
    """The least and the greatest that a row adds to a sum."""
    first = measurement.variable.low
    found = [first + step for step in part.ranges[0]] if part.ranges else []
    found += [0] if part.nothing or not found else []
    return min(found), max(found)


def _distance(measurement: Measurement, one: Part, other: Part) -> int:
    """The most that the vectors of two rows of one group are apart, in L1 (Lemma 7)."""
    match measurement:
        case Sum():
            (low, high), (least, most) = _ends(measurement, one), _ends(measurement, other)
            return max(most - low, high - least)
        case GroupSum(low=low, span=span):
            if not one.adds and not other.adds:
                return 0
            first, last = min(low, 0), max(low + span, 0)
            return last - first if one.adds and other.adds else max(-first, last)
        case Units():
            return int((one.adds and other.nothing) or (one.nothing and other.adds))
        case DistinctValues() | Distance():
            return int(one.adds or other.adds)
        case Moments(weight=weight):
            return max(
                math.ceil(_moments_apart(measurement, a, b) * weight)
                for a in _options(one)
                for b in _options(other)
            )
    return _size(measurement, one) + _size(measurement, other)


def _options(part: Part) -> list[Any]:
    found: list[Any] = ["nothing"] if part.nothing else []
    found += ["null"] if part.null else []
    return found + ([part.ranges] if part.ranges is not None else [])


def _moments_apart(moments: Moments, one: Any, other: Any) -> Fraction:
    """The most that two rows' moments are apart, as a part of the weight of a row."""
    if one == "nothing" or other == "nothing":
        return Fraction(one != other)
    if isinstance(one, str) or isinstance(other, str):
        return Fraction(2 * (one != other))
    shared = Fraction(1)
    for variable, degree, a, b in zip(moments.variables, moments.degrees, one, other, strict=True):
        ends = [(a[0], b[1]), (b[0], a[1])]
        shared *= 1 - max(_variation(variable.span, degree, low, high) for low, high in ends)
    return 2 * (1 - shared)


def _variation(span: int, degree: int, low: int, high: int) -> Fraction:
    """The total variation of two binomial laws, low <= high; nothing where it is not so."""
    if low >= high:
        return Fraction(0)
    laws = [
        [math.comb(degree, j) * u**j * (span - u) ** (degree - j) for j in range(degree + 1)]
        for u in (low, high)
    ]
    apart = sum(abs(a - b) for a, b in zip(*laws, strict=True))
    return Fraction(apart, 2 * span**degree)


# --- all rows ------------------------------------------------------------------------------------


def _pair_rows(rows: _Rows, tables: Sequence[Any]) -> Any:
    """How far each kind of row for another moves every measurement: different rows of numbers."""
    both = np.unique(np.concatenate([[rows.groups], rows.kinds.T]).T, axis=0)
    both = np.concatenate([both, np.zeros((1, both.shape[1]), dtype=np.int64)])  # no row
    if len(both) > _MOST_ROWS:
        return None
    groups, kinds = both[:, 0], both[:, 1:]
    same = ((groups[:, None] == groups[None, :]) & (groups[:, None] >= 0)).astype(np.int64)
    found = []
    for index, table in enumerate(tables):
        kind = kinds[:, index]
        found.append(_rank(table)[same, kind[:, None], kind[None, :]].ravel())
    return _choose_values(found, [np.unique(table) for table in tables])


def _rank(table: Any) -> Any:
    return np.unique(table, return_inverse=True)[1].reshape(table.shape)


def _choose_values(found: Sequence[Any], values: Sequence[Any]) -> Any:
    """The different rows of ranks, as what they stand for."""
    different = np.unique(np.stack(found, axis=1), axis=0)
    chosen = [v[different[:, i]] for i, v in enumerate(values)]
    return np.stack(chosen, axis=1)


Held = tuple[tuple[int, int], ...]
"""What a unit's rows add to one measurement: of each its group and which part; sorted."""

_NOWHERE = (-2, 0)
"""A row that adds nothing, wherever it is."""


def _pair_units(
    rows: _Rows, plan: Plan, tables: Sequence[Any], reach: Reach, *, by_rows: bool
) -> Any:
    """The same for units of several rows, each as a whole (Lemma 8)."""
    units = _list_units(rows, reach.rows)
    if units is None:
        return None
    found, values = [], []
    tried = 0
    for index, table in enumerate(tables):
        different = sorted({unit[index] for unit in units})
        tried += len(different) ** 2 // 2
        if tried > _MOST_APART:
            return None
        measured, parts = plan.measurements[index], rows.parts[index]
        pairs = _Pairs(measured, parts, table, reach, bool(plan.keys), by_rows)
        apart = np.zeros((len(different), len(different)), dtype=object)
        for i, one in enumerate(different):
            for j, other in enumerate(different[: i + 1]):
                apart[i, j] = apart[j, i] = pairs.price(one, other)
        place = {one: i for i, one in enumerate(different)}
        kind = np.array([place[unit[index]] for unit in units])
        found.append(_rank(apart)[kind[:, None], kind[None, :]].ravel())
        values.append(np.unique(apart))
    return _choose_values(found, values)


def _list_units(rows: _Rows, most: int) -> list[tuple[Held, ...]] | None:
    """Every unit of so many rows, which agree on what they have in common; None if too many."""
    units = set()
    adds = [[part.adds for part in parts] for parts in rows.parts]
    for state in np.unique(rows.states):
        mine = rows.states == state
        table = np.column_stack([rows.groups[mine], rows.kinds[mine]]).tolist()
        own = {
            tuple(
                (group, kind) if adds[index][kind] else _NOWHERE for index, kind in enumerate(kinds)
            )
            for group, *kinds in table
        }
        own.add((_NOWHERE,) * len(adds))  # no row
        if math.comb(len(own) + most - 1, most) > 4 * _MOST_UNITS:
            return None
        for some in combinations_with_replacement(sorted(own), most):
            units.add(tuple(tuple(sorted(held)) for held in zip(*some, strict=True)))
    return None if len(units) > _MOST_UNITS else list(units)


_ONCE = (Units, Distance, GroupTotal, GroupSum, GroupMean)
"""What a unit moves once in a group, however many rows it has there."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """How far units move one measurement that hold one thing instead of another (Lemma 8)."""

    measurement: Measurement
    parts: Sequence[Part]
    table: Any
    reach: Reach
    grouped: bool
    by_rows: bool

    def price(self, one: Held, other: Held) -> Fraction:
        """The part of the measurement's loss that such a change takes."""
        once = isinstance(self.measurement, _ONCE)
        if once or (isinstance(self.measurement, Sum) and not self.by_rows):
            moved, square = self._by_groups(one, other, once=once)
        else:
            moved, square = self._by_rows(one, other), 0
        return _price_move(self.measurement, moved, square, self.reach, grouped=self.grouped)

    def _by_rows(self, one: Held, other: Held) -> int:
        """Rows are paired in the order that moves it least: each order bounds how far it is."""
        return min(
            sum(
                int(self.table[int(not self.grouped or (g == h and g >= 0)), a, b])
                for (g, a), (h, b) in zip(one, order, strict=True)
            )
            for order in permutations(other)
        )

    def _by_groups(self, one: Held, other: Held, *, once: bool) -> tuple[int, int]:
        """Group by group, and so is its squared length.

        A row whose group is not known may be in any, with others: it adds as much as it can to
        how far, and the square of all that to how long.
        """
        moved, square, hidden = 0, 0, False
        for group in {g for g, _ in (*one, *other)} - {-1, _NOWHERE[0]}:
            sides = [[self.parts[p] for g, p in held if g == group] for held in (one, other)]
            gap = self._once_apart(*sides) if once else self._sums_apart(*sides)
            moved, square = moved + gap, square + gap**2
        for group, part in (*one, *other):
            if group == -1:
                size, hidden = _size(self.measurement, self.parts[part]), True
                moved += size if isinstance(self.measurement, Units | Sum) else 2 * size
        return moved, moved**2 if hidden else square

    def _once_apart(self, *sides: Sequence[Part]) -> int:
        """What is counted once moves where one side may be counted and the other may not."""
        one, other = (
            Part(
                nothing=all(part.nothing for part in side),
                ranges=() if any(part.adds for part in side) else None,
            )
            for side in sides
        )
        apart = _size(self.measurement, one) + _size(self.measurement, other)
        return min(_distance(self.measurement, one, other), apart)

    def _sums_apart(self, *sides: Sequence[Part]) -> int:
        """How far the sums of two sides' rows are apart, at most."""
        measured = self.measurement
        if not isinstance(measured, Sum):
            raise TypeError("not a sum")
        sums: list[list[int]] = [
            [sum(ends) for ends in zip((0, 0), *(_ends(measured, p) for p in side), strict=True)]
            for side in sides
        ]
        (low, high), (least, most) = sums
        return max(most - low, high - least)


# --- what it costs -------------------------------------------------------------------------------


def _price_move(
    measurement: Measurement, moved: int, square: int, reach: Reach, *, grouped: bool
) -> Fraction:
    """The part of a measurement's loss that a unit takes who moves it so far (Lemma 7).

    ``square`` is its squared length, which counts for sums of both signs in groups: of others it
    is no greater a part than how far it is.
    """
    price = compute_sensitivity(measurement, reach, Neighbours.CHANGE_ONE, grouped=grouped)
    part = Fraction(moved, price.l1)
    if grouped and isinstance(measurement, Sum | GroupSum):  # longer than it is far
        part = max(part, Fraction(square, price.l2_squared))
    part = min(part, Fraction(1))
    return part if part.denominator <= _SIMPLE else Fraction(math.ceil(part * _FINE), _FINE)


def _settle(columns: Sequence[Sequence[Fraction]]) -> tuple[tuple[Meeting, ...] | None, bool]:
    """Those ways that no other exceeds in everything.

    What no row can move is charged as if one could: a question about nobody is not free.
    """
    found = set(zip(*columns, strict=True))
    count = len(columns)
    for index, column in enumerate(columns):
        if not any(column):
            found.add(tuple(Fraction(place == index) for place in range(count)))
    whole = (Fraction(1),) * count
    if whole in found:
        return None, True
    ordered = sorted(found, key=lambda one: (sum(one), one), reverse=True)
    ranks = [{part: r for r, part in enumerate(sorted(set(c)))} for c in zip(*ordered, strict=True)]
    kept: list[Meeting] = []
    table = np.zeros((MOST_MEETINGS, count), dtype=np.int64)
    for one in ordered:
        row = np.array([rank[part] for rank, part in zip(ranks, one, strict=True)])
        if (table[: len(kept)] >= row).all(axis=1).any():
            continue
        if len(kept) == MOST_MEETINGS:
            return None, False
        table[len(kept)] = row
        kept.append(one)
    return tuple(sorted(kept)), True


__all__ = ["find_changes"]
