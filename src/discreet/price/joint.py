"""Who pays for what together: the measurements that one unit can move at once.

Two counts of rows that no row can be in both of cost what one of them costs.  So a statement
is not charged the sum of its measurements but the most that one unit can move of them
together.  Each condition is cut into cells: the columns it looks at, at the constants it
compares them with, and NULL; on a cell every condition has one outcome, computed by the code
that computes blocks.  A set of measurements that some cell meets is one that a row can move
together.  What is not understood may be true, so that a set may be found that no row can
meet, and never the other way round.

Lemma numbers refer to ``docs/proofs/joint.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, pairwise
from math import comb
from typing import Any

import numpy as np

from discreet.accounting.loss import Loss
from discreet.exact.numbers import round_down
from discreet.price.plan import (
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Measurement,
    Moments,
    Products,
    Reach,
    Scaled,
    Sum,
    Units,
    ValueCounts,
    moves_once,
)
from discreet.question.blocks.evaluate import Known
from discreet.question.blocks.outcomes import Outcomes, possible_outcomes
from discreet.question.domain import (
    Domain,
    Kind,
    Value,
    boolean,
    calendar_bounds,
    kind_of,
    number_of,
    value_at,
)
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of, references
from discreet.question.functions.declaration import plain
from discreet.question.ownership import Multiplicity, constant_columns
from discreet.question.relation import Filter, Relation

Meeting = tuple[Fraction, ...]
"""Of each measurement, the part of its loss that one way to be moved takes."""

MOST_CELLS = 20_000
"""So many cells are looked at; columns beyond are taken to be anything."""

MOST_MEETINGS = 512
"""Beyond so many sets, everything is taken to be moved together."""

_MOST_PAIRS = 64 * MOST_MEETINGS
"""Where sets are joined pair by pair, so many pairs."""

_LISTED = 64
"""A column of at most so many values is looked at value by value."""

_COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_EXACT = 2**52
_TRUE, _FALSE = Literal(value=True), Literal(value=False)


def find_meetings(
    measurements: Sequence[Measurement],
    source: Relation,
    known: Mapping[str, Domain],
    reach: Reach,
    multiplicity: Multiplicity,
    *,
    grouped: bool,
    change_one: bool,
) -> tuple[Meeting, ...] | None:
    """The ways in which one unit can move measurements together; None if all at once.

    ``known`` are the columns of ``source``.  Lemma 2: a unit's rows that are counted one by one
    weigh as if all of them met the same conditions; what a unit is counted in once, it may be
    counted in by another row each (Lemma 3), but for columns that are the same on all its rows.
    """
    conditions = [describe_rows(measurement) for measurement in measurements]
    if sum(condition != _TRUE for condition in conditions) < 2:
        return None
    if not any(map(_chooses, measurements)) or reach.rows % reach.rows_per_group:
        return None
    _, where = peel(source)
    by_row = _pack(is_by_row(measurement, reach) for measurement in measurements)
    constant = constant_columns(source, multiplicity)
    cells = find_cells([conjoin((*where, condition)) for condition in conditions], known, constant)
    if cells is None:
        return None
    if not change_one and reach.groups == 1 and by_row != (1 << len(measurements)) - 1:
        mixed = mix_rows(cells, by_row, reach.rows, len(measurements))
        if mixed is not None:
            return mixed
    most = reach.rows_per_group if grouped else reach.rows
    sets = join_rows(cells, by_row, most)
    if sets is None or len(sets) > MOST_MEETINGS:
        return None
    count = len(measurements)
    covered = reduce(int.__or__, sets, 0)
    # What no row can move is charged as if one could: a question about nobody is not free.
    sets |= {1 << index for index in range(count) if not covered >> index & 1}
    if change_one:
        return pair_sides(sets, [moves_once(m, grouped=grouped) for m in measurements], count)
    everything = (1 << count) - 1
    return None if everything in sets else tuple(_weigh(some, count) for some in sorted(sets))


def _pack(flags: Iterable[bool]) -> int:
    """Flags as the bits of one number, the first being the lowest."""
    return sum(1 << index for index, flag in enumerate(flags) if flag)


def _weigh(some: int, count: int) -> Meeting:
    return tuple(Fraction(some >> index & 1) for index in range(count))


def pair_sides(sets: set[int], single: Sequence[bool], count: int) -> tuple[Meeting, ...] | None:
    """Lemma 5: what is left on one side and joined on the other.

    A measurement whose price is that of a removal and an addition pays half of it on each side;
    one that is a single number pays its whole price if either side moves it.
    """
    half = Fraction(1, 2)
    found: set[Meeting] = set()
    ordered = sorted(sets)
    if len(ordered) ** 2 > _MOST_PAIRS // 4:
        return None
    for place, one in enumerate(ordered):
        for other in ordered[place:]:
            found.add(
                tuple(
                    Fraction((one | other) >> i & 1)
                    if single[i]
                    else half * ((one >> i & 1) + (other >> i & 1))
                    for i in range(count)
                )
            )
    return _settle(found, count)


def _settle(found: set[Meeting], count: int) -> tuple[Meeting, ...] | None:
    """Those that no other is as large as in everything; None if they are too many, or all of all.

    What another contains adds up to less, so it comes after.
    """
    ordered = sorted(found, key=lambda one: (sum(one), one), reverse=True)
    parts = math.lcm(*{weight.denominator for one in found for weight in one})
    kept: list[Meeting] = []
    table = np.zeros((MOST_MEETINGS, count), dtype=np.int64)
    for one in ordered:
        row = np.array([int(weight * parts) for weight in one], dtype=np.int64)
        if (table[: len(kept)] >= row).all(axis=1).any():
            continue
        if len(kept) == MOST_MEETINGS:
            return None
        table[len(kept)] = row
        kept.append(one)
    whole = tuple(Fraction(1) for _ in range(count))
    return None if whole in kept else tuple(sorted(kept))


def is_by_row(measurement: Measurement, reach: Reach) -> bool:
    """Whether a unit moves it, at most, in proportion to its rows that meet the condition.

    Lemma 2.  Units and clipped totals are counted once in a group, however many rows there are:
    where a unit has as many groups as rows, each row is in a group of its own at worst.
    """
    match measurement:
        case Units() | Distance() | GroupTotal() | GroupSum() | GroupMean():
            return reach.groups == reach.rows
    return True


def mix_rows(
    cells: Mapping[Any, set[int]], by_row: int, most: int, count: int
) -> tuple[Meeting, ...] | None:
    """The same, row by row, where a unit is in one group: None if there are too many ways.

    Lemma 3: of what is counted by rows each row takes its part, of what is counted once any.
    """
    found: set[Meeting] = set()
    for rows in cells.values():
        few = keep_few(rows)
        if few is None or comb(len(few) + most - 1, most) > MOST_MEETINGS:
            return None
        kept = sorted(few)
        for some in combinations_with_replacement(kept, most):
            any_row = reduce(int.__or__, some)
            found.add(
                tuple(
                    Fraction(sum(one >> i & 1 for one in some), most)
                    if by_row >> i & 1
                    else Fraction(any_row >> i & 1)
                    for i in range(count)
                )
            )
        if len(found) > _MOST_PAIRS:
            return None
    for index in range(count):
        if not any(one[index] for one in found):
            found.add(_weigh(1 << index, count))
    return _settle(found, count)


def join_rows(cells: Mapping[Any, set[int]], by_row: int, most: int) -> set[int] | None:
    """The sets that a unit can meet with its rows, those contained in others left out.

    ``cells``: for each state of the columns that are the same on all rows of a unit, the sets
    that one row can meet.  Of measurements that are not counted by rows, ``most`` rows meet all
    that any of them meets.
    """
    found: set[int] = set()
    for rows in cells.values():
        if most == 1:
            found |= rows
            continue
        counted = keep_few({some & by_row for some in rows})
        if counted is None:
            return None
        others = _unite({some & ~by_row for some in rows}, most)
        found |= {some | other for some in counted for other in others}
        if len(found) > _MOST_PAIRS:
            return None
    return keep_few(found)


def _unite(sets: set[int], most: int) -> set[int]:
    """The unions of at most ``most`` sets, those contained in others left out."""
    everything = {reduce(int.__or__, sets, 0)}
    found = keep_few(sets)
    if found is None or len(found) <= most:
        return everything
    united = found
    for _ in range(most - 1):
        if len(united) * len(found) > _MOST_PAIRS:
            return everything
        wider = keep_few({one | other for one in united for other in found})
        if wider is None or wider == united:
            return everything if wider is None else united
        united = wider
    return united


def keep_few(sets: set[int]) -> set[int] | None:
    """Those that no other contains; None if they are more than are worked with.

    Comparing all with all would be the square of what a question may write down, for nothing.

    >>> sorted(keep_few({0b001, 0b011, 0b100}))
    [3, 4]
    """
    kept: list[int] = []
    for one in sorted(sets, key=int.bit_count, reverse=True):  # what contains it comes before
        if not any(one & other == one for other in kept):
            kept.append(one)
            if len(kept) > MOST_MEETINGS:
                return None
    return set(kept)


# --- which rows add anything --------------------------------------------------------------------


def describe_rows(measurement: Measurement) -> Expression:
    """A condition that every row which adds anything to the measurement meets."""
    parts: list[Expression] = []
    if measurement.condition is not None:
        parts.append(measurement.condition)
    match measurement:
        case Moments(variables=variables, counts_null=False) | Products(variables=variables):
            parts += [is_known(variable.expression) for variable in variables]
        case Histogram(variable=variable):
            parts.append(is_known(variable.expression))
        case Sum(variable=variable):
            parts.append(is_known(variable.expression))
            if variable.low <= 0 <= variable.low + variable.span:
                parts.append(_adds(variable))
        case ValueCounts(expression=expression) | DistinctValues(expression=expression):
            parts.append(is_known(expression))
        case Distance(expressions=expressions):
            parts += map(is_known, expressions)
    return conjoin(parts)


def _chooses(measurement: Measurement) -> bool:
    """Whether something else than a missing value keeps rows out of it."""
    if measurement.condition is not None:
        return True
    match measurement:
        case Moments(variables=variables) | Products(variables=variables):
            return not all(isinstance(v.expression, ColumnRef) for v in variables)
        case Histogram(variable=variable) | Sum(variable=variable):
            return not isinstance(variable.expression, ColumnRef)
        case ValueCounts(expression=expression) | DistinctValues(expression=expression):
            return not isinstance(expression, ColumnRef)
        case Distance(expressions=expressions):
            return not all(isinstance(one, ColumnRef) for one in expressions)
    return False


def peel(relation: Relation) -> tuple[Relation, tuple[Expression, ...]]:
    """A relation without its outermost conditions, and those."""
    if isinstance(relation, Filter):
        inner, conditions = peel(relation.source)
        return inner, (*conditions, relation.predicate)
    return relation, ()


def conjoin(parts: Iterable[Expression]) -> Expression:
    """All of them; constants are left out where they decide nothing."""
    kept = tuple(part for part in parts if part != _TRUE)
    if _FALSE in kept:
        return _FALSE
    if not kept:
        return _TRUE
    return kept[0] if len(kept) == 1 else Call("and", kept)


def disjoin(parts: Iterable[Expression]) -> Expression:
    """Any of them."""
    kept = tuple(part for part in parts if part != _FALSE)
    if _TRUE in kept:
        return _TRUE
    if not kept:
        return _FALSE
    return kept[0] if len(kept) == 1 else Call("or", kept)


def is_known(expression: Expression) -> Expression:
    """Where the expression may be something else than NULL."""
    return _through_cases(expression, _is_value)


def _is_value(expression: Expression) -> Expression:
    match expression:
        case Literal(value=value):
            return _FALSE if value is None else _TRUE
    return Call("not", (Call("is_null", (expression,)),))


def _adds(variable: Scaled) -> Expression:
    """Where a number may be something else than nought, which adds nothing to a sum."""
    return _through_cases(variable.expression, _is_something)


def _is_something(expression: Expression) -> Expression:
    match expression:
        case Literal(value=value):
            return _FALSE if value is None or value == 0 else _TRUE
        case ColumnRef() | Call(function="cast_integer", arguments=(ColumnRef(),)):
            return Call("not_equal", (expression, Literal(0)))
    return _TRUE


def _through_cases(expression: Expression, leaf: Any) -> Expression:
    """What ``leaf`` says of the branch that is taken."""
    if isinstance(expression, Call) and expression.function == "if":
        condition, one, other = expression.arguments
        expression = Case(((condition, one),), other)
    if not isinstance(expression, Case):
        found: Expression = leaf(expression)
        return found
    parts = []
    before: list[Expression] = []
    for condition, value in (*expression.branches, (_TRUE, expression.otherwise)):
        taken = condition if condition == _TRUE else Call("is_true", (condition,))
        parts.append(conjoin((*before, taken, _through_cases(value, leaf))))
        before.append(Call("not", (taken,)))
    return disjoin(parts)


# --- cells --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Axis:
    """One thing that conditions look at, and values of it between which none of them changes."""

    term: Expression
    domain: Domain
    constants: set[Fraction | str] = field(default_factory=set)
    listed: tuple[Value | None, ...] | None = None

    def values(self) -> list[Value | None]:
        """Representatives: for each outcome of all comparisons, one value that has it."""
        if self.listed is not None:
            return list(self.listed)
        missing = [None] if self.domain.nullable else []
        if self.domain.kind is Kind.TEXT:
            texts = sorted(str(c) for c in self.constants)
            return [*texts, "".join(texts) + "~", *missing]
        cuts = sorted(c for c in self.constants if isinstance(c, Fraction))
        kind = self.domain.kind
        points = _between_doubles(cuts) if kind is Kind.DECIMAL else _between_whole(cuts)
        low, high = self.domain.low, self.domain.high
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            first, last = calendar_bounds(kind)
            low, high = first if low is None else low, last if high is None else high
        whole = kind is not Kind.DECIMAL
        ends = [
            Fraction(math.ceil(low) if whole else low) if low is not None else None,
            Fraction(math.floor(high) if whole else high) if high is not None else None,
        ]
        points |= {end for end in ends if end is not None}
        kept = sorted(
            p for p in points if (low is None or low <= p) and (high is None or p <= high)
        )
        return [*(value_at(kind, p) for p in kept), *missing]

    def ranges(self) -> list[tuple[Fraction | None, Fraction | None] | None]:
        """For each of the values, between which numbers those lie that it stands for; NULL: None.

        No bound where there is none, or where the values are no numbers.
        """
        return [None if value is None else self._range(value) for value in self.values()]

    def _range(self, value: Value) -> tuple[Fraction | None, Fraction | None]:
        place = number_of(value)
        if place is None:
            return None, None
        if self.listed is not None or place in self.constants:
            return place, place
        cuts = sorted(c for c in self.constants if isinstance(c, Fraction))
        below = max((cut for cut in cuts if cut < place), default=self.domain.low)
        above = min((cut for cut in cuts if cut > place), default=self.domain.high)
        return below, above


def _between_whole(cuts: Sequence[Fraction]) -> set[Fraction]:
    """Whole numbers at, below and above each cut: the least above it is one of them."""
    return {Fraction(math.floor(cut) + step) for cut in cuts for step in (-1, 0, 1)}


def _between_doubles(cuts: Sequence[Fraction]) -> set[Fraction]:
    """Doubles at the cuts, between them and beyond them."""
    if not cuts:
        return {Fraction(0)}
    middles = {Fraction(float((one + other) / 2)) for one, other in pairwise(cuts)}
    beyond = {Fraction(float(cuts[0] - abs(cuts[0]) - 1)), Fraction(float(2 * abs(cuts[-1]) + 1))}
    return {*cuts, *middles, *beyond}


class Cutter:
    """Rewrites conditions over axes: terms that are compared with constants, and flags."""

    def __init__(self, known: Mapping[str, Domain]) -> None:
        self.known = known
        self.axes: dict[Expression, Axis] = {}

    def rewrite(self, condition: Expression) -> Expression:
        """The condition with every term replaced by the column of its axis."""
        match condition:
            case Literal():
                return condition
            case Call(function="and" | "or" | "not" | "is_true" as name, arguments=parts):
                return Call(name, tuple(self.rewrite(part) for part in parts))
            case Call(function="is_null", arguments=(Case() as case,)):
                return self.rewrite(Call("not", (is_known(case),)))
            case Call(function="is_null", arguments=(term,)) if not self._may_be_null(term):
                return _FALSE
            case Call(function="is_null", arguments=(ColumnRef() as term,)) if not self._is_listed(
                term
            ):
                return Call("is_null", (self._cut(term, ()),))
            case Call(
                function=name, arguments=(Call(function="abs", arguments=(term,)), constant)
            ) if name in _COMPARISONS and self._has_sizes(term, constant):
                return self.rewrite(_compare_sizes(name, term, constant))
            case Call(function=name, arguments=(term, Literal() as constant)) if (
                name in _COMPARISONS and self._is_line(name, term, (constant,))
            ):
                return Call(name, (self._cut(term, (constant,)), constant))
            case Call(function=name, arguments=(Literal() as constant, term)) if (
                name in _COMPARISONS and self._is_line(name, term, (constant,))
            ):
                return Call(name, (constant, self._cut(term, (constant,))))
            case Call(function="in", arguments=(term, *listed)):
                constants = tuple(one for one in listed if isinstance(one, Literal))
                if len(constants) == len(listed) and self._is_line("in", term, constants):
                    return Call("in", (self._cut(term, constants), *constants))
        return self._flag(condition)

    def take(self, column: ColumnRef) -> None:
        """Look at a column, whatever is compared with it."""
        if self._is_listed(column):
            self._list(column.name)
        else:
            self._cut(column, ())

    def take_listed(self, expression: Expression) -> bool:
        """Look at the columns of an expression value by value, if their values are listed."""
        if not self._is_listed(expression):
            return False
        for name in references(expression):
            self._list(name)
        return True

    def _may_be_null(self, term: Expression) -> bool:
        domain = domain_of(term, self.known)
        return domain.nullable or domain.is_null

    def _is_listed(self, expression: Expression) -> bool:
        names = references(expression)
        return bool(names) and all(
            self.known[name].list_values(_LISTED) is not None
            or self.known[name].kind is Kind.BOOLEAN
            for name in names
        )

    def _flag(self, condition: Expression) -> Expression:
        """A condition of listed columns as it is, any other as something that is true or not."""
        if self.take_listed(condition):
            return condition
        axis = self.axes.setdefault(
            condition, Axis(condition, boolean(nullable=True), listed=(False, True, None))
        )
        return self._name(axis)

    def _list(self, name: str) -> None:
        column, domain = ColumnRef(name), self.known[name]
        values: tuple[Value | None, ...] = domain.list_values(_LISTED) or (False, True)
        missing = (None,) if domain.nullable or domain.is_null else ()
        self.axes.setdefault(column, Axis(column, domain, listed=(*values, *missing)))

    def _is_line(self, name: str, term: Expression, constants: Sequence[Literal]) -> bool:
        """Whether a term is compared so that only where it lies among the constants matters."""
        if isinstance(term, Literal) or self._is_listed(term):
            return False
        kind = domain_of(term, self.known).kind
        for constant in constants:
            if constant.value is None:
                return False
            held = kind_of(constant.value)
            if kind is Kind.TEXT:
                if held is not kind or name not in ("equal", "not_equal", "in"):
                    return False
            elif not _fits(kind, held, constant.value):
                return False
        return kind is not Kind.BOOLEAN

    def _has_sizes(self, term: Expression, constant: Expression) -> bool:
        """Whether a term's size lies at, below or above a constant as the term between two."""
        if not isinstance(constant, Literal) or not self._is_line("less", term, (constant,)):
            return False
        domain, number = domain_of(term, self.known), number_of(constant.value or 0)
        if number is None or number <= 0:
            return False
        ends = (domain.low, domain.high)
        small = all(end is not None and abs(end) < _EXACT for end in ends)
        return domain.kind is Kind.DECIMAL or (domain.kind is Kind.INTEGER and small)

    def _cut(self, term: Expression, constants: Sequence[Literal]) -> Expression:
        axis = self.axes.setdefault(term, Axis(term, domain_of(term, self.known)))
        for constant in constants:
            value = constant.value
            number = None if value is None else number_of(value)
            axis.constants.add(str(value) if number is None else number)
        return self._name(axis)

    def _name(self, axis: Axis) -> ColumnRef:
        if isinstance(axis.term, ColumnRef):
            return axis.term
        return ColumnRef(f"\0{list(self.axes).index(axis.term)}")

    def name(self, axis: Axis) -> str:
        """What the axis is called in rewritten conditions."""
        return self._name(axis).name


def _compare_sizes(name: str, term: Expression, at: Expression) -> Expression:
    """What a comparison of a number's size says of the number."""
    minus = Literal(-at.value) if isinstance(at, Literal) else at  # type: ignore[operator]
    match name:
        case "equal":
            return Call("in", (term, at, minus))
        case "not_equal":
            return Call("not", (Call("in", (term, at, minus)),))
        case "less" | "less_equal":
            back = "greater" if name == "less" else "greater_equal"
            return Call("and", (Call(name, (term, at)), Call(back, (term, minus))))
    back = "less" if name == "greater" else "less_equal"
    return Call("or", (Call(name, (term, at)), Call(back, (term, minus))))


def _fits(kind: Kind, held: Kind, value: Value) -> bool:
    """Whether a constant lies on the line of a kind as the engine compares them."""
    number = number_of(value)
    if number is None:
        return False
    if kind in (Kind.INTEGER, Kind.DECIMAL):
        return held in (Kind.INTEGER, Kind.DECIMAL) and abs(number) < _EXACT
    return held is kind


def find_cells(
    conditions: Sequence[Expression], known: Mapping[str, Domain], constant: frozenset[str]
) -> dict[Any, set[int]] | None:
    """For each state of a unit's ``constant`` columns, the sets of conditions a row can meet.

    A set is a number whose bits are the conditions.
    """
    if len(conditions) > _MOST_BITS:
        return None
    cutter = Cutter(known)
    rewritten = [cutter.rewrite(condition) for condition in conditions]
    layout = Layout.of(cutter)
    met = np.zeros(layout.shape, dtype=np.int64)
    for index, condition in enumerate(rewritten):
        met |= layout.spread(layout.outcomes(condition).true).astype(np.int64) << index
    states = layout.by_state(met, constant)
    return {state: set(np.unique(row).tolist()) for state, row in enumerate(states)}


@dataclass(frozen=True, slots=True)
class Layout:
    """Cells: one for each combination of the values between which no condition changes."""

    axes: tuple[tuple[Axis, list[Value | None]], ...]
    shown: Mapping[str, Known]

    @classmethod
    def of(cls, cutter: Cutter) -> Layout:
        """The cells of what was rewritten."""
        axes = tuple(_choose_axes(list(cutter.axes.values())))
        shown = {}
        for place, (axis, values) in enumerate(axes):
            array = np.empty(len(values), dtype=object)
            array[:] = [plain(value) for value in values]
            along = [1] * len(axes)
            along[place] = len(values)
            shown[cutter.name(axis)] = Known(array.reshape(along), _spread(axis.domain))
        return cls(axes, shown)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for _, values in self.axes) or (1,)

    def outcomes(self, condition: Expression) -> Outcomes:
        """How a rewritten condition may come out in each cell."""
        return possible_outcomes(condition, self.shown, len(self.shape))

    def spread(self, values: Any) -> Any:
        """What was found for some of the axes, for all cells."""
        return np.broadcast_to(values, self.shape)

    def by_state(self, values: Any, constant: frozenset[str]) -> Any:
        """Cells in a row for each state of the columns that are the same on all rows of a unit."""
        fixed = [p for p, (axis, _) in enumerate(self.axes) if references(axis.term) <= constant]
        moved = np.moveaxis(values, fixed, range(len(fixed))) if fixed else values
        return moved.reshape(math.prod(moved.shape[: len(fixed)]), -1)


_MOST_BITS = 60


def _spread(domain: Domain) -> Domain:
    """What the evaluation may know of an axis: its kind and ends; values are those given."""
    return Domain(domain.kind, domain.low, domain.high, nullable=True)


def _choose_axes(axes: Sequence[Axis]) -> list[tuple[Axis, list[Value | None]]]:
    """The axes with fewest values, as long as their cells are not too many."""
    found = sorted(((axis, axis.values()) for axis in axes), key=lambda one: len(one[1]))
    kept, cells = [], 1
    for axis, values in found:
        if not values or cells * len(values) > MOST_CELLS:
            continue
        cells *= len(values)
        kept.append((axis, values))
    return kept


# --- what it costs -----------------------------------------------------------------------------


def add_losses(losses: Sequence[Loss], meetings: Sequence[Meeting]) -> Loss:
    """The most that any meeting loses, coordinate by coordinate (Lemmas 2 and 5).

    A failure mass is not weighed: it is that of groups that a unit is alone in.
    """
    epsilon = max(_add_weighed((loss.epsilon for loss in losses), one) for one in meetings)
    rho = max(_add_weighed((loss.rho for loss in losses), one) for one in meetings)
    return Loss(epsilon, rho, sum((loss.delta for loss in losses), Fraction(0)))


def _add_weighed(amounts: Iterable[Any], meeting: Meeting) -> Any:
    return sum(
        (weight * amount for amount, weight in zip(amounts, meeting, strict=True) if weight),
        Fraction(0),
    )


_PART = Fraction(1, 2**16)
_ROUNDS = 400


def share_out(sizes: Sequence[float], meetings: Sequence[Meeting], *, pure: bool) -> list[Fraction]:
    """Shares for noises of these sizes, so that no meeting adds up to more than one.

    The sum of squared errors is least (Lagrange): with multipliers m_k of the meetings and
    c_i = sum of m_k w_ki, shares are (a_i**2 / c_i)**(1/3) for pure losses, and a_i / sqrt(c_i)
    for concentrated ones.  Multipliers grow where a meeting is overdrawn, until none is.
    """
    rows = np.array([[float(w) for w in meeting] for meeting in meetings])
    weights = np.array(sizes) ** 2
    multipliers = np.ones(len(meetings))
    shares = np.ones(len(sizes))
    for _ in range(_ROUNDS):
        costs = (multipliers[:, None] * rows).sum(axis=0)
        shares = (weights / np.maximum(costs, _TINY)) ** (1 / 3 if pure else 1 / 2)
        multipliers = multipliers * (rows * shares).sum(axis=1)
    shares /= (rows * shares).sum(axis=1).max()
    return _round_shares([Fraction(float(share)) for share in shares], meetings)


_TINY = 1e-200


def _round_shares(shares: Sequence[Fraction], meetings: Sequence[Meeting]) -> list[Fraction]:
    """Rounded down, never to nothing, and then filled up where every meeting leaves something.

    What was raised to a part is taken from the largest.
    """
    most = [1 / max(weights) for weights in zip(*meetings, strict=True)]
    rounded = [
        min(max(round_down(share, _PART), _PART), limit)
        for share, limit in zip(shares, most, strict=True)
    ]
    for meeting in meetings:
        surplus = sum(w * s for w, s in zip(meeting, rounded, strict=True)) - 1
        if surplus > 0:
            largest = max((i for i, w in enumerate(meeting) if w), key=rounded.__getitem__)
            taken = -(-surplus // (meeting[largest] * _PART)) * _PART
            rounded[largest] -= taken
    for index in range(len(rounded)):
        left = [
            (1 - sum(w * s for w, s in zip(meeting, rounded, strict=True))) / meeting[index]
            for meeting in meetings
            if meeting[index]
        ]
        rounded[index] += max(min(left), Fraction(0))
    return rounded


__all__ = ["Meeting", "add_losses", "find_meetings", "share_out"]
