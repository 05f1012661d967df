"""What a released answer says about another question: which of its numbers to add up.

A question is a sum over rows; so is an answer, group by group.  Where every row that the question
counts lies in groups of the answer as a whole, the question is a sum of released numbers, and a
function of them costs nobody anything (``docs/proofs/known.md``, Lemma 1).  Whatever is not
certain to be the same number is not derived, and :class:`NotKnown` says why.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engine.truth import Group
from discreet.errors import QuestionRefusal
from discreet.known.released import Released
from discreet.mechanisms import Gaussian, Laplace, Staircase
from discreet.price import Counts, Linear, Priced, Ratio, Recipe
from discreet.price.calibration import Additive
from discreet.price.plan import (
    BaseRows,
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Measurement,
    Moments,
    Products,
    Scaled,
    Sum,
    Units,
    ValueCounts,
    list_conditions,
    list_values,
    normalise,
    rename,
    split_condition,
)
from discreet.price.recipes import read_count, read_sum
from discreet.price.summed import Summed
from discreet.question.blocks.evaluate import Known, evaluate_on_blocks
from discreet.question.domain import Domain, Kind, Value
from discreet.question.expressions import Call, Case, ColumnRef, Expression, Literal
from discreet.question.functions import domain_of, references
from discreet.question.functions.declaration import as_engine
from discreet.question.ownership import columns
from discreet.question.possible import find_possible
from discreet.question.question import Aggregate, Key, public_values

Cells = NDArray[np.intp]
Multiplicity = Callable[..., int | None]

MOST_CELLS = 20_000
"""Answers of more groups are not added up: to find which of them belong together takes too long."""
_EXACT = 2**53
"""Whole numbers up to here are the same as doubles."""

_BY_PERSON = (Units, Distance, DistinctValues, GroupTotal, GroupSum, GroupMean)
"""What is no sum over rows."""


class NotKnown(Exception):
    """Why an answer does not tell what is asked; public knowledge, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One aggregate of a question, as sums of the released numbers of one measurement.

    ``cells`` are, for each group of the question, the groups of the answer that are added up;
    ``bins`` the entries of each of them that are (a histogram's), None where they stay as they are.
    """

    source: Released
    place: int  # which measurement of the source
    cells: tuple[Cells, ...]
    bins: tuple[tuple[int, ...], ...] | None
    measured: Measurement
    recipe: Recipe  # of measurement 0

    @property
    def law(self) -> Additive | Summed:
        """The noise on each released entry; a sum of nothing, where it is public."""
        law = self.source.priced.mechanisms[self.place]
        if not isinstance(law, Laplace | Gaussian | Staircase | Summed):
            raise TypeError("chosen, not counted")
        return law

    @property
    def merged(self) -> int:
        """How many entries are added up for one of the question, at most."""
        return 1 if self.bins is None else max(map(len, self.bins))

    def entries(self) -> NDArray[Any]:
        """The sums: a row for each group of the question."""
        part = self.source.entries(self.place)
        if self.bins is not None:
            part = np.stack([part[:, list(one)].sum(axis=1) for one in self.bins], axis=1)
        return np.stack([part[cells].sum(axis=0) for cells in self.cells])

    def variances(self) -> NDArray[np.float64]:
        """For each group, how large the squared noise of one entry is, in rows."""
        counts = np.array([cells.size for cells in self.cells], dtype=np.float64)
        return counts * self.merged * self.law.variance / _row_weight(self.measured) ** 2


def _row_weight(measured: Measurement) -> float:
    """What one row weighs: two measurements of one number are compared by rows."""
    match measured:
        case Moments(weight=weight) | Products(unit=weight):
            return float(weight)
        case Sum(variable=variable):
            return math.hypot(variable.low, variable.low + variable.span)
    return 1.0


def derive(
    new: Priced,
    source: Released,
    *,
    multiplicity: Multiplicity,
    places: Sequence[int] | None = None,
) -> tuple[Reading, ...]:
    """How each aggregate of ``new`` is read off ``source``; :class:`NotKnown` if one is not.

    Off the measurement that tells it best, or off that of ``places``.
    """
    return _Derivation(new, source, multiplicity, places).readings()


def same_text(value: object) -> str:
    """A text that is the same for the same meaning: Python takes 1 and true for equal."""
    return repr(value)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """What one key of an answer tells: the values of an expression.

    ``groups`` is the group of each value, where some values were taken together.
    """

    told: Expression
    values: NDArray[Any]
    domain: Domain
    groups: Cells | None = None


def _read_axis(key: Key, domains: Mapping[str, Domain]) -> _Axis:
    return _read_merged(key, domains) or _read_values(key.expression, key.values or (), domains)


def _read_values(
    expression: Expression, listed: Sequence[Value | None], domains: Mapping[str, Domain]
) -> _Axis:
    domain = domain_of(expression, domains)
    values = np.empty(len(listed), dtype=object)
    values[:] = [as_engine(value, domain.kind) for value in listed]
    return _Axis(expression, values, domain)


def _read_merged(key: Key, domains: Mapping[str, Domain]) -> _Axis | None:
    """A column some of whose values the key takes together, as tables that are widened do."""
    match key.expression:
        case Case(branches=((condition, Literal()),), otherwise=ColumnRef(name=name) as column):
            pass
        case _:
            return None
    listed = public_values(column, domains)
    if listed is None or references(condition) != {name}:
        return None
    axis = _read_values(column, listed, domains)
    found = evaluate_on_blocks(key.expression, {name: Known(axis.values, axis.domain)}, 1)
    groups = _read_values(key.expression, key.values or (), domains).values.tolist()
    if found is None:
        return None
    texts = [same_text(group) for group in groups]
    at = [same_text(value) for value in np.broadcast_to(found.values, axis.values.shape)]
    if not set(at) <= set(texts):
        return None
    return replace(axis, groups=np.array([texts.index(one) for one in at], dtype=np.intp))


class _Derivation:
    """One question beside one answer, every column under its table's name."""

    def __init__(
        self,
        new: Priced,
        source: Released,
        multiplicity: Multiplicity,
        places: Sequence[int] | None = None,
    ) -> None:
        self.new, self.source = new, source
        everywhere = tuple(range(len(source.priced.plan.measurements)))
        self.places = (
            (everywhere,) * len(new.recipes)
            if places is None
            else tuple((place,) for place in places)
        )
        old = source.priced
        self.rows, self.known = BaseRows.of(new.plan.source), source.rows
        # Where a question limits rows itself, which are kept may hang on how it is written.
        self.plain = all(plan.contribution.enforced for plan in (new.plan, old.plan))
        self.where = self._list_parts(*self.rows.conditions)
        self.held = self._list_parts(*self.known.conditions)
        self._check_rows()
        self.domains = columns(self.known.base, multiplicity=multiplicity)
        self.old_keys = [_rename_key(key, self.known.names) for key in old.plan.keys]
        self.new_keys = [_rename_key(key, self.rows.names) for key in new.plan.keys]
        self.same = self._is_same()
        if not self.same:
            self._check_additive()
        self.axes = [_read_axis(key, self.domains) for key in self.old_keys]
        self.told = self._name_axes()
        self.shape = tuple(len(axis.values) for axis in self.axes)
        if math.prod(self.shape) > MOST_CELLS and not self.same:
            raise NotKnown(f"it has more than {MOST_CELLS:,} groups, too many to add up")
        if math.prod(len(key.values or ()) for key in self.old_keys) != len(source.groups):
            raise NotKnown("groups that stayed hidden would be missing from a sum")

    # --- whether the rows are the same ---------------------------------------------------------

    def _form(self, expression: Expression) -> Expression:
        return normalise(expression) if self.plain else expression

    def _list_parts(self, *conditions: Expression | None) -> dict[str, Expression]:
        """All that must be true, each part by its text."""
        split = list_conditions if self.plain else split_condition
        return {same_text(part): part for one in conditions for part in split(one)}

    def _list_asked(
        self, condition: Expression | None
    ) -> tuple[dict[str, Expression], dict[str, Expression]]:
        """What is true of a row that an aggregate counts, and which of it is its own condition."""
        own = self._list_parts(None if condition is None else rename(condition, self.rows.names))
        return self.where | own, own

    def _check_rows(self) -> None:
        if same_text(self.rows.base) != same_text(self.known.base):
            raise NotKnown("it is about other tables")
        asked = [self._list_asked(one.condition)[0] for one in self.new.question.aggregates]
        if not all(self.held.keys() <= one.keys() for one in asked or [self.where]):
            raise NotKnown("it left out rows by a condition that is not asked for here")

    def _is_same(self) -> bool:
        """Whether groups and rows are exactly those of the answer: then nothing is added up."""
        return self.where.keys() == self.held.keys() and self._has_same_groups()

    def _has_same_groups(self) -> bool:
        new, old = self.new.plan, self.source.priced.plan
        return (
            same_text([(self._form(k.expression), k.values) for k in self.new_keys])
            == same_text([(self._form(k.expression), k.values) for k in self.old_keys])
            and new.contribution == old.contribution
            and new.public_keys
        )

    def _check_additive(self) -> None:
        new, old = self.new.plan, self.source.priced.plan
        if not old.public_keys:
            raise NotKnown("its groups are private, and those that stayed hidden would be missing")
        if not new.public_keys:
            raise NotKnown("the groups asked for are private, and which there are was not released")
        for plan in (old, new):  # Lemma 1: which rows are kept must not hang on the question
            bound = plan.contribution
            if not bound.enforced:
                whose = "it" if plan is old else "this question"
                limit = (
                    f"{bound.rows} rows of each unit"
                    if bound.rows is not None
                    else f"{bound.rows_per_group} rows of each unit in {bound.groups} groups"
                )
                raise NotKnown(f"{whose} counts at most {limit}, over all its groups together")

    # --- what the groups tell ------------------------------------------------------------------

    def _columns(self) -> dict[str, Known]:
        """What each key of the answer tells as a column of its own, known on every cell."""
        found = {}
        for place, axis in enumerate(self.axes):
            shape = [-1 if other == place else 1 for other in range(len(self.axes))]
            found[_placeholder(place)] = Known(axis.values.reshape(shape), axis.domain)
        return found

    def _name_axes(self) -> dict[str, Expression]:
        """What each key tells, by its text; of what is true or false, also what denies it."""
        found: dict[str, Expression] = {}
        for place, axis in enumerate(self.axes):
            key = ColumnRef(_placeholder(place))
            if self.plain and axis.domain.kind is Kind.BOOLEAN:
                found[same_text(normalise(Call("not", (axis.told,))))] = Call("not", (key,))
        for place, axis in enumerate(self.axes):
            found[same_text(self._form(axis.told))] = ColumnRef(_placeholder(place))
        return found

    def on_cells(self, expression: Expression) -> NDArray[Any]:
        """What an expression is in each cell of the answer, where its groups tell it."""
        swapped = _swap(self._form(expression), self.told)
        missing = {n for n in references(swapped) if not n.startswith("\0")}
        if missing:
            told = ", ".join(sorted(name.rpartition(".")[2] for name in missing))
            raise NotKnown(f"its groups do not tell {told} apart")
        value = evaluate_on_blocks(swapped, self._columns(), len(self.axes))
        if value is None:
            raise NotKnown("it is not certain that the engine computes the same of its groups")
        found: NDArray[Any] = np.broadcast_to(value.values, self.shape).reshape(-1)
        return found

    def _holds(self, conditions: Iterable[Expression]) -> NDArray[np.bool_]:
        kept = np.ones(math.prod(self.shape), dtype=np.bool_)
        for condition in conditions:
            kept &= np.array([value is True for value in self.on_cells(condition)], dtype=np.bool_)
        return kept

    def _find_possible(self) -> NDArray[np.bool_]:
        """The cells that can have anybody: the others hold noise alone, and are not shown."""
        possible = find_possible(self.source.priced.question)
        if possible is None or self.same:
            return np.ones(math.prod(self.shape), dtype=np.bool_)
        some = np.array([possible(group) for group in self.source.groups], dtype=np.bool_)
        return some if self._released is None else some[self._released]

    @cached_property
    def _released(self) -> Cells | None:
        """The released group that each cell is in; None where each is one by itself."""
        if not any(axis.groups is not None for axis in self.axes):
            return None
        places = [
            np.arange(axis.values.size) if axis.groups is None else axis.groups
            for axis in self.axes
        ]
        sizes = [len(key.values or ()) for key in self.old_keys]
        found: Cells = np.ravel_multi_index(np.ix_(*places), sizes).reshape(-1)
        return found

    def _group_cells(self, kept: NDArray[np.bool_]) -> tuple[Cells, ...]:
        """For each group of the question, the released groups of kept cells that lie in it."""
        at = [self.on_cells(key.expression) for key in self.new_keys]
        places: dict[Group, list[int]] = {}
        for cell in np.flatnonzero(self._keep_whole(kept, at)).tolist():
            places.setdefault(tuple(values[cell] for values in at), []).append(cell)
        groups = _list_groups(self.new_keys, self.domains)
        if not set(places) <= set(groups):
            raise NotKnown("a group of it belongs to none that is asked for")
        cells = (np.array(places.get(group, ()), dtype=np.intp) for group in groups)
        if self._released is None:
            return tuple(cells)
        return tuple(self._released[some] for some in cells)

    def _keep_whole(self, kept: NDArray[np.bool_], at: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
        """One kept cell for each released group; refused where a group is asked for in parts."""
        if self._released is None:
            return kept
        first: dict[int, int] = {}
        for cell, group in enumerate(self._released.tolist()):
            one = first.setdefault(group, cell)
            alike = all(same_text(values[cell]) == same_text(values[one]) for values in at)
            if kept[cell] != kept[one] or (kept[cell] and not alike):
                raise NotKnown("it took together what is asked for apart")
        found = np.zeros_like(kept)
        found[list(first.values())] = kept[list(first.values())]
        return found

    # --- what was measured ---------------------------------------------------------------------

    def readings(self) -> tuple[Reading, ...]:
        """How each aggregate is read off."""
        filters = [self._list_held(m) for m in self.source.priced.plan.measurements]
        somewhere = self.held.keys() | set().union(*filters)
        everywhere = [part for text, part in self.where.items() if text not in somewhere]
        kept = self._holds(everywhere) & self._find_possible()
        return tuple(
            self._read(aggregate, recipe, kept, places)
            for aggregate, recipe, places in zip(
                self.new.question.aggregates, self.new.recipes, self.places, strict=True
            )
        )

    def _read(
        self,
        aggregate: Aggregate,
        recipe: Recipe,
        kept: NDArray[np.bool_],
        places: Sequence[int],
    ) -> Reading:
        reasons: list[str] = []
        best: Reading | None = None
        for place in places:
            try:
                found = self._read_off(aggregate, recipe, place, kept)
            except NotKnown as no:
                reasons.append(str(no))
                continue
            if best is None or found.variances().sum() < best.variances().sum():
                best = found
        if best is None:
            raise NotKnown("; ".join(dict.fromkeys(reasons)))
        return best

    def _read_off(
        self, aggregate: Aggregate, recipe: Recipe, place: int, kept: NDArray[np.bool_]
    ) -> Reading:
        old = self.source.priced
        have = _rename_measured(old.plan.measurements[place], self.known.names)
        wanted = _rename_measured(self.new.plan.measurements[recipe.measurement], self.rows.names)
        law = old.mechanisms[place]
        public = isinstance(law, Summed) and self.new.mechanisms[recipe.measurement] == law
        if not isinstance(law, Laplace | Gaussian | Staircase) and not public:
            raise NotKnown(f"{aggregate.name} was chosen there, not counted")
        if self._is_like(wanted, have) and not isinstance(recipe, Counts):
            have = replace(have, condition=wanted.condition)
            cells = tuple(np.array([i], dtype=np.intp) for i in range(len(self.source.groups)))
            return self._make_reading(place, cells, None, have, replace(recipe, measurement=0))
        if public:
            raise NotKnown("it is public there, and asked for otherwise here")
        read, bins, condition = self._serve(aggregate, wanted, have, place)
        asked, own = self._list_asked(condition)
        held = self._list_parts(have.condition)
        if not held.keys() <= asked.keys():
            raise NotKnown("it counted only rows of a condition that is not asked for here")
        if self.where.keys() != self.held.keys() or not held.keys() <= own.keys():
            self._check_settled((*self.held.values(), *held.values(), *list_values(have)))
        known = self.held | held
        more = self._holds(part for text, part in asked.items() if text not in known)
        cells = self._group_cells(kept & more)
        have = replace(have, condition=wanted.condition)  # of these rows, whoever left out others
        return self._make_reading(place, cells, bins, have, read)

    def _list_held(self, measured: Measurement) -> dict[str, Expression]:
        """What is true of the rows that a measurement of the answer counts, beside the others."""
        return self._list_parts(_rename_measured(measured, self.known.names).condition)

    def _is_like(self, wanted: Measurement, have: Measurement) -> bool:
        """Whether both measure the same of the same rows in the same groups."""
        one, other = (same_text(replace(m, condition=None)) for m in (wanted, have))
        asked, held = (self._list_parts(m.condition) for m in (wanted, have))
        if one != other or not self._has_same_groups():
            return False
        if self.same:
            return asked.keys() == held.keys()
        if (self.where | asked).keys() != (self.held | held).keys():
            return False
        self._check_settled((*self.held.values(), *held.values(), *list_values(have)))
        return True

    def _check_settled(self, expressions: Iterable[Expression]) -> None:
        """Refuse what may be computed otherwise where fewer rows are looked at.

        A WHERE tells the engine what its columns can be, and then arithmetic may be that of whole
        numbers which elsewhere is that of doubles (Lemma 18); so do the keys.
        """
        keys = [key.expression for key in self.old_keys]
        if not all(self._is_settled(one) for one in (*keys, *expressions)):
            raise NotKnown("it is not certain that the engine computes the same under a condition")

    def _is_settled(self, expression: Expression) -> bool:
        match expression:
            case Call(arguments=arguments):
                parts = arguments
            case Case(branches=branches, otherwise=otherwise):
                parts = (*itertools.chain.from_iterable(branches), otherwise)
            case _:
                return True
        try:
            found = domain_of(expression, self.domains)
        except QuestionRefusal:  # typed where more is known, which here is not
            return False
        if found.kind in (Kind.INTEGER, Kind.DECIMAL) and not found.is_null:
            low, high = found.low, found.high
            if low is None or high is None or max(-low, high) > _EXACT:
                return False
        return all(map(self._is_settled, parts))

    def _make_reading(
        self,
        place: int,
        cells: tuple[Cells, ...],
        bins: tuple[tuple[int, ...], ...] | None,
        have: Measurement,
        recipe: Recipe,
    ) -> Reading:
        """The reading with columns called as the question calls them."""
        own = {name: alias for alias, name in self.rows.names.items()}
        measured = _rename_measured(have, own)
        if isinstance(recipe, Ratio) and isinstance(measured, Moments):
            recipe = replace(recipe, moments=measured)
        return Reading(self.source, place, cells, bins, measured, recipe)

    def _serve(
        self, aggregate: Aggregate, wanted: Measurement, have: Measurement, place: int
    ) -> tuple[Recipe, tuple[tuple[int, ...], ...] | None, Expression | None]:
        """The recipe on the entries of an old measurement, if they tell the aggregate exactly."""
        if isinstance(wanted, ValueCounts) and isinstance(have, ValueCounts):
            return Counts(0), self._merge_bins(aggregate, place), aggregate.condition
        if isinstance(have, _BY_PERSON) or isinstance(wanted, _BY_PERSON):
            raise NotKnown("people, distinct values and totals by person do not add up over groups")
        if aggregate.function == "COUNT" and isinstance(have, Moments):
            return self._count(aggregate, have)
        if isinstance(wanted, Moments | Sum) and isinstance(have, Moments | Sum):
            variables = _variables(wanted)
            if not variables or same_text(variables) != same_text(_variables(have)):
                raise NotKnown(f"{aggregate.name} was not measured there with these bounds")
            return _recipe(aggregate, wanted, have), None, aggregate.condition
        raise NotKnown(f"{aggregate.name} is not a sum over the rows that it measured")

    def _count(self, aggregate: Aggregate, have: Moments) -> tuple[Recipe, None, Expression | None]:
        condition = aggregate.condition
        if aggregate.arguments:
            argument = rename(aggregate.arguments[0], self.rows.names)
            if len(have.variables) == 1 and same_text(have.variables[0].expression) == same_text(
                argument
            ):
                return read_count(0, have, nulls=False), None, condition
            if domain_of(argument, self.domains).nullable:
                known = Call("not", (Call("is_null", aggregate.arguments),))
                condition = known if condition is None else Call("and", (condition, known))
        nullable = any(domain_of(v.expression, self.domains).nullable for v in have.variables)
        if nullable and not have.counts_null:
            raise NotKnown("it did not count the rows in which its values are missing")
        return read_count(0, have, nulls=True), None, condition

    def _merge_bins(self, aggregate: Aggregate, place: int) -> tuple[tuple[int, ...], ...]:
        """For each bin asked for, those of a finer histogram that make it up."""
        old = self.source.priced
        finer = next(
            (
                a
                for a, r in zip(old.question.aggregates, old.recipes, strict=True)
                if isinstance(r, Counts) and r.measurement == place
            ),
            None,
        )
        if finer is None or aggregate.function != "HISTOGRAM" or finer.function != "HISTOGRAM":
            raise NotKnown("it did not count these values")
        mine = same_text(rename(aggregate.arguments[0], self.rows.names))
        if mine != same_text(rename(finer.arguments[0], self.known.names)):
            raise NotKnown("its histogram is of something else")
        edges = [Fraction(edge) for edge in finer.parameters]  # type: ignore[arg-type]
        asked = [Fraction(edge) for edge in aggregate.parameters]  # type: ignore[arg-type]
        if not set(asked) <= set(edges):
            raise NotKnown("its bins cross those that are asked for")
        if asked[-1] != edges[-1]:  # a last bin includes its end, a bin within does not
            raise NotKnown("a histogram's last bin includes its end, and its own ends elsewhere")
        at = [edges.index(edge) for edge in asked]
        return tuple(tuple(range(low, high)) for low, high in itertools.pairwise(at))


def _recipe(aggregate: Aggregate, wanted: Moments | Sum, have: Moments | Sum) -> Recipe:
    """SUM off a sum or moments; means and the like off moments of at least their degree."""
    if isinstance(have, Sum):
        if aggregate.function != "SUM":
            raise NotKnown(f"it measured a sum, and {aggregate.name} needs the number of rows too")
        return Linear(0, (have.variable.grid,), have.variable.grid)
    if aggregate.function == "SUM":
        return read_sum(0, have)
    if not isinstance(wanted, Moments) or any(
        a > b for a, b in zip(wanted.degrees, have.degrees, strict=True)
    ):
        raise NotKnown(f"{aggregate.name} needs higher powers than it measured")
    return Ratio(0, aggregate.function, have)


def _variables(measured: Moments | Sum) -> tuple[Scaled, ...]:
    return (measured.variable,) if isinstance(measured, Sum) else measured.variables


def _placeholder(axis: int) -> str:
    return f"\0{axis}"  # which no column is called


def _swap(expression: Expression, names: Mapping[str, Expression]) -> Expression:
    """The expression with every part that is a key of the answer replaced by that key."""
    known = names.get(same_text(expression))
    if known is not None:
        return known
    match expression:
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(_swap(part, names) for part in arguments))
        case Case(branches=branches, otherwise=otherwise):
            swapped = tuple((_swap(a, names), _swap(b, names)) for a, b in branches)
            return Case(swapped, _swap(otherwise, names))
    return expression


def _rename_key(key: Key, names: Mapping[str, str]) -> Key:
    return replace(key, expression=rename(key.expression, names))


def _rename_measured(measured: Measurement, names: Mapping[str, str]) -> Measurement:
    """A measurement with its columns called after their tables."""

    def rename_variable(variable: Scaled) -> Scaled:
        return replace(variable, expression=rename(variable.expression, names))

    condition = None if measured.condition is None else rename(measured.condition, names)
    match measured:
        case Moments(variables=variables) | Products(variables=variables):
            return replace(
                measured, variables=tuple(map(rename_variable, variables)), condition=condition
            )
        case Units():
            return replace(measured, condition=condition)
        case Distance(expressions=expressions):
            named = tuple(rename(one, names) for one in expressions)
            return replace(measured, expressions=named, condition=condition)
        case ValueCounts() | DistinctValues() | GroupTotal() | GroupSum() | GroupMean():
            inner = rename(measured.expression, names)
            return replace(measured, expression=inner, condition=condition)
    return replace(measured, variable=rename_variable(measured.variable), condition=condition)


def list_groups(new: Priced, multiplicity: Multiplicity) -> tuple[Group, ...]:
    """The groups that an answer to ``new`` has, where they are public."""
    domains = columns(new.plan.source, multiplicity=multiplicity)
    return tuple(_list_groups(new.plan.keys, domains))


def _list_groups(keys: Sequence[Key], domains: Mapping[str, Any]) -> list[Group]:
    """The groups of public keys in the order of answers: the last key changes fastest."""
    listed = [
        [as_engine(value, domain_of(key.expression, domains).kind) for value in key.values or ()]
        for key in keys
    ]
    return list(itertools.product(*listed))


__all__ = ["Multiplicity", "NotKnown", "Reading", "derive", "list_groups", "same_text"]
