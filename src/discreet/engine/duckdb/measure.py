"""A plan as one statement: each unit's share bounded, then integers per group and nothing else.

Bernstein sums are linear in power sums, so the engine sums powers of u, which
several measurements share, and :mod:`discreet.engine.duckdb.result` makes the entries
of them, exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial, reduce
from math import prod

from sqlglot import exp

from discreet.engine.duckdb.declared import (
    choose_rows,
    choose_values,
    describe_rows,
    draft_rows,
    list_types,
)
from discreet.engine.duckdb.grid import (
    clip,
    number_line,
    scale_steps,
    to_steps,
    too_wide,
)
from discreet.engine.duckdb.hashing import Hashed
from discreet.engine.duckdb.ladder import (
    AT,
    COUNT,
    LUMP,
    exceed,
    find_most_values,
    lump_between_ends,
    lump_cells,
)
from discreet.engine.duckdb.render import ROW_NUMBER, Field, Rendered, Renderer, hash_unit
from discreet.engine.duckdb.result import (
    CELL,
    LIMB,
    PART,
    GroupColumn,
    Listed,
    Part,
    Powers,
    Reading,
    ResultColumns,
    Single,
    Sums,
    Total,
)
from discreet.exact.records import dataclass
from discreet.price.owners import check_plan
from discreet.price.plan import (
    Contribution,
    Distance,
    DistinctValues,
    GroupMean,
    GroupSum,
    GroupTotal,
    Histogram,
    Lumping,
    Lumpings,
    Measurement,
    Moments,
    Plan,
    Products,
    Scaled,
    Sum,
    Units,
    ValueCounts,
)
from discreet.question.domain import Domain, Kind, Value, number_of
from discreet.question.expressions import Expression
from discreet.question.functions import domain_of, nodes
from discreet.question.functions.nodes import (
    ENGINE,
    Node,
    add_alias,
    add_definitions,
    conjoin,
    disjoin,
    name_definitions,
    nest_query,
    order_by,
    present,
    quote_column,
    quote_table,
    select,
    select_all,
)
from discreet.question.ownership import Multiplicity, is_shared, row_bound
from discreet.question.ownership import unit as unit_of_relation
from discreet.question.question import Key
from discreet.question.relation import Relation
from discreet.question.schema import Table

_SMALL = 2**20


@dataclass(frozen=True, slots=True)
class Compiled:
    """One statement for the engine, written once, and how to read its result."""

    plan: Plan
    text: str
    tables: tuple[Table, ...]  # whose rows it reads
    columns: ResultColumns

    def explain(self) -> str:
        """The statement as it is run, after what stands for the rows of its private tables."""
        private = [describe_rows(table) for table in self.tables if not table.public]
        return "\n\n".join((*private, self.text))


@dataclass(frozen=True, slots=True)
class Draft:
    """The statement that measures a plan, as a tree that an engine's printer writes."""

    plan: Plan
    query: exp.Query
    tables: tuple[Table, ...]  # whose rows it reads
    columns: ResultColumns

    def list_codes(self) -> dict[str, tuple[str, ...]]:
        """The declared texts of its tables, by the names of the types that list them."""
        return {name: c for table in self.tables for name, c in list_types(table).items()}

    def complete(self) -> exp.Query:
        """The statement with the rows of its tables as steps: nothing stands behind a view.

        They read the steps :func:`~discreet.engine.duckdb.declared.source_name`, which are the
        engine's.
        """
        rows = [step for table in self.tables for step in draft_rows(table)]
        return add_definitions(self.query.copy(), [*rows, *name_definitions(self.query)])


def compile_plan(
    plan: Plan,
    find: Callable[[Table], Table],
    multiplicity: Multiplicity,
    lumpings: Lumpings = (),
) -> Compiled:
    """The statement that measures ``plan``, in DuckDB's words."""
    draft = draft_plan(plan, find, multiplicity, lumpings, by_size=True)
    text = draft.query.sql(ENGINE, pretty=True, copy=False)
    return Compiled(plan, text, draft.tables, draft.columns)


def draft_plan(
    plan: Plan,
    find: Callable[[Table], Table],
    multiplicity: Multiplicity,
    lumpings: Lumpings = (),
    *,
    by_size: bool = False,
) -> Draft:
    """The statement that measures ``plan``, cells of histograms together as ``lumpings`` say.

    ``by_size``: ranks are not counted where no group has more values than have to stand alone.
    """
    if is_shared(plan.source):
        check_plan(plan, multiplicity)
    renderer = Renderer(find, multiplicity)
    source = renderer.relation(plan.source)
    rows = _Rows(source, hash_unit(source.unit, _unit_kinds(plan.source, source.unit)))
    groups = tuple(rows.key(index, key) for index, key in enumerate(plan.keys))
    most = row_bound(plan.source, multiplicity)
    single = most == 1 or plan.contribution.rows == 1
    parts = _Parts(rows, groups, single=single, by_size=by_size)
    together = lumpings or (None,) * len(plan.measurements)
    readings = tuple(map(parts.measure, plan.measurements, together))
    name = renderer.define(rows.query())
    step = _choose_rows(plan.contribution, most, rows, groups)
    if step is not None:
        bounded = select_all(quote_table(name))
        bounded.set("qualify", exp.Qualify(this=step))
        name = renderer.define(bounded)
    if parts.several:
        last, query, _ = renderer.definitions[-1]
        renderer.definitions[-1] = (last, query, True)
    query = add_definitions(parts.query(name, in_order=not plan.public_keys), renderer.definitions)
    return Draft(plan, query, renderer.tables, ResultColumns.of(plan, groups, readings))


def _unit_kinds(relation: Relation, unit: tuple[str, ...]) -> tuple[Kind, ...]:
    """The kind of each column that says whose a row is; both owners of a row are of one."""
    kinds = unit_of_relation(relation).kinds
    return kinds * len(unit) if len(kinds) == 1 else kinds[: len(unit)]


def _choose_rows(
    contribution: Contribution, most: int | None, rows: _Rows, groups: tuple[GroupColumn, ...]
) -> Node | None:
    """Which rows of each unit are kept, unless the relation has few enough of them anyway.

    The plan's word that it is enforced is not relied on: ``most`` is derived
    anew from the relation and the public tables as they are now.
    """
    unit, content = rows.source.unit, rows.list_hashed()
    if contribution.rows is not None:
        if most is not None and most <= contribution.rows:
            return None
        return choose_rows(unit, content, most=contribution.rows)
    in_group, keys = contribution.rows_per_group or 1, [g.identifier for g in groups]
    limit = min(in_group, contribution.groups or 1) if keys else in_group
    if most is not None and most <= limit:
        return None
    within = choose_rows((*unit, *keys), content, most=in_group)
    if not keys:
        return within
    few = choose_values(unit, rows.list_hashed(keys), most=contribution.groups or 1)
    return conjoin([few, within])


# --- the rows that are measured ----------------------------------------------------------------


@dataclass(slots=True)
class _Rows:
    """The rows of the source with what is measured of them, each expression once."""

    source: Rendered
    unit: tuple[Hashed, ...]
    columns: dict[object, tuple[Hashed, Node]] = field(default_factory=dict)
    conditions: list[Node] = field(default_factory=list)

    def list_hashed(self, names: Sequence[str] | None = None) -> tuple[Hashed, ...]:
        """Whose a row is and these columns; without, everything that can tell two rows apart."""
        told = [column for column, _ in self.columns.values()]
        return (*self.unit, *(c for c in told if names is None or c.identifier in names))

    def slot(self, node: Node, kind: Kind = Kind.INTEGER, *, coded: bool = False) -> str:
        """The column that holds ``node``, which is of a kind, or coded."""
        column = Hashed(f"_v{len(self.columns)}", kind, coded)
        return self.columns.setdefault(node, (column, node))[0].identifier

    def query(self) -> exp.Select:
        """SELECT of the unit and every slot."""
        picked = [add_alias(node, column.identifier) for column, node in self.columns.values()]
        unit = map(quote_column, self.source.unit)
        if (
            not picked and not self.source.unit
        ):  # rows that nobody owns, and nothing but their number
            picked = [add_alias(exp.Boolean(this=True), "_there")]
        return select([*unit, *picked], quote_table(self.source.name), where=self.conditions)

    def domain(self, expression: Expression) -> Domain:
        """What the expression can be."""
        return domain_of(expression, self.source.columns)

    def key(self, index: int, key: Key) -> GroupColumn:
        """A column for a key; rows of groups that are not listed are left out here, unbounded."""
        node, plain = self.source.render_held(key.expression)
        domain = self.domain(key.expression)
        if domain.is_null:  # a bare NULL has no type, and its groups could not be read off
            node = nodes.make_null(domain.kind)
        if key.values is not None:
            self._only_listed(key, key.values)
        identifier = f"_k{index}"
        codes = None if plain is None else plain.codes
        column = Hashed(identifier, domain.kind, coded=codes is not None)
        self.columns[key, index] = (column, node)
        return GroupColumn(identifier, domain.kind, codes)

    def _only_listed(self, key: Key, values: Sequence[Value | None]) -> None:
        domain, value = self.domain(key.expression), self.source.value(key.expression)
        known = domain.list_values()
        listed = [v for v in values if v is not None]
        checks: list[Node] = []
        if known is None or not set(known) <= set(listed):
            checks.append(_is_among(value, listed, domain.kind))
            if None in values and domain.nullable:
                checks.append(exp.Is(this=nodes.paren(value.copy()), expression=exp.Null()))
        elif None not in values and domain.nullable:
            checks.append(present(value))
        if checks:
            self.conditions.append(exp.Paren(this=disjoin(checks)))

    def condition(self, condition: Expression | None) -> list[str]:
        """The slot of a condition, if there is one."""
        if condition is None:
            return []
        return [self.slot(self.source.value(condition), Kind.BOOLEAN)]

    def scale(self, scaled: Scaled) -> tuple[str, bool]:
        """The slot of u, and whether it may be NULL."""
        domain = self.domain(scaled.expression)
        _, plain = self.source.render_held(scaled.expression)
        kept = None if plain is None else _find_steps(plain, scaled)
        if kept is None:
            value = self.source.value(scaled.expression)
            kept = scale_steps(value, domain.kind, scaled)
        return self.slot(kept), domain.nullable


def _is_among(value: Node, listed: Sequence[Value], kind: Kind) -> Node:
    """Whether a value is listed; whole numbers and days without a gap are told by their ends."""
    if not listed:
        return exp.Boolean(this=False)
    if len(listed) > 2 and kind in (Kind.INTEGER, Kind.DATE):
        at = {number: v for v in listed if (number := number_of(v)) is not None}
        first, last = min(at), max(at)
        if len(at) == len(listed) == last - first + 1:
            ends = {"low": _constant(at[first], kind), "high": _constant(at[last], kind)}
            return exp.Between(this=nodes.paren(value), **ends)
    return exp.In(this=nodes.paren(value), expressions=[_constant(v, kind) for v in listed])


def _constant(value: Value, kind: Kind) -> Node:
    node = nodes.literal(value)
    return nodes.cast(node, kind) if kind is Kind.DECIMAL else node


def _find_steps(plain: Field, scaled: Scaled) -> Node | None:
    """The steps kept beside a prepared column, if they are the steps that are asked for."""
    kept = plain.steps
    if kept is None or (kept.grid, kept.low, kept.span) != (scaled.grid, scaled.low, scaled.span):
        return None
    return nodes.cast_whole(quote_column(kept.identifier), kept.span)


# --- the parts of the result -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Other:
    """A part with rows of its own: cells, counted; a sum over what units have; or rows, listed."""

    cell: Node | None
    check: Node
    columns: dict[str, Node]
    own: Node | None = None
    lumping: Lumping | None = None
    span: int = 0  # of cells that are lumped: the last there may be
    listed: bool = False


@dataclass(slots=True)
class _Parts:
    """The aggregates of all measurements: one row per group, and further rows for histograms."""

    rows: _Rows
    groups: tuple[GroupColumn, ...]
    single: bool  # every unit has one row at most
    by_size: bool  # whether ranks are counted is decided by the largest group
    _columns: dict[str, Node] = field(default_factory=dict)
    _named: dict[Node, str] = field(default_factory=dict)
    _others: list[_Other] = field(default_factory=list)
    _points: dict[str, Kind] = field(default_factory=dict)  # columns of numbers that are listed

    @property
    def several(self) -> bool:
        """Whether the rows are read more than once."""
        return bool(self._others)

    def measure(self, measurement: Measurement, lumping: Lumping | None = None) -> Reading:
        """Where the measurement will be found; cells of a histogram together as told."""
        match measurement:
            case Moments():
                return self._moments(measurement)
            case Products(variables=variables, condition=condition):
                squares = Moments(variables, (2,) * len(variables), condition=condition)
                return self._moments(squares, most=2)
            case Units(condition=condition):
                return Single(self._count(self._units(), self.rows.condition(condition)))
            case DistinctValues(expression=expression, condition=condition):
                node, plain = self.rows.source.render_held(expression)
                coded = plain is not None and plain.codes is not None
                slot = self.rows.slot(node, self.rows.domain(expression).kind, coded=coded)
                different = exp.Distinct(expressions=[quote_column(slot)])
                return Single(self._count(different, self.rows.condition(condition)))
            case Histogram(variable=variable, condition=condition):
                cell, _ = self.rows.scale(variable)
                checks = self.rows.condition(condition)
                if lumping is None:
                    return self._cells(quote_column(cell), checks)
                return self._lumps(quote_column(cell), checks, lumping, variable.span)
            case ValueCounts():
                return self._values(measurement)
            case Distance():
                return self._list(measurement)
            case GroupTotal() | GroupSum() | GroupMean():
                return self._group_total(measurement)
            case Sum(variable=variable, condition=condition):
                return self._moments(Moments((variable,), (1,), condition=condition))

    def _units(self) -> Node:
        if self.single:
            return exp.Star()
        unit = self.rows.source.unit
        if len(unit) == 1 or ROW_NUMBER in unit:
            return exp.Distinct(expressions=[quote_column(unit[0])])
        return exp.Distinct(expressions=[nodes.call("ROW", *map(quote_column, unit))])

    def _moments(self, moments: Moments, most: int | None = None) -> Sums:
        """The sums of all powers; with ``most``, of those whose degrees add up to it at most."""
        condition = self.rows.condition(moments.condition)
        slots = [self.rows.scale(variable) for variable in moments.variables]
        if most is None and moments.weight >= 2**126:
            raise too_wide()
        checks: list[Node] = [*map(quote_column, condition)]
        rows = self._count(exp.Star(), condition)
        nullable = [slot for slot, may_be_null in slots if may_be_null]
        if len(slots) == 1 and not condition and nullable:
            # Aggregates pass over NULL by themselves, faster than a FILTER does.
            known = self._count_checked(quote_column(nullable[0]), [])
        else:
            checks += [present(quote_column(slot)) for slot in nullable]
            known = self._count_checked(exp.Star(), checks)
        powers = []
        wanted: Iterator[Powers] = itertools.product(*(range(d + 1) for d in moments.degrees))
        if most is not None:
            wanted = _list_degrees(len(slots), most)
        for degrees in wanted:
            if any(degrees):
                node, largest = _product(slots, degrees, moments)
                powers.append((degrees, self._total(node, largest, checks)))
        return Sums(rows, known, tuple(powers))

    # --- aggregates of the first part --------------------------------------------------------

    def _count(self, counted: Node, condition: list[str]) -> Total:
        return self._count_checked(counted, [quote_column(slot) for slot in condition])

    def _count_checked(self, counted: Node, checks: list[Node]) -> Total:
        return Total(((self._column(_filter(_count_of(counted), checks)), 0),))

    def _total(self, node: Node, most: int, checks: list[Node]) -> Total:
        """The sum of a number in 0 ... most, in limbs of 64 bits.

        128 bits hold 2**64 numbers of 62 bits; 63 hold 2**43 numbers of 20, more rows
        than any table has.
        """
        if most <= _SMALL:
            total = nodes.cast(_sum_of(node, checks), Kind.INTEGER)
            return Total(((self._column(total), 0),))
        if most < 2**LIMB:
            return Total(self._limbs(_sum_of(node, checks), 0))
        high = nodes.infix(exp.BitwiseRightShift, node, nodes.wide(nodes.whole(LIMB)))
        low = nodes.infix(exp.BitwiseAnd, node.copy(), nodes.wide(nodes.whole(2**LIMB - 1)))
        upper, lower = _sum_of(high, checks), _sum_of(low, checks)
        return Total((*self._limbs(upper, LIMB), *self._limbs(lower, 0)))

    def _limbs(self, total: Node, power: int) -> tuple[tuple[str, int], ...]:
        """A sum of 128 bits in two columns of 64."""
        high, low = map(self._column, _split_limbs(total))
        return (high, power + LIMB), (low, power)

    def _column(self, node: Node) -> str:
        name = self._named.setdefault(node, f"_n{len(self._columns)}")
        self._columns.setdefault(name, node)
        return name

    # --- further parts -----------------------------------------------------------------------

    def _cells(self, cell: Node, condition: list[str]) -> Part:
        checks = [*map(quote_column, condition), present(cell.copy())]
        self._others.append(_Other(cell, conjoin(checks), {"_n0": _count_of(exp.Star())}))
        return Part(len(self._others))

    def _lumps(self, cell: Node, condition: list[str], lumping: Lumping, span: int) -> Part:
        """Of each lump how many values it has, its first cell, and sums of powers of its cells.

        Below 2**84 each and 2**126 over all rows: a sum is two columns of 64 bits.
        """
        counted = lumping.zero is None  # the cells are: each has a number of rows
        rows = nodes.call("SUM", quote_column(COUNT)) if counted else _count_of(exp.Star())
        columns = {
            "_n0": nodes.cast(rows, Kind.INTEGER),
            "_n1": nodes.call("MIN", quote_column(AT)),
        }
        powers = []
        for power in range(1, lumping.degree + 1):
            factors = [AT] * power + [COUNT] * counted
            node = quote_column(AT) if len(factors) == 1 else _multiply_wide(factors)
            upper, lower = _split_limbs(nodes.call("SUM", node))
            high, low = f"_n{2 * power}", f"_n{2 * power + 1}"
            columns |= {high: upper, low: lower}
            powers.append(Total(((high, LIMB), (low, 0))))
        checks = [*map(quote_column, condition), present(cell.copy())]
        self._others.append(_Other(cell, conjoin(checks), columns, lumping=lumping, span=span))
        return Part(len(self._others), lumped=True, powers=tuple(powers))

    def _values(self, counts: ValueCounts) -> Part:
        node, plain = self.rows.source.render_held(counts.expression)
        condition = self.rows.condition(counts.condition)
        codes = None if plain is None else plain.codes
        domain = self.rows.domain(counts.expression)
        if codes is not None and codes == counts.values:
            slot = self.rows.slot(node, domain.kind, coded=True)
            return self._cells(
                nodes.cast(nodes.call("ENUM_CODE", quote_column(slot)), Kind.INTEGER), condition
            )
        value = self.rows.source.value(counts.expression)
        index = exp.Case(
            this=value,
            ifs=[
                exp.If(this=_constant(v, domain.kind), true=nodes.integer(i))
                for i, v in enumerate(counts.values)
            ],
        )
        return self._cells(quote_column(self.rows.slot(index)), condition)

    def _group_total(self, total: GroupTotal | GroupSum | GroupMean) -> Part:
        """Two levels: what each unit has in the group, clipped, then the sum over units."""
        kind = self.rows.domain(total.expression).kind
        value = self.rows.source.value(total.expression)
        steps = quote_column(self.rows.slot(to_steps(value, kind, total.grid)))
        condition = self.rows.condition(total.condition)
        checks = [*map(quote_column, condition), present(steps.copy())]
        high = total.low + total.span
        if max(abs(total.low), abs(high)) >= 2**LIMB:
            raise too_wide()
        own = nodes.call("SUM", steps)
        if isinstance(total, GroupMean):
            above = nodes.cast(_own_mean(own, total), Kind.INTEGER)
        else:
            low_end, high_end = nodes.wide(nodes.whole(total.low)), nodes.wide(nodes.whole(high))
            inside = clip(own, low_end, high_end)
            above = nodes.cast(nodes.infix(exp.Sub, inside, low_end.copy()), Kind.INTEGER)
        own_total = nodes.call("SUM", quote_column("_own"))
        upper, lower = _split_limbs(own_total)
        columns = {"_n0": _count_of(exp.Star()), "_n1": upper, "_n2": lower}
        self._others.append(_Other(None, conjoin(checks), columns, own=above))
        number = len(self._others)
        return Part(number, Total((("_n0", 0),)), Total((("_n1", LIMB), ("_n2", 0))))

    def _list(self, distance: Distance) -> Listed:
        """A row for each that counts: whose it is, and where its values stand in their order."""
        value, *others = (
            self.rows.slot(self.rows.source.value(one), self.rows.domain(one).kind)
            for one in distance.expressions
        )
        condition = self.rows.condition(distance.condition)
        checks = [
            *map(quote_column, condition),
            *(present(quote_column(s)) for s in (value, *others)),
        ]
        owner = exp.Window(this=exp.RowNumber()) if self.single else _rank(self.rows.source.unit)
        columns = {"_n0": nodes.cast(owner, Kind.INTEGER)}
        number, point = len(self._others) + 1, None
        if distance.property == "clusters":
            kind = self.rows.domain(distance.expressions[0]).kind
            point = f"_x{number}"
            self._points[point] = kind
            columns[point] = nodes.cast(quote_column(value), kind)
        else:
            columns["_n1"] = nodes.cast(_rank((value,)), Kind.INTEGER)
            columns["_n2"] = nodes.cast(_rank(others), Kind.INTEGER)
        self._others.append(_Other(None, conjoin(checks), columns, listed=True))
        return Listed(number, point)

    # --- the statement -----------------------------------------------------------------------

    def query(self, name: str, *, in_order: bool) -> exp.Query:
        """The parts one after the other, over the rows called ``name``."""
        widths = [sum(n.startswith("_n") for n in other.columns) for other in self._others]
        width = max(1, len(self._columns), *widths, 1)
        query: exp.Query = self._first(name, width)
        for number, other in enumerate(self._others, 1):
            part = self._other(name, number, other, width)
            query = exp.Union(this=query, expression=part, distinct=False)
        if in_order or self._others:
            keys = [PART, *(g.identifier for g in self.groups), CELL]
            query.set("order", order_by(map(quote_column, keys)))
        return query

    def _keys(self) -> list[Node]:
        """The keys as they come back: codes, days and microseconds are whole numbers."""
        return [add_alias(_as_number(g), g.identifier) for g in self.groups]

    def _shape(
        self, number: int, cell: Node | None, columns: dict[str, Node], width: int
    ) -> list[Node]:
        # What a part does not have is never read: zeros, because NULL would come back as an array
        # with a mask, and the first of those costs a fresh process the import of numpy.ma.
        numbers = [
            add_alias(columns.get(f"_n{i}", nodes.integer(0)), f"_n{i}") for i in range(width)
        ]
        numbers += [
            add_alias(columns.get(name, nodes.cast(nodes.integer(0), kind)), name)
            for name, kind in self._points.items()
        ]
        index = nodes.integer(0) if cell is None else nodes.cast(cell, Kind.INTEGER)
        return [
            add_alias(nodes.integer(number), PART),
            *self._keys(),
            add_alias(index, CELL),
            *numbers,
        ]

    def _first(self, name: str, width: int) -> exp.Select:
        columns = self._columns or {"_n0": _count_of(exp.Star())}
        return select(
            self._shape(0, None, columns, width), quote_table(name), group=self._group_by()
        )

    def _group_by(self) -> list[Node]:
        return [quote_column(g.identifier) for g in self.groups]

    def _other(self, name: str, number: int, other: _Other, width: int) -> exp.Query:
        keys, source, where = self._group_by(), quote_table(name), [other.check]
        shape = partial(self._shape, number, columns=other.columns, width=width)
        if other.listed:
            return select(shape(None), source, where=where)
        if other.own is not None:
            unit = [quote_column(u) for u in self.rows.source.unit]
            own = add_alias(other.own, "_own")
            inner = select([*keys, own], source, where=where, group=[*keys, *unit])
            return select(shape(None), nest_query(inner, "own"), group=self._group_by())
        if other.cell is None or other.lumping is None:
            group = keys if other.cell is None else [*keys, other.cell]
            return select(shape(other.cell), source, where=where, group=group)
        lumping = other.lumping
        if self.by_size and lumping.zero is None and not lumping.degree:
            return self._choose_by_size(name, number, other, width)
        return self._lump(name, number, other, width)

    def _choose_by_size(self, name: str, number: int, other: _Other, width: int) -> exp.Query:
        """Every cell where no group is so large that some need not stand alone; else lumps.

        Both give the same rows for small groups: the larger number of them is only found sooner.
        """
        if other.cell is None or other.lumping is None:
            raise TypeError("no cells")
        keys, most = self._group_by(), find_most_values(other.lumping.stretches)
        large = exceed(select([], quote_table(name), where=[other.check], group=keys), most)
        small = exp.Not(this=large.copy())
        cell = nodes.cast(other.cell.copy(), Kind.INTEGER)
        shape = self._shape(number, other.cell, {"_n0": _count_of(exp.Star()), "_n1": cell}, width)
        alone = select(
            shape,
            quote_table(name),
            where=[other.check.copy(), small],
            group=[*self._group_by(), other.cell.copy()],
        )
        checked = replace(other, check=conjoin([other.check.copy(), large]))
        lumped = self._lump(name, number, checked, width)
        return exp.Union(this=alone, expression=lumped, distinct=False)

    def _lump(self, name: str, number: int, other: _Other, width: int) -> exp.Select:
        if other.cell is None or other.lumping is None:
            raise TypeError("no cells")
        keys, source, where = self._group_by(), quote_table(name), [other.check]
        shape = partial(self._shape, number, columns=other.columns, width=width)
        named, zero = [g.identifier for g in self.groups], other.lumping.zero
        picked = [*keys, add_alias(other.cell, AT)]
        if zero is None:
            picked.append(add_alias(_count_of(exp.Star()), COUNT))
            cells = select(picked, source, where=where, group=[*keys, other.cell.copy()])
            lumps = lump_cells(cells, named, other.lumping.stretches)
        else:
            cells = select(picked, source, where=where)
            lumps = lump_between_ends(cells, named, zero, other.span)
        last = nodes.call("MAX", quote_column(AT))
        group = [*self._group_by(), quote_column(LUMP)]
        return select(shape(last), nest_query(lumps, "lumps"), group=group)


def _split_limbs(total: Node) -> tuple[Node, Node]:
    """A sum of 128 bits, none of them a sign, in two columns of 64: above 2**62, and below."""
    high = nodes.infix(exp.BitwiseRightShift, total, nodes.wide(nodes.whole(LIMB)))
    low = nodes.infix(exp.BitwiseAnd, total.copy(), nodes.wide(nodes.whole(2**LIMB - 1)))
    return nodes.cast(high, Kind.INTEGER), nodes.cast(low, Kind.INTEGER)


def _multiply_wide(names: Sequence[str]) -> Node:
    """The product of some columns, in 128 bits."""
    first, *others = (nodes.wide(quote_column(name)) for name in names)
    return reduce(partial(nodes.infix, exp.Mul), others, first)


def _rank(slots: Sequence[str]) -> Node:
    """Where a row stands in the order of some columns; the same for the same values."""
    return exp.Window(this=nodes.call("DENSE_RANK"), order=order_by(map(quote_column, slots)))


def _own_mean(own: Node, mean: GroupMean) -> Node:
    """A unit's mean above the low end, in steps: its total and the ends both count every row.

    In 128 bits: at most 2**62 steps a row, and fewer rows than 2**60.
    """
    rows = nodes.wide(_count_of(exp.Star()))
    many = nodes.infix(exp.Sub, own, _times(rows, mean.low))
    inside = clip(many, nodes.wide(nodes.whole(0)), _times(rows, mean.span))
    twice = nodes.infix(exp.Add, _times(inside, 2), rows.copy())
    return nodes.infix(exp.IntDiv, twice, _times(rows, 2))


def _times(node: Node, factor: int) -> Node:
    return nodes.infix(exp.Mul, node.copy(), nodes.wide(nodes.whole(factor)))


def _as_number(group: GroupColumn) -> Node:
    key = quote_column(group.identifier)
    if group.codes is not None:
        return nodes.cast(nodes.call("ENUM_CODE", key), Kind.INTEGER)
    return key if group.kind is Kind.BOOLEAN else number_line(key, group.kind)


def _filter(aggregate: Node, checks: list[Node]) -> Node:
    if not checks:
        return aggregate
    where = exp.Where(this=conjoin([check.copy() for check in checks]))
    return exp.Filter(this=aggregate, expression=where)


def _sum_of(node: Node, checks: list[Node]) -> Node:
    return _filter(nodes.call("SUM", node), checks)


def _count_of(counted: Node) -> Node:
    return exp.Count(this=counted, big_int=True)


def _list_degrees(variables: int, most: int) -> Iterator[Powers]:
    """All degrees that add up to at most ``most``: few, where there are many variables."""
    for chosen in itertools.combinations_with_replacement(range(variables + 1), most):
        yield tuple(chosen.count(place) for place in range(variables))


def _product(slots: list[tuple[str, bool]], degrees: Powers, moments: Moments) -> tuple[Node, int]:
    """u1**d1 * u2**d2 * ..., in a type that holds its greatest value, and that value."""
    spans = [variable.span for variable in moments.variables]
    most = prod(span**d for span, d in zip(spans, degrees, strict=True))
    factors = [slot for (slot, _), d in zip(slots, degrees, strict=True) for _ in range(d)]

    def factor(slot: str) -> Node:
        if len(factors) == 1:
            return quote_column(slot)
        return (
            nodes.cast(quote_column(slot), Kind.INTEGER)
            if most < 2**LIMB
            else nodes.wide(quote_column(slot))
        )

    node = factor(factors[0])
    for slot in factors[1:]:
        node = nodes.infix(exp.Mul, node, factor(slot))
    return node, most
